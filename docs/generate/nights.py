"""What docs/nights.md and its reference page show of a night: its assets, its phases and their tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from html import escape

from nous_pipelines.orchestration.code_location import ASSETS, defs
from nous_pipelines.phases.phase_table import PHASES, SCHEMAS
from nous_pipelines.snapshots.table_schemas import SNAPSHOT_TABLES, TableSchema

COLUMN, BOX, ROW, HEIGHT = 124, 86, 46, 36
"""Pixels from one column of assets to the next, the width of an asset, from one row to the next, and its height."""
EDGE = 12
STYLE = """
    text { fill: #1f2328; text-anchor: middle }
    .left { text-anchor: start }
    .quiet { fill: #59636e; font-size: 12px }
    .strong { font-weight: 600 }
    .box { fill: #f6f8fa; stroke: #818b98; stroke-width: 1.2 }
    .blue { fill: #ddf4ff; stroke: #0969da; stroke-width: 1.4 }
    .gate { fill: #fff8c5; stroke: #9a6700; stroke-width: 1.4 }
    .green { fill: #dafbe1; stroke: #1a7f37; stroke-width: 1.4 }
    .grey { fill: #eaeef2; stroke: #818b98; stroke-width: 1.2; stroke-dasharray: 4 3 }
    .line { fill: none; stroke: #59636e; stroke-width: 1.4 }
    .limit { fill: none; stroke: #9a6700; stroke-width: 1.4; stroke-dasharray: 5 4 }
    .head { fill: #59636e }
    @media (prefers-color-scheme: dark) {
      text { fill: #f0f6fc }
      .quiet { fill: #9198a1 }
      .box { fill: #151b23; stroke: #656c76 }
      .blue { fill: #0c2d4d; stroke: #4493f8 }
      .gate { fill: #341a00; stroke: #d29922 }
      .green { fill: #04260f; stroke: #3fb950 }
      .grey { fill: #212830; stroke: #656c76 }
      .line { stroke: #9198a1 }
      .limit { stroke: #d29922 }
      .head { fill: #9198a1 }
    }
"""
ARROW = (
    '<defs><marker id="arrow" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" '
    'orient="auto"><path class="head" d="M0 0 10 5 0 10z"/></marker></defs>'
)
FONT = "system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif"


@cache
def parents() -> Mapping[str, frozenset[str]]:
    """Return for each asset of a night those it depends on."""
    graph = defs.resolve_asset_graph()
    names = {asset.key: asset.key.to_user_string() for asset in ASSETS}
    return {
        name: frozenset(names[parent] for parent in graph.get(key).parent_keys - {key}) for key, name in names.items()
    }


@cache
def above(name: str) -> frozenset[str]:
    """Return every asset that comes before one."""
    return parents()[name].union(*(above(parent) for parent in parents()[name]))


def drawn_parents(name: str) -> set[str]:
    """Return the assets an arrow comes from: what one of them depends on itself goes without saying."""
    return {one for one in parents()[name] if not any(one in above(other) for other in parents()[name])}


@cache
def depth(name: str) -> int:
    """Return how many assets at least stand before one."""
    return 1 + max((depth(parent) for parent in parents()[name]), default=-1)


@cache
def column(name: str) -> int:
    """Return in which column an asset stands: just before the first that needs it, the last ones as early as can be."""
    return min((column(other) for other in parents() if name in parents()[other]), default=depth(name) + 1) - 1


def rows() -> dict[str, float]:
    """Return in which row each asset stands: the fullest column in order, the others beside their relatives."""
    fullest = max(map(column, parents()), key=[column(name) for name in parents()].count)
    order = sorted((name for name in parents() if column(name) == fullest), key=lambda name: (-depth(name), name))
    found: dict[str, float] = {name: row for row, name in enumerate(order)}
    for place in [*range(fullest - 1, -1, -1), *range(fullest + 1, 1 + max(map(column, parents())))]:
        here = sorted(name for name in parents() if column(name) == place)
        for turn, name in enumerate(here):
            later = [other for other in parents() if name in drawn_parents(other)]
            relatives = later if place < fullest else drawn_parents(name)
            beside = [found[other] for other in relatives if other in found]  # some stand beyond the fullest column
            is_crowded = place > fullest and len(here) > 1
            found[name] = sum(beside) / len(beside) + (turn - (len(here) - 1) / 2 if is_crowded else 0)
    return found


def assets() -> str:
    """Return the assets of a night with an arrow to each from what it depends on."""
    proposing, parts = {phase.name for phase in PHASES}, list[str]()
    at = {name: (EDGE + COLUMN * column(name), EDGE + ROW * row) for name, row in rows().items()}
    for name, (x, y) in at.items():
        for parent in sorted(drawn_parents(name)):
            start, top = at[parent][0] + BOX, at[parent][1] + HEIGHT / 2
            end, turn = y + HEIGHT / 2, start + COLUMN - BOX - 8
            bend = start + (COLUMN - BOX) / 2
            parts += [arrow(f"M{start:g} {top:g}C{bend:g} {top:g} {bend:g} {end:g} {turn:g} {end:g}H{x - 2:g}")]
    for name, (x, y) in at.items():
        kind = "blue" if name in proposing else "gate" if name == "plan" else "green" if name == "applied" else "box"
        first, parted, last = name.rpartition("_")
        lines = ((f"{first}{parted}", 15), (last, 29)) if first else ((last, 22),)
        parts += [f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{BOX}" height="{HEIGHT}" rx="8"/>']
        parts += [f'<text x="{x + BOX / 2:g}" y="{y + down:g}" font-size="12">{words}</text>' for words, down in lines]
    width = 2 * EDGE + BOX + COLUMN * max(map(column, at))
    height = 2 * EDGE + HEIGHT + ROW * max(rows().values())
    return drawing("The assets of a night, from the snapshot to the report", round(height), parts, width=width)


def drawing(title: str, height: int, parts: Iterable[str], *, width: int) -> str:
    """Return a whole picture: its title for those who can't see it, its colours, and what is drawn."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{escape(title)}" font-family="{FONT}" font-size="14">'
    )
    body = "\n".join(f"  {part}" for part in parts)
    return f"{head}\n  <title>{escape(title)}</title>\n  <style>{STYLE}  </style>\n  {ARROW}\n{body}\n</svg>\n"


def arrow(path: str) -> str:
    """Return a line with a head at its end."""
    return f'<path class="line" d="{path}" marker-end="url(#arrow)"/>'


def night_page() -> str:
    """Return the reference of phases and tables."""
    rows = [
        f"| `{phase.name}` | {listed(kind.name for kind in phase.kinds)} | {listed(phase.reads)} "
        f"| {listed(phase.limits) or '—'} |"
        for phase in PHASES
    ]
    made = [schema for name, schema in SCHEMAS.items() if name not in SNAPSHOT_TABLES]
    return "\n".join(
        [
            "# Phases and tables of a night",
            "",
            "Generated from `nous_pipelines/phases/phase_table.py` by `make docs`. Of two proposals that want one "
            "memory the one whose kind comes first here has it; the other waits a night.",
            "",
            "| phase | proposes | reads | policy fields |",
            "|---|---|---|---|",
            *rows,
            "",
            *section("Tables of a snapshot", SNAPSHOT_TABLES.values()),
            *section("Tables made on the way", made),
        ]
    )


def listed(names: Iterable[str]) -> str:
    """Return names as code, with commas."""
    return ", ".join(f"`{name}`" for name in names)


def section(title: str, schemas: Iterable[TableSchema]) -> list[str]:
    """Return the lines of some tables, a table for each."""
    lines = [f"## {title}", ""]
    for schema in schemas:
        lines += [f"### {schema.name}", "", schema.meaning, "", "| column | type | what it holds |", "|---|---|---|"]
        lines += [f"| `{name}` | {dtype} | {schema.meanings[name]} |" for name, dtype in schema.items()] + [""]
    return lines
