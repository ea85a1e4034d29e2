"""What may differ between two texts that still say the same: a short list, and doubt keeps two."""
# ruff: noqa: RUF001 (typographic quotes and full-width signs are the subject)

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nous_online.language.pairs.judging import JudgedStatement, OfflineJudge, Pair, Verdict
from nous_online.language.pairs.wordings import may_be_same

ONE_STATEMENT = """
The user prefers dark mode | User prefers dark mode.
Ana's desk is by the window | ana's desk is by the window!
Backups run at two, btw | Backups run at 2
Please don't deploy on Fridays | Do not deploy on Fridays
We're moving to Oslo and it's final | we are moving to Oslo and it is final
They can't log in | They cannot log in
The team is away | The team are away
The seat costs 45 euros | The seat costs €45
The disk has 500 gigabytes | The disk has 500GB
Tea is served at 5pm | Tea is served at 17:00
Two people own the key | 2 people own the key
The lease is 1,200 euros | The lease is €1200
J’aime les olives | J'aime les olives.
Die Tür ist offen | die Tür   ist offen
父は耳が遠い | 父は耳が遠い。
Reminder: the oven is hot | The oven is hot
Note to self: call the bank from home | Call the bank from home
“Stop” is what it says | "Stop" is what it says
The rent is 45 € | The rent is €45
CHF 1'240.50 ist die Miete | CHF 1240.50 ist die Miete
Die Warmmiete beträgt 1.240,50 € im Monat. | Die Warmmiete beträgt 1240,50 Euro im Monat.
Die Warmmiete beträgt 1.310 € im Monat. | Die Warmmiete beträgt 1310 € im Monat.
Köln hat 1.087.000 Einwohner und einen Dom | Köln hat 1087000 Einwohner und einen Dom
Le loyer est de 1 015 €. | Le loyer est de 1015 €.
Le loyer est de 1\u202f015,50 €. | Le loyer est de 1015,50 euros.
La consulta cuesta 1.850,50 pesos. | La consulta cuesta 1,850.50 pesos.
Czynsz wynosi 2 350,00 zł. | Czynsz wynosi 2350 zł.
Die Katze wiegt 23,4 kg und schläft | Die Katze wiegt 23,40 kg und schläft
Der Zahnarzttermin ist am 3.7. um 14:30 Uhr. | Der Zahnarzttermin ist am 3. Juli um 14.30 Uhr.
Die Übergabe ist am 3.7.2026 um 9 Uhr | Die Übergabe ist am 3. Juli 2026 um 9:00 Uhr
La cita es el 3 de julio | La cita es el 3º de julio
Le train est à 14h30 | Le train est à 14:30
Wir haben zwei Hunde. | Wir haben 2 Hunde.
Mi hermana tiene dos gatos | Mi hermana tiene 2 gatos
家賃は月85,000円です。 | 家賃は月８５，０００円です。
家賃は月85,000円です。 | 家賃は月8万5千円です。
蓮の歯医者は7月3日午後2時半です。 | 蓮の歯医者は7月3日14時30分です。
エレベーターのコードは1234です。 | ｴﾚﾍﾞｰﾀｰのコードは１２３４です。
Oma wohnt in Köln. | Oma wohnt in Köln 😊
Ana passed the exam | 😀 Ana passed the exam 🤗
"""

TWO_STATEMENTS = """
We used to deploy on Fridays | We deploy on Fridays
Paul was a vegetarian | Paul is a vegetarian
The build was broken | The build is broken
The feature was enabled for all users | The feature is enabled for all users
I used to live in Leeds | I live in Leeds
The bug might be in the parser | The bug is in the parser
Lena may cancel | Lena will cancel
We should encrypt the backups | We encrypt the backups
We'll encrypt the backups | We encrypt the backups
We considered using Kafka | We are using Kafka
The certificate is about to expire | The certificate has expired
Lena voted for the proposal | Lena voted against the proposal
Flights from Oslo are cancelled | Flights to Oslo are cancelled
Calls from the bank are recorded | Calls to the bank are recorded
She went into surgery | She came out of surgery
We overpaid the supplier | We underpaid the supplier
The outer door is locked | The inner door is locked
Salt the dough before baking | Salt the dough while baking
The plant needs little light | The plant needs a lot of light
Ana's mother is a doctor | Ana's mother-in-law is a doctor
Ben is in favour of the merger | Ben is against the merger
The shop is closed on Mondays | The shop is closed except on Mondays
The bug is probably fixed | The bug is fixed
Service A calls service B | Service B calls service A
All tests pass | All tests pass except one
Ben is Ana's husband | Ben is Ana's ex-husband
Mia is the aunt of Tom | Mia is the great-aunt of Tom
I could not agree more with Ana | I could not agree with Ana
Ana is the boss of Ben | The boss of Ana is Ben
Grandma is in hospital | Grandma came home from hospital
Two-factor authentication is enabled | Two-factor authentication is turned off
J'aime les olives | Je n'aime pas les olives
Anna ama i cani | Anna non ama i cani
Prendre avant le repas | Prendre après le repas
Ana a raison | Ana raison
Das Licht ist an | Das Licht ist
Ana kommt also morgen | Ana kommt morgen
Der Ofen wiegt 1,200 kg | Der Ofen wiegt 1200 kg
Her status: Mildly Abnormal | Her status: Abnormal
He found them helpful | He found them ineffective
It lies outside the realm of sports | It lies within the realm of sports
Income fell from $15,000 to $12,000 | Income fell from $12,000 to $15,000
He makes homemade dressing | He makes store-bought dressing
She watches live sports | She watches televised sports
He gives to local organizations | He gives to international organizations
She has evolving book preferences | She has evolving movie preferences
He eats exotic versions of unhealthy foods | He eats healthier versions of unhealthy foods
She read a lot over the past year | She read a lot over the past month
A few users complained | Few users complained
Most users agree | The most users agree
The pump runs | The pumps run
Ana has a son | Ana has sons
The release is on 14 March 2025 | The release is on 14 March 2026
The invoice is dated 03/04/2026 | The invoice is dated 04/03/2026
The alarm is at 12:00:05 | The alarm is at 12:00:10
The host is atlas-prod | The host is atlas-prod2
The order is 1234567890123 | The order is 1234567890124
The key is aB3x9 | The key is Ab3X9
The link has 100 Mb | The link has 100 MB
The board is 5' long | The board is 5 long
It is written in C++ | It is written in C
It runs on Python 3 | It runs on Python 3.0
Take room 5a | Take room 5
Ana is in group A | Ana is in group
The build is green? | The build is green.
No, trams stop at the market | No trams stop at the market
The sign says "turn it off before you open it" | The sign says "turn it on before you open it"
Reminder emails are sent to the users | Emails are sent to the users
The hall has three exits | The hall has two exits
The bin is 1.5 m deep | The bin is 15 m deep
The code is 0042 | The code is 42
Der Ofen wiegt 1.240 kg | Der Ofen wiegt 1240 kg
Der Ofen wiegt 1.240 kg | Der Ofen wiegt 1,240 kg
Opa nimmt 0,5 mg am Tag | Opa nimmt 0,25 mg am Tag
Er nimmt 2,5 ml | Er nimmt 5,2 ml
Wir haben zwei Hunde | Wir haben 3 Hunde
Pages 2, 5 and 7 are missing | Pages 2.5 and 7 are missing
The film was 😊 | The film was 😡
The contract is signed ✅ | The contract is signed ❌
The plan is good 👍 | The plan is good
"""


def pairs_of(table: str) -> list[tuple[str, str]]:
    return [
        (one.strip(), other.strip()) for one, _, other in (line.partition(" | ") for line in table.splitlines()) if one
    ]


@pytest.mark.parametrize(("a", "b"), pairs_of(ONE_STATEMENT))
def test_what_never_changes_what_is_said_may_differ(a: str, b: str) -> None:
    assert may_be_same(a, b)
    assert may_be_same(b, a)


@pytest.mark.parametrize(("a", "b"), pairs_of(TWO_STATEMENTS))
def test_anything_else_makes_two_statements(a: str, b: str) -> None:
    assert not may_be_same(a, b)
    assert not may_be_same(b, a)


@pytest.mark.parametrize(("a", "b"), pairs_of(TWO_STATEMENTS))
def test_no_nearness_makes_the_built_in_judge_call_two_statements_the_same(a: str, b: str) -> None:
    assert (
        OfflineJudge().judge([Pair(JudgedStatement(a), JudgedStatement(b), similarity=0.999)])[0].verdict
        is not Verdict.SAME
    )


def test_texts_of_nothing_but_marks_or_fillers_are_the_same_only_word_for_word() -> None:
    assert may_be_same("!", "!")
    assert not may_be_same("!", "...")
    assert not may_be_same("please", "also")


def test_a_text_longer_than_what_the_guards_read_is_compared_to_its_end() -> None:
    long = "The log says: " + "tick " * 2000

    assert may_be_same(long + "done.", long + "done")
    assert not may_be_same(long + "done", long + "failed")


@pytest.mark.parametrize("mark", [".", "'", ",", "$", "1,", "1.", " 1", "a ", "no,"])
def test_hostile_text_costs_little(mark: str) -> None:
    text = "the " + mark * 20_000

    assert not may_be_same(text, text + "x and")


@given(st.lists(st.text(string.ascii_letters + "äßéあ", min_size=3), min_size=1))
def test_case_spacing_and_a_full_stop_never_make_two_of_one_text(words: list[str]) -> None:
    assert may_be_same(" ".join(words), f" {'  '.join(words).upper()}.")


@given(st.text(), st.text())
def test_the_order_in_which_two_texts_are_asked_about_does_not_matter(a: str, b: str) -> None:
    assert may_be_same(a, b) == may_be_same(b, a)
    assert may_be_same(a, a)
