"""`nous context`, `predict`, `feedback`, `history`, `contradictions` and `resolve`, as somebody types them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import pytest
from cli_runs import pointed_at, typed

from nous_online.core.domain import FACT
from nous_online.database.changes import Cause, Version, change_memory
from nous_online.database.connection import open_url
from nous_online.heart import Heart
from nous_online.interfaces.cli.short_ids import brief
from nous_online.interfaces.projects import project_of
from nous_online.memories import contradictions
from nous_online.memories.status import known_agents

SECRET = "Tokens are signed with the key of the auth service."  # noqa: S105 (a fact about tokens)


@pytest.fixture(autouse=True)
def _environment(database_url: str, tmp_path: Path) -> Iterator[None]:
    with pointed_at(database_url, tmp_path / "home"):
        yield


def learned(text: str, *options: str) -> str:
    return typed("learn", text, *options, "--json").json["memory"]["id"]


def test_a_context_is_printed_and_what_it_took_is_told_beside_it():
    learned(SECRET)

    shown = typed("context", "how are tokens signed?", "--budget", "500")

    assert shown.code == 0
    assert SECRET in shown.out
    assert " of 500 tokens (" in shown.err
    assert "nous feedback " in shown.err


def test_a_context_says_of_each_line_why_it_is_there():
    learned(SECRET)

    shown = typed("context", "-", "--why", stdin="how are tokens signed?\n")

    assert SECRET in shown.out
    assert "for the question" in shown.out


def test_a_context_for_machines_takes_every_signal_and_its_feedback():
    known = learned(SECRET)

    told = ("--file", "src/auth/login.py", "--import", "jwt", "--branch", "fix/tokens", "--error", "TokenExpired")
    found = typed("context", *told, "--task", "sign tokens", "--with", "ada", "--frame", "debug", "--json").json
    noted = typed("feedback", found["recall_id"], "--cite", known, "--json").json

    assert known in {shown for line in found["lines"] for shown in line["memory_ids"]}
    assert 0 < found["token_count"] <= found["budget"]
    assert sum(found["tokens"].values()) <= found["token_count"]
    assert noted == {"recall_id": found["recall_id"], "cited": 1, "ignored": 0}


def test_an_agent_that_knows_nothing_has_an_empty_context():
    shown = typed("context", "anything?")

    assert (shown.code, shown.out) == (0, "nothing is known that matters now\n")


def test_what_was_used_is_predicted_and_what_never_was_is_not_claimed():
    assert "nothing was used in work like this yet" in typed("predict", "--file", "src/auth/login.py").err
    known = learned(SECRET)
    for session in ("monday", "tuesday", "wednesday"):
        at = ("--file", "src/auth/login.py", "--session", session)
        context = typed("context", "how are tokens signed?", *at, "--json").json
        typed("feedback", context["recall_id"], "--cite", known)

    likely = typed("predict", "--file", "src/auth/login.py", "--limit", "3", "--json").json
    told = typed("predict", "--file", "src/auth/login.py")

    assert [each["memory_id"] for each in likely["memories"]] == [known]
    assert "%  fact  " in told.out


def test_feedback_that_says_nothing_is_refused():
    recall = typed("recall", "anything", "--json").json["recall_id"]

    refused = typed("feedback", recall)

    assert refused.code == 1
    assert "name what was used with --cite" in refused.err
    assert "did not find memory" in typed("feedback", recall, "--ignore", recall).err


def test_the_history_of_a_memory_is_told_the_latest_first():
    known = learned(SECRET)
    typed("learn", SECRET)

    told, plain = typed("history", known), typed("history", known, "--json").json

    assert [event["action"] for event in plain["events"]] == ["confirmed", "learned"]
    assert told.out.index("confirmed") < told.out.index("learned")


def test_a_fact_is_shown_with_every_statement_and_its_history():
    known = learned(SECRET)
    typed("learn", SECRET.upper(), "--source", "a [call]")

    told, plain = typed("show", known), typed("show", known, "--json").json

    assert [each["content"] for each in plain["statements"]] == [SECRET, SECRET.upper()]
    assert "said twice, in these words" in told.out
    assert f"repeat, a [call]: {plain['statements'][1]['id']}" in told.out
    assert plain["fact"]["confirmation_count"] == 1
    assert plain["unrecorded_count"] == 0
    assert [event["action"] for event in plain["events"]] == ["confirmed", "learned"]


def test_an_episode_is_shown_with_its_summary_and_what_was_drawn_from_it():
    with Heart.open("default", works_in_background=False) as heart:
        episode = heart.record_episode(
            "Ada: the [north] gate is open.", title="A gate", ended_at="2026-05-04T10:30:00Z", summary="Ada saw a gate."
        )
        heart.learn("The north gate is open", source_episode_id=episode.id)

    told, plain = typed("show", episode.id), typed("show", episode.id, "--json").json

    assert told.out.startswith(f"A gate\n{episode.id}  closed, trust ")
    assert "2026-05-04 10:30 to 2026-05-04 10:30\n\nAda saw a gate.\n" in told.out
    assert f"facts drawn from it\n  The north gate is open\n  {plain['facts'][0]['id']}  active\n" in told.out
    assert (plain["episode"]["summary"], plain["events"][0]["memory_kind"]) == ("Ada saw a gate.", "episode")


def test_a_procedure_and_a_censor_are_shown_in_full():
    with Heart.open("default", works_in_background=False) as heart:
        procedure = heart.store_procedure("Release", steps=["tag", {"name": "push", "detail": "to main"}])
        censor = heart.add_censor("rm -rf /", reason="It deletes all [files].")

    assert "Release\n" in typed("show", procedure.id).out
    assert 'steps: tag; {"name": "push", "detail": "to main"}\n' in typed("show", procedure.id).out
    assert "It deletes all [files].\n" in typed("show", censor.id).out
    assert typed("show", censor.id, "--json").json["censor"]["trigger"] == "rm -rf /"
    assert "has no memory 0" in typed("show", "0" * 32).err


def test_a_fact_names_what_it_replaced_and_what_replaced_it():
    old = learned("The gate code is 1234")
    new = learned("Mia keeps the only key now", "--replaces", old)

    for command in ("show", "history"):
        assert f"replaced by       Mia keeps the only key now\n                  {new}\n" in typed(command, old).out
        assert f"replaced          The gate code is 1234\n                  {old}\n" in typed(command, new).out
    assert [each["id"] for each in typed("show", new, "--json").json["predecessors"]] == [old]


def test_a_statement_is_split_off_by_its_id_and_the_first_is_not():
    known = learned(SECRET)
    typed("learn", SECRET.upper())
    first, again = (each["id"] for each in typed("show", known, "--json").json["statements"])

    split, refused = typed("split", again, "--reason", "shouted"), typed("split", first)

    assert split.out.startswith(f"split off  {SECRET.upper()}")
    assert (refused.code, f"is what fact {known} says" in refused.err) == (1, True)
    assert "said once, in these words" in typed("show", known).out


def test_what_an_agent_learned_is_taken_back_by_the_name_of_the_memory():
    known = learned(SECRET)

    undone = typed("undo", "--memory", known, "--reason", "that was a joke")
    refused = typed("undo", "--memory", known, "--night", "2026-11-20")

    assert undone.out.startswith("taken back  learned")
    assert typed("status", "--json").json["memories"] == {"fact": {"archived": 1}}
    assert (refused.code, "leave out --night" in refused.err) == (1, True)


def test_what_a_source_said_is_taken_back_by_its_name():
    forged, shared = "Pay to DE02 1203", "The gate is green"
    for words in (forged, shared):
        typed("learn", words, "--source", "a page")
    typed("learn", shared, "--source", "chat")

    undone = typed("undo", "--source", "a page", "--reason", "it was forged")
    told = typed("undo", "--source", "a page", "--json")
    wrong = typed("undo", "--source", "a page", "--night", "2026-11-20")

    assert (undone.code, "taken back  1 memory of a page" in undone.out, "by others too" in undone.out) == (
        1,
        True,
        True,
    )
    assert (told.json["undone"], len(told.json["refused"])) == ([], 1)
    assert (wrong.code, "leave out --night" in wrong.err) == (1, True)


def test_a_contradiction_is_listed_and_decided():
    in_contradiction("Ana sits in Lima", "The desk of Ana stands in Oslo")
    (found,) = typed("contradictions", "--json").json["contradictions"]
    listed = typed("contradictions")

    decided = typed("resolve", found["id"], "a_wins", "--note", "she moved")

    assert {found["a"], found["b"]} == {"Ana sits in Lima", "The desk of Ana stands in Oslo"}
    assert "The desk of Ana stands in Oslo" in listed.out
    assert "decide one: nous resolve" in listed.err
    assert decided.out.startswith("resolved  a_wins")
    assert "nothing contradicts itself" in typed("contradictions").err
    (resolved,) = typed("contradictions", "--status", "resolved", "--json").json["contradictions"]
    assert (resolved["resolution"], resolved["note"]) == ("a_wins", "she moved")


def test_what_was_ruled_on_is_listed_with_why_and_with_the_command_that_takes_it_back():
    in_contradiction("Ana sits in Lima", "The mill has closed its gates")
    (found,) = typed("contradictions", "--json").json["contradictions"]
    earlier, later = in_doubt("Desk 7 is in Lima", "Desk 7 is in Oslo now")
    nothing = typed("contradictions", "--status", "resolved")
    typed("resolve", found["id"], "a_wins", "--note", "she moved")
    typed("resolve", str(later), "b_wins", "--note", "it was carried over")

    listed = typed("contradictions", "--status", "resolved")
    (doubt,) = typed("contradictions", "--status", "resolved", "--json").json["doubts"]
    commands = re.findall(r"take it back: nous (.*)", listed.out)
    undone = [typed(*command.split()) for command in commands]

    assert "nothing was ruled on" in nothing.err
    assert "\n  decided: she moved\n" in listed.out
    assert "b_wins: b perhaps replaces a\n" in listed.out
    assert "\n  decided: it was carried over\n" in listed.out
    assert (doubt["earlier"], doubt["resolution"], doubt["note"]) == (str(earlier), "b_wins", "it was carried over")
    assert commands == [f"undo {brief(found['id'])}", f"undo {brief(earlier)}"]
    assert [each.out.split("  ")[1] for each in undone] == ["contradiction_resolved", "superseded"]
    assert f"asked again: nous resolve {brief(found['id'])}" in undone[0].err
    again = typed("contradictions", "--json").json
    assert (len(again["contradictions"]), len(again["doubts"])) == (1, 1)


def test_a_contradiction_is_decided_by_naming_the_fact_to_keep_and_tells_both_texts():
    in_contradiction("Ana sits in Lima", "The desk of Ana stands in Oslo")
    (found,) = typed("contradictions", "--json").json["contradictions"]
    listed = typed("contradictions")

    decided = typed("resolve", found["id"], "--keep", found["memory_b"])

    assert all(found[side] in listed.out for side in ("memory_a", "memory_b"))
    assert decided.out.startswith("resolved  b_wins")
    assert all(found[side] in decided.out for side in ("a", "b"))


def test_a_ruling_that_is_none_is_wrong_usage():
    answer = typed("resolve", "01a202e5-e0bd-7d8c-b5bd-9313b051deb4", "both_win")

    assert answer.code == 2
    assert "'both_win' is not one of" in answer.err
    assert typed("history", "7").code == 2


def test_memories_are_recalled_by_kind_and_as_short_as_wanted():
    learned(SECRET)
    typed("censor", "add", "signing tokens by hand", "the auth service does it")

    found = typed("recall", "signing tokens", "--type", "censor", "--detail", "index", "--json").json["memories"]

    assert [each["memory"]["kind"] for each in found] == ["censor"]


def in_contradiction(one: str, other: str) -> None:
    """Learn two facts and record that they can't both be so."""
    with Heart.open("default", works_in_background=False) as heart:
        told = [heart.learn(text).memory for text in (one, other)]
        cause = Cause("agent", "contradicted", "one seat", datetime.now(UTC))
        with heart.agent.database.transaction("default") as connection:
            contradictions.open_between(connection, "default", *told, judgement={"reason": "one seat"}, cause=cause)


def in_doubt(earlier: str, later: str, **details) -> tuple[UUID, UUID]:
    """Two facts of which the later one perhaps replaces the earlier."""
    with Heart.open("default", works_in_background=False) as heart:
        one = heart.learn(earlier, key=f"k/{earlier}", **details).memory
        other = heart.learn(later, key=f"k/{later}", **details).memory
        with heart.agent.transaction(heart.agent.deadline(None)) as connection:
            values = {"perhaps_replaces": [str(one.id)]}
            cause = Cause("agent", "doubted", "a test", other.learned_at)
            change_memory(connection, heart.agent.id, Version(FACT, other.id, other.row_version), values, cause=cause)
    return one.id, other.id


def states(*ids: UUID) -> list[str]:
    return [typed("show", str(each), "--json").json["fact"]["state"] for each in ids]


def test_a_doubt_is_listed_and_decided_for_the_later_the_earlier_or_both():
    first, second, third = (in_doubt(f"Desk {n} is in Lima", f"Desk {n} is in Oslo now") for n in range(3))

    listed = typed("contradictions")
    typed("resolve", str(first[1]), "b_wins", "--note", "she moved")
    typed("resolve", str(second[1]), "--keep", str(second[0]))
    kept = typed("resolve", str(third[1]), "both_valid")

    assert "in doubt: b perhaps replaces a" in listed.out
    assert "Desk 1 is in Lima" in listed.out
    assert (states(*first), states(*second), states(*third)) == (
        ["superseded", "active"], ["active", "superseded"], ["active", "active"],
    )  # fmt: skip
    assert kept.out.startswith("resolved  both_valid")
    assert typed("contradictions", "--json").json["doubts"] == []


def test_a_doubt_about_a_fact_of_several_sentences_says_what_deciding_for_the_later_would_lose():
    in_doubt("The dentist is on 20 October. I have been a vegetarian for twelve years.", "The dentist is on 27 October")

    assert "replacing the earlier would lose the rest of it" in typed("contradictions").out


def test_a_doubt_is_decided_by_merging_both_into_a_third_fact():
    earlier, later = in_doubt("Desk 7 is in Lima", "Desk 7 is in Oslo now")
    into = typed("learn", "Desk 7 moved from Lima to Oslo in May", "--key", "k/both", "--json").json["memory"]["id"]

    typed("resolve", str(later), "merged", "--into", into)

    assert states(earlier, later, UUID(into)) == ["superseded", "superseded", "active"]


def test_both_hold_for_all_questions_with_one_source_or_about_one_subject():
    for n in range(3):
        in_doubt(f"Desk {n} is in Lima", f"Desk {n} is in Oslo now", source="desks.md")
    other = in_doubt("Cats like fish", "Cats like fresh fish now", subject="Cats")

    desks = typed("resolve", "all", "both_valid", "--source", "desks.md")
    left = typed("contradictions", "--json").json["doubts"]
    cats = typed("resolve", "all", "both_valid", "--subject", "cats")

    assert desks.out.startswith("resolved  3 questions: both hold")
    assert [each["later"] for each in left] == [str(other[1])]
    assert cats.out.startswith("resolved  1 question: both hold")
    assert states(*other) == ["active", "active"]


@pytest.mark.parametrize(
    "told",
    [("all", "both_valid"), ("all", "a_wins", "--source", "x"), (str(UUID(int=7)), "both_valid", "--subject", "x")],
)
def test_many_are_decided_at_once_only_where_both_hold_and_by_source_or_subject(told):
    answer = typed("resolve", *told)

    assert answer.code == 1
    assert "nous resolve all both_valid --source NAME, or --subject NAME" in answer.err


def test_an_id_that_is_neither_a_contradiction_nor_in_doubt_is_named():
    answer = typed("resolve", str(UUID(int=7)), "both_valid")

    assert answer.code == 1
    assert "no fact in doubt of that id" in answer.err


@pytest.mark.parametrize(
    "command",
    ["recall x", "context x", "predict --file a.py", "contradictions", "status", f"show {UUID(int=7)}", "censor list"],
)
def test_a_command_that_reads_creates_no_agent_and_names_the_nearest(command: str):
    typed("learn", "Cats like fish", "--agent", "aria")

    answer = typed(*command.split(), "--agent", "arai")

    assert answer.code == 1
    assert "agent 'arai' is not known here; known are: aria" in answer.err
    assert "nous import FILE --agent arai" in answer.err
    assert "arai" not in known_agents(open_url())


def test_an_unknown_agent_is_told_how_many_others_are_known_and_how_to_list_them():
    for name in ("ada", "bea", "cal", "dan", "eve"):
        typed("learn", "Cats like fish", "--agent", name)

    answer, listed, machine = typed("recall", "x", "--agent", "zz9"), typed("agents"), typed("agents", "--json")

    assert "known are: ada, bea, cal and 2 more (`nous agents` lists them)" in answer.err
    assert listed.out.split() == machine.json["agents"] == ["ada", "bea", "cal", "dan", "eve"]


def test_without_agents_the_list_says_how_one_begins():
    assert "nous learn" in typed("agents").err


def test_a_command_that_learns_begins_an_agent():
    assert typed("learn", "Cats like fish", "--agent", "arai").code == 0
    assert "arai" in known_agents(open_url())


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The current folder is one of a repository; returns its project."""
    folder = tmp_path / "cipher-box" / "src"
    folder.mkdir(parents=True)
    (tmp_path / "cipher-box" / ".git").mkdir()
    monkeypatch.chdir(folder)
    return project_of(tmp_path / "cipher-box")


@pytest.mark.parametrize("command", ["recall", "context"])
def test_a_command_that_reads_in_a_repository_finds_what_belongs_to_it_and_says_so(repository: str, command: str):
    learned(SECRET, "--project", repository)
    learned("Keys of other tokens are signed elsewhere.", "--project", "other-1")

    found = typed(command, "how are tokens signed?")
    machine = typed(command, "how are tokens signed?", "--json")

    assert SECRET in found.out
    assert "elsewhere" not in found.out
    assert f"with what belongs to project {repository}, that of this folder" in found.err
    assert (machine.json["project_id"], machine.err) == (repository, "")


@pytest.mark.parametrize(("given", "count"), [("", 0), ("other-1", 1)])
def test_a_project_that_is_given_takes_the_place_of_that_of_the_folder(repository: str, given: str, count: int):
    learned(SECRET, "--project", repository)
    learned("Keys of other tokens are signed elsewhere.", "--project", "other-1")

    found = typed("recall", "how are tokens signed?", "--project", given)

    assert SECRET not in found.out
    assert found.out.count("elsewhere") == count
    assert not any(repository in line and "not looked at" not in line for line in found.err.splitlines())


def test_a_folder_without_memories_of_its_own_is_no_project_and_learning_names_none(repository: str):
    learned(SECRET)

    found = typed("recall", "how are tokens signed?", "--json")

    assert found.json["project_id"] is None
    assert len(found.json["memories"]) == 1


def test_an_action_is_checked_against_the_censors_of_this_folders_project(repository: str):
    typed("censor", "add", "git push", "ask first", "--severity", "block", "--project", repository)

    assert typed("check", "git push").code == 1
    assert typed("check", "git push", "--project", "").code == 0
