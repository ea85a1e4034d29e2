"""What three tables of triggers and actions show of firing, on the local model: the figures of decision 0009."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import pytest
from drawn_actions import DRAWN, drawn_pairs
from seen_actions import SEEN
from unseen_actions import UNSEEN

from nous_online.checking import CheckDetails, Suspect, match_of, question
from nous_online.clauses import variants
from nous_online.embedding import LocalMiniLM, Vectors
from nous_online.policy import CensorPolicy
from nous_online.triggers import Wording

POLICY = CensorPolicy()
TABLES = {"drawn": DRAWN, "seen": SEEN, "unseen": UNSEEN}


class Texts(dict[str, Vectors]):
    """The vector of every text that is asked for, embedded once."""

    def __missing__(self, text: str) -> Vectors:
        self[text] = LocalMiniLM().embed_query(text)
        return self[text]


TEXTS = Texts()


def match(trigger: str, action: str) -> str | None:
    """Return how an action sets off a trigger, as a check finds it."""
    asked = question(action, CheckDetails(), now=datetime(2026, 5, 1, tzinfo=UTC), policy=POLICY)
    others = {text: TEXTS[text] for text in variants(trigger)}
    found: set[str] = set()
    for number, part in enumerate(asked.parts, 1):
        similarity = float(TEXTS[trigger] @ TEXTS[part])
        suspect = Suspect(UUID(int=1), trigger, False, "block", 50, [], number, similarity)  # noqa: FBT003
        if similarity >= POLICY.similarity_floor:
            each = match_of(asked, suspect, Wording(action), TEXTS[part], others, policy=POLICY)
            found |= {each.match} if each else set()
    return min(found, key=["near", "meaning"].index, default=None)


@pytest.mark.parametrize(
    ("table", "precision", "recall", "near_precision"),
    [("drawn", 0.892, 0.500, 1.0), ("seen", 0.798, 0.771, 0.968), ("unseen", 0.758, 0.625, 0.967)],
)
def test_firing_on_the_local_model_is_as_good_as_published(
    table: str, precision: float, recall: float, near_precision: float
) -> None:
    pairs = drawn_pairs(TABLES[table])
    matches = [(match(pair.trigger, pair.action), pair.fires) for pair in pairs]

    fired = [fires for found, fires in matches if found]
    near = [fires for found, fires in matches if found == "near"]

    assert sum(fired) / len(fired) >= precision - 0.01
    assert sum(fired) / sum(pair.fires for pair in pairs) >= recall - 0.01
    assert sum(near) / len(near) >= near_precision - 0.01


def test_an_action_of_another_trigger_hardly_ever_fires() -> None:
    pairs = drawn_pairs(UNSEEN)
    triggers = sorted({pair.trigger for pair in pairs})
    strangers = [(trigger, pair.action) for pair in pairs for trigger in triggers[::4] if trigger != pair.trigger]

    fired = [match(trigger, action) for trigger, action in strangers]

    assert len(strangers) > 3000
    assert sum(found is not None for found in fired) / len(strangers) <= 0.006
    assert fired.count("near") == 0


@pytest.mark.parametrize(
    ("trigger", "action", "expected"),
    [
        ("pushing directly to main branch", "git push origin main", "near"),
        ("pushing directly to main branch", "git push origin feature/login", None),
        ("pushing directly to main branch", "git pull origin main", None),
        ("pushing directly to main branch", "pushing directly to main branch", "near"),
        ("booking flights before 8 am", "book the 7:15 flight", "near"),
        ("booking flights before 8 am", "book the 10:30 flight", None),
        ("booking flights before 8 am", "booking flights before 8 am", "near"),
        ("calling Mr Petrov on weekends", "call Mr Petrov on Tuesday", None),
        ("running npm install with sudo", "npm run build", None),
    ],
)
def test_another_object_of_the_same_act_is_no_match(trigger: str, action: str, expected: str | None) -> None:
    assert match(trigger, action) == expected


def test_the_tables_name_each_pair_once() -> None:
    for table, size in (("drawn", 264), ("seen", 244), ("unseen", 241)):
        pairs = drawn_pairs(TABLES[table])
        assert len({(pair.trigger, pair.action) for pair in pairs}) == len(pairs) == size
