"""Commands about the database: up, down, doctor."""

from __future__ import annotations

from typing import Annotated

import typer

from nous_online.interfaces.cli.output import JsonOption, escaped, show, show_json, waiting

DEMO = "demo"  # the folder in the home where the demo keeps a server of its own


def register(app: typer.Typer) -> None:
    """Add these commands."""
    for name, command in {"up": up, "down": down, "doctor": doctor}.items():
        app.command(name, rich_help_panel="Database")(command)


def up(*, as_json: JsonOption = False) -> None:
    """Start the embedded server if need be, and bring the schema up to date.

    With NOUS_DATABASE_URL that server is prepared instead.

    [bold]Examples[/bold]

    [dim]$[/dim] nous up

    [dim]$[/dim] NOUS_DATABASE_URL=postgresql://nous@db/nous nous up
    """
    from nous_online.database.connection import open_url, prepare

    with waiting("starting PostgreSQL …"):
        url = open_url()
        prepare(url)
    place = place_of(url)
    if as_json:
        show_json({"is_ready": True, **place})
    else:
        show(f"[green]ready[/green]  PostgreSQL at {escaped(told(place))}")


def place_of(url: str) -> dict[str, str]:
    """Return where a server is, its database and its user, without secrets."""
    from psycopg.conninfo import conninfo_to_dict

    address = conninfo_to_dict(url)
    return {name: str(address[name]) for name in ("host", "port", "dbname", "user") if address.get(name)}


def told(place: dict[str, str]) -> str:
    """Return where a server is, for people."""
    return f"{place.get('host', 'localhost')}:{place.get('port', '5432')}/{place.get('dbname', '')}"


def down(
    *,
    demo: Annotated[bool, typer.Option("--demo", help="Only what the demo started.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Stop the embedded server and what runs in the background, the demo's too; memories stay where they are.

    [bold]Examples[/bold]

    [dim]$[/dim] nous down

    [dim]$[/dim] nous down --demo
    """
    from nous_online.core.settings import settings
    from nous_online.database import postgres
    from nous_online.processes import stop_all

    home = settings().home or postgres.default_home()
    stopped: list[str] = []
    with waiting("stopping …"):
        for place in (home / DEMO,) if demo else (home / DEMO, home):
            stopped += stop_all(place)
            if place.is_dir() and postgres.stop(place):
                stopped.append(f"PostgreSQL in {place}")
    if as_json:
        show_json({"was_running": bool(stopped), "stopped": stopped})
    else:
        show(f"stopped {', '.join(stopped)}; memories stay where they are" if stopped else "nothing was running")


def doctor(*, as_json: JsonOption = False) -> None:
    """Check what Nous needs, and say how to mend what is wrong (exit code 1).

    [bold]Examples[/bold]

    [dim]$[/dim] nous doctor

    [dim]$[/dim] nous doctor --json | jq '.checks\\[] | select(.is_ok | not)'
    """
    from nous_online.interfaces.doctor import checks

    found = list(checks())
    is_ok = all(check.is_ok for check in found)
    if as_json:
        show_json({"is_ok": is_ok, "checks": found})
    else:
        for check in found:
            mark = "[green]ok [/green]" if check.is_ok else "[red]fix[/red]"
            show(f"{mark}  {check.name:<9} {escaped(check.message)}")
    if not is_ok:
        raise typer.Exit(1)
