-- name: facts
select coalesce(subject, 'Other') as heading,
       array[content || ' (' || to_char(learned_at, 'YYYY-MM-DD') || case when state = 'active' then '' else ', ' || state end || ')'] as lines
from heart.facts where agent_id = %(agent_id)s and not is_forgotten
order by subject nulls last, learned_at, id

-- name: episodes
select to_char(started_at, 'YYYY-MM-DD') || ' ' || coalesce(title, 'Untitled') as heading,
       array[coalesce(summary, compressed, detail, index_word, '')] as lines
from heart.episodes where agent_id = %(agent_id)s and not is_forgotten
order by started_at, id

-- name: procedures
select name as heading,
       goals || core_patterns || core_tools || core_concepts || implementation_notes
       || array(select place || '. ' || case jsonb_typeof(step)
                                           when 'object' then concat_ws(': ', step ->> 'name', step ->> 'detail')
                                           else step #>> '{}' end
                from jsonb_array_elements(case jsonb_typeof(steps) when 'array' then steps else '[]' end)
                     with ordinality listed(step, place)
                order by place)
       || array(select concat_ws(': ', part, filling)
                from jsonb_each_text(case jsonb_typeof(template) when 'object' then template else '{}' end)
                     as filled(part, filling)
                order by part) as lines
from heart.procedures where agent_id = %(agent_id)s and state <> 'archived'
order by name

-- name: censors
select initcap(severity) as heading, array[concat_ws(': ', trigger, nullif(reason, trigger))] as lines
from heart.censors where agent_id = %(agent_id)s and state = 'active'
order by severity, learned_at, id

-- name: decisions
select to_char(decided_at, 'YYYY-MM-DD') || ' ' || title as heading,
       array[concat_ws(' ', rationale, '(' || status || ')', outcome)] as lines
from brain.decisions where agent_id = %(agent_id)s
order by decided_at, id
