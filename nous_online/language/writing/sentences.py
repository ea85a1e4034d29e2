"""Splits a transcript into sentences with speaker and date: speaker lines, Markdown, lists, mails, code, any script.

Tool calls, terminal output, logs and code are dropped first; of a terminal session the comments and the messages given
to commands stay. Sentences are verbatim but for white space and leading Markdown. Relative dates ("tomorrow", "Friday
the 24th") are resolved against the date of the line. Every pattern is linear in hostile text.
"""
# ruff: noqa: RUF001 — typographic quotes, prompts and full-width stops are what is looked for

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import takewhile
from unicodedata import category

from nous_online.core.patterns import regex
from nous_online.language.lexicon import FOUND, FUNCTION_WORDS, LABELLED, LEAD_IN, OWN, REMEMBER_THIS, WE, word_list
from nous_online.language.writing.dates import MONTH_NAME, find_date, with_full_dates

LONGEST_SENTENCE = 400
"""Characters; a longer run without a full stop is cut at white space, so that no sentence is the whole text."""
WRAPPED_FROM = 60
"""Characters; a longer line without a full stop continues in the next, as in text wrapped by an editor."""
MOST_MARKS = 4  # Markdown marks in a row that can open a line, as in "> - [ ] 1."
LEAST_TURNS, TURN_EVERY = 3, 10
"""In a transcript with roles ("user: …"), another name is a speaker if it opens 3 lines and every tenth line."""
LABELLED_BLOCKS = 3  # lines, entries or paragraphs below a label that it names
OPENING = 60  # characters at the start of a line in which its date can stand
LONGEST_HEADER = 200  # characters
HEADER_LINES = 3  # first lines of a text, whose date may stand anywhere in them
LEAST_LETTERS_SHARE = 0.7  # letters and spaces in prose; paths, tables, JSON and keys have fewer

ENDINGS = (".", "!", "?", "…", ":", "।", "。", "！", "？")
CLOSING = "\"'”’)]*_ "  # characters that may follow the full stop of a sentence
ROLES, LABELS, NEVER_LAST, SOMETIMES_LAST = map(word_list, ("roles", "labels", "never_last", "sometimes_last"))

_FENCE = regex(r"(?P<who>\w{1,20}:\s)?\s{0,8}(?:`{3}|~{3})(?P<kind>\s?\w)?(?![^`]{0,400}`{3})")
"""Opens or closes code, also as the first line of a message; with the `kind` of code it only opens it."""
_MARKER = regex(r"(?:#{1,6}|[-*+•–]|\d{1,3}[.)]|\[[ xX]\]|>)(?=\s|$)")
_BOLD = regex(r"\A_?(?:\*\*|__)[^*_]{0,160}[^*_.!?…](?:\*\*|__):?(?:\s\([^()]{1,160}\))?:?_?\Z")
"""A line or a list entry all in bold, or with a remark in brackets: the heading of what follows."""
_HEADED = regex(
    r"\A[^\w*]{1,8}|\s?[(—–].*|\s(?:found|confirmed|identified|analysis|applied)\b.*|[:*_#\s]{1,8}\Z", re.IGNORECASE
)
"""What a heading says besides the label it is: "🔍 Root cause (two problems)"."""
_ROLE = regex(r"\A[_*]{0,3}(?P<sign>[👤🤖])?\s?(?P<name>[^\W_]{2,20})(?:\s\([^()]{1,80}\))?[:*_]{0,4}\Z")
SIGNS = {"👤": "user", "🤖": "assistant"}
_RULE = regex(r"\A[\s\-=_*~|:+#]{3,}+$")
_HEAD = regex(
    r"\A(?:[\[(]?(?:[^\W\d_]{2,4}\.?\s)?\d(?:[\d\-:/., ]|(?<=\d)[TZ](?![a-z])){3,30}"
    r"(?:[apAP][mM])?[\])]?\s*+(?:[-–—]\s*+)?)?(?:\*{2}|_{2})?"
    r"(?P<name>[#@]?[^\W_][\w .'’#@/&-]{0,39}?)(?:\s\([^()]{1,30}\))?"
    r"(?:,\s\d{1,2}\.?\s[^\W\d_]{3,9}(?:\s\d{4})?)?(?:\*{2}|_{2})?\s?"
    r"(?::(?:\*{2}|_{2})?(?:\s+|$)|：\s*)"
)
_BOUNDARY = regex(r"(?<![.!?…])[.!?…]++[\"'”’)\]*_]{0,4}+\s++|[।。！？]++[」』”）]{0,2}+\s*+")
_LAST_WORD = regex(r"([^\W\d_](?:[^\W_]|\.(?=[^\W_])){0,15})\.[\"'”’)\]*_]{0,4}\s+$")
_LAST_DAY = regex(r"\b\d{1,2}\.\s+$")  # "vom 27. bis 30. Dezember"
_DAY = regex(rf"(?<![\d.])\d{{1,2}}\.(?:\d{{1,2}}\.(?=\s+[a-zäöüß])|(?=\s+(?i:{MONTH_NAME})\b))")
"""A date whose full stop ends no sentence: "1. Januar", "am 2.12. um zehn"."""
_DATED = regex(r"\d{1,4}[-./\s](?:\d{1,2}[-./]\d{2,4}\b|[^\W\d_]{3,9}[.,: ])")
_MARKUP = regex(r"""["']\s?[}\]]|[{\[]\s?["'{]|["']\s?:\s?["'{\[\d]|</?[a-z]+[ />]|^\s*\||<!--""")
_CODE_SPAN = regex(r"`[^`]{1,300}`")
_CODE_MARK = regex(r":=|[=!]=|&&|\|\||=>|[{}]|;$|\w\((?!s\))")
"""What code has between its words; outside of back quotes prose has one at most."""
_MAIL_HEAD = regex(
    r"\A\s{0,4}(?:(?:from|von|de|expéditeur|remitente)\s?:\s(?P<sender>\S.{0,200})"
    r"|(?:date|datum|sent|gesendet|envoyé|fecha|enviado)\s?:\s(?P<date>\S.{0,100})"
    r"|(?:subject|betreff|objet|asunto)\s?:\s(?P<subject>\S.{0,300})|(?P<other>(?:to|an|à|para|cc|bcc)\s?:\s.{1,400}))\Z",
    re.IGNORECASE,
)
"""A header line of a mail."""
_ADDRESS = regex(r"[<(\[].*|\s[^\s@]+@\S+\Z")
MOST_MAIL_HEADS, LEAST_MAIL_HEADS = 6, 2


@dataclass(frozen=True)
class Sentence:
    """One sentence as written; `speaker` is the name before the colon, None where nobody is named.

    `turn` counts the speaker changes before it, `block` the lines, list entries and paragraphs before it. `day` is the
    latest date that a header, a heading or the start of a line gave. `label` is what a label before it or a heading
    above it calls it: "Lesson: …", an entry of the list below "To do:", the paragraph below "Root cause".
    """

    text: str
    speaker: str | None = None
    turn: int = 0
    is_heading: bool = False
    block: int = field(default=0, compare=False)
    day: date | None = field(default=None, compare=False)
    label: str | None = field(default=None, compare=False)


@dataclass(frozen=True)
class TextLine:
    """One line without Markdown; `starts` tells that it opens a block: a turn, a list entry, a heading, a paragraph."""

    text: str
    speaker: str | None
    turn: int
    starts: bool
    is_heading: bool = False
    day: date | None = None


LEAST_TOLD_BEFORE = 4  # words before a question in the same sentence that tell something
_ASKED_THEN = regex(
    r",\s(?=¿|(?:so\s|and\s|but\s)?(?:any|are|can|could|did|do|does|has|have|how|is|should|was|were|what|when|where|which|who|why|will|would)\b)",
    re.IGNORECASE,
)

PREMISE = regex(
    r"(?:\A|,\s(?:(?:and|but|so|und|et|y) )?)(?:if|unless|suppos(?:e|ing)|imagine|pretend|assum(?:e|ing)|provided"
    r"|what if|let's say|say (?=(?:i|we|he|she|they)\b)|wenn|falls|angenommen|stell dir vor|si|supposons|imaginons"
    r"|supongamos|imagina|imaginemos)\b,?[^,]*\Z",
    re.IGNORECASE,
)
"""A condition or supposition at the end of what is told before a question, which belongs to it."""


def sentences_of(text: str, *, participants: Sequence[str] = ()) -> list[Sentence]:
    """Return the sentences of a transcript in order, without code, or the lines of code where there is nothing else."""
    prose, code = split_code_fences(text)
    prose, senders = rewrite_mail_headers(prose)
    found: list[Sentence] = []
    for number, block in enumerate(
        join_wrapped_lines(parse_lines(prose, find_speakers(prose, [*participants, *senders])))
    ):
        of_block = Sentence("", block.speaker, block.turn, block.is_heading, number, block.day)
        whole = [piece for sentence in split_sentences(block.text) for piece in told_and_asked(sentence)]
        texts = [piece for sentence in whole for piece in cut_long_sentence(sentence)]
        heading = [block.text[:LONGEST_SENTENCE]]
        found += [replace(of_block, text=told_text(text)) for text in (heading if block.is_heading else texts)]
    return with_labels(found) or [
        Sentence(piece) for line in code for piece in cut_long_sentence(" ".join(line.split()))
    ]


def told_and_asked(sentence: str) -> Iterator[str]:
    """Yield what somebody tells of themselves, and what they ask then: "I moved to Ulm, do I have to register?"."""
    cut = _ASKED_THEN.search(sentence) if sentence.endswith("?") and opens_with_self(sentence) else None
    premise = PREMISE.search(straighten_apostrophes(sentence[: cut.start()])) if cut else None
    told = sentence[: (premise or cut).start()] if cut else ""
    if cut is None or len(told.split()) < LEAST_TOLD_BEFORE:
        yield sentence
    else:
        yield f"{told}."
        yield sentence[premise.start() :].lstrip(", ") if premise else sentence[cut.end() :]


def opens_with_self(text: str) -> bool:
    """Tell whether a sentence opens with who says it ("I", "my", "we", in any language of `OWN`), lead-ins aside."""
    told = LEAD_IN.sub("", text)
    return bool(OWN.match(told) or WE.match(told))


def told_text(text: str) -> str:
    """Return what a sentence tells: of "Can you remember that my gate code changed?" what is to be remembered."""
    asked = REMEMBER_THIS.match(text) if text.endswith("?") else None
    return text[asked.end() :].rstrip("?") if asked else text


def with_labels(sentences: Sequence[Sentence]) -> list[Sentence]:
    """Return the sentences with their labels; up to three blocks have that of the heading or line above them.

    "Found it!" labels what else is said in its block.
    """
    found: list[Sentence] = []
    listed: str | None = None
    last = turn = 0  # the last block that has the label
    for each in sentences:
        plain = straighten_apostrophes(each.text)
        named = f"{_HEADED.sub('', each.text)}:" if each.is_heading else plain
        match, announced = LABELLED.match(named), FOUND.fullmatch(plain)
        if match or announced or each.is_heading or each.turn != turn:
            is_whole = match is not None and match.end() == len(named.rstrip())
            listed = match.lastgroup if match and is_whole else announced.lastgroup if announced else None
            last, turn = each.block + (0 if announced and not plain.endswith(":") else LABELLED_BLOCKS), each.turn
        found.append(replace(each, label=match.lastgroup if match else listed if each.block <= last else None))
    return found


def rewrite_mail_headers(lines: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the lines with each mail header rewritten to a heading and a dated speaker line, and the senders."""
    found: list[str] = []
    senders: list[str] = []
    at = 0
    while at < len(lines):
        heads = takewhile(bool, (_MAIL_HEAD.match(line) for line in lines[at : at + MOST_MAIL_HEADS]))
        fields = {str(match.lastgroup): match[str(match.lastgroup)] for match in heads if match}
        if len(fields) < LEAST_MAIL_HEADS:  # as at most lines
            found.append(lines[at])
            at += 1
            continue
        name, day = _ADDRESS.sub("", fields.get("sender", "")).strip("\"' "), find_date(fields.get("date", ""))
        opening = f"{day} {name}:" if day else f"{name}:"
        if line_prefix(opening) != name or not may_be_speaker(name):
            found.append(lines[at])
            at += 1
            continue
        found += [f"# {fields['subject'].strip()}", opening] if "subject" in fields else ["", opening]
        senders.append(name)
        at += len(fields)
    return found, senders


def split_code_fences(text: str) -> tuple[list[str], list[str]]:
    """Return the lines outside and the lines inside code fences; after an unclosed fence the rest is outside."""
    prose: list[str] = []
    code: list[str] = []
    fenced: list[str] | None = None
    for line in text.splitlines():
        if fence := _FENCE.match(line):
            prose.append((fence["who"] or "").rstrip())
            code += fenced or []
            fenced = [] if fenced is None or fence["kind"] else None
        else:
            (prose if fenced is None else fenced).append(line)
    return prose + (fenced or []), [line for line in code if line.strip()]


def find_speakers(lines: Sequence[str], participants: Sequence[str] = ()) -> frozenset[str]:
    """Return the texts before colons that are speakers: participants, roles, and names that open lines repeatedly.

    "Decision: use Postgres" is a label; "Ana: let's use Postgres" is a turn. In a transcript with roles ("user: …")
    another name has to open every tenth line. Elsewhere a name is a speaker where it opens two lines, or where at least
    half of all lines open with one. A list entry is never a turn.
    """
    opening = next((line for line in lines if line.strip()), "")
    known = {name.casefold() for name in participants} | ROLES
    heads = [
        (line, name)
        for line in lines
        if (name := line_prefix(line)) and (name.casefold() in known or line is not opening or not find_date(line))
    ]
    roles = (role_of(strip_markdown(line)) for line in lines if line[:1] in ("#", "*", "_"))
    named = frozenset(name for _, name in heads if name.casefold() in known) | frozenset(filter(None, roles))
    counts = Counter(name for line, name in heads if not _MARKER.match(line.lstrip()))
    line_count = sum(bool(line.strip()) for line in lines)
    if any(name.casefold() in ROLES for name in named):
        often = max(LEAST_TURNS, line_count // TURN_EVERY)
        return named | {name for name, count in counts.items() if count >= often and may_be_speaker(name)}
    is_chat = 2 * len(heads) >= line_count
    returning = {
        name
        for name, count in counts.items()
        if count > 1 or (is_chat and not any(word[0].islower() for word in name.split()))
    }
    return named | {name for name in returning if may_be_speaker(name)}


def role_of(heading: str) -> str | None:
    """Return the role that a heading is, None for another: "_**User**_", "👤 User", "Assistant (a model)"."""
    match = _ROLE.match(heading)
    role = (SIGNS.get(match["sign"]) or match["name"]) if match else None
    return role if role and role.casefold() in ROLES else None


def line_prefix(line: str) -> str | None:
    """Return the text before the colon at the start of a line, None without one."""
    match = _HEAD.match(strip_markdown(line)) if ":" in line or "：" in line else None
    return match["name"] if match else None


def may_be_speaker(name: str) -> bool:
    """Tell whether the text before a colon may be a name: at most four words, no label, no error and no date."""
    words = name.casefold().split()
    is_error = words[-1].endswith(("error", "exception", "warning"))
    is_dated = words[0].isdigit() and find_date(name, after=date.max) is not None
    is_label = LABELS & set(words) or LABELLED.match(f"{name}:")
    return len(words) <= 4 and not (is_error or is_dated or is_label)  # noqa: PLR2004 — "Dr Ana de Souza" has four


def strip_markdown(line: str) -> str:
    """Return a line without leading Markdown: heading, list, quote and check box marks."""
    rest = line.strip()
    for _ in range(MOST_MARKS):
        if not (match := _MARKER.match(rest)):
            break
        rest = rest[match.end() :].lstrip()
    return rest


def parse_lines(lines: Sequence[str], speakers: frozenset[str]) -> Iterator[TextLine]:
    """Yield each line with its speaker and date; both hold until another line changes them."""
    speaker: str | None = None
    day: date | None = None
    turn = seen = 0  # speaker changes and lines with text so far
    is_entry = False
    for raw in lines:
        text = strip_markdown(raw)
        seen += bool(text)
        is_header = seen <= HEADER_LINES and not _HEAD.match(text)
        # After the header a date counts only at the start of a line: one inside a sentence is what it speaks of.
        opening, colon, _ = text[:OPENING].partition(": ")
        if not colon and not (text[:1].isdigit() and _DATED.match(text)):
            opening = ""
        day = find_date(text if is_header or seen == 1 else opening, after=day) or day
        stripped = raw.strip()
        is_indented = raw[:1].isspace() and not is_entry
        is_entry = text != stripped or (is_entry and raw[:1].isspace())
        starts = text != stripped or not text or (is_indented and not text[:1].islower())
        is_bold = bool(_BOLD.match(text))
        is_heading = is_bold or (stripped.startswith("#") and starts)
        starts = starts or is_bold
        if is_heading and (name := role_of(text) or text.strip(":* ")) in speakers:
            speaker, text, turn = name, "", turn + 1
        elif (match := _HEAD.match(text)) and match["name"] in speakers:
            speaker, said, turn, starts = match["name"], text[match.end() :], turn + 1, True
            is_heading = said.startswith("## ") or bool(_BOLD.match(said))
            text = strip_markdown(said) if is_heading else said
        if _RULE.match(text):
            text = ""
        if speaker is None and len(lines) > HEADER_LINES >= seen:  # "Stand-up, Mon 8 Dec 2025", "(voice memo)"
            is_dated = seen == 1 and day is not None and not text.endswith(ENDINGS) and len(text) <= LONGEST_HEADER
            is_heading |= is_dated or (text.startswith(("(", "[")) and text.endswith((")", "]")))
        yield TextLine(text, speaker, turn, starts, is_heading and bool(text), day)


def join_wrapped_lines(lines: Iterator[TextLine]) -> Iterator[TextLine]:
    """Join wrapped lines to blocks, which end with a sentence, a blank line, or where another block starts."""
    held: list[TextLine] = []
    for line in [*lines, None]:
        if held and (line is None or not continues(held[-1], line)):
            yield replace(held[0], text=" ".join(" ".join(each.text for each in held).split()))
            held = []
        if line is not None and line.text:
            held.append(line)


def continues(line: TextLine, after: TextLine) -> bool:
    """Tell whether `after` continues the sentence of `line`."""
    if after.starts or line.is_heading or line.text.rstrip(CLOSING).endswith(ENDINGS):
        return False
    return after.text[:1].islower() or (len(line.text) >= WRAPPED_FROM and after.text[:1].isalpha())


def split_sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text; abbreviations, initials, decimals and days of a month do not end one."""
    start = 0
    dated = {match.end() for match in _DAY.finditer(text)}
    for match in _BOUNDARY.finditer(text):
        if match.start() + 1 not in dated and ends_sentence(
            text[max(start, match.start() - 20) : match.end()], text[match.end() : match.end() + 1]
        ):
            yield text[start : match.end()].strip()
            start = match.end()
    if rest := text[start:].strip():
        yield rest


def ends_sentence(before: str, follower: str) -> bool:
    """Tell whether the full stop at the end of `before` ends a sentence; `follower` is the next character."""
    match = _LAST_WORD.search(before)
    if not match:
        return not (follower.islower() and _LAST_DAY.search(before))
    word = match[1].casefold()
    if word in SOMETIMES_LAST:
        return not follower.islower() and not follower.isdigit()
    is_street = word.endswith("str") and follower.isdigit()  # "Habsburgerstr. 90"
    return word not in NEVER_LAST and not is_street and (len(word) > 1 or word == "i")


def cut_long_sentence(text: str) -> Iterator[str]:
    """Yield a sentence in parts of at most `LONGEST_SENTENCE` characters, cut at white space where there is some."""
    start = 0
    while len(text) - start > LONGEST_SENTENCE:
        place = text.rfind(" ", start + 1, start + LONGEST_SENTENCE)
        end = place if place > 0 else start + LONGEST_SENTENCE
        yield text[start:end].strip()
        start = end
    if rest := text[start:].strip():
        yield rest


def join_sentences(sentences: Sequence[Sentence]) -> str:
    """Return sentences as one text with complete dates and the speaker before the first sentence of each turn."""
    turns = [None, *(sentence.turn for sentence in sentences)]
    return " ".join(
        with_full_dates(with_speaker(sentence) if sentence.turn != turn else sentence.text, sentence.day)
        for sentence, turn in zip(sentences, turns, strict=False)
    )


def with_speaker(sentence: Sentence) -> str:
    """Return a sentence with its speaker: "Ana: I moved to Lisbon."."""
    return f"{sentence.speaker}: {sentence.text}" if sentence.speaker else sentence.text


def straighten_apostrophes(text: str) -> str:
    """Return a text with straight apostrophes, as the word lists and patterns spell them."""
    return text.replace("’", "'")


def is_prose(text: str) -> bool:
    """Tell whether a sentence is prose rather than a path, a table row, JSON or a key."""
    if _MARKUP.search(text) or len(_CODE_MARK.findall(_CODE_SPAN.sub("", text))) > 1:
        return False
    # Hindi and Thai write vowels as marks (M) beside their letters.
    plain = sum(char.isalpha() or char in " '’,.?!-।" or category(char)[0] == "M" for char in text)
    return any(char.isalpha() for char in text) and plain >= LEAST_LETTERS_SHARE * len(text)


FROM_TERMINAL = 0.25  # share of lines with a prompt from which a text is a terminal session
LEAST_PROMPTS = 2
TALKING = frozenset({"user", "assistant", "human"})
"""Roles that make a text a dialogue, however many commands it has."""
LEAST_LETTERS = 0.72
"""Share of letters, spaces and marks of prose in a line people wrote; output, paths and code have less."""

KNOWN = FUNCTION_WORDS | word_list("of_four_languages")
"""The commonest words of English, German, French and Spanish, about half of all words of a text."""
LEAST_KNOWN = 0.2
"""Share of `KNOWN` from which a text is in one of these languages; whole sentences have 0.35 and more."""

_PROMPT = regex(r"\A\s{0,4}(?:\([\w.-]{1,40}\)\s){0,3}(?:[\w.-]{1,40}@[\w.-]{1,60}[^$#%❯]{0,120}?[$#%❯]|[$❯])\s(?=\S)")
_COMMENT = regex(r"#\s+(?=\S)")
_MESSAGE = regex(
    r"""\s(?:-[a-z]{0,3}m|-t|-b|--message|--title|--body|--reason)[= ](?:"([^"]{8,400})"|'([^']{8,400})')"""
    r"""|\bgit commit \(([^()]{8,200})\)"""
)
_PUBLISHES = regex(r"\b(?:commit|pr create|issue create|mr create|tag|release)\b")
_TOOL = regex(
    r"\A(?:(?:user|assistant|tool|system)\s?:\s)?\[(?!\d|[ xX]\]|session|date)"
    r"(?:[a-z_][\w .-]{0,30}\](?=\s)|[A-Za-z_][\w. -]{0,40}:\s|[A-Z][A-Za-z_]{2,30}\](?=\s))"
)
_BLOCK = regex(
    r"\A(?:(?:user|assistant|tool|system)\s?:\s)?<(?P<name>[a-z]{2,30}(?:-[a-z]{1,30}){1,4}|think)(?:\s[^<>]{0,300})?>"
)
_EXPORTED = regex(r"\A(?:<!-- Generated by SpecStory|## SpecStory|.{0,3}Using tool: |<tool[-_]use\b|[⏺●]\s\w{1,30}\()")
"""What programs write into the exports of an agent's sessions."""
_OUTPUT = regex(
    r"\A(?:[-+]{3}\s|@@\s|[+-]\s{2,}\S|\d+\s*[|│┃:]\s|[│┃┌└├╭╰▪✓✗✔✘⎿●■✦]|\$\s|>>>\s|at\s\S{1,200}[(:]\S"
    r"|(?:FAILED|PASSED|ERROR|WARN(?:ING)?|INFO|DEBUG|TRACE|FATAL|Traceback)\b[\s:(\[]|File (?:\"|\S{1,200}:\d+, in )"
    r"|-+> ?\d+\s|\d{1,5}(?:\s{2,}\S|→)|Cell In ?\[|(?:[\w.]{1,80}\s+)?Traceback \(most"
    r"|[A-Za-z][\w.]{0,60}(?:Error|Exception): "
    r"|[\w./\\-]{1,120}\.\w{1,6}:\d+|(?:Running|Compiling|Finished|Downloading|Installing|Collecting)\s\S{1,60}\s(?:with|in|v?\d)"
    r"|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S{0,12}\s+\[?(?:INFO|WARN|ERROR|DEBUG)"
    r"|\d+\s(?:passed|failed|tests?),?\s\d|\.{5,}"
    r"|[\w.]{1,40}-\d{1,3}\s{1,10}\||\(\w{1,40} pid=\d|#\d{1,4} \d{1,6}\.\d"
    r"|(?:\([\w.-]{1,40}\)\s){0,3}[\w.-]{1,40}@[\w.-]{1,60}:\S{0,120}[$#]\Z|(?:diff --git|index [0-9a-f]{7,40}\.\.)\s?)"
)
_STATEMENT = regex(
    r"""\A(?:import\s(?:[\w.]+|.*["';])|from\s[\w.]+\simport\s.*|[})\]]+\s?(?:from\s["'].*|[;,]*)"""
    r"""|(?:export|async|def|class|function|public|private|static|return)\s.*[;{(=\[]"""
    r"""|(?:const|let|var)\s[\w{\[].*=.*|[A-Za-z_][\w.\[\]"']*\s?[-+*/]?=\s?(?:await\s.*|[^()]*\w\(.*\)|[\[{"'].*[\]}"'][;,]?|.*;)"""
    r"""|(?:return|raise|throw)\s[\w.]+(?:\(.*\))?;?|(?:await\s)?[A-Za-z_][\w.]*\(.*\)[;:,]?|(?:[\w-]{1,40}:\s)?["'`].*["'`],|.*\)\s?[;{]|.*=>\s?[{(]?)\Z"""
)
"""A whole line of code, as people paste it without a fence; tried only on lines no longer than a sentence."""
_SCREEN = regex(r"\A(?:\w{1,20}:\s)?\s{0,8}[✦●⎿╭│╰]")
"""A pasted screen of an agent's program; indented lines below belong to it."""
_LEFT_OUT = regex(r"\A\[(?:[\d,]{1,15} characters were|a line was) left out\b")
"""The mark an import puts where it leaves something out."""
_NUMBER = regex(r"\A\d{1,5}\s+")
"""A line number before code."""
_WHOLE = regex(r"\A[^\W\d_][\w'’,]*(?:\s[\w'’,.:/§%€$-]{1,40}){3,60}[.!?]\Z")
"""A whole line of prose, from its first word to its full stop."""
_WORD = regex(r"[^\W\d_]+")
_SPEAKER = regex(r"\A[^:\[\]{}<>=/\\]{1,60}:\s")
_CODE = regex(r"[{}<>=;|\\`$@^~_/\[\]*#]|--|::|\(\)|->")


def human_text(detail: str) -> str:
    """Return the lines of a transcript that people wrote; the whole transcript where there are none."""
    lines = detail.splitlines()
    prompts = sum(bool(_PROMPT.match(line)) for line in lines)
    is_terminal = prompts >= LEAST_PROMPTS and prompts >= FROM_TERMINAL * sum(bool(line.strip()) for line in lines)
    is_talk = is_terminal and any((line_prefix(line) or "").casefold() in TALKING for line in lines)
    kept = list(terminal_lines(lines) if is_terminal and not is_talk else dialogue_lines(lines))
    return "\n".join(kept) if any(line.strip() and not _FENCE.match(line) for line in kept) else detail


def uses_tools(line: str) -> bool:
    """Tell whether a line is a tool call, a command, or part of a program's screen."""
    is_left_out = _LEFT_OUT.match(line[match.end() :] if (match := _SPEAKER.match(line)) else line)
    return not is_left_out and any(each.match(line) for each in (_TOOL, _PROMPT, _SCREEN, _EXPORTED))


def terminal_lines(lines: Sequence[str]) -> Iterator[str]:
    """Yield the comments of a terminal session and the messages given to its commands, a line each, without output.

    The output of `date` stays, since it dates the comments after it.
    """
    was_date = False
    for line in lines:
        if not (prompt := _PROMPT.match(line)):
            if was_date:
                yield f"# {line}"
            continue
        command = line[prompt.end() :]
        was_date = command.strip() == "date"
        if comment := _COMMENT.match(command):
            yield f"- {command[comment.end() :]}"
        else:
            yield from command_messages(command)


def command_messages(command: str) -> Iterator[str]:
    """Yield the commit messages and the titles of pull requests or issues in a command line."""
    if _PUBLISHES.search(command):
        yield from (f"- {match[1] or match[2] or match[3]}" for match in _MESSAGE.finditer(command))


def dialogue_lines(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines of a dialogue, a log or notes that people wrote, and an empty line for each other one.

    Lines after a command are its output, up to an empty line, a speaker's line, or a whole sentence. Where a line that
    is left out names who speaks, so does a line before what else they say.
    """
    closing, dropped = "", None
    is_output = is_printed = False
    speakers = find_speakers(lines)
    for line in lines:
        is_printed = bool(_PROMPT.match(line)) or (
            is_printed and not (is_human_line(line, speakers) or not line.strip())
        )
        if closing:
            closing = "" if closing in line else closing
            continue
        if (block := _BLOCK.match(line)) and (tag := f"</{block['name']}>") not in line:
            closing = tag
        is_tool = bool(_TOOL.match(line) or _SCREEN.match(line))
        is_output = is_tool or (is_output and line.startswith(("  ", "\t")))
        is_dropped = block or is_output or is_printed or is_machine_line(line)
        if (prefix := line_prefix(line)) in speakers:
            dropped = prefix if is_dropped else None
        if dropped and line.strip() and not is_dropped:
            yield f"{dropped}:"
            dropped = None
        yield "" if is_dropped else line
        if is_tool:
            yield from command_messages(line)


def is_human_line(line: str, speakers: Set[str]) -> bool:
    """Tell whether a line opens with a speaker or is a whole sentence, which commands hardly ever print."""
    return line_prefix(line) in speakers or bool(_WHOLE.match(line.strip()))


def is_machine_line(line: str) -> bool:
    """Tell whether a line is code or the output of a program rather than prose."""
    plain = line.strip()
    if not plain or plain.startswith(("#", "```", "~~~", "[")):
        return bool(_LEFT_OUT.match(plain))
    rest = plain[match.end() :] if (match := _SPEAKER.match(plain)) else plain
    code = _NUMBER.sub("", rest)
    if _BOLD.match(rest):
        return False
    if rest.count("\\n") > 1:  # a text inside JSON
        return True
    if _OUTPUT.match(plain) or _OUTPUT.match(rest) or (len(code) <= LONGEST_SENTENCE and _STATEMENT.match(code)):
        return True
    letters = sum(char.isalpha() or char in " ,.'’?!-" for char in rest)
    marks = len(_CODE.findall(rest))
    return bool(rest) and marks > 1 and letters < LEAST_LETTERS * len(rest) and marks * 12 > len(rest)


def is_known_language(text: str) -> bool:
    """Tell whether a text is in English, German, French or Spanish, whose word lists the writer has."""
    words = _WORD.findall(text.casefold())
    return sum(word in KNOWN for word in words) >= LEAST_KNOWN * len(words)
