-- name: forget_indexes
-- Adding a hundred thousand rows to an index over vectors takes minutes; making it anew takes seconds.
do $$
declare
    name text;
begin
    for name in select indexname from pg_indexes where schemaname = 'heart' and indexname like 'facts_%hnsw%' loop
        execute format('drop index heart.%I', name);
    end loop;
end $$

-- name: begin_loading
set local session_replication_role = replica

-- name: store_space
insert into heart.embedding_spaces (id, model, weights_sha256, dimensions) values (%(id)s, 'drawn', '', %(dimensions)s)
on conflict do nothing

-- name: store_agent
insert into heart.agents (id, embedding_space_id) values (%(agent_id)s, %(space_id)s) on conflict do nothing

-- name: make_drawn
create temporary table drawn (place bigint generated always as identity, content text, embedding vector)

-- name: copy_drawn
copy drawn (content, embedding) from stdin (format binary)

-- name: store_facts
-- With an index word, as what was learned has: levels that are null then repeat the text.
insert into heart.facts (agent_id, content, subject, index_word, learned_at, embedding, embedding_space_id, word_count)
select %(agent_id)s, content, 'subject ' || place %% 5000, 'subject ' || place %% 5000, now() - place * interval '1 minute', embedding, %(space_id)s,
       (select coalesce(sum(cardinality(positions)), 0) from unnest(heart.lexemes(content || ' subject ' || place %% 5000)))
from drawn order by place

-- name: store_postings
insert into heart.postings (agent_id, lexeme, memory_id, memory_kind, term_count, context_term_count)
select f.agent_id, w.lexeme, f.id, 'fact', cardinality(w.positions), 0
from heart.facts f cross join lateral unnest(heart.lexemes(heart.searchable(f))) w
where f.agent_id = %(agent_id)s
order by w.lexeme, f.id
on conflict do nothing

-- name: store_events
insert into lifecycle.events (
    agent_id, memory_kind, memory_id, action, from_state, to_state, version_before, version_after, actor, reason, effective_at)
select agent_id, 'fact', id, 'learned', 'new', state, 0, row_version, 'import', 'drawn', learned_at
from heart.facts where agent_id = %(agent_id)s
on conflict do nothing

-- name: drop_drawn
drop table drawn

-- name: allow_memory
select set_config('maintenance_work_mem', '1GB', false), set_config('max_parallel_maintenance_workers', '2', false)

-- name: index_space
select heart.index_embedding_space(id) from heart.embedding_spaces where id = 'drawn-384'

-- name: vacuum_facts
vacuum analyze heart.facts

-- name: vacuum_postings
vacuum analyze heart.postings

-- name: vacuum_events
vacuum analyze lifecycle.events

-- name: make_bare
create table bare (id uuid primary key default heart.new_id(), content text, embedding vector(384))

-- name: fill_bare
insert into bare (content, embedding) select content, embedding from heart.facts order by id

-- name: index_bare
create index on bare using hnsw (embedding vector_cosine_ops)

-- name: vacuum_bare
vacuum analyze bare

-- name: query_bare
select id, content from bare order by embedding <=> %s limit 10

-- name: insert_bare
insert into bare (content, embedding) values (%s, %s)

-- name: drop_bare
drop table bare

-- name: exact_nearest
-- The addition keeps the index away.
select id from heart.facts where agent_id = %(agent_id)s order by (embedding <=> %(embedding)s) + 0 limit 10

-- name: count_strangers
select count(*) from heart.facts where id = any(%(ids)s) and agent_id <> %(agent_id)s
