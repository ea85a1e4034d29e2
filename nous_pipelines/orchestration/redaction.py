"""Taking an agent's name and words out of texts and JSON that quote it: pure, and blind to everything else."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Any
from uuid import UUID

from nous_pipelines.reports.markdown_report import plain

ERASED = "[erased]"
AGENT_KEYS = frozenset({"agent_id", "agent_ids", "agents", "nous/agents"})
"""Under these keys stands a name, a list of names, or names separated by commas."""
MAPS_BY_AGENT = frozenset({"eligible", "proposed", "left", "agents", "late", "unseen"})
"""Under these keys stands an object with an entry for each agent: counts of a phase, policies of a plan."""
LONG = 12
"""From this many characters on a quotation is found anywhere; a shorter one must stand between word boundaries."""
SHORTEST = 3
NEVER = r"(?!)"
"""A pattern that fits nothing."""


class Redaction:
    """What of one agent is not to be read any more: its name where names stand, and what is quoted of it.

    With `ids` it is a part of the agent: the name stays, and what is about one of the ids goes.
    """

    def __init__(self, agent_id: str, quotations: Collection[str], *, ids: Collection[str] | None = None) -> None:
        name = f"(?:{'|'.join(re.escape(form) for form in forms(agent_id))})" if ids is None else NEVER
        self._agent_id = agent_id
        self._part = None if ids is None else frozenset(ids)
        quotations = {*quotations, *(ids or ())}
        self._in_list = re.compile(rf"(?<![^,\s]){name}(?![^,\s])")
        self._in_prose = re.compile(rf"((?:^|\n)(?:[-#]+ )?|['\"“`/>]|[|:;,] |agent ){name}(?=$|['\"”`:;,<]|\s)")
        self._ids = {quoted for quoted in quotations if is_id(quoted)}
        self._by_start: dict[str, list[str]] = defaultdict(list)
        every = {form for said in quotations for form in forms(said)}
        for quoted in sorted(every, key=len, reverse=True):
            if len(quoted) >= SHORTEST:
                self._by_start[quoted[: LONG if len(quoted) >= LONG else SHORTEST]].append(quoted)

    def is_about_agent(self, value: Any) -> bool:
        """Tell whether a JSON object is the agent's alone, or about the part of it that goes."""
        if not isinstance(value, Mapping):
            return False
        if self._part is None:
            return value.get("agent_id") == self._agent_id
        named = [each if isinstance(each, list) else [each] for each in value.values()]
        return any(isinstance(each, str) and each in self._part for names in named for each in names)

    def value(self, value: Any, *, key: str = "") -> Any:
        """Return a JSON value without the objects of the agent in its lists, and with its name and words erased."""
        if isinstance(value, str):
            return self._in_list.sub(ERASED, value) if key in AGENT_KEYS else self.text(value)
        if isinstance(value, Mapping):
            return {
                self.text(name): self.value(inner, key=name)
                for name, inner in value.items()
                if key not in MAPS_BY_AGENT or name != self._agent_id or self._part is not None
            }
        if isinstance(value, list):
            return [self.value(inner, key=key) for inner in value if not self.is_about_agent(inner)]
        return value

    def text(self, text: str) -> str:
        """Return prose with name and quotations erased; a text of one word is a term of the log, unless it is an id."""
        if not any(character.isspace() for character in text):
            return ERASED if text in self._ids else text
        kept: list[str] = []
        place = 0
        while place < len(text):
            quoted = self._quoted_at(text, place)
            kept.append(ERASED if quoted else text[place])
            place += len(quoted) or 1
        return self._in_prose.sub(rf"\1{ERASED}", "".join(kept))

    def _quoted_at(self, text: str, place: int) -> str:
        """Return the longest quotation that begins at a place, or nothing."""
        for size in (LONG, SHORTEST):
            for quoted in self._by_start.get(text[place : place + size], ()):
                if text.startswith(quoted, place) and (len(quoted) >= LONG or stands_alone(text, place, len(quoted))):
                    return quoted
        return ""


def forms(text: str) -> list[str]:
    """Return a text as it stands and as Markdown quotes it, alone or within a line; the longest first."""
    return sorted({text, plain(text), plain(f"x {text}")[2:]}, key=len, reverse=True)


def is_id(text: str) -> bool:
    """Tell whether a text is the id of a memory or a proposal."""
    try:
        return len(text) == len(str(UUID(text)))
    except ValueError:
        return False


def stands_alone(text: str, place: int, size: int) -> bool:
    """Tell whether no word goes on before or after a part of a text."""
    before, after = text[place - 1 : place], text[place + size : place + size + 1]
    return not before.isalnum() and not after.isalnum()
