"""What Dagster draws is what happens: an asset depends on those whose files it reads, all of them and no others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import polars as pl
import pytest
from night_runs import NIGHT, options, remember

from nous_pipelines.orchestration.chunk_work import EPISODE_SUMMARIES
from nous_pipelines.orchestration.code_location import ASSETS, defs
from nous_pipelines.orchestration.dagster_classes import unrecorded
from nous_pipelines.orchestration.night_assets import CHANGING, NIGHTS, phase_asset, sources_of
from nous_pipelines.orchestration.running import run_night
from nous_pipelines.phases.phase_table import NIGHT_TABLES, PHASES
from nous_pipelines.plan.night_files import NightFiles
from nous_pipelines.snapshots.agent_chunks import FactReader
from nous_pipelines.snapshots.parts import SnapshotPart
from nous_pipelines.snapshots.snapshot import Snapshot

OF_NO_ASSET = {"compared", "judged_by", "kept", "finished"}
"""What an earlier night, or an earlier run of this one, left to be quicker by: without it the outcome is the same."""
MADE_BY = {
    "copies": "neighbours",
    "collected": "judgements",
    "account": "plan",
    "checks": "plan",
    "put_off": "judge_batches",
}
"""The asset a file is of, where it has another name."""
UNASKED = {"judge_requests": {"snapshot", "neighbours", "judgements"}, "judge_batches": {"snapshot", "neighbours"}}
"""What is read only where a language model is named."""
BY_DATABASE = {"word_statistics": {"applied"}, "judge_batches": {"judge_requests"}}
"""What an asset waits for although it reads no file of it: what it does to the database."""
BY_CHUNKS = {"duplicate_clusters": {"snapshot"}}
"""What only says of which agents an asset reads the rows; they are divided once for all steps, by the first."""


def declared(name: str) -> set[str]:
    """Return the assets of the same night that an asset depends on, as Dagster has it."""
    return {key.to_user_string() for key in defs.resolve_asset_graph().get(dg.AssetKey(name)).parent_keys} - {name}


def assets_of(paths: Iterator[Path]) -> set[str]:
    """Return the assets that wrote these files of a night."""
    names = {"snapshot" if path.parent.name.startswith(("night=", "part=")) else path.stem for path in paths}
    return {MADE_BY.get(name, name) for name in names - OF_NO_ASSET}


@pytest.fixture
def read(heart, database_url, tmp_path, monkeypatch) -> dict[str, set[str]]:
    """Return, for each asset of a night that ran, the assets whose files it opened."""
    remember(heart, *["Cats like fish.", "The office opens at nine."] * 2)
    opened, found = list[Path](), dict[str, set[str]]()

    def noting(function, path):
        def noted(*arguments, **options):
            opened.append(Path(path(arguments)))
            return function(*arguments, **options)

        return noted

    for name in ("read_parquet", "scan_parquet"):
        monkeypatch.setattr(pl, name, noting(getattr(pl, name), lambda arguments: arguments[0]))
    monkeypatch.setattr(Path, "read_text", noting(Path.read_text, lambda arguments: arguments[0]))
    known = noting(NightFiles._read_value, lambda arguments: arguments[0].folder / f"{arguments[1]}.json")
    monkeypatch.setattr(NightFiles, "_read_value", known)  # what this process has written is not parsed again
    placed = noting(Snapshot.sizes, lambda arguments: arguments[0].folder / "placed.parquet")  # opened once a process
    monkeypatch.setattr(Snapshot, "sizes", placed)
    held = noting(FactReader.read, lambda arguments: arguments[1].folder / "placed.parquet")  # each column once a night
    monkeypatch.setattr(FactReader, "read", held)
    looked = noting(SnapshotPart.has_rows, lambda arguments: arguments[0].file(arguments[1]))  # a table may be empty
    monkeypatch.setattr(SnapshotPart, "has_rows", looked)

    def tell(step: str) -> None:
        ours = [path for path in opened if any(part.startswith(("night=", "part=")) for part in path.parts)]
        found[step] = assets_of(path for path in ours if path.name not in {"snapshot.json", "part.json"})
        opened.clear()

    with unrecorded() as instance:
        assert run_night(NIGHT, options(database_url, tmp_path), instance=instance, tell=tell).is_success
    return found


def test_every_asset_reads_what_it_depends_on_and_nothing_else(read):
    names = [asset.key.to_user_string() for asset in ASSETS if asset.key != dg.AssetKey("snapshot")]

    besides = [UNASKED, BY_DATABASE, BY_CHUNKS]

    assert {name: read[name].union(*(others.get(name, set()) for others in besides)) - {name} for name in names} == {
        name: declared(name) for name in names
    }


def test_assets_keep_their_names():
    assert {asset.key.to_user_string() for asset in ASSETS} == {
        *("snapshot", "neighbours", "judgements", "duplicate_clusters", "merge_proposals", "update_proposals"),
        *("shared_proposals", "episode_summaries", "episode_tiers", "usage_ranks", "rank_proposals"),
        *("forgetting_proposals", "censor_proposals", "procedure_proposals", "link_proposals", "plan"),
        *("judge_requests", "judge_batches", "applied", "word_statistics", "report"),
    }


@pytest.mark.parametrize("step", [*NIGHT_TABLES, EPISODE_SUMMARIES, *PHASES], ids=lambda step: step.name)
def test_a_row_of_the_table_says_what_its_asset_depends_on(step):
    assert declared(step.name) == set(sources_of(step.reads))


@pytest.mark.parametrize("phase", PHASES, ids=lambda phase: phase.name)
def test_a_phase_waits_for_the_judge_only_if_it_reads_judgements(phase):
    graph = defs.resolve_asset_graph()
    above = {key.to_user_string() for key in graph.get_ancestor_asset_keys(dg.AssetKey(phase.name))}

    assert ("judgements" in above) == ("judgements" in phase.reads)


def test_an_asset_of_a_phase_is_partitioned_by_night_and_says_which_columns_it_reads():
    (asset,) = [phase_asset(phase) for phase in PHASES if phase.name == "censor_proposals"]

    said = asset.metadata_by_key[asset.key]["reads"].value

    assert asset.partitions_def == NIGHTS
    assert said["undone"] is None
    assert {"severity", "trust"} <= set(said["censors"])


def test_what_changes_tonight_is_told_of_every_phase_but_the_one_that_asks():
    assert {*CHANGING, "link_proposals"} == {phase.name for phase in PHASES}
