"""Recording and resolving decisions, and the events that go out and come in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, Unpack
from uuid import UUID

from nous_online.core.details import DecisionDetails, DecisionFilter, DecisionTitle
from nous_online.core.domain import DecisionId
from nous_online.core.validation import checked_choice, checked_decision
from nous_online.memories import decisions
from nous_online.memories.agent import Verbs
from nous_online.memories.decisions import Decision
from nous_online.memories.events import Handler, Subscription, write_event
from nous_online.queue import outbox, reactions


class DecisionVerbs(Verbs):
    """What an agent does with its decisions and events."""

    def record_decision(
        self, title: DecisionTitle, *, deadline_s: float | None = None, **details: Unpack[DecisionDetails]
    ) -> Decision:
        """Record what was decided and why; it and the episode that is open now name each other.

        `reference` is what the agent itself calls it, and names it from then on wherever a decision is asked for.
        Raises `InvalidInput`, `NotFound` for an episode that is not there, and `Conflict` when the idempotency key
        was used for anything else, or the reference for another decision.
        """
        deadline = self.agent.deadline(deadline_s)
        new = decisions.new_decision(title, details, now=datetime.now(UTC), rights=self.agent.rights)
        recorded = decisions.record(self.agent, new, deadline)
        reactions.react_soon(self.agent, deadline)
        return decisions.reread(self.agent, recorded, deadline)

    def resolve_decision(
        self,
        decision_id: DecisionId,
        *,
        status: Literal["succeeded", "failed", "abandoned"],
        outcome: str | None = None,
        at: datetime | str | None = None,
        deadline_s: float | None = None,
    ) -> Decision:
        """Say what became of a decision; a failed one leaves a censor that warns of doing so again.

        Saying the same twice changes nothing. Raises `NotFound`, `InvalidInput`, and `Conflict` when it was resolved
        as something else or with another outcome.
        """
        deadline = self.agent.deadline(deadline_s)
        resolution = decisions.new_resolution(status, outcome, at, now=datetime.now(UTC))
        resolved = decisions.resolve(self.agent, checked_decision("decision_id", decision_id), resolution, deadline)
        reactions.react_soon(self.agent, deadline)
        return resolved

    def get_decision(self, decision_id: DecisionId, *, deadline_s: float | None = None) -> Decision:
        """Return one decision by its id or reference; raise `NotFound` when this agent has none of either."""
        wanted = checked_decision("decision_id", decision_id)
        with self.agent.transaction(self.agent.deadline(deadline_s)) as connection:
            return decisions.get(connection, self.agent.id, wanted)

    def decisions(self, *, deadline_s: float | None = None, **wanted: Unpack[DecisionFilter]) -> list[Decision]:
        """Return decisions, the latest first: those of a status, about a file, with a tag, of a session or episode."""
        with self.agent.transaction(self.agent.deadline(deadline_s)) as connection:
            return decisions.find(connection, self.agent.id, wanted)

    def publish(
        self,
        name: str,
        payload: Mapping[str, Any] | None = None,
        *,
        memory_id: UUID | None = None,
        deadline_s: float | None = None,
    ) -> None:
        """Announce something that happened outside: `guardrail_triggered`, `calibration_drift`, or a name of your own.

        `guardrail_triggered` names `censor_id` or `censor_ids`, or tells the `action` to be checked, with its
        `session_id`, `user_id` and `project_id`; `calibration_drift` names `procedure_ids` or a `domain`, and may tell
        `drift` and a `note`. Raises `InvalidInput` for a name or payload that can't be sent.
        """
        deadline = self.agent.deadline(deadline_s)
        news = outbox.new_event(name, payload or {}, memory_id)
        with self.agent.transaction(deadline) as connection:
            write_event(connection, self.agent.id, **news)
        reactions.react_soon(self.agent, deadline)

    def subscribe(
        self,
        name: str | Sequence[str],
        handler: Handler,
        *,
        consumer: str,
        since: Literal["now", "beginning"] = "now",
        deadline_s: float | None = None,
    ) -> Subscription:
        """Have `handler` called with every event of that name or those names, or of any with `"*"`.

        Each comes at least once and in order. `consumer` is who hears: its place in the queue is kept, so one that was
        away hears what it missed; `since` says where a new one begins. All that share its name share its place, and
        must ask for the same: raises `InvalidInput` when it hears other names in this process. One that asks for more
        names later hears of those from where it stands. A handler that raises gets the same event again after a rest,
        and the next one only then. Handlers run when events are delivered: by the worker, or by `deliver`.
        """
        deadline = self.agent.deadline(deadline_s)
        subscription = outbox.new_subscription(consumer, name, handler, self.agent.subscriptions)
        is_from_now = checked_choice("since", since, ("now", "beginning")) == "now"
        with self.agent.transaction(deadline) as connection:
            outbox.add_cursor(connection, self.agent.id, subscription.consumer, is_from_now=is_from_now)
        outbox.enrol(subscription)
        self.agent.awake.set()
        return subscription

    def deliver(self, *, deadline_s: float | None = None) -> int:
        """Deliver the events that are due, and return how many deliveries that were; a worker does so by itself."""
        return outbox.deliver_due(self.agent, self.agent.deadline(deadline_s))
