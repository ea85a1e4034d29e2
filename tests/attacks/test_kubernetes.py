"""What Kubernetes is told is valid, every setting reaches every container, and no container has a right too many."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import typer
import yaml
from setting_names import setting_names
from typer.main import get_command

from nous_online.interfaces.cli.command_line import application

FOLDER = Path(__file__).parents[2] / "deploy" / "kubernetes"
OBJECTS: list[Mapping[str, Any]] = [
    each for path in sorted(FOLDER.glob("*.yaml")) for each in yaml.safe_load_all(path.read_text("utf-8"))
]
BY_NAME = {(each["kind"], each["metadata"]["name"]): each for each in OBJECTS}
DEPLOYMENTS = {name: each for (kind, name), each in BY_NAME.items() if kind == "Deployment"}
VERSION = "1.29"
"""The oldest version of Kubernetes that is answered for."""


def pod_of(name: str) -> Mapping[str, Any]:
    return DEPLOYMENTS[name]["spec"]["template"]["spec"]


def container_of(name: str) -> Mapping[str, Any]:
    (container,) = pod_of(name)["containers"]
    return container


@pytest.mark.parametrize("name", BY_NAME, ids=" ".join)
@pytest.mark.parametrize("version", [VERSION, kubernetes_validate.latest_version()])
def test_an_object_is_what_the_schema_of_kubernetes_says(name: tuple[str, str], version: str) -> None:
    kubernetes_validate.validate(BY_NAME[name], version, strict=True)


def test_a_field_nobody_knows_is_noticed() -> None:
    wrong = {**BY_NAME["Deployment", "worker"], "spec": {**DEPLOYMENTS["worker"]["spec"], "replica": 2}}

    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, VERSION, strict=True)


def test_every_setting_has_a_line_and_all_containers_read_them() -> None:
    text = (FOLDER / "settings.yaml").read_text("utf-8")

    named = set(re.findall(r"^  (?:# )?((?:NOUS|ANTHROPIC)_\w+):", text, re.MULTILINE))

    assert named == {*setting_names(), "NOUS_DAGSTER_DB_URL"}
    secret = BY_NAME["Secret", "nous-secrets"]["stringData"]
    assert [name for name, value in secret.items() if value] == []
    read = [{"configMapRef": {"name": "nous-settings"}}, {"secretRef": {"name": "nous-secrets"}}]
    assert {name: container_of(name)["envFrom"] for name in DEPLOYMENTS} == dict.fromkeys(DEPLOYMENTS, read)


@pytest.mark.parametrize("name", DEPLOYMENTS)
def test_a_container_has_no_right_it_does_not_need(name: str) -> None:
    pod, container = pod_of(name), container_of(name)

    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert not {"hostNetwork", "hostPID", "hostIPC"} & pod.keys()
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert "memory" in container["resources"]["limits"]
    assert {mount["mountPath"] for mount in container["volumeMounts"]} == {"/var/lib/nous", "/tmp"}  # noqa: S108


def test_whoever_works_on_a_night_has_its_files_under_one_path() -> None:
    (volume,) = [each for each in pod_of("worker")["volumes"] if each["name"] == "nights"]

    assert volume in pod_of("daemon")["volumes"]
    assert BY_NAME["PersistentVolumeClaim", "nights"]["spec"]["accessModes"] == ["ReadWriteMany"]
    assert BY_NAME["ConfigMap", "nous-settings"]["data"]["NOUS_HOME"] == "/var/lib/nous"


def test_the_engine_is_the_scheduler_that_is_started() -> None:
    port = BY_NAME["Service", "scheduler"]["spec"]["ports"][0]["port"]

    assert BY_NAME["ConfigMap", "nous-settings"]["data"]["NOUS_ENGINE"] == f"dask://scheduler:{port}"
    assert f"tcp://scheduler:{port}" in container_of("worker")["command"]


def test_nobody_but_the_night_reaches_what_runs_its_code() -> None:
    closed, chunks = (BY_NAME["NetworkPolicy", name]["spec"] for name in ("nobody-comes-in", "chunks"))

    assert closed == {"podSelector": {}, "policyTypes": ["Ingress"]}
    (rule,) = chunks["ingress"]
    (source,) = rule["from"]
    assert source["podSelector"]["matchExpressions"][0]["values"] == ["daemon", "scheduler", "worker"]


def commands() -> Iterator[list[str]]:
    yield from (container_of(name)["command"] for name in DEPLOYMENTS)


def command_of(program: str, rest: list[str]) -> tuple[Any, list[str]]:
    """Return the command a container runs, and its options."""
    if program == "nous":
        return get_command(application()).commands[rest[0]], rest[1:]
    if program == "dask":
        from distributed.cli import (  # a second to load, in each worker that collects this file
            dask_scheduler,
            dask_worker,
        )

        return {"scheduler": dask_scheduler, "worker": dask_worker}[rest[0]].main, rest[1:]
    if program == "dagster-daemon":
        from dagster._daemon.cli import run_command

        return run_command, rest[1:]
    from nous_pipelines.orchestration.interface_server import main

    app = typer.Typer()
    app.command()(main)
    return get_command(app), rest[rest.index(main.__module__) + 1 :]


@pytest.mark.parametrize("command", [*commands()], ids=" ".join)
def test_what_a_container_runs_takes_its_options(command: list[str]) -> None:
    known, options = command_of(command[0], command[1:])

    assert known.make_context(command[0], options).params
