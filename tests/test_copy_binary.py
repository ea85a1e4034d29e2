import os
from uuid import UUID

import numpy as np
import polars as pl
import pytest

from nous_online.errors import InvalidInput
from nous_pipelines import copy_binary
from nous_pipelines.copy_binary import read_fixed, vector_matrix, write_parquet_atomically

TYPES = {"id": "uuid", "row_version": "bigint", "embedding": "vector"}
IDS = [str(UUID(int=number << 100 | number)) for number in range(1, 6)]


@pytest.fixture
def memories(owner):
    """A table of vectors: two of width 3, one missing, one of width 2, one more of width 3."""
    owner.execute("create table memories (id uuid, row_version bigint, embedding vector)")
    vectors = ["[1,0.5,-0.25]", "[0,0.1,3e-38]", None, "[7,8]", "[1,2,3]"]
    for number, (memory, vector) in enumerate(zip(IDS, vectors, strict=True)):
        owner.execute("insert into memories values (%s, %s, %s)", [memory, number * 10**12, vector])
    return owner


def test_reads_ids_versions_and_vectors_of_any_width_and_none(memories):
    table = read_fixed(memories, "select * from memories order by id", {}, types=TYPES)

    assert table.schema == {"id": pl.String, "row_version": pl.Int64, "embedding": pl.List(pl.Float32)}
    assert table["id"].to_list() == IDS
    assert table["row_version"].to_list() == [0, 10**12, 2 * 10**12, 3 * 10**12, 4 * 10**12]
    assert table["embedding"].to_list()[0] == [1.0, 0.5, -0.25]
    assert table["embedding"].to_list()[2:] == [None, [7.0, 8.0], [1.0, 2.0, 3.0]]
    assert np.array_equal(table["embedding"].to_list()[1], np.array([0, 0.1, 3e-38], dtype=np.float32))


def test_rows_cut_anywhere_by_the_stream_are_put_together_again(memories, monkeypatch):
    whole = read_fixed(memories, "select * from memories order by id", {}, types=TYPES)

    monkeypatch.setattr(copy_binary, "PARSED_AT_ONCE", 1)

    assert read_fixed(memories, "select * from memories order by id", {}, types=TYPES).equals(whole)


def test_reads_nulls_in_every_column(memories):
    table = read_fixed(memories, "select null::uuid, null::bigint, null::vector", {}, types=TYPES)

    assert table.rows() == [(None, None, None)]


def test_reads_no_rows_as_an_empty_table_of_the_same_schema(memories):
    table = read_fixed(memories, "select * from memories where false", {}, types=TYPES)

    assert table.rows() == []
    assert table.schema == {"id": pl.String, "row_version": pl.Int64, "embedding": pl.List(pl.Float32)}


def test_parameters_reach_the_query(memories):
    query = "select id from memories where row_version = %(version)s"

    table = read_fixed(memories, query, {"version": 10**12}, types={"id": "uuid"})

    assert table["id"].to_list() == [IDS[1]]


def test_refuses_a_query_with_other_columns_than_named(memories):
    with pytest.raises(InvalidInput, match="the query has 2 columns, expected 3: id, row_version, embedding"):
        read_fixed(memories, "select id, row_version from memories", {}, types=TYPES)


def test_refuses_a_column_of_another_type_than_named(memories):
    with pytest.raises(InvalidInput, match="row_version is sent in 4 bytes, expected a bigint"):
        read_fixed(memories, "select 1::int", {}, types={"row_version": "bigint"})


def test_vectors_of_one_width_become_a_matrix(memories):
    query = "select embedding from memories where vector_dims(embedding) = 3 order by id"

    matrix = vector_matrix(read_fixed(memories, query, {}, types={"embedding": "vector"})["embedding"])

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
