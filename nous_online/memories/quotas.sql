-- name: measure_agent
-- How many memories an agent has in any state, and the bytes of their texts; sizes are read, the texts are not.
select count(*), coalesce(sum(bytes), 0) + (
    select coalesce(sum(coalesce(octet_length(detail), 0) + coalesce(octet_length(summary), 0)), 0) from heart.cold_texts where agent_id = %(agent_id)s)
from (
    select octet_length(content) + coalesce(octet_length(context), 0) as bytes from heart.facts where agent_id = %(agent_id)s
    union all
    select coalesce(octet_length(detail), 0) from heart.episodes where agent_id = %(agent_id)s
    union all
    select 0 from heart.procedures where agent_id = %(agent_id)s
    union all
    select 0 from heart.censors where agent_id = %(agent_id)s
) memory
