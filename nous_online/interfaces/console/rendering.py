"""HTML pages from templates: texts of the store are escaped, and hidden characters are shown by their codes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import parse_qsl

from fastapi import Depends, Request
from fastapi.responses import HTMLResponse
from markupsafe import Markup, escape

from nous_online.core.errors import Forbidden
from nous_online.core.rights import ACTS_AS
from nous_online.core.settings import settings
from nous_online.core.validation import HIDDEN, visible
from nous_online.heart import Heart
from nous_online.interfaces.api.gate import read_body
from nous_online.interfaces.api.hearts import Hearts
from nous_online.interfaces.request_checks import secrets_match
from nous_online.memories.learning import is_partial

if TYPE_CHECKING:
    from jinja2 import Environment


MOST_FORM_BYTES = 64 * 1024  # a sentence for a merge and a reason are far below
FORM_S = 10.0
COMMAND = re.compile(r"`([^`\n]+)`")
UNSEEN = '<span class="unseen" title="a character nobody sees">U+{:04X}</span>'
FORM_TOKEN = "form"  # noqa: S105 (the name of the field)
FORM = "application/x-www-form-urlencoded"


@dataclass(frozen=True)
class ConsoleState:
    """The state of one console: its hearts, the agent it shows, its token, and whether it may change anything."""

    hearts: Hearts
    agent_id: str
    token: str = field(repr=False)
    is_read_only: bool = False

    @property
    def form_token(self) -> str:
        """The token in every form of this start, which a page of another origin can't read (CSRF)."""
        return sha256(f"form {self.token}".encode()).hexdigest()


def open_heart(request: Request) -> Heart:
    console: ConsoleState = request.app.state.console
    return console.hearts.of(console.agent_id, seconds=settings().deadline_s)


def query_of(request: Request) -> dict[str, str]:
    return {name: value.strip() for name, value in request.query_params.items()}


async def form_of(request: Request) -> dict[str, str]:
    """Return the fields of a form, stripped of blanks; raise `Forbidden` for a foreign form or a read-only console."""
    console: ConsoleState = request.app.state.console
    if console.is_read_only:
        raise Forbidden("this console only shows; start it without --read-only to change something")
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != FORM:
        raise Forbidden("what was sent is no form of this console; open the page and use its button")
    body = await read_body(request.receive, most=MOST_FORM_BYTES, seconds=FORM_S) or b""
    ACTS_AS.set("operator")  # of this request: each has a context of its own
    fields = dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=20))
    if not secrets_match(fields.get(FORM_TOKEN, ""), console.form_token):
        raise Forbidden("the form is of an earlier start of the console; open the page again and repeat it")
    request.state.form = {name: value.strip() for name, value in fields.items()}
    return request.state.form


OpenHeart = Annotated[Heart, Depends(open_heart)]
QueryFields = Annotated[Mapping[str, str], Depends(query_of)]
FormFields = Annotated[Mapping[str, str], Depends(form_of)]


# --- pages from templates ---

PLACES = (("/", "Memories"), ("/inbox", "Inbox"), ("/nights", "Nights"), ("/ask", "Ask"), ("/system", "System"))
DONE = {
    "forget": "Forgotten. It stays in the store; restore brings it back.",
    "restore": "Restored.",
    "pin": "Pinned: no night archives or condenses it.",
    "unpin": "Unpinned: nights treat it like any other again.",
    "undo": "Taken back.",
    "split": "Split off: this is the fact it became. Undo joins the two again.",
    "hold": "Decided of all of them: both hold. What was in doubt comes back by undo on the page of the later fact.",
    "decide": "Decided. What gave way stays in the store; undo on its page brings it back.",
    "reject": "The proposed ruling was rejected; the contradiction stays open.",
    "merge": "Your sentence holds now. Both sides stay in the store; undo on their pages brings them back.",
    "join": "Merged: what was said for one counts for the other. Undo on the page of the one that left brings it back.",
    "keep": "Both stay, side by side. Undo on the page of the later one opens the doubt again.",
    "revoke": "Revoked: the key opens nothing any more.",
    "unhook": "Removed: nothing more is sent there, and its secret is forgotten.",
    "replace": "Replaced. Undo on the page of the fact that left brings it back.",
}
"""Messages after a change, by the `done` parameter of the URL: a link can choose one, but can't write its own."""


def page(request: Request, template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
    console: ConsoleState = request.app.state.console
    common = {
        "agent": console.agent_id,
        "is_read_only": console.is_read_only,
        "form_token": console.form_token,
        "places": PLACES,
        "path": request.url.path,
        "status": status,
        "is_live": False,
        "done": DONE.get(request.query_params.get("done", "")),
    }
    text = templates().get_template(template).render({**common, **values})
    # A memory may hold lone surrogates, which UTF-8 can't encode.
    return HTMLResponse(text.encode("utf-8", "backslashreplace"), status)


@cache
def templates() -> Environment:
    """Return the template environment, which escapes every value that is not `Markup`."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("nous_online.interfaces.console", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=visible_value,
    )
    filters: list[Callable[..., Any]] = [shown, shown_with_code, cut, found, moment, words, figure, is_partial]
    named = {each.__name__: each for each in filters}
    environment.filters.update(named)  # pyright: ignore[reportUnknownMemberType] (the library does not say)
    return environment


def visible_value(value: object) -> object:
    """Return a value for a template; of a text that is not `Markup`, only the visible characters."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def shown(text: object) -> Markup:
    """Return a text escaped, with the code of each hidden character in its place."""
    escaped = escape("" if text is None else str(text))
    return Markup(HIDDEN.sub(lambda found: UNSEEN.format(ord(found[0])), escaped))  # noqa: S704 (it was escaped)


def shown_with_code(text: object) -> Markup:
    """Return a sentence of the program as `shown` does, with commands between backticks as code."""
    return Markup(COMMAND.sub(r"<code>\1</code>", str(shown(text))))  # noqa: S704 (it was escaped)


def cut(text: object, most: int = 280) -> str:
    whole = "" if text is None else str(text)
    return whole if len(whole) <= most else f"{whole[: most - 1]}…"


def moment(at: datetime | date | str | None) -> Markup:
    """Return a moment or day, in UTC, as an HTML time element."""
    if at is None:
        return Markup("never")
    whole = at if isinstance(at, str) else at.isoformat()
    return Markup('<time datetime="{}">{}</time>').format(whole, whole[:16].replace("T", " "))


def found(at: datetime) -> Markup:
    """Return when a question was found: a night dates what it finds by its end, which may still be to come."""
    at = at.astimezone(UTC)
    if at.time() == time():
        return Markup("in the night of {}").format(moment(at.date() - timedelta(days=1)))
    return moment(at)


def words(value: object) -> str:
    """Return a name of the code as words: `is_pinned` as `is pinned`."""
    return str(value).replace("_", " ")


def figure(value: object) -> str:
    """Return a number formatted for people, anything else as text."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3g}" if abs(value) < 100 else f"{value:,.0f}"  # noqa: PLR2004


def non_empty(fields: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in fields.items() if value}
