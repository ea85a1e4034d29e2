-- name: keep_verdicts
-- In one order, so that two who keep verdicts on the same pairs queue up. COPY is not allowed where row-level security is
-- forced, so whole columns are sent.
insert into heart.judgements (agent_id, pair_hash, model, prompt_version, verdict, confidence, slot, later, reason,
                              change, input_tokens, output_tokens, cost_usd)
select agent_id, pair_hash, %(model)s, %(prompt_version)s, verdict, confidence, slot, later, reason, change,
       input_tokens, output_tokens, cost_usd
from unnest(%(agent_ids)s::text[], %(pair_hashes)s::text[], %(verdicts)s::text[], %(confidences)s::real[],
            %(slots)s::text[], %(laters)s::text[], %(reasons)s::text[], %(changes)s::real[], %(input_tokens)s::integer[],
            %(output_tokens)s::integer[], %(costs_usd)s::numeric[])
     as v(agent_id, pair_hash, verdict, confidence, slot, later, reason, change, input_tokens, output_tokens, cost_usd)
order by agent_id, pair_hash
on conflict do nothing
