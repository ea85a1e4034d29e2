"""Erasing from exports: the file says nothing of it any more and can be restored; what was erased stays erased."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

import psycopg
import pytest
from conftest import WordEmbedder
from erased_rows import dump, mentions
from turns import in_turn

from nous_online.core.errors import Refused
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.interfaces import exporting
from nous_online.interfaces.exporting import erase_exports, export_agent, restore_agent
from nous_online.language import embedding
from nous_online.memories.erasure import Erased, Erasure, Part, erase_everywhere, erase_some

WORD = "zinfandel"


@pytest.fixture
def lived(heart: Heart, monkeypatch: pytest.MonkeyPatch) -> tuple[Heart, UUID, UUID]:
    """A heart, a fact to be erased, and one that it had replaced."""
    monkeypatch.setattr(embedding, "embedder_of", lambda _: heart.agent.embedder)
    old = heart.learn("The wine is upstairs").memory
    fact = heart.learn(f"The {WORD} is in the cellar", context=f"said over {WORD}").memory
    heart.learn(f"The {WORD} is in the cellar")
    heart.supersede_fact(old.id, fact.id, reason=f"now it is {WORD}")
    heart.learn("The office opens at nine", context=f"Ana came in\nThe {WORD} is in the cellar")
    heart.cite(heart.recall(f"where is the {WORD}?").id, [fact.id])
    return heart, fact.id, old.id


def erase(database_url: str, fact_id: UUID, path: Path, *, is_dry_run: bool = False) -> Erased:
    def eraser(erasure: Erasure) -> dict[str, int]:
        return {**erase_exports(erasure, [path])}

    return erase_some(
        database_url, "aria", Part((fact_id,)), reason="asked for", erasers=[eraser], is_dry_run=is_dry_run,
        embedder_of=lambda _: WordEmbedder(),
    )  # fmt: skip


@pytest.mark.parametrize("name", ["aria.jsonl", "aria.jsonl.gz"])
def test_an_export_loses_what_is_erased_and_can_be_restored(
    lived: tuple[Heart, UUID, UUID], owner: psycopg.Connection, database_url: str, tmp_path: Path, name: str
) -> None:
    heart, fact_id, old_id = lived
    export_agent(heart.agent.database, "aria", path := tmp_path / name)

    erased = erase(database_url, fact_id, path)
    restore_agent(heart.agent.database, path, agent_id="basil")

    assert WORD not in (gzip.decompress(path.read_bytes()) if name.endswith(".gz") else path.read_bytes()).decode()
    assert erased.copies == {"exports": 1}
    assert mentions(dump(owner), WORD) == set()
    basil = Heart.open("basil", database=heart.agent.database, embedder=heart.agent.embedder, judge=heart.agent.judge)
    assert basil.count() == {"active": 1, "archived": 1}
    assert (basil.get(old_id).state, basil.get(old_id).superseded_by) == ("archived", None)
    assert [each.content for each in basil.recall("when does the office open?")] == ["The office opens at nine"]


def test_an_export_of_before_brings_nothing_back_that_was_erased_here(
    lived: tuple[Heart, UUID, UUID], owner: psycopg.Connection, database_url: str, tmp_path: Path
) -> None:
    heart, fact_id, _ = lived
    export_agent(heart.agent.database, "aria", path := tmp_path / "aria.jsonl")
    erase(database_url, fact_id, tmp_path / "none")
    # The rest is lost otherwise, and its tombstones stay.
    hashes = owner.execute("select * from lifecycle.tombstones").fetchall()
    erase_everywhere(database_url, "aria", reason="x", erasers=[])
    owner.execute("delete from lifecycle.tombstones")
    for row in hashes:
        owner.execute("insert into lifecycle.tombstones values (%s, %s, %s)", row)

    restored = restore_agent(heart.agent.database, path)

    assert restored.erased == 1
    assert WORD in path.read_text("utf-8")
    assert mentions(dump(owner), WORD) == set()
    assert heart.count() == {"active": 1, "archived": 1}


def test_a_dry_run_counts_the_export_and_leaves_it(
    lived: tuple[Heart, UUID, UUID], database_url: str, tmp_path: Path
) -> None:
    heart, fact_id, _ = lived
    export_agent(heart.agent.database, "aria", path := tmp_path / "aria.jsonl")
    before = path.read_bytes()

    erased = erase(database_url, fact_id, path, is_dry_run=True)

    assert erased.copies == {"exports": 1}
    assert path.read_bytes() == before


def test_an_export_of_an_agent_that_is_erased_whole_is_deleted_and_of_another_refused(
    lived: tuple[Heart, UUID, UUID], database_url: str, tmp_path: Path
) -> None:
    heart, fact_id, _ = lived
    export_agent(heart.agent.database, "aria", path := tmp_path / "aria.jsonl")
    other = Erasure(database_url, "ben", frozenset(), is_dry_run=False, ids=frozenset({str(fact_id)}))

    with pytest.raises(Refused, match="is an export of agent 'aria', not of 'ben'"):
        erase_exports(other, [path])
    erase_everywhere(database_url, "aria", reason="x", erasers=[lambda erasure: {**erase_exports(erasure, [path])}])

    assert not path.exists()


class Life:
    """What a user and an agent do together, each thing in a word of its own."""

    def __init__(self, heart: Heart, user: str, chance: Random) -> None:
        self.heart, self.user, self.chance = heart, user, chance
        self.words: list[str] = []
        self.sessions = [f"{user}-{number}" for number in range(2)]

    def word(self) -> str:
        self.words.append(f"{self.user}{''.join(self.chance.choices('bcdfgklmnprst', k=8))}")
        return self.words[-1]

    def does(self) -> None:
        """Do one thing, by chance."""
        heart, user, word, session = self.heart, self.user, self.word(), self.chance.choice(self.sessions)
        of_user: Any = {"user_id": user, "session_id": session}
        deeds: list[Callable[[], object]] = [
            lambda: heart.learn(f"The {word} is in the cellar", context=f"said over {word}", tags=[word], **of_user),
            lambda: heart.learn("The office opens at nine", source=word, **of_user),
            lambda: heart.record_episode(f"Bea: I will collect the {word} on Saturday at noon.", title=word, **of_user),
            lambda: heart.record_episode(f"fact: The {word} is new.\nIt rained.", **of_user),
            lambda: heart.store_procedure(f"Oil the {word}", goals=[f"the {word} runs"], user_id=user),
            lambda: heart.add_censor(f"dropping the {word}", f"the {word} breaks", user_id=user),
            lambda: self.sets_off(f"dropping the {word}"),
            lambda: heart.focus(f"mend the {word}", session_id=session),
            lambda: heart.load_context(note=f"bring the {word}", session_id=session),
            lambda: heart.record_decision(f"Sell the {word}", rationale=f"{word} is dear", session_id=session),
            lambda: heart.recall(f"where is the {word}?", **of_user),
            lambda: heart.assemble_context(query=f"the {word}", **of_user),
            lambda: heart.learn(f"The {word} costs nine", key=f"{user}/price", **of_user),
            heart.work,
        ]
        self.chance.choice(deeds)()

    def sets_off(self, action: str) -> None:
        """Let a censor that all share fire at what the user said, and report it, or not."""
        self.heart.learn(action, user_id=self.user)
        censor = self.heart.add_censor("dropping the", "it breaks", is_literal=True)
        fired = next(each for each in self.heart.check_censors(action) if each.censor.id == censor.id)
        if self.chance.random() < 0.7:
            self.heart.report_false_positive(censor.id, activation_id=fired.id, source_kind="user")


def rows_of(database: Database, agent_id: str, path: Path) -> list[tuple[str, str]]:
    """Return the rows of an export of an agent, without what erasing dates, in a fixed order."""
    export_agent(database, agent_id, path)
    found: list[tuple[str, str]] = []
    for line in path.read_text("utf-8").splitlines()[1:-1]:
        table, row = (json.loads(line)[name] for name in ("table", "row"))
        if row.get("action") == "redacted":
            row["effective_at"] = row["recorded_at"] = None
        found.append((table, json.dumps(row)))
    return sorted(found)


@pytest.mark.parametrize("seed", in_turn(range(12), of=3))
def test_an_erased_export_says_what_the_store_says_and_nothing_of_the_user(
    heart: Heart, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(exporting, "embedder_of", lambda _: heart.agent.embedder)
    chance = Random(seed)  # noqa: S311 (nothing secret)
    lives = tom, ana = Life(heart, "tom", chance), Life(heart, "ana", chance)
    for _ in range(40):
        chance.choice(lives).does()
    export_agent(heart.agent.database, "aria", path := tmp_path / "aria.jsonl")
    before = path.read_text("utf-8")

    erase_some(
        database_url, "aria", Part(user_id="tom"), reason="asked for", embedder_of=lambda _: heart.agent.embedder,
        erasers=[lambda erasure: {**erase_exports(erasure, [path])}],
    )  # fmt: skip
    restore_agent(heart.agent.database, path, agent_id="basil")

    after = path.read_text("utf-8")
    assert [word for word in tom.words if word in before]
    assert [word for word in (*tom.words, "tom") if word in after] == []
    assert [word for word in ana.words if (word in before) != (word in after)] == []
    rows = [rows_of(heart.agent.database, agent_id, tmp_path / agent_id) for agent_id in ("aria", "basil")]
    assert rows[0] == rows[1]


def test_an_export_that_breaks_a_rule_stays_as_it_was_and_nothing_is_erased(
    lived: tuple[Heart, UUID, UUID], owner: psycopg.Connection, database_url: str, tmp_path: Path
) -> None:
    heart, fact_id, old_id = lived
    owner.execute("set session_replication_role = replica")
    owner.execute("update heart.facts set row_version = row_version + 7 where id = %s", [old_id])
    export_agent(heart.agent.database, "aria", path := tmp_path / "aria.jsonl")
    before = path.read_bytes()

    with pytest.raises(Refused, match="was written without an event"):
        erase(database_url, fact_id, path)

    assert path.read_bytes() == before
    assert heart.get_fact(fact_id).state == "active"


def test_an_older_export_under_another_name_brings_nothing_back_of_who_was_erased(
    heart: Heart, owner: psycopg.Connection, database_url: str, tmp_path: Path
) -> None:
    heart.learn("The office opens at nine", user_id="tom")
    heart.learn("The office opens at nine", user_id="ana")
    heart.recall(f"where is the {WORD}?", user_id="tom", session_id="t")
    heart.record_decision(f"Buy {WORD}", session_id="t")
    export_agent(heart.agent.database, "aria", path := tmp_path / "aria.jsonl")
    erase_some(database_url, "aria", Part(user_id="tom"), reason="x", erasers=[], embedder_of=lambda _: WordEmbedder())
    erase_everywhere(database_url, "aria", reason="the agent is not needed any more", erasers=[])

    restored = restore_agent(heart.agent.database, path, agent_id="basil")

    assert restored.erased == 1
    assert mentions(dump(owner), WORD, "tom") == set()
    kept = owner.execute("select user_id, content from heart.facts where agent_id = 'basil'").fetchall()
    assert kept == [("ana", "The office opens at nine")]


def test_an_older_export_brings_back_no_act_of_who_was_erased_and_did_nothing_else(
    heart: Heart, owner: psycopg.Connection, database_url: str, tmp_path: Path
) -> None:
    heart.add_censor("lend out", "insurance", is_literal=True)
    heart.check_censors(f"lend out {WORD}", user_id="tom")
    export_agent(heart.agent.database, "aria", path := tmp_path / "aria.jsonl")
    erase_some(database_url, "aria", Part(user_id="tom"), reason="x", erasers=[], embedder_of=lambda _: WordEmbedder())
    erase_everywhere(database_url, "aria", reason="the agent is not needed any more", erasers=[])

    restore_agent(heart.agent.database, path, agent_id="basil")

    assert mentions(dump(owner), WORD, "tom") == set()


def test_what_a_user_says_after_being_erased_comes_back(heart: Heart, database_url: str, tmp_path: Path) -> None:
    heart.learn(f"The {WORD} is in the cellar", user_id="tom")
    erase_some(database_url, "aria", Part(user_id="tom"), reason="x", erasers=[], embedder_of=lambda _: WordEmbedder())
    heart.learn("The attic is dry", user_id="tom")
    export_agent(heart.agent.database, "aria", path := tmp_path / "aria.jsonl")

    assert restore_agent(heart.agent.database, path, agent_id="basil").erased == 0


@pytest.mark.parametrize("of_whom", ["user", "memory"])
def test_an_export_with_the_completion_of_an_erased_episode_can_be_restored(
    heart: Heart, database_url: str, tmp_path: Path, of_whom: str
) -> None:
    heart.learn("The shop closes at six")
    episode = heart.record_episode(f"Tom: I will collect the purple {WORD} on Saturday at noon.", user_id="tom")
    heart.work()
    export_agent(heart.agent.database, "aria", path := tmp_path / "aria.jsonl")
    path.write_text(with_counted_word(path.read_text("utf-8"), WORD), "utf-8")

    erase_some(
        database_url, "aria", Part(user_id="tom") if of_whom == "user" else Part((episode.id,)), reason="asked for",
        erasers=[lambda erasure: {**erase_exports(erasure, [path])}], embedder_of=lambda _: WordEmbedder(),
    )  # fmt: skip

    assert WORD not in path.read_text("utf-8")
    assert "heart.completions" not in restore_agent(heart.agent.database, path, agent_id="basil").rows


def with_counted_word(text: str, word: str) -> str:
    """Return an export as earlier versions wrote it, with a row that counts in how many memories a word occurs."""
    *lines, end = text.splitlines(keepends=True)
    lines.append(json.dumps({"table": "heart.term_stats", "row": {"lexeme": word, "document_count": 1}}) + "\n")
    rows = json.loads(end)["end"]["rows"] | {"heart.term_stats": 1}
    return "".join([*lines, json.dumps({"end": {"rows": rows, "sha256": sha256("".join(lines).encode()).hexdigest()}})])
