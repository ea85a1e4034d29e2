"""Whether an action sets off a trigger as written: linear in both texts, and no regular expression of a caller's."""

from __future__ import annotations

import re
from functools import lru_cache

from nous_online.core.errors import InvalidInput

WILDCARD, LINE, EDGE = "*", "\n", "\x00"  # no stored text holds a NUL, so it can mark where words begin and end
SPACES = re.compile(r"[^\S\n]+")
WHITE_SPACE = re.compile(r"\s+")
LINE_ENDS = re.compile(r" ?\n\s*+")  # in a text whose other white space is single
WORD_EDGES = re.compile(r"\b")
PIECES = re.compile(r"\\\*|\*|[^*\\]+|\\")


def normal(text: str) -> str:
    """Return a text case-folded with its white space single, as triggers are compared."""
    return WHITE_SPACE.sub(" ", text).strip().casefold()


def checked_literal(trigger: str) -> str:
    """Return a literal trigger; raise `InvalidInput` when nothing is left of it but wildcards."""
    if not any(piece.strip(f" {EDGE}") for piece in pattern(trigger)):
        raise InvalidInput(f"the literal trigger {trigger!r} would fit every action; write at least one word of it")
    return trigger


class ActionWording:
    """The wording of an action, prepared once for all literal triggers."""

    def __init__(self, action: str) -> None:
        folded = action.strip().casefold()
        self.flat = edged(WHITE_SPACE.sub(" ", folded))
        self.lines = edged(LINE_ENDS.sub(LINE, SPACES.sub(" ", folded)))
        self.longest_line = max(map(len, self.lines.split(LINE)))

    def holds(self, trigger: str) -> bool:
        """Tell whether a literal trigger occurs: case-folded, white space single, whole words at its ends.

        `*` stands for anything within a line and for a part of a word, `\\*` for an asterisk as written. Each piece
        is looked for once, from where the piece before it ended: leftmost is enough, so nothing is ever tried again.
        """
        pieces = pattern(trigger)
        if len(pieces) == 1:
            return pieces[0] in self.flat
        if sum(map(len, pieces)) > self.longest_line or not all(piece in self.lines for piece in pieces):
            return False
        start = 0
        while (start := self.lines.find(pieces[0], start)) >= 0:
            end = line_end(self.lines, start)
            if in_order(self.lines, pieces, start=start, end=end):
                return True
            start = end + 1  # past the line's end: a piece may be empty, and is found anywhere
        return False

    def holds_all_of(self, trigger: str) -> bool:
        """Tell whether a trigger in words occurs word for word, `*` as an asterisk."""
        return edged(normal(trigger)) in self.flat


@lru_cache(maxsize=4096)
def pattern(trigger: str) -> tuple[str, ...]:
    """Return the pieces of a literal trigger between its wildcards, marked where a word begins or ends.

    Where the trigger itself begins or ends with a letter or digit the word must begin or end too; beside a wildcard
    it need not.
    """
    parts = [""]
    for token in PIECES.findall(normal(trigger)):
        if token == WILDCARD:
            parts.append("")
        else:
            parts[-1] += WILDCARD if token == f"\\{WILDCARD}" else token
    marked = [edged(part) for part in parts]
    last = len(parts) - 1
    return tuple(
        (piece if place == 0 else piece.removeprefix(EDGE)) if place == last else opened(piece, is_first=place == 0)
        for place, piece in enumerate(marked)
    )


def opened(piece: str, *, is_first: bool) -> str:
    """Return a piece before a wildcard, whose last word may go on."""
    ended = piece.removesuffix(EDGE)
    return ended if is_first else ended.removeprefix(EDGE)


def edged(text: str) -> str:
    """Mark every edge of a word."""
    return WORD_EDGES.sub(EDGE, text)


def line_end(text: str, start: int) -> int:
    """Return where the line at `start` ends."""
    end = text.find(LINE, start)
    return len(text) if end < 0 else end


def in_order(text: str, pieces: tuple[str, ...], *, start: int, end: int) -> bool:
    """Tell whether all pieces occur between `start` and `end`, one after the other."""
    for piece in pieces:
        place = text.find(piece, start, end)
        if place < 0:
            return False
        start = place + len(piece)
    return True
