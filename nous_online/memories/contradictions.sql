-- name: open_contradiction
-- One row a pair, ever: what was resolved stays resolved until one of the two changes its words, and then it is another fact.
insert into heart.contradictions (agent_id, memory_a, memory_b, detected_at, judgement)
values (%(agent_id)s, least(%(one)s::uuid, %(other)s::uuid), greatest(%(one)s::uuid, %(other)s::uuid), %(at)s, %(judgement)s)
on conflict (agent_id, memory_a, memory_b) do nothing
returning id

-- name: is_question
-- An open contradiction asks something while both facts are active; it asks again once one that was retired is back.
(c.status = 'open' and not exists (
    select from heart.facts side
    where side.agent_id = c.agent_id and side.id in (c.memory_a, c.memory_b) and side.state <> 'active'))

-- name: find_contradictions
select c.id, c.memory_a, c.memory_b, c.detected_at, c.status, c.resolution, c.resolved_at, c.note, c.judgement, c.proposed
from heart.contradictions c
where agent_id = %(agent_id)s and coalesce(status = %(status)s, true) and (status = 'resolved' or {is_question})
order by detected_at, id

-- name: contradictions_in_reach
-- Those of facts that the visitor could recall, both of them, and the one they are to be merged into if there is one: the
-- open ones, or the one of an id.
select c.id, c.memory_a, c.memory_b, c.detected_at, c.status, c.resolution, c.resolved_at, c.note, c.judgement, c.proposed
from heart.contradictions c
where c.agent_id = %(agent_id)s and case when %(id)s::uuid is null then {is_question} else c.id = %(id)s end
  and not exists (
      select from heart.facts f
      where f.agent_id = c.agent_id and f.id in (c.memory_a, c.memory_b, %(merged_into)s::uuid)
        and (({in_reach}) is not true or f.state = 'archived'))
order by c.detected_at, c.id
limit %(limit)s

-- name: rivals
-- What an open contradiction sets against some facts: against which of them, and how near it is to a vector.
select near.id, {columns}, 1 - (f.embedding <=> %(embedding)s)
from heart.contradictions c
join unnest(%(ids)s::uuid[]) near(id) on near.id in (c.memory_a, c.memory_b)
join heart.facts f on f.agent_id = c.agent_id and f.id in (c.memory_a, c.memory_b) and f.id <> near.id
where c.agent_id = %(agent_id)s and f.embedding_space_id = %(space_id)s and {is_question}
order by near.id, f.id

-- name: lock_contradiction
select c.id, c.memory_a, c.memory_b, c.detected_at, c.status, c.resolution, c.resolved_at, c.note, c.judgement, c.proposed
from heart.contradictions c
where agent_id = %(agent_id)s and id = %(id)s
for update of c

-- name: resolve_contradiction
update heart.contradictions c
set status = 'resolved', resolution = %(resolution)s, resolved_at = %(at)s, note = %(note)s, row_version = row_version + 1
where agent_id = %(agent_id)s and id = %(id)s

-- name: reopen_contradictions
-- Those that a ruling decided at that moment: where it is undone by parts, by superseding this fact, now that both are active.
update heart.contradictions c
set status = 'open', resolution = null, resolved_at = null, note = null, row_version = row_version + 1
where agent_id = %(agent_id)s and %(id)s in (memory_a, memory_b) and resolved_at = %(at)s
  and coalesce(id = %(ruled)s::uuid, true)
  and (%(is_whole)s or resolution <> 'both_valid' and not exists (
      select from heart.facts f
      where f.agent_id = c.agent_id and f.id in (c.memory_a, c.memory_b) and f.state <> 'active'))

-- name: propose_ruling
-- Keep how somebody who may not decide it would; null takes that back.
update heart.contradictions c
set proposed = %(proposed)s, row_version = row_version + 1
where agent_id = %(agent_id)s and id = %(id)s

-- name: has_open_contradiction
select exists (
    select from heart.contradictions c
    where c.agent_id = %(agent_id)s and %(memory_id)s in (c.memory_a, c.memory_b) and {is_question}
)

-- name: sides_of_open
-- Some facts and all that an open contradiction sets against one of them.
select unnest(%(ids)s::uuid[]) as id
union
select side
from heart.contradictions c cross join unnest(array[c.memory_a, c.memory_b]) side
where c.agent_id = %(agent_id)s and c.status = 'open' and (c.memory_a = any(%(ids)s) or c.memory_b = any(%(ids)s))

-- name: wrong_marks
-- Facts whose mark does not say whether they stand in a contradiction that asks something, and what it should say: that
-- they do, or what it said before it was last told so.
select f.id, f.row_version,
       case when is_open then 'open' else coalesce((
           select e.before ->> 'contradiction_status'
           from lifecycle.events e
           where e.agent_id = f.agent_id and e.memory_id = f.id
             and e.after ->> 'contradiction_status' = 'open' and e.before ->> 'contradiction_status' <> 'open'
           order by e.version_after desc
           limit 1), 'resolved') end
from heart.facts f
cross join lateral (
    select exists (
        select from heart.contradictions c
        where c.agent_id = f.agent_id and f.id in (c.memory_a, c.memory_b) and {is_question}) as is_open
) named
where f.agent_id = %(agent_id)s and f.id = any(%(ids)s) and f.state <> 'archived'
  and is_open <> (f.contradiction_status = 'open')
order by f.id
