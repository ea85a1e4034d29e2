"""Two facts that can't both be so are kept until somebody decides."""

from __future__ import annotations

from datetime import UTC, datetime
from re import findall
from uuid import UUID, uuid4

import pytest

from nous_online.core.domain import FACT, Fact
from nous_online.core.errors import Conflict, Forbidden, InvalidInput, NotFound
from nous_online.core.policy import LearnPolicy
from nous_online.core.rights import WITHOUT_KEY
from nous_online.database.changes import Cause, change_memory, version_of
from nous_online.heart import Heart
from nous_online.interfaces.questions import open_questions, settle_doubt
from nous_online.language.pairs.judging import Verdict
from nous_online.memories import contradictions
from nous_online.memories.contradictions import Contradiction, Resolution, Ruling
from nous_online.memories.status import status_of

MAY = datetime(2026, 5, 1, tzinfo=UTC)
CAUSE = Cause("agent", "contradicted", "they can't both be so", MAY)


@pytest.fixture
def pair(heart: Heart) -> tuple[Fact, Fact]:
    """Two active facts, the one with the smaller id first."""
    told = [heart.learn(text).memory for text in ("Ana sits in Lima", "The desk of Ana stands in Oslo")]
    first, second = sorted(told, key=lambda fact: fact.id)
    return first, second


@pytest.fixture
def found(heart: Heart, pair: tuple[Fact, Fact]) -> Contradiction:
    with heart.agent.database.transaction("aria") as connection:
        assert contradictions.open_between(connection, "aria", *pair, judgement={"reason": "one seat"}, cause=CAUSE)
    (found,) = heart.contradictions()
    return found


def standing(heart: Heart, pair: tuple[Fact, Fact]) -> list[tuple[str, str]]:
    facts = [heart.get(fact.id) for fact in pair]
    return [(fact.state, fact.contradiction_status) for fact in facts]


def test_both_stay_and_say_that_they_are_contradicted(heart: Heart, pair, found: Contradiction) -> None:
    assert (found.memory_a, found.memory_b, found.status) == (pair[0].id, pair[1].id, "open")
    assert standing(heart, pair) == [("active", "open"), ("active", "open")]
    assert found.judgement == {"reason": "one seat"}


def test_the_same_pair_is_recorded_once_in_whichever_order(heart: Heart, pair, found: Contradiction) -> None:
    with heart.agent.database.transaction("aria") as connection:
        is_news = contradictions.open_between(connection, "aria", *pair[::-1], judgement={}, cause=CAUSE)

    assert not is_news
    assert [each.id for each in heart.contradictions()] == [found.id]


@pytest.mark.parametrize(
    ("resolution", "states"),
    [
        ("a_wins", ["active", "superseded"]),
        ("b_wins", ["superseded", "active"]),
        ("both_valid", ["active", "active"]),
    ],
)
def test_a_ruling_retires_the_loser_alone(heart: Heart, pair, found: Contradiction, resolution, states) -> None:
    resolved = heart.resolve_contradiction(found.id, resolution, note="asked Ana", at=MAY)

    assert (resolved.status, resolved.resolution, resolved.note, resolved.resolved_at) == (
        "resolved", resolution, "asked Ana", MAY,
    )  # fmt: skip
    assert standing(heart, pair) == [(state, "resolved") for state in states]
    assert heart.contradictions() == []
    assert heart.contradictions(status="resolved") == [resolved]


def test_merging_puts_a_third_fact_in_the_place_of_both(heart: Heart, pair, found: Contradiction) -> None:
    merged = heart.learn("Until May she worked from Peru, afterwards from Norway").memory

    heart.resolve_contradiction(found.id, "merged", merged_into=merged.id)

    assert [heart.get(fact.id).superseded_by for fact in pair] == [merged.id, merged.id]


def test_ruling_the_same_again_changes_nothing_and_otherwise_is_a_conflict(heart: Heart, pair, found) -> None:
    first = heart.resolve_contradiction(found.id, "a_wins")

    assert heart.resolve_contradiction(found.id, "a_wins") == first
    with pytest.raises(Conflict, match="was resolved as 'a_wins'"):
        heart.resolve_contradiction(found.id, "b_wins")
    assert standing(heart, pair) == [("active", "resolved"), ("superseded", "resolved")]


def test_what_does_not_exist_or_makes_no_sense_is_refused_by_name(heart: Heart, pair, found) -> None:
    with pytest.raises(NotFound, match="no contradiction"):
        heart.resolve_contradiction(uuid4(), "a_wins")
    with pytest.raises(NotFound, match="to merge into"):
        heart.resolve_contradiction(found.id, "merged", merged_into=uuid4())
    with pytest.raises(InvalidInput, match="needs the fact"):
        heart.resolve_contradiction(found.id, "merged")
    with pytest.raises(InvalidInput, match="one of a_wins"):
        heart.resolve_contradiction(found.id, "c_wins")  # pyright: ignore[reportArgumentType]
    assert standing(heart, pair) == [("active", "open"), ("active", "open")]


def test_a_winner_that_was_retired_since_can_not_win(heart: Heart, pair, found) -> None:
    heart.undo(pair[0].id, reason="never said")

    with pytest.raises(Conflict, match="is archived, so it can't win"):
        heart.resolve_contradiction(found.id, "a_wins")

    heart.restore(pair[0].id)
    assert heart.contradictions() == [found]


@pytest.mark.parametrize(("resolution", "loser"), [("a_wins", 1), ("b_wins", 0)])
def test_undoing_a_ruling_brings_the_loser_back_and_asks_again(
    heart: Heart, pair, found, resolution: Resolution, loser: int
) -> None:
    heart.resolve_contradiction(found.id, resolution, note="seen there")

    heart.undo(pair[loser].id, reason="the other was right")

    assert heart.contradictions() == [found]
    assert standing(heart, pair) == [("active", "open"), ("active", "open")]
    assert heart.resolve_contradiction(found.id, "both_valid").resolution == "both_valid"


@pytest.mark.parametrize("outranks", [None, "is_pinned", "trust", "key"])
def test_two_that_say_the_same_are_merged_into_the_earlier_or_the_weightier_until_that_is_undone(
    heart: Heart, outranks: str | None
) -> None:
    weight = {} if outranks is None else {outranks: {"is_pinned": True, "trust": 70, "key": "ana/desk"}[outranks]}
    earlier = heart.learn("Ana sits in Lima", learned_at=MAY, source="chat").memory
    later = heart.learn("The desk of Ana stands in Lima", source="mail", **weight).memory
    with heart.agent.database.transaction("aria") as connection:
        contradictions.open_between(connection, "aria", earlier, later, judgement={}, cause=CAUSE)
    (found,) = heart.contradictions()
    kept, gone = (earlier, later) if outranks is None else (later, earlier)

    ruled = heart.resolve_contradiction(found.id, "same", note="one desk")
    again = heart.resolve_contradiction(found.id, "same")
    merged = heart.get_fact(gone.id)
    counted = heart.get_fact(kept.id).confirmation_count, len(heart.statements(kept.id))
    heart.undo(gone.id)

    assert (ruled.resolution, again) == ("merged", ruled)
    assert (merged.superseded_by, merged.succession, counted) == (kept.id, "merged", (1, 2))
    assert heart.contradictions() == [found]
    assert heart.get_fact(kept.id).confirmation_count == 0


@pytest.mark.parametrize("is_kept_later", [False, True])
def test_a_doubt_whose_facts_say_the_same_is_settled_by_merging_them(
    heart: Heart, judge, *, is_kept_later: bool
) -> None:
    judge.change = 0.9
    earlier = heart.learn("the pager is with Ana", learned_at=MAY).memory
    later = heart.learn("Ana has the pager now", is_pinned=is_kept_later).memory
    assert later.perhaps_replaces == [earlier.id]

    settle_doubt(heart, later, Ruling("same"), why="one pager")

    kept, gone = (later, earlier) if is_kept_later else (earlier, later)
    assert (heart.get_fact(gone.id).superseded_by, heart.get_fact(gone.id).succession) == (kept.id, "merged")
    assert (heart.get_fact(kept.id).confirmation_count, len(heart.statements(kept.id))) == (1, 2)
    with heart.agent.database.transaction("aria") as connection:
        assert open_questions(connection, "aria") == []
    heart.undo(gone.id)
    assert [heart.get_fact(each.id).state for each in (earlier, later)] == ["active", "active"]
    assert heart.get_fact(kept.id).confirmation_count == 0


def test_a_merge_that_was_ruled_is_open_again_once_both_sides_are_back(heart: Heart, pair, found) -> None:
    both = heart.learn("Ana has two desks, in Lima and in Oslo").memory
    heart.resolve_contradiction(found.id, "merged", merged_into=both.id)

    heart.undo(pair[1].id)
    of_one = heart.contradictions()
    heart.undo(pair[0].id)

    assert of_one == []
    assert heart.contradictions() == [found]
    assert heart.get_fact(both.id).confirmation_count == 0


def test_undoing_an_earlier_supersession_opens_nothing_that_was_decided_otherwise(heart: Heart, pair, found) -> None:
    heart.resolve_contradiction(found.id, "both_valid")
    heart.supersede_fact(pair[1].id, pair[0].id)

    heart.undo(pair[1].id)

    assert heart.contradictions() == []


def test_learning_what_contradicts_a_fact_keeps_both_and_says_so(heart: Heart, judge) -> None:
    judge.verdicts["The gate is locked at night", "The gate is not locked at night"] = Verdict.CONTRADICTS
    known = heart.learn("The gate is locked at night", subject="gate").memory

    learned = heart.learn("The gate is not locked at night", subject="gate")

    (found,) = heart.contradictions()
    assert (learned.action, [near.fact.id for near in learned.contradicts]) == ("stored", [known.id])
    assert {found.memory_a, found.memory_b} == {known.id, learned.memory.id}
    assert found.judgement is not None
    assert found.judgement["reason"] == "so says the script"
    assert learned.reason == f"contradicts fact {known.id}: both stay until somebody says which holds"
    assert learned.memory == heart.get(learned.memory.id)
    assert [heart.get(each).contradiction_status for each in (known.id, learned.memory.id)] == ["open", "open"]


def test_an_older_value_that_gives_way_at_once_contradicts_nothing(heart: Heart, judge) -> None:
    old, new = "The office opens at nine", "The office opens at ten"
    judge.verdicts[new, old] = Verdict.UPDATES
    heart.learn(new, subject="hours", learned_at="2026-05-01T00:00:00Z")

    learned = heart.learn(old, subject="hours", learned_at="2026-04-01T00:00:00Z")

    assert (learned.memory.state, learned.contradicts, heart.contradictions()) == ("superseded", (), [])


def superseded(heart: Heart, fact: Fact) -> None:
    heart.supersede_fact(fact.id, heart.learn("Ana works from home").memory.id)


def merged(heart: Heart, fact: Fact) -> None:
    """Merge a fact into another, by ruling on a second contradiction it is in."""
    other = heart.learn("Ana works from home").memory
    with heart.agent.database.transaction("aria") as connection:
        assert contradictions.open_between(connection, "aria", heart.get(fact.id), other, judgement={}, cause=CAUSE)
    second = next(each for each in heart.contradictions() if other.id in {each.memory_a, each.memory_b})
    heart.resolve_contradiction(second.id, "merged", merged_into=other.id)


def undone(heart: Heart, fact: Fact) -> None:
    heart.undo(fact.id, reason="never said")


def restored(heart: Heart, fact: Fact) -> None:
    heart.restore(fact.id)


@pytest.mark.parametrize(
    ("retire", "bring_back"),
    [
        (superseded, undone),
        (merged, undone),
        (lambda heart, fact: heart.forget(fact.id), restored),
        (undone, restored),
    ],
    ids=["superseded", "merged", "forgotten", "undone"],
)
@pytest.mark.parametrize("side", [0, 1])
def test_a_contradiction_waits_for_nobody_while_a_side_is_retired_and_asks_again_once_that_is_undone(
    heart: Heart, pair, found: Contradiction, retire, bring_back, side: int
) -> None:
    gone, left = pair[side], pair[1 - side]

    retire(heart, gone)
    listed = [heart.contradictions(), heart.contradictions(status="resolved"), heart.contradictions(status=None)]
    while_gone = [heart.get(each.id).contradiction_status for each in (gone, left)]
    (recalled,) = (each for each in heart.recall("where does Ana sit?") if each.id == left.id)
    with heart.agent.database.transaction("aria") as connection:
        asked = open_questions(connection, "aria"), status_of(connection, "aria").questions.contradictions
    shown = heart.assemble_context(query="Ana").text
    state_then = heart.get(gone.id).state
    bring_back(heart, gone)

    assert [[each for each in some if each.id == found.id] for some in listed] == [[], [], []]
    assert (while_gone, recalled.contradicted_by, asked) == ([while_gone[0], "none"], (), ([], 0))
    assert ("unresolved" in shown.lower(), state_then == "active") == (False, False)
    assert found.id in {each.id for each in heart.contradictions()}
    assert standing(heart, pair) == [("active", "open"), ("active", "open")]


def test_a_ruling_on_one_contradiction_settles_the_others_of_the_loser(
    heart: Heart, pair, found: Contradiction
) -> None:
    third = heart.learn("Ana works from home").memory
    with heart.agent.database.transaction("aria") as connection:
        contradictions.open_between(connection, "aria", heart.get(pair[0].id), third, judgement={}, cause=CAUSE)

    heart.resolve_contradiction(found.id, keep=pair[1].id)

    assert heart.contradictions() == []
    assert [heart.get(each.id).contradiction_status for each in (*pair, third)] == ["resolved", "resolved", "none"]


@pytest.mark.parametrize("is_named", [False, True])
@pytest.mark.parametrize("verdict", [Verdict.UPDATES, Verdict.CONTRADICTS, Verdict.UNSURE])
def test_what_supersedes_one_side_of_a_contradiction_is_compared_with_the_other_however_far(
    database, judge, embedder, verdict: Verdict, *, is_named: bool
) -> None:
    policy = LearnPolicy(neighbour_count=1, nominate_similarity=-1)  # so that the other side is not among the nearest
    heart = Heart.open("aria", database=database, embedder=embedder, judge=judge, policy=policy)
    noon, one, off = "Team lunch is at half past twelve", "We all eat together around 1 pm", "Team lunch is off"
    judge.verdicts |= {(noon, one): Verdict.CONTRADICTS, (noon, off): Verdict.UPDATES, (one, off): verdict}
    first, second = heart.learn(noon).memory, heart.learn(one).memory
    (found,) = heart.contradictions()

    learned = heart.learn(off, replaces=first.id if is_named else None)

    facts = [heart.get_fact(each.id) for each in (first, second)]
    assert [fact.state for fact in facts] == ["superseded", "superseded" if verdict is Verdict.UPDATES else "active"]
    assert [near.fact.id for near in learned.contradicts] == ([second.id] if verdict is Verdict.CONTRADICTS else [])
    assert learned.memory == heart.get_fact(learned.memory.id)
    (asked,) = heart.contradictions() or [None]
    assert (asked is not None) == (verdict is Verdict.CONTRADICTS)
    if verdict is Verdict.UNSURE:
        assert learned.near[0].fact.id == second.id
        assert learned.near[0].suggestion is not None
        assert "perhaps replaces “We all eat" in learned.near[0].suggestion
    heart.undo(learned.memory.id, reason="it is on again")
    assert [each.id for each in heart.contradictions()] == [found.id]


def test_what_stands_in_no_contradiction_costs_learning_no_question_more(heart: Heart, judge) -> None:
    heart.learn("Team lunch is at half past twelve")
    heart.learn("We all eat together around 1 pm")
    judge.asked.clear()

    heart.learn("Team lunch is off")

    assert [pair.a.text for pair in judge.asked] == ["Team lunch is at half past twelve"]


def archive(heart: Heart, fact: Fact) -> None:
    """Archive a superseded fact as a later night does."""
    with heart.agent.database.transaction("aria") as connection:
        cause = Cause("operator", "archived", "long superseded", MAY)
        values = {"state": "archived", "archived_at": MAY.isoformat()}
        change_memory(connection, "aria", version_of(FACT, heart.get_fact(fact.id)), values, cause=cause)


@pytest.mark.parametrize("is_archived", [False, True])
@pytest.mark.parametrize(
    ("resolution", "states"),
    [
        ("a_wins", ["active", "superseded"]),
        ("b_wins", ["superseded", "active"]),
        ("both_valid", ["active", "active"]),
        ("same", ["active", "superseded"]),
    ],
)
def test_a_side_that_gave_way_to_the_other_is_active_again_where_the_ruling_says_that_it_holds(
    heart: Heart, pair, found: Contradiction, resolution, states, *, is_archived: bool
) -> None:
    heart.supersede_fact(pair[1].id, pair[0].id)
    if is_archived:
        archive(heart, pair[1])

    resolved = heart.resolve_contradiction(found.id, resolution)

    (first, second) = standing(heart, pair)
    assert resolved.status == "resolved"
    assert [first[0], second[0].replace("archived", "superseded")] == states
    recalled = {each.id for each in heart.recall("where does Ana sit, where is her desk?")}
    assert {fact.id for fact, state in zip(pair, states, strict=True) if state == "active"} == recalled
    assert heart.contradictions() == []


def test_undoing_a_ruling_for_a_side_that_had_given_way_asks_again(heart: Heart, pair, found: Contradiction) -> None:
    heart.supersede_fact(pair[1].id, pair[0].id)
    heart.resolve_contradiction(found.id, "b_wins")

    heart.undo(pair[0].id)

    assert heart.contradictions() == [found]
    assert standing(heart, pair) == [("active", "open"), ("active", "open")]


def undo_it(heart: Heart, command: str) -> None:
    """Run the command that a message names."""
    verb, memory_id, *options = command.removeprefix("nous ").split()
    if verb == "undo":
        heart.undo(UUID(memory_id))
    else:
        heart.restore(UUID(memory_id), is_active=options == ["--active"])


@pytest.mark.parametrize(
    "retire",
    [
        superseded,
        merged,
        undone,
        lambda heart, fact: heart.forget(fact.id),
        lambda heart, fact: (superseded(heart, fact), heart.forget(fact.id)),
        lambda heart, fact: (merged(heart, fact), heart.forget(fact.id)),
        lambda heart, fact: (superseded(heart, fact), heart.forget(fact.id), heart.restore(fact.id)),
    ],
    ids=["superseded", "merged", "undone", "forgotten", "superseded-forgotten", "merged-forgotten", "and-restored"],
)
@pytest.mark.parametrize("resolution", ["b_wins", "both_valid"])
def test_a_ruling_for_a_side_that_something_else_retired_is_refused_with_the_command_that_brings_it_back(
    heart: Heart, pair, found: Contradiction, retire, resolution: Resolution
) -> None:
    retire(heart, pair[1])
    before = heart.get_fact(pair[1].id)

    with pytest.raises(Conflict, match=f"fact {pair[1].id} is {before.state}, so it can't win or hold: ") as refused:
        heart.resolve_contradiction(found.id, resolution)
    assert heart.get_fact(pair[1].id) == before
    (command,) = findall(r"`([^`]+)`", str(refused.value))
    undo_it(heart, command)

    assert heart.get_fact(pair[1].id).state == "active"
    assert heart.resolve_contradiction(found.id, resolution).resolution == resolution


@pytest.mark.parametrize(
    ("resolution", "states"),
    [("both_valid", ["active", "active"]), ("a_wins", ["active", "superseded"]), ("b_wins", ["superseded", "active"])],
)
def test_a_doubt_of_which_the_earlier_fact_gave_way_since_is_decided_as_ruled(
    heart: Heart, judge, resolution: Resolution, states: list[str]
) -> None:
    judge.change = 0.9
    earlier = heart.learn("the pager is with Ana", learned_at=MAY).memory
    later = heart.learn("Ana has the pager now").memory
    heart.supersede_fact(earlier.id, later.id)
    archive(heart, earlier)

    settle_doubt(heart, heart.get_fact(later.id), Ruling(resolution))

    found = [heart.get_fact(each.id).state.replace("archived", "superseded") for each in (earlier, later)]
    assert found == states


def test_a_doubt_whose_earlier_fact_gave_way_to_a_third_names_the_way_back(heart: Heart, judge) -> None:
    judge.change = 0.9
    earlier = heart.learn("the pager is with Ana", learned_at=MAY).memory
    later = heart.learn("Ana has the pager now").memory
    heart.supersede_fact(earlier.id, heart.learn("Nobody is on call").memory.id)

    with pytest.raises(Conflict, match=f"`nous undo {earlier.id}` makes it active again"):
        settle_doubt(heart, later, Ruling("both_valid"))

    assert heart.get_fact(later.id).perhaps_replaces == [earlier.id]


def test_below_operator_a_pinned_fact_that_gave_way_is_not_brought_back_by_a_ruling(heart: Heart, pair, found) -> None:
    heart.pin(pair[0].id)
    heart.supersede_fact(pair[0].id, pair[1].id)

    with pytest.raises(Forbidden, match="is pinned"):
        heart.limited_to(WITHOUT_KEY).resolve_contradiction(found.id, "a_wins")

    assert heart.get_fact(pair[0].id).state == "superseded"
