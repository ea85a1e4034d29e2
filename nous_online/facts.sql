-- name: lock_agent
-- Learning is serial per agent: what two processes learn at once is compared with each other, not stored twice.
select pg_advisory_xact_lock(hashtextextended('learn:' || %(agent_id)s, 0))

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
-- The nearest by vector, and by key whatever fills the same slot: another value may lie far from the one it replaces.
-- A small tenant is compared with all of its facts: the vector index holds everybody's, and loses some of many equal
-- ones; the addition keeps it away. The casts are what the index is built on: half precision, in the width of the space.
with size as materialized (
    select count(*) <= %(exact_limit)s as is_small
    from (select from heart.facts where agent_id = %(agent_id)s and state = 'active' limit %(exact_limit)s + 1) counted
), near as materialized (
    (select id, embedding <=> %(embedding)s as distance
     from heart.facts
     where agent_id = %(agent_id)s and state = 'active' and embedding_space_id = {space_id} and scope = %(scope)s and {of_user} and {of_project} and category is distinct from 'document'
       and (select is_small from size)
     order by (embedding <=> %(embedding)s) + 0
     limit %(limit)s)
    union all
    (select id, embedding <=> %(embedding)s as distance
     from heart.facts
     where agent_id = %(agent_id)s and state = 'active' and embedding_space_id = {space_id} and scope = %(scope)s and {of_user} and {of_project} and category is distinct from 'document'
       and not (select is_small from size)
     order by embedding::halfvec({dimensions}) <=> %(embedding)s::halfvec({dimensions})
     limit %(limit)s)
), same_slot as materialized (
    select id, embedding <=> %(embedding)s as distance
    from heart.facts
    where agent_id = %(agent_id)s and state = 'active' and slot = %(slot)s and embedding_space_id = {space_id} and scope = %(scope)s and {of_user} and {of_project} and category is distinct from 'document'
    order by learned_at desc, id
    limit %(limit)s
), candidate as (
    select id, min(distance) as distance from (select * from near union all select * from same_slot) found group by id
)
select {columns}, 1 - c.distance as similarity
from candidate c
join heart.facts f on f.agent_id = %(agent_id)s and f.id = c.id
order by c.distance, f.id

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
with stored as (
    insert into heart.facts (
        id, agent_id, content, context, subject, slot, summary, compressed, index_word, category, tags, confidence, source, source_kind, source_episode_id,
        source_decision_id, sources, trust, is_pinned, learned_at, valid_from, valid_to, encoded_frame, encoded_censors, scope, user_id,
        project_id, embedding, context_embedding, embedding_space_id)
    values (
        coalesce(%(id)s, heart.new_id()), %(agent_id)s, %(content)s, %(context)s, %(subject)s, %(slot)s,
        %(summary)s, %(compressed)s, %(index_word)s, %(category)s,
        %(tags)s, %(confidence)s, %(source)s, %(source_kind)s, %(source_episode_id)s, %(source_decision_id)s, %(sources)s, %(trust)s,
        %(is_pinned)s, %(learned_at)s, %(valid_from)s, %(valid_to)s, %(encoded_frame)s, %(encoded_censors)s, %(scope)s,
        %(user_id)s, %(project_id)s, %(embedding)s, %(context_embedding)s, %(space_id)s)
    returning *
), event as (
    insert into lifecycle.events (
        agent_id, memory_kind, memory_id, action, from_state, to_state, version_before, version_after, actor, reason,
        effective_at)
    select agent_id, 'fact', id, 'learned', 'new', state, 0, row_version, %(actor)s, %(reason)s, learned_at from stored
), announced as (
    insert into heart.outbox (agent_id, name, memory_id, payload)
    select agent_id, 'fact_learned', id, jsonb_build_object('subject', subject, 'content', content) from stored
)
select {columns}
from stored

-- name: count_facts
select state, count(*) from heart.facts where agent_id = %(agent_id)s group by state order by state
