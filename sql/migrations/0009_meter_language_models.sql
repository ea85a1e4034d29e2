-- Every request to a language model is metered, online ones and failed ones too. A batch is of one agent.

alter table heart.llm_requests
    add column prompt_version     text not null default '',
    add column is_batch           boolean not null default false,
    add column request_count      integer not null default 1 check (request_count >= 0),
    add column failed_count       integer not null default 0 check (failed_count between 0 and request_count),
    add column cache_read_tokens  integer not null default 0,
    add column cache_write_tokens integer not null default 0,
    add column estimated_usd      numeric(12, 6) not null default 0;

create index llm_requests_open on heart.llm_requests (created_at) where state in ('intent', 'submitted', 'ended');
create index llm_requests_of_night on heart.llm_requests (agent_id, night);
