"""The real embedded server for the whole session, and a database of its own for every test that asks for one."""

from __future__ import annotations

import gc
import hashlib
import importlib
import os
import re
import signal
import sys
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from functools import cache, lru_cache
from pathlib import Path

import examples
import few_threads  # noqa: F401 (before numpy)
import hypothesis
import numpy as np
import psycopg
import pytest
import turns
import typer.testing
from lent_databases import FORGOTTEN, Lender, LentDatabase, copy
from memory_disk import may_run_programs, memory_disk
from no_real_api import Guard, no_real_api
from postgres_homes import copy_home, hasten, made_home, scratch
from unit_files import needs_server

from nous_online.core.domain import EmbeddingSpace
from nous_online.core.settings import settings
from nous_online.database import postgres
from nous_online.database.connection import Database, prepare, register_space
from nous_online.heart import Heart
from nous_online.language.minilm import LocalMiniLM, Vectors, unit_rows
from nous_online.language.pairs.judging import Judgement, Pair, Verdict
from nous_online.language.writing.writer import CensorDraft, Draft, EndedEpisode, FactDraft

# What is loaded and collected stays to the end: until then there is no garbage worth looking for.
gc.disable()

# A shell makes what it starts in the background deaf to Ctrl-C, and Dagster makes that deaf to SIGTERM too: so would be
# every program that a test starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A call that is not about deadlines shall end by none on a machine that is five times slower.
os.environ.setdefault("NOUS_DEADLINE_S", "60")

# Some tests import the runtime of the embedding model themselves; it would report to its maker.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

# Every worker and every program that a test starts would compile the same files again.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Where pytest makes its folders, of this run and in the programs that a test starts.
if (disk := memory_disk()) and may_run_programs(disk):
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(disk))

# A tree of fifty commands takes 80 ms to make, and more than a thousand tests type one.
typer.testing._get_command = cache(typer.testing._get_command)  # pyright: ignore[reportPrivateUsage]

# One thread for the local model too: a copy of this process has its tables already, but would have no other thread.
LocalMiniLM.__init__.__kwdefaults__["threads"] = 1

INTEGRATION = (
    "test_anthropic_server", "test_api_", "test_audit_trail", "test_background", "test_batch_accounts",
    "test_benchmark", "test_browser", "test_campaign", "test_censors_calibration", "test_chat_client", "test_children",
    "test_claude_", "test_cli", "test_console", "test_containers", "test_dagster_from_outside", "test_demo", "test_dev",
    "test_direct_asking", "test_doors_without_a_key", "test_embedding", "test_engines", "test_entrances",
    "test_failpoints", "test_fields", "test_foreground", "test_fresh_facts", "test_hidden_characters", "test_hook",
    "test_hostile_", "test_house", "test_import_commands", "test_inject", "test_judged", "test_kubernetes",
    "test_langgraph_store", "test_lifecycle_metrics", "test_lineage", "test_linear_time", "test_malformed_messages",
    "test_mcp_", "test_memory_tool", "test_night_tables", "test_no_real_api", "test_pair_reader", "test_postgres_",
    "test_preflight", "test_privacy", "test_query_command", "test_quotas", "test_reference", "test_release",
    "test_restore_drills", "test_retention", "test_rooms", "test_run_launcher", "test_schedule",
    "test_second_opinions", "test_sensors", "test_sessions_carry", "test_site", "test_tiers", "test_told_secrets",
    "test_training", "test_trust", "test_tutorial", "test_webhooks", "test_wrap", "test_writing_child",
)  # fmt: skip
"""Files whose tests start programs or servers of their own, load a model, Dagster, the REST API or the MCP SDK (seconds
in each process that runs a part of the tests), try a long list of planted texts, or read the whole repository."""
UNIT = "not integration"
"""What `make unit` asks for: then these files are not even loaded, which takes longer than to run the rest of them."""
HEAVY = ("local_model", "megabyte", "hostile_text", "takes_longer", "in_proportion", "hundred_thousand")
"""What tests are named that take long to show that something does not take long."""

LONGEST = (
    "test_browser", "test_engines", "test_quiet_nights", "test_incremental_nights", "test_claude_client", "test_night",
    "test_nights_are_logical", "test_deadlines_of_verbs", "test_erasing_nights", "test_commands", "test_deadlines",
    "test_injected_nights", "test_failpoints", "test_postgres_outages", "test_api_nights", "test_api_contract",
    "test_learning_with_claude", "test_parts", "test_second_opinions", "test_wrap", "test_cli", "test_worker",
    "test_demo", "test_linear_time", "test_hooks", "test_claude_judge", "test_injected_learning",
    "test_postgres_server", "test_claude_writer", "test_bad_nights", "test_query_command", "test_run_launcher",
    "test_undo", "test_console_browser", "test_open_connections", "test_reembedding_meanwhile",
    "test_hostile_entrances", "test_cli_pipes", "test_house", "test_cli_context", "test_direct_asking",
    "test_settled_snapshots", "test_apply", "test_chat_client", "test_postgres_kills", "test_agents_apart",
    "test_claude_batches", "test_night_tables", "test_censors_calibration", "test_api_turns", "test_tutorial",
    "test_import_commands", "test_recipes", "test_site", "test_merging", "test_neighbours", "test_self_join",
    "test_forgetting", "test_context_tokens",
)  # fmt: skip
"""Files that take longest, of all and of `make unit`: where files run side by side they begin first, else the last of
them is waited for. Every third waits more than it computes, as `test_claude_client` does: beside it two others have
the cores, while several of its kind at once would leave them idle."""


def pytest_configure(config: pytest.Config) -> None:
    """Try a property that says nothing of its own on 40 examples; an example may take as long as the machine needs.

    In a fresh clone each of four processes would compile all that is loaded, while the others do the same: each begins
    with other folders, and finds the rest compiled.
    """
    if config.option.markexpr == UNIT and "NOUS_EXAMPLES" not in os.environ:
        examples.TIMES = 0.25
    hypothesis.settings.register_profile("ordinary", max_examples=examples.examples(40), deadline=None)
    hypothesis.settings.load_profile("ordinary")
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    if worker and config.args_source is pytest.Config.ArgsSource.TESTPATHS:
        folders = sorted({str(path.parent) for path in Path(__file__).parent.rglob("test_*.py")})
        first = len(folders) * int(worker.removeprefix("gw")) // int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
        config.args = folders[first:] + folders[:first]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the files of which `make unit` runs nothing."""
    if config.option.markexpr != UNIT or not collection_path.match("test_*.py"):
        return None
    return True if collection_path.name.startswith(INTEGRATION) or needs_server(collection_path) else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs a server, other programs, the embedding model, a megabyte or a slow pattern.

    `make unit` runs the rest.
    """
    places = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: (places.get(item.path.stem, len(places)), item.path))
    for item in items:
        needs_server = "server" in getattr(item, "fixturenames", ())
        is_heavy = any(word in item.name for word in HEAVY)
        if needs_server or is_heavy or item.path.name.startswith(INTEGRATION):
            item.add_marker(pytest.mark.integration)


def pytest_collection_finish() -> None:
    """Look for garbage only among what tests make: all that was loaded by now stays to the end, its garbage too."""
    if "dagster" in sys.modules:
        importlib.import_module("dagster_migrations").read_once()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)  # a test makes tables and models by the thousand, and little of it is garbage
    gc.enable()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say which of the cases that take turns were left to other runs."""
    terminalreporter.write_line(turns.said())


@contextmanager
def environment_left_as_found() -> Iterator[None]:
    """Take back what the block leaves in the variables of Nous and Dagster, such as a database that is gone by then."""
    before = {name: value for name, value in os.environ.items() if name.startswith(("NOUS_", "DAGSTER_"))}
    yield
    for name in [name for name in os.environ if name.startswith(("NOUS_", "DAGSTER_")) and name not in before]:
        del os.environ[name]
    os.environ.update(before)


@pytest.fixture(scope="module", autouse=True)
def environment_of_its_own() -> Iterator[None]:
    """Leave nothing of what a file's own fixtures set to the files that the same worker reads after it."""
    with environment_left_as_found():
        yield


@pytest.fixture(autouse=True)
def settings_and_umask_of_its_own() -> Iterator[None]:
    """Give every test its environment's settings and the usual umask: an earlier one may have left its own behind."""
    settings.cache_clear()
    before = os.umask(0o022)
    with environment_left_as_found():
        yield
    os.umask(before)


class WordEmbedder:
    """A deterministic embedder: a text is the sum of one fixed random direction a word."""

    space = EmbeddingSpace(id="words-64", model="words", weights_sha256="", dimensions=64)

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        rows = [sum((direction(word) for word in words(text)), np.full(64, 1e-6)) for text in texts]
        return unit_rows(np.asarray(rows, dtype=np.float32).reshape(len(texts), 64))

    def embed_query(self, text: str) -> Vectors:
        return self.embed_documents([text])[0]


class ScriptedJudge:
    """A judge that says what the test wrote down for a pair of texts, and `unsure` otherwise."""

    name = "scripted"
    prompt_version = "1"

    def __init__(self, verdicts: dict[tuple[str, str], Verdict] | None = None) -> None:
        self.verdicts = verdicts or {}
        self.change = 0.0
        self.changes: dict[tuple[str, str], float] = {}
        self.asked: list[Pair] = []

    def judge(self, pairs: Sequence[Pair]) -> list[Judgement]:
        self.asked.extend(pairs)
        return [
            Judgement(
                verdict=self.verdicts.get((pair.a.text, pair.b.text), Verdict.UNSURE),
                confidence=1.0,
                reason="so says the script",
                slot=None,
                later="b",
                model=self.name,
                prompt_version=self.prompt_version,
                change=self.changes.get((pair.a.text, pair.b.text), self.change),
            )
            for pair in pairs
        ]


class ScriptedWriter:
    """A writer that keeps what it was told: a line `fact: …` is a fact, `never: …` a censor, the rest the summary."""

    name = "scripted"

    def __init__(self) -> None:
        self.told: list[EndedEpisode] = []

    def write(self, episode: EndedEpisode) -> Draft:
        self.told.append(episode)
        lines = [line.partition(": ") for line in episode.detail.splitlines()]
        summary = " ".join(line for line in episode.detail.splitlines() if not line.startswith(("fact: ", "never: ")))
        return Draft(
            title=episode.title or f"About {' '.join(words(episode.detail)[:5])}",
            summary=summary,
            compressed=summary[:40],
            index_word="scripted",
            facts=tuple(FactDraft(text, None, None, text) for kind, _, text in lines if kind == "fact"),
            censors=tuple(CensorDraft(text, "it failed before") for kind, _, text in lines if kind == "never"),
            writer="scripted",
            prompt_version="1",
        )


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


@lru_cache(maxsize=20_000)
def direction(word: str) -> np.ndarray:
    seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "big")
    return np.random.default_rng(seed).standard_normal(64)


@pytest.fixture(scope="session", autouse=True)
def dead_api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guard]:
    """No key, and an address for the Anthropic API where nothing answers, unless a test starts a server of its own."""
    with no_real_api(tmp_path_factory.mktemp("no-profiles")) as guard:
        yield guard


@pytest.fixture(autouse=True)
def _stays_on_this_machine(dead_api: Guard) -> Iterator[None]:
    yield
    dead_api.check()


@pytest.fixture(scope="session")
def server() -> Iterator[postgres.Server]:
    with scratch() as home:
        started = postgres.ensure(home)
        hasten(started)
        yield started


@pytest.fixture(scope="session")
def home_to_copy() -> Iterator[Path]:
    with made_home() as home:
        yield home


@pytest.fixture
def ready_home(home_to_copy: Path) -> Iterator[Path]:
    """A home of the test's own, whose server was made and has stopped."""
    with scratch() as place:
        yield copy_home(home_to_copy, place / "home")


@pytest.fixture(scope="session")
def admin(server: postgres.Server) -> Iterator[psycopg.Connection]:
    """A connection of the server's owner that makes databases and drops them."""
    with psycopg.connect(server.dsn("postgres"), autocommit=True) as connection:
        if sys.platform == "linux" and connection.info.server_version >= 18_00_00:
            connection.execute("set file_copy_method = clone")  # files are copied in the kernel, in half the time
        yield connection


@pytest.fixture(scope="session")
def template(server: postgres.Server, admin: psycopg.Connection) -> str:
    """The name of a database with the schema in it, to be cloned."""
    admin.execute("create database nous_template")
    prepare(server.dsn("nous_template"))
    with closing(Database(server.dsn("nous_template"))) as database:
        register_space(database, WordEmbedder.space)
        register_space(database, LocalMiniLM.space)
    with psycopg.connect(server.dsn("nous_template")) as owner:
        owner.execute(FORGOTTEN, [WordEmbedder.space.id])  # its indexes stay: a third of all tests would make them anew
    return "nous_template"


@pytest.fixture(scope="session")
def copy_of(server: postgres.Server, admin: psycopg.Connection) -> Callable[[str], AbstractContextManager[str]]:
    """Make a copy of a database for the length of a block, and give its URL; no session may be open in the original."""
    unused: list[str] = []

    @contextmanager
    def copied(template: str) -> Iterator[str]:
        name = f"test_{uuid.uuid4().hex[:12]}"
        copy(admin, template, name)
        yield server.dsn(name)
        # The server sleeps 100 ms where a session has not quite ended: by the next test it has.
        unused.append(name)
        if len(unused) > 1:
            admin.execute(f"drop database {unused.pop(0)} with (force)")

    return copied


@pytest.fixture(scope="session")
def lender(server: postgres.Server, admin: psycopg.Connection, template: str) -> Iterator[Lender]:
    lending = Lender(server, admin, template)
    yield lending
    lending.close()


@pytest.fixture
def lent(lender: Lender) -> Iterator[LentDatabase]:
    """A database as the migrations leave it, with the words' embedding space known, for one test."""
    with lender.lent() as lent:
        yield lent


@pytest.fixture
def database_url(lent: LentDatabase) -> str:
    return lent.url


@pytest.fixture
def database(lender: Lender, database_url: str) -> Iterator[Database]:
    if lender.in_use is not None and lender.in_use.url == database_url:
        yield lender.in_use.opened_database()
        return
    with closing(Database(database_url)) as opened:  # of a file whose tests have a store of their own
        yield opened


@pytest.fixture
def night_database(database_url: str) -> Iterator[Database]:
    """The database as nights see it: every agent's rows."""
    with closing(Database(database_url, role="nous_night")) as opened:
        yield opened


@pytest.fixture
def owner(lender: Lender, database_url: str) -> Iterator[psycopg.Connection]:
    """A connection of the database's owner, who sees everything."""
    if lender.in_use is not None and lender.in_use.url == database_url:
        yield lender.in_use.owner_connection()
        return
    with psycopg.connect(database_url, autocommit=True) as connection:
        yield connection


@pytest.fixture
def embedder() -> WordEmbedder:
    return WordEmbedder()


@pytest.fixture
def judge() -> ScriptedJudge:
    return ScriptedJudge()


@pytest.fixture
def writer() -> ScriptedWriter:
    return ScriptedWriter()


@pytest.fixture
def heart(database: Database, embedder: WordEmbedder, judge: ScriptedJudge, writer: ScriptedWriter) -> Heart:
    """The memory of agent `aria`, with the deterministic embedder, the scripted judge and writer, and no thread."""
    return Heart.open(
        "aria", database=database, embedder=embedder, judge=judge, writer=writer, works_in_background=False
    )
