"""Commands of the other interfaces: REST and its keys, console, MCP, webhooks, hooks of coding agents."""

from __future__ import annotations

import logging
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal
from uuid import uuid4

from typer import Argument, Option

from nous_online.core.errors import InvalidInput
from nous_online.core.policy import ApiPolicy
from nous_online.core.validation import ADMINISTRATOR, checked_agent
from nous_online.interfaces.cli.output import (
    WHOSE,
    AgentOption,
    JsonOption,
    ProjectOption,
    agent_named,
    escaped,
    open_database,
    open_heart,
    show,
    show_json,
    show_note,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nous_online.core.files import FileChange
    from nous_online.interfaces.api.keys import Key, KeyRecord

HOST, PORT = "127.0.0.1", 8420
AdminOption = Annotated[bool, Option(help="An administrator's: good for every agent, and for nights.")]


def api(
    *,
    host: Annotated[str, Option(help="The address to listen at.")] = HOST,
    port: Annotated[int, Option(min=1, max=65535, help="Where.")] = PORT,
    no_keys: Annotated[
        bool,
        Option(
            "--no-keys",
            help="Let every program of this machine in, or with NOUS_TOKEN those that send it; on loopback only.",
        ),
    ] = False,
    name: Annotated[list[str] | None, Option(help="A name the server goes by, besides those of this machine.")] = None,
    behind_proxy: Annotated[
        str | None, Option(metavar="ADDRESS", help="A proxy before it, which may say in X-Forwarded-For who calls.")
    ] = None,
    rate: Annotated[int, Option(min=1, help="Calls a key may make in a minute.")] = ApiPolicy.calls_per_minute,
) -> None:
    """Serve the REST API until Ctrl-C: http://127.0.0.1:8420, described at /openapi.json.

    Callers need a key, made with `nous key create`. Calls under way are finished before it ends.

    $ nous api --no-keys
    $ nous api --host 0.0.0.0 --name memory.example.org
    """
    from nous_online.interfaces.api.application import access_at, proxy_at, serve

    policy = ApiPolicy(calls_per_minute=rate)
    access = access_at(
        host, requires_keys=not no_keys, names=name or (), has_proxy=behind_proxy is not None, policy=policy
    )
    if no_keys and access.token is None:
        show_note("without keys: every program of this machine may read and change every agent's memory")
    serve(access, host=host, port=port, proxy=None if behind_proxy is None else proxy_at(behind_proxy))


def create(  # noqa: PLR0913 (one parameter for each option)
    *,
    name: Annotated[str, Option(help="What it is for, such as the name of a machine.")] = "",
    expires: Annotated[str | None, Option(metavar="ISO-8601", help="Until when; for good by default.")] = None,
    max_trust: Annotated[
        int | None,
        Option(min=0, max=100, help="The most its holder may claim for what it says; 60, a user's, by default."),
    ] = None,
    may_pin: Annotated[bool, Option(help="It may pin memories, and keep them for the whole system.")] = False,
    read_only: Annotated[bool, Option(help="It may read, and change nothing.")] = False,
    admin: AdminOption = False,
    agent: AgentOption = None,
) -> object:
    """Make a key for an agent and show it, this once: only a hash of it is kept.

    An agent that reads web pages, mail or what tools answer gets one with --max-trust 50: it can't pass for its user.

    $ nous key create --agent aria --name laptop
    $ nous key create --agent aria --name crawler --max-trust 20
    $ nous key create --admin --expires 2027-01-01T00:00:00Z --json | jq -r .key
    """
    from nous_online.interfaces.api import keys

    new = keys.new_key(holder(agent, is_admin=admin))
    with open_database() as database, database.transaction(new.agent_id) as connection:
        rights: dict[str, Any] = {"max_trust": max_trust, "may_pin": may_pin, "is_read_only": read_only}
        record = keys.store(connection, new, name=name, expires_at=expires, **rights)
    note_key("key_created", record)
    return show_new(new, record)


def note_key(event: str, record: KeyRecord, **fields: str) -> None:
    from nous_online.interfaces.api.keys import note

    told = {"key": record.id, "agent": record.agent_id, "max_trust": record.max_trust, "may": may(record)}
    note(logging.WARNING, event, **told, **fields)


def show_new(new: Key, record: KeyRecord) -> object:
    """Print a new key, the only time that it is shown, and return it with its record."""
    show(escaped(new.text))
    whose = "an administrator's key" if record.agent_id == ADMINISTRATOR else f"a key of agent {record.agent_id!r}"
    show_note(f"{whose}; it is shown this once, and sent as `Authorization: Bearer {new.text[:10]}…`")
    return {"key": new.text, **vars(record)}


def list_keys(*, admin: AdminOption = False, agent: AgentOption = None) -> object:
    """List the keys of an agent, the oldest first; their secrets are known to nobody but their owners.

    $ nous key list --agent aria
    $ nous key list --admin --json
    """
    from rich.table import Table

    from nous_online.interfaces.api import keys

    wanted = holder(agent, is_admin=admin)
    with open_database() as database, database.transaction(wanted) as connection:
        found = keys.list_keys(connection, wanted)
    if not found:
        whose = "there is no administrator's key" if admin else f"agent {wanted!r} has no keys"
        more = " --admin" if admin else f" --agent {wanted}"
        show_note(f"{whose}; make one: nous key create{more}, or see another agent's: nous key list --agent NAME")
        return None
    table = Table("id", "name", "made", "last used", "good until", "may", box=None, header_style="bold")
    for each in found:
        used = f"{each.last_used_at:%Y-%m-%d %H:%M}" if each.last_used_at else "never"
        table.add_row(each.id, escaped(each.name), f"{each.created_at:%Y-%m-%d}", used, until(each), may(each))
    show(table)
    return {"keys": found}


KeyId = Annotated[str, Argument(metavar="ID", help="Which key, as `nous key list` names it.")]


def revoke(key_id: KeyId, *, admin: AdminOption = False, agent: AgentOption = None) -> object:
    """Revoke a key for good; a server that has just used it notices within five seconds.

    $ nous key revoke 4f3d51d0a2b7 --agent aria
    """
    from nous_online.interfaces.api import keys

    wanted = holder(agent, is_admin=admin)
    with open_database() as database, database.transaction(wanted) as connection:
        record = keys.revoke(connection, wanted, key_id)
    note_key("key_revoked", record)
    show(f"[green]revoked[/green]  {escaped(record.id)} {escaped(record.name)}")
    return record


def rotate(key_id: KeyId, *, admin: AdminOption = False, agent: AgentOption = None) -> object:
    """Replace a key by a new one with its name, rights and expiry, and show the new one, this once.

    The old key is revoked; a server that has just used it notices within five seconds.

    $ nous key rotate 4f3d51d0a2b7 --agent aria
    """
    from nous_online.interfaces.api import keys

    wanted = holder(agent, is_admin=admin)
    with open_database() as database, database.transaction(wanted) as connection:
        new, record = keys.rotate(connection, wanted, key_id)
    note_key("key_rotated", record, replaced=key_id)
    return show_new(new, record)


def holder(agent: str | None, *, is_admin: bool) -> str:
    """Return the holder of keys: an agent or an administrator; raise `InvalidInput` for both."""
    if is_admin and agent:
        raise InvalidInput(f"say either --admin, for every agent, or --agent {agent}")
    return ADMINISTRATOR if is_admin else agent_named(agent)


def may(record: KeyRecord) -> str:
    if record.is_read_only:
        return "read"
    return f"claim trust {record.max_trust}{', pin' if record.may_pin else ''}"


def until(record: KeyRecord) -> str:
    if record.revoked_at is not None:
        return f"revoked {record.revoked_at:%Y-%m-%d}"
    return "for good" if record.expires_at is None else f"{record.expires_at:%Y-%m-%d %H:%M}"


def console(
    *,
    port: Annotated[int, Option(min=0, max=65535, help="Where, on 127.0.0.1; 0 is any that is free.")] = 8430,
    read_only: Annotated[bool, Option(help="Show everything, and change nothing.")] = False,
    agent: AgentOption = None,
) -> None:
    """Look at an agent's memories in a browser until Ctrl-C, and settle what waits for a person.

    Prints an address with a token, random at each start unless NOUS_TOKEN is set; whoever opens it acts as an operator.
    There are pages of memories and what each rests on, of contradictions to decide, of nights, and of what a question
    recalls. Asking counts as a recall, as `nous recall` does.

    $ nous console --agent aria
    $ nous console --read-only --port 9000
    """
    from nous_online.database.connection import open_url
    from nous_online.interfaces.api.hearts import Hearts
    from nous_online.interfaces.console.console_server import serve
    from nous_online.interfaces.console.rendering import ConsoleState
    from nous_online.interfaces.request_checks import interface_token
    from nous_online.memories.status import check_known

    name = agent_named(agent)
    check_known(open_url(), name)
    state = ConsoleState(Hearts(works_in_background=False), name, interface_token(), read_only)

    def on_ready(address: str) -> None:
        show(address)
        show_note(f"open it to see the memory of {name!r}; Ctrl-C ends it")

    serve(state, port=port, on_ready=on_ready)


MCP_PORT = 8421
SessionOption = Annotated[str | None, Option(help="The session to go on with; a new one for each start by default.")]
ServedUserOption = Annotated[str | None, Option(help="For whom: memories of this user, and the agent's.")]
RepositoryOption = Annotated[bool, Option(help="In the project of the repository the client works in.")]


def mcp(  # noqa: PLR0913 (one parameter for each option)
    *,
    http: Annotated[bool, Option(help="Streamable HTTP on this machine, instead of stdio.")] = False,
    port: Annotated[int, Option(min=0, max=65535, help="Where, with --http; 0 for any free port.")] = MCP_PORT,
    with_keys: Annotated[
        bool, Option(help="With --http: let in whoever has a key (`nous key`), to its own agent.")
    ] = False,
    session: SessionOption = None,
    user: ServedUserOption = None,
    project: ProjectOption = None,
    repository: RepositoryOption = False,
    agent: AgentOption = None,
    as_json: JsonOption = False,
) -> None:
    """Serve an agent's memory over the Model Context Protocol, for Claude Code, Claude Desktop or any client.

    Over stdio it ends when the client leaves; nothing but the protocol goes to stdout. Over HTTP it serves this
    machine alone: callers need a key or, without keys, the address that is printed. It ends in a token, random at each
    start unless NOUS_TOKEN is set. Ctrl-C and SIGTERM end it after the calls in flight.

    $ claude mcp add nous -- nous mcp --agent aria
    $ nous mcp --http --port 8421 --agent aria
    """
    import anyio

    from nous_online.interfaces.api.hearts import Hearts
    from nous_online.interfaces.mcp import mcp_server as server
    from nous_online.interfaces.mcp.tools import Visit
    from nous_online.interfaces.projects import project_of
    from nous_online.interfaces.request_checks import interface_token, listening, with_token

    if with_keys and not http:
        raise InvalidInput("--with-keys is for --http; over stdio whoever starts the server is let in")
    if repository and not project:
        project = project_of(Path(os.environ.get("CLAUDE_PROJECT_DIR") or Path.cwd()))
    visit = Visit(session or f"mcp-{uuid4().hex[:12]}", user, project)
    hearts = server.ServedHearts(Hearts(), visit, agent_id=agent_named(agent))
    if not http:
        anyio.run(server.serve_stdio, hearts)
        return
    with listening(port) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        token = None if with_keys else interface_token()
        app = server.open_by_key(hearts) if token is None else server.open_by_token(hearts, token)
        show_address(url if token is None else with_token(url, token), as_json=as_json)
        if anyio.run(server.serve_http, app, hearts, listener) == signal.SIGINT:
            raise KeyboardInterrupt


def show_address(url: str, *, as_json: bool) -> None:
    """Print the URL, and flush: the program that started this may read it from a pipe."""
    if as_json:
        show_json({"url": url})
    else:
        show(f"[green]ready[/green]  {escaped(url)}")
    sys.stdout.flush()


def add_webhook(
    url: Annotated[str, Argument(metavar="URL", help="A public address of https.")],
    *,
    event: Annotated[list[str] | None, Option(help="The name of an event; all by default.")] = None,
    allow_private: Annotated[bool, Option(help="It may be of this machine or network, and http.")] = False,
    agent: AgentOption = None,
) -> object:
    """Send an agent's events to an address from now on, and show the secret that signs them, this once.

    Workers send them: `nous worker`, `nous dev` or an open Heart. The events: docs/heart.md.

    $ nous webhook add https://hooks.example.org/nous --event fact_learned --event episode_completed
    $ nous webhook add http://127.0.0.1:9000/ --allow-private --json | jq -r .secret
    """
    with open_heart(agent, may_begin=True) as heart:
        added = heart.add_webhook(url, event or "*", allows_private=allow_private)
    show(escaped(added.secret))
    show_note(f"webhook {added.webhook.id}; its secret is shown this once, and checks `webhook-signature`")
    return {"secret": added.secret, **vars(added.webhook)}


def list_webhooks(*, agent: AgentOption = None) -> object:
    """List an agent's webhooks, and how their delivery stands.

    $ nous webhook list --agent aria
    """
    with open_heart(agent) as heart:
        found = heart.list_webhooks()
    for each in found:
        show(f"{each.id}  {escaped(each.url)}  {escaped(', '.join(each.names))}")
        if each.failed_count:
            show_note(f"failed {each.failed_count} times, next at {each.retry_at:%Y-%m-%d %H:%M:%S}: {each.last_error}")
    if not found:
        show_note("no webhooks; nous webhook add URL")
    return found


def remove_webhook(
    webhook_id: Annotated[str, Argument(metavar="ID", help="As `nous webhook list` shows it.")],
    *,
    agent: AgentOption = None,
) -> object:
    """Send nothing more to a webhook, and forget its secret.

    $ nous webhook remove 0197c5b0-0000-7000-8000-000000000000
    """
    with open_heart(agent) as heart:
        heart.remove_webhook(webhook_id)
    show(f"[green]removed[/green]  {escaped(webhook_id)}")
    return {"id": webhook_id}


ClientArgument = Annotated[
    Literal["claude-code", "codex", "gemini"], Argument(metavar="CLIENT", help="claude-code, codex or gemini.")
]
DryRunOption = Annotated[bool, Option(help="Show what would be written; write nothing.")]
ProjectFilesOption = Annotated[bool, Option(help="In this repository's files instead of yours, such as `.mcp.json`.")]


def install(
    client: ClientArgument,
    *,
    project: ProjectFilesOption = False,
    dry_run: DryRunOption = False,
    agent: AgentOption = None,
) -> object:
    """Give a coding agent a memory: the MCP server and four hooks, in the user's settings or in this repository's.

    All else in those files stays as it is, with a backup beside. Installed again it changes nothing, or what differs.

    $ nous install claude-code
    $ nous install codex --project --dry-run
    """
    from nous_online.interfaces.cli.command_line import absent_extras, missing_extra
    from nous_online.interfaces.hooks.client_settings import CLIENTS, planned_install

    options = ["--agent", checked_agent(agent)] if agent is not None else []
    changes = planned_install(is_project=project, options=options, client=CLIENTS[client])
    changed = apply_changes(changes, "installed", dry_run=dry_run)
    if CLIENTS[client].note:
        show(CLIENTS[client].note)
    missing = missing_extra("mcp", "mcp") if "mcp" in absent_extras() else None
    if missing:
        show_note(f"the server, which gives {CLIENTS[client].title} its tools, can't start yet: {missing}")
    return {**changed, "missing": missing}


def uninstall(
    client: ClientArgument,
    *,
    project: ProjectFilesOption = False,
    dry_run: DryRunOption = False,
    agent: AgentOption = None,
) -> object:
    """Remove what `nous install` wrote from a coding agent's settings; memories stay where they are.

    $ nous uninstall claude-code
    $ nous uninstall claude-code --project --dry-run
    """
    from nous_online.interfaces.hooks.client_settings import CLIENTS, planned_uninstall

    changes = planned_uninstall(is_project=project, client=CLIENTS[client])
    return apply_changes(changes, "uninstalled", dry_run=dry_run)


def apply_changes(changes: Sequence[FileChange], done: str, *, dry_run: bool) -> dict[str, object]:
    """Write the changes of files, or with `dry_run` only show them, and print the result for each file."""
    from nous_online.interfaces.hooks.client_settings import write

    if not dry_run:
        write(changes)
    for each in changes:
        if dry_run and each.is_changed:
            show(escaped(each.diff.rstrip("\n")))
        else:
            show(f"[green]{done if each.is_changed else 'unchanged'}[/green]  {escaped(str(each.path))}")
    files = [{"path": str(each.path), "is_changed": each.is_changed, "diff": each.diff} for each in changes]
    return {"is_dry_run": dry_run, "files": files}


def hook(
    event: Annotated[str, Argument(metavar="EVENT", help="As the client names it.")],
    *,
    agent: Annotated[str | None, Option(help=WHOSE)] = None,
    within: Annotated[
        float, Option(metavar="SECONDS", help="How long it may take, instead of what each event may.")
    ] = 0.0,
) -> None:
    """Answer one of a coding agent's hooks, given as JSON on standard input; the exit code is always 0.

    $ echo '{"cwd": "."}' | nous hook SessionStart --within 10
    """
    from nous_online.interfaces.hooks.hook import answer

    answer([event, *(["--agent", agent] if agent is not None else []), *(["--within", str(within)] if within else [])])
