"""A language model as the second judge of a night, asked in batches (Claude) or directly (any other model).

Of a batch the intent is committed first, then the batch created once, then its id stored.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from psycopg import Connection
from pydantic import TypeAdapter

from nous_online.core.errors import InvalidInput, Unsupported
from nous_online.core.settings import Settings
from nous_online.database.connection import Database
from nous_online.language.claude.anthropic_api import checked_model, create_batch
from nous_online.language.claude.client import Claude, claude_of, model_client
from nous_online.language.claude.judge import CANARIES, Given, ModelJudge, Outcomes, Sitting, canaries_failed, judged
from nous_online.language.claude.pair_prompt import MAX_TOKENS, PROMPT_VERSION
from nous_online.language.claude.replies import Failure, LanguageModel, LLMError
from nous_online.language.claude.spending import has_price, meter_of
from nous_online.language.minilm import batches
from nous_online.language.pairs.judging import Judgement, Verdict
from nous_online.memories.store import store_verdicts
from nous_pipelines.batches.batch_requests import (
    STATUS_OF_FAILURE,
    WIDER,
    AnswerStatus,
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
    last_imported,
    open_pairs,
    prior_attempts,
    results_root,
    set_state,
    spent,
    store_intent,
)
from nous_pipelines.batches.collecting import Collected, collect, unsure_judgement
from nous_pipelines.failpoints import reach

TIMEOUT_S = 600.0
MOST_FAILURES = 2
"""Batches in a row that could not be sent, or portions without any answer: then the rest waits for the next night."""
DEFINITE = {Failure.PERMANENT, Failure.QUOTA}
"""Failures that prove that no batch was created."""
TURNED_AWAY = {429, 529}
"""HTTP statuses (rate limit, overload) that prove it, too, although the request may succeed later."""
AT_ONCE = 8
"""Concurrent questions: as many as a server on one machine processes side by side, and well under any rate limit."""
STORED_AT_ONCE = 4 * AT_ONCE
"""Questions whose verdicts are stored together: at most so many are asked again after a crash."""
ANSWER_S = 120.0
"""Deadline of a question: a model on a CPU writes ten words a second."""
NIGHT_S = 3600.0
"""Time a night spends on asking; what is left waits for the next."""
FINAL = {Failure.REFUSED, Failure.TRUNCATED, Failure.MALFORMED}
"""Failures caused by a pair itself: it is asked about alone, with more tokens, and then stored as `unsure`."""
IN_A_ROW = 2
"""Consecutive batches with wrong canaries after which the operator has to act."""
PROBES = 1
"""Batches a night sends to a distrusted judge: enough to notice when it is right again."""


@dataclass(frozen=True)
class SecondJudge:
    """The model that this process asks about pairs, by its settings: Claude in batches, any other directly."""

    settings: Settings

    @classmethod
    def of(cls, settings: Settings) -> SecondJudge | None:
        """Return the second judge, None where the offline judge decides alone."""
        return cls(settings) if settings.asks_model else None

    @classmethod
    def collector(cls, settings: Settings) -> SecondJudge | None:
        """Return the judge for collecting batches, also where no new ones are sent; None without Claude's key.

        Batches that were sent before the settings changed are paid for and still collected.
        """
        is_claude_asked = settings.asks_model and settings.provider == "anthropic"
        return cls(settings) if is_claude_asked or settings.anthropic_api_key.get_secret_value() else None

    @property
    def models(self) -> Models:
        """The model that judges, and the fallback."""
        return Models(self.settings.judge_model, self.settings.writer_model)

    def claude(self) -> Claude:
        """Return an open client; raise `InvalidInput` or `Unsupported` if the settings allow none."""
        claude = claude_of(self.settings)
        claude.open()
        return claude

    def look(self, database: Database, home: Path, *, seconds: float, agent_ids: Sequence[str] = ()) -> Collected:
        """Collect the batches that have ended, without waiting; problems are returned, not raised."""
        root = results_root(home, database)
        try:
            return collect(database, self.claude(), root, now=datetime.now(UTC), agent_ids=agent_ids, seconds=seconds)
        except (InvalidInput, Unsupported, LLMError) as error:
            return Collected(troubles=(str(error),))

    def send(self, database: Database, wanted: Iterable[AgentQuestions], *, night: date) -> SentBatches:
        """Send the open pairs, to a distrusted judge in one batch at most; obstacles are returned, not raised.

        A model without a batch API is asked directly; its verdicts count from the next night on, as those of batches.
        """
        if self.settings.provider == "openai":
            try:
                client = model_client(self.settings)
                client.open()
            except (InvalidInput, Unsupported) as error:
                return SentBatches(obstacles=[str(error)])
            sent = Asker(database, client, night, self.models).ask(wanted)
            sent.warnings += self.unpriced()
            return sent
        distrusted = self.reasons_for_distrust(database)
        try:
            sender = Sender(database, self.claude(), night, self.models, PROBES if distrusted else None)
            sent = sender.send(wanted)
        except (InvalidInput, Unsupported) as error:
            return SentBatches(obstacles=[str(error), *distrusted])
        if distrusted:
            sent.obstacles += [*distrusted, "until then a night sends at most one batch, to test the judge"]
        return sent

    def unpriced(self) -> list[str]:
        """Return a warning for each model that may cost something but has no known price."""
        models = {self.models.judge, self.models.fallback}
        unknown = sorted(model for model in models if not has_price(model) and not self.settings.is_local)
        consequence = (
            "so it counts as 0 and max_cost_usd does not limit it; write it into the file named by NOUS_PRICES"
        )
        return [f"no price is known for {model}, {consequence}" for model in unknown]

    def reasons_for_distrust(self, database: Database) -> list[str]:
        """Return why the judge is distrusted: wrong canaries in its last batches, or results of an unknown type."""
        model = self.models.judge
        with database.transaction() as connection:
            latest = last_imported(connection, model)
        reasons: list[str] = []
        if len(latest) == IN_A_ROW and all(wrong for wrong, _ in latest):
            reasons.append(
                f"{IN_A_ROW} batches of {model} in a row were not believed ({'; '.join(latest[0][0])}); "
                "set NOUS_JUDGE_MODEL to another model, or NOUS_JUDGE=offline"
            )
        for _, types in latest[:1]:
            reasons += [f"the last batch had results of the unknown type {each}; update Nous" for each in types]
        return reasons


# --- batches ---


@dataclass(frozen=True)
class AgentQuestions:
    """The pairs of one agent to ask about, most urgent first, and the night's budget for the agent in US dollars."""

    agent_id: str
    questions: Sequence[PairQuestion]
    limit_usd: float


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


def draft_open_pairs(
    connection: Connection,
    wanted: AgentQuestions,
    *,
    night: date,
    models: Models,
    unfit: Collection[str] = (),
    stops_when_full: bool = False,
) -> tuple[DraftedBatches, int]:
    """Return drafts for the open pairs of an agent, and the number of pairs that are in open batches already.

    With `stops_when_full` there are drafts up to the first full batch only. Pairs for models in `unfit` are left out.
    Raises `InvalidInput` for a model without a price.
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
    drafted = draft_batches(
        agent_id, askable, models=models, tried=before, left_usd=left_usd, stops_when_full=stops_when_full
    )
    return drafted, len(unsettled) - len(free)


def is_unsettled(pair_hash: str, known: Mapping[tuple[str, str], str], before: PriorAttempts, models: Models) -> bool:
    """Return whether a pair has no verdict yet, or a refusal that the fallback has not been asked about."""
    verdict = known.get((pair_hash, models.judge))
    if verdict is None:
        return True
    is_refused = verdict == Verdict.UNSURE and before[models.judge, pair_hash, AnswerStatus.REFUSED] > 0
    return is_refused and (pair_hash, models.fallback) not in known


class Sender:
    """State of one night's sending: models that can be used, what was sent, and consecutive failures.

    At most `most_batches` are tried.
    """

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

    def send(self, wanted: Iterable[AgentQuestions]) -> SentBatches:
        """Send the open pairs of agents, in one or more batches for each agent and model; obstacles are returned.

        A pair is never in two open batches: those of open batches are left out under the agent's lock.
        """
        for each in wanted:
            if self.is_stopped:
                break
            self.send_all(each)
        return self.sent

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
            drafted, _ = draft_open_pairs(
                connection,
                replace(wanted, questions=still),
                night=self._night,
                models=self._models,
                unfit=self._unusable_models,
                stops_when_full=True,
            )
            if not drafted.drafts:
                self.sent.held_back[wanted.agent_id] = drafted.held_back
                return None
            draft = drafted.drafts[0]
            # Otherwise the caller checks the model, outside of this transaction, and drafts again.
            if draft.model in self._usable_models:
                store_intent(connection, row_id, self._night, draft, account=self._claude.account)
        return draft

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


# --- questions that are asked directly ---


class Asker:
    """State of one night's direct questions: whether the model passed the canaries, what was asked, and failures."""

    def __init__(self, database: Database, client: LanguageModel, night: date, models: Models) -> None:
        self.sent = SentBatches()
        self.is_stopped = False
        self._database, self._client, self._night, self._models = database, client, night, models
        self._ends_at = time.monotonic() + NIGHT_S
        self._is_believed = False
        self._failures = 0

    def ask(self, wanted: Iterable[AgentQuestions]) -> SentBatches:
        """Ask about the open pairs of agents within the budget of each; obstacles are returned, not raised."""
        for each in wanted:
            if self.is_stopped:
                break
            self.ask_all(each)
        return self.sent

    def ask_all(self, wanted: AgentQuestions) -> None:
        """Ask for one agent until no pair is open, budget or time is spent, or asking fails."""
        with self._database.transaction(timeout_s=TIMEOUT_S) as connection:
            drafted, _ = draft_open_pairs(connection, wanted, night=self._night, models=self._models)
        self.sent.held_back[wanted.agent_id] = drafted.held_back
        for draft in drafted.drafts:
            judge = self._judge(draft)
            if not self._passes_canaries(judge):
                return
            for portion in batches(draft.questions, STORED_AT_ONCE):
                if self.is_stopped or self._is_budget_spent(wanted):
                    return
                self._ask(portion, draft, judge)

    def _judge(self, draft: BatchDraft) -> ModelJudge:
        meter = meter_of(self._database, draft.agent_id, self._night)
        return ModelJudge(self._client, meter, draft.model, draft.model, ANSWER_S, at_once=AT_ONCE)

    def _passes_canaries(self, judge: ModelJudge) -> bool:
        """Ask about the canaries, once a night, and stop if an answer is wrong or the model can't be reached."""
        if self._is_believed:
            return True
        outcomes = judge.outcomes([[canary.pair] for canary in CANARIES], self._sitting())
        self.sent.requests += len(CANARIES)
        failure = next((each for (each,) in outcomes if isinstance(each, LLMError) and each.kind not in FINAL), None)
        answers = {
            canary.name: found.answer if isinstance(found, Given) else None
            for canary, (found,) in zip(CANARIES, outcomes, strict=True)
        }
        wrong = [str(failure)] if failure else canaries_failed(answers)
        self._is_believed, self.is_stopped = not wrong, bool(wrong)
        if wrong:
            self.sent.obstacles.append(f"nothing was asked of {judge.model}: {'; '.join(wrong)}")
        return self._is_believed

    def _ask(self, portion: Sequence[Sequence[PairQuestion]], draft: BatchDraft, judge: ModelJudge) -> None:
        """Ask a portion of questions and store the verdicts; pairs that failed together are asked about again alone."""
        sitting = self._sitting()
        pairs = [question for together in portion for question in together]
        found = judge.in_both_orders([[each.pair for each in together] for together in portion], sitting)
        outcomes = [outcome for together in found for outcome in together]
        alone = [place for place, each in enumerate(outcomes) if (error := failure_in(each)) and error.kind in FINAL]
        again = judge.in_both_orders([[pairs[place].pair] for place in alone], sitting, max_tokens=MAX_TOKENS * WIDER)
        for place, (outcome,) in zip(alone, again, strict=True):
            outcomes[place] = outcome
        judgements = {
            question.pair_hash: judgement
            for question, outcome in zip(pairs, outcomes, strict=True)
            if (judgement := final_judgement(question, outcome, model=draft.model)) is not None
        }
        with self._database.transaction(timeout_s=TIMEOUT_S) as connection:
            keys = [(draft.agent_id, pair_hash) for pair_hash in judgements]
            store_verdicts(
                connection, keys, list(judgements.values()), model=draft.model, prompt_version=PROMPT_VERSION
            )
        reach("verdicts stored")
        self.sent.pairs += len(judgements)
        self.sent.requests += len(portion) + len(alone)
        self._note_failures(outcomes, is_empty=not judgements)

    def _note_failures(self, outcomes: Sequence[Outcomes], *, is_empty: bool) -> None:
        """Record failures, and stop where the next questions would fail, too."""
        self._failures = self._failures + 1 if is_empty else 0
        errors = [error for each in outcomes if (error := failure_in(each)) is not None and error.kind not in FINAL]
        self.sent.obstacles += [str(each) for each in errors[:1] if str(each) not in self.sent.obstacles]
        is_limit = any(error.kind is Failure.QUOTA for error in errors)
        self.is_stopped = is_limit or self._failures == MOST_FAILURES or time.monotonic() >= self._ends_at

    def _is_budget_spent(self, wanted: AgentQuestions) -> bool:
        """Return whether the night's budget of an agent is spent."""
        with self._database.transaction(timeout_s=TIMEOUT_S) as connection:
            return spent(connection, wanted.agent_id, self._night) > wanted.limit_usd

    def _sitting(self) -> Sitting:
        return Sitting(min(self._ends_at, time.monotonic() + ANSWER_S * STORED_AT_ONCE / AT_ONCE))


def failure_in(outcomes: Outcomes) -> LLMError | None:
    """Return the first error among the answers about a pair in both orders, None for none."""
    return next((each for each in outcomes if isinstance(each, LLMError)), None)


def final_judgement(question: PairQuestion, outcomes: Outcomes, *, model: str) -> Judgement | None:
    """Return the judgement to store about a pair, None if it should be asked about again."""
    error = failure_in(outcomes)
    if error is None:
        return judged(question.pair, *outcomes, model=model)
    return unsure_judgement(STATUS_OF_FAILURE[error.kind], model) if error.kind in FINAL else None


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
        counted = [each.name for each in fields(AgentFigures) if each.name != "agent_id"]
        sums = {name: sum(getattr(each, name) for each in self.agents) for name in counted}
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
            found.append(agent_figures(database, each, night=night, models=models))
    except InvalidInput as error:
        return PlannedQuestions(models.judge, tuple(found), str(error))
    return PlannedQuestions(models.judge, tuple(found))


def agent_figures(database: Database, wanted: AgentQuestions, *, night: date, models: Models) -> AgentFigures:
    """Return what would be asked for an agent tonight, without writing or sending anything."""
    with database.transaction(timeout_s=TIMEOUT_S) as connection:
        drafted, on_their_way = draft_open_pairs(connection, wanted, night=night, models=models)
    return AgentFigures(
        wanted.agent_id,
        pairs_open=on_their_way + drafted.pair_count + drafted.held_back + drafted.too_long,
        on_their_way=on_their_way,
        pairs=drafted.pair_count,
        requests=drafted.request_count,
        estimated_usd=drafted.estimated_usd,
        held_back=drafted.held_back,
        too_long=drafted.too_long,
    )


def in_words(figures: Mapping[str, Any], *, is_dry_run: bool) -> str:
    """Return the figures as a sentence, empty if no pair is open."""
    if not figures.get("pairs_open"):
        return ""
    verb = "would be sent" if is_dry_run else "were to be sent"
    parts = [
        f"{figures['pairs_open']} pairs wait for {figures['model']}",
        f"{figures['requests']} requests {verb}, for at most {figures['estimated_usd']:.2f} USD",
        f"{figures['on_their_way']} are in open batches" if figures["on_their_way"] else "",
        f"{figures['held_back']} are held back by max_cost_usd" if figures["held_back"] else "",
        f"{figures['too_long']} are too long to be asked about" if figures["too_long"] else "",
        figures.get("obstacle", ""),
    ]
    return "; ".join(filter(None, parts))
