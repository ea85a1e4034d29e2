-- name: find_replayed
-- The recall an earlier run replayed for this record; the moment is what the index leads by.
select id, result_ids from heart.recalls
where agent_id = %(agent_id)s and recalled_at = %(at)s and session_id = %(session_id)s

-- name: taken_out
-- What was imported under some keys and somebody took out of recall since: forgot it, or undid that it was stored.
select r.idempotency_key, m.id
from heart.requests r join heart.memories m on m.agent_id = r.agent_id and m.id = r.memory_id and m.state = 'archived'
cross join lateral (
    select e.undoes from lifecycle.events e
    where e.agent_id = m.agent_id and e.memory_id = m.id and e.from_state <> 'archived' and e.to_state = 'archived'
    order by e.version_after desc limit 1) gone
where r.agent_id = %(agent_id)s and r.idempotency_key = any(%(keys)s) and (m.is_forgotten or gone.undoes is not null)

-- name: has_forgotten
select exists (select from heart.facts where agent_id = %(agent_id)s and is_forgotten),
       exists (select from heart.episodes where agent_id = %(agent_id)s and is_forgotten)

-- name: forgotten_episode
select id from heart.episodes
where agent_id = %(agent_id)s and is_forgotten and detail = %(detail)s and scope = %(scope)s
  and user_id is not distinct from %(user_id)s and project_id is not distinct from %(project_id)s
order by archived_at desc, id limit 1
