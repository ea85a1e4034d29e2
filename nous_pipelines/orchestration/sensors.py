"""What the daemon looks after between the nights: closed episodes, events, fresh facts, and what Claude answered.

The work is done inside the tick, in the code server, where the models stay loaded: a run would take longer to start
than an episode takes to complete, would wait for a night to end, and would leave thirty events in Dagster's log.
"""

from __future__ import annotations

import atexit
from contextlib import ExitStack
from functools import cache
from typing import TYPE_CHECKING

import dagster as dg

from nous_online.core.errors import DeadlineExceeded, Unavailable

if TYPE_CHECKING:
    from nous_online.queue.worker import Round, Staff
    from nous_pipelines.orchestration.fresh_facts import Scanned

EVERY_S = 5
TICK_S = 20.0  # Dagster ends a tick after 60 s; what is not done by then is due at the next one
COLLECT_S = 15.0  # as short, for the sensors take turns
ERASING_S = 2.0
"""How long an erasing at work is waited for; the next look is a minute away."""
OPENED = ExitStack()


@dg.sensor(
    minimum_interval_seconds=EVERY_S,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Completes closed episodes (title, summary, facts, procedures, censors) and delivers events.",
)
def closed_episodes(context: dg.SensorEvaluationContext) -> dg.SkipReason:
    try:
        done = staff_of_this_process().look(seconds=TICK_S)
    except Unavailable:
        let_go()  # the server may come back elsewhere
        raise
    if done.failed:
        raise dg.Failure(in_words(done))
    return dg.SkipReason(in_words(done))


@dg.sensor(
    minimum_interval_seconds=30,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Compares facts learned since its last look with those near them, and opens the contradictions found.",
)
def fresh_facts(context: dg.SensorEvaluationContext) -> dg.SkipReason:
    from nous_online.language.pairs.judging import OfflineJudge
    from nous_pipelines.orchestration.fresh_facts import scan_fresh_facts

    try:
        scanned = scan_fresh_facts(staff_of_this_process().night, OfflineJudge(), seconds=TICK_S)
    except Unavailable:
        let_go()  # the server may come back elsewhere
        raise
    if scanned.delayed:
        raise dg.Failure(told(scanned))
    return dg.SkipReason(told(scanned))


@dg.sensor(
    minimum_interval_seconds=60,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Brings home what Claude answered about pairs: verdicts for the next night. It changes no memory.",
)
def batch_results() -> dg.SkipReason:
    from nous_online.core.settings import settings
    from nous_online.memories.erasure import copying
    from nous_pipelines.batches.batch_rows import unfinished
    from nous_pipelines.batches.second_judge import SecondJudge
    from nous_pipelines.orchestration.instance import home_folder

    second = SecondJudge.collector(settings())
    if second is None:
        return dg.SkipReason("Claude is not asked: there is no key")
    try:
        night = staff_of_this_process().night
        if not unfinished(night):
            return dg.SkipReason("no batch is open")
        with ExitStack() as held:
            try:
                held.enter_context(copying(night.url, wait_s=ERASING_S))
            except DeadlineExceeded:
                return dg.SkipReason("memories are being erased; what Claude answered is brought home afterwards")
            return dg.SkipReason(second.look(night, home_folder(), seconds=COLLECT_S).words)
    except Unavailable:
        let_go()  # the server may come back elsewhere
        raise


def told(scanned: Scanned) -> str:
    """Return what a look at fresh facts came to, and whose have to wait and why."""
    found = f"{scanned.facts} fresh facts in {scanned.pairs} pairs, {scanned.opened} contradictions opened"
    said = [found if scanned.facts else "no fresh facts"]
    said += [
        f"the facts of agent {agent_id!r} have to wait: {why}" for agent_id, why in sorted(scanned.delayed.items())
    ]
    return "; ".join(said)


def in_words(done: Round) -> str:
    """Return what a look did, and whose work failed and why."""
    said = (
        [f"{done.completed} episodes completed, {done.delivered} events delivered"]
        if done.worked
        else ["nothing is due"]
    )
    said += [f"agent {agent_id!r} was passed over: {why}" for agent_id, why in done.skipped.items()]
    said += [
        f"the work of agent {agent_id!r} failed and is tried again: {why}" for agent_id, why in done.failed.items()
    ]
    return "; ".join(said)


@cache
def staff_of_this_process() -> Staff:
    """Return connections and models, opened by the first tick and kept for the next."""
    from nous_online.queue.worker import staff

    return OPENED.enter_context(staff())


def let_go() -> None:
    """Give the connections back; the next tick opens them anew."""
    staff_of_this_process.cache_clear()
    OPENED.close()


atexit.register(let_go)
