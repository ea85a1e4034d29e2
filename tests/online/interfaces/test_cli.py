"""The command line: what it prints where, and the code it ends with."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
import typer
from twins import NousTwin
from typer.testing import CliRunner

from nous_online.core.settings import settings
from nous_online.database import postgres
from nous_online.interfaces.cli import command_line
from nous_online.interfaces.cli.command_line import EXTRA_COMMANDS, EXTRAS, NousGroup, application, register_extras
from nous_online.interfaces.cli.output import show
from nous_online.processes import listen_to_signals

NOUS = [sys.executable, "-c", "from nous_online.interfaces.cli import main; main()"]
COMMANDS = ("learn", "recall", "import", "status", "worker", "up", "down", "doctor")


SOME_ID = "01a202e5-e0bd-7d8c-b5bd-9313b051deb4"


class Answer:
    """What a command printed, and how it ended."""

    def __init__(self, result) -> None:
        self.code, self.out, self.err = result.exit_code, result.stdout, result.stderr

    @property
    def json(self) -> dict:
        assert self.out.count("\n") == 1
        return json.loads(self.out)


@pytest.fixture
def environment(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("NOUS_DATABASE_URL", database_url)
    monkeypatch.setenv("NOUS_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("NOUS_AGENT", raising=False)
    settings.cache_clear()
    yield
    settings.cache_clear()


@pytest.fixture
def nous(environment: None) -> Callable[..., Answer]:
    return lambda *arguments: Answer(CliRunner().invoke(application(), arguments))


def test_learns_and_recalls(nous: Callable[..., Answer]):
    learned = nous("learn", "The staging database runs [bold] Postgres", "--subject", "staging", "--tag", "db")
    recalled = nous("recall", "which database does staging use?")

    assert (learned.code, recalled.code) == (0, 0)
    assert learned.out.startswith("stored  The staging database runs [bold] Postgres")
    assert "The staging database runs [bold] Postgres" in recalled.out
    assert (learned.err, recalled.err.startswith("say what was used: nous feedback ")) == ("", True)


def test_what_is_known_is_listed_page_by_page(nous: Callable[..., Answer]):
    for number in range(3):
        nous("learn", f"Room {number} is free", "--subject", "rooms", "--user", "ada", "--key", f"room/{number}")

    first = nous("list", "--kind", "fact", "--about", "room", "--limit", "2")
    last = first.err.split("--before ")[1].strip()
    second = nous("list", "--kind", "fact", "--limit", "2", "--before", last)
    none = nous("list", "--state", "archived")

    assert [line[12:] for line in first.out.splitlines()[::2]] == ["Room 2 is free", "Room 1 is free"]
    assert "fact, user ada" in first.out
    assert (second.out.count("Room 0 is free"), second.err) == (1, "")
    assert (none.out, none.err.split(";")[0]) == ("", "no memory fits")


def test_a_text_without_spaces_is_listed_up_to_the_end_of_the_line(nous: Callable[..., Answer]):
    nous("learn", "姉の美咲は横浜に住んでいて、毎週金曜日に娘とピアノを弾きに市役所の隣のホールへ通っています。")

    listed, recalled = nous("list"), nous("recall", "姉の美咲")

    assert listed.out.splitlines()[0][12:].startswith("姉の美咲は横浜に住んでいて、毎週金曜日に娘")
    assert listed.out.splitlines()[0].endswith(" …")
    assert "通っています。" in recalled.out


def test_an_answer_that_stands_before_a_better_one_says_why(nous: Callable[..., Answer]):
    for seats in ("window", "aisle"):
        nous("learn", f"I prefer {seats} seats on flights", "--key", f"seats/{seats}")

    lines = nous("recall", "which window or aisle seats do I prefer on flights").out.splitlines()

    assert ["said later than 2, so before it" in line for line in lines if "said" in line] == [True, False]
    assert "aisle" in lines[0]


def test_a_change_that_is_yet_to_begin_stands_after_what_holds_today_and_says_from_when(nous: Callable[..., Answer]):
    nous("learn", "The rent is 1,200 a month", "--learned-at", "2026-05-01T00:00:00Z")
    nous("learn", "From September the rent is 1,350 a month", "--learned-at", "2026-05-02T00:00:00Z")

    before, after = (
        nous("recall", "how much is the rent?", "--as-of", f"2026-{month}-01T12:00:00Z").out.splitlines()
        for month in ("06", "09")
    )

    assert "1,200" in before[0]
    assert ["begins on 2026-09-01" in line for line in before if "said" in line] == [False, True]
    assert "1,350" in after[0]
    assert not any("begins on" in line for line in after)


def test_a_memory_of_many_words_is_shown_in_three_lines_unless_all_of_it_is_asked_for(nous: Callable[..., Answer]):
    text = " ".join(f"Barge {number} carried rye to Olm." for number in range(12))
    learned = nous("learn", text)

    assert learned.code == 0, learned.err
    short, full = nous("recall", "rye", "--limit", "1"), nous("recall", "rye", "--limit", "1", "--full")

    assert len(short.out.splitlines()) == 4
    assert "… (--full)" in short.out
    assert text in full.out


def test_a_question_that_nothing_answers_is_told_so_before_what_is_nearest(nous: Callable[..., Answer]):
    nous("learn", "The staging database runs Postgres")

    known, unknown = nous("recall", "what does staging run?"), nous("recall", "who painted the ceiling?")

    assert unknown.out.startswith("nothing clearly answers this; the nearest are:\n")
    assert "nothing clearly answers" not in known.out


def test_learning_shows_what_is_near_and_replaces_it_by_id_or_by_key(nous: Callable[..., Answer]):
    old = nous("learn", "Ada lives in Rome", "--json").json["memory"]["id"]

    near = nous("learn", "Ada lives next door to Ben in Rome")
    replaced = nous("learn", "Ada has left Italy", "--replaces", old)
    nous("learn", "The port is 1", "--key", "port")
    keyed = nous("learn", "Use 2 for it", "--key", "port", "--json").json

    assert f"--replaces {old[:13]}" in " ".join(near.out.split())
    assert (replaced.code, replaced.out.split()[0]) == (0, "superseded")
    assert (keyed["action"], keyed["memory"]["key"]) == ("superseded", "port")


def test_status_says_what_waits_for_a_person_and_where_to_settle_it(
    nous: Callable[..., Answer], owner: psycopg.Connection
):
    fact = nous("learn", "Ada lives in Rome", "--json").json["memory"]["id"]
    well = nous("status")
    owner.execute("set session_replication_role = replica")
    owner.execute("update heart.facts set state = 'quarantined' where id = %s", [fact])
    owner.execute(
        "insert into heart.outbox_cursors (agent_id, consumer, last_xid, last_id, failed_count, last_error) "
        "values ('default', 'brain', '0', 0, 3, 'oops')"
    )
    told, machine = nous("status"), nous("status", "--json").json

    assert "needs you nothing" in " ".join(well.out.split())
    assert "needs you 1 fact is quarantined: `nous console` lists the state quarantined" in " ".join(told.out.split())
    assert "the consumer brain failed 3 times: oops" in told.out
    assert (machine["questions"]["quarantined"], len(machine["needs"])) == (1, 2)


def test_status_names_the_projects_the_largest_first(nous: Callable[..., Answer]):
    none = nous("status")
    for text, project in (
        ("Deploys run at noon", "pay-1"),
        ("Ada lives in Rome", "atlas-2"),
        ("Cats sleep", "atlas-2"),
    ):
        nous("learn", text, "--project", project)
    nous("learn", "The rent is 900")
    told, machine = nous("status"), nous("status", "--json").json

    assert "projects" not in none.out
    assert "projects   atlas-2 2, pay-1 1\n" in told.out
    assert machine["projects"] == {"atlas-2": 2, "pay-1": 1}


def test_prints_one_json_object_and_nothing_else(nous: Callable[..., Answer], tmp_path: Path):
    file = tmp_path / "history.jsonl"
    file.write_text('{"content": "Deploys need two approvals"}\nbad\n')

    learned = nous("learn", "Ada prefers tea", "--frame", "task", "--json", "--learned-at", "2026-05-01T00:00:00Z").json
    recalled = nous("--json", "recall", "tea", "--limit", "1", "--as-of", "2026-06-01T00:00:00Z").json
    imported = nous("import", str(file), "--json").json
    status = nous("status", "--json").json

    assert (learned["action"], learned["memory"]["encoded_frame"]) == ("stored", "task")
    assert [each["memory"]["content"] for each in recalled["memories"]] == ["Ada prefers tea"]
    standing = {"put_before", "contradicted_by", "begins_on", "changed_by"}
    assert set(recalled["memories"][0]) == {"score", "memory", "parts", *standing}
    assert (imported["stored"], imported["bad"][0]["number"]) == (1, 2)
    assert status["memories"] == {"fact": {"active": 2}}
    assert (status["agent"], status["recalls"], status["waiting"]["episodes"]) == ("default", 1, 0)


def test_the_agent_may_stand_before_or_after_the_command(nous: Callable[..., Answer], monkeypatch: pytest.MonkeyPatch):
    nous("learn", "Basil prefers coffee", "--agent", "basil")
    nous("-a", "basil", "learn", "Basil sings in a choir")
    nous("-a", "ada", "learn", "Ada rows")
    monkeypatch.setenv("NOUS_AGENT", "basil")
    settings.cache_clear()

    assert nous("status", "--json").json["memories"] == {"fact": {"active": 2}}
    assert nous("-a", "ada", "status", "--json").json["memories"] == {"fact": {"active": 1}}


@pytest.mark.parametrize("command", [*COMMANDS, *EXTRA_COMMANDS])
def test_every_command_explains_itself(command: str):
    answer = Answer(CliRunner().invoke(application(), [command, "--help"]))

    assert answer.code == 0
    assert f"nous {command}" in answer.out
    assert command in EXTRA_COMMANDS or "Examples" in answer.out


def test_no_agent_is_erased_in_the_place_of_an_empty_name(nous: Callable[..., Answer]):
    nous("learn", "Boats float")

    answer = nous("erase", "", "--yes")

    assert (answer.code, answer.err) == (1, "error: agent_id is empty; name the agent this memory belongs to\n")
    assert nous("status", "--json").json["memories"] == {"fact": {"active": 1}}


def test_an_error_is_one_line_with_exit_code_1(nous: Callable[..., Answer]):
    answer = nous("learn", " ", "--json")

    assert answer.code == 1
    assert answer.err == "error: content is empty; write at least a word\n"
    assert answer.json == {"error": {"kind": "InvalidInput", "message": "content is empty; write at least a word"}}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["lern", "x"], "No such command 'lern'"),
        (["search", "x"], "Did you mean 'recall'?"),
        (["learn"], "try `nous learn --help`"),
        (["recall", "x", "--limit", "many"], "'--limit'"),
        (["--loud"], "No such option: --loud"),
        (["install", "cursor"], "Invalid value for 'CLIENT': 'cursor' is not one of 'claude-code', 'codex', 'gemini'"),
        (["status", "--agent", ""], "the agent is empty; name one"),
        (["-a", " ", "status"], "the agent is empty; name one"),
    ],
)
def test_wrong_usage_is_one_line_with_exit_code_2(arguments: list[str], message: str):
    answer = Answer(CliRunner().invoke(application(), arguments))

    assert answer.code == 2
    assert message in answer.err
    assert answer.err.startswith("error: ")
    assert answer.err.count("\n") == 1
    assert answer.out == ""


@pytest.mark.parametrize(
    "arguments", [["learn", "--json"], ["--json", "lern", "x"], ["recall", "--json", "--limit", "x"]]
)
def test_wrong_usage_is_a_json_error_too_where_json_is_asked_for(arguments: list[str]):
    answer = Answer(CliRunner().invoke(application(), arguments))

    assert answer.code == 2
    assert answer.json["error"]["kind"] == "UsageError"
    assert answer.err == f"error: {answer.json['error']['message']}\n"


def test_what_stands_behind_the_end_of_options_asks_for_no_json():
    answer = Answer(CliRunner().invoke(application(), ["learn", "--limit", "--", "--json"]))

    assert (answer.code, answer.out) == (2, "")


@pytest.mark.parametrize(
    "command",
    [
        "learn x", "recall x", "context x", "predict --file x", f"feedback {SOME_ID} --cite {SOME_ID}", "check x",
        f"history {SOME_ID}", f"show {SOME_ID}", f"split {SOME_ID}", f"resolve {SOME_ID} a_wins", "contradictions",
        "censor list", "status", "diff", "report",
        "undo --night 2026-05-01", f"undo --memory {SOME_ID}", "cost", "query", "policy", "batches", "erase aria --yes",
        "worker --once", "up", "dev --no-ui",
    ],
)  # fmt: skip
def test_an_unreachable_database_is_one_line_with_the_fix(
    nous: Callable[..., Answer], monkeypatch: pytest.MonkeyPatch, command: str
):
    monkeypatch.setenv("NOUS_DATABASE_URL", "postgresql://nobody@127.0.0.1:1/nothing")
    settings.cache_clear()

    answer = nous(*command.split())

    assert answer.code == (2 if command == "check x" else 1)
    assert answer.err.startswith("error: can't connect to PostgreSQL")
    assert "nous up" in answer.err
    assert (answer.out, answer.err.count("\n")) == ("", 1)


def test_tells_what_an_import_did_and_which_lines_were_bad(nous: Callable[..., Answer], tmp_path: Path):
    file = tmp_path / "history.jsonl"
    records = ['{"content": "Deploys need two approvals", "split": 1}', '{"sessions": []}', *["bad"] * 25]
    records += [f"{{{' ' * width}bad" for width in range(22)]
    file.write_text("\n".join(records))

    answer = nous("import", str(file))

    assert answer.code == 0
    assert answer.out == "imported  1 facts, from 49 lines\n"
    assert "dialogues in which nothing is said: 1" in answer.err
    assert "ignored fields: split" in answer.err
    bad = [line for line in answer.err.splitlines() if line.startswith("error: ")]
    assert bad[0].startswith("error: 25 lines: not JSON: Expecting value at column 1; one JSON object")
    assert bad[0].endswith(", first at line 3")
    assert bad[1].startswith("error: line 28: not JSON")
    assert (len(bad), bad[-1]) == (21, "error: 3 more bad lines; --json lists up to 47")


def test_an_import_with_nothing_good_in_it_ends_with_exit_code_1(nous: Callable[..., Answer], tmp_path: Path):
    (tmp_path / "bad.jsonl").write_text("bad\n")
    (tmp_path / "empty.jsonl").write_text("")

    assert nous("import", str(tmp_path / "bad.jsonl")).code == 1
    assert nous("import", str(tmp_path / "empty.jsonl")).code == 0


def test_doctor_finds_everything_in_order(nous: Callable[..., Answer]):
    answer = nous("doctor", "--json")

    assert answer.code == 0
    assert answer.json["is_ok"]
    assert [check["name"] for check in answer.json["checks"]] == [
        "python", "embedder", "disk", "home", "server", "schema", "roles", "isolation", "spaces",
        "episodes", "nights",
    ]  # fmt: skip


def test_a_new_user_with_an_old_import_is_told_that_it_waits_for_the_first_night(
    nous: Callable[..., Answer], tmp_path: Path
):
    file = tmp_path / "history.jsonl"
    file.write_text('{"content": "The rent is 900", "learned_at": "2024-03-01T09:00:00Z"}')
    nous("import", str(file))

    nights, told, checked = nous("status", "--json").json["nights"], nous("status"), nous("doctor")

    assert nights == {"last": None, "missed_from": None, "missed_changes": 1}
    waits = "no night has run yet, and what you told Nous waits for the first one (changes that wait: 1): run `nous"
    assert waits in " ".join(told.out.split())
    assert "missed" not in told.out
    assert "none yet; warning: memories wait for the first (agents: 1): run `nous" in " ".join(checked.out.split())


def test_doctor_says_what_to_mend(nous: Callable[..., Answer], owner: psycopg.Connection):
    owner.execute("delete from migration.applied")
    behind = nous("doctor")

    assert behind.code == 1
    assert "fix  schema    the database lacks migrations of this version; run `nous up`" in behind.out
    assert "ok   server" in behind.out


def test_doctor_says_once_that_the_server_is_away(nous: Callable[..., Answer], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("NOUS_DATABASE_URL", "postgresql://nous@127.0.0.1:1/nous")
    settings.cache_clear()

    answer = nous("doctor")

    assert answer.code == 1
    assert answer.out.count("the server can't be asked") == 1
    assert answer.out.rstrip().endswith("check NOUS_DATABASE_URL, or run `nous up`")


def test_an_api_whose_port_is_taken_says_so_in_one_line(nous: Callable[..., Answer]):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        answer = nous("api", "--port", str(port))

    assert (answer.code, answer.err) == (1, f"error: port {port} of 127.0.0.1 is taken; name a free one with --port\n")


def test_a_first_doctor_finds_nothing_to_mend_where_no_server_was_started_yet(
    nous: Callable[..., Answer], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("NOUS_DATABASE_URL")
    settings.cache_clear()
    first = nous("doctor")

    assert (first.code, "fix" in first.out) == (0, False)
    assert "ok   server    not running; the next command or call starts it" in first.out


def test_up_and_down_start_and_stop_the_embedded_server(nous: Callable[..., Answer], monkeypatch: pytest.MonkeyPatch):
    home = Path(tempfile.mkdtemp(prefix="nous-cli-"))
    monkeypatch.setenv("NOUS_HOME", str(home))
    monkeypatch.delenv("NOUS_DATABASE_URL")
    settings.cache_clear()
    try:
        up, again, doctor = nous("up"), nous("up", "--json"), nous("doctor")
        server_folder = postgres.data_directory(home)
        down, nothing = nous("down"), nous("down", "--json")
    finally:
        postgres.stop(home)
        shutil.rmtree(postgres.data_directory(home), ignore_errors=True)
        shutil.rmtree(home, ignore_errors=True)

    assert up.out.startswith(f"ready  PostgreSQL at {server_folder}:")
    assert again.json["is_ready"]
    assert "password" not in again.json
    assert doctor.code == 0
    assert down.out == f"stopped PostgreSQL in {home}; memories stay where they are\n"
    assert nothing.json == {"was_running": False, "stopped": []}


def test_a_command_of_an_absent_extra_says_what_to_install():
    app = typer.Typer(cls=NousGroup, rich_markup_mode="rich")
    register_extras(app, entry_points=[])

    answer = Answer(CliRunner().invoke(app, ["night", "--date", "2026-05-01"]))

    assert answer.code == 1
    assert answer.err == (
        "error: `nous night` needs the extra `pipelines`; run: pip install 'nous-pipelines[pipelines]'\n"
    )


def test_of_an_extra_that_is_not_there_at_all_no_single_module_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(command_line, "find_spec", lambda module: None if module in EXTRAS["pipelines"] else module)
    app = typer.Typer(cls=NousGroup)

    @app.command()
    def night() -> None:
        raise ModuleNotFoundError("No module named 'starlette'", name="starlette")

    app.command("other")(lambda: None)
    answer = Answer(CliRunner().invoke(app, ["night"]))

    assert answer.err == (
        "error: `nous night` needs the extra `pipelines`; run: pip install 'nous-pipelines[pipelines]'\n"
    )


def test_a_command_whose_module_is_absent_says_what_to_install():
    app = typer.Typer(cls=NousGroup)

    @app.command()
    def night() -> None:
        raise ModuleNotFoundError("No module named 'dagster.core'", name="dagster.core")

    @app.command()
    def other() -> None:
        raise ModuleNotFoundError("No module named 'ours'", name="ours")

    answer = Answer(CliRunner().invoke(app, ["night"]))

    assert answer.code == 1
    assert "`nous night` needs the extra `pipelines` (dagster.core is not installed)" in answer.err
    assert isinstance(CliRunner().invoke(app, ["other"]).exception, ModuleNotFoundError)


def test_ctrl_c_ends_with_one_line_and_exit_code_130():
    app = typer.Typer(cls=NousGroup)

    @app.command()
    def wait() -> None:
        raise KeyboardInterrupt

    @app.command()
    def other() -> None:
        show("unused")

    answer = Answer(CliRunner().invoke(app, ["wait"]))

    assert (answer.code, answer.out) == (130, "")
    assert answer.err == "error: interrupted; nothing was left half-done\n"


def test_prints_its_version():
    assert CliRunner().invoke(application(), ["--version"]).stdout.startswith("nous 0.")


def test_help_imports_no_database_driver_and_no_model():
    code = (
        "import sys\nfrom nous_online.interfaces.cli.command_line import application\n"
        "try:\n    application()(['--help'])\nexcept SystemExit:\n    pass\n"
        "heavy = {'onnxruntime', 'psycopg', 'numpy', 'tokenizers', 'httpx', 'dagster', 'polars', 'pydantic'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )

    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert ended.stderr == "[]\n"
    assert "import" in ended.stdout


def test_a_process_without_a_terminal_prints_no_colours(environment: None):
    with NousTwin("up", environment=os.environ) as process:
        out, err = process.communicate()

    assert process.returncode == 0
    assert "\x1b" not in out + err
    assert out.startswith("ready")


def test_an_import_stopped_by_ctrl_c_says_so_and_continues_when_run_again(
    nous: Callable[..., Answer], owner: psycopg.Connection, tmp_path: Path
):
    file = tmp_path / "history.jsonl"
    count = 256
    file.write_text("".join(f'{{"content": "The sensor in room {n} reads {n} degrees."}}\n' for n in range(count)))

    process = subprocess.Popen(
        [*NOUS, "import", str(file)],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ,
        preexec_fn=listen_to_signals,  # noqa: PLW1509 (one thread; a shell in the background makes us deaf to Ctrl-C)
    )
    until = time.monotonic() + 60
    while not stored(owner) and time.monotonic() < until:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    halfway = stored(owner)

    assert process.returncode == 130, said
    assert said.startswith("error: interrupted; everything up to line ")
    assert said.count("\n") == 1
    assert 0 < halfway < count
    again = nous("import", str(file), "--json").json
    assert (again["already_known"], again["stored"]) == (halfway, count - halfway)
    assert stored(owner) == count


def stored(owner: psycopg.Connection) -> int:
    return owner.execute("select count(*) from heart.facts").fetchone()[0]
