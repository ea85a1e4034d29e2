-- How an agent's memory stood after each night: what the morning report plots.
create table lifecycle.health (
    agent_id    text not null references heart.agents,
    night       date not null,
    figures     jsonb not null check (jsonb_typeof(figures) = 'object'),
    measured_at timestamptz not null default now(),
    primary key (agent_id, night)
);
