-- name: count_memories
select kind, state, count(*) from heart.memories where agent_id = %(agent_id)s group by kind, state order by kind, state

-- name: count_projects
select project_id, count(*) from heart.memories where agent_id = %(agent_id)s and project_id is not null
group by project_id order by count(*) desc, project_id

-- name: out_of_reach
-- What a question by a user in a project does not look among: of which other projects and users, first those of
-- this user or project, then the largest.
select f.project_id, f.user_id, count(*)::int as count from heart.memories f
where f.agent_id = %(agent_id)s and f.state in ('active', 'open', 'closed', 'review') and ({in_reach}) is not true
group by 1, 2
order by coalesce(f.user_id = %(user_id)s or f.project_id = %(project_id)s, false) desc, 3 desc, 1, 2

-- name: knows_project
select exists(select from heart.memories where agent_id = %(agent_id)s and project_id = %(project_id)s)

-- name: count_recalls
select count(*) from heart.recalls where agent_id = %(agent_id)s

-- name: count_completions
select count(*), count(*) filter (where last_error is not null),
       (array_agg(last_error order by due_at desc) filter (where last_error is not null))[1]
from heart.completions where agent_id = %(agent_id)s and finished_at is null

-- name: count_set_aside
-- Closed and not complete, with a note: nobody tries them any more.
select count(*), (coalesce(array_agg(id order by ended_at desc, id), '{}'))[1:10]
from heart.episodes
where agent_id = %(agent_id)s and state = 'closed' and completed_at is null and completion_note is not null

-- name: find_nights
-- The last night an agent was in, and what changed in the nights after it that are over: when the store had the first of
-- that, none where it came after the last of these nights, and how many. A night that ran before it was over saw no more.
select l.night, min(greatest(e.effective_at, e.recorded_at)) filter (where e.recorded_at < %(over)s), count(e.id)
from (select max(night) as night from lifecycle.health where agent_id = %(agent_id)s) l
left join lifecycle.health h on h.agent_id = %(agent_id)s and h.night = l.night
left join lifecycle.events e
    on e.agent_id = %(agent_id)s and e.night is null and e.effective_at < %(over)s
    and e.effective_at >= coalesce(least((l.night + 1)::timestamp at time zone 'UTC', h.measured_at), '-infinity')
group by l.night

-- name: count_questions
-- What only a person can decide: open contradictions, pairs of active facts of which one perhaps replaces the other, memories
-- of sources that are not believed, procedures that failed more often than they worked.
select (select count(*) from heart.contradictions c where c.agent_id = %(agent_id)s and {is_question}) as contradictions,
       (select count(distinct (f.id, o.id)) from heart.facts f cross join unnest(f.perhaps_replaces) r(id)
            join heart.facts o on o.agent_id = f.agent_id and o.id = r.id and o.state = 'active'
        where f.agent_id = %(agent_id)s and f.state = 'active' and f.perhaps_replaces <> '{{}}') as doubts,
       (select count(*) from heart.facts where agent_id = %(agent_id)s and state = 'quarantined') as quarantined,
       (select count(*) from heart.procedures where agent_id = %(agent_id)s and state = 'review') as procedures

-- name: failing_consumers
-- Who could not be told the next event: a webhook by its address, how often that failed, and why.
select coalesce('the webhook to ' || w.url, 'the consumer ' || c.consumer), c.failed_count, coalesce(c.last_error, '')
from heart.outbox_cursors c
left join heart.webhooks w on w.agent_id = c.agent_id and 'webhook:' || w.id = c.consumer
where c.agent_id = %(agent_id)s and c.failed_count > 0
order by 1

-- name: last_night
select max(night) from lifecycle.plans where state = 'applied'

-- name: agents_waiting
-- How many agents have changes of nights that are over and came after the last night each was in, if it was in any; and
-- of how many the store had one before the last of those nights ended, so that a night was missed.
select count(*), count(*) filter (where exists (
    select from lifecycle.events e
    where e.agent_id = a.id and e.night is null and e.effective_at < %(over)s and e.recorded_at < %(over)s
        and e.effective_at >= coalesce(l.ended, '-infinity')))
from heart.agents a
left join lateral (
    select least((h.night + 1)::timestamp at time zone 'UTC', h.measured_at) as ended
    from lifecycle.health h where h.agent_id = a.id order by h.night desc limit 1
) l on true
where exists (
    select from lifecycle.events e
    where e.agent_id = a.id and e.night is null and e.effective_at < %(over)s
        and e.effective_at >= coalesce(l.ended, '-infinity'))

-- name: count_events
-- What each consumer has not been told yet; one that never came has no place in the queue, and nothing waits for it.
select c.consumer, (
    select count(*) from heart.outbox o
    where o.agent_id = c.agent_id and (o.written_xid, o.id) > (c.last_xid, c.last_id))
from heart.outbox_cursors c
where c.agent_id = %(agent_id)s
order by c.consumer

-- name: measure_agent
-- How many memories an agent has in any state, and the bytes of their texts; sizes are read, the texts are not.
select count(*), coalesce(sum(bytes), 0) + (
    select coalesce(sum(coalesce(octet_length(detail), 0) + coalesce(octet_length(summary), 0)), 0) from heart.cold_texts where agent_id = %(agent_id)s)
from (
    select octet_length(content) + coalesce(octet_length(context), 0) as bytes from heart.facts where agent_id = %(agent_id)s
    union all
    select coalesce(octet_length(detail), 0) from heart.episodes where agent_id = %(agent_id)s
    union all
    select 0 from heart.procedures where agent_id = %(agent_id)s
    union all
    select 0 from heart.censors where agent_id = %(agent_id)s
) memory

-- name: known_agents
select id from heart.agents order by id
