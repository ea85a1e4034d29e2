"""What is known of the past when it is asked what comes next: sessions, what they saw and what they used."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

M = TypeVar("M", bound=Hashable)
Floats = NDArray[np.float64]
Places = NDArray[np.int64]
CITED = 1.0
"""What citing counts: the agent said that it used the memory."""
RETRIEVED = 0.25
"""What being found and not ignored counts, where at most `RELEVANT` were found: the share of answers that are cited."""
RELEVANT = 10
"""Of a longer list each counts as much less: or all that a context shows would soon predict itself."""
DAY_S = 86_400


class PastRecall(NamedTuple, Generic[M]):
    """One recall of the past, and what was made of its answers."""

    session_id: str
    at: datetime
    result_ids: Sequence[M]
    cited_ids: Sequence[M]
    ignored_ids: Sequence[M]


class Sighted(NamedTuple):
    """A session that saw an atom, named by its place among those asked about."""

    place: int
    session_id: str
    at: datetime


@dataclass(frozen=True)
class Past(Generic[M]):
    """Sessions, and what each used at most once; arrays of one length belong together."""

    memories: tuple[M, ...]
    ages: Floats
    """How old each session is, in days."""
    use_session: Places
    use_memory: Places
    use_weight: Floats
    seen_in: Mapping[int, Places]
    """The sessions that saw each atom, by the place of the atom."""
    in_use: Places
    """The memories that the session asked for has cited already, in that order."""

    def joined_by(self, others: Iterable[M]) -> Past[M]:
        """Return the same past with memories that were not used in it."""
        return replace(self, memories=tuple(dict.fromkeys((*self.memories, *others))))


def past_of(
    asked: Iterable[PastRecall[M]], sighted: Iterable[Sighted], *, session_id: str | None, at: datetime
) -> Past[M]:
    """Return the past up to `at`: all sessions but `session_id`, of which only what it cited is kept, apart."""
    moments: dict[str, datetime] = {}
    uses: dict[str, dict[M, float]] = {}
    seen: dict[int, list[str]] = {}
    in_use: dict[M, None] = {}
    for recall in asked:
        if recall.session_id == session_id:
            in_use.update(dict.fromkeys(recall.cited_ids))
        else:
            moments[recall.session_id] = max(recall.at, moments.get(recall.session_id, recall.at))
            add_uses(uses.setdefault(recall.session_id, {}), recall)
    for place, name, moment in sighted:
        if name != session_id:
            moments.setdefault(name, moment)
            seen.setdefault(place, []).append(name)
    return _numbered(moments, uses, seen, list(in_use), at)


def add_uses(uses: dict[M, float], recall: PastRecall[M]) -> None:
    """Count how much each answer of a recall was used: 1 if cited, less if only found, nothing if ignored.

    What was used more in another recall of the session keeps that.
    """
    found = RETRIEVED * min(1.0, RELEVANT / max(len(recall.result_ids), 1))
    left_aside = set(recall.ignored_ids)
    for memory in recall.result_ids:
        if uses.get(memory, 0.0) < found and memory not in left_aside:
            uses[memory] = found
    uses.update(dict.fromkeys(recall.cited_ids, CITED))


def _numbered(
    moments: Mapping[str, datetime],
    uses: Mapping[str, Mapping[M, float]],
    seen: Mapping[int, Sequence[str]],
    in_use: Sequence[M],
    at: datetime,
) -> Past[M]:
    """Return the same as arrays, with sessions and memories by number."""
    sessions = {name: place for place, name in enumerate(moments)}
    memories = {memory: place for place, memory in enumerate(in_use)}
    used = [memories.setdefault(memory, len(memories)) for each in uses.values() for memory in each]
    sizes = [len(each) for each in uses.values()]
    return Past(
        memories=tuple(memories),
        ages=np.array([max((at - moment).total_seconds(), 0.0) / DAY_S for moment in moments.values()], np.float64),
        use_session=np.repeat(np.array([sessions[name] for name in uses], np.int64), sizes),
        use_memory=np.array(used, np.int64),
        use_weight=np.array([weight for each in uses.values() for weight in each.values()], np.float64),
        seen_in={place: np.array([sessions[name] for name in names], np.int64) for place, names in seen.items()},
        in_use=np.arange(len(in_use)),
    )
