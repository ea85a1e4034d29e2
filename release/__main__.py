"""`python -m release`: what a release is checked by, from a clone."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from release.audit import OSV, NotAudited, audit
from release.lock import ROOT, RUN_TIME, pins
from release.sbom import bill_of_materials
from release.wheel import build_wheel, committed_at

VULNERABLE, NOT_AUDITED = 1, 3
app = typer.Typer(help=__doc__, no_args_is_help=True, add_completion=False, rich_markup_mode=None)
progress = Console(stderr=True)

Lock = Annotated[Path, typer.Option(help="The lock file to look at.", exists=True, dir_okay=False)]
Out = Annotated[Path, typer.Option(help="The folder to write to.", file_okay=False)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def made_at() -> datetime:
    """Return the moment what is made is dated: SOURCE_DATE_EPOCH where it is set, or that of the commit."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    return datetime.fromtimestamp(int(epoch), UTC) if epoch else committed_at()


def show(found: object, sentence: str, *, as_json: bool) -> None:
    """Print an answer, for a program or for a person."""
    typer.echo(json.dumps(found, indent=2) if as_json else sentence)


@app.command("sbom")
def make_sbom(out: Out = ROOT / "dist", lock: Lock = RUN_TIME, *, as_json: Json = False) -> None:
    """Write the bill of materials of the run-time lock, as CycloneDX 1.6 in JSON.

    Example: python -m release sbom --out dist
    """
    with progress.status("reading licences and requirements of the installed packages …"):
        text = bill_of_materials(lock, made_at=made_at())
        out.mkdir(parents=True, exist_ok=True)
        path = out / "nous-pipelines.cdx.json"
        path.write_text(text, "utf-8")
    found = {"path": str(path), "packages": len(pins(lock)), "sha256": sha256(text.encode()).hexdigest()}
    show(found, f"{path}: {found['packages']} packages", as_json=as_json)


@app.command("audit")
def look_for_vulnerabilities(lock: Lock = RUN_TIME, service: str = OSV, *, as_json: Json = False) -> None:
    """Ask whether the lock names a package with a known vulnerability. Needs the network.

    The exit code is 0 when every package was asked about and none is vulnerable, 1 when one is, and 3 when the service
    could not be asked about each of them: then nothing is known.

    Example: python -m release audit --json
    """
    try:
        with progress.status(f"asking {service} about {len(pins(lock))} packages …"):
            found = audit(lock, service=service)
    except NotAudited as error:
        show({"audited": False, "reason": str(error)}, f"not audited: {error}; nothing is known", as_json=as_json)
        raise typer.Exit(NOT_AUDITED) from error
    lines = [
        f"{each.package} {each.version}: {each.id}, fixed in {', '.join(each.fixed_in) or 'no release'}"
        for each in found
    ]
    listed = {"audited": True, "packages": len(pins(lock)), "vulnerabilities": [asdict(each) for each in found]}
    none = f"no known vulnerability in {listed['packages']} packages"
    show(listed, "\n".join(lines) or none, as_json=as_json)
    raise typer.Exit(VULNERABLE if found else 0)


@app.command("wheel")
def make_wheel(out: Out = ROOT / "dist", commit: str = "HEAD", *, as_json: Json = False) -> None:
    """Build the wheel of a commit: the same bytes wherever and whenever.

    What is not committed is not in it. Compare the checksum with that of another machine.

    Example: python -m release wheel --commit HEAD --out dist
    """
    with progress.status(f"building the wheel of {commit} …"):
        path = build_wheel(out, commit=commit)
    digest = sha256(path.read_bytes()).hexdigest()
    show({"path": str(path), "sha256": digest}, f"{path}\nsha256 {digest}", as_json=as_json)


if __name__ == "__main__":
    app()
