"""Whatever is done to memories, in whichever order: what was said is found again, word for word."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import psycopg
from conftest import ScriptedJudge, WordEmbedder
from examples import examples
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from night_runs import plan_of

from nous_online.core.errors import NousError
from nous_online.database.changes import Cause
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.interfaces.exporting import export_agent, restore_agent
from nous_online.language.pairs.judging import Verdict
from nous_online.memories.contradictions import open_between
from nous_online.memories.documents import Documents, Edit
from nous_online.memories.store import unrecorded_count
from nous_pipelines.plan.apply import apply_plan
from nous_pipelines.plan.undo import Selection, undo

NINE, NOW_NINE, AND_NINE = (f"the office opens at nine{end}" for end in ("", " now", " too"))
TEN, FISH = "the office opens at ten", "cats like fish"
TEXTS = (NINE, NOW_NINE, AND_NINE, TEN, FISH)
SAME = {(a, b): Verdict.SAME for a in (NINE, NOW_NINE, AND_NINE) for b in (NINE, NOW_NINE, AND_NINE)}
VERDICTS = {**SAME, (NINE, TEN): Verdict.UPDATES, (TEN, NOW_NINE): Verdict.CONTRADICTS}
MAY = datetime(2026, 5, 1, 9, tzinfo=UTC)
Said = tuple[str, datetime, str | None]


@dataclass
class Life:
    """An agent to whom things happen, and everything that was said to it."""

    heart: Heart
    night_database: Database
    owner: psycopg.Connection
    folder: Path
    said: list[Said] = field(default_factory=list)
    nights: int = 0

    @property
    def agent_id(self) -> str:
        return self.heart.agent.id

    def facts(self) -> list[uuid.UUID]:
        rows = self.owner.execute("select id from heart.facts where agent_id = %s order by id", [self.agent_id])
        return [row[0] for row in rows]

    def fact(self, number: int) -> uuid.UUID:
        return self.facts()[number % len(self.facts())]

    def rows(self) -> list[object]:
        """Its facts and contradictions, but for the columns that count versions."""
        query = """
            select to_jsonb(f) - array['row_version', 'written_xid'] from heart.facts f where agent_id = %(id)s
            union all select to_jsonb(c) - array['row_version', 'written_xid'] from heart.contradictions c
            where agent_id = %(id)s
        """
        return sorted((row[0] for row in self.owner.execute(query, {"id": self.agent_id})), key=lambda row: row["id"])

    def say(self) -> tuple[datetime, str]:
        """When and by whom the next thing is said."""
        return MAY + timedelta(hours=len(self.said)), f"source {len(self.said)}"


def learn(life: Life, number: int) -> None:
    at, source = life.say()
    text = TEXTS[number % len(TEXTS)]
    text = text.upper() + "!" if number > 70 else text
    life.heart.learn(text, learned_at=at, source=source, trust=40 + number % 3)
    life.said.append((text, at, source))


def replace_one(life: Life, number: int) -> None:
    at, source = life.say()
    text = TEXTS[number % len(TEXTS)]
    life.heart.learn(text, replaces=life.fact(number // 7), learned_at=at, source=source)
    life.said.append((text, at, source))


def set_value(life: Life, number: int) -> None:
    """Say a value of a key, half of the time one that was told late."""
    at, source = life.say()
    at -= timedelta(hours=number % 2 * (number % 9))
    text = TEXTS[number % len(TEXTS)]
    life.heart.learn(text, key=f"key {number % 2}", learned_at=at, source=source)
    life.said.append((text, at, source))


def forget_one(life: Life, number: int) -> None:
    life.heart.forget(life.fact(number), reason="asked for")


def restore_one(life: Life, number: int) -> None:
    gone = [fact for fact in life.facts() if life.heart.get(fact).state == "archived"] or life.facts()
    life.heart.restore(gone[number % len(gone)])


def take_back_source(life: Life, number: int) -> None:
    life.heart.undo_source(f"source {number % (len(life.said) + 1)}", reason="a mistake")


def import_two(life: Life, number: int) -> None:
    at, source = life.say()
    texts = [TEXTS[number % len(TEXTS)], TEXTS[number % 3]]
    life.heart.learn_deferred([(text, {"learned_at": at, "source": source}) for text in texts])
    life.said.extend((text, at, source) for text in texts)


def write_document(life: Life, number: int) -> None:
    documents, name = Documents(life.heart.agent, "files"), f"note {number % 2}"
    documents.change(lambda: [Edit(name, f"text {number}", None, is_last_word=True)])
    life.said.append((f"text {number}", documents.find([name])[name].changed_at, "files"))


def confirm(life: Life, number: int) -> None:
    at, source = life.say()
    fact = life.heart.get(life.fact(number))
    life.heart.confirm_fact(fact.id, at=at, source=source)
    life.said.append((fact.content, at, source))


def supersede(life: Life, number: int) -> None:
    life.heart.supersede_fact(life.fact(number), life.fact(number // 7))


def resolve(life: Life, number: int) -> None:
    for found in life.heart.contradictions():
        life.heart.resolve_contradiction(found.id, "merged", merged_into=life.fact(number))


def rule_and_undo(life: Life, number: int) -> None:
    """Rule on contradictions, undo that on either side, and find everything as it was; then rule so again."""
    ruling = ("a_wins", "b_wins", "both_valid", "same")[number % 4]
    active = [fact for fact in life.facts() if life.heart.get(fact).state == "active"]
    if len(active) > 1:
        one, other = (
            life.heart.get_fact(each) for each in (active[number % len(active)], active[number // 9 % len(active)])
        )
        cause = Cause("agent", "contradicted", "they can't both be so", MAY)
        with suppress(NousError), life.heart.agent.database.transaction(life.agent_id) as connection:
            open_between(connection, life.agent_id, one, other, judgement={}, cause=cause)
    for found in life.heart.contradictions():
        before, sides = life.rows(), [found.memory_a, found.memory_b]
        life.heart.resolve_contradiction(found.id, ruling)
        life.heart.undo(sides[number // 4 % 2], reason="a mistake")
        assert life.rows() == before
        life.heart.resolve_contradiction(found.id, ruling)


def undo_one(life: Life, number: int) -> None:
    life.heart.undo(life.fact(number), reason="a mistake")


def split_one(life: Life, number: int) -> None:
    said = [each for fact in life.facts() for each in life.heart.statements(fact)]
    statements = [each.id for each in said if each.reason not in {"first", "imported"}] or [each.id for each in said]
    life.heart.split(statements[number % len(statements)])


def night(life: Life, _: int) -> None:
    life.nights += 1
    day = date.today() + timedelta(days=life.nights)  # noqa: DTZ011 (any night after what was done today)
    judge = life.heart.agent.judge
    plan = plan_of(life.night_database, life.folder, judge, night=day, agent_id=life.agent_id)
    apply_plan(life.night_database, plan, run_id=str(day))


def undo_nights(life: Life, _: int) -> None:
    undo(life.night_database, Selection(agent_id=life.agent_id), reason="a mistake")


def move(life: Life, _: int) -> None:
    """Export the agent and go on with the copy."""
    path = life.folder / f"{life.agent_id}.jsonl"
    export_agent(life.heart.agent.database, life.agent_id, path)
    copy = f"{life.agent_id}-copy"[-100:]
    restore_agent(life.heart.agent.database, path, agent_id=copy)
    agent = life.heart.agent
    life.heart = Heart.open(
        copy, database=agent.database, embedder=agent.embedder, judge=agent.judge, works_in_background=False
    )


DEEDS: tuple[Callable[[Life, int], None], ...] = (
    learn, learn, learn, replace_one, set_value, set_value, import_two, write_document, confirm, supersede, resolve,
    rule_and_undo, rule_and_undo, undo_one, undo_one, split_one, split_one, forget_one, forget_one, restore_one,
    take_back_source, night, night, undo_nights, move,
)  # fmt: skip


@settings(max_examples=examples(6), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(deeds=[(learn, 0), (night, 0), (forget_one, 1), (take_back_source, 1)])
@example(deeds=[(import_two, 0), (night, 0), (take_back_source, 2)])
@example(deeds=[(import_two, 1), (night, 0), (take_back_source, 2)])
@given(deeds=st.lists(st.tuples(st.sampled_from(DEEDS), st.integers(0, 99)), min_size=4, max_size=14))
def test_every_statement_is_found_word_for_word_whatever_is_done(
    deeds, database: Database, night_database: Database, owner: psycopg.Connection, tmp_path: Path
) -> None:
    agent_id = f"agent-{uuid.uuid4().hex[:8]}"
    options = {"embedder": WordEmbedder(), "judge": ScriptedJudge(VERDICTS), "works_in_background": False}
    folder = tmp_path / agent_id
    folder.mkdir()
    life = Life(Heart.open(agent_id, database=database, **options), night_database, owner, folder)

    for deed, number in ((learn, 0), (learn, 1), *deeds):
        with suppress(NousError):
            deed(life, number)

    check(life)


def check(life: Life) -> None:
    """Everything that was said is there, and each fact counts what was said for it."""
    found = {fact: life.heart.statements(fact) for fact in life.facts()}
    assert sorted(life.said) == sorted({
        each.id: (each.content, each.said_at, each.source) for said in found.values() for each in said
    }.values())  # fmt: skip
    for fact, said in found.items():
        known = life.heart.get(fact)
        assert known.content in [each.content for each in said if each.fact_id == fact]
        assert known.confirmation_count == sum(each.taken_back_at is None for each in said) - 1
        assert unrecorded_count(known, said) == 0
    marked = {fact for fact in found if life.heart.get(fact).contradiction_status == "open"}
    disputed = {side for each in life.heart.contradictions() for side in (each.memory_a, each.memory_b)}
    assert {fact for fact in marked if life.heart.get(fact).state != "archived"} == disputed
