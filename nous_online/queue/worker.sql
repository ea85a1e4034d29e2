-- name: take_due
-- Taking moves due_at ahead, so that others leave the episode alone; when the one who took it dies, it falls due again,
-- later each time: an episode that kills its workers must not keep killing them. What fell due in the last hour goes before
-- an imported past, which is due since its episodes ended.
with due as (
    select agent_id, episode_id
    from heart.completions
    where agent_id = %(agent_id)s and finished_at is null and due_at <= now()
    order by due_at < now() - interval '1 hour', due_at, episode_id
    limit 1
    for update skip locked
)
update heart.completions c
set due_at = now() + make_interval(secs => least(%(lease_s)s * 2 ^ least(c.attempt_count, 20), %(longest_wait_s)s)),
    attempt_count = c.attempt_count + 1
from due
where c.agent_id = due.agent_id and c.episode_id = due.episode_id
returning c.episode_id, c.attempt_count, c.draft, c.attempt_count - c.outage_count as failure_count

-- name: keep_draft
-- The first draft of what was told wins, so that whoever continues carries out the same one. The lease begins anew.
update heart.completions
set draft = case when draft->>'drawn_from' = %(drawn_from)s then draft else %(draft)s end,
    due_at = greatest(due_at, now() + make_interval(secs => %(lease_s)s))
where agent_id = %(agent_id)s and episode_id = %(episode_id)s
returning draft

-- name: put_off
update heart.completions
set due_at = now() + make_interval(secs => %(wait_s)s), last_error = %(error)s,
    outage_count = outage_count + %(is_outage)s::boolean::integer
where agent_id = %(agent_id)s and episode_id = %(episode_id)s and finished_at is null

-- name: end_attempts
update heart.completions
set finished_at = now(), last_error = %(note)s
where agent_id = %(agent_id)s and episode_id = %(episode_id)s and finished_at is null

-- name: decisions_during
-- Decisions of the session made while the episode went on, and those that name it already; by what the agent calls them.
select coalesce(reference, id::text) from brain.decisions
where agent_id = %(agent_id)s
  and (episode_id = %(episode_id)s
       or (episode_id is null and decided_at between %(started_at)s and %(ended_at)s
           and coalesce(session_id, %(default_session)s) = coalesce(%(session_id)s, %(default_session)s)))
order by decided_at, id

-- name: link_decisions
-- One that is locked is being linked by its own reaction, which may be waiting for this very episode.
with free as (
    select agent_id, id from brain.decisions
    where agent_id = %(agent_id)s and (id = any(%(ids)s) or reference = any(%(references)s)) and episode_id is null
    order by id
    for update skip locked
)
update brain.decisions d
set episode_id = %(episode_id)s, row_version = d.row_version + 1
from free
where d.agent_id = free.agent_id and d.id = free.id

-- name: has_work
-- Whether a closed episode of this agent waits for its completion, or an event for a reaction, be it hidden behind an
-- older transaction, whether a webhook listens, or whether too many words are uncounted. Where the reactions stand is settled first: row-level security lets no `coalesce` use an index.
with position as materialized (
    select coalesce(c.last_xid, '0') as last_xid, coalesce(c.last_id, 0) as last_id
    from (select %(consumer)s::text as consumer) wanted
    left join heart.outbox_cursors c on c.agent_id = %(agent_id)s and c.consumer = wanted.consumer
)
select exists (select from heart.completions where agent_id = %(agent_id)s and finished_at is null)
    or exists (select from heart.webhooks where agent_id = %(agent_id)s)
    or exists (select from heart.word_changes where agent_id = %(agent_id)s offset %(uncounted)s)
    or exists (
        select from position p
        join heart.outbox o on (o.written_xid, o.id) > (p.last_xid, p.last_id)
        where o.agent_id = %(agent_id)s and o.name = any(%(names)s))

-- name: are_words_uncounted
select exists (select from heart.word_changes where agent_id = %(agent_id)s offset %(uncounted)s)

-- name: agents_with_work
-- Agents that have a closed episode due, or events that nobody has looked at; the one that has waited longest comes first,
-- but for those whose only work is an imported past, due since its episodes ended.
with due as (
    select agent_id, coalesce(min(due_at) filter (where due_at >= now() - interval '1 hour'), min(due_at)) as since
    from heart.completions
    where finished_at is null and due_at <= now()
    group by agent_id
), announced as (
    select listening.agent_id, first.created_at as since
    from (select id as agent_id, %(consumer)s::text as consumer from heart.agents
          union all select agent_id, 'webhook:' || id from heart.webhooks) listening
    left join heart.outbox_cursors c on c.agent_id = listening.agent_id and c.consumer = listening.consumer
    cross join lateral (
        select o.created_at from heart.outbox o
        where o.agent_id = listening.agent_id
          and (o.written_xid, o.id) > (coalesce(c.last_xid, '0'), coalesce(c.last_id, 0))
          and o.written_xid < pg_snapshot_xmin(pg_current_snapshot())
        order by o.written_xid, o.id
        limit 1) first
    where c.retry_at is null or c.retry_at <= now()
)
select a.id, s.id, s.model, s.weights_sha256, s.dimensions
from (select * from due union all select * from announced) waiting
join heart.agents a on a.id = waiting.agent_id
join heart.embedding_spaces s on s.id = a.embedding_space_id
where %(only)s::text is null or a.id = %(only)s
group by a.id, s.id
order by max(since) < now() - interval '1 hour', min(since), a.id
