"""Which account runs the server: ours, or, for root, whom PostgreSQL would refuse, one without privileges."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from nous_online.core.errors import InvalidInput, Unavailable
from nous_online.core.home import is_root


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
    if owner := _owner(data):
        return _account(owner) or SystemAccount(f"user {owner}", owner, owner, ())
    if name := os.environ.get("NOUS_PG_USER"):
        return _named(name)
    account = _account(_owner(home)) or _account("postgres") or _account("nobody")
    if account is None:
        raise Unavailable(
            "PostgreSQL refuses to run as root, and neither `postgres` nor `nobody` exists here: create an account and "
            "name it in NOUS_PG_USER, or run as an ordinary user."
        )
    return account


def give_to_owner(path: Path, home: Path) -> None:
    """Let what root made in somebody's home be theirs, so that they can go on without root."""
    if is_root():
        owner = home.stat()
        os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)


def _named(name: str) -> SystemAccount:
    account = _account(name)
    if account is None:
        raise InvalidInput(f"NOUS_PG_USER={name} must name an existing account other than root.")
    return account


def _owner(path: Path) -> int:
    return path.stat().st_uid if path.exists() else 0


def _account(who: str | int) -> SystemAccount | None:
    """Look an account up by name or number; None when there is none (initdb insists on an entry), or it is root."""
    import pwd

    try:
        entry = pwd.getpwuid(who) if isinstance(who, int) else pwd.getpwnam(who)
    except KeyError:
        return None
    if entry.pw_uid == 0:
        return None
    groups = tuple(os.getgrouplist(entry.pw_name, entry.pw_gid))
    return SystemAccount(entry.pw_name, entry.pw_uid, entry.pw_gid, groups)


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
