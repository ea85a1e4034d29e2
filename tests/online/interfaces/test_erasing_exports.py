"""Erasing from exports: the file says nothing of it any more and can be restored; what was erased stays erased."""

from __future__ import annotations

import gzip
from pathlib import Path
from uuid import UUID

import psycopg
import pytest
from conftest import WordEmbedder
from erased_rows import dump, mentions

from nous_online import heart as hearts
from nous_online.core.errors import Refused
from nous_online.heart import Heart
from nous_online.interfaces.exporting import erase_exports, export_agent, restore_agent
from nous_online.memories.erasure import Erased, Erasure, Part, erase_everywhere, erase_some

WORD = "zinfandel"


@pytest.fixture
def lived(heart: Heart, monkeypatch: pytest.MonkeyPatch) -> tuple[Heart, UUID, UUID]:
    """A heart, a fact to be erased, and one that it had replaced."""
    monkeypatch.setattr(hearts, "embedder_of", lambda _: heart.agent.embedder)
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
