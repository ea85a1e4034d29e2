"""Whether a lock file names a package with a known vulnerability: pip-audit asks OSV, and silence is no good answer."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from release.lock import RUN_TIME, Pin, pins

OSV = "https://api.osv.dev/v1/query"
TIMEOUT_S = 15
LONGEST_S = 900
LONGEST_REASON = 200


class NotAudited(Exception):
    """Some packages could not be asked about, so nobody knows whether they are vulnerable."""


@dataclass(frozen=True)
class Vulnerability:
    """What is known against one pinned package; without `fixed_in` there is no release that mends it yet."""

    package: str
    version: str
    id: str
    aliases: tuple[str, ...]
    fixed_in: tuple[str, ...]
    description: str


def audit(lock: Path = RUN_TIME, *, service: str = OSV) -> list[Vulnerability]:
    """Return the known vulnerabilities of every pin of a lock file, for all platforms alike.

    Needs the network: each package is asked about at `service`, an address that speaks OSV's API. Raises `NotAudited`
    unless every single one got an answer.
    """
    wanted = pins(lock)
    with tempfile.TemporaryDirectory() as folder:
        answers = [answer for part in parts(wanted, Path(folder)) for answer in asked(part, service=service)]
    answered = {(each["name"], each["version"]) for each in answers if "version" in each}
    silent = [str(pin) for pin in wanted if (pin.name, pin.version) not in answered]
    if silent:
        raise NotAudited(f"no answer about {len(silent)} of {len(wanted)} packages, such as {silent[0]}")
    return [vulnerability(each, one) for each in answers for one in each["vulns"]]


def parts(wanted: Sequence[Pin], folder: Path) -> Iterator[Path]:
    """Write pins as files for pip-audit, without markers, by which it would leave some out; a package once a file."""
    left = list(wanted)
    while left:
        part = {pin.name: pin for pin in reversed(left)}
        left = [pin for pin in left if part[pin.name] is not pin]
        path = folder / f"{len(left)}.txt"
        lines = [f"{pin.name}=={pin.version} --hash=sha256:{pin.sha256[0]}\n" for pin in part.values()]
        path.write_text("".join(lines), "utf-8")
        yield path


def asked(part: Path, *, service: str) -> list[dict[str, Any]]:
    """Run pip-audit over one file and return what it says of each package; raises `NotAudited`."""
    told = part.with_suffix(".json")
    command = [sys.executable, "-m", "pip_audit", "--requirement", str(part), "--no-deps", "--disable-pip"]
    command += ["--require-hashes", "--vulnerability-service", "osv", "--osv-url", service, "--timeout", str(TIMEOUT_S)]
    command += ["--format", "json", "--output", str(told), "--progress-spinner", "off"]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST_S, check=False)
        return json.loads(told.read_text("utf-8"))["dependencies"]
    except subprocess.TimeoutExpired as error:
        raise NotAudited(f"{service} took more than {LONGEST_S} s") from error
    except (OSError, ValueError) as error:
        reason = (ended.stderr.strip().splitlines() or ["pip-audit said nothing"])[-1][:LONGEST_REASON]
        raise NotAudited(f"{service} could not be asked: {reason}") from error


def vulnerability(package: dict[str, Any], found: dict[str, Any]) -> Vulnerability:
    """Return one entry of pip-audit's report as a value."""
    return Vulnerability(
        package=package["name"],
        version=package["version"],
        id=found["id"],
        aliases=tuple(found["aliases"]),
        fixed_in=tuple(found["fix_versions"]),
        description=found["description"],
    )
