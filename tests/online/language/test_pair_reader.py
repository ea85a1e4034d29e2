"""The model that reads two statements together: what it finds in hands that trained nothing, and where it is silent."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from turns import in_turn

from nous_online.core.errors import Unavailable
from nous_online.language.minilm import session
from nous_online.language.pairs import reader
from nous_online.language.pairs.reader import OUTCOMES, Chances, calibration, read_pairs, shared_content

PAIRS = Path(__file__).parents[3] / "training" / "pairs"
HELD_OUT = PAIRS / "author_6.tsv"
CHANGES = {"U", "N"}
SEVERAL = 24
SAME_IN_THOSE = ((69, 0.502), (99, 0.498), (734, 0.507))
"""Rows in doubt, and their chances of `same` in exact sums: sums that overflow in 16 bits move such chances most."""


def held_out() -> list[tuple[str, str, str]]:
    """Return label, first and second of pairs that trained nothing."""
    lines = HELD_OUT.read_text("utf-8").splitlines()
    rows = [line.split("\t") for line in lines if line and not line.startswith("#")]
    return [(label[0], first, second) for label, first, second in rows]


@pytest.fixture(scope="module")
def read() -> list[tuple[str, Chances]]:
    rows = in_turn(held_out(), of=4)
    return list(zip([label for label, *_ in rows], read_pairs([(a, b) for _, a, b in rows]), strict=True))


def test_what_changed_is_noticed_and_what_stands_beside_it_seldom_hurt(read: list[tuple[str, Chances]]) -> None:
    changed = [each.change >= calibration().change_at for label, each in read if label in CHANGES]
    hurt = [each.change >= calibration().change_at for label, each in read if label == "D"]

    assert len(changed) > 60 < len(read) - len(changed)
    assert np.mean(changed) > 0.8
    assert np.mean(hurt) < 0.05


def test_a_change_is_less_likely_among_strangers_and_in_other_languages_than_the_reader_says() -> None:
    odds = calibration().neighbours

    likely = [odds.chance(0.75, shared=shared, is_in_depth=True) for shared in range(5)]
    foreign = [odds.chance(0.75, shared=shared, is_in_depth=False) for shared in range(5)]

    assert likely[0] < odds.notice_from < likely[1] < likely[2] < likely[3] == likely[4]
    assert foreign == [0, *likely[1:]]
    assert odds.chance(0.0, shared=0, is_in_depth=True) < odds.chance(1.0, shared=0, is_in_depth=True) < 1
    assert odds.chance(1.0, shared=0, is_in_depth=False) == 0


@pytest.mark.parametrize(
    ("one", "other", "count"),
    [
        ("The garage keypad code is 4417", "changed the keypad to 9052", 1),
        ("Vater nimmt 2,5 mg Bisoprolol", "beim Bisoprolol sind wir mit Papa auf 5 mg hoch", 2),
        ("fisica è in aula 12", "hanno spostato fisica nell'aula magna", 2),
        ("昼食は950円です", "昼食は980円になりました", 4),
        ("昼食は950円です", "京都は四条のホテルに泊まる予定", 0),
        ("I am at home", "you are at home", 1),
        ("पापा डॉ. मेहता को दिखाते हैं", "डॉ. मेहता विदेश चले गए", 1),
        ("姉の美咲は横浜に住んでいます。", "さくらは卵を食べています。", 0),
        ("健太は銀行で働いています。", "健太は市役所に勤めています。", 2),
    ],
)
def test_what_two_texts_both_speak_of_is_counted_in_any_language(one: str, other: str, count: int) -> None:
    assert shared_content(one, other) == count


def test_what_is_said_again_is_found_and_nothing_else_taken_for_it(read: list[tuple[str, Chances]]) -> None:
    repeated = [each.same >= calibration().same_at for label, each in read if label == "S"]
    others = [each.same >= calibration().same_at for label, each in read if label not in {"S", "V"}]

    assert np.mean(repeated) > 0.7
    assert np.mean(others) < 0.02


def test_the_chances_of_a_pair_add_up_and_do_not_depend_on_what_is_read_beside_it() -> None:
    pair, long = ("Ana lives in Rome", "Ana moved to Paris"), ("word " * 60, "other words " * 30)

    (alone,), (beside, _) = read_pairs([pair]), read_pairs([pair, long])

    assert alone.outcomes.shape == (len(OUTCOMES),)
    assert alone.outcomes.sum() == pytest.approx(1)
    assert alone.outcomes.tolist() == beside.outcomes.tolist()


def test_pairs_are_read_on_all_cores_as_each_is_alone() -> None:
    pairs = [(first, second) for _, first, second in held_out()[:SEVERAL]]

    together, alone = read_pairs(pairs), [read_pairs([pair])[0] for pair in pairs]

    assert [each.outcomes.tolist() for each in together] == [each.outcomes.tolist() for each in alone]
    assert [each.is_in_depth for each in together] == [each.is_in_depth for each in alone]


@pytest.mark.parametrize(("row", "same"), SAME_IN_THOSE)
def test_chances_are_the_same_on_every_processor(row: int, same: float) -> None:
    _, first, second = held_out()[row]

    assert read_pairs([(first, second)])[0].same == pytest.approx(same, abs=0.05)


def test_a_pair_about_two_things_is_read_by_the_first_layers_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    first, rest = reader.weights()
    runs: list[str] = []

    class Counted:
        def run(self, *asked: object) -> object:
            runs.append("the other layers")
            return rest.run(*asked)

    monkeypatch.setattr(reader, "weights", lambda: (first, Counted()))

    (apart,) = read_pairs([("The garage keypad code is 4417", "Our choir sings in the old brewery on Thursdays")])
    assert (runs, max(apart.same, apart.change) < calibration().early) == ([], True)
    (alike,) = read_pairs([("The garage keypad code is 4417", "the code for the garage keypad is 4417")])
    assert (runs, alike.same > 0.5) == (["the other layers"], True)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("It weighs 1,533 kg", "It weighs 1533 kg"),
        ("The runway has 1533.0 metres", "The runway has 1533 metres"),
        ("It runs on Python 3.0", "It runs on Python 3.0"),
        ("The router is 192.168.100.0", "The router is 192.168.100.0"),
        ("Das Paket wiegt nur 1,533 kg", "Das Paket wiegt nur 1,533 kg"),
    ],
)
def test_equal_numbers_are_read_alike(text: str, read: str) -> None:
    assert reader.with_plain_numbers(text) == read


def test_no_pairs_give_no_readings() -> None:
    assert read_pairs([]) == []


@pytest.mark.parametrize(
    ("text", "is_in_depth"),
    [
        ("We deploy on Fridays now", True),
        ("Мы выкатываем релизы по пятницам", False),
        ("金曜日にデプロイします", False),
        ("地下车库不再对访客开放了", False),
        ("c'est Bastien qui suit le dossier", False),
        ("el contrato se prorroga un año", False),
        ("ogni domenica pranziamo dai nonni e alla nonna piace", False),
        ("Die Tante wohnt im dritten Stock", False),
        ("met my friend Léa at the café on Monday", True),
        ("We deploy on Fridays and " + "then again " * 40, False),
        ("", True),
    ],
)
def test_a_text_in_words_it_does_not_know_or_too_long_to_be_read_whole_is_out_of_its_depth(
    text: str,
    is_in_depth: bool,  # noqa: FBT001 (a parameter)
) -> None:
    assert read_pairs([(text, text)])[0].is_in_depth is is_in_depth


def test_weights_that_are_not_those_the_numbers_belong_to_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = json.loads((reader.FOLDER / "pair_reader.json").read_text("utf-8"))
    (tmp_path / "pair_reader.json").write_text(json.dumps(stored), "utf-8")
    for name in ("pair_reader_first.onnx", "pair_reader.onnx"):
        (tmp_path / name).write_bytes(b"other weights")
    monkeypatch.setattr(reader, "FOLDER", tmp_path)
    for cached in (session, calibration):
        cached.cache_clear()
    try:
        with pytest.raises(Unavailable, match="SHA-256"):
            read_pairs([("one", "other")])
    finally:
        for cached in (session, calibration):
            cached.cache_clear()
