"""What compose starts has no password anybody knows, no right it does without, and no neighbour it never talks to."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from setting_names import setting_names
from typer.main import get_command

from nous_online.interfaces.cli.command_line import application

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docker-compose.yml").read_text("utf-8")
COMPOSE: Mapping[str, Any] = yaml.safe_load(TEXT)
SERVICES: Mapping[str, Mapping[str, Any]] = COMPOSE["services"]
OURS = [name for name, service in SERVICES.items() if "build" in service]
DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8")


def test_every_password_has_to_be_told() -> None:
    named = re.findall(r"\$\{(\w*(?:PASSWORD|TOKEN|KEY)\w*)([^}]*)\}", TEXT)

    assert len(named) == 3
    assert [rest for _, rest in named if not rest.startswith(":?")] == []
    assert not re.search(r"://\w+:(?!\$\{|PASSWORD@)", TEXT)
    assert {each["environment"]["NOUS_TOKEN"] for each in SERVICES.values() if "NOUS_TOKEN" in each["environment"]} == {
        None
    }  # handed on where it is set, else drawn at the start


@pytest.mark.parametrize("name", OURS)
def test_every_setting_reaches_a_container(name: str) -> None:
    of_its_own = {"NOUS_HOME", "NOUS_TOKEN"}  # the image says where; one of them alone has a door that a token opens

    assert setting_names() - of_its_own <= SERVICES[name]["environment"].keys()


@pytest.mark.parametrize("name", SERVICES)
def test_a_container_has_no_right_it_does_not_need(name: str) -> None:
    service = SERVICES[name]

    assert service["cap_drop"] == ["ALL"]
    assert "cap_add" not in service
    assert "privileged" not in service
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["read_only"] is True
    assert "/tmp" in service["tmpfs"]  # noqa: S108 (in memory, and its own)
    assert {"mem_limit", "pids_limit"} <= service.keys()
    assert not [each for each in service["volumes"] if each.startswith((".", "/"))]


def test_containers_listen_on_this_machine_only() -> None:
    published = [port for service in SERVICES.values() for port in service.get("ports", [])]

    assert published
    assert [port for port in published if not port.startswith("127.0.0.1:")] == []


def test_a_container_reaches_nobody_but_whom_it_talks_to() -> None:
    together = defaultdict[str, set[str]](set)
    for name, service in SERVICES.items():
        for network in service["networks"]:
            together[network].add(name)

    assert together == {
        "nights": {"postgres", "webserver", "daemon"},
        "agents": {"postgres", "api"},
        "interface": {"webserver"},
        "models": {"daemon"},
    }
    assert together.keys() == COMPOSE["networks"].keys()
    assert COMPOSE["networks"]["nights"] == {"internal": True}


def test_the_account_of_the_image_is_not_root_and_owns_no_program() -> None:
    last = DOCKERFILE.rpartition("FROM ")[2]

    assert "USER nous" in last
    assert re.findall(r"--owner nous .*?(/\S+)", last) == ["/var/lib/nous"]
    assert not re.search(r"COPY --chown", last)
    assert "requirements-dev" not in DOCKERFILE
    assert "PYTHONSAFEPATH=1" in last


def commands() -> Iterator[list[str]]:
    yield from (SERVICES[name]["command"] for name in OURS)
    yield yaml.safe_load(DOCKERFILE.rpartition("CMD ")[2])


def command_of(program: str, rest: list[str]) -> tuple[Any, list[str]]:
    """Return the command a container runs, and its options."""
    if program == "nous":
        return get_command(application()).commands[rest[0]], rest[1:]
    if program == "dagster-daemon":
        from dagster._daemon.cli import run_command

        return run_command, rest[1:]
    from nous_pipelines.orchestration.interface_server import main  # a second to load

    app = typer.Typer()
    app.command()(main)
    return get_command(app), rest[rest.index(main.__module__) + 1 :]


@pytest.mark.parametrize("command", [*commands()], ids=" ".join)
def test_what_a_container_runs_takes_its_options(command: list[str]) -> None:
    known, options = command_of(command[0], command[1:])

    assert known.make_context(command[0], options).params
