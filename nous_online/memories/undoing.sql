-- name: history
-- Every change of one memory, the latest first.
select id, memory_kind, memory_id, action, from_state, to_state, version_before, version_after, before, after, actor,
       reason, effective_at, recorded_at, night, run_id, proposal_id, undoes
from lifecycle.events
where agent_id = %(agent_id)s and memory_id = %(memory_id)s
order by version_after desc

-- name: memories_as_json
-- In id order, as everybody takes them.
select id, row_version, to_jsonb(f) - 'embedding' - 'context_embedding' as columns
from {table} f where agent_id = %(agent_id)s and id = any(%(ids)s) order by id for no key update

-- name: retired_for
select id from heart.facts
where agent_id = %(agent_id)s and superseded_by = %(memory_id)s and state = 'superseded'
order by id for update

-- name: documents_of_one_name
-- A name that would lead to two texts, of which one was brought back.
select f.subject from heart.facts f
join heart.facts o on o.agent_id = f.agent_id and o.state = 'active' and o.id <> f.id and o.category = f.category
    and o.project_id = f.project_id and lower(o.subject) = lower(f.subject) and o.subject = f.subject
where f.agent_id = %(agent_id)s and f.id = any(%(ids)s) and f.state = 'active' and f.category = 'document'

-- name: keys_held_twice
-- A key that would have two values, of which one was brought back.
select f.id, f.key, o.id from heart.facts f
join heart.facts o on o.agent_id = f.agent_id and o.state = 'active' and o.id <> f.id and o.key = f.key and o.scope = f.scope
    and o.user_id is not distinct from f.user_id and o.project_id is not distinct from f.project_id
where f.agent_id = %(agent_id)s and f.id = any(%(ids)s) and f.state = 'active' and f.key is not null

-- name: cold_texts
select memory_id, tier, to_jsonb(c) from heart.cold_texts c where agent_id = %(agent_id)s and memory_id = any(%(ids)s)
