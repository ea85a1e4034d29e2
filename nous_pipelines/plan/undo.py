"""Takes back what a night did: another transition, version checked, refused with a reason where others built on it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from uuid import UUID

from psycopg.errors import DeadlockDetected, InsufficientPrivilege, LockNotAvailable, QueryCanceled
from psycopg.rows import class_row

from nous_online.core.errors import InvalidInput, NotFound, NousError, Refused, Unavailable
from nous_online.database.connection import Database
from nous_pipelines.failpoints import reach
from nous_pipelines.plan.apply import CHUNK_SIZE, CHUNK_TIMEOUT_S, forbidden, undeadlocked
from nous_pipelines.plan.apply_chunk import SQL
from nous_pipelines.plan.undo_chunk import AppliedProposal, take_back

PART_TIMEOUT_S = 2.0
"""For a part of a chunk that somebody kept busy, once the whole has waited."""
BUSY = (QueryCanceled, LockNotAvailable, DeadlockDetected)
"""How a transaction ends because of what others are doing to the same rows."""


@dataclass(frozen=True)
class Selection:
    """Which applied proposals to take back; what is None does not narrow."""

    agent_id: str | None = None
    night: date | None = None
    kind: str | None = None
    id: UUID | None = None


@dataclass(frozen=True)
class Undone:
    """Which proposals were taken back, and which not and why."""

    undone: tuple[UUID, ...]
    refused: Mapping[UUID, str]


def undo(database: Database, selection: Selection, *, reason: str, chunk_size: int = CHUNK_SIZE) -> Undone:
    """Take back the selected proposals, the latest night first, some of one agent in each transaction.

    Restores every column they changed. A proposal whose memories were changed since in the same columns is refused,
    and stays applied, as is one that somebody kept busy, and those that are left when the database fails half-way.
    Raises `NotFound` when nothing that is selected is applied, and `Unavailable` when nothing could be taken back.
    """
    undone: list[UUID] = []
    refused: dict[UUID, str] = {}
    chunks = chunks_of(selected(database, selection), chunk_size)
    parts = deque((chunk, CHUNK_TIMEOUT_S) for chunk in chunks)
    while parts:
        part, timeout_s = parts.popleft()
        try:
            faults = undo_chunk(database, part, reason=reason, timeout_s=timeout_s)
        except (Refused, InvalidInput, Unavailable) as error:
            if is_fatal(error):
                if not undone:
                    raise
                left = [each.id for missed in (part, *(rest for rest, _ in parts)) for each in missed]
                return Undone(tuple(undone), refused | dict.fromkeys(left, f"not reached: {error}"))
            if len(part) > 1:
                half, patience_s = len(part) // 2, min(timeout_s, PART_TIMEOUT_S)
                parts.extendleft([(part[half:], patience_s), (part[:half], patience_s)])
                continue
            faults = {part[0].id: told(error)}
        refused |= faults
        undone += [proposal.id for proposal in part if proposal.id not in faults]
        reach("undo committed")
    return Undone(tuple(undone), refused)


def selected(database: Database, selection: Selection) -> list[AppliedProposal]:
    """Return the proposals of a selection that stand applied, in the order to undo them; raise `NotFound` for none."""
    with database.transaction() as connection, connection.cursor(row_factory=class_row(AppliedProposal)) as cursor:
        found = cursor.execute(SQL["applied_proposals"], vars(selection)).fetchall()
    if not found:
        wanted = ", ".join(f"{name}={value}" for name, value in vars(selection).items() if value is not None)
        raise NotFound(f"no applied proposal has {wanted or 'been found'}; `nous diff` shows what each night did")
    return found


def chunks_of(proposals: Iterable[AppliedProposal], size: int) -> Iterator[list[AppliedProposal]]:
    """Yield proposals of one agent and night, at most `size` together, of which no two changed the same memory."""
    chunk: list[AppliedProposal] = []
    changed: set[str] = set()
    for each in proposals:
        is_other = bool(chunk) and (each.agent_id, each.night) != (chunk[-1].agent_id, chunk[-1].night)
        if is_other or len(chunk) == size or changed & each.changed:
            yield chunk
            chunk, changed = [], set()
        chunk.append(each)
        changed |= each.changed
    if chunk:
        yield chunk


def undo_chunk(
    database: Database, proposals: Sequence[AppliedProposal], *, reason: str, timeout_s: float
) -> dict[UUID, str]:
    """Take back proposals of one agent in one transaction, and return why some of them could not be."""

    def attempt() -> dict[UUID, str]:
        with database.transaction(proposals[0].agent_id, timeout_s=timeout_s) as connection:
            return take_back(connection, proposals, reason=reason)

    return undeadlocked(attempt)


def undo_range(database: Database, selection: Selection, nights: Iterable[date], *, reason: str) -> dict[date, Undone]:
    """Take back nights one after the other, to be given newest first, up to one of which something is refused.

    Returns what became of each that had anything to take back. Raises `NotFound` when none had, and `Unavailable`,
    naming the nights that were taken back, when the database fails.
    """
    results: dict[date, Undone] = {}
    missing: NotFound | None = None
    for night in nights:
        try:
            results[night] = undo(database, replace(selection, night=night), reason=reason)
        except NotFound as error:
            missing = missing or error
            continue
        except Unavailable as error:
            done = ", ".join(each.isoformat() for each in results) or "no night"
            raise Unavailable(f"{done} was taken back, then night {night} could not be: {error}") from error
        if results[night].refused:
            break
    if missing is not None and not results:
        raise NotFound(
            "no applied proposal is left of these nights; `nous diff` shows what each night did"
        ) from missing
    return results


def is_fatal(error: NousError) -> bool:
    """Tell whether a transaction failed for another reason than its own rows, and what others are doing to them."""
    if isinstance(error, Unavailable):
        return not isinstance(error.__cause__, BUSY)
    return isinstance(error.__cause__, InsufficientPrivilege)


def told(error: Refused | InvalidInput | Unavailable) -> str:
    """Return why one proposal can't be taken back."""
    if isinstance(error, Unavailable):
        return f"busy: somebody is at work on what it changed ({error}); run it again"
    return forbidden(error)
