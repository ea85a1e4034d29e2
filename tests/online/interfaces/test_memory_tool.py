"""Anthropic's memory tool over the heart: worded as the SDK's own tool on files, and nothing is ever lost."""

from __future__ import annotations

import re
import threading
from contextlib import closing
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import anyio
import pytest
from anthropic import Anthropic
from anthropic.lib.tools import ToolError
from anthropic.tools import BetaLocalFilesystemMemoryTool
from conftest import WordEmbedder
from night_runs import plan_of, remember
from scripted_model import model, say, use

from nous_online.core.errors import InvalidInput, Refused
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.interfaces.adapters.memory_tool import PLACE, async_memory_tool, memory_tool, size_of
from nous_online.language.pairs.judging import OfflineJudge, Verdict

DIRECTORY_SIZE = re.compile(r"^[\d.]+[BKMG]\t(/\S*/|/memories|/memories/team)$", re.MULTILINE)
NOTES = "/memories/notes.md"


def tried(tool: Any, command: str, **given: Any) -> str:
    """Return what a command answers, or how it is refused; sizes of directories, which differ, left out."""
    try:
        answer = tool.call({"command": command, **given})
    except ToolError as error:
        answer = f"refused: {error}"
    return DIRECTORY_SIZE.sub(r"\1", str(answer))


STORIES = {
    "an empty place": [
        ("view", {"path": "/memories"}),
        ("view", {"path": NOTES}),
        ("str_replace", {"path": NOTES, "old_str": "a", "new_str": "b"}),
        ("insert", {"path": NOTES, "insert_line": 0, "insert_text": "a"}),
        ("delete", {"path": NOTES}),
        ("rename", {"old_path": NOTES, "new_path": "/memories/other.md"}),
    ],
    "the root": [
        ("delete", {"path": "/memories"}),
        ("rename", {"old_path": "/memories", "new_path": "/memories/a"}),
        ("str_replace", {"path": "/memories", "old_str": "a", "new_str": "b"}),
        ("insert", {"path": "/memories", "insert_line": 0, "insert_text": "a"}),
        ("create", {"path": "/memories", "file_text": "x"}),
    ],
    "paths that lead out": [
        (command, {"path": path, **more})
        for path in ("/etc/passwd", "/memories/../../etc/passwd", "/memories/a/../../b", "memories/x")
        for command, more in (("view", {}), ("create", {"file_text": "x"}), ("delete", {}))
    ],
    "reading": [
        ("create", {"path": NOTES, "file_text": "one\ntwo\nthree\r\n\nfive"}),
        ("create", {"path": NOTES, "file_text": "again"}),
        ("view", {"path": NOTES}),
        ("view", {"path": NOTES, "view_range": [2, 3]}),
        ("view", {"path": NOTES, "view_range": [3, -1]}),
        ("view", {"path": NOTES, "view_range": [0, 99]}),
        ("view", {"path": NOTES, "view_range": [4]}),
        ("view", {"path": "/memories"}),
        ("view", {"path": "/memories/a/../notes.md"}),
    ],
    "replacing": [
        ("create", {"path": NOTES, "file_text": "tea\ncoffee\ntea\nmilk\nsugar\nlemon\n"}),
        ("str_replace", {"path": NOTES, "old_str": "tea", "new_str": "mate"}),
        ("str_replace", {"path": NOTES, "old_str": "Tea", "new_str": "mate"}),
        ("str_replace", {"path": NOTES, "old_str": "milk", "new_str": "oat\nmilk"}),
        ("str_replace", {"path": NOTES, "old_str": "coffee\ntea", "new_str": ""}),
        ("view", {"path": NOTES}),
    ],
    "inserting": [
        ("create", {"path": NOTES, "file_text": "one\ntwo"}),
        ("insert", {"path": NOTES, "insert_line": 3, "insert_text": "x"}),
        ("insert", {"path": NOTES, "insert_line": -1, "insert_text": "x"}),
        ("insert", {"path": NOTES, "insert_line": 2, "insert_text": "three\n"}),
        ("insert", {"path": NOTES, "insert_line": 0, "insert_text": "zero\n\n"}),
        ("view", {"path": NOTES}),
        ("create", {"path": "/memories/empty.md", "file_text": ""}),
        ("view", {"path": "/memories/empty.md"}),
        ("insert", {"path": "/memories/empty.md", "insert_line": 0, "insert_text": "no longer"}),
        ("view", {"path": "/memories/empty.md"}),
    ],
    "directories": [
        ("create", {"path": "/memories/team/ada.md", "file_text": "likes tea"}),
        ("create", {"path": "/memories/team/deep/down/below.md", "file_text": "x" * 1536}),
        ("create", {"path": "/memories/team/.hidden", "file_text": "x"}),
        ("create", {"path": "/memories/z.md", "file_text": ""}),
        ("view", {"path": "/memories"}),
        ("view", {"path": "/memories/team"}),
        ("rename", {"old_path": "/memories/team", "new_path": "/memories/z.md"}),
        ("rename", {"old_path": "/memories/team", "new_path": "/memories/crew"}),
        ("view", {"path": "/memories/team"}),
        ("view", {"path": "/memories/crew/ada.md"}),
        ("str_replace", {"path": "/memories/crew", "old_str": "a", "new_str": "b"}),
        ("delete", {"path": "/memories/crew/deep"}),
        ("view", {"path": "/memories"}),
        ("delete", {"path": "/memories/crew"}),
        ("view", {"path": "/memories"}),
    ],
}


@pytest.mark.parametrize("story", STORIES)
def test_answers_are_worded_as_those_of_the_sdks_own_tool(heart, tmp_path, story):
    ours, theirs = memory_tool(heart), BetaLocalFilesystemMemoryTool(str(tmp_path))

    for command, given in STORIES[story]:
        assert tried(ours, command, **given) == tried(theirs, command, **given), (command, given)


def test_nothing_that_was_written_is_lost(heart, owner):
    tool = memory_tool(heart)
    tool.call({"command": "create", "path": NOTES, "file_text": "tea at nine"})
    tool.call({"command": "str_replace", "path": NOTES, "old_str": "nine", "new_str": "ten"})
    tool.call({"command": "rename", "old_path": NOTES, "new_path": "/memories/tea.md"})
    tool.call({"command": "delete", "path": "/memories/tea.md"})

    rows = owner.execute("select id, content, subject, state from heart.facts order by learned_at").fetchall()
    assert [row[1:] for row in rows] == [
        ("tea at nine", NOTES, "superseded"),
        ("tea at ten", NOTES, "superseded"),
        ("tea at ten", "/memories/tea.md", "archived"),
    ]
    heart.undo(rows[2][0], reason="it was wanted after all")
    assert tried(tool, "view", path="/memories/tea.md").endswith("     1\ttea at ten")


def test_a_file_is_not_brought_back_while_another_has_its_name(heart, owner):
    tool = memory_tool(heart)
    tool.call({"command": "create", "path": NOTES, "file_text": "tea at nine"})
    tool.call({"command": "delete", "path": NOTES})
    tool.call({"command": "create", "path": NOTES, "file_text": "tea at ten"})
    ((deleted,),) = owner.execute("select id from heart.facts where state = 'archived'").fetchall()

    with pytest.raises(Refused, match=re.escape(f"document '{NOTES}' was written anew since; remove or rename")):
        heart.undo(deleted, reason="it was wanted after all")

    assert tried(tool, "view", path=NOTES).endswith("\ttea at ten")
    tool.call({"command": "rename", "old_path": NOTES, "new_path": "/memories/ten.md"})
    heart.undo(deleted, reason="it was wanted after all")
    assert tried(tool, "view", path=NOTES).endswith("\ttea at nine")


def test_files_are_recalled_by_their_project_and_left_alone_by_learning(heart):
    memory_tool(heart).call({"command": "create", "path": NOTES, "file_text": "tea at nine"})

    learned = heart.learn("tea at nine")

    assert learned.action == "stored"
    assert [each.content for each in heart.recall("tea")] == ["tea at nine"]
    named = heart.recall("tea", project_id=PLACE)
    assert {each.memory.subject for each in named} == {None, NOTES}


def test_what_is_learned_beside_files_replaces_and_repeats_none(heart, judge):
    tool, files = memory_tool(heart), {NOTES: "The staging database is Postgres 17.", "/memories/b": "Ada likes tea."}
    newer = "The staging database is Postgres 18."
    judge.verdicts |= {(files[NOTES], newer): Verdict.UPDATES}
    for path, text in files.items():
        tool.call({"command": "create", "path": path, "file_text": text})

    learned = [heart.learn(text, project_id=PLACE).action for text in (newer, files["/memories/b"])]

    assert learned == ["stored", "stored"]
    for path, text in files.items():
        assert tried(tool, "view", path=path).endswith(f"\t{text}")


def test_nobody_learns_a_fact_in_the_category_of_documents(heart):
    for learn in (heart.learn, lambda text, **details: heart.learn_deferred([(text, details)])):
        with pytest.raises(InvalidInput, match="category 'document' is kept for the files and values of adapters"):
            learn("not json", category="document", project_id="langgraph")


def test_a_night_merges_what_was_said_twice_but_no_files(heart, database_url, tmp_path):
    tool = memory_tool(heart)
    heart.learn("Ada likes tea at nine", project_id=PLACE)
    for path in (NOTES, "/memories/copy.md"):
        tool.call({"command": "create", "path": path, "file_text": "Ada likes tea at nine"})
    remember(heart, "Ben likes coffee at ten", "Ben likes coffee at ten")

    with closing(Database(database_url, role="nous_night")) as database:
        plan = plan_of(database, tmp_path, OfflineJudge(), night=datetime.now(UTC).date())

    (merge,) = plan.proposals
    said = {heart.get(UUID(str(target))).content for target in merge.targets}
    assert said == {"Ben likes coffee at ten"}


def test_a_file_too_large_is_refused_and_what_was_there_stays(heart):
    tool = memory_tool(heart)
    tool.call({"command": "create", "path": NOTES, "file_text": "short"})

    answer = tried(tool, "str_replace", path=NOTES, old_str="short", new_str="long " * 10_000)

    assert answer.startswith("refused: content has 50,000 bytes, the limit is 32,768")
    assert tried(tool, "view", path=NOTES).endswith("\tshort")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"command": "view"}, "path: "),
        ({"command": "view", "path": 7}, "path: "),
        ({"command": "insert", "path": NOTES, "insert_line": "x", "insert_text": "a"}, "insert_line: "),
        ({"command": "create", "path": "/memories/a\x00b", "file_text": "a"}, "NUL"),
        ({"command": "create", "path": f"/memories/{'a' * 500}", "file_text": "a"}, "the limit is 500"),
        ({"command": "create", "path": f"{NOTES}/below.md", "file_text": "a"}, f"The path {NOTES} is a file"),
        ({"command": "rename", "old_path": "/memories/d", "new_path": "/memories/d/e"}, "into itself"),
    ],
)
def test_what_a_model_got_wrong_is_told_as_a_tool_error(heart, given, words):
    tool = memory_tool(heart)
    tool.call({"command": "create", "path": NOTES, "file_text": "a"})
    tool.call({"command": "create", "path": "/memories/d/x.md", "file_text": "a"})

    with pytest.raises(ToolError) as caught:
        tool.call(given)

    assert words in str(caught.value)


def test_edits_of_one_file_at_once_are_all_in_it(database):
    heart = Heart.open("aria", database=database, embedder=WordEmbedder(), works_in_background=False)
    tool = memory_tool(heart)
    tool.call({"command": "create", "path": NOTES, "file_text": "begin"})

    def insert(line: int) -> None:
        tool.call({"command": "insert", "path": NOTES, "insert_line": 0, "insert_text": f"line {line}"})

    threads = [threading.Thread(target=insert, args=(line,)) for line in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    lines = tried(tool, "view", path=NOTES)
    assert all(f"line {line}" in lines for line in range(4))


def test_clearing_archives_every_file(heart):
    tool = memory_tool(heart)
    tool.call({"command": "create", "path": NOTES, "file_text": "a"})

    assert tool.clear_all_memory() == "All memory cleared"
    assert tried(tool, "view", path=NOTES).startswith("refused: ")
    assert heart.count() == {"archived": 1}


def test_an_asynchronous_client_has_the_same_tool(heart):
    tool = async_memory_tool(heart)

    async def story() -> str:
        await tool.call({"command": "create", "path": NOTES, "file_text": "tea"})
        return str(await tool.call({"command": "view", "path": NOTES}))

    assert anyio.run(story).endswith("     1\ttea")


def test_sizes_are_told_as_people_read_them():
    assert [size_of(count) for count in (0, 12, 1024, 1536, 2**20, 2**40)] == ["0B", "12B", "1K", "1.5K", "1M", "1024G"]


def test_the_sdks_tool_runner_works_with_it_and_reads_its_refusals(heart):
    turns = (
        use("memory", command="view", path="/memories/none"),
        use("memory", command="create", path=NOTES, file_text="Ada likes tea"),
        say("Noted."),
    )

    with model(*turns) as (url, asked), Anthropic(base_url=url, api_key="test", max_retries=0) as client:
        runner = client.beta.messages.tool_runner(
            model="claude-sonnet-5-5",
            max_tokens=500,
            messages=[{"role": "user", "content": "Remember that Ada likes tea"}],
            tools=[memory_tool(heart)],
        )
        last = runner.until_done()

    assert last.content[0].text == "Noted."
    assert asked[0]["tools"] == [{"type": "memory_20250818", "name": "memory"}]
    results = [request["messages"][-1]["content"][0] for request in asked[1:]]
    assert [bool(block.get("is_error")) for block in results] == [True, False]
    assert heart.recall("tea", project_id=PLACE)[0].content == "Ada likes tea"
