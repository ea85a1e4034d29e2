"""How the store stands after a night: figures that agree with the rows, and stay when a night runs again."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from uuid import UUID

import pytest
from drawn import NIGHT
from psycopg.sql import SQL, Identifier
from reported import AGAIN, LONG, NINE, RELEASE, SAID, SHORT, TEN, reported_night

from nous_online.core.errors import Unavailable
from nous_online.memories.contradictions import of_questions
from nous_online.memories.status import status_of
from nous_pipelines.nights import end_of
from nous_pipelines.reports.html_report import PLOTS
from nous_pipelines.reports.report import NightQuestions
from nous_pipelines.reports.reporting import SQL as REPORT_SQL
from nous_pipelines.reports.reporting import (
    health_history,
    measure_health,
    questions_now,
    stale_ratio,
    tokens_saved,
)

SEEN = datetime(2026, 11, 1, tzinfo=UTC)
AT_END = end_of(NIGHT)
PAIRS = f"""
    left_id | right_id | similarity | verdict    | is_across_users
    --------|----------|------------|------------|----------------
    {NINE}  | {AGAIN}  | 0.99       | same       | no
    {NINE}  | {LONG}   | 0.93       | unsure     | no
    {LONG}  | {SHORT}  | 0.98       | compatible | no
    {NINE}  | {TEN}    | 0.93       | updates    | no
    {AGAIN} | {TEN}    | 0.91       | unsure     | no
    {AGAIN} | {SHORT}  | 0.99       | same       | yes
"""


@pytest.fixture
def night(heart, night_database, tmp_path):
    """A night over a store with memories of every kind."""
    return reported_night(heart, night_database, tmp_path)


@pytest.fixture
def measured(night, night_database):
    """Measure the store after a night and return the figures of the last one."""

    def measure(after=NIGHT, **options):
        measure_health(night_database, night.files, after, seen_at=SEEN, **options)
        return dict(health_history(night_database, after, **options)[-1].figures)

    return measure


def change(owner, table, words, ids, **columns):
    """Change a memory as its owner, past the rule that wants an event."""
    owner.execute("set session_replication_role = replica")
    assignments = SQL(", ").join(SQL("{} = %s").format(Identifier(name)) for name in columns)
    query = SQL("update heart.{} set {} where id = %s").format(Identifier(table), assignments)
    owner.execute(query, [*columns.values(), ids[words]])
    owner.execute("set session_replication_role = origin")


def link(owner, from_id, to_id, *, at):
    """Link two memories at a moment."""
    owner.execute(
        """insert into heart.links (agent_id, from_id, to_id, kind, weight, created_at)
           values ('aria', %s, %s, 'related', 0.8, %s)""",
        [from_id, to_id, at],
    )


def condense(owner, night, *, at):
    """Move the text of an episode to cold storage, as a night does at its end."""
    change(owner, "episodes", RELEASE, night.ids, compression_tier="summary", detail=None, summary="It went out.")
    values = {"id": night.ids[RELEASE], "at": at}
    owner.execute(
        """insert into heart.cold_texts (agent_id, memory_id, tier, detail)
           values ('aria', %(id)s, 'raw', repeat('x', 130))""",
        values,
    )
    owner.execute(
        """insert into lifecycle.events (agent_id, memory_kind, memory_id, action, from_state, to_state, version_before,
               version_after, before, actor, reason, effective_at)
           select 'aria', 'episode', id, 'condensed', state, state, row_version, row_version + 1,
               '{"compression_tier": "raw", "detail": {"cold_text": "raw"}, "summary": null}', 'operator', 'age', %(at)s
           from heart.episodes where id = %(id)s""",
        values,
    )


def merged(owner, night, words, *, into):
    """Let one fact give way to another that says the same."""
    away = {"superseded_by": night.ids[into], "superseded_at": SAID, "succession": "merged"}
    change(owner, "facts", words, night.ids, state="superseded", **away)


def test_every_memory_is_counted_by_state_and_tier(night, measured, owner):
    merged(owner, night, AGAIN, into=NINE)
    change(owner, "episodes", RELEASE, night.ids, compression_tier="summary")

    figures = measured()

    assert {name: count for name, count in figures.items() if count and not name.startswith("tokens")} == {
        "facts_active": 4, "facts_superseded": 1, "facts_stale": 2, "episodes_summary": 1, "procedures_active": 1,
        "censors_active": 1,
    }  # fmt: skip


def test_pairs_left_are_duplicates_unless_a_difference_is_known(night, measured):
    night.judge(PAIRS)

    figures = measured()

    assert (figures["duplicates_092"], figures["duplicates_097"]) == (2, 1)
    assert (figures["look_alikes_092"], figures["look_alikes_097"]) == (2, 1)


def test_a_pair_of_which_one_left_is_no_duplicate_any_more(night, measured, owner):
    night.judge(PAIRS)
    merged(owner, night, AGAIN, into=NINE)

    assert (measured()["duplicates_092"], measured()["duplicates_097"]) == (1, 0)


def test_a_fact_is_stale_when_a_later_one_of_its_slot_and_place_is_active(night, measured, owner):
    for words in (LONG, SHORT, TEN):
        change(owner, "facts", words, night.ids, slot="backups are kept for")
    change(owner, "facts", TEN, night.ids, scope="project", project_id="shop")
    change(owner, "facts", AGAIN, night.ids, slot=None)

    figures = measured()

    assert figures["facts_stale"] == 1
    assert stale_ratio(figures) == pytest.approx(0.2)


def test_tokens_are_those_of_what_can_still_be_read(night, measured, owner):
    merged(owner, night, AGAIN, into=NINE)
    change(owner, "facts", TEN, night.ids, archived_at=SAID, state="archived")
    change(owner, "episodes", RELEASE, night.ids, compression_tier="summary", detail=None, summary="It went out.")
    owner.execute(
        "insert into heart.cold_texts (agent_id, memory_id, tier, detail) values ('aria', %s, 'raw', %s)",
        [night.ids[RELEASE], "x" * 130],
    )

    figures = measured()

    read = sum(len(text.encode()) for text in (NINE, LONG, SHORT, "It went out."))
    assert figures["tokens_active"] == pytest.approx(read / 1.3, abs=1)
    assert figures["tokens_saved_by_merges"] == pytest.approx(len(AGAIN) / 1.3, abs=1)
    assert figures["tokens_saved_by_archiving"] == pytest.approx(len(TEN) / 1.3, abs=1)
    assert figures["tokens_saved_by_tiers"] == 100
    assert tokens_saved(figures) == sum(figures[f"tokens_saved_by_{way}"] for way in ("tiers", "merges", "archiving"))


def test_a_text_that_undoing_brought_back_saves_nothing(night, measured, owner):
    owner.execute(
        """insert into heart.cold_texts (agent_id, memory_id, tier, detail, compressed)
           values ('aria', %s, 'raw', 'It went out.', %s)""",
        [night.ids[RELEASE], "x" * 13],
    )

    assert measured()["tokens_saved_by_tiers"] == 10


def test_contradictions_links_and_costs_are_counted(night, measured, owner):
    a, b = sorted((night.ids[LONG], night.ids[SHORT]))
    owner.execute(
        """insert into heart.contradictions (agent_id, memory_a, memory_b, detected_at)
           values ('aria', %s, %s, '2026-06-02')""",
        [a, b],
    )
    link(owner, a, b, at=AT_END)
    owner.execute("""insert into heart.llm_requests (agent_id, night, purpose, model, cost_usd)
                     values ('aria', '2026-06-01', 'judge', 'small', 0.5), ('aria', '2026-05-01', 'judge', 'x', 9)""")

    figures = measured()

    assert (figures["contradictions_open"], figures["links"], figures["cost_usd"]) == (1, 1, 0.5)


def test_the_open_questions_of_a_report_are_those_of_the_status_now(night, owner, heart, night_database):
    pairs = ((LONG, SHORT, "2026-06-02"), (NINE, TEN, "2026-08-01"), (AGAIN, TEN, "2026-08-01"))
    for one, other, at in pairs:
        owner.execute(
            """insert into heart.contradictions (agent_id, memory_a, memory_b, detected_at)
               values ('aria', %s, %s, %s::timestamp at time zone 'UTC')""",
            [*sorted((night.ids[one], night.ids[other])), at],
        )
    change(owner, "facts", AGAIN, night.ids, archived_at=SAID, state="archived")

    asked = questions_now(night_database, date(2026, 6, 1), agent_ids=["aria"])
    others = questions_now(night_database, date(2026, 6, 1), agent_ids=["ben"])
    with heart.agent.database.transaction("aria") as connection:
        status = status_of(connection, "aria")

    assert asked == NightQuestions(contradictions=2, found=1)
    assert others == NightQuestions()
    assert status.questions.contradictions == len(heart.contradictions()) == 2


def test_doubts_are_counted_as_they_are_listed_and_never_found_by_pairing_all_facts(
    night, owner, heart, night_database
):
    replaces = {LONG: (SHORT, NINE), TEN: (AGAIN,)}
    for words, others in replaces.items():
        change(owner, "facts", words, night.ids, perhaps_replaces=[UUID(str(night.ids[other])) for other in others])
    change(owner, "facts", AGAIN, night.ids, archived_at=SAID, state="archived")

    asked = questions_now(night_database, date(2026, 6, 1), agent_ids=["aria"])
    with heart.agent.database.transaction("aria") as connection:
        status = status_of(connection, "aria")
    with night_database.transaction() as connection:
        connection.execute("set local enable_nestloop = off")  # as where the statistics of a table advise against it
        values = {"ends_at": SEEN, "agent_ids": []}
        plan = connection.execute(b"explain " + of_questions(REPORT_SQL["open_questions"]), values).fetchall()

    assert asked.doubts == status.questions.doubts == len(heart.doubts()) == 2
    assert status.needs[0].startswith("2 pairs of facts, of which one perhaps replaces the other: ")
    assert not [line for (line,) in plan if "Join Filter" in line and "perhaps_replaces" in line]


def test_what_was_said_after_the_night_does_not_count_in_it(night, measured, heart):
    heart.learn_deferred([("Cats like fish.", {"learned_at": SAID + timedelta(days=60)})])

    assert measured()["facts_active"] == 5
    assert measured(NIGHT + timedelta(days=60))["facts_active"] == 6


def test_a_night_run_again_writes_its_own_figures_anew(night, measured, night_database, owner):
    measured()
    change(owner, "facts", TEN, night.ids, archived_at=SAID, state="archived")

    assert measured()["facts_active"] == 4
    assert len(health_history(night_database, NIGHT)) == 1


def test_a_night_run_again_after_later_ones_keeps_its_figures(night, measured, owner):
    measured()
    measured(NIGHT + timedelta(days=1))
    change(owner, "facts", TEN, night.ids, archived_at=SAID + timedelta(days=60), state="archived")
    change(owner, "episodes", RELEASE, night.ids, compression_tier="summary")

    assert (measured()["facts_active"], measured()["episodes_summary"]) == (5, 0)


def test_a_night_run_again_after_later_ones_counts_the_facts_that_came_late(night, measured, heart):
    measured()
    measured(NIGHT + timedelta(days=1))
    heart.learn_deferred([("Cats like fish.", {"learned_at": SAID})])

    assert measured()["facts_active"] == 6


def test_a_fact_that_gave_way_after_the_night_was_active_then(night, measured, owner):
    away = {"superseded_by": night.ids[NINE], "superseded_at": SAID + timedelta(days=60), "succession": "merged"}
    change(owner, "facts", AGAIN, night.ids, state="superseded", **away)

    assert (measured()["facts_active"], measured()["facts_superseded"]) == (5, 0)


def test_an_episode_counts_in_the_tier_it_had_then_and_saves_what_was_in_cold_storage_then(night, measured, owner):
    condense(owner, night, at=AT_END + timedelta(days=1))
    facts = sum(len(text.encode()) for text in (NINE, AGAIN, LONG, SHORT, TEN))

    before, after = measured(), measured(NIGHT + timedelta(days=1))

    assert (before["episodes_raw"], before["episodes_summary"], before["tokens_saved_by_tiers"]) == (1, 0, 0)
    assert before["tokens_active"] == pytest.approx((facts + 130) / 1.3, abs=1)
    assert (after["episodes_raw"], after["episodes_summary"], after["tokens_saved_by_tiers"]) == (0, 1, 100)
    assert after["tokens_active"] == pytest.approx((facts + len("It went out.")) / 1.3, abs=1)


def test_a_link_made_after_the_night_is_none_of_it(night, measured, owner):
    link(owner, night.ids[LONG], night.ids[SHORT], at=AT_END + timedelta(days=1))

    assert (measured()["links"], measured(NIGHT + timedelta(days=1))["links"]) == (0, 1)


def test_the_history_is_that_of_the_last_ninety_nights_of_whom_it_is_asked(night, measured, night_database, owner):
    for day in (0, 1, 89, 90):
        measured(NIGHT + timedelta(days=day))
    owner.execute(
        "insert into heart.agents (id, embedding_space_id) select 'ben', embedding_space_id from heart.agents"
    )
    owner.execute(
        """insert into lifecycle.health (agent_id, night, figures) values ('ben', %s, '{"facts_active": 7}')""",
        [NIGHT + timedelta(days=90)],
    )
    last = NIGHT + timedelta(days=90)

    everyone, arias = health_history(night_database, last), health_history(night_database, last, agent_ids=["aria"])

    assert [each.night for each in everyone] == [NIGHT + timedelta(days=day) for day in (1, 89, 90)]
    assert (everyone[-1].figures["facts_active"], arias[-1].figures["facts_active"]) == (12, 5)


def test_whoever_was_not_measured_in_a_night_stands_as_when_last_measured_but_for_its_cost(
    night, measured, night_database, owner
):
    owner.execute(
        "insert into heart.agents (id, embedding_space_id) select 'ben', embedding_space_id from heart.agents"
    )
    owner.execute(
        """insert into lifecycle.health (agent_id, night, figures)
           values ('ben', %(first)s, '{"facts_active": 9}'),
                  ('ben', %(early)s, '{"facts_active": 7}'),
                  ('ben', %(late)s, '{"facts_active": 6}')""",
        {"first": NIGHT - timedelta(days=200), "early": NIGHT - timedelta(days=100), "late": NIGHT + timedelta(days=2)},
    )
    for day in (0, 1, 3):
        measured(NIGHT + timedelta(days=day), agent_ids=["aria"])
    owner.execute(
        """insert into heart.llm_requests (agent_id, night, purpose, model, cost_usd)
           values ('ben', %(early)s, 'judge', 'm', 2), ('ben', %(late)s, 'judge', 'm', 0.5)""",
        {"early": NIGHT - timedelta(days=100), "late": NIGHT + timedelta(days=2)},
    )

    told = health_history(night_database, NIGHT + timedelta(days=3))

    assert [(each.night, each.figures["facts_active"], each.figures["cost_usd"]) for each in told] == [
        (NIGHT, 12, 0), (NIGHT + timedelta(days=1), 12, 0), (NIGHT + timedelta(days=2), 11, 0.5),
        (NIGHT + timedelta(days=3), 11, 0),
    ]  # fmt: skip


def test_only_the_agents_of_the_run_are_measured(night, measured, night_database):
    measure_health(night_database, night.files, NIGHT, seen_at=SEEN, agent_ids=["ben"])

    assert health_history(night_database, NIGHT) == ()


def test_judgements_that_cannot_be_read_are_named(night, measured):
    (night.files.folder / "judgements.parquet").write_bytes(b"{")

    with pytest.raises(Unavailable, match=r"judgements\.parquet in .* can't be read .*; run the night again"):
        measured()


def test_every_plot_reads_figures_that_are_measured(measured):
    figures = measured()
    asked: set[str] = set()

    class Asked(dict[str, float]):
        def get(self, name, default=0):
            asked.add(name)
            return super().get(name, default)

    for plot in PLOTS:
        for read in plot.lines.values():
            if isinstance(read, str):
                asked.add(read)
            else:
                read(Asked(figures))

    assert asked <= set(figures)
