"""Whether a model can be asked at all, found out before anything is sent to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

from nous_online.language.claude.client import Claude, json_of, patience
from nous_online.language.claude.message_parser import fields, moment_of, said
from nous_online.language.claude.replies import Failure, LLMError

if TYPE_CHECKING:
    import anthropic

UNKNOWN = 404
DEADLINE_S = 10.0
WARN_BEFORE = timedelta(days=30)  # Anthropic gives 60 days' notice: half of it is left to act
MOST_NAMED = 4
SETTINGS = "NOUS_JUDGE_MODEL or NOUS_WRITER_MODEL"


@dataclass(frozen=True)
class ModelFacts:
    """A model as the catalogue describes it: `id` is what an alias stands for, None is what the catalogue left open."""

    id: str
    lifecycle: str
    retires_at: datetime | None
    has_batches: bool | None
    has_structured_outputs: bool | None

    def warning(self, now: datetime) -> str | None:
        """Return what is to be done about a retirement within 30 days, if one is near or overdue."""
        if self.retires_at is None or self.retires_at - now > WARN_BEFORE:
            return None
        return f"the model {self.id} retires on {self.retires_at:%Y-%m-%d}; set {SETTINGS} to another before that"

    def missing(self, *, for_batches: bool) -> str | None:
        """Return why the model can't be used, if it can't."""
        if self.lifecycle == "retired":
            on = "" if self.retires_at is None else f" since {self.retires_at:%Y-%m-%d}"
            return f"is retired{on}"
        if self.has_structured_outputs is False:
            return "does not answer in the form of a schema (structured outputs)"
        if for_batches and self.has_batches is False:
            return "takes no batches"
        return None


def checked_model(claude: Claude, model: str, *, for_batches: bool, deadline_s: float = DEADLINE_S) -> ModelFacts:
    """Return what the catalogue says of a model that can be used.

    Raises `LLMError`: `PERMANENT` for a model that is unknown, retired or incapable, naming those that could be set
    instead, and whatever kind it is when the catalogue can't be asked.
    """

    def look_up(sdk: anthropic.Anthropic, left_s: float) -> ModelFacts:
        return facts_of(json_of(sdk.models.with_raw_response.retrieve(model, timeout=patience(left_s)).http_response))

    facts: ModelFacts | None = None
    try:
        facts = claude.call(look_up, deadline_s=deadline_s)
    except LLMError as error:
        if error.status != UNKNOWN:
            raise
    why = "is unknown" if facts is None else facts.missing(for_batches=for_batches)
    if facts is not None and why is None:
        return facts
    instead = claude.call(_listed, deadline_s=deadline_s)
    raise LLMError(f"the model {said(model)} {why}; {advice(instead, for_batches=for_batches)}", Failure.PERMANENT)


def advice(models: Sequence[ModelFacts], *, for_batches: bool) -> str:
    """Return what to set instead: the newest models that are not about to go and can do what is needed."""
    fit = [each.id for each in models if each.lifecycle == "active" and each.missing(for_batches=for_batches) is None]
    known = f"one of {', '.join(fit[:MOST_NAMED])}" if fit else "one the catalogue of this key knows; it names none"
    return f"set {SETTINGS} to {known}"


def facts_of(told: object) -> ModelFacts:
    """Return the facts in the JSON of a model; raise `LLMError` when it describes none."""
    model = fields(told)
    name, lifecycle = said(model.get("id")), said(model.get("lifecycle"))
    if not name:
        raise LLMError("a model was expected, but came something else; check ANTHROPIC_BASE_URL", Failure.MALFORMED)
    abilities = fields(model.get("capabilities"))
    return ModelFacts(
        id=name,
        lifecycle=lifecycle or "active",  # gateways that don't tell serve what they list
        retires_at=moment_of(model.get("retires_at")),
        has_batches=_supports(abilities, "batch"),
        has_structured_outputs=_supports(abilities, "structured_outputs"),
    )


def _listed(sdk: anthropic.Anthropic, left_s: float) -> list[ModelFacts]:
    """Return the models that are not retired, newest first."""
    entries = fields(json_of(sdk.models.with_raw_response.list(timeout=patience(left_s)).http_response)).get("data")
    return [facts_of(each) for each in cast("list[object]", entries)] if isinstance(entries, list) else []


def _supports(abilities: Mapping[str, Any], name: str) -> bool | None:
    supported = fields(abilities.get(name)).get("supported")
    return supported if isinstance(supported, bool) else None
