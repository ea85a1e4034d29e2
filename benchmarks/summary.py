"""Summaries of the offline writer against those people wrote: of dialogues, meetings and sessions of long friendships.

Three sets: DialogSum dialogues (references of about 20 words), QMSum meetings (the answer to "summarize the whole
meeting"), LoCoMo sessions with their turns. ROUGE is F1 in points, stemmed, with our own small implementation, which
agrees with the `rouge-score` package; where a dialogue has several references it is their mean, not the best of them.

The rule of length. `rouge*` compares texts *as they are*: the summary the writer makes by its own budget, which knows
nothing of the references, with LEAD-3, the first three turns. How long a text is decides much of an F1, so the same is
told at equal length, twice: `at_lead_length_*` gives the writer as many words as LEAD-3 has, `at_our_length_*` gives
LEAD as many leading sentences as fit into the writer's summary. A figure without the name of a set is the mean of the
three.

The writer was tuned on every second row of one half of each set: `tuned_*` are those, everything else is the others.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks import cases
from benchmarks.intervals import Estimate, of_mean, of_means
from benchmarks.rouge import KINDS, rouge
from nous_online.language.minilm import LocalMiniLM
from nous_online.language.pairs.reading import read
from nous_online.language.writing.lexrank import summary_text, word_count
from nous_online.language.writing.sentences import join_sentences, sentences_of
from nous_online.language.writing.writer import POLICY, EndedEpisode, parse_episode, summary_of

Scores: TypeAlias = dict[str, float]
Metrics: TypeAlias = dict[str, float]

LEADING_TURNS = 3
QUICK_SHARE = 6
KEPT = ("entities_kept", "numbers_kept")


@dataclass(frozen=True)
class Case:
    """A transcript, and what people made of it."""

    turns: Sequence[str]
    references: Sequence[str]


def run(data: Path, *, quick: bool) -> dict[str, Any]:
    """Measure summaries on each set, as they are and at equal length, and what they keep of names and numbers."""
    sets = {"dialogues": dialogues(data), "meetings": meetings(data), "sessions": sessions(data)}
    embedder = LocalMiniLM()
    metrics: Metrics = {}
    peers: Metrics = {}
    for is_tuned, rows in ((False, slice(1, None, 2)), (True, slice(0, None, 2))):
        taken = {name: every[rows][:: QUICK_SHARE if quick else 1] for name, every in sets.items()}
        scores = {name: [measured(case, embedder) for case in some] for name, some in taken.items()}
        found = compared(scores)
        metrics |= {f"tuned_{name}": found[name] for name in found if "_minus_" in name} if is_tuned else found
        peers |= {} if is_tuned else told_apart(scores)
    notes = [
        "; ".join(f"{len(every)} {name}" for name, every in sets.items()) + ", half of them tuned_*",
        "rouge*: as they are; at_lead_length_*: both as long as three turns; at_our_length_*: both as long as ours",
        "the mean over the sets is of their means, each as much as the other; intervals: transcripts drawn again",
        "entities and numbers kept: of those in a reference that stand in the transcript, as far as an extract can",
    ]
    return {"metrics": metrics, "peers": peers, "notes": notes}


def dialogues(data: Path) -> list[Case]:
    """Return dialogues with the summaries people wrote of them."""
    return [Case(row["dialogue"].splitlines(), row["summaries"]) for row in cases(data, "dialogues_with_summaries")]


def meetings(data: Path) -> list[Case]:
    """Return transcripts of meetings with what people answered when asked to summarise the whole."""
    found: list[Case] = []
    for row in cases(data, "qmsum_meetings"):
        turns = [f"{turn['speaker']}: {turn['text']}" for turn in row["turns"]]
        found.append(Case(turns, [each["answer"] for each in row["general"]]))
    return found


def sessions(data: Path) -> list[Case]:
    """Return the sessions of LoCoMo with their summaries; a session is all its turns, in order."""
    turns: dict[tuple[str, int], list[str]] = defaultdict(list)
    for row in sorted(cases(data, "locomo_turns"), key=lambda row: (row["conv"], row["session"], row["pos"])):
        turns[row["conv"], row["session"]].append(f"{row['speaker']}: {row['text']}")
    summaries = cases(data, "locomo_session_summaries")
    return [Case(turns[row["conv"], row["session"]], [row["session_summary"]]) for row in summaries]


def measured(case: Case, embedder: LocalMiniLM) -> Scores:
    """Return the scores of the writer's summary and of LEAD-3 of one transcript, as they are and at equal length."""
    detail = "\n".join(case.turns)
    spoken = parse_episode(EndedEpisode(detail))
    sentences = spoken.sentences
    vectors = embedder.embed_documents([each.text[: POLICY.embedded_characters] for each in sentences])

    def lifted(words: int) -> str:
        return summary_text([sentences[i] for i in summary_of(sentences, vectors, words=words)])

    ours, lead = lifted(spoken.summary_words), " ".join(case.turns[:LEADING_TURNS])
    texts = {
        "ours": ours,
        "lead3": lead,
        "ours_at_lead_length": lifted(word_count(lead)),
        "lead_at_our_length": leading(detail, word_count(ours)),
    }
    scores = {
        f"{name}_{kind}": 100 * score for name in texts for kind, score in rouge(texts[name], case.references).items()
    }
    kept = {f"{name}_{what}": share for name in ("ours", "lead3") for what, share in kept_of(texts[name], case).items()}
    return scores | kept | {"compression_ratio": word_count(ours) / word_count(detail)}


def leading(detail: str, words: int) -> str:
    """Return as many sentences from the beginning of a transcript as fit into `words` words, and at least one."""
    sentences = sentences_of(detail)
    fitting = [end for end in range(1, len(sentences) + 1) if word_count(join_sentences(sentences[:end])) <= words]
    return join_sentences(sentences[: max(fitting, default=1)])


def kept_of(summary: str, case: Case) -> Scores:
    """Return which share of the names and of the numbers in the references a summary has, where there are any."""
    said, shown = marks_of("\n".join(case.turns)), marks_of(summary)
    shares: Scores = {}
    for place, what in enumerate(KEPT):
        wanted = frozenset[str]().union(*(marks_of(text)[place] for text in case.references)) & said[place]
        if wanted:
            shares[what] = len(wanted & shown[place]) / len(wanted)
    return shares


def marks_of(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the names and identifiers of a text, and its numbers, dates and times, each in one spelling."""
    sentences = sentences_of(text)
    readings = [read(each.text) for each in sentences]
    names = {name.casefold() for reading in readings for name in (*reading.names, *reading.identifiers)}
    names |= {each.speaker.casefold() for each in sentences if each.speaker}
    figures = {term for reading in readings for term in reading.terms if re.match(r"#\d|@", term)}
    return frozenset(names), frozenset(figures)


def mean_of(scores: Iterable[Scores]) -> dict[str, Estimate]:
    """Return the mean of each score over the transcripts that have it."""
    found: dict[str, list[float]] = defaultdict(list)
    for each in scores:
        for name, value in each.items():
            found[name].append(value)
    return {name: of_mean(values) for name, values in found.items()}


def compared(scores: Mapping[str, Sequence[Scores]]) -> Metrics:
    """Return the metrics of each set under its name, and their mean over the sets."""
    of_sets = {name: mean_of(map(advantages, found)) for name, found in scores.items()}
    names = list(dict.fromkeys(metric for found in of_sets.values() for metric in found))
    means = {metric: of_means([found[metric] for found in of_sets.values() if metric in found]) for metric in names}
    return means | {f"{name}_{metric}": value for name, found in of_sets.items() for metric, value in found.items()}


def advantages(scores: Scores) -> Metrics:
    """Return what the writer has over LEAD-3 on one transcript, in points of ROUGE, and what it keeps."""
    as_they_are = {f"{kind}_minus_lead3": scores[f"ours_{kind}"] - scores[f"lead3_{kind}"] for kind in KINDS}
    at_one_length = {
        "at_lead_length_rouge1_minus_lead3": scores["ours_at_lead_length_rouge1"] - scores["lead3_rouge1"],
        "at_our_length_rouge1_minus_lead": scores["ours_rouge1"] - scores["lead_at_our_length_rouge1"],
    }
    own = {kind: scores[f"ours_{kind}"] for kind in KINDS}
    kept = {f"{what}_ratio": scores[f"ours_{what}"] for what in KEPT if f"ours_{what}" in scores}
    return as_they_are | at_one_length | own | kept | {"compression_ratio": scores["compression_ratio"]}


def told_apart(scores: Mapping[str, Sequence[Scores]]) -> dict[str, float]:
    """Return what LEAD reaches on each set: three turns, and as many sentences as fit into our length."""
    return {
        f"{name}_{metric}": value
        for name, found in scores.items()
        for metric, value in mean_of(found).items()
        if metric.startswith("lead")
    }
