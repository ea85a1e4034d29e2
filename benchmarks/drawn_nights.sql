-- name: begin_loading
set local session_replication_role = replica

-- name: store_space
insert into heart.embedding_spaces (id, model, weights_sha256, dimensions) values (%(id)s, 'drawn', '', %(dimensions)s)
on conflict do nothing

-- name: store_agent
insert into heart.agents (id, embedding_space_id) values (%(agent_id)s, %(space_id)s) on conflict do nothing

-- name: make_drawn
create temporary table drawn (
    place bigint generated always as identity, content text, subject text, slot text, learned_at timestamptz, embedding vector
)

-- name: copy_drawn
copy drawn (content, subject, slot, learned_at, embedding) from stdin (format binary)

-- name: store_facts
insert into heart.facts (agent_id, content, subject, slot, learned_at, source, source_kind, embedding, embedding_space_id, word_count)
select %(agent_id)s, content, subject, slot, learned_at, 'drawn', 'import', embedding, %(space_id)s, 10
from drawn order by place

-- name: store_postings
insert into heart.postings (agent_id, lexeme, memory_id, memory_kind, term_count, context_term_count)
select f.agent_id, w.lexeme, f.id, 'fact', cardinality(w.positions), 0
from heart.facts f cross join lateral unnest(heart.lexemes(heart.searchable(f))) w
where f.agent_id = %(agent_id)s and not exists (
    select from lifecycle.events e where e.agent_id = f.agent_id and e.memory_id = f.id)
order by w.lexeme, f.id
on conflict do nothing

-- name: store_word_changes
insert into heart.word_changes (
    agent_id, memory_kind, memory_count, context_count, length, context_length, longer_count, come, gone)
select f.agent_id, 'fact', 1, 0, f.word_count, 0, 0, tsvector_to_array(heart.lexemes(heart.searchable(f))), '{}'
from heart.facts f
where f.agent_id = %(agent_id)s and not exists (
    select from lifecycle.events e where e.agent_id = f.agent_id and e.memory_id = f.id)

-- name: store_events
insert into lifecycle.events (
    agent_id, memory_kind, memory_id, action, from_state, to_state, version_before, version_after, actor, reason, effective_at)
select agent_id, 'fact', id, 'learned', 'new', state, 0, row_version, 'import', 'drawn', learned_at
from heart.facts where agent_id = %(agent_id)s
on conflict do nothing

-- name: drop_drawn
drop table drawn

-- name: store_episode
insert into heart.episodes (
    agent_id, state, title, detail, summary, compressed, index_word, started_at, ended_at, completed_at, outcome, source_kind,
    embedding, embedding_space_id, word_count)
values (%(agent_id)s, 'closed', %(title)s, %(detail)s, %(summary)s, %(compressed)s, %(index_word)s,
        %(ended_at)s - interval '1 hour', %(ended_at)s, %(ended_at)s, 'success', 'import', %(embedding)s, %(space_id)s, 100)

-- name: store_episode_postings
insert into heart.postings (agent_id, lexeme, memory_id, memory_kind, term_count, context_term_count)
select f.agent_id, w.lexeme, f.id, 'episode', cardinality(w.positions), 0
from heart.episodes f cross join lateral unnest(heart.lexemes(heart.searchable(f))) w
where f.agent_id = %(agent_id)s
order by w.lexeme, f.id
on conflict do nothing

-- name: store_episode_events
insert into lifecycle.events (
    agent_id, memory_kind, memory_id, action, from_state, to_state, version_before, version_after, actor, reason, effective_at)
select agent_id, 'episode', id, 'recorded', 'new', state, 0, row_version, 'import', 'drawn', started_at
from heart.episodes where agent_id = %(agent_id)s
on conflict do nothing

-- name: fact_ids
select id from heart.facts where agent_id = %(agent_id)s order by id

-- name: store_recall
insert into heart.recalls (agent_id, recalled_at, query, query_embedding, embedding_space_id, result_limit, result_ids, cited_ids)
values (%(agent_id)s, %(at)s, %(query)s, %(embedding)s, %(space_id)s, 10, %(results)s, %(cited)s)

-- name: count_usage
insert into heart.usage (agent_id, memory_id, memory_kind, retrieved_count, cited_count, last_used_at)
select r.agent_id, u.memory_id, 'fact', count(*), count(*) filter (where u.memory_id = any(r.cited_ids)), max(r.recalled_at)
from heart.recalls r cross join unnest(r.result_ids) u(memory_id)
where r.agent_id = %(agent_id)s
group by r.agent_id, u.memory_id

-- name: allow_memory
select set_config('maintenance_work_mem', '1GB', false), set_config('max_parallel_maintenance_workers', '2', false)

-- name: index_space
select heart.index_embedding_space(id) from heart.embedding_spaces where id = 'drawn-384'

-- name: vacuum
vacuum analyze

-- name: count_changes
select count(*), count(*) filter (where actor = 'night') from lifecycle.events

-- name: copy_for_sql
create unlogged table plain as select id, content, state, learned_at, embedding, 1::real as rank_weight from heart.facts

-- name: sql_archive
update plain set state = 'archived'
where learned_at < now() - interval '90 days' and not exists (select from heart.usage u where u.memory_id = plain.id)

-- name: sql_copies
update plain p set state = 'superseded'
from (select min(id::text)::uuid as first, lower(rtrim(content, '.')) as said from plain group by 2 having count(*) > 1) d
where lower(rtrim(p.content, '.')) = d.said and p.id <> d.first

-- name: sql_ranks
update plain p set rank_weight = least(1.5, 1 + u.score / 10)
from (select memory_id, sum(exp(-ln(2) * extract(epoch from now() - r.recalled_at) / 86400 / 14)) as score
      from heart.recalls r cross join unnest(r.cited_ids) c(memory_id) group by memory_id) u
where u.memory_id = p.id

-- name: by_index
-- For the rest of the session: the planner would read the whole table for each fact, and take a hundred times as long.
select set_config('enable_seqscan', 'off', false), set_config('enable_sort', 'off', false)

-- name: sql_neighbours
-- A sample of facts, each with its nearest twenty by the index; the whole store would take a hundred times as long.
select count(*) from (select id, embedding from heart.facts order by id limit %(sample)s) f
cross join lateral (
    select g.id from heart.facts g where g.embedding_space_id = 'drawn-384' and g.state = 'active'  -- as the index says
    order by g.embedding::halfvec(384) <=> f.embedding::halfvec(384) limit 21
) n

-- name: drop_plain
drop table plain
