"""The report of a night as one self-contained HTML file: it makes no request, and text of a memory can run nothing."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib.resources import files
from math import ceil, floor, log10
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nous_online.core.errors import Unavailable
from nous_pipelines.phases.phase_table import PROPOSAL_KINDS
from nous_pipelines.plan.checks import title_of
from nous_pipelines.reports.costs import short, usd_in_words
from nous_pipelines.reports.report import NightReport, shown_similarity
from nous_pipelines.reports.reporting import stale_ratio, tokens_saved

if TYPE_CHECKING:
    from jinja2 import Environment


WIDTH, HEIGHT = 520, 210
LEFT, RIGHT, TOP, BOTTOM = 46, 14, 10, 26
"""Room for the ticks around the plot, in user units."""
BOX = {"WIDTH": WIDTH, "HEIGHT": HEIGHT, "LEFT": LEFT, "RIGHT": RIGHT, "BOTTOM": BOTTOM, "HEAD": 24, "KEY": 20}
"""The same for templates, with the heights of the title above a chart and of the key below."""
STEPS = 4
MOST_DATES = 5

# --- line charts as the geometry of SVG ---

Figures = Sequence[tuple[date, Mapping[str, float]]]


def percent(value: float) -> str:
    """Return a share as a percentage."""
    return f"{100 * value:.1f}".removesuffix(".0") + " %"


def dollars(value: float) -> str:
    """Return an amount of US dollars with two decimals, or up to four if they are not 0."""
    whole, _, decimals = f"{value:,.4f}".partition(".")
    return f"${whole}.{decimals.rstrip('0'):0<2}"


@dataclass(frozen=True)
class ChartLine:
    """One figure over time."""

    label: str
    path: str
    area: str
    points: tuple[tuple[float, float, str], ...]
    """x, y, and the tooltip of each point."""
    last: str


@dataclass(frozen=True)
class Tick:
    """A mark on an axis."""

    at: float
    label: str


@dataclass(frozen=True)
class Chart:
    """A chart ready to be drawn in a box of WIDTH by HEIGHT."""

    title: str
    note: str
    lines: tuple[ChartLine, ...]
    x: tuple[Tick, ...]
    y: tuple[Tick, ...]
    summary: str
    """The text for screen readers."""


@dataclass(frozen=True)
class Plot:
    """The definition of a chart: its lines by label, each a figure or a function of them, and the number format."""

    title: str
    note: str
    lines: Mapping[str, str | Callable[[Mapping[str, float]], float]]
    written: Callable[[float], str] = short
    least_top: float = 4.0
    """The least upper end of the vertical axis, so that ticks of small numbers are whole."""


def chart(plot: Plot, figures: Figures) -> Chart:
    """Lay out one chart over the nights given, oldest first; the vertical axis begins at 0."""
    values = {
        label: [each.get(read, 0) if isinstance(read, str) else read(each) for _, each in figures]
        for label, read in plot.lines.items()
    }
    top = nice_top(max([plot.least_top, *(value for row in values.values() for value in row)]))
    nights = [night for night, _ in figures]
    xs = [x_of(night, nights) for night in nights]
    return Chart(
        title=plot.title,
        note=plot.note,
        lines=tuple(line(label, row, nights, xs, top=top, plot=plot) for label, row in values.items()),
        x=tuple(Tick(x_of(night, nights), f"{night:%d %b}".lstrip("0")) for night in labelled_nights(nights)),
        y=tuple(Tick(y_of(top * step / STEPS, top), plot.written(top * step / STEPS)) for step in range(STEPS + 1)),
        summary=f"{plot.title}, {nights_in_words(nights)}: "
        + "; ".join(
            f"{label} {plot.written(row[0])} → {plot.written(row[-1])}" for label, row in values.items() if row
        ),
    )


def line(
    label: str, values: Sequence[float], nights: Sequence[date], xs: Sequence[float], *, top: float, plot: Plot
) -> ChartLine:
    """Lay out one line."""
    ys = [y_of(value, top) for value in values]
    path = " ".join(f"{'L' if place else 'M'}{x:.1f} {y:.1f}" for place, (x, y) in enumerate(zip(xs, ys, strict=True)))
    bottom = HEIGHT - BOTTOM
    titles = [
        f"{night.isoformat()}: {label} {plot.written(value)}" for night, value in zip(nights, values, strict=True)
    ]
    return ChartLine(
        label=label,
        path=path,
        area=f"{path} L{xs[-1]:.1f} {bottom} L{xs[0]:.1f} {bottom} Z" if xs else "",
        points=tuple((round(x, 1), round(y, 1), title) for x, y, title in zip(xs, ys, titles, strict=True)),
        last=plot.written(values[-1]) if values else "",
    )


def x_of(night: date, nights: Sequence[date]) -> float:
    """Return the x coordinate of a night; a single night is in the middle."""
    span = (nights[-1] - nights[0]).days
    share = (night - nights[0]).days / span if span else 0.5
    return LEFT + share * (WIDTH - LEFT - RIGHT)


def y_of(value: float, top: float) -> float:
    """Return the y coordinate of a value, 0 at the bottom."""
    return HEIGHT - BOTTOM - value / top * (HEIGHT - TOP - BOTTOM)


def nice_top(highest: float) -> float:
    """Return the smallest round number at or above the highest value, so that a quarter of it is round, too."""
    power = 10.0 ** floor(log10(highest))
    # 0.999999: a value that rounding lifted just above a step stays within it.
    return next(power * step for step in (1, 2, 4, 8, 12, 20) if power * step >= highest * 0.999999)


def labelled_nights(nights: Sequence[date]) -> list[date]:
    """Return the nights labelled on the axis, evenly spaced and including the last."""
    step = max(1, ceil(len(nights) / MOST_DATES))
    return list(nights[::-1][::step])[::-1]


def nights_in_words(nights: Sequence[date]) -> str:
    """Return a range of nights in words."""
    if not nights:
        return "no night measured yet"
    return f"night of {nights[0]}" if len(nights) == 1 else f"{len(nights)} nights from {nights[0]} to {nights[-1]}"


# --- the page ---


PLOTS = (
    Plot(
        "Facts",
        "Superseded and archived facts stay restorable.",
        {state: f"facts_{state}" for state in ("active", "superseded", "archived")},
    ),
    Plot(
        "Tokens",
        "An upper-side estimate: bytes over 1.3.",
        {
            "active": "tokens_active",
            "saved by tiers": "tokens_saved_by_tiers",
            "by merges": "tokens_saved_by_merges",
            "by archiving": "tokens_saved_by_archiving",
        },
    ),
    Plot(
        "Duplicates left",
        "Pairs that nothing tells apart; look-alikes differ in something.",
        {"at 0.92": "duplicates_092", "at 0.97": "duplicates_097", "look-alikes at 0.92": "look_alikes_092"},
    ),
    Plot(
        "Stale facts",
        "Active facts that a later one of the same slot overtook.",
        {"share of active facts": stale_ratio},
        percent,
        least_top=0.04,
    ),
    Plot("Open contradictions", "Both facts are kept until somebody resolves it.", {"open": "contradictions_open"}),
    Plot(
        "Episodes by tier",
        "Earlier texts lie in cold storage.",
        {tier: f"episodes_{tier}" for tier in ("raw", "summary", "compressed", "fossil")},
    ),
    Plot("Links", "Between memories that are about each other.", {"links": "links"}),
    Plot("Cost", "What language models cost that night.", {"a night": "cost_usd"}, dollars, least_top=0.01),
)
UNFOLDED = 6  # entries of a section shown at first; the others unfold
LONGEST_TEXT = 600  # characters of one memory; `nous report --json` has the whole text


@dataclass(frozen=True)
class Tile:
    """One key figure, with its change since the night before."""

    label: str
    value: str
    change: str
    is_better: bool | None
    """None where neither direction is better."""


def page_of(report: NightReport) -> str:
    """Return the page; every text of a memory is escaped, and only our own script may run."""
    environment = templates()
    script = source_of("page.js")
    # The page's content security policy allows the script with this hash and no other.
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return environment.get_template("page.html").render(
        report=report,
        counts=report.counts,
        words=PROPOSAL_KINDS,
        tiles=tiles_of(report),
        plots=[chart(plot, [(each.night, each.figures) for each in report.health]) for plot in PLOTS],
        box=BOX,
        unfolded=UNFOLDED,
        style=source_of("page.css"),
        script=script,
        script_hash=f"sha256-{digest}",
    )


def write_page(path: Path, report: NightReport) -> Path:
    """Write the page atomically and return its path; raise `Unavailable` if that is not possible."""
    part = path.with_name(f".{path.name}.part")
    try:
        part.write_text(page_of(report), "utf-8")
        part.replace(path)
    except OSError as error:
        raise Unavailable(f"{path} can't be written ({error}); name another file, or make room") from error
    return path


@cache
def templates() -> Environment:
    """Return the template environment, which escapes every value."""
    from jinja2 import DictLoader, Environment, StrictUndefined

    environment = Environment(
        loader=DictLoader({name: source_of(name) for name in ("page.html", "chart.html")}),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "title_of": title_of,
        "cut": cut,
        "similarity": shown_similarity,
        "short": short,
        "usd": usd_in_words,
    }
    return environment


def source_of(name: str) -> str:
    """Return the text of a file shipped beside this module."""
    return files("nous_pipelines.reports").joinpath(name).read_text("utf-8")


def cut(text: str) -> str:
    """Return a text cut to `LONGEST_TEXT` characters."""
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT].rstrip()} …"


def tiles_of(report: NightReport) -> list[Tile]:
    """Return the key figures after the night, none if the store was not measured then."""
    if not report.health or report.health[-1].night != report.night:
        return []
    now = report.health[-1].figures
    before = report.health[-2].figures if len(report.health) > 1 else None
    return [
        tile("Active facts", now, before, "facts_active"),
        tile("Duplicates left", now, before, "duplicates_092", less_is_better=True),
        tile("Contradictions", now, before, "contradictions_open", less_is_better=True),
        Tile("Stale facts", percent(stale_ratio(now)), "", None),
        tile("Active tokens", now, before, "tokens_active"),
        Tile("Tokens saved", short(tokens_saved(now)), "", None),
        Tile("Cost", usd_in_words(report.cost_usd), "", None),
    ]


def tile(
    label: str,
    now: Mapping[str, Any],
    before: Mapping[str, Any] | None,
    name: str,
    *,
    less_is_better: bool = False,
) -> Tile:
    """Return one figure with its change since the night measured before."""
    value = now.get(name, 0)
    change = value - before.get(name, 0) if before is not None else 0
    sign = "+" if change > 0 else "\N{MINUS SIGN}"
    moved = f"{sign}{short(abs(change))}" if change else ""
    return Tile(label, short(value), moved, change < 0 if less_is_better and change else None)


# --- charts as images in Markdown ---

COLOURS = ("#2a6fdb", "#c2571a", "#2e8b57", "#7a52b3")
MOST_NIGHTS = 60
"""Nights in a chart: Dagster stores the picture with every run."""


def plots_of(report: NightReport) -> str:
    """Return the charts of a report over its last nights as Markdown images, empty if no night was measured."""
    figures = [(each.night, each.figures) for each in report.health[-MOST_NIGHTS:]]
    drawn = [chart(plot, figures) for plot in PLOTS] if figures else []
    encoded = [base64.b64encode(svg_of(each).encode()).decode() for each in drawn]
    pairs = zip(drawn, encoded, strict=True)
    return "\n".join(f"![{each.summary}](data:image/svg+xml;base64,{picture})" for each, picture in pairs)


def svg_of(plot: Chart) -> str:
    """Return a chart as a complete SVG document: title, grid, lines, and a key with the last values."""
    return templates().get_template("chart.html").render(plot=plot, box=BOX, colours=COLOURS)
