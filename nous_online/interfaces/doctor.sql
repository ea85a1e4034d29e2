-- name: read_versions
select current_setting('server_version'), (select extversion from pg_extension where extname = 'vector')

-- name: set_aside
-- Closed episodes of all agents that failed too often and are not retried, the latest first, each with the number of all.
select agent_id, id, completion_note, count(*) over ()
from heart.episodes
where state = 'closed' and completed_at is null and completion_note is not null
order by ended_at desc, id
limit %s

-- name: spaces_of_agents
-- The embedding spaces that agents live in, each with the first of these by name and the number of all.
select s.id, s.model, s.weights_sha256, s.dimensions, (array_agg(a.id order by a.id))[:%s], count(*)
from heart.agents a join heart.embedding_spaces s on s.id = a.embedding_space_id
group by s.id
order by s.id
