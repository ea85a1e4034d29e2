import json
import math
import os
import threading
from datetime import UTC, date, datetime
from uuid import UUID
from zlib import crc32

import numpy as np
import polars as pl
import pytest

from nous_online.core.errors import DeadlineExceeded, InvalidInput, Unavailable
from nous_online.database.connection import Database
from nous_pipelines.phases.incremental_join import vector_matrix
from nous_pipelines.snapshots import copy_binary
from nous_pipelines.snapshots.copy_binary import (
    ROW_GROUP_SIZE,
    FlushedFile,
    prefetched,
    read_parts,
    read_rows,
    write_parquet_as_read,
    write_parquet_atomically,
)
from nous_pipelines.snapshots.known_facts import COUNTS
from nous_pipelines.snapshots.snapshot import take_snapshot

IDS = [str(UUID(int=number << 100 | number)) for number in range(1, 6)]
NIGHT = date(2026, 6, 1)
ODD_FACTS = [  # place in the order of ids, agent, content, subject, tags, confidence, sources, censors, vector
    (
        3,
        "aria",
        'Zürich, "quoted"\n\\ 漢字 🜚',
        "",
        ["a, b", 'c"d', "e\nf", "ü"],
        0.1,
        '["x\\"y", "é"]',
        None,
        "[1,0.5]",
    ),
    (1, "borea", "\\.", None, [], 1 / 3, "[]", "[]", None),
    (5, "aria", "NULL", "NULL", ["NULL", ""], 1e-7, '["a/b", "\\u0007"]', '["c,1"]', "[0.1,3e-38,7]"),
    (2, "aria", " spaces ", "s", ["{}"], 1.0, "[]", None, "[1,2,3]"),
    (4, "borea", "'; drop table heart.facts; --", "東京", ["a"], 0.7, '["s"]', '["c", "d"]', "[4]"),
]


@pytest.fixture
def memories(owner):
    """A table of vectors: two of width 3, one missing, one of width 2, one more of width 3."""
    owner.execute("create table memories (id uuid, row_version bigint, embedding vector)")
    vectors = ["[1,0.5,-0.25]", "[0,0.1,3e-38]", None, "[7,8]", "[1,2,3]"]
    for number, (memory, vector) in enumerate(zip(IDS, vectors, strict=True)):
        owner.execute("insert into memories values (%s, %s, %s)", [memory, number * 10**12, vector])
    return owner


def test_reads_ids_versions_and_vectors_of_any_width_and_none(memories):
    table = read_rows(memories, "select * from memories order by id", {})

    assert table.schema == {"id": pl.String, "row_version": pl.Int64, "embedding": pl.List(pl.Float32)}
    assert table["id"].to_list() == IDS
    assert table["row_version"].to_list() == [0, 10**12, 2 * 10**12, 3 * 10**12, 4 * 10**12]
    assert table["embedding"].to_list()[0] == [1.0, 0.5, -0.25]
    assert table["embedding"].to_list()[2:] == [None, [7.0, 8.0], [1.0, 2.0, 3.0]]
    assert np.array_equal(table["embedding"].to_list()[1], np.array([0, 0.1, 3e-38], dtype=np.float32))


def test_batches_of_any_size_give_the_same_table(memories, monkeypatch):
    whole = read_rows(memories, "select * from memories order by id", {})

    monkeypatch.setattr(copy_binary, "PARSED_AT_ONCE", 1)

    assert read_rows(memories, "select * from memories order by id", {}).equals(whole)


def test_reads_nulls_in_every_column(memories):
    table = read_rows(memories, "select null::uuid, null::bigint, null::vector", {})

    assert table.rows() == [(None, None, None)]


def test_reads_no_rows_as_an_empty_table_of_the_same_schema(memories):
    table = read_rows(memories, "select * from memories where false", {})

    assert table.rows() == []
    assert table.schema == {"id": pl.String, "row_version": pl.Int64, "embedding": pl.List(pl.Float32)}


def test_parameters_reach_the_query(memories):
    query = "select id from memories where row_version = %(version)s"

    table = read_rows(memories, query, {"version": 10**12})

    assert table["id"].to_list() == [IDS[1]]


def test_reads_every_type_of_a_memory_as_it_is_stored(owner):
    query = """
        select * from (values
            ('Zürich, "quoted"\n\\ 漢字', 7::int2, -8::int4, 9::int8, 0.1::real, 0.1::float8, true,
             '2026-03-01 12:00:00.000001+02'::timestamptz, '{"a": [1]}'::jsonb, '[2]'::json),
            ('', 0, 0, 0, 'nan', 'infinity', false, '1969-12-31 23:59:59+00', '[]', '{}'),
            (null, null, null, null, null, null, null, null, null, null)
        ) as drawn(content, trust, position, row_version, confidence, cost, is_pinned, learned_at, sources, detail)
    """

    first, second, third = read_rows(owner, query, {}).rows()

    learned_at = datetime(2026, 3, 1, 10, 0, 0, 1, tzinfo=UTC)
    tenth = float(np.float32(0.1))
    text = 'Zürich, "quoted"\n\\ 漢字'
    assert first == (text, 7, -8, 9, tenth, 0.1, True, learned_at, '{"a": [1]}', "[2]")
    assert second[:4] == ("", 0, 0, 0)
    assert math.isnan(second[4])
    assert second[5:8] == (math.inf, False, datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC))
    assert third == (None,) * 10


def test_a_text_that_all_rows_share_is_read_for_each_of_them(memories):
    table = read_rows(memories, "select 'aria'::text as agent_id from memories", {})

    assert table["agent_id"].to_list() == ["aria"] * 5


def test_refuses_a_column_of_a_type_it_does_not_know(memories):
    with pytest.raises(InvalidInput, match=r"can't read tags \(text\[\]\).*cast it to one of uuid, text"):
        read_rows(memories, "select array['tea']::text[] as tags", {})


def test_refuses_a_stream_whose_messages_are_not_rows(memories, monkeypatch):
    whole = copy_binary._batches

    def merged(messages):
        return whole([b"".join(messages)])

    monkeypatch.setattr(copy_binary, "_batches", merged)
    with pytest.raises(Unavailable, match="one row a message"):
        read_rows(memories, "select id from memories", {})


def test_vectors_of_one_width_become_a_matrix(memories):
    query = "select embedding from memories where vector_dims(embedding) = 3 order by id"

    matrix = vector_matrix(read_rows(memories, query, {})["embedding"])

    assert matrix.dtype == np.float32
    assert matrix[[0, 2]].tolist() == [[1.0, 0.5, -0.25], [1.0, 2.0, 3.0]]


@pytest.mark.parametrize("vectors", [[[1.0], [1.0, 2.0]], [[1.0], None]])
def test_refuses_a_matrix_of_vectors_that_differ_in_width_or_are_missing(vectors):
    with pytest.raises(InvalidInput, match="expected vectors of one width"):
        vector_matrix(pl.Series(vectors, dtype=pl.List(pl.Float32)))


def test_no_vectors_are_an_empty_matrix():
    assert vector_matrix(pl.Series([], dtype=pl.List(pl.Float32))).shape[0] == 0


def test_a_parquet_file_appears_whole_and_alone(tmp_path):
    table = pl.DataFrame({"id": ["a"], "embedding": [[1.0, 2.0]]})

    write_parquet_atomically(table, tmp_path / "facts.parquet")

    assert pl.read_parquet(tmp_path / "facts.parquet").equals(table)
    assert [path.name for path in tmp_path.iterdir()] == ["facts.parquet"]


def test_a_write_that_fails_leaves_the_earlier_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "facts.parquet"
    write_parquet_atomically(pl.DataFrame({"id": ["before"]}), path)

    def full_disk(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space left"):
        write_parquet_atomically(pl.DataFrame({"id": ["after"]}), path)

    assert pl.read_parquet(path)["id"].to_list() == ["before"]
    assert [file.name for file in tmp_path.iterdir()] == ["facts.parquet"]


@pytest.fixture
def odd_store(owner):
    """Facts of two agents that lie out of order, one changed twice since the night, with uses before and after it."""
    owner.execute("set session_replication_role = replica")
    owner.execute("insert into heart.agents (id, embedding_space_id) values ('aria', 'odd'), ('borea', 'odd')")
    for place, *columns in ODD_FACTS:
        owner.execute(
            """insert into heart.facts (id, agent_id, content, subject, tags, confidence, sources, encoded_censors,
                   embedding, embedding_space_id, learned_at)
               values (%s, %s, %s, %s, %s, %s, %s, %s, %s, 'odd', '2026-05-01 09:00:00.000001+00')""",
            [UUID(int=place), *columns],
        )
    owner.execute(
        "update heart.facts set state = 'superseded', superseded_by = %s, superseded_at = '2026-06-05', "
        "succession = 'merged' where id = %s",
        [UUID(int=3), UUID(int=2)],
    )
    for version, moment, before in (
        (1, "2026-06-03", '{"category": "first", "tags": ["x,y", "z"], "confidence": 0.3}'),
        (2, "2026-06-05", '{"category": "second", "state": "active", "superseded_by": null, "superseded_at": null}'),
    ):
        owner.execute(
            """insert into lifecycle.events (agent_id, memory_kind, memory_id, action, from_state, to_state,
                   version_before, version_after, before, actor, reason, effective_at)
               values ('aria', 'fact', %s, 'changed', 'active', 'active', %s, %s, %s, 'agent', 'it was so', %s)""",
            [UUID(int=2), version, version + 1, before, moment],
        )
    owner.execute(
        "insert into heart.usage select agent_id, id, 'fact', 5, 2, 1 from heart.facts where agent_id = 'aria'"
    )
    for moment in ("2026-05-30", "2026-06-04"):
        owner.execute(
            """insert into heart.recalls (agent_id, recalled_at, query, result_limit, query_embedding,
                   embedding_space_id, result_ids, cited_ids, ignored_ids)
               select id, %s, 'what, "now"?', 5, '[1,2]', embedding_space_id, %s, %s, %s
               from heart.agents where id = 'aria'""",
            [moment, [UUID(int=3), UUID(int=5)], [UUID(int=3)], [UUID(int=5)]],
        )
    return owner


@pytest.fixture
def odd_snapshot(odd_store, database_url, tmp_path):
    database = Database(database_url, role="nous_night")
    yield take_snapshot(database, tmp_path / "night", night=NIGHT, probe_days=30)
    database.close()


def test_a_snapshot_says_of_a_fact_what_the_store_says(odd_store, odd_snapshot):
    facts = {row["id"]: row for row in odd_snapshot.table("facts").to_dicts()}

    of_agents = sorted((agent, str(UUID(int=place))) for place, agent, *_ in ODD_FACTS)
    assert list(facts) == [fact_id for _, fact_id in of_agents]
    for place, agent, content, subject, tags, confidence, sources, censors, vector in ODD_FACTS:
        row = facts[str(UUID(int=place))]
        assert (row["agent_id"], row["content"], row["subject"]) == (agent, content, subject)
        assert row["sources"] == json.loads(sources)
        assert row["encoded_censors"] == (json.loads(censors) if censors else None)
        expected = None if vector is None else np.array(json.loads(vector), np.float32).tolist()
        assert row["embedding"] == expected
        assert row["learned_at"] == datetime(2026, 5, 1, 9, 0, 0, 1, tzinfo=UTC)
        if place != 2:
            assert (row["tags"], row["confidence"]) == (tags, float(str(np.float32(confidence))))
            assert (row["is_rewound"], row["state"], row["superseded_by"]) == (False, "active", None)


def test_a_snapshot_takes_back_later_changes_and_uses(odd_snapshot):
    facts = {UUID(row["id"]).int: row for row in odd_snapshot.table("facts").to_dicts()}
    counts = [tuple(facts[place][name] for name in COUNTS) for place in range(1, 6)]

    rewound = facts[2]
    assert (rewound["is_rewound"], rewound["state"], rewound["superseded_by"]) == (True, "active", None)
    assert (rewound["category"], rewound["tags"], rewound["confidence"]) == ("first", ["x,y", "z"], 0.3)
    assert rewound["embedding"] == [1.0, 2.0, 3.0]
    assert counts == [(0, 0, 0), (5, 2, 1), (4, 1, 1), (0, 0, 0), (4, 2, 0)]
    (probe,) = odd_snapshot.table("recalls").to_dicts()
    assert (probe["query"], probe["embedding"]) == ('what, "now"?', [1.0, 2.0])
    assert (probe["result_ids"], probe["cited_ids"]) == ([str(UUID(int=3)), str(UUID(int=5))], [str(UUID(int=3))])


def test_a_snapshot_has_the_same_schema_whatever_lies_in_the_store(odd_snapshot, database_url, owner, tmp_path):
    owner.execute("truncate heart.facts, heart.usage, heart.recalls, lifecycle.events cascade")
    database = Database(database_url, role="nous_night")
    empty = take_snapshot(database, tmp_path / "empty", night=NIGHT, probe_days=30)
    database.close()

    for name in ("facts", "recalls", "undone"):
        assert empty.table(name).schema == odd_snapshot.table(name).schema


def test_an_error_while_reading_comes_through_the_writer(tmp_path):
    def parts():
        yield pl.DataFrame({"id": ["a"]})
        raise DeadlineExceeded("too slow")

    with pytest.raises(DeadlineExceeded, match="too slow"):
        write_parquet_as_read(parts(), pl.Schema({"id": pl.String}), tmp_path / "facts.parquet")


def test_tables_written_as_they_are_read_are_one_table_with_its_checksum(tmp_path):
    parts = [pl.DataFrame({"id": [str(place)], "embedding": [[place / 2]]}) for place in range(20)]

    checksum = write_parquet_as_read(parts, parts[0].schema, tmp_path / "facts.parquet")

    assert pl.read_parquet(tmp_path / "facts.parquet").equals(pl.concat(parts))
    assert checksum == crc32((tmp_path / "facts.parquet").read_bytes())


def test_a_file_is_flushed_while_it_is_written_and_a_flush_that_fails_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(copy_binary, "FLUSHED_AT_ONCE", 8)
    sizes = []

    def worn_disk(number):
        sizes.append(os.fstat(number).st_size)
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", worn_disk)
    file = FlushedFile(tmp_path / "facts.parquet")
    for chunk in (b"12345", b"67890", b"12345"):
        assert file.write(chunk) == len(chunk)

    with pytest.raises(OSError, match="Input/output error"):
        file.close()

    assert len(sizes) == 2
    assert file.checksum == crc32(b"123456789012345")
    assert (tmp_path / "facts.parquet").read_bytes() == b"123456789012345"


def test_the_next_thing_is_taken_while_one_is_used():
    is_taken = [threading.Event() for _ in range(3)]

    def things():
        for number, taken in enumerate(is_taken):
            taken.set()
            yield number

    for number in prefetched(things()):
        assert all(taken.wait(timeout=10) for taken in is_taken[: number + 2])


def test_what_is_raised_while_taking_ahead_comes_through_in_its_turn():
    def things():
        yield "row"
        raise DeadlineExceeded("too slow")

    taken = prefetched(things())

    assert next(taken) == "row"
    with pytest.raises(DeadlineExceeded, match="too slow"):
        next(taken)


def test_reading_that_is_given_up_leaves_the_connection_usable(memories):
    query = "select * from memories cross join generate_series(1, 100000)"
    parts = read_parts(memories, query, {})
    taken = [len(part) for part, _ in zip(parts, range(3), strict=False)]

    parts.close()

    assert taken == [0, ROW_GROUP_SIZE, ROW_GROUP_SIZE]
    assert memories.execute("select count(*) from memories").fetchone() == (5,)
