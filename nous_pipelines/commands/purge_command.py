"""The command that purges."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from nous_online.interfaces.cli.output import JsonOption, show, show_json, show_note

if TYPE_CHECKING:
    from nous_pipelines.orchestration.purging import Purged

WORDS = {
    "cold_texts": "texts of condensed episodes",
    "outbox": "announcements that everybody has heard",
    "completions": "records of completed episodes",
    "requests": "idempotency keys",
}


def purge(
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say how much would be deleted; change nothing.")] = False,
    policy: Annotated[
        list[str] | None, typer.Option(metavar="FIELD=DAYS", help="Override a policy field, such as outbox_kept_days.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Delete what the policy keeps no longer: old texts of condensed episodes, announcements, records, keys.

    Never a memory, an event or a proposal. The texts of condensed episodes stay for ever unless a policy says
    otherwise: the agent's own, which comes first, or --policy cold_texts_kept_days=DAYS. What is purged is gone.

    [bold]Examples[/bold]

    [dim]$[/dim] nous purge --dry-run

    [dim]$[/dim] nous purge --policy cold_texts_kept_days=730 --json
    """
    from nous_online.database.connection import Database, open_url
    from nous_pipelines.commands.night_commands import parsed_policy
    from nous_pipelines.night_policy import NightPolicy
    from nous_pipelines.orchestration.purging import purge as delete

    chosen = NightPolicy().overridden(parsed_policy(policy or []))
    database = Database(open_url(), role="nous_purge", max_connections=1)
    try:
        purged = delete(database, chosen, now=datetime.now(UTC), is_dry_run=dry_run)
    finally:
        database.close()
    if as_json:
        show_json(asdict(purged))
    else:
        show_purged(purged)


def show_purged(purged: Purged) -> None:
    """Print what was deleted, or would be."""
    for name, words in WORDS.items():
        show(f"{getattr(purged, name):>8,}  {words}")
    show_note("would be deleted; nothing was" if purged.is_dry_run else "deleted")
