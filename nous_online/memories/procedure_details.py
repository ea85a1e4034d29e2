"""What may be told about a procedure: checked, and the line that says it all derived."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from nous_online.core.details import ProcedureDetails, ProcedureName
from nous_online.core.errors import InvalidInput
from nous_online.core.fields import check_known, checked_as, checked_details
from nous_online.core.rights import UNLIMITED, Origin, Rights, origin_of
from nous_online.core.validation import (
    checked_text,
)
from nous_online.memories.told_texts import guarded

PROCEDURE_KINDS = ("k_line", "workflow", "pattern")
BANDS = ("goals", "core_patterns", "core_tools", "core_concepts", "implementation_notes")
TEXTS = ("name", *BANDS, "steps", "template", "trigger", "hint")
"""What of a procedure may hold a credential that somebody told."""
MAX_LINE_BYTES = 4 * 1024
HINT_CHARACTERS = 120  # one line of a context; about 30 tokens
ARROW, ELLIPSIS = "→", "…"


@dataclass(frozen=True)
class NewProcedure:
    """A procedure checked and ready to be stored; `content` are its columns, as JSON values."""

    name: str
    kind: str
    content: Mapping[str, Any]
    origin: Origin
    idempotency_key: str | None

    @property
    def embedded_text(self) -> str:
        """What of it its vector stands for: name, domain, bands or steps, and when it is wanted."""
        return text_to_embed(self.name, self.content)

    def row(self, *, now: datetime) -> dict[str, Any]:
        """Return its columns without the vector."""
        return {"name": self.name, "kind": self.kind, **self.content, **self.origin.row(now=now)}


def text_to_embed(name: str, content: Mapping[str, Any]) -> str:
    """Return what a procedure's vector stands for, from its name and its columns."""
    told = [content["domain"], *(line for band in BANDS for line in content[band])]
    steps = [step_name(step) for step in content["steps"]]
    return "\n".join(filter(None, (name, content["trigger"], *told, *steps)))


def new_procedure(name: object, details: ProcedureDetails, rights: Rights = UNLIMITED) -> NewProcedure:
    """Check everything a caller said about a procedure; raise `InvalidInput` naming what to mend."""
    check_known(details, ProcedureDetails)
    title = " ".join(checked_text("name", name, max_bytes=2000).split())
    told, _ = guarded({**checked_details(ProcedureDetails, details), "name": title}, TEXTS, rights)
    title = checked_as(ProcedureName, "name", told.pop("name"))
    bands: dict[str, list[str]] = {band: told[band] or [] for band in BANDS}
    steps: list[Any] = told["steps"] or []
    template = told["template"]
    usual = "workflow" if steps and not any(bands.values()) else "k_line"
    kind = told["kind"] if "kind" in details else usual
    check_substance(title, kind, bands=bands, steps=steps, template=template)
    content = {
        **bands,
        **{name: told[name] for name in ("domain", "template", "trigger")},
        **{name: told[name] or [] for name in ("steps", "censors", "tags")},
        **{name: unique(told[name] or []) for name in ("related_procedures", "related_decision_ids")},
        "compressed": told["hint"] or hint_of(title, bands=bands, steps=steps, template=template),
    }
    return NewProcedure(title, kind, content, origin_of(details, rights), told["idempotency_key"])


def unique(ids: Sequence[object]) -> list[str]:
    """Return ids as texts, each once."""
    return list(dict.fromkeys(map(str, ids)))


def check_substance(
    name: str, kind: str, *, bands: Mapping[str, Sequence[str]], steps: Sequence[Any], template: object
) -> None:
    """Raise `InvalidInput` for a procedure that says nothing of how it is done."""
    if kind == "workflow" and not steps:
        raise InvalidInput(f'workflow {name!r} has no steps; give some, such as steps=["test", "build"]')
    if kind == "pattern" and not template:
        raise InvalidInput(f"pattern {name!r} has no template; give a JSON object with what is to be filled in")
    if kind == "k_line" and not any(bands.values()):
        raise InvalidInput(f"k_line {name!r} has none of {', '.join(BANDS)}; give at least one")


def step_name(step: str | Mapping[str, str]) -> str:
    """Return the name of a step."""
    return step if isinstance(step, str) else step["name"]


def hint_of(name: str, *, bands: Mapping[str, Sequence[str]], steps: Sequence[Any], template: Any) -> str:
    """Return one line that says how it is done: "deploy: test→build→stage"."""
    if steps:
        body = ARROW.join(map(step_name, steps))
    elif template:
        body = ARROW.join(map(str, template))
    else:
        body = next("; ".join(lines) for lines in (bands["core_patterns"], *bands.values()) if lines)
    line = " ".join(f"{name}: {body}".split())
    return line if len(line) <= HINT_CHARACTERS else f"{line[: HINT_CHARACTERS - 1].rstrip()}{ELLIPSIS}"
