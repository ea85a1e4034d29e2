"""What a report claims is exact: whom its commands reach, what its figures count; and its texts act nowhere."""

from __future__ import annotations

import re
from uuid import UUID

import pytest
from drawn import NIGHT
from night_runs import snapshot_of
from reported import AGAIN, LONG, NINE, SAID, SHORT, TEN, reported_night
from test_health import change
from test_page import report as page_report

from nous_online.interfaces.exporting import export_agent, restore_agent
from nous_pipelines.reports.html_report import page_of
from nous_pipelines.reports.report import NAMED_AGENTS
from nous_pipelines.reports.reporting import ReportedMemory, ReportedProposal, entries_of
from nous_pipelines.reports.text_reports import commands_line, markdown_of, plain, show_diff, show_report

ARCHIVED = """
    insert into lifecycle.events (agent_id, memory_kind, memory_id, action, from_state, to_state, version_before,
                                  version_after, actor, reason, effective_at, night, proposal_id)
    select agent_id, 'fact', targets[1], 'archived', case when %s = targets[1] then 'superseded' else 'active' end,
           'archived', 2, 3, 'night', 'old', now(), night, id
    from lifecycle.proposals"""


@pytest.fixture
def night(heart, night_database, tmp_path):
    """A night over a store with memories of every kind."""
    return reported_night(heart, night_database, tmp_path)


def test_commands_of_a_report_reach_its_agents_and_nobody_else(night):
    night.merge(NINE, AGAIN)
    night.plan()
    night.decide()

    report = night.report(agent_ids=("aria", "ben; rm x"))

    assert report.undo == (
        f"nous undo --night {NIGHT} --agent aria", f"nous undo --night {NIGHT} --agent 'ben; rm x'"
    )  # fmt: skip
    assert report.undo_kind("merge") == tuple(
        f"nous undo --night {NIGHT} --kind merge --agent {each}" for each in ("aria", "'ben; rm x'")
    )
    assert all(f"`{command}`" in markdown_of(report) for command in report.undo)
    assert f"undo --night {NIGHT}<" not in page_of(report)
    assert page_of(report).count(f"undo --night {NIGHT} --agent") == len(report.undo)


def test_a_night_that_was_only_planned_says_what_would_be_done_and_names_nothing_to_undo(night):
    night.merge(NINE, AGAIN)
    night.plan()

    report = night.report()

    assert (report.undo, report.undo_kind("merge")) == ((), ())
    assert report.summary.startswith("this would be done: 1 memory merged into 1")
    for told in (markdown_of(report), page_of(report)):
        assert "this would be done: 1 memory merged" in told
        assert "so there is nothing to take back" in told
        assert "nous undo" not in told


def test_a_report_of_many_agents_names_no_command_that_would_reach_others(night):
    night.merge(NINE, AGAIN)
    night.plan()
    night.decide()

    report = night.report(agent_ids=("aria", *(f"agent {number}" for number in range(NAMED_AGENTS))))

    assert (report.undo, report.undo_kind("merge")) == ((), ())
    for told in (markdown_of(report), page_of(report)):
        assert "No command takes back 6 agents and nobody else" in told
        assert re.findall(rf"undo --night {NIGHT}(?! --agent NAME)", told) == []


def test_a_fact_that_had_left_before_does_not_leave_again(heart, night_database, owner, tmp_path):
    night = reported_night(heart, night_database, tmp_path / "earlier")
    away = {"superseded_by": night.ids[SHORT], "superseded_at": SAID, "succession": "replaced"}
    change(owner, "facts", LONG, night.ids, state="superseded", **away)
    night.snapshot = snapshot_of(night_database, tmp_path / "now")
    for words in (LONG, TEN):
        night.propose("archive", words, changes=[night.change("fact", words, state="archived")])
    night.plan()

    before_applying = night.report().counts
    night.decide()
    owner.execute("set session_replication_role = replica")
    owner.execute(ARCHIVED, [night.ids[LONG]])
    owner.execute("set session_replication_role = origin")
    after_applying = night.report().counts

    assert (before_applying["active_before"], before_applying["active_after"]) == (4, 3)
    assert (after_applying["active_before"], after_applying["active_after"]) == (4, 3)


def test_the_texts_of_a_report_are_gathered_once_for_all_its_entries():
    class Counted(dict[str, ReportedMemory]):
        walks = 0

        def items(self):
            Counted.walks += 1
            return super().items()

    told = Counted({f"m{n}": ReportedMemory("aria", f"m{n}", "fact", f"text {n}") for n in range(50)})
    archived = {"kind": "fact", "id": "m1", "set": {"state": "archived"}}
    decided = [ReportedProposal(f"p{n}", "aria", "archive", (f"m{n}",), [archived], "so", "applied") for n in range(50)]

    entries = entries_of(decided, {"aria": told})

    assert [entry.told for entry in entries] == [(f"text {n}",) for n in range(50)]
    assert Counted.walks == 1


@pytest.mark.parametrize(
    ("text", "inert"),
    [
        ("a\n\n## Take it back\n- b", r"a \#\# Take it back - b"),
        ("![p](https://evil.example/p?x=1)", r"\!\[p\](https://evil.example/p?x=1)"),
        ("**x** `curl | sh` <b>&amp; ~~y~~ z_1", r"\*\*x\*\* \`curl \| sh\` \<b\>\&amp; \~\~y\~\~ z\_1"),
        ("- 1. a", r"\- 1. a"),
        ("12. a 3. b", r"12\. a 3. b"),
        ("Deploy \x1b]0;pwned\x07\x9b2J\u2028done\\", r"Deploy \]0;pwned2J done" + "\\\\"),
    ],
)
def test_nothing_in_a_text_acts_as_markdown(text, inert):
    assert plain(text) == inert


ACTING = "x**\n\n## Stolen\n\n![p](https://evil.example/p) \x1b[2J`sh`"


def test_no_text_of_a_memory_acts_in_the_markdown_report():
    text = markdown_of(page_report(text=ACTING))

    assert text.count("Stolen") == text.count(r"x\*\* \#\# Stolen \!\[p\](https://evil.example/p) \[2J\`sh\`") > 5
    assert "\x1b" not in text


@pytest.mark.parametrize("shown", [show_report, show_diff])
def test_no_text_of_a_memory_commands_the_terminal(capsys, shown, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")

    shown(page_report(text=f"{ACTING} \x1b]0;pwned\x07\x9b31m"))

    told = capsys.readouterr().out
    assert "\x1b[2J" not in told
    assert not re.search(r"[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f]|\x1b(?!\[[\d;]*m)", told)
    assert "Stolen" in told
    assert "\n## Stolen" not in told


def test_an_agents_name_cannot_end_the_code_it_stands_in():
    assert commands_line(["nous undo --agent 'a`b``c'"]) == "```nous undo --agent 'a`b``c'```"


def test_proposals_of_an_agent_and_its_copy_are_told_of_each(heart, database, night_database, owner, tmp_path):
    night = reported_night(heart, night_database, tmp_path)
    night.merge(NINE, AGAIN)
    night.plan()
    night.decide("applied")
    export_agent(database, "aria", tmp_path / "aria.jsonl.gz")
    restore_agent(database, tmp_path / "aria.jsonl.gz", agent_id="carol")
    with owner.transaction():
        owner.execute("set local session_replication_role = replica")
        owner.execute("delete from heart.facts where agent_id = 'carol' and id = %s", [night.ids[NINE]])

    entries = {each.agent_id: each for each in night.report().of_kind("merge")}

    assert {agent_id: each.told for agent_id, each in entries.items()} == {
        "aria": (NINE, AGAIN),
        "carol": ("(no longer stored)", AGAIN),
    }


def test_a_merge_tells_every_wording_that_was_said_for_it(heart, night_database, tmp_path):
    night = reported_night(heart, night_database, tmp_path)
    heart.confirm_fact(UUID(night.ids[AGAIN]))
    night.merge(NINE, AGAIN)
    night.plan()

    (entry,) = night.report().of_kind("merge")

    assert [(each.text, each.times) for each in entry.said] == [(NINE, 1), (AGAIN, 2)]
    assert entry.said_count == 3
