-- name: doubts
-- Active facts that perhaps replace others which are active too, the oldest first: the earlier fact and the later one.
select {earlier}, {later}
from heart.facts f join heart.facts o on o.agent_id = f.agent_id and o.id = any(f.perhaps_replaces) and o.state = 'active'
where f.agent_id = %(agent_id)s and f.state = 'active' and f.perhaps_replaces <> '{{}}'
order by f.learned_at, f.id, o.id
