"""Measurements of Nous against its peers: `python -m benchmarks NAME`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from nous_online.errors import NotFound


def cases(data: Path, name: str) -> list[dict[str, Any]]:
    """Return the rows of `name`.jsonl in the folder of public cases; raise `NotFound` naming a missing file."""
    file = data / f"{name}.jsonl"
    if not file.is_file():
        message = f"{file} is missing; give the folder that holds it with --data"
        raise NotFound(message)
    return [json.loads(line) for line in file.read_text("utf-8").splitlines() if line.strip()]
