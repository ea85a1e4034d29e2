-- The database as it is. migrations/ is the road to it; a test proves that both arrive at the same place.
--
--   heart      what the agent remembers          (facts, episodes, procedures, censors, working memory, recalls …)
--   brain      what the agent itself decided     (decisions)
--   lifecycle  what the nights proposed and did  (plans, proposals, events)
--
-- Every table carries agent_id and every unique key starts with it, so that no constraint can tell one agent
-- what another one knows. Row-level security (below) is the second line; queries name the agent themselves.

create extension if not exists vector with schema public;

create schema heart;
create schema brain;
create schema lifecycle;

-- Time-ordered keys where the server can make them: neighbours in time are neighbours in the index.
do $$
begin
    if to_regprocedure('pg_catalog.uuidv7()') is not null then
        execute 'create function heart.new_id() returns uuid language sql volatile as ''select pg_catalog.uuidv7()''';
    else
        execute 'create function heart.new_id() returns uuid language sql volatile as ''select pg_catalog.gen_random_uuid()''';
    end if;
end $$;

-- The agent whose rows this transaction may see. An empty setting is no agent at all, never a match.
create function heart.current_agent() returns text
    language sql stable as $$ select nullif(current_setting('nous.agent_id', true), '') $$;

create table heart.embedding_spaces (
    id             text primary key,
    model          text not null,
    weights_sha256 text not null,                       -- empty for a remote model whose weights nobody can see
    dimensions     integer not null check (dimensions between 1 and 4000),
    thresholds     jsonb not null default '{}',         -- calibrated for this model alone: confirm, check, candidate
    created_at     timestamptz not null default now()
);

create table heart.agents (
    id                 text primary key check (id <> '' and char_length(id) <= 100),
    embedding_space_id text not null references heart.embedding_spaces,
    created_at         timestamptz not null default now()
);

-- ---------------------------------------------------------------------------------------------------------------
-- The five kinds of memory; a quarter of each page is left free, for the next version of one of its rows: where no
-- indexed column changed, it lies beside the last one and no index has to be told, that over the vectors least of all
-- ---------------------------------------------------------------------------------------------------------------

create table heart.episodes (
    id                   uuid not null default heart.new_id(),
    agent_id             text not null references heart.agents,
    state                text not null default 'open' check (state in ('open', 'closed', 'archived')),
    title                text,
    detail               text,                            -- the full text; null once it has moved to cold_texts
    summary              text,
    compressed           text,
    index_word           text,
    compression_tier     text not null default 'raw' check (compression_tier in ('raw', 'summary', 'compressed', 'fossil')),
    started_at           timestamptz not null default now(),
    ended_at             timestamptz,
    duration_seconds     integer generated always as (extract(epoch from ended_at - started_at)::integer) stored,
    completed_at         timestamptz,                    -- when title, summary and facts had been drawn from it
    completion_note      text,                            -- why it was skipped, when it was
    participants         text[] not null default '{}',
    tags                 text[] not null default '{}',
    frame_used           text check (char_length(frame_used) <= 100),
    encoded_censors      jsonb check (jsonb_typeof(encoded_censors) = 'array'),
    procedures_activated uuid[] not null default '{}',
    outcome              text check (outcome in ('success', 'failure', 'partial', 'ongoing')),
    surprise_level       real check (surprise_level between 0 and 1),
    lessons_learned      text[] not null default '{}',
    source               text,
    source_kind          text not null default 'agent' check (source_kind in ('user', 'agent', 'tool', 'web', 'episode', 'import', 'operator')),
    trust                smallint not null default 50 check (trust between 0 and 100),
    is_pinned            boolean not null default false,
    scope                text not null default 'private' check (scope in ('private', 'project', 'system')),
    user_id              text,
    project_id           text,
    rank_weight          real not null default 1 check (rank_weight between 0.25 and 4),
    archived_at          timestamptz,
    embedding            vector,
    context_embedding    vector,
    embedding_space_id   text references heart.embedding_spaces,
    word_count           integer not null default 0,
    context_word_count   integer not null default 0,
    row_version          bigint not null default 1,
    created_at           timestamptz not null default now(),
    written_xid          xid8 not null default pg_current_xact_id(),  -- the watermark: a late commit can't hide behind a clock
    session_id           text check (char_length(session_id) <= 100),
    is_forgotten         boolean not null default false,
    decision_ids         text[] not null default '{}',     -- of brain.decisions, or what another store calls its own
    primary key (agent_id, id),
    constraint ends_after_it_starts check (ended_at >= started_at),
    constraint closed_has_an_end check (state <> 'closed' or ended_at is not null),
    constraint archived_says_when check ((state = 'archived') = (archived_at is not null)),
    constraint forgotten_is_archived check (not is_forgotten or state = 'archived'),
    constraint vector_names_its_space check (embedding is null or embedding_space_id is not null)
) with (fillfactor = 60);  -- those of one day lie together and change in one night: each has room for its next version

create table heart.episode_artifacts (
    agent_id   text not null,
    episode_id uuid not null,
    kind       text not null check (kind in ('commit', 'pr', 'adr', 'file')),
    reference  text not null check (char_length(reference) <= 200),
    primary key (agent_id, episode_id, kind, reference),
    foreign key (agent_id, episode_id) references heart.episodes (agent_id, id) on delete cascade
);

create table heart.facts (
    id                   uuid not null default heart.new_id(),
    agent_id             text not null references heart.agents,
    state                text not null default 'active' check (state in ('active', 'superseded', 'archived', 'quarantined')),
    content              text not null check (content <> ''),
    context              text,                            -- what was said around it: indexed with it, never shown as it
    subject              text check (char_length(subject) <= 500),
    slot                 text check (char_length(slot) <= 500),  -- which attribute of which thing, when it can be read off
    category             text check (char_length(category) <= 100),
    tags                 text[] not null default '{}',
    confidence           real not null default 1 check (confidence between 0 and 1),
    summary              text,
    compressed           text,
    index_word           text,
    source               text,
    source_kind          text not null default 'agent' check (source_kind in ('user', 'agent', 'tool', 'web', 'episode', 'import', 'operator')),
    source_episode_id    uuid,
    sources              jsonb not null default '[]',     -- every source of everything merged into it
    trust                smallint not null default 50 check (trust between 0 and 100),
    is_pinned            boolean not null default false,
    learned_at           timestamptz not null default now(),  -- when it was said, not when the row was written
    last_confirmed_at    timestamptz,
    confirmation_count   integer not null default 0 check (confirmation_count >= 0),
    superseded_by        uuid,
    superseded_at        timestamptz,
    valid_from           timestamptz,
    valid_to             timestamptz,
    archived_at          timestamptz,
    contradiction_status text not null default 'none' check (contradiction_status in ('none', 'open', 'resolved')),
    encoded_frame        text check (char_length(encoded_frame) <= 100),
    encoded_censors      jsonb check (jsonb_typeof(encoded_censors) = 'array'),
    scope                text not null default 'private' check (scope in ('private', 'project', 'system')),
    user_id              text,
    project_id           text,
    rank_weight          real not null default 1 check (rank_weight between 0.25 and 4),
    embedding            vector,
    context_embedding    vector,
    embedding_space_id   text references heart.embedding_spaces,
    word_count           integer not null default 0,      -- lexemes counted with repetition: the document length of BM25
    context_word_count   integer not null default 0,
    row_version          bigint not null default 1,
    created_at           timestamptz not null default now(),
    written_xid          xid8 not null default pg_current_xact_id(),
    -- merged: the successor says the same, and what was said for this fact speaks for that one; replaced: it says otherwise
    succession           text check (succession in ('merged', 'replaced')),
    -- which attribute of which thing it is a value of, as the caller says, such as ana/home
    key                  text check (char_length(key) between 1 and 200),
    is_forgotten         boolean not null default false,  -- a person asked for it: no question of the past finds it either
    source_decision_id   text check (char_length(source_decision_id) between 1 and 200),
    -- earlier facts it may replace, though no judge was sure of it: recall puts it before them
    perhaps_replaces     uuid[] not null default '{}',
    primary key (agent_id, id),
    foreign key (agent_id, superseded_by) references heart.facts (agent_id, id),
    foreign key (agent_id, source_episode_id) references heart.episodes (agent_id, id),
    constraint superseded_has_a_successor check (state <> 'superseded' or superseded_by is not null),
    constraint active_has_no_successor check (state <> 'active' or superseded_by is null),
    constraint succession_is_dated check ((superseded_by is null) = (superseded_at is null)),
    constraint succession_says_how check ((superseded_by is null) = (succession is null)),
    constraint not_its_own_successor check (superseded_by <> id),
    constraint archived_says_when check ((state = 'archived') = (archived_at is not null)),
    constraint forgotten_is_archived check (not is_forgotten or state = 'archived'),
    constraint valid_interval check (valid_to >= valid_from),
    constraint vector_names_its_space check (embedding is null or embedding_space_id is not null),
    -- one value of a key is active; checked when a transaction ends, since the next is stored before the last gives way
    constraint one_value_of_a_key exclude using btree (
        agent_id with =, key with =, scope with =, (coalesce(user_id, '')) with =, (coalesce(project_id, '')) with =)
        where (state = 'active' and key is not null) deferrable initially deferred
) with (fillfactor = 75);

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
    source_kind  text not null default 'agent' check (source_kind in ('user', 'agent', 'tool', 'web', 'episode', 'import', 'operator')),
    trust        smallint not null default 50 check (trust between 0 and 100),
    user_id      text,
    project_id   text,
    scope        text not null default 'private' check (scope in ('private', 'project', 'system')),
    session_id   text check (char_length(session_id) <= 100),
    episode_id   uuid,
    frame        text check (char_length(frame) <= 100),
    -- why it belongs to its fact: its words became the fact (first, imported), or confirmed it (repeat: the same words but
    -- for case, spacing and punctuation; reworded: others)
    reason       text not null check (reason in ('first', 'imported', 'repeat', 'reworded')),
    taken_back_at timestamptz,                            -- when the confirmation it led to was undone: it no longer counts
    decision_id  text check (char_length(decision_id) between 1 and 200),
    primary key (agent_id, id),
    foreign key (agent_id, fact_id) references heart.facts (agent_id, id) on delete cascade,
    foreign key (agent_id, episode_id) references heart.episodes (agent_id, id)
);

create table heart.procedures (
    id                   uuid not null default heart.new_id(),
    agent_id             text not null references heart.agents,
    state                text not null default 'active' check (state in ('active', 'review', 'archived')),
    name                 text not null check (name <> '' and char_length(name) <= 500),
    domain               text check (char_length(domain) <= 100),
    kind                 text not null default 'k_line' check (kind in ('k_line', 'workflow', 'pattern')),
    goals                text[] not null default '{}',    -- upper fringe: weakly attached
    core_patterns        text[] not null default '{}',
    core_tools           text[] not null default '{}',
    core_concepts        text[] not null default '{}',
    implementation_notes text[] not null default '{}',    -- lower fringe: easily displaced
    steps                jsonb not null default '[]',
    template             jsonb,
    trigger              text,
    summary              text,
    compressed           text,
    index_word           text,
    activation_count     integer not null default 0 check (activation_count >= 0),
    success_count        integer not null default 0 check (success_count >= 0),
    failure_count        integer not null default 0 check (failure_count >= 0),
    last_activated_at    timestamptz,
    related_procedures   uuid[] not null default '{}',
    censors              text[] not null default '{}',
    tags                 text[] not null default '{}',
    review_reason        text,
    source               text,
    source_kind          text not null default 'agent' check (source_kind in ('user', 'agent', 'tool', 'web', 'episode', 'import', 'operator')),
    trust                smallint not null default 50 check (trust between 0 and 100),
    is_pinned            boolean not null default false,
    learned_at           timestamptz not null default now(),
    archived_at          timestamptz,
    encoded_frame        text check (char_length(encoded_frame) <= 100),
    encoded_censors      jsonb check (jsonb_typeof(encoded_censors) = 'array'),
    scope                text not null default 'private' check (scope in ('private', 'project', 'system')),
    user_id              text,
    project_id           text,
    rank_weight          real not null default 1 check (rank_weight between 0.25 and 4),
    embedding            vector,
    context_embedding    vector,
    embedding_space_id   text references heart.embedding_spaces,
    word_count           integer not null default 0,
    context_word_count   integer not null default 0,
    row_version          bigint not null default 1,
    created_at           timestamptz not null default now(),
    written_xid          xid8 not null default pg_current_xact_id(),
    is_forgotten         boolean not null default false,
    related_decision_ids text[] not null default '{}',
    primary key (agent_id, id),
    constraint archived_says_when check ((state = 'archived') = (archived_at is not null)),
    constraint forgotten_is_archived check (not is_forgotten or state = 'archived'),
    constraint vector_names_its_space check (embedding is null or embedding_space_id is not null)
) with (fillfactor = 75);
create unique index procedures_name on heart.procedures (agent_id, name) where state <> 'archived';

create table heart.censors (
    id                   uuid not null default heart.new_id(),
    agent_id             text not null references heart.agents,
    state                text not null default 'active' check (state in ('active', 'archived')),
    trigger              text not null check (trigger <> ''),
    reason               text not null check (reason <> ''),
    severity             text not null default 'warn' check (severity in ('warn', 'block', 'absolute')),
    is_literal           boolean not null default false,  -- the trigger must occur as written, not only in meaning
    activation_count     integer not null default 0 check (activation_count >= 0),
    false_positive_count integer not null default 0 check (false_positive_count >= 0),
    escalation_threshold integer not null default 5 check (escalation_threshold > 0),
    last_activated_at    timestamptz,
    learned_from_episode_id  uuid,
    summary              text,
    compressed           text,
    index_word           text,
    source               text,
    source_kind          text not null default 'agent' check (source_kind in ('user', 'agent', 'tool', 'web', 'episode', 'import', 'operator')),
    trust                smallint not null default 50 check (trust between 0 and 100),
    is_pinned            boolean not null default false,
    learned_at           timestamptz not null default now(),
    expires_at           timestamptz,
    archived_at          timestamptz,
    encoded_frame        text check (char_length(encoded_frame) <= 100),
    encoded_censors      jsonb check (jsonb_typeof(encoded_censors) = 'array'),
    scope                text not null default 'private' check (scope in ('private', 'project', 'system')),
    user_id              text,
    project_id           text,
    rank_weight          real not null default 1 check (rank_weight between 0.25 and 4),
    embedding            vector,
    context_embedding    vector,
    embedding_space_id   text references heart.embedding_spaces,
    word_count           integer not null default 0,
    context_word_count   integer not null default 0,
    row_version          bigint not null default 1,
    created_at           timestamptz not null default now(),
    written_xid          xid8 not null default pg_current_xact_id(),
    is_forgotten         boolean not null default false,
    primary key (agent_id, id),
    forgiven_count       integer not null default 0 check (forgiven_count >= 0),  -- activations that do not count towards a block
    is_escalated         boolean not null default false,  -- its activations made it a block, not a person
    exceptions           jsonb not null default '[]' check (jsonb_typeof(exceptions) = 'array'),  -- false alarms: what it lets pass
    last_activation      jsonb check (jsonb_typeof(last_activation) = 'object'),  -- id, action and match; those before are in its events
    learned_from_decision_id text check (char_length(learned_from_decision_id) between 1 and 200),
    foreign key (agent_id, learned_from_episode_id) references heart.episodes (agent_id, id),
    constraint archived_says_when check ((state = 'archived') = (archived_at is not null)),
    constraint forgotten_is_archived check (not is_forgotten or state = 'archived'),
    constraint vector_names_its_space check (embedding is null or embedding_space_id is not null)
) with (fillfactor = 75);

create table heart.working_memory (
    agent_id     text not null references heart.agents,
    session_id   text not null check (session_id <> '' and char_length(session_id) <= 100),
    task         text,
    frame        text check (char_length(frame) <= 100),
    items        jsonb not null default '[]' check (jsonb_typeof(items) = 'array'),
    open_threads jsonb not null default '[]' check (jsonb_typeof(open_threads) = 'array'),
    capacity     integer not null default 20 check (capacity > 0),
    episode_id   uuid,
    row_version  bigint not null default 1,
    created_at   timestamptz not null default now(),
    updated_at   timestamptz not null default now(),
    task_embedding vector,
    embedding_space_id text references heart.embedding_spaces,
    active_censors jsonb check (jsonb_typeof(active_censors) = 'array'),  -- names, as facts are encoded with them
    primary key (agent_id, session_id)
);

-- An exact scan of a small tenant reads the vectors row by row: kept in the row they need no second look-up.
alter table heart.facts alter column embedding set storage main, alter column context_embedding set storage main;
alter table heart.episodes alter column embedding set storage main, alter column context_embedding set storage main;
alter table heart.procedures alter column embedding set storage main, alter column context_embedding set storage main;
alter table heart.censors alter column embedding set storage main, alter column context_embedding set storage main;

-- ---------------------------------------------------------------------------------------------------------------
-- Finding them again
-- ---------------------------------------------------------------------------------------------------------------

-- The inverted index. A GIN index over tsvectors can't serve here: `@@` is not leakproof, so row-level security
-- forbids the planner to use it, and its lists run through all agents. These lists start with the agent.
create table heart.postings (
    agent_id           text not null,
    lexeme             text not null,
    memory_id          uuid not null,
    memory_kind        text not null check (memory_kind in ('fact', 'episode', 'procedure', 'censor')),
    term_count         smallint not null,                -- in the memory itself
    context_term_count smallint not null,                -- in the memory and what was said around it; 0 without context
    primary key (agent_id, lexeme, memory_id) include (memory_kind, term_count, context_term_count)
);
create index postings_memory on heart.postings (memory_id);

-- Document frequencies per agent, refreshed by the night and after imports; a lexeme not listed counts as rare.
create table heart.term_stats (
    agent_id       text not null,
    lexeme         text not null,
    document_count integer not null,
    primary key (agent_id, lexeme) include (document_count)
);
-- How many memories of a kind there are, how many of them have a vector of what was said around them, and how long they are.
create table heart.corpus_stats (
    agent_id               text not null,
    memory_kind            text not null check (memory_kind in ('fact', 'episode', 'procedure', 'censor')),
    memory_count           integer not null,
    context_count          integer not null,
    average_length         real not null,
    average_context_length real not null,
    refreshed_at           timestamptz not null default now(),
    total_length           bigint,                            -- null where all has to be counted again
    total_context_length   bigint,
    longer_count           integer,                           -- how many have words around them
    primary key (agent_id, memory_kind)
);
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

-- Counters live apart from the memories: a recall that touches ten memories rewrites ten small rows, no vectors,
-- and does not count as a change of the memory.
create table heart.usage (
    agent_id        text not null,
    memory_id       uuid not null,
    memory_kind     text not null check (memory_kind in ('fact', 'episode', 'procedure', 'censor')),
    retrieved_count integer not null default 0 check (retrieved_count >= 0),
    cited_count     integer not null default 0 check (cited_count >= 0),
    ignored_count   integer not null default 0 check (ignored_count >= 0),
    last_used_at    timestamptz,
    primary key (agent_id, memory_id)
) with (fillfactor = 70);

-- What was asked, what was returned, what of it was used: usage, and the probes the night replays.
create table heart.recalls (
    id                 uuid not null default heart.new_id(),
    agent_id           text not null references heart.agents,
    recalled_at        timestamptz not null default now(),
    query              text not null,
    query_embedding    vector,
    embedding_space_id text references heart.embedding_spaces,
    types              text[] not null default '{}',
    result_limit       integer not null,
    frame              text,
    active_censors     jsonb,
    as_of              timestamptz,
    session_id         text,
    result_ids         uuid[] not null default '{}',
    result_scores      real[] not null default '{}',    -- 0 for what a context, which has no vector, shows whatever is asked
    cited_ids          uuid[] not null default '{}',
    ignored_ids        uuid[] not null default '{}',
    created_at         timestamptz not null default now(),
    user_id            text,                             -- for whom it was asked, so that their questions can be erased
    primary key (agent_id, id)
);
create index recalls_by_day on heart.recalls (agent_id, recalled_at);
create index recalls_of_session on heart.recalls (agent_id, session_id, recalled_at) where session_id is not null;

-- What the agent was doing in a session (a file, a branch, an error, an hour): with what the recalls of that session
-- found and cited, all that predictions are learned from. A signal counts once a session, when it was first seen.
create table heart.sightings (
    agent_id   text not null references heart.agents,
    signal     text not null check (signal <> '' and char_length(signal) <= 300),
    session_id text not null check (session_id <> '' and char_length(session_id) <= 100),
    seen_at    timestamptz not null default now(),
    primary key (agent_id, signal, session_id)
);
create index sightings_latest on heart.sightings (agent_id, signal, seen_at desc);

-- Keys of the HTTP interface. A key names its agent, so that its row is found under that agent's rights; the agent `*`
-- is nobody's name, and its keys are those of administrators. A secret has 256 random bits, so a plain hash hides it.
create table heart.api_keys (
    agent_id      text not null check (agent_id <> '' and char_length(agent_id) <= 100),
    id            text not null check (char_length(id) between 1 and 40),   -- the part that may be shown
    secret_sha256 text not null check (secret_sha256 ~ '^[0-9a-f]{64}$'),
    name          text not null default '' check (char_length(name) <= 200),
    created_at    timestamptz not null default now(),
    expires_at    timestamptz,
    revoked_at    timestamptz,
    max_trust     smallint not null default 60 check (max_trust between 0 and 100),  -- the most its holder may claim
    may_pin       boolean not null default false,          -- and whether it may keep something for the whole system
    is_read_only  boolean not null default false,
    last_used_at  timestamptz,                             -- to the hour
    primary key (agent_id, id)
);

create table heart.requests (
    agent_id        text not null,
    idempotency_key text not null check (char_length(idempotency_key) between 1 and 200),
    verb            text not null,
    content_hash    text not null,                       -- the same key with another content is a mistake, not a retry
    memory_id       uuid not null,
    action          text not null,
    created_at      timestamptz not null default now(),
    primary key (agent_id, idempotency_key)
);

-- ---------------------------------------------------------------------------------------------------------------
-- What is known about memories
-- ---------------------------------------------------------------------------------------------------------------

create table heart.contradictions (
    id          uuid not null default heart.new_id(),
    agent_id    text not null references heart.agents,
    memory_a    uuid not null,
    memory_b    uuid not null,
    detected_at timestamptz not null default now(),
    status      text not null default 'open' check (status in ('open', 'resolved')),
    resolution  text check (resolution in ('a_wins', 'b_wins', 'both_valid', 'merged')),
    resolved_at timestamptz,
    note        text,
    judgement   jsonb,
    row_version bigint not null default 1,
    proposed    jsonb check (jsonb_typeof(proposed) = 'object'),  -- how somebody who may not decide it would, and why
    primary key (agent_id, id),
    foreign key (agent_id, memory_a) references heart.facts (agent_id, id),
    foreign key (agent_id, memory_b) references heart.facts (agent_id, id),
    constraint one_row_a_pair check (memory_a < memory_b),
    constraint resolved_says_how check ((status = 'resolved') = (resolution is not null and resolved_at is not null))
);
create unique index contradictions_pair on heart.contradictions (agent_id, memory_a, memory_b);

create table heart.links (
    agent_id   text not null,
    from_id    uuid not null,
    to_id      uuid not null,
    kind       text not null,
    weight     real not null check (weight between 0 and 1),
    evidence   jsonb not null default '{}',
    created_at timestamptz not null default now(),
    primary key (agent_id, from_id, to_id, kind),
    constraint not_to_itself check (from_id <> to_id)
);
create index links_back on heart.links (agent_id, to_id);

-- A verdict is paid for once: the key is the content of the pair, who judged it and by which prompt.
create table heart.judgements (
    agent_id       text not null,
    pair_hash      text not null,
    model          text not null,
    prompt_version text not null,
    verdict        text not null check (verdict in ('same', 'updates', 'contradicts', 'compatible', 'unsure')),
    confidence     real not null check (confidence between 0 and 1),
    slot           text,
    later          text check (later in ('a', 'b')),
    reason         text not null,
    input_tokens   integer not null default 0,
    output_tokens  integer not null default 0,
    cost_usd       numeric(12, 6) not null default 0,
    judged_at      timestamptz not null default now(),
    change         real not null default 0 check (change between 0 and 1),
    primary key (agent_id, pair_hash, model, prompt_version)
);

create table heart.llm_requests (
    id            uuid primary key default heart.new_id(),
    agent_id      text,
    night         date,
    purpose       text not null,
    model         text not null,
    state         text not null default 'intent' check (state in ('intent', 'submitted', 'ended', 'imported', 'failed')),
    batch_id      text,
    custom_ids    text[] not null default '{}',
    request       jsonb,
    raw_sha256    text,
    input_tokens  integer not null default 0,
    output_tokens integer not null default 0,
    cost_usd      numeric(12, 6) not null default 0,
    error         text,
    created_at    timestamptz not null default now(),
    updated_at    timestamptz not null default now(),
    prompt_version     text not null default '',
    is_batch           boolean not null default false,
    request_count      integer not null default 1 check (request_count >= 0),
    failed_count       integer not null default 0 check (failed_count between 0 and request_count),
    cache_read_tokens  integer not null default 0,
    cache_write_tokens integer not null default 0,
    estimated_usd      numeric(12, 6) not null default 0
);
create index llm_requests_open on heart.llm_requests (created_at) where state in ('intent', 'submitted', 'ended');
create index llm_requests_of_night on heart.llm_requests (agent_id, night);

-- Texts that condensing took out of the hot rows; restorable until the purge policy says otherwise.
create table heart.cold_texts (
    agent_id   text not null,
    memory_id  uuid not null,
    tier       text not null,
    detail     text,
    summary    text,
    compressed text,
    stored_at  timestamptz not null default now(),
    purge_after timestamptz,
    primary key (agent_id, memory_id, tier)
);

-- Vectors of the space to come; recall serves the old space until this one is complete. And of the one before, for the
-- way back.
create table heart.next_embeddings (
    agent_id           text not null,
    memory_id          uuid not null,
    memory_kind        text not null check (memory_kind in ('fact', 'episode', 'procedure', 'censor')),
    embedding_space_id text not null references heart.embedding_spaces,
    embedding          vector not null,
    context_embedding  vector,
    row_version        bigint not null,                   -- of the memory it was made from: changed since, it is made anew
    primary key (agent_id, memory_id, embedding_space_id)
);

-- Events others consume, at least once and in order per agent.
create table heart.outbox (
    id         bigint generated always as identity primary key,
    agent_id   text not null,
    name       text not null,
    memory_id  uuid,
    payload    jsonb not null default '{}',
    created_at timestamptz not null default now(),
    written_xid xid8 not null default pg_current_xact_id()  -- an id drawn early may be committed late: order by transaction
);
create index outbox_by_agent on heart.outbox (agent_id, written_xid, id);
create table heart.outbox_cursors (
    agent_id     text not null,
    consumer     text not null,
    last_id      bigint not null default 0,
    last_xid     xid8 not null default '0',
    failed_count integer not null default 0,
    last_error   text,
    retry_at     timestamptz,
    primary key (agent_id, consumer)
);

-- Where an agent's events are sent, signed. A webhook is a consumer of the outbox, named `webhook:` and its id.
create table heart.webhooks (
    agent_id       text not null,
    id             uuid not null default heart.new_id(),
    url            text not null check (char_length(url) between 1 and 2000),
    names          text[] not null check (cardinality(names) between 1 and 50),
    secret         text not null check (secret <> ''),      -- what signs: it is shown once, and never leaves by an answer
    allows_private boolean not null default false,          -- whether it may go to this machine or network
    created_at     timestamptz not null default now(),
    primary key (agent_id, id)
);

-- What is to be drawn from closed episodes, one row each. A worker that takes one moves due_at ahead; when it dies, the
-- row falls due again. The draft is kept before it is carried out, so that a second worker continues and asks nobody twice.
create table heart.completions (
    agent_id      text not null,
    episode_id    uuid not null,
    due_at        timestamptz not null default now(),
    attempt_count integer not null default 0,
    draft         jsonb,
    last_error    text,
    finished_at   timestamptz,
    created_at    timestamptz not null default now(),
    outage_count  integer not null default 0,             -- of the attempts: failed for a reason outside of the episode
    primary key (agent_id, episode_id),
    foreign key (agent_id, episode_id) references heart.episodes (agent_id, id) on delete cascade
);
create index completions_due on heart.completions (due_at) where finished_at is null;

create table brain.decisions (
    id          uuid not null default heart.new_id(),
    agent_id    text not null references heart.agents,
    title       text not null,
    rationale   text,
    confidence  real check (confidence between 0 and 1),
    status      text not null default 'pending' check (status in ('pending', 'succeeded', 'failed', 'abandoned')),
    episode_id  uuid,
    files       text[] not null default '{}',
    tags        text[] not null default '{}',
    outcome     text,
    decided_at  timestamptz not null default now(),
    resolved_at timestamptz,
    row_version bigint not null default 1,
    session_id  text check (char_length(session_id) <= 100),
    reference   text check (char_length(reference) between 1 and 200),  -- what the agent calls it
    primary key (agent_id, id),
    foreign key (agent_id, episode_id) references heart.episodes (agent_id, id),
    constraint resolved_says_when check ((status = 'pending') = (resolved_at is null))
);

-- ---------------------------------------------------------------------------------------------------------------
-- What the nights did
-- ---------------------------------------------------------------------------------------------------------------

create table lifecycle.agent_policies (
    agent_id   text primary key references heart.agents,
    policy     jsonb not null,
    updated_at timestamptz not null default now()
);

create table lifecycle.plans (
    hash       text primary key,
    night      date not null,
    agent_ids  text[] not null default '{}',             -- empty: all of them
    policy     jsonb not null,
    counts     jsonb not null default '{}',
    checks     jsonb not null default '[]',
    state      text not null default 'planned' check (state in ('planned', 'refused', 'applied')),
    run_id     text,
    created_at timestamptz not null default now(),
    applied_at timestamptz,
    constraint applied_says_when check ((state = 'applied') = (applied_at is not null))
);
create index plans_by_night on lifecycle.plans (night);

create table lifecycle.proposals (
    id         uuid not null,                             -- derived from night, agent, kind and targets: a retry finds itself
    agent_id   text not null references heart.agents,
    night      date not null,
    plan_hash  text not null references lifecycle.plans,
    kind       text not null check (kind in (
        'merge', 'supersede', 'contradiction', 'tier', 'promote', 'demote', 'archive', 'link', 'share',
        'censor', 'procedure')),
    targets    uuid[] not null check (cardinality(targets) > 0),
    read_set   jsonb not null check (jsonb_typeof(read_set) = 'array'),  -- [{kind, id, row_version}]: all it was decided on
    changes    jsonb not null check (jsonb_typeof(changes) = 'array'),   -- [{kind, id, set}] or [{kind: usage, id, add}]
    reason     text not null check (reason <> ''),
    evidence   jsonb not null default '{}',
    cost_usd   numeric(12, 6) not null default 0,
    state      text not null default 'proposed' check (state in ('proposed', 'applied', 'stale', 'refused', 'undone')),
    outcome    text,                                      -- why it went stale or was refused
    decided_at timestamptz,
    primary key (agent_id, id),
    constraint decided_says_when check ((state = 'proposed') = (decided_at is null))
);
create index proposals_by_night on lifecycle.proposals (night, agent_id, kind);

-- Which moves of state are legal is a table, and the events point into it.
create table lifecycle.transitions (
    memory_kind text not null,
    from_state  text not null,
    to_state    text not null,
    primary key (memory_kind, from_state, to_state)
);
insert into lifecycle.transitions (memory_kind, from_state, to_state) values
    ('fact', 'new', 'active'), ('fact', 'new', 'quarantined'), ('fact', 'active', 'active'),
    ('fact', 'active', 'superseded'), ('fact', 'active', 'archived'), ('fact', 'active', 'quarantined'),
    ('fact', 'superseded', 'active'), ('fact', 'superseded', 'superseded'), ('fact', 'superseded', 'archived'),
    ('fact', 'archived', 'active'), ('fact', 'archived', 'superseded'), ('fact', 'archived', 'archived'),
    ('fact', 'quarantined', 'active'), ('fact', 'quarantined', 'quarantined'), ('fact', 'quarantined', 'archived'),
    ('fact', 'archived', 'quarantined'),
    ('episode', 'new', 'open'), ('episode', 'new', 'closed'), ('episode', 'open', 'open'), ('episode', 'open', 'closed'),
    ('episode', 'closed', 'closed'), ('episode', 'closed', 'archived'), ('episode', 'archived', 'closed'),
    ('episode', 'archived', 'archived'), ('episode', 'open', 'archived'), ('episode', 'archived', 'open'),
    ('procedure', 'new', 'active'), ('procedure', 'active', 'active'), ('procedure', 'active', 'review'),
    ('procedure', 'active', 'archived'), ('procedure', 'review', 'active'), ('procedure', 'review', 'review'),
    ('procedure', 'review', 'archived'), ('procedure', 'archived', 'active'), ('procedure', 'archived', 'review'),
    ('procedure', 'archived', 'archived'),
    ('censor', 'new', 'active'), ('censor', 'active', 'active'), ('censor', 'active', 'archived'),
    ('censor', 'archived', 'active'), ('censor', 'archived', 'archived');

-- One row for every change of a memory: who, why, in which run, and what it was before. Append-only.
create table lifecycle.events (
    id             bigint generated always as identity primary key,
    agent_id       text not null,
    memory_kind    text not null,
    memory_id      uuid not null,
    action         text not null,                         -- learned, confirmed, superseded, merged, archived, undone …
    from_state     text not null,
    to_state       text not null,
    version_before bigint not null,
    version_after  bigint not null,
    before         jsonb not null default '{}',           -- the changed columns as they were; a text that only grew: {"characters": n}
    after          jsonb not null default '{}',           -- and as they became; a text that only grew: {"appended": …}
    actor          text not null check (actor in ('agent', 'night', 'operator', 'import')),
    reason         text not null check (reason <> ''),
    effective_at   timestamptz not null,                  -- logical time: when it was said, or the end of the night
    recorded_at    timestamptz not null default now(),
    night          date,
    run_id         text,
    proposal_id    uuid,
    undoes         bigint references lifecycle.events,
    foreign key (memory_kind, from_state, to_state) references lifecycle.transitions,
    foreign key (agent_id, proposal_id) references lifecycle.proposals (agent_id, id),
    constraint a_night_names_its_proposal check (actor <> 'night' or (night is not null and proposal_id is not null))
);
create unique index events_version on lifecycle.events (agent_id, memory_id, version_after);
create index events_by_time on lifecycle.events (agent_id, effective_at);
create index events_by_proposal on lifecycle.events (agent_id, proposal_id) where proposal_id is not null;
create index events_split on lifecycle.events (agent_id) where after ? 'split_from';  -- learning asks what was split off
create index events_undoes on lifecycle.events (undoes) where undoes is not null;  -- erasing asks it of every event

-- How an agent's memory stood after each night: what the morning report plots.
create table lifecycle.health (
    agent_id    text not null references heart.agents,
    night       date not null,
    figures     jsonb not null check (jsonb_typeof(figures) = 'object'),
    measured_at timestamptz not null default now(),      -- what came later, the night has not seen
    primary key (agent_id, night)
);

-- Which snapshots the nights took. A later one reads what changed since, if it finds the row of the earlier one as its transaction
-- wrote it: a backup from before it has no such row, and one restored from a dump has it from another transaction.
create table lifecycle.snapshots (
    id          uuid primary key default gen_random_uuid(),
    night       date not null,
    since_xid   xid8 not null,                            -- what any later transaction wrote, the snapshot may not hold
    written_xid xid8 not null default pg_current_xact_id(),
    taken_at    timestamptz not null default now()
);

-- A hash-only trace of what was erased on request, so that a restored backup can be erased again.
create table lifecycle.tombstones (
    agent_hash   text not null,
    content_hash text not null,
    erased_at    timestamptz not null default now(),
    primary key (agent_hash, content_hash)
);

-- ---------------------------------------------------------------------------------------------------------------
-- Rules that hold whoever writes
-- ---------------------------------------------------------------------------------------------------------------

-- Triggers plan their queries once a session. Our connections have each query planned for its agent, and so were those of
-- the triggers, for every row: a third of the time that indexing words took.

create function heart.next_version() returns trigger
    language plpgsql as $$
begin
    new.row_version := old.row_version + 1;
    new.written_xid := pg_current_xact_id();
    return new;
end $$;

create function heart.require_event() returns trigger
    language plpgsql set plan_cache_mode = force_generic_plan as $$
begin
    if not exists (
        select from lifecycle.events
        where agent_id = new.agent_id and memory_id = new.id and version_after = new.row_version
    ) then
        raise exception 'version % of % % was written without an event', new.row_version, tg_argv[0], new.id
            using errcode = 'integrity_constraint_violation',
                  hint = 'write memories through the store, which records who changed what and why';
    end if;
    return null;
end $$;

-- A fact's text is always one of its statements, whoever writes either.
create function heart.require_statement() returns trigger
    language plpgsql set plan_cache_mode = force_generic_plan as $$
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

-- Erasing takes words out of what is told of others; the columns it may update are its grant.
create function lifecycle.refuse_change() returns trigger
    language plpgsql as $$
begin
    if tg_op = 'UPDATE' and current_user = 'nous_purge' then
        return null;
    end if;
    raise exception 'lifecycle.events is append-only: % refused', tg_op using errcode = 'insufficient_privilege';
end $$;

-- What of a memory is searched by word, and what was said around it (null where nothing was).
create function heart.searchable(m heart.facts) returns text language sql immutable as
$$ select concat_ws(' ', m.content, m.subject, array_to_string(m.tags, ' ')) $$;
-- An open episode grows line by line: its detail is indexed once, when it ends.
create function heart.searchable(m heart.episodes) returns text language sql immutable as
$$ select concat_ws(' ', m.title, m.summary, m.compressed, case when m.state <> 'open' then m.detail end,
       array_to_string(m.lessons_learned || m.tags, ' ')) $$;
create function heart.searchable(m heart.procedures) returns text language sql immutable as
$$ select concat_ws(' ', m.name, m.domain, array_to_string(m.goals || m.core_patterns || m.core_tools || m.core_concepts
       || m.implementation_notes || m.tags, ' '), m.steps::text, m.trigger) $$;
create function heart.searchable(m heart.censors) returns text language sql immutable as
$$ select concat_ws(' ', m.trigger, m.reason) $$;
create function heart.surrounding(m heart.facts) returns text language sql immutable as $$ select m.context $$;
create function heart.surrounding(m heart.episodes) returns text language sql immutable as $$ select null::text $$;
create function heart.surrounding(m heart.procedures) returns text language sql immutable as $$ select null::text $$;
create function heart.surrounding(m heart.censors) returns text language sql immutable as $$ select null::text $$;

create function heart.lexemes(body text) returns tsvector
    language sql immutable as $$ select to_tsvector('pg_catalog.english', left(body, 200000)) $$;

-- Two texts that are equal here say the same words: case, spacing and the marks around words aside.
create function heart.folded(body text) returns text language sql immutable as
$$ select trim(regexp_replace(lower(body), '[[:space:].,;:!?"''()]+', ' ', 'g')) $$;

-- Keeps postings and word counts true to the text, whoever writes it, and notes what `term_stats` has to learn of it.
create function heart.index_words() returns trigger
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

create trigger index_words before insert or update on heart.facts for each row execute function heart.index_words('fact');
create trigger index_words before insert or update on heart.episodes for each row execute function heart.index_words('episode');
create trigger index_words before insert or update on heart.procedures for each row execute function heart.index_words('procedure');
create trigger index_words before insert or update on heart.censors for each row execute function heart.index_words('censor');

create trigger next_version before update on heart.facts for each row execute function heart.next_version();
create trigger next_version before update on heart.episodes for each row execute function heart.next_version();
create trigger next_version before update on heart.procedures for each row execute function heart.next_version();
create trigger next_version before update on heart.censors for each row execute function heart.next_version();

create constraint trigger event_for_every_version after insert or update on heart.facts
    deferrable initially deferred for each row execute function heart.require_event('fact');
create constraint trigger event_for_every_version after insert or update on heart.episodes
    deferrable initially deferred for each row execute function heart.require_event('episode');
create constraint trigger event_for_every_version after insert or update on heart.procedures
    deferrable initially deferred for each row execute function heart.require_event('procedure');
create constraint trigger event_for_every_version after insert or update on heart.censors
    deferrable initially deferred for each row execute function heart.require_event('censor');

create constraint trigger statement_for_every_fact after insert or update of content on heart.facts
    deferrable initially deferred for each row execute function heart.require_statement();
create constraint trigger statement_for_the_fact_left after update of fact_id on heart.statements
    deferrable initially deferred for each row execute function heart.require_statement();
create trigger kept_as_said before update on heart.statements for each row execute function heart.keep_statement();
create trigger kept_as_a_whole before truncate on heart.statements for each statement execute function heart.keep_statement();

create trigger append_only before update or truncate on lifecycle.events
    for each statement execute function lifecycle.refuse_change();

-- ---------------------------------------------------------------------------------------------------------------
-- Indexes
-- ---------------------------------------------------------------------------------------------------------------

-- The btrees on agent_id are what keeps a small tenant exact: with HNSW alone it is searched after everybody else.
create index facts_agent on heart.facts (agent_id, state);
create index facts_subject on heart.facts (agent_id, lower(subject)) where state = 'active' and subject is not null;
create index facts_slot on heart.facts (agent_id, slot) where state = 'active' and slot is not null;
create index facts_successor on heart.facts (agent_id, superseded_by) where superseded_by is not null;
create index facts_learned on heart.facts (agent_id, learned_at);
create index facts_episode on heart.facts (agent_id, source_episode_id) where source_episode_id is not null;
create index facts_forgotten on heart.facts (agent_id) where is_forgotten;
-- What a context shows at once.
create index facts_pinned on heart.facts (agent_id) where is_pinned;
create index facts_category on heart.facts (agent_id, category, learned_at) where category is not null;
create index episodes_started on heart.episodes (agent_id, started_at);
create index statements_fact on heart.statements (agent_id, fact_id);
-- Whether words that are learned were said for a fact that was forgotten.
create index statements_words on heart.statements (agent_id, hashtextextended(heart.folded(content), 0));
create index facts_frame on heart.facts (agent_id, encoded_frame) where encoded_frame is not null;
create index episodes_agent on heart.episodes (agent_id, state);
create index episodes_open on heart.episodes (agent_id, started_at) where state = 'open';
create index procedures_agent on heart.procedures (agent_id, state);
create index procedures_domain on heart.procedures (agent_id, domain);
create index procedures_frame on heart.procedures (agent_id, encoded_frame) where encoded_frame is not null;
create index censors_agent on heart.censors (agent_id, state);
create index decisions_agent on brain.decisions (agent_id, status);
create unique index decisions_reference on brain.decisions (agent_id, reference);

-- One HNSW index per kind and embedding space: the width is a property of the space, so it is made with the space.
-- Half precision nominates, the full vector decides: half as many pages to walk through. With 24 neighbours a node fewer
-- of the nearest ten are missed than with pgvector's default of 16. What is out of recall is out of the index: retiring
-- a memory would else take as long as finding its place among all others, forty times as long as writing the row.
create function heart.index_embedding_space(space text) returns void
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

create view heart.memories with (security_invoker = true) as
select m.*, coalesce(u.retrieved_count, 0) as retrieved_count, coalesce(u.cited_count, 0) as cited_count,
       coalesce(u.ignored_count, 0) as ignored_count, u.last_used_at
from (
    select id, agent_id, 'fact' as kind, state, content as full_text, summary, compressed, index_word, tags,
           learned_at, valid_from, valid_to, superseded_by, encoded_frame, encoded_censors, trust, is_pinned,
           scope, user_id, project_id, rank_weight, row_version, is_forgotten
    from heart.facts
    union all
    select id, agent_id, 'episode', state, coalesce(detail, summary, compressed, index_word), summary, compressed, index_word, tags,
           started_at, started_at, ended_at, null, frame_used, encoded_censors, trust, is_pinned,
           scope, user_id, project_id, rank_weight, row_version, is_forgotten
    from heart.episodes
    union all
    select id, agent_id, 'procedure', state, name, summary, compressed, index_word, tags,
           learned_at, null, null, null, encoded_frame, encoded_censors, trust, is_pinned,
           scope, user_id, project_id, rank_weight, row_version, is_forgotten
    from heart.procedures
    union all
    select id, agent_id, 'censor', state, trigger || ': ' || reason, summary, compressed, index_word, '{}'::text[],
           learned_at, null, expires_at, null, encoded_frame, encoded_censors, trust, is_pinned,
           scope, user_id, project_id, rank_weight, row_version, is_forgotten
    from heart.censors
) m
left join heart.usage u on u.agent_id = m.agent_id and u.memory_id = m.id;
