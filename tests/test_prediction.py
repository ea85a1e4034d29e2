"""Predicting from a real heart: what sessions like this one used comes first, with reasons in words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)


def lived(heart, session, path, cited, *, day):
    """One session of the past: a file was opened, something recalled, and one answer used."""
    at = NOON + timedelta(days=day)
    heart.predict(signals={"current_file": path}, session_id=session, at=at)
    recall = heart.recall(cited.content, session_id=session, at=at, limit=2)
    heart.cite(recall.id, [cited.id], at=at)


def test_what_was_used_with_a_file_is_predicted_when_it_is_opened_again(heart):
    tokens = heart.learn("Tokens of the login expire after an hour", learned_at=NOON).memory
    prices = heart.learn("Prices are rounded to whole cents", learned_at=NOON).memory
    for day in range(4):
        lived(heart, f"login-{day}", "src/auth/login.py", tokens, day=day)
        lived(heart, f"shop-{day}", "src/shop/price.py", prices, day=day)

    login = heart.predict(signals={"current_file": "src/auth/login.py"}, at=NOON + timedelta(days=5))
    shop = heart.predict(signals={"current_file": "src/shop/price.py"}, at=NOON + timedelta(days=5))

    assert login.memories[0].memory_id == tokens.id
    assert shop.memories[0].memory_id == prices.id
    assert login.memories[0].reasons[0] == "used in 4 of the last 4 sessions with src/auth/login.py open"
    assert login.memories[0].confidence > login.memories[1].confidence


def test_an_agent_that_knows_nothing_predicts_nothing(heart):
    prediction = heart.predict(signals={"current_file": "src/auth/login.py"})

    assert prediction.memories == ()
    assert prediction.confidence == 0
    assert prediction.session_id
