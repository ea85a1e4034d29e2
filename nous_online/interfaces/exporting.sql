-- name: act_as_night
-- The role that may read and write what nights wrote.
set local role nous_night

-- name: act_as_app
-- The role of an agent's calls, which alone may write some tables.
set local role nous_app

-- name: act_as_purge
-- The role that may read who was erased.
set local role nous_purge

-- name: check_rows
-- What is rolled back, is never committed: the rules that are held at a commit are held here.
set constraints all immediate

-- name: spaces_of
-- The embedding spaces of an agent's vectors, its current one first.
select s.id, s.model, s.weights_sha256, s.dimensions
from heart.embedding_spaces s
join heart.agents a on a.id = %(agent_id)s
where s.id = a.embedding_space_id
   or exists (select from heart.facts m where m.agent_id = a.id and m.embedding_space_id = s.id)
   or exists (select from heart.episodes m where m.agent_id = a.id and m.embedding_space_id = s.id)
   or exists (select from heart.procedures m where m.agent_id = a.id and m.embedding_space_id = s.id)
   or exists (select from heart.censors m where m.agent_id = a.id and m.embedding_space_id = s.id)
   or exists (select from heart.recalls m where m.agent_id = a.id and m.embedding_space_id = s.id)
   or exists (select from heart.working_memory m where m.agent_id = a.id and m.embedding_space_id = s.id)
order by s.id = a.embedding_space_id desc, s.id

-- name: rows_of
select (to_jsonb(t) - %(dropped)s::text[])::text from {table} t where agent_id = %(agent_id)s order by {key}

-- name: facts_of
-- Each fact after its successor, which its foreign key points to when it is restored.
with recursive line as (
    select id, 0 as depth from heart.facts where agent_id = %(agent_id)s and superseded_by is null
    union all
    select f.id, l.depth + 1
    from line l join heart.facts f on f.agent_id = %(agent_id)s and f.superseded_by = l.id
)
select (to_jsonb(f) - %(dropped)s::text[])::text
from line l join heart.facts f on f.agent_id = %(agent_id)s and f.id = l.id
order by l.depth, f.id

-- name: events_of
-- The server generates ids of events, so the event that one undoes is named by its memory and version.
select (to_jsonb(e) - %(dropped)s::text[] - 'id' || jsonb_build_object('undoes', case when u.id is not null then
           jsonb_build_object('memory_id', u.memory_id, 'version_after', u.version_after) end))::text
from lifecycle.events e left join lifecycle.events u on u.id = e.undoes
where e.agent_id = %(agent_id)s
order by e.id

-- name: plans_of
-- Plans of nights without what concerns other agents.
select jsonb_build_object('hash', hash, 'night', night, 'policy', policy - 'agents', 'state', state, 'run_id', run_id,
                          'created_at', created_at, 'applied_at', applied_at)::text
from lifecycle.plans
where hash in (select plan_hash from lifecycle.proposals where agent_id = %(agent_id)s)
order by hash

-- name: was_erased
-- Whether the whole agent was erased: its tombstone has no content hash, those of single memories have one.
select exists (
    select from lifecycle.tombstones
    where agent_hash = encode(sha256(convert_to(%(agent_id)s, 'UTF8')), 'hex') and content_hash = '')

-- name: has_rows
select exists (select from {table} where agent_id = %(agent_id)s)

-- name: columns_of
select attname from pg_attribute
where attrelid = %(table)s::regclass and attnum > 0 and not attisdropped and attgenerated = '' and attidentity = ''

-- name: move_agent
update heart.agents set embedding_space_id = %(space_id)s where id = %(agent_id)s and embedding_space_id <> %(space_id)s

-- name: store_rows
insert into {table} ({columns}) select {columns} from jsonb_populate_recordset(null::{table}, %(rows)s)

-- name: store_plans
-- Plans are shared by agents: if the night ran in this database, its plan exists already.
insert into {table} ({columns}) select {columns} from jsonb_populate_recordset(null::{table}, %(rows)s)
on conflict (hash) do nothing

-- name: check_rows
-- Checks deferred constraints now, while all rows exist: erasing removes some of them next.
set constraints all immediate

-- name: check_later
set constraints all deferred

-- name: find_event
select id from lifecycle.events
where agent_id = %(agent_id)s and memory_id = %(memory_id)s and version_after = %(version_after)s

-- name: store_first_statements
-- Format 1 has no statements: each fact gets one, with the values that the fact had before its first change.
insert into heart.statements (
    agent_id, fact_id, content, subject, said_at, recorded_at, source, source_kind, trust, user_id, project_id, scope,
    session_id, episode_id, decision_id, frame, reason)
select f.agent_id, f.id, f.content, o.subject, f.learned_at, f.created_at, o.source, f.source_kind, o.trust, o.user_id,
       o.project_id, o.scope, e.session_id, f.source_episode_id, f.source_decision_id, f.encoded_frame,
       case when l.actor = 'import' then 'imported' else 'first' end
from heart.facts f
    left join lifecycle.events l on l.agent_id = f.agent_id and l.memory_id = f.id and l.version_after = 1
    left join heart.episodes e on e.agent_id = f.agent_id and e.id = f.source_episode_id
    left join (
        select e.agent_id, e.memory_id, jsonb_object_agg(b.key, b.value order by e.id desc) as before
        from lifecycle.events e cross join jsonb_each(e.before) b
        where e.agent_id = %(agent_id)s and e.memory_kind = 'fact' and b.key in ('subject', 'source', 'trust', 'user_id', 'project_id', 'scope')
        group by e.agent_id, e.memory_id
    ) w on w.agent_id = f.agent_id and w.memory_id = f.id
    cross join jsonb_populate_record(f, coalesce(w.before, '{}')) o
where f.agent_id = %(agent_id)s
