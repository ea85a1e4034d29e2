"""A small context is a feature: what was told ends it, not the budget."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import permutations

import pytest

from nous_online.language.pairs.judging import Verdict

FILE = "src/auth/login.ts"
ERROR = "TypeError: Cannot read properties of undefined (reading 'token')"
DEBUGGING = {"current_file": FILE, "recent_errors": [ERROR], "activity": "debugging"}
NAMES = ("Ana", "Ben", "Carla", "Dmitri", "Elif", "Farid", "Greta", "Hugo", "Ines", "Jonas")


def learn_an_office(heart) -> None:
    """Learn eighty facts that have nothing to do with any code, some of them recalled and cited now and then."""
    kinds = (
        "desk phone is extension 4{}28", "lunch is at 1{} o'clock", "time zone is EST plus {}", "locker is number {}",
        "chair was ordered on day {}", "bus leaves at 17:0{}", "badge is colour {}", "plant needs {} cups of water",
    )  # fmt: skip
    heart.learn_deferred([(f"{name}'s {kind.format(n)}", {}) for n, name in enumerate(NAMES) for kind in kinds])
    for day in range(10):
        at = datetime.now(UTC) - timedelta(days=10 - day)
        recall = heart.recall(f"{NAMES[day]}'s extension", session_id=f"s{day}", at=at, limit=3)
        heart.cite(recall.id, [recall[0].id], at=at)


def test_a_file_and_an_error_that_nothing_is_known_about_give_a_small_context(heart):
    learn_an_office(heart)

    context = heart.assemble_context(signals=DEBUGGING)

    assert [(line.text, line.reason) for line in context.lines if line.tier != "index"] == []
    assert 0 < len(context.lines) <= 5
    assert context.token_count < 100


def test_what_is_known_about_the_file_and_the_error_is_shown_without_the_rest(heart):
    learn_an_office(heart)
    heart.learn("TypeError reading token in login: the session cookie had expired, so refresh it first")

    context = heart.assemble_context(signals=DEBUGGING)

    (line,) = context.lines
    assert line.tier == "critical"
    assert "refresh it first" in line.text


def test_a_convention_is_a_line_of_its_own_but_nothing_to_ask_for_where_there_is_no_room(heart):
    learn_an_office(heart)
    heart.learn_deferred([(f"Napkin {n} is folded twice", {"category": "convention"}) for n in range(20)])
    heart.learn("TypeError reading token in login: the session cookie had expired, so refresh it first")

    context = heart.assemble_context(signals=DEBUGGING, budget=200)

    assert context.left_out["background"] > 0
    assert {line.tier for line in context.lines} == {"critical", "background"}


def test_where_nothing_is_told_the_index_says_what_was_learned_last(heart):
    learn_an_office(heart)

    context = heart.assemble_context()

    assert {line.tier for line in context.lines} == {"index"}
    assert len(context.lines) > 5


@pytest.mark.parametrize("is_pinned", [False, True])
def test_what_is_relevant_or_pinned_is_something_to_ask_for_where_it_found_no_room(heart, is_pinned):
    learn_an_office(heart)
    details = {"subject": "login notes", "is_pinned": is_pinned}
    heart.learn("Login fails once the session token has expired, so refresh it before you read it. " * 6, **details)

    context = heart.assemble_context(query="Why does login fail with an expired session token?", budget=45)

    assert [(line.tier, line.text) for line in context.lines] == [("index", "login notes")]


def test_a_contradiction_that_has_nothing_to_do_with_what_was_told_is_left_out(heart, judge):
    for pair in (("The canteen serves fish", "The canteen serves meat"), ("login keeps JWTs", "login keeps sessions")):
        judge.verdicts.update(dict.fromkeys(permutations(pair, 2), Verdict.CONTRADICTS))
        for text in pair:
            heart.learn(text, subject=text.split()[0])

    told, untold = heart.assemble_context(query="what does login keep"), heart.assemble_context()

    assert ["canteen" in line.text for line in told.lines if line.kind == "contradiction"] == [False]
    assert sorted("canteen" in line.text for line in untold.lines if line.kind == "contradiction") == [False, True]


def test_an_answer_below_half_of_the_best_one_is_shown_while_there_is_room(heart):
    heart.learn("The blue harbour gate opens at six in the morning")
    heart.learn("The harbour has a crane, built long ago by people nobody remembers, in the far corner of the old yard")

    context = heart.assemble_context(query="When does the blue harbour gate open in the morning, at six?")

    best, other = heart.recall("When does the blue harbour gate open in the morning, at six?")
    assert 0.3 * best.score < other.score < 0.5 * best.score
    assert [line.tier for line in context.lines] == ["relevant", "relevant"]


def test_a_context_shows_the_later_of_two_values_first(heart):
    heart.learn_deferred([
        ("I prefer window seats on flights", {"learned_at": "2026-05-01T00:00:00Z"}),
        ("I prefer aisle seats on flights", {"learned_at": "2026-06-01T00:00:00Z"}),
    ])  # fmt: skip

    context = heart.assemble_context(query="which window or aisle seats do I prefer on flights")

    assert [line.text for line in context.lines] == [
        "2026-06-01 I prefer aisle seats on flights",
        "2026-05-01 I prefer window seats on flights",
    ]


@pytest.mark.parametrize("is_later_trusted", [True, False])
def test_a_contradicted_fact_never_stands_without_the_later_or_more_trusted_one(heart, judge, is_later_trusted):
    told = ("Prod DB runs on box fsn1-04", "We moved prod off fsn1-04 in the night, and its new home is box nbg1-11")
    judge.verdicts[told] = Verdict.CONTRADICTS
    firm, doubtful = reversed(told) if is_later_trusted else told
    for day, text in enumerate(told, start=1):
        at = datetime(2026, 5, day, tzinfo=UTC)
        heart.learn(text, subject="prod", learned_at=at, trust=50 if text == firm else 40)
    learn_an_office(heart)

    shown = set[tuple[bool, bool]]()
    for budget in range(20, 320, 5):
        context = heart.assemble_context(query="which box does the prod DB run on?", budget=budget)
        shown.add((firm in context.text, doubtful in context.text))

    assert shown == {(False, False), (True, False), (True, True)}


@pytest.mark.parametrize("budget", [120, 1_000])
def test_a_fact_of_an_open_contradiction_that_stands_alone_is_in_doubt(heart, judge, budget):
    statements = ("The database is Postgres", "The database is Mongo", "The database is Oracle")
    judge.verdicts.update(dict.fromkeys(permutations(statements, 2), Verdict.CONTRADICTS))
    now = datetime.now(UTC)
    for each in statements:
        heart.learn(each, subject="database", learned_at=now)

    context = heart.assemble_context(query="which database?", budget=budget)

    today = f"{now:%Y-%m-%d}"
    assert f"{today} in doubt: The database is " in context.text
    assert f"\n- {today} The database is " not in context.text
