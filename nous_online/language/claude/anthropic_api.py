"""What only Anthropic's API offers: the catalogue of models, and Message Batches.

A model is looked up before anything is sent to it. A batch is created without retries, found again by its time, and its
results are downloaded as raw bytes.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any, Literal, cast
from urllib.parse import quote

from nous_online.core.errors import InvalidInput
from nous_online.language.claude.client import Claude, json_of, patience
from nous_online.language.claude.replies import Failure, LLMError, Request, fields, listing, moment_of, said

if TYPE_CHECKING:
    import anthropic
    import httpx2
    from anthropic.types.messages.batch_create_params import Request as BatchRequest

CATALOGUE_DEADLINE_S = 10.0
WARN_BEFORE = timedelta(days=30)  # Anthropic gives 60 days' notice: half of it is left to act
MOST_NAMED = 4
SETTINGS = "NOUS_JUDGE_MODEL or NOUS_WRITER_MODEL"
BATCHES = "/v1/messages/batches"
DEADLINE_S = 60.0
UPLOAD_DEADLINE_S = 300.0
DOWNLOAD_DEADLINE_S = 600.0
LONGEST_SILENCE_S = 30.0
MOST_REQUESTS = 100_000  # of one batch, says the API; and 256 MB, which it answers with 413
PAGE = 100
GONE = 404  # and unknown
CUSTOM_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True)
class ModelFacts:
    """A model in the catalogue: `id` is its full name, also for an alias; None where the catalogue says nothing."""

    id: str
    lifecycle: str
    retires_at: datetime | None
    has_batches: bool | None
    has_structured_outputs: bool | None

    def warning(self, now: datetime) -> str | None:
        """Return a warning of a retirement within 30 days or in the past, None without one."""
        if self.retires_at is None or self.retires_at - now > WARN_BEFORE:
            return None
        return f"the model {self.id} retires on {self.retires_at:%Y-%m-%d}; set {SETTINGS} to another before that"

    def missing(self, *, for_batches: bool) -> str | None:
        """Return why the model can't be used, None where it can."""
        if self.lifecycle == "retired":
            on = "" if self.retires_at is None else f" since {self.retires_at:%Y-%m-%d}"
            return f"is retired{on}"
        if self.has_structured_outputs is False:
            return "does not answer in the form of a schema (structured outputs)"
        if for_batches and self.has_batches is False:
            return "takes no batches"
        return None


def checked_model(
    claude: Claude, model: str, *, for_batches: bool, deadline_s: float = CATALOGUE_DEADLINE_S
) -> ModelFacts:
    """Return the catalogue's facts about a usable model.

    Raises `LLMError`: `PERMANENT` for a model that is unknown, retired or lacks a feature, naming others to set
    instead; of another kind when the catalogue can't be asked.
    """

    def look_up(sdk: anthropic.Anthropic, left_s: float) -> ModelFacts:
        return facts_of(json_of(sdk.models.with_raw_response.retrieve(model, timeout=patience(left_s)).http_response))

    facts: ModelFacts | None = None
    try:
        facts = claude.call(look_up, deadline_s=deadline_s)
    except LLMError as error:
        if error.status != GONE:
            raise
    why = "is unknown" if facts is None else facts.missing(for_batches=for_batches)
    if facts is not None and why is None:
        return facts
    instead = claude.call(_listed, deadline_s=deadline_s)
    raise LLMError(f"the model {said(model)} {why}; {advice(instead, for_batches=for_batches)}", Failure.PERMANENT)


def advice(models: Sequence[ModelFacts], *, for_batches: bool) -> str:
    """Return which models to set instead: the newest ones that are active and have the needed features."""
    fit = [each.id for each in models if each.lifecycle == "active" and each.missing(for_batches=for_batches) is None]
    known = f"one of {', '.join(fit[:MOST_NAMED])}" if fit else "one the catalogue of this key knows; it names none"
    return f"set {SETTINGS} to {known}"


def facts_of(told: object) -> ModelFacts:
    """Return the facts in the JSON of a model; raise `LLMError` when it describes none."""
    model = fields(told)
    name, lifecycle = said(model.get("id")), said(model.get("lifecycle"))
    if not name:
        raise LLMError("a model was expected, but came something else; check ANTHROPIC_BASE_URL", Failure.MALFORMED)
    abilities = fields(model.get("capabilities"))
    told_of = {name: fields(abilities.get(name)).get("supported") for name in ("batch", "structured_outputs")}
    supports = {name: each if isinstance(each, bool) else None for name, each in told_of.items()}
    return ModelFacts(
        id=name,
        lifecycle=lifecycle or "active",  # gateways leave it out, and serve every model they list
        retires_at=moment_of(model.get("retires_at")),
        has_batches=supports["batch"],
        has_structured_outputs=supports["structured_outputs"],
    )


def _listed(sdk: anthropic.Anthropic, left_s: float) -> list[ModelFacts]:
    """Return the models that are not retired, newest first."""
    answer = sdk.models.with_raw_response.list(timeout=patience(left_s)).http_response
    return [facts_of(each) for each in listing(fields(json_of(answer)).get("data"))]


@dataclass(frozen=True)
class Batch:
    """A batch in the API; `has_results` is false until it ended, and again when its results were archived."""

    id: str
    is_ended: bool
    request_count: int
    created_at: datetime
    has_results: bool


def create_batch(
    claude: Claude, requests: Sequence[tuple[str, Request]], *, deadline_s: float = UPLOAD_DEADLINE_S
) -> Batch:
    """Create one batch of requests, each with its custom id, without retries.

    Raises `InvalidInput` for ids the API would refuse, and `LLMError`; after one of kind `TRANSIENT` the batch may
    exist, and has to be looked for in `batches_since` before it is sent again.
    """
    custom_ids = [custom_id for custom_id, _ in requests]
    if not 0 < len(custom_ids) <= MOST_REQUESTS:
        raise InvalidInput(f"a batch holds 1 to {MOST_REQUESTS} requests, got {len(custom_ids)}; split them")
    odd = next((each for each in custom_ids if not CUSTOM_ID.fullmatch(each)), None)
    if odd is not None:
        raise InvalidInput(f"the custom id {odd!r} is not 1 to 64 letters, digits, - or _; choose another")
    often, count = Counter(custom_ids).most_common(1)[0]
    if count > 1:
        raise InvalidInput(f"the custom id {often!r} comes {count} times; give each request its own")
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
    """Return the current state of a batch."""
    return _batch_after(claude, "retrieve", batch_id, deadline_s)


def cancel_batch(claude: Claude, batch_id: str, *, deadline_s: float = DEADLINE_S) -> Batch:
    """Cancel a batch; requests that were answered by then are paid for and in its results."""
    return _batch_after(claude, "cancel", batch_id, deadline_s)


def _batch_after(claude: Claude, call: Literal["retrieve", "cancel"], batch_id: str, deadline_s: float) -> Batch:
    """Return the state of a batch after a call about it."""

    def ask(sdk: anthropic.Anthropic, left_s: float) -> Batch:
        raw = getattr(sdk.messages.batches.with_raw_response, call)(batch_id, timeout=_timeout(left_s))
        return _batch_of(json_of(raw.http_response))

    return claude.call(ask, deadline_s=deadline_s)


def delete_batch(claude: Claude, batch_id: str, *, deadline_s: float = DEADLINE_S) -> None:
    """Delete an ended batch from Anthropic's servers; does nothing where it is gone already."""

    def delete(sdk: anthropic.Anthropic, left_s: float) -> None:
        sdk.messages.batches.with_raw_response.delete(batch_id, timeout=_timeout(left_s))

    try:
        claude.call(delete, deadline_s=deadline_s)
    except LLMError as error:
        if error.status != GONE:
            raise


def download_results(claude: Claude, batch: Batch, path: Path, *, deadline_s: float = DOWNLOAD_DEADLINE_S) -> str:
    """Write the results of a batch to `path`, one JSON object a line, and return their SHA-256.

    The file appears complete and synced to disk, or not at all: an incomplete download raises `LLMError`.
    """

    def download(sdk: anthropic.Anthropic, left_s: float) -> str:
        import httpx2

        # The package would use the address that the batch names; the key must go to no other host than the configured
        # one. And the package would parse the lines, and give up at the first broken one.
        path_there = f"{BATCHES}/{quote(batch.id, safe='')}/results"
        answer = sdk.get(
            path_there, cast_to=httpx2.Response, stream=True, stream_cls=None, options={"timeout": _timeout(left_s)}
        )
        try:
            is_chunked = answer.headers.get("transfer-encoding", "").lower() == "chunked"
            if "content-length" not in answer.headers and not is_chunked:
                message = "the results come without a length, so that a cut can't be noticed; check ANTHROPIC_BASE_URL"
                raise LLMError(message, Failure.MALFORMED)
            return _written(answer.iter_bytes(), path)
        finally:
            answer.close()

    return claude.call(download, deadline_s=deadline_s)


def _page(sdk: anthropic.Anthropic, after: str | None, left_s: float) -> tuple[list[Batch], str | None]:
    """Return one page of batches, and the cursor to the next unless this is the last."""
    list_raw = cast("Any", sdk.messages.batches.with_raw_response.list)
    raw = list_raw(limit=PAGE, timeout=_timeout(left_s), **({"after_id": after} if after else {}))
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


def _written(pieces: Iterator[bytes], path: Path) -> str:
    """Write pieces to a temporary file beside `path`, sync and rename it, and return its SHA-256."""
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
    """Sync a folder, so that a rename in it survives a crash; Windows has no such call and does not need it."""
    if os.name == "nt":
        return
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
