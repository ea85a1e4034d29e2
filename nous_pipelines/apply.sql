-- name: hold_night
-- Held by a connection of its own while the night's small transactions run; gone with it, whatever happens.
select pg_try_advisory_xact_lock(hashtextextended('night:' || %(agent_id)s, 0))

-- name: store_plan
insert into lifecycle.plans (hash, night, agent_ids, policy, counts, checks, run_id)
values (%(hash)s, %(night)s, %(agent_ids)s, %(policy)s, %(counts)s, %(checks)s, %(run_id)s)
on conflict (hash) do nothing

-- name: close_plan
update lifecycle.plans set state = 'applied', applied_at = coalesce(applied_at, now()) where hash = %(hash)s

-- name: store_proposal
insert into lifecycle.proposals (id, agent_id, night, plan_hash, kind, targets, read_set, changes, reason, evidence, cost_usd)
values (%(id)s, %(agent_id)s, %(night)s, %(plan_hash)s, %(kind)s, %(targets)s, %(read_set)s, %(changes)s, %(reason)s,
        %(evidence)s, %(cost_usd)s)
on conflict (agent_id, id) do nothing

-- name: lock_proposal
select state from lifecycle.proposals where agent_id = %(agent_id)s and id = %(id)s for update

-- name: decide_proposal
update lifecycle.proposals set state = %(state)s, outcome = %(outcome)s, decided_at = now()
where agent_id = %(agent_id)s and id = %(id)s

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
select p.agent_id, p.id, p.night, p.kind, p.reason, p.changes
from lifecycle.proposals p
where p.state = 'applied'
  and (%(agent_id)s::text is null or p.agent_id = %(agent_id)s)
  and (%(night)s::date is null or p.night = %(night)s)
  and (%(kind)s::text is null or p.kind = %(kind)s)
  and (%(id)s::uuid is null or p.id = %(id)s)
order by p.night desc, p.decided_at desc, p.id

-- name: proposal_events
select e.id, e.memory_kind, e.memory_id, e.action, e.from_state, e.to_state, e.version_before, e.version_after, e.before,
       e.after, e.actor, e.reason, e.effective_at, e.recorded_at, e.night, e.run_id, e.proposal_id, e.undoes
from lifecycle.events e
where e.agent_id = %(agent_id)s and e.proposal_id = %(id)s and e.undoes is null
  and not exists (select from lifecycle.events u where u.undoes = e.id)
order by e.id desc

-- name: find_agents
select id from heart.agents where (%(agent_ids)s::text[] = '{}' or id = any(%(agent_ids)s)) order by id

-- name: applied_since
-- Whether an earlier night changed something after a moment.
select exists (
    select from lifecycle.events where actor = 'night' and night < %(night)s and recorded_at > %(moment)s
)

-- name: proposals_of_night
select p.id::text, p.agent_id, p.kind, p.targets::text[] as targets, p.reason, p.evidence, p.state,
       (select jsonb_object_agg(f.id, f.content) from heart.facts f
        where f.agent_id = p.agent_id and f.id = any(p.targets)) as texts
from lifecycle.proposals p
where p.night = %(night)s
order by p.agent_id, p.id
