-- name: nearest_censors
-- Active censors of the same reach, the nearest in meaning first; all are compared, they are few.
select {columns}, 1 - (embedding <=> %(embedding)s) as similarity
from heart.censors
where agent_id = %(agent_id)s and state = 'active' and is_literal = %(is_literal)s
  and embedding_space_id = %(space_id)s and coalesce(expires_at > %(at)s, true)
  and scope = %(scope)s and user_id is not distinct from %(user_id)s and project_id is not distinct from %(project_id)s
order by lower(trigger) = lower(%(trigger)s) desc, embedding <=> %(embedding)s, id
limit %(limit)s

-- name: prepare_check
-- The search is planned once a connection, for any agent: planning it takes a fifth as long as running it.
select set_config('plan_cache_mode', 'force_generic_plan', true), set_config('enable_seqscan', 'off', true)

-- name: find_suspects
-- One round trip, every active censor of the agent: those that must occur as written, and the nearest in meaning to a part
-- of the action. No vector index: it would answer approximately, and a thousand cosines take a millisecond.
with compared as materialized (
    select f.id, f.trigger, f.is_literal, f.severity, f.trust, nullif(f.exceptions, '[]') as exceptions,
           part.number::integer as part, 1 - (f.embedding <=> part.embedding) as similarity
    from heart.censors f
    cross join unnest(%(embeddings)s::vector[]) with ordinality part(embedding, number)
    where f.agent_id = %(agent_id)s and f.state = 'active' and coalesce(f.expires_at > %(at)s, true) and {in_reach}
      and case when f.is_literal then part.number = 1
               else f.embedding_space_id = %(space_id)s and 1 - (f.embedding <=> part.embedding) >= %(floor)s end
)
select * from compared where is_literal
union all
(select * from compared where not is_literal order by similarity desc, id desc, part limit %(most)s)

-- name: read_censors
select {columns} from heart.censors where agent_id = %(agent_id)s and id = any(%(ids)s)
order by id

-- name: list_censors
-- The firmest first, then those that fired most.
select {columns} from heart.censors
where agent_id = %(agent_id)s and state = %(state)s
order by array_position(array['absolute', 'block', 'warn'], severity), activation_count desc, learned_at, id

-- name: activations_of
-- The activations of a censor, the latest first, each as its event keeps it; those of before 0016 say nothing of themselves.
select after -> 'last_activation'
from lifecycle.events
where agent_id = %(agent_id)s and memory_id = %(censor_id)s and after ? 'last_activation'
  and (%(activation_id)s::text is null or after -> 'last_activation' ->> 'id' = %(activation_id)s)
order by version_after desc
limit %(limit)s
