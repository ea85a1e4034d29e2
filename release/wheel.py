"""The wheel of a commit: the same bytes wherever and whenever it is built, with what Nous is and nothing else."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from datetime import UTC, datetime
from pathlib import Path

from release.lock import ROOT

BUILD = "from setuptools.build_meta import build_wheel; build_wheel('.')"
PACKAGES = {"nous_online", "nous_pipelines", "nous_sql"}
"""What the wheel puts beside other packages of an environment."""


class WrongWheel(Exception):
    """A wheel holds what it should not, or lacks what it should hold."""


def git(*words: str, root: Path = ROOT) -> bytes:
    """Return what git prints."""
    return subprocess.run(["git", *words], cwd=root, check=True, capture_output=True).stdout  # noqa: S607 (of the PATH)


def committed_at(commit: str = "HEAD", *, root: Path = ROOT) -> datetime:
    """Return when a commit was made: the moment that everything made from it is dated."""
    return datetime.fromtimestamp(int(git("log", "-1", "--format=%ct", commit, root=root)), UTC)


def build_wheel(folder: Path, *, commit: str = "HEAD", root: Path = ROOT) -> Path:
    """Build the wheel of a commit, look inside, put it into `folder` and return its path; raises `WrongWheel`.

    It is built from the files of the commit alone, dated by it, with the setuptools of this environment.
    """
    with tempfile.TemporaryDirectory() as draft:
        with tarfile.open(
            fileobj=io.BytesIO(git("-c", "tar.umask=0022", "archive", "--format=tar", commit, root=root))
        ) as archive:
            archive.extractall(draft, filter="data")
        epoch = str(int(committed_at(commit, root=root).timestamp()))
        environment = {**os.environ, "SOURCE_DATE_EPOCH": epoch}
        build = [sys.executable, "-c", BUILD]
        subprocess.run(build, cwd=draft, env=environment, umask=0o022, check=True, capture_output=True)
        (built,) = Path(draft).glob("*.whl")
        require_right(built)
        folder.mkdir(parents=True, exist_ok=True)
        return Path(shutil.copy(built, folder / built.name))


def require_right(wheel: Path) -> None:
    """Raise `WrongWheel` unless a wheel holds our packages, marked as typed, and nothing beside them."""
    names = set(zipfile.ZipFile(wheel).namelist())
    top = {name.split("/")[0] for name in names}
    strangers = {name for name in top - PACKAGES if not name.endswith(".dist-info")}
    missing = (PACKAGES - top) | ({"nous_online/py.typed"} - names)
    if strangers or missing:
        raise WrongWheel(f"{wheel.name} has {sorted(strangers)} beside our packages, and lacks {sorted(missing)}")
