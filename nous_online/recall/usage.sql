-- name: log_recall
-- What was asked and found, and a count for each memory found. In id order, so that two recalls that found the same
-- memories don't wait for each other in a circle.
with logged as (
    insert into heart.recalls (
        id, agent_id, recalled_at, query, query_embedding, embedding_space_id, types, result_limit, frame,
        active_censors, as_of, session_id, result_ids, result_scores, user_id)
    values (
        %(id)s, %(agent_id)s, %(recalled_at)s, %(query)s, %(query_embedding)s, %(space_id)s, %(types)s, %(limit)s,
        %(frame)s, %(active_censors)s, %(as_of)s, %(session_id)s, %(result_ids)s, %(result_scores)s, %(user_id)s)
)
insert into heart.usage (agent_id, memory_id, memory_kind, retrieved_count, last_used_at)
select %(agent_id)s, memory_id, kind, 1, %(recalled_at)s
from unnest(%(result_ids)s::uuid[], %(kinds)s::text[]) found(memory_id, kind)
order by memory_id
on conflict (agent_id, memory_id) do update
set retrieved_count = usage.retrieved_count + 1, last_used_at = greatest(usage.last_used_at, excluded.last_used_at)

-- name: lock_recall
select result_ids, cited_ids, ignored_ids from heart.recalls where agent_id = %(agent_id)s and id = %(recall_id)s for update

-- name: store_cited
update heart.recalls set cited_ids = cited_ids || %(ids)s::uuid[] where agent_id = %(agent_id)s and id = %(recall_id)s

-- name: store_ignored
update heart.recalls set ignored_ids = ignored_ids || %(ids)s::uuid[] where agent_id = %(agent_id)s and id = %(recall_id)s

-- name: count_cited
-- Locked in id order first, as in `log_recall`: an update locks its rows in whatever order it finds them.
with used as materialized (
    select memory_id from heart.usage where agent_id = %(agent_id)s and memory_id = any(%(ids)s::uuid[])
    order by memory_id for no key update
)
update heart.usage u set cited_count = cited_count + 1, last_used_at = greatest(last_used_at, %(at)s)
from used where u.agent_id = %(agent_id)s and u.memory_id = used.memory_id

-- name: count_ignored
with used as materialized (
    select memory_id from heart.usage where agent_id = %(agent_id)s and memory_id = any(%(ids)s::uuid[])
    order by memory_id for no key update
)
update heart.usage u set ignored_count = ignored_count + 1
from used where u.agent_id = %(agent_id)s and u.memory_id = used.memory_id
