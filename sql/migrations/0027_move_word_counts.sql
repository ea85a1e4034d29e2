-- The night counted the words of all memories of an agent of which one had changed. Now a memory that comes or changes leaves
-- a row with its words, and the night adds these to its counts. Those that are there are counted once more.
alter table heart.corpus_stats drop column since_xid, add column total_length bigint, add column total_context_length bigint,
    add column longer_count integer;

-- What these counts do not know yet: of a memory that came all there is to count, of one that changed the differences.
create table heart.word_changes (
    id             bigint generated always as identity,
    agent_id       text not null,
    memory_kind    text not null check (memory_kind in ('fact', 'episode', 'procedure', 'censor')),
    memory_count   smallint not null,                         -- 1 for one that came, 0 for one that changed
    context_count  smallint not null,                         -- of vectors of what was said around it
    length         integer not null,
    context_length integer not null,                          -- of what was said around it alone
    longer_count   smallint not null,                         -- of memories with words around them
    come           text[] not null,                           -- lexemes that occur in it now, and did not before
    gone           text[] not null,
    primary key (agent_id, id)
);

-- Keeps postings and word counts true to the text, whoever writes it, and notes what `term_stats` has to learn of it.
create or replace function heart.index_words() returns trigger
    language plpgsql set plan_cache_mode = force_generic_plan as $$
declare
    own tsvector;
    around tsvector;
    lost text[];
begin
    if tg_op = 'UPDATE' and heart.searchable(new) is not distinct from heart.searchable(old)
       and heart.surrounding(new) is not distinct from heart.surrounding(old)
       and (new.context_embedding is null) = (old.context_embedding is null) then
        return new;
    end if;
    own := heart.lexemes(heart.searchable(new));
    around := heart.lexemes(heart.surrounding(new) || ' ' || heart.searchable(new));
    if tg_op = 'UPDATE' then
        with wanted as materialized (
            select lexeme, coalesce(cardinality(o.positions), 0) as own_count, coalesce(cardinality(a.positions), 0) as around_count
            from unnest(own) o full join unnest(around) a using (lexeme)
        ), gone as (
            delete from heart.postings p
            where p.agent_id = old.agent_id and p.memory_id = old.id and not exists (
                select from wanted w
                where w.lexeme = p.lexeme and w.own_count = p.term_count and w.around_count = p.context_term_count)
            returning p.lexeme, p.term_count
        )
        select array_agg(lexeme) from gone where term_count > 0 into lost;
    end if;
    new.word_count := (select coalesce(sum(cardinality(positions)), 0) from unnest(own));
    new.context_word_count := (select coalesce(sum(cardinality(positions)), 0) from unnest(around));
    with come as (
        insert into heart.postings (agent_id, lexeme, memory_id, memory_kind, term_count, context_term_count)
        select new.agent_id, lexeme, new.id, tg_argv[0], coalesce(cardinality(o.positions), 0), coalesce(cardinality(a.positions), 0)
        from unnest(own) o full join unnest(around) a using (lexeme)
        where tg_op = 'INSERT' or not exists (
            select from heart.postings p
            where p.agent_id = new.agent_id and p.lexeme = coalesce(o.lexeme, a.lexeme) and p.memory_id = new.id)
        returning lexeme, term_count
    )
    insert into heart.word_changes (
        agent_id, memory_kind, memory_count, context_count, length, context_length, longer_count, come, gone)
    select new.agent_id, tg_argv[0], (tg_op = 'INSERT')::integer,
           (new.context_embedding is not null)::integer - (old.context_embedding is not null)::integer,
           new.word_count - coalesce(old.word_count, 0),
           greatest(new.context_word_count - new.word_count, 0) - greatest(old.context_word_count - old.word_count, 0),
           (new.context_word_count > new.word_count)::integer - coalesce(old.context_word_count > old.word_count, false)::integer,
           array(select lexeme from come where term_count > 0), coalesce(lost, '{}');
    return new;
end $$;
