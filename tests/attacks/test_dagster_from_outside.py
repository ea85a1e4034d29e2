"""What a web page, a name that points here, or another user of the machine can have Dagster's interface do: nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import dagster as dg
import pytest
from dagster._core.workspace.context import WorkspaceProcessContext
from starlette.testclient import TestClient
from starlette.types import ASGIApp
from starlette.websockets import WebSocketDisconnect

from nous_online.core.errors import InvalidInput
from nous_pipelines.night_policy import LIMITS, NightPolicy, Policies
from nous_pipelines.orchestration.code_location import defs
from nous_pipelines.orchestration.resources import NightRun

TOKEN = "a-token-of-this-start"  # noqa: S105 (a test's)
OWN = {"Authorization": f"Bearer {TOKEN}"}
PAGE = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document", "Sec-Fetch-Site": "none"}
HOST = "http://127.0.0.1:3000"
DELETION = "mutation($run: String!) { deletePipelineRun(runId: $run) { __typename } }"

Asked = dict[str, Any]


def as_image(run: str) -> Asked:
    """What an `<img>` of a page sends."""
    query = DELETION.replace("($run: String!)", "").replace("$run", f'"{run}"')
    return {"method": "GET", "url": "/graphql", "params": {"query": query}}


def as_form(run: str) -> Asked:
    """What a form of a page sends, which no browser asks leave for."""
    return {**as_image(run), "method": "POST", "headers": {"Content-Type": "text/plain"}, "content": "x"}


def as_program(run: str) -> Asked:
    """What a program of the machine sends, or the interface's own page."""
    return {"method": "POST", "url": "/graphql", "json": {"query": DELETION, "variables": {"run": run}}}


def sent_by(asked: Callable[[str], Asked], **headers: str) -> Callable[[str], Asked]:
    return lambda run: {**asked(run), "headers": {**asked(run).get("headers", {}), **headers}}


REBOUND = {"Host": "evil.example:3000", "Origin": "http://evil.example:3000", "Sec-Fetch-Site": "same-origin"}
ATTACKS = {
    "an image of a page": sent_by(as_image, **{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}),
    "an image in a browser that says nothing of where it stands": as_image,
    "a form of a page": sent_by(as_form, Origin="https://evil.example", **{"Sec-Fetch-Site": "cross-site"}),
    "a form of a page that hides its origin": sent_by(as_form, Origin="null"),
    "a script of a name that was made to point here": sent_by(as_program, **REBOUND),
    "a page of another port of this machine": sent_by(
        as_program, Origin="http://127.0.0.1:9999", **{"Sec-Fetch-Site": "same-site"}
    ),
    "a program of another user": as_program,
    "a program that guesses": sent_by(as_program, Authorization="Bearer a-token-of-this-star"),
    "a program that guesses in the address": lambda run: {**as_program(run), "params": {"token": "guess"}},
    "a link somebody is led to": sent_by(as_image, **{**PAGE, "Sec-Fetch-Site": "cross-site"}),
}
WITH_THE_COOKIE = [name for name in ATTACKS if not name.startswith(("a program", "a script"))]


@pytest.fixture(scope="module")
def instance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.local_temp(str(tmp_path_factory.mktemp("dagster"))) as instance:
        yield instance


@pytest.fixture(scope="module")
def dagster(instance: dg.DagsterInstance) -> Iterator[ASGIApp]:
    from dagster_webserver.webserver import DagsterWebserver  # a second to load, in each worker that collects this file

    with WorkspaceProcessContext(instance, None) as workspace:
        yield DagsterWebserver(workspace).create_asgi_app()


def gate_over(dagster: ASGIApp, *names: str) -> ASGIApp:
    """Return Dagster's interface behind our gate."""
    from nous_pipelines.orchestration.interface_server import DagsterGate

    return DagsterGate(dagster, token=TOKEN, names=names)


@pytest.fixture
def bare(dagster: ASGIApp) -> TestClient:
    return TestClient(dagster, base_url=HOST)


@pytest.fixture
def client(dagster: ASGIApp) -> TestClient:
    return TestClient(gate_over(dagster), base_url=HOST)


@pytest.fixture
def run_id(instance: dg.DagsterInstance) -> str:
    return instance.add_run(dg.DagsterRun(job_name="nightly")).run_id


@pytest.mark.parametrize("name", ATTACKS)
def test_no_stranger_can_have_a_run_deleted(
    name: str, bare: TestClient, client: TestClient, instance: dg.DagsterInstance, run_id: str
) -> None:
    answer = client.request(**ATTACKS[name](run_id))

    assert answer.status_code in {401, 403, 421}
    assert instance.get_run_by_id(run_id) is not None
    bare.request(**ATTACKS[name](run_id))  # without the gate each of them works
    assert instance.get_run_by_id(run_id) is None


@pytest.mark.parametrize("name", WITH_THE_COOKIE)
def test_no_page_can_use_the_cookie_of_who_opened_the_interface(
    name: str, client: TestClient, instance: dg.DagsterInstance, run_id: str
) -> None:
    client.get("/", params={"token": TOKEN})

    answer = client.request(**ATTACKS[name](run_id))

    assert answer.status_code in {403, 405, 415}
    assert instance.get_run_by_id(run_id) is not None


@pytest.mark.parametrize(
    "path",
    ["/", "/runs", "/graphql", "/logs/x/out", "/download_debug/x", "/report_asset_materialization/x", "/?token="],
)
def test_who_has_no_token_reads_nothing(client: TestClient, path: str) -> None:
    answers = [client.request(method, path) for method in ("GET", "HEAD", "POST", "OPTIONS")]

    assert {answer.status_code for answer in answers} == {401}
    assert {answer.headers["content-security-policy"].partition(";")[0] for answer in answers} == {"default-src 'none'"}


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": HOST},
        {**OWN, "Origin": "https://evil.example"},
        {**OWN, "Origin": "http://127.0.0.1:9999"},
        {**OWN, "Host": "evil.example:3000", "Origin": "http://evil.example:3000"},
    ],
)
def test_no_stranger_hears_what_happens(bare: TestClient, client: TestClient, headers: dict[str, str]) -> None:
    with pytest.raises(WebSocketDisconnect), client.websocket_connect("ws://127.0.0.1:3000/graphql", headers=headers):
        pass

    with bare.websocket_connect("ws://127.0.0.1:3000/graphql", headers=headers) as heard:
        heard.send_json({"type": "connection_init"})
        assert heard.receive_json() == {"type": "connection_ack"}


def test_the_printed_address_lets_a_browser_in_and_leaves_no_token_behind(
    client: TestClient, instance: dg.DagsterInstance, run_id: str
) -> None:
    first = client.get("/", params={"token": TOKEN}, headers=PAGE)

    page = client.get("/", headers={**PAGE, "Sec-Fetch-Site": "same-origin"})
    with client.websocket_connect("ws://127.0.0.1:3000/graphql", headers={"Origin": HOST}) as heard:
        heard.send_json({"type": "connection_init"})
        assert heard.receive_json() == {"type": "connection_ack"}
    done = client.request(**sent_by(as_program, Origin=HOST, **{"Sec-Fetch-Site": "same-origin"})(run_id))

    name, _, rest = first.headers["set-cookie"].partition("=")
    assert (first.status_code, page.status_code, done.status_code) == (200, 200, 200)
    assert (name, rest.partition("; ")[2].lower()) == ("nous_token_3000", "httponly; path=/; samesite=strict")
    assert TOKEN not in first.text + str(first.headers)
    assert first.headers["referrer-policy"] == "no-referrer"
    assert instance.get_run_by_id(run_id) is None


def test_no_page_can_show_the_interface_in_a_frame(client: TestClient) -> None:
    pages = [client.get(path, headers={**OWN, "Accept": "text/html"}) for path in ("/", "/graphql")]

    assert {page.headers["x-frame-options"] for page in pages} == {"DENY"}
    assert all("script-src" in page.headers["content-security-policy"] for page in pages)


def test_whoever_waits_for_the_interface_is_told_that_it_lives(client: TestClient) -> None:
    assert client.get("/server_info").json().keys() == {
        "dagster_webserver_version", "dagster_version", "dagster_graphql_version",
    }  # fmt: skip
    assert client.get("/server_info", headers={"Host": "evil.example"}).status_code == 421


def test_a_name_that_was_given_is_answered_to(dagster: ASGIApp) -> None:
    named = TestClient(gate_over(dagster, "Nights.Example"), base_url="http://nights.example")

    assert named.get("/runs", headers=OWN).status_code == 200


# --- who is let in all the same can't reach beyond the memories ---


@pytest.mark.parametrize(("field", "value"), [("home", "/etc"), ("database_url", "postgresql://thief.example/nous")])
def test_a_launch_says_neither_where_files_go_nor_which_database_it_is(field: str, value: str) -> None:
    config = {"resources": {"night_run": {"config": {field: value}}}}

    with pytest.raises(dg.DagsterInvalidConfigError, match=f'unexpected config entry "{field}"'):
        dg.validate_run_config(defs.resolve_job_def("nightly"), config)


@pytest.mark.parametrize("name", LIMITS)
def test_a_launch_tightens_limits_and_lifts_none(name: str) -> None:
    usual = getattr(NightPolicy(), name)
    stricter, laxer = (usual / 2, usual * 2) if LIMITS[name] > 0 else (usual * 2, usual / 2)

    with pytest.raises(InvalidInput, match=rf"{name} can only be tightened here"):
        _ = NightRun(policy={name: laxer}).night_policy

    assert getattr(NightRun(policy={name: stricter}).night_policy, name) == stricter


def test_a_launch_does_not_lift_the_limits_an_agent_has_of_its_own() -> None:
    own = {"aria": {"max_leaving_count": 10}, "boris": {"max_leaving_count": 100}}
    launched = Policies({"max_leaving_count": 50}, own, may_loosen=False)

    assert launched.of("boris").max_leaving_count == 50
    with pytest.raises(InvalidInput, match=r"'aria'.*max_leaving_count can only be tightened"):
        launched.of("aria")
