"""Memories of mem0 and notes in Markdown become facts: each with its subject and date, once, none with a credential."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from time import process_time

import psycopg
import pytest
from import_files import facts_of, written

from nous_online.heart import Heart
from nous_online.interfaces.imports.importing import import_history
from nous_online.interfaces.imports.markdown_notes import Page, notes_of
from nous_online.interfaces.imports.program_exports import relation_in_words

MAY = datetime(2026, 5, 4, tzinfo=UTC)
PAGE = """\
---
title: Atlas
tags: [work, "atlas"]
updated: 2026-05-04
aliases:
  - The Atlas
---
# Atlas <!-- a comment -->

The build takes **nine minutes**
on one core. See [the log](https://example.org/log).

## Commands

- Run `make check` before a commit.
  It takes a minute.
  - Use [[Fast checks|the fast ones]] while writing. #habit
1. [x] Pin the compiler.
- [ ] Publish the image.

```bash
export TOKEN=nothing
```

| port | service |
|------|---------|
| 8080 | api     |
| 8081 |         |

> Never deploy on a Friday.

The password is Xk29-ffQ7-pp31.

---
ok
"""


def test_each_item_and_paragraph_of_a_page_is_a_fact_about_the_heading_above_it(
    heart: Heart, owner: psycopg.Connection, tmp_path: Path
):
    path = tmp_path / "CLAUDE.md"
    path.write_text(PAGE, "utf-8")

    report = import_history(heart, [path])

    found = owner.execute("select content, subject, tags, context from heart.facts order by id").fetchall()
    assert {content: subject for content, subject, *_ in found} == {
        "The build takes nine minutes on one core. See the log.": "Atlas",
        "Run `make check` before a commit. It takes a minute.": "Commands",
        "Use the fast ones while writing. #habit": "Commands",
        "Pin the compiler.": "Commands",
        "Publish the image.": "Commands",
        "port: 8080, service: api": "Commands",
        "port: 8081": "Commands",
        "Never deploy on a Friday.": "Commands",
    }
    kept = {content: (tags, context) for content, _, tags, context in found}
    assert kept["Use the fast ones while writing. #habit"] == (
        ["work", "atlas", "habit"],
        f"{tmp_path.name}/CLAUDE > Atlas > Commands > Run `make check` before a commit. It takes a minute.",
    )
    assert kept["Pin the compiler."][0] == ["work", "atlas", "done"]
    assert kept["Publish the image."][0] == ["work", "atlas", "open"]
    assert {moment for (moment,) in facts_of(owner, "learned_at")} == {MAY}
    assert dict(report.skipped) == {
        "blocks of code": 1,
        "facts that look as if they hold a credential": 1,
    }


def test_a_page_is_dated_by_its_name_or_by_when_it_was_written_last(
    heart: Heart, owner: psycopg.Connection, tmp_path: Path
):
    written(tmp_path / "2026-05-04 standup.md", "- We talked.")
    os.utime(written(tmp_path / "ideas.md", "- Boats with wheels."), (0, 86_400))

    import_history(heart, [tmp_path])

    assert facts_of(owner, "content, learned_at") == [
        ("Boats with wheels.", datetime(1970, 1, 2, tzinfo=UTC)),
        ("We talked.", MAY),
    ]


def test_a_day_in_a_row_of_a_table_dates_that_row(heart: Heart, owner: psycopg.Connection, tmp_path: Path):
    rows = ["| Date | Event |", "|---|---|", "| 2026-05-04 | Standup |", "| 2026-05-03 | Standup |", "| soon | Race |"]
    rows += ["| 2999-01-01 | Launch |", "| 2026-05-04 | |"]
    page = written(tmp_path / "2026-05-05.md", *rows, "", "| What | WHEN |", "|---|---|", "| Mast set | 2026-05-04 |")

    import_history(heart, [page])
    again = import_history(heart, [written(page, *rows[:2], "| 2026-05-02 | Standup |", *rows[2:])])

    later = datetime(2026, 5, 5, tzinfo=UTC)
    assert sorted(facts_of(owner, "content, learned_at")) == [
        ("Date: 2999-01-01, Event: Launch", later),
        ("Date: soon, Event: Race", later),
        ("Event: Standup", datetime(2026, 5, 2, tzinfo=UTC)),
        ("Event: Standup", datetime(2026, 5, 3, tzinfo=UTC)),
        ("Event: Standup", MAY),
        ("What: Mast set", MAY),
    ]
    assert again.stored == 1


def test_a_page_whose_date_cannot_be_read_is_reported_and_not_dated_by_its_file(
    heart: Heart, owner: psycopg.Connection, tmp_path: Path
):
    written(tmp_path / "a.md", "---", "title: Sails", "date: last spring", "---", "- Undated.")
    written(tmp_path / "b.md", "---", "date: May 4, 2026", "---", "- In words.")
    written(tmp_path / "c.md", "---", "date: soon", 'created: "[[2026-05-04]]" # in the evening', "---", "- Linked.")
    written(tmp_path / "2026-05-04.md", "---", "date: soon", "---", "- Named.")

    report = import_history(heart, [tmp_path])

    assert facts_of(owner, "content, learned_at") == [("In words.", MAY), ("Linked.", MAY), ("Named.", MAY)]
    assert [(note.file, note.number) for note in report.bad] == [("a.md", 3)]
    assert "date 'last spring' is no date; write it as ISO 8601" in report.bad[0].message


def test_what_holds_for_all_work_gets_its_category_and_is_told_at_the_start_of_a_session(
    heart: Heart, owner: psycopg.Connection, tmp_path: Path
):
    page = written(
        tmp_path / "CLAUDE.md",
        "# Atlas\nThe build takes nine minutes.\n\nNever commit to main.",
        "\n## Coding conventions\n- Four spaces, no tabs.",
    )

    import_history(heart, [page])

    found = dict(owner.execute("select content, category from heart.facts").fetchall())
    assert found == {
        "The build takes nine minutes.": None,
        "Never commit to main.": "rule",
        "Four spaces, no tabs.": "convention",
    }
    told = heart.assemble_context(budget=800).text
    assert ["Four spaces" in told, "Never commit" in told, "nine minutes" in told] == [True, True, False]


def test_a_page_that_changed_adds_only_what_is_new(heart: Heart, tmp_path: Path):
    path = written(tmp_path / "ideas.md", "# Boats", "- Boats float.", "- Boats sink.")
    first = import_history(heart, [path])
    written(path, "# Boats", "A boat is a boat.", "", "- Boats float.", "- Boats sink.")

    again = import_history(heart, [tmp_path])

    assert (first.stored, again.stored, again.already_known) == (2, 1, 2)


def test_reports_a_page_that_is_not_utf8(heart: Heart, tmp_path: Path):
    (tmp_path / "latin.md").write_bytes(b"- caf\xe9")

    report = import_history(heart, [written(tmp_path / "good.md", "- Tea."), tmp_path / "latin.md"])

    assert (report.stored, [note.place for note in report.bad]) == (1, ["latin.md line 1"])
    assert "byte 6 is not UTF-8" in report.bad[0].message


def test_a_file_that_cannot_be_read_is_reported_and_the_others_are_kept(heart: Heart, tmp_path: Path):
    report = import_history(heart, [tmp_path / "gone.md", written(tmp_path / "good.md", "- Tea.")])

    assert (report.stored, [note.file for note in report.bad]) == (1, ["gone.md"])
    assert "can't read" in report.bad[0].message


def test_a_heading_keeps_the_mark_of_a_name_and_loses_those_that_close_it(
    heart: Heart, owner: psycopg.Connection, tmp_path: Path
):
    import_history(heart, [written(tmp_path / "a.md", "# Boats ##", "- They float.", "# C#", "- It compiles.")])

    assert facts_of(owner, "content, subject") == [("It compiles.", "C#"), ("They float.", "Boats")]


@pytest.mark.parametrize(
    "text",
    ["|-" * 1_000 + "x", "# " + "#" * 30_000 + "x\n- deep", "one two three four\n" * 10_000, "<!-- " * 50_000],
    ids=["rule", "heading", "paragraph", "comment"],
)
def test_a_page_is_read_in_time_in_proportion_to_its_length(text: str):
    began_at = process_time()
    found = list(notes_of(text, Page({})))

    assert len(found) == 1
    assert process_time() - began_at < 1.5  # seconds; far more where a part of it is quadratic


@pytest.mark.parametrize(
    ("line", "content"),
    [
        ("- The entry `src/__init__.py` sets `__version__`.", "The entry `src/__init__.py` sets `__version__`."),
        ("- Ask `[[ -f x ]]`, never [ours](x.md).", "Ask `[[ -f x ]]`, never ours."),
        ("- We use ==Kafka== for events, `==` is kept ^block1", "We use Kafka for events, `==` is kept"),
        ("- The kick-off was in May.[^1] %% ask Ida %%", "The kick-off was in May."),
        ("> [!warning] Ship before May", "Ship before May"),
        ("- Role:: lead of std::vector", "Role: lead of std::vector"),
        ("- It takes 50%% of x and 20%% of y", "It takes 50%% of x and 20%% of y"),
        ("- Read src/__init__.py, then __main__.py.", "Read src/__init__.py, then __main__.py."),
        ("- The name is in __name__ there.", "The name is in __name__ there."),
        ("- Format src/*.py and tests/*.py.", "Format src/*.py and tests/*.py."),
        ("- **Use `a*b*c` here**, *not* __that one__.", "Use `a*b*c` here, not that one."),
        ("- Quote ``a `*b*` c`` [as `d`](x).", "Quote ``a `*b*` c`` as `d`."),
    ],
)
def test_names_of_code_stay_as_they_are_written(line: str, content: str):
    assert [note.text for note in notes_of(line, Page({}))] == [content]


def test_an_index_a_form_and_what_nobody_filled_in_are_read_as_such(
    heart: Heart, owner: psycopg.Connection, tmp_path: Path
):
    page = (
        "# Memory\n\n- [release.md](release.md) \u2014 Releases are cut on Tuesdays\n"
        "- [The lock](lock.md) \u2014 is held for a minute\n- Decision style:\n- Interests: (learned in time)\n\n"
        "First name: Ada\nLast name: ?\nOccupation: Pilot, of gliders\n\nAda said\nit: soon.\n"
    )
    (tmp_path / "MEMORY.md").write_text(page, "utf-8")

    report = import_history(heart, [tmp_path / "MEMORY.md"])

    assert [content for (content,) in facts_of(owner, "content")] == [
        "Ada said it: soon.",
        "First name: Ada",
        "Occupation: Pilot, of gliders",
        "Releases are cut on Tuesdays",
        "The lock \u2014 is held for a minute",
    ]
    assert dict(report.skipped) == {
        "lines that end with a colon, before nothing that is read": 1,
        "places that nobody filled in": 2,
    }


def test_what_leads_to_a_list_is_told_with_each_of_its_items():
    page = (
        "React when:\n- mail from Ada comes in\n- at night:\n  - the pager rings\n\nTell Ben. Always:\n\nNobody else."
    )

    assert [note.text for note in notes_of(page, Page({}))] == [
        "React when: mail from Ada comes in",
        "React when: at night: the pager rings",
        "Tell Ben.",
        "Nobody else.",
    ]


@pytest.mark.parametrize(
    ("page", "contents"),
    [
        ("Production URLs:\n\n```\nhttps://example.org\n```\n\nLast.", ["Last."]),
        ("Failed Approaches:\n- Don't try again:\n  ```\n  make fast\n  ```\n- Wait", ["Failed Approaches: Wait"]),
        ("**Automated tests (1100+ tests):**\n\n| a |\n|---|\n| one |", ["a: one"]),
        ("It listens on port 9000. Try it:\n\n```\ncurl\n```", ["It listens on port 9000."]),
        ("Her ways:\n\n# Boats\n\n<p>Boats float:</p>\n\n- They float: all of them.", ["They float: all of them."]),
    ],
)
def test_a_line_that_leads_to_nothing_that_is_read_is_no_fact(page: str, contents: list[str]):
    assert [note.text for note in notes_of(page, Page({}))] == contents


@pytest.mark.parametrize(
    ("page", "contents"),
    [
        ("- Write `<!--` before it.\n- Second. -->", ["Write `<!--` before it.", "Second. -->"]),
        ("- Begin it with <!-- so.\n- Second.", ["Begin it with <!-- so.", "Second."]),
        ("- Begin it with <!-- so.\n\n```\na --> b\n```\n\nLast.", ["Begin it with <!-- so.", "Last."]),
        ("```html\n<!-- open\n```\n\nLast. -->", ["Last. -->"]),
        ("First <!-- one --> and <!-- two\nlines -->second.", ["First  and second."]),
        ("<!-- a\n\n- draft\n-->\nLast.", ["Last."]),
        ("<!--\n```\n-->\nLast.", ["Last."]),
        ("```make check``` tests.\n\n- Last.", ["```make check``` tests.", "Last."]),
        ("- ```sh\n  make\n  ```\n- Last.", ["Last."]),
        ("<details>\n<summary>More</summary>\nIt floats.\n</details>", ["More It floats."]),
        ("Boats\n=====\n\nThey float.", ["They float."]),
        ("| a | b |\n|---|---|\n| 1 | 2 |\n\n| c |  |\n|---|---|\n| 3 | x\\|y |", ["a: 1, b: 2", "c: 3, x|y"]),
    ],
)
def test_only_comments_and_blocks_of_code_are_passed_over(page: str, contents: list[str]):
    assert [note.text for note in notes_of(page, Page({}))] == contents


# --- mem0 ---

MEMORIES = (
    {
        "id": "m-1", "memory": "Ada prefers trains.", "user_id": "ada", "hash": "x", "metadata": {"category": "other"},
        "categories": ["travel", "habits"], "created_at": "2026-05-04T02:00:00+02:00", "updated_at": None,
    },
    {"id": "m-2", "memory": "Ada moved to Faro.", "created_at": "2026-05-01T00:00:00Z",
     "updated_at": "2026-05-05T00:00:00Z", "metadata": None},
    {"id": "m-3", "memory": "Ada's wifi password is hunter2hunter2", "created_at": "2026-05-01T00:00:00Z"},
    {"id": "m-4", "memory": ""},
    "nonsense",
)  # fmt: skip


def test_memories_keep_their_user_categories_and_date(heart: Heart, owner: psycopg.Connection, tmp_path: Path):
    path = written(tmp_path / "mem0.json", json.dumps({"relations": [], "results": MEMORIES, "next": None}))

    report = import_history(heart, [path])

    assert facts_of(owner, "content, learned_at, user_id, category, tags, source") == [
        ("Ada prefers trains.", MAY, "ada", "travel", ["travel", "habits"], "mem0:m-1"),
        ("Ada moved to Faro.", datetime(2026, 5, 5, tzinfo=UTC), None, None, [], "mem0:m-2"),
    ]
    assert [note.place for note in report.bad] == ["memory 4", "memory 5"]
    assert dict(report.skipped) == {"facts that look as if they hold a credential": 1}
    assert [found.content for found in heart.recall("trains", user_id="ada")] == [
        "Ada prefers trains.",
        "Ada moved to Faro.",
    ]


def test_memories_are_read_as_typescript_writes_them_and_as_points_of_a_vector_store(
    heart: Heart, owner: psycopg.Connection, tmp_path: Path
):
    dates = {"createdAt": "2026-05-01T00:00:00Z", "updatedAt": "2026-05-04T00:00:00Z"}
    named = {"id": "m-1", "memory": "Ada rows.", "userID": "ada", "runId": "r-1", "metadata": {}, **dates}
    payload = {"data": "Ada swims.", "hash": "x", "user_id": "ada", "created_at": "2026-05-04T00:00:00Z"}
    written(tmp_path / "a.json", json.dumps({"userId": "ada", "results": [named]}))
    written(tmp_path / "b.json", json.dumps([{"id": "p-1", "payload": payload, "vector": None}]))

    report = import_history(heart, [tmp_path])

    assert report.bad == []
    assert facts_of(owner, "content, learned_at, user_id, tags, source") == [
        ("Ada rows.", MAY, "ada", ["run_id:r-1"], "mem0:m-1"),
        ("Ada swims.", MAY, "ada", [], "mem0:p-1"),
    ]


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("depends_on", "depends on"),
        ("dependsOn", "depends on"),
        ("runsOnAWS", "runs on AWS"),
        ("usesHTTPServer", "uses HTTPServer"),
        ("isA", "is a"),
        ("OWNS_SHARES_OF", "OWNS SHARES OF"),
        ("works at", "works at"),
    ],
)
def test_a_relation_is_told_in_words_and_an_abbreviation_stays_one(kind: str, said: str):
    assert relation_in_words(kind) == said


def test_a_list_and_lines_are_the_same_history_and_an_updated_memory_is_another_fact(heart: Heart, tmp_path: Path):
    listed = import_history(heart, [written(tmp_path / "list.json", json.dumps(MEMORIES[:2]))])
    moved = {**MEMORIES[1], "memory": "Ada moved to Porto.", "updated_at": "2026-06-01T00:00:00Z"}
    lines = import_history(heart, [written(tmp_path / "lines.jsonl", MEMORIES[0], moved)])

    assert (listed.stored, lines.source, lines.stored, lines.already_known, lines.bad) == (2, "mem0", 1, 1, [])
