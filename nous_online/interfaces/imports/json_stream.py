"""The elements of a JSON array, however long it is: read piece by piece, each at most 64 Mi characters."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Collection, Iterator
from typing import Any, BinaryIO

from nous_online.core.errors import InvalidInput
from nous_online.interfaces.imports.records import refuse_constant

PIECE_BYTES = 1024 * 1024
MAX_ELEMENT_CHARACTERS = 64 * 1024 * 1024
MOST_TOLD = 5
"""Names of what an object holds instead of what was sought, for a message."""
BLANK = re.compile(r"[ \t\r\n]*")


class Unread:
    """The part of a JSON text that was read from a file and not taken yet."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._decode = codecs.getincrementaldecoder("utf-8-sig")().decode
        self._decoder = json.JSONDecoder(parse_constant=refuse_constant)
        self._text = ""
        self._at = 0
        self._is_all = False
        self.bytes_read = 0

    def more(self) -> bool:
        """Read on, twice as much each time for the same element; return whether there was anything."""
        if self._is_all:
            return False
        piece = self._file.read(max(PIECE_BYTES, len(self._text) - self._at))
        self.bytes_read += len(piece)
        self._is_all = not piece
        try:
            self._text = self._text[self._at :] + self._decode(piece, final=self._is_all)
        except UnicodeDecodeError as error:
            raise InvalidInput(f"the file is not UTF-8 ({error.reason}); convert it, or export it again") from error
        self._at = 0
        return bool(piece)

    def peek(self) -> str:
        """Return the next character that is not blank, without taking it; an empty text at the end."""
        while True:
            match = BLANK.match(self._text, self._at)
            self._at = match.end() if match else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if not self.more():
                return ""

    def take(self, character: str) -> None:
        """Take the next character, which must be this one."""
        found = self.peek()
        if found != character:
            raise InvalidInput(f"expected {character!r}, found {found or 'the end of the file'!r}; export it again")
        self._at += 1

    def value(self) -> Any:
        """Take the next JSON value; raise `InvalidInput` when it is broken, or longer than 64 Mi characters."""
        self.peek()
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._at)
            except RecursionError as error:
                raise InvalidInput("the JSON is nested too deeply") from error
            except ValueError as error:
                self._grow(error)
                continue
            if end < len(self._text) or self._is_all:  # else a number may go on
                self._at = end
                return value
            self.more()

    def _grow(self, error: ValueError) -> None:
        if isinstance(error, InvalidInput):
            raise error
        if len(self._text) - self._at > MAX_ELEMENT_CHARACTERS:
            raise InvalidInput(f"an element is longer than {MAX_ELEMENT_CHARACTERS:,} characters, or broken: {error}")
        if not self.more():
            raise InvalidInput(f"the JSON is broken or cut off: {error}; export it again") from error


def elements_of(unread: Unread, *, lists: Collection[str]) -> Iterator[Any]:
    """Yield the elements of an array, or of those an object holds under one of these names.

    Raises `InvalidInput` where the text is broken, after everything before, and where an object holds none of them.
    """
    if unread.peek() != "{":
        yield from array_elements(unread)
        return
    unread.take("{")
    others: list[str] = []
    is_found = False
    while unread.peek() not in ("}", ""):
        name = unread.value()
        unread.take(":")
        if name in lists and unread.peek() == "[":
            is_found = True
            yield from array_elements(unread)
        else:
            others += [str(name)[:40]] if len(others) < MOST_TOLD else []
            unread.value()
        if unread.peek() == ",":
            unread.take(",")
    unread.take("}")
    if not is_found:
        wanted, told = (" or ".join(map(repr, names)) for names in (lists, others))
        raise InvalidInput(f"expected a list, by itself or under {wanted}, found {told or 'nothing'}; export it again")


def array_elements(unread: Unread) -> Iterator[Any]:
    """Yield the elements of an array."""
    unread.take("[")
    while unread.peek() != "]":
        yield unread.value()
        if unread.peek() != "]":
            unread.take(",")
    unread.take("]")
