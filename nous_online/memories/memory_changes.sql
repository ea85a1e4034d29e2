-- name: kind_of
select kind from heart.memories where agent_id = %(agent_id)s and id = %(id)s

-- name: kind_in_reach
-- Of which kind a memory is, and whether it is pinned, if whoever asks could recall it.
select f.kind, f.is_pinned from heart.memories f where f.agent_id = %(agent_id)s and f.id = %(id)s and {in_reach}

-- name: state_before_archive
-- From where a memory left for the archive, the last time it did.
select from_state from lifecycle.events
where agent_id = %(agent_id)s and memory_id = %(id)s and to_state = 'archived' and from_state <> 'archived'
order by version_after desc
limit 1

-- name: context_of
select context from heart.facts where agent_id = %(agent_id)s and id = %(id)s
