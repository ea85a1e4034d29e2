"""Importing: what is said about bad lines, how it continues, and that nothing is ever stored twice."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import psycopg
import pytest
from conftest import WordEmbedder
from import_files import facts_of, import_file, numbers, written

from nous_online.core.errors import InvalidInput, Unavailable
from nous_online.core.policy import LearnPolicy
from nous_online.database import postgres
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.interfaces.imports.import_files import MAX_LINE_BYTES, Occurrences, read_lines
from nous_online.interfaces.imports.importing import ImportProgress

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


@pytest.mark.parametrize("name", ["missing.jsonl", "loop.jsonl"])
def test_says_which_file_it_cannot_read(heart: Heart, tmp_path: Path, name: str):
    (tmp_path / "loop.jsonl").symlink_to("loop.jsonl")

    with pytest.raises(InvalidInput, match=r"can't read .* name a file to import"):
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

    assert (first.stored, first.episodes, first.already_known) == (4, 1, 0)
    assert (second.stored, second.episodes, second.already_known) == (0, 0, 5)
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


def test_names_ignored_fields_once(heart: Heart, tmp_path: Path):
    path = written(tmp_path / "more.jsonl", {"content": "a", "split": 1, "zoo": 2}, {"content": "b", "split": 1})

    assert import_file(heart, path).ignored_fields == {"split", "zoo"}


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


class Choosy(WordEmbedder):
    """An embedder that fails on one word."""

    def embed_documents(self, texts):
        rows = super().embed_documents(texts)
        rows[["poison" in text for text in texts]] = np.nan
        return rows


def test_what_is_imported_is_trusted_as_the_policy_of_its_agent_says(
    database: Database, owner: psycopg.Connection, tmp_path: Path
):
    trust = {"web": 5, "tool": 30, "agent": 50, "episode": 50, "import": 35, "user": 90, "operator": 95}
    policy = LearnPolicy(source_trust=tuple(trust.items()))
    heart = Heart.open("aria", database=database, embedder=WordEmbedder(), policy=policy, works_in_background=False)
    lines = [
        {"content": "Cats like fish"},
        {"content": "Dogs like bones", "source_kind": "web"},
        {"content": "Owls like mice", "source_kind": "user", "agent": "ben"},
        {"kind": "episode", "detail": "The mill closed."},
    ]

    import_file(heart, written(tmp_path / "a.jsonl", *lines))

    stored = owner.execute("select content, trust from heart.facts union all select detail, trust from heart.episodes")
    assert dict(stored.fetchall()) == {
        "Cats like fish": 35, "Dogs like bones": 5, "Owls like mice": 90, "The mill closed.": 35,
    }  # fmt: skip


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

    def stop_at_twelve(progress: ImportProgress) -> None:
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

    def go_down(progress: ImportProgress) -> None:
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
    told: list[ImportProgress] = []

    import_file(heart, path, batch_size=4, on_progress=told.append)

    size = path.stat().st_size
    assert [(each.lines, each.stored, each.bad_count) for each in told] == [(4, 4, 0), (7, 6, 1)]
    assert [each.bytes_read for each in told] == [4 * 22, size]
    assert {each.total_bytes for each in told} == {size}


def test_counts_a_line_as_done_when_all_it_holds_is_stored(heart: Heart, tmp_path: Path):
    dialogue = {"turns": [{"role": "user", "content": f"turn {number}"} for number in range(5)]}
    told: list[ImportProgress] = []

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
        seen = Occurrences()
        return [seen.name(line) for line in (b"a", b"b", b"a")]

    assert names() == names()
    assert len(set(names())) == 3


def test_tells_where_each_line_ends(tmp_path: Path):
    path = tmp_path / "lines"
    path.write_bytes(b"one\n\nthree")

    with path.open("rb") as file:
        assert [(line.number, line.text, line.end) for line in read_lines(file)] == [
            (1, b"one", 4),
            (2, b"", 5),
            (3, b"three", 10),
        ]
