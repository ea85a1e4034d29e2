"""The client for every server that speaks OpenAI's chat completions: OpenAI itself, Ollama, vLLM, LM Studio, gateways.

It takes the same requests as Claude's, and says them in the other form. What a server does not know (a schema for the
answer, one of the two names of the limit) it says itself when it refuses; from then on it is left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

from nous_online.core.deadline import Deadline
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
NO_KEY = "none"  # sent where no key is set: servers on one's own machine ask for none, and the package wants one
REFUSING = frozenset({400, 404, 415, 422, 501})
"""Statuses by which servers say that they don't know a parameter; some do with a plain 500, which is asked again."""
SCHEMA, LIMIT = "response_format", "max_completion_tokens"
SCHEMA_WORDS = (SCHEMA, "schema", "structured", "grammar")  # of which a refusal of the schema speaks
INSTRUCTION = "\n\nAnswer with one JSON object alone, without a word around it. Its JSON schema:\n"
THOUGHT = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
FENCED = re.compile(r"\A```[a-z]*\n(.*)\n```\Z", re.DOTALL)


class Chat(Client["openai.OpenAI"]):
    """Models behind one address, by the package `openai`; without an address those of OpenAI.

    Raises `InvalidInput` for a key or an address nothing can be sent with.
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

        What passes is asked again, up to three times in all, as far as the deadline allows.
        """
        deadline = Deadline(deadline_s)  # here a time that is none is a mistake

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
        """Return the models the server names; raise `LLMError` when it can't be asked."""

        def listed(sdk: openai.OpenAI, left_s: float) -> list[str]:
            entries = fields(json_of(sdk.models.with_raw_response.list(timeout=patience(left_s)).http_response))
            return [said(fields(each).get("id")) for each in listing(entries.get("data"))]

        return self.call(listed, deadline_s=deadline_s)


def completion_of(request: Request, *, without: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Return the parameters of a chat completion that asks what a request asks, without those a server refuses.

    The schema of the answer stands in the instructions too: servers that don't hold a model to it ignore it in silence.
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
    """Yield the texts of instructions or of a turn."""
    if isinstance(content, str):
        yield content
    else:
        yield from (fields(block)["text"] for block in listing(content))


def reply_of(completion: object, *, model: str) -> Reply:
    """Return what a chat completion says; raise `LLMError`, with the tokens used, for all but a complete answer.

    Left out is what stands around it: the thoughts some models begin with, and a fence around JSON.
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
