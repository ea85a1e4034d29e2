"""An example of every answer, drawn from its schema and from what values of that name look like."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nous_online.interfaces.api.problems import PREFIX

ID = "0199ab3e-6f52-7c1e-9d53-2f4f5a9b7c11"
OTHER_ID = "0199ab3e-9a01-7d2f-8e64-3a5b6c7d8e9f"
MOMENT = "2026-11-20T09:30:00Z"
VALUES: Mapping[str, Any] = {
    "action": "stored",
    "budget": 8000,
    "capacity": 20,
    "category": "process",
    "checks": [{"name": "database", "is_ok": True, "message": "answers"}],
    "confidence": 0.87,
    "content": "Deploys go through blue/green since May",
    "context": "## Critical\n- Deploys go through blue/green since May",
    "core_tools": ["pytest", "docker"],
    "counting": "Claude since Opus 4.7, reconstructed",
    "counts": {"merges": 2, "retired": 3, "archived": 1},
    "deduped": 23,
    "compressed": 156,
    "forgotten": 12,
    "contradictions_found": 3,
    "detail": "We moved staging to Postgres 18. The dump took 40 minutes.",
    "endpoints": ["POST /facts", "POST /recall"],
    "frame": "decision",
    "goals": ["a release nobody notices"],
    "interface": "http://127.0.0.1:3000/runs",
    "left_out": {"critical": 0, "relevant": 3, "background": 7, "index": 0},
    "matched": "meaning",
    "message": "answers",
    "name": "deploy",
    "night": "2026-11-20",
    "openapi": "/openapi.json",
    "health": "/health",
    "ready": "/ready",
    "metrics": "/metrics",
    "outcome": "success",
    "plan_hash": "9f2c4e1d",
    "reason": "nothing like it was known",
    "reasons": ["used in 7 of the last 9 sessions with src/auth/login.ts open"],
    "run": "4f3d51d0a2b7",
    "scope": "private",
    "score": 0.81,
    "secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw9n4Zk3Pp1oM=",
    "session_id": "s-1",
    "similarity": 0.93,
    "source": "chat with Ada",
    "source_kind": "agent",
    "state": "active",
    "steps": ["test", "build", "stage", "verify", "prod"],
    "subject": "deploys",
    "summary": "Staging was moved to Postgres 18.",
    "task": "migrate the staging database",
    "text": "Deploys go through blue/green since May",
    "tiers": {"tier1": 1950, "tier2": 2890, "tier3": 1988, "tier4": 995},
    "title": "Migrate the staging database",
    "token_count": 7823,
    "tokens": {"critical": 1950, "relevant": 2890, "background": 1988, "index": 995},
    "trigger": "pushing directly to main branch",
    "trust": 50,
    "type": f"{PREFIX}not-found",
    "url": "https://hooks.example.org/nous",
    "version": "0.1.0",
    "watch": "/consolidate/4f3d51d0a2b7",
}
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
