"""Recall at the database: one statement that nominates and scores, then one ranking across kinds of memory."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from functools import cache
from typing import Any, Literal, LiteralString, Protocol, cast, overload
from uuid import UUID

from pgvector import Vector
from psycopg import Connection, Cursor, RawCursor
from psycopg.rows import namedtuple_row
from psycopg.sql import SQL, Composable, Composed, Identifier
from psycopg.sql import Literal as Constant
from psycopg.types.json import Jsonb

from nous_online.core.deadline import Deadline
from nous_online.core.details import Query, RecallDetails
from nous_online.core.domain import KINDS, Detail, EmbeddingSpace, shortened
from nous_online.core.errors import InvalidInput, NotFound, Unsupported
from nous_online.core.fields import check_known, checked_as, checked_details
from nous_online.database.statements import statements
from nous_online.language.minilm import Vectors
from nous_online.memories.agent import Agent, loggable, with_session_frame
from nous_online.memories.levels import levels_of
from nous_online.memories.store import query_space, require_space
from nous_online.recall.periods import Period, periods_in
from nous_online.recall.ranking import (
    Candidate,
    Comparable,
    RecallPolicy,
    ScoreParts,
    Situation,
    confidence,
    later_first,
    rank,
)

REACH = statements("nous_online.memories", "reach.sql")  # the memories have it too
BLOCKS: Mapping[str, LiteralString] = {**REACH, **statements("nous_online.recall", "recall.sql")}
PARAMETER = re.compile(r"%\((\w+)\)s")
SCAN = "relaxed_order"
WIDEST_SCAN = 1_000  # the upper bound of hnsw.ef_search
KINDS_OF_AGENT: dict[str, Sequence[str]] = {}
"""The kinds an agent had anything of when it last asked: a guess that saves a round trip, made good when wrong."""
MOST_AGENTS = 10_000


@dataclass(frozen=True)
class Cue:
    """What a recall starts from: the question, its vector, and who asks in which situation."""

    query: str
    embedding: Vectors | None
    """None where nobody could embed the question: then only its words are compared."""
    types: Sequence[str] = tuple(KINDS)
    limit: int = 10
    min_score: float = 0.0
    """Answers that score less are left out."""
    detail: Detail = "full"
    frame: str | None = None
    active_censors: Sequence[str] | None = None
    as_of: datetime | None = None
    """Ask for what was believed at that moment instead of now."""
    user_id: str | None = None
    project_id: str | None = None
    periods: tuple[Period, ...] = ()
    """The days, months and years the question names; what was said in the first of them is looked at in any case."""


@dataclass(frozen=True)
class FoundMemory:
    """A memory of any kind that might answer, with the two scores the database gave it."""

    id: UUID
    kind: str
    content: str
    """The full text. Of an episode, its title and detail; without the detail where a shorter level was asked for."""
    subject: str | None
    """What it is about: the subject of a fact, the title of an episode, the name of a procedure."""
    category: str | None
    """The category of a fact, outcome of an episode, domain of a procedure, severity of a censor."""
    tags: list[str]
    confidence: float | None
    learned_at: datetime
    """For an episode, when it started."""
    said_at: datetime
    """When it was said last: a fact that was confirmed, then; for an episode, when it started."""
    valid_from: datetime | None
    valid_to: datetime | None
    """When an episode ended or a censor expires, too."""
    superseded_by: UUID | None
    contradiction_status: str
    encoded_frame: str | None
    summary: str | None
    compressed: str | None
    index_word: str | None
    state: str
    source: str | None
    source_kind: str
    trust: int
    is_pinned: bool
    encoded_censors: list[str] | None
    rank_weight: float
    dense: float
    lexical: float

    def level(self, detail: Detail) -> str:
        """Return the memory at one level: as it was stored there, otherwise derived from its text."""
        return self.content if detail == "full" else getattr(levels_of(self.kind, vars(self)), detail)

    def shown(self, detail: Detail) -> Detail:
        """Return the level asked for; of an episode nothing shorter is told of than its detail, the full one."""
        told = self.subject or self.summary or self.compressed or self.index_word
        return detail if told or self.kind != "episode" else "full"


class Row(Candidate, Comparable, Protocol):
    """A candidate as the driver returns it: a tuple of the fields of `FoundMemory`, and what it is to the others."""


FIELDS = len(fields(FoundMemory))


def memory_from_row(row: Row) -> FoundMemory:
    """Return the memory of a candidate: made for the answers alone."""
    return FoundMemory(*cast("tuple[Any, ...]", row)[:FIELDS])


@dataclass(frozen=True)
class Recalled:
    """One answer of a recall, and why it stands where it stands."""

    memory: FoundMemory
    parts: ScoreParts
    detail: Detail = "full"
    """The level that was asked for."""
    put_before: UUID | None = None
    """The earlier fact about the same thing that scored higher, and that it was put before."""
    contradicted_by: tuple[UUID, ...] = ()
    """The facts it contradicts, undecided, as far as they can be recalled."""

    def __repr__(self) -> str:
        memory = self.memory
        when = f"{str(memory.id)[:8]} {memory.learned_at:%Y-%m-%d}"
        return f"<{memory.kind} {self.score:.2f} {when}: {shortened(memory.content)!r}>"

    @property
    def id(self) -> UUID:
        return self.memory.id

    @property
    def content(self) -> str:
        return self.memory.content

    @property
    def text(self) -> str:
        """The memory at the level that was asked for."""
        return self.memory.level(self.memory.shown(self.detail))

    @property
    def score(self) -> float:
        return self.parts.score


@dataclass(frozen=True)
class Answers:
    """What a recall found, best first, and the id it is logged under."""

    recall_id: UUID
    answers: list[Recalled]
    confidence: float = 0.0
    """The chance that the best of what was found is an answer."""
    can_be_logged: bool = True
    """Whether the server takes writes: a standby, or one that is read-only for now, answers all the same."""


def recall(connection: Connection, agent_id: str, cue: Cue, *, space: EmbeddingSpace, policy: RecallPolicy) -> Answers:
    """Return what answers `cue` best, best first, in one ranking over all the kinds asked for.

    Settings and search share a round trip on a connection in pipeline mode. Raises `InvalidInput` for an unknown kind
    or a limit out of range, `Moved` when the agent's memories live in another space, and `Unsupported` when the
    server's pgvector does not honour iterative scans, without which filtered answers would silently be cut short.
    """
    check_kinds(cue)
    asked = tuple(dict.fromkeys(cue.types))
    likely = tuple(kind for kind in asked if kind in KINDS_OF_AGENT.get(agent_id, KINDS))
    prepared = prepare(connection, agent_id, cue, policy)
    found = search(connection, agent_id, cue, likely, space=space, policy=policy)
    home = query_space(connection, agent_id)  # after the search: a move in between must not pass for a poor answer
    recall_id, held, can_be_logged = read_prepared(prepared.fetchall(), cue, policy)
    cache_kinds(agent_id, held)
    missed = tuple(kind for kind in asked if kind in held and kind not in likely)
    if missed:
        found += search(connection, agent_id, cue, missed, space=space, policy=policy)
        home = query_space(connection, agent_id)
    require_space(home, agent_id, space)
    ranked = rank(found, Situation(cue.query, cue.frame, cue.active_censors, cue.periods), policy, limit=len(found))
    answers = [
        Recalled(memory_from_row(row), parts, cue.detail, put_before, tuple(row.contradicted_by or ()))
        for row, parts, put_before in later_first(ranked, policy, limit=cue.limit)[: cue.limit]
        if parts.score >= cue.min_score
    ]
    chance = confidence(ranked[0][1], policy) if ranked else 0.0
    return Answers(recall_id, with_full_texts(connection, agent_id, answers), chance, can_be_logged)


def prepare(connection: Connection, agent_id: str, cue: Cue, policy: RecallPolicy) -> Cursor[tuple[Any, ...]]:
    """Set this transaction up, and ask for an id for the recall and for the kinds the agent has anything of."""
    wanted = {"agent_id": agent_id, "scan": SCAN, "breadth": scan_breadth(cue, policy)}
    return connection.execute(BLOCKS["prepare_recall"], wanted, prepare=True)


def read_prepared(rows: Sequence[tuple[Any, ...]], cue: Cue, policy: RecallPolicy) -> tuple[UUID, Sequence[str], bool]:
    """Return the id of the recall, the kinds the agent has anything of, and whether it can be logged.

    Raises `Unsupported` for another scan.
    """
    ((recall_id, scan, breadth, held, can_be_logged),) = rows
    check_scan((scan, breadth), scan_breadth(cue, policy))
    return recall_id, held, can_be_logged


def cache_kinds(agent_id: str, held: Sequence[str]) -> None:
    """Keep which kinds an agent has anything of, for its next recall."""
    if len(KINDS_OF_AGENT) >= MOST_AGENTS:
        KINDS_OF_AGENT.clear()
    KINDS_OF_AGENT[agent_id] = held


def scan_breadth(cue: Cue, policy: RecallPolicy) -> str:
    """Return how many neighbours the index scan keeps in sight, as a setting."""
    return str(min(max(candidate_count(cue, policy), policy.scan_breadth), WIDEST_SCAN))


def search(
    connection: Connection,
    agent_id: str,
    cue: Cue,
    kinds: tuple[str, ...],
    *,
    space: EmbeddingSpace,
    policy: RecallPolicy,
) -> list[Row]:
    """Return the candidates among `kinds`, in one statement."""
    if not kinds:
        return []
    asked = {"past": cue.as_of is not None, "dated": bool(cue.periods), "by_words": cue.embedding is None}
    traits = frozenset(trait for trait, is_so in asked.items() if is_so)
    statement, names = search_statement(kinds, space, policy, candidate_count(cue, policy), traits)
    wanted = search_parameters(agent_id, cue)
    cursor = RawCursor(connection, row_factory=namedtuple_row)
    cursor.execute(statement, [wanted[name] for name in names], prepare=True, binary=True)
    return cast("list[Row]", cursor.fetchall())


def check_kinds(cue: Cue) -> None:
    """Raise `InvalidInput` when a cue asks for kinds that do not exist."""
    unknown = sorted(set(cue.types) - set(KINDS))
    if unknown or not cue.types:
        raise InvalidInput(
            f"can't recall memories of type {unknown[0] if unknown else None!r}; known: {', '.join(KINDS)}"
        )


def candidate_count(cue: Cue, policy: RecallPolicy) -> int:
    """Return how many memories each nominator puts forward: of few sizes, since each is a statement of its own."""
    count = policy.candidate_count
    least = policy.dated_count if cue.periods else 0
    while count < max(cue.limit, least, min(2 * cue.limit, policy.spare_up_to)):
        count *= 2
    return count


def with_full_texts(connection: Connection, agent_id: str, answers: list[Recalled]) -> list[Recalled]:
    """Return the answers with the full text of the episodes that are to be shown in full."""
    ids = [a.id for a in answers if a.memory.kind == "episode" and a.memory.shown(a.detail) == "full"]
    if not ids:
        return answers
    texts = dict(connection.execute(BLOCKS["read_details"], {"agent_id": agent_id, "ids": ids}).fetchall())
    return [replace(a, memory=replace(a.memory, content=texts[a.id])) if a.id in texts else a for a in answers]


@cache
def search_statement(
    kinds: tuple[str, ...],
    space: EmbeddingSpace,
    policy: RecallPolicy,
    candidates: int,
    traits: frozenset[str],
) -> tuple[bytes, tuple[str, ...]]:
    """Return the search among `kinds` with its constants filled in, and the names of its numbered parameters.

    Of its traits, a question may be of the `past`, `dated`, and compared `by_words` alone.

    Width and space must be constants for the index to be used, and limits for the plan to be right for any agent. The
    driver would read this long text anew at every call to find its parameters, which takes as long as the search.
    """
    is_past, is_by_words = "past" in traits, "by_words" in traits
    common: dict[str, Composable] = {
        **{name: Constant(value) for name, value in vars(policy).items()},
        "candidate_count": Constant(candidates),
        "breadth": Constant(max(candidates, policy.scan_breadth)),
        "dimensions": Constant(space.dimensions),
        "space_id": Constant(space.id),
        "in_reach": SQL(BLOCKS["in_reach"]),
        "fact_visible": SQL(BLOCKS[f"facts_{'then' if is_past else 'now'}"]),
        "kinds": Constant(list(kinds)),
    }
    nominators = {"near": not is_by_words, "retired": is_past and not is_by_words, "dated": "dated" in traits}
    dense = SQL(BLOCKS["no_vector" if is_by_words else "cosine"]).format(**common)
    parts = [parts_of_kind(kind, {**common, "dense": dense}, nominators, is_past=is_past) for kind in kinds]
    composed = SQL(BLOCKS["search"]).format(
        **common,
        sizes=union_of_kinds("size_of_kind", parts, "\n    union all\n"),
        nominations=union_of_kinds("nominations_of_kind", parts, "\n        union all\n"),
    )
    numbers: dict[str, int] = {}
    text = PARAMETER.sub(lambda found: f"${numbers.setdefault(found[1], len(numbers) + 1)}", composed.as_string())
    return text.encode(), tuple(numbers)


def parts_of_kind(
    kind: str, common: Mapping[str, Composable], nominators: Mapping[str, bool], *, is_past: bool
) -> dict[str, Composable]:
    """Return what the search for one kind is made of: its table, what is visible and shown of it, who nominates."""
    table = KINDS[kind].table
    visible = SQL(BLOCKS[f"{table}_{'then' if is_past else 'now'}"])
    parts = {
        **common,
        "kind": Constant(kind),
        "table": Identifier("heart", table),
        "table_name": Constant(f"heart.{table}"),
        "visible": visible,
        "indexed": SQL(" and ").join((SQL(BLOCKS[f"{table}_recalled"]), visible)) if is_past else visible,
        "is_retired": SQL(BLOCKS[f"{table}_retired"]),
        "shown": SQL(BLOCKS[f"{table}_shown"]).format(),
        "said_at": Identifier("started_at" if kind == "episode" else "learned_at"),
    }
    parts["columns"] = SQL(BLOCKS["columns_of_kind"]).format(**parts)
    return {
        **parts,
        **{
            name: SQL(BLOCKS[f"{name}_of_kind"]).format(**parts) if is_used else SQL("")
            for name, is_used in nominators.items()
        },
    }


def union_of_kinds(block: str, parts: Sequence[Mapping[str, Composable]], joint: LiteralString) -> Composed:
    """Return one block filled in for each kind, and joined."""
    return SQL(joint).join(SQL(BLOCKS[block]).format(**of_kind) for of_kind in parts)


def search_parameters(agent_id: str, cue: Cue) -> dict[str, Any]:
    """Return the values a search asks for."""
    return {
        "agent_id": agent_id,
        "query": cue.query,
        "embedding": None if cue.embedding is None else Vector(cue.embedding),
        "as_of": cue.as_of,
        "user_id": cue.user_id,
        "project_id": cue.project_id,
        "period_start": cue.periods[0].start if cue.periods else None,
        "period_end": cue.periods[0].end if cue.periods else None,
    }


def check_scan(took_effect: tuple[Any, ...], breadth: str) -> None:
    """Raise `Unsupported` unless the settings of the index scan are the ones asked for."""
    if took_effect != (SCAN, breadth):
        raise Unsupported(
            f"pgvector took hnsw settings {took_effect}, asked for {(SCAN, breadth)}; pgvector 0.8 or newer is needed"
        )


def agents_with_stale_statistics(connection: Connection, agent_ids: Sequence[str]) -> list[str]:
    """Return those of some agents whose memories are not those that `refresh_statistics` last counted."""
    return [row[0] for row in connection.execute(BLOCKS["agents_to_count"], {"agent_ids": list(agent_ids)})]


def refresh_statistics(connection: Connection, agent_id: str) -> None:
    """Count anew in how many memories each word occurs and how long memories are; after an import, and every night."""
    connection.execute(BLOCKS["refresh_term_stats"], {"agent_id": agent_id})
    connection.execute(BLOCKS["refresh_corpus_stats"], {"agent_id": agent_id})


# --- the verbs ---

USAGE = statements("nous_online.recall", "usage.sql")
LIKELY = 0.5
Feedback = Literal["cited", "ignored"]


@dataclass(frozen=True)
class Recall(Sequence[Recalled]):
    """The answers of one recall, best first; its `id` takes the feedback."""

    id: UUID
    query: str
    answers: tuple[Recalled, ...]
    confidence: float = 0.0
    """The chance that the best one found is an answer, 0 to 1; calibrated for the local embedding model, on facts."""
    is_by_words: bool = False
    """Whether only words were compared, because the embedder could not be asked: what says it otherwise is missing."""

    @property
    def is_confident(self) -> bool:
        """Whether an answer is more likely to have been found than not."""
        return self.confidence >= LIKELY

    def __len__(self) -> int:
        return len(self.answers)

    @overload
    def __getitem__(self, index: int) -> Recalled: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Recalled, ...]: ...
    def __getitem__(self, index: int | slice) -> Recalled | tuple[Recalled, ...]:
        return self.answers[index]

    def __iter__(self) -> Iterator[Recalled]:
        return iter(self.answers)


def recall_and_log(agent: Agent, query: object, details: RecallDetails, deadline: Deadline) -> Recall:
    """Find the answers to a question and log them, in one transaction."""
    check_known(details, RecallDetails)
    text = checked_as(Query, "query", query)
    told = checked_details(RecallDetails, with_session_frame(agent, details, RecallDetails, deadline))
    at, session_id = told.pop("at") or datetime.now(UTC), told.pop("session_id")
    kinds, min_score = tuple(told.pop("kinds") or KINDS), told.pop("min_score") or 0.0
    vectors = agent.embed_if_able([text], deadline)
    vector = None if vectors is None else vectors[0]
    periods = periods_in(text, at=told["as_of"] or at)
    cue = Cue(query=text, embedding=vector, types=kinds, min_score=min_score, periods=periods, **told)
    check_kinds(cue)
    with agent.database.transaction(agent.id, timeout_s=deadline.remaining(), is_pipelined=True) as connection:
        found = recall(connection, agent.id, cue, space=agent.embedder.space, policy=RecallPolicy())
        if found.can_be_logged:
            log_recall(connection, agent, cue, found, at=at, session_id=session_id)
    return Recall(found.recall_id, text, tuple(found.answers), found.confidence, is_by_words=vector is None)


def log_recall(
    connection: Connection, agent: Agent, cue: Cue, found: Answers, *, at: datetime, session_id: str | None
) -> None:
    """Keep what was asked and found, and count each memory found."""
    row = {
        "id": found.recall_id,
        "agent_id": agent.id,
        "recalled_at": at,
        "query": loggable(cue.query, agent.rights),
        "query_embedding": None if cue.embedding is None else Vector(cue.embedding),
        "space_id": agent.embedder.space.id,
        "types": list(cue.types),
        "limit": cue.limit,
        "frame": cue.frame,
        "active_censors": None if cue.active_censors is None else Jsonb(list(cue.active_censors)),
        "as_of": cue.as_of,
        "session_id": session_id,
        "user_id": cue.user_id,
        "result_ids": [answer.id for answer in found.answers],
        "result_scores": [answer.score for answer in found.answers],
        "kinds": [answer.memory.kind for answer in found.answers],
    }
    connection.execute(USAGE["log_recall"], row, prepare=True)


def give_feedback(
    agent: Agent, recall_id: UUID, memory_ids: Sequence[UUID], kind: Feedback, *, at: datetime, deadline: Deadline
) -> int:
    """Say which answers of a recall were used, or not; return how many that is news about.

    Saying it twice counts once. Raises `NotFound` for an unknown recall, `InvalidInput` for a memory it did not find.
    """
    key = {"agent_id": agent.id, "recall_id": recall_id}
    with agent.transaction(deadline) as connection:
        row = connection.execute(USAGE["lock_recall"], key).fetchone()
        if row is None:
            raise NotFound(f"agent {agent.id!r} has no recall {recall_id}")
        result_ids, cited_ids, ignored_ids = row
        strangers = sorted(set(memory_ids) - set(result_ids))
        if strangers:
            raise InvalidInput(f"recall {recall_id} did not find memory {strangers[0]}; cite only what it returned")
        fresh = sorted(set(memory_ids) - set(cited_ids if kind == "cited" else ignored_ids))
        connection.execute(USAGE[f"store_{kind}"], {**key, "ids": fresh})
        connection.execute(USAGE[f"count_{kind}"], {**key, "ids": fresh, "at": at})
    return len(fresh)
