"""What earlier nights left beside their snapshots for a later one to build on; what can not be trusted is left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import polars as pl

from nous_online.errors import Unavailable
from nous_online.pairs.judging import Judge
from nous_pipelines.files import NightFiles
from nous_pipelines.snapshot import checksum
from nous_pipelines.transforms.asking import VERDICTS
from nous_pipelines.transforms.compared import NOTHING, PAIRS, ROWS, Compared

FORMAT = 1
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
    files.write_json("compared", {"format": FORMAT, "checksums": checksums})


def write_judged_by(files: NightFiles, judge: Judge, judgements: Path) -> None:
    """Keep whose verdicts a night's judgements are; raise `Unavailable` when that is not possible."""
    files.write_json("judged_by", {**_named(judge), "checksums": {"judgements": checksum(judgements)}})


def earlier_compared(files: NightFiles) -> Path | None:
    """Return the folder of the latest night, this one included, that kept what it compared whole; None if none did."""
    wanted = {"format": FORMAT}
    return next(_trusted(files, "compared", wanted), None)


def compared_in(folder: Path | None, agent_ids: Sequence[str]) -> Compared:
    """Return what the night of that folder compared of some agents."""
    if folder is None:
        return NOTHING
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
    """Yield the folders, latest night first, whose document has what is wanted and tables with its checksums.

    Dry runs are passed over: their policy may have been a trial.
    """
    night = files.folder.parent
    nights = sorted(path for path in night.parent.glob("night=????-??-??") if path.name <= night.name)
    for folder in (path / "run" for path in reversed(nights)):
        with suppress(Unavailable, OSError, KeyError, TypeError, AttributeError):
            kept = NightFiles(folder.parent).read_json(name)
            tables = kept["checksums"].items()
            if wanted.items() <= kept.items() and all(
                checksum(folder / f"{each}.parquet") == sum_ for each, sum_ in tables
            ):
                yield folder


def _own(path: Path, agent_ids: Sequence[str]) -> pl.DataFrame:
    return pl.scan_parquet(path).filter(pl.col("agent_id").is_in(list(agent_ids))).collect()
