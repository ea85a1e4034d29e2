"""What a run without a server leaves out unread: nothing that it could have run."""

from __future__ import annotations

from pathlib import Path

import pytest
from unit_files import needs_server

STORED = """
@pytest.fixture
def stored(
    heart: Heart, count: int = len([1, 2])
) -> Iterator[dict[str, Heart]]:
    yield {}
"""


@pytest.mark.parametrize(
    ("text", "is_left_out"),
    [
        ("def test_one(database): ...", True),
        ("async def test_one(tmp_path: Path, *, owner: Connection) -> None: ...", True),
        ("class TestOne:\n    def test_one(self, server): ...", True),
        (f"{STORED}\ndef test_one(stored: dict[str, Heart]): ...", True),
        (f"{STORED}\ndef test_one(stored): ...\ndef test_two(tmp_path): ...", False),
        (f"{STORED}\ndef test_one(stored): ...\nasync def test_two(): ...", False),
        (f"{STORED}\ndef test_one(stored): ...\nclass TestTwo:\n    def test_two(self): ...", False),
        ("def test_one(owner): ...\ndef test_two(\n    told: str = read((1, (2, 3))),  # owner\n) -> None: ...", False),
        ("def test_one(heard: Callable[[server], None]): ...", False),
        ("@pytest.mark.usefixtures('database')\ndef test_one(): ...", False),
        ("from elsewhere import filled\ndef test_one(filled): ...", False),
        ("def helper(database): ...", False),
        ("def around(around): ...\ndef test_one(around): ...", False),
    ],
)
def test_a_file_is_left_out_where_each_of_its_tests_asks_for_the_server(text, is_left_out, tmp_path: Path):
    path = tmp_path / "test_drawn.py"
    path.write_text(text, "utf-8")

    assert needs_server(path) == is_left_out


@pytest.mark.integration
def test_no_test_of_a_file_that_is_left_out_can_do_without_the_server(request: pytest.FixtureRequest):
    left_out = {path for path in {item.path for item in request.session.items} if needs_server(path)}
    if not left_out:
        pytest.skip("this run has none of these files")

    assert not [
        item.nodeid
        for item in request.session.items
        if item.path in left_out and not item.get_closest_marker("integration")
    ]
