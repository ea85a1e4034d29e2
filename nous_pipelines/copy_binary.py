"""Rows of Postgres as COPY sends them in binary, to columns without a Python object per value.

The format: https://www.postgresql.org/docs/current/sql-copy.html, "Binary Format". A row of a vector of one width
always takes the same number of bytes, so a run of such rows is one numpy structured array.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, LiteralString, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray
from psycopg import Connection
from psycopg.abc import Buffer
from psycopg.sql import SQL

from nous_online.errors import InvalidInput

Run: TypeAlias = NDArray[np.void]
"""Consecutive rows of one layout: the same columns null, the vectors of the same width."""

HEADER_SIZE = 19  # signature, flags, length of an extension that no server sends
NULL = -1
PARSED_AT_ONCE = 8 << 20  # bytes of rows taken together: bounds what is held twice
END_MARK = -1
FIXED_TYPES = {"uuid": np.dtype("V16"), "bigint": np.dtype(">i8")}
POLARS_TYPES = {"uuid": pl.String, "bigint": pl.Int64, "vector": pl.List(pl.Float32)}


def read_fixed(
    connection: Connection, query: LiteralString, parameters: Mapping[str, Any], *, types: Mapping[str, str]
) -> pl.DataFrame:
    """Return the rows of a query whose columns are of the named `types`: uuid, bigint or vector.

    An uuid becomes its text, a vector a list of Float32 with its bits unchanged, null stays null. Vectors of several
    widths may follow each other; it is quick when rows of one width come together. Raises `InvalidInput` when the
    columns of the query are not those named.
    """
    command = SQL("copy ({}) to stdout (format binary)").format(SQL(query))
    with connection.cursor() as cursor, cursor.copy(command, parameters) as copy:
        parts = list(_tables(copy, types))
    return pl.concat([pl.DataFrame(schema={name: POLARS_TYPES[kind] for name, kind in types.items()}), *parts])


def vector_matrix(vectors: pl.Series) -> NDArray[np.float32]:
    """Return a list column of equally wide vectors as an (n, width) matrix; raise `InvalidInput` if they are not."""
    widths = vectors.list.len().unique()
    if vectors.null_count() or len(widths) > 1:
        message = f"expected vectors of one width, got widths {widths.to_list()} and {vectors.null_count()} missing"
        raise InvalidInput(message)
    flat = vectors.list.explode(empty_as_null=False).to_numpy()
    return flat.reshape(len(vectors), widths[0] if len(widths) else 0).astype(np.float32, copy=False)


def write_parquet_atomically(table: pl.DataFrame, path: Path) -> None:
    """Write a table so that `path` is either absent or whole, even across a power cut.

    Nothing is compressed: vectors do not shrink, and the rest is small beside them.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            table.write_parquet(file, compression="uncompressed", statistics=False)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Make a rename last; Windows has no such call and does not need it."""
    if os.name == "nt":
        return
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _tables(chunks: Iterable[Buffer], types: Mapping[str, str]) -> Iterator[pl.DataFrame]:
    """Turn the stream into tables of a few MB."""
    waiting = bytearray()
    offset = HEADER_SIZE
    for chunk in chunks:
        waiting += chunk
        if len(waiting) >= PARSED_AT_ONCE:
            for run in _runs(waiting, types, offset=offset):
                yield _columns(run, types)
                offset += run.nbytes
            waiting, offset = waiting[offset:], 0
    for run in _runs(waiting, types, offset=offset):
        yield _columns(run, types)


def _runs(rows: bytearray, types: Mapping[str, str], *, offset: int) -> Iterator[Run]:
    """Cut whole rows into runs of one layout; an unfinished row at the end stays."""
    while sizes := _field_sizes(rows, offset, types):
        layout = _layout(sizes, types)
        run = np.frombuffer(rows, dtype=layout, offset=offset, count=(len(rows) - offset) // layout.itemsize)
        alike = np.logical_and.reduce([run[_size(name)] == size for name, size in zip(types, sizes, strict=True)])
        run = run if alike.all() else run[: np.argmin(alike)]
        yield run
        offset += run.nbytes


def _field_sizes(rows: bytearray, offset: int, types: Mapping[str, str]) -> list[int]:
    """Return the length of each field of the row at `offset`; nothing when the row is unfinished or the end mark."""
    count = int.from_bytes(rows[offset : offset + 2], signed=True)
    if len(rows) < offset + 2 or count == END_MARK:
        return []
    if count != len(types):
        message = f"the query has {count} columns, expected {len(types)}: {', '.join(types)}"
        raise InvalidInput(message)
    sizes: list[int] = []
    place = offset + 2
    for _ in types:
        if len(rows) < place + 4:
            return []
        sizes.append(int.from_bytes(rows[place : place + 4], signed=True))
        place += 4 + max(sizes[-1], 0)
    return sizes if len(rows) >= place else []


def _layout(sizes: Iterable[int], types: Mapping[str, str]) -> np.dtype[np.void]:
    fields: list[Any] = [("count", ">i2")]
    for (name, kind), size in zip(types.items(), sizes, strict=True):
        fields.append((_size(name), ">i4"))
        if size != NULL:
            fields.append((name, *_value_type(name, kind, size)))
    return np.dtype(fields)


def _size(name: str) -> str:
    return f"size of {name}"


def _value_type(name: str, kind: str, size: int) -> tuple[Any, ...]:
    """Return the numpy type of a value of `size` bytes; a vector starts with four bytes that hold its width."""
    if kind == "vector":
        return (">f4", (size // 4,))
    if size != FIXED_TYPES[kind].itemsize:
        message = f"{name} is sent in {size} bytes, expected a {kind}; cast it in the query"
        raise InvalidInput(message)
    return (FIXED_TYPES[kind],)


def _columns(run: Run, types: Mapping[str, str]) -> pl.DataFrame:
    return pl.DataFrame([_column(run, name, kind) for name, kind in types.items()])


def _column(run: Run, name: str, kind: str) -> pl.Series:
    names = run.dtype.names or ()
    if name not in names:
        return pl.Series(name, [None] * len(run), dtype=POLARS_TYPES[kind])
    if kind == "uuid":
        return pl.Series(name, _uuid_texts(run[name]), dtype=pl.String)
    if kind == "vector":
        return pl.Series(name, run[name][:, 1:].astype(np.float32)).cast(pl.List(pl.Float32))
    return pl.Series(name, run[name].astype(np.int64))


def _uuid_texts(values: NDArray[np.void]) -> list[str]:
    digits = np.frombuffer(values.tobytes().hex().encode(), dtype=np.uint8).reshape(-1, 32)
    dashed = np.insert(digits, (8, 12, 16, 20), ord("-"), axis=1).tobytes().decode()
    return [dashed[start : start + 36] for start in range(0, len(dashed), 36)]
