-- name: nights_to_run
-- The nights some agents, or all, have something for and were not measured in: each agent from the first thing it remembers.
with begun as (
    select agent_id, min(moment) as first_at
    from (
        select agent_id, min(learned_at) as moment from heart.facts group by 1
        union all select agent_id, min(coalesce(ended_at, started_at)) from heart.episodes group by 1
        union all select agent_id, min(learned_at) from heart.procedures group by 1
        union all select agent_id, min(learned_at) from heart.censors group by 1
    ) moments
    where %(agent_ids)s::text[] = '{}' or agent_id = any(%(agent_ids)s)
    group by agent_id
)
select wanted.night::date
from begun b
cross join lateral generate_series(
    greatest((b.first_at at time zone 'UTC')::date, %(first_night)s::date), %(last_night)s::date, interval '1 day') wanted (night)
where not exists (select from lifecycle.health h where h.agent_id = b.agent_id and h.night = wanted.night::date)
group by 1
order by 1
