"""What earlier nights left beside their snapshots for a later one to build on; what can not be trusted is left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from nous_online.core.errors import Unavailable
from nous_online.language.pairs.judging import Judge
from nous_pipelines.phases.asking import VERDICTS
from nous_pipelines.phases.compared import NOTHING, PAIRS, ROWS, Compared
from nous_pipelines.plan.night_files import NightFiles
from nous_pipelines.snapshots.parts import checksum

FORMAT = 2
"""Counts how `Compared` is meant; what an older version of the code wrote is not read."""
COMPARED = {"compared_rows": ROWS, "compared_pairs": PAIRS}


def write_compared(files: NightFiles, parts: Sequence[Compared]) -> None:
    """Keep what was compared, chunk by chunk, beside a night's files; raise `Unavailable` when that is not possible."""
    start, numbered = 0, list[Compared]()
    for part in parts or [NOTHING]:
        numbered.append(part.renumbered(start))
        start += len(part.rows)
    tables = {
        "compared_rows": pl.concat([part.rows for part in numbered]),
        "compared_pairs": pl.concat([part.pairs for part in numbered]),
    }
    checksums = {name: checksum(files.write_table(name, table)) for name, table in tables.items()}
    agent_ids = sorted({agent_id for part in numbered for agent_id in part.rows["agent_id"].unique()})
    files.write_json("compared", {"format": FORMAT, "agents": agent_ids, "checksums": checksums})


def write_judged_by(files: NightFiles, judge: Judge, judgements: Path) -> None:
    """Keep whose verdicts a night's judgements are; raise `Unavailable` when that is not possible."""
    files.write_json("judged_by", {**_named(judge), "checksums": {"judgements": checksum(judgements)}})


@dataclass(frozen=True)
class Kept:
    """A folder in which a night kept what it compared, and of which agents."""

    folder: Path
    agent_ids: frozenset[str]
    checksums: Mapping[str, str]

    @cached_property
    def is_whole(self) -> bool:
        """Whether its tables are what the night wrote."""
        with suppress(OSError):
            return _are_whole(self.folder, self.checksums)
        return False


def earlier_compared(files: NightFiles) -> list[Kept]:
    """Return what nights, this one included, kept of what they compared, the latest first."""
    return [
        Kept(folder, frozenset(document["agents"]), document["checksums"])
        for folder, document in _documents(files, "compared", {"format": FORMAT})
    ]


def compared_in(nights: Sequence[Kept], agent_ids: Sequence[str]) -> Compared:
    """Return what was compared of each of some agents by the latest night that holds it whole."""
    missing, parts, start = set(agent_ids), list[Compared](), 0
    for kept in nights:
        own = missing & kept.agent_ids
        if own and kept.is_whole:
            part = _compared_of(kept.folder, sorted(own)).renumbered(start)
            start = max([start, *(part.rows["row"].sort().tail(1) + 1)])
            parts, missing = [*parts, part], missing - own
    if not parts:
        return NOTHING
    return Compared(pl.concat([part.rows for part in parts]), pl.concat([part.pairs for part in parts]))


def _compared_of(folder: Path, agent_ids: Sequence[str]) -> Compared:
    rows, pairs = (_own(folder / f"{name}.parquet", agent_ids) for name in COMPARED)
    is_known = rows.schema == pl.Schema(ROWS) and pairs.schema == pl.Schema(PAIRS)
    return Compared(rows, pairs) if is_known else NOTHING


def earlier_verdicts(files: NightFiles, judge: Judge, agent_ids: Sequence[str]) -> pl.DataFrame:
    """Return the verdicts of this judge in the judgements of the latest night, this one included, that it judged."""
    for folder in _trusted(files, "judged_by", _named(judge)):
        table = _own(folder / "judgements.parquet", agent_ids)
        if {*VERDICTS, "model"} <= {*table.columns}:
            own = table.filter(pl.col("model") == judge.name)
            return own.select(list(VERDICTS)).unique(["agent_id", "pair_hash"], keep="first", maintain_order=True)
    return pl.DataFrame(schema=VERDICTS)


def _named(judge: Judge) -> dict[str, str]:
    return {"model": judge.name, "prompt_version": judge.prompt_version}


def _trusted(files: NightFiles, name: str, wanted: Mapping[str, object]) -> Iterator[Path]:
    """Yield the folders, latest night first, whose document has what is wanted and tables with its checksums."""
    for folder, document in _documents(files, name, wanted):
        with suppress(OSError, AttributeError):
            if _are_whole(folder, document["checksums"]):
                yield folder


def _documents(files: NightFiles, name: str, wanted: Mapping[str, object]) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """Yield folder and document, latest night first, of those that have what is wanted, and checksums.

    Dry runs are passed over: their policy may have been a trial.
    """
    night = files.folder.parent
    nights = sorted(path for path in night.parent.glob("night=????-??-??") if path.name <= night.name)
    for folder in (path / "run" for path in reversed(nights)):
        with suppress(Unavailable, OSError, AttributeError):
            kept = NightFiles(folder.parent).read_json(name)
            if wanted.items() <= kept.items() and "checksums" in kept:
                yield folder, kept


def _are_whole(folder: Path, checksums: Mapping[str, str]) -> bool:
    return all(checksum(folder / f"{name}.parquet") == sum_ for name, sum_ in checksums.items())


def _own(path: Path, agent_ids: Sequence[str]) -> pl.DataFrame:
    return pl.scan_parquet(path).filter(pl.col("agent_id").is_in(list(agent_ids))).collect()
