"""Runs nights without a UI: the same job, in this process, recorded in the same Dagster instance."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import filelock

from nous_online.core.errors import Conflict, DeadlineExceeded, InvalidInput, NotFound, NousError, Unavailable
from nous_online.database.connection import Database
from nous_pipelines.night_policy import NightPolicy
from nous_pipelines.nights import FIRST_NIGHT
from nous_pipelines.phases.proposals import canonical_json
from nous_pipelines.plan.apply import find_agents
from nous_pipelines.plan.night_files import NightFiles
from nous_pipelines.reports.report import SHOWN, AgentLeftOut, NightReport
from nous_pipelines.reports.reporting import night_report
from nous_pipelines.snapshots.snapshot import night_folder, open_snapshot

if TYPE_CHECKING:
    from dagster import DagsterInstance, ExecuteInProcessResult, HookDefinition, SerializableErrorInfo

    from nous_pipelines.orchestration.resources import NightRun

QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
"""Keeps the terminal for the outcome; the run's own log, in the interface, keeps it all."""

LOST = {Unavailable.__name__, DeadlineExceeded.__name__}
"""The errors of a step that say nothing about its work: the database could not be reached, or not in time."""


@dataclass(frozen=True)
class NightOptions:
    """What a run may be told: for whom, where, and which opinions to change."""

    database_url: str
    home: Path
    agent_ids: Sequence[str] = ()
    policy: Mapping[str, float] = field(default_factory=dict)
    is_dry_run: bool = False
    is_full: bool = False
    """Whether nothing is used that earlier nights kept: all is compared, judged and counted again."""

    def night_run(self) -> NightRun:
        """Return the resource of the run: an object, since run config is recorded and the URL holds a password."""
        from nous_pipelines.orchestration.resources import CommandedNight

        return CommandedNight(
            changes_nothing=self.is_dry_run,
            is_full=self.is_full,
            agent_ids=list(self.agent_ids),
            policy=dict(self.policy),
            home=str(self.home),
            database_url=self.database_url,
        )

    def tags(self) -> dict[str, str]:
        """Return what the run is recorded with."""
        return {"nous/agents": ", ".join(self.agent_ids) or "all", "nous/policy": canonical_json(dict(self.policy))}


@dataclass(frozen=True)
class NightOutcome:
    """How a run ended: its report, and what stopped it if something did."""

    night: date
    run_id: str
    is_success: bool
    """Whether it was applied, for every agent."""
    report: NightReport | None
    failures: tuple[str, ...]
    asking: str = ""
    """What the night asks Claude about, in a sentence; nothing when it asks nothing."""
    is_stopped: bool = False
    """Whether a step or a check failed for all of them."""
    is_lost: bool = False
    """Whether it was stopped because the database could not be reached: running it again may end otherwise."""

    @property
    def left_out(self) -> tuple[AgentLeftOut, ...]:
        """Whom it left out."""
        return self.report.left_out if self.report else ()


def run_night(
    night: date, options: NightOptions, *, instance: DagsterInstance, tell: Callable[[str], None] | None = None
) -> NightOutcome:
    """Run one night and return its outcome, telling the name of each step that ends.

    A dry run is not recorded in the instance: its partition is no more materialised than before.
    Raises `Conflict` when it is being run already, `InvalidInput` for a night that has not begun or a policy that
    makes no sense, `NotFound` for an agent nobody knows, and `Unavailable` when the home can't be written to; nothing
    was run then.
    A night whose checks fail has changed nothing, and says in `failures` which check and why.
    """
    from nous_pipelines.orchestration.definitions import defs, trials
    from nous_pipelines.orchestration.run_launcher import process_tag
    from nous_pipelines.orchestration.unrecorded import unrecorded

    with opened(options) as database:
        check(night, options, database)
        folder = night_folder(options.home / "snapshots", database, night)
        job = trials.resolve_job_def("trial") if options.is_dry_run else defs.resolve_job_def("nightly")
        if tell is not None:
            job = job.with_hooks({telling(tell)})
        try:
            folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with (
                filelock.FileLock(folder.with_name(f".{folder.name}.lock"), timeout=0),
                unrecorded() if options.is_dry_run else nullcontext(instance) as recording,
            ):
                result = job.execute_in_process(
                    partition_key=night.isoformat(),
                    run_config=QUIET,
                    resources={"night_run": options.night_run()},
                    tags={**options.tags(), **process_tag()},
                    instance=recording,
                    raise_on_error=False,
                )
        except filelock.Timeout as error:
            raise Conflict(f"night {night} is being run by another process; wait for it to end") from error
        except OSError as error:
            raise Unavailable(f"{folder.parent} can't be written to ({error}); see NOUS_HOME") from error
        return outcome_of(night, result, options, database, folder)


def telling(tell: Callable[[str], None]) -> HookDefinition:
    """Return a hook that tells the name of every step that succeeded."""
    from dagster import HookContext, success_hook

    @success_hook(name="tell")
    def told(context: HookContext) -> None:
        tell(context.step_key)

    return told


def check(night: date, options: NightOptions, database: Database) -> None:
    """Raise `InvalidInput` or `NotFound` for a run that makes no sense, before it is recorded."""
    today = datetime.now(UTC).date()
    if not FIRST_NIGHT <= night <= today:
        raise InvalidInput(f"night {night} can't be run: the first one is {FIRST_NIGHT}, the latest {today}")
    NightPolicy().overridden(options.policy)
    find_agents(database, options.agent_ids)


def outcome_of(
    night: date, result: ExecuteInProcessResult, options: NightOptions, database: Database, folder: Path
) -> NightOutcome:
    """Read a finished run."""
    failures = (*failed_checks(result), *failed_steps(result))
    report = report_in(database, night, options) if result.success or failed_checks(result) else None
    is_success = result.success and not (report and report.left_out)
    asking, is_stopped = asking_in(folder, options), not result.success
    return NightOutcome(night, result.run_id, is_success, report, failures, asking, is_stopped, has_lost(result))


def asking_in(folder: Path, options: NightOptions) -> str:
    """Return what a run asks Claude about, in a sentence; nothing when it did not come so far."""
    from nous_pipelines.batches.second_judge import PLANNED_QUESTIONS, in_words

    files = NightFiles(folder, is_dry_run=options.is_dry_run)
    if not files.has("judge_requests"):
        return ""
    return in_words(
        PLANNED_QUESTIONS.validate_python(files.read_json("judge_requests")).figures, is_dry_run=options.is_dry_run
    )


def failed_checks(result: ExecuteInProcessResult) -> list[str]:
    """Return a sentence for each check that failed."""
    return [
        f"check {evaluation.check_name}: {evaluation.description}"
        for evaluation in result.get_asset_check_evaluations()
        if not evaluation.passed
    ]


def has_lost(result: ExecuteInProcessResult) -> bool:
    """Tell whether steps broke because the database could not be reached, or did not answer in time."""
    return any(
        LOST & {error.cls_name for error in chain(event.step_failure_data.error)}
        for event in result.all_events
        if event.is_step_failure
    )


def chain(error: SerializableErrorInfo | None) -> Iterator[SerializableErrorInfo]:
    """Yield an error and what caused it."""
    while error is not None:
        yield error
        error = error.cause


def failed_steps(result: ExecuteInProcessResult) -> list[str]:
    """Return a sentence for each way steps broke: our own, which says what to do, or else the first cause.

    Steps that broke in the same way, such as all that read a file that is damaged, are told of once, by the first.
    """
    sentences: dict[str, str] = {}
    for event in result.all_events:
        error = event.step_failure_data.error if event.is_step_failure else None
        said = [each.message.strip() for each in chain(error)]
        if said and "DagsterAssetCheckFailedError" not in said[-1]:
            ours = [message.partition(": ")[2] for message in said if message.startswith(NousError.__module__)]
            why = [*ours, said[-1]][0]
            sentences.setdefault(why, f"{event.step_key}: {why}")
    return list(sentences.values())


@contextmanager
def opened(options: NightOptions) -> Generator[Database]:
    """Open the database of a run as the night, for a moment."""
    database = Database(options.database_url, role="nous_night", max_connections=2)
    try:
        yield database
    finally:
        database.close()


def folder_of(night: date, options: NightOptions) -> Path:
    """Return the folder of a night."""
    with opened(options) as database:
        return night_folder(options.home / "snapshots", database, night)


def read_report(night: date, options: NightOptions, *, shown: int | None = SHOWN) -> NightReport:
    """Return the report of a night that ran, about the agents of the options, with `shown` entries of each kind.

    All entries for None. Raises `NotFound` when the night did not run here.
    """
    with opened(options) as database:
        return report_in(database, night, options, shown=shown)


def report_in(database: Database, night: date, options: NightOptions, *, shown: int | None = SHOWN) -> NightReport:
    """Read the report of a night as `read_report` does, from a database that is open."""
    folder = night_folder(options.home / "snapshots", database, night)
    snapshot, files = open_snapshot(folder), NightFiles(folder, is_dry_run=options.is_dry_run)
    if not files.has("plan"):
        files = NightFiles(folder, is_dry_run=True)
    if snapshot is None or not files.has("plan"):
        raise NotFound(f"night {night} has not run here; run it with: nous night --date {night}")
    return night_report(database, snapshot, files, agent_ids=options.agent_ids, shown=shown)
