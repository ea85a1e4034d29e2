-- name: find_documents
-- By the index on subjects, which knows them in lower case.
select {columns}
from heart.facts
where agent_id = %(agent_id)s and state = 'active' and project_id = %(place)s and category = 'document'
  and lower(subject) = any(array(select lower(name) from unnest(%(names)s::text[]) name)) and subject = any(%(names)s)

-- name: list_documents
select {columns}
from heart.facts
where agent_id = %(agent_id)s and state = 'active' and project_id = %(place)s and category = 'document'
  and starts_with(subject, %(prefix)s)
order by subject collate "C"
