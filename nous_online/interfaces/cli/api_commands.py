"""Commands about the HTTP interface: api, and the keys that open it."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from nous_online.core.policy import ApiPolicy
from nous_online.interfaces.cli.output import AgentOption, JsonOption, escaped, show, show_json, show_note

if TYPE_CHECKING:
    from psycopg import Connection

    from nous_online.interfaces.api.keys import Key, KeyRecord

HOST, PORT = "127.0.0.1", 8420
PANEL = "Doors (need the extra `api`)"
AdminOption = Annotated[
    bool, typer.Option("--admin", help="An administrator's: good for every agent, and for nights.", metavar="")
]
key = typer.Typer(name="key", help="The keys that open the REST API.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add these commands."""
    app.command("api", rich_help_panel=PANEL)(api)
    app.add_typer(key, rich_help_panel=PANEL)


def api(
    *,
    host: Annotated[str, typer.Option(help="The address to listen at.")] = HOST,
    port: Annotated[int, typer.Option(min=1, max=65535, help="Where.")] = PORT,
    no_keys: Annotated[
        bool,
        typer.Option(
            "--no-keys",
            help="Let every program of this machine in, or with NOUS_TOKEN those that send it; on loopback only.",
            metavar="",
        ),
    ] = False,
    name: Annotated[
        list[str] | None, typer.Option("--name", help="A name the server goes by, besides those of this machine.")
    ] = None,
    behind_proxy: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="A proxy before it, which may say in X-Forwarded-For who calls."),
    ] = None,
    rate: Annotated[int, typer.Option(min=1, help="Calls a key may make in a minute.")] = ApiPolicy.calls_per_minute,
) -> None:
    """Serve the REST API until Ctrl-C: http://127.0.0.1:8420, described at /openapi.json.

    Callers need a key, made with `nous key create`. Calls under way are finished before it ends.

    [bold]Examples[/bold]

    [dim]$[/dim] nous api --no-keys

    [dim]$[/dim] nous api --host 0.0.0.0 --name memory.example.org
    """
    from nous_online.interfaces.api.api_server import access_at, proxy_at, serve

    policy = ApiPolicy(calls_per_minute=rate)
    access = access_at(
        host, requires_keys=not no_keys, names=name or (), has_proxy=behind_proxy is not None, policy=policy
    )
    if no_keys and access.token is None:
        show_note("without keys: every program of this machine may read and change every agent's memory")
    serve(access, host=host, port=port, proxy=None if behind_proxy is None else proxy_at(behind_proxy))


@key.command("create")
def create(  # noqa: PLR0913 (one parameter for each option)
    *,
    name: Annotated[str, typer.Option(help="What it is for, such as the name of a machine.")] = "",
    expires: Annotated[str | None, typer.Option(metavar="ISO-8601", help="Until when; for good by default.")] = None,
    max_trust: Annotated[
        int | None,
        typer.Option(min=0, max=100, help="The most its holder may claim for what it says; 60, a user's, by default."),
    ] = None,
    may_pin: Annotated[
        bool, typer.Option("--may-pin", help="It may pin memories, and keep them for the whole system.", metavar="")
    ] = False,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="It may read, and change nothing.", metavar="")
    ] = False,
    admin: AdminOption = False,
    agent: AgentOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a key for an agent and show it, this once: only a hash of it is kept.

    An agent that reads web pages, mail or what tools answer gets one with --max-trust 50: it can't pass for its user.

    [bold]Examples[/bold]

    [dim]$[/dim] nous key create --agent aria --name laptop

    [dim]$[/dim] nous key create --agent aria --name crawler --max-trust 20

    [dim]$[/dim] nous key create --admin --expires 2027-01-01T00:00:00Z --json | jq -r .key
    """
    from nous_online.interfaces.api import keys

    new = keys.drawn(holder(agent, is_admin=admin))
    with keyring(new.agent_id) as connection:
        record = keys.store(
            connection,
            new,
            name=name,
            expires_at=expires,
            max_trust=max_trust,
            may_pin=may_pin,
            is_read_only=read_only,
        )
    note_key("key_created", record)
    show_new(new, record, as_json=as_json)


def note_key(event: str, record: KeyRecord, **told: str) -> None:
    """Note in the audit trail what became of a key."""
    from nous_online.interfaces.audit import note_event

    note_event(event, key=record.id, agent=record.agent_id, max_trust=record.max_trust, may=may(record), **told)


def show_new(new: Key, record: KeyRecord, *, as_json: bool) -> None:
    """Show a key that was just made, this once."""
    if as_json:
        show_json({"key": new.text, **vars(record)})
        return
    show(escaped(new.text))
    show_note(f"{whose(record)}; it is shown this once, and sent as `Authorization: Bearer {new.text[:10]}…`")


@key.command("list")
def list_all(*, admin: AdminOption = False, agent: AgentOption = None, as_json: JsonOption = False) -> None:
    """List the keys of an agent, the oldest first; their secrets are known to nobody but their owners.

    [bold]Examples[/bold]

    [dim]$[/dim] nous key list --agent aria

    [dim]$[/dim] nous key list --admin --json
    """
    from rich.table import Table

    from nous_online.interfaces.api import keys

    wanted = holder(agent, is_admin=admin)
    with keyring(wanted) as connection:
        found = keys.listed(connection, wanted)
    if as_json:
        show_json({"keys": found})
        return
    if not found:
        show_note("no keys yet; make one: nous key create")
        return
    table = Table("id", "name", "made", "last used", "good until", "may", box=None, header_style="bold")
    for each in found:
        used = f"{each.last_used_at:%Y-%m-%d %H:00}" if each.last_used_at else "never"
        table.add_row(each.id, escaped(each.name), f"{each.created_at:%Y-%m-%d}", used, until(each), may(each))
    show(table)


@key.command("revoke")
def revoke(
    key_id: Annotated[str, typer.Argument(metavar="ID", help="Which key, as `nous key list` names it.")],
    *,
    admin: AdminOption = False,
    agent: AgentOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a key worthless for good; a server that used it just now notices within five seconds.

    [bold]Examples[/bold]

    [dim]$[/dim] nous key revoke 4f3d51d0a2b7 --agent aria
    """
    from nous_online.interfaces.api import keys

    wanted = holder(agent, is_admin=admin)
    with keyring(wanted) as connection:
        record = keys.revoke(connection, wanted, key_id)
    note_key("key_revoked", record)
    if as_json:
        show_json(record)
    else:
        show(f"[green]revoked[/green]  {escaped(record.id)} {escaped(record.name)}")


@key.command("rotate")
def rotate(
    key_id: Annotated[str, typer.Argument(metavar="ID", help="Which key, as `nous key list` names it.")],
    *,
    admin: AdminOption = False,
    agent: AgentOption = None,
    as_json: JsonOption = False,
) -> None:
    """Put a new key in the place of one, with its name, rights and end, and show it, this once.

    The old one is worthless from then on; a server that used it just now notices within five seconds.

    [bold]Examples[/bold]

    [dim]$[/dim] nous key rotate 4f3d51d0a2b7 --agent aria
    """
    from nous_online.interfaces.api import keys

    wanted = holder(agent, is_admin=admin)
    with keyring(wanted) as connection:
        new, record = keys.rotate(connection, wanted, key_id)
    note_key("key_rotated", record, replaced=key_id)
    show_new(new, record, as_json=as_json)


def holder(agent: str | None, *, is_admin: bool) -> str:
    """Return whose keys are meant; raise `InvalidInput` for an agent's and an administrator's at once."""
    from nous_online.core.errors import InvalidInput
    from nous_online.core.settings import settings
    from nous_online.core.validation import ADMINISTRATOR, checked_agent

    if is_admin and agent:
        raise InvalidInput(f"say either --admin, for every agent, or --agent {agent}")
    return ADMINISTRATOR if is_admin else checked_agent(agent or settings().agent)


@contextmanager
def keyring(agent_id: str) -> Generator[Connection]:
    """Yield a connection that sees the keys of one holder."""
    from nous_online.database.connection import Database, open_url

    database = Database(open_url())
    try:
        with database.transaction(agent_id) as connection:
            yield connection
    finally:
        database.close()


def whose(record: KeyRecord) -> str:
    """Return in words what a key opens."""
    from nous_online.core.validation import ADMINISTRATOR

    return "an administrator's key" if record.agent_id == ADMINISTRATOR else f"a key of agent {record.agent_id!r}"


def may(record: KeyRecord) -> str:
    """Return in words what the holder of a key may do."""
    if record.is_read_only:
        return "read"
    return f"claim trust {record.max_trust}{', pin' if record.may_pin else ''}"


def until(record: KeyRecord) -> str:
    """Return in words until when a key is good."""
    if record.revoked_at is not None:
        return f"revoked {record.revoked_at:%Y-%m-%d}"
    return "for good" if record.expires_at is None else f"{record.expires_at:%Y-%m-%d %H:%M}"
