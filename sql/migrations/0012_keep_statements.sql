-- Statements are evidence, facts are beliefs: whatever is said is kept word for word, whichever fact it was taken for.

-- Row-level security binds the owner as well; the grants, given anew after every migration, force it again. No version of
-- a fact is new, so none asks for an event.
alter table heart.facts no force row level security;
alter table heart.episodes no force row level security;
alter table lifecycle.events no force row level security;
alter table heart.facts disable trigger user;

-- How a fact gave way: to one that says the same, or to one that says otherwise.
alter table heart.facts add column succession text check (succession in ('merged', 'replaced'));
update heart.facts f
set succession = coalesce((
    select case when e.action = 'merged' or e.reason like 'contradiction resolved: merged%' then 'merged' end
    from lifecycle.events e
    where e.agent_id = f.agent_id and e.memory_id = f.id and e.after ->> 'superseded_by' = f.superseded_by::text
    order by e.version_after desc
    limit 1), 'replaced')
where superseded_by is not null;
alter table heart.facts add constraint succession_says_how check ((superseded_by is null) = (succession is null));
alter table heart.facts enable trigger user;

-- What was said, word for word: the evidence a fact rests on. A fact is what the agent believes; it can be merged, replaced
-- or archived, while its statements stay as they are and only say of which fact they speak.
create table heart.statements (
    id           uuid not null default heart.new_id(),
    agent_id     text not null references heart.agents,
    fact_id      uuid not null,                           -- the fact it was taken for; a person may split it off
    content      text not null check (content <> ''),
    subject      text check (char_length(subject) <= 500),
    said_at      timestamptz not null,
    recorded_at  timestamptz not null default now(),
    source       text,
    source_kind  text not null default 'agent' check (source_kind in ('user', 'agent', 'tool', 'episode', 'import')),
    trust        smallint not null default 50 check (trust between 0 and 100),
    user_id      text,
    project_id   text,
    scope        text not null default 'private' check (scope in ('private', 'project', 'system')),
    session_id   text check (char_length(session_id) <= 100),
    episode_id   uuid,
    decision_id  uuid,
    frame        text check (char_length(frame) <= 100),
    -- why it belongs to its fact: its words became the fact (first, imported), or confirmed it (repeat: the same words but
    -- for case, spacing and punctuation; reworded: others)
    reason       text not null check (reason in ('first', 'imported', 'repeat', 'reworded')),
    taken_back_at timestamptz,                            -- when the confirmation it led to was undone: it no longer counts
    primary key (agent_id, id),
    foreign key (agent_id, fact_id) references heart.facts (agent_id, id) on delete cascade,
    foreign key (agent_id, episode_id) references heart.episodes (agent_id, id)
);

create index statements_fact on heart.statements (agent_id, fact_id);
create index events_split on lifecycle.events (agent_id) where after ? 'split_from';

-- Each known fact stands on the statement it was learned from, which says what the fact said before anything changed of it.
-- The words of what confirmed it since were not kept.
insert into heart.statements (
    agent_id, fact_id, content, subject, said_at, recorded_at, source, source_kind, trust, user_id, project_id, scope,
    session_id, episode_id, decision_id, frame, reason)
select f.agent_id, f.id, f.content, o.subject, f.learned_at, f.created_at, o.source, f.source_kind, o.trust, o.user_id,
       o.project_id, o.scope, e.session_id, f.source_episode_id, f.source_decision_id, f.encoded_frame,
       case when l.actor = 'import' then 'imported' else 'first' end
from heart.facts f
    left join lifecycle.events l on l.agent_id = f.agent_id and l.memory_id = f.id and l.version_after = 1
    left join heart.episodes e on e.agent_id = f.agent_id and e.id = f.source_episode_id
    left join (
        select e.agent_id, e.memory_id, jsonb_object_agg(b.key, b.value order by e.id desc) as before
        from lifecycle.events e cross join jsonb_each(e.before) b
        where e.memory_kind = 'fact' and b.key in ('subject', 'source', 'trust', 'user_id', 'project_id', 'scope')
        group by e.agent_id, e.memory_id
    ) w on w.agent_id = f.agent_id and w.memory_id = f.id
    cross join jsonb_populate_record(f, coalesce(w.before, '{}')) o;

-- A fact's text is always one of its statements, whoever writes either.
create function heart.require_statement() returns trigger
    language plpgsql as $$
declare
    fact uuid;
begin
    if tg_table_name = 'facts' then
        fact := new.id;
    else
        fact := old.fact_id;
    end if;
    if exists (
        select from heart.facts f
        where f.agent_id = new.agent_id and f.id = fact and not exists (
            select from heart.statements s
            where s.agent_id = f.agent_id and s.fact_id = f.id and s.content = f.content)
    ) then
        raise exception 'fact % has no statement with its words', fact
            using errcode = 'integrity_constraint_violation',
                  hint = 'write facts through the store, which keeps what was said';
    end if;
    return null;
end $$;

-- What was said stays as it was said. Which fact it speaks for, why, and whether that still counts may change.
create function heart.keep_statement() returns trigger
    language plpgsql as $$
begin
    if tg_op = 'TRUNCATE' then
        raise exception 'heart.statements keeps what was said: truncate refused' using errcode = 'insufficient_privilege';
    end if;
    if to_jsonb(new) - array['fact_id', 'reason', 'taken_back_at']
       <> to_jsonb(old) - array['fact_id', 'reason', 'taken_back_at'] then
        raise exception 'statement % was said so: its words, time and source never change', old.id
            using errcode = 'insufficient_privilege';
    end if;
    return new;
end $$;

-- The facts whose statements speak for one fact: itself, and what was merged into it. What it replaced said otherwise.
create function heart.merged_into(agent text, fact uuid) returns setof uuid
    language sql stable as $$
    with recursive merged as (
        select fact as id
        union
        select f.id from merged m join heart.facts f on f.agent_id = agent and f.superseded_by = m.id and f.succession = 'merged'
    )
    select id from merged
$$;

create constraint trigger statement_for_every_fact after insert or update of content on heart.facts
    deferrable initially deferred for each row execute function heart.require_statement();
create constraint trigger statement_for_the_fact_left after update of fact_id on heart.statements
    deferrable initially deferred for each row execute function heart.require_statement();
create trigger kept_as_said before update on heart.statements for each row execute function heart.keep_statement();
create trigger kept_as_a_whole before truncate on heart.statements for each statement execute function heart.keep_statement();
