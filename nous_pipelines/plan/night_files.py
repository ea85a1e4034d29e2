"""What assets hand to each other: files of one night, written whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import polars as pl

from nous_online.core.errors import Refused, Unavailable
from nous_pipelines.phases.phase import PHASE, Phase
from nous_pipelines.phases.phase_table import SCHEMAS
from nous_pipelines.phases.proposals import PLAN, Plan
from nous_pipelines.plan.left_out import CHECK, LeftOut
from nous_pipelines.snapshots.copy_binary import write_parquet_atomically

LEFT_OUT = "left_out"
UNSEEN = "unseen"
"""The document in which a dry run notes whose memories came after the night it looks at was applied."""


@dataclass(frozen=True)
class CheckedPlan:
    """A plan that passed, without the agents that are left out, and what its checks said, which names none of them."""

    plan: Plan
    results: list[dict[str, Any]]
    left_out: list[LeftOut]


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Make the folder of `path`, and raise `Unavailable` when it can't be written there."""
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        yield
    except (OSError, pl.exceptions.PolarsError) as error:
        message = f"{path} can't be written ({error}); is there space left, and may this user write there?"
        raise Unavailable(message) from error


class NightFiles:
    """The folder of one night's working files, beside its snapshot; made again by every run."""

    def __init__(self, snapshot_folder: Path, *, is_dry_run: bool = False) -> None:
        self.folder = snapshot_folder / ("dry_run" if is_dry_run else "run")

    def write_table(self, name: str, table: pl.DataFrame) -> Path:
        """Write a table as Parquet; raise `Unavailable` when that is not possible."""
        path = self.folder / f"{name}.parquet"
        with writing(path):
            write_parquet_atomically(table, path)
        return path

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
        """Return how many memories of each agent a dry run noted that it does not see."""
        rows = self.read_json(UNSEEN)["agents"] if self.has(UNSEEN) else []
        return {row["agent_id"]: row["memories"] for row in rows}

    def leave_out(self, left: Sequence[LeftOut]) -> None:
        """Note whom the assets to come leave out; each asset keeps a file of its own, so that none meets another."""
        for step in {each.step for each in left}:
            known = self.read_json(f"{LEFT_OUT}.{step}")["agents"] if self.has(f"{LEFT_OUT}.{step}") else []
            rows = {row["agent_id"]: row for row in [*known, *(vars(each) for each in left if each.step == step)]}
            self.write_json(f"{LEFT_OUT}.{step}", {"agents": list(rows.values())})

    def left_out(self) -> list[LeftOut]:
        """Return whom the assets so far leave out, and why."""
        names = sorted(path.stem for path in self.folder.glob(f"{LEFT_OUT}.*.json"))
        return [LeftOut(**row) for name in names for row in self.read_json(name)["agents"]]

    def leave_out_nobody(self) -> None:
        """Forget whom an earlier run left out."""
        for path in self.folder.glob(f"{LEFT_OUT}.*.json"):
            path.unlink(missing_ok=True)

    def write_phase(self, phase: Phase) -> Path:
        """Write what one phase found, under its name."""
        return self.write_json(phase.name, phase.as_dict())

    def read_phase(self, name: str) -> Phase:
        """Read what one phase found."""
        return PHASE.validate_python(self.read_json(name))

    def read_plan(self) -> Plan:
        """Read the plan of the night; raise `Unavailable` when it is missing or damaged."""
        path = self.folder / "plan.json"
        written = path.stat() if path.exists() else None
        return plan_at(path, *((written.st_mtime_ns, written.st_size) if written else (0, 0)))

    def read_checked_plan(self) -> CheckedPlan:
        """Read the plan with what its checks said; raise `Refused` when they failed, or saw another plan."""
        plan, checks = self.read_plan(), self.read_json("checks")
        if checks["hash"] != plan.hash:
            message = (
                f"the checks saw plan {checks['hash'][:12]}, the plan is now {plan.hash[:12]}; run the checks again"
            )
            raise Refused(message)
        rules = [each for each in checks["results"] if each["name"] != CHECK]
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


@lru_cache(maxsize=1)
def plan_at(path: Path, _modified_ns: int, _size: int) -> Plan:
    """Return the plan in a file as it was last written: checks, apply and report read it, and hash it, once."""
    return PLAN.validate_python(document_at(path))
