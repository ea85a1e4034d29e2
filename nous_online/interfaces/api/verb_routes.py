"""The verbs over HTTP: a table of routes, each with its path, verb, body and response.

In the OpenAPI document a verb has its docstring as description, and a title and its body's words from `openapi.toml`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from inspect import Parameter
from types import NoneType
from typing import Annotated, Any, Literal, cast, get_type_hints
from uuid import UUID

from fastapi import APIRouter, Path, Query, Response
from pydantic import Field, StrictInt, TypeAdapter

from nous_online.core.details import MAX_NAME_BYTES, DecisionFilter, FactDetails, MemoryFilter, SignalDetails
from nous_online.core.domain import Procedure
from nous_online.core.errors import Conflict, InvalidInput, NotFound
from nous_online.core.fields import Whole, rows_of
from nous_online.core.policy import DEFAULT_SESSION, MAX_RECALL_LIMIT
from nous_online.heart import Heart
from nous_online.interfaces.api import bodies as answers
from nous_online.interfaces.api.access import ApiCall, HeartCall, IdempotencyKey
from nous_online.interfaces.api.bodies import (
    NOT_BLANK,
    WHOLE,
    WORDS,
    Body,
    Flag,
    Ids,
    Line,
    Lines,
    Name,
    Text,
    body,
    text_of,
    wire_type,
)
from nous_online.memories.censors import REPORTERS
from nous_online.memories.contradictions import Contradiction, Resolution
from nous_online.memories.decisions import RESOLUTIONS
from nous_online.memories.doubts import Doubt
from nous_online.memories.store import unrecorded_count

LONGEST_EPISODE_S = 31 * 24 * 3600
OwnName = Annotated[str, text_of(200)]
Source = Annotated[Line, Field(max_length=500)]
StepDetail = Annotated[str, text_of(400)]
Reason = Annotated[str, text_of(4096)]
GROUPS = {"sessions": "working memory", "events": "decisions"}
"""Tags of the document by the first part of the path, where they differ; all others are "memories"."""
LINE_END = re.compile(r"(?<!\n)\n(?!\n)")
RAISED = re.compile(r"; raise .*?(?=\.(?:\s|\Z)|\Z)|\s{0,2}\bRaises .*?(?:\.(?=\s|\Z)|\Z)", re.DOTALL)
PLACEHOLDERS = re.compile(r"{(\w+)")
IN_PATH: Mapping[str, Any] = {
    "session_id": Annotated[str, Path(min_length=1, max_length=100, pattern=NOT_BLANK)],
    "decision_id": Annotated[
        str, Path(min_length=1, max_length=200, pattern=NOT_BLANK, description="Or its reference.")
    ],
}
"""Types of path parameters; all others are UUIDs."""


@dataclass(frozen=True)
class VerbRoute:
    """One route: method and path, the verb it calls, its body and its response."""

    endpoint: str
    """Method and path."""
    verb: Callable[..., Any]
    """A verb of `Heart`, or a function of an `ApiCall` that calls several."""
    body: type[Body] | None = None
    answer: Callable[[Any], Any] | None = None
    """Converts the verb's result to the response; by default the result is sent as it is."""
    name: str = ""
    """The operation id, where it is not the verb's name."""
    query: Mapping[str, tuple[Any, Any]] = field(default_factory=dict[str, tuple[Any, Any]])
    """Query parameters: type and default by name."""
    about: str = ""
    """What it does, where the verb's docstring says more than can be sent here."""

    def add_to(self, router: APIRouter) -> None:
        method, path = self.endpoint.split()
        source, name = self.answer or self.verb, self.name or self.verb.__name__
        answer = source if isinstance(source, type) else get_type_hints(source)["return"]
        group = path.split("/")[1]
        router.add_api_route(
            path,
            self._function(PLACEHOLDERS.findall(path), answer),
            methods=[method],
            operation_id=name,
            summary=WORDS["verbs"][name],
            description=self.about or described(self.verb),
            response_model=None if answer is NoneType else answer,
            status_code=204 if answer is NoneType else 200,
            tags=[group if group in WORDS["tags"] else GROUPS.get(group, "memories")],
        )

    def _function(self, in_path: list[str], answer: Any) -> Callable[..., Any]:
        """Return the function that FastAPI calls, with the signature that it reads parameters and document from."""
        written = cache(lambda: TypeAdapter[Any](answer))
        name = self.verb.__name__
        is_verb = getattr(Heart, name, None) is self.verb
        known = inspect.signature(self.verb).parameters

        def endpoint(call: ApiCall, body: Body | None = None, **parameters: Any) -> Any:
            values: dict[str, Any] = {} if body is None else body.verb_input()
            # A path parameter that the verb calls otherwise, such as memory_id, is its first positional argument.
            places = [parameters.pop(each) for each in in_path if each not in known]
            if is_verb:
                # By name, not as `self.verb`: the heart of a call may be one limited to rights or to a session.
                result = getattr(call.heart, name)(*places, deadline_s=call.left(), **parameters, **values)
            else:
                result = self.verb(call, *places, **parameters, **values)
            if answer is NoneType:
                return None
            # By the thread of the call: FastAPI would check it in a second one, and write it in the one of all calls.
            told = result if self.answer is None else self.answer(result)
            return Response(written().dump_json(told, by_alias=True), media_type="application/json")

        declared: dict[str, tuple[Any, Any]] = {each: (IN_PATH.get(each, UUID), Parameter.empty) for each in in_path}
        declared |= {} if self.body is None else {"body": (self.body, Parameter.empty)}
        declared |= {"call": (HeartCall, Parameter.empty), **self.query}
        if is_verb and "idempotency_key" in rows_of(self.verb):
            declared["idempotency_key"] = (IdempotencyKey, None)
        endpoint.__dict__["__signature__"] = inspect.Signature(
            [
                Parameter(each, Parameter.KEYWORD_ONLY, annotation=kind, default=default)
                for each, (kind, default) in declared.items()
            ]
        )
        return endpoint


def described(verb: Callable[..., Any]) -> str:
    """Return what a verb's docstring says of it, without its parameters and without the errors it raises in Python."""
    told = (inspect.getdoc(verb) or "").partition("\n\n- `")[0]
    return RAISED.sub("", LINE_END.sub(" ", told)).strip()


# --- bodies with fields of their own ---


class PredictedBody(Body):
    """What was seen: the file that was opened stands among the signals."""

    file_opened: Annotated[str, text_of(MAX_NAME_BYTES)] | None = Field(
        default=None, description="Short for `signals.current_file`."
    )

    def verb_input(self) -> Any:
        values = super().verb_input()
        signals, opened = dict(values.pop("signals", None) or {}), values.pop("file_opened", None)
        return {**values, "signals": signals if opened is None else {**signals, "current_file": opened}}


class ArtifactBody(Body):
    """Something an episode produced or was about."""

    kind: Literal["commit", "pr", "adr", "file"]
    reference: Annotated[Line, Field(max_length=200)] = Field(description="What names it, such as `4f3d51d`.")

    def verb_input(self) -> Any:
        return self.kind, self.reference


class EpisodeBody(Body):
    """What may be said of an episode at any time."""

    artifacts: Annotated[list[ArtifactBody], Field(max_length=200)] | None = None


class PastEpisodeBody(EpisodeBody):
    """An episode that is over says how long it took."""

    duration_seconds: Annotated[int, Field(ge=0, le=LONGEST_EPISODE_S), WHOLE] | None = Field(
        default=None, description="How long it took; with `started_at`, instead of `ended_at`."
    )

    def verb_input(self) -> Any:
        values = super().verb_input()
        seconds, ended = values.pop("duration_seconds", None), values.get("ended_at")
        if seconds is not None and ended is not None:
            raise Conflict("both duration_seconds and ended_at say when it ended; send one of them")
        if ended is None and (began := values.get("started_at")) is not None:
            values["ended_at"] = began + timedelta(seconds=seconds or 0)
        return values


class StepBody(Body):
    """One step with its detail."""

    name: Line
    detail: Line | None = None


class MemoryFieldsBody(Body):
    """What may be corrected of a memory: null clears what may be absent, and says nothing for the rest."""

    takes_null = True

    def verb_input(self) -> Any:
        cleared = ("subject", "category", "valid_from", "valid_to")
        return {name: value for name, value in super().verb_input().items() if value is not None or name in cleared}


SIGNALS = body("SignalsBody", SignalDetails)
Filled = Line | Lines | Annotated[dict[Line, Line], Field(max_length=100)]
Steps = Annotated[list[Line | StepBody], Field(max_length=100)]
Template = Annotated[dict[Line, Filled], Field(max_length=100)]
OneLine = Annotated[Line, Field(max_length=500, pattern=r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029]*$")]
DEFERRED = Annotated[
    list[body("DeferredFactBody", FactDetails, content=(Text, ...), idempotency_key=(OwnName | None, None))],
    Field(min_length=1, max_length=200, description="Each with a key of its own, where it may be sent again."),
]
COUNTED = ("procedures_activated",)
"""Rows of an episode that no body has: the server counts them."""
Status = Annotated[Literal["open", "resolved", "any"], Query(description="Which contradictions.")]
MERGED_INTO = "With `merged`, and only then: the fact, learned for it, that takes both places."
REASON = body("ReasonBody", reason=(Reason | None, None))

PUBLIC_ADDRESS = Annotated[
    str,
    Field(
        min_length=9,
        max_length=2000,
        pattern=r"^https://[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*(:[1-9][0-9]{0,3})?(/[!-~]*)?$",
        description="A public address of https; `nous webhook add --allow-private` allows others.",
    ),
]
EVENT_NAME = r"[a-z][a-z0-9_.:-]{0,99}"


def query_of(table: type) -> dict[str, tuple[Any, Any]]:
    """Return the rows of a table as query parameters: type and default by name."""
    found: dict[str, tuple[Any, Any]] = {}
    for name, row in rows_of(table).items():
        # What reads digits of a query is no strict whole number, as a body wants it.
        if isinstance(row.field, Whole):
            hint = Annotated[int, Query(ge=row.field.least, le=row.field.most, description=row.field.about)]
        else:
            kind = wire_type(row.field)
            hint = Annotated[kind if row.default is not None else kind | None, Query(description=row.field.about)]
        found[name] = hint, row.default
    return found


# --- endpoints that call several verbs ---


def list_statements(call: ApiCall, fact_id: UUID) -> answers.StatementList:
    """Return the statements of a fact in any state, word for word, the oldest first.

    Statements of facts that were merged into it are included. Confirmations from before statements were stored are
    counted in `unrecorded_count` only.
    """
    fact = call.heart.get(fact_id, deadline_s=call.left())
    statements = call.heart.statements(fact_id, deadline_s=call.left())
    return answers.StatementList(statements, unrecorded_count(fact, statements))


def give_feedback(
    call: ApiCall, recall_id: UUID, *, cited: Sequence[UUID] = (), ignored: Sequence[UUID] = ()
) -> answers.FeedbackAnswer:
    """Say which answers of a recall, or lines of a context, were used, and which were of no use.

    Saying it twice counts once. What the recall did not return is not found.
    """
    try:
        ignored_count = call.heart.ignore(recall_id, ignored, deadline_s=call.left())
        return answers.FeedbackAnswer(call.heart.cite(recall_id, cited, deadline_s=call.left()), ignored_count)
    except InvalidInput as error:  # for a recall that does not exist, which over HTTP is its path
        raise NotFound(str(error)) from error


def list_contradictions(call: ApiCall, *, status: str) -> list[Contradiction]:
    """Return the agent's contradictions in one status, the oldest first."""
    return call.heart.contradictions(status=None if status == "any" else status, deadline_s=call.left())


def list_doubts(call: ApiCall, *, status: str) -> list[Doubt]:
    """Return the facts that perhaps replace earlier ones, in one status, the oldest first."""
    return call.heart.doubts(status=None if status == "any" else status, deadline_s=call.left())


def learn_deferred(call: ApiCall, *, facts: list[dict[str, Any]]) -> int:
    """Store many facts at once, and leave all matching to the night: all of them, or none. Meant for histories."""
    entries = [(each.pop("content"), cast("FactDetails", each)) for each in facts]
    return call.heart.learn_deferred(entries, deadline_s=call.left())


def record_procedure_outcome(
    call: ApiCall, procedure_id: UUID, *, is_success: bool, note: str | None = None
) -> Procedure:
    """Say that a procedure worked or failed; nights flag for review those that mostly fail."""
    heart = call.heart
    record = heart.record_procedure_success if is_success else heart.record_procedure_failure
    return record(procedure_id, note=note, deadline_s=call.left())


# --- the verbs ---

ROUTES = (
    VerbRoute("POST /facts", Heart.learn, body("FactBody", Heart.learn)),
    VerbRoute("GET /facts/{fact_id:uuid}/statements", list_statements),
    VerbRoute("POST /facts/deferred", learn_deferred, body("DeferredBody", facts=(DEFERRED, ...)), answers.StoredCount),
    VerbRoute("GET /facts/count", Heart.count, answer=answers.FactCounts, name="count_facts"),
    VerbRoute("GET /facts/{fact_id:uuid}", Heart.get_fact),
    VerbRoute(
        "POST /facts/{fact_id:uuid}/confirm", Heart.confirm_fact, body("ConfirmBody", source=(Source | None, None))
    ),
    VerbRoute(
        "POST /facts/{fact_id:uuid}/supersede",
        Heart.supersede_fact,
        body(
            "SupersedeBody",
            new_id=(UUID, Field(description="The fact that takes its place.")),
            reason=(Line | None, None),
            is_same=(bool, Field(default=False, description="Both say the same: it is merged into the other.")),
        ),
        about="Put one fact in the place of another, and return the old one, which only `as_of` brings back. Both "
        "are of one scope, user and project, or the new one is for more to recall.",
    ),
    VerbRoute(
        "GET /facts/{fact_id:uuid}/predecessors", Heart.predecessors, answer=answers.FactList, name="list_predecessors"
    ),
    VerbRoute("POST /statements/{statement_id:uuid}/split", Heart.split, body("SplitBody", reason=(Line | None, None))),
    VerbRoute(
        "POST /facts/{fact_id:uuid}/keep-both",
        Heart.keep_both,
        body(
            "KeepBothBody",
            earlier_id=(UUID, Field(description="One of the fact's `perhaps_replaces`.")),
            reason=(Line | None, None),
        ),
    ),
    VerbRoute("POST /recall", Heart.recall, body("RecallBody", Heart.recall, without=("at",)), answers.recall_answer),
    VerbRoute(
        "POST /recalls/{recall_id:uuid}/feedback",
        give_feedback,
        body(
            "FeedbackBody",
            cited=(Ids, Field([], description="Memories that were used: they rise, and no night may lose them.")),
            ignored=(Ids, Field([], description="Memories that were of no use.")),
        ),
    ),
    VerbRoute(
        "POST /context/assemble",
        Heart.assemble_context,
        body("AssembleBody", Heart.assemble_context, signals=(SIGNALS | None, None)),
        answers.context_answer,
    ),
    VerbRoute(
        "POST /context/predict",
        Heart.predict,
        body("PredictBody", Heart.predict, base=PredictedBody, signals=(SIGNALS | None, None)),
        answers.prediction_answer,
    ),
    VerbRoute(
        "POST /episodes",
        Heart.start_episode,
        body("StartBody", Heart.start_episode, base=EpisodeBody, without=COUNTED),
    ),
    VerbRoute(
        "POST /episodes/record",
        Heart.record_episode,
        body("RecordBody", Heart.record_episode, base=PastEpisodeBody, without=COUNTED),
    ),
    VerbRoute("GET /episodes/{episode_id:uuid}", Heart.get_episode),
    VerbRoute("GET /episodes/{episode_id:uuid}/full-text", Heart.full_text, name="get_full_text"),
    VerbRoute(
        "GET /episodes/{episode_id:uuid}/artifacts",
        Heart.episode_artifacts,
        answer=answers.ArtifactList,
        name="list_artifacts",
    ),
    VerbRoute(
        "POST /episodes/steps",
        Heart.record_step,
        body(
            "RecordStepBody",
            name=(Annotated[str, text_of(80)], ...),
            detail=(StepDetail | None, None),
            session_id=(Name | None, None),
        ),
    ),
    VerbRoute(
        "PATCH /episodes/{episode_id:uuid}",
        Heart.update_episode,
        body("UpdateBody", Heart.update_episode, base=EpisodeBody, without=COUNTED),
    ),
    VerbRoute(
        "POST /episodes/{episode_id:uuid}/close",
        Heart.close_episode,
        body("CloseBody", Heart.close_episode, base=EpisodeBody, without=COUNTED),
    ),
    VerbRoute("POST /episodes/{episode_id:uuid}/retry", Heart.retry_episode),
    VerbRoute(
        "POST /procedures",
        Heart.store_procedure,
        body(
            "ProcedureBody",
            Heart.store_procedure,
            steps=(Steps | None, None),
            template=(Template | None, None),
            hint=(OneLine | None, None),
        ),
    ),
    VerbRoute("GET /procedures/{procedure_id:uuid}", Heart.get_procedure),
    VerbRoute(
        "GET /procedures",
        Heart.list_procedures,
        answer=answers.ProcedureList,
        query={
            "domain": (Annotated[str | None, Query(max_length=100)], None),
            "state": (
                Annotated[
                    Literal["active", "review", "archived"] | None,
                    Query(description="All but the archived unless named."),
                ],
                None,
            ),
        },
    ),
    VerbRoute(
        "GET /procedures/{procedure_id:uuid}/related",
        Heart.related_procedures,
        answer=answers.ProcedureList,
        query={"limit": (Annotated[int, Query(ge=1, le=MAX_RECALL_LIMIT)], 5)},
    ),
    VerbRoute(
        "POST /procedures/learn",
        Heart.learn_workflows,
        body(
            "WorkflowsBody",
            user_id=(Name | None, None),
            project_id=(Name | None, None),
            is_recorded=(Flag, Field(default=True, description="False only looks: nothing is stored or counted.")),
        ),
        answers.workflow_list,
    ),
    VerbRoute(
        "POST /procedures/{procedure_id:uuid}/activate",
        Heart.activate_procedure,
        body(
            "ActivateBody",
            session_id=(Name, Field(DEFAULT_SESSION, description="That of the header `X-Nous-Session` unless told.")),
        ),
        about="Load a procedure into a session's working memory, and count it.",
    ),
    VerbRoute(
        "POST /procedures/{procedure_id:uuid}/outcome",
        record_procedure_outcome,
        body("OutcomeBody", is_success=(Flag, ...), note=(Line | None, None)),
    ),
    VerbRoute("POST /censors", Heart.add_censor, body("CensorBody", Heart.add_censor)),
    VerbRoute(
        "GET /censors",
        Heart.list_censors,
        answer=answers.CensorList,
        query={"state": (Annotated[Literal["active", "archived"], Query(description="Which censors.")], "active")},
    ),
    VerbRoute("GET /censors/{censor_id:uuid}", Heart.get_censor),
    VerbRoute(
        "PATCH /censors/{censor_id:uuid}",
        Heart.update_censor,
        body("CensorChangesBody", Heart.update_censor, note=(Line | None, None)),
    ),
    VerbRoute("POST /censors/check", Heart.check_censors, body("CheckBody", Heart.check_censors), answers.check_answer),
    VerbRoute(
        "POST /censors/{censor_id:uuid}/false-positive",
        Heart.report_false_positive,
        body(
            "FalsePositiveBody",
            activation_id=(UUID | None, Field(None, description="The latest that nobody reported unless told.")),
            action=(Text | None, Field(None, description="Or the action it should let pass.")),
            note=(Line | None, None),
            source_kind=(Literal[REPORTERS], Field("agent", description="Who says so.")),
        ),
    ),
    VerbRoute(
        "PUT /sessions/{session_id:path}/focus", Heart.focus, body("FocusBody", Heart.focus, without=("session_id",))
    ),
    VerbRoute(
        "POST /sessions/{session_id:path}/load",
        Heart.load_context,
        body("LoadBody", Heart.load_context, without=("session_id", "fact_ids", "episode_ids", "censor_ids")),
    ),
    VerbRoute("GET /sessions/{session_id:path}", Heart.get_working_memory),
    VerbRoute("POST /sessions/{session_id:path}/unload", Heart.unload, body("UnloadBody", ids=(Ids, ...))),
    VerbRoute("POST /sessions/{session_id:path}/threads", Heart.open_thread, body("ThreadBody", text=(Text, ...))),
    VerbRoute(
        "POST /sessions/{session_id:path}/threads/close",
        Heart.close_thread,
        body("CloseThreadBody", thread=(Text | StrictInt, Field(description="Its text, or its place from 0."))),
    ),
    VerbRoute(
        "POST /sessions/{session_id:path}/end",
        Heart.end_session,
        body("EndBody", Heart.end_session, without=("session_id",)),
    ),
    VerbRoute(
        "POST /decisions",
        Heart.record_decision,
        body("DecisionBody", Heart.record_decision, reference=(OwnName | None, None)),
    ),
    VerbRoute(
        "GET /decisions",
        Heart.decisions,
        answer=answers.DecisionList,
        name="list_decisions",
        query=query_of(DecisionFilter),
    ),
    VerbRoute("GET /decisions/{decision_id:path}", Heart.get_decision),
    VerbRoute(
        "POST /decisions/{decision_id:path}/resolve",
        Heart.resolve_decision,
        body("ResolutionBody", status=(Literal[RESOLUTIONS], ...), outcome=(Line | None, None)),
    ),
    VerbRoute(
        "GET /contradictions", list_contradictions, answer=answers.ContradictionList, query={"status": (Status, "open")}
    ),
    VerbRoute("GET /doubts", list_doubts, answer=answers.DoubtList, query={"status": (Status, "open")}),
    VerbRoute(
        "POST /contradictions/{contradiction_id:uuid}/resolve",
        Heart.resolve_contradiction,
        body(
            "RulingBody",
            resolution=(Resolution | None, None),
            keep=(UUID | None, Field(None, description="Instead of a resolution: the id of the fact that wins.")),
            note=(Reason | None, None),
            merged_into=(UUID | None, Field(None, description=MERGED_INTO)),
        ),
    ),
    VerbRoute("POST /contradictions/{contradiction_id:uuid}/reject", Heart.reject_ruling),
    VerbRoute(
        "POST /events",
        Heart.publish,
        body(
            "EventBody",
            name=(Annotated[str, Field(pattern=rf"^{EVENT_NAME}$")], ...),
            payload=(dict[str, Any], {}),
            memory_id=(UUID | None, None),
        ),
    ),
    VerbRoute(
        "POST /webhooks",
        Heart.add_webhook,
        body(
            "WebhookBody",
            url=(PUBLIC_ADDRESS, ...),
            names=(
                list[Annotated[str, Field(pattern=rf"^(\*|{EVENT_NAME})$")]],
                Field(["*"], min_length=1, max_length=50, description="Of events; `*` is all."),
            ),
        ),
        about="Send events of these names to an address from now on, signed, at least once and in order.",
    ),
    VerbRoute("GET /webhooks", Heart.list_webhooks, answer=answers.WebhookList),
    VerbRoute("DELETE /webhooks/{webhook_id:uuid}", Heart.remove_webhook),
    VerbRoute("GET /memories", Heart.list_memories, answer=answers.MemoryList, query=query_of(MemoryFilter)),
    VerbRoute("GET /memories/{memory_id:uuid}", Heart.get, answer=answers.MemoryAnswer, name="get_memory"),
    VerbRoute("GET /memories/{memory_id:uuid}/history", Heart.history, answer=answers.ChangeList, name="get_history"),
    VerbRoute("POST /memories/{memory_id:uuid}/undo", Heart.undo, body("UndoBody", reason=(Reason, ...))),
    VerbRoute("POST /memories/{memory_id:uuid}/forget", Heart.forget, body("ForgetBody", reason=(Reason, ...))),
    VerbRoute(
        "POST /memories/{memory_id:uuid}/restore",
        Heart.restore,
        body(
            "RestoreBody",
            reason=(Reason | None, None),
            is_active=(
                bool,
                Field(
                    default=False,
                    description="Undo what superseded the fact, too, or leave it beside its like.",
                ),
            ),
        ),
        answers.MemoryAnswer,
    ),
    VerbRoute("POST /memories/{memory_id:uuid}/pin", Heart.pin, REASON, answers.MemoryAnswer),
    VerbRoute("POST /memories/{memory_id:uuid}/unpin", Heart.unpin, REASON, answers.MemoryAnswer),
    VerbRoute(
        "PATCH /memories/{memory_id:uuid}",
        Heart.update,
        body("CorrectionBody", Heart.update, base=MemoryFieldsBody, reason=(Reason | None, None)),
        answers.MemoryAnswer,
    ),
    VerbRoute(
        "POST /sources/undo",
        Heart.undo_source,
        body(
            "SourceBody",
            source=(Line, Field(max_length=500, description="As memories name it, or the name an import was given.")),
            reason=(Reason, ...),
        ),
        answers.source_answer,
    ),
)


@cache
def verb_router() -> APIRouter:
    """Return the routes of all verbs; cached, as building them takes a second and all applications share them."""
    router = APIRouter()
    for each in ROUTES:
        each.add_to(router)
    return router
