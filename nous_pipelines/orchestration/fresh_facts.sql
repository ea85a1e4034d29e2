-- name: agents_to_scan
-- Agents with events behind their cursor, the longest waiting first, each with its own policy. Events of any name count:
-- the cursor moves past them as well, so that they are read once.
select a.id, coalesce(p.policy, '{}')
from heart.agents a
left join heart.outbox_cursors c on c.agent_id = a.id and c.consumer = %(consumer)s
left join lifecycle.agent_policies p on p.agent_id = a.id
cross join lateral (
    select o.created_at from heart.outbox o
    where o.agent_id = a.id
      and (o.written_xid, o.id) > (coalesce(c.last_xid, '0'), coalesce(c.last_id, 0))
      and o.written_xid < pg_snapshot_xmin(pg_current_snapshot())
    order by o.written_xid, o.id
    limit 1) first
order by first.created_at, a.id

-- name: active_facts
-- Those of some facts that are active and have a vector, with its embedding space.
select {columns}, f.embedding, s.id as space_id, s.model, s.weights_sha256, s.dimensions
from heart.facts f
join heart.embedding_spaces s on s.id = f.embedding_space_id
where f.agent_id = %(agent_id)s and f.id = any(%(ids)s) and f.state = 'active' and f.embedding is not null
  and f.category is distinct from 'document'
order by f.id

-- name: last_night
-- The last night an agent was in, and up to when it saw what was stored.
select night, measured_at from lifecycle.health where agent_id = %(agent_id)s order by night desc limit 1

-- name: separated_facts
-- The facts that a person took apart: targets of undone proposals, and facts that were split.
select targets from lifecycle.proposals
where agent_id = %(agent_id)s and state = 'undone' and kind = any(%(kinds)s) and targets && %(ids)s
union all
select array[memory_id, (after ->> 'split_from')::uuid] from lifecycle.events e
where agent_id = %(agent_id)s and after ? 'split_from' and memory_id = any(%(ids)s)
  and not (action = 'split' and exists (select from lifecycle.events u where u.undoes = e.id))
