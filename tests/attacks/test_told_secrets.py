"""A credential that is told to any door is in nothing that is stored, and the answer says so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from conftest import ScriptedJudge, WordEmbedder
from import_files import import_file, written
from mcp_visits import call, door_to, said, values
from told_credentials import AWS, GITHUB, HELD, KEY, PHRASE, RANDOM

from nous_online.core.errors import Refused
from nous_online.core.policy import LearnPolicy
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.language.writing.credentials import MARK, mask_credentials

NOT_HIDDEN = (  # a plain word, or a number, that only what is said around it makes a credential
    "His number is 078-05-1120.",
    "Use swordfish as the password.",
    "The password — swordfish — works.",
    "SIGNING_KEY=swordfish",
    "creds: admin/swordfish",
    "Log in as root with swordfish.",
    "My PIN: 42",
    "The door code is 4821.",
    "The alarm code 4821 still works.",
    "The wifi password is swordfishing.",
    "swordfish is my password.",
    PHRASE,
)
HARMLESS = [
    "See Screenshot_2026-05-01T10-22-33Z.png and IMG_20260501_WA0012_Final.jpg",
    "backup-2026-11-20T02-15-00Z-Full-v2.tar.gz is the latest",
    "build_20261120T093015Z_a1b2c3d is broken",
    "The function getUserNameFromDatabaseV2Helper20 is slow",
    "The docs are at https://docs.example.com/document/d/1BxiMVs0XRA5nFMdKvBdBZjgmUUqptlbs74OgvE2upms/edit",
    "commit 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b fixes the token refresh",
    "uuid 01a202e5-e0bd-7d8c-b5bd-9313b051deb4 is the fact",
    "integrity sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJx5dWq6v0Xm3v8bq3 ana@host",
    "pk_users_accounts_2024 is an index",
    "The order 4111 2222 3333 4444 was shipped",
    "The API key is Helga's responsibility",
    "The secret is patience.",
    "The token is valid for 3600 seconds",
    "Our session key is 256 bits",
    "The deploy key belongs to the CI bot",
    "The password must have 12 characters and a digit",
    "Passwords are stored as bcrypt hashes",
    "Ask Helga for the door code",
    "The alarm code is in the safe",
    "The wifi password is on the fridge",
    "The primary key is user_id",
    "API key rotation happens every 90 days",
    "Basic understanding of OAuth2 helps",
    "Deploys need two approvals",
    "The guest wifi password is sunflower22",
    "The password of the Wi-Fi at the café: plumcake88",
    "WLAN-Passwort: Hase-2291",
]
SECRETS = {
    "an API key": KEY,
    "a token of GitHub": GITHUB,
    "a key of AWS": AWS,
    "something random": RANDOM,
    "a password": "hunter2",
    "a private key": "MIIEpAIBAAKCAQEA7bq",
}
TEXTS = {
    "an API key": f"Use {KEY} for staging",
    "a token of GitHub": f"The deploy key {GITHUB} expires soon",
    "a key of AWS": f"aws_access_key_id={AWS}",
    "something random": f"It said {RANDOM}, whatever that means",
    "a password": "The staging password is hunter2.",
    "a private key": "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7bq\n-----END RSA PRIVATE KEY-----\nis the key",
}
DOORS: dict[str, Callable[[Heart, str], Any]] = {
    "learn": lambda heart, text: heart.learn(text),
    "learn, context": lambda heart, text: heart.learn("Staging needs a key", context=text),
    "learn_deferred": lambda heart, text: heart.learn_deferred([(text, {})]),
    "record_episode": lambda heart, text: heart.record_episode(text, lessons_learned=[text.splitlines()[0]]),
    "start_episode": lambda heart, text: heart.update_episode(heart.start_episode("Staging").id, append=text),
    "load_context": lambda heart, text: heart.load_context(note=text),
    "remember": lambda heart, text: call(door_to(heart), "remember", content=text),
    "store_procedure": lambda heart, text: heart.store_procedure("Deploy", goals=[text], core_tools=["helm"]),
    "store_procedure, steps": lambda heart, text: heart.store_procedure("Ship", steps=["build", text.splitlines()[0]]),
    "record_decision": lambda heart, text: heart.record_decision("Staging gets a key", rationale=text),
    "add_censor": lambda heart, text: heart.add_censor("posting keys", text),
}


def checked(heart: Heart, text: str) -> None:
    """Do what a censor warns of, with a credential, and say that it was a false alarm."""
    heart.add_censor("echo", "it prints too much", is_literal=True)
    (activation,) = heart.check_censors(f"echo {text}")
    heart.report_false_positive(activation.censor.id)
    assert not [*heart.check_censors(f"echo {text}")]


ASKED: dict[str, Callable[[Heart, str], Any]] = {
    "check_censors": checked,
    "recall": lambda heart, text: heart.recall(text),
    "assemble_context": lambda heart, text: heart.assemble_context(query=text),
}
"""What is only noted: hidden even where a policy refuses to be told."""


def stored(owner: psycopg.Connection) -> str:
    """Everything that is stored of agents, in one text."""
    tables = owner.execute(
        "select c.oid::regclass::text from pg_class c join pg_namespace n on n.oid = c.relnamespace "
        "where c.relkind = 'r' and n.nspname in ('heart', 'brain', 'lifecycle')"
    ).fetchall()
    return "\n".join(
        str(row)
        for (table,) in tables
        for row in owner.execute(f"select to_jsonb(t)::text from {table} t").fetchall()  # type: ignore[arg-type]  # noqa: S608
    )


@pytest.mark.parametrize(
    "text",
    [
        "The password of the bank is hunter2, and that of the wifi is on the fridge",
        "The wifi is down, my bank password is hunter2",
        "The wifi broke. Password: hunter2",
        "We have wifi and the bank password is hunter2",
        "The wifi is slow so use hunter2 as the bank password",
    ],
)
def test_the_password_of_something_else_is_hidden_beside_a_wifi(text: str) -> None:
    assert mask_credentials(text) == (text.replace("hunter2", MARK), 1)


@pytest.mark.parametrize("text", [text for text in HELD if text not in NOT_HIDDEN])
def test_what_looks_like_a_credential_is_hidden(text: str) -> None:
    told, count = mask_credentials(text)

    assert count >= 1
    assert MARK in told


@pytest.mark.parametrize("text", [*HARMLESS, *NOT_HIDDEN])
def test_nothing_else_is_taken_for_one(text: str) -> None:
    assert mask_credentials(text) == (text, 0)


@pytest.mark.parametrize("door", DOORS | ASKED)
@pytest.mark.parametrize("secret", SECRETS)
def test_a_credential_told_to_a_door_is_nowhere_in_the_store(
    heart: Heart, owner: psycopg.Connection, door: str, secret: str
) -> None:
    (DOORS | ASKED)[door](heart, TEXTS[secret])
    heart.work()

    found = stored(owner)
    assert SECRETS[secret] not in found
    assert MARK in found


def test_an_imported_line_is_stored_without_its_credential(
    heart: Heart, owner: psycopg.Connection, tmp_path: Path
) -> None:
    records = [{"content": TEXTS["an API key"]}, {"kind": "episode", "detail": TEXTS["a password"]}]

    report = import_file(heart, written(tmp_path / "some.jsonl", *records))

    assert (report.stored, report.episodes) == (1, 1)
    assert not [secret for secret in (KEY, "hunter2") if secret in stored(owner)]


def test_the_answer_says_what_was_hidden(heart: Heart) -> None:
    learned = heart.learn(f"Use {KEY} and the password is hunter2.")
    answer = call(door_to(heart), "remember", content=f"Ben's key is {GITHUB}, for now")

    assert (learned.hidden, learned.memory.content) == (2, f"Use {MARK} and the password is {MARK}.")
    assert values(answer)["hidden"] == 1
    assert "1 of what looks like credentials was hidden" in said(answer)


@pytest.mark.parametrize(("rule", "is_stored"), [("refuse", False), ("keep", True)])
def test_a_policy_may_refuse_or_keep_credentials(
    database: Database, owner: psycopg.Connection, rule: str, *, is_stored: bool
) -> None:
    policy = replace(LearnPolicy(), on_credential=rule)  # type: ignore[arg-type]
    heart = Heart.open(
        "aria",
        database=database,
        embedder=WordEmbedder(),
        judge=ScriptedJudge(),
        policy=policy,
        works_in_background=False,
    )
    for name, door in DOORS.items():
        if rule == "keep":
            door(heart, TEXTS["an API key"])
            continue
        if name == "remember":  # answers with the error instead of raising it
            continue
        with pytest.raises(Refused, match="looks as if it held a credential"):
            door(heart, TEXTS["an API key"])

    assert (KEY in stored(owner)) is is_stored


def test_a_censor_is_not_set_off_by_a_credential_of_its_own(heart: Heart, owner: psycopg.Connection) -> None:
    with pytest.raises(Refused, match="name what it is for"):
        heart.add_censor(f"echo {KEY}", "it prints too much")

    assert KEY not in stored(owner)


def test_a_caller_with_a_key_of_its_own_is_bound_by_the_policy_of_the_heart(heart: Heart) -> None:
    from nous_online.core.rights import WITHOUT_KEY

    assert heart.limited_to(WITHOUT_KEY).learn(TEXTS["a password"]).hidden == 1
