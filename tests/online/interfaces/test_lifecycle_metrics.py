"""What Prometheus is told of the lives of memories: counts that are right, of no agent by name, and what shows them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import psycopg
import pytest
from api_client import app_over, client_of
from conftest import WordEmbedder
from prometheus_client.parser import text_string_to_metric_families
from test_console import disputed

from nous_online.heart import Heart
from nous_online.interfaces.api.application import Access
from nous_online.interfaces.api.gate import LifecycleCollector

DOCS = Path(__file__).parents[3] / "docs"
NAMED = re.compile(r"\bnous_[a-z_]+\b")
OPEN = Access(requires_keys=False, opens_metrics=True)


def told(url: str, embedder: WordEmbedder) -> dict[str, float]:
    """Return every sample of `/metrics` by its name and labels."""
    with client_of(app_over(url, embedder, access=OPEN)) as client:
        text = client.get("/metrics").text
    return {
        " ".join([sample.name, *map(str, sample.labels.values())]): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_tells_of_nights_work_that_waits_states_and_cost(
    heart: Heart, owner: psycopg.Connection, database_url: str, embedder: WordEmbedder
):
    disputed(heart, "Ana sits in Lima", "The desk of Ana stands in Oslo")
    heart.record_episode("The pager went off twice, and Ana took it.")
    heart.add_webhook("https://hooks.example.org/nous")
    space = "insert into heart.agents (id, embedding_space_id) values (%s, 'words-64') on conflict do nothing"
    for agent, night, count in (("aria", "2026-11-19", 3), ("aria", "2026-11-20", 5), ("ben", "2026-11-20", 7)):
        owner.execute(space, [agent])
        figures = json.dumps({"facts_active": count, "links": 99})
        owner.execute("insert into lifecycle.health values (%s, %s, %s)", [agent, night, figures])
    owner.execute(
        "insert into lifecycle.plans (hash, night, policy, state, applied_at) "
        "values ('h', '2026-11-20', '{}', 'applied', now())"
    )
    owner.execute(
        "insert into heart.llm_requests (agent_id, purpose, model, state, input_tokens, output_tokens, cost_usd) "
        "values ('aria', 'judge', 'claude', 'imported', 1200, 30, 0.25), "
        "('ben', 'judge', 'claude', 'failed', 0, 0, 0.5)"
    )

    found = told(database_url, embedder)

    assert found["nous_lifecycle_up"] == 1
    assert found["nous_agents"] == 2
    assert found["nous_memories facts_active"] == 12
    assert not [name for name in found if "links" in name]
    assert found["nous_last_night_timestamp_seconds"] == 1795219200  # 2026-11-21, when the night of the 20th is over
    assert found["nous_contradictions_open"] == 1
    assert found["nous_episodes_waiting"] == 1
    assert (found["nous_webhooks"], found["nous_consumers_failing"]) == (1, 0)
    assert found["nous_llm_cost_usd_total claude judge"] == 0.75
    assert (found["nous_llm_requests_total claude judge"], found["nous_llm_failures_total claude judge"]) == (2, 1)
    assert found["nous_llm_tokens_total in claude judge"] == 1200
    assert found["nous_database_bytes"] > 1_000_000
    assert not [name for name in found if "aria" in name or "ben" in name.split()]


def test_an_episode_of_long_ago_waits_since_it_came_here(
    heart: Heart, owner: psycopg.Connection, database_url: str, embedder: WordEmbedder
):
    heart.record_episode("The pager went off twice, and Ana took it.")
    owner.execute("update heart.completions set due_at = now() - interval '25 days'")
    imported = told(database_url, embedder)["nous_episodes_oldest_due_seconds"]
    owner.execute("update heart.completions set created_at = now() - interval '3 hours'")
    waiting = told(database_url, embedder)["nous_episodes_oldest_due_seconds"]

    assert 0 <= imported < 600
    assert 3 * 3600 <= waiting < 4 * 3600


def test_a_database_that_can_t_be_asked_is_told_as_that():
    collector = LifecycleCollector(lambda: "postgresql://nobody@127.0.0.1:9/none")

    found = list(collector.collect())

    assert [(family.name, family.samples[0].value) for family in found] == [("nous_lifecycle_up", 0.0)]
    assert list(collector.describe()) == []


@pytest.mark.parametrize("page", ["grafana/nous.json", "operating.md"])
def test_what_is_shown_and_watched_is_what_is_told(heart: Heart, database_url: str, embedder: WordEmbedder, page: str):
    heart.learn("The pager is with Ana")
    with client_of(app_over(database_url, embedder, access=OPEN)) as client:
        client.get("/health")
        text = client.get("/metrics").text
    families = set(re.findall(r"^# TYPE (\S+)", text, re.MULTILINE))
    known = {*families, *(f"{name}_bucket" for name in families), *(f"{name}_total" for name in families)}
    content = (DOCS / page).read_text("utf-8")
    shown = set(NAMED.findall(content)) - {"nous_online", "nous_pipelines", "nous_night", "nous_app", "nous_purge"}

    metrics = {name for name in shown if name.startswith(("nous_http", "nous_llm", "nous_last", "nous_memories"))}
    assert metrics
    assert metrics - known == {name for name in metrics - known if name.startswith(("nous_last", "nous_http_problems"))}
