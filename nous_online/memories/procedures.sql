-- name: find_procedures
-- By id, by name, or by slug: "architecture-decision" names "Architecture Decision". The closest way of naming wins.
with asked as (
    select %(asked)s::text as name, trim('-' from regexp_replace(lower(%(asked)s), '[^[:alnum:]]+', '-', 'g')) as slug
), named as (
    select p.id, p.name,
           case when p.id::text = lower(asked.name) then 1 when p.name = asked.name then 2 else 3 end as distance
    from heart.procedures p, asked
    where p.agent_id = %(agent_id)s and p.state <> 'archived'
      and (p.id::text = lower(asked.name) or p.name = asked.name
           or (asked.slug <> '' and trim('-' from regexp_replace(lower(p.name), '[^[:alnum:]]+', '-', 'g')) = asked.slug))
)
select id, name from named where distance = (select min(distance) from named) order by name, id

-- name: find_named
select id from heart.procedures where agent_id = %(agent_id)s and name = %(name)s and state <> 'archived'

-- name: reviewable_procedures
-- The active procedures named, and those of the domain named.
select id from heart.procedures
where agent_id = %(agent_id)s and state = 'active' and (id = any(%(ids)s) or domain = %(domain)s)

-- name: list_procedures
-- What worked best first: the expected share of successes when one success and one failure are added to what was seen.
select {columns} from heart.procedures p
where agent_id = %(agent_id)s and (%(domain)s::text is null or domain = %(domain)s)
  and (case when %(state)s::text is null then state <> 'archived' else state = %(state)s end)
order by (success_count + 1.0) / (success_count + failure_count + 2) desc, activation_count desc, name, id

-- name: related_procedures
-- Those it names or that name it, then those of its domain, then those near in meaning; the nearest first.
select {columns}
from heart.procedures p
cross join lateral (
    select this.domain, this.embedding, this.embedding_space_id, this.related_procedures as named, this.id as this_id
    from heart.procedures this where this.agent_id = %(agent_id)s and this.id = %(id)s
) this
cross join lateral (
    select p.id = any(this.named) or this.this_id = any(p.related_procedures) as is_named,
           coalesce(p.domain = this.domain, false) as is_of_domain,
           case when p.embedding_space_id = this.embedding_space_id then 1 - (p.embedding <=> this.embedding) end
               as similarity
) ties
where p.agent_id = %(agent_id)s and p.state <> 'archived' and p.id <> %(id)s
  and (ties.is_named or ties.is_of_domain or ties.similarity >= %(similarity)s)
order by ties.is_named desc, array_position(this.named, p.id), ties.is_of_domain desc, ties.similarity desc nulls last, p.id
limit %(limit)s
