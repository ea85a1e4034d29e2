"""Connections, transactions and deadlines: everything above sees a connection that already speaks for one agent."""

from __future__ import annotations

import logging
import os
import selectors
import socket
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, Literal, LiteralString, Self, TypeVar

import psycopg
from pgvector.psycopg.vector import register_vector_info
from psycopg import Connection
from psycopg.rows import class_row
from psycopg.types import TypeInfo
from psycopg_pool import ConnectionPool, PoolTimeout

from nous_online.core.domain import EmbeddingSpace
from nous_online.core.errors import DeadlineExceeded, InvalidInput, NotIsolated, NousError, Unavailable, Unsupported
from nous_online.core.settings import settings
from nous_online.database import postgres
from nous_online.database.driver_errors import require_readable, translated, trouble_of
from nous_online.database.migrations import is_current, lock, migrate
from nous_online.database.statements import statements

SQL = statements("nous_online.database", "connection.sql")

OLDEST_POSTGRES = 15  # `security_invoker` views and `nulls not distinct` came with it
OLDEST_VECTOR = (0, 8)  # iterative index scans came with it; without them a filtered search loses rows
NEWEST_MINORS = {15: 20, 16: 16, 17: 12, 18: 6}
"""The newest minor of each major that this version knows, as of `KNOWN_ON`: each fixes holes of those before it."""
KNOWN_ON = "2026-08-13"
SAFE_VECTOR = (0, 8, 2)  # fixes CVE-2026-3172
SHOWN = 3  # of what lets agents see each other's rows, in an error


@dataclass(frozen=True)
class Capability:
    """What a server can do for Nous; no version of pgvector is offered where one is installed, or there is none."""

    server_version_num: int
    vector_offered: str | None
    vector_installed: str | None


def require_capable(connection: Connection) -> None:
    """Raise `Unsupported`, with the fix, unless the server is PostgreSQL >= 15 with pgvector >= 0.8."""
    problem = shortcoming(capability(connection))
    if problem:
        raise Unsupported(f"The server at {connection.info.host}:{connection.info.port} will not do: {problem}")


def known_holes(connection: Connection) -> list[str]:
    """Return what of a server has known holes, with the version that closes them."""
    return holes(capability(connection))


def capability(connection: Connection) -> Capability:
    """Ask a server what it can do."""
    with connection.cursor(row_factory=class_row(Capability)) as cursor:
        (found,) = cursor.execute(SQL["capability"]).fetchall()
    if found.vector_installed is None:
        offered = connection.execute(SQL["vector_offered"]).fetchone()
        found = replace(found, vector_offered=offered[0] if offered else None)
    return found


def holes(found: Capability) -> list[str]:
    """Say which parts of a server are older than the fixes this version knows of; pure."""
    major, minor = divmod(found.server_version_num, 10_000)
    told: list[str] = []
    newest = NEWEST_MINORS.get(major, 0)
    if minor < newest:
        told.append(f"PostgreSQL {major}.{minor} lacks the security fixes of {major}.{newest} ({KNOWN_ON})")
    vector = found.vector_installed or found.vector_offered
    if vector and numbers_of(vector, 3) < SAFE_VECTOR:
        told.append(f"pgvector {vector} lacks the fix of CVE-2026-3172 in 0.8.2")
    return told


def shortcoming(found: Capability) -> str | None:
    """Say in one sentence what the server lacks and how to mend it, or None when it lacks nothing."""
    major, minor = divmod(found.server_version_num, 10_000)
    if major < OLDEST_POSTGRES:
        return (
            f"it runs PostgreSQL {major}.{minor}, and Nous needs {OLDEST_POSTGRES} or newer. Upgrade it, or unset "
            "NOUS_DATABASE_URL to use the embedded server."
        )
    version = found.vector_installed or found.vector_offered
    if version is None:
        return (
            f"pgvector is not installed there. Install it (Debian: postgresql-{major}-pgvector; Docker: the image "
            f"pgvector/pgvector), or unset NOUS_DATABASE_URL to use the embedded server."
        )
    if numbers_of(version, 2) >= OLDEST_VECTOR:
        return None
    fix = "Upgrade it on the server's machine"
    if found.vector_installed:
        fix = "Run `alter extension vector update` as its owner"
    return f"it has pgvector {version}, and Nous needs 0.8 or newer. {fix}, after installing pgvector 0.8 or newer."


def numbers_of(version: str, count: int) -> tuple[int, ...]:
    """Return the first numbers of a version."""
    return tuple(int(part) for part in version.split(".")[:count] if part.isdigit())


# --- isolation: asked of the database itself, before the first call of an agent ---


@dataclass(frozen=True)
class Opening:
    """One thing that lets an agent see or change what is another's, and the statement that closes it."""

    opening: str
    fix: str


def find_openings(connection: Connection) -> list[Opening]:
    """Return everything by which the role in force could pass row-level security; none when it holds.

    The connection is in a transaction, whose agent and search path are changed.
    """
    connection.execute(SQL["bind_to_nobody"])
    with connection.cursor(row_factory=class_row(Opening)) as cursor:
        return cursor.execute(SQL["find_openings"]).fetchall()


def require_isolation(connection: Connection) -> None:
    """Raise `NotIsolated` when one agent could see or change what is another's."""
    openings = find_openings(connection)
    if not openings:
        return
    shown = "; ".join(f"{each.opening} (close it: {each.fix})" for each in openings[:SHOWN])
    rest = f"; and {len(openings) - SHOWN} more" if len(openings) > SHOWN else ""
    raise NotIsolated(f"agents are not kept apart here: {shown}{rest}; nothing is served until that is mended")


def powers(connection: Connection) -> str | None:
    """Return what the user who logged in may do beyond being an agent; None when that is nothing."""
    found = connection.execute(SQL["find_powers"]).fetchone()
    return found[0] if found else None


# --- connections ---

V = TypeVar("V")
Role = Literal["nous_app", "nous_night", "nous_purge"]
LOGIN_OF: dict[Role, str] = {
    "nous_app": postgres.LOGIN,
    "nous_night": postgres.NIGHT_LOGIN,
    "nous_purge": postgres.OPERATOR_LOGIN,
}
"""Who logs in to the embedded server to take a role. It may become nothing more; the operator's may take all three."""
logger = logging.getLogger(__name__)
SESSION = r"-c timezone=UTC -c plan_cache_mode=force_custom_plan -c default_transaction_isolation=read\ committed"
"""Settings the calls count on, whatever the owner of a database set: stricter isolation would fail calls that cross."""
CONNECT_TIMEOUT_S = 5
PREPARE_S = 60.0  # for the checks of an opening database
MIGRATE_S = 4 * 3600.0  # a migration may build every vector index anew: about a minute for each 100,000 memories
GRACE_S = 0.2  # the server's own timeout comes first and spares the connection; then the socket is cut
KEEPALIVES = {"keepalives_idle": 60, "keepalives_interval": 10, "keepalives_count": 3}
"""Seconds after which an idle connection whose other end vanished is found out; the watchdog ends one in use."""
RECONNECT_S = 5.0  # then the pool gives up, and the next call makes it try again: it must not sleep through a recovery


class Database:
    """One PostgreSQL database of Nous: prepared once, then a pool of connections bound to a role.

    Whoever logs in to the embedded server owns nothing there: for calls of agents a user who may act as an agent and
    as nobody else, for nights one who may act as the night. Opening a database applies missing migrations. Raises
    `Unavailable` when the server can't be reached, `Unsupported` when it, its pgvector or its schema does not fit, and
    `NotIsolated` when it would not keep agents apart.
    """

    def __init__(self, url: str, *, role: Role = "nous_app", max_connections: int = 8) -> None:
        self.url = url
        self._login_url = postgres.login_url(url, LOGIN_OF[role])
        self._trouble = ""
        prepare(url)
        self._pool = ConnectionPool(
            self._live_url,
            connection_class=noting(self._note),
            kwargs={
                "connect_timeout": CONNECT_TIMEOUT_S,
                "autocommit": True,
                "application_name": "nous",
                "options": f"-c role={role} {SESSION}",
                **KEEPALIVES,
            },
            configure=know_vectors,
            check=self._refuse_ended,
            reconnect_timeout=RECONNECT_S,
            min_size=0,  # with one that is being made already, the first call would have another made
            max_size=max_connections,
            open=True,
        )
        if role == "nous_app":
            self._check_isolation()

    def _check_isolation(self) -> None:
        """Make sure, before the first call, that no agent can see or change what is another's.

        A warning is logged where calls log in as a user who may do more than the role they take, which can be left.
        """
        try:
            with self.transaction(timeout_s=PREPARE_S) as connection:
                require_isolation(connection)
                if found := powers(connection):
                    logger.warning("%s; docs/roles.md has a login that is nothing but an agent", found)
        except BaseException:
            self.close()
            raise

    def _live_url(self) -> str:
        """Return where to connect now; an embedded server that died is started again first."""
        try:
            return postgres.live_url(self._login_url)
        except NousError as error:
            self._note(str(error))
            raise

    def _note(self, trouble: str) -> None:
        """Keep why the last attempt to connect failed; nothing when it did not."""
        self._trouble = trouble

    def _refuse_ended(self, connection: psycopg.Connection) -> None:
        """Renew the whole pool when a connection ended while it lay there: the server restarted."""
        if has_ended(connection):
            connection.close()
            self._pool.drain()
            raise psycopg.OperationalError("the server ended the connection")

    def close(self) -> None:
        """Give the connections back to the server."""
        self._pool.close()

    @contextmanager
    def transaction(
        self,
        agent_id: str | None = None,
        *,
        timeout_s: float = 60.0,
        is_snapshot: bool = False,
        is_pipelined: bool = False,
        keeps_space: bool = False,
    ) -> Generator[psycopg.Connection]:
        """Yield a connection inside a transaction that sees `agent_id` only and ends within `timeout_s`.

        With `is_snapshot` it is read-only, and all its queries see the database as it was at the first one. With
        `is_pipelined` statements are sent as they come, and waited for when a result is fetched and at the end. With
        `keeps_space` the agent is not moved to another embedding space before it ends.

        Raises `DeadlineExceeded` when time runs out, even if the server no longer answers at all, and
        `Unavailable` when the connection or the server fails; the transaction then left nothing behind,
        unless the connection broke during the commit itself (use an idempotency key to retry safely).
        """
        ends_at = time.monotonic() + timeout_s
        with translated(timeout_s), self._borrowed(timeout_s) as connection:
            left_s = max(ends_at - time.monotonic(), 0.001)
            with (
                watched(connection, left_s + GRACE_S),
                isolated(connection, is_snapshot=is_snapshot),
                pipelined(connection) if is_pipelined else connection.transaction(),
            ):
                timeout = f"{int(left_s * 1000) + 1}ms"
                call = {"agent_id": agent_id or "", "timeout": timeout, "keeps_space": keeps_space}
                connection.execute(SQL["begin_call"], call)
                yield connection

    def rows(
        self, value: type[V], query: LiteralString, parameters: Mapping[str, Any], *, timeout_s: float = 60.0
    ) -> list[V]:
        """Return the rows of one query as values of a dataclass; raises as `transaction` does."""
        with (
            self.transaction(timeout_s=timeout_s) as connection,
            connection.cursor(row_factory=class_row(value)) as cursor,
        ):
            return cursor.execute(query, parameters).fetchall()

    @contextmanager
    def _borrowed(self, timeout_s: float) -> Generator[psycopg.Connection]:
        """Yield a connection of the pool; say why there is none, where that is known: more would not help."""
        try:
            with self._pool.connection(timeout=timeout_s) as connection:
                yield connection
        except PoolTimeout as error:
            if self._trouble:
                raise Unavailable(f"can't connect to PostgreSQL: {self._trouble}; nothing was stored") from error
            raise


@contextmanager
def operated(url: str) -> Generator[Database]:
    """Yield a database for an operator's command: it acts as the purge, and may take the other roles from there."""
    with closing(Database(url, role="nous_purge", max_connections=1)) as database:
        yield database


def open_url() -> str:
    """Return the URL of the database to use: NOUS_DATABASE_URL, or the embedded server, started if need be."""
    configured = settings().database_url
    return configured.get_secret_value() if configured else postgres.ensure(settings().home).dsn()


def prepare(url: str) -> None:
    """Check the server and bring its schema up to date, as its owner where that has to be done."""
    with as_login(url) as connection:
        require_capable(connection)
        if is_current(connection):
            return
    with as_owner(url, seconds=MIGRATE_S) as connection:
        migrate(connection)


def register_space(database: Database, space: EmbeddingSpace, *, is_indexed: bool = True) -> None:
    """Make an embedding space known, with the index it needs; raise `InvalidInput` if its id means another one.

    Where many vectors are about to come, the index is better made after them: `is_indexed=False` leaves it out.
    """
    with database.transaction(timeout_s=PREPARE_S) as connection:
        found = connection.execute(SQL["find_space"], [space.id]).fetchone()
    if found is None:
        with as_owner(database.url) as connection, connection.transaction():
            lock(connection)
            connection.execute(SQL["store_space"], vars(space))
            if is_indexed:
                connection.execute(SQL["index_space"], [space.id])
            found = connection.execute(SQL["find_space"], [space.id]).fetchone()
    if found != (space.weights_sha256, space.dimensions):
        message = (
            f"embedding space {space.id!r} is stored with weights and width {found}, but the embedder offers "
            f"{(space.weights_sha256, space.dimensions)}; give the new model a name of its own"
        )
        raise InvalidInput(message)


def as_login(url: str, *, seconds: float = PREPARE_S) -> AbstractContextManager[psycopg.Connection]:
    """Yield a connection of the user that calls log in as, who may read which migrations there were and little else."""
    return as_owner(postgres.login_url(url, postgres.LOGIN), seconds=seconds)


@contextmanager
def as_night(url: str, *, seconds: float = PREPARE_S) -> Generator[psycopg.Connection]:
    """Yield a connection in a transaction that sees all agents, as nights do; errors are ours, and it ends in time."""
    with (
        translated(seconds),
        connected(url, role="nous_night", seconds=min(seconds, PREPARE_S)) as connection,
        watched(connection, seconds),
        connection.transaction(),
    ):
        act_as(connection, "nous_night")
        yield connection


@contextmanager
def as_owner(url: str, *, seconds: float = PREPARE_S) -> Generator[psycopg.Connection]:
    """Yield a connection of the user in `url`, who owns the schema; errors are ours, and it ends in time.

    On the embedded server that is its superuser: docs/roles.md names everything that may log in so, and why.
    """
    with (
        translated(seconds),
        connected(url, seconds=min(seconds, PREPARE_S)) as connection,
        watched(connection, seconds),
    ):
        yield connection


def act_as(connection: psycopg.Connection, role: Role) -> None:
    """Take a role until the transaction ends."""
    connection.execute(SQL["take_role"], [role])


def connected(url: str, *, role: Role | None = None, seconds: float = PREPARE_S) -> psycopg.Connection:
    """Connect once, as who may take `role`, or else as the user in `url`; raise `Unavailable` when that fails."""
    require_readable(url)
    login = postgres.login_url(url, LOGIN_OF[role]) if role else url
    try:
        return psycopg.connect(
            postgres.live_url(login, timeout_s=seconds), connect_timeout=CONNECT_TIMEOUT_S, autocommit=True
        )
    except (psycopg.OperationalError, psycopg.ProgrammingError) as error:
        message = f"can't connect to PostgreSQL: {trouble_of(error)}; check NOUS_DATABASE_URL, or run `nous up`"
        raise Unavailable(message) from error


def noting(note: Callable[[str], None]) -> type[psycopg.Connection]:
    """Return connections that tell `note` why they could not be made, which their pool only logs."""

    class Noted(psycopg.Connection):
        @classmethod
        def connect(cls, conninfo: str = "", **options: Any) -> Self:
            try:
                connection = super().connect(conninfo, **options)
            except psycopg.Error as error:
                note(trouble_of(error))
                raise
            note("")
            return connection

    return Noted


def know_vectors(connection: psycopg.Connection) -> None:
    """Let a connection read and write vectors; pgvector's other types are never fetched."""
    register_vector_info(connection, TypeInfo.fetch(connection, "vector"))


def has_ended(connection: psycopg.Connection) -> bool:
    """Tell, without asking the server, whether it ended an idle connection: then there is something to read."""
    if connection.closed:
        return True
    with selectors.DefaultSelector() as selector:
        selector.register(connection.fileno(), selectors.EVENT_READ)
        return bool(selector.select(0))


@contextmanager
def isolated(connection: psycopg.Connection, *, is_snapshot: bool) -> Generator[None]:
    """Make the transactions of this block REPEATABLE READ and read-only, if asked to."""
    if not is_snapshot:
        yield
        return
    connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    connection.read_only = True
    try:
        yield
    finally:
        if not connection.closed:
            connection.isolation_level = None
            connection.read_only = None


@contextmanager
def pipelined(connection: psycopg.Connection) -> Generator[None]:
    """Send the statements of this block without waiting for their answers until one is fetched, the commit among them.

    `connection.transaction()` would wait twice more, before and after the commit. After an error the server ignores
    what follows up to a sync: without one the transaction could not be rolled back. Where the last statements fail it
    ignores the commit as well, and the pool rolls back what it is given.
    """
    with connection.pipeline() as pipeline, psycopg.Transaction(connection):
        try:
            yield
        except BaseException:
            with suppress(psycopg.Error):
                pipeline.sync()
            raise


# --- the watchdog: one thread that ends what is late, for a timer a call would cost more than the call's statements ---


class Watch:
    """One thing that has to be done by a moment, and whether it was late."""

    def __init__(self, ends_at: float, cut: Callable[[], None]) -> None:
        self.ends_at = ends_at
        self.cut = cut
        self.has_expired = False


class Watchdog:
    """Calls what was left to it when a block is not done in time, and never after the block has ended."""

    def __init__(self) -> None:
        self._watches: set[Watch] = set()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._wakes_at = 0.0

    @contextmanager
    def watching(self, seconds: float, cut: Callable[[], None]) -> Generator[Watch]:
        """Call `cut` once if the block takes longer than `seconds`; the watch says whether it came to that."""
        watch = Watch(time.monotonic() + seconds, cut)
        with self._changed:
            self._watches.add(watch)
            if self._thread is None or not self._thread.is_alive():  # it does not survive a fork
                self._wakes_at = watch.ends_at
                self._thread = threading.Thread(target=self._run, name="nous-watchdog", daemon=True)
                self._thread.start()
            elif watch.ends_at < self._wakes_at:
                self._changed.notify()
        try:
            yield watch
        finally:
            with self._changed:
                self._watches.discard(watch)

    def _run(self) -> None:
        with self._changed:
            while True:
                now = time.monotonic()
                for watch in [watch for watch in self._watches if watch.ends_at <= now]:
                    self._watches.discard(watch)
                    watch.has_expired = True
                    with suppress(Exception):  # a connection that broke by itself; the others still need this thread
                        watch.cut()
                self._wakes_at = min((watch.ends_at for watch in self._watches), default=float("inf"))
                self._changed.wait(None if self._wakes_at == float("inf") else self._wakes_at - now)


WATCHDOG = Watchdog()


@contextmanager
def watched(connection: psycopg.Connection, seconds: float) -> Generator[None]:
    """Cut the connection when the block is not done in time.

    `statement_timeout` is kept by the server, so a frozen server never fires it; shutting the socket down
    wakes the client whatever the other side does.
    """

    def cut() -> None:
        with socket.socket(fileno=os.dup(connection.fileno())) as end:  # a copy: libpq still owns its own
            end.shutdown(socket.SHUT_RDWR)

    with WATCHDOG.watching(seconds, cut) as watch:
        try:
            yield
        except psycopg.OperationalError as error:
            if watch.has_expired:
                message = f"the database did not answer within {seconds:.3f} s and the connection was cut; try again"
                raise DeadlineExceeded(message) from error
            raise
