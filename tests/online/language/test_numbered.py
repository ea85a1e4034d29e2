"""A number or code that names a thing tells two things apart; one that is a value is another value of the same."""

from datetime import UTC, datetime

import pytest

from nous_online.language.pairs.judging import JudgedStatement, OfflineJudge, Pair, Verdict
from nous_online.language.pairs.numbered import named_by_number, other_numbered

TWO_THINGS = """
    Order 5501 is shipped                        | Order 5502 is shipped
    Order 5501 shipped                           | The order 5502 was shipped
    Battery BX-17 recalled                       | Battery BX-18 recalled
    Spare part 4711 ordered                      | Spare part 4712 ordered
    Repair log 5: chain replaced                 | Repair log 6: chain replaced
    Call note 1                                  | Call note 2
    Photo 1 of the crack                         | Photo 2 of the crack
    Bed 14 is free                               | Bed 15 is free
    Bed 7 in ward B is free                      | Bed 8 in ward B is free
    The patient in bed 4 needs insulin           | The patient in bed 5 needs insulin
    Patient 31 discharged                        | Patient 32 discharged
    Flight LH 441 is delayed                     | Flight LH 442 is delayed
    Case 118/24 adjourned                        | Case 119/24 adjourned
    Node 7 is down                               | Node 8 is up again
    node 7 down since noon                       | node 8 down since noon
    INV-1041 is paid                             | INV-1042 is paid
    Issue #331 is fixed                          | Issue #332 is fixed
    Invoice no. 1041 is overdue                  | Invoice 1042 is overdue
    Chapter 4 is finished                        | Chapter 5 is finished
    Bus 42 runs late                             | Bus 43 runs late
    Bus 42 goes to the hospital                  | Bus 43 goes to the hospital
    Camera 3 sees the gate                       | Camera 4 sees the gate
    Sensor 3 reports no data                     | Sensor 4 reports no data
    Milestone 3 is delivered                     | Milestone 4 is delivered
    Room 12 dirty                                | Room 14 dirty
    Rechnung 1041 bezahlt                        | Rechnung 1042 bezahlt
    Auftrag 5501 abgeschlossen                   | Auftrag 5502 abgeschlossen
    Fahrrad 12 ist fertig                        | Fahrrad 13 ist fertig
    Akku 3 geladen                               | Akku 4 geladen
    Rahmen 12 lackiert                           | Rahmen 13 lackiert
    Die Akte 118 wurde geschlossen               | Die Akte 119 wurde geschlossen
    Das Gleis 4 ist gesperrt                     | Das Gleis 5 ist gesperrt
    Bus 42 fällt aus                             | Bus 43 fällt aus
    Gerät 12 defekt                              | Gerät 13 defekt
    Haus 12 hat ein neues Dach                   | Haus 14 hat ein neues Dach
    Factura 1041 pagada                          | Factura 1042 pagada
    La habitación 12 está libre                  | La habitación 14 está libre
    Habitación 12 limpia                         | Habitación 13 limpia
    El paciente 12 tiene fiebre                  | El paciente 13 tiene fiebre
    Orden de trabajo 41 cerrada                  | Orden de trabajo 42 cerrada
    La chambre 12 est libre                      | La chambre 14 est libre
    Le bus 42 a du retard                        | Le bus 43 a du retard
    Le dossier 118 a été classé                  | Le dossier 119 a été classé
    Bon de commande 12 signé                     | Bon de commande 13 signé
    Facture 1041 payée                           | Facture 1042 payée
"""
VALUES = """
    The pool has 20 connections                  | The pool has 30 connections
    We ship on port 8080                         | We ship on port 9090
    The standup is at 9                          | The standup is at 10
    The review is in room 12                     | The review is in room 14
    The train leaves from platform 4             | The train leaves from platform 9
    Version 4 is live                            | Version 5 is live
    Release 12 is live                           | Release 13 is live
    Build 812 is in production                   | Build 813 is in production
    Postgres 15 is used in production            | Postgres 16 is used in production
    Room 12 is our meeting room                  | Room 14 is our meeting room
    Server 3 is the primary                      | Server 4 is the primary
    Day 3 of the strike                          | Day 4 of the strike
    The team won 3 games                         | The team won 4 games
    Take 3 pills after lunch                     | Take 4 pills after lunch
    Keep 20 backups on disk                      | Keep 30 backups on disk
    Ana earns 3000 now                           | Ana earns 3500 now
    Ana is reading chapter 4                     | Ana is reading chapter 6
    Budget: 4000                                 | Budget: 5000
    Rent 900 warm                                | Rent 950 warm
    Speed limit 30 in the yard                   | Speed limit 20 in the yard
    Order 5501 weighs 12 kg                      | Order 5501 weighs 14 kg
    Order 5501 is packed                         | Order 5501 is shipped
    Wir sind in Zimmer 12                        | Wir sind in Zimmer 14
    Das Team hat 8 Mitglieder                    | Das Team hat 9 Mitglieder
    Der Zug fährt von Gleis 4                    | Der Zug fährt von Gleis 9
    Anna liest Kapitel 4                         | Anna liest Kapitel 6
    Version 4 ist live                           | Version 5 ist live
    Raum 12 ist unser Büro                       | Raum 14 ist unser Büro
    Miete 900 warm                               | Miete 950 warm
    La reunión es en la sala 12                  | La reunión es en la sala 14
    El equipo tiene 8 miembros                   | El equipo tiene 9 miembros
    El tren sale del andén 4                     | El tren sale del andén 9
    La sala 12 es nuestra oficina                | La sala 14 es nuestra oficina
    La réunion est en salle 12                   | La réunion est en salle 14
    L'équipe a 8 membres                         | L'équipe a 9 membres
    Le train part du quai 3                      | Le train part du quai 4
    La salle 12 est notre bureau                 | La salle 14 est notre bureau
"""
ROWS = """
    Room 10 seats 11 people                      | Room 11 seats 48 people
    Room 11 seats 42 people                      | Room 18 seats 42 people
    Widget number 31 weighs 60 kilograms         | Widget number 36 weighs 63 kilograms
    Server 10 is at 11 %                         | Server 11 is at 48 %
    Presse 1 : 80 bars                           | Presse 2 : 95 bars
    El muelle 2 descarga a las 7                 | El muelle 5 descarga a las 10
"""
COUNTS = """
    Inventory 40 chairs and 12 tables            | Inventory 50 chairs and 10 tables
    Order 5 pizzas for 8 people                  | Order 7 pizzas for 10 people
    Standup 9 sharp, retro 10                    | Standup 10 sharp, retro 11
    We use 3 servers with 4 cores                | We use 4 servers with 8 cores
    Version 4 needs 8 GB                         | Version 5 needs 16 GB
    Room 10 seats 11 people                      | Room 10 seats 48 people
    Room 10 seats 11 people                      | Room 11 is used by 48 people
"""
CHANGES = {Verdict.UPDATES, Verdict.CONTRADICTS}


def rows(table: str) -> list[tuple[str, ...]]:
    return [tuple(side.strip() for side in line.split("|")) for line in table.splitlines() if line.strip()]


def verdict(earlier: str, later: str) -> Verdict:
    first, second = datetime(2025, 1, 1, tzinfo=UTC), datetime(2025, 2, 1, tzinfo=UTC)
    pair = Pair(JudgedStatement(earlier, stated_at=first), JudgedStatement(later, stated_at=second), 0.93)
    return OfflineJudge().judge([pair])[0].verdict


@pytest.mark.parametrize(("earlier", "later"), rows(TWO_THINGS))
def test_what_a_number_names_is_another_thing_under_another_number(earlier: str, later: str) -> None:
    assert (other_numbered(earlier, later) or "").startswith("two things, ")
    assert verdict(earlier, later) not in {Verdict.SAME, *CHANGES}


@pytest.mark.parametrize(("earlier", "later"), rows(ROWS))
def test_rows_of_a_table_are_about_a_thing_each_whatever_numbers_they_share(earlier: str, later: str) -> None:
    assert (other_numbered(earlier, later) or "").startswith("two things, ")
    assert verdict(earlier, later) not in {Verdict.SAME, *CHANGES}


@pytest.mark.parametrize(("earlier", "later"), rows(COUNTS))
def test_several_numbers_of_one_thing_name_nothing(earlier: str, later: str) -> None:
    assert other_numbered(earlier, later) is None


@pytest.mark.parametrize(("earlier", "later"), rows(VALUES))
def test_a_number_that_is_a_value_names_nothing(earlier: str, later: str) -> None:
    assert other_numbered(earlier, later) is None
    assert verdict(earlier, later) in CHANGES


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Order 5501 is shipped", "Order 5502 replaces order 5501"),
        ("Order 5501 is shipped", "Invoice 5502 is paid"),
        ("We rent 20 seats and room 12 is free", "We rent 30 seats and room 12 is free"),
        ("My desk in room 12 is by the window", "My desk in room 14 is by the window"),
        ("Roughly 20 are ill", "Roughly 30 are ill"),
        ("Invoice 1041 is paid", "Invoice 1041 was paid"),
    ],
)
def test_nothing_is_told_apart_by_a_number_that_may_be_of_one_thing(one: str, other: str) -> None:
    assert other_numbered(one, other) is None


def test_the_number_belongs_to_the_words_before_it() -> None:
    assert named_by_number("The lift in building 3 is broken") == ("lift", "in", "building", "3")
    assert named_by_number("Rechnung Nr. 1041 ist offen") == ("rechnung", "1041")
    assert named_by_number("") == ()
