-- name: erased
-- Of some texts, ids and users, by which memories are recognised, those that were erased one by one, and when. What went with the whole agent has its moment.
select sign, t.erased_at
from unnest(%(signs)s::text[]) sign
join lifecycle.tombstones t on t.agent_hash = encode(sha256(convert_to(%(agent_id)s, 'UTF8')), 'hex')
 and t.content_hash = encode(sha256(convert_to(%(agent_id)s || E'\n' || sign, 'UTF8')), 'hex')
where not exists (select from lifecycle.tombstones w
                  where w.agent_hash = t.agent_hash and w.content_hash = '' and w.erased_at = t.erased_at)
