"""The exact self-join against faiss, blocked numpy products, scikit-learn and semhash: same vectors, one thread."""

from __future__ import annotations

import json
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.join_vectors import FEWEST_TEXTS, SEED, decaying, embedded, more_like, sentences, wider
from nous_online.language.minilm import Vectors
from nous_online.processes import child_environment, python_module

ROOT = Path(__file__).resolve().parents[1]
QUICK_TEXTS = 1000
THREAD_SETTINGS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


@dataclass(frozen=True)
class Trial:
    """One set of vectors and who joins it how often."""

    label: str
    vectors: Vectors
    rounds: dict[str, int]


@dataclass
class Outcome:
    """What each method needed on one set of vectors, and the pairs it found."""

    label: str
    seconds: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    peak_mb: dict[str, float] = field(default_factory=dict[str, float])
    pairs: dict[str, NDArray[np.int64]] = field(default_factory=dict[str, NDArray[np.int64]])

    def ratio(self, method: str) -> float:
        """Return how many times longer than ours `method` took, median over median."""
        return median(self.seconds[method]) / median(self.seconds["ours"])

    def missed(self) -> int:
        """Count the pairs of brute force that ours lacks."""
        return len(np.setdiff1d(self.pairs["gemm"], self.pairs["ours"], assume_unique=True))

    def extra(self) -> int:
        """Count the pairs of ours that brute force lacks."""
        return len(np.setdiff1d(self.pairs["ours"], self.pairs["gemm"], assume_unique=True))


def run(*, data: Path, quick: bool) -> dict[str, Any]:
    """Join real sentence embeddings, and more of the same spectrum, by every method in turn."""
    real, source = real_vectors(data, quick=quick)
    trials = quick_trials(real) if quick else full_trials(real)
    with tempfile.TemporaryDirectory(prefix="nous-join-") as folder:
        faiss, told = faster_faiss(Path(folder), trials[0])
        outcomes = [outcome(trial, Path(folder), faiss) for trial in trials]
    return {
        "metrics": metrics(outcomes),
        "peers": peers(outcomes),
        "notes": [
            source,
            told,
            *notes(outcomes),
            *(["--quick leaves out 100k rows and 1536 dimensions"] if quick else []),
        ],
    }


def real_vectors(data: Path, *, quick: bool) -> tuple[Vectors, str]:
    """Return embeddings of the sentences in `data`, or a power-law spectrum where there are too few."""
    texts = sentences(data) if data.is_dir() else []
    if len(texts) < FEWEST_TEXTS:
        return decaying(QUICK_TEXTS, 384), f"only {len(texts)} sentences in {data}: vectors of a power-law spectrum"
    used = texts[:QUICK_TEXTS] if quick else texts
    return embedded(used), f"{len(used)} distinct sentences of {data.name} embedded with all-MiniLM-L6-v2 (int8)"


def quick_trials(real: Vectors) -> list[Trial]:
    """Return the measurements of a minute."""
    twenty = filled(real, 20_000)
    return [Trial("20k_384", twenty, {"ours": 3, "faiss": 3, "gemm": 1, "semhash": 1})]


def full_trials(real: Vectors) -> list[Trial]:
    """Return all sizes: median of several rounds where a round is short, single runs where it is long."""
    return [
        Trial("20k_384", filled(real, 20_000), {"ours": 5, "faiss": 5, "gemm": 3, "sklearn": 1, "semhash": 1}),
        Trial("100k_384", filled(real, 100_000), {"ours": 3, "faiss": 1, "gemm": 1}),
        Trial("30k_1536", wider(real, 30_000, 1536), {"ours": 3, "faiss": 1, "gemm": 1}),
    ]


def filled(real: Vectors, rows: int) -> Vectors:
    """Return `rows` of the real vectors, completed with more of the same spectrum where they are too few."""
    return real[:rows] if len(real) >= rows else more_like(real, rows)[np.random.default_rng(SEED).permutation(rows)]


def outcome(trial: Trial, folder: Path, faiss: dict[str, str]) -> Outcome:
    """Measure one trial: the methods take turns, each run in a process of its own, FAISS in the environment `faiss`."""
    vectors_file = folder / f"{trial.label}.npy"
    np.save(vectors_file, trial.vectors)
    measured = Outcome(trial.label)
    for turn in range(max(trial.rounds.values())):
        for method in [name for name, rounds in trial.rounds.items() if turn < rounds]:
            joined, measured.pairs[method] = one_join(
                method, vectors_file, faiss if method == "faiss" else environment()
            )
            measured.seconds.setdefault(method, []).append(joined["seconds"])
            measured.peak_mb[method] = max(measured.peak_mb.get(method, 0.0), joined["peak_mb"])
    return measured


def one_join(method: str, vectors: Path, variables: dict[str, str]) -> tuple[dict[str, float], NDArray[np.int64]]:
    """Run one method in a fresh process; return its seconds and peak memory, and the pairs it found."""
    result = vectors.with_name("pairs.npy")
    command = python_module("benchmarks.join_contenders", method, str(vectors), str(result))
    finished = subprocess.run(  # noqa: S603 - our own module
        command, cwd=ROOT, env=variables, stdout=subprocess.PIPE, text=True, check=True
    )
    return json.loads(finished.stdout.splitlines()[-1]), np.load(result)


def environment() -> dict[str, str]:
    """Return one thread for every library."""
    return child_environment(PYTHONPATH=str(ROOT)) | dict.fromkeys(THREAD_SETTINGS, "1")


def faster_faiss(folder: Path, trial: Trial) -> tuple[dict[str, str], str]:
    """Return the environment in which FAISS is faster, tried once each, and what came of both.

    The OpenBLAS inside faiss-cpu does not know every recent processor and may fall back to slow kernels; numpy's choice
    of kernels may suit it better, or not.
    """
    from threadpoolctl import threadpool_info

    chosen = [library.get("architecture") for library in threadpool_info() if library["internal_api"] == "openblas"]
    if not chosen or not chosen[0]:
        return environment(), "faiss with its own choice of kernels"
    ways = {"its own": environment(), "numpy's": environment() | {"OPENBLAS_CORETYPE": chosen[0].upper()}}
    vectors_file = folder / "faiss.npy"
    np.save(vectors_file, trial.vectors)
    seconds = {name: one_join("faiss", vectors_file, way)[0]["seconds"] for name, way in ways.items()}
    told = ", ".join(f"{name} choice of kernels {took:.1f} s" for name, took in seconds.items())
    return ways[min(seconds, key=seconds.__getitem__)], f"faiss on {trial.label}: {told}; the faster one was taken"


def metrics(outcomes: list[Outcome]) -> dict[str, float]:
    """Return ratios to ours, the pairs by which ours differs from brute force, and our peak memory at the largest."""
    twenty, largest = outcomes[0], max(outcomes, key=lambda measured: measured.peak_mb["ours"])
    ratios = {f"faiss_over_ours_{measured.label}_ratio": measured.ratio("faiss") for measured in outcomes}
    last_of_384 = [measured for measured in outcomes if measured.label.endswith("_384")][-1]
    return ratios | {
        "gemm_over_ours_ratio": last_of_384.ratio("gemm"),
        "semhash_over_ours_ratio": twenty.ratio("semhash"),
        "pairs_missed": sum(measured.missed() for measured in outcomes),
        "pairs_extra": sum(measured.extra() for measured in outcomes),
        "peak_mb": largest.peak_mb["ours"],
    }


def peers(outcomes: list[Outcome]) -> dict[str, float]:
    """Return seconds and peak memory of every method on every set of vectors."""
    return {
        f"{method}_{measured.label}_{unit}": value
        for measured in outcomes
        for method, seconds in measured.seconds.items()
        for unit, value in (("s", median(seconds)), ("peak_mb", measured.peak_mb[method]))
    }


def notes(outcomes: list[Outcome]) -> list[str]:
    """Say what was joined and how to read it."""
    return [
        *(f"{measured.label}: {len(measured.pairs['ours']):,} pairs at cosine 0.92" for measured in outcomes),
        "processor seconds of one thread, one process a run; gemm computes the upper triangle only, faiss cannot",
        "gemm_over_ours_ratio is of the largest set of width 384; peak_mb includes the interpreter and the input",
        "rows beyond the real ones: real vectors moved along the real covariance to real nearest-neighbour cosines",
        "1536 dimensions: centres and moves drawn from the real curve of variances stretched to that width",
        "semhash uses its default approximate index and reports duplicates, not pairs",
    ]
