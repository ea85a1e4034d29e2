-- Queries of the system page beyond the verbs.

-- name: costs_of_agent
-- Cost of language models for an agent, by month, purpose and model, the latest month first.
select to_char(coalesce(night::timestamp, created_at at time zone 'UTC'), 'YYYY-MM') as month, purpose, model,
       sum(request_count)::int as requests, sum(case when state = 'failed' then request_count else failed_count end)::int as failed,
       sum(input_tokens)::int8 as input_tokens, sum(output_tokens)::int8 as output_tokens, sum(cost_usd)::float8 as usd
from heart.llm_requests where agent_id = %(agent_id)s
group by 1, 2, 3 order by 1 desc, usd desc, 2, 3 limit 60

-- name: agents
-- All agents with their memories as of the last count of words, the largest first.
select a.id, coalesce(c.memories, 0) as memories, l.night
from heart.agents a
left join lateral (select sum(memory_count)::int as memories from heart.corpus_stats s where s.agent_id = a.id) c on true
left join lateral (select max(night) as night from lifecycle.health h where h.agent_id = a.id) l on true
order by memories desc, a.id limit %(limit)s

-- name: latest_change
-- Changes whenever anything did: the ids of the last event in the outbox and of the last change of a memory.
select (select o.id from heart.outbox o where o.agent_id = %(agent_id)s order by o.written_xid desc, o.id desc limit 1),
       (select e.id from lifecycle.events e where e.agent_id = %(agent_id)s order by e.effective_at desc, e.id desc limit 1)
