-- name: lock_moving
-- Everything that is not in a space yet, in id order, before the first of it is changed; and how much that is.
select count(*) from (
    select from {table}
    where agent_id = %(agent_id)s and embedding is not null and embedding_space_id <> %(space_id)s
    order by id for no key update
) locked

-- name: move_memories
-- The vectors of another space take the place of those there are, where they were made from the memory as it is now. The
-- event holds from the memory's beginning: it says nothing new, so no night of the past sees it as changed since.
with old as materialized (
    select m.id, m.embedding_space_id, n.embedding, n.context_embedding
    from {table} m
    join heart.next_embeddings n on n.agent_id = m.agent_id and n.memory_id = m.id and n.row_version = m.row_version
    where m.agent_id = %(agent_id)s and n.agent_id = %(agent_id)s and n.embedding_space_id = %(space_id)s
      and m.embedding is not null and m.embedding_space_id <> %(space_id)s
), changed as (
    update {table} m
    set embedding = old.embedding, context_embedding = old.context_embedding, embedding_space_id = %(space_id)s
    from old
    where m.agent_id = %(agent_id)s and m.id = old.id
    returning m.id, m.state, m.{began_at} as began_at, m.row_version, old.embedding_space_id
)
insert into lifecycle.events (
    agent_id, memory_kind, memory_id, action, from_state, to_state, version_before, version_after, before, after,
    actor, reason, effective_at, run_id)
select %(agent_id)s, %(kind)s, id, %(action)s, state, state, row_version - 1, row_version,
       jsonb_build_object('embedding_space_id', embedding_space_id),
       jsonb_build_object('embedding_space_id', %(space_id)s::text), 'operator', %(reason)s, began_at, %(run_id)s
from changed
