-- name: identity
select id::text from migration.identity

-- name: facts
-- The facts as they were at the end of the night: said before it, and with every later change taken back.
-- A row with later changes is marked, so that a night of the past changes nothing decided since.
-- Usage is what is counted now without what was counted later: it includes what a memory absorbed in earlier nights.
with later as (
    select e.memory_id, jsonb_object_agg(b.key, b.value order by e.id desc) as before
    from lifecycle.events e cross join jsonb_each(e.before) b
    where e.effective_at >= %(ends_at)s and e.memory_kind = 'fact' and e.version_before > 0
    group by e.memory_id
), later_uses as (
    select agent_id, memory_id, sum(retrieved) as retrieved_count, sum(cited) as cited_count, sum(ignored) as ignored_count
    from (
        select r.agent_id, u.memory_id, 1 as retrieved, (u.memory_id = any(r.cited_ids))::integer as cited,
               (u.memory_id = any(r.ignored_ids))::integer as ignored
        from heart.recalls r cross join unnest(r.result_ids) u(memory_id)
        where r.recalled_at >= %(ends_at)s
        union all
        select p.agent_id, c.id, coalesce((c.add ->> 'retrieved_count')::integer, 0),
               coalesce((c.add ->> 'cited_count')::integer, 0), coalesce((c.add ->> 'ignored_count')::integer, 0)
        from lifecycle.proposals p cross join jsonb_to_recordset(p.changes) c(kind text, id uuid, add jsonb)
        where p.state = 'applied' and p.night >= %(night)s and c.kind = 'usage'
    ) later
    group by agent_id, memory_id
), as_of as (
    select f.*, false as is_rewound from heart.facts f
    where f.learned_at < %(ends_at)s and not exists (select from later where memory_id = f.id)
    union all
    select r.*, true from heart.facts f join later l on l.memory_id = f.id cross join jsonb_populate_record(f, l.before) r
    where f.learned_at < %(ends_at)s
)
select f.id, f.agent_id, f.state, f.content, f.subject, f.slot, f.category, to_json(f.tags) as tags, f.confidence,
       f.source, f.source_kind, f.sources, f.trust, f.is_pinned, f.learned_at, f.last_confirmed_at,
       f.confirmation_count, f.superseded_by, f.superseded_at, f.valid_from, f.valid_to, f.archived_at,
       f.encoded_frame, f.encoded_censors, f.scope, f.user_id, f.project_id, f.rank_weight,
       f.embedding_space_id, f.row_version, f.is_rewound,
       greatest(coalesce(u.retrieved_count, 0) - coalesce(l.retrieved_count, 0), 0) as retrieved_count,
       greatest(coalesce(u.cited_count, 0) - coalesce(l.cited_count, 0), 0) as cited_count,
       greatest(coalesce(u.ignored_count, 0) - coalesce(l.ignored_count, 0), 0) as ignored_count,
       f.embedding
from as_of f
left join heart.usage u on u.agent_id = f.agent_id and u.memory_id = f.id
left join later_uses l on l.agent_id = f.agent_id and l.memory_id = f.id

-- name: recalls
select id, agent_id, recalled_at, query, result_limit, frame, to_json(result_ids) as result_ids,
       to_json(cited_ids) as cited_ids, query_embedding as embedding
from heart.recalls
where recalled_at < %(ends_at)s and recalled_at >= %(probes_from)s

-- name: undone_merges
select agent_id, to_json(targets) as targets from lifecycle.proposals
where state = 'undone' and kind = 'merge'
order by id
