-- name: changes_of_source
-- What one source said and still stands, as the events it left: facts and other memories it began, facts it confirmed, and
-- what was drawn from its episodes. A source is what statements and memories name, or the name an import was given.
with imported as (
    select memory_id as id from heart.requests
    where agent_id = %(agent_id)s and (
        verb = 'import:' || %(source)s
        -- Before the verb named the import its key did, of short ones: "a" can't be told from "a:b" there.
        or verb = 'import' and starts_with(idempotency_key, 'import:' || %(source)s || ':'))
), episode as (
    select id from heart.episodes where agent_id = %(agent_id)s and (source = %(source)s or id in (select id from imported))
), said as (
    select s.id, s.fact_id, s.reason from heart.statements s
    where s.agent_id = %(agent_id)s and s.taken_back_at is null
      and (s.source = %(source)s or s.episode_id in (select id from episode)
           or s.reason in ('first', 'imported') and s.fact_id in (select id from imported))
), began as (
    select fact_id as id from said where reason in ('first', 'imported')
    union select id from episode
    union select id from heart.procedures where agent_id = %(agent_id)s and source = %(source)s
    union select id from heart.censors
    where agent_id = %(agent_id)s and (source = %(source)s or learned_from_episode_id in (select id from episode))
    union select id from imported
)
select e.id, e.memory_kind, e.memory_id, e.action, e.from_state, e.to_state, e.version_before, e.version_after, e.before,
       e.after, e.actor, e.reason, e.effective_at, e.recorded_at, e.night, e.run_id, e.proposal_id, e.undoes
from lifecycle.events e
where e.agent_id = %(agent_id)s
  and (e.from_state = 'new' and e.memory_id in (select id from began)
       or e.memory_kind = 'fact' and e.memory_id in (select fact_id from said) and e.action = 'confirmed'
          and e.after ->> 'statement' in (select id::text from said where reason in ('repeat', 'reworded')))
  and not exists (select from lifecycle.events u where u.agent_id = e.agent_id and u.undoes = e.id)
order by e.id desc

-- name: said_by_others
-- How often a fact was said, itself or by what was merged into it, by anybody but a source.
select count(*)
from heart.merged_into(%(agent_id)s, %(fact_id)s) merged(id)
join heart.statements s on s.agent_id = %(agent_id)s and s.fact_id = merged.id and s.taken_back_at is null
where not exists (
    select from lifecycle.events e
    where e.agent_id = %(agent_id)s and e.id = any(%(events)s)
      and (e.memory_id = s.fact_id and e.from_state = 'new' and s.reason in ('first', 'imported')
           or e.after ->> 'statement' = s.id::text))
