-- name: hold_agent
-- Nights hold the first lock, every call of an agent shares the second: what is at work is waited for, what comes later waits.
select set_config('lock_timeout', %(wait)s, true),
       pg_advisory_xact_lock(hashtextextended('night:' || %(agent_id)s, 0))::text,
       pg_advisory_xact_lock(hashtextextended('agent:' || %(agent_id)s, 0))::text

-- name: find_tables
-- Every table that says whose its rows are: found, not listed, so that a new one can't be forgotten.
select n.nspname as schema, c.relname as table, a.attname as column
from pg_class c
join pg_namespace n on n.oid = c.relnamespace
join pg_attribute a on a.attrelid = c.oid and not a.attisdropped
     and a.attname = case when c.oid = 'heart.agents'::regclass then 'id' else 'agent_id' end
where n.nspname in ('heart', 'brain', 'lifecycle') and c.relkind in ('r', 'p') and not c.relispartition
order by 1, 2

-- name: find_references
-- Which table points to which.
select distinct cn.nspname, c.relname, fn.nspname, f.relname
from pg_constraint k
join pg_class c on c.oid = k.conrelid
join pg_namespace cn on cn.oid = c.relnamespace
join pg_class f on f.oid = k.confrelid
join pg_namespace fn on fn.oid = f.relnamespace
where k.contype = 'f' and k.conrelid <> k.confrelid and cn.nspname in ('heart', 'brain', 'lifecycle')

-- name: find_quotations
-- Everything by which a copy elsewhere could be recognised: the words of its memories, as they are and as they were, its questions,
-- and the ids of memories and proposals.
select text from (
    select full_text as text from heart.memories where agent_id = %(agent_id)s
    union select summary from heart.memories where agent_id = %(agent_id)s
    union select compressed from heart.memories where agent_id = %(agent_id)s
    union select title from heart.episodes where agent_id = %(agent_id)s
    union select detail from heart.cold_texts where agent_id = %(agent_id)s
    union select summary from heart.cold_texts where agent_id = %(agent_id)s
    union select query from heart.recalls where agent_id = %(agent_id)s
    union select reason from lifecycle.proposals p where agent_id = %(agent_id)s  -- in words nobody else's has
          and not exists (select from lifecycle.proposals o where o.reason = p.reason and o.agent_id <> p.agent_id)
    union select value from lifecycle.events e cross join jsonb_each_text(e.before || e.after) image(column_name, value)
          where e.agent_id = %(agent_id)s
            and column_name in ('title', 'detail', 'summary', 'compressed', 'name', 'subject', 'trigger', 'template')
    union select id::text from heart.memories where agent_id = %(agent_id)s
    union select id::text from lifecycle.proposals where agent_id = %(agent_id)s
) quoted
where text <> ''

-- name: count_rows
select count(*) from {table} where {column} = %(agent_id)s

-- name: delete_rows
delete from {table} where {column} = %(agent_id)s

-- name: count_plans
select count(*) from lifecycle.plans where %(agent_id)s = any(agent_ids)

-- name: delete_own_plans
-- A plan for this agent alone.
delete from lifecycle.plans where agent_ids = array[%(agent_id)s]

-- name: leave_shared_plans
update lifecycle.plans set agent_ids = array_remove(agent_ids, %(agent_id)s) where %(agent_id)s = any(agent_ids)

-- name: bury
-- Hashes alone: one for the agent, with nothing in it, and one for each memory, salted by the agent so that the same words of
-- two agents have nothing in common. By them a restored backup is recognised and erased again.
insert into lifecycle.tombstones (agent_hash, content_hash)
select encode(sha256(convert_to(%(agent_id)s, 'UTF8')), 'hex'), content_hash
from (
    select '' as content_hash
    union
    select encode(sha256(convert_to(%(agent_id)s || E'\n' || kind || E'\n' || coalesce(full_text, ''), 'UTF8')), 'hex')
    from heart.memories where agent_id = %(agent_id)s
) hashes
on conflict (agent_hash, content_hash) do nothing

-- name: can_forget_statistics
select to_regprocedure('pg_catalog.pg_clear_attribute_stats(text,text,text,boolean)') is not null

-- name: forget_statistics
-- The planner remembers values that are typical of a column; a table that became empty keeps them, even when analysed again.
select pg_clear_attribute_stats(s.schemaname::text, s.tablename::text, s.attname::text, s.inherited)
from pg_stats s
where s.schemaname = %(schema)s
  and s.tablename in (
      select %(table)s union all
      select indexname from pg_indexes where schemaname = %(schema)s and tablename = %(table)s)

-- name: sweep
-- Takes the dead rows from the table, and draws its statistics anew.
vacuum (analyze) {table}
