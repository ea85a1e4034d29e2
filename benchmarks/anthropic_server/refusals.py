"""What the API refuses before a model sees it, so that a wrong request of ours fails here as it would there."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from benchmarks.anthropic_server.models import Model
from nous_online.language.claude.replies import Request

API_VERSION = "2026-10-21"
LARGEST_MESSAGE = 32 * 1024 * 1024
LARGEST_BATCH = 256 * 1024 * 1024
MOST_REQUESTS = 100_000
CUSTOM_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
SAMPLING = ("temperature", "top_p", "top_k")
KNOWN = {
    *("model", "max_tokens", "messages", "system", "output_config", "metadata", "stop_sequences", "stream"),
    *("thinking", "tools", "tool_choice", "service_tier", "cache_control", "inference_geo", "speed"),
}
EFFORTS = {None, "low", "medium", "high", "xhigh", "max"}
UNENFORCED = (
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "maxItems",
)
"""Keywords of JSON Schema that structured outputs don't know."""
MOST_CACHE_MARKS = 4
ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}


class ApiError(Exception):
    """A request the API does not carry out; `status` and `type` as it would answer."""

    def __init__(self, message: str, status: int = 400, *, type: str | None = None, code: str | None = None) -> None:  # noqa: A002 (the API's word)
        super().__init__(message)
        self.status = status
        self.type = type or ERROR_TYPES.get(status, "api_error" if status >= 500 else "invalid_request_error")
        self.code = code

    def as_json(self) -> dict[str, Any]:
        """Return the error as a body, as an errored item of a batch holds it too."""
        details = {"details": {"error_code": self.code}} if self.code else {}
        return {"type": "error", "error": {"type": self.type, "message": str(self), **details}, "request_id": None}


def check_headers(headers: Mapping[str, str]) -> None:
    """Raise `ApiError` unless a request names this version of the API and carries a key."""
    if not headers.get("authorization", "").removeprefix("Bearer ").strip():
        raise ApiError("Authorization: Bearer <key> is required", 401)
    if headers.get("anthropic-version") != API_VERSION:
        raise ApiError(f"anthropic-version: {headers.get('anthropic-version')!r} is not {API_VERSION}")


def check_batch(requests: object, length: int) -> None:
    """Raise `ApiError` for what refuses a whole batch; what is wrong with one request errors that item alone."""
    if length > LARGEST_BATCH:
        raise ApiError(f"the request exceeds {LARGEST_BATCH} bytes", 413)
    if not isinstance(requests, Sequence) or not 1 <= len(requests) <= MOST_REQUESTS:
        raise ApiError(f"requests: from 1 to {MOST_REQUESTS} are required")
    ids: set[object] = set()
    for position, each in enumerate(requests):
        custom_id = each.get("custom_id") if isinstance(each, Mapping) else None
        if not isinstance(custom_id, str) or not CUSTOM_ID.fullmatch(custom_id):
            raise ApiError(f"requests.{position}.custom_id: {custom_id!r} does not match ^[a-zA-Z0-9_-]{{1,64}}$")
        if custom_id in ids:
            raise ApiError(f"requests.{position}.custom_id: {custom_id!r} is not unique")
        if not isinstance(each.get("params"), Mapping):
            raise ApiError(f"requests.{position}.params: Field required")
        ids.add(custom_id)


def checked(request: Request, models: Sequence[Model], *, is_batch: bool = False) -> Model:
    """Return the model a request names, or raise the `ApiError` it would get."""
    model = known_model(request.get("model"), models)
    for check in CHECKS:
        if complaint := check(request, model):
            raise ApiError(complaint)
    if is_batch and not model.has_batches:
        raise ApiError(f"model: {model.id} does not support the Message Batches API")
    return model


def known_model(name: object, models: Sequence[Model]) -> Model:
    """Return a model by its id or alias; 404 for an unknown or retired one."""
    for model in models:
        if name == model.id or name in model.aliases:
            if model.lifecycle != "retired":
                return model
            break
    raise ApiError("model: Field required" if name is None else f"model: {name}", 400 if name is None else 404)


def fields(request: Request, _model: Model) -> str | None:
    """Sampling parameters are refused even at their defaults, unknown ones always."""
    if sampling := [name for name in SAMPLING if name in request]:
        return f"{sampling[0]}: sampling parameters are not supported since {API_VERSION}"
    if unknown := sorted(set(request) - KNOWN):
        return f"{unknown[0]}: Extra inputs are not permitted"
    return "stream: this local server does not stream" if request.get("stream") else None


def output_limit(request: Request, model: Model) -> str | None:
    """A positive number of tokens is required, no more than the model gives."""
    asked = request.get("max_tokens")
    if not isinstance(asked, int) or isinstance(asked, bool) or asked < 1:
        return "max_tokens: Field required, a whole number of at least 1"
    return f"max_tokens: {asked} > {model.max_tokens}, the most of {model.id}" if asked > model.max_tokens else None


def thinking(request: Request, model: Model) -> str | None:
    """How a model may think, or be kept from it, differs from one to the next."""
    asked = (request.get("thinking") or {}).get("type")
    if asked is not None and asked not in model.thinking:
        return f"thinking.type: {asked!r} is not supported by {model.id}; it takes {', '.join(model.thinking)}"
    return None


def turns(request: Request, _model: Model) -> str | None:
    """A conversation ends with the user: an answer can't be begun for the model."""
    messages = request.get("messages")
    if not isinstance(messages, Sequence) or not messages:
        return "messages: at least one message is required"
    for position, each in enumerate(messages):
        if not isinstance(each, Mapping) or each.get("role") not in {"user", "assistant"}:
            return f"messages.{position}.role: Input should be 'user' or 'assistant'"
        if complaint := wrong_blocks(each.get("content")):
            return f"messages.{position}.content: {complaint}"
    return "messages: this model does not support prefill" if messages[-1]["role"] == "assistant" else None


def system(request: Request, _model: Model) -> str | None:
    """Instructions are text, or blocks of it; at most four places are marked for the cache."""
    complaint = wrong_blocks(request["system"]) if "system" in request else None
    if complaint:
        return f"system: {complaint}"
    marks = sum("cache_control" in block for block in blocks(request))
    return f"cache_control: {marks} > {MOST_CACHE_MARKS} blocks are marked" if marks > MOST_CACHE_MARKS else None


def wrong_blocks(content: object) -> str | None:
    """Return what is wrong with a text or a list of text blocks."""
    if isinstance(content, str):
        return None if content else "text content must be non-empty"
    if not isinstance(content, Sequence) or not content:
        return "Input should be a text or a list of blocks"
    for block in content:
        if not isinstance(block, Mapping) or block.get("type") != "text" or not isinstance(block.get("text"), str):
            return f"this local server reads text blocks alone, not {block!r:.80}"
        if not block["text"].strip():
            return "text content blocks must be non-empty"
        if block.get("cache_control", {"type": "ephemeral"}).get("type") != "ephemeral":
            return f"cache_control: {block['cache_control']!r} is not ephemeral"
    return None


def output_format(request: Request, model: Model) -> str | None:
    """Structured output needs a model that can, and a schema of the kind that is enforced."""
    config = request.get("output_config") or {}
    if unknown := sorted(set(config) - {"format", "effort"}):
        return f"output_config.{unknown[0]}: Extra inputs are not permitted"
    if config.get("effort") not in EFFORTS:
        return f"output_config.effort: {config['effort']!r} is not one of low, medium, high, xhigh, max"
    wanted = config.get("format")
    if wanted is None:
        return None
    if wanted.get("type") != "json_schema" or not isinstance(wanted.get("schema"), Mapping):
        return "output_config.format: type json_schema and a schema are required"
    if not model.has_structured_outputs:
        return f"output_config.format: {model.id} does not support structured outputs"
    return next(wrong_schema(wanted["schema"]), None)


def wrong_schema(schema: object, path: str = "output_config.format.schema") -> Iterator[str]:
    """Yield what structured outputs refuse in a schema."""
    if isinstance(schema, Mapping):
        if schema.get("type") == "object" and schema.get("additionalProperties") is not False:
            yield f"{path}: additionalProperties must be false"
        for word in UNENFORCED:
            if word in schema and not isinstance(schema[word], Mapping):
                yield f"{path}: {word} is not supported"
        if schema.get("minItems", 0) not in {0, 1}:
            yield f"{path}: only minItems 0 and 1 are supported"
        schema = list(schema.items())
    if isinstance(schema, Sequence) and not isinstance(schema, str):
        for each in schema:
            yield from wrong_schema(each, path)


def blocks(request: Request) -> list[Mapping[str, Any]]:
    """Return the text blocks of a request as they are read: instructions, then the conversation."""
    contents = [request.get("system") or [], *(each["content"] for each in request["messages"])]
    return [
        block
        for content in contents
        for block in ([{"type": "text", "text": content}] if isinstance(content, str) else content)
    ]


CHECKS: tuple[Callable[[Request, Model], str | None], ...] = (
    fields,
    output_limit,
    turns,
    system,
    thinking,
    output_format,
)
