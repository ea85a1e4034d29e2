-- A reported false alarm is an exception of its censor at once, and does not count towards a block. Both are columns of
-- the censor, so that they are versioned, undone, exported and erased with it.
alter table heart.censors
    add column forgiven_count  integer not null default 0 check (forgiven_count >= 0),
    add column is_escalated    boolean not null default false,
    add column exceptions      jsonb not null default '[]' check (jsonb_typeof(exceptions) = 'array'),
    add column last_activation jsonb check (jsonb_typeof(last_activation) = 'object');
