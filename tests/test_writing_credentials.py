from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nous_online.writing.credentials import holds_credential, without_credentials
from nous_online.writing.sentences import sentences_of
from nous_online.writing.writer import OfflineWriter, Told

# Put together here, so that no scanner takes them for real ones.
KEY = "sk" + "-proj-" + "4fQ" * 9
GITHUB = "gh" + "p_" + "a1B2" * 9
AWS = "AK" + "IA" + "QX7" * 5
JWT = "ey" + "JhbGciOi" + "." + "eyJzdWIiOiI" + ".abc"
RANDOM = "a9F3kd82LsPq0Zx7Wm4T"
HELD = [
    "The password is hunter2.",
    "My password for the guest network is swordfish",
    "Orla changed the passphrase to Mill#44.",
    f"Use {KEY} for now.",
    f"The deploy key {GITHUB} expires soon.",
    f"aws_access_key_id={AWS}",
    "DB_PASSWORD=mill44",
    f"Authorization: Bearer {JWT}",
    "Connect to postgres://orla:mill44@db.example/shed",
    "-----BEGIN OPENSSH PRIVATE KEY-----",
    "The card is 4111 1111 1111 1111.",
    "His number is 078-05-1120.",
    "The PIN is 4821.",
    f"It said {RANDOM}, whatever that means.",
    "Das Passwort: mühle44",
]
HARMLESS = [
    "The password policy requires 12 characters.",
    "The token is expired.",
    "API keys should be rotated every month.",
    "We spent 3000 tokens on the summary.",
    "Commit 47a88fc0aa11bb22cc33dd44ee55ff6677889900 landed.",
    "See https://example.com/mill/wheel/Plans2041/Oak-and-Larch for the drawing.",
    "Secrets are kept in the vault.",
    "The mill reopens on 4 May with 40 sacks.",
]


@pytest.mark.parametrize("text", HELD)
def test_what_looks_like_a_credential_is_seen(text):
    assert holds_credential(text)


@pytest.mark.parametrize("text", HARMLESS)
def test_talk_about_credentials_is_no_credential(text):
    assert not holds_credential(text)


def test_a_short_answer_to_a_question_for_a_password_is_left_out():
    asked = sentences_of("Orla: What is the password?\nPiet: swordfish\nOrla: Thanks, I wrote it down in the shed.")

    assert [sentence.text for sentence in without_credentials(asked)] == [
        "What is the password?",
        "Thanks, I wrote it down in the shed.",
    ]


@settings(max_examples=40, deadline=None)
@given(st.permutations([*HELD, *HARMLESS, "We decided that Orla keeps the mill."]), st.booleans())
def test_no_credential_is_lifted_into_anything(told, failed):
    from conftest import WordEmbedder

    detail = "\n".join(f"Orla: {text}" for text in told)
    draft = OfflineWriter(WordEmbedder()).write(
        Told(detail, outcome="failure" if failed else "success", lessons=[f"Never {text}" for text in told])
    )

    written = str(draft.as_json())
    for secret in (
        "hunter2",
        "swordfish",
        "Mill#44",
        KEY,
        GITHUB,
        AWS,
        "mill44",
        JWT,
        "4111",
        "078-05",
        "4821",
        RANDOM,
    ):
        assert secret not in written
    assert draft.summary


def test_an_episode_of_nothing_but_credentials_tells_nothing(embedder):
    draft = OfflineWriter(embedder).write(Told("\n".join(HELD)))

    assert (draft.summary, draft.facts, draft.title) == ("", (), "Untitled episode")
