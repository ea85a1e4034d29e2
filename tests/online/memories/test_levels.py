from __future__ import annotations

import re
from pathlib import Path

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from nous_online.core.errors import InvalidInput
from nous_online.language.pairs.guards import added, differences
from nous_online.language.pairs.reading import read
from nous_online.language.writing.fact_lines import byte_count, fact_line, shortest_sentence, with_subject
from nous_online.memories.levels import Levels, levels_of, stored_levels

TIMEOUT = "The timeout of the gateway is 30 seconds."
THINGS = st.sampled_from(["The gateway", "Ana Petrov", "Our staging cluster", "the billing job", "Project A", "API v2"])
CLAIMS = st.sampled_from(
    [
        "has a timeout of {number} seconds", "does not accept tokens older than {number} hours",
        "was moved to Lisbon on {number} March 2026", "never runs before 10:30", "costs ${number} a month",
        "runs on Postgres {number}.2", "is allowed to write to `src/app_{number}.py`, but only on Mondays",
        "prefers tea over coffee", "must not be restarted without approval", "is located in the Hague",
    ]
)  # fmt: skip
TAILS = st.sampled_from(
    ["", ".", ", which is too long.", " because of cost.", " because nobody is there.", ". It is slow!", ", 東京で。"]
)
SUBJECTS = st.sampled_from([None, "gateway", "Ana", "the billing job", "deploys", "über-service 7"])
SCOPES = st.sampled_from([None, "infra", "Python 3.12", "preference"])


@st.composite
def statements(draw: st.DrawFn) -> str:
    opener = draw(st.sampled_from(["", "Please note that ", "So, ", "Actually "]))
    return opener + draw(THINGS) + " " + draw(CLAIMS).format(number=draw(st.integers(2, 99))) + draw(TAILS)


def fact(content: str, **more) -> Levels:
    return levels_of("fact", {"content": content, **more})


def ordered(levels: Levels) -> bool:
    sizes = [byte_count(text) for text in vars(levels).values()]
    return sizes == sorted(sizes, reverse=True)


@pytest.mark.parametrize(
    ("content", "subject", "category", "line"),
    [
        (
            "Tim mentioned that he strongly prefers using explicit error handling patterns with Result types instead of"
            " try-catch blocks, especially in TypeScript code where type safety is important.",
            "error handling", "typescript",
            "error handling: Tim mentioned that he strongly prefers using explicit patterns with Result types instead"
            " of try-catch blocks, especially in TypeScript code where type safety is important",
        ),
        ("The timeout of the gateway is 30 seconds.", "gateway", "infra", "timeout of gateway: 30 seconds (infra)"),
        ("She has lived in Lisbon since 2019.", "Maria", None, "Maria: has lived in Lisbon since 2019"),
        ("We use Postgres for the event store.", "event store", None, "event store: We use Postgres"),
        ("Jonas said that he never works on Mondays.", None, None, "Jonas: said that he never works on Mondays"),
        ("My dog is called Rex.", None, None, "My dog: called Rex"),
        ("The CI takes about 14 minutes, which is too long.", "CI", None, "CI: takes about 14 minutes"),
        ("The office is not in The Hague", None, None, "office: not in The Hague"),
        ("An hour of downtime costs 20k euros.", None, None, "An hour of downtime costs 20k euros"),
        ("Use `ruff format` at every commit.", "style", None, "style: Use `ruff format` at every commit"),
    ],
)  # fmt: skip
def test_a_fact_becomes_key_value_and_scope(content, subject, category, line):
    assert fact(content, subject=subject, category=category).compressed == line


@given(statements(), SUBJECTS, SCOPES)
@settings(max_examples=examples(30), deadline=None)
def test_numbers_dates_names_and_denials_survive_into_every_line(content, subject, category):
    levels = fact(content, subject=subject, category=category)
    opened = with_subject(re.sub(r"^(Please note that|So,|Actually) ", "", content), subject)

    for text in (levels.summary, levels.compressed):
        assert not added(text, opened)
        assert not differences(opened, text)


@given(statements(), SUBJECTS, SCOPES)
@settings(max_examples=examples(30), deadline=None)
def test_no_level_is_longer_than_the_one_before(content, subject, category):
    assert ordered(fact(content, subject=subject, category=category))


@given(statements(), SUBJECTS, SCOPES)
@settings(max_examples=examples(30), deadline=None)
def test_no_word_is_put_in_that_was_not_told(content, subject, category):
    told = set(re.findall(r"\w+", f"{content} {subject} {category}".casefold()))

    for text in vars(fact(content, subject=subject, category=category)).values():
        assert set(re.findall(r"[^\W_]+", text.casefold())) <= {part for word in told for part in word.split("_")}


@given(statements(), SUBJECTS, SCOPES)
@settings(max_examples=examples(24), deadline=None)
def test_a_line_is_its_own_line(content, subject, category):
    line = fact(content, subject=subject, category=category).compressed

    assert fact(line, subject=subject, category=category).compressed == line


@given(st.text(min_size=1, max_size=200).filter(str.strip), st.text(max_size=60))
@settings(max_examples=examples(30), deadline=None)
def test_any_text_has_four_levels(content, subject):
    levels = fact(content, subject=subject or None)

    assert ordered(levels)
    assert 0 < len(levels.index) <= 50
    assert levels == fact(content, subject=subject or None)


def test_a_passage_is_too_long_to_be_cut_and_has_an_index_word():
    passage = "The gateway is slow. " * 500

    levels = fact(passage)

    assert levels.summary == levels.full == passage
    assert levels.index == "gateway-slow"


def test_a_wording_that_would_lose_something_falls_back():
    assert shortest_sentence("Deploys are automatic. Never on Fridays.") == "Deploys are automatic. Never on Fridays."
    assert shortest_sentence("The cache is simply an LRU. It is fine.") == "The cache is an LRU. It is fine."
    assert "JSON" in fact_line("The team uses Postgres because of its support for JSON.")


@pytest.mark.parametrize(
    "content",
    [
        "He said that she is pregnant", "Nobody said that he is guilty of leak",
        "Refunds: granted, as long as customer has receipt", "Refunds: possible given that customer has receipt",
        "Users: can delete their accounts, as soon as billing is settled",
        "Contractors may read customer records, where legal has signed off",
        "Use staging database, especially for tests",
        "Refunds: granted because law says so, as long as customer has receipt",
        "Backups run automatically because somebody wrote job. They have been broken lately",
        "Deploys: paused because of incident, and gateway is off", "We did not leave because of cost",
        "outage: was due to full disk", "Backups run every night on main server. They have been broken lately",
        "Well water: not safe to drink here", "So far nothing works on staging", "Also Sprach: favourite piece",
        "Remember milk", "It is important that all tests pass", "cache: not simply LRU", "I like coffee very much",
        "restart: quite safe", "TypeScript: strongly typed",
    ],
)  # fmt: skip
def test_who_said_it_and_what_it_holds_under_stay(content):
    assert fact_line(content) == content


def test_the_levels_of_hearsay_and_of_conditions_state_what_was_said():
    for content in (
        "He said that she is pregnant.", "Nobody said that he is guilty of the leak.",
        "Refunds are granted, as long as the customer has a receipt.", "Well water is not safe to drink here.",
        "Backups run every night on the main server automatically. They have been broken lately.",
    ):  # fmt: skip
        assert shortest_sentence(content) == content


def test_courtesies_and_words_that_only_stress_go():
    told = "Thanks! Basically, the window is really open. Let me know if you have any questions."

    assert shortest_sentence(told) == "The window is open."
    assert shortest_sentence("Please note that the milk is very cold. Thank you very much!") == "The milk is cold."
    assert shortest_sentence("Thanks!") == "Thanks!"


def test_a_scope_that_is_said_already_is_not_said_twice():
    assert fact("The infra budget is 20 euros.", category="infra").compressed == "infra budget: 20 euros"


def test_what_was_stored_wins_unless_it_is_longer_than_the_level_above():
    row = {"content": "The gateway is in Oslo", "index_word": "gateway", "compressed": "gateway: Oslo"}

    assert fact(**row).compressed == "gateway: Oslo"
    assert fact(**row).summary == "The gateway is in Oslo"
    assert fact(**{**row, "compressed": "x" * 100}).compressed == "The gateway is in Oslo"


@given(statements(), SUBJECTS, SCOPES)
@settings(max_examples=examples(24), deadline=None)
def test_stored_levels_read_back_as_they_were_derived(content, subject, category):
    row = {"content": content, "subject": subject, "category": category}

    assert levels_of("fact", {**row, **stored_levels(row)}) == levels_of("fact", row)


def test_an_episode_is_shown_as_it_was_written_up():
    row = {
        "title": "Auth Refactor", "detail": "Ana: the tokens were too large. " * 20, "index_word": "auth_refactor",
        "summary": "Replaced JWT with sessions due to token size issues", "compressed": "auth: JWT→sessions (size)",
    }  # fmt: skip

    assert vars(levels_of("episode", row)) == {
        "full": row["detail"], "summary": row["summary"], "compressed": row["compressed"], "index": "auth_refactor",
    }  # fmt: skip


def test_until_an_episode_is_written_up_its_title_stands_for_it():
    levels = levels_of("episode", {"title": "Auth Refactor", "detail": "Ana: the tokens were too large. " * 20})

    assert levels.summary == levels.compressed == levels.index == "Auth Refactor"
    assert ordered(levels_of("episode", {"detail": "Ana: the tokens were too large. " * 20}))


def test_a_workflow_is_a_line_of_its_steps():
    steps = ["test", {"name": "build", "detail": "docker build -t app ."}, "stage", "verify", "prod"]

    levels = levels_of("procedure", {"name": "deploy", "kind": "workflow", "steps": steps, "trigger": "a release"})

    assert levels.full == "deploy\na release\n1. test\n2. build: docker build -t app .\n3. stage\n4. verify\n5. prod"
    assert levels.summary == "deploy: test→build→stage→verify→prod\na release"
    assert levels.compressed == "deploy: test→build→stage→verify→prod"
    assert levels.index == "deploy"


def test_a_pattern_is_a_line_of_its_template():
    template = {"route": "{method} /api/{resource}", "validate": "zod", "handle": "typed result", "respond": "json"}

    levels = levels_of("procedure", {"name": "endpoint", "kind": "pattern", "template": template})

    assert levels.compressed == "endpoint: route→validate→handle→respond"
    assert "{method} /api/{resource}" in levels.full
    assert ordered(levels)


def test_a_k_line_is_a_line_of_its_core():
    levels = levels_of("procedure", {"name": "debug a leak", "goals": ["find it"], "core_patterns": ["bisect", "heap"]})

    assert levels.compressed == "debug a leak: bisect; heap"


def test_a_censor_that_blocks_says_never():
    row = {"trigger": "push on Friday", "reason": "The on-call team is not there to roll back."}

    assert levels_of("censor", {**row, "severity": "block"}).compressed == (
        "never push on Friday: on-call team is not there to roll back"
    )
    assert levels_of("censor", {**row, "severity": "warn"}).compressed.startswith("push on Friday: ")
    assert levels_of("censor", {"trigger": "never push", "reason": "No.", "severity": "block"}).compressed == (
        "never push: No"
    )


def test_a_decision_is_told_with_its_reason_only_where_there_is_room():
    row = {"title": "Use Postgres for the event store", "rationale": "The team runs it already. Also it is cheap."}

    levels = levels_of("decision", row)

    assert levels.full == f"{row['title']}: {row['rationale']}"
    assert levels.compressed == "Use Postgres for event store"
    assert ordered(levels)


def test_another_kind_has_no_levels():
    with pytest.raises(InvalidInput, match="'rumour'; known: fact, episode, procedure, censor, decision"):
        levels_of("rumour", {})


def test_learned_facts_are_stored_with_their_levels(heart, owner):
    heart.learn(TIMEOUT, category="infra")
    heart.learn("Rex barks")

    rows = owner.execute(
        "select content, summary, compressed, index_word from heart.facts order by learned_at"
    ).fetchall()

    assert rows == [
        (TIMEOUT, None, "timeout of gateway: 30 seconds (infra)", "timeout of gateway"),
        ("Rex barks", None, None, "rex-barks"),
    ]  # fmt: skip


def test_recall_shows_the_levels_of_facts_nobody_wrote_levels_for(heart, owner):
    heart.learn(TIMEOUT, category="infra")
    owner.execute("alter table heart.facts disable trigger user")
    owner.execute("update heart.facts set summary = null, compressed = null, index_word = null")

    texts = {
        detail: heart.recall("gateway", detail=detail)[0].text for detail in ("full", "summary", "compressed", "index")
    }

    assert texts == {
        "full": TIMEOUT,
        "summary": TIMEOUT,
        "compressed": "timeout of gateway: 30 seconds (infra)",
        "index": "timeout of gateway",
    }


def test_undoing_a_change_leaves_the_levels_as_they_were(heart, owner):
    learned = heart.learn(TIMEOUT).memory
    before = owner.execute("select summary, compressed, index_word from heart.facts").fetchone()

    heart.confirm_fact(learned.id)

    assert owner.execute("select summary, compressed, index_word from heart.facts").fetchone() == before
    assert read(before[1]).numbers


def test_the_lines_on_the_page_are_those_that_are_made():
    page = (Path(__file__).parents[3] / "docs" / "levels.md").read_text("utf-8")
    table = page.partition("| statement |")[2].partition("\n\n")[0].splitlines()[2:]
    examples = [[cell.strip() for cell in row.split("|")[1:-1]] for row in table]

    assert len(examples) == 30
    for content, subject, category, line, index in examples:
        levels = fact(content, subject=subject or None, category=category or None)
        assert (levels.compressed, levels.index) == (line, index)
