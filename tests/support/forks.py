"""Processes that a test may kill: each is forked from one that has loaded what a night and a batch need."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import pytest

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["no_collections", "night_preload"])


def started(target: Callable[..., None], *args: Any) -> ForkServerProcess:
    """Start a function of a module in another process."""
    with pytest.MonkeyPatch.context() as patch:
        # The process all are forked from gets no `sys.path`, and passes over what it can't import.
        patch.setenv("PYTHONPATH", os.pathsep.join(sys.path), prepend=os.pathsep)
        forkserver.ensure_running()
    process = FORKS.Process(target=target, args=args)
    process.start()
    return process


def typed_line(arguments: Sequence[str], environment: Mapping[str, str], output: Path) -> None:
    """Run `nous` as a program of its own does, with what it says in a file: for `started`."""
    from nous_online.interfaces.cli import main

    os.environ.update(environment)
    file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(file, 1)
    os.dup2(file, 2)
    sys.argv = ["nous", *arguments]
    main()


def forked(target: Callable[..., None], *args: Any, timeout_s: float = 240) -> int | None:
    """Run a function of a module in another process and return its exit code."""
    process = started(target, *args)
    for each in args:
        if isinstance(each, Connection):
            each.close()  # the other process has its own; the reader sees the end when that one is gone
    process.join(timeout_s)
    return process.exitcode
