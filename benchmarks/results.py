"""Result files: what a benchmark measured, when, where, and at which commit; and runs of several, one after another.

One JSON a benchmark is kept here.
"""

from __future__ import annotations

import json
import math
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any, TypeAlias

from benchmarks.intervals import Estimate
from nous_online.processes import child_environment, python_module

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "benchmarks" / "results"
CODE = (
    "nous_online",
    "nous_pipelines",
    "sql",
    "benchmarks",
    "tests/support/*_actions.py",
    ":(exclude)benchmarks/results",
)
"""What a result depends on: a commit that changes nothing here measures the same."""
DIRTY = "-dirty"
Result: TypeAlias = dict[str, Any]


def described(name: str, measured: dict[str, Any], *, code: str, quick: bool) -> Result:
    """Return what `run` measured at the commit `code` as a result file has it; metrics must be finite numbers."""
    for metric, value in measured["metrics"].items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise TypeError(f"{name}: the metric {metric} is {value!r}, expected a finite number")
    figures = measured["metrics"] | measured["peers"]
    known = {metric: value for metric, value in figures.items() if isinstance(value, Estimate)}
    return {
        "name": name,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": code,
        "machine": machine(),
        "quick": quick,
        "metrics": measured["metrics"],
        "n": {metric: value.n for metric, value in known.items()},
        "intervals": {metric: [round(value.low, 6), round(value.high, 6)] for metric, value in known.items()},
        "peers": measured["peers"],
        "notes": measured["notes"],
    }


def write(result: Result, file: Path) -> None:
    """Write a result at once: whoever stops it finds the file before or the file after, never half of one."""
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_suffix(".tmp")
    unfinished.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    unfinished.replace(file)


def read(folder: Path = KEPT) -> dict[str, Result]:
    """Return the results in a folder by the name of their benchmark, which is the name of the file."""
    return {file.stem: json.loads(file.read_text("utf-8")) for file in sorted(folder.glob("*.json"))}


def commit(folder: Path) -> str:
    """Return the commit that is checked out in `folder`, "-dirty" where code differs from it, "unknown" outside."""
    named = _git(folder, "rev-parse", "--short=12", "HEAD")
    if named.returncode:
        return "unknown"
    changed = _git(folder, "status", "--porcelain", "--untracked-files=no", "--", *CODE)
    return named.stdout.strip() + (DIRTY if changed.stdout.strip() else "")


def is_clean(result: Result) -> bool:
    """Tell whether a result names a commit that has the code it was measured with."""
    return not str(result["commit"]).endswith((DIRTY, "unknown"))


def is_of_this_code(result: Result, folder: Path = ROOT) -> bool:
    """Tell whether a result was measured at a commit whose code is the code that is here."""
    return is_clean(result) and _git(folder, "diff", "--quiet", result["commit"], "--", *CODE).returncode == 0


def _git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603, S607


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


# --- runs ---


INTERRUPTED = 130
"""The exit status of a program that was stopped by Ctrl-C."""


def run_all(names: Sequence[str], *, data: Path, results: Path, quick: bool) -> int:
    """Measure each of `names` that has no result of this code yet; return the exit status.

    One that fails does not stop the others. Ctrl-C waits until the one at work has ended its servers; the next call
    goes on with it.
    """
    left, failed = pending(names, read(results), quick=quick), list[str]()
    for name in names:
        if name not in left:
            print(f"{name}: measured before with this code", flush=True)
    for place, name in enumerate(left, start=1):
        label = f"{place} of {len(left)} · {name}"
        print(f"{label} …", flush=True)
        began = perf_counter()
        status = measure(name, data=data, file=results / f"{name}.json", quick=quick)
        if status == INTERRUPTED:
            print(f"{label}: stopped; the same command goes on with it", flush=True)
            return INTERRUPTED
        print(f"{label}: {'failed' if status else 'done'} after {perf_counter() - began:.0f} s", flush=True)
        failed += [name] if status else []
    print(f"not measured: {', '.join(failed)}" if failed else f"all measured: {results}", flush=True)
    return 1 if failed else 0


def pending(names: Sequence[str], kept: Mapping[str, Result], *, quick: bool, folder: Path = ROOT) -> list[str]:
    """Return those without a result of the code in `folder`; a quick result stands for a quick run alone."""
    done = {name for name, result in kept.items() if result["quick"] <= quick and is_of_this_code(result, folder)}
    return [name for name in names if name not in done]


def measure(name: str, *, data: Path, file: Path, quick: bool) -> int:
    """Measure one in a process of its own, which writes `file`; return its exit status."""
    options = ["--data", str(data.resolve()), "--json", str(file.resolve()), *(["--quick"] if quick else [])]
    command = [*python_module("benchmarks", name), *options]
    environment = child_environment(PYTHONPATH=os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    process = subprocess.Popen(  # noqa: S603 - our own module
        command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL
    )
    try:
        return process.wait()
    except KeyboardInterrupt:  # the terminal told the child too, which now stops its servers
        process.wait()
        return INTERRUPTED
