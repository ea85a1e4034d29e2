-- name: identity
select id::text from migration.identity

-- name: facts
-- The facts as they were at the end of the night: said before it, and with every later change taken back.
-- A row with later changes is marked, so that a night of the past changes nothing decided since.
with later as (
    select e.memory_id, jsonb_object_agg(b.key, b.value order by e.id desc) as before
    from lifecycle.events e cross join jsonb_each(e.before) b
    where e.effective_at >= %(ends_at)s and e.memory_kind = 'fact' and e.version_before > 0
    group by e.memory_id
), uses as (
    select agent_id, memory_id, count(*) as retrieved_count, count(*) filter (where is_cited) as cited_count,
           count(*) filter (where is_ignored) as ignored_count
    from (
        select r.agent_id, u.memory_id, u.memory_id = any(r.cited_ids) as is_cited, u.memory_id = any(r.ignored_ids) as is_ignored
        from heart.recalls r cross join unnest(r.result_ids) u(memory_id)
        where r.recalled_at < %(ends_at)s
    ) used
    group by agent_id, memory_id
), as_of as (
    select f.*, false as is_rewound from heart.facts f
    where f.learned_at < %(ends_at)s and not exists (select from later where memory_id = f.id)
    union all
    select r.*, true from heart.facts f join later l on l.memory_id = f.id cross join jsonb_populate_record(f, l.before) r
    where f.learned_at < %(ends_at)s
)
select f.id::text, f.agent_id, f.state, f.content, f.subject, f.slot, f.category, to_json(f.tags)::text as tags, f.confidence,
       f.source, f.source_kind, f.sources::text as sources, f.trust, f.is_pinned, f.learned_at, f.last_confirmed_at,
       f.confirmation_count, f.superseded_by::text, f.superseded_at, f.valid_from, f.valid_to, f.archived_at,
       f.encoded_frame, f.encoded_censors::text as encoded_censors, f.scope, f.user_id, f.project_id, f.rank_weight,
       f.embedding_space_id, f.row_version, f.is_rewound, coalesce(u.retrieved_count, 0) as retrieved_count,
       coalesce(u.cited_count, 0) as cited_count, coalesce(u.ignored_count, 0) as ignored_count
from as_of f
left join uses u on u.agent_id = f.agent_id and u.memory_id = f.id
order by f.id

-- name: vectors
select id, embedding from heart.facts where learned_at < %(ends_at)s order by id

-- name: recalls
select id::text, agent_id, recalled_at, query, result_limit, frame, to_json(result_ids)::text as result_ids,
       to_json(cited_ids)::text as cited_ids
from heart.recalls
where recalled_at < %(ends_at)s and recalled_at >= %(probes_from)s
order by id

-- name: recall_vectors
select id, query_embedding as embedding from heart.recalls
where recalled_at < %(ends_at)s and recalled_at >= %(probes_from)s and query_embedding is not null
order by id

-- name: undone_merges
select agent_id, to_json(targets)::text as targets from lifecycle.proposals
where state = 'undone' and kind = 'merge'
order by id
