"""What a command is told: a text as an argument, or `-` for what stands on the standard input."""

from __future__ import annotations

import sys

from nous_online.core.errors import InvalidInput

STDIN = "-"


def said(text: str) -> str:
    """Return a text, or for `-` the standard input without the blanks around it.

    Raises `InvalidInput` for an input that is no UTF-8.
    """
    if text != STDIN:
        return text
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig").strip()
    except UnicodeDecodeError as error:
        raise InvalidInput(f"the standard input is no UTF-8 ({error}); convert it first, with iconv") from error
