"""Agents whose facts a night need not compare again: nothing of them changed since the night before, which left them.

What that night found about their pairs is taken over: which are neighbours, what each pair is, why nothing is proposed.
What depends on the date is looked at again: weights, ages, tiers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any

import polars as pl

from nous_online.core.errors import Unavailable
from nous_online.language.pairs.judging import Judge
from nous_pipelines.night_policy import NightPolicy
from nous_pipelines.nights import end_of
from nous_pipelines.phases.merging import CLUSTERS, JUDGED
from nous_pipelines.phases.neighbours import COPY, FOUND
from nous_pipelines.phases.phase import Phase
from nous_pipelines.phases.phase_table import PHASES
from nous_pipelines.plan.night_files import NightFiles
from nous_pipelines.snapshots.parts import checksum
from nous_pipelines.snapshots.snapshot import Snapshot, open_snapshot
from nous_pipelines.snapshots.table_schemas import TableSchema

FORMAT = 1
"""Counts how pairs are found and decided about; what an older version of the code found is not taken over."""
FRESH_FOR = timedelta(days=2)
"""For how long a fact meets its nearest however far they are: a day before the night, and one in case it was late."""
NAME = "kept"
TABLES: tuple[TableSchema, ...] = (FOUND, COPY, JUDGED, CLUSTERS)


@dataclass(frozen=True)
class Rested:
    """The agents at rest, and the files of the earlier night that has what was found about them."""

    agent_ids: frozenset[str] = frozenset()
    files: NightFiles | None = None

    def rows(self, schema: TableSchema) -> pl.DataFrame:
        """Return the rows of these agents in a table of the earlier night."""
        if self.files is None or schema not in TABLES:
            return schema.empty()
        return self.files.read_table(schema.name).filter(pl.col("agent_id").is_in(list(self.agent_ids)))

    def phase(self, name: str) -> Phase:
        """Return what a phase of the earlier night found for these agents: nothing to propose, and why."""
        return Phase(name) if self.files is None else self.files.read_phase(name).of(self.agent_ids)


def keep(files: NightFiles, decided_by: Mapping[str, Any], agent_ids: Iterable[str]) -> None:
    """Write down what a later night has to know to take over what this one found; raise `Unavailable` if it can't."""
    files.write_json(NAME, {**decided_by, "agents": sorted(agent_ids), "checksums": sums(files)})


def decisive(judge: Judge, policy: NightPolicy, changed: Mapping[str, float]) -> dict[str, Any]:
    """Return what a night finds its pairs by, besides the rows; `changed` are the fields its run has of its own."""
    return {
        "format": [FORMAT, version("nous-pipelines")],
        "judge": [judge.name, judge.prompt_version],
        "policy": [policy.as_dict(), dict(changed)],
    }


def sums(files: NightFiles) -> Mapping[str, int]:
    """Return the CRC-32 of each file that is taken over."""
    names = [*(f"{table.name}.parquet" for table in TABLES), *(f"{phase.name}.json" for phase in PHASES)]
    return {name: checksum(files.folder / name) for name in names}


def at_rest(taken: Snapshot, decided_by: Mapping[str, Any]) -> Rested:
    """Return the agents that are at rest in a night, by the last night before it that was applied."""
    before = last_applied(taken.folder)
    if before is None:
        return Rested()
    try:
        files = NightFiles(before.folder)
        document = files.read_json(NAME)
        if {name: document[name] for name in decided_by} != decided_by or document["checksums"] != sums(files):
            return Rested()
        left = {row["agent_id"] for row in files.read_json("checks")["left_out"]}
        still = {*document["agents"]} & unchanged(before, taken)
        proposed = {each.agent_id for phase in PHASES for each in files.read_phase(phase.name).proposals}
        still -= left | proposed
        return Rested(frozenset(still - due(taken, still, end_of(before.night) - FRESH_FOR)), files)
    except (Unavailable, OSError, KeyError, TypeError):  # an earlier version, or files that were damaged since
        return Rested()


def last_applied(folder: Path) -> Snapshot | None:
    """Return the snapshot of the last night before the one of a folder, if that night was applied."""
    earlier = [path for path in folder.parent.glob("night=????-??-??") if path.name < folder.name]
    last = max(earlier, default=None, key=lambda path: path.name)
    if last is None or not NightFiles(last).has("applied"):
        return None
    try:
        return open_snapshot(last)
    except Unavailable:
        return None


def unchanged(before: Snapshot, now: Snapshot) -> set[str]:
    """Return the agents whose rows lie in the same part in both: they are the same."""
    if before.is_undivided or now.is_undivided:
        return set()
    return {*before.placed.join(now.placed, on=["agent_id", "part"], how="semi")["agent_id"]}


def due(taken: Snapshot, agent_ids: Collection[str], since: datetime) -> set[str]:
    """Return those of some agents who were told something, or of something that holds, since a moment or later."""
    moments = ("learned_at", "last_confirmed_at", "valid_from")
    facts = taken.table("facts", columns=["agent_id", *moments])
    is_late = pl.any_horizontal((pl.col(name) >= since).fill_null(value=False) for name in moments)
    return {*facts.filter(is_late)["agent_id"]} & {*agent_ids}
