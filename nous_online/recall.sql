-- name: prepare_scan
-- For this transaction only. A misspelt setting is accepted and ignored, so what took effect is read back.
-- Compiling a query of a few milliseconds costs more than running it.
select set_config('hnsw.iterative_scan', %(scan)s, true), set_config('hnsw.ef_search', %(breadth)s, true),
       set_config('jit', 'off', true)

-- name: read_scan
select current_setting('hnsw.iterative_scan'), current_setting('hnsw.ef_search')

-- name: visible_now
f.state = 'active'

-- name: visible_then
-- Learned by then, not superseded or archived until later, and valid at that moment.
f.learned_at <= %(as_of)s and f.state <> 'quarantined'
    and coalesce(f.superseded_at > %(as_of)s, true) and coalesce(f.archived_at > %(as_of)s, true)
    and coalesce(f.valid_from <= %(as_of)s, true) and coalesce(f.valid_to > %(as_of)s, true)

-- name: in_reach
-- What belongs to a user or a project is found by that user or project alone.
(f.scope = 'system' or (f.scope = 'project' and f.project_id = %(project_id)s)
    or (f.scope = 'private' and (f.user_id is null or f.user_id = %(user_id)s)))

-- name: find_facts
-- One round trip: who might answer (by vector, by context, by the rarest words), then both scores of each of them.
-- Words weigh by their rarity among this agent's memories. Where the nightly statistics are missing, a bounded
-- count of the live rows takes their place; stale ones only make the weights less sharp.
with corpus as materialized (
    select coalesce(s.memory_count, live.memory_count) as memory_count,
           coalesce(s.average_length, live.average_length, 1)::float8 as average_length,
           coalesce(nullif(s.average_context_length, 0), live.average_context_length, 1)::float8 as average_context_length
    from (select) one
    left join heart.corpus_stats s on s.agent_id = %(agent_id)s
    left join lateral (
        select (select count(*) from (
                    select from heart.facts
                    where s.agent_id is null and agent_id = %(agent_id)s
                    limit %(exact_limit)s + 1) counted) as memory_count,
               nullif(avg(word_count), 0) as average_length,
               avg(context_word_count - word_count) filter (where context_word_count > word_count) as average_context_length
        from (select word_count, context_word_count from heart.facts
              where s.agent_id is null and agent_id = %(agent_id)s
              limit %(postings_limit)s) sample
    ) live on true
), term as materialized (
    select q.lexeme, counted.document_count,
           ln(1 + (greatest(c.memory_count, counted.document_count) - counted.document_count + 0.5)
                  / (counted.document_count + 0.5))::float8 as weight
    from unnest(heart.lexemes(%(query)s)) q
    cross join corpus c
    left join heart.term_stats s on s.agent_id = %(agent_id)s and s.lexeme = q.lexeme
    cross join lateral (
        select coalesce(s.document_count, count(*) filter (where term_count > 0)) as document_count,
               s.document_count is not null or count(*) > 0 as is_known
        from (select term_count from heart.postings
              where s.document_count is null and agent_id = %(agent_id)s and lexeme = q.lexeme
              limit %(postings_limit)s) listed
    ) counted
    where counted.is_known
), rarest as materialized (
    select lexeme, weight from term order by document_count, lexeme limit %(nominating_terms)s
), named as materialized (
    select p.memory_id, sum(r.weight * p.amount / (p.amount + %(term_saturation)s)) as match
    from rarest r
    cross join lateral (
        select memory_id,
               term_count + %(context_weight)s * greatest(context_term_count - term_count, 0) as amount
        from heart.postings
        where agent_id = %(agent_id)s and lexeme = r.lexeme and memory_kind = 'fact'
        limit %(postings_limit)s
    ) p
    group by p.memory_id
    order by match desc, p.memory_id
    limit 4 * %(candidate_count)s
), by_words as materialized (
    select n.memory_id as id
    from named n
    join heart.facts f on f.id = n.memory_id and f.agent_id = %(agent_id)s
    where {visible} and {in_reach} and f.embedding_space_id = {space_id}
    order by n.match desc, n.memory_id
    limit %(candidate_count)s
), by_content as materialized (
    -- A small tenant is scanned exactly, through the btree on agent_id: an index over everybody's vectors finds
    -- its neighbours among strangers. The addition keeps the vector index away.
    (select f.id
     from heart.facts f
     where f.agent_id = %(agent_id)s and f.embedding_space_id = {space_id} and {visible} and {in_reach}
       and (select memory_count from corpus) <= %(exact_limit)s
     order by (coalesce(f.context_embedding, f.embedding) <=> %(embedding)s) + 0
     limit %(candidate_count)s)
    union all
    (select id
     from (select f.id, f.embedding::vector({dimensions}) <=> %(embedding)s as distance
           from heart.facts f
           where f.agent_id = %(agent_id)s and f.embedding_space_id = {space_id} and {visible} and {in_reach}
             and (select memory_count from corpus) > %(exact_limit)s
           order by f.embedding::vector({dimensions}) <=> %(embedding)s
           limit %(breadth)s) near
     order by distance
     limit %(candidate_count)s)
), by_context as materialized (
    select id
    from (select f.id, f.context_embedding::vector({dimensions}) <=> %(embedding)s as distance
          from heart.facts f
          where f.agent_id = %(agent_id)s and f.embedding_space_id = {space_id} and {visible} and {in_reach}
            and f.context_embedding is not null
            and (select memory_count from corpus) > %(exact_limit)s
          order by f.context_embedding::vector({dimensions}) <=> %(embedding)s
          limit %(breadth)s) near
    order by distance
    limit %(candidate_count)s
), candidate as materialized (
    select id from by_words union select id from by_content union select id from by_context
)
select f.id, 'fact' as kind, f.content, f.subject, f.category, f.tags, f.state, f.confidence, f.source, f.source_kind, f.trust,
       f.is_pinned, f.learned_at, f.valid_from, f.valid_to, f.superseded_by, f.contradiction_status,
       f.encoded_frame, f.encoded_censors, f.rank_weight::float8 as rank_weight,
       1 - (coalesce(f.context_embedding, f.embedding) <=> %(embedding)s) as dense,
       coalesce(matched.weight / total.weight, 0) as lexical
from candidate c
join heart.facts f on f.agent_id = %(agent_id)s and f.id = c.id
cross join (select nullif(sum(weight), 0) as weight from term) total
cross join corpus
left join lateral (
    select sum(t.weight * amount / (amount + %(term_saturation)s)) as weight
    from term t
    join heart.postings p on p.agent_id = %(agent_id)s and p.lexeme = t.lexeme and p.memory_id = f.id
    cross join lateral (
        select p.term_count
                   / (1 - %(length_penalty)s + %(length_penalty)s * f.word_count / corpus.average_length)
               + %(context_weight)s * greatest(p.context_term_count - p.term_count, 0)
                   / (1 - %(length_penalty)s + %(length_penalty)s * greatest(f.context_word_count - f.word_count, 0)
                                                                  / corpus.average_context_length) as amount
    ) frequency
) matched on true

-- name: refresh_term_stats
-- In how many memories of an agent each word occurs: of their own words, not of what was said around them.
with counted as (
    select lexeme, count(*)::integer as document_count
    from heart.postings
    where agent_id = %(agent_id)s and term_count > 0
    group by lexeme
), gone as (
    delete from heart.term_stats s
    where s.agent_id = %(agent_id)s and not exists (select from counted c where c.lexeme = s.lexeme)
)
insert into heart.term_stats as s (agent_id, lexeme, document_count)
select %(agent_id)s, lexeme, document_count from counted
on conflict (agent_id, lexeme) do update set document_count = excluded.document_count
where s.document_count <> excluded.document_count

-- name: refresh_corpus_stats
insert into heart.corpus_stats (agent_id, memory_count, average_length, average_context_length, refreshed_at)
select %(agent_id)s, count(*), coalesce(avg(word_count), 0),
       coalesce(avg(context_word_count - word_count) filter (where context_word_count > word_count), 0), now()
from (
    select word_count, context_word_count from heart.facts where agent_id = %(agent_id)s
    union all
    select word_count, context_word_count from heart.episodes where agent_id = %(agent_id)s
    union all
    select word_count, context_word_count from heart.procedures where agent_id = %(agent_id)s
    union all
    select word_count, context_word_count from heart.censors where agent_id = %(agent_id)s
) memory
on conflict (agent_id) do update set
    memory_count = excluded.memory_count, average_length = excluded.average_length,
    average_context_length = excluded.average_context_length, refreshed_at = excluded.refreshed_at
