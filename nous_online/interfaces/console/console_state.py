"""What every page of a console goes by: whose memory it shows, and what its forms carry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Annotated
from urllib.parse import parse_qsl

from fastapi import Depends, Request

from nous_online.core.errors import Forbidden
from nous_online.core.settings import settings
from nous_online.heart import Heart
from nous_online.interfaces.api.gate import read_body
from nous_online.interfaces.api.hearts import Hearts
from nous_online.interfaces.request_checks import is_same

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
