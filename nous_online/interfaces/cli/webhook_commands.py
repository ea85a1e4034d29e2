"""Commands that send an agent's events to an address: webhook add, list, remove."""

from __future__ import annotations

from typing import Annotated

import typer

from nous_online.interfaces.cli.memory_commands import opened
from nous_online.interfaces.cli.output import AgentOption, JsonOption, escaped, show, show_json, show_note

webhook = typer.Typer(name="webhook", help="Where an agent's events are sent, signed.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add these commands."""
    app.add_typer(webhook, rich_help_panel="Doors (need the extra `api`)")


@webhook.command("add")
def add(
    url: Annotated[str, typer.Argument(metavar="URL", help="A public address of https.")],
    *,
    event: Annotated[list[str] | None, typer.Option("--event", help="The name of an event; all by default.")] = None,
    allow_private: Annotated[
        bool, typer.Option("--allow-private", help="It may be of this machine or network, and http.", metavar="")
    ] = False,
    agent: AgentOption = None,
    as_json: JsonOption = False,
) -> None:
    """Send an agent's events to an address from now on, and show the secret that signs them, this once.

    Whoever works sends them: `nous worker`, `nous dev` or an open Heart. The events: docs/heart.md.

    [bold]Examples[/bold]

    [dim]$[/dim] nous webhook add https://hooks.example.org/nous --event fact_learned --event episode_completed

    [dim]$[/dim] nous webhook add http://127.0.0.1:9000/ --allow-private --json | jq -r .secret
    """
    with opened(agent) as heart:
        added = heart.add_webhook(url, event or "*", allows_private=allow_private)
    if as_json:
        show_json({"secret": added.secret, **vars(added.webhook)})
        return
    show(escaped(added.secret))
    show_note(f"webhook {added.webhook.id}; its secret is shown this once, and checks `webhook-signature`")


@webhook.command("list")
def list_all(*, agent: AgentOption = None, as_json: JsonOption = False) -> None:
    """List an agent's webhooks, and how their delivery stands.

    [bold]Examples[/bold]

    [dim]$[/dim] nous webhook list --agent aria
    """
    with opened(agent) as heart:
        found = heart.list_webhooks()
    if as_json:
        show_json(found)
        return
    for each in found:
        show(f"{each.id}  {escaped(each.url)}  {escaped(', '.join(each.names))}")
        if each.failed_count:
            show_note(f"failed {each.failed_count} times, next at {each.retry_at:%Y-%m-%d %H:%M:%S}: {each.last_error}")
    if not found:
        show_note("no webhooks; nous webhook add URL")


@webhook.command("remove")
def remove(
    webhook_id: Annotated[str, typer.Argument(metavar="ID", help="As `nous webhook list` shows it.")],
    *,
    agent: AgentOption = None,
    as_json: JsonOption = False,
) -> None:
    """Send nothing more to a webhook, and forget its secret.

    [bold]Examples[/bold]

    [dim]$[/dim] nous webhook remove 0197c5b0-0000-7000-8000-000000000000
    """
    with opened(agent) as heart:
        heart.remove_webhook(webhook_id)
    if as_json:
        show_json({"id": webhook_id})
        return
    show(f"[green]removed[/green]  {escaped(webhook_id)}")
