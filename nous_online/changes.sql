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

-- name: change_memory
-- The only statement that changes a stored memory: it checks the version that was read, keeps the columns as they
-- were, and leaves the event. The values are those of a row, so they can be taken back just as they were.
with old as (
    select * from {table}
    where agent_id = %(agent_id)s and id = %(id)s and row_version = %(row_version)s
    for no key update
), changed as (
    update {table} f
    set ({given}) = (select {given_of_r} from jsonb_populate_record(f, %(values)s) r)
    from old
    where f.agent_id = old.agent_id and f.id = old.id
    returning f.*
), event as (
    insert into lifecycle.events (
        agent_id, memory_kind, memory_id, action, from_state, to_state, version_before, version_after, before, after,
        actor, reason, effective_at, night, run_id, proposal_id, undoes)
    select changed.agent_id, %(kind)s, changed.id, %(action)s, old.state, changed.state, old.row_version,
           changed.row_version,
           (select to_jsonb(image) from (select {given_of_old}) image) || %(grown_from)s,
           (select to_jsonb(image) from (select {given_of_changed}) image) || %(grown_by)s,
           %(actor)s, %(reason)s, %(effective_at)s, %(night)s, %(run_id)s, %(proposal_id)s, %(undoes)s
    from changed join old using (id)
)
select {columns} from changed

-- name: add_usage
-- Counters are added, never set: additions of a night and of a recall commute, and undoing is adding the negative.
insert into heart.usage (agent_id, memory_id, memory_kind, retrieved_count, cited_count, ignored_count, last_used_at)
values (%(agent_id)s, %(id)s, %(kind)s, greatest(%(retrieved_count)s, 0), greatest(%(cited_count)s, 0),
        greatest(%(ignored_count)s, 0), %(last_used_at)s)
on conflict (agent_id, memory_id) do update
set retrieved_count = greatest(usage.retrieved_count + %(retrieved_count)s, 0),
    cited_count = greatest(usage.cited_count + %(cited_count)s, 0),
    ignored_count = greatest(usage.ignored_count + %(ignored_count)s, 0),
    last_used_at = greatest(usage.last_used_at, excluded.last_used_at)
