"""Writers condense an episode into title, summary, facts, cautions and shorter levels; the offline one is here.

The offline writer only extracts: everything it returns is in the transcript, with its speaker, and what a user corrects
in a chat stands where the old value stood.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, ParamSpec, Protocol, TypeVar

import numpy as np

from nous_online.core.errors import InvalidInput
from nous_online.core.policy import WritingPolicy
from nous_online.core.validation import is_blank
from nous_online.language.embedding import Embedder
from nous_online.language.lexicon import LEANING, REQUEST
from nous_online.language.minilm import Vectors, unit_rows
from nous_online.language.writing.cautions import find_cautions
from nous_online.language.writing.chats import (
    explained_turns,
    is_asking,
    is_named,
    is_question,
    long_turns,
    names_inside,
    tells_of_life,
)
from nous_online.language.writing.corrections import corrected
from nous_online.language.writing.credentials import holds_credential, without_credentials
from nous_online.language.writing.dates import find_date
from nous_online.language.writing.lexrank import (
    ASKING,
    ASSISTANTS,
    content_words,
    index_word,
    one_line,
    sentence_scores,
    spread_sample,
    summarise,
    summary_text,
    title_of,
    word_count,
    word_vectors,
)
from nous_online.language.writing.matters import matters_of
from nous_online.language.writing.points import (
    LASTING_LABELS,
    Point,
    answered_questions,
    best_outcomes,
    finding_within,
    has_content,
    is_decided,
    is_finding,
    is_joined,
    is_report,
    is_standing,
    is_statement,
    keeping_worth,
    outcome_weights,
    points_of,
    score_points,
    select_facts,
    standalone_text,
    summary_candidates,
    without_pasted_turns,
)
from nous_online.language.writing.repairs import Mending, is_mended, mendings
from nous_online.language.writing.sentences import (
    Sentence,
    human_text,
    is_known_language,
    sentences_of,
    straighten_apostrophes,
    uses_tools,
    with_speaker,
)
from nous_online.language.writing.spelling import spelled_out
from nous_online.language.writing.subjects import category_of, subject_of

P = ParamSpec("P")
T = TypeVar("T")

POLICY = WritingPolicy()
REQUESTING, LEAST_REQUEST = "user", 5  # the first sentence of this speaker with as many words names the session
UNTITLED = "Untitled episode"


@dataclass(frozen=True)
class EndedEpisode:
    """An episode when it ended: the input of a writer."""

    detail: str
    title: str | None = None
    outcome: str | None = None
    participants: Sequence[str] = ()
    lessons: Sequence[str] = ()
    ended_at: datetime | None = None


@dataclass(frozen=True)
class FactDraft:
    """A statement to be learned; `evidence` is the text it was drawn from, but for the spelling of haste and what was
    corrected in it.

    `context`: what was told with it, a line for each, which a recall finds it by.
    """

    content: str
    subject: str | None
    category: str | None
    evidence: str
    context: str | None = None


@dataclass(frozen=True)
class CensorDraft:
    """An action to warn of, and the reason."""

    trigger: str
    reason: str


@dataclass(frozen=True)
class Draft:
    """What a writer made of an episode, stored before it is carried out; an empty summary where all was left out."""

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
    """The shorter levels of an episode, from title to summary; an empty summary where all was left out."""

    title: str
    summary: str
    compressed: str
    index_word: str


class Writer(Protocol):
    """Anything that condenses an episode."""

    @property
    def name(self) -> str: ...

    def write(self, episode: EndedEpisode) -> Draft:
        """Return the draft of an episode; raise `Unavailable` when none can be written now."""
        ...


class CallFunction(Protocol):
    """Calls a function with arguments and returns its result, in this process or another."""

    def __call__(self, function: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T: ...


def call_here(function: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """Call a function in this process."""
    return function(*arguments, **named)


class OfflineWriter:
    """Chooses whole sentences by LexRank over the vectors of the memory's embedder; needs no key and no network.

    At most 400 sentences are embedded, so that a transcript of a megabyte takes seconds. `call` runs the functions that
    parse text, in this process or in a child that can be killed at its deadline; embedding always runs here.
    """

    name = "offline:lexrank"
    prompt_version = "extract-19"

    def __init__(self, embedder: Embedder, *, call: CallFunction = call_here) -> None:
        self._embedder = embedder
        self.call = call

    def write(self, episode: EndedEpisode) -> Draft:
        """Return title, summary, facts and cautions of an episode, extracted from its detail and its lessons.

        Sentences that look like they hold a credential are left out. Raises `InvalidInput` without a detail and
        `Unavailable` when the embedder can't be reached.
        """
        if is_blank(episode.detail):
            raise InvalidInput("the episode has no detail to write from; store its transcript, or leave it unwritten")
        spoken = self.call(parse_episode, episode)
        texts = [each.text[: POLICY.embedded_characters] for each in spoken.sentences]
        places = {text: place for place, text in enumerate(dict.fromkeys(texts))}  # logs say one thing many times
        vectors = self._embedder.embed_documents([*places])[np.array([places[text] for text in texts], dtype=int)]
        return self.call(make_draft, replace(episode, detail=""), spoken, vectors)


@dataclass(frozen=True)
class ParsedEpisode:
    """A parsed episode: sentences, headings, number of words, and the number of words its summary may have."""

    sentences: Sequence[Sentence]
    headings: Sequence[str]
    words: int
    summary_words: int
    is_known: bool
    """Whether it is in a language with word lists."""
    uses_tools: bool
    is_asked: bool
    """Whether a `user` speaks in it: besides them only the agent and its tools do."""
    explained: frozenset[int]
    """The turns with long explanations and pasted text, in a talk with an assistant without a use of a tool …"""
    pasted: frozenset[int]
    """… and of these what the user pastes."""
    mends: Sequence[Mending]
    """What it tells as mended: of the whole text, also where its sentences are a sample."""


def levels_by_words(episode: EndedEpisode) -> DraftLevels:
    """Return the levels of an episode without an embedder: sentences are as similar as the words they share.

    On 120 dialogues and ten meetings these summaries were as close to the reference summaries as with an embedder, in a
    twentieth of the time.
    """
    spoken = parse_episode(episode)
    return draft_levels(episode, spoken, word_vectors(spoken.sentences))


def parse_episode(episode: EndedEpisode) -> ParsedEpisode:
    """Return an episode parsed, without credentials, output of programs and code."""
    said_by_people = human_text(episode.detail)
    heard = without_credentials(sentences_of(said_by_people, participants=episode.participants))
    ended_on = episode.ended_at.date() if episode.ended_at else None
    is_work = any(map(uses_tools, episode.detail.splitlines()))
    dated = [each if each.day else replace(each, day=ended_on) for each in heard]
    spoken = dated if is_work else corrected([one for each in spelled_out(dated) for one in split_matters(each)])
    own = without_pasted_turns(spoken) if is_work else spoken
    stated = [each for each in own if not each.is_heading] or own or spoken
    if is_work:  # what can't be drawn takes no place among what is embedded
        stated = [
            each for each in stated if each.speaker in ASKING or is_statement(each) or is_question(each)
        ] or stated
    # As many sentences as can be embedded in seconds, spread over the whole transcript.
    size = sum(min(len(each.text), POLICY.embedded_characters) for each in stated) or 1
    most = min(POLICY.most_sentences, len(stated) * POLICY.most_embedded_characters // size)
    told = told_sentences(stated, is_work=is_work)
    sentences = [stated[i] for i in sorted({*spread_sample(stated, most), *told})]
    is_known = is_known_language(said_by_people)
    return ParsedEpisode(
        sentences=sentences,
        headings=[each.text for each in spoken if each.is_heading],
        words=word_count(said_by_people),
        summary_words=summary_budget(sentences) if is_known else round(POLICY.unknown_language * POLICY.summary_words),
        is_known=is_known,
        uses_tools=is_work,
        is_asked=any((each.speaker or "").casefold() in ASKING for each in own),
        explained=frozenset() if is_work else explained_turns(spoken),
        pasted=frozenset() if is_work else long_turns([each for each in spoken if is_asking(each)]),
        mends=mendings(own),
    )


def split_matters(sentence: Sentence) -> list[Sentence]:
    """Return a sentence, or one for each matter of what a user tells an assistant in one breath."""
    if not is_asking(sentence) or sentence.is_heading:
        return [sentence]
    first, *others = matters_of(sentence.text)
    return [replace(sentence, text=text) for text in (first, *(each[:1].upper() + each[1:] for each in others))]


def told_sentences(sentences: Sequence[Sentence], *, is_work: bool) -> list[int]:
    """Return the indexes of a user's rules and, in an agent's session, of what was found: they are always read."""
    rules = [place for place, each in enumerate(sentences) if is_standing(each)][: POLICY.most_told]
    starts = [place - bool(place and LEANING.match(each.text)) for place, each in enumerate(sentences)]
    found = [
        place
        for place, start in enumerate(starts)
        if is_work and is_finding(Point((place,), tuple(sentences[start : place + 1])))
    ]
    spread = spread_sample([sentences[place] for place in found], max(1, POLICY.most_told - len(rules)))
    return [*rules, *(place for each in spread for place in (starts[found[each]], found[each]))]


def make_draft(episode: EndedEpisode, spoken: ParsedEpisode, vectors: Vectors) -> Draft:
    """Return the draft of a parsed episode; `vectors` has a unit row for each sentence."""
    sentences = spoken.sentences
    saying = sentence_scores(sentences, vectors) * summary_candidates(sentences)
    ranked: list[int] = np.argsort(-saying, kind="stable").tolist()
    lessons = [lesson for lesson in episode.lessons if not holds_credential(lesson)]
    is_failure = episode.outcome == "failure"
    found_cautions = find_cautions(lessons, [sentences[i] for i in ranked]) if is_failure else []
    return Draft(
        **vars(draft_levels(episode, spoken, vectors)),
        facts=draft_facts(spoken, vectors),
        censors=tuple(CensorDraft(*found) for found in found_cautions),
        writer=OfflineWriter.name if spoken.is_known else f"{OfflineWriter.name}, its language not known",
        prompt_version=OfflineWriter.prompt_version,
    )


def draft_facts(spoken: ParsedEpisode, vectors: Vectors) -> tuple[FactDraft, ...]:
    """Return the points worth keeping as facts: two and one for each 40 words, up to 12; of a chat four, 12 and 24."""
    points, rows = points_and_rows(spoken.sentences, vectors, within=finding_within if spoken.uses_tools else None)
    worths = score_points(points, rows, len(spoken.sentences))
    for place, each in enumerate(points):
        if not may_become_fact(each, spoken) or is_mended(each, spoken.mends):
            worths[place] = -np.inf
        elif is_weighed(each, spoken):
            worths[place] = POLICY.least_worth + keeping_worth(each) - POLICY.least_keeping
    is_chat = spoken.is_asked and not spoken.uses_tools
    first, every, most = (
        (POLICY.first_told_facts, POLICY.words_a_told_fact, POLICY.most_told_facts)
        if is_chat
        else (POLICY.first_facts, POLICY.words_a_fact, POLICY.most_facts)
    )
    most = min(most, first + spoken.words // every)
    least = POLICY.least_told_worth if is_chat else POLICY.least_worth
    kept = [points[i] for i in select_facts(points, rows, worths, most=most, least=least)]
    return tuple(
        FactDraft(
            standalone_text(each),
            subject_of(each),
            category_of(each, is_chat=is_chat),
            each.text,
            said_with(each, points) if is_chat else None,
        )
        for each in kept
    )


def said_with(point: Point, points: Sequence[Point]) -> str | None:
    """Return the question that a user answers and what they tell in that turn, a line for each; None where that is all.

    In the words of the facts, by which an erased one is found here too.
    """
    told = [standalone_text(each) for each in points if each.sentences[0].turn == point.sentences[0].turn]
    asked = [] if point.question is None or is_joined(point) else [point.question.text]
    return "\n".join([*asked, *told]) if is_asking(point.sentences[0]) and len(asked + told) > 1 else None


def may_become_fact(point: Point, spoken: ParsedEpisode) -> bool:
    """Tell whether a point is worth keeping or from a person, rather than a long explanation or a request."""
    if is_decided(point.text):
        return True
    if point.sentences[0].turn in spoken.explained:
        text = straighten_apostrophes(point.text)
        is_own = point.sentences[0].turn not in spoken.pasted
        is_told = tells_of_life(text) or (is_own and (names_inside(text) or is_joined(point)))
        return is_asking(point.sentences[0]) and bool(is_told)
    # What an assistant says in a chat is advice, examples, drafts of letters.
    is_advice = not spoken.uses_tools and spoken.is_asked and (point.speaker or "").casefold() in ASSISTANTS
    return not is_advice or point.label in LASTING_LABELS


def is_weighed(point: Point, spoken: ParsedEpisode) -> bool:
    """Tell whether a point is said in a session with tools, where little is worth keeping, by a user or to one."""
    speaker = (point.speaker or "").casefold()
    is_role = speaker in ASSISTANTS | ASKING or spoken.is_asked
    return spoken.uses_tools and bool(speaker) and is_role and not is_decided(point.text)


def draft_levels(episode: EndedEpisode, spoken: ParsedEpisode, vectors: Vectors) -> DraftLevels:
    """Return title, summary, line and index word of a parsed episode; `vectors` has a unit row for each sentence."""
    sentences, weights = spoken.sentences, summary_candidates(spoken.sentences)
    chatter = chatter_of(spoken)
    chosen = summary_of(sentences, vectors, words=spoken.summary_words, uses_tools=spoken.uses_tools, chatter=chatter)
    saying = sentence_scores(sentences, vectors) * weights
    ranked = [sentences[i] for i in sorted(chosen, key=lambda i: -saying[i])]
    headings = [each for each in spoken.headings if not find_date(each)]
    asked = [sentences[place] for place in request_place(sentences)]
    named = [each for each in asked if spoken.uses_tools or is_question(each) or REQUEST.match(each.text)]
    title = (episode.title or "").strip() or title_of([*named, *ranked], headings=headings) or UNTITLED
    telling = [each for each in ranked if len(content_words(each.text)) >= POLICY.least_told] or ranked
    is_role = bool(telling) and (telling[0].speaker or "").casefold() in ASKING | ASSISTANTS
    line = summary_text(telling[:1]) if is_role else with_speaker(telling[0]) if telling else title
    return DraftLevels(
        title=title,
        summary=summary_text([sentences[i] for i in chosen], is_chat=spoken.is_asked and not spoken.uses_tools),
        compressed=one_line(line),
        index_word=index_word(title),
    )


def chatter_of(spoken: ParsedEpisode) -> frozenset[int]:
    """Return the indexes of what an assistant says in a chat mostly of the user that names little: "A wise man."."""
    told = total_words([each for each in spoken.sentences if is_asking(each)])
    if spoken.uses_tools or told < POLICY.told_share * total_words(spoken.sentences):
        return frozenset()
    said = [
        (place, each.text)
        for place, each in enumerate(spoken.sentences)
        if (each.speaker or "").casefold() in ASSISTANTS and each.turn not in spoken.explained
    ]
    return frozenset(
        place for place, text in said if len(content_words(text)) < POLICY.least_told and not is_named(text)
    )


def request_place(sentences: Sequence[Sentence]) -> list[int]:
    """Return the index of the first request of a user to an assistant, in a list that is empty without one."""
    return [
        place
        for place, each in enumerate(sentences)
        if (each.speaker or "").casefold() == REQUESTING and word_count(each.text) >= LEAST_REQUEST
    ][:1]


def points_and_rows(
    sentences: Sequence[Sentence], vectors: Vectors, within: Callable[[Point, Sequence[Sentence]], Point] | None = None
) -> tuple[list[Point], Vectors]:
    """Return the points of a transcript, or what `within` takes of each, and their unit vectors: means of sentences."""
    points = [within(each, sentences) if within else each for each in points_of(sentences)]
    return points, unit_rows(np.array([vectors[list(each.places)].mean(axis=0) for each in points] or vectors[:0]))


def summary_of(
    sentences: Sequence[Sentence],
    vectors: Vectors,
    *,
    words: int,
    uses_tools: bool = False,
    chatter: Set[int] = frozenset(),
) -> list[int]:
    """Return the indexes of the sentences of a summary of at most `words` words, in order.

    The best sentence that states a cause has a seat in it. In a long session of an agent that uses tools so have the
    first request and what was found; of the rest the agent's plain reports are taken, and no steps. Of another long
    talk no sentence is taken that says little: "Works for me." None of `chatter` is ever taken.
    """
    is_short = words >= POLICY.telling_from_share * total_words(sentences)
    bearing = summary_candidates(sentences)
    chatter = chatter if is_short else frozenset()  # of a longer talk nothing is taken that says so little
    bearing[list(chatter)] = False
    points, rows = points_and_rows(sentences, vectors)
    telling = outcome_weights(points, rows, len(sentences))
    seats = best_outcomes(sentences, telling * bearing)
    if uses_tools and not is_short:
        bearing &= np.array([is_report(each) for each in sentences])
        asked = request_place(sentences)
        bearing[asked] = True
        seats = [*asked, *(place for point in points if is_finding(point) for place in point.places)]
    elif not is_short:
        bearing &= np.array([len(content_words(each.text)) >= POLICY.least_told for each in sentences])
    telling[seats] *= POLICY.seat
    return summarise(
        sentences,
        vectors,
        words=words,
        bearing=bearing,
        asked=answered_questions(sentences),
        telling=telling if is_short or uses_tools else None,
    )


def summary_budget(sentences: Sequence[Sentence]) -> int:
    """Return the number of words a summary may have: 148; for small talk what its points hold, or 0.4 of it."""
    if len({each.speaker for each in sentences}) <= 1:  # nobody talks
        return POLICY.summary_words
    held = sum(word_count(each.text) for each in points_of(sentences) if has_content(each))
    if held < POLICY.small_talk_share * total_words(sentences):
        short = max(POLICY.least_summary_words, held, round(POLICY.small_talk_summary * total_words(sentences)))
        return min(POLICY.summary_words, short)
    return POLICY.summary_words


def total_words(sentences: Sequence[Sentence]) -> int:
    """Return the number of words in all sentences."""
    return sum(word_count(each.text) for each in sentences)
