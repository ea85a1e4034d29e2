-- An episode that was condensed is found by the words of the line that stayed of it, and by its lessons at any age.
create or replace function heart.searchable(m heart.episodes) returns text language sql immutable as
$$ select concat_ws(' ', m.title, m.summary, m.compressed, case when m.state <> 'open' then m.detail end,
       array_to_string(m.lessons_learned || m.tags, ' ')) $$;

-- The postings of those that are there, made anew from their rows. The rows stay as they are: a new version of each would
-- ask for an event. Their word counts, which only weigh how long a text is, follow with the next change.
-- Row-level security binds the owner as well; the grants, given anew after every migration, force it again.
alter table heart.episodes no force row level security;
alter table heart.postings no force row level security;

create temporary table found_anew on commit drop as
select agent_id, id, heart.lexemes(heart.searchable(e)) as words
from heart.episodes e
where state <> 'open' and (compressed is not null or lessons_learned <> '{}');

delete from heart.postings p using found_anew f where p.memory_id = f.id and p.agent_id = f.agent_id;

insert into heart.postings (agent_id, lexeme, memory_id, memory_kind, term_count, context_term_count)
select f.agent_id, w.lexeme, f.id, 'episode', coalesce(cardinality(w.positions), 0), 0
from found_anew f cross join lateral unnest(f.words) w;

drop table found_anew;
