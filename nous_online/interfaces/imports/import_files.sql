-- name: create_seen
-- SQLite, in a temporary file of its own: how often each line without an id has occurred so far.
create table seen (digest blob primary key, times integer not null) without rowid

-- name: count_line
insert into seen (digest, times) values (?, 1)
on conflict (digest) do update set times = times + 1
returning times
