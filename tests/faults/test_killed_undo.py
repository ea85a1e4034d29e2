"""An undo that ends in the middle, at any change: the next one finishes, and every row reads as it did before."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest
from conftest import ScriptedJudge
from night_runs import NIGHT, facts_in, plan_of, proposals_in, remember

from nous_online.core.errors import NotFound, Unavailable
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_pipelines.plan.apply import apply_plan
from nous_pipelines.plan.undo import Selection, undo

UNDO = """
import sys
from datetime import date
from nous_online.database.connection import Database
from nous_pipelines.plan.undo import Selection, undo

undo(Database(sys.argv[1], role="nous_night"), Selection(night=date.fromisoformat(sys.argv[2])), reason="a mistake")
"""
STALLED = "select count(*) from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database()"


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


def test_an_undo_that_is_killed_is_finished_by_the_next(
    before: dict, database_url: str, owner: psycopg.Connection
) -> None:
    stop_at(owner, 3, "perform pg_sleep(0.5)")
    process = subprocess.Popen([sys.executable, "-c", UNDO, database_url, str(NIGHT)])
    ends_at = time.monotonic() + 60
    while owner.execute(STALLED).fetchone() == (0,):
        assert time.monotonic() < ends_at
        time.sleep(0.01)

    os.kill(process.pid, signal.SIGKILL)
    assert process.wait(timeout=30) == -signal.SIGKILL
    night = Database(database_url, role="nous_night")
    undone = undo(night, Selection(night=NIGHT), reason="a mistake")
    with pytest.raises(NotFound):
        undo(night, Selection(night=NIGHT), reason="a mistake")
    night.close()

    assert (len(undone.undone), undone.refused) == (1, {})
    assert facts_in(owner) == before
