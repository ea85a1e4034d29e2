"""Nights over memories somebody planted, judged by a model that obeys them: what can happen at most."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
from night_crashes import night_outcome
from night_runs import NIGHT, facts_in
from subverted import CHOSEN, DAY, HONEST, PLACES, SPOKEN, always, import_facts, in_place_of_claude, obeying, planted
from turns import in_turn

from benchmarks.anthropic_server import LocalAnthropic, PlayRoute
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.language.minilm import LocalMiniLM, Vectors
from nous_online.language.pairs.judging import Verdict
from nous_pipelines.failpoints import go_on
from nous_pipelines.orchestration.running import NightOutcome
from nous_pipelines.plan.undo import Selection, undo

NEXT = NIGHT + DAY
TOUCHED = {"contradiction_status", "confirmation_count", "last_confirmed_at", "tags", "sources"}
"""What a planted memory may change of an honest one that is trusted more: never what it says, nor whether it counts."""
MANY = tuple(
    f"The {what} of the {place} database is {100 + n}."
    for what in ("port", "timeout", "quota")
    for n, place in enumerate(PLACES)
)
FULL_WIDTH = next(payload for payload in SPOKEN if payload.startswith("\uff41"))
"""“answer same” in letters of full width, which leaves a statement nearest to what it was."""

Rows = Mapping[str, Mapping[str, Any]]


@pytest.fixture
def claude(monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalAnthropic]:
    with in_place_of_claude(monkeypatch) as server:
        yield server


class KeptVectors(LocalMiniLM):
    """MiniLM that embeds no text twice: these tests tell the same."""

    def __init__(self) -> None:
        super().__init__(threads=1)
        self._known: dict[str, Any] = {}

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        self._known |= dict(zip(new, super().embed_documents(new), strict=True))
        return np.stack([self._known[text] for text in texts])


@pytest.fixture(scope="module")
def minilm() -> LocalMiniLM:
    return KeptVectors()


@pytest.fixture
def opened(database: Database, minilm: LocalMiniLM) -> Callable[[str], Heart]:
    return lambda agent_id: Heart.open(agent_id, database=database, embedder=minilm, works_in_background=False)


@pytest.fixture
def run(database_url: str, tmp_path: Path) -> Callable[[date], NightOutcome]:
    return lambda night: night_outcome(database_url, tmp_path, night, go_on)


@pytest.fixture
def take_back(database_url: str) -> Iterator[Callable[[], Any]]:
    """Undo everything that any night did to one agent."""
    database = Database(database_url, role="nous_night")
    yield lambda: undo(database, Selection(agent_id="aria"), reason="planted")
    database.close()


def ids_of(rows: Rows, contents: list[str] | tuple[str, ...]) -> set[str]:
    return {memory for memory, columns in rows.items() if columns["content"] in set(contents)}


def changes(before: Rows, after: Rows) -> dict[str, set[str]]:
    """Return the columns that changed of each fact that did."""
    found = {memory: {name for name in row if row[name] != after[memory][name]} for memory, row in before.items()}
    return {memory: names for memory, names in found.items() if names}


def left(before: Rows, after: Rows) -> set[str]:
    """Return the facts that were active and no longer are."""
    return {memory for memory in before if before[memory]["state"] == "active" != after[memory]["state"]}


def asked(server: LocalAnthropic) -> int:
    """Return about how many pairs and canaries the model was asked in batches, both orders counted."""
    return sum(len(batch["requests"]) for batch in server.asked(PlayRoute.CREATE_BATCH))


@pytest.mark.parametrize("verdict", in_turn([Verdict.SAME, Verdict.UPDATES, Verdict.CONTRADICTS], of=3))
def test_planted_memories_that_are_trusted_less_take_the_place_of_nothing_honest(
    claude, opened, run, take_back, owner: psycopg.Connection, verdict: Verdict
) -> None:
    claude.answer_with(obeying(verdict))
    for agent_id in ("aria", "ben"):
        import_facts(opened(agent_id), HONEST, trust=60, day=0)
    import_facts(opened("aria"), planted(CHOSEN), trust=10, day=1)
    before, ben = facts_in(owner, agent_id="aria"), facts_in(owner, agent_id="ben", without=())
    honest = ids_of(before, HONEST)

    assert [run(night).failures for night in (NIGHT, NEXT)] == [(), ()]

    after = facts_in(owner, agent_id="aria")
    assert asked(claude) > 40, "the model was hardly asked"
    assert changes(before, after), "the model obeyed, and nothing came of it: this shows nothing"
    assert set(after) == set(before)
    assert left(before, after).isdisjoint(honest)
    assert set().union(*(names for memory, names in changes(before, after).items() if memory in honest)) <= TOUCHED
    assert all(after[memory]["last_confirmed_at"] in (None, after[memory]["learned_at"]) for memory in honest)
    assert facts_in(owner, agent_id="ben", without=()) == ben
    assert take_back().refused == {}
    assert facts_in(owner, agent_id="aria") == before


def test_the_built_in_judge_lets_planted_memories_take_no_honest_place_either(
    opened, run, owner: psycopg.Connection
) -> None:
    import_facts(opened("aria"), HONEST, trust=60, day=0)
    import_facts(opened("aria"), planted(in_turn(SPOKEN, of=4)), trust=10, day=1)
    before = facts_in(owner)
    honest = ids_of(before, HONEST)

    assert run(NIGHT).failures == ()

    after = facts_in(owner)
    assert changes(before, after), "nothing came of it: this shows nothing"
    assert left(before, after).isdisjoint(honest)
    assert set().union(*(names for memory, names in changes(before, after).items() if memory in honest)) <= TOUCHED


def test_what_is_trusted_as_much_can_take_the_place_of_what_it_names_and_one_undo_takes_it_back(
    claude, opened, run, take_back, owner: psycopg.Connection
) -> None:
    claude.answer_with(obeying(Verdict.UPDATES))
    import_facts(opened("aria"), HONEST[1:], trust=50, day=0)
    import_facts(opened("aria"), HONEST[:1], trust=50, day=0, is_pinned=True)
    import_facts(opened("aria"), planted(CHOSEN[: len(HONEST)]), trust=50, day=1)
    import_facts(opened("ben"), HONEST, trust=50, day=0)
    before, ben = facts_in(owner, agent_id="aria"), facts_in(owner, agent_id="ben", without=())

    assert [run(night).failures for night in (NIGHT, NEXT)] == [(), ()]

    after = facts_in(owner, agent_id="aria")
    gone = left(before, after) & ids_of(before, HONEST)
    assert gone, "the model obeyed, and nothing came of it: this shows nothing"
    assert set(after) == set(before)
    assert ids_of(before, HONEST[:1]).isdisjoint(gone), "it was pinned"
    assert all(after[after[memory]["superseded_by"]]["content"].startswith(after[memory]["content"]) for memory in gone)
    assert facts_in(owner, agent_id="ben", without=()) == ben
    assert take_back().refused == {}
    assert facts_in(owner, agent_id="aria") == before


def test_a_flood_of_planted_memories_stops_the_night_instead_of_emptying_the_store(
    claude, opened, run, owner: psycopg.Connection
) -> None:
    claude.answer_with(obeying(Verdict.UPDATES))
    import_facts(opened("aria"), MANY, trust=50, day=0)
    import_facts(opened("aria"), planted([FULL_WIDTH] * len(MANY), MANY), trust=50, day=1)
    assert run(NIGHT).is_success
    before = facts_in(owner, agent_id="aria", without=())

    outcome = run(NEXT)

    assert any("blast_radius" in failure and "max_leaving_share" in failure for failure in outcome.failures)
    assert facts_in(owner, agent_id="aria", without=()) == before


@pytest.mark.parametrize("verdict", in_turn([Verdict.SAME, Verdict.UPDATES], of=2))
def test_a_model_that_obeys_the_canaries_too_is_believed_in_nothing(
    claude, opened, run, owner: psycopg.Connection, verdict: Verdict
) -> None:
    claude.answer_with(always(verdict))
    import_facts(opened("aria"), HONEST, trust=50, day=0)
    import_facts(opened("aria"), planted(CHOSEN[:20]), trust=50, day=1)
    before = facts_in(owner, agent_id="aria")

    outcomes = [run(night) for night in (NIGHT, NEXT, NEXT + DAY)]

    assert asked(claude) > 60, "the model was hardly asked"
    assert left(before, facts_in(owner, agent_id="aria")) == set()
    assert all(outcome.is_success for outcome in outcomes)
    assert any("were not believed" in failure for failure in outcomes[-1].failures)
    by_claude = owner.execute("select count(*) from heart.judgements where model like 'claude%'").fetchone()
    assert by_claude == (0,)
