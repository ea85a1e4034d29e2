-- name: heirs
-- What took a fact's place by each of these supersessions that stands, with what gave way to it last. Locked in id order,
-- as everybody takes facts. An undo leaves its events, so what was taken back is not done again.
with pair as materialized (
    select distinct on (old.superseded_by) e.proposal_id, old.superseded_by as heir_id, old.content, old.embedding,
           old.embedding_space_id
    from lifecycle.proposals p
    join lifecycle.events e on e.agent_id = p.agent_id and e.proposal_id = p.id and e.action = 'superseded'
    join heart.facts old on old.agent_id = e.agent_id and old.id = e.memory_id
    where p.agent_id = %(agent_id)s and p.id = any(%(ids)s) and p.state = 'applied'
      and old.state = 'superseded' and old.succession = 'replaced' and not old.is_forgotten
      and not exists (select from lifecycle.events done
                      where done.agent_id = p.agent_id and done.proposal_id = p.id and done.memory_id = old.superseded_by)
    order by old.superseded_by, old.learned_at desc, old.id
), heir as materialized (
    select f.id, f.row_version, f.context, coalesce(f.context_embedding, f.embedding) as embedding, f.embedding_space_id
    from heart.facts f
    where f.agent_id = %(agent_id)s and f.id in (select heir_id from pair) and f.state = 'active'
    order by f.id for no key update
)
select p.proposal_id, h.id, h.row_version, h.context, p.content, h.embedding, p.embedding
from heir h join pair p on p.heir_id = h.id and p.embedding_space_id = h.embedding_space_id
order by h.id
