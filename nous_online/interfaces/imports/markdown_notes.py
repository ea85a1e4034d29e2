"""Notes in Markdown to facts: one for each list item, paragraph and table row, about the heading above it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

from nous_online.core.errors import InvalidInput
from nous_online.core.validation import MAX_NAMES
from nous_online.interfaces.imports.import_files import (
    HIDDEN_FACTS,
    HIDDEN_TITLES,
    MAX_LINE_BYTES,
    ImportItem,
    ReaderState,
    open_file,
)
from nous_online.interfaces.imports.records import (
    MAX_STATEMENT_CHARACTERS,
    SENTENCE_END,
    ImportedRecord,
    parse_moment,
    parts,
)
from nous_online.language.lexicon import PREFERENCE, RULE
from nous_online.language.writing.credentials import SHORT_ANSWER, holds_credential
from nous_online.language.writing.sentences import straighten_apostrophes

CONVENTIONS = re.compile(r"\b(?:conventions?|preferences?|rules|guidelines?|standards|code style)\b", re.IGNORECASE)
"""Headings of what holds for all work in a place, in English."""
DATES = ("updated", "updated_at", "modified", "last_modified", "date", "created", "created_at")
BOX = re.compile(r"\A\[([ xX])\]\s+")
"""The box of a task: empty, or ticked."""
ENTRY = re.compile(r"([A-Za-z][\w -]{0,50}):\s*(.*)")
WIKI_LINK = re.compile(r"!?\[\[([^\[\]|#]{0,200}+)(?:#[^\[\]|]{0,200}+)?(?:\|([^\[\]]{1,200}+))?\]\]")
LINK = re.compile(r"!?\[([^\]]{0,500}+)\]\([^)\s\[]{0,2000}+(?:\s++\"[^\"]{0,200}+\")?\)")
TAG = re.compile(r"(?<![\w#/&])#([A-Za-z][\w/-]{0,60})")
EMPHASIS = re.compile(r"(?<![\w/*])(?!__[a-z][a-z\d_]{0,50}__)(\*\*|__|\*(?!\*))(?=\S)(.{1,500}?)(?<=\S)\1(?!\w|\.\w)")
"""Not in `src/__init__.py`, `__name__` or `*.py`: these are names."""
VAULT_MARKS = (
    (re.compile(r"(?<![\w%])%%(?:[^%]|%(?!%)){0,2000}+%%(?!\w)"), ""),
    (re.compile(r"\[\^[^\]\s]{1,40}\]:?"), ""),
    (re.compile(r"\A\[![a-z-]{1,20}\][+-]?"), ""),
    (re.compile(r"==(?=\S)([^=]{1,300})(?<=\S)=="), r"\1"),
    (re.compile(r"(?<=\S) \^[A-Za-z\d-]{1,40}\Z"), ""),
    (re.compile(r"\A([A-Z][\w /-]{0,40})::(?= \S)"), r"\1:"),
)
"""What vaults such as Obsidian's write beside the text: comments, numbers of footnotes, kinds of a box, highlights, and
names of blocks and fields."""
CODE_SPAN = re.compile(r"(?<!`)(?P<ticks>`{1,3})(?!`).+?(?<!`)(?P=ticks)(?!`)")
CODE_OR_COMMENT = re.compile(rf"{CODE_SPAN.pattern}|<!--")
HTML_TAG = re.compile(r"</?[A-Za-z][^<>]*>")
KEPT_SPAN = re.compile("\x00(\\d{1,9})\x00")
DATED_NAME = re.compile(r"(?<!\d)(\d{4})-(\d\d)-(\d\d)(?!\d)")
NEAREST_CHARACTERS = 100
"""The end of the text above a statement, which is read with it: the name of a credential stands there."""
MAX_NESTING = 200
"""Lists, items and quotations within each other; deeper ones are not read."""
LEADS = (":", "\uff1a")
"""The last character of a text that leads to a list: each item of the list is read with that text."""
MIN_CHARACTERS = 3
"""A shorter text is a mark, not a statement."""
FILE_NAME = re.compile(r"\A\[[^\]\n]{1,200}\.mdx?\]\([^)\s]{1,2000}\)\s*(?:[\u2014\u2013:-]+)\s+(?=\S)")
"""How an entry of an index begins: with a link to the page it is about, named like its file."""
BLANK_FIELD = re.compile(r"(?:[^:\n]{1,60}: )?(?:\([^()\d]{1,200}\)|\?+|TBD|TODO|N/A)", re.IGNORECASE)
FORM_LINE = re.compile(r"[A-Z][\w /-]{0,40}: \S.*")
FORM_LINES = 2
"""So many lines of this form, and no others, make a paragraph a form: each of its lines is a statement."""
DAY_COLUMNS = ("date", "datum", "day", "when")
"""Columns of a table that say on which day a row was said, where they hold a date."""
ISO_DAY = re.compile(r"\d{4}-\d\d-\d\d")
BLANKS = "places that nobody filled in"
LEAD_INS = "lines that end with a colon, before nothing that is read"
CODE = "blocks of code"


@dataclass(frozen=True)
class PageNote:
    """A statement of a page: its line, and the headings and the list item above it."""

    line: int
    text: str
    headings: tuple[str, ...] = ()
    under: str = ""
    tags: tuple[str, ...] = ()
    said_at: datetime | None = None
    """The day in its row of a table; None for a statement that is dated by its page."""

    def digest(self, said: str) -> str:
        """Return what names a part of the statement in its page: a hash of its text, and of the day in its row."""
        dated = f"{said}\n{self.said_at:%Y-%m-%d}" if self.said_at else said
        return sha256(dated.encode("utf-8", "replace")).hexdigest()[:32]


@dataclass
class Page:
    """A page while it is read: its front matter and the lines of it, the headings above the reader's place, counts."""

    front: Mapping[str, list[str]]
    start: int = 0
    headings: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    left_out: Counter[str] = field(default_factory=Counter[str])
    read_at: datetime = field(default_factory=lambda: datetime.now(UTC))

    def note(
        self, line: int, text: str, under: str, tags: tuple[str, ...] = (), said_at: datetime | None = None
    ) -> Iterator[PageNote]:
        """Yield a statement at the reader's place, unless it is too short or a place that nobody filled in.

        A last sentence that ends with a colon is left out: here nothing is read that it leads to.
        """
        if text.endswith(LEADS):
            self.left_out[LEAD_INS] += 1
            text = text.removesuffix(SENTENCE_END.split(text)[-1]).strip()
        if BLANK_FIELD.fullmatch(text):
            self.left_out[BLANKS] += 1
        elif len(text) >= MIN_CHARACTERS:
            yield PageNote(line, text, tuple(title for _, title in self.headings), under, tags, said_at)


def read_markdown(path: Path, state: ReaderState) -> Iterator[ImportItem]:
    """Yield the statements of a page as facts, dated by its front matter, its name or the file's last change."""
    with open_file(path) as file:
        content = file.read(MAX_LINE_BYTES + 1)
    if len(content) > MAX_LINE_BYTES:
        yield ImportItem(1, len(content), problem=f"the page is longer than {MAX_LINE_BYTES:,} bytes; split it")
        return
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        yield ImportItem(1, len(content), problem=f"byte {error.start + 1} is not UTF-8; convert the page to UTF-8")
        return
    page = Page(front_matter(text)[0], read_at=state.now)
    said_at = stated_moment(page.front, path)
    if said_at is None and (problem := unread_date(text, page.front)):
        yield ImportItem(problem[0], len(content), problem=problem[1])
        return
    said_at = said_at or changed_at(path)
    for note in notes_of(text, page):
        yield from note_items(note, page, path, said_at=said_at, end=len(content), state=state)
    yield ImportItem(len(text.splitlines()), len(content), left_out=page.left_out)


def note_items(
    note: PageNote, page: Page, path: Path, *, said_at: datetime, end: int, state: ReaderState
) -> Iterator[ImportItem]:
    """Yield a statement as a fact, a long one in parts; one that looks as if it holds a credential is left out."""
    if is_secret(note):
        yield ImportItem(note.line, end, left_out={HIDDEN_FACTS: 1})
        return
    source = f"{path.absolute().parent.name}/{path.name}"
    above = note.under if note.under and not note.text.startswith(note.under) else None
    context = " > ".join(filter(None, (str(Path(source).with_suffix("")), *note.headings, above)))
    for part in parts(note.text, max_characters=MAX_STATEMENT_CHARACTERS):
        tags = dict.fromkeys((*page.front.get("tags", ())[: MAX_NAMES + 1], *note.tags, *TAG.findall(part)))
        fields: dict[str, Any] = {
            "content": part,
            "subject": (note.headings[-1] if note.headings else path.stem)[:500],
            "context": context[:MAX_STATEMENT_CHARACTERS],
            "tags": [tag.strip("#")[:100] for tag in tags if tag.strip("#")],
            "source": source[-500:],
            "learned_at": (note.said_at or said_at).isoformat(),
            "category": category_of(note, part),
        }
        digest = note.digest(f"{fields['subject']}\n{part}")
        name = state.seen.name(f"{path.name}:{digest}".encode(), within="markdown")
        yield ImportItem(note.line, end, ImportedRecord("fact", None, None, fields), name, part.encode())


def category_of(note: PageNote, text: str) -> str | None:
    """Return `convention`, `preference` or `rule`, by the headings above a note or by its own wording; None otherwise.

    What has one of these is told at the start of a session, whatever is asked.
    """
    if any(CONVENTIONS.search(heading) for heading in note.headings):
        return "convention"
    kinds = (("preference", PREFERENCE), ("rule", RULE))
    return next((kind for kind, pattern in kinds if pattern.search(straighten_apostrophes(text))), None)


def is_secret(note: PageNote) -> bool:
    """Return whether a statement looks as if it holds a credential, by itself or, if short, after the text above."""
    above = note.under or (note.headings[-1] if note.headings else "")
    is_short = len(note.text.split()) <= SHORT_ANSWER
    return holds_credential(note.text) or (is_short and holds_credential(f"{above[-NEAREST_CHARACTERS:]}: {note.text}"))


def notes_of(text: str, page: Page) -> Iterator[PageNote]:
    """Yield the statements of a page, of a table each row; code is left out."""
    page.front, page.start = front_matter(text)
    blocks = MarkdownIt("commonmark", {"maxNesting": MAX_NESTING}).enable("table").disable(["code", "inline"])
    tree = SyntaxTreeNode(blocks.parse("\n".join(text.splitlines()[page.start :])))
    yield from read_blocks(tree.children, page)


def read_blocks(
    nodes: Sequence[SyntaxTreeNode], page: Page, under: str = "", *, is_item: bool = False
) -> Iterator[PageNote]:
    """Yield the statements of blocks, or of the blocks of a list item.

    `under` is the nearest list item, or text that leads to a list, above them.
    """
    lead = ""
    for node in nodes:
        line = page.start + 1 + (node.map[0] if node.map else 0)
        match node.type:
            case "heading":
                begin_section(int(node.tag[1:]), plain_text(node.children[0].content), page)
            case "paragraph":
                under, lead = yield from read_paragraph(node, line, page, under, is_item=is_item)
                is_item = False
            case "table":
                yield from read_table(node, page, under)
            case "html_block":
                yield from page.note(line, plain_text(HTML_TAG.sub(" ", node.content)), under)
            case "fence":
                page.left_out[CODE] += 1
            case _:  # a list, an item or a quotation
                is_inner = node.type == "list_item" or (is_item and node.type == "blockquote")
                yield from read_blocks(node.children, page, lead or under, is_item=is_inner)
                lead = ""


def read_paragraph(
    node: SyntaxTreeNode, line: int, page: Page, under: str, *, is_item: bool
) -> Generator[PageNote, None, tuple[str, str]]:
    """Yield the statement of a paragraph; return the text above what follows it, and the text that leads to a list."""
    leads_to_list = node.next_sibling is not None and node.next_sibling.type.endswith("_list")
    content, lead = node.children[0].content, ""
    lines = content.splitlines()
    is_form = len(lines) >= FORM_LINES and all(map(FORM_LINE.fullmatch, lines))
    for number, text in enumerate(lines if is_form else [content]):
        is_first = is_item and not number
        box = BOX.match(text) if is_first else None
        said = plain_text(text[box.end() :] if box else text)
        if under.endswith(LEADS):
            said = f"{under} {said}"
        is_lead = leads_to_list and said.endswith(LEADS)
        if not is_lead:
            yield from page.note(line + number, said, under, ({" ": "open"}.get(box[1], "done"),) if box else ())
        shown = "" if holds_credential(said) else said[:MAX_STATEMENT_CHARACTERS]
        under, lead = (shown or under, lead) if is_first else (under, shown if is_lead else lead)
    return under, lead


def read_table(table: SyntaxTreeNode, page: Page, under: str) -> Iterator[PageNote]:
    """Yield each row of a table as "column: cell, column: cell"; the first row holds the names of the columns.

    A day on which the row was said dates it, and is no part of its text.
    """
    rows = [row for part in table.children for row in part.children]
    columns, *cells = [[plain_text(cell.children[0].content) for cell in row.children] for row in rows]
    for row, values in zip(rows[1:], cells, strict=True):
        named = [(name, value) for name, value in zip(columns, values, strict=False) if value]
        dates = ((each, day) for each in named if (day := day_said(*each, read_at=page.read_at)))
        dated, said_at = next(dates, (None, None))
        shown = [f"{name}: {value}" if name else value for name, value in named if (name, value) != dated]
        line = page.start + 1 + (row.map[0] if row.map else 0)
        yield from page.note(line, ", ".join(shown), under, said_at=said_at)


def day_said(column: str, cell: str, *, read_at: datetime) -> datetime | None:
    """Return the day in a cell of a column for days, from its beginning in UTC; None for one that is still to come."""
    if column.casefold() not in DAY_COLUMNS or not ISO_DAY.fullmatch(cell):
        return None
    day = parse_moment(cell)
    return day if day and day <= read_at else None


def begin_section(level: int, title: str, page: Page) -> None:
    """Make a heading the last of the open ones, except for one that looks as if it holds a credential."""
    page.headings = [each for each in page.headings if each[0] < level]
    if holds_credential(title):
        page.left_out[HIDDEN_TITLES] += 1
    elif title:
        page.headings.append((level, title[:MAX_STATEMENT_CHARACTERS]))


def plain_text(text: str) -> str:
    """Return Markdown as one line of plain text: links as their words, no marks, no comments; code as it is."""
    spans: list[str] = []

    def set_aside(found: re.Match[str]) -> str:
        # Marks in code are part of it, so its spans are replaced by their numbers until all marks are removed.
        spans.append(found[0])
        return f"\x00{len(spans) - 1}\x00"

    line = without_comments(" ".join(each.strip() for each in text.replace("\x00", "").splitlines()))
    plain = CODE_SPAN.sub(set_aside, FILE_NAME.sub("", line))
    plain = WIKI_LINK.sub(lambda found: found[2] or found[1], plain)
    plain = EMPHASIS.sub(r"\2", LINK.sub(r"\1", plain)).strip()
    for mark, written in VAULT_MARKS:
        plain = mark.sub(written, plain)
    return KEPT_SPAN.sub(lambda found: spans[int(found[1])], plain).strip()


def without_comments(text: str) -> str:
    """Return a text without its comments; one that never ends, or is in code, is not a comment."""
    kept, at = list[str](), 0
    for found in CODE_OR_COMMENT.finditer(text):
        if found["ticks"] or found.start() < at:
            continue
        end = text.find("-->", found.end())
        if end < 0:
            break
        kept.append(text[at : found.start()])
        at = end + len("-->")
    return "".join([*kept, text[at:]])


def front_matter(text: str) -> tuple[dict[str, list[str]], int]:
    """Return the entries at the top of a page between lines of `---`, and the number of those lines."""
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
    """Return the value of an entry of the front matter, or the values of a list in brackets."""
    inner = text.strip()
    listed = inner[1:-1].split(",") if inner.startswith("[") and inner.endswith("]") else [inner]
    return [value for value in (each.strip().strip("\"'") for each in listed) if value]


def stated_moment(front: Mapping[str, list[str]], path: Path) -> datetime | None:
    """Return when a page was written by its front matter, or else by its name; None without a valid date."""
    for name in DATES:
        found = parse_moment(front[name][0].split(" #")[0].strip("\"'[] ")) if front.get(name) else None
        if found:
            return found
    for year, month, day in DATED_NAME.findall(path.stem):
        try:
            return datetime(int(year), int(month), int(day), tzinfo=UTC)
        except ValueError:
            continue
    return None


def unread_date(text: str, front: Mapping[str, list[str]]) -> tuple[int, str] | None:
    """Return the line of the first date in the front matter and what is wrong with it; None if there is none."""
    stated = next((name for name in DATES if front.get(name)), None)
    if stated is None:
        return None
    entries = enumerate(map(ENTRY.match, text.splitlines()), start=1)
    number = next(number for number, entry in entries if entry and entry[1].strip().casefold() == stated)
    example = "write it as ISO 8601, such as 2026-05-04"
    return number, f"{stated} {front[stated][0]!r} is no date; {example}, and import the page again"


def changed_at(path: Path) -> datetime:
    """Return when a file was changed last; raise `InvalidInput` when it can't be read."""
    try:
        return datetime.fromtimestamp(path.stat().st_mtime, UTC)
    except OSError as error:
        raise InvalidInput(f"can't read {path}: {error.strerror}; name a page of Markdown") from error
