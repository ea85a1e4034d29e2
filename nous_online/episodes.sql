-- name: store_episode
-- A closed episode and the event that says who stored it and why; the event's logical moment is the episode's end.
with stored as (
    insert into heart.episodes (
        id, agent_id, state, title, summary, detail, started_at, ended_at, participants, tags, frame_used,
        encoded_censors, outcome, surprise_level, lessons_learned, source, source_kind, trust, is_pinned, scope, user_id,
        project_id, embedding, embedding_space_id)
    values (
        coalesce(%(id)s, heart.new_id()), %(agent_id)s, 'closed', %(title)s, %(summary)s, %(detail)s, %(started_at)s,
        %(ended_at)s, %(participants)s, %(tags)s, %(frame_used)s, %(encoded_censors)s, %(outcome)s, %(surprise_level)s,
        %(lessons_learned)s, %(source)s, %(source_kind)s, %(trust)s, %(is_pinned)s, %(scope)s, %(user_id)s,
        %(project_id)s, %(embedding)s, %(space_id)s)
    returning *
)
insert into lifecycle.events (
    agent_id, memory_kind, memory_id, action, from_state, to_state, version_before, version_after, actor, reason,
    effective_at)
select agent_id, 'episode', id, 'learned', 'new', state, 0, row_version, %(actor)s, %(reason)s, ended_at from stored
