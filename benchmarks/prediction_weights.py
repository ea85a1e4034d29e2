"""Learn the weights of predictions from the first halves of traces: `python -m benchmarks.prediction_weights DIR`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence, Set
from datetime import datetime
from pathlib import Path

import numpy as np

from benchmarks import cases
from benchmarks.prediction_sessions import Diary, Session, sessions_of
from nous_online.context.scorer import WEIGHTS, Floats, Signals, atoms_of, features

WARM_SHARE = 0.125
"""The part of a trace that is only lived through, so that there is something to learn from."""


def rows_of(trace: Sequence[Session]) -> Iterator[tuple[Floats, Floats]]:
    """Yield the features of every memory and whether it was used, when sessions of the first half begin and go on."""
    diary = Diary()
    for place, session in enumerate(trace[: len(trace) // 2]):
        if place < len(trace) * WARM_SHARE:
            diary.live(session)
            continue
        for done, (at, items) in enumerate(session.commits[:2]):
            later = {item for _, touched in session.commits[done:] for item in touched} - {items[0]}
            yield row_of(diary, session, items[0], later, at=at)
            diary.live(Session(session.id, session.commits[done : done + 1]))
        if len(session.commits) > 2:
            diary.live(Session(session.id, session.commits[2:]))


def row_of(diary: Diary, session: Session, opened: str, later: Set[str], *, at: datetime) -> tuple[Floats, Floats]:
    """Return the features of the memories, a column each, and which of them the session goes on to use."""
    atoms = atoms_of(Signals(current_file=opened), at=at)
    near = diary.near(opened)
    past = diary.past_for(session, atoms, at=at).with_memories(near)
    named = features(past, atoms, near)
    used_before = {past.memories[place] for place in past.in_use.tolist()} | {opened}
    open_to = np.array([memory not in used_before for memory in past.memories], bool)
    columns = [np.broadcast_to(named.get(name, 0.0), len(past.memories)) for name in WEIGHTS]
    return np.array(columns).T[open_to], np.array([memory in later for memory in past.memories], np.float64)[open_to]


def main() -> None:
    """Fit a logistic regression and print the weights that the traces say something about."""
    from sklearn.linear_model import LogisticRegression

    traces = sessions_of(cases(Path(sys.argv[1]), "usage_trace_git"))
    rows = [row for trace in traces for row in rows_of(trace)]
    features_seen, used = np.concatenate([x for x, _ in rows]), np.concatenate([y for _, y in rows])
    known = [bool(column.any()) for column in features_seen.T]
    fitted = LogisticRegression(max_iter=500).fit(features_seen[:, known], used)
    names = [name for name, is_known in zip(WEIGHTS, known, strict=True) if is_known]
    print({"BIAS": round(float(fitted.intercept_[0]), 2)})
    print({name: round(float(weight), 2) for name, weight in zip(names, fitted.coef_[0], strict=True)})


if __name__ == "__main__":
    main()
