from __future__ import annotations

import json
from uuid import UUID

import polars as pl
import pytest
from drawn import NIGHT
from reported import AGAIN, LONG, NINE, PROCEDURE, RELEASE, SHORT, TEN, reported_night

from nous_online.core.errors import Unavailable
from nous_pipelines.phases.phase import Phase
from nous_pipelines.phases.proposals import Change
from nous_pipelines.plan.night_files import NightFiles
from nous_pipelines.plan.planning import planned
from nous_pipelines.reports.text_reports import markdown_of, show_report
from nous_pipelines.snapshots.snapshot import open_snapshot

PAIRS = f"""
    left_id | right_id | similarity | verdict    | reason
    --------|----------|------------|------------|---------------
    {NINE}  | {AGAIN}  | 0.99       | same       | same words
    {NINE}  | {LONG}   | 0.99       | unsure     | close
    {LONG}  | {SHORT}  | 0.97       | updates    | number 30 ≠ 14
    {NINE}  | {TEN}    | 0.85       | updates    | number
"""


@pytest.fixture
def night(heart, night_database, tmp_path):
    """A night over a store with memories of every kind."""
    return reported_night(heart, night_database, tmp_path)


def of_every_kind(night):
    """Propose something of every kind."""
    night.merge(NINE, AGAIN)
    change = night.change
    heir = night.ids[SHORT]
    night.propose("supersede", SHORT, LONG, changes=[change("fact", LONG, state="superseded", superseded_by=heir)])
    pair = {"memory_a": night.ids[TEN], "memory_b": night.ids[NINE], "detected_at": "2026-06-02", "judgement": {}}
    night.propose(
        "contradiction",
        TEN,
        changes=[
            Change("contradiction", night.ids[TEN][::-1], set=pair),
            change("fact", TEN, contradiction_status="open"),
        ],
    )
    night.propose("tier", RELEASE, changes=[change("episode", RELEASE, compression_tier="summary", detail=None)])
    night.propose("promote", TEN, changes=[change("fact", TEN, rank_weight=1.25)])
    night.propose("procedure", PROCEDURE, changes=[change("procedure", PROCEDURE, state="review", review_reason="x")])
    night.propose("censor", "deploy on friday", changes=[change("censor", "deploy on friday", state="archived")])
    link = {"to_id": night.ids[TEN], "kind": "related", "weight": 0.83, "evidence": {}}
    night.propose("link", SHORT, changes=[Change("link", night.ids[SHORT], set=link)])


def moves(report, kind):
    """Return what becomes of each memory the entries of a kind change."""
    return [(changed.text, changed.move) for entry in report.of_kind(kind) for changed in entry.changed]


def test_every_kind_of_change_is_told_in_words(night):
    of_every_kind(night)
    night.proposals = [proposal for proposal in night.proposals if proposal.kind != "promote"]
    night.plan()

    report = night.report()

    assert moves(report, "merge") == [
        (NINE, "never confirmed → confirmed once"), (AGAIN, f"active → superseded by “{NINE}”")
    ]  # fmt: skip
    assert moves(report, "supersede") == [(LONG, f"active → superseded by “{SHORT}”")]
    assert moves(report, "contradiction") == [(TEN, f"contradicts “{NINE}”; both kept, open")]
    assert moves(report, "tier") == [(RELEASE, "raw → summary")]
    assert moves(report, "censor") == [("deploy on friday: it broke twice", "active → archived")]
    assert moves(report, "procedure") == [(PROCEDURE, "active → review")]
    assert moves(report, "link") == [(SHORT, f"linked to “{TEN}” (related, 0.83)")]


@pytest.mark.parametrize(
    ("kind", "columns", "move"),
    [
        ("promote", {"rank_weight": 1.25}, "weight 1.00 → weight 1.25"),
        ("demote", {"rank_weight": 0.7}, "weight 1.00 → weight 0.70"),
        ("archive", {"state": "archived"}, "active → archived"),
        ("share", {"scope": "project", "project_id": "shop"}, "scope private → scope project"),
    ],
)
def test_what_happens_to_one_memory_is_told_from_what_to_what(night, kind, columns, move):
    night.propose(kind, TEN, changes=[night.change("fact", TEN, **columns)])
    night.plan()

    assert moves(night.report(), kind) == [(TEN, move)]


def test_figures_count_what_is_in_force_and_what_became_of_the_rest(night):
    merge = night.merge(NINE, AGAIN)
    archive = night.propose("archive", LONG, changes=[night.change("fact", LONG, state="archived")])
    stale = night.propose("archive", TEN, changes=[night.change("fact", TEN, state="archived")])
    night.judge(PAIRS)
    night.plan()
    night.decide({merge.id: "applied", archive.id: "undone", stale.id: "stale"}, outcome="no")

    report = night.report()

    assert {name: count for name, count in report.counts.items() if count} == {
        "active_before": 5, "active_after": 4, "merges": 1, "retired": 1, "kept_apart": 2, "unsure": 1, "stale": 1,
        "undone": 1,
    }  # fmt: skip
    assert {(entry.state, entry.outcome) for entry in report.not_in_force} == {("stale", "no"), ("undone", "no")}
    assert report.summary == "1 memory merged into 1; 2 pairs of look-alikes kept apart; 5 → 4 active facts"
    assert report.apart_note == (
        "By their likeness alone all of these pairs would have been merged. 1 differs in something that matters, 1 is "
        "close but not certain: a wrong merge costs more than a second copy."
    )


def test_a_pair_below_the_agents_threshold_is_no_look_alike(night):
    night.judge(PAIRS)
    night.plan(policy={"candidate_similarity": 0.8, "agents": {"aria": {"candidate_similarity": 0.98}}})

    assert [(pair.a, pair.b, pair.reason) for pair in night.report().kept_apart] == [(NINE, LONG, "close")]


def test_known_differences_come_before_what_is_only_unsure(night):
    night.judge(PAIRS)
    night.plan()

    assert [pair.verdict for pair in night.report().kept_apart] == ["updates", "unsure"]


@pytest.mark.parametrize("state", ["applied", "undone", None])
def test_two_facts_of_which_one_replaced_the_other_are_not_kept_apart_while_that_holds(night, state):
    gone = night.change("fact", LONG, state="superseded", superseded_by=night.ids[SHORT])
    night.propose("supersede", LONG, SHORT, changes=[gone])
    night.judge(PAIRS)
    night.plan()
    if state:
        night.decide(state)

    report = night.report()

    others = [] if state in ("applied", None) else ["updates"]
    assert [pair.verdict for pair in report.kept_apart] == [*others, "unsure"]
    assert report.counts["kept_apart"] == len(report.kept_apart)


def test_a_night_that_was_taken_back_says_so_and_names_nothing_to_undo(night):
    night.merge(NINE, AGAIN)
    night.plan()
    night.decide("undone")

    report = night.report()

    assert (report.undo, report.undo_kind("merge")) == ((), ())
    assert report.undo_hint == "Nothing that this night did stands, so there is nothing to take back."


def test_before_a_plan_is_applied_its_changes_are_proposed(night):
    night.merge(NINE, AGAIN)
    night.plan()

    report = night.report()

    assert [entry.state for entry in report.entries] == ["proposed"]
    assert (report.counts["active_before"], report.counts["active_after"], report.counts["planned"]) == (5, 4, 1)


def test_what_an_earlier_run_of_the_night_decided_stays_in_the_report(night):
    night.merge(NINE, AGAIN)
    night.plan()
    night.decide()
    night.proposals = [night.propose("promote", TEN, changes=[night.change("fact", TEN, rank_weight=1.25)])]
    night.plan()

    assert [(entry.kind, entry.state) for entry in night.report().entries] == [
        ("merge", "applied"), ("promote", "proposed")
    ]  # fmt: skip


def test_a_proposal_decided_and_planned_again_is_told_once(night):
    night.merge(NINE, AGAIN)
    night.plan()
    night.decide()
    night.files.write_json("applied", {"hash": "of another plan"})

    assert [entry.state for entry in night.report().entries] == ["applied"]


def test_what_waits_is_told_with_its_kind_and_reason(night):
    night.merge(NINE, AGAIN)
    night.propose("promote", NINE, changes=[night.change("fact", NINE, rank_weight=1.25)], reason="used every day")
    night.plan()

    report = night.report()

    assert report.waiting_by_kind == {"promote": 1}
    assert [(each.kind, each.told, each.reason) for each in report.waiting] == [
        ("promote", (NINE,), "used every day")
    ]  # fmt: skip


def test_what_a_phase_left_alone_is_told_with_the_reasons(night):
    phase = Phase("usage_ranks")
    phase.add_eligible("aria", 7)
    phase.leave("aria", "below one step", 4)
    phase.leave("ben", "pinned", 1)
    phase.add_eligible("ben", 1)
    night.plan(phases=[phase])

    (everyone,), (arias,) = night.report().accounts, night.report(agent_ids=("aria",)).accounts

    assert (everyone.eligible, everyone.left) == (8, {"below one step": 4, "pinned": 1})
    assert (arias.eligible, arias.left) == (7, {"below one step": 4})


def test_a_report_of_one_agent_speaks_of_nobody_else(night):
    night.merge(NINE, AGAIN)
    night.judge(PAIRS)
    night.plan(policy={"agents": {"aria": {"rank_step": 0.1}}})
    night.decide()

    bens = night.report(agent_ids=("ben",))

    assert (bens.active_by_agent, bens.entries, bens.kept_apart, bens.policy.lines) == ({}, (), (), [])
    assert "office" not in markdown_of(bens)
    assert bens.undo == ()
    assert night.report(agent_ids=("aria",)).undo == (f"nous undo --night {NIGHT} --agent aria",)


def test_a_failed_night_says_what_stopped_it_whom_it_accuses_and_what_to_do(night):
    archive = night.propose("archive", LONG, changes=[night.change("fact", LONG, state="archived")], reason="unused")
    named = f"2 pinned memories would leave: {night.ids[LONG]}, {archive.id}"
    checks = [
        {"name": "protected", "passed": False, "description": named, "metadata": {}},
        {"name": "blast_radius", "passed": False, "description": "too many", "metadata": {}},
        {"name": "effect", "passed": True, "description": "fine", "metadata": {}},
    ]
    night.plan(checks=checks, policy={"max_leaving_share": 0.4})

    pinned, radius = night.report().stopped

    assert [(each.id, each.text) for each in pinned.offenders] == [
        (night.ids[LONG], LONG), (str(archive.id), "archive proposal: unused")
    ]  # fmt: skip
    assert "Unpin the memories" in pinned.advice
    assert "max_leaving_share (0.4 now)" in radius.advice


def test_the_policy_is_told_where_it_is_not_the_default(night):
    night.plan(policy={"rank_step": 0.1, "probe_days": 30, "agents": {"aria": {"unused_after_days": 10}}})

    assert night.report().policy.lines == [
        "rank_step = 0.1 (default 0.05)", "aria: unused_after_days = 10 (default 90)"
    ]  # fmt: skip


def test_what_the_night_cost_is_told_by_purpose_failed_calls_included(night, owner):
    owner.execute("""
        insert into heart.llm_requests (agent_id, night, purpose, model, state, input_tokens, output_tokens, cost_usd)
        values ('aria', '2026-06-01', 'judge', 'small', 'imported', 100, 20, 0.02),
               ('aria', '2026-06-01', 'judge', 'small', 'failed', 0, 0, 0.01),
               ('aria', '2026-05-31', 'judge', 'small', 'imported', 100, 20, 5)""")
    night.plan()

    (cost,) = night.report().costs

    assert (cost.purpose, cost.requests, cost.failed, cost.tokens) == ("judge", 2, 1, 120)
    assert night.report().cost_usd == pytest.approx(0.03)
    assert "- **judge** 0.0300 USD for 2 requests and 120 tokens, 1 failed (small, online)" in markdown_of(
        night.report()
    )


def test_what_is_still_to_come_is_told_apart_from_what_was_paid(night, owner, capsys):
    owner.execute("""
        insert into heart.llm_requests (agent_id, night, purpose, model, state, is_batch, request_count, estimated_usd)
        values ('aria', '2026-06-01', 'judge', 'small', 'submitted', true, 40, 0.02)""")
    night.plan()

    show_report(night.report())

    told = " ".join(capsys.readouterr().out.split())
    assert "judge: 0.00 USD for 40 requests and 0 tokens; 40 under way, 0.0200 USD at the most" in told


def test_many_entries_are_cut_and_counted_whole(night):
    night.ids |= {f"room {number}": str(UUID(int=number)) for number in range(60)}
    for number in range(0, 60, 2):
        night.merge(f"room {number}", f"room {number + 1}")
    night.plan()

    planned_report, whole = night.report(shown=4), night.report(shown=None)
    night.decide()

    assert (len(planned_report.entries), planned_report.counts["retired"], len(whole.entries)) == (4, 30, 30)
    assert (len(night.report(shown=4).entries), night.report(shown=4).counts["retired"]) == (4, 30)
    assert markdown_of(night.report()).count("said twice") == 20


def test_the_markdown_names_texts_reasons_checks_and_the_way_back(night):
    merge = night.merge(NINE, AGAIN)
    night.judge(PAIRS)
    night.plan(checks=[{"name": "effect", "passed": True, "description": "3 similar pairs", "metadata": {}}])
    night.decide()

    text = markdown_of(night.report())

    for part in (
        "# Night 2026-06-01", "5 → 4 active facts", "## Merged (1 memory merged into 1)", NINE, AGAIN, "said twice",
        "## Look alike, kept apart (2)", "number 30 ≠ 14", "✓ **every row is accounted for** 3 similar pairs",
        f"`{merge.id}`", "`nous undo --night 2026-06-01`", "`nous undo --night 2026-06-01 --kind merge`",
    ):  # fmt: skip
        assert part in text


@pytest.mark.parametrize("state", ["undone", "stale"])
def test_the_markdown_shows_what_was_taken_back_as_such(night, state):
    night.merge(NINE, AGAIN)
    night.plan()
    night.decide(state)

    text = markdown_of(night.report())

    assert f"- **{state}** {NINE}" in text
    assert "## Merged" not in text


def test_a_similarity_of_what_is_not_the_same_never_reads_as_one(night):
    night.judge(PAIRS.replace("0.97", "1.00"))
    night.plan()

    assert "1.00" not in markdown_of(night.report())
    assert "0.999" in markdown_of(night.report())


def test_a_memory_erased_since_leaves_a_gap_and_no_error(night):
    night.merge(NINE, AGAIN)
    night.plan()
    document = json.loads((night.files.folder / "plan.json").read_text())
    document["proposals"][0]["targets"][1] = "00000000-0000-0000-0000-000000000000"
    night.files.write_json("plan", document)

    assert night.report().entries[0].told == (NINE, "(no longer stored)")


def test_a_damaged_file_is_named_with_the_way_out(night):
    night.plan()

    for name in ("account.json", "plan.json", "checks.json", "judgements.parquet"):
        path = night.files.folder / name
        kept = path.read_bytes()
        path.write_bytes(b"{")

        with pytest.raises(Unavailable, match=rf"{name} in .* can't be read .*; run the night again"):
            night.report()
        path.write_bytes(kept)

    path.unlink()
    with pytest.raises(Unavailable, match=r"judgements.parquet in .* can't be read .*; run the night again"):
        night.report()


def test_every_check_has_advice():
    from nous_pipelines.night_policy import NightPolicy
    from nous_pipelines.plan.checks import CHECKS, NOBODY_LEFT_OUT, TITLES
    from nous_pipelines.reports.reporting import ADVICE

    assert set(ADVICE) == {*CHECKS, "policy"}
    assert set(TITLES) >= {*CHECKS, NOBODY_LEFT_OUT}
    assert {name for _, names in ADVICE.values() for name in names} <= set(NightPolicy().as_dict())


# --- files between assets ---


def test_a_dry_run_leaves_the_files_of_the_night_as_they_were(tmp_path):
    files, dry = NightFiles(tmp_path), NightFiles(tmp_path, is_dry_run=True)
    files.write_json("plan", planned(NIGHT, [], agent_ids=["aria"], policy={}).as_dict())

    dry.write_json("plan", planned(NIGHT, [], agent_ids=["ben"], policy={}).as_dict())

    assert (files.read_plan().agent_ids, dry.read_plan().agent_ids) == (("aria",), ("ben",))


def test_files_that_cannot_be_written_are_named(tmp_path):
    (tmp_path / "run").write_text("a file")

    with pytest.raises(Unavailable, match=r"plan\.json can't be written"):
        NightFiles(tmp_path).write_json("plan", {})
    with pytest.raises(Unavailable, match=r"pairs\.parquet can't be written"):
        NightFiles(tmp_path).write_table("pairs", pl.DataFrame())


def test_no_number_that_json_cannot_hold_reaches_a_file(tmp_path):
    files = NightFiles(tmp_path)
    files.write_json("plan", {"night": NIGHT.isoformat()})

    with pytest.raises(ValueError, match="JSON compliant"):
        files.write_json("plan", {"similarity": float("nan")})

    assert files.read_json("plan") == {"night": NIGHT.isoformat()}
    assert list(files.folder.glob("*.part")) == []


def test_a_folder_without_a_snapshot_has_none(tmp_path):
    assert open_snapshot(tmp_path) is None
