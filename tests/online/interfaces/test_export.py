"""An agent goes to a file and comes back row for row, or not at all."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from hashlib import sha256
from pathlib import Path
from typing import Any

import psycopg
import pytest
from lived_agents import MAY, exported_rows, live
from night_runs import remember

from nous_online.core.errors import InvalidInput, NotFound, Refused
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.interfaces.exporting import TABLES, ExportWriter, export_agent, restore_agent, write_pages
from nous_online.memories.erasure import BLOCKS as ERASING
from nous_online.memories.erasure import erase_agent
from nous_online.memories.store import unrecorded_count

QUESTIONS = ("when does the office open?", "who sails a boat?", "retry the upload", "what happened at the harbour?")
NOT_EXPORTED = {
    "heart.agents": "the header says which",
    "heart.api_keys": "secrets of one installation",
    "heart.llm_requests": "what one installation asked and paid",
    "heart.next_embeddings": "made anew when the agent moves to another embedding space",
    "heart.outbox": "announced where it happened",
    "heart.outbox_cursors": "places in that queue",
    "heart.webhooks": "addresses and secrets of one installation",
    "heart.postings": "made from the texts as they are stored",
    "heart.term_stats": "counted from the memories that were restored",
    "heart.corpus_stats": "counted as these are",
    "heart.word_changes": "what these counts do not know yet",
    "lifecycle.tombstones": "who was erased stays erased",
}
"""Tables that are not exported, and why."""


@pytest.fixture
def lived(heart: Heart, judge, database_url: str, tmp_path: Path) -> Heart:
    """The memory of an agent to whom everything has happened."""
    return live(heart, judge, database_url, tmp_path)


def test_everything_comes_back_row_for_row(lived: Heart, server, template, database_url: str, tmp_path: Path):
    path = tmp_path / "aria.jsonl.gz"
    before = exported_rows(database_url)
    exported = export_agent(lived.agent.database, "aria", path)
    answers = [scores(lived, question) for question in QUESTIONS]

    with another_database(server, template) as url:
        restored = restore_agent(database := Database(url), path)
        after = exported_rows(url)
        again = Heart.open("aria", database=database, embedder=lived.agent.embedder, works_in_background=False)
        now = [scores(again, question) for question in QUESTIONS]
        database.close()

    assert restored.rows == exported.rows == {name: len(rows) for name, rows in before.items() if rows}
    assert after == before
    assert now == answers
    assert set(restored.rows) == set(TABLES)


def test_what_was_taken_back_and_said_before_comes_back_too(lived: Heart, server, template, tmp_path: Path):
    path = tmp_path / "aria.jsonl"
    export_agent(lived.agent.database, "aria", path)
    undone = "select e.memory_id, u.version_after from lifecycle.events e join lifecycle.events u on u.id = e.undoes"

    with another_database(server, template) as url:
        restore_agent(database := Database(url), path)
        copy = Heart.open("aria", database=database, embedder=lived.agent.embedder, works_in_background=False)
        facts = copy.recall("the office opens at nine", limit=5)
        taken_back = found(url, undone)
        histories = [[(event.action, event.reason) for event in copy.history(fact.id)] for fact in facts]
        database.close()

    assert taken_back == found(lived.agent.database.url, undone) != []
    assert histories == [[(event.action, event.reason) for event in lived.history(fact.id)] for fact in facts]


def test_an_export_from_before_statements_were_kept_gets_the_first_of_each_fact(lived: Heart, tmp_path: Path):
    a, b, both = (lived.learn(f"Ada has {what}.", learned_at=MAY).memory for what in ("a boat", "no boat", "a canoe"))
    lived.supersede_fact(a.id, b.id, at=MAY)
    lived.confirm_fact(both.id, source="mail")
    export_agent(lived.agent.database, "aria", path := tmp_path / "aria.jsonl")
    as_format_1(path)

    restore_agent(lived.agent.database, path, agent_id="basil")

    basil = Heart.open("basil", database=lived.agent.database, embedder=lived.agent.embedder, works_in_background=False)
    assert [(basil.get(each.id).succession) for each in (a, b)] == ["replaced", None]
    assert [each.content for each in basil.statements(both.id)] == [both.content]
    assert unrecorded_count(basil.get(both.id), basil.statements(both.id)) == 1
    facts = found(lived.agent.database.url, "select id from heart.facts where agent_id = 'basil'")
    assert all(basil.statements(fact)[0].content == basil.get(fact).content for (fact,) in facts)


def as_format_1(path: Path) -> None:
    """Rewrite an export as the version before statements were kept wrote it."""
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()[:-1]]
    header = lines[0] | {"nous_export": 1}
    kept = [line for line in lines[1:] if line["table"] != "heart.statements"]
    for line in kept:
        line["row"].pop("succession", None)
        for image in ("before", "after"):
            line["row"].get(image, {}).pop("succession", None)
    write_export(path, [header, *kept])


def write_export(path: Path, lines: list[dict[str, Any]]) -> None:
    """Write the lines of an export with the last one that says it is whole."""
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    rows = Counter(line["table"] for line in lines[1:])
    end = {"end": {"rows": rows, "sha256": sha256(text.encode()).hexdigest()}}
    path.write_text(text + json.dumps(end), "utf-8")


def test_a_fact_comes_after_its_successor_so_that_it_can_point_to_it(heart: Heart, tmp_path: Path):
    porto, faro, lisbon = (
        heart.learn(f"Ada lives in {city}.", learned_at=MAY, idempotency_key=city).memory.id
        for city in ("Porto, by the river", "Faro, near the sea", "Lisbon, on a hill")
    )
    heart.supersede_fact(porto, faro, at=MAY)
    heart.supersede_fact(faro, lisbon, at=MAY)
    export_agent(heart.agent.database, "aria", path := tmp_path / "aria.jsonl")

    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    restored = restore_agent(heart.agent.database, path, agent_id="basil")

    assert [line["row"]["content"] for line in lines if line.get("table") == "heart.facts"] == [
        "Ada lives in Lisbon, on a hill.",
        "Ada lives in Faro, near the sea.",
        "Ada lives in Porto, by the river.",
    ]
    assert restored.rows["heart.facts"] == len(["Lisbon", "Faro", "Porto"])


def test_an_agent_can_be_restored_beside_itself_under_another_name(lived: Heart, tmp_path: Path):
    path = tmp_path / "aria.jsonl"
    export_agent(lived.agent.database, "aria", path)

    restored = restore_agent(lived.agent.database, path, agent_id="basil")

    basil = Heart.open("basil", database=lived.agent.database, embedder=lived.agent.embedder, works_in_background=False)
    assert restored.agent_id == "basil"
    assert scores(basil, QUESTIONS[0]) == scores(lived, QUESTIONS[0])
    with pytest.raises(Refused, match=r"agent 'basil' is known here already, .* name another with --agent NAME"):
        restore_agent(lived.agent.database, path, agent_id="basil")


def test_an_erased_agent_comes_back_only_under_another_name(heart: Heart, database_url: str, tmp_path: Path):
    remember(heart, "the office opens at nine")
    export_agent(heart.agent.database, "aria", path := tmp_path / "aria.jsonl")
    erase_agent(database_url, "aria", reason="asked to")

    with pytest.raises(Refused, match="was erased here on request; restore it under another name"):
        restore_agent(heart.agent.database, path)

    assert restore_agent(heart.agent.database, path, agent_id="ariadne").rows["heart.facts"] == 1


def test_an_agent_nobody_knows_is_not_exported_and_leaves_no_file(heart: Heart, tmp_path: Path):
    with pytest.raises(NotFound, match="agent 'nobody' is not known here"):
        export_agent(heart.agent.database, "nobody", tmp_path / "nobody.jsonl")

    assert list(tmp_path.iterdir()) == []


def test_an_export_that_fails_leaves_the_one_before(heart: Heart, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    remember(heart, "the office opens at nine")
    export_agent(heart.agent.database, "aria", path := tmp_path / "aria.jsonl")
    before = path.read_bytes()

    def fail(_: ExportWriter) -> str:
        raise KeyboardInterrupt

    remember(heart, "the office closes at six")
    monkeypatch.setattr(ExportWriter, "checksum", fail)  # every row is written, the last line is not
    with pytest.raises(KeyboardInterrupt):
        export_agent(heart.agent.database, "aria", path)

    assert ([each.name for each in tmp_path.iterdir()], path.read_bytes()) == (["aria.jsonl"], before)
    assert path.stat().st_mode & 0o077 == 0


DAMAGES = {
    "cut": lambda lines: lines[:-1],
    "cut in a line": lambda lines: [*lines[:-2], lines[-2][:40]],
    "changed": lambda lines: [line.replace("office", "bureau") for line in lines],
    "a line less": lambda lines: [*lines[:2], *lines[3:]],
    "a line more": lambda lines: [*lines, lines[1]],
    "another table": lambda lines: [*lines[:-1], '{"table":"pg_catalog.pg_class","row":{}}', lines[-1]],
    "a shapeless header": lambda lines: ['{"nous_export": 1, "agent": "aria"}', *lines[1:]],
    "a later format": lambda lines: [lines[0].replace('"nous_export": 2', '"nous_export": 3'), *lines[1:]],
    "another file": lambda lines: ['{"content": "boats float"}'],
    "an empty file": lambda lines: [],
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_of_a_damaged_export_nothing_is_stored(heart: Heart, owner: psycopg.Connection, tmp_path: Path, damage: str):
    remember(heart, "the office opens at nine", "the boat is fast")
    export_agent(heart.agent.database, "aria", path := tmp_path / "aria.jsonl")
    path.write_text("\n".join(DAMAGES[damage](path.read_text("utf-8").splitlines())) + "\n", "utf-8")

    with pytest.raises(InvalidInput, match=r"is damaged: .*take another copy|is no export of Nous|upgrade it"):
        restore_agent(heart.agent.database, path, agent_id="basil")

    assert owner.execute("select count(*) from heart.facts where agent_id = 'basil'").fetchone() == (0,)


@pytest.mark.parametrize("name", ["agents.jsonl", "agents.jsonl.gz"])
def test_an_export_takes_the_place_of_one_of_the_same_agent_alone(heart: Heart, tmp_path: Path, name: str):
    remember(heart, "the boat is fast")
    Heart.open("basil", database=heart.agent.database, embedder=heart.agent.embedder, works_in_background=False)
    export_agent(heart.agent.database, "aria", path := tmp_path / name)

    with pytest.raises(Refused, match="is an export of agent 'aria', not of 'basil'; move it, or name another file"):
        export_agent(heart.agent.database, "basil", path)
    again = export_agent(heart.agent.database, "aria", path)

    assert again.rows["heart.facts"] == 1
    assert [each.name for each in tmp_path.iterdir()] == [name]


def test_an_export_takes_the_place_of_any_other_file(heart: Heart, tmp_path: Path):
    path = tmp_path / "aria.jsonl.gz"
    path.write_bytes(b"no gzip")

    export_agent(heart.agent.database, "aria", path)

    assert restore_agent(heart.agent.database, path, agent_id="basil").agent_id == "basil"


def test_of_a_packed_export_that_is_cut_off_nothing_is_stored(heart: Heart, tmp_path: Path):
    remember(heart, "the office opens at nine")
    export_agent(heart.agent.database, "aria", path := tmp_path / "aria.jsonl.gz")
    path.write_bytes(path.read_bytes()[:-40])

    with pytest.raises(InvalidInput, match=r"can't read .*take another copy of the export"):
        restore_agent(heart.agent.database, path, agent_id="basil")


def test_a_forged_export_is_refused_by_the_rules_of_the_schema(heart: Heart, owner: psycopg.Connection, tmp_path: Path):
    remember(heart, "the office opens at nine")
    export_agent(heart.agent.database, "aria", path := tmp_path / "aria.jsonl")
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()[:-1]]
    write_export(path, [line for line in lines if line.get("table") != "lifecycle.events"])

    with pytest.raises(Refused, match="was written without an event"):
        restore_agent(heart.agent.database, path, agent_id="basil")

    assert owner.execute("select count(*) from heart.facts where agent_id = 'basil'").fetchone() == (0,)


def test_every_table_of_an_agent_is_exported_or_left_behind_for_a_reason(owner: psycopg.Connection):
    found = {f"{schema}.{table}" for schema, table, _ in owner.execute(ERASING["find_tables"])}

    assert found | {"lifecycle.plans", "lifecycle.tombstones"} == set(TABLES) | set(NOT_EXPORTED)


def test_an_export_can_be_read_by_anybody(heart: Heart, tmp_path: Path):
    remember(heart, "the office opens at nine")
    export_agent(heart.agent.database, "aria", path := tmp_path / "aria.jsonl.gz")

    with gzip.open(path, "rt", encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]

    assert (lines[0]["nous_export"], lines[0]["agent"]) == (2, "aria")
    assert [line["row"]["content"] for line in lines if line.get("table") == "heart.facts"] == [
        "the office opens at nine"
    ]
    assert lines[-1]["end"]["rows"]["heart.facts"] == 1


def test_the_page_of_procedures_tells_steps_and_templates(heart: Heart, tmp_path: Path):
    heart.store_procedure("deploy", kind="workflow", steps=["build", {"name": "ship", "detail": "after noon"}])
    heart.store_procedure("answer", kind="pattern", template={"greeting": "Dear …", "end": "Yours"})

    pages = write_pages(heart.agent.database, "aria", tmp_path)

    assert pages.rows["procedures"] == 2
    assert (tmp_path / "procedures.md").read_text("utf-8").splitlines() == [
        "# Procedures",
        "", "## answer", "", "- end: Yours", "- greeting: Dear …",
        "", "## deploy", "", "- 1. build", "- 2. ship: after noon",
    ]  # fmt: skip


def scores(heart: Heart, question: str) -> list[tuple[Any, ...]]:
    """Ask without leaving a trace in the counters that the next answer depends on."""
    answers = heart.recall(question, limit=5, at=MAY)
    return [(each.id, round(each.score, 6)) for each in answers]


def found(url: str, query: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(url, autocommit=True) as owner:
        return sorted(owner.execute(query).fetchall())


class another_database:  # noqa: N801 (used as a context)
    """A database of its own, gone when the block ends."""

    def __init__(self, server, template: str) -> None:
        self.server, self.template, self.name = server, template, f"restored_{id(self):x}"

    def __enter__(self) -> str:
        self._admin(f"create database {self.name} template {self.template}")
        return self.server.dsn(self.name)

    def __exit__(self, *_: object) -> None:
        self._admin(f"drop database {self.name} with (force)")

    def _admin(self, statement: str) -> None:
        with psycopg.connect(self.server.dsn("postgres"), autocommit=True) as connection:
            connection.execute(statement)
