"""What a night need not find out again, since an earlier run found it from the same rows in the same way.

Agents are at rest when nothing of them changed since the night before, which left them as they were. What that night
found about their pairs is taken over: which are neighbours, what each pair is, why nothing is proposed. What depends on
the date is looked at again: weights, ages, tiers.

When a night is run again and reads the rows it read, its tables, proposals and plan stand as they are.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
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
from nous_pipelines.phases.phase_table import NIGHT_TABLES, PHASES
from nous_pipelines.phases.tiers import SUMMARIES
from nous_pipelines.plan.night_files import NightFiles
from nous_pipelines.snapshots.parts import checksum
from nous_pipelines.snapshots.snapshot import Snapshot, open_snapshot
from nous_pipelines.snapshots.table_schemas import TableSchema

CODE = ("nous_online", "nous_pipelines")
CODE_FILES = frozenset({".json", ".py", ".sql", ".toml", ".txt", ".xz"})
"""What results follow from; of the weights of the pair reader, 24 MB, a JSON file has the checksum."""
FRESH_FOR = timedelta(days=2)
"""For how long a fact meets its nearest however far they are: a day before the night, and one in case it was late."""
NAME = "kept"
TABLES: tuple[TableSchema, ...] = (FOUND, COPY, JUDGED, CLUSTERS)
"""The tables about pairs of facts."""
OUTPUT_FILES = (
    *dict.fromkeys(f"{table.name}.parquet" for table in (*TABLES, *(each.schema for each in NIGHT_TABLES), SUMMARIES)),
    *(f"{name}.json" for name in (*(phase.name for phase in PHASES), "account", "plan")),
)
"""The files that a night has made by the time its plan is known."""


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


def keep(files: NightFiles, decided_by: Mapping[str, Any], taken: Snapshot, agent_ids: Iterable[str]) -> None:
    """Write down what a later run has to know to take over what this one found; raise `Unavailable` if it can't."""
    agents = sorted(agent_ids)
    files.write_json(
        NAME,
        {**decided_by, "agents": agents, "inputs": inputs_of(decided_by, taken, agents), "checksums": sums(files)},
    )


def decisive(
    judge: Judge, policy: NightPolicy, changed: Mapping[str, float], models: Iterable[str] = ()
) -> dict[str, Any]:
    """Return what a night decides by, besides the rows.

    `changed` are the fields of the policy that its run has of its own, `models` those that are asked for a second
    opinion.
    """
    return {
        "code": code_checksum(),
        "judge": [judge.name, judge.prompt_version, *models],
        "policy": [policy.as_dict(), dict(changed)],
    }


@cache
def code_checksum() -> str:
    """Return the SHA-256 of modules, queries and word lists of the product: what other code found is not taken over."""
    root, digest = Path(__file__).parents[2], hashlib.sha256()
    for path in sorted(path for package in CODE for path in (root / package).rglob("*.*")):
        if path.suffix in CODE_FILES:
            digest.update(path.read_bytes())
    return digest.hexdigest()


def inputs_of(decided_by: Mapping[str, Any], taken: Snapshot, *others: Any) -> str:
    """Return the SHA-256 of all that a plan follows from; `others` are values as JSON has them."""
    rows = [taken.night.isoformat(), taken.taken_at.isoformat(), dict(taken.checksums)]
    said = json.dumps([decided_by, rows, *others], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(said.encode()).hexdigest()


def sums(files: NightFiles) -> Mapping[str, int]:
    """Return the CRC-32 of each file that is taken over."""
    return {name: checksum(files.folder / name) for name in OUTPUT_FILES}


def was_planned_from(
    files: NightFiles, decided_by: Mapping[str, Any], taken: Snapshot, agent_ids: Iterable[str]
) -> bool:
    """Return whether an earlier run of this night planned from the same rows, for the same agents, by the same code.

    Not if it left out an agent that is included now, or if one of its files was changed since.
    """
    try:
        document = files.read_json(NAME)
        inputs = inputs_of(decided_by, taken, sorted(agent_ids))
        return document["inputs"] == inputs and document["checksums"] == sums(files)
    except (Unavailable, OSError, KeyError):  # no plan was made, or an earlier version wrote the file
        return False


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
