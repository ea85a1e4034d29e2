-- name: begin_session
insert into heart.working_memory (agent_id, session_id, capacity) values (%(agent_id)s, %(session_id)s, %(capacity)s)
on conflict (agent_id, session_id) do nothing

-- name: read_session
select session_id, task, frame, items, open_threads, capacity, episode_id, created_at, active_censors
from heart.working_memory where agent_id = %(agent_id)s and session_id = %(session_id)s

-- name: lock_session
-- Who loads at the same time queues up here, so that no list is written back that lacks what another has added.
select session_id, task, frame, items, open_threads, capacity, episode_id, created_at, active_censors
from heart.working_memory where agent_id = %(agent_id)s and session_id = %(session_id)s for update

-- name: focus_session
update heart.working_memory
set task = %(task)s, task_embedding = %(vector)s, embedding_space_id = %(space_id)s, frame = %(frame)s,
    capacity = %(capacity)s, active_censors = %(active_censors)s
where agent_id = %(agent_id)s and session_id = %(session_id)s

-- name: situate_session
-- In which frame and under which censors a session goes on, without another task.
update heart.working_memory
set frame = %(frame)s, active_censors = %(active_censors)s, capacity = %(capacity)s
where agent_id = %(agent_id)s and session_id = %(session_id)s

-- name: read_situation
select frame, active_censors from heart.working_memory where agent_id = %(agent_id)s and session_id = %(session_id)s

-- name: store_session
update heart.working_memory
set items = %(items)s, open_threads = %(open_threads)s, episode_id = %(episode_id)s, row_version = row_version + 1,
    updated_at = now()
where agent_id = %(agent_id)s and session_id = %(session_id)s

-- name: end_session
delete from heart.working_memory where agent_id = %(agent_id)s and session_id = %(session_id)s

-- name: session_episode
-- The open episode begun last in a session; what was begun without one belongs to the default session.
select id from heart.episodes
where agent_id = %(agent_id)s and state = 'open'
  and coalesce(session_id, %(default_session)s) = %(session_id)s
order by started_at desc, id desc
limit 1

-- name: weigh_memories
-- How near memories are to the task of a session; those of another embedding space can't be compared.
select m.id, 1 - (m.embedding <=> w.task_embedding)
from heart.working_memory w
cross join lateral (
    select id, embedding, embedding_space_id from heart.facts where agent_id = w.agent_id and id = any(%(ids)s)
    union all
    select id, embedding, embedding_space_id from heart.episodes where agent_id = w.agent_id and id = any(%(ids)s)
    union all
    select id, embedding, embedding_space_id from heart.procedures where agent_id = w.agent_id and id = any(%(ids)s)
    union all
    select id, embedding, embedding_space_id from heart.censors where agent_id = w.agent_id and id = any(%(ids)s)
) m
where w.agent_id = %(agent_id)s and w.session_id = %(session_id)s
  and w.task_embedding is not null and m.embedding is not null and m.embedding_space_id = w.embedding_space_id

-- name: weigh_notes
-- The same for notes, which have no row of their own.
select n.id, 1 - (n.embedding::vector <=> w.task_embedding)
from heart.working_memory w, unnest(%(ids)s::uuid[], %(vectors)s::text[]) n(id, embedding)
where w.agent_id = %(agent_id)s and w.session_id = %(session_id)s
  and w.task_embedding is not null and w.embedding_space_id = %(space_id)s

-- name: show_memories
-- What is held, at its shortest text that still is a sentence.
select id, kind, state, coalesce(case when kind <> 'fact' then compressed end, summary, full_text, index_word, '') as text,
       superseded_by
from heart.memories where agent_id = %(agent_id)s and id = any(%(ids)s) and not is_forgotten
