"""Commands as somebody types them: in this process, with what they printed and how they ended."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from nous_online.core.settings import settings
from nous_online.interfaces.cli.command_line import application


class Answer:
    """What a command printed, and how it ended."""

    def __init__(self, result: Any) -> None:
        self.code, self.out, self.err = result.exit_code, result.stdout, result.stderr

    @property
    def json(self) -> Any:
        assert self.out.count("\n") == 1, self.out + self.err
        return json.loads(self.out)


def typed(*arguments: object, stdin: str | bytes | None = None) -> Answer:
    """Run a command in this process."""
    return Answer(CliRunner().invoke(application(), [str(each) for each in arguments], input=stdin))


@contextmanager
def pointed_at(database_url: str, home: Path) -> Iterator[None]:
    """Let commands in this process and below it use a database and a home."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NOUS_DATABASE_URL", database_url)
        patch.setenv("NOUS_HOME", str(home))
        patch.setenv("COLUMNS", "200")
        patch.delenv("NOUS_AGENT", raising=False)
        settings.cache_clear()
        yield
    settings.cache_clear()


def leaves(group: Any = None, *, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the words and the command of everything that can be run."""
    group = group or get_command(application())
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from leaves(command, path=(*path, name))
        else:
            yield (*path, name), command
