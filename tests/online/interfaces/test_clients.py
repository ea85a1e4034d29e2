"""The clients in other languages: what the OpenAPI document says, and what a live server answers."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from api_client import app_over, key_of, served
from conftest import ScriptedJudge, WordEmbedder

from clients.generate import HERE, files
from nous_online.database.connection import Database

NODE, TSC = shutil.which("node"), shutil.which("tsc") or os.environ.get("NOUS_TSC")
SCRIPT = """
import { Nous, NousProblem } from "INDEX";
const nous = new Nous({ url: process.env.NOUS_URL, key: process.env.NOUS_KEY });
const learned = await nous.learn({ content: "Deploys need two approvals" }, { idempotencyKey: "k-1" });
const again = await nous.learn({ content: "Deploys need two approvals" }, { idempotencyKey: "k-1" });
const found = await nous.recall({ query: "how many approvals does a deploy need?", limit: 3 });
await nous.pin(learned.memory.id, { reason: "it matters" }).catch((problem) => console.error(problem.message));
const added = await nous.addWebhook({ url: "https://hooks.example.org/nous" });
const gone = await nous.removeWebhook(added.webhook.id);
const kept = await nous.listMemories({ kinds: ["fact", "censor"], limit: 5 });
let refused = null;
try {
  await nous.recall({ query: "" });
} catch (problem) {
  refused = [problem instanceof NousProblem, problem.status, typeof problem.problem.title, typeof problem.requestId];
}
const empty = await nous.getFact("").catch((problem) => problem.message);
await nous.getHealth();
console.log(JSON.stringify({
  same: learned.memory.id === again.memory.id, first: found.memories[0].text, gone: gone === undefined,
  kept: kept.memories.length,
  refused, empty,
}));
"""
CHECKED = """
import { Nous, type RecallAnswer } from "./index.js";
const nous = new Nous({ key: "k" });
const found: RecallAnswer = await nous.recall({ query: "what?", kinds: ["fact"], detail: "summary" });
const texts: string[] = found.memories.map((memory) => memory.text);
// @ts-expect-error a question needs its query
await nous.recall({ limit: 3 });
// @ts-expect-error there is no such kind
await nous.recall({ query: "what?", kinds: ["note"] });
console.log(texts);
"""


@pytest.fixture
def live_server(
    database: Database, database_url: str, embedder: WordEmbedder, judge: ScriptedJudge
) -> Iterator[tuple[str, str]]:
    """The address of a live server, and a key to it."""
    app = app_over(database_url, embedder, judge=judge)
    with served(app) as url:
        yield url, key_of(database, "aria", may_pin=True)


@pytest.fixture
def python_client() -> ModuleType:
    spec = importlib.util.spec_from_file_location("nous_client", HERE / "python" / "nous_client.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_clients_are_what_the_document_says():
    stale = [path for path, text in files().items() if (HERE / path).read_text("utf-8") != text]

    assert stale == [], "run python -m clients.generate"


def test_the_client_in_python_speaks_to_a_live_server(live_server: tuple[str, str], python_client: ModuleType):
    url, key = live_server
    nous = python_client.Nous(url, key)

    learned = nous.learn(content="Deploys need two approvals", options={"idempotency_key": "k-1"})
    again = nous.learn(content="Deploys need two approvals", options={"idempotency_key": "k-1"})
    found = nous.recall(query="how many approvals does a deploy need?", limit=3)
    added = nous.add_webhook(url="https://hooks.example.org/nous", names=["fact_learned"])
    kept = nous.list_memories(kinds=["fact", "censor"], limit=5)["memories"]
    listed = nous.list_webhooks(options={"deadline": 10.0})["webhooks"]
    gone = nous.remove_webhook(added["webhook"]["id"])
    left = nous.list_webhooks()["webhooks"]
    with pytest.raises(python_client.NousProblem) as refused:
        nous.recall(query="")
    with pytest.raises(python_client.NousProblem) as stranger:
        python_client.Nous(url, "nous_x").recall(query="what?")

    assert learned["memory"]["id"] == again["memory"]["id"]
    assert found["memories"][0]["text"] == "Deploys need two approvals"
    assert [each["text"] for each in kept] == ["Deploys need two approvals"]
    assert [each["id"] for each in listed] == [added["webhook"]["id"]]
    assert (gone, left) == (None, [])
    assert (refused.value.status, stranger.value.status) == (422, 401)
    assert refused.value.problem["title"]
    assert refused.value.request_id
    assert "nous_http" in nous.get_metrics()


def test_the_client_in_python_is_told_of_a_body_too_large_and_refuses_an_empty_id(
    live_server: tuple[str, str], python_client: ModuleType
):
    url, key = live_server
    nous = python_client.Nous(url, key)

    with pytest.raises(python_client.NousProblem) as large:
        nous.learn(content="x" * 9_000_000)
    with pytest.raises(ValueError, match=r"an id or a name in '/facts/' is empty"):
        nous.get_fact("")

    assert large.value.status == 413
    assert "nous_http" in nous.get_metrics()


def test_the_client_in_javascript_speaks_to_a_live_server(live_server: tuple[str, str], tmp_path: Path):
    if NODE is None:
        pytest.skip("node is not on the PATH")
    url, key = live_server
    script = tmp_path / "visit.mjs"
    script.write_text(SCRIPT.replace("INDEX", (HERE / "typescript" / "index.js").as_uri()), "utf-8")

    done = subprocess.run(
        [NODE, str(script)],
        env={**os.environ, "NOUS_URL": url, "NOUS_KEY": key},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    assert told["refused"] == [True, 422, "string", "string"]
    assert told["empty"] == "an id or a name in /facts/ is empty"
    assert (told["same"], told["gone"], told["first"]) == (True, True, "Deploys need two approvals")
    assert told["kept"] == 1


def test_the_types_of_typescript_hold_and_refuse_what_the_document_does(tmp_path: Path):
    if TSC is None:
        pytest.skip("tsc is not on the PATH, nor named by NOUS_TSC")
    for name in ("index.js", "index.d.ts", "package.json"):
        shutil.copy(HERE / "typescript" / name, tmp_path)
    (tmp_path / "visit.mts").write_text(CHECKED, "utf-8")

    options = ["--noEmit", "--strict", "--module", "nodenext", "--target", "es2022", "--lib", "es2022,dom"]
    done = subprocess.run(
        [TSC, *options, "visit.mts"], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120
    )

    assert (done.returncode, done.stdout) == (0, "")
