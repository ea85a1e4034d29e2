"""Forgetting, restoring, pinning and correcting a memory of any kind by its id."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import psycopg
import pytest

from nous_online.core.domain import Fact
from nous_online.core.errors import Conflict, InvalidInput, NotFound, Refused
from nous_online.heart import Heart
from nous_online.language.pairs.judging import Verdict

GATE, GATE_AGAIN = "The gate code is 4711", "4711 is the code of the gate"


def one_of_each(heart: Heart) -> dict[str, UUID]:
    return {
        "fact": heart.learn(GATE).memory.id,
        "episode": heart.record_episode("The gate was locked at midnight", title="A locked gate").id,
        "procedure": heart.store_procedure("Open the gate", goals=["get in"], tags=["gate"]).id,
        "censor": heart.add_censor("opening the gate at night", "it wakes the dog").id,
    }


def recalled(heart: Heart, question: str = "gate", **details: object) -> set[UUID]:
    return {each.id for each in heart.recall(question, **details)}  # type: ignore[arg-type]


def test_a_fact_confirmed_many_times_is_forgotten_in_one_call(heart: Heart) -> None:
    fact = heart.learn(GATE).memory
    for _ in range(3):
        heart.learn(GATE)

    gone = heart.forget(fact.id, reason="the lock was changed")

    assert (gone.memory.state, gone.memory.is_forgotten) == ("archived", True)
    assert fact.id not in recalled(heart)
    assert heart.assemble_context(query="the gate code").text.count("4711") == 0
    event = heart.history(fact.id)[0]
    assert (event.action, event.from_state, event.reason) == ("forgotten", "active", "the lock was changed")
    assert [each.content for each in heart.statements(fact.id)] == [GATE] * 4


@pytest.mark.parametrize("kind", ["fact", "episode", "procedure", "censor"])
def test_a_memory_of_any_kind_is_forgotten_and_comes_back_as_it_was(
    heart: Heart, owner: psycopg.Connection, kind: str
) -> None:
    memory_id = one_of_each(heart)[kind]
    heart.pin(memory_id)
    before, was_recalled = row_of(owner, memory_id), recalled(heart)

    heart.forget(memory_id, reason="asked for")
    while_gone = recalled(heart)
    restored = heart.restore(memory_id, reason="asked for by mistake")

    assert memory_id in was_recalled
    assert while_gone == was_recalled - {memory_id}
    assert restored.is_pinned
    assert row_of(owner, memory_id) == before
    assert recalled(heart) == was_recalled
    assert [each.action for each in heart.history(memory_id)[:2]] == ["restored", "forgotten"]


def row_of(owner: psycopg.Connection, memory_id: UUID) -> tuple[object, ...] | None:
    """The columns of a memory, but for those that count its versions."""
    return owner.execute(
        """
        select coalesce((select to_jsonb(f) from heart.facts f where id = %(id)s),
                        (select to_jsonb(e) from heart.episodes e where id = %(id)s),
                        (select to_jsonb(p) from heart.procedures p where id = %(id)s),
                        (select to_jsonb(c) from heart.censors c where id = %(id)s))
               - array['row_version', 'written_xid']
        """,
        {"id": memory_id},
    ).fetchone()


def test_a_forgotten_memory_is_not_found_by_a_question_about_the_past_and_an_archived_one_is(heart: Heart) -> None:
    ids = one_of_each(heart)
    moment = datetime.now(UTC) + timedelta(seconds=1)
    kept = heart.learn("The gate is green").memory
    before = recalled(heart, as_of=moment, limit=20)

    for memory_id in ids.values():
        heart.forget(memory_id, reason="asked for")
    heart.undo(kept.id, reason="never said")

    assert {*ids.values()} <= before
    assert recalled(heart, as_of=moment - timedelta(seconds=0.5), limit=20).isdisjoint(ids.values())


def test_forgetting_twice_leaves_one_event_and_the_same_answer(heart: Heart) -> None:
    fact = heart.learn(GATE).memory

    first, second = (heart.forget(fact.id, reason="asked for") for _ in range(2))

    assert first == second
    assert [each.action for each in heart.history(fact.id)] == ["forgotten", "learned"]


def test_forgetting_and_undoing_without_a_reason_leave_the_one_that_the_agent_did_it(heart: Heart) -> None:
    fact = heart.learn(GATE).memory

    heart.forget(fact.id)
    heart.undo(fact.id)

    assert [each.reason for each in heart.history(fact.id)][:2] == ["the agent took it back", "the agent forgot it"]
    assert heart.get(fact.id).state == "active"


def test_forgetting_takes_no_empty_reason_and_a_memory_of_this_agent(heart: Heart) -> None:
    fact = heart.learn(GATE).memory
    other = Heart.open("ben", database=heart.agent.database, embedder=heart.agent.embedder, judge=heart.agent.judge)

    with pytest.raises(InvalidInput, match="reason is empty"):
        heart.forget(fact.id, reason=" ")
    for verb in (lambda: other.forget(fact.id, reason="x"), lambda: other.restore(fact.id), lambda: other.pin(fact.id)):
        with pytest.raises(NotFound, match="has no memory"):
            verb()

    assert heart.get(fact.id) == fact


def test_words_learned_again_are_a_new_fact_that_names_the_forgotten_one(heart: Heart) -> None:
    fact = heart.learn(GATE).memory
    heart.forget(fact.id, reason="asked for")

    again = heart.learn("the gate code is 4711.")

    assert (again.action, again.forgotten) == ("stored", fact.id)
    assert again.memory.id != fact.id
    assert "was forgotten" in again.reason
    assert "was forgotten" in heart.history(again.memory.id)[0].reason
    assert heart.get(fact.id).is_forgotten
    assert heart.learn("The door code is 4712").forgotten is None


def test_words_that_were_merged_into_a_forgotten_fact_are_recognised_too_and_only_within_their_reach(
    heart: Heart,
) -> None:
    fact, merged = (heart.learn(text, user_id="ada").memory for text in (GATE, GATE_AGAIN))
    merged_away(heart, merged, into=fact)
    heart.forget(fact.id, reason="asked for")

    mine, anybodys = heart.learn(GATE_AGAIN, user_id="ada"), heart.learn(GATE_AGAIN)

    assert (mine.forgotten, anybodys.forgotten) == (fact.id, None)


def test_facts_that_gave_way_to_a_forgotten_one_stay_away_and_are_named(heart: Heart, judge) -> None:
    old = heart.learn("The office opens at nine", subject="office hours").memory
    judge.verdicts["The office opens at nine", "The office opens at ten"] = Verdict.UPDATES
    new = heart.learn("The office opens at ten", subject="office hours").memory
    first, second = (heart.learn(text).memory for text in ("The dog is called Rex", "Rex is what the dog hears"))
    merged_away(heart, second, into=new)
    merged_away(heart, first, into=second)

    gone = heart.forget(new.id, reason="asked for")

    assert gone.replaced == (old.id,)
    assert set(gone.merged) == {first.id, second.id}
    assert {heart.get(each).state for each in (old.id, first.id, second.id)} == {"superseded"}
    assert recalled(heart, "office").isdisjoint({old.id, new.id, first.id, second.id})


def merged_away(heart: Heart, fact: Fact, *, into: Fact) -> None:
    """Let one fact say that it was merged into another, as a night does."""
    from nous_online.core.domain import FACT
    from nous_online.database.changes import Cause, change_memory, version_of

    now = datetime.now(UTC)
    values = {"state": "superseded", "superseded_by": str(into.id), "superseded_at": now.isoformat()}
    with heart.agent.transaction(heart.agent.deadline(None)) as connection:
        read = version_of(FACT, heart.get(fact.id))
        cause = Cause("operator", "merged", "by hand", effective_at=now)
        change_memory(connection, "aria", read, {**values, "succession": "merged"}, cause=cause)


def test_a_superseded_fact_is_forgotten_and_comes_back_as_superseded(heart: Heart) -> None:
    old, new = heart.learn("The office opens at nine").memory, heart.learn("Lunch is at noon").memory
    heart.supersede_fact(old.id, new.id)

    heart.forget(old.id, reason="asked for")
    gone = heart.get(old.id)
    restored = heart.restore(old.id)

    assert (gone.state, gone.superseded_by) == ("archived", new.id)
    assert (restored.state, restored.superseded_by) == ("superseded", new.id)


@pytest.mark.parametrize("is_forgotten", [False, True])
@pytest.mark.parametrize("is_same", [False, True])
def test_a_superseded_fact_is_made_active_in_one_call_whatever_was_done_to_it_since(
    heart: Heart, *, is_same: bool, is_forgotten: bool
) -> None:
    old, new = heart.learn("The office opens at nine").memory, heart.learn("Lunch is at noon").memory
    heart.supersede_fact(old.id, new.id, is_same=is_same)
    heart.update(old.id, tags=["office"])
    if is_forgotten:
        heart.forget(old.id, reason="asked for")

    back = heart.restore(old.id, is_active=True)

    assert (back.state, back.superseded_by, back.is_forgotten, back.tags) == ("active", None, False, ["office"])
    assert heart.get_fact(new.id).confirmation_count == 0
    assert old.id in recalled(heart)
    assert heart.restore(old.id, is_active=True) == back


def test_a_contradiction_is_no_question_while_one_side_is_forgotten(heart: Heart, judge) -> None:
    judge.verdicts[GATE, "The gate code is 4712"] = Verdict.CONTRADICTS
    fact = heart.learn(GATE).memory
    heart.learn("The gate code is 4712")
    before = len(heart.contradictions())

    heart.forget(fact.id, reason="asked for")
    while_gone = len(heart.contradictions())
    heart.restore(fact.id)

    assert (before, while_gone, len(heart.contradictions())) == (1, 0, 1)


def test_a_forgotten_memory_leaves_working_memory(heart: Heart) -> None:
    fact, kept = heart.learn(GATE).memory, heart.learn("The dog is called Rex").memory
    heart.load_context(session_id="s", fact_ids=[fact.id, kept.id])

    heart.forget(fact.id, reason="asked for")

    assert [item.id for item in heart.get_working_memory("s").items] == [kept.id]


def test_undo_takes_back_forgetting_and_restoring(heart: Heart) -> None:
    fact = heart.learn(GATE).memory
    heart.forget(fact.id, reason="asked for")
    heart.restore(fact.id)

    first = heart.undo(fact.id, reason="it was right to forget it")
    gone = heart.get(fact.id)
    second = heart.undo(fact.id, reason="no, it was not")

    assert (first.action, gone.state, gone.is_forgotten) == ("restored", "archived", True)
    assert second.action == "forgotten"
    assert (heart.get(fact.id).state, heart.get(fact.id).is_forgotten) == ("active", False)


def test_what_was_learned_in_vain_is_restored_as_well(heart: Heart) -> None:
    fact = heart.learn(GATE).memory
    heart.undo(fact.id, reason="never said")

    assert heart.restore(fact.id).state == "active"
    assert heart.restore(fact.id).row_version == heart.get(fact.id).row_version


def test_an_open_episode_is_forgotten_and_goes_on_when_it_is_back(heart: Heart) -> None:
    episode = heart.start_episode("A locked gate")
    heart.update_episode(episode.id, append="fact: the key is under the mat")

    heart.forget(episode.id, reason="asked for")
    with pytest.raises(Refused, match="archived"):
        heart.update_episode(episode.id, append="more")
    heart.restore(episode.id)
    heart.update_episode(episode.id, append="more")

    assert heart.get_episode(episode.id).state == "open"


def test_nothing_is_drawn_from_an_episode_that_was_forgotten_until_it_is_back(heart: Heart) -> None:
    episode = heart.record_episode("fact: the key is under the mat")
    heart.forget(episode.id, reason="asked for")

    heart.work()
    while_gone = heart.count()
    heart.restore(episode.id)
    heart.work()

    assert while_gone == {}
    assert heart.count() == {"active": 1}
    assert heart.get_episode(episode.id).completed_at is not None


def test_a_procedure_whose_name_was_given_to_another_is_not_restored(heart: Heart) -> None:
    first = heart.store_procedure("Open the gate", goals=["get in"])
    heart.forget(first.id, reason="asked for")
    second = heart.store_procedure("Open the gate", goals=["get out"])

    with pytest.raises(Conflict, match="took the place of"):
        heart.restore(first.id)

    assert second.id != first.id
    assert heart.get_procedure(first.id).state == "archived"


def test_a_pin_is_set_and_lifted_once_each(heart: Heart) -> None:
    fact = heart.learn(GATE).memory

    pinned = [heart.pin(fact.id) for _ in range(2)]
    unpinned = [heart.unpin(fact.id) for _ in range(2)]

    assert [each.is_pinned for each in (*pinned, *unpinned)] == [True, True, False, False]
    assert [each.action for each in heart.history(fact.id)] == ["unpinned", "pinned", "learned"]


def test_what_is_known_about_a_fact_is_corrected_and_what_follows_from_it_too(heart: Heart) -> None:
    fact = heart.learn("It is 4711", tags=["home"]).memory

    changed = heart.update(
        fact.id,
        subject="gate code",
        category="secret",
        tags=["gate"],
        confidence=0.5,
        valid_from="2026-10-01T00:00:00Z",
    )

    assert (changed.content, changed.subject, changed.category, changed.tags) == (
        "It is 4711", "gate code", "secret", ["gate"],
    )  # fmt: skip
    assert (changed.confidence, changed.valid_from) == (0.5, datetime(2026, 10, 1, tzinfo=UTC))
    best = heart.recall("gate code", detail="summary")[0]
    assert (best.id, best.text) == (fact.id, "gate code: It is 4711")
    assert heart.history(fact.id)[0].before["tags"] == ["home"]
    heart.undo(fact.id, reason="wrong one")
    assert heart.get(fact.id).subject is None
    assert heart.recall("gate code", detail="summary")[0].text == "It is 4711"


def test_a_correction_that_says_nothing_new_leaves_no_event(heart: Heart) -> None:
    fact = heart.learn(GATE, tags=["gate"]).memory

    heart.update(fact.id, tags=["gate"])

    assert heart.get(fact.id) == fact


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        ("fact", {"content": "The gate code is 4712"}, "'content' can't be updated"),
        ("fact", {}, "say what to change"),
        ("fact", {"valid_from": "2026-10-02T00:00:00Z", "valid_to": "2026-10-01T00:00:00Z"}, "lies before valid_from"),
        ("fact", {"category": "document"}, "is kept for the files"),
        ("fact", {"tags": None}, "tags must be a list of names, got None"),
        ("fact", {"confidence": None}, "confidence must be a number between 0 and 1, got None"),
        ("fact", {"is_pinned": None}, "is_pinned must be True or False, got None"),
        ("episode", {"subject": "gate"}, "'subject' can't be updated"),
        ("episode", {"tags": None}, "tags must be a list of names, got None"),
        ("procedure", {"tags": None}, "tags must be a list of names, got None"),
        ("procedure", {"is_pinned": None}, "is_pinned must be True or False, got None"),
        ("censor", {"is_pinned": None}, "is_pinned must be True or False, got None"),
        ("censor", {"tags": ["gate"]}, "'tags' can't be updated"),
    ],
)
def test_what_can_not_be_corrected_is_refused(
    heart: Heart, kind: str, changes: dict[str, object], message: str
) -> None:
    memory_id = one_of_each(heart)[kind]

    with pytest.raises(InvalidInput, match=message):
        heart.update(memory_id, **changes)  # type: ignore[arg-type]

    assert len(heart.history(memory_id)) == 1


@pytest.mark.parametrize("verb", ["forget", "restore", "pin", "unpin", "update"])
def test_a_memory_nobody_knows_is_not_found(heart: Heart, verb: str) -> None:
    details = {"forget": {"reason": "x"}, "update": {"tags": ["x"]}}.get(verb, {})

    with pytest.raises(NotFound, match="has no memory"):
        getattr(heart, verb)(uuid4(), **details)


def contradicting(heart: Heart, judge) -> tuple[Fact, Fact]:
    day, night = "The gate is open at night", "The gate is locked at night"
    judge.verdicts[day, night] = Verdict.CONTRADICTS
    one = heart.learn(day, subject="gate").memory
    heart.learn(night, subject="gate")
    (found,) = heart.contradictions()
    return one, heart.get_fact(next(side for side in (found.memory_a, found.memory_b) if side != one.id))


def marks(heart: Heart, *facts: Fact) -> list[str]:
    return [heart.get_fact(fact.id).contradiction_status for fact in facts]


def test_a_fact_stands_uncontradicted_while_the_other_side_is_forgotten_and_is_doubted_again_when_it_is_back(
    heart: Heart, judge
) -> None:
    one, other = contradicting(heart, judge)
    (before,) = heart.contradictions()

    heart.forget(other.id, reason="asked for")
    while_gone = marks(heart, one), heart.contradictions()
    (found,) = heart.recall("the gate at night")
    heart.restore(other.id)

    assert while_gone == (["none"], [])
    assert (found.memory.id, found.memory.contradiction_status) == (one.id, "none")
    assert heart.contradictions() == [before]
    assert marks(heart, one, other) == ["open", "open"]


def test_of_two_forgotten_sides_the_first_to_come_back_stands_alone(heart: Heart, judge) -> None:
    one, other = contradicting(heart, judge)
    for fact in (one, other):
        heart.forget(fact.id, reason="asked for")

    restored = heart.restore(other.id)

    assert restored == heart.get(other.id)
    assert marks(heart, other) == ["none"]
    assert heart.contradictions() == []
    heart.restore(one.id)
    assert marks(heart, one, other) == ["open", "open"]


def test_undoing_what_was_learned_takes_its_contradiction_with_it_in_one_call(heart: Heart, judge) -> None:
    one, other = contradicting(heart, judge)

    taken_back = heart.undo(other.id, reason="never said")

    assert (taken_back.action, heart.get(other.id).state) == ("learned", "archived")
    assert (marks(heart, one), heart.contradictions()) == (["none"], [])
