"""The demo of each clone has a store of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from nous_online.core import files


def test_two_clones_under_one_home_do_not_share_a_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = list[Path]()
    for clone in ("one", "other", "one"):
        monkeypatch.setattr(files, "__file__", str(tmp_path / clone / "nous_online" / "core" / "files.py"))
        found.append(files.demo_home(tmp_path / "home"))

    one, other, again = found
    assert one != other
    assert one == again
    assert {one.parent, other.parent} == {tmp_path / "home"}
