-- name: first_memory
-- The day of the first thing that any agent remembers. Of each agent's facts the index knows the first.
select (least(
    (select min(first) from heart.agents a
         cross join lateral (select min(learned_at) as first from heart.facts where agent_id = a.id) f),
    (select min(coalesce(ended_at, started_at)) from heart.episodes),
    (select min(learned_at) from heart.procedures),
    (select min(learned_at) from heart.censors)) at time zone 'UTC')::date

-- name: nights_to_run
-- The nights some agents, or all, have something for and were not measured in, or of whose day a memory came since: each
-- agent from the first thing it remembers.
with memories as (
    select agent_id, learned_at as moment, created_at from heart.facts
    union all select agent_id, coalesce(ended_at, started_at), created_at from heart.episodes
    union all select agent_id, learned_at, created_at from heart.procedures
    union all select agent_id, learned_at, created_at from heart.censors
),
days as (
    select agent_id, (moment at time zone 'UTC')::date as day, max(created_at) as came_at
    from memories
    where %(agent_ids)s::text[] = '{}' or agent_id = any(%(agent_ids)s)
    group by 1, 2
),
begun as (select agent_id, min(day) as day from days group by 1)
select wanted.night::date
from begun b
cross join lateral generate_series(
    greatest(b.day, %(first_night)s::date), %(last_night)s::date, interval '1 day') wanted (night)
left join days d on d.agent_id = b.agent_id and d.day = wanted.night::date
where not exists (
    select from lifecycle.health h
    where h.agent_id = b.agent_id and h.night = wanted.night::date and (d.came_at is null or d.came_at <= h.measured_at)
)
group by 1
order by 1

-- name: night_record
-- Of a night whose files are not here: whether it was applied, whether it was measured, and the last one applied before.
select exists (select from lifecycle.plans where night = %(night)s and state = 'applied'),
       exists (select from lifecycle.health where night = %(night)s),
       (select max(night) from lifecycle.plans where night < %(night)s)
