"""Predicting from a real heart: what sessions like this one used comes first, with reasons in words."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from conftest import WordEmbedder
from stopwatch import stopwatch

from nous_online.context.predicting import VectorCache, record_sighting
from nous_online.context.scorer import Signals
from nous_online.core.errors import InvalidInput
from nous_online.heart import Heart

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)


class Broken(WordEmbedder):
    def embed_documents(self, texts):
        raise RuntimeError("out of memory")


class Slow(WordEmbedder):
    def embed_documents(self, texts):
        time.sleep(3)
        return super().embed_documents(texts)


class Counting(WordEmbedder):
    def __init__(self):
        self.embedded = []

    def embed_documents(self, texts):
        self.embedded += texts
        return super().embed_documents(texts)


def saw(heart, session, signals, *, at):
    """What a session of the past saw."""
    with heart.agent.database.transaction(heart.agent.id) as connection:
        record_sighting(connection, heart.agent.id, signals, session, at)


def lived(heart, session, path, cited, *, day):
    """One session of the past: a file was opened, something recalled, and one answer used."""
    at = NOON + timedelta(days=day)
    saw(heart, session, Signals(current_file=path), at=at)
    recall = heart.recall(cited.content, session_id=session, at=at, limit=2)
    heart.cite(recall.id, [cited.id], at=at)


def test_what_was_used_with_a_file_is_predicted_when_it_is_opened_again(heart):
    tokens = heart.learn("Tokens of the login expire after an hour", learned_at=NOON).memory
    prices = heart.learn("Prices are rounded to whole cents", learned_at=NOON).memory
    for day in range(4):
        lived(heart, f"login-{day}", "src/auth/login.py", tokens, day=day)
        lived(heart, f"shop-{day}", "src/shop/price.py", prices, day=day)

    login = heart.predict(signals={"current_file": "src/auth/login.py"}, at=NOON + timedelta(days=5))
    shop = heart.predict(signals={"current_file": "src/shop/price.py"}, at=NOON + timedelta(days=5))

    assert login.memories[0].memory_id == tokens.id
    assert shop.memories[0].memory_id == prices.id
    assert login.memories[0].reasons[0] == "used in 4 of the last 4 sessions with src/auth/login.py open"
    assert login.memories[0].confidence > login.memories[1].confidence


def test_an_agent_that_knows_nothing_predicts_nothing(heart):
    prediction = heart.predict(signals={"current_file": "src/auth/login.py"})

    assert prediction.memories == ()
    assert prediction.confidence == 0
    assert prediction.session_id


def test_a_hundred_shown_memories_do_not_predict_themselves(heart):
    facts = [heart.learn(f"Lesson {n} of the manual of pumps", learned_at=NOON).memory for n in range(40)]
    for day in range(3):
        at = NOON + timedelta(days=day)
        saw(heart, f"s{day}", Signals(current_file="a.py"), at=at)
        recall = heart.recall("lesson of the manual of pumps", session_id=f"s{day}", at=at, limit=40)
        heart.cite(recall.id, [facts[0].id], at=at)

    foreseen = heart.predict(signals={"current_file": "a.py"}, at=NOON + timedelta(days=4))
    first, second = foreseen.memories[:2]

    assert first.memory_id == facts[0].id
    assert first.confidence > 5 * second.confidence


def test_what_was_superseded_is_predicted_as_its_successor(heart):
    old = heart.learn("The login waits 5 seconds", subject="login wait", learned_at=NOON).memory
    for day in range(3):
        lived(heart, f"s{day}", "a.py", old, day=day)
    new = heart.learn("The login waits 9 seconds", subject="login wait", learned_at=NOON + timedelta(days=3)).memory
    heart.supersede_fact(old.id, new.id)

    foreseen = heart.predict(signals={"current_file": "a.py"}, at=NOON + timedelta(days=4))

    assert [each.memory_id for each in foreseen.memories] == [new.id]


def test_what_is_private_to_a_user_is_predicted_for_that_user_alone(heart):
    secret = heart.learn("Ben wants his tea green", user_id="ben", learned_at=NOON).memory
    for day in range(3):
        at = NOON + timedelta(days=day)
        saw(heart, f"s{day}", Signals(collaborators=("Ben",)), at=at)
        recall = heart.recall("tea", session_id=f"s{day}", user_id="ben", at=at)
        heart.cite(recall.id, [secret.id], at=at)
    later = NOON + timedelta(days=4)

    his = heart.predict(signals={"collaborators": ["ben"]}, user_id="ben", at=later)
    hers = heart.predict(signals={"collaborators": ["ben"]}, user_id="ann", at=later)

    assert [each.memory_id for each in his.memories] == [secret.id]
    assert hers.memories == ()


def test_what_others_use_more_does_not_crowd_out_what_a_user_may_see(heart):
    hers = [heart.learn(f"Ann's lesson {n} of pumps", user_id="ann", learned_at=NOON).memory for n in range(40)]
    his = heart.learn("Ben wants his tea green", user_id="ben", learned_at=NOON).memory
    for day in range(2):
        at = NOON + timedelta(days=day)
        recall = heart.recall("lesson of pumps", user_id="ann", session_id=f"ann-{day}", at=at, limit=40)
        heart.cite(recall.id, [each.id for each in hers], at=at)
    recall = heart.recall("tea", user_id="ben", session_id="ben", at=NOON)
    heart.cite(recall.id, [his.id], at=NOON)

    foreseen = heart.predict(signals={"current_file": "a.py"}, user_id="ben", limit=1, at=NOON + timedelta(days=3))

    assert [each.memory_id for each in foreseen.memories] == [his.id]
    assert foreseen.confidence > foreseen.memories[0].confidence / 2


def test_one_agent_learns_nothing_from_what_another_used(heart, database, embedder, judge):
    other = Heart.open("other", database=database, embedder=embedder, judge=judge, works_in_background=False)
    lived(other, "s1", "a.py", other.learn("Pumps need oil", learned_at=NOON).memory, day=1)

    assert heart.predict(signals={"current_file": "a.py"}, at=NOON + timedelta(days=2)).memories == ()


def test_a_file_never_seen_falls_back_to_what_is_near_in_words(heart):
    pumps = heart.learn("The pump station restarts at night", learned_at=NOON).memory
    heart.learn("Tea is green", learned_at=NOON)

    foreseen = heart.predict(signals={"current_file": "src/pump/station.py"})

    assert foreseen.memories[0].memory_id == pumps.id
    assert foreseen.memories[0].reasons == ("near in words or meaning to what is being done",)
    assert foreseen.memories[0].confidence < 0.2


def test_statistics_answer_while_the_embedder_fails(heart):
    pumps = heart.learn("Pumps need oil", learned_at=NOON).memory
    for day in range(3):
        lived(heart, f"s{day}", "a.py", pumps, day=day)
    heart.agent = replace(heart.agent, embedder=Broken())

    foreseen = heart.predict(signals={"current_file": "a.py"}, at=NOON + timedelta(days=4))

    assert [each.memory_id for each in foreseen.memories] == [pumps.id]


def test_a_slow_embedder_takes_half_of_the_time_at_most(heart):
    heart.agent = replace(heart.agent, embedder=Slow())
    began, took_s = time.monotonic(), stopwatch()

    foreseen = heart.predict(signals={"task": "oil the pumps"}, deadline_s=2)

    assert foreseen.memories == ()
    assert took_s() < 2
    assert time.monotonic() - began > 0.9


def seen_by(owner, heart):
    """The signals that were written down."""
    told = owner.execute("select signal from heart.sightings where agent_id = %s order by 1", [heart.agent.id])
    return [signal for (signal,) in told.fetchall()]


def test_a_session_sees_each_signal_once(heart, owner):
    for _ in range(2):
        saw(heart, "s", Signals(current_file="src/a.py"), at=NOON)

    assert seen_by(owner, heart) == ["file:src/a.py", "hours:12-16", "module:src", "weekday:monday"]


def test_what_is_predicted_with_now_is_kept_and_what_another_moment_is_asked_of_is_not(heart, owner):
    for moment in (NOON, datetime(2120, 1, 1, tzinfo=UTC)):
        heart.predict(signals={"current_file": "then.py"}, session_id="s", at=moment)
    heart.predict(signals={"current_file": "now.py"}, session_id="s")

    assert [signal for signal in seen_by(owner, heart) if signal.startswith("file:")] == ["file:now.py"]


def test_a_prediction_that_names_no_session_begins_one(heart):
    first, second = (heart.predict(signals={"task": "oil the pumps"}).session_id for _ in range(2))

    assert first != second


def test_the_context_of_a_session_embeds_nothing_that_was_predicted_with(heart):
    heart.learn("The pump station restarts at night")
    signals = {"task": "oil the pumps", "current_file": "src/pump.py", "recent_errors": ["KeyError: 'oil'"]}
    predicted = heart.predict(signals=signals)
    counting = Counting()
    heart.agent = replace(heart.agent, embedder=counting)

    heart.assemble_context(signals=signals, session_id=predicted.session_id)
    heart.assemble_context(signals=signals, session_id=predicted.session_id, query="which oil?")

    assert counting.embedded == ["which oil?"]


def test_what_was_left_ready_grows_old_and_makes_room():
    shelf, vector = VectorCache(seconds=60, size=2), np.ones(2, np.float32)
    for name in "abc":
        shelf.put((name,), {b"x": vector})
    late = VectorCache(seconds=0)
    late.put(("a",), {b"x": vector})

    assert [bool(shelf.look((name,))) for name in "abc"] == [False, True, True]
    assert not late.look(("a",))


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"signals": {"file": "a.py"}}, "unknown signal 'file'"),
        ({"signals": {}, "limit": 0}, "limit must be a whole number between 1"),
        ({"signals": {}, "at": "noon"}, "at 'noon' is no ISO 8601 moment"),
        ({"signals": {}, "session_id": "s" * 101}, "session_id has 101 characters"),
    ],
)
def test_what_cannot_be_predicted_for_is_refused_by_name(heart, asked, message):
    with pytest.raises(InvalidInput, match=message):
        heart.predict(**asked)
