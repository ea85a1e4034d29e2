"""What no person sees in a memory, no model reads: wherever texts of memories go before one."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from mcp import Client
from mcp_visits import door_to, visit

from nous_online.core.validation import visible
from nous_online.heart import Heart
from nous_online.interfaces.adapters.memory_tool import MemoryFiles
from nous_online.language.claude.model_writer import EpisodeRecord, write_request
from nous_online.language.claude.pair_prompt import pairs_request
from nous_online.language.pairs.judging import JudgedStatement, Pair

HIDDEN = "\U000e0041\U000e0042\u202e\u200b\u2066\u00ad\ufeff"
TEXT = f"Deploys go{HIDDEN} through blue/green"
SEEN = "Deploys go through blue/green"

Shown = Callable[[Heart], str]


def told(heart: Heart, tool: str, **arguments: Any) -> str:
    """Return all that a tool answers."""

    async def story(client: Client) -> str:
        answer = await client.call_tool(tool, arguments)
        return answer.content[0].text + json.dumps(answer.structured_content, ensure_ascii=False)

    return visit(door_to(heart), story)


def file_of(heart: Heart) -> str:
    files = MemoryFiles(heart.agent)
    files.create(f"/memories/{HIDDEN}notes.txt", TEXT)
    return files.view("/memories") + files.view(f"/memories/{HIDDEN}notes.txt")


def censor_of(heart: Heart) -> str:
    heart.add_censor(f"rm -rf{HIDDEN} /srv", reason=TEXT)
    return told(heart, "check_action", action="rm -rf /srv")


def focus_of(heart: Heart) -> str:
    return told(heart, "focus", task=TEXT)


WITHIN = {
    "a tool that recalls": lambda heart: told(heart, "recall", query=SEEN),
    "a tool that learns": lambda heart: told(heart, "remember", content=f"{SEEN} since May"),
    "a tool that fails": lambda heart: told(heart, "forget", memory_id=f"{SEEN}{HIDDEN}", reason="x"),
    "a tool that assembles": lambda heart: told(heart, "context", query=SEEN),
    "a tool that warns": censor_of,
    "a tool that shows the session": focus_of,
    "a context": lambda heart: heart.assemble_context(query=SEEN).text,
    "a file of the memory tool": file_of,
}


@pytest.mark.parametrize("where", WITHIN)
def test_no_model_reads_what_nobody_sees(heart: Heart, where: str) -> None:
    heart.learn(TEXT)

    shown = WITHIN[where](heart)

    assert SEEN in shown
    assert visible(shown) == shown


def test_no_judge_and_no_writer_reads_what_nobody_sees() -> None:
    pair = Pair(JudgedStatement(TEXT, TEXT), JudgedStatement(TEXT, TEXT), 0.9)
    record = EpisodeRecord(f"Ana: {TEXT}", TEXT, None, (TEXT,), (TEXT,))

    requests = [pairs_request([pair], model="m"), write_request(record, model="m")]

    for request in requests:
        said = request["messages"][0]["content"]
        assert said.count(SEEN) >= 3
        assert not [each for each in HIDDEN if each in said or json.dumps(each)[1:-1] in said]
