-- What episodes, sessions and the outbox need to survive a crash.

-- A transaction that drew a low id may commit after one with a higher id was delivered: consumers follow the order of
-- transactions, and only as far as none before is still running.
alter table heart.outbox add column written_xid xid8 not null default pg_current_xact_id();
drop index heart.outbox_by_agent;
create index outbox_by_agent on heart.outbox (agent_id, written_xid, id);
alter table heart.outbox_cursors
    add column last_xid xid8 not null default '0',
    add column failed_count integer not null default 0,
    add column last_error text,
    add column retry_at timestamptz;

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
    primary key (agent_id, episode_id),
    foreign key (agent_id, episode_id) references heart.episodes (agent_id, id) on delete cascade
);
create index completions_due on heart.completions (due_at) where finished_at is null;
drop index heart.episodes_to_complete;

alter table heart.episodes add column session_id text check (char_length(session_id) <= 100);
create index episodes_open on heart.episodes (agent_id, started_at) where state = 'open';

alter table heart.working_memory
    add column task_embedding vector,
    add column embedding_space_id text references heart.embedding_spaces;

alter table brain.decisions add column session_id text check (char_length(session_id) <= 100);

-- Nobody asks for it, and it turned every confirmation into new entries in all the indexes, the vectors' included.
drop index heart.facts_written;
