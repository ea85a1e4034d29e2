"""Sessions out of traces of files touched, and what the product knew when each of them began."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

from nous_online.context.predicting import LATEST_RECALLS, NEAREST, RECALLS_A_SESSION, SESSIONS_A_SIGNAL
from nous_online.context.scorer import Nearness, Past, PastRecall, Sighted, Signals, atoms_of, past_of
from nous_online.recall.ranking import RecallPolicy

PAUSE_S = 4 * 3600
"""Touches further apart than this belong to two sessions: longer than a meal or a meeting, shorter than a night."""
WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
POLICY = RecallPolicy()


@dataclass(frozen=True)
class Session:
    """What was touched between two pauses: a moment and files for each commit, oldest first."""

    id: str
    commits: Sequence[tuple[datetime, Sequence[str]]]

    @property
    def began_at(self) -> datetime:
        """The moment of its first commit."""
        return self.commits[0][0]

    @property
    def items(self) -> list[str]:
        """What it touched, each once."""
        return list(dict.fromkeys(item for _, items in self.commits for item in items))


def sessions_of(rows: Sequence[Mapping[str, Any]], *, pause_s: float = PAUSE_S) -> Iterator[list[Session]]:
    """Yield the sessions of each repository, oldest first; one ends at a pause longer than so many seconds."""
    rows = sorted(rows, key=lambda row: (row["repo"], row["t"], row["commit"], row["item"]))
    for repo, touches in groupby(rows, key=lambda row: row["repo"]):
        commits = [
            (seconds, [row["item"] for row in part])
            for (seconds, _), part in groupby(touches, key=lambda row: (row["t"], row["commit"]))
        ]
        begins = [place for place in range(len(commits)) if place == 0 or is_pause(commits, place, pause_s)]
        yield [
            Session(f"{repo} {begin}", [(datetime.fromtimestamp(t, UTC), items) for t, items in commits[begin:end]])
            for begin, end in zip(begins, [*begins[1:], len(commits)], strict=True)
        ]


def is_pause(commits: Sequence[tuple[int, list[str]]], place: int, pause_s: float) -> bool:
    """Tell whether a commit comes so long after the one before that it begins a session."""
    return commits[place][0] - commits[place - 1][0] > pause_s


@dataclass
class Diary:
    """What the product would have written down: recalls whose answers were all cited, and what was seen in sessions.

    Its limits and orders are those of the queries of the product, which a test proves on a real heart.
    """

    asked: list[PastRecall[str]] = field(default_factory=list)
    by_session: dict[str, list[PastRecall[str]]] = field(default_factory=lambda: defaultdict(list))
    seen: dict[str, list[tuple[str, datetime]]] = field(default_factory=lambda: defaultdict(list))
    words: dict[str, Counter[str]] = field(default_factory=dict)
    holders: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def live(self, session: Session, *, commits: int | None = None) -> None:
        """Write a session down, or its first commits: every file it touched was opened, and what it held was used."""
        sighted: set[str] = set()
        for at, items in session.commits[:commits]:
            recall = PastRecall(session.id, at, items, items, [])
            self.asked.append(recall)
            self.by_session[session.id].append(recall)
            for item in items:
                self.learn(item)
                for atom in atoms_of(Signals(current_file=item), at=at):
                    if atom not in sighted:
                        sighted.add(atom)
                        self.seen[atom].append((session.id, at))

    def learn(self, item: str) -> None:
        """Keep an item as a memory: its path is what it says."""
        if item not in self.words:
            self.words[item] = words_in(item)
            for word in self.words[item]:
                self.holders[word].append(item)

    def past_for(self, session: Session, atoms: Sequence[str], *, at: datetime) -> Past[str]:
        """Return what the queries of the product would read for a session that sees `atoms`."""
        sighted = [
            Sighted(place, name, moment)
            for place, atom in enumerate(atoms)
            for name, moment in self.seen.get(atom, ())[-SESSIONS_A_SIGNAL:]
        ]
        named = {each.session_id for each in sighted} | {session.id}
        recalls = [each for name in sorted(named) for each in self.by_session.get(name, ())[-RECALLS_A_SESSION:]]
        latest = [each for each in self.asked[-LATEST_RECALLS:] if each.session_id not in named]
        asked = [*recalls, *latest]
        return past_of(asked, sighted, session_id=session.id, at=at)

    def near(self, path: str) -> dict[str, Nearness]:
        """Return the memories whose words are nearest to those of a path, scored by BM25 as recall does."""
        count, weights = len(self.words), dict[str, float]()
        for word in words_in(path):
            holding = len(self.holders.get(word, ()))
            if holding:
                weights[word] = math.log(1 + (count - holding + 0.5) / (holding + 0.5))
        average = sum(words.total() for words in self.words.values()) / max(count, 1)
        scores: dict[str, float] = defaultdict(float)
        for word, weight in weights.items():
            for item in self.holders[word]:
                amount = self.words[item][word]
                length = 1 - POLICY.length_penalty + POLICY.length_penalty * self.words[item].total() / average
                scores[item] += weight * amount / (amount + POLICY.term_saturation * length)
        most = sum(weights.values())
        nearest = sorted(scores, key=lambda item: -scores[item])[:NEAREST]
        return {item: Nearness(words=scores[item] / most) for item in nearest}


def words_in(path: str) -> Counter[str]:
    """Return the words of a path and how often it holds each."""
    return Counter(word.casefold() for word in WORD.findall(path))
