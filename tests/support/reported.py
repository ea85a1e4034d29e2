"""A night that has proposed something of every kind, without the phases that would have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import polars as pl
import psycopg
from drawn import NIGHT, drawn
from night_runs import NIGHT as SNAPSHOT_NIGHT
from night_runs import snapshot_of
from psycopg.sql import SQL, Composed, Identifier
from psycopg.types.json import Jsonb

from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_pipelines.phases.merging import JUDGED
from nous_pipelines.phases.phase import Phase
from nous_pipelines.phases.proposals import Change, Proposal, Read
from nous_pipelines.plan.night_files import NightFiles
from nous_pipelines.plan.planning import planned
from nous_pipelines.reports.report import NightAccount, NightReport
from nous_pipelines.reports.reporting import night_report
from nous_pipelines.snapshots.snapshot import Snapshot, open_snapshot

SAID = datetime(2026, 5, 1, 9, tzinfo=UTC)
NINE, AGAIN, TEN = "The office opens at nine.", "The office opens at nine", "The office opens at ten."
LONG, SHORT = "Backups are kept for 30 days.", "Backups are kept for 14 days."
RELEASE, PROCEDURE = "The release of May", "deploy by hand"
DECIDED = """
    insert into lifecycle.proposals (id, agent_id, night, plan_hash, kind, targets, read_set, changes, reason, evidence,
                                     state, outcome, decided_at)
    values (%(id)s, %(agent_id)s, %(night)s, %(hash)s, %(kind)s, %(targets)s::uuid[], %(read_set)s, %(changes)s,
            %(reason)s, %(evidence)s, %(state)s, %(outcome)s, now())"""
STORED = """
    select table_schema, table_name, array_agg(column_name::text order by ordinal_position)
    from information_schema.columns join information_schema.tables using (table_schema, table_name)
    where table_schema in ('heart', 'brain', 'lifecycle') and table_type = 'BASE TABLE' and is_generated = 'NEVER'
      and table_name not in ('embedding_spaces', 'transitions')
    group by 1, 2"""
LAID_DOWN = """
    insert into {table} ({columns}) overriding system value
    select {columns} from json_populate_recordset(null::{table}, %s::json)"""
NUMBERED_ON = "select setval(format('%I.%I', schemaname, sequencename), 1000) from pg_sequences"
USUAL_PAIR = {"agent_id": "aria", "is_across_users": False, "is_ordered": True, "confidence": 1.0, "model": "offline"}


@dataclass
class ReportedNight:
    """A store with some memories of each kind, and the files and proposals of one night over it."""

    database: Database
    snapshot: Snapshot
    files: NightFiles
    ids: dict[str, str]
    """Of each memory by its words."""
    proposals: list[Proposal] = field(default_factory=list[Proposal])

    def propose(
        self, kind: str, *targets: str, changes: Sequence[Change] = (), reason: str = "so", agent_id: str = "aria"
    ) -> Proposal:
        """Add a proposal about memories named by their words."""
        named = tuple(self.ids[target] for target in targets)
        reads = tuple(Read("fact", memory, 1) for memory in named)
        made = Proposal(NIGHT, agent_id, kind, named, reads, tuple(changes), reason, {})
        self.proposals.append(made)
        return made

    def change(self, kind: str, words: str, **columns: Any) -> Change:
        """Return a change of a memory named by its words."""
        return Change(kind, self.ids[words], set=columns)

    def merge(self, kept: str, *retired: str, agent_id: str = "aria") -> Proposal:
        """Add a merge."""
        gone = [self.change("fact", each, state="superseded", superseded_by=self.ids[kept]) for each in retired]
        changes = (self.change("fact", kept, confirmation_count=1), *gone)
        return self.propose("merge", kept, *retired, changes=changes, reason="said twice", agent_id=agent_id)

    def plan(
        self, *, phases: Sequence[Phase] = (), checks: Sequence[Mapping[str, Any]] = (), policy: Mapping[str, Any] = {}
    ) -> None:
        """Write plan, account and checks as the night does."""
        made = planned(NIGHT, self.proposals, agent_ids=[], policy=policy)
        self.files.write_json("account", NightAccount.of(made, phases).values)
        self.files.write_json("plan", made.as_dict())
        self.files.write_json("checks", {"hash": made.hash, "results": list(checks)})

    def decide(self, states: Mapping[UUID, str] | str = "applied", outcome: str | None = None) -> None:
        """Store the planned proposals with what became of them: the same for all, or for each."""
        plan = self.files.read_plan()
        with self.database.transaction() as connection:
            connection.execute(
                "insert into lifecycle.plans (hash, night, policy) values (%s, %s, '{}')", [plan.hash, NIGHT]
            )
            for proposal in plan.proposals:
                state = states if isinstance(states, str) else states[proposal.id]
                row = {**vars(proposal), **proposal.as_dict(), "hash": plan.hash, "state": state, "outcome": outcome}
                row |= {name: Jsonb(row[name]) for name in ("read_set", "changes", "evidence")}
                connection.execute(DECIDED, {**row, "id": proposal.id, "targets": list(proposal.targets)})
        self.files.write_json("applied", {"hash": plan.hash})

    def judge(self, pairs: str) -> None:
        """Write the night's judgements about memories named by their words, drawn as a table."""
        table = drawn(pairs, JUDGED, usual=USUAL_PAIR)
        self.files.write_table("judgements", table.with_columns(pl.col("left_id", "right_id").replace(self.ids)))

    def report(self, **options: Any) -> NightReport:
        """Draw up the report."""
        return night_report(self.database, self.snapshot, self.files, **options)


@dataclass(frozen=True)
class Kept:
    """The rows and files of a night that was made once, to be laid down again in an eighth of the time."""

    ids: dict[str, str]
    rows: list[tuple[Composed, str]]
    files: dict[str, bytes]

    @classmethod
    def of(cls, night: ReportedNight, folder: Path) -> Kept:
        rows = list[tuple[Composed, str]]()
        with psycopg.connect(night.database.url, autocommit=True) as owner:
            for schema, name, columns in owner.execute(STORED).fetchall():
                table, written = Identifier(schema, name), SQL(", ").join(map(Identifier, columns))
                query = SQL("select json_agg(t)::text from {} t").format(table)
                ((found,),) = owner.execute(query).fetchall()
                if found is not None:
                    rows.append((SQL(LAID_DOWN).format(table=table, columns=written), found))
        paths = [path for path in folder.rglob("*") if path.is_file()]
        return cls(night.ids, rows, {str(path.relative_to(folder)): path.read_bytes() for path in paths})

    def lay_down(self, database: Database, folder: Path) -> ReportedNight:
        """Write the rows into an empty store, and the files into a folder."""
        with psycopg.connect(database.url) as owner:
            owner.execute("set session_replication_role = replica")  # they are written as they were
            owner.execute("delete from heart.agents")
            for insert, found in self.rows:
                owner.execute(insert, [found])
            owner.execute(NUMBERED_ON)
        for name, content in self.files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        snapshot = open_snapshot(folder / f"night={SNAPSHOT_NIGHT}")
        assert snapshot is not None
        return ReportedNight(database, snapshot, NightFiles(snapshot.folder), dict(self.ids))


_kept: list[Kept] = []


def reported_night(heart: Heart, database: Database, folder: Path) -> ReportedNight:
    """Return a night over some facts, an episode, a procedure and a censor, without having proposed anything."""
    if _kept:
        return _kept[0].lay_down(database, folder)
    night = new_reported_night(heart, database, folder)
    _kept.append(Kept.of(night, folder))
    return night


def new_reported_night(heart: Heart, database: Database, folder: Path) -> ReportedNight:
    """Remember some facts, an episode, a procedure and a censor, and open the files of a night over them."""
    contents = (NINE, AGAIN, TEN, LONG, SHORT)
    heart.learn_deferred([
        (content, {"learned_at": SAID + timedelta(days=day), "idempotency_key": content})
        for day, content in enumerate(contents)
    ])  # fmt: skip
    episode = heart.record_episode("It went out.", title=RELEASE, started_at=SAID)
    procedure = heart.store_procedure(PROCEDURE, core_tools=["make"], learned_at=SAID)
    censor = heart.add_censor("deploy on friday", "it broke twice", learned_at=SAID)
    with database.transaction("aria") as connection:
        rows = connection.execute("select content, id::text from heart.facts").fetchall()
    ids = {**dict(rows), RELEASE: str(episode.id), PROCEDURE: str(procedure.id), "deploy on friday": str(censor.id)}
    snapshot = snapshot_of(database, folder)
    night = ReportedNight(database, snapshot, NightFiles(snapshot.folder), ids)
    night.judge("left_id | right_id\n-|-")
    return night
