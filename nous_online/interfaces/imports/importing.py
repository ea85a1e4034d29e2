"""Imports of histories: files of any format and size are streamed and resumable; bad records are reported by place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from uuid import UUID

import psycopg

from nous_online.core.domain import NewFact
from nous_online.core.errors import Conflict, InvalidInput, NousError, Refused
from nous_online.core.policy import MAX_RECALL_LIMIT
from nous_online.core.validation import checked_agent
from nous_online.database.statements import statements
from nous_online.heart import Heart
from nous_online.interfaces.imports.formats import AUTO, FILES_PASSED_OVER, SourceFile, sources_of
from nous_online.interfaces.imports.import_files import HIDDEN_FACTS, NOTHING_SAID, ImportItem, Occurrences, ReaderState
from nous_online.interfaces.imports.records import Entry, ImportedRecord, ReplayedRecall, entries_of, memory_key
from nous_online.memories import episodes, facts, store
from nous_online.memories.episodes import NewEpisode
from nous_online.memories.tombstones import erased_at, key_erased_at
from nous_online.recall.recall import refresh_statistics


@dataclass(frozen=True)
class BadRecord:
    """What is wrong with one record of a file."""

    number: int
    message: str
    file: str = ""
    """The file's name, if several were imported."""
    unit: str = "line"
    """What `number` counts: lines, conversations, memories."""

    @property
    def place(self) -> str:
        return f"{self.file} {self.unit} {self.number}".strip()


@dataclass
class ImportReport:
    """The result of an import; `stored`, `episodes` and `already_known` count memories: a record may hold many."""

    source: str
    files: int = 1
    is_dry_run: bool = False
    """Whether nothing was stored: the counts are those of an import that stores."""
    lines: int = 0
    """How many records: lines, conversations or memories, depending on the format."""
    stored: int = 0
    episodes: int = 0
    recalls_replayed: int = 0
    already_known: int = 0
    erased_before: int = 0
    """How many were left out since they, or everything of their user, had been erased here on request."""
    forgotten_before: list[UUID] = field(default_factory=list[UUID])
    """Memories of the history that were forgotten here, or undone, and stay out of recall."""
    restored: int = 0
    """How many of these were restored, where that was asked for."""
    bad_count: int = 0
    bad: list[BadRecord] = field(default_factory=list[BadRecord])
    """The first thousand bad lines, by file and line."""
    skipped: Counter[str] = field(default_factory=Counter[str])
    """How much was left out although nothing is wrong with it, by reason."""
    hidden: list[str] = field(default_factory=list[str])
    """The first thousand places, file and line, of what was left out since it looks as if it holds a credential."""
    ignored_fields: set[str] = field(default_factory=set[str])
    of_users: Counter[str] = field(default_factory=Counter[str])
    """How many memories belong to each user: recall finds these for that user only."""
    of_projects: Counter[str] = field(default_factory=Counter[str])
    """How many memories belong to each project: recall finds these in that project only."""
    examples: list[str] = field(default_factory=list[str])
    """The first ten memories of a dry run, a line each."""

    @property
    def is_useful(self) -> bool:
        stored = self.stored or self.episodes or self.recalls_replayed or self.restored
        return bool(stored or self.already_known or self.erased_before or self.forgotten_before)


@dataclass(frozen=True)
class ImportProgress:
    """The progress of an import; everything up to `lines` is stored."""

    lines: int
    bytes_read: int
    total_bytes: int
    stored: int
    already_known: int
    bad_count: int


SQL = statements("nous_online.interfaces.imports", "importing.sql")
BATCH_SIZE = 64
BATCH_DEADLINE_S = 120.0  # to embed and store a batch of the longest contexts on one busy core
MAX_EXAMPLES, MAX_EXAMPLE_CHARACTERS = 10, 150
MAX_REPORTED = 1000  # of the bad records and of the ignored fields; the rest is counted
USUAL_RECALL_LIMIT = 10
USED_BEFORE = "its id was used before for another text; give it an id of its own"
REFUSALS = (Conflict, InvalidInput, psycopg.DataError, psycopg.IntegrityError)
"""What one bad record raises; anything else ends the import."""


@dataclass(frozen=True)
class ImportOptions:
    """Which memories of a history are imported, and whether they are only counted."""

    since: datetime | None = None
    """Memories before this moment are left out."""
    is_dry_run: bool = False
    is_over: bool = False
    """The conversations have ended: the last part of none waits for more messages."""
    project_id: str | None = None
    """The project of every record that names none, instead of that of the folder a session worked in."""
    is_again: bool = False
    """What was erased here is imported again, and what was forgotten or undone is restored, instead of left out."""


@dataclass(frozen=True)
class Pending:
    """An entry that is not stored yet, with its agent, its file and the number of the record it is from."""

    number: int
    source: SourceFile
    heart: Heart
    entry: Entry

    @property
    def key(self) -> str:
        """The idempotency key of the entry; imported ones always have one."""
        return self.entry.idempotency_key or ""


def import_history(  # noqa: PLR0913 (the options of all its callers)
    heart: Heart,
    paths: Sequence[Path],
    *,
    format: str = AUTO,  # noqa: A002 (what it is called on the command line)
    source: str | None = None,
    options: ImportOptions | None = None,
    on_progress: Callable[[ImportProgress], None] = lambda _: None,
    batch_size: int = BATCH_SIZE,
) -> ImportReport:
    """Import files and folders of one format, by default each file of the format that its content shows.

    They are read one after the other; bad records are in the report, all others are stored. `source` names the import,
    by default the format, for JSONL the file without its ending. The ids in a file belong to it: importing again under
    the same name continues where the last import stopped and stores nothing twice.
    Raises `InvalidInput` for a file in no known format or that can't be read, and `Unavailable` when the database or
    the embedder fails midway; the message says how far the import came.
    """
    sources, passed_over = sources_of(paths, format)
    run = ImportRun(heart, sources, source, options or ImportOptions(), batch_size, on_progress)
    run.report.skipped.update({FILES_PASSED_OVER: passed_over} if passed_over else {})
    try:
        for each in sources:
            run.read_file(each)
        run.finish()
    except NousError as error:
        stored = run.report.stored + run.report.episodes
        message = f"{error}; everything up to line {run.done_lines:,} is stored ({stored:,} new memories)"
        raise type(error)(f"{message}; run the same import again and it continues there") from error
    run.report.bad.sort(key=lambda note: (note.file, note.number))
    return run.report


@dataclass
class ImportRun:
    """An import in progress: what it was given, what it has read and not stored, and its report so far."""

    heart: Heart
    sources: Sequence[SourceFile]
    named: str | None
    options: ImportOptions
    batch_size: int
    on_progress: Callable[[ImportProgress], None]
    total_bytes: int = field(init=False)
    report: ImportReport = field(init=False)
    seen: Occurrences = field(default_factory=Occurrences)
    began_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    hearts: dict[str, Heart] = field(default_factory=dict[str, Heart])
    pending: list[Pending] = field(default_factory=list[Pending])
    item: ImportItem = field(default_factory=lambda: ImportItem(0, 0))
    bytes_before: int = 0
    read_count: int = 0
    done_lines: int = 0

    def __post_init__(self) -> None:
        names = ", ".join(dict.fromkeys(self.source_of(source) for source in self.sources))
        self.report = ImportReport(names, len(self.sources), self.options.is_dry_run)
        self.total_bytes = sum(size_of(source.path) for source in self.sources)

    def read_file(self, source: SourceFile) -> None:
        """Read a file and store its records in batches; one of several files that can't be read is only reported."""
        agent, within = self.heart.agent, self.source_of(source)

        def stored_until(name: str) -> datetime | None:
            key = memory_key(within, name)
            with agent.transaction(agent.deadline(None)) as connection:
                until = episodes.stored_until(connection, agent.id, key)
                # One that was erased ended then at the latest: what was said since is no part of it.
                return until or (None if self.options.is_again else key_erased_at(connection, agent.id, key))

        state = ReaderState(self.began_at, self.seen, self.options.is_over, stored_until)
        try:
            for item in source.format.read(source.path, state):
                self.item = item
                self.take(item, source)
        except InvalidInput as error:
            if len(self.sources) == 1:
                raise
            self.note_bad(self.item.number, str(error), source)
        self.report.lines += self.item.number
        self.bytes_before += size_of(source.path)
        self.item = ImportItem(0, 0)

    def take(self, item: ImportItem, source: SourceFile) -> None:
        """Add the memories of a record to the batch, stored once it is full; count its problem and omissions."""
        self.report.skipped.update(item.left_out)
        self.note_hidden(item, source)
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
            if self.options.since and moment_of(entry) < self.options.since:
                self.report.skipped[f"older than {self.options.since.isoformat()}"] += 1
            else:
                self.pending.append(Pending(item.number, source, heart, entry))
            if len(self.pending) >= self.batch_size:
                # A record is done with its last entry only.
                self.flush(done_lines=self.report.lines + item.number - (entry is not entries[-1]))

    def entries(self, item: ImportItem, record: ImportedRecord, source: SourceFile) -> tuple[Heart, list[Entry]]:
        """Return the entries of a record and whose memory they are for; raise `InvalidInput` for an invalid record."""
        within = self.source_of(source)
        heart = self.heart_of(record.agent)
        name = item.name or record.id or self.seen.name(item.text, within=within)
        # Each undated entry is a microsecond later than the one before, so that they keep their order.
        now = self.began_at + timedelta(microseconds=self.report.lines + item.number + self.read_count)
        project_id = self.options.project_id or record.project_id
        if project_id and not record.fields.get("project_id"):
            record = replace(record, fields={**record.fields, "project_id": project_id})
        entries = entries_of(record, source=within, name=name, now=now, rights=heart.agent.rights)
        self.read_count += len(entries)
        if not entries:
            self.report.skipped[NOTHING_SAID] += 1
        if len(self.report.ignored_fields) < MAX_REPORTED:
            self.report.ignored_fields |= record.ignored_fields
        return heart, entries

    def source_of(self, source: SourceFile) -> str:
        return self.named or source.format.source_of(source.path)

    def heart_of(self, agent_id: str | None) -> Heart:
        """Return the heart of the agent that a record names, or of the agent the import is for."""
        if agent_id is None or agent_id == self.heart.agent.id:
            return self.heart
        own = self.heart.agent
        if self.options.is_dry_run:  # Heart.open would create the agent
            return Heart(replace(own, id=checked_agent(agent_id)))
        if agent_id not in self.hearts:
            self.hearts[agent_id] = Heart.open(
                agent_id, database=own.database, embedder=own.embedder, judge=own.judge, policy=own.policy,
                deadline_s=own.deadline_s, begins_late=True,
            )  # fmt: skip
        return self.hearts[agent_id]

    def finish(self) -> None:
        """Store the last batch and refresh the statistics by which recall weighs words."""
        self.flush(done_lines=self.report.lines)
        for heart in () if self.options.is_dry_run else (self.heart, *self.hearts.values()):
            with heart.agent.transaction(heart.agent.deadline(BATCH_DEADLINE_S)) as connection:
                refresh_statistics(connection, heart.agent.id)

    def flush(self, *, done_lines: int) -> None:
        """Store the batch and then replay its recalls, which completes the lines up to `done_lines`."""
        memories = [each for each in self.pending if not isinstance(each.entry, ReplayedRecall)]
        by_agent = sorted(memories, key=lambda pending: pending.heart.agent.id)
        for _, group in groupby(by_agent, key=lambda each: (each.heart.agent.id, self.source_of(each.source))):
            self.store(self.wanted(self.unknown(list(group))))
        # Recalls are asked as of their moments, so memories of the batch that came after one stay hidden from it.
        for pending in self.pending:
            if isinstance(pending.entry, ReplayedRecall):
                self.replay(pending, pending.entry)
        self.pending.clear()
        self.done_lines = done_lines
        progress = ImportProgress(
            lines=done_lines,
            bytes_read=min(self.bytes_before + self.item.end, self.total_bytes),
            total_bytes=self.total_bytes,
            stored=self.report.stored + self.report.episodes,
            already_known=self.report.already_known,
            bad_count=self.report.bad_count,
        )
        self.on_progress(progress)

    def unknown(self, pending: Sequence[Pending]) -> list[Pending]:
        """Return the entries of one agent that are not stored yet; count the others, and report ids used before."""
        agent = pending[0].heart.agent
        key = {"agent_id": agent.id, "keys": [each.key for each in pending]}
        with agent.transaction(agent.deadline(None)) as connection:
            requests = store.find_requests(connection, agent.id, key["keys"])
            taken_out: dict[str, UUID] = dict(connection.execute(SQL["taken_out"], key).fetchall()) if requests else {}
        hashes: dict[str, str | None] = {key: request.content_hash for key, request in requests.items()}
        fresh: list[Pending] = []
        for each in pending:
            content_hash = hash_of(each.entry)
            if each.key not in hashes:
                hashes[each.key] = content_hash
                fresh.append(each)
            elif hashes[each.key] != content_hash:
                self.note_bad(each.number, USED_BEFORE, each.source)
            elif each.key in taken_out:
                self.leave_or_restore(each, taken_out[each.key])
            else:
                self.report.already_known += 1
        return fresh

    def leave_or_restore(self, pending: Pending, memory_id: UUID) -> None:
        """Count a memory that somebody took out of recall; restore it where that is asked for."""
        if not self.options.is_again:
            self.report.forgotten_before.append(memory_id)
            return
        try:
            if not self.options.is_dry_run:
                pending.heart.restore(memory_id, reason="imported again")
            self.report.restored += 1
        except (*REFUSALS, Refused) as error:
            self.note_bad(pending.number, str(error), pending.source)

    def wanted(self, pending: Sequence[Pending]) -> list[Pending]:
        """Return the entries of one agent but those that were erased or forgotten here, which are counted."""
        if not pending or self.options.is_again:
            return [*pending]
        agent, kept = pending[0].heart.agent, list[Pending]()
        news = [each.entry for each in pending if not isinstance(each.entry, ReplayedRecall)]
        with agent.transaction(agent.deadline(None)) as connection:
            erased, forgotten = erased_at(connection, agent.id, news), find_forgotten(connection, agent.id, news)
        for each, moment, memory_id in zip(pending, erased, forgotten, strict=True):
            if moment is not None:
                self.report.erased_before += 1
            elif memory_id is not None:
                self.report.forgotten_before.append(memory_id)
            else:
                kept.append(each)
        return kept

    def store(self, pending: Sequence[Pending]) -> None:
        """Store a batch; if it is refused, halve it until the entry at fault is alone."""
        if not pending:
            return
        report = self.report
        try:
            agent, source = pending[0].heart.agent, self.source_of(pending[0].source)
            new_facts = [each.entry for each in pending if isinstance(each.entry, NewFact)]
            new_episodes = [each.entry for each in pending if isinstance(each.entry, NewEpisode)]
            if self.options.is_dry_run:
                report.stored, report.episodes = report.stored + len(new_facts), report.episodes + len(new_episodes)
                room = MAX_EXAMPLES - len(report.examples)
                report.examples += [line_of(entry) for entry in (*new_facts, *new_episodes)][:room]
            else:
                if new_facts:
                    report.stored += facts.store_deferred(
                        agent, new_facts, agent.deadline(BATCH_DEADLINE_S), source=source
                    )
                if new_episodes:
                    report.episodes += episodes.store_deferred(
                        agent, new_episodes, agent.deadline(BATCH_DEADLINE_S), source=source
                    )
            report.of_users.update(entry.user_id for entry in (*new_facts, *new_episodes) if entry.user_id)
            report.of_projects.update(each.project_id for each in (*new_facts, *new_episodes) if each.project_id)
        except REFUSALS as error:
            if len(pending) == 1:
                self.note_bad(pending[0].number, str(error).strip(), pending[0].source)
                return
            middle = len(pending) // 2
            self.store(pending[:middle])
            self.store(pending[middle:])

    def replay(self, pending: Pending, recall: ReplayedRecall) -> None:
        """Ask a past question again, or in a dry run count it."""
        if self.options.is_dry_run:
            self.report.recalls_replayed += 1
            return
        try:
            is_new, missed_count = replay(pending.heart, recall)
        except REFUSALS as error:
            self.note_bad(pending.number, str(error).strip(), pending.source)
            return
        self.report.recalls_replayed += is_new
        self.report.already_known += not is_new
        if missed_count:
            self.report.skipped["marked memories that were no answer of the replayed recall"] += missed_count

    def note_hidden(self, item: ImportItem, source: SourceFile) -> None:
        """Note where something was left out as a credential, so that what is none is found and told in other words."""
        numbers = item.hidden or ((item.number,) if HIDDEN_FACTS in item.left_out else ())
        room = MAX_REPORTED - len(self.report.hidden)
        places = (BadRecord(number, HIDDEN_FACTS, source.path.name, source.format.unit).place for number in numbers)
        self.report.hidden += [*places][:room]

    def note_bad(self, number: int, message: str, source: SourceFile) -> None:
        self.report.bad_count += 1
        if len(self.report.bad) < MAX_REPORTED:
            file = source.path.name if len(self.sources) > 1 else ""
            self.report.bad.append(BadRecord(number, message, file, source.format.unit))


def replay(heart: Heart, recall: ReplayedRecall) -> tuple[bool, int]:
    """Ask a question as of its moment, and mark those of its answers that were cited or ignored.

    Returns whether no earlier import had replayed it, and how many marked memories are no answer to it. Marking twice
    counts once. Raises as `Heart.recall` does.
    """
    agent = heart.agent
    # The record's key is the session of its recall, so that an import that continues finds the recall again.
    session_id = f"import:{sha256(recall.idempotency_key.encode()).hexdigest()}"
    key = {"agent_id": agent.id, "at": recall.at, "session_id": session_id}
    with agent.transaction(agent.deadline(None)) as connection:
        row = connection.execute(SQL["find_replayed"], key).fetchone()
        requests = store.find_requests(connection, agent.id, recall.marked)
    if row:
        recall_id, answers = row[0], set[UUID](row[1])
    else:
        limit = min(max(USUAL_RECALL_LIMIT, len(recall.marked)), MAX_RECALL_LIMIT)
        found = heart.recall(
            recall.query, limit=limit, frame=recall.frame, as_of=recall.at, at=recall.at, session_id=session_id
        )
        recall_id, answers = found.id, {answer.id for answer in found}
    marked = {key: request.memory_id for key, request in requests.items()}
    for mark, keys in ((heart.cite, recall.cited), (heart.ignore, recall.ignored)):
        if ids := {marked[key] for key in keys if key in marked} & answers:
            mark(recall_id, sorted(ids), at=recall.at)
    return row is None, sum(marked.get(key) not in answers for key in recall.marked)


def find_forgotten(
    connection: psycopg.Connection, agent_id: str, news: Sequence[NewFact | NewEpisode]
) -> list[UUID | None]:
    """Return, for each new memory, one of the same words and reach that somebody asked to forget; None without one."""
    ((has_facts, has_episodes),) = connection.execute(SQL["has_forgotten"], {"agent_id": agent_id}).fetchall()
    found: list[UUID | None] = []
    for new in news:
        memory_id = None
        if isinstance(new, NewFact) and has_facts:
            memory_id, _ = store.forgotten_fact(connection, agent_id, new) or (None, None)
        elif isinstance(new, NewEpisode) and has_episodes:
            key = {"agent_id": agent_id, "detail": new.detail, **reach_of(new)}
            memory_id = next((each for (each,) in connection.execute(SQL["forgotten_episode"], key)), None)
        found.append(memory_id)
    return found


def reach_of(new: NewEpisode) -> dict[str, str | None]:
    return {"scope": new.beginning.scope, "user_id": new.user_id, "project_id": new.project_id}


def line_of(entry: NewFact | NewEpisode) -> str:
    """Return an entry of a dry run as a line with its date."""
    text = entry.content if isinstance(entry, NewFact) else entry.change.title or entry.detail
    line = " ".join(text.split())
    shown = line if len(line) <= MAX_EXAMPLE_CHARACTERS else f"{line[:MAX_EXAMPLE_CHARACTERS]} …"
    return f"{moment_of(entry):%Y-%m-%d}  {shown}"


def size_of(path: Path) -> int:
    """Return the size of a file in bytes; 0 if it is gone."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def moment_of(entry: Entry) -> datetime:
    """Return when a fact was learned, an episode ended or a recall was asked."""
    if isinstance(entry, ReplayedRecall):
        return entry.at
    return entry.learned_at if isinstance(entry, NewFact) else entry.ended_at


def hash_of(entry: Entry) -> str | None:
    """Return the hash of what a fact or an episode says; None for a recall."""
    if isinstance(entry, NewFact):
        return facts.content_hash(entry)
    return episodes.content_hash(entry) if isinstance(entry, NewEpisode) else None
