-- name: store_episode
-- A closed episode, its completion, its announcement, and the event that says who stored it and why. The logical moment of
-- the event is the episode's end, and so is when its completion falls due: what ended first is completed first.
with stored as (
    insert into heart.episodes (
        id, agent_id, state, title, summary, detail, started_at, ended_at, participants, tags, frame_used,
        encoded_censors, outcome, surprise_level, lessons_learned, session_id, source, source_kind, trust, is_pinned, scope,
        user_id, project_id, embedding, embedding_space_id)
    values (
        %(id)s, %(agent_id)s, 'closed', %(title)s, %(summary)s, %(detail)s, %(started_at)s,
        %(ended_at)s, %(participants)s, %(tags)s, %(frame_used)s, %(encoded_censors)s, %(outcome)s, %(surprise_level)s,
        %(lessons_learned)s, %(session_id)s, %(source)s, %(source_kind)s, %(trust)s, %(is_pinned)s, %(scope)s,
        %(user_id)s, %(project_id)s, %(embedding)s, %(space_id)s)
    returning *
), queued as (
    insert into heart.completions (agent_id, episode_id, due_at)
    select agent_id, id, least(ended_at, now()) from stored
), announced as (
    insert into heart.outbox (agent_id, name, memory_id, payload)
    select agent_id, 'episode_closed', id, jsonb_build_object('episode_id', id) from stored
)
insert into lifecycle.events (
    agent_id, memory_kind, memory_id, action, from_state, to_state, version_before, version_after, actor, reason,
    effective_at)
select agent_id, 'episode', id, 'learned', 'new', state, 0, row_version, %(actor)s, %(reason)s, ended_at from stored

-- name: stored_until
-- When the episode ended that was stored under an idempotency key.
select e.ended_at from heart.requests r join heart.episodes e on e.agent_id = r.agent_id and e.id = r.memory_id
where r.agent_id = %(agent_id)s and r.idempotency_key = %(key)s

-- name: current_episode
-- What was begun without a session belongs to the default one. Who names no session means that one, and takes an episode
-- of any other only when it has none.
select id from heart.episodes
where agent_id = %(agent_id)s and state = 'open'
  and (%(session_id)s::text is null or coalesce(session_id, %(default_session)s) = %(session_id)s)
order by coalesce(session_id, %(default_session)s) = %(default_session)s desc, started_at desc, id desc
limit 1

-- name: artifacts_of
select kind, reference from heart.episode_artifacts
where agent_id = %(agent_id)s and episode_id = %(episode_id)s
order by kind, reference

-- name: store_artifact
insert into heart.episode_artifacts (agent_id, episode_id, kind, reference)
values (%(agent_id)s, %(episode_id)s, %(kind)s, %(reference)s)
on conflict do nothing

-- name: absent_procedures
select id from unnest(%(ids)s::uuid[]) id
where not exists (select from heart.procedures p where p.agent_id = %(agent_id)s and p.id = id.id)

-- name: queue_completion
insert into heart.completions (agent_id, episode_id) values (%(agent_id)s, %(episode_id)s)

-- name: full_text
-- The most detailed text there is of an episode: as the row has it now or, where that text has left, the last one that
-- went to cold storage.
select e.id as episode_id, e.title, coalesce(found.text, e.title, e.index_word, '') as text,
       coalesce(found.level, 'title') as level, coalesce(found.is_cold, false) as is_cold, found.purge_after
from heart.episodes e
left join lateral (
    select place, level, text, false as is_cold, null::timestamptz as stored_at, null::timestamptz as purge_after
    from (values (1, 'detail', e.detail), (2, 'summary', e.summary), (3, 'compressed', e.compressed)) hot(place, level, text)
    where text is not null
    union all
    select place, level, text, true, c.stored_at, c.purge_after
    from heart.cold_texts c
    cross join lateral (
        values (1, 'detail', c.detail), (2, 'summary', c.summary), (3, 'compressed', c.compressed)) cold(place, level, text)
    where c.agent_id = e.agent_id and c.memory_id = e.id and text is not null
    order by place, is_cold, stored_at desc
    limit 1
) found on true
where e.agent_id = %(agent_id)s and e.id = %(id)s

-- name: queue_again
-- Its row may be gone: a purge deletes what ended long ago.
insert into heart.completions (agent_id, episode_id) values (%(agent_id)s, %(episode_id)s)
on conflict (agent_id, episode_id) do update
set due_at = now(), attempt_count = 0, outage_count = 0, draft = null, last_error = null, finished_at = null
