"""What the local server does with a request: check it, carry it out, and say so in the API's words."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from benchmarks.anthropic_server.messages import PromptCache, message
from benchmarks.anthropic_server.models import Model
from benchmarks.anthropic_server.plays import BatchPlay, Play, PlayRoute
from benchmarks.anthropic_server.refusals import (
    LARGEST_MESSAGE,
    ApiError,
    check_batch,
    check_headers,
    checked,
)
from benchmarks.anthropic_server.stored_batches import StoredBatch
from nous_online.language.claude.replies import Request

BATCH = r"/v1/messages/batches/(?P<id>[^/]+)"
ROUTES = (
    ("POST", re.compile(r"/v1/messages"), PlayRoute.MESSAGE),
    ("POST", re.compile(r"/v1/messages/count_tokens"), PlayRoute.COUNT_TOKENS),
    ("POST", re.compile(r"/v1/messages/batches"), PlayRoute.CREATE_BATCH),
    ("GET", re.compile(r"/v1/messages/batches"), PlayRoute.LIST_BATCHES),
    ("GET", re.compile(BATCH), PlayRoute.GET_BATCH),
    ("DELETE", re.compile(BATCH), PlayRoute.DELETE_BATCH),
    ("POST", re.compile(f"{BATCH}/cancel"), PlayRoute.CANCEL_BATCH),
    ("GET", re.compile(f"{BATCH}/results"), PlayRoute.BATCH_RESULTS),
    ("GET", re.compile(r"/v1/models"), PlayRoute.LIST_MODELS),
    ("GET", re.compile(r"/v1/models/(?P<id>[^/]+)"), PlayRoute.GET_MODEL),
)


@dataclass(frozen=True)
class Arrived:
    """One request as it came in; `params` is its body as JSON, empty where it has none that can be read."""

    route: PlayRoute
    target: str
    """The id in the path, or nothing."""
    query: Mapping[str, str]
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes
    params: Request
    at: datetime


def arrived(method: str, url: str, headers: Mapping[str, str], body: bytes, *, at: datetime) -> Arrived:
    """Return a request with what it asks for; raise `ApiError` for a path nobody serves."""
    parts = urlsplit(url)
    for expected, pattern, route in ROUTES:
        if expected == method and (found := pattern.fullmatch(parts.path.rstrip("/"))):
            lower = {name.lower(): value for name, value in headers.items()}
            query = dict(parse_qsl(parts.query))
            return Arrived(route, found.groupdict().get("id", ""), query, lower, body, parsed(body), at)
    raise ApiError(f"{method} {parts.path} is not served here", 404)


def parsed(body: bytes) -> dict[str, Any]:
    """Return a body as a JSON object, empty where it is none."""
    try:
        found = json.loads(body or b"{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


# --- what is answered ---


LONGEST_PAGE = 1000
PAGE = 20


@dataclass(frozen=True)
class Response:
    """What goes back before a play spoils it."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


class Api:
    """The state of the service: models, batches, prompts in the cache."""

    def __init__(self, *, models: Sequence[Model], answer: Callable[[Request], str]) -> None:
        self.models = tuple(models)
        self.answer = answer
        self.url = ""
        self.batches: dict[str, StoredBatch] = {}
        self.next_batches = [BatchPlay()]
        self._cache = PromptCache()
        self._plain: dict[PlayRoute, Callable[[Arrived], dict[str, Any]]] = {
            PlayRoute.COUNT_TOKENS: self._count,
            PlayRoute.CREATE_BATCH: self._created,
            PlayRoute.LIST_BATCHES: self._batch_page,
            PlayRoute.LIST_MODELS: lambda request: page([model.as_json() for model in self.models], request.query),
            PlayRoute.GET_MODEL: lambda request: self._model(request.target),
        }

    def respond(self, request: Arrived, play: Play) -> Response:
        """Return the answer to a request; one the play refuses is not carried out."""
        try:
            check_headers(request.headers)
            if play.status != 200:
                raise refused(play)
            found = self._carried_out(request, play)
        except ApiError as error:
            return answered(error.as_json(), error.status, play)
        return found if isinstance(found, Response) else answered(found, 200, play)

    def end_batches(self, *, at: datetime) -> None:
        """End every batch now."""
        for batch in list(self.batches.values()):
            batch.end(lambda request, play: self._result(request, play, at), at=at)

    def _carried_out(self, request: Arrived, play: Play) -> dict[str, Any] | Response:
        if carry_out := self._plain.get(request.route):
            return carry_out(request)
        return self._message(request, play) if request.route is PlayRoute.MESSAGE else self._with_batch(request, play)

    def _message(self, request: Arrived, play: Play) -> dict[str, Any]:
        if len(request.body) > LARGEST_MESSAGE:
            raise ApiError(f"the request exceeds {LARGEST_MESSAGE} bytes", 413)
        model = checked(request.params, self.models)
        return message(request.params, play, model, answer=self.answer, cache=self._cache, at=request.at)

    def _count(self, request: Arrived) -> dict[str, Any]:
        model = checked({"max_tokens": 1} | dict(request.params), self.models)
        counted = PromptCache().count(request.params, model, at=request.at)
        return {"input_tokens": counted["input_tokens"] + counted["cache_creation_input_tokens"]}

    def _model(self, name: str) -> dict[str, Any]:
        found = [model for model in self.models if name == model.id or name in model.aliases]
        if not found:
            raise ApiError(f"model: {name}", 404)
        return found[0].as_json()

    def _created(self, request: Arrived) -> dict[str, Any]:
        asked = request.params.get("requests")
        check_batch(asked, len(request.body))
        play = self.next_batches.pop(0) if len(self.next_batches) > 1 else self.next_batches[0]
        batch = StoredBatch([(each["custom_id"], each["params"]) for each in asked or ()], play, request.at)
        self.batches[batch.id] = batch
        return batch.as_json(self.url, at=request.at)

    def _batch_page(self, request: Arrived) -> dict[str, Any]:
        batches = list(self.batches.values())
        for batch in batches:
            batch.look(lambda each, how: self._result(each, how, request.at), at=request.at)
        return page([batch.as_json(self.url, at=request.at) for batch in reversed(batches)], request.query)

    def _with_batch(self, request: Arrived, play: Play) -> dict[str, Any] | Response:
        batch = self.batches.get(request.target)
        if batch is None:
            raise ApiError(f"batch {request.target} was not found", 404)
        if request.route is PlayRoute.GET_BATCH:
            batch.look(lambda each, how: self._result(each, how, request.at), at=request.at)
        elif request.route is PlayRoute.CANCEL_BATCH:
            if batch.ended_at:
                raise ApiError(f"batch {batch.id} has ended and can't be canceled")
            batch.cancel(at=request.at)
        elif not batch.ended_at:
            raise ApiError(f"batch {batch.id} is still being processed")
        elif request.route is PlayRoute.DELETE_BATCH:
            self.batches.pop(batch.id, None)
            return {"id": batch.id, "type": "message_batch_deleted"}
        elif not batch.has_results(at=request.at):
            raise ApiError(f"the results of batch {batch.id} were archived", 404)
        else:
            return Response(200, batch.lines, {"content-type": "application/x-jsonl", **play.headers})
        return batch.as_json(self.url, at=request.at)

    def _result(self, request: Request, play: Play, at: datetime) -> dict[str, Any]:
        """Return the result of one item: its message, or why there is none."""
        if play.outcome == "errored":
            return {"type": "errored", "error": errored(play).as_json()}
        if play.outcome != "succeeded":
            return {"type": play.outcome}
        try:
            model = checked(request, self.models, is_batch=True)
        except ApiError as error:
            return {"type": "errored", "error": error.as_json()}
        said = message(request, play, model, answer=self.answer, cache=self._cache, at=at)
        said["usage"]["service_tier"] = "batch"
        return {"type": "succeeded", "message": said}


def refused(play: Play) -> ApiError:
    """Return the error a play writes down."""
    return ApiError(play.message or "so says the script", play.status, type=play.error, code=play.error_code)


def errored(play: Play) -> ApiError:
    """Return the error of an item in a batch."""
    status = 500 if play.status == 200 else play.status
    return ApiError(play.message or "so says the script", status, type=play.error, code=play.error_code)


def answered(body: Mapping[str, Any], status: int, play: Play) -> Response:
    """Return a JSON answer under a request id of its own."""
    request_id = f"req_{uuid.uuid4().hex}"
    told = {**body, "request_id": request_id} if body.get("type") == "error" else body
    headers = {"content-type": "application/json", "request-id": request_id, **play.headers}
    return Response(status, json.dumps(told).encode(), headers)


def page(found: Sequence[dict[str, Any]], query: Mapping[str, str]) -> dict[str, Any]:
    """Return the part of a list that a cursor asks for; 400 for a limit outside 1 to 1000 or an unknown cursor."""
    asked = query.get("limit", str(PAGE))
    if not asked.isdigit() or not 1 <= int(asked) <= LONGEST_PAGE:
        raise ApiError(f"limit: {asked} is not from 1 to {LONGEST_PAGE}")
    limit = int(asked)
    ids = [each["id"] for each in found]
    for cursor in ("after_id", "before_id"):
        if cursor in query and query[cursor] not in ids:
            raise ApiError(f"{cursor}: {query[cursor]} is not in the list")
    start = ids.index(query["after_id"]) + 1 if "after_id" in query else 0
    end = ids.index(query["before_id"]) if "before_id" in query else len(ids)
    if "before_id" in query:
        start = max(start, end - limit)
    shown = list(found[start : min(end, start + limit)])
    has_more = start > 0 if "before_id" in query else end > start + limit
    first, last = (shown[0]["id"], shown[-1]["id"]) if shown else (None, None)
    return {"data": shown, "has_more": has_more, "first_id": first, "last_id": last}
