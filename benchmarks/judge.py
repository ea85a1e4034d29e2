"""Is the offline judge right, and as sure as it is right? Public pairs it was neither trained nor calibrated on."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from benchmarks import cases
from benchmarks.dedup import cosines
from benchmarks.intervals import of_share
from nous_online.language.minilm import LocalMiniLM
from nous_online.language.pairs.guards import differences
from nous_online.language.pairs.judging import JudgedStatement, Judgement, OfflineJudge, Pair, Verdict
from nous_online.language.pairs.reading import read_words

SAID = datetime(2025, 1, 1, tzinfo=UTC)
CONFLICTS = frozenset({"supersedes", "contradiction", "same_slot_other_value"})
PARTED = frozenset({Verdict.UPDATES, Verdict.CONTRADICTS})
RIGHT = {
    "duplicate": frozenset({Verdict.SAME, Verdict.COMPATIBLE}),
    "different": frozenset({Verdict.COMPATIBLE}),
    "related": frozenset({Verdict.COMPATIBLE}),
} | dict.fromkeys(CONFLICTS, PARTED)
"""The verdicts that are right of a label: two wordings of one statement can stand side by side."""
STRICTLY_RIGHT = RIGHT | {"duplicate": frozenset({Verdict.SAME})}
LONGEST_PART = 300
"""Characters of a sentence that a judge is asked about; longer ones are code or lists."""


@dataclass(frozen=True)
class Labelled:
    """Pairs, the earlier statement first, with the label and the source of each."""

    pairs: Sequence[Pair]
    labels: Sequence[str]
    sources: Sequence[str]


def labelled(rows: Sequence[Mapping[str, Any]], embedder: LocalMiniLM) -> Labelled:
    """Return labelled rows as pairs; all are said in the same order, so that order tells nothing of the label."""
    pairs = stated([(row["a"], row["b"]) for row in rows], embedder)
    return Labelled(pairs, [row["label"] for row in rows], [row["source"] for row in rows])


def stated(texts: Sequence[tuple[str, str]], embedder: LocalMiniLM) -> list[Pair]:
    """Return pairs of texts, the first said a day before the second."""
    if not texts:
        return []
    return [
        Pair(
            JudgedStatement(a, stated_at=SAID),
            JudgedStatement(b, stated_at=SAID + timedelta(days=1)),
            float(similarity),
        )
        for (a, b), similarity in zip(texts, cosines(texts, embedder), strict=True)
    ]


def conflicts_of_stores(data: Path) -> list[tuple[str, str]]:
    """Return old and new value of each conflict of FactConsolidation."""
    return list(dict.fromkeys((row["old"], row["new"]) for row in cases(data, "fc_conflicts")))


def successive_values(data: Path) -> list[tuple[str, str]]:
    """Return each two values of one DyKnow slot that follow each other."""
    slots: dict[str, list[str]] = {}
    for row in sorted(cases(data, "dyknow_facts"), key=lambda row: (row["slot"], row["valid_from"])):
        slots.setdefault(row["slot"], []).append(row["fact"])
    return [pair for facts in slots.values() for pair in pairwise(facts) if pair[0] != pair[1]]


def updated_turns(data: Path) -> list[list[tuple[str, str]]]:
    """Return, for each update of LongMemEval, every sentence of the older turn with every one of the newer."""
    chains = [[told["text"] for told in row["chain"]] for row in cases(data, "lme_knowledge_updates")]
    return [crossed([old], [new]) for chain in chains for old, new in pairwise(chain)]


def contradicted_turns(data: Path) -> list[list[tuple[str, str]]]:
    """Return, for each contradiction asked about in BEAM, the sentences of both statements crossed."""
    turns = {(row["chat"], row["id"]): row["text"] for row in cases(data, "beam100k_turns")}
    found: list[list[tuple[str, str]]] = []
    for row in cases(data, "beam100k_questions"):
        if row["type"] == "contradiction_resolution":
            roles = row["evidence_roles"] or {}
            first, second = (
                [turns[row["chat"], place] for place in roles.get(name, []) if (row["chat"], place) in turns]
                for name in ("first_statement", "second_statement")
            )
            found.append(crossed(first, second))
    return found


def crossed(olds: Sequence[str], news: Sequence[str]) -> list[tuple[str, str]]:
    """Return every sentence of the older texts with every different one of the newer, each pair once."""
    ends = [(a, b) for old in olds for a in sentences(old) for new in news for b in sentences(new)]
    return list(dict.fromkeys((a, b) for a, b in ends if a != b))


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a chat turn."""
    parts = re.split(r"(?<=[.!?])\s+|\n+", text)
    yield from (part.strip() for part in parts if len(part.split()) >= 3 and len(part) <= LONGEST_PART)


# --- the measurement ---


BINS = 10
QUICK_ROWS = 1_500
QUICK_TALKS = 5
Metrics: TypeAlias = dict[str, float]
Flags: TypeAlias = NDArray[np.bool_]


def run(data: Path, *, quick: bool) -> dict[str, Any]:
    """Measure verdicts and confidences over every set; cosine, shared words and guards alone stand beside them."""
    embedder = LocalMiniLM()
    rows = [row for row in cases(data, "facts_pairs") if not row["source"].startswith("ANLI")]
    facts, sick = (labelled(thinned(part, quick=quick), embedder) for part in (rows, cases(data, "pairs_sick")))
    started = time.perf_counter()
    judged = OfflineJudge().judge(facts.pairs)
    seconds = time.perf_counter() - started
    held, table = calibration(judged, facts.labels, RIGHT)
    metrics = {
        **of_conflicts(facts, judged),
        **of_sick(sick),
        **of_same(facts, judged),
        "calibration_error": held,
        "strict_calibration_error": calibration(judged, facts.labels, STRICTLY_RIGHT)[0],
        "unsure_ratio": of_share(np.array([said.verdict is Verdict.UNSURE for said in judged])),
        "pairs_per_s": len(facts.pairs) / seconds,
        **of_updates(data, embedder, quick=quick),
        **of_talks(data, embedder, quick=quick),
    }
    return {"metrics": metrics, "peers": peers(facts), "notes": [*notes(facts, judged), *table]}


def thinned(rows: Sequence[dict[str, Any]], *, quick: bool) -> Sequence[dict[str, Any]]:
    """Return every n-th row of a quick run, which keeps the mixture of sources."""
    return rows[:: max(1, len(rows) // QUICK_ROWS)] if quick else rows


def sees_conflict(said: Judgement) -> bool:
    """Tell whether a judgement finds two values of one slot, be it of one that may have several, or a denial."""
    return said.verdict in PARTED or (said.verdict is not Verdict.SAME and said.slot is not None)


def of_conflicts(facts: Labelled, judged: Sequence[Judgement]) -> Metrics:
    """Return precision and recall of the verdicts that may retire a fact or open a contradiction, and of any flag."""
    truth = np.array([label in CONFLICTS for label in facts.labels])
    seen = np.array([sees_conflict(said) for said in judged])
    verdicts = np.array([said.verdict in PARTED for said in judged])
    return {
        "conflict_recall": of_share(verdicts[truth]),
        "conflict_precision": of_share(truth[verdicts]),
        "flagged_conflict_recall": of_share(seen[truth]),
        "flagged_conflict_precision": of_share(truth[seen]),
    }


def of_sick(sick: Labelled) -> Metrics:
    """Return precision and recall of contradictions over SICK, of the verdicts alone."""
    truth = np.array([label == "contradiction" for label in sick.labels])
    seen = np.array([said.verdict in PARTED for said in OfflineJudge().judge(sick.pairs)])
    return {"sick_contradiction_recall": of_share(seen[truth]), "sick_contradiction_precision": of_share(truth[seen])}


def of_same(facts: Labelled, judged: Sequence[Judgement]) -> Metrics:
    """Return precision and recall of `same`."""
    truth = np.array([label == "duplicate" for label in facts.labels])
    seen = np.array([said.verdict is Verdict.SAME for said in judged])
    return {"same_precision": of_share(truth[seen]), "same_recall": of_share(seen[truth])}


def of_updates(data: Path, embedder: LocalMiniLM, *, quick: bool) -> Metrics:
    """Return the share of old and new values, told in order, that are judged an update."""
    found: Metrics = {}
    for name, texts in (("fc", conflicts_of_stores(data)), ("dyknow", successive_values(data))):
        judged = OfflineJudge().judge(stated(texts[: QUICK_ROWS // 10] if quick else texts, embedder))
        found[f"{name}_update_recall"] = of_share(np.array([said.verdict is Verdict.UPDATES for said in judged]))
    return found


def of_talks(data: Path, embedder: LocalMiniLM, *, quick: bool) -> Metrics:
    """Return the share of changes told in chats of which two sentences are seen to conflict, and of all crossed."""
    found: Metrics = {}
    for name, talks in (("lme_update", updated_turns(data)), ("beam_contradiction", contradicted_turns(data))):
        crossings = talks[:QUICK_TALKS] if quick else talks
        flags = [seen_in(crossing, embedder) for crossing in crossings]
        found[f"{name}_recall"] = of_share(np.array([any(seen) for seen in flags]))
        found[f"{name}_crossed_ratio"] = of_share(np.array([flag for seen in flags for flag in seen]))
    return found


def seen_in(texts: Sequence[tuple[str, str]], embedder: LocalMiniLM) -> list[bool]:
    """Return for each pair of sentences whether it is seen to conflict."""
    return [sees_conflict(said) for said in OfflineJudge().judge(stated(texts, embedder))]


def calibration(
    judged: Sequence[Judgement], labels: Sequence[str], right: Mapping[str, frozenset[Verdict]]
) -> tuple[float, list[str]]:
    """Return the expected calibration error over bins of equally many verdicts (Guo and others 2017), and the bins.

    `unsure` says nothing that could be right or wrong, and is left out.
    """
    said: list[tuple[float, float]] = [
        (judgement.confidence, float(judgement.verdict in right[label]))
        for judgement, label in zip(judged, labels, strict=True)
        if judgement.verdict is not Verdict.UNSURE
    ]
    np.random.default_rng(0).shuffle(said)  # equal confidences in whatever order the file has would skew the bins
    bins = [np.array(part) for part in np.array_split(sorted(said, key=itemgetter(0)), BINS) if len(part)]
    gaps = [len(part) * abs(float(part[:, 0].mean() - part[:, 1].mean())) for part in bins]
    lines = [
        f"bin {number}: {len(part)} verdicts, mean confidence {part[:, 0].mean():.3f}, right {part[:, 1].mean():.3f}"
        for number, part in enumerate(bins, start=1)
    ]
    return sum(gaps) / len(said), lines


def peers(facts: Labelled) -> Metrics:
    """Return what one signal alone reaches, each at the threshold that serves it best on these very pairs."""
    truth = np.array([label in CONFLICTS for label in facts.labels])
    fires = np.array([bool(differences(pair.a.text, pair.b.text)) for pair in facts.pairs])
    cosine = np.array([pair.similarity for pair in facts.pairs])
    words = np.array([shared_share(pair) for pair in facts.pairs])
    everywhere = np.ones(len(truth), dtype=np.bool_)
    return {
        **at_its_best("cosine", cosine, everywhere, truth),
        **at_its_best("words", words, everywhere, truth),
        **at_its_best("guards", cosine, fires, truth),
    }


def shared_share(pair: Pair) -> float:
    """Return the share of words two statements have in common (Jaccard)."""
    one, other = (set(read_words(side.text).words) for side in (pair.a, pair.b))
    return len(one & other) / max(1, len(one | other))


def at_its_best(name: str, score: NDArray[np.float64], allowed: Flags, truth: Flags) -> Metrics:
    """Return precision and recall where their harmonic mean is highest among floors for the score."""
    flags = [(score >= floor) & allowed for floor in np.linspace(0, 1, 101)]
    rates = [(of_share(seen[truth]), of_share(truth[seen])) for seen in flags]
    recall, precision = max(rates, key=lambda rate: 2 * rate[0] * rate[1] / max(sum(rate), 1e-9))
    return {f"{name}_conflict_recall": recall, f"{name}_conflict_precision": precision}


def notes(facts: Labelled, judged: Sequence[Judgement]) -> list[str]:
    """Return what was counted, and the verdicts source by source."""
    seen = Counter(
        (source, label, said.verdict.value)
        for source, label, said in zip(facts.sources, facts.labels, judged, strict=True)
    )
    return [
        f"{len(facts.pairs)} pairs of facts_pairs without ANLI; no text of them was trained or calibrated on, none of"
        " SICK either",
        "conflict: judged an update or a contradiction; flagged_*: or compatible or unsure with the slot named, another"
        " value of what may have several, which retires nothing",
        "right: same of a duplicate, an update or contradiction of the three kinds of conflict, compatible of"
        " duplicates and the rest; calibration: all verdicts but unsure; strict: compatible is wrong of a duplicate",
        "lme, beam: a turn says more than its update, so its sentences are crossed; *_crossed_ratio is the share of all"
        " crossed sentences that are seen to conflict",
        "fc, dyknow: the whole sets; facts of them that are not in facts_pairs were trained on",
        "cosine, words, guards: one signal alone, at its best threshold on these pairs",
        *(f"{source} {label}: {verdict} {count}" for (source, label, verdict), count in sorted(seen.items())),
    ]
