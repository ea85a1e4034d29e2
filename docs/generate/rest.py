"""The page about the REST interface: every call with its body and its answer, from the OpenAPI description."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from docs.generate.python import BAR
from nous_online.interfaces.api.application import application

HEAD = """# The REST interface

Every call, as the server itself describes it at `/openapi.json`.
Generated from the application by `make docs`; a test holds it current. `nous api` serves it, `nous key create` makes
the keys that open it: `Authorization: Bearer nous_…`.
"""
ALWAYS_THERE = "An answer has every field of its value; `null` stands where there is none, as its type says."
BODY, NULL = "Body", {"type": "null"}
Schema = Mapping[str, Any]


def rest_page() -> str:
    """Return the whole page."""
    described = application().openapi()
    schemas: Mapping[str, Schema] = described["components"]["schemas"]
    calls = [(method, path, call) for path, methods in described["paths"].items() for method, call in methods.items()]
    parts = [HEAD, described["info"]["description"], "", *header_section(calls), *problem_section(calls, schemas)]
    for tag in described["tags"]:
        own = [call_section(*each, schemas) for each in calls if tag["name"] in each[2]["tags"]]
        parts += [f"## {tag['name'].capitalize()}\n\n{tag['description']}\n", *own]
    made_of = inner(schemas)
    named = sorted(name for name in schemas if not name.endswith(BODY) or name in made_of)
    parts += [f"## Values\n\n{ALWAYS_THERE}\n", *(schema_section(name, schemas[name]) for name in named)]
    return "\n".join(parts).rstrip() + "\n"


def header_section(calls: Iterable[tuple[str, str, Schema]]) -> list[str]:
    """Return what headers a call may carry, each once."""
    found = {
        each["name"]: each.get("description", "")
        for _, _, call in calls
        for each in call.get("parameters", ())
        if each["in"] == "header"
    }
    rows = [f"| `{name}` | {cell(found[name])} |" for name in sorted(found)]
    return ["| header | |", "|---|---|", *rows, ""]


def problem_section(calls: Iterable[tuple[str, str, Schema]], schemas: Mapping[str, Schema]) -> list[str]:
    """Return the problems a call may end in, and one as it is sent."""
    found = {
        status: answer["description"]
        for _, _, call in calls
        for status, answer in call["responses"].items()
        if "application/problem+json" in answer.get("content", {})
    }
    rows = [f"| {status} | {cell(found[status])} |" for status in sorted(found)]
    example = json.dumps(schemas["Problem"]["example"], indent=2)
    return ["## Problems\n", "| status | |", "|---|---|", *rows, "", f"```json\n{example}\n```\n"]


def call_section(method: str, path: str, call: Schema, schemas: Mapping[str, Schema]) -> str:
    """Return the section of one call: what it does, what it takes, what it answers."""
    lines = [f"### {method.upper()} {path}\n", call.get("description", call["summary"]), ""]
    own = [each for each in call.get("parameters", ()) if each["in"] != "header"]
    if own:
        rows = [
            f"| `{each['name']}` | {kind_of(each['schema'])} | {cell(each.get('description', ''))} |" for each in own
        ]
        lines += [
            f"| in the {' and '.join(sorted({each['in'] for each in own}))} | type | |",
            "|---|---|---|",
            *rows,
            "",
        ]
    body = content_of(call.get("requestBody", {}))
    if "$ref" in body:
        lines += [*fields(schemas[name_of(body)]), *example_of(schemas[name_of(body)])]
    answers = [f"{status} {kind_of(content_of(answer))}" for status, answer in answers_of(call)]
    return "\n".join([*lines, f"Answers {', or '.join(answers)}.\n"])


def answers_of(call: Schema) -> Iterator[tuple[str, Schema]]:
    """Yield the answers of a call that are no problems."""
    for status, answer in call["responses"].items():
        if content_of(answer) and "application/problem+json" not in answer["content"]:
            yield status, answer


def content_of(told: Schema) -> Schema:
    """Return the schema of a body or an answer, whatever its media type."""
    return next((each.get("schema", {}) for each in told.get("content", {}).values()), {})


def schema_section(name: str, schema: Schema) -> str:
    """Return the section of one value: what it is, and its fields."""
    told = [schema["description"], ""] if "description" in schema else []
    return "\n".join([f"### {name}\n", *told, *(fields(schema) if name.endswith(BODY) else values(schema))])


def fields(schema: Schema) -> list[str]:
    """Return the fields of a schema as a table, those that must be there marked."""
    needed = schema.get("required", ())
    rows = [
        f"| `{name}`{' (required)' if name in needed and 'default' not in field else ''} | {kind_of(field)} "
        f"| {cell(field.get('description', ''))} |"
        for name, field in schema.get("properties", {}).items()
    ]
    return ["| field | type | |", "|---|---|---|", *rows, ""] if rows else []


def values(schema: Schema) -> list[str]:
    """Return the fields of an answer as a table, those that may be null marked."""
    rows = [
        f"| `{name}` | {kind_of(field)}{', or `null`' if NULL in field.get('anyOf', ()) else ''} "
        f"| {cell(field.get('description', ''))} |"
        for name, field in schema.get("properties", {}).items()
    ]
    return ["| field | type | |", "|---|---|---|", *rows, ""] if rows else []


def example_of(schema: Schema) -> list[str]:
    """Return the example of a body, where it has one."""
    found = schema.get("example", next(iter(schema.get("examples", ())), None))
    return [] if found is None else [f"```json\n{json.dumps(found, indent=2, ensure_ascii=False)}\n```\n"]


def kind_of(schema: Schema) -> str:
    """Return the type of a schema in a word or two, as a cell of a table."""
    if "anyOf" in schema:
        kinds = [kind_of(each) for each in schema["anyOf"] if each.get("type") != "null"]
        return ", or ".join(dict.fromkeys(kinds))
    if "$ref" in schema:
        return f"[{name_of(schema)}](#{name_of(schema).lower()})"
    if "enum" in schema:
        return ", ".join(f"`{each}`" for each in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {kind_of(schema.get('items', {}))}"
    return str(schema.get("format", schema.get("type", "anything")))


def name_of(reference: Schema) -> str:
    """Return the name of the schema that is meant."""
    return str(reference["$ref"]).rpartition("/")[2]


def inner(schemas: Mapping[str, Schema]) -> set[str]:
    """Return the names of the schemas that others are made of."""
    return set(re.findall(r'schemas/([^"]+)"', json.dumps(schemas))).intersection(schemas)


def cell(text: str) -> str:
    """Return a text as it stands in a cell of a table."""
    return " ".join(text.split()).replace("|", BAR)
