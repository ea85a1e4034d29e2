"""Gather what the pair reader is trained on: `python -m training.pairs.prepare --public DIR --out DIR`.

`--public` holds checkouts of public repositories whose licences allow training; README.md names them. The pairs written
for Nous are read from the folder of this file. Needs scikit-learn.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.censors import read_actions

HERE = Path(__file__).parent
HEADER = re.compile(r"#\s*trade:\s*(?P<trade>.+?)\s+lang:\s*(?P<lang>\w+)")
HELD_OUT = frozenset({"author_6", "author_8", "author_21", "actions_3", "actions_17"})
"""Hands that train nothing: operating points and calibration come from them."""
TABLES_OF_TESTS = ("drawn_actions", "seen_actions", "developed_actions")
NLI_LABELS = ("entailment", "neutral", "contradiction")
WORDING_LABELS = {
    "same": "S", "update": "U", "negation": "N", "distinct": "D", "refines": "R", "vaguer": "V", "contradiction": "C",
}  # fmt: skip
CLOSENESS = (0.12, 0.8)
"""Cosine of letter n-grams between which two statements of different pairs are near, and no rewording of each other."""
NEAREST = 2
MOST_OF_ONE_KIND = 1500
"""Rows of MoNLI, all of one pattern."""
PERSONA_PARTS = ("valid", "test")
FEWEST_WORDS, MOST_WORDS = 5, 40
"""Words of what somebody said in a chat, to be read."""
OF_ONESELF = re.compile(r"\b(?:i|my|mine|me|we|our|us)\b", re.IGNORECASE)
MOST_REQUESTS = 12_000
"""Statements of users of the schema-guided dialogues, of which there are far more."""


def main() -> None:
    """Write own.jsonl, near.jsonl, nli.jsonl, paws.jsonl, wording.jsonl, chats.jsonl and actions.jsonl."""
    parser = argparse.ArgumentParser(prog="python -m training.pairs.prepare", description=__doc__)
    parser.add_argument("--public", type=Path, required=True, help="folder with the sets that README.md names")
    parser.add_argument("--out", type=Path, required=True, help="where to write")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    own = list(written_pairs())
    tables = {
        "own": own,
        "near": neighbours(own),
        "nli": nli(options.public),
        "paws": paws(options.public),
        "wording": wording(options.public),
        "chats": [*personas(options.public), *requests(options.public)],
        "actions": list(written_actions()),
    }
    for name, rows in tables.items():
        lines = [json.dumps(row, ensure_ascii=False) for row in rows]
        (options.out / f"{name}.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
        print(f"{name:7} {len(rows):6} rows")  # noqa: T201 (the command's output)


def written_pairs() -> Iterator[dict[str, Any]]:
    """Yield the pairs written for Nous, with their hand and whether they are held out."""
    for path in sorted(HERE.glob("author_*.tsv")):
        lang = ""
        for line in filter(None, path.read_text("utf-8").split("\n")):
            if header := HEADER.match(line):
                lang = header["lang"]
                continue
            label, first, second = line.split("\t")
            kind, _, family = label.partition(":")
            yield {
                "a": first, "b": second, "label": kind, "family": family, "lang": lang, "author": path.stem,
                "is_held_out": path.stem in HELD_OUT,
            }  # fmt: skip


def written_actions() -> Iterator[dict[str, Any]]:
    """Yield the actions written for Nous, each with the trigger it was written under and whether it does that.

    Those of tables in tests come last; `unseen_actions` and `held_out_actions` measure, and are not among them.
    """
    for path in sorted(HERE.glob("actions_*.txt")):
        trigger = ""
        for line in filter(None, path.read_text("utf-8").split("\n")):
            if line.startswith(("  + ", "  - ")):
                yield {
                    "trigger": trigger, "action": line[4:], "does": line[2] == "+",
                    "is_held_out": path.stem in HELD_OUT,
                }  # fmt: skip
            else:
                trigger = line
    for name in TABLES_OF_TESTS:
        for pair in read_actions(HERE.parents[1] / "tests" / "support" / f"{name}.py"):
            yield {"trigger": pair.trigger, "action": pair.action, "does": pair.fires, "is_held_out": False}


def neighbours(own: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return statements of different pairs of one hand and language that look alike: both of each pair hold."""
    from sklearn.feature_extraction.text import TfidfVectorizer  # takes seconds, and the other functions need it not

    known = {frozenset((row["a"], row["b"])) for row in own}
    found: list[dict[str, Any]] = []
    for group in {(row["author"], row["lang"]) for row in own}:
        rows = [row for row in own if (row["author"], row["lang"]) == group]
        firsts, seconds = [row["a"] for row in rows], [row["b"] for row in rows]
        letters = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5), sublinear_tf=True).fit([*firsts, *seconds])
        for others in (seconds, firsts):
            closeness = (letters.transform(firsts) @ letters.transform(others).T).toarray()
            np.fill_diagonal(closeness, -1)
            for row, near in zip(rows, closeness, strict=True):
                found += [
                    {"a": row["a"], "b": others[at], "is_held_out": row["is_held_out"]}
                    for at in np.argsort(-near)[:NEAREST]
                    if CLOSENESS[0] < near[at] < CLOSENESS[1] and frozenset((row["a"], others[at])) not in known
                ]
    return sorted(found, key=lambda row: (row["a"], row["b"]))


def nli(public: Path) -> list[dict[str, str]]:
    """Return premise, hypothesis and label of SNLI's smaller parts, DNC's function words, MED and MoNLI."""
    rows: list[tuple[str, str, str]] = []
    for part in ("dev", "test"):
        files = [public / "e-SNLI" / "dataset" / "eSNLI" / f"{name}.{part}" for name in ("s1", "s2", "labels")]
        rows += zip(*(path.read_text("utf-8").splitlines() for path in files), strict=True)
    for path in sorted((public / "DNC" / "function_words" / "NLI").glob("nli-*_data.json")):
        rows += [(row["context"], row["hypothesis"], row["label"]) for row in json.loads(path.read_text("utf-8"))]
    for line in (public / "MED" / "MED.tsv").read_text("utf-8").splitlines()[1:]:
        cells = line.split("\t")
        rows.append((cells[8], cells[9], cells[15].strip()))
    one_pattern: list[tuple[str, str, str]] = []
    for name in ("nmonli_train.jsonl", "pmonli.jsonl"):
        lines = (public / "MoNLI" / name).read_text("utf-8").splitlines()
        one_pattern += [(row["sentence1"], row["sentence2"], row["gold_label"]) for row in map(json.loads, lines)]
    random.Random(1).shuffle(one_pattern)  # noqa: S311 (no secret)
    rows += one_pattern[:MOST_OF_ONE_KIND]
    return [
        {"a": joined(first), "b": joined(second), "label": label.strip()}
        for first, second, label in rows
        if label.strip() in NLI_LABELS and first.strip() and second.strip()
    ]


def paws(public: Path) -> list[dict[str, Any]]:
    """Return the pairs of pairs_paws.jsonl whose sentences are in no family of the benchmark's facts_pairs.jsonl."""
    benchmark = (json.loads(line) for line in (public / "facts_pairs.jsonl").open(encoding="utf-8"))
    tested = {family(row[side]) for row in benchmark for side in ("a", "b")}
    rows = (json.loads(line) for line in (public / "pairs_paws.jsonl").open(encoding="utf-8"))
    return [
        {"a": row["a"], "b": row["b"], "label": int(row["label"] == "duplicate")}
        for row in rows
        if not tested & {family(row["a"]), family(row["b"])}
    ]


def wording(public: Path) -> list[dict[str, Any]]:
    """Return the pairs of wording.jsonl with an even id; those with an odd one measure."""
    rows = (json.loads(line) for line in (public / "wording.jsonl").open(encoding="utf-8"))
    return [
        {"a": row["first"], "b": row["second"], "label": WORDING_LABELS[row["label"]], "family": ""}
        for row in rows
        if int(row["id"]) % 2 == 0
    ]


def personas(public: Path) -> list[dict[str, str]]:
    """Return what speakers of Synthetic-Persona-Chat are said to be, and what they say of themselves."""
    found: dict[str, None] = {}
    for part in PERSONA_PARTS:
        path = public / "Synthetic-Persona-Chat" / "data" / f"Synthetic-Persona-Chat_{part}.csv"
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                said = [line.partition(": ")[2] for line in row["Best Generated Conversation"].splitlines()]
                lines = [*row["user 1 personas"].splitlines(), *row["user 2 personas"].splitlines(), *said]
                found.update(dict.fromkeys(filter(is_statement, lines)))
    return [{"text": text, "set": "personas"} for text in found]


def requests(public: Path) -> list[dict[str, str]]:
    """Return what users of the schema-guided dialogues say they want and have."""
    found: dict[str, None] = {}
    for path in sorted((public / "dstc8-schema-guided-dialogue").glob("*/dialogues_*.json")):
        for dialogue in json.loads(path.read_text("utf-8")):
            said = (turn["utterance"] for turn in dialogue["turns"] if turn["speaker"] == "USER")
            found.update(dict.fromkeys(filter(is_statement, said)))
    chosen = random.Random(1).sample([*found], min(len(found), MOST_REQUESTS))  # noqa: S311 (no secret)
    return [{"text": text, "set": "requests"} for text in chosen]


def is_statement(text: str) -> bool:
    """Tell whether somebody says something of themselves, asking nothing, that is neither very short nor long."""
    return "?" not in text and FEWEST_WORDS <= len(text.split()) <= MOST_WORDS and OF_ONESELF.search(text) is not None


def family(text: str) -> str:
    """Return what all word orders of a sentence share."""
    return " ".join(sorted(re.findall(r"\w+", text.lower())))


def joined(tokens: str) -> str:
    """Return tokenised text as people write it."""
    text = tokens.strip().replace("-LRB-", "(").replace("-RRB-", ")").replace("``", '"').replace("''", '"')
    text = re.sub(r"\s+([.,!?;:%)])", r"\1", text)
    text = re.sub(r"\(\s+", "(", text)
    text = re.sub(r"\s+('s|n't|'re|'ve|'ll|'d|'m)\b", r"\1", text)
    return " ".join(text.split())


if __name__ == "__main__":
    main()
