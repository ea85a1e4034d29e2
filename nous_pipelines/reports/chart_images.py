"""Charts as images in Markdown: Dagster shows them beside the report of a night, without a file or a server."""

from __future__ import annotations

from base64 import b64encode
from html import escape

from nous_pipelines.reports.html_report import BOTTOM, HEIGHT, LEFT, PLOTS, RIGHT, WIDTH, Chart, chart
from nous_pipelines.reports.report import NightReport

COLOURS = ("#2a6fdb", "#c2571a", "#2e8b57", "#7a52b3")
HEAD, KEY = 24, 20
"""Room for the title above a chart, and for the key below."""
MOST_NIGHTS = 60
"""So many are in a picture: it is stored with the run, night after night."""


def plots_of(report: NightReport) -> str:
    """Return the plots of a report over its last nights as Markdown; nothing where none was measured."""
    figures = [(each.night, each.figures) for each in report.health[-MOST_NIGHTS:]]
    drawn = [chart(plot, figures) for plot in PLOTS] if figures else []
    return "\n".join(f"![{each.summary}](data:image/svg+xml;base64,{encoded(each)})" for each in drawn)


def encoded(plot: Chart) -> str:
    """Return the picture of a chart in base 64."""
    return b64encode(svg_of(plot).encode()).decode()


def svg_of(plot: Chart) -> str:
    """Return a chart as an SVG document of its own: title, grid, lines, and the key with their last values."""
    grid = [
        f'<path stroke="#8884" d="M{LEFT} {tick.at:.1f}H{WIDTH - RIGHT}"/>'
        f'<text x="{LEFT - 8}" y="{tick.at + 4:.1f}" text-anchor="end">{escape(tick.label)}</text>'
        for tick in plot.y
    ]
    dates = [
        f'<text x="{tick.at:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{escape(tick.label)}</text>'
        for tick in plot.x
    ]
    lines = [
        f'<path fill="none" stroke="{colour}" stroke-width="2" d="{line.path}"/>'
        f'<circle cx="{line.points[-1][0]}" cy="{line.points[-1][1]}" r="3" fill="{colour}"/>'
        for colour, line in zip(COLOURS, plot.lines, strict=False)
    ]
    key = "   ".join(
        f'<tspan fill="{colour}">{escape(line.label)} {escape(line.last)}</tspan>'
        for colour, line in zip(COLOURS, plot.lines, strict=False)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 {-HEAD} {WIDTH} {HEAD + HEIGHT + KEY}" '
        f'width="{WIDTH}" height="{HEAD + HEIGHT + KEY}" font-family="sans-serif" font-size="12" fill="#777">'
        f'<text x="{LEFT}" y="-8" font-weight="bold">{escape(plot.title)}</text>'
        f"{''.join([*grid, *dates, *lines])}"
        f'<text x="{LEFT}" y="{HEIGHT + 12}" xml:space="preserve">{key}</text></svg>'
    )
