"""What may be told about a procedure: checked, and the line that says it all derived."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast
from uuid import UUID

from nous_online.core.details import OriginDetails
from nous_online.core.domain import DecisionId
from nous_online.core.errors import InvalidInput
from nous_online.core.fields import check_known
from nous_online.core.origin import Origin, origin_of
from nous_online.core.policy import MAX_CONTENT_BYTES
from nous_online.core.rights import UNLIMITED, Rights
from nous_online.core.validation import (
    MAX_NAMES,
    checked_choice,
    checked_decision,
    checked_id,
    checked_names,
    checked_optional,
    checked_text,
)

PROCEDURE_KINDS = ("k_line", "workflow", "pattern")
BANDS = ("goals", "core_patterns", "core_tools", "core_concepts", "implementation_notes")
MAX_LINE_BYTES = 4 * 1024
HINT_CHARACTERS = 120  # one line of a context; about 30 tokens
ARROW, ELLIPSIS = "→", "…"


class ProcedureDetails(OriginDetails, total=False):
    """Everything that may be told about a procedure besides its name."""

    domain: str | None
    kind: str
    """`k_line` (three bands), `workflow` (steps) or `pattern` (a template); `k_line` unless told."""
    goals: list[str] | None
    """Upper fringe: what it is for."""
    core_patterns: list[str] | None
    core_tools: list[str] | None
    core_concepts: list[str] | None
    implementation_notes: list[str] | None
    """Lower fringe: details that are easily displaced."""
    steps: Sequence[str | Mapping[str, str]] | None
    """In their order, each a name or {"name": …, "detail": …}."""
    template: Mapping[str, Any] | None
    """A JSON object to be filled in."""
    trigger: str | None
    """When it is wanted."""
    hint: str | None
    """One line that says it all; derived where it is not told: "deploy: test→build→stage"."""
    related_procedures: Sequence[UUID | str] | None
    related_decision_ids: Sequence[DecisionId] | None
    censors: list[str] | None
    tags: list[str] | None
    idempotency_key: str | None
    """A retry with the same key and content returns the first answer and changes nothing."""


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
    checked_optional("name", title, max_characters=500)
    steps = checked_steps(details.get("steps"))
    template = checked_template(details.get("template"))
    bands = {band: checked_lines(band, details.get(band)) for band in BANDS}
    usual = "workflow" if steps and not any(bands.values()) else "k_line"
    kind = checked_choice("kind", details.get("kind", usual), PROCEDURE_KINDS)
    check_substance(title, kind, bands=bands, steps=steps, template=template)
    content = {
        **bands,
        "domain": checked_optional("domain", details.get("domain"), max_characters=100),
        "steps": steps,
        "template": template,
        "trigger": checked_optional("trigger", details.get("trigger"), max_characters=500),
        "compressed": checked_hint(details.get("hint")) or hint_of(title, bands=bands, steps=steps, template=template),
        "related_procedures": checked_ids("related_procedures", details.get("related_procedures")),
        "related_decision_ids": checked_decisions(details.get("related_decision_ids")),
        "censors": checked_names("censors", details.get("censors")) or [],
        "tags": checked_names("tags", details.get("tags")) or [],
    }
    key = checked_optional("idempotency_key", details.get("idempotency_key"), max_characters=200)
    return NewProcedure(title, kind, content, origin_of(details, rights), key)


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


def checked_list(name: str, values: object, check: Callable[[object], Any]) -> list[Any]:
    """Return a list whose entries passed their check; None is an empty one."""
    if values is None:
        return []
    if isinstance(values, str | bytes) or not isinstance(values, Sequence):
        raise InvalidInput(f"{name} must be a list, got {values!r}")
    entries = cast("Sequence[object]", values)
    if len(entries) > MAX_NAMES:
        raise InvalidInput(f"{name} has {len(entries):,} entries, the limit is {MAX_NAMES}")
    return [check(entry) for entry in entries]


def checked_lines(name: str, values: object) -> list[str]:
    """Return the lines of a band, each a sentence or a few."""
    return checked_list(name, values, lambda line: checked_text(f"a line of {name}", line, max_bytes=MAX_LINE_BYTES))


def checked_ids(name: str, values: object) -> list[str]:
    """Return ids as text, each once."""
    return list(dict.fromkeys(checked_list(name, values, lambda each: str(checked_id(f"an entry of {name}", each)))))


def checked_decisions(values: object) -> list[str]:
    """Return what names decisions, each once, as text."""
    entry = "an entry of related_decision_ids"
    named = checked_list("related_decision_ids", values, lambda each: str(checked_decision(entry, each)))
    return list(dict.fromkeys(named))


def checked_steps(values: object) -> list[Any]:
    """Return the steps of a workflow: a name each, or a name with its detail."""
    return checked_list("steps", values, checked_step)


def checked_step(step: object) -> str | dict[str, str]:
    """Return one step, as its name where it has no detail."""
    if isinstance(step, str):
        return checked_text("a step", step, max_bytes=MAX_LINE_BYTES)
    if not isinstance(step, Mapping) or not set(cast("Mapping[object, object]", step)) <= {"name", "detail"}:
        raise InvalidInput(f'a step must be a name or {{"name": …, "detail": …}}, got {step!r}')
    told = cast("Mapping[str, object]", step)
    name = checked_text("the name of a step", told.get("name"), max_bytes=MAX_LINE_BYTES)
    if told.get("detail") is None:
        return name
    return {"name": name, "detail": checked_text("the detail of a step", told["detail"], max_bytes=MAX_LINE_BYTES)}


def step_name(step: str | Mapping[str, str]) -> str:
    """Return the name of a step."""
    return step if isinstance(step, str) else step["name"]


def checked_template(value: object) -> Any:
    """Return a template as a JSON object of at most 32 KiB, or None."""
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise InvalidInput(f"template must be a JSON object, got {value!r}")
    try:
        written = json.dumps(dict(cast("Mapping[str, Any]", value)), ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"template can't be written as JSON: {error}") from error
    return json.loads(checked_text("template", written, max_bytes=MAX_CONTENT_BYTES))


def checked_hint(value: object) -> str | None:
    """Return a hint that fits on one line, or None."""
    hint = checked_optional("hint", value, max_characters=500)
    if hint and len(hint.splitlines()) > 1:
        raise InvalidInput(f"hint must be one line, got {hint!r}")
    return hint


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
