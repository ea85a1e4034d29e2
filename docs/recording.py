"""Record the first minute with Nous as a moving picture: `python -m docs.recording`, when `nous` prints otherwise."""

from __future__ import annotations

import os
import pty
import re
import shlex
import subprocess
import sysconfig
import tempfile
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs/images/first-minute.svg"
WIDTH = 104
PAUSE_S, LINE_S = 1.6, 0.12
MINUTE = (
    'nous learn "The staging database runs on port 5433"',
    'nous learn "staging database: it runs on port 5433"',
    'nous learn "We moved the staging database to port 6433 this morning"',
    'nous recall "which port is staging on?"',
    "nous show {first:.13}",
    "nous undo {first:.13}",
)
"""What is typed; `{first}` stands for the first memory's id, which the first answer names."""
LINE = re.compile(r'(<text class="[\w-]+)("[^>]* clip-path="url\(#[\w-]+-line-(\d+)\)")')
FONT = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
"""A font from the network: the viewer's own does as well."""
ID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")


def printed(command: str, environment: dict[str, str]) -> str:
    """Return what a command prints on a terminal, with its colours."""
    ours, its = pty.openpty()
    line = [str(Path(sysconfig.get_path("scripts"), "nous")), *shlex.split(command)[1:]]
    with subprocess.Popen(line, stdout=its, stderr=its, stdin=its, env=environment, cwd=ROOT) as running:  # noqa: S603 (ours)
        os.close(its)
        found = bytearray()
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:  # so Linux says that the other end is closed
                break
            if not part:
                break
            found += part
    os.close(ours)
    if running.returncode:
        raise SystemExit(f"{command} ended with exit code {running.returncode}:\n{found.decode()}")
    return found.decode().replace("\r\n", "\n").rstrip() + "\n"


def recorded() -> list[tuple[str, str]]:
    """Return each command and what it printed, over a store of its own."""
    with tempfile.TemporaryDirectory(prefix="nous-recording-") as home:
        environment = {
            **os.environ,
            "NOUS_HOME": home,
            "COLUMNS": str(WIDTH),
            "TERM": "xterm-256color",
        }
        printed("nous up", environment)
        try:
            shown, first = [], ""
            for line in MINUTE:
                command = line.format(first=first)
                answer = printed(command, environment)
                first = first or ID.findall(answer)[0]
                shown.append((command, answer))
        finally:
            printed("nous down", environment)
    return shown


def drawn(shown: list[tuple[str, str]]) -> str:
    """Return the recording as SVG: each line appears when it did, the time a person needs to read it drawn in."""
    console, starts, at = Console(record=True, width=WIDTH, file=StringIO()), [], 0.5
    for command, answer in shown:
        text = Text.assemble(("$ ", "bold green"), (command, "bold"), "\n").append_text(Text.from_ansi(answer + "\n"))
        lines = text.wrap(console, WIDTH)
        for number, line in enumerate(lines):
            console.print(line)
            starts.append(at + (0.6 if number else 0) + number * LINE_S)
        at = starts[-1] + PAUSE_S
    svg = console.export_svg(title="the first minute")
    svg = FONT.sub("", svg)
    shows = LINE.sub(lambda found: f'{found[1]} at{found[2]} style="animation-delay:{starts[int(found[3])]:.2f}s"', svg)
    appear = (
        "@media (prefers-reduced-motion: no-preference)"
        "{.at{opacity:0;animation:appear 1ms forwards}@keyframes appear{to{opacity:1}}}"
    )
    return shows.replace("</style>", f"{appear}</style>", 1)


if __name__ == "__main__":
    PICTURE.write_text(drawn(recorded()), "utf-8")
