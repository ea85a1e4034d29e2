"""What leads in to a fact, and what only looks so: nothing else of its words is lost."""

from __future__ import annotations

import pytest

from nous_online.language.writing.lexrank import plain_opening


@pytest.mark.parametrize(
    "whole",
    [
        "Besides the forge I run a smithy school.",
        "Apart from the forge I run a school.",
        "By the way of Harwick it takes an hour.",
        "Speaking of bees I keep three hives until May.",
        "So far the roof holds.",
        "So much rain fell that the yard flooded.",
        "Well water tastes of iron here.",
        "Right shoulder hurts when I hammer.",
        "Today Bea turns forty.",
        "Great Danes eat a lot.",
        "Now that Corin is gone I sweep.",
        "Now I take the bus.",
        "But for Bea the forge would be closed.",
        "And so on it went.",
        "Then again the gas is cheap.",
        "Also known as Tull, he sells gas.",
        "Guess what my sister found in the yard.",
        "Actually spoken Cornish is rare.",
        "Of course horses eat oats.",
        "Sinon, on rate le bac.",
        "Sinon le toit tient.",
        "Por lo demás, todo sigue igual.",
        "Pues claro que viene Bea.",
        "Bon pain coûte cher.",
        "Übrigens Bea kommt.",
        "No nettles in the soup.",
    ],
)
def test_what_only_looks_like_a_lead_in_stays(whole: str) -> None:
    assert plain_opening(whole) == whole


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Besides, the roof leaks.", "The roof leaks."),
        ("No, gracias, los viernes pedimos tacos.", "Los viernes pedimos tacos."),
        ("Nein danke, freitags gibt es Pizza.", "Freitags gibt es Pizza."),
        ("No thanks. Bea has a van.", "Bea has a van."),
        ("No, thanks to Bea we have a roof.", "Thanks to Bea we have a roof."),
        ("By the way the roof leaks.", "The roof leaks."),
        ("By the way, Bea has a van.", "Bea has a van."),
        ("Speaking of bees, I keep three hives.", "I keep three hives."),
        ("Oh, and also, my sister has moved.", "My sister has moved."),
        ("so I'm done", "I'm done"),
        ("Well, well water tastes of iron.", "Well water tastes of iron."),
        ("anyway my knee hurts", "My knee hurts"),
        ("Bueno, tengo dos perros.", "Tengo dos perros."),
        ("Bref, le toit fuit.", "Le toit fuit."),
        ("Otra cosa: Bea se muda.", "Bea se muda."),
        ("Guess what, Bea has a van!", "Bea has a van!"),
    ],
)
def test_a_lead_in_goes(text: str, told: str) -> None:
    assert plain_opening(text) == told
