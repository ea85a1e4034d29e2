-- name: open_questions
-- What a person has to decide about two active facts, with what such questions may have in common.
with pairs as (
    select 'contradiction' as kind, c.id, c.memory_a as one, c.memory_b as other, c.detected_at as at
    from heart.contradictions c
    where c.agent_id = %(agent_id)s and c.status = 'open'
    union all
    select 'doubt', f.id, o.id, f.id, f.learned_at
    from heart.facts f join heart.facts o on o.agent_id = f.agent_id and o.id = any(f.perhaps_replaces)
    where f.agent_id = %(agent_id)s and f.perhaps_replaces <> '{{}}'
)
select p.kind, p.id,
       case when p.kind = 'doubt' or (a.learned_at, a.id) <= (b.learned_at, b.id) then a.id else b.id end as earlier_id,
       case when p.kind = 'doubt' or (a.learned_at, a.id) <= (b.learned_at, b.id) then b.id else a.id end as later_id,
       case when a.source is not null and b.source is not null
            then array[least(a.source, b.source), greatest(a.source, b.source)] end as sources,
       case when lower(a.subject) = lower(b.subject) then lower(a.subject) end as subject
from pairs p
join heart.facts a on a.agent_id = %(agent_id)s and a.id = p.one and a.state = 'active'
join heart.facts b on b.agent_id = %(agent_id)s and b.id = p.other and b.state = 'active'
order by p.at, p.id, p.one
