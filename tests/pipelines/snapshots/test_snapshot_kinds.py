"""Every kind of memory, and what is known about memories, as it stood when a night ended."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta

import polars as pl
import pytest
from night_runs import NIGHT, part_of, remember, snapshot_of
from psycopg.types.json import Jsonb

from nous_online.core.domain import KINDS
from nous_online.core.errors import Unavailable
from nous_online.database.changes import Cause, Growth, change_memory, get_memory, version_of
from nous_pipelines.nights import end_of
from nous_pipelines.snapshots.snapshot import open_snapshot

MAY_1, JUNE_1, JUNE_5, JUNE_9, LATER = (
    datetime(2026, month, day, 12, tzinfo=UTC) for month, day in ((5, 1), (6, 1), (6, 5), (6, 9), (6, 18))
)
COLUMNS = {
    "facts": """id agent_id state content subject slot key category tags confidence source source_kind
        source_episode_id
        sources trust is_pinned learned_at last_confirmed_at confirmation_count superseded_by superseded_at succession
        valid_from valid_to archived_at contradiction_status encoded_frame encoded_censors scope user_id project_id
        rank_weight embedding_space_id row_version is_rewound retrieved_count cited_count ignored_count last_used_at
        embedding""",
    "statements": """id agent_id fact_id content subject said_at recorded_at source source_kind trust user_id project_id
        scope session_id episode_id decision_id frame reason taken_back_at""",
    "episodes": """id agent_id state title summary compressed index_word detail compression_tier started_at ended_at
        completed_at completion_note tags participants outcome surprise_level lessons_learned procedures_activated
        decision_ids source_kind trust is_pinned scope user_id project_id rank_weight archived_at embedding_space_id
        row_version is_rewound retrieved_count cited_count ignored_count last_used_at embedding""",
    "procedures": """id agent_id state name domain kind activation_count success_count failure_count last_activated_at
        review_reason related_procedures trust is_pinned learned_at scope user_id project_id rank_weight archived_at
        embedding_space_id row_version is_rewound retrieved_count cited_count ignored_count last_used_at embedding""",
    "censors": """id agent_id state trigger reason severity activation_count false_positive_count escalation_threshold
        last_activated_at is_pinned trust learned_at expires_at rank_weight archived_at row_version is_rewound""",
    "uses": "agent_id memory_id memory_kind day retrieved cited ignored",
    "recalls": "id agent_id recalled_at query types result_limit frame result_ids cited_ids ignored_ids embedding",
    "contradictions": "id agent_id memory_a memory_b status resolution detected_at",
    "links": "agent_id from_id to_id kind weight",
    "cold_texts": "agent_id memory_id tier stored_at purge_after",
    "undone": "agent_id kind targets",
    "agents": "agent_id policy",
}


def changed(database, kind, memory, at, *, growth=None, night=None, **values):
    """Change a memory of `aria` in the logical moment `at`."""
    with database.transaction("aria") as connection:
        known = get_memory(connection, "aria", KINDS[kind], memory)
        cause = Cause("agent", "changed", "it was so", effective_at=at, night=night)
        change_memory(connection, "aria", version_of(KINDS[kind], known), values, cause=cause, noted=growth)


def only(table):
    (row,) = table.to_dicts()
    return row


def test_every_table_has_the_columns_the_phases_read(heart, night_database, tmp_path):
    taken = snapshot_of(night_database, tmp_path)

    assert {name: taken.table(name).columns for name in taken.counts} == {
        name: columns.split() for name, columns in COLUMNS.items()
    }


def test_lists_days_and_moments_are_what_they_are(heart, night_database, tmp_path):
    procedure = heart.store_procedure("Deploy", goals=["ship"], learned_at=MAY_1)
    heart.record_episode("we shipped", started_at=MAY_1, tags=["a, b"], participants=["Ada"],
                         procedures_activated=[procedure.id])  # fmt: skip
    found = heart.recall("how do we deploy?", types=["procedure"], at=JUNE_1)

    taken = snapshot_of(night_database, tmp_path)

    episode, use, recall = (only(taken.table(name)) for name in ("episodes", "uses", "recalls"))
    assert (episode["tags"], episode["participants"]) == (["a, b"], ["Ada"])
    assert episode["procedures_activated"] == [str(procedure.id)]
    assert (use["memory_id"], use["memory_kind"], use["day"]) == (str(procedure.id), "procedure", date(2026, 6, 1))
    assert (recall["types"], recall["result_ids"]) == (["procedure"], [str(each.memory.id) for each in found])
    assert taken.table("uses").schema["day"] == pl.Date()


def test_an_open_episode_that_grew_after_the_night_is_as_long_as_it_was(heart, database, night_database, tmp_path):
    episode = heart.start_episode("Moving", started_at=MAY_1)
    changed(database, "episode", episode.id, MAY_1, detail="We packed.")
    told = "We packed."
    for line, at in (("We drove: ü 🚚", JUNE_1), ("We unpacked.", JUNE_5), ("We slept.", JUNE_9)):
        grown = f"{told}\n{line}"
        changed(database, "episode", episode.id, at, growth=Growth("detail", len(told), f"\n{line}"), detail=grown)
        told = grown
    changed(
        database, "episode", episode.id, JUNE_9, state="closed", ended_at=JUNE_9.isoformat(), outcome="success",
    )  # fmt: skip

    then = only(snapshot_of(night_database, tmp_path).table("episodes"))
    now = only(snapshot_of(night_database, tmp_path, night=date(2026, 6, 9)).table("episodes"))

    assert (then["detail"], then["state"], then["ended_at"]) == ("We packed.\nWe drove: ü 🚚", "open", None)
    assert (then["is_rewound"], then["outcome"], then["row_version"]) == (True, None, 3)
    assert (now["detail"], now["state"], now["is_rewound"]) == (told, "closed", False)


def test_a_condensed_episode_is_read_from_cold_storage_as_it_was(heart, database, night_database, owner, tmp_path):
    episode = heart.record_episode("All that was said.", started_at=MAY_1, title="Talk")
    changed(database, "episode", episode.id, MAY_1, summary="in summary", compressed="in compressed")
    for at, tier, column in (
        (JUNE_5, "raw", "detail"),
        (JUNE_9, "summary", "summary"),
        (LATER, "compressed", "compressed"),
    ):
        owner.execute(
            "insert into heart.cold_texts (agent_id, memory_id, tier, detail, summary, compressed, stored_at)"
            " select agent_id, id, %s, detail, summary, compressed, %s from heart.episodes",
            [tier, at],
        )
        changed(database, "episode", episode.id, at, **{column: None, "compression_tier": "fossil"})
        owner.execute("set session_replication_role = replica")  # as the night writes it: the tier instead of the text
        owner.execute(
            "update lifecycle.events set before = before || %s where effective_at = %s and before ? %s",
            [Jsonb({column: {"cold_text": tier}}), at, column],
        )
        owner.execute("reset session_replication_role")

    def read(at):
        row = only(snapshot_of(night_database, tmp_path, night=at.date()).table("episodes"))
        return row["detail"], row["summary"], row["compressed"], row["compression_tier"]

    assert read(JUNE_1) == ("All that was said.", "in summary", "in compressed", "raw")
    assert read(JUNE_5) == (None, "in summary", "in compressed", "fossil")
    assert read(JUNE_9) == (None, None, "in compressed", "fossil")
    assert read(LATER) == (None, None, None, "fossil")


def test_an_episode_told_once_it_was_over_was_not_there_before(heart, night_database, tmp_path):
    heart.record_episode("a long talk", started_at=MAY_1, ended_at=JUNE_5)
    heart.start_episode("another", started_at=JUNE_9)

    nights = [snapshot_of(night_database, tmp_path, night=at.date()) for at in (JUNE_1, JUNE_5, JUNE_9)]

    assert [len(taken.table("episodes")) for taken in nights] == [0, 1, 2]


def test_a_purged_text_is_missing_and_nothing_else(heart, database, night_database, owner, tmp_path):
    episode = heart.record_episode("All that was said.", started_at=MAY_1, title="Talk")
    changed(database, "episode", episode.id, JUNE_5, detail=None)
    owner.execute("set session_replication_role = replica")
    owner.execute("update lifecycle.events set before = %s where version_before = 1",
                  [Jsonb({"detail": {"cold_text": "raw"}})])  # fmt: skip

    row = only(snapshot_of(night_database, tmp_path).table("episodes"))

    assert (row["detail"], row["title"], row["is_rewound"]) == (None, "Talk", True)


def test_a_procedure_and_a_censor_are_as_they_were(heart, night_database, tmp_path):
    procedure = heart.store_procedure("Deploy", goals=["ship"], template={"characters": "any"}, learned_at=MAY_1)
    censor = heart.add_censor("drop table", "it is gone then", learned_at=MAY_1)
    heart.add_censor("force push", "the others lose work", learned_at=JUNE_5)
    heart.record_procedure_failure(procedure.id, at=MAY_1)
    heart.record_procedure_failure(procedure.id, at=JUNE_5)
    heart.store_procedure("Deploy", goals=["ship"], template={"characters": "more"}, domain="ops")
    heart.report_false_positive(censor.id, action="drop table scratch", at=JUNE_5)

    taken = snapshot_of(night_database, tmp_path)

    then, warned = only(taken.table("procedures")), only(taken.table("censors"))
    assert (then["failure_count"], then["domain"], then["row_version"], then["is_rewound"]) == (1, None, 2, True)
    assert (warned["trigger"], warned["false_positive_count"], warned["is_rewound"]) == ("drop table", 0, True)


def test_what_the_night_itself_changed_later_is_no_mark(heart, database, night_database, owner, tmp_path):
    remember(heart, "cats like fish")
    (fact,) = owner.execute("select id from heart.facts").fetchone()
    changed(database, "fact", fact, end_of(NIGHT), night=NIGHT, category="pets")

    of_the_night = only(snapshot_of(night_database, tmp_path).table("facts"))
    of_an_earlier = only(snapshot_of(night_database, tmp_path, night=NIGHT - timedelta(days=1)).table("facts"))

    assert [row["category"] for row in (of_the_night, of_an_earlier)] == [None, None]
    assert [row["is_rewound"] for row in (of_the_night, of_an_earlier)] == [False, True]
    assert of_the_night["row_version"] == 1


def test_uses_are_counted_by_day_up_to_the_end_of_the_night(heart, night_database, tmp_path):
    remember(heart, "cats like fish")
    long_ago = MAY_1 - timedelta(days=400)
    for at, feedback in ((long_ago, heart.cite), (MAY_1, heart.ignore), (MAY_1, heart.cite), (JUNE_5, heart.cite)):
        found = heart.recall("what do cats like?", at=at)
        feedback(found.id, [found[0].memory.id], at=at + timedelta(hours=1))

    taken = snapshot_of(night_database, tmp_path)

    use, fact = only(taken.table("uses")), only(taken.table("facts"))
    assert (use["day"], use["retrieved"], use["cited"], use["ignored"]) == (date(2026, 5, 1), 2, 1, 1)
    assert (fact["retrieved_count"], fact["cited_count"], fact["ignored_count"]) == (3, 2, 1)
    assert fact["last_used_at"] == MAY_1


def test_a_contradiction_resolved_after_the_night_was_open_then(heart, night_database, owner, tmp_path):
    remember(heart, "Ana sits in Lima", "Ben sits in Oslo", "Cid sits in Rome")
    ids = sorted(row[0] for row in owner.execute("select id from heart.facts").fetchall())
    for pair, found, resolved in (
        (ids[:2], MAY_1, JUNE_5), (ids[1:], MAY_1, JUNE_1), ((ids[0], ids[2]), JUNE_5, None),
    ):  # fmt: skip
        resolution = ("resolved", "both_valid") if resolved else ("open", None)
        owner.execute(
            "insert into heart.contradictions"
            " (agent_id, memory_a, memory_b, detected_at, status, resolution, resolved_at)"
            " values ('aria', %s, %s, %s, %s, %s, %s)",
            [*pair, found, *resolution, resolved],
        )

    table = snapshot_of(night_database, tmp_path).table("contradictions")

    assert {(row["memory_a"], row["status"], row["resolution"]) for row in table.to_dicts()} == {
        (str(ids[0]), "open", None), (str(ids[1]), "resolved", "both_valid"),
    }  # fmt: skip


def test_cold_texts_are_those_of_the_night_and_links_those_of_other_nights_too(
    heart, database, night_database, owner, tmp_path
):
    episode = heart.record_episode("we talked", started_at=MAY_1)
    other = heart.record_episode("we talked again", started_at=MAY_1)
    for at, kind in ((MAY_1, "related"), (JUNE_5, "same_day")):
        owner.execute("insert into heart.links (agent_id, from_id, to_id, kind, weight, created_at)"
                      " values ('aria', %s, %s, %s, 0.7, %s)", [episode.id, other.id, kind, at])  # fmt: skip
        owner.execute("insert into heart.cold_texts (agent_id, memory_id, tier, purge_after)"
                      " values ('aria', %s, %s, %s)", [episode.id, kind, JUNE_9])  # fmt: skip
        changed(database, "episode", episode.id, at, detail=None)
        owner.execute("set session_replication_role = replica")
        owner.execute("update lifecycle.events set before = %s where action = 'changed' and effective_at = %s",
                      [Jsonb({"detail": {"cold_text": kind}}), at])  # fmt: skip
        owner.execute("reset session_replication_role")
    owner.execute("insert into heart.links (agent_id, from_id, to_id, kind, weight, created_at)"
                  " values ('aria', %s, %s, 'together', 0.7, %s)", [episode.id, other.id, end_of(NIGHT)])  # fmt: skip

    taken = snapshot_of(night_database, tmp_path)

    text = only(taken.table("cold_texts"))
    assert taken.table("links").select("from_id", "to_id", "kind", "weight").rows() == [
        (str(episode.id), str(other.id), kind, 0.7) for kind in ("related", "same_day")
    ]
    assert (text["memory_id"], text["tier"], text["purge_after"]) == (str(episode.id), "related", JUNE_9)


def as_an_older_version_left_it(folder, *, number=None):
    """Take tables away, and let the description say what one of that time said."""
    description = json.loads((folder / "snapshot.json").read_text())
    description.pop("format")
    if number:
        description["format"] = number
    for table in part_of(folder).glob("[!e]*.parquet"):
        table.rename(folder / table.name)
    (folder / "snapshot.json").write_text(json.dumps(description))


def test_a_snapshot_of_an_older_version_is_rebuilt_as_of_its_night_and_kept_aside(heart, night_database, tmp_path):
    remember(heart, "cats like fish")
    folder = snapshot_of(night_database, tmp_path).folder
    as_an_older_version_left_it(folder)
    heart.learn_deferred([("rain falls down", {"learned_at": end_of(NIGHT)})])

    with pytest.raises(Unavailable, match=r"night=2026-06-01 was taken by an older version.*run the night again"):
        open_snapshot(folder).table("episodes")
    rebuilt = snapshot_of(night_database, tmp_path)

    assert (rebuilt.counts["facts"], rebuilt.counts["episodes"]) == (1, 0)
    assert len(list(tmp_path.glob("night=2026-06-01.taken-*/facts.parquet"))) == 1


def test_a_snapshot_of_a_newer_version_is_left_alone(heart, night_database, tmp_path):
    folder = snapshot_of(night_database, tmp_path).folder
    as_an_older_version_left_it(folder, number=99)

    with pytest.raises(Unavailable, match=r"newer version of Nous .format 99, known here: .*upgrade"):
        snapshot_of(night_database, tmp_path)


def test_what_a_context_shows_whatever_is_asked_was_not_retrieved_but_may_be_cited(heart, night_database, tmp_path):
    remember(heart, "cats like fish", is_pinned=True)
    shown = [heart.assemble_context() for _ in range(3)]
    heart.cite(shown[0].recall_id, shown[0].lines[0].memory_ids)

    taken = snapshot_of(night_database, tmp_path, night=datetime.now(UTC).date())

    use, kept = only(taken.table("uses")), only(taken.table("facts"))
    assert (use["retrieved"], use["cited"]) == (0, 1)
    assert (kept["retrieved_count"], kept["cited_count"]) == (0, 1)
