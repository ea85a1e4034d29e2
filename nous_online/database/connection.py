"""Connections, transactions, deadlines and errors: code above gets a connection that is bound to one agent."""

from __future__ import annotations

import logging
import os
import re
import selectors
import socket
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from typing import Any, Literal, LiteralString, TypeVar

import psycopg
from pgvector.psycopg.vector import register_vector_info
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import class_row
from psycopg.types import TypeInfo
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from nous_online.core.domain import EmbeddingSpace
from nous_online.core.errors import DeadlineExceeded, InvalidInput, NousError, Refused, Unavailable, Unsupported
from nous_online.core.settings import settings
from nous_online.database import postgres
from nous_online.database.schema import (
    excess_rights,
    is_current,
    lock_schema,
    migrate,
    require_capable,
    require_isolation,
)
from nous_online.database.statements import statements

SQL = statements("nous_online.database", "connection.sql")
V = TypeVar("V")
Role = Literal["nous_app", "nous_night", "nous_purge"]
LOGIN_OF: dict[Role, str] = {
    "nous_app": postgres.LOGIN,
    "nous_night": postgres.NIGHT_LOGIN,
    "nous_purge": postgres.OPERATOR_LOGIN,
}
"""The login user of each role on the embedded server. It can take no other role; the operator's can take all three."""
logger = logging.getLogger(__name__)
SESSION = r"-c timezone=UTC -c plan_cache_mode=force_custom_plan -c default_transaction_isolation=read\ committed"
"""Settings the calls rely on, whatever a database's owner set: under stricter isolation, concurrent calls would fail.
A custom plan knows the agent and the limits of this call; searches, triggers and nights that apply their plan ask for a
generic one (docs/decisions/0007)."""
CONNECT_TIMEOUT_S = 5
PREPARE_S = 60.0  # for the checks when a database is opened
MIGRATE_S = 4 * 3600.0  # a migration may build every vector index anew: about a minute for each 100,000 memories
GRACE_S = 0.2  # the server's own timeout comes first and spares the connection; then the socket is cut
KEEPALIVES = {"keepalives_idle": 60, "keepalives_interval": 10, "keepalives_count": 3}
"""Seconds after which an idle connection whose peer vanished is detected; the watchdog ends one in use."""
RECONNECT_S = 5.0  # then the pool gives up, and the next call makes it try again: it must not sleep through a recovery
TRANSLATIONS: Sequence[tuple[tuple[type[psycopg.Error], ...], type[NousError], str]] = (
    ((PoolClosed,), Unavailable, "this Heart is closed, or the database it was opened on; open another"),
    (
        (PoolTimeout,),
        DeadlineExceeded,
        "no connection became free within {seconds:g} s; raise max_connections, or ask for less at once",
    ),
    (
        (psycopg.errors.QueryCanceled, psycopg.errors.LockNotAvailable),
        DeadlineExceeded,
        "the call did not end within {seconds:g} s; raise deadline_s or ask for less",
    ),
    (
        (psycopg.errors.DiskFull,),
        Unavailable,
        "the database can't be written to: the disk is full, free some space; nothing was stored",
    ),
    (
        (psycopg.errors.ReadOnlySqlTransaction,),
        Unavailable,
        "the database can't be written to: it is read-only, or a standby; nothing was stored",
    ),
    (
        (
            psycopg.errors.UndefinedTable,
            psycopg.errors.UndefinedColumn,
            psycopg.errors.UndefinedFunction,
            psycopg.errors.UndefinedObject,
            psycopg.errors.InvalidSchemaName,
        ),
        Unsupported,
        "the schema is incomplete ({name}); restore it, or run `nous doctor`",
    ),
    (
        (psycopg.errors.InsufficientPrivilege,),
        Refused,
        "the database user may not do this; open the agent as itself, or the database once as its owner",
    ),
    ((psycopg.IntegrityError,), Refused, "a rule of the schema forbids it ({name}); nothing was stored"),
    ((psycopg.DataError,), InvalidInput, "the database can't hold a value ({name}); nothing was stored"),
)
TROUBLES = (
    (("Connection refused", "No such file or directory"), "nothing listens at its address"),
    (("authentication failed", "no password supplied", "authentication method"), "it does not take this password"),
    (("failed to resolve", "could not translate host name"), "nobody knows its host"),
    (("timeout", "timed out"), "it does not answer"),
    (("too many clients", "connection slots"), "all its connections are taken"),
    (("permission denied to set role",), "its user may not act as an agent; open the database once as its owner"),
    (("No space left",), "the disk is full, free some space"),
    (("starting up", "shutting down", "recovery"), "it is starting or ending"),
    (("closed", "reset", "Broken pipe", "terminating"), "the connection was closed"),
)
"""Words of libpq about a failed connection, and ours for them (it has no codes for these); the first match counts."""
ABSENT = (("database ", "it has no such database"), ("role ", "it has no such user"))
FORM = "postgresql://user:password@host:port/database"
BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})|%00")
HOST_AND_PORT = re.compile(r"\A(\[[^\]]*+\]|[^:\[\]]*)(:[0-9]*)?")


class Database:
    """One PostgreSQL database of Nous: prepared once, then a pool of connections bound to a role.

    On the embedded server the login user owns nothing: calls of agents log in as a user who can act as an agent only,
    nights as one who can act as the night only. Opening a database applies missing migrations. Raises `Unavailable`
    when the server can't be reached, `Unsupported` when the server, its pgvector or its schema does not fit, and
    `NotIsolated` when it would not keep agents apart.
    """

    def __init__(self, url: str, *, role: Role = "nous_app", max_connections: int = 8) -> None:
        self.url = url
        self._login_url = postgres.login_url(url, LOGIN_OF[role])
        self._home = postgres.embedded_home(url)
        self._record_written_at: int | None = None
        self._trouble = ""
        options = {
            "application_name": "nous",
            "options": f"-c role={role} {SESSION}",  # in force before the first statement
            **KEEPALIVES,
        }
        self._first: psycopg.Connection | None = prepared_connection(url, role, options)
        self._pool = ConnectionPool(
            self._live_url,
            connection_class=reporting_connection(self._note, self._take_first),
            kwargs={"connect_timeout": CONNECT_TIMEOUT_S, "autocommit": True, **options},
            configure=register_vector_type,
            check=self._refuse_ended,
            reconnect_timeout=RECONNECT_S,
            min_size=0,  # with 1 the pool is still connecting when the first call comes, and connects twice
            max_size=max_connections,
            open=True,
        )
        if role == "nous_app":
            self._check_isolation()

    def _check_isolation(self) -> None:
        """Raise `NotIsolated` if an agent could see or change rows of another.

        Logs a warning where the login user may do more than its role: any injected statement could reset the role.
        """
        try:
            with self.transaction(timeout_s=PREPARE_S) as connection:
                require_isolation(connection)
                if found := excess_rights(connection):
                    logger.warning("%s; docs/roles.md has a login that is nothing but an agent", found)
        except BaseException:
            self.close()
            raise

    def _live_url(self) -> str:
        """Return the URL to connect to; an embedded server that died is started again first."""
        try:
            return postgres.live_url(self._login_url)
        except NousError as error:
            self._note(str(error))
            raise

    def _note(self, trouble: str) -> None:
        """Remember why the last attempt to connect failed; empty after one that succeeded."""
        self._trouble = trouble

    def _take_first(self) -> psycopg.Connection | None:
        """Return the connection that looked whether the database is prepared, once and while it lasts."""
        first, self._first = self._first, None
        if first is not None and was_closed_by_server(first):
            first.close()
            return None
        return first

    def _refuse_ended(self, connection: psycopg.Connection) -> None:
        """Reject a pooled connection that the server closed, and replace the others: it restarted."""
        if was_closed_by_server(connection):
            connection.close()
            self._pool.drain()  # else a call would try each of them, in vain, before it gets a new one
            raise psycopg.OperationalError("the server ended the connection")

    def close(self) -> None:
        """Give the connections back to the server."""
        self._pool.close()
        if first := self._take_first():
            first.close()

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

        With `is_snapshot` it is read-only, and all its queries see the database as of the first one. With
        `is_pipelined` statements are sent without waiting; the wait comes when a result is fetched, and at the end.
        With `keeps_space` the agent can't be moved to another embedding space before it ends.

        Raises `DeadlineExceeded` when time runs out, even if the server no longer answers, and `Unavailable` when the
        connection or the server fails. Nothing was stored then, unless the connection broke during the commit itself
        (use an idempotency key to retry safely).
        """
        ends_at = time.monotonic() + timeout_s
        with driver_errors_translated(timeout_s), self._borrow_connection(timeout_s) as connection:
            left_s = max(ends_at - time.monotonic(), 0.001)  # waiting for the connection took its share
            with (
                watched(connection, left_s + GRACE_S),
                snapshot_isolation(connection, is_snapshot=is_snapshot),
                pipelined(connection) if is_pipelined else connection.transaction(),
            ):
                timeout = f"{int(left_s * 1000) + 1}ms"  # rounded up: a statement_timeout of 0 means none
                call = {"agent_id": agent_id or "", "timeout": timeout, "keeps_space": keeps_space}
                connection.execute(SQL["begin_call"], call)
                yield connection

    def rows(
        self, value: type[V], query: LiteralString | bytes, parameters: Mapping[str, Any], *, timeout_s: float = 60.0
    ) -> list[V]:
        """Return the rows of one query as instances of `value`; raises as `transaction` does."""
        with (
            self.transaction(timeout_s=timeout_s) as connection,
            connection.cursor(row_factory=class_row(value)) as cursor,
        ):
            return cursor.execute(query, parameters).fetchall()

    @contextmanager
    def _borrow_connection(self, timeout_s: float) -> Generator[psycopg.Connection]:
        """Yield a pooled connection; raise `Unavailable` where none can be made, `PoolTimeout` where all are taken."""
        # A server that was stopped is told at once: the pool would try to connect for all of the time. Its record is
        # read where it was written since.
        if self._home is not None and (written_at := postgres.record_written_at(self._home)) != self._record_written_at:
            postgres.require_started(self._home)
            self._record_written_at = written_at
        try:
            with self._pool.connection(timeout=timeout_s) as connection:
                yield connection
        except PoolTimeout as error:
            # The pool only logs why it can't connect; without this the error would ask for a larger pool.
            if self._trouble:
                raise Unavailable(f"can't connect to PostgreSQL: {self._trouble}") from error
            raise


@contextmanager
def operator_database(url: str) -> Generator[Database]:
    """Yield a database for an operator's command: it acts as `nous_purge`, and can take the other roles from there."""
    with closing(Database(url, role="nous_purge", max_connections=1)) as database:
        yield database


def open_url() -> str:
    """Return the URL of the database to use: NOUS_DATABASE_URL, or the embedded server, started if need be."""
    configured = settings().database_url
    return configured.get_secret_value() if configured else postgres.ensure(settings().home).dsn()


def prepare(url: str) -> None:
    """Check the server's versions and apply missing migrations."""
    with as_login(url) as connection:  # the owner logs in only when there is something to migrate
        require_capable(connection)
        if is_current(connection):
            return
    with as_owner(url, seconds=MIGRATE_S) as connection:
        migrate(connection)


def prepared_connection(url: str, role: Role, options: Mapping[str, Any]) -> psycopg.Connection:
    """Return a connection that acts as a role, once the schema is this code's; raise what `prepare` does."""
    try:
        connection = connect(url, role=role, **options)
    except Unavailable as error:
        if role not in str(error.__cause__):  # in the words of whatever language the server speaks
            raise
        prepare(url)  # the role comes with the schema
        return connect(url, role=role, **options)
    try:
        with driver_errors_translated(PREPARE_S), watched(connection, PREPARE_S):
            require_capable(connection)
            if not is_current(connection):
                prepare(url)
    except BaseException:
        connection.close()
        raise
    return connection


def register_space(database: Database, space: EmbeddingSpace, *, is_indexed: bool = True) -> None:
    """Store an embedding space with its vector index, unless it is known; raise `InvalidInput` if its id is taken.

    Before many vectors are stored pass `is_indexed=False`, and index them afterwards: that takes less time.
    """
    with database.transaction(timeout_s=PREPARE_S) as connection:
        found = connection.execute(SQL["find_space"], [space.id]).fetchone()
    if found is None:
        with as_owner(database.url) as connection, connection.transaction():
            lock_schema(connection)  # two processes that open a database together would both create the index
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
    """Yield a connection of the login user of calls, who can read which migrations ran and little else."""
    return as_owner(postgres.login_url(url, postgres.LOGIN), seconds=seconds)


@contextmanager
def as_night(url: str, *, seconds: float = PREPARE_S) -> Generator[psycopg.Connection]:
    """Yield a connection in a transaction of `nous_night`, which sees all agents; it is cut after `seconds`."""
    with (
        driver_errors_translated(seconds),
        connect(url, role="nous_night", seconds=min(seconds, PREPARE_S)) as connection,
        watched(connection, seconds),
        connection.transaction(),
    ):
        act_as(connection, "nous_night")
        yield connection


@contextmanager
def as_owner(url: str, *, seconds: float = PREPARE_S) -> Generator[psycopg.Connection]:
    """Yield a connection of the user in `url`, who owns the schema; it is cut after `seconds`.

    On the embedded server that is its superuser: docs/roles.md lists everything that logs in as such, and why.
    """
    with (
        driver_errors_translated(seconds),
        connect(url, seconds=min(seconds, PREPARE_S)) as connection,
        watched(connection, seconds),
    ):
        yield connection


def act_as(connection: psycopg.Connection, role: Role) -> None:
    """Set the role until the transaction ends."""
    connection.execute(SQL["take_role"], [role])


def connect(url: str, *, role: Role | None = None, seconds: float = PREPARE_S, **options: Any) -> psycopg.Connection:
    """Open one connection, as the login user of `role` or else as the user in `url`; raise `Unavailable` on failure."""
    require_readable(url)
    login = postgres.login_url(url, LOGIN_OF[role]) if role else url
    try:
        # Not in a transaction that psycopg opens by itself, of which ours would be a savepoint.
        return psycopg.connect(
            postgres.live_url(login, timeout_s=seconds), connect_timeout=CONNECT_TIMEOUT_S, autocommit=True, **options
        )
    except (psycopg.OperationalError, psycopg.ProgrammingError) as error:
        message = f"can't connect to PostgreSQL: {connection_failure(error)}; check NOUS_DATABASE_URL, or run `nous up`"
        raise Unavailable(message) from error


def reporting_connection(
    note: Callable[[str], None], made: Callable[[], psycopg.Connection | None]
) -> type[psycopg.Connection]:
    """Return a connection class that first gives what is `made` already, and calls `note` with why it can't connect.

    A pool makes all of its connections itself, and only logs why it can't.
    """

    class ReportingConnection(psycopg.Connection):
        @classmethod
        def connect(cls, conninfo: str = "", **options: Any) -> psycopg.Connection:
            if first := made():
                return first
            try:
                connection = super().connect(conninfo, **options)
            except psycopg.Error as error:
                note(connection_failure(error))
                raise
            note("")
            return connection

    return ReportingConnection


def register_vector_type(connection: psycopg.Connection) -> None:
    """Let a connection read and write vectors; pgvector's own function would look up three more types each time."""
    register_vector_info(connection, TypeInfo.fetch(connection, "vector"))


def was_closed_by_server(connection: psycopg.Connection) -> bool:
    """Tell, without a round trip, whether the server closed an idle connection: then its socket is readable."""
    if connection.closed:
        return True
    with selectors.DefaultSelector() as selector:
        selector.register(connection.fileno(), selectors.EVENT_READ)
        return bool(selector.select(0))


@contextmanager
def snapshot_isolation(connection: psycopg.Connection, *, is_snapshot: bool) -> Generator[None]:
    """Make the transactions of this block REPEATABLE READ and read-only when `is_snapshot`."""
    if not is_snapshot:
        yield
        return
    connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    connection.read_only = True
    try:
        yield
    finally:  # both outlive the transaction, and the connection goes back to the pool
        if not connection.closed:
            connection.isolation_level = None
            connection.read_only = None


@contextmanager
def pipelined(connection: psycopg.Connection) -> Generator[None]:
    """Send the statements of this block, and the commit, without waiting for an answer until one is fetched.

    Where the last statements fail, the server ignores the commit as well, and the pool rolls back.
    """
    # `connection.transaction()` would wait for two more round trips, before and after the commit.
    with connection.pipeline() as pipeline, psycopg.Transaction(connection):
        try:
            yield
        except BaseException:
            # After an error the server ignores everything up to a sync: without one it would not roll back either.
            with suppress(psycopg.Error):
                pipeline.sync()
            raise


# --- errors of the driver as ours: its texts may quote rows, hosts and passwords ---


def connection_failure(error: psycopg.Error) -> str:
    """Return in our words why a connection could not be made or broke."""
    message = str(error)
    for signs, words in TROUBLES:
        if any(sign in message for sign in signs):
            return words
    return next((words for thing, words in ABSENT if thing in message and "does not exist" in message), "it refuses")


@contextmanager
def driver_errors_translated(timeout_s: float) -> Generator[None]:
    """Raise driver errors of this block as ours, with how to fix them; the original stays as `__cause__`."""
    try:
        yield
    except psycopg.Error as error:
        name = type(error).__name__
        if isinstance(error, psycopg.DataError) and "NUL" in str(error):
            name = "a text holds a NUL character"
        elif type(error) is psycopg.errors.IntegrityConstraintViolation:  # the class our own triggers raise
            name = error.diag.message_primary or name
        for raised, ours, template in TRANSLATIONS:
            if isinstance(error, raised):
                raise ours(template.format(name=name, seconds=timeout_s)) from error
        # Only the server sends an SQLSTATE; libpq's own errors have none, and are about the connection.
        why = type(error).__name__ if error.sqlstate else connection_failure(error)
        raise Unavailable(f"the database failed ({why}); nothing was stored unless it was being committed") from error


# --- URLs: checked before libpq reads them, because its message about a bad one quotes the password ---


def require_readable(url: str) -> None:
    """Raise `Unavailable` for a URL that libpq could not read, naming the part that is wrong but never its value."""
    found = url_error(url)
    if found:
        raise Unavailable(
            f"can't connect to PostgreSQL: {found}; mend NOUS_DATABASE_URL, or unset it for the embedded server"
        )


def url_error(url: str) -> str | None:
    """Return what is wrong with a URL, parsed as libpq does; None for a valid one."""
    scheme, is_url, rest = url.partition("://")
    if is_url and scheme not in ("postgresql", "postgres"):
        return "its URL does not begin with postgresql://"
    if is_url and (found := url_part_error(rest)):
        return found
    try:
        conninfo_to_dict(url)
    except psycopg.Error:
        return (
            f"its URL can't be read; it has the form {FORM}, with % and two digits for what is neither letter nor digit"
        )
    return None


def url_part_error(rest: str) -> str | None:
    """Return what is wrong in the part of a URL after `://`; None for a valid one."""
    head, _, tail = rest.partition("/")  # libpq looks for user and password before the first slash
    credentials, has_credentials, hosts = head.partition("@") if "@" in head else ("", "", head)
    if "@" in hosts:
        return "the password in its URL has an @; write it as %40"
    if not has_credentials and "@" in tail.partition("?")[0]:
        return "the password in its URL has a /; write it as %2F"
    user, _, password = credentials.partition(":")
    hosts, _, options = hosts.partition("?")
    database, _, parameters = tail.partition("?")
    parts = {
        "user": user,
        "password": password,
        "host": hosts,
        "database": database,
        "parameters": options + parameters,
    }
    for name, text in parts.items():
        if BAD_ESCAPE.search(text):
            return f"the {name} in its URL has a % without two hexadecimal digits after it; write it as %25"
    if not all(HOST_AND_PORT.fullmatch(host) for host in hosts.split(",")):
        return "the port in its URL is not a number"
    return None


def without_password(text: str, url: str) -> str:
    """Return a text about a valid URL without the password of that URL."""
    parts = conninfo_to_dict(url)
    password = str(parts.pop("password", None) or "")
    # A password that equals the user or the database hides nothing, and cutting it out would garble the text.
    return text if not password or password in map(str, parts.values()) else text.replace(password, "…")


# --- the watchdog: one thread for all deadlines; a timer for each call would cost more than the call's statements ---


class Watch:
    """One deadline: `cut` is called at `ends_at` (of the monotonic clock), and `has_expired` is set then."""

    def __init__(self, ends_at: float, cut: Callable[[], None]) -> None:
        self.ends_at = ends_at
        self.cut = cut
        self.has_expired = False


class Watchdog:
    """Calls a function when a block is not done in time, and never after the block has ended."""

    def __init__(self) -> None:
        self._watches: set[Watch] = set()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._wakes_at = 0.0

    @contextmanager
    def watching(self, seconds: float, cut: Callable[[], None]) -> Generator[Watch]:
        """Call `cut` once if the block takes longer than `seconds`; the watch's `has_expired` tells whether it did."""
        watch = Watch(time.monotonic() + seconds, cut)
        with self._changed:
            self._watches.add(watch)
            if self._thread is None or not self._thread.is_alive():  # it does not survive a fork
                self._wakes_at = watch.ends_at
                self._thread = threading.Thread(target=self._run, name="nous-watchdog", daemon=True)
                self._thread.start()
            elif watch.ends_at < self._wakes_at:  # a later deadline needs no switch of threads
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
    """Shut down the connection's socket when the block is not done in time; raise `DeadlineExceeded` then.

    `statement_timeout` is kept by the server, so a frozen server never fires it; a shutdown wakes the client whatever
    the other side does.
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
