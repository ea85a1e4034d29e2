-- name: doubts
-- Active facts that perhaps replace others which are active too, the oldest first: the earlier fact and the later one.
select {earlier}, {later}
from heart.facts f join heart.facts o on o.agent_id = f.agent_id and o.id = any(f.perhaps_replaces) and o.state = 'active'
where f.agent_id = %(agent_id)s and f.state = 'active' and f.perhaps_replaces <> '{{}}'
order by f.learned_at, f.id, o.id

-- name: settled_doubts
-- Those that were decided, the oldest first, with how, why and when: both hold, or one gave way to the other or both to a third.
with standing as not materialized (
    select id, memory_id, action, before, after, reason, effective_at
    from lifecycle.events e
    where agent_id = %(agent_id)s and memory_kind = 'fact'
      and not exists (select from lifecycle.events u where u.agent_id = e.agent_id and u.undoes = e.id)
), decided as (
    select named.id::uuid as earlier_id, e.memory_id as later_id, 'both_valid' as resolution, e.reason, e.effective_at
    from standing e cross join lateral jsonb_array_elements_text(e.before -> 'perhaps_replaces') named(id)
    where e.action = 'kept_beside' and e.before ? 'perhaps_replaces' and not e.after -> 'perhaps_replaces' ? named.id
    union all
    select o.id, f.id,
           case when o.superseded_by = f.superseded_by then 'merged' when lost.succession = 'merged' then 'same'
                when lost.id = o.id then 'b_wins' else 'a_wins' end,
           lost.reason, lost.effective_at
    from heart.facts f
    join heart.facts o on o.agent_id = f.agent_id and o.id = any(f.perhaps_replaces)
    cross join lateral (
        select side.id, side.succession, e.reason, e.effective_at
        from (values (o.id, o.superseded_by, o.succession, f.id, f.superseded_by),
                     (f.id, f.superseded_by, f.succession, o.id, o.superseded_by)) side(id, heir, succession, rival, other)
        join standing e on e.memory_id = side.id and e.after ->> 'superseded_by' = side.heir::text
        where side.heir in (side.rival, side.other)
        order by e.id desc limit 1) lost
    where f.agent_id = %(agent_id)s and f.perhaps_replaces <> '{{}}'
)
select {earlier}, {later}, d.resolution, d.reason, d.effective_at
from decided d
join heart.facts o on o.agent_id = %(agent_id)s and o.id = d.earlier_id
join heart.facts f on f.agent_id = %(agent_id)s and f.id = d.later_id
order by f.learned_at, f.id, o.id
