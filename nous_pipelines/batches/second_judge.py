"""A language model as the second judge of a night: who is asked, in batches or directly, and what a look brings."""

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
from nous_online.memories.verdicts import store_verdicts
from nous_pipelines.batches.batch_requests import FATES, WIDER, Models, PairQuestion, Sheet
from nous_pipelines.batches.batch_rows import last_imported, results_root, spent
from nous_pipelines.batches.collecting import Collected, collect, undecidable
from nous_pipelines.batches.sending import TIMEOUT_S, AgentQuestions, SentBatches, estimated, send
from nous_pipelines.failpoints import reach

AT_ONCE = 8
"""Questions under way at one time: as many as a server on one machine takes side by side, and well under any limit."""
STORED_AT_ONCE = 4 * AT_ONCE
"""Questions whose verdicts are stored together: what a night that is killed has to ask again."""
ANSWER_S = 120.0
"""How long a question may take: a model on one's own processor writes ten words a second."""
NIGHT_S = 3600.0
"""How long a night asks; what is left is asked by the next."""
MOST_FAILURES = 2
"""Portions in a row without any answer, after which the rest waits for the next night."""
FINAL = {Failure.REFUSED, Failure.TRUNCATED, Failure.MALFORMED}
"""Failures of one pair: it is asked about alone, and with more room, before it is kept as `unsure`."""


def ask_directly(
    database: Database, client: LanguageModel, wanted: Iterable[AgentQuestions], *, night: date, models: Models
) -> SentBatches:
    """Ask about the open pairs of agents, within each one's budget; what stands in the way is told, not raised."""
    asker = Asker(database, client, night, models)
    for each in wanted:
        if asker.is_stopped:
            break
        asker.ask_all(each)
    return asker.sent


class Asker:
    """One night's asking: whether the model is believed, what was asked, and how often it failed."""

    def __init__(self, database: Database, client: LanguageModel, night: date, models: Models) -> None:
        self.sent = SentBatches()
        self.is_stopped = False
        self._database, self._client, self._night, self._models = database, client, night, models
        self._ends_at = time.monotonic() + NIGHT_S
        self._is_believed = False
        self._failures = 0

    def ask_all(self, wanted: AgentQuestions) -> None:
        """Ask for one agent until nothing is open, the budget or the time is spent, or asking fails."""
        with self._database.transaction(timeout_s=TIMEOUT_S) as connection:
            asked = estimated(connection, wanted, night=self._night, models=self._models).to_ask
        self.sent.held_back[wanted.agent_id] = asked.held_back
        for sheet in asked.sheets:
            judge = self._judge(sheet)
            if not self._believes(judge):
                return
            for portion in batches(sheet.questions, STORED_AT_ONCE):
                if self.is_stopped or self._is_spent(wanted):
                    return
                self._ask(portion, sheet, judge)

    def _judge(self, sheet: Sheet) -> ModelJudge:
        meter = meter_of(self._database, sheet.agent_id, self._night)
        return ModelJudge(self._client, meter, sheet.model, sheet.model, ANSWER_S, at_once=AT_ONCE)

    def _believes(self, judge: ModelJudge) -> bool:
        """Ask the pairs whose verdict is known, once a night; stop when it is wrong about one or can't be asked."""
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

    def _ask(self, portion: Sequence[Sequence[PairQuestion]], sheet: Sheet, judge: ModelJudge) -> None:
        """Ask some questions and store what was answered; what one of many kept from an answer is asked about alone."""
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
            if (judgement := settled(question, outcome, model=sheet.model)) is not None
        }
        with self._database.transaction(timeout_s=TIMEOUT_S) as connection:
            keys = [(sheet.agent_id, pair_hash) for pair_hash in judgements]
            store_verdicts(
                connection, keys, list(judgements.values()), model=sheet.model, prompt_version=PROMPT_VERSION
            )
        reach("verdicts stored")
        self.sent.pairs += len(judgements)
        self.sent.requests += len(portion) + len(alone)
        self._note(outcomes, is_vain=not judgements)

    def _note(self, outcomes: Sequence[Outcomes], *, is_vain: bool) -> None:
        """Tell what went wrong, and stop where more would go wrong the same way."""
        self._failures = self._failures + 1 if is_vain else 0
        errors = [error for each in outcomes if (error := failure_in(each)) is not None and error.kind not in FINAL]
        self.sent.obstacles += [str(each) for each in errors[:1] if str(each) not in self.sent.obstacles]
        is_limit = any(error.kind is Failure.QUOTA for error in errors)
        self.is_stopped = is_limit or self._failures == MOST_FAILURES or time.monotonic() >= self._ends_at

    def _is_spent(self, wanted: AgentQuestions) -> bool:
        """Tell whether a night's money for an agent is spent."""
        with self._database.transaction(timeout_s=TIMEOUT_S) as connection:
            return spent(connection, wanted.agent_id, self._night) > wanted.limit_usd

    def _sitting(self) -> Sitting:
        return Sitting(min(self._ends_at, time.monotonic() + ANSWER_S * STORED_AT_ONCE / AT_ONCE))


def failure_in(outcomes: Outcomes) -> LLMError | None:
    """Return why a pair has no answer, or none to the question that would confirm it."""
    return next((each for each in outcomes if isinstance(each, LLMError)), None)


def settled(question: PairQuestion, outcomes: Outcomes, *, model: str) -> Judgement | None:
    """Return the verdict on a pair; None where asking once more may bring one."""
    error = failure_in(outcomes)
    if error is None:
        return judged(question.pair, *outcomes, model=model)
    return undecidable(FATES[error.kind], model) if error.kind in FINAL else None


# --- who is asked ---

IN_A_ROW = 2
"""Batches one after the other that are not believed, after which a person has to look."""
PROBES = 1
"""Batches a night sends to a judge that is not believed: enough to notice that it can be again."""


@dataclass(frozen=True)
class SecondJudge:
    """Who is asked about pairs, by the settings of this process: Claude in batches, any other model directly."""

    settings: Settings

    @classmethod
    def of(cls, settings: Settings) -> SecondJudge | None:
        """Return whom to ask; None where the offline judge alone decides."""
        return cls(settings) if settings.asks_model else None

    @classmethod
    def collector(cls, settings: Settings) -> SecondJudge | None:
        """Return who brings home what is paid for, also where nobody is asked any more; None without Claude's key."""
        is_claude_asked = settings.asks_model and settings.provider == "anthropic"
        return cls(settings) if is_claude_asked or settings.anthropic_api_key.get_secret_value() else None

    @property
    def models(self) -> Models:
        """Who judges, and who is asked once when it refuses."""
        return Models(self.settings.judge_model, self.settings.writer_model)

    def claude(self) -> Claude:
        """Return a client that is open; raise `InvalidInput` or `Unsupported` when there can be none."""
        claude = claude_of(self.settings)
        claude.open()
        return claude

    def look(self, database: Database, home: Path, *, seconds: float, agent_ids: Sequence[str] = ()) -> Collected:
        """Bring home what has ended, waiting for nothing; what is in the way is told, not raised."""
        root = results_root(home, database)
        try:
            return collect(database, self.claude(), root, now=datetime.now(UTC), agent_ids=agent_ids, seconds=seconds)
        except (InvalidInput, Unsupported, LLMError) as error:
            return Collected(troubles=(str(error),))

    def send(self, database: Database, wanted: Iterable[AgentQuestions], *, night: date) -> SentBatches:
        """Send what is open, one batch at the most to a judge that is not believed; obstacles are told, not raised.

        A model that takes no batches is asked here and now, and its verdicts count in a later night just the same.
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
        distrusted = self.distrust(database)
        try:
            most = PROBES if distrusted else None
            sent = send(database, self.claude(), wanted, night=night, models=self.models, most_batches=most)
        except (InvalidInput, Unsupported) as error:
            return SentBatches(obstacles=[str(error), *distrusted])
        if distrusted:
            sent.obstacles += [*distrusted, "until then a night sends one batch at the most, to see whether that holds"]
        return sent

    def unpriced(self) -> list[str]:
        """Return what to know about a model that may charge for tokens nobody knows the price of."""
        models = {self.models.judge, self.models.fallback}
        unknown = sorted(model for model in models if not has_price(model) and not self.settings.is_local)
        told = "so it counts as 0 and max_cost_usd does not limit it; write it into the file named by NOUS_PRICES"
        return [f"no price is known for {model}, {told}" for model in unknown]

    def distrust(self, database: Database) -> list[str]:
        """Return why this model's answers can't be used: its last batches were not believed, or not understood."""
        model = self.models.judge
        with database.transaction() as connection:
            latest = last_imported(connection, model)
        said: list[str] = []
        if len(latest) == IN_A_ROW and all(wrong for wrong, _ in latest):
            said.append(
                f"{IN_A_ROW} batches of {model} in a row were not believed ({'; '.join(latest[0][0])}); "
                "set NOUS_JUDGE_MODEL to another model, or NOUS_JUDGE=offline"
            )
        for _, types in latest[:1]:
            said += [f"the last batch held results of the unknown type {each}; update Nous" for each in types]
        return said
