-- name: known_agents
select id from heart.agents order by id
