"""The languages that can be read, and their parsers; tree-sitter is imported when the first of them is asked for."""

from __future__ import annotations

from functools import cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Literal

from nous_online.core.errors import Unsupported

if TYPE_CHECKING:
    from tree_sitter import Parser

Language = Literal["python", "typescript", "tsx", "javascript", "go"]
SUFFIXES: dict[str, Language] = {
    ".py": "python", ".pyi": "python", ".ts": "typescript", ".mts": "typescript", ".cts": "typescript", ".tsx": "tsx",
    ".js": "javascript", ".jsx": "javascript", ".mjs": "javascript", ".cjs": "javascript", ".go": "go",
}  # fmt: skip


def language_of(path: str) -> Language | None:
    """Return the language a file is written in, told by its ending; None for one that can't be read."""
    return SUFFIXES.get(PurePosixPath(path.replace("\\", "/")).suffix.lower())


@cache
def parser_of(language: Language) -> Parser:
    """Return the parser of a language; raise `Unsupported` where the extra `code` is not installed."""
    try:
        import tree_sitter
        import tree_sitter_go
        import tree_sitter_javascript
        import tree_sitter_python
        import tree_sitter_typescript
    except ModuleNotFoundError as error:
        absent = f"reading source needs the extra `code` ({error.name} is not installed)"
        raise Unsupported(f"{absent}; run: pip install 'nous-pipelines[code]'") from error
    grammars = {
        "python": tree_sitter_python.language,
        "typescript": tree_sitter_typescript.language_typescript,
        "tsx": tree_sitter_typescript.language_tsx,
        "javascript": tree_sitter_javascript.language,
        "go": tree_sitter_go.language,
    }
    return tree_sitter.Parser(tree_sitter.Language(grammars[language]()))
