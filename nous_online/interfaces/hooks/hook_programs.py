"""The programs that hooks start in the background: the hook server, and the import of a session's transcript.

The server keeps hearts open between the hooks of a session, so that each is answered in milliseconds. It listens on a
Unix socket in the home, which only its owner can reach, and ends after an idle hour.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingMixIn, UnixStreamServer
from typing import TYPE_CHECKING, Any

import filelock

from nous_online.core.errors import NousError
from nous_online.core.files import default_home, keep_private, make_directory
from nous_online.core.settings import settings
from nous_online.heart import Heart
from nous_online.interfaces.hooks.hook import MOST_BYTES, SOCKET, log, made_by
from nous_online.interfaces.hooks.session_notes import Told, context_at_start, context_for_prompt
from nous_online.interfaces.projects import project_of
from nous_online.processes import record

if TYPE_CHECKING:
    from nous_online.interfaces.imports.importing import ImportReport

IDLE_S = 3600.0
LOOK_EVERY_S = 5.0
MOST_SESSIONS = 64
"""Sessions of which the server knows what they were told; the one it heard of least recently is forgotten."""
NAME = "hooks"
"""Name of its record in the home, by which `nous down` finds it."""


class HookServer(ThreadingMixIn, UnixStreamServer):
    """Answers hooks, each in a thread, with one heart per agent."""

    daemon_threads = True

    def __init__(self, place: Path) -> None:
        self.place = place
        self.made_by = made_by()["made_by"]
        self.used_at = time.monotonic()
        self.is_stale = False
        self.hearts: dict[str, Heart] = {}
        self.told: dict[tuple[str, str], Told] = {}
        self.lock = threading.Lock()
        # Left by a server that was killed: `serve` holds the lock, so none is running. Relative to the home, which is
        # the current folder: a whole path may be longer than a socket's address can hold.
        Path(SOCKET).unlink(missing_ok=True)
        super().__init__(SOCKET, HookRequest)

    def heart_of(self, agent: str) -> Heart:
        """Return the heart of an agent, by default that of NOUS_AGENT, opened at its first use."""
        name = agent or settings().agent
        with self.lock:
            if name not in self.hearts:
                self.hearts[name] = Heart.open(name, works_in_background=False)
            return self.hearts[name]

    def told_in(self, request: Mapping[str, Any]) -> Told:
        """Return what a request's session was told, to be added to; nothing where it starts or was compacted."""
        session = request["agent"], str(request.get("session_id") or "")
        with self.lock:
            told = self.told.pop(session, [])
            self.told[session] = [] if request["event"] == "SessionStart" or not session[1] else told
            while len(self.told) > MOST_SESSIONS:
                del self.told[next(iter(self.told))]
            return self.told[session]

    def serve_until_idle(self) -> None:
        """Serve until an hour without requests, a request of other code, or the removal of the home."""
        self.timeout = LOOK_EVERY_S
        while not self.is_stale and time.monotonic() - self.used_at < IDLE_S and Path(SOCKET).exists():
            self.handle_request()


class HookRequest(StreamRequestHandler):
    """One request of a hook."""

    server: HookServer  # pyright: ignore[reportIncompatibleVariableOverride] (no other server makes these)

    def handle(self) -> None:
        """Answer the request; failures go to the log only."""
        self.server.used_at = time.monotonic()
        event, answer = "hook", {}
        with suppress(BrokenPipeError, ConnectionResetError):
            try:
                request = json.loads(self.rfile.readline(MOST_BYTES * 8))
                event = request["event"]
                answer = self.answer_to(request)
            except (NousError, ValueError, KeyError) as error:
                log(self.server.place, event, f"{type(error).__name__}: {error}")
            self.wfile.write(json.dumps(answer).encode())

    def answer_to(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to a request, or `is_stale` if the hook runs other code or settings."""
        if request["made_by"] != self.server.made_by:
            self.server.is_stale = True
            return {"is_stale": True}
        heart, project_id = self.server.heart_of(request["agent"]), project_of(Path(request["folder"]))
        reach: dict[str, Any] = {"project_id": project_id, "session_id": request.get("session_id")}
        reach["told"] = self.server.told_in(request)
        if request["event"] == "SessionStart":
            text = context_at_start(heart, deadline_s=request["within_s"], **reach)
        else:
            text = context_for_prompt(heart, request.get("prompt", ""), deadline_s=request["within_s"], **reach)
        return {"text": text}


def serve(place: Path, agent: str) -> None:
    """Serve the hooks of a home, unless another server does already."""
    os.chdir(place)
    with suppress(filelock.Timeout), filelock.FileLock(place / "hooks.lock", timeout=LOOK_EVERY_S * 2):
        try:
            server = open_server(place, agent)
        except NousError as error:
            log(place, "hook server", f"{type(error).__name__}: {error}")
            return
        server.serve_until_idle()


def open_server(place: Path, agent: str) -> HookServer:
    """Return a server that listens only once the heart is open, so that whoever connects gets an answer at once."""
    name = agent or settings().agent
    heart = Heart.open(name, works_in_background=False)
    folder = place / "background"
    make_directory(folder)
    record(NAME, os.getpid(), sys.argv, folder=folder)
    server = HookServer(place)
    server.hearts[name] = heart
    return server


# --- the transcript of a session ---

WAIT_S = 600.0
"""Wait for another import: two at once of one session would each import a part of it as the whole."""
WORK_S = 300.0
"""Time for completing closed episodes: first those of this session, then others that are due."""


def take_transcript(place: Path, path: str, folder: str, agent: str) -> None:
    """Import the new part of a transcript into an agent's memory; failures go to the log."""
    try:
        with (
            filelock.FileLock(place / "transcripts.lock", timeout=WAIT_S),
            Heart.open(agent or settings().agent, works_in_background=False) as heart,
        ):
            import_transcript(heart, Path(path), project_id=project_of(Path(folder)))
            complete(heart)
    except (NousError, filelock.Timeout) as error:
        log(place, "import", f"{type(error).__name__}: {error}")


def import_transcript(heart: Heart, path: Path, *, project_id: str) -> ImportReport:
    """Import a session in its present state; its format is detected, and entries stored before are skipped.

    Raises `InvalidInput` when the file can't be read, and `Unavailable` when the database or the embedder fails.
    """
    # The server, which a session waits for at its start, does without the importers.
    from nous_online.interfaces.imports.formats import SESSIONS, detected_format
    from nous_online.interfaces.imports.importing import ImportOptions, import_history

    name, options = detected_format(path), ImportOptions(is_over=True, project_id=project_id)
    return import_history(heart, [path], format=name if name in SESSIONS else "claude-code", options=options)


def complete(heart: Heart) -> None:
    ends_at = time.monotonic() + WORK_S
    while time.monotonic() < ends_at and heart.work(deadline_s=60.0).completed:
        pass


def main(program: str, *arguments: str) -> None:
    keep_private()
    place = default_home().expanduser().absolute()
    with suppress(KeyboardInterrupt):
        {"serve": serve, "import": take_transcript}[program](place, *arguments)


if __name__ == "__main__":
    main(*sys.argv[1:])
