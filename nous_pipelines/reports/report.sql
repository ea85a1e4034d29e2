-- name: outlines
-- As much of each decided proposal as counting needs; the largest first, among equals what is least alike.
select p.id::text, p.agent_id, p.kind, p.state, cardinality(p.targets) as size,
       (select count(*) from jsonb_to_recordset(p.changes) c(kind text, id uuid, set jsonb)
        where c.kind = 'fact' and c.set ->> 'state' <> 'active' and not c.id = any(i.ids)) as leaving
from lifecycle.proposals p
cross join lateral (  -- of what it changed: what was not active before
    select coalesce(array_agg(e.memory_id), '{}') as ids from lifecycle.events e
    where e.agent_id = p.agent_id and e.proposal_id = p.id and e.undoes is null and e.from_state <> 'active'
) i
where p.night = %(night)s and (%(agent_ids)s::text[] = '{}' or p.agent_id = any(%(agent_ids)s))
order by cardinality(p.targets) desc, (p.evidence #>> '{pairs,0,similarity}')::float8 nulls last, p.id

-- name: decided
-- Everything of some proposals, with what the memories they changed were before.
select p.id::text, p.agent_id, p.kind, p.targets::text[] as targets, p.changes, p.reason, p.outcome, p.state,
       coalesce((select jsonb_object_agg(e.memory_id, e.before - '{detail,summary,embedding,context_embedding}'::text[])
                 from lifecycle.events e
                 where e.agent_id = p.agent_id and e.proposal_id = p.id and e.undoes is null), '{}') as before
from lifecycle.proposals p
where p.agent_id = any(%(agent_ids)s) and p.id = any(%(ids)s)

-- name: replaced_together
-- The facts of each replacement of a night that holds, with the proposal that made it.
select unnest(targets)::text, id::text from lifecycle.proposals
where night = %(night)s and kind = 'supersede' and state = 'applied'

-- name: said
-- What was said for the facts of some proposals and for those merged into them, and how often in which words.
select w.agent_id, w.proposal_id, s.content as text, count(*)::integer as times
from (
    select distinct u.agent_id, u.proposal_id, m.id
    from unnest(%(agent_ids)s::text[], %(proposal_ids)s::text[], %(ids)s::uuid[]) u(agent_id, proposal_id, id)
    cross join lateral heart.merged_into(u.agent_id, u.id) m(id)
) w
join heart.statements s on s.agent_id = w.agent_id and s.fact_id = w.id
where s.taken_back_at is null
group by w.agent_id, w.proposal_id, s.content
order by min(s.said_at), s.content

-- name: memories
-- How memories read, and what of them a night may change, as it is now.
with wanted as (
    select distinct agent_id, id from unnest(%(agent_ids)s::text[], %(ids)s::uuid[]) w(agent_id, id)
)
select f.agent_id, f.id::text, 'fact' as kind, f.content as text,
       jsonb_build_object('state', f.state, 'rank_weight', f.rank_weight, 'scope', f.scope,
                          'confirmation_count', f.confirmation_count) as now
from wanted join heart.facts f using (agent_id, id)
union all
select e.agent_id, e.id::text, 'episode',
       coalesce(e.title, e.index_word, left(coalesce(e.compressed, e.summary, e.detail), 120), 'untitled'),
       jsonb_build_object('state', e.state, 'rank_weight', e.rank_weight, 'scope', e.scope,
                          'compression_tier', e.compression_tier)
from wanted join heart.episodes e using (agent_id, id)
union all
select p.agent_id, p.id::text, 'procedure', p.name,
       jsonb_build_object('state', p.state, 'rank_weight', p.rank_weight, 'scope', p.scope)
from wanted join heart.procedures p using (agent_id, id)
union all
select c.agent_id, c.id::text, 'censor', concat_ws(': ', c.trigger, nullif(c.reason, c.trigger)),
       jsonb_build_object('state', c.state, 'rank_weight', c.rank_weight, 'scope', c.scope, 'severity', c.severity)
from wanted join heart.censors c using (agent_id, id)

-- name: measure_health
-- How each agent's memory stands, of what had been said by the end of the night: one pass over each table.
-- Bytes over 1.3 are an upper-side estimate of tokens. What pairs of the night say is added as it was counted.
-- A memory counts as it stood then: what it gave way to since, that it was archived or condensed since, and a link made
-- since are of a later night. What was taken back since of changes up to then counts as if it had never been.
with later as (
    select e.agent_id, e.memory_id, jsonb_object_agg(b.key, b.value order by e.id desc) as before
    from lifecycle.events e cross join jsonb_each(e.before) b
    where e.effective_at > %(ends_at)s and e.memory_kind in ('episode', 'procedure') and e.version_before > 0
      and b.key in ('state', 'compression_tier', 'detail', 'summary', 'compressed')
      and not exists (select from lifecycle.events t where t.id = e.undoes and t.effective_at <= %(ends_at)s)
    group by e.agent_id, e.memory_id
),
fact as (
    select agent_id, content, learned_at, slot, scope, user_id, project_id,
           case when state = 'quarantined' or archived_at <= %(ends_at)s then state
                when superseded_at <= %(ends_at)s then 'superseded' else 'active' end as state
    from heart.facts where learned_at < %(ends_at)s
),
facts as (
    select agent_id,
           count(*) filter (where state = 'active') as active,
           count(*) filter (where state = 'superseded') as superseded,
           count(*) filter (where state = 'archived') as archived,
           coalesce(sum(octet_length(content)) filter (where state = 'active'), 0) as active_bytes,
           coalesce(sum(octet_length(content)) filter (where state = 'superseded'), 0) as superseded_bytes,
           coalesce(sum(octet_length(content)) filter (where state = 'archived'), 0) as archived_bytes
    from fact
    group by agent_id
),
slots as (
    select agent_id, count(*) filter (where learned_at < latest) as stale
    from (
        select agent_id, learned_at, max(learned_at) over (partition by agent_id, slot, scope, user_id, project_id) as latest
        from fact where state = 'active' and slot is not null
    ) f
    group by agent_id
),
texts as (
    -- The texts of episodes that changed since, as they were: of one in cold storage, or that grew, an event says only so.
    select l.agent_id, l.memory_id as id, jsonb_object_agg(t.key, case
        when not l.before ? t.key then t.now
        when jsonb_typeof(l.before -> t.key) <> 'object' then l.before ->> t.key
        else left(coalesce(t.cold, t.now), coalesce((l.before #>> array[t.key, 'characters'])::integer, 2147483647)) end) as texts
    from later l join heart.episodes e on e.agent_id = l.agent_id and e.id = l.memory_id
    left join lateral (
        select max(detail) as detail, max(summary) as summary, max(compressed) as compressed
        from heart.cold_texts where agent_id = e.agent_id and memory_id = e.id
    ) c on true
    cross join lateral (values ('detail', e.detail, c.detail), ('summary', e.summary, c.summary),
                               ('compressed', e.compressed, c.compressed)) t(key, now, cold)
    group by l.agent_id, l.memory_id
),
episode as (
    select e.agent_id, e.id, coalesce(l.before ->> 'state', e.state) as state,
           coalesce(l.before ->> 'compression_tier', e.compression_tier) as tier, e.index_word, e.title,
           case when t.id is null then e.detail else t.texts ->> 'detail' end as detail,
           case when t.id is null then e.summary else t.texts ->> 'summary' end as summary,
           case when t.id is null then e.compressed else t.texts ->> 'compressed' end as compressed
    from heart.episodes e
    left join later l on l.agent_id = e.agent_id and l.memory_id = e.id
    left join texts t on t.agent_id = e.agent_id and t.id = e.id
    where e.started_at < %(ends_at)s
),
episodes as (
    select agent_id,
           count(*) filter (where state <> 'archived' and tier = 'raw') as raw,
           count(*) filter (where state <> 'archived' and tier = 'summary') as summary,
           count(*) filter (where state <> 'archived' and tier = 'compressed') as compressed,
           count(*) filter (where state <> 'archived' and tier = 'fossil') as fossil,
           count(*) filter (where state = 'archived') as archived,
           coalesce(sum(octet_length(coalesce(detail, summary, compressed, index_word, title)))
                    filter (where state <> 'archived'), 0) as bytes
    from episode
    group by agent_id
),
cold as (
    -- A text that undoing brought back lies here still, and saves nothing; so does one that moved here since.
    select c.agent_id, sum(octet_length(concat(case when e.detail is null then c.detail end,
                                               case when e.summary is null then c.summary end,
                                               case when e.compressed is null then c.compressed end))) as bytes
    from heart.cold_texts c join episode e on e.agent_id = c.agent_id and e.id = c.memory_id
    group by c.agent_id
),
procedures as (
    select p.agent_id, count(*) filter (where s.state = 'active') as active, count(*) filter (where s.state = 'review') as review
    from heart.procedures p left join later l on l.agent_id = p.agent_id and l.memory_id = p.id
        cross join lateral (select coalesce(l.before ->> 'state', p.state) as state) s
    where p.learned_at < %(ends_at)s
    group by p.agent_id
),
censors as (
    select agent_id, count(*) filter (where state = 'active') as active
    from heart.censors where learned_at < %(ends_at)s
    group by agent_id
),
contradictions as (
    select agent_id, count(*) as open from heart.contradictions c
    where status = 'open' and detected_at <= %(ends_at)s  -- found by the night itself: at its end
      and not exists (select from heart.facts f
                      where f.agent_id = c.agent_id and f.id in (c.memory_a, c.memory_b) and least(f.superseded_at, f.archived_at) <= %(ends_at)s)
    group by agent_id
),
links as (select agent_id, count(*) as links from heart.links where created_at <= %(ends_at)s group by agent_id)
insert into lifecycle.health as h (agent_id, night, measured_at, figures)
select a.id, %(night)s, %(seen_at)s, jsonb_build_object(
    'facts_active', coalesce(f.active, 0),
    'facts_superseded', coalesce(f.superseded, 0),
    'facts_archived', coalesce(f.archived, 0),
    'facts_stale', coalesce(s.stale, 0),
    'episodes_raw', coalesce(e.raw, 0),
    'episodes_summary', coalesce(e.summary, 0),
    'episodes_compressed', coalesce(e.compressed, 0),
    'episodes_fossil', coalesce(e.fossil, 0),
    'episodes_archived', coalesce(e.archived, 0),
    'procedures_active', coalesce(p.active, 0),
    'procedures_review', coalesce(p.review, 0),
    'censors_active', coalesce(c.active, 0),
    'contradictions_open', coalesce(x.open, 0),
    'links', coalesce(l.links, 0),
    'tokens_active', ceil((coalesce(f.active_bytes, 0) + coalesce(e.bytes, 0)) / 1.3),
    'tokens_saved_by_tiers', ceil(coalesce(t.bytes, 0) / 1.3),
    'tokens_saved_by_merges', ceil(coalesce(f.superseded_bytes, 0) / 1.3),
    'tokens_saved_by_archiving', ceil(coalesce(f.archived_bytes, 0) / 1.3)
) || coalesce(%(pairs)s::jsonb -> a.id, %(no_pairs)s::jsonb)
from heart.agents a
left join facts f on f.agent_id = a.id
left join slots s on s.agent_id = a.id
left join episodes e on e.agent_id = a.id
left join cold t on t.agent_id = a.id
left join procedures p on p.agent_id = a.id
left join censors c on c.agent_id = a.id
left join contradictions x on x.agent_id = a.id
left join links l on l.agent_id = a.id
where %(agent_ids)s::text[] = '{}' or a.id = any(%(agent_ids)s)
-- A night run again after later ones would be told of their work: its figures stay, but for the facts that came late, which
-- are counted as they stood then.
on conflict (agent_id, night) do update set measured_at = excluded.measured_at, figures = case when exists (
    select from lifecycle.health later where later.agent_id = excluded.agent_id and later.night > excluded.night
) then h.figures || (select jsonb_object_agg(key, value) from jsonb_each(excluded.figures)
                     where key in ('facts_active', 'facts_superseded', 'facts_archived'))
else excluded.figures end

-- name: open_questions
-- What waits for a person now; a contradiction that a night found is of its end.
with contradictions as (
    select c.detected_at from heart.contradictions c
    where {is_question} and (%(agent_ids)s::text[] = '{{}}' or c.agent_id = any(%(agent_ids)s))
)
select (select count(*) from contradictions) as contradictions,
       (select count(*) from contradictions where detected_at = %(ends_at)s) as found,
       (select count(distinct (f.agent_id, f.id, o.id)) from heart.facts f cross join unnest(f.perhaps_replaces) r(id)
            join heart.facts o on o.agent_id = f.agent_id and o.id = r.id and o.state = 'active'
        where f.state = 'active' and f.perhaps_replaces <> '{{}}'
          and (%(agent_ids)s::text[] = '{{}}' or f.agent_id = any(%(agent_ids)s))) as doubts,
       (select count(*) from heart.procedures
        where state = 'review' and (%(agent_ids)s::text[] = '{{}}' or agent_id = any(%(agent_ids)s))) as procedures

-- name: inactive_facts
select agent_id, id::text from heart.facts where agent_id = any(%(agent_ids)s) and state in ('superseded', 'archived', 'quarantined')

-- name: health_history
-- The last nights, summed over agents. Whoever was not measured in one of them stands as when last measured before.
-- What a night cost is not measured then but summed now: its batches are collected later.
with measured as (
    select agent_id, night, figures, lead(night) over (partition by agent_id order by night) as next
    from lifecycle.health
    where night <= %(night)s and (%(agent_ids)s::text[] = '{}' or agent_id = any(%(agent_ids)s))
),
nights as (select distinct night from measured where night > %(night)s - %(nights)s)
select night, jsonb_object_agg(key, total) as figures
from (
    select n.night, f.key, sum(f.value::float8) as total
    from nights n
    join measured m on m.night <= n.night and (m.next > n.night or m.next is null)
    cross join jsonb_each_text(m.figures - 'cost_usd') f(key, value)
    group by n.night, f.key
    union all
    select n.night, 'cost_usd', coalesce(sum(r.cost_usd)::float8, 0)
    from nights n
    left join heart.llm_requests r
        on r.night = n.night and (%(agent_ids)s::text[] = '{}' or r.agent_id = any(%(agent_ids)s))
    group by n.night
) summed
group by night
order by night
