-- The night counted the words of all memories of an agent of which one had changed. Now a memory that comes or changes leaves
-- a row with its words, and the night adds these to its counts. Those that are there are counted once more.
alter table heart.corpus_stats drop column since_xid, add column total_length bigint, add column total_context_length bigint,
    add column longer_count integer;

-- What these counts do not know yet: a memory that came (1), or one whose words went (-1), where they changed with one each.
create table heart.word_changes (
    id             bigint generated always as identity,
    agent_id       text not null,
    memory_kind    text not null check (memory_kind in ('fact', 'episode', 'procedure', 'censor')),
    change         smallint not null check (change in (-1, 1)),
    lexemes        text[] not null,
    length         integer not null,
    context_length integer,                                   -- of what was said around it alone; null without
    has_context    boolean not null,                          -- whether it has a vector of that
    primary key (agent_id, id)
);

-- Keeps postings and word counts true to the text, whoever writes it, and notes what `term_stats` has to learn of it.
create or replace function heart.index_words() returns trigger
    language plpgsql set plan_cache_mode = force_generic_plan as $$
declare
    own tsvector;
    around tsvector;
begin
    if tg_op = 'UPDATE' then
        if heart.searchable(new) is not distinct from heart.searchable(old)
           and heart.surrounding(new) is not distinct from heart.surrounding(old)
           and (new.context_embedding is null) = (old.context_embedding is null) then
            return new;
        end if;
        delete from heart.postings where agent_id = old.agent_id and memory_id = old.id;
        insert into heart.word_changes (agent_id, memory_kind, change, lexemes, length, context_length, has_context)
        values (old.agent_id, tg_argv[0], -1, tsvector_to_array(heart.lexemes(heart.searchable(old))), old.word_count,
                nullif(greatest(old.context_word_count - old.word_count, 0), 0), old.context_embedding is not null);
    end if;
    own := heart.lexemes(heart.searchable(new));
    around := heart.lexemes(heart.surrounding(new) || ' ' || heart.searchable(new));
    insert into heart.postings (agent_id, lexeme, memory_id, memory_kind, term_count, context_term_count)
    select new.agent_id, lexeme, new.id, tg_argv[0], coalesce(cardinality(o.positions), 0), coalesce(cardinality(a.positions), 0)
    from unnest(own) o full join unnest(around) a using (lexeme);
    new.word_count := (select coalesce(sum(cardinality(positions)), 0) from unnest(own));
    new.context_word_count := (select coalesce(sum(cardinality(positions)), 0) from unnest(around));
    insert into heart.word_changes (agent_id, memory_kind, change, lexemes, length, context_length, has_context)
    values (new.agent_id, tg_argv[0], 1, tsvector_to_array(own), new.word_count,
            nullif(greatest(new.context_word_count - new.word_count, 0), 0), new.context_embedding is not null);
    return new;
end $$;
