"""What the night archives, what it never does, and how long it waits."""

from __future__ import annotations

import polars as pl
import pytest
from drawn import NONE_UNDONE, drawn
from drawn_uses import NIGHT, days_before, facts, procedures, undone, uses

from nous_online.core.errors import InvalidInput
from nous_pipelines.night_policy import NightPolicy
from nous_pipelines.phases.forgetting import AWAITS_EVIDENCE, forgetting_phase, returns_of_agents
from nous_pipelines.phases.proposals import Change, Read
from nous_pipelines.snapshots.table_schemas import CONTRADICTIONS, STATEMENTS

AT_ONCE = NightPolicy(unused_return_share=1)
"""Archives at `unused_after_days` by the letter, whatever came back in the past."""
ASKED = [f"other | {day}" for day in range(1, 91, 3)]
"""Something else was recalled every third day."""
OLD = days_before(100).isoformat()[:10]


def asked(*rows):
    return uses("\n".join(["memory_id | days_ago", "---|---", *(rows or ASKED)]))


def phase(
    known=None, *, learned=None, used=None, contradictions=None, policy=AT_ONCE, taken_back=NONE_UNDONE, **others
):
    return forgetting_phase(
        {
            "statements": STATEMENTS.empty(),
            "facts": facts() if known is None else known,
            "procedures": procedures() if learned is None else learned,
            "uses": asked() if used is None else used,
            "contradictions": CONTRADICTIONS.empty() if contradictions is None else contradictions,
            "undone": taken_back,
            **others,
        },
        policy=policy,
        night=NIGHT,
    )


def stored(text):
    """Statements of facts with the moments at which they were stored."""
    return drawn(text, STATEMENTS, usual={"agent_id": "aria"})


def leaving(*arguments, **options):
    return sorted(proposal.targets[0] for proposal in phase(*arguments, **options).proposals)


def superseded(text):
    """A fact `a`, superseded 40 days ago by `b`, with the columns of `text`."""
    header, values = (line.strip() for line in text.strip().splitlines())
    at = days_before(40).isoformat()[:10]
    return facts(f"""
        id | state      | superseded_by | superseded_at | learned_at | row_version | {header}
        ---|------------|---------------|---------------|------------|-------------|----
        a  | superseded | b             | {at}          | 2026-01-01 | 3           | {values}
        b  | active     | -             | -             | 2026-05-20 | 5           | -
    """).with_columns(
        pl.col("is_pinned", "is_rewound").fill_null(value=False), pl.col("contradiction_status").fill_null("none")
    )


def test_a_fact_superseded_for_longer_than_the_grace_is_archived():
    (proposal,) = phase(superseded("subject\n-")).proposals

    assert proposal.kind == "archive"
    assert proposal.read_set == (Read("fact", "a", 3), Read("fact", "b", 5))
    assert proposal.changes == (
        Change("fact", "a", set={"state": "archived", "archived_at": "2026-07-01T00:00:00+00:00"}, action="archived"),
    )
    assert proposal.reason == "superseded on 22 May 2026, 40 days ago; its successor stays"


def test_a_fact_superseded_within_the_grace_is_not_looked_at():
    found = phase(superseded("subject\n-"), policy=NightPolicy(superseded_grace_days=45))

    assert (found.proposals, found.eligible) == ([], {})


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        ("is_pinned", "yes", "pinned"),
        ("is_rewound", "yes", "changed after the end of the night"),
        ("contradiction_status", "open", "in an open contradiction"),
        ("last_used_at", "2026-06-20", "recalled within the 30 days of grace"),
    ],
)
def test_a_superseded_fact_stays_for_a_reason(column, value, reason):
    found = phase(superseded(f"{column}\n{value}"))

    assert found.proposals == []
    assert found.left == {"aria": {reason: 1}}


@pytest.mark.parametrize("state", ["quarantined", None])
def test_a_superseded_fact_whose_successor_is_not_there_stays(state):
    known = superseded("subject\n-")
    known = known.head(1) if state is None else known.with_columns(state=pl.Series(["superseded", state]))

    assert phase(known).left == {"aria": {"its successor is not there": 1}}


def test_a_superseded_fact_whose_successor_changed_after_the_night_stays():
    known = superseded("subject\n-").with_columns(is_rewound=pl.Series([False, True]))

    assert phase(known).left == {"aria": {"its successor changed after the end of the night": 1}}


def test_an_old_fact_nobody_used_is_archived_with_dates_in_the_reason():
    (proposal,) = phase(facts(f"id | learned_at | row_version\n---|---|---\na | {OLD} | 4")).proposals

    assert proposal.read_set == (Read("fact", "a", 4),)
    assert proposal.changes[0].set == {"state": "archived", "archived_at": "2026-07-01T00:00:00+00:00"}
    assert proposal.reason == (
        "learned on 23 Mar 2026 and not used in the 100 days since, while something was recalled on 30 days"
    )
    assert proposal.evidence["idle_days"] == 100


def test_only_what_is_old_and_was_never_used_is_looked_at():
    known = facts(f"""
        id | learned_at | last_confirmed_at | retrieved_count | cited_count | state
        ---|------------|-------------------|-----------------|-------------|------
        a  | {OLD}      | -                 | 0               | 0           | active
        b  | 2026-06-01 | -                 | 0               | 0           | active
        c  | {OLD}      | 2026-06-01        | 0               | 0           | active
        d  | {OLD}      | -                 | 1               | 0           | active
        e  | {OLD}      | -                 | 0               | 1           | active
        f  | {OLD}      | -                 | 0               | 0           | quarantined
    """)

    found = phase(known)

    assert [proposal.targets for proposal in found.proposals] == [("a",)]
    assert found.eligible == {"aria": 1}


def test_a_confirmation_starts_the_wait_anew():
    known = facts("id | learned_at | last_confirmed_at\n---|---|---\na | 2025-01-01 | 2026-03-01")

    (proposal,) = phase(known).proposals

    assert proposal.reason.startswith("last confirmed on 01 Mar 2026 and not used in the 122 days since")


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        ("is_pinned", "yes", "pinned"),
        ("is_rewound", "yes", "changed after the end of the night"),
        ("contradiction_status", "open", "in an open contradiction"),
        ("source_kind", "user", "a person said it"),
    ],
)
def test_an_unused_fact_stays_for_a_reason(column, value, reason):
    found = phase(facts(f"id | learned_at | {column}\n---|---|---\na | {OLD} | {value}"))

    assert found.proposals == []
    assert found.left == {"aria": {reason: 1}}


@pytest.mark.parametrize(("status", "leaves"), [("open", []), ("resolved", ["a", "b"])])
def test_a_fact_an_open_contradiction_names_stays_whatever_its_own_mark_says(status, leaves):
    known = facts(f"id | learned_at\n---|---\na | {OLD}\nb | {OLD}")
    against = drawn(f"memory_a | memory_b | status\n---|---|---\nb | a | {status}", CONTRADICTIONS,
                    usual={"agent_id": "aria"})  # fmt: skip

    found = phase(known, contradictions=against)

    assert sorted(proposal.targets[0] for proposal in found.proposals) == leaves
    assert found.left == ({} if leaves else {"aria": {"in an open contradiction": 2}})


@pytest.mark.parametrize("is_replaced", [False, True])
def test_a_contradiction_keeps_neither_side_once_one_of_them_gave_way(is_replaced):
    standing = "superseded | c | 2026-05-22" if is_replaced else "active | - | -"
    known = facts(f"""
        id | learned_at | state  | superseded_by | superseded_at
        ---|------------|--------|---------------|--------------
        a  | {OLD}      | {standing}
        b  | {OLD}      | active | -             | -
        c  | 2026-05-20 | active | -             | -
    """)
    against = drawn("memory_a | memory_b\n---|---\na | b", CONTRADICTIONS, usual={"agent_id": "aria", "status": "open"})

    found = phase(known, contradictions=against)

    assert sorted(proposal.targets[0] for proposal in found.proposals) == (["a", "b"] if is_replaced else [])
    assert found.left == ({} if is_replaced else {"aria": {"in an open contradiction": 2}})


@pytest.mark.parametrize("rewound", ["no", "yes"])
def test_what_a_person_said_stays_said_after_mergers_with_what_a_tool_wrote(rewound):
    at = days_before(40).isoformat()[:10]
    known = facts(f"""
        id | state      | superseded_by | superseded_at | learned_at | source_kind | is_rewound | last_used_at
        ---|------------|---------------|---------------|------------|-------------|------------|-------------
        a  | superseded | b             | {at}          | 2026-01-02 | user        | {rewound}  | 2026-06-20
        b  | superseded | c             | {at}          | 2026-01-01 | tool        | no         | 2026-06-20
        c  | active     | -             | -             | 2026-01-01 | tool        | no         | -
        d  | active     | -             | -             | 2026-01-01 | tool        | no         | -
    """)

    found = phase(known)

    assert [proposal.targets for proposal in found.proposals] == [("d",)]
    assert found.left["aria"]["a person said it"] == 1


@pytest.mark.parametrize(
    ("at", "retrieved", "reason"),
    [
        ("2026-06-20", 0, "it took the place of a fact that is still in its grace"),
        ("2026-05-01", 1, "it took the place of a fact that was used"),
    ],
)
def test_a_fact_that_took_the_place_of_one_still_needed_stays(at, retrieved, reason):
    known = facts(f"""
        id | state      | superseded_by | superseded_at | learned_at | retrieved_count
        ---|------------|---------------|---------------|------------|----------------
        a  | superseded | b             | {at}          | 2026-01-01 | {retrieved}
        b  | active     | -             | -             | {OLD}      | 0
    """)

    found = phase(known)

    assert "b" not in [proposal.targets[0] for proposal in found.proposals]
    assert found.left == {"aria": {reason: 1}}


def test_a_procedure_nobody_activated_or_recalled_is_archived_unless_another_names_it():
    learned = procedures(f"""
        id | learned_at | activation_count | related_procedures | retrieved_count
        ---|------------|------------------|--------------------|----------------
        p  | {OLD}      | 0                |                    | 0
        q  | {OLD}      | 1                | r                  | 0
        r  | {OLD}      | 0                |                    | 0
        s  | {OLD}      | 0                |                    | 1
    """)

    found = phase(learned=learned)

    assert [(p.targets[0], p.changes[0].kind) for p in found.proposals] == [("p", "procedure")]
    assert found.left == {"aria": {"another procedure names it": 1}}


def test_where_nobody_asked_unused_says_nothing():
    known = facts(f"id | learned_at\n---|---\na | {OLD}")

    found = phase(known, used=asked(*(f"other | {day}" for day in (3, 5, 200))))

    assert found.proposals == []
    assert found.left == {"aria": {"hardly anything was recalled in the last 90 days": 1}}


def test_how_often_must_have_been_asked_is_up_to_the_policy():
    known = facts(f"id | learned_at\n---|---\na | {OLD}")
    policy = NightPolicy(unused_return_share=1, unused_asked_days=0)

    assert leaving(known, used=uses(), policy=policy) == ["a"]


def test_what_a_person_brought_back_is_left_alone():
    known = facts(f"id | learned_at\n---|---\na | {OLD}\nb | {OLD}")

    found = phase(known, taken_back=undone("archive", "a"))

    assert [proposal.targets for proposal in found.proposals] == [("b",)]
    assert found.left == {"aria": {"a person brought it back": 1}}


def many(count, *, days, retrieved=0, prefix="m"):
    rows = [f"{prefix}{n} | {days_before(days).isoformat()[:10]} | {retrieved}" for n in range(count)]
    return facts("\n".join(["id | learned_at | retrieved_count", "---|---|---", *rows]))


TOO_EARLY = AWAITS_EVIDENCE


def test_memories_leave_once_those_of_their_age_have_stopped_coming_back():
    known = many(300, days=100)

    found = phase(known, policy=NightPolicy())

    assert len(found.proposals) == 300
    assert found.proposals[0].evidence["wait_days"] == 90


def test_an_agent_whose_memories_come_back_late_is_given_longer():
    quiet = many(300, days=100)
    late = many(20, days=150, retrieved=1, prefix="late")
    returned = [f"late{n} | 80" for n in range(20)]
    used = asked(*ASKED, *returned)

    found = phase(pl.concat([quiet, late]), used=used, policy=NightPolicy())

    assert found.proposals == []
    assert found.left == {"aria": {TOO_EARLY: 300}}


def test_returns_at_a_later_age_do_not_count_against_an_earlier_one_that_is_past():
    old = many(300, days=700)
    late = many(20, days=150, retrieved=1, prefix="late")
    used = asked(*ASKED, *(f"late{n} | 80" for n in range(20)))

    found = phase(pl.concat([old, late]), used=used, policy=NightPolicy())

    assert len(found.proposals) == 300
    assert found.proposals[0].evidence["wait_days"] > 90


def test_a_handful_of_memories_is_too_few_to_tell():
    found = phase(many(5, days=100), policy=NightPolicy())

    assert found.proposals == []
    assert found.left == {"aria": {TOO_EARLY: 5}}


def test_each_agent_waits_by_its_own_past():
    aria = many(300, days=100)
    ben = many(5, days=100, prefix="b").with_columns(agent_id=pl.lit("ben"))
    used = pl.concat([asked(), asked().with_columns(agent_id=pl.lit("ben"))])

    found = phase(pl.concat([aria, ben]), used=used, policy=NightPolicy())

    assert found.proposed == {"aria": 300}
    assert found.left == {"ben": {TOO_EARLY: 5}}


def worded(*texts, source_kind="agent", prefix="w", **columns):
    return many(len(texts), days=100, prefix=prefix).with_columns(
        content=pl.Series(texts), source_kind=pl.lit(source_kind), **columns
    )


JOBS = [f"Job geo-sync run {1000 + n} finished with exit code 0" for n in range(60)]
PLAIN = [f"The {name} team meets on Monday" for name in "abcdefghij"]


def test_an_ordinary_agent_forgets_chatter_and_keeps_statements_and_what_a_person_said():
    noise = [worded(*JOBS, prefix="job"), worded("All 141 tests pass.", prefix="state")]
    kept = [worded(*PLAIN), worded(*PLAIN, source_kind="user", prefix="said")]

    found = phase(pl.concat([*noise, *kept]), policy=NightPolicy())

    assert {each.targets[0].rstrip("0123456789") for each in found.proposals} == {"job", "state"}
    assert found.left == {"aria": {TOO_EARLY: 10, "a person said it": 10}}
    (of_a_job,) = {each.reason.partition("; ")[2] for each in found.proposals if "job" in each.targets[0]}
    assert of_a_job == "it is one of a series that differs in its numbers alone, none of which was cited"


def test_a_series_stays_of_which_one_was_cited_or_two_came_back():
    cited = pl.when(pl.col("id") == "w0").then(1).otherwise(0)
    back = many(2, days=100, retrieved=1, prefix="back").with_columns(content=pl.Series(JOBS[:2]))

    of_cited = phase(worded(*JOBS, cited_count=cited), policy=NightPolicy())
    of_back = phase(
        pl.concat([worded(*JOBS), back]), used=asked(*ASKED, "back0 | 20", "back1 | 20"), policy=NightPolicy()
    )

    assert (of_cited.proposals, of_back.proposals) == ([], [])


def test_the_values_one_thing_has_had_are_no_series():
    gone = {"state": pl.lit("superseded"), "superseded_by": pl.lit("now0"), "superseded_at": pl.lit(days_before(10))}
    values = worded(*(f"The limit is {n} a minute" for n in range(9)), **gone)
    now = worded("The limit is 9 a minute", prefix="now")

    assert leaving(pl.concat([values, now], how="vertical_relaxed"), policy=NightPolicy()) == []


def test_what_many_other_agents_never_asked_for_again_an_agent_of_few_memories_forgets_too():
    agents = [f"agent{n}" for n in range(30)]
    quiet = [many(300, days=100, prefix=f"{each}-").with_columns(agent_id=pl.lit(each)) for each in agents]
    few = many(5, days=100)
    used = pl.concat([asked().with_columns(agent_id=pl.lit(each)) for each in ("aria", *agents)])
    tables = {"facts": pl.concat([few, *quiet]), "procedures": procedures(), "uses": used}
    tables["statements"] = STATEMENTS.empty()
    every = returns_of_agents(tables, policy=NightPolicy(), night=NIGHT)

    assert leaving(few, policy=NightPolicy(), gathered=every) == [f"m{n}" for n in range(5)]


def test_everything_looked_at_is_accounted_for_in_whatever_order_it_comes():
    known = pl.concat([superseded("subject\n-"), many(200, days=120), many(3, days=100, retrieved=1, prefix="u")])

    first = phase(known, policy=NightPolicy())
    second = phase(known.sample(fraction=1, shuffle=True, seed=3), policy=NightPolicy())

    assert first.unexplained() == {}
    assert first.eligible == {"aria": 201}
    assert first.as_dict() == second.as_dict()


@pytest.mark.parametrize(("field", "value"), [("unused_return_share", 1.5), ("unused_asked_days", -1)])
def test_a_policy_that_makes_no_sense_is_refused(field, value):
    with pytest.raises(InvalidInput, match=rf"{field} must be between 0 and"):
        NightPolicy().overridden({field: value})


def test_a_fact_is_unused_since_it_was_stored_not_since_it_was_said():
    days = {name: days_before(ago).isoformat()[:10] for name, ago in (("days_89", 89), ("days_90", 90), ("again", 95))}
    known = facts("\n".join(["id | learned_at", "---|---", *(f"{name} | 2024-01-01" for name in days)]))
    rows = [f"{name} | {day}" for name, day in days.items()]
    statements = stored("\n".join(["fact_id | recorded_at", "---|---", *rows, f"again | {days['days_89']}"]))

    found = phase(known, statements=statements).proposals

    assert [proposal.targets for proposal in found] == [("again",), ("days_90",)]
    assert found[1].reason.startswith("stored on 02 Apr 2026 and not used in the 90 days since")
