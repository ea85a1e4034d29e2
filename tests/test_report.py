from __future__ import annotations

import json
from dataclasses import replace
from datetime import date

import polars as pl
import pytest
from drawn import NIGHT, drawn, drawn_facts, merge

from nous_online.errors import Unavailable
from nous_pipelines.files import NightFiles
from nous_pipelines.proposals import planned
from nous_pipelines.report import KeptApart, Merged, NightReport, night_report, stored
from nous_pipelines.snapshot import open_snapshot
from nous_pipelines.transforms.merging import JUDGED

FACTS = """
    id | agent_id | content                       | state
    ---|----------|-------------------------------|-----------
    a  | aria     | The office opens at nine.     | active
    b  | aria     | The office opens at nine      | active
    c  | aria     | Backups are kept for 30 days. | active
    d  | aria     | Backups are kept for 14 days. | active
    e  | aria     | Old news.                     | superseded
    x  | ben      | Cats like fish.               | active
    y  | ben      | Cats like fish.               | active
"""
PAIRS = """
    agent_id | left_id | right_id | similarity | verdict    | reason         | model
    ---------|---------|----------|------------|------------|----------------|------
    aria     | a       | b        | 0.99       | same       | same words     | offline
    aria     | a       | c        | 0.99       | unsure     | close          | offline
    aria     | c       | d        | 0.97       | updates    | number 30 ≠ 14 | offline
"""
EVIDENCE = {"pairs": [{"a": "a", "b": "b", "similarity": 0.9871}]}
MERGES = (merge("a", "b", evidence=EVIDENCE), merge("x", "y", agent_id="ben", evidence={"pairs": []}))
CHECKED = [
    {"name": "effect", "passed": True, "description": "3 similar pairs", "metadata": {}},
    {"name": "canaries", "passed": False, "description": "1 of 10 wrong", "metadata": {}},
]


@pytest.fixture
def files(tmp_path):
    """The files of a night that proposed two merges and kept two pairs apart."""
    written = NightFiles(tmp_path)
    plan = planned(NIGHT, MERGES, agent_ids=[], policy={})
    written.write_json("plan", plan.as_dict())
    written.write_json("checks", {"hash": plan.hash, "results": CHECKED})
    written.write_table("judgements", drawn(PAIRS, JUDGED))
    return written


class Drawn:
    """A snapshot whose facts are drawn."""

    def table(self, name):
        return {"facts": drawn_facts(FACTS)}[name]


def report_of(files, **states):
    texts = dict(drawn_facts(FACTS).select("id", "content").iter_rows())
    decided = [
        replace(stored(proposal, texts), state=states[proposal.agent_id])
        for proposal in MERGES
        if proposal.agent_id in states
    ]
    return night_report(Drawn(), files, decided)


def test_a_report_says_what_was_merged_and_what_was_kept_apart_and_why(files):
    report = report_of(files, aria="applied", ben="applied")

    assert {(merged.kept, merged.retired, merged.state) for merged in report.merged} == {
        ("The office opens at nine.", ("The office opens at nine",), "applied"),
        ("Cats like fish.", ("Cats like fish.",), "applied"),
    }
    assert [(apart.verdict, apart.reason) for apart in report.kept_apart] == [
        ("updates", "number 30 ≠ 14"), ("unsure", "close")
    ]  # fmt: skip
    assert report.checks == tuple(CHECKED)


def test_what_was_taken_back_or_went_stale_is_not_counted_as_merged(files):
    report = report_of(files, aria="undone", ben="stale")

    assert report.counts == {
        "active_before": 6, "active_after": 6, "merges": 0, "retired": 0, "kept_apart": 2, "unsure": 1, "stale": 1,
        "refused": 0, "undone": 1,
    }  # fmt: skip


def test_what_an_earlier_run_of_the_night_decided_stays_in_the_report(files):
    files.write_json("plan", planned(NIGHT, [], agent_ids=[], policy={}).as_dict())

    report = report_of(files, aria="applied")

    assert [merged.kept for merged in report.merged] == ["The office opens at nine."]


def test_a_dry_run_leaves_the_files_of_the_night_as_they_were(files, tmp_path):
    dry = NightFiles(tmp_path, is_dry_run=True)

    dry.write_json("plan", planned(NIGHT, [], agent_ids=[], policy={}).as_dict())

    assert len(files.read_plan().proposals) == 2
    assert dry.read_plan().proposals == ()


def test_before_a_plan_is_applied_its_merges_are_proposed(files):
    report = report_of(files)

    assert {merged.state for merged in report.merged} == {"proposed"}
    assert (report.counts["active_before"], report.counts["active_after"]) == (6, 4)


def test_the_markdown_names_texts_reasons_checks_and_the_way_back(files):
    text = report_of(files, aria="applied", ben="applied").markdown

    for part in (
        "# Night 2026-06-01", "6 active memories before, 4 after", "## Merged (2)", "The office opens at nine.",
        "~~The office opens at nine~~", "said twice", "## Look alike, kept apart (2)", "number 30 ≠ 14",
        "✓ **effect** 3 similar pairs", "✗ **canaries** 1 of 10 wrong", "`nous undo --night 2026-06-01`",
        f"`{MERGES[0].id}`",
    ):  # fmt: skip
        assert part in text


@pytest.mark.parametrize("state", ["undone", "stale"])
def test_the_markdown_shows_what_was_taken_back_as_such(files, state):
    lines = report_of(files, aria=state, ben="applied").markdown.splitlines()

    assert [state in line for line in lines if line.startswith("- **The office")] == [True]
    assert [state in line for line in lines if line.startswith("- **Cats")] == [False]


def test_the_markdown_of_a_large_night_stays_readable():
    merged = tuple(Merged(str(n), "aria", f"kept {n}", ("gone",), "said twice", 1.0, "applied") for n in range(500))
    apart = tuple(KeptApart("aria", f"a {n}", "b", 0.95, "name", "compatible") for n in range(500))

    text = NightReport(NIGHT, "0" * 64, {"aria": 2000}, merged, apart, ()).markdown

    assert "## Merged (500)" in text
    assert text.count("said twice") == text.count("compatible") == 20


def test_a_report_of_one_agent_speaks_of_nobody_else(files):
    report = report_of(files, aria="applied", ben="applied")

    bens = report.of_agent("ben")

    assert bens.active_by_agent == {"ben": 2}
    assert [merged.kept for merged in bens.merged] == ["Cats like fish."]
    assert bens.kept_apart == ()
    assert "office" not in bens.markdown
    assert report.of_agent(None) is report


def test_a_similarity_of_what_is_not_the_same_never_reads_as_one(files):
    table = drawn(PAIRS, JUDGED).with_columns(similarity=pl.lit(1.0, pl.Float32))
    files.write_table("judgements", table)

    assert "1.00" not in report_of(files).markdown


@pytest.mark.parametrize("name", ["plan.json", "checks.json", "judgements.parquet"])
def test_a_damaged_file_is_named_with_the_way_out(files, name):
    (files.folder / name).write_bytes(b"{")

    with pytest.raises(Unavailable, match=rf"{name} in .* can't be read .*; run the night again"):
        report_of(files)


def test_files_that_cannot_be_written_are_named(tmp_path):
    (tmp_path / "run").write_text("a file")

    with pytest.raises(Unavailable, match=r"plan\.json can't be written"):
        NightFiles(tmp_path).write_json("plan", {})
    with pytest.raises(Unavailable, match=r"pairs\.parquet can't be written"):
        NightFiles(tmp_path).write_table("pairs", pl.DataFrame())


def test_no_number_that_json_cannot_hold_reaches_a_file(files):
    with pytest.raises(ValueError, match="JSON compliant"):
        files.write_json("plan", {"similarity": float("nan")})

    assert json.loads((files.folder / "plan.json").read_text())["night"] == NIGHT.isoformat()
    assert list(files.folder.glob("*.part")) == []


def test_a_folder_without_a_snapshot_has_none(tmp_path):
    assert open_snapshot(tmp_path) is None


def test_another_night_of_the_same_report_is_another_report(files):
    report = report_of(files)

    assert replace(report, night=date(2026, 6, 2)).markdown != report.markdown
