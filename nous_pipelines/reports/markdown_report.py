"""The report of a night as Markdown, as Dagster's interface shows it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from nous_online.interfaces.cli.output import without_controls
from nous_pipelines.phases.phase_table import PROPOSAL_KINDS
from nous_pipelines.reports.costs import Cost, cost_in_words, usd_in_words
from nous_pipelines.reports.report import NightReport, ReportEntry, shown_similarity

SHOWN_REASONS = 5
TICKS = re.compile("`+")
ACTIVE = re.compile(r"[\\`*_{}\[\]<>!#|~&]|^[-+=]|^\d+(?=[.)])")
"""Characters with a meaning in Markdown: anywhere, or at the beginning of a line."""


def plain(text: str) -> str:
    """Return an untrusted text as one line of Markdown, escaped so that it can make no heading, image, link or tag."""
    return ACTIVE.sub(escaped, without_controls(" ".join(text.split())))


def escaped(found: re.Match[str]) -> str:
    """Return a match of `ACTIVE` escaped; after a number the backslash goes before its full stop."""
    return f"{found[0]}\\" if found[0].isdecimal() else f"\\{found[0]}"


def markdown_of(report: NightReport) -> str:
    """Return the whole report, without empty sections."""
    counts = report.counts
    lines = [
        f"# Night {report.night}",
        f"{report.summary}. Plan `{report.plan_hash[:12]}`, {usd_in_words(report.cost_usd)}.",
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
    """Return how to undo the night."""
    if not report.undo:
        return plain(report.undo_hint)
    return f"{commands_line(report.undo)} takes back the whole night, `nous undo --proposal ID` one entry."


def commands_line(commands: Iterable[str]) -> str:
    """Return commands to copy, as code on one line; an agent's name in them can't end the code span."""
    return ", ".join(fenced(" ".join(without_controls(command).split())) for command in commands)


def fenced(code: str) -> str:
    """Return a code span fenced by more backticks than any run in it (CommonMark 6.1)."""
    fence = "`" * (1 + max((len(run) for run in TICKS.findall(code)), default=0))
    return f"{fence}{code}{fence}"


def listed(title: str, entries: Iterable[str]) -> list[str]:
    """Return a section, or nothing if it has no entries."""
    lines = list(entries)
    return [title, "\n".join(lines)] if lines else []


def urgent_lines(report: NightReport) -> Iterator[str]:
    """Yield what needs a person, the checks that stopped the night with advice, and the agents left out."""
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
    """Return one proposal as a list entry with its changes below."""
    changed = "".join(f"\n  - {plain(each.text)}: {plain(each.move)}" for each in entry.changed[1:])
    move = f" ({plain(entry.changed[0].move)})" if entry.changed else ""
    return f"- **{plain(entry.told[0])}**{move} — {plain(entry.reason)} (`{entry.proposal_id}`){changed}"


def cost_line(cost: Cost) -> str:
    """Return the requests to one model for one purpose, with their cost."""
    return f"- **{plain(str(cost.purpose))}** {cost_in_words(cost)} ({plain(str(cost.model))}, {cost.way})"


def left_lines(report: NightReport) -> Iterator[str]:
    """Yield the account of each phase with its most frequent reasons."""
    for account in report.accounts:
        first = list(account.left.items())[:SHOWN_REASONS]
        reasons = "; ".join(f"{rows} {plain(reason)}" for reason, rows in first) or "nothing"
        yield f"- **{account.phase}** looked at {account.eligible}, took up {account.proposed}, left: {reasons}"
