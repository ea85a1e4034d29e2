-- name: read_versions
select current_setting('server_version'), (select extversion from pg_extension where extname = 'vector')

-- name: set_aside
-- Closed episodes of any agent that failed too often and that nobody tries any more, the latest first, and how many there are.
select agent_id, id, completion_note, count(*) over ()
from heart.episodes
where state = 'closed' and completed_at is null and completion_note is not null
order by ended_at desc, id
limit %s
