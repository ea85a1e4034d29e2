"""The pages that teach by doing run as they stand, against the real server, the real model and a real night."""

from __future__ import annotations

import re

import pytest
from executed_pages import DOCS, blocks_of, reading


@pytest.mark.parametrize("page", ["tutorial.md", "how-the-night-decides.md"])
def test_a_page_shows_what_happens_when_it_is_followed(page, database_url, tmp_path) -> None:
    blocks = blocks_of(DOCS / page)

    assert {"python", "console", "jsonl"} & {block.language for block in blocks}
    with reading(database_url, tmp_path, agent="aria") as reader:
        for block in blocks:
            reader.follow(block)


def test_pictures_show_no_number_that_their_page_does_not() -> None:
    page = (DOCS / "how-the-night-decides.md").read_text("utf-8")
    pictures = [DOCS / "images" / f"{name}.svg" for name in ("ageing", "cosines", "forgetting")]
    drawn = "".join(picture.read_text("utf-8") for picture in pictures)
    ticks = {"0.90", "0.91", "0.92", "0.93", "0.94", "0.95"}

    numbers = set(re.findall(r"\d+\.?\d*", " ".join(re.findall(r"<text[^>]*>([^<]*)</text>", drawn))))

    assert numbers - ticks - set(re.findall(r"\d+\.?\d*", page)) == set()
