-- name: statements_of
-- What was said for a fact and for those merged into it, the oldest first.
select s.id, s.fact_id, s.content, s.subject, s.said_at, s.recorded_at, s.source, s.source_kind, s.trust,
       case when s.fact_id = %(fact_id)s then s.reason else 'merged' end as reason, s.taken_back_at, s.scope, s.user_id,
       s.project_id, s.session_id, s.episode_id, s.decision_id, s.frame
from heart.merged_into(%(agent_id)s, %(fact_id)s) merged(id)
join heart.statements s on s.agent_id = %(agent_id)s and s.fact_id = merged.id
order by s.said_at, s.recorded_at, s.id

-- name: get_statement
select id, fact_id, content, subject, said_at, recorded_at, source, source_kind, trust, reason, taken_back_at, scope,
       user_id, project_id, session_id, episode_id, decision_id, frame
from heart.statements where agent_id = %(agent_id)s and id = %(id)s
for update

-- name: facts_drawn_from
-- The facts in any state that were drawn from an episode, the oldest first.
select {columns} from heart.facts
where agent_id = %(agent_id)s and source_episode_id = %(episode_id)s order by learned_at, id

-- name: take_back
update heart.statements set taken_back_at = now() where agent_id = %(agent_id)s and id = %(id)s
