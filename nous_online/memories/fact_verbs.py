"""The verbs of facts: learning, confirming and looking them up."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Unpack, cast
from uuid import UUID

from nous_online.core.details import Content, FactDetails, Replaces
from nous_online.core.domain import FACT, KINDS, Fact, Learned, Statement
from nous_online.core.errors import NotFound
from nous_online.core.validation import checked_id, checked_optional, checked_said
from nous_online.database.changes import get_memory
from nous_online.memories import episodes, facts, memory_changes, store
from nous_online.memories.agent import Verbs, with_session_frame
from nous_online.memories.learning import named_facts


class FactVerbs(Verbs):
    """What an agent does with facts."""

    def learn(
        self,
        content: Content,
        *,
        replaces: Replaces = None,
        deadline_s: float | None = None,
        **details: Unpack[FactDetails],
    ) -> Learned:
        """Learn one fact: confirm the one that says the same, supersede the one it updates, or store it.

        Returns what was done and why, with what is `near`. Raises `InvalidInput` for what can't be stored; `NotFound`
        for an episode this agent has not, or a named fact that isn't there for the same scope, user and project;
        `Conflict` when one is no longer active, was changed since it was read, or the idempotency key was used for
        another content; `Refused` where `replaces` names what is pinned or trusted more; `DeadlineExceeded` and
        `Unavailable` when the database or embedder fails; then nothing was stored. A judge that fails never loses the
        fact: it is stored, and the night looks at it again.
        """
        deadline = self.agent.deadline(deadline_s)
        in_session = with_session_frame(self.agent, details, FactDetails, deadline)
        (told,) = episodes.with_episode_trust(self.agent, [in_session], "source_episode_id", deadline)
        new = facts.new_fact(content, cast("FactDetails", told), now=datetime.now(UTC), rights=self.agent.rights)
        learned = facts.learn(self.agent, new, deadline, replaces=named_facts(replaces))
        if self.agent.subscriptions:
            self.agent.awake.set()
        return learned

    def learn_deferred(self, entries: Sequence[tuple[str, FactDetails]], *, deadline_s: float | None = None) -> int:
        """Store many facts at once as they are, leave all matching to the night, and return how many were new.

        Meant for histories: nothing is confirmed or superseded here, so every line can be found again and every
        later merge can be undone. All are stored, or none; raises as `learn` does.
        """
        deadline = self.agent.deadline(deadline_s)
        now = datetime.now(UTC)
        rights = self.agent.rights
        told = episodes.with_episode_trust(
            self.agent, [details for _, details in entries], "source_episode_id", deadline
        )
        news = [
            facts.new_fact(content, cast("FactDetails", details), now=now, rights=rights)
            for (content, _), details in zip(entries, told, strict=True)
        ]
        return facts.store_deferred(self.agent, news, deadline)

    def confirm_fact(
        self,
        fact_id: UUID,
        *,
        at: datetime | str | None = None,
        source: str | None = None,
        deadline_s: float | None = None,
    ) -> Fact:
        """Say that a fact still holds: count it, date it, add its source, and return it.

        Raises `NotFound` when this agent has none of that id, and `Conflict` when it is no longer active.
        """
        deadline, now = self.agent.deadline(deadline_s), datetime.now(UTC)
        return facts.confirm_by_id(
            self.agent,
            checked_id("fact_id", fact_id),
            at=checked_said("at", at, now=now) or now,
            source=checked_optional("source", source, max_characters=500),
            deadline=deadline,
        )

    def supersede_fact(
        self,
        old_id: UUID,
        new_id: UUID,
        *,
        reason: str | None = None,
        at: datetime | str | None = None,
        deadline_s: float | None = None,
    ) -> Fact:
        """Put one fact in the place of another, and return the old one: out of recall, but `as_of` brings it back.

        It counts from `at`, otherwise from when the later of both was learned. Raises `NotFound`, `InvalidInput` when
        both are one, and `Conflict` when the old one is no longer active or the new one was superseded by it.
        """
        deadline = self.agent.deadline(deadline_s)
        return facts.supersede_by_id(
            self.agent,
            checked_id("old_id", old_id),
            checked_id("new_id", new_id),
            reason=checked_optional("reason", reason, max_characters=1000) or "the agent said what replaces it",
            at=checked_said("at", at, now=datetime.now(UTC)),
            deadline=deadline,
        )

    def keep_both(
        self, later_id: UUID, earlier_id: UUID, *, reason: str | None = None, deadline_s: float | None = None
    ) -> Fact:
        """Settle that a fact does not replace an earlier one it is in doubt to replace; `undo` opens the doubt again.

        Both stay, and recall no longer puts one before the other for it. Raises `NotFound` when there is no such
        doubt, or no such fact.
        """
        return facts.keep_both(
            self.agent,
            checked_id("later_id", later_id),
            checked_id("earlier_id", earlier_id),
            reason=checked_optional("reason", reason, max_characters=1000) or "the agent said that both hold",
            deadline=self.agent.deadline(deadline_s),
        )

    def get_fact(self, fact_id: UUID, *, deadline_s: float | None = None) -> Fact:
        """Return one fact in whatever state it is; raise `NotFound` when this agent has none of that id."""
        return self._get(FACT, fact_id, deadline_s)

    def statements(self, fact_id: UUID, *, deadline_s: float | None = None) -> list[Statement]:
        """Return what was said for a fact, word for word, the oldest first; for a fact in any state.

        Those of facts that were merged into it are among them. Confirmations from before statements were kept have no
        words: they are counted in `confirmation_count` alone. Raises `NotFound` when this agent has none of that id.
        """
        with self._transaction(deadline_s) as connection:
            return store.statements_of(connection, self.agent.id, checked_id("fact_id", fact_id))

    def predecessors(self, fact_id: UUID, *, deadline_s: float | None = None) -> list[Fact]:
        """Return the facts that gave way to one, replaced by it or merged into it, the latest first.

        What it gave way to itself is its `superseded_by`. Raises `NotFound` when this agent has no fact of that id.
        """
        known_id = checked_id("fact_id", fact_id)
        with self._transaction(deadline_s) as connection:
            get_memory(connection, self.agent.id, FACT, known_id)
            gone = memory_changes.gave_way_to(connection, self.agent.id, known_id)
            found = [get_memory(connection, self.agent.id, FACT, each) for each, _ in gone]
        return sorted(found, key=lambda each: (each.learned_at, each.id), reverse=True)

    def get(self, memory_id: UUID, *, deadline_s: float | None = None) -> Any:
        """Return one memory of any kind in whatever state it is: a `Fact`, `Episode`, `Procedure` or `Censor`.

        Raises `NotFound` when this agent has none of that id.
        """
        wanted = checked_id("memory_id", memory_id)
        with self._transaction(deadline_s) as connection:
            for kind in KINDS.values():
                with suppress(NotFound):
                    return get_memory(connection, self.agent.id, kind, wanted)
        raise NotFound(f"agent {self.agent.id!r} has no memory {wanted}")

    def count(self, *, deadline_s: float | None = None) -> dict[str, int]:
        """Return how many facts the agent has in each state."""
        with self._transaction(deadline_s) as connection:
            return store.count_facts(connection, self.agent.id)
