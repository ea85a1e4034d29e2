"""The benchmark `forgetting` on traces small enough to be counted by hand."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # benchmarks are run from the root, and not installed

from benchmarks.forgetting import BY_THE_BOOK, OWN, PEERS, hits_of, nights_of, of_one_day, read, run
from nous_pipelines.night_policy import NightPolicy

DAY = 86_400


def trace(*touches, repo="a/b"):
    """One repository's touches, each `(day, item)` a commit of its own; `(day, [items])` are one commit."""
    rows = []
    for place, (day, touched) in enumerate(touches):
        items = touched if isinstance(touched, list) else [touched]
        rows += [{"repo": repo, "t": int(day * DAY) + place, "commit": f"{place:05d}", "item": item} for item in items]
    (only,) = read(rows)
    return only


def test_repositories_are_read_apart_and_in_order():
    rows = [
        {"repo": repo, "t": t, "commit": f"{t}", "item": item}
        for repo, t, item in (("b", 5, "x"), ("a", 9, "y"), ("a", 3, "x"), ("a", 3, "y"))
    ]

    first, second = read(rows)

    assert (first.items.tolist(), first.moments.tolist(), first.commits) == ([0, 1, 1], [3, 3, 9], [(0, 2), (2, 3)])
    assert second.size == 1


def test_only_touches_of_known_items_can_be_hits():
    replayed = hits_of(trace((1, "x"), (2, "y"), (3, "x"), (4, ["x", "z"])))

    assert replayed.known == [1, 1]
    assert all(replayed.hits[name, 50] == [1, 1] for name in (OWN, *PEERS))


def test_what_is_used_often_is_kept_where_the_last_used_would_push_it_out():
    often = [(day, "often") for day in range(1, 41)]
    once = [(41, [f"once{n:02d}" for n in range(50)])]

    hits = hits_of(trace(*often, *once, (42, "often"))).hits

    assert sum(hits["lru", 50]) == 39
    assert sum(hits[OWN, 50]) == sum(hits["lfu", 50]) == sum(hits["two_decays", 50]) == 40


def test_touches_of_one_day_are_counted_together_up_to_the_last_known():
    counts, following = of_one_day(trace((1, "x"), (1.1, "x"), (1.2, "y"), (2, "x")))

    assert counts.tolist() == [1, 2, 1, 1]
    assert following.tolist() == [1, 5, 5, 5]


def test_an_item_archived_and_touched_again_within_ninety_days_is_counted_as_wrong():
    busy = [(day, "busy") for day in range(1, 400)]
    touches = sorted([*busy, (1, "soon"), (150, "soon"), (1, "late"), (300, "late"), (1, "never")], key=lambda t: t[0])

    found = nights_of([trace(*touches)], BY_THE_BOOK, every=20)

    assert (found.archived, found.wrongly) == (3, 1)


def test_the_default_policy_waits_where_a_trace_is_too_small_to_tell():
    busy = [(day, "busy") for day in range(1, 400)]

    found = nights_of([trace((1, "never"), *busy)], NightPolicy(), every=30)

    assert (found.archived, found.wrongly) == (0, 0)


@pytest.mark.parametrize("quick", [False, True])
def test_a_whole_run_measures_ours_beside_every_peer(tmp_path, quick):
    rows = [
        {"repo": repo, "t": int(day * DAY), "commit": f"{day:04d}", "item": f"item{day * day % 37}"}
        for repo in ("a/b", "c/d")
        for day in range(1, 110)
    ]
    (tmp_path / "usage_trace_git.jsonl").write_text("\n".join(map(json.dumps, rows)))

    measured = run(data=tmp_path, quick=quick)

    assert measured["metrics"]["hit_200"] == measured["metrics"]["best_peer_hit_200"] == 1
    assert {"lfu_hit_50", "lru_hit_50", "decayed_best_hit_50", "two_decays_hit_50"} < set(measured["peers"])
    assert {"by_the_book_wrongly_archived_ratio"} < set(measured["peers"])
    assert all(np.isfinite(value) for value in (*measured["metrics"].values(), *measured["peers"].values()))
