"""Processes that begin as copies of this one, where a test is about another process and not about how one starts.

Python and what it imports take a second or two; a copy has all of that. It opens connections of its own, and may be
killed.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from multiprocessing.context import ForkProcess
from typing import Any, Self

from nous_online.core.settings import settings
from nous_online.interfaces.cli import main
from nous_online.language.minilm import LocalMiniLM

TWINS = multiprocessing.get_context("fork")
Say = Callable[[object], None]


def begun(work: Callable[[], object]) -> ForkProcess:
    """Begin a copy of this process that does one thing."""
    process = TWINS.Process(target=work)
    with warnings.catch_warnings():
        # Newer versions of Python warn of locks that other threads hold: those that run beside a test hold none.
        warnings.simplefilter("ignore", DeprecationWarning)
        process.start()
    return process


class Twin:
    """A copy of this process that does one thing, and what it said meanwhile."""

    def __init__(self, work: Callable[[Say], object]) -> None:
        self._heard, said = multiprocessing.Pipe(duplex=False)
        self.process = begun(lambda: work(said.send))
        said.close()

    def hears(self) -> Any:
        """Return what it says next; raise `EOFError` when it has ended."""
        return self._heard.recv()

    def end(self, *, timeout_s: float = 60) -> tuple[int | None, list[Any]]:
        """Wait for its end, and return its exit code, and all it said that was not heard yet."""
        said = list(self._rest())
        self.process.join(timeout_s)
        self._heard.close()
        return self.process.exitcode, said

    def _rest(self) -> Iterator[Any]:
        while True:
            try:
                yield self.hears()
            except EOFError:
                return


class NousTwin:
    """`nous` in a copy of this process, with pipes in place of the standard streams, for an eighth of what it costs.

    Many texts at once are read by threads that do not come along: what imports or works them off has to be started.
    """

    def __init__(self, *arguments: str, environment: Mapping[str, str]) -> None:
        LocalMiniLM().load()  # here and once, not in each copy
        (their_in, our_in), (our_out, their_out), (our_err, their_err) = (os.pipe() for _ in range(3))
        theirs, ours = (their_in, their_out, their_err), (our_in, our_out, our_err)
        self._process = begun(lambda: run_nous(arguments, environment, theirs, ours))
        for descriptor in theirs:
            os.close(descriptor)
        self.stdin, self.stdout, self.stderr = open(our_in, "w"), open(our_out), open(our_err)  # noqa: PTH123, SIM115

    def __enter__(self) -> Self:
        return self

    def __exit__(self, failure: type[BaseException] | None, *_: object) -> None:
        if failure:
            self._process.kill()
        self.communicate()

    def send_signal(self, number: int) -> None:
        """Send it a signal."""
        os.kill(self._process.pid or 0, number)

    def wait(self, timeout: float = 60) -> int | None:
        """Wait for its end, and return its exit code."""
        self._process.join(timeout)
        return self.returncode

    def communicate(self, timeout: float = 60) -> tuple[str, str]:
        """Say no more, wait for its end or make it, and return what it wrote that was not read yet."""
        out = err = ""
        if not self.stdin.closed:
            with self.stdout, self.stderr, ThreadPoolExecutor() as readers:  # it may fill either pipe first
                self.stdin.close()
                both = [readers.submit(stream.read) for stream in (self.stdout, self.stderr)]
                if wait(both, timeout).not_done:
                    self._process.kill()
                out, err = (each.result() for each in both)
        self.wait(timeout)
        return out, err

    @property
    def returncode(self) -> int | None:
        """Return its exit code, None while it runs."""
        return self._process.exitcode


def run_nous(
    arguments: Sequence[str], environment: Mapping[str, str], streams: Sequence[int], others: Sequence[int]
) -> None:
    """Run the command line as a process does that has just begun."""
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
    for descriptor in (*streams, *others):
        os.close(descriptor)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w", buffering=1)  # noqa: SIM115
    variables = {**environment, "TOKENIZERS_PARALLELISM": "false"}  # it may be the variables of this process
    os.environ.clear()
    os.environ.update(variables)
    # A new process has no handlers; those of a server that ran in this one would write what it has served.
    for logger in (logging.getLogger(), *logging.getLogger().manager.loggerDict.values()):
        if isinstance(logger, logging.Logger):
            logger.handlers.clear()
            logger.propagate = True
    warnings.simplefilter("ignore")
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    settings.cache_clear()
    sys.argv = ["nous", *arguments]
    main()
