-- name: prepare_context
-- A name for the context, whether the server takes a note of it, and settings for this transaction only: what follows is planned once a connection, for any
-- agent. A log entry that a crash of the server loses costs less than waiting for the disk.
select heart.new_id(), current_setting('transaction_read_only') = 'off',
       set_config('plan_cache_mode', 'force_generic_plan', true), set_config('jit', 'off', true),
       set_config('synchronous_commit', 'off', true)

-- name: columns_of_kind
f.id, {kind}::text as kind, {shown}, f.summary, f.compressed, f.index_word, f.state, f.source, f.source_kind, f.scope, f.user_id, f.project_id, f.trust,
f.is_pinned, f.encoded_censors, f.rank_weight::float8 as rank_weight

-- name: section
-- What belongs into a context whatever is asked: of each section the first, up to its limit, in the order of its ranks.
(select {section}::text as section, row_number() over () as place, ordered.*
 from (select {columns}
       from {table} f
       where f.agent_id = %(agent_id)s and {visible} and {in_reach} and {condition}
       order by {order}
       limit {limit}) ordered)

-- name: is_pinned
f.is_pinned

-- name: is_of_category
f.category = {category}

-- name: is_any
true

-- name: is_told
-- An episode that nobody has written up yet has nothing to show.
f.state = 'closed' and coalesce(f.summary, f.compressed, f.title) is not null

-- name: is_recent_failure
-- The week is for the index: an episode that ended lately has seldom begun before.
f.outcome = 'failure' and f.started_at > %(recent_from)s::timestamptz - interval '1 week'
and coalesce(f.ended_at, f.started_at) > %(recent_from)s
and (%(file)s::text is null or exists (
    select from heart.episode_artifacts a
    where a.agent_id = f.agent_id and a.episode_id = f.id and a.kind = 'file' and {reference} = %(file)s)
    or strpos(concat_ws(' ', f.title, f.summary), %(file)s) > 0)

-- name: is_blocking
f.severity in ('block', 'absolute')

-- name: by_learning
f.learned_at desc, f.id

-- name: by_start
f.started_at desc, f.id

-- name: by_use
(f.success_count - f.failure_count) desc, f.activation_count desc, f.learned_at desc, f.id

-- name: by_severity
f.severity, f.activation_count desc, f.learned_at desc, f.id

-- name: contradictions
-- Open ones whose two facts both stand and are in reach, of some facts or of any, the latest first; two rows each.
select c.id as pair, c.detected_at, {columns}
from (
    select id, memory_a, memory_b, detected_at
    from heart.contradictions c
    where c.agent_id = %(agent_id)s and c.detected_at <= %(at)s and (c.status = 'open' or c.resolved_at > %(at)s)
      and (%(ids)s::uuid[] is null or c.memory_a = any(%(ids)s) or c.memory_b = any(%(ids)s))
      and (select count(*) from heart.facts f
           where f.agent_id = %(agent_id)s and f.id in (c.memory_a, c.memory_b) and {visible} and {in_reach}) = 2
    order by c.detected_at desc, c.id
    limit %(pairs)s
) c
join heart.facts f on f.agent_id = %(agent_id)s and f.id in (c.memory_a, c.memory_b)
order by c.detected_at desc, c.id, f.learned_at, f.id

-- name: decisions
-- What is still pending, and what succeeded for the file: for the file first, then in the session, then by the words shared
-- with the task. A decision is of nobody in particular: for one user or project, only what bears on what is being done.
select *
from (
    select d.id, d.title, d.rationale, case when d.resolved_at > %(at)s then 'pending' else d.status end as status, d.files,
           d.tags, d.decided_at, own.is_of_file,
           coalesce(d.session_id = %(session_id)s::text, false) as is_of_session,
           (select count(*) from unnest(heart.lexemes(concat_ws(' ', d.title, array_to_string(d.tags, ' ')))) own
            join unnest(heart.lexemes(%(task)s::text)) told using (lexeme))::integer as shared_words
    from brain.decisions d
    cross join lateral (
        select coalesce(bool_or({file} = %(file)s::text), false) as is_of_file from unnest(d.files) file
    ) own
    where d.agent_id = %(agent_id)s and d.decided_at <= %(at)s
      and (d.status = 'pending' or d.resolved_at > %(at)s or d.status = 'succeeded' and own.is_of_file)
) d
where %(user_id)s::text is null and %(project_id)s::text is null or is_of_file or is_of_session or shared_words > 1
order by is_of_file desc, is_of_session desc, shared_words desc, decided_at desc, id
limit {limit}

-- name: named
-- Memories by their ids, and those linked to some, as far as they stand and are in reach.
with linked as (
    select id, max(weight)::float8 as weight
    from (
        select to_id as id, weight from heart.links where agent_id = %(agent_id)s and from_id = any(%(linked_from)s::uuid[])
        union all
        select from_id, weight from heart.links where agent_id = %(agent_id)s and to_id = any(%(linked_from)s::uuid[])
    ) either
    where id <> all(%(ids)s::uuid[])
    group by id
    order by weight desc, id
    limit {links}
), wanted as materialized (
    select id, null::float8 as weight from unnest(%(ids)s::uuid[]) id
    union all
    select id, weight from linked where id <> all(%(linked_from)s::uuid[])
)
{kinds}

-- name: named_of_kind
select w.weight, {columns}
from wanted w join {table} f on f.agent_id = %(agent_id)s and f.id = w.id
where {visible} and {in_reach}

-- name: use_counts
select memory_id, cited_count * 2 + retrieved_count from heart.usage
where agent_id = %(agent_id)s and memory_id = any(%(ids)s::uuid[])

-- name: log_context
-- One recall, marked as a context; it is no probe of the nights, for much of it no question would find. What stands
-- there whatever is asked is not counted as retrieved, or being shown would keep it from ever being forgotten.
with logged as (
    insert into heart.recalls (
        id, agent_id, recalled_at, query, types, result_limit, frame, active_censors, as_of, session_id, result_ids,
        result_scores, user_id)
    values (
        %(id)s, %(agent_id)s, %(at)s, %(query)s, %(types)s, %(limit)s, %(frame)s, %(active_censors)s, %(as_of)s,
        %(session_id)s, %(result_ids)s, %(result_scores)s, %(user_id)s)
)
insert into heart.usage (agent_id, memory_id, memory_kind, retrieved_count, last_used_at)
select %(agent_id)s, memory_id, kind, retrieved, case when retrieved > 0 then %(at)s end
from unnest(%(result_ids)s::uuid[], %(kinds)s::text[], %(retrieved)s::integer[]) found(memory_id, kind, retrieved)
order by memory_id
on conflict (agent_id, memory_id) do update
set retrieved_count = usage.retrieved_count + excluded.retrieved_count,
    last_used_at = greatest(usage.last_used_at, excluded.last_used_at)
