"""Make the tables that tokens are counted by: `python -m training.trees.token_tables`.

`ctok` (MIT, needs Python 3.12) has what was measured of Claude's tokenizer; `o200k_base.tiktoken` is the table OpenAI
publishes with tiktoken (MIT), as `bpe-openai` (MIT) carries it.
"""

from __future__ import annotations

import base64
import gzip
import json
import lzma
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

import nous_online

MODELS = Path(nous_online.__file__).parent / "language" / "model"
VERSION = "4.8"
SURROGATES, BMP = range(0xD800, 0xE000), 0x10000


def claude() -> dict[str, Any]:
    """Return pieces, byte prefixes, and the characters of words and of punctuation as ranges."""
    ctok, notation, normalize = (import_module(f"ctok{each}") for each in ("", ".notation", ".normalize"))
    prefixes = sorted(piece for piece, proof in ctok.pieces(VERSION).items() if proof["kind"] == "prefix")
    pieces = {notation.parse_marked(each) for each in set(ctok.pieces(VERSION)) - set(prefixes)}
    endings = {f"{each}\ufdd1" for each in pieces if each[0] == "'" and each[1:].isalpha()}
    kinds = {chr(code): normalize.classify(chr(code)) for code in range(BMP) if code not in SURROGATES}
    bordered = {each for each in kinds if normalize._marks_like_punct(each) or normalize._digit_border(each)}
    punctuation = (each for each, kind in kinds.items() if kind == "punct" or (kind != "wordy" and each in bordered))
    return {
        "source": f"ctok {VERSION}, MIT License, Copyright (c) 2026 Sander Land",
        "pieces": sorted(pieces | endings),
        "prefixes": prefixes,
        "words": ranges(each for each, kind in kinds.items() if kind == "wordy"),
        "punctuation": ranges(punctuation),
    }


def ranges(characters: Iterable[str]) -> str:
    """Return characters, in order, as what stands between the brackets of a regular expression."""
    return "".join(f"\\u{first:04x}-\\u{last:04x}" for first, last in runs(map(ord, characters)))


def runs(codes: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last of each run of rising numbers."""
    told = sorted(codes)
    first = told[0]
    for code, following in zip(told, [*told[1:], -1], strict=True):
        if following != code + 1:
            yield first, code
            first = following


def openai() -> bytes:
    """Return, for each token but the 256 bytes, the numbers of the two it is made of: six planes of bytes."""
    packed = files("bpe_openai.data").joinpath("o200k_base.tiktoken.gz").read_bytes()
    lines = gzip.decompress(packed).split(b"\n")
    ranks = {base64.b64decode(token): int(rank) for token, rank in map(bytes.split, filter(None, lines))}
    pairs = np.array([halves(token, rank, ranks) for token, rank in ranks.items() if len(token) > 1], dtype=np.uint32)
    planes = [(pairs[:, side] >> shift).astype(np.uint8) for side in (0, 1) for shift in (16, 8, 0)]
    return lzma.compress(np.concatenate(planes).tobytes(), preset=9 | lzma.PRESET_EXTREME)


def halves(token: bytes, rank: int, ranks: Mapping[bytes, int]) -> tuple[int, int]:
    """Return the two tokens that were merged into this one."""
    parts = [bytes([each]) for each in token]
    while len(parts) > 2:  # noqa: PLR2004 (two halves)
        merged = [ranks.get(parts[place] + parts[place + 1], rank) for place in range(len(parts) - 1)]
        place = min(range(len(merged)), key=lambda each: merged[each])
        parts[place : place + 2] = [parts[place] + parts[place + 1]]
    one, other = parts
    return ranks[one], ranks[other]


if __name__ == "__main__":
    text = json.dumps(claude(), ensure_ascii=False, separators=(",", ":"))
    (MODELS / "claude_tokens.json").write_text(f"{text}\n", encoding="utf-8")
    (MODELS / "o200k_pairs.xz").write_bytes(openai())
