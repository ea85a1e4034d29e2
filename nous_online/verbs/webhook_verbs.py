"""Sending an agent's events to an address, signed."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from nous_online.core.validation import checked_flag, checked_id
from nous_online.memories.agent import Verbs
from nous_online.queue import outbox, webhooks
from nous_online.queue.webhooks import NewWebhook, Webhook


class WebhookVerbs(Verbs):
    """What an agent does with its webhooks."""

    def add_webhook(
        self,
        url: str,
        names: str | Sequence[str] = "*",
        *,
        allows_private: bool = False,
        deadline_s: float | None = None,
    ) -> NewWebhook:
        """Send every event of that name or those names to an address from now on, or all of them.

        What comes back holds the secret that signs them, shown this once. Each event is sent at least once and in
        order, by whoever works (the worker, or an open heart), with longer rests each time, until it is answered 2xx.
        `allows_private` lets it go to this machine and network, and over http. Raises `InvalidInput` for an address
        nothing may be sent to, `Forbidden` for a caller that is trusted less than the user, and `QuotaExceeded`.
        """
        deadline = self.agent.deadline(deadline_s)
        self.agent.rights.check_may_listen()
        allowed = checked_flag("allows_private", allows_private)
        return webhooks.add(self.agent, url, outbox.checked_wish(names), allows_private=allowed, deadline=deadline)

    def list_webhooks(self, *, deadline_s: float | None = None) -> list[Webhook]:
        """Return where events are sent and how that goes, oldest first."""
        return webhooks.of_agent(self.agent, self.agent.deadline(deadline_s))

    def remove_webhook(self, webhook_id: UUID | str, *, deadline_s: float | None = None) -> None:
        """Send nothing more to a webhook; raise `NotFound` where there is none."""
        deadline = self.agent.deadline(deadline_s)
        self.agent.rights.check_may_listen()
        webhooks.remove(self.agent, checked_id("webhook_id", webhook_id), deadline)
