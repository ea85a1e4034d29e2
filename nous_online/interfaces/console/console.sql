-- Queries of the console beyond the verbs. Each names the agent and has a limit.

-- name: links_of
-- Links from or to a memory, the strongest first.
select case when from_id = %(id)s then to_id else from_id end as id, kind, max(weight) as weight
from heart.links where agent_id = %(agent_id)s and (from_id = %(id)s or to_id = %(id)s)
group by 1, 2 order by weight desc, id limit 50

-- name: uses_of
-- How often a memory was found, cited and ignored: zeros for one that was never used.
select coalesce(max(retrieved_count), 0) as retrieved_count, coalesce(max(cited_count), 0) as cited_count,
       coalesce(max(ignored_count), 0) as ignored_count, max(last_used_at) as last_used_at
from heart.usage where agent_id = %(agent_id)s and memory_id = %(id)s

-- name: open_contradictions
-- Open contradictions, the oldest first, each with the number of all.
select id, memory_a, memory_b, detected_at, judgement ->> 'reason' as reason, proposed, count(*) over () as waiting
from heart.contradictions c where agent_id = %(agent_id)s and {is_question}
order by detected_at, id limit %(limit)s

-- name: contradictions_of
-- The contradictions a fact is or was in, the latest first.
select id, memory_a, memory_b, detected_at, status, resolution, note, {is_question} as is_question
from heart.contradictions c where agent_id = %(agent_id)s and %(id)s in (memory_a, memory_b)
order by detected_at desc, id limit 20

-- name: list_nights
-- Nights with figures or proposals of this agent, the latest first.
with nights as (
    select night from lifecycle.health where agent_id = %(agent_id)s
    union
    select p.night from lifecycle.plans p
    where exists (select from lifecycle.proposals x where x.night = p.night and x.agent_id = %(agent_id)s)
    order by night desc limit %(limit)s
)
select n.night, coalesce(h.figures, '{}') as figures,
       (select coalesce(jsonb_object_agg(state, count), '{}') from (
            select state, count(*) from lifecycle.proposals
            where night = n.night and agent_id = %(agent_id)s group by state) s) as states
from nights n left join lifecycle.health h on h.agent_id = %(agent_id)s and h.night = n.night
order by n.night desc

-- name: night_figures
select figures from lifecycle.health where agent_id = %(agent_id)s and night = %(night)s

-- name: night_kinds
-- Number of a night's proposals for this agent, by kind and state.
select kind, state, count(*) as count from lifecycle.proposals
where agent_id = %(agent_id)s and night = %(night)s group by kind, state order by kind, state

-- name: night_proposals
-- Proposals of a night, from where the page before ended.
select id, kind, targets, reason, state, outcome from lifecycle.proposals
where agent_id = %(agent_id)s and night = %(night)s and (%(kind)s::text is null or kind = %(kind)s)
  and (kind, id) > (coalesce(%(after_kind)s::text, ''), coalesce(%(after_id)s::uuid, '00000000-0000-0000-0000-000000000000'))
order by kind, id limit %(limit)s

-- name: costs_of_agent
-- Cost of language models for an agent, by month, purpose and model, the latest month first.
select to_char(coalesce(night::timestamp, created_at at time zone 'UTC'), 'YYYY-MM') as month, purpose, model,
       sum(request_count)::int as requests, sum(case when state = 'failed' then request_count else failed_count end)::int as failed,
       sum(input_tokens)::int8 as input_tokens, sum(output_tokens)::int8 as output_tokens, sum(cost_usd)::float8 as usd
from heart.llm_requests where agent_id = %(agent_id)s
group by 1, 2, 3 order by 1 desc, usd desc, 2, 3 limit 60

-- name: agents
-- All agents with their memories as of the last count of words (null before the first), the largest first.
select a.id, c.memories, l.night
from heart.agents a
left join lateral (select sum(memory_count)::int as memories from heart.corpus_stats s where s.agent_id = a.id) c on true
left join lateral (select max(night) as night from lifecycle.health h where h.agent_id = a.id) l on true
order by memories desc nulls last, a.id limit %(limit)s

-- name: latest_change
-- Changes whenever anything did: the ids of the last event in the outbox and of the last change of a memory.
select (select o.id from heart.outbox o where o.agent_id = %(agent_id)s order by o.written_xid desc, o.id desc limit 1),
       (select e.id from lifecycle.events e where e.agent_id = %(agent_id)s order by e.effective_at desc, e.id desc limit 1)
