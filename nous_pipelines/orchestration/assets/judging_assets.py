"""What the night asks Claude about, and what that may cost: judgements → judge_requests → judge_batches."""

from collections.abc import Iterator
from datetime import date

import dagster as dg

from nous_pipelines.batches.second_judge import SecondJudge
from nous_pipelines.batches.second_opinions import open_questions
from nous_pipelines.batches.sending import AgentQuestions, PlannedQuestions, asking_of
from nous_pipelines.orchestration.assets.night_assets import Inputs, night_asset, night_of
from nous_pipelines.orchestration.resources import NightRun, as_metadata
from nous_pipelines.phases.asking import TOLD
from nous_pipelines.phases.phase_table import Reads

CHECK = "judge_batches_sent"
QUESTIONED: Reads = {"facts": TOLD, "neighbours": None, "judgements": None}


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
        asking = asking_of(night_run.database, wanted, night=night, models=second.models)
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
