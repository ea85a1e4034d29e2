"""The seam that condenses an episode: title, summary, durable facts, cautions, and the shorter levels of detail.

The offline writer invents nothing: what it returns stands in the transcript, with who said it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, ParamSpec, Protocol, TypeVar

from nous_online.embedding import Embedder, Vectors
from nous_online.errors import InvalidInput
from nous_online.pairs.unseen import is_blank
from nous_online.policy import WritingPolicy
from nous_online.writing.cautions import cautions
from nous_online.writing.credentials import holds_credential, without_credentials
from nous_online.writing.durable import Durable, durability, durable
from nous_online.writing.lexrank import lexrank, most_telling, summarise, word_count, word_vectors, worth
from nous_online.writing.sentences import Sentence, is_prose, said, sentences_of, told
from nous_online.writing.titles import condensed, index_word, title_of

__all__ = [
    "CensorDraft",
    "Draft",
    "FactDraft",
    "Levels",
    "OfflineWriter",
    "Told",
    "Writer",
    "condensed",
    "levels_by_words",
    "summarise",
]

P = ParamSpec("P")
T = TypeVar("T")

POLICY = WritingPolicy()
SHORTEST_LIFTED = 3
"""Words; "Yes, please." is no sentence of a summary."""
UNTITLED = "Untitled episode"


@dataclass(frozen=True)
class Told:
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
class Levels:
    """An episode in fewer words, from its title to its summary; no summary where nothing may be told."""

    title: str
    summary: str
    compressed: str
    index_word: str


class Writer(Protocol):
    """Anything that condenses one episode."""

    @property
    def name(self) -> str: ...

    def write(self, episode: Told) -> Draft:
        """Return what is worth keeping of an episode; raise `Unavailable` when nothing can be written now."""
        ...


class Call(Protocol):
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
    prompt_version = "extract-1"

    def __init__(self, embedder: Embedder, *, call: Call = here) -> None:
        self._embedder = embedder
        self.call = call

    def write(self, episode: Told) -> Draft:
        """Return title, summary, facts and cautions of an episode, all lifted from its detail and its lessons.

        A sentence that holds what looks like a credential is left out of everything. `InvalidInput` is raised when
        there is no detail, `Unavailable` when the embedder can't be reached.
        """
        if is_blank(episode.detail):
            raise InvalidInput("the episode has no detail to write from; store its transcript, or leave it unwritten")
        sentences, headings = self.call(read_aloud, episode)
        vectors = self._embedder.embed_documents([each.text[: POLICY.embedded_characters] for each in sentences])
        return self.call(drafted, replace(episode, detail=""), sentences, vectors, headings, budget(episode.detail))


def levels_by_words(episode: Told) -> Levels:
    """Return an episode in fewer words without an embedder: sentences are as close as the words they share.

    On 120 dialogues and ten meetings its summaries came as near to those people wrote as with vectors of meaning, in
    a twentieth of the time.
    """
    sentences, headings = read_aloud(episode)
    vectors, words = word_vectors(sentences), budget(episode.detail)
    return levels_of(episode, sentences, vectors, headings=headings, words=words)


def read_aloud(episode: Told) -> tuple[list[Sentence], list[str]]:
    """Return the sentences of an episode that are worth weighing, and its headings, all without credentials."""
    spoken = without_credentials(sentences_of(episode.detail, participants=episode.participants))
    return worth_weighing(spoken), [each.text for each in spoken if each.is_heading]


def worth_weighing(sentences: Sequence[Sentence]) -> list[Sentence]:
    """Return the sentences a summary may be made of: prose of three words or more, if there is any.

    Of a long transcript only as many as can be embedded in seconds, from all over it.
    """
    prose = [each for each in sentences if is_prose(each.text) and not each.is_heading]
    long = [each for each in prose if word_count(each.text) >= SHORTEST_LIFTED]
    candidates = long or prose or list(sentences)
    size = sum(min(len(each.text), POLICY.embedded_characters) for each in candidates) or 1
    most = min(POLICY.most_sentences, len(candidates) * POLICY.most_embedded_characters // size)
    return [candidates[i] for i in most_telling(candidates, most)]


def drafted(
    episode: Told, sentences: Sequence[Sentence], vectors: Vectors, headings: Sequence[str], words: int
) -> Draft:
    """Put together what is lifted from the sentences of an episode, in a summary of at most `words` words."""
    saying = worth(sentences, vectors)
    return Draft(
        **vars(levels_of(episode, sentences, vectors, headings=headings, words=words)),
        facts=tuple(map(fact_draft, durable(sentences, vectors, lexrank(vectors)))),
        censors=censor_drafts(episode, [sentences[i] for i in sorted(range(len(sentences)), key=lambda i: -saying[i])]),
        writer=OfflineWriter.name,
        prompt_version=OfflineWriter.prompt_version,
    )


def levels_of(
    episode: Told, sentences: Sequence[Sentence], vectors: Vectors, *, headings: Sequence[str], words: int
) -> Levels:
    """Return title, summary, line and index word of an episode, from its sentences and their unit vectors."""
    chosen = summarise(sentences, vectors, words=words)
    saying = worth(sentences, vectors)
    ranked = [sentences[i] for i in sorted(chosen, key=lambda i: (-lasting(sentences[i]), -saying[i]))]
    title = (episode.title or "").strip() or title_of(ranked, headings=headings) or UNTITLED
    return Levels(
        title=title,
        summary=told([sentences[i] for i in chosen]),
        compressed=condensed(said(ranked[0]) if ranked else title),
        index_word=index_word(title),
    )


def lasting(sentence: Sentence) -> float:
    """Return what makes a sentence name an episode: 1 for one worth keeping, less for what passes with the talk."""
    return min(1.0, durability(sentence))


def budget(detail: str) -> int:
    """Return how many words the summary of a detail may have: 130, or a share of a short one past its opening."""
    share = round(POLICY.summary_share * (word_count(detail) - POLICY.opening_words))
    return min(POLICY.summary_words, max(POLICY.least_summary_words, share))


def fact_draft(found: Durable) -> FactDraft:
    """Return the fact a durable sentence states."""
    return FactDraft(found.content, found.subject, found.category, found.sentence.text)


def censor_drafts(episode: Told, ranked: Sequence[Sentence]) -> tuple[CensorDraft, ...]:
    """Return what a failed episode teaches to beware of; nothing for any other outcome."""
    if episode.outcome != "failure":
        return ()
    lessons = [lesson for lesson in episode.lessons if not holds_credential(lesson)]
    return tuple(CensorDraft(found.trigger, found.reason) for found in cautions(lessons, ranked))
