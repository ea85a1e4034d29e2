"""Hostile texts through every entrance, at a quarter of its limit and at all of it: time grows no faster than the text.

Counted is the CPU time of this process, in which all of a call happens but what the server does.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from anthropic.lib.tools import ToolError
from conftest import ScriptedWriter, WordEmbedder
from hostile_texts import cpu_seconds, filled
from import_files import written
from turns import in_turn

from nous_online.core.errors import InvalidInput
from nous_online.core.policy import LearnPolicy
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.interfaces.adapters.memory_tool import memory_tool
from nous_online.interfaces.imports.importing import import_history
from nous_online.language.claude.model_writer import record_of
from nous_online.language.minilm import Vectors
from nous_online.language.pairs.judging import OfflineJudge
from nous_online.language.writing.writer import EndedEpisode, levels_by_words

KIB = 1024
RUNS = (
    ".",
    ":",
    "\n",
    " a",
    "A. ",
    "Mr. ",
    "1.",
    "@",
    "[",
    "* ",
    "' ",
    '"',
    "`a",
    "# a\n",
    "a/",
    "password ",
    "never ",
    "。",
)
EVERY = 9
"""Which of them an entrance is tried with: every ninth, by turns, unless more examples are asked for."""
FLOOR_S = 0.05
"""Less says nothing about how time grows."""
MOST_GROWTH = 9.0
"""Four times the text: linear time grows by 4, quadratic by 16."""
LIMIT_S = 3.0
"""For one text; one that takes half of it is too slow, whatever its quarter takes."""


class SameEverywhere(WordEmbedder):
    """An embedder to whom all texts are alike, so that each is compared with what is known."""

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        return np.tile(np.eye(1, 64, dtype=np.float32), (len(texts), 1))


@pytest.fixture
def trusting(database: Database) -> Heart:
    heart = Heart.open(
        "aria",
        database=database,
        embedder=SameEverywhere(),
        judge=OfflineJudge(),
        writer=ScriptedWriter(),
        policy=LearnPolicy(neighbour_count=2),
        deadline_s=60,
        works_in_background=False,
    )
    heart.start_episode("Tea")
    heart.learn("Backups are kept for 30 days", subject="Backups")
    heart.add_censor("deploy on a Friday *", "nobody is there")
    heart.add_censor("drop * table", "it was the wrong one", is_literal=True)
    return heart


def imported(heart: Heart, path: Path, *records: object, name: str = "some.jsonl") -> None:
    import_history(heart, [written(path / name, *records)])


def chat(text: str) -> list[dict[str, Any]]:
    said = {"author": {"role": "user"}, "create_time": 1.7e9, "content": {"content_type": "text", "parts": [text]}}
    return [{
        "id": "c", "title": "Tea", "create_time": 1.7e9, "update_time": 1.7e9, "current_node": "m",
        "mapping": {"m": {"id": "m", "parent": None, "children": [], "message": {"id": "m", **said}}},
    }]  # fmt: skip


def session(text: str) -> dict[str, Any]:
    return {
        "type": "user", "uuid": "u", "parentUuid": None, "timestamp": "2026-05-01T09:00:00Z", "sessionId": "s",
        "cwd": "/srv", "message": {"role": "user", "content": text},
    }  # fmt: skip


Entrance = Callable[[Heart, str, Path], object]
ENTRANCES: dict[str, tuple[int, Entrance]] = {
    "learn": (32 * KIB, lambda heart, text, _: heart.learn(text)),
    "learn, context": (64 * KIB, lambda heart, text, _: heart.learn("Tea helps", context=text)),
    "learn, subject": (500, lambda heart, text, _: heart.learn("Tea helps", subject=text)),
    "recall": (8 * KIB, lambda heart, text, _: heart.recall(text)),
    "record_episode": (256 * KIB, lambda heart, text, _: heart.record_episode(text)),
    "record_episode, summary": (20 * KIB - 500, lambda heart, text, _: heart.record_episode(summary=text)),
    "store_procedure": (4 * KIB, lambda heart, text, _: heart.store_procedure("Brew tea", core_patterns=[text] * 4)),
    "add_censor": (
        4 * KIB,
        lambda heart, text, _: heart.add_censor(f"{text[:4000]} *", f"{text[:4000]}", severity="warn"),
    ),
    "check_censors": (32 * KIB, lambda heart, text, _: heart.check_censors(text)),
    "assemble_context": (8 * KIB, lambda heart, text, _: heart.assemble_context(query=text, signals={"task": text})),
    "recent errors": (8 * KIB, lambda heart, text, _: heart.predict(signals={"recent_errors": [text] * 4})),
    "record_step": (500, lambda heart, text, _: heart.record_step(text[:80], detail=text[:400])),
    "record_decision": (2 * KIB, lambda heart, text, _: heart.record_decision(text[:400], rationale=text)),
    "memory tool": (
        32 * KIB,
        lambda heart, text, _: memory_tool(heart).call(
            {"command": "create", "path": f"/memories/{time.monotonic_ns()}", "file_text": text}
        ),
    ),
    "import of lines": (32 * KIB, lambda heart, text, path: imported(heart, path, {"content": text})),
    "import of a dialogue": (
        48 * KIB,
        lambda heart, text, path: imported(heart, path, {"turns": [{"role": "user", "content": text}]}),
    ),
    "import of an episode": (
        256 * KIB,
        lambda heart, text, path: imported(heart, path, {"kind": "episode", "detail": text}),
    ),
    "import of sessions": (64 * KIB, lambda heart, text, path: imported(heart, path, session(text))),
    "import of conversations": (
        64 * KIB,
        lambda heart, text, path: imported(heart, path, json.dumps(chat(text)), name="conversations.json"),
    ),
    "import of memories": (
        32 * KIB,
        lambda heart, text, path: imported(
            heart,
            path,
            json.dumps({"results": [{"id": "m", "memory": text, "created_at": "2026-05-01"}]}),
            name="mem0.json",
        ),
    ),
    "import of notes": (48 * KIB, lambda heart, text, path: imported(heart, path, text, name="notes.md")),
    "the offline writer": (
        48 * KIB,
        lambda _heart, text, _path: levels_by_words(EndedEpisode(text, lessons=(text[:8000],))),
    ),
    "the writer that asks Claude": (48 * KIB, lambda _heart, text, _path: record_of(EndedEpisode(text))),
}


def took_s(heart: Heart, entrance: Entrance, text: str, path: Path) -> float:
    """Return the CPU time of one call; a text that is refused took its time, too."""
    began = time.process_time()
    with suppress(InvalidInput, ToolError):
        cpu_seconds(lambda: entrance(heart, text, path), limit_s=LIMIT_S)
    return time.process_time() - began


@pytest.mark.parametrize("name", ENTRANCES)
def test_an_entrance_takes_linear_time_for_hostile_text(trusting: Heart, tmp_path: Path, name: str) -> None:
    most, entrance = ENTRANCES[name]

    def took(run: str, size: int) -> float:
        return took_s(trusting, entrance, filled(run, size - 8, end="x"), tmp_path)

    def is_slow(run: str) -> bool:
        whole = took(run, most)
        return whole > FLOOR_S and (whole > LIMIT_S / 2 or whole > MOST_GROWTH * took(run, most // 4))

    place = list(ENTRANCES).index(name)
    slow = [run for run in in_turn(RUNS, of=EVERY, place=place) if is_slow(run) and is_slow(run)]

    assert slow == []
