"""Shorter than a summary: a title, one line, one word; all of them cut from the text itself."""
# ruff: noqa: RUF001 — dashes and typographic quotes are what is cut off

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from nous_online.core.policy import WritingPolicy
from nous_online.language.pairs.lexicon import FUNCTION_WORDS, NEGATORS
from nous_online.language.writing.lexrank import content_words, word_count
from nous_online.language.writing.phrases import OWN
from nous_online.language.writing.sentences import Sentence, split, straight

POLICY = WritingPolicy()
LONGEST_LINE = 200
"""Characters of the one line, for words that have no spaces between them."""
LONGEST_TITLE = 100
"""Characters of a title, for words that have no spaces between them."""
LONGEST_INDEX = 50
"""Characters of the index word (the width the store gives it)."""
INDEX_WORDS = 4
AT_A_JOINT, CUT_SHORT = 0.8, 0.5
"""Worth of a title that stops before "because" or "to", and where the room ends, beside one that ends its clause."""

OPENERS = frozenset(
    """so well and but or also then now okay ok oh yeah yes no actually basically anyway um uh hmm right alright
    however therefore thus hence besides moreover furthermore finally firstly secondly today hey hi hello wow sure
    cool great""".split()  # noqa: SIM905 — words read best so
)
"""Words a sentence may open with that say nothing of what it is about."""
_JOINTS = frozenset(
    """because which that so but and when where while who since after before although though if unless until whereas
    or for to with from by about into""".split()  # noqa: SIM905
)
_WORD = re.compile(r"\w+")
DANGLING = FUNCTION_WORDS | NEGATORS
EDGE = " \t.,;:!?…。！？、-–—*_`\"'“”‘’()[]{}<>|/\\#"


def title_of(ranked: Sequence[Sentence], *, headings: Sequence[str] = ()) -> str:
    """Return 5 to 10 words that name an episode, from its first heading or the first sentence that has them.

    A heading of fewer words stands before the sentence. Fewer words only where the text has no more; an empty text
    where there is none.
    """
    least, most = POLICY.title_words
    heading = bare(headings[0]) if headings else ""
    if least <= word_count(heading) <= most:
        return capitalised(heading)
    prefix = f"{heading}: " if 1 < word_count(heading) < least else ""
    counts = Counter(word for sentence in ranked for word in content_words(sentence.text))
    for sentence in ranked:
        if word_count(title := best_stretch(sentence, counts, prefix=prefix)) >= least:
            return title
    joined = "; ".join(dict.fromkeys(filter(None, (heading, *(bare(sentence.text) for sentence in ranked)))))
    return capitalised(balanced(bare(first_words(joined, most))))


def best_stretch(sentence: Sentence, counts: Counter[str], *, prefix: str = "") -> str:
    """Return the stretch of 5 to 10 words, between joints of the sentence, whose words are commonest in the text.

    "Ana: I moved to Lisbon in May": who says "I" is named, within the ten words.
    """
    least, most = POLICY.title_words
    words = opened(sentence.text.split())
    is_own = bool(OWN.search(straight(sentence.text)))
    name = f"{sentence.speaker}: " if sentence.speaker and is_own and not prefix else prefix
    room = most - word_count(name)
    values = {
        " ".join(stretch): weight * sum(counts[word] for word in content_words(" ".join(stretch)))
        for start, end, weight in spans(words, room)
        if word_count(" ".join(stretch := trimmed(words[start:end]))) >= least - word_count(name)
    }
    stretch = max(values, key=lambda each: (values[each], len(each)), default=first_words(" ".join(words), room))
    return capitalised(name + balanced(bare(stretch)))


def opened(words: Sequence[str]) -> list[str]:
    """Return words without the openers before the first one that counts."""
    place = next((i for i, word in enumerate(words) if word.casefold().strip(EDGE) not in OPENERS), 0)
    return list(words[place:])


def spans(words: Sequence[str], most: int) -> Iterator[tuple[int, int, float]]:
    """Yield stretches of at most `most` words from the start of a clause, each with what its ending is worth.

    1 where the clause ends, less before a joint inside it, least where the room ends.
    """
    stops = [i for i in range(1, len(words)) if words[i - 1].endswith((",", ";", ":", ".", "—", "–", ")"))]
    for start in [0, *(i for i in stops if words[i].casefold() not in FUNCTION_WORDS)]:
        last = min(start + most, len(words))
        for end in range(start + 1, last + 1):
            if end == len(words) or end in stops:
                yield start, end, 1.0
            elif words[end].casefold() in _JOINTS:
                yield start, end, AT_A_JOINT
        yield start, last, CUT_SHORT


def trimmed(words: Sequence[str]) -> list[str]:
    """Return words without the small function words that dangle at the end; "May" is a month."""
    kept = list(words)
    while kept and kept[-1][:1].islower() and kept[-1].strip(EDGE) in DANGLING:
        kept.pop()
    return kept


def first_words(text: str, most: int) -> str:
    """Return the beginning of a text: at most `most` words, or twice as many characters of a script without spaces."""
    kept: list[str] = []
    for word in text.split():
        left = most - word_count(" ".join(kept))
        if left <= 0:
            break
        kept.append(word if word_count(word) <= left else word[: 2 * left])
    return " ".join(kept)[:LONGEST_LINE]


def bare(text: str) -> str:
    """Return a text without the punctuation and Markdown around it."""
    return " ".join(text.replace("**", "").replace("`", "").split()).strip(EDGE)


def balanced(text: str) -> str:
    """Return at most 100 characters of a text, without quotation marks that lost their other half."""
    whole = text.replace('"', "") if text.count('"') % 2 else text
    return whole[:LONGEST_TITLE].rstrip(EDGE)


def capitalised(text: str) -> str:
    """Return a text with a capital first letter."""
    return text[:1].upper() + text[1:]


def condensed(text: str) -> str:
    """Return a text as one line of at most 24 words: all of it, its first sentence, or that cut short."""
    line = " ".join(text.split())
    for whole in (line, next(split(line), "")):
        if word_count(whole) <= POLICY.compressed_words and len(whole) <= LONGEST_LINE:
            return whole
    cut = trimmed(first_words(next(split(line)), POLICY.compressed_words - 1).split())
    return " ".join(cut).rstrip(EDGE)[: LONGEST_LINE - 1] + "…"


def index_word(title: str) -> str:
    """Return the words a title is about as one slug: "Moved billing to Postgres" gives "moved-billing-postgres"."""
    about = content_words(title)
    said = _WORD.findall(title.casefold())
    words = [word for word in said if word in about]
    slug = "-".join(list(dict.fromkeys(words or said))[:INDEX_WORDS])
    return slug[:LONGEST_INDEX].strip("-_") or "episode"
