"""The plots of a report as Markdown: each a whole SVG document that says what it shows."""

from __future__ import annotations

from datetime import date, timedelta
from xml.etree import ElementTree

import pytest

from nous_pipelines.reports.html_report import MOST_NIGHTS, PLOTS, Chart, Plot, chart, svg_of

SVG = "{http://www.w3.org/2000/svg}"
FIGURES = [(date(2026, 6, 1) + timedelta(days=day), {"a": float(day), "b": 3.0}) for day in range(MOST_NIGHTS)]


def read(plot: Chart) -> ElementTree.Element:
    """Return the picture of a chart as a reader of SVG sees it."""
    return ElementTree.fromstring(svg_of(plot))  # noqa: S314 (our own)


@pytest.mark.parametrize("nights", [1, 2, MOST_NIGHTS])
def test_a_chart_is_drawn_with_its_title_its_dates_and_the_last_value_of_every_line(nights):
    lines = {"active <&>": lambda figures: figures["a"], "archived": lambda figures: figures["b"]}

    root = read(chart(Plot("Facts & figures", "", lines), FIGURES[:nights]))

    texts = ["".join(each.itertext()) for each in root.iter(f"{SVG}text")]
    assert texts[0] == "Facts & figures"
    assert texts[-1].split("   ") == [f"active <&> {nights - 1}", "archived 3"]
    assert f"{FIGURES[nights - 1][0]:%d %b}".lstrip("0") in texts
    assert len(list(root.iter(f"{SVG}circle"))) == len(lines)


def test_no_plot_of_the_report_has_more_lines_than_there_are_colours():
    for plot in PLOTS:
        root = read(chart(plot, FIGURES))

        assert len(list(root.iter(f"{SVG}circle"))) == len(plot.lines)
