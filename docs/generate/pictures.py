"""The drawings of docs/how-the-night-decides.md, light or dark as the reader's screen is."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

STYLE = """
    text { fill: #1f2328; text-anchor: middle }
    .left { text-anchor: start }
    .quiet { fill: #59636e; font-size: 12px }
    .strong { font-weight: 600 }
    .box { fill: #f6f8fa; stroke: #818b98; stroke-width: 1.2 }
    .blue { fill: #ddf4ff; stroke: #0969da; stroke-width: 1.4 }
    .gate { fill: #fff8c5; stroke: #9a6700; stroke-width: 1.4 }
    .green { fill: #dafbe1; stroke: #1a7f37; stroke-width: 1.4 }
    .grey { fill: #eaeef2; stroke: #818b98; stroke-width: 1.2; stroke-dasharray: 4 3 }
    .line { fill: none; stroke: #59636e; stroke-width: 1.4 }
    .limit { fill: none; stroke: #9a6700; stroke-width: 1.4; stroke-dasharray: 5 4 }
    .head { fill: #59636e }
    @media (prefers-color-scheme: dark) {
      text { fill: #f0f6fc }
      .quiet { fill: #9198a1 }
      .box { fill: #151b23; stroke: #656c76 }
      .blue { fill: #0c2d4d; stroke: #4493f8 }
      .gate { fill: #341a00; stroke: #d29922 }
      .green { fill: #04260f; stroke: #3fb950 }
      .grey { fill: #212830; stroke: #656c76 }
      .line { stroke: #9198a1 }
      .limit { stroke: #d29922 }
      .head { fill: #9198a1 }
    }
"""
ARROW = (
    '<defs><marker id="arrow" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" '
    'orient="auto"><path class="head" d="M0 0 10 5 0 10z"/></marker></defs>'
)
FONT = "system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif"
WIDTH = 880


def drawing(title: str, height: int, parts: Iterable[str], *, width: int = WIDTH) -> str:
    """Return a whole picture: its title for those who can't see it, its colours, and what is drawn."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{escape(title)}" font-family="{FONT}" font-size="14">'
    )
    body = "\n".join(f"  {part}" for part in parts)
    return f"{head}\n  <title>{escape(title)}</title>\n  <style>{STYLE}  </style>\n  {ARROW}\n{body}\n</svg>\n"


def label(x: float, y: float, words: str, kind: str = "") -> str:
    """Return a line of text around `x`, or from it with the kind `left`."""
    marked = f' class="{kind}"' if kind else ""
    return f'<text{marked} x="{x:g}" y="{y:g}">{escape(words)}</text>'


def box(x: float, y: float, width: float, kind: str, *lines: str) -> str:
    """Return a box 56 high with one or two lines in it, the first of them strong."""
    middle = x + width / 2
    first = label(middle, y + (26 if len(lines) > 1 else 33), lines[0], "strong")
    second = label(middle, y + 44, lines[1], "quiet") if len(lines) > 1 else ""
    return f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{width:g}" height="56" rx="8"/>{first}{second}'


def arrow(path: str) -> str:
    """Return a line with a head at its end."""
    return f'<path class="line" d="{path}" marker-end="url(#arrow)"/>'


PAIRS = (
    (0.906, "blue", "an update", "3 ≠ 5"),
    (0.919, "gate", "a contradiction", "not"),
    (0.935, "green", "a duplicate", "30 = thirty"),
    (0.945, "grey", "a look-alike", "North ≠ South"),
)


def cosines() -> str:
    """Return the scale of cosines with four pairs on it, and the threshold that sorts none of them."""
    parts = ['<path class="line" d="M40 150H840"/>', '<path class="limit" d="M364 108V144"/>']
    parts += [label(364, 198, "from here on a pair may be a duplicate", "quiet")]
    for value in (0.90, 0.91, 0.92, 0.93, 0.94, 0.95):
        x = place(value)
        parts += [f'<path class="line" d="M{x:g} 146V154"/>', label(x, 172, f"{value:.2f}", "quiet")]
    for number, (value, kind, name, why) in enumerate(PAIRS):
        x, y = place(value), 30 if number % 2 else 62
        parts += [
            f'<path class="line" d="M{x:g} {y + 56}V144"/>',
            f'<circle class="{kind}" cx="{x:g}" cy="150" r="6"/>',
        ]
        parts += [box(x - 72, y, 144, kind, name, f"{why} · {value}")]
    return drawing("Four pairs of facts on a scale of cosines", 212, parts)


def place(value: float) -> float:
    """Return where a cosine lies on the scale."""
    return 60 + (value - 0.90) * 15_200


def verdicts() -> str:
    """Return the way of a pair from near each other to what becomes of it."""
    parts = [
        box(20, 142, 120, "box", "a near pair", "0.80 or more"),
        arrow("M140 170H176"),
        box(178, 142, 150, "gate", "guards", "does a value differ?"),
        arrow("M328 170H364"),
        box(366, 142, 130, "blue", "judge", "what is it?"),
    ]
    outcomes = (
        (20, "green", "same", "from 0.92 on merged: one points to the other"),
        (90, "blue", "same slot, stated later", "superseded: out of recall, in the store"),
        (160, "gate", "one denies the other", "contradiction: both stay, both marked"),
        (230, "box", "something else", "kept apart, and linked"),
        (300, "grey", "unsure", "kept apart; with a key, Claude is asked"),
    )
    for y, kind, verdict, follows in outcomes:
        parts += [arrow(f"M496 170C530 170 530 {y + 28} 562 {y + 28}"), box(564, y, 296, kind, verdict, follows)]
    parts += [label(253, 218, "where one differs, the", "quiet"), label(253, 234, "answer is never same", "quiet")]
    return drawing("From a near pair to what becomes of it", 372, parts)


TIERS = (
    ("raw", "the detail", 41),
    ("summary", "the summary", 24),
    ("compressed", "one line", 6),
    ("fossil", "the title", 3),
)
STEPS = ("7 days", "30 days", "90 days")


def ageing() -> str:
    """Return the four tiers of an episode, as high as they have words, and what lies in cold storage."""
    parts = [
        label(20, 24, "in reach of recall", "quiet left"),
        label(20, 252, "in cold storage, restorable", "quiet left"),
    ]
    for number, (tier, shown, words) in enumerate(TIERS):
        x, height = 40 + number * 215, 24 + words * 2.6
        parts += [f'<rect class="blue" x="{x}" y="{180 - height:g}" width="150" height="{height:g}" rx="8"/>']
        parts += [
            label(x + 75, 180 - height / 2 + 5, f"{words} words", "strong"),
            label(x + 75, 200, tier),
            label(x + 75, 218, shown, "quiet"),
        ]
        if number < len(STEPS):
            parts += [arrow(f"M{x + 154} 168H{x + 211}"), label(x + 182, 160, STEPS[number], "quiet")]
            parts += [box(x + 215, 264, 150, "grey", f"{words} words", shown)]
    return drawing("An episode condensed with age; what leaves lies in cold storage", 336, parts)


def forgetting() -> str:
    """Return the life of a value that another one took the place of."""
    steps = (
        ("green", "active", "learned 17 April", "recalled"),
        ("blue", "superseded", "a later value, 13 May", "by as_of, the day before"),
        ("grey", "archived", "20 June, 38 days on", "the same"),
    )
    parts: list[str] = []
    for number, (kind, state, when, found) in enumerate(steps):
        x = 20 + number * 310
        parts += [box(x, 40, 220, kind, state, when), label(x + 110, 120, f"found: {found}", "quiet")]
    parts += [arrow("M240 68H326"), arrow("M550 68H636")]
    parts += [label(285, 60, "an update", "quiet"), label(595, 60, "30 days", "quiet")]
    parts += ['<path class="line" d="M750 130V160H130V132" marker-end="url(#arrow)"/>']
    parts += [label(440, 178, "nous undo: back to what it was, unless something built on it", "quiet")]
    return drawing("A value from active to archived, and back", 196, parts)
