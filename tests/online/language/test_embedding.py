"""Texts to vectors: the local model, an OpenAI-compatible server on the loopback, and what either may do wrong."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
from conftest import ScriptedJudge, WordEmbedder
from hypothesis import given
from hypothesis import strategies as st

from nous_online.core.errors import InvalidInput, NousError, Unavailable
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.language.embedding import (
    MOST_PASSAGES,
    Embedder,
    OpenAICompatible,
    after_subject,
    checked_vectors,
    context_passages,
    default_embedder,
    embedder_of,
    passage_sentences,
    passages,
    recall_vector,
    unit_sum,
)
from nous_online.language.minilm import (
    TOKENIZER_SHA256,
    LocalMiniLM,
    ShortTexts,
    Vectors,
    batches,
    installed_weights,
    unit_rows,
    verified,
    word_pieces,
)
from nous_online.language.multilingual import ORDINARY
from nous_online.memories.status import known_agents

Answer = Callable[[list[str]], tuple[int, Any]]


class EmbeddingServer(ThreadingHTTPServer):
    """Speaks `POST /v1/embeddings`; `answers` are given in turn, the last one for good."""

    answers: list[Answer]
    asked: list[dict[str, Any]]
    headers: list[dict[str, str]]

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class Handler(BaseHTTPRequestHandler):
    server: EmbeddingServer

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append({"path": self.path, **asked})
        self.server.headers.append(dict(self.headers))
        answer = self.server.answers.pop(0) if len(self.server.answers) > 1 else self.server.answers[0]
        status, body = answer(asked["input"])
        sent = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002 (the name the base class chose)
        """Stay silent."""


@pytest.fixture
def embedding_server() -> Iterator[EmbeddingServer]:
    server = EmbeddingServer(("127.0.0.1", 0), Handler)
    server.answers, server.asked, server.headers = [lengths], [], []
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


def lengths(texts: list[str]) -> tuple[int, Any]:
    """Answer with vectors that tell their text by its length, last one first."""
    data = [{"index": i, "embedding": [float(len(text)), 1.0]} for i, text in enumerate(texts)]
    return 200, {"data": data[::-1]}


def in_a_cone(texts: list[str]) -> tuple[int, Any]:
    """Answer as many models do: with vectors that have most of their length in common."""
    words = WordEmbedder().embed_documents(texts)
    return 200, {"data": [{"index": i, "embedding": (row + 0.3).tolist()} for i, row in enumerate(words)]}


def cosine_of_strangers(embedder: Embedder) -> float:
    """Return the cosine of two texts without a word in common."""
    one, other = embedder.embed_documents(["The cat sat on the mat", "Interest rates rose again"])
    return float(one @ other)


def status(code: int) -> Answer:
    return lambda _: (code, {"error": "so it goes"})


def body(answer: Any) -> Answer:
    return lambda _: (200, answer)


def remote(server: EmbeddingServer, **options: Any) -> OpenAICompatible:
    return OpenAICompatible(base_url=server.base_url, model="small", dimensions=2, **options)


@pytest.fixture(scope="module")
def local() -> LocalMiniLM:
    return LocalMiniLM(threads=1)


def test_rows_come_back_in_the_order_they_were_asked_for(embedding_server: EmbeddingServer) -> None:
    texts = ["a" * (1 + number * 7 % 150) for number in range(150)]

    rows = remote(embedding_server).embed_documents(texts)

    assert rows.shape == (150, 2)
    assert np.allclose(rows[:, 0] / rows[:, 1], [len(text) for text in texts], rtol=1e-4)
    assert np.allclose(np.linalg.norm(rows, axis=1), 1)


def test_texts_are_asked_for_in_batches_with_model_and_key(embedding_server: EmbeddingServer) -> None:
    remote(embedding_server, api_key="sesame").embed_documents(["x"] * 150)

    assert [len(asked["input"]) for asked in embedding_server.asked] == [64, 64, 22]
    assert {(asked["path"], asked["model"]) for asked in embedding_server.asked} == {("/v1/embeddings", "small")}
    assert {headers["Authorization"] for headers in embedding_server.headers} == {"Bearer sesame"}


def test_nothing_to_embed_asks_nobody(embedding_server: EmbeddingServer) -> None:
    assert remote(embedding_server).embed_documents([]).shape == (0, 2)
    assert embedding_server.asked == []


def test_a_question_is_one_vector(embedding_server: EmbeddingServer) -> None:
    assert remote(embedding_server).embed_query("tea").shape == (2,)


@pytest.mark.parametrize("code", [429, 500, 503])
def test_a_passing_failure_is_asked_again(embedding_server: EmbeddingServer, code: int) -> None:
    embedding_server.answers = [status(code), lengths]

    assert remote(embedding_server).embed_documents(["tea"]).shape == (1, 2)
    assert len(embedding_server.asked) == 2


@pytest.mark.parametrize(("code", "attempts"), [(400, 1), (401, 1), (302, 1), (503, 3)])
def test_a_lasting_failure_is_unavailable_and_names_the_server(
    embedding_server: EmbeddingServer, code: int, attempts: int
) -> None:
    embedding_server.answers = [status(code)]

    with pytest.raises(Unavailable, match=rf"127\.0\.0\.1.*{code}.*NOUS_EMBEDDING_URL"):
        remote(embedding_server).embed_documents(["tea"])

    assert len(embedding_server.asked) == attempts


@pytest.mark.parametrize(
    "answer",
    [
        b"<html>not json</html>",
        [],
        None,
        {},
        {"data": None},
        {"data": [{"embedding": [1.0, 0.0]}]},
        {"data": [{"index": 0, "embedding": [1.0, 0.0]}, {"index": 0, "embedding": [0.0, 1.0]}]},
        {"data": [{"index": 0, "embedding": [1.0, 0.0]}]},
        {"data": [{"index": 0, "embedding": "AAAA"}, {"index": 1, "embedding": "AAAA"}]},
        {"data": [{"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": [1.0, 2.0]}]},
    ],
)
def test_an_answer_without_a_vector_for_each_text_is_an_error_of_ours(
    embedding_server: EmbeddingServer, answer: Any
) -> None:
    embedding_server.answers = [body(answer)]

    with pytest.raises(NousError):
        remote(embedding_server).embed_documents(["tea", "coffee"])


@pytest.mark.parametrize(
    "vector", [[1.0], [1.0, 2.0, 3.0], [0.0, 0.0], [None, 1.0], [float("nan"), 1.0], [float("inf"), 1.0]]
)
def test_a_vector_that_cannot_be_compared_is_refused(embedding_server: EmbeddingServer, vector: list[Any]) -> None:
    embedding_server.answers = [body({"data": [{"index": 0, "embedding": vector}]})]

    with pytest.raises(InvalidInput):
        remote(embedding_server).embed_documents(["tea"])


def test_a_server_that_is_not_there_is_unavailable() -> None:
    absent = OpenAICompatible(base_url="http://127.0.0.1:9/v1", model="small", dimensions=2, timeout_s=0.5)

    with pytest.raises(Unavailable, match=r"127\.0\.0\.1:9"):
        absent.embed_documents(["tea"])


@pytest.mark.parametrize("base_url", ["", "nonsense", "http://[", "ftp://127.0.0.1/v1"])
def test_an_address_that_is_none_is_unavailable(base_url: str) -> None:
    with pytest.raises(Unavailable):
        OpenAICompatible(base_url=base_url, model="small", dimensions=2).embed_documents(["tea"])


def test_width_and_model_make_a_space_of_their_own() -> None:
    one = OpenAICompatible(base_url="http://a", model="m", dimensions=2).space
    other = OpenAICompatible(base_url="http://a", model="m", dimensions=3).space

    assert one.id != other.id


def test_what_all_texts_of_a_server_have_in_common_is_taken_away_once_a_process(
    embedding_server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedding_server.answers = [in_a_cone]
    monkeypatch.setenv("NOUS_EMBEDDING_URL", embedding_server.base_url)
    monkeypatch.setenv("NOUS_EMBEDDING_MODEL", "narrow")
    monkeypatch.setenv("NOUS_EMBEDDING_DIMENSIONS", "64")

    centred = default_embedder()
    raw = OpenAICompatible(base_url=embedding_server.base_url, model="narrow", dimensions=64)

    assert cosine_of_strangers(raw) > 0.8
    assert abs(cosine_of_strangers(centred)) < 0.2
    centred.embed_query("tea")
    assert [len(each["input"]) for each in embedding_server.asked] == [2, 2, len(ORDINARY), 1]
    assert centred.space != raw.space
    assert embedder_of(centred.space) is centred
    assert (kept := embedder_of(raw.space)) is not None
    assert np.allclose(kept.embed_query("tea"), raw.embed_query("tea"))


@pytest.mark.parametrize(("name", "space"), [("", "minilm-l6-v2-int8"), ("minilm", "minilm-l6-v2-int8")])
def test_without_a_server_the_built_in_embedder_is_the_default(
    monkeypatch: pytest.MonkeyPatch, name: str, space: str
) -> None:
    monkeypatch.setenv("NOUS_EMBEDDING_MODEL", name)

    assert default_embedder().space.id == space


def test_a_server_has_a_model_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOUS_EMBEDDING_URL", "http://127.0.0.1:9")

    assert default_embedder().space.model == "text-embedding-3-small"


def test_the_local_model_gives_unit_vectors_that_know_what_is_alike(local: LocalMiniLM) -> None:
    rows = local.embed_documents(["The cat sat on the mat", "A cat was sitting on a rug", "Interest rates rose in May"])

    assert rows.shape == (3, 384)
    assert rows.dtype == np.float32
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    assert rows[0] @ rows[1] > rows[0] @ rows[2] + 0.3


def test_the_local_model_keeps_the_order_whatever_the_lengths(local: LocalMiniLM) -> None:
    texts = [" ".join(["tea"] * (1 + number * 13 % 40)) + f" {number}" for number in range(48)]

    together = local.embed_documents(texts)
    alone = np.asarray([local.embed_query(text) for text in texts[::6]])

    assert ((together[::6] * alone).sum(axis=1) > 0.99).all()


def test_the_local_model_takes_what_is_empty_odd_or_too_long(local: LocalMiniLM) -> None:
    rows = local.embed_documents(["", "🧠", "word " * 5000, "\u200b"])

    assert local.embed_documents([]).shape == (0, 384)
    assert checked_vectors(rows, shape=(4, 384)).shape == (4, 384)


def test_weights_are_checked_against_their_hash(tmp_path: Path) -> None:
    altered = tmp_path / "model.onnx"
    altered.write_bytes(b"altered")

    with pytest.raises(Unavailable, match=r"model\.onnx has SHA-256 .* expected 1234; reinstall"):
        verified(altered, "1234")
    with pytest.raises(Unavailable, match="is missing"):
        verified(tmp_path / "absent.onnx", TOKENIZER_SHA256)


def test_the_installed_weights_are_the_pinned_ones() -> None:
    assert verified(installed_weights(), LocalMiniLM.space.weights_sha256).is_file()


@pytest.mark.parametrize(
    ("vectors", "said"),
    [
        (np.zeros((1, 3)), "expected vectors of shape"),
        (np.ones(2), "expected vectors of shape"),
        (np.ones((2, 2)), "expected vectors of shape"),
        (np.array([[np.nan, 1.0]]), "NaN or infinity"),
        (np.array([[np.inf, 1.0]]), "NaN or infinity"),
        (np.zeros((1, 2)), "all zeros"),
        ([["a", "b"]], "no matrix of numbers"),
        ([[1.0], [1.0, 2.0]], "no matrix of numbers"),
        (None, "expected vectors of shape"),
    ],
)
def test_vectors_that_cannot_be_stored_are_refused(vectors: Any, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        checked_vectors(vectors, shape=(1, 2))


def test_vectors_of_any_length_become_unit_vectors() -> None:
    rows = checked_vectors([[3e30, 4e30], [3e-30, 4e-30]], shape=(2, 2))

    assert np.allclose(rows, [[0.6, 0.8], [0.6, 0.8]])


def test_a_zero_row_stays_zero() -> None:
    assert (unit_rows(np.zeros((1, 2))) == 0).all()


def test_batches_hold_everything_once_in_order() -> None:
    assert list(batches(list(range(5)), 2)) == [[0, 1], [2, 3], [4]]
    assert list(batches([], 2)) == []


@pytest.mark.parametrize(
    ("vectors", "error"),
    [
        (np.full((1, 64), np.nan, dtype=np.float32), InvalidInput),
        (np.ones((1, 63), dtype=np.float32), InvalidInput),
        (np.zeros((1, 64), dtype=np.float32), InvalidInput),
        (RuntimeError("out of memory"), Unavailable),
    ],
)
def test_a_broken_embedder_stores_nothing_and_the_next_call_is_right(
    database: Database, owner: psycopg.Connection, vectors: Any, error: type[NousError]
) -> None:
    class Broken(WordEmbedder):
        def embed_documents(self, texts: Any) -> Any:
            if isinstance(vectors, Exception):
                raise vectors
            return vectors

    Heart.open("aria", database=database, embedder=WordEmbedder(), judge=ScriptedJudge())
    broken = Heart.open("aria", database=database, embedder=Broken(), judge=ScriptedJudge())

    with pytest.raises(error):
        broken.learn("Tea helps")
    with pytest.raises(error):
        Heart.open("ben", database=database, embedder=Broken(), judge=ScriptedJudge())
    assert known_agents(database.url) == ["aria"]

    assert owner.execute("select count(*) from lifecycle.events").fetchone() == (0,)
    mended = Heart.open("aria", database=database, embedder=WordEmbedder(), judge=ScriptedJudge())
    assert mended.learn("Tea helps").action == "stored"


def test_a_space_whose_width_changed_is_refused_with_the_fix(database: Database, heart: Heart) -> None:
    class Wider(WordEmbedder):
        space = WordEmbedder.space.__class__("words-64", "words", "", 65)

    with pytest.raises(InvalidInput, match="give the new model a name of its own"):
        Heart.open("ben", database=database, embedder=Wider(), judge=ScriptedJudge())


LONG = "The blue deployment serves everybody until noon. The green deployment takes over after the smoke tests."


def axis(number: int) -> Vectors:
    return np.eye(8, dtype=np.float32)[number]


def drawn(texts: list[str]) -> dict[str, Vectors]:
    return {text: axis(number % 8) for number, text in enumerate(dict.fromkeys(texts))}


def test_each_sentence_is_embedded_with_its_subject_before_it():
    assert passage_sentences(LONG, "deploys") == [
        "deploys: The blue deployment serves everybody until noon.",
        "deploys: The green deployment takes over after the smoke tests.",
    ]


def test_a_subject_that_opens_the_sentence_is_not_repeated():
    assert after_subject("Caroline", "Caroline: hello") == "Caroline: hello"
    assert after_subject(None, "hello") == "hello"


def test_an_exclamation_joins_the_sentence_after_it():
    assert passage_sentences("Wow! I never knew that you play the violin in an orchestra.", None) == [
        "Wow! I never knew that you play the violin in an orchestra."
    ]


def test_every_line_of_a_context_is_a_passage():
    assert context_passages("Ana: where to?\n\n  Ben: home  ") == ["Ana: where to?", "Ben: home"]
    assert context_passages(None) == []


def test_a_single_sentence_without_context_is_recalled_by_its_own_vector():
    content = "Deploys go through blue/green since May"

    assert recall_vector(content, None, None, drawn(passages(content, None, None))) is None


def test_sentences_and_context_turn_the_vector_towards_them():
    texts = passages(LONG, None, "Ana: who deploys?")
    vectors = drawn(texts)

    blend = recall_vector(LONG, None, "Ana: who deploys?", vectors)

    assert blend is not None
    assert [float(blend @ vectors[text]) > 0 for text in texts] == [True] * 4
    assert blend @ vectors[LONG] > blend @ vectors[texts[1]] > blend @ vectors["Ana: who deploys?"]


@given(st.text(max_size=400), st.none() | st.text(max_size=20), st.none() | st.text(max_size=400))
def test_any_text_gives_a_unit_vector_or_none(content, subject, context):
    texts = passages(content, subject, context)

    blend = recall_vector(content, subject, context, drawn(texts))

    assert blend is None or abs(float(np.linalg.norm(blend)) - 1) < 1e-5


def test_a_very_long_text_costs_a_bounded_number_of_embeddings():
    book = " ".join(f"Chapter {number} tells of a long and winding road to the sea." for number in range(500))

    assert len(passages(book, None, book.replace(". ", ".\n"))) == 1 + 2 * MOST_PASSAGES


def test_opposite_vectors_leave_the_first():
    assert unit_sum([axis(0), -axis(0)]).tolist() == axis(0).tolist()


def test_short_texts_of_callers_at_once_have_the_vectors_they_have_alone(local: LocalMiniLM) -> None:
    texts = [" ".join(["the harbour opens at six"] * (1 + number % 5)) + f" on pier {number}" for number in range(20)]
    alone = [local.embed_query(text) for text in texts]

    with ThreadPoolExecutor(8) as callers:
        together = list(callers.map(local.embed_query, texts))

    assert np.array_equal(together, alone)


def test_callers_who_wait_for_a_run_share_the_next() -> None:
    runs: list[int] = []
    is_free = threading.Event()

    def run(encodings: Sequence[Any]) -> Any:
        runs.append(len(encodings))
        is_free.wait(10)
        return np.zeros((len(encodings), 2))

    shared, (encoding,) = ShortTexts(run, at_once=1), word_pieces(["tea"])
    with ThreadPoolExecutor(4) as callers:
        first = callers.submit(shared.vectors, [encoding])
        while not runs:
            time.sleep(0.001)
        others = [callers.submit(shared.vectors, [encoding, encoding]) for _ in range(3)]
        while len(shared._waiting) < 6:  # pyright: ignore[reportPrivateUsage] (nothing else tells that all wait)
            time.sleep(0.001)
        is_free.set()
        counts = [len(each.result()) for each in (first, *others)]

    assert (counts, runs) == ([1, 2, 2, 2], [1, 6])


def test_a_run_that_fails_is_told_to_all_who_share_it_and_the_next_goes_on() -> None:
    failures = [Unavailable("the weights are gone")]

    def run(encodings: Sequence[Any]) -> Any:
        if failures:
            raise failures.pop()
        return np.zeros((len(encodings), 2))

    shared, (encoding,) = ShortTexts(run, at_once=1), word_pieces(["tea"])

    with pytest.raises(Unavailable, match="the weights are gone"):
        shared.vectors([encoding, encoding])
    assert len(shared.vectors([encoding])) == 1
