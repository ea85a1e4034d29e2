"""The client for servers that speak OpenAI's chat completions: OpenAI itself, Ollama, vLLM, LM Studio, gateways.

It takes the same requests as Claude's client and translates them. A parameter that a server refuses (the schema of the
answer, one of the two names of the token limit) is left out from then on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

from nous_online.core.deadline import Deadline
from nous_online.core.patterns import regex
from nous_online.language.claude.client import ALLOW_MORE, Client, checked_key, checked_url, json_of, patience
from nous_online.language.claude.replies import (
    Failure,
    LLMError,
    Reply,
    Request,
    Usage,
    fields,
    is_well_formed,
    listing,
    said,
    tokens_of,
)

if TYPE_CHECKING:
    import httpx2
    import openai

ADDRESS = "https://api.openai.com/v1"
NO_KEY = "none"  # sent without a key: local servers ask for none, but the package requires one
REFUSING = frozenset({400, 404, 415, 422, 501})
"""Statuses with which servers refuse an unknown parameter; some send a plain 500, which is retried as usual."""
SCHEMA, LIMIT = "response_format", "max_completion_tokens"
SCHEMA_WORDS = (SCHEMA, "schema", "structured", "grammar")  # in the message of a server that refuses the schema
INSTRUCTION = "\n\nAnswer with one JSON object alone, without a word around it. Its JSON schema:\n"
THOUGHT = regex(r"\A\s*<think>.*?</think>", re.DOTALL)
FENCED = regex(r"\A```[a-z]*\n(.*)\n```\Z", re.DOTALL)


class Chat(Client["openai.OpenAI"]):
    """The models behind one address, OpenAI's by default, through the package `openai`.

    Raises `InvalidInput` for an unusable key or address.
    """

    package, name = "openai", "The model"
    key_setting, url_setting = "NOUS_LLM_KEY", "NOUS_LLM_URL"
    limits_say_when = False

    def __init__(self, key: str = "", *, base_url: str | None = None) -> None:
        is_own = base_url is not None
        key = NO_KEY if is_own and not key.strip() else checked_key(key, self.key_setting)
        super().__init__(key, checked_url(base_url or ADDRESS, self.url_setting))
        self._unknown: frozenset[str] = frozenset()

    def make(self, http: httpx2.Client) -> openai.OpenAI:
        """Return a client of the package."""
        import openai

        return openai.OpenAI(api_key=self.key, base_url=self.url, http_client=http, max_retries=0)

    def ask(self, request: Request, *, deadline_s: float) -> Reply:
        """Return the complete answer; raise `LLMError`, by `deadline_s` seconds at the latest.

        After a transient failure it is asked again, up to three times in all, as far as the deadline allows.
        """
        deadline = Deadline(deadline_s)  # raises for a number of seconds that is not one

        def create(sdk: openai.OpenAI, left_s: float) -> Reply:
            create_raw = cast("Any", sdk.chat.completions.with_raw_response.create)
            raw = create_raw(**completion_of(request, without=self._unknown), timeout=patience(left_s))
            return reply_of(json_of(raw.http_response), model=request["model"])

        while True:
            known = self._unknown
            try:
                return self.call(create, deadline_s=deadline.remaining(), allow_more=ALLOW_MORE)
            except LLMError as error:
                words = str(error).lower()
                is_about_schema = any(word in words for word in SCHEMA_WORDS)
                refused = {*([SCHEMA] if is_about_schema else []), *([LIMIT] if LIMIT in words else [])}
                if error.status not in REFUSING or not refused - known:
                    raise
                self._unknown = known | refused

    def models(self, *, deadline_s: float) -> list[str]:
        """Return the names of the server's models; raise `LLMError` when it can't be asked."""

        def listed(sdk: openai.OpenAI, left_s: float) -> list[str]:
            entries = fields(json_of(sdk.models.with_raw_response.list(timeout=patience(left_s)).http_response))
            return [said(fields(each).get("id")) for each in listing(entries.get("data"))]

        return self.call(listed, deadline_s=deadline_s)


def completion_of(request: Request, *, without: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Return a request as the parameters of a chat completion, without those in `without`.

    The schema of the answer is in the instructions too, since servers that can't enforce it ignore it silently.
    """
    schema = fields(fields(request.get("output_config")).get("format")).get("schema")
    instructions = "\n".join(texts_in(request.get("system", "")))
    if schema:
        instructions += INSTRUCTION + json.dumps(schema)
    system = [{"role": "system", "content": instructions}] if instructions else []
    turns = [{"role": each["role"], "content": "\n".join(texts_in(each["content"]))} for each in request["messages"]]
    limit = LIMIT if LIMIT not in without else "max_tokens"
    said_as: dict[str, Any] = {"model": request["model"], "messages": [*system, *turns], limit: request["max_tokens"]}
    if schema and SCHEMA not in without:
        said_as[SCHEMA] = {
            "type": "json_schema",
            "json_schema": {"name": "answer", "schema": schema, "strict": True},
        }
    return said_as


def texts_in(content: object) -> Iterator[str]:
    """Yield the texts of instructions or of a message."""
    if isinstance(content, str):
        yield content
    else:
        yield from (fields(block)["text"] for block in listing(content))


def reply_of(completion: object, *, model: str) -> Reply:
    """Return the reply in a chat completion; raise `LLMError`, with the tokens used, for all but a complete answer.

    Thoughts at its start and a code fence around it are removed.
    """
    content = fields(completion)
    counts, choice = fields(content.get("usage")), fields(next(iter(listing(content.get("choices"))), None))
    cached = tokens_of(fields(counts.get("prompt_tokens_details")).get("cached_tokens"))  # part of `prompt_tokens`
    asked, answered = tokens_of(counts.get("prompt_tokens")), tokens_of(counts.get("completion_tokens"))
    usage = Usage(max(asked - cached, 0), answered, cache_read_tokens=cached)
    message, stopped = fields(choice.get("message")), choice.get("finish_reason")
    if message.get("refusal") or stopped == "content_filter":
        raise LLMError(f"{model} declined to answer; ask another model", Failure.REFUSED, usage=usage)
    if stopped == "length":
        told = f"{model} stopped after {usage.output_tokens} tokens before its answer was complete"
        raise LLMError(f"{told}; allow it more tokens, or shorten the text", Failure.TRUNCATED, usage=usage)
    text = message.get("content")
    text = THOUGHT.sub("", text).strip() if isinstance(text, str) else ""
    fenced = FENCED.match(text)
    text = fenced[1] if fenced else text
    if not text or stopped not in {"stop", None} or not is_well_formed(text):
        told = (
            f"{model} stopped for the reason {said(str(stopped))!r}" if stopped != "stop" else f"{model} sent no text"
        )
        raise LLMError(f"{told}, so there is no complete answer; ask again", Failure.MALFORMED, usage=usage)
    return Reply(text, model, usage)
