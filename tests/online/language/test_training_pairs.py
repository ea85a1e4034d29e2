"""The pairs for training can be read, and their page counts them as they are."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path

from training.pairs.prepare import written_actions, written_pairs

PAIRS = Path(__file__).parents[3] / "training" / "pairs"
FAMILIES = {
    "U": {"plain", "chatty"},
    "D": {
        "direction", "tense", "modality", "quant", "degree", "role", "antonym", "relation", "entity", "multi", "topic",
        "time",
    },
}  # fmt: skip
ENDS = re.compile(r"[\"|\n]")
SHORTEST = 12  # characters of a statement that does not stand somewhere by chance
LABELS = {"S", "U", "N", "D", "R", "V", "C"}


@cache
def rows() -> list[tuple[str, str, str, str, str]]:
    """Return language, label, family, first and second statement of each pair."""
    return [(row["lang"], row["label"], row["family"], row["a"], row["b"]) for row in written_pairs()]


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


def test_every_action_stands_once_under_a_trigger_that_has_both_kinds() -> None:
    actions = list(written_actions())
    kinds: dict[str, set[bool]] = defaultdict(set)
    for row in actions:
        kinds[row["trigger"]].add(row["does"])

    assert len({(row["trigger"], row["action"]) for row in actions}) == len(actions)
    assert [trigger for trigger, found in kinds.items() if not trigger or found != {True, False}] == []


def test_no_pair_for_training_stands_in_a_test_or_on_a_page() -> None:
    root = PAIRS.parents[1]
    pages = [*(root / "tests").rglob("*.py"), *(root / "docs").glob("*.md"), root / "README.md"]
    statements = {text for row in rows() for text in row[3:]}
    quoted = {path: statements & {each.strip() for each in ENDS.split(path.read_text("utf-8"))} for path in pages}

    found = [(path, row[3:]) for path, texts in quoted.items() if texts for row in rows() if texts.issuperset(row[3:])]

    assert [each for each in found if min(map(len, each[1])) >= SHORTEST] == []
