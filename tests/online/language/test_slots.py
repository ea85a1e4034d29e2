import pytest

from nous_online.language.pairs.slots import filled_slot, shared_slot, slot_key


def drawn(table):
    """Return the rows of a table drawn with bars, one case a line."""
    return [tuple(cell.strip() for cell in line.split("|")) for line in table.strip().splitlines()]


@pytest.mark.parametrize(
    ("statement", "key"),
    drawn("""
    Wilma Trent was born in the city of London.       | wilma trent was born in city of
    The billing port is 8080                          | billing port is
    The capital of Peru is Lima                       | capital of peru is <name>
    Oren Vale is the capital of Peru                  | capital of peru is <name>
    The name of the head of state in Norvia is Wen    | name of head of state in norvia is
    The school where Ola Lind was educated is Elm Hall| school where ola lind was educated is <name>
    Sable Song was performed by the Duke of Harrow    | sable song was performed by <name>
    Ana's phone number is 555                         | ana phone number is
    Ana's favourite food is noodles                   | ana favourite food is
    I moved to Lisbon                                 | i moved to <name>
    The trial lasts 14 days                           | trial last <number> day
    Bruno has 3 dogs                                  | bruno has <number> dog
    Our dog is called Rex                             | our dog is called
    My next flight is on Friday                       | my next flight is on <number>
    Our database runs on Postgres 15                  | our database run on postgres <number>
    The report is due on Monday                       | report is due on <number>
    Lotte holds the rank of major                     | lotte hold rank of
    The head office is in Oslo                        | head office is in <name>
    The standup is now at 9:30                        | standup is at <number>
    Bo sweeps the yard at Holm Street on Mondays      | bo sweep yard at holm street on <name>
    """),
)
def test_a_slot_is_the_statement_without_its_value(statement, key):
    assert slot_key(statement, None) == key


@pytest.mark.parametrize(
    "statement",
    [
        "A man is riding a horse in the park",  # who?
        "Three girls are sitting on the beach",
        "She lives in Rome",
        "Ana is riding a horse in the park",  # of the moment
        "Ana spoke at the meeting in Oslo",
        "Ana likes the smell of coffee",  # one of many
        "Ana speaks Dutch at home",
        "Elm Falls is located in Norvia",  # places lie in one another
        "Dutch is spoken in Norvia",
        "Ana is allergic to nuts",
        "Mia is the daughter of Ana Lima",
        "Ana's hobby is chess",
        "Ana plays tennis on Monday",  # on other days too
        "The service runs on Linux",
        "Ana volunteers at Harrow House",
        "Ana also lives in Rome",  # adds
        "Ana used to live in Rome",  # was
        "Ana formerly lived in Rome",
        "Ana does not live in Rome",  # denies
        "Does Ana live in Rome?",
        "Ana lives in Rome and works in Ostia",  # two claims
        "Ana lives in Rome. Her brother lives in Ostia",
        "The office is quiet",  # describes
        "Ana is a doctor",
        "Bob is Canadian",
        "Ana lives in a small flat",
        "Nothing happened",
    ],
)
def test_a_statement_that_can_be_joined_by_another_has_no_slot(statement):
    assert slot_key(statement, None) is None


@pytest.mark.parametrize(
    ("earlier", "later"),
    drawn("""
    Norvia was founded by Otto, Prince of Harrow      | Norvia was founded by David Ross
    The capital of Tang Coast is Chang'an             | The capital of Tang Coast is Beaumont
    Tia Cole is the CEO of Norvia                     | The CEO of Norvia is Jon Reed
    Our database runs on Postgres 15                  | Our database runs on Postgres 16
    The office moved to Lisbon                        | The office moved to Porto
    The release is scheduled for Friday               | The release is scheduled for Monday
    The user's preferred language is Dutch            | The user's preferred language is German
    No Great Heroes was developed by Norvia           | No Great Heroes was developed by Harrow
    Lotte plays the sport of table tennis             | Lotte plays the sport of table football
    Ana prefers tea over coffee                       | Ana prefers coffee over tea
    The office is in Rome                             | The office is in Paris
    The office is in Italy                            | The office is in France
    Our dog is called Rex                             | Our dog is called Fido
    The genre that Ana plays is jazz                  | The genre that Ana plays is rock
    Low Tide was written in the language of Dutch     | Low Tide was written in the language of Danish
    Ana's preferred language is Dutch                 | Ana's preferred language is German
    1984 was performed by Harrow                      | 1984 was performed by Lotte Brand
    """),
)
def test_another_value_shares_the_slot(earlier, later):
    assert shared_slot(earlier, later) is not None
    assert shared_slot(earlier, later) == shared_slot(later, earlier)


@pytest.mark.parametrize(
    ("one", "other"),
    drawn("""
    Alice likes tea                                   | Alice likes coffee
    Bob visited Rome in May                           | Bob visited Paris in May
    The capital of Peru is Lima                       | The largest river is the Amazon
    Bob works in Rome                                 | Bob works in May
    Bob lives in Ghent                                | Bob lives in Ghent, Belgium
    The port of billing is 8080                       | The port of search is 8080
    The meeting is at 8pm                             | The meeting is at 20:00
    Ana is the author of Low Tide                     | Ana is the author of High Tide
    The Harrow Press is the publisher of Low Tide     | The Harrow Press is the publisher of High Tide
    A boy is opening the box                          | A boy is closing the box
    The office is in Rome                             | The office is in May
    Test A is scheduled for Friday                    | Test B is scheduled for Monday
    The band is from Ghent                            | The band is from Belgium
    Ana prefers dark mode                             | Ana prefers concise answers
    Ana prefers tea over coffee                       | Ana prefers wine over beer
    The cafe opens at 8                               | The cafe closes at 8
    The front door is locked                          | The back door is locked
    Ana's father works in Rome                        | Ana's mother works in Rome
    The office is in Rome                             | The office is in Italy
    The office is in Spain                            | The office is in Madrid
    Ana lives in Rome                                 | Ana lives in Italy
    Ana lives in Spain                                | Ana lives in Madrid
    Ana lives in Ostia                                | Ana lives in Rome
    Ana now lives in Ostia                            | Ana lives in Rome
    Ana moved to Lisbon                               | Ana moved to Portugal
    Our database runs on Postgres 15                  | Our database runs on Linux 6
    The build depends on make                         | The build depends on cmake
    The coffee machine on floor 2 takes 4 minutes     | The coffee machine on floor 2 costs 900 euros
    The lab in Bonn tests batteries                   | The lab in Bonn employs Ada
    The car of 2019 seats 5 people                    | The car of 2019 uses 7 litres
    The shop at the station sells shoes               | The shop at the station closes early
    The printers on floor 3 take 95 minutes           | The printers on floor 3 need 19 approvals
    The meeting of team 3 takes place on Monday       | The meeting of team 4 takes place on Monday
    """),
)
def test_a_second_fact_is_no_new_value_of_the_same_slot(one, other):
    assert shared_slot(one, other) is None


@pytest.mark.parametrize(
    "later", ["Ana now lives in Paris", "Ana lives in Paris since May", "Ana currently lives in Paris"]
)
def test_another_home_is_an_update_when_the_new_statement_says_so(later):
    assert shared_slot("Ana lives in Rome", later) == "ana live in <name>"


def test_the_subject_belongs_to_the_slot():
    assert slot_key("The port is 80", "billing") != slot_key("The port is 80", "search")


@pytest.mark.parametrize("wording", ["Ana lives in Rome", "She lives in Rome", "I live in Rome"])
def test_whoever_tells_it_the_slot_is_about_the_subject(wording):
    assert slot_key(wording, "Ana") == "ana live in <name>"


def test_what_stands_behind_a_number_belongs_to_the_slot():
    fourteen, thirty = (filled_slot(f"The trial lasts {days} days for new users", None) for days in (14, 30))

    assert fourteen is not None
    assert thirty is not None
    assert fourteen.key == thirty.key == "trial last <number> day for new user"
    assert (fourteen.value, thirty.value) == (("14",), ("30",))


def test_hostile_text_is_read_in_bounded_time():
    assert slot_key("of " * 10_000, None) is None
