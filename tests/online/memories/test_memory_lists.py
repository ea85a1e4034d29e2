"""Lists of memories of all kinds: the latest first, page by page, and only what fits every condition."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from nous_online.core.errors import InvalidInput, NotFound

MAY = datetime(2026, 5, 1, tzinfo=UTC)


@pytest.fixture
def full(heart):
    """An agent that knows five things, each a day later, and forgot a sixth."""
    heart.learn("The mill grinds rye", subject="Mill", learned_at=MAY, source="a letter", user_id="ada")
    heart.record_episode("We saw the 100% mill.", title="A visit", started_at=MAY + timedelta(days=1))
    heart.store_procedure("Grind", domain="mill", steps=["turn"], learned_at=MAY + timedelta(days=2))
    heart.add_censor("stop the mill", "it breaks", learned_at=MAY + timedelta(days=3))
    heart.learn("The harbour is closed", learned_at=MAY + timedelta(days=4), project_id="port", scope="project")
    heart.forget(heart.learn("The gate code is 4711", learned_at=MAY + timedelta(days=5)).memory.id)
    return heart


def kinds(listed) -> list[str]:
    return [each.kind for each in listed]


def test_all_that_recall_finds_is_listed_the_latest_first(full):
    listed = full.list_memories()

    assert kinds(listed) == ["fact", "censor", "procedure", "episode", "fact"]
    assert [each.at for each in listed] == sorted((each.at for each in listed), reverse=True)
    assert (listed[-1].text, listed[-1].about, listed[-1].user_id) == ("The mill grinds rye", "Mill", "ada")


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({"kinds": "procedure"}, ["procedure"]),
        ({"kinds": ["episode", "censor"]}, ["censor", "episode"]),
        ({"state": "any"}, ["fact", "fact", "censor", "procedure", "episode", "fact"]),
        ({"state": "archived"}, ["fact"]),
        ({"about": "mIL"}, ["procedure", "fact"]),
        ({"about": "%"}, []),
        ({"source": "LETTER"}, ["fact"]),
        ({"user_id": "ada"}, ["fact"]),
        ({"project_id": "port"}, ["fact"]),
        ({"since": "2026-05-02", "until": MAY + timedelta(days=3)}, ["procedure", "episode"]),
        ({"limit": 2}, ["fact", "censor"]),
    ],
)
def test_a_list_holds_what_fits_every_condition(full, wanted, found):
    assert kinds(full.list_memories(**wanted)) == found


def test_pages_follow_one_another_without_a_gap_though_several_were_said_at_once(heart):
    heart.learn_deferred([(f"Room {number} is free", {"learned_at": MAY}) for number in range(7)])
    seen, page = [], heart.list_memories(limit=3)
    while page:
        seen += page
        page = heart.list_memories(limit=3, before=page[-1].id)

    assert len(seen) == 7
    assert seen == heart.list_memories()


@pytest.mark.parametrize(
    "wanted", [{"kinds": "dream"}, {"state": "lost"}, {"since": "soon"}, {"limit": 0}, {"abut": "x"}]
)
def test_an_impossible_condition_is_refused(heart, wanted):
    with pytest.raises(InvalidInput, match=next(iter(wanted))):
        heart.list_memories(**wanted)


def test_a_page_after_what_is_not_there_is_refused(heart):
    with pytest.raises(NotFound, match="begin at the first page"):
        heart.list_memories(before=UUID(int=1))
