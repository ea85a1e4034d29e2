"""A server on this machine that speaks chat completions: its sockets, scripts and answers are the local API's."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from benchmarks.anthropic_server import LocalAnthropic, Play, PlayRoute
from benchmarks.anthropic_server.endpoints import Arrived, Response, parsed
from benchmarks.anthropic_server.messages import tokens_in
from benchmarks.anthropic_server.refusals import ApiError

ROUTES = {("POST", "/v1/chat/completions"): PlayRoute.MESSAGE, ("GET", "/v1/models"): PlayRoute.LIST_MODELS}
STOPS = {"max_tokens": "length", "refusal": "content_filter", "tool_use": "tool_calls"}


class LocalOpenAI(LocalAnthropic):
    """As small servers do, it refuses what it does not know: `unknown` names parameters. `names` are its models.

    Plays and answers are those of the local Anthropic API; a request is shown to them in that API's form, and `raw`
    holds it as it came.
    """

    def __init__(self, *, names: tuple[str, ...] = ("qwen3",), unknown: tuple[str, ...] = (), **more: Any) -> None:
        super().__init__(**more)
        self.url = f"{self.url}/v1"
        self.names, self.unknown = names, unknown
        self.raw: list[dict[str, Any]] = []

    def read(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Arrived:
        """Return a request in the form of the other API."""
        route = ROUTES.get((method, path))
        if route is None:
            raise ApiError(f"{method} {path} is not served here", 404)
        raw = parsed(body)
        self.raw += [raw] if raw else []
        params = as_message(raw) if raw else {}
        return Arrived(
            route, "", {}, {name.lower(): each for name, each in headers.items()}, body, params, self.clock()
        )

    def answer_to(self, request: Arrived, play: Play) -> Response:
        """Return a completion, the list of models, or a refusal."""
        if play.status != 200:
            kind = {"message": play.message or "so says the script", "type": play.error, "code": play.error_code}
            return told({"error": kind}, play, status=play.status)
        if request.route is PlayRoute.LIST_MODELS:
            return told({"object": "list", "data": [{"id": name, "object": "model"} for name in self.names]}, play)
        odd = [name for name in parsed(request.body) if name in self.unknown]
        if odd:
            message = f"Unsupported parameter: {odd[0]} is not known here"
            return told({"error": {"message": message, "type": "invalid_request_error"}}, play, status=400)
        script = play.text if play.text is not None else self.answer
        text = script if isinstance(script, str) else script(request.params)
        return told(completion(text, play, asked=len(request.body)), play)


def as_message(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return a chat completion as a request of the Messages API."""
    turns = [each for each in raw["messages"] if each["role"] != "system"]
    system = [{"type": "text", "text": each["content"]} for each in raw["messages"] if each["role"] == "system"]
    schema = ((raw.get("response_format") or {}).get("json_schema") or {}).get("schema")
    if schema is None and "Its JSON schema:" in (system[0]["text"] if system else ""):
        schema = json.loads(system[0]["text"].rpartition("Its JSON schema:\n")[2])
    wanted = {"output_config": {"format": {"type": "json_schema", "schema": schema}}} if schema else {}
    limit = raw.get("max_completion_tokens") or raw.get("max_tokens")
    return {"model": raw["model"], "max_tokens": limit, "system": system, "messages": turns, **wanted}


def completion(text: str, play: Play, *, asked: int) -> dict[str, Any]:
    """Return a text as the server wraps it."""
    is_refused = play.stop_reason == "refusal"
    message = {"role": "assistant", "content": None if is_refused else text}
    usage = {"prompt_tokens": asked // 4, "completion_tokens": tokens_in(len(text))}
    stopped = STOPS.get(play.stop_reason or "", play.stop_reason or "stop")
    return {
        "id": "chatcmpl-local",
        "object": "chat.completion",
        "model": "local",
        "choices": [{"index": 0, "message": message, "finish_reason": stopped}],
        "usage": {**usage, **play.usage},
    }


def told(body: Mapping[str, Any], play: Play, *, status: int = 200) -> Response:
    """Return JSON as an answer."""
    return Response(status, json.dumps(body).encode(), {"content-type": "application/json", **play.headers})
