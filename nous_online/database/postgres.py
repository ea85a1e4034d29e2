"""The embedded PostgreSQL server of a home: started, reused and stopped; safe for many processes at once."""

from __future__ import annotations

import logging
import os
import secrets
import shlex
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import class_row
from psycopg.sql import SQL, Identifier, Literal

from nous_online.core.errors import DeadlineExceeded, NousError, Unavailable
from nous_online.core.files import default_home, make_directory, tighten
from nous_online.database.postgres_home import (
    DAGSTER_LOGIN,
    LOGIN,
    LOGINS,
    NIGHT_LOGIN,
    OPERATOR_LOGIN,
    PASSWORDS,
    POLL_S,
    Postmaster,
    Server,
    ServerRecord,
    SystemAccount,
    account_for,
    clear_dead,
    data_directory,
    home_lock,
    home_of,
    log_tail,
    note_on_backup,
    open_log,
    place_for_data,
    postmaster,
    program,
    read_record,
    run_as,
    set_aside,
    shut_down,
    write_private,
    write_record,
)
from nous_online.database.statements import statements

__all__ = [
    "DAGSTER_LOGIN", "LOGIN", "NIGHT_LOGIN", "OPERATOR_LOGIN", "Server", "data_directory", "default_home",
    "embedded_home", "ensure", "live_url", "login_url", "note_on_backup", "record_written_at", "require_started",
    "running", "stop",
]  # fmt: skip

HOST = "127.0.0.1"
USER = "nous"
STARTING = -1  # in place of the postmaster's PID, while its password changes
REFUSED = "password authentication failed"
PORT_ATTEMPTS = 3  # another program may take the free port between our look and the server's bind
CONNECT_S = 3  # for one attempt on the loopback, where an idle server needs 5 ms
SOCKET_BYTES = 100  # of a socket's path: 104 fit on macOS, 108 on Linux

# Written into postgresql.conf once, by initdb, so that an owner may change them there.
SETTINGS = {
    "listen_addresses": HOST,
    "unix_socket_directories": "",  # named at each start: the data directory, where its path is short enough
    "max_connections": "100",
    "shared_buffers": "128MB",
    "fsync": "on",
    "synchronous_commit": "on",
    "jit": "off",  # compiling costs more than our short queries take
    "timezone": "UTC",
    "log_timezone": "UTC",
    # Memories are private, and an error may quote the text that caused it: the client is told, the log is not.
    "log_min_messages": "log",
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
    "log_parameter_max_length": "0",
    "log_parameter_max_length_on_error": "0",
    "log_checkpoints": "off",
}

# One call for the whole file system, as durable as an fsync of each of 1,000 files, and 2 s quicker on a busy disk.
SYNC = "syncfs" if sys.platform == "linux" else "fsync"

BLOCKS = statements("nous_online.database", "postgres.sql")
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Identity:
    """The server that answered on a port; complete when it has the database `nous`."""

    data_directory: str
    version: str
    is_complete: bool


def ensure(home: Path | None = None, *, timeout_s: float = 60.0) -> Server:
    """Return the live server of `home`, started if need be, with a database `nous` that has pgvector.

    Any number of processes may call it at once; the server outlives them all. Raises `DeadlineExceeded` after about
    `timeout_s` seconds, `Unavailable` with the end of server.log when the server cannot run, `InvalidInput` when
    `home` is no directory or NOUS_PG_USER no account.
    """
    place, until = home_of(home), time.monotonic() + timeout_s
    found = _find_live(place)
    if found and found[1].is_complete:
        return found[0]
    make_directory(place)
    with home_lock(place, timeout_s=until - time.monotonic()):
        try:
            return _revive(place, until)
        except subprocess.TimeoutExpired as error:
            raise _late(place, f"{Path(error.cmd[0]).name} took over {error.timeout:.0f} s") from error
        except NousError:
            raise
        except OSError as error:
            raise Unavailable(f"The embedded server of {place} cannot start: {error}. {log_tail(place)}") from error


def live_url(url: str, *, timeout_s: float = 60.0) -> str:
    """Return `url` with the current address of the embedded server that it names; called before every connection.

    Starts a server that died, and waits for one that is starting. Raises `Unavailable` for one that was stopped, and
    what `ensure` raises. A URL of another server is returned as it is.
    """
    place = embedded_home(url)
    if place is None:
        return url
    address, record = conninfo_to_dict(url), require_started(place)
    found = postmaster(record.data) if record else None
    if record and found and _is_settled(place, record, found):
        server = _server(place, record, found)
    else:
        server = ensure(place, timeout_s=timeout_s)
    is_same = (address.get("host"), str(address.get("port"))) == (server.host, str(server.port))
    return url if is_same else make_conninfo(url, host=server.host, port=server.port)


def embedded_home(url: str) -> Path | None:
    """Return the home of the embedded server that a URL names; None for another server."""
    passwords = Path(str(conninfo_to_dict(url).get("passfile", ""))) if PASSWORDS in url else Path()
    return passwords.parent if passwords.name == PASSWORDS else None


def require_started(home: Path) -> ServerRecord | None:
    """Return the record of a home's server; raise `Unavailable` where it was stopped, as one on purpose stays down."""
    record = read_record(home)
    if record and not record.pid:  # `stop` left it so
        raise Unavailable(f"The embedded server of {home} was stopped; start it: `nous up`")
    return record


def record_written_at(home: Path) -> int | None:
    """Return when the record of a home's server was last written, in nanoseconds; None where there is none."""
    try:
        return (home / "server.json").stat().st_mtime_ns
    except OSError:
        return None


def login_url(url: str, login: str) -> str:
    """Return `url` with the user `login` where it names the owner of the embedded server; others as they are."""
    # A superuser that only sets the role of an agent could reset it, and so could an injected statement.
    if PASSWORDS not in url:
        return url
    address = conninfo_to_dict(url)
    is_owner = address.get("user") == USER and not address.get("password")
    return make_conninfo(url, user=login) if is_owner else url


def _is_settled(place: Path, record: ServerRecord, found: Postmaster) -> bool:
    """Tell whether a live postmaster is the one that server.json was written for, with the password in it set."""
    is_same = bool(found.port) and found.pid == record.pid and not record.next_password
    return is_same and record.has_logins and (place / PASSWORDS).exists()


def running(home: Path | None = None) -> Server | None:
    """Return the server of `home` if it answers and serves the data of `home`; never starts one."""
    found = _find_live(home_of(home))
    return found[0] if found else None


def stop(home: Path | None = None, *, timeout_s: float = 30.0) -> bool:
    """Stop the server of `home`, ending its sessions; return whether one was running.

    Raises `DeadlineExceeded` when it has not ended after `timeout_s` seconds; it goes on ending by itself.
    """
    place, until = home_of(home), time.monotonic() + timeout_s
    if read_record(place) is None:
        return False
    with home_lock(place, timeout_s=timeout_s):
        record = read_record(place)
        if record is None:
            return False
        write_record(place, replace(record, pid=0))  # so that no open database starts it again, even if it had died
        if postmaster(record.data) is None:
            return False
        if not shut_down(record.data, timeout_s=until - time.monotonic()):
            raise _late(place, f"it had not ended after {timeout_s:.0f} s")
        return True


def _find_live(place: Path) -> tuple[Server, Identity] | None:
    """Return the server of a home and who answered, without lock or new process; None unless it is ready."""
    record = read_record(place)
    found = postmaster(record.data) if record else None
    if not record or not found or not _is_settled(place, record, found):
        return None
    try:
        return _identify(place, record, found)
    except psycopg.OperationalError:
        return None


def _revive(place: Path, until: float) -> Server:
    """Return the live server of a home, from whatever state an earlier process left; call it under the lock."""
    tighten(place)
    record = read_record(place) or _new_cluster(place, until)
    account = account_for(place, record.data)
    if not (record.data / "PG_VERSION").exists():
        raise Unavailable(
            f"{place / 'server.json'} says that the data is in {record.data}, where there is none: mount or restore "
            "it, or move server.json away to begin with an empty database."
        )
    server = _answering(place, record, until)
    if server is None:
        clear_dead(record.data)  # PostgreSQL could take what a dead postmaster left for a live one
        require_reach(place)
        _start(place, record, account, until)
        server = _answering(place, record, until)
    if server is None:
        raise Unavailable(f"The server of {place} ended while starting. {log_tail(place)}")
    is_started = server.pid != record.pid
    record = replace(record, port=server.port, password=server.password, next_password="", pid=server.pid)
    if is_started or not record.has_logins:
        record = _with_new_passwords(server, record)
    write_record(place, record, version=server.version)
    return replace(server, password=record.password)


def _with_new_passwords(server: Server, record: ServerRecord) -> ServerRecord:
    """Set new passwords on a server that has just started, in one transaction, and return the record with them."""
    new, logins = secrets.token_urlsafe(24), {user: secrets.token_urlsafe(24) for user in LOGINS}
    # The owner's new password is recorded beside the old one before it is set: after a crash in between, one of them
    # holds. Other processes wait meanwhile, because the record names no postmaster.
    both = replace(record, next_password=new)
    write_record(server.home, replace(both, pid=STARTING))
    try:
        with _connection(server, "postgres") as connection, connection.transaction():
            connection.execute(BLOCKS["create_logins"])
            for user, password in {**logins, server.user: new}.items():
                # Hashed here, so that the server's log can never hold it.
                scram = connection.pgconn.encrypt_password(password.encode(), user.encode(), b"scram-sha-256").decode()
                change = SQL(BLOCKS["set_password"]).format(user=Identifier(user), password=Literal(scram))
                connection.execute(change)
    except psycopg.Error as error:
        logger.warning("the embedded server of %s keeps its password: %s", server.home, str(error).strip())
        return both
    return replace(record, password=new, login_passwords=logins)


def require_reach(home: Path) -> None:
    """Raise `Unavailable` when root has closed a home to the account its server runs as; such a server fails soon."""
    data = data_directory(home)
    account = account_for(home, data)
    if account and data.exists() and not account.reaches(data):
        raise Unavailable(
            f"PostgreSQL's account {account.name} can't enter {data}, so its server can't go on: chmod go+x "
            f"{shlex.quote(str(home))} (and the folders above it)"
        )


def _new_cluster(place: Path, until: float) -> ServerRecord:
    """Create the data directory; until server.json is written it counts as incomplete."""
    account = account_for(place, place / "pgdata")
    data = place_for_data(place, account)
    make_directory(data.parent)
    if account and not account.reaches(data.parent):
        raise Unavailable(
            f"PostgreSQL's account {account.name} can enter neither {place} nor {data.parent}: name a home that it can "
            "enter (NOUS_HOME), or an account that can enter this one (NOUS_PG_USER)."
        )
    shut_down(data, timeout_s=min(10.0, until - time.monotonic()))
    clear_dead(data)
    if aside := set_aside(data):
        logger.warning("%s had no server.json, so it was half-made; kept as %s", data, aside)
    password = secrets.token_urlsafe(24)
    note = data.with_name("initdb.password")
    data.mkdir(mode=0o700, exist_ok=True)
    try:
        write_private(note, password)
        if account:
            for path in (data, note):
                os.chown(path, account.uid, account.gid, follow_symlinks=False)
        settings = {**SETTINGS, "recovery_init_sync_method": SYNC}
        options = [f"--sync-method={SYNC}", *(f"--set={name}={value}" for name, value in settings.items())]
        command = [
            program("initdb", account=account),
            *("-D", str(data), "-U", USER, "-A", "scram-sha-256", f"--pwfile={note}", "-E", "UTF8"),
            *("--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8", *options),
        ]
        _run_logged(place, data, command, account=account, until=until)
    finally:
        note.unlink(missing_ok=True)
    return ServerRecord(data, 0, USER, password)


def _start(place: Path, record: ServerRecord, account: SystemAccount | None, until: float) -> None:
    """Start the server on the port last used, or else on another one; return as well if another process started it."""
    pg_ctl = program("pg_ctl", account=account)
    # The socket goes into the data directory, which nobody else can enter, unless the path is too long for a socket or
    # has a comma, which separates directories in PostgreSQL's setting.
    path = os.fsencode(record.data / ".s.PGSQL.65535")
    may_hold_socket = hasattr(socket, "AF_UNIX") and len(path) <= SOCKET_BYTES and b"," not in path
    folder = record.data if may_hold_socket else ""
    for attempt in range(PORT_ATTEMPTS):
        port = _free_port(0 if attempt else record.port)
        seconds = max(1, int(until - time.monotonic()))
        options = f'-p {port} -k "{folder}"'
        command = [pg_ctl, "start", "-s", "-w", "-t", str(seconds), "-D", str(record.data), "-o", options]
        try:
            _run_logged(place, record.data, command, account=account, until=until + 1)
        except Unavailable as error:
            if postmaster(record.data):
                return
            if "could not bind" not in str(error) or attempt == PORT_ATTEMPTS - 1:
                raise
        else:
            return


def _run_logged(place: Path, data: Path, command: list[str], *, account: SystemAccount | None, until: float) -> None:
    """Run one of PostgreSQL's programs with its output in server.log; raise `Unavailable` that quotes it."""
    with open_log(place) as log:
        since = log.tell()
        timeout_s = until - time.monotonic()
        code = run_as(account, command, cwd=data.parent, output=log.fileno(), timeout_s=timeout_s)
    if code:
        name = Path(command[0]).name
        raise Unavailable(f"{name} of {data} failed with code {code}. {log_tail(place, since=since)}")


def _free_port(wanted: int) -> int:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, wanted))
        except OSError:
            probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def _answering(place: Path, record: ServerRecord, until: float) -> Server | None:
    """Wait until the live server accepts connections, and create its database; None when there is none, or it ended."""
    # A server that starts may have to replay its log first; one that stops accepts no connections until it is gone.
    reason = "its postmaster listens nowhere yet"
    while found := postmaster(record.data):
        if time.monotonic() > until:
            raise _late(place, reason)
        try:
            if found.port:
                server, identity = _identify(place, record, found)
                if not identity.is_complete:
                    with _connection(server, "postgres") as connection:
                        connection.execute(BLOCKS["create_database"])
                with _connection(server, "nous") as connection:
                    connection.execute(BLOCKS["create_extension"])
                return server
        except psycopg.OperationalError as error:
            reason = str(error).strip()
            if REFUSED in reason:
                raise Unavailable(
                    f"The server of {place} refuses the password in server.json; restore that file."
                ) from error
        time.sleep(POLL_S)
    return None


def _identify(place: Path, record: ServerRecord, found: Postmaster) -> tuple[Server, Identity]:
    """Connect, and raise `psycopg.OperationalError` unless the server's data directory is ours."""
    server = _server(place, record, found)
    try:
        opened = _connection(server, "postgres")
    except (
        psycopg.OperationalError
    ) as error:  # a process that died while it changed the password left two in the record
        if not record.next_password or REFUSED not in str(error):
            raise
        server = replace(server, password=record.next_password)
        opened = _connection(server, "postgres")
    with opened as connection, connection.cursor(row_factory=class_row(Identity)) as cursor:
        identity = cursor.execute(BLOCKS["identity"]).fetchone()
    if identity is None or Path(identity.data_directory).resolve() != record.data:
        raise psycopg.OperationalError(f"port {found.port} belongs to another server")
    return replace(server, version=identity.version), identity


def _server(place: Path, record: ServerRecord, found: Postmaster) -> Server:
    """Return the address of a live postmaster: its socket if it has one, else its port on the loopback."""
    # Any user of the machine may listen on a port; only ours can create a socket in the data directory.
    host = str(found.socket_folder or HOST)
    return Server(place, host, found.port or 0, record.user, record.password, "", found.pid)


def _connection(server: Server, database: str) -> psycopg.Connection:
    # Named here, these outrank the PG* variables a user may have set for other servers.
    return psycopg.connect(
        server.dsn(database),
        password=server.password,  # the file may not have it yet
        autocommit=True,
        connect_timeout=CONNECT_S,
        sslmode="disable",
        gssencmode="disable",
        options="-c default_transaction_read_only=off",
    )


def _late(place: Path, reason: str) -> DeadlineExceeded:
    return DeadlineExceeded(f"The embedded server of {place} is late: {reason}. {log_tail(place)}")
