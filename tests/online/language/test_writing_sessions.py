# ruff: noqa: RUF001 — full-width marks are cases
from __future__ import annotations

from dataclasses import replace

import pytest

from nous_online.language.writing import writer
from nous_online.language.writing.lexrank import word_vectors
from nous_online.language.writing.points import finding_within, is_finding, points_of
from nous_online.language.writing.sentences import sentences_of
from nous_online.language.writing.writer import POLICY, EndedEpisode, draft_facts, levels_by_words, parse_episode


def facts(detail: str) -> list[str]:
    """What is drawn from a transcript by its words alone."""
    spoken = parse_episode(EndedEpisode(detail))
    return [fact.content for fact in draft_facts(spoken, word_vectors(spoken.sentences))]


def findings(detail: str) -> list[str]:
    """What counts as a finding in a transcript, worth a fact or not."""
    sentences = parse_episode(EndedEpisode(detail)).sentences
    points = (finding_within(each, sentences) for each in points_of(sentences))
    return [point.text for point in points if is_finding(point)]


WORKING = "user: Draw the level of the pond.\n[Bash] level --plot\nassistant: Drawn.\n"


@pytest.mark.parametrize(
    "pasted",
    [
        "user: # Outline\n1. Never read a gauge by night.\n2. All paths must be absolute.",
        "user: You must stay in your role.\n<agent-activation strict='yes'>\nAlways read the whole file.",
        "user: " + "Every gauge of the weir must be read twice by the miller of Olm. " * 15,
        "user: KnotError: a rope must start with a hitch.",
        "user: Ropes are not allowed in this place at line 2 column 32.",
        "user: Error: the url of the mill must start with rope://",
        "user: 1 yes they should be read, 4 fine.",
        "user: Should we read the gauges by night",
        "user: Also should we group the gauges by weir. do we read each of them twice",
        "user: We have many gauges at Olm, are any of them read by night",
        "user: We should paint the gauge a little.",
        "user: Do not edit the drawings of the weir. Report what is left.",
        "user: yeah but there should not be any changes",
        "user: Let's take the plot of the upper weir.",
    ],
)
def test_what_a_user_pastes_or_says_of_the_moment_is_no_rule_of_theirs(pasted: str) -> None:
    assert facts(f"{WORKING}{pasted}\nassistant: Fine.") == []


@pytest.mark.parametrize(
    "found",
    [
        "The gauge of Olm reads 0 because `rope.yml` names no hitch and no rope is tied by `level`.",
        "**Rope 4 breaks under load**: `level` must read `rope.yml` before the JSON of the mill, or no rope is tied. "
        "Fixed by pinning `hitch<4`.",
        "Moved the hitch out of `rope.yml`, to avoid that `knot` and `level` must never agree on the JSON of the mill.",
        "The `level` command does not read ropes of hemp, because its parser skips each line that names no hitch.",
        "The gauge of Olm uses feet instead of metres, so `level` must convert each value before it is written.",
        "The mill of Olm only reads ropes with a hitch, so the JSON export must name one.",
        "The plot starts at 1, since `rope.yml` names no gauge 0 and `level` never counts from it.",
    ],
)
def test_what_an_agent_found_or_how_it_mended_it_is_a_fact(found: str) -> None:
    assert facts(f"{WORKING}assistant: {found}") == [found.replace("**", "")]


@pytest.mark.parametrize(
    "found",
    [
        "The upper gauge reads 0 because its rope slips.",
        "**Rope 4 breaks under load**: the hitch in `rope.yml` slips. Fixed by pinning `hitch<4` in `rope.yml`.",
        "Moved the hitch out of `rope.yml` to avoid a second reading.",
        "水位图是平的，原因是 `rope.yml` 里没有绳结。",
        "The gauge of Olm uses feet instead of metres.",
        "The mill of Olm only reads ropes.",
        "The plot is flat, since `rope.yml` is.",
        "Ropes without a hitch are silently left out of `rope.yml`.",
        "Root cause confirmed: the mill reads twice.",
    ],
)
def test_a_short_cause_is_no_fact_and_stands_in_the_summary(found: str) -> None:
    steps = [f"assistant: Gauge {n} of the weir at Olm is drawn from line {n + 40} of the log." for n in range(40)]

    talk = "\n".join([WORKING.strip(), *steps[:20], f"assistant: {found}", *steps[20:]])

    assert found in findings(talk)
    assert found not in facts(talk)
    assert found.replace("**", "") in levels_by_words(EndedEpisode(talk)).summary


@pytest.mark.parametrize(
    "told",
    [
        "That works out since both of them happen at once.",
        "Fixed by `level --plot`.",
        "Use `level --plot` because the pond is small.",
        "The hitch of `rope.yml` is wrong because the rope is new.",
        "It could be slow because `rope.yml` is long.",
        "Plan: read `rope.yml` twice because the log has gaps.",
        "Commit: sort the ropes",
        "Commit: fix the hitch of rope 4",
        "Fix: the hitch of rope 4 is tied twice.",
        'The page says "because of the rope" in `rope.yml`.',
    ],
)
def test_what_an_agent_plans_supposes_or_says_of_something_said_before_is_no_fact(told: str) -> None:
    talk = f"{WORKING}assistant: {told}"

    assert (findings(talk), facts(talk)) == ([], [])


def test_code_that_opens_a_message_is_no_prose_and_what_follows_it_is() -> None:
    code = "```go\nrope := tie(knot)\n```"
    talk = f"user: Why?\nassistant: {code}\nThe rope broke on 3 June.\n{code}\nuser: Ah."

    assert [each.text for each in sentences_of(talk)] == ["Why?", "The rope broke on 3 June.", "Ah."]


@pytest.fixture
def _short_sight(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a session of a hundred sentences too long to be read whole."""
    monkeypatch.setattr(writer, "POLICY", replace(POLICY, most_sentences=40))


@pytest.mark.usefixtures("_short_sight")
def test_a_long_session_is_read_where_it_tells_what_was_found() -> None:
    step = "assistant: Gauge {} of the weir at Olm and the mill at Veldt, line {}."
    lines = [step.format(n, n + 40) for n in range(90)]
    found = "The level of the CSV export is flat because the upper gauge broke on 3 June and no JSON names the other."

    drawn = facts("\n".join(["[Bash] level --all", *lines[:45], f"assistant: {found}", *lines[45:]]))

    assert found in drawn


SAID = "The gauge of Olm has been read by the miller at 9:30 since the weir of Veldt was opened on 3 June."


def test_people_who_are_named_around_a_tool_are_no_agents() -> None:
    assert SAID in facts(f"Ana: Draw the level of the pond.\n[Bash] level --plot\nBen: {SAID}\nAna: The mill stands.")


def test_a_tool_that_is_named_like_a_speaker_beside_a_user_is_no_person() -> None:
    used = "".join(f"_**Assistant**_\n\nTool use: {told}\n\n---\n\n" for told in ("level", SAID, "weir"))

    assert facts(f"_**User**_\n\nDraw the level of the pond.\n\n---\n\n{used}[Bash] level --plot\n") == []


READ = "`rope.yml` is read before the hitch is tied, so `level` never sees the ropes of the mill."


@pytest.mark.parametrize(
    "said",
    [
        f"**Root cause**\n{READ}",
        f"## 🔍 Root cause (two ropes)\n1. {READ}",
        f"Here's the root cause chain:\n1. {READ}",
        f"Found it! {READ}",
        f"I've found the bug. {READ}",
    ],
)
def test_what_stands_below_a_heading_or_a_sentence_that_announces_a_cause_is_one(said: str) -> None:
    assert facts(f"{WORKING}assistant: {said}") == [READ]


@pytest.mark.parametrize(
    "told",
    [
        "Ropes without a hitch are silently left out of `rope.yml`, so no JSON export names them.",
        "The gauge of Olm doesn't accept a rope of hemp, only one of nylon that `rope.yml` names.",
        "Root cause confirmed: the mill at Olm reads the rope of `rope.yml` twice.",
    ],
)
def test_what_a_tool_does_that_nobody_expects_is_a_fact(told: str) -> None:
    assert facts(f"{WORKING}assistant: {told}") == [told]


@pytest.mark.parametrize(
    "told",
    [
        "Found it.",
        "level = 0 (wrong)",
        "Fix: Updated `rope.yml` for the new hitch.",
        "**Fix**\n`rope.yml` is read before the hitch is tied.",
        "It broke because `rope.yml` names no hitch.",
        "I'm using `level --plot` because the pond of Olm is small.",
        "Issue: [#4 - the rope causes gaps](https://mill.example/4)",
        "The plot broke because nobody had read the gauge.",
        "The gauge of Olm was initially read in feet because the mill at Veldt is old.",
        "Fix: tie rope 4 to the mill.",
        "The likely cause is `rope.yml`, because it is long.",
        "Its hitch slips because `rope.yml` names no mill.",
        "Two are broken because `rope.yml` names no hitch.",
        "The reading of Olm was blocked by the gate because it was night.",
        "The gauge of Olm reads 0 because I removed its rope.",
        "**Gauge** - Reads the level of Olm because the mill needs it.",
        "**Options**\nTie `rope.yml` to the mill, because the weir of Olm is far.",
        "`rope.yml` を読むため、確認します。",
        r'Input: "# Ropes\nThe gauge of Olm reads 0 because `rope.yml` is long.\n"',
    ],
)
def test_what_announces_refers_or_names_nothing_is_no_finding(told: str) -> None:
    talk = f"{WORKING}assistant: {told}"

    assert (findings(talk), facts(talk)) == ([], [])


@pytest.mark.parametrize(
    "told",
    [
        "I want the hitches in `rope.yml`, not in the log.",
        "Gauges are not allowed to be read by night.",
    ],
)
def test_what_a_user_wants_with_a_reason_or_in_place_of_something_else_lasts(told: str) -> None:
    assert facts(f"{WORKING}user: {told}\nassistant: Fine.") == [told]


@pytest.mark.parametrize(
    "told",
    [
        "Get the ropes of June, so that we'll use the new hitch.",
        "We need to draw the ponds of Olm, the mill decided that.",
        "Is it that you always have to read the gauge",
        "Don't tie it to the mill.",
        "Don't draw the pond for now.",
        "Make sure it works for the mill.",
        "Remove the axis of the plot and make sure the pond covers the page.",
        "Review the ropes of Olm and say which of them the miller should tie.",
        "The gauge of the mill is never called by the weir.",
        "The old gauge should be removed from the plot.",
        "I like the plot with two axes.",
    ],
)
def test_what_a_user_asks_for_now_likes_or_says_of_a_program_does_not_last(told: str) -> None:
    assert facts(f"{WORKING}user: {told}\nassistant: Fine.") == []


@pytest.mark.parametrize(
    ("told", "drawn"),
    [
        ("You're right. The gauge of Olm reads 0 because `rope.yml` names no hitch and no rope is tied by `level`.", 1),
        ("The pond of Olm is old. The gauge reads 0 because `rope.yml` names no hitch and `level` never ties one.", 0),
        ("The gauge of Olm reads no hemp, because its driver only knows the hitch of nylon. A reading is pending.", -1),
    ],
)
def test_a_finding_is_told_without_what_names_nothing_before_it_or_makes_it_none(told: str, drawn: int) -> None:
    sentences = [f"{each.rstrip('.')}." for each in told.split(". ")]

    assert facts(f"{WORKING}assistant: {told}") == [" ".join(sentences[drawn:] if drawn >= 0 else sentences[:drawn])]


def test_choices_below_their_heading_are_decisions() -> None:
    chosen = "Ropes of nylon for Olm, no hemp: the JSON export never names the hitch that a rope of hemp is tied with"

    assert facts(f"{WORKING}assistant: ## Key decisions made\n- {chosen}") == [chosen]


def test_what_is_found_and_then_published_is_one_fact() -> None:
    found = "the gauge of Olm reads 0 because `rope.yml` names no hitch and no rope is tied by `level`"

    assert len(facts(f"{WORKING}assistant: Root cause: {found}\nIssue: {found}")) == 1


def test_a_rule_that_somebody_dictates_at_length_is_heard() -> None:
    rule = "From now on a gauge is read by the miller alone."
    dictated = f"I was at the weir with the miller of Olm. {'The gauge there is old and its rope is new. ' * 18}{rule}"

    assert rule in " ".join(facts(f"{WORKING}user: {dictated}\nassistant: Fine."))


@pytest.mark.parametrize("roles", [("_**User**_", "_**Assistant**_"), ("## 👤 User", "## 🤖 Claude")])
def test_of_a_session_a_program_exported_as_markdown_what_was_found_is_a_fact(roles: tuple[str, str]) -> None:
    asked, answered = roles
    found = "The plot is flat because `rope.yml` names no hitch of Olm and no rope is tied by `level`."
    steps = f"{answered}\n\nI have read the gauge of the mill.\n\nChanges:\n- Rope: longer\n- Hitch: tighter\n\n---\n\n"
    export = f"<!-- Generated by SpecStory -->\n\n{asked}\n\nWhy is the plot flat?\n\n---\n\n{steps * 3}"

    assert facts(f"{export}{answered}\n\n{found}\n") == [found]


FAULT = (
    "The CSV plot of Olm fails on an empty log, because `level` must read `rope.yml` and never names a hitch of JSON."
)


@pytest.mark.parametrize(
    "mended",
    [
        "assistant: Fixed.",
        "assistant: Let me fix that:",
        "assistant: Drawn. The plot of Olm now skips an empty log.",
        "assistant: Fix: skipped the empty log before `level` reads line 1",
        "assistant: An empty log is no longer read for the plot.",
        "assistant: Drawn again.\nuser: Great, that works again!",
    ],
)
def test_a_fault_that_the_same_session_mends_is_no_fact(mended: str) -> None:
    assert facts(f"{WORKING}assistant: {FAULT}") == [FAULT]
    assert FAULT not in facts(f"{WORKING}assistant: {FAULT}\n[Edit] rope.yml\n{mended}")


@pytest.mark.parametrize(
    "later",
    [
        "assistant: Is the plot of Olm fixed for an empty log?",
        "assistant: The plot of Olm is probably fixed for an empty log.",
        "assistant: The weir of Veldt now has two gauges.",
        "user: Show the plot of Olm with an empty log now",
    ],
)
def test_a_fault_that_is_not_mended_for_sure_stays(later: str) -> None:
    assert FAULT in facts(f"{WORKING}assistant: {FAULT}\n{later}")


@pytest.mark.usefixtures("_short_sight")
def test_what_mends_a_fault_is_heard_in_a_session_too_long_to_be_read_whole() -> None:
    steps = [f"assistant: Gauge {n} of the weir at Olm and the mill at Veldt, line {n + 40}." for n in range(90)]
    mended = "assistant: The CSV plot of Olm no longer fails on an empty log."

    assert FAULT in facts("\n".join([WORKING.strip(), f"assistant: {FAULT}", *steps]))
    assert FAULT not in facts("\n".join([WORKING.strip(), f"assistant: {FAULT}", *steps[:45], mended, *steps[45:]]))


def test_what_is_no_fault_stays_whatever_is_new_about_the_same_thing() -> None:
    told = "The mill of Olm only reads ropes with a hitch, so the JSON export must name one."

    assert told in facts(f"{WORKING}assistant: {told}\nassistant: The JSON export of Olm now names a rope in bold.")


def test_what_was_and_what_is_told_with_its_mending_stay() -> None:
    past = FAULT.replace("fails", "had failed")
    whole = f"{FAULT} Fixed by a hitch in `rope.yml`."

    assert facts(f"{WORKING}assistant: {past}\nassistant: The plot of Olm now skips an empty log.")[0] == past
    assert whole in facts(f"{WORKING}assistant: {whole}\nassistant: The plot of Olm now skips an empty log.")


PROPOSED = "I suggest ropes of hemp for the gauge of Olm, since the JSON names no other. Hemp holds 40 kg at the mill."


@pytest.mark.parametrize("no", ["no, keep nylon, the miller knows it", "nah. Nylon stays"])
@pytest.mark.parametrize("used", ["", "[Bash] level --plot\n"])
def test_a_proposal_that_is_turned_down_is_no_fact_with_what_speaks_for_it(no: str, used: str) -> None:
    drawn = facts(
        f"user: Draw the pond.\n{used}assistant: {PROPOSED}\nuser: {no}\nassistant: The pond of Olm is drawn."
    )

    assert not any("hemp" in each.casefold() for each in drawn)


def test_the_decision_in_its_place_is_a_fact_with_its_reason() -> None:
    talk = f"{WORKING}assistant: {PROPOSED}\nuser: no, keep nylon from Veldt because the miller knows it\n"

    drawn = facts(
        f"{talk}assistant: Understood. We keep nylon for the gauge of Olm because the miller at Veldt knows it."
    )

    assert drawn == [
        "Keep nylon from Veldt because the miller knows it",
        "We keep nylon for the gauge of Olm because the miller at Veldt knows it.",
    ]


@pytest.mark.parametrize("said", ["You're right, no rope was tied.", "Read. No rope is tied by night."])
def test_agreeing_and_counting_take_nothing_back(said: str) -> None:
    rule = "Never tie a rope of `rope.yml` by night."

    assert rule in facts(f"{WORKING}user: {rule}\nassistant: {said}")
    assert FAULT in facts(f"{WORKING}assistant: {FAULT} No rope is tied by night.")[0]


@pytest.mark.parametrize(
    "told",
    [
        "决定：继续用尼龙绳，因为磨坊主熟悉它",
        "決定: 今後もナイロンの縄を使う",
        "教训: 空日志必须先检查再画图",
        "教訓：縄は夜に結ばない",
    ],
)
def test_what_is_labelled_as_decided_or_learned_is_kept_in_chinese_and_japanese(told: str) -> None:
    assert facts(f"{WORKING}user: {told}\nassistant: 好的。") == [told]


def test_a_label_that_opens_several_lines_is_nobodys_name() -> None:
    told = ["决定: 继续用尼龙绳", "决定: 空日志不画图"]

    assert [each.speaker for each in sentences_of("\n".join(told))] == [None, None]


def test_a_figure_that_became_another_stands_in_the_summary() -> None:
    steps = [f"assistant: Gauge {n} of the weir at Olm is drawn from line {n + 40} of the log." for n in range(40)]
    became = "The level of the pond went 1.31 m -> 0.27 m."

    summary = levels_by_words(
        EndedEpisode("\n".join([WORKING.strip(), *steps[:20], f"assistant: {became}", *steps[20:]]))
    ).summary

    assert became in summary
