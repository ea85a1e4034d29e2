"""What the local Anthropic API says by itself, and the program that serves it."""

from __future__ import annotations

import doctest
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime

import anthropic
import pytest
from transcripts import TRANSCRIPT

from benchmarks.anthropic_server import LocalAnthropic, server
from nous_online import processes
from nous_online.language.claude import model_writer, pair_prompt
from nous_online.language.pairs.judging import JudgedStatement, Pair, Verdict

HAIKU = "claude-haiku-5-5"
EARLIER, LATER = datetime(2026, 1, 10, tzinfo=UTC), datetime(2026, 2, 10, tzinfo=UTC)


@pytest.fixture
def client() -> Iterator[anthropic.Anthropic]:
    with LocalAnthropic() as local, anthropic.Anthropic(api_key="any", base_url=local.url, max_retries=0) as opened:
        yield opened


def told(client: anthropic.Anthropic, request: pair_prompt.Request) -> str:
    message = client.messages.create(**request)
    assert message.stop_reason == "end_turn"
    return "".join(block.text for block in message.content if block.type == "text")


@pytest.mark.parametrize(
    ("a", "b", "verdict"),
    [
        ("Deploys go through blue/green since May", "Deploys go through blue/green since May.", Verdict.SAME),
        ("Backups are kept for 30 days", "Backups are kept for 90 days", Verdict.UPDATES),
        ("Ada prefers short answers", "The office is in Bonn", Verdict.COMPATIBLE),
    ],
)
def test_a_pair_gets_the_offline_judge_s_verdict_by_the_local_model(
    client: anthropic.Anthropic, a: str, b: str, verdict: Verdict
) -> None:
    pair = Pair(JudgedStatement(a, stated_at=EARLIER), JudgedStatement(b, stated_at=LATER), 0.9)

    answer = pair_prompt.read_answers(told(client, pair_prompt.pairs_request([pair], model=HAIKU)))[1]

    assert isinstance(answer, pair_prompt.PairAnswer)
    assert (answer.verdict, answer.later) == (verdict, "b")


def test_the_order_of_a_pair_does_not_matter_to_the_local_model(client: anthropic.Anthropic) -> None:
    older, newer = (
        JudgedStatement("The pool has 40 connections", stated_at=EARLIER),
        JudgedStatement("The pool has 50 connections", stated_at=LATER),
    )

    requests = [pair_prompt.pairs_request([Pair(*pair, 0.9)], model=HAIKU) for pair in ((older, newer), (newer, older))]
    answers = [pair_prompt.read_answers(told(client, request))[1] for request in requests]

    assert [(answer.verdict, answer.later) for answer in answers] == [(Verdict.UPDATES, "b"), (Verdict.UPDATES, "a")]


def test_an_episode_gets_a_draft_lifted_from_its_transcript_by_the_local_model(client: anthropic.Anthropic) -> None:
    record = model_writer.EpisodeRecord(
        TRANSCRIPT,
        title=None,
        outcome="failure",
        participants=["Ada", "Basil"],
        lessons=["Don't restart the broker during a backup"],
    )

    answer = model_writer.read_answer(told(client, model_writer.write_request(record, model=HAIKU)))

    assert answer.title
    assert answer.summary
    assert [fact.evidence in TRANSCRIPT for fact in answer.facts] == [True] * len(answer.facts)
    assert {fact.category for fact in answer.facts} <= set(model_writer.CATEGORIES)
    assert [censor.trigger for censor in answer.censors] == ["restart the broker during a backup"]


def test_anything_else_gets_a_plain_sentence(client: anthropic.Anthropic) -> None:
    request = {"model": HAIKU, "max_tokens": 200, "messages": [{"role": "user", "content": 'Is {"this": "so"}?'}]}

    assert told(client, request).endswith("no opinion.")


def test_the_examples_in_its_description_run() -> None:
    ran = doctest.testmod(server)

    assert (ran.attempted, ran.failed) == (4, 0)


def test_a_program_that_serves_says_how_to_reach_it_and_ends_with_ctrl_c() -> None:
    command = [sys.executable, "-m", "benchmarks.anthropic_server"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=processes.listen_to_signals,  # noqa: PLW1509 (started from one thread)
    ) as serving:  # fmt: skip
        assert serving.stdout is not None
        exports = dict(serving.stdout.readline().removeprefix("export ").strip().split("=") for _ in range(2))
        with anthropic.Anthropic(
            api_key=exports["ANTHROPIC_API_KEY"], base_url=exports["ANTHROPIC_BASE_URL"], max_retries=0
        ) as client:
            models = [model.id for model in client.models.list()]
        os.kill(serving.pid, signal.SIGINT)
        _, complaints = serving.communicate(timeout=20)

    assert HAIKU in models
    assert serving.returncode == 0
    assert "Traceback" not in complaints
