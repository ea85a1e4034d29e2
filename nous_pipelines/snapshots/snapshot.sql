-- name: identity
select id::text from migration.identity

-- name: facts
select f.id, f.agent_id, f.state, f.content, f.subject, f.slot, f.key, f.category, to_json(f.tags) as tags, f.confidence,
       f.source, f.source_kind, f.source_episode_id, f.sources, f.trust, f.is_pinned, f.learned_at, f.last_confirmed_at,
       f.confirmation_count, f.superseded_by, f.superseded_at,
       case when f.superseded_by is not null then f.succession end as succession, f.valid_from, f.valid_to, f.archived_at,
       f.contradiction_status, f.encoded_frame, f.encoded_censors, f.scope, f.user_id, f.project_id, f.rank_weight,
       f.embedding_space_id, f.row_version, f.is_rewound, f.embedding
from ({memories}) f

-- name: present
-- What was said before the end of the night, as it is now; without those changed since: a join would cost as much again.
-- Agent by agent, so that the index gives the order: to sort the rows, with their vectors, would spill them to the disk.
select f.*, false as is_rewound
from (
    select id from heart.agents
    where %(agent_ids)s::text[] is null or id = any(%(agent_ids)s)
    order by id collate "C"
) a cross join lateral (
    select * from heart.facts where agent_id = a.id and learned_at < %(ends_at)s order by id
) f

-- name: present_named
-- The same of some facts, one by one in the order they are named.
select f.*, false as is_rewound
from unnest(%(fact_agents)s::text[], %(fact_ids)s::uuid[]) a(agent_id, id) cross join lateral (
    select * from heart.facts where agent_id = a.agent_id and id = a.id and learned_at < %(ends_at)s offset 0
) f

-- name: later
-- What was changed since the end of the night, and the columns as they were before the first of those changes. What the
-- night itself did later is no mark: its snapshot, made again, is the one it was decided on.
select e.agent_id, e.memory_id, bool_or(e.night is distinct from %(night)s::date) as is_rewound,
       coalesce(jsonb_object_agg(b.key, b.value order by e.id desc) filter (where b.key is not null), '{{}}')
           || jsonb_build_object('row_version', min(e.version_before)) as before
from lifecycle.events e left join jsonb_each(e.before) b on true
where e.effective_at >= %(ends_at)s and e.memory_kind = %(kind)s and e.version_before > 0
  and (%(agent_ids)s::text[] is null or e.agent_id = any(%(agent_ids)s))
group by e.agent_id, e.memory_id

-- name: rewound
-- The facts that were changed since, as they were then. Such a row is marked, so that a night of the past changes
-- nothing decided since.
with later as ({later})
select r.*, l.is_rewound
from heart.facts f join later l on l.agent_id = f.agent_id and l.memory_id = f.id
    cross join jsonb_populate_record(f, l.before) r
where f.learned_at < %(ends_at)s
order by f.agent_id collate "C", f.id

-- name: fact_changes
-- The facts of a snapshot that may read otherwise in it than in the one it is built on, as `standing` asks of agents; and
-- how many of each agent may not, without an id. How often one was used is compared, not asked here.
select agent_id, case when is_changed then id end as id, count(*) as size
from (
    select f.agent_id, f.id, f.is_written or e.memory_id is not null as is_changed
    from (
        select agent_id, id, {written} or (learned_at >= %(dated)s and learned_at < %(ends_at)s) as is_written
        from heart.facts
        where learned_at < %(ends_at)s and (%(agent_ids)s::text[] is null or agent_id = any(%(agent_ids)s))
    ) f left join (
        select distinct agent_id, memory_id from lifecycle.events
        where memory_kind = 'fact' and effective_at >= %(dated)s and (effective_at < %(ends_at)s or night in (%(base)s, %(night)s))
          and (%(agent_ids)s::text[] is null or agent_id = any(%(agent_ids)s))
    ) e on e.agent_id = f.agent_id and e.memory_id = f.id
) f
group by 1, 2

-- name: fact_ids
select agent_id, id from heart.facts where learned_at < %(ends_at)s and agent_id = any(%(agent_ids)s)

-- name: as_of
-- Procedures or censors as they were at the end of the night.
with later as ({later})
select m.*, false as is_rewound
from {table} m
where m.learned_at < %(ends_at)s and (%(agent_ids)s::text[] is null or m.agent_id = any(%(agent_ids)s))
  and not exists (select from later l where l.agent_id = m.agent_id and l.memory_id = m.id)
union all
select r.*, l.is_rewound
from {table} m join later l on l.agent_id = m.agent_id and l.memory_id = m.id
    cross join jsonb_populate_record(m, l.before) r
where m.learned_at < %(ends_at)s

-- name: then_there
select m.* from heart.episodes m
where m.started_at < %(ends_at)s and (%(agent_ids)s::text[] is null or m.agent_id = any(%(agent_ids)s)) and not exists (
    select from lifecycle.events e
    where e.agent_id = m.agent_id and e.memory_id = m.id and e.effective_at >= %(ends_at)s and e.version_before = 0)

-- name: memories_by_then
-- How many memories of each kind the tables of a snapshot would hold if it were taken now, by agent.
select 'facts', agent_id, count(*) from heart.facts where learned_at < %(ends_at)s group by agent_id
union all
select 'procedures', agent_id, count(*) from heart.procedures where learned_at < %(ends_at)s group by agent_id
union all
select 'censors', agent_id, count(*) from heart.censors where learned_at < %(ends_at)s group by agent_id
union all
select 'episodes', agent_id, count(*) from ({then_there}) m group by agent_id

-- name: episodes_as_of
-- Episodes as they were at the end of the night. Where an event keeps only how long a text was, or in which tier it went
-- to cold storage, the text is read there, or cut off what it grew to. One told in full once it was over was nobody's
-- memory before that.
with later as ({later}),
images as (
    select e.agent_id, e.memory_id, b.key, e.id, b.value #>> '{{}}' as plain,
           case when jsonb_typeof(b.value) = 'object' then (b.value ->> 'characters')::integer end as characters,
           case when jsonb_typeof(b.value) = 'object' then b.value ->> 'cold_text' end as tier
    from lifecycle.events e cross join jsonb_each(e.before) b
    where e.effective_at >= %(ends_at)s and e.memory_kind = 'episode' and e.version_before > 0
      and b.key in ('detail', 'summary', 'compressed')
      and (%(agent_ids)s::text[] is null or e.agent_id = any(%(agent_ids)s))
),
kept as (
    select distinct on (agent_id, memory_id, key) * from images where characters is null
    order by agent_id, memory_id, key, id
),
texts as (
    select m.agent_id, m.id as memory_id, jsonb_object_agg(i.key, left(
        case when k.id is null or (k.tier is not null and c.tier is null)
             then case i.key when 'detail' then m.detail when 'summary' then m.summary else m.compressed end
             when k.tier is null then k.plain
             else case i.key when 'detail' then c.detail when 'summary' then c.summary else c.compressed end end,
        coalesce(i.characters, 2147483647))) as texts
    from (
        select i.agent_id, i.memory_id, i.key, min(i.characters) filter (where k.id is null or i.id < k.id) as characters
        from images i left join kept k using (agent_id, memory_id, key)
        group by i.agent_id, i.memory_id, i.key
    ) i
    join heart.episodes m on m.agent_id = i.agent_id and m.id = i.memory_id
    left join kept k on k.agent_id = i.agent_id and k.memory_id = i.memory_id and k.key = i.key
    left join heart.cold_texts c on c.agent_id = i.agent_id and c.memory_id = i.memory_id and c.tier = k.tier
    group by m.agent_id, m.id
),
then_there as ({then_there})
select m.*, false as is_rewound
from then_there m
where not exists (select from later l where l.agent_id = m.agent_id and l.memory_id = m.id)
union all
select r.*, l.is_rewound
from heart.episodes m join then_there t on t.agent_id = m.agent_id and t.id = m.id
    join later l on l.agent_id = m.agent_id and l.memory_id = m.id
    left join texts x on x.agent_id = m.agent_id and x.memory_id = m.id
    cross join jsonb_populate_record(m, l.before || coalesce(x.texts, '{{}}')) r

-- name: episodes
select m.id, m.agent_id, m.state, m.title, m.summary, m.compressed, m.index_word, m.detail, m.compression_tier,
       m.started_at, m.ended_at, m.completed_at, m.completion_note, to_json(m.tags) as tags,
       to_json(m.participants) as participants, m.outcome, m.surprise_level, to_json(m.lessons_learned) as lessons_learned,
       to_json(m.procedures_activated) as procedures_activated, to_json(m.decision_ids) as decision_ids, m.source_kind,
       m.trust, m.is_pinned, m.scope, m.user_id, m.project_id, m.rank_weight, m.archived_at, m.embedding_space_id,
       m.row_version, m.is_rewound, m.embedding
from ({memories}) m
order by m.agent_id collate "C", m.id

-- name: statements
-- What had been said when the night ended, and of which fact it speaks now.
select id, agent_id, fact_id, content, subject, said_at, recorded_at, source, source_kind, trust, user_id, project_id, scope,
       session_id, episode_id, decision_id, frame, reason, case when taken_back_at < %(ends_at)s then taken_back_at end as taken_back_at
from heart.statements where said_at < %(ends_at)s and (%(agent_ids)s::text[] is null or agent_id = any(%(agent_ids)s))
order by agent_id collate "C", id

-- name: procedures
select m.id, m.agent_id, m.state, m.name, m.domain, m.kind, m.activation_count, m.success_count, m.failure_count,
       m.last_activated_at, m.review_reason, to_json(m.related_procedures) as related_procedures, m.trust, m.is_pinned,
       m.learned_at, m.scope, m.user_id, m.project_id, m.rank_weight, m.archived_at, m.embedding_space_id, m.row_version,
       m.is_rewound, m.embedding
from ({memories}) m
order by m.agent_id collate "C", m.id

-- name: censors
select m.id, m.agent_id, m.state, m.trigger, m.reason, m.severity, m.activation_count, m.false_positive_count,
       m.escalation_threshold, m.last_activated_at, m.is_pinned, m.trust, m.learned_at, m.expires_at, m.rank_weight,
       m.archived_at, m.row_version, m.is_rewound
from ({memories}) m
order by m.agent_id collate "C", m.id

-- name: usage
-- A context's answers of score 0 stood there whatever was asked: shown, but not retrieved, unless cited.
-- What is counted now without what was counted later: it includes what a memory absorbed in earlier nights. It was used
-- last when it was last recalled before the end of the night; of what was recalled longer ago than `uses` reaches, the
-- counters know the moment.
with later as (
    select agent_id, memory_id, sum(retrieved) as retrieved_count, sum(cited) as cited_count, sum(ignored) as ignored_count
    from (
        select r.agent_id, u.memory_id, (u.score is distinct from 0 or r.query_embedding is not null)::integer as retrieved, (u.memory_id = any(r.cited_ids))::integer as cited,
               (u.memory_id = any(r.ignored_ids))::integer as ignored
        from heart.recalls r cross join lateral unnest(r.result_ids, r.result_scores) u(memory_id, score)
        where r.recalled_at >= %(ends_at)s and (%(agent_ids)s::text[] is null or r.agent_id = any(%(agent_ids)s))
        union all
        select p.agent_id, c.id, coalesce((c.add ->> 'retrieved_count')::integer, 0),
               coalesce((c.add ->> 'cited_count')::integer, 0), coalesce((c.add ->> 'ignored_count')::integer, 0)
        from lifecycle.proposals p cross join jsonb_to_recordset(p.changes) c(kind text, id uuid, add jsonb)
        where p.state = 'applied' and p.night >= %(night)s and c.kind = 'usage'
          and (%(agent_ids)s::text[] is null or p.agent_id = any(%(agent_ids)s))
    ) later
    group by agent_id, memory_id
),
recalled as (
    select r.agent_id, u.memory_id, max(r.recalled_at) as last_used_at
    from heart.recalls r cross join lateral unnest(r.result_ids, r.result_scores) u(memory_id, score)
    where r.recalled_at < %(ends_at)s and r.recalled_at >= %(uses_from)s and (%(agent_ids)s::text[] is null or r.agent_id = any(%(agent_ids)s))
      and (u.score is distinct from 0 or r.query_embedding is not null or u.memory_id = any(r.cited_ids))
    group by r.agent_id, u.memory_id
)
select u.agent_id, u.memory_id as id,
       greatest(u.retrieved_count - coalesce(l.retrieved_count, 0), 0) as retrieved_count,
       greatest(u.cited_count - coalesce(l.cited_count, 0), 0) as cited_count,
       greatest(u.ignored_count - coalesce(l.ignored_count, 0), 0) as ignored_count,
       coalesce(r.last_used_at, case when u.last_used_at < %(ends_at)s then u.last_used_at end) as last_used_at
from heart.usage u
    left join later l on l.agent_id = u.agent_id and l.memory_id = u.memory_id
    left join recalled r on r.agent_id = u.agent_id and r.memory_id = u.memory_id
where (%(agent_ids)s::text[] is null or u.agent_id = any(%(agent_ids)s))

-- name: uses
-- How often each memory was retrieved, cited and ignored on each day (UTC) of the year before the end of the night.
select r.agent_id, m.memory_id, u.memory_kind, (r.recalled_at at time zone 'utc')::date as day,
       count(*) filter (where m.score is distinct from 0 or r.query_embedding is not null) as retrieved,
       count(*) filter (where m.memory_id = any(r.cited_ids)) as cited,
       count(*) filter (where m.memory_id = any(r.ignored_ids)) as ignored
from heart.recalls r cross join lateral unnest(r.result_ids, r.result_scores) m(memory_id, score)
    join heart.usage u on u.agent_id = r.agent_id and u.memory_id = m.memory_id
where r.recalled_at < %(ends_at)s and r.recalled_at >= %(uses_from)s and (%(agent_ids)s::text[] is null or r.agent_id = any(%(agent_ids)s))
  and (m.score is distinct from 0 or r.query_embedding is not null or m.memory_id = any(r.cited_ids || r.ignored_ids))
group by r.agent_id, m.memory_id, u.memory_kind, day
order by r.agent_id collate "C", m.memory_id, day

-- name: recalls
-- A question asked before its agent moved to another embedding space has no vector to compare with what is there now.
select r.id, r.agent_id, r.recalled_at, r.query, to_json(r.types) as types, r.result_limit, r.frame,
       to_json(r.result_ids) as result_ids, to_json(r.cited_ids) as cited_ids, to_json(r.ignored_ids) as ignored_ids,
       case when r.embedding_space_id = a.embedding_space_id then r.query_embedding end as embedding
from heart.recalls r join heart.agents a on a.id = r.agent_id
where r.recalled_at < %(ends_at)s and r.recalled_at >= %(probes_from)s and (%(agent_ids)s::text[] is null or r.agent_id = any(%(agent_ids)s))
order by r.agent_id collate "C", r.id

-- name: contradictions
-- Those found before the end of the night, open if they were resolved later.
select id, agent_id, memory_a, memory_b, case when resolved_at < %(ends_at)s then status else 'open' end as status,
       case when resolved_at < %(ends_at)s then resolution end as resolution, detected_at
from heart.contradictions
where detected_at < %(ends_at)s and (%(agent_ids)s::text[] is null or agent_id = any(%(agent_ids)s))
order by agent_id collate "C", id

-- name: links
-- Those of later nights, too, where these ran before: such a pair is not linked again. Not what the night itself linked.
select agent_id, from_id, to_id, kind, weight from heart.links
where created_at <> %(ends_at)s and (%(agent_ids)s::text[] is null or agent_id = any(%(agent_ids)s))
order by agent_id collate "C", from_id, to_id, kind

-- name: cold_texts
-- Which texts lay in cold storage, but for those a later night moved there; the texts themselves stay there.
with later as (
    select distinct e.agent_id, e.memory_id, b.value ->> 'cold_text' as tier
    from lifecycle.events e cross join jsonb_each(e.before) b
    where e.effective_at >= %(ends_at)s and e.memory_kind = 'episode' and jsonb_typeof(b.value) = 'object'
      and b.value ? 'cold_text' and (%(agent_ids)s::text[] is null or e.agent_id = any(%(agent_ids)s))
)
select c.agent_id, c.memory_id, c.tier, c.stored_at, c.purge_after
from heart.cold_texts c
where (%(agent_ids)s::text[] is null or c.agent_id = any(%(agent_ids)s)) and not exists (
    select from later l where l.agent_id = c.agent_id and l.memory_id = c.memory_id and l.tier = c.tier)
order by c.agent_id collate "C", c.memory_id, c.tier

-- name: undone
-- What a person took back, in whichever night: it is not proposed again. Splitting a statement off a fact says the same of
-- those two, unless that was undone.
select agent_id, kind, to_json(targets) as targets from (
    select agent_id, id::text as place, kind, targets from lifecycle.proposals where state = 'undone'
    union all
    select agent_id, id::text, 'merge', array[memory_id, (after ->> 'split_from')::uuid] from lifecycle.events e
    where after ? 'split_from'
      and not (action = 'split' and exists (select from lifecycle.events u where u.undoes = e.id))
) apart
where (%(agent_ids)s::text[] is null or agent_id = any(%(agent_ids)s))
order by agent_id collate "C", place

-- name: standing
-- Whom the night is for, how many rows there are of each, and
-- whether any of them may read otherwise in this snapshot than in the one it is built on (without one: null): a row that a
-- transaction wrote which that one may not have seen, or one dated between the ends of the two nights, or a recall that has
-- passed out of reach since. What is dated after both ends reads the same in both, so that a backfill over a history that goes
-- on reads what its days brought. A row that is gone shows in the number. Transaction ids are compared on their circle of 32 bits.
with counted as (
    select agent_id, count(*) as row_count, bool_or({written} or (learned_at >= %(dated)s and learned_at < %(ends_at)s)) as is_changed
    from heart.facts group by agent_id
    union all
    select agent_id, count(*), bool_or(
        {written} or (said_at >= %(dated)s and said_at < %(ends_at)s)
        or (taken_back_at >= %(dated)s and taken_back_at < %(ends_at)s))
    from heart.statements group by agent_id
    union all
    select agent_id, count(*), bool_or({written} or (started_at >= %(dated)s and started_at < %(ends_at)s))
    from heart.episodes group by agent_id
    union all
    select agent_id, count(*), bool_or({written} or (learned_at >= %(dated)s and learned_at < %(ends_at)s))
    from heart.procedures group by agent_id
    union all
    select agent_id, count(*), bool_or({written} or (learned_at >= %(dated)s and learned_at < %(ends_at)s))
    from heart.censors group by agent_id
    union all
    select agent_id, count(*), bool_or({written} or (last_used_at >= %(dated)s and last_used_at < %(ends_at)s))
    from heart.usage group by agent_id
    union all
    select agent_id, count(*), bool_or(
        {written} or (recalled_at >= %(dated)s and recalled_at < %(ends_at)s)
        or (recalled_at >= %(used_before)s and recalled_at < %(uses_from)s)
        or (recalled_at >= %(probed_before)s and recalled_at < %(probes_from)s))
    from heart.recalls group by agent_id
    union all
    select agent_id, count(*), bool_or(
        {written} or (detected_at >= %(dated)s and detected_at < %(ends_at)s)
        or (resolved_at >= %(dated)s and resolved_at < %(ends_at)s))
    from heart.contradictions group by agent_id
    union all
    select agent_id, count(*), bool_or({written} or (created_at >= %(dated)s and created_at <= %(ends_at)s))
    from heart.links group by agent_id
    union all
    select agent_id, count(*), bool_or({written}) from heart.cold_texts group by agent_id
    union all
    select agent_id, count(*), bool_or({written} or (night >= %(base)s and night <= %(night)s and state = 'applied'))
    from lifecycle.proposals group by agent_id
    union all
    select agent_id, 1, {written} from lifecycle.agent_policies
    union all
    select id, 1, {written} from heart.agents
)
select agent_id, sum(row_count)::bigint as row_count,
       bool_or(is_changed) or exists (
           -- An event of this very night is no mark of a change in its snapshot, and is one in any other.
           select from lifecycle.events e
           where e.agent_id = c.agent_id and e.effective_at >= %(dated)s
             and (e.effective_at < %(ends_at)s or e.night in (%(base)s, %(night)s))
       ) as is_changed
from counted c
where agent_id in (select id from heart.agents)
group by agent_id
order by agent_id collate "C"

-- name: written
-- Whether a transaction wrote a row that the earlier snapshot may not have seen.
((xmin::text::bigint - %(since)s) & 4294967295) < 2147483648

-- name: bases
-- Of the snapshots with these marks those that are of this history, with the first transaction each may not have seen.
select s.id::text, s.since_xid::text::bigint
from lifecycle.snapshots s
where s.id = any(%(ids)s) and s.xmin::text::bigint = s.written_xid::text::bigint & 4294967295
  and pg_snapshot_xmax(pg_current_snapshot())::text::bigint - s.since_xid::text::bigint < 2147483648

-- name: since
select pg_snapshot_xmin(pg_current_snapshot())::text

-- name: mark
-- Written once the snapshot was read, so that who restores what has this row has all that was read.
insert into lifecycle.snapshots (night, since_xid) values (%(night)s, %(since)s) returning id::text

-- name: agents
-- Whom the night is for, and what each has decided otherwise than the default policy; of all, whoever changed.
select a.id as agent_id, coalesce(p.policy, '{}')::text as policy
from heart.agents a left join lifecycle.agent_policies p on p.agent_id = a.id
order by a.id collate "C"
