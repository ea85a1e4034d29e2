-- name: identity
select id::text from migration.identity

-- name: facts
select f.id, f.agent_id, f.state, f.content, f.subject, f.slot, f.category, to_json(f.tags) as tags, f.confidence,
       f.source, f.source_kind, f.sources, f.trust, f.is_pinned, f.learned_at, f.last_confirmed_at,
       f.confirmation_count, f.superseded_by, f.superseded_at, f.valid_from, f.valid_to, f.archived_at,
       f.encoded_frame, f.encoded_censors, f.scope, f.user_id, f.project_id, f.rank_weight,
       f.embedding_space_id, f.row_version, f.is_rewound, f.embedding
from ({facts}) f

-- name: present
-- What was said before the end of the night, as it is now. It is read alone: a join would cost as much again.
select *, false as is_rewound from heart.facts where learned_at < %(ends_at)s

-- name: present_by_id
select *, false as is_rewound from heart.facts where learned_at < %(ends_at)s order by id, agent_id

-- name: is_untouched
-- Whether all facts were stored since the server counts, and none changed or removed: then they most likely lie by id.
select s.n_tup_ins >= c.reltuples and s.n_tup_upd + s.n_tup_del = 0
from pg_stat_user_tables s join pg_class c on c.oid = s.relid
where s.relid = 'heart.facts'::regclass

-- name: rewound
-- What was changed since the end of the night, with every later change taken back: the facts as they were then.
-- Such a row is marked, so that a night of the past changes nothing decided since.
with later as (
    select e.memory_id, jsonb_object_agg(b.key, b.value order by e.id desc) as before
    from lifecycle.events e cross join jsonb_each(e.before) b
    where e.effective_at >= %(ends_at)s and e.memory_kind = 'fact' and e.version_before > 0
    group by e.memory_id
)
select r.*, true as is_rewound
from heart.facts f join later l on l.memory_id = f.id cross join jsonb_populate_record(f, l.before) r
where f.learned_at < %(ends_at)s

-- name: usage
-- What is counted now without what was counted later: it includes what a memory absorbed in earlier nights.
with later as (
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
)
select u.agent_id, u.memory_id as id,
       greatest(u.retrieved_count - coalesce(l.retrieved_count, 0), 0) as retrieved_count,
       greatest(u.cited_count - coalesce(l.cited_count, 0), 0) as cited_count,
       greatest(u.ignored_count - coalesce(l.ignored_count, 0), 0) as ignored_count
from heart.usage u left join later l on l.agent_id = u.agent_id and l.memory_id = u.memory_id

-- name: recalls
select id, agent_id, recalled_at, query, result_limit, frame, to_json(result_ids) as result_ids,
       to_json(cited_ids) as cited_ids, query_embedding as embedding
from heart.recalls
where recalled_at < %(ends_at)s and recalled_at >= %(probes_from)s
order by id, agent_id

-- name: undone
-- What a person took back, in whichever night: it is not proposed again.
select agent_id, kind, to_json(targets) as targets from lifecycle.proposals
where state = 'undone'
order by id

-- name: agents
-- Whom the night is for, and what each has decided otherwise than the default policy.
select a.id as agent_id, coalesce(p.policy, '{}')::text as policy
from heart.agents a left join lifecycle.agent_policies p on p.agent_id = a.id
order by a.id
