"""Writes the clients of the REST interface from its OpenAPI document: JavaScript with types, and Python.

`python -m clients.generate` writes them; a test holds that they are what the document says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any

from nous_online.interfaces.api.application import application

HERE = Path(__file__).parent
JSON = "application/json"
NO_CONTENT = "204"
METHODS = ("get", "post", "put", "patch", "delete")
Schema = Mapping[str, Any]


@dataclass(frozen=True)
class Call:
    """One operation: how it is named, where it goes, what it takes and what it answers."""

    name: str
    method: str
    path: str
    told: str
    """What it does, in a sentence or more."""
    in_path: tuple[str, ...]
    query: Mapping[str, Schema]
    body: str | None
    """The name of its schema."""
    answer: str | None
    """The name of its schema; None for text."""
    is_silent: bool = False
    """Whether it answers nothing."""


def calls_of(document: Schema) -> Iterator[Call]:
    """Yield the operations of a document, in its order."""
    for path, operations in document["paths"].items():
        for method in METHODS:
            if method not in operations:
                continue
            operation = operations[method]
            parameters = operation.get("parameters", ())
            content = operation.get("requestBody", {}).get("content", {}).get(JSON, {})
            status = min(status for status in operation["responses"] if status.startswith("2"))
            answer = operation["responses"][status].get("content", {}).get(JSON, {})
            yield Call(
                name=operation["operationId"],
                method=method.upper(),
                path=path,
                told=operation["description"],
                in_path=tuple(each["name"] for each in parameters if each["in"] == "path"),
                query={each["name"]: each for each in parameters if each["in"] == "query"},
                body=reference(content.get("schema", {})),
                answer=reference(answer.get("schema", {})),
                is_silent=status == NO_CONTENT,
            )


def reference(schema: Schema) -> str | None:
    """Return the name of the schema that one refers to."""
    return schema["$ref"].rpartition("/")[2] if "$ref" in schema else None


@dataclass(frozen=True)
class Words:
    """How a language writes types."""

    named: Mapping[str, str]
    either: str
    literal: str
    listed: str
    mapped: str
    anything: str
    object: str

    def type_of(self, schema: Schema) -> str:
        """Return a schema as a type."""
        if "$ref" in schema:
            return str(reference(schema))
        if "const" in schema or "enum" in schema:
            return self.literal.format(", ".join(map(json.dumps, schema.get("enum", [schema.get("const")]))))
        several = schema.get("anyOf") or schema.get("oneOf") or (schema.get("allOf") if "type" not in schema else None)
        if several:
            return self.any_of(several)
        return self.container(schema) or self.named.get(str(schema.get("type")), self.anything)

    def any_of(self, schemas: Iterable[Schema]) -> str:
        """Return what fits one of some schemas as a type, each once."""
        return self.either.join(dict.fromkeys(map(self.type_of, schemas)))

    def container(self, schema: Schema) -> str | None:
        """Return an array or an object as a type; None for anything else."""
        if schema.get("type") == "array":
            return self.listed.format(self.any_of(schema.get("prefixItems") or [schema.get("items", {})]))
        if schema.get("type") == "object":
            inner = schema.get("additionalProperties")
            return self.mapped.format(self.type_of(inner)) if isinstance(inner, Mapping) else self.object
        return None


TYPESCRIPT = Words(
    named={"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"},
    either=" | ", literal="{}", listed="Array<{}>", mapped="Record<string, {}>", anything="unknown",
    object="Record<string, unknown>",
)  # fmt: skip
PYTHON = Words(
    named={"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"},
    either=" | ", literal="Literal[{}]", listed="list[{}]", mapped="dict[str, {}]", anything="Any",
    object="dict[str, Any]",
)  # fmt: skip


def typescript_type(schema: Schema) -> str:
    """Return a schema as a type of TypeScript, where constants are joined by bars."""
    return TYPESCRIPT.type_of(schema).replace('", "', '" | "')


def camel(name: str) -> str:
    """Return a name as JavaScript writes it."""
    return re.sub(r"_([a-z])", lambda found: found[1].upper(), name)


def one_line(text: str) -> str:
    """Return a text on one line, fit for a comment."""
    return " ".join(text.split()).replace("*/", "* /")


def interface_of(name: str, schema: Schema) -> str:
    """Return a schema as an interface of TypeScript."""
    required = schema.get("required", ())
    lines = [f"/** {one_line(schema.get('description', name))} */", f"export interface {name} {{"]
    for field, inner in schema.get("properties", {}).items():
        if inner.get("description"):
            lines.append(f"  /** {one_line(inner['description'])} */")
        lines.append(f"  {field}{'' if field in required else '?'}: {typescript_type(inner)};")
    return "\n".join([*lines, "}"])


def declared(call: Call) -> str:
    """Return a method as TypeScript declares it."""
    taken = [f"{name}: string" for name in call.in_path]
    taken += [f"body: {call.body}"] if call.body else []
    if call.query:
        fields = "; ".join(
            f"{name}{'' if each.get('required') else '?'}: {typescript_type(each['schema'])}"
            for name, each in call.query.items()
        )
        taken.append(f"query{'' if any(each.get('required') for each in call.query.values()) else '?'}: {{ {fields} }}")
    taken.append("options?: CallOptions")
    answer = call.answer or ("void" if call.is_silent else "string")
    return f"  /** {one_line(call.told)} */\n  {camel(call.name)}({', '.join(taken)}): Promise<{answer}>;"


def javascript_method(call: Call) -> str:
    """Return a method in JavaScript."""
    taken = [*call.in_path, *(["body"] if call.body else []), *(["query"] if call.query else []), "options"]
    path = re.sub(r"\{(\w+)\}", r"${encodeURIComponent(\1)}", call.path)
    told = {"body": "body" if call.body else "undefined", "query": "query" if call.query else "undefined"}
    return (
        f"  {camel(call.name)}({', '.join(taken)}) {{\n"
        f'    return this.call("{call.method}", `{path}`, {told["body"]}, {told["query"]}, options);\n  }}'
    )


def typed_dict(name: str, schema: Schema) -> str:
    """Return a schema as a class of Python."""
    required = schema.get("required", ())
    lines = [f"class {name}(TypedDict):", f'    """{one_line(schema.get("description", name)).rstrip(chr(34))}"""', ""]
    for field, inner in schema.get("properties", {}).items():
        kind = PYTHON.type_of(inner)
        lines.append(f"    {field}: {kind if field in required else f'NotRequired[{kind}]'}")
    return "\n".join(lines)


def python_method(call: Call) -> str:
    """Return a method in Python: its body, or its query, is told by keywords."""
    taken = ["self", *(f"{name}: str" for name in call.in_path), "*", "options: CallOptions | None = None"]
    told = "None"
    if call.body:
        taken, told = [*taken, f"**body: Unpack[{call.body}]"], "dict(body)"
    query = "None"
    if call.query:
        taken += [
            f"{name}: {PYTHON.type_of(each['schema'])}" + ("" if each.get("required") else " | None = None")
            for name, each in call.query.items()
        ]
        query = "{" + ", ".join(f'"{name}": {name}' for name in call.query) + "}"
    path = re.sub(r"\{(\w+)\}", r"{quote(\1, safe='')}", call.path)
    written = f'f"{path}"' if call.in_path else f'"{path}"'
    answer = call.answer or ("None" if call.is_silent else "str")
    return (
        f"    def {call.name}({', '.join(taken)}) -> {answer}:\n"
        f'        """{one_line(call.told)}"""\n'
        f'        return cast("{answer}", self.call("{call.method}", {written}, {told}, {query}, options))'
    )


def files() -> dict[str, str]:
    """Return the generated files by their paths below this folder."""
    document = application().openapi()
    schemas: Mapping[str, Schema] = document["components"]["schemas"]
    calls = list(calls_of(document))
    version = document["info"]["version"]
    filled = {
        "version": version,
        "interfaces": "\n\n".join(interface_of(name, schemas[name]) for name in sorted(schemas)),
        "declared": "\n".join(map(declared, calls)),
        "javascript": "\n\n".join(map(javascript_method, calls)),
        "typed_dicts": "\n\n\n".join(typed_dict(name, schemas[name]) for name in sorted(schemas)),
        "python": "\n\n".join(map(python_method, calls)),
    }
    return {
        path: Template((HERE / template).read_text("utf-8")).substitute(filled)
        for path, template in (
            ("typescript/index.js", "templates/index.js"),
            ("typescript/index.d.ts", "templates/index.d.ts"),
            ("typescript/package.json", "templates/package.json"),
            ("python/nous_client.py", "templates/nous_client.py.txt"),
        )
    }


def main() -> None:
    """Write the generated files."""
    for path, text in files().items():
        (HERE / path).write_text(text, "utf-8")


if __name__ == "__main__":
    main()
