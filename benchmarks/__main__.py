"""Run one benchmark and print what it measured beside its goals."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.goals import GOALS
from benchmarks.intervals import Estimate
from benchmarks.results import KEPT, ROOT, commit, described, run_all, write
from benchmarks.table import write_pages
from nous_online.core.errors import NousError

SHARED_CASES = ROOT.parent / "shared" / "bench"
METRIC_KINDS = (int, float)
GATES = ("faults",)
"""Benchmarks that fail where something happened that never may, however small the run."""


def measure(
    name: Annotated[
        str, typer.Argument(help=f"What to measure: {', '.join(GOALS)}; all; table.", show_default="list them")
    ] = "",
    data: Annotated[
        Path, typer.Option(help="Folder with the public cases (*.jsonl).", show_default="../shared/bench")
    ] = SHARED_CASES,
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write the result to this file.")] = None,
    only: Annotated[str, typer.Option(help="Of all, these alone, separated by commas.", show_default="all")] = "",
    results: Annotated[
        Path | None, typer.Option(help="Where results are kept.", show_default="benchmarks/results, quick ones below")
    ] = None,
    *,
    quick: Annotated[bool, typer.Option("--quick", help="A smaller run that ends within a minute.")] = False,
) -> None:
    """Measure one thing and print it beside its goals; or `all`, each kept as a file; or write the `table` of those.

    Each benchmark reads only the files it needs from --data and says which are missing. Examples:

    python -m benchmarks join --quick

    python -m benchmarks dedup --data ~/cases --json dedup.json

    python -m benchmarks all --only recall,wording

    python -m benchmarks table
    """
    folder = results or (KEPT / "quick" if quick else KEPT)
    if name == "table":
        print("\n".join(write_pages(folder)))
    elif name == "all":
        raise typer.Exit(run_all(chosen(only), data=data, results=folder, quick=quick))
    elif name:
        measure_one(name, data, json_file, quick=quick)
    else:
        print(listing())


def chosen(only: str) -> list[str]:
    """Return the benchmarks named, in the order of the list; all where none is."""
    named = {name.strip() for name in only.split(",") if name.strip()}
    if unknown := named - GOALS.keys():
        raise typer.BadParameter(f"there is no benchmark {', '.join(sorted(unknown))}", param_hint="--only")
    return [name for name in GOALS if not named or name in named]


def measure_one(name: str, data: Path, json_file: Path | None, *, quick: bool) -> None:
    """Measure one thing, keep it in `json_file` if there is one, and print it."""
    if name not in GOALS:
        known = f"{', '.join(GOALS)}, all, table"
        raise typer.BadParameter(f"there is no benchmark {name!r}; choose from {known}", param_hint="NAME")
    code = commit(ROOT)
    try:
        measured = import_module(f"benchmarks.{name}").run(data=data, quick=quick)
    except (NousError, FileNotFoundError) as error:
        print(f"{name} was not measured: {error}", file=sys.stderr)
        raise typer.Exit(1) from error
    result = described(name, measured, code=code, quick=quick)
    if json_file is not None:
        write(result, json_file)
    show(result, Console())
    if name in GATES and (harm := [metric for metric in forbidden(name) if result["metrics"][metric]]):
        print(f"{name}: {', '.join(harm)} must be 0", file=sys.stderr)
        raise typer.Exit(1)


def forbidden(name: str) -> list[str]:
    """Return the metrics of a benchmark of which there may be none."""
    return [metric for metric, goal in GOALS[name].items() if goal.is_ceiling and not goal.bound]


def listing() -> str:
    """Return one line for each benchmark: its name and what reaching its goals would mean."""
    return "\n".join(
        f"{name}: " + ", ".join(f"{metric} {goal}" for metric, goal in goals.items()) for name, goals in GOALS.items()
    )


def show(result: dict[str, Any], console: Console) -> None:
    """Print metrics with goals met or not met, then the peers and the notes."""
    goals = GOALS[result["name"]]
    table = Table(title=f"{result['name']} · {result['commit']} · {result['date']}", caption=result["machine"])
    for heading in ("metric", "measured", "goal", ""):
        table.add_column(heading, justify="left" if heading in {"metric", ""} else "right")
    for metric, value in result["metrics"].items():
        goal = goals.get(metric)
        verdict = "" if goal is None else "met" if goal.is_met_by(value) else "[bold]not met"
        table.add_row(metric, readable(value) + interval(value), "" if goal is None else str(goal), verdict)
    for metric in goals.keys() - result["metrics"].keys():
        table.add_row(metric, "-", str(goals[metric]), "not measured")
    for peer, value in result["peers"].items():
        table.add_row(f"[dim]{peer}", readable(value) if isinstance(value, METRIC_KINDS) else str(value), "", "")
    console.print(table)
    for note in result["notes"]:
        console.print(f"· {note}", highlight=False)


def interval(value: float) -> str:
    """Write the 95 % interval of a figure that has one, and on how many cases it rests."""
    return f"  [{value.low:.3g}, {value.high:.3g}] n {value.n}" if isinstance(value, Estimate) else ""


def readable(value: float) -> str:
    """Write a number with four significant digits."""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"


if __name__ == "__main__":
    typer.run(measure)
