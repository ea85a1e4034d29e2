"""Importing histories: files of any format and size, streamed, resumable, what is bad in them told by its place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from typing import TypeAlias
from uuid import UUID

import psycopg

from nous_online.core.domain import NewFact
from nous_online.core.errors import Conflict, InvalidInput, NousError
from nous_online.core.policy import MAX_RECALL_LIMIT
from nous_online.core.validation import checked_agent
from nous_online.database.statements import statements
from nous_online.heart import Heart
from nous_online.interfaces.imports.formats import AUTO, FILES_PASSED_OVER, FORMATS, SourceFile, sources_of
from nous_online.interfaces.imports.import_files import ImportItem, Occurrences, ReaderState, occurrences
from nous_online.interfaces.imports.records import Entry, ImportedRecord, ReplayedRecall, entries_of, memory_key
from nous_online.memories import episodes, facts, store
from nous_online.memories.episodes import NewEpisode
from nous_online.recall.recall import refresh_statistics


@dataclass(frozen=True)
class LineNote:
    """What was wrong with one record of a file."""

    number: int
    message: str
    file: str = ""
    """The file's name, where several were imported."""
    unit: str = "line"
    """What is counted in it: lines, conversations, memories."""

    @property
    def place(self) -> str:
        """Where it stands, in words."""
        return f"{self.file} {self.unit} {self.number}".strip()


@dataclass(frozen=True)
class ImportReport:
    """What an import did; `stored`, `episodes` and `already_known` count memories, of which a record may hold many."""

    source: str
    lines: int
    """How many lines, or conversations or memories where those are what a file holds."""
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
    files: int = 1
    is_dry_run: bool = False
    """Whether nothing was stored: the counts say what would have been."""
    of_users: tuple[tuple[str, int], ...] = ()
    """Whose memories they are, where they belong to users, and how many: recall finds these for that user alone."""
    examples: tuple[str, ...] = ()
    """Of a dry run: the first ten, a line each."""

    @property
    def is_resumed(self) -> bool:
        """Whether an earlier run had already stored some of it."""
        return self.already_known > 0

    @property
    def is_useful(self) -> bool:
        """Whether anything in the file was good."""
        return bool(self.stored or self.episodes or self.recalls_replayed or self.already_known)


@dataclass(frozen=True)
class ImportProgress:
    """How far an import has come; everything up to `lines` is stored."""

    lines: int
    bytes_read: int
    total_bytes: int
    stored: int
    already_known: int
    bad_count: int


SQL = statements("nous_online.interfaces.imports", "importing.sql")
USUAL_LIMIT = 10
Recalled: TypeAlias = tuple[UUID, set[UUID]]
"""The id of a recall, and its answers."""


@dataclass(frozen=True)
class FeedbackReplay:
    """What a replay did: whether it was the first, and how many of the marked memories were no answer of it."""

    is_new: bool
    missed_count: int


def replay(heart: Heart, recall: ReplayedRecall) -> FeedbackReplay:
    """Ask the question as of its moment, and mark those of its answers that were used or left aside.

    The recall carries its record's key as its session, so that a run that continues finds it; marking twice counts
    once. Raises as `Heart.recall` does.
    """
    session_id = f"import:{sha256(recall.idempotency_key.encode()).hexdigest()}"
    found, marked = known(heart, recall, session_id)
    recall_id, answers = found or ask(heart, recall, session_id)
    for mark, keys in ((heart.cite, recall.cited), (heart.ignore, recall.ignored)):
        if ids := {marked[key] for key in keys if key in marked} & answers:
            mark(recall_id, sorted(ids), at=recall.at)
    return FeedbackReplay(
        is_new=found is None, missed_count=sum(marked.get(key) not in answers for key in recall.marked)
    )


def known(heart: Heart, recall: ReplayedRecall, session_id: str) -> tuple[Recalled | None, dict[str, UUID]]:
    """Return the recall an earlier run made for this record, and which memories its marks are about, by their keys."""
    agent = heart.agent
    key = {"agent_id": agent.id, "at": recall.at, "session_id": session_id}
    with agent.transaction(agent.deadline(None)) as connection:
        row = connection.execute(SQL["find_replayed"], key).fetchone()
        requests = store.find_requests(connection, agent.id, recall.marked)
    found = (row[0], set[UUID](row[1])) if row else None
    return found, {key: request.memory_id for key, request in requests.items()}


def ask(heart: Heart, recall: ReplayedRecall, session_id: str) -> Recalled:
    """Recall, with room for everything that was marked."""
    limit = min(max(USUAL_LIMIT, len(recall.marked)), MAX_RECALL_LIMIT)
    found = heart.recall(
        recall.query, limit=limit, frame=recall.frame, as_of=recall.at, at=recall.at, session_id=session_id
    )
    return found.id, {answer.id for answer in found}


BATCH_SIZE = 64
BATCH_DEADLINE_S = 120.0  # to embed and store a batch of the longest contexts on one busy core
MOST_EXAMPLES, MOST_OF_A_LINE = 10, 150
MAX_REPORTED = 1000  # of the bad lines and of the ignored fields; the rest is counted
USED_BEFORE = "its id was used before for another text; give it an id of its own"
REFUSALS = (Conflict, InvalidInput, psycopg.DataError, psycopg.IntegrityError)


@dataclass(frozen=True)
class Choice:
    """What of a history is taken in, and whether it is only counted."""

    since: datetime | None = None
    """What was said before is left out."""
    is_dry_run: bool = False
    is_over: bool = False
    """The conversations have ended, however lately: nothing waits for more of them."""
    project_id: str | None = None
    """The project of every record that names none."""


@dataclass(frozen=True)
class Pending:
    """Something read from a file and not stored yet; `number` says which of its records held it."""

    number: int
    source: SourceFile
    heart: Heart
    entry: NewFact | NewEpisode


def import_file(
    heart: Heart,
    path: Path | str,
    *,
    source: str | None = None,
    on_progress: Callable[[ImportProgress], None] | None = None,
    batch_size: int = BATCH_SIZE,
) -> ImportReport:
    """Import a JSONL file (docs/import.md) and return what became of its lines; raises as `import_sources` does."""
    sources = [SourceFile(Path(path), FORMATS["jsonl"])]
    return import_sources(heart, sources, source=source, on_progress=on_progress, batch_size=batch_size)


def import_history(
    heart: Heart,
    paths: Sequence[Path],
    *,
    format: str = AUTO,  # noqa: A002 (what it is called on the command line)
    source: str | None = None,
    choice: Choice | None = None,
    on_progress: Callable[[ImportProgress], None] | None = None,
) -> ImportReport:
    """Import files and folders of any known format, told from their content where none is named.

    Raises `InvalidInput` where a file is in no known format, and as `import_sources` does.
    """
    sources, passed_over = sources_of(paths, format)
    left_out = {FILES_PASSED_OVER: passed_over} if passed_over else {}
    return import_sources(heart, sources, source=source, choice=choice, on_progress=on_progress, left_out=left_out)


def import_sources(  # noqa: PLR0913 (what each of its callers may choose)
    heart: Heart,
    sources: Sequence[SourceFile],
    *,
    source: str | None = None,
    choice: Choice | None = None,
    on_progress: Callable[[ImportProgress], None] | None = None,
    batch_size: int = BATCH_SIZE,
    left_out: dict[str, int] | None = None,
) -> ImportReport:
    """Import files one after the other and return what became of their records.

    `source` names the import, by default the format, or for JSONL as the file is called without its ending: the ids in
    a file belong to it, and what is imported again under the same name continues where it stopped and stores nothing
    twice. Bad records are reported, the others kept. Raises `InvalidInput` when a file can't be read, and `Unavailable`
    when the database or the embedder fails midway; the message says how far it came.
    """
    with occurrences() as seen:
        run = ImportRun(
            heart=heart,
            sources=sources,
            named=source,
            seen=seen,
            choice=choice or Choice(),
            batch_size=batch_size,
            on_progress=on_progress or (lambda _: None),
            skipped=dict(left_out or {}),
            total_bytes=sum(size_of(each.path) for each in sources),
        )
        try:
            for each in sources:
                run.read_file(each)
            run.finish()
        except NousError as error:
            raise type(error)(f"{error}; {run.so_far()}") from error
    return run.report()


@dataclass
class ImportRun:
    """One import under way."""

    heart: Heart
    sources: Sequence[SourceFile]
    named: str | None
    seen: Occurrences
    choice: Choice
    batch_size: int
    on_progress: Callable[[ImportProgress], None]
    skipped: dict[str, int]
    total_bytes: int
    began_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    hearts: dict[str, Heart] = field(default_factory=dict[str, Heart])
    pending: list[Pending] = field(default_factory=list[Pending])
    recalls: list[tuple[int, SourceFile, Heart, ReplayedRecall]] = field(
        default_factory=list[tuple[int, SourceFile, Heart, ReplayedRecall]]
    )
    item: ImportItem = field(default_factory=lambda: ImportItem(0, 0))
    lines_before: int = 0
    bytes_before: int = 0
    read_count: int = 0
    stored: int = 0
    episodes: int = 0
    recalls_replayed: int = 0
    already_known: int = 0
    bad_count: int = 0
    bad: list[LineNote] = field(default_factory=list[LineNote])
    ignored_fields: set[str] = field(default_factory=set[str])
    done_lines: int = 0
    of_users: Counter[str] = field(default_factory=Counter[str])
    examples: list[str] = field(default_factory=list[str])

    def read_file(self, source: SourceFile) -> None:
        """Read one file and keep what it holds for the next batches; one of several that can't be read is reported."""
        try:
            for item in source.format.read(source.path, self.reading(source)):
                self.item = item
                self.take(item, source)
        except InvalidInput as error:
            if len(self.sources) == 1:
                raise
            self.note_bad(self.item.number, str(error), source)
        self.lines_before += self.item.number
        self.bytes_before += size_of(source.path)
        self.item = ImportItem(0, 0)

    def reading(self, source: SourceFile) -> ReaderState:
        """Return what the reader of a file goes by."""
        agent, within = self.heart.agent, self.source_of(source)

        def stored_until(name: str) -> datetime | None:
            with agent.transaction(agent.deadline(None)) as connection:
                return episodes.stored_until(connection, agent.id, memory_key(within, name))

        return ReaderState(self.began_at, self.seen, self.choice.is_over, stored_until)

    def take(self, item: ImportItem, source: SourceFile) -> None:
        """Keep what one record of a file holds, and note what is wrong with it or left out of it."""
        for reason, count in item.left_out.items():
            self.note_skipped(reason, count)
        if item.problem:
            self.note_bad(item.number, item.problem, source)
        if item.record is None:
            return
        try:
            heart, entries = self.entries(item, item.record, source)
        except InvalidInput as error:
            self.note_bad(item.number, str(error), source)
            return
        for entry in entries:
            self.keep(entry, heart, item.number, source)
            if len(self.pending) + len(self.recalls) >= self.batch_size:
                self.flush(done_lines=self.lines_before + item.number - (entry is not entries[-1]))

    def keep(self, entry: Entry, heart: Heart, number: int, source: SourceFile) -> None:
        """Keep an entry for the next batch, unless it is older than what was asked for."""
        if self.choice.since and moment_of(entry) < self.choice.since:
            self.note_skipped(f"older than {self.choice.since.isoformat()}")
        elif isinstance(entry, ReplayedRecall):
            self.recalls.append((number, source, heart, entry))
        else:
            self.pending.append(Pending(number, source, heart, entry))

    def entries(self, item: ImportItem, record: ImportedRecord, source: SourceFile) -> tuple[Heart, list[Entry]]:
        """Return whose memories a record holds, and which."""
        within = self.source_of(source)
        heart = self.heart_of(record.agent)
        name = item.name or record.id or self.seen.name(item.text, within=within)
        now = self.began_at + timedelta(microseconds=self.lines_before + item.number + self.read_count)
        if self.choice.project_id and not record.fields.get("project_id"):
            record = replace(record, fields={**record.fields, "project_id": self.choice.project_id})
        entries = entries_of(record, source=within, name=name, now=now, rights=heart.agent.rights)
        self.read_count += len(entries)
        if not entries:
            self.note_skipped("dialogues in which nothing is said")
        if len(self.ignored_fields) < MAX_REPORTED:
            self.ignored_fields |= record.ignored_fields
        return heart, entries

    def source_of(self, source: SourceFile) -> str:
        """Return which import the ids of a file belong to."""
        return self.named or source.format.source_of(source.path)

    def heart_of(self, agent_id: str | None) -> Heart:
        """Return the memory of the agent a line names, not made in a dry run, or of the one the import is for."""
        if agent_id is None or agent_id == self.heart.agent.id:
            return self.heart
        own = self.heart.agent
        if self.choice.is_dry_run:
            return Heart(replace(own, id=checked_agent(agent_id)))
        if agent_id not in self.hearts:
            self.hearts[agent_id] = Heart.open(
                agent_id, database=own.database, embedder=own.embedder, judge=own.judge, policy=own.policy,
                deadline_s=own.deadline_s,
            )  # fmt: skip
        return self.hearts[agent_id]

    def finish(self) -> None:
        """Store what is left, and let recall weigh words by how rare they have become."""
        self.flush(done_lines=self.lines_before)
        for heart in () if self.choice.is_dry_run else (self.heart, *self.hearts.values()):
            with heart.agent.transaction(heart.agent.deadline(BATCH_DEADLINE_S)) as connection:
                refresh_statistics(connection, heart.agent.id)

    def flush(self, *, done_lines: int) -> None:
        """Store what was read so far, which completes the lines up to `done_lines`."""
        by_agent = sorted(self.pending, key=lambda pending: pending.heart.agent.id)
        for _, group in groupby(by_agent, key=lambda pending: pending.heart.agent.id):
            self.store(self.unknown(list(group)))
        for number, source, heart, recall in self.recalls:  # asked as of their moments, so what came later stays unseen
            self.replay(number, source, heart, recall)
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
                self.note_bad(each.number, USED_BEFORE, each.source)
        return fresh

    def store(self, pending: Sequence[Pending]) -> None:
        """Store a batch; where it is refused, halve it until the entry at fault stands alone."""
        if not pending:
            return
        try:
            self.store_at_once(pending)
        except REFUSALS as error:
            if len(pending) == 1:
                self.note_bad(pending[0].number, str(error).strip(), pending[0].source)
                return
            middle = len(pending) // 2
            self.store(pending[:middle])
            self.store(pending[middle:])

    def store_at_once(self, pending: Sequence[Pending]) -> None:
        """Store facts and episodes of one agent."""
        agent = pending[0].heart.agent
        new_facts = [each.entry for each in pending if isinstance(each.entry, NewFact)]
        new_episodes = [each.entry for each in pending if isinstance(each.entry, NewEpisode)]
        if self.choice.is_dry_run:
            self.stored, self.episodes = self.stored + len(new_facts), self.episodes + len(new_episodes)
            room = MOST_EXAMPLES - len(self.examples)
            self.examples += [line_of(entry) for entry in (*new_facts, *new_episodes)][:room]
            self.of_users.update(entry.user_id for entry in (*new_facts, *new_episodes) if entry.user_id)
            return
        if new_facts:
            self.stored += facts.store_deferred(agent, new_facts, agent.deadline(BATCH_DEADLINE_S))
        if new_episodes:
            self.episodes += episodes.store_deferred(agent, new_episodes, agent.deadline(BATCH_DEADLINE_S))
        self.of_users.update(entry.user_id for entry in (*new_facts, *new_episodes) if entry.user_id)

    def replay(self, number: int, source: SourceFile, heart: Heart, recall: ReplayedRecall) -> None:
        """Ask a past question again."""
        if self.choice.is_dry_run:
            self.recalls_replayed += 1
            return
        try:
            done = replay(heart, recall)
        except REFUSALS as error:
            self.note_bad(number, str(error).strip(), source)
            return
        self.recalls_replayed += done.is_new
        self.already_known += not done.is_new
        if done.missed_count:
            self.note_skipped("marked memories that were no answer of the replayed recall", done.missed_count)

    def note_skipped(self, reason: str, count: int = 1) -> None:
        """Count what is left out for a reason."""
        self.skipped[reason] = self.skipped.get(reason, 0) + count

    def note_bad(self, number: int, message: str, source: SourceFile) -> None:
        """Count a bad record and keep its message."""
        self.bad_count += 1
        if len(self.bad) < MAX_REPORTED:
            file = source.path.name if len(self.sources) > 1 else ""
            self.bad.append(LineNote(number, message, file, source.format.unit))

    def progress(self) -> ImportProgress:
        """Return how far the import has come."""
        return ImportProgress(
            lines=self.done_lines,
            bytes_read=min(self.bytes_before + self.item.end, self.total_bytes),
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
            source=", ".join(dict.fromkeys(self.source_of(source) for source in self.sources)),
            lines=self.lines_before,
            stored=self.stored,
            episodes=self.episodes,
            recalls_replayed=self.recalls_replayed,
            already_known=self.already_known,
            bad_count=self.bad_count,
            bad=tuple(sorted(self.bad, key=lambda note: (note.file, note.number))),
            skipped=tuple(sorted(self.skipped.items())),
            ignored_fields=tuple(sorted(self.ignored_fields)),
            files=len(self.sources),
            is_dry_run=self.choice.is_dry_run,
            of_users=tuple(sorted(self.of_users.items())),
            examples=tuple(self.examples),
        )


def line_of(entry: NewFact | NewEpisode) -> str:
    """Return an entry as a line that shows what it will be."""
    text = entry.content if isinstance(entry, NewFact) else entry.change.title or entry.detail
    said_at = entry.learned_at if isinstance(entry, NewFact) else entry.ended_at
    line = " ".join(text.split())
    return f"{said_at:%Y-%m-%d}  {line if len(line) <= MOST_OF_A_LINE else f'{line[:MOST_OF_A_LINE]} …'}"


def size_of(path: Path) -> int:
    """Return the size of a file in bytes; nothing where it is gone."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def moment_of(entry: Entry) -> datetime:
    """Return when what an entry tells of was said, was over, or was asked."""
    if isinstance(entry, ReplayedRecall):
        return entry.at
    return entry.learned_at if isinstance(entry, NewFact) else entry.ended_at


def key_of(entry: NewFact | NewEpisode) -> str:
    """Return the idempotency key of an entry; imported ones always have one."""
    return entry.idempotency_key or ""


def hash_of(entry: NewFact | NewEpisode) -> str:
    """Return the hash of what an entry says."""
    return facts.content_hash(entry) if isinstance(entry, NewFact) else episodes.content_hash(entry)
