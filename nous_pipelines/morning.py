"""The report of a night on a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from nous_online.cli.output import show
from nous_pipelines.report import NOT_IN_FORCE, KeptApart, Merged, NightReport, shown_similarity

SHOWN = 12
LONGEST_TEXT = 240  # characters: three lines of a terminal
INDENT = (0, 0, 0, 2)


def show_report(report: NightReport, *, shown: int = SHOWN) -> None:
    """Print the whole report: what was merged, what was kept apart, the checks, and how to take it back."""
    counts = report.counts
    show(
        f"\n[bold]Night {report.night}[/bold]   {counts['active_before']} active memories → {counts['active_after']}"
        f"   [dim]plan {report.plan_hash[:12]}[/dim]"
    )
    show(
        section(
            f"Merged: {counts['retired']} memories into {counts['merges']}",
            map(merge_text, report.merged),
            len(report.merged),
            shown,
        )
    )
    show(
        section(
            f"Look alike, kept apart: {counts['kept_apart']} pairs",
            map(pair_text, report.kept_apart),
            len(report.kept_apart),
            shown,
        )
    )
    show(
        Text(
            f"\nA cosine threshold alone would have merged every one of these pairs. {counts['kept_apart']} were kept "
            f"apart: {counts['kept_apart'] - counts['unsure']} differ in something that matters, {counts['unsure']} "
            "are close but not certain, and a wrong merge costs more than a second copy.",
            style="bold",
        )
    )
    show(
        section(
            "Checked before anything changed", map(check_text, report.checks), len(report.checks), len(report.checks)
        )
    )


def show_diff(report: NightReport) -> None:
    """Print one line for each memory that changed: + what stays, - what points to it."""
    for merge in report.merged:
        show(Text.assemble((f"  {merge.kept}", "bold"), (f"   {merge.state}, {merge.reason}", "dim")))
        for text in merge.retired:
            show(Text(f"- {text}", style="red"))
    if not report.merged:
        show(f"night {report.night} changed nothing; {len(report.kept_apart)} look-alikes were kept apart")


def section(title: str, entries: Iterable[Text], count: int, shown: int) -> RenderableType:
    """Return a titled list, cut to `shown` entries with a line saying how many more there are."""
    lines: list[RenderableType] = [Text(f"\n{title}", style="bold")]
    lines += [Padding(entry, INDENT) for _, entry in zip(range(shown), entries, strict=False)]
    if count > shown:
        lines.append(Padding(Text(f"… and {count - shown} more", style="dim"), INDENT))
    return Group(*lines)


def merge_text(merge: Merged) -> Text:
    """Return one merge: what stays, what was said besides, and why they are the same."""
    text = Text.assemble(("= ", "green"), shortened(merge.kept))
    for retired in merge.retired:
        text.append(f"\n    {shortened(retired)}" if retired != merge.kept else "\n    (word for word)", style="dim")
    text.append(f"\n    {merge.reason}", style="cyan")
    if merge.state in NOT_IN_FORCE:
        text.append(f"  [{merge.state}]", style="yellow")
    return text


def pair_text(pair: KeptApart) -> Text:
    """Return one pair that looked alike, and in what it differs."""
    text = Text.assemble(("≠ ", "yellow"), shortened(pair.a), f"\n  {shortened(pair.b)}")
    text.append(f"\n    {shown_similarity(pair.similarity)} similar, but {pair.reason}", style="cyan")
    return text


def shortened(text: str) -> str:
    """Return a text for the terminal; `--json` and the Markdown report have all of it."""
    return textwrap.shorten(text, LONGEST_TEXT, placeholder=" …")


def check_text(check: dict[str, object]) -> Text:
    """Return one check with its outcome."""
    mark = ("✓ ", "green") if check["passed"] else ("✗ ", "red")
    return Text.assemble(mark, f"{check['name']}: ", (str(check["description"]), "dim"))
