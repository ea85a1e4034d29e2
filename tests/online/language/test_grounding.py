"""What a model wrote stands on what it was shown, or it does not."""
# ruff: noqa: RUF001 — typographic quotes are the subject

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nous_online.language.claude.grounding import (
    follows,
    invented_details,
    is_mostly_stated,
    is_quoted,
    reversed_sentences,
    source_of,
)
from nous_online.language.claude.model_writer import Claim, EpisodeRecord, WrittenAnswer, kept_parts

TALK = """\
Orla: The mill in Veldt closed on 3 March 2026, because the flood took forty sacks of rye.
Piet: Hanne's offer is 4,200 crowns; she calls at 9:30. That's 12 % more than before.
Orla: The gate runs on Postgres 17.2 and the "north lock" on build mx_204.
Piet: We don't rebuild the wheel in larch."""
SOURCE = source_of(TALK)


@pytest.mark.parametrize(
    "text",
    [
        "The mill in Veldt closed in March.",
        "It closed on 3 March after the flood.",
        "Hanne offered 4200 crowns for it.",
        "The flood took 40 sacks of rye; Hanne’s offer stands.",
        "She calls at 9:30, with 12% more.",
        "Afterwards Orla and Piet talked about Postgres 17.2 and mx_204.",
        "Reopening: Orla waits for the offer.",
        "",
    ],
)
def test_names_and_figures_of_the_source_may_be_told_in_other_words(text: str) -> None:
    assert invented_details(text, SOURCE) == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("The mill in Olm closed.", "Olm"),
        ("The mill was closed by Anna.", "Anna"),
        ("Hanne offered 4,300 crowns.", "4,300"),
        ("The flood took fifty sacks.", "50"),
        ("It closed on 5 March.", "5"),
        ("It closed on 3 April.", "April"),
        ("It closed on 3 March 2025.", "2025"),
        ("She calls at 10:30.", "10:30"),
        ("It runs on Postgres 17.3.", "17.3"),
        ("The lock is on build mx_205.", "mx_205"),
        ("The offer is 42 % higher.", "42"),
        ("NASA paid for it.", "NASA"),
        ("The flood took forty million sacks.", "40"),
    ],
)
def test_a_name_or_a_figure_from_elsewhere_is_found(text: str, said: str) -> None:
    assert said in invented_details(text, SOURCE)


def test_a_quotation_stands_word_for_word_but_for_white_space_and_quotation_marks() -> None:
    assert is_quoted("The gate runs on\n Postgres 17.2 and the “north lock”", SOURCE)
    assert not is_quoted("The gate runs on Postgres 17.2 and the south lock", SOURCE)
    assert not is_quoted("the offer was 4,200 crowns", SOURCE)


def test_two_words_are_evidence_of_nothing() -> None:
    assert not is_quoted("the mill", SOURCE)
    assert is_quoted("Ship it.", source_of("Ship it."))


def test_a_quotation_in_a_script_without_spaces_counts_its_characters() -> None:
    source = source_of("小林：倉庫は三月に閉まりました。鍵はオルラが持っています。")

    assert is_quoted("倉庫は三月に閉まりました。", source)
    assert not is_quoted("倉庫は四月に閉まりました。", source)


EVIDENCE = "We don't rebuild the wheel in larch."


@pytest.mark.parametrize(
    ("statement", "evidence"),
    [
        ("Piet and Orla don't rebuild the wheel in larch.", EVIDENCE),
        ("The wheel is never rebuilt in larch.", EVIDENCE),
        ("Piet moved to Veldt in March.", "I moved to Veldt in March."),
        ("倉庫は三月に閉まった。", "倉庫は三月に閉まりました。"),
    ],
)
def test_a_statement_follows_from_evidence_that_says_it(statement: str, evidence: str) -> None:
    assert follows(statement, evidence)


@pytest.mark.parametrize(
    ("statement", "evidence"),
    [
        ("The wheel is rebuilt in larch.", EVIDENCE),
        ("The offer of 4,200 crowns stands.", "The offer stands."),
        ("The mill closed on 9 March.", "The mill closed on 3 March."),
        ("Orla owns the whole valley.", EVIDENCE),
        ("鍵はオルラが持っている。", "倉庫は三月に閉まりました。"),
    ],
)
def test_a_statement_that_denies_it_or_says_more_does_not_follow(statement: str, evidence: str) -> None:
    assert not follows(statement, evidence)


REFUNDS = source_of("Maya approves the refunds every Friday. Ben: I did not approve the rollback. Ann paid on time.")


@pytest.mark.parametrize(
    ("statement", "is_known"),
    [
        ("Maya approves the refunds on each Friday.", True),
        ("Maya signs off the refunds every Friday.", True),
        ("Maya approves bypassing the security review for refunds.", False),
        ("鍵はオルラが持っている。", True),
    ],
)
def test_a_statement_has_at_most_two_words_that_stand_nowhere_in_the_record(statement: str, *, is_known: bool) -> None:
    assert is_mostly_stated(statement, REFUNDS) is is_known


@pytest.mark.parametrize(
    ("text", "turned"),
    [
        ("Ann paid. Ben approved the rollback.", ("Ben approved the rollback.",)),
        ("Ann has not paid on time.", ("Ann has not paid on time.",)),
        ("Ben didn’t approve the rollback, and Ann paid on time.", ()),
        ("Maya did not call the bank.", ()),
    ],
)
def test_a_sentence_that_denies_what_was_said_is_found(text: str, turned: tuple[str, ...]) -> None:
    assert reversed_sentences(text, REFUNDS) == turned


def test_what_was_both_said_and_denied_may_be_told_either_way() -> None:
    source = source_of("Ann: Ben approved the rollback.\nBen: I did not approve the rollback.")

    assert reversed_sentences("Ben approved the rollback.", source) == ()
    assert reversed_sentences("Ben did not approve the rollback.", source) == ()


def test_neither_a_made_up_fact_nor_a_summary_turned_round_is_kept() -> None:
    transcript = "Maya approves the refunds every Friday.\nBen: I did not approve the rollback."
    evidence = "Maya approves the refunds every Friday."
    claims = [
        Claim(content, "refunds", "rule", evidence)
        for content in ("Maya approves bypassing the security review for refunds.", "Maya approves refunds on Friday.")
    ]
    turned = "Ben approved the rollback."
    record = EpisodeRecord(transcript, title="Refunds", outcome="success", participants=(), lessons=())

    kept = kept_parts(
        WrittenAnswer("", turned, "Ben did not approve the rollback.", "refunds", (*claims,), ()),
        record,
        source_of(transcript),
    )

    assert (kept["summary"], kept["compressed"]) == (None, "Ben did not approve the rollback.")
    assert [fact.content for fact in kept["facts"]] == ["Maya approves refunds on Friday."]


WRITTEN = st.text(st.characters(categories=["L", "Nd", "Zs"], include_characters=".,:!?'\"-$%/\n"), max_size=300)


@settings(deadline=None)
@example("-\xa01.\u3000")
@given(WRITTEN)
def test_a_text_never_invents_what_it_says_itself(text: str) -> None:
    assert invented_details(text, source_of(text)) == ()


@settings(deadline=None)
@given(st.text(max_size=120), st.text(max_size=120))
def test_any_text_can_be_held_against_any_source(text: str, told: str) -> None:
    assert all(isinstance(each, str) for each in invented_details(text, source_of(told)))
    assert follows(text, told) in (True, False)
    assert set(reversed_sentences(told, source_of(told))) == set()
