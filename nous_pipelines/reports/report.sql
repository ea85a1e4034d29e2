-- name: outlines
-- As much of each decided proposal as counting needs; the largest first, among equals what is least alike.
select p.id::text, p.agent_id, p.kind, p.state, cardinality(p.targets) as size,
       (select count(*) from jsonb_to_recordset(p.changes) c(kind text, id uuid, set jsonb)
        where c.kind = 'fact' and c.set ->> 'state' <> 'active' and not c.id = any(i.ids)) as leaving
from lifecycle.proposals p
cross join lateral (  -- of what it changed: what was not active before
    select coalesce(array_agg(e.memory_id), '{}') as ids from lifecycle.events e
    where e.agent_id = p.agent_id and e.proposal_id = p.id and e.undoes is null and e.from_state <> 'active'
) i
where p.night = %(night)s and (%(agent_ids)s::text[] = '{}' or p.agent_id = any(%(agent_ids)s))
order by cardinality(p.targets) desc, (p.evidence #>> '{pairs,0,similarity}')::float8 nulls last, p.id

-- name: decided
-- Everything of some proposals, with what the memories they changed were before.
select p.id::text, p.agent_id, p.kind, p.targets::text[] as targets, p.changes, p.reason, p.outcome, p.state,
       coalesce((select jsonb_object_agg(e.memory_id, e.before - '{detail,summary,embedding,context_embedding}'::text[])
                 from lifecycle.events e
                 where e.agent_id = p.agent_id and e.proposal_id = p.id and e.undoes is null), '{}') as before
from lifecycle.proposals p
where p.agent_id = any(%(agent_ids)s) and p.id = any(%(ids)s)

-- name: replaced_together
-- The facts of each replacement of a night that holds, with the proposal that made it.
select unnest(targets)::text, id::text from lifecycle.proposals
where night = %(night)s and kind = 'supersede' and state = 'applied'

-- name: said
-- What was said for the facts of some proposals and for those merged into them, and how often in which words.
select w.proposal_id, s.content as text, count(*)::integer as times
from (
    select distinct u.agent_id, u.proposal_id, m.id
    from unnest(%(agent_ids)s::text[], %(proposal_ids)s::text[], %(ids)s::uuid[]) u(agent_id, proposal_id, id)
    cross join lateral heart.merged_into(u.agent_id, u.id) m(id)
) w
join heart.statements s on s.agent_id = w.agent_id and s.fact_id = w.id
where s.taken_back_at is null
group by w.proposal_id, s.content
order by min(s.said_at), s.content

-- name: told
-- How memories read, and what of them a night may change, as it is now.
with wanted as (
    select distinct agent_id, id from unnest(%(agent_ids)s::text[], %(ids)s::uuid[]) w(agent_id, id)
)
select f.id::text, 'fact' as kind, f.content as text,
       jsonb_build_object('state', f.state, 'rank_weight', f.rank_weight, 'scope', f.scope,
                          'confirmation_count', f.confirmation_count) as now
from wanted join heart.facts f using (agent_id, id)
union all
select e.id::text, 'episode', coalesce(e.title, e.index_word, left(coalesce(e.compressed, e.summary, e.detail), 120), 'untitled'),
       jsonb_build_object('state', e.state, 'rank_weight', e.rank_weight, 'scope', e.scope,
                          'compression_tier', e.compression_tier)
from wanted join heart.episodes e using (agent_id, id)
union all
select p.id::text, 'procedure', p.name,
       jsonb_build_object('state', p.state, 'rank_weight', p.rank_weight, 'scope', p.scope)
from wanted join heart.procedures p using (agent_id, id)
union all
select c.id::text, 'censor', c.trigger || ': ' || c.reason,
       jsonb_build_object('state', c.state, 'rank_weight', c.rank_weight, 'scope', c.scope, 'severity', c.severity)
from wanted join heart.censors c using (agent_id, id)
