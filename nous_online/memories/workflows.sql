-- name: recorded_steps
-- The first lines that record steps, of the closed episodes that have any, the latest first; a detail in cold storage
-- counts too.
select e.id, e.title, e.outcome, e.trust, lines.told
from heart.episodes e
left join heart.cold_texts c on c.agent_id = e.agent_id and c.memory_id = e.id and c.tier = 'raw'
cross join lateral (
    select (array_agg(found.line[1] order by place))[1:%(steps)s] as told
    from regexp_matches(coalesce(e.detail, c.detail), '^Step: [^\n]+', 'gn') with ordinality found(line, place)
) lines
where e.agent_id = %(agent_id)s and e.state in ('closed', 'archived') and e.scope = 'private' and lines.told is not null
  and e.user_id is not distinct from %(user_id)s and e.project_id is not distinct from %(project_id)s
order by e.ended_at desc, e.id
limit %(limit)s

-- name: workflows_of
-- The workflows there are, with their steps, to tell what is known already.
select id, name, steps from heart.procedures
where agent_id = %(agent_id)s and kind = 'workflow' and state <> 'archived' and scope = 'private'
  and user_id is not distinct from %(user_id)s and project_id is not distinct from %(project_id)s
order by learned_at, id

-- name: taken_names
select name from heart.procedures where agent_id = %(agent_id)s and state <> 'archived' and name = any(%(names)s)
