"""Erasing an agent, or a part of it, from what nights left: snapshots, plans and logs, Dagster's records."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections import Counter, defaultdict
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
from nous_online.database.connection import connect
from nous_online.database.statements import statements
from nous_online.memories.erasure import Erasure
from nous_pipelines.batches.batch_rows import erase_batches
from nous_pipelines.orchestration.instance import dagster_url, home_folder, owner_of_dagster
from nous_pipelines.phases.proposals import PLAN
from nous_pipelines.reports.text_reports import plain
from nous_pipelines.snapshots.copy_binary import write_parquet_atomically
from nous_pipelines.snapshots.parts import DESCRIPTION, checksum
from nous_pipelines.snapshots.parts import PREFIX as PART
from nous_pipelines.snapshots.snapshot import temporary_folder

ERASED = "[erased]"
AGENT_KEYS = frozenset({"agent_id", "agent_ids", "agents", "nous/agents"})
"""Under these keys stands a name, a list of names, or names separated by commas."""
MAPS_BY_AGENT = frozenset({"eligible", "proposed", "left", "agents", "late", "unseen"})
"""Under these keys stands an object with an entry for each agent: counts of a phase, policies of a plan."""
LONG = 12
"""From this many characters on a quotation is found anywhere; a shorter one must stand between word boundaries."""
SHORTEST = 3
NEVER = r"(?!)"
"""A pattern that fits nothing."""


class Redaction:
    """What of one agent is not to be read any more: its name where names stand, and what is quoted of it.

    With `ids` it is a part of the agent: the name stays, and what is about one of the ids goes.
    """

    def __init__(self, agent_id: str, quotations: Collection[str], *, ids: Collection[str] | None = None) -> None:
        name = f"(?:{'|'.join(re.escape(form) for form in forms(agent_id))})" if ids is None else NEVER
        self._agent_id = agent_id
        self._part = None if ids is None else frozenset(ids)
        quotations = {*quotations, *(ids or ())}
        self._in_list = re.compile(rf"(?<![^,\s]){name}(?![^,\s])")
        self._in_prose = re.compile(rf"((?:^|\n)(?:[-#]+ )?|['\"“`/>]|[|:;,] |agent ){name}(?=$|['\"”`:;,<]|\s)")
        self._ids = {quoted for quoted in quotations if is_id(quoted)}
        self._by_start: dict[str, list[str]] = defaultdict(list)
        every = {form for said in quotations for form in forms(said)}
        for quoted in sorted(every, key=len, reverse=True):
            if len(quoted) >= SHORTEST:
                self._by_start[quoted[: LONG if len(quoted) >= LONG else SHORTEST]].append(quoted)

    def is_about_agent(self, value: Any) -> bool:
        """Tell whether a JSON object is the agent's alone, or about the part of it that goes."""
        if not isinstance(value, Mapping):
            return False
        if self._part is None:
            return value.get("agent_id") == self._agent_id
        named = [each if isinstance(each, list) else [each] for each in value.values()]
        return any(isinstance(each, str) and each in self._part for names in named for each in names)

    def value(self, value: Any, *, key: str = "") -> Any:
        """Return a JSON value without the objects of the agent in its lists, and with its name and words erased."""
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
        """Return prose with name and quotations erased; a text of one word is a term of the log, unless it is an id."""
        if not any(character.isspace() for character in text):
            return ERASED if text in self._ids else text
        kept: list[str] = []
        place = 0
        while place < len(text):
            quoted = self._quoted_at(text, place)
            kept.append(ERASED if quoted else text[place])
            place += len(quoted) or 1
        return self._in_prose.sub(rf"\1{ERASED}", "".join(kept))

    def _quoted_at(self, text: str, place: int) -> str:
        """Return the longest quotation that begins at a place, or nothing."""
        for size in (LONG, SHORTEST):
            for quoted in self._by_start.get(text[place : place + size], ()):
                if text.startswith(quoted, place) and (len(quoted) >= LONG or stands_alone(text, place, len(quoted))):
                    return quoted
        return ""


def forms(text: str) -> list[str]:
    """Return a text as it stands and as Markdown quotes it, alone or within a line; the longest first."""
    return sorted({text, plain(text), plain(f"x {text}")[2:]}, key=len, reverse=True)


def is_id(text: str) -> bool:
    """Tell whether a text is the id of a memory or a proposal."""
    try:
        return len(text) == len(str(UUID(text)))
    except ValueError:
        return False


def stands_alone(text: str, place: int, size: int) -> bool:
    """Tell whether no word goes on before or after a part of a text."""
    before, after = text[place - 1 : place], text[place + size : place + size + 1]
    return not before.isalnum() and not after.isalnum()


# --- erasing an agent from its nights ---

BLOCKS = statements("nous_pipelines.orchestration", "night_erasure.sql")
PAGE = 500
NEW = ".erased"
WORDS = ("content", "reason", "query", "subject", "id")
QUOTING = ("reason", "query", "note", "outcome", "evidence")
"""Columns in which a row may quote what another says; the others hold a memory's own words."""
SHOWN = ("result_ids", "targets")
"""Lists of ids that make a row about each of them."""
DAGSTER_TEXTS = (
    ("event_logs", "event"),
    ("asset_keys", "last_materialization"),
    ("asset_check_executions", "evaluation_event"),
    ("runs", "run_body"),
    ("run_tags", "value"),
    ("bulk_actions", "body"),
    ("job_ticks", "tick_body"),
)
"""Where Dagster keeps what a run said. Deleting a run would leave all but the first of these, so they are rewritten."""


def erase_nights(erasure: Erasure) -> Counter[str]:
    """Erase an agent from files of nights, logs and Dagster's records; return how many of each quoted it.

    Raises `Unavailable` when a file can't be read or written.
    """
    found = Counter[str]()
    try:
        folders = list(night_folders(erasure.url))
        searched = folders if erasure.ids is None else []
        quoted = {text for folder in searched for text in quoted_in(folder, erasure.agent_id)}
        redaction = Redaction(erasure.agent_id, erasure.quotations | quoted, ids=erasure.ids)
        for folder in folders:
            found += erase_folder(folder, redaction, erasure)
        for log in log_files():
            found += erase_log(log, redaction, is_dry_run=erasure.is_dry_run)
    except (OSError, ValueError, pl.exceptions.PolarsError) as error:
        message = f"a file of the nights can't be rewritten ({error}); mend or delete it, then erase again"
        raise Unavailable(message) from error
    return found + erase_records(redaction, erasure) + erase_batches(erasure, home_folder())


# --- files of nights ---


def night_folders(url: str) -> Iterator[Path]:
    """Yield the parts of all snapshots of a database, then its nights; those moved aside or never finished included."""
    with closing(connect(url, role="nous_night")) as connection:
        row = connection.execute(BLOCKS["identity"]).fetchone()
    root = home_folder() / "snapshots" / (row[0] if row else "unknown")
    for name in (PART, "night="):
        yield from sorted(path for path in root.glob(f"*{name}*") if path.is_dir())


def quoted_in(folder: Path, agent_id: str) -> set[str]:
    """Return the agent's words in the tables of a night, but for reasons that are given for others too."""
    if folder.name.startswith("."):
        return set()
    words = set[str]()
    for path in sorted(folder.rglob("*.parquet")):
        table = pl.read_parquet(path, memory_map=False)
        if "agent_id" in table.columns:
            own = pl.col("agent_id") == agent_id
            texts = table.select("agent_id", *({*WORDS} & {*table.columns})).cast(pl.String)
            for column in texts.drop("agent_id"):
                words |= {*column.filter(table.select(own).to_series())} - {
                    *column.filter(table.select(~own).to_series())
                }
    return {text for text in words if text}


def erase_folder(folder: Path, redaction: Redaction, erasure: Erasure) -> Counter[str]:
    """Write a night's folder anew without the agent and put it in place of the old one, if it has anything of it.

    Its pages go with it: they are drawn again from what is left. So does every file that was begun and not finished.
    """
    if folder.name.startswith("."):  # what a night that was killed had begun; nobody reads it
        if not erasure.is_dry_run:
            shutil.rmtree(folder)
        return Counter({"unfinished snapshots": 1})
    if folder.name.endswith(NEW) and not erasure.is_dry_run:
        folder = named_at_last(folder)
    unfinished_files = remove_unfinished(folder, is_dry_run=erasure.is_dry_run)
    changed = {
        path: new for path in sorted(folder.rglob("*")) if (new := erased_file(path, redaction, erasure)) is not None
    }
    pages = list(folder.glob("*.html")) if changed else []
    if changed and not erasure.is_dry_run:
        replace_folder(folder, changed, without=pages)
    return +Counter({"files of nights": len(changed) + len(pages), "unfinished files": len(unfinished_files)})


def remove_unfinished(folder: Path, *, is_dry_run: bool) -> list[Path]:
    """Remove what processes that were killed had begun to write into a folder; nobody reads it."""
    parts = list(folder.rglob("*.part"))
    for part in parts:
        if not is_dry_run:
            part.unlink(missing_ok=True)
    return parts


def named_at_last(new: Path) -> Path:
    """Put a folder made by an erasing that was killed in its place, unless the old one is still there."""
    folder = new.with_name(new.name.removesuffix(NEW))
    if folder.exists():
        shutil.rmtree(new)
        return folder
    return new.rename(folder)


def erased_file(path: Path, redaction: Redaction, erasure: Erasure) -> pl.DataFrame | str | None:
    """Return what a file holds without the agent; None when it holds nothing of it."""
    if path.suffix == ".parquet":
        table = pl.read_parquet(path, memory_map=False)
        if erasure.ids is not None:
            return without_part(table, redaction, erasure)
        kept = table.filter(pl.col("agent_id") != erasure.agent_id) if "agent_id" in table.columns else table
        return kept if len(kept) < len(table) else None
    if path.suffix in {".json", ".md"}:
        text = path.read_text("utf-8")
        new = erased_json(text, redaction) if path.suffix == ".json" else redaction.text(text)
        return new if new != text else None
    return None


def without_part(table: pl.DataFrame, redaction: Redaction, erasure: Erasure) -> pl.DataFrame | None:
    """Return a table without the rows about a part of an agent, and without what the others quote of it; None if equal.

    A row that names one of its ids is about it; in a list of ids that row's own column says, the id alone goes.
    """
    ids = pl.Series(sorted(erasure.ids or ()), dtype=pl.String)
    own = pl.col("agent_id") == erasure.agent_id if "agent_id" in table.columns else pl.lit(value=True)
    texts = [name for name, dtype in table.schema.items() if dtype == pl.String]
    lists = [name for name, dtype in table.schema.items() if dtype == pl.List(pl.String)]
    probes = [pl.col(name).list.set_intersection(ids.implode()).list.len() > 0 for name in lists if name in SHOWN]
    is_about = pl.any_horizontal(*(pl.col(name).is_in(ids.implode()) for name in texts), *probes, pl.lit(value=False))
    kept = table.filter(~(own & is_about).fill_null(value=False))
    kept = kept.with_columns(
        pl.col(name).list.eval(pl.element().filter(~pl.element().is_in(ids.implode()))) for name in lists
    )
    for name in set(texts) & set(QUOTING):
        said = kept[name].drop_nulls().unique()
        changed = {text: new for text in said if (new := redaction.text(text)) != text}
        kept = kept.with_columns(pl.col(name).replace(changed)) if changed else kept
    return None if kept.equals(table) else kept


def erased_json(text: str, redaction: Redaction) -> str:
    """Return a JSON document without the agent; the very same text when it holds nothing of it."""
    document = json.loads(text)
    erased = redaction.value(document)
    return text if erased == document else json.dumps(erased, ensure_ascii=False, allow_nan=False)


def replace_folder(folder: Path, changed: dict[Path, pl.DataFrame | str], *, without: list[Path]) -> None:
    """Make a whole new folder beside the old one, then give it its name: whoever reads sees one or the other.

    Killed between the two, it leaves the old one under a name that the next erasing finds.
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
        describe_again(part, [part / path.relative_to(folder) for path in changed])
        for working in (part / "run", part / "dry_run"):
            name_plan_again(folder / working.name, working)
    old = folder.with_name(f"{folder.name}.before-erasing")
    folder.rename(old)
    new.rename(folder)
    shutil.rmtree(old)


def describe_again(folder: Path, changed: list[Path]) -> None:
    """Bring counts and checksums of the description of a snapshot or part in line with its tables."""
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


def name_plan_again(old: Path, new: Path) -> None:
    """Let the checks name the plan by the hash it has now: they passed for what is left of it."""
    if not (old / "plan.json").exists() or not (new / "checks.json").exists():
        return
    hashes = [PLAN.validate_json((folder / "plan.json").read_bytes()).hash for folder in (old, new)]
    checks: dict[str, Any] = json.loads((new / "checks.json").read_text("utf-8"))
    if checks["hash"] == hashes[0]:
        (new / "checks.json").write_text(json.dumps({**checks, "hash": hashes[1]}, ensure_ascii=False), "utf-8")


# --- logs ---


def log_files() -> list[Path]:
    """Return what runs and programs in the background printed."""
    home = home_folder()
    dagster = Path(os.environ.get("DAGSTER_HOME") or home / "dagster")
    printed = [path for path in (dagster / "storage").rglob("*") if path.suffix in {".out", ".err"}]
    return sorted([*printed, *(home / "background").glob("*.log")])


def erase_log(path: Path, redaction: Redaction, *, is_dry_run: bool) -> Counter[str]:
    """Erase an agent from a log in place: a program may still be writing to it."""
    text = path.read_text("utf-8", errors="replace")
    erased = redaction.text(text)
    if erased == text:
        return Counter()
    if not is_dry_run:
        path.write_text(erased, "utf-8")
    return Counter({"logs": 1})


# --- Dagster's records ---


def erase_records(redaction: Redaction, erasure: Erasure) -> Counter[str]:
    """Rewrite what Dagster's records quote of an agent; its runs stay, and the other agents' words in them."""
    url = dagster_database(erasure.url)
    if url is None:
        return Counter()
    found = Counter[str]()
    with closing(connect(url)) as connection:
        for table, column in DAGSTER_TEXTS:
            if connection.execute(BLOCKS["has_table"], {"table": table}).fetchone() == (True,):
                changed = erase_column(connection, table, column, redaction, is_dry_run=erasure.is_dry_run)
                found[f"records of runs ({table})"] += changed
                if changed and not erasure.is_dry_run:
                    connection.execute(SQL(BLOCKS["sweep"]).format(table=Identifier(table)))
    return +found


def dagster_database(url: str) -> str | None:
    """Return the URL of Dagster's database if there is one; none is made."""
    known = os.environ.get("NOUS_DAGSTER_DB_URL") or (dagster_url(url) if owner_of_dagster(url) else None)
    return known and known.replace("postgresql+psycopg2://", "postgresql://")


def erase_column(
    connection: psycopg.Connection, table: str, column: str, redaction: Redaction, *, is_dry_run: bool
) -> int:
    """Erase an agent from the texts of one column and return how many of them quoted it."""
    names = {"table": Identifier(table), "column": Identifier(column)}
    read, write = (SQL(BLOCKS[block]).format(**names) for block in ("read_texts", "write_text"))
    after, changed = 0, 0
    while True:
        with connection.cursor(row_factory=dict_row) as cursor:
            rows = cursor.execute(read, {"after": after, "limit": PAGE}).fetchall()
        for row in rows:
            erased = erased_record(row["text"], redaction, is_tag=table == "run_tags")
            if erased != row["text"]:
                changed += 1
                if not is_dry_run:
                    connection.execute(write, {"id": row["id"], "text": erased})
        if len(rows) < PAGE:
            return changed
        after = rows[-1]["id"]


def erased_record(text: str, redaction: Redaction, *, is_tag: bool) -> str:
    """Return a record without the agent: JSON as Dagster writes it, or the value of a tag, perhaps a list of names."""
    if is_tag:
        return str(redaction.value(text, key="nous/agents"))
    document = json.loads(text)
    erased = redaction.value(document)
    return text if erased == document else json.dumps(erased)
