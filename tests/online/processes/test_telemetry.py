"""Nothing is reported to anybody: the libraries that would by default are told not to."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

EMBEDS = "from nous_online.language.minilm import LocalMiniLM; LocalMiniLM().embed_documents(['oats'])"


def files_after(home: Path, program: str) -> list[Path]:
    """Return the files in a home after a program, run as outside of CI, where such libraries are silent."""
    silent = {"CI", "GITHUB_ACTIONS", "XDG_CACHE_HOME", "ORT_DISABLE_TELEMETRY", "DO_NOT_TRACK"}
    outside = {name: value for name, value in os.environ.items() if name not in silent}
    environment = outside | {"HOME": str(home), "USERPROFILE": str(home)}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment, timeout=120)
    return [path for path in home.rglob("*") if path.is_file()]


def test_embedding_leaves_no_report_to_the_maker_of_the_runtime(tmp_path: Path) -> None:
    alone, embedding = tmp_path / "alone", tmp_path / "embedding"
    for home in (alone, embedding):
        home.mkdir()

    assert files_after(alone, "import onnxruntime")  # as it comes, it does
    assert files_after(embedding, EMBEDS) == []
