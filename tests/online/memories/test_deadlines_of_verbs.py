"""Every verb ends by its deadline with an error of ours, whatever breaks, and leaves nothing half-written.

The verbs are found by looking: a new one without a case here fails.
"""

from __future__ import annotations

import inspect
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import psycopg
import pytest
from conftest import ScriptedJudge, WordEmbedder
from fault_proxy import FaultProxy
from postgres_homes import wait_for
from psycopg.sql import SQL, Composed, Identifier, Literal
from stopwatch import stopwatch

from nous_online.core.domain import FACT
from nous_online.core.errors import DeadlineExceeded, Unavailable
from nous_online.database import postgres
from nous_online.database.changes import Alteration, Cause, change_memories, version_of
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.language.minilm import Vectors
from nous_online.language.pairs.judging import Judgement, Pair
from nous_online.language.writing.writer import Draft, EndedEpisode, OfflineWriter

DEADLINE_S = 0.1
TOLERANCE_S = 0.75  # for the grace in which the server may still answer, and for a busy machine
SHORT_S, SLOW_S = 0.5, 1.5  # a deadline that is enough without a slow model, and how slow that is
NOT_VERBS = {"open", "close", "limited_to", "session"}
DETAIL = "The billing database moved to cluster seven. Mara approved it. The old cluster is switched off in June."


@dataclass(frozen=True)
class World:
    """A database behind a proxy, with something in it for every verb."""

    owner: psycopg.Connection
    """One for all looks at what is stored, past the proxy."""
    digest: Composed
    """The query for it: to plan it takes ten times as long as to run it."""
    proxy: FaultProxy
    heart: Heart
    ids: dict[str, UUID]
    recall: Any


Case = Callable[[Heart, World, float], object]
CASES: dict[str, Case] = {
    "learn": lambda h, w, d: h.learn("Deploys go through blue and green", deadline_s=d),
    "learn_deferred": lambda h, w, d: h.learn_deferred([("Deploys take an hour", {})], deadline_s=d),
    "get": lambda h, w, d: h.get(w.ids["fact"], deadline_s=d),
    "get_fact": lambda h, w, d: h.get_fact(w.ids["fact"], deadline_s=d),
    "count": lambda h, w, d: h.count(deadline_s=d),
    "confirm_fact": lambda h, w, d: h.confirm_fact(w.ids["fact"], deadline_s=d),
    "supersede_fact": lambda h, w, d: h.supersede_fact(w.ids["old"], w.ids["new"], deadline_s=d),
    "statements": lambda h, w, d: h.statements(w.ids["fact"], deadline_s=d),
    "predecessors": lambda h, w, d: h.predecessors(w.ids["fact"], deadline_s=d),
    "split": lambda h, w, d: h.split(w.ids["statement"], deadline_s=d),
    "forget": lambda h, w, d: h.forget(w.ids["fact"], reason="asked for", deadline_s=d),
    "restore": lambda h, w, d: h.restore(w.ids["fact"], deadline_s=d),
    "pin": lambda h, w, d: h.pin(w.ids["fact"], deadline_s=d),
    "unpin": lambda h, w, d: h.unpin(w.ids["fact"], deadline_s=d),
    "update": lambda h, w, d: h.update(w.ids["fact"], subject="another", deadline_s=d),
    "recall": lambda h, w, d: h.recall("where is the tea?", deadline_s=d),
    "cite": lambda h, w, d: h.cite(w.recall.id, [w.recall[0].id], deadline_s=d),
    "ignore": lambda h, w, d: h.ignore(w.recall.id, [w.recall[1].id], deadline_s=d),
    "start_episode": lambda h, w, d: h.start_episode("Another move", deadline_s=d),
    "update_episode": lambda h, w, d: h.update_episode(w.ids["episode"], tags=["move"], deadline_s=d),
    "close_episode": lambda h, w, d: h.close_episode(w.ids["closing"], append=DETAIL, deadline_s=d),
    "record_episode": lambda h, w, d: h.record_episode(DETAIL, title="A move", deadline_s=d),
    "retry_episode": lambda h, w, d: h.retry_episode(w.ids["closed"], deadline_s=d),
    "get_episode": lambda h, w, d: h.get_episode(w.ids["episode"], deadline_s=d),
    "full_text": lambda h, w, d: h.full_text(w.ids["episode"], deadline_s=d),
    "episode_artifacts": lambda h, w, d: h.episode_artifacts(w.ids["episode"], deadline_s=d),
    "store_procedure": lambda h, w, d: h.store_procedure("Brew tea", core_tools=["kettle"], deadline_s=d),
    "activate_procedure": lambda h, w, d: h.activate_procedure(w.ids["procedure"], deadline_s=d),
    "record_procedure_success": lambda h, w, d: h.record_procedure_success(w.ids["procedure"], deadline_s=d),
    "record_procedure_failure": lambda h, w, d: h.record_procedure_failure(w.ids["procedure"], deadline_s=d),
    "get_procedure": lambda h, w, d: h.get_procedure(w.ids["procedure"], deadline_s=d),
    "list_memories": lambda h, w, d: h.list_memories(deadline_s=d),
    "list_procedures": lambda h, w, d: h.list_procedures(deadline_s=d),
    "related_procedures": lambda h, w, d: h.related_procedures(w.ids["procedure"], deadline_s=d),
    "add_censor": lambda h, w, d: h.add_censor("deploy on Friday", "nobody is there", deadline_s=d),
    "check_censors": lambda h, w, d: h.check_censors("drop the table", deadline_s=d),
    "report_false_positive": lambda h, w, d: h.report_false_positive(w.ids["censor"], action="drop it", deadline_s=d),
    "update_censor": lambda h, w, d: h.update_censor(w.ids["censor"], severity="block", deadline_s=d),
    "get_censor": lambda h, w, d: h.get_censor(w.ids["censor"], deadline_s=d),
    "add_webhook": lambda h, w, d: h.add_webhook("https://hooks.example.org/", deadline_s=d),
    "list_webhooks": lambda h, w, d: h.list_webhooks(deadline_s=d),
    "remove_webhook": lambda h, w, d: h.remove_webhook(uuid.uuid4(), deadline_s=d),
    "list_censors": lambda h, w, d: h.list_censors(deadline_s=d),
    "assemble_context": lambda h, w, d: h.assemble_context(query="where is the tea?", deadline_s=d),
    "predict": lambda h, w, d: h.predict(signals={"task": "move the tea"}, deadline_s=d),
    "record_step": lambda h, w, d: h.record_step("boil water", deadline_s=d),
    "learn_workflows": lambda h, w, d: h.learn_workflows(deadline_s=d),
    "focus": lambda h, w, d: h.focus("Move the database", session_id="focused", deadline_s=d),
    "load_context": lambda h, w, d: h.load_context(fact_ids=[w.ids["new"]], session_id="loaded", deadline_s=d),
    "unload": lambda h, w, d: h.unload([w.ids["fact"]], session_id="loaded", deadline_s=d),
    "open_thread": lambda h, w, d: h.open_thread("who pays?", session_id="loaded", deadline_s=d),
    "close_thread": lambda h, w, d: h.close_thread("why?", session_id="loaded", deadline_s=d),
    "get_working_memory": lambda h, w, d: h.get_working_memory("loaded", deadline_s=d),
    "end_session": lambda h, w, d: h.end_session("ending", outcome="success", deadline_s=d),
    "record_decision": lambda h, w, d: h.record_decision("Use cluster seven", deadline_s=d),
    "resolve_decision": lambda h, w, d: h.resolve_decision(w.ids["decision"], status="failed", deadline_s=d),
    "get_decision": lambda h, w, d: h.get_decision(w.ids["decision"], deadline_s=d),
    "decisions": lambda h, w, d: h.decisions(deadline_s=d),
    "publish": lambda h, w, d: h.publish("guardrail_triggered", {"censor_id": str(w.ids["censor"])}, deadline_s=d),
    "subscribe": lambda h, w, d: h.subscribe("fact_learned", lambda _: None, consumer="late", deadline_s=d),
    "deliver": lambda h, w, d: h.deliver(deadline_s=d),
    "work": lambda h, w, d: h.work(deadline_s=d),
    "history": lambda h, w, d: h.history(w.ids["fact"], deadline_s=d),
    "undo": lambda h, w, d: h.undo(w.ids["undone"], reason="a slip", deadline_s=d),
    "undo_source": lambda h, w, d: h.undo_source("a page", reason="forged", deadline_s=d),
    "contradictions": lambda h, w, d: h.contradictions(deadline_s=d),
    "doubts": lambda h, w, d: h.doubts(deadline_s=d),
    "keep_both": lambda h, w, d: h.keep_both(w.ids["new"], w.ids["old"], deadline_s=d),
    "reject_ruling": lambda h, w, d: h.reject_ruling(w.ids["proposed"], deadline_s=d),
    "resolve_contradiction": lambda h, w, d: h.resolve_contradiction(w.ids["rival"], "both_valid", deadline_s=d),
}
EACH_SORT = (
    "learn", "learn_deferred", "recall", "cite", "start_episode", "close_episode", "store_procedure", "check_censors",
    "assemble_context", "focus", "end_session", "record_decision", "publish", "deliver", "work", "undo",
)  # fmt: skip
"""Verbs that read, write, embed, judge, draft, deliver or do several of these: what a fault meets in each sort of call.

Every verb meets the frozen server; the other faults meet the same few paths below the verbs, so one of each sort does.
"""
MAY_CHANGE = {"recall": {"heart.recalls", "heart.usage"}, "work": {"heart.completions"}}
"""A recall goes to the server as one piece: when its answer stays away, it may have been logged, whole. A completion
that was late is noted, and tried again."""


class SlowEmbedder(WordEmbedder):
    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        time.sleep(SLOW_S)
        return super().embed_documents(texts)


class SlowJudge(ScriptedJudge):
    def judge(self, pairs: Sequence[Pair]) -> list[Judgement]:
        time.sleep(SLOW_S)
        return super().judge(pairs)


class SlowWriter(OfflineWriter):
    def write(self, episode: EndedEpisode) -> Draft:
        time.sleep(SLOW_S)
        return super().write(episode)


@pytest.fixture(scope="module")
def world(server: postgres.Server, template: str) -> Iterator[World]:
    name = f"verbs_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(server.dsn("postgres"), autocommit=True) as admin:
        admin.execute(f"create database {name} template {template}")
        url = server.dsn(name)
        with FaultProxy.before(url) as proxy:
            proxy.live_for(600)
            database = Database(proxy.url(url), max_connections=2)
            heart = opened(database)
            with psycopg.connect(url, autocommit=True) as owner:
                ids = filled(heart, url)
                yield World(owner, digest_of(owner), proxy, heart, ids, heart.recall("where is the tea?"))
            database.close()
        admin.execute(f"drop database {name} with (force)")


def opened(database: Database, *, embedder: WordEmbedder | None = None, **seams: Any) -> Heart:
    embedder = embedder or WordEmbedder()
    seams = {"judge": ScriptedJudge(), "writer": OfflineWriter(WordEmbedder()), **seams}
    return Heart.open("aria", database=database, embedder=embedder, works_in_background=False, deadline_s=20, **seams)


def filled(heart: Heart, url: str) -> dict[str, UUID]:
    """Give every verb something to work on."""
    facts = (
        ("fact", "The tea is in the tin"),
        ("old", "Rent is 5"),
        ("new", "Cats sleep"),
        ("undone", "Tea is cold now"),
    )
    ids = {name: heart.learn(text).memory.id for name, text in facts}
    heart.confirm_fact(ids["fact"])
    heart.learn("Cats purr", source="a page")
    ids["statement"] = heart.statements(ids["fact"])[1].id
    for name in ("episode", "closing"):
        ids[name] = heart.start_episode(f"The {name} move").id
    ids["procedure"] = heart.store_procedure("Move a database", core_tools=["rsync"]).id
    ids["censor"] = heart.add_censor("drop the table", "it was the wrong one").id
    ids["decision"] = heart.record_decision("Use two clusters").id
    for session in ("loaded", "ending"):
        heart.focus("Move the database", session_id=session)
    heart.open_thread("why?", session_id="loaded")
    heart.load_context(fact_ids=[ids["fact"]], session_id="loaded")
    heart.work()
    ids["closed"] = heart.record_episode(DETAIL, title="What is left to be worked on").id
    with psycopg.connect(url, autocommit=True) as owner:
        doubted(owner, heart, ids["new"], ids["old"])
        a, b = sorted((ids["fact"], ids["new"]))
        stored = owner.execute(
            "insert into heart.contradictions (agent_id, memory_a, memory_b) values ('aria', %s, %s) returning id",
            [a, b],
        ).fetchone()
        c, d = sorted((ids["old"], ids["undone"]))
        proposed = owner.execute(
            "insert into heart.contradictions (agent_id, memory_a, memory_b, proposed) values ('aria', %s, %s, "
            """'{"resolution": "a_wins", "merged_into": null, "note": null, "by": "a key", "at": "2026-05-01"}')"""
            " returning id",
            [c, d],
        ).fetchone()
    assert stored is not None
    assert proposed is not None
    return {**ids, "rival": stored[0], "proposed": proposed[0]}


def doubted(owner: psycopg.Connection, heart: Heart, later: UUID, earlier: UUID) -> None:
    """Have a fact perhaps replace another one."""
    cause = Cause("agent", "doubted", "so that it can be settled", datetime.now(UTC))
    doubt = Alteration(version_of(FACT, heart.get_fact(later)), {"perhaps_replaces": [str(earlier)]}, cause)
    change_memories(owner, "aria", [doubt])


@contextmanager
def ends_in_time(deadline_s: float = DEADLINE_S) -> Iterator[None]:
    took_s = stopwatch()
    yield
    assert took_s() < deadline_s + TOLERANCE_S


def digest_of(owner: psycopg.Connection) -> Composed:
    """Return the query for a digest of every table."""
    tables = owner.execute("""
        select n.nspname, c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
        where n.nspname in ('heart', 'brain', 'lifecycle') and c.relkind in ('r', 'p')""").fetchall()
    digest = SQL("select {}, md5(string_agg(t::text, '|' order by t::text)) from {} t")
    return SQL(" union all ").join(digest.format(Literal(".".join(table)), Identifier(*table)) for table in tables)


def state(world: World) -> dict[str, str]:
    """A digest of every table, as the owner sees it."""
    return dict(world.owner.execute(world.digest, prepare=True).fetchall())


def changed(before: dict[str, str], after: dict[str, str]) -> set[str]:
    return {table for table in after if after[table] != before[table]}


def test_every_verb_has_a_case_and_takes_a_deadline() -> None:
    verbs = {
        name: inspect.signature(member)
        for name, member in inspect.getmembers(Heart, callable)
        if not name.startswith("_") and name not in NOT_VERBS
    }

    assert set(CASES) == set(verbs)
    assert [name for name, signature in verbs.items() if "deadline_s" not in signature.parameters] == []


@pytest.mark.parametrize("verb", CASES)
def test_a_frozen_server_ends_the_call(world: World, verb: str) -> None:
    before = state(world)

    world.proxy.freeze()
    try:
        with ends_in_time(), pytest.raises((DeadlineExceeded, Unavailable)):
            CASES[verb](world.heart, world, DEADLINE_S)
    finally:
        world.proxy.thaw()

    assert changed(before, state(world)) == set()


@pytest.mark.parametrize("verb", EACH_SORT)
def test_a_server_that_stalls_amid_the_call_ends_it(world: World, verb: str) -> None:
    world.heart.count()  # over a connection that works
    before = state(world)

    world.proxy.freeze_after(1)
    try:
        with ends_in_time(), pytest.raises((DeadlineExceeded, Unavailable)):
            CASES[verb](world.heart, world, DEADLINE_S)
    finally:
        world.proxy.thaw()

    assert changed(before, state(world)) <= MAY_CHANGE.get(verb, set())


def is_reached(world: World) -> bool:
    """Tell whether the database answers: the test before cut connections, of which the pool may still hold one."""
    try:
        return bool(world.heart.count())
    except Unavailable:
        return False


def is_at_rest(world: World) -> bool:
    """Tell whether no connection is being made: one that is would be cut before the call has begun."""
    stats = world.heart.agent.database._pool.get_stats()
    return stats["pool_size"] == stats["pool_available"] > 0


@pytest.mark.parametrize("verb", EACH_SORT)
def test_a_connection_cut_amid_the_call_ends_it_at_once(world: World, verb: str) -> None:
    wait_for(lambda: is_reached(world))
    wait_for(lambda: is_at_rest(world))
    before = state(world)

    world.proxy.cut_after(1)
    try:
        with ends_in_time(), pytest.raises(Unavailable):
            CASES[verb](world.heart, world, 5.0)
    finally:
        world.proxy.thaw()

    assert changed(before, state(world)) <= MAY_CHANGE.get(verb, set())


@pytest.mark.parametrize("verb", EACH_SORT)
def test_an_exhausted_pool_ends_the_call(world: World, verb: str) -> None:
    database = world.heart.agent.database
    before = state(world)

    with (
        database.transaction("aria", timeout_s=20),
        database.transaction("aria", timeout_s=20),
        ends_in_time(),
        pytest.raises(DeadlineExceeded),
    ):
        CASES[verb](world.heart, world, DEADLINE_S)

    assert changed(before, state(world)) == set()


@pytest.mark.parametrize("verb", EACH_SORT)
def test_slow_models_end_the_call_or_are_not_needed(world: World, verb: str) -> None:
    """Last, since verbs that need no model succeed; what raises has changed nothing."""
    slow = opened_slowly(world)
    before = state(world)

    failed = False
    with ends_in_time(SHORT_S):
        try:
            CASES[verb](slow, world, SHORT_S)
        except DeadlineExceeded:
            failed = True

    assert not failed or changed(before, state(world)) <= MAY_CHANGE.get(verb, set())


def opened_slowly(world: World) -> Heart:
    """The same agent with models that take too long."""
    agent = world.heart.agent
    return opened(agent.database, embedder=SlowEmbedder(), judge=SlowJudge(), writer=SlowWriter(WordEmbedder()))


@pytest.mark.parametrize("verb", ["learn", "add_censor", "check_censors", "store_procedure"])
def test_what_needs_the_embedder_says_that_it_was_late(world: World, verb: str) -> None:
    with ends_in_time(), pytest.raises(DeadlineExceeded, match="the embedder did not answer"):
        CASES[verb](opened_slowly(world), world, DEADLINE_S)
