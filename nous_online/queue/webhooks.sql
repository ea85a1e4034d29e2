-- name: add_webhook
insert into heart.webhooks (agent_id, url, names, secret, allows_private)
values (%(agent_id)s, %(url)s, %(names)s, %(secret)s, %(allows_private)s)
returning id, url, names, allows_private, created_at, 0 as failed_count, null::text as last_error, null::timestamptz as retry_at

-- name: count_webhooks
select count(*) from heart.webhooks where agent_id = %(agent_id)s

-- name: list_webhooks
-- Each with how its delivery stands: what failed last is told only while it still fails.
select w.id, w.url, w.names, w.allows_private, w.created_at, coalesce(c.failed_count, 0) as failed_count,
       case when c.failed_count > 0 then c.last_error end as last_error,
       case when c.failed_count > 0 then c.retry_at end as retry_at
from heart.webhooks w
left join heart.outbox_cursors c on c.agent_id = w.agent_id and c.consumer = 'webhook:' || w.id
where w.agent_id = %(agent_id)s
order by w.created_at, w.id

-- name: find_secrets
select id, secret from heart.webhooks where agent_id = %(agent_id)s

-- name: remove_webhook
delete from heart.webhooks where agent_id = %(agent_id)s and id = %(id)s
returning id
