"""A release: its bill of materials, the licences of all it installs, the look for vulnerabilities, and its wheel."""

from __future__ import annotations

import json
import os
import zipfile
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from osv_server import osv
from typer.testing import CliRunner

from release.__main__ import app
from release.licences import NAMED, UnknownLicence, is_allowed, licence_of, licences
from release.lock import ROOT, pin, pins
from release.sbom import bill_of_materials
from release.wheel import PACKAGES, WrongWheel, build_wheel, git, require_right

MADE_AT = datetime(2026, 6, 1, tzinfo=UTC)
HASH = f"--hash=sha256:{'0' * 64}"
EVERYWHERE = (
    f"alpha==1.0 ; python_full_version < '3.12' {HASH}",
    f"alpha==2.0 ; python_full_version >= '3.12' {HASH}",
    f"beta==1.5 ; sys_platform == 'beos' {HASH}",
)


@pytest.fixture(scope="module")
def bill() -> str:
    return bill_of_materials(made_at=MADE_AT)


def test_the_bill_of_materials_is_valid_and_names_each_pin_once(bill: str) -> None:
    components = json.loads(bill)["components"]

    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(bill) is None
    assert Counter((each["name"], each["version"]) for each in components) == Counter(
        (pin.name, pin.version) for pin in pins()
    )
    hashes = {each["purl"]: {one["content"] for one in each["hashes"]} for each in components}
    assert hashes == {f"pkg:pypi/{pin.name}@{pin.version}": set(pin.sha256) for pin in pins()}
    assert [each["name"] for each in components if not each["licenses"]] == []


def test_every_package_of_this_platform_is_in_the_bill_because_another_asks_for_it(bill: str) -> None:
    made = json.loads(bill)
    asked_for = {ref for each in made["dependencies"] for ref in each.get("dependsOn", ())}
    elsewhere = {f"pkg:pypi/{pin.name}@{pin.version}" for pin in pins() if pin.marker}

    assert {each["bom-ref"] for each in made["components"]} - asked_for - elsewhere == set()


def test_the_same_lock_gives_the_same_bill(bill: str) -> None:
    assert bill_of_materials(made_at=MADE_AT) == bill


def test_everything_that_is_installed_may_be_used_by_software_under_our_licence() -> None:
    found = licences()

    assert {name: licence for name, licence in found.items() if not is_allowed(name, licence)} == {}
    assert set().union(*NAMED.values()) <= set(found)


@pytest.mark.parametrize(
    ("name", "licence", "is_fitting"),
    [
        ("rich", "MIT", True),
        ("rich", "GPL-3.0-only OR MIT", True),
        ("rich", "GPL-3.0-only AND MIT", False),
        ("rich", "AGPL-3.0-or-later", False),
        ("rich", "LGPL-3.0-only", False),
        ("psycopg", "LGPL-3.0-only", True),
        ("psycopg", "GPL-3.0-only", False),
        ("rich", "Apache-2.0 WITH LLVM-exception", False),
    ],
)
def test_strong_copyleft_is_refused_and_weak_copyleft_is_for_those_named(name, licence, is_fitting) -> None:
    assert is_allowed(name, licence) is is_fitting


def test_a_package_whose_licence_cannot_be_told_is_named() -> None:
    with pytest.raises(UnknownLicence, match=r"licence of no-such-package .* enter it in STATED"):
        licence_of("no-such-package")


def test_what_is_not_pinned_is_refused() -> None:
    with pytest.raises(ValueError, match="rich is not pinned"):
        pin("rich>=14 --hash=sha256:0")


def lock_of(folder: Path, *lines: str) -> Path:
    path = folder / "requirements.lock"
    path.write_text("\n".join(lines), "utf-8")
    return path


def test_an_audit_asks_about_every_pin_of_every_platform(tmp_path: Path) -> None:
    lock = lock_of(tmp_path, *EVERYWHERE)

    with osv({"beta": "1.6"}) as (service, asked):
        ended = CliRunner().invoke(app, ["audit", "--lock", str(lock), "--service", service, "--json"])

    (found,) = json.loads(ended.stdout)["vulnerabilities"]
    assert (ended.exit_code, sorted(asked)) == (1, ["alpha 1.0", "alpha 2.0", "beta 1.5"])
    assert (found["package"], found["id"], found["fixed_in"]) == ("beta", "PYSEC-2026-1", ["1.6"])


def test_only_an_audit_that_was_answered_says_that_there_is_nothing(tmp_path: Path) -> None:
    lock = lock_of(tmp_path, f"alpha==1.0 {HASH}")

    with osv({}) as (service, _):
        answered = CliRunner().invoke(app, ["audit", "--lock", str(lock), "--service", service])
    unanswered = CliRunner().invoke(app, ["audit", "--lock", str(lock), "--service", service])

    assert (answered.exit_code, answered.stdout) == (0, "no known vulnerability in 1 packages\n")
    assert unanswered.exit_code == 3
    assert "nothing is known" in unanswered.stdout


@pytest.fixture
def clone(tmp_path: Path) -> Callable[[str], Path]:
    """Make a clone of the working tree as it stands, at whatever moment and place."""
    if not (ROOT / ".git").exists():
        pytest.skip("a wheel is built from a commit, and this is no clone")
    commit = git("stash", "create").decode().strip() or "HEAD"

    def cloned(name: str) -> Path:
        root = tmp_path / name
        git("clone", "--quiet", "--shared", "--no-checkout", str(ROOT), str(root))
        git("update-ref", "refs/heads/release", git("rev-parse", commit).decode().strip(), root=root)
        return root

    return cloned


def test_the_wheel_holds_every_file_of_the_packages_and_nothing_else(clone, tmp_path: Path) -> None:
    wheel = build_wheel(tmp_path / "built", commit="release", root=clone("here"))

    committed = {name for name in git("ls-files").decode().splitlines() if name.split("/")[0] in {*PACKAGES, "sql"}}
    found = {name.replace("nous_sql/", "sql/") for name in zipfile.ZipFile(wheel).namelist()}
    assert {name for name in found if ".dist-info/" not in name} == committed


@pytest.mark.skipif("NOUS_DRILLS" not in os.environ, reason="builds two wheels, ten seconds: `make drills`")
def test_the_wheel_of_a_commit_is_the_same_bytes_wherever_and_whenever_it_is_built(clone, tmp_path, monkeypatch):
    one = build_wheel(tmp_path / "one", commit="release", root=clone("here"))
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1")
    os.umask(0o077)
    other = build_wheel(tmp_path / "other", commit="release", root=clone("elsewhere"))

    assert one.read_bytes() == other.read_bytes()


def test_a_wheel_that_holds_anything_else_is_refused(tmp_path: Path) -> None:
    wrong = tmp_path / "nous_pipelines-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(wrong, "w") as wheel:
        for name in ("nous_online/py.typed", "nous_pipelines/a.py", "nous_sql/schema.sql", "tests/conftest.py"):
            wheel.writestr(name, "")

    with pytest.raises(WrongWheel, match=r"has \['tests'\] beside our packages, and lacks \[\]"):
        require_right(wrong)
