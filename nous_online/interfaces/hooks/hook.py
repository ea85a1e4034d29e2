"""What a coding agent starts at each moment: it asks the hook server, and ends in time with exit code 0 always.

It is started for every prompt, so it imports next to nothing; a contract in `.importlinter` holds that.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, cast

from nous_online.core.errors import Unavailable
from nous_online.core.files import default_home, make_directory

CONTEXT_EVENTS = ("SessionStart", "UserPromptSubmit", "BeforeAgent")
"""As Claude Code and Codex name them, and what Gemini CLI calls a prompt."""
IMPORT_EVENTS = ("PreCompact", "PreCompress", "SessionEnd")
EVENTS = (*CONTEXT_EVENTS, *IMPORT_EVENTS)
PACKAGE = "nous_online.interfaces.hooks"
SOCKET = "hooks.sock"
LOG = "hooks.log"
WARM_S = 0.27
"""With the start of Python this comes to 0.3 s."""
COLD_S = 1.3
LOG_BYTES = 2**18
LOOK_EVERY_S = 0.02
MOST_BYTES = 2**20
USUAL_FIELDS = ("session_id", "transcript_path", "cwd", "prompt")


class HookOptions(NamedTuple):
    """What the command line of a hook says."""

    event: str
    agent: str = ""
    within_s: float = 0.0
    """How long it may take in seconds, instead of what each moment allows."""


class Silence(Exception):
    """Nothing can be said this time, for a reason that the log tells."""


def answer(arguments: Sequence[str]) -> NoReturn:
    """Answer one event and end the process: exit code 0, and nothing on stdout unless there is something to say."""
    began = time.monotonic()
    os.umask(0o077)
    place, event = Path(os.curdir), arguments[0] if arguments else "?"
    try:
        place = default_home().expanduser().absolute()
        end_after(COLD_S, place, event)
        options = options_of(arguments)
        end_after((options.within_s or COLD_S) - (time.monotonic() - began), place, event)
        text = text_for_event(options, call_of(sys.stdin.buffer.read(MOST_BYTES * 8)), place, began)
        if text:
            os.write(1, output(options.event, text))
    except BaseException as error:
        log(place, event, str(error) or type(error).__name__)
    os._exit(0)


def options_of(arguments: Sequence[str]) -> HookOptions:
    """Return what the command line says; raise `Silence` where it can't be read."""
    event, *rest = arguments or ("",)
    given = dict(zip(rest[::2], rest[1::2], strict=False))
    if event not in EVENTS or len(rest) % 2 or set(given) - {"--agent", "--within"}:
        raise Silence(f"can't read {list(arguments)}; want one of {', '.join(EVENTS)}, --agent NAME, --within SECONDS")
    return HookOptions(event, given.get("--agent", ""), float(given.get("--within", 0)))


def end_after(seconds: float, place: Path, event: str) -> None:
    """End this process silently when its time is up, whatever it waits for."""

    def end(*_: object) -> NoReturn:
        log(place, event, "time was up before there was an answer")
        os._exit(0)

    signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.001))


def call_of(stdin: bytes) -> dict[str, str]:
    """Return what a client tells on stdin; raise `Silence` where that is no JSON object."""
    try:
        call = json.loads(stdin)
    except ValueError:
        call = None
    if not isinstance(call, dict):
        raise Silence("stdin holds no JSON object, such as a client tells a hook")
    told = cast("dict[str, Any]", call)
    return {name: told[name] for name in USUAL_FIELDS if isinstance(told.get(name), str)}


def text_for_event(options: HookOptions, call: Mapping[str, str], place: Path, began: float) -> str:
    """Return what is to be put before the model, having started what has to run in the background."""
    make_directory(place)
    folder = str(Path(os.environ.get("CLAUDE_PROJECT_DIR") or call.get("cwd") or os.curdir).absolute())
    if options.event in IMPORT_EVENTS:
        path = Path(call.get("transcript_path", "")).expanduser().absolute()
        if not path.is_file():
            raise Silence("there is no transcript to import")
        start(place, "transcript_import", str(path), folder, options.agent)
        return ""
    asked = {**call, "event": options.event, "agent": options.agent, "folder": folder, **made_by()}
    return ask_server(options, asked, place, began)


def ask_server(options: HookOptions, asked: dict[str, Any], place: Path, began: float) -> str:
    """Return what the hook server says; where none runs it is started, and only the start of a session waits for it."""
    os.chdir(place)  # a socket's whole path may be longer than an address can hold
    is_cold = False
    while True:
        with socket.socket(socket.AF_UNIX) as line:
            if is_connected(line):
                limit = options.within_s or (COLD_S if is_cold else WARM_S)
                left = limit - (time.monotonic() - began)
                end_after(left, place, options.event)
                found = exchange(line, {**asked, "within_s": max(left, 0.01)})
                if not found.get("is_stale"):
                    return str(found.get("text", ""))
            if not is_cold:
                start(place, "hook_server", options.agent)
                is_cold = True
        if options.event != "SessionStart" and not options.within_s:
            raise Silence("the hook server was not running; it has been started")
        time.sleep(LOOK_EVERY_S)


def is_connected(line: socket.socket) -> bool:
    """Connect to the hook server, if one is listening."""
    try:
        line.connect(SOCKET)
    except OSError:
        return False
    return True


def exchange(line: socket.socket, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return the hook server's answer to one question; one that is just ending gives none, as one of other code."""
    told = b""
    try:
        line.sendall(json.dumps(asked).encode() + b"\n")
        while part := line.recv(2**16):
            told += part
    except OSError:
        told = b""
    return json.loads(told) if told else {"is_stale": True}


def made_by() -> dict[str, Any]:
    """Return what a hook server must have been started with to answer for us: this code, Python and environment."""
    code = max(path.stat().st_mtime_ns for path in Path(__file__).parent.glob("*.py"))
    environment = {name: value for name, value in sorted(os.environ.items()) if name.startswith("NOUS_")}
    return {"made_by": [code, sys.executable, environment]}


def start(place: Path, module: str, *arguments: str) -> None:
    """Start a module of this package in the background, in a session of its own, its words going to the log."""
    import subprocess

    home = {"NOUS_HOME": str(place)} if os.environ.get("NOUS_HOME") else {}
    with (place / LOG).open("ab") as log_file:
        subprocess.Popen(  # noqa: S603 (the command is ours)
            [sys.executable, "-P", "-m", f"{PACKAGE}.{module}", *arguments],
            cwd=place,
            env={**os.environ, "PYTHONSAFEPATH": "1", **home},
            stdin=subprocess.DEVNULL,
            stdout=log_file,
            stderr=log_file,
            start_new_session=True,
        )


def output(event: str, text: str) -> bytes:
    """Return what a client reads on stdout."""
    return json.dumps({"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}).encode() + b"\n"


def log(place: Path, event: str, message: str) -> None:
    """Write one line into the log, which begins afresh when it has grown long; a log that can't be written is none."""
    try:
        make_directory(place)
        path = place / LOG
        if path.exists() and path.stat().st_size > LOG_BYTES:
            path.replace(path.with_suffix(".log.1"))
        with path.open("a", encoding="utf-8", errors="replace") as file:
            moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            file.write(f"{moment} {event[:40]}: {' '.join(message.split())[:500]}\n")
    except (OSError, Unavailable):
        return
