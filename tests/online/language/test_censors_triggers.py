"""What sets a trigger off as written, what in meaning, and that no text makes the check slow."""

from __future__ import annotations

import re
import time
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from nous_online.core.errors import InvalidInput
from nous_online.core.policy import CensorPolicy
from nous_online.language.actions.action_words import only_speaks, warned_act
from nous_online.language.actions.triggers import (
    ActionWording,
    Comparison,
    check_conditions,
    checked_literal,
    compare_words,
    likelihood,
)
from nous_online.memories.checking import parts_of

POLICY = CensorPolicy()


def compared(trigger: str, action: str, similarity: float) -> Comparison:
    """Compare at a given cosine, as if every clause of the trigger had narrowed it a little."""
    return replace(compare_words(trigger, action), similarity=similarity, narrowness=0.05)


@pytest.mark.parametrize(
    ("trigger", "action", "occurs"),
    [
        ("git push origin main", "GIT  push\torigin MAIN --force", True),
        ("git push origin main", "git push \\\n origin main", False),
        ("git push origin main", "git push\norigin main", True),
        ("git push origin main", "git push origin maintenance", False),
        ("main", "remain", False),
        ("main", "main_branch", False),
        ("main", "(main)", True),
        ("--no-verify", "git commit --no-verify", True),
        ("--no-verify", "git commit --no-verifying", False),
        ("$HOME", "echo $HOME/x", True),
        ("straße", "STRASSE", True),
        ("a.c", "abc", False),
        ("(unclosed [", "an (unclosed [ bracket", True),
        ("rm -rf *", "sudo rm -rf build", True),
        ("drop * cascade", "select 1;\ndrop table x cascade;", True),
        ("drop * cascade", "drop table x\ncascade", False),
        ("drop * cascade", "cascade the drop", False),
        ("push*main", "pushmain", True),
        ("push * main", "git push main", False),
        ("*ain", "main", True),
        ("*ain", "mains", False),
        ("ain*", "main", False),
        ("*ain*", "mains", True),
        ("*.pem", "scp key.pem host", True),
        ("ab*ba", "aba", False),
        (r"rm \*", "rm *", True),
        (r"rm \*", "rm x", False),
        (r"C:\temp", r"del c:\TEMP\x", True),
    ],
)
def test_a_literal_trigger_occurs_as_written(trigger: str, action: str, *, occurs: bool) -> None:
    assert ActionWording(action).holds(trigger) == occurs


def spelled_out(trigger: str, action: str) -> bool:
    """What a literal trigger means, as a regular expression, which may take long: the meaning, not the way."""
    pieces = " ".join(trigger.split()).split("*")
    first = r"(?<!\w)" if re.match(r"\w", pieces[0]) else ""
    last = r"(?!\w)" if re.search(r"\w$", pieces[-1]) else ""
    lines = [" ".join(line.split()) for line in action.split("\n")] if len(pieces) > 1 else [" ".join(action.split())]
    return any(re.search(first + "[^\n]*".join(map(re.escape, pieces)) + last, line) for line in lines)


@given(st.text("ab *-", min_size=1, max_size=8), st.text("ab \n-", max_size=16))
def test_a_literal_trigger_means_what_its_regular_expression_would(trigger: str, action: str) -> None:
    assume(trigger.replace("*", "").strip())

    assert ActionWording(action).holds(trigger) == spelled_out(trigger, action)


@pytest.mark.parametrize("trigger", ["*", " * * ", "***"])
def test_a_trigger_of_wildcards_alone_is_refused(trigger: str) -> None:
    with pytest.raises(InvalidInput, match="every action"):
        checked_literal(trigger)


@pytest.mark.parametrize("trigger", ["a*" * 2000 + "b", "*a" * 2000 + "b", "a " * 1000 + "b", "ab*" * 1300, "a*b"])
@pytest.mark.parametrize("action", ["a" * 32_000, "a " * 16_000, "a\n" * 16_000, "ab\n" * 10_000, "ab" * 16_000])
def test_a_hostile_pattern_takes_linear_time(trigger: str, action: str) -> None:
    began = time.process_time()

    ActionWording(action).holds(trigger)

    assert time.process_time() - began < 1.0


@pytest.mark.parametrize("character", ["a", " ", "-", "\n", "(", "_", "A", "'", "turn ", "push ", "roll a "])
def test_a_hostile_action_is_read_in_linear_time(character: str) -> None:
    action = (character * 32_000)[:32_000] + "x"
    began = time.process_time()

    for part in parts_of(action, most=POLICY.most_parts):
        compared("pushing directly to main branch", part, 0.5)

    assert time.process_time() - began < 1.0


@pytest.mark.parametrize(
    ("trigger", "action"),
    [
        ("pushing directly to main branch", "git pull origin main"),
        ("disabling the firewall", "turn the firewall on"),
        ("disabling the firewall", "list the rules of the firewall"),
        ("deploying to production on a Friday", "deploy to staging on a Friday"),
        ("deploying to production on a Friday", "deploy to production on a Tuesday"),
        ("deleting data without a backup", "take a backup, then delete the data"),
        ("promising a delivery date", "never promise a delivery date"),
        ("sending an email without approval", "ask Mara to approve sending the email"),
        ("mailing customers who opted out", "mail the customers who opted in"),
        ("scaling the cluster down", "scale the cluster up"),
    ],
)
def test_a_guard_keeps_still_however_near_the_vectors_are(trigger: str, action: str) -> None:
    assert likelihood(compared(trigger, action, 0.8)) < POLICY.firing_likelihood


@pytest.mark.parametrize(
    ("trigger", "action"),
    [
        ("pushing directly to main branch", "git push origin main"),
        ("disabling the firewall", "turn the firewall off"),
        ("deploying to production on a Friday", "ship it to prod this Friday"),
        ("deleting data without a backup", "delete the data, there is no backup"),
        ("skipping the tests before merging", "merge without running the tests"),
        ("reading the private notes", "read her private notes"),
    ],
)
def test_other_words_for_the_same_deed_fire_at_a_middling_cosine(trigger: str, action: str) -> None:
    assert likelihood(compared(trigger, action, 0.5)) >= POLICY.firing_likelihood


def test_a_middling_cosine_alone_does_not_fire() -> None:
    assert likelihood(compared("leaving the stove on", "the weather in spring", 0.4)) < POLICY.firing_likelihood


@pytest.mark.parametrize(
    ("trigger", "act"),
    [
        ("pushing directly to main", "pushing directly to main"),
        ("never push directly to main", "push directly to main"),
        ("Don't email customers without approval", "email customers without approval"),
        ("You must not email customers", "email customers"),
        ("please do not ever delete production data", "delete production data"),
        ("no deploys after 16:00", "deploys after 16:00"),
        ("no schema migrations on Fridays", "migrations schema on Fridays"),
        ("Deleting backups is strictly forbidden.", "Deleting backups"),
        ("Production data must never be deleted", "delete Production data"),
        ("always ask Kim before deleting files", "deleting files without asking Kim"),
        ("only Helga may change the roster", "change the roster without Helga"),
        ("never delete an account unless the user asked", "delete an account without the user asked"),
        ("Never ask patients to change the dressing themselves.", "ask patients to change the dressing"),
        ("Never let users lock themselves out", "let users lock themselves out"),
        ("Never ask guests to talk about themselves", "ask guests to talk about themselves"),
        ("skipping tests before merging", "skipping tests before merging"),
        ("booking flights before 8 am", "booking flights before 8 am"),
    ],
)
def test_a_rule_warns_of_the_act_it_forbids(trigger: str, act: str) -> None:
    assert warned_act(trigger) == act


@pytest.mark.parametrize(
    ("action", "speaks"),
    [
        ("Should we push to main?", True),
        ("The intern deleted the data last month, write it up", True),
        ("I'm sorry, we don't give out room numbers", True),
        ("never push to main", True),
        ("git push origin main", False),
        ("tell Ben what Carla ordered last week", False),
        ("the customers wait: deploy now", False),
    ],
)
def test_a_question_a_refusal_and_a_report_do_nothing(action: str, *, speaks: bool) -> None:
    assert only_speaks(action) == speaks


@pytest.mark.parametrize(
    ("trigger", "action", "is_near"),
    [
        ("pushing directly to main branch", "git push origin main", True),
        ("pushing directly to main branch", "git push origin feature/login", False),
        ("pushing directly to main branch", "git pull origin main", False),
        ("deploying on Fridays", "deploy the API on Friday", True),
        ("deploying on Fridays", "deploy the API", False),
        ("deploying on Fridays", "deploy the API on Thursday", False),
        ("deleting data without a backup", "delete the data, there is no backup", True),
        ("deleting data without a backup", "delete the data", False),
        ("paying invoices above 500 euros", "pay the invoice of 640 euros", True),
        ("paying invoices above 500 euros", "pay the invoice of 64 euros", False),
        ("deleting the production database", "drop the production database", True),
        ("deleting the production database", "drop the staging database", False),
        ("deleting the production database", "never drop the production database", False),
        ("never delete the production database", "drop the production database", True),
        ("never delete the production database", "should we drop the production database?", False),
        ("recording calls", "delete the recording of the call", False),
        ("don't merge without two approvals", "merge with 1 approval", True),
        ("don't merge without two approvals", "merge, two approvals are in", False),
    ],
)
def test_near_is_the_same_act_on_the_same_object_under_the_same_condition(
    trigger: str, action: str, *, is_near: bool
) -> None:
    assert compare_words(trigger, action).is_near == is_near


@pytest.mark.parametrize(
    ("trigger", "action", "met"),
    [
        ("deploying on weekends", "deploy on Sunday", (True,)),
        ("deploying on weekends", "deploy on Tuesday", (False,)),
        ("deploying on weekends", "deploy it", (None,)),
        ("pruning the hedge in summer", "prune the hedge in July", (True,)),
        ("booking trains before 8 am", "book the train at 7:40", (True,)),
        ("booking trains before 8 am", "book the train at 8:40", (False,)),
        ("playing music after 10 pm", "play music at half past ten in the evening", (True,)),
        ("calling outside office hours", "call at 21:30", (True,)),
        ("calling outside office hours", "call at 11 in the morning", (False,)),
        ("sending files larger than 20 MB", "send the 45 MB file", (True,)),
        ("discounts above 20 percent", "a discount of 10%", (False,)),
        ("waiting less than a day", "wait two hours", ()),
        ("orders of more than 50 pieces", "order 80 pieces", (True,)),
        ("spending more than 2000 euros", "spend EUR 12000", (True,)),
        ("changing permissions to 777", "chmod 640 config.ini", (False,)),
        ("merging without two approvals", "merge with 1 approval", (True,)),
        ("merging without two approvals", "merge, it has 3 approvals", (False,)),
    ],
)
def test_what_a_trigger_says_of_time_and_amount_is_computed(
    trigger: str, action: str, met: tuple[bool | None, ...]
) -> None:
    assert check_conditions(trigger, action) == met


def test_a_long_action_is_cut_into_what_it_does_and_both_ends_are_kept() -> None:
    assert parts_of("cd app && git push; ls", most=9) == ("cd app && git push; ls", "cd app", "git push", "ls")
    assert parts_of("git push", most=9) == ("git push",)
    assert parts_of("\n".join("abcdefgh"), most=4)[1:] == ("a", "b", "g", "h")
