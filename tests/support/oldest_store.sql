-- A store as the first version left it: every kind of memory in several states, each version with its event, and what
-- is kept about them. Vectors are of no importance here: what has none is found by its words.
insert into heart.embedding_spaces (id, model, weights_sha256, dimensions) values ('words-64', 'words', '', 64);
insert into heart.agents (id, embedding_space_id) values ('aria', 'words-64'), ('boris', 'words-64');
select heart.index_embedding_space('words-64');

insert into heart.episodes (id, agent_id, state, title, detail, summary, started_at, ended_at, completed_at, participants) values
    ('00000000-0000-7000-8000-000000000001', 'aria', 'closed', 'At the harbour', 'The ropes were wet.', 'Wet ropes.',
     '2026-05-01 09:00Z', '2026-05-01 10:00Z', '2026-05-01 10:01Z', '{ada}'),
    ('00000000-0000-7000-8000-000000000002', 'aria', 'open', 'On the pier', 'The crane waits.', null,
     '2026-05-02 09:00Z', null, null, '{}');
insert into brain.decisions (id, agent_id, title, rationale, status, episode_id, outcome, resolved_at) values
    ('00000000-0000-7000-8000-000000000003', 'aria', 'Sail tomorrow', 'the wind', 'succeeded',
     '00000000-0000-7000-8000-000000000001', 'arrived', '2026-05-03Z');
insert into heart.facts (id, agent_id, content, subject, state, superseded_by, superseded_at, archived_at, learned_at,
                         source, trust, source_episode_id, source_decision_id, is_pinned, confirmation_count) values
    ('00000000-0000-7000-8000-000000000011', 'aria', 'The office opens at nine', 'office', 'active', null, null, null,
     '2026-05-01Z', 'mail', 60, null, null, true, 1),
    ('00000000-0000-7000-8000-000000000012', 'aria', 'The office opens at ten', 'office', 'superseded',
     '00000000-0000-7000-8000-000000000011', '2026-05-01Z', null, '2026-04-01Z', 'mail', 50, null, null, false, 0),
    ('00000000-0000-7000-8000-000000000013', 'aria', 'Ada sails a boat', 'ada', 'archived', null, null, '2026-05-09Z',
     '2026-05-01Z', null, 40, '00000000-0000-7000-8000-000000000001', '00000000-0000-7000-8000-000000000003', false, 0),
    ('00000000-0000-7000-8000-000000000014', 'boris', 'The boat is slow', 'boat', 'active', null, null, null,
     '2026-05-01Z', null, 50, null, null, false, 0);
insert into heart.procedures (id, agent_id, name, core_patterns, source_kind) values
    ('00000000-0000-7000-8000-000000000021', 'aria', 'Retry uploads', '{wait,try again}', 'tool');
insert into heart.censors (id, agent_id, trigger, reason, learned_from_episode_id) values
    ('00000000-0000-7000-8000-000000000031', 'aria', 'deploy on friday', 'it failed before', '00000000-0000-7000-8000-000000000001');
insert into lifecycle.events (agent_id, memory_kind, memory_id, action, from_state, to_state, version_before, version_after,
                              before, after, actor, reason, effective_at)
select agent_id, kind, id, 'learned', 'new', to_state, 0, 1, '{}', '{}', 'agent', 'it was told', '2026-05-01Z'
from (
    select agent_id, 'fact' as kind, id, 'active' as to_state from heart.facts
    union all select agent_id, 'episode', id, state from heart.episodes
    union all select agent_id, 'procedure', id, 'active' from heart.procedures
    union all select agent_id, 'censor', id, 'active' from heart.censors
) told;

insert into heart.usage (agent_id, memory_id, memory_kind, retrieved_count, cited_count) values
    ('aria', '00000000-0000-7000-8000-000000000011', 'fact', 5, 2);
insert into heart.recalls (id, agent_id, query, result_limit, result_ids, result_scores) values
    ('00000000-0000-7000-8000-000000000041', 'aria', 'when does the office open?', 5,
     '{00000000-0000-7000-8000-000000000011}', '{0.9}');
insert into heart.requests (agent_id, idempotency_key, verb, content_hash, memory_id, action) values
    ('aria', 'k-1', 'learn', 'a hash', '00000000-0000-7000-8000-000000000011', 'stored');
insert into heart.contradictions (agent_id, memory_a, memory_b, status) values
    ('aria', '00000000-0000-7000-8000-000000000011', '00000000-0000-7000-8000-000000000012', 'open');
insert into heart.links (agent_id, from_id, to_id, kind, weight) values
    ('aria', '00000000-0000-7000-8000-000000000011', '00000000-0000-7000-8000-000000000013', 'related', 0.7);
insert into heart.judgements (agent_id, pair_hash, model, prompt_version, verdict, confidence, reason) values
    ('aria', 'a hash', 'a model', '1', 'updates', 0.9, 'a later hour');
insert into heart.cold_texts (agent_id, memory_id, tier, detail) values
    ('aria', '00000000-0000-7000-8000-000000000001', 'raw', 'The ropes were wet, all of them.');
insert into heart.working_memory (agent_id, session_id, task) values ('aria', 's-1', 'sail');
insert into heart.outbox (agent_id, name, memory_id) values ('aria', 'fact_learned', '00000000-0000-7000-8000-000000000011');
