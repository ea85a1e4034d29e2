"""What no entrance lets in: texts nobody sees, things said in days to come, lists without an end."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from import_files import import_file, numbers, written
from mcp_visits import call, door_to, refusal, said, values

from nous_online.core.errors import InvalidInput
from nous_online.core.validation import LARGEST_LEAD, checked_ids, checked_said, is_blank, visible
from nous_online.heart import Heart
from nous_online.interfaces.api.bodies import INVISIBLE

NOW = datetime(2026, 5, 1, tzinfo=UTC)
NOBODY_SEES = {
    "zero-width spaces": "\u200b" * 3, "joiners": "\u200d\u200c", "byte order marks": "\ufeff",
    "word joiners": "\u2060",
    "soft hyphens": "\u00ad", "Hangul fillers": "\u3164\uffa0\u115f", "Braille without dots": "\u2800 \u2800",
    "tags": "\U000e0041\U000e0042", "marks of direction": "\u202e\u2066\u202c", "accents alone": "\u0301 \u0302",
    "variation selectors": "\ufe0f\U000e0100", "controls": "\x1b\x07",
    "all of them": "\u200b\u00ad\u3164\u2800\u0301 \n",
}  # fmt: skip
FUTURE = "2099-01-01T00:00:00Z"
Story = Callable[[Heart, Any], object]
TEXTS: dict[str, Story] = {
    "learn": lambda heart, text: heart.learn(text),
    "learn, subject": lambda heart, text: heart.learn("Tea helps", subject=text),
    "learn, context": lambda heart, text: heart.learn("Tea helps", context=text),
    "learn, a tag": lambda heart, text: heart.learn("Tea helps", tags=[text]),
    "learn_deferred": lambda heart, text: heart.learn_deferred([(text, {})]),
    "recall": lambda heart, text: heart.recall(text),
    "record_episode": lambda heart, text: heart.record_episode(text),
    "record_episode, a lesson": lambda heart, text: heart.record_episode("Tea helped.", lessons_learned=[text]),
    "start_episode": lambda heart, text: heart.start_episode(text),
    "store_procedure": lambda heart, text: heart.store_procedure(text, goals=["tea"]),
    "store_procedure, a goal": lambda heart, text: heart.store_procedure("Brew tea", goals=[text]),
    "store_procedure, a step": lambda heart, text: heart.store_procedure("Brew tea", kind="workflow", steps=[text]),
    "add_censor": lambda heart, text: heart.add_censor(text, "it burns"),
    "add_censor, reason": lambda heart, text: heart.add_censor("boil milk", text),
    "check_censors": lambda heart, text: heart.check_censors(text),
    "focus": lambda heart, text: heart.focus(text),
    "open_thread": lambda heart, text: heart.open_thread(text),
    "record_decision": lambda heart, text: heart.record_decision(text),
    "record_step": lambda heart, text: heart.record_step(text),
}
MOMENTS: dict[str, Story] = {
    "learn": lambda heart, at: heart.learn("Tea helps", learned_at=at),
    "learn_deferred": lambda heart, at: heart.learn_deferred([("Tea helps", {"learned_at": at})]),
    "confirm_fact": lambda heart, at: heart.confirm_fact(heart.learn("Tea helps").memory.id, at=at),
    "start_episode": lambda heart, at: heart.start_episode("Tea", started_at=at),
    "record_episode": lambda heart, at: heart.record_episode("Tea helped.", ended_at=at),
    "close_episode": lambda heart, at: heart.close_episode(heart.start_episode("Tea").id, ended_at=at),
    "store_procedure": lambda heart, at: heart.store_procedure("Brew tea", goals=["tea"], learned_at=at),
    "add_censor": lambda heart, at: heart.add_censor("boil milk", "it burns", learned_at=at),
    "record_decision": lambda heart, at: heart.record_decision("Drink tea", decided_at=at),
}


@pytest.mark.parametrize("text", NOBODY_SEES.values(), ids=NOBODY_SEES)
def test_a_text_nobody_sees_is_blank(text: str) -> None:
    assert is_blank(text)


@pytest.mark.parametrize(
    "text", ["a", "7", "?", "é", "e\u0301", "茶", "👩\u200d🚀", "\u200bx\u200b", "\u2801", "\ud800", "क्"]
)
def test_a_text_of_which_anything_is_seen_is_not_blank(text: str) -> None:
    assert not is_blank(text)


@pytest.mark.parametrize("entrance", TEXTS)
def test_no_entrance_takes_a_text_nobody_sees(heart: Heart, entrance: str) -> None:
    for text in ("\u200b\u00ad\ufeff", "\u3164\u2800", "\U000e0041\u202e", "\u0301"):
        with pytest.raises(InvalidInput, match="nobody sees"):
            TEXTS[entrance](heart, text)


@pytest.mark.parametrize("entrance", MOMENTS)
def test_no_entrance_takes_what_was_said_in_days_to_come(heart: Heart, entrance: str) -> None:
    with pytest.raises(InvalidInput, match=r"2099-01-01T00:00:00\+00:00 lies ahead: it is 20"):
        MOMENTS[entrance](heart, FUTURE)


@pytest.mark.parametrize("entrance", MOMENTS)
def test_a_clock_may_be_some_hours_ahead(heart: Heart, entrance: str) -> None:
    MOMENTS[entrance](heart, datetime.now(UTC) + timedelta(hours=23))


def test_a_moment_may_lie_a_day_ahead_and_no_more() -> None:
    assert checked_said("learned_at", NOW + LARGEST_LEAD, now=NOW) == NOW + timedelta(days=1)
    with pytest.raises(InvalidInput, match="learned_at"):
        checked_said("learned_at", NOW + LARGEST_LEAD + timedelta(seconds=1), now=NOW)


def test_an_import_reports_the_lines_of_days_to_come_and_of_texts_nobody_sees(heart: Heart, tmp_path: Path) -> None:
    records = [
        {"content": "Tea helps"},
        {"content": "Coffee helps", "learned_at": FUTURE},
        {"content": "\u200b\u2800"},
        {"kind": "episode", "detail": "Tea helped.", "ended_at": FUTURE},
    ]

    report = import_file(heart, written(tmp_path / "some.jsonl", *records))

    assert report.stored == 1
    assert numbers(report) == [2, 3, 4]
    assert all(re.search("lies ahead|nobody sees", str(bad)) for bad in report.bad)


def test_a_list_without_end_is_refused_before_its_entries_are_looked_at(heart: Heart) -> None:
    began = time.process_time()

    with pytest.raises(InvalidInput, match="lessons_learned has 2,000,000 entries, the limit is 1,000"):
        heart.record_episode("Tea helped.", lessons_learned=["Drink tea"] * 2_000_000)
    with pytest.raises(InvalidInput, match="memory_ids has more than 1,000 entries"):
        checked_ids("memory_ids", iter(lambda: "not an id", None))

    assert time.process_time() - began < 1


def test_a_model_is_shown_what_a_person_sees() -> None:
    assert visible("Deploys\U000e0041 are \u202esafe\u202c\u200b") == "Deploys are safe"
    assert visible("👩\u200d🚀 \u0645\u06cc\u200c\u062e ❤\ufe0f") == "👩\u200d🚀 \u0645\u06cc\u200c\u062e ❤\ufe0f"


def test_no_tool_answers_with_characters_nobody_sees(heart: Heart) -> None:
    hidden = "\U000e0041\u202e\u200b"
    door = door_to(heart)
    heart.learn(f"Deploys go{hidden} out on Fridays")
    heart.add_censor(f"deploying on{hidden} a friday", f"nobody{hidden} is there")
    heart.focus(f"ship{hidden} it", session_id="default")
    heart.open_thread(f"who{hidden} pays?", session_id="default")
    stories: dict[str, dict[str, Any]] = {
        "recall": {"query": "deploys", "detail": "full"},
        "context": {"query": "deploys"},
        "check_action": {"action": "deploying on a friday"},
        "focus": {"task": f"ship{hidden} it"},
    }

    for tool, arguments in stories.items():
        answer = call(door, tool, **arguments)
        assert not set(hidden) & set(said(answer) + str(values(answer))), tool
    assert "nobody sees" in refusal(call(door, "remember", content=hidden))


def test_the_pattern_of_the_api_refuses_nothing_that_is_seen() -> None:
    unseen = re.compile(f"[{INVISIBLE}]")

    assert [hex(each) for each in range(0xD800) if unseen.match(chr(each)) and not is_blank(chr(each))] == []
    assert all(is_blank(chr(each)) for each in range(0xE000, 0x10000) if unseen.match(chr(each)))
    assert unseen.match("\x8a")
    assert unseen.match("\u200b")
