-- name: keep_log_in_memory
-- For the control: what is not waited for stays in the memory of the server, and is gone with it.
alter system set wal_writer_delay = '10s'

-- name: flush_log_seldom
alter system set wal_writer_flush_after = '64MB'

-- name: reload
select pg_reload_conf()

-- name: count_said
-- Each write names itself in the source of its statement.
select source, count(*) from heart.statements where source like '%%/%%' group by source

-- name: count_incomplete
-- Facts without a statement of their own, without exactly one event a version, or that no word finds.
select count(*) from heart.facts f
left join (select agent_id, fact_id from heart.statements group by agent_id, fact_id) s
     on s.agent_id = f.agent_id and s.fact_id = f.id
left join (select agent_id, memory_id from heart.postings group by agent_id, memory_id) p
     on p.agent_id = f.agent_id and p.memory_id = f.id
left join (select agent_id, memory_id, count(*) as versions from lifecycle.events group by agent_id, memory_id) e
     on e.agent_id = f.agent_id and e.memory_id = f.id
where s.fact_id is null or p.memory_id is null or e.versions is distinct from f.row_version

-- name: count_doubled
-- The same words twice as a fact of one agent.
select coalesce(sum(copies - 1), 0)::bigint
from (select count(*) as copies from heart.facts group by agent_id, content having count(*) > 1) doubled

-- name: begin_loading
-- The triggers of a single row are off: a race is about what happens to rows, not how they came.
set local session_replication_role = replica

-- name: store_raced
insert into heart.facts (agent_id, content, learned_at)
select %(agent_id)s, 'fact ' || n, '2026-05-01' from generate_series(1, %(count)s) n

-- name: store_raced_statements
insert into heart.statements (agent_id, fact_id, content, said_at, reason)
select agent_id, id, content, learned_at, 'first' from heart.facts

-- name: store_raced_events
insert into lifecycle.events (
    agent_id, memory_kind, memory_id, action, from_state, to_state, version_before, version_after, actor, reason, effective_at)
select agent_id, 'fact', id, 'learned', 'new', state, 0, 1, 'import', 'drawn', learned_at from heart.facts

-- name: find_raced
select id from heart.facts order by md5(id::text)

-- name: count_clobbered
-- The night read version 1 of every row, so it may change no other; each acknowledged confirmation is an event, and
-- counted in the row beside the one that a merge brought; versions and events are one to one.
with told as (
    select memory_id, sum(times) as times from unnest(%(ids)s::uuid[], %(counts)s::int[]) t(memory_id, times) group by memory_id
), written as (
    select memory_id, count(*) as versions,
           count(*) filter (where actor = 'night' and version_before <> 1) as blind,
           count(*) filter (where actor = 'agent') as confirmations,
           count(*) filter (where action = 'absorbed') as absorbed
    from lifecycle.events group by memory_id
)
select count(*) from heart.facts f
left join written w on w.memory_id = f.id
left join told t on t.memory_id = f.id
where w.versions is distinct from f.row_version
   or w.blind > 0
   or w.confirmations <> coalesce(t.times, 0)
   or f.confirmation_count <> w.confirmations + w.absorbed

-- name: find_all_facts
select agent_id, id from heart.facts

-- name: reuse_plans
-- A million plans would cost more than a million lookups; what may be seen is the same.
set local plan_cache_mode = auto

-- name: look_by_id
select agent_id from heart.facts where id = %(id)s

-- name: look_by_ids
select agent_id from heart.facts where id = any(%(ids)s)

-- name: look_by_key
select agent_id from heart.facts where agent_id = %(other)s and id = any(%(ids)s)

-- name: look_by_name
select agent_id from heart.facts where agent_id = %(other)s limit 20

-- name: look_or_true
select agent_id from heart.facts where agent_id = %(other)s or true limit 20

-- name: look_at_what_is_not_own
select agent_id from heart.facts where agent_id <> heart.current_agent() limit 20

-- name: look_at_content
select agent_id from heart.facts where content = 'the secret of shelf 3' or content = %(payload)s

-- name: look_at_statements
select agent_id from heart.statements where fact_id = any(%(ids)s)

-- name: look_at_events
select agent_id from lifecycle.events where memory_id = any(%(ids)s)

-- name: look_at_postings
select agent_id from heart.postings where agent_id = %(other)s or memory_id = any(%(ids)s)

-- name: look_at_usage
select agent_id from heart.usage where agent_id = %(other)s or memory_id = any(%(ids)s)

-- name: look_at_memories
select agent_id from heart.memories where id = any(%(ids)s)

-- name: look_by_union
select agent_id from heart.facts where id = %(id)s union all select agent_id from heart.statements where agent_id = %(other)s

-- name: look_by_join
select o.agent_id from heart.facts f join heart.facts o on o.content = f.content where o.id = any(%(ids)s)

-- name: look_at_agents
select id from heart.agents where id = %(other)s or id <> heart.current_agent()

-- name: look_at_outbox
select agent_id from heart.outbox where agent_id = %(other)s or memory_id = any(%(ids)s)
