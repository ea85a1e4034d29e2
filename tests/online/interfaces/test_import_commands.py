"""The command line about histories: import of any format, export and back, and the nights that age what came in."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
from import_files import written
from night_runs import options, remember
from test_cli import Answer, environment, nous  # noqa: F401 (fixtures)

from nous_online.core.errors import NotFound
from nous_online.heart import Heart
from nous_online.interfaces.projects import project_of
from nous_pipelines.orchestration.running import nights_to_run

TODAY = datetime.now(UTC).date()


def test_an_agent_goes_to_a_folder_and_comes_back_under_another_name(
    nous: Callable[..., Answer],  # noqa: F811
    tmp_path: Path,
):
    nous("learn", "Deploys need two approvals", "--agent", "aria")

    exported = nous("export", str(tmp_path), "--agent", "aria").out
    path = tmp_path / f"aria-{TODAY}.jsonl.gz"
    restored = nous("import", str(path), "--agent", "basil", "--json").json
    again = nous("import", str(path), "--agent", "basil")
    folder = nous("import", str(tmp_path), "--agent", "carol")
    pages = nous("export", str(tmp_path / "pages"), "--format", "markdown", "--agent", "basil", "--json").json

    assert str(path) in exported.replace("\n", "")
    assert (restored["agent_id"], restored["rows"]["heart.facts"]) == ("basil", 1)
    assert (again.code, "is known here already" in again.err) == (1, True)
    assert f"is an export of Nous, which is restored by itself: nous import {path}" in " ".join(folder.err.split())
    assert pages["rows"] == {"facts": 1, "episodes": 0, "procedures": 0, "censors": 0, "decisions": 0}
    assert (tmp_path / "pages" / "facts.md").read_text("utf-8").splitlines() == [
        "# Facts", "", "## Other", "", f"- Deploys need two approvals ({TODAY})",
    ]  # fmt: skip


def test_a_folder_that_is_not_there_yet_gets_the_exports_of_all_agents(
    nous: Callable[..., Answer],  # noqa: F811
    tmp_path: Path,
):
    folder = f"{tmp_path / 'new' / 'backups'}/"
    agents = ("aria", "basil", "team/a", "team@a", "team_a")
    for agent in agents:
        nous("learn", "Deploys need two approvals", "--agent", agent)

    paths = {nous("export", folder, "--agent", agent, "--json").json["path"] for agent in agents}

    assert {str(path) for path in Path(folder).iterdir()} == paths
    assert len(paths) == len(agents)
    assert {f"{folder}{name}-{TODAY}.jsonl.gz" for name in ("aria", "basil", "team_a")} <= paths


def test_an_import_of_sessions_names_their_projects_and_recall_finds_them_there(
    nous: Callable[..., Answer],  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    (tmp_path / "atlas" / ".git").mkdir(parents=True)
    project = project_of(tmp_path / "atlas")
    path = written(tmp_path / "s-1.jsonl", {
        "type": "user", "uuid": "m-1", "sessionId": "s-1", "timestamp": "2026-05-04T12:00:00Z",
        "cwd": str(tmp_path / "atlas"), "message": {"role": "user", "content": "The staging database is Postgres 18."},
    })  # fmt: skip

    looked, done = nous("import", str(path), "--dry-run"), nous("import", str(path))
    elsewhere = nous("recall", "which database is staging?")
    monkeypatch.chdir(tmp_path / "atlas")
    inside = nous("recall", "which database is staging?")

    for answer in (looked, done):
        assert f"1 memory of 1 project: {project} 1\n" in answer.out
        assert "nous recall … --project NAME" in answer.out
    assert "Postgres 18" not in elsewhere.out
    assert "Postgres 18" in inside.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("import", "absent.jsonl"), "there is no such file"),
        (("import", "FOLDER", "--format", "csv"), "choose one of auto, jsonl"),
        (("import", "FOLDER"), "nothing to import in"),
        (("import", "FOLDER", "--since", "soon"), "--since 'soon' is no date"),
        (("import", "EXPORT", "--dry-run"), "--dry-run means nothing for an export"),
        (("import", "EXPORT", "EXPORT"), "import it by itself"),
        (("import", "EXPORT"), "is damaged"),
        (("export", "absent/folder/file"), "can't write"),
        (("export", "EXPORT/"), "can't make the folder"),
        (("export", "--format", "xml"), "choose nous or markdown"),
        (("night", "--backfill", "--date", "2026-05-01"), "--backfill finds the nights itself"),
        (("night", "--backfill", "--dry-run"), "it can't be a dry run"),
    ],
)
def test_says_what_to_mend(
    nous: Callable[..., Answer],  # noqa: F811
    tmp_path: Path,
    arguments: tuple[str, ...],
    message: str,
):
    (tmp_path / "empty").mkdir()
    places = {"FOLDER": str(tmp_path / "empty"), "EXPORT": str(written(tmp_path / "x.jsonl", {"nous_export": 1}))}
    places["EXPORT/"] = f"{places['EXPORT']}/"

    answer = nous(*(places.get(each, each) for each in arguments), "--agent", "aria")

    assert (answer.code, message in answer.err.replace("\n", " ")) == (1, True), answer.err


def test_a_dry_run_says_what_would_be_imported_and_what_is_left_out(
    nous: Callable[..., Answer],  # noqa: F811
    owner: psycopg.Connection,
    tmp_path: Path,
):
    path = written(tmp_path / "notes.md", "- Boats float.", "- The password is Xk29-ffQ7-pp31.")

    dry = nous("import", str(path), "--dry-run")

    assert dry.out.startswith("would import  1 facts, from 2 lines")
    assert "left out, facts that look as if they hold a credential: 1" in dry.err
    assert owner.execute("select count(*) from heart.agents").fetchone() == (0,)
    assert nous("import", str(path), "--json").json["stored"] == 1


def test_the_nights_to_make_up_for_begin_with_the_first_memory_and_leave_out_those_that_ran(
    heart: Heart, owner: psycopg.Connection, database_url: str, tmp_path: Path
):
    remember(heart, "boats float", "boats sink")
    ran = "insert into lifecycle.health (agent_id, night, figures) values ('aria', %s, '{}')"
    owner.execute(ran, [date(2026, 5, 2)])

    found = nights_to_run(options(database_url, tmp_path), now=datetime(2026, 5, 5, 3, tzinfo=UTC))

    assert found == [date(2026, 5, 1), date(2026, 5, 3), date(2026, 5, 4)]
    with pytest.raises(NotFound, match="agent 'nobody' is not known here"):
        nights_to_run(options(database_url, tmp_path, agent_ids=("nobody",)), now=datetime(2026, 5, 5, tzinfo=UTC))


def test_an_imported_history_is_aged_by_all_its_nights_once(
    nous: Callable[..., Answer],  # noqa: F811
    owner: psycopg.Connection,
    tmp_path: Path,
):
    ended = datetime.now(UTC) - timedelta(days=1)
    episode = {
        "kind": "episode", "detail": "Ada decided that deploys need two approvals.", "ended_at": ended.isoformat(),
    }  # fmt: skip
    nous("import", str(written(tmp_path / "history.jsonl", episode)), "--agent", "aria")

    first = nous("night", "--backfill", "--agent", "aria", "--json")
    again = nous("night", "--backfill", "--agent", "aria")

    assert [each["night"] for each in first.json["nights"]] == [(TODAY - timedelta(days=1)).isoformat()]
    assert "episodes completed: 1" in first.err
    assert (again.code, again.out) == (0, "every night that is over has been run\n")
    assert owner.execute("select distinct learned_at from heart.facts").fetchall() in ([], [(ended,)])
    assert owner.execute("select count(*) from heart.episodes where completed_at is not null").fetchone() == (1,)
