-- name: store_key
insert into heart.api_keys (agent_id, id, secret_sha256, name, expires_at)
values (%(agent_id)s, %(id)s, %(secret_sha256)s, %(name)s, %(expires_at)s)
returning agent_id, id, name, created_at, expires_at, revoked_at

-- name: find_secret
-- The hash of a key that is good now.
select secret_sha256
from heart.api_keys
where agent_id = %(agent_id)s and id = %(id)s and revoked_at is null and (expires_at is null or expires_at > now())

-- name: list_keys
select agent_id, id, name, created_at, expires_at, revoked_at
from heart.api_keys
where agent_id = %(agent_id)s
order by created_at, id

-- name: revoke_key
update heart.api_keys
set revoked_at = coalesce(revoked_at, now())
where agent_id = %(agent_id)s and id = %(id)s
returning agent_id, id, name, created_at, expires_at, revoked_at
