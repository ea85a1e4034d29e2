-- name: store_request
-- One online request, whatever came of it; what was asked stays out of it.
insert into heart.llm_requests (agent_id, night, purpose, model, prompt_version, state, failed_count, input_tokens,
                                output_tokens, cache_read_tokens, cache_write_tokens, cost_usd, estimated_usd, error)
values (%(agent_id)s, %(night)s, %(purpose)s, %(model)s, %(prompt_version)s, %(state)s, %(failed_count)s,
        %(input_tokens)s, %(output_tokens)s, %(cache_read_tokens)s, %(cache_write_tokens)s, %(cost_usd)s,
        %(cost_usd)s, %(error)s)
