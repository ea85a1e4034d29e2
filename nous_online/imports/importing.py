"""Importing histories: a JSONL file of any size, streamed, resumable, its bad lines told by number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import Path

import psycopg

from nous_online import episodes, facts, store
from nous_online.domain import NewFact
from nous_online.episodes import NewEpisode
from nous_online.errors import Conflict, InvalidInput, NousError
from nous_online.heart import Heart
from nous_online.imports.lines import MAX_LINE_BYTES, Line, Occurrences, lines_of, occurrences, opened
from nous_online.imports.recalls import replay
from nous_online.imports.records import Entry, ReplayedRecall, entries_of, parsed_record
from nous_online.recall import refresh_statistics

BATCH_SIZE = 64
BATCH_DEADLINE_S = 120.0  # to embed and store a batch of the longest contexts on one busy core
MAX_REPORTED = 1000  # of the bad lines and of the ignored fields; the rest is counted
REFUSALS = (Conflict, InvalidInput, psycopg.DataError, psycopg.IntegrityError)


@dataclass(frozen=True)
class LineNote:
    """What was wrong with, or left out of, one line."""

    number: int
    message: str


@dataclass(frozen=True)
class ImportReport:
    """What an import did; `stored`, `episodes` and `already_known` count memories, of which a line may hold many."""

    source: str
    lines: int
    stored: int
    episodes: int
    recalls_replayed: int
    already_known: int
    bad_count: int
    bad: tuple[LineNote, ...]
    """The first thousand bad lines."""
    skipped: tuple[tuple[str, int], ...]
    """What was left out although nothing is wrong with it: the reason, and how many."""
    ignored_fields: tuple[str, ...]

    @property
    def is_resumed(self) -> bool:
        """Whether an earlier run had already stored some of it."""
        return self.already_known > 0

    @property
    def is_useful(self) -> bool:
        """Whether anything in the file was good."""
        return bool(self.stored or self.episodes or self.recalls_replayed or self.already_known)


@dataclass(frozen=True)
class Progress:
    """How far an import has come; everything up to `lines` is stored."""

    lines: int
    bytes_read: int
    total_bytes: int
    stored: int
    already_known: int
    bad_count: int


@dataclass(frozen=True)
class Pending:
    """Something read from line `number` and not stored yet."""

    number: int
    heart: Heart
    entry: NewFact | NewEpisode


def import_file(
    heart: Heart,
    path: Path | str,
    *,
    source: str | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    batch_size: int = BATCH_SIZE,
) -> ImportReport:
    """Import a JSONL file (docs/import.md) and return what became of its lines.

    `source` names the import, by default as the file is called without its ending: the ids in the file belong to it,
    and a file imported again under the same name continues where it stopped and stores nothing twice. Bad lines are
    reported, the others kept. Raises `InvalidInput` when the file can't be read, and `Unavailable` when the database
    or the embedder fails midway; the message says how far it came.
    """
    file_path = Path(path)
    with opened(file_path) as file, occurrences() as seen:
        run = ImportRun(
            heart=heart,
            source=source or file_path.name.split(".")[0],
            seen=seen,
            batch_size=batch_size,
            on_progress=on_progress or (lambda _: None),
            total_bytes=file_path.stat().st_size,
        )
        try:
            for line in lines_of(file):
                run.take(line)
            run.finish()
        except NousError as error:
            raise type(error)(f"{error}; {run.so_far()}") from error
    return run.report()


@dataclass
class ImportRun:
    """One import under way."""

    heart: Heart
    source: str
    seen: Occurrences
    batch_size: int
    on_progress: Callable[[Progress], None]
    total_bytes: int
    began_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    hearts: dict[str, Heart] = field(default_factory=dict[str, Heart])
    pending: list[Pending] = field(default_factory=list[Pending])
    recalls: list[tuple[int, Heart, ReplayedRecall]] = field(default_factory=list[tuple[int, Heart, ReplayedRecall]])
    line: Line = field(default_factory=lambda: Line(0, b"", 0))
    read_count: int = 0
    stored: int = 0
    episodes: int = 0
    recalls_replayed: int = 0
    already_known: int = 0
    bad_count: int = 0
    bad: list[LineNote] = field(default_factory=list[LineNote])
    skipped: dict[str, int] = field(default_factory=dict[str, int])
    ignored_fields: set[str] = field(default_factory=set[str])
    done_lines: int = 0

    def take(self, line: Line) -> None:
        """Read one line and keep what it holds for the next batch."""
        self.line = line
        try:
            heart, entries = self.read(line)
        except InvalidInput as error:
            self.note_bad(line.number, str(error))
            return
        for entry in entries:
            if isinstance(entry, ReplayedRecall):
                self.recalls.append((line.number, heart, entry))
            else:
                self.pending.append(Pending(line.number, heart, entry))
            if len(self.pending) + len(self.recalls) >= self.batch_size:
                self.flush(done_lines=line.number - (entry is not entries[-1]))

    def read(self, line: Line) -> tuple[Heart, list[Entry]]:
        """Return whose memories a line holds, and which."""
        if line.text is None:
            raise InvalidInput(f"the line is longer than {MAX_LINE_BYTES:,} bytes; split it into several records")
        if not line.text:
            return self.heart, []
        record = parsed_record(line.text)
        heart = self.heart_of(record.agent)
        name = record.id or self.seen.name(line.text)
        now = self.began_at + timedelta(microseconds=line.number + self.read_count)
        entries = entries_of(record, source=self.source, name=name, now=now)
        self.read_count += len(entries)
        if not entries:
            self.note_skipped("dialogues in which nothing is said")
        if len(self.ignored_fields) < MAX_REPORTED:
            self.ignored_fields |= record.ignored_fields
        return heart, entries

    def heart_of(self, agent_id: str | None) -> Heart:
        """Return the memory of the agent a line names, or of the one the import is for."""
        if agent_id is None or agent_id == self.heart.agent.id:
            return self.heart
        if agent_id not in self.hearts:
            own = self.heart.agent
            self.hearts[agent_id] = Heart.open(
                agent_id, database=own.database, embedder=own.embedder, judge=own.judge, policy=own.policy,
                deadline_s=own.deadline_s,
            )  # fmt: skip
        return self.hearts[agent_id]

    def finish(self) -> None:
        """Store what is left, and let recall weigh words by how rare they have become."""
        self.flush(done_lines=self.line.number)
        for heart in (self.heart, *self.hearts.values()):
            with heart.agent.transaction(heart.agent.deadline(BATCH_DEADLINE_S)) as connection:
                refresh_statistics(connection, heart.agent.id)

    def flush(self, *, done_lines: int) -> None:
        """Store what was read so far, which completes the lines up to `done_lines`."""
        by_agent = sorted(self.pending, key=lambda pending: pending.heart.agent.id)
        for _, group in groupby(by_agent, key=lambda pending: pending.heart.agent.id):
            self.store(self.unknown(list(group)))
        for number, heart, recall in self.recalls:  # asked as of their moments, so what came later stays unseen
            self.replay(number, heart, recall)
        self.pending.clear()
        self.recalls.clear()
        self.done_lines = done_lines
        self.on_progress(self.progress())

    def unknown(self, pending: Sequence[Pending]) -> list[Pending]:
        """Return what is not stored yet, counting what is, and noting ids that came back with another text."""
        agent = pending[0].heart.agent
        with agent.transaction(agent.deadline(None)) as connection:
            requests = store.find_requests(connection, agent.id, [key_of(each.entry) for each in pending])
        hashes = {key: request.content_hash for key, request in requests.items()}
        fresh: list[Pending] = []
        for each in pending:
            key, content_hash = key_of(each.entry), hash_of(each.entry)
            if key not in hashes:
                hashes[key] = content_hash
                fresh.append(each)
            elif hashes[key] == content_hash:
                self.already_known += 1
            else:
                self.note_bad(each.number, "its id was used before for another text; give it an id of its own")
        return fresh

    def store(self, pending: Sequence[Pending]) -> None:
        """Store a batch; where it is refused, halve it until the entry at fault stands alone."""
        if not pending:
            return
        try:
            self.store_at_once(pending)
        except REFUSALS as error:
            if len(pending) == 1:
                self.note_bad(pending[0].number, str(error).strip())
                return
            middle = len(pending) // 2
            self.store(pending[:middle])
            self.store(pending[middle:])

    def store_at_once(self, pending: Sequence[Pending]) -> None:
        """Store facts and episodes of one agent."""
        agent = pending[0].heart.agent
        new_facts = [each.entry for each in pending if isinstance(each.entry, NewFact)]
        new_episodes = [each.entry for each in pending if isinstance(each.entry, NewEpisode)]
        if new_facts:
            self.stored += facts.store_deferred(agent, new_facts, agent.deadline(BATCH_DEADLINE_S))
        if new_episodes:
            self.episodes += episodes.store_deferred(agent, new_episodes, agent.deadline(BATCH_DEADLINE_S))

    def replay(self, number: int, heart: Heart, recall: ReplayedRecall) -> None:
        """Ask a past question again."""
        try:
            done = replay(heart, recall)
        except REFUSALS as error:
            self.note_bad(number, str(error).strip())
            return
        self.recalls_replayed += done.is_new
        self.already_known += not done.is_new
        if done.missed_count:
            self.note_skipped("marked memories that were no answer of the replayed recall", done.missed_count)

    def note_skipped(self, reason: str, count: int = 1) -> None:
        """Count what is left out for a reason."""
        self.skipped[reason] = self.skipped.get(reason, 0) + count

    def note_bad(self, number: int, message: str) -> None:
        """Count a bad line and keep its message."""
        self.bad_count += 1
        if len(self.bad) < MAX_REPORTED:
            self.bad.append(LineNote(number, message))

    def progress(self) -> Progress:
        """Return how far the import has come."""
        return Progress(
            lines=self.done_lines,
            bytes_read=self.line.end,
            total_bytes=self.total_bytes,
            stored=self.stored + self.episodes,
            already_known=self.already_known,
            bad_count=self.bad_count,
        )

    def so_far(self) -> str:
        """Say how far the import has come and how to go on."""
        return (
            f"everything up to line {self.done_lines:,} is stored ({self.stored + self.episodes:,} new memories); "
            "run the same import again and it continues there"
        )

    def report(self) -> ImportReport:
        """Return what the import did."""
        return ImportReport(
            source=self.source,
            lines=self.line.number,
            stored=self.stored,
            episodes=self.episodes,
            recalls_replayed=self.recalls_replayed,
            already_known=self.already_known,
            bad_count=self.bad_count,
            bad=tuple(sorted(self.bad, key=lambda note: note.number)),
            skipped=tuple(sorted(self.skipped.items())),
            ignored_fields=tuple(sorted(self.ignored_fields)),
        )


def key_of(entry: NewFact | NewEpisode) -> str:
    """Return the idempotency key of an entry; imported ones always have one."""
    return entry.idempotency_key or ""


def hash_of(entry: NewFact | NewEpisode) -> str:
    """Return the hash of what an entry says."""
    return facts.content_hash(entry) if isinstance(entry, NewFact) else episodes.content_hash(entry)
