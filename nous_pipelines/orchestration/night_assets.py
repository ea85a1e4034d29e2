"""The assets of a night up to its plan: the store as it saw it, which facts are looked at together, what each pair is,
what Claude is asked, and the proposals of every phase."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime
from functools import wraps
from pathlib import Path
from typing import Any
from uuid import uuid4

import dagster as dg
import polars as pl

from nous_online.core.errors import Unavailable
from nous_online.core.settings import settings
from nous_online.language.writing.lexrank import index_word
from nous_online.language.writing.writer import EndedEpisode, levels_by_words
from nous_pipelines.batches.batch_rows import unfinished
from nous_pipelines.batches.collecting import Collected
from nous_pipelines.batches.second_judge import AgentQuestions, PlannedQuestions, SecondJudge, planned_questions
from nous_pipelines.batches.verdict_cache import JudgementCounts, Progress, SecondOpinionCounts, open_questions
from nous_pipelines.engines.engine import Engine, OnDone
from nous_pipelines.night_policy import NightPolicy
from nous_pipelines.nights import FIRST_NIGHT, end_of, parse_night
from nous_pipelines.orchestration.chunk_work import (
    ChunkOutput,
    ChunkWork,
    Judges,
    Table,
    do_work,
    earlier_compared,
    find_neighbours,
    find_proposals,
    judge_pairs,
    make_table,
    write_compared,
    write_judged_by,
)
from nous_pipelines.orchestration.resources import NightRun, as_metadata
from nous_pipelines.orchestration.resting import FRESH_FOR, Rested
from nous_pipelines.phases.asking import STATEMENT_COLUMNS
from nous_pipelines.phases.incremental_join import Compared
from nous_pipelines.phases.links import CHANGED
from nous_pipelines.phases.merging import JUDGED
from nous_pipelines.phases.neighbours import COPY, FOUND, MOST_CANDIDATES, READ
from nous_pipelines.phases.phase import Tables, combine_phases
from nous_pipelines.phases.phase_table import NIGHT_TABLES, PHASES, NightPhase, NightTable, Reads
from nous_pipelines.phases.rulings import FOLLOWED
from nous_pipelines.phases.tiers import COLUMNS, KEY, LEVELS, SUMMARIES, due_episodes, lacking
from nous_pipelines.plan.left_out import left_out_agents
from nous_pipelines.plan.night_files import NightFiles
from nous_pipelines.snapshots.chunks import Chunk
from nous_pipelines.snapshots.snapshot import late_rows, take_snapshot
from nous_pipelines.snapshots.table_schemas import SNAPSHOT_TABLES, TableSchema


def nights_from(first: date) -> dg.DailyPartitionsDefinition:
    """Return the partitions: a night for all agents each; tonight is among them, and can be run before it is over."""
    return dg.DailyPartitionsDefinition(start_date=first.isoformat(), timezone="UTC", end_offset=1)


NIGHTS = nights_from(FIRST_NIGHT)
"""Every night there may be; what Dagster's interface shows begins at the first memory."""
OWNERS = ["team:memory"]
"""Whom Dagster's catalogue names to turn to; a deployment has one team for its memory."""
CHANGING = tuple(phase.name for phase in PHASES if CHANGED.name not in phase.reads)
"""The phases whose proposals the others are told of, as the table `changed`."""
MADE_BY: Mapping[str, tuple[str, ...]] = {"copies": ("neighbours",), CHANGED.name: CHANGING}
"""The assets that a table comes from, where it is not the one of its name."""


def sources_of(reads: Reads) -> tuple[str, ...]:
    """Return the assets that tables come from; the agents and their policies are always of the snapshot."""
    made = (MADE_BY.get(name, (name,)) for name in reads if name not in SNAPSHOT_TABLES)
    return ("snapshot", *dict.fromkeys(asset for assets in made for asset in assets))


Step = Callable[[dg.AssetExecutionContext, NightRun], dg.MaterializeResult]


def night_asset(
    *,
    reads: Reads | None = None,
    makes: TableSchema | None = None,
    deps: Iterable[Any] = (),
    changes_memories: bool = False,
    is_reusable: bool = False,
    **details: Any,
) -> Callable[[Step], dg.AssetsDefinition]:
    """Return what makes a function an asset of a night that depends on what it reads, and on `deps`.

    The columns of the table it `makes` are shown in Dagster's catalogue, which finds by tag what changes memories.
    The files of one that `is_reusable` follow from the snapshot alone, and are kept when the same night is run again.
    `details` are those of `dagster.asset`.
    """
    told: dict[str, Any] = {}
    if reads is not None:
        told["reads"] = dg.MetadataValue.json({name: columns and list(columns) for name, columns in reads.items()})
    if makes is not None:
        told["dagster/column_schema"] = catalogued(makes)
    sources = () if reads is None else sources_of(reads)
    asset = dg.asset(
        partitions_def=NIGHTS,
        group_name="night",
        deps=[*sources, *deps],
        metadata=told,
        owners=OWNERS,
        tags={"changes": "memories" if changes_memories else "nothing"},
        **details,
    )
    return (lambda step: asset(reuse_if_unchanged(step))) if is_reusable else asset


def reuse_if_unchanged(step: Step) -> Step:
    """Return a step that keeps its files when an earlier run of the night has planned from the same rows.

    The metadata it showed then in Dagster's catalogue are read from beside its files, and shown again.
    """

    @wraps(step)
    def run_or_reuse(context: dg.AssetExecutionContext, night_run: NightRun) -> dg.MaterializeResult:
        night = night_of(context)
        files, name = night_run.files(night), f"{context.asset_key.to_user_string()}.metadata"
        if night_run.is_planned(night):
            # A file that is missing or damaged is written anew: to raise would stop every later run as well.
            with suppress(Unavailable):
                return dg.MaterializeResult(metadata=as_metadata({**files.read_json(name), "reused": True}))
        result = step(context, night_run)
        files.write_json(name, {key: getattr(value, "value", value) for key, value in (result.metadata or {}).items()})
        return result

    return run_or_reuse


def catalogued(schema: TableSchema) -> dg.TableSchema:
    """Return the columns of a table as Dagster's catalogue shows them."""
    columns = [dg.TableColumn(name, str(dtype), description=schema.meanings[name]) for name, dtype in schema.items()]
    return dg.TableSchema(columns)


def row_count(rows: Sized) -> dict[str, int]:
    """Return how many rows there are, under the name by which Dagster's catalogue plots it."""
    return {"dagster/row_count": len(rows)}


def night_of(context: dg.AssetExecutionContext | dg.AssetCheckExecutionContext) -> date:
    """Return the night a step works on."""
    return parse_night(context.partition_key)


@dataclass(frozen=True)
class Inputs:
    """The tables an asset reads, some agents of one policy at a time: no other row is held in memory."""

    reads: Reads
    chunks: Sequence[Chunk]
    made: Mapping[str, Table]
    """The tables that other assets of the night have made; for other processes, where they lie."""
    files: NightFiles
    engine: Engine
    rested: Rested
    """The agents that are in no chunk, since what is known of their pairs is taken over."""

    @classmethod
    def of(cls, night_run: NightRun, night: date, reads: Reads, *, finds_pairs: bool = False) -> "Inputs":
        """Open the tables of a night; agents at rest are left out of what is about pairs of facts."""
        files, engine = night_run.files(night), night_run.engine
        made = {
            name: read_whole(files, name, reads[name])
            if engine.shares_memory or name == CHANGED.name
            else files.folder / f"{name}.parquet"
            for name in reads
            if name not in SNAPSHOT_TABLES
        }
        is_about_pairs = finds_pairs or not {"neighbours", "judgements"}.isdisjoint(reads)
        rested = night_run.rested(night) if is_about_pairs else Rested()
        return cls(reads, night_run.chunks(night, without=rested.agent_ids), made, files, engine, rested)

    def __iter__(self) -> Iterator[tuple[Chunk, Tables]]:
        for chunk in self.chunks:
            yield chunk, ChunkWork("", ChunkOutput, chunk, self.reads, self.made, {}).tables(chunk)

    def beside(self, name: str, table: pl.DataFrame) -> "Inputs":
        """Return the same with one more table, of all agents."""
        return replace(self, reads={**self.reads, name: None}, made={**self.made, name: table})

    def each(
        self, step: str, function: Callable[..., ChunkOutput], *, on_done: OnDone | None = None, **options: Any
    ) -> list[ChunkOutput]:
        """Return what is made of each chunk; an agent for which alone that fails is left out from here on.

        Raises the first such fault when it fails for all.
        """
        with self._between(step) as (scratch, made):
            is_elsewhere = not self.engine.shares_settings
            works = [
                ChunkWork(step, function, chunk, self.reads, made, options, scratch, is_elsewhere=is_elsewhere)
                for chunk in self.chunks
            ]
            done = self.engine.map(do_work, works, on_done=on_done)
            found = [part.read() for each in done for part in each.parts]
        faults = {agent_id: fault for each in done for agent_id, fault in each.faults.items()}
        if faults and not (found or self.rested.agent_ids):
            raise next(iter(faults.values()))
        self.files.leave_out(left_out_agents(step, faults))
        return found

    @contextmanager
    def _between(self, step: str) -> Iterator[tuple[Path | None, Mapping[str, Table]]]:
        """Yield how files between processes begin, and all tables as files; they are gone afterwards."""
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


def join_parts(parts: Iterable[ChunkOutput], name: str, schema: TableSchema, rested: Rested) -> pl.DataFrame:
    """Return one table from those of all chunks, with the rows that are taken over, by agent."""
    found = pl.concat([rested.rows(schema), *(part.table(name) for part in parts)])
    return found.sort("agent_id", maintain_order=True) if rested.agent_ids else found


def chunk_log(context: dg.AssetExecutionContext, engine: Engine) -> OnDone | None:
    """Return a callback that writes a line to the run log for each chunk that another process has done."""
    if engine.shares_memory:
        return None
    return lambda done, total: context.log.info("%d of %d chunks of agents", done, total)


def read_whole(files: NightFiles, name: str, columns: Sequence[str] | None) -> pl.DataFrame:
    """Read a table that other assets have made."""
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
    night_run.settle(night)
    taken = night_run.snapshot(night)
    night_run.files(night).leave_out_nobody()
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": sum(taken.counts.values()),
            **taken.counts,
            "folder": str(taken.folder),
            "taken_at": taken.taken_at.isoformat(),
            **as_metadata({"late": late_rows(taken.late)}),
        }
    )


# --- pairs ---

COMPARED: Reads = {"facts": READ, "undone": None}
ASKED: Reads = {
    "neighbours": None,
    "copies": None,
    "facts": tuple(dict.fromkeys((*STATEMENT_COLUMNS, *FOLLOWED))),
    "undone": None,
    "contradictions": None,
}
LOOK_S = 120.0  # for batches that have ended; what can't be fetched by then is fetched by the sensor


@night_asset(
    reads=COMPARED,
    makes=FOUND,
    is_reusable=True,
    kinds={"numpy", "parquet"},
    description=(
        "Pairs of facts worth a look: near each other, of one slot, or told by two users of one project. "
        f"`cut` facts have more than {MOST_CANDIDATES} others like them: they meet the nearest of those tonight, and "
        "the rest when these are merged."
    ),
)
def neighbours(context: dg.AssetExecutionContext, night_run: NightRun) -> dg.MaterializeResult:
    night = night_of(context)
    inputs, files = Inputs.of(night_run, night, COMPARED, finds_pairs=True), night_run.files(night)
    earlier, fresh_from = [] if night_run.is_full else earlier_compared(files), end_of(night) - FRESH_FOR

    parts = inputs.each(
        "neighbours",
        find_neighbours,
        earlier=earlier,
        fresh_from=fresh_from,
        on_done=chunk_log(context, inputs.engine),
    )
    pairs, copies = (join_parts(parts, schema.name, schema, inputs.rested) for schema in (FOUND, COPY))
    files.write_table("neighbours", pairs)
    files.write_table("copies", copies)
    write_compared(files, [Compared(part.table("compared_rows"), part.table("compared_pairs")) for part in parts])
    return dg.MaterializeResult(
        metadata={
            **row_count(pairs),
            "pairs": len(pairs),
            "facts": sum(len(part.table("copies")) for part in parts),
            "cut": sum(part.value for part in parts),
            "agents_at_rest": len(inputs.rested.agent_ids),
            "built_on": ", ".join(kept.folder.parent.name for kept in earlier[:1]),
        }
    )


@night_asset(
    reads=ASKED,
    makes=JUDGED,
    is_reusable=True,
    kinds={"postgres", "parquet"},
    description=(
        "Those pairs with a verdict each and the reason for it; what was judged in an earlier night is known. With a "
        "key for it, Claude decides where the offline judge may be wrong, and what it has not answered yet waits."
    ),
)
def judgements(context: dg.AssetExecutionContext, night_run: NightRun) -> dg.MaterializeResult:
    night = night_of(context)
    files, judge = night_run.files(night), night_run.judge
    collected, second = collect_verdicts(night, night_run), night_run.second_judge

    inputs = Inputs.of(night_run, night, ASKED)
    judges = Judges(
        judge,
        second=None if second is None else second.models,
        earlier=None if night_run.is_full else files,
        database=night_run.database_for(inputs.engine),
        on_progress=progress(context) if inputs.engine.shares_memory else None,
    )
    parts = inputs.each("judgements", judge_pairs, judges=judges, on_done=chunk_log(context, inputs.engine))
    table = join_parts(parts, "judgements", JUDGED, inputs.rested)
    account = sum((part.value[0] for part in parts), JudgementCounts())
    seconded = sum((part.value[1] for part in parts), SecondOpinionCounts())
    write_judged_by(files, judge, files.write_table("judgements", table))
    verdicts_found = dict(table.group_by("verdict").len().sort("verdict").iter_rows())
    told = {} if second is None else {**vars(seconded), "collected": collected.words}
    return dg.MaterializeResult(
        metadata={**row_count(table), "pairs": len(table), **vars(account), **told, **verdicts_found}
    )


def collect_verdicts(night: date, night_run: NightRun) -> Collected:
    """Look once for verdicts of Claude that are ready, and note what was in the way; a dry run leaves them there."""
    second, collected = SecondJudge.collector(settings()), Collected()
    if second is not None and not night_run.is_dry_run and unfinished(night_run.database):
        collected = second.look(night_run.database, night_run.home_folder, seconds=LOOK_S)
    night_run.files(night).write_json("collected", asdict(collected))
    return collected


def progress(context: dg.AssetExecutionContext) -> Progress:
    """Return a callback that writes a line to the run log for each batch of pairs."""
    return lambda done, total: context.log.info("judged %d of %d pairs", done, total)


# --- what Claude is asked ---

CHECK = "judge_batches_sent"
QUESTIONED: Reads = {"facts": STATEMENT_COLUMNS, "neighbours": None, "judgements": None}


@night_asset(
    reads=QUESTIONED,
    kinds={"postgres", "json"},
    description="The pairs that wait for Claude, how many requests they take and what those may cost. Nothing is sent.",
)
def judge_requests(context: dg.AssetExecutionContext, night_run: NightRun) -> dg.MaterializeResult:
    night, second = night_of(context), night_run.second_judge
    asking = PlannedQuestions()
    if second is not None:
        wanted = wanted_in(night, night_run, second)
        asking = planned_questions(night_run.database, wanted, night=night, models=second.models)
    night_run.files(night).write_json("judge_requests", asking.as_dict())
    return dg.MaterializeResult(metadata=as_metadata(asking.figures))


@night_asset(
    reads=QUESTIONED,
    deps=[judge_requests],
    kinds={"postgres"},
    check_specs=[
        dg.AssetCheckSpec(
            CHECK,
            asset="judge_batches",
            blocking=False,
            description="What Claude is to be asked was sent, and what it answered is believed.",
        )
    ],
    description="Those requests, sent as Message Batches at half the price; their verdicts count in a later night.",
)
def judge_batches(context: dg.AssetExecutionContext, night_run: NightRun) -> dg.MaterializeResult:
    night, second = night_of(context), night_run.second_judge
    found: list[str] = night_run.files(night).read_json("collected")["troubles"]
    if second is None:
        said = "nobody is asked: the offline judge decides alone"
        return dg.MaterializeResult(check_results=[sent_check(found, said)])
    sent = second.send(night_run.database, wanted_in(night, night_run, second), night=night)
    obstacles = list(dict.fromkeys([*sent.obstacles, *found]))
    return dg.MaterializeResult(
        metadata=as_metadata(sent.figures),
        check_results=[sent_check(obstacles, f"{sent.requests} requests were sent", *sent.warnings)],
    )


def sent_check(obstacles: list[str], said: str, *warnings: str) -> dg.AssetCheckResult:
    """Return the check: what stands in the way now, if anything, and what soon will; the night goes on regardless."""
    return dg.AssetCheckResult(
        check_name=CHECK,
        passed=not obstacles,
        severity=dg.AssetCheckSeverity.WARN,
        description="; ".join([*(obstacles or [said]), *warnings]),
    )


def wanted_in(night: date, night_run: NightRun, second: SecondJudge) -> Iterator[AgentQuestions]:
    """Yield what each agent's night wants to know of Claude."""
    for chunk, tables in Inputs.of(night_run, night, QUESTIONED):
        pairs, judged = tables["neighbours"], tables["judgements"]
        for agent_id, questions in open_questions(pairs, judged, tables["facts"], second.models).items():
            yield AgentQuestions(agent_id, questions, chunk.policy.max_cost_usd)


def episode_summaries(tables: Tables, *, policy: NightPolicy, night: date) -> pl.DataFrame:
    """Return shorter texts for the episodes of `due_episodes` that move and lack one: shape `SUMMARIES`.

    `tables`: episodes, uses, undone. They are lifted from the detail, or from the summary where that is all there is,
    by their words alone: the same wherever the night runs. A text that was told stays in front of what is made here.
    """
    due = due_episodes(tables, policy=policy, night=night)
    rows = lacking(due).select(*KEY, *LEVELS, "detail", "participants").to_dicts()
    return pl.DataFrame([{**{key: row[key] for key in KEY}, **shortened(row)} for row in rows], schema=SUMMARIES)


def shortened(row: Mapping[str, Any]) -> dict[str, str | None]:
    """Return the levels of one episode, None for what can't be drawn from anything it has."""
    text: str = row["detail"] or row["summary"] or row["compressed"] or ""
    if not text.strip():
        return {"index_word": index_word(row["title"]) if row["title"] else None}
    levels = levels_by_words(EndedEpisode(text, title=row["title"], participants=row["participants"] or ()))
    return {name: row[name] or getattr(levels, name) or None for name in LEVELS}


EPISODE_SUMMARIES = NightTable(
    SUMMARIES,
    "Title, summary, line and index word for episodes that are due for a tier and lack what it keeps.",
    {"episodes": COLUMNS, "uses": None, "undone": None},
    episode_summaries,
    {"written": pl.len(), "titles": pl.col("title").count()},
)


def table_asset(table: NightTable) -> dg.AssetsDefinition:
    """Return the asset that makes a table, for all agents."""

    @night_asset(
        name=table.name,
        reads=table.reads,
        makes=table.schema,
        is_reusable=True,
        kinds={"polars", "parquet"},
        description=table.description,
    )
    def made(context: dg.AssetExecutionContext, night_run: NightRun) -> dg.MaterializeResult:
        night = night_of(context)
        inputs = Inputs.of(night_run, night, table.reads)
        parts = inputs.each(table.name, make_table, name=table.name, make=table.make, night=night)
        whole = join_parts(parts, table.name, table.schema, inputs.rested)
        night_run.files(night).write_table(table.name, whole)
        return dg.MaterializeResult(metadata={**row_count(whole), **whole.select(**table.figures).row(0, named=True)})

    return made


def phase_asset(phase: NightPhase) -> dg.AssetsDefinition:
    """Return the asset that keeps what a phase proposes for all agents, with its account as metadata."""

    @night_asset(
        name=phase.name,
        reads=phase.reads,
        is_reusable=True,
        kinds={"polars", "json"},
        description=phase.description,
    )
    def proposals(context: dg.AssetExecutionContext, night_run: NightRun) -> dg.MaterializeResult:
        night = night_of(context)
        inputs = Inputs.of(night_run, night, phase.reads)
        parts = phase_parts(phase, inputs, night)
        whole = combine_phases(phase.name, [inputs.rested.phase(phase.name), *(part.value for part in parts)])
        night_run.files(night).write_phase(whole)
        return dg.MaterializeResult(metadata={**row_count(whole.proposals), **as_metadata(whole.metadata())})

    return proposals


def phase_parts(phase: NightPhase, inputs: Inputs, night: date) -> list[ChunkOutput]:
    """Return what a phase finds in each chunk, told what it has to know of all of them."""
    gather = phase.gather
    if gather is None:
        return inputs.each(phase.name, find_proposals, find=phase.find, night=night)
    if len(inputs.chunks) == 1:
        parts = inputs.each(phase.name, find_proposals, find=phase.find, night=night)
        if len(parts) == 1:
            return parts  # otherwise it failed for an agent, and each half took itself for all of them
    gathered = inputs.each(phase.name, make_table, name="gathered", make=gather, night=night)
    whole = pl.concat([part.table("gathered") for part in gathered])
    return inputs.beside("gathered", whole).each(phase.name, find_proposals, find=phase.find, night=night)


TABLE_ASSETS = [table_asset(table) for table in (*NIGHT_TABLES, EPISODE_SUMMARIES)]
PHASE_ASSETS = [phase_asset(phase) for phase in PHASES]
