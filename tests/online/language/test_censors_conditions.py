"""What a trigger with a condition is about, what an action says of the condition, and what fires then."""

from __future__ import annotations

import pytest

from benchmarks.censors import match
from nous_online.language.actions.conditions import alternatives, part_trigger, stances


@pytest.mark.parametrize(
    ("trigger", "act", "conditions"),
    [
        ("don't email customers without approval", "email customers", ("without approval",)),
        ("only Helga may change the roster", "change the roster", ("without Helga",)),
        ("ask Marta before emailing the landlord", "emailing the landlord", ("without asking Marta",)),
        ("only Aisha may issue refunds above 500 euros", "issue refunds", ("above 500 euros", "without Aisha")),
        ("never publish before legal has agreed", "publish", ("without legal has agreed",)),
        ("During office hours, never run migrations", "run migrations", ("During office hours",)),
        ("Nicht nach 22 Uhr staubsaugen", "staubsaugen", ("after 22:00",)),
        ("Keine E-Mails an Kunden ohne Freigabe", "E-Mails an Kunden", ("without Freigabe",)),
        ("Ne pas sortir après 22h", "sortir", ("after 22:00",)),
        ("No enviar correos sin permiso", "enviar correos", ("without permiso",)),
    ],
)
def test_a_trigger_is_parted_into_its_act_and_its_conditions(
    trigger: str, act: str, conditions: tuple[str, ...]
) -> None:
    parted = part_trigger(trigger)

    assert parted is not None
    assert (parted.act, parted.conditions) == (act, conditions)


@pytest.mark.parametrize("trigger", ["pushing to main", "sending passwords by email", "never feed the cat chocolate"])
def test_a_trigger_without_a_condition_is_whole(trigger: str) -> None:
    assert part_trigger(trigger) is None


@pytest.mark.parametrize(
    ("trigger", "action", "expected"),
    [
        ("don't email customers without approval", "email customers the list", "unsaid"),
        ("don't email customers without approval", "email customers, approved by Dana", "kept"),
        ("don't email customers without approval", "email customers with Dana's approval", "kept"),
        ("don't email customers without approval", "email customers, nobody has approved it", "broken"),
        ("don't email customers without consent", "email customers, Dana said ok", "kept"),
        ("don't email customers without consent", "email customers although Dana has not said yes", "unsaid"),
        ("don't run migrations during office hours", "run migrations at 11am", "broken"),
        ("don't run migrations during office hours", "run migrations at 3 am", "kept"),
        ("don't run migrations during office hours", "run migrations outside office hours", "kept"),
        ("don't restart the router during the livestream", "restart it, the livestream is on", "mentioned"),
        ("no deploys unless it is Monday", "deploy on Monday", "kept"),
        ("no deploys unless it is Monday", "deploy on Tuesday", "broken"),
    ],
)
def test_an_action_keeps_breaks_mentions_or_leaves_out_a_condition(trigger: str, action: str, expected: str) -> None:
    parted = part_trigger(trigger)

    assert parted is not None
    assert list(stances(parted, action).values()) == [expected]


@pytest.mark.parametrize(
    ("trigger", "action", "expected"),
    [
        ("don't email customers without approval", "email customers", "meaning"),
        ("don't email customers without approval", "sending an email to all customers", "meaning"),
        ("don't email customers without approval", "email our customers the price list", "meaning"),
        ("don't email customers without approval", "email customers without approval", "near"),
        ("don't email customers without approval", "email customers, approved by Dana", None),
        ("don't email customers without approval", "email Ben the price list", None),
        ("don't email customers without approval", "ask for approval before emailing customers", None),
        ("only Helga may change the roster", "Ben changes the roster", "meaning"),
        ("only Helga may change the roster", "Helga changes the roster", None),
        ("only Helga may change the roster", "print the roster", None),
        ("never email the landlord without asking Marta", "send an email to the landlord about the leak", "meaning"),
        ("never email the landlord without asking Marta", "email the landlord, with Marta's ok", None),
        ("never email the landlord without asking Marta", "email the landlord.\nMarta said yes", None),
        ("don't run migrations on prod-db-1 during office hours", "run migrations on prod-db-1", "meaning"),
        ("don't run migrations on prod-db-1 during office hours", "run the migration on prod-db-1 at 11am", "meaning"),
        ("don't run migrations on prod-db-1 during office hours", "run migrations on prod-db-1 at 3 am", None),
        (
            "don't run migrations on prod-db-1 during office hours",
            "run migrations on prod-db-1 during office hours",
            "near",
        ),
        ("only Aisha may issue refunds above 500 euros", "Ben issues a refund of 800 euros", "meaning"),
        ("only Aisha may issue refunds above 500 euros", "Ben issues a refund of 80 euros", None),
        ("only Aisha may issue refunds above 500 euros", "Aisha issues a refund of 800 euros", None),
        ("never publish a press release before legal has seen it", "publish the press release", "meaning"),
        ("Nicht nach 22 Uhr staubsaugen", "um 23 Uhr staubsaugen", "meaning"),
        ("Nicht nach 22 Uhr staubsaugen", "um 15 Uhr staubsaugen", None),
    ],
)
def test_an_action_that_leaves_a_condition_open_is_asked_about_and_never_blocked(
    trigger: str, action: str, expected: str | None
) -> None:
    assert match(trigger, action) == expected


@pytest.mark.parametrize(
    ("trigger", "same", "other"),
    [
        ("running migrations on prod-db-1", "run migrations on prod-db-1", "run migrations on prod-db-2"),
        ("deleting backups of srv-07", "delete the backups of srv-07", "delete the backups of srv-08"),
        ("deleting account 4711", "delete account 4711", "delete account 4712"),
    ],
)
def test_an_action_with_another_identifier_or_number_does_not_block(trigger: str, same: str, other: str) -> None:
    assert match(trigger, same) == "near"
    assert match(trigger, other) != "near"


@pytest.mark.parametrize(
    ("trigger", "each"),
    [
        ("never hand a guest's key or passport to strangers", ["hand a guest's key to", "hand a guest's passport to"]),
        ("moving or deleting invoices", ["moving invoices", "deleting invoices"]),
        ("don't prune, graft or move the trees before May", ["prune the", "graft the", "move the trees before May"]),
        ("sharing rents, names or addresses with agents", ["sharing rents with", "sharing names", "sharing addresses"]),
        ("no rebuild without approval by Ana or Bo", []),
        ("pushing to main", []),
    ],
)
def test_a_trigger_warns_of_each_thing_and_deed_that_it_names(trigger: str, each: list[str]) -> None:
    found = alternatives(trigger)

    assert len(found) == len(each)
    assert all(text.startswith(start) for text, start in zip(found, each, strict=True))
