"""Importing: what lines become, what is said about bad ones, and that nothing is ever stored twice."""

from __future__ import annotations

import json
import re
import tracemalloc
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import psycopg
import pytest
from conftest import WordEmbedder
from hypothesis import given
from hypothesis import strategies as st

from nous_online import postgres
from nous_online.database import Database
from nous_online.errors import InvalidInput, Unavailable
from nous_online.heart import Heart
from nous_online.import_dialogues import MAX_STATEMENT_CHARACTERS, parts
from nous_online.import_lines import MAX_LINE_BYTES, lines_of, occurrences
from nous_online.import_records import KNOWN_FIELDS, imported_moment
from nous_online.importing import ImportReport, Progress, import_file

DOCUMENT = Path(__file__).parents[1] / "docs" / "import.md"
MAY = datetime(2023, 5, 28, 7, 17, tzinfo=UTC)


def written(path: Path, *records: object) -> Path:
    """Write records, and texts as they stand, a line each."""
    lines = [record if isinstance(record, str) else json.dumps(record) for record in records]
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return path


def facts_of(owner: psycopg.Connection, columns: str = "content") -> list[tuple]:
    return owner.execute(f"select {columns} from heart.facts order by learned_at, content").fetchall()  # noqa: S608 (columns a test names)


def numbers(report: ImportReport) -> list[int]:
    return [note.number for note in report.bad]


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


BAD_LINES = {
    '{"content": "unfinished': "not JSON",
    '["a", "list"]': "must hold one JSON object, got list",
    "[" * 100_000: "nested too deeply",
    '{"content": ' + "9" * 5000 + "}": "not JSON",
    '{"content": "nul \\u0000 inside"}': "NUL character at position 4",
    '{"content": "surrogate \\ud800"}': "lone surrogate",
    '{"content": "x", "confidence": NaN}': "NaN is not a JSON number",
    '{"content": "x", "confidence": 1e999}': "confidence must be a number between 0 and 1",
    '{"content": "x", "confidence": 2}': "confidence must be a number between 0 and 1",
    '{"content": "x", "kind": "rumour"}': "kind must be one of fact, episode, recall",
    '{"content": "x", "kind": ["fact"]}': "kind must be one of",
    '{"content": "x", "learned_at": "last May"}': "learned_at 'last May' is no date",
    '{"content": "x", "is_pinned": "yes"}': "is_pinned must be",
    '{"content": "x", "id": ""}': "id is empty",
    '{"content": "x", "id": 1.5}': "id must be text",
    '{"content": "x", "id": "\\u0000"}': "id holds a NUL",
    '{"content": "x", "agent": ""}': "agent_id is empty",
    '{"content": "x", "tags": "one"}': "tags must be a list",
    '{"content": "x", "valid_from": "2026-02-01", "valid_to": "2026-01-01"}': "lies before valid_from",
    '{"content": "' + "long " * 10_000 + '"}': "content has 50,000 bytes",
    '{"content": 7}': "content must be text, got int",
    "{}": "the line has no content",
    '{"turns": "hello"}': "turns must be a list",
    '{"turns": ["hello"]}': "turn 0 must be an object",
    '{"turns": [{"role": "user", "content": ["hello"]}]}': "content of turn 0 must be text",
    '{"sessions": [{"date": "soon", "turns": []}]}': "date 'soon' is no date",
    '{"kind": "episode", "title": "no detail"}': "detail must be text",
    '{"kind": "episode", "detail": "x", "started_at": "2026-02-01", "ended_at": "2026-01-01"}': "before started_at",
    '{"kind": "episode", "detail": "x", "outcome": "fine"}': "outcome must be one of",
    '{"kind": "episode", "detail": "x", "lessons_learned": "be careful"}': "lessons_learned must be a list",
    '{"kind": "recall", "query": "x"}': "at is missing",
    '{"kind": "recall", "query": "x", "at": 0, "cited": "f-1"}': "cited must be a list of ids",
}


def test_reports_bad_lines_by_their_numbers_and_keeps_the_others(
    heart: Heart, owner: psycopg.Connection, tmp_path: Path
):
    good = [{"content": f"good {number:02}"} for number in range(len(BAD_LINES))]
    path = written(tmp_path / "some.jsonl", *(each for pair in zip(BAD_LINES, good, strict=True) for each in pair))

    report = import_file(heart, path)

    assert numbers(report) == [2 * number + 1 for number in range(len(BAD_LINES))]
    for note, message in zip(report.bad, BAD_LINES.values(), strict=True):
        assert message in note.message
    assert report.stored == len(good)
    assert facts_of(owner) == [(each["content"],) for each in good]


def test_reports_a_line_that_is_not_utf8(heart: Heart, tmp_path: Path):
    path = tmp_path / "latin.jsonl"
    path.write_bytes(b'{"content": "caf\xe9"}\n{"content": "tea"}\n')

    report = import_file(heart, path)

    assert (report.stored, numbers(report)) == (1, [1])
    assert "byte 17 is not UTF-8" in report.bad[0].message


def test_reports_an_endless_line_without_reading_it_into_memory(heart: Heart, tmp_path: Path):
    path = tmp_path / "endless.jsonl"
    path.write_bytes(b'{"content": "' + b"x" * (10 * MAX_LINE_BYTES) + b'"}\n{"content": "tea"}\n')

    tracemalloc.start()
    report = import_file(heart, path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert (report.stored, report.lines, numbers(report)) == (1, 2, [1])
    assert "longer than 8,388,608 bytes" in report.bad[0].message
    assert peak < 3 * MAX_LINE_BYTES


def test_reads_byte_order_marks_windows_line_ends_and_blank_lines(
    heart: Heart, owner: psycopg.Connection, tmp_path: Path
):
    path = tmp_path / "windows.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"content": "first"}\r\n\r\n{"content": "third"}')

    report = import_file(heart, path)

    assert (report.stored, report.lines, report.bad_count) == (2, 3, 0)


def test_an_empty_file_imports_nothing(heart: Heart, tmp_path: Path):
    report = import_file(heart, written(tmp_path / "empty.jsonl"))

    assert (report.lines, report.stored, report.bad_count) == (0, 0, 0)


@pytest.mark.parametrize("name", ["missing.jsonl", "."])
def test_says_which_file_it_cannot_read(heart: Heart, tmp_path: Path, name: str):
    with pytest.raises(InvalidInput, match=r"can't read .* name a JSONL file"):
        import_file(heart, tmp_path / name)


def test_importing_twice_stores_nothing_twice(heart: Heart, owner: psycopg.Connection, tmp_path: Path):
    path = written(
        tmp_path / "history.jsonl",
        {"content": "Ada prefers tea", "id": 1},
        {"content": "no id here"},
        {"turns": [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "good morning"}]},
        {"kind": "episode", "detail": "The release was rolled back."},
    )
    first = import_file(heart, path)

    second = import_file(heart, path)

    assert (first.stored, first.episodes, first.is_resumed) == (4, 1, False)
    assert (second.stored, second.episodes, second.already_known, second.is_resumed) == (0, 0, 5, True)
    assert len(facts_of(owner)) == 4


def test_identical_lines_without_ids_stay_separate(heart: Heart, owner: psycopg.Connection, tmp_path: Path):
    path = written(tmp_path / "repeats.jsonl", *[{"content": "Ada prefers tea"}] * 3)

    reports = [import_file(heart, path, batch_size=2) for _ in range(2)]

    assert [report.stored for report in reports] == [3, 0]
    assert facts_of(owner) == [("Ada prefers tea",)] * 3


def test_the_same_id_belongs_to_another_memory_in_another_source(heart: Heart, tmp_path: Path):
    one = written(tmp_path / "one.jsonl", {"id": 1, "content": "Ada prefers tea"})
    two = written(tmp_path / "two.jsonl", {"id": 1, "content": "Basil prefers coffee"})

    reports = [import_file(heart, one), import_file(heart, two), import_file(heart, two, source="one")]

    assert [report.stored for report in reports] == [1, 1, 0]
    assert numbers(reports[2]) == [1]


@pytest.mark.parametrize("batch_size", [1, 2, 100])
def test_an_id_that_comes_back_with_another_text_is_reported(
    heart: Heart, owner: psycopg.Connection, tmp_path: Path, batch_size: int
):
    path = written(
        tmp_path / "ids.jsonl",
        {"store": "a", "serial": 1, "content": "first"},
        {"store": "a", "serial": 1, "content": "other"},
        {"store": "a", "serial": 1, "content": "first"},
        {"store": "b", "serial": 1, "content": "other"},
    )

    report = import_file(heart, path, batch_size=batch_size)

    assert (report.stored, report.already_known, numbers(report)) == (2, 1, [2])
    assert "its id was used before for another text" in report.bad[0].message
    assert facts_of(owner) == [("first",), ("other",)]


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
    assert report.skipped == (("dialogues in which nothing is said", 2),)


def test_names_ignored_fields_once(heart: Heart, tmp_path: Path):
    path = written(tmp_path / "more.jsonl", {"content": "a", "split": 1, "zoo": 2}, {"content": "b", "split": 1})

    assert import_file(heart, path).ignored_fields == ("split", "zoo")


def test_a_line_may_name_its_agent(heart: Heart, owner: psycopg.Connection, tmp_path: Path):
    path = written(
        tmp_path / "two.jsonl",
        {"content": "for basil", "agent": "basil"},
        {"content": "for aria"},
        {"content": "for aria too", "agent": "aria"},
    )

    report = import_file(heart, path)

    assert report.stored == 3
    assert owner.execute("select agent_id, content from heart.facts order by content").fetchall() == [
        ("aria", "for aria"),
        ("aria", "for aria too"),
        ("basil", "for basil"),
    ]


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

    assert report.bad == ()
    assert report.skipped == (("marked memories that were no answer of the replayed recall", 2),)


class Choosy(WordEmbedder):
    """An embedder that fails on one word."""

    def embed_documents(self, texts):
        rows = super().embed_documents(texts)
        rows[["poison" in text for text in texts]] = np.nan
        return rows


def test_a_batch_refused_for_one_entry_stores_the_others(database: Database, owner: psycopg.Connection, tmp_path: Path):
    heart = Heart.open("aria", database=database, embedder=Choosy())
    contents = ["one", "two", "three", "poison", "five", "six", "seven"]

    report = import_file(heart, written(tmp_path / "some.jsonl", *({"content": each} for each in contents)))

    assert (report.stored, numbers(report)) == (6, [4])
    assert "NaN" in report.bad[0].message
    assert sorted(facts_of(owner)) == sorted((each,) for each in contents if each != "poison")


class Stop(Exception):
    """Raised by a test in the middle of an import."""


@pytest.mark.parametrize("stop", [KeyboardInterrupt, Stop])
def test_an_interrupted_import_continues_where_it_stopped(
    heart: Heart, owner: psycopg.Connection, tmp_path: Path, stop: type[BaseException]
):
    path = written(tmp_path / "long.jsonl", *({"content": f"fact {number}"} for number in range(20)))

    def stop_at_twelve(progress: Progress) -> None:
        if progress.lines >= 12:
            raise stop

    with pytest.raises(stop):
        import_file(heart, path, batch_size=4, on_progress=stop_at_twelve)
    halfway = len(facts_of(owner))
    report = import_file(heart, path, batch_size=4)

    assert halfway == 12
    assert (report.already_known, report.stored) == (12, 8)
    assert len(facts_of(owner)) == 20


def test_a_database_that_goes_down_midway_says_how_far_it_came(
    server: postgres.Server, database_url: str, embedder: WordEmbedder, owner: psycopg.Connection, tmp_path: Path
):
    path = written(tmp_path / "long.jsonl", *({"content": f"fact {number}"} for number in range(20)))
    name = owner.info.dbname
    others = "select pg_terminate_backend(pid) from pg_stat_activity where datname = %s and pid <> %s"

    def allow(answer: str) -> None:
        with psycopg.connect(server.dsn("postgres"), autocommit=True) as connection:
            connection.execute(f"alter database {name} allow_connections {answer}")

    def go_down(progress: Progress) -> None:
        if progress.lines == 8:
            allow("false")
            owner.execute(others, [name, owner.info.backend_pid])

    database = Database(database_url)
    heart = Heart.open("aria", database=database, embedder=embedder, deadline_s=1)
    try:
        with pytest.raises(
            Unavailable, match=r"everything up to line 8 is stored \(8 new memories\); run the same import"
        ):
            import_file(heart, path, batch_size=4, on_progress=go_down)
    finally:
        allow("true")
        database.close()
    with Heart.open("aria", database=Database(database_url), embedder=embedder) as again:
        report = import_file(again, path, batch_size=4)

    assert (report.already_known, report.stored, len(facts_of(owner))) == (8, 12, 20)


def test_tells_how_far_it_has_come(heart: Heart, tmp_path: Path):
    path = written(tmp_path / "some.jsonl", *({"content": f"fact {number}"} for number in range(6)), "bad")
    told: list[Progress] = []

    import_file(heart, path, batch_size=4, on_progress=told.append)

    size = path.stat().st_size
    assert [(each.lines, each.stored, each.bad_count) for each in told] == [(4, 4, 0), (7, 6, 1)]
    assert [each.bytes_read for each in told] == [4 * 22, size]
    assert {each.total_bytes for each in told} == {size}


def test_counts_a_line_as_done_when_all_it_holds_is_stored(heart: Heart, tmp_path: Path):
    dialogue = {"turns": [{"role": "user", "content": f"turn {number}"} for number in range(5)]}
    told: list[Progress] = []

    import_file(heart, written(tmp_path / "some.jsonl", dialogue, dialogue), batch_size=4, on_progress=told.append)

    assert [(each.lines, each.stored) for each in told] == [(0, 4), (1, 8), (2, 10)]


def test_refreshes_what_recall_knows_of_the_rarity_of_words(heart: Heart, owner: psycopg.Connection, tmp_path: Path):
    import_file(heart, written(tmp_path / "some.jsonl", {"content": "green tea"}, {"content": "black tea"}))

    counted = "select lexeme, document_count from heart.term_stats order by lexeme"
    assert owner.execute(counted).fetchall() == [("black", 1), ("green", 1), ("tea", 2)]


def test_keeps_the_messages_of_a_thousand_bad_lines_and_counts_the_rest(heart: Heart, tmp_path: Path):
    report = import_file(heart, written(tmp_path / "bad.jsonl", *["bad"] * 1200))

    assert (report.bad_count, len(report.bad), report.is_useful) == (1200, 1000, False)


def test_names_occurrences_of_a_line_alike_in_every_run():
    def names() -> list[str]:
        with occurrences() as seen:
            return [seen.name(line) for line in (b"a", b"b", b"a")]

    assert names() == names()
    assert len(set(names())) == 3


def test_tells_where_each_line_ends(tmp_path: Path):
    path = tmp_path / "lines"
    path.write_bytes(b"one\n\nthree")

    with path.open("rb") as file:
        assert [(line.number, line.text, line.end) for line in lines_of(file)] == [
            (1, b"one", 4),
            (2, b"", 5),
            (3, b"three", 10),
        ]


def test_every_example_of_the_documentation_is_imported(heart: Heart, tmp_path: Path):
    examples = re.findall(r"```jsonl\n(.*?)```", DOCUMENT.read_text("utf-8"), re.DOTALL)

    report = import_file(heart, written(tmp_path / "history.jsonl", *"".join(examples).splitlines()))

    assert len(examples) >= 5
    assert (report.bad, report.ignored_fields) == ((), ())
    assert report.stored == 11
    assert (report.episodes, report.recalls_replayed) == (1, 1)


def test_the_documentation_names_every_field_that_is_read():
    named = set(re.findall(r"`(\w+)`", DOCUMENT.read_text("utf-8"))) | set(
        re.findall(r'"(\w+)":', DOCUMENT.read_text("utf-8"))
    )

    assert set().union(*KNOWN_FIELDS.values()) - named == set()


def test_statements_of_the_documented_length_fit_a_fact():
    assert f"{MAX_STATEMENT_CHARACTERS:,} characters" in DOCUMENT.read_text("utf-8")
    assert len(parts("é" * 5 * MAX_STATEMENT_CHARACTERS, max_characters=MAX_STATEMENT_CHARACTERS)) == 5
