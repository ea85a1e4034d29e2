-- name: end_attempts
update heart.completions
set finished_at = now(), last_error = %(note)s
where agent_id = %(agent_id)s and episode_id = %(episode_id)s and finished_at is null

-- name: queue_again
-- Its row may be gone: a purge deletes what ended long ago.
insert into heart.completions (agent_id, episode_id) values (%(agent_id)s, %(episode_id)s)
on conflict (agent_id, episode_id) do update
set due_at = now(), attempt_count = 0, outage_count = 0, draft = null, last_error = null, finished_at = null
