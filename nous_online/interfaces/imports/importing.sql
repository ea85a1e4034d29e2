-- name: find_replayed
-- The recall an earlier run replayed for this record; the moment is what the index leads by.
select id, result_ids from heart.recalls
where agent_id = %(agent_id)s and recalled_at = %(at)s and session_id = %(session_id)s
