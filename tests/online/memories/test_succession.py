"""Chains of facts: what is confirmed, what takes whose place, and what was believed when, on the real database."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from uuid import UUID

import psycopg
import pytest
from conftest import WordEmbedder

from nous_online.core.errors import Conflict, InvalidInput, NotFound, Refused
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.language.pairs.judging import OfflineJudge

APRIL, MAY, JUNE, JULY = (datetime(2026, month, 1, tzinfo=UTC) for month in (4, 5, 6, 7))
OSLO, PORTO, GHENT = (f"The head office is in {city}" for city in ("Oslo", "Porto", "Ghent"))


@pytest.fixture
def heart(database: Database) -> Iterator[Heart]:
    with Heart.open("aria", database=database, embedder=WordEmbedder(), judge=OfflineJudge()) as opened:
        yield opened


def believed(heart: Heart, as_of: datetime | None = None) -> list[str]:
    return sorted(answer.content for answer in heart.recall("where is the head office?", types=["fact"], as_of=as_of))


def test_each_value_gives_way_to_the_next_and_as_of_brings_it_back(heart: Heart) -> None:
    actions = [heart.learn(text, learned_at=at).action for text, at in ((OSLO, APRIL), (PORTO, MAY), (GHENT, JUNE))]

    assert actions == ["stored", "superseded", "superseded"]
    assert believed(heart) == [GHENT]
    assert [believed(heart, at) for at in (APRIL, MAY, JUNE)] == [[OSLO], [PORTO], [GHENT]]


def test_what_changes_a_part_leaves_the_rest_to_be_recalled(heart: Heart) -> None:
    earlier, later = "Tom's party is on 5 May in the Adler and has 30 guests", "Tom's party has 34 guests now"
    known = heart.learn(earlier, learned_at=APRIL).memory

    learned = heart.learn(later, learned_at=MAY)

    assert learned.action == "stored"
    assert [each.fact.id for each in learned.contradicts] == [known.id]
    assert [each.content for each in heart.recall("how many guests has Tom's party")] == [later, earlier]


def test_what_is_yet_to_begin_takes_no_value_away_that_holds_until_then(heart: Heart) -> None:
    soon = datetime.now(UTC) + timedelta(days=30)
    now = heart.learn("Tom's pocket money is 3 euros a week", learned_at=MAY).memory
    coming = heart.learn("Tom's pocket money is 4 euros a week", learned_at=JUNE, valid_from=soon).memory
    assert heart.get_fact(now.id).state == "active"

    for replace_at_once in (
        lambda: heart.supersede_fact(now.id, coming.id),
        lambda: heart.learn("Tom's pocket money is 5 euros a week", valid_from=soon, replaces=now.id),
    ):
        with pytest.raises(Refused, match=f"holds until {soon:%Y-%m-%d}.*nous update {now.id} --valid-to"):
            replace_at_once()

    heart.update(now.id, valid_to=soon)
    assert [each.content for each in heart.recall("how much is Tom's pocket money")] == [now.content]
    later = heart.recall("how much is Tom's pocket money", as_of=soon + timedelta(days=1))
    assert [each.content for each in later] == [coming.content]


@pytest.mark.parametrize(
    ("question", "is_found"),
    [
        ("which school will Mia go to", True),
        ("Mia's school next year", True),
        ("Auf welche Schule wird Mia gehen, school?", True),
        ("which school does Mia go to", False),
        ("which school did Mia go to", False),
    ],
)
def test_a_question_about_what_is_to_come_finds_what_is_yet_to_begin(
    heart: Heart, question: str, *, is_found: bool
) -> None:
    soon = datetime.now(UTC) + timedelta(days=30)
    now = heart.learn("Mia goes to the school in Mill Road", subject="Mia", valid_to=soon).memory
    coming = heart.learn("Mia goes to the school at the harbour", subject="Mia's new school", valid_from=soon).memory

    found = {each.id: each.begins_on for each in heart.recall(question)}

    assert found == {now.id: None, **({coming.id: soon.date()} if is_found else {})}
    assert coming.id not in {each for line in heart.assemble_context(query=question).lines for each in line.memory_ids}


def test_a_ruling_for_what_is_yet_to_begin_is_refused_and_says_what_to_do(heart: Heart) -> None:
    soon = datetime.now(UTC) + timedelta(days=30)
    now = heart.learn("Tom's pocket money is 3 euros a week", trust=90, learned_at=MAY).memory
    heart.learn("Tom's pocket money is 4 euros a week", learned_at=JUNE)
    (asked,) = heart.contradictions()
    later = next(each for each in (asked.memory_a, asked.memory_b) if each != now.id)
    heart.update(later, valid_from=soon)

    with pytest.raises(Refused, match="both_valid"):
        heart.resolve_contradiction(asked.id, keep=later)

    assert heart.resolve_contradiction(asked.id, "both_valid").status == "resolved"
    assert heart.get_fact(now.id).state == "active"


def test_a_value_that_returns_is_a_new_statement(heart: Heart) -> None:
    first = heart.learn(OSLO, learned_at=APRIL).memory
    heart.learn(PORTO, learned_at=MAY)

    again = heart.learn(OSLO, learned_at=JUNE)

    assert (again.action, again.memory.id == first.id) == ("superseded", False)
    assert heart.get(first.id).confirmation_count == 0
    assert believed(heart) == [OSLO]


def test_an_older_value_learned_late_is_stored_as_history(heart: Heart) -> None:
    newer = heart.learn(PORTO, learned_at=JUNE).memory

    late = heart.learn(OSLO, learned_at=APRIL).memory

    assert (late.state, late.superseded_by) == ("superseded", newer.id)
    assert (believed(heart), believed(heart, MAY)) == ([PORTO], [OSLO])


def test_of_two_values_of_one_moment_the_one_learned_second_holds(heart: Heart) -> None:
    heart.learn(OSLO, learned_at=MAY)

    assert heart.learn(PORTO, learned_at=MAY).action == "superseded"
    assert believed(heart) == [PORTO]


def test_every_value_that_was_imported_unmatched_gives_way(heart: Heart) -> None:
    heart.learn_deferred([(OSLO, {"learned_at": APRIL}), (PORTO, {"learned_at": MAY})])

    heart.learn(GHENT, learned_at=JUNE)

    assert heart.count() == {"active": 1, "superseded": 2}
    assert believed(heart) == [GHENT]


def test_another_value_is_found_by_its_slot_however_far_its_vector(heart: Heart) -> None:
    old = heart.learn("The launch name of the project is Quiet Harbour Lighthouse Keeper").memory
    heart.learn_deferred([(f"Note {n} on the launch name of a project", {}) for n in range(30)])

    learned = heart.learn("The launch name of the project is Rex")

    assert learned.action == "superseded"
    assert learned.match is not None
    assert learned.match.fact.id == old.id
    assert learned.match.similarity < 0.85


def test_an_added_value_supersedes_nothing(heart: Heart) -> None:
    for statement in ("Ana likes tea", "Ana likes coffee", "Ana speaks Dutch", "Ana speaks Danish"):
        heart.learn(statement, subject="Ana")

    assert heart.count() == {"active": 4}


def test_of_values_learned_at_once_the_one_said_last_holds(heart: Heart) -> None:
    cities = ("Oslo", "Porto", "Ghent", "Lyon", "Turin", "Bern")
    with ThreadPoolExecutor(len(cities)) as pool:
        learned = list(pool.map(lambda city: heart.learn(f"The head office is in {city}").memory.id, cities))

    assert heart.count() == {"active": 1, "superseded": 5}
    last = max((heart.get(fact_id) for fact_id in learned), key=lambda fact: fact.learned_at)
    assert last.state == "active"


def test_a_confirmation_adds_its_source_and_tags_and_keeps_the_first_frame(heart: Heart) -> None:
    heart.learn(OSLO, source="chat", tags=["office"], encoded_frame="decision", encoded_censors=["c1"])

    again = heart.learn(OSLO, source="mail", tags=["city", "office"], encoded_frame="debug").memory

    assert (again.source, again.sources, again.tags) == ("chat", ["mail"], ["office", "city"])
    assert (again.encoded_frame, again.encoded_censors) == ("decision", ["c1"])


def test_confirming_by_id_counts_dates_and_names_the_source(heart: Heart, owner: psycopg.Connection) -> None:
    fact = heart.learn(OSLO, learned_at=APRIL).memory

    confirmed = heart.confirm_fact(fact.id, at=MAY, source="mail")

    assert (confirmed.confirmation_count, confirmed.last_confirmed_at, confirmed.sources) == (1, MAY, ["mail"])
    assert owner.execute("select effective_at from lifecycle.events where action = 'confirmed'").fetchall() == [(MAY,)]


def test_only_an_active_fact_of_this_agent_is_confirmed(heart: Heart) -> None:
    old = heart.learn(OSLO).memory
    new = heart.learn(PORTO).memory

    with pytest.raises(Conflict, match=f"superseded by {new.id}"):
        heart.confirm_fact(old.id)
    with pytest.raises(NotFound, match="no fact"):
        heart.confirm_fact(UUID(int=1))


def test_superseding_by_id_keeps_the_chain_and_its_reason(heart: Heart, owner: psycopg.Connection) -> None:
    old, new = (heart.learn(text, learned_at=at).memory for text, at in (("Tea helps", APRIL), ("Rain falls", MAY)))

    retired = heart.supersede_fact(old.id, new.id, reason="it turned out so", at=JUNE)

    assert (retired.state, retired.superseded_by) == ("superseded", new.id)
    assert owner.execute(
        "select reason, effective_at from lifecycle.events where action = 'superseded'"
    ).fetchall() == [("it turned out so", JUNE)]


def test_superseding_never_goes_round_in_a_circle(heart: Heart) -> None:
    first, second, third = (heart.learn(text).memory for text in ("Tea helps", "Rain falls", "Dogs bark"))
    heart.supersede_fact(first.id, second.id)
    heart.supersede_fact(second.id, third.id)

    with pytest.raises(Conflict, match="superseded by"):
        heart.supersede_fact(third.id, first.id)
    with pytest.raises(Conflict, match=f"superseded by {second.id}"):
        heart.supersede_fact(first.id, third.id)
    with pytest.raises(InvalidInput, match="itself"):
        heart.supersede_fact(third.id, third.id)
    with pytest.raises(NotFound, match="no fact"):
        heart.supersede_fact(third.id, UUID(int=1))


def test_two_that_supersede_each_other_at_once_leave_one(heart: Heart) -> None:
    one, other = (heart.learn(text).memory.id for text in ("Tea helps", "Rain falls"))

    with ThreadPoolExecutor(2) as pool:
        calls = [pool.submit(heart.supersede_fact, *pair) for pair in ((one, other), (other, one))]
    refused = [call.exception() for call in calls if call.exception()]

    assert [type(error) for error in refused] == [Conflict]
    assert heart.count() == {"active": 1, "superseded": 1}


def test_a_fact_names_what_it_was_drawn_from(heart: Heart) -> None:
    episode = heart.start_episode("The move")

    fact = heart.learn(OSLO, source_episode_id=episode.id, source_decision_id=str(UUID(int=8))).memory

    assert (fact.source_episode_id, fact.source_decision_id) == (episode.id, UUID(int=8))
    with pytest.raises(NotFound, match="no episode"):
        heart.learn(PORTO, source_episode_id=UUID(int=9))


def test_what_is_said_of_two_subjects_is_kept_twice(heart: Heart) -> None:
    for statement in ("The status is green", "The deadline is May 3", "The deadline is May 9"):
        for subject in ("server A", "server B"):
            heart.learn(statement, subject=subject)

    assert heart.count() == {"active": 4, "superseded": 2}
