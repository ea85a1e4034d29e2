"""The working files of one night, by which assets pass results on; each is written atomically."""

from __future__ import annotations

import json
import os
import shutil
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

import polars as pl
from pydantic import TypeAdapter

from nous_online.core.errors import Refused, Unavailable
from nous_pipelines.phases.phase import PHASE, Phase
from nous_pipelines.phases.phase_table import SCHEMAS
from nous_pipelines.phases.proposals import PLAN, Plan
from nous_pipelines.plan.checks import NOBODY_LEFT_OUT, LeftOut
from nous_pipelines.snapshots.copy_binary import write_parquet_atomically
from nous_pipelines.snapshots.parts import Stamp, stamp

Value = TypeVar("Value", Phase, Plan)

LEFT_OUT = "left_out"
UNSEEN = "unseen"
"""The document in which a dry run counts memories that arrived after the night was applied."""


ACCOUNT = "account"
"""The document with the account of a plan, a row for each agent."""
TAKEN_OVER = (*(f"{name}.parquet" for name in SCHEMAS), "checks.json", "plan.json", f"{ACCOUNT}.json")
"""The files that tell of a night; the account comes last, and says that the others are there."""
PUT_OFF = "put_off"
"""The document in which a night says which pairs wait for the judge, and what stood in the way of asking."""


@dataclass(frozen=True)
class CheckedPlan:
    """A plan that passed its checks, without the agents left out, and the results of the checks."""

    plan: Plan
    results: list[dict[str, Any]]
    left_out: list[LeftOut]


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Make the folder of `path`, and turn errors of writing in the block into `Unavailable`."""
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        yield
    except (OSError, pl.exceptions.PolarsError) as error:
        message = f"{path} can't be written ({error}); is there space left, and may this user write there?"
        raise Unavailable(message) from error


class NightFiles:
    """The folder of one night's working files, beside its snapshot; a run writes again what is about its agents."""

    def __init__(self, snapshot_folder: Path, *, is_dry_run: bool = False, agent_ids: Sequence[str] = ()) -> None:
        self.folder = snapshot_folder / ("dry_run" if is_dry_run else "run")
        self.agent_ids = tuple(agent_ids)
        """The agents of the run that writes them; empty for all."""

    def write_table(self, name: str, table: pl.DataFrame) -> Path:
        """Write a table as Parquet; raise `Unavailable` when that is not possible.

        A table of the night (`SCHEMAS`) keeps the rows of agents that the run is not for.
        """
        path = self.folder / f"{name}.parquet"
        whole = self._with_others(name, table) if self.agent_ids and name in SCHEMAS and path.exists() else table
        with writing(path):
            write_parquet_atomically(whole, path)
        return path

    def _with_others(self, name: str, table: pl.DataFrame) -> pl.DataFrame:
        path = self.folder / f"{name}.parquet"
        try:
            others = pl.scan_parquet(path).filter(~pl.col("agent_id").is_in(self.agent_ids)).collect()
            # Written by an earlier version, it may lack a column.
            whole = pl.concat([others, table], how="diagonal_relaxed").select(table.columns).cast(table.schema)
        except (OSError, pl.exceptions.PolarsError) as error:
            message = (
                f"{path}, with the rows of other agents, can't be read ({error}); run the night again for all agents"
            )
            raise Unavailable(message) from error
        return whole.sort("agent_id", maintain_order=True)

    def others(self, name: str, rows: str) -> list[dict[str, Any]]:
        """Return the rows that a JSON document has of agents that the run is not for; none without the document."""
        if not self.agent_ids or not self.has(name):
            return []
        try:
            return [row for row in self.read_json(name)[rows] if row["agent_id"] not in self.agent_ids]
        except Unavailable as error:
            raise Unavailable(f"{error} for all agents") from error

    def take_over(self) -> None:
        """Copy what the night had found before its snapshot was moved aside, until a run finds it again.

        Raises `Unavailable` when that is not possible.
        """
        night = self.folder.parent
        before = sorted(path.parent for path in night.parent.glob(f"{night.name}.taken-*/run/{ACCOUNT}.json"))
        if not before or self.has(ACCOUNT):
            return
        for path in (before[-1] / name for name in TAKEN_OVER):
            new = self.folder / path.name
            part = new.with_suffix(f".{os.getpid()}.part")
            with writing(new), suppress(FileNotFoundError):
                shutil.copyfile(path, part)
                part.replace(new)

    def read_table(self, name: str, *, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """Read a table, or some of its columns; raise `Unavailable` when it is missing or damaged."""
        try:
            table = pl.read_parquet(self.folder / f"{name}.parquet", columns=None if columns is None else list(columns))
            return SCHEMAS[name].checked(table, columns)
        except (OSError, ValueError, pl.exceptions.PolarsError) as error:
            raise Unavailable(
                f"{name}.parquet in {self.folder} can't be read ({error}); run the night again"
            ) from error

    def write_json(self, name: str, value: Mapping[str, Any]) -> Path:
        """Write a JSON document; raise `Unavailable` when that is not possible."""
        path = self.folder / f"{name}.json"
        part = path.with_suffix(f".{os.getpid()}.part")
        with writing(path):
            try:
                part.write_text(json.dumps(value, ensure_ascii=False, allow_nan=False), "utf-8")
                part.replace(path)
            finally:
                part.unlink(missing_ok=True)
        return path

    def read_json(self, name: str) -> dict[str, Any]:
        """Read a JSON document; raise `Unavailable` when it is missing or damaged."""
        return document_at(self.folder / f"{name}.json")

    def has(self, name: str) -> bool:
        """Tell whether a JSON document has been written."""
        return (self.folder / f"{name}.json").exists()

    def unseen(self) -> dict[str, int]:
        """Return by agent the number of memories that a dry run does not see (`UNSEEN`)."""
        rows = self.read_json(UNSEEN)["agents"] if self.has(UNSEEN) else []
        return {row["agent_id"]: row["memories"] for row in rows}

    def put_off(self) -> tuple[dict[str, int], list[str]]:
        """Return by agent the number of pairs that wait, and the obstacles (`PUT_OFF`); none where all was asked."""
        if not self.has(PUT_OFF):
            return {}, []
        document = self.read_json(PUT_OFF)
        return {row["agent_id"]: row["pairs"] for row in document["agents"]}, document["obstacles"]

    def leave_out(self, left: Sequence[LeftOut]) -> None:
        """Record agents that later assets must leave out, in a file for each step: assets may run at the same time."""
        for step in {each.step for each in left}:
            known = self.read_json(f"{LEFT_OUT}.{step}")["agents"] if self.has(f"{LEFT_OUT}.{step}") else []
            rows = {row["agent_id"]: row for row in [*known, *(vars(each) for each in left if each.step == step)]}
            self.write_json(f"{LEFT_OUT}.{step}", {"agents": list(rows.values())})

    def left_out(self) -> list[LeftOut]:
        """Return the agents left out so far, with the reasons."""
        names = sorted(path.stem for path in self.folder.glob(f"{LEFT_OUT}.*.json"))
        return [LeftOut(**row) for name in names for row in self.read_json(name)["agents"]]

    def leave_out_nobody(self) -> None:
        """Delete the records of agents left out by an earlier run."""
        for path in self.folder.glob(f"{LEFT_OUT}.*.json"):
            path.unlink(missing_ok=True)

    def write_phase(self, phase: Phase) -> None:
        """Write the result of a phase under its name."""
        self._write_value(phase.name, phase)

    def read_phase(self, name: str) -> Phase:
        """Read the result of a phase, which is shared by all who read it; raise `Unavailable` as `read_json` does."""
        return self._read_value(name, PHASE)

    def write_plan(self, plan: Plan) -> None:
        """Write the plan of the night."""
        self._write_value("plan", plan)

    def read_plan(self) -> Plan:
        """Read the plan of the night; raise `Unavailable` when it is missing or damaged."""
        return self._read_value("plan", PLAN)

    def _write_value(self, name: str, value: Phase | Plan) -> None:
        path = self.write_json(name, value.as_dict())
        remember_value(path, value)

    def _read_value(self, name: str, form: TypeAdapter[Value]) -> Value:
        path = self.folder / f"{name}.json"
        value = known_value(path)
        if value is None:
            value = form.validate_python(document_at(path))
            remember_value(path, value)
        return cast("Value", value)

    def read_checked_plan(self) -> CheckedPlan:
        """Read the plan with the results of its checks; raise `Refused` if they failed or are of another plan."""
        plan, checks = self.read_plan(), self.read_json("checks")
        if checks["hash"] != plan.hash:
            message = (
                f"the checks saw plan {checks['hash'][:12]}, the plan is now {plan.hash[:12]}; run the checks again"
            )
            raise Refused(message)
        # Without the check that names agents: the results go into the database, where erasing rewrites no sentence.
        rules = [each for each in checks["results"] if each["name"] != NOBODY_LEFT_OUT]
        broken = [each["name"] for each in rules if not each["passed"]]
        if broken:
            raise Refused(f"plan {plan.hash[:12]} failed its checks ({', '.join(broken)}); nothing is applied")
        left = [LeftOut(**row) for row in checks["left_out"]]
        rest = {proposal.agent_id for proposal in plan.proposals} - {each.agent_id for each in left}
        return CheckedPlan(plan.of(rest) if left else plan, rules, left)


def document_at(path: Path) -> dict[str, Any]:
    """Read a JSON document; raise `Unavailable` when it is missing or damaged."""
    try:
        return json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise Unavailable(f"{path.name} in {path.parent} can't be read ({error}); run the night again") from error


KNOWN: OrderedDict[Path, tuple[Stamp, object]] = OrderedDict()
"""The values last written or read, each with the stamp of its file: the steps of a night make none of them again."""
MOST_KNOWN = 16


def remember_value(path: Path, value: object) -> None:
    """Keep a value for those who read its file, while that does not change."""
    KNOWN[path] = (stamp(path), value)
    KNOWN.move_to_end(path)
    if len(KNOWN) > MOST_KNOWN:
        KNOWN.popitem(last=False)


def known_value(path: Path) -> object | None:
    """Return the value that was kept of a file, None where there is none or the file has changed since."""
    written, value = KNOWN.get(path, (None, None))
    return value if path.exists() and stamp(path) == written else None
