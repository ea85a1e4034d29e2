"""What the local server answers by itself: the offline judge on a pair, the offline writer on an episode."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

from benchmarks.anthropic_server.refusals import blocks
from nous_online.language.claude.replies import Request
from nous_online.language.minilm import LocalMiniLM, Vectors
from nous_online.language.pairs.judging import JudgedStatement, Judgement, OfflineJudge, Pair
from nous_online.language.writing.writer import Draft, EndedEpisode, OfflineWriter

LONGEST_REASON = 200
OTHERWISE = "I am a program on this machine and have no opinion."


def answer(request: Request) -> str:
    """Return an honest answer in the form that was asked for."""
    asked = properties(request)
    if "verdicts" in asked:
        return json.dumps({"verdicts": [verdict_on(pair) for pair in pairs_in(request)]})
    if {"summary", "facts"} <= set(asked):
        return json.dumps(draft_of(request, asked))
    return OTHERWISE


def properties(request: Request) -> Mapping[str, Any]:
    """Return the properties of the schema a request asks for; none where it asks for plain text."""
    wanted = (request.get("output_config") or {}).get("format") or {}
    return wanted.get("schema", {}).get("properties", {})


@dataclass(frozen=True)
class ShownPair:
    """One pair of a question, under its number, with both statements as they are shown."""

    number: int
    a: Mapping[str, Any]
    b: Mapping[str, Any]


def pairs_in(request: Request) -> list[ShownPair]:
    """Return the pairs a request asks about, in the order they are shown; none where it asks for something else."""
    asked = next((each for each in objects_in(request) if {"a", "b"} <= set(each)), None)
    if asked is None:
        return []
    return [ShownPair(each["number"], each, asked["b"]) for each in asked["a"]]


def verdict_on(pair: ShownPair) -> dict[str, Any]:
    """Return what the offline judge says of a pair, in the form that is asked for."""
    judged = judge_pair(statement(pair.a), statement(pair.b))
    said = {name: getattr(judged, name) for name in ("slot", "later", "verdict")}
    said |= {"confidence": round(judged.confidence, 3), "reason": judged.reason[:LONGEST_REASON]}
    return {"number": pair.number, **said}


def judge_pair(a: JudgedStatement, b: JudgedStatement) -> Judgement:
    """Ask the offline judge, with the cosine of the vectors an agent has by default."""
    similarity = float(vector(a.text) @ vector(b.text))
    return OfflineJudge().judge([Pair(a, b, similarity)])[0]


def draft_of(request: Request, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the offline writer makes of the episode in a request, under the keys that were asked for."""
    record = next((each for each in objects_in(request) if "transcript" in each), {"transcript": "Nothing was said."})
    known: dict[str, Any] = {
        name: record[name] for name in ("title", "outcome", "participants", "lessons") if name in record
    }
    draft = OfflineWriter(embedder()).write(EndedEpisode(record["transcript"], **known))
    categories = asked["facts"]["items"]["properties"]["category"]["enum"]
    said = {
        **{name: getattr(draft, name) for name in ("title", "summary", "index_word")},
        "line": draft.compressed,
        "facts": facts_of(draft, categories),
        "censors": [
            {"trigger": each.trigger, "reason": each.reason, "evidence": each.reason} for each in draft.censors
        ],
    }
    return {key: said.get(key) for key in asked}


def facts_of(draft: Draft, categories: Sequence[str]) -> list[dict[str, str]]:
    """Return the facts of a draft; a category the form does not know becomes its last one."""
    return [
        {
            "content": each.content,
            "subject": each.subject or "",
            "category": each.category if each.category and each.category in categories else categories[-1],
            "evidence": each.evidence,
        }
        for each in draft.facts
    ]


def statement(shown: Mapping[str, Any]) -> JudgedStatement:
    """Return a statement as a request shows it."""
    stated_at = shown.get("stated_at")
    return JudgedStatement(shown["text"], shown.get("subject"), stated_at and datetime.fromisoformat(stated_at))


def objects_in(request: Request) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects in the last message of a request."""
    text = "\n".join(block["text"] for block in blocks({"messages": request["messages"][-1:]}))
    decoder, start = json.JSONDecoder(), text.find("{")
    while start >= 0:
        try:
            found, end = decoder.raw_decode(text, start)
        except ValueError:
            end = start + 1
        else:
            yield found
        start = text.find("{", end)


@cache
def embedder() -> LocalMiniLM:
    return LocalMiniLM(threads=1)


@cache
def vector(text: str) -> Vectors:
    return embedder().embed_query(text)
