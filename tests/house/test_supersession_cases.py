"""How the public cases of changing facts become stories: on rows of the same shape, invented here."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # benchmarks are run from the root, and not installed

from benchmarks.supersession import (
    Outcome,
    beginning,
    lexical,
    of_slots,
    pair_rates,
    right_share,
    slot_of,
    stale_share,
)
from benchmarks.supersession_cases import Asked, Said, Story, dated_facts, fact_consolidation, project_chats

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)


def write(folder: Path, name: str, rows: list[dict[str, object]]) -> None:
    (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")


@pytest.fixture
def consolidation(tmp_path: Path) -> Path:
    facts = ["The seat of Norvia is Elm.", "The seat of Harrow is Oak.", "The seat of Norvia is Oak."]
    rows = [{"store": "s", "serial": number, "fact": fact} for number, fact in enumerate(facts)]
    write(tmp_path, "fc_facts", rows[::-1])
    write(tmp_path, "fc_conflicts", [{"store": "s", "old_serial": 0, "new_serial": 2}])
    question = {"store": "s", "hop": "single", "question": "Where has Norvia its seat?", "answers": ["Oak"]}
    write(tmp_path, "fc_qa", [question, {**question, "hop": "multi"}])
    return tmp_path


def test_facts_are_learned_in_serial_order_and_questions_tied_to_the_fact_they_ask_for(consolidation: Path) -> None:
    (story,) = fact_consolidation(consolidation, quick=False)

    assert [said.key for said in story.said] == ["0", "1", "2"]
    assert story.said[0].at < story.said[1].at < story.said[2].at
    assert story.replaced == {("0", "2")}
    assert [(asked.right, asked.stale) for asked in story.asked] == [({"2"}, {"0"})]


def test_a_dated_fact_is_asked_in_the_middle_of_its_time_and_a_returning_value_is_right_again(tmp_path: Path) -> None:
    days = [("Ada", "2001-01-01", "2001-01-11"), ("Bo", "2001-01-11", "2001-01-11"), ("Ada", "2001-01-11", None)]
    rows = [
        {"slot": "x", "fact": f"The chair is {value}.", "value": value, "valid_from": start, "valid_to": end}
        for value, start, end in days
    ]
    write(tmp_path, "dyknow_facts", rows)

    (story,) = dated_facts(tmp_path, quick=False)

    assert len(story.said) == 3
    assert [(asked.text, asked.as_of) for asked in story.asked] == [
        ("The chair is", datetime(2001, 1, 6, tzinfo=UTC)),
        ("The chair is", datetime(2001, 1, 12, tzinfo=UTC)),
    ]
    assert all("Bo" not in story.said[int(key.split("-")[1])].text for asked in story.asked for key in asked.right)


def test_of_a_chat_the_turns_of_the_user_are_learned(tmp_path: Path) -> None:
    turns = [(0, "user", "March-15-2024"), (1, "assistant", None), (2, "user", None)]
    rows = [{"chat": 1, "batch": 1, "id": n, "role": role, "time": time, "text": "-"} for n, role, time in turns]
    roles = {"original_info": [0], "updated_info": [2]}
    write(tmp_path, "beam100k_turns", rows)
    asked = {"chat": 1, "type": "knowledge_update", "question": "How many?", "evidence_roles": roles}
    write(tmp_path, "beam100k_questions", [asked, {**asked, "type": "abstention"}])

    (story,) = project_chats(tmp_path)

    assert [said.key for said in story.said] == ["0", "2"]
    assert story.asked == [Asked("How many?", frozenset({"2"}), frozenset({"0"}))]


def test_rates_count_pairs_and_answers() -> None:
    story = Story(
        "s",
        [Said(key, key, NOON) for key in "abcd"],
        frozenset({("a", "b"), ("c", "d")}),
        [Asked("?", frozenset("b"), frozenset("a")), Asked("?", frozenset("d"))],
    )
    found = [[frozenset("b"), frozenset("a")], [frozenset("c")]]
    outcome = Outcome(story, frozenset({("a", "b"), ("a", "c"), ("b", "c")}), found)

    assert pair_rates([outcome]) == (pytest.approx(1 / 3), 0.5)
    assert stale_share([outcome]) == 1.0
    assert right_share([outcome], depth=10) == 0.5


@pytest.fixture
def chairs() -> Story:
    """Two chairs in turn, and another thing, with questions about one moment each."""
    facts = ["The chair of Elm is Ada", "The seat of Elm is Oak", "The chair of Elm is Bo"]
    said = [
        Said(key, text, NOON + timedelta(days=place))
        for place, (key, text) in enumerate(zip("abc", facts, strict=True))
    ]
    asked = [
        Asked("The chair of Elm is", frozenset(right), as_of=NOON + timedelta(days=day))
        for right, day in (("a", 1), ("c", 3))
    ]
    return Story("s", said, frozenset({("a", "c")}), asked)


def test_a_text_up_to_its_last_function_word_is_a_slot() -> None:
    assert slot_of("The chair of Elm is Ada Byron") == "The chair of Elm is"
    assert slot_of("Ada sings") == "Ada sings"


def test_the_latest_statement_by_then_that_begins_with_the_question_is_found(chairs: Story) -> None:
    assert beginning(chairs).answers == [[frozenset("a")], [frozenset("c")]]


def test_peers_that_search_by_words_know_the_date_and_the_latest_value_of_a_slot(chairs: Story) -> None:
    pytest.importorskip("bm25s")

    found, slots = lexical(chairs).answers, of_slots(chairs)

    assert [answers[0] for answers in found] == [frozenset("a"), frozenset("c")]
    assert frozenset("c") not in found[0]
    assert slots.made == {("a", "c")}
    assert all(frozenset("a") not in answers for answers in slots.answers)
