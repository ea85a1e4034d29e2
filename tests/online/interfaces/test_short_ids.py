"""Commands take the first digits of an id for the whole, and show ids cut short inside their sentences."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from cli_runs import pointed_at, typed
from typer import BadParameter

from nous_online import heart as hearts
from nous_online.core.domain import Fact
from nous_online.database.changes import Cause
from nous_online.heart import Heart
from nous_online.interfaces.cli.short_ids import ShortId, brief, identifier
from nous_online.language.pairs.judging import OfflineJudge
from nous_online.memories.contradictions import open_between

ID = UUID("01a2d3c4-e0bd-7d8c-b5bd-9313b051deb4")


@pytest.fixture(autouse=True)
def here(heart: Heart, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The commands of this process use the database and the embedder of `heart`."""
    monkeypatch.setattr(hearts, "default_embedder", lambda: heart.agent.embedder)
    with pointed_at(database_url, tmp_path):
        monkeypatch.setenv("NOUS_AGENT", "aria")
        yield


def first_digits(of: UUID) -> str:
    """Return so many digits that no other id of a test begins with them, though all are of one minute."""
    return str(of)[:22]


def disputed(heart: Heart) -> tuple[Fact, Fact]:
    one, other = (heart.learn(text).memory for text in ("Ana sits in Lima", "The desk of Ana stands in Oslo"))
    with heart.agent.database.transaction("aria") as connection:
        cause = Cause("agent", "contradicted", "one seat", datetime.now(UTC))
        assert open_between(connection, "aria", one, other, judgement={}, cause=cause)
    return one, other


@pytest.mark.parametrize("text", [str(ID), ID.hex, str(ID).upper(), f" {ID} "])
def test_a_whole_id_is_taken_as_it_is(text: str) -> None:
    assert identifier(text) == ID


@pytest.mark.parametrize(
    ("text", "digits"), [("01a2d3", "01a2d3"), ("01A2D3C4-E0", "01a2d3c4e0"), (str(ID)[:-1], ID.hex[:-1])]
)
def test_six_digits_or_more_are_a_short_id_with_or_without_dashes(text: str, digits: str) -> None:
    assert identifier(text) == digits
    assert isinstance(identifier(text), ShortId)


@pytest.mark.parametrize("text", ["01a2d", "", "zzzzzz", f"{ID}0", "01a2d3 4"])
def test_what_is_no_id_and_begins_none_is_refused(text: str) -> None:
    with pytest.raises(BadParameter, match="want a UUID, or at least its first 6 digits"):
        identifier(text)


def test_the_first_digits_of_a_memory_stand_for_it_in_every_command(heart: Heart) -> None:
    fact = heart.learn("The gate code is 4711").memory
    short = first_digits(fact.id)

    shown = typed("show", short, "--json").json["fact"]["id"]
    named = typed("history", short, "--json").json["memory_id"]
    pinned = typed("pin", short)
    told = typed("update", short, "--tag", "home")
    gone = typed("forget", short, "--reason", "the lock was changed")
    back = typed("restore", short)
    taken = typed("undo", short)
    dry = typed("erase", "--memory", short, "--dry-run", "--json").json

    assert {shown, named} == {str(fact.id)}
    assert [each.code for each in (pinned, told, gone, back, taken)] == [0] * 5
    assert dry["rows"]["heart.facts"] == 1


def test_statements_recalls_questions_and_options_take_them_too(heart: Heart) -> None:
    one, other = disputed(heart)
    heart.confirm_fact(one.id)
    statement = heart.statements(one.id)[-1]
    (found,), recall = heart.contradictions(), heart.recall("where does Ana sit?")

    noted = typed("feedback", first_digits(recall.id), "--cite", first_digits(one.id))
    split = typed("split", first_digits(statement.id))
    kept = typed("resolve", first_digits(found.id), "--keep", first_digits(other.id), "--json").json
    replaced = typed("learn", "Ana left", "--replaces", first_digits(other.id), "--json").json

    assert noted.out.startswith("noted  1 cited")
    assert split.code == 0, split.err
    assert (kept["id"], kept["status"], replaced["action"]) == (str(found.id), "resolved", "superseded")
    assert heart.get_fact(one.id).superseded_by == other.id


def test_digits_of_several_ids_are_refused_with_all_that_begin_so_and_of_none_with_what_was_sought(
    heart: Heart,
) -> None:
    facts = [heart.learn(text).memory for text in ("The gate code is 4711", "Cats like fish")]
    alike = str(facts[0].id)[:6]
    assert str(facts[1].id).startswith(alike)

    several, none = typed("show", alike), typed("show", uuid4().hex[:12])
    of_json = typed("show", alike, "--json")

    assert several.code == none.code == 1
    for fact in facts:
        assert f"{fact.id} (fact: {fact.content})" in several.err
    assert several.err.strip().endswith("type more digits")
    assert "agent 'aria' has no memory whose id begins with" in none.err
    assert of_json.json["error"]["kind"] == "InvalidInput"


def test_no_agent_finds_what_is_of_another(heart: Heart) -> None:
    fact = heart.learn("The gate code is 4711").memory

    answer = typed("show", first_digits(fact.id), "--agent", "nobody")

    assert (answer.code, "4711" in answer.err) == (1, False)


def test_sentences_show_ids_cut_short_and_take_them_back(heart: Heart) -> None:
    assert brief(f"contradicts fact {ID}: both stay") == "contradicts fact 01a2d3c4-e0bd: both stay"
    assert brief(ID) == "01a2d3c4-e0bd"
    assert brief("1234-5678 stays") == "1234-5678 stays"
    assert identifier(brief(ID)) == ID.hex[:12]


def test_a_doubt_is_listed_with_both_texts_the_earlier_first_and_what_to_type(heart: Heart, judge) -> None:
    judge.change = 0.9
    earlier = heart.learn("the pager is with Ana", learned_at="2026-05-01T00:00:00Z").memory
    later = heart.learn("Ben took over the pager duty").memory

    told, listed = typed("contradictions").out.splitlines(), typed("contradictions", "--json").json["doubts"]
    line = told[-1].strip()
    settled = typed(*line.removeprefix("if so: nous ").partition(";")[0].split())

    assert [each.split("  ")[1:3] for each in told[1:3]] == [["a", earlier.content], ["b", later.content]]
    assert line == f"if so: nous resolve {brief(later.id)} b_wins; if not: both_valid, or same"
    assert [(each["a"], each["b"]) for each in listed] == [(earlier.content, later.content)]
    assert (settled.code, heart.get_fact(earlier.id).superseded_by) == (0, later.id)


def test_who_said_the_two_sides_of_a_question_and_from_when_they_hold_is_shown(heart: Heart, judge) -> None:
    judge.change = 0.9
    earlier = heart.learn(
        "the pager is with Ana", learned_at="2026-05-01T00:00:00Z", user_id="ana", source="Ana"
    ).memory
    later = heart.learn(
        "Ben takes over the pager duty",
        learned_at="2026-06-01T00:00:00Z",
        user_id="ana",
        valid_from="2999-12-01T00:00:00Z",
    ).memory

    told = typed("contradictions").out.splitlines()
    shown = typed("show", str(later.id)).out.splitlines()

    assert told[1:3] == [
        f"  a  {earlier.content}  2026-05-01, source Ana, user ana  {earlier.id}",
        f"  b  {later.content}  2026-06-01, user ana, holds from 1 December 2999  {later.id}",
    ]
    assert shown[1] == f"{later.id}  active, trust 50, user ana, holds from 1 December 2999"


def test_what_replaces_a_part_is_not_advised_to_replace_all_of_it(heart: Heart, monkeypatch) -> None:
    monkeypatch.setattr("nous_online.language.claude.judge.judge_factory", lambda _: lambda _: OfflineJudge())
    heart.learn("The club meets on Mondays at 6 in the hall, and pays 20 euros a month")

    told, listed = typed("learn", "The club meets on Thursdays now").out, typed("contradictions").out

    assert "replaces a part of  The club meets on Mondays" in told
    assert "both stay; if all of it is replaced: --replaces" in told
    assert "both_valid keeps both, and replacing the earlier would lose the rest of it" in listed


def test_learning_names_what_it_perhaps_replaces_by_its_text(heart: Heart, judge, monkeypatch) -> None:
    judge.change = 0.9
    monkeypatch.setattr("nous_online.language.claude.judge.judge_factory", lambda _: lambda _: judge)
    earlier = heart.learn("the pager is with Ana").memory

    told = typed("learn", "Ben took over the pager duty").out.splitlines()

    later = UUID(told[1].split()[0])
    assert told[1].endswith(f"perhaps replaces fact {brief(earlier.id)}: both stay")
    assert told[2:] == [
        f"perhaps replaces  {earlier.content}  if so: nous resolve {brief(later)} b_wins; if not: both_valid, or same"
    ]
    assert str(earlier.id) not in typed("history", later).out
