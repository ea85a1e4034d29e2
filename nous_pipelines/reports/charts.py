"""Line charts as SVG geometry: figures over nights become paths, ticks and words a template can draw."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from math import ceil, floor, log10

WIDTH, HEIGHT = 520, 210
LEFT, RIGHT, TOP, BOTTOM = 46, 14, 10, 26
"""Room for the ticks around the plot, in user units."""
STEPS = 4
MOST_DATES = 5
SHORT = (1_000_000, "M"), (1_000, "k")

Figures = Sequence[tuple[date, Mapping[str, float]]]


def short(value: float) -> str:
    """Return a number in few characters: 1.2 k, 3.4 M."""
    for size, letter in SHORT:
        if abs(value) >= size:
            return f"{value / size:.1f}".removesuffix(".0") + letter
    return f"{value:.2f}".rstrip("0").rstrip(".")


def percent(value: float) -> str:
    """Return a share in percent."""
    return f"{100 * value:.1f}".removesuffix(".0") + " %"


def dollars(value: float) -> str:
    """Return an amount of US dollars: two decimals, or up to four where they say more."""
    whole, _, decimals = f"{value:,.4f}".partition(".")
    return f"${whole}.{decimals.rstrip('0'):0<2}"


@dataclass(frozen=True)
class ChartLine:
    """One figure over time."""

    label: str
    path: str
    area: str
    points: tuple[tuple[float, float, str], ...]
    """x, y, and what the point says when somebody points at it."""
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
    """What a reader who can't see it is told."""


@dataclass(frozen=True)
class Plot:
    """What a chart shows: its lines by label, each read off the figures of a night, and how numbers are written."""

    title: str
    note: str
    lines: Mapping[str, Callable[[Mapping[str, float]], float]]
    written: Callable[[float], str] = short
    least_top: float = 4.0
    """Where the vertical axis ends at least, so that ticks of small numbers are whole."""


def chart(plot: Plot, figures: Figures) -> Chart:
    """Lay out one chart over the nights given, oldest first; the vertical axis begins at 0."""
    values = {label: [read(each) for _, each in figures] for label, read in plot.lines.items()}
    top = nice_top(max([plot.least_top, *(value for row in values.values() for value in row)]))
    nights = [night for night, _ in figures]
    xs = [x_of(night, nights) for night in nights]
    return Chart(
        title=plot.title,
        note=plot.note,
        lines=tuple(line(label, row, nights, xs, top=top, plot=plot) for label, row in values.items()),
        x=tuple(Tick(x_of(night, nights), f"{night:%d %b}".lstrip("0")) for night in dated(nights)),
        y=tuple(Tick(y_of(top * step / STEPS, top), plot.written(top * step / STEPS)) for step in range(STEPS + 1)),
        summary=f"{plot.title}, {spoken(nights)}: "
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
    said = [f"{night.isoformat()}: {label} {plot.written(value)}" for night, value in zip(nights, values, strict=True)]
    return ChartLine(
        label=label,
        path=path,
        area=f"{path} L{xs[-1]:.1f} {bottom} L{xs[0]:.1f} {bottom} Z" if xs else "",
        points=tuple((round(x, 1), round(y, 1), told) for x, y, told in zip(xs, ys, said, strict=True)),
        last=plot.written(values[-1]) if values else "",
    )


def x_of(night: date, nights: Sequence[date]) -> float:
    """Return where a night lies; a single one lies in the middle."""
    span = (nights[-1] - nights[0]).days
    share = (night - nights[0]).days / span if span else 0.5
    return LEFT + share * (WIDTH - LEFT - RIGHT)


def y_of(value: float, top: float) -> float:
    """Return where a value lies; 0 at the bottom."""
    return HEIGHT - BOTTOM - value / top * (HEIGHT - TOP - BOTTOM)


def nice_top(highest: float) -> float:
    """Return the least round number that holds the highest value, so that ticks are round too."""
    power = 10.0 ** floor(log10(highest))
    return next(power * step for step in (1, 2, 4, 8, 12, 20) if power * step >= highest * 0.999999)


def dated(nights: Sequence[date]) -> list[date]:
    """Return the nights that are named below the axis, evenly apart, the last one among them."""
    step = max(1, ceil(len(nights) / MOST_DATES))
    return list(nights[::-1][::step])[::-1]


def spoken(nights: Sequence[date]) -> str:
    """Return a stretch of nights in words."""
    if not nights:
        return "no night measured yet"
    return f"night of {nights[0]}" if len(nights) == 1 else f"{len(nights)} nights from {nights[0]} to {nights[-1]}"
