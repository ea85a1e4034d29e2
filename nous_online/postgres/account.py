"""Which account runs the server: ours, or, for root, whom PostgreSQL would refuse, one without privileges."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from nous_online.errors import InvalidInput, Unavailable

SHELTER = Path("/var/lib/nous")  # root's default home, and where root puts what the account could not reach otherwise


@dataclass(frozen=True)
class Account:
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


def is_root() -> bool:
    """Say whether this process has root's powers; never on Windows."""
    return hasattr(os, "geteuid") and os.geteuid() == 0


def account_for(data: Path | None) -> Account | None:
    """Return the account to run the server under, None for our own.

    For root that is the owner of existing data, else NOUS_PG_USER, else `postgres`, else `nobody`.
    """
    if not is_root():
        return None
    owner = data.stat().st_uid if data and data.exists() else 0
    return _account(owner) if owner else _configured()


def _configured() -> Account:
    if name := os.environ.get("NOUS_PG_USER"):
        account = _account(name)
        if account is None or account.uid == 0:
            raise InvalidInput(f"NOUS_PG_USER={name} must name an existing account other than root.")
        return account
    account = _account("postgres") or _account("nobody")
    if account is None:
        raise Unavailable(
            "PostgreSQL refuses to run as root, and neither `postgres` nor `nobody` exists here: create an account and "
            "name it in NOUS_PG_USER, or run as an ordinary user."
        )
    return account


def _account(who: str | int) -> Account | None:
    import pwd

    try:
        entry = pwd.getpwuid(who) if isinstance(who, int) else pwd.getpwnam(who)
    except KeyError:
        return None if isinstance(who, str) else Account(str(who), who, who, ())
    groups = tuple(os.getgrouplist(entry.pw_name, entry.pw_gid))
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid, groups)


def run_as(account: Account | None, command: list[str], *, cwd: Path, output: int, timeout_s: float) -> int:
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
