"""A batch from the wish to ask until its verdicts are at home, through whatever the network and the API do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from itertools import pairwise

import pytest
from batch_answers import MODEL, answer_json, answering, is_canary, shown_texts
from batch_life import AT_NINE, CATS, FISH, MODELS, NINE, VERDICTS, bring_home, rows_in, send_all, states, verdicts_in
from conftest import ScriptedJudge, WordEmbedder
from night_runs import remember

from benchmarks.anthropic_server import BatchPlay, LocalAnthropic, Play, PlayRoute
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.language.claude.anthropic_api import delete_batch
from nous_online.language.claude.client import Claude

LOST = timedelta(hours=25)


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
def ben(database: Database, embedder: WordEmbedder, judge: ScriptedJudge) -> Heart:
    return Heart.open("ben", database=database, embedder=embedder, judge=judge, works_in_background=False)


@pytest.fixture
def facts(heart: Heart) -> None:
    """Four facts of one agent: three pairs to ask about."""
    remember(heart, NINE, AT_NINE, FISH, CATS)


@pytest.mark.usefixtures("facts")
class TestOneBatch:
    def test_verdicts_come_home_with_what_they_cost(self, night, api, owner, tmp_path):
        sent = send_all(night, api.url)
        before = rows_in(owner)
        done = bring_home(night, api.url, tmp_path)

        (row,) = rows_in(owner)
        assert (sent.batches, sent.pairs, sent.obstacles) == (1, 3, [])
        assert (before[0]["state"], before[0]["cost_usd"]) == ("submitted", 0)
        assert (done.imported, done.verdicts, done.troubles) == (1, 3, ())
        assert verdicts_in(owner) == ["compatible", "same", "same"]
        assert row["state"] == "imported"
        assert 0 < row["cost_usd"] < row["estimated_usd"] == pytest.approx(sent.estimated_usd, abs=1e-6)
        assert row["input_tokens"] > 0 < row["output_tokens"]
        assert row["raw_sha256"]

    def test_what_is_at_home_is_deleted_remotely_and_never_asked_again(self, night, api, owner, tmp_path):
        send_all(night, api.url)
        bring_home(night, api.url, tmp_path)

        again = send_all(night, api.url)

        assert api.batches == {}
        assert (again.batches, len(api.asked(PlayRoute.CREATE_BATCH))) == (0, 1)
        assert bring_home(night, api.url, tmp_path).words == "no batch is open"

    def test_a_pair_on_its_way_is_not_sent_again(self, night, api):
        send_all(night, api.url)

        assert send_all(night, api.url).batches == 0

    def test_no_word_of_a_memory_is_kept_while_it_is_on_its_way(self, night, api, owner):
        send_all(night, api.url)

        kept = json.dumps(rows_in(owner))
        assert [text for text in (NINE, AT_NINE, FISH, CATS, "office", "fish") if text in kept] == []

    def test_each_pair_is_asked_in_a_batch_and_once_more_at_home_where_it_would_retire(self, night, api, tmp_path):
        send_all(night, api.url)
        bring_home(night, api.url, tmp_path)

        (batch,) = api.asked(PlayRoute.CREATE_BATCH)
        shown = [shown_texts(item["params"]) for item in batch["requests"] if not is_canary(item["params"])]
        assert sorted(shown) == sorted(VERDICTS)
        retiring = [pair for pair, verdict in VERDICTS.items() if verdict == "same"]
        assert sorted(map(shown_texts, api.asked(PlayRoute.MESSAGE))) == sorted((b, a) for a, b in retiring)
        assert len({item["custom_id"] for item in batch["requests"]}) == len(batch["requests"])

    def test_shuffled_doubled_and_strange_lines_change_nothing(self, night, api, owner, tmp_path):
        odd = [b'{"custom_id": "', b"null"]
        api.play_batches(BatchPlay(is_shuffled=True, duplicated=(0, 3), unknown=("stranger-1",), extra_lines=odd))

        send_all(night, api.url)
        bring_home(night, api.url, tmp_path)

        (row,) = rows_in(owner)
        assert verdicts_in(owner) == ["compatible", "same", "same"]
        assert [row["request"][name] for name in ("duplicates", "unknown", "broken")] == [2, 1, 2]

    def test_nothing_is_waited_for(self, night, api, owner, tmp_path):
        api.play_batches(BatchPlay(looks=2))
        send_all(night, api.url)

        looks = [bring_home(night, api.url, tmp_path) for _ in range(3)]

        assert [(look.waiting, look.imported) for look in looks] == [(1, 0), (1, 0), (0, 1)]

    def test_one_wrong_canary_and_everything_is_asked_again(self, night, api, owner, tmp_path):
        api.answer_with(lambda _request: answer_json("same", later="b"))
        send_all(night, api.url)
        done = bring_home(night, api.url, tmp_path)
        api.answer_with(answering(VERDICTS))

        again = send_all(night, api.url)

        assert (done.imported, done.verdicts, verdicts_in(owner)) == (1, 0, [])
        assert "nothing of the batch is believed" in done.told[0]
        assert again.pairs == 3
        assert rows_in(owner)[0]["cost_usd"] > 0

    def test_lost_answers_are_asked_again_and_the_others_kept(self, night, api, owner, tmp_path):
        api.play_batches(
            BatchPlay(
                each=lambda custom_id, _: (
                    Play(outcome="expired") if "-0-" in custom_id[12:15] and custom_id[-1] != "c" else Play()
                )
            ),
            BatchPlay(),
        )
        send_all(night, api.url)
        first = bring_home(night, api.url, tmp_path)
        again = send_all(night, api.url)
        second = bring_home(night, api.url, tmp_path)

        assert (first.verdicts, again.pairs, second.verdicts) == (2, 1, 1)
        assert verdicts_in(owner) == ["compatible", "same", "same"]

    def test_a_refusal_is_kept_and_the_other_model_asked_once(self, night, api, owner, tmp_path):
        api.play_batches(
            BatchPlay(each=lambda _, request: Play() if is_canary(request) else Play(stop_reason="refusal")),
            BatchPlay(),
        )
        send_all(night, api.url)
        bring_home(night, api.url, tmp_path)
        kept = verdicts_in(owner)
        again = send_all(night, api.url)
        bring_home(night, api.url, tmp_path)

        assert kept == ["unsure"] * 3
        assert again.pairs == 3
        assert [row["model"] for row in rows_in(owner)] == [MODELS.judge, MODELS.fallback]
        assert verdicts_in(owner, models=[MODELS.fallback]) == ["compatible", "same", "same"]
        assert send_all(night, api.url).batches == 0

    def test_an_answer_cut_short_gets_more_room_once(self, night, api, owner, tmp_path):
        cut = BatchPlay(each=lambda _, request: Play() if is_canary(request) else Play(stop_reason="max_tokens"))
        api.play_batches(cut)

        for _ in range(3):
            send_all(night, api.url)
            bring_home(night, api.url, tmp_path)

        rooms = [
            max(item["params"]["max_tokens"] for item in body["requests"]) for body in api.asked(PlayRoute.CREATE_BATCH)
        ]
        assert len(rooms) == 2
        assert rooms[1] > rooms[0]
        assert verdicts_in(owner) == ["unsure"] * 3

    def test_a_fact_that_reads_otherwise_by_now_gets_no_verdict(self, night, api, owner, tmp_path):
        send_all(night, api.url)
        owner.execute("set session_replication_role = replica")
        owner.execute("update heart.facts set content = 'Cats like milk.' where content = %s", [FISH])

        done = bring_home(night, api.url, tmp_path)

        assert (done.imported, done.verdicts, verdicts_in(owner)) == (1, 1, ["same"])

    def test_types_nobody_knows_are_told_and_asked_again(self, night, api, owner, tmp_path):
        api.play_batches(BatchPlay(each=lambda _, request: Play() if is_canary(request) else Play(outcome="postponed")))
        send_all(night, api.url)

        done = bring_home(night, api.url, tmp_path)

        assert "results of an unknown type: postponed" in done.told[0]
        assert send_all(night, api.url).pairs == 3

    # --- what the network and the API do ---

    def test_a_batch_whose_answer_was_lost_is_found_by_its_custom_ids(self, night, api, owner, tmp_path):
        api.play(Play(is_lost=True), route=PlayRoute.CREATE_BATCH)

        sent = send_all(night, api.url)
        before = states(owner)
        again = send_all(night, api.url)
        done = bring_home(night, api.url, tmp_path)

        assert (len(sent.obstacles), before, again.batches) == (1, ["intent"], 0)
        assert (done.imported, states(owner)) == (1, ["imported"])
        assert len(api.asked(PlayRoute.CREATE_BATCH)) == 1

    def test_while_a_batch_that_may_be_ours_is_in_progress_nothing_is_sent_again(self, night, api, owner, tmp_path):
        api.play_batches(BatchPlay(looks=None))
        api.play(Play(is_lost=True), route=PlayRoute.CREATE_BATCH)
        send_all(night, api.url)

        late = bring_home(night, api.url, tmp_path, after=LOST)
        api.end_batches()
        done = bring_home(night, api.url, tmp_path, after=LOST)

        assert (late.waiting, late.failed, done.imported) == (1, 0, 1)

    def test_a_batch_of_somebody_else_is_looked_into_once_and_left_alone(self, night, api, owner, tmp_path, heart):
        send_all(night, api.url)
        (theirs,) = api.batches
        owner.execute("delete from heart.llm_requests")
        api.play(Play(status=500), route=PlayRoute.CREATE_BATCH)
        send_all(night, api.url)

        looks = [bring_home(night, api.url, tmp_path, after=each) for each in (timedelta(), timedelta(), LOST)]

        assert [(look.waiting, look.failed) for look in looks] == [(1, 0), (1, 0), (0, 1)]
        assert len(api.asked(PlayRoute.BATCH_RESULTS)) == 1
        assert list(api.batches) == [theirs]

    def test_what_never_arrived_is_asked_again_after_a_day(self, night, api, owner, tmp_path):
        api.play(Play(status=503), route=PlayRoute.CREATE_BATCH)
        send_all(night, api.url)

        soon, later = (bring_home(night, api.url, tmp_path, after=each) for each in (timedelta(), LOST))
        again = send_all(night, api.url)

        assert (soon.waiting, later.failed, again.pairs) == (1, 1, 3)
        assert states(owner) == ["failed", "submitted"]

    @pytest.mark.parametrize("status", [400, 401, 403, 413])
    def test_what_the_api_will_not_take_fails_at_once_and_says_why(self, night, api, owner, status):
        api.play(Play(status=status), route=PlayRoute.CREATE_BATCH)

        sent = send_all(night, api.url)

        assert (sent.batches, states(owner)) == (0, ["failed"])
        assert str(status) in sent.obstacles[0]
        assert str(status) in rows_in(owner)[0]["error"]

    def test_at_a_limit_of_the_account_nothing_more_is_sent(self, night, api, owner, ben):
        remember(ben, NINE, AT_NINE)
        api.play(Play(status=402), route=PlayRoute.CREATE_BATCH)

        sent = send_all(night, api.url, "aria", "ben")

        assert (len(sent.obstacles), states(owner)) == (1, ["failed"])

    def test_a_model_that_can_not_be_asked_is_found_out_before_anything_is_sent(self, night, api, owner):
        api.play_always(Play(status=404), route=PlayRoute.GET_MODEL)

        sent = send_all(night, api.url)

        assert "NOUS_JUDGE_MODEL" in sent.obstacles[0]
        assert (states(owner), api.asked(PlayRoute.CREATE_BATCH)) == ([], [])

    def test_where_nothing_is_open_nobody_is_asked_anything(self, night, api, owner, tmp_path):
        send_all(night, api.url)
        bring_home(night, api.url, tmp_path)
        before = len(api.requests)

        sent = send_all(night, api.url)
        bring_home(night, api.url, tmp_path)

        assert (sent.obstacles, len(api.requests)) == ([], before)

    def test_facts_that_are_gone_are_no_obstacle(self, night, api, owner, tmp_path):
        send_all(night, api.url)
        owner.execute("set session_replication_role = replica")
        owner.execute("delete from heart.facts")

        done = bring_home(night, api.url, tmp_path)

        assert (done.imported, done.verdicts, states(owner)) == (1, 0, ["imported"])

    def test_a_download_that_was_cut_is_made_again(self, night, api, owner, tmp_path):
        api.play(Play(cut_at=100), Play(cut_at=2000), Play(cut_at=5), route=PlayRoute.BATCH_RESULTS)
        send_all(night, api.url)

        first, second = (bring_home(night, api.url, tmp_path) for _ in range(2))

        assert [(look.imported, len(look.troubles)) for look in (first, second)] == [(0, 1), (1, 0)]
        assert [path.suffix for path in tmp_path.rglob("*") if path.is_file()] == [".jsonl"]

    def test_a_batch_the_api_does_not_know_any_more_is_given_up(self, night, api, owner, tmp_path):
        send_all(night, api.url)
        (batch_id,) = api.batches
        api.end_batches()
        delete_batch(Claude("a-key", base_url=api.url), batch_id)

        soon = bring_home(night, api.url, tmp_path)
        done = bring_home(night, api.url, tmp_path, after=LOST)

        assert (soon.waiting, soon.failed, batch_id in soon.troubles[0]) == (1, 0, True)
        assert (done.failed, states(owner)) == (1, ["failed"])
        assert send_all(night, api.url).pairs == 3

    def test_a_bad_key_loses_no_batch(self, night, api, owner, tmp_path):
        send_all(night, api.url)
        api.play_always(Play(status=401))

        done = bring_home(night, api.url, tmp_path, after=LOST)

        assert (done.failed, states(owner)) == (0, ["submitted"])
        assert "ANTHROPIC_API_KEY" in done.troubles[0]

    def test_what_can_not_be_deleted_remotely_is_deleted_by_a_later_look(self, night, api, owner, tmp_path):
        api.play(*[Play(status=500)] * 3, route=PlayRoute.DELETE_BATCH)
        send_all(night, api.url)

        first = bring_home(night, api.url, tmp_path)
        kept = len(api.batches)
        bring_home(night, api.url, tmp_path)

        assert (first.verdicts, len(first.troubles), kept, len(api.batches)) == (3, 1, 1, 0)

    # --- the budget ---

    def test_a_budget_asks_about_the_first_pairs_and_holds_the_others_back(self, night, api, owner):
        whole = send_all(night, api.url).estimated_usd
        owner.execute("delete from heart.llm_requests")

        little = send_all(night, api.url, limit_usd=whole * 0.99)
        (row,) = rows_in(owner)

        assert (little.pairs, little.held_back) == (2, {"aria": 1})
        assert row["estimated_usd"] <= whole * 0.99

    def test_a_budget_counts_what_the_night_spent_and_what_is_on_its_way(self, night, api, owner, tmp_path):
        whole = send_all(night, api.url).estimated_usd
        owner.execute('update heart.llm_requests set request = \'{"pairs": [], "pair_count": 0}\'')

        assert send_all(night, api.url, limit_usd=whole * 1.5).held_back["aria"] > 0
        assert send_all(night, api.url, limit_usd=0).batches == 0

    def test_a_budget_of_nothing_changes_no_verdict_that_is_there(self, night, api, owner, tmp_path):
        send_all(night, api.url)
        bring_home(night, api.url, tmp_path)

        send_all(night, api.url, limit_usd=0)

        assert verdicts_in(owner) == ["compatible", "same", "same"]


def test_estimates_are_above_what_is_paid_whatever_is_said(night, api, owner, tmp_path, heart):
    remember(
        heart, *[f"{text} " * 30 for text in ("数据库每晚备份", "Ünïcödé säys", "🙂🙃 and back", "plain words here")]
    )
    sent = send_all(night, api.url)
    bring_home(night, api.url, tmp_path)

    (row,) = rows_in(owner)
    assert 0 < row["cost_usd"] < sent.estimated_usd


def test_many_pairs_become_several_batches_each_with_its_canaries(night, api, owner, tmp_path, heart, monkeypatch):
    monkeypatch.setattr("nous_pipelines.batches.batch_requests.MOST_REQUESTS", 17)
    texts = [f"Room {n} is painted green." for n in range(6)]
    remember(heart, *texts)
    api.answer_with(answering(dict.fromkeys(pairwise(texts), "compatible")))

    sent = send_all(night, api.url)
    done = bring_home(night, api.url, tmp_path)

    assert (sent.batches, done.imported, verdicts_in(owner)) == (3, 3, ["compatible"] * 5)
    assert all(
        sum(is_canary(item["params"]) for item in body["requests"]) == 15 for body in api.asked(PlayRoute.CREATE_BATCH)
    )


def test_no_batch_holds_two_agents(night, api, owner, tmp_path, heart, ben):
    remember(heart, NINE, AT_NINE)
    remember(ben, FISH, CATS)

    send_all(night, api.url, "aria", "ben")
    bring_home(night, api.url, tmp_path)

    assert {(row["agent_id"], row["model"]) for row in rows_in(owner)} == {("aria", MODEL), ("ben", MODEL)}
    assert verdicts_in(owner) == ["same", "same"]
