"""The report of a night as Markdown, as Dagster's interface shows it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from nous_online.interfaces.cli.output import without_controls
from nous_pipelines.phases.phase_table import PROPOSAL_KINDS
from nous_pipelines.reports.costs import Cost, told_cost, told_usd
from nous_pipelines.reports.report import NightReport, ReportEntry, shown_similarity

SHOWN_REASONS = 5
TICKS = re.compile("`+")
ACTIVE = re.compile(r"[\\`*_{}\[\]<>!#|~&]|^[-+=]|^\d+(?=[.)])")
"""What Markdown takes for more than itself: within a line, or where a line begins."""


def plain(text: str) -> str:
    """Return a text of somebody else on one line of Markdown in which nothing acts: no heading, image, link or tag."""
    return ACTIVE.sub(escaped, without_controls(" ".join(text.split())))


def escaped(found: re.Match[str]) -> str:
    """Return what Markdown would act on, so that it reads as it stands; a number is parted from its full stop."""
    return f"{found[0]}\\" if found[0].isdecimal() else f"\\{found[0]}"


def markdown_of(report: NightReport) -> str:
    """Return the whole report; sections about nothing are left out."""
    counts = report.counts
    lines = [
        f"# Night {report.night}",
        f"{report.summary}. Plan `{report.plan_hash[:12]}`, {told_usd(report.cost_usd)}.",
        *urgent_lines(report),
        *(line for kind in report.kinds for line in kind_lines(report, kind)),
        *listed(
            f"## Went stale, refused, taken back or left out ({report.not_in_force_count})",
            (
                f"- **{entry.state}** {plain(entry.told[0])} — {plain(entry.outcome or entry.reason)}"
                for entry in report.not_in_force
            ),
        ),
        *listed(
            f"## Waiting for the next night ({counts['waiting']})",
            (f"- {each.title}: {plain(each.told[0])} — {plain(each.reason)}" for each in report.waiting),
        ),
        *listed(
            f"## Look alike, kept apart ({counts['kept_apart']})",
            (
                f"- “{plain(pair.a)}” / “{plain(pair.b)}” — {shown_similarity(pair.similarity)}, {pair.verdict}: "
                f"{plain(pair.reason)}"
                for pair in report.kept_apart
            ),
        ),
        *listed("## Left alone", left_lines(report)),
        *listed(
            "## Checks",
            (
                f"- {'✓' if each['passed'] else '✗'} **{plain(each['name'])}** {plain(each['description'])}"
                for each in report.checks
            ),
        ),
        *listed("## Policy", (f"- {plain(line)}" for line in report.policy.lines)),
        *listed("## Cost", (cost_line(cost) for cost in report.costs)),
        f"## Take it back\n\n{back_line(report)}",
    ]
    return "\n\n".join(lines)


def back_line(report: NightReport) -> str:
    """Return how to take the night back."""
    if not report.undo:
        return plain(report.undo_told)
    return f"{commands_line(report.undo)} takes back the whole night, `nous undo --proposal ID` one entry."


def commands_line(commands: Iterable[str]) -> str:
    """Return commands to copy, on one line; a name of an agent in them can't end them early."""
    return ", ".join(fenced(" ".join(without_controls(command).split())) for command in commands)


def fenced(code: str) -> str:
    """Return code between more backticks than stand anywhere in it (CommonMark 6.1)."""
    fence = "`" * (1 + max((len(run) for run in TICKS.findall(code)), default=0))
    return f"{fence}{code}{fence}"


def listed(title: str, entries: Iterable[str]) -> list[str]:
    """Return a section, or nothing when it has no entries."""
    lines = list(entries)
    return [title, "\n".join(lines)] if lines else []


def urgent_lines(report: NightReport) -> Iterator[str]:
    """Yield what needs a person; what stopped the night, whom it accuses and what to do; and whom it left out."""
    yield from listed("## Needs you", (f"- {plain(need)}" for need in report.needs))
    for stop in report.stopped:
        yield f"## Stopped by {stop.check}: nothing was applied"
        yield plain(stop.description)
        yield from (
            ["\n".join(f"- {plain(each.text)} (`{each.id}`)" for each in stop.offenders)] if stop.offenders else []
        )
        yield f"**What to do:** {plain(stop.advice)}"
    left = (
        f"- {plain(each.agent_id)}: {plain(each.step)}: {plain(each.reason)}. {plain(each.advice)}"
        for each in report.left_out
    )
    yield from listed("## Left out; the others had their night, the next one tries again", left)


def kind_lines(report: NightReport, kind: str) -> Iterator[str]:
    """Yield the section of one kind."""
    yield f"## {PROPOSAL_KINDS[kind].title} ({report.headline(kind)})"
    yield "\n".join(entry_line(entry) for entry in report.of_kind(kind))
    commands = report.undo_kind(kind)
    yield from [f"All of them back: {commands_line(commands)}"] if commands else []


def entry_line(entry: ReportEntry) -> str:
    """Return one proposal as a list entry, what it changes below."""
    changed = "".join(f"\n  - {plain(each.text)}: {plain(each.move)}" for each in entry.changed[1:])
    move = f" ({plain(entry.changed[0].move)})" if entry.changed else ""
    return f"- **{plain(entry.told[0])}**{move} — {plain(entry.reason)} (`{entry.proposal_id}`){changed}"


def cost_line(cost: Cost) -> str:
    """Return what was asked of one model for one purpose, and what it cost."""
    return f"- **{plain(str(cost.purpose))}** {told_cost(cost)} ({plain(str(cost.model))}, {cost.way})"


def left_lines(report: NightReport) -> Iterator[str]:
    """Yield for each phase what it left alone for which reason."""
    for account in report.accounts:
        first = list(account.left.items())[:SHOWN_REASONS]
        reasons = "; ".join(f"{rows} {plain(reason)}" for reason, rows in first) or "nothing"
        yield f"- **{account.phase}** looked at {account.eligible}, took up {account.proposed}, left: {reasons}"
