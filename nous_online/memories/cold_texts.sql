-- name: full_text
-- The most detailed text there is of an episode: as the row has it now or, where that text has left, the last one that
-- went to cold storage.
select e.id as episode_id, e.title, coalesce(found.text, e.title, e.index_word, '') as text,
       coalesce(found.level, 'title') as level, coalesce(found.is_cold, false) as is_cold, found.purge_after
from heart.episodes e
left join lateral (
    select place, level, text, false as is_cold, null::timestamptz as stored_at, null::timestamptz as purge_after
    from (values (1, 'detail', e.detail), (2, 'summary', e.summary), (3, 'compressed', e.compressed)) hot(place, level, text)
    where text is not null
    union all
    select place, level, text, true, c.stored_at, c.purge_after
    from heart.cold_texts c
    cross join lateral (
        values (1, 'detail', c.detail), (2, 'summary', c.summary), (3, 'compressed', c.compressed)) cold(place, level, text)
    where c.agent_id = e.agent_id and c.memory_id = e.id and text is not null
    order by place, is_cold, stored_at desc
    limit 1
) found on true
where e.agent_id = %(agent_id)s and e.id = %(id)s
