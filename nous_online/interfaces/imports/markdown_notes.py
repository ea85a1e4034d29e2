"""Notes in Markdown to facts: each list item and paragraph is one, the heading above it its subject."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from nous_online.core.errors import InvalidInput
from nous_online.core.validation import MAX_NAMES
from nous_online.interfaces.imports.dialogues import MAX_STATEMENT_CHARACTERS, parts
from nous_online.interfaces.imports.file_lines import MAX_LINE_BYTES, opened
from nous_online.interfaces.imports.items import ImportItem, ReaderState
from nous_online.interfaces.imports.records import ImportedRecord, in_utc, read_moment
from nous_online.interfaces.imports.redact import HIDDEN_FACTS, HIDDEN_TITLES, looks_secret
from nous_online.language.writing.credentials import SHORT_ANSWER

DATES = ("updated", "updated_at", "modified", "last_modified", "date", "created", "created_at")
HEADING = re.compile(r"(#{1,6})\s+(.*)")
BULLET = re.compile(r"\A(\s*+)(?:[-*+]|\d{1,4}[.)])\s+(?:\[(?P<box>[ xX])\]\s+)?(?P<text>.*)")
FENCE = re.compile(r"\A\s{0,12}(?:(?:[-*+]|\d{1,4}[.)])\s{1,12})?(`{3,}+(?!.*`)|~{3,})")
ENTRY = re.compile(r"([A-Za-z][\w -]{0,50}):\s*(.*)")
WIKI_LINK = re.compile(r"!?\[\[([^\[\]|#]{0,200}+)(?:#[^\[\]|]{0,200}+)?(?:\|([^\[\]]{1,200}+))?\]\]")
LINK = re.compile(r"!?\[([^\]]{0,500}+)\]\([^)\s]{0,2000}+(?:\s++\"[^\"]{0,200}+\")?\)")
TAG = re.compile(r"(?<![\w#/&])#([A-Za-z][\w/-]{0,60})")
EMPHASIS = re.compile(r"(?<![\w/*])(?!__[a-z][a-z\d_]{0,50}__)(\*\*|__|\*(?!\*))(?=\S)(.{1,500}?)(?<=\S)\1(?!\w|\.\w)")
"""Not in `src/__init__.py`, `__name__` or `*.py`: these are names."""
CODE_SPAN = re.compile(r"(?<!`)(?P<ticks>`{1,3})(?!`).+?(?<!`)(?P=ticks)(?!`)")
CODE_OR_COMMENT = re.compile(rf"{CODE_SPAN.pattern}|<!--.*?(?:-->|$)")
KEPT_SPAN = re.compile("\x00(\\d{1,9})\x00")
DATED_NAME = re.compile(r"(?<!\d)(\d{4})-(\d\d)-(\d\d)(?!\d)")
END_OF_COMMENT = "-->"
NEAREST = 100
"""Characters of what a statement stands under that are read with it: a name of a credential is at the end of them."""
SHORTEST = 3
"""Characters; less is a mark and no statement."""
CODE = "blocks of code (a note about it is kept, the code is not)"


@dataclass(frozen=True)
class PageNote:
    """A statement of a page: where it stands, and the headings and the item it stands under."""

    line: int
    text: str
    headings: tuple[str, ...] = ()
    under: str | None = None
    tags: tuple[str, ...] = ()


@dataclass
class Page:
    """A page as it is read: what is said at its top, the headings and items one is under, and what is not ended yet."""

    front: Mapping[str, list[str]]
    headings: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    items: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    open: PageNote | None = None
    lines: list[str] = field(default_factory=list[str])
    """Of the statement that is open."""
    left_out: Counter[str] = field(default_factory=Counter[str])

    def begin(self, line: int, text: str, *, under: str | None = None, tags: tuple[str, ...] = ()) -> None:
        """Begin a statement."""
        self.open = PageNote(line, "", tuple(title for _, title in self.headings), under, tags)
        self.lines = [text]

    def ended(self) -> Iterator[PageNote]:
        """Yield the statement that was begun, if there is one."""
        text = " ".join(filter(None, self.lines))
        if self.open and len(text) >= SHORTEST:
            yield replace(self.open, text=text)
        self.open, self.lines = None, []


class Comments:
    """The comments of a page, taken out line by line; one that never ends, or stands in code, is text."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._is_open = False
        self._last_end = max((number for number, line in enumerate(lines, 1) if END_OF_COMMENT in line), default=0)
        self._ends_soon = [False] * (len(lines) + 1)
        """After each line, counted from 1: whether a comment ends before the next empty line."""
        for number in range(len(lines) - 1, 0, -1):
            line = lines[number]
            self._ends_soon[number] = END_OF_COMMENT in line or bool(line.strip() and self._ends_soon[number + 1])

    def taken_out(self, line: str, number: int) -> str:
        """Return a line without its comments, and remember one that goes on; a mark that begins code stays."""
        if not self._is_open and FENCE.match(line):
            return line
        if self._is_open:
            _, end, line = line.partition(END_OF_COMMENT)
            self._is_open = not end

        def shown(found: re.Match[str]) -> str:
            if found["ticks"] or found[0].endswith(END_OF_COMMENT):
                return found[0] if found["ticks"] else ""
            is_block = not line[: found.start()].strip()
            self._is_open = number < self._last_end if is_block else self._ends_soon[number]
            return "" if self._is_open else found[0]

        return CODE_OR_COMMENT.sub(shown, line)


def items_of_page(path: Path, reading: ReaderState) -> Iterator[ImportItem]:
    """Yield the statements of a page as facts, dated by its top, its name or when it was last written."""
    with opened(path) as file:
        content = file.read(MAX_LINE_BYTES + 1)
    if len(content) > MAX_LINE_BYTES:
        yield ImportItem(1, len(content), problem=f"the page is longer than {MAX_LINE_BYTES:,} bytes; split it")
        return
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        yield ImportItem(1, len(content), problem=f"byte {error.start + 1} is not UTF-8; convert the page to UTF-8")
        return
    page = Page(split_front(text)[0])
    if unread := unread_date(text, page.front, path):
        yield ImportItem(unread[0], len(content), problem=unread[1])
        return
    said_at = stated_moment(page.front, path) or changed_moment(path)
    for note in notes_of(text, page):
        yield from note_items(note, page, path, said_at=said_at, end=len(content), reading=reading)
    yield ImportItem(len(text.splitlines()), len(content), left_out=page.left_out)


def note_items(
    note: PageNote, page: Page, path: Path, *, said_at: datetime, end: int, reading: ReaderState
) -> Iterator[ImportItem]:
    """Yield a statement as a fact, a long one in parts; none that looks as if it held a credential."""
    if is_secret(note):
        yield ImportItem(note.line, end, left_out={HIDDEN_FACTS: 1})
        return
    for part in parts(note.text, max_characters=MAX_STATEMENT_CHARACTERS):
        tags = dict.fromkeys((*page.front.get("tags", ())[: MAX_NAMES + 1], *note.tags, *TAG.findall(part)))
        fields: dict[str, Any] = {
            "content": part,
            "subject": subject_of(note, path)[:500],
            "context": " > ".join((path.stem, *note.headings, *filter(None, [note.under])))[:MAX_STATEMENT_CHARACTERS],
            "tags": [tag.strip("#")[:100] for tag in tags if tag.strip("#")],
            "source": path.name[:500],
            "learned_at": said_at.isoformat(),
        }
        digest = sha256(f"{fields['subject']}\n{part}".encode()).hexdigest()[:32]
        name = reading.seen.name(f"{path.name}:{digest}".encode(), within="markdown")
        yield ImportItem(note.line, end, ImportedRecord("fact", None, None, fields), name, part.encode())


def is_secret(note: PageNote) -> bool:
    """Tell whether a statement looks as if it held a credential: by itself, or a short one by what it stands under."""
    above = note.under or (note.headings[-1] if note.headings else "")
    is_short = len(note.text.split()) <= SHORT_ANSWER
    return looks_secret(note.text) or (is_short and looks_secret(f"{above[-NEAREST:]}: {note.text}"))


def subject_of(note: PageNote, path: Path) -> str:
    """Return what a statement is about: the heading above it, or else the page."""
    return note.headings[-1] if note.headings else path.stem


def notes_of(text: str, page: Page) -> Iterator[PageNote]:
    """Yield the statements of a page; code is passed over, a table is told row by row."""
    page.front, start = split_front(text)
    fence, lines = "", text.splitlines()
    comments = Comments(lines)
    for number, written in enumerate(lines[start:], start=start + 1):
        line = written if fence else comments.taken_out(written, number)
        marks = FENCE.match(line)
        if fence or marks:
            yield from page.ended()
            page.left_out += Counter([] if fence else [CODE])
            is_end = bool(fence and marks and marks[1].startswith(fence) and not line.strip(" `~"))
            fence = "" if is_end else fence or (marks[1] if marks else "")
        else:
            yield from read_line(line, number, page)
    yield from page.ended()


def read_line(line: str, number: int, page: Page) -> Iterator[PageNote]:
    """Yield the statement a line ends, and take in what it begins or goes on with."""
    if is_rule(line):
        yield from page.ended()
    elif heading := HEADING.match(line):
        yield from page.ended()
        begin_section(len(heading[1]), title_of(heading[2]), page)
    elif bullet := BULLET.match(line):
        yield from page.ended()
        begin_item(bullet, number, page)
    elif page.open and not line.lstrip().startswith("|"):
        page.lines.append(cleaned(line))
    else:
        yield from page.ended()
        page.items = page.items if line.startswith((" ", "\t")) else []
        page.begin(number, cleaned(line.replace("|", " ") if line.lstrip().startswith("|") else line))


def is_rule(line: str) -> bool:
    """Tell whether a line only divides: it is empty, three or more of one mark, or the rule below a table's head."""
    marks = "".join(line.split())
    kinds = set(marks)
    is_break = len(kinds) == 1 and kinds <= set("-*_") and len(marks) >= 3  # noqa: PLR2004 — as Markdown has it
    return not marks or is_break or set("|-") <= kinds <= set("|:-")


def title_of(text: str) -> str:
    """Return the words of a heading, without the marks that may close it: `Notes ##` is `Notes`, and `C#` stays."""
    bare = text.rstrip().rstrip("#")
    return cleaned(text if bare and not bare[-1].isspace() else bare)


def begin_section(level: int, title: str, page: Page) -> None:
    """Begin what stands under a heading; one that looks as if it held a credential is told by the one above it."""
    page.headings = [each for each in page.headings if each[0] < level]
    page.items = []
    if looks_secret(title):
        page.left_out[HIDDEN_TITLES] += 1
    elif title:
        page.headings.append((level, title[:MAX_STATEMENT_CHARACTERS]))


def begin_item(bullet: re.Match[str], number: int, page: Page) -> None:
    """Begin an item of a list, under the item it is indented below."""
    depth, text = len(bullet[1].expandtabs(4)), cleaned(bullet["text"])
    page.items = [each for each in page.items if each[0] < depth]
    tags = ({" ": "open"}.get(bullet["box"], "done"),) if bullet["box"] else ()
    page.begin(number, text, under=page.items[-1][1] if page.items else None, tags=tags)
    page.items.append((depth, "" if looks_secret(text) else text[:MAX_STATEMENT_CHARACTERS]))


def cleaned(text: str) -> str:
    """Return a line without its marks: links as their words, no emphasis, no quotation marks before it; code stays."""
    spans: list[str] = []

    def kept(found: re.Match[str]) -> str:
        spans.append(found[0])
        return f"\x00{len(spans) - 1}\x00"

    plain = CODE_SPAN.sub(kept, text.replace("\x00", "").strip().lstrip(">").strip())
    plain = WIKI_LINK.sub(lambda found: found[2] or found[1], plain)
    plain = EMPHASIS.sub(r"\2", LINK.sub(r"\1", plain))
    return KEPT_SPAN.sub(lambda found: spans[int(found[1])], plain).strip()


def split_front(text: str) -> tuple[dict[str, list[str]], int]:
    """Return what stands at the top of a page between lines of `---`, and how many lines that took."""
    lines = text.splitlines()
    if not lines or lines[0].strip() != "---":
        return {}, 0
    end = next((number for number, line in enumerate(lines[1:], start=1) if line.strip() in ("---", "...")), None)
    if end is None:
        return {}, 0
    front: dict[str, list[str]] = {}
    name = ""
    for line in lines[1:end]:
        if entry := ENTRY.match(line):
            name = entry[1].strip().casefold()
            front[name] = values_in(entry[2])
        elif line.strip().startswith("- ") and name:
            front[name] += values_in(line.strip()[2:])
    return front, end + 1


def values_in(text: str) -> list[str]:
    """Return the value of an entry at the top of a page, or those of a list in brackets."""
    inner = text.strip()
    listed = inner[1:-1].split(",") if inner.startswith("[") and inner.endswith("]") else [inner]
    return [value for value in (each.strip().strip("\"'") for each in listed) if value]


def stated_moment(front: Mapping[str, list[str]], path: Path) -> datetime | None:
    """Return when a page was written as its top says, or else its name; None where neither can be read."""
    for name in DATES:
        found = read_moment(front[name][0].split(" #")[0].strip("\"'[] ")) if front.get(name) else None
        if found:
            return found
    for year, month, day in DATED_NAME.findall(path.stem):
        try:
            return datetime(int(year), int(month), int(day), tzinfo=UTC)
        except ValueError:
            continue
    return None


def unread_date(text: str, front: Mapping[str, list[str]], path: Path) -> tuple[int, str] | None:
    """Return the line of a date no other stands in for, and what is wrong with it; None where the page can be dated."""
    stated = next((name for name in DATES if front.get(name)), None)
    if stated is None or stated_moment(front, path):
        return None
    entries = enumerate(map(ENTRY.match, text.splitlines()), start=1)
    number = next(number for number, entry in entries if entry and entry[1].strip().casefold() == stated)
    example = "write it as ISO 8601, such as 2026-05-04"
    return number, f"{stated} {front[stated][0]!r} is no date; {example}, and import the page again"


def changed_moment(path: Path) -> datetime:
    """Return when a file was changed last; raise `InvalidInput` when it can't be read."""
    try:
        return in_utc(datetime.fromtimestamp(path.stat().st_mtime, UTC))
    except OSError as error:
        raise InvalidInput(f"can't read {path}: {error.strerror}; name a page of Markdown") from error
