"""Every failure as `application/problem+json` (RFC 9457)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from nous_online.core.errors import (
    Conflict,
    DeadlineExceeded,
    Forbidden,
    InvalidInput,
    Moved,
    NotFound,
    NotIsolated,
    NousError,
    QuotaExceeded,
    Refused,
    Unavailable,
    Unsupported,
)
from nous_online.core.policy import ApiPolicy
from nous_online.core.validation import is_blank

MEDIA_TYPE = "application/problem+json"
PREFIX = "urn:nous:problem:"
AN_ID = "0199ab3e-6f52-7c1e-9d53-2f4f5a9b7c11"
SHOWN_CHARACTERS = 60
RETRY_AFTER = {"Retry-After": str(ApiPolicy.retry_after_s)}


class FieldError(BaseModel):
    """One place of a request that has to be mended."""

    where: str = Field(description="The place, such as `body.tags.0` or `header.X-Nous-Deadline`.")
    message: str


class Problem(BaseModel):
    """A failure, in the members of RFC 9457."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "type": f"{PREFIX}not-found",
                "title": "Not found",
                "status": 404,
                "detail": "agent 'aria' has no recall 0199ab3e-6f52-7c1e-9d53-2f4f5a9b7c11",
                "instance": "urn:nous:request:7f9c2ba4e88f827d616045507605853e",
            }
        }
    )

    type: str = Field(description="Which kind of problem, as a URN that stays the same.")
    title: str
    status: int
    detail: str = Field(description="What is wrong and what to do about it.")
    instance: str = Field(description="This very failure: the id of the request, as the log names it.")
    errors: list[FieldError] | None = Field(default=None, description="The places to mend, of an invalid request.")


@dataclass(frozen=True)
class ProblemKind:
    """A kind of problem: its status, its name in `type`, and its title."""

    status: int
    name: str
    title: str
    headers: Mapping[str, str] | None = None


INVALID = ProblemKind(422, "invalid-input", "The request can't be used")
UNREADABLE = ProblemKind(400, "unreadable", "The request can't be read")
KEY_REFUSED = ProblemKind(401, "key-refused", "A valid key is needed", {"WWW-Authenticate": "Bearer"})
FORBIDDEN = ProblemKind(403, "forbidden", "This key may not do that")
NOT_FOUND = ProblemKind(404, "not-found", "Not found")
NO_METHOD = ProblemKind(405, "method-not-allowed", "Method not allowed")
SLOW_REQUEST = ProblemKind(408, "request-too-slow", "The request did not arrive in time")
CONFLICT = ProblemKind(409, "conflict", "In conflict with the stored state")
REFUSED = ProblemKind(409, "refused", "A rule forbids it")
TOO_LARGE = ProblemKind(413, "too-large", "The request is too large")
NOT_JSON = ProblemKind(415, "not-json", "The body has to be JSON")
MISDIRECTED = ProblemKind(421, "misdirected", "The Host header names another server")
TOO_MANY = ProblemKind(429, "too-many-requests", "Too many requests")
UNEXPECTED = ProblemKind(500, "unexpected", "Unexpected error")
NO_EXTRA = ProblemKind(501, "extra-missing", "An extra is not installed")
UNAVAILABLE = ProblemKind(503, "unavailable", "Not available now", RETRY_AFTER)
BUSY = ProblemKind(503, "busy", "Too many calls at once", RETRY_AFTER)
UNSUPPORTED = ProblemKind(503, "unsupported", "The database does not fit")
FULL = ProblemKind(507, "quota-exceeded", "The agent's quota is used up")
LATE = ProblemKind(504, "deadline-exceeded", "The call exceeded its deadline")

OF_ERROR: Mapping[type[NousError], ProblemKind] = {
    DeadlineExceeded: LATE,
    Moved: UNAVAILABLE,
    Unavailable: UNAVAILABLE,
    InvalidInput: INVALID,
    NotFound: NOT_FOUND,
    Forbidden: FORBIDDEN,
    QuotaExceeded: FULL,
    Refused: REFUSED,
    Conflict: CONFLICT,
    Unsupported: UNSUPPORTED,
    NotIsolated: UNSUPPORTED,
}
"""The first match counts, so subclasses stand before their bases."""
OF_STATUS = {kind.status: kind for kind in (UNREADABLE, NOT_FOUND, NO_METHOD, INVALID)}


class InterfaceProblem(NousError):
    """A problem that the interface itself raises, with its kind and headers."""

    def __init__(self, kind: ProblemKind, detail: str, *, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.kind = kind
        self.headers = headers


def kind_of(error: NousError) -> ProblemKind:
    if isinstance(error, InterfaceProblem):
        return error.kind
    return next((kind for raised, kind in OF_ERROR.items() if isinstance(error, raised)), UNEXPECTED)


def problem_response(
    kind: ProblemKind,
    detail: str,
    *,
    request_id: str,
    headers: Mapping[str, str] | None = None,
    errors: Sequence[FieldError] | None = None,
) -> Response:
    problem = Problem(
        type=f"{PREFIX}{kind.name}",
        title=kind.title,
        status=kind.status,
        detail=detail,
        instance=f"urn:nous:request:{request_id}",
        errors=None if errors is None else list(errors),
    )
    content = problem.model_dump_json(exclude_none=True)
    return Response(content, kind.status, {**(kind.headers or {}), **(headers or {})}, media_type=MEDIA_TYPE)


def for_request(request: Request, kind: ProblemKind, detail: str, **details: Any) -> Response:
    """Return the response for a problem of this request, and store the kind for the metrics."""
    request.state.problem = kind.name
    return problem_response(kind, detail, request_id=request.state.request_id, **details)


async def on_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, NousError)  # noqa: S101 (it is registered for these alone)
    headers = error.headers if isinstance(error, InterfaceProblem) else None
    return for_request(request, kind_of(error), as_utf8(str(error)), headers=headers)


IN_WORDS: Mapping[str, str] = {
    "missing": "is missing",
    "extra_forbidden": "is not known here; see its description in /openapi.json",
    "parameter_unknown": "is not known here; {hint}",
    "string_too_short": "is empty; write at least a word",
    "string_too_long": "is longer than {max_length} characters",
    "string_type": "is not a text",
    "string_unicode": "is not a text in Unicode",
    "too_short": "has fewer than {min_length} entries",
    "too_long": "has more than {max_length} entries",
    "bool_type": "is neither true nor false",
    "int_type": "is not a whole number",
    "int_parsing": "is not a whole number",
    "int_parsing_size": "is too large a number",
    "int_from_float": "is not a whole number",
    "float_type": "is not a number",
    "float_parsing": "is not a number",
    "finite_number": "is not a finite number",
    "greater_than_equal": "is less than {ge}",
    "less_than_equal": "is more than {le}",
    "list_type": "is not a list",
    "dict_type": "is not an object",
    "model_type": "is not an object",
    "model_attributes_type": "is not an object",
    "uuid_type": f"is not an id, such as {AN_ID}",
    "uuid_parsing": f"is not an id, such as {AN_ID}",
    "date_type": "is not a date, such as 2026-11-20",
    "date_parsing": "is not a date, such as 2026-11-20",
    "date_from_datetime_parsing": "is not a date, such as 2026-11-20",
    "literal_error": "is not one of {expected}",
    "value_error": "{error}",
}
"""What is wrong with a place, by the type that the validator gives it."""
BY_PLACE = {
    "X-Nous-Agent": "is not the name of an agent",
    "X-Nous-Deadline": "is not a number of seconds from 1 to 59.999, such as 10",
    "X-Nous-Session": "has other characters than printable ones of ASCII",
    "Idempotency-Key": "has other characters than printable ones of ASCII",
    "url": "is not a public address, such as https://example.org/hook",
    "hint": "is more than one line, or has control characters",
}
"""What is wrong with a place that has a form of its own."""
NO_JSON = "the body is no JSON; send one JSON object"
OTHER_FORM = "is not of the form that its description in /openapi.json asks for"


def in_words(error: Mapping[str, Any]) -> str:
    """Return what is wrong with a place of a request, without the value."""
    if error["type"] == "string_pattern_mismatch":
        return BY_PLACE.get(str(error["loc"][-1])) or form_in_words(str(error["input"]))
    return IN_WORDS.get(error["type"], OTHER_FORM).format_map(error.get("ctx", {}))


def form_in_words(text: str) -> str:
    if "\x00" in text:
        return "has a NUL character (U+0000), which can't be stored; leave it out"
    return "is blank; write at least a word" if is_blank(text) else "has characters that are not allowed here"


async def on_invalid(request: Request, error: Exception) -> Response:
    """Answer a request that fails validation with the places that are wrong, without their values.

    A body that is no JSON has no places: it can't be read.
    """
    assert isinstance(error, RequestValidationError)  # noqa: S101 (it is registered for these alone)
    found: Sequence[Any] = error.errors()
    errors = [
        FieldError(where=as_utf8(".".join(map(str, each["loc"]))), message=as_utf8(in_words(each))) for each in found
    ]
    if any(each["type"] == "json_invalid" for each in found):
        return for_request(request, UNREADABLE, NO_JSON)
    detail = f"{errors[0].where}: {errors[0].message}" if errors else "the request does not fit its description"
    return for_request(request, INVALID, detail, errors=errors)


async def on_http_error(request: Request, error: Exception) -> Response:
    """Answer what the framework refused: an unknown path, a wrong method, an unreadable body."""
    assert isinstance(error, HTTPException)  # noqa: S101 (it is registered for these alone)
    kind = OF_STATUS.get(error.status_code, ProblemKind(error.status_code, "refused-by-http", str(error.detail)))
    methods = methods_of(endpoints(request.app), request.url.path) if kind is NO_METHOD else []
    headers = {"Allow": ", ".join(methods)} if methods else error.headers
    detail = str(error.detail)
    if kind is UNREADABLE:
        is_other = isinstance(error.__cause__, UnicodeDecodeError)
        detail = "the body is not in UTF-8; send one JSON object in UTF-8" if is_other else NO_JSON
    if kind is NO_METHOD:
        path, known = request.url.path[:SHOWN_CHARACTERS], (headers or {}).get("Allow", "others")
        detail = as_utf8(f"{request.method[:SHOWN_CHARACTERS]} is not a method of {path!r}, which takes {known}")
    if kind is NOT_FOUND:
        unknown = f"{request.url.path[:SHOWN_CHARACTERS]!r} is not a path of this interface; /openapi.json lists them"
        detail = as_utf8(wrong_id(endpoints(request.app), request.url.path) or unknown)
    return for_request(request, kind, detail, headers=headers)


def endpoints(app: FastAPI) -> dict[str, list[str]]:
    """Return the methods of each path that the document lists, without making it, which takes a second."""
    found: dict[str, list[str]] = {}
    for route in app.routes:
        if isinstance(route, APIRoute) and route.include_in_schema:
            found.setdefault(route.path_format, []).extend(sorted(route.methods or ()))
    return found


def wrong_id(paths: Collection[str], path: str) -> str:
    """Return which part of a path is no id, where the path would be known otherwise; an empty text where it is not."""
    template = nearest_template(paths, path) or ""
    named = zip(template.split("/"), path.split("/"), strict=False)
    wrong = [part for name, part in named if name.startswith("{") and not is_uuid(part)]
    return f"{wrong[0][:SHOWN_CHARACTERS]!r} is not an id, such as {AN_ID}" if wrong else ""


def is_uuid(text: str) -> bool:
    try:
        return bool(UUID(text))
    except ValueError:
        return False


def methods_of(paths: Mapping[str, list[str]], path: str) -> list[str]:
    """Return all methods of a path, for the Allow header; Starlette names those of the first matching route only."""
    nearest = nearest_template(paths, path)
    return [] if nearest is None else paths[nearest]


def nearest_template(paths: Collection[str], path: str) -> str | None:
    """Return the path of the document that a path fits, None for none."""
    parts = path.split("/")
    fitting = [
        template
        for template in paths
        if len(named := template.split("/")) == len(parts)
        and all(part != "" if name.startswith("{") else name == part for name, part in zip(named, parts, strict=True))
    ]
    # A literal segment beats a placeholder: /facts/count before /facts/{fact_id}.
    return min(fitting, key=lambda template: template.count("{"), default=None)


def as_utf8(text: str) -> str:
    """Return a text that can be encoded as UTF-8, with lone surrogates escaped."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
