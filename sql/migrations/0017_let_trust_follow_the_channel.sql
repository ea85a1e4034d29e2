-- Trust follows the channel: sources of two more kinds, keys that say how far their holder is believed, contradictions that
-- keep how somebody who may not decide them would; and sessions that carry their frame's censors. The trust of what is
-- stored stays as it is.

alter table heart.facts drop constraint facts_source_kind_check,
    add constraint facts_source_kind_check
        check (source_kind in ('user', 'agent', 'tool', 'web', 'episode', 'import', 'operator'));
alter table heart.statements drop constraint statements_source_kind_check,
    add constraint statements_source_kind_check
        check (source_kind in ('user', 'agent', 'tool', 'web', 'episode', 'import', 'operator'));
alter table heart.episodes drop constraint episodes_source_kind_check,
    add constraint episodes_source_kind_check
        check (source_kind in ('user', 'agent', 'tool', 'web', 'episode', 'import', 'operator'));
alter table heart.procedures drop constraint procedures_source_kind_check,
    add constraint procedures_source_kind_check
        check (source_kind in ('user', 'agent', 'tool', 'web', 'episode', 'import', 'operator'));
alter table heart.censors drop constraint censors_source_kind_check,
    add constraint censors_source_kind_check
        check (source_kind in ('user', 'agent', 'tool', 'web', 'episode', 'import', 'operator'));

-- Keys made before are believed as a user is, and administrators' as an operator is.
alter table heart.api_keys
    add column max_trust smallint not null default 60 check (max_trust between 0 and 100),
    add column may_pin boolean not null default false,
    add column is_read_only boolean not null default false,
    add column last_used_at timestamptz;
alter table heart.api_keys no force row level security;
update heart.api_keys set max_trust = 100, may_pin = true where agent_id = '*';

alter table heart.contradictions
    add column proposed jsonb check (jsonb_typeof(proposed) = 'object');

alter table heart.working_memory
    add column active_censors jsonb check (jsonb_typeof(active_censors) = 'array');
