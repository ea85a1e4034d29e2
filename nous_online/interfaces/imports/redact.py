"""What of a history is never taken in: what looks as if it held a password, key, token or number of a card."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from nous_online.language.writing.credentials import holds_credential

HIDDEN_FACTS = "facts that look as if they hold a credential"
HIDDEN_TITLES = "headings and titles that look as if they hold a credential"
HIDDEN_LINES = "lines that look as if they hold a credential"
LEFT_OUT_LINE = "[a line was left out: it looks as if it holds a credential]"
KEY_BEGINS, KEY_ENDS = "-----BEGIN", "-----END"


def without_credentials(lines: Iterable[str], left_out: Counter[str]) -> Iterator[str]:
    """Yield lines, with a mark for each that looks as if it holds a credential, or for a whole block of a key."""
    is_in_key = False
    for line in lines:
        if is_in_key:
            is_in_key = KEY_ENDS not in line
        elif holds_credential(line):
            left_out[HIDDEN_LINES] += 1
            is_in_key = KEY_BEGINS in line and KEY_ENDS not in line
            yield LEFT_OUT_LINE
        else:
            yield line
