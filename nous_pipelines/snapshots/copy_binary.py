"""Rows of Postgres as COPY sends them in binary, to columns without a Python object per number.

The format: https://www.postgresql.org/docs/current/sql-copy.html, "Binary Format". All rows of a few megabytes are
walked together, one column at a time: where each field starts, how long it is, then its bytes at once.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
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
HEADER_SIZE = 19  # signature, flags, length of an extension that no server sends
END_MARK_SIZE = 2
ROW_GROUP_SIZE = 4096  # rows encoded together: what one batch of wide vectors holds
PARSED_AT_ONCE = 8 << 20  # bytes of rows taken together: bounds what is held twice
FLUSHED_AT_ONCE = 32 << 20  # bytes of a file sent on to the disk together: what is left to wait for at its end
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
        return anywhere(self.rows, f"V{size}")[self.starts + skip].view(np.uint8).reshape(-1, size)

    def numbers(self) -> NDArray[Any]:
        """Return values of one fixed size in the byte order of this machine."""
        wire = np.dtype(WIRE_TYPES[self.kind])
        return anywhere(self.rows, wire)[self.starts].astype(wire.newbyteorder("="))


def anywhere(rows: bytes, dtype: DTypeLike) -> NDArray[Any]:
    """Return the value of a type that starts at each byte of `rows`; nothing is moved until some are picked."""
    wire = np.dtype(dtype)
    return np.ndarray((len(rows) - wire.itemsize + 1,), wire, rows, strides=(1,))


def native(numbers: NDArray[Any]) -> NDArray[Any]:
    """Turn numbers, where they lie, into the byte order of this machine."""
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
    kinds = _described(connection, query, parameters)
    yield pl.DataFrame(schema={name: DECODERS[kind][0] for name, kind in kinds.items()})
    command = SQL(BLOCKS["copy_rows"]).format(composed(query))
    with (
        connection.cursor() as cursor,
        cursor.copy(command, parameters) as copy,
        closing(taken_ahead(_batches(copy))) as batches,
    ):
        for rows, bounds in batches:
            if len(bounds) > 1:
                yield _parsed(rows, bounds, kinds)


def taken_ahead(things: Iterator[Thing]) -> Generator[Thing, None, None]:
    """Yield things, the next one taken in another thread while this one is used; what taking raises comes through."""
    with ThreadPoolExecutor(1) as other:
        taken = other.submit(next, things, None)
        while (thing := taken.result()) is not None:
            taken = other.submit(next, things, None)
            yield thing


def composed(query: Query) -> SQL | Composed:
    """Return a query as a part to build others from."""
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
    """A new file whose CRC-32 is taken as it is written, and that is on the disk soon after; closing waits for that."""

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
            self._send_on()
        return written

    def close(self) -> None:
        """Wait until everything is on the disk; raise `OSError` when it does not get there."""
        try:
            self._file.flush()
            self._send_on()
            for flush in self._flushes:
                flush.result()
        finally:
            self._disk.shutdown()
            self._file.close()

    def _send_on(self) -> None:
        self._unflushed = 0
        self._flushes.append(self._disk.submit(os.fsync, self._file.fileno()))


def write_parquet_as_read(
    parts: Iterable[pl.DataFrame], schema: pl.Schema, path: Path, *, row_group_size: int = ROW_GROUP_SIZE
) -> int:
    """Write tables into one file while the next ones are still being read, flush it and return its CRC-32.

    The rows of a group are held in memory and encoded together. What reading raises comes through. An error leaves
    half a file: write it into a folder that gets its name when it is whole.
    """
    raised: list[Exception] = []

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
    """Make a rename last; Windows has no such call and does not need it."""
    if os.name == "nt":
        return
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _described(connection: Connection, query: Query, parameters: Mapping[str, Any]) -> dict[str, str]:
    """Ask the server for the names and types of the columns of a query, without its rows."""
    probe = SQL(BLOCKS["describe"]).format(composed(query))
    described = connection.execute(probe, parameters).description or []
    kinds = {column.name: _kind(connection, column.type_code) for column in described}
    unknown = [f"{name} ({kind})" for name, kind in kinds.items() if kind not in DECODERS]
    if unknown:
        message = f"can't read {', '.join(unknown)} from a binary copy; cast it to one of {', '.join(DECODERS)}"
        raise InvalidInput(message)
    return kinds


def _kind(connection: Connection, oid: int) -> str:
    """Return the name of a type; that of an extension is asked for, since its number differs between databases."""
    known = connection.adapters.types.get(oid)
    if known is not None:
        return known.name if known.oid == oid else f"{known.name}[]"
    row = connection.execute(BLOCKS["name_type"], [oid]).fetchone()
    return row[0] if row else str(oid)


def _batches(messages: Iterable[Buffer]) -> Iterator[tuple[bytes, Places]]:
    """Yield the stream in batches of some megabytes, with where each row starts in it and where the last one ends."""
    held, sizes = BytesIO(), list[int]()
    for message in messages:
        sizes.append(held.write(message))  # copied at once: thousands of waiting buffers would keep the collector busy
        if len(sizes) == ROW_GROUP_SIZE or held.tell() >= PARSED_AT_ONCE:
            yield _batch(held.getvalue(), sizes)
            held, sizes = BytesIO(), []
    if sizes:
        yield _batch(held.getvalue(), sizes)


def _batch(whole: bytes, sizes: list[int]) -> tuple[bytes, Places]:
    """Tell where the rows in messages of one row each start; the first has the header, the last is the end mark."""
    bounds = np.cumsum([0, *sizes])
    if whole.startswith(SIGNATURE):
        bounds[0] = HEADER_SIZE
    is_last = bounds[-1] - bounds[-2] == END_MARK_SIZE  # no row is that short
    return whole, bounds[:-1] if is_last else bounds


def _parsed(rows: bytes, bounds: Places, kinds: Mapping[str, str]) -> pl.DataFrame:
    """Walk all rows together, column by column; raise `Unavailable` when a message did not hold exactly one row."""
    place = bounds[:-1] + 2
    size_at = anywhere(rows, ">i4")
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
    """Decode the values that are there and put null where there is none."""
    present = fields.sizes >= 0
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
    """Cut texts out one by one, but a text that all rows share only once."""
    size, count = int(fields.sizes[0]), len(fields.sizes)
    if size and (fields.sizes == size).all():
        first = fields.rows[fields.starts[0] : fields.starts[0] + size]
        if fields.cut(size).tobytes() == first * count:
            return pl.Series([first]).new_from_index(0, count)
    cuts = map(slice, fields.starts.tolist(), (fields.starts + fields.sizes).tolist())
    return pl.Series([*map(fields.rows.__getitem__, cuts)], dtype=pl.Binary)


def _jsonb(fields: Fields) -> pl.Series:
    """Skip the version byte before the text."""
    return _texts(replace(fields, starts=fields.starts + 1, sizes=fields.sizes - 1))


def _uuids(fields: Fields) -> pl.Series:
    digits = np.frombuffer(fields.cut(16).tobytes().hex().encode(), dtype=np.uint8).reshape(-1, 32)
    dashed = np.full((len(digits), 36), ord("-"), dtype=np.uint8)
    for group, (start, stop) in enumerate(pairwise((0, 8, 12, 16, 20, 32))):
        dashed[:, start + group : stop + group] = digits[:, start:stop]
    return pl.Series(dashed.view("S36")[:, 0].tolist(), dtype=pl.Binary)


def _vectors(fields: Fields) -> pl.Series:
    """Skip the four bytes that hold the width; rows of several widths are taken one by one."""
    sizes = fields.sizes - 4
    if (sizes == sizes[0]).all():
        return pl.Series(native(fields.cut(int(sizes[0]), skip=4).view(">f4")))
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
