"""The program that a coding agent starts for each hook: it asks the hook server, and exits with 0 before its deadline.

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
PROGRAMS = "nous_online.interfaces.hooks.hook_programs"
SOCKET = "hooks.sock"
LOG = "hooks.log"
WARM_S = 0.27
"""Deadline with a running hook server; with the start of Python this comes to 0.3 s."""
COLD_S = 1.3
"""Deadline when the hook server has to be started first."""
LOG_BYTES = 2**18
LOOK_EVERY_S = 0.02
MOST_BYTES = 2**20
USUAL_FIELDS = ("session_id", "transcript_path", "cwd", "prompt")


class HookOptions(NamedTuple):
    """The options of a hook's command line."""

    event: str
    agent: str = ""
    within_s: float = 0.0
    """Deadline instead of the default of each event; 0 for the default."""


class Silence(Exception):
    """The hook has no answer; the reason goes to the log."""


def answer(arguments: Sequence[str]) -> NoReturn:
    """Answer one event and end the process with exit code 0; stdout stays empty without an answer."""
    began = time.monotonic()
    os.umask(0o077)
    place, event = Path(os.curdir), arguments[0] if arguments else "?"
    try:
        place = default_home().expanduser().absolute()
        end_after(COLD_S, place, event)  # until the options are known
        options = options_of(arguments)
        end_after((options.within_s or COLD_S) - (time.monotonic() - began), place, event)
        text = text_for_event(options, call_of(sys.stdin.buffer.read(MOST_BYTES * 8)), place, began)
        if text:
            os.write(1, output(options.event, text))
    except BaseException as error:  # whatever happens: a failing hook would disturb the session
        log(place, event, str(error) or type(error).__name__)
    os._exit(0)


def options_of(arguments: Sequence[str]) -> HookOptions:
    """Parse the command line; raise `Silence` if it is invalid."""
    event, *rest = arguments or ("",)
    given = dict(zip(rest[::2], rest[1::2], strict=False))
    if event not in EVENTS or len(rest) % 2 or set(given) - {"--agent", "--within"}:
        raise Silence(f"can't read {list(arguments)}; want one of {', '.join(EVENTS)}, --agent NAME, --within SECONDS")
    if not given.get("--agent", "named").strip():
        os.write(2, b"error: agent_id is empty; name the agent this memory belongs to\n")
        raise Silence("--agent is empty, so the hook answered nothing; name the agent this memory belongs to")
    return HookOptions(event, given.get("--agent", ""), float(given.get("--within", 0)))


def end_after(seconds: float, place: Path, event: str) -> None:
    """End this process silently after some seconds, whatever it waits for: a signal interrupts any call."""

    def end(*_: object) -> NoReturn:
        log(place, event, "time was up before there was an answer")
        os._exit(0)

    signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.001))  # 0 would switch the timer off


def call_of(stdin: bytes) -> dict[str, str]:
    """Return the fields of a client's JSON object on stdin; raise `Silence` for anything else."""
    try:
        call = json.loads(stdin)
    except ValueError:
        call = None
    if not isinstance(call, dict):
        raise Silence("stdin holds no JSON object, such as a client tells a hook")
    fields = cast("dict[str, Any]", call)
    return {name: fields[name] for name in USUAL_FIELDS if isinstance(fields.get(name), str)}


def text_for_event(options: HookOptions, call: Mapping[str, str], place: Path, began: float) -> str:
    """Return the text to put before the model; an import is started in the background and gives none."""
    make_directory(place)
    folder = str(Path(os.environ.get("CLAUDE_PROJECT_DIR") or call.get("cwd") or os.curdir).absolute())
    if options.event in IMPORT_EVENTS:
        path = Path(call.get("transcript_path", "")).expanduser().absolute()
        if not path.is_file():
            raise Silence("there is no transcript to import")
        start(place, "import", str(path), folder, options.agent)
        return ""
    request = {**call, "event": options.event, "agent": options.agent, "folder": folder, **made_by()}
    return ask_server(options, request, place, began)


def ask_server(options: HookOptions, request: dict[str, Any], place: Path, began: float) -> str:
    """Return the hook server's text; if none runs it is started, and only the start of a session waits for it."""
    os.chdir(place)  # a socket's whole path may be longer than an address can hold
    is_cold = False
    while True:
        with socket.socket(socket.AF_UNIX) as line:
            if is_connected(line):
                limit = options.within_s or (COLD_S if is_cold else WARM_S)
                left = limit - (time.monotonic() - began)
                end_after(left, place, options.event)
                response = exchange(line, {**request, "within_s": max(left, 0.01)})
                if not response.get("is_stale"):
                    return str(response.get("text", ""))
            if not is_cold:
                start(place, "serve", options.agent)
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


def exchange(line: socket.socket, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the hook server's response to a request; `is_stale` if it is ending or runs other code."""
    received = b""
    try:
        line.sendall(json.dumps(request).encode() + b"\n")
        while part := line.recv(2**16):
            received += part
    except OSError:
        received = b""
    return json.loads(received) if received else {"is_stale": True}


def made_by() -> dict[str, Any]:
    """Return the code, Python and environment of this process; a hook server started with others must not answer."""
    # A server started before an upgrade would answer with old code.
    code = max(path.stat().st_mtime_ns for path in Path(__file__).parent.glob("*.py"))
    environment = {name: value for name, value in sorted(os.environ.items()) if name.startswith("NOUS_")}
    return {"made_by": [code, sys.executable, environment]}


def start(place: Path, *program: str) -> None:
    """Start a program of `hook_programs` in the background, in a session of its own, its output going to the log."""
    import subprocess

    # -P and PYTHONSAFEPATH: `python -m` would import modules from the current folder first, which may be a cloned
    # repository with code of its author.
    home = {"NOUS_HOME": str(place)} if os.environ.get("NOUS_HOME") else {}
    with (place / LOG).open("ab") as log_file:
        subprocess.Popen(  # noqa: S603 (the command is ours)
            [sys.executable, "-P", "-m", PROGRAMS, *program],
            cwd=place,
            env={**os.environ, "PYTHONSAFEPATH": "1", **home},
            stdin=subprocess.DEVNULL,
            stdout=log_file,
            stderr=log_file,
            start_new_session=True,
        )


def output(event: str, text: str) -> bytes:
    return json.dumps({"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}).encode() + b"\n"


def log(place: Path, event: str, message: str) -> None:
    """Append a line to the log, which is rotated at `LOG_BYTES`; a log that can't be written is ignored."""
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
