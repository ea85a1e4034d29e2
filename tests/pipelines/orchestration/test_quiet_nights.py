"""Nights with nothing to do are not run, and a history ends as if they had been."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import dagster as dg
import psycopg
import pytest
from conftest import ScriptedJudge, WordEmbedder
from dagster import DagsterInstance
from examples import examples
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from lives_of_nights import Life, life, rows_of
from night_runs import NIGHT, options, remember, store_in_time

from nous_online.core.errors import NotFound
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.memories.episodes import new_episode, store_deferred
from nous_pipelines.orchestration.code_location import ASSETS
from nous_pipelines.orchestration.quiet_nights import find_quiet_nights
from nous_pipelines.orchestration.running import NightOptions, nights_to_run, read_report, run_night, run_nights

FIRST = date(2026, 3, 1)
COUNT = 9
NIGHTS = [FIRST + timedelta(days=offset) for offset in range(COUNT)]
POLICY = {
    "candidate_similarity": 0.7, "neighbour_similarity": 0.6, "summary_after_days": 4, "compressed_after_days": 5,
    "fossil_after_days": 7, "superseded_grace_days": 4, "unused_after_days": 4, "unused_asked_days": 1,
    "unused_return_share": 1.0, "probe_days": 4,
}  # fmt: skip
"""Ages short enough for all of them to be reached, and so far apart that the nights before some of them are quiet."""
TEXTS = (
    "The office opens at nine.", "The office opens at nine", "The office opens at ten.", "Cats like fish.",
    "Backups are kept for 30 days.", "Backups are kept for 14 days.", "Rain falls in Lima.",
)  # fmt: skip
DAY = st.integers(0, 1)
FACTS = st.lists(st.tuples(st.sampled_from((0, 1, 5)), st.sampled_from(TEXTS)), min_size=3, max_size=8)
EPISODES = st.lists(DAY, min_size=1, max_size=3)
RECALLS = st.lists(st.tuples(DAY, st.integers(0, 9), st.booleans()), max_size=4)
CENSORS = st.lists(st.tuples(DAY, st.integers(1, 7)), max_size=1)


def at(day: int, hour: int = 9) -> datetime:
    return datetime.combine(FIRST + timedelta(days=day), time(hour), UTC)


def happens(url: str, drawn: dict[str, Any]) -> None:
    """Tell the agent a drawn history, in time."""
    database = Database(url)
    heart = Heart.open(
        "aria", database=database, embedder=WordEmbedder(), judge=ScriptedJudge(), works_in_background=False
    )
    heart.learn_deferred([
        (text, {"learned_at": at(day, 8 + place), "idempotency_key": f"f{place}"})
        for place, (day, text) in enumerate(drawn["facts"])
    ])  # fmt: skip
    told = [
        new_episode(f"We met in room {place}.\nIt rained all day.", {
            "title": f"Meeting {place}", "summary": "We met.", "started_at": at(day, 12),
            "idempotency_key": f"e{place}",
        }, now=at(day, 13))
        for place, day in enumerate(drawn["episodes"])
    ]  # fmt: skip
    store_deferred(heart.agent, told, heart.agent.deadline(None))
    for place, (day, days) in enumerate(drawn["censors"]):
        heart.add_censor(f"drop table {place}", "it is gone then", learned_at=at(day), expires_at=at(day + days))
    heart.close()
    database.close()
    with psycopg.connect(url, autocommit=True) as owner:
        store_in_time(owner)
        for day, number, is_cited in drawn["recalls"]:
            recalled(owner, at(day, 20), number, is_cited=is_cited)


def recalled(owner: psycopg.Connection, moment: datetime, number: int, *, is_cited: bool) -> None:
    """Store that a fact was recalled, and whether it was of use."""
    facts = owner.execute("select id from heart.facts order by id").fetchall()
    ids = [facts[number % len(facts)][0]]
    cited, ignored = (ids, []) if is_cited else ([], ids)
    owner.execute(
        "insert into heart.recalls (agent_id, recalled_at, query, result_limit, result_ids, cited_ids, ignored_ids)"
        " values ('aria', %s, 'a question', 5, %s, %s, %s)",
        [moment, ids, cited, ignored],
    )
    owner.execute(
        "insert into heart.usage values ('aria', %s, 'fact', 1, %s, %s, %s) on conflict (agent_id, memory_id) do update"
        " set retrieved_count = usage.retrieved_count + 1, cited_count = usage.cited_count + excluded.cited_count,"
        " ignored_count = usage.ignored_count + excluded.ignored_count,"
        " last_used_at = greatest(usage.last_used_at, excluded.last_used_at)",
        [ids[0], len(cited), len(ignored), moment],
    )


def figures(one: Life) -> list[str]:
    """Return how the store stood after each night, in order."""
    with psycopg.connect(one.url) as owner:
        return sorted(rows_of(owner, "lifecycle.health", ("measured_at",)))


def ran_without_quiet_nights(nights: Sequence[date], run: NightOptions, instance: DagsterInstance) -> list[date]:
    """Run nights in order as a backfill does, and return those that ran."""

    class NobodyStops:
        def is_asked(self) -> bool:
            return False

        def rest(self, seconds: float) -> None:
            raise AssertionError(f"nothing is waited for, but {seconds} s were")

    outcomes = run_nights(
        nights,
        lambda night: run_night(night, run, instance=instance),
        stop=NobodyStops(),
        tell=lambda _: None,
        find_quiet=lambda night, later: find_quiet_nights(night, later, run, instance=instance),
    )
    ran = []
    for outcome in outcomes:
        assert outcome.is_success, outcome.failures
        ran.append(outcome.night)
    return ran


@settings(
    max_examples=examples(1),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # making a history smaller takes minutes
)
@given(drawn=st.fixed_dictionaries({"facts": FACTS, "episodes": EPISODES, "recalls": RECALLS, "censors": CENSORS}))
def test_a_history_without_its_quiet_nights_ends_as_one_with_all_of_them(
    drawn: dict[str, Any], server: Any, template: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    homes = [tmp_path_factory.mktemp(name) for name in ("every", "some")]
    with (
        life(server, template, homes[0], policy=POLICY) as every,
        life(server, template, homes[1], policy=POLICY) as some,
    ):
        for one in (every, some):
            happens(one.url, drawn)
        for night in NIGHTS:
            every.sleep(night)

        ran = ran_without_quiet_nights(NIGHTS, some.options, some.instance)

        assert some.state() == every.state()
        assert figures(some) == figures(every)
        assert ran[-1] == NIGHTS[-1]
        assert len(ran) < COUNT


DAYS = 7


@dataclass(frozen=True)
class Month:
    """The first nights after two facts were learned: which of them ran, and where."""

    heart: Heart
    options: NightOptions
    instance: DagsterInstance
    ran: list[date]


@pytest.fixture(scope="module")
def month(
    copy_of: Callable[[str], AbstractContextManager[str]], template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Month]:
    """One month for all tests that look at what its quiet nights left."""
    with (
        copy_of(template) as url,
        closing(Database(url)) as database,
        dg.DagsterInstance.ephemeral() as instance,
        Heart.open(
            "aria", database=database, embedder=WordEmbedder(), judge=ScriptedJudge(), works_in_background=False
        ) as heart,
    ):
        remember(heart, "Cats like fish.", "Rain falls in Lima.")
        nights = [NIGHT + timedelta(days=day) for day in range(DAYS)]
        chosen = options(url, tmp_path_factory.mktemp("month"))
        yield Month(heart, chosen, instance, ran_without_quiet_nights(nights, chosen, instance))


def test_no_partition_of_a_quiet_night_is_missing_and_none_is_left_to_run(month: Month) -> None:
    assert month.ran == [NIGHT, NIGHT + timedelta(days=DAYS - 1)]
    every = {(NIGHT + timedelta(days=day)).isoformat() for day in range(DAYS)}
    assert all(month.instance.get_materialized_partitions(asset.key) == every for asset in ASSETS)


def test_no_night_is_quiet_where_all_are_to_be_full(month: Month) -> None:
    later = [NIGHT + timedelta(days=day) for day in range(1, DAYS)]

    assert find_quiet_nights(NIGHT, later, replace(month.options, is_full=True), instance=month.instance) == []
    assert find_quiet_nights(NIGHT, later, month.options, instance=month.instance) != []


def test_the_figures_of_a_quiet_night_leave_none_to_run_but_for_what_comes_late(month: Month) -> None:
    over = datetime.combine(NIGHT + timedelta(days=DAYS), time(3), UTC)

    assert [night for night in nights_to_run(month.options, now=over) if night >= NIGHT] == []

    late = NIGHT + timedelta(days=4)
    month.heart.learn_deferred([("Snow falls in Oslo.", {"learned_at": datetime.combine(late, time(9), UTC)})])
    assert [night for night in nights_to_run(month.options, now=over) if night >= NIGHT] == [late]


def test_the_report_of_a_quiet_night_names_the_one_that_ran_before(month: Month) -> None:
    with pytest.raises(NotFound, match=f"2026-06-05 was quiet: .*as after night {NIGHT}"):
        read_report(date(2026, 6, 5), month.options)
    with pytest.raises(NotFound, match="has not run here"):
        read_report(date(2026, 7, 9), month.options)
