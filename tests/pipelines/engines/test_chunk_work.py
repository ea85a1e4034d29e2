"""What goes between processes: errors that come through, files that are whole, and the one database of a night."""

from __future__ import annotations

import pickle

import polars as pl
import pytest
from night_runs import snapshot_of

from nous_online.core.errors import InvalidInput, NousError, Refused, Unavailable
from nous_pipelines.engines.engine import picklable_error
from nous_pipelines.night_policy import NightPolicy
from nous_pipelines.orchestration.chunk_work import ChunkOutput, WorkerDatabase, rows_of_chunk, worker_database
from nous_pipelines.snapshots.agent_chunks import CHUNK_ROWS, Chunk, chunked, rows_at_once


class Unsendable(NousError):
    """An error whose pickle lacks what it is made of."""

    def __init__(self, message: str, _space: object) -> None:
        super().__init__(message)

    def __reduce__(self):
        return Unsendable, self.args  # as by default, which Dask changes for all errors once it is loaded


@pytest.mark.parametrize(
    ("error", "kind", "said"),
    [
        (InvalidInput("no, yes"), InvalidInput, "no, yes"),
        (pl.exceptions.ShapeError("widths 2 and 3"), pl.exceptions.ShapeError, "widths 2 and 3"),
        (Unsendable("moved", object()), Unavailable, "moved"),
    ],
)
def test_an_error_says_in_another_process_what_it_said_in_its_own(error, kind, said):
    arrived = pickle.loads(pickle.dumps(picklable_error(error)))  # noqa: S301 (our own bytes)

    assert (type(arrived), str(arrived)) == (kind, said)


def test_an_error_that_nobody_foresaw_brings_along_where_it_was_raised():
    def fail() -> None:
        raise KeyError("agent")

    with pytest.raises(KeyError) as raised:
        fail()

    arrived = pickle.loads(pickle.dumps(picklable_error(raised.value)))  # noqa: S301 (our own bytes)
    assert 'raise KeyError("agent")' in arrived.__notes__[0]


def test_several_workers_get_chunks_enough_for_all_and_one_gets_what_fits_in_memory():
    sizes = {f"agent-{number:02}": 100 for number in range(40)}

    assert len(list(chunked(list(sizes), sizes, most=rows_at_once(4_000, width=1)))) == 1
    assert len(list(chunked(list(sizes), sizes, most=rows_at_once(4_000, width=2)))) == 8
    assert rows_at_once(0, width=2) == 1
    assert rows_at_once(10**9, width=100) == CHUNK_ROWS


def test_tables_that_travel_as_files_come_back_as_they_were(tmp_path):
    table = pl.DataFrame({"agent_id": ["aria", "ben"], "embedding": [[1.0], None]}, schema_overrides={
        "embedding": pl.List(pl.Float32)
    })  # fmt: skip

    written = ChunkOutput({"pairs": table}, 3).write(tmp_path / "run" / "step")

    assert written.value == 3
    assert written.read().table("pairs").equals(table)
    assert [path.suffix for path in (tmp_path / "run").iterdir()] == [".part"]
    with pytest.raises(Unavailable, match=r"all workers need the folder of the snapshots under the same path$"):
        ChunkOutput({"pairs": tmp_path / "elsewhere.part"}).table("pairs")


def test_a_worker_reads_of_a_file_what_its_agents_have_and_names_one_that_is_missing(night_database, tmp_path):
    chunk = Chunk(snapshot_of(night_database, tmp_path), NightPolicy(), ("ben",))
    pl.DataFrame({"agent_id": ["aria", "ben"], "place": [1, 2]}).write_parquet(tmp_path / "gathered.part")

    assert rows_of_chunk(tmp_path / "gathered.part", "gathered", ["place"], chunk)["place"].to_list() == [2]
    with pytest.raises(Unavailable, match=r"absent\.parquet can't be read"):
        rows_of_chunk(tmp_path / "absent.parquet", "gathered", None, chunk)


def test_a_worker_that_was_told_another_database_is_refused(night_database, database_url, tmp_path):
    chunk = Chunk(snapshot_of(night_database, tmp_path), NightPolicy(), ("aria",))

    with (
        pytest.raises(Refused, match=r"^a worker opened database .+, but the night is of database "),
        worker_database(WorkerDatabase(database_url), chunk),
    ):
        pass
