"""What is sent, once and for no more than it may cost, whatever happens between two looks at what is open."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from batch_answers import answering
from batch_life import AT_NINE, CATS, FISH, MODELS, NIGHT, NINE, VERDICTS, bring_home, send_all, states, wanted_of
from night_runs import remember

from nous_online.database import Database
from nous_online.heart import Heart
from nous_pipelines.batches import sending
from nous_pipelines.batches.sending import estimate_for
from nous_pipelines.demo.anthropic_server import LocalAnthropic, Play, Route


@pytest.fixture
def api() -> Iterator[LocalAnthropic]:
    with LocalAnthropic(answer=answering(VERDICTS)) as server:
        yield server


@pytest.fixture
def night(database_url: str) -> Iterator[Database]:
    opened = Database(database_url, role="nous_night")
    yield opened
    opened.close()


@pytest.fixture
def facts(heart: Heart) -> None:
    """Four facts of one agent: three pairs to ask about."""
    remember(heart, NINE, AT_NINE, FISH, CATS)


@pytest.mark.usefixtures("facts")
def test_a_batch_that_comes_home_between_two_looks_at_what_is_open_is_not_paid_twice(night, api, tmp_path, monkeypatch):
    send_all(night, api.url)
    done: list[int] = []

    def then_home(look: Callable[..., Any]) -> Callable[..., Any]:
        def looked(*given: Any) -> Any:
            found = look(*given)
            if not done:
                done.append(bring_home(night, api.url, tmp_path).imported)
            return found

        return looked

    for name in ("answered_pairs", "open_pairs", "tried"):
        monkeypatch.setattr(sending, name, then_home(getattr(sending, name)))
    again = estimate_for(night, wanted_of(night), night=NIGHT, models=MODELS)

    assert (done, again.to_ask.pair_count) == ([1], 0)


@pytest.mark.usefixtures("facts")
@pytest.mark.parametrize("status", [429, 529])
def test_a_batch_that_was_turned_away_is_asked_for_again_at_once(night, api, owner, status):
    api.play(Play(status=status, headers={"retry-after": "1"}), route=Route.CREATE_BATCH)

    turned_away, again = send_all(night, api.url), send_all(night, api.url)

    assert (turned_away.batches, again.pairs) == (0, 3)
    assert states(owner) == ["failed", "submitted"]
