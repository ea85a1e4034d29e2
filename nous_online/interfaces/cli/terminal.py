"""A console that removes control characters from what it prints: memories may hold commands for a terminal.

A module of its own: rich takes 40 ms to load, and what prints JSON does without.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from nous_online.interfaces.cli.output import without_controls


class InertConsole(Console):
    """A console that prints text without control characters; rich's own styles still work."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the segments of a renderable, without control characters except those that rich adds."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(without_controls(segment.text), segment.style)

    def on_broken_pipe(self) -> None:
        """Raise, so that `written` ends the command; rich would exit with code 1."""
        raise BrokenPipeError(errno.EPIPE, "the reader closed the pipe")
