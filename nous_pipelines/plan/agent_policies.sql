-- name: read_policy
select policy from lifecycle.agent_policies where agent_id = %(agent_id)s

-- name: store_policy
insert into lifecycle.agent_policies (agent_id, policy) values (%(agent_id)s, %(policy)s)
on conflict (agent_id) do update set policy = excluded.policy, updated_at = now()
