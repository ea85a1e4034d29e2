"""A model client that remembers: what bears on a prompt goes in, and what was said becomes an episode."""

from __future__ import annotations

import asyncio
import atexit
import inspect
import logging
import queue
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from hashlib import sha256
from typing import TYPE_CHECKING, Any, TypeVar, cast
from uuid import UUID, uuid4

from nous_online.core.errors import InvalidInput, NousError, Refused
from nous_online.heart import Heart
from nous_online.interfaces.hooks.session_notes import context_for_prompt

if TYPE_CHECKING:
    from nous_online.heart import Heart

logger = logging.getLogger(__name__)
RECALL_S, OPEN_S = 1.0, 5.0
"""How long a call waits for what is known, and the first one for a memory that is being opened."""
RESTED_S, LOOK_S = 900.0, 5.0
"""After how long without a word a conversation is over, and how often that is looked at."""
RETRY_S, LONGEST_RETRY_S = 1.0, 60.0
EXIT_S = 5.0
"""How long the end of the program waits for what is still to be told."""
MOST_KNOWN = 10_000
MOST_WAITING = 10_000


@dataclass
class LiveConversation:
    """One conversation, and the episode it becomes once something was said."""

    key: UUID = field(default_factory=uuid4)
    episode_id: UUID | None = None
    lines: int = 0
    spoken_at: float = field(default_factory=time.monotonic)


class LiveConversations:
    """What a wrapped client knows of its conversations; safe to be used by several threads."""

    def __init__(self, memory: Heart | str, reach: Mapping[str, str | None]) -> None:
        self._reach: dict[str, Any] = dict(reach)
        self._name = memory if isinstance(memory, str) else memory.agent.id
        self._heart = None if isinstance(memory, str) else memory
        self._is_tried = threading.Event()
        self._waiting: queue.Queue[tuple[LiveConversation, str] | None] = queue.Queue(MOST_WAITING)
        self._known: OrderedDict[str, LiveConversation] = OrderedDict()
        self._open: dict[UUID, LiveConversation] = {}
        self._lock = threading.Lock()
        self._is_closing = threading.Event()
        threading.Thread(target=self._work, name="nous-conversations", daemon=True).start()
        atexit.register(self.close)

    def notes(self, asked: str) -> str:
        """Return what is known that bears on a prompt; nothing where recall is not sure, or the memory is down."""
        if self._heart is None:
            self._is_tried.wait(OPEN_S)
        if self._heart is None:
            return ""
        try:
            return context_for_prompt(self._heart, asked, deadline_s=RECALL_S, **self._reach)
        except NousError as error:
            logger.warning("nothing was recalled for a prompt: %s", error)
            return ""

    def of(self, before: Sequence[str], answer_id: str | None) -> LiveConversation:
        """Return the conversation of which so much was said before, or a new one.

        It is known by all that was said, else by its last answer: an application may cut what is long ago.
        """
        with self._lock:
            marks = [answer_id] if answer_id else [mark_of(before), mark_of(before[-1:])] if before else []
            return next((self._known[mark] for mark in marks if mark in self._known), LiveConversation())

    def say(
        self, conversation: LiveConversation, before: Sequence[str], asked: str, answer: str, answer_id: str | None
    ) -> None:
        """Have an exchange told to the memory, and know the conversation by it."""
        said = [f"{who}: {text}" for who, text in (("user", asked), ("assistant", answer)) if text]
        if not said:
            return
        spoken = [*before, *([asked] if asked else []), *([answer] if answer else [])]
        with self._lock:
            for mark in filter(None, (mark_of(spoken), mark_of(spoken[-1:]), answer_id)):
                self._known[mark] = conversation
                self._known.move_to_end(mark)
            while len(self._known) > MOST_KNOWN:
                self._known.popitem(last=False)
        conversation.spoken_at = time.monotonic()
        try:
            self._waiting.put_nowait((conversation, "\n".join(said)))
        except queue.Full:
            logger.error("an exchange is not remembered: %d wait already for %s", MOST_WAITING, self._name)

    def close(self, *, within_s: float = EXIT_S) -> bool:
        """Tell what waits and close all episodes; return whether that was done within some seconds."""
        ends_at = time.monotonic() + within_s
        self._is_closing.set()
        self._waiting.put(None)  # wakes the thread
        while (self._waiting.unfinished_tasks or self._open) and time.monotonic() < ends_at:
            time.sleep(0.02)
        if left := self._waiting.unfinished_tasks:
            logger.error("%d exchanges could not be told to the memory of %s in %g s", left, self._name, within_s)
        return not (left or self._open)

    def _work(self) -> None:
        """Tell the memory what was said, in order, as long as the program runs."""
        self._opened()
        while True:
            try:
                told = self._waiting.get(timeout=0 if self._is_closing.is_set() else LOOK_S)
            except queue.Empty:
                self._close_rested()
                self._is_closing.clear()
                continue
            if told:
                self._tell(*told)
            self._waiting.task_done()

    def _opened(self) -> Heart:
        """Return the memory, opened as soon as that can be done."""
        pause_s = RETRY_S
        while self._heart is None:
            try:
                self._heart = Heart.open(self._name)
            except NousError as error:
                logger.warning("the memory of %s can't be opened, tried again in %g s: %s", self._name, pause_s, error)
                self._is_tried.set()
                time.sleep(pause_s)
                pause_s = min(pause_s * 2, LONGEST_RETRY_S)
        self._is_tried.set()
        return self._heart

    def _tell(self, conversation: LiveConversation, said: str) -> None:
        """Add to the episode of a conversation until it is there; an episode that is over or full gets a successor."""
        pause_s = RETRY_S
        while True:
            try:
                self._append(conversation, said)
            except (InvalidInput, Refused) as error:
                if not conversation.lines:
                    logger.error("an exchange is not remembered: %s", error)
                    return
                self._end(conversation)
                conversation.key, conversation.episode_id, conversation.lines = uuid4(), None, 0
            except NousError as error:
                logger.warning("an exchange waits for the memory of %s, %g s more: %s", self._name, pause_s, error)
                time.sleep(pause_s)
                pause_s = min(pause_s * 2, LONGEST_RETRY_S)
            else:
                return

    def _append(self, conversation: LiveConversation, said: str) -> None:
        """Add to the episode of a conversation; keys make it safe to be done again."""
        heart = self._opened()
        if conversation.episode_id is None:
            begun = heart.start_episode(idempotency_key=str(conversation.key), **self._reach)
            conversation.episode_id = begun.id
            self._open[begun.id] = conversation
        key = f"{conversation.key}/{conversation.lines}"
        heart.update_episode(conversation.episode_id, append=said, idempotency_key=key)
        conversation.lines += 1

    def _close_rested(self) -> None:
        """Close the episodes of conversations in which nothing was said for long, or of all when that was asked."""
        now = time.monotonic()
        for conversation in [*self._open.values()]:
            if self._is_closing.is_set() or now - conversation.spoken_at > RESTED_S:
                self._end(conversation)

    def _end(self, conversation: LiveConversation) -> None:
        """Close the episode of a conversation; what is said later begins another one."""
        if conversation.episode_id is None:
            return
        try:
            self._opened().close_episode(conversation.episode_id)
        except NousError as error:
            logger.warning("episode %s is closed later: %s", conversation.episode_id, error)
            time.sleep(RETRY_S)
            return
        self._open.pop(conversation.episode_id, None)
        conversation.key, conversation.episode_id, conversation.lines = uuid4(), None, 0


def mark_of(texts: Sequence[str]) -> str:
    """Return by what a conversation is known in which these texts were said."""
    return sha256("\0".join(texts).encode("utf-8", "surrogatepass")).hexdigest()


Client = TypeVar("Client")
Told = dict[str, Any]
TEXT_BLOCKS = ("text", "input_text", "output_text")
SPEAKERS = ("user", "assistant")


@dataclass(frozen=True)
class Door:
    """One way to ask a model: where the verb is, where notes go, and how its answers are read."""

    resource: str
    verb: str
    put_in: Callable[[Told, str], None]
    messages: str
    answer: Callable[[Any], str]
    piece: Callable[[Any], str]
    """The text of one event of a stream."""


def wrap(client: Client, memory: Heart | str, *, project_id: str | None = None, user_id: str | None = None) -> Client:
    """Return a copy of an `anthropic` or `openai` client whose calls remember, with `memory`: a heart or its name.

    Before a call what is known of the prompt goes in, where recall is sure of it: five lines, marked as notes.
    Afterwards the exchange goes, in the background, into an episode, which closes when the conversation rests;
    `client.nous.close()` closes all of them now, and so does the end of the program. A memory that is down or slow is
    left out of the call and noted in the log. Raises `InvalidInput` for another client.
    """
    doors = DOORS.get(type(client).__module__.partition(".")[0])
    if doors is None:
        raise InvalidInput(f"can't wrap a {type(client).__qualname__}: want a client of `anthropic` or `openai`")
    wrapped: Any = cast("Any", client).copy()
    wrapped.nous = LiveConversations(memory, {"project_id": project_id, "user_id": user_id})
    for door in doors:
        resource: Any = reduce(getattr, door.resource.split("."), wrapped)
        if verb := getattr(resource, door.verb, None):
            setattr(resource, door.verb, remembering(verb, door, wrapped.nous))
    return wrapped


def remembering(verb: Callable[..., Any], door: Door, kept: LiveConversations) -> Callable[..., Any]:
    """Return a verb of a client that does the same with memory."""

    def call(*positional: Any, **told: Any) -> Any:
        turn = Turn.begun(door, told, kept)
        return turn.heard(verb(*positional, **told))

    async def call_async(*positional: Any, **told: Any) -> Any:
        turn = await asyncio.to_thread(Turn.begun, door, told, kept)
        return turn.heard(await verb(*positional, **told))

    return call_async if inspect.iscoroutinefunction(inspect.unwrap(verb)) else call


@dataclass(frozen=True)
class Turn:
    """What is asked in one call, and of which conversation."""

    door: Door
    kept: LiveConversations
    before: Sequence[str]
    asked: str
    conversation: LiveConversation

    @classmethod
    def begun(cls, door: Door, told: Told, kept: LiveConversations) -> Turn:
        """Read a call, and put notes into it where something is known that bears on it."""
        spoken, asked = spoken_in(told, door.messages)
        turn = cls(door, kept, spoken, asked, kept.of(spoken, told.get("previous_response_id")))
        if asked and (notes := kept.notes(asked)):
            door.put_in(told, notes)
        return turn

    def heard(self, answer: Any) -> Any:
        """Keep an answer, or overhear one that comes piece by piece; return it as the client gave it, or as it acts."""
        if hasattr(answer, "__enter__") or hasattr(answer, "__aenter__"):
            return Overheard(answer, self)
        self.keep(answer)
        return answer

    def keep(self, answer: Any) -> None:
        """Keep what was asked and answered; one that can't be read is left out."""
        try:
            text = self.door.answer(answer)
        except (AttributeError, IndexError, TypeError):
            logger.info("an answer of type %s is not remembered: it holds no text", type(answer).__qualname__)
            return
        self.say(text, getattr(answer, "id", None))

    def say(self, answer: str, answer_id: str | None) -> None:
        """Keep what was asked and what was answered."""
        self.kept.say(self.conversation, self.before, self.asked, answer, answer_id)


class Overheard:
    """A stream that is passed on as it is, and kept when it ends; anything else is asked of the stream itself."""

    def __init__(self, stream: Any, turn: Turn) -> None:
        self._stream, self._turn = stream, turn
        self._inner: Any = None
        self._pieces: list[str] = []
        self._is_kept = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __enter__(self) -> Any:
        return self._entered(self._stream.__enter__())

    async def __aenter__(self) -> Any:
        return self._entered(await self._stream.__aenter__())

    def __exit__(self, *raised: Any) -> Any:
        self._end()
        return self._stream.__exit__(*raised)

    async def __aexit__(self, *raised: Any) -> Any:
        self._end()
        return await self._stream.__aexit__(*raised)

    def __iter__(self) -> Any:
        for event in self._stream:
            self._overhear(event)
            yield event
        self._end()

    def __next__(self) -> Any:
        try:
            event = next(self._stream)
        except StopIteration:
            self._end()
            raise
        self._overhear(event)
        return event

    async def __aiter__(self) -> Any:
        async for event in self._stream:
            self._overhear(event)
            yield event
        self._end()

    def _entered(self, inner: Any) -> Any:
        """Return this for a stream that enters as itself; what a manager opens keeps its answer by its own means."""
        self._inner = None if inner is self._stream else inner
        return self if self._inner is None else inner

    def _overhear(self, event: Any) -> None:
        self._pieces.append(self._turn.door.piece(event))

    def _end(self) -> None:
        """Keep what was heard, once: all of it, or what there was when the stream was left."""
        if self._is_kept:
            return
        self._is_kept = True
        if self._inner is None:
            self._turn.say("".join(self._pieces), None)
        else:
            self._turn.keep(getattr(self._inner, "current_message_snapshot", None))


def spoken_in(told: Told, name: str) -> tuple[list[str], str]:
    """Return the texts of a conversation before the last thing asked, and that; nothing is asked by a tool's result."""
    given = told.get(name, ())
    if isinstance(given, str):
        return [], given
    told[name] = listed = list(cast("Iterable[Any]", given))  # it may be read but once
    spoken = [(role, text) for each in listed if (role := part(each, "role")) in SPEAKERS and (text := text_of(each))]
    is_asking = bool(listed) and part(listed[-1], "role") == "user" and bool(text_of(listed[-1]))
    texts = [text for _, text in spoken]
    return (texts[:-1], texts[-1]) if is_asking else (texts, "")


def part(thing: Any, name: str) -> Any:
    """Return a field of a message or block, whether it is a mapping or an object of the client."""
    return cast("Mapping[str, Any]", thing).get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)


def text_of(message: Any) -> str:
    """Return what a message says in words: no calls of tools, no results, no pictures."""
    content = part(message, "content")
    if isinstance(content, str):
        return content.strip()
    blocks = cast("Iterable[Any]", content or ())
    return "\n".join(str(part(each, "text")) for each in blocks if part(each, "type") in TEXT_BLOCKS).strip()


def into_system(told: Told, notes: str) -> None:
    """Put notes at the end of an Anthropic system prompt, behind whatever of it is cached."""
    system = told.get("system")
    if isinstance(system, str) or not isinstance(system, Iterable):
        told["system"] = f"{system}\n\n{notes}" if isinstance(system, str) and system else notes
    else:
        told["system"] = [*cast("Iterable[Any]", system), {"type": "text", "text": notes}]


def into_messages(told: Told, notes: str) -> None:
    """Put notes before the last thing asked: what comes before stays as it was, so that it may be cached."""
    *before, asked = told["messages"]
    told["messages"] = [*before, {"role": "system", "content": notes}, asked]


def into_instructions(told: Told, notes: str) -> None:
    """Put notes at the end of the instructions of a response."""
    given = told.get("instructions")
    told["instructions"] = f"{given}\n\n{notes}" if isinstance(given, str) and given else notes


def piece_of_message(event: Any) -> str:
    """Return the text of an event of Anthropic's stream."""
    return getattr(event.delta, "text", "") if event.type == "content_block_delta" else ""


def piece_of_completion(event: Any) -> str:
    """Return the text of a chunk of a chat completion."""
    return "".join(each.delta.content or "" for each in event.choices)


def piece_of_response(event: Any) -> str:
    """Return the text of an event of a response."""
    return event.delta if event.type == "response.output_text.delta" else ""


MESSAGES = (into_system, "messages", text_of, piece_of_message)
DOORS: Mapping[str, Sequence[Door]] = {
    "anthropic": (Door("messages", "create", *MESSAGES), Door("messages", "stream", *MESSAGES)),
    "openai": (
        Door(
            "chat.completions",
            "create",
            into_messages,
            "messages",
            lambda answer: text_of(answer.choices[0].message),
            piece_of_completion,
        ),
        Door("responses", "create", into_instructions, "input", lambda answer: answer.output_text, piece_of_response),
    ),
}
"""By the package a client comes from."""
