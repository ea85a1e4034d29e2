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
from typing import Any, Literal, LiteralString, Self, TypeVar

import psycopg
from pgvector.psycopg import register_vector
from psycopg.rows import class_row
from psycopg_pool import ConnectionPool, PoolTimeout

from nous_online.core.domain import EmbeddingSpace
from nous_online.core.errors import DeadlineExceeded, InvalidInput, NousError, Unavailable
from nous_online.core.settings import settings
from nous_online.database import postgres
from nous_online.database.driver_errors import require_readable, translated, trouble_of
from nous_online.database.migrations import is_current, lock, migrate
from nous_online.database.requirements import powers, require_capable, require_isolation
from nous_online.database.statements import statements

V = TypeVar("V")
Role = Literal["nous_app", "nous_night", "nous_purge"]
LOGIN_OF: dict[Role, str] = {
    "nous_app": postgres.LOGIN,
    "nous_night": postgres.NIGHT_LOGIN,
    "nous_purge": postgres.OPERATOR_LOGIN,
}
"""Who logs in to the embedded server to take a role. It may become nothing more; the operator's may take all three."""
logger = logging.getLogger(__name__)
SQL = statements("nous_online.database", "connection.sql")
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
            configure=register_vector,
            check=self._refuse_ended,
            reconnect_timeout=RECONNECT_S,
            min_size=1,
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
