"""Sentences of a transcript, with who said them: speaker lines, Markdown, lists, code, abbreviations, any script.

Each sentence is verbatim but for its white space and the marks before it. Hostile text costs linear time.
"""
# ruff: noqa: RUF001 — typographic quotes and full-width stops are the subject

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date

from nous_online.language.writing.days import day_in

LONGEST_SENTENCE = 400
"""Characters; a run without a full stop is cut at white space, so that one sentence can't be the whole text."""
WRAPPED_FROM = 60
"""Characters; a longer line without a full stop goes on in the next, as text wrapped by an editor does."""
MOST_MARKS = 4
"""Marks in a row that open a line, as in "> - [ ] 1."."""
LEAST_TURNS, TURN_EVERY = 3, 10
"""Lines that a name opens beside roles, at least and in how many, before it is a speaker's."""
OPENING = 60
"""Characters of a line in which the date it was said on would stand."""
LONGEST_HEADER = 200
HEADER_LINES = 3
"""Lines of a text that may name its date anywhere."""
LEAST_LETTERS_SHARE = 0.7
"""Letters and spaces in prose; paths, tables, JSON and keys have fewer."""

ENDINGS = (".", "!", "?", "…", ":", "。", "！", "？")
CLOSING = "\"'”’)]*_ "
"""What may stand after the full stop of a sentence."""
ROLES = frozenset(
    """user assistant system human ai agent bot tool model customer client support operator developer moderator host
    interviewer interviewee speaker doctor patient teacher student""".split()  # noqa: SIM905 — words read best so
)
LABELS = frozenset(
    """note notes todo error errors warning info debug trace fatal result results summary decision decisions action
    actions cause fix fixed lesson lessons question answer q a example examples step steps goal goals context
    update status outcome problem issue solution plan date time subject title location ps fyi nb important
    caution tip hint expected actual observed input output traceback exception reason reasons next file usage
    options args arguments returns raises deadline owner price total number name city country version password
    secret token key url link source sources conclusion background topic agenda order commit plan""".split()  # noqa: SIM905
)
NEVER_LAST = frozenset(
    """mr mrs ms dr prof rev gen sen rep st mt vs no nos fig figs eq sec ch vol pp approx ca cf e.g i.e eg ie viz al
    dept est ext resp incl excl max min avg u.s u.k e.u u.n""".split()  # noqa: SIM905
)
SOMETIMES_LAST = frozenset(
    [
        "etc",
        "inc",
        "ltd",
        "co",
        "corp",
        "jr",
        "sr",
        "a.m",
        "p.m",
        "am",
        "pm",
        "ph.d",
        "jan",
        "feb",
        "mar",
        "apr",
        "jun",
        "jul",
        "aug",
        "sep",
        "sept",
        "oct",
        "nov",
        "dec",
    ]
)

_FENCE = re.compile(r"\s{0,8}(?:```|~~~)")
_MARKER = re.compile(r"(?:#{1,6}|[-*+•–]|\d{1,3}[.)]|\[[ xX]\]|>)(?=\s|$)")
_RULE = re.compile(r"\A[\s\-=_*~|:+#]{3,}+$")
_HEAD = re.compile(
    r"\A(?:[\[(]?(?:[^\W\d_]{2,4}\.?\s)?\d(?:[\d\-:/., ]|(?<=\d)[TZ](?![a-z])){3,30}"
    r"(?:[apAP][mM])?[\])]?\s*+(?:[-–—]\s*+)?)?(?:\*{2}|_{2})?"
    r"(?P<name>[#@]?[^\W_][\w .'’#@/&-]{0,39}?)(?:\s\([^()]{1,30}\))?"
    r"(?:,\s\d{1,2}\.?\s[^\W\d_]{3,9}(?:\s\d{4})?)?(?:\*{2}|_{2})?\s?"
    r"(?::(?:\*{2}|_{2})?(?:\s+|$)|：\s*)"
)
_BOUNDARY = re.compile(r"(?<![.!?…])[.!?…]++[\"'”’)\]*_]{0,4}+\s++|[。！？]++[」』”）]{0,2}+\s*+")
_LAST_WORD = re.compile(r"([^\W\d_](?:[^\W_]|\.(?=[^\W_])){0,15})\.[\"'”’)\]*_]{0,4}\s+$")
_DATED = re.compile(r"\d{1,4}[-./\s](?:\d{1,2}[-./]\d{2,4}\b|[^\W\d_]{3,9}[.,: ])")
_MARKUP = re.compile(r"""["']\s?[}\]]|[{\[]\s?["'{]|["']\s?:\s?["'{\[\d]|</?[a-z]+[ />]|^\s*\|""")


@dataclass(frozen=True)
class Sentence:
    """One sentence as it stands in the text; `speaker` as written before the colon, None where nobody is named.

    `turn` counts the times somebody was named before it: the sentences of one turn are said in one go. `block` counts
    the lines, entries and paragraphs before it, and `day` is the last date that opened a line, of a head or of its own.
    """

    text: str
    speaker: str | None = None
    turn: int = 0
    is_heading: bool = False
    block: int = field(default=0, compare=False)
    day: date | None = field(default=None, compare=False)


@dataclass(frozen=True)
class TextLine:
    """One line without its marks: `starts` tells that it opens a block (a turn, a list entry, a heading)."""

    text: str
    speaker: str | None
    turn: int
    starts: bool
    is_heading: bool = False
    day: date | None = None


def sentences_of(text: str, *, participants: Sequence[str] = ()) -> list[Sentence]:
    """Return the sentences of a transcript in order; code is passed over unless there is nothing else."""
    prose, code = unfenced(text)
    speakers = speakers_in(prose, participants)
    together = enumerate(blocks(lines_of(prose, speakers)))
    found = [sentence for number, block in together for sentence in split_block(block, number)]
    return found or [Sentence(piece) for line in code for piece in pieces(" ".join(line.split()))]


def unfenced(text: str) -> tuple[list[str], list[str]]:
    """Return the lines outside and the lines inside code fences; a fence that is never closed opens nothing."""
    prose: list[str] = []
    code: list[str] = []
    fenced: list[str] | None = None
    for line in text.splitlines():
        if _FENCE.match(line):
            prose.append("")
            code += fenced or []
            fenced = [] if fenced is None else None
        else:
            (prose if fenced is None else fenced).append(line)
    return prose + (fenced or []), [line for line in code if line.strip()]


def speakers_in(lines: Sequence[str], participants: Sequence[str] = ()) -> frozenset[str]:
    """Return the names before colons that speak: participants, roles, or whoever opens lines as people do.

    "Decision: use Postgres" is a label; "Ana: let's use Postgres" is a turn. Where roles speak ("user: …"), others do
    who open every tenth line, and participants. Elsewhere a name is told from a label by coming back, or by standing
    among lines at least half of which open with a name; a list entry is never a turn.
    """
    opening = next((line for line in lines if line.strip()), "")
    heads = [(line, name) for line in lines if (name := head_of(line)) and not (line is opening and day_in(line))]
    known = {name.casefold() for name in participants} | ROLES
    named = frozenset(name for _, name in heads if name.casefold() in known)
    counts = Counter(name for line, name in heads if not _MARKER.match(line.lstrip()))
    told = sum(bool(line.strip()) for line in lines)
    if any(name.casefold() in ROLES for name in named):
        often = max(LEAST_TURNS, told // TURN_EVERY)
        return named | {name for name, count in counts.items() if count >= often and could_speak(name)}
    is_chat = 2 * len(heads) >= told
    returning = {name for name, count in counts.items() if count > 1 or (is_chat and opens_large(name))}
    return named | {name for name in returning if could_speak(name)}


def head_of(line: str) -> str | None:
    """Return the text before the colon a line opens with, None where it opens with none."""
    match = _HEAD.match(unmarked(line)) if ":" in line or "：" in line else None
    return match["name"] if match else None


def could_speak(name: str) -> bool:
    """Tell whether a text before a colon may be a name: at most four words, none of them a label."""
    words = name.casefold().split()
    is_error = words[-1].endswith(("error", "exception", "warning"))
    is_dated = words[0].isdigit() and day_in(name, after=date.max) is not None
    return len(words) <= 4 and not is_error and not is_dated and not LABELS & set(words)  # noqa: PLR2004 — "Dr Ana de Souza" has four


def opens_large(name: str) -> bool:
    """Tell whether every word of a name opens with a capital, a digit or a mark, or its script has no capitals."""
    return all(not word[0].islower() for word in name.split())


def unmarked(line: str) -> str:
    """Return a line without the Markdown marks that open it: heading, list, quote, check box."""
    rest = line.strip()
    for _ in range(MOST_MARKS):
        if not (match := _MARKER.match(rest)):
            break
        rest = rest[match.end() :].lstrip()
    return rest


def lines_of(lines: Sequence[str], speakers: frozenset[str]) -> Iterator[TextLine]:
    """Yield each line with its speaker; who speaks goes on speaking until another does."""
    speaker: str | None = None
    day: date | None = None
    turn = left = 0
    is_entry = False
    for raw in lines:
        text = unmarked(raw)
        left += bool(text)
        is_header = left <= HEADER_LINES and not _HEAD.match(text)
        day = day_in(text if is_header or left == 1 else opening_of(text), after=day) or day
        stripped = raw.strip()
        is_indented = raw[:1].isspace() and not is_entry
        is_entry = text != stripped or (is_entry and raw[:1].isspace())
        starts = text != stripped or not text or is_indented
        is_heading = stripped.startswith("#") and starts
        if is_heading and ((name := text.strip(":* ")) in speakers or name.casefold() in ROLES):
            speaker, text, turn = name, "", turn + 1
        elif (match := _HEAD.match(text)) and match["name"] in speakers:
            speaker, text, turn, starts, is_heading = match["name"], text[match.end() :], turn + 1, True, False
        if _RULE.match(text):
            text = ""
        is_heading |= (
            speaker is None and len(lines) > HEADER_LINES >= left and is_header_of(text, is_first=left == 1, day=day)
        )
        yield TextLine(text, speaker, turn, starts, is_heading and bool(text), day)


def is_header_of(text: str, *, is_first: bool, day: date | None) -> bool:
    """Tell whether one of the first lines says what follows, and when: "Stand-up, Mon 8 Dec 2025", "(voice memo)"."""
    if text.startswith(("(", "[")) and text.endswith((")", "]")):
        return True
    return is_first and day is not None and not text.endswith(ENDINGS) and len(text) <= LONGEST_HEADER


def opening_of(text: str) -> str:
    """Return what of a line may name the day it was said on: a date it opens with, or the head before its colon."""
    head, colon, _ = text[:OPENING].partition(": ")
    return head if colon else text[:OPENING] if text[:1].isdigit() and _DATED.match(text) else ""


def blocks(lines: Iterator[TextLine]) -> Iterator[TextLine]:
    """Join lines that were wrapped: a block ends with a sentence, a blank line, or where another block starts."""
    held: list[TextLine] = []
    for line in lines:
        if held and not goes_on(held[-1], line):
            yield joined(held)
            held = []
        if line.text:
            held.append(line)
    if held:
        yield joined(held)


def goes_on(line: TextLine, after: TextLine) -> bool:
    """Tell whether `after` continues the sentence of `line`."""
    if after.starts or line.is_heading or line.text.rstrip(CLOSING).endswith(ENDINGS):
        return False
    return after.text[:1].islower() or (len(line.text) >= WRAPPED_FROM and after.text[:1].isalpha())


def joined(held: Sequence[TextLine]) -> TextLine:
    """Return one block with single spaces."""
    first = held[0]
    text = " ".join(" ".join(line.text for line in held).split())
    return replace(first, text=text)


def split_block(block: TextLine, number: int) -> Iterator[Sentence]:
    """Yield the sentences of one block, which is the `number`th."""
    of_block = Sentence("", block.speaker, block.turn, block.is_heading, number, block.day)
    if block.is_heading:
        yield replace(of_block, text=block.text[:LONGEST_SENTENCE])
        return
    for text in split(block.text):
        for piece in pieces(text):
            yield replace(of_block, text=piece)


def split(text: str) -> Iterator[str]:
    """Cut a text after each mark that ends a sentence; abbreviations, initials and decimals end none."""
    start = 0
    for match in _BOUNDARY.finditer(text):
        if ends_sentence(text[max(start, match.start() - 20) : match.end()], text[match.end() : match.end() + 1]):
            yield text[start : match.end()].strip()
            start = match.end()
    if rest := text[start:].strip():
        yield rest


def ends_sentence(before: str, follower: str) -> bool:
    """Tell whether the full stop at the end of `before` ends a sentence, `follower` being what comes next."""
    match = _LAST_WORD.search(before)
    if not match:
        return True
    word = match[1].casefold()
    if word in SOMETIMES_LAST:
        return not follower.islower() and not follower.isdigit()
    return word not in NEVER_LAST and (len(word) > 1 or word == "i")


def pieces(text: str) -> Iterator[str]:
    """Cut a run that has no full stop at the last white space within the longest sentence."""
    start = 0
    while len(text) - start > LONGEST_SENTENCE:
        place = text.rfind(" ", start + 1, start + LONGEST_SENTENCE)
        end = place if place > 0 else start + LONGEST_SENTENCE
        yield text[start:end].strip()
        start = end
    if rest := text[start:].strip():
        yield rest


def told(sentences: Sequence[Sentence]) -> str:
    """Return sentences as one text; who speaks is named before the first sentence of each turn."""
    turns = [None, *(sentence.turn for sentence in sentences)]
    return " ".join(
        said(sentence) if sentence.turn != turn else sentence.text
        for sentence, turn in zip(sentences, turns, strict=False)
    )


def said(sentence: Sentence) -> str:
    """Return one sentence that stands alone: "Ana: I moved to Lisbon."."""
    return f"{sentence.speaker}: {sentence.text}" if sentence.speaker else sentence.text


def straight(text: str) -> str:
    """Return a text with straight apostrophes, as the closed lists of words spell them."""
    return text.replace("’", "'")


def is_prose(text: str) -> bool:
    """Tell whether a sentence is language rather than a path, a table row, JSON or a key."""
    if _MARKUP.search(text):
        return False
    plain = sum(char.isalpha() or char in " '’,.?!-" for char in text)
    return any(char.isalpha() for char in text) and plain >= LEAST_LETTERS_SHARE * len(text)
