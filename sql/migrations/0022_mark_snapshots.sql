-- A night reads what changed since the snapshot before. That one is known to be of this database by a row here.
create table lifecycle.snapshots (
    id          uuid primary key default gen_random_uuid(),
    night       date not null,
    since_xid   xid8 not null,
    written_xid xid8 not null default pg_current_xact_id(),
    taken_at    timestamptz not null default now()
);
