"""Extractive summaries by LexRank and word coverage, and the shorter forms: title, line and index word."""
# ruff: noqa: RUF001 — dashes and typographic quotes are what is cut off

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from nous_online.core.patterns import regex
from nous_online.core.policy import WritingPolicy
from nous_online.language.lexicon import (
    ADDRESSING,
    FUNCTION_WORDS,
    LEAD_IN,
    NEGATORS,
    OWN,
    SMALL_WORDS,
    UNSPACED,
    VERBS,
    WE,
    word_list,
)
from nous_online.language.minilm import Vectors
from nous_online.language.pairs.reading import read
from nous_online.language.writing.dates import with_full_dates
from nous_online.language.writing.sentences import (
    CLOSING,
    ENDINGS,
    KNOWN,
    Sentence,
    split_sentences,
    straighten_apostrophes,
    with_speaker,
)

Weights = NDArray[np.float64]

POLICY = WritingPolicy()
ROUNDS = 60  # power iterations; at damping 0.85 the error is below 0.85^60 = 0.00006
WORDLESS = 1e-3  # in one more column of every row, so that a sentence without content words has a direction too
_RUN = r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]"
_PAIR = regex(rf"(?![\u3041-\u309f]{{2}})(?=({_RUN}{_RUN}))")
"""Each two neighbouring characters of a script without spaces, but for two of the Japanese one for endings."""
_WORD = regex(r"\w+")
_WORD_WITH_MARKS = regex(rf"(?:(?!{_RUN})[\w\u0300-\u036f\u064b-\u0652\u0900-\u0963\u0966-\u0dff])+")
"""Letters and digits, with the signs for vowels that Hindi or Tamil write beside them."""
ASSISTANTS = frozenset({"assistant", "agent", "ai", "bot", "model"})
ASKING = frozenset({"user", "human"})
FRAGMENT = 8  # words; a shorter text without a verb is a note, and gets the speaker's name
CODE_NAME = regex(
    r"[a-z][\w-]{0,60}(?:[/_.]\w|[A-Z])"
    rf"|[a-z][a-z\d]{{0,30}}(?:-[a-z\d]{{1,30}}){{1,4}}(?=[,.:;]|\Z|\s(?:{VERBS.pattern}))"
)
"""A path or a name in code, which is not capitalised: `src/app.py` is another file than `Src/app.py`.

So is a word with a hyphen that no noun follows: "dnd-kit, please"; "two-factor login" opens with a capital.
"""


def word_count(text: str) -> int:
    """Return the number of words in a text; two characters of a script without spaces count as one word."""
    return len(text.split()) + len(UNSPACED.findall(text)) // 2


def content_words(text: str) -> frozenset[str]:
    """Return the content words of a sentence in lower case; of a script without spaces, pairs of characters."""
    low = text.casefold()
    words = _WORD_WITH_MARKS.findall(low)
    said = (word for word in words if word not in SAYING_NOTHING and (len(word) > 1 or word.isdigit()))
    return frozenset([*said, *_PAIR.findall(low)])


def word_vectors(sentences: Sequence[Sentence]) -> Vectors:
    """Return a unit row for each sentence: its content words weighted by inverse sentence frequency.

    The vectors of the LexRank paper (Erkan and Radev 2004, section 3.1) with term counts of one.
    """
    holds, counts = incidence([replace(sentence, speaker=None) for sentence in sentences])
    weights = holds * np.log1p(len(sentences) / np.maximum(counts, 1))
    named = np.hstack([weights, np.full((len(sentences), 1), WORDLESS)])
    return (named / np.linalg.norm(named, axis=1, keepdims=True)).astype(np.float32)


def lexrank(vectors: Vectors, *, damping: float = POLICY.damping) -> Weights:
    """Return the centrality of each row of unit `vectors`, 1 on average: continuous LexRank.

    PageRank over the positive cosines, each row scaled to a sum of one (Erkan and Radev 2004, section 3.3).
    """
    count = len(vectors)
    links = np.clip(vectors.astype(np.float64) @ vectors.T, 0, None) + np.eye(count) * 1e-9
    links /= links.sum(axis=1, keepdims=True)
    rank = np.full(count, 1.0)
    for _ in range(ROUNDS):
        rank = (1 - damping) + damping * (rank @ links)
    return rank


def summarise(
    sentences: Sequence[Sentence],
    vectors: Vectors,
    *,
    words: int,
    bearing: NDArray[np.bool_] | None = None,
    asked: Mapping[int, int] | None = None,
    telling: Weights | None = None,
) -> list[int]:
    """Return the indexes, in order, of the sentences of a summary of at most `words` words, names of speakers aside.

    Greedy: each step takes the sentence with the highest gain, the new words it covers (each weighted by the number of
    sentences that have it) times its prior, reduced by its similarity to a chosen sentence. `bearing` marks the
    sentences that may be chosen. `telling` multiplies priors by how much a sentence says of decisions, causes, fixes;
    without it early sentences weigh more. `asked` names the question that an answer brings along. Where no sentence
    fits, the best one is returned alone. `vectors` has a unit row for each sentence, without its speaker.
    """
    if not sentences:
        return []
    weight = (
        priors(sentences, vectors)
        if telling is None
        else telling * priors(sentences, vectors, earliness=0.0, length_power=POLICY.telling_length_power)
    )
    weight *= 1.0 if bearing is None else bearing
    holds, unsaid = incidence(sentences)
    closest = np.zeros(len(sentences))
    is_open = np.ones(len(sentences), dtype=bool)
    chosen: set[int] = set()
    while (gain := (holds @ unsaid) * weight * (1 - POLICY.redundancy * closest) * is_open).any():
        best = int(np.argmax(gain))
        is_open[best] = False
        with_best = chosen | {best, (asked or {}).get(best, best)}
        if word_count(summary_text([sentences[i] for i in sorted(with_best)])) <= words:
            chosen = with_best
            unsaid = unsaid * (1 - holds[best])
            closest = np.maximum(closest, np.clip(vectors @ vectors[best], 0, 1))
    return sorted(chosen) or [int(np.argmax(sentence_scores(sentences, vectors)))]


def summary_text(sentences: Sequence[Sentence], *, is_chat: bool = False) -> str:
    """Return sentences as a text to be read: without openers, each with its full stop, and named where that is needed.

    A name stands once in a turn: before the first sentence that says "I", "we" or "you", or a mere note that opens it.
    `is_chat`: each of a user and an assistant is named where the other spoke before.
    """
    told: list[str] = []
    named: int | None = None
    for sentence, before in zip(sentences, [None, *sentences], strict=False):
        text, speaker = plain_opening(sentence.text), sentence.speaker or ""
        text = text if text.rstrip(CLOSING).endswith(ENDINGS) else f"{text.rstrip(', ;-–—')}."
        is_first = before is None or before.turn != sentence.turn
        is_asked = is_first and (before is None or before.speaker != speaker) if is_chat else sentence.turn != named
        if speaker and is_asked and (is_chat or needs_name(text, speaker, may_be_note=is_first)):
            text, named = f"{speaker}: {text}", sentence.turn
        told.append(with_full_dates(text, sentence.day))
    return " ".join(told)


BOLD = regex(r"\*\*(?=\S)([^*]{1,300})(?<=\S)\*\*")


def plain_opening(text: str) -> str:
    """Return a text without openers such as "so" or "well", with a capital letter, but a name in code as it is.

    Nor with the marks of bold type: a line cut short would keep one of the two.
    """
    plain = LEAD_IN.sub("", BOLD.sub(r"\1", " ".join(text.split()))).lstrip(" ,;") or text
    return capitalised(plain)


def needs_name(text: str, speaker: str, *, may_be_note: bool = True) -> bool:
    """Tell whether a text can't be read without its speaker: it says "I", "we" or "you", or is a short note.

    An assistant's memory is its own: there "I" is itself, and the user is whoever it speaks to.
    """
    if speaker.casefold() in ASSISTANTS:
        return False
    straight = straighten_apostrophes(text)
    is_addressed = ADDRESSING.search(straight) if speaker.casefold() not in ASKING else WE.match(straight)
    if OWN.search(straight) or is_addressed:
        return True
    return may_be_note and is_note(text)


def is_note(text: str) -> bool:
    """Tell whether a text is a mere note: short and without a verb; a longer one has a verb that the list lacks."""
    return word_count(text) <= FRAGMENT and not VERBS.search(straighten_apostrophes(text))


def sentence_scores(sentences: Sequence[Sentence], vectors: Vectors) -> Weights:
    """Return the score of each sentence by itself: its words, weighted by sentence frequency, times its prior."""
    holds, counts = incidence(sentences)
    return (holds @ counts) * priors(sentences, vectors)


def priors(
    sentences: Sequence[Sentence],
    vectors: Vectors,
    *,
    earliness: float = POLICY.earliness,
    length_power: float = POLICY.length_power,
) -> Weights:
    """Return the prior of each sentence: LexRank times earliness and a bonus for names or figures, over its length."""
    place = np.arange(len(sentences)) / max(1, len(sentences) - 1)
    readings = [read(sentence.text) for sentence in sentences]
    checkable = [bool(each.names or each.numbers or each.dates or each.times or each.identifiers) for each in readings]
    bonus = np.where(checkable, POLICY.checkable_bonus, 1.0)
    lengths = np.array([max(1, word_count(with_speaker(sentence))) for sentence in sentences])
    return lexrank(vectors) * np.exp(-earliness * place) * bonus / lengths**length_power


def incidence(sentences: Sequence[Sentence]) -> tuple[Weights, Weights]:
    """Return the incidence matrix of sentences and content words, and the number of sentences with each word."""
    spoken = [content_words(with_speaker(sentence)) for sentence in sentences]
    column = {word: place for place, word in enumerate(sorted(frozenset[str]().union(*spoken)))}
    holds = np.zeros((len(sentences), len(column)))
    for row, words in enumerate(spoken):
        holds[row, [column[word] for word in words]] = 1.0
    return holds, holds.sum(axis=0)


def spread_sample(sentences: Sequence[Sentence], most: int) -> list[int]:
    """Return at most `most` indexes, in order: of equal stretches of the text the sentence with the commonest words.

    It needs no vectors, since it chooses which sentences of a very long text are embedded.
    """
    if len(sentences) <= most:
        return list(range(len(sentences)))
    spoken = [content_words(sentence.text) for sentence in sentences]
    counts = Counter(word for words in spoken for word in words)
    worth = [
        sum(counts[word] for word in words) / math.sqrt(max(1, word_count(sentence.text)))
        for words, sentence in zip(spoken, sentences, strict=True)
    ]
    edges = [round(place * len(sentences) / most) for place in range(most + 1)]
    return [max(range(start, end), key=worth.__getitem__) for start, end in pairwise(edges)]


LONGEST_LINE = 200  # characters of the one line, for words that have no spaces between them
LONGEST_TITLE = 100  # characters of a title, for words that have no spaces between them
LONGEST_INDEX = 50  # characters of the index word (the width the store gives it)
INDEX_WORDS = 4
AT_A_JOINT, CUT_SHORT = 0.8, 0.5
"""Weight of a title that stops before "because" or "to", and of one that is cut off, beside 1 for a whole clause."""

CHATTER, OPENERS, JOINTS = map(word_list, ("chatter", "openers", "joints"))
SAYING_NOTHING = FUNCTION_WORDS | CHATTER | ((SMALL_WORDS | KNOWN) - word_list("english_too"))
DANGLING = FUNCTION_WORDS | NEGATORS
EDGE = " \t.,;:!?…。！？、-–—*_`\"'“”‘’()[]{}<>|/\\#"


def title_of(ranked: Sequence[Sentence], *, headings: Sequence[str] = ()) -> str:
    """Return a title of 5 to 10 words, from the first heading or the best-ranked sentence that is long enough.

    A shorter heading becomes the prefix of a sentence. The title is shorter only where the text is, and may be empty.
    """
    least, most = POLICY.title_words
    heading = strip_punctuation(headings[0]) if headings else ""
    if least <= word_count(heading) <= most:
        return capitalised(heading)
    prefix = f"{heading}: " if 1 < word_count(heading) < least else ""
    counts = Counter(word for sentence in ranked for word in content_words(sentence.text))
    for sentence in ranked:
        if word_count(title := best_stretch(sentence, counts, prefix=prefix)) >= least:
            return title
    joined = "; ".join(
        dict.fromkeys(filter(None, (heading, *(strip_punctuation(sentence.text) for sentence in ranked))))
    )
    return capitalised(without_odd_quotes(strip_punctuation(first_words(joined, most))))


def best_stretch(sentence: Sentence, counts: Counter[str], *, prefix: str = "") -> str:
    """Return the stretch of 5 to 10 words in a sentence, from clause to clause, whose words are commonest in the text.

    The speaker is named where the sentence says "I": "Ana: I moved to Lisbon in May". A role is no name.
    """
    least, most = POLICY.title_words
    words = (LEAD_IN.sub("", sentence.text) or sentence.text).split()
    is_own = bool(OWN.search(straighten_apostrophes(sentence.text)))
    is_role = (sentence.speaker or "").casefold() in ASKING | ASSISTANTS
    name = f"{sentence.speaker}: " if sentence.speaker and is_own and not (prefix or is_role) else prefix
    room = most - word_count(name)
    values = {
        " ".join(stretch): weight * sum(counts[word] for word in content_words(" ".join(stretch)))
        for start, end, weight in clause_stretches(words, room)
        if word_count(" ".join(stretch := without_dangling(words[start:end]))) >= least - word_count(name)
    }
    stretch = max(values, key=lambda each: (values[each], len(each)), default=first_words(" ".join(words), room))
    return capitalised(name + without_odd_quotes(strip_punctuation(stretch)))


def without_openers(words: Sequence[str]) -> list[str]:
    """Return words without leading openers such as "so" or "well"; "no" is one before a comma alone, else it denies."""
    lower = [word.casefold() for word in words]
    place = next((i for i, word in enumerate(lower) if word.strip(EDGE) not in OPENERS or word in NEGATORS), 0)
    return list(words[place:])


def clause_stretches(words: Sequence[str], most: int) -> Iterator[tuple[int, int, float]]:
    """Yield (start, end, weight) of stretches of at most `most` words from the start of a clause.

    The weight is 1 where the clause ends, `AT_A_JOINT` before a conjunction in it, and `CUT_SHORT` at `most` words.
    """
    stops = [i for i in range(1, len(words)) if words[i - 1].endswith((",", ";", ":", ".", "—", "–", ")"))]
    for start in [0, *(i for i in stops if words[i].casefold() not in FUNCTION_WORDS)]:
        last = min(start + most, len(words))
        for end in range(start + 1, last + 1):
            if end == len(words) or end in stops:
                yield start, end, 1.0
            elif words[end].casefold() in JOINTS:
                yield start, end, AT_A_JOINT
        yield start, last, CUT_SHORT


def without_dangling(words: Sequence[str]) -> list[str]:
    """Return words without function words at the end; "May" with a capital letter is a month and stays."""
    kept = list(words)
    while kept and kept[-1][:1].islower() and kept[-1].strip(EDGE) in DANGLING:
        kept.pop()
    return kept


def first_words(text: str, most: int) -> str:
    """Return the first `most` words of a text, or twice as many characters of a script without spaces."""
    kept: list[str] = []
    for word in text.split():
        left = most - word_count(" ".join(kept))
        if left <= 0:
            break
        kept.append(word if word_count(word) <= left else word[: 2 * left])
    return " ".join(kept)[:LONGEST_LINE]


def strip_punctuation(text: str) -> str:
    """Return a text without surrounding punctuation and Markdown."""
    return " ".join(text.replace("**", "").replace("`", "").split()).strip(EDGE)


def without_odd_quotes(text: str) -> str:
    """Return at most 100 characters of a text, without quotation marks where one of a pair is missing."""
    whole = text.replace('"', "") if text.count('"') % 2 else text
    return whole[:LONGEST_TITLE].rstrip(EDGE)


def capitalised(text: str) -> str:
    """Return a text with a capital first letter, but a name in code as it is."""
    return text if CODE_NAME.match(text) else text[:1].upper() + text[1:]


def one_line(text: str) -> str:
    """Return one line of at most 24 words: the whole text, its first sentence, or the start of that sentence."""
    line = " ".join(text.split())
    for whole in (line, next(split_sentences(line), "")):
        if word_count(whole) <= POLICY.compressed_words and len(whole) <= LONGEST_LINE:
            return whole
    cut = without_dangling(first_words(next(split_sentences(line)), POLICY.compressed_words - 1).split())
    return " ".join(cut).rstrip(EDGE)[: LONGEST_LINE - 1] + "…"


def index_word(title: str) -> str:
    """Return the content words of a title as a slug: "Moved billing to Postgres" gives "moved-billing-postgres"."""
    about = content_words(title)
    all_words = _WORD.findall(title.casefold())
    words = [word for word in all_words if word in about]
    slug = "-".join(list(dict.fromkeys(words or all_words))[:INDEX_WORDS])
    return slug[:LONGEST_INDEX].strip("-_") or "episode"
