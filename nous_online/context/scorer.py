"""Signals of what an agent is doing, and the probability of each memory to be used next. Pure.

Signals become atoms, by which sessions are compared. For each memory the shares of past sessions that used it are
smoothed and decayed; a logistic regression over their log-odds gives its probability.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from pathlib import PurePosixPath
from typing import Any, Generic, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from nous_online.core.details import SignalDetails
from nous_online.core.errors import InvalidInput
from nous_online.core.fields import checked_details, rows_of
from nous_online.core.patterns import regex
from nous_online.language.pairs.reading import stem

WORD = regex(r"[^\W_]+")
LONGEST_ATOM = 300
"""Characters of one atom, the limit of its column in `heart.sightings`."""
FOLDERS = 3
"""Directories of a file that count: its own, and two above it."""
IMPORTS, BRANCH_WORDS, ERRORS, PEOPLE = 3, 3, 2, 2
"""Most of each: at most 20 atoms in all, which limits the query for past sessions."""
LEAST_WORD = 3
"""Least characters of a word of a branch."""
HOURS_A_BAND = 4
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
LONGEST_LINE = 500
"""Characters of a line of an error that are read: classes and codes are near its beginning."""
ERROR_CLASS = regex(r"\b([A-Z]\w*(?:Error|Exception|Warning|Interrupt|Failure|Timeout|NotFound)|E[A-Z]{4,})\b")
ERROR_CODE = regex(r"\b([A-Z]{1,5}-?\d{3,5})\b")
QUOTED = regex(r"""(?:"[^"]*"|'[^']*'|`[^`]*`)""")
NUMBER = regex(r"0x[0-9a-fA-F]+|\d+(?:[.:,]\d+)*")
CAMEL = regex(r"(?<=[a-z])(?=[A-Z])")
LETTERS = regex(r"[^\W\d_]+")
SPACES = regex(r"\s+")


@dataclass(frozen=True)
class Signals:
    """Checked signals; missing ones are None or empty."""

    current_file: str | None = None
    imports: tuple[str, ...] = ()
    branch: str | None = None
    recent_errors: tuple[str, ...] = ()
    activity: str | None = None
    task: str | None = None
    collaborators: tuple[str, ...] = ()


def checked_signals(details: SignalDetails | None) -> Signals:
    """Return checked signals; blank texts and None count as missing.

    Raises `InvalidInput` for an unknown signal, a text that can't be stored, and a text or a list that is too long.
    """
    if details is None:
        return Signals()
    if not isinstance(cast("object", details), Mapping):
        raise InvalidInput(f"signals must be named, such as {{'current_file': 'src/login.py'}}; got {details!r}")
    unknown = sorted(str(name) for name in set(details) - set(rows_of(SignalDetails)))
    if unknown:
        raise InvalidInput(f"unknown signal {unknown[0]!r}; known: {', '.join(rows_of(SignalDetails))}")
    values = checked_details(SignalDetails, details)
    given: dict[str, Any] = {name: value for name, value in values.items() if value is not None}
    if path := given.get("current_file"):
        root = "/" if path.startswith(("/", "\\")) else ""
        given["current_file"] = root + str(normal_path(path)).lstrip("/") or None
    return Signals(**given)


def normal_path(path: str) -> PurePosixPath:
    """Return a path with `/` between its parts, without `.` and with `..` resolved."""
    parts: list[str] = []
    for part in path.replace("\\", "/").split("/"):
        if part == ".." and parts:
            parts.pop()
        elif part not in {"", ".", ".."}:
            parts.append(part)
    return PurePosixPath("/".join(parts) or "/")


def file_words(path: str) -> str:
    """Return the words of a path without its extension, as the query of a recall."""
    folder, slash, name = path.rpartition("/")
    return " ".join(WORD.findall(f"{folder}{slash}{name.rpartition('.')[0] or name}")) or path


# --- atoms: short texts, each shared by many sessions ---


def atoms_of(signals: Signals, *, at: datetime) -> tuple[str, ...]:
    """Return the atoms of signals, the most informative kind first: at most 20, each of at most 300 characters.

    `at` adds its band of four hours and its weekday, in its own time zone.
    """
    begin = at.hour // HOURS_A_BAND * HOURS_A_BAND
    clock = (f"hours:{begin:02d}-{begin + HOURS_A_BAND:02d}", f"weekday:{WEEKDAYS[at.weekday()]}")
    return tuple(dict.fromkeys((*signal_atoms(signals), *clock)))


def signal_atoms(signals: Signals) -> Iterator[str]:
    """Yield the atoms of signals, without the clock.

    Files keep their case, since file systems of build machines tell it apart. A branch gives the stems of its words;
    ticket numbers and short words are left out.
    """
    if signals.current_file:
        normal = normal_path(signals.current_file)
        yield atom("file", str(normal))
        yield from (atom("module", str(folder)) for folder in list(normal.parents)[:FOLDERS] if folder.name)
    yield from (atom("import", name) for name in signals.imports[:IMPORTS])
    if signals.branch:
        yield atom("branch", signals.branch)
        words = (word.casefold() for word in LETTERS.findall(CAMEL.sub(" ", signals.branch)))
        stems = dict.fromkeys(stem(word) for word in words if len(word) >= LEAST_WORD)
        yield from (atom("word", word) for word in list(stems)[:BRANCH_WORDS])
    for error in signals.recent_errors[:ERRORS]:
        yield from error_atoms(error)
    yield from (atom("with", single_spaced(name).casefold()) for name in signals.collaborators[:PEOPLE])
    if signals.activity:
        yield atom("activity", single_spaced(signals.activity).casefold())


def error_atoms(error: str) -> Iterator[str]:
    """Yield the class or code of an error, and the shape of its message, which errors of one cause share.

    Both come from the last line with a class or a code, else from the first line of the text.
    """
    lines = [line.strip()[:LONGEST_LINE] for line in error.splitlines() if line.strip()]
    found = [(line, ERROR_CLASS.search(line) or ERROR_CODE.search(line)) for line in lines]
    line, named = next(((line, named) for line, named in reversed(found) if named), found[0])
    if named:
        yield atom("error", named[1])
    yield atom("error-shape", error_shape(line))


def error_shape(line: str) -> str:
    """Return a message in lower case, with quoted parts and numbers replaced by placeholders."""
    return single_spaced(NUMBER.sub("#", QUOTED.sub("…", line))).casefold()


def single_spaced(text: str) -> str:
    """Return a text with single blanks and none around it."""
    return SPACES.sub(" ", text).strip()


def atom(kind: str, text: str) -> str:
    """Return one atom; a text that is too long is cut, with a hash at its end that keeps atoms distinct."""
    whole = f"{kind}:{text}"
    if len(whole) <= LONGEST_ATOM:
        return whole
    return f"{whole[: LONGEST_ATOM - 17]}…{sha256(whole.encode()).hexdigest()[:16]}"


def kind_of(atom_text: str) -> str:
    """Return the kind of an atom."""
    return atom_text.partition(":")[0]


def describe_atom(atom_text: str) -> str:
    """Return what sessions with an atom have in common, such as "with src/auth/login.py open"."""
    kind, _, text = atom_text.partition(":")
    return {
        "file": f"with {text} open",
        "module": f"in {text}",
        "import": f"that import {text}",
        "branch": f"on branch {text}",
        "word": f"on branches about “{text}…”",
        "error": f"that saw {text}",
        "error-shape": f"that saw an error like “{text}”",
        "with": f"with {text}",
        "activity": f"of {text}",
        "hours": f"between {text.replace('-', ' and ')} o'clock",
        "weekday": f"on a {text.capitalize()}",
    }[kind]


# --- how likely a memory is to be used ---

M = TypeVar("M", bound=Hashable)
Floats = NDArray[np.float64]
Places = NDArray[np.int64]
CITED = 1.0
"""The weight of a citation: the agent said that it used the memory."""
RETRIEVED = 0.25
"""The weight of an answer that was not ignored, among at most `RELEVANT`: the share of answers that are cited."""
RELEVANT = 10
"""Each answer of a longer list counts less in proportion: otherwise shown memories would predict themselves."""
DAY_S = 86_400
HALF_LIVES = (1.0, 14.0, 90.0)
"""Days after which a use counts half: on access traces all three are better than any one (benchmark `forgetting`)."""
SHARE_HALF_LIFE = 60.0
"""Days after which a session with a signal counts half."""
PRIOR_SESSIONS = 2.0
"""The strength of the Beta prior of each share, in sessions at the memory's own rate."""
FLOOR, CEILING = 0.002, 0.95
"""The rate of a memory that was never used, and the share of one that always was."""
LEAST_USED = 0.01
"""Added to a decayed count, so that it has a logarithm."""
FURTHER = 0.4
"""The weight of a second or third signal of one kind, such as a folder above or another import."""
LATEST_IN_USE = 10
"""Latest memories cited in this session whose company counts."""
BIAS = -0.9
WEIGHTS: Mapping[str, float] = {
    "rate": 0.73,
    "day": 0.17,
    "fortnight": 0.21,
    "file": 0.16,
    "module": 0.24,
    "company": 0.07,
    "words": 1.96,
    "meaning": 0.6,
    # By analogy, since no trace has these signals: as informative as a module, as a file, or less. In the trace the
    # clock has no effect (0.00 and -0.01, with many people in many time zones); an agent with a routine still has one.
    "branch": 0.24,
    "error-shape": 0.24,
    "import": 0.16,
    "error": 0.16,
    "word": 0.1,
    "with": 0.1,
    "activity": 0.1,
    "hours": 0.05,
    "weekday": 0.05,
}
"""What each feature adds to the log-odds: down to `meaning` a logistic regression over the first half of a trace of
files touched in a public repository (`python -m benchmarks.prediction_weights`); `meaning` in place of `words`, over
the same paths."""
CLOCK = ("hours", "weekday")
MOST_REASONS = 3
NEAR_ENOUGH = 0.5
"""Least nearness, in log-odds, that is given as a reason."""
UNKNOWN = 1.0
"""Memories that a session uses besides the expected ones, because no earlier session used them."""


# --- past sessions ---


class PastRecall(NamedTuple, Generic[M]):
    """One recall of a past session, with the answers that were cited and ignored."""

    session_id: str
    at: datetime
    result_ids: Sequence[M]
    cited_ids: Sequence[M]
    ignored_ids: Sequence[M]


class Sighted(NamedTuple):
    """A session with an atom, given by the atom's place in the query."""

    place: int
    session_id: str
    at: datetime


@dataclass(frozen=True)
class Past(Generic[M]):
    """Past sessions and the memories each used; arrays of one length belong together."""

    memories: tuple[M, ...]
    ages: Floats
    """How old each session is, in days."""
    use_session: Places
    use_memory: Places
    use_weight: Floats
    seen_in: Mapping[int, Places]
    """The sessions with each atom, by the atom's place."""
    in_use: Places
    """The memories that the present session has cited, in that order."""

    def with_memories(self, others: Iterable[M]) -> Past[M]:
        """Return the same past with further memories, which were not used in it."""
        return replace(self, memories=tuple(dict.fromkeys((*self.memories, *others))))


def past_of(
    recalls: Iterable[PastRecall[M]], sighted: Iterable[Sighted], *, session_id: str | None, at: datetime
) -> Past[M]:
    """Return the past up to `at` without the session `session_id`, of which only the citations are kept (`in_use`)."""
    moments: dict[str, datetime] = {}
    uses: dict[str, dict[M, float]] = {}
    seen: dict[int, list[str]] = {}
    memories: dict[M, int] = {}
    for recall in recalls:
        if recall.session_id == session_id:
            for memory in recall.cited_ids:
                memories.setdefault(memory, len(memories))
        else:
            moments[recall.session_id] = max(recall.at, moments.get(recall.session_id, recall.at))
            add_uses(uses.setdefault(recall.session_id, {}), recall)
    in_use = np.arange(len(memories))
    for place, name, moment in sighted:
        if name != session_id:
            moments.setdefault(name, moment)
            seen.setdefault(place, []).append(name)
    sessions = {name: place for place, name in enumerate(moments)}
    used = [memories.setdefault(memory, len(memories)) for each in uses.values() for memory in each]
    return Past(
        memories=tuple(memories),
        ages=np.array([max((at - moment).total_seconds(), 0.0) / DAY_S for moment in moments.values()], np.float64),
        use_session=np.repeat(
            np.array([sessions[name] for name in uses], np.int64), [len(each) for each in uses.values()]
        ),
        use_memory=np.array(used, np.int64),
        use_weight=np.array([weight for each in uses.values() for weight in each.values()], np.float64),
        seen_in={place: np.array([sessions[name] for name in names], np.int64) for place, names in seen.items()},
        in_use=in_use,
    )


def add_uses(uses: dict[M, float], recall: PastRecall[M]) -> None:
    """Add the use of each answer of a recall: 1 if cited, less if only found, 0 if ignored.

    The highest use over the recalls of a session counts.
    """
    found = RETRIEVED * min(1.0, RELEVANT / max(len(recall.result_ids), 1))
    ignored = set(recall.ignored_ids)
    for memory in recall.result_ids:
        if uses.get(memory, 0.0) < found and memory not in ignored:
            uses[memory] = found
    uses.update(dict.fromkeys(recall.cited_ids, CITED))


# --- the ranking ---


@dataclass(frozen=True)
class Nearness:
    """How near a memory is to the texts of the signals: the lexical and the dense score of a recall."""

    words: float = 0.0
    meaning: float = 0.0


class Likely(NamedTuple, Generic[M]):
    """A memory, the probability that it is used in this session, and the reasons."""

    memory: M
    confidence: float
    reasons: tuple[str, ...]
    is_bearing: bool
    """Whether a signal other than the clock supports it, not only frequent use."""


class Ranking(Generic[M]):
    """Memories by the probability that they are used in this session, without those in use already.

    `near` has the nearness of memories to the texts of the signals; with it, memories that were never used are ranked.
    """

    def __init__(self, past: Past[M], atoms: Sequence[str], near: Mapping[M, Nearness]) -> None:
        past = past.with_memories(near)
        self.memories = past.memories
        self._chances = chances_of(features(past, atoms, near)) if past.memories else np.zeros(0)
        self._chances[past.in_use] = 0.0
        self._near = near
        self._session_count = len(past.ages)
        shared = sorted(past.seen_in, key=lambda place: (kind_of(atoms[place]) in CLOCK, place))
        self._atoms = [atoms[place] for place in shared]
        self._sizes = np.array([len(past.seen_in[place]) for place in shared])
        cited = replace(past, use_weight=(past.use_weight == CITED).astype(np.float64))
        self._counts = np.array([uses_of(cited, session_mask(past, past.seen_in[place])) for place in shared])
        self._sessions = uses_of(cited, np.ones(len(past.ages)))
        self._found = np.bincount(past.use_memory, minlength=len(past.memories))

    @property
    def expected(self) -> float:
        """The expected number of them that are used."""
        return float(self._chances.sum())

    def places(self, *, least: float = 0.0) -> list[int]:
        """Return the places of memories with at least the probability `least`, the likeliest first; ties by place."""
        order: list[int] = np.argsort(-self._chances, kind="stable").tolist()
        return order[: np.count_nonzero((self._chances > 0) & (self._chances >= least))]

    def chance(self, place: int) -> float:
        """Return the probability of one memory."""
        return float(self._chances[place])

    def at(self, place: int) -> Likely[M]:
        """Return one memory with its reasons: up to three signals under which it was cited most often, or nearness."""
        counts = self._counts[:, place] if self._atoms else np.zeros(0)
        order: list[int] = np.argsort(-counts / (self._sizes + PRIOR_SESSIONS), kind="stable")[:MOST_REASONS].tolist()
        best = [each for each in order if counts[each]]
        reasons = [
            f"used in {int(counts[each])} of the last {self._sizes[each]} sessions {describe_atom(self._atoms[each])}"
            for each in best
        ]
        if not reasons and self._sessions[place]:
            reasons.append(f"used in {self._sessions[place]:.0f} of the {self._session_count} sessions looked at")
        elif not reasons and self._found[place]:
            reasons.append(f"found in {self._found[place]:.0f} earlier sessions, and not ignored")
        memory = self.memories[place]
        near = self._near.get(memory, Nearness())
        is_near = not reasons or WEIGHTS["words"] * near.words + WEIGHTS["meaning"] * near.meaning >= NEAR_ENOUGH
        if is_near:
            reasons.append("near in words or meaning to what is being done")
        is_bearing = is_near or any(kind_of(self._atoms[each]) not in CLOCK for each in best)
        return Likely(memory, round(self.chance(place), 4), tuple(reasons), is_bearing)


def expected_share(chances: Sequence[float], expected: float) -> float:
    """Return the expected share of a session's uses that memories with these probabilities cover."""
    return min(sum(chances) / (expected + UNKNOWN), 1.0)


def chances_of(named: Mapping[str, Floats]) -> Floats:
    """Return the probability of each memory: the logistic function of its weighted features."""
    score = BIAS + np.sum([WEIGHTS[name] * values for name, values in named.items()], axis=0)
    return 1 / (1 + np.exp(-score))


def features(past: Past[M], atoms: Sequence[str], near: Mapping[M, Nearness]) -> dict[str, Floats]:
    """Return the features of each memory by name, the columns of the logistic regression behind `WEIGHTS`.

    The rate of a memory is its decayed share of all sessions. A signal of this session gives a share of its own, in
    which of the latest sessions with it the memory was used; its lift is what that adds to the rate, in log-odds.
    The company of a memory is its mean lift over the sessions that used the memories this one cited last.
    """
    day, fortnight, quarter = (0.5 ** (past.ages / days) for days in HALF_LIVES)
    rate = smooth(uses_of(past, quarter), quarter.sum(), FLOOR)
    cited = past.in_use[-LATEST_IN_USE:].tolist()
    lifts = [lift(past, past.use_session[past.use_memory == memory], rate) for memory in cited]
    found = {
        "rate": log_odds(rate),
        "day": np.log(uses_of(past, day) + LEAST_USED),
        "fortnight": np.log(uses_of(past, fortnight) + LEAST_USED),
        "company": np.mean(lifts, axis=0) if lifts else np.zeros(len(past.memories)),
        "words": np.array([near[memory].words if memory in near else 0.0 for memory in past.memories]),
        "meaning": np.array([near[memory].meaning if memory in near else 0.0 for memory in past.memories]),
    }
    first: dict[str, int] = {}
    for place, each in enumerate(atoms):
        kind = kind_of(each)
        weight = 1.0 if first.setdefault(kind, place) == place else FURTHER
        if place in past.seen_in:
            found[kind] = found.get(kind, 0.0) + weight * lift(past, past.seen_in[place], rate)
    return found


def lift(past: Past[M], sessions: Places, rate: Floats) -> Floats:
    """Return what the share of these sessions that used each memory adds to its log-odds."""
    weight = session_mask(past, sessions) * 0.5 ** (past.ages / SHARE_HALF_LIFE)
    return log_odds(smooth(uses_of(past, weight), weight.sum(), rate)) - log_odds(rate)


def uses_of(past: Past[M], weight: Floats) -> Floats:
    """Return for each memory the sum of the weights of the sessions that used it."""
    sums = np.bincount(past.use_memory, past.use_weight * weight[past.use_session], minlength=len(past.memories))
    return sums.astype(np.float64)


def session_mask(past: Past[M], sessions: Places) -> Floats:
    """Return 1 for each of these sessions, and 0 for the others."""
    weight = np.zeros(len(past.ages))
    weight[sessions] = 1.0
    return weight


def smooth(sums: Floats, total: float, prior: Floats | float) -> Floats:
    """Return shares of `total`, each the posterior mean with a Beta prior."""
    return np.clip((sums + PRIOR_SESSIONS * prior) / (total + PRIOR_SESSIONS), FLOOR / 2, CEILING)


def log_odds(share: Floats) -> Floats:
    """Return the logarithm of the odds of a share."""
    return np.log(share) - np.log1p(-share)
