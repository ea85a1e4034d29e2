"""The campaign of `make faults` would see what it looks for: each of its counts is led to count."""

from __future__ import annotations

import sys
from pathlib import Path

import psycopg
import pytest

from nous_online.heart import Heart

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # benchmarks are run from the root, and not installed

from benchmarks.faults import ProvesNothingError, require_loss
from benchmarks.faults_kills import SQL, Tally
from benchmarks.faults_queries import LOOKUPS, NAMES
from benchmarks.faults_writer import BATCH, acknowledged, commit_asynchronously, size_of_call
from nous_online.database import connection
from nous_online.database.connection import Database

BREACHES = {
    "count_incomplete": (
        "delete from heart.postings", "delete from heart.statements", "delete from lifecycle.events",
        "update heart.facts set row_version = 2",
    ),
    "count_doubled": (
        "insert into heart.facts (agent_id, content) select agent_id, content from heart.facts",
    ),
}  # fmt: skip
CLOBBERING = (
    "update heart.facts set confirmation_count = 0",
    "delete from lifecycle.events where action = 'confirmed'",
    "update lifecycle.events set actor = 'night', night = now(), proposal_id = heart.new_id() where actor = 'agent'",
)


def count(owner: psycopg.Connection, statement: str, told: dict | None = None) -> int:
    (found,) = owner.execute(SQL[statement], told).fetchone()
    return found


@pytest.mark.parametrize(("statement", "breach"), [(name, each) for name, all_ in BREACHES.items() for each in all_])
def test_what_is_half_there_or_there_twice_is_counted(heart, owner, statement, breach):
    heart.learn("Tea helps", source="pump/0")
    assert count(owner, statement) == 0

    owner.execute("set session_replication_role = replica")
    owner.execute(breach)

    assert count(owner, statement) > 0
    assert dict(owner.execute(SQL["count_said"]).fetchall()) in ({"pump/0": 1}, {})


@pytest.mark.parametrize("breach", CLOBBERING)
def test_a_write_that_a_night_undid_is_counted(heart, owner, breach):
    heart.learn_deferred([("Tea helps", {})])
    fact = heart.confirm_fact(heart.recall("tea")[0].memory.id)
    told = {"ids": [fact.id], "counts": [1]}
    assert count(owner, "count_clobbered", told) == 0
    assert count(owner, "count_clobbered", {"ids": [fact.id], "counts": [2]}) == 1

    owner.execute("set session_replication_role = replica")
    owner.execute(breach)

    assert count(owner, "count_clobbered", told) == 1


def test_what_tenants_ask_finds_rows_of_others_where_nothing_keeps_them_apart(heart, owner, database, embedder):
    other = Heart.open("boris", database=database, embedder=embedder, works_in_background=False)
    ids = [other.learn("Tea helps").memory.id]
    told = {"other": "boris", "ids": ids, "id": ids[0], "payload": "Tea helps"}
    owner.execute("select set_config('nous.agent_id', 'aria', false)")

    found = {name: [row[0] for row in owner.execute(SQL[name], told).fetchall()] for name in LOOKUPS}

    assert {name for name, owners in found.items() if "boris" not in owners} <= {"look_by_join", "look_at_usage"}
    assert "aria" not in NAMES


def test_a_control_that_loses_nothing_proves_nothing():
    with pytest.raises(ProvesNothingError, match="the campaign proves nothing"):
        require_loss(Tally(kills={"server": 3}, acknowledged=900))

    require_loss(Tally(lost={"pump/1"}))


def test_the_control_waits_for_no_disk_and_the_calls_of_nous_do(database: Database, monkeypatch):
    def asked() -> str:
        with database.transaction("aria") as opened:
            return opened.execute("show synchronous_commit").fetchone()[0]

    before = asked()
    monkeypatch.setattr(connection, "SQL", connection.SQL)
    commit_asynchronously()

    assert (before, asked()) == ("on", "off")


def test_a_ledger_acknowledges_its_whole_lines_alone(tmp_path):
    ledger = tmp_path / "pump.ledger"
    assert acknowledged(ledger) == 0
    ledger.write_text("1\n101\n20")

    assert acknowledged(ledger) == 101
    assert [size_of_call(number) for number in (0, 1, BATCH + 1, BATCH + 2)] == [1, BATCH, 1, BATCH]
