from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nous_online.context.context_lines import TIERS, ContextEntry, one_line
from nous_online.context.packing import (
    arrange,
    heading_tokens,
    lines_of,
    not_shown,
    pack,
    render,
    tier_budgets,
    tier_cost,
    usual_budget,
)
from nous_online.core.details import AssemblyDetails
from nous_online.core.errors import InvalidInput
from nous_online.core.fields import checked_details
from nous_online.core.policy import ContextPolicy
from nous_online.language.tokens import tokens_of

TEXTS = st.text(max_size=300) | st.text(alphabet="🦊ß部署\n\u2028 a", max_size=2_000)


def entry(number: int, *texts: str, is_pinned: bool = False) -> ContextEntry:
    names = ("full", "summary", "compressed")
    first, *shorter = zip(names, (one_line(text) for text in texts), strict=False)
    topic = f"topic {number}"
    return ContextEntry(
        "fact", (UUID(int=number),), first, "", is_pinned=is_pinned, topic=topic, shorter=lambda: shorter
    )


@st.composite
def entries(draw: st.DrawFn) -> list[ContextEntry]:
    numbers = draw(st.lists(st.integers(0, 30), max_size=25))
    return [
        entry(number, *draw(st.lists(TEXTS, min_size=1, max_size=3)), is_pinned=draw(st.booleans()))
        for number in numbers
    ]


def point_at(nominated: list[ContextEntry]):
    def pointers(shown):
        return [
            ContextEntry("fact", each.memory_ids, ("index", each.topic), "1 not shown")
            for each in not_shown(nominated, shown)
        ]

    return pointers


@given(entries(), entries(), entries(), st.integers(1, 3_000), st.sampled_from(["debug", "task"]))
def test_a_context_never_has_a_token_too_many_and_no_memory_twice(critical, relevant, background, budget, frame):
    wanted = {"critical": critical, "relevant": relevant, "background": background}
    nominated = [*critical, *relevant, *background]

    placed = arrange(wanted, point_at(nominated), rooms=tier_budgets(budget, frame=frame))
    lines = lines_of(placed)
    text = "\n".join(render(lines).values())

    shown = [each for line in lines for each in line.memory_ids]
    assert tokens_of(text) <= budget
    assert len(shown) == len(set(shown))
    assert [line.tier for line in lines] == sorted((line.tier for line in lines), key=TIERS.index)
    assert sum(line.startswith("# ") for line in text.split("\n")) == len({line.tier for line in lines})


@given(entries(), st.integers(1, 3_000))
def test_what_finds_room_costs_no_more_than_the_room(wanted, room):
    assert tier_cost(pack(not_shown(wanted, frozenset()), room)) <= room


@given(entries(), st.integers(1, 3_000))
def test_the_same_entries_are_packed_the_same_way(wanted, budget):
    shares = tier_budgets(budget, frame=None)

    once, again = (arrange({"relevant": wanted}, point_at(wanted), rooms=shares) for _ in range(2))

    assert once == again


def test_the_first_are_told_in_full_and_the_others_in_short():
    wanted = [entry(number, "long " * 20, "short") for number in range(100)]

    levels = [each.level for each in pack(wanted, 1_000)]

    in_full = levels.count(0)
    assert levels[:in_full] == [0] * in_full
    assert sum(each.costs[0] for each in wanted[:in_full]) == pytest.approx(750, rel=0.1)
    assert levels.count(1) > in_full


def test_with_room_for_all_nothing_is_shortened():
    wanted = [entry(number, "long " * 10, "short") for number in range(10)]

    placed = pack(wanted, heading_tokens() + sum(each.first_cost for each in wanted))

    assert [each.level for each in placed] == [0] * 10


def test_a_long_text_is_shortened_where_it_does_not_fit():
    wanted = [entry(1, "long " * 100, "still long " * 5, "short"), entry(2, "other " * 10)]

    assert [each.level for each in pack(wanted, 120)] == [1, 0]


def test_an_entry_too_long_for_the_room_makes_way_for_shorter_ones():
    wanted = [entry(1, "word " * 500), entry(2, "short")]

    assert [each.entry for each in pack(wanted, 100)] == [wanted[1]]


def test_a_long_text_leaves_the_next_best_a_line():
    long = entry(1, "report " * 100, "a short report")
    steps, trifles = entry(2, "step " * 40), [entry(number, f"trifle {number}") for number in range(3, 20)]
    room = heading_tokens() + 140

    shown = [each.entry.topic for each in pack([long, steps, *trifles], room)]

    assert shown[:2] == ["topic 1", "topic 2"]


def test_what_a_tier_leaves_flows_down():
    background = [entry(number, "background line") for number in range(300)]
    shares = tier_budgets(1_000, frame=None)

    placed = arrange({"background": background}, point_at([]), rooms=shares)

    assert tier_cost(placed["background"]) > 900


def test_what_the_last_tier_leaves_flows_back_to_what_matters():
    relevant = [entry(number, "relevant line") for number in range(300)]
    shares = tier_budgets(1_000, frame=None)

    placed = arrange({"relevant": relevant}, lambda shown: [], rooms=shares)

    assert tier_cost(placed["relevant"]) > 950


def test_a_full_tier_leaves_the_others_their_share():
    wanted = {
        tier: [entry(place * 1_000 + number, f"{tier} line {number}") for number in range(300)]
        for place, tier in enumerate(TIERS[:-1])
    }
    nominated = [each for own in wanted.values() for each in own]
    shares = tier_budgets(2_000, frame=None)

    placed = arrange(wanted, point_at(nominated), rooms=shares)

    for tier in TIERS:
        assert tier_cost(placed[tier]) == pytest.approx(shares[tier], rel=0.1)


def test_what_is_pinned_borrows_from_the_lower_tiers():
    pin = entry(1_000, "pinned " * 1_200, is_pinned=True)
    crowd = {
        tier: [entry(place * 100 + number, f"{tier} line " * 20) for number in range(90)]
        for place, tier in enumerate(TIERS[:-1])
    }
    wanted = {**crowd, "critical": [*crowd["critical"], pin]}
    shares = tier_budgets(8_000, frame=None)

    placed = arrange(wanted, point_at([]), rooms=shares)

    assert pin.first_cost > shares["critical"]
    assert [each.level for each in placed["critical"] if each.entry is pin] == [0]
    assert tier_cost(placed["relevant"]) > shares["relevant"] / 2


def test_each_pinned_entry_has_a_line_before_any_is_told_in_full():
    pins = [entry(number, "pinned " * 100, f"pin {number}", is_pinned=True) for number in range(20)]

    placed = arrange({"critical": pins}, point_at([]), rooms=tier_budgets(1_000, frame=None))

    assert [each.entry for each in placed["critical"]] == pins


def test_a_memory_without_room_in_its_tier_falls_to_the_next():
    crowd = [entry(number, f"critical line {number}") for number in range(50)]
    wanted = {"critical": crowd, "relevant": [crowd[-1]]}
    shares = tier_budgets(400, frame=None)

    placed = arrange(wanted, point_at([]), rooms=shares)

    assert [each.entry for each in placed["relevant"]] == [crowd[-1]]


def test_the_index_is_one_line_of_pointers():
    crowd = [entry(number, "a line that is much too long to be shown " * 9) for number in range(3)]

    lines = lines_of(arrange({"relevant": crowd}, point_at(crowd), rooms=tier_budgets(60, frame=None)))

    assert render(lines) == {"index": "# Ask me about\n- topic 0, topic 1, topic 2"}


def test_nothing_to_show_is_an_empty_text_without_headings():
    placed = arrange({}, lambda shown: [], rooms=tier_budgets(8_000, frame=None))

    assert render(lines_of(placed)) == {}


# --- how much room there is ---


def test_a_context_is_divided_as_the_living_memory_says():
    assert tier_budgets(8_000, frame=None) == {
        "critical": 2_000, "relevant": 3_000, "background": 2_000, "index": 1_000,
    }  # fmt: skip


@pytest.mark.parametrize("frame", ["debug", "debugging", "Debugging"])
def test_while_debugging_what_is_critical_has_more_room(frame):
    assert tier_budgets(8_000, frame=frame) == {
        "critical": 3_000, "relevant": 2_500, "background": 1_500, "index": 1_000,
    }  # fmt: skip


@pytest.mark.parametrize("budget", [1, 7, 13, 999, 12_345])
@pytest.mark.parametrize("frame", ["debug", "task"])
def test_rounding_loses_no_token(budget, frame):
    assert sum(tier_budgets(budget, frame=frame).values()) == budget


def test_the_budget_is_that_of_the_frame_unless_one_is_told():
    assert usual_budget(None) == 8_000
    assert usual_budget("juggling") == 8_000
    assert usual_budget("Conversation") == 3_000
    assert checked_details(AssemblyDetails, {"budget": 500, "frame": "conversation"})["budget"] == 500


def test_the_budgets_of_frames_lie_between_three_and_twelve_thousand_tokens():
    budgets = [tokens for _, tokens in ContextPolicy.budgets]

    assert (min(budgets), max(budgets)) == (3_000, 12_000)


@pytest.mark.parametrize("budget", [0, -1, 1.5, "8000", True, 200_001])
def test_a_budget_that_makes_no_sense_is_refused_with_what_would(budget):
    with pytest.raises(InvalidInput, match=r"budget must be a whole number between 1 and 200,000, got .*8,000"):
        checked_details(AssemblyDetails, {"budget": budget})
