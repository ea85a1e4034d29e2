"""An undo that ends in the middle, at any change: the next one finishes, and every row reads as it did before."""

from __future__ import annotations

import signal
from pathlib import Path

import psycopg
import pytest
from conftest import ScriptedJudge
from forks import forked
from night_crashes import by_kill, ended_at
from night_runs import NIGHT, facts_in, plan_of, proposals_in, remember

from nous_online.core.errors import NotFound, Unavailable
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_pipelines import failpoints
from nous_pipelines.plan.apply import apply_plan
from nous_pipelines.plan.undo import Selection, undo

UNDO_POINTS = (
    "undo decided",
    "memories restored",
    "links removed",
    "contradictions closed",
    "proposals undone",
    "undo committed",
)
"""In the order in which an undo reaches them, for each chunk of proposals."""


def undo_and_die(url: str, point: str) -> None:
    """Undo the night proposal by proposal, until a step at which the process is killed."""
    failpoints.on_reach = ended_at(point, by_kill)
    undo(Database(url, role="nous_night"), Selection(night=NIGHT), reason="a mistake", chunk_size=1)


@pytest.fixture
def before(heart: Heart, judge: ScriptedJudge, database_url: str, owner: psycopg.Connection, tmp_path: Path) -> dict:
    """The facts before a night that merged them."""
    remember(heart, "the office opens at nine", "the office opens at nine", "cats like fish", "cats like fish")
    found = facts_in(owner)
    night = Database(database_url, role="nous_night")
    apply_plan(night, plan_of(night, tmp_path, judge), run_id="r1")
    night.close()
    return found


def stop_at(owner: psycopg.Connection, place: int, act: str) -> None:
    """Do `act` in the server when an operator is about to leave the event of that place."""
    owner.execute("create sequence if not exists places")
    owner.execute("alter sequence places restart")
    owner.execute(
        f"""create or replace function stopping() returns trigger language plpgsql security definer as $$ begin
              if new.actor = 'operator' and nextval('places') = {place} then {act}; end if; return new; end $$"""
    )
    owner.execute(
        """create or replace trigger stopping before insert on lifecycle.events
           for each row execute function stopping()"""
    )


def test_an_undo_that_is_cut_at_any_change_is_finished_by_the_next(
    before: dict, database_url: str, owner: psycopg.Connection
) -> None:
    night, cuts = Database(database_url, role="nous_night"), 0
    while "applied" in proposals_in(owner).values():
        stop_at(owner, cuts + 1, "perform pg_terminate_backend(pg_backend_pid())")
        try:
            cuts += bool(undo(night, Selection(night=NIGHT), reason="a mistake").refused)
        except Unavailable:
            cuts += 1
    night.close()

    assert cuts >= 3
    assert facts_in(owner) == before
    assert {*proposals_in(owner).values()} == {"undone"}


def test_an_undo_that_is_killed_at_any_step_is_finished_by_the_next(
    before: dict, database_url: str, owner: psycopg.Connection
) -> None:
    merged = facts_in(owner)
    for point in UNDO_POINTS[:-1]:
        assert forked(undo_and_die, database_url, point) == -signal.SIGKILL
        assert facts_in(owner) == merged
    assert forked(undo_and_die, database_url, UNDO_POINTS[-1]) == -signal.SIGKILL
    assert sorted(proposals_in(owner).values()) == ["applied", "undone"]

    night = Database(database_url, role="nous_night")
    undone = undo(night, Selection(night=NIGHT), reason="a mistake")
    with pytest.raises(NotFound):
        undo(night, Selection(night=NIGHT), reason="a mistake")
    night.close()

    assert (len(undone.undone), undone.refused) == (1, {})
    assert facts_in(owner) == before
