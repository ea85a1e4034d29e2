-- name: lock_agent
-- Learning is serial per agent: what two processes learn at once is compared with each other, not stored twice.
select pg_advisory_xact_lock(hashtextextended('learn:' || %(agent_id)s, 0))

-- name: prepare_learning
-- The agent's lock, and how the search for neighbours is planned: once a connection, for any agent and statement, as
-- planning it takes half as long as running it. What must not be taken is switched off while that plan is made; from here on
-- plans are made for tables of any size, those of what is written and of the checks of foreign keys as well.
select pg_advisory_xact_lock(hashtextextended('learn:' || %(agent_id)s, 0)),
       set_config('plan_cache_mode', 'force_generic_plan', true), set_config('enable_seqscan', 'off', true),
       set_config('enable_sort', 'off', true), set_config('enable_mergejoin', 'off', true), set_config('jit', 'off', true)

-- name: register_agent
insert into heart.agents (id, embedding_space_id) values (%(agent_id)s, %(space_id)s)
on conflict (id) do nothing

-- name: agent_space
select s.id, s.model, s.weights_sha256, s.dimensions
from heart.agents a join heart.embedding_spaces s on s.id = a.embedding_space_id
where a.id = %(agent_id)s

-- name: find_requests
select idempotency_key, content_hash, memory_id, action from heart.requests
where agent_id = %(agent_id)s and idempotency_key = any(%(keys)s)

-- name: store_request
insert into heart.requests (agent_id, idempotency_key, verb, content_hash, memory_id, action)
values (%(agent_id)s, %(idempotency_key)s, %(verb)s, %(content_hash)s, %(memory_id)s, %(action)s)

-- name: nearest_facts
-- Documents aside: they are asked for by their names, and give way to no statement.
-- Limits are constants, and additions keep two indexes away, so that one plan is right for every agent.
-- The nearest by vector, and by key whatever fills the same slot: another value may lie far from the one it replaces.
-- Besides, in whatever state, what the caller says is replaced, and the active value of the caller's key.
-- A small tenant is compared with all of its facts: the vector index holds everybody's, and loses some of many equal
-- ones; the addition keeps it away. Counting ten thousand rows takes as long as a third of the search, so the last count is
-- taken where there is one. The casts are what the index is built on: half precision, in the width of the space.
with size as materialized (
    select coalesce(
        (select memory_count <= {exact_limit} from heart.corpus_stats where agent_id = %(agent_id)s and memory_kind = 'fact'),
        not exists (
            select from heart.facts where agent_id = %(agent_id)s and state = 'active' offset {exact_limit})) as is_small
), near as materialized (
    (select id, embedding <=> %(embedding)s as distance
     from heart.facts
     where agent_id = %(agent_id)s and state = 'active' and embedding_space_id = {space_id} and scope = %(scope)s and {of_user} and {of_project} and category is distinct from 'document'
       and (select is_small from size)
     order by (embedding <=> %(embedding)s) + 0
     limit {limit})
    union all
    (select id, embedding <=> %(embedding)s as distance
     from heart.facts
     where agent_id = %(agent_id)s and state = 'active' and embedding_space_id = {space_id} and scope = %(scope)s and {of_user} and {of_project} and category is distinct from 'document'
       and not (select is_small from size)
     order by embedding::halfvec({dimensions}) <=> %(embedding)s::halfvec({dimensions})
     limit {limit})
), same_slot as materialized (
    select id, embedding <=> %(embedding)s as distance
    from heart.facts
    where agent_id = %(agent_id)s and state = 'active' and slot = %(slot)s and embedding_space_id = {space_id} and scope = %(scope)s and {of_user} and {of_project} and category is distinct from 'document'
    order by learned_at + interval '0' desc, id
    limit {limit}
), same_key as materialized (
    select id, embedding <=> %(embedding)s as distance
    from heart.facts
    where agent_id = %(agent_id)s and state = 'active' and key = %(key)s and embedding_space_id = {space_id} and scope = %(scope)s and {of_user} and {of_project}
), replaced as materialized (
    select id, embedding <=> %(embedding)s as distance
    from heart.facts
    where agent_id = %(agent_id)s and id = any(%(replaces)s) and embedding_space_id = {space_id} and scope = %(scope)s and {of_user} and {of_project} and category is distinct from 'document'
), candidate as (
    select id, min(distance) as distance
    from (table near union all table same_slot union all table same_key union all table replaced) found
    group by id
)
select {columns}, 1 - c.distance as similarity
from candidate c
join heart.facts f on f.agent_id = %(agent_id)s and f.id = c.id
order by c.distance, f.id

-- name: heir
-- What a fact that takes another's place needs to inherit its words; nothing where it is out of recall or being moved.
select h.row_version, h.context, coalesce(h.context_embedding, h.embedding), old.embedding
from heart.facts h
join heart.facts old on old.agent_id = h.agent_id and old.id = %(old_id)s and old.embedding_space_id = h.embedding_space_id
where h.agent_id = %(agent_id)s and h.id = %(new_id)s and h.state = 'active'

-- name: embedding_of
select embedding from heart.facts where agent_id = %(agent_id)s and id = %(id)s

-- name: find_forgotten
-- A fact of the same reach that somebody asked to forget, and one of whose statements says the same words.
with recursive line as (
    select s.fact_id as id from heart.statements s
    where s.agent_id = %(agent_id)s
      and hashtextextended(heart.folded(s.content), 0) = hashtextextended(heart.folded(%(content)s), 0)
      and heart.folded(s.content) = heart.folded(%(content)s)
    union
    select f.superseded_by from line cross join lateral (
        select superseded_by from heart.facts
        where agent_id = %(agent_id)s and id = line.id and succession = 'merged' offset 0
    ) f
)
select f.id, f.archived_at from line cross join lateral (
    select id, is_forgotten, scope, user_id, project_id, archived_at from heart.facts
    where agent_id = %(agent_id)s and id = line.id offset 0
) f
where f.is_forgotten and f.scope = %(scope)s and f.user_id is not distinct from %(user_id)s
  and f.project_id is not distinct from %(project_id)s
order by f.archived_at desc, f.id
limit 1

-- name: said_too
-- Another active fact of the same reach, one of whose statements says the words of this one.
select f.id from heart.facts own
join heart.statements s on s.agent_id = own.agent_id
    and hashtextextended(heart.folded(s.content), 0) = hashtextextended(heart.folded(own.content), 0)
    and heart.folded(s.content) = heart.folded(own.content)
join heart.facts f on f.agent_id = own.agent_id and f.id = s.fact_id
where own.agent_id = %(agent_id)s and own.id = %(id)s and f.id <> own.id and f.state = 'active' and f.scope = own.scope
  and f.user_id is not distinct from own.user_id and f.project_id is not distinct from own.project_id
order by f.learned_at desc, f.id
limit 1

-- name: of_user
user_id = %(user_id)s

-- name: of_nobody
-- Not "is not distinct from": the planner guesses that it holds for one row in two hundred, and then reads them all.
user_id is null

-- name: of_project
project_id = %(project_id)s

-- name: of_no_project
project_id is null

-- name: store_fact
-- A fact with the statement it stands on, its event and its announcement.
with stored as (
    insert into heart.facts (
        id, agent_id, content, context, subject, slot, key, summary, compressed, index_word, category, tags, confidence, source, source_kind, source_episode_id,
        source_decision_id, sources, trust, is_pinned, learned_at, valid_from, valid_to, encoded_frame, encoded_censors, scope, user_id,
        project_id, perhaps_replaces, embedding, context_embedding, embedding_space_id)
    values (
        coalesce(%(id)s, heart.new_id()), %(agent_id)s, %(content)s, %(context)s, %(subject)s, %(slot)s, %(key)s,
        %(summary)s, %(compressed)s, %(index_word)s, %(category)s,
        %(tags)s, %(confidence)s, %(source)s, %(source_kind)s, %(source_episode_id)s, %(source_decision_id)s, %(sources)s, %(trust)s,
        %(is_pinned)s, %(learned_at)s, %(valid_from)s, %(valid_to)s, %(encoded_frame)s, %(encoded_censors)s, %(scope)s,
        %(user_id)s, %(project_id)s, %(perhaps_replaces)s, %(embedding)s, %(context_embedding)s, %(space_id)s)
    returning *
), event as (
    insert into lifecycle.events (
        agent_id, memory_kind, memory_id, action, from_state, to_state, version_before, version_after, after, actor, reason,
        effective_at)
    select agent_id, 'fact', id, %(action)s, 'new', state, 0, row_version, %(after)s, %(actor)s, %(reason)s,
           %(effective_at)s
    from stored
), stated as ({statement}
), announced as (
    insert into heart.outbox (agent_id, name, memory_id, payload)
    select agent_id, 'fact_learned', id, jsonb_build_object('subject', subject, 'content', content) from stored
)
select {columns}
from stored

-- name: first_statement
    insert into heart.statements (
        agent_id, fact_id, content, subject, said_at, source, source_kind, trust, user_id, project_id, scope, session_id,
        episode_id, decision_id, frame, reason)
    select s.agent_id, s.id, s.content, s.subject, s.learned_at, s.source, s.source_kind, s.trust, s.user_id, s.project_id,
           s.scope, coalesce(%(session_id)s::text, e.session_id), s.source_episode_id, s.source_decision_id, s.encoded_frame, %(stated_as)s
    from stored s left join heart.episodes e on e.agent_id = s.agent_id and e.id = s.source_episode_id

-- name: moved_statement
-- The statement was there; from now on it is what this fact says.
    update heart.statements s set fact_id = stored.id, reason = 'first'
    from stored where s.agent_id = stored.agent_id and s.id = %(statement_id)s

-- name: next_value
-- The value a late-told older one gave way to: of all that led to the value known, the first learned after it.
with recursive earlier as (
    select %(known_id)s::uuid as id
    union
    select f.id
    from earlier e
    join heart.facts f on f.agent_id = %(agent_id)s and f.superseded_by = e.id and f.succession = 'replaced'
)
select {columns}
from earlier e
join heart.facts f on f.agent_id = %(agent_id)s and f.id = e.id
where f.learned_at > %(learned_at)s or f.id = %(known_id)s
order by f.learned_at, f.id
limit 1

-- name: values_before
-- Of what gave way to a value, what was learned before a late-told one and stood beyond the moment that one began. What
-- has another key or slot was a value of something else.
select {columns}
from heart.facts f
where f.agent_id = %(agent_id)s and f.superseded_by = %(heir_id)s and f.succession = 'replaced' and f.id <> %(late_id)s
  and f.learned_at <= %(learned_at)s and f.superseded_at > %(learned_at)s
  and coalesce(f.key = %(key)s::text, true) and coalesce(f.slot = %(slot)s::text, true)
order by f.id

-- name: value_of_key
-- The active value of a key, for whom a fact is meant.
select {columns}
from heart.facts f
where f.agent_id = %(agent_id)s and f.state = 'active' and f.key = %(key)s and f.scope = %(scope)s
  and f.user_id is not distinct from %(user_id)s and f.project_id is not distinct from %(project_id)s

-- name: prepare_writing
-- Asked at each learning, and mostly answered with no: the two searches that may follow are planned for nobody else.
select exists (select from lifecycle.events where agent_id = %(agent_id)s and after ? 'split_from'),
       exists (select from heart.facts where agent_id = %(agent_id)s and is_forgotten),
       set_config('enable_sort', 'on', true), set_config('enable_mergejoin', 'on', true)

-- name: split_off
-- What was split off from which facts, now that some of those were merged into others. Of each split one row is looked up at
-- a time: the planner takes them for a thousand, and would read every event there is.
with recursive split as materialized (
    select id, memory_id, action, (after ->> 'split_from')::uuid as from_id
    from lifecycle.events where agent_id = %(agent_id)s and after ? 'split_from'
), apart as (
    select f.content, s.from_id as id
    from split s
    cross join lateral (
        select content from heart.facts f where f.agent_id = %(agent_id)s and f.id = s.memory_id limit 1) f
    left join lateral (
        select true as is_undone from lifecycle.events u where s.action = 'split' and u.undoes = s.id limit 1) u on true
    where u.is_undone is null
    union
    select a.content, f.superseded_by
    from apart a
    cross join lateral (
        select f.superseded_by from heart.facts f
        where f.agent_id = %(agent_id)s and f.id = a.id and f.succession = 'merged' limit 1) f
)
select content, id from apart

-- name: facts_by_id
select {columns} from heart.facts where agent_id = %(agent_id)s and id = any(%(ids)s)

-- name: count_facts
select state, count(*) from heart.facts where agent_id = %(agent_id)s group by state order by state

-- name: gave_way_to
-- Facts that gave way to one: what was merged into it, directly or by a detour, and what it replaced.
-- Each of the two by an index of its own: asked for as one, every fact is read.
with gone as (
    select id, true as is_merged from heart.merged_into(%(agent_id)s, %(id)s) m(id)
    union all
    select id, false from heart.facts where agent_id = %(agent_id)s and superseded_by = %(id)s
)
select id, bool_or(is_merged) as is_merged from gone where id <> %(id)s
group by id order by id

-- name: documents_of_one_name
-- A name that would lead to two texts, of which one was brought back.
select f.subject from heart.facts f
join heart.facts o on o.agent_id = f.agent_id and o.state = 'active' and o.id <> f.id and o.category = f.category
    and o.project_id = f.project_id and lower(o.subject) = lower(f.subject) and o.subject = f.subject
where f.agent_id = %(agent_id)s and f.id = any(%(ids)s) and f.state = 'active' and f.category = 'document'

-- name: keys_held_twice
-- A key that would have two values, of which one was brought back.
select f.id, f.key, o.id from heart.facts f
join heart.facts o on o.agent_id = f.agent_id and o.state = 'active' and o.id <> f.id and o.key = f.key and o.scope = f.scope
    and o.user_id is not distinct from f.user_id and o.project_id is not distinct from f.project_id
where f.agent_id = %(agent_id)s and f.id = any(%(ids)s) and f.state = 'active' and f.key is not null

-- name: retirements
-- What took a memory out of recall since it was last active, the latest first.
select e.action, e.actor, e.reason, e.night, e.proposal_id,
       e.undoes is null and not exists (
           select from lifecycle.events u where u.agent_id = e.agent_id and u.undoes = e.id) as is_in_effect
from lifecycle.events e
where e.agent_id = %(agent_id)s and e.memory_id = %(memory_id)s and e.from_state <> e.to_state
  and e.version_after > coalesce((
      select max(a.version_after) from lifecycle.events a
      where a.agent_id = e.agent_id and a.memory_id = e.memory_id and a.to_state = 'active'), 0)
order by e.version_after desc
