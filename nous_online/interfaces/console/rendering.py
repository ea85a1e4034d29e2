"""Pages from templates: everything from the store is escaped, and what nobody would see in it is spelled out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import parse_qsl

from fastapi import Depends, Request
from fastapi.responses import HTMLResponse
from markupsafe import Markup, escape

from nous_online.core.errors import Forbidden
from nous_online.core.settings import settings
from nous_online.core.texts import HIDDEN, visible
from nous_online.heart import Heart
from nous_online.interfaces.api.gate import read_body
from nous_online.interfaces.api.hearts import Hearts
from nous_online.interfaces.request_checks import is_same

if TYPE_CHECKING:
    from jinja2 import Environment


MOST_FORM_BYTES = 64 * 1024
FORM_S = 10.0
FORM_TOKEN = "form"  # noqa: S105 (the name of a field)
FORM = "application/x-www-form-urlencoded"


@dataclass(frozen=True)
class ConsoleState:
    """One console: whose memory it shows, and whether it may change it."""

    hearts: Hearts
    agent_id: str
    token: str = field(repr=False)
    is_read_only: bool = False

    @property
    def form_token(self) -> str:
        """What each form of this start carries, and a page of another origin can't know."""
        return sha256(f"form {self.token}".encode()).hexdigest()


def open_heart(request: Request) -> Heart:
    """Return the memory the console shows, opened if need be."""
    console: ConsoleState = request.app.state.console
    return console.hearts.of(console.agent_id, seconds=settings().deadline_s)


def asked_in(request: Request) -> dict[str, str]:
    """Return what an address asks for, without blanks around it."""
    return {name: value.strip() for name, value in request.query_params.items()}


async def form_in(request: Request) -> dict[str, str]:
    """Return the fields of a form of the console; raise `Forbidden` for what is none, and where nothing may change."""
    console: ConsoleState = request.app.state.console
    if console.is_read_only:
        raise Forbidden("this console only shows; start it without --read-only to change something")
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != FORM:
        raise Forbidden("what was sent is no form of this console; open the page and use its button")
    body = await read_body(request.receive, most=MOST_FORM_BYTES, seconds=FORM_S) or b""
    told = dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=20))
    if not is_same(told.get(FORM_TOKEN, ""), console.form_token):
        raise Forbidden("the form is of an earlier start of the console; open the page again and repeat it")
    return {name: value.strip() for name, value in told.items()}


OpenHeart = Annotated[Heart, Depends(open_heart)]
Asked = Annotated[Mapping[str, str], Depends(asked_in)]
Filled = Annotated[Mapping[str, str], Depends(form_in)]


# --- pages from templates ---

PLACES = (("/", "Memories"), ("/inbox", "Inbox"), ("/nights", "Nights"), ("/ask", "Ask"), ("/system", "System"))
DONE = {
    "forget": "Forgotten. It stays in the store; restore brings it back.",
    "restore": "Restored.",
    "pin": "Pinned: no night archives or condenses it.",
    "unpin": "Unpinned: nights treat it like any other again.",
    "undo": "Taken back.",
    "split": "Split off: this is the fact it became. Undo joins the two again.",
    "decide": "Decided. What gave way stays in the store; undo on its page brings it back.",
    "reject": "The proposed ruling was rejected; the contradiction stays open.",
    "merge": "Your sentence holds now. Both sides stay in the store; undo on their pages brings them back.",
    "keep": "Both stay, side by side. Undo on the page of the later one opens the doubt again.",
    "revoke": "Revoked: the key opens nothing any more.",
    "unhook": "Removed: nothing more is sent there, and its secret is forgotten.",
    "replace": "Replaced. Undo on the page of the earlier fact brings it back.",
}
"""What a page says of the change that led to it: an address names one of these and can't say anything else."""


def page(request: Request, template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
    """Return a page of the console."""
    told: ConsoleState = request.app.state.console
    usual = {
        "agent": told.agent_id,
        "is_read_only": told.is_read_only,
        "form_token": told.form_token,
        "places": PLACES,
        "path": request.url.path,
        "status": status,
        "is_live": False,
        "done": DONE.get(request.query_params.get("done", "")),
    }
    text = templates().get_template(template).render({**usual, **values})
    return HTMLResponse(text.encode("utf-8", "backslashreplace"), status)


@cache
def templates() -> Environment:
    """Return the templates, which escape every value that is not marked as ours."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("nous_online.interfaces.console", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=seen,
    )
    ours: dict[str, Callable[..., Any]] = {
        "shown": shown,
        "cut": cut,
        "moment": moment,
        "words": words,
        "figure": figure,
    }
    environment.filters.update(ours)  # pyright: ignore[reportUnknownMemberType] (the library does not say)
    return environment


def seen(value: object) -> object:
    """Return what a template puts in a page: of a text that is not marked as ours, the characters a person sees."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def shown(text: object) -> Markup:
    """Return a text as a page shows it: inert, and with the code of each character that nobody would see."""
    return Markup(HIDDEN.sub(spelled, str(escape("" if text is None else str(text)))))  # noqa: S704 (it was escaped)


def spelled(found: Any) -> str:
    """Return the code of a hidden character, marked as ours."""
    return f'<span class="unseen" title="a character nobody sees">U+{ord(found[0]):04X}</span>'


def cut(text: object, most: int = 280) -> str:
    """Return the beginning of a text where it is longer than a list shows."""
    whole = "" if text is None else str(text)
    return whole if len(whole) <= most else f"{whole[: most - 1]}…"


def moment(at: datetime | date | str | None) -> Markup:
    """Return a moment, or a day, as people read it, in UTC."""
    if at is None:
        return Markup("never")
    whole = at if isinstance(at, str) else at.isoformat()
    return Markup('<time datetime="{}">{}</time>').format(whole, whole[:16].replace("T", " "))


def words(value: object) -> str:
    """Return a name of the code as words: `is_pinned` as `is pinned`."""
    return str(value).replace("_", " ")


def figure(value: object) -> str:
    """Return a figure for people; what is no number as it stands."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3g}" if abs(value) < 100 else f"{value:,.0f}"  # noqa: PLR2004


def filled(told: Mapping[str, str]) -> dict[str, str]:
    """Return what was told that says something."""
    return {name: value for name, value in told.items() if value}
