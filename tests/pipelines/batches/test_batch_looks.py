"""One look at several open batches: what is in the way of one keeps no other from coming home."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from batch_answers import answering, is_canary
from batch_life import AT_NINE, FISH, NINE, VERDICTS, bring_home, rows_in, send_all, states, verdicts_in
from conftest import ScriptedJudge, WordEmbedder
from night_runs import remember

from benchmarks.anthropic_server import BatchPlay, LocalAnthropic, Play, PlayRoute
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.language.claude.client import Claude
from nous_pipelines import failpoints
from nous_pipelines.batches.batch_rows import given_up, unfinished
from nous_pipelines.batches.collecting import KEPT_FOR, LOST_AFTER, Collected, collect

AGENTS = ("aria", "ben", "cleo")


@pytest.fixture
def api() -> Iterator[LocalAnthropic]:
    with LocalAnthropic(answer=answering(VERDICTS)) as server:
        yield server


@pytest.fixture
def night(database_url: str) -> Iterator[Database]:
    opened = Database(database_url, role="nous_night")
    yield opened
    opened.close()


@pytest.fixture
def hearts(database: Database, embedder: WordEmbedder, judge: ScriptedJudge) -> dict[str, Heart]:
    """Three agents, with one pair each to ask about."""
    opened = {
        name: Heart.open(name, database=database, embedder=embedder, judge=judge, works_in_background=False)
        for name in AGENTS
    }
    for each in opened.values():
        remember(each, NINE, AT_NINE)
    return opened


@pytest.mark.usefixtures("hearts")
class TestOneLook:
    def test_a_row_nobody_foresaw_is_told_and_the_next_one_comes_home(self, night, api, owner, tmp_path):
        send_all(night, api.url, *AGENTS)
        first = rows_in(owner)[0]
        owner.execute("update heart.llm_requests set request = '{\"pairs\": [[]]}' where id = %s", [first["id"]])

        done = bring_home(night, api.url, tmp_path)

        assert (done.imported, done.waiting, states(owner)) == (2, 1, ["ended", "imported", "imported"])
        assert first["batch_id"] in done.troubles[0]

    def test_credit_that_runs_out_in_a_batch_is_told_and_its_pairs_are_asked_again(self, night, api, owner, tmp_path):
        empty = Play(outcome="errored", error="invalid_request_error", message="Your credit balance is too low.")
        api.play_batches(BatchPlay(each=lambda _, request: Play() if is_canary(request) else empty))
        send_all(night, api.url)

        done = bring_home(night, api.url, tmp_path)

        assert (done.imported, done.verdicts, verdicts_in(owner)) == (1, 0, [])
        assert "credit balance" in done.told[0]
        assert "credit balance" in rows_in(owner)[0]["error"]
        assert send_all(night, api.url).pairs == 1

    def test_a_batch_that_can_not_be_asked_for_now_holds_no_other_up(self, night, api, owner, tmp_path):
        send_all(night, api.url, *AGENTS)
        api.play(*[Play(status=503)] * 3, route=PlayRoute.GET_BATCH)

        done = bring_home(night, api.url, tmp_path)

        assert (done.imported, done.waiting, len(done.troubles)) == (2, 1, 1)

    def test_when_two_in_a_row_can_not_be_asked_for_the_look_is_over(self, night, api, tmp_path):
        send_all(night, api.url, *AGENTS)
        api.play_always(Play(status=402), route=PlayRoute.GET_BATCH)

        done = bring_home(night, api.url, tmp_path)

        assert (done.imported, len(done.troubles), len(api.asked(PlayRoute.GET_BATCH))) == (0, 2, 2)

    def test_what_is_only_to_be_deleted_comes_last(self, night, api, owner, tmp_path, hearts):
        api.play(*[Play(status=500)] * 3, route=PlayRoute.DELETE_BATCH)
        send_all(night, api.url, "aria")
        bring_home(night, api.url, tmp_path)
        remember(hearts["ben"], FISH)
        send_all(night, api.url, "ben")

        assert [row.state for row in unfinished(night)] == ["submitted", "imported"]

    def test_deleting_a_batch_late_does_not_make_it_the_latest_one(self, night, api, owner, tmp_path):
        api.play(*[Play(status=500)] * 3, route=PlayRoute.DELETE_BATCH)
        send_all(night, api.url, "aria")
        bring_home(night, api.url, tmp_path)
        before = rows_in(owner)[0]["updated_at"]

        bring_home(night, api.url, tmp_path)

        assert (api.batches, rows_in(owner)[0]["updated_at"]) == ({}, before)

    def test_a_look_that_comes_second_does_not_say_that_a_batch_was_given_up(
        self, night, api, owner, tmp_path, monkeypatch
    ):
        quicker: list[Collected] = []

        def look_first(point: str) -> None:
            if point == "batch ended":
                monkeypatch.undo()
                quicker.append(bring_home(night, api.url, tmp_path))

        send_all(night, api.url, "aria")
        monkeypatch.setattr(failpoints, "on_reach", look_first)
        second = bring_home(night, api.url, tmp_path, after=LOST_AFTER)

        assert [look.imported for look in quicker] == [1]
        assert (second, states(owner)) == (Collected(), ["imported"])

    def test_what_is_given_up_is_deleted_at_the_api(self, night, api, owner, tmp_path):
        send_all(night, api.url, "aria")
        api.play(Play(status=403), route=PlayRoute.BATCH_RESULTS)

        done = bring_home(night, api.url, tmp_path, after=LOST_AFTER)

        assert (done.failed, states(owner), api.batches) == (1, ["failed"], {})
        assert given_up(night, "aria", since=datetime.now(UTC) - KEPT_FOR) == []

    def test_a_batch_made_long_after_a_wish_is_not_looked_into_for_it(self, night, api, owner, tmp_path):
        send_all(night, api.url, "aria")
        owner.execute("delete from heart.llm_requests")
        api.play(Play(status=503), route=PlayRoute.CREATE_BATCH)
        send_all(night, api.url, "aria")
        owner.execute("update heart.llm_requests set created_at = now() - interval '3 hours'")

        done = bring_home(night, api.url, tmp_path)

        assert (done.waiting, api.asked(PlayRoute.BATCH_RESULTS)) == (1, [])

    def test_a_batch_that_is_slow_leaves_the_others_time(self, night, api, owner, tmp_path):
        send_all(night, api.url, "aria", "ben")
        api.play(Play(delay_s=30), route=PlayRoute.GET_BATCH)

        done = collect(night, Claude("a-key", base_url=api.url), tmp_path, now=datetime.now(UTC), seconds=6)

        assert (done.imported, done.waiting, states(owner)) == (1, 1, ["submitted", "imported"])
