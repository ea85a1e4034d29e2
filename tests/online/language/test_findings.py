"""What lasts is told from what passes, in trades that trained nothing and whatever stands in a statement."""

import numpy as np
import pytest

from nous_online.language.writing.findings import keeping_score, weights
from nous_online.language.writing.points import finding_within, form_of, keeping_worth, points_of
from nous_online.language.writing.writer import POLICY, EndedEpisode, parse_episode

FOUND = [
    "The bakery's order sheet rounds trays up to a dozen, so 13 rolls become two trays in the delivery list.",
    "`tide_table.csv` holds heights above chart datum, while the bridge clearances are above mean sea level.",
    "The museum's loan database keeps dates as text in day-month order, which breaks sorting in the export.",
    "Badge readers on floor 3 cache their list for 24 hours, so a revoked card still opens the lab until then.",
    "We match invoices by purchase order and not by supplier, because two suppliers share one VAT number.",
    "The drone firmware drops to failsafe below 14.1 V, hence the survey script must land at 14.4 V.",
    "Only the first 500 rows of a survey reach the dashboard: the form service pages its answers, we ask once.",
    "Greenhouse valve 6 is wired normally open, unlike the others, so a lost signal floods bay 2.",
    "The choir's mailing list rejects attachments over 2 MB without a bounce; scores are shared by link instead.",
    "`settle.py` must run before the bank's cut-off at 16:30, otherwise its file is booked a day later.",
]
PASSED = [
    "Now I'll open the order sheet and look at the column with the trays.",
    "I've updated the delivery list and added a button for the printout.",
    "All 48 tests pass and the export looks clean.",
    "Let me check whether the readers on floor 3 answer at all.",
    "The changes are complete and the page is ready for production use.",
    "Next steps: review the list, deploy it and tell the choir.",
    "Successfully created the new folder and moved both scripts into it.",
    "I can also add a chart for the valves if you want one.",
    "The script is running now, 60 % of the rows are done.",
    "Here is a summary of what was changed in this session.",
]


def score(text: str) -> float:
    return keeping_score(text, form_of(text, is_found=False, is_labelled=False), "found")


def test_what_was_found_scores_above_what_was_done_in_trades_that_trained_nothing() -> None:
    above = [score(found) > score(passed) for found in FOUND for passed in PASSED]

    assert np.mean(above) >= 0.97


@pytest.mark.parametrize("text", ["", " ", "`", "水位图是平的", "x" * 100_000, "\ud800 half", "🔍 " * 400])
def test_any_text_has_a_score(text: str) -> None:
    assert np.isfinite(score(text))


def test_only_the_beginning_of_a_long_statement_is_read() -> None:
    assert score(FOUND[0] * 40) == score(FOUND[0] * 41)


def test_a_finding_by_its_cues_is_kept_more_easily() -> None:
    plain = score(FOUND[0])

    assert keeping_score(FOUND[0], form_of(FOUND[0], is_found=True, is_labelled=False), "found") > plain + 1


def test_the_weights_are_those_that_were_pinned() -> None:
    assert weights("found").shape == (2 * 8192 + 3 + 1,)
    assert weights("told").shape == (2 * 8192 + 5 + 1,)


TOLD = [
    "we brew with rain water, never with water from the tap",
    "The choir rehearses on Wednesdays, so no jobs that evening.",
    "our scanner writes TIFF and can't do anything else",
    "all heights in these files are above chart datum",
    "Always ask me before you touch the seed bank.",
    "never round the weights of the parcels",
    "Invoices over 2,000 need a second signature with us.",
    "we call a delivery a drop, and a customer a stop",
    "the ferry's computer has no network between four and six",
    "Don't put names of patients into file names.",
]
ASKED = [
    "the third drop is missing on the map again",
    "make the title of the invoice bigger",
    "I ran the import twice and it hangs at the same row",
    "yes, that one, and then the next",
    "We have a big problem here.",
    "now show me the totals of last week",
    "the labels overlap when I turn the page",
    "nearly there, only the footer is off",
    "which of the two is faster?",
    "open the other file and compare them",
]


def told_score(text: str) -> float:
    talk = f"user: Draw the tide.\n[Bash] tide --plot\nassistant: Drawn.\nuser: {text}\nassistant: Fine."
    sentences = parse_episode(EndedEpisode(talk)).sentences
    points = [finding_within(each, sentences) for each in points_of(sentences) if each.speaker == "user"]
    return max((keeping_worth(each) for each in points if each.text != "Draw the tide."), default=-np.inf)


def test_what_a_user_tells_for_good_scores_above_what_they_ask_for_now() -> None:
    above = [told_score(told) > score for score in map(told_score, ASKED) for told in TOLD]

    assert np.mean(above) >= 0.97
    assert [each for each in ASKED if told_score(each) >= POLICY.least_keeping] == []
