"""Everything a call can raise, as one of six kinds of failure in words that hold neither key nor memory."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from email.utils import mktime_tz, parsedate_tz
from typing import TYPE_CHECKING, Any

from nous_online.claude.reading import fields, kind_of_error, said
from nous_online.claude.replies import Failure, LLMError
from nous_online.errors import DeadlineExceeded, Unavailable

if TYPE_CHECKING:
    import httpx

FIRST_PAUSE_S = 0.25
LONGEST_PAUSE_S = 8.0
REDIRECTS = range(300, 400)
FIXES = {
    401: "check ANTHROPIC_API_KEY",
    403: "use a key that may do this, or another model",
    404: "check the name of what was asked for, and ANTHROPIC_BASE_URL",
    413: "send less at once",
}


def failure_of(error: Exception, *, host: str, key: str) -> LLMError:
    """Return the failure behind any exception of a call to `host`; `key` is left out of whatever it says."""
    import httpx

    if isinstance(error, LLMError):
        return error
    if isinstance(error, httpx.HTTPStatusError):
        return _answered(error.response, host=host, key=key)
    if isinstance(error, (httpx.HTTPError, httpx.InvalidURL)):
        return _unreached(error, host=host, key=key)
    if isinstance(error, Unavailable):
        return LLMError(f"Claude at {host} gave no answer: {error}", Failure.TRANSIENT)
    # A text or a header that can't be encoded, a value JSON does not know, a defect of the client: all the same here.
    told = f"the request to Claude at {host} can't be sent ({_first_line(error, key=key)})"
    return LLMError(f"{told}; the same request can never be", Failure.PERMANENT)


def late(host: str, deadline_s: float, *, allow_more: str = "") -> LLMError:
    """Return the failure of a call that did not end in its time, or had none; `allow_more` says how to give it more."""
    told = f"there was no time left to ask Claude at {host}"
    if deadline_s > 0:
        told = f"Claude at {host} did not answer within {deadline_s:.3g} s, so the call was ended"
    more = f", or {allow_more}" if allow_more else ""
    return LLMError(f"{told}; ask again later{more}", Failure.TRANSIENT)


def pause_after(attempt: int, error: Exception, failure: LLMError) -> float | None:
    """Return the seconds to wait after attempt number `attempt`, from 1, failed; None when another one is no use."""
    import httpx

    if failure.kind is not Failure.TRANSIENT or isinstance(error, DeadlineExceeded):
        return None
    pause = min(FIRST_PAUSE_S * 2 ** (attempt - 1), LONGEST_PAUSE_S)
    if not isinstance(error, httpx.HTTPStatusError):
        return pause
    if error.response.headers.get("x-should-retry") == "false":
        return None
    return max(pause, asked_to_wait(error.response.headers) or 0.0)


def asked_to_wait(headers: Mapping[str, str]) -> float | None:
    """Return the seconds an answer asks to wait, from either of its headers and in any of their forms."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        seconds = _number(headers.get(name))
        if seconds is not None:
            return max(seconds / unit, 0.0)
    date = parsedate_tz(headers.get("retry-after", ""))
    try:
        return None if date is None else max(mktime_tz(date) - time.time(), 0.0)
    except (ValueError, OverflowError):  # a date no calendar has
        return None


def _answered(response: httpx.Response, *, host: str, key: str) -> LLMError:
    status, reason = response.status_code, fields(_body_of(response).get("error"))
    wait = asked_to_wait(response.headers)
    kind = kind_of_error(reason, status=status, says_when=wait is not None)
    words = [said(reason.get("type")) or "no reason given", said(_without(key, reason.get("message")))]
    told = f"Claude at {host} answered {status} ({': '.join(word for word in words if word)})"
    waits = "" if wait is None else f" and asks to wait {wait:.3g} s"
    return LLMError(f"{told}{waits}; {_fix(kind, status)}", kind, status=status)


def _fix(kind: Failure, status: int) -> str:
    if kind is Failure.QUOTA:
        return "raise the limit of the account, or set NOUS_JUDGE=offline"
    if kind is Failure.TRANSIENT:
        return "ask again later"
    if status in REDIRECTS:
        return "set ANTHROPIC_BASE_URL to the address itself, redirects are not followed"
    return FIXES.get(status, "the same request will be refused again")


def _body_of(response: httpx.Response) -> Mapping[str, Any]:
    try:
        return fields(response.json())
    except (ValueError, RecursionError):
        return {}


def _unreached(error: Exception, *, host: str, key: str) -> LLMError:
    """A request that broke on its way, or one that could never set out."""
    import httpx

    why = _first_line(error, key=key)
    if isinstance(error, (httpx.InvalidURL, httpx.LocalProtocolError, httpx.UnsupportedProtocol)):
        told = f"nothing can be sent to Claude at {host} ({why})"
        return LLMError(f"{told}; check ANTHROPIC_BASE_URL and ANTHROPIC_API_KEY", Failure.PERMANENT)
    return LLMError(f"Claude at {host} can't be reached ({why}); check the network, or ask later", Failure.TRANSIENT)


def _first_line(error: BaseException, *, key: str) -> str:
    lines = _without(key, str(error)).splitlines()
    return f"{type(error).__name__}: {said(lines[0])}" if lines else type(error).__name__


def _without(key: str, text: object) -> str:
    return text.replace(key, "[the key]") if isinstance(text, str) else ""


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if math.isfinite(number) else None
