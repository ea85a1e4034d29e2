-- name: hold_agents
-- An agent that could not be held, and whether all agents of its bucket are held together: a share of each bucket keeps
-- wide nights away, a lock of its own every other night of the agent, and erasing.
with asked as materialized (
    select agent_id,
           pg_try_advisory_xact_lock_shared(
               hashtextextended('nights:' || (hashtextextended('night:' || agent_id, 0) & 1023), 0)) as has_share,
           pg_try_advisory_xact_lock(hashtextextended('night:' || agent_id, 0)) as has_own
    from unnest(%(agent_ids)s::text[]) agent_id
)
select agent_id, not has_share from asked where not (has_share and has_own) limit 1

-- name: hold_buckets
-- As `hold_agents`, with one lock for all agents of a bucket: as many as there are buckets, however many agents.
with buckets as materialized (
    select min(agent_id) as agent_id, hashtextextended('night:' || agent_id, 0) & 1023 as bucket
    from unnest(%(agent_ids)s::text[]) agent_id
    group by bucket
), asked as materialized (
    select agent_id, pg_try_advisory_xact_lock(hashtextextended('nights:' || bucket, 0)) as has_bucket from buckets
)
select agent_id, true from asked where not has_bucket limit 1

-- name: hold_no_snapshot
-- A statement in place of the last one, which keeps its snapshot as long as it is the last, and with it every row that the
-- night replaces: no page would get room for the next version of another of its rows, and each would enter all indexes.
show transaction_isolation

-- name: store_plan
insert into lifecycle.plans (hash, night, agent_ids, policy, counts, checks, run_id)
values (%(hash)s, %(night)s, %(agent_ids)s, %(policy)s, %(counts)s, %(checks)s, %(run_id)s)
on conflict (hash) do nothing

-- name: close_plan
update lifecycle.plans set state = 'applied', applied_at = coalesce(applied_at, now()) where hash = %(hash)s

-- name: is_applied
select exists (select from lifecycle.plans where hash = %(hash)s and state = 'applied')

-- name: plan_once
-- Foreign keys ask once for each row, and had each question planned anew, as our connections have it.
select set_config('plan_cache_mode', 'force_generic_plan', true)

-- name: lock_proposals
select id, state from lifecycle.proposals where agent_id = %(agent_id)s and id = any(%(ids)s) order by id for update

-- name: store_proposals
-- With what was decided about each; one that is stored already was decided before, unless it still waits.
insert into lifecycle.proposals as p (
    agent_id, night, plan_hash, id, kind, targets, read_set, changes, reason, evidence, cost_usd, state, outcome, decided_at)
select %(agent_id)s, d.night, %(plan_hash)s, d.id, d.kind, d.targets, d.read_set, d.changes, d.reason, d.evidence,
       d.cost_usd, d.state, d.outcome, now()
from jsonb_to_recordset(%(proposals)s) d (
    night date, id uuid, kind text, targets uuid[], read_set jsonb, changes jsonb, reason text, evidence jsonb,
    cost_usd numeric, state text, outcome text)
on conflict (agent_id, id) do update set state = excluded.state, outcome = excluded.outcome, decided_at = excluded.decided_at
where p.state = 'proposed'

-- name: open_contradictions
-- One row a pair, ever: the ids of those that are new.
insert into heart.contradictions (agent_id, id, memory_a, memory_b, detected_at, judgement)
select %(agent_id)s, c.id, c.memory_a, c.memory_b, c.detected_at, c.judgement
from jsonb_to_recordset(%(contradictions)s) c (
    id uuid, memory_a uuid, memory_b uuid, detected_at timestamptz, judgement jsonb)
order by c.id
on conflict do nothing
returning id

-- name: settled_sides
-- The facts of open contradictions of which a side is no longer active, by agent.
select c.agent_id, array_agg(distinct side)
from heart.contradictions c cross join unnest(array[c.memory_a, c.memory_b]) side
where c.agent_id = any(%(agent_ids)s) and c.status = 'open' and not {is_question}
group by c.agent_id order by c.agent_id

-- name: add_links
-- Where each new link leads from. It was made when its night ended, so that the next night of a backfill knows it.
insert into heart.links (agent_id, from_id, to_id, kind, weight, evidence, created_at)
select %(agent_id)s, l.id, l.to_id, l.kind, l.weight, coalesce(l.evidence, '{}'), l.created_at
from jsonb_to_recordset(%(links)s) l (
    id uuid, to_id uuid, kind text, weight real, evidence jsonb, created_at timestamptz)
order by l.id, l.to_id, l.kind
on conflict do nothing
returning from_id, to_id, kind

-- name: lock_contradictions
select id, status, resolution, note from heart.contradictions
where agent_id = %(agent_id)s and id = any(%(ids)s::uuid[]) order by id for update

-- name: close_contradictions
update heart.contradictions
set status = 'resolved', resolution = 'both_valid', resolved_at = now(), note = %(note)s, row_version = row_version + 1
where agent_id = %(agent_id)s and id = any(%(ids)s::uuid[]) and status = 'open'

-- name: remove_links
delete from heart.links l
using jsonb_to_recordset(%(links)s) gone (id uuid, to_id uuid, kind text)
where l.agent_id = %(agent_id)s and l.from_id = gone.id and l.to_id = gone.to_id and l.kind = gone.kind

-- name: mark_undone
update lifecycle.proposals set state = 'undone', outcome = %(outcome)s, decided_at = now()
where agent_id = %(agent_id)s and id = any(%(ids)s)

-- name: count_taken_back
-- How many proposals of a night were taken back since its figures were measured, beside these.
update lifecycle.health
set figures = figures || jsonb_build_object(
    'taken_back_since', coalesce((figures ->> 'taken_back_since')::integer, 0) + cardinality(%(ids)s::uuid[]))
where agent_id = %(agent_id)s and night = %(night)s

-- name: earlier_leaving
-- How many memories each agent lost in each of the 14 nights before this one; nights that changed nothing don't count.
select agent_id, array_agg(leaving order by night)::bigint[]
from (
    select agent_id, night, count(*) as leaving
    from lifecycle.events
    where actor = 'night' and from_state = 'active' and to_state <> 'active'
      and night < %(night)s and night >= %(night)s - 14
    group by agent_id, night
) nights
group by agent_id

-- name: applied_proposals
select p.agent_id, p.id, p.night, p.kind, p.reason, p.read_set, p.changes
from lifecycle.proposals p
where p.state = 'applied'
  and (%(agent_id)s::text is null or p.agent_id = %(agent_id)s)
  and (%(night)s::date is null or p.night = %(night)s)
  and (%(kind)s::text is null or p.kind = %(kind)s)
  and (%(id)s::uuid is null or p.id = %(id)s)
order by p.night desc, p.agent_id, p.decided_at desc, p.id

-- name: owners
-- The agents that have a proposal of this id, whatever became of it.
select p.agent_id from lifecycle.proposals p where p.id = %s order by p.agent_id

-- name: last_undone
-- When the last of some proposals was undone, and why.
select p.decided_at, p.outcome
from lifecycle.proposals p
where p.state = 'undone'
  and (%(agent_id)s::text is null or p.agent_id = %(agent_id)s)
  and (%(night)s::date is null or p.night = %(night)s)
  and (%(kind)s::text is null or p.kind = %(kind)s)
  and (%(id)s::uuid is null or p.id = %(id)s)
order by p.decided_at desc limit 1

-- name: proposal_events
select e.id, e.memory_kind, e.memory_id, e.action, e.from_state, e.to_state, e.version_before, e.version_after, e.before,
       e.after, e.actor, e.reason, e.effective_at, e.recorded_at, e.night, e.run_id, e.proposal_id, e.undoes
from lifecycle.events e
where e.agent_id = %(agent_id)s and e.proposal_id = any(%(ids)s) and e.undoes is null
  and not exists (select from lifecycle.events u where u.undoes = e.id)
order by e.id desc

-- name: find_agents
select id from heart.agents where (%(agent_ids)s::text[] = '{}' or id = any(%(agent_ids)s)) order by id

-- name: costs_of_night
select agent_id, sum(cost_usd)::double precision
from heart.llm_requests
where night = %(night)s and agent_id is not null
group by agent_id

-- name: applied_since
-- Whether an earlier night changed something after a moment.
select exists (
    select from lifecycle.events where actor = 'night' and night < %(night)s and recorded_at > %(moment)s
)

-- name: read_policy
select policy from lifecycle.agent_policies where agent_id = %(agent_id)s

-- name: store_policy
insert into lifecycle.agent_policies (agent_id, policy) values (%(agent_id)s, %(policy)s)
on conflict (agent_id) do update set policy = excluded.policy, updated_at = now()
