"""A bad database URL is told by the part that is wrong; no part of the password in it reaches a message."""

from __future__ import annotations

import pytest

from nous_online.core.errors import Unavailable
from nous_online.core.settings import settings
from nous_online.database.connection import Database, connect, url_error, without_password
from nous_online.interfaces.doctor import checks

SECRETS = ("S3cr", "tPass", "retPass", "S3c")


@pytest.mark.parametrize(
    ("url", "part"),
    [
        ("postgresql://nous:S3cr%tPass@db/nous", "the password in its URL has a %"),
        ("postgresql://S3cr%tPass@db/nous", "the user in its URL has a %"),
        ("postgresql://nous:S3c@retPass@host/nous", "the password in its URL has an @; write it as %40"),
        ("postgresql://nous:S3c/retPass@host/nous", "the password in its URL has a /; write it as %2F"),
        ("postgresql://nous:S3cr%00tPass@db/nous", "the password in its URL has a %"),
        ("postgresql://db:S3cretPass/nous", "the port in its URL is not a number"),
        ("postgresql://nous:x@[::1]S3cr:5/nous", "the port in its URL is not a number"),
        ("postgresql://db/nous?S3cretPass", "its URL can't be read"),
        ("postgresql://db/nous?S3cretPass=1", "its URL can't be read"),
        ("postgresql://db/S3cr%tPass", "the database in its URL has a %"),
        ("postgres//nous:S3cretPass@db/nous", "its URL can't be read"),
        ("http://nous:S3cretPass@db/nous", "its URL does not begin with postgresql://"),
        ("S3cretPass", "its URL can't be read"),
        ("host=db password='S3cretPass", "its URL can't be read"),
    ],
)
def test_the_part_that_is_wrong_is_named_and_not_quoted(url: str, part: str) -> None:
    with pytest.raises(Unavailable, match=r"; mend NOUS_DATABASE_URL, or unset it for the embedded server$") as refused:
        Database(url)

    assert part in str(refused.value)
    assert not [each for each in SECRETS if each in str(refused.value)]
    assert refused.value.__cause__ is None


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://",
        "postgresql:///nous",
        "postgres://nous@db:5432/nous?sslmode=require",
        "postgresql://nous:p%40ss%2Fword@[::1]:5432/nous",
        "postgresql://nous@a:1,b:2/nous?target_session_attrs=read-write",
        "postgresql://%2Fvar%2Frun%2Fpostgresql/nous",
        "postgresql://nous:why?not@db/nous",
        "host=/run/postgresql dbname=nous",
        "",
    ],
)
def test_what_libpq_can_read_is_in_order(url: str) -> None:
    assert url_error(url) is None


def test_a_password_that_is_quoted_all_the_same_is_taken_out() -> None:
    url = "postgresql://nous:S3cretPass@db/nous"

    assert without_password("refused: S3cretPass at db", url) == "refused: … at db"
    assert without_password('database "nous" does not exist', "postgresql://nous:nous@db/nous") == (
        'database "nous" does not exist'
    )


def test_doctor_alone_names_a_host_that_does_not_answer_and_never_the_password(monkeypatch: pytest.MonkeyPatch) -> None:
    url = "postgresql://nous:S3cretPass@127.0.0.1:9/nous"
    monkeypatch.setenv("NOUS_DATABASE_URL", url)
    settings.cache_clear()
    said = {check.name: check.message for check in checks()}
    settings.cache_clear()

    with pytest.raises(Unavailable, match="nothing listens at its address") as refused:
        connect(url)

    assert "127.0.0.1" in said["server"]
    assert "127.0.0.1" not in str(refused.value)
    assert "S3cretPass" not in f"{refused.value}{said}"


def test_doctor_does_not_quote_it_either(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOUS_DATABASE_URL", "postgresql://nous:S3cr%tPass@db/nous")
    settings.cache_clear()

    said = {check.name: check.message for check in checks()}

    settings.cache_clear()
    assert "the password in its URL has a %" in said["server"]
    assert not [name for name, message in said.items() if "tPass" in message]
