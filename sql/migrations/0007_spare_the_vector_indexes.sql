-- A night changes thousands of memories and none of their vectors. A quarter of each page is left free for the next
-- version of one of its rows, which then needs no entry in any index; pages that are full already follow as they change.
alter table heart.facts set (fillfactor = 75);
alter table heart.episodes set (fillfactor = 75);
alter table heart.procedures set (fillfactor = 75);
alter table heart.censors set (fillfactor = 75);

-- The vector indexes hold what can be recalled, so that retiring a memory does not enter it once more.
create or replace function heart.index_embedding_space(space text) returns void
    language plpgsql as $$
declare
    width integer;
    kind text;
    recalled text;
begin
    select dimensions into strict width from heart.embedding_spaces where id = space;
    for kind, recalled in values
        ('facts', 'state = ''active'''), ('episodes', 'state in (''open'', ''closed'')'),
        ('procedures', 'state in (''active'', ''review'')'), ('censors', 'state = ''active''')
    loop
        execute format(
            'create index if not exists %I on heart.%I using hnsw ((embedding::halfvec(%s)) halfvec_cosine_ops) with (m = 24, ef_construction = 100) where embedding_space_id = %L and %s',
            kind || '_hnsw_' || left(md5(space), 8), kind, width, space, recalled);
        execute format(
            'create index if not exists %I on heart.%I using hnsw ((context_embedding::halfvec(%s)) halfvec_cosine_ops) with (m = 24, ef_construction = 100) where embedding_space_id = %L and %s and context_embedding is not null',
            kind || '_context_hnsw_' || left(md5(space), 8), kind, width, space, recalled);
    end loop;
end $$;

do $$
declare
    name text;
begin
    for name in select indexname from pg_indexes where schemaname = 'heart' and indexdef ilike '%using hnsw%' loop
        execute format('drop index heart.%I', name);
    end loop;
    set local maintenance_work_mem = '512MB';
    set local max_parallel_maintenance_workers = 0;  -- workers share memory, of which a container may have too little
    perform heart.index_embedding_space(id) from heart.embedding_spaces;
end $$;
