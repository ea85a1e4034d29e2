-- What recall among four kinds asks of the database.

-- How many memories there are of a kind, and how long they are. Derived from the memories and counted anew every night;
-- until then recall counts a bounded number itself.
drop table heart.corpus_stats;
create table heart.corpus_stats (
    agent_id               text not null,
    memory_kind            text not null check (memory_kind in ('fact', 'episode', 'procedure', 'censor')),
    memory_count           integer not null,
    context_count          integer not null,
    average_length         real not null,
    average_context_length real not null,
    refreshed_at           timestamptz not null default now(),
    primary key (agent_id, memory_kind)
);

-- The vector indexes, in half precision and with more neighbours a node. They are made anew for every embedding space.
create or replace function heart.index_embedding_space(space text) returns void
    language plpgsql as $$
declare
    width integer;
    kind text;
begin
    select dimensions into strict width from heart.embedding_spaces where id = space;
    foreach kind in array array['facts', 'episodes', 'procedures', 'censors'] loop
        execute format(
            'create index if not exists %I on heart.%I using hnsw ((embedding::halfvec(%s)) halfvec_cosine_ops) with (m = 24, ef_construction = 100) where embedding_space_id = %L',
            kind || '_hnsw_' || left(md5(space), 8), kind, width, space);
        execute format(
            'create index if not exists %I on heart.%I using hnsw ((context_embedding::halfvec(%s)) halfvec_cosine_ops) with (m = 24, ef_construction = 100) where embedding_space_id = %L and context_embedding is not null',
            kind || '_context_hnsw_' || left(md5(space), 8), kind, width, space);
    end loop;
end $$;

do $$
declare
    name text;
begin
    for name in select indexname from pg_indexes where schemaname = 'heart' and indexdef like '%vector_cosine_ops%' loop
        execute format('drop index heart.%I', name);
    end loop;
    set local maintenance_work_mem = '512MB';
    set local max_parallel_maintenance_workers = 0;  -- workers share memory, of which a container may have too little
    perform heart.index_embedding_space(id) from heart.embedding_spaces;
end $$;
