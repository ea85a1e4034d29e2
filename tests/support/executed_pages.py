"""Pages whose code is run: Python in one namespace, `$ nous …` as typed; both print what the page shows."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from night_commands import NO_EVENTS
from typer.testing import CliRunner

from nous_online.core.settings import settings
from nous_online.heart import Heart
from nous_online.interfaces.cli.command_line import application

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```", re.DOTALL | re.MULTILINE)
PROMISE = re.compile(r"^ *print\(.*#\s*(.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A block of a page: its language, the file it is to be saved as, if any, and its text."""

    language: str
    file: str | None
    text: str


@dataclass
class Reader:
    """Somebody who does what a page says, in an empty folder, and compares."""

    names: dict[str, Any] = field(default_factory=dict)
    printed: str = ""

    def follow(self, block: Block) -> None:
        """Do what one block says; fails where it shows something else than what happens."""
        if block.file is not None:
            Path(block.file).write_text(block.text, "utf-8")
        elif block.language == "python":
            self.run_python(block.text)
        elif block.language == "text":
            assert squeezed(block.text) in self.printed, (
                f"{block.text}\n--- is not in what was printed:\n{self.printed}"
            )
        elif block.language == "console":
            for shown in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
                self.run_command(*shown.partition("\n")[::2])

    def run_python(self, source: str) -> None:
        """Run a block in the namespace of those before, and compare what it prints with its comments."""
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(source, "page", "exec"), self.names)  # noqa: S102 (the page is ours)
        assert printed.getvalue().splitlines() == PROMISE.findall(source)

    def run_command(self, line: str, shown: str) -> None:
        """Run a command, and compare what it prints with what stands below it."""
        name, *arguments = shlex.split(line, comments=True)
        assert name == "nous"
        answer = CliRunner().invoke(application(), arguments, env={"COLUMNS": "100", "NO_COLOR": "1"})
        assert answer.exit_code == 0, f"$ {line}\n{answer.output}"
        self.printed = squeezed(answer.stdout + answer.stderr)
        assert re.fullmatch(pattern_of(shown), self.printed), f"$ {line}\n{self.printed}\n--- shown:\n{shown}"


def pattern_of(shown: str) -> str:
    """Return what shown output stands for: its words, however its lines are broken, and `...` for any."""
    return ".*".join(re.escape(squeezed(part)) for part in shown.split("..."))


def squeezed(text: str) -> str:
    """Return a text with single blanks, however its lines were broken."""
    return " ".join(text.split())


def blocks_of(page: Path) -> list[Block]:
    """Return the blocks of a page, in order."""
    return [Block(language, file or None, text) for language, file, text in BLOCK.findall(page.read_text("utf-8"))]


@contextlib.contextmanager
def reading(database_url: str, folder: Path, *, agent: str) -> Iterator[Reader]:
    """Prepare what a reader has: a database, an empty folder to be in, and the agent the commands speak for."""
    (folder / "dagster").mkdir()
    (folder / "dagster/dagster.yaml").write_text(NO_EVENTS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NOUS_DATABASE_URL", database_url)
        patch.setenv("NOUS_HOME", str(folder / "home"))
        patch.setenv("NOUS_AGENT", agent)
        patch.setenv("DAGSTER_HOME", str(folder / "dagster"))
        patch.setenv("NOUS_DAGSTER_DB_URL", "unused")
        patch.chdir(folder)
        settings.cache_clear()
        reader = Reader()
        try:
            yield reader
        finally:
            for opened in (each for each in reader.names.values() if isinstance(each, Heart)):
                opened.close()
            settings.cache_clear()
