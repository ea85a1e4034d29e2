-- name: lock_facts
-- In id order, so that two writers who want the same rows queue up instead of embracing each other.
select id, row_version from heart.facts
where agent_id = %(agent_id)s and id = any(%(ids)s) order by id for update

-- name: change_fact
-- The only statement that changes a stored fact: it checks the version that was read, keeps the columns as they
-- were, and leaves the event. The values are those of a row, so they can be taken back just as they were.
with old as (
    select * from heart.facts
    where agent_id = %(agent_id)s and id = %(id)s and row_version = %(row_version)s
    for update
), changed as (
    update heart.facts f
    set (state, subject, slot, category, tags, confidence, summary, compressed, index_word, source, sources, trust,
         is_pinned, last_confirmed_at, confirmation_count, superseded_by, superseded_at, valid_from, valid_to,
         archived_at, contradiction_status, scope, user_id, project_id, rank_weight) = (
        select r.state, r.subject, r.slot, r.category, r.tags, r.confidence, r.summary, r.compressed, r.index_word,
               r.source, r.sources, r.trust, r.is_pinned, r.last_confirmed_at, r.confirmation_count, r.superseded_by,
               r.superseded_at, r.valid_from, r.valid_to, r.archived_at, r.contradiction_status, r.scope, r.user_id,
               r.project_id, r.rank_weight
        from jsonb_populate_record(f, %(values)s) r)
    from old
    where f.agent_id = old.agent_id and f.id = old.id
    returning f.*
), event as (
    insert into lifecycle.events (
        agent_id, memory_kind, memory_id, action, from_state, to_state, version_before, version_after, before, after,
        actor, reason, effective_at, night, run_id, proposal_id, undoes)
    select changed.agent_id, 'fact', changed.id, %(action)s, old.state, changed.state, old.row_version,
           changed.row_version,
           (select jsonb_object_agg(name, to_jsonb(old) -> name) from jsonb_object_keys(%(values)s) name),
           (select jsonb_object_agg(name, to_jsonb(changed) -> name) from jsonb_object_keys(%(values)s) name),
           %(actor)s, %(reason)s, %(effective_at)s, %(night)s, %(run_id)s, %(proposal_id)s, %(undoes)s
    from changed join old using (id)
)
select id, state, content, subject, slot, category, tags, confidence, source, source_kind, trust, is_pinned, learned_at,
       last_confirmed_at, confirmation_count, superseded_by, valid_from, valid_to, contradiction_status, encoded_frame,
       encoded_censors, scope, user_id, project_id, rank_weight, row_version
from changed

-- name: add_usage
-- Counters are added, never set: additions of a night and of a recall commute, and undoing is adding the negative.
insert into heart.usage (agent_id, memory_id, memory_kind, retrieved_count, cited_count, ignored_count, last_used_at)
values (%(agent_id)s, %(id)s, %(kind)s, greatest(%(retrieved_count)s, 0), greatest(%(cited_count)s, 0),
        greatest(%(ignored_count)s, 0), %(last_used_at)s)
on conflict (agent_id, memory_id) do update
set retrieved_count = greatest(usage.retrieved_count + %(retrieved_count)s, 0),
    cited_count = greatest(usage.cited_count + %(cited_count)s, 0),
    ignored_count = greatest(usage.ignored_count + %(ignored_count)s, 0),
    last_used_at = greatest(usage.last_used_at, excluded.last_used_at)
