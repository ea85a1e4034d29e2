"""Which facts are looked at together, and what each pair of them is: snapshot → neighbours → judgements."""

from dataclasses import asdict
from datetime import date, timedelta

import dagster as dg

from nous_online.core.settings import settings
from nous_pipelines.batches.batch_rows import unfinished
from nous_pipelines.batches.collecting import Collected
from nous_pipelines.batches.second_judge import SecondJudge
from nous_pipelines.batches.second_opinions import Seconded
from nous_pipelines.batches.verdict_cache import JudgementCounts, Progress
from nous_pipelines.nights import end_of
from nous_pipelines.orchestration.assets.night_assets import (
    Inputs,
    chunk_log,
    join_parts,
    night_asset,
    night_of,
    row_count,
)
from nous_pipelines.orchestration.chunk_work import Judges, find_neighbours, judge_pairs
from nous_pipelines.orchestration.previous_nights import (
    earlier_compared,
    write_compared,
    write_judged_by,
)
from nous_pipelines.orchestration.resources import NightRun
from nous_pipelines.phases.asking import TOLD
from nous_pipelines.phases.compared import Compared
from nous_pipelines.phases.merging import JUDGED
from nous_pipelines.phases.neighbours import COPY, FOUND, MOST_CANDIDATES, READ
from nous_pipelines.phases.phase_table import Reads
from nous_pipelines.phases.rulings import FOLLOWED

FRESH_FOR = timedelta(days=2)  # a day before the night, and one in case a night was late
COMPARED: Reads = {"facts": READ, "undone": None}
ASKED: Reads = {
    "neighbours": None,
    "copies": None,
    "facts": tuple(dict.fromkeys((*TOLD, *FOLLOWED))),
    "undone": None,
    "contradictions": None,
}
LOOK_S = 120.0  # for batches that have ended; what can't be fetched by then is fetched by the sensor


@night_asset(
    reads=COMPARED,
    makes=FOUND,
    kinds={"numpy", "parquet"},
    description=(
        "Pairs of facts worth a look: near each other, of one slot, or told by two users of one project. "
        f"`cut` facts have more than {MOST_CANDIDATES} others like them: they meet the nearest of those tonight, and "
        "the rest when these are merged."
    ),
)
def neighbours(context: dg.AssetExecutionContext, night_run: NightRun) -> dg.MaterializeResult:
    night = night_of(context)
    inputs, files = Inputs.of(night_run, night, COMPARED), night_run.files(night)
    earlier, fresh_from = [] if night_run.is_full else earlier_compared(files), end_of(night) - FRESH_FOR

    parts = inputs.each(
        "neighbours",
        find_neighbours,
        earlier=earlier,
        fresh_from=fresh_from,
        on_done=chunk_log(context, inputs.engine),
    )
    pairs, copies = join_parts(parts, "neighbours", FOUND), join_parts(parts, "copies", COPY)
    files.write_table("neighbours", pairs)
    files.write_table("copies", copies)
    write_compared(files, [Compared(part.table("compared_rows"), part.table("compared_pairs")) for part in parts])
    return dg.MaterializeResult(
        metadata={
            **row_count(pairs),
            "pairs": len(pairs),
            "facts": len(copies),
            "cut": sum(part.value for part in parts),
            "built_on": ", ".join(kept.folder.parent.name for kept in earlier[:1]),
        }
    )


@night_asset(
    reads=ASKED,
    makes=JUDGED,
    kinds={"postgres", "parquet"},
    description=(
        "Those pairs with a verdict each and the reason for it; what was judged in an earlier night is known. With a "
        "key for it, Claude decides where the offline judge may be wrong, and what it has not answered yet waits."
    ),
)
def judgements(context: dg.AssetExecutionContext, night_run: NightRun) -> dg.MaterializeResult:
    night = night_of(context)
    files, judge = night_run.files(night), night_run.judge
    collected, second = brought_home(night, night_run), night_run.second_judge

    inputs = Inputs.of(night_run, night, ASKED)
    judges = Judges(
        judge,
        second=None if second is None else second.models,
        earlier=None if night_run.is_full else files,
        database=night_run.database_for(inputs.engine),
        on_progress=progress(context) if inputs.engine.shares_memory else None,
    )
    parts = inputs.each("judgements", judge_pairs, judges=judges, on_done=chunk_log(context, inputs.engine))
    table = join_parts(parts, "judgements", JUDGED)
    account = sum((part.value[0] for part in parts), JudgementCounts())
    seconded = sum((part.value[1] for part in parts), Seconded())
    write_judged_by(files, judge, files.write_table("judgements", table))
    verdicts_found = dict(table.group_by("verdict").len().sort("verdict").iter_rows())
    told = {} if second is None else {**vars(seconded), "collected": collected.words}
    return dg.MaterializeResult(
        metadata={**row_count(table), "pairs": len(table), **vars(account), **told, **verdicts_found}
    )


def brought_home(night: date, night_run: NightRun) -> Collected:
    """Look once for verdicts of Claude that are ready, and note what was in the way; a dry run leaves them there."""
    second, collected = SecondJudge.collector(settings()), Collected()
    if second is not None and not night_run.is_dry_run and unfinished(night_run.database):
        collected = second.look(night_run.database, night_run.home_folder, seconds=LOOK_S)
    night_run.files(night).write_json("collected", asdict(collected))
    return collected


def progress(context: dg.AssetExecutionContext) -> Progress:
    """Return a callback that writes a line to the run log for each batch of pairs."""
    return lambda done, total: context.log.info("judged %d of %d pairs", done, total)
