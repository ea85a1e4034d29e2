"""What the buttons of the console do: each is a verb, sent by a form, and leads back to a page that shows it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast
from uuid import UUID

from fastapi import APIRouter
from fastapi.responses import RedirectResponse

from nous_online.core.errors import Conflict, InvalidInput, NotFound
from nous_online.core.validation import checked_id
from nous_online.heart import Heart
from nous_online.interfaces.console.console_state import Filled, OpenHeart
from nous_online.memories.contradictions import Resolution
from nous_online.memories.undoing import standing

router = APIRouter()
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
    left = standing(heart.history(memory_id))
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
