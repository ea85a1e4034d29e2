"""The pairs for training can be read, and their page counts them as they are."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

PAIRS = Path(__file__).parents[1] / "training" / "pairs"
HEADER = re.compile(r"# trade: (?P<trade>.+)\tlang: (?P<lang>[a-z]{2})")
FAMILIES = {
    "U": {"plain", "chatty"},
    "D": {
        "direction", "tense", "modality", "quant", "degree", "role", "antonym", "relation", "entity", "multi", "topic",
        "time",
    },
}  # fmt: skip
LABELS = {"S", "U", "N", "D", "R", "V", "C"}


def rows() -> list[tuple[str, str, str, str, str]]:
    """Return language, label, family, first and second statement of each pair."""
    found: list[tuple[str, str, str, str, str]] = []
    for path in sorted(PAIRS.glob("*.tsv")):
        language = ""
        for line in filter(None, path.read_text("utf-8").split("\n")):
            if header := HEADER.fullmatch(line):
                language = header["lang"]
                continue
            label, first, second = line.split("\t")
            kind, _, family = label.partition(":")
            found.append((language, kind, family, first, second))
    return found


def test_every_pair_has_a_language_a_known_label_and_two_different_statements() -> None:
    odd = [
        row
        for row in rows()
        if not row[0]
        or row[1] not in LABELS
        or (row[2] and row[2] not in FAMILIES.get(row[1], set()))
        or not (row[3].strip() and row[4].strip())
        or row[3] == row[4]
    ]

    assert odd == []


def test_no_pair_stands_twice() -> None:
    twice = [pair for pair, count in Counter(row[3:] for row in rows()).items() if count > 1]

    assert twice == []


def test_the_page_counts_the_pairs_as_they_are() -> None:
    counts, page = Counter(row[1] for row in rows()), (PAIRS / "README.md").read_text("utf-8")
    stated = re.findall(r"^\| `(\w)`(?:, `(\w)`)? \|.*\| ([\d,]+)(?:, ([\d,]+))? \|$", page, re.MULTILINE)

    said = {
        label: int(count.replace(",", ""))
        for one, other, first, second in stated
        for label, count in ((one, first.rstrip(",")), (other, second))
        if label
    }

    assert said == counts
    assert f"{sum(counts.values()):,} pairs in {len({row[0] for row in rows()})} languages" in page
