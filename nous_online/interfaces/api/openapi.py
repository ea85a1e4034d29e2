"""The OpenAPI document: what FastAPI derives, completed with keys, problems and an example of every answer."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import version as installed_version
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from nous_online.core.details import STORED, meaning
from nous_online.interfaces.api import problems
from nous_online.interfaces.api.bodies import WORDS
from nous_online.interfaces.api.problems import MEDIA_TYPE, Problem, ProblemKind

ID = "0199ab3e-6f52-7c1e-9d53-2f4f5a9b7c11"
OTHER_ID = "0199ab3e-9a01-7d2f-8e64-3a5b6c7d8e9f"
MOMENT = "2026-11-20T09:30:00Z"
VALUES = WORDS["values"]
OF_FORMAT = {"uuid": ID, "date-time": MOMENT, "date": "2026-11-20"}
OF_TYPE: Mapping[str, Any] = {"string": "…", "integer": 1, "number": 0.5, "boolean": True, "null": None}


def example_of(schema: Mapping[str, Any], schemas: Mapping[str, Any], name: str = "") -> Any:
    """Return a value that fits a schema: what the name is known for, else the first thing the schema allows."""
    if "$ref" in schema:
        return example_of(schemas[schema["$ref"].rpartition("/")[2]], schemas, name)
    if "const" in schema or "enum" in schema:
        allowed: list[Any] = schema.get("enum", [schema.get("const")])
        return VALUES[name] if VALUES.get(name) in allowed else allowed[0]
    if "anyOf" in schema:
        return example_of(first_of(schema["anyOf"], name), schemas, name)
    if fits(VALUES.get(name), schema.get("type")):
        return VALUES[name]
    return filled(schema, schemas, name)


def filled(schema: Mapping[str, Any], schemas: Mapping[str, Any], name: str) -> Any:
    """Return a value of a type of which the name says nothing."""
    if schema.get("type") == "array":
        return [example_of(schema.get("items", {}), schemas, name)]
    if schema.get("type") == "object":
        properties: Mapping[str, Any] = schema.get("properties", {})
        return {each: example_of(told, schemas, each) for each, told in properties.items()}
    return OF_FORMAT.get(schema.get("format", "")) or OF_TYPE.get(schema.get("type", ""), "…")


def first_of(choices: list[dict[str, Any]], name: str) -> dict[str, Any]:
    """Return the choice to show: null where nothing is known of a name that may be null."""
    nothing = [each for each in choices if each.get("type") == "null"]
    fitting = [each for each in choices if fits(VALUES.get(name), each.get("type"))]
    return (fitting or nothing or choices)[0]


def fits(value: Any, kind: str | None) -> bool:
    """Tell whether a known value is of the type a schema asks for."""
    kinds: Mapping[str, type | tuple[type, ...]] = {
        "string": str,
        "integer": int,
        "number": (int, float),
        "array": list,
        "object": dict,
    }
    return value is not None and kind in kinds and isinstance(value, kinds[kind])


TITLE = "Nous"
SUMMARY = "Long-term memory for AI agents that maintains itself every night."
DESCRIPTION = """Everything a Heart does, over HTTP. A key names its agent; an administrator's key acts for the agent
named in `X-Nous-Agent`. Every failure is `application/problem+json` (RFC 9457). `X-Nous-Deadline` ends a call in time,
`Idempotency-Key` makes a retry safe, and every answer carries `X-Request-Id`."""
KEY = {"type": "http", "scheme": "bearer", "bearerFormat": "nous_…", "description": "Made by `nous key create`."}
ALWAYS = (problems.UNREADABLE, problems.TOO_MANY, problems.UNEXPECTED, problems.UNAVAILABLE)
KEYED = (problems.KEY_REFUSED, problems.FORBIDDEN, problems.NOT_FOUND, problems.CONFLICT, problems.LATE)
KEYED_ELSEWHERE = ("get_metrics",)
"""What needs a key unless on loopback."""
WITH_BODY = (problems.SLOW_REQUEST, problems.TOO_LARGE, problems.NOT_JSON)


@cache
def version() -> str:
    """Return the version of the installed distribution."""
    return installed_version("nous-pipelines")


def describe(app: FastAPI, *, requires_keys: bool) -> None:
    """Have the application answer with the completed document, made when it is first asked for."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = completed(derived(app), requires_keys=requires_keys)
        return app.openapi_schema

    app.openapi = openapi


def derived(app: FastAPI) -> dict[str, Any]:
    """Return what FastAPI derives from the endpoints."""
    return get_openapi(
        title=app.title,
        version=app.version,
        summary=SUMMARY,
        description=DESCRIPTION,
        routes=app.routes,
        tags=[{"name": name, "description": told} for name, told in WORDS["tags"].items()],
    )


def completed(document: dict[str, Any], *, requires_keys: bool) -> dict[str, Any]:
    """Return a document with keys, problems and examples."""
    components: dict[str, Any] = document["components"]
    for stored in STORED.keys() & components["schemas"].keys():
        for name, field in components["schemas"][stored]["properties"].items():
            field.setdefault("description", meaning(stored, name))
    schemas: dict[str, Any] = components["schemas"]
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    problem = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
    schemas.update(problem.pop("$defs"))
    schemas["Problem"] = problem
    components["securitySchemes"] = {"key": KEY}
    for methods in document["paths"].values():
        for operation in methods.values():
            complete_operation(operation, schemas, requires_keys=requires_keys)
    return document


def complete_operation(operation: dict[str, Any], schemas: Mapping[str, Any], *, requires_keys: bool) -> None:
    """Add to one operation who may call it, how it fails, and what its answers look like."""
    is_open = operation["tags"] == ["server"]
    for parameter in operation.get("parameters", []):
        parameter["schema"] = without_null(parameter["schema"])
    if not is_open:
        operation["security"] = [{"key": []}] if requires_keys else []
    elif operation["operationId"] in KEYED_ELSEWHERE:
        operation["security"] = [{}, {"key": []}]
    responses: dict[str, Any] = operation["responses"]
    for status, response in responses.items():
        if status.startswith("2") or is_open:
            add_example(response, schemas)
    kinds = kinds_of(operation, is_open=is_open)
    responses.pop("422", None)
    for kind in sorted(kinds, key=lambda kind: kind.status):
        responses.setdefault(str(kind.status), told(kind))


def kinds_of(operation: Mapping[str, Any], *, is_open: bool) -> list[ProblemKind]:
    """Return how an operation may fail."""
    kinds = [*ALWAYS, *(() if is_open else KEYED), *(WITH_BODY if "requestBody" in operation else ())]
    kinds += (problems.NO_EXTRA,) if operation["tags"] == ["nights"] else ()
    kinds += (problems.KEY_REFUSED, problems.LATE) if operation["operationId"] in KEYED_ELSEWHERE else ()
    kinds += (problems.INVALID,) if "422" in operation["responses"] or not is_open else ()
    return kinds


def without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a parameter that may be left out, but can't be null: on the wire it is a text."""
    choices: list[dict[str, Any]] = [each for each in schema.pop("anyOf", []) if each.get("type") != "null"]
    return {**schema, **choices[0]} if choices else schema


def add_example(response: dict[str, Any], schemas: Mapping[str, Any]) -> None:
    """Show what an answer looks like."""
    content: dict[str, Any] = response.get("content", {}).get("application/json")
    if content and "example" not in content:
        content["example"] = example_of(content["schema"], schemas)


def told(kind: ProblemKind) -> dict[str, Any]:
    """Return the description of a problem."""
    return {"description": kind.title, "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}}
