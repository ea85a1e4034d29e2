-- name: record_quiet_nights
-- Each agent stands as after the night before; what a run measured there already stays.
insert into lifecycle.health as h (agent_id, night, measured_at, figures)
select b.agent_id, q.night, %(looked_at)s, b.figures
from lifecycle.health b cross join unnest(%(nights)s::date[]) q(night)
where b.night = %(before)s and b.agent_id = any(%(agent_ids)s)
on conflict (agent_id, night) do update set measured_at = excluded.measured_at
