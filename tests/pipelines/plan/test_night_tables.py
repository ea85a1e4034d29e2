"""SQL over drawn nights: what it may read, what it may not, and what is copied for it."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, cast

import duckdb
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from turns import in_turn

from nous_online.core.errors import InvalidInput, NotFound
from nous_online.database.connection import Database
from nous_pipelines.plan.night_tables import NightQuery, QueryScope, parsed_query, run_query, stored_nights
from nous_pipelines.snapshots.parts import checksum
from nous_pipelines.snapshots.snapshot import FORMAT, UNDIVIDED

NO_DATABASE = cast("Database", None)
"""Only `proposals` are read from one."""
SAID = datetime(2026, 5, 1, 9, tzinfo=UTC)
QUESTIONS = (
    "select night, count(*) from facts group by all order by all",
    "select count(*) from facts",
    "from facts order by night, id",
    "select * exclude (content) from facts order by all",
    "select f from facts f order by all",
    "select facts from facts order by all",
    "select columns('c.*|night') from facts order by all",
    "select count(*) from facts where columns('content|state') = 'active'",
    "select ID, Night from FACTS order by all",
    "with t as (select id, content from facts) select * from t order by all",
    "with facts as (from facts) select * from facts order by all",
    "select a.id from facts a natural join facts b order by all",
    "select x from facts as f(x, y, z) order by all",
    "from (select state from facts) order by all",
    "select a.content from facts a join facts b using (id, night) order by all",
    "select id from facts where state in (select state from facts where content like 'a%') order by all",
    "select (select max(content) from facts b where b.id = a.id) from facts a order by all",
    "select content from facts union all by name select id from facts order by all",
    "from facts pivot (count(*) for state in ('active', 'archived')) order by all",
    "from facts unpivot (value for name in (content, state)) order by all",
    "select id, lag(state) over (partition by id order by night) from facts order by all",
    "select list_transform(list(content order by content), lambda each: upper(each)) from facts",
    "select unnest(tags) as tag from facts order by all",
    "select tag from facts, unnest(facts.tags) as t(tag) order by all",
    "describe facts",
    "summarize facts",
    "select exists(from facts)",
    "select distinct on (id) id, content from facts order by id, night",
    "select struct_pack(a := content, b := learned_at) from facts order by all",
    "select #1 from facts order by all",
    "(select content from facts limit 1000) order by all",
    "select night from facts order by all -- and no more",
    "select night from facts order by all;",
)


def draw(root: Path, night: str, facts: pl.DataFrame, **changes: Any) -> Path:
    """Lay a snapshot of facts alone down, as a night does."""
    folder = root / f"night={night}"
    folder.mkdir(parents=True)
    facts.write_parquet(folder / "facts.parquet")
    described = {
        "format": UNDIVIDED, "night": night, "taken_at": "2026-12-01T00:00:00+00:00", "counts": {"facts": len(facts)},
        "checksums": {"facts": checksum(folder / "facts.parquet")},
    }  # fmt: skip
    (folder / "snapshot.json").write_text(json.dumps(described | changes))
    return folder


def drawn(*agents: str) -> pl.DataFrame:
    return pl.DataFrame({
        "id": [f"f{place}" for place in range(len(agents))],
        "agent_id": agents,
        "content": [f"{agent} says {place}" for place, agent in enumerate(agents)],
        "state": ["active", "archived", "superseded"][: len(agents)],
        "learned_at": [SAID] * len(agents),
        "tags": [["one", "two"]] * len(agents),
    })  # fmt: skip


def ask(root: Path, sql: str, *, agent: str | None = None, memory: str = "1GB", **bounds: date) -> list[Any]:
    return ask_parsed(root, parsed_query(sql), agent=agent, memory=memory, **bounds)


def ask_parsed(
    root: Path, query: NightQuery, *, agent: str | None = None, memory: str = "1GB", **bounds: date
) -> list[Any]:
    nights = stored_nights(root, query.tables, **bounds)
    with run_query(query, nights, NO_DATABASE, QueryScope(agent, memory)) as answer:
        return list(answer.rows)


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    """Two nights of one agent."""
    root = tmp_path_factory.mktemp("one")
    draw(root, "2026-06-01", drawn("ada", "ada"))
    draw(root, "2026-06-02", drawn("ada", "ada", "ada"))
    return root


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """A night of two agents, of whom one keeps a secret."""
    root = tmp_path_factory.mktemp("two")
    draw(root, "2026-06-01", drawn("ada", "ben"))
    return root


@pytest.fixture(scope="module")
def files_themselves(one):
    """An engine that nothing limits, which reads the files of all nights."""
    with duckdb.connect() as engine:
        rows = f"read_parquet('{one}/*/facts.parquet', union_by_name = true, hive_partitioning = true)"
        engine.execute(f"create view facts as select night, * exclude (night) from {rows}")  # noqa: S608 (of our own)
        yield engine


@pytest.mark.parametrize("sql", in_turn(QUESTIONS, of=2))
def test_an_agents_copied_rows_answer_as_the_files_themselves_do(one, files_themselves, sql):
    assert ask(one, sql, agent="ada") == files_themselves.execute(sql).fetchall()


def test_for_all_agents_the_files_themselves_answer(one, files_themselves):
    for sql in QUESTIONS[::8]:
        assert ask(one, sql) == files_themselves.execute(sql).fetchall()


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        ("select count(*) from facts", ["night"]),
        ("select Content from facts f", ["night", "content"]),
        ("with t as (select id from facts) from t", ["night", "id"]),
        ("select f.* from facts f", ["night", "id", "content", "embedding"]),
    ],
)
def test_only_columns_that_are_named_are_copied(sql, columns):
    assert parsed_query(sql).columns_of("facts", ["night", "id", "content", "embedding"]) == columns


@pytest.mark.parametrize(
    "sql",
    [
        "from facts",
        "select content from facts where agent_id <> 'ada' or true",
        "with f as (select * from facts) select * from f union all from main.facts",
        "select error(content) from facts where agent_id = 'ben'",
        "select try_cast(content as integer) from facts where content like '%ben%'",
    ],
)
def test_no_query_sees_the_rows_of_another_agent(two, sql):
    assert "ben" not in repr(ask(two, sql, agent="ada"))


def test_an_error_cannot_tell_what_another_agent_holds(two):
    assert ask(two, "select case when content like 'ben%' then error(content) end from facts", agent="ada") == [(None,)]


def test_an_agent_whose_name_holds_a_quote_is_only_itself(tmp_path):
    draw(tmp_path, "2026-06-01", drawn("o'ada", "' or '' = '"))

    assert ask(tmp_path, "select agent_id from facts", agent="o'ada") == [("o'ada",)]
    assert ask(tmp_path, "select agent_id from facts", agent="' or '' = '") == [("' or '' = '",)]
    assert ask(tmp_path, "select agent_id from facts", agent="x' or true --") == []


WAYS_OUT = (
    "from read_parquet('{file}')",
    "from '{file}'",
    'from "{file}"',
    'from main."{file}"',
    'select b.* from (with "{file}" as (select 1) from "{file}") a, \'{file}\' b',
    "from parquet_scan(['{file}'])",
    "from read_text('{file}')",
    "from read_blob('/etc/passwd')",
    "from read_csv('/etc/passwd')",
    "from glob('/etc/*')",
    "from parquet_metadata('{file}')",
    "from query('from facts')",
    "from query_table('facts')",
    "from json_execute_serialized_sql(json_serialize_sql('select 1'))",
    "select * from (select * from read_json('{file}'))",
    "select (select content from read_parquet('{file}') limit 1)",
    "select getenv('HOME')",
    "select * from duckdb_settings()",
    "from duckdb_views",
    "from information_schema.tables",
    "from sqlite_master",
    "show tables",
    "copy facts to '{file}.csv'",
    "copy (from facts) to '/dev/stdout'",
    "export database '{file}.d'",
    "attach '{file}.db'",
    "install httpfs",
    "load httpfs",
    "set enable_external_access = true",
    "reset allowed_directories",
    "pragma database_list",
    "pragma enable_profiling",
    "call pragma_version()",
    "explain analyze copy facts to '{file}.csv'",
    "create table t as from facts",
    "create macro m() as table from facts",
    "insert into facts from facts",
    "with gone as (delete from facts returning *) from gone",
    "with more as (insert into facts from facts returning *) from more",
    "begin",
    "checkpoint",
    "prepare p as from facts",
    "execute p",
    "select 1; from facts",
    "use main",
    "vacuum",
    "",
    "  -- nothing",
)


@pytest.mark.parametrize("sql", WAYS_OUT)
def test_every_way_out_is_refused(two, sql):
    file = two / "night=2026-06-01" / "facts.parquet"
    before = sorted(two.rglob("*"))

    refused = refusals(two, sql.format(file=file))

    assert refused
    assert "ben says" not in repr(refused)
    assert sorted(two.rglob("*")) == before


def refusals(root: Path, sql: str) -> list[str]:
    """Return why a query is refused: as soon as it is read, else when it is asked for an agent and for all."""
    try:
        query = parsed_query(sql)
    except InvalidInput as error:
        return [str(error)]
    refused: list[str] = []
    for agent in ("ada", None):
        with pytest.raises(InvalidInput) as error:
            ask_parsed(root, query, agent=agent)
        refused.append(str(error.value))
    return refused


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("from fact", "there is no table 'fact' (did you mean 'facts'?): `nous query` lists all"),
        ("select contnt from facts", 'Candidate bindings: "content"'),
        ("selekt 1", "syntax error"),
        (
            "copy facts to 'x'",
            "expected one statement that reads (SELECT, FROM, WITH, VALUES, DESCRIBE, SUMMARIZE), got COPY",
        ),
        ("from read_csv('x')", "read_csv() can't be read from"),
        ("select content::integer from facts", "Could not convert string"),
        ("select $who", "Values were not provided"),
    ],
)
def test_an_error_says_what_to_do(two, sql, message):
    with pytest.raises(InvalidInput) as refused:
        ask(two, sql, agent="ada")

    assert message in str(refused.value)
    assert "LINE 1" not in str(refused.value)


def test_a_query_that_cannot_be_answered_copies_nothing(two):
    with pytest.raises(InvalidInput, match="not found"):
        ask(two, "select nothing_such from facts", agent="ada")

    assert [path.name for path in two.iterdir()] == ["night=2026-06-01"]


def test_columns_of_nights_of_several_versions_are_united_by_name(tmp_path):
    draw(tmp_path, "2026-06-01", drawn("ada").drop("tags"), format=UNDIVIDED - 1)
    draw(tmp_path, "2026-06-02", drawn("ada"))

    assert ask(tmp_path, "select night, tags from facts order by all", agent="ada") == [
        (date(2026, 6, 1), None),
        (date(2026, 6, 2), ["one", "two"]),
    ]


def test_a_night_that_is_not_whole_is_left_out_and_named(tmp_path):
    draw(tmp_path, "2026-06-01", drawn("ada"))
    (draw(tmp_path, "2026-06-02", drawn("ada")) / "facts.parquet").write_bytes(b"PAR1 cut off")
    (draw(tmp_path, "2026-06-03", drawn("ada")) / "facts.parquet").unlink()
    (draw(tmp_path, "2026-06-04", drawn("ada")) / "snapshot.json").write_text("{")
    draw(tmp_path, "2026-06-05", drawn("ada"), format=FORMAT + 1)
    draw(tmp_path, "2026-06-06", drawn("ada"), counts={"facts": 2})
    (tmp_path / "night=2026-06-07").mkdir()
    draw(tmp_path, "2026-06-08.taken-20260609T000000", drawn("ada"))

    nights = stored_nights(tmp_path, ["facts"])

    assert nights.nights == (date(2026, 6, 1),)
    assert [night.day for night in nights.left_out] == [2, 3, 4, 5, 6, 7]
    for why, part in zip(
        nights.left_out.values(),
        (
            "facts.parquet can't be read",
            "facts.parquet can't be read",
            "damaged",
            "newer",
            "1 rows, not 2",
            "never finished",
        ),
        strict=True,
    ):
        assert part in why
    assert ask(tmp_path, "select count(*) from facts", agent="ada") == [(1,)]


def test_a_damaged_table_that_is_not_asked_for_leaves_no_night_out(tmp_path):
    (draw(tmp_path, "2026-06-01", drawn("ada", "ada")) / "links.parquet").write_bytes(b"cut off")

    assert len(ask(tmp_path, "from facts", agent="ada")) == 2


def test_nights_are_those_that_are_asked_for(one):
    assert ask(one, "select distinct night from facts", agent="ada", first=date(2026, 6, 2)) == [(date(2026, 6, 2),)]


def test_a_table_that_no_night_has_is_not_found(one):
    with pytest.raises(NotFound, match="'judgements'"):
        ask(one, "from judgements", agent="ada")


@pytest.mark.parametrize("agent", ["ada", None])
def test_a_query_larger_than_its_memory_spills_and_leaves_nothing_behind(one, agent):
    texts = "select md5(range::varchar) as text from range(600_000) order by text limit 560_000"
    sql = f"select max(text) > '' from ({texts}) where exists (from facts)"  # noqa: S608 (of our own)

    assert ask(one, sql, agent=agent, memory="32MB") == [(True,)]
    assert [path.name for path in one.iterdir() if "query" in path.name] == []


@pytest.mark.parametrize("memory", ["plenty", "", "1", "-1GB", "1GB'; set threads = 1; --"])
def test_a_size_of_memory_that_is_none_is_refused(one, memory):
    with pytest.raises(InvalidInput, match="such as 512MB"):
        ask(one, "from facts", agent="ada", memory=memory)


def test_too_little_memory_names_the_option(one):
    with pytest.raises(InvalidInput, match="--memory 20MB"):
        ask(one, "select list(repeat(md5(range::varchar), 100)) from range(3_000_000)", agent="ada", memory="20MB")


@given(agents=st.lists(st.sampled_from(["ada", "ben", "o'x"]), min_size=1, max_size=3), nights=st.integers(1, 3))
@settings(max_examples=examples(4), deadline=None)
def test_counts_in_sql_are_those_of_the_snapshots(tmp_path_factory, agents, nights):
    root, table = tmp_path_factory.mktemp("nights"), drawn(*agents)
    for day in range(1, nights + 1):
        draw(root, f"2026-06-{day:02}", table)

    for agent in {*agents}:
        own = len(table.filter(agent_id=agent))
        found = ask(root, "select night, count(*) from facts group by all order by all", agent=agent)
        assert found == [(date(2026, 6, day), own) for day in range(1, nights + 1)]
    assert ask(root, "select count(*) from facts") == [(nights * len(table),)]
