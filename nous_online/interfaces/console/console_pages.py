"""The pages of the console, and the forms of its buttons: each calls a verb and redirects to a page."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import fields
from datetime import UTC, date, datetime, time, timedelta
from importlib.resources import files
from typing import Any, LiteralString, cast, get_args
from urllib.parse import urlencode
from uuid import UUID

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from psycopg import Connection
from psycopg.rows import namedtuple_row
from starlette.concurrency import run_in_threadpool

from nous_online.core.details import AskerDetails, ClaimDetails, ListedState, ReachDetails, RecallDetails
from nous_online.core.domain import Fact, Memory, MemoryKind
from nous_online.core.errors import Conflict, InvalidInput, NotFound, NousError
from nous_online.core.rights import UNLIMITED
from nous_online.core.validation import checked_choice, checked_id
from nous_online.database.connection import as_night
from nous_online.database.statements import statements
from nous_online.heart import Heart
from nous_online.interfaces import doctor
from nous_online.interfaces.api import keys
from nous_online.interfaces.console.rendering import FORM_TOKEN, FormFields, OpenHeart, QueryFields, non_empty, page
from nous_online.interfaces.questions import (
    Alike,
    OpenQuestion,
    alike,
    hold_both,
    open_questions,
    questions_of,
    settle_pair,
)
from nous_online.memories.contradictions import RESOLUTIONS, Resolution, Ruling, of_questions
from nous_online.memories.memory_verbs import ListedMemory, named_memories
from nous_online.memories.status import out_of_reach, status_of
from nous_online.memories.store import is_first_statement, unrecorded_count
from nous_online.memories.undoing import undoable_changes
from nous_online.recall.recall import Recall

router = APIRouter()
BLOCKS = statements("nous_online.interfaces.console", "console.sql")
ALIKE: tuple[Alike, ...] = get_args(Alike)
KINDS: tuple[MemoryKind, ...] = get_args(MemoryKind)
STATES = get_args(ListedState)[2:]
"""The states of memories, without `current` and `any`."""
ON_A_PAGE, ANSWERS, WAITING, NIGHTS = 50, 20, 25, 60  # rows of each list
CONDITIONS = ("about", "source", "user", "project")
CURSOR_SEPARATOR = "~"
"""Between the two keys of a cursor, which is where a page of a list ended."""
TEXTS = ("content", "title", "name", "trigger")
"""Attributes that hold the text of a memory; each kind has one of them."""
LONGER = ("summary", "detail")
SHOWN_ELSEWHERE = frozenset(
    {*TEXTS, *LONGER, "id", "state", "row_version", "superseded_by", "succession", "perhaps_replaces"}
)
ASSETS = {"console.css": "text/css", "console.js": "text/javascript"}


@router.get("/")
def memories(request: Request, query: QueryFields, heart: OpenHeart) -> HTMLResponse:
    """Show the answers to a question, or the latest memories that fit the conditions."""
    fields = {name: query.get(name, "") for name in ("q", "kind", "state", *CONDITIONS, "since", "until")}
    given = non_empty(fields)
    shown: dict[str, Any] = {"asked": fields, "is_asked": bool(given), "kinds": KINDS, "states": STATES}
    if question := given.get("q"):
        details: RecallDetails = {"limit": ON_A_PAGE, "kinds": kinds_of(given), **asker_of(given)}
        answers = heart.recall(question, **details)
        shown["missed"] = memories_missed(heart, answers, given)
        return page(request, "memories.html", **shown, answers=answers, found=[], further=None)
    wanted: dict[str, Any] = list_conditions(given, query.get("before"))
    found = heart.list_memories(**wanted, limit=ON_A_PAGE + 1)  # one more tells whether there is a next page
    further = None
    if len(found) > ON_A_PAGE:
        further = f"/?{urlencode({**given, 'before': found[ON_A_PAGE - 1].id})}"
    shown["is_live"] = not query.get("before")
    return page(request, "memories.html", **shown, answers=None, found=found[:ON_A_PAGE], further=further)


def list_conditions(given: Mapping[str, str], before: str | None) -> dict[str, Any]:
    """Return the conditions of a list of memories; raise `InvalidInput` for a bad kind, state or day."""
    return {
        "kinds": kinds_of(given),
        "state": given.get("state", "current"),
        "about": given.get("about"),
        "source": given.get("source"),
        **asker_of(given),
        "since": day_of("since", given.get("since")),
        "until": day_of("until", given.get("until"), later=1),
        "before": before or None,
    }


def asker_of(given: Mapping[str, str]) -> AskerDetails:
    return {"user_id": given.get("user"), "project_id": given.get("project")}


def kinds_of(given: Mapping[str, str]) -> tuple[MemoryKind, ...] | None:
    return (checked_choice("kind", given["kind"], KINDS),) if "kind" in given else None


def day_of(name: str, text: str | None, *, later: int = 0) -> datetime | None:
    """Return the start of a day in UTC, or of the day `later` days after it."""
    if not text:
        return None
    try:
        return datetime.combine(date.fromisoformat(text), time(), UTC) + timedelta(days=later)
    except (ValueError, OverflowError) as error:
        raise InvalidInput(f"{name} is not a valid date: {text!r} (want YYYY-MM-DD)") from error


@router.get("/memories/{memory_id:uuid}")
def memory(request: Request, memory_id: UUID, heart: OpenHeart) -> HTMLResponse:
    """Show one memory: its text, its statements, its links and uses, and its history."""
    found: Memory = heart.get(memory_id)
    events = heart.history(memory_id)
    undoable = undoable_changes(events)
    fact = found if isinstance(found, Fact) else None
    statements = heart.statements(memory_id) if fact else []
    founding = {each.id for each in statements if is_first_statement(each) and each.fact_id == memory_id}
    before = heart.predecessors(memory_id) if fact else []
    successor, perhaps = (fact.superseded_by, fact.perhaps_replaces) if fact else (None, [])
    key = {"agent_id": heart.agent.id, "id": memory_id}
    with heart.agent.transaction(heart.agent.deadline(None)) as connection:
        links = named_rows(connection, BLOCKS["links_of"], key)
        (uses,) = named_rows(connection, BLOCKS["uses_of"], key)
        disputes = named_rows(connection, of_questions(BLOCKS["contradictions_of"]), key)
        ids = {*(each.id for each in links), *perhaps, *([successor] if successor else [])}
        ids |= {side for each in disputes for side in (each.memory_a, each.memory_b)}
        known = named_memories(connection, heart.agent.id, [*ids])
    return page(
        request,
        "memory.html",
        is_live=True,
        memory=found,
        kind=events[0].memory_kind,
        text=next((value for name in TEXTS if (value := getattr(found, name, None))), "untitled"),
        longer=[(name, value) for name in LONGER if (value := getattr(found, name, None))],
        details=details_of(found),
        # What founded this fact can't be split off it, nor what was taken back.
        said=[(each, not each.taken_back_at and each.id not in founding) for each in statements],
        unrecorded=unrecorded_count(fact, statements) if fact else 0,
        events=events,
        last=undoable[0] if undoable else None,
        before=before,
        successor=successor,
        perhaps=perhaps,
        links=links,
        uses=uses,
        disputes=disputes,
        known=known,
    )


def details_of(found: Memory) -> list[tuple[str, str]]:
    values = [(field.name, getattr(found, field.name)) for field in fields(found) if field.name not in SHOWN_ELSEWHERE]
    return [(name, in_words(value)) for name, value in values if value not in (None, "", [], False)]


def in_words(value: object) -> str:
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M}"
    if isinstance(value, list):
        return "\n".join(str(each) for each in value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] (all have a text)
    return {True: "yes"}.get(value, str(value)) if isinstance(value, bool) else str(value)


@router.get("/inbox")
def inbox(request: Request, heart: OpenHeart) -> HTMLResponse:
    """Show what waits for a person: open contradictions side by side, and doubts."""
    first = {"agent_id": heart.agent.id, "limit": WAITING}
    with heart.agent.transaction(heart.agent.deadline(None)) as connection:
        pairs = named_rows(connection, of_questions(BLOCKS["open_contradictions"]), first)
        questions = open_questions(connection, heart.agent.id)
        in_doubt = [each for each in questions if each.kind == "doubt"]
        doubts = in_doubt[:WAITING]
        ids = {each for pair in pairs for each in (pair.memory_a, pair.memory_b)}
        ids |= {each for doubt in doubts for each in (doubt.later_id, doubt.earlier_id)}
        known = named_memories(connection, heart.agent.id, [*ids])
    contradictions = [(each, sides_of(each, known)) for each in pairs]
    waiting = pairs[0].waiting if pairs else 0
    shown: dict[str, Any] = {"contradictions": contradictions, "waiting": waiting, "doubts": doubts, "known": known}
    shown["in_doubt"] = len(in_doubt)
    listed = {*(pair.id for pair in pairs), *(doubt.later_id for doubt in doubts)}
    shown["alike"] = {
        (each.id, each.earlier_id): {by: many for by in ALIKE if (many := all_alike(questions, each, by))}
        for each in questions
        if each.id in listed
    }
    return page(request, "inbox.html", is_live=True, **shown)


def all_alike(questions: Sequence[OpenQuestion], one: OpenQuestion, by: Alike) -> str | None:
    """Return how many questions are like one and in what; None where it is alone, or one source has asked them all."""
    count, is_one_source = len(alike(questions, one, by)), by == "sources" and len({*(one.sources or ())}) == 1
    if count <= 1 or (is_one_source and count == len(questions)):
        return None
    shared = "from this one source" if is_one_source else "between these two sources"
    return f"{count} {shared if by == 'sources' else 'about this subject'}"


def sides_of(pair: Any, known: Mapping[UUID, ListedMemory]) -> list[tuple[str, ListedMemory]]:
    """Return both sides of a contradiction, the earlier first, each with the resolution that keeps it."""
    sides = [("a_wins", known[pair.memory_a]), ("b_wins", known[pair.memory_b])]
    return sorted(sides, key=lambda side: (side[1].at, side[1].id))


@router.get("/nights")
def nights(request: Request, heart: OpenHeart) -> HTMLResponse:
    """Show the latest nights with their figures and changes."""
    with heart.agent.transaction(heart.agent.deadline(None)) as connection:
        found = named_rows(connection, BLOCKS["list_nights"], {"agent_id": heart.agent.id, "limit": NIGHTS})
    return page(request, "nights.html", is_live=True, nights=found, most=NIGHTS)


@router.get("/nights/{day}")
def night(request: Request, day: str, query: QueryFields, heart: OpenHeart) -> HTMLResponse:
    """Show one night: its figures and its proposals with their states."""
    at = parse_night(day)
    after_kind, _, after_id = query.get("after", "").partition(CURSOR_SEPARATOR)
    key = {"agent_id": heart.agent.id, "night": at}
    conditions = {**key, "kind": query.get("kind") or None, "limit": ON_A_PAGE + 1}
    cursor = {"after_kind": after_kind or None, "after_id": checked_id("after", after_id) if after_kind else None}
    with heart.agent.transaction(heart.agent.deadline(None)) as connection:
        figures = (connection.execute(BLOCKS["night_figures"], key).fetchone() or ({},))[0]
        counts = named_rows(connection, BLOCKS["night_kinds"], key)
        found = named_rows(connection, BLOCKS["night_proposals"], {**conditions, **cursor})
        known = named_memories(connection, heart.agent.id, [one for each in found for one in each.targets])
    if not (figures or counts):
        raise NotFound(f"agent {heart.agent.id!r} has no night of {at}; see the list of nights")
    further = None
    if len(found) > ON_A_PAGE:
        last = found[ON_A_PAGE - 1]
        position = non_empty({"kind": query.get("kind", ""), "after": f"{last.kind}{CURSOR_SEPARATOR}{last.id}"})
        further = f"/nights/{at}?{urlencode(position)}"
    shown: dict[str, Any] = {"night": at, "figures": figures, "counts": counts, "kind": query.get("kind", "")}
    return page(request, "night.html", **shown, proposals=found[:ON_A_PAGE], known=known, further=further)


def parse_night(text: str) -> date:
    """Return the date of a night; raise `NotFound` for anything else, since it comes from the path."""
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise NotFound(f"not a valid night: {text!r} (want YYYY-MM-DD)") from error


@router.get("/ask")
def ask(request: Request, query: QueryFields, heart: OpenHeart) -> HTMLResponse:
    """Show what a question recalls, and the context a model would get for it, each with its reasons."""
    fields = {name: query.get(name, "") for name in ("q", "frame", "user", "project", "budget")}
    given, answers, context, missed = non_empty(fields), None, None, ""
    if question := given.get("q"):
        budget = given.get("budget")
        if budget is not None and not budget.isdecimal():
            raise InvalidInput(f"not a valid budget: {budget!r} (want a number of tokens, such as 4000)")
        frame, most = given.get("frame"), None if budget is None else int(budget)
        answers = heart.recall(question, limit=ANSWERS, frame=frame, **asker_of(given))
        context = heart.assemble_context(query=question, budget=most, frame=frame, **asker_of(given))
        missed = memories_missed(heart, answers, given)
    return page(request, "ask.html", asked=fields, answers=answers, context=context, missed=missed)


def memories_missed(heart: Heart, answers: Recall, given: Mapping[str, str]) -> str:
    """Return in words what a question did not look among, where nothing clearly answers it."""
    if answers.is_confident:
        return ""
    with heart.agent.transaction(heart.agent.deadline(None)) as connection:
        return out_of_reach(connection, heart.agent.id, user_id=given.get("user"), project_id=given.get("project"))


@router.get("/console.css")
@router.get("/console.js")
def asset(request: Request) -> Response:
    """Return the style sheet, or the script with the keyboard shortcuts of the inbox."""
    name = request.url.path.removeprefix("/")
    text = files("nous_online.interfaces.console").joinpath(name).read_bytes()
    return Response(text, media_type=ASSETS[name])


# --- buttons ---

DEFAULT_REASON = "decided in the console"
DOUBT_ACTS: Mapping[str, tuple[Resolution, str]] = {
    "earlier": ("a_wins", "replace"),
    "later": ("b_wins", "replace"),
    "keep": ("both_valid", "keep"),
    "same": ("same", "join"),
}
"""What each button of a doubt decides, and the message after it."""
ACTS = ("forget", "restore", "pin", "unpin")
"""Verbs that have a button on the page of a memory."""


@router.post("/memories/{memory_id:uuid}/undo")
def undo(memory_id: UUID, form: FormFields, heart: OpenHeart) -> RedirectResponse:
    """Undo the last change; raise `Conflict` if it is not the one that the page showed as the last."""
    undoable = undoable_changes(heart.history(memory_id))
    if undoable and str(undoable[0].id) != form.get("event"):
        raise Conflict(
            f"memory {memory_id} was changed since the page was opened: {undoable[0].action}; look at it again"
        )
    heart.undo(memory_id, reason=reason_in(form))
    return back_to(f"/memories/{memory_id}", "undo")


@router.post("/memories/{memory_id:uuid}/{act}")
def change(memory_id: UUID, act: str, form: FormFields, heart: OpenHeart) -> RedirectResponse:
    """Forget, restore, pin or unpin a memory."""
    if act not in ACTS:
        raise NotFound(f"not a button of the console: {act!r} (want {', '.join(ACTS)})")
    getattr(heart, act)(memory_id, reason=reason_in(form))
    return back_to(f"/memories/{memory_id}", act)


@router.post("/statements/{statement_id:uuid}/split")
def split(statement_id: UUID, form: FormFields, heart: OpenHeart) -> RedirectResponse:
    """Make a statement a fact of its own, and show that fact."""
    fact = heart.split(statement_id, reason=reason_in(form))
    return back_to(f"/memories/{fact.id}", "split")


@router.post("/contradictions/{contradiction_id:uuid}")
def decide(request: Request, contradiction_id: UUID, form: FormFields, heart: OpenHeart) -> Response:
    """Decide a contradiction, or reject a proposed ruling."""
    ruling = form.get("resolution", "")
    if ruling == "reject":
        heart.reject_ruling(contradiction_id)
        return back_to("/inbox", "reject")
    if ruling == "merged":
        if not form.get("text", "").strip():
            raise InvalidInput("nothing to put in the place of both: write one sentence that says what holds")
        found = next((each for each in heart.contradictions() if each.id == contradiction_id), None)
        if found is None:
            raise Conflict(f"contradiction {contradiction_id} is not open any more; look at the inbox again")
        sides = [heart.get_fact(each) for each in (found.memory_a, found.memory_b)]
        # What is pinned is left to the ruling, which an operator may make against it.
        first, replaced = sides[0], [each for each in sides if each.state == "active" and not each.is_pinned]
        reach = ReachDetails(scope=first.scope, user_id=first.user_id, project_id=first.project_id)
        # The sentence is an operator's, and trusted as what it replaces: the person saw both.
        trust = max(UNLIMITED.trust_of("operator"), *(each.trust for each in sides))
        said = ClaimDetails(source="console", source_kind="operator", trust=trust, **reach)
        merged = heart.learn(form["text"], replaces=replaced, **said).memory
        heart.resolve_contradiction(contradiction_id, "merged", merged_into=merged.id, note=reason_in(form))
        return back_to("/inbox", "merge")
    if ruling in ALIKE:
        return hold_all(request, heart, contradiction_id, ruling, form)
    if ruling not in RESOLUTIONS:
        raise InvalidInput(f"not a valid ruling: {ruling!r} (want {', '.join(RESOLUTIONS)})")
    heart.resolve_contradiction(contradiction_id, ruling, note=reason_in(form))
    return back_to("/inbox", "decide")


@router.post("/doubts")
def resolve_doubt(request: Request, form: FormFields, heart: OpenHeart) -> Response:
    """Put one of the two facts in the place of the other, merge them, or record that both hold."""
    earlier, later = (checked_id(name, form.get(name, "")) for name in ("earlier", "later"))
    if (by := form.get("act", "")) in ALIKE:
        return hold_all(request, heart, later, by, form)
    ruling, done = DOUBT_ACTS[checked_choice("act", by or "later", [*DOUBT_ACTS])]
    settle_pair(heart, earlier, later, Ruling(ruling), why=reason_in(form))
    return back_to("/inbox", done)


def hold_all(request: Request, heart: Heart, question_id: UUID, by: str, form: Mapping[str, str]) -> Response:
    """Decide of every question like one of them that both facts hold, once the person has confirmed how many."""
    questions = questions_of(heart)
    one = next((each for each in questions if each.id == question_id), None)
    if one is None:
        raise Conflict(f"question {question_id} is not open any more; look at the inbox again")
    found, many = alike(questions, one, cast("Alike", by)), all_alike(questions, one, cast("Alike", by))
    if form.get("sure") != str(len(found)):
        ids = {each for pair in found[:ON_A_PAGE] for each in (pair.earlier_id, pair.later_id)}
        with heart.agent.transaction(heart.agent.deadline(None)) as connection:
            known = named_memories(connection, heart.agent.id, [*ids])
        shown: dict[str, Any] = {"questions": found, "known": known, "many": many or len(found), "most": ON_A_PAGE}
        fields = {name: value for name, value in form.items() if name not in (FORM_TOKEN, "sure")}
        return page(request, "confirm.html", fields=fields, **shown)
    hold_both(heart, found, why=reason_in(form))
    return back_to("/inbox", "hold")


def reason_in(form: Mapping[str, str]) -> str:
    return form.get("why") or DEFAULT_REASON


def back_to(path: str, done: str) -> RedirectResponse:
    # 303, so that the browser gets the page by GET and reloading it does not send the form again.
    return RedirectResponse(f"{path}?done={done}", 303)


# --- the page about the system ---

MOST_AGENTS = 50
PLACE = "/system"
SLOW_CHECKS = frozenset({"embedder"})
"""Checks of `nous doctor` that a page does not wait for: this one loads a model."""
CONNECT_S = 3.0
POLL_S, STREAM_S = 2.0, 60.0
"""An event stream ends after a minute and the browser opens the next, so that none outlives its page by more."""


@router.get(PLACE)
def system(request: Request, heart: OpenHeart) -> HTMLResponse:
    """Show the state of the system, and what needs a person."""
    with heart.agent.transaction(heart.agent.deadline(None)) as connection:
        status = status_of(connection, heart.agent.id)
        costs = named_rows(connection, BLOCKS["costs_of_agent"], {"agent_id": heart.agent.id})
        found_keys = keys.list_keys(connection, heart.agent.id)
    hooks = heart.list_webhooks()
    looks = {**doctor.LOOKS, **doctor.SERVER_LOOKS}
    checks = [doctor.checked(name, look) for name, look in looks.items() if name not in SLOW_CHECKS]
    failed = [f"{each.name}: {each.message}" for each in checks if not each.is_ok]
    agents, why_none = all_agents(heart.agent.database.url)
    return page(
        request,
        "system.html",
        is_live=True,
        needs=[*status.needs, *failed],
        stands=status,
        held=sum(count for counts in status.memories.values() for count in counts.values()),
        states=sorted({state for counts in status.memories.values() for state in counts}),
        costs=costs,
        keys=found_keys,
        hooks=hooks,
        checks=checks,
        agents=agents,
        why_none=why_none,
    )


def all_agents(url: str) -> tuple[Sequence[Any], str | None]:
    """Return the agents of this store, or the reason why they can't be listed."""
    try:
        # The role of calls sees one agent only; that of nights sees all.
        with as_night(url, seconds=CONNECT_S) as connection:
            return named_rows(connection, BLOCKS["agents"], {"limit": MOST_AGENTS}), None
    except NousError as error:
        return [], str(error)


@router.post("/keys/{key_id}/revoke")
def revoke(key_id: str, form: FormFields, heart: OpenHeart) -> RedirectResponse:
    """Revoke a key of the REST interface for good."""
    with heart.agent.transaction(heart.agent.deadline(None)) as connection:
        keys.revoke(connection, heart.agent.id, key_id)
    return back_to(PLACE, "revoke")


@router.post("/webhooks/{webhook_id:uuid}/remove")
def remove_webhook(webhook_id: UUID, form: FormFields, heart: OpenHeart) -> RedirectResponse:
    """Send nothing more to a webhook."""
    heart.remove_webhook(webhook_id)
    return back_to(PLACE, "unhook")


@router.get("/events")
async def events(heart: OpenHeart) -> StreamingResponse:
    """Stream an event to a page at each change, for a minute; the page then reloads itself."""
    return StreamingResponse(changes(heart), media_type="text/event-stream", headers={"Cache-Control": "no-store"})


async def changes(heart: Heart) -> AsyncIterator[str]:
    """Yield a server-sent event whenever the agent's memory changed, for `STREAM_S` seconds."""
    yield "retry: 1000\n\n"  # ms, after which the browser connects again
    before = await run_in_threadpool(latest_change, heart)
    loop = asyncio.get_running_loop()
    ends_at = loop.time() + STREAM_S
    while loop.time() < ends_at:
        await asyncio.sleep(POLL_S)
        now = await run_in_threadpool(latest_change, heart)
        # The comment line keeps the connection alive, and shows when the browser has left.
        yield ": nothing\n\n" if now == before else "data: changed\n\n"
        before = now


def latest_change(heart: Heart) -> tuple[Any, ...] | None:
    """Return a value that differs after each change of the agent's memory; None while the database is unreachable."""
    try:
        with heart.agent.transaction(heart.agent.deadline(POLL_S)) as connection:
            return connection.execute(BLOCKS["latest_change"], {"agent_id": heart.agent.id}).fetchone()
    except NousError:
        return None


# --- queries beyond the verbs ---


def named_rows(
    connection: Connection, statement: LiteralString | bytes, parameters: Mapping[str, Any]
) -> Sequence[Any]:
    """Return the rows of a query that only a page reads, each column under its name in `console.sql`."""
    return connection.cursor(row_factory=namedtuple_row).execute(statement, parameters).fetchall()
