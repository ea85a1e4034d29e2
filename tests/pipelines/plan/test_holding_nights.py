"""Nights keep others away from their agents, by a number of locks that any server has."""

from __future__ import annotations

import pytest
from night_runs import remember

from nous_online.core.errors import Conflict
from nous_online.memories import erasure
from nous_pipelines.plan.apply import night_locks

MANY = [f"agent {number}" for number in range(30_000)]


def test_a_night_of_very_many_agents_keeps_all_of_them_with_a_bounded_number_of_locks(night_database, owner):
    with night_locks(night_database, MANY):
        (held,) = owner.execute("select count(*) from pg_locks where locktype = 'advisory' and granted").fetchone()
        for one in (MANY[0], MANY[-1]):
            with (
                pytest.raises(Conflict, match=f"for agent '{one}', or for others"),
                night_locks(night_database, [one]),
            ):
                raise AssertionError(one)
        with pytest.raises(Conflict, match="for many"), night_locks(night_database, MANY):
            raise AssertionError

    assert held <= 1100
    with night_locks(night_database, MANY[:2]):
        pass


def test_a_night_of_very_many_agents_waits_for_that_of_one_of_them(night_database):
    with (
        night_locks(night_database, [MANY[7]]),
        pytest.raises(Conflict, match="or for others of its bucket: this night or that one is for many"),
        night_locks(night_database, MANY),
    ):
        raise AssertionError


def test_nights_of_different_agents_never_meet_while_they_are_not_very_many(night_database, owner):
    with night_locks(night_database, MANY[:1000]), night_locks(night_database, MANY[1000:2000]):
        (held,) = owner.execute("select count(*) from pg_locks where locktype = 'advisory' and granted").fetchone()

    assert 2000 < held < 4200


def test_erasing_an_agent_waits_for_a_night_of_very_many_that_holds_it(
    heart, night_database, database_url, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(erasure, "WAIT_S", 1)
    remember(heart, "cats like fish")

    with (
        night_locks(night_database, ["aria", *MANY]),
        pytest.raises(Conflict, match="a night or a call has been at work on agent 'aria'"),
    ):
        erasure.erase_agent(database_url, "aria", reason="asked for")
    with night_locks(night_database, MANY[:2]):
        assert erasure.erase_agent(database_url, "aria", reason="asked for").rows["heart.facts"] == 1


def test_a_night_that_holds_agents_keeps_no_row_that_is_replaced_meanwhile(night_database, owner):
    holding = "select count(*) from pg_stat_activity where datname = current_database() and backend_xmin is not null"
    others = f"{holding} and backend_type = 'client backend' and pid <> pg_backend_pid()"
    held = "select count(*) from pg_locks where locktype = 'advisory' and granted"

    with night_locks(night_database, MANY[:2]):
        assert owner.execute(held).fetchone()[0] > 0
        assert owner.execute(others).fetchone()[0] == 0
