-- What the console shows of an agent beside its facts: where they come from, whose they are, what waits, and its nights.

-- name: skip_triggers
select set_config('session_replication_role', 'replica', false)

-- name: vary_facts
-- A source of many, a user now and then, one fact in fifty superseded, one in a hundred in doubt.
with numbered as (
    select id, row_number() over (order by id) as place, lag(id) over (order by id) as before
    from heart.facts where agent_id = %(agent_id)s
)
update heart.facts f
set source = 'notes/' || n.place %% 500 || '.md', user_id = case when n.place %% 3 = 0 then 'user ' || n.place %% 40 end,
    perhaps_replaces = case when n.place %% 100 = 7 then array[n.before] else '{}' end,
    state = case when n.place %% 50 = 3 then 'archived' else state end,
    archived_at = case when n.place %% 50 = 3 then now() end
from numbered n where f.id = n.id and f.agent_id = %(agent_id)s

-- name: draw_statements
insert into heart.statements (agent_id, fact_id, content, subject, said_at, source, user_id, reason)
select agent_id, id, content, subject, learned_at, source, user_id, 'first' from heart.facts where agent_id = %(agent_id)s

-- name: draw_contradictions
insert into heart.contradictions (agent_id, memory_a, memory_b, judgement)
select %(agent_id)s, least(id, next), greatest(id, next), '{"reason": "both can''t be so"}'
from (
    select id, lead(id) over (order by id) as next, row_number() over (order by id) as place
    from heart.facts where agent_id = %(agent_id)s and state = 'active'
) pair
where place %% 400 = 1 and next is not null

-- name: draw_plans
insert into lifecycle.plans (hash, night, agent_ids, policy, state, applied_at)
select 'drawn ' || day, day, array[%(agent_id)s], '{}', 'applied', now()
from (select current_date - step as day from generate_series(1, %(nights)s) step) nights

-- name: draw_proposals
insert into lifecycle.proposals (id, agent_id, night, plan_hash, kind, targets, read_set, changes, reason, state, decided_at)
select heart.new_id(), %(agent_id)s, p.night, p.hash, (array['merge', 'archive', 'promote', 'link'])[1 + place %% 4], array[f.id], '[]', '[]',
       'drawn: nothing was cited for ninety days', 'applied', now()
from lifecycle.plans p
cross join lateral (
    select id, row_number() over (order by id) as place from (
        select id from heart.facts where agent_id = %(agent_id)s order by id limit %(proposals)s) chosen
) f
where p.hash like 'drawn %%'

-- name: draw_health
insert into lifecycle.health (agent_id, night, figures)
select %(agent_id)s, night, jsonb_build_object('active_facts', 100000, 'duplicates', 12, 'open_contradictions', 25)
from lifecycle.plans where hash like 'drawn %%'

-- name: analyze_facts
analyze heart.facts

-- name: analyze_proposals
analyze lifecycle.proposals

-- name: some_fact
select id from heart.facts where agent_id = %(agent_id)s and state = 'active' order by id offset %(place)s limit 1
