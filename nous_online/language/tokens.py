"""How many tokens a text has, counted in process: for Claude by what was measured of its tokenizer, for OpenAI exactly.

Claude's tokenizer is not published. Which pieces cost one token since Opus 4.7 has been measured through the API's own
counting (ctok, MIT License); a text costs the fewest pieces it can be put together from. OpenAI publishes o200k. Both
tables are in `nous_online/language/model/`; `training/trees/token_tables.py` makes them.
"""

from __future__ import annotations

import json
import lzma
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING

from nous_online.core.patterns import regex
from nous_online.core.settings import settings

if TYPE_CHECKING:
    from tokenizers import Tokenizer

OPEN, CLOSE, CAPITAL = "\ufdd0", "\ufdd1", "\ufdd3"
"""Where a word opens and closes, and that it begins with a capital: parts of the pieces in the table."""
MARKERS = regex("[\ufdd0-\ufdd4]")
NO_MARKER = "\ufdd9"
STRIPPED = regex("[\x01-\x08\x0b-\x1f\x7f-\x9f\ue000-\uf8ff]")  # characters that cost nothing
SPACES = regex("[\x00\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f]")  # characters that are read as a space
SEAM = "\ufdd2"  # the one space between two things that close and open: it costs nothing
ENDINGS = ("'s", "'t", "'d", "'m", "'ll", "'re", "'ve")  # short endings, which their apostrophe opens
LINE_START = regex("\n(?<=[A-Za-z]\n)")  # it begins with the line end, which is searched fastest
PLAIN = regex(r"[\t\n -&(-~]*")
"""Text that needs no normalising. An apostrophe may belong to the word before it or to the one after it."""
WORD = regex("([A-Za-z]+)")
MOST_KEPT, MOST_STRETCHES = 8_192, 100_000
"""Counts that are kept, of texts and of words: lines come back in every context."""
SUFFIX = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
O200K = "|".join(
    (
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+" + SUFFIX,
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*" + SUFFIX,
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    )
)
"""What o200k splits a text into before it merges, as tiktoken publishes it."""


@dataclass(frozen=True)
class Pieces:
    """What a token can be, and the expressions that find where words and punctuation begin and end."""

    known: frozenset[str]
    beginnings: frozenset[str]
    """What some piece begins with: where a text goes on otherwise, no longer piece begins there."""
    prefixes: frozenset[bytes]
    """Bytes that begin a character and cost one token together; any other byte of a character costs one."""
    after_space: re.Pattern[str]
    before_space: re.Pattern[str]
    seam: re.Pattern[str]
    stretch: re.Pattern[str]
    """A word, a short ending with its apostrophe, or what stands between words."""
    word: re.Pattern[str]


def tokens_of(text: str) -> int:
    """Return how many tokens a text has for the tokenizer that `NOUS_TOKENIZER` names.

    Lines put together never have more than the sum of their parts. docs/context.md has the measured error.
    """
    return openai_tokens(text) if settings().tokenizer == "openai" else claude_tokens(text)


def counting() -> str:
    """Return how `tokens_of` counts, in words."""
    return "OpenAI o200k" if settings().tokenizer == "openai" else "Claude since Opus 4.7, reconstructed"


def claude_tokens(text: str) -> int:
    """Return how many tokens a text has for a Claude since Opus 4.7, by the reconstruction."""
    # No piece reaches from a letter into the next line. Lines come back: of a tier, of the whole, of other contexts.
    first, *others = LINE_START.split(text)
    return claude_tokens_of_part(first) + sum(claude_tokens_of_part(f"\n{each}") for each in others)


def claude_tokens_of_part(text: str) -> int:
    """Return how many tokens a text has that is short, or has no line that begins after a letter."""
    first = WORD.search(text) if PLAIN.fullmatch(text) else None
    if first is None:
        return tokens_of_stretches(text)
    # Words and what stands between them come back in other texts, and nothing else tells what either costs.
    return between_cost(text[: first.start()], is_after_word=False) + plain_tokens(text[first.start() :])


@lru_cache(maxsize=MOST_KEPT)
def plain_tokens(text: str) -> int:
    """Return the tokens of a plain text from its first word on: a line comes back behind a bullet and a line end."""
    *rest, end = WORD.split(text)[1:]
    return (
        sum(map(stretch_cost, rest[::2])) + sum(map(between_cost, rest[1::2])) + between_cost(end, is_before_word=False)
    )


@lru_cache(maxsize=MOST_STRETCHES)
def between_cost(text: str, *, is_after_word: bool = True, is_before_word: bool = True) -> int:
    """Return the tokens of plain text without letters that stands beside words; which words makes no difference."""
    words = is_after_word + is_before_word
    return tokens_of_stretches("a" * is_after_word + text + "a" * is_before_word) - words * stretch_cost("a")


@lru_cache(maxsize=MOST_KEPT)
def tokens_of_stretches(text: str) -> int:
    """Return how many tokens a text has, stretch by stretch."""
    if not text.isascii():
        text = unicodedata.normalize("NFC", well_formed(text))
        text = MARKERS.sub(NO_MARKER, SPACES.sub(" ", text))
    text = STRIPPED.sub("", text.replace("\x00", " "))
    pieces = pieces_of_claude()
    marked = pieces.before_space.sub(f"{CLOSE} ", pieces.after_space.sub(f" {OPEN}", text))
    return sum(map(stretch_cost, pieces.stretch.findall(pieces.seam.sub(SEAM, marked))))


@lru_cache(maxsize=MOST_KEPT)
def openai_tokens(text: str) -> int:
    """Return how many tokens a text has for OpenAI's models since GPT-4o."""
    return len(o200k().encode(well_formed(text), add_special_tokens=False).ids)


def well_formed(text: str) -> str:
    """Return a text without halves of surrogate pairs, which no tokenizer is ever sent."""
    return text.encode("utf-8", "replace").decode()


@lru_cache(maxsize=MOST_STRETCHES)
def stretch_cost(stretch: str) -> int:
    """Return the tokens of a word, of a short ending, or of what stands between words: pieces never reach across."""
    pieces = pieces_of_claude()
    if pieces.word.match(stretch):
        stretch = marked_word(stretch)
    elif stretch in ENDINGS:
        stretch += CLOSE
    else:
        stretch = stretch.replace(SEAM, "")
    return fewest(stretch, pieces, character_cost)


def marked_word(word: str) -> str:
    """Return a word with its marks: where it opens and closes, and whether it begins with its only capital."""
    lowered = word.lower()
    if word[0] != lowered[0] and word[1:] == lowered[1:] and len(word) == len(lowered):
        return f"{CAPITAL}{OPEN}{lowered}{CLOSE}"
    return f"{OPEN}{word}{CLOSE}"


@cache
def character_cost(character: str) -> int:
    """Return the tokens of a character that is no piece: as few as its bytes can be put together from."""
    encoded = character.encode()
    prefixes = pieces_of_claude().prefixes
    return min(len(encoded) - end + 1 for end in range(1, len(encoded) + 1) if end == 1 or encoded[:end] in prefixes)


def fewest(text: str, pieces: Pieces, of_character: Callable[[str], int]) -> int:
    """Return the fewest pieces a text can be put together from, given what each other character costs."""
    known, beginnings = pieces.known, pieces.beginnings
    costs = [0] * (len(text) + 1)  # of the text up to each place; 0 where no way there is known yet
    for start in range(len(text)):
        cost = costs[start] + (1 if text[start] in known else of_character(text[start]))
        if not costs[start + 1] or cost < costs[start + 1]:
            costs[start + 1] = cost
        cost, end = costs[start] + 1, start + 1
        while text[start:end] in beginnings and end < len(text):
            end += 1
            if text[start:end] in known and (not costs[end] or cost < costs[end]):
                costs[end] = cost
    return costs[-1]


@cache
def pieces_of_claude() -> Pieces:
    """Return the table, read once."""
    table = json.loads(files("nous_online.language").joinpath("model/claude_tokens.json").read_text("utf-8"))
    word, punctuation = f"[{table['words']}]", f"[{table['punctuation']}]"
    ending = f"(?<!{punctuation})(?:{'|'.join(ENDINGS)})(?!{word})"
    return Pieces(
        known=frozenset(table["pieces"]),
        beginnings=frozenset(piece[:end] for piece in table["pieces"] for end in range(1, len(piece))),
        prefixes=frozenset(map(bytes.fromhex, table["prefixes"])),
        # Each begins with the space, for which a text is searched ten times as fast as for what stands around one.
        after_space=regex(f" (?!'{word})(?={punctuation})"),
        before_space=regex(f" (?<={punctuation} )(?! )"),
        seam=regex(f" (?<=[{table['words']}{CLOSE}] )(?=[{table['words']}{OPEN}])"),
        stretch=regex(rf"{ending}|{word}+|(?:(?!{ending})[^{table['words']}])+"),
        word=regex(word),
    )


@cache
def o200k() -> Tokenizer:
    """Return OpenAI's tokenizer, made from the pairs its tokens were merged from; takes a second, once."""
    import numpy as np
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers

    planes = np.frombuffer(
        lzma.decompress(files("nous_online.language").joinpath("model/o200k_pairs.xz").read_bytes()), np.uint8
    )
    high, middle, low = planes.reshape(2, 3, -1).astype(np.uint32).swapaxes(0, 1)
    pairs: list[list[int]] = (high << 16 | middle << 8 | low).T.tolist()
    seen = [*range(33, 127), *range(161, 173), *range(174, 256)]
    # The bytes come in the order of the table: first those that are seen, which stand for themselves.
    tokens = [*map(chr, seen), *(chr(256 + place) for place in range(256 - len(seen)))]
    merges: list[tuple[str, str]] = []
    for one, other in pairs:
        merges.append((tokens[one], tokens[other]))
        tokens.append(tokens[one] + tokens[other])
    tokenizer = Tokenizer(models.BPE(vocab={token: place for place, token in enumerate(tokens)}, merges=merges))
    split = pre_tokenizers.Split(Regex(O200K), "isolated")
    to_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, to_bytes])
    return tokenizer
