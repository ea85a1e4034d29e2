"""Installs Nous as a service of systemd, launchd or cron: a worker that always runs, and nights once a day.

A service is a set of files and the commands that start, stop and query it. One more file, beside the memories, has the
settings of the shell that installed it, including keys; only its owner can read it.
"""

from __future__ import annotations

import os
import plistlib
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from nous_online.core.errors import InvalidInput, Unavailable
from nous_online.core.files import is_root, put, text_of_file
from nous_online.interfaces.hooks.client_settings import launcher
from nous_online.processes import child_environment, child_folder

Manager: TypeAlias = Literal["systemd", "launchd", "cron"]
WORKER, NIGHT = "nous-worker", "nous-night"
PROGRAMS: Mapping[str, tuple[str, ...]] = {WORKER: ("worker",), NIGHT: ("night", "--backfill")}
"""The command of each program. Missed nights are caught up on, since a machine may be off when one is due."""
SETTINGS = re.compile(r"NOUS_\w+|ANTHROPIC_API_KEY|ANTHROPIC_BASE_URL")
CRON_BEGINS, CRON_ENDS = "# nous service: begin", "# nous service: end"
CRON_BLOCK = re.compile(rf"^{CRON_BEGINS}$.*?^{CRON_ENDS}$\n?", re.MULTILINE | re.DOTALL)
COMMAND_TIMEOUT_S = 30.0


@dataclass(frozen=True)
class SystemCommand:
    """A command of the service manager, and its standard input."""

    words: Sequence[str]
    stdin: str | None = None

    def __str__(self) -> str:
        return shlex.join(self.words)


@dataclass(frozen=True)
class Autostart:
    """The files of a service, and the commands that start, stop and query it."""

    manager: Manager
    files: Mapping[Path, str]
    starts: Sequence[SystemCommand]
    ends: Sequence[SystemCommand]
    asks: Mapping[str, SystemCommand] = field(default_factory=dict[str, SystemCommand])
    """For each program the command that queries its state."""
    restarts: Sequence[SystemCommand] = ()
    """The commands that restore the earlier service if a new one fails to start; by default `starts`."""
    is_installed: bool = False
    """Whether it was installed when this value was made."""


def autostart_here(manager: Manager | None, at: tuple[int, int]) -> Autostart:
    """Return the service for this system, with nights at an hour and minute of the local clock.

    Raises `Unavailable` if no service manager answers, `InvalidInput` for a setting that can't be written to a file.
    """
    return MANAGERS[manager or manager_here()](at)


def manager_here() -> Manager:
    """Return the service manager of this system; raise `Unavailable` if there is none."""
    if sys.platform == "darwin":
        return "launchd"
    if shutil.which("systemctl") and try_command(SystemCommand([*systemctl(), "show-environment"])) is not None:
        return "systemd"
    if shutil.which("crontab"):
        return "cron"
    raise Unavailable(
        "neither systemd nor cron answers here; have whatever starts programs on this machine run `nous worker` always "
        "and `nous night --backfill` once a day"
    )


# --- systemd ---


def systemd(at: tuple[int, int]) -> Autostart:
    """Return the service as systemd units of the user, or of the system for root."""
    own = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "systemd" / "user"
    folder = Path("/etc/systemd/system") if is_root() else own
    target = "multi-user.target" if is_root() else "default.target"
    described = {WORKER: "Nous: completes episodes, delivers events", NIGHT: "Nous: the nights that are over"}
    kinds = {WORKER: "Restart=on-failure\nRestartSec=30", NIGHT: "Type=oneshot"}
    files = {
        folder / f"{name}.service": unit(
            {
                "Unit": f"Description={described[name]}",
                "Service": f"{kinds[name]}\n{execution(name)}",
                **({"Install": f"WantedBy={target}"} if name == WORKER else {}),
            }
        )
        for name in PROGRAMS
    }
    files[folder / f"{NIGHT}.timer"] = unit(
        {
            "Unit": "Description=Nous: every day",
            # Persistent: a time that passed while the machine was off is caught up on at the next boot.
            "Timer": f"OnCalendar=*-*-* {at[0]:02}:{at[1]:02}:00\nPersistent=true",
            "Install": "WantedBy=timers.target",
        }
    )
    started = [f"{WORKER}.service", f"{NIGHT}.timer"]
    return Autostart(
        "systemd",
        {settings_file(): settings_text(), **files},
        starts=[
            SystemCommand([*systemctl(), "daemon-reload"]),
            SystemCommand([*systemctl(), "enable", "--now", *started]),
        ],
        ends=[SystemCommand([*systemctl(), "disable", "--now", *started])],
        asks={name: SystemCommand([*systemctl(), "is-active", name]) for name in started},
        is_installed=any(path.exists() for path in files),
    )


def systemctl() -> list[str]:
    """Return the command for the manager of this user, or of the system for root."""
    return ["systemctl"] if is_root() else ["systemctl", "--user"]


def unit(sections: Mapping[str, str]) -> str:
    return "\n\n".join(f"[{name}]\n{lines}" for name, lines in sections.items()) + "\n"


def execution(name: str) -> str:
    """Return the lines of a unit for its command, its settings, and a umask that keeps its files private."""
    words = " ".join(unit_word(word) for word in (*launcher(), *PROGRAMS[name]))
    place = str(settings_file()).replace("%", "%%")
    return f"ExecStart={words}\nEnvironmentFile={place}\nUMask=0077\nNoNewPrivileges=yes"


def unit_word(word: str) -> str:
    """Return a word quoted for a unit file, where %, $ and backslash have a meaning of their own."""
    plain = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{plain}"'


# --- launchd ---


def launchd(at: tuple[int, int]) -> Autostart:
    """Return the service as launch agents of the user on macOS."""
    folder = Path.home() / "Library" / "LaunchAgents"
    when: dict[str, dict[str, object]] = {
        WORKER: {"RunAtLoad": True, "KeepAlive": {"SuccessfulExit": False}},  # restarted after a failure alone
        NIGHT: {"StartCalendarInterval": {"Hour": at[0], "Minute": at[1]}},
    }
    log = str(child_folder() / "service.log")
    files = {
        folder / f"{name}.plist": plistlib.dumps({
            "Label": name, "ProgramArguments": ["/bin/sh", "-c", shell_line(name)], "Umask": 0o077,
            "StandardOutPath": log, "StandardErrorPath": log, **when[name],
        }).decode()
        for name in PROGRAMS
    }  # fmt: skip
    domain = f"gui/{os.getuid()}"
    return Autostart(
        "launchd",
        {settings_file(): settings_text(), **files},
        starts=[SystemCommand(["launchctl", "bootstrap", domain, str(path)]) for path in files],
        ends=[SystemCommand(["launchctl", "bootout", f"{domain}/{name}"]) for name in PROGRAMS],
        asks={name: SystemCommand(["launchctl", "print", f"{domain}/{name}"]) for name in PROGRAMS},
        is_installed=any(path.exists() for path in files),
    )


# --- cron ---


def cron(at: tuple[int, int]) -> Autostart:
    """Return the service as lines of the user's crontab, without changing its other lines.

    The worker runs once every five minutes, since cron does not restart a program that has ended.
    """
    lines = {
        WORKER: f"*/5 * * * * umask 077; {shell_line(WORKER)} --once",
        NIGHT: f"{at[1]} {at[0]} * * * umask 077; {shell_line(NIGHT)}",
    }
    log = shlex.quote(str(child_folder() / "service.log"))
    logged = [f"{line} >>{log} 2>&1".replace("%", r"\%") for line in lines.values()]  # a bare % ends a line of cron
    before = try_command(SystemCommand(["crontab", "-l"])) or ""
    others = CRON_BLOCK.sub("", before)
    apart = "" if not others or others.endswith("\n") else "\n"
    ours = "\n".join([CRON_BEGINS, *logged, CRON_ENDS, ""])
    return Autostart(
        "cron",
        {settings_file(): settings_text()},
        starts=[SystemCommand(["crontab", "-"], stdin=f"{others}{apart}{ours}")],
        ends=[SystemCommand(["crontab", "-"], stdin=others)],
        asks=dict.fromkeys(PROGRAMS, SystemCommand(["crontab", "-l"])),
        restarts=[SystemCommand(["crontab", "-"], stdin=before)],
        is_installed=others != before,
    )


def shell_line(name: str) -> str:
    place = shlex.quote(str(settings_file()))
    return f"set -a; . {place}; set +a; exec {shlex.join([*launcher(), *PROGRAMS[name]])}"


# --- settings ---


def settings_file() -> Path:
    """Return the file of the service's settings, beside the memories."""
    return child_folder() / "service.env"


def settings_text() -> str:
    """Return the settings of this shell that Nous reads, in a format that shells and systemd both parse."""
    given = {**child_environment(), "NOUS_HOME": str(child_folder())}
    chosen = {name: value for name, value in sorted(given.items()) if SETTINGS.fullmatch(name) and value}
    for name, value in chosen.items():
        # A shell takes everything between single quotes literally, and so does systemd; a quote would end it.
        if "'" in value or not value.isprintable():
            raise InvalidInput(
                f"{name} has a quotation mark or a line break, which the settings file can't hold; unset it"
            )
    return "".join(f"{name}='{value}'\n" for name, value in chosen.items())


# --- install and uninstall ---


def install(service: Autostart) -> None:
    """Write the files of a service and start it, stopping an earlier one first, which is restored on failure.

    Raises `Unavailable` with the message of the service manager.
    """
    before = {path: text_of_file(path) for path in service.files}
    if service.is_installed:
        for command in service.ends:
            try_command(command)
    try:
        for path, text in service.files.items():
            put(path, text, like=path)
        for command in service.starts:
            run_command(command)
    except (OSError, Unavailable) as error:
        for path, text in before.items():
            restore(path, text)
        for command in (service.restarts or service.starts) if service.is_installed else ():
            try_command(command)
        raise error if isinstance(error, Unavailable) else Unavailable(f"{error}; nothing was installed") from error


def uninstall(service: Autostart) -> None:
    """Stop a service and delete its files; raise `Unavailable`, keeping them, if it can't be stopped."""
    for command in service.ends:
        run_command(command)
    for path in service.files:
        path.unlink(missing_ok=True)


def restore(path: Path, text: str | None) -> None:
    if text is None:
        path.unlink(missing_ok=True)
    else:
        put(path, text, like=path)


def run_command(command: SystemCommand) -> str:
    """Return the output of a command; raise `Unavailable` with its error output if it fails."""
    try:
        done = subprocess.run(  # noqa: S603 (words of our own, and no shell)
            command.words,
            cwd=child_folder(),
            input=command.stdin or "",
            capture_output=True,
            text=True,
            timeout=COMMAND_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise Unavailable(f"`{command}` failed: {error}; nothing was changed") from error
    if done.returncode:
        message = " ".join((done.stderr or done.stdout).split())
        raise Unavailable(f"`{command}` failed: {message or f'exit code {done.returncode}'}; nothing was changed")
    return done.stdout


def try_command(command: SystemCommand) -> str | None:
    try:
        return run_command(command)
    except Unavailable:
        return None


MANAGERS = {"systemd": systemd, "launchd": launchd, "cron": cron}
