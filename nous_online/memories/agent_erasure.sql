-- name: hold_agent
-- A night of many agents holds the first lock, for all agents of a bucket; any other holds the second, and every call of the
-- agent shares the third: what is at work is waited for, what comes later waits.
select set_config('lock_timeout', %(wait)s, true),
       pg_advisory_xact_lock_shared(
           hashtextextended('nights:' || (hashtextextended('night:' || %(agent_id)s, 0) & 1023), 0))::text,
       pg_advisory_xact_lock(hashtextextended('night:' || %(agent_id)s, 0))::text,
       pg_advisory_xact_lock(hashtextextended('agent:' || %(agent_id)s, 0))::text

-- name: hold_copies
-- Shared by whatever reads memories in order to write them to files; erasing takes it alone. It is the session's, not a
-- transaction's: one that stays open for a night would keep indexes from being built and dead rows from being removed.
select set_config('lock_timeout', %(wait)s, false), pg_advisory_lock_shared(hashtextextended('copies', 0))::text

-- name: hold_copies_alone
select set_config('lock_timeout', %(wait)s, true), pg_advisory_xact_lock(hashtextextended('copies', 0))::text

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
-- decisions and sessions, what was drawn and judged from them, and the ids of memories and proposals. `prose` is the agent's alone;
-- `anybodys` are labels, errors and reasons, which count only where no other agent has the same.
-- In JSON a single word may be a term of ours, so only texts of several words count there.
with prose as (
    select full_text as text from heart.memories where agent_id = %(agent_id)s
    union select summary from heart.memories where agent_id = %(agent_id)s
    union select compressed from heart.memories where agent_id = %(agent_id)s
    union select context from heart.facts where agent_id = %(agent_id)s
    union select content from heart.statements where agent_id = %(agent_id)s
    union select unnest(title || lessons_learned) from heart.episodes where agent_id = %(agent_id)s
    union select unnest(trigger || goals || core_patterns || core_concepts || implementation_notes || censors)
          from heart.procedures where agent_id = %(agent_id)s
    union select unnest(array[trigger, reason]) from heart.censors where agent_id = %(agent_id)s
    union select unnest(array[title, rationale, outcome]) from brain.decisions where agent_id = %(agent_id)s
    union select task from heart.working_memory where agent_id = %(agent_id)s
    union select unnest(array[detail, summary, compressed]) from heart.cold_texts where agent_id = %(agent_id)s
    union select query from heart.recalls where agent_id = %(agent_id)s
    union select note from heart.contradictions where agent_id = %(agent_id)s
    union select reason from heart.judgements where agent_id = %(agent_id)s
), documents as (
    select jsonb_build_array(steps, template) as document from heart.procedures where agent_id = %(agent_id)s
    union select jsonb_build_array(items, open_threads) from heart.working_memory where agent_id = %(agent_id)s
    union select draft from heart.completions where agent_id = %(agent_id)s
    union select request from heart.llm_requests where agent_id = %(agent_id)s
    union select payload from heart.outbox where agent_id = %(agent_id)s
    union select sources from heart.facts where agent_id = %(agent_id)s
    union select unnest(array[exceptions, last_activation]) from heart.censors where agent_id = %(agent_id)s
    union select jsonb_build_array(judgement, proposed) from heart.contradictions where agent_id = %(agent_id)s
    union select changes from lifecycle.proposals where agent_id = %(agent_id)s
    union select value from lifecycle.events e cross join lateral (
              select * from jsonb_each(e.before) union all select * from jsonb_each(e.after)) image(column_name, value)
          where e.agent_id = %(agent_id)s
            and column_name in (
                'content', 'context', 'title', 'detail', 'summary', 'compressed', 'name', 'subject', 'trigger', 'reason', 'template',
                'steps', 'goals', 'core_patterns', 'core_concepts', 'implementation_notes', 'lessons_learned', 'completion_note',
                'exceptions', 'last_activation')
), anybodys as (
    select agent_id, label as text from heart.facts cross join unnest(tags || subject) label
    union select agent_id, subject from heart.statements
    union select agent_id, unnest(tags || participants || completion_note) from heart.episodes
    union select agent_id, unnest(tags || core_tools || array[domain, review_reason]) from heart.procedures
    union select agent_id, unnest(tags || files) from brain.decisions
    union select agent_id, reference from heart.episode_artifacts
    union select agent_id, unnest(array[signal, session_id]) from heart.sightings
    union select agent_id, name from heart.api_keys
    union select agent_id, url from heart.webhooks
    union select agent_id, last_error from heart.completions
    union select agent_id, last_error from heart.outbox_cursors
    union select agent_id, error from heart.llm_requests
    union select agent_id, unnest(array[reason, outcome]) from lifecycle.proposals
)
select text from (
    select text from prose
    union select leaf #>> '{}' from documents, jsonb_path_query(document, 'strict $.** ? (@.type() == "string")') leaf
          where leaf #>> '{}' ~ '\s' and leaf #>> '{}' !~ '^\d{4}-\d\d-\d\d'
    union select document #>> '{}' from documents where jsonb_typeof(document) = 'string'
    union select text from anybodys own where agent_id = %(agent_id)s
          and not exists (select from anybodys other where other.text = own.text and other.agent_id <> own.agent_id)
    union select id::text from heart.memories where agent_id = %(agent_id)s
    union select id::text from lifecycle.proposals where agent_id = %(agent_id)s
) quoted
where text <> ''

-- name: count_rows
select count(*) from {table} where {column} = %(agent_id)s

-- name: delete_rows
delete from {table} where {column} = %(agent_id)s

-- name: count_plans
select count(*) from lifecycle.plans where %(agent_id)s = any(agent_ids) or policy -> 'agents' ? %(agent_id)s

-- name: delete_own_plans
-- A plan for this agent alone.
delete from lifecycle.plans where agent_ids = array[%(agent_id)s]

-- name: leave_shared_plans
update lifecycle.plans set agent_ids = array_remove(agent_ids, %(agent_id)s), policy = policy #- array['agents', %(agent_id)s]
where %(agent_id)s = any(agent_ids) or policy -> 'agents' ? %(agent_id)s

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

-- name: act_as_purge
-- From 17 on the right to vacuum can be granted.
select set_config('role', 'nous_purge', false) where current_setting('server_version_num')::int >= 170000

-- name: forget_statistics
-- The planner remembers values that are typical of a column; a table that became empty keeps them, even when analysed again.
-- Which columns have any, pg_stats tells nobody whom row-level security binds: so all are cleared.
select pg_clear_attribute_stats(n.nspname::text, c.relname::text, a.attname::text, false)
from pg_class t
join pg_namespace n on n.oid = t.relnamespace
join pg_class c on c.oid = t.oid or c.oid in (select indexrelid from pg_index where indrelid = t.oid)
join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
where n.nspname = %(schema)s and t.relname = %(table)s

-- name: sweep
-- Takes the dead rows from the table, and draws its statistics anew.
vacuum (analyze) {table}
