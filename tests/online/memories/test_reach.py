"""Who finds what: scopes, users, projects and the time a fact holds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from anthropic import Anthropic

from nous_online.core.errors import InvalidInput
from nous_online.heart import Heart
from nous_online.interfaces.adapters.wrapping import wrap

NOW = datetime.now(UTC)


def found(heart: Heart, **who) -> list[str]:
    return sorted(answer.content for answer in heart.recall("where is the harbour", **who))


def test_what_belongs_to_a_user_or_a_project_is_found_by_that_one_alone(heart: Heart) -> None:
    heart.learn("The harbour is open")
    heart.learn("The harbour of Ana", user_id="ana")
    heart.learn("The harbour of Atlas", project_id="atlas")
    heart.learn("The harbour shared by Atlas", scope="project", project_id="atlas")

    assert found(heart) == ["The harbour is open"]
    assert found(heart, user_id="ana") == ["The harbour is open", "The harbour of Ana"]
    assert found(heart, project_id="atlas") == [
        "The harbour is open", "The harbour of Atlas", "The harbour shared by Atlas",
    ]  # fmt: skip
    assert found(heart, user_id="ben", project_id="other") == ["The harbour is open"]


def test_a_memory_of_a_project_has_to_name_it(heart: Heart) -> None:
    with pytest.raises(InvalidInput, match="needs a project_id"):
        heart.learn("The harbour is open", scope="project")
    with pytest.raises(InvalidInput, match="needs a project_id"):
        heart.add_censor("opening the harbour", "It is closed", scope="project")
    with pytest.raises(InvalidInput, match="needs a project_id"):
        heart.start_episode("At the harbour", scope="project")


@pytest.mark.parametrize("owner", ["user_id", "project_id"])
@pytest.mark.parametrize(
    "verb",
    [
        lambda h, **who: h.learn("The harbour is open", **who),
        lambda h, **who: h.learn_deferred([("The harbour is open", who)]),
        lambda h, **who: h.record_episode("The harbour was open", **who),
        lambda h, **who: h.store_procedure("open the harbour", **who),
        lambda h, **who: h.add_censor("opening the harbour", "It is closed", **who),
        lambda h, **who: h.recall("where is the harbour", **who),
        lambda h, **who: h.assemble_context(**who),
        lambda h, **who: h.predict(signals={"task": "open the harbour"}, **who),
        lambda h, **who: h.check_censors("opening the harbour", **who),
        lambda h, **who: h.list_memories(**who),
        lambda h, **who: h.learn_workflows(**who),
        lambda h, **who: h.end_session("s", **who),
        lambda h, **who: h.session("s", **who),
        lambda h, **who: wrap(Anthropic(api_key="none"), h, **who),
    ],
)
def test_an_empty_user_or_project_is_refused_and_not_taken_for_everybody(heart: Heart, verb, owner: str) -> None:
    before = heart.count()

    with pytest.raises(InvalidInput, match=f"{owner} is empty; name one, or leave it out"):
        verb(heart, **{owner: ""})

    assert heart.count() == before


def test_a_fact_is_recalled_while_it_holds(heart: Heart) -> None:
    heart.learn("The harbour was red", valid_to=NOW - timedelta(days=1))
    heart.learn("The harbour will be blue", valid_from=NOW + timedelta(days=1))
    heart.learn("The harbour stays green", valid_from=NOW - timedelta(days=9), valid_to=NOW + timedelta(days=9))

    assert found(heart) == ["The harbour stays green"]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"limit": "5"}, "limit must be"),
        ({"limit": None}, "limit must be"),
        ({"limit": 2.5}, "limit must be"),
        ({"types": [["fact"]]}, "an entry of types"),
        ({"user_id": 7}, "user_id must be text"),
    ],
)
def test_a_question_that_can_not_be_asked_is_refused_by_name(heart: Heart, wrong, said) -> None:
    with pytest.raises(InvalidInput, match=said):
        heart.recall("where is the harbour", **wrong)


def test_feedback_takes_ids_in_any_form_and_refuses_what_is_none(heart: Heart) -> None:
    heart.learn("The harbour is open")
    asked = heart.recall("harbour")

    assert heart.cite(asked.id, (answer.id for answer in asked)) == 1
    assert heart.ignore(str(asked.id), [str(asked[0].id)], at="2026-05-01T00:00:00Z") == 1
    with pytest.raises(InvalidInput, match="memory_ids must be a list"):
        heart.cite(asked.id, asked[0].id)  # pyright: ignore[reportArgumentType]
