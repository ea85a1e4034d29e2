-- An agent whose decisions live elsewhere names them as they are named there: abc123 as well as an id of brain.decisions.
-- A new column each, since another type for an old one would write every row and every vector index anew. No version of a
-- memory is new, so none asks for an event, and a statement says the same as before.
do $$
declare
    place text;
    name text;
    kind text;
begin
    for place, name, kind in values
        ('heart.episodes', 'decision_ids', 'text[]'),
        ('heart.facts', 'source_decision_id', 'text'),
        ('heart.statements', 'decision_id', 'text'),
        ('heart.procedures', 'related_decision_ids', 'text[]'),
        ('heart.censors', 'learned_from_decision_id', 'text')
    loop
        execute format('alter table %s no force row level security', place);
        execute format('alter table %s disable trigger user', place);
        execute format('alter table %s rename column %I to old_id', place, name);
        if kind = 'text' then
            execute format('alter table %s add column %I text check (char_length(%I) between 1 and 200)', place, name, name);
            execute format('update %s set %I = old_id::text where old_id is not null', place, name);
        else
            execute format('alter table %s alter column old_id drop not null', place);  -- its name is free for the new one
            execute format('alter table %s add column %I text[] not null default ''{}''', place, name);
            execute format('update %s set %I = old_id::text[] where old_id <> ''{}''', place, name);
        end if;
        set constraints all immediate;
        execute format('alter table %s enable trigger user', place);
        execute format('alter table %s drop column old_id', place);
    end loop;
end $$;

-- What the agent calls a decision of its own.
alter table brain.decisions add column reference text check (char_length(reference) between 1 and 200);
create unique index decisions_reference on brain.decisions (agent_id, reference);
