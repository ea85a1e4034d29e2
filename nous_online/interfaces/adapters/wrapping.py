"""Wraps a model client: memories that answer a prompt are added to it, and exchanges become episodes."""

from __future__ import annotations

import asyncio
import atexit
import inspect
import logging
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from hashlib import sha256
from typing import Any, TypeVar, cast
from uuid import UUID, uuid4
from weakref import WeakSet

from nous_online.core.details import ProjectId, UserId
from nous_online.core.errors import Conflict, InvalidInput, NousError, Unavailable
from nous_online.core.fields import checked_as
from nous_online.core.validation import checked_agent
from nous_online.heart import Heart
from nous_online.interfaces.hooks.session_notes import context_for_prompt

logger = logging.getLogger(__name__)
RECALL_S, OPEN_S = 1.0, 5.0
"""The longest that a call waits for recall, and the first calls for the heart to open."""
IDLE_S, POLL_S = 900.0, 5.0
"""A conversation ends after this time without an exchange, checked this often."""
RETRY_S, LONGEST_RETRY_S = 1.0, 60.0
MOST_KNOWN = 10_000  # conversations
MOST_WAITING = 10_000  # exchanges in the queue, such as while the database is unreachable


@dataclass(eq=False)
class LiveConversation:
    """One conversation, its episode once it has an exchange, and the marks of its end by which it is found again."""

    key: UUID = field(default_factory=uuid4)
    episode_id: UUID | None = None
    lines: int = 0
    spoken_at: float = field(default_factory=time.monotonic)
    said: str = ""
    """The mark of all that was said in it."""
    marks: Sequence[str] = ()


class LiveConversations:
    """The conversations of a wrapped client, and the thread that stores them; safe to share between threads."""

    def __init__(self, memory: Heart | str, *, project_id: str | None, user_id: str | None) -> None:
        self._heart = memory if isinstance(memory, Heart) else None
        self._name = memory.agent.id if isinstance(memory, Heart) else checked_agent(memory)
        self._reach: dict[str, Any] = {
            "project_id": checked_as(ProjectId, "project_id", project_id),
            "user_id": checked_as(UserId, "user_id", user_id),
        }
        self._has_tried = threading.Event()  # to open the heart
        self._has_given_up = False
        self._waiting: deque[tuple[LiveConversation, str]] = deque()
        self._known: OrderedDict[LiveConversation, None] = OrderedDict()
        self._marked: dict[str, dict[LiveConversation, None]] = {}
        self._open: dict[UUID, LiveConversation] = {}
        self._streams: WeakSet[RecordedStream] = WeakSet()
        self._is_closing = False
        self._changed = threading.Condition()
        """Held for every change of the above, and notified of what the thread or `close` waits for."""
        threading.Thread(target=self._work, name="nous-conversations", daemon=True).start()
        atexit.register(self.close)

    def notes(self, prompt: str) -> str:
        """Return notes that answer a prompt; empty if recall is not confident or the memory unreachable."""
        if self._heart is None:
            self._has_tried.wait(OPEN_S)
        if self._heart is None:
            return ""
        try:
            return context_for_prompt(self._heart, prompt, deadline_s=RECALL_S, **self._reach)
        except NousError as error:
            logger.warning("nothing was recalled for a prompt: %s", error)
            return ""

    def add(self, before: Sequence[str], lines: Sequence[str], *, follows: str | None, answer_id: str | None) -> None:
        """Queue the lines of an exchange for the episode of the conversation that it continues, or for a new one.

        `before` are the earlier lines that the call sent, `follows` is the id of the answer that it named instead.
        """
        if not lines:
            return
        with self._changed:
            if len(self._waiting) >= MOST_WAITING:
                logger.error("an exchange is not remembered: %d wait already for %s", MOST_WAITING, self._name)
                return
            known = self._continued(before, follows)
            conversation = known or LiveConversation()
            spoken = [*before, *lines]
            conversation.said = mark_of(lines if known and not follows else spoken, after=conversation.said)
            self._mark(conversation, last_exchange(spoken), answer_id)
            conversation.spoken_at = time.monotonic()
            self._waiting.append((conversation, "\n".join(lines)))
            self._changed.notify_all()

    def watch(self, stream: RecordedStream) -> None:
        """End a stream when the conversations are closed, if it was neither closed nor dropped before."""
        with self._changed:
            self._streams.add(stream)

    def _continued(self, before: Sequence[str], follows: str | None) -> LiveConversation | None:
        """Return the conversation that a call continues; None where it is new, or may be another's.

        All that was said has to be equal, as the conversations of two people often end alike. Of one user's own, the
        last question and its answer are enough: programs drop old messages from long conversations.
        """
        if follows:
            found = self._marked.get(f"answer {follows}", {})
        elif alike := self._marked.get(f"all {mark_of(before)}"):
            return next(iter(alike))  # the same was said in each, so any of them is right
        else:
            found = self._marked.get(f"last {mark_of(last_exchange(before))}", {})
        return next(iter(found)) if len(found) == 1 else None

    def _mark(self, conversation: LiveConversation, exchange: Sequence[str], answer_id: str | None) -> None:
        """Mark the end of a conversation, and its earlier end no more: what continues that one is a branch."""
        self._unmark(conversation)
        answer = [f"answer {answer_id}"] if answer_id else []
        last = [f"last {mark_of(exchange)}"] if exchange and self._reach["user_id"] else []
        conversation.marks = [f"all {conversation.said}", *answer, *last]
        for mark in conversation.marks:
            self._marked.setdefault(mark, {})[conversation] = None
        self._known[conversation] = None
        self._known.move_to_end(conversation)
        if len(self._known) > MOST_KNOWN:
            self._unmark(self._known.popitem(last=False)[0])

    def _unmark(self, conversation: LiveConversation) -> None:
        for mark in conversation.marks:
            del self._marked[mark][conversation]
            if not self._marked[mark]:
                del self._marked[mark]

    def close(self, *, within_s: float = 5.0) -> bool:
        """Store queued exchanges and close all episodes; return whether that was done within some seconds."""
        with self._changed:
            for stream in [*self._streams]:
                stream.end()
            self._is_closing = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._has_given_up or not (self._waiting or self._open), within_s)
            left, is_done = len(self._waiting), not (self._waiting or self._open)
        if left:
            logger.error("not stored in the memory of %s within %g s: %d of the exchanges", self._name, within_s, left)
        return is_done

    def _work(self) -> None:
        try:
            self._open_heart()
        except InvalidInput as error:
            logger.error("the memory of %s can't be opened, and nothing is remembered: %s", self._name, error)
            self._has_tried.set()
            with self._changed:
                self._has_given_up = True
                self._changed.notify_all()
            return
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._is_closing, POLL_S)
                exchange = self._waiting[0] if self._waiting else None
            if exchange:
                self._store(*exchange)
                with self._changed:
                    self._waiting.popleft()
            else:
                self._end_idle()
            with self._changed:
                self._changed.notify_all()

    def _end_idle(self) -> None:
        """Close the episodes of conversations that are idle, or all of them if that is asked for."""
        now = time.monotonic()
        for conversation in [*self._open.values()]:
            if self._is_closing or now - conversation.spoken_at > IDLE_S:
                self._end(conversation)
        with self._changed:
            self._is_closing = self._is_closing and bool(self._waiting or self._open)

    def _open_heart(self) -> Heart:
        """Return the heart, opened with retries until that succeeds; raise `InvalidInput` where it never can."""
        pause_s = RETRY_S
        while self._heart is None:
            try:
                self._heart = Heart.open(self._name)
            except InvalidInput:
                raise
            except NousError as error:
                logger.warning("the memory of %s can't be opened, tried again in %g s: %s", self._name, pause_s, error)
                self._has_tried.set()
                time.sleep(pause_s)
                pause_s = min(pause_s * 2, LONGEST_RETRY_S)
        self._has_tried.set()
        return self._heart

    def _store(self, conversation: LiveConversation, text: str) -> None:
        """Append to the episode of a conversation, with retries; if it can't be added to, begin another."""
        pause_s = RETRY_S
        while True:
            try:
                self._append(conversation, text)
            except (Unavailable, Conflict) as error:
                logger.warning("an exchange waits for the memory of %s, %g s more: %s", self._name, pause_s, error)
                time.sleep(pause_s)
                pause_s = min(pause_s * 2, LONGEST_RETRY_S)
            except NousError as error:
                if not conversation.lines:  # a new episode refuses it too, so it is the text
                    logger.error("an exchange is not remembered: %s", error)
                    return
                self._end(conversation)
            else:
                return

    def _append(self, conversation: LiveConversation, text: str) -> None:
        """Append to the episode of a conversation, begun if need be; idempotency keys make a retry safe."""
        heart = self._open_heart()
        if conversation.episode_id is None:
            begun = heart.start_episode(idempotency_key=str(conversation.key), **self._reach)
            conversation.episode_id = begun.id
            self._open[begun.id] = conversation
        key = f"{conversation.key}/{conversation.lines}"
        heart.update_episode(conversation.episode_id, append=text, idempotency_key=key)
        conversation.lines += 1

    def _end(self, conversation: LiveConversation) -> None:
        """Close the episode of a conversation; its next exchange begins another one."""
        if conversation.episode_id is None:
            return
        try:
            self._open_heart().close_episode(conversation.episode_id)
        except (Unavailable, Conflict) as error:
            logger.warning("episode %s is closed later: %s", conversation.episode_id, error)
            time.sleep(RETRY_S)
            return
        except NousError as error:
            logger.warning("episode %s can't be closed: %s", conversation.episode_id, error)
        self._open.pop(conversation.episode_id, None)
        conversation.key, conversation.episode_id, conversation.lines = uuid4(), None, 0


def mark_of(lines: Sequence[str], *, after: str = "") -> str:
    """Return the mark of what was said: a hash of its lines, without white space, and of the mark of those before."""
    for line in lines:
        after = sha256(f"{after}\n{''.join(line.split())}".encode("utf-8", "surrogatepass")).hexdigest()
    return after


def last_exchange(lines: Sequence[str]) -> Sequence[str]:
    """Return the last thing the user said, and what was answered; empty where the user said nothing."""
    starts = [place for place, line in enumerate(lines) if line.startswith("user: ")]
    return lines[starts[-1] :] if starts else ()


Client = TypeVar("Client")
Arguments = dict[str, Any]
"""Keyword arguments of a call of a client."""
TEXT_BLOCKS = ("text", "input_text", "output_text")
SPEAKERS = ("user", "assistant")


@dataclass(frozen=True)
class ClientMethod:
    """One method of a client that asks a model: where it is, where notes go, and how its answers are read."""

    resource: str
    verb: str
    add_notes: Callable[[Arguments, str], None]
    messages: str
    answer: Callable[[Any], str]
    piece: Callable[[Any], str]
    """The text of one event of a stream."""


def wrap(client: Client, memory: Heart | str, *, project_id: str | None = None, user_id: str | None = None) -> Client:
    """Return a copy of an `anthropic` or `openai` client whose calls use `memory`: a heart or the name of its agent.

    Copies made of it, as by `with_options`, use it too, and have the same conversations.
    Before a call, memories that answer the prompt are added to it if recall is confident: five lines, marked as notes.
    Afterwards the exchange is stored, in the background, in an episode, which closes when the conversation is idle;
    `close_conversations` closes all of them now, and so does the end of the program. If the memory is unreachable or
    slow, the call goes on without it and the log says so. Raises `InvalidInput` for another client, and for a name of
    an agent, project or user that can't be one.
    """
    packages = [kind.__module__.partition(".")[0] for kind in type(client).__mro__]
    methods = next((METHODS[package] for package in packages if package in METHODS), None)
    if methods is None:
        raise InvalidInput(f"can't wrap a {type(client).__qualname__}: want a client of `anthropic` or `openai`")
    conversations = LiveConversations(memory, project_id=project_id, user_id=user_id)
    # The method of the class: that of a client already wrapped would keep its memory too.
    return copy_with_memory(partial(cast("Any", type(client)).copy, client), methods, conversations)


def close_conversations(client: object, *, within_s: float = 5.0) -> bool:
    """Store what was said to a wrapped client, and close the episodes of its conversations.

    Returns whether that was done within some seconds; if not, it goes on in the background. It is `client.nous.close()`
    in words that type checkers know. Raises `InvalidInput` for a client that is not wrapped.
    """
    conversations = getattr(client, "nous", None)
    if not isinstance(conversations, LiveConversations):
        raise InvalidInput(f"not a wrapped client: {type(client).__qualname__} (want what `wrap` returned)")
    return conversations.close(within_s=within_s)


def copy_with_memory(
    copy: Callable[..., Any], methods: Sequence[ClientMethod], conversations: LiveConversations, **options: Any
) -> Any:
    """Return a copy of a client whose calls use the memory of these conversations, as do copies of it."""
    client = copy(**options)
    client.nous = conversations
    client.copy = client.with_options = partial(copy_with_memory, client.copy, methods, conversations)
    for method in methods:
        resource: Any = reduce(getattr, method.resource.split("."), client)
        if verb := getattr(resource, method.verb, None):
            setattr(resource, method.verb, with_memory(verb, method, conversations))
    return client


def with_memory(verb: Callable[..., Any], method: ClientMethod, conversations: LiveConversations) -> Callable[..., Any]:
    def call(*positional: Any, **arguments: Any) -> Any:
        turn = ClientTurn.begin(method, arguments, conversations)
        return turn.finish(verb(*positional, **arguments))

    async def call_async(*positional: Any, **arguments: Any) -> Any:
        turn = await asyncio.to_thread(ClientTurn.begin, method, arguments, conversations)
        return turn.finish(await verb(*positional, **arguments))

    return call_async if inspect.iscoroutinefunction(inspect.unwrap(verb)) else call


@dataclass(frozen=True)
class ClientTurn:
    """The prompt of one call, and what was said before it."""

    method: ClientMethod
    conversations: LiveConversations
    before: Sequence[str]
    prompt: str
    follows: str | None

    @classmethod
    def begin(cls, method: ClientMethod, arguments: Arguments, conversations: LiveConversations) -> ClientTurn:
        """Read the arguments of a call, and add notes to them if recall finds some."""
        before, prompt = texts_in(arguments, method.messages)
        turn = cls(method, conversations, before, prompt, arguments.get("previous_response_id"))
        if prompt and (notes := conversations.notes(prompt)):
            method.add_notes(arguments, notes)
        return turn

    def finish(self, answer: Any) -> Any:
        """Keep an answer and return it; a stream is returned wrapped, and kept at its end."""
        if hasattr(answer, "__enter__") or hasattr(answer, "__aenter__"):
            return RecordedStream(answer, self)
        self.keep(answer)
        return answer

    def keep(self, answer: Any) -> None:
        """Keep the exchange; an answer without a text, such as a raw response, is not kept."""
        try:
            text = self.method.answer(answer)
        except (AttributeError, IndexError, TypeError):
            logger.info("an answer of type %s is not remembered: it holds no text", type(answer).__qualname__)
            return
        self.add(text, getattr(answer, "id", None))

    def add(self, answer: str, answer_id: str | None) -> None:
        lines = [f"{who}: {text}" for who, text in (("user", self.prompt), ("assistant", answer)) if text]
        self.conversations.add(self.before, lines, follows=self.follows, answer_id=answer_id)


class RecordedStream:
    """A stream whose text is kept when it ends; all attributes are those of the client's own stream."""

    # It ends where it is read to its end, closed or dropped. A loop that is left is no end: another may go on with it.

    def __init__(self, stream: Any, turn: ClientTurn) -> None:
        self._stream, self._turn = stream, turn
        self._inner: Any = None
        self._pieces: list[str] = []
        self._answer_id: str | None = None
        self._is_kept = False
        turn.conversations.watch(self)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __enter__(self) -> Any:
        return self._enter(self._stream.__enter__())

    async def __aenter__(self) -> Any:
        return self._enter(await self._stream.__aenter__())

    def __exit__(self, *raised: Any) -> Any:
        self.end()
        return self._stream.__exit__(*raised)

    async def __aexit__(self, *raised: Any) -> Any:
        self.end()
        return await self._stream.__aexit__(*raised)

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        try:
            event = next(self._stream)
        except StopIteration:
            self.end()
            raise
        self._record(event)
        return event

    def __aiter__(self) -> Any:
        return self

    async def __anext__(self) -> Any:
        try:
            event = await anext(self._stream)
        except StopAsyncIteration:
            self.end()
            raise
        self._record(event)
        return event

    def close(self) -> Any:
        self.end()
        return self._stream.close()

    def aclose(self) -> Any:
        self.end()
        return self._stream.aclose()

    def __del__(self) -> None:
        self.end()

    def _enter(self, inner: Any) -> Any:
        """Return this object for a stream that enters as itself, else the stream that a manager opened."""
        # A manager of Anthropic's opens a stream that collects its message itself: `end` reads it from there.
        self._inner = None if inner is self._stream else inner
        return self if self._inner is None else inner

    def _record(self, event: Any) -> None:
        self._pieces.append(self._turn.method.piece(event))
        self._answer_id = part(getattr(event, "response", None), "id") or self._answer_id

    def end(self) -> None:
        """Keep the text once: all of it, or what arrived before the stream was left; nothing if nothing arrived."""
        if self._is_kept:
            return
        if self._pieces:
            self._is_kept = True
            self._turn.add("".join(self._pieces), self._answer_id)
        elif self._inner is not None:
            self._is_kept = True
            with suppress(AssertionError):  # of the client, where no message has begun
                self._turn.keep(getattr(self._inner, "current_message_snapshot", None))


def texts_in(arguments: Arguments, name: str) -> tuple[list[str], str]:
    """Return the earlier lines of a conversation, and the prompt; empty if the last message is a tool's result."""
    messages = arguments.get(name, ())
    if isinstance(messages, str):
        return [], messages
    arguments[name] = listed = list(
        cast("Iterable[Any]", messages)
    )  # it may be an iterator, which the client reads too
    spoken = [(role, text) for each in listed if (role := part(each, "role")) in SPEAKERS and (text := text_of(each))]
    has_prompt = bool(listed) and part(listed[-1], "role") == "user" and bool(text_of(listed[-1]))
    prompt = spoken.pop()[1] if has_prompt else ""
    return [f"{role}: {text}" for role, text in spoken], prompt


def part(thing: Any, name: str) -> Any:
    """Return a field of a message or block, which may be a mapping or an object of the client."""
    return cast("Mapping[str, Any]", thing).get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)


def text_of(message: Any) -> str:
    """Return the text of a message, without tool calls, tool results and images."""
    content = part(message, "content")
    if isinstance(content, str):
        return content.strip()
    blocks = cast("Iterable[Any]", content or ())
    return "\n".join(str(part(each, "text")) for each in blocks if part(each, "type") in TEXT_BLOCKS).strip()


def into_prompt(name: str, arguments: Arguments, notes: str) -> None:
    """Add notes to the end of a system prompt or instructions, so that the cached prefix before it stays valid."""
    given = arguments.get(name)
    if isinstance(given, str) or not isinstance(given, Iterable):
        arguments[name] = f"{given}\n\n{notes}" if isinstance(given, str) and given else notes
    else:
        arguments[name] = [*cast("Iterable[Any]", given), {"type": "text", "text": notes}]


def into_messages(arguments: Arguments, notes: str) -> None:
    """Add notes before the prompt, so that the cached prefix of earlier messages stays valid."""
    *before, prompt = arguments["messages"]
    arguments["messages"] = [*before, {"role": "system", "content": notes}, prompt]


MESSAGES = ClientMethod(
    "messages",
    "create",
    partial(into_prompt, "system"),
    "messages",
    text_of,
    lambda event: getattr(event.delta, "text", "") if event.type == "content_block_delta" else "",
)
COMPLETIONS = ClientMethod(
    "chat.completions",
    "create",
    into_messages,
    "messages",
    lambda answer: text_of(answer.choices[0].message),
    lambda event: "".join(each.delta.content or "" for each in event.choices),
)
RESPONSES = ClientMethod(
    "responses",
    "create",
    partial(into_prompt, "instructions"),
    "input",
    lambda answer: answer.output_text,
    lambda event: event.delta if event.type == "response.output_text.delta" else "",
)
METHODS: Mapping[str, Sequence[ClientMethod]] = {
    "anthropic": (MESSAGES, replace(MESSAGES, verb="stream")),
    "openai": (COMPLETIONS, RESPONSES),
}
"""Methods to wrap, by the package of the client."""
