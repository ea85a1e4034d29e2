"""A process that holds the memory open between the moments of a session, so that each is answered in milliseconds.

It listens on a socket in the home, where nobody else can come, and ends when nobody asked for a while.
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
from typing import Any

import filelock
import psutil

from nous_online.core.errors import NousError
from nous_online.core.files import default_home, keep_private, make_directory
from nous_online.core.settings import settings
from nous_online.heart import Heart
from nous_online.interfaces.hooks.client_settings import project_of
from nous_online.interfaces.hooks.hook import MOST_BYTES, SOCKET, log, made_by
from nous_online.interfaces.hooks.session_notes import context_at_start, context_for_prompt

IDLE_S = 3600.0
LOOK_EVERY_S = 5.0
NAME = "hooks"
"""Of its record in the home, by which `nous down` finds it."""


class HookServer(ThreadingMixIn, UnixStreamServer):
    """Answers hooks, each in a thread, with one heart for each agent."""

    daemon_threads = True

    def __init__(self, place: Path) -> None:
        self.place = place
        self.made_by = made_by()["made_by"]
        self.used_at = time.monotonic()
        self.is_stale = False
        self.hearts: dict[str, Heart] = {}
        self.lock = threading.Lock()
        Path(SOCKET).unlink(missing_ok=True)
        super().__init__(SOCKET, HookRequest)

    def heart_of(self, agent: str) -> Heart:
        """Return the memory of an agent, or of the one NOUS_AGENT names, opened when first needed."""
        name = agent or settings().agent
        with self.lock:
            if name not in self.hearts:
                self.hearts[name] = Heart.open(name, works_in_background=False)
            return self.hearts[name]

    def serve_while_asked(self) -> None:
        """Answer until nobody has asked for an hour, somebody asks who runs other code, or the home is gone."""
        self.timeout = LOOK_EVERY_S
        while not self.is_stale and time.monotonic() - self.used_at < IDLE_S and Path(SOCKET).exists():
            self.handle_request()


class HookRequest(StreamRequestHandler):
    """One question of a hook."""

    server: HookServer  # pyright: ignore[reportIncompatibleVariableOverride] (no other server makes these)

    def handle(self) -> None:
        """Answer it; what fails is told by the log alone."""
        self.server.used_at = time.monotonic()
        event, answer = "hook", {}
        with suppress(BrokenPipeError, ConnectionResetError):
            try:
                asked = json.loads(self.rfile.readline(MOST_BYTES * 8))
                event = asked["event"]
                answer = self.answer_to(asked)
            except (NousError, ValueError, KeyError) as error:
                log(self.server.place, event, f"{type(error).__name__}: {error}")
            self.wfile.write(json.dumps(answer).encode())

    def answer_to(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to a question, or that whoever asks needs another server."""
        if asked["made_by"] != self.server.made_by:
            self.server.is_stale = True
            return {"is_stale": True}
        return {"text": text_for(self.server.heart_of(asked["agent"]), asked)}


def text_for(heart: Heart, asked: Mapping[str, Any]) -> str:
    """Return what is put before the model at one moment of a session."""
    reach: dict[str, Any] = {
        "project_id": project_of(Path(asked["folder"])),
        "session_id": asked.get("session_id"),
        "deadline_s": asked["within_s"],
    }
    if asked["event"] == "SessionStart":
        return context_at_start(heart, **reach)
    return context_for_prompt(heart, asked.get("prompt", ""), **reach)


def record(place: Path) -> None:
    """Write down which process this is, as `nous_online.processes` does for what it starts."""
    folder = place / "background"
    make_directory(folder)
    created = psutil.Process().create_time()
    (folder / f"{NAME}.json").write_text(
        json.dumps({"pid": os.getpid(), "created": created, "command": sys.argv}), "utf-8"
    )


def main(agent: str) -> None:
    """Serve the hooks of a home, unless another server does."""
    keep_private()
    place = default_home().expanduser().absolute()
    os.chdir(place)
    with suppress(filelock.Timeout), filelock.FileLock(place / "hooks.lock", timeout=LOOK_EVERY_S * 2):
        try:
            server = open_server(place, agent)
        except NousError as error:
            log(place, "hook server", f"{type(error).__name__}: {error}")
            return
        server.serve_while_asked()


def open_server(place: Path, agent: str) -> HookServer:
    """Return a server that listens once the memory is open: who can connect gets an answer at once."""
    name = agent or settings().agent
    heart = Heart.open(name, works_in_background=False)
    record(place)
    server = HookServer(place)
    server.hearts[name] = heart
    return server


if __name__ == "__main__":
    main(sys.argv[1])
