"""The command line: its commands, those of extras, and how failures end it."""

from __future__ import annotations

import itertools
import logging
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib.metadata import EntryPoint, entry_points, version
from importlib.util import find_spec
from typing import Annotated, Any

import typer
from typer import Option
from typer.core import TyperGroup

from nous_online.core.deadline import WORKERS
from nous_online.core.errors import NousError
from nous_online.core.files import keep_private
from nous_online.interfaces.cli import (
    context_commands,
    door_commands,
    import_commands,
    memory_commands,
    server_commands,
)
from nous_online.interfaces.cli.output import (
    INTERRUPTED,
    AgentOption,
    Invocation,
    JsonOption,
    add_command,
    flush_output,
    prepare_streams,
    show_error,
    show_json,
)

COMMANDS_GROUP = "nous.commands"
EXTRA_COMMANDS = {
    "night": "Run the nightly lifecycle",
    "diff": "Show what a night changed or would change",
    "undo": "Take back what a night changed",
    "report": "Tell what a night did and why",
    "purge": "Delete what the policy keeps no longer",
    "policy": "Show or set what an agent's nights do",
    "query": "Ask the snapshots of all nights in SQL",
    "cost": "Show the costs of language models",
    "batches": "Show the batches of questions to Claude",
    "reembed": "Move memories to another embedding model",
    "dev": "Run PostgreSQL, the Dagster UI, the REST API and the console together",
    "demo": "Watch a night over a sample history",
    "service": "Have the system run the worker and every night",
}
NIGHTS = "pipelines"
EXTRAS: dict[str, frozenset[str]] = {
    NIGHTS: frozenset({"dagster", "dagster_postgres", "duckdb", "polars", "sqlalchemy", "starlette"}),
    "api": frozenset({"fastapi", "jinja2", "markupsafe", "prometheus_client", "uvicorn"}),
    "mcp": frozenset({"mcp", "mcp_types"}),
    "claude": frozenset({"anthropic"}),
    "code": frozenset({"tree_sitter"}),
    "openai": frozenset({"openai"}),
}
"""Modules of each extra: a failed import of one names the extra that is missing."""
USES = {
    NIGHTS: "the nightly lifecycle: `nous night`, `nous report`, `nous demo`",
    "api": "the REST API and the console: `nous api`, `nous console`",
    "mcp": "coding agents and other clients of MCP: `nous mcp`, `nous install`",
    "claude": "Claude as judge and writer (ANTHROPIC_API_KEY)",
    "code": "how a project is written: `nous patterns`",
    "openai": "other models as judge and writer (NOUS_LLM)",
}
"""What each extra is for."""
# click's UsageError, reached through typer, which may bring a click of its own.
UsageError: type[Exception] = typer.BadParameter.__mro__[1]


MEMORIES, DATABASE = "Memories", "Database"
WITH_API, WITH_MCP = "Doors (need the extra `api`)", "Doors (need the extra `mcp`)"
COMMANDS: dict[str, Sequence[Callable[..., object]]] = {
    MEMORIES: (
        memory_commands.learn, memory_commands.recall, memory_commands.list_memories, memory_commands.status,
        memory_commands.agents,
        memory_commands.forget, memory_commands.restore, memory_commands.pin, memory_commands.unpin,
        memory_commands.update, context_commands.patterns, context_commands.workflows, context_commands.context,
        context_commands.predict, context_commands.feedback, memory_commands.history, memory_commands.contradictions,
        memory_commands.resolve, memory_commands.show_one, memory_commands.split, import_commands.import_history,
        import_commands.export, import_commands.erase, server_commands.worker, server_commands.retry,
        context_commands.check,
    ),
    DATABASE: (server_commands.up, server_commands.down, server_commands.doctor),
    WITH_API: (door_commands.api, door_commands.console),
    WITH_MCP: (door_commands.mcp, door_commands.install, door_commands.uninstall, door_commands.hook),
}  # fmt: skip
"""The commands in the order of the help, by its panels; each is called like its function …"""
OTHER_NAMES = {"list_memories": "list", "show_one": "show", "import_history": "import"}
"""… but these."""
GROUPS: dict[str, tuple[str, str, Mapping[str, Callable[..., object]]]] = {
    "censor": (
        MEMORIES,
        "What the agent was taught to beware of; whether an action is allowed says `nous check`.",
        {"add": context_commands.add, "list": context_commands.list_censors, "report": context_commands.report},
    ),
    "key": (
        WITH_API,
        "The keys that open the REST API.",
        {
            "create": door_commands.create,
            "list": door_commands.list_keys,
            "revoke": door_commands.revoke,
            "rotate": door_commands.rotate,
        },
    ),
    "webhook": (
        WITH_API,
        "Where an agent's events are sent, signed.",
        {"add": door_commands.add_webhook, "list": door_commands.list_webhooks, "remove": door_commands.remove_webhook},
    ),
}
"""The groups of commands, each with its panel and its help."""

UNKNOWN = re.compile(r"No such command '(\w+)'")
MEANT = {
    "add": "learn", "remember": "learn", "search": "recall", "find": "recall", "ask": "recall", "ls": "list",
    "get": "show", "delete": "forget", "remove": "forget", "run": "night", "serve": "api", "start": "up",
    "stop": "down",
}  # fmt: skip
"""What other programs call some of these commands."""

FAILED = {"check": 2}
"""The exit codes of failures of commands whose exit code 1 is an answer."""


class NousGroup(TyperGroup):
    """A group whose commands end with one line on stderr and the right exit code when they fail."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command; expected failures end in one line on stderr and exit code 1, Ctrl-C in 130."""
        try:
            return super().invoke(ctx)
        except NousError as error:
            fail(ctx, str(error), kind=type(error).__name__)
        except ModuleNotFoundError as error:
            extra = extra_of(error)
            if extra is None:
                raise
            command = ctx.invoked_subcommand or "this command"
            fail(ctx, missing_extra(command, extra, module=error.name), kind="MissingExtra")
        except KeyboardInterrupt as interrupt:
            show_error("interrupted; nothing was left half-done")
            raise typer.Exit(INTERRUPTED) from interrupt

    def main(self, *args: Any, standalone_mode: bool = True, **extra: Any) -> Any:
        """Parse and run; wrong usage ends in one line on stderr and exit code 2."""
        if not standalone_mode:
            return super().main(*args, standalone_mode=False, **extra)
        try:
            code = super().main(*args, standalone_mode=False, **extra)
        except UsageError as error:
            context: typer.Context | None = getattr(error, "ctx", None)
            hint = f" (try `{context.command_path} --help`)" if context else ""
            message = f"{describe(error)}{hint}"
            # Where parsing failed, no option was read; what follows `--` is no option.
            told = list(itertools.takewhile(lambda each: each != "--", extra.get("args") or sys.argv[1:]))
            if "--json" in told:
                show_json({"error": {"kind": "UsageError", "message": message}})
            show_error(message)
            sys.exit(2)
        except typer.Abort:
            show_error("aborted")
            sys.exit(1)
        sys.exit(code if isinstance(code, int) else 0)


def describe(error: Exception) -> str:
    words: Callable[[], str] = getattr(error, "format_message", error.__str__)
    unknown = UNKNOWN.match(words())
    if unknown and unknown[1] in MEANT:
        return f"No such command '{unknown[1]}'. Did you mean '{MEANT[unknown[1]]}'?"
    return words().replace("Value error, ", "")  # what pydantic puts before a message


def fail(context: typer.Context, message: str, *, kind: str) -> None:
    """Print what failed, as JSON too with --json, and end with exit code 1, or that of `FAILED`."""
    if context.ensure_object(Invocation).as_json:
        show_json({"error": {"kind": kind, "message": message}})
    show_error(message)
    raise typer.Exit(FAILED.get(context.invoked_subcommand or "", 1))


def extra_of(error: ImportError) -> str | None:
    module = (error.name or "").split(".")[0]
    return next((extra for extra, modules in EXTRAS.items() if module in modules), None)


def absent_extras() -> list[str]:
    """Return the extras of which a module is not installed."""
    return [extra for extra, modules in EXTRAS.items() if not all(map(find_spec, modules))]


def missing_extra(command: str, extra: str, *, module: str | None = None) -> str:
    """Return what to install; it names a module that an extra lacks, but not of an extra that is not there at all."""
    absent = [each for each in EXTRAS[extra] if not find_spec(each)]
    why = f" ({module} is not installed)" if module and len(absent) <= 1 else ""
    return f"`nous {command}` needs the extra `{extra}`{why}; run: pip install 'nous-pipelines[{extra}]'"


@cache
def application() -> typer.Typer:
    """Return the whole command line with the commands of extras, built once per process."""
    app = typer.Typer(
        name="nous",
        cls=NousGroup,
        help="Long-term memory for AI agents that maintains itself every night.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(before_every_command)
    for panel, commands in COMMANDS.items():
        for command in commands:
            name = OTHER_NAMES.get(command.__name__, command.__name__)
            add_command(app, name, command, rich_help_panel=panel, hidden=command is door_commands.hook)
    for name, (panel, help_text, commands) in GROUPS.items():
        group = typer.Typer(name=name, help=help_text, no_args_is_help=True)
        for each, command in commands.items():
            add_command(group, each, command)
        app.add_typer(group, rich_help_panel=panel)
    register_extras(app, entry_points=entry_points(group=COMMANDS_GROUP))
    return app


def show_version(value: bool) -> None:  # noqa: FBT001 (the signature of an option's callback)
    if value:
        typer.echo(f"nous {version('nous-pipelines')}")
        raise typer.Exit


VersionOption = Annotated[
    bool, Option("--version", help="Print the version.", is_eager=True, callback=show_version, metavar="")
]


def before_every_command(
    *, show_it: VersionOption = False, agent: AgentOption = None, as_json: JsonOption = False
) -> None:
    """Long-term memory for AI agents that maintains itself every night, and can prove it lost nothing."""


def register_extras(app: typer.Typer, *, entry_points: Iterable[EntryPoint]) -> None:
    """Add the commands of installed extras, and for the others commands that name the extra to install."""
    for point in entry_points:
        try:
            register: Callable[[typer.Typer], None] = point.load()
            register(app)
        except ModuleNotFoundError as error:
            if extra_of(error) != NIGHTS:
                raise
    known = {command.name or getattr(command.callback, "__name__", "") for command in app.registered_commands}
    for name, help_text in EXTRA_COMMANDS.items():
        if name not in known:
            app.command(
                name,
                help=f"{help_text}.",
                rich_help_panel=f"Nights (need the extra `{NIGHTS}`)",
                context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
            )(missing_command(name))


def missing_command(name: str) -> Callable[[], None]:
    def command() -> None:
        raise NousError(missing_extra(name, NIGHTS))

    return command


def main() -> None:
    keep_private()
    prepare_streams()
    # Ctrl-C in a transaction ends in our line alone, not in one about a rollback that the server has made as well; of a
    # connection and of a block in it psycopg says so in two loggers.
    logging.getLogger("psycopg").setLevel(logging.ERROR)
    try:
        application()()
    except SystemExit as ended:
        leave(ended.code)
    except KeyboardInterrupt:
        show_error("interrupted; nothing was left half-done")
        leave(INTERRUPTED)


def leave(code: str | int | None) -> None:
    """End the process with an exit code, even if a deadline left threads running."""
    code = flush_output(code)
    # A thread inside native code of the embedder would abort the process (SIGABRT) while the interpreter ends.
    if isinstance(code, int) and WORKERS.is_any_busy():
        os._exit(code)
    sys.exit(code)
