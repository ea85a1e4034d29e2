-- name: add_cursor
-- Where a new consumer begins: with the first event ever, or with what is being written at this moment.
insert into heart.outbox_cursors (agent_id, consumer, last_xid)
values (%(agent_id)s, %(consumer)s,
        case when %(is_from_now)s then pg_snapshot_xmin(pg_current_snapshot()) else '0'::xid8 end)
on conflict (agent_id, consumer) do nothing

-- name: due_consumers
-- Those of the consumers asked for who have something to do, in the order asked. Where each stands is settled first: for
-- row-level security `coalesce` is a leak, and with it the events would be searched one by one, not by the index.
with places as materialized (
    select wanted.consumer, wanted.place, coalesce(c.last_xid, '0') as last_xid, coalesce(c.last_id, 0) as last_id
    from unnest(%(consumers)s::text[]) with ordinality wanted(consumer, place)
    left join heart.outbox_cursors c on c.agent_id = %(agent_id)s and c.consumer = wanted.consumer
    where c.retry_at is null or c.retry_at <= now()
)
select p.consumer
from places p
left join lateral (
    select o.id from heart.outbox o
    where o.agent_id = %(agent_id)s
      and (o.written_xid, o.id) > (p.last_xid, p.last_id)
      and o.written_xid < pg_snapshot_xmin(pg_current_snapshot())
    order by o.written_xid, o.id
    limit 1) next on true
where next.id is not null or p.last_xid > pg_snapshot_xmin(pg_current_snapshot())
order by p.place

-- name: read_cursor
select consumer, last_xid::text, last_id, failed_count, retry_at from heart.outbox_cursors
where agent_id = %(agent_id)s and consumer = %(consumer)s and (retry_at is null or retry_at <= now())

-- name: lock_cursor
select consumer, last_xid::text, last_id, failed_count, retry_at from heart.outbox_cursors
where agent_id = %(agent_id)s and consumer = %(consumer)s and (retry_at is null or retry_at <= now())
for update

-- name: lock_free_cursor
-- Whoever holds it is at work already.
select consumer, last_xid::text, last_id, failed_count, retry_at from heart.outbox_cursors
where agent_id = %(agent_id)s and consumer = %(consumer)s and (retry_at is null or retry_at <= now())
for update skip locked

-- name: lease_cursor
-- A handler runs for as long as it likes, so no lock is held for it: the consumer is simply not due again before then.
update heart.outbox_cursors set retry_at = clock_timestamp() + make_interval(secs => %(lease_s)s)
where agent_id = %(agent_id)s and consumer = %(consumer)s
returning retry_at

-- name: read_horizon
-- No transaction before this one is still running. Asked after the lock was won, not with it: a statement that waited
-- for a lock keeps the snapshot from before.
select pg_snapshot_xmin(pg_current_snapshot())::text

-- name: next_events
-- Each with whose memory it is about. Ordered by the transaction itself: as text, the hundredth would come before the ninety-ninth.
select o.id, o.name, o.agent_id, o.memory_id, o.payload, o.created_at, o.written_xid::text, m.user_id, m.project_id
from heart.outbox o
left join heart.memories m on m.agent_id = o.agent_id and m.id = o.memory_id
where o.agent_id = %(agent_id)s
  and (o.written_xid, o.id) > (%(last_xid)s::xid8, %(last_id)s)
  and o.written_xid < %(horizon)s::xid8
  and (%(names)s::text[] is null or o.name = any(%(names)s))
order by o.written_xid, o.id
limit %(limit)s

-- name: move_cursor
-- Forwards only: one that was overtaken while its lease ran out must not bring back what others have delivered, nor end
-- the lease they hold by now. The last error stays readable until there is another; `failed_count` says whether it still
-- matters.
update heart.outbox_cursors c
set (last_xid, last_id) = (
        select place.xid, place.id
        from (values (c.last_xid, c.last_id), (%(last_xid)s::xid8, %(last_id)s::bigint)) place(xid, id)
        order by place.xid desc, place.id desc
        limit 1),
    failed_count = case when c.retry_at is not distinct from %(held_until)s then %(failed_count)s else c.failed_count end,
    last_error = coalesce(%(error)s, c.last_error),
    retry_at = case when c.retry_at is not distinct from %(held_until)s
                    then now() + make_interval(secs => %(delay_s)s) else c.retry_at end
where c.agent_id = %(agent_id)s and c.consumer = %(consumer)s

-- name: what_is_left
-- Whether events wait for a consumer, be it that an older transaction still hides them; and whether it is resting.
select exists (
           select from heart.outbox o
           where o.agent_id = c.agent_id and (o.written_xid, o.id) > (c.last_xid, c.last_id) and o.name = any(%(names)s)),
       coalesce(c.retry_at > now(), false)
from heart.outbox_cursors c
where c.agent_id = %(agent_id)s and c.consumer = %(consumer)s
