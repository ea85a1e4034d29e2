"""What arrives at the local server, and what it asks for."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from benchmarks.anthropic_server.plays import PlayRoute
from benchmarks.anthropic_server.refusals import ApiError
from nous_online.language.claude.replies import Request

BATCH = r"/v1/messages/batches/(?P<id>[^/]+)"
ROUTES = (
    ("POST", re.compile(r"/v1/messages"), PlayRoute.MESSAGE),
    ("POST", re.compile(r"/v1/messages/count_tokens"), PlayRoute.COUNT_TOKENS),
    ("POST", re.compile(r"/v1/messages/batches"), PlayRoute.CREATE_BATCH),
    ("GET", re.compile(r"/v1/messages/batches"), PlayRoute.LIST_BATCHES),
    ("GET", re.compile(BATCH), PlayRoute.GET_BATCH),
    ("DELETE", re.compile(BATCH), PlayRoute.DELETE_BATCH),
    ("POST", re.compile(f"{BATCH}/cancel"), PlayRoute.CANCEL_BATCH),
    ("GET", re.compile(f"{BATCH}/results"), PlayRoute.BATCH_RESULTS),
    ("GET", re.compile(r"/v1/models"), PlayRoute.LIST_MODELS),
    ("GET", re.compile(r"/v1/models/(?P<id>[^/]+)"), PlayRoute.GET_MODEL),
)


@dataclass(frozen=True)
class Arrived:
    """One request as it came in; `params` is its body as JSON, empty where it has none that can be read."""

    route: PlayRoute
    target: str
    """The id in the path, or nothing."""
    query: Mapping[str, str]
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes
    params: Request
    at: datetime


def arrived(method: str, url: str, headers: Mapping[str, str], body: bytes, *, at: datetime) -> Arrived:
    """Return a request with what it asks for; raise `ApiError` for a path nobody serves."""
    parts = urlsplit(url)
    for expected, pattern, route in ROUTES:
        if expected == method and (found := pattern.fullmatch(parts.path.rstrip("/"))):
            lower = {name.lower(): value for name, value in headers.items()}
            query = dict(parse_qsl(parts.query))
            return Arrived(route, found.groupdict().get("id", ""), query, lower, body, parsed(body), at)
    raise ApiError(f"{method} {parts.path} is not served here", 404)


def parsed(body: bytes) -> dict[str, Any]:
    """Return a body as a JSON object, empty where it is none."""
    try:
        found = json.loads(body or b"{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
