"""Erases an agent, or some memories of it, from the files of nights, from logs and from Dagster's records."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import UUID

import polars as pl
import psycopg
from psycopg.rows import dict_row
from psycopg.sql import SQL, Identifier

from nous_online.core.errors import Unavailable
from nous_online.database.connection import Database, connect
from nous_online.database.statements import statements
from nous_online.memories.erasure import ERASED, Erasure, redactor
from nous_pipelines.batches.batch_rows import erase_batches
from nous_pipelines.orchestration.instance import dagster_url, home_folder, owner_of_dagster
from nous_pipelines.phases.proposals import PLAN
from nous_pipelines.reports.text_reports import plain
from nous_pipelines.snapshots.copy_binary import write_parquet_atomically
from nous_pipelines.snapshots.parts import DESCRIPTION, PART_PREFIX, checksum
from nous_pipelines.snapshots.snapshot import NIGHT_PREFIX, identity_of, temporary_folder

AGENT_KEYS = frozenset({"agent_id", "agent_ids", "agents", "nous/agents"})
"""Keys of JSON objects whose value is an agent's name, a list of names, or names separated by commas."""
MAPS_BY_AGENT = frozenset({"eligible", "proposed", "left", "agents", "late", "unseen"})
"""Keys whose value is an object with an entry for each agent, such as the counts of a phase."""
SHORTEST = 3  # characters; shorter quotations are not searched for
NEVER = r"(?!)"
"""A pattern that matches nothing."""
SPACE = re.compile(r"\s")


class Redaction:
    """Removes one agent from texts and JSON: its name in places of names, and quotations of its memories.

    With `ids` it removes a part of the agent: its name stays, and objects about one of the ids go.
    """

    def __init__(self, agent_id: str, quotations: Collection[str], *, ids: Collection[str] | None = None) -> None:
        name = f"(?:{'|'.join(re.escape(form) for form in forms(agent_id))})" if ids is None else NEVER
        self._agent_id = agent_id
        self._part = None if ids is None else frozenset(ids)
        quotations = {*quotations, *(ids or ())}
        self._in_list = re.compile(rf"(?<![^,\s]){name}(?![^,\s])")
        self._in_prose = re.compile(rf"((?:^|\n)(?:[-#]+ )?|['\"“`/>]|[|:;,] |agent ){name}(?=$|['\"”`:;,<]|\s)")
        self._ids = {quoted for quoted in quotations if is_id(quoted)}
        quoted = {form for quotation in quotations for form in forms(quotation) if len(form) >= SHORTEST}
        self._without_quotations = redactor(quoted)

    def is_about_agent(self, value: Any) -> bool:
        """Return whether a JSON object belongs to the agent, or names one of the ids."""
        if not isinstance(value, Mapping):
            return False
        if self._part is None:
            return value.get("agent_id") == self._agent_id
        lists = [each if isinstance(each, list) else [each] for each in value.values()]
        return any(isinstance(each, str) and each in self._part for values in lists for each in values)

    def value(self, value: Any, *, key: str = "") -> Any:
        """Return a JSON value without objects of the agent in lists, and with its name and quotations erased."""
        if isinstance(value, str):
            return self._in_list.sub(ERASED, value) if key in AGENT_KEYS else self.text(value)
        if isinstance(value, Mapping):
            return {
                self.text(name): self.value(inner, key=name)
                for name, inner in value.items()
                if key not in MAPS_BY_AGENT or name != self._agent_id or self._part is not None
            }
        if isinstance(value, list):
            return [self.value(inner, key=key) for inner in value if not self.is_about_agent(inner)]
        return value

    def text(self, text: str) -> str:
        """Return a text with name and quotations erased; of texts of one word, which are terms of logs, only ids."""
        if SPACE.search(text) is None:
            return ERASED if text in self._ids else text
        return self._in_prose.sub(rf"\1{ERASED}", self._without_quotations(text))


def forms(text: str) -> list[str]:
    """Return a text as it is and as Markdown escapes it, at the start of a line or within it; the longest first."""
    return sorted({text, plain(text), plain(f"x {text}")[2:]}, key=len, reverse=True)


def is_id(text: str) -> bool:
    """Return whether a text is the id of a memory or a proposal."""
    try:
        return len(text) == len(str(UUID(text)))
    except ValueError:
        return False


# --- erasing from all copies ---

BLOCKS = statements("nous_pipelines.orchestration", "night_erasure.sql")
PAGE = 500
NEW = ".erased"
WORDS = ("content", "reason", "query", "subject", "id")
QUOTING = ("reason", "query", "note", "outcome", "evidence")
"""Columns in which a row may quote another memory; the other columns hold a memory's own words."""
ABOUT = ("result_ids", "targets")
"""Columns with lists of ids, each of which the row is about."""
DAGSTER_TEXTS = (
    ("event_logs", "event"),
    ("asset_keys", "last_materialization"),
    ("asset_check_executions", "evaluation_event"),
    ("runs", "run_body"),
    ("run_tags", "value"),
    ("bulk_actions", "body"),
    ("job_ticks", "tick_body"),
)
"""The columns in which Dagster stores texts of runs. To delete a run would leave all of them but the first."""


def erase_nights(erasure: Erasure) -> Counter[str]:
    """Erase an agent from files of nights, logs and Dagster's records; return the number of each with its texts.

    Raises `Unavailable` when a file can't be read or written.
    """
    counts = Counter[str]()
    try:
        folders = list(night_folders(erasure.url))
        # Old nights may quote texts that the database has no more.
        searched = folders if erasure.ids is None else []
        stored = {text for folder in searched for text in texts_of_agent(folder, erasure.agent_id)}
        redaction = Redaction(erasure.agent_id, erasure.quotations | stored, ids=erasure.ids)
        for folder in folders:
            counts += erase_folder(folder, redaction, erasure)
        for log in log_files():
            counts += erase_log(log, redaction, is_dry_run=erasure.is_dry_run)
    except (OSError, ValueError, pl.exceptions.PolarsError) as error:
        message = f"a file of the nights can't be rewritten ({error}); repair or delete it, then erase again"
        raise Unavailable(message) from error
    return counts + erase_records(redaction, erasure) + erase_batches(erasure, home_folder())


# --- files of nights ---


def night_folders(url: str) -> Iterator[Path]:
    """Yield the folders of parts of a database, then those of its nights, moved aside and unfinished ones included."""
    with closing(Database(url, role="nous_night", max_connections=1)) as database:
        root = home_folder() / "snapshots" / identity_of(database)
    for name in (PART_PREFIX, NIGHT_PREFIX):
        yield from sorted(path for path in root.glob(f"*{name}*") if path.is_dir())


def texts_of_agent(folder: Path, agent_id: str) -> set[str]:
    """Return the agent's texts in the tables of a night, without those that rows of other agents have as well."""
    if folder.name.startswith("."):
        return set()
    words = set[str]()
    for path in sorted(folder.rglob("*.parquet")):
        table = pl.read_parquet(path, memory_map=False)
        if "agent_id" in table.columns:
            is_own = table["agent_id"].cast(pl.String) == agent_id
            for column in table.select(*({*WORDS} & {*table.columns})).cast(pl.String):
                words |= {*column.filter(is_own)} - {*column.filter(~is_own)}
    return {text for text in words if text}


def erase_folder(folder: Path, redaction: Redaction, erasure: Erasure) -> Counter[str]:
    """Replace a night's folder by one without the agent, if it has anything of it.

    Reports in HTML and unfinished files are deleted.
    """
    if folder.name.startswith("."):  # a killed night left it; nobody reads it
        if not erasure.is_dry_run:
            shutil.rmtree(folder)
        return Counter({"unfinished snapshots": 1})
    if folder.name.endswith(NEW) and not erasure.is_dry_run:
        folder = finish_replacing(folder)
    unfinished = list(folder.rglob("*.part"))  # of killed processes; nobody reads them
    for part in () if erasure.is_dry_run else unfinished:
        part.unlink(missing_ok=True)
    changed = {
        path: new for path in sorted(folder.rglob("*")) if (new := erased_file(path, redaction, erasure)) is not None
    }
    pages = list(folder.glob("*.html")) if changed else []
    if changed and not erasure.is_dry_run:
        replace_folder(folder, changed, without=pages)
    return +Counter({"files of nights": len(changed) + len(pages), "unfinished files": len(unfinished)})


def finish_replacing(new: Path) -> Path:
    """Finish what a killed erasure began; return the folder of the night: the new one, unless the old one exists."""
    folder = new.with_name(new.name.removesuffix(NEW))
    if folder.exists():
        shutil.rmtree(new)
        return folder
    return new.rename(folder)


def erased_file(path: Path, redaction: Redaction, erasure: Erasure) -> pl.DataFrame | str | None:
    """Return the content of a file without the agent; None if it has nothing of it."""
    if path.suffix == ".parquet":
        table = pl.read_parquet(path, memory_map=False)
        if erasure.ids is not None:
            return without_part(table, redaction, erasure)
        kept = table.filter(pl.col("agent_id") != erasure.agent_id) if "agent_id" in table.columns else table
        return kept if len(kept) < len(table) else None
    if path.suffix in {".json", ".md"}:
        text = path.read_text("utf-8")
        is_json = path.suffix == ".json"
        new = erased_json(text, redaction, ensure_ascii=False, allow_nan=False) if is_json else redaction.text(text)
        return new if new != text else None
    return None


def without_part(table: pl.DataFrame, redaction: Redaction, erasure: Erasure) -> pl.DataFrame | None:
    """Return a table without the rows about some ids of an agent, and without quotations of them; None if unchanged.

    A row is about an id that it names in a text column or a list of `ABOUT`; from other lists only the id is removed.
    """
    ids = pl.Series(sorted(erasure.ids or ()), dtype=pl.String)
    own = pl.col("agent_id") == erasure.agent_id if "agent_id" in table.columns else pl.lit(value=True)
    texts = [name for name, dtype in table.schema.items() if dtype == pl.String]
    lists = [name for name, dtype in table.schema.items() if dtype == pl.List(pl.String)]
    in_lists = [pl.col(name).list.set_intersection(ids.implode()).list.len() > 0 for name in lists if name in ABOUT]
    is_about = pl.any_horizontal(*(pl.col(name).is_in(ids.implode()) for name in texts), *in_lists, pl.lit(value=False))
    kept = table.filter(~(own & is_about).fill_null(value=False))
    kept = kept.with_columns(
        pl.col(name).list.eval(pl.element().filter(~pl.element().is_in(ids.implode()))) for name in lists
    )
    for name in set(texts) & set(QUOTING):
        distinct = kept[name].drop_nulls().unique()
        changed = {text: new for text in distinct if (new := redaction.text(text)) != text}
        kept = kept.with_columns(pl.col(name).replace(changed)) if changed else kept
    return None if kept.equals(table) else kept


def erased_json(text: str, redaction: Redaction, **form: Any) -> str:
    """Return a JSON document without the agent, written by `json.dumps` in the form that the program it is of uses.

    The same text, byte for byte, if it has nothing of the agent.
    """
    document = json.loads(text)
    erased = redaction.value(document)
    return text if erased == document else json.dumps(erased, **form)


def replace_folder(folder: Path, changed: dict[Path, pl.DataFrame | str], *, without: list[Path]) -> None:
    """Write a whole new folder beside the old one, then give it the old name: readers see one or the other.

    If killed between the two renames it leaves the new folder under a name that `finish_replacing` completes.
    """
    new = folder.with_name(f"{folder.name}{NEW}")
    shutil.rmtree(new, ignore_errors=True)
    with temporary_folder(new) as part:
        shutil.copytree(folder, part, dirs_exist_ok=True)
        for page in without:
            (part / page.relative_to(folder)).unlink()
        for path, content in changed.items():
            target = part / path.relative_to(folder)
            if isinstance(content, str):
                target.write_text(content, "utf-8")
            else:
                write_parquet_atomically(content, target)
        update_descriptions(part, [part / path.relative_to(folder) for path in changed])
        for working in (part / "run", part / "dry_run"):
            update_plan_hash(folder / working.name, working)
    old = folder.with_name(f"{folder.name}.before-erasing")
    folder.rename(old)
    new.rename(folder)
    shutil.rmtree(old)


def update_descriptions(folder: Path, changed: list[Path]) -> None:
    """Update counts and checksums of changed tables in the description of a snapshot or part."""
    for path in (folder / "snapshot.json", folder / DESCRIPTION):
        if not path.exists():
            continue
        description: dict[str, Any] = json.loads(path.read_text("utf-8"))
        for table in changed:
            if table.stem in description["checksums"] and table.parent == folder:
                description["checksums"][table.stem] = checksum(table)
                if "counts" in description:
                    description["counts"][table.stem] = len(pl.read_parquet(table))
        path.write_text(json.dumps(description), "utf-8")


def update_plan_hash(old: Path, new: Path) -> None:
    """Update the hash of the plan in the results of its checks, which are valid for the rest of it."""
    if not (old / "plan.json").exists() or not (new / "checks.json").exists():
        return
    hashes = [PLAN.validate_json((folder / "plan.json").read_bytes()).hash for folder in (old, new)]
    checks: dict[str, Any] = json.loads((new / "checks.json").read_text("utf-8"))
    if checks["hash"] == hashes[0]:
        (new / "checks.json").write_text(json.dumps({**checks, "hash": hashes[1]}, ensure_ascii=False), "utf-8")


# --- logs ---


def log_files() -> list[Path]:
    """Return the logs of runs and of programs in the background."""
    home = home_folder()
    dagster = Path(os.environ.get("DAGSTER_HOME") or home / "dagster")
    outputs = [path for path in (dagster / "storage").rglob("*") if path.suffix in {".out", ".err"}]
    return sorted([*outputs, *(home / "background").glob("*.log")])


def erase_log(path: Path, redaction: Redaction, *, is_dry_run: bool) -> Counter[str]:
    """Erase an agent from a log, in place, since a program may still write to it."""
    text = path.read_text("utf-8", errors="replace")
    erased = redaction.text(text)
    if erased == text:
        return Counter()
    if not is_dry_run:
        path.write_text(erased, "utf-8")
    return Counter({"logs": 1})


# --- Dagster's records ---


def erase_records(redaction: Redaction, erasure: Erasure) -> Counter[str]:
    """Erase an agent from the texts in Dagster's records; no run is deleted."""
    set_url = os.environ.get("NOUS_DAGSTER_DB_URL")
    url = set_url or (dagster_url(erasure.url) if owner_of_dagster(erasure.url) else None)
    if url is None:
        return Counter()
    counts = Counter[str]()
    with closing(connect(url.replace("postgresql+psycopg2://", "postgresql://"))) as connection:
        for table, column in DAGSTER_TEXTS:
            if connection.execute(BLOCKS["has_table"], {"table": table}).fetchone() == (True,):
                changed = erase_column(connection, table, column, redaction, is_dry_run=erasure.is_dry_run)
                counts[f"records of runs ({table})"] += changed
                if changed and not erasure.is_dry_run:
                    connection.execute(SQL(BLOCKS["vacuum"]).format(table=Identifier(table)))
    return +counts


def erase_column(
    connection: psycopg.Connection, table: str, column: str, redaction: Redaction, *, is_dry_run: bool
) -> int:
    """Erase an agent from the texts of one column and return how many of them changed."""
    names = {"table": Identifier(table), "column": Identifier(column)}
    read, write = (SQL(BLOCKS[block]).format(**names) for block in ("read_texts", "write_text"))
    after, changed = 0, 0
    while True:
        with connection.cursor(row_factory=dict_row) as cursor:
            rows = cursor.execute(read, {"after": after, "limit": PAGE}).fetchall()
        for row in rows:
            text, is_tag = row["text"], table == "run_tags"
            erased = redaction.value(text, key="nous/agents") if is_tag else erased_json(text, redaction)
            if erased != text:
                changed += 1
                if not is_dry_run:
                    connection.execute(write, {"id": row["id"], "text": erased})
        if len(rows) < PAGE:
            return changed
        after = rows[-1]["id"]
