-- Lists of memories of all kinds.

-- name: listed_rows
-- Memories of all kinds for lists. Each branch is a plain select, so that the planner pushes conditions down to its index.
select 'fact'::text as kind, id, agent_id, state, left(content, 1000) as text, subject as about, learned_at as at, trust, is_pinned,
       is_forgotten, source, user_id, project_id, confirmation_count, case when valid_from > now() then valid_from end as begins_at
from heart.facts
union all
select 'episode'::text, id, agent_id, state, left(coalesce(summary, compressed, detail, index_word, ''), 1000), title, started_at, trust, is_pinned,
       is_forgotten, source, user_id, project_id, 0, null
from heart.episodes
union all
select 'procedure'::text, id, agent_id, state, name, domain, learned_at, trust, is_pinned, is_forgotten, source, user_id, project_id, 0, null
from heart.procedures
union all
select 'censor'::text, id, agent_id, state, left(concat_ws(': ', trigger, nullif(reason, trigger)), 1000), severity, learned_at, trust, is_pinned, is_forgotten, source, user_id, project_id, 0, null
from heart.censors

-- name: list_memories
-- The latest memories that fit, from where the page before ended. Collation C lower-cases A to Z only, and is four times
-- as fast as that of a language. `like` has the planner expect few rows.
select {columns} from ({rows}) m
where agent_id = %(agent_id)s and kind = any(%(kinds)s) and state = any(%(states)s)
  and (%(about)s::text is null or lower(about collate "C") like lower(%(about)s collate "C"))
  and (%(source)s::text is null or lower(source collate "C") like lower(%(source)s collate "C"))
  and (%(user_id)s::text is null or user_id = %(user_id)s)
  and (%(project_id)s::text is null or project_id = %(project_id)s)
  and at >= coalesce(%(since)s::timestamptz, '-infinity') and at < coalesce(%(until)s::timestamptz, 'infinity')
  and at <= coalesce(%(before_at)s::timestamptz, 'infinity')
  and (at, id) < (coalesce(%(before_at)s::timestamptz, 'infinity'), coalesce(%(before_id)s::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff'))
order by at desc, id desc
limit %(limit)s

-- name: place_of
-- Where a memory stands in a list.
select at from ({rows}) m where agent_id = %(agent_id)s and id = %(id)s

-- name: named_memories
-- Some memories by their ids.
select {columns} from ({rows}) m where agent_id = %(agent_id)s and id = any(%(ids)s::uuid[])
