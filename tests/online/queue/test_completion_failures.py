"""Completions whose writer or embedder fails, is slow, or is overtaken: nothing is lost, and the reason is kept."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from closed_episodes import TALK, facts, make_due, waiting
from conftest import ScriptedJudge, ScriptedWriter, WordEmbedder
from stopwatch import stopwatch

from nous_online.core.errors import Conflict, Unavailable
from nous_online.heart import Heart
from nous_online.language.pairs.judging import JudgedStatement, Pair
from nous_online.memories.status import status_of
from nous_online.queue.worker import Drawn, Worked, finish


class Moody(ScriptedWriter):
    """A writer that fails so often before it writes."""

    def __init__(self, *errors: Exception) -> None:
        super().__init__()
        self.errors = list(errors)

    def write(self, episode):
        if self.errors:
            raise self.errors.pop(0)
        return super().write(episode)


def with_writer(heart: Heart, writer: Any) -> Heart:
    agent = heart.agent
    return Heart.open(
        agent.id,
        database=agent.database,
        embedder=agent.embedder,
        judge=agent.judge,
        writer=writer,
        works_in_background=False,
    )


def test_a_writer_that_fails_is_asked_again_later_and_nothing_is_lost(heart: Heart, owner: psycopg.Connection):
    moody = with_writer(heart, Moody(Unavailable("no model today"), ZeroDivisionError("oops")))
    episode = moody.record_episode(TALK)

    for attempt, wait_s, error in ((1, 15, "no model today"), (2, 30, "ZeroDivisionError")):
        assert moody.work() == Worked()
        attempts, seconds, said = waiting(owner) or (0, 0, "")
        assert (attempts, seconds) == (attempt, pytest.approx(wait_s, abs=2))
        assert error in (said or "")
        assert moody.work() == Worked()
        make_due(owner)
    assert moody.work().completed == 1

    assert moody.get_episode(episode.id).summary == "Ada: the parcel is late."
    assert len(facts(owner)) == 2
    assert waiting(owner) is None


def test_what_failed_is_told_in_the_status(heart: Heart):
    moody = with_writer(heart, Moody(Unavailable("no model today")))
    moody.record_episode(TALK)
    moody.record_episode(TALK)

    moody.work()

    with heart.agent.transaction(heart.agent.deadline(None)) as connection:
        found = status_of(connection, "aria").waiting
    assert (found.episodes, found.failed_episodes, found.last_error) == (1, 1, "no model today")


def test_one_that_fails_holds_up_no_other(heart: Heart):
    moody = with_writer(heart, Moody(Unavailable("no model today")))
    first, second = moody.record_episode(TALK), moody.record_episode(TALK)

    assert moody.work().completed == 1
    assert moody.get_episode(first.id).completed_at is None
    assert moody.get_episode(second.id).completed_at is not None


class Slow(ScriptedWriter):
    """A writer that takes its time."""

    def write(self, episode):
        time.sleep(5)
        return super().write(episode)


def test_a_slow_writer_ends_the_call_by_its_deadline(heart: Heart, owner: psycopg.Connection):
    slow = with_writer(heart, Slow())
    slow.record_episode(TALK)
    took_s = stopwatch()

    assert slow.work(deadline_s=2) == Worked()

    assert took_s() < 3
    attempts, _, error = waiting(owner) or (0, 0, "")
    assert attempts == 1
    assert "did not answer" in (error or "")


class Forgetful(WordEmbedder):
    """An embedder that fails so often before it embeds."""

    def __init__(self) -> None:
        self.failures = 0

    def embed_documents(self, texts):
        if self.failures:
            self.failures -= 1
            message = "no vectors today"
            raise Unavailable(message)
        return super().embed_documents(texts)


def test_a_draft_is_written_once_however_often_the_rest_fails(
    heart: Heart, owner: psycopg.Connection, writer: ScriptedWriter
):
    forgetful = Forgetful()
    unlucky = Heart.open(
        "aria", database=heart.agent.database, embedder=forgetful, writer=writer, works_in_background=False
    )
    unlucky.record_episode(TALK)
    forgetful.failures = 3

    for _ in range(3):
        assert unlucky.work() == Worked()
        make_due(owner)
    assert unlucky.work().completed == 1

    assert len(writer.told) == 1
    assert len(facts(owner)) == 2


def test_a_title_told_meanwhile_is_kept(heart: Heart, owner: psycopg.Connection):
    class Told(ScriptedWriter):
        def write(self, episode):
            heart.update_episode(recorded.id, title="Told meanwhile", participants=["Ada"])
            return super().write(episode)

    interrupted = with_writer(heart, Told())
    recorded = interrupted.record_episode(TALK)

    assert interrupted.work() == Worked()
    make_due(owner)
    assert interrupted.work().completed == 1

    episode = heart.get_episode(recorded.id)
    assert (episode.title, episode.participants) == ("Told meanwhile", ["Ada"])
    assert len(facts(owner)) == 2


def test_an_outcome_told_while_the_writer_works_is_applied_as_a_whole(heart: Heart, owner: psycopg.Connection):
    class Careful(ScriptedWriter):
        """A writer that draws censors from failures only, as the one that ships does."""

        def write(self, episode):
            if not self.told:
                heart.update_episode(recorded.id, outcome="failure")
            draft = super().write(episode)
            return draft if episode.outcome == "failure" else replace(draft, censors=())

    interrupted = with_writer(heart, Careful())
    used = heart.store_procedure("Ship", goals=["on time"])
    recorded = interrupted.record_episode(
        f"{TALK}\nnever: ship glass without foam", outcome="partial", procedures_activated=[used.id]
    )

    assert interrupted.work() == Worked()
    assert "was updated or undone while" in ((waiting(owner) or (0, 0, ""))[2] or "")
    assert facts(owner) == []
    make_due(owner)
    assert interrupted.work().completed == 1

    assert heart.get_procedure(used.id).failure_count == 1
    assert owner.execute("select trigger from heart.censors").fetchall() == [("ship glass without foam",)]
    assert len(facts(owner)) == 2


def test_an_outcome_told_after_the_draft_was_kept_is_applied_as_a_whole(
    heart: Heart, owner: psycopg.Connection, writer: ScriptedWriter
):
    forgetful = Forgetful()
    unlucky = Heart.open(
        "aria", database=heart.agent.database, embedder=forgetful, writer=writer, works_in_background=False
    )
    episode = unlucky.record_episode(TALK, outcome="partial")
    forgetful.failures = 1
    assert unlucky.work() == Worked()

    heart.update_episode(episode.id, outcome="failure")
    make_due(owner)

    assert unlucky.work().completed == 1
    assert [told.outcome for told in writer.told] == ["partial", "failure"]
    assert len(facts(owner)) == 2


@pytest.mark.parametrize("told", [{"outcome": "failure"}, {"summary": "Ada was late."}])
def test_what_is_told_while_nothing_was_drawn_is_not_passed_over(heart: Heart, told: dict[str, Any]):
    read = heart.record_episode(title="A silent walk")
    heart.update_episode(read.id, **told)

    with pytest.raises(Conflict, match="tried again"):
        finish(heart.agent, read, Drawn(), heart.agent.deadline(None))

    assert heart.get_episode(read.id).completed_at is None


@pytest.mark.parametrize("rubbish", [None, "a summary", {"title": "Parcels"}])
def test_a_writer_that_returns_no_draft_is_asked_again_later(heart: Heart, owner: psycopg.Connection, rubbish: object):
    class Mad(ScriptedWriter):
        def write(self, episode) -> Any:
            return rubbish

    mad = with_writer(heart, Mad())
    mad.record_episode(TALK)

    assert mad.work() == Worked()

    assert "which is no Draft" in ((waiting(owner) or (0, 0, ""))[2] or "")


@pytest.mark.parametrize("rubbish", [None, 1, [], ["same"], [None, None]])
def test_a_judge_that_returns_no_judgements_leaves_the_pair_to_the_night(heart: Heart, rubbish: object):
    class Mad(ScriptedJudge):
        def judge(self, pairs) -> Any:
            return rubbish

    agent = replace(heart.agent, judge=Mad())
    pair = Pair(JudgedStatement("Parcels take nine days"), JudgedStatement("Parcels take ten days"), 0.9)

    assert agent.ask([pair], agent.deadline(None)) is None


# --- episodes that are taken back ---


def ended(owner: psycopg.Connection) -> tuple[bool, str | None] | None:
    """Whether the one task is over, and the note it was left with."""
    return owner.execute("select finished_at is not null, last_error from heart.completions").fetchone()


def test_an_episode_that_was_taken_back_is_not_completed(
    heart: Heart, owner: psycopg.Connection, writer: ScriptedWriter
):
    used = heart.store_procedure("Ship", goals=["on time"])
    episode = heart.record_episode(TALK, outcome="success", procedures_activated=[used.id])
    heart.undo(episode.id, reason="it was another's")
    taken_back = heart.get_episode(episode.id)

    assert heart.work().completed == 0

    assert ended(owner) == (True, "not completed: the episode is archived")
    assert heart.get_episode(episode.id) == taken_back
    assert heart.get_procedure(used.id).success_count == 0
    assert (facts(owner), writer.told) == ([], [])
    assert owner.execute("select count(*) from heart.outbox where name = 'episode_completed'").fetchone() == (0,)


def test_an_episode_that_is_taken_back_while_the_writer_works_is_not_completed(heart: Heart, owner: psycopg.Connection):
    class Overtaken(ScriptedWriter):
        def write(self, episode):
            heart.undo(recorded.id, reason="it was another's")
            return super().write(episode)

    interrupted = with_writer(heart, Overtaken())
    recorded = interrupted.record_episode(TALK)

    assert interrupted.work() == Worked()
    make_due(owner)
    assert interrupted.work() == Worked()

    assert ended(owner) == (True, "not completed: the episode is archived")
    assert heart.get_episode(recorded.id).completed_at is None
    assert facts(owner) == []


def test_no_episode_is_begun_that_could_not_be_finished_in_time(heart: Heart, owner: psycopg.Connection):
    class Steady(ScriptedWriter):
        def write(self, episode):
            time.sleep(0.6)
            return super().write(episode)

    steady = with_writer(heart, Steady())
    for _ in range(3):
        steady.record_episode("Ada: hello.")

    assert steady.work(deadline_s=2).completed == 2
    assert waiting(owner) == (0, pytest.approx(0, abs=30), None)
