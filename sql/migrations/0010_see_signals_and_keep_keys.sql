-- What the agent was doing when it remembered, from which predictions are learned; and the keys of the HTTP interface.

create table heart.sightings (
    agent_id   text not null references heart.agents,
    signal     text not null check (signal <> '' and char_length(signal) <= 300),
    session_id text not null check (session_id <> '' and char_length(session_id) <= 100),
    seen_at    timestamptz not null default now(),
    primary key (agent_id, signal, session_id)
);
create index sightings_latest on heart.sightings (agent_id, signal, seen_at desc);
create index recalls_of_session on heart.recalls (agent_id, session_id, recalled_at) where session_id is not null;

create table heart.api_keys (
    agent_id      text not null check (agent_id <> '' and char_length(agent_id) <= 100),
    id            text not null check (char_length(id) between 1 and 40),
    secret_sha256 text not null check (secret_sha256 ~ '^[0-9a-f]{64}$'),
    name          text not null default '' check (char_length(name) <= 200),
    created_at    timestamptz not null default now(),
    expires_at    timestamptz,
    revoked_at    timestamptz,
    primary key (agent_id, id)
);
