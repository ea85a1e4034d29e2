"""Working memory: what a session is about, and what it holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Unpack
from uuid import UUID

from nous_online.core.details import (
    Capacity,
    ContextDetails,
    PartingDetails,
    SessionCensors,
    SessionFrame,
    SessionTask,
)
from nous_online.core.fields import checked_as
from nous_online.core.policy import DEFAULT_SESSION
from nous_online.core.validation import checked_id, checked_text
from nous_online.memories import session_ends, sessions
from nous_online.memories.agent import Verbs, across_moves
from nous_online.memories.session_ends import SessionEnd
from nous_online.memories.told_texts import guarded
from nous_online.memories.working_memory import Focus, WorkingMemory


class SessionVerbs(Verbs):
    """What an agent does with the working memory of a session.

    It outlives the turn and the process. Whoever loads at the same time loses nothing.
    """

    @across_moves
    def focus(
        self,
        task: SessionTask = None,
        *,
        session_id: str = DEFAULT_SESSION,
        frame: SessionFrame = None,
        active_censors: SessionCensors = None,
        capacity: Capacity = None,
        deadline_s: float | None = None,
    ) -> WorkingMemory:
        """Say what a session is about now: what it holds is weighed anew, and the least relevant goes.

        Begins the session where there is none. What is left out stays as it is: the task, the frame and the censors
        that are active, and the capacity (20 items at first). Frame and censors count for every verb that is told this
        `session_id` and no others.
        """
        deadline = self.agent.deadline(deadline_s)
        wanted = Focus(
            task=checked_as(SessionTask, "task", task),
            frame=checked_as(SessionFrame, "frame", frame),
            active_censors=checked_as(SessionCensors, "active_censors", active_censors),
            capacity=checked_as(Capacity, "capacity", capacity),
        )
        return sessions.focus(self.agent, sessions.checked_session(session_id), wanted, deadline)

    def load_context(
        self, *, session_id: str = DEFAULT_SESSION, deadline_s: float | None = None, **details: Unpack[ContextDetails]
    ) -> WorkingMemory:
        """Take memories, or a note, into working memory; the answer names what had to go for them.

        The least relevant goes, and among equals what was loaded longest ago; that may be what was just loaded. How
        relevant a memory is, is its cosine to the task, unless `relevance` says. Raises `NotFound` and `InvalidInput`.
        """
        deadline = self.agent.deadline(deadline_s)
        wanted = sessions.checked_load(details)
        told, _ = guarded({"note": wanted.note}, ["note"], self.agent.rights)
        wanted = replace(wanted, note=told["note"])
        return sessions.load_context(self.agent, sessions.checked_session(session_id), wanted, deadline)

    def unload(
        self, ids: Sequence[UUID], *, session_id: str = DEFAULT_SESSION, deadline_s: float | None = None
    ) -> WorkingMemory:
        """Let go of memories and notes by their ids; notes are kept for the session's episode."""
        deadline = self.agent.deadline(deadline_s)
        wanted = [checked_id("the id of an item", each) for each in sessions.checked_list("ids", ids)]
        return sessions.unload(self.agent, sessions.checked_session(session_id), wanted, deadline)

    def open_thread(
        self, text: str, *, session_id: str = DEFAULT_SESSION, deadline_s: float | None = None
    ) -> WorkingMemory:
        """Keep in mind what is still to be done; what is open when the session ends goes into its episode."""
        deadline = self.agent.deadline(deadline_s)
        thread = checked_text("thread", text, max_bytes=sessions.MAX_THREAD_BYTES)
        return sessions.open_thread(self.agent, sessions.checked_session(session_id), thread, deadline)

    def close_thread(
        self, thread: str | int, *, session_id: str = DEFAULT_SESSION, deadline_s: float | None = None
    ) -> WorkingMemory:
        """Close a thread, named by its text or its place from 0; raise `NotFound` when there is none such."""
        deadline = self.agent.deadline(deadline_s)
        return sessions.close_thread(self.agent, sessions.checked_session(session_id), thread, deadline)

    def get_working_memory(
        self, session_id: str = DEFAULT_SESSION, *, deadline_s: float | None = None
    ) -> WorkingMemory:
        """Return what a session holds, the most relevant first, each as short as it still makes sense.

        A memory that was superseded or archived meanwhile says so in its `state`; a forgotten or erased one is gone.
        """
        deadline = self.agent.deadline(deadline_s)
        return sessions.get(self.agent, sessions.checked_session(session_id), deadline)

    @across_moves
    def end_session(
        self,
        session_id: str = DEFAULT_SESSION,
        *,
        deadline_s: float | None = None,
        **details: Unpack[PartingDetails],
    ) -> SessionEnd:
        """End a session: its task, notes, open threads and lessons go into its episode, and its memory is cleared.

        The episode that is open is closed, or a new one stored where there is something to keep; its completion
        then draws facts from it, which are seen by whom the episode is: `scope`, `user_id` and `project_id` say so of
        a new one. Raises `NotFound` for a session that has ended already or was never begun, and `InvalidInput`.
        """
        deadline = self.agent.deadline(deadline_s)
        parting = session_ends.checked_parting(details, now=datetime.now(UTC), rights=self.agent.rights)
        return session_ends.end(self.agent, sessions.checked_session(session_id), parting, deadline)
