-- name: sources
select id, source from heart.facts where agent_id = %(agent_id)s
