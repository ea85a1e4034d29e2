-- name: costs
-- What language models cost, summed over all but the dimensions of `by`, which are null where they are summed over.
-- A request outside of a night counts for the day it was made on. What is on its way costs nothing yet; its estimate
-- says what it will cost at the most.
select case when 'night' = any(%(by)s) then day end as night,
       case when 'purpose' = any(%(by)s) then purpose end as purpose,
       case when 'model' = any(%(by)s) then model end as model,
       case when 'agent' = any(%(by)s) then agent_id end as agent_id,
       case when 'way' = any(%(by)s) then way end as way,
       sum(request_count)::int as requests,
       sum(case when state = 'failed' then request_count else failed_count end)::int as failed,
       coalesce(sum(request_count) filter (where is_under_way), 0)::int as under_way,
       sum(input_tokens)::int8 as input_tokens,
       sum(output_tokens)::int8 as output_tokens,
       sum(cache_read_tokens)::int8 as cache_read_tokens,
       sum(cache_write_tokens)::int8 as cache_write_tokens,
       sum(cost_usd)::float8 as usd,
       coalesce(sum(estimated_usd) filter (where is_under_way), 0)::float8 as expected_usd
from (
    select *, coalesce(night, (created_at at time zone 'UTC')::date) as day,
           case when is_batch then 'batch' else 'online' end as way,
           state in ('intent', 'submitted', 'ended') as is_under_way
    from heart.llm_requests
) r
where (%(first)s::date is null or day >= %(first)s) and (%(last)s::date is null or day <= %(last)s)
  and (%(agent_ids)s::text[] = '{}' or agent_id = any(%(agent_ids)s))
  and (night is not null or not %(nights_only)s)
group by 1, 2, 3, 4, 5
order by 1, usd desc, expected_usd desc, 2, 3, 4, 5
