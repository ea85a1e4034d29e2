"""What the API shows to a browser, and to who has no key."""

from __future__ import annotations

import pytest
from api_client import app_over, bearer, client_of, key_of
from conftest import WordEmbedder

from nous_online.database.connection import Database
from nous_online.interfaces.api.application import access_at

EVERYWHERE = "0.0.0.0"  # noqa: S104 (none listens)


def test_the_api_has_no_page_a_script_could_run_in(database_url: str, embedder: WordEmbedder) -> None:
    app = app_over(database_url, embedder, access=access_at("127.0.0.1", requires_keys=False))
    paths = ["/docs", "/redoc", "/docs/oauth2-redirect", *(path for path in app.openapi()["paths"] if "{" not in path)]

    with client_of(app) as client:
        answers = [client.get(path, headers={"Accept": "text/html"}) for path in paths]

    assert [each.status_code for each in answers[:3]] == [404] * 3
    assert not [each for each in answers if "html" in each.headers.get("content-type", "")]


@pytest.mark.parametrize(
    ("host", "has_proxy", "statuses"),
    [("127.0.0.1", False, [200, 200]), ("127.0.0.1", True, [401, 200]), (EVERYWHERE, False, [401, 200])],
)
def test_metrics_are_for_this_machine_or_need_a_key(
    database_url: str, database: Database, embedder: WordEmbedder, *, host: str, has_proxy: bool, statuses: list[int]
) -> None:
    access = access_at(host, requires_keys=True, has_proxy=has_proxy)
    key = key_of(database, "aria", is_read_only=True)

    with client_of(app_over(database_url, embedder, access=access)) as client:
        answers = [client.get("/metrics", headers=headers) for headers in ({}, bearer(key))]

    assert [each.status_code for each in answers] == statuses
