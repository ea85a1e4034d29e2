from __future__ import annotations

import threading
import time

from nous_online.database.connection import Watchdog


def test_what_is_late_is_cut_once_and_the_block_learns_of_it():
    watchdog, cut = Watchdog(), threading.Event()

    with watchdog.watching(0.05, cut.set) as watch:
        assert cut.wait(5)

    assert watch.has_expired


def test_what_ends_in_time_is_never_cut():
    watchdog, cut = Watchdog(), threading.Event()

    with watchdog.watching(0.05, cut.set) as watch:
        pass
    time.sleep(0.15)

    assert (cut.is_set(), watch.has_expired) == (False, False)


def test_a_short_wait_inside_a_long_one_is_cut_in_its_own_time():
    watchdog, late, early = Watchdog(), threading.Event(), threading.Event()

    with watchdog.watching(60, late.set), watchdog.watching(0.05, early.set):
        assert early.wait(5)

    assert not late.is_set()


def test_one_thread_watches_any_number():
    watchdog, before = Watchdog(), threading.active_count()

    for _ in range(20):
        with watchdog.watching(60, lambda: None), watchdog.watching(30, lambda: None):
            pass

    assert threading.active_count() == before + 1
