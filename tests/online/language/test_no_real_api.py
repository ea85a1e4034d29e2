"""The guard of the whole suite: a key in the environment, and still nothing leaves this machine."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import anthropic
import pytest
from no_real_api import ReachedOut, no_real_api

QUESTION = {"model": "claude-haiku-5-5", "max_tokens": 1, "messages": [{"role": "user", "content": "hello"}]}
FAR = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("203.0.113.9", 443))
FAR_BY_IPV6 = (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("2001:db8::7", 443, 0, 0))


@pytest.mark.parametrize(
    "name",
    [
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "ANTHROPIC_PROFILE",
        "ANTHROPIC_CUSTOM_HEADERS",
        "https_proxy",
        "ALL_PROXY",
    ],
)
def test_what_leads_out_is_taken_from_the_environment_and_put_back(monkeypatch, tmp_path, name) -> None:
    monkeypatch.setenv(name, "from-outside")

    with no_real_api(tmp_path) as guard:
        left = {variable: value for variable, value in os.environ.items() if variable.startswith("ANTHROPIC_")}
        assert name not in os.environ

    assert left == {"ANTHROPIC_BASE_URL": guard.address, "ANTHROPIC_CONFIG_DIR": str(tmp_path)}
    assert os.environ[name] == "from-outside"


def test_a_key_set_by_a_test_reaches_no_more_than_an_address_where_nothing_listens(monkeypatch, dead_api) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-set-by-a-test")

    with anthropic.Anthropic(max_retries=0) as client, pytest.raises(anthropic.APIConnectionError) as refused:
        client.messages.create(**QUESTION)

    assert str(refused.value.request.url).startswith(dead_api.address)


@pytest.mark.parametrize("resolved", [FAR, FAR_BY_IPV6])
def test_the_address_of_the_real_api_fails_the_test_that_writes_it_down(monkeypatch, dead_api, resolved) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_args, **_options: [resolved])
    real = {"api_key": "sk-set-by-a-test", "base_url": "https://api.anthropic.com"}

    with anthropic.Anthropic(**real, max_retries=0) as client, pytest.raises(anthropic.APIConnectionError) as stopped:
        client.messages.create(**QUESTION)

    assert isinstance(stopped.value.__cause__, ReachedOut)
    with pytest.raises(ReachedOut, match=resolved[-1][0]):
        dead_api.check()


@pytest.mark.parametrize("verb", ["connect", "connect_ex"])
def test_a_socket_of_this_process_reaches_this_machine_alone(dead_api, verb) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening, socket.socket() as near, socket.socket() as far:
        getattr(near, verb)(listening.getsockname())
        with pytest.raises(ReachedOut, match=r"203\.0\.113\.9"):
            getattr(far, verb)(("203.0.113.9", 443))

    with pytest.raises(ReachedOut):
        dead_api.check()


def test_a_program_started_by_a_test_is_told_the_address_where_nothing_listens(dead_api) -> None:
    asked = "import os; print(os.environ['ANTHROPIC_BASE_URL'], 'ANTHROPIC_API_KEY' in os.environ)"

    told = subprocess.run([sys.executable, "-S", "-c", asked], capture_output=True, text=True, check=True)

    assert told.stdout.split() == [dead_api.address, "False"]
