"""A night is logical: a history that is imported ages as one that was lived."""

from __future__ import annotations

import uuid
from collections import Counter
from datetime import date, datetime

import psycopg
from dagster import DagsterInstance
from night_runs import SAID, events_in, facts_in, options

from nous_online.database import Database
from nous_online.heart import Heart
from nous_pipelines.running import run_night

NINE = "The office opens at nine."
BACKUPS = ("Backups are kept for 30 days.", "Backups are kept for 14 days.")
HISTORY = (
    ("a1", date(2026, 5, 1), NINE),
    ("b1", date(2026, 5, 1), BACKUPS[0]),
    ("a2", date(2026, 5, 2), NINE),
    ("c1", date(2026, 5, 2), "Cats like fish."),
    ("b2", date(2026, 5, 3), BACKUPS[1]),
    ("a3", date(2026, 5, 3), "The office opens at nine"),
    ("c2", date(2026, 5, 3), "Cats like fish"),
)
NIGHTS = [date(2026, 5, day) for day in range(1, 4)]


def test_backfilling_an_imported_history_ages_it_as_if_it_had_been_lived(server, template, embedder, judge, tmp_path):
    def lived(url, instance):
        for night in NIGHTS:
            learn(url, [entry for entry in HISTORY if entry[1] == night])
            assert run_night(night, options(url, tmp_path), instance=instance).is_success

    def imported(url, instance):
        learn(url, HISTORY)
        for night in NIGHTS:
            assert run_night(night, options(url, tmp_path), instance=instance).is_success

    def learn(url, entries):
        database = Database(url)
        heart = Heart.open("aria", database=database, embedder=embedder, judge=judge)
        heart.learn_deferred([
            (text, {"learned_at": datetime.combine(day, SAID.timetz()), "idempotency_key": key})
            for key, day, text in entries
        ])  # fmt: skip
        database.close()

    facts, events = left_by(lived, server, template)

    assert left_by(imported, server, template) == (facts, events)
    assert Counter(columns["state"] for columns in facts.values()) == {"active": 3, "superseded": 4}


def left_by(live, server, template):
    """Return what a way of living leaves in a database of its own, but for when the rows were written."""
    name = f"lived_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(server.dsn("postgres"), autocommit=True) as connection:
        connection.execute(f"create database {name} template {template}")
        with DagsterInstance.ephemeral() as instance:
            live(server.dsn(name), instance)
        with psycopg.connect(server.dsn(name), autocommit=True) as owner:
            facts = facts_in(owner, without=("written_xid", "created_at"))
            events = [
                (str(e["memory_id"]), e["action"], e["version_after"], e["effective_at"]) for e in events_in(owner)
            ]
        connection.execute(f"drop database {name} with (force)")
    return facts, sorted(events)
