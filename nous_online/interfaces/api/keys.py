"""Keys of the HTTP interface: each names its agent, and only a hash of its secret is kept."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import logging
import re
import secrets
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TextIO

from psycopg import Connection

from nous_online.core.errors import InvalidInput, NotFound, NousError, Refused
from nous_online.core.rights import UNLIMITED, USER_TRUST, Rights
from nous_online.core.validation import ADMINISTRATOR, checked_agent, checked_moment, checked_whole
from nous_online.database.connection import Database
from nous_online.database.statements import fetch, statements

TRAIL = logging.getLogger("nous.audit")
REFUSALS = frozenset({401, 403, 421, 429})
"""Statuses logged as security events: bad key, missing right, wrong Host, rate limit."""


class CurrentStderr(logging.StreamHandler[TextIO]):
    """Writes to what is standard error now: what was it when a server of the process began may be closed."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> TextIO:  # pyright: ignore[reportIncompatibleVariableOverride] (as the handler of last resort)
        """The standard error of this moment."""
        return sys.stderr


SHOWN = CurrentStderr()


def show_trail() -> None:
    """Write each line of the audit trail once to standard error: servers call it. Elsewhere only warnings are shown."""
    TRAIL.addHandler(SHOWN)
    TRAIL.setLevel(logging.INFO)
    TRAIL.propagate = False


def note_call(*, status: int, **fields: Any) -> None:
    """Log a call and its status; a refused one as a security event."""
    note(logging.WARNING if status in REFUSALS else logging.INFO, "call", status=status, **fields)


def note(level: int, event: str, **fields: Any) -> None:
    """Write one JSON line; JSON escapes line breaks in what callers chose, so that nobody can forge a line."""
    if TRAIL.isEnabledFor(level):
        at, name = datetime.now(UTC).isoformat(timespec="milliseconds"), logging.getLevelName(level).lower()
        known = {name: value for name, value in fields.items() if value is not None}
        TRAIL.log(level, "%s", json.dumps({"at": at, "level": name, "event": event, **known}))


# --- keys ---

SQL = statements("nous_online.interfaces.api", "keys.sql")
KEY_PATTERN = re.compile(r"nous_([A-Za-z0-9_-]{2,540})_([0-9a-f]{12})_([A-Za-z0-9_-]{43})", re.ASCII)
SECRET_BYTES = 32
MAX_NAME_CHARACTERS = 200
MOST_REMEMBERED = 10_000
REFUSED_KEY = "send a valid key as `Authorization: Bearer nous_…`; `nous key create` makes one"
NO_LOOKUP = "keys can't be looked up now; the log of the server says why"


@dataclass(frozen=True)
class Key:
    """A key as its owner holds it: agent, id, and the secret, 256 random bits in base64url."""

    agent_id: str
    id: str
    secret: str

    @property
    def text(self) -> str:
        """The key as it is sent: `nous_<agent in base64url>_<id>_<secret>`."""
        agent = base64.urlsafe_b64encode(self.agent_id.encode("utf-8")).decode("ascii").rstrip("=")
        return f"nous_{agent}_{self.id}_{self.secret}"

    @property
    def sha256(self) -> str:
        """The hash that is stored; 256 random bits need no salt and no slow hash."""
        return hashlib.sha256(self.secret.encode("ascii")).hexdigest()


DECOY = Key(ADMINISTRATOR, "0" * 12, "A" * 43)
"""Looked up in place of a text that is not a key, so that both take the same time; `new_key` never gives its id."""


@dataclass(frozen=True)
class KeyRecord:
    """A stored key, without its secret."""

    agent_id: str
    """`*` for an administrator's."""
    id: str
    name: str
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    max_trust: int
    """The highest trust its holder may claim for a source."""
    may_pin: bool
    is_read_only: bool
    last_used_at: datetime | None
    """To the minute; None for one that was never used."""

    @property
    def rights(self) -> Rights:
        return Rights(
            max_trust=self.max_trust,
            may_pin=self.may_pin,
            may_write=not self.is_read_only,
            is_operator=self.agent_id == ADMINISTRATOR,
            holder=f"key {self.id}",
        )


def new_key(agent_id: str) -> Key:
    # `| 1` keeps the id of DECOY, all zeros, out.
    return Key(agent_id, f"{secrets.randbits(48) | 1:012x}", secrets.token_urlsafe(SECRET_BYTES))


def parse_key(text: str) -> Key | None:
    """Return the key in a text, None unless the text is a key in its canonical form."""
    match = KEY_PATTERN.fullmatch(text)
    if match is None:
        return None
    try:
        agent_id = base64.urlsafe_b64decode(f"{match[1]}{'=' * (-len(match[1]) % 4)}").decode("utf-8")
        holder = agent_id if agent_id == ADMINISTRATOR else checked_agent(agent_id)
        key = Key(holder, match[2], match[3])
    except (ValueError, NousError):
        return None
    return key if key.text == text else None  # base64 has spare bits: several texts decode to one name


def store(  # noqa: PLR0913 (one parameter for each column)
    connection: Connection,
    key: Key,
    *,
    name: str = "",
    expires_at: object = None,
    max_trust: int | None = None,
    may_pin: bool = False,
    is_read_only: bool = False,
) -> KeyRecord:
    """Store a new key, without its secret.

    By default an agent's key may claim the trust of a user, an administrator's any; an administrator's may always pin.
    Raises `InvalidInput` for a name that can't be printed, and for a moment in the past.
    """
    if len(name) > MAX_NAME_CHARACTERS or not name.isprintable():
        message = f"the name of a key is at most {MAX_NAME_CHARACTERS} printable characters, got {name[:40]!r}"
        raise InvalidInput(message)
    expiry = checked_moment("expires", expires_at)
    if expiry is not None and expiry <= datetime.now(UTC):
        raise InvalidInput(f"expires {expiry.isoformat()} is over already; name a moment to come")
    is_admin = key.agent_id == ADMINISTRATOR
    default_trust = UNLIMITED.max_trust if is_admin else USER_TRUST
    row = {
        "max_trust": default_trust if max_trust is None else checked_whole("trust", max_trust, least=0, most=100),
        "may_pin": may_pin or is_admin,
        "is_read_only": is_read_only,
        "agent_id": key.agent_id,
        "id": key.id,
        "secret_sha256": key.sha256,
        "name": name,
        "expires_at": expiry,
    }
    return fetch(connection, KeyRecord, SQL["store_key"], row)[0]


def find_valid(connection: Connection, key: Key) -> KeyRecord | None:
    """Return the record of a key, None if it is unknown, revoked or expired, or its secret is wrong.

    The secret is compared in constant time. The time of use is stored once a minute at most.
    """
    named = {"agent_id": key.agent_id, "id": key.id}
    row = connection.execute(SQL["find_key"], named).fetchone()
    # An unknown id is compared too, with the hash of the decoy, so that timing doesn't reveal which ids exist.
    if not hmac.compare_digest(row[0] if row else DECOY.sha256, key.sha256) or row is None:
        return None
    if row[1]:
        connection.execute(SQL["note_use"], named)
    return KeyRecord(*row[2:])


def list_keys(connection: Connection, agent_id: str) -> list[KeyRecord]:
    """Return all keys of an agent, the oldest first, revoked and expired ones included."""
    return fetch(connection, KeyRecord, SQL["list_keys"], {"agent_id": agent_id})


def revoke(connection: Connection, agent_id: str, key_id: str) -> KeyRecord:
    """Revoke a key for good; doing so twice changes nothing. Raises `NotFound`."""
    for record in fetch(connection, KeyRecord, SQL["revoke_key"], {"agent_id": agent_id, "id": key_id}):
        return record
    raise NotFound(f"agent {agent_id!r} has no key {key_id!r}; say whose it is: --agent NAME, or --admin")


def rotate(connection: Connection, agent_id: str, key_id: str) -> tuple[Key, KeyRecord]:
    """Revoke a key and return a new one with the same name, rights and expiry.

    Raises `NotFound` for an unknown key and `Refused` for one that is revoked.
    """
    known = next((each for each in list_keys(connection, agent_id) if each.id == key_id), None)
    if known is not None and known.revoked_at is not None:
        raise Refused(f"key {key_id!r} was revoked at {known.revoked_at}; make a new one with `nous key create`")
    old, new = revoke(connection, agent_id, key_id), new_key(agent_id)
    kept = ("name", "expires_at", "max_trust", "may_pin", "is_read_only")
    return new, store(connection, new, **{name: getattr(old, name) for name in kept})


def digest(text: str) -> bytes:
    """Return the cache key of a key's text: a hash, so that a memory dump holds no keys."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()


class KeyRing:
    """Looks keys up, and caches the valid ones for `memory_s` seconds; safe to share between threads."""

    def __init__(self, database: Callable[..., Database], *, memory_s: float) -> None:
        self._database, self._memory_s = database, memory_s
        self._valid: OrderedDict[bytes, tuple[KeyRecord, float]] = OrderedDict()
        self._lock = threading.Lock()

    def was_valid(self, text: str) -> bool:
        """Return whether a key was valid when it was last looked up, however long ago."""
        return digest(text) in self._valid

    def cached(self, text: str) -> KeyRecord | None:
        """Return the record of a key whose cache entry has not expired."""
        with self._lock:
            record, until = self._valid.get(digest(text), (None, 0.0))
        return record if until > time.monotonic() else None

    def find(self, text: str, *, seconds: float) -> KeyRecord | None:
        return self.cached(text) or self.look_up(text, seconds=seconds)

    def look_up(self, text: str, *, seconds: float) -> KeyRecord | None:
        """Look a key up in the database; None for one that is wrong, expired or revoked.

        A text that is not a key is looked up too, so that it takes as long.
        """
        parsed_key = parse_key(text)
        key = parsed_key or DECOY
        # Under the rights of the agent that the text claims: row-level security shows no other agent's keys.
        with self._database(seconds=seconds).transaction(key.agent_id, timeout_s=seconds) as connection:
            record = find_valid(connection, key)
        with self._lock:
            if parsed_key is None or record is None:
                self._valid.pop(digest(text), None)
                return None
            self._valid[digest(text)] = (record, time.monotonic() + self._memory_s)
            while len(self._valid) > MOST_REMEMBERED:
                self._valid.popitem(last=False)
        return record
