"""Sends batches of open pairs: the intent is committed first, then the batch created once, then its id stored."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, date, datetime
from typing import Any
from uuid import UUID, uuid4

from psycopg import Connection
from pydantic import TypeAdapter

from nous_online.core.errors import InvalidInput
from nous_online.database.connection import Database
from nous_online.language.claude.anthropic_api import checked_model, create_batch
from nous_online.language.claude.client import Claude
from nous_online.language.claude.replies import Failure, LLMError
from nous_online.language.claude.spending import has_price
from nous_online.language.pairs.judging import Verdict
from nous_pipelines.batches.batch_requests import (
    BatchDraft,
    DraftedBatches,
    Models,
    PairQuestion,
    PriorAttempts,
    draft_batches,
    model_for,
)
from nous_pipelines.batches.batch_rows import (
    answered_pairs,
    hold_batches,
    open_pairs,
    prior_attempts,
    set_state,
    spent,
    store_intent,
)
from nous_pipelines.batches.collecting import AnswerStatus
from nous_pipelines.failpoints import reach

TIMEOUT_S = 600.0
MOST_FAILURES = 2
"""Consecutive batches that could not be sent after which the others wait for the next night."""
DEFINITE = {Failure.PERMANENT, Failure.QUOTA}
"""Failures that prove that no batch was created."""
TURNED_AWAY = {429, 529}
"""HTTP statuses (rate limit, overload) that prove it, too, although the request may succeed later."""


@dataclass(frozen=True)
class AgentQuestions:
    """The pairs of one agent to ask about, most urgent first, and the night's budget for the agent in US dollars."""

    agent_id: str
    questions: Sequence[PairQuestion]
    limit_usd: float


@dataclass(frozen=True)
class Estimate:
    """The open pairs of one agent: those in open batches, and drafts of what would be asked now."""

    agent_id: str
    on_their_way: int
    to_ask: DraftedBatches

    @property
    def open_count(self) -> int:
        """The number of pairs without a verdict."""
        asked = self.to_ask
        return self.on_their_way + asked.pair_count + asked.held_back + asked.too_long


@dataclass
class SentBatches:
    """The batches sent, and what prevented more."""

    batches: int = 0
    pairs: int = 0
    requests: int = 0
    estimated_usd: float = 0.0
    held_back: dict[str, int] = field(default_factory=dict[str, int])
    """By agent the number of pairs that the budget leaves for a later night."""
    obstacles: list[str] = field(default_factory=list[str])
    warnings: list[str] = field(default_factory=list[str])
    """Notices about a model that was asked, such as its retirement."""

    @property
    def figures(self) -> dict[str, Any]:
        """The metadata of the asset."""
        return {**vars(self), "held_back": sum(self.held_back.values())}


def estimate_for(database: Database, wanted: AgentQuestions, *, night: date, models: Models) -> Estimate:
    """Return what would be asked for an agent tonight, without writing or sending anything."""
    with database.transaction(timeout_s=TIMEOUT_S) as connection:
        return estimate_open_pairs(connection, wanted, night=night, models=models)


def estimate_open_pairs(
    connection: Connection,
    wanted: AgentQuestions,
    *,
    night: date,
    models: Models,
    unfit: Collection[str] = (),
    stops_when_full: bool = False,
) -> Estimate:
    """Return the open pairs of an agent and drafts for them, by `stops_when_full` only up to the first full batch.

    Pairs for models in `unfit` are left out. Raises `InvalidInput` for a model without a price.
    """
    agent_id, questions = wanted.agent_id, wanted.questions
    hashes = [question.pair_hash for question in questions]
    # Read before the verdicts: a batch imported in between is still left out, instead of asked again.
    busy = open_pairs(connection, agent_id)
    known = answered_pairs(connection, agent_id, hashes, [models.judge, models.fallback])
    before = prior_attempts(connection, agent_id)
    unsettled = [each for each in questions if is_unsettled(each.pair_hash, known, before, models)]
    free = [question for question in unsettled if question.pair_hash not in busy]
    askable = [each for each in free if model_for(each, models=models, tried=before) not in unfit]
    left_usd = wanted.limit_usd - spent(connection, agent_id, night)
    asked = draft_batches(
        agent_id, askable, models=models, tried=before, left_usd=left_usd, stops_when_full=stops_when_full
    )
    return Estimate(agent_id, len(unsettled) - len(free), asked)


def is_unsettled(pair_hash: str, known: Mapping[tuple[str, str], str], before: PriorAttempts, models: Models) -> bool:
    """Return whether a pair has no verdict yet, or a refusal that the fallback has not been asked about."""
    verdict = known.get((pair_hash, models.judge))
    if verdict is None:
        return True
    is_refused = verdict == Verdict.UNSURE and before.count(models.judge, pair_hash, AnswerStatus.REFUSED) > 0
    return is_refused and (pair_hash, models.fallback) not in known


def send(
    database: Database,
    claude: Claude,
    wanted: Iterable[AgentQuestions],
    *,
    night: date,
    models: Models,
    most_batches: int | None = None,
) -> SentBatches:
    """Send the open pairs of agents, in one or more batches for each agent and model; obstacles are returned.

    A pair is never in two open batches, whoever else sends: those of open batches are left out under the agent's lock.
    At most `most_batches` are tried.
    """
    sender = Sender(database, claude, night, models, most_batches)
    for each in wanted:
        if sender.is_stopped:
            break
        sender.send_all(each)
    return sender.sent


class Sender:
    """State of one night's sending: models that can be used, what was sent, and consecutive failures."""

    def __init__(
        self, database: Database, claude: Claude, night: date, models: Models, most_batches: int | None = None
    ) -> None:
        self.sent = SentBatches()
        self.is_stopped = False
        self._database, self._claude, self._night, self._models = database, claude, night, models
        self._left = most_batches
        self._usable_models, self._unusable_models = set[str](), set[str]()
        self._asked = set[tuple[str, str]]()
        self._failures = 0

    def send_all(self, wanted: AgentQuestions) -> None:
        """Send batches for one agent until no pair is open, the budget is spent, or sending fails."""
        try:
            while not self.is_stopped and (draft := self._send_one(wanted)) is not None:
                self.sent.batches += 1
                self.sent.pairs += len(draft.pairs)
                self.sent.requests += len(draft.requests)
                self.sent.estimated_usd += draft.estimated_usd
        except InvalidInput as error:
            self._add_obstacle(error)

    def _send_one(self, wanted: AgentQuestions) -> BatchDraft | None:
        """Send the first batch of the open pairs and return its draft; None if there is none, or it failed."""
        row_id = uuid4()  # random: its first digits are the prefix of custom ids, and a UUID 7 begins with the time
        draft = self._store_next_intent(wanted, row_id)
        if draft is None:
            return None
        self._asked |= {(wanted.agent_id, question.pair_hash) for question in draft.pairs}
        if self._left is not None:
            self._left -= 1
            self.is_stopped = self._left <= 0
        reach("batch intended")
        try:
            batch = create_batch(self._claude, draft.named(row_id))
        except LLMError as error:
            self._note_failure(error)
            # Otherwise the batch may exist: the intent stays, and a later look finds the batch by its custom ids.
            if error.kind in DEFINITE or error.status in TURNED_AWAY:
                set_state(self._database, "set_failed", row_id, error=str(error))
            return None
        self._failures = 0
        reach("batch created")
        set_state(self._database, "set_submitted", row_id, batch_id=batch.id)
        reach("batch submitted")
        return draft

    def _store_next_intent(self, wanted: AgentQuestions, row_id: UUID) -> BatchDraft | None:
        """Store the intent of the first batch for a usable model, checking models as needed; None for no batch."""
        while not self.is_stopped:
            try:
                draft = self._store_intent(wanted, row_id)
            except InvalidInput as error:
                if not self._drop_unpriced_fallback():
                    raise
                self._add_obstacle(error)
                continue
            if draft is None or draft.model in self._usable_models:
                return draft
            self._check(draft.model)
        return None

    def _store_intent(self, wanted: AgentQuestions, row_id: UUID) -> BatchDraft | None:
        """Return the first draft of the open pairs, None for none; stores its intent if its model is known usable."""
        # Pairs of a batch that failed are not tried again in this night.
        still = [each for each in wanted.questions if (wanted.agent_id, each.pair_hash) not in self._asked]
        with self._database.transaction(timeout_s=TIMEOUT_S) as connection:
            hold_batches(connection, wanted.agent_id)
            asked = estimate_open_pairs(
                connection,
                replace(wanted, questions=still),
                night=self._night,
                models=self._models,
                unfit=self._unusable_models,
                stops_when_full=True,
            ).to_ask
            if not asked.drafts:
                self.sent.held_back[wanted.agent_id] = asked.held_back
                return None
            # Otherwise the caller checks the model, outside of this transaction, and drafts again.
            if asked.drafts[0].model in self._usable_models:
                store_intent(connection, row_id, self._night, asked.drafts[0], account=self._claude.account)
        return asked.drafts[0]

    def _check(self, model: str) -> None:
        """Ask the API about a model, before the first batch for it, and record whether it is usable."""
        try:
            warning = checked_model(self._claude, model, for_batches=True).warning(datetime.now(UTC))
        except LLMError as error:
            self._unusable_models.add(model)
            self._add_obstacle(error)
            self.is_stopped = model == self._models.judge or error.kind is Failure.QUOTA
            return
        self._usable_models.add(model)
        self.sent.warnings += [warning] if warning else []

    def _drop_unpriced_fallback(self) -> bool:
        """Mark the fallback as unusable if it alone has no price; return whether that was new."""
        fallback = self._models.fallback
        if fallback in self._unusable_models or has_price(fallback) or not has_price(self._models.judge):
            return False
        self._unusable_models.add(fallback)
        return True

    def _note_failure(self, error: LLMError) -> None:
        self._add_obstacle(error)
        self._failures += 1
        self.is_stopped |= error.kind is Failure.QUOTA or self._failures == MOST_FAILURES

    def _add_obstacle(self, error: Exception) -> None:
        if str(error) not in self.sent.obstacles:
            self.sent.obstacles.append(str(error))


# --- figures of what a night would ask: for dry runs, the metadata of the asset and the terminal ---


@dataclass(frozen=True)
class AgentFigures:
    """The number of pairs of one agent without a verdict, and how many of them are asked tonight."""

    agent_id: str
    pairs_open: int
    on_their_way: int
    pairs: int
    requests: int
    estimated_usd: float
    held_back: int
    too_long: int

    @classmethod
    def of(cls, estimate: Estimate) -> AgentFigures:
        """Return the figures of an estimate."""
        asked = estimate.to_ask
        return cls(
            estimate.agent_id,
            pairs_open=estimate.open_count,
            on_their_way=estimate.on_their_way,
            pairs=asked.pair_count,
            requests=asked.request_count,
            estimated_usd=asked.estimated_usd,
            held_back=asked.held_back,
            too_long=asked.too_long,
        )


COUNTED = ("pairs_open", "on_their_way", "pairs", "requests", "estimated_usd", "held_back", "too_long")


@dataclass(frozen=True)
class PlannedQuestions:
    """What a night asks `model`, by agent; empty without a key. `obstacle` is the reason why it can't ask."""

    model: str = ""
    agents: tuple[AgentFigures, ...] = field(default=())
    obstacle: str = ""

    @property
    def figures(self) -> dict[str, Any]:
        """The sums over all agents."""
        if not self.model:
            return {}
        sums = {name: sum(getattr(each, name) for each in self.agents) for name in COUNTED}
        return {"model": self.model, **sums, **({"obstacle": self.obstacle} if self.obstacle else {})}

    def as_dict(self) -> dict[str, Any]:
        """Return the value as plain JSON."""
        return asdict(self)


PLANNED_QUESTIONS = TypeAdapter(PlannedQuestions)
"""Reads back what `as_dict` wrote."""


def planned_questions(
    database: Database, wanted: Iterable[AgentQuestions], *, night: date, models: Models
) -> PlannedQuestions:
    """Return what a night would ask; a model without a price becomes the obstacle."""
    found: list[AgentFigures] = []
    try:
        for each in wanted:
            found.append(AgentFigures.of(estimate_for(database, each, night=night, models=models)))
    except InvalidInput as error:
        return PlannedQuestions(models.judge, tuple(found), str(error))
    return PlannedQuestions(models.judge, tuple(found))


def in_words(figures: Mapping[str, Any], *, is_dry_run: bool) -> str:
    """Return the figures as a sentence, empty if no pair is open."""
    if not figures.get("pairs_open"):
        return ""
    verb = "would be sent" if is_dry_run else "were to be sent"
    parts = [
        f"{figures['pairs_open']} pairs wait for {figures['model']}",
        f"{figures['requests']} requests {verb}, for at most {figures['estimated_usd']:.2f} USD",
        f"{figures['on_their_way']} are on their way" if figures["on_their_way"] else "",
        f"{figures['held_back']} are held back by max_cost_usd" if figures["held_back"] else "",
        f"{figures['too_long']} are too long to be asked about" if figures["too_long"] else "",
        figures.get("obstacle", ""),
    ]
    return "; ".join(filter(None, parts))
