-- name: write_event
insert into heart.outbox (agent_id, name, memory_id, payload)
values (%(agent_id)s, %(name)s, %(memory_id)s, %(payload)s)
