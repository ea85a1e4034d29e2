"""What Dagster sees of the nights: definitions, partitions, schedule, backfill."""

from __future__ import annotations

import importlib.util
from datetime import UTC, date, datetime
from itertools import pairwise
from types import ModuleType

import dagster as dg
import pytest
from dagster._utils.schedules import is_valid_cron_string
from night_runs import remember

from nous_online.core.errors import InvalidInput
from nous_online.core.settings import Settings, is_cron, settings
from nous_pipelines.nights import FIRST_NIGHT, last_night
from nous_pipelines.orchestration import code_location
from nous_pipelines.orchestration.code_location import ASSETS, NIGHTS, definitions_from, defs, every_night
from nous_pipelines.orchestration.running import first_night
from nous_pipelines.plan.checks import CHECKS, NOBODY_LEFT_OUT

NIGHT_ORDER = (
    "snapshot", "neighbours", "judgements", "duplicate_clusters", "merge_proposals", "plan", "applied", "report",
)  # fmt: skip


@pytest.fixture(scope="module")
def instance():
    with dg.DagsterInstance.ephemeral() as ephemeral:
        yield ephemeral


def asked_for(instance, moment, schedule=every_night):
    """Return the nights a schedule asks for at a moment."""
    with dg.build_schedule_context(
        instance=instance, scheduled_execution_time=moment, repository_def=defs.get_repository_def()
    ) as context:
        requests = schedule.evaluate_tick(context).run_requests or []
    return [(request.partition_key, request.run_key) for request in requests]


def test_the_definitions_load():
    dg.Definitions.validate_loadable(defs)


@pytest.mark.parametrize(
    ("moment", "night"),
    [
        (datetime(2026, 6, 2, 3, tzinfo=UTC), "2026-06-01"),
        (datetime(2026, 3, 1, 3, tzinfo=UTC), "2026-02-28"),
        (datetime(2027, 1, 1, 3, tzinfo=UTC), "2026-12-31"),
    ],
)
def test_the_schedule_asks_for_the_night_that_ended_once(instance, moment, night):
    assert asked_for(instance, moment) == [(night, night)]


@pytest.mark.parametrize(
    "cron",
    ["0 3 * * *", "*/15 0-23/2 1,15 jan,JUL mon-fri", "5/10 * * * sat-sun", "00 03 31 4 7", "61 3 * * *", "0 24 * * *",
     "0 3 0 * *", "*/0 * * * *", "0 3 * *", "0 3 * * * *", "soon", ""],
)  # fmt: skip
def test_a_time_of_cron_is_one_that_dagster_runs(cron):
    assert is_cron(cron) == is_valid_cron_string(cron)


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("NOUS_NIGHT_CRON", "61 3 * * *", "not a time of cron: '61 3 * * *' (want minute, hour, day, month and"),
        ("NOUS_NIGHT_DEADLINE_CRON", "soon", "not a time of cron: 'soon' (want"),
        ("NOUS_NIGHT_ZONE", "Mars/Base", "not a time zone: 'Mars/Base' (want a name such as UTC or Europe/Berlin)"),
        ("NOUS_NIGHT_ZONE", "../etc", "not a time zone: '../etc' (want"),
    ],
)
def test_a_time_or_zone_of_nights_that_is_none_is_refused_at_once(monkeypatch, variable, value, said):
    monkeypatch.setenv(variable, value)
    settings.cache_clear()

    with pytest.raises(InvalidInput) as refused:
        settings()

    assert f"{variable}: {said}" in str(refused.value)
    monkeypatch.setenv(variable, {"NOUS_NIGHT_ZONE": "Europe/Berlin"}.get(variable, "30 4 * * mon-fri"))
    assert Settings().night_zone in {"UTC", "Europe/Berlin"}


def loaded_apart(module: ModuleType) -> ModuleType:
    """Return a module loaded once more by itself, as a process does that begins in this environment."""
    spec = importlib.util.spec_from_file_location("loaded_apart", str(module.__file__))
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


@pytest.mark.parametrize(
    ("zone", "moments", "nights"),
    [
        ("Asia/Tokyo", ["2026-06-02T03:00+09:00", "2026-06-02T10:00+09:00"], ["2026-05-31", "2026-06-01"]),
        ("America/Los_Angeles", ["2026-06-02T03:00-07:00"], ["2026-06-01"]),
    ],
)
def test_in_another_zone_it_is_the_last_night_that_is_over_and_all_can_be_switched_off(
    instance, monkeypatch, zone, moments, nights
):
    for name, value in {"NOUS_NIGHT_ZONE": zone, "NOUS_NIGHT_CRON": "0 4 * * *", "NOUS_NIGHTS": "off"}.items():
        monkeypatch.setenv(name, value)

    there = loaded_apart(code_location)

    asked = [asked_for(instance, datetime.fromisoformat(moment), there.every_night) for moment in moments]
    assert asked == [[(night, night)] for night in nights]
    assert (there.every_night.cron_schedule, there.every_night.execution_timezone) == ("0 4 * * *", zone)
    switches = [each.default_status for each in (there.every_night, there.last_night_exists, there.every_week)]
    assert switches == [dg.DefaultScheduleStatus.STOPPED] * 3


def test_whether_the_last_night_exists_is_part_of_no_run_that_makes_one():
    freshness = dg.AssetCheckKey(dg.AssetKey("last_night"), "freshness_check")
    graph = defs.resolve_asset_graph()

    assert freshness in graph.asset_check_keys
    assert not graph.get(freshness).blocking
    assert not graph.get(freshness.asset_key).is_executable
    assert freshness not in graph.get_check_keys_for_assets({asset.key for asset in ASSETS})


def test_a_missing_last_night_is_reported_whatever_older_nights_ran(instance):
    for night, passed in ((FIRST_NIGHT, False), (last_night(datetime.now(UTC)), True)):
        instance.report_runless_asset_event(dg.AssetMaterialization("applied", partition=night.isoformat()))

        asked = defs.resolve_job_def("last_night_asked").execute_in_process(instance=instance)

        assert [check.passed for check in asked.get_asset_check_evaluations()] == [passed]


def test_every_night_runs_without_a_click():
    schedules = defs.get_repository_def().schedule_defs

    assert {each.default_status for each in schedules} == {dg.DefaultScheduleStatus.RUNNING}
    assert (every_night.cron_schedule, every_night.execution_timezone) == ("0 3 * * *", "UTC")


def test_the_partitions_are_the_nights_from_the_first_one_to_tonight():
    now = datetime(2026, 6, 1, 12, tzinfo=UTC)

    keys = NIGHTS.get_partition_keys(current_time=now)

    assert (keys[0], keys[-1]) == ("2020-01-01", "2026-06-01")


def test_a_night_is_one_run_from_its_snapshot_to_its_report():
    graph = defs.resolve_asset_graph()

    assert graph.get(dg.AssetKey("snapshot")).parent_keys == set()
    for earlier, later in pairwise(NIGHT_ORDER):
        assert dg.AssetKey(earlier) in graph.get(dg.AssetKey(later)).parent_keys


def test_every_check_is_there_and_blocks_but_that_nobody_is_left_out():
    keys = {key: defs.resolve_asset_graph().get(key) for key in defs.resolve_asset_graph().asset_check_keys}

    blocking = {key.name: node.blocking for key, node in keys.items() if key.asset_key == dg.AssetKey("plan")}
    assert blocking == {**dict.fromkeys(CHECKS, True), NOBODY_LEFT_OUT: False}


def test_every_asset_is_described_owned_and_part_of_a_night():
    selected = defs.resolve_job_def("nightly").asset_layer.executable_asset_keys
    specs = [spec for asset in ASSETS for spec in asset.specs]

    assert selected == {spec.key for spec in specs}
    assert all(spec.description and spec.owners for spec in specs)
    assert {spec.key.to_user_string() for spec in specs if spec.tags["changes"] == "memories"} == {"applied"}


def test_what_dagster_loads_has_partitions_from_the_first_memory_on(heart, owner, database_url, monkeypatch):
    monkeypatch.setenv("NOUS_DATABASE_URL", database_url)
    settings.cache_clear()
    now = datetime(2026, 7, 1, 12, tzinfo=UTC)
    assert first_night(now) == date(2026, 6, 30)

    remember(heart, "Cats like fish.")
    loaded = definitions_from(first_night(now))

    nights = {node.partitions_def for node in loaded.resolve_asset_graph().asset_nodes if node.group_name == "night"}
    assert [each.get_first_partition_key() for each in nights] == ["2026-05-01"]
    assert loaded.resolve_job_def("dry_run").partitions_def in nights
    owner.execute("drop schema heart cascade")
    assert first_night(now) == date(2026, 6, 30)
    monkeypatch.setenv("NOUS_DATABASE_URL", "postgresql://nobody@127.0.0.1:1/nowhere")
    settings.cache_clear()
    assert first_night(now) == FIRST_NIGHT
