-- name: identity
select id::text from migration.identity

-- name: hold_batches
-- Whoever sends for an agent does so alone: two who saw the same open pairs would ask about them twice.
select pg_advisory_xact_lock(hashtextextended('batches:' || %(agent_id)s, 0))::text

-- name: open_pairs
-- The contents of pairs that are on their way.
select distinct pair ->> 0
from heart.llm_requests, jsonb_array_elements(request -> 'pairs') pair
where agent_id = %(agent_id)s and is_batch and purpose = 'judge' and state in ('intent', 'submitted', 'ended')

-- name: answered_pairs
-- The contents of pairs that one of these models has given a verdict about.
select pair_hash, model, verdict
from heart.judgements
where agent_id = %(agent_id)s and prompt_version = %(prompt_version)s and model = any(%(models)s)
  and pair_hash = any(%(pair_hashes)s)

-- name: spent
-- What a night cost an agent so far, and what is on its way at the most.
select coalesce(sum(case when state in ('intent', 'submitted', 'ended') then estimated_usd else cost_usd end), 0)::float8
from heart.llm_requests
where agent_id = %(agent_id)s and night = %(night)s

-- name: tried
-- What kept earlier batches from settling a pair.
select model, again.key, again.value
from heart.llm_requests, jsonb_each_text(request -> 'again') again
where agent_id = %(agent_id)s and is_batch and purpose = 'judge' and state = 'imported'
  and prompt_version = %(prompt_version)s

-- name: store_intent
insert into heart.llm_requests (id, agent_id, night, purpose, model, prompt_version, state, is_batch, custom_ids,
                                request, request_count, estimated_usd)
values (%(id)s, %(agent_id)s, %(night)s, 'judge', %(model)s, %(prompt_version)s, 'intent', true, %(custom_ids)s,
        %(request)s, %(request_count)s, %(estimated_usd)s)

-- name: set_submitted
update heart.llm_requests set state = 'submitted', batch_id = %(batch_id)s, updated_at = now()
where id = %(id)s and state = 'intent'

-- name: set_ended
update heart.llm_requests set state = 'ended', updated_at = now()
where id = %(id)s and state = 'submitted'

-- name: set_saved
update heart.llm_requests set raw_sha256 = %(raw_sha256)s, updated_at = now()
where id = %(id)s and state = 'ended'

-- name: is_open
select id from heart.llm_requests where id = %(id)s and state in ('intent', 'submitted', 'ended')

-- name: set_failed
-- Its pairs are asked about again. One that was made and never came home has been paid for: its estimate stands for it.
update heart.llm_requests
set state = 'failed', error = %(error)s, failed_count = request_count, updated_at = now(),
    cost_usd = case when batch_id is null then 0 else estimated_usd end
where id = %(id)s and state in ('intent', 'submitted', 'ended')

-- name: set_imported
-- Returns nothing when somebody else was quicker.
update heart.llm_requests
set state = 'imported', request = %(request)s, error = %(error)s, failed_count = %(failed_count)s,
    input_tokens = %(input_tokens)s, output_tokens = %(output_tokens)s, cache_read_tokens = %(cache_read_tokens)s,
    cache_write_tokens = %(cache_write_tokens)s, cost_usd = %(cost_usd)s, updated_at = now()
where id = %(id)s and state = 'ended'
returning id

-- name: set_foreign
-- Batches that have been looked into and are somebody else's.
update heart.llm_requests set request = request || jsonb_build_object('foreign', %(foreign)s::text[]), updated_at = now()
where id = %(id)s and state = 'intent'

-- name: set_deleted
-- When it was brought home is left as it is: by that the latest batches are known.
update heart.llm_requests set request = request || '{"is_deleted": true}'
where id = %(id)s and state in ('imported', 'failed')

-- name: unfinished
-- Batches that something is still to be done about, the oldest first: the open ones, then what is to be deleted remotely.
select id, agent_id, night, model, prompt_version, state, batch_id, custom_ids, request, raw_sha256, request_count,
       failed_count, estimated_usd::float8, cost_usd::float8, error, created_at
from heart.llm_requests
where is_batch and purpose = 'judge' and (%(agent_ids)s::text[] = '{}' or agent_id = any(%(agent_ids)s))
  and (state in ('intent', 'submitted', 'ended') or (state = 'imported' and not request ? 'is_deleted'))
order by state = 'imported', created_at, id

-- name: given_up
-- Batches that failed and that the API may keep still.
select id, agent_id, night, model, prompt_version, state, batch_id, custom_ids, request, raw_sha256, request_count,
       failed_count, estimated_usd::float8, cost_usd::float8, error, created_at
from heart.llm_requests
where is_batch and purpose = 'judge' and agent_id = %(agent_id)s and state = 'failed' and batch_id is not null
  and not request ? 'is_deleted' and created_at > %(since)s
order by created_at, id

-- name: about
-- Batches that ask about one of some memories.
select id, agent_id, night, model, prompt_version, state, batch_id, custom_ids, request, raw_sha256, request_count,
       failed_count, estimated_usd::float8, cost_usd::float8, error, created_at
from heart.llm_requests
where is_batch and purpose = 'judge' and agent_id = %(agent_id)s
  and exists (select from unnest(%(ids)s::text[]) id where strpos(request::text, id) > 0)
order by created_at, id

-- name: recent
-- The latest batches, and every open one.
select id, agent_id, night, model, prompt_version, state, batch_id, custom_ids, request, raw_sha256, request_count,
       failed_count, estimated_usd::float8, cost_usd::float8, error, created_at
from heart.llm_requests
where is_batch and purpose = 'judge' and (%(agent_ids)s::text[] = '{}' or agent_id = any(%(agent_ids)s))
order by state in ('intent', 'submitted', 'ended') desc, created_at desc, id
limit greatest(%(limit)s, (select count(*) from heart.llm_requests where is_batch and purpose = 'judge'
                           and state in ('intent', 'submitted', 'ended')
                           and (%(agent_ids)s::text[] = '{}' or agent_id = any(%(agent_ids)s))))

-- name: last_imported
-- What the latest batches of a model came to.
select request -> 'canaries_wrong', request -> 'unknown_types'
from heart.llm_requests
where is_batch and purpose = 'judge' and state = 'imported' and model = %(model)s and prompt_version = %(prompt_version)s
order by updated_at desc
limit 2

-- name: known_batches
-- Batches that a row of ours already names.
select batch_id from heart.llm_requests where batch_id = any(%(batch_ids)s)

-- name: current_facts
-- Facts as they read now, in the space they live in.
select agent_id, id::text, content, subject, trust, embedding_space_id
from heart.facts
where agent_id = %(agent_id)s and id = any(%(ids)s::uuid[]) and embedding_space_id is not null
