"""Message Batches: created once and never twice by itself, found again by time, brought home as raw bytes."""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote

from nous_online.core.errors import InvalidInput
from nous_online.language.claude.client import Claude, json_of, patience
from nous_online.language.claude.message_parser import fields, moment_of
from nous_online.language.claude.replies import Failure, LLMError, Request

if TYPE_CHECKING:
    import anthropic
    import httpx2
    from anthropic.types.messages.batch_create_params import Request as BatchRequest

BATCHES = "/v1/messages/batches"
DEADLINE_S = 60.0
UPLOAD_DEADLINE_S = 300.0
DOWNLOAD_DEADLINE_S = 600.0
LONGEST_SILENCE_S = 30.0
MOST_REQUESTS = 100_000  # of one batch, says the API; and 256 MB, which it answers with 413
PAGE = 100
GONE = 404
CUSTOM_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True)
class Batch:
    """A batch as the API tells of it; `has_results` is false until it ended, and again once they were archived."""

    id: str
    is_ended: bool
    request_count: int
    created_at: datetime
    has_results: bool


def create_batch(
    claude: Claude, requests: Sequence[tuple[str, Request]], *, deadline_s: float = UPLOAD_DEADLINE_S
) -> Batch:
    """Send requests, each under its custom id, as one batch; send them once.

    Raises `InvalidInput` for ids the API would refuse, and `LLMError`: with a kind of `TRANSIENT` the batch may exist
    all the same, and has to be looked for among `batches_since` before it is sent again.
    """
    _require_sendable([custom_id for custom_id, _ in requests])
    body = [cast("BatchRequest", {"custom_id": name, "params": request}) for name, request in requests]

    def send(sdk: anthropic.Anthropic, left_s: float) -> Batch:
        raw = sdk.messages.batches.with_raw_response.create(requests=body, timeout=patience(left_s))
        return _batch_of(json_of(raw.http_response))

    try:
        return claude.call(send, deadline_s=deadline_s, attempts=1)
    except LLMError as error:
        if error.kind is not Failure.MALFORMED:
            raise
        unknown = LLMError(f"a batch was created, but {error}", Failure.TRANSIENT)
    raise unknown


def batches_since(claude: Claude, moment: datetime, *, deadline_s: float = DEADLINE_S) -> list[Batch]:
    """Return all batches of the workspace created at `moment` (of the server's clock) or later, newest first."""

    def look(sdk: anthropic.Anthropic, left_s: float) -> list[Batch]:
        found: list[Batch] = []
        after: str | None = None
        while True:
            page, after = _page(sdk, after, left_s)
            found += [batch for batch in page if batch.created_at >= moment]
            if after is None or page[-1].created_at < moment:
                return found

    return claude.call(look, deadline_s=deadline_s)


def get_batch(claude: Claude, batch_id: str, *, deadline_s: float = DEADLINE_S) -> Batch:
    """Return a batch as it is now."""

    def get(sdk: anthropic.Anthropic, left_s: float) -> Batch:
        raw = sdk.messages.batches.with_raw_response.retrieve(batch_id, timeout=_timeout(left_s))
        return _batch_of(json_of(raw.http_response))

    return claude.call(get, deadline_s=deadline_s)


def cancel_batch(claude: Claude, batch_id: str, *, deadline_s: float = DEADLINE_S) -> Batch:
    """Ask for a batch to end early; what was done by then is paid for, and is among its results."""

    def cancel(sdk: anthropic.Anthropic, left_s: float) -> Batch:
        raw = sdk.messages.batches.with_raw_response.cancel(batch_id, timeout=_timeout(left_s))
        return _batch_of(json_of(raw.http_response))

    return claude.call(cancel, deadline_s=deadline_s)


def delete_batch(claude: Claude, batch_id: str, *, deadline_s: float = DEADLINE_S) -> None:
    """Delete what Anthropic keeps of a batch that has ended; one that is gone already is deleted."""

    def delete(sdk: anthropic.Anthropic, left_s: float) -> None:
        sdk.messages.batches.with_raw_response.delete(batch_id, timeout=_timeout(left_s))

    try:
        claude.call(delete, deadline_s=deadline_s)
    except LLMError as error:
        if error.status != GONE:
            raise


def download_results(claude: Claude, batch: Batch, path: Path, *, deadline_s: float = DOWNLOAD_DEADLINE_S) -> str:
    """Write the results of a batch to `path` as they come, one JSON object a line, and return their SHA-256.

    The file is there whole, and on disk, or not at all: a download that was cut raises `LLMError`.
    """

    def download(sdk: anthropic.Anthropic, left_s: float) -> str:
        import httpx2

        # Not the address the batch names, where the package would look: the key goes to the host it was given for, and
        # to no other. Nor are lines read by the package, which gives up on the first that is broken.
        path_there = f"{BATCHES}/{quote(batch.id, safe='')}/results"
        answer = sdk.get(
            path_there, cast_to=httpx2.Response, stream=True, stream_cls=None, options={"timeout": _timeout(left_s)}
        )
        try:
            _require_an_end(answer.headers)
            return _written(answer.iter_bytes(), path)
        finally:
            answer.close()

    return claude.call(download, deadline_s=deadline_s)


def _require_sendable(custom_ids: Sequence[str]) -> None:
    if not 0 < len(custom_ids) <= MOST_REQUESTS:
        raise InvalidInput(f"a batch holds 1 to {MOST_REQUESTS} requests, got {len(custom_ids)}; split them")
    odd = next((each for each in custom_ids if not CUSTOM_ID.fullmatch(each)), None)
    if odd is not None:
        raise InvalidInput(f"the custom id {odd!r} is not 1 to 64 letters, digits, - or _; choose another")
    often, count = Counter(custom_ids).most_common(1)[0]
    if count > 1:
        raise InvalidInput(f"the custom id {often!r} comes {count} times; give each request its own")


def _page(sdk: anthropic.Anthropic, after: str | None, left_s: float) -> tuple[list[Batch], str | None]:
    """Return one page of batches, and the cursor to the next unless this is the last."""
    cursor = {"after_id": after} if after else {}
    list_raw = cast("Any", sdk.messages.batches.with_raw_response.list)
    raw = list_raw(limit=PAGE, timeout=_timeout(left_s), **cursor)
    page = fields(json_of(raw.http_response))
    entries = page.get("data")
    if not isinstance(entries, list):
        raise LLMError("the list of batches has no entries; check ANTHROPIC_BASE_URL", Failure.MALFORMED)
    batches = [_batch_of(each) for each in cast("list[object]", entries)]
    last = batches[-1].id if batches and page.get("has_more") is True else None
    if last is not None and last == after:
        raise LLMError(f"the page after the batch {last} ends with it again; ask again", Failure.MALFORMED)
    return batches, last


def _batch_of(told: object) -> Batch:
    """Return the batch a JSON object describes; raise `LLMError` when it describes none."""
    batch = fields(told)
    batch_id, status, created_at = batch.get("id"), batch.get("processing_status"), moment_of(batch.get("created_at"))
    if not isinstance(batch_id, str) or not batch_id or not isinstance(status, str) or created_at is None:
        message = "what came instead of a batch lacks an id, a status or a date; check ANTHROPIC_BASE_URL"
        raise LLMError(message, Failure.MALFORMED)
    counts = fields(batch.get("request_counts")).values()
    return Batch(
        id=batch_id,
        is_ended=status == "ended",
        request_count=sum(count for count in counts if isinstance(count, int)),
        created_at=created_at,
        has_results=isinstance(batch.get("results_url"), str),
    )


def _timeout(left_s: float) -> httpx2.Timeout:
    return patience(left_s, silence_s=LONGEST_SILENCE_S)


def _require_an_end(headers: Mapping[str, str]) -> None:
    """Raise `LLMError` unless an answer says how long it is, so that a cut can be told from its end."""
    if "content-length" not in headers and headers.get("transfer-encoding", "").lower() != "chunked":
        message = "the results come without a length, so that a cut can't be noticed; check ANTHROPIC_BASE_URL"
        raise LLMError(message, Failure.MALFORMED)


def _written(pieces: Iterator[bytes], path: Path) -> str:
    """Write pieces to a file beside `path`, and put it there when it is whole and on disk; return its SHA-256."""
    digest = hashlib.sha256()
    try:
        with NamedTemporaryFile(dir=path.parent, prefix=f"{path.name}.", suffix=".part", delete=False) as file:
            part = Path(file.name)
            try:
                for piece in pieces:
                    digest.update(piece)
                    file.write(piece)
                file.flush()
                os.fsync(file.fileno())
                file.close()
                part.replace(path)
                _sync_folder(path.parent)
            except BaseException:
                part.unlink(missing_ok=True)  # the rename may have been the last thing that worked
                raise
    except OSError as error:
        message = f"{path} can't be written ({error}); is there space left, and may this user write there?"
        raise LLMError(message, Failure.PERMANENT) from error
    return digest.hexdigest()


def _sync_folder(folder: Path) -> None:
    """Make a rename last; Windows has no such call and does not need it."""
    if os.name == "nt":
        return
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
