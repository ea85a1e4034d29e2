"""The vectors of the join benchmark: real sentence embeddings, and more of the same spectrum."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nous_online.language.minilm import LocalMiniLM, Vectors, unit_rows

TEXT_KEYS = ("a", "b", "text", "fact", "old", "new")
LONGEST_TEXT = 400  # characters: facts are sentences; essays would only make the embedding slow
FEWEST_TEXTS = 500  # a spectrum of 384 directions needs more samples than directions
SEED = 20


def sentences(data: Path) -> list[str]:
    """Return the distinct sentences of every pairs, facts and turns file in `data`, in a fixed random order."""
    found = dict.fromkeys(
        text for file in sorted(data.glob("*.jsonl")) if wanted(file) for text in texts_of(file) if text.strip()
    )
    texts = [text for text in found if len(text) <= LONGEST_TEXT]
    return [texts[place] for place in np.random.default_rng(SEED).permutation(len(texts))]


def wanted(file: Path) -> bool:
    """Tell whether a file of the public cases holds single sentences."""
    return any(word in file.stem for word in ("pairs", "facts", "turns", "conflicts", "clusters"))


def texts_of(file: Path) -> Iterator[str]:
    """Yield each sentence in a file of JSON lines."""
    for line in file.read_text("utf-8").splitlines():
        case = json.loads(line)
        yield from (case[key] for key in TEXT_KEYS if isinstance(case.get(key), str))


def embedded(texts: list[str]) -> Vectors:
    """Embed with the default model; the result is kept in the temporary folder under the hash of the texts."""
    content = hashlib.sha256("\n".join([LocalMiniLM.space.weights_sha256, *texts]).encode()).hexdigest()
    kept = Path(tempfile.gettempdir()) / f"nous-bench-{content[:16]}.npy"
    if not kept.exists():
        part = kept.with_suffix(".part.npy")
        np.save(part, LocalMiniLM().embed_documents(texts))
        part.replace(kept)
    return np.load(kept)


def decaying(rows: int, width: int) -> Vectors:
    """Draw rows of a power-law spectrum, for a machine without any texts: variance falls as 1/sqrt(rank)."""
    rng = np.random.default_rng(SEED)
    scale = np.arange(1, width + 1) ** -0.25
    return unit_rows((rng.standard_normal((rows, width)) * scale).astype(np.float32))


def more_like(real: Vectors, rows: int) -> Vectors:
    """Draw `rows` vectors with the spectrum and the neighbourhoods of `real`.

    First the real vectors, then copies of them, each moved away until its cosine to where it was is one drawn from
    the real nearest-neighbour cosines, in a direction drawn from a Gaussian with the covariance of `real`.
    """
    rng = np.random.default_rng(SEED)
    closeness = nearest_cosines(real, rng)
    spread = np.linalg.cholesky(np.cov(real.T) + 1e-9 * np.eye(real.shape[1])).astype(np.float32)
    return moved(real, rows, spread, closeness, rng)


def wider(real: Vectors, rows: int, width: int) -> Vectors:
    """Draw `rows` vectors of more dimensions: the curve of variances of `real` stretched over `width` directions.

    Neighbourhoods as in `more_like`, around a third as many drawn centres as rows. Stretching multiplies the effective
    dimension, which is harder on a bound that keeps few dimensions than real wide embeddings are.
    """
    rng = np.random.default_rng(SEED)
    variances = np.maximum(np.linalg.eigvalsh(real.T @ real / len(real))[::-1], 0)
    places = np.linspace(0, len(variances) - 1, width)
    scale = np.sqrt(np.interp(places, np.arange(len(variances)), variances)).astype(np.float32)
    centres = unit_rows(rng.standard_normal((rows // 3, width), dtype=np.float32) * scale)
    return moved(centres, rows, scale, nearest_cosines(real, rng), rng)


def nearest_cosines(real: Vectors, rng: np.random.Generator) -> NDArray[np.float32]:
    """Return the cosine of a thousand rows to their nearest other row."""
    asked = rng.choice(len(real), size=min(1000, len(real)), replace=False)
    cosines = real[asked] @ real.T
    cosines[np.arange(len(asked)), asked] = -1
    return cosines.max(axis=1)


def moved(
    centres: Vectors, rows: int, spread: Vectors, closeness: NDArray[np.float32], rng: np.random.Generator
) -> Vectors:
    """Return the centres and then rows at a drawn closeness to a drawn centre.

    `spread` is a Cholesky factor of the covariance to move in, or a diagonal of scales.
    """
    placed = np.empty((rows, centres.shape[1]), dtype=np.float32)
    placed[: len(centres)] = centres[:rows]
    for start in range(len(centres), rows, 4096):
        size = min(4096, rows - start)
        origin = centres[rng.integers(len(centres), size=size)]
        noise = rng.standard_normal(origin.shape, dtype=np.float32)
        away = noise * spread if spread.ndim == 1 else noise @ spread.T
        sideways = unit_rows(away - np.vecdot(away, origin)[:, None] * origin)
        cosine = np.clip(rng.choice(closeness, size=size), 0, 1)[:, None]
        placed[start : start + size] = cosine * origin + np.sqrt(1 - cosine**2) * sideways
    return unit_rows(placed)
