"""Keys of the HTTP interface: each names its agent, and only a hash of its secret is kept."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime

from psycopg import Connection
from psycopg.rows import class_row

from nous_online.errors import InvalidInput, NotFound, NousError
from nous_online.statements import statements
from nous_online.validation import ADMINISTRATOR, checked_agent, checked_moment

SQL = statements("nous_online.api", "keys.sql")
WRITTEN = re.compile(r"nous_([A-Za-z0-9_-]{2,540})_([0-9a-f]{12})_([A-Za-z0-9_-]{43})", re.ASCII)
SECRET_BYTES = 32
MAX_NAME_CHARACTERS = 200


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


def store(connection: Connection, key: Key, *, name: str = "", expires_at: object = None) -> KeyRecord:
    """Keep a new key, without its secret."""
    row = {
        "agent_id": key.agent_id,
        "id": key.id,
        "secret_sha256": key.sha256,
        "name": checked_name(name),
        "expires_at": checked_expiry(expires_at, now=datetime.now(UTC)),
    }
    with connection.cursor(row_factory=class_row(KeyRecord)) as cursor:
        return cursor.execute(SQL["store_key"], row).fetchall()[0]


def is_good(connection: Connection, key: Key) -> bool:
    """Tell whether a key is known, not revoked and not expired; the secret is compared in constant time."""
    row = connection.execute(SQL["find_secret"], {"agent_id": key.agent_id, "id": key.id}).fetchone()
    return hmac.compare_digest(row[0] if row else DECOY.sha256, key.sha256) and row is not None


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
