"""The resource of a night: its database, files, snapshot, policies, judges and engine, and the options of its run."""

import json
from collections.abc import Collection, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from datetime import UTC, date, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import dagster as dg
from pydantic import Field, PrivateAttr

from nous_online.core.errors import Refused
from nous_online.core.settings import settings
from nous_online.database import postgres
from nous_online.database.connection import Database, open_url
from nous_online.language.pairs.judging import Judge, OfflineJudge
from nous_online.memories.erasure import shared_copies_lock
from nous_pipelines.batches.second_judge import SecondJudge
from nous_pipelines.engines.engine import Engine, engine_of
from nous_pipelines.night_policy import NightPolicy, Policies
from nous_pipelines.orchestration.chunk_work import WorkerDatabase
from nous_pipelines.orchestration.earlier_nights import (
    AgentsAtRest,
    decision_basis,
    find_agents_at_rest,
    finished_run,
)
from nous_pipelines.plan.apply import applied_since, find_agents, is_applied
from nous_pipelines.plan.checks import LeftOut, left_out_agents
from nous_pipelines.plan.evidence import EvidenceTables, Searchable
from nous_pipelines.plan.night_files import UNSEEN, NightFiles
from nous_pipelines.snapshots.agent_chunks import Chunk, FactReader, chunked, rows_at_once
from nous_pipelines.snapshots.snapshot import (
    Snapshot,
    late_memories,
    late_rows,
    night_folder,
    open_snapshot,
    take_snapshot,
)


class NightRun(dg.ConfigurableResource):
    """One night's database, files, policy and judge; the fields can be set in the launchpad."""

    # Home and database are no fields: whoever may launch a run must not be able to write anywhere else.

    agent_ids: list[str] = Field(default=[], description="Agents this run is for; empty means all of them.")
    policy: dict[str, float] = Field(default={}, description="Policy fields to override, such as candidate_similarity.")
    is_full: bool = Field(
        default=False, description="Compare, judge and count all again, whatever earlier nights kept."
    )

    _database: Database | None = PrivateAttr(default=None)
    _folders: dict[date, Path] = PrivateAttr(default_factory=dict)
    _policies: dict[date, Policies] = PrivateAttr(default_factory=dict)
    _chunks: dict[tuple[Any, ...], list[Chunk]] = PrivateAttr(default_factory=dict)
    _agents: list[str] | None = PrivateAttr(default=None)
    _engine: Engine | None = PrivateAttr(default=None)
    _at_rest: dict[date, AgentsAtRest] = PrivateAttr(default_factory=dict)
    _searchable: Searchable | None = PrivateAttr(default=None)
    _evidence: tuple[Snapshot, list[str], EvidenceTables] | None = PrivateAttr(default=None)
    _reader: FactReader = PrivateAttr(default_factory=FactReader)
    _opened: ExitStack = PrivateAttr(default_factory=ExitStack)
    _began_at: datetime = PrivateAttr(default_factory=lambda: datetime.now(UTC))

    @contextmanager
    def opened(self) -> Iterator[Self]:
        """Open the database, and lock out erasure, for a block.

        Raises `InvalidInput` for a policy that is invalid or lifts a limit.
        """
        url, _ = self.address, self.night_policy
        with ExitStack() as self._opened:
            self._database = self._opened.enter_context(closing(Database(url, role="nous_night", max_connections=4)))
            self._opened.enter_context(shared_copies_lock(url))
            self._folders, self._policies, self._chunks, self._began_at = {}, {}, {}, datetime.now(UTC)
            self._agents, self._engine, self._searchable, self._evidence, self._at_rest = None, None, None, None, {}
            self._reader = FactReader()
            yield self

    @contextmanager
    def yield_for_execution(self, context: dg.InitResourceContext) -> Iterator[Self]:
        """Open it for a step or a run in one process."""
        with self.opened():
            yield self

    @property
    def database(self) -> Database:
        """The database, as the role of the night."""
        if self._database is None:
            raise RuntimeError("the resource is used outside of a run")
        return self._database

    def database_for(self, engine: Engine) -> Database | WorkerDatabase:
        """Return the database for the workers of an engine; those on other machines have settings of their own."""
        if engine.shares_memory:
            return self.database
        return WorkerDatabase(self.address if engine.shares_settings else None)

    @property
    def night_policy(self) -> NightPolicy:
        """The policy of this run for agents without one of their own."""
        return Policies(self.policy, may_loosen=self.may_loosen).default

    def policies(self, night: date) -> Policies:
        """Return each agent's policy in the snapshot of the night; cached until the snapshot is taken again."""
        if night in self._policies:
            return self._policies[night]
        agents = self.snapshot(night).table("agents", columns=["agent_id", "policy"])
        own = {agent_id: json.loads(policy) for agent_id, policy in agents.iter_rows()}
        self._policies[night] = Policies(self.policy, own, may_loosen=self.may_loosen)
        return self._policies[night]

    def agents_at_rest(self, night: date) -> AgentsAtRest:
        """Return the agents of this run whose pairs are not compared again; cached until the snapshot is taken again.

        None in a full night, or with a second judge, which may have answered since.
        """
        if night not in self._at_rest:
            is_all_due = self.is_full or self.second_judge is not None
            found = AgentsAtRest() if is_all_due else find_agents_at_rest(self.snapshot(night), self.decision_basis)
            self._at_rest[night] = replace(found, agent_ids=found.agent_ids.intersection(self.agents()))
        return self._at_rest[night]

    def finished_run(self, night: date) -> str | None:
        """Return the id of an earlier run that carried this night through over the same rows, None if there is none.

        Another run would then change nothing. None for a full night or a dry run, and with a second judge, which may
        have answered since.
        """
        taken = None if self.is_full or self.is_dry_run or self.second_judge else open_snapshot(self.folder(night))
        if taken is None or not taken.is_final or late_memories(self.database, taken, agent_ids=self.agent_ids):
            return None
        found = finished_run(self.files(night), self.decision_basis, taken, self.agents())
        # A backup from before the night may have been restored since: the files know nothing of that.
        return found.run_id if found is not None and is_applied(self.database, found.plan_hash) else None

    def included_agents(self, night: date) -> list[str]:
        """Return the agents of this run, without those left out."""
        left = {each.agent_id for each in self.left_out(night)}
        return [agent_id for agent_id in self.agents() if agent_id not in left]

    @property
    def decision_basis(self) -> dict[str, Any]:
        """What the results of this night depend on besides the rows."""
        second = self.second_judge
        models = () if second is None else (second.models.judge, second.models.fallback)
        return decision_basis(self.judge, self.night_policy, self.policy, models)

    def chunks(self, night: date, *, without: Collection[str] = ()) -> list[Chunk]:
        """Return the agents of this run in chunks: agents of one policy together, as many as fit in memory at once.

        Cached until another agent is left out or the snapshot is taken again. Raises `Refused` when all are left out.
        """
        taken, left = self.snapshot(night), {each.agent_id: each for each in self.left_out(night)}
        key = (night, taken.taken_at, tuple(taken.checksums.items()), tuple(left), frozenset(without))
        if key not in self._chunks:
            included = [agent_id for agent_id in self.agents() if agent_id not in left]
            if left and not included:
                raise Refused(f"every agent is left out of night {night}: {next(iter(left.values()))}")
            agents = [agent_id for agent_id in included if agent_id not in without]
            sizes = taken.sizes("facts")
            most = rows_at_once(sum(sizes.get(agent_id, 0) for agent_id in agents), width=self.engine.width)
            self._chunks[key] = [
                Chunk(taken, policy, tuple(chunk), self._reader if self.engine.shares_memory else None)
                for policy, members in self.policies(night).groups(agents)
                for chunk in chunked(members, sizes, most=most)
            ]
        return self._chunks[key]

    @property
    def engine(self) -> Engine:
        """The engine that works on chunks; opened by the first step that needs it, and closed with the run."""
        if self._engine is None:
            self._engine = self._opened.enter_context(closing(engine_of(settings())))
        return self._engine

    @cached_property
    def judge(self) -> Judge:
        """The judge of pairs."""
        return OfflineJudge()

    @property
    def second_judge(self) -> SecondJudge | None:
        """The judge of the pairs that the offline judge may be wrong about; None without a key."""
        return SecondJudge.of(settings())

    @property
    def address(self) -> str:
        """The URL of the database."""
        return open_url()

    @property
    def home_folder(self) -> Path:
        """The folder of all files of Nous."""
        return settings().home or postgres.default_home()

    @property
    def is_dry_run(self) -> bool:
        """Whether this run ends before anything changes; its files then have a folder of their own."""
        return False

    @property
    def may_loosen(self) -> bool:
        """Whether the policy of this run may lift the limits of checks: for commands, not for launches in Dagster."""
        return False

    def folder(self, night: date) -> Path:
        """Return the folder of this night."""
        # Cached: `night_folder` asks the database for its identity, and a run asks for the folder some 70 times.
        if night not in self._folders:
            self._folders[night] = night_folder(self.home_folder.absolute() / "snapshots", self.database, night)
        return self._folders[night]

    def files(self, night: date) -> NightFiles:
        """Return this night's working files."""
        return NightFiles(self.folder(night), is_dry_run=self.is_dry_run, agent_ids=self.agent_ids)

    def snapshot(self, night: date) -> Snapshot:
        """Return this night's snapshot; raise `dagster.Failure` when it has not been taken."""
        snapshot = open_snapshot(self.folder(night))
        if snapshot is None:
            raise dg.Failure(f"night {night} has no snapshot; materialise the asset `snapshot` first")
        return snapshot

    def retake_outdated_snapshot(self, night: date) -> None:
        """Take this night's snapshot again if memories of its days arrived late, or an earlier night was applied since.

        The outdated one is moved aside with all files made of it. A night that was applied is not outdated by earlier
        nights; it can be run again for late memories, since proposals it applied already keep their ids. A dry run of
        such a night leaves the snapshot as it is, and only counts the late memories.
        """
        self._agents = None
        taken, is_applied = self.snapshot(night), NightFiles(self.folder(night)).has("applied")
        if taken.taken_at >= self._began_at:
            return  # this run has just taken it
        late = late_memories(self.database, taken, agent_ids=self.agent_ids)
        if self.is_dry_run and is_applied:
            self.files(night).write_json(UNSEEN, {"agents": late_rows(late)})
            return
        if late or (not self.is_dry_run and not is_applied and applied_since(self.database, night, taken.taken_at)):
            taken.move_aside()
            self._policies.pop(night, None)
            self._at_rest.pop(night, None)
            take_snapshot(
                self.database,
                taken.folder,
                night=night,
                probe_days=self.night_policy.probe_days,
                late=late if is_applied else {},
                is_whole=self.is_full,
            )

    def searchable(self, taken: Snapshot, *, is_last: bool = False) -> Searchable:
        """Return what reads the vectors of a snapshot that recall can find; the plan and its checks read them once.

        After the checks (`is_last`) they are no longer held: those of 100,000 facts are 150 MB.
        """
        known = self._searchable
        found = known if known is not None and known.taken is taken else Searchable(taken, self._reader)
        self._searchable = None if is_last else found
        return found

    def evidence_tables(self, taken: Snapshot, agent_ids: list[str], *, is_last: bool = False) -> EvidenceTables:
        """Return what the evidence about some agents consists of; the plan and its checks read it once."""
        known = self._evidence
        is_known = known is not None and known[0] is taken and known[1] == agent_ids
        found = known[2] if known is not None and is_known else EvidenceTables.of(taken, agent_ids)
        self._evidence = None if is_last else (taken, agent_ids, found)
        return found

    def seen_until(self, night: date) -> datetime:
        """Return the moment up to which late memories of a night were looked for: the run's start, or its snapshot."""
        return max(self._began_at, self.snapshot(night).taken_at)

    def left_out(self, night: date) -> list[LeftOut]:
        """Return the agents left out so far: their policy is invalid, or a step failed for them."""
        by_policy = self.policies(night).faults(self.agents())
        by_step = self.files(night).left_out()
        return [*left_out_agents("policy", by_policy), *(each for each in by_step if each.agent_id not in by_policy)]

    def agents(self) -> list[str]:
        """Return the agents of this run; cached until the snapshot is checked again."""
        if self._agents is None:
            self._agents = find_agents(self.database, self.agent_ids)
        return self._agents


class CommandedNight(NightRun):
    """The night of a command: it has its own home and database, and its policy may lift limits of checks."""

    home: str
    database_url: str
    changes_nothing: bool = False

    @property
    def is_dry_run(self) -> bool:
        return self.changes_nothing

    @property
    def address(self) -> str:
        return self.database_url

    @property
    def home_folder(self) -> Path:
        return Path(self.home)

    @property
    def may_loosen(self) -> bool:
        return True


def as_metadata(values: dict[str, Any]) -> dict[str, Any]:
    """Return plain values as Dagster metadata, nested ones as JSON."""
    return {
        key: dg.MetadataValue.json(value) if isinstance(value, dict | list) else value for key, value in values.items()
    }
