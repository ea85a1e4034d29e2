-- name: get_memory
select {columns} from {table} where agent_id = %(agent_id)s and id = %(id)s

-- name: lock_memories
-- In id order, so that two writers who want the same rows queue up instead of embracing each other. Rows that only
-- refer to these may be written meanwhile: no key ever changes.
select {columns} from {table} where agent_id = %(agent_id)s and id = any(%(ids)s) order by id for no key update

-- name: add_memory
-- A new memory and the event that says who stored it and why. The values are those of a row; columns not named keep
-- their defaults.
with stored as (
    insert into {table} ({given})
    select {given_of_r} from jsonb_populate_record(null::{table}, %(values)s) r
    returning *
), event as (
    insert into lifecycle.events (
        agent_id, memory_kind, memory_id, action, from_state, to_state, version_before, version_after, actor, reason,
        effective_at, night, run_id, proposal_id, undoes)
    select agent_id, %(kind)s, id, %(action)s, 'new', state, 0, row_version, %(actor)s, %(reason)s, %(effective_at)s,
           %(night)s, %(run_id)s, %(proposal_id)s, %(undoes)s
    from stored
)
select {columns} from stored

-- name: change_memories
-- The only statement that changes stored memories: it checks the versions that were read, keeps the columns as they
-- were, and leaves an event for each. The values are those of a row, so they can be taken back just as they were.
with wanted as materialized (
    select *
    from jsonb_to_recordset(%(entries)s) entry (
        id uuid, row_version bigint, "values" jsonb, abridged_before jsonb, abridged_after jsonb, actor text, action text,
        reason text, effective_at timestamptz, night date, run_id text, proposal_id uuid, undoes bigint, statement jsonb)
), old as materialized (
    select f.* from {table} f
    where f.agent_id = %(agent_id)s and (f.id, f.row_version) in (select id, row_version from wanted)
    order by f.id for no key update
), changed as (
    update {table} f
    set ({given}) = (select {given_of_r} from jsonb_populate_record(f, w."values") r)
    from old join wanted w using (id)
    where f.agent_id = old.agent_id and f.id = old.id
    returning f.*
), event as (
    insert into lifecycle.events (
        agent_id, memory_kind, memory_id, action, from_state, to_state, version_before, version_after, before, after,
        actor, reason, effective_at, night, run_id, proposal_id, undoes)
    select changed.agent_id, %(kind)s, changed.id, w.action, old.state, changed.state, old.row_version, changed.row_version,
           was.kept || coalesce((select jsonb_object_agg(key, value) from jsonb_each(w.abridged_before)
                                  where was.kept -> key <> 'null'), '{{}}'),
           (select to_jsonb(image) from (select {given_of_changed}) image) || w.abridged_after,
           w.actor, w.reason, w.effective_at, w.night, w.run_id, w.proposal_id, w.undoes
    from changed join old using (id) join wanted w using (id)
    cross join lateral (select to_jsonb(image) as kept from (select {given_of_old}) image) was
){stated}
select {columns} from changed

-- name: with_statement
-- The statement that made the change, in the same breath: where the version has moved on, neither is written.
, stated as (
    insert into heart.statements (
        id, agent_id, fact_id, content, subject, said_at, source, source_kind, trust, user_id, project_id, scope, session_id,
        episode_id, decision_id, frame, reason)
    select s.id, changed.agent_id, changed.id, s.content, s.subject, s.said_at, s.source, s.source_kind, s.trust, s.user_id,
           s.project_id, s.scope, coalesce(s.session_id, e.session_id), s.episode_id, s.decision_id, s.frame, s.reason
    from changed join wanted w using (id) cross join jsonb_populate_record(null::heart.statements, w.statement) s
    left join heart.episodes e on e.agent_id = changed.agent_id and e.id = s.episode_id
)

-- name: store_cold_texts
-- Texts of episodes as they read now. One that was moved before, taken back, and moves again is kept as it reads by now.
insert into heart.cold_texts as c (agent_id, memory_id, tier, detail, summary, compressed, purge_after)
select e.agent_id, e.id, t.tier, case when 'detail' = any(t.columns) then e.detail end,
       case when 'summary' = any(t.columns) then e.summary end,
       case when 'compressed' = any(t.columns) then e.compressed end, t.purge_after
from jsonb_to_recordset(%(texts)s) t (id uuid, tier text, columns text[], purge_after timestamptz)
join heart.episodes e on e.agent_id = %(agent_id)s and e.id = t.id
order by e.id
on conflict (agent_id, memory_id, tier) do update
set detail = coalesce(excluded.detail, c.detail), summary = coalesce(excluded.summary, c.summary),
    compressed = coalesce(excluded.compressed, c.compressed), stored_at = excluded.stored_at,
    purge_after = excluded.purge_after

-- name: begin_usage
-- Whoever was never used gets counters to add to.
insert into heart.usage (agent_id, memory_id, memory_kind)
select %(agent_id)s, id, kind from jsonb_to_recordset(%(deltas)s) delta (id uuid, kind text) order by id
on conflict (agent_id, memory_id) do nothing

-- name: add_usage
-- Counters are added, never set: additions of a night and of a recall commute, and undoing is adding the negative. The
-- rows are taken in id order, as recalls take them.
with delta as materialized (
    select id, sum(retrieved_count) as retrieved_count, sum(cited_count) as cited_count, sum(ignored_count) as ignored_count,
           max(last_used_at) as last_used_at
    from jsonb_to_recordset(%(deltas)s) delta (
        id uuid, retrieved_count integer, cited_count integer, ignored_count integer, last_used_at timestamptz)
    group by id
), counted as materialized (
    select * from heart.usage where agent_id = %(agent_id)s and memory_id in (select id from delta) order by memory_id for update
)
update heart.usage u
set retrieved_count = greatest(counted.retrieved_count + delta.retrieved_count, 0),
    cited_count = greatest(counted.cited_count + delta.cited_count, 0),
    ignored_count = greatest(counted.ignored_count + delta.ignored_count, 0),
    last_used_at = greatest(counted.last_used_at, delta.last_used_at)
from counted join delta on delta.id = counted.memory_id
where u.agent_id = counted.agent_id and u.memory_id = counted.memory_id
