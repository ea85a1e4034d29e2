-- name: store_decision
insert into brain.decisions (
    agent_id, title, rationale, confidence, episode_id, files, tags, decided_at, session_id, reference)
values (
    %(agent_id)s, %(title)s, %(rationale)s, %(confidence)s, %(episode_id)s, %(files)s, %(tags)s, %(decided_at)s,
    %(session_id)s, %(reference)s)
returning {columns}

-- name: get_decision
select {columns} from brain.decisions
where agent_id = %(agent_id)s and (id = %(id)s::uuid or reference = %(reference)s::text)

-- name: lock_decision
select {columns} from brain.decisions
where agent_id = %(agent_id)s and (id = %(id)s::uuid or reference = %(reference)s::text) for update

-- name: resolve_decision
update brain.decisions
set status = %(status)s, outcome = %(outcome)s, resolved_at = %(at)s, row_version = row_version + 1
where agent_id = %(agent_id)s and id = %(id)s and row_version = %(row_version)s
returning {columns}

-- name: link_decision
update brain.decisions set episode_id = %(episode_id)s, row_version = row_version + 1
where agent_id = %(agent_id)s and id = %(id)s and episode_id is null

-- name: normal_path
-- One kind of slash, and no steps that lead nowhere: as signals are told.
regexp_replace(regexp_replace(replace({path}, '\', '/'), '/(\.?/)+', '/', 'g'), '^(\./)+', '')

-- name: find_decisions
-- The latest first; what is not asked for is not looked at.
select {columns} from brain.decisions
where agent_id = %(agent_id)s
  and (%(status)s::text is null or status = %(status)s)
  and (%(file)s::text is null or exists (select from unnest(files) path where {stored} = {asked}))
  and (%(tag)s::text is null or %(tag)s = any(tags))
  and (%(session_id)s::text is null or session_id = %(session_id)s)
  and (%(episode_id)s::uuid is null or episode_id = %(episode_id)s)
order by decided_at desc, id desc
limit %(limit)s
