"""What the records of an import become: facts, dialogues, episodes and recalls, as documented."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from import_files import facts_of, import_file, written

from nous_online.core.errors import InvalidInput
from nous_online.heart import Heart
from nous_online.interfaces.imports.records import KNOWN_FIELDS, MAX_STATEMENT_CHARACTERS, imported_moment, parts

DOCUMENT = Path(__file__).parents[3] / "docs" / "import.md"


MAY = datetime(2023, 5, 28, 7, 17, tzinfo=UTC)


def test_stores_every_field_of_a_fact(heart: Heart, owner: psycopg.Connection, tmp_path: Path):
    record = {
        "content": "Ada prefers tea", "subject": "Ada", "category": "preference", "tags": ["drinks"], "source": "chat",
        "source_kind": "user", "confidence": 0.5, "learned_at": "2026-05-01T09:30:00+02:00", "encoded_frame": "task",
        "encoded_censors": ["no-gossip"], "context": "at breakfast", "valid_from": "2026-05-01",
        "valid_to": "2026-06-01", "scope": "project", "user_id": "ada", "project_id": "atlas",
        "is_pinned": True, "trust": 70, "id": "f-1",
    }  # fmt: skip

    report = import_file(heart, written(tmp_path / "one.jsonl", record))

    kept = [name for name in record if name != "id"]
    (row,) = owner.execute("select to_jsonb(f) from heart.facts f").fetchone()
    assert report.stored == 1
    assert {name: row[name] for name in kept} == record_as_stored(record, kept)


def record_as_stored(record: dict, names: list[str]) -> dict:
    moments = {
        "learned_at": "2026-05-01T07:30:00+00:00",
        "valid_from": "2026-05-01T00:00:00+00:00",
        "valid_to": "2026-06-01T00:00:00+00:00",
    }
    return {name: moments.get(name, record[name]) for name in names}


@pytest.mark.parametrize("name", ["content", "fact", "text", "memory"])
def test_reads_the_content_under_each_of_its_names(heart: Heart, owner: psycopg.Connection, tmp_path: Path, name: str):
    import_file(heart, written(tmp_path / "one.jsonl", {name: "Ada prefers tea"}))

    assert facts_of(owner) == [("Ada prefers tea",)]


@pytest.mark.parametrize(
    "value",
    [
        "2023-05-28T07:17:00Z",
        "2023-05-28T09:17+02:00",
        "2023-05-28 07:17",
        "2023/05/28 (Sun) 07:17",
        "2023/05/28 07:17",
        "7:17 am on 28 May, 2023",
        1685258220,
        1685258220.0,
        1685258220000,
    ],
)
def test_reads_dates_in_the_forms_histories_write_them(value: object):
    assert imported_moment("learned_at", value) == MAY


@pytest.mark.parametrize("value", ["yesterday", "2023-13-01", 1e300, True, [], {}, "9" * 5000])
def test_refuses_what_is_no_date(value: object):
    with pytest.raises(InvalidInput, match=r"learned_at .* is no date"):
        imported_moment("learned_at", value)


def test_undated_records_count_as_said_in_the_order_of_their_lines(
    heart: Heart, owner: psycopg.Connection, tmp_path: Path
):
    turns = [{"role": "user", "content": f"turn {number}"} for number in range(3)]
    before = datetime.now(UTC)

    import_file(heart, written(tmp_path / "undated.jsonl", {"content": "zero"}, {"turns": turns}, {"content": "last"}))

    rows = facts_of(owner, "content, learned_at")
    assert [content for content, _ in rows] == ["zero", "turn 0", "turn 1", "turn 2", "last"]
    assert len({moment for _, moment in rows}) == 5
    assert before <= rows[0][1] <= rows[-1][1] <= datetime.now(UTC)


def test_learns_a_dialogue_turn_by_turn(heart: Heart, owner: psycopg.Connection, tmp_path: Path):
    record = {
        "subject": "travel",
        "evidence_sessions": [
            {
                "date": "2023/05/28 (Sun) 07:17",
                "turns": [
                    {"role": "user", "content": "I moved to Lisbon."},
                    {"role": "assistant", "content": "How nice."},
                    {"role": "user", "content": " "},
                    {"speaker": "Ada", "text": "It rains."},
                ],
            },
            {"date": "2023/05/29 (Mon) 07:17", "turns": [{"role": "tool", "content": "12 degrees"}]},
        ],
    }

    report = import_file(heart, written(tmp_path / "chat.jsonl", record))

    assert report.stored == 4
    assert facts_of(owner, "content, source_kind, source, learned_at, context, subject") == [
        ("I moved to Lisbon.", "user", "user", MAY, "How nice.", "travel"),
        ("How nice.", "agent", "assistant", MAY + timedelta(seconds=1), "I moved to Lisbon.\nIt rains.", "travel"),
        ("It rains.", "user", "Ada", MAY + timedelta(seconds=3), "How nice.", "travel"),
        ("12 degrees", "tool", "tool", MAY + timedelta(days=1), None, "travel"),
    ]


def test_reads_sessions_that_are_bare_lists_of_turns_with_their_dates_beside_them(
    heart: Heart, owner: psycopg.Connection, tmp_path: Path
):
    record = {
        "haystack_dates": ["2023/05/28 (Sun) 07:17"],
        "haystack_sessions": [[{"role": "user", "content": "dated"}], [{"role": "user", "content": "undated"}]],
    }

    import_file(heart, written(tmp_path / "haystack.jsonl", record))

    assert facts_of(owner, "content, learned_at")[0] == ("dated", MAY)
    assert len(facts_of(owner)) == 2


def test_cuts_a_long_turn_into_statements_at_sentence_ends(heart: Heart, owner: psycopg.Connection, tmp_path: Path):
    sentences = [f"Sentence number {number} says something of moderate length." for number in range(100)]

    import_file(heart, written(tmp_path / "long.jsonl", {"turns": [{"role": "user", "content": " ".join(sentences)}]}))

    stored = [content for (content,) in facts_of(owner)]
    assert len(stored) == 3
    assert " ".join(stored).split() == " ".join(sentences).split()
    assert all(content.startswith("Sentence") and content.endswith("length.") for content in stored)


@given(st.text(alphabet="ab .!?\n。é", max_size=300), st.integers(1, 40))
def test_cutting_keeps_every_character_and_the_limit(text: str, limit: int):
    cut = parts(text, max_characters=limit)

    assert "".join("".join(cut).split()) == "".join(text.split())
    assert all(0 < len(part) <= limit for part in cut)


def test_a_dialogue_in_which_nothing_is_said_is_left_out_with_the_reason(heart: Heart, tmp_path: Path):
    report = import_file(heart, written(tmp_path / "silent.jsonl", {"sessions": []}, {"turns": [{"role": "user"}]}))

    assert (report.stored, report.bad_count) == (0, 0)
    assert report.skipped == {"dialogues in which nothing is said": 2}


def test_stores_an_episode_closed_with_its_event(heart: Heart, owner: psycopg.Connection, tmp_path: Path):
    record = {
        "kind": "episode", "id": "e-1", "title": "Checkout was down", "detail": "Ada rolled it back.",
        "started_at": "2026-05-05T09:12:00Z", "ended_at": "2026-05-05T09:40:00Z", "participants": ["Ada"],
        "tags": ["incident"], "frame_used": "debug", "encoded_censors": ["no-friday-deploys"], "outcome": "success",
        "surprise_level": 0.5, "lessons_learned": ["Roll back first."], "trust": 60, "is_pinned": True,
    }  # fmt: skip

    import_file(heart, written(tmp_path / "episode.jsonl", record))

    (row,) = owner.execute("select to_jsonb(e) from heart.episodes e").fetchone()
    same = [name for name in record if name not in {"kind", "id", "started_at", "ended_at"}]
    assert {name: row[name] for name in same} == {name: record[name] for name in same}
    assert (row["state"], row["duration_seconds"], row["embedding_space_id"]) == ("closed", 28 * 60, "words-64")
    assert row["embedding"] is not None
    event = owner.execute(
        "select memory_kind, action, from_state, to_state, actor, effective_at from lifecycle.events"
    ).fetchall()
    assert event == [("episode", "learned", "new", "closed", "import", datetime(2026, 5, 5, 9, 40, tzinfo=UTC))]


def past_recall(**marks: list) -> list[dict]:
    return [
        {"id": "f-1", "content": "Ada prefers tea", "learned_at": "2026-05-01"},
        {"id": "f-2", "content": "Ada prefers short answers", "learned_at": "2026-05-01"},
        {"kind": "recall", "id": "r-1", "query": "What does Ada prefer?", "at": "2026-05-06", "frame": "task", **marks},
        {"id": "f-3", "content": "Ada prefers coffee", "learned_at": "2026-05-07"},
    ]


def usage_of(owner: psycopg.Connection) -> list[tuple]:
    return owner.execute(
        "select f.content, u.retrieved_count, u.cited_count, u.ignored_count, u.last_used_at::date::text"
        " from heart.usage u join heart.facts f on f.id = u.memory_id order by content"
    ).fetchall()


def test_an_empty_owner_in_a_file_is_none(heart: Heart, tmp_path: Path):
    nobody = {"user_id": "", "project_id": "", "subject": ""}
    path = written(
        tmp_path / "rows.jsonl",
        {"content": "The harbour is open", **nobody},
        {"kind": "episode", "detail": "We opened the harbour", "user_id": "", "project_id": ""},
    )

    assert import_file(heart, path).bad_count == 0
    assert [(each.user_id, each.project_id) for each in heart.list_memories()] == [(None, None)] * 2


def test_replays_a_recall_and_what_was_made_of_it_once(heart: Heart, owner: psycopg.Connection, tmp_path: Path):
    path = written(tmp_path / "history.jsonl", *past_recall(cited=["f-1"], ignored=["f-2"]))

    reports = [import_file(heart, path) for _ in range(2)]

    assert [(report.recalls_replayed, report.already_known) for report in reports] == [(1, 0), (0, 4)]
    assert usage_of(owner) == [
        ("Ada prefers short answers", 1, 0, 1, "2026-05-06"),
        ("Ada prefers tea", 1, 1, 0, "2026-05-06"),
    ]
    recalls = owner.execute("select query, frame, recalled_at::date::text from heart.recalls").fetchall()
    assert recalls == [("What does Ada prefer?", "task", "2026-05-06")]


def test_a_recall_whose_marks_were_not_stored_gets_them_from_the_next_run(
    heart: Heart, owner: psycopg.Connection, tmp_path: Path
):
    import_file(heart, written(tmp_path / "history.jsonl", *past_recall()))
    path = written(tmp_path / "history.jsonl", *past_recall(cited=["f-2"]))

    report = import_file(heart, path)

    assert report.recalls_replayed == 0
    assert [row[:4] for row in usage_of(owner)] == [
        ("Ada prefers short answers", 1, 1, 0),
        ("Ada prefers tea", 1, 0, 0),
    ]


def test_counts_marked_memories_that_the_replayed_recall_did_not_find(heart: Heart, tmp_path: Path):
    path = written(tmp_path / "history.jsonl", *past_recall(cited=["f-1", "f-3", "nobody"]))

    report = import_file(heart, path)

    assert report.bad == []
    assert report.skipped == {"marked memories that were no answer of the replayed recall": 2}


def test_every_example_of_the_documentation_is_imported(heart: Heart, tmp_path: Path):
    examples = re.findall(r"```jsonl\n(.*?)```", DOCUMENT.read_text("utf-8"), re.DOTALL)

    report = import_file(heart, written(tmp_path / "history.jsonl", *"".join(examples).splitlines()))

    assert len(examples) >= 5
    assert (report.bad, report.ignored_fields) == ([], set())
    assert report.stored == 11
    assert (report.episodes, report.recalls_replayed) == (2, 1)


def test_the_documentation_names_every_field_that_is_read():
    named = set(re.findall(r"`(\w+)`", DOCUMENT.read_text("utf-8"))) | set(
        re.findall(r'"(\w+)":', DOCUMENT.read_text("utf-8"))
    )

    assert set().union(*KNOWN_FIELDS.values()) - named == set()


def test_statements_of_the_documented_length_fit_a_fact():
    assert f"{MAX_STATEMENT_CHARACTERS:,} characters" in DOCUMENT.read_text("utf-8")
    assert len(parts("é" * 5 * MAX_STATEMENT_CHARACTERS, max_characters=MAX_STATEMENT_CHARACTERS)) == 5
