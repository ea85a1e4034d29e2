"""The report as a page: whole, inert, and readable without anything else."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from datetime import timedelta
from html.parser import HTMLParser

import pytest
from drawn import NIGHT

from nous_online.core.errors import Unavailable
from nous_pipelines.reports.costs import Cost, short
from nous_pipelines.reports.html_report import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    UNFOLDED,
    WIDTH,
    Plot,
    chart,
    dollars,
    page_of,
    percent,
    write_page,
)
from nous_pipelines.reports.report import (
    Changed,
    KeptApart,
    NightFigures,
    NightQuestions,
    NightReport,
    Offender,
    PhaseAccount,
    PolicyUsed,
    Quoted,
    ReportEntry,
    Stopped,
    WaitingProposal,
)
from nous_pipelines.reports.text_reports import markdown_of, show_report

HOSTILE = """<script>alert("x")</script><img src=x onerror=alert(1)> " ' & {{ 7 * 7 }} javascript:alert(1)"""


class Outline(HTMLParser):
    """What a page is made of: its elements with their attributes, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in {"meta", "br"}:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in {"script", "style"}:
            self.text += data


def entry(kind: str = "merge", *, state: str = "applied", number: int = 0, text: str = "nine") -> ReportEntry:
    """Return one entry of a report."""
    changed = Changed("fact", "b", f"{text} again", "active", f"superseded by “{text}”")
    outcome = "changed since" if state == "stale" else None
    quoted = {text: 2, f"{text} o'clock": 1} if kind == "merge" else {}
    said = tuple(Quoted("aria", f"p{number}", words, times) for words, times in quoted.items())
    told = (text, f"{text} again")
    return ReportEntry(f"p{number}", "aria", kind, state, f"said twice {text}", outcome, told, (changed,), said)


def report(*, text: str = "nine", **changes: object) -> NightReport:
    """Return a report with something in every section, all of whose texts hold `text`."""
    figures = {"facts_active": 10.0, "duplicates_092": 3.0, "tokens_active": 4800.0, "cost_usd": 0.25}
    values = {
        "night": NIGHT,
        "plan_hash": "0" * 64,
        "agent_ids": (),
        "active_by_agent": {"aria": 12, text: 3},
        "figures": {
            "merge": {"applied": {"proposals": 30, "memories": 60, "leaving": 30}},
            "archive": {"stale": {"proposals": 1, "memories": 1, "leaving": 1}},
        },
        "entries": (entry(text=text), entry("archive", state="stale", text=text)),
        "kept_apart": (KeptApart("aria", text, f"{text} b", 0.97, f"number {text}", "updates"),),
        "apart_by_verdict": {"updates": 1},
        "waiting": (WaitingProposal("w", "aria", "promote", f"used {text}", (text,)),),
        "waiting_by_kind": {"promote": 1},
        "accounts": (PhaseAccount("usage_ranks", 10, 4, {f"pinned {text}": 6}),),
        "checks": ({"name": "effect", "passed": True, "description": f"fine {text}"},),
        "stopped": (),
        "policy": PolicyUsed({"rank_step": 0.1}, {text: {"probe_days": 5}}),
        "costs": (Cost(None, f"judge {text}", "small", None, "batch", 3, 1, 2, 1000, 200, 30, 4, 0.25, 0.5),),
        "health": tuple(
            NightFigures(NIGHT - timedelta(days=day), {**figures, "facts_active": 10.0 + day}) for day in (2, 1, 0)
        ),
    }
    return NightReport(**{**values, **changes})


def test_the_first_line_says_how_many_memories_past_their_age_stay_and_why():
    left = {"a person said it": 87, "such memories still come to use": 83}

    first = report(accounts=(PhaseAccount("forgetting_proposals", 175, 5, left),)).summary

    assert "; 170 memories past their age stay: 87 (a person said it), 83 (such memories still come to use); " in first


def test_a_page_holds_every_section_with_its_texts():
    outline = Outline(page_of(report()))

    for part in (
        "The night of Monday, 1 June 2026", "30 memories merged into 30", "nine again", "said twice nine",
        "said 3 times, in these words", "nine o'clock", "nous undo --proposal p0", "changed since",
        "used nine", "number nine", "0.970", "6 pinned nine", "fine nine",
        "rank_step = 0.1 (default 0.05)", "nine: probe_days = 5", "judge nine", "0.2500 USD", "up to 0.5000 USD",
        "1.2k",
        "nous undo --night 2026-06-01 --kind merge", "nous undo --night 2026-06-01 --agent NAME",
        "nous diff --night 2026-06-01",
    ):  # fmt: skip
        assert part in outline.text
    assert outline.open == []


def test_a_page_loads_nothing_and_leads_nowhere():
    outline = Outline(page_of(report()))

    assert [
        (tag, name, value)
        for tag, attributes in outline.elements
        for name, value in attributes.items()
        if name in {"src", "srcset", "action", "background", "poster", "data"}
        or (name == "href" and not str(value).startswith("#"))
    ] == []
    assert not re.search(r"@import|url\(|https?:", page_of(report()))


def test_what_a_memory_says_stays_text():
    hostile, plain = Outline(page_of(report(text=HOSTILE))), Outline(page_of(report()))

    assert [tag for tag, _ in hostile.elements] == [tag for tag, _ in plain.elements]
    assert not [name for _, attributes in hostile.elements for name in attributes if name.startswith("on")]
    assert HOSTILE in hostile.text


def test_only_our_own_script_may_run():
    page = page_of(report(text=HOSTILE))
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)

    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()

    assert f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'" in page.replace("&#39;", "'")


def test_the_commands_stand_there_without_a_script_and_the_buttons_wait_for_one():
    outline = Outline(page_of(report()))

    buttons = [attributes for tag, attributes in outline.elements if tag == "button"]

    assert buttons
    assert all("hidden" in attributes for attributes in buttons)
    assert outline.text.count("nous undo") == len(buttons)


def test_a_long_section_folds_and_says_how_many_more_there_are():
    entries = tuple(entry(number=number) for number in range(20))

    text = Outline(page_of(report(entries=entries))).text

    assert f"{20 - UNFOLDED} more" in text
    assert "10 more: nous diff --night 2026-06-01 shows them all" in " ".join(text.split())


def test_a_night_that_was_stopped_says_so_first():
    stop = Stopped("protected", "1 pinned memory would leave", (Offender("id-1", "Never on Fridays"),), "Unpin it.")

    text = " ".join(Outline(page_of(report(stopped=(stop,)))).text.split())

    assert text.index("Stopped by the check “pins and trust”: nothing was applied") < text.index("The store")
    assert "Never on Fridays id-1" in text
    assert "What to do. Unpin it." in text


def test_what_needs_a_person_stands_at_the_head_of_every_report(capsys):
    figures = {"facts_active": 10.0}
    asking = report(
        stopped=(Stopped("protected", "1 pinned memory would leave", (), "Unpin it."),),
        health=(NightFigures(NIGHT, figures),),
        asked=NightQuestions(contradictions=2, procedures=1),
    )
    show_report(asking)
    shown = [page_of(asking), markdown_of(asking), capsys.readouterr().out]
    show_report(report())
    calm = [page_of(report()), markdown_of(report()), capsys.readouterr().out]

    assert asking.needs[0] == "the check “pins and trust” stopped the night: nothing was applied"
    assert asking.needs[1].startswith("2 contradictions are open: `nous contradictions`")
    assert asking.needs[2].startswith("1 procedure failed more often than it worked")
    for text in (" ".join(Outline(shown[0]).text.split()), *(" ".join(each.split()) for each in shown[1:])):
        assert text.index("Needs you") < text.index("2 contradictions are open") < text.rindex("merged into")
    assert ("Nothing needs you" in calm[0], "Needs you" in calm[1]) == (True, False)
    assert "Needs you nothing" in " ".join(calm[2].split())


def test_an_empty_night_before_any_was_measured_is_a_page_too():
    empty = NightReport(NIGHT, "0" * 64, ("aria",), {}, {})

    outline = Outline(page_of(empty))

    assert "nothing to change; 0 → 0 active facts" in outline.text
    assert "Not measured yet" in outline.text
    assert [tag for tag, _ in outline.elements if tag == "figure"] == []


def test_the_tiles_say_what_changed_since_the_night_before():
    outline = Outline(page_of(report()))

    assert "Active facts10\N{MINUS SIGN}1" in outline.text
    labels = [attributes["aria-label"] for tag, attributes in outline.elements if "aria-label" in attributes]
    assert "Facts, 3 nights from 2026-05-30 to 2026-06-01: active 12 → 10; superseded 0 → 0; archived 0 → 0" in labels


def test_a_page_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(Unavailable, match=r"report\.html can't be written .* name another file"):
        write_page(tmp_path / "missing" / "report.html", report())


def test_the_same_report_is_the_same_page(tmp_path):
    first, second = write_page(tmp_path / "a.html", report()), write_page(tmp_path / "b.html", report())

    assert first.read_bytes() == second.read_bytes()
    assert page_of(replace(report(), night=NIGHT + timedelta(days=1))) != page_of(report())


# --- charts ---

PLOT = Plot("Facts", "", {"active": lambda figures: figures["active"]})


def drawn_line(*values: float):
    figures = [(NIGHT + timedelta(days=day), {"active": value}) for day, value in enumerate(values)]
    return chart(PLOT, figures)


def test_a_line_goes_from_edge_to_edge_and_stays_in_its_box():
    (line,) = drawn_line(0, 7, 12).lines

    assert [x for x, _, _ in line.points] == [LEFT, (LEFT + WIDTH - RIGHT) / 2, WIDTH - RIGHT]
    assert [TOP <= y <= HEIGHT - BOTTOM for _, y, _ in line.points] == [True] * 3
    assert line.points[0][1] == HEIGHT - BOTTOM
    assert line.points[2][2] == "2026-06-03: active 12"


def test_the_axis_begins_at_nothing_and_ends_above_the_highest_value():
    assert [tick.label for tick in drawn_line(3, 1150).y] == ["0", "500", "1k", "1.5k", "2k"]
    assert [tick.label for tick in drawn_line(0, 0).y] == ["0", "1", "2", "3", "4"]


def test_one_night_is_a_point_in_the_middle():
    (line,) = drawn_line(5).lines

    assert [x for x, _, _ in line.points] == [(LEFT + WIDTH - RIGHT) / 2]


def test_nights_that_are_missing_leave_room():
    figures = [(NIGHT + timedelta(days=day), {"active": 1.0}) for day in (0, 1, 10)]

    (line,) = chart(PLOT, figures).lines

    left, second, right = (x for x, _, _ in line.points)
    assert second - left == pytest.approx((right - left) / 10, abs=0.1)


def test_many_nights_name_a_few_of_them_the_last_among_them():
    ticks = drawn_line(*range(90)).x

    assert len(ticks) <= 5
    assert ticks[-1].label == "29 Aug"


@pytest.mark.parametrize(
    ("value", "told"),
    [(0, "0"), (0.25, "0.25"), (7, "7"), (999, "999"), (1200, "1.2k"), (48_300, "48.3k"), (2e6, "2M")],
)
def test_numbers_are_short(value, told):
    assert short(value) == told


def test_shares_and_amounts_are_written_as_such():
    assert (percent(0.022), percent(0.5), dollars(1234.5)) == ("2.2 %", "50 %", "$1,234.50")
    assert (dollars(0), dollars(0.25), dollars(0.0075)) == ("$0.00", "$0.25", "$0.0075")


def test_the_head_tells_how_many_of_the_open_contradictions_the_night_found():
    assert (
        report(asked=NightQuestions(doubts=2)).needs[0].startswith("2 pairs of facts, of which one perhaps replaces ")
    )
    (need,) = report(asked=NightQuestions(contradictions=22, found=9)).needs

    assert need.startswith("22 contradictions are open, 9 of them found tonight: `nous contradictions`")


@pytest.mark.parametrize("agents", [(), ("aria",)])
def test_the_checks_of_a_report_of_one_agent_are_said_to_be_of_all(capsys, agents: tuple[str, ...]):
    figures = NightFigures(NIGHT, {"facts_active": 10.0, "contradictions_open": 1.0})
    checked = {"name": "protected", "passed": True, "description": "every memory that leaves may leave"}
    one = report(agent_ids=agents, checks=(checked,), health=(figures,))

    show_report(one)
    shown = [page_of(one), markdown_of(one), capsys.readouterr().out]

    assert [("of all agents of this night" in text) for text in shown] == [bool(agents)] * 3
    assert "The store as the night left it" in shown[2]
    assert "contradictions open then: 1" in " ".join(shown[2].split())
