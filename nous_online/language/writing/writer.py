"""The seam that condenses an episode: title, summary, durable facts, cautions, and the shorter levels of detail.

The offline writer invents nothing: what it returns stands in the transcript, with who said it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, ParamSpec, Protocol, TypeVar

import numpy as np

from nous_online.core.errors import InvalidInput
from nous_online.core.policy import WritingPolicy
from nous_online.core.validation import is_blank
from nous_online.language.embedding import Embedder
from nous_online.language.minilm import Vectors, unit_rows
from nous_online.language.writing.credentials import holds_credential, without_credentials
from nous_online.language.writing.lexrank import (
    condensed,
    index_word,
    most_telling,
    summarise,
    title_of,
    word_count,
    word_vectors,
    worth,
)
from nous_online.language.writing.points import (
    ASKING,
    ASSISTANTS,
    Point,
    bearing,
    category_of,
    cautions,
    explained,
    holds_something,
    is_own,
    lasting,
    points_of,
    questions_of,
    stated,
    subject_of,
    telling,
    tells,
    worths_of,
)
from nous_online.language.writing.sentences import (
    Sentence,
    day_in,
    is_known_language,
    said,
    said_in,
    sentences_of,
    told,
    uses_tools,
)

P = ParamSpec("P")
T = TypeVar("T")

POLICY = WritingPolicy()
REQUESTING, LEAST_REQUEST = "user", 5  # whose first sentence of five words names a session with an assistant
UNTITLED = "Untitled episode"


@dataclass(frozen=True)
class EndedEpisode:
    """An episode as it ended: what a writer works from."""

    detail: str
    title: str | None = None
    outcome: str | None = None
    participants: Sequence[str] = ()
    lessons: Sequence[str] = ()
    ended_at: datetime | None = None


@dataclass(frozen=True)
class FactDraft:
    """A statement to be learned; `evidence` is what it was drawn from, word for word."""

    content: str
    subject: str | None
    category: str | None
    evidence: str


@dataclass(frozen=True)
class CensorDraft:
    """An action to warn of, and what came of it."""

    trigger: str
    reason: str


@dataclass(frozen=True)
class Draft:
    """What a writer made of an episode, stored before it is carried out; no summary where nothing may be told."""

    title: str
    summary: str
    compressed: str
    index_word: str
    facts: tuple[FactDraft, ...]
    censors: tuple[CensorDraft, ...]
    writer: str
    prompt_version: str

    def as_json(self) -> dict[str, Any]:
        """Return the draft as plain lists and dicts."""
        return {**asdict(self), "facts": [asdict(f) for f in self.facts], "censors": [asdict(c) for c in self.censors]}

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> Draft:
        """Return the draft that `as_json` stored; raise `InvalidInput` when it is of another form."""
        try:
            lifted: dict[str, Any] = {
                "facts": tuple(FactDraft(**fact) for fact in stored["facts"]),
                "censors": tuple(CensorDraft(**censor) for censor in stored["censors"]),
            }
            return cls(**(stored | lifted))
        except (KeyError, TypeError) as error:
            message = f"the stored draft is of another form ({error}); write the episode again"
            raise InvalidInput(message) from error


@dataclass(frozen=True)
class DraftLevels:
    """An episode in fewer words, from its title to its summary; no summary where nothing may be told."""

    title: str
    summary: str
    compressed: str
    index_word: str


class Writer(Protocol):
    """Anything that condenses one episode."""

    @property
    def name(self) -> str: ...

    def write(self, episode: EndedEpisode) -> Draft:
        """Return what is worth keeping of an episode; raise `Unavailable` when nothing can be written now."""
        ...


class CallFunction(Protocol):
    """Whoever calls a function with its arguments and returns what it returns."""

    def __call__(self, function: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T: ...


def here(function: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """Call a function in this process."""
    return function(*arguments, **named)


class OfflineWriter:
    """Whole sentences chosen by LexRank over the vectors of the memory's own embedder: no network of its own, no key.

    At most 400 sentences are embedded, so that a transcript of a megabyte takes seconds. `call` calls a function that
    reads the text, here or in a child process that can be ended; embedding stays here.
    """

    name = "offline:lexrank"
    prompt_version = "extract-3"

    def __init__(self, embedder: Embedder, *, call: CallFunction = here) -> None:
        self._embedder = embedder
        self.call = call

    def write(self, episode: EndedEpisode) -> Draft:
        """Return title, summary, facts and cautions of an episode, all lifted from its detail and its lessons.

        A sentence that holds what looks like a credential is left out of everything. `InvalidInput` is raised when
        there is no detail, `Unavailable` when the embedder can't be reached.
        """
        if is_blank(episode.detail):
            raise InvalidInput("the episode has no detail to write from; store its transcript, or leave it unwritten")
        spoken = self.call(read_aloud, episode)
        vectors = self._embedder.embed_documents([each.text[: POLICY.embedded_characters] for each in spoken.sentences])
        return self.call(drafted, replace(episode, detail=""), spoken, vectors)


@dataclass(frozen=True)
class Spoken:
    """What is said in an episode: its sentences and headings, how many words it has and its summary may have."""

    sentences: Sequence[Sentence]
    headings: Sequence[str]
    words: int
    summary_words: int
    is_known: bool
    """Whether it is in a language whose words are known."""
    uses_tools: bool
    explained: str
    """What is explained at length or pasted beside an assistant that uses no tool for it."""


def levels_by_words(episode: EndedEpisode) -> DraftLevels:
    """Return an episode in fewer words without an embedder: sentences are as close as the words they share.

    On 120 dialogues and ten meetings its summaries came as near to those people wrote as with vectors of meaning, in
    a twentieth of the time.
    """
    spoken = read_aloud(episode)
    return levels_of(episode, spoken, word_vectors(spoken.sentences))


def read_aloud(episode: EndedEpisode) -> Spoken:
    """Return what is said in an episode, without credentials, machine lines and code."""
    said_by_people = said_in(episode.detail)
    heard = without_credentials(sentences_of(said_by_people, participants=episode.participants))
    ended_on = episode.ended_at.date() if episode.ended_at else None
    spoken = [each if each.day else replace(each, day=ended_on) for each in heard]
    stated = [each for each in spoken if not each.is_heading] or spoken
    # As many as can be embedded in seconds, of a long transcript from all over it.
    size = sum(min(len(each.text), POLICY.embedded_characters) for each in stated) or 1
    most = min(POLICY.most_sentences, len(stated) * POLICY.most_embedded_characters // size)
    sentences = [stated[i] for i in most_telling(stated, most)]
    is_known = is_known_language(said_by_people)
    return Spoken(
        sentences=sentences,
        headings=[each.text for each in spoken if each.is_heading],
        words=word_count(said_by_people),
        summary_words=budget(sentences) if is_known else round(POLICY.unknown_language * POLICY.summary_words),
        is_known=is_known,
        uses_tools=any(map(uses_tools, episode.detail.splitlines())),
        explained=explained(episode.detail),
    )


def drafted(episode: EndedEpisode, spoken: Spoken, vectors: Vectors) -> Draft:
    """Put together what is drawn from what was said in an episode; `vectors` holds a unit row a sentence."""
    sentences = spoken.sentences
    saying = worth(sentences, vectors) * bearing(sentences)
    ranked: list[int] = np.argsort(-saying, kind="stable").tolist()
    lessons = [lesson for lesson in episode.lessons if not holds_credential(lesson)]
    is_failure = episode.outcome == "failure"
    found_cautions = cautions(lessons, [sentences[i] for i in ranked]) if is_failure else []
    return Draft(
        **vars(levels_of(episode, spoken, vectors)),
        facts=facts_of(spoken, vectors),
        censors=tuple(CensorDraft(*found) for found in found_cautions),
        writer=OfflineWriter.name if spoken.is_known else f"{OfflineWriter.name}, its language not known",
        prompt_version=OfflineWriter.prompt_version,
    )


def facts_of(spoken: Spoken, vectors: Vectors) -> tuple[FactDraft, ...]:
    """Return the points worth keeping, one for forty words and twelve at most."""
    points, rows = points_and_rows(spoken.sentences, vectors)
    worths = worths_of(points, rows, len(spoken.sentences))
    worths[[not is_found(each, spoken) for each in points]] = -np.inf
    most = min(POLICY.most_facts, 2 + spoken.words // POLICY.words_a_fact)
    kept = [points[i] for i in lasting(points, rows, worths, most=most)]
    return tuple(FactDraft(stated(each), subject_of(each), category_of(each), each.text) for each in kept)


def is_found(point: Point, spoken: Spoken) -> bool:
    """Tell whether a point was found out or is of those who speak, rather than explained or asked of somebody."""
    if point.sentences[0].text in spoken.explained:
        return is_own(point)
    return tells(point) or not spoken.uses_tools or (point.speaker or "").casefold() not in ASSISTANTS | ASKING


def levels_of(episode: EndedEpisode, spoken: Spoken, vectors: Vectors) -> DraftLevels:
    """Return title, summary, line and index word of an episode, from its sentences and their unit vectors."""
    sentences, weights = spoken.sentences, bearing(spoken.sentences)
    chosen = summary_of(sentences, vectors, words=spoken.summary_words)
    saying = worth(sentences, vectors) * weights
    ranked = [sentences[i] for i in sorted(chosen, key=lambda i: -saying[i])]
    headings = [each for each in spoken.headings if not day_in(each)]
    named = [each for each in sentences if each.speaker == REQUESTING and word_count(each.text) >= LEAST_REQUEST][:1]
    title = (episode.title or "").strip() or title_of([*named, *ranked], headings=headings) or UNTITLED
    return DraftLevels(
        title=title,
        summary=told([sentences[i] for i in chosen]),
        compressed=condensed(said(ranked[0]) if ranked else title),
        index_word=index_word(title),
    )


def points_and_rows(sentences: Sequence[Sentence], vectors: Vectors) -> tuple[list[Point], Vectors]:
    """Return the points of a transcript, and the unit vector of each: the mean of its sentences."""
    points = points_of(sentences)
    return points, unit_rows(np.array([vectors[list(each.places)].mean(axis=0) for each in points] or vectors[:0]))


def summary_of(sentences: Sequence[Sentence], vectors: Vectors, *, words: int) -> list[int]:
    """Return which sentences a summary of at most `words` words is made of, in order."""
    is_short = words >= POLICY.telling_from_share * words_of(sentences)
    return summarise(
        sentences,
        vectors,
        words=words,
        bearing=bearing(sentences),
        asked=questions_of(sentences),
        telling=telling(*points_and_rows(sentences, vectors), len(sentences)) if is_short else None,
    )


def budget(sentences: Sequence[Sentence]) -> int:
    """Return how many words a summary may have: 148, or of small talk as many as its points that name something."""
    held = sum(word_count(each.text) for each in points_of(sentences) if holds_something(each))
    is_talk = len({each.speaker for each in sentences}) > 1
    if is_talk and held < POLICY.small_talk_share * words_of(sentences):
        return min(POLICY.summary_words, max(POLICY.least_summary_words, held))
    return POLICY.summary_words


def words_of(sentences: Sequence[Sentence]) -> int:
    """Return how many words sentences have together."""
    return sum(word_count(each.text) for each in sentences)
