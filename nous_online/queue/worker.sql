-- name: has_work
-- Whether a closed episode of this agent waits for its completion, or an event for a reaction, be it hidden behind an
-- older transaction, or whether a webhook listens. Where the reactions stand is settled first: row-level security lets no `coalesce` use an index.
with position as materialized (
    select coalesce(c.last_xid, '0') as last_xid, coalesce(c.last_id, 0) as last_id
    from (select %(consumer)s::text as consumer) wanted
    left join heart.outbox_cursors c on c.agent_id = %(agent_id)s and c.consumer = wanted.consumer
)
select exists (select from heart.completions where agent_id = %(agent_id)s and finished_at is null)
    or exists (select from heart.webhooks where agent_id = %(agent_id)s)
    or exists (
        select from position p
        join heart.outbox o on (o.written_xid, o.id) > (p.last_xid, p.last_id)
        where o.agent_id = %(agent_id)s and o.name = any(%(names)s))

-- name: agents_with_work
-- Agents that have a closed episode due, or events that nobody has looked at; the one that has waited longest comes first,
-- but for those whose only work is an imported past, due since its episodes ended.
with due as (
    select agent_id, coalesce(min(due_at) filter (where due_at >= now() - interval '1 hour'), min(due_at)) as since
    from heart.completions
    where finished_at is null and due_at <= now()
    group by agent_id
), announced as (
    select listening.agent_id, first.created_at as since
    from (select id as agent_id, %(consumer)s::text as consumer from heart.agents
          union all select agent_id, 'webhook:' || id from heart.webhooks) listening
    left join heart.outbox_cursors c on c.agent_id = listening.agent_id and c.consumer = listening.consumer
    cross join lateral (
        select o.created_at from heart.outbox o
        where o.agent_id = listening.agent_id
          and (o.written_xid, o.id) > (coalesce(c.last_xid, '0'), coalesce(c.last_id, 0))
          and o.written_xid < pg_snapshot_xmin(pg_current_snapshot())
        order by o.written_xid, o.id
        limit 1) first
    where c.retry_at is null or c.retry_at <= now()
)
select a.id, a.embedding_space_id
from (select * from due union all select * from announced) waiting
join heart.agents a on a.id = waiting.agent_id
where %(only)s::text is null or a.id = %(only)s
group by a.id, a.embedding_space_id
order by max(since) < now() - interval '1 hour', min(since), a.id
