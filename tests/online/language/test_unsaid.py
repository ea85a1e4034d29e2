"""What a later statement leaves unsaid of an earlier one, which then stays beside it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from nous_online.language.pairs.judging import SURE_FROM, JudgedStatement, Judgement, OfflineJudge, Pair, Verdict
from nous_online.language.pairs.unsaid import left_unsaid

EARLIER, LATER = (datetime(2026, month, 1, tzinfo=UTC) for month in (4, 5))
PARTLY = """
    Frau Keller's wedding is on 28 November, in the Muenster, 14 tables. | Frau Keller called, 16 tables now, not 14.
    Lunch with Tom is on 4 May at noon in the Adler. | Lunch with Tom is on 6 May.
    Tom's party: 5 May, garden, 30 guests. | Tom's party has 34 guests now.
    Hotel Oberkirch gets two lobby arrangements every Monday | At Oberkirch it's three arrangements now
    Roses come from Janssen in Aalsmeer, Tuesday and Friday | Janssen delivers Monday and Thursday from now on
    The boat trip leaves at 9 from pier 4 and costs 30 euros | The boat trip costs 35 euros now
    See Dr. Haas on 12 June at 8:30, room 3, bring the red folder | The appointment with Dr. Haas is in room 5 now
    The concert is on 3 March at 20:00 in the Jazzhaus, tickets 18 euros | The concert is at 19:30 now
    Order 40 sacks of flour from Rosenmehl for Friday | The flour order is 50 sacks now
    The kiln runs on Wednesday at 1060 degrees | The kiln runs at 1080 degrees now
    The van goes to the garage on 14 April at 8, brakes and oil | The garage appointment for the van is at 9 now
    Standup is at 9:15 in room Turing every Tuesday | Standup moved to 9:45
    The Lyon lab has a grant of 80,000 euros until 2026 | The Lyon lab's grant now runs until 2028
    Paulina starts on 1 September as nurse on ward 7 | Paulina starts on 15 September
    Ana's flight is LH1234 on 3 July from Munich at 6:40 | Ana's flight leaves at 7:10 now
    The Meier kitchen: oak, 4.20 m, 12,400 euros, delivery in week 32 | The Meier kitchen is delivered in week 34 now
    Mrs Adams takes 5 mg ramipril at 8 in the morning | Mrs Adams takes 10 mg ramipril now
    The deploy runs on db-04 at 02:00 with 8 workers | The deploy runs with 12 workers now
    Rehearsal is on Saturday at 10 in St. Mary's | The rehearsal is on Sunday now
    The Keller cake: three tiers, lemon, for 60 people | The Keller cake is for 80 people now
    Frau Kellers Hochzeit ist am 28. November im Münster, 14 Tische | Frau Keller hat angerufen, es sind jetzt 16 Tische
    Das Mittagessen mit Tom ist am 4. Mai um 12 Uhr im Adler | Das Mittagessen mit Tom ist am 6. Mai
    Der Termin bei Dr. Haas ist am 12. Juni um 8:30 in Raum 3 | Der Termin bei Dr. Haas ist jetzt in Raum 5
    Die Bootsfahrt kostet 30 Euro und startet um 9 Uhr am Pier 4 | Die Bootsfahrt kostet jetzt 35 Euro
    Le mariage de Mme Keller est le 28 novembre à la cathédrale, 14 tables | Mme Keller a appelé, ce sera 16 tables
    Le déjeuner avec Tom est le 4 mai à midi chez Adler | Le déjeuner avec Tom est le 6 mai
    La livraison de Janssen arrive à 7h au quai 3 | La livraison de Janssen arrive à 8h maintenant
    L'atelier compte 12 places et coûte 45 euros | L'atelier coûte 50 euros maintenant
    La boda de Marta es el 28 de noviembre en Toledo, 14 mesas | La boda de Marta tiene ahora 16 mesas
    La comida con Tom es el 4 de mayo a las 14:00 en el Adler | La comida con Tom es el 6 de mayo
    El taller cuesta 45 euros y tiene 12 plazas | El taller ahora cuesta 50 euros
    El vuelo de Ana sale a las 6:40 de la puerta B12 | El vuelo de Ana sale ahora a las 7:10
    The Henderson order is 40 roses in white for Saturday | The Henderson order is 60 roses now
    Theo's guitar lesson is with Mr. Blum on Mondays at 16:00 | Theo's guitar lesson is at 17:00 now
    Invoice 4711 to Weber is 1,200 euros, due 30 June | Invoice 4711 to Weber is due on 15 July now
    The piano tuner comes on 9 October at 14:00, Mr. Falk, 120 euros | The piano tuner comes at 15:30 now
    Bees: 6 hives at the Kaltenbach orchard, 4 at the Schauinsland | There are 7 hives at the Kaltenbach orchard now
    The ferry booking is DFDS, 3 August, cabin 412, two bikes | The ferry booking is for 5 August now
    The lease with Immo Nord ends in May 2027 and costs 2,100 euros | The lease with Immo Nord now costs 2,250 euros
    Training for the U12s is at 17:00 on pitch 2 with coach Rana | Training for the U12s is on pitch 4 now
    Backup of db-prod runs at 01:30 to bucket eu-archive-2 | Backup of db-prod starts at 03:00 now
    Chairs for Moreau: 24 in walnut, 310 euros each, due 15 May | Moreau ordered 30 chairs now
    The exhibition runs from 3 March to 12 June in the Kunsthalle | The exhibition runs until 30 June now
    Mia's braces are checked every six weeks by Dr. Lindt in Basel | Mia's braces are checked every eight weeks now
    Shift 3 has 5 nurses from 22:00 to 06:00 | Shift 3 has 6 nurses now
    The VPN runs on port 34. | The VPN was moved to host h67.
    Der Kurs beginnt am 3. März um 18:30 in Raum 12 | Der Kurs beginnt jetzt um 19:00
    Die Bestellung Moreau: 24 Stühle, 310 Euro pro Stück | Die Bestellung Moreau sind jetzt 30 Stühle
    Le cours de piano est le mardi à 17:00 avec Mme Duval, 35 euros | Le cours de piano coûte 40 euros maintenant
    La commande Moreau : 24 chaises à 310 euros | La commande Moreau passe à 30 chaises
    El curso empieza el 3 de marzo a las 18:30 en el aula 12 | El curso empieza ahora a las 19:00
    Il matrimonio di Carla è il 12 luglio a Siena con 80 invitati | Il matrimonio di Carla ha ora 95 invitati
    De bruiloft van Carla is op 12 juli in Gent met 80 gasten | De bruiloft van Carla heeft nu 95 gasten
"""
"""The earlier statement, and a later one that changes one thing of it."""
WHOLLY = """
    Lunch with Tom is on 4 May | Lunch with Tom moved to 6 May
    Frau Keller's wedding has 14 tables | Frau Keller called, it's 16 tables now, not 14
    The dentist is on Tuesday at 9 | The dentist moved to Thursday at 11
    Roses come from Janssen in Aalsmeer | Roses come from Huber in Freiburg now
    We roast on Mondays | We roast on Wednesdays from now on
    The gateway runs version 2.8.4 | bumped the gateway to 3.6.1 overnight
    Tom's party has 30 guests | Tom's party has 34 guests now
    The van is insured with Allianz until March | The van is insured with HUK until June
    Hotel Oberkirch gets two lobby arrangements every Monday | Three arrangements every Tuesday now for Hotel Oberkirch
    The rent is 900 euros | The rent went up to 950 euros
    Our accountant is Petra Lang | Jonas Weber does our accounts now, Petra Lang left
    Dr. Haas sees me in room 3 | Dr. Haas moved to room 5
    The pager is with Bogdan | Ayesha took over the pager from Bogdan
    Deliveries arrive at the back gate at 7 | Deliveries now arrive at the front gate at 8
    Ana lives in Rome | Ana moved to Porto
    The kiln fires at 1060 degrees | The kiln fires at 1080 degrees now
    Ward round starts at 8 | The ward round starts at half past eight now
    Max weighs 12 kg | Max weighs 13.5 kg now
    Anna runs the Berlin office | Ben runs the Berlin office now, Anna went to Madrid
    Yoga with Lena is on Friday | Yoga with Lena is cancelled for good
    The grant for the Lyon lab ends in 2026 | The grant for the Lyon lab was extended to 2028
    Die Miete beträgt 900 Euro | Die Miete beträgt jetzt 950 Euro
    Das Mittagessen mit Tom ist am 4. Mai | Das Mittagessen mit Tom ist jetzt am 6. Mai
    Die Rosen kommen von Janssen | Die Rosen kommen jetzt von Huber
    Der Zahnarzt ist am Dienstag | Der Zahnarzt ist auf Donnerstag verschoben
    Frau Keller braucht 14 Tische | Frau Keller braucht jetzt 16 Tische statt 14
    Le loyer est de 900 euros | Le loyer est maintenant de 950 euros
    Le déjeuner avec Tom est le 4 mai | Le déjeuner avec Tom est reporté au 6 mai
    Les roses viennent de chez Janssen | Les roses viennent maintenant de chez Huber
    La reunión con Marta es el martes | La reunión con Marta pasó al jueves
    El alquiler es de 900 euros | El alquiler ahora es de 950 euros
    Las flores vienen de Janssen | Ahora las flores vienen de Huber
    Bread is delivered by Kaiser at 6 | Bread is now delivered by Huber at 7
    The printer is a Brother | We replaced the Brother, the printer is a Canon now
    The choir rehearses on Tuesday evenings | The choir now rehearses on Thursday evenings
    The piano tuner comes on 9 October | The piano tuner comes on 16 October now
    We keep 6 hives at Kaltenbach | We keep 7 hives at Kaltenbach now
    The lease costs 2,100 euros a month | The lease costs 2,250 euros a month from January on
    Backup of db-prod runs at 01:30 | Backup of db-prod runs at 03:00 now
    Coach Rana trains the U12s | Coach Petit trains the U12s now, Rana moved away
    Mia's braces are checked every six weeks | Mia's braces are checked every eight weeks now
    The shop opens from 9:00 to 17:00 | The shop opens from 10:00 to 18:00 now
    Moreau wants 24 chairs at 310 euros each | Moreau wants 30 chairs at 300 euros each now
    Deploys go out on Thursdays | Deploys go out on Mondays and Wednesdays now
    The exhibition is in the Kunsthalle | The exhibition moved to the Orangerie
    Our tax adviser is Frau Seidel in Offenburg | Our tax adviser is Herr Wolf in Lahr now
    Der Kurs beginnt um 18:30 | Der Kurs beginnt jetzt um 19:00
    Moreau bekommt 24 Stühle | Moreau bekommt jetzt 30 Stühle
    Le cours de piano est à 17:00 | Le cours de piano est à 18:00 maintenant
    La commande est de 24 chaises | La commande est de 30 chaises maintenant
    El curso empieza a las 18:30 | El curso empieza ahora a las 19:00
    Il matrimonio ha 80 invitati | Il matrimonio ha ora 95 invitati
    De bruiloft heeft 80 gasten | De bruiloft heeft nu 95 gasten
"""
"""The earlier statement, and a later one that says all that matters of it anew."""


def rows(table: str) -> list[tuple[str, str]]:
    pairs = [line.strip().split(" | ") for line in table.strip().splitlines()]
    return [(earlier, later) for earlier, later in pairs]


def judged(earlier: str, later: str, *, subject: str | None = None) -> Judgement:
    first, second = (JudgedStatement(text, subject, stated_at=at) for text, at in ((earlier, EARLIER), (later, LATER)))
    return OfflineJudge().judge([Pair(first, second, similarity=0.7)])[0]


def retires(judgement: Judgement) -> bool:
    return judgement.verdict is Verdict.UPDATES and judgement.confidence >= SURE_FROM


@pytest.mark.parametrize(("earlier", "later"), rows(PARTLY))
def test_what_leaves_a_value_unsaid_retires_nothing(earlier: str, later: str) -> None:
    assert left_unsaid(earlier, later)
    assert not retires(judged(earlier, later))


@pytest.mark.parametrize(("earlier", "later"), rows(WHOLLY))
def test_what_says_every_value_or_another_of_its_kind_leaves_nothing(earlier: str, later: str) -> None:
    assert left_unsaid(earlier, later) == ()


def test_the_values_left_are_named() -> None:
    earlier = "Lunch with Tom is on 4 May at noon in the Adler."

    assert left_unsaid(earlier, "Lunch with Tom is on 6 May.") == ("Adler", "12:00")
    assert left_unsaid(earlier, "Lunch with Tom is on 6 May at 1 pm in the Krone.") == ()


def test_a_change_of_a_value_says_that_it_replaces_a_part() -> None:
    judgement = judged(
        "Frau Keller's wedding is on 28 November, in the Muenster, 14 tables.",
        "Frau Keller called, 16 tables now, not 14.",
    )

    assert judgement.verdict is Verdict.UPDATES
    assert "a part" in judgement.reason


def test_two_values_of_one_slot_of_which_the_earlier_says_more_both_stay() -> None:
    judgement = judged("The retro is in room Turing at 14:30", "The retro is in room Hopper")

    assert not retires(judgement)


def test_another_name_takes_the_place_of_a_whole_name() -> None:
    earlier = "The director of the Harbour Trust is Ida Holm, Countess of Brund."

    assert left_unsaid("It is led by Ida Holm-Thott", "It is led by Jan Vos now") == ()
    assert retires(judged(earlier, "The director of the Harbour Trust is Jan Vos."))


def test_what_the_subject_says_is_not_left_unsaid() -> None:
    earlier, later = "The weight of Max is 12 kg", "The weight is 13.5 kg now"

    assert retires(judged(earlier, later, subject="Max"))
    assert not retires(judged(earlier, later))


def test_an_ending_ends_every_value() -> None:
    judgement = judged("Yoga with Lena is on Friday at 18:00 in the Adler", "Yoga with Lena is cancelled for good")

    assert retires(judgement)
