"""Keys of the HTTP interface: each names its agent, and only a hash of its secret is kept."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import logging
import re
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from psycopg import Connection
from psycopg.rows import class_row

from nous_online.core.errors import InvalidInput, NotFound, NousError, Refused
from nous_online.core.rights import UNLIMITED, USER_TRUST, Rights
from nous_online.core.validation import ADMINISTRATOR, checked_agent, checked_moment, checked_whole
from nous_online.database.connection import Database
from nous_online.database.statements import statements

TRAIL = logging.getLogger("nous.audit")
REFUSALS = frozenset({401, 403, 421, 429})
"""Answers that are events of security: a key that is wrong or may not, a page that was led here, one call too many."""


def show_trail() -> None:
    """Show every line on standard error: called by what serves. Elsewhere only events of security are shown."""
    TRAIL.addHandler(logging.StreamHandler())
    TRAIL.setLevel(logging.INFO)
    TRAIL.propagate = False


def note_call(*, status: int, **told: Any) -> None:
    """Note a call and how it was answered; one that was refused as an event of security."""
    note(logging.WARNING if status in REFUSALS else logging.INFO, "call", status=status, **told)


def note_event(event: str, **told: Any) -> None:
    """Note an event of security, such as a key that was made."""
    note(logging.WARNING, event, **told)


def note(level: int, event: str, **told: Any) -> None:
    """Write one line; what callers chose stands in it escaped, so that nobody adds lines of their own."""
    if TRAIL.isEnabledFor(level):
        at, name = datetime.now(UTC).isoformat(timespec="milliseconds"), logging.getLevelName(level).lower()
        known = {name: value for name, value in told.items() if value is not None}
        TRAIL.log(level, "%s", json.dumps({"at": at, "level": name, "event": event, **known}))


# --- keys ---

SQL = statements("nous_online.interfaces.api", "keys.sql")
WRITTEN = re.compile(r"nous_([A-Za-z0-9_-]{2,540})_([0-9a-f]{12})_([A-Za-z0-9_-]{43})", re.ASCII)
SECRET_BYTES = 32
MAX_NAME_CHARACTERS = 200
MOST_REMEMBERED = 10_000
REFUSED_KEY = "send a valid key as `Authorization: Bearer nous_…`; `nous key create` makes one"
NO_LOOKUP = "keys can't be looked up now; the log of the server says why"


@dataclass(frozen=True)
class Key:
    """A key as its owner holds it: whose it is, which one, and the secret, 256 random bits."""

    agent_id: str
    id: str
    secret: str

    @property
    def text(self) -> str:
        """The key as it is sent: `nous_<agent in base64url>_<id>_<secret>`."""
        return f"nous_{encoded(self.agent_id)}_{self.id}_{self.secret}"

    @property
    def sha256(self) -> str:
        """What is kept of the secret: it has 256 random bits, so that no salt or slow hash is needed."""
        return hashlib.sha256(self.secret.encode("ascii")).hexdigest()


DECOY = Key(ADMINISTRATOR, "0" * 12, "A" * 43)
"""Looked up for what is no key at all, so that it takes as long as one that is merely wrong; its id is never given."""


@dataclass(frozen=True)
class KeyRecord:
    """What is known of a key without its secret."""

    agent_id: str
    """`*` for an administrator's."""
    id: str
    name: str
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    max_trust: int
    """The most its holder may claim for what it says."""
    may_pin: bool
    is_read_only: bool
    last_used_at: datetime | None
    """To the hour; None for one that was never used."""

    @property
    def rights(self) -> Rights:
        """How far whoever holds it is believed."""
        return Rights(
            max_trust=self.max_trust,
            may_pin=self.may_pin,
            may_write=not self.is_read_only,
            is_operator=self.agent_id == ADMINISTRATOR,
            holder=f"key {self.id}",
        )


def drawn(agent_id: str) -> Key:
    """Return a new key of an agent."""
    return Key(agent_id, f"{secrets.randbits(48) | 1:012x}", secrets.token_urlsafe(SECRET_BYTES))


def parsed(text: str) -> Key | None:
    """Return the key a text writes, None when it writes none: there is one way only to write each."""
    found = WRITTEN.fullmatch(text)
    if found is None:
        return None
    try:
        agent_id = base64.urlsafe_b64decode(f"{found[1]}{'=' * (-len(found[1]) % 4)}").decode("utf-8")
        key = Key(checked_holder(agent_id), found[2], found[3])
    except (ValueError, NousError):
        return None
    return key if key.text == text else None


def encoded(agent_id: str) -> str:
    """Return a name in base64url without padding (RFC 4648, section 5)."""
    return base64.urlsafe_b64encode(agent_id.encode("utf-8")).decode("ascii").rstrip("=")


def checked_holder(value: object) -> str:
    """Return whose a key may be: an agent's, or `*`, an administrator's."""
    return ADMINISTRATOR if value == ADMINISTRATOR else checked_agent(value)


def checked_expiry(value: object, *, now: datetime) -> datetime | None:
    """Return when a key ends, None for never; raise `InvalidInput` for a moment that is over."""
    expires_at = checked_moment("expires", value)
    if expires_at is not None and expires_at <= now:
        raise InvalidInput(f"expires {expires_at.isoformat()} is over already; name a moment to come")
    return expires_at


def checked_name(value: str) -> str:
    """Return what a key is called."""
    if len(value) > MAX_NAME_CHARACTERS or not value.isprintable():
        raise InvalidInput(
            f"the name of a key is at most {MAX_NAME_CHARACTERS} printable characters, got {value[:40]!r}"
        )
    return value


def store(  # noqa: PLR0913 (one parameter for each thing that is settled when a key is made)
    connection: Connection,
    key: Key,
    *,
    name: str = "",
    expires_at: object = None,
    max_trust: int | None = None,
    may_pin: bool = False,
    is_read_only: bool = False,
) -> KeyRecord:
    """Keep a new key, without its secret.

    Unless told, an agent's may claim what a user may, an administrator's all; an administrator's may pin in any case.
    """
    is_admin = key.agent_id == ADMINISTRATOR
    usual = UNLIMITED.max_trust if is_admin else USER_TRUST
    row = {
        "max_trust": usual if max_trust is None else checked_whole("trust", max_trust, least=0, most=100),
        "may_pin": may_pin or is_admin,
        "is_read_only": is_read_only,
        "agent_id": key.agent_id,
        "id": key.id,
        "secret_sha256": key.sha256,
        "name": checked_name(name),
        "expires_at": checked_expiry(expires_at, now=datetime.now(UTC)),
    }
    with connection.cursor(row_factory=class_row(KeyRecord)) as cursor:
        return cursor.execute(SQL["store_key"], row).fetchall()[0]


def found(connection: Connection, key: Key) -> KeyRecord | None:
    """Return what is known of a key, None unless it is known, not revoked and not expired.

    The secret is compared in constant time. That it was used is noted once an hour.
    """
    named = {"agent_id": key.agent_id, "id": key.id}
    row = connection.execute(SQL["find_key"], named).fetchone()
    if not hmac.compare_digest(row[0] if row else DECOY.sha256, key.sha256) or row is None:
        return None
    if row[1]:
        connection.execute(SQL["note_use"], named)
    return KeyRecord(*row[2:])


def listed(connection: Connection, agent_id: str) -> list[KeyRecord]:
    """Return the keys of an agent, the oldest first, those that are good no longer included."""
    with connection.cursor(row_factory=class_row(KeyRecord)) as cursor:
        return cursor.execute(SQL["list_keys"], {"agent_id": agent_id}).fetchall()


def revoke(connection: Connection, agent_id: str, key_id: str) -> KeyRecord:
    """Make a key worthless for good; doing so twice changes nothing. Raises `NotFound`."""
    with connection.cursor(row_factory=class_row(KeyRecord)) as cursor:
        found = cursor.execute(SQL["revoke_key"], {"agent_id": agent_id, "id": key_id}).fetchone()
    if found is None:
        raise NotFound(f"agent {agent_id!r} has no key {key_id!r}; `nous key list` names them")
    return found


def rotate(connection: Connection, agent_id: str, key_id: str) -> tuple[Key, KeyRecord]:
    """Put a new key in the place of a good one, of the same name, rights and end; the old one is worthless from now on.

    Raises `NotFound` for an unknown key and `Refused` for one that is revoked.
    """
    known = next((each for each in listed(connection, agent_id) if each.id == key_id), None)
    if known is not None and known.revoked_at is not None:
        raise Refused(f"key {key_id!r} was revoked at {known.revoked_at}; make a new one with `nous key create`")
    old, new = revoke(connection, agent_id, key_id), drawn(agent_id)
    record = store(
        connection,
        new,
        name=old.name,
        expires_at=old.expires_at,
        max_trust=old.max_trust,
        may_pin=old.may_pin,
        is_read_only=old.is_read_only,
    )
    return new, record


def digest(text: str) -> bytes:
    """Return under what a key is remembered: nobody finds keys in a memory dump."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()


class KeyRing:
    """Looks keys up, and remembers the good ones for a moment; safe to share between threads."""

    def __init__(self, database: Callable[..., Database], *, memory_s: float) -> None:
        self._database, self._memory_s = database, memory_s
        self._good: OrderedDict[bytes, tuple[KeyRecord, float]] = OrderedDict()
        self._lock = threading.Lock()

    def was_good(self, text: str) -> bool:
        """Tell whether a key was good when it was last looked up, however long ago."""
        return digest(text) in self._good

    def remembered(self, text: str) -> KeyRecord | None:
        """Return what is known of a key that was good a moment ago."""
        with self._lock:
            record, until = self._good.get(digest(text), (None, 0.0))
        return record if until > time.monotonic() else None

    def find(self, text: str, *, seconds: float) -> KeyRecord | None:
        """Return what is known of a key, looked up unless that was done a moment ago; raises as `look_up` does."""
        return self.remembered(text) or self.look_up(text, seconds=seconds)

    def look_up(self, text: str, *, seconds: float) -> KeyRecord | None:
        """Look a key up under the rights of the agent it names; None for one that is wrong, expired or revoked.

        What is no key is looked up too, to take as long.
        """
        parsed_key = parsed(text)
        key = parsed_key or DECOY
        with self._database(seconds=seconds).transaction(key.agent_id, timeout_s=seconds) as connection:
            record = found(connection, key)
        with self._lock:
            if parsed_key is None or record is None:
                self._good.pop(digest(text), None)
                return None
            self._good[digest(text)] = (record, time.monotonic() + self._memory_s)
            while len(self._good) > MOST_REMEMBERED:
                self._good.popitem(last=False)
        return record
