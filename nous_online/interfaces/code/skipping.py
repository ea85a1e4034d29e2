"""Why a file is not read: what is no source of the project's own, or can't be read at all."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from nous_online.interfaces.code.languages import SUFFIXES, language_of

LARGEST = 512 * 1024
"""Bytes; a larger file was hardly written by hand."""
LONGEST_LINE = 2_000
"""Characters; minified and generated source has longer ones."""
FOREIGN = frozenset(
    """node_modules vendor vendored third_party site-packages dist build out target .venv venv .git .tox __pycache__
    .next .nuxt coverage generated gen .mypy_cache .pytest_cache bower_components""".split()  # noqa: SIM905
)
_GENERATED_NAME = re.compile(r"(?:\.min\.|[._]pb2?[._]|[._]pb\.go$|_generated\.|\.generated\.|\.d\.ts$|bundle\.js$)")
_GENERATED_MARK = re.compile(
    rb"^[^\S\n]*+(?:#|//|/?\*)[^\n]{0,80}"
    rb"(?:@generated|code generated [^\n]{0,60}do not edit|auto-?generated (?:file|by|code))",
    re.IGNORECASE | re.MULTILINE,
)


def folder_reason(path: str) -> str | None:
    """Return the folder on a path that holds what others wrote or tools made, None where there is none."""
    for part in PurePosixPath(path.replace("\\", "/")).parts[:-1]:
        if part in FOREIGN:
            return f"{part} holds what others wrote or tools made"
    return None


def skip_reason(path: str, source: bytes) -> str | None:
    """Return why a file is not read, in words; None for one that is."""
    if language_of(path) is None:
        return f"no known language ends so; known: {' '.join(SUFFIXES)}"
    return folder_reason(path) or content_reason(path, source)


def content_reason(path: str, source: bytes) -> str | None:
    """Return what in a file tells that it was not written by hand, None where nothing does."""
    if len(source) > LARGEST:
        return f"{len(source):,} bytes are more than {LARGEST:,}"
    if b"\0" in source:
        return "it is binary"
    if _GENERATED_NAME.search(PurePosixPath(path).name) or _GENERATED_MARK.search(source[:2_000]):
        return "it was generated"
    if max(map(len, source.splitlines()), default=0) > LONGEST_LINE:
        return f"a line of it is longer than {LONGEST_LINE:,} characters"
    return None
