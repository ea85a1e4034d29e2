"""Where an embedded server keeps its things: home, data directory, lock, and the record `server.json`."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import quote, urlencode

import filelock

from nous_online.core.errors import DeadlineExceeded, InvalidInput, Unavailable
from nous_online.core.home import SHELTER, default_home
from nous_online.database.postgres.account import SystemAccount, account_for, give_to_owner

# pg_ctl passes the data directory through a shell, in double quotes.
UNQUOTABLE = frozenset('"$`\n' if os.sep == "\\" else '"$`\n\\')
LOG_LINES = 20  # of server.log, quoted in errors
LOG_BYTES = 16 * 2**20  # a longer server.log becomes server.log.1 at the next start
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

        Without `require_auth` libpq would tell the password to whoever took the port of a dead server.
        """
        asked = {
            "host": self.host,
            "port": self.port,
            "passfile": self.home / PASSWORDS,
            "require_auth": "scram-sha-256",
        }
        return f"postgresql://{self.user}@/{quote(database, safe='')}?{urlencode(asked, safe='/', quote_via=quote)}"


@dataclass(frozen=True)
class ServerRecord:
    """What server.json keeps; `data` is the absolute data directory, `port` the one last used (0: none yet)."""

    data: Path
    port: int
    user: str
    password: str = field(repr=False)
    next_password: str = field(default="", repr=False)
    """The one that was about to be set when this was written: whoever was killed then left it open which holds."""
    pid: int = 0
    """The postmaster this was written for; 0 before the first start, and after a stop that was asked for."""
    login_passwords: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Of each of `LOGINS`; one that an earlier version did not know is missing until the server is next asked for."""

    @property
    def has_logins(self) -> bool:
        return self.login_passwords.keys() >= {*LOGINS}


def settled(home: Path | None) -> Path:
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
    path = settled(home)
    record = read_record(path)
    return record.data if record else place_for_data(path, account_for(path, path / "pgdata"))


def place_for_data(home: Path, account: SystemAccount | None) -> Path:
    """Return where new data of `home` goes: home/pgdata, or below the shelter when `account` cannot get there."""
    if account is None or account.reaches(home):
        return home / "pgdata"
    return SHELTER / hashlib.sha256(os.fsencode(home)).hexdigest()[:16] / "pgdata"


@contextmanager
def locked(home: Path, *, timeout_s: float) -> Generator[None]:
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
    """Write `path` anew, readable by its owner alone, through no link that somebody left there; raises OSError."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def set_aside(data: Path) -> Path | None:
    """Rename a half-made data directory and return its new name; None when there was nothing to keep."""
    if not data.exists() or not any(data.iterdir()):
        return None
    aside = data.with_name(f"{data.name}.half-made-{datetime.now(UTC):%Y%m%dT%H%M%S%fZ}")
    return data.rename(aside)


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
    told = "\n".join(lines[-LOG_LINES:]) or "(empty)"
    hint = "The disk is full: free some space. " if "No space left on device" in told else ""
    return f"{hint}The end of {log}:\n{told}"
