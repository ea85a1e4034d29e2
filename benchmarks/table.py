"""The published tables, written from the kept results: all rows, those beside others, and ten for the README."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from pathlib import Path

from benchmarks.goals import GOALS
from benchmarks.results import KEPT, ROOT, Result, is_clean, read
from benchmarks.rows import CONTRACT, ROWS, Row

BEGIN, END = "<!-- results: written by `python -m benchmarks table` -->", "<!-- end of results -->"
NOT_MEASURED = "not measured at this version"
ALL_HEAD = ("what is measured", "n", "goal", "Nous (95 % interval)", "peers in the same run", "seen before")
BESIDE_HEAD = ("what is measured", "n", "Nous (95 % interval)", "the others", "seen before")
SHORT_HEAD = ("", "what is measured", "goal", "Nous", "peers in the same run", "seen before")


def pages(results: Mapping[str, Result]) -> dict[Path, str]:
    """Return each page that shows results, as it should be."""
    wanted = {
        ROOT / "README.md": "\n".join(short_table(results)),
        ROOT / "docs" / "benchmarks.md": "\n".join(all_tables(results)),
        ROOT / "docs" / "others.md": "\n".join(tables_beside(results)),
    }
    return {page: with_table(page.read_text("utf-8"), table) for page, table in wanted.items()}


def write_pages(folder: Path = KEPT) -> list[str]:
    """Write the tables of the results in a folder; return what was written."""
    results = read(folder)
    for page, text in pages(results).items():
        page.write_text(text, encoding="utf-8")
    missing = [name for name in GOALS if name not in results]
    return [
        f"{len(results)} results are in README.md, docs/benchmarks.md and docs/others.md",
        *([f"not measured: {', '.join(missing)}"] if missing else []),
        *(f"NOT FIT TO BE PUBLISHED: {fault}" for fault in faults(results)),
    ]


def faults(results: Mapping[str, Result]) -> list[str]:
    """Return why results are not fit to be published: quick runs, unknown code, keys a row or the contract misses."""
    found: list[str] = []
    for name, result in results.items():
        rows = [row for row in ROWS if row.benchmark == name]
        published = {metric for row in rows for metric in row.metrics}
        beside = {key for row in rows for _, pattern in row.peers for key in row.keys(pattern)}
        known = result["metrics"].keys() | result["peers"].keys()
        left_out = (known & set(CONTRACT.get(name, "").split())) - published - beside
        found += [f"{name}: a quick run"] if result["quick"] else []
        found += [f"{name}: measured at {result['commit']}"] if not is_clean(result) else []
        found += [f"{name}: {key} was measured and is in no row" for key in sorted(left_out)]
        found += [f"{name}: a row names {key}, which was not measured" for key in sorted(published - known)]
    return found


def with_table(text: str, table: str) -> str:
    """Return a page with another table between its marks."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table}\n{END}{after}"


def short_table(results: Mapping[str, Result]) -> Iterator[str]:
    """Yield the lines of the README's table, and where its figures were measured."""
    shown = [row for row in ROWS if row.is_short]
    yield from _head(SHORT_HEAD)
    for row in shown:
        result = results.get(row.benchmark)
        bare = result | {"intervals": {}} if result else None
        yield _line([row.benchmark, row.what, goals_of(row), own(row, bare), peers(row, bare), row.seen])
    yield ""
    measured = [results[name] for name in dict.fromkeys(row.benchmark for row in shown) if name in results]
    yield origins(measured) or NOT_MEASURED.capitalize() + "."


def all_tables(results: Mapping[str, Result]) -> Iterator[str]:
    """Yield the lines of all tables, one for each benchmark."""
    for name, rows in groupby(ROWS, key=lambda row: row.benchmark):
        result = results.get(name)
        yield f"### {name}\n"
        if result:
            yield f"{origin(result)}; [the whole run](../benchmarks/results/{name}.json)\n"
        yield from _head(ALL_HEAD)
        for row in rows:
            yield _line(
                [row.what, cases_of(row, result), goals_of(row), own(row, result), peers(row, result), row.seen]
            )
        yield ""


def tables_beside(results: Mapping[str, Result]) -> Iterator[str]:
    """Yield the lines of the tables of what was measured beside somebody else in the same run."""
    measured = [row for row in ROWS if peers(row, results.get(row.benchmark))]
    for name, rows in groupby(measured, key=lambda row: row.benchmark):
        yield f"### {name}\n"
        yield f"{origin(results[name])}; [the whole run](../benchmarks/results/{name}.json)\n"
        yield from _head(BESIDE_HEAD)
        for row in rows:
            result = results[name]
            yield _line([row.what, cases_of(row, result), own(row, result), peers(row, result), row.seen])
        yield ""


def origin(result: Result) -> str:
    """Return when, at which commit and on which machine a result was measured."""
    return f"{day_of(result)}, commit `{result['commit']}`, {result['machine']}"


def origins(measured: Sequence[Result]) -> str:
    """Return the same of several results, each machine named once."""
    machines: defaultdict[str, list[Result]] = defaultdict(list)
    for result in sorted(measured, key=lambda each: each["date"]):
        machines[result["machine"]].append(result)
    told: list[str] = []
    for machine, own in machines.items():
        days, commits = dict.fromkeys(map(day_of, own)), dict.fromkeys(f"`{each['commit']}`" for each in own)
        told.append(f"{', '.join(days)}, commit {', '.join(commits)}, {machine}")
    return "; ".join(told)


def day_of(result: Result) -> str:
    """Return the day on which a result was measured."""
    return f"{datetime.fromisoformat(result['date']):%-d %B %Y}"


def own(row: Row, result: Result | None) -> str:
    """Return our figures, bold where a goal is met, with "missed" where one is not."""
    if result is None or not any(metric in result["metrics"] for metric in row.metrics):
        return NOT_MEASURED
    goals = GOALS.get(row.benchmark, {})
    cells: list[str] = []
    for metric in row.metrics:
        cell, goal = figure(result, metric), goals.get(metric)
        is_met = goal is not None and metric in result["metrics"] and goal.is_met_by(result["metrics"][metric])
        cells.append(f"**{cell}**" if is_met else f"{cell}, missed" if goal and cell != "-" else cell)
    return " / ".join(cells)


def peers(row: Row, result: Result | None) -> str:
    """Return the figures of the peers, each by its name."""
    if result is None:
        return ""
    told = [(name, [figure(result, key) for key in row.keys(pattern)]) for name, pattern in row.peers]
    return "; ".join(f"{name} {' / '.join(cells)}" for name, cells in told if set(cells) != {"-"})


def figure(result: Result, key: str) -> str:
    """Return one figure with its interval, "-" where there is none."""
    value = result["metrics"].get(key, result["peers"].get(key))
    if value is None:
        return "-"
    low, high = result["intervals"].get(key, (None, None))
    if low is None or low == high:
        return readable(value)
    return f"{readable(value)} ({readable(low)} to {readable(high)})"


def cases_of(row: Row, result: Result | None) -> str:
    """Return on how many cases each figure rests, once where it is the same."""
    counts = [result["n"].get(metric) for metric in row.metrics] if result else []
    told = ["-" if count is None else f"{count:,}" for count in counts]
    return "" if set(told) <= {"-"} else told[0] if len(set(told)) == 1 else " / ".join(told)


def goals_of(row: Row) -> str:
    """Return the goals of a row, "-" where a metric has none."""
    goals = [GOALS.get(row.benchmark, {}).get(metric) for metric in row.metrics]
    return " / ".join("-" if goal is None else str(goal) for goal in goals) if any(goals) else ""


def readable(value: float) -> str:
    """Write a number with about three digits."""
    if isinstance(value, int) or abs(value) >= 1_000:
        return f"{value:,.0f}"
    places = 1 if abs(value) >= 10 else 2 if abs(value) >= 2 else 3
    return f"{value:.{places}f}".rstrip("0").rstrip(".") if abs(value) >= 0.001 or not value else f"{value:.1g}"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _head(headings: Sequence[str]) -> Iterator[str]:
    yield _line(headings)
    yield "|" + "---|" * len(headings)
