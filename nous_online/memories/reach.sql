-- name: in_reach
-- What belongs to a user or a project is found by that user or project alone.
(f.scope = 'system' or (f.scope = 'project' and f.project_id = %(project_id)s)
    or (f.scope = 'private' and (f.user_id is null or f.user_id = %(user_id)s)
        and (f.project_id is null or f.project_id = %(project_id)s)))
