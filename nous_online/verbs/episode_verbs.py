"""Starting, recording, updating and closing episodes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Unpack
from uuid import UUID

from nous_online.core.details import (
    ChangeDetails,
    EndDetails,
    EpisodeText,
    IdempotencyKey,
    RecordDetails,
    StartDetails,
    Title,
)
from nous_online.core.domain import Artifact, Episode
from nous_online.core.fields import check_known, checked_as
from nous_online.core.validation import checked_id, checked_moment
from nous_online.memories import cold_texts, episode_writes, episodes, retries
from nous_online.memories.agent import Verbs, across_moves
from nous_online.memories.cold_texts import FullText
from nous_online.memories.episode_changes import checked_beginning, checked_change
from nous_online.memories.sessions import situated


class EpisodeVerbs(Verbs):
    """What an agent does with episodes."""

    def start_episode(
        self, title: Title = None, *, deadline_s: float | None = None, **details: Unpack[StartDetails]
    ) -> Episode:
        """Begin an episode, in state `open` and tier `raw`.

        An open episode of the same session stays open: the one begun last is the current one. Raises `InvalidInput`,
        `NotFound` for a procedure that is not there, and `Conflict` when the key was used for another title.
        """
        deadline = self.agent.deadline(deadline_s)
        check_known(details, StartDetails)
        told = situated(self.agent, details, StartDetails, deadline)
        change = checked_change({**told, "title": title}, self.agent.rights)
        beginning = checked_beginning(told, now=datetime.now(UTC), rights=self.agent.rights)
        return episode_writes.start(self.agent, beginning, change, deadline)

    @across_moves
    def update_episode(
        self,
        episode_id: UUID,
        *,
        idempotency_key: IdempotencyKey = None,
        deadline_s: float | None = None,
        **details: Unpack[ChangeDetails],
    ) -> Episode:
        """Tell more of an episode: `append` adds a line to its detail, lists grow, single values are replaced.

        What is known already changes nothing. An outcome told after the episode was completed is kept, but draws
        nothing more from it: no procedure is counted and no censor suggested. Raises `NotFound`, `InvalidInput`,
        `Refused` for a line more of an episode that is over, and `Conflict` when the key was used for anything else.
        """
        deadline = self.agent.deadline(deadline_s)
        check_known(details, ChangeDetails)
        change, key = (
            checked_change(details, self.agent.rights),
            checked_as(IdempotencyKey, "idempotency_key", idempotency_key),
        )
        return episode_writes.update(self.agent, checked_id("episode_id", episode_id), change, key, deadline)

    @across_moves
    def close_episode(
        self, episode_id: UUID, *, deadline_s: float | None = None, **details: Unpack[EndDetails]
    ) -> Episode:
        """End an episode; within 30 s it gets a title, a summary and up to twelve facts, whoever is running.

        Closing one that is over returns it as it is and does nothing: `update_episode` says more of it. Raises
        `NotFound`, `Conflict` when it was closed with another outcome, `InvalidInput` for an end before the beginning.
        """
        deadline = self.agent.deadline(deadline_s)
        check_known(details, EndDetails)
        change = checked_change(details, self.agent.rights)
        end = checked_moment("ended_at", details.get("ended_at"))
        return episode_writes.close(self.agent, checked_id("episode_id", episode_id), change, end, deadline)

    @across_moves
    def record_episode(
        self, detail: EpisodeText = None, *, deadline_s: float | None = None, **details: Unpack[RecordDetails]
    ) -> Episode:
        """Tell of an episode that is over, in one call; it is completed as a closed one is.

        Without dates it happened now; with one of the two it began and ended in that moment. Raises `InvalidInput`,
        `NotFound` for a procedure that is not there, and `Conflict` when the key was used for another content.
        """
        deadline = self.agent.deadline(deadline_s)
        check_known(details, RecordDetails)
        told = situated(self.agent, details, RecordDetails, deadline)
        change = checked_change({**told, "append": detail}, self.agent.rights)
        beginning = checked_beginning(told, now=datetime.now(UTC), rights=self.agent.rights)
        end = checked_moment("ended_at", details.get("ended_at") or details.get("started_at"))
        return episode_writes.record(self.agent, beginning, change, end, deadline)

    @across_moves
    def retry_episode(self, episode_id: UUID, *, deadline_s: float | None = None) -> Episode:
        """Queue a closed episode to be completed that was set aside after too many failures, as its note says.

        Its text stayed as it was. Raises `NotFound`, and `Refused` for one that is complete, open or archived.
        """
        deadline = self.agent.deadline(deadline_s)
        return retries.retry_episode(self.agent, checked_id("episode_id", episode_id), deadline)

    def get_episode(self, episode_id: UUID, *, deadline_s: float | None = None) -> Episode:
        """Return one episode in whatever state it is; raise `NotFound` when this agent has none of that id."""
        deadline = self.agent.deadline(deadline_s)
        return episodes.get_episode(self.agent, checked_id("episode_id", episode_id), deadline)

    def full_text(self, episode_id: UUID, *, deadline_s: float | None = None) -> FullText:
        """Return the most detailed text there still is of an episode, also of one that a night condensed.

        Recall shows a condensed episode as short as its tier has it; this reads what went to cold storage, and changes
        nothing. Raises `NotFound`.
        """
        wanted = checked_id("episode_id", episode_id)
        with self.agent.transaction(self.agent.deadline(deadline_s)) as connection:
            return cold_texts.full_text(connection, self.agent.id, wanted)

    def episode_artifacts(self, episode_id: UUID, *, deadline_s: float | None = None) -> list[Artifact]:
        """Return the commits, pull requests, decision records and files an episode named; `NotFound` without it."""
        wanted = checked_id("episode_id", episode_id)
        with self.agent.transaction(self.agent.deadline(deadline_s)) as connection:
            return episodes.artifacts_of(connection, self.agent.id, wanted)
