"""The lock files as values: each pin with its version, its hashes and where it applies."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
RUN_TIME = ROOT / "requirements.lock"


@dataclass(frozen=True)
class Pin:
    """One package at one version, with the SHA-256 of each of its files; `marker` is empty where it always applies."""

    name: str
    version: str
    sha256: tuple[str, ...]
    marker: str

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


def pins(lock: Path = RUN_TIME) -> list[Pin]:
    """Return what a lock file names, in its order; a package may be there once for each of several markers."""
    lines = lock.read_text("utf-8").replace("\\\n", " ").splitlines()
    return [pin(line) for line in lines if line.strip() and not line.startswith("#")]


def pin(line: str) -> Pin:
    """Return one line of a lock file as a value; raises `ValueError` where it pins no version."""
    text, *hashes = line.split("--hash=sha256:")
    requirement = Requirement(text)
    (specifier,) = requirement.specifier
    if specifier.operator != "==":
        raise ValueError(f"{requirement.name} is not pinned: {text.strip()!r} (want name==version)")
    marker = str(requirement.marker or "")
    return Pin(canonicalize_name(requirement.name), specifier.version, tuple(each.strip() for each in hashes), marker)
