"""Which pairs the night would merge, against what people said of them: facts_pairs and WebNLG clusters.

The built-in judge decides, and the night's policy how near two must be. WebNLG texts go the whole way: the exact
self-join, the judge, complete linkage.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from benchmarks import cases
from benchmarks.intervals import of_count, of_share
from nous_online.language.minilm import LocalMiniLM
from nous_online.language.pairs.guards import differences
from nous_online.language.pairs.judging import SURE_FROM, JudgedStatement, OfflineJudge, Pair, Verdict, is_harmless
from nous_online.language.pairs.pair_model import LEAST_SIMILARITY, load_model, pair_features
from nous_pipelines.night_policy import NightPolicy
from nous_pipelines.phases.merging import clusters
from nous_pipelines.phases.self_join import similar_pairs

Flags: TypeAlias = NDArray[np.bool_]
Metrics: TypeAlias = dict[str, float]

POLICY = NightPolicy()
QUICK_ROWS = 1_500
LABELS = ("supersedes", "contradiction", "same_slot_other_value", "different", "related")


def run(data: Path, *, quick: bool) -> dict[str, Any]:
    """Measure pairwise precision, recall and false merges per label, and what each stage contributes."""
    pairs = cases(data, "facts_pairs")
    wordings = cases(data, "webnlg_fact_clusters")
    if quick:  # every n-th row keeps the mixture of sources; whole clusters stay together
        pairs = pairs[:: max(1, len(pairs) // QUICK_ROWS)]
        wordings = sorted(wordings, key=lambda row: row["cluster"])[:QUICK_ROWS]
    embedder = LocalMiniLM()
    metrics = {**of_pairs(pairs, embedder), **of_clusters(wordings, embedder)}
    peers = {name: value for name, value in metrics.items() if name.startswith("cosine_")}
    notes = [
        f"{len(pairs)} pairs, {len(wordings)} wordings; merged = judged the same at cosine ≥"
        f" {POLICY.candidate_similarity}, or ≥ {POLICY.same_similarity} where the judge is sure ({SURE_FROM})",
        f"webnlg_*: of pairs at cosine ≥ {POLICY.neighbour_similarity}, which a night compares; recall over all pairs"
        " of one triple; *_clustered_* after complete linkage, which may only split",
        "webnlg_same_triple_*: two clusters that hold the same subject and object under two names of one predicate "
        "(leader, leaderName) count as one fact",
        f"cosine_*: {POLICY.candidate_similarity} alone; guards_*: and no guard fires; harmless_*: and nothing but what"
        " never changes what is said differs; trees_*: and no guard, and the classifier says so, as nights merged once",
    ]
    return {"metrics": metrics, "peers": peers, "notes": notes}


def of_pairs(pairs: Sequence[Mapping[str, Any]], embedder: LocalMiniLM) -> Metrics:
    """Return the metrics over labelled pairs, for the whole decision and its peers."""
    texts = [(row["a"], row["b"]) for row in pairs]
    labels = np.array([row["label"] for row in pairs])
    decided = decisions(texts, cosines(texts, embedder))
    return {name: value for prefix, flags in decided.items() for name, value in rates(flags, labels, prefix).items()}


def decisions(texts: Sequence[tuple[str, str]], similarity: NDArray[np.float64]) -> dict[str, Flags]:
    """Return which pairs the night would merge (""), and which each of its peers."""
    asked = [
        Pair(JudgedStatement(a), JudgedStatement(b), float(near))
        for (a, b), near in zip(texts, similarity, strict=True)
    ]
    judged = OfflineJudge().judge(asked)
    same = np.array([said.verdict is Verdict.SAME for said in judged], dtype=bool)
    is_sure = np.array([said.confidence >= SURE_FROM for said in judged], dtype=bool)
    least = np.where(is_sure, POLICY.same_similarity, POLICY.candidate_similarity)
    nominated = similarity >= POLICY.candidate_similarity
    near = np.flatnonzero(similarity >= LEAST_SIMILARITY).tolist()
    unguarded, harmless, trees = (np.zeros(len(texts), dtype=bool) for _ in range(3))
    model = load_model()
    trees[near] = model.raw_chance(pair_features([(*texts[i], float(similarity[i])) for i in near])) >= model.decide_at
    unguarded[near] = [not differences(*texts[i]) for i in near]
    harmless[near] = [is_harmless(asked[i]) for i in near]
    return {
        "": same & (similarity >= least),
        "cosine_": nominated,
        "guards_": nominated & unguarded,
        "harmless_": nominated & unguarded & harmless,
        "trees_": nominated & unguarded & trees,
    }


def rates(merged: Flags, labels: NDArray[np.str_], prefix: str) -> Metrics:
    """Return precision and recall of `duplicate`, and the share of each other label that was merged."""
    positive = labels == "duplicate"
    found = {
        f"{prefix}precision": of_share(positive[merged]),
        f"{prefix}recall": of_share(merged[positive]),
    }
    return found | {f"{prefix}false_merge_{label}": of_share(merged[labels == label]) for label in LABELS}


def cosines(texts: Sequence[tuple[str, str]], embedder: LocalMiniLM) -> NDArray[np.float64]:
    """Return the cosine of each pair; each distinct text is embedded once."""
    distinct = sorted({text for pair in texts for text in pair})
    place = {text: index for index, text in enumerate(distinct)}
    vectors = embedder.embed_documents(distinct)
    left, right = ([place[pair[side]] for pair in texts] for side in (0, 1))
    return np.einsum("ij,ij->i", vectors[left], vectors[right]).astype(np.float64)


def of_clusters(wordings: Sequence[Mapping[str, Any]], embedder: LocalMiniLM) -> Metrics:
    """Return the metrics over wordings of triples, before and after complete linkage."""
    texts = [row["text"] for row in wordings]
    near = similar_pairs(embedder.embed_documents(texts), threshold=POLICY.neighbour_similarity)
    left, right = near.left.astype(np.int64), near.right.astype(np.int64)
    similarity = near.similarity.astype(np.float64)
    truth = np.unique([row["cluster"] for row in wordings], return_inverse=True)[1]
    ends = np.unique(["|".join(sorted((row["subject"], row["object"]))) for row in wordings], return_inverse=True)[1]
    found: Metrics = {}
    for prefix, kept in decisions([(texts[i], texts[j]) for i, j in zip(left, right, strict=True)], similarity).items():
        table = pl.DataFrame({"left_id": left[kept], "right_id": right[kept], "similarity": similarity[kept]})
        found |= {f"{prefix}webnlg_{name}": value for name, value in agreement(table, truth, ends).items()}
    return found


def agreement(accepted: pl.DataFrame, truth: NDArray[np.int64], ends: NDArray[np.int64]) -> Metrics:
    """Compare accepted pairs, and the clusters they make, with the true cluster of each text."""
    left, right = accepted["left_id"].to_numpy(), accepted["right_id"].to_numpy()
    sizes = np.bincount(truth)
    true_pairs = int((sizes * (sizes - 1) // 2).sum())
    right_pairs = truth[left] == truth[right]
    made = np.arange(len(truth)) + len(truth)
    members = clusters(accepted)
    made[members["member_id"].to_numpy()] = members["cluster_id"].to_numpy()
    together, joined = paired(truth, made), np.bincount(np.unique(made, return_inverse=True)[1])
    return {
        "pair_precision": of_share(right_pairs),
        "pair_recall": of_count(int(right_pairs.sum()), true_pairs),
        "same_triple_pair_precision": of_share(right_pairs | (ends[left] == ends[right])),
        "clustered_pair_precision": together / max(1, int((joined * (joined - 1) // 2).sum())),
        "clustered_pair_recall": together / true_pairs,
        "bcubed_f1": bcubed(truth, made),
    }


def paired(truth: NDArray[np.int64], made: NDArray[np.int64]) -> int:
    """Return how many pairs are together both in truth and in the clusters made."""
    shared = np.unique(np.stack([truth, made]), axis=1, return_counts=True)[1]
    return int((shared * (shared - 1) // 2).sum())


def bcubed(truth: NDArray[np.int64], made: NDArray[np.int64]) -> float:
    """Return B-cubed F1 (Bagga and Baldwin 1998): purity and completeness around each text."""
    place, shared = np.unique(np.stack([truth, made]), axis=1, return_inverse=True, return_counts=True)[1:]
    overlap = shared[place.ravel()]
    cluster, size = np.unique(made, return_inverse=True, return_counts=True)[1:]
    precision = float(np.mean(overlap / size[cluster]))
    recall = float(np.mean(overlap / np.bincount(truth)[truth]))
    return 2 * precision * recall / (precision + recall)
