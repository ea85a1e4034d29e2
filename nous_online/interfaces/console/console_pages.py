"""The pages of the console, and what their buttons do: each is a verb, sent by a form, and leads back to a page."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, fields
from datetime import UTC, date, datetime, time, timedelta
from importlib.resources import files
from typing import Any, cast, get_args
from urllib.parse import urlencode
from uuid import UUID

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from psycopg import Connection
from psycopg.rows import class_row
from starlette.concurrency import run_in_threadpool

from nous_online.context.context_lines import Context
from nous_online.core.details import AskerDetails, RecallDetails
from nous_online.core.domain import Fact, Memory, MemoryKind, Statement
from nous_online.core.errors import Conflict, InvalidInput, NotFound, NousError
from nous_online.core.validation import checked_choice, checked_id
from nous_online.database.connection import as_night
from nous_online.database.statements import statements
from nous_online.heart import Heart
from nous_online.interfaces import doctor
from nous_online.interfaces.api import keys
from nous_online.interfaces.console import lookups
from nous_online.interfaces.console.rendering import Asked, Filled, OpenHeart, filled, page
from nous_online.memories.contradictions import Resolution
from nous_online.memories.status import status_of
from nous_online.memories.store import is_first_statement, unrecorded_count
from nous_online.memories.undoing import effective_changes
from nous_online.recall.recall import Recall

router = APIRouter()
KINDS: tuple[MemoryKind, ...] = get_args(MemoryKind)
CURRENT = ("active", "open", "closed", "review")
STATES = (*CURRENT, "superseded", "archived", "quarantined")
ON_A_PAGE, ANSWERS, WAITING, NIGHTS = 50, 20, 25, 60
CONDITIONS = ("about", "source", "user")
SPECIAL = re.compile(r"[%_\\]")
"""What stands for other signs in a pattern of SQL."""
PARTING = "~"
"""Between the moment and the id of the place where a page ended."""
TEXTS = ("content", "title", "name", "trigger")
"""The attribute that says of a memory of each kind what it is."""
LONGER = ("summary", "detail")
TOLD_ELSEWHERE = frozenset(
    {*TEXTS, *LONGER, "id", "state", "row_version", "superseded_by", "succession", "perhaps_replaces"}
)
ASSETS = {"console.css": "text/css", "console.js": "text/javascript"}


@router.get("/")
def memories(request: Request, asked: Asked, heart: OpenHeart) -> HTMLResponse:
    """Show the answers to a question, or the latest memories that fit."""
    fields_of_form = {name: asked.get(name, "") for name in ("q", "kind", "state", *CONDITIONS, "since", "until")}
    told = filled(fields_of_form)
    shown: dict[str, Any] = {"asked": fields_of_form, "is_asked": bool(told), "kinds": KINDS, "states": STATES}
    if question := told.get("q"):
        details: RecallDetails = {"limit": ON_A_PAGE, "kinds": kinds_of(told), "user_id": told.get("user")}
        return page(
            request, "memories.html", **shown, answers=heart.recall(question, **details), found=[], further=None
        )
    wanted = listing(told, asked.get("before", ""))
    with heart.agent.transaction(heart.agent.deadline(None)) as connection:
        found = lookups.list_memories(connection, heart.agent.id, wanted)
    further = None
    if len(found) > ON_A_PAGE:
        last = found[ON_A_PAGE - 1]
        further = f"/?{urlencode({**told, 'before': f'{last.at.isoformat()}{PARTING}{last.id}'})}"
    shown["is_live"] = not asked.get("before")
    return page(request, "memories.html", **shown, answers=None, found=found[:ON_A_PAGE], further=further)


def listing(told: Mapping[str, str], before: str) -> dict[str, Any]:
    """Return the conditions of a listing; raise `InvalidInput` for what is no kind, state, day or place."""
    state = told.get("state", "current")
    known = {"current": CURRENT, "any": STATES, **{each: (each,) for each in STATES}}
    before_at, before_id = place_of(before)
    return {
        "kinds": list(kinds_of(told) or KINDS),
        "states": list(known[checked_choice("state", state, [*known])]),
        "about": pattern_of(told.get("about")),
        "source": pattern_of(told.get("source")),
        "user_id": told.get("user"),
        "since": day_of("since", told.get("since")),
        "until": day_of("until", told.get("until"), later=1),
        "before_at": before_at,
        "before_id": before_id,
        "limit": ON_A_PAGE + 1,
    }


def pattern_of(part: str | None) -> str | None:
    """Return the pattern of texts that contain a part; None for any text."""
    return None if part is None else "%" + SPECIAL.sub(r"\\\g<0>", part) + "%"


def kinds_of(told: Mapping[str, str]) -> tuple[MemoryKind, ...] | None:
    """Return the kinds that were asked for; None for all."""
    if "kind" not in told:
        return None
    return (checked_choice("kind", told["kind"], KINDS),)


def day_of(name: str, text: str | None, *, later: int = 0) -> datetime | None:
    """Return the beginning of a day in UTC, or of one that is so many days later."""
    if not text:
        return None
    try:
        return datetime.combine(date.fromisoformat(text), time(), UTC) + timedelta(days=later)
    except (ValueError, OverflowError) as error:
        raise InvalidInput(f"{name} is not a valid date: {text!r} (want YYYY-MM-DD)") from error


def place_of(text: str) -> tuple[datetime | None, UUID | None]:
    """Return where a page ended; nowhere for the first."""
    if not text:
        return None, None
    at, _, memory_id = text.partition(PARTING)
    try:
        return datetime.fromisoformat(at).astimezone(UTC), UUID(memory_id)
    except (ValueError, OverflowError) as error:
        raise InvalidInput(f"not a valid place in the list: {text!r}; begin at its first page") from error


@router.get("/memories/{memory_id:uuid}")
def memory(request: Request, memory_id: UUID, heart: OpenHeart) -> HTMLResponse:
    """Show one memory: what it says, what it rests on, and what became of it."""
    found: Memory = heart.get(memory_id)
    events = heart.history(memory_id)
    left = effective_changes(events)
    fact = found if isinstance(found, Fact) else None
    said = heart.statements(memory_id) if fact else []
    before = heart.predecessors(memory_id) if fact else []
    successor, perhaps = (fact.superseded_by, fact.perhaps_replaces) if fact else (None, [])
    with heart.agent.transaction(heart.agent.deadline(None)) as connection:
        links = lookups.links_of(connection, heart.agent.id, memory_id)
        uses = lookups.uses_of(connection, heart.agent.id, memory_id)
        disputes = lookups.contradictions_of(connection, heart.agent.id, memory_id)
        ids = {*(each.id for each in links), *perhaps, *([successor] if successor else [])}
        ids |= {side for each in disputes for side in (each.memory_a, each.memory_b)}
        known = lookups.named_memories(connection, heart.agent.id, [*ids])
    return page(
        request,
        "memory.html",
        is_live=True,
        memory=found,
        kind=events[0].memory_kind,
        text=next((value for name in TEXTS if (value := getattr(found, name, None))), "untitled"),
        longer=[(name, value) for name in LONGER if (value := getattr(found, name, None))],
        details=details_of(found),
        said=[(each, can_split(each, found)) for each in said],
        unrecorded=unrecorded_count(fact, said) if fact else 0,
        events=events,
        last=left[0] if left else None,
        before=before,
        successor=successor,
        perhaps=perhaps,
        links=links,
        uses=uses,
        disputes=disputes,
        known=known,
    )


def can_split(said: Statement, fact: Memory) -> bool:
    """Tell whether a statement can become a fact of its own: it did not give this fact its words, and it counts."""
    return said.taken_back_at is None and not (is_first_statement(said) and said.fact_id == fact.id)


def details_of(found: Memory) -> list[tuple[str, str]]:
    """Return what is known of a memory besides its text, by name; what says nothing is left out."""
    told = [(field.name, getattr(found, field.name)) for field in fields(found) if field.name not in TOLD_ELSEWHERE]
    return [(name, in_words(value)) for name, value in told if value not in (None, "", [], False)]


def in_words(value: object) -> str:
    """Return the value of an attribute as people read it."""
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M}"
    if isinstance(value, list):
        return "\n".join(str(each) for each in value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] (all have a text)
    return {True: "yes"}.get(value, str(value)) if isinstance(value, bool) else str(value)


@router.get("/inbox")
def inbox(request: Request, heart: OpenHeart) -> HTMLResponse:
    """Show what waits for a person: open contradictions side by side, and what is in doubt."""
    with heart.agent.transaction(heart.agent.deadline(None)) as connection:
        pairs = lookups.open_contradictions(connection, heart.agent.id, limit=WAITING)
        doubts = lookups.doubts(connection, heart.agent.id, limit=WAITING)
        ids = {each for pair in pairs for each in (pair.memory_a, pair.memory_b)}
        ids |= {each for doubt in doubts for each in (doubt.later_id, doubt.earlier_id)}
        known = lookups.named_memories(connection, heart.agent.id, [*ids])
    contradictions = [(each, sides_of(each, known)) for each in pairs]
    waiting = pairs[0].waiting if pairs else 0
    shown: dict[str, Any] = {"contradictions": contradictions, "waiting": waiting, "doubts": doubts, "known": known}
    return page(request, "inbox.html", is_live=True, **shown)


def sides_of(
    pair: lookups.OpenContradiction, known: Mapping[UUID, lookups.ListedMemory]
) -> list[tuple[str, lookups.ListedMemory]]:
    """Return both sides of a contradiction with the resolution by which each wins, the earlier one first."""
    sides = [("a_wins", known[pair.memory_a]), ("b_wins", known[pair.memory_b])]
    return sorted(sides, key=lambda side: (side[1].at, side[1].id))


@router.get("/nights")
def nights(request: Request, heart: OpenHeart) -> HTMLResponse:
    """Show the latest nights, with what each measured and changed."""
    with heart.agent.transaction(heart.agent.deadline(None)) as connection:
        found = lookups.list_nights(connection, heart.agent.id, limit=NIGHTS)
    return page(request, "nights.html", is_live=True, nights=found, most=NIGHTS)


@router.get("/nights/{day}")
def night(request: Request, day: str, asked: Asked, heart: OpenHeart) -> HTMLResponse:
    """Show one night: its figures, what it proposed, and what became of that."""
    at = night_of(day)
    after_kind, _, after_id = asked.get("after", "").partition(PARTING)
    wanted = {"night": at, "kind": asked.get("kind") or None, "limit": ON_A_PAGE + 1}
    place = {"after_kind": after_kind or None, "after_id": checked_id("after", after_id) if after_kind else None}
    with heart.agent.transaction(heart.agent.deadline(None)) as connection:
        figures = lookups.night_figures(connection, heart.agent.id, at)
        counts = lookups.night_kinds(connection, heart.agent.id, at)
        found = lookups.night_proposals(connection, heart.agent.id, {**wanted, **place})
        known = lookups.named_memories(connection, heart.agent.id, [one for each in found for one in each.targets])
    if not (figures or counts):
        raise NotFound(f"agent {heart.agent.id!r} has no night of {at}; see the list of nights")
    further = None
    if len(found) > ON_A_PAGE:
        last = found[ON_A_PAGE - 1]
        told = filled({"kind": asked.get("kind", ""), "after": f"{last.kind}{PARTING}{last.id}"})
        further = f"/nights/{at}?{urlencode(told)}"
    shown: dict[str, Any] = {"night": at, "figures": figures, "counts": counts, "kind": asked.get("kind", "")}
    return page(request, "night.html", **shown, proposals=found[:ON_A_PAGE], known=known, further=further)


def night_of(text: str) -> date:
    """Return the day of a night; raise `NotFound` for what is none."""
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise NotFound(f"not a valid night: {text!r} (want YYYY-MM-DD)") from error


@router.get("/ask")
def ask(request: Request, asked: Asked, heart: OpenHeart) -> HTMLResponse:
    """Show what a question recalls and which context would be put before a model, each with its reasons."""
    told = {name: asked.get(name, "") for name in ("q", "frame", "user", "project", "budget")}
    answers, context = answer(heart, filled(told)) if told["q"] else (None, None)
    return page(request, "ask.html", asked=told, answers=answers, context=context)


def answer(heart: Heart, told: Mapping[str, str]) -> tuple[Recall, Context]:
    """Return what is recalled for a question, and the context assembled for it."""
    budget = told.get("budget")
    if budget is not None and not budget.isdecimal():
        raise InvalidInput(f"not a valid budget: {budget!r} (want a number of tokens, such as 4000)")
    whose: AskerDetails = {"user_id": told.get("user"), "project_id": told.get("project")}
    frame, most = told.get("frame"), None if budget is None else int(budget)
    answers = heart.recall(told["q"], limit=ANSWERS, frame=frame, **whose)
    return answers, heart.assemble_context(query=told["q"], budget=most, frame=frame, **whose)


@router.get("/console.css")
@router.get("/console.js")
def asset(request: Request) -> Response:
    """Return the one sheet of styles, or the keys of the inbox."""
    name = request.url.path.removeprefix("/")
    text = files("nous_online.interfaces.console").joinpath(name).read_bytes()
    return Response(text, media_type=ASSETS[name])


# --- what the buttons do ---

WHY = "decided in the console"
ACTS: Mapping[str, Callable[[Heart, UUID, str], object]] = {
    "forget": lambda heart, memory_id, why: heart.forget(memory_id, reason=why),
    "restore": lambda heart, memory_id, why: heart.restore(memory_id, reason=why),
    "pin": lambda heart, memory_id, why: heart.pin(memory_id, reason=why),
    "unpin": lambda heart, memory_id, why: heart.unpin(memory_id, reason=why),
}


@router.post("/memories/{memory_id:uuid}/undo")
def undo(memory_id: UUID, form: Filled, heart: OpenHeart) -> RedirectResponse:
    """Take back the change the page showed as the last one; another that came since stays, and is told of."""
    left = effective_changes(heart.history(memory_id))
    if left and str(left[0].id) != form.get("event"):
        raise Conflict(f"memory {memory_id} was changed since the page was opened: {left[0].action}; look at it again")
    heart.undo(memory_id, reason=why_in(form))
    return back_to(f"/memories/{memory_id}", "undo")


@router.post("/memories/{memory_id:uuid}/{act}")
def change(memory_id: UUID, act: str, form: Filled, heart: OpenHeart) -> RedirectResponse:
    """Forget, restore, pin or unpin a memory."""
    if act not in ACTS:
        raise NotFound(f"no button of the console is called {act!r}")
    ACTS[act](heart, memory_id, why_in(form))
    return back_to(f"/memories/{memory_id}", act)


@router.post("/statements/{statement_id:uuid}/split")
def split(statement_id: UUID, form: Filled, heart: OpenHeart) -> RedirectResponse:
    """Make a statement a fact of its own, and show that."""
    fact = heart.split(statement_id, reason=why_in(form))
    return back_to(f"/memories/{fact.id}", "split")


@router.post("/contradictions/{contradiction_id:uuid}")
def decide(contradiction_id: UUID, form: Filled, heart: OpenHeart) -> RedirectResponse:
    """Decide a contradiction, or reject how somebody proposed to."""
    ruling = form.get("resolution", "")
    if ruling == "reject":
        heart.reject_ruling(contradiction_id)
        return back_to("/inbox", "reject")
    if ruling == "merged":
        merge(heart, contradiction_id, form)
        return back_to("/inbox", "merge")
    if ruling not in ("a_wins", "b_wins", "both_valid"):
        raise InvalidInput(f"not a valid ruling: {ruling!r} (want a_wins, b_wins, both_valid or merged)")
    heart.resolve_contradiction(contradiction_id, cast("Resolution", ruling), note=why_in(form))
    return back_to("/inbox", "decide")


def merge(heart: Heart, contradiction_id: UUID, form: Mapping[str, str]) -> None:
    """Put one sentence of the person's own in the place of both sides, for the same user and project.

    What was cut off between the two steps is gone on with when it is sent again.
    """
    if not form.get("text", "").strip():
        raise InvalidInput("nothing to put in the place of both: write one sentence that says what holds")
    found = next((each for each in heart.contradictions() if each.id == contradiction_id), None)
    if found is None:
        raise Conflict(f"contradiction {contradiction_id} is not open any more; look at the inbox again")
    sides = [heart.get_fact(each) for each in (found.memory_a, found.memory_b)]
    told = heart.learn(
        form["text"],
        source="console",
        scope=sides[0].scope,
        user_id=sides[0].user_id,
        project_id=sides[0].project_id,
        replaces=[each for each in sides if each.state == "active"],
    ).memory
    heart.resolve_contradiction(contradiction_id, "merged", merged_into=told.id, note=why_in(form))


@router.post("/doubts")
def settle(form: Filled, heart: OpenHeart) -> RedirectResponse:
    """Put the later fact in the place of the earlier one, which it perhaps replaced, or settle that both hold."""
    earlier, later = (checked_id(name, form.get(name, "")) for name in ("earlier", "later"))
    if form.get("act") == "keep":
        heart.keep_both(later, earlier, reason=why_in(form))
        return back_to("/inbox", "keep")
    heart.supersede_fact(earlier, later, reason=why_in(form))
    return back_to("/inbox", "replace")


def why_in(form: Mapping[str, str]) -> str:
    """Return the reason a person gave, or that it was a person."""
    return form.get("why") or WHY


def back_to(path: str, done: str) -> RedirectResponse:
    """Lead to a page that shows what was done; reloading it does nothing again."""
    return RedirectResponse(f"{path}?done={done}", 303)


# --- the page about the system ---

SQL = statements("nous_online.interfaces.console", "console_system.sql")
MOST_AGENTS = 50
PLACE = "/system"
SLOW_LOOKS = frozenset({"embedder"})
"""What `nous doctor` looks at and a page does not wait for: it loads a model."""
LOOK_S = 3.0
LOOK_EVERY_S, STREAM_S = 2.0, 60.0
"""A page's stream ends after a minute, and the browser opens the next: none outlives its page by more."""


@dataclass(frozen=True)
class MonthlyCost:
    """What one model cost in a month, for one purpose."""

    month: str
    purpose: str
    model: str
    requests: int
    failed: int
    input_tokens: int
    output_tokens: int
    usd: float


@dataclass(frozen=True)
class AgentLine:
    """An agent, roughly how much it remembers, and the last night it was in."""

    id: str
    memories: int
    night: date | None


@router.get(PLACE)
def system(request: Request, heart: OpenHeart) -> HTMLResponse:
    """Show how things stand, and what needs a person."""
    own = {"agent_id": heart.agent.id}
    with heart.agent.transaction(heart.agent.deadline(None)) as connection:
        status = status_of(connection, heart.agent.id)
        with connection.cursor(row_factory=class_row(MonthlyCost)) as cursor:
            costs = cursor.execute(SQL["costs_of_agent"], own).fetchall()
        found_keys = keys.listed(connection, heart.agent.id)
    hooks = heart.list_webhooks()
    checks = looked_at()
    failed = [f"{each.name}: {each.message}" for each in checks if not each.is_ok]
    agents, why_none = all_agents(heart.agent.database.url)
    return page(
        request,
        "system.html",
        is_live=True,
        needs=[*status.needs, *failed],
        stands=status,
        states=sorted({state for counts in status.memories.values() for state in counts}),
        costs=costs,
        keys=found_keys,
        hooks=hooks,
        checks=checks,
        agents=agents,
        why_none=why_none,
    )


def looked_at() -> list[doctor.Check]:
    """Return what `nous doctor` finds, as far as it is quick."""
    looks = {**doctor.LOOKS, **doctor.SERVER_LOOKS}
    return [doctor.checked(name, look) for name, look in looks.items() if name not in SLOW_LOOKS]


def all_agents(url: str) -> tuple[list[AgentLine], str | None]:
    """Return the agents of this store, or why they can't be listed: that takes the login of nights."""
    try:
        with as_night(url, seconds=LOOK_S) as connection:
            return agents_in(connection), None
    except NousError as error:
        return [], str(error)


def agents_in(connection: Connection[Any]) -> list[AgentLine]:
    """Return the agents of a store."""
    with connection.cursor(row_factory=class_row(AgentLine)) as cursor:
        return cursor.execute(SQL["agents"], {"limit": MOST_AGENTS}).fetchall()


@router.post("/keys/{key_id}/revoke")
def revoke(key_id: str, form: Filled, heart: OpenHeart) -> RedirectResponse:
    """Revoke a key of the REST interface for good."""
    with heart.agent.transaction(heart.agent.deadline(None)) as connection:
        keys.revoke(connection, heart.agent.id, key_id)
    return back_to(PLACE, "revoke")


@router.post("/webhooks/{webhook_id:uuid}/remove")
def remove_webhook(webhook_id: UUID, form: Filled, heart: OpenHeart) -> RedirectResponse:
    """Send nothing more to a webhook."""
    heart.remove_webhook(webhook_id)
    return back_to(PLACE, "unhook")


@router.get("/events")
async def events(heart: OpenHeart) -> StreamingResponse:
    """Tell a page, for a minute, that something changed; it then shows itself anew."""
    return StreamingResponse(changes(heart), media_type="text/event-stream", headers={"Cache-Control": "no-store"})


async def changes(heart: Heart) -> AsyncIterator[str]:
    """Yield an event whenever the agent's memory changed, until the stream has lived long enough."""
    yield "retry: 1000\n\n"
    before = await run_in_threadpool(latest_change, heart)
    loop = asyncio.get_running_loop()
    ends_at = loop.time() + STREAM_S
    while loop.time() < ends_at:
        await asyncio.sleep(LOOK_EVERY_S)
        now = await run_in_threadpool(latest_change, heart)
        yield ": nothing\n\n" if now == before else "data: changed\n\n"
        before = now


def latest_change(heart: Heart) -> tuple[Any, ...] | None:
    """Return by what two looks differ where something changed between them; nothing while the store can't be asked."""
    try:
        with heart.agent.transaction(heart.agent.deadline(LOOK_EVERY_S)) as connection:
            return connection.execute(SQL["latest_change"], {"agent_id": heart.agent.id}).fetchone()
    except NousError:
        return None
