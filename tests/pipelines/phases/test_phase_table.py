"""The table of phases says what is so: kinds, tables, columns and limits."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from conftest import WordEmbedder
from drawn import NIGHT, embedded_facts
from judged_pairs import Agreeing, judged_pairs

from nous_pipelines.night_policy import NightPolicy
from nous_pipelines.orchestration.chunk_work import EPISODE_SUMMARIES
from nous_pipelines.phases.phase_table import (
    NIGHT_TABLES,
    PHASES,
    PRECEDENCE,
    PROPOSAL_KINDS,
    SCHEMAS,
    NightPhase,
    NightTable,
)
from nous_pipelines.phases.rulings import PAIRING

SCHEMA = Path(__file__).parents[3] / "sql" / "schema.sql"
POLICY = {"candidate_similarity": 0.7, "neighbour_similarity": 0.7}
STEPS: list[Any] = [*NIGHT_TABLES, EPISODE_SUMMARIES, *PHASES]


class Noting(dict[str, pl.DataFrame]):
    """Tables that remember which of them were asked for."""

    def __init__(self, tables: dict[str, pl.DataFrame]) -> None:
        super().__init__(tables)
        self.asked: set[str] = set()

    def __getitem__(self, name: str) -> pl.DataFrame:
        self.asked.add(name)
        return super().__getitem__(name)


class NotingPolicy(NightPolicy):
    """A policy that remembers which of its fields were asked for."""

    def __getattribute__(self, name: str) -> Any:
        fields = type(self).__dataclass_fields__
        if name in fields and "asked" in object.__getattribute__(self, "__dict__"):
            object.__getattribute__(self, "__dict__")["asked"].add(name)
        return object.__getattribute__(self, name)


def noting_policy() -> NotingPolicy:
    policy = NotingPolicy(**POLICY)
    policy.__dict__["asked"] = set()
    return policy


@pytest.fixture(scope="module")
def store() -> dict[str, pl.DataFrame]:
    """Two users of a project say the same, one of them twice; everything else is empty."""
    facts = embedded_facts(
        """
        id | content       | user_id | project_id | learned_at
        ---|---------------|---------|------------|-----------
        a  | one two three | ana     | web        | 2026-05-01
        b  | one two three | ben     | web        | 2026-05-02
        c  | one two three | ana     | web        | 2026-05-03
        """,
        WordEmbedder(),
    )
    judged, found = judged_pairs(facts, Agreeing(), policy=NightPolicy(**POLICY))
    made = {"facts": facts, "judgements": judged, "copies": found.copies}
    return {name: schema.empty() for name, schema in SCHEMAS.items()} | made


def done(step: NightPhase | NightTable, tables: dict[str, pl.DataFrame], policy: NightPolicy, night: date = NIGHT):
    """Return what a step of the night makes of tables."""
    call = step.find if isinstance(step, NightPhase) else step.make
    return call(tables, policy=policy, night=night)


def test_the_store_knows_the_kinds_of_the_table_and_no_others():
    (kinds,) = re.findall(r"create table lifecycle\.proposals .*?kind in \(([^)]*)\)", SCHEMA.read_text(), re.DOTALL)

    assert sorted(re.findall(r"'(\w+)'", kinds)) == sorted(PRECEDENCE)


def test_every_kind_is_of_one_phase_and_every_name_there_once():
    names = [*(kind.name for phase in PHASES for kind in phase.kinds), *(step.name for step in STEPS)]

    assert len(names) == len(set(names))
    assert len({kind.figure for kind in PROPOSAL_KINDS.values()}) == len(PROPOSAL_KINDS)
    assert set(PAIRING) <= set(PRECEDENCE)


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
def test_every_table_and_column_that_is_read_is_declared(step):
    for name, columns in step.reads.items():
        assert set(columns or ()) <= set(SCHEMAS[name]), name


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
def test_a_step_reads_the_tables_it_declares_all_of_them_and_no_others(step, store):
    tables = Noting({name: store[name].select(columns or pl.all()) for name, columns in step.reads.items()})

    made = done(step, tables, NightPolicy(**POLICY))

    assert tables.asked == set(step.reads)
    assert made.name == step.name if isinstance(step, NightPhase) else dict(made.schema) == dict(step.schema)


@pytest.mark.parametrize("phase", PHASES, ids=lambda phase: phase.name)
def test_a_phase_goes_by_the_limits_it_declares_all_of_them_and_no_others(phase, store):
    policy = noting_policy()

    done(phase, store, policy)

    assert policy.asked == set(phase.limits)
