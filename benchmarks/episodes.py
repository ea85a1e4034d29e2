"""What the offline writer keeps of transcripts whose points worth keeping, and points that pass, were written down.

A point is *covered* where two of the texts drawn from its episode (facts, sentences of the summary) together hold at
least `LEAST_OVERLAP` of its content words and numbers, by stem, and they or one of them have a cosine of at least
`LEAST_COSINE` with it. Decision, cause and fix, which are told in other words than the transcript's, are covered by
three sentences of the summary from `FRAME_OVERLAP` and `FRAME_COSINE`. A text counts only with two of the words. A
passing point is *stored* where one fact alone holds `STORED_OVERLAP` of its words, and denies none of them.

The set was at hand while the writer was made: these are no figures of unseen texts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import cases
from benchmarks.intervals import of_mean, of_share
from benchmarks.rouge import stemmed
from nous_online.language.embedding import Embedder
from nous_online.language.lexicon import FUNCTION_WORDS
from nous_online.language.minilm import LocalMiniLM
from nous_online.language.writing.sentences import split_sentences
from nous_online.language.writing.writer import Draft, EndedEpisode, OfflineWriter

LEAST_OVERLAP, LEAST_COSINE = 0.5, 0.5
FRAME_OVERLAP, FRAME_COSINE = 0.4, 0.4
STORED_OVERLAP, STORED_COSINE = 0.75, 0.6
LEAST = {
    "keep": (LEAST_OVERLAP, LEAST_COSINE),
    "frame": (FRAME_OVERLAP, FRAME_COSINE),
    "passing": (STORED_OVERLAP, STORED_COSINE),
}
SUPPORTING, LEAST_TERMS = 2, 2
FRAME = ("decision", "cause", "fix")
FRAME_SENTENCES = 3
QUICK_EVERY = 4
SHORTEST_LINE = 12
"""Characters of a line of a terminal or a tool that are told from prose by chance no more."""
_WORD = re.compile(r"\d+(?:[.,:/]\d+)*|[^\W\d_]+")
_DENIAL = re.compile(
    r"(?:\b(?:not|no|never|without|instead of|was meant|used to|rather than)\b|\b\w+n't\b)(?:\W+\w+){1,4}", re.I
)
_PROMPT = re.compile(r"\S+@\S+?[$#] ")
_TOOL = re.compile(r"\[[A-Za-z]+\]|  \S")


@dataclass(frozen=True)
class Score:
    """How near the texts drawn from an episode come to one point."""

    kind: str
    point: str
    shown: str
    overlap: float
    cosine: float

    @property
    def is_covered(self) -> bool:
        """Tell whether the texts state the point, as far as words can tell."""
        overlap, cosine = LEAST[self.kind]
        return self.overlap >= overlap and self.cosine >= cosine


def run(*, data: Path, quick: bool) -> dict[str, Any]:
    """Write each episode offline, and score what is drawn from it against its points."""
    rows = cases(data, "episodes")[:: QUICK_EVERY if quick else 1]
    embedder = LocalMiniLM()
    drafts = [OfflineWriter(embedder).write(EndedEpisode(row["detail"], outcome=row["outcome"])) for row in rows]
    pairs = list(zip(rows, drafts, strict=True))
    scores = [score for row, draft in pairs for score in scores_of(row, draft, embedder)]
    shares = {kind: [each.is_covered for each in scores if each.kind == kind] for kind in ("keep", "passing", "frame")}
    facts = [len(draft.facts) for draft in drafts]
    metrics = {
        "keep_covered_ratio": of_share(shares["keep"]),
        "passing_stored_ratio": of_share(shares["passing"]),
        "decision_cause_fix_ratio": of_share(shares["frame"]),
        "machine_lines_stored": sum(machine_lines_stored(row, draft) for row, draft in pairs),
        "facts_per_episode": of_mean(facts),
        "summary_words": of_mean([len(draft.summary.split()) for draft in drafts]),
    }
    counts = ", ".join(f"{sum(found)} of {len(found)} {kind}" for kind, found in shares.items())
    return {"metrics": metrics, "peers": {}, "notes": [f"{len(rows)} episodes: {counts}"]}


def scores_of(row: dict[str, Any], draft: Draft, embedder: Embedder) -> list[Score]:
    """Return how near a draft comes to each point of its episode."""
    facts, summary = [fact.content for fact in draft.facts], list(split_sentences(draft.summary))
    wanted = [("keep", point, [*facts, *summary], SUPPORTING) for point in row["keep"]]
    wanted += [("passing", point, [each for each in facts if not denies(each, point)], 1) for point in row["passing"]]
    wanted += [("frame", row[name], summary, FRAME_SENTENCES) for name in FRAME if row[name]]
    shown = [nearest(point, texts, count) for _, point, texts, count in wanted]
    return [
        Score(kind, point, " ".join(texts), overlap(point, " ".join(texts)), cosine(point, texts, embedder))
        for (kind, point, _, _), texts in zip(wanted, shown, strict=True)
    ]


def cosine(point: str, texts: Sequence[str], embedder: Embedder) -> float:
    """Return the cosine of a point with the texts beside it: of all together, or of the one that is nearest."""
    if not texts:
        return 0.0
    vectors = embedder.embed_documents([point, " ".join(texts), *texts])
    return float((vectors[1:] @ vectors[0]).max())


def nearest(point: str, texts: Sequence[str], count: int) -> list[str]:
    """Return the `count` texts that together hold most words of a point, of those that hold two of them."""
    likely = [text for text in texts if len(terms(point) & terms(text)) >= LEAST_TERMS]
    chosen: list[str] = []
    for _ in range(count):
        best = max(likely, key=lambda text: overlap(point, " ".join([*chosen, text])), default="")
        if overlap(point, " ".join([*chosen, best])) > overlap(point, " ".join(chosen)):
            chosen.append(best)
    return chosen


def denies(fact: str, point: str) -> bool:
    """Tell whether a fact denies a word of a point that itself denies nothing: "at bedtime, not in the morning"."""
    if _DENIAL.search(point):
        return False
    return any(terms(match[0]) & terms(point) for match in _DENIAL.finditer(fact))


def overlap(point: str, text: str) -> float:
    """Return which share of a point's content words and numbers a text has; all its words if it has no others."""
    wanted = terms(point)
    return len(wanted & terms(text)) / len(wanted) if wanted else 0.0


def terms(text: str) -> frozenset[str]:
    """Return the stems of a text's content words, and its numbers without separators of thousands."""
    words = [word.casefold() for word in _WORD.findall(text)]
    return frozenset(
        re.sub(r"(?<=\d),(?=\d{3})", "", word) if word[0].isdigit() else stemmed(word)
        for word in words
        if word not in FUNCTION_WORDS
    )


def machine_lines_stored(row: dict[str, Any], draft: Draft) -> int:
    """Count the lines of tools and terminals that stand in a fact or in the summary."""
    texts = " \n".join([draft.summary, *(fact.content for fact in draft.facts)])
    lines = row["detail"].splitlines()
    if row["form"] == "terminal":
        machine = [line for line in lines if not re.search(r"[$#] # ", line)]
    else:
        machine = [line for line in lines if row["form"] == "agent_log" and _TOOL.match(line)]
    return sum(
        len(line) >= SHORTEST_LINE and line in texts for line in (_PROMPT.sub("", each).strip() for each in machine)
    )
