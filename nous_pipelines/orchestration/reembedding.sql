-- name: unembedded
-- Memories in some buckets (the last digit of the id) without a vector of a space for their present version.
select m.id, m.row_version, {texts}
from {table} m
where m.agent_id = %(agent_id)s and m.id > %(after)s and right(m.id::text, 1) = any(%(buckets)s)
  and m.embedding is not null and m.embedding_space_id <> %(space_id)s
  and not exists (
      select from heart.next_embeddings n
      where n.agent_id = m.agent_id and n.memory_id = m.id and n.embedding_space_id = %(space_id)s
        and n.row_version = m.row_version)
order by m.id
limit %(limit)s

-- name: texts_of_fact
m.content, m.subject, m.context

-- name: texts_of_episode
m.title, m.summary, left(m.detail, {characters}) as detail, coalesce(m.compressed, m.index_word) as rest

-- name: texts_of_procedure
m.name, m.trigger, m.domain, m.goals, m.core_patterns, m.core_tools, m.core_concepts, m.implementation_notes, m.steps

-- name: texts_of_censor
m.trigger

-- name: store_next
-- Stores the vector of the next space, and a copy of the one in use with the version that the move makes: moving back is
-- then a move as well. Nothing if the memory changed meanwhile, or was erased.
insert into heart.next_embeddings as n (
    agent_id, memory_id, memory_kind, embedding_space_id, embedding, context_embedding, row_version)
select m.agent_id, m.id, %(kind)s, v.embedding_space_id, v.embedding, v.context_embedding, v.row_version
from {table} m
cross join lateral (
    values (%(space_id)s, %(embedding)s::vector, %(context_embedding)s::vector, m.row_version),
           (m.embedding_space_id, m.embedding, m.context_embedding, m.row_version + 1)
) v(embedding_space_id, embedding, context_embedding, row_version)
where m.agent_id = %(agent_id)s and m.id = %(id)s and m.row_version = %(row_version)s
  and m.embedding_space_id <> %(space_id)s
on conflict (agent_id, memory_id, embedding_space_id) do update
set embedding = excluded.embedding, context_embedding = excluded.context_embedding, row_version = excluded.row_version

-- name: due
-- For each agent, how many memories are in another space than this one, and how many of them have no vector of it.
select m.agent_id, count(*), count(*) filter (where n.memory_id is null)
from {table} m
left join heart.next_embeddings n on n.agent_id = m.agent_id and n.memory_id = m.id
    and n.embedding_space_id = %(space_id)s and n.row_version = m.row_version
where m.agent_id = any(%(agent_ids)s) and m.embedding is not null and m.embedding_space_id <> %(space_id)s
group by m.agent_id

-- name: hold_space
-- An exclusive lock: waits for the calls that store vectors of this agent, and keeps others from starting.
select pg_advisory_xact_lock(hashtextextended('space:' || %(agent_id)s, 0))

-- name: plan_for_many
-- For an agent that is newer than the statistics of the tables the planner expects one row, and would join thousands in
-- nested loops.
select set_config('enable_nestloop', 'off', true)

-- name: spaces
select id, embedding_space_id from heart.agents where id = any(%(agent_ids)s)

-- name: move_agent
update heart.agents set embedding_space_id = %(space_id)s where id = %(agent_id)s

-- name: clear
-- After the move: the memories have these vectors themselves.
delete from heart.next_embeddings where agent_id = %(agent_id)s and embedding_space_id = %(space_id)s

-- name: index_names
-- The vector indexes of a space, and whether each is valid: one whose building was interrupted is not used.
select c.relname, i.indisvalid
from pg_index i join pg_class c on c.oid = i.indexrelid join pg_namespace s on s.oid = c.relnamespace
where s.nspname = 'heart' and c.relname like '%%\_hnsw\_' || left(md5(%(space_id)s), 8)

-- name: drop_index
drop index concurrently if exists heart.{name}

-- name: build_index
-- As heart.index_embedding_space builds them, but without locking out writers.
create index concurrently if not exists {name} on heart.{table}
    using hnsw (({column}::halfvec({dimensions})) halfvec_cosine_ops) with (m = 24, ef_construction = 100)
    where embedding_space_id = {space_id} and {recalled}{has_context}

-- name: facts_recalled
state = 'active'

-- name: episodes_recalled
state in ('open', 'closed')

-- name: procedures_recalled
state in ('active', 'review')

-- name: censors_recalled
state = 'active'

-- name: has_context
 and context_embedding is not null
