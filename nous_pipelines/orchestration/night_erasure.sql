-- name: has_table
select to_regclass(%(table)s) is not null

-- name: read_texts
-- A page of the texts Dagster keeps in one column.
select id, {column} as text from {table} where id > %(after)s and {column} is not null order by id limit %(limit)s

-- name: write_text
update {table} set {column} = %(text)s where id = %(id)s

-- name: vacuum
-- Deletes the old versions of the rows that were rewritten.
vacuum (analyze) {table}
