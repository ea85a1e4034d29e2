-- Our connections plan each query anew, for the agent it is about; so did the triggers of every row.
alter function heart.index_words() set plan_cache_mode = force_generic_plan;
alter function heart.require_event() set plan_cache_mode = force_generic_plan;
alter function heart.require_statement() set plan_cache_mode = force_generic_plan;
