"""Assembling a context: read standing memories, recall and predict others, arrange them, and log those shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import chain, groupby
from typing import Any, Unpack
from uuid import UUID, uuid4

from psycopg import Connection, Cursor, RawCursor
from psycopg.rows import DictRow, dict_row
from psycopg.sql import SQL, Composable, Identifier, Literal
from psycopg.types.json import Jsonb

from nous_online.context.context_lines import (
    ERROR,
    FILE,
    OPEN_QUESTION,
    POLICY,
    QUESTION,
    TASK,
    TIERS,
    Answered,
    Context,
    ContextEntry,
    ContextLine,
    ContextReach,
    Contradicting,
    Known,
    Linked,
    Prediction,
    Tier,
)
from nous_online.context.packing import (
    Placed,
    Shown,
    arrange,
    ids_of,
    lines_of,
    pointers,
    relevant_answers,
    render,
    tier_budgets,
    tier_entries,
    topics_of,
    usual_budget,
)
from nous_online.context.predicting import (
    PredictionRequest,
    nearness_of,
    predict,
    predict_memories,
    record_sighting,
    vectors_of,
)
from nous_online.context.scorer import Signals, checked_signals, file_words
from nous_online.core.deadline import Deadline
from nous_online.core.details import (
    AskedAt,
    AskedLimit,
    AskingProject,
    AskingSession,
    AskingUser,
    AssemblyDetails,
    SignalsInput,
)
from nous_online.core.domain import KINDS
from nous_online.core.fields import check_known, checked_as, checked_details
from nous_online.core.policy import DEFAULT_SESSION
from nous_online.core.validation import checked_limit, checked_moment, checked_optional
from nous_online.database.statements import statements
from nous_online.language.minilm import Vectors
from nous_online.language.tokens import counting, tokens_of
from nous_online.memories import sessions
from nous_online.memories.agent import Agent, Verbs, loggable
from nous_online.memories.decisions import NORMAL_PATH
from nous_online.memories.sessions import NOTE, Session, held_items
from nous_online.recall.ranking import RecallPolicy, periods_in
from nous_online.recall.recall import BLOCKS as RECALL
from nous_online.recall.recall import Cue, FoundMemory, numbered, recall

BLOCKS = statements("nous_online.context", "context.sql")
LINKED_FROM = 10
"""How many of the best answers are followed to the memories they are linked to."""
CONVENTIONS = (
    "convention", "conventions", "preference", "preferences", "style", "standard", "guideline", "policy", "rule",
)  # fmt: skip
"""Categories of facts that hold for a whole project, whatever is being done."""
BESIDE = frozenset({"section", "place", "pair", "detected_at", "weight"})
"""Columns of the queries that are not fields of a memory."""


@dataclass(frozen=True)
class ContextCue:
    """One text that memories are recalled for."""

    kind: str
    """QUESTION, TASK, FILE or ERROR."""
    text: str
    searched: str
    """The query of the recall: for a file, the words of its path without the extension."""


@dataclass(frozen=True)
class ContextRequest:
    """The checked arguments of `assemble_context`, completed by those of the session."""

    budget: int
    frame: str | None
    query: str | None
    signals: Signals
    reach: ContextReach
    active_censors: Sequence[str] | None
    session: Session | None

    @property
    def cues(self) -> list[ContextCue]:
        """The texts to recall for, the most important first."""
        cues = [(QUESTION, self.query), (TASK, self.reach.task), (FILE, self.reach.file)]
        cues += [(ERROR, error) for error in self.signals.recent_errors[: POLICY.errors]]
        return [ContextCue(kind, text, file_words(text) if kind == FILE else text) for kind, text in cues if text]


class ContextVerbs(Verbs):
    """What goes before the model, and what the agent is likely to want next."""

    def assemble_context(self, *, deadline_s: float | None = None, **details: Unpack[AssemblyDetails]) -> Context:
        """Return what is worth knowing now as a text within a budget of tokens, each line with the reason it is there.

        `budget` (by default that of the `frame`, else 8,000) is never exceeded, no memory appears twice, and open
        contradictions are marked. `query`, `signals` and the session say what it is about; without them it holds what
        matters in any case: what is pinned or in doubt, the latest episodes, what is most used. `cite` and `ignore`
        take its `recall_id`. Raises `InvalidInput`, `DeadlineExceeded` or `Unavailable`.
        """
        agent, deadline = self.agent, self.agent.deadline(deadline_s)
        request = checked_request(agent, details, deadline)
        # Embedded in one call and before the transaction opens; texts that `predict` has embedded come from its cache.
        texts = [cue.searched for cue in request.cues]
        vectors = vectors_of(agent, request.reach.session_id, texts, deadline) if texts else []
        with agent.transaction(deadline, is_pipelined=True) as connection:
            prepared = connection.execute(BLOCKS["prepare_context"], prepare=True)
            known = read_known(connection, agent, request, vectors or [None] * len(texts))
            placed, left_out = arrangement(known, request)
            recall_id, can_be_logged = prepared.fetchall()[0][:2]
            lines = lines_of(placed)
            parts = render(lines)
            text = "\n".join(parts.values())
            context = Context(
                recall_id=recall_id,
                text=text,
                budget=request.budget,
                token_count=tokens_of(text),
                counting=counting(),
                tokens={tier: tokens_of(parts.get(tier, "")) for tier in TIERS},
                lines=lines,
                left_out=left_out,
                is_by_words=vectors is None,
            )
            if can_be_logged:
                sought = (line for line in placed["relevant"] if line.entry.is_sought)
                log_context(connection, agent, context, request, ids_of(sought))
        return context

    def predict(  # noqa: PLR0913 (what is seen, and when, where and for whom)
        self,
        *,
        signals: SignalsInput,
        session_id: AskingSession = None,
        limit: AskedLimit = 50,
        user_id: AskingUser = None,
        project_id: AskingProject = None,
        at: AskedAt = None,
        deadline_s: float | None = None,
    ) -> Prediction:
        """Return the memories this session is likely to want, each with its chance and reasons, and store its signals.

        Based on what sessions with the same file, module, branch, error, hour, collaborator or activity used; without
        any such session, on memories near to the words of the signals. The session's next context starts from it.
        With `at` it is a prediction for another moment, and nothing is stored.
        Raises `InvalidInput`, `DeadlineExceeded` or `Unavailable`.
        """
        deadline = self.agent.deadline(deadline_s)
        told_at = checked_moment("at", at)
        wanted = PredictionRequest(
            session_id=checked_optional("session_id", session_id, max_characters=100) or str(uuid4()),
            at=told_at or datetime.now(UTC),
            limit=checked_limit(limit),
            user_id=checked_as(AskingUser, "user_id", user_id),
            project_id=checked_as(AskingProject, "project_id", project_id),
        )
        return predict(self.agent, checked_signals(signals), wanted, deadline, is_now=told_at is None)


def checked_request(agent: Agent, details: AssemblyDetails, deadline: Deadline) -> ContextRequest:
    """Return the checked arguments; frame, task and censors that are not given come from the session."""
    check_known(details, AssemblyDetails)
    values = checked_details(AssemblyDetails, details)
    at, session_id = values["at"], values["session_id"]
    signals = checked_signals(values["signals"])
    # The default session is shared by all users: its task must not go into the context of one of them.
    is_for_anyone = details.get("user_id") is None and details.get("project_id") is None
    session = None
    if at is None and (session_id is not None or is_for_anyone):
        with agent.transaction(deadline, is_pipelined=True) as connection:
            session = sessions.read_session(connection, agent.id, session_id or DEFAULT_SESSION)
    frame = values["frame"] or signals.activity or (session.frame if session else None)
    return ContextRequest(
        budget=values["budget"] or usual_budget(frame),
        frame=frame,
        query=values["query"],
        signals=signals,
        reach=ContextReach(
            agent_id=agent.id,
            at=at or datetime.now(UTC),
            is_past=at is not None,
            session_id=session_id,
            user_id=values["user_id"],
            project_id=values["project_id"],
            file=signals.current_file,
            task=signals.task or (session.task if session else None),
        ),
        active_censors=values["active_censors"] or (session.active_censors if session else None),
        session=session,
    )


# --- reading ---


def read_known(
    connection: Connection, agent: Agent, request: ContextRequest, vectors: Sequence[Vectors | None]
) -> Known:
    """Read everything the context may be made of: standing, recalled, predicted, held and linked memories."""
    reach, session = request.reach, request.session
    standing, pairs, decisions = (
        query_known(connection, name, reach) for name in ("standing", "contradictions", "decisions")
    )
    # The index names the latest facts only where there is no cue.
    latest = None if request.cues else query_known(connection, "latest", reach)
    if reach.session_id and not reach.is_past and request.signals != Signals():
        record_sighting(connection, agent.id, request.signals, reach.session_id, reach.at)
    answered = [
        recall_for(connection, agent, request, cue, vector) for cue, vector in zip(request.cues, vectors, strict=True)
    ]
    near = nearness_of(answer for each in answered for answer in each.answers)
    # Beside a question or a task only likely memories may take room; without either, any that were used before.
    least = POLICY.least_confidence if request.query or reach.task else 0.0
    asked = PredictionRequest(
        reach.session_id or "", reach.at, POLICY.predicted, reach.user_id, reach.project_id, least
    )
    predicted, _ = predict_memories(connection, agent.id, request.signals, asked, near, is_used_only=True)
    held = held_items(session.items) if session else []
    best = [answer.id for each in answered[:1] for answer in relevant_answers(each)[:LINKED_FROM]]
    ids = [each.memory_id for each in predicted] + [item.id for item in held if item.kind != NOTE]
    memories = by_section([*standing.fetchall(), *(latest.fetchall() if latest else ())])
    countable = {each.id for each in chain(*memories.values(), *(each.answers for each in answered))}
    counts = connection.execute(BLOCKS["use_counts"], {"agent_id": agent.id, "ids": sorted(countable)}, prepare=True)
    known = Known(
        memories=memories,
        contradictions=list(pairs_of(pairs.fetchall())),
        decisions=decisions.fetchall(),
        answered=answered,
        predicted=predicted,
        named=read_named(connection, reach, ids, best),
        held=held,
        threads=session.open_threads if session else (),
    )
    known = with_contradictions(connection, known, reach)
    return replace(known, use_counts=dict(counts.fetchall()))


def recall_for(
    connection: Connection, agent: Agent, request: ContextRequest, cue: ContextCue, vector: Vectors | None
) -> Answered:
    """Recall for one cue; the first one gets as many answers as the budget may have room for."""
    reach = request.reach
    room = min(max(request.budget // POLICY.tokens_an_answer, POLICY.least_answers), POLICY.most_answers)
    asked = Cue(
        query=cue.searched,
        embedding=vector,
        limit=room if cue == request.cues[0] else POLICY.answers_beside,
        detail="index",
        frame=request.frame,
        active_censors=request.active_censors,
        as_of=reach.at if reach.is_past else None,
        user_id=reach.user_id,
        project_id=reach.project_id,
        periods=periods_in(cue.text, at=reach.at) if cue.kind in (QUESTION, TASK) else (),
    )
    found = recall(connection, agent.id, asked, space=agent.embedder.space, policy=RecallPolicy())
    return Answered(cue.kind, cue.text, found.answers)


def query_known(connection: Connection, statement: str, reach: ContextReach, **others: Any) -> Cursor[DictRow]:
    """Send one of the queries of `statements_of`; in pipeline mode it waits only when rows are fetched."""
    parameters = {
        **vars(reach),
        "as_of": reach.at,
        "recent_from": reach.at - timedelta(seconds=POLICY.recent_s),
        "ids": None,
        "pairs": POLICY.contradictions,
        **others,
    }
    text, names = statements_of(is_past=reach.is_past)[statement]
    cursor = RawCursor(connection, row_factory=dict_row)
    return cursor.execute(text, [parameters[name] for name in names], prepare=True)


def by_section(rows: Sequence[DictRow]) -> dict[str, list[FoundMemory]]:
    """Return the standing memories by section, each in its order."""
    memories: dict[str, list[FoundMemory]] = {}
    for row in sorted(rows, key=lambda row: row["place"]):
        memories.setdefault(row["section"], []).append(memory_without_scores(row))
    return memories


def memory_without_scores(row: Mapping[str, Any]) -> FoundMemory:
    """Return the memory of a row, with scores of 0: no question found it."""
    columns = {name: value for name, value in row.items() if name not in BESIDE}
    return FoundMemory(**columns, dense=0.0, lexical=0.0)


def pairs_of(rows: Sequence[DictRow]) -> Iterator[Contradicting]:
    """Yield the contradictions of which both facts are visible to the caller."""
    for (_, detected_at), both in groupby(rows, key=lambda row: (row["pair"], row["detected_at"])):
        facts = [memory_without_scores(row) for row in both]
        if len(facts) == 2:  # noqa: PLR2004 (a pair)
            yield Contradicting(detected_at, (facts[0], facts[1]))


def read_named(
    connection: Connection, reach: ContextReach, ids: Sequence[UUID], linked_from: Sequence[UUID]
) -> list[Linked]:
    """Return the memories with these ids, and those linked to others, as far as they are visible and in reach."""
    if not ids and not linked_from:
        return []
    rows = query_known(connection, "named", reach, ids=list(ids), linked_from=list(linked_from)).fetchall()
    return [Linked(memory_without_scores(row), row["weight"]) for row in rows]


def with_contradictions(connection: Connection, known: Known, reach: ContextReach) -> Known:
    """Return `known` with the open contradictions of memories that may be shown, that of the best answer first."""
    recalled = (answer.memory for each in known.answered for answer in each.answers)
    standing = (memory for name, own in known.memories.items() if name != "latest" for memory in own)
    shown = chain(recalled, standing, (each.memory for each in known.named))
    ids = list(dict.fromkeys(memory.id for memory in shown if memory.contradiction_status != "none"))
    if not ids:
        return known
    rows = query_known(connection, "contradictions", reach, ids=ids, pairs=POLICY.contradictions_shown).fetchall()
    places = {each: place for place, each in enumerate(ids)}
    own = sorted(pairs_of(rows), key=lambda pair: min(places.get(each, len(ids)) for each in pair.ids))
    pairs = {each.ids: each for each in (*own, *known.contradictions)}
    return replace(known, contradictions=list(pairs.values()))


# --- arranging ---


def arrangement(known: Known, request: ContextRequest) -> tuple[dict[Tier, list[Placed]], dict[Tier, int]]:
    """Return the lines of each tier, and how many entries of each found no room."""
    entries = tier_entries(known, at=request.reach.at)
    topics = topics_of(known, entries)

    def points(shown: Shown) -> list[ContextEntry]:
        return pointers(topics, shown, known.use_counts, count=POLICY.topics)

    placed = arrange(entries, points, rooms=tier_budgets(request.budget, frame=request.frame))
    shown = ids_of(line for tier in TIERS[:-1] for line in placed[tier])
    left_out: dict[Tier, int] = {tier: len(not_placed(entries[tier], placed[tier], shown)) for tier in TIERS[:-1]}
    return placed, {**left_out, "index": len(points(shown)) - len(placed["index"])}


def not_placed(entries: Sequence[ContextEntry], placed: Sequence[Placed], shown: Shown) -> Set[object]:
    """Return the entries of a tier that are not shown: by memory ids, or by text for open threads, which have none."""
    texts = {line.shown[1] for line in placed}
    of_memories = {entry.memory_ids for entry in entries if entry.memory_ids and shown.isdisjoint(entry.memory_ids)}
    return of_memories | {entry.first[1] for entry in entries if not entry.memory_ids and entry.first[1] not in texts}


# --- logging ---


def log_context(
    connection: Connection, agent: Agent, context: Context, request: ContextRequest, sought: Set[UUID]
) -> None:
    """Log the context as one recall, and count the memories shown for this question or task as retrieved."""
    is_past = request.reach.is_past
    # Memories that only fill their tier are not counted: else one that was used once would be shown, and counted, for
    # ever. Neither are contexts as of another moment. Decisions, notes and pointers take no feedback.
    used: Set[UUID] = frozenset() if is_past else sought
    kinds: Mapping[str, str] = {**dict(zip(KINDS, KINDS, strict=True)), "contradiction": "fact"}
    memories: list[ContextLine] = [line for line in context.lines if line.tier != "index" and line.kind in kinds]
    shown = [(kinds[line.kind], each) for line in memories for each in line.memory_ids]
    query = "context" if request.query is None else f"context: {loggable(request.query, agent.rights)}"
    row = {
        "id": context.recall_id,
        "agent_id": agent.id,
        "at": datetime.now(UTC) if is_past else request.reach.at,
        "query": query,
        "types": list(KINDS),
        "limit": len(shown),
        "frame": request.frame,
        "active_censors": None if request.active_censors is None else Jsonb(list(request.active_censors)),
        "as_of": request.reach.at if is_past else None,
        "session_id": request.reach.session_id,
        "user_id": request.reach.user_id,
        "result_ids": [each for _, each in shown],
        "result_scores": [float(each in used) for _, each in shown],
        "kinds": [kind for kind, _ in shown],
        "retrieved": [int(each in used) for _, each in shown],
    }
    connection.execute(BLOCKS["log_context"], row, prepare=True)


# --- the statements ---


@dataclass(frozen=True)
class Section:
    """A section read for every context: which memories of a kind, in which order, and how many."""

    name: str
    kind: str
    condition: str
    order: str
    limit: int
    category: str | None = None


def sections() -> tuple[Section, ...]:
    """Return the sections read for every context, and the latest facts."""
    pinned = ("is_pinned", "by_learning", POLICY.pinned)
    return (
        Section("pinned", "fact", *pinned),
        Section("pinned", "procedure", *pinned),
        Section("pinned", "censor", *pinned),
        Section("pinned", "episode", "is_pinned", "by_start", POLICY.pinned),
        Section("open_question", "fact", "is_of_category", "by_learning", POLICY.open_questions, OPEN_QUESTION),
        *(
            Section("convention", "fact", "is_of_category", "by_learning", POLICY.conventions, category)
            for category in CONVENTIONS
        ),
        Section("latest", "fact", "is_any", "by_learning", POLICY.latest),
        Section("episode", "episode", "is_told", "by_start", POLICY.episodes),
        Section("failure", "episode", "is_recent_failure", "by_start", POLICY.failures),
        Section("workflow", "procedure", "is_any", "by_use", POLICY.workflows),
        Section("censor", "censor", "is_blocking", "by_severity", POLICY.censors),
    )


@cache
def statements_of(*, is_past: bool) -> Mapping[str, tuple[bytes, tuple[str, ...]]]:
    """Return the queries of a context by name, each one statement for all kinds it reads, as `numbered`; cached."""
    reference, file = (SQL(NORMAL_PATH).format(path=SQL(path)) for path in ("a.reference", "file"))
    parts = {
        section: SQL(BLOCKS["section"]).format(
            **parts_of_kind(section.kind, is_past=is_past),
            section=Literal(section.name),
            condition=SQL(BLOCKS[section.condition]).format(category=Literal(section.category), reference=reference),
            order=SQL(BLOCKS[section.order]),
            limit=Literal(section.limit),
        )
        for section in sections()
    }
    kinds = [SQL(BLOCKS["named_of_kind"]).format(**parts_of_kind(kind, is_past=is_past)) for kind in KINDS]
    both = SQL("\nunion all\n")
    composed = {
        "standing": both.join(part for section, part in parts.items() if section.name != "latest"),
        "latest": both.join(part for section, part in parts.items() if section.name == "latest"),
        "contradictions": SQL(BLOCKS["contradictions"]).format(**parts_of_kind("fact", is_past=is_past)),
        "decisions": SQL(BLOCKS["decisions"]).format(file=file, limit=Literal(POLICY.decisions)),
        "named": SQL(BLOCKS["named"]).format(kinds=both.join(kinds), links=Literal(POLICY.links)),
    }
    return {name: numbered(statement) for name, statement in composed.items()}


def parts_of_kind(kind: str, *, is_past: bool) -> dict[str, Composable]:
    """Return the columns and conditions of a kind: the same that recall uses."""
    table = KINDS[kind].table
    shown = SQL(RECALL[f"{table}_shown"]).format()
    return {
        "table": Identifier("heart", table),
        "columns": SQL(BLOCKS["columns_of_kind"]).format(kind=Literal(kind), shown=shown),
        "visible": SQL(RECALL[f"{table}_{'then' if is_past else 'now'}"]),
        "in_reach": SQL(RECALL["in_reach"]),
    }
