"""What a night takes over from earlier runs instead of computing it again; what can't be trusted is left out.

- Of every agent, pairs that were compared and verdicts of the judge (`compared.json`, `judged_by.json`).
- Of agents at rest, all results about pairs of facts. An agent is at rest if none of its rows changed since the last
  applied night and that night proposed nothing for it. Weights, ages and tiers depend on the date: they are computed
  again.
- All of a night that was carried through, when it is run again over the same rows (`kept.json`, `finished.json`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl

from nous_online.core.errors import Unavailable
from nous_online.language.pairs.judging import Judge
from nous_pipelines.engines.engine import code_digest
from nous_pipelines.night_policy import NightPolicy
from nous_pipelines.nights import end_of
from nous_pipelines.phases.asking import VERDICTS
from nous_pipelines.phases.incremental_join import NOTHING, PAIRS, ROWS, Compared
from nous_pipelines.phases.merging import CLUSTERS, JUDGED
from nous_pipelines.phases.neighbours import COPY, FOUND
from nous_pipelines.phases.phase import Phase
from nous_pipelines.phases.phase_table import NIGHT_TABLES, PHASES
from nous_pipelines.phases.tiers import SUMMARIES
from nous_pipelines.plan.night_files import NightFiles
from nous_pipelines.snapshots.parts import checksum, checksum_at, stamp
from nous_pipelines.snapshots.snapshot import NIGHT_PREFIX, Snapshot, open_snapshot
from nous_pipelines.snapshots.table_schemas import TableSchema

# --- compared pairs and verdicts ---

FORMAT = 2
"""The version of the meaning of `Compared`; files of another version are not read."""


@dataclass(frozen=True)
class KeptComparison:
    """The folder in which a night kept the pairs it compared, the agents they are of, and the CRC-32 of each table."""

    folder: Path
    agent_ids: frozenset[str]
    checksums: Mapping[str, int]


def write_compared(files: NightFiles, parts: Sequence[Compared]) -> None:
    """Write the compared pairs of all chunks; raise `Unavailable` when that is not possible."""
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
    # Written after the tables: without this document they are not read.
    files.write_json("compared", {"format": FORMAT, "agents": agent_ids, "checksums": checksums})


def earlier_compared(files: NightFiles) -> list[KeptComparison]:
    """Return the comparisons kept by this night and the nights before it, the latest first."""
    return [
        KeptComparison(folder, frozenset(document["agents"]), document["checksums"])
        for folder, document in kept_documents(files, "compared", {"format": FORMAT})
    ]


def compared_in(nights: Sequence[KeptComparison], agent_ids: Sequence[str]) -> Compared:
    """Return the compared pairs of some agents, of each from the latest night with undamaged tables."""
    missing, parts, start = set(agent_ids), list[Compared](), 0
    for kept in nights:
        own = missing & kept.agent_ids
        if own and is_undamaged(kept.folder, kept.checksums):
            rows, pairs = (rows_of_agents(kept.folder / f"compared_{name}.parquet", own) for name in ("rows", "pairs"))
            if rows.schema == pl.Schema(ROWS) and pairs.schema == pl.Schema(PAIRS):
                part = Compared(rows, pairs).renumbered(start)
                start = max([start, *(part.rows["row"].sort().tail(1) + 1)])
                parts.append(part)
            missing -= own
    if not parts:
        return NOTHING
    return Compared(pl.concat([part.rows for part in parts]), pl.concat([part.pairs for part in parts]))


def write_judged_by(files: NightFiles, judge: Judge, judgements: Path, agent_ids: Sequence[str]) -> None:
    """Write which judge gave the judgements about the agents of a run; raise `Unavailable` when that is not possible.

    Those about other agents are of an earlier run, and perhaps of an earlier version of the judge.
    """
    checksums = {"judgements": checksum(judgements)}
    files.write_json("judged_by", {**identity_of_judge(judge), "agents": sorted(agent_ids), "checksums": checksums})


def earlier_verdicts(files: NightFiles, judge: Judge, agent_ids: Sequence[str]) -> pl.DataFrame:
    """Return the verdicts of a judge about some agents (`VERDICTS`) from the latest night that has any."""
    for folder, document in kept_documents(files, "judged_by", identity_of_judge(judge)):
        if is_undamaged(folder, document["checksums"]):
            judged = {*agent_ids}.intersection(document.get("agents", agent_ids))
            table = rows_of_agents(folder / "judgements.parquet", judged)
            if {*VERDICTS, "model"} <= {*table.columns}:
                own = table.filter(pl.col("model") == judge.name)
                return own.select(list(VERDICTS)).unique(["agent_id", "pair_hash"], keep="first", maintain_order=True)
    return pl.DataFrame(schema=VERDICTS)


def identity_of_judge(judge: Judge) -> dict[str, str]:
    """Return what two judges that give the same verdicts have in common."""
    return {"model": judge.name, "prompt_version": judge.prompt_version}


def kept_documents(
    files: NightFiles, name: str, wanted: Mapping[str, object]
) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """Yield the folders with document `name` of this night and those before it, latest first, if it has `wanted`."""
    for path in folders_until(files.folder.parent):
        with suppress(Unavailable, OSError, AttributeError):
            kept = NightFiles(path)  # not those of dry runs: their policy may have been a trial
            document = kept.read_json(name)
            if wanted.items() <= document.items() and "checksums" in document:
                yield kept.folder, document


def folders_until(folder: Path) -> list[Path]:
    """Return the folder of a night and those of all nights before it, latest first."""
    nights = folder.parent.glob(f"{NIGHT_PREFIX}????-??-??")
    return sorted((path for path in nights if path.name <= folder.name), reverse=True)


def is_undamaged(folder: Path, checksums: Mapping[str, int]) -> bool:
    """Return whether the tables in a folder have the checksums they were written with."""
    with suppress(OSError, AttributeError):  # the document may be damaged as well
        return all(checksum_at(*stamp(folder / f"{name}.parquet")) == value for name, value in checksums.items())
    return False


def rows_of_agents(path: Path, agent_ids: Collection[str]) -> pl.DataFrame:
    """Return the rows that some agents have in a file."""
    return pl.scan_parquet(path).filter(pl.col("agent_id").is_in(list(agent_ids))).collect()


# --- agents at rest, and nights that are run again ---

FRESH_FOR = timedelta(days=2)
"""How long a fact that was learned or stored meets its nearest however far they are: the day before the night, and one
more for a late night."""
LATE = timedelta(days=1)
"""How long after its end what is stored counts for a night as new: who imports a history runs the last night then."""
NAME = "kept"
TABLES: tuple[TableSchema, ...] = (FOUND, COPY, JUDGED, CLUSTERS)
"""The tables about pairs of facts."""
OUTPUT_FILES = (
    *dict.fromkeys(f"{table.name}.parquet" for table in (*TABLES, *(each.schema for each in NIGHT_TABLES), SUMMARIES)),
    *(f"{name}.json" for name in (*(phase.name for phase in PHASES), "account", "plan")),
)
"""The files of a night up to its plan."""


@dataclass(frozen=True)
class AgentsAtRest:
    """The agents at rest, and the files of the earlier night with what was found about them."""

    agent_ids: frozenset[str] = frozenset()
    files: NightFiles | None = None

    def rows(self, schema: TableSchema) -> pl.DataFrame:
        """Return the rows of these agents in a table of the earlier night."""
        if self.files is None or not self.agent_ids or schema not in TABLES:
            return schema.empty()
        return self.files.read_table(schema.name).filter(pl.col("agent_id").is_in(list(self.agent_ids)))

    def phase(self, name: str) -> Phase:
        """Return the account of these agents in a phase of the earlier night, which proposed nothing for them."""
        return self.files.read_phase(name).of(self.agent_ids) if self.files and self.agent_ids else Phase(name)


def write_kept(files: NightFiles, basis: Mapping[str, Any], taken: Snapshot, agent_ids: Iterable[str]) -> None:
    """Write what later runs compare to take over the results of this one; raise `Unavailable` if that fails."""
    agents = sorted(agent_ids)
    checksums = output_checksums(files)
    files.write_json(
        NAME, {**basis, "agents": agents, "inputs": digest_of_inputs(basis, taken, agents), "checksums": checksums}
    )


def decision_basis(
    judge: Judge, policy: NightPolicy, overrides: Mapping[str, float], models: Iterable[str] = ()
) -> dict[str, Any]:
    """Return what the results of a night depend on besides the rows: code, judge and policy.

    `overrides` are the policy fields of its run, `models` those that are asked for a second opinion.
    """
    return {
        "code": code_digest(),
        "judge": [judge.name, judge.prompt_version, *models],
        "policy": [policy.as_dict(), dict(overrides)],
    }


def digest_of_inputs(basis: Mapping[str, Any], taken: Snapshot, *others: Any) -> str:
    """Return the SHA-256 of all that a plan depends on; `others` are further JSON values."""
    rows = [taken.night.isoformat(), taken.taken_at.isoformat(), dict(taken.checksums)]
    inputs = json.dumps([basis, rows, *others], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(inputs.encode()).hexdigest()


def output_checksums(files: NightFiles) -> Mapping[str, int]:
    """Return the CRC-32 of each of `OUTPUT_FILES`."""
    return {name: checksum(files.folder / name) for name in OUTPUT_FILES}


def was_planned_from(files: NightFiles, basis: Mapping[str, Any], taken: Snapshot, agent_ids: Iterable[str]) -> bool:
    """Return whether an earlier run of this night planned from the same rows, for the same agents, by the same code.

    Not if it left out an agent that is included now, or if one of its files was changed since.
    """
    try:
        document = files.read_json(NAME)
        inputs = digest_of_inputs(basis, taken, sorted(agent_ids))
        return document["inputs"] == inputs and document["checksums"] == output_checksums(files)
    except (Unavailable, OSError, KeyError):  # there is no plan, or an earlier version wrote the file
        return False


FINISHED = "finished"


@dataclass(frozen=True)
class FinishedRun:
    """A run that carried a night through, and the hash of the plan it applied."""

    run_id: str
    plan_hash: str


def write_finished(files: NightFiles, run_id: str) -> None:
    """Record that a run carried the night through; raise `Unavailable` if that fails."""
    inputs, plan_hash = files.read_json(NAME)["inputs"], files.read_json("checks")["hash"]
    files.write_json(FINISHED, {"run_id": run_id, "plan_hash": plan_hash, "inputs": inputs})


def finished_run(
    files: NightFiles, basis: Mapping[str, Any], taken: Snapshot, agent_ids: Iterable[str]
) -> FinishedRun | None:
    """Return the run that carried the night through, for these agents and from the same rows, None for none."""
    if not files.has(FINISHED) or not was_planned_from(files, basis, taken, agent_ids):
        return None
    try:
        finished, checks = files.read_json(FINISHED), files.read_json("checks")
        is_sound = all(row["passed"] for row in checks["results"])  # nobody was left out either
        is_same = finished["inputs"] == files.read_json(NAME)["inputs"] and finished["plan_hash"] == checks["hash"]
        return FinishedRun(finished["run_id"], finished["plan_hash"]) if is_sound and is_same else None
    except (Unavailable, KeyError, TypeError):
        return None


def find_agents_at_rest(taken: Snapshot, basis: Mapping[str, Any]) -> AgentsAtRest:
    """Return the agents at rest, compared with the last applied night before the one of the snapshot."""
    before = last_applied_snapshot(taken.folder)
    if before is None:
        return AgentsAtRest()
    try:
        files = NightFiles(before.folder)
        document = files.read_json(NAME)
        if {name: document[name] for name in basis} != basis or document["checksums"] != output_checksums(files):
            return AgentsAtRest()
        agents = {*document["agents"]} & unchanged_agents(before, taken)
        if not agents:  # as in a store of one agent: what follows reads thousands of proposals
            return AgentsAtRest()
        agents -= {row["agent_id"] for row in files.read_json("checks")["left_out"]}
        agents -= {each["agent_id"] for phase in PHASES for each in files.read_json(phase.name)["proposals"]}
        # A fact that was fresh in the earlier night met its nearest however far they are; tonight others do.
        since, until = end_of(before.night) - FRESH_FOR, end_of(taken.night) + LATE
        agents -= agents_with_facts_since(taken, since, stored_until=until)
        return AgentsAtRest(frozenset(agents), files)
    except (Unavailable, OSError, KeyError, TypeError):  # of an earlier version, or damaged since
        return AgentsAtRest()


def last_applied_snapshot(folder: Path) -> Snapshot | None:
    """Return the snapshot of the last night before the one in `folder`, None if that night was not applied."""
    last = next((path for path in folders_until(folder) if path != folder), None)
    if last is None or not NightFiles(last).has("applied"):
        return None
    try:
        return open_snapshot(last)
    except Unavailable:
        return None


def unchanged_agents(before: Snapshot, now: Snapshot) -> set[str]:
    """Return the agents whose rows lie in the same part of both snapshots, and so are the same."""
    if before.is_undivided or now.is_undivided:
        return set()
    return {*before.placed.join(now.placed, on=["agent_id", "part"], how="semi")["agent_id"]}


def agents_with_facts_since(
    taken: Snapshot, since: datetime, *, until: datetime | None = None, stored_until: datetime
) -> set[str]:
    """Return the agents with a fact learned, confirmed or become valid from a moment on, and before another.

    And those of which something was stored from that moment on and before `stored_until`.
    """
    moments = ("learned_at", "last_confirmed_at", "valid_from")
    facts = taken.table("facts", columns=["agent_id", *moments])
    ends = datetime.max.replace(tzinfo=UTC) if until is None else until
    is_between = (((pl.col(name) >= since) & (pl.col(name) < ends)).fill_null(value=False) for name in moments)
    stored = taken.table("statements", columns=["agent_id", "recorded_at"])
    came = stored.filter(pl.col("recorded_at").is_between(since, stored_until, closed="left"))
    return {*facts.filter(pl.any_horizontal(is_between))["agent_id"], *came["agent_id"]}
