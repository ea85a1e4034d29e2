"""Nights that would change nothing: recognised without running them, and recorded like the nights around them.

After a night that proposed nothing, a later one is quiet if it would read the same rows and no phase proposes anything
at its date. The phases themselves are asked, under each agent's policy, and not a list of ages. What they read
about pairs stands as the night before left it. See docs/decisions/0033-quiet-nights.md.
"""

from __future__ import annotations

import logging
import time
from bisect import bisect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import cached_property
from itertools import takewhile

import dagster as dg
import polars as pl
from dagster import DagsterInstance, EventLogEntry
from dagster._core.events import DagsterEvent, DagsterEventType, StepMaterializationData
from dagster._core.instance.utils import RUNLESS_JOB_NAME, RUNLESS_RUN_ID

from nous_online.core.errors import NousError
from nous_online.database.statements import statements
from nous_pipelines.batches.batch_rows import unfinished
from nous_pipelines.batches.second_judge import PLANNED_QUESTIONS
from nous_pipelines.nights import end_of
from nous_pipelines.orchestration.code_location import ASSETS
from nous_pipelines.orchestration.earlier_nights import FRESH_FOR, LATE, agents_with_facts_since, was_planned_from
from nous_pipelines.orchestration.night_assets import EPISODE_SUMMARIES, Inputs
from nous_pipelines.orchestration.resources import NightRun
from nous_pipelines.orchestration.running import NightOptions
from nous_pipelines.phases.phase import Tables
from nous_pipelines.phases.phase_table import NIGHT_TABLES, PHASES, MakesTable, NightPhase, NightTable, Reads
from nous_pipelines.plan.checks import FAULTS
from nous_pipelines.snapshots.agent_chunks import Chunk
from nous_pipelines.snapshots.snapshot import unchanged_agents_at

SQL = statements("nous_pipelines.orchestration", "quiet_nights.sql")
TIMEOUT_S = 60.0
DATED: Mapping[str, NightTable] = {table.name: table for table in (*NIGHT_TABLES, EPISODE_SUMMARIES)}
"""The tables on the way to proposals that may depend on the date; they are made for each."""


def find_quiet_nights(
    before: date,
    later: Sequence[date],
    options: NightOptions,
    *,
    instance: DagsterInstance | None,
    is_stopped: Callable[[], bool] = lambda: False,
) -> list[date]:
    """Return the nights right after `before` that would change nothing, once they are recorded.

    `before` has just run; `later` are the nights still to be run, in order. The last of them is never quiet: it is run,
    so that there are files and a report of the present. None are after a night that changed something, left an agent
    out, or waits for a model. A dry run records none, so it has no `instance`. `is_stopped` is asked before each night.
    """
    if instance is None or options.is_dry_run or options.is_full or len(later) <= 1:
        return []
    with options.night_run().opened() as night_run:
        looked_at = datetime.now(UTC)
        store = StoreAtRest(night_run, before)
        asked = store.nights_that_read_the_same(later[:-1]) if store.is_settled else ()
        quiet = list(takewhile(lambda night: not is_stopped() and not store.proposes(night), asked))
        if quiet:
            record_figures(night_run, before, quiet, looked_at=looked_at)
            for asset in ASSETS:  # in batches: one by one they take as long as running a fifth of the nights
                instance.event_log_storage.store_event_batch([runless(asset.key, before, night) for night in quiet])
        return quiet


@dataclass
class StoreAtRest:
    """The store after a night that ran, seen at the dates of later nights."""

    night_run: NightRun
    before: date
    kept: dict[str, Iterable[tuple[Chunk, Tables]]] = field(default_factory=dict[str, Iterable[tuple[Chunk, Tables]]])
    """What each phase reads, where it fits into memory at once."""

    @cached_property
    def is_settled(self) -> bool:
        """Whether the night was applied, changed nothing, and left nothing that the next would try again."""
        night_run, files = self.night_run, self.night_run.files(self.before)
        try:
            asked = PLANNED_QUESTIONS.validate_python(files.read_json("judge_requests")).figures
            is_over = files.has("applied") and not files.read_checked_plan().left_out
            has_proposed = any(files.read_phase(phase.name).proposals for phase in PHASES)
        except NousError:
            return False
        taken, agents = night_run.snapshot(self.before), night_run.included_agents(self.before)
        return (
            is_over
            and not has_proposed
            and not asked.get("pairs_open")
            and not (night_run.second_judge is not None and unfinished(night_run.database))
            and was_planned_from(files, night_run.decision_basis, taken, agents)
        )

    def nights_that_read_the_same(self, later: Sequence[date]) -> Sequence[date]:
        """Return those of later nights, in order, that would read what this one read."""
        # What changed by one night has changed by all after it, so a few of them are looked at, not each.
        return later[: bisect(later, False, key=lambda night: not self.reads_the_same(night))]  # noqa: FBT003 (not yet)

    def reads_the_same(self, night: date) -> bool:
        """Return whether the agents' rows are the same at the end of another night, and the same facts fresh."""
        taken, agents = self.night_run.snapshot(self.before), {*self.night_run.agents()}
        if taken.probe_days != self.night_run.night_policy.probe_days:
            return False
        # Fresh facts meet their nearest however far they are: while the same ones are fresh, the pairs are the same.
        since, until = end_of(self.before) - FRESH_FOR, end_of(night)
        ageing = agents_with_facts_since(taken, since, until=until - FRESH_FOR, stored_until=until + LATE)
        return not agents & ageing and agents <= unchanged_agents_at(self.night_run.database, taken, night)

    @cached_property
    def ageing(self) -> list[NightPhase]:
        """The phases that may propose something by time alone. All proposed nothing yet, so the others never will."""
        return [
            phase
            for phase in PHASES
            if (ages := phase.ages) is not None
            and any(
                ages(tables, policy=chunk.policy, night=self.before)
                for chunk, tables in Inputs.of(self.night_run, self.before, phase.reads)
            )
        ]

    def proposes(self, night: date) -> bool:
        """Return whether any phase would propose something at the date of another night, or fail."""
        try:
            wanted = {name for phase in self.ageing for name in phase.reads}
            made = {
                name: self._made(name, table.reads, table.make, night)
                for name, table in DATED.items()
                if name in wanted
            }
            return any(self._proposes(phase, made, night) for phase in self.ageing)
        except (NousError, *FAULTS):
            return True

    def _proposes(self, phase: NightPhase, made: Mapping[str, pl.DataFrame], night: date) -> bool:
        if phase.gather is not None:
            gathered = [
                phase.gather(tables, policy=chunk.policy, night=night)
                for chunk, tables in self._tables(phase.name, phase.reads, made)
            ]
            made = {**made, "gathered": pl.concat(gathered)} if len(gathered) > 1 else made
        return any(
            phase.find(tables, policy=chunk.policy, night=night).proposals
            for chunk, tables in self._tables(phase.name, phase.reads, made)
        )

    def _made(self, name: str, reads: Reads, make: MakesTable, night: date) -> pl.DataFrame:
        parts = [make(tables, policy=chunk.policy, night=night) for chunk, tables in self._tables(name, reads, {})]
        return pl.concat([self.night_run.agents_at_rest(self.before).rows(DATED[name].schema), *parts])

    def _tables(self, name: str, reads: Reads, made: Mapping[str, pl.DataFrame]) -> Iterator[tuple[Chunk, Tables]]:
        """Yield the chunks with the tables that `name` reads, those of `made` in place of the earlier night's."""
        if name not in self.kept:
            standing = {table: columns for table, columns in reads.items() if table not in DATED}
            inputs = Inputs.of(self.night_run, self.before, standing)
            self.kept[name] = list(inputs) if len(inputs.chunks) == 1 else inputs
        for chunk, tables in self.kept[name]:
            dated = {table: chunk.own(rows) for table, rows in made.items() if table in reads or table == "gathered"}
            yield chunk, {**tables, **dated}


# --- records ---


def record_figures(night_run: NightRun, before: date, quiet: Sequence[date], *, looked_at: datetime) -> None:
    """Store the figures of the night before for each quiet night: they are what it would have measured."""
    values = {"before": before, "nights": list(quiet), "agent_ids": night_run.agents(), "looked_at": looked_at}
    with night_run.database.transaction(timeout_s=TIMEOUT_S) as connection:
        connection.execute(SQL["record_quiet_nights"], values)


def runless(key: dg.AssetKey, before: date, night: date) -> EventLogEntry:
    """Return the event of an asset that a quiet night leaves as an earlier night made it."""
    metadata = {"quiet": True, "as_of_night": before.isoformat()}
    made = dg.AssetMaterialization(
        key, description=f"nothing to do; as night {before} left it", metadata=metadata, partition=night.isoformat()
    )
    event = DagsterEvent(
        DagsterEventType.ASSET_MATERIALIZATION.value,
        job_name=RUNLESS_JOB_NAME,
        event_specific_data=StepMaterializationData(made),
    )
    return EventLogEntry(
        error_info=None, level=logging.INFO, user_message="", run_id=RUNLESS_RUN_ID, timestamp=time.time(),
        dagster_event=event,
    )  # fmt: skip
