"""Runs one night or several in this process: the same job as Dagster's schedule runs, in the same Dagster instance."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import closing, nullcontext, suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import filelock
import psycopg

from nous_online.core.errors import Conflict, DeadlineExceeded, InvalidInput, NotFound, NousError, Unavailable
from nous_online.core.settings import settings
from nous_online.database import postgres
from nous_online.database.connection import Database, act_as, connect, open_url
from nous_online.database.statements import statements
from nous_online.processes import ProcessStop
from nous_pipelines.night_policy import NightPolicy
from nous_pipelines.nights import FIRST_NIGHT, last_night
from nous_pipelines.phases.proposals import canonical_json
from nous_pipelines.plan.apply import find_agents
from nous_pipelines.plan.night_files import NightFiles, known_value
from nous_pipelines.reports.report import SHOWN, AgentLeftOut, NightReport
from nous_pipelines.reports.reporting import night_report
from nous_pipelines.snapshots.snapshot import night_folder, open_snapshot

# Dagster is imported where it is used: `nous report` and `nous diff` read files and start sooner without it.
if TYPE_CHECKING:
    from dagster import DagsterInstance, ExecuteInProcessResult, SerializableErrorInfo

    from nous_pipelines.orchestration.resources import NightRun

SQL = statements("nous_pipelines.orchestration", "running.sql")
QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
"""Run config that keeps Dagster's log out of the terminal; the interface shows the log of the run."""
LOST = {Unavailable.__name__, DeadlineExceeded.__name__}
"""The errors of a step that stand for a database which was not reached, or did not answer in time."""


@dataclass(frozen=True)
class NightOptions:
    """The options of a run: its agents, database and home, and the policy fields to override."""

    database_url: str
    home: Path
    agent_ids: Sequence[str] = ()
    policy: Mapping[str, float] = field(default_factory=dict)
    is_dry_run: bool = False
    is_full: bool = False
    """Whether to compare, judge and count everything again, and use nothing that earlier nights kept."""

    def night_run(self) -> NightRun:
        """Return the resource of the run."""
        from nous_pipelines.orchestration.resources import CommandedNight

        # An object rather than run config: Dagster records that, and the URL holds a password.
        return CommandedNight(
            changes_nothing=self.is_dry_run,
            is_full=self.is_full,
            agent_ids=list(self.agent_ids),
            policy=dict(self.policy),
            home=str(self.home),
            database_url=self.database_url,
        )

    def tags(self) -> dict[str, str]:
        """Return the tags of the run in Dagster."""
        return {"nous/agents": ", ".join(self.agent_ids) or "all", "nous/policy": canonical_json(dict(self.policy))}


@dataclass(frozen=True)
class NightOutcome:
    """The outcome of a run: its report, and why it stopped if it did."""

    night: date
    run_id: str
    is_success: bool
    """Whether the night was applied for every agent."""
    report: NightReport | None
    failures: tuple[str, ...]
    asking: str = ""
    """A sentence on what the night asks Claude about; empty if it asks nothing."""
    is_stopped: bool = False
    """Whether a step or a check failed for all agents."""
    is_lost: bool = False
    """Whether it stopped because the database could not be reached, so that another run may succeed."""
    is_dry_run: bool = False

    @property
    def was_applied(self) -> bool:
        """Whether it is the dry run of a night that was applied before, so that what it did would not be done again."""
        return self.is_dry_run and self.report is not None and self.report.has_run

    @property
    def counts(self) -> Mapping[str, int] | None:
        """The counts of the report; of the dry run of a night that was applied, what is left to be done."""
        if self.report is None:
            return None
        return {**self.report.counts, **(self.report.to_do if self.was_applied else {})}

    @property
    def left_out(self) -> tuple[AgentLeftOut, ...]:
        """The agents left out."""
        return self.report.left_out if self.report else ()


def run_night(
    night: date, options: NightOptions, *, instance: DagsterInstance | None, tell: Callable[[str], None] | None = None
) -> NightOutcome:
    """Run one night and return its outcome; `tell` is called with the name of each step that succeeds.

    A dry run needs no instance and is recorded in none, so it materialises no partition. A night that was carried
    through over the same rows is not run again. A night whose checks fail has changed nothing; `failures` names the
    check and the reason. Raises, before anything runs, `Conflict` when another process runs this night, `InvalidInput`
    for a night that has not begun or an invalid policy, `NotFound` for an unknown agent, and `Unavailable` when the
    home can't be written to.
    """
    with night_database(options) as database:
        check_options(night, options, database)
        # From here on, since they load Dagster: what is refused is refused at once.
        from dagster import success_hook

        from nous_pipelines.orchestration.code_location import defs, trials
        from nous_pipelines.orchestration.dagster_classes import process_tag, unrecorded
        from nous_pipelines.orchestration.earlier_nights import write_finished

        folder = night_folder(options.home / "snapshots", database, night)
        job = trials.resolve_job_def("trial") if options.is_dry_run else defs.resolve_job_def("nightly")
        if tell is not None:
            hook = success_hook(name="tell")(lambda context: tell(context.step_key))
            job = job.with_hooks({hook})
        try:
            folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with (
                filelock.FileLock(folder.with_name(f".{folder.name}.lock"), timeout=0),
                unrecorded() if options.is_dry_run else nullcontext(instance) as used_instance,
            ):
                if finished := outcome_of_finished(night, options, database, folder):
                    return finished
                result = job.execute_in_process(
                    partition_key=night.isoformat(),
                    run_config=QUIET,
                    resources={"night_run": options.night_run()},
                    tags={**options.tags(), **process_tag()},
                    instance=used_instance,
                    raise_on_error=False,
                )
                if result.success and not options.is_dry_run:
                    write_finished(NightFiles(folder), result.run_id)
        except filelock.Timeout as error:
            raise Conflict(f"night {night} is being run by another process; wait for it to end") from error
        except OSError as error:
            raise Unavailable(f"{folder.parent} can't be written to ({error}); see NOUS_HOME") from error
        return outcome_of(night, result, options, database, folder)


def check_options(night: date, options: NightOptions, database: Database) -> None:
    """Raise `InvalidInput` or `NotFound` for an invalid night, policy or agent, before the run is recorded."""
    today = datetime.now(UTC).date()
    if not FIRST_NIGHT <= night <= today:
        raise InvalidInput(f"night {night} can't be run: the first one is {FIRST_NIGHT}, the latest {today}")
    NightPolicy().overridden(options.policy)
    find_agents(database, options.agent_ids)


def outcome_of_finished(night: date, options: NightOptions, database: Database, folder: Path) -> NightOutcome | None:
    """Return the outcome of a night that was carried through over the same rows, None for one that has to be run."""
    from nous_pipelines.orchestration.earlier_nights import FINISHED
    from nous_pipelines.orchestration.quiet_nights import record_figures

    if not NightFiles(folder).has(FINISHED):
        return None
    looked_at = datetime.now(UTC)
    with suppress(NousError), options.night_run().opened() as night_run:  # else the run meets the error, and says so
        run_id = night_run.finished_run(night)
        if run_id is not None:
            record_figures(night_run, night, [night], looked_at=looked_at)
            report, asking = stored_report(database, night, options), planned_questions_in_words(folder, options)
            return NightOutcome(
                night, run_id, is_success=True, report=report, failures=(), asking=asking, is_dry_run=options.is_dry_run
            )
    return None


def outcome_of(
    night: date, result: ExecuteInProcessResult, options: NightOptions, database: Database, folder: Path
) -> NightOutcome:
    """Return the outcome of a run that has ended."""
    from nous_pipelines.orchestration.planning_assets import PAGE

    checks, steps = failed_checks(result), failed_steps(result)
    made = known_value(folder / PAGE) if result.success and not options.is_dry_run else None
    report = made if isinstance(made, NightReport) else None
    if report is None and (result.success or checks):
        report = stored_report(database, night, options)
    errors = [event.step_failure_data.error for event in result.all_events if event.is_step_failure]
    return NightOutcome(
        night,
        result.run_id,
        is_success=result.success and not (report and report.left_out),
        report=report,
        failures=(*checks, *steps),
        asking=planned_questions_in_words(folder, options),
        is_stopped=not result.success,
        is_lost=any(each.cls_name in LOST for error in errors for each in error_chain(error)),
        is_dry_run=options.is_dry_run,
    )


def planned_questions_in_words(folder: Path, options: NightOptions) -> str:
    """Return a sentence on what a run asks Claude about; an empty one if the run ended before it was known."""
    from nous_pipelines.batches.second_judge import PLANNED_QUESTIONS, in_words

    files = NightFiles(folder, is_dry_run=options.is_dry_run)
    if not files.has("judge_requests"):
        return ""
    planned = PLANNED_QUESTIONS.validate_python(files.read_json("judge_requests"))
    return in_words(planned.figures, is_dry_run=options.is_dry_run)


def failed_checks(result: ExecuteInProcessResult) -> list[str]:
    """Return a sentence for each check that failed."""
    return [
        f"check {evaluation.check_name}: {evaluation.description}"
        for evaluation in result.get_asset_check_evaluations()
        if not evaluation.passed
    ]


def error_chain(error: SerializableErrorInfo | None) -> Iterator[SerializableErrorInfo]:
    """Yield an error and its causes."""
    while error is not None:
        yield error
        error = error.cause


def failed_steps(result: ExecuteInProcessResult) -> list[str]:
    """Return a sentence for each distinct failure of a step, with the name of the first step that failed so.

    It is the message of our own error in the chain, which says what to do, or else that of the root cause.
    """
    sentences: dict[str, str] = {}
    for event in result.all_events:
        error = event.step_failure_data.error if event.is_step_failure else None
        messages = [each.message.strip() for each in error_chain(error)]
        # `failed_checks` names the checks.
        if messages and "DagsterAssetCheckFailedError" not in messages[-1]:
            ours = [message.partition(": ")[2] for message in messages if message.startswith(NousError.__module__)]
            why = [*ours, messages[-1]][0]
            sentences.setdefault(why, f"{event.step_key}: {why}")
    return list(sentences.values())


def night_database(options: NightOptions) -> closing[Database]:
    """Return the database of a run, opened as the role of nights for a block."""
    return closing(Database(options.database_url, role="nous_night", max_connections=2))


def folder_of(night: date, options: NightOptions) -> Path:
    """Return the folder of a night."""
    with night_database(options) as database:
        return night_folder(options.home / "snapshots", database, night)


def read_report(night: date, options: NightOptions, *, shown: int | None = SHOWN) -> NightReport:
    """Return the report of a night on the agents of the options, with `shown` entries of each kind or, for None, all.

    Raises `NotFound` for an unknown agent, and when the night did not run here.
    """
    with night_database(options) as database:
        find_agents(database, options.agent_ids)
        return stored_report(database, night, options, shown=shown)


def stored_report(database: Database, night: date, options: NightOptions, *, shown: int | None = SHOWN) -> NightReport:
    """Return the report as `read_report` does, over an open database."""
    folder = night_folder(options.home / "snapshots", database, night)
    snapshot, files = open_snapshot(folder), NightFiles(folder, is_dry_run=options.is_dry_run)
    if not files.has("plan"):  # the night was only tried
        files = NightFiles(folder, is_dry_run=True)
    if snapshot is None or not files.has("plan"):
        raise NotFound(why_not_run(database, night))
    return night_report(database, snapshot, files, agent_ids=options.agent_ids, shown=shown)


def why_not_run(database: Database, night: date) -> str:
    """Return why a night has no report: it had nothing to do, ran elsewhere, or has not run."""
    with database.transaction() as connection:
        found = connection.execute(SQL["night_record"], {"night": night}).fetchone()
    is_applied, is_measured, before = found or (False, False, None)
    if is_applied or (is_measured and before is None):
        return (
            f"night {night} ran before these memories were brought here, or its files are gone: it has no report, but "
            f"what it changed is in the history of each memory; take it back: nous undo --night {night}"
        )
    if not is_measured:
        return f"night {night} has not run here; run it with: nous night --date {night}"
    return (
        f"night {night} was quiet: nothing was new and nothing became due, so it was not run, and the store stood as "
        f"after night {before}; see: nous report --night {before}"
    )


# --- nights in a row ---

WAITS_S = (2.0, 10.0, 30.0, 60.0, 120.0)
"""How long to wait for a lost database before each new attempt: long enough for a restart, or a network's return."""
POLL_S = 0.2
READ_TIMEOUT_S = 120.0
CONNECT_S = 60.0
COMPLETION_S, EPISODES_AT_ONCE = 60.0, 200
"""Limits of one round of completing episodes; rounds go on until no episode is due."""
MINUTE_S, HOUR_S = 60, 3600


def run_nights(
    nights: Sequence[date],
    run: Callable[[date], NightOutcome],
    *,
    stop: ProcessStop,
    tell: Callable[[str], None],
    waits_s: Sequence[float] = WAITS_S,
    find_quiet: Callable[[date, Sequence[date]], Sequence[date]] = lambda _, __: (),
) -> Iterator[NightOutcome]:
    """Run nights in order and yield their outcomes, up to the first that is stopped, or until `stop` is asked.

    The night under way ends first. One that loses the database is run again after each of `waits_s`. `tell` is called
    with messages for the person who waits. After each night `find_quiet` is asked, with the nights that are left, which
    of the next have nothing to do: these are not run. Raises what `run` and `find_quiet` raise.
    """

    def attempt(night: date) -> NightOutcome:
        return run_in_thread(lambda: run(night), stop=stop, tell=tell)

    left = list(nights)
    while left and not stop.is_asked():
        night = left.pop(0)
        outcome = run_with_retries(night, attempt, waits_s=waits_s, stop=stop, tell=tell)
        if outcome is None:
            return
        yield outcome
        if outcome.is_stopped:
            return
        left = left[len(find_quiet(night, left)) :]


def run_with_retries(
    night: date,
    attempt: Callable[[date], NightOutcome],
    *,
    waits_s: Sequence[float],
    stop: ProcessStop,
    tell: Callable[[str], None],
) -> NightOutcome | None:
    """Run one night, again after each wait while it loses the database, and return the outcome of the last attempt.

    None if `stop` is asked during a wait.
    """
    for wait_s in waits_s:
        try:
            outcome = attempt(night)
            if not outcome.is_lost:
                return outcome
            why = outcome.failures[0]
        except Unavailable as error:
            if isinstance(error.__cause__, OSError):  # of a file: no wait mends that
                raise
            why = str(error)
        tell(f"night {night} lost the database ({why}); it is tried again in {wait_s:g} s")
        stop.rest(wait_s)
        if stop.is_asked():
            return None
    return attempt(night)


def run_in_thread(work: Callable[[], NightOutcome], *, stop: ProcessStop, tell: Callable[[str], None]) -> NightOutcome:
    """Return the result of `work`, run in a thread; tell once that a request to stop was noticed."""
    # Python raises KeyboardInterrupt in the main thread alone, so a signal does not break the night off.
    result = Future[NightOutcome]()

    def attempt() -> None:
        try:
            result.set_result(work())
        except BaseException as error:
            result.set_exception(error)

    threading.Thread(target=attempt, name="night", daemon=True).start()
    is_told = stop.is_asked()
    while not wait([result], POLL_S).done:
        if stop.is_asked() and not is_told:
            is_told = True
            tell("ending when this night is whole; once more ends at once, and the next run finishes it")
    return result.result()


def time_left(done: int, total: int, *, seconds: float) -> str:
    """Return the progress of a range and the time the rest takes at the same pace, in words."""
    left_s = seconds / done * (total - done)
    if left_s < MINUTE_S:
        rest = f"{left_s:.0f} s"
    elif left_s < HOUR_S:
        rest = f"{left_s / MINUTE_S:.0f} min"
    else:
        rest = f"{left_s / HOUR_S:.1f} h"
    return f"{done} of {total} nights, about {rest} left"


def nights_to_run(options: NightOptions, *, now: datetime) -> list[date]:
    """Return the nights that are over and were not run yet for some agent of the options, in order.

    The nights of an agent begin with the day of its first memory. Raises `NotFound` for an unknown agent.
    """
    parameters = {"agent_ids": list(options.agent_ids), "first_night": FIRST_NIGHT, "last_night": last_night(now)}
    with night_database(options) as database:
        find_agents(database, options.agent_ids)
        with database.transaction(timeout_s=READ_TIMEOUT_S) as connection:
            return [row[0] for row in connection.execute(SQL["nights_to_run"], parameters)]


def first_night(now: datetime) -> date:
    """Return the night of the first memory of any agent, at most the last night that is over.

    `FIRST_NIGHT`, which hides no night, when no server answers; none is started.
    """
    if settings().database_url is None and postgres.running(settings().home) is None:
        return FIRST_NIGHT
    try:
        with connect(open_url(), role="nous_night", seconds=CONNECT_S) as connection, connection.transaction():
            act_as(connection, "nous_night")
            found = connection.execute(SQL["first_memory"]).fetchone()
    except (Unavailable, psycopg.OperationalError):
        return FIRST_NIGHT
    except psycopg.Error:  # no schema yet, and so no memory
        found = None
    first = found[0] if found else None
    return max(FIRST_NIGHT, min(first or last_night(now), last_night(now)))


def complete_episodes(options: NightOptions) -> int:
    """Complete the closed episodes that are due, oldest first, and return how many; the worker retries failed ones."""
    from nous_online.queue.worker import open_staff

    completed = 0
    with open_staff(options.database_url) as workers:
        for agent_id in options.agent_ids or (None,):
            while found := workers.look(seconds=COMPLETION_S, limit=EPISODES_AT_ONCE, only=agent_id).completed:
                completed += found
    return completed
