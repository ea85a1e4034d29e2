-- An open episode grows line by line; indexing all of it at every line took longer with each. Its words are indexed when it
-- ends, its title and tags at once.

create or replace function heart.searchable(m heart.episodes) returns text language sql immutable as
$$ select concat_ws(' ', m.title, m.summary, case when m.state <> 'open' then m.detail end, array_to_string(m.tags, ' ')) $$;
