"""Imports the new part of a session's transcript, in the background, after the hook has returned."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from pathlib import Path

import filelock

from nous_online.core.errors import NousError
from nous_online.core.files import default_home, keep_private
from nous_online.core.settings import settings
from nous_online.heart import Heart
from nous_online.interfaces.hooks.client_settings import project_of
from nous_online.interfaces.hooks.hook import log
from nous_online.interfaces.imports.formats import FORMATS, SESSIONS, SourceFile, detected_format
from nous_online.interfaces.imports.importing import ImportOptions, ImportReport, import_sources

WAIT_S = 600.0
"""Wait for another import: two at once of one session would each import a part of it as the whole."""
WORK_S = 300.0
"""Time for completing closed episodes: first those of this session, then others that are due."""


def import_transcript(heart: Heart, path: Path, *, project_id: str) -> ImportReport:
    """Import a session in its present state; its format is detected, and entries stored before are skipped.

    Raises `InvalidInput` when the file can't be read, and `Unavailable` when the database or the embedder fails.
    """
    options = ImportOptions(is_over=True, project_id=project_id)
    name = detected_format(path)
    source = SourceFile(path, FORMATS[name if name in SESSIONS else "claude-code"])
    return import_sources(heart, [source], options=options)


def complete(heart: Heart) -> None:
    """Complete the closed episodes, until none is due."""
    ends_at = time.monotonic() + WORK_S
    while time.monotonic() < ends_at and heart.work(deadline_s=60.0).completed:
        pass


def main(path: str, folder: str, agent: str) -> None:
    """Import one transcript into an agent's memory; failures go to the log."""
    keep_private()
    place = default_home().expanduser().absolute()
    try:
        with filelock.FileLock(place / "transcripts.lock", timeout=WAIT_S):
            heart = Heart.open(agent or settings().agent, works_in_background=False)
            with heart:
                import_transcript(heart, Path(path), project_id=project_of(Path(folder)))
                complete(heart)
    except (NousError, filelock.Timeout) as error:
        log(place, "import", f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        main(*sys.argv[1:4])
