-- name: act_as_night
-- What the nights did is theirs to read and write.
set local role nous_night

-- name: act_as_app
-- What an agent says of itself, its own calls write.
set local role nous_app

-- name: act_as_purge
-- Who was erased is known to nobody else.
set local role nous_purge

-- name: spaces_of
-- The embedding spaces the vectors of an agent are of, its own first.
select s.id, s.model, s.weights_sha256, s.dimensions
from heart.embedding_spaces s
join heart.agents a on a.id = %(agent_id)s
where s.id = a.embedding_space_id
   or exists (select from heart.facts m where m.agent_id = a.id and m.embedding_space_id = s.id)
   or exists (select from heart.episodes m where m.agent_id = a.id and m.embedding_space_id = s.id)
   or exists (select from heart.procedures m where m.agent_id = a.id and m.embedding_space_id = s.id)
   or exists (select from heart.censors m where m.agent_id = a.id and m.embedding_space_id = s.id)
   or exists (select from heart.recalls m where m.agent_id = a.id and m.embedding_space_id = s.id)
   or exists (select from heart.working_memory m where m.agent_id = a.id and m.embedding_space_id = s.id)
order by s.id = a.embedding_space_id desc, s.id

-- name: rows_of
select (to_jsonb(t) - %(dropped)s::text[])::text from {table} t where agent_id = %(agent_id)s order by {key}

-- name: facts_of
-- A fact comes after the one that superseded it, so that it can point to it when it is stored again.
with recursive line as (
    select id, 0 as depth from heart.facts where agent_id = %(agent_id)s and superseded_by is null
    union all
    select f.id, l.depth + 1
    from line l join heart.facts f on f.agent_id = %(agent_id)s and f.superseded_by = l.id
)
select (to_jsonb(f) - %(dropped)s::text[])::text
from line l join heart.facts f on f.agent_id = %(agent_id)s and f.id = l.id
order by l.depth, f.id

-- name: events_of
-- Ids of events are the server's: what an event undoes is named by the memory and the version it led to.
select (to_jsonb(e) - %(dropped)s::text[] - 'id' || jsonb_build_object('undoes', case when u.id is not null then
           jsonb_build_object('memory_id', u.memory_id, 'version_after', u.version_after) end))::text
from lifecycle.events e left join lifecycle.events u on u.id = e.undoes
where e.agent_id = %(agent_id)s
order by e.id

-- name: plans_of
-- Of the plans of nights only what is not about other agents.
select jsonb_build_object('hash', hash, 'night', night, 'policy', policy - 'agents', 'state', state, 'run_id', run_id,
                          'created_at', created_at, 'applied_at', applied_at)::text
from lifecycle.plans
where hash in (select plan_hash from lifecycle.proposals where agent_id = %(agent_id)s)
order by hash
