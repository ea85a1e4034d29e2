"""The consoles a command writes to: what a memory says is printed and never obeyed."""

from __future__ import annotations

import errno
from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from nous_online.interfaces.cli.output import inert


class InertConsole(Console):
    """A console on which only our own styles act: control characters in what is printed are left out."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the segments of a renderable, without control characters but those the console itself put there."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(inert(segment.text), segment.style)

    def on_broken_pipe(self) -> None:
        """Leave it to whoever prints that nobody reads any more."""
        raise BrokenPipeError(errno.EPIPE, "nobody reads the output any more")
