"""A text that never ends being read: it costs one child process its life, and nobody else a second."""

from __future__ import annotations

import os
import re
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import psutil
import pytest
from conftest import WordEmbedder
from stopwatch import stopwatch

from nous_online.core.deadline import within
from nous_online.core.errors import DeadlineExceeded, InvalidInput, Unavailable
from nous_online.heart import Heart
from nous_online.language.writing import child
from nous_online.language.writing.child import CHILDREN, Children
from nous_online.language.writing.writer import EndedEpisode, OfflineWriter

ENDLESS = (re.fullmatch, "(a|a)*b", "a" * 60)
"""Holds its interpreter for years, so that no thread of its process comes to anything."""
TALK = "Ana: We moved the billing service to Postgres in March.\nBen: Backups are kept for 30 days from now on.\n" * 20


@pytest.fixture
def children() -> Iterator[Children]:
    made = Children(seconds=2, most=2)
    yield made
    made.end()


@pytest.fixture
def hasty() -> Iterator[Children]:
    """Children that are given half as long: for what takes all of it."""
    made = Children(seconds=1, most=2)
    yield made
    made.end()


def pid(children: Children) -> int:
    return children.call(os.getpid)


def fails(children: Children, function: Any, *arguments: Any) -> None:
    with pytest.raises(DeadlineExceeded):
        children.call(function, *arguments)


def test_a_child_does_what_it_is_asked_and_stays_for_the_next(children: Children):
    first = pid(children)

    assert children.call(sorted, [3, 1, 2]) == [1, 2, 3]
    assert first != os.getpid()
    assert pid(children) == first


def test_what_a_function_raises_in_a_child_is_raised_here(children: Children):
    first = pid(children)

    with pytest.raises(ZeroDivisionError):
        children.call(divmod, 1, 0)
    assert pid(children) == first


def test_an_endless_search_is_ended_at_its_deadline_and_the_next_text_is_read(hasty: Children):
    first = pid(hasty)
    took_s = stopwatch()

    with pytest.raises(DeadlineExceeded, match="longer than 1 s"):
        hasty.call(*ENDLESS)

    assert took_s() < 8
    assert not psutil.pid_exists(first)
    assert hasty.call(len, "abc") == 3


def test_this_process_goes_on_while_a_child_is_stuck(hasty: Children):
    stuck = threading.Thread(target=fails, args=(hasty, *ENDLESS))
    pauses: list[float] = []
    stuck.start()

    while stuck.is_alive():
        began = time.monotonic()
        time.sleep(0.01)
        pauses.append(time.monotonic() - began)

    assert len(pauses) > 20
    assert statistics.median(pauses) < 0.1  # one pause may be the machine's; the stuck child's would be all of them


@contextmanager
def all_busy(children: Children) -> Iterator[None]:
    """Occupy both children of a pool, until the end of the block or their deadline."""
    stuck = [threading.Thread(target=fails, args=(children, time.sleep, 60)) for _ in "ab"]
    for thread in stuck:
        thread.start()
    time.sleep(0.3)
    yield
    for thread in stuck:
        thread.join()


def test_texts_beyond_those_read_at_once_wait_their_turn_and_all_are_read(children: Children):
    with ThreadPoolExecutor(8) as threads:
        read = list(threads.map(lambda _: children.call(time.sleep, 0.1), range(8)))

    assert read == [None] * 8


def test_a_text_waits_for_one_that_is_stuck_until_that_is_ended(hasty: Children):
    with all_busy(hasty):
        assert hasty.call(len, "abc") == 3


def test_the_text_that_waited_longest_is_read_first():
    alone, order = Children(seconds=5, most=1), list[int]()

    def read(place: int) -> None:
        alone.call(time.sleep, 0.4)
        order.append(place)

    with ThreadPoolExecutor(4) as threads:
        for place in range(4):
            threads.submit(read, place)
            time.sleep(0.1)
    alone.end()

    assert order == [0, 1, 2, 3]


def test_a_text_for_which_no_child_is_free_in_time_is_refused_as_in_an_outage(children: Children):
    with all_busy(children):
        took_s = stopwatch()
        # Not the `DeadlineExceeded` of `within`, which counts as a failure of the text.
        with pytest.raises(Unavailable, match=r"2 other texts were being read for 0\.[78]") as refused:
            within(1.6, lambda: children.call(len, "abc"), name="writer")
        assert took_s() < 1.6

    assert not isinstance(refused.value, DeadlineExceeded)
    assert children.call(len, "abc") == 3


def test_a_child_that_was_killed_meanwhile_is_replaced(children: Children):
    first = pid(children)
    os.kill(first, signal.SIGKILL)
    while psutil.Process(first).status() != psutil.STATUS_ZOMBIE:
        time.sleep(0.01)

    assert pid(children) != first


def test_a_child_that_is_stopped_is_ended_too(hasty: Children, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(child, "GRACE_S", 0.1)
    first = pid(hasty)
    os.kill(first, signal.SIGSTOP)

    with pytest.raises(DeadlineExceeded):
        hasty.call(len, "abc")

    assert not psutil.pid_exists(first)


def test_a_child_sees_no_secret_and_runs_nothing_from_the_folder_it_was_started_in(
    children: Children, monkeypatch: pytest.MonkeyPatch, tmp_path
):
    (tmp_path / "signal.py").write_text("raise SystemExit('foreign code ran')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-secret")
    monkeypatch.setenv("NOUS_DATABASE_URL", "postgresql://nous:secret@db/nous")

    assert children.call(os.getcwd) == "/"
    assert children.call(os.getenv, "ANTHROPIC_API_KEY") is None
    assert children.call(os.getenv, "NOUS_DATABASE_URL") is None
    assert children.call(eval, "__import__('sys').flags.safe_path") is True


def test_children_end_with_the_process_that_started_them(tmp_path):
    program = (
        "import os, sys, time\n"
        "from nous_online.language.writing.child import CHILDREN\n"
        "print(CHILDREN.call(os.getpid), flush=True)\n"
        "time.sleep(60)\n"
    )
    parent = subprocess.Popen([sys.executable, "-P", "-c", program], stdout=subprocess.PIPE, text=True, cwd=tmp_path)
    assert parent.stdout is not None
    first = psutil.Process(int(parent.stdout.readline()))

    parent.kill()
    parent.communicate()

    assert psutil.wait_procs([first], timeout=10)[1] == []


def test_a_forked_process_starts_a_child_of_its_own(children: Children):
    first = pid(children)
    reader, writer = os.pipe()
    forked = os.fork()
    if forked == 0:
        child.CHILDREN.forget()
        children.forget()
        own = children.call(os.getpid)
        children.end()
        os.write(writer, str(own).encode())
        os._exit(0)
    os.waitpid(forked, 0)

    assert int(os.read(reader, 20)) != first
    assert pid(children) == first
    os.close(reader)
    os.close(writer)


def test_an_episode_is_written_alike_here_and_in_a_child(children: Children):
    told = EndedEpisode(TALK, title=None, outcome="failure", lessons=("Never restart the broker before the drain.",))

    apart = OfflineWriter(WordEmbedder(), call=children.call).write(told)

    assert apart == OfflineWriter(WordEmbedder()).write(told)
    assert apart.facts


def test_an_episode_without_detail_is_refused_as_ever(children: Children):
    with pytest.raises(InvalidInput, match="no detail"):
        OfflineWriter(WordEmbedder(), call=children.call).write(EndedEpisode(" "))


def test_a_heart_has_its_episodes_read_by_a_child(heart: Heart):
    own = Heart.open(
        "aria",
        database=heart.agent.database,
        embedder=WordEmbedder(),
        judge=heart.agent.judge,
        works_in_background=False,
    )
    episode = own.record_episode(TALK)
    CHILDREN.end()

    assert own.work(deadline_s=30).completed == 1

    assert own.get_episode(episode.id).title
    assert any("nous_online.language.writing" in " ".join(each.cmdline()) for each in psutil.Process().children())
