"""Conversations as they go on: recalled from at once, told to the memory in the background, an episode each."""

from __future__ import annotations

import atexit
import logging
import queue
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any
from uuid import UUID, uuid4

from nous_online.core.errors import InvalidInput, NousError, Refused
from nous_online.heart import Heart
from nous_online.interfaces.hooks.session_notes import context_for_prompt

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
