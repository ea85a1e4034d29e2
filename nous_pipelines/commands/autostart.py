"""What the system runs for Nous by itself: a worker all the time, and once a day the nights that are over.

A service is the files it stands in, and the commands that start, end and ask about it. One file beside the memories
holds the settings of the shell that installed it, keys included, readable by its owner alone.
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
"""What each runs. Nights that were missed are made up for: a machine may be off when one is due."""
SETTINGS = re.compile(r"NOUS_\w+|ANTHROPIC_API_KEY|ANTHROPIC_BASE_URL")
CRON_BEGINS, CRON_ENDS = "# nous service: begin", "# nous service: end"
CRON_BLOCK = re.compile(rf"^{CRON_BEGINS}$.*?^{CRON_ENDS}$\n?", re.MULTILINE | re.DOTALL)
PATIENCE_S = 30.0
"""How long a command of the system may take."""


@dataclass(frozen=True)
class SystemCommand:
    """A command of the system, and what it is told on standard input."""

    words: Sequence[str]
    told: str | None = None

    def __str__(self) -> str:
        return shlex.join(self.words)


@dataclass(frozen=True)
class Autostart:
    """The files a service stands in, and how it is started, ended and asked about."""

    manager: Manager
    files: Mapping[Path, str]
    starts: Sequence[SystemCommand]
    ends: Sequence[SystemCommand]
    asks: Mapping[str, SystemCommand] = field(default_factory=dict[str, SystemCommand])
    """For each program the command that says how it stands."""
    restarts: Sequence[SystemCommand] = ()
    """What brings an earlier service back when a new one is refused; unless told, what starts it."""
    is_installed: bool = False
    """Whether it was there when this was asked."""


def autostart_here(manager: Manager | None, at: tuple[int, int]) -> Autostart:
    """Return the service as this system would run it, its nights at an hour and minute of the local clock.

    Raises `Unavailable` where no manager of services answers, `InvalidInput` for a setting no file can hold.
    """
    return MANAGERS[manager or manager_here()](at)


def manager_here() -> Manager:
    """Return who runs services here; raise `Unavailable` where nobody answers."""
    if sys.platform == "darwin":
        return "launchd"
    if shutil.which("systemctl") and answered(SystemCommand([*systemctl(), "show-environment"])) is not None:
        return "systemd"
    if shutil.which("crontab"):
        return "cron"
    raise Unavailable(
        "neither systemd nor cron answers here; have whatever starts programs on this machine run `nous worker` always "
        "and `nous night --backfill` once a day"
    )


# --- systemd ---


def systemd(at: tuple[int, int]) -> Autostart:
    """Return the service as units of the user, or of the system for root."""
    folder = Path("/etc/systemd/system") if is_root() else config_folder() / "systemd" / "user"
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
    """Return how to speak to the manager of this user, or of the system for root."""
    return ["systemctl"] if is_root() else ["systemctl", "--user"]


def config_folder() -> Path:
    """Return where programs of this user keep their settings."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")


def unit(sections: Mapping[str, str]) -> str:
    """Return a unit of systemd from its sections."""
    return "\n\n".join(f"[{name}]\n{lines}" for name, lines in sections.items()) + "\n"


def execution(name: str) -> str:
    """Return what a unit runs, with which settings, and that nobody else may read what it writes."""
    words = " ".join(unit_word(word) for word in (*launcher(), *PROGRAMS[name]))
    place = str(settings_file()).replace("%", "%%")
    return f"ExecStart={words}\nEnvironmentFile={place}\nUMask=0077\nNoNewPrivileges=yes"


def unit_word(word: str) -> str:
    """Return a word as a unit writes it: quoted, and with nothing in it that stands for something else."""
    plain = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{plain}"'


# --- launchd ---


def launchd(at: tuple[int, int]) -> Autostart:
    """Return the service as agents of the user on macOS."""
    folder = Path.home() / "Library" / "LaunchAgents"
    when: dict[str, dict[str, object]] = {
        WORKER: {"RunAtLoad": True, "KeepAlive": {"SuccessfulExit": False}},
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
    """Return the service as lines of the user's crontab; the others in it stay as they are.

    The worker looks every five minutes: cron starts nothing anew that ended.
    """
    lines = {
        WORKER: f"*/5 * * * * umask 077; {shell_line(WORKER)} --once",
        NIGHT: f"{at[1]} {at[0]} * * * umask 077; {shell_line(NIGHT)}",
    }
    log = shlex.quote(str(child_folder() / "service.log"))
    logged = [f"{line} >>{log} 2>&1".replace("%", r"\%") for line in lines.values()]
    before = answered(SystemCommand(["crontab", "-l"])) or ""
    others = CRON_BLOCK.sub("", before)
    apart = "" if not others or others.endswith("\n") else "\n"
    ours = "\n".join([CRON_BEGINS, *logged, CRON_ENDS, ""])
    return Autostart(
        "cron",
        {settings_file(): settings_text()},
        starts=[SystemCommand(["crontab", "-"], told=f"{others}{apart}{ours}")],
        ends=[SystemCommand(["crontab", "-"], told=others)],
        asks=dict.fromkeys(PROGRAMS, SystemCommand(["crontab", "-l"])),
        restarts=[SystemCommand(["crontab", "-"], told=before)],
        is_installed=others != before,
    )


def shell_line(name: str) -> str:
    """Return what a shell is told to run a program with its settings."""
    place = shlex.quote(str(settings_file()))
    return f"set -a; . {place}; set +a; exec {shlex.join([*launcher(), *PROGRAMS[name]])}"


# --- settings ---


def settings_file() -> Path:
    """Return where the settings of the service lie: beside the memories."""
    return child_folder() / "service.env"


def settings_text() -> str:
    """Return the settings of this shell that Nous goes by, as both a shell and systemd read them."""
    given = {**child_environment(), "NOUS_HOME": str(child_folder())}
    chosen = {name: value for name, value in sorted(given.items()) if SETTINGS.fullmatch(name) and value}
    for name, value in chosen.items():
        if "'" in value or not value.isprintable():
            raise InvalidInput(
                f"{name} holds a quotation mark or a line's end, which no file of settings can; unset it"
            )
    return "".join(f"{name}='{value}'\n" for name, value in chosen.items())


# --- carrying out ---


def install(service: Autostart) -> None:
    """Write the files of a service and start it, ending an earlier one first; where that fails the earlier one runs.

    Raises `Unavailable` with what the system said.
    """
    before = {path: text_of_file(path) for path in service.files}
    if service.is_installed:
        for command in service.ends:
            answered(command)
    try:
        for path, text in service.files.items():
            put(path, text, like=path)
        for command in service.starts:
            told(command)
    except (OSError, Unavailable) as error:
        for path, text in before.items():
            restore(path, text)
        for command in (service.restarts or service.starts) if service.is_installed else ():
            answered(command)
        raise error if isinstance(error, Unavailable) else Unavailable(f"{error}; nothing was installed") from error


def uninstall(service: Autostart) -> None:
    """End a service and delete its files; raise `Unavailable` with what the system said, and keep them then."""
    for command in service.ends:
        told(command)
    for path in service.files:
        path.unlink(missing_ok=True)


def restore(path: Path, text: str | None) -> None:
    """Give a file the text it had, or take it away where there was none."""
    if text is None:
        path.unlink(missing_ok=True)
    else:
        put(path, text, like=path)


def told(command: SystemCommand) -> str:
    """Return what a command of the system answers; raise `Unavailable` with its complaint when it fails."""
    try:
        done = subprocess.run(  # noqa: S603 (words of our own, and no shell)
            command.words,
            cwd=child_folder(),
            input=command.told or "",
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise Unavailable(f"`{command}` failed: {error}; nothing was changed") from error
    if done.returncode:
        said = " ".join((done.stderr or done.stdout).split())
        raise Unavailable(f"`{command}` failed: {said or f'exit code {done.returncode}'}; nothing was changed")
    return done.stdout


def answered(command: SystemCommand) -> str | None:
    """Return what a command of the system answers, None when it fails."""
    try:
        return told(command)
    except Unavailable:
        return None


MANAGERS = {"systemd": systemd, "launchd": launchd, "cron": cron}
