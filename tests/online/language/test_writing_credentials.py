from __future__ import annotations

from time import process_time

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from told_credentials import AWS, GITHUB, HELD, HEX, JWT, KEY, PHRASE, RANDOM

from nous_online.language.writing.credentials import holds_credential, without_credentials
from nous_online.language.writing.sentences import sentences_of
from nous_online.language.writing.writer import EndedEpisode, OfflineWriter

HARMLESS = [
    "The password policy requires 12 characters.",
    "The token is expired.",
    "API keys should be rotated every month.",
    "We spent 3000 tokens on the summary.",
    "Commit 47a88fc0aa11bb22cc33dd44ee55ff6677889900 landed.",
    "See https://example.com/mill/wheel/Plans2041/Oak-and-Larch for the drawing.",
    "Secrets are kept in the vault.",
    "The mill reopens on 4 May with 40 sacks.",
    "I forgot my password.",
    "I forgot my password and the mill is open.",
    "The key decision was to keep Postgres.",
    "The token expires after 15 minutes.",
    "The token expires after 15min.",
    "The access code review is on Monday.",
    "The password reset page is broken.",
    "The password manager is Bitwarden.",
    "The password is hashed with SHA256.",
    "OAuth2 tokens are refreshed.",
    "NOUS-123 fixed the token refresh.",
    "Commit 47a88fc fixed the token refresh.",
    "Give the token to Orla.",
    "Tokens are cheap.",
    "The secret to good bread is time.",
    "Sign in with Google.",
    "No reset is needed, `1740000000000-AddDeviceApprovals` runs on its own.",
    "The record was written at 1763900000000.",
    "The barcode of the flour is 4006381333931.",
    "The tests pass: all of them.",
    "The PIN pad was installed in 2024.",
    "My password's strength is weak.",
    "Orla wants the sails in the mill red, #B3261E, that is --sail-red in tokens.css.",
    "The token for the sails is #B3261E.",
    "From the third edition on, the gate token must be set before openGate is called.",
    "The password has to be changed once the miller is away.",
    "The stones were dressed in a91b. From then on, the gate token must be set before openGate is called.",
]
SPOKEN_OF = [
    "The password must be set before the opening: mill0wheel",
    "The token must be set before the start = a81hfz62kd90",
    "The token must be sent after the login, it is a81hfz62kd90",
    "The password you must use is mill0wheel",
    "The password after the reset is mill0wheel",
    "The token is stored as a91b",
    "We logged in a91b. The password works.",
    "It was changed to a91b7. That is the password.",
    "The stones were dressed in a91b. The password is mill0wheel.",
    "The password is #B3261E",
    "The secret must be #B3261E",
    "Log in to the mill with #B3261E",
]
"""Values that are told like what is no value in `HARMLESS`."""


@pytest.mark.parametrize("text", [*HELD, *SPOKEN_OF])
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


@pytest.mark.parametrize(
    "told",
    [
        f"Orla: What is your seed phrase?\nPiet: Sure. Able about. {PHRASE}.\nOrla: It is noted in the shed now.",
        "What is your seed phrase?\nAbandon able about the above absent and act in air.\nIt is noted in the shed now.",
        "What's the wifi password?\nSure.\nIt says swordfish on the label over there.\nIt is noted in the shed now.",
        "Tell me the door code.\nFour, then eight, then two, and then the one.\nIt is noted in the shed now.",
    ],
)
def test_an_answer_to_a_question_for_a_credential_is_left_out_however_long(told):
    question, *kept = [sentence.text for sentence in without_credentials(sentences_of(told))]

    assert question in told
    assert kept == ["It is noted in the shed now."]


@pytest.mark.parametrize(
    "told",
    [
        "Orla: Where do we keep the API keys?\nPiet: We keep them in the vault of the mill.",
        "Orla: What is the password policy?\nPiet: Everybody must use at least twelve characters.",
        "What happens when the token expires?\nThe client asks for another one at once.",
        "What is the best way to store passwords?\nPut them in the vault of the mill.",
    ],
)
def test_an_answer_to_a_question_about_credentials_is_kept(told):
    assert without_credentials(sentences_of(told)) == sentences_of(told)


NAMES = ("password", "passphrase", "PIN", "door code", "API key", "signing key", "access token", "recovery code", "pwd")
SAYING = (
    "The {name} is {value}.",
    "My {name}: {value}",
    "{name}={value}",
    "Use {value} as the {name}.",
    "We changed the {name} to {value} in May.",
    "The {name} for the old mill, as ever, is {value}.",
    "The {name}'s {value}.",
)
TALKING = (
    "The {name} is {word}.",
    "The {name} policy is strict.",
    "We should change the {name} every month.",
    "I forgot my {name}.",
    "The {name} for the old mill is {word} now.",
    "Orla keeps the {name} in the vault.",
    "Did you ever need the {name}?",
    "The {name} expires after {number} days.",
)


@given(
    st.sampled_from(SAYING),
    st.sampled_from(NAMES),
    st.text("bcdfghjklmnpqrstvwxz", min_size=4, max_size=12)
    | st.from_regex(r"[A-Za-z]{3,9}[0-9]{1,4}", fullmatch=True),
)
def test_a_credential_is_seen_whatever_it_is_called_and_however_it_is_told(told, name, value):
    assert holds_credential(told.format(name=name, value=value))


@given(
    st.sampled_from(TALKING),
    st.sampled_from(NAMES),
    st.sampled_from(["expired", "missing", "wrong", "in the vault", "too short", "not known", "still valid"]),
    st.integers(1, 999),
)
def test_ordinary_talk_does_not_vanish(told, name, word, number):
    assert not holds_credential(told.format(name=name, word=word, number=number))


@pytest.mark.parametrize(
    "piece",
    ["password ", "password,", "set password ", "use a as ", "log in as a ", "x is my ", "[", "— ", "a1", "eyJabcdef."],
)
def test_hostile_text_costs_linear_time(piece):
    def took(size: int) -> float:
        text = piece * (size // len(piece))
        began = process_time()
        holds_credential(text)
        return process_time() - began

    most_s = 16 * took(8_000) + 0.2
    assert any(took(64_000) < most_s for _ in range(3)), "who shares a core gets less done in a second of it"


@settings(max_examples=examples(10), deadline=None)
@given(st.permutations([*HELD, *HARMLESS, "We decided that Orla keeps the mill."]), st.booleans())
def test_no_credential_is_lifted_into_anything(told, failed):
    from conftest import WordEmbedder

    detail = "\n".join(f"Orla: {text}" for text in told)
    draft = OfflineWriter(WordEmbedder()).write(
        EndedEpisode(detail, outcome="failure" if failed else "success", lessons=[f"Never {text}" for text in told])
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
        HEX,
        PHRASE,
        "Tr0ub4dor",
    ):
        assert secret not in written
    assert draft.summary


def test_an_episode_of_nothing_but_credentials_tells_nothing(embedder):
    draft = OfflineWriter(embedder).write(EndedEpisode("\n".join(HELD)))

    assert (draft.summary, draft.facts, draft.title) == ("", (), "Untitled episode")
