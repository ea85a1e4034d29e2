-- name: count_memories
select kind, state, count(*) from heart.memories where agent_id = %(agent_id)s group by kind, state order by kind, state

-- name: count_recalls
select count(*) from heart.recalls where agent_id = %(agent_id)s
