-- The caller may say which attribute of which thing a fact is about, such as `ana/home`: then one value at a time is active.
alter table heart.facts add column key text check (char_length(key) between 1 and 200);

-- Checked when a transaction ends: within it the next value is stored before the one it replaces gives way.
alter table heart.facts add constraint one_value_of_a_key
    exclude using btree (
        agent_id with =, key with =, scope with =, (coalesce(user_id, '')) with =, (coalesce(project_id, '')) with =)
    where (state = 'active' and key is not null) deferrable initially deferred;
