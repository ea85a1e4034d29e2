-- name: see
-- In the order of the signals, so that two calls of a session don't wait for each other in a circle.
insert into heart.sightings (agent_id, signal, session_id, seen_at)
select %(agent_id)s, signal, %(session_id)s, %(at)s from unnest(%(atoms)s::text[]) told(signal) order by signal
on conflict do nothing

-- name: sighted_sessions
-- The latest sessions of each signal, without the one that is predicted for.
select told.place::integer - 1, s.session_id, s.seen_at
from unnest(%(atoms)s::text[]) with ordinality told(signal, place)
cross join lateral (
    select session_id, seen_at from heart.sightings
    where agent_id = %(agent_id)s and signal = told.signal and seen_at <= %(at)s
    order by seen_at desc
    limit %(sessions)s
) s
where s.session_id is distinct from %(session_id)s

-- name: used_in_sessions
-- What was recalled in the named sessions, from each its latest recalls; and lately, in any other. Of a context, which
-- has no vector, only what was cited: it shows what was predicted, which would soon be all that is predicted.
select coalesce(session_id, id::text), recalled_at,
       array_send(case when query_embedding is null then cited_ids else result_ids end), array_send(cited_ids),
       array_send(ignored_ids)
from (
    select r.* from unnest(%(session_ids)s::text[]) named(session_id)
    cross join lateral (
        select id, session_id, recalled_at, query_embedding, result_ids, cited_ids, ignored_ids from heart.recalls
        where agent_id = %(agent_id)s and session_id = named.session_id and recalled_at <= %(at)s
        order by recalled_at desc
        limit %(recalls)s
    ) r
    union all
    select * from (
        select id, session_id, recalled_at, query_embedding, result_ids, cited_ids, ignored_ids from heart.recalls
        where agent_id = %(agent_id)s and recalled_at <= %(at)s
        order by recalled_at desc
        limit %(latest)s
    ) latest
    where coalesce(session_id <> all(%(session_ids)s::text[]), true)
) recalled

-- name: known_memories
-- Of what was used before, what is still there and in reach; a fact that was superseded stands for its successor.
with recursive heir as (
    select f.id as used_id, f.id, f.superseded_by, 0 as steps,
           f.state = 'active' and f.learned_at <= %(at)s and coalesce(f.valid_from <= %(at)s, true)
               and coalesce(f.valid_to > %(at)s, true) and {in_reach} as stands
    from heart.facts f
    where f.agent_id = %(agent_id)s and f.id = any(%(ids)s::uuid[])
    union all
    select h.used_id, next.*
    from heir h
    cross join lateral (
        -- One by one, by the key: joined as a whole, all the facts of an agent would be read.
        select f.id, f.superseded_by, h.steps + 1,
               f.state = 'active' and f.learned_at <= %(at)s and coalesce(f.valid_from <= %(at)s, true)
                   and coalesce(f.valid_to > %(at)s, true) and {in_reach}
        from heart.facts f
        where f.agent_id = %(agent_id)s and f.id = h.superseded_by
        offset 0
    ) next
    where h.superseded_by is not null and h.steps < %(steps)s
)
select used_id, id, 'fact' as kind from heir where stands
union all
select f.id, f.id, 'episode' from heart.episodes f
where f.agent_id = %(agent_id)s and f.id = any(%(ids)s::uuid[]) and f.state in ('open', 'closed')
  and f.started_at <= %(at)s and {in_reach}
union all
select f.id, f.id, 'procedure' from heart.procedures f
where f.agent_id = %(agent_id)s and f.id = any(%(ids)s::uuid[]) and f.state in ('active', 'review')
  and f.learned_at <= %(at)s and {in_reach}
union all
select f.id, f.id, 'censor' from heart.censors f
where f.agent_id = %(agent_id)s and f.id = any(%(ids)s::uuid[]) and f.state = 'active'
  and f.learned_at <= %(at)s and coalesce(f.expires_at > %(at)s, true) and {in_reach}
