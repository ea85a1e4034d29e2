-- What a person asked to forget is archived, and no question of the past finds it either.
alter table heart.facts add column is_forgotten boolean not null default false,
    add constraint forgotten_is_archived check (not is_forgotten or state = 'archived');
alter table heart.episodes add column is_forgotten boolean not null default false,
    add constraint forgotten_is_archived check (not is_forgotten or state = 'archived');
alter table heart.procedures add column is_forgotten boolean not null default false,
    add constraint forgotten_is_archived check (not is_forgotten or state = 'archived');
alter table heart.censors add column is_forgotten boolean not null default false,
    add constraint forgotten_is_archived check (not is_forgotten or state = 'archived');

create index facts_forgotten on heart.facts (agent_id) where is_forgotten;

-- Two texts that are equal here say the same words: case, spacing and the marks around words aside.
create function heart.folded(body text) returns text language sql immutable as
$$ select trim(regexp_replace(lower(body), '[[:space:].,;:!?"''()]+', ' ', 'g')) $$;

create index statements_words on heart.statements (agent_id, hashtextextended(heart.folded(content), 0));

-- Anything can be forgotten, and is brought back to the state it was in.
insert into lifecycle.transitions (memory_kind, from_state, to_state) values
    ('fact', 'archived', 'quarantined'), ('episode', 'open', 'archived'), ('episode', 'archived', 'open');

-- For whom a question was asked, so that the questions of one user can be erased.
alter table heart.recalls add column user_id text;

-- Erasing takes words out of what is told of others; the columns it may update are its grant.
create or replace function lifecycle.refuse_change() returns trigger
    language plpgsql as $$
begin
    if tg_op = 'UPDATE' and current_user = 'nous_purge' then
        return null;
    end if;
    raise exception 'lifecycle.events is append-only: % refused', tg_op using errcode = 'insufficient_privilege';
end $$;

drop view heart.memories;
create view heart.memories with (security_invoker = true) as
select m.*, coalesce(u.retrieved_count, 0) as retrieved_count, coalesce(u.cited_count, 0) as cited_count,
       coalesce(u.ignored_count, 0) as ignored_count, u.last_used_at
from (
    select id, agent_id, 'fact' as kind, state, content as full_text, summary, compressed, index_word, tags,
           learned_at, valid_from, valid_to, superseded_by, encoded_frame, encoded_censors, trust, is_pinned,
           scope, user_id, project_id, rank_weight, row_version, is_forgotten
    from heart.facts
    union all
    select id, agent_id, 'episode', state, coalesce(detail, summary, compressed, index_word), summary, compressed, index_word, tags,
           started_at, started_at, ended_at, null, frame_used, encoded_censors, trust, is_pinned,
           scope, user_id, project_id, rank_weight, row_version, is_forgotten
    from heart.episodes
    union all
    select id, agent_id, 'procedure', state, name, summary, compressed, index_word, tags,
           learned_at, null, null, null, encoded_frame, encoded_censors, trust, is_pinned,
           scope, user_id, project_id, rank_weight, row_version, is_forgotten
    from heart.procedures
    union all
    select id, agent_id, 'censor', state, trigger || ': ' || reason, summary, compressed, index_word, '{}'::text[],
           learned_at, null, expires_at, null, encoded_frame, encoded_censors, trust, is_pinned,
           scope, user_id, project_id, rank_weight, row_version, is_forgotten
    from heart.censors
) m
left join heart.usage u on u.agent_id = m.agent_id and u.memory_id = m.id;
