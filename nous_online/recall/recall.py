"""Recall: one SQL statement nominates candidates and scores them, then one ranking orders all kinds of memory."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, date, datetime
from functools import cache
from typing import Any, Literal, LiteralString, Protocol, Unpack, cast, overload
from uuid import UUID

from pgvector import Vector
from psycopg import Connection, Cursor, RawCursor
from psycopg.rows import namedtuple_row
from psycopg.sql import SQL, Composable, Composed, Identifier
from psycopg.sql import Literal as Constant
from psycopg.types.json import Jsonb

from nous_online.core.details import Query, RecallDetails
from nous_online.core.domain import KINDS, Detail, EmbeddingSpace, shortened
from nous_online.core.errors import InvalidInput, NotFound, Unsupported
from nous_online.core.fields import check_known, checked_as, checked_details
from nous_online.core.validation import checked_id, checked_ids, checked_moment
from nous_online.database.statements import statements
from nous_online.language.minilm import Vectors
from nous_online.memories.agent import Agent, Verbs, loggable, with_session_frame
from nous_online.memories.levels import levels_of
from nous_online.memories.store import check_home
from nous_online.recall.ranking import (
    Candidate,
    Comparable,
    Covering,
    Period,
    RecallPolicy,
    ScoreParts,
    Situation,
    asks_ahead,
    beginning_of,
    confidence,
    later_first,
    periods_in,
    rank,
)

REACH = statements("nous_online.memories", "reach.sql")  # who may see what: censors and forgetting use the same rule
BLOCKS: Mapping[str, LiteralString] = {**REACH, **statements("nous_online.recall", "recall.sql")}
PARAMETER = re.compile(r"%\((\w+)\)s")
SCAN = "relaxed_order"  # of hnsw.iterative_scan: candidates are scored and sorted afterwards anyway
WIDEST_SCAN = 1_000  # pgvector's upper bound of hnsw.ef_search
KINDS_OF_AGENT: dict[str, Sequence[str]] = {}
"""The kinds each agent had memories of at its last recall: a guess that saves a round trip, corrected when wrong."""
MOST_AGENTS = 10_000  # entries of that cache


@dataclass(frozen=True)
class Cue:
    """The input of a recall: the question, its vector, and whose memories are searched in which situation."""

    query: str
    embedding: Vectors | None
    """Unit vector of the question; None where the embedder failed: then only words are compared."""
    types: Sequence[str] = tuple(KINDS)
    limit: int = 10
    min_score: float = 0.0
    """Answers that score less are left out."""
    detail: Detail = "full"
    frame: str | None = None
    active_censors: Sequence[str] | None = None
    as_of: datetime | None = None
    """Search what was believed at that moment instead of now."""
    user_id: str | None = None
    project_id: str | None = None
    periods: tuple[Period, ...] = ()
    """The days, months and years the question names; memories of the first one are nominated in any case."""
    at: datetime | None = None
    """When it was asked; None is now."""
    is_ahead: bool = False
    """Whether it asks for what is to come (`asks_ahead`), and so finds what is yet to begin."""


@dataclass(frozen=True)
class FoundMemory:
    """A candidate of any kind, with the two scores the database gave it."""

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
    scope: str
    user_id: str | None
    project_id: str | None
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
        """Return the level to show: the one asked for, but `full` for an episode that has only its detail."""
        has_shorter = self.subject or self.summary or self.compressed or self.index_word
        return detail if has_shorter or self.kind != "episode" else "full"


class Row(Candidate, Covering, Comparable, Protocol):
    """A candidate as the driver returns it: the fields of `FoundMemory`, then `covered` and those of `Comparable`."""

    @property
    def kind(self) -> str: ...
    @property
    def content(self) -> str: ...


FIELDS = len(fields(FoundMemory))


@dataclass(frozen=True)
class Recalled:
    """One answer of a recall, with the parts of its score."""

    memory: FoundMemory
    parts: ScoreParts
    detail: Detail = "full"
    """The level that was asked for."""
    put_before: UUID | None = None
    """What this fact was moved in front of: a fact about the same thing that is earlier or yet to begin, or an episode
    that tells what has changed since."""
    contradicted_by: tuple[UUID, ...] = ()
    """The facts in an open contradiction with it that the caller could recall too."""
    begins_on: date | None = None
    """When it begins, where that is yet to come."""
    changed_by: tuple[UUID, ...] = ()
    """The facts found that replaced, or contradict, something that this episode tells."""

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
    """The answers of a recall, best first, and the id it is logged under."""

    recall_id: UUID
    answers: list[Recalled]
    confidence: float = 0.0
    """The chance, 0 to 1, that the best candidate answers the question."""
    can_be_logged: bool = True
    """False on a standby or a read-only server, which answers all the same."""


def recall(connection: Connection, agent_id: str, cue: Cue, *, space: EmbeddingSpace, policy: RecallPolicy) -> Answers:
    """Return what answers `cue` best, best first, in one ranking over all the kinds asked for.

    Settings and search share a round trip on a connection in pipeline mode. Raises `InvalidInput` for an unknown kind
    or a limit out of range, `Moved` when the agent's memories live in another space, and `Unsupported` when the
    server's pgvector does not honour iterative scans, without which filtered answers would silently be cut short.
    """
    check_kinds(cue)
    asked = tuple(dict.fromkeys(cue.types))
    # A kind without memories is left out of the statement. Which those are is guessed from the last recall, because
    # waiting for the answer of `conclude` would cost a round trip.
    likely = tuple(kind for kind in asked if kind in KINDS_OF_AGENT.get(agent_id, KINDS))
    wanted = {"scan": SCAN, "breadth": scan_breadth(cue, policy)}
    prepared = connection.execute(BLOCKS["prepare_recall"], wanted, prepare=True)
    candidates = send_search(connection, agent_id, cue, likely, space=space, policy=policy)
    concluded = send_conclusion(connection, agent_id)
    check_scan(prepared.fetchall()[0], scan_breadth(cue, policy))
    found = rows_of(candidates)
    recall_id, can_be_logged, held = conclusion_of(concluded, agent_id, space)
    if len(KINDS_OF_AGENT) >= MOST_AGENTS:  # a missing guess costs a round trip at most: no order of eviction is needed
        KINDS_OF_AGENT.clear()
    KINDS_OF_AGENT[agent_id] = held
    if any(kind in held and kind not in likely for kind in asked):
        # All of them again: what facts say of the episodes found is known where both are searched at once.
        known = tuple(kind for kind in asked if kind in held)
        candidates = send_search(connection, agent_id, cue, known, space=space, policy=policy)
        concluded = send_conclusion(connection, agent_id)
        found = rows_of(candidates)
        conclusion_of(concluded, agent_id, space)
    ranked = rank(found, Situation(cue.query, cue.frame, cue.active_censors, cue.periods), policy, limit=len(found))
    answers = answers_of(ranked, cue, policy)
    full = with_full_texts(connection, agent_id, answers)
    return Answers(recall_id, full, confidence_of(ranked, cue, policy), can_be_logged)


def confidence_of(ranked: Sequence[tuple[Row, ScoreParts]], cue: Cue, policy: RecallPolicy) -> float:
    """Return the chance that something found answers the question: of all, or of the facts if one of them is shown.

    An episode is near to what a fact of it says, so that among both neither stands out from the other.
    """
    facts = [each for each in ranked if each[0].kind == "fact"]
    is_shown = any(row.kind == "fact" for row, _ in ranked[: cue.limit])
    return max(confidence(ranked, policy), confidence(facts, policy) if is_shown else 0.0)


def answers_of(ranked: Sequence[tuple[Row, ScoreParts]], cue: Cue, policy: RecallPolicy) -> list[Recalled]:
    """Return the answers among ranked candidates, of facts about one thing the one that holds at the moment first.

    A question about what is to come finds that first.
    """
    coming: dict[UUID, date] = {}
    moment = cue.as_of or cue.at or datetime.now(UTC)

    def is_coming(row: Row) -> bool:
        starts = beginning_of(row.content, row.said_at)
        if starts is None or starts <= moment:
            return False
        coming[row.id] = starts.date()
        return not cue.is_ahead

    def begins_on(row: Row) -> date | None:
        return row.valid_from.date() if row.valid_from and row.valid_from > moment else coming.get(row.id)

    ordered = later_first(ranked, policy, limit=cue.limit, is_coming=is_coming)[: cue.limit]
    placed = [each for each in ordered if each[1].score >= cue.min_score]
    changed_by: dict[UUID, list[UUID]] = {}
    for row, _, _ in placed:
        for episode_id in row.changed_ids or ():
            changed_by.setdefault(episode_id, []).append(row.id)
    # Candidates are ranked as the tuples they come as; only the few answers are made into dataclasses.
    return [
        Recalled(
            FoundMemory(*cast("tuple[Any, ...]", row)[:FIELDS]),
            parts,
            cue.detail,
            put_before,
            tuple(row.contradicted_by or ()),
            begins_on(row),
            tuple(changed_by.get(row.id, ())),
        )
        for row, parts, put_before in placed
    ]


def scan_breadth(cue: Cue, policy: RecallPolicy) -> str:
    """Return the value of `hnsw.ef_search`: how many neighbours the index scan keeps."""
    return str(min(max(candidate_count(cue, policy), policy.scan_breadth), WIDEST_SCAN))


def send_conclusion(connection: Connection, agent_id: str) -> Cursor[Any]:
    """Send the query for what is to be known after a search; `conclusion_of` fetches the answer."""
    return connection.execute(BLOCKS["conclude_recall"], {"agent_id": agent_id}, prepare=True)


def conclusion_of(concluded: Cursor[Any], agent_id: str, space: EmbeddingSpace) -> tuple[UUID, bool, Sequence[str]]:
    """Return the id of a recall, whether it can be logged, and the kinds the agent has anything of.

    Raises `Moved` when the agent's memories live in another space, and `NotFound` for an unknown agent.
    """
    row = concluded.fetchone()
    if row is None:
        raise NotFound(f"agent {agent_id!r} is not known here")
    recall_id, can_be_logged, held, *home = row
    check_home(EmbeddingSpace(*home), agent_id, space)
    return recall_id, can_be_logged, held


def rows_of(candidates: Cursor[Any] | None) -> list[Row]:
    """Return the candidates that a search found; none where there was nothing to search."""
    return [] if candidates is None else cast("list[Row]", candidates.fetchall())


def send_search(
    connection: Connection,
    agent_id: str,
    cue: Cue,
    kinds: tuple[str, ...],
    *,
    space: EmbeddingSpace,
    policy: RecallPolicy,
) -> Cursor[Any] | None:
    """Send the one statement that finds candidates among `kinds`; `rows_of` fetches them. None without any kind."""
    if not kinds:
        return None
    asked = {"dated": bool(cue.periods), "by_words": cue.embedding is None, "ahead": cue.is_ahead}
    asked |= {"past": cue.as_of is not None}
    traits = frozenset(trait for trait, is_so in asked.items() if is_so)
    statement, names = search_statement(kinds, space, policy, candidate_count(cue, policy), traits)
    wanted = {
        "agent_id": agent_id,
        "query": cue.query,
        "embedding": None if cue.embedding is None else Vector(cue.embedding),
        "as_of": cue.as_of,
        "user_id": cue.user_id,
        "project_id": cue.project_id,
        "period_start": cue.periods[0].start if cue.periods else None,
        "period_end": cue.periods[0].end if cue.periods else None,
    }
    # Prepared, because planning this statement takes as long as running it (docs/decisions/0007).
    cursor = RawCursor(connection, row_factory=namedtuple_row)
    return cursor.execute(statement, [wanted[name] for name in names], prepare=True, binary=True)


def check_kinds(cue: Cue) -> None:
    """Raise `InvalidInput` for no kind, or a kind that does not exist."""
    unknown = sorted(set(cue.types) - set(KINDS))
    if unknown or not cue.types:
        raise InvalidInput(
            f"can't recall memories of type {unknown[0] if unknown else None!r}; known: {', '.join(KINDS)}"
        )


def candidate_count(cue: Cue, policy: RecallPolicy) -> int:
    """Return how many memories each nominator puts forward, one of few sizes."""
    count = policy.candidate_count
    least = policy.dated_count if cue.periods else 0
    # Doubled, not exact: the limit is a constant of the statement, and each size is prepared and planned by itself.
    while count < max(cue.limit, least, min(2 * cue.limit, policy.spare_up_to)):
        count *= 2
    return count


def with_full_texts(connection: Connection, agent_id: str, answers: list[Recalled]) -> list[Recalled]:
    """Return the answers, with the full text of those episodes that are shown in full."""
    # An episode's detail may be a whole transcript: it is read for the answers only, not for every candidate.
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
    """Return the search statement for `kinds`, and the names of its numbered parameters in order.

    `traits` are those of the question: of the `past`, of what is `ahead`, `dated`, compared `by_words` only.
    """
    # Width and space must be constants for the index to be used, and limits for the plan to fit any agent.
    is_past, is_by_words = "past" in traits, "by_words" in traits
    facts_of = "facts_then" if is_past else "facts_ahead" if "ahead" in traits else "facts_now"
    common: dict[str, Composable] = {
        **{name: Constant(value) for name, value in vars(policy).items()},
        "candidate_count": Constant(candidates),
        "breadth": Constant(max(candidates, policy.scan_breadth)),
        "dimensions": Constant(space.dimensions),
        "space_id": Constant(space.id),
        "in_reach": SQL(BLOCKS["in_reach"]),
        "fact_visible": SQL(BLOCKS[facts_of]),
        "kinds": Constant(list(kinds)),
    }
    has_both = {"fact", "episode"} <= set(kinds)
    common["changed"] = SQL(BLOCKS["changed_episodes"] if has_both else "").format(**common)
    common["changed_ids"] = SQL(BLOCKS["changed_ids"] if has_both else "null::uuid[]")
    nominators = {"near": not is_by_words, "retired": is_past and not is_by_words, "dated": "dated" in traits}
    dense = SQL(BLOCKS["no_vector" if is_by_words else "cosine"]).format(**common)
    parts = [parts_of_kind(kind, {**common, "dense": dense}, nominators, is_past=is_past) for kind in kinds]
    composed = SQL(BLOCKS["search"]).format(
        **common,
        sizes=union_of_kinds("size_of_kind", parts, "\n    union all\n"),
        nominations=union_of_kinds("nominations_of_kind", parts, "\n        union all\n"),
    )
    return numbered(composed)


def numbered(composed: Composed) -> tuple[bytes, tuple[str, ...]]:
    """Return a statement for a `RawCursor`, its parameters numbered, and their names in order.

    The driver parses a long text at every call, which takes as long as a search; this is done once.
    """
    numbers: dict[str, int] = {}
    text = PARAMETER.sub(lambda found: f"${numbers.setdefault(found[1], len(numbers) + 1)}", composed.as_string())
    return text.encode(), tuple(numbers)


def parts_of_kind(
    kind: str, common: Mapping[str, Composable], nominators: Mapping[str, bool], *, is_past: bool
) -> dict[str, Composable]:
    """Return the parts of the search for one kind: its table, conditions and columns, and the nominators in use."""
    table = KINDS[kind].table
    is_fact = table == "facts"
    visible = common["fact_visible"] if is_fact else SQL(BLOCKS[f"{table}_{'then' if is_past else 'now'}"])
    parts = {
        **common,
        "kind": Constant(kind),
        "table": Identifier("heart", table),
        "table_name": Constant(f"heart.{table}"),
        "visible": visible,
        # A partial index is used only where the query repeats its condition; one about the past would not otherwise.
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
    """Return one block, filled in for each kind and joined by `joint`."""
    return SQL(joint).join(SQL(BLOCKS[block]).format(**of_kind) for of_kind in parts)


def check_scan(took_effect: tuple[Any, ...], breadth: str) -> None:
    """Raise `Unsupported` unless the settings of the index scan are those that were sent."""
    # A pgvector without them accepts the settings as unknown placeholders, and would cut filtered answers short.
    if took_effect != (SCAN, breadth):
        raise Unsupported(
            f"pgvector took hnsw settings {took_effect}, asked for {(SCAN, breadth)}; pgvector 0.8 or newer is needed"
        )


def agents_with_stale_statistics(connection: Connection, agent_ids: Sequence[str]) -> dict[str, bool]:
    """Return which of some agents have memories not counted by `refresh_statistics`, and whether to recount all."""
    return dict(connection.execute(BLOCKS["agents_to_count"], {"agent_ids": list(agent_ids)}).fetchall())


def refresh_statistics(connection: Connection, agent_id: str, *, is_full: bool | None = None) -> None:
    """Count in how many memories each word occurs, and how long memories are; after an import, and every night.

    What changed since the last time is added, or with `is_full` all counted again; None asks which is needed, if any.
    """
    connection.execute(BLOCKS["one_counter"], {"agent_id": agent_id})
    if is_full is None:
        is_full = agents_with_stale_statistics(connection, [agent_id]).get(agent_id)
    if is_full is not None:
        statement = statistics_statement("recount_statistics" if is_full else "move_statistics")
        connection.execute(statement, {"agent_id": agent_id})


@cache
def statistics_statement(block: str) -> Composed:
    """Return a statement that counts words and stores the counts of memories."""
    return SQL(BLOCKS[block]).format(store_corpus_stats=SQL(BLOCKS["store_corpus_stats"]))


# --- the verbs ---

USAGE = statements("nous_online.recall", "usage.sql")
LIKELY = 0.5  # probability from which a recall counts as confident
Feedback = Literal["cited", "ignored"]


@dataclass(frozen=True)
class Recall(Sequence[Recalled]):
    """The answers of one recall, best first; its `id` takes the feedback."""

    id: UUID
    query: str
    answers: tuple[Recalled, ...]
    confidence: float = 0.0
    """The chance that the best one, or the best fact shown, is an answer, 0 to 1; calibrated on facts and their local
    embeddings."""
    is_by_words: bool = False
    """Whether only words were compared because the embedder failed: memories in other words are missing then."""

    @property
    def is_confident(self) -> bool:
        """Whether the best answer is more likely right than not."""
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


class RecallVerbs(Verbs):
    """What an agent does with all its memories."""

    def recall(self, query: Query, *, deadline_s: float | None = None, **details: Unpack[RecallDetails]) -> Recall:
        """Return the memories that answer `query`, best first, with the parts of each score, and log the recall.

        A memory encoded in the same frame scores 1.3 times as much, one encoded under the same censors up to 1.2 times;
        neither hides anything. A server that takes no writes, such as a standby, answers too, and logs nothing.
        Raises `InvalidInput`, `DeadlineExceeded` or `Unavailable`.
        """
        agent, deadline = self.agent, self.agent.deadline(deadline_s)
        check_known(details, RecallDetails)
        text = checked_as(Query, "query", query)
        told = checked_details(RecallDetails, with_session_frame(agent, details, RecallDetails, deadline))
        at, session_id = told.pop("at") or datetime.now(UTC), told.pop("session_id")
        kinds, min_score = tuple(told.pop("kinds") or KINDS), told.pop("min_score") or 0.0
        vectors = agent.embed_if_able([text], deadline)
        vector = None if vectors is None else vectors[0]
        periods = periods_in(text, at=told["as_of"] or at)
        is_ahead = told["as_of"] is None and asks_ahead(text, at)
        moment: dict[str, Any] = {"periods": periods, "at": at, "is_ahead": is_ahead}
        cue = Cue(query=text, embedding=vector, types=kinds, min_score=min_score, **moment, **told)
        check_kinds(cue)
        with agent.transaction(deadline, is_pipelined=True) as connection:
            found = recall(connection, agent.id, cue, space=agent.embedder.space, policy=RecallPolicy())
            if found.can_be_logged:
                log_recall(connection, agent, cue, found, at=at, session_id=session_id)
        return Recall(found.recall_id, text, tuple(found.answers), found.confidence, is_by_words=vector is None)

    def cite(
        self,
        recall_id: UUID | str,
        memory_ids: Iterable[UUID | str],
        *,
        at: datetime | str | None = None,
        deadline_s: float | None = None,
    ) -> int:
        """Record which answers of a recall were used; return for how many of them that was new.

        What is cited rises with the nights, and becomes a probe that no night may make harder to find.
        """
        return self._give_feedback(recall_id, memory_ids, "cited", at, deadline_s)

    def ignore(
        self,
        recall_id: UUID | str,
        memory_ids: Iterable[UUID | str],
        *,
        at: datetime | str | None = None,
        deadline_s: float | None = None,
    ) -> int:
        """Record which answers of a recall were of no use; return for how many of them that was new."""
        return self._give_feedback(recall_id, memory_ids, "ignored", at, deadline_s)

    def _give_feedback(
        self,
        recall_id: UUID | str,
        memory_ids: Iterable[UUID | str],
        kind: Feedback,
        at: datetime | str | None,
        deadline_s: float | None,
    ) -> int:
        """Record how answers were used, the same use of one once.

        Raises `NotFound` for an unknown recall, `InvalidInput` for a memory that is not among its answers.
        """
        deadline = self.agent.deadline(deadline_s)
        moment = checked_moment("at", at) or datetime.now(UTC)
        asked, named = checked_id("recall_id", recall_id), checked_ids("memory_ids", memory_ids)
        key = {"agent_id": self.agent.id, "recall_id": asked}
        with self.agent.transaction(deadline) as connection:
            row = connection.execute(USAGE["lock_recall"], key).fetchone()
            if row is None:
                raise NotFound(f"agent {self.agent.id!r} has no recall {asked}")
            result_ids, cited_ids, ignored_ids = row
            foreign = sorted(set(named) - set(result_ids))
            if foreign:
                raise InvalidInput(f"recall {asked} did not find memory {foreign[0]}; cite only what it returned")
            fresh = sorted(set(named) - set(cited_ids if kind == "cited" else ignored_ids))
            connection.execute(USAGE[f"store_{kind}"], {**key, "ids": fresh})
            connection.execute(USAGE[f"count_{kind}"], {**key, "ids": fresh, "at": moment})
        return len(fresh)


def log_recall(
    connection: Connection, agent: Agent, cue: Cue, found: Answers, *, at: datetime, session_id: str | None
) -> None:
    """Store the question and the ids found, and add one to the retrieval count of each memory found."""
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
    # This transaction commits without waiting for the disk (docs/decisions/0007): a crash of the server may lose the
    # log of its last 0.6 s, but never a memory.
    connection.execute(USAGE["log_recall"], row, prepare=True)
