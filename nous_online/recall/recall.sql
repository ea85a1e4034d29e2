-- name: prepare_recall
-- Settings for this transaction only. The two of the index scan are read back: a misspelt one is accepted and ignored.
-- Planning the search costs as much as running it, so it is planned once a connection, for any agent and question. The
-- plan that serves them all walks indexes; what must not be taken is switched off while it is made. A log entry that
-- a crash of the server loses costs less than waiting for the disk at every recall; a crash of the agent loses none.
select current_setting('hnsw.iterative_scan'), current_setting('hnsw.ef_search')
from (select set_config('hnsw.iterative_scan', %(scan)s, true), set_config('hnsw.ef_search', %(breadth)s, true),
             set_config('plan_cache_mode', 'force_generic_plan', true), set_config('enable_seqscan', 'off', true),
             set_config('enable_sort', 'off', true), set_config('enable_mergejoin', 'off', true),
             set_config('jit', 'off', true), set_config('synchronous_commit', 'off', true)
      offset 0) settings

-- name: conclude_recall
-- After the search, as a move of the agent in between would leave bad answers: an id for the log, whether the server
-- takes it, which kinds the agent has anything of, and the embedding space of its memories.
select heart.new_id(), current_setting('transaction_read_only') = 'off',
       array(select kind
             from (values ('fact', exists (select from heart.facts where agent_id = %(agent_id)s)),
                          ('episode', exists (select from heart.episodes where agent_id = %(agent_id)s)),
                          ('procedure', exists (select from heart.procedures where agent_id = %(agent_id)s)),
                          ('censor', exists (select from heart.censors where agent_id = %(agent_id)s))
                  ) known(kind, is_present)
             where is_present),
       s.id, s.model, s.weights_sha256, s.dimensions
from heart.agents a join heart.embedding_spaces s on s.id = a.embedding_space_id
where a.id = %(agent_id)s

-- name: search
-- One round trip: who might answer (by vector, by context, by the rarest words), then both scores of each of them.
-- Words weigh by their rarity among this agent's memories. Where the nightly statistics are missing, a bounded
-- count of the live rows takes their place; stale ones only make the weights less sharp.
with size as materialized (
    {sizes}
), corpus as materialized (
    select coalesce(sum(memory_count), 0) as memory_count from size
), term as materialized (
    select q.lexeme, counted.document_count, counted.is_known,
           ln(1 + (greatest(c.memory_count, counted.document_count) - counted.document_count + 0.5)
                  / (counted.document_count + 0.5))::float8 as weight
    from unnest(heart.lexemes(%(query)s)) q
    cross join corpus c
    left join lateral (
        -- Word by word: joined as a whole, all the words of an agent would be read.
        select document_count from heart.term_stats where agent_id = %(agent_id)s and lexeme = q.lexeme offset 0
    ) s on true
    cross join lateral (
        select coalesce(s.document_count, count(*) filter (where term_count > 0)) as document_count,
               s.document_count is not null or count(*) > 0 as is_known
        from (select term_count from heart.postings
              where s.document_count is null and agent_id = %(agent_id)s and lexeme = q.lexeme
              limit {postings_limit}) listed
    ) counted
), named as materialized (
    -- A word that very many memories hold says little of any: it nominates only if no rarer one does.
    select p.memory_id, p.memory_kind, sum(r.weight * p.amount / (p.amount + {term_saturation}::float8)) as match
    from (
        select lexeme, weight, sum(document_count) over rising as posting_count, row_number() over rising as place
        from term where is_known
        window rising as (order by document_count, lexeme rows unbounded preceding)
    ) r
    cross join lateral (
        select memory_id, memory_kind,
               term_count + {context_weight}::float8 * greatest(context_term_count - term_count, 0) as amount
        from heart.postings
        where agent_id = %(agent_id)s and lexeme = r.lexeme and memory_kind = any({kinds})
        limit {postings_limit}
    ) p
    where r.place = 1 or (r.place <= {nominating_terms} and r.posting_count <= {postings_limit})
    group by p.memory_id, p.memory_kind
    order by match desc, p.memory_id
    limit 4 * {candidate_count}
), candidate as materialized (
    select distinct on (id) *
    from (
        {nominations}
    ) nominated
    order by id
), matched as materialized (
    -- BM25F, as a share of the most the question could reach; and which share of its words is found at all, where one
    -- that no memory has counts as missing.
    select c.id, sum(t.weight * amount / (amount + {term_saturation}::float8))
                     / (select sum(weight) from term where is_known) as lexical,
           sum(t.weight) / (select sum(weight) from term) as covered
    from term t
    cross join lateral (
        select memory_id, term_count, greatest(context_term_count - term_count, 0) as context_term_count
        from heart.postings
        where agent_id = %(agent_id)s and lexeme = t.lexeme and memory_id = any(array(select id from candidate))
        offset 0
    ) p
    join candidate c on c.id = p.memory_id
    cross join lateral (
        select p.term_count / (1 - {length_penalty}::float8 + {length_penalty}::float8 * c.length)
               + {context_weight}::float8 * p.context_term_count
                 / (1 - {length_penalty}::float8 + {length_penalty}::float8 * c.context_length) as amount
    ) frequency
    where t.is_known
    group by c.id
)
, scored as materialized (
    select c.*, coalesce(m.lexical, 0) as lexical, coalesce(m.covered, 0) as covered from candidate c left join matched m on m.id = c.id
), top as materialized (
    select f.id, f.embedding, f.slot, f.perhaps_replaces, f.context_embedding is null or f.source_kind = 'episode' as is_plain,
           coalesce(f.valid_from, best.said_at) as holds_from, f.contradiction_status = 'open' as is_contested
    from (select id, said_at from scored where kind = 'fact' order by dense + lexical desc, id limit {compared_count}) best
    join heart.facts f on f.agent_id = %(agent_id)s and f.id = best.id
    where f.embedding_space_id = {space_id}
){changed}
-- Of the best facts: which earlier ones each resembles, and which it answers the same question as, or perhaps replaces.
select c.id, kind, content, subject, category, tags, confidence, learned_at, said_at, valid_from, valid_to,
       superseded_by, contradiction_status, encoded_frame, summary, compressed, index_word, state, source, source_kind, scope, user_id,
       project_id, trust, is_pinned, encoded_censors, rank_weight, dense, lexical, covered,
       earlier.near_ids, earlier.doubted_ids, earlier.same_ids, contradicting.ids as contradicted_by, {changed_ids} as changed_ids
from scored c
left join lateral (
    select array_agg(o.id) filter (where 1 - (t.embedding <=> o.embedding)
                                         >= case when t.is_plain and o.is_plain then {near_cosine}::float8
                                                 else {near_cosine_in_talk}::float8 end) as near_ids,
           array_agg(o.id) filter (where o.id = any(t.perhaps_replaces)) as doubted_ids,
           array_agg(o.id) filter (where t.slot = o.slot or t.is_contested and o.is_contested and exists (
               select from heart.contradictions k
               where k.agent_id = %(agent_id)s and k.status = 'open'
                 and k.memory_a = least(t.id, o.id) and k.memory_b = greatest(t.id, o.id))) as same_ids
    from top t join top o on o.holds_from < t.holds_from
    where t.id = c.id
) earlier on true
left join lateral (
    select array_agg(f.id order by f.id) as ids
    from heart.contradictions k
    join heart.facts f on f.agent_id = %(agent_id)s and f.id in (k.memory_a, k.memory_b) and f.id <> c.id
    where c.contradiction_status = 'open' and k.agent_id = %(agent_id)s and k.status = 'open'
      and c.id in (k.memory_a, k.memory_b) and {fact_visible} and {in_reach}
) contradicting on true

-- name: changed_episodes
-- Which of the episodes found tell what one of the best facts replaced since, or contradicts, and do not tell that fact.
, earlier_value as materialized (
    with recursive value(id, later_id, is_other) as (
        select f.id, t.id, f.succession = 'replaced'
        from top t join heart.facts f on f.agent_id = %(agent_id)s and f.superseded_by = t.id
        union
        select o.id, t.id, true
        from top t
        join top o on o.holds_from < t.holds_from and t.is_contested and o.is_contested
        join heart.contradictions k on k.agent_id = %(agent_id)s and k.status = 'open'
             and k.memory_a = least(t.id, o.id) and k.memory_b = greatest(t.id, o.id)
        union
        select f.id, v.later_id, v.is_other or f.succession = 'replaced'
        from value v join heart.facts f on f.agent_id = %(agent_id)s and f.superseded_by = v.id
    )
    select id, later_id from value where is_other
), changed as materialized (
    select v.later_id, array_agg(distinct s.episode_id) as episode_ids
    from earlier_value v
    join heart.statements s on s.agent_id = %(agent_id)s and s.fact_id = v.id
    where s.episode_id in (select id from scored where kind = 'episode')
      and not exists (select from heart.statements own
                      where own.agent_id = %(agent_id)s and own.fact_id = v.later_id and own.episode_id = s.episode_id)
    group by v.later_id
)

-- name: changed_ids
(select episode_ids from changed where later_id = c.id)

-- name: size_of_kind
-- How many memories of a kind there are and how long they are. Up to a limit, which grows with the table as an index
-- over everybody's vectors loses sight of a few, all vectors of the agent are compared.
select {kind}::text as kind, coalesce(s.memory_count, live.memory_count) as memory_count,
       coalesce(nullif(s.average_length, 0), live.average_length, 1)::float8 as average_length,
       coalesce(nullif(s.average_context_length, 0), live.average_context_length, 1)::float8 as average_context_length,
       coalesce(s.context_count > 0, true) as has_context,
       coalesce(s.memory_count, live.memory_count) <= most.compared as is_small
from (
    select greatest({exact_limit}, {exact_growth}::float8 * sqrt(greatest(reltuples, 0)))::bigint as compared
    from pg_catalog.pg_class where oid = {table_name}::regclass
) most
left join heart.corpus_stats s on s.agent_id = %(agent_id)s and s.memory_kind = {kind}
left join lateral (
    select (select count(*) from (
                select from {table} where s.agent_id is null and agent_id = %(agent_id)s limit most.compared + 1
           ) counted) as memory_count,
           nullif(avg(word_count), 0) as average_length,
           avg(context_word_count - word_count) filter (where context_word_count > word_count) as average_context_length
    from (select word_count, context_word_count from {table}
          where s.agent_id is null and agent_id = %(agent_id)s
          limit {postings_limit}) sample
) live on true

-- name: nominations_of_kind
(select {columns}
 from named n
 join {table} f on f.agent_id = %(agent_id)s and f.id = n.memory_id
 cross join (select * from size where kind = {kind}) size
 where n.memory_kind = {kind} and {visible} and {in_reach}
 order by n.match desc, n.memory_id
 limit {candidate_count})
{near}
{dated}
{retired}

-- name: near_of_kind
union all
-- The addition keeps the vector index away from a small tenant: an index over everybody's vectors finds its
-- neighbours among strangers.
(select {columns}
 from (select f.id
       from {table} f
       where f.agent_id = %(agent_id)s and f.embedding_space_id = {space_id} and {visible} and {in_reach}
         and (select is_small from size where kind = {kind})
       order by (coalesce(f.context_embedding, f.embedding) <=> %(embedding)s) + 0
       limit {candidate_count}) near
 join {table} f on f.agent_id = %(agent_id)s and f.id = near.id
 cross join (select * from size where kind = {kind}) size)
union all
(select {columns}
 from {table} f
 cross join (select * from size where kind = {kind}) size
 where f.agent_id = %(agent_id)s and f.embedding_space_id = {space_id} and {indexed} and {in_reach}
   and not (select is_small from size where kind = {kind})
 order by f.embedding::halfvec({dimensions}) <=> %(embedding)s::halfvec({dimensions})
 limit {candidate_count})
union all
(select {columns}
 from {table} f
 cross join (select * from size where kind = {kind}) size
 where f.agent_id = %(agent_id)s and f.embedding_space_id = {space_id} and {indexed} and {in_reach}
   and f.context_embedding is not null and (select has_context and not is_small from size where kind = {kind})
 order by f.context_embedding::halfvec({dimensions}) <=> %(embedding)s::halfvec({dimensions})
 limit {candidate_count})

-- name: dated_of_kind
-- What was said in the time the question names, the latest so many, is compared one by one.
union all
(select {columns}
 from (select f.id
       from {table} f
       where f.agent_id = %(agent_id)s and f.{said_at} >= %(period_start)s and f.{said_at} < %(period_end)s
         and f.embedding_space_id = {space_id} and {visible} and {in_reach}
       order by f.{said_at} desc
       limit {postings_limit}) of_then
 join {table} f on f.agent_id = %(agent_id)s and f.id = of_then.id
 cross join (select * from size where kind = {kind}) size
 order by dense desc, f.id
 limit {candidate_count})

-- name: retired_of_kind
-- What was recalled then and is not today has left the vector indexes: it is compared one by one.
union all
(select {columns}
 from (select f.id
       from {table} f
       where f.agent_id = %(agent_id)s and f.embedding_space_id = {space_id} and {visible} and {in_reach}
         and {is_retired} and not (select is_small from size where kind = {kind})
       order by (coalesce(f.context_embedding, f.embedding) <=> %(embedding)s) + 0
       limit {candidate_count}) near
 join {table} f on f.agent_id = %(agent_id)s and f.id = near.id
 cross join (select * from size where kind = {kind}) size)

-- name: columns_of_kind
f.id, {kind}::text as kind, {shown}, f.summary, f.compressed, f.index_word, f.state, f.source, f.source_kind, f.scope, f.user_id, f.project_id, f.trust,
f.is_pinned, f.encoded_censors, f.rank_weight::float8 as rank_weight, f.word_count / size.average_length as length,
greatest(f.context_word_count - f.word_count, 0) / size.average_context_length as context_length,
{dense} as dense

-- name: cosine
case when f.embedding_space_id = {space_id}
     then 1 - (coalesce(f.context_embedding, f.embedding) <=> %(embedding)s) else 0 end

-- name: no_vector
-- Where nobody could embed the question.
0::float8

-- name: facts_shown
f.content, f.subject, f.category, f.tags, f.confidence, f.learned_at,
case when f.last_confirmed_at <= coalesce(%(as_of)s::timestamptz, 'infinity') then f.last_confirmed_at
     else f.learned_at end as said_at, f.valid_from, f.valid_to, f.superseded_by,
f.contradiction_status, f.encoded_frame

-- name: episodes_shown
-- The detail may be a whole transcript: it is read for the answers alone, by `read_details`.
concat_ws(E'\n', f.title, coalesce(f.summary, f.compressed, f.index_word)) as content, f.title as subject,
f.outcome as category, f.tags, null::real as confidence, f.started_at as learned_at, f.started_at as said_at, f.started_at as valid_from,
f.ended_at as valid_to, null::uuid as superseded_by, 'none'::text as contradiction_status, f.frame_used as encoded_frame

-- name: procedures_shown
concat_ws(E'\n', f.name, case when f.state = 'review' and %(as_of)s::timestamptz is null then 'In review: ' || f.review_reason end, f.trigger,
          'Goals: ' || nullif(array_to_string(f.goals, '; '), ''),
          'Patterns: ' || nullif(array_to_string(f.core_patterns, '; '), ''),
          'Tools: ' || nullif(array_to_string(f.core_tools, '; '), ''),
          'Concepts: ' || nullif(array_to_string(f.core_concepts, '; '), ''),
          'Notes: ' || nullif(array_to_string(f.implementation_notes, '; '), ''),
          (select string_agg(place || '. ' || case jsonb_typeof(step)
                                                 when 'object' then concat_ws(': ', step ->> 'name', step ->> 'detail')
                                                 else step #>> '{{}}' end, E'\n' order by place)
           from jsonb_array_elements(case jsonb_typeof(f.steps) when 'array' then f.steps else '[]' end)
                with ordinality listed(step, place)),
          f.template #>> '{{}}') as content,
f.name as subject, f.domain as category, f.tags, null::real as confidence, f.learned_at, f.learned_at as said_at,
null::timestamptz as valid_from, null::timestamptz as valid_to, null::uuid as superseded_by, 'none'::text as contradiction_status, f.encoded_frame

-- name: censors_shown
concat_ws(': ', f.trigger, nullif(f.reason, f.trigger)) as content, null::text as subject, f.severity as category, '{{}}'::text[] as tags,
null::real as confidence, f.learned_at, f.learned_at as said_at, null::timestamptz as valid_from, f.expires_at as valid_to,
null::uuid as superseded_by, 'none'::text as contradiction_status, f.encoded_frame

-- name: facts_now
f.state = 'active' and coalesce(f.valid_from <= now(), true) and coalesce(f.valid_to > now(), true)

-- name: facts_ahead
-- A question about what is to come finds what is yet to begin, too.
f.state = 'active' and coalesce(f.valid_to > now(), true)

-- name: facts_then
-- Learned by then, not superseded or archived until later, and valid at that moment. What was forgotten was never there.
-- A value that gave way to the same one as another of its slot or key ended where that one, perhaps told later, began.
f.learned_at <= %(as_of)s and f.state <> 'quarantined'
    and coalesce(f.superseded_at > %(as_of)s, true) and coalesce(f.archived_at > %(as_of)s, true) and not f.is_forgotten
    and coalesce(f.valid_from <= %(as_of)s, true) and coalesce(f.valid_to > %(as_of)s, true)
    and not (f.succession = 'replaced' and exists (
        select from heart.facts late
        where late.agent_id = f.agent_id and late.superseded_by = f.superseded_by and late.succession = 'replaced'
          and (late.slot = f.slot or late.key = f.key) and not late.is_forgotten
          and late.learned_at > f.learned_at and late.learned_at <= %(as_of)s))

-- name: episodes_now
f.state in ('open', 'closed')

-- name: episodes_then
-- What is told of an episode is told of its end.
coalesce(f.ended_at, f.started_at) <= %(as_of)s and coalesce(f.archived_at > %(as_of)s, true) and not f.is_forgotten

-- name: procedures_now
f.state in ('active', 'review')

-- name: procedures_then
-- One that was told anew since is left out: its row says what holds today.
f.learned_at <= %(as_of)s and coalesce(f.archived_at > %(as_of)s, true) and not f.is_forgotten
    and not exists (select from lifecycle.events e
                    where e.agent_id = f.agent_id and e.memory_id = f.id and e.action = 'revised'
                      and e.effective_at > %(as_of)s)

-- name: censors_now
f.state = 'active' and coalesce(f.expires_at > now(), true)

-- name: censors_then
f.learned_at <= %(as_of)s and coalesce(f.archived_at > %(as_of)s, true) and not f.is_forgotten and coalesce(f.expires_at > %(as_of)s, true)

-- name: facts_recalled
-- These and the next three are what the vector indexes hold.
f.state = 'active'

-- name: episodes_recalled
f.state in ('open', 'closed')

-- name: procedures_recalled
f.state in ('active', 'review')

-- name: censors_recalled
f.state = 'active'

-- name: facts_retired
f.state in ('superseded', 'archived')

-- name: episodes_retired
f.state = 'archived'

-- name: procedures_retired
f.state = 'archived'

-- name: censors_retired
f.state = 'archived'

-- name: read_details
select id, concat_ws(E'\n', title, coalesce(detail, summary, compressed, index_word))
from heart.episodes where agent_id = %(agent_id)s and id = any(%(ids)s)

-- name: agents_to_count
-- The agents whose word counts lack changes, and whether all of theirs has to be counted again: where that was not done yet,
-- or memories came or went without a row in `word_changes`, as those do that a purge takes.
with counted as (
    select agent_id, sum(memory_count) as memories, bool_and(total_length is not null) as is_whole
    from heart.corpus_stats where agent_id = any(%(agent_ids)s) group by agent_id
), pending as (
    select agent_id, sum(memory_count) as memories from heart.word_changes where agent_id = any(%(agent_ids)s) group by agent_id
), stored as (
    select agent_id, count(*) as memories
    from (
        select agent_id from heart.facts union all
        select agent_id from heart.episodes union all
        select agent_id from heart.procedures union all
        select agent_id from heart.censors
    ) memory
    where agent_id = any(%(agent_ids)s)
    group by agent_id
)
select id, is_uncounted
from (
    select a.id, p.agent_id is not null as has_changes,
           not coalesce(c.is_whole, true) or coalesce(c.memories, 0) + coalesce(p.memories, 0) <> coalesce(s.memories, 0) as is_uncounted
    from unnest(%(agent_ids)s::text[]) a(id)
        left join counted c on c.agent_id = a.id
        left join pending p on p.agent_id = a.id
        left join stored s on s.agent_id = a.id
) agent
where has_changes or is_uncounted
order by id

-- name: one_counter
-- Of two who count the words of one agent the second waits, and then sees what the first did.
select pg_advisory_xact_lock(hashtextextended('heart.term_stats ' || %(agent_id)s, 0))

-- name: move_statistics
-- Adds what changed since the last count: in how many memories each word occurs, how many memories there are, and how long.
with news as (
    delete from heart.word_changes where agent_id = %(agent_id)s returning *
), words as (
    select lexeme, sum(change)::integer as change
    from (
        select unnest(come) as lexeme, 1 as change from news
        union all
        select unnest(gone), -1 from news
    ) each
    group by lexeme having sum(change) <> 0
), gone as (
    delete from heart.term_stats s using words w
    where s.agent_id = %(agent_id)s and s.lexeme = w.lexeme and s.document_count + w.change <= 0
), moved as (
    insert into heart.term_stats as s (agent_id, lexeme, document_count)
    select %(agent_id)s, w.lexeme, w.change
    from words w left join heart.term_stats s on s.agent_id = %(agent_id)s and s.lexeme = w.lexeme
    where coalesce(s.document_count, 0) + w.change > 0
    order by w.lexeme
    on conflict (agent_id, lexeme) do update set document_count = s.document_count + excluded.document_count
), sums as (
    select memory_kind, sum(memory_count) as memories, sum(context_count) as contexts, sum(length) as length,
           sum(context_length) as context_length, sum(longer_count) as longer
    from (
        select memory_kind, memory_count, context_count, length, context_length, longer_count from news
        union all
        select memory_kind, memory_count, context_count, total_length, total_context_length, longer_count
        from heart.corpus_stats where agent_id = %(agent_id)s
    ) each
    group by memory_kind
)
{store_corpus_stats}

-- name: recount_statistics
-- In how many memories of an agent each word occurs: of their own words, not of what was said around them.
with news as (
    delete from heart.word_changes where agent_id = %(agent_id)s
), words as (
    select lexeme, count(*)::integer as document_count
    from heart.postings
    where agent_id = %(agent_id)s and term_count > 0
    group by lexeme
), gone as (
    delete from heart.term_stats s
    where s.agent_id = %(agent_id)s and not exists (select from words w where w.lexeme = s.lexeme)
), counted as (
    insert into heart.term_stats (agent_id, lexeme, document_count)
    select %(agent_id)s, w.lexeme, w.document_count
    from words w
    where not exists (
        -- An upsert locks what it leaves alone, so words that are counted as before are not handed to it.
        select from heart.term_stats s
        where s.agent_id = %(agent_id)s and s.lexeme = w.lexeme and s.document_count = w.document_count)
    on conflict (agent_id, lexeme) do update set document_count = excluded.document_count
), sums as (
    select memory_kind, count(*) as memories, count(context_embedding) as contexts, sum(word_count) as length,
           coalesce(sum(context_word_count - word_count) filter (where context_word_count > word_count), 0) as context_length,
           count(*) filter (where context_word_count > word_count) as longer
    from (
        select 'fact' as memory_kind, word_count, context_word_count, context_embedding
        from heart.facts where agent_id = %(agent_id)s
        union all
        select 'episode', word_count, context_word_count, context_embedding from heart.episodes where agent_id = %(agent_id)s
        union all
        select 'procedure', word_count, context_word_count, context_embedding from heart.procedures where agent_id = %(agent_id)s
        union all
        select 'censor', word_count, context_word_count, context_embedding from heart.censors where agent_id = %(agent_id)s
    ) memory
    group by memory_kind
), emptied as (
    delete from heart.corpus_stats where agent_id = %(agent_id)s and memory_kind not in (select memory_kind from sums)
)
{store_corpus_stats}

-- name: store_corpus_stats
-- A kind the agent has nothing of gets no row.
insert into heart.corpus_stats (
    agent_id, memory_kind, memory_count, context_count, average_length, average_context_length, total_length,
    total_context_length, longer_count, refreshed_at)
select %(agent_id)s, memory_kind, memories, contexts, length::numeric / memories,
       case when longer > 0 then context_length::numeric / longer else 0 end, length, context_length, longer, now()
from sums where memories > 0
on conflict (agent_id, memory_kind) do update set
    memory_count = excluded.memory_count, context_count = excluded.context_count,
    average_length = excluded.average_length, average_context_length = excluded.average_context_length,
    total_length = excluded.total_length, total_context_length = excluded.total_context_length,
    longer_count = excluded.longer_count, refreshed_at = excluded.refreshed_at
