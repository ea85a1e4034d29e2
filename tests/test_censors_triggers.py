"""What sets a trigger off as written, what in meaning, and that no text makes the check slow."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from nous_online.checking import parts_of
from nous_online.deeds import closeness
from nous_online.errors import InvalidInput
from nous_online.policy import CensorPolicy
from nous_online.triggers import Wording, checked_literal

POLICY = CensorPolicy()


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
    assert Wording(action).holds(trigger) == occurs


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

    assert Wording(action).holds(trigger) == spelled_out(trigger, action)


@pytest.mark.parametrize("trigger", ["*", " * * ", "***"])
def test_a_trigger_of_wildcards_alone_is_refused(trigger: str) -> None:
    with pytest.raises(InvalidInput, match="every action"):
        checked_literal(trigger)


@pytest.mark.parametrize("trigger", ["a*" * 2000 + "b", "*a" * 2000 + "b", "a " * 1000 + "b", "ab*" * 1300, "a*b"])
@pytest.mark.parametrize("action", ["a" * 32_000, "a " * 16_000, "a\n" * 16_000, "ab\n" * 10_000, "ab" * 16_000])
def test_a_hostile_pattern_takes_linear_time(trigger: str, action: str) -> None:
    began = time.process_time()

    Wording(action).holds(trigger)

    assert time.process_time() - began < 1.0


@pytest.mark.parametrize("character", ["a", " ", "-", "\n", "(", "_", "A", "'", "turn ", "push ", "roll a "])
def test_a_hostile_action_is_read_in_linear_time(character: str) -> None:
    action = (character * 32_000)[:32_000] + "x"
    began = time.process_time()

    for part in parts_of(action, most=POLICY.most_parts):
        closeness("pushing directly to main branch", part, 0.5, policy=POLICY)

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
    ],
)
def test_a_guard_keeps_still_however_near_the_vectors_are(trigger: str, action: str) -> None:
    assert closeness(trigger, action, 0.99, policy=POLICY) < POLICY.firing_closeness


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
    assert closeness(trigger, action, 0.45, policy=POLICY) >= POLICY.firing_closeness


def test_nearness_alone_does_not_fire() -> None:
    assert closeness("leaving the stove on", "the weather in spring", 0.9, policy=POLICY) < POLICY.firing_closeness


def test_a_long_action_is_cut_into_what_it_does_and_both_ends_are_kept() -> None:
    assert parts_of("cd app && git push; ls", most=9) == ("cd app && git push; ls", "cd app", "git push", "ls")
    assert parts_of("git push", most=9) == ("git push",)
    assert parts_of("\n".join("abcdefgh"), most=4)[1:] == ("a", "b", "g", "h")
