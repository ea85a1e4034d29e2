-- name: known_verdicts
-- What this judge said before about pairs of this content.
select pair_hash, verdict, confidence, slot, reason, change
from heart.judgements
where agent_id = %(agent_id)s and model = %(model)s and prompt_version = %(prompt_version)s
  and pair_hash = any(%(pair_hashes)s)
