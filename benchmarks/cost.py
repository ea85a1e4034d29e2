"""What Claude costs a night: dollars and requests for a thousand facts, and what batches save over asking at once.

Nobody is paid for it: an API on this machine counts the tokens, the price list says what they cost.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks import server
from benchmarks.anthropic_server import LocalAnthropic, PlayRoute
from benchmarks.anthropic_server.messages import CHARACTERS_A_TOKEN
from benchmarks.drawn_nights import add_facts, fill
from benchmarks.night import with_database
from nous_online.core.details import FactDetails
from nous_online.core.settings import settings
from nous_online.database.connection import Database, prepare
from nous_online.heart import Heart
from nous_online.language.claude.client import claude_of
from nous_online.language.claude.replies import Request, Usage
from nous_online.language.claude.spending import PRICES_AS_OF, Spent, cost_of, meter_of
from nous_pipelines.batches.second_judge import SecondJudge
from nous_pipelines.demo.show import history
from nous_pipelines.nights import last_night
from nous_pipelines.orchestration.running import NightOptions, run_night
from nous_pipelines.reports.costs import Cost, Dimension, costs_of

FACTS, QUICK_FACTS = 1_000, 200
NEWS_SHARE = 0.1
AGENT = "aria"
POLICY = {"max_leaving_share": 1.0, "max_leaving_count": 1e6}
"""A first night over an import changes more than a usual one may; its operator says so."""
CLAUDE_CHARACTERS_A_TOKEN = 2.5
"""Of the tokenizer since Opus 4.7: a million tokens are about two and a half million characters (Anthropic's pages of
the models, October 2026). The local API counts more characters to a token, so that its dollars are scaled."""
SCALE = CHARACTERS_A_TOKEN / CLAUDE_CHARACTERS_A_TOKEN
JUDGED_BY = "select count(*) from heart.judgements where model = %s"
COLLECT_S, ASK_S, LEARN_S = 60.0, 10.0, 120.0


@dataclass(frozen=True)
class Measured:
    """What two nights and the same requests at once came to; `sent` is what reached the API."""

    first: Cost
    second: Cost
    online: Cost
    sent: int
    pairs: int


@dataclass(frozen=True)
class Dense:
    """What the first night of a history full of look-alikes came to."""

    cost: Cost
    facts: int


def run(*, data: Path, quick: bool) -> dict[str, Any]:
    """Draw a store, run its first night and one with news against the local API, then ask the same without a batch."""
    facts = QUICK_FACTS if quick else FACTS
    with server() as (url, home):
        found = measured(url, home, facts)
        dense = None if quick else dense_history(with_database(url, "dense"), home)
    result = described(found, facts)
    return result if dense is None else {**result, "peers": {**result["peers"], **told_of(dense)}}


@contextmanager
def local_api() -> Generator[LocalAnthropic]:
    """Yield an API on this machine that this process asks, with nothing in its cache."""
    with LocalAnthropic() as server, asking(server.url):
        yield server


@contextmanager
def asking(url: str) -> Generator[None]:
    """Let this process ask Claude at an address, without a proxy or a price list of its own."""
    wanted = {"ANTHROPIC_API_KEY": "local", "ANTHROPIC_BASE_URL": url, "NOUS_JUDGE": "claude", "no_proxy": "127.0.0.1"}
    before = {name: os.environ.get(name) for name in (*wanted, "NOUS_PRICES")}
    os.environ.pop("NOUS_PRICES", None)
    os.environ.update(wanted)
    settings.cache_clear()
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            os.environ.update({name: value} if value is not None else {})
        settings.cache_clear()


def measured(url: str, home: Path, facts: int) -> Measured:
    """Run both nights, each collected, and ask every question of the first night again, at once and one by one."""
    second = last_night(datetime.now(UTC))
    first, online = second - timedelta(days=1), second + timedelta(days=1)
    prepare(url)
    fill(url, {AGENT: facts}, episodes=0, night=first)
    database = Database(url, role="nous_night")
    try:
        with local_api() as api:
            collected_night(first, url, home, database)
            questions = requests_at(api)
            add_facts(url, {AGENT: facts}, share=NEWS_SHARE, night=second)
            collected_night(second, url, home, database)
            sent = len(requests_at(api))
        with local_api() as other:  # of another cache: the first question pays for writing it, as in the batch
            ask_at_once(questions, database, online)
            sent += len(other.asked(PlayRoute.MESSAGE))
        nights = [spent_on(night, database) for night in (first, second, online)]
        return Measured(*nights, sent=sent, pairs=pairs_judged(database))
    finally:
        database.close()


def dense_history(url: str, home: Path) -> Dense:
    """Run the first night of the demo's history: English, written by hand to hold look-alikes."""
    night = last_night(datetime.now(UTC))
    entries = [fact_of(record) for record in history(until=night) if record["kind"] == "fact"]
    database, night_database = Database(url), Database(url, role="nous_night")
    try:
        heart = Heart.open(AGENT, database=database, works_in_background=False)
        heart.learn_deferred(entries, deadline_s=LEARN_S)
        with local_api():
            collected_night(night, url, home, night_database)
        return Dense(spent_on(night, night_database), len(entries))
    finally:
        database.close()
        night_database.close()


def fact_of(record: dict[str, Any]) -> tuple[str, FactDetails]:
    """Return a fact of the demo's history as `learn_deferred` takes it."""
    details: FactDetails = {"learned_at": datetime.fromisoformat(record["learned_at"])}
    if "subject" in record:
        details["subject"] = record["subject"]
    return record["content"], details


def collected_night(night: date, url: str, home: Path, database: Database) -> None:
    """Run a night, then bring home what it asked; a night that fails stops the benchmark."""
    from dagster import DagsterInstance

    with DagsterInstance.ephemeral() as instance:
        outcome = run_night(night, NightOptions(url, home, policy=POLICY), instance=instance)
    second_judge = SecondJudge.of(settings())
    assert outcome.is_success, outcome.failures
    assert second_judge is not None
    troubles = second_judge.look(database, home, seconds=COLLECT_S).troubles
    assert not troubles, troubles


def requests_at(server: LocalAnthropic) -> list[Request]:
    """Return every request that came, in a batch or by itself."""
    batched = [item["params"] for body in server.asked(PlayRoute.CREATE_BATCH) for item in body["requests"]]
    return batched + server.asked(PlayRoute.MESSAGE)


def ask_at_once(questions: Sequence[Request], database: Database, night: date) -> None:
    """Ask the same one by one, without a batch, and meter it under a night of its own."""
    claude, meter = claude_of(settings()), meter_of(database, AGENT, night)
    for question in questions:
        meter(Spent("judge", question["model"], "", claude.ask(question, deadline_s=ASK_S).usage))


def spent_on(night: date, database: Database) -> Cost:
    """Return what was metered for a night."""
    found = costs_of(database, [Dimension.NIGHT], first=night, last=night)
    return found[0] if found else Cost(night, None, None, None, None, 0, 0, 0, 0, 0, 0, 0, 0.0, 0.0)


def pairs_judged(database: Database) -> int:
    """Return how many pairs Claude has given a verdict about."""
    with database.transaction() as connection:
        rows = connection.execute(JUDGED_BY, [settings().judge_model]).fetchall()
    return rows[0][0]


def told_of(dense: Dense) -> dict[str, float]:
    """Return what a history full of look-alikes cost."""
    thousands = dense.facts / 1000
    return {
        "usd_per_1k_dense_facts": dense.cost.usd * SCALE / thousands,
        "requests_per_1k_dense_facts": dense.cost.requests / thousands,
    }


def described(found: Measured, facts: int) -> dict[str, Any]:
    """Put what was measured together."""
    first, second, online = found.first, found.second, found.online
    model, thousands = settings().judge_model, facts / 1000
    usage = Usage(first.input_tokens, first.output_tokens, first.cache_read_tokens, first.cache_write_tokens)
    uncached = Usage(first.tokens - first.output_tokens, first.output_tokens)
    return {
        "metrics": {
            "usd_per_1k_facts_first_night": first.usd * SCALE / thousands,
            "usd_per_1k_facts_second_night": second.usd * SCALE / thousands,
            "requests_per_1k_facts": first.requests / thousands,
            "batch_over_online_ratio": first.usd / online.usd,
            "unmetered_requests": found.sent - first.requests - second.requests - online.requests,
        },
        "peers": {
            "usd_per_1k_facts_online": online.usd * SCALE / thousands,
            "batch_over_online_ratio_no_cache_at_all": cost_of(model, uncached, is_batch=True)
            / cost_of(model, uncached, is_batch=False),
            "batch_over_online_ratio_cache_online_only": cost_of(model, uncached, is_batch=True)
            / cost_of(model, usage, is_batch=False),
            "requests_second_night": second.requests,
            "pairs_judged_by_claude": found.pairs,
            "tokens_from_cache_share": first.cache_read_tokens / first.tokens,
        },
        "notes": [
            f"{facts:,} drawn facts, 3 % repeats, 1 % new values; {NEWS_SHARE:.0%} news before the second night",
            f"{model} at the prices of {PRICES_AS_OF}; an API on this machine counts {CHARACTERS_A_TOKEN} characters"
            f" to a token, dollars are scaled to the {CLAUDE_CHARACTERS_A_TOKEN} that its maker names",
            "all pairs of a newer fact are one question, each that would retire a memory one more; a batch holds pairs"
            " whose verdict is known besides",
            "dense (not with --quick): the first night of the demo's facts, written to be mistaken for each other",
            "online: the very requests of the first night, one by one. Both find the instructions in the cache but for"
            " the first question; Anthropic promises that online, and in a batch only tries: see the peers",
            "a batch that finds nothing in the cache costs what `…_cache_online_only` says beside one question after"
            " the other, and half (`…_no_cache_at_all`) beside questions more than five minutes apart",
        ],
    }
