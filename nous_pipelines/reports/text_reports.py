"""The report of a night as text: on a terminal, and as Markdown, which Dagster's interface shows."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from rich.console import Group
from rich.padding import Padding
from rich.text import Text

from nous_online.interfaces.cli.output import escaped, show, show_note, without_controls
from nous_pipelines.phases.phase_table import PROPOSAL_KINDS
from nous_pipelines.plan.checks import title_of
from nous_pipelines.reports.costs import Cost, cost_in_words, usd_in_words
from nous_pipelines.reports.report import (
    AgentLeftOut,
    KeptApart,
    NightReport,
    PhaseAccount,
    ReportEntry,
    Stopped,
    WaitingProposal,
    shown_similarity,
)
from nous_pipelines.reports.reporting import stale_ratio, tokens_saved

SHOWN = 12
SHOWN_REASONS = 4
LONGEST_TEXT = 240  # characters: three lines of a terminal
INDENT = (0, 0, 0, 2)
WHY_WAITING = "as one proposal a night changes a memory, and none pushes down what is used"
SHOWN_REASONS_MARKDOWN = 5
TICKS = re.compile("`+")
ACTIVE = re.compile(r"[\\`*_{}\[\]<>!#|~&]|^[-+=]|^\d+(?=[.)])")
"""Characters with a meaning in Markdown: anywhere, or at the beginning of a line."""


# --- on a terminal ---


def show_report(report: NightReport, *, shown: int = SHOWN, nous: str = "nous") -> None:
    """Print the whole report: changes, rows left alone, checks, and the figures of the store, with reasons.

    `nous` is the program's name in the commands shown.
    """
    counts = report.counts
    show(
        f"\n[bold]Night {report.night}[/bold]   {counts['active_before']} active facts → {counts['active_after']}"
        f"   [dim]plan {report.plan_hash[:12]}   {usd_in_words(report.cost_usd)}{of_whom(report)}[/dim]"
    )
    for number, need in enumerate(report.needs or ("nothing",)):
        show(Text.assemble(("" if number else "Needs you").ljust(11), (need, "yellow" if report.needs else "dim")))
    for stop in report.stopped:
        show(stopped_text(stop))
    for left in report.left_out:
        show(left_out_text(left))
    for kind in report.kinds:
        title, headline = PROPOSAL_KINDS[kind].title, report.headline(kind)
        show_section(title, map(entry_text, report.of_kind(kind)), report.in_force(kind), shown, headline=headline)
        for command in report.undo_kind(kind):
            show(f"[dim]    back: {escaped(command.replace('nous', nous, 1))}[/dim]")
    others = report.not_in_force_count
    show_section("Went stale, refused, taken back or left out", map(entry_text, report.not_in_force), others, shown)
    wait = f"{counts['waiting']}, {WHY_WAITING}"
    show_section(
        "Waiting for the next night", map(waiting_text, report.waiting), counts["waiting"], shown, headline=wait
    )
    show_section("Look alike, kept apart", map(pair_text, report.kept_apart), counts["kept_apart"], shown)
    if report.apart_note:
        show(Text(f"\n{report.apart_note}", style="bold"))
    left, eligible = report.left_alone
    show_section(
        "Looked at and left alone",
        map(account_text, report.accounts),
        len(report.accounts),
        shown,
        headline=f"{left:,} of {eligible:,} memories or pairs of them",
    )
    show_section(report.checks_title, map(check_text, report.checks), len(report.checks), shown)
    lines = report.policy.lines
    show_section("Policy, where it is not the default", map(Text, lines), len(lines), shown)
    show_section("What language models cost", map(cost_text, report.costs), len(report.costs), shown)
    show_health(report)


def of_whom(report: NightReport) -> str:
    """Return the agents of a report that is not of all of them."""
    return f"   of {escaped(', '.join(report.agent_ids))} alone" if report.agent_ids else ""


def show_section(title: str, entries: Iterable[Text], count: int, shown: int, *, headline: str = "") -> None:
    """Print a titled list of at most `shown` entries, with the number of the others in a last line, if it has any."""
    if not count:
        return
    lines = [Padding(entry, INDENT) for entry in islice(entries, shown)]
    if count > len(lines):
        lines.append(Padding(Text(f"… and {count - len(lines)} more", style="dim"), INDENT))
    show(Group(Text(f"\n{title}: {headline or count}", style="bold"), *lines))


def show_health(report: NightReport) -> None:
    """Print the figures of the store at the end of the night; what has been settled since counts as open."""
    if report.health and report.health[-1].night == report.night:
        now = report.health[-1].figures
        note = f" ({report.measured_note})" if report.measured_note else ""
        show(
            Text(
                f"\nThe store as the night left it{note}: {now.get('facts_active', 0):.0f} active facts, "
                f"{now.get('duplicates_092', 0):.0f} possible duplicates left at 0.92 and "
                f"{now.get('duplicates_097', 0):.0f} at 0.97, {stale_ratio(now):.1%} stale, "
                f"contradictions open then: {now.get('contradictions_open', 0):.0f}, "
                f"{now.get('tokens_active', 0):,.0f} tokens active, {tokens_saved(now):,.0f} saved"
            )
        )


def show_diff(report: NightReport) -> None:
    """Print one line for each memory that changed: its text, and its state before and after."""
    for entry in report.entries:
        mark = "" if entry.state == "applied" else f"  [{entry.state}]"
        for changed in entry.changed:
            text, move = (" ".join(each.split()) for each in (changed.text, changed.move))
            show(Text.assemble(sign_of(entry.kind), text, (f"   {move}", "cyan"), (mark, "yellow")))
    if not report.entries:
        apart = report.counts["kept_apart"]
        kept = "1 pair of look-alikes was" if apart == 1 else f"{apart} pairs of look-alikes were"
        show(f"night {report.night} changed nothing; {kept} kept apart")
    if report.agent_ids:
        show_note(f"this is{of_whom(report)}".replace("   ", " "))


def sign_of(kind: str) -> tuple[str, str]:
    """Return the sign of a kind of proposal with its colour."""
    return PROPOSAL_KINDS[kind].sign, PROPOSAL_KINDS[kind].colour


def entry_text(entry: ReportEntry) -> Text:
    """Return one proposal: its memory, its changes and its reason."""
    text = Text.assemble(sign_of(entry.kind), shortened(entry.told[0]))
    for line in changed_lines(entry):
        text.append(f"\n    {line}", style="dim")
    text.append(f"\n    {entry.reason}", style="cyan")
    if not entry.is_in_force:
        text.append(f"  [{entry.state}{f': {entry.outcome}' if entry.outcome else ''}]", style="yellow")
    return text


def changed_lines(entry: ReportEntry) -> Iterator[str]:
    """Yield the changes of an entry, for a merge the other wordings."""
    if entry.kind == "merge":
        for retired in entry.told[1:]:
            yield shortened(retired) if retired != entry.told[0] else "(word for word)"
        return
    if entry.kind in {"promote", "demote"}:  # the reason tells both weights
        return
    for changed in entry.changed:
        yield changed.move if changed.text == entry.told[0] else f"{shortened(changed.text)}: {changed.move}"


def waiting_text(waiting: WaitingProposal) -> Text:
    """Return one waiting proposal."""
    title = waiting.title.lower()
    return Text.assemble(("… ", "yellow"), shortened(waiting.told[0]), (f"\n    {title}: {waiting.reason}", "cyan"))


def pair_text(pair: KeptApart) -> Text:
    """Return one pair that was kept apart, with the reason."""
    text = Text.assemble(("≠ ", "yellow"), shortened(pair.a), f"\n  {shortened(pair.b)}")
    text.append(f"\n    {shown_similarity(pair.similarity)} similar, but {pair.reason}", style="cyan")
    return text


def account_text(account: PhaseAccount) -> Text:
    """Return the account of one phase, with its most frequent reasons."""
    reasons = [f"{rows} {reason}" for reason, rows in account.left.items()]
    left = "; ".join([*reasons[:SHOWN_REASONS], *(["…"] if len(reasons) > SHOWN_REASONS else [])]) or "nothing left"
    return Text.assemble(f"{account.phase}: {account.proposed} of {account.eligible} taken up", (f"   {left}", "dim"))


def stopped_text(stop: Stopped) -> Text:
    """Return a check that stopped the night, with the memories it names and advice."""
    text = Text.assemble(
        (f"\n✗ stopped by the check “{title_of(stop.check)}”: nothing was applied", "bold red"),
        f"\n  {stop.description}",
    )
    for offender in stop.offenders:
        text.append(f"\n  - {shortened(offender.text)}", style="yellow")
        text.append(f"  {offender.id}", style="dim")
    return text.append(f"\n  what to do: {stop.advice}", style="cyan")


def left_out_text(left: AgentLeftOut) -> Text:
    """Return an agent that the night left out, with the reason and advice."""
    title = f"\n✗ left out: {left.agent_id}. The others had their night; the next one tries again"
    text = Text.assemble((title, "bold red"), f"\n  {title_of(left.step)}: {left.reason}")
    return text.append(f"\n  what to do: {left.advice}", style="cyan")


def shortened(text: str) -> str:
    """Return a text cut for the terminal; `--json` has the whole text."""
    return textwrap.shorten(text, LONGEST_TEXT, placeholder=" …")


def cost_text(cost: Cost) -> Text:
    """Return the requests to one model for one purpose, with their cost."""
    return Text.assemble(f"{cost.purpose}: {cost_in_words(cost)}", (f"   {cost.model}, {cost.way}", "dim"))


def check_text(check: Mapping[str, object]) -> Text:
    """Return one check with its outcome."""
    mark = ("✓ ", "green") if check["passed"] else ("✗ ", "red")
    return Text.assemble(mark, f"{title_of(str(check['name']))}: ", (str(check["description"]), "dim"))


# --- as Markdown ---


def plain(text: str) -> str:
    """Return an untrusted text as one line of Markdown, escaped so that it can make no heading, image, link or tag."""
    line = without_controls(" ".join(text.split()))
    # After a number the backslash goes before its full stop.
    return ACTIVE.sub(lambda found: f"{found[0]}\\" if found[0].isdecimal() else f"\\{found[0]}", line)


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
            f"## Waiting for the next night ({counts['waiting']}), {WHY_WAITING}",
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
            f"## {report.checks_title}" if report.agent_ids else "## Checks",
            (
                f"- {'✓' if each['passed'] else '✗'} **{plain(title_of(each['name']))}** {plain(each['description'])}"
                for each in report.checks
            ),
        ),
        *listed("## Policy", (f"- {plain(line)}" for line in report.policy.lines)),
        *listed("## Cost", map(cost_line, report.costs)),
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
        yield f"## Stopped by the check “{plain(title_of(stop.check))}”: nothing was applied"
        yield plain(stop.description)
        yield from (
            ["\n".join(f"- {plain(each.text)} (`{each.id}`)" for each in stop.offenders)] if stop.offenders else []
        )
        yield f"**What to do:** {plain(stop.advice)}"
    left = (
        f"- {plain(each.agent_id)}: {plain(title_of(each.step))}: {plain(each.reason)}. {plain(each.advice)}"
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
        first = list(account.left.items())[:SHOWN_REASONS_MARKDOWN]
        reasons = "; ".join(f"{rows} {plain(reason)}" for reason, rows in first) or "nothing"
        yield f"- **{account.phase}** looked at {account.eligible}, took up {account.proposed}, left: {reasons}"
