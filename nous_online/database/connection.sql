-- name: begin_call
-- Everything is transaction-local: a setting that outlived its transaction would speak for the wrong agent
-- when the pool lends the connection to the next caller. The lock is shared by all calls of an agent; erasing it
-- takes it alone, so that no call adds to what is being erased. The second is shared by the calls that store vectors;
-- moving an agent to another embedding space takes it alone, so that no vector of the old one arrives after the move.
select set_config('nous.agent_id', %(agent_id)s, true),
       set_config('statement_timeout', %(timeout)s, true),
       set_config('lock_timeout', %(timeout)s, true),
       set_config('synchronous_commit', 'on', true),
       set_config('hnsw.iterative_scan', 'strict_order', true),
       case when %(agent_id)s <> '' then pg_advisory_xact_lock_shared(hashtextextended('agent:' || %(agent_id)s, 0))::text end,
       case when %(keeps_space)s then pg_advisory_xact_lock_shared(hashtextextended('space:' || %(agent_id)s, 0))::text end

-- name: take_role
select set_config('role', %s, true)

-- name: find_space
select weights_sha256, dimensions from heart.embedding_spaces where id = %s

-- name: store_space
insert into heart.embedding_spaces (id, model, weights_sha256, dimensions)
values (%(id)s, %(model)s, %(weights_sha256)s, %(dimensions)s)
on conflict (id) do nothing

-- name: index_space
select heart.index_embedding_space(%s)
