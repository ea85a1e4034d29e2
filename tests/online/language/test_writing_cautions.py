# ruff: noqa: RUF001 — a typographic apostrophe is a case

from __future__ import annotations

import pytest

from nous_online.language.writing.cautions import Caution, cautions
from nous_online.language.writing.sentences import Sentence


def triggers(*lessons: str) -> list[str]:
    return [caution.trigger for caution in cautions(lessons, [])]


def blamed(*sentences: str) -> list[str]:
    return [caution.trigger for caution in cautions([], [Sentence(text) for text in sentences])]


@pytest.mark.parametrize(
    ("lesson", "trigger"),
    [
        (
            "Never restart the primary before replication has caught up.",
            "restart the primary before replication has caught up",
        ),
        ("Don't trust the dashboard: it lags by five minutes.", "trust the dashboard"),
        ("Don’t deploy on Friday evening, nobody is there.", "deploy on Friday evening"),
        ("Avoid larch in deep water because it warps.", "larch in deep water"),
        ("We should not have deleted the old table.", "deleted the old table"),
        ("You must not run migrations by hand", "run migrations by hand"),
        ("I tried to open the vault without asking Hanne.", "open the vault without asking Hanne"),
        ("I should have counted the sacks before paying the crew.", "paying the crew"),
    ],
)
def test_a_lesson_names_the_action_to_beware_of(lesson, trigger):
    assert cautions([lesson], []) == [Caution(trigger, lesson)]


@pytest.mark.parametrize(
    "lesson",
    [
        "Always check the lag first.",
        "I never found the mug.",
        "I don't know the way to Olm.",
        "I went to Olm to avoid the flood.",
        "Count the sacks before doing it.",
        "Never again!",
        "Never use the password hunter2: the password is hunter2.",
        "",
    ],
)
def test_a_lesson_without_an_action_to_match_leaves_no_caution(lesson):
    assert triggers(lesson) == []


@pytest.mark.parametrize(
    ("sentence", "trigger"),
    [
        ("After we restarted the primary, replication broke.", "restarted the primary"),
        ("Restarting the primary caused an outage of an hour.", "Restarting the primary"),
        ("The deploy failed because the token file was empty.", "the token file was empty"),
        ("Forty sacks were lost when the crew skipped the count.", "the crew skipped the count"),
    ],
)
def test_the_sentence_that_tells_a_failure_names_its_cause(sentence, trigger):
    assert blamed(sentence) == [trigger]


@pytest.mark.parametrize(
    "sentence",
    ["Replication broke.", "Did it fail because of the flood?", "The mill reopened after the flood, at last."],
)
def test_a_failure_without_a_cause_blames_nothing(sentence):
    assert blamed(sentence) == []


def test_lessons_come_first_and_what_they_cover_is_not_repeated():
    lessons = ["Never restart the primary under load."]
    covered = Sentence("After we restarted the primary, replication broke.", "Orla", 1)
    other = Sentence("The wheel broke because the oak was wet.", "Orla", 2)

    assert [each.trigger for each in cautions(lessons, [covered])] == ["restart the primary under load"]
    assert cautions(lessons, [other])[1] == Caution("the oak was wet", "Orla: The wheel broke because the oak was wet.")


def test_one_failure_leaves_three_cautions_at_most():
    assert triggers(*(f"Never moor barge {number} at the bridge." for number in range(2, 9))) == [
        f"moor barge {number} at the bridge" for number in (2, 3, 4)
    ]


@pytest.mark.parametrize(
    "sentence",
    ["We fixed the outage by counting the sacks twice.", "The mill lost no sack after adding a regression test."],
)
def test_what_mended_a_failure_is_not_blamed_for_it(sentence):
    assert blamed(sentence.replace("lost", "kept")) == []
