-- Metrics for Prometheus over all agents: counts, ages and sums, without names.

-- name: figures
-- One row of current figures. The age of waiting work counts from when it was due, at the earliest from when it came here.
select (select count(*) from heart.agents)::float8 as agents,
       (select extract(epoch from (max(night) + 1)::timestamp at time zone 'UTC') from lifecycle.plans where state = 'applied')::float8 as last_night,
       (select extract(epoch from max(applied_at)) from lifecycle.plans where state = 'applied')::float8 as last_night_applied,
       (select count(*) from heart.completions where finished_at is null)::float8 as episodes_waiting,
       (select count(*) from heart.completions where finished_at is null and last_error is not null)::float8 as episodes_failing,
       (select coalesce(extract(epoch from now() - min(greatest(due_at, created_at))), 0) from heart.completions
        where finished_at is null and due_at <= now())::float8 as episodes_oldest,
       (select count(*) from heart.contradictions c where {is_question})::float8 as contradictions_open,
       (select count(*) from heart.outbox_cursors where failed_count > 0)::float8 as consumers_failing,
       (select count(*) from heart.webhooks)::float8 as webhooks,
       pg_database_size(current_database())::float8 as database_bytes

-- name: memories
-- Number of memories in each state, as of each agent's last night.
select 'nous_memories', array[f.key], sum(f.value::float8)
from (select distinct on (agent_id) figures from lifecycle.health order by agent_id, night desc) last
cross join jsonb_each_text(last.figures) f(key, value)
where f.key = any(%(keys)s)
group by f.key order by f.key

-- name: proposals
-- Proposals of the last applied night, by kind and state.
select 'nous_night_proposals', array[kind, state], count(*)::float8 from lifecycle.proposals
where night = (select max(night) from lifecycle.plans where state = 'applied')
group by kind, state order by kind, state

-- name: requests
-- Requests to language models, with tokens and cost.
select found.name, array[purpose, model] || found.labels, found.value
from (select purpose, model, sum(request_count)::float8 as requests,
             sum(case when state = 'failed' then request_count else failed_count end)::float8 as failures,
             sum(input_tokens)::float8 as read, sum(output_tokens)::float8 as written, sum(cost_usd)::float8 as cost
      from heart.llm_requests group by purpose, model) sums
cross join lateral (values ('nous_llm_requests', array[]::text[], requests), ('nous_llm_failures', array[]::text[], failures),
                           ('nous_llm_tokens', array['in'], read), ('nous_llm_tokens', array['out'], written),
                           ('nous_llm_cost_usd', array[]::text[], cost)) found(name, labels, value)
order by purpose, model
