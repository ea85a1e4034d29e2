"""Where a file of source belongs, told from its path alone."""

from __future__ import annotations

from pathlib import PurePosixPath


def module_of(path: str) -> str:
    """Return the module of a file: its directory with "/" between its parts; "" for a file at the root."""
    parts = [part for part in PurePosixPath(path.replace("\\", "/")).parts if part not in {"/", ".", ".."}]
    return "/".join(parts[:-1])
