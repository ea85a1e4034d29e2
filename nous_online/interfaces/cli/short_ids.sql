-- name: memory
select id, concat(kind, ': ', full_text) from heart.memories
where agent_id = %(agent_id)s and id between %(first)s and %(last)s
order by id limit %(limit)s

-- name: statement
select id, content from heart.statements
where agent_id = %(agent_id)s and id between %(first)s and %(last)s
order by id limit %(limit)s

-- name: recall
select id, query from heart.recalls
where agent_id = %(agent_id)s and id between %(first)s and %(last)s
order by id limit %(limit)s

-- name: question
-- A contradiction, or a fact that perhaps replaces others.
select id, case status when 'open' then 'contradiction' else 'resolved contradiction' end from heart.contradictions
where agent_id = %(agent_id)s and id between %(first)s and %(last)s
union all
select id, concat('doubt: ', content) from heart.facts
where agent_id = %(agent_id)s and id between %(first)s and %(last)s and perhaps_replaces <> '{}'
order by id limit %(limit)s

-- name: change
-- What can be undone by its id: a memory, or the ruling on a contradiction.
select id, concat(kind, ': ', full_text) from heart.memories
where agent_id = %(agent_id)s and id between %(first)s and %(last)s
union all
select id, 'contradiction' from heart.contradictions
where agent_id = %(agent_id)s and id between %(first)s and %(last)s
order by id limit %(limit)s

-- name: proposal
-- Of all agents where none is named, as the undo of nights is.
select id, concat_ws(' ', kind, 'of the night of', night) from lifecycle.proposals
where agent_id = coalesce(%(agent_id)s, agent_id) and id between %(first)s and %(last)s
order by id limit %(limit)s
