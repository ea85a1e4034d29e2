"""The yardstick of summaries: stems, ROUGE, and the rule of length."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from benchmarks.rouge import rouge, stemmed
from benchmarks.summary import leading, run
from nous_online.core.errors import NotFound

STEMS = """caresses caress ponies poni ties ti caress caress cats cat feed feed agreed agre plastered plaster bled bled
motoring motor sing sing conflated conflat troubled troubl sized size hopping hop tanned tan falling fall hissing hiss
failing fail filing file happy happi sky sky relational relat conditional condit rational ration valenci valenc
digitizer digit operator oper feudalism feudal decisiveness decis hopefulness hope formaliti formal sensitiviti sensit
triplicate triplic formative form electriciti electr electrical electr goodness good revival reviv allowance allow
inference infer airliner airlin adjustable adjust replacement replac adoption adopt homologous homolog effective effect
probate probat rate rate cease ceas controll control roll roll oscillators oscil by by""".split()  # noqa: SIM905


@pytest.mark.parametrize(("word", "stem"), [*zip(STEMS[::2], STEMS[1::2], strict=True)])
def test_a_word_has_the_stem_the_paper_gives_it(word: str, stem: str) -> None:
    assert stemmed(word) == stem


def test_a_summary_like_its_reference_has_all_points_and_one_of_other_words_none() -> None:
    assert rouge("The mill closed.", ["the MILLS close"]) == pytest.approx({"rouge1": 1, "rouge2": 1, "rougeL": 1})
    assert rouge("The mill closed.", ["rye, oats"]) == {"rouge1": 0, "rouge2": 0, "rougeL": 0}
    assert rouge("", ["rye"]) == {"rouge1": 0, "rouge2": 0, "rougeL": 0}


def test_precision_and_recall_weigh_alike() -> None:
    scores = rouge("the mill burned down", ["down the mill"])

    assert scores == pytest.approx({"rouge1": 6 / 7, "rouge2": 2 / 5, "rougeL": 4 / 7})


def test_of_several_references_the_mean_counts() -> None:
    assert rouge("the mill", ["the mill", "rye"])["rouge1"] == 0.5


def test_leading_sentences_fit_into_the_words_there_are() -> None:
    talk = "Orla: The mill closed.\nPiet: In March?\nOrla: After the flood."

    assert leading(talk, 7) == "Orla: The mill closed. Piet: In March?"
    assert leading(talk, 1) == "Orla: The mill closed."


def drawn(folder: Path) -> Path:
    """A folder with two of each kind of transcript."""
    talk = "Orla: Hi Piet!\nPiet: Hi, how are you?\nOrla: The mill closed on 3 March.\nPiet: The flood took the wheel."
    said = "The mill closed on 3 March because the flood took the wheel."
    turns = [{"speaker": line.split(": ")[0], "text": line.split(": ")[1]} for line in talk.splitlines()]
    rows = {
        "dialogues_with_summaries": [{"dialogue": talk, "summaries": [said]}],
        "qmsum_meetings": [{"turns": turns, "general": [{"query": "Summarize the whole meeting.", "answer": said}]}],
        "locomo_turns": [{"conv": "a", "session": 1, "pos": place, **turn} for place, turn in enumerate(turns)],
        "locomo_session_summaries": [{"conv": "a", "session": 1, "session_summary": said}],
    }
    for name, found in rows.items():
        twice = found if name == "locomo_turns" else found * 2
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, twice)))
    return folder


def test_every_set_is_measured_as_it_is_and_at_equal_length(tmp_path: Path) -> None:
    measured = run(drawn(tmp_path), quick=False)

    metrics = measured["metrics"]
    for name in ("", "dialogues_", "meetings_", "sessions_"):
        assert metrics[f"{name}rouge1_minus_lead3"] > 0
        assert metrics[f"{name}numbers_kept_ratio"] == 1
        assert f"tuned_{name}at_lead_length_rouge1_minus_lead3" in metrics
        assert f"{name}at_our_length_rouge1_minus_lead" in metrics
    assert all(math.isfinite(value) for value in metrics.values())
    assert measured["peers"]["dialogues_lead3_numbers_kept"] == 1


def test_a_missing_set_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"dialogues_with_summaries\.jsonl is missing"):
        run(tmp_path, quick=True)
