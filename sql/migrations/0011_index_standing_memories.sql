-- What a context shows at once: pinned facts, conventions and open questions, the latest episodes.
create index facts_pinned on heart.facts (agent_id) where is_pinned;
create index facts_category on heart.facts (agent_id, category, learned_at) where category is not null;
create index episodes_started on heart.episodes (agent_id, started_at);
