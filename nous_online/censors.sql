-- name: nearest_censors
-- Active censors of the same reach, the nearest in meaning first; all are compared, they are few.
select {columns}, 1 - (embedding <=> %(embedding)s) as similarity
from heart.censors
where agent_id = %(agent_id)s and state = 'active' and is_literal = %(is_literal)s
  and embedding_space_id = %(space_id)s and coalesce(expires_at > %(at)s, true)
  and scope = %(scope)s and user_id is not distinct from %(user_id)s and project_id is not distinct from %(project_id)s
order by lower(trigger) = lower(%(trigger)s) desc, embedding <=> %(embedding)s, id
limit %(limit)s
