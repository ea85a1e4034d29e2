"""The report of a night as one HTML file that needs nothing else: no request leaves it, and no memory can act in it."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nous_online.core.errors import Unavailable
from nous_pipelines.phases.phase_table import PROPOSAL_KINDS
from nous_pipelines.reports import charts
from nous_pipelines.reports.charts import Plot, chart, dollars, percent, short
from nous_pipelines.reports.costs import told_usd
from nous_pipelines.reports.health import stale_ratio, tokens_saved
from nous_pipelines.reports.report import NightReport, shown_similarity

if TYPE_CHECKING:
    from jinja2 import Environment


def figure(name: str) -> Callable[[Mapping[str, float]], float]:
    """Return how to read one figure; what was not measured in some night counts as 0."""
    return lambda figures: figures.get(name, 0)


PLOTS = (
    Plot(
        "Facts",
        "Superseded and archived facts stay restorable.",
        {
            "active": figure("facts_active"),
            "superseded": figure("facts_superseded"),
            "archived": figure("facts_archived"),
        },
    ),
    Plot(
        "Tokens",
        "An upper-side estimate: bytes over 1.3.",
        {
            "active": figure("tokens_active"),
            "saved by tiers": figure("tokens_saved_by_tiers"),
            "by merges": figure("tokens_saved_by_merges"),
            "by archiving": figure("tokens_saved_by_archiving"),
        },
    ),
    Plot(
        "Duplicates left",
        "Pairs that nothing tells apart; look-alikes differ in something.",
        {
            "at 0.92": figure("duplicates_092"),
            "at 0.97": figure("duplicates_097"),
            "look-alikes at 0.92": figure("look_alikes_092"),
        },
    ),
    Plot(
        "Stale facts",
        "Active facts that a later one of the same slot overtook.",
        {"share of active facts": stale_ratio},
        percent,
        least_top=0.04,
    ),
    Plot(
        "Open contradictions",
        "Both facts are kept until somebody resolves it.",
        {"open": figure("contradictions_open")},
    ),
    Plot(
        "Episodes by tier",
        "Earlier texts lie in cold storage.",
        {tier: figure(f"episodes_{tier}") for tier in ("raw", "summary", "compressed", "fossil")},
    ),
    Plot("Links", "Between memories that are about each other.", {"links": figure("links")}),
    Plot("Cost", "What language models cost that night.", {"a night": figure("cost_usd")}, dollars, least_top=0.01),
)
UNFOLDED = 6  # entries of a section that are seen at once; the others unfold
LONGEST_TEXT = 600  # characters of one memory; `nous report --json` has all of it


@dataclass(frozen=True)
class Tile:
    """One key figure, with how it moved since the night before."""

    label: str
    value: str
    change: str
    is_better: bool | None
    """None where neither direction is better."""


def page_of(report: NightReport) -> str:
    """Return the page; every text of a memory in it is escaped, and only our own script may run."""
    environment = templates()
    script = source_of("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return environment.get_template("page.html").render(
        report=report,
        counts=report.counts,
        words=PROPOSAL_KINDS,
        tiles=tiles_of(report),
        plots=[chart(plot, [(each.night, each.figures) for each in report.health]) for plot in PLOTS],
        box=charts,
        unfolded=UNFOLDED,
        style=source_of("page.css"),
        script=script,
        script_hash=f"sha256-{digest}",
    )


def write_page(path: Path, report: NightReport) -> Path:
    """Write the page and return where; raise `Unavailable` when that is not possible."""
    part = path.with_name(f".{path.name}.part")
    try:
        part.write_text(page_of(report), "utf-8")
        part.replace(path)
    except OSError as error:
        raise Unavailable(f"{path} can't be written ({error}); name another file, or make room") from error
    return path


@cache
def templates() -> Environment:
    """Return the templates, which escape every value that is not marked as ours."""
    from jinja2 import DictLoader, Environment, StrictUndefined

    environment = Environment(
        loader=DictLoader({"page.html": source_of("page.html")}),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"cut": cut, "similarity": shown_similarity, "short": short, "usd": told_usd}
    return environment


def source_of(name: str) -> str:
    """Return a file that ships beside this module."""
    return files("nous_pipelines.reports").joinpath(name).read_text("utf-8")


def cut(text: str) -> str:
    """Return a text short enough for a page."""
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT].rstrip()} …"


def tiles_of(report: NightReport) -> list[Tile]:
    """Return the key figures after the night; none when the store was not measured then."""
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
        Tile("Cost", told_usd(report.cost_usd), "", None),
    ]


def tile(
    label: str,
    now: Mapping[str, Any],
    before: Mapping[str, Any] | None,
    name: str,
    *,
    less_is_better: bool = False,
) -> Tile:
    """Return one figure and its change since the night measured before."""
    value = now.get(name, 0)
    change = value - before.get(name, 0) if before is not None else 0
    sign = "+" if change > 0 else "\N{MINUS SIGN}"
    told = f"{sign}{short(abs(change))}" if change else ""
    return Tile(label, short(value), told, change < 0 if less_is_better and change else None)
