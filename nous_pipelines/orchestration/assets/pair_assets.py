"""Which facts are looked at together, and what each pair of them is: snapshot → neighbours → judgements."""

from dataclasses import asdict
from datetime import date

import dagster as dg
import polars as pl

from nous_online.core.settings import settings
from nous_pipelines.batches.batch_rows import unfinished
from nous_pipelines.batches.collecting import Collected
from nous_pipelines.batches.second_judge import SecondJudge
from nous_pipelines.batches.second_opinions import Seconded, second_opinions, too_long_among
from nous_pipelines.batches.verdict_cache import JudgementCounts, Progress, verdicts_on
from nous_pipelines.nights import end_of
from nous_pipelines.orchestration.assets.night_assets import Inputs, night_asset, night_of, row_count
from nous_pipelines.orchestration.previous_nights import (
    compared_in,
    earlier_compared,
    earlier_verdicts,
    write_compared,
    write_judged_by,
)
from nous_pipelines.orchestration.resources import NightRun
from nous_pipelines.orchestration.resting import FRESH_FOR
from nous_pipelines.phases.asking import TOLD, judged, ruled, to_ask, with_hashes
from nous_pipelines.phases.merging import JUDGED
from nous_pipelines.phases.neighbours import COPY, FOUND, MOST_CANDIDATES, READ, Neighbours, neighbours_of
from nous_pipelines.phases.phase import Tables
from nous_pipelines.phases.phase_table import Reads
from nous_pipelines.phases.successors import FOLLOWED, carried
from nous_pipelines.snapshots.chunks import Chunk

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
    inputs, files = Inputs.of(night_run, night, COMPARED, finds_pairs=True), night_run.files(night)
    earlier, fresh_from = [] if night_run.is_full else earlier_compared(files), end_of(night) - FRESH_FOR

    def compared(chunk: Chunk, tables: Tables) -> Neighbours:
        known, undone = compared_in(earlier, chunk.agent_ids), tables["undone"]
        return neighbours_of(tables["facts"], policy=chunk.policy, undone=undone, earlier=known, fresh_from=fresh_from)

    parts = inputs.each("neighbours", compared)
    pairs = inputs.united(FOUND, (part.pairs for part in parts))
    files.write_table("neighbours", pairs)
    files.write_table("copies", inputs.united(COPY, (part.copies for part in parts)))
    write_compared(files, [part.compared for part in parts])
    return dg.MaterializeResult(
        metadata={
            **row_count(pairs),
            "pairs": len(pairs),
            "facts": sum(len(part.copies) for part in parts),
            "cut": sum(part.cut for part in parts),
            "agents_at_rest": len(inputs.rested.agent_ids),
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

    def judged_of(chunk: Chunk, tables: Tables) -> tuple[pl.DataFrame, JudgementCounts, Seconded]:
        facts = tables["facts"].select(TOLD)
        found = with_hashes(tables["neighbours"], facts)
        undone, contradictions = carried(
            tables["undone"], tables["contradictions"], facts=tables["facts"], copies=tables["copies"]
        )
        rules = ruled(found, undone=undone, contradictions=contradictions)
        known = None if night_run.is_full else earlier_verdicts(files, judge, chunk.agent_ids)
        asked = to_ask(found, rules)
        verdicts, part = verdicts_on(
            night_run.database, judge, asked, facts, earlier=known, on_progress=progress(context)
        )
        by_second = Seconded()
        if second is not None:
            too_long = too_long_among(asked, facts)
            verdicts, by_second = second_opinions(night_run.database, verdicts, second.models, too_long=too_long)
        return judged(found, rules, verdicts), part, by_second

    inputs = Inputs.of(night_run, night, ASKED)
    parts = inputs.each("judgements", judged_of)
    table = inputs.united(JUDGED, (pairs for pairs, _, _ in parts))
    account = sum((counts for _, counts, _ in parts), JudgementCounts())
    seconded = sum((counts for _, _, counts in parts), Seconded())
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
