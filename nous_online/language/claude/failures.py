"""Everything a call can raise, as one of six kinds of failure in words that hold neither key nor memory."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from email.utils import mktime_tz, parsedate_tz
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from nous_online.core.deadline import pause_s
from nous_online.core.errors import DeadlineExceeded, Unavailable
from nous_online.language.claude.message_parser import fields, kind_of_error, said
from nous_online.language.claude.replies import Failure, LLMError

if TYPE_CHECKING:
    import httpx2
    from tenacity import RetryCallState

FIRST_PAUSE_S = 0.25
LONGEST_PAUSE_S = 8.0
REDIRECTS = range(300, 400)
FIXES = {
    401: "check {key}",
    403: "use a key that may do this, or another model",
    404: "check the name of what was asked for, and {url}",
    413: "send less at once",
}


class AskedModel(Protocol):
    """Whoever was asked, as far as a failure speaks of it."""

    name: ClassVar[str]
    key_setting: ClassVar[str]
    url_setting: ClassVar[str]
    limits_say_when: ClassVar[bool]

    @property
    def host(self) -> str: ...


def failure_of(error: Exception, asked: AskedModel, *, key: str) -> LLMError:
    """Return the failure behind any exception of a call; `key` is left out of whatever it says."""
    import httpx2

    if isinstance(error, LLMError):
        return error
    response = getattr(error, "response", None)  # of the packages' errors, those of an answer alone have one
    if isinstance(response, httpx2.Response):
        return _answered(response, asked, key=key)
    cause = error.__cause__ if type(error).__name__ in {"APIConnectionError", "APITimeoutError"} else error
    if isinstance(cause, (httpx2.HTTPError, httpx2.InvalidURL)):
        return _unreached(cause, asked, key=key)
    if isinstance(cause, Unavailable):
        told = f"{asked.name} at {asked.host} gave no answer: {cause}"
        return LLMError(told, Failure.TRANSIENT, wait_s=None if isinstance(cause, DeadlineExceeded) else 0.0)
    # A text or a header that can't be encoded, a parameter the package does not know, a defect of ours: all the same.
    told = f"the request to {asked.name} at {asked.host} can't be sent ({_first_line(cause or error, key=key)})"
    return LLMError(f"{told}; the same request can never be", Failure.PERMANENT)


def late(asked: AskedModel, deadline_s: float, *, allow_more: str = "") -> LLMError:
    """Return the failure of a call that did not end in its time, or had none; `allow_more` says how to give it more."""
    told = f"there was no time left to ask {asked.name} at {asked.host}"
    if deadline_s > 0:
        told = f"{asked.name} at {asked.host} did not answer within {deadline_s:.3g} s, so the call was ended"
    more = f", or {allow_more}" if allow_more else ""
    return LLMError(f"{told}; ask again later{more}", Failure.TRANSIENT)


def may_pass_soon(error: BaseException) -> bool:
    """Tell whether the same request may succeed after a pause."""
    return isinstance(error, LLMError) and error.kind is Failure.TRANSIENT and error.wait_s is not None


def pause_after(state: RetryCallState) -> float:
    """Return the seconds to wait after a failed attempt: twice as long each time, and no less than is asked for."""
    failure = state.outcome.exception() if state.outcome else None
    wait_s = failure.wait_s if isinstance(failure, LLMError) else None
    return max(pause_s(state.attempt_number, first_s=FIRST_PAUSE_S, longest_s=LONGEST_PAUSE_S), wait_s or 0.0)


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


def _answered(response: httpx2.Response, asked: AskedModel, *, key: str) -> LLMError:
    status, body = response.status_code, _body_of(response)
    reason = fields(body.get("error")) or body
    wait_s = asked_to_wait(response.headers)
    kind = kind_of_error(reason, status=status, says_when=wait_s is not None or not asked.limits_say_when)
    words = [said(reason.get("type")) or "no reason given", said(_without(key, reason.get("message")))]
    told = f"{asked.name} at {asked.host} answered {status} ({': '.join(word for word in words if word)})"
    waits = "" if wait_s is None else f" and asks to wait {wait_s:.3g} s"
    is_no_use = response.headers.get("x-should-retry") == "false"
    return LLMError(
        f"{told}{waits}; {_fix(kind, status, asked)}", kind, status=status, wait_s=None if is_no_use else wait_s or 0.0
    )


def _fix(kind: Failure, status: int, asked: AskedModel) -> str:
    if kind is Failure.QUOTA:
        return "raise the limit of the account, or set NOUS_JUDGE=offline"
    if kind is Failure.TRANSIENT:
        return "ask again later"
    if status in REDIRECTS:
        return f"set {asked.url_setting} to the address itself, redirects are not followed"
    fix = FIXES.get(status, "the same request will be refused again")
    return fix.format(key=asked.key_setting, url=asked.url_setting)


def _body_of(response: httpx2.Response) -> Mapping[str, Any]:
    try:
        return fields(response.json())
    except (ValueError, RecursionError):
        return {}


def _unreached(error: Exception, asked: AskedModel, *, key: str) -> LLMError:
    """A request that broke on its way, or one that could never set out."""
    import httpx2

    why = _first_line(error, key=key)
    if isinstance(error, (httpx2.InvalidURL, httpx2.LocalProtocolError, httpx2.UnsupportedProtocol)):
        told = f"nothing can be sent to {asked.name} at {asked.host} ({why})"
        return LLMError(f"{told}; check {asked.url_setting} and {asked.key_setting}", Failure.PERMANENT)
    told = f"{asked.name} at {asked.host} can't be reached ({why})"
    return LLMError(f"{told}; check the network, or ask later", Failure.TRANSIENT)


def _first_line(error: BaseException, *, key: str) -> str:
    lines = _without(key, str(error)).splitlines()
    return f"{type(error).__name__}: {said(lines[0])}" if lines else type(error).__name__


def _without(key: str, text: object) -> str:
    text = text if isinstance(text, str) else ""
    return text.replace(key, "[the key]") if key else text


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if math.isfinite(number) else None
