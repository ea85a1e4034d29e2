"""The contract: every answer is as the OpenAPI document says, whatever is sent; Schemathesis looks for the exception.

Set NOUS_API_EXAMPLES to the number of examples an operation for a longer look, such as 200.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
from api_client import app_over, bearer, client_of, key_of
from conftest import ScriptedJudge, WordEmbedder
from fastapi import FastAPI
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from nous_online.core.policy import ApiPolicy
from nous_online.database.connection import Database
from nous_online.interfaces.api.application import Access, application
from nous_online.interfaces.api.problems import endpoints

EXAMPLES = int(os.environ.get("NOUS_API_EXAMPLES", "0"))
UNLIMITED = Access(policy=ApiPolicy(calls_per_minute=1_000_000, strangers_per_minute=1_000_000))


@pytest.fixture
def app(database_url: str, embedder: WordEmbedder, judge: ScriptedJudge, document: dict[str, Any]) -> Iterator[FastAPI]:
    app = app_over(database_url, embedder, access=UNLIMITED, judge=judge)
    app.openapi_schema = document  # it would be the same: the routes are, and what they require
    yield app
    app.state.authenticator.hearts.close()


@pytest.fixture
def client(app: FastAPI, database: Database) -> Iterator[TestClient]:
    with client_of(app, bearer(key_of(database, "aria"))) as client:
        yield client


@pytest.fixture(scope="module")
def described() -> FastAPI:
    """An application of which only the document is asked for."""
    return application()


@pytest.fixture(scope="module")
def document(described: FastAPI) -> dict[str, Any]:
    return described.openapi()


def operations(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield f"{method.upper()} {path}", operation


def resolved(document: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with what it refers to, for a validator that knows nothing of the rest."""
    return {**schema, "components": document["components"]}


def findings(app: FastAPI, key: str, *, phases: tuple[str, ...], examples: int) -> tuple[list[str], int]:
    """What Schemathesis finds with all of its checks, and how many requests it made."""
    import schemathesis  # a second to load, in each worker that collects this file
    from schemathesis import engine
    from schemathesis.config import SchemathesisConfig

    config = SchemathesisConfig.from_dict(
        {
            "headers": bearer(key),
            "parameters": {"header.X-Nous-Agent": "aria"},
            "generation": {"max-examples": max(examples, 1), "deterministic": True, "database": "none"},
            "phases": {name: {"enabled": name in phases} for name in ("examples", "coverage", "fuzzing", "stateful")},
        }
    )
    schema = schemathesis.openapi.from_asgi("/openapi.json", app, config=config).exclude(tag="nights")
    found: list[str] = []
    count = 0
    for event in engine.from_schema(schema).execute():
        if isinstance(event, engine.events.NonFatalError | engine.events.FatalError):
            found.append(repr(getattr(event, "value", None) or getattr(event, "exception", None)))
        if isinstance(event, engine.events.ScenarioFinished):
            count += len(event.recorder.cases)
            for case, checks in event.recorder.checks.items():
                failures = [check.failure_info.failure for check in checks if check.failure_info]
                response = event.recorder.interactions[case].response if failures else None
                told = response.content if response else b""
                found += [
                    f"{event.label}: {each} {told!r}" for each in failures if not depends_on_the_clock(each, told)
                ]
    return found, count


def depends_on_the_clock(failure: Exception, told: bytes) -> bool:
    """Tell whether a moment to come was refused, which no schema can say: it is another one each day."""
    return "Schema-valid request rejected" in str(failure) and b" lies ahead: it is " in told


def test_schemathesis_finds_nothing(app: FastAPI, database: Database) -> None:
    found, count = findings(app, key_of(database, "*"), phases=("examples",), examples=1)

    assert found == []
    assert count >= 28


ODD = st.one_of(
    st.text(max_size=20), st.integers(-2, 300), st.floats(-1, 2), st.booleans(), st.none(),
    st.lists(st.sampled_from(["fact", "censor", "full", ""]), max_size=3), st.sampled_from(["full", "index", "fact"]),
)  # fmt: skip
NO_QUESTIONS = ("", " \n", "a\x00b", "\u200b\u3164", "x" * 32_769)
ASKED = st.fixed_dictionaries(
    {"query": st.one_of(st.text(max_size=60), st.text(min_size=1), st.sampled_from(NO_QUESTIONS), ODD)},
    optional={
        "limit": st.one_of(st.integers(-2, 300), ODD),
        "min_score": st.one_of(st.floats(0, 1), ODD),
        **dict.fromkeys(("kinds", "detail", "frame", "session_id", "user_id", "project_id", "nonsense"), ODD),
    },
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(asked=ASKED)
def test_a_question_is_answered_where_it_fits_the_document_and_refused_where_it_does_not(
    client: TestClient, document: dict[str, Any], asked: dict[str, Any]
) -> None:
    described, schemas = document["paths"]["/recall"]["post"]["responses"], document["components"]["schemas"]

    answer = client.post("/recall", json=asked)

    fits = jsonschema.Draft202012Validator(resolved(document, schemas["RecallBody"])).is_valid(asked)
    assert answer.status_code == (200 if fits else 422), answer.text
    (media_type,) = described[str(answer.status_code)]["content"]
    assert answer.headers["content-type"] == media_type
    schema = described[str(answer.status_code)]["content"][media_type]["schema"]
    jsonschema.validate(answer.json(), resolved(document, schema))


@pytest.mark.skipif(not EXAMPLES, reason="a longer look: set NOUS_API_EXAMPLES, such as 200")
@pytest.mark.timeout(3600)
def test_schemathesis_finds_nothing_in_a_longer_look(app: FastAPI, database: Database) -> None:
    phases = ("examples", "coverage", "fuzzing", "stateful")

    found, _ = findings(app, key_of(database, "*"), phases=phases, examples=EXAMPLES)

    assert found == []


def test_every_operation_has_a_name_a_tag_and_a_summary(document: dict[str, Any]) -> None:
    names = [operation["operationId"] for _, operation in operations(document)]
    bare = [
        name for name, each in operations(document) if not (each["tags"] and each["summary"] and each["description"])
    ]

    assert len(set(names)) == len(names)
    assert bare == []


def test_every_body_has_an_example_that_fits_its_schema(document: dict[str, Any]) -> None:
    for name, operation in operations(document):
        if "requestBody" in operation:
            schema = operation["requestBody"]["content"]["application/json"]["schema"]
            body = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
            assert "example" in body, name
            jsonschema.validate(body["example"], resolved(document, body))


def test_every_operation_that_needs_a_key_says_how_it_fails(document: dict[str, Any]) -> None:
    for name, operation in operations(document):
        if operation["tags"] != ["server"]:
            assert operation["security"] == [{"key": []}], name
            assert {"400", "401", "403", "404", "409", "422", "429", "500", "503", "504"} <= set(operation["responses"])
            assert "application/problem+json" in operation["responses"]["401"]["content"]


def test_the_document_is_the_same_each_time_and_plain_json(document: dict[str, Any], described: FastAPI) -> None:
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    assert described.openapi() is document


def test_the_paths_that_answers_name_are_those_of_the_document(document: dict[str, Any], described: FastAPI) -> None:
    named = [f"{method} {path}" for path, methods in endpoints(described).items() for method in methods]

    assert named == [name for name, _ in operations(document)]
