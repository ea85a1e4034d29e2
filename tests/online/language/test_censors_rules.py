"""What a rule forbids and what it says to do instead, and that only the one sets it off."""

from __future__ import annotations

import time

import pytest

from benchmarks.censors import match
from nous_online.language.actions.action_words import root, warned_act
from nous_online.language.actions.conditions import alternatives, says_instead
from nous_online.language.actions.rules import infinitive, read_rule
from nous_online.language.actions.triggers import check_conditions


@pytest.mark.parametrize(
    ("trigger", "act", "instead"),
    [
        ("Never repaint the hull, only polish it", "repaint the hull", "only polish it"),
        ("Never repaint the hull; a yard has to do that.", "repaint the hull", "a yard has to do that."),
        ("Never repaint the hull. Polish it.", "repaint the hull", "Polish it."),
        ("Never repaint the hull - polish it", "repaint the hull", "polish it"),
        ("Never repaint the hull: use polish", "repaint the hull", "use polish"),
        ("Never repaint the hull (polish it)", "repaint the hull", "polish it)"),
        ("Repainting the hull is forbidden. Polish it.", "Repainting the hull", "Polish it."),
        ("Hulls must not be repainted, polish them", "repaint Hulls", "polish them"),
        ("Always use polish, never repaint the hull", "repaint the hull", "Always use polish"),
        ("Never page Dr. Osei at night, page the resident", "page Dr. Osei at night", "page the resident"),
        ("Never drop or split queues, ask Tove or Jan first", "drop or split queues", "ask Tove or Jan first"),
        ("Never wake Noor, not even for alarms, at night", "wake Noor at night", ""),
        ("Never share the following: codes, keys", "share the following: codes, keys", ""),
        ("Never mail quotes, unless Ines agrees", "mail quotes without Ines agrees", ""),
        ("Never mail quotes. Only Ines may do that.", "mail quotes without Ines", ""),
        ("Never mail quotes, only with approval", "mail quotes without approval", ""),
        ("Only Ines may mail quotes. Never mail them late.", "mail quotes. Never mail them late. without Ines", ""),
        ("mailing quotes, then waiting", "mailing quotes, then waiting", ""),
        ("Rinse the filters in the sink, never scrub them", "scrub the filters", "Rinse the filters in the sink"),
        ("Store guest lists daily and don't print them.", "print guest lists.", "Store guest lists daily"),
        ("The red lever is under tension. Never pull it.", "pull The red lever.", ""),
        ("If a caller is upset, never cut them off", "If a caller is upset, never cut them off", ""),
        ("Ask Ines before airing it, never burn it", "airing it, never burn it without Asking Ines", ""),
        ("Cleaners must not unplug the freezer, call Ivo", "Cleaners unplug the freezer", "call Ivo"),
        ("No cleaner is allowed to unplug the freezer", "cleaner unplug the freezer", ""),
        ("Nobody but Ivo may unplug the freezer", "unplug the freezer without Ivo", ""),
        ("telling guests that they cannot pay by card", "telling guests that they cannot pay by card", ""),
    ],
)  # fmt: skip
def test_what_follows_the_act_of_a_rule_is_no_part_of_it(trigger: str, act: str, instead: str) -> None:
    assert warned_act(trigger) == act
    assert read_rule(trigger).instead == instead


@pytest.mark.parametrize(
    ("trigger", "action", "expected"),
    [
        ("Rinse the filters in the sink, never scrub them", "scrub the filters", "near"),
        ("Rinse the filters in the sink, never scrub them", "rinse the filters", None),
        ("Rinse the filters in the sink, never scrub them", "scrub the floor", None),
        ("Cleaners must not unplug the freezer", "let the cleaner unplug the freezer", "near"),
        ("Cleaners must not unplug the freezer", "let the cleaner scrub the shelves", None),
        ("No cleaner may unplug the freezer", "let the cleaner unplug the freezer", "near"),
        ("Nobody but Ivo may unplug the freezer", "unplug the freezer", "meaning"),
        ("Nobody but Ivo may unplug the freezer", "Ivo unplugs the freezer", None),
    ],
)
def test_a_rule_is_about_what_it_named_before_and_whom_it_names(
    trigger: str, action: str, expected: str | None
) -> None:
    assert match(trigger, action) == expected


def test_an_act_that_names_no_doer_is_not_blocked_by_a_rule_for_somebody() -> None:
    assert match("Cleaners must not unplug the freezer", "unplug the freezer") != "near"


@pytest.mark.parametrize(
    "rule",
    [
        "It is forbidden to {}",
        "It's strictly prohibited for staff to {}",
        "Do not, under any circumstances, {}",
        "Never, ever, {}",
        "Never {} under any circumstances",
        "Under no circumstances may anyone {}",
        "You must not {}",
        "Staff are not allowed to {}",
        "Employees may never {}",
        "No one may {}",
        "Rule 4: please never {}",
    ],
)
def test_a_rule_may_open_in_many_ways(rule: str) -> None:
    trigger = rule.format("unplug the scanner")

    assert warned_act(trigger) == "unplug the scanner"
    assert match(trigger, "unplug the scanner") == "near"
    assert match(trigger, "plug in the lamp") is None


@pytest.mark.parametrize(
    ("passive", "act"),
    [
        ("Parcels over 30 kg must not be shipped", "ship Parcels over 30 kg"),
        ("The logs are never to be copied", "copy The logs"),
        ("Visitor names may not be sold or given to sponsors", "sell or give Visitor names to sponsors"),
        ("The gate must be kept shut and must not be blocked", "block The gate"),
    ],
)
def test_a_rule_in_the_passive_forbids_the_act(passive: str, act: str) -> None:
    assert warned_act(passive) == act


def test_a_past_participle_is_read_as_its_verb() -> None:
    words = "issued dropped locked carried shared stored opened written overwritten unlocked changed published"

    assert " ".join(map(infinitive, words.split())) == (
        "issue drop lock carry share store open write overwrite unlock change publish"
    )
    assert root("copies") == root("copied") == root("copy")


@pytest.mark.parametrize(
    ("trigger", "each"),
    [
        ("Never mute or unplug the door bell.", ["mute the door bell.", "unplug the door bell."]),
        ("Never drop, rename or truncate the tables", ["drop the tables", "rename the tables", "truncate the tables"]),
        ("Never store names, phone numbers or photos", ["store names", "store phone numbers", "store photos"]),
        ("Never write to /etc, /usr or app.yaml", ["write to /etc", "write to /usr", "write to app.yaml"]),
        ("Never delete old or archived mails", ["delete old mails", "delete archived mails"]),
        ("Never close the valve or open a hatch", ["close the valve", "open a hatch"]),
        ("Mail price lists or plans with tips to Ed", ["Mail price lists to Ed", "Mail price plans with tips to Ed"]),
        ("Never share codes or keys with Ed at work", ["share codes with Ed at work", "share keys with Ed at work"]),
        ("Never move the safe. Never touch the red fuse. Call Ivo.", ["never touch the red fuse"]),
        ("Never move the safe. Never open it.", ["never open the safe."]),
        ("Never block the ramp and never park on it", ["never park on the ramp"]),
    ],
)  # fmt: skip
def test_a_rule_warns_of_each_act_that_it_names(trigger: str, each: list[str]) -> None:
    assert list(alternatives(trigger)) == each


@pytest.mark.parametrize(
    ("trigger", "action", "expected"),
    [
        ("Never delete snapshots, only compress them", "delete the snapshots", "near"),
        ("Never delete snapshots, only compress them", "compress the snapshots", None),
        ("Never delete snapshots, only compress them", "compress the snapshots instead of deleting them", None),
        ("Never delete snapshots, only compress them", "list the snapshots", None),
        ("Never commit to trunk; open a merge request.", "git commit to trunk", "near"),
        ("Never commit to trunk; open a merge request.", "open a merge request", None),
        ("Never stop the mail relay, ask Petra first", "stop the mail relay", "near"),
        ("Never stop the mail relay, ask Petra first", "stop the mail relay without asking Petra", "near"),
        ("Never stop the mail relay, ask Petra first", "stop the mail relay after asking Petra", "meaning"),
        ("Never stop the mail relay, ask Petra first", "stop the mail relay, Petra agreed", None),
        ("Never stop the mail relay, ask Petra first", "Petra agreed.\nStop the mail relay", None),
        ("Never stop the mail relay, ask Petra first", "ask Petra", None),
        ("Never stop the mail relay, ask Petra first", "stop the music", None),
        ("Never print badges in colour, print them in black", "print badges in black", None),
        ("Never print badges in colour, print them in black", "print the badge in colour", "near"),
        ("Never pay before the goods arrive, pay on delivery", "pay on delivery", None),
        ("Never drop tables, views or indexes older than a month", "drop the tables of today", None),
        ("Never ship on a Friday, wait until Monday", "ship on Friday", "near"),
        ("Never ship on a Friday, wait until Monday", "ship on Monday", None),
        ("Never ship on Fridays. Security fixes are allowed.", "ship the beta on Friday", "near"),
        ("Never ship on Fridays. Security fixes are allowed.", "ship the security fix on Friday", "meaning"),
        ("Don't wipe or reformat the till tablets", "reformat the till tablet", "near"),
        ("Don't wipe or reformat the till tablets", "charge the till tablet", None),
        ("Never tell guests that they may skip breakfast", "tell a guest she may skip breakfast", "near"),
        ("Never tell guests that they may skip breakfast", "tell a guest she may not skip breakfast", None),
        ("Credit notes over 300 euros must not be issued", "issue a credit note of 450 euros", "near"),
        ("Credit notes over 300 euros must not be issued", "issue a credit note over 300 euros", "near"),
        ("Credit notes over 300 euros must not be issued", "issue a credit note of 45 euros", None),
        ("Niemals Belege löschen, nur archivieren", "Belege löschen", "near"),
        ("Niemals Belege löschen, nur archivieren", "Belege archivieren", None),
        ("Nunca borrar las facturas, solo archivarlas", "borrar las facturas", "near"),
    ],
)
def test_a_rule_blocks_its_act_and_not_what_it_asks_for_instead(
    trigger: str, action: str, expected: str | None
) -> None:
    assert match(trigger, action) == expected


def test_an_action_that_does_both_is_not_taken_for_the_other_deed() -> None:
    trigger = "Never push to trunk, use a branch"

    assert says_instead(trigger, "use a branch") == "done"
    assert says_instead(trigger, "use git to push to trunk") != "done"


@pytest.mark.parametrize(
    ("action", "met"),
    [("spend over 200 euros", True), ("spend not over 200 euros", False), ("spend under 200 euros", False)],
)
def test_over_an_amount_is_what_a_trigger_over_that_amount_warns_of(action: str, *, met: bool) -> None:
    assert check_conditions("spending over 200 euros", action) == (met,)


@pytest.mark.parametrize("piece", ["a, ", "a or ", "never ", "a. ", "must not be ", " (a", "a - ", "only ", "a, a or "])
@pytest.mark.parametrize("opening", ["never ", "ask, ", ""])
def test_a_hostile_rule_is_read_in_linear_time(opening: str, piece: str) -> None:
    began = time.process_time()

    alternatives(opening + piece * (4000 // len(piece)))

    assert time.process_time() - began < 1.0
