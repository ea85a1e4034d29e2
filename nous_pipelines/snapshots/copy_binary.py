"""Decodes the binary COPY of Postgres into columns, without a Python object per number.

The format: https://www.postgresql.org/docs/current/sql-copy.html, "Binary Format". The rows of a few megabytes are
decoded together, one column at a time: where each field starts, how long it is, then the bytes of all of them at once.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from functools import lru_cache
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, LiteralString, TypeAlias, TypeVar, cast
from zlib import crc32

import numpy as np
import polars as pl
from numpy.typing import DTypeLike, NDArray
from polars.io.plugins import register_io_source
from psycopg import Connection
from psycopg.abc import Buffer
from psycopg.sql import SQL, Composed

from nous_online.core.errors import InvalidInput, Unavailable
from nous_online.database.statements import statements

Bytes: TypeAlias = NDArray[np.uint8]
Places: TypeAlias = NDArray[np.int64]
Query: TypeAlias = LiteralString | Composed
Thing = TypeVar("Thing")

BLOCKS = statements("nous_pipelines.snapshots", "copy_binary.sql")
SIGNATURE = b"PGCOPY\n\xff\r\n\0"
HEADER_SIZE = 19  # bytes: signature, flags, and the length of an extension area that no server sends
END_MARK_SIZE = 2  # bytes: the field count -1
ROW_GROUP_SIZE = 4096  # rows encoded together: what one batch of wide vectors holds
PARSED_AT_ONCE = 8 << 20  # bytes of rows parsed together: bounds what is held twice, as bytes and as columns
FLUSHED_AT_ONCE = 32 << 20  # bytes flushed to the disk together: at most so many are left to wait for at the end
POSTGRES_EPOCH_DAYS = 10_957  # 2000-01-01 counted from 1970-01-01
POSTGRES_EPOCH_US = POSTGRES_EPOCH_DAYS * 86_400_000_000


@dataclass(frozen=True)
class Fields:
    """One column of a batch of rows: its name and kind, and where each of its values starts and how long it is."""

    name: str
    kind: str
    rows: bytes
    starts: Places
    sizes: Places

    def cut(self, size: int, *, skip: int = 0) -> Bytes:
        """Return `size` bytes of each value as the rows of a matrix."""
        return at_every_byte(self.rows, f"V{size}")[self.starts + skip].view(np.uint8).reshape(-1, size)

    def numbers(self) -> NDArray[Any]:
        """Return values of one fixed size in the byte order of this machine."""
        wire = np.dtype(WIRE_TYPES[self.kind])
        return at_every_byte(self.rows, wire)[self.starts].astype(wire.newbyteorder("="))


def at_every_byte(rows: bytes, dtype: DTypeLike) -> NDArray[Any]:
    """Return a view of `rows` with a value of `dtype` starting at every byte; nothing is copied until it is indexed.

    Fields are not aligned in the stream, so the stride is one byte.
    """
    wire = np.dtype(dtype)
    return np.ndarray((len(rows) - wire.itemsize + 1,), wire, rows, strides=(1,))


def to_native_order(numbers: NDArray[Any]) -> NDArray[Any]:
    """Return numbers in the byte order of this machine, swapped in place."""
    if not numbers.dtype.isnative:
        numbers.byteswap(inplace=True)
    return numbers.view(numbers.dtype.newbyteorder("="))


def read_rows(connection: Connection, query: Query, parameters: Mapping[str, Any]) -> pl.DataFrame:
    """Return the rows of a query as a table, as `read_parts` reads them."""
    return pl.concat(read_parts(connection, query, parameters))


def read_parts(
    connection: Connection, query: Query, parameters: Mapping[str, Any]
) -> Generator[pl.DataFrame, None, None]:
    """Yield a table without rows, then the rows of a query as they come, every value with the bits it has there.

    Integers, reals, booleans, days and moments (UTC) become what they are; uuid, text, json and jsonb text; a vector a
    list of Float32, whatever its width; null stays null. Raises `InvalidInput` for a column of another type: cast it
    in the query.
    """
    kinds = _column_types(connection, query, parameters)
    yield no_rows(tuple(kinds.items())).clone()
    command = SQL(BLOCKS["copy_rows"]).format(as_composable(query))
    with (
        connection.cursor() as cursor,
        cursor.copy(command, parameters) as copy,
        closing(prefetched(_batches(copy))) as batches,
    ):
        for rows, bounds in batches:
            if len(bounds) > 1:  # otherwise it holds nothing but the end mark
                yield _parse_batch(rows, bounds, kinds)


@lru_cache(maxsize=256)
def no_rows(kinds: tuple[tuple[str, str], ...]) -> pl.DataFrame:
    """Return a table of these columns without rows, kept: Polars takes longer to make it than the server for a few."""
    return pl.DataFrame(schema={name: DECODERS[kind][0] for name, kind in kinds})


def prefetched(things: Iterator[Thing]) -> Generator[Thing, None, None]:
    """Yield things while another thread takes the next one; its exceptions are raised here."""
    with ThreadPoolExecutor(1) as other:
        taken = other.submit(next, things, None)
        while (thing := taken.result()) is not None:
            taken = other.submit(next, things, None)
            yield thing


def as_composable(query: Query) -> SQL | Composed:
    """Return a query that can be composed into another."""
    return SQL(query) if isinstance(query, str) else query


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


class FlushedFile:
    """A new file that computes its CRC-32 as it is written and is flushed to disk in the background.

    A single fsync at the end would wait for the whole file. Closing waits for all flushes.
    """

    def __init__(self, path: Path) -> None:
        self.checksum = 0
        self._file = path.open("wb")
        self._disk = ThreadPoolExecutor(1)
        self._flushes: list[Future[None]] = []
        self._unflushed = 0

    def write(self, chunk: bytes) -> int:
        """Append bytes."""
        self.checksum = crc32(chunk, self.checksum)
        written = self._file.write(chunk)
        self._unflushed += written
        if self._unflushed >= FLUSHED_AT_ONCE:
            self._flush_in_background()
        return written

    def close(self) -> None:
        """Wait until everything is on the disk; raise `OSError` when it does not get there."""
        try:
            self._file.flush()
            self._flush_in_background()
            for flush in self._flushes:
                flush.result()
        finally:
            self._disk.shutdown()
            self._file.close()

    def _flush_in_background(self) -> None:
        self._unflushed = 0
        self._flushes.append(self._disk.submit(os.fsync, self._file.fileno()))


def write_parquet_as_read(
    parts: Iterable[pl.DataFrame], schema: pl.Schema, path: Path, *, row_group_size: int = ROW_GROUP_SIZE
) -> int:
    """Write tables into one file while the next ones are still being read, flush it and return its CRC-32.

    The rows of a group are held in memory and encoded together. Exceptions of `parts` are raised as they are. An error
    leaves half a file: write into a temporary folder that is renamed when it is complete.
    """
    raised: list[Exception] = []  # Polars wraps what a source raises in an error of its own; this keeps the original

    def pass_on(*_: object) -> Iterator[pl.DataFrame]:
        try:
            yield from parts
        except Exception as error:
            raised.append(error)
            raise

    try:
        with closing(FlushedFile(path)) as file:
            register_io_source(pass_on, schema=schema).sink_parquet(
                cast("IO[bytes]", file), compression="uncompressed", statistics=False, row_group_size=row_group_size
            )
    except Exception:
        if raised:
            raise raised[0] from None
        raise
    return file.checksum


def _sync_folder(folder: Path) -> None:
    """Flush a folder, without which a rename may be lost in a power cut; Windows has no such call."""
    if os.name == "nt":
        return
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _column_types(connection: Connection, query: Query, parameters: Mapping[str, Any]) -> dict[str, str]:
    """Return the names and types of the columns of a query, without its rows."""
    probe = SQL(BLOCKS["describe"]).format(as_composable(query))
    described = connection.execute(probe, parameters).description or []
    kinds = {column.name: _type_name(connection, column.type_code) for column in described}
    unknown = [f"{name} ({kind})" for name, kind in kinds.items() if kind not in DECODERS]
    if unknown:
        message = f"can't read {', '.join(unknown)} from a binary copy; cast it to one of {', '.join(DECODERS)}"
        raise InvalidInput(message)
    return kinds


def _type_name(connection: Connection, oid: int) -> str:
    """Return the name of a type; the oid of an extension's type differs between databases, so it is looked up."""
    known = connection.adapters.types.get(oid)
    if known is not None:
        return known.name if known.oid == oid else f"{known.name}[]"
    row = connection.execute(BLOCKS["name_type"], [oid]).fetchone()
    return row[0] if row else str(oid)


def _batches(messages: Iterable[Buffer]) -> Iterator[tuple[bytes, Places]]:
    """Yield the stream in batches of some megabytes, with the offset of each row and the end of the last one."""
    held, sizes = BytesIO(), list[int]()
    for message in messages:
        sizes.append(held.write(message))  # copied at once: thousands of waiting buffers would keep the collector busy
        if len(sizes) == ROW_GROUP_SIZE or held.tell() >= PARSED_AT_ONCE:
            yield _batch(held.getvalue(), sizes)
            held, sizes = BytesIO(), []
    if sizes:
        yield _batch(held.getvalue(), sizes)


def _batch(whole: bytes, sizes: list[int]) -> tuple[bytes, Places]:
    """Return a batch with the offsets of its rows, given the size of each message; the server sends one row in each.

    The first message of the stream starts with the header, the last is the end mark.
    """
    bounds = np.cumsum([0, *sizes])
    if whole.startswith(SIGNATURE):
        bounds[0] = HEADER_SIZE
    is_last = bounds[-1] - bounds[-2] == END_MARK_SIZE  # no row is that short
    return whole, bounds[:-1] if is_last else bounds


def _parse_batch(rows: bytes, bounds: Places, kinds: Mapping[str, str]) -> pl.DataFrame:
    """Decode all rows together, column by column; raise `Unavailable` when a message did not hold exactly one row."""
    place = bounds[:-1] + 2  # after the field count
    size_at = at_every_byte(rows, ">i4")
    series: list[pl.Series] = []
    for name, kind in kinds.items():
        sizes = size_at[place].astype(np.int64)
        series.append(_column(Fields(name, kind, rows, place + 4, sizes)))
        place = place + 4 + np.maximum(sizes, 0)
    if not np.array_equal(place, bounds[1:]):
        message = "the server did not send one row a message; is something between it and us that speaks for it?"
        raise Unavailable(message)
    return pl.DataFrame(series)


def _column(fields: Fields) -> pl.Series:
    """Decode the values that are present and put null where there is none."""
    present = fields.sizes >= 0  # null is a size of -1
    dtype, decode = DECODERS[fields.kind]
    if not present.any():
        return pl.Series(fields.name, [None], dtype=dtype).new_from_index(0, len(present))
    if present.all():
        return decode(fields).cast(dtype).alias(fields.name)
    found = decode(replace(fields, starts=fields.starts[present], sizes=fields.sizes[present])).cast(dtype)
    places = pl.Series(np.cumsum(present) - 1, dtype=pl.Int64).zip_with(
        pl.Series(present), pl.Series([None], dtype=pl.Int64).new_from_index(0, len(present))
    )
    return found.gather(places).alias(fields.name)


def _numbers(fields: Fields) -> pl.Series:
    return pl.Series(fields.numbers())


def _flags(fields: Fields) -> pl.Series:
    return pl.Series(fields.cut(1)[:, 0] == 1)


def _moments(fields: Fields) -> pl.Series:
    return pl.Series(fields.numbers() + POSTGRES_EPOCH_US)


def _days(fields: Fields) -> pl.Series:
    return pl.Series(fields.numbers() + np.int32(POSTGRES_EPOCH_DAYS))


def _texts(fields: Fields) -> pl.Series:
    """Slice texts one by one, but a text that all rows share (agent, space, state) only once."""
    size, count = int(fields.sizes[0]), len(fields.sizes)
    if size and (fields.sizes == size).all():
        first = fields.rows[fields.starts[0] : fields.starts[0] + size]
        if fields.cut(size).tobytes() == first * count:
            return pl.Series([first]).new_from_index(0, count)
    cuts = map(slice, fields.starts.tolist(), (fields.starts + fields.sizes).tolist())
    return pl.Series([*map(fields.rows.__getitem__, cuts)], dtype=pl.Binary)


def _jsonb(fields: Fields) -> pl.Series:
    """Decode jsonb: a version byte, then the text."""
    return _texts(replace(fields, starts=fields.starts + 1, sizes=fields.sizes - 1))


def _uuids(fields: Fields) -> pl.Series:
    digits = np.frombuffer(fields.cut(16).tobytes().hex().encode(), dtype=np.uint8).reshape(-1, 32)
    dashed = np.full((len(digits), 36), ord("-"), dtype=np.uint8)
    for group, (start, stop) in enumerate(pairwise((0, 8, 12, 16, 20, 32))):
        dashed[:, start + group : stop + group] = digits[:, start:stop]
    return pl.Series(dashed.view("S36")[:, 0].tolist(), dtype=pl.Binary)


def _vectors(fields: Fields) -> pl.Series:
    """Decode vectors: two bytes of width, two unused, then float4 numbers; several widths are decoded row by row."""
    sizes = fields.sizes - 4
    if (sizes == sizes[0]).all():
        return pl.Series(to_native_order(fields.cut(int(sizes[0]), skip=4).view(">f4")))
    places = zip((fields.starts + 4).tolist(), sizes.tolist(), strict=True)
    return pl.Series([np.frombuffer(fields.rows, ">f4", size // 4, start).astype(np.float32) for start, size in places])


Decoder: TypeAlias = Callable[[Fields], pl.Series]

WIRE_TYPES = {
    "int2": ">i2",
    "int4": ">i4",
    "int8": ">i8",
    "float4": ">f4",
    "float8": ">f8",
    "timestamptz": ">i8",
    "date": ">i4",
}
DECODERS: dict[str, tuple[pl.DataType, Decoder]] = {
    "uuid": (pl.String(), _uuids),
    "text": (pl.String(), _texts),
    "json": (pl.String(), _texts),
    "jsonb": (pl.String(), _jsonb),
    "int2": (pl.Int16(), _numbers),
    "int4": (pl.Int32(), _numbers),
    "int8": (pl.Int64(), _numbers),
    "float4": (pl.Float32(), _numbers),
    "float8": (pl.Float64(), _numbers),
    "bool": (pl.Boolean(), _flags),
    "timestamptz": (pl.Datetime("us", "UTC"), _moments),
    "date": (pl.Date(), _days),
    "vector": (pl.List(pl.Float32), _vectors),
}
