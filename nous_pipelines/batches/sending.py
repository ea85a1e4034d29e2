"""Sending what is open: the wish is committed first, then a batch is created once, then its id is written down."""

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
from nous_pipelines.batches.batch_requests import Models, PairQuestion, Sheet, Tried, Written, model_for, written
from nous_pipelines.batches.batch_rows import (
    answered_pairs,
    hold_batches,
    open_pairs,
    set_state,
    spent,
    store_intent,
    tried,
)
from nous_pipelines.batches.collecting import Fate
from nous_pipelines.failpoints import reach

TIMEOUT_S = 600.0
MOST_FAILURES = 2
"""Batches in a row that could not be sent, after which the others wait for the next night."""
DEFINITE = {Failure.PERMANENT, Failure.QUOTA}
"""Failures after which it is certain that no batch was made."""
TURNED_AWAY = {429, 529}
"""Statuses of answers after which that is certain too, although the same request may be taken later."""


@dataclass(frozen=True)
class AgentQuestions:
    """The pairs of one agent that Claude is to decide about, the most urgent first, and what the night may cost it."""

    agent_id: str
    questions: Sequence[PairQuestion]
    limit_usd: float


@dataclass(frozen=True)
class Estimate:
    """What is open for one agent: pairs on their way, and what would be asked now."""

    agent_id: str
    on_their_way: int
    to_ask: Written

    @property
    def open_count(self) -> int:
        """How many pairs wait for a verdict."""
        asked = self.to_ask
        return self.on_their_way + asked.pair_count + asked.held_back + asked.too_long


@dataclass
class SentBatches:
    """What was sent, and what kept more from being sent."""

    batches: int = 0
    pairs: int = 0
    requests: int = 0
    estimated_usd: float = 0.0
    held_back: dict[str, int] = field(default_factory=dict[str, int])
    """Of each agent, how many pairs the budget leaves for another night."""
    obstacles: list[str] = field(default_factory=list[str])
    warnings: list[str] = field(default_factory=list[str])
    """What is to be done soon about a model that was asked."""

    @property
    def figures(self) -> dict[str, Any]:
        """This as it goes into the asset's metadata."""
        return {**vars(self), "held_back": sum(self.held_back.values())}


def estimate_for(database: Database, wanted: AgentQuestions, *, night: date, models: Models) -> Estimate:
    """Return what would be asked for an agent tonight; nothing is written and nothing sent."""
    with database.transaction(timeout_s=TIMEOUT_S) as connection:
        return estimated(connection, wanted, night=night, models=models)


def estimated(
    connection: Connection,
    wanted: AgentQuestions,
    *,
    night: date,
    models: Models,
    unfit: Collection[str] = (),
    stops_when_full: bool = False,
) -> Estimate:
    """Return what is open for an agent as the database knows it now, up to the first full batch if that is enough.

    Pairs that a model in `unfit` would be asked about are left out. Raises `InvalidInput` for a model without a price.
    """
    agent_id, questions = wanted.agent_id, wanted.questions
    hashes = [question.pair_hash for question in questions]
    busy = open_pairs(connection, agent_id)  # first: what comes home meanwhile is still left out, not asked about again
    known = answered_pairs(connection, agent_id, hashes, [models.judge, models.fallback])
    before = tried(connection, agent_id)
    unsettled = [each for each in questions if is_unsettled(each.pair_hash, known, before, models)]
    free = [question for question in unsettled if question.pair_hash not in busy]
    askable = [each for each in free if model_for(each, models=models, tried=before) not in unfit]
    left_usd = wanted.limit_usd - spent(connection, agent_id, night)
    asked = written(agent_id, askable, models=models, tried=before, left_usd=left_usd, stops_when_full=stops_when_full)
    return Estimate(agent_id, len(unsettled) - len(free), asked)


def is_unsettled(pair_hash: str, known: Mapping[tuple[str, str], str], before: Tried, models: Models) -> bool:
    """Tell whether a pair has no verdict yet: none at all, or a refusal that the fallback was not asked about."""
    verdict = known.get((pair_hash, models.judge))
    if verdict is None:
        return True
    is_refused = verdict == Verdict.UNSURE and before.count(models.judge, pair_hash, Fate.REFUSED) > 0
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
    """Send the open pairs of agents, a batch for each agent and model or several; what stands in the way is told.

    A pair is never on its way twice, whoever else sends: those of open batches are left out under the agent's lock.
    With `most_batches` no more than so many are tried.
    """
    sender = Sender(database, claude, night, models, most_batches)
    for each in wanted:
        if sender.is_stopped:
            break
        sender.send_all(each)
    return sender.sent


class Sender:
    """One night's sending: which models were found fit, what was sent, and how often it failed."""

    def __init__(
        self, database: Database, claude: Claude, night: date, models: Models, most_batches: int | None = None
    ) -> None:
        self.sent = SentBatches()
        self.is_stopped = False
        self._database, self._claude, self._night, self._models = database, claude, night, models
        self._left = most_batches
        self._fit, self._unfit = set[str](), set[str]()
        self._asked = set[tuple[str, str]]()
        self._failures = 0

    def send_all(self, wanted: AgentQuestions) -> None:
        """Send batch after batch for one agent until nothing is open, the budget is spent, or sending fails."""
        try:
            while not self.is_stopped and (sheet := self._send_one(wanted)) is not None:
                self.sent.batches += 1
                self.sent.pairs += len(sheet.pairs)
                self.sent.requests += len(sheet.requests)
                self.sent.estimated_usd += sheet.estimated_usd
        except InvalidInput as error:
            self._tell(error)

    def _send_one(self, wanted: AgentQuestions) -> Sheet | None:
        """Send the first batch of what is open now, and return it; None when there is none, or it failed."""
        row_id = uuid4()  # its first digits tell batches apart; those of an id ordered by time are a time
        sheet = self._intended_to_the_fit(wanted, row_id)
        if sheet is None:
            return None
        self._asked |= {(wanted.agent_id, question.pair_hash) for question in sheet.pairs}
        if self._left is not None:
            self._left -= 1
            self.is_stopped = self._left <= 0
        reach("batch intended")
        try:
            batch = create_batch(self._claude, sheet.named(row_id))
        except LLMError as error:
            self._failed(error)
            if error.kind in DEFINITE or error.status in TURNED_AWAY:
                set_state(self._database, "set_failed", row_id, error=str(error))
            return None
        self._failures = 0
        reach("batch created")
        set_state(self._database, "set_submitted", row_id, batch_id=batch.id)
        reach("batch submitted")
        return sheet

    def _intended_to_the_fit(self, wanted: AgentQuestions, row_id: UUID) -> Sheet | None:
        """Write down the first batch that a model which can be asked is to get; None when there is none."""
        while not self.is_stopped:
            try:
                sheet = self._intended(wanted, row_id)
            except InvalidInput as error:
                if not self._leaves_out_unpriced():
                    raise
                self._tell(error)
                continue
            if sheet is None or sheet.model in self._fit:
                return sheet
            self._check(sheet.model)
        return None

    def _intended(self, wanted: AgentQuestions, row_id: UUID) -> Sheet | None:
        """Return the first batch of what is open now, written down if its model was found fit; None without one."""
        still = [each for each in wanted.questions if (wanted.agent_id, each.pair_hash) not in self._asked]
        with self._database.transaction(timeout_s=TIMEOUT_S) as connection:
            hold_batches(connection, wanted.agent_id)
            asked = estimated(
                connection,
                replace(wanted, questions=still),
                night=self._night,
                models=self._models,
                unfit=self._unfit,
                stops_when_full=True,
            ).to_ask
            if not asked.sheets:
                self.sent.held_back[wanted.agent_id] = asked.held_back
                return None
            if asked.sheets[0].model in self._fit:
                store_intent(connection, row_id, self._night, asked.sheets[0], account=self._claude.account)
        return asked.sheets[0]

    def _check(self, model: str) -> None:
        """Find out whether a model can be asked, before the first thing is sent to it."""
        try:
            warning = checked_model(self._claude, model, for_batches=True).warning(datetime.now(UTC))
        except LLMError as error:
            self._unfit.add(model)
            self._tell(error)
            self.is_stopped = model == self._models.judge or error.kind is Failure.QUOTA
            return
        self._fit.add(model)
        self.sent.warnings += [warning] if warning else []

    def _leaves_out_unpriced(self) -> bool:
        """Leave the fallback out when it is what has no price; return whether that is so, for the first time."""
        fallback = self._models.fallback
        if fallback in self._unfit or has_price(fallback) or not has_price(self._models.judge):
            return False
        self._unfit.add(fallback)
        return True

    def _failed(self, error: LLMError) -> None:
        self._tell(error)
        self._failures += 1
        self.is_stopped |= error.kind is Failure.QUOTA or self._failures == MOST_FAILURES

    def _tell(self, error: Exception) -> None:
        if str(error) not in self.sent.obstacles:
            self.sent.obstacles.append(str(error))


# --- what a night would ask, in figures: for the dry run, the metadata of the asset and the terminal ---


@dataclass(frozen=True)
class OfAgent:
    """What is open for one agent: pairs without a verdict, and what becomes of them tonight."""

    agent_id: str
    pairs_open: int
    on_their_way: int
    pairs: int
    requests: int
    estimated_usd: float
    held_back: int
    too_long: int

    @classmethod
    def of(cls, estimate: Estimate) -> OfAgent:
        """Count what an estimate holds."""
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
    """What a night asks `model`, agent by agent; nobody where there is no key. `obstacle` says why it can't."""

    model: str = ""
    agents: tuple[OfAgent, ...] = field(default=())
    obstacle: str = ""

    @property
    def figures(self) -> dict[str, Any]:
        """The sums over all agents."""
        if not self.model:
            return {}
        sums = {name: sum(getattr(each, name) for each in self.agents) for name in COUNTED}
        return {"model": self.model, **sums, **({"obstacle": self.obstacle} if self.obstacle else {})}

    def as_dict(self) -> dict[str, Any]:
        """Return this as plain JSON values."""
        return asdict(self)


PLANNED_QUESTIONS = TypeAdapter(PlannedQuestions)
"""Reads back what `as_dict` wrote."""


def asking_of(database: Database, wanted: Iterable[AgentQuestions], *, night: date, models: Models) -> PlannedQuestions:
    """Return what a night would ask; a model without a price is told as an obstacle."""
    found: list[OfAgent] = []
    try:
        for each in wanted:
            found.append(OfAgent.of(estimate_for(database, each, night=night, models=models)))
    except InvalidInput as error:
        return PlannedQuestions(models.judge, tuple(found), str(error))
    return PlannedQuestions(models.judge, tuple(found))


def in_words(figures: Mapping[str, Any], *, is_dry_run: bool) -> str:
    """Return what a night asks in a sentence; nothing when there is nothing to say."""
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
