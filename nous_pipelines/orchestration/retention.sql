-- name: policies
-- The policy fields set for each agent.
select a.id, coalesce(p.policy, '{}')
from heart.agents a left join lifecycle.agent_policies p on p.agent_id = a.id
order by a.id

-- name: purge_cold_texts
-- Texts past their own expiry, and all texts past the days of their agent's policy.
delete from heart.cold_texts c
using unnest(%(agent_ids)s::text[], %(days)s::integer[]) kept(agent_id, days)
where c.agent_id = kept.agent_id
  and (c.purge_after <= %(now)s or (days > 0 and c.stored_at <= %(now)s - make_interval(days => days)))

-- name: purge_outbox
-- What every consumer has passed, the heart itself among them. A consumer that stands beyond the transactions of this
-- server comes from a dump and has passed nothing: see docs/decisions/0010.
with standing as materialized (
    select agent_id, last_xid, last_id,
           consumer = %(heart)s as is_heart, last_xid > pg_snapshot_xmin(pg_current_snapshot()) as is_astray
    from heart.outbox_cursors
)
delete from heart.outbox o
using unnest(%(agent_ids)s::text[], %(days)s::integer[]) kept(agent_id, days)
where o.agent_id = kept.agent_id and days > 0 and o.created_at <= %(now)s - make_interval(days => days)
  and exists (select from standing s where s.agent_id = o.agent_id and s.is_heart)
  and not exists (
      select from standing s
      where s.agent_id = o.agent_id and (s.is_astray or (o.written_xid, o.id) > (s.last_xid, s.last_id)))

-- name: purge_completions
-- What was drawn from an episode is in its row and its facts; the draft is not needed for it any more.
delete from heart.completions c
using unnest(%(agent_ids)s::text[], %(days)s::integer[]) kept(agent_id, days)
where c.agent_id = kept.agent_id and days > 0 and c.finished_at <= %(now)s - make_interval(days => days)

-- name: purge_requests
-- The keys of imports stay: they are the lines of a file, which may be imported again in a year and must store nothing twice.
delete from heart.requests r
using unnest(%(agent_ids)s::text[], %(days)s::integer[]) kept(agent_id, days)
where r.agent_id = kept.agent_id and days > 0 and r.created_at <= %(now)s - make_interval(days => days) and not starts_with(r.verb, 'import')
