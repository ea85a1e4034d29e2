-- name: parse
-- The statement as a tree, from the parser that will run it.
select json_serialize_sql(?)

-- name: limit
-- How much memory a query takes before it spills, and where to; moments are told in UTC.
set memory_limit = {memory};
set temp_directory = {spill};
set preserve_insertion_order = false;
set python_enable_replacements = false;
set TimeZone = 'UTC';

-- name: lock
-- No file but those under `readable`, no extension and no setting, from here on.
set autoinstall_known_extensions = false;
set autoload_known_extensions = false;
set allowed_directories = {readable};
set enable_external_access = false;
set lock_configuration = true;

-- name: plan
explain {query}

-- name: count
select count(*) from ({query}
) counted

-- name: proposals
-- What nights proposed and what became of it, as the database has it now.
select id, agent_id, night, kind, to_json(targets) as targets, state, outcome, reason, evidence::text as evidence,
       changes::text as changes, cost_usd::double precision as cost_usd, decided_at, plan_hash
from lifecycle.proposals
where night between %(first)s and %(last)s and (%(agent_id)s::text is null or agent_id = %(agent_id)s)
order by agent_id, night, id

-- name: compare
-- What differs between two nights: memories that were added, those that left, and those whose state or text changed.
with memories as (
    select night, agent_id, 'fact' as kind, id, state, content as text from facts
    union all
    select night, agent_id, 'episode', id, state, coalesce(detail, summary, compressed, title) from episodes
    union all
    select night, agent_id, 'procedure', id, state, name from procedures
    union all
    select night, agent_id, 'censor', id, state, trigger from censors
),
earlier as (select * from memories where night = $earlier::date),
later as (select * from memories where night = $later::date)
select agent_id, kind, id,
       case when e.id is null then 'added'
            when l.id is null then 'left'
            when e.state is not distinct from l.state then 'text'
            when e.text is not distinct from l.text then 'state'
            else 'state and text' end as change,
       e.state as state_before, l.state as state_after, e.text as text_before, l.text as text_after
from earlier e full join later l using (agent_id, kind, id)
where e.id is null or l.id is null or e.state is distinct from l.state or e.text is distinct from l.text
order by agent_id, kind, change, id
