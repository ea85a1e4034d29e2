-- name: was_erased
select exists (
    select from lifecycle.tombstones where agent_hash = encode(sha256(convert_to(%(agent_id)s, 'UTF8')), 'hex'))

-- name: has_rows
select exists (select from {table} where agent_id = %(agent_id)s)

-- name: columns_of
select attname from pg_attribute
where attrelid = %(table)s::regclass and attnum > 0 and not attisdropped and attgenerated = '' and attidentity = ''

-- name: store_agent
insert into heart.agents (id, embedding_space_id) values (%(agent_id)s, %(space_id)s) on conflict (id) do nothing

-- name: move_agent
update heart.agents set embedding_space_id = %(space_id)s where id = %(agent_id)s and embedding_space_id <> %(space_id)s

-- name: store_rows
insert into {table} ({columns}) select {columns} from jsonb_populate_recordset(null::{table}, %(rows)s)

-- name: store_plans
-- A plan is known by its hash: where the night was run here, it is here.
insert into {table} ({columns}) select {columns} from jsonb_populate_recordset(null::{table}, %(rows)s)
on conflict (hash) do nothing

-- name: find_event
select id from lifecycle.events
where agent_id = %(agent_id)s and memory_id = %(memory_id)s and version_after = %(version_after)s
