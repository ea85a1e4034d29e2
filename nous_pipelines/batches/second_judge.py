"""A language model as the second judge of a night, asked in batches (Claude) or directly (any other model)."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

from nous_online.core.errors import InvalidInput, Unsupported
from nous_online.core.settings import Settings
from nous_online.database.connection import Database
from nous_online.language.claude.client import Claude, claude_of, model_client
from nous_online.language.claude.judge import CANARIES, Given, ModelJudge, Outcomes, Sitting, canaries_failed, judged
from nous_online.language.claude.pair_prompt import MAX_TOKENS, PROMPT_VERSION
from nous_online.language.claude.replies import Failure, LanguageModel, LLMError
from nous_online.language.claude.spending import has_price, meter_of
from nous_online.language.minilm import batches
from nous_online.language.pairs.judging import Judgement
from nous_online.memories.store import store_verdicts
from nous_pipelines.batches.batch_requests import STATUS_OF_FAILURE, WIDER, BatchDraft, Models, PairQuestion
from nous_pipelines.batches.batch_rows import last_imported, results_root, spent
from nous_pipelines.batches.collecting import Collected, collect, unsure_judgement
from nous_pipelines.batches.sending import TIMEOUT_S, AgentQuestions, SentBatches, estimate_open_pairs, send
from nous_pipelines.failpoints import reach

AT_ONCE = 8
"""Concurrent questions: as many as a server on one machine processes side by side, and well under any rate limit."""
STORED_AT_ONCE = 4 * AT_ONCE
"""Questions whose verdicts are stored together: at most so many are asked again after a crash."""
ANSWER_S = 120.0
"""Deadline of a question: a model on a CPU writes ten words a second."""
NIGHT_S = 3600.0
"""Time a night spends on asking; what is left waits for the next."""
MOST_FAILURES = 2
"""Consecutive portions without any answer after which the rest waits for the next night."""
FINAL = {Failure.REFUSED, Failure.TRUNCATED, Failure.MALFORMED}
"""Failures caused by a pair itself: it is asked about alone, with more tokens, and then stored as `unsure`."""


def ask_directly(
    database: Database, client: LanguageModel, wanted: Iterable[AgentQuestions], *, night: date, models: Models
) -> SentBatches:
    """Ask about the open pairs of agents within the budget of each; obstacles are returned, not raised."""
    asker = Asker(database, client, night, models)
    for each in wanted:
        if asker.is_stopped:
            break
        asker.ask_all(each)
    return asker.sent


class Asker:
    """State of one night's direct questions: whether the model passed the canaries, what was asked, and failures."""

    def __init__(self, database: Database, client: LanguageModel, night: date, models: Models) -> None:
        self.sent = SentBatches()
        self.is_stopped = False
        self._database, self._client, self._night, self._models = database, client, night, models
        self._ends_at = time.monotonic() + NIGHT_S
        self._is_believed = False
        self._failures = 0

    def ask_all(self, wanted: AgentQuestions) -> None:
        """Ask for one agent until no pair is open, budget or time is spent, or asking fails."""
        with self._database.transaction(timeout_s=TIMEOUT_S) as connection:
            asked = estimate_open_pairs(connection, wanted, night=self._night, models=self._models).to_ask
        self.sent.held_back[wanted.agent_id] = asked.held_back
        for draft in asked.drafts:
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
        asked = judge.outcomes([[canary.pair] for canary in CANARIES], self._sitting())
        self.sent.requests += len(CANARIES)
        failure = next((each for (each,) in asked if isinstance(each, LLMError) and each.kind not in FINAL), None)
        answers = {
            canary.name: found.answer if isinstance(found, Given) else None
            for canary, (found,) in zip(CANARIES, asked, strict=True)
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


# --- which model is asked ---

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
            sent = ask_directly(database, client, wanted, night=night, models=self.models)
            sent.warnings += self.unpriced()
            return sent
        distrusted = self.reasons_for_distrust(database)
        try:
            most = PROBES if distrusted else None
            sent = send(database, self.claude(), wanted, night=night, models=self.models, most_batches=most)
        except (InvalidInput, Unsupported) as error:
            return SentBatches(obstacles=[str(error), *distrusted])
        if distrusted:
            sent.obstacles += [*distrusted, "until then a night sends one batch at the most, to see whether that holds"]
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
            reasons += [f"the last batch held results of the unknown type {each}; update Nous" for each in types]
        return reasons
