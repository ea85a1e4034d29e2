"""The assets of a night up to its plan: snapshot, candidate pairs, judgements, questions for Claude, and proposals."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import dagster as dg
import polars as pl

from nous_online.core.settings import settings
from nous_pipelines.batches.batch_rows import unfinished
from nous_pipelines.batches.collecting import Collected
from nous_pipelines.batches.second_judge import AgentQuestions, PlannedQuestions, SecondJudge, planned_questions
from nous_pipelines.batches.verdict_cache import JudgementCounts, SecondOpinionCounts, open_questions
from nous_pipelines.engines.engine import Engine, OnDone
from nous_pipelines.nights import FIRST_NIGHT, end_of, parse_night
from nous_pipelines.orchestration.chunk_work import (
    EPISODE_SUMMARIES,
    ChunkOutput,
    ChunkWork,
    Judges,
    Table,
    do_work,
    find_neighbours,
    find_proposals,
    judge_pairs,
    make_table,
    tables_of_chunk,
)
from nous_pipelines.orchestration.earlier_nights import (
    FRESH_FOR,
    LATE,
    AgentsAtRest,
    earlier_compared,
    write_compared,
    write_judged_by,
)
from nous_pipelines.orchestration.resources import NightRun, as_metadata
from nous_pipelines.phases.asking import STATEMENT_COLUMNS
from nous_pipelines.phases.incremental_join import Compared
from nous_pipelines.phases.links import CHANGED
from nous_pipelines.phases.merging import JUDGED
from nous_pipelines.phases.neighbours import COPY, FOUND, MOST_CANDIDATES, READ
from nous_pipelines.phases.phase import Tables, combine_phases
from nous_pipelines.phases.phase_table import NIGHT_TABLES, PHASES, NightPhase, NightTable, Reads
from nous_pipelines.phases.rulings import FOLLOWED
from nous_pipelines.plan.checks import left_out_agents
from nous_pipelines.plan.night_files import PUT_OFF, NightFiles
from nous_pipelines.snapshots.agent_chunks import Chunk
from nous_pipelines.snapshots.snapshot import late_rows, take_snapshot
from nous_pipelines.snapshots.table_schemas import SNAPSHOT_TABLES, TableSchema


def nights_from(first: date) -> dg.DailyPartitionsDefinition:
    """Return the partitions, one for each night from `first` on, each for all agents."""
    # With tonight (`end_offset`), which can be run before it is over.
    return dg.DailyPartitionsDefinition(start_date=first.isoformat(), timezone="UTC", end_offset=1)


NIGHTS = nights_from(FIRST_NIGHT)
"""All possible nights; the code location that Dagster loads begins at the first memory."""
OWNERS = ["team:memory"]
"""The owners in Dagster's catalogue; a deployment has one team for its memory."""
ROW_COUNT = "dagster/row_count"
"""The metadata key whose values Dagster's catalogue plots."""
CHANGING = tuple(phase.name for phase in PHASES if CHANGED.name not in phase.reads)
"""The phases whose proposals the other phases read, as the table `changed`."""
MADE_BY: Mapping[str, tuple[str, ...]] = {"copies": ("neighbours",), CHANGED.name: CHANGING}
"""The assets that make a table, for tables with another name than their asset."""


def sources_of(reads: Reads) -> tuple[str, ...]:
    """Return the assets that make tables; always with the snapshot, which has the agents and their policies."""
    made = (MADE_BY.get(name, (name,)) for name in reads if name not in SNAPSHOT_TABLES)
    return ("snapshot", *dict.fromkeys(asset for assets in made for asset in assets))


Step = Callable[[dg.AssetExecutionContext, NightRun], dg.MaterializeResult]


def night_asset(
    *,
    reads: Reads | None = None,
    makes: TableSchema | None = None,
    deps: Iterable[Any] = (),
    changes_memories: bool = False,
    **details: Any,
) -> Callable[[Step], dg.AssetsDefinition]:
    """Return a decorator that makes a function an asset of a night, which depends on what it reads and on `deps`.

    Dagster's catalogue shows the columns of the table it `makes`, and a tag on assets that change memories. `details`
    are further arguments of `dagster.asset`.
    """
    metadata: dict[str, Any] = {}
    if reads is not None:
        metadata["reads"] = dg.MetadataValue.json({name: columns and list(columns) for name, columns in reads.items()})
    if makes is not None:
        columns = makes.items()
        metadata["dagster/column_schema"] = dg.TableSchema(
            [dg.TableColumn(name, str(dtype), description=makes.meanings[name]) for name, dtype in columns]
        )
    sources = () if reads is None else sources_of(reads)
    return dg.asset(
        partitions_def=NIGHTS,
        group_name="night",
        deps=[*sources, *deps],
        metadata=metadata,
        owners=OWNERS,
        tags={"changes": "memories" if changes_memories else "nothing"},
        **details,
    )


def night_of(context: dg.AssetExecutionContext | dg.AssetCheckExecutionContext) -> date:
    """Return the night a step works on."""
    return parse_night(context.partition_key)


@dataclass(frozen=True)
class Inputs:
    """The tables an asset reads, chunk by chunk: the rows of other agents are not in memory."""

    reads: Reads
    chunks: Sequence[Chunk]
    made: Mapping[str, Table]
    """The tables that other assets of the night made, or for other processes their files."""
    files: NightFiles
    engine: Engine
    at_rest: AgentsAtRest
    """The agents that are in no chunk, since the results of an earlier night about them are taken over."""

    @classmethod
    def of(cls, night_run: NightRun, night: date, reads: Reads, *, finds_pairs: bool = False) -> "Inputs":
        """Open the tables of a night, without agents at rest if the asset is about pairs of facts."""
        files, engine = night_run.files(night), night_run.engine
        made = {
            name: read_made_table(files, name, reads[name])
            if engine.shares_memory or name == CHANGED.name
            else files.folder / f"{name}.parquet"
            for name in reads
            if name not in SNAPSHOT_TABLES
        }
        is_about_pairs = finds_pairs or not {"neighbours", "judgements"}.isdisjoint(reads)
        at_rest = night_run.agents_at_rest(night) if is_about_pairs else AgentsAtRest()
        return cls(reads, night_run.chunks(night, without=at_rest.agent_ids), made, files, engine, at_rest)

    def __iter__(self) -> Iterator[tuple[Chunk, Tables]]:
        for chunk in self.chunks:
            yield chunk, tables_of_chunk(chunk, self.reads, self.made)

    def with_table(self, name: str, table: pl.DataFrame) -> "Inputs":
        """Return the same with another table, of all agents."""
        return replace(self, reads={**self.reads, name: None}, made={**self.made, name: table})

    def map_chunks(
        self, step: str, function: Callable[..., ChunkOutput], *, on_done: OnDone | None = None, **options: Any
    ) -> list[ChunkOutput]:
        """Return the output of a function for each chunk; agents for which it fails are left out from here on.

        Raises the first error when it fails for all agents.
        """
        with self._as_files(step) as (scratch, made):
            is_elsewhere = not self.engine.shares_settings
            works = [
                ChunkWork(step, function, chunk, self.reads, made, options, scratch, is_elsewhere=is_elsewhere)
                for chunk in self.chunks
            ]
            results = self.engine.map(do_work, works, on_done=on_done)
            outputs = [part.read() for parts, _ in results for part in parts]
        faults = {agent_id: fault for _, found in results for agent_id, fault in found.items()}
        if faults and not (outputs or self.at_rest.agent_ids):
            raise next(iter(faults.values()))
        self.files.leave_out(left_out_agents(step, faults))
        return outputs

    @contextmanager
    def _as_files(self, step: str) -> Iterator[tuple[Path | None, Mapping[str, Table]]]:
        """Yield a prefix for files of other processes, and all tables as files; they are deleted after the block.

        None and the tables as they are where the engine works in this process.
        """
        if self.engine.shares_memory:
            yield None, self.made
            return
        scratch = self.files.folder / f"{step}.{uuid4().hex}"
        try:
            in_memory = {name: table for name, table in self.made.items() if isinstance(table, pl.DataFrame)}
            yield scratch, {**self.made, **ChunkOutput(in_memory).write(scratch).tables}
        finally:
            for path in self.files.folder.glob(f"{scratch.name}.*.part"):
                path.unlink(missing_ok=True)


def join_parts(parts: Iterable[ChunkOutput], schema: TableSchema, at_rest: AgentsAtRest) -> pl.DataFrame:
    """Return one table, by agent, from those of all chunks and the rows of agents at rest."""
    table = pl.concat([at_rest.rows(schema), *(part.table(schema.name) for part in parts)])
    return table.sort("agent_id", maintain_order=True) if at_rest.agent_ids else table


def chunk_log(context: dg.AssetExecutionContext, engine: Engine) -> OnDone | None:
    """Return a callback that logs each chunk that another process has done."""
    if engine.shares_memory:
        return None
    return lambda done, total: context.log.info("%d of %d chunks of agents", done, total)


def read_made_table(files: NightFiles, name: str, columns: Sequence[str] | None) -> pl.DataFrame:
    """Return a table that other assets of the night made."""
    if name != CHANGED.name:
        return files.read_table(name, columns=columns)
    rows = [
        (proposal["agent_id"], change["id"])
        for phase in CHANGING
        for proposal in files.read_json(phase)["proposals"]
        for change in proposal["changes"]
    ]
    return pl.DataFrame(rows, schema=CHANGED, orient="row").unique()


@night_asset(
    kinds={"postgres", "parquet"},
    description="The store at the end of the night, read in one transaction; taken again for memories that come late.",
)
def snapshot(context: dg.AssetExecutionContext, night_run: NightRun) -> dg.MaterializeResult:
    night = night_of(context)
    policy = night_run.night_policy
    take_snapshot(
        night_run.database,
        night_run.folder(night),
        night=night,
        probe_days=policy.probe_days,
        now=datetime.now(UTC),
        is_whole=night_run.is_full,
    )
    night_run.retake_outdated_snapshot(night)
    NightFiles(night_run.folder(night)).take_over()
    taken = night_run.snapshot(night)
    night_run.files(night).leave_out_nobody()
    counts = taken.counts
    return dg.MaterializeResult(
        metadata={
            ROW_COUNT: sum(counts.values()),
            **counts,
            "folder": str(taken.folder),
            "taken_at": taken.taken_at.isoformat(),
            **as_metadata({"late": late_rows(taken.late)}),
        }
    )


# --- pairs ---

NEIGHBOURS_READS: Reads = {"facts": READ, "statements": ("agent_id", "fact_id", "recorded_at"), "undone": None}
JUDGEMENTS_READS: Reads = {
    "neighbours": None,
    "copies": None,
    "facts": tuple(dict.fromkeys((*STATEMENT_COLUMNS, *FOLLOWED))),
    "undone": None,
    "contradictions": None,
}
FETCH_S = 120.0  # for results of batches; the sensor fetches the rest


@night_asset(
    reads=NEIGHBOURS_READS,
    makes=FOUND,
    kinds={"numpy", "parquet"},
    description=(
        "Candidate pairs of facts: near each other, of one slot, or stated by two users of one project. "
        f"`cut` facts have more than {MOST_CANDIDATES} candidates: they meet the nearest of those tonight, and the "
        "rest when these are merged."
    ),
)
def neighbours(context: dg.AssetExecutionContext, night_run: NightRun) -> dg.MaterializeResult:
    night = night_of(context)
    inputs, files = Inputs.of(night_run, night, NEIGHBOURS_READS, finds_pairs=True), night_run.files(night)
    earlier = [] if night_run.is_full else earlier_compared(files)

    parts = inputs.map_chunks(
        "neighbours",
        find_neighbours,
        earlier=earlier,
        fresh=(end_of(night) - FRESH_FOR, end_of(night) + LATE),
        on_done=chunk_log(context, inputs.engine),
    )
    pairs, copies = (join_parts(parts, schema, inputs.at_rest) for schema in (FOUND, COPY))
    files.write_table("neighbours", pairs)
    files.write_table("copies", copies)
    write_compared(files, [Compared(part.table("compared_rows"), part.table("compared_pairs")) for part in parts])
    return dg.MaterializeResult(
        metadata={
            ROW_COUNT: len(pairs),
            "pairs": len(pairs),
            "facts": sum(len(part.table("copies")) for part in parts),
            "cut": sum(part.value for part in parts),
            "agents_at_rest": len(inputs.at_rest.agent_ids),
            "built_on": ", ".join(kept.folder.parent.name for kept in earlier[:1]),
        }
    )


@night_asset(
    reads=JUDGEMENTS_READS,
    makes=JUDGED,
    kinds={"postgres", "parquet"},
    description=(
        "Those pairs with a verdict each and the reason for it; verdicts of earlier nights are kept. With a key for "
        "Claude, it decides where the offline judge may be wrong; pairs that it has not answered yet wait."
    ),
)
def judgements(context: dg.AssetExecutionContext, night_run: NightRun) -> dg.MaterializeResult:
    night = night_of(context)
    files, judge = night_run.files(night), night_run.judge
    collected, second = collect_verdicts(night, night_run), night_run.second_judge

    inputs = Inputs.of(night_run, night, JUDGEMENTS_READS)
    log_pairs = partial(context.log.info, "judged %d of %d pairs")
    judges = Judges(
        judge,
        second=None if second is None else second.models,
        earlier=None if night_run.is_full else files,
        database=night_run.database_for(inputs.engine),
        on_progress=log_pairs if inputs.engine.shares_memory else None,  # a log can't be sent to another process
    )
    parts = inputs.map_chunks("judgements", judge_pairs, judges=judges, on_done=chunk_log(context, inputs.engine))
    table = join_parts(parts, JUDGED, inputs.at_rest)
    counts = sum((part.value[0] for part in parts), JudgementCounts())
    by_second = sum((part.value[1] for part in parts), SecondOpinionCounts())
    write_judged_by(files, judge, files.write_table("judgements", table), night_run.agents())
    by_verdict = dict(table.group_by("verdict").len().sort("verdict").iter_rows())
    second_figures = {} if second is None else {**vars(by_second), "collected": collected.words}
    return dg.MaterializeResult(
        metadata={ROW_COUNT: len(table), "pairs": len(table), **vars(counts), **second_figures, **by_verdict}
    )


def collect_verdicts(night: date, night_run: NightRun) -> Collected:
    """Fetch the verdicts of Claude that are ready, and record what went wrong; a dry run fetches none."""
    second, collected = SecondJudge.collector(settings()), Collected()
    if second is not None and not night_run.is_dry_run and unfinished(night_run.database):
        collected = second.look(night_run.database, night_run.home_folder, seconds=FETCH_S)
    night_run.files(night).write_json("collected", asdict(collected))
    return collected


# --- questions for Claude ---

CHECK = "judge_batches_sent"
QUESTIONS_READS: Reads = {"facts": STATEMENT_COLUMNS, "neighbours": None, "judgements": None}


@night_asset(
    reads=QUESTIONS_READS,
    kinds={"postgres", "json"},
    description="The pairs that wait for Claude, how many requests they take and what those may cost. Nothing is sent.",
)
def judge_requests(context: dg.AssetExecutionContext, night_run: NightRun) -> dg.MaterializeResult:
    night, second = night_of(context), night_run.second_judge
    planned = PlannedQuestions()
    if second is not None:
        questions = questions_of_agents(night, night_run, second)
        planned = planned_questions(night_run.database, questions, night=night, models=second.models)
    night_run.files(night).write_json("judge_requests", planned.as_dict())
    return dg.MaterializeResult(metadata=as_metadata(planned.figures))


@night_asset(
    reads=QUESTIONS_READS,
    deps=[judge_requests],
    kinds={"postgres"},
    check_specs=[
        dg.AssetCheckSpec(
            CHECK,
            asset="judge_batches",
            blocking=False,
            description="The questions for Claude were sent, and its answers are trusted.",
        )
    ],
    description="Those requests, sent as Message Batches at half the price; their verdicts count in a later night.",
)
def judge_batches(context: dg.AssetExecutionContext, night_run: NightRun) -> dg.MaterializeResult:
    night, second = night_of(context), night_run.second_judge
    fetch_troubles: list[str] = night_run.files(night).read_json("collected")["troubles"]
    if second is None:
        write_put_off(night, night_run, fetch_troubles)
        return dg.MaterializeResult(
            check_results=[sent_check(fetch_troubles, "no model is asked: the offline judge decides alone")]
        )
    sent = second.send(night_run.database, questions_of_agents(night, night_run, second), night=night)
    obstacles = list(dict.fromkeys([*sent.obstacles, *fetch_troubles]))
    write_put_off(night, night_run, obstacles)
    return dg.MaterializeResult(
        metadata=as_metadata(sent.figures),
        check_results=[sent_check(obstacles, f"{sent.requests} requests were sent", *sent.warnings)],
    )


def write_put_off(night: date, night_run: NightRun, obstacles: Sequence[str]) -> None:
    """Record what stood in the way of asking, and how many pairs of each agent wait for it."""
    second, rows = night_run.second_judge, list[dict[str, Any]]()
    if obstacles and second is not None:
        questions = questions_of_agents(night, night_run, second)
        open_now = planned_questions(night_run.database, questions, night=night, models=second.models).agents
        rows = [{"agent_id": each.agent_id, "pairs": each.pairs} for each in open_now if each.pairs]
    night_run.files(night).write_json(PUT_OFF, {"obstacles": list(obstacles), "agents": rows})


def sent_check(obstacles: list[str], success: str, *warnings: str) -> dg.AssetCheckResult:
    """Return the result of the check `judge_batches_sent`, which passes if there are no obstacles."""
    return dg.AssetCheckResult(
        check_name=CHECK,
        passed=not obstacles,
        severity=dg.AssetCheckSeverity.WARN,
        description="; ".join([*(obstacles or [success]), *warnings]),
    )


def questions_of_agents(night: date, night_run: NightRun, second: SecondJudge) -> Iterator[AgentQuestions]:
    """Yield each agent's pairs that wait for Claude, with its limit of costs."""
    for chunk, tables in Inputs.of(night_run, night, QUESTIONS_READS):
        pairs, judged = tables["neighbours"], tables["judgements"]
        for agent_id, questions in open_questions(pairs, judged, tables["facts"], second.models).items():
            yield AgentQuestions(agent_id, questions, chunk.policy.max_cost_usd)


# --- tables and phases ---


def table_asset(table: NightTable) -> dg.AssetsDefinition:
    """Return the asset of a table, for all agents."""

    @night_asset(
        name=table.name,
        reads=table.reads,
        makes=table.schema,
        kinds={"polars", "parquet"},
        description=table.description,
    )
    def rows(context: dg.AssetExecutionContext, night_run: NightRun) -> dg.MaterializeResult:
        night = night_of(context)
        inputs = Inputs.of(night_run, night, table.reads)
        parts = inputs.map_chunks(table.name, make_table, name=table.name, make=table.make, night=night)
        whole = join_parts(parts, table.schema, inputs.at_rest)
        night_run.files(night).write_table(table.name, whole)
        return dg.MaterializeResult(
            metadata={ROW_COUNT: len(whole), **whole.select(**table.figures).row(0, named=True)}
        )

    return rows


def phase_asset(phase: NightPhase) -> dg.AssetsDefinition:
    """Return the asset of the proposals of a phase for all agents, with its account as metadata."""

    @night_asset(
        name=phase.name,
        reads=phase.reads,
        kinds={"polars", "json"},
        description=phase.description,
    )
    def proposals(context: dg.AssetExecutionContext, night_run: NightRun) -> dg.MaterializeResult:
        night = night_of(context)
        inputs = Inputs.of(night_run, night, phase.reads)
        parts = phase_parts(phase, inputs, night)
        whole = combine_phases(phase.name, [inputs.at_rest.phase(phase.name), *(part.value for part in parts)])
        night_run.files(night).write_phase(whole)
        return dg.MaterializeResult(metadata={ROW_COUNT: len(whole.proposals), **as_metadata(whole.metadata())})

    return proposals


def phase_parts(phase: NightPhase, inputs: Inputs, night: date) -> list[ChunkOutput]:
    """Return the results of a phase for each chunk, with the table `gathered` of all agents if it needs one."""
    gather = phase.gather
    if gather is None:
        return inputs.map_chunks(phase.name, find_proposals, find=phase.find, night=night)
    if len(inputs.chunks) == 1:  # without the table the phase gathers from its own chunk
        parts = inputs.map_chunks(phase.name, find_proposals, find=phase.find, night=night)
        if len(parts) == 1:
            return parts
        # It failed for an agent, so each part gathered from its own agents alone.
    gathered = inputs.map_chunks(phase.name, make_table, name="gathered", make=gather, night=night)
    if not gathered:  # there is no agent, or it failed for each
        return []
    whole = pl.concat([part.table("gathered") for part in gathered])
    return inputs.with_table("gathered", whole).map_chunks(phase.name, find_proposals, find=phase.find, night=night)


TABLE_ASSETS = [table_asset(table) for table in (*NIGHT_TABLES, EPISODE_SUMMARIES)]
PHASE_ASSETS = [phase_asset(phase) for phase in PHASES]
