"""Collects batches: step by step, each of which can be repeated, so that the next look recovers from any crash."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from psycopg.types.json import Jsonb

from nous_online.core.domain import Addable
from nous_online.core.errors import NousError, Unavailable
from nous_online.database.connection import Database
from nous_online.language.claude.anthropic_api import (
    UPLOAD_DEADLINE_S,
    Batch,
    batches_since,
    delete_batch,
    download_results,
    get_batch,
)
from nous_online.language.claude.client import Claude
from nous_online.language.claude.judge import (
    ModelJudge,
    Sitting,
    canaries_failed,
    confirmed,
    needs_confirmation,
    swapped,
)
from nous_online.language.claude.pair_prompt import PROMPT_VERSION
from nous_online.language.claude.replies import Failure, LLMError, Usage
from nous_online.language.claude.spending import cost_of, meter_of
from nous_online.language.pairs.judging import Judgement, Pair, Verdict
from nous_pipelines.batches.batch_requests import (
    CANARY,
    QUESTION,
    AnswerStatus,
    BatchOutcomes,
    PairOutcome,
    PriorAttempts,
    outcomes_of,
    pair_outcome,
    pairs_of_batch,
)
from nous_pipelines.batches.batch_rows import (
    KEPT_FOR,
    BatchRow,
    current_facts,
    import_verdicts,
    is_open,
    is_whole,
    known_batches,
    prior_attempts,
    results_path,
    set_state,
    unfinished,
)
from nous_pipelines.failpoints import reach

MOST_AGAIN = {AnswerStatus.TRUNCATED: 1, AnswerStatus.MALFORMED: 3, AnswerStatus.REFUSED: 0, AnswerStatus.INVALID: 0}
"""How often a pair is asked about again after a status; without limit after any other."""
ANY_NUMBER = 1_000_000
NOT_BELIEVED = "canary"
GONE = "changed"
"""Further reasons to ask again: the batch failed a canary, or the content of the pair has changed."""
WORDS = {
    AnswerStatus.TRUNCATED: "its answer was truncated twice",
    AnswerStatus.MALFORMED: f"its answer could not be read {MOST_AGAIN[AnswerStatus.MALFORMED] + 1} times",
    AnswerStatus.REFUSED: "it declined to answer",
    AnswerStatus.INVALID: "the request was refused as invalid",
}


@dataclass(frozen=True)
class BatchJudgements:
    """Judgements by pair hash; `again` has the reason for each pair to ask again, and for each refusal."""

    judgements: Mapping[str, Judgement] = field(default_factory=dict[str, Judgement])
    again: Mapping[str, str] = field(default_factory=dict[str, str])
    canaries_wrong: tuple[str, ...] = ()


@dataclass(frozen=True)
class BatchContents:
    """The content of a batch in order: prefix of its custom ids, pair hashes of each question, names of canaries."""

    prefix: str
    questions: Sequence[Sequence[str]]
    canaries: Sequence[str]

    @property
    def hashes(self) -> list[str]:
        """The hashes of all pairs asked about."""
        return [pair_hash for question in self.questions for pair_hash in question]


@dataclass(frozen=True)
class FirstAnswers:
    """The answers about the pairs in the order they were asked in, by hash; none if a canary was answered wrongly."""

    by_hash: Mapping[str, PairOutcome] = field(default_factory=dict[str, PairOutcome])
    shares: Mapping[str, Usage] = field(default_factory=dict[str, Usage])
    """The tokens of a question, divided among its pairs."""
    canaries_wrong: tuple[str, ...] = ()


def first_answers(contents: BatchContents, outcomes: BatchOutcomes) -> FirstAnswers:
    """Return the answers of a batch by pair; none if it answered a canary wrongly."""
    sent = ((name, outcomes.by_id.get(f"{contents.prefix}-{n}-{CANARY}")) for n, name in enumerate(contents.canaries))
    wrong = tuple(canaries_failed({name: outcome.for_pair(1).answer for name, outcome in sent if outcome is not None}))
    if wrong:
        return FirstAnswers(canaries_wrong=wrong)
    found: dict[str, PairOutcome] = {}
    shares: dict[str, Usage] = {}
    for number, question in enumerate(contents.questions):
        outcome = outcomes.by_id[f"{contents.prefix}-{number}-{QUESTION}"]
        for place, pair_hash in enumerate(question, start=1):
            found[pair_hash] = outcome.for_pair(place)
            shares[pair_hash] = share_of(outcome.usage, len(question))
    return FirstAnswers(found, shares)


def pairs_to_confirm(pairs: Mapping[str, Pair], answers: FirstAnswers) -> list[str]:
    """Return the pairs whose answer would retire a memory; each is asked about once more, swapped and alone.

    Alone, since a text planted in one statement could influence the answers about its neighbours in the question.
    """
    found = answers.by_hash.items()
    return [each for each, first in found if each in pairs and first.answer and needs_confirmation(first.answer)]


def batch_judgements(
    contents: BatchContents,
    pairs: Mapping[str, Pair],
    answers: FirstAnswers,
    confirmations: Mapping[str, PairOutcome],
    *,
    model: str,
    tried: PriorAttempts,
) -> BatchJudgements:
    """Return the judgements from the answers in both orders; `confirmations` are those about the swapped pairs.

    Answers about pairs that are not in `pairs` are dropped: their content has changed since.
    """
    if answers.canaries_wrong:
        again = dict.fromkeys(contents.hashes, NOT_BELIEVED)
        return BatchJudgements(again=again, canaries_wrong=answers.canaries_wrong)
    judgements: dict[str, Judgement] = {}
    again: dict[str, str] = {}
    for pair_hash in contents.hashes:
        first, other = answers.by_hash[pair_hash], confirmations.get(pair_hash)
        obstacle = first if first.answer is None else other if other is not None and other.answer is None else None
        if pair_hash not in pairs:
            again[pair_hash] = GONE
        elif obstacle is None and first.answer is not None:
            judgement = confirmed(pairs[pair_hash], first.answer, other and other.answer, model=model)
            judgements[pair_hash] = with_usage(judgement, answers.shares[pair_hash], model)
        elif obstacle is not None:
            is_last = tried[model, pair_hash, obstacle.status] >= MOST_AGAIN.get(obstacle.status, ANY_NUMBER)
            if is_last:
                judgements[pair_hash] = with_usage(
                    unsure_judgement(obstacle.status, model), answers.shares[pair_hash], model
                )
            # A refusal is final for this model, but recorded all the same: from it the fallback is asked.
            if not is_last or obstacle.status is AnswerStatus.REFUSED:
                again[pair_hash] = obstacle.status.value
    return BatchJudgements(judgements, again)


def unsure_judgement(status: AnswerStatus, model: str) -> Judgement:
    """Return the judgement `unsure` to store for a pair that this model and prompt version is not asked about again."""
    reason = f"no answer of {model} is to be had: {WORDS[status]}"
    return Judgement(Verdict.UNSURE, 0.0, reason, None, None, model, PROMPT_VERSION)


def share_of(usage: Usage, count: int) -> Usage:
    """Return an equal share of tokens."""
    return Usage(*(tokens // count for tokens in astuple(usage)))


def with_usage(judgement: Judgement, usage: Usage, model: str) -> Judgement:
    """Return a judgement with its tokens and what they cost in a batch, in US dollars."""
    return replace(
        judgement,
        input_tokens=usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens,
        output_tokens=usage.output_tokens,
        cost_usd=cost_of(model, usage, is_batch=True),
    )


# --- collecting ---

logger = logging.getLogger(__name__)
LOST_AFTER = timedelta(hours=20)
"""Age at which a batch whose creation was not confirmed is given up: under a day, so that the next night asks again.

While a batch of the same size is still in progress it is not given up: that may be the one.
"""
SKEW = timedelta(hours=1)  # between our clock and the API's, by which batches are listed
MOST_FAILURES = 2
"""Consecutive failures of API, account or database after which the other batches wait for the next look."""
TIMEOUT_S = 600.0
LEAST_S = 1.0
AT_ONCE = 8
"""Concurrent questions when answers of a batch are confirmed."""


@dataclass(frozen=True)
class Collected(Addable):
    """The result of one look at the open batches."""

    imported: int = 0
    verdicts: int = 0
    waiting: int = 0
    """Batches still in progress."""
    failed: int = 0
    """Batches given up: their pairs are asked about again."""
    told: tuple[str, ...] = ()
    """Notices for the operator: what was given up or not believed, and is asked about again."""
    troubles: tuple[str, ...] = ()
    """Problems that keep batches from being collected now."""

    @property
    def words(self) -> str:
        """The result in a sentence."""
        parts = [
            f"{self.imported} batches were imported with {self.verdicts} verdicts" if self.imported else "",
            f"{self.waiting} batches are in progress" if self.waiting else "",
            f"{self.failed} batches were given up, and their pairs will be asked about again" if self.failed else "",
            *self.told,
            *self.troubles,
        ]
        return "; ".join(filter(None, parts)) or "no batch is open"


WAITING, FAILED = Collected(waiting=1), Collected(failed=1)


def collect(
    database: Database,
    claude: Claude,
    root: Path,
    *,
    now: datetime,
    agent_ids: Sequence[str] = (),
    seconds: float = 120.0,
) -> Collected:
    """Advance every open batch as far as possible within `seconds`, without waiting for any.

    Results are saved under `root`. A failure with one batch is reported, and the next one is tried; after
    `MOST_FAILURES` in a row that concern all batches, the look ends. Raises what the database raises when it lists the
    open batches.
    """
    collector = Collector(database, claude, root, now, time.monotonic() + seconds)
    done = Collected()
    failures = 0
    rows = unfinished(database, agent_ids)
    for row in rows:
        if collector.left_s() < LEAST_S:
            return done + Collected(troubles=(f"there was no time for more within {seconds:g} s",))
        try:
            # With all of the time for each, a batch that is slow to answer left the others none, look after look.
            done += (collector if row is rows[-1] else collector.halved()).advance(row)
            failures = 0
        except Exception as error:  # one row must not keep the others from being collected
            done += Collected(waiting=int(row.is_open), troubles=(trouble_of(row, error),))
            failures = failures + 1 if concerns_all(error) else 0
        if failures == MOST_FAILURES:
            break
    return done


def concerns_all(error: Exception) -> bool:
    """Return whether an error comes from the API, the account or the database, and so concerns every batch."""
    if isinstance(error, LLMError):
        return error.kind in {Failure.TRANSIENT, Failure.QUOTA}
    return isinstance(error, Unavailable)


def trouble_of(row: BatchRow, error: Exception) -> str:
    """Return the message of an error with a batch; an unexpected one is also logged with its traceback."""
    if isinstance(error, LLMError | NousError):
        return str(error)
    logger.error("batch %s could not be collected", row.id, exc_info=error)
    return f"batch {row.batch_id or row.id} could not be collected ({type(error).__name__}: {error}); please report it"


@dataclass(frozen=True)
class Collector:
    """One look at the open batches: its clients, the folder of results, and its deadline (monotonic)."""

    database: Database
    claude: Claude
    root: Path
    now: datetime
    ends_at: float

    def left_s(self) -> float:
        """Return the seconds left."""
        return self.ends_at - time.monotonic()

    def halved(self) -> Collector:
        """Return this look with half the remaining time, so that a slow batch leaves some to the others."""
        return replace(self, ends_at=self.ends_at - self.left_s() / 2)

    def advance(self, row: BatchRow) -> Collected:
        """Advance one batch as far as possible."""
        if row.state == "imported":
            self.delete(row)
            return Collected()
        if row.batch_id is None:
            return self.adopt(row)
        path = results_path(self.root, row)
        if row.state == "ended" and is_whole(path, row.raw_sha256):
            return self.import_results(row, path)
        batch = self.look_up(row)
        if batch is None:
            return self.wait_or_give_up(row)
        if not batch.is_ended:
            return WAITING
        set_state(self.database, "set_ended", row.id)
        reach("batch ended")
        return self.download(row, batch, path)

    def look_up(self, row: BatchRow) -> Batch | None:
        """Return the current state of a batch, None if the API does not have it."""
        batch_id = row.batch_id or ""
        try:
            return get_batch(self.claude, batch_id, deadline_s=self.left_s())
        except LLMError as error:
            if error.kind is not Failure.PERMANENT:
                raise
            # An error alone is no proof that the batch is gone: a list that comes without one decides.
            listed = batches_since(self.claude, row.created_at - SKEW, deadline_s=self.left_s())
            return next((batch for batch in listed if batch.id == batch_id), None)

    def wait_or_give_up(self, row: BatchRow) -> Collected:
        """Wait for a batch the API does not know, since it may be in another account; give it up when it is old."""
        if not is_open(self.database, row.id):
            return Collected()  # another look has just imported and deleted it
        elsewhere = self.account_mismatch(row)
        if self.now - row.created_at >= (KEPT_FOR if elsewhere else LOST_AFTER):
            return self.give_up(row, "the API knows nothing of it any more")
        question = f"the API knows nothing of batch {row.batch_id}; are ANTHROPIC_BASE_URL and ANTHROPIC_API_KEY right?"
        return WAITING + Collected(troubles=(elsewhere or question,))

    def account_mismatch(self, row: BatchRow) -> str | None:
        """Return a message if a batch was sent from another account than the present one, None if not."""
        if row.account in {None, self.claude.account}:
            return None
        return (
            f"batch {row.batch_id or row.id} was sent from {row.account}, not from {self.claude.account} (host, and "
            "first digits of the SHA-256 of the key); set ANTHROPIC_BASE_URL and ANTHROPIC_API_KEY back to collect it"
        )

    def download(self, row: BatchRow, batch: Batch, path: Path) -> Collected:
        """Save the results of a batch that has ended, then read them."""
        if not batch.has_results:
            return self.give_up(row, "the API has no results of it")
        try:
            sha256 = download_results(self.claude, batch, path, deadline_s=self.left_s())
        except LLMError as error:
            is_old = self.now - row.created_at >= LOST_AFTER
            if is_old and error.kind is Failure.PERMANENT and not isinstance(error.__cause__, OSError):
                return self.give_up(row, str(error))
            raise
        reach("results saved")
        set_state(self.database, "set_saved", row.id, raw_sha256=sha256)
        reach("results known")
        return self.import_results(row, path)

    def import_results(self, row: BatchRow, path: Path) -> Collected:
        """Store verdicts and costs from saved results, then delete the batch at the API.

        Answers that would retire a memory are confirmed first, swapped and outside of a batch, as far as time permits.
        """
        if row.prompt_version != PROMPT_VERSION:
            return self.give_up(row, f"it was asked by another version of Nous ({row.prompt_version})")
        with path.open("rb") as lines:
            outcomes = outcomes_of(lines, row.custom_ids)
        with self.database.transaction(row.agent_id, timeout_s=TIMEOUT_S) as connection:
            ids = [fact_id for reference in row.references for fact_id in reference[1:3]]
            pairs = pairs_of_batch(row.agent_id, row.references, current_facts(connection, row.agent_id, ids))
            before = prior_attempts(connection, row.agent_id)
        contents = BatchContents(row.prefix, row.questions, row.canaries)
        answers = first_answers(contents, outcomes)
        confirmations = self.confirm(row, pairs, answers)  # asks the API, so no transaction is open here
        opinions = batch_judgements(contents, pairs, answers, confirmations, model=row.model, tried=before)
        with self.database.transaction(timeout_s=TIMEOUT_S) as connection:
            is_first = import_verdicts(connection, row, opinions.judgements, import_values(row, outcomes, opinions))
            reach("verdicts stored")
        reach("verdicts committed")
        if not is_first:
            return Collected()
        done = Collected(imported=1, verdicts=len(opinions.judgements), told=warnings_about(opinions, outcomes))
        try:
            self.delete(row)
        except LLMError as error:
            return done + Collected(troubles=(str(error),))
        return done

    def confirm(self, row: BatchRow, pairs: Mapping[str, Pair], answers: FirstAnswers) -> dict[str, PairOutcome]:
        """Return the answers about the swapped pairs that would retire a memory, by hash."""
        hashes = pairs_to_confirm(pairs, answers)
        meter = meter_of(self.database, row.agent_id, row.night)
        judge = ModelJudge(self.claude, meter, row.model, row.model, self.left_s(), at_once=AT_ONCE)
        found = judge.outcomes([[swapped(pairs[each])] for each in hashes], Sitting(self.ends_at - LEAST_S))
        return {pair_hash: pair_outcome(outcome) for pair_hash, (outcome,) in zip(hashes, found, strict=True)}

    def delete(self, row: BatchRow) -> None:
        """Delete an imported batch at the API."""
        if (
            row.batch_id is not None and self.now - row.created_at < KEPT_FOR
        ):  # an older one is deleted by the API itself
            elsewhere = self.account_mismatch(row)
            if elsewhere is not None and self.look_up(row) is None:
                raise LLMError(elsewhere, Failure.PERMANENT)
            delete_batch(self.claude, row.batch_id, deadline_s=max(self.left_s(), LEAST_S))
        set_state(self.database, "set_deleted", row.id)
        reach("batch deleted")

    def give_up(self, row: BatchRow, why: str) -> Collected:
        """Mark a batch as failed and try to delete it at the API; its pairs are asked about again."""
        if not set_state(self.database, "set_failed", row.id, error=why):
            return Collected()  # another look was quicker
        if row.batch_id is not None:
            with suppress(LLMError):  # erasing its agent tries again
                delete_batch(self.claude, row.batch_id, deadline_s=max(self.left_s(), LEAST_S))
                set_state(self.database, "set_deleted", row.id)
        return FAILED + Collected(told=(f"batch {row.batch_id or row.id} was given up: {why}",))

    # --- a batch whose creation was not confirmed: the API has no idempotency key, so it may exist or not ---

    def adopt(self, row: BatchRow) -> Collected:
        """Look for the batch of a row without an id, by its custom ids, among batches of its size that no row names."""
        candidates = self.candidates(row)
        foreign = list[str]()
        for batch in candidates:
            if batch.is_ended and batch.has_results:
                if self.is_ours(row, batch):
                    set_state(self.database, "set_submitted", row.id, batch_id=batch.id)
                    return self.advance(replace(row, state="submitted", batch_id=batch.id))
                foreign.append(batch.id)
        if foreign:  # remembered, so that their results are not downloaded at every look
            known = [*row.request.get("foreign", ()), *foreign]
            set_state(self.database, "set_foreign", row.id, foreign=known)
        is_any_under_way = any(not batch.is_ended for batch in candidates)
        elsewhere = self.account_mismatch(row)
        if is_any_under_way or self.now - row.created_at < (KEPT_FOR if elsewhere else LOST_AFTER):
            return WAITING + Collected(troubles=(elsewhere,) if elsewhere else ())
        return self.give_up(row, "it never arrived: no batch of the API has its custom ids")

    def candidates(self, row: BatchRow) -> list[Batch]:
        """Return the batches that may belong to a row, oldest first: by number of requests and time of creation."""
        listed = batches_since(self.claude, row.created_at - SKEW, deadline_s=self.left_s())
        until = row.created_at + timedelta(seconds=UPLOAD_DEADLINE_S) + SKEW
        fitting = [each for each in listed if each.request_count == row.request_count and each.created_at <= until]
        with self.database.transaction() as connection:
            known = known_batches(connection, [batch.id for batch in fitting])
        known |= set(row.request.get("foreign", ()))
        return sorted((batch for batch in fitting if batch.id not in known), key=lambda batch: batch.created_at)

    def is_ours(self, row: BatchRow, batch: Batch) -> bool:
        """Return whether the results of a batch have custom ids of a row."""
        path = results_path(self.root, row)
        looked_into = path.with_name(f"{path.name}.{batch.id}")
        try:
            download_results(self.claude, batch, looked_into, deadline_s=self.left_s())
            with looked_into.open("rb") as lines:
                return any(f'"{row.prefix}-'.encode() in line for line in lines)
        finally:
            looked_into.unlink(missing_ok=True)


def import_values(row: BatchRow, outcomes: BatchOutcomes, opinions: BatchJudgements) -> dict[str, Any]:
    """Return the values of a row after import; raise `InvalidInput` for a model without a price."""
    request = {
        "pair_count": row.pair_count,
        "account": row.account,
        "again": dict(opinions.again),
        "canaries_wrong": list(opinions.canaries_wrong),
        "unknown_types": list(outcomes.unknown_types),
        "duplicates": outcomes.duplicate_count,
        "unknown": outcomes.unknown_count,
        "broken": outcomes.broken_count,
    }
    return {
        "request": Jsonb(request),
        "failed_count": outcomes.failed_count,
        "cost_usd": cost_of(row.model, outcomes.usage, is_batch=True),
        "error": "; ".join(warnings_about(opinions, outcomes)) or None,
        **vars(outcomes.usage),
    }


def warnings_about(opinions: BatchJudgements, outcomes: BatchOutcomes) -> tuple[str, ...]:
    """Return warnings about the results of a batch, for the operator."""
    wrong, types, unpaid = opinions.canaries_wrong, outcomes.unknown_types, outcomes.unpaid
    return (
        *([f"nothing of the batch is believed, {'; '.join(wrong)}"] if wrong else []),
        *([f"{len(unpaid)} requests met a limit of the account and are asked again ({unpaid[0]})"] if unpaid else []),
        *([f"results of an unknown type: {', '.join(types)}"] if types else []),
    )
