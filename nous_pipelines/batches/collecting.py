"""Bringing batches home: one step after the other, each of which can be repeated, so that any crash is healed here."""

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
from nous_online.language.claude.pair_prompt import PROMPT_VERSION, PairAnswer
from nous_online.language.claude.replies import Failure, LLMError, Usage
from nous_online.language.claude.spending import cost_of, meter_of
from nous_online.language.pairs.judging import Judgement, Pair, Verdict
from nous_pipelines.batches.batch_requests import (
    CANARY,
    QUESTION,
    BatchOutcomes,
    Fate,
    OfPair,
    Tried,
    brought_home,
    of_pair,
    outcomes_of,
)
from nous_pipelines.batches.batch_rows import (
    KEPT_FOR,
    BatchRow,
    facts_told,
    import_verdicts,
    is_open,
    is_whole,
    known_batches,
    results_path,
    set_state,
    tried,
    unfinished,
)
from nous_pipelines.failpoints import reach

MOST_AGAIN = {Fate.TRUNCATED: 1, Fate.MALFORMED: 3, Fate.REFUSED: 0, Fate.INVALID: 0}
"""How often a pair is asked about again for a reason; for any other as often as it takes."""
ANY_NUMBER = 1_000_000
NOT_BELIEVED = "canary"
GONE = "changed"
"""Why pairs are asked about again besides the fate of their requests: the batch, or the pair, is not what it was."""
WORDS = {
    Fate.TRUNCATED: "its answer was cut short twice",
    Fate.MALFORMED: f"its answer could not be read {MOST_AGAIN[Fate.MALFORMED] + 1} times",
    Fate.REFUSED: "it declined to answer",
    Fate.INVALID: "the request was refused as invalid",
}


@dataclass(frozen=True)
class Opinions:
    """Judgements by the hash of their pair; `again` says of the others why, and of a refusal that it was one."""

    judgements: Mapping[str, Judgement] = field(default_factory=dict[str, Judgement])
    again: Mapping[str, str] = field(default_factory=dict[str, str])
    canaries_wrong: tuple[str, ...] = ()


@dataclass(frozen=True)
class BatchContents:
    """What a batch asked, in its order: the hashes of the pairs of each question, and its canaries, after a prefix."""

    prefix: str
    questions: Sequence[Sequence[str]]
    canaries: Sequence[str]

    @property
    def hashes(self) -> list[str]:
        """All pairs that were asked about."""
        return [pair_hash for question in self.questions for pair_hash in question]


@dataclass(frozen=True)
class Straight:
    """What a batch said of its pairs in the order they were asked about in, by hash; nothing where it lied."""

    by_hash: Mapping[str, OfPair] = field(default_factory=dict[str, OfPair])
    shares: Mapping[str, Usage] = field(default_factory=dict[str, Usage])
    """The tokens of a question, shared among its pairs."""
    canaries_wrong: tuple[str, ...] = ()


def straight_of(asked: BatchContents, outcomes: BatchOutcomes) -> Straight:
    """Return what a batch says of the pairs it asked about; one canary answered wrongly, and none of it is believed."""
    wrong = tuple(canaries_failed(canary_answers(asked, outcomes)))
    if wrong:
        return Straight(canaries_wrong=wrong)
    found: dict[str, OfPair] = {}
    shares: dict[str, Usage] = {}
    for number, question in enumerate(asked.questions):
        outcome = outcomes.by_id[f"{asked.prefix}-{number}-{QUESTION}"]
        for place, pair_hash in enumerate(question, start=1):
            found[pair_hash] = outcome.about(place)
            shares[pair_hash] = share_of(outcome.usage, len(question))
    return Straight(found, shares)


def to_confirm(pairs: Mapping[str, Pair], straight: Straight) -> list[str]:
    """Return the pairs whose answer would retire a memory: each is asked about once more, swapped and alone."""
    found = straight.by_hash.items()
    return [each for each, said in found if each in pairs and said.answer and needs_confirmation(said.answer)]


def opinions_of(
    asked: BatchContents,
    pairs: Mapping[str, Pair],
    straight: Straight,
    back: Mapping[str, OfPair],
    *,
    model: str,
    tried: Tried,
) -> Opinions:
    """Return what the answers in both orders, `back` those about the swapped pairs, come to.

    A pair that is not among `pairs` says something else by now, and its answer counts for nothing.
    """
    if straight.canaries_wrong:
        again = dict.fromkeys(asked.hashes, NOT_BELIEVED)
        return Opinions(again=again, canaries_wrong=straight.canaries_wrong)
    judgements: dict[str, Judgement] = {}
    again: dict[str, str] = {}
    for pair_hash in asked.hashes:
        first, other = straight.by_hash[pair_hash], back.get(pair_hash)
        obstacle = first if first.answer is None else other if other is not None and other.answer is None else None
        if pair_hash not in pairs:
            again[pair_hash] = GONE
        elif obstacle is None and first.answer is not None:
            judgement = confirmed(pairs[pair_hash], first.answer, other and other.answer, model=model)
            judgements[pair_hash] = metered(judgement, straight.shares[pair_hash], model)
        elif obstacle is not None:
            is_last = tried.count(model, pair_hash, obstacle.fate) >= MOST_AGAIN.get(obstacle.fate, ANY_NUMBER)
            if is_last:
                judgements[pair_hash] = metered(undecidable(obstacle.fate, model), straight.shares[pair_hash], model)
            if not is_last or obstacle.fate is Fate.REFUSED:
                again[pair_hash] = obstacle.fate.value
    return Opinions(judgements, again)


def undecidable(fate: Fate, model: str) -> Judgement:
    """Return the `unsure` that is kept of a pair which is not asked about again with this model and prompt."""
    reason = f"no answer of {model} is to be had: {WORDS[fate]}"
    return Judgement(Verdict.UNSURE, 0.0, reason, None, None, model, PROMPT_VERSION)


def share_of(usage: Usage, count: int) -> Usage:
    """Return an equal share of tokens."""
    return Usage(*(tokens // count for tokens in astuple(usage)))


def metered(judgement: Judgement, usage: Usage, model: str) -> Judgement:
    """Return a judgement with its tokens and what they cost in a batch, in US dollars."""
    return replace(
        judgement,
        input_tokens=usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens,
        output_tokens=usage.output_tokens,
        cost_usd=cost_of(model, usage, is_batch=True),
    )


def canary_answers(asked: BatchContents, outcomes: BatchOutcomes) -> dict[str, PairAnswer | None]:
    """Return what was said of each canary that was sent, by its name."""
    sent = ((name, outcomes.by_id.get(f"{asked.prefix}-{n}-{CANARY}")) for n, name in enumerate(asked.canaries))
    return {name: outcome.about(1).answer for name, outcome in sent if outcome is not None}


# --- bringing answers home ---

logger = logging.getLogger(__name__)
LOST_AFTER = timedelta(hours=20)
"""How long a batch whose creation was not answered is looked for: less than a day, so that the next night asks anew.

One of its size that is still under way is waited for in any case.
"""
SKEW = timedelta(hours=1)  # between our clock and the API's, by which batches are listed
MOST_FAILURES = 2
"""Failures in a row of what all batches need, after which the others wait for the next look."""
TIMEOUT_S = 600.0
LEAST_S = 1.0
AT_ONCE = 8
"""Questions under way at one time when answers of a batch are confirmed."""


@dataclass(frozen=True)
class Collected(Addable):
    """What a look at open batches came to."""

    imported: int = 0
    verdicts: int = 0
    waiting: int = 0
    """Batches still on their way."""
    failed: int = 0
    """Batches given up: their pairs are asked about again."""
    told: tuple[str, ...] = ()
    """What a person may want to know: what was given up or not believed, and is asked about again."""
    troubles: tuple[str, ...] = ()
    """What is in the way now."""

    @property
    def words(self) -> str:
        """This in a sentence."""
        parts = [
            f"{self.imported} batches came home with {self.verdicts} verdicts" if self.imported else "",
            f"{self.waiting} batches are on their way" if self.waiting else "",
            f"{self.failed} batches were given up, and their pairs are asked about again" if self.failed else "",
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
    """Take every open batch as far as it goes now, within `seconds`; nothing is waited for.

    Results are kept under `root`. What is in the way of one batch, whatever it is, is told, and the next one is taken;
    when the same may be in the way of all, as often as that happens twice in a row, the look is over. Raises what the
    database raises when it is asked which batches are open.
    """
    collector = Collector(database, claude, root, now, time.monotonic() + seconds)
    done = Collected()
    failures = 0
    rows = unfinished(database, agent_ids)
    for row in rows:
        if collector.left_s() < LEAST_S:
            return done + Collected(troubles=(f"there was no time for more within {seconds:g} s",))
        try:
            done += (collector if row is rows[-1] else collector.halved()).advance(row)
            failures = 0
        except Exception as error:  # no row may keep the others from coming home
            done += Collected(waiting=int(row.is_open), troubles=(trouble_of(row, error),))
            failures = failures + 1 if concerns_all(error) else 0
        if failures == MOST_FAILURES:
            break
    return done


def concerns_all(error: Exception) -> bool:
    """Tell whether what failed for one batch may fail for every other: the API, the account or the database."""
    if isinstance(error, LLMError):
        return error.kind in {Failure.TRANSIENT, Failure.QUOTA}
    return isinstance(error, Unavailable)


def trouble_of(row: BatchRow, error: Exception) -> str:
    """Return what is in the way of a batch in words; what nobody foresaw is named with the batch and logged whole."""
    if isinstance(error, LLMError | NousError):
        return str(error)
    logger.error("batch %s could not be collected", row.id, exc_info=error)
    return f"batch {row.batch_id or row.id} could not be collected ({type(error).__name__}: {error}); please report it"


@dataclass(frozen=True)
class Collector:
    """One look: with whom it speaks, where it keeps results, and until when."""

    database: Database
    claude: Claude
    root: Path
    now: datetime
    ends_at: float

    def left_s(self) -> float:
        """Return the seconds left."""
        return self.ends_at - time.monotonic()

    def halved(self) -> Collector:
        """Return this look with half the time that is left, so that a slow batch leaves the others some."""
        return replace(self, ends_at=self.ends_at - self.left_s() / 2)

    def advance(self, row: BatchRow) -> Collected:
        """Take one batch as far as it goes now."""
        if row.state == "imported":
            self.delete(row)
            return Collected()
        if row.batch_id is None:
            return self.adopt(row)
        path = results_path(self.root, row)
        if row.state == "ended" and is_whole(path, row.raw_sha256):
            return self.bring_home(row, path)
        batch = self.looked_up(row)
        if batch is None:
            return self.unknown(row)
        if not batch.is_ended:
            return WAITING
        set_state(self.database, "set_ended", row.id)
        reach("batch ended")
        return self.download(row, batch, path)

    def looked_up(self, row: BatchRow) -> Batch | None:
        """Return a batch as it is now; None when a list that comes without complaint does not have it."""
        batch_id = row.batch_id or ""
        try:
            return get_batch(self.claude, batch_id, deadline_s=self.left_s())
        except LLMError as error:
            if error.kind is not Failure.PERMANENT:
                raise
            listed = batches_since(self.claude, row.created_at - SKEW, deadline_s=self.left_s())
            return next((batch for batch in listed if batch.id == batch_id), None)

    def unknown(self, row: BatchRow) -> Collected:
        """Wait for a batch the API does not know, since it may be another account's; give it up when it is old."""
        if not is_open(self.database, row.id):
            return Collected()  # another look brought it home and deleted it
        elsewhere = self.elsewhere(row)
        if self.now - row.created_at >= (KEPT_FOR if elsewhere else LOST_AFTER):
            return self.give_up(row, "the API knows nothing of it any more")
        told = f"the API knows nothing of batch {row.batch_id}; are ANTHROPIC_BASE_URL and ANTHROPIC_API_KEY right?"
        return WAITING + Collected(troubles=(elsewhere or told,))

    def elsewhere(self, row: BatchRow) -> str | None:
        """Say so when a batch was sent from another account than this look sees: what is missing here may be there."""
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
        return self.bring_home(row, path)

    def bring_home(self, row: BatchRow, path: Path) -> Collected:
        """Store the verdicts of saved results with what they cost, then delete what the API keeps of the batch.

        What would retire a memory is asked about again first, swapped and without a batch, as far as there is time.
        """
        if row.prompt_version != PROMPT_VERSION:
            return self.give_up(row, f"it was asked by another version of Nous ({row.prompt_version})")
        with path.open("rb") as lines:
            outcomes = outcomes_of(lines, row.custom_ids)
        with self.database.transaction(row.agent_id, timeout_s=TIMEOUT_S) as connection:
            ids = [fact_id for home in row.homes for fact_id in home[1:3]]
            pairs = brought_home(row.agent_id, row.homes, facts_told(connection, row.agent_id, ids))
            before = tried(connection, row.agent_id)
        asked = BatchContents(row.prefix, row.questions, row.canaries)
        straight = straight_of(asked, outcomes)
        back = self.confirmed(row, pairs, straight)
        opinions = opinions_of(asked, pairs, straight, back, model=row.model, tried=before)
        with self.database.transaction(timeout_s=TIMEOUT_S) as connection:
            is_first = import_verdicts(connection, row, opinions.judgements, imported(row, outcomes, opinions))
            reach("verdicts stored")
        reach("verdicts committed")
        if not is_first:
            return Collected()
        done = Collected(imported=1, verdicts=len(opinions.judgements), told=alarms(opinions, outcomes))
        try:
            self.delete(row)
        except LLMError as error:
            return done + Collected(troubles=(str(error),))
        return done

    def confirmed(self, row: BatchRow, pairs: Mapping[str, Pair], straight: Straight) -> dict[str, OfPair]:
        """Return what was answered about the swapped pairs that would retire a memory, by hash."""
        hashes = to_confirm(pairs, straight)
        meter = meter_of(self.database, row.agent_id, row.night)
        judge = ModelJudge(self.claude, meter, row.model, row.model, self.left_s(), at_once=AT_ONCE)
        found = judge.outcomes([[swapped(pairs[each])] for each in hashes], Sitting(self.ends_at - LEAST_S))
        return {pair_hash: of_pair(outcome) for pair_hash, (outcome,) in zip(hashes, found, strict=True)}

    def delete(self, row: BatchRow) -> None:
        """Delete what the API keeps of a batch whose verdicts are at home."""
        if row.batch_id is not None and self.now - row.created_at < KEPT_FOR:
            elsewhere = self.elsewhere(row)
            if elsewhere is not None and self.looked_up(row) is None:
                raise LLMError(elsewhere, Failure.PERMANENT)
            delete_batch(self.claude, row.batch_id, deadline_s=max(self.left_s(), LEAST_S))
        set_state(self.database, "set_deleted", row.id)
        reach("batch deleted")

    def give_up(self, row: BatchRow, why: str) -> Collected:
        """Let go of a batch, here and at the API if it can be; its pairs are asked about again."""
        if not set_state(self.database, "set_failed", row.id, error=why):
            return Collected()  # another look was quicker
        if row.batch_id is not None:
            with suppress(LLMError):  # erasing its agent tries again
                delete_batch(self.claude, row.batch_id, deadline_s=max(self.left_s(), LEAST_S))
                set_state(self.database, "set_deleted", row.id)
        return FAILED + Collected(told=(f"batch {row.batch_id or row.id} was given up: {why}",))

    # --- a batch whose creation was not answered ---

    def adopt(self, row: BatchRow) -> Collected:
        """Look for a batch that may have been made: among those of its size that nobody knows, by its custom ids."""
        candidates = self.candidates(row)
        foreign = list[str]()
        for batch in candidates:
            if batch.is_ended and batch.has_results:
                if self.is_ours(row, batch):
                    set_state(self.database, "set_submitted", row.id, batch_id=batch.id)
                    return self.advance(replace(row, state="submitted", batch_id=batch.id))
                foreign.append(batch.id)
        if foreign:
            known = [*row.request.get("foreign", ()), *foreign]
            set_state(self.database, "set_foreign", row.id, foreign=known)
        is_any_under_way = any(not batch.is_ended for batch in candidates)
        elsewhere = self.elsewhere(row)
        if is_any_under_way or self.now - row.created_at < (KEPT_FOR if elsewhere else LOST_AFTER):
            return WAITING + Collected(troubles=(elsewhere,) if elsewhere else ())
        return self.give_up(row, "it never arrived: no batch of the API has its custom ids")

    def candidates(self, row: BatchRow) -> list[Batch]:
        """Return the batches that may be the one of a row, the oldest first."""
        listed = batches_since(self.claude, row.created_at - SKEW, deadline_s=self.left_s())
        until = row.created_at + timedelta(seconds=UPLOAD_DEADLINE_S) + SKEW
        fitting = [each for each in listed if each.request_count == row.request_count and each.created_at <= until]
        with self.database.transaction() as connection:
            known = known_batches(connection, [batch.id for batch in fitting])
        known |= set(row.request.get("foreign", ()))
        return sorted((batch for batch in fitting if batch.id not in known), key=lambda batch: batch.created_at)

    def is_ours(self, row: BatchRow, batch: Batch) -> bool:
        """Tell whether the results of a batch carry custom ids of a row."""
        path = results_path(self.root, row)
        looked_into = path.with_name(f"{path.name}.{batch.id}")
        try:
            download_results(self.claude, batch, looked_into, deadline_s=self.left_s())
            with looked_into.open("rb") as lines:
                return any(f'"{row.prefix}-'.encode() in line for line in lines)
        finally:
            looked_into.unlink(missing_ok=True)


def imported(row: BatchRow, outcomes: BatchOutcomes, opinions: Opinions) -> dict[str, Any]:
    """Return what the row of a batch keeps of its results; raise `InvalidInput` for a model without a price."""
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
        "error": "; ".join(alarms(opinions, outcomes)) or None,
        **vars(outcomes.usage),
    }


def alarms(opinions: Opinions, outcomes: BatchOutcomes) -> tuple[str, ...]:
    """Return what a person should know of the results of a batch."""
    wrong, types, unpaid = opinions.canaries_wrong, outcomes.unknown_types, outcomes.unpaid
    return (
        *([f"nothing of the batch is believed, {'; '.join(wrong)}"] if wrong else []),
        *([f"{len(unpaid)} requests met a limit of the account and are asked again ({unpaid[0]})"] if unpaid else []),
        *([f"results of a type nobody knows: {', '.join(types)}"] if types else []),
    )
