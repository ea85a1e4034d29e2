"""Run benchmarks one after another, each in a process of its own, and keep what they measured."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import perf_counter

from benchmarks.results import ROOT, Result, is_of_this_code, read
from nous_online.processes import child_environment, python_module

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
