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
-- two agents have nothing in common. By them a restored backup is recognised and erased again. All have one moment, that of the
-- first time where it is erased again: by it they differ from those of what was erased by itself.
insert into lifecycle.tombstones (agent_hash, content_hash, erased_at)
select own.agent_hash, content_hash,
       coalesce((select w.erased_at from lifecycle.tombstones w where w.agent_hash = own.agent_hash and w.content_hash = ''), now())
from (
    select '' as content_hash
    union
    select encode(sha256(convert_to(%(agent_id)s || E'\n' || kind || E'\n' || coalesce(full_text, ''), 'UTF8')), 'hex')
    from heart.memories where agent_id = %(agent_id)s
) hashes
cross join (select encode(sha256(convert_to(%(agent_id)s, 'UTF8')), 'hex') as agent_hash) own
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
cross join lateral (select t.oid union all select indexrelid from pg_index where indrelid = t.oid) own
join pg_class c on c.oid = own.oid
join pg_attribute a on a.attrelid = own.oid and a.attnum > 0 and not a.attisdropped
where n.nspname = %(schema)s and t.relname = %(table)s

-- name: sweep
-- Takes the dead rows from the table, and draws its statistics anew.
vacuum (analyze) {table}

-- name: lookup_part
-- What is erased of an agent: memories by their ids, or everything of one user. With a fact go those that were merged into it,
-- whose statements are its own; with an episode every statement and censor drawn from it. A fact all of whose statements go, goes.
with named as (
    select id, kind from heart.memories where agent_id = %(agent_id)s and (id = any(%(ids)s) or user_id = %(user_id)s)
), episode as (
    select id from named where kind = 'episode'
), told as (
    select m.id
    from named n cross join lateral heart.merged_into(%(agent_id)s, n.id) m(id)
    join heart.facts f on f.agent_id = %(agent_id)s and f.id = m.id
    where n.kind = 'fact' and (%(user_id)s::text is null or f.user_id is not distinct from %(user_id)s)
), statement as (
    select id, fact_id from heart.statements
    where agent_id = %(agent_id)s
      and (fact_id in (select id from told) or episode_id in (select id from episode) or user_id = %(user_id)s)
), fact as (
    select fact_id as id from statement s
    where not exists (
        select from heart.statements other
        where other.agent_id = %(agent_id)s and other.fact_id = s.fact_id and other.id not in (select id from statement))
    union select id from told
), session as (
    select session_id as id from (
        select session_id from heart.episodes where agent_id = %(agent_id)s and user_id = %(user_id)s
        union select session_id from heart.statements where agent_id = %(agent_id)s and user_id = %(user_id)s
        union select session_id from heart.recalls where agent_id = %(agent_id)s and user_id = %(user_id)s
    ) of_user
    where session_id is not null and not exists (
        select from (
            select session_id from heart.episodes where agent_id = %(agent_id)s and user_id is distinct from %(user_id)s
            union all
            select session_id from heart.statements where agent_id = %(agent_id)s and user_id is distinct from %(user_id)s
        ) others where others.session_id = of_user.session_id)
), memory as (
    select id from fact union select id from episode union select id from named where kind in ('procedure', 'censor')
    union select id from heart.censors where agent_id = %(agent_id)s and learned_from_episode_id in (select id from episode)
), recall as (
    select r.id from heart.recalls r
    where r.agent_id = %(agent_id)s
      and (r.user_id = %(user_id)s or r.session_id in (select id from session)
           or exists (select from unnest(r.result_ids, r.result_scores) shown(id, score)
                      where shown.score > 0 and shown.id in (select id from memory)))
), decision as (
    select id from brain.decisions
    where agent_id = %(agent_id)s and %(user_id)s::text is not null
      and (session_id in (select id from session) or episode_id in (select id from episode))
)
select array(select id from memory order by id), array(select id from statement order by id),
       array(select id from session order by id), array(select id from recall order by id),
       array(select id from decision order by id),
       array(select fact_id from statement where fact_id not in (select id from fact)
             union select f.id from heart.facts f
             where f.agent_id = %(agent_id)s and f.source_episode_id in (select id from episode) and f.id not in (select id from fact)
             order by 1),
       array(select id from memory where id <> all(%(ids)s) and %(user_id)s::text is null order by id),
       array(select distinct f.source_episode_id from heart.facts f
             where f.agent_id = %(agent_id)s and f.id in (select id from fact) and f.source_episode_id is not null
               and f.source_episode_id not in (select id from episode) order by 1)

-- name: remaining_statements
-- What is left to the facts that lose some of their statements, the oldest first.
select s.fact_id, s.content, s.subject, s.said_at, s.source, s.source_kind, s.episode_id, s.decision_id, s.frame,
       s.taken_back_at is null as counts
from heart.statements s
where s.agent_id = %(agent_id)s and s.fact_id = any(%(touched)s) and s.id <> all(%(statements)s)
order by s.fact_id, s.said_at, s.recorded_at, s.id

-- name: facts_told
select id, content, category, tags, row_version from heart.facts where agent_id = %(agent_id)s and id = any(%(touched)s)

-- name: acting_users
-- For whom something was checked that set off a censor.
select distinct found ->> 'user_id' from (
    select jsonb_build_array(exceptions, last_activation) as document from heart.censors where agent_id = %(agent_id)s
    union select jsonb_build_array(before, after) from lifecycle.events
          where agent_id = %(agent_id)s and memory_kind = 'censor') shared
cross join lateral jsonb_path_query(document, 'strict $.** ? (exists (@.action))') found
where found ->> 'user_id' is not null

-- name: part_quotations
-- By which words a copy of it is recognised; none that something that stays says too.
with memory as materialized (
    -- Named once: each mention of the view is planned as four tables.
    select full_text, summary, compressed from heart.memories where agent_id = %(agent_id)s and id = any(%(ids)s)
), act as (
    -- What was checked and set off a censor that is everybody's, and for whom.
    select found ->> 'action' as action, found ->> 'user_id' as user_id from (
        select jsonb_build_array(exceptions, last_activation) as document from heart.censors where agent_id = %(agent_id)s
        union select jsonb_build_array(before, after) from lifecycle.events
              where agent_id = %(agent_id)s and memory_kind = 'censor') shared
    cross join lateral jsonb_path_query(document, 'strict $.** ? (exists (@.action))') found
    where %(user_id)s::text is not null
), said as (
    select unnest(array[full_text, summary, compressed]) as text from memory
    union select unnest(array[context, subject, source] || tags) from heart.facts where agent_id = %(agent_id)s and id = any(%(ids)s)
    union select unnest(array[content, subject, source]) from heart.statements where agent_id = %(agent_id)s and id = any(%(statements)s)
    union select unnest(title || lessons_learned || tags || participants || completion_note)
          from heart.episodes where agent_id = %(agent_id)s and id = any(%(ids)s)
    union select line from heart.episodes, regexp_split_to_table(detail, '\n') line
          where agent_id = %(agent_id)s and id = any(%(ids)s)
    union select unnest(trigger || review_reason || goals || core_patterns || core_concepts || implementation_notes || censors || tags)
          from heart.procedures where agent_id = %(agent_id)s and id = any(%(ids)s)
    union select unnest(array[trigger, reason]) from heart.censors where agent_id = %(agent_id)s and id = any(%(ids)s)
    union select unnest(array[detail, summary, compressed]) from heart.cold_texts where agent_id = %(agent_id)s and memory_id = any(%(ids)s)
    union select query from heart.recalls where agent_id = %(agent_id)s and id = any(%(recalls)s)
    union select regexp_replace(query, '^context: ', '') from heart.recalls where agent_id = %(agent_id)s and id = any(%(recalls)s)
    union select unnest(array[title, rationale, outcome]) from brain.decisions where agent_id = %(agent_id)s and id = any(%(decisions)s)
    union select unnest(array[task] || array(select jsonb_array_elements_text(open_threads)))
          from heart.working_memory where agent_id = %(agent_id)s and session_id = any(%(sessions)s)
    union select item ->> 'text' from heart.working_memory, jsonb_array_elements(items) item
          where agent_id = %(agent_id)s and session_id = any(%(sessions)s)
    union select signal from heart.sightings where agent_id = %(agent_id)s and session_id = any(%(sessions)s)
    union (select action from act where user_id = %(user_id)s except select action from act where user_id <> %(user_id)s)
    union select note from heart.contradictions
          where agent_id = %(agent_id)s and (memory_a = any(%(ids)s) or memory_b = any(%(ids)s))
    union select proposed ->> 'note' from heart.contradictions
          where agent_id = %(agent_id)s and (memory_a = any(%(ids)s) or memory_b = any(%(ids)s))
    union select leaf #>> '{}' from lifecycle.events e
          cross join lateral (values (e.before), (e.after)) image(document)
          cross join lateral jsonb_path_query(document, 'strict $.** ? (@.type() == "string")') leaf
          where e.agent_id = %(agent_id)s and e.memory_id = any(%(ids)s) and leaf #>> '{}' ~ '\s'
            and leaf #>> '{}' !~ '^\d{4}-\d\d-\d\d'
), why as (
    select judgement ->> 'reason' as text from heart.contradictions
          where agent_id = %(agent_id)s and (memory_a = any(%(ids)s) or memory_b = any(%(ids)s))
    union select reason from heart.judgements where agent_id = %(agent_id)s and pair_hash = any(%(pairs)s)
    union select reason from lifecycle.events
          where agent_id = %(agent_id)s and memory_id = any(%(ids)s) and reason ~ '\s' and action not in ('learned', 'confirmed')
    union select reason from lifecycle.proposals
          where agent_id = %(agent_id)s and (targets && %(ids)s or exists (select from jsonb_array_elements(read_set) each where each ->> 'id' = any(%(ids)s::text[])))
), partner as (
    -- What had to do with it: a reason given for both may speak of it.
    select unnest(array[memory_a, memory_b]) as id from heart.contradictions
          where agent_id = %(agent_id)s and (memory_a = any(%(ids)s) or memory_b = any(%(ids)s))
    union select id from heart.facts where agent_id = %(agent_id)s and (superseded_by = any(%(ids)s) or perhaps_replaces && %(ids)s)
    union select unnest(perhaps_replaces || superseded_by) from heart.facts where agent_id = %(agent_id)s and id = any(%(ids)s)
    union select unnest(targets) from lifecycle.proposals where agent_id = %(agent_id)s and targets && %(ids)s
    union select (after ->> 'superseded_by')::uuid from lifecycle.events where agent_id = %(agent_id)s and memory_id = any(%(ids)s)
), why_else as (
    -- A reason that is given for other memories too tells nothing of these.
    select judgement ->> 'reason' as text from heart.contradictions
          where agent_id = %(agent_id)s and memory_a <> all(%(ids)s) and memory_b <> all(%(ids)s)
    union select reason from heart.judgements where agent_id = %(agent_id)s and pair_hash <> all(%(pairs)s)
    union select reason from lifecycle.proposals
          where agent_id = %(agent_id)s and not targets && %(ids)s
            and not exists (select from jsonb_array_elements(read_set) each where each ->> 'id' = any(%(ids)s::text[]))
    union select reason from lifecycle.events e
          where agent_id = %(agent_id)s and memory_id <> all(%(ids)s) and not exists (select from partner p where p.id = e.memory_id)
), stays as (
    select full_text as text from heart.memories where agent_id = %(agent_id)s and id <> all(%(ids)s)
    union select unnest(array[content, subject, source]) from heart.statements where agent_id = %(agent_id)s and id <> all(%(statements)s)
    union select unnest(tags || subject) from heart.facts where agent_id = %(agent_id)s and id <> all(%(ids)s)
    union select unnest(tags || participants || title) from heart.episodes where agent_id = %(agent_id)s and id <> all(%(ids)s)
    union select unnest(tags || trigger) from heart.procedures where agent_id = %(agent_id)s and id <> all(%(ids)s)
    union select query from heart.recalls where agent_id = %(agent_id)s and id <> all(%(recalls)s)
    union select reason from lifecycle.events
          where agent_id = %(agent_id)s and memory_id <> all(%(ids)s) and actor <> 'night' and action in ('learned', 'confirmed')
)
select text from (
    select text from said
    union select text from why where not exists (select from why_else e where strpos(e.text, why.text) > 0)
) told
where text <> '' and char_length(text) >= 3 and text not in (select text from stays where text is not null)

-- name: pairs_of
-- The keys under which verdicts about it are kept: hashes over both texts, their subjects and the space, which may be
-- one that the agent left.
with said as (
    select distinct sha256(convert_to(octet_length(content) || ':' || content || coalesce(E'\x01' || subject, ''), 'UTF8')) as digest,
           is_erased
    from (
        select content, subject, id = any(%(ids)s) as is_erased from heart.facts where agent_id = %(agent_id)s
        union all
        select content, subject, true from heart.statements where agent_id = %(agent_id)s and id = any(%(statements)s)
    ) told
), space as (
    select convert_to(id, 'UTF8') as name from heart.embedding_spaces
), pair as (
    select encode(sha256('\x3e'::bytea || a.digest || b.digest || space.name), 'hex') as ordered,
           encode(sha256('\x3e'::bytea || b.digest || a.digest || space.name), 'hex') as reversed,
           encode(sha256('\x3d'::bytea || least(a.digest, b.digest) || greatest(a.digest, b.digest) || space.name), 'hex') as unordered
    from said a cross join said b cross join space where a.is_erased
)
select j.pair_hash from heart.judgements j
where j.agent_id = %(agent_id)s
  and j.pair_hash in (select unnest(array[ordered, reversed, unordered]) from pair)

-- name: count_pairs
select (select count(*) from heart.facts where agent_id = %(agent_id)s) * cardinality(%(ids)s::uuid[])

-- name: all_pairs
select pair_hash from heart.judgements where agent_id = %(agent_id)s

-- name: point_past
-- Facts that had given way to an erased one: to what that one gave way to in turn; where there is none, what said the same
-- is believed again if the erased one was, and what was replaced stays away.
with recursive heir as (
    select e.id, e.superseded_by as heir, e.state, coalesce(e.succession = 'merged', true) as is_merged
    from heart.facts e where e.agent_id = %(agent_id)s and e.id = any(%(ids)s)
    union all
    select h.id, f.superseded_by, f.state, h.is_merged and coalesce(f.succession = 'merged', true)
    from heir h join heart.facts f on f.agent_id = %(agent_id)s and f.id = h.heir
    where h.heir = any(%(ids)s)
), found as (
    select f.id, h.heir, f.row_version, f.state as was,
           case when h.heir is not null then f.state
                when f.state <> 'superseded' then f.state
                when f.succession = 'merged' and h.is_merged and h.state = 'active' then 'active' else 'archived' end as became,
           case when f.succession = 'merged' and h.is_merged then 'merged' else 'replaced' end as how
    from heart.facts f join heir h on h.id = f.superseded_by and (h.heir is null or h.heir <> all(%(ids)s))
    where f.agent_id = %(agent_id)s and f.id <> all(%(ids)s)
), changed as (
    update heart.facts f
    set superseded_by = found.heir, superseded_at = case when found.heir is not null then f.superseded_at end,
        succession = case when found.heir is not null then found.how end, state = found.became,
        archived_at = case when found.became = 'archived' then coalesce(f.archived_at, now()) end
    from found where f.agent_id = %(agent_id)s and f.id = found.id
    returning f.id, f.row_version
)
insert into lifecycle.events (
    agent_id, memory_kind, memory_id, action, from_state, to_state, version_before, version_after, actor, reason, effective_at)
select %(agent_id)s, 'fact', found.id, 'redacted', found.was, found.became, found.row_version, changed.row_version, 'operator',
       'what it had given way to was erased', now()
from changed join found using (id)

-- name: lower_counts
-- A fact that had taken up an erased one no longer counts what was said for it.
with recursive heir as (
    select e.id, e.superseded_by as heir from heart.facts e
    where e.agent_id = %(agent_id)s and e.id = any(%(ids)s) and e.succession = 'merged'
    union all
    select h.id, f.superseded_by from heir h join heart.facts f on f.agent_id = %(agent_id)s and f.id = h.heir
    where f.succession = 'merged'
), lost as (
    select heir as id, (select count(*) from heart.statements s
                        where s.agent_id = %(agent_id)s and s.fact_id = any(array_agg(heir.id)) and s.taken_back_at is null) as count
    from heir where heir is not null and heir <> all(%(ids)s) group by heir
), old as (
    select f.id, f.state, f.row_version, greatest(f.confirmation_count - lost.count, 0)::integer as count
    from heart.facts f join lost using (id)
    where f.agent_id = %(agent_id)s
), changed as (
    update heart.facts f
    set confirmation_count = old.count,
        sources = coalesce((select jsonb_agg(named.source) from jsonb_array_elements_text(f.sources) named(source)
                            where named.source in (select s.source from heart.merged_into(f.agent_id, f.id) m(id)
                                             join heart.statements s on s.agent_id = f.agent_id and s.fact_id = m.id
                                             where s.id <> all(%(statements)s))), '[]')
    from old where f.agent_id = %(agent_id)s and f.id = old.id
    returning f.id, f.row_version
)
insert into lifecycle.events (
    agent_id, memory_kind, memory_id, action, from_state, to_state, version_before, version_after, actor, reason, effective_at)
select %(agent_id)s, 'fact', old.id, 'redacted', old.state, old.state, old.row_version, changed.row_version, 'operator',
       'what was merged into it was erased', now()
from changed join old using (id)

-- name: find_mentioning_facts
-- Those that were learned with erased words around them, as what replaced an erased fact was, or that perhaps replace one.
select id, context, perhaps_replaces from heart.facts
where agent_id = %(agent_id)s
  and (perhaps_replaces && %(ids)s::uuid[] or exists (select from unnest(%(quoted)s::text[]) q where strpos(context, q) > 0))
order by id

-- name: find_quoting_censors
select id, exceptions, last_activation from heart.censors
where agent_id = %(agent_id)s and exists (
    select from unnest(%(quoted)s::text[]) q where strpos(concat(exceptions, last_activation), q) > 0)
order by id

-- name: rewrite_memory
-- A memory that stays: what it says now without erased words or statements, and what follows from that.
with old as (
    select id, state, row_version from {table} where agent_id = %(agent_id)s and id = %(id)s for update
), changed as (
    update {table} f
    set ({given}) = (select {given_of_r} from jsonb_populate_record(f, %(values)s) r)
    from old where f.agent_id = %(agent_id)s and f.id = old.id
    returning f.id, f.row_version
)
insert into lifecycle.events (
    agent_id, memory_kind, memory_id, action, from_state, to_state, version_before, version_after, actor, reason, effective_at)
select %(agent_id)s, %(kind)s, old.id, 'redacted', old.state, old.state, old.row_version, changed.row_version, 'operator',
       %(reason)s, now()
from changed join old using (id)

-- name: drop_events_of_statements
-- What confirmed a fact by an erased statement can't be taken back any more.
delete from lifecycle.events e
where e.agent_id = %(agent_id)s
  and (e.after ->> 'statement' = any(%(statements)s::uuid[]::text[])
       or e.undoes in (select id from lifecycle.events u
                       where u.agent_id = %(agent_id)s and u.after ->> 'statement' = any(%(statements)s::uuid[]::text[])))

-- name: proposals_about
-- What a night proposed on it: what stays is about the others, and says no more why.
select id from lifecycle.proposals
where agent_id = %(agent_id)s and (targets && %(ids)s or exists (select from jsonb_array_elements(read_set) each where each ->> 'id' = any(%(ids)s::text[])))

-- name: blank_events
update lifecycle.events set reason = '[erased]'
where agent_id = %(agent_id)s and memory_id <> all(%(ids)s)
  and (proposal_id = any(%(proposals)s) or after ->> 'superseded_by' = any(%(ids)s::text[])
       or before ->> 'superseded_by' = any(%(ids)s::text[]) or (action = 'learned' and reason ~ any(%(ids)s::text[])))

-- name: blank_proposals
update lifecycle.proposals p
set reason = '[erased]', evidence = '{}', outcome = case when outcome is not null then '[erased]' end,
    targets = coalesce(nullif(array(select target from unnest(targets) target where target <> all(%(ids)s)), '{}'),
                       array(select distinct e.memory_id from lifecycle.events e where e.agent_id = p.agent_id and e.proposal_id = p.id)),
    read_set = coalesce((select jsonb_agg(each) from jsonb_array_elements(read_set) each
                         where each ->> 'id' <> all(%(ids)s::text[])), '[]'),
    changes = coalesce((select jsonb_agg(each) from jsonb_array_elements(changes) each
                        where each ->> 'id' <> all(%(ids)s::text[])
                          and coalesce(each #>> '{{set,to_id}}' <> all(%(ids)s::text[]), true)
                          and coalesce(each #>> '{{set,memory_a}}' <> all(%(ids)s::text[]), true)
                          and coalesce(each #>> '{{set,memory_b}}' <> all(%(ids)s::text[]), true)), '[]')
where p.agent_id = %(agent_id)s and p.id = any(%(proposals)s)

-- name: leave_recalls
-- What a context showed whatever was asked: the question stays, the id goes.
with shown as (
    select r.id, array_agg(s.id order by s.place) filter (where s.id <> all(%(ids)s)) as result_ids,
           array_agg(s.score order by s.place) filter (where s.id <> all(%(ids)s)) as result_scores
    from heart.recalls r cross join lateral unnest(r.result_ids, r.result_scores) with ordinality s(id, score, place)
    where r.agent_id = %(agent_id)s and r.result_ids && %(ids)s
    group by r.id
)
update heart.recalls r
set result_ids = coalesce(shown.result_ids, '{}'), result_scores = coalesce(shown.result_scores, '{}'),
    cited_ids = array(select id from unnest(r.cited_ids) id where id <> all(%(ids)s)),
    ignored_ids = array(select id from unnest(r.ignored_ids) id where id <> all(%(ids)s))
from shown where r.agent_id = %(agent_id)s and r.id = shown.id

-- name: leave_working_memory
update heart.working_memory
set items = coalesce((select jsonb_agg(item) from jsonb_array_elements(items) item
                      where coalesce(item ->> 'id' <> all(%(ids)s::text[]), true)), '[]')
where agent_id = %(agent_id)s and exists (
    select from jsonb_array_elements(items) item where item ->> 'id' = any(%(ids)s::text[]))

-- name: leave_decisions
update brain.decisions set episode_id = null where agent_id = %(agent_id)s and episode_id = any(%(ids)s)

-- name: delete_of_part
delete from {table} where agent_id = %(agent_id)s and ({condition})

-- name: count_of_part
select count(*) from {table} where agent_id = %(agent_id)s and ({condition})

-- name: forget_words
-- Words that no memory holds any more. What the counts do not know yet has words that go, so the night counts all again.
with unknown as (
    delete from heart.word_changes where agent_id = %(agent_id)s
), uncounted as (
    update heart.corpus_stats set total_length = null where agent_id = %(agent_id)s
)
delete from heart.term_stats s
where s.agent_id = %(agent_id)s
  and not exists (select from heart.postings p where p.agent_id = s.agent_id and p.lexeme = s.lexeme)

-- name: leave_announcements
-- What was announced of facts that stay may be in words that go.
update heart.outbox set payload = payload - 'content'
where agent_id = %(agent_id)s and memory_id = any(%(touched)s)

-- name: find_quoting
select ctid::text, {column}::text from {table}
where {agent} and exists (select from unnest(%(quoted)s::text[]) q where strpos({column}::text, q) > 0)

-- name: write_unquoted
update {table} set {column} = %(text)s::{type} where ctid = %(ctid)s::tid

-- name: of_agent
agent_id = %(agent_id)s

-- name: of_agents
(%(agent_id)s = any(agent_ids) or agent_ids = '{{}}')

-- name: drop_quoting_verdicts
delete from heart.judgements
where agent_id = %(agent_id)s and exists (select from unnest(%(quoted)s::text[]) q where strpos(reason, q) > 0)

-- name: bury_part
-- Hashes salted by the agent, as for an agent that is erased whole, and without the empty one that stands for all of it: of what
-- was said, unless something that stays says it too, of the ids, and of the user whose everything it was.
insert into lifecycle.tombstones (agent_hash, content_hash)
select encode(sha256(convert_to(%(agent_id)s, 'UTF8')), 'hex'), encode(sha256(convert_to(%(agent_id)s || E'\n' || what, 'UTF8')), 'hex')
from (
    (
        select kind || E'\n' || coalesce(full_text, '') as what from heart.memories where agent_id = %(agent_id)s and id = any(%(ids)s)
        union
        select E'fact\n' || content from heart.statements where agent_id = %(agent_id)s and id = any(%(statements)s)
        union
        select E'episode\n' || detail from heart.cold_texts
        where agent_id = %(agent_id)s and memory_id = any(%(ids)s) and detail is not null
        except
        select kind || E'\n' || coalesce(full_text, '') from heart.memories where agent_id = %(agent_id)s and id <> all(%(ids)s)
        except
        select E'fact\n' || content from heart.statements where agent_id = %(agent_id)s and id <> all(%(statements)s)
    )
    union select E'id\n' || id from unnest(%(ids)s::uuid[]) id
    union select E'user\n' || %(user_id)s::text where %(user_id)s::text is not null
) buried
on conflict (agent_hash, content_hash) do nothing

-- name: by_memory_id
memory_id = any(%(ids)s)

-- name: about_nothing_else
-- Proposals on it that changed nothing which stays.
(targets && %(ids)s or exists (select from jsonb_array_elements(read_set) each where each ->> 'id' = any(%(ids)s::text[])))
and not exists (select from lifecycle.events e
                where e.agent_id = proposals.agent_id and e.proposal_id = proposals.id and e.memory_id <> all(%(ids)s))

-- name: by_id
id = any(%(ids)s)

-- name: by_episode
episode_id = any(%(ids)s)

-- name: by_statement
id = any(%(statements)s)

-- name: by_session
session_id = any(%(sessions)s)

-- name: by_recall
id = any(%(recalls)s)

-- name: by_decision
id = any(%(decisions)s)

-- name: by_either_end
from_id = any(%(ids)s) or to_id = any(%(ids)s)

-- name: by_either_side
memory_a = any(%(ids)s) or memory_b = any(%(ids)s)

-- name: by_pair
pair_hash = any(%(pairs)s)

-- name: known_of
select id from heart.memories where agent_id = %(agent_id)s and id = any(%(ids)s::uuid[]) order by id

-- name: buried
-- Memories that came back, with an export or a backup, after they had been erased here, of this agent or of the one that was
-- exported. What went with a whole agent may come back under another name.
select distinct m.id from heart.memories m
cross join unnest(%(names)s::text[]) name
cross join unnest(array[m.kind || E'\n' || coalesce(m.full_text, ''), E'id\n' || m.id]) what
join lifecycle.tombstones t on t.agent_hash = encode(sha256(convert_to(name, 'UTF8')), 'hex')
 and t.content_hash = encode(sha256(convert_to(name || E'\n' || what, 'UTF8')), 'hex')
where m.agent_id = %(agent_id)s
  and not exists (select from lifecycle.tombstones w
                  where w.agent_hash = t.agent_hash and w.content_hash = '' and w.erased_at = t.erased_at)
order by m.id

-- name: buried_users
-- Users of whom everything was erased after the export: what they said since is theirs to keep.
select distinct u.user_id
from (
    select user_id from heart.memories where agent_id = %(agent_id)s
    union select user_id from heart.statements where agent_id = %(agent_id)s
    union select user_id from heart.recalls where agent_id = %(agent_id)s
    union select unnest(%(acting)s::text[])
) u cross join unnest(%(names)s::text[]) name
join lifecycle.tombstones t on t.agent_hash = encode(sha256(convert_to(name, 'UTF8')), 'hex')
 and t.content_hash = encode(sha256(convert_to(name || E'\nuser\n' || u.user_id, 'UTF8')), 'hex')
where t.erased_at > %(exported_at)s::timestamptz
order by 1
