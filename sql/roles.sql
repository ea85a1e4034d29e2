-- Who may do what; docs/roles.md says it in a table. Run after every migration; safe to run again.
--
--   nous_app    the agent's own calls: sees one agent, the one named in nous.agent_id, and deletes no memory
--   nous_night  the nightly pipeline: sees all agents, writes through proposals and events, deletes no memory
--   nous_purge  the purge and erasure commands: the only one that may delete
--
-- The owner of the tables runs migrations only. On the embedded server calls log in as nous_login, nights as
-- nous_night_login and what an operator asks for as nous_operator_login: each may become what is said below and nothing else.
-- Row-level security is forced, so that it binds the owner too.

do $$
declare
    name text;
    login text;
begin
    foreach name in array array['nous_app', 'nous_night', 'nous_purge'] loop
        if not exists (select from pg_roles where rolname = name) then
            begin
                execute format('create role %I nologin nosuperuser nobypassrls', name);
            exception when duplicate_object or unique_violation then null;  -- another process was quicker
            end;
        end if;
        if not pg_has_role(current_user, name, 'usage') then
            execute format('grant %I to current_user', name);  -- to set the role; 15 knows no `with set true`
        end if;
    end loop;
    for login, name in values
        ('nous_login', 'nous_app'),
        ('nous_night_login', 'nous_night'),
        ('nous_operator_login', 'nous_app'), ('nous_operator_login', 'nous_night'), ('nous_operator_login', 'nous_purge')
    loop
        if not pg_has_role(to_regrole(login)::oid, to_regrole(name)::oid, 'member') then  -- null where there is no such login
            execute format('grant %I to %I', name, login);
        end if;
    end loop;
end $$;

-- Which migrations there were: whoever opens the database compares them with its own.
grant select on migration.applied to public;

grant usage on schema heart, brain, lifecycle to nous_app, nous_night, nous_purge;

-- From nothing: a right that is no longer written here is gone after the next run.
revoke all on all tables in schema heart, brain, lifecycle from nous_app, nous_night, nous_purge;

-- What each may read. Plans name, or tell of, other agents; of tombstones an agent sees its own.
grant select on all tables in schema heart, brain, lifecycle to nous_app, nous_night, nous_purge;
revoke select on lifecycle.plans, lifecycle.snapshots from nous_app;
grant select (night, state) on lifecycle.plans to nous_app;  -- which night was the last
revoke select on lifecycle.tombstones, heart.api_keys, heart.webhooks from nous_night;
grant select (agent_id, id) on heart.webhooks to nous_night;  -- which agents have somebody who listens

-- Memories: new ones are added; of those there are, nobody rewrites what was said, by whom and when. What a fact is found
-- by besides, its context, gains the words of a fact that gave way to it.
grant insert on heart.facts, heart.episodes, heart.procedures, heart.censors to nous_app, nous_night;
do $$
declare
    target text;
    fixed text[];
    changeable text;
begin
    for target, fixed in values
        ('facts', array['content', 'source_episode_id', 'source_decision_id', 'encoded_frame', 'encoded_censors']),
        ('episodes', array['session_id']),
        ('procedures', array['kind', 'encoded_frame', 'encoded_censors']),
        ('censors', array['trigger', 'reason', 'is_literal', 'learned_from_decision_id', 'learned_from_episode_id'])
    loop
        select string_agg(quote_ident(attname), ', ') into changeable
        from pg_attribute
        where attrelid = format('heart.%I', target)::regclass and attnum > 0 and not attisdropped and attgenerated = ''
          and attname <> all (fixed || array['id', 'agent_id', 'source_kind', 'learned_at', 'started_at', 'created_at'])
          and attname <> all (array['row_version', 'written_xid', 'word_count', 'context_word_count']);  -- the triggers'
        execute format('grant update (%s) on heart.%I to nous_app, nous_night', changeable, target);
    end loop;
end $$;

-- What is kept about memories.
grant insert, delete on heart.postings to nous_app, nous_night;  -- by the trigger that keeps them true to the text
grant insert, update, delete on heart.term_stats, heart.corpus_stats to nous_app, nous_night;
grant insert, delete on heart.word_changes to nous_app, nous_night;
grant insert, update on heart.usage to nous_app, nous_night;
grant insert on heart.outbox to nous_app, nous_night;
grant insert on lifecycle.events to nous_app, nous_night;
grant insert, update (status, resolution, resolved_at, note, proposed, row_version) on heart.contradictions to nous_app, nous_night;

-- The agent's own calls. What was said is added and never rewritten; of which fact it speaks may change.
grant insert, update (fact_id, reason, taken_back_at) on heart.statements to nous_app;
grant insert on heart.agents, heart.episode_artifacts, heart.requests, heart.llm_requests, heart.judgements to nous_app;
grant insert, update, delete on heart.working_memory to nous_app;
grant insert on heart.sightings to nous_app;
grant insert, update (revoked_at, last_used_at) on heart.api_keys to nous_app;
grant insert, delete on heart.webhooks to nous_app;
grant insert, update (cited_ids, ignored_ids) on heart.recalls to nous_app;
grant insert, update on heart.outbox_cursors to nous_app, nous_night;  -- the place of whoever looks at fresh facts
grant insert, update (due_at, attempt_count, outage_count, draft, last_error, finished_at) on heart.completions to nous_app;
grant insert, update (status, outcome, resolved_at, episode_id, row_version) on brain.decisions to nous_app;

-- The night.
grant update (embedding_space_id) on heart.agents to nous_night;
grant insert, update on lifecycle.plans, lifecycle.proposals, lifecycle.agent_policies, lifecycle.health to nous_night;
grant insert, update, delete on heart.links, heart.next_embeddings to nous_night;
grant insert, update on heart.llm_requests to nous_night;
grant insert on heart.judgements, lifecycle.snapshots to nous_night;
grant insert, update on heart.cold_texts to nous_night;

-- Erasing and purging: they delete what belongs to an agent, and add the hash that says so.
grant delete on all tables in schema heart, brain, lifecycle to nous_purge;
revoke delete on heart.embedding_spaces, heart.memories, lifecycle.transitions, lifecycle.snapshots, lifecycle.tombstones
from nous_purge;
grant update (agent_ids, policy, counts, checks) on lifecycle.plans to nous_purge;
grant insert on lifecycle.tombstones to nous_purge;
do $$
begin
    if current_setting('server_version_num')::int >= 170000 then  -- before, the owner alone may vacuum
        grant maintain on all tables in schema heart, brain, lifecycle to nous_purge;
    end if;
end $$;

-- Erasing one memory or user: what remains of others says nothing of it, and a fact that loses the statement it stood on
-- takes the words of the next. Each such version has its event.
grant insert on lifecycle.events, heart.postings, heart.word_changes to nous_purge;
grant update (total_length) on heart.corpus_stats to nous_purge;
grant update (reason, before, after) on lifecycle.events to nous_purge;
grant update (targets, read_set, changes, reason, evidence, outcome) on lifecycle.proposals to nous_purge;
grant update (
    content, context, subject, slot, summary, compressed, index_word, source, source_kind, source_episode_id, source_decision_id,
    sources, learned_at, last_confirmed_at, confirmation_count, encoded_frame, state, archived_at, superseded_by, superseded_at,
    succession, perhaps_replaces, embedding, context_embedding, embedding_space_id) on heart.facts to nous_purge;
grant update (result_ids, result_scores, cited_ids, ignored_ids, query) on heart.recalls to nous_purge;
grant update (items, open_threads, task) on heart.working_memory to nous_purge;
grant update (note, judgement, proposed) on heart.contradictions to nous_purge;
grant update (exceptions, last_activation) on heart.censors to nous_purge;
grant update (draft, last_error) on heart.completions to nous_purge;
grant update (error) on heart.llm_requests to nous_purge;
grant update (last_error) on heart.outbox_cursors to nous_purge;
grant update (payload) on heart.outbox to nous_purge;
grant update (episode_id) on brain.decisions to nous_purge;
grant update (evidence) on heart.links to nous_purge;

do $$
declare
    target record;
begin
    for target in
        select c.oid::regclass as name
        from pg_class c
        join pg_namespace n on n.oid = c.relnamespace
        join pg_attribute a on a.attrelid = c.oid and a.attname = 'agent_id' and not a.attisdropped
        where n.nspname in ('heart', 'brain', 'lifecycle') and c.relkind = 'r'
    loop
        execute format('alter table %s enable row level security', target.name);
        execute format('alter table %s force row level security', target.name);
        execute format('drop policy if exists one_agent on %s', target.name);
        execute format(
            'create policy one_agent on %s to nous_app using (agent_id = heart.current_agent()) with check (agent_id = heart.current_agent())',
            target.name);
        execute format('drop policy if exists every_agent on %s', target.name);
        execute format('create policy every_agent on %s to nous_night, nous_purge using (true) with check (true)', target.name);
    end loop;
end $$;

alter table heart.agents enable row level security;
alter table heart.agents force row level security;
drop policy if exists one_agent on heart.agents;
create policy one_agent on heart.agents to nous_app using (id = heart.current_agent()) with check (id = heart.current_agent());
drop policy if exists every_agent on heart.agents;
create policy every_agent on heart.agents to nous_night, nous_purge using (true) with check (true);

-- By these an import leaves out what was erased. They are hashes, and whose they are says a hash too.
alter table lifecycle.tombstones enable row level security;
alter table lifecycle.tombstones force row level security;
drop policy if exists one_agent on lifecycle.tombstones;
create policy one_agent on lifecycle.tombstones to nous_app
    using (agent_hash = encode(sha256(convert_to(heart.current_agent(), 'UTF8')), 'hex'))
    with check (agent_hash = encode(sha256(convert_to(heart.current_agent(), 'UTF8')), 'hex'));
drop policy if exists every_agent on lifecycle.tombstones;
create policy every_agent on lifecycle.tombstones to nous_purge using (true) with check (true);
