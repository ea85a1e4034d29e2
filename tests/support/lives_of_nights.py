"""Ways of arriving at one night, in databases that give new rows the same ids, so that their ends can be compared."""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import psycopg
from dagster import DagsterInstance
from night_runs import options
from psycopg.sql import SQL, Identifier

from nous_pipelines.orchestration.dagster_classes import unrecorded
from nous_pipelines.orchestration.running import NightOptions, run_night
from nous_pipelines.snapshots.snapshot import Snapshot, open_snapshot

STATE = {
    "heart.facts": ("created_at", "written_xid"),
    "heart.episodes": ("created_at", "written_xid"),
    "heart.procedures": ("created_at", "written_xid"),
    "heart.censors": ("created_at", "written_xid"),
    "heart.usage": (),
    "heart.contradictions": (),
    "heart.links": (),
    "heart.cold_texts": ("stored_at",),
    "lifecycle.proposals": ("decided_at", "plan_hash"),
    "lifecycle.events": ("id", "recorded_at", "run_id", "undoes"),
}
"""Every table a night may change, with the columns that say when or by which run a row was written."""


DRAWN_ID = re.compile(r'("activation_id": |"last_activation": \{[^{}]*?"id": )"[0-9a-f-]{36}"')
"""What an activation of a censor is reported by: drawn at each check."""


@dataclass
class Life:
    """One way of arriving at the last night: a database, the files of its nights and Dagster's records."""

    url: str
    home: Path
    instance: DagsterInstance
    policy: Mapping[str, float]

    @property
    def options(self) -> NightOptions:
        return options(self.url, self.home, policy=self.policy)

    def sleep(self, night: date) -> None:
        outcome = run_night(night, self.options, instance=self.instance)
        assert outcome.is_success, outcome.failures

    def snapshots(self) -> dict[str, Snapshot]:
        found = {path.name: open_snapshot(path) for path in self.home.glob("snapshots/*/night=*")}
        return {name: snapshot for name, snapshot in sorted(found.items()) if snapshot and "taken" not in name}

    def state(self) -> dict[str, list[str]]:
        """Return every row a night could change as text, sorted."""
        with psycopg.connect(self.url, autocommit=True) as owner:
            return {name: sorted(rows_of(owner, name, without)) for name, without in STATE.items()}


def rows_of(owner: psycopg.Connection, name: str, without: tuple[str, ...]) -> Iterator[str]:
    query = SQL("select (to_jsonb(t) - %s::text[])::text from {} t").format(Identifier(*name.split(".")))
    return (DRAWN_ID.sub(r"\1", text) for (text,) in owner.execute(query, [list(without)]))


@contextmanager
def life(server: Any, template: str, home: Path, *, policy: Mapping[str, float]) -> Iterator[Life]:
    """A database of its own whose new ids are the same in every life."""
    logging.getLogger("dagster").setLevel(logging.CRITICAL)
    name = f"life_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(server.dsn("postgres"), autocommit=True) as connection:
        connection.execute(SQL("create database {} template {}").format(Identifier(name), Identifier(template)))
        with psycopg.connect(server.dsn(name), autocommit=True) as owner:
            owner.execute("create sequence public.ids")
            owner.execute("grant usage on sequence public.ids to public")
            owner.execute(
                "create or replace function heart.new_id() returns uuid language sql volatile as"
                " $$ select md5('id ' || nextval('public.ids'))::uuid $$"
            )
        with unrecorded() as instance:
            yield Life(server.dsn(name), home, instance, policy)
        connection.execute(SQL("drop database {} with (force)").format(Identifier(name)))
