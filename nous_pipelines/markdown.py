"""The report of a night as Markdown, as Dagster's interface shows it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nous_pipelines.report import WORDS, Entry, NightReport, shown_similarity

SHOWN_REASONS = 5


def markdown_of(report: NightReport) -> str:
    """Return the whole report; sections about nothing are left out."""
    counts = report.counts
    lines = [
        f"# Night {report.night}",
        f"{report.summary}. Plan `{report.plan_hash[:12]}`, {report.cost_usd:.2f} USD.",
        *stopped_lines(report),
        *(line for kind in report.kinds for line in kind_lines(report, kind)),
        *listed(
            f"## Went stale, refused or taken back ({sum(counts[state] for state in ('stale', 'refused', 'undone'))})",
            (f"- **{entry.state}** {entry.told[0]} — {entry.outcome or entry.reason}" for entry in report.not_in_force),
        ),
        *listed(
            f"## Waiting for the next night ({counts['waiting']})",
            (f"- {WORDS[each.kind].title}: {each.told[0]} — {each.reason}" for each in report.waiting),
        ),
        *listed(
            f"## Look alike, kept apart ({counts['kept_apart']})",
            (
                f"- “{pair.a}” / “{pair.b}” — {shown_similarity(pair.similarity)}, {pair.verdict}: {pair.reason}"
                for pair in report.kept_apart
            ),
        ),
        *listed("## Left alone", left_lines(report)),
        *listed(
            "## Checks",
            (f"- {'✓' if each['passed'] else '✗'} **{each['name']}** {each['description']}" for each in report.checks),
        ),
        *listed("## Policy", (f"- {line}" for line in report.policy.lines)),
        "## Take it back",
        f"`{report.undo}` takes back the whole night, `nous undo --proposal ID` one entry.",
    ]
    return "\n\n".join(lines)


def listed(title: str, entries: Iterable[str]) -> list[str]:
    """Return a section, or nothing when it has no entries."""
    lines = list(entries)
    return [title, "\n".join(lines)] if lines else []


def stopped_lines(report: NightReport) -> Iterator[str]:
    """Yield what stopped the night, whom it accuses and what to do."""
    for stop in report.stopped:
        yield f"## Stopped by {stop.check}: nothing was applied"
        yield stop.description
        yield from ["\n".join(f"- {each.text} (`{each.id}`)" for each in stop.offenders)] if stop.offenders else []
        yield f"**What to do:** {stop.advice}"


def kind_lines(report: NightReport, kind: str) -> Iterator[str]:
    """Yield the section of one kind."""
    yield f"## {WORDS[kind].title} ({report.headline(kind)})"
    yield "\n".join(entry_line(entry) for entry in report.of_kind(kind))
    yield f"All of them back: `{report.undo_kind(kind)}`"


def entry_line(entry: Entry) -> str:
    """Return one proposal as a list entry, what it changes below."""
    changed = "".join(f"\n  - {each.text}: {each.move}" for each in entry.changed[1:])
    move = f" ({entry.changed[0].move})" if entry.changed else ""
    return f"- **{entry.told[0]}**{move} — {entry.reason} (`{entry.proposal_id}`){changed}"


def left_lines(report: NightReport) -> Iterator[str]:
    """Yield for each phase what it left alone for which reason."""
    for account in report.accounts:
        first = list(account.left.items())[:SHOWN_REASONS]
        reasons = "; ".join(f"{rows} {reason}" for reason, rows in first) or "nothing"
        yield f"- **{account.phase}** looked at {account.eligible}, took up {account.proposed}, left: {reasons}"
