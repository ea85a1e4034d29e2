-- name: store_key
insert into heart.api_keys (agent_id, id, secret_sha256, name, expires_at, max_trust, may_pin, is_read_only)
values (
    %(agent_id)s, %(id)s, %(secret_sha256)s, %(name)s, %(expires_at)s, %(max_trust)s, %(may_pin)s, %(is_read_only)s)
returning agent_id, id, name, created_at, expires_at, revoked_at, max_trust, may_pin, is_read_only, last_used_at

-- name: find_key
-- A valid key: the hash of its secret, whether to store its time of use (once a minute, unless read-only), its columns.
select secret_sha256,
       (last_used_at is null or last_used_at < now() - interval '1 minute')
       and not pg_is_in_recovery() and current_setting('transaction_read_only') = 'off',
       agent_id, id, name, created_at, expires_at, revoked_at, max_trust, may_pin, is_read_only, last_used_at
from heart.api_keys
where agent_id = %(agent_id)s and id = %(id)s and revoked_at is null and (expires_at is null or expires_at > now())

-- name: note_use
update heart.api_keys set last_used_at = now() where agent_id = %(agent_id)s and id = %(id)s

-- name: list_keys
select agent_id, id, name, created_at, expires_at, revoked_at, max_trust, may_pin, is_read_only, last_used_at
from heart.api_keys
where agent_id = %(agent_id)s
order by created_at, id

-- name: revoke_key
update heart.api_keys
set revoked_at = coalesce(revoked_at, now())
where agent_id = %(agent_id)s and id = %(id)s
returning agent_id, id, name, created_at, expires_at, revoked_at, max_trust, may_pin, is_read_only, last_used_at
