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
