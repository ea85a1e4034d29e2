"""Run one benchmark and print what it measured beside its goals."""

from __future__ import annotations

import json
import math
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.goals import GOALS
from nous_online.errors import NousError

ROOT = Path(__file__).resolve().parents[1]
SHARED_CASES = ROOT.parent / "shared" / "bench"
METRIC_KINDS = (int, float)


def measure(
    name: Annotated[str, typer.Argument(help=f"What to measure: {', '.join(GOALS)}.", show_default="list them")] = "",
    data: Annotated[
        Path, typer.Option(help="Folder with the public cases (*.jsonl).", show_default="../shared/bench")
    ] = SHARED_CASES,
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write the result to this file.")] = None,
    *,
    quick: Annotated[bool, typer.Option("--quick", help="A smaller run that ends within a minute.")] = False,
) -> None:
    """Measure one thing and print it beside its goals.

    Each benchmark reads only the files it needs from --data and says which are missing. Examples:

    python -m benchmarks join --quick

    python -m benchmarks dedup --data ~/cases --json dedup.json
    """
    if not name:
        print(listing())
        return
    if name not in GOALS:
        raise typer.BadParameter(f"there is no benchmark {name!r}; choose from {', '.join(GOALS)}", param_hint="NAME")
    try:
        measured = import_module(f"benchmarks.{name}").run(data=data, quick=quick)
    except (NousError, FileNotFoundError) as error:
        print(f"{name} was not measured: {error}", file=sys.stderr)
        raise typer.Exit(1) from error
    result = described(name, measured)
    if json_file is not None:
        json_file.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    show(result, Console())


def listing() -> str:
    """Return one line for each benchmark: its name and what reaching its goals would mean."""
    return "\n".join(
        f"{name}: " + ", ".join(f"{metric} {goal}" for metric, goal in goals.items()) for name, goals in GOALS.items()
    )


def described(name: str, measured: dict[str, Any]) -> dict[str, Any]:
    """Return the measurement with when, where and on which commit it was made; metrics must be finite numbers."""
    for metric, value in measured["metrics"].items():
        if isinstance(value, bool) or not isinstance(value, METRIC_KINDS) or not math.isfinite(value):
            raise TypeError(f"{name}: the metric {metric} is {value!r}, expected a finite number")
    return {
        "name": name,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(ROOT),
        "machine": machine(),
        "metrics": measured["metrics"],
        "peers": measured["peers"],
        "notes": measured["notes"],
    }


def commit(folder: Path) -> str:
    """Return the commit that is checked out in `folder`, or "unknown" outside of a repository."""
    asked = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"],  # noqa: S607 - git is on the PATH
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return asked.stdout.strip() or "unknown"


def machine() -> str:
    """Describe the machine in a line: processor, cores, memory, system, Python."""
    import psutil

    memory_gb = psutil.virtual_memory().total / 2**30
    python = f"Python {platform.python_version()}"
    return f"{processor()}, {os.cpu_count()} cores, {memory_gb:.0f} GB, {platform.system()}, {python}"


def processor() -> str:
    """Return the processor's own name where the system tells it, otherwise its architecture."""
    listing = Path("/proc/cpuinfo")
    lines = listing.read_text("utf-8").splitlines() if listing.exists() else []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.machine()


def show(result: dict[str, Any], console: Console) -> None:
    """Print metrics with goals met or not met, then the peers and the notes."""
    goals = GOALS[result["name"]]
    table = Table(title=f"{result['name']} · {result['commit']} · {result['date']}", caption=result["machine"])
    for heading in ("metric", "measured", "goal", ""):
        table.add_column(heading, justify="left" if heading in {"metric", ""} else "right")
    for metric, value in result["metrics"].items():
        goal = goals.get(metric)
        verdict = "" if goal is None else "met" if goal.is_met_by(value) else "[bold]not met"
        table.add_row(metric, readable(value), "" if goal is None else str(goal), verdict)
    for metric in goals.keys() - result["metrics"].keys():
        table.add_row(metric, "-", str(goals[metric]), "not measured")
    for peer, value in result["peers"].items():
        table.add_row(f"[dim]{peer}", readable(value) if isinstance(value, METRIC_KINDS) else str(value), "", "")
    console.print(table)
    for note in result["notes"]:
        console.print(f"· {note}", highlight=False)


def readable(value: float) -> str:
    """Write a number with four significant digits."""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"


if __name__ == "__main__":
    typer.run(measure)
