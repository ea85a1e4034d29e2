-- An open episode grows line by line; indexing all of it at every line took longer with each. Its words are indexed when it
-- ends, its title and tags at once.

create or replace function heart.searchable(m heart.episodes) returns text language sql immutable as
$$ select concat_ws(' ', m.title, m.summary, case when m.state <> 'open' then m.detail end, array_to_string(m.tags, ' ')) $$;

-- Erasing asks of every event who undoes it, and of every episode which facts came from it.
create index events_undoes on lifecycle.events (undoes) where undoes is not null;
create index facts_episode on heart.facts (agent_id, source_episode_id) where source_episode_id is not null;
