-- name: history
-- Every change of one memory, the latest first.
select id, memory_kind, memory_id, action, from_state, to_state, version_before, version_after, before, after, actor,
       reason, effective_at, recorded_at, night, run_id, proposal_id, undoes
from lifecycle.events
where agent_id = %(agent_id)s and memory_id = %(memory_id)s
order by version_after desc

-- name: memories_as_json
-- In id order, as everybody takes them.
select id, row_version, to_jsonb(f) - 'embedding' - 'context_embedding' as columns
from {table} f where agent_id = %(agent_id)s and id = any(%(ids)s) order by id for no key update

-- name: ruled_with
-- What a ruling that stands changed on both sides, given one of its events. A side that it made active again stays so where
-- the other one is undone, and one that it merged into a third fact was merged by itself.
select e.id, e.memory_kind, e.memory_id, e.action, e.from_state, e.to_state, e.version_before, e.version_after, e.before,
       e.after, e.actor, e.reason, e.effective_at, e.recorded_at, e.night, e.run_id, e.proposal_id, e.undoes
from lifecycle.events own
join lifecycle.events ruled on ruled.agent_id = own.agent_id and ruled.memory_id = own.memory_id
    and ruled.recorded_at = own.recorded_at and ruled.action = 'contradiction_resolved'
join heart.contradictions c on c.agent_id = own.agent_id and own.memory_id in (c.memory_a, c.memory_b)
    and c.status = 'resolved' and c.resolved_at = ruled.effective_at and coalesce(ruled.after ->> 'contradiction' = c.id::text, true)
join lifecycle.events e on e.agent_id = own.agent_id and e.memory_id in (c.memory_a, c.memory_b)
    and e.recorded_at = own.recorded_at and e.action in ('contradiction_resolved', 'superseded', 'absorbed')
where own.agent_id = %(agent_id)s and own.id = %(event_id)s
  and coalesce(e.after ->> 'superseded_by' in (c.memory_a::text, c.memory_b::text), true)
  and not exists (select from lifecycle.events u where u.agent_id = e.agent_id and u.undoes = e.id)

-- name: inherited_with
-- The words that facts inherited in the transactions of these supersessions, unless a night made them or they are undone.
select e.id, e.memory_kind, e.memory_id, e.action, e.from_state, e.to_state, e.version_before, e.version_after, e.before,
       e.after, e.actor, e.reason, e.effective_at, e.recorded_at, e.night, e.run_id, e.proposal_id, e.undoes
from lifecycle.events own
join lifecycle.events e on e.agent_id = own.agent_id and e.memory_id::text = own.after ->> 'superseded_by'
    and e.recorded_at = own.recorded_at and e.action = 'inherited_words' and e.proposal_id is null
where own.agent_id = %(agent_id)s and own.id = any(%(ids)s) and own.after ->> 'succession' = 'replaced'
  and not exists (select from lifecycle.events u where u.agent_id = e.agent_id and u.undoes = e.id)
order by e.id desc

-- name: retired_for
select id from heart.facts
where agent_id = %(agent_id)s and superseded_by = %(memory_id)s and state = 'superseded'
order by id for update

-- name: cold_texts
select memory_id, tier, to_jsonb(c) from heart.cold_texts c where agent_id = %(agent_id)s and memory_id = any(%(ids)s)

-- name: contradiction_ruled
-- Whether a ruling on a contradiction is proposed, and which of its facts left recall.
select proposed is not null,
       array(select f.id from heart.facts f
             where f.agent_id = c.agent_id and f.id in (c.memory_a, c.memory_b) and f.state <> 'active' order by f.id)
from heart.contradictions c where agent_id = %(agent_id)s and id = %(id)s

-- name: rulings_on
-- What the ruling on a contradiction that stands left on its sides, that of the fact trusted most first.
select e.id, e.memory_kind, e.memory_id, e.action, e.from_state, e.to_state, e.version_before, e.version_after, e.before,
       e.after, e.actor, e.reason, e.effective_at, e.recorded_at, e.night, e.run_id, e.proposal_id, e.undoes
from heart.contradictions c
join heart.facts f on f.agent_id = c.agent_id and f.id in (c.memory_a, c.memory_b)
join lifecycle.events e on e.agent_id = c.agent_id and e.memory_id = f.id and e.action = 'contradiction_resolved'
    and e.effective_at = c.resolved_at and coalesce(e.after ->> 'contradiction' = c.id::text, true)
where c.agent_id = %(agent_id)s and c.id = %(id)s and c.status = 'resolved'
  and not exists (select from lifecycle.events u where u.agent_id = e.agent_id and u.undoes = e.id)
order by f.is_pinned desc, f.trust desc, e.id
