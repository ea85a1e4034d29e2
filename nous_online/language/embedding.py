"""Embedders behind one protocol (in process, or an OpenAI-compatible server), and the texts of a memory they embed."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from nous_online.core.domain import EmbeddingSpace
from nous_online.core.errors import InvalidInput, Unavailable
from nous_online.core.settings import settings
from nous_online.language.minilm import LocalMiniLM, Vectors, batches, unit_rows
from nous_online.language.multilingual import ORDINARY, MultilingualE5

if TYPE_CHECKING:
    import httpx

TEXTS_A_REQUEST = 64
SERVER_MODEL = "text-embedding-3-small"
"""The model of a server where NOUS_EMBEDDING_MODEL names none."""
OF_SERVER, CENTRED = "openai-compatible:", ":centred"
"""Begins the id of a space of a server's model; ends the id of one whose middle is taken away."""
BOUNDARY = re.compile(r"(?<=[.!?])\s+|\n+")
SHORTEST_PASSAGE = 40  # characters; a shorter sentence ("Wow!") says too little by itself and is joined with the next
MOST_PASSAGES = 32  # embedded of one memory; of a longer text the first sentences
CONTEXT_SHARE = 0.25  # weight of the context beside the memory itself


class Embedder(Protocol):
    """Anything that turns texts into unit vectors of one space."""

    @property
    def space(self) -> EmbeddingSpace: ...

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return an (n, dimensions) float32 matrix of unit rows, in the order of `texts`."""
        ...

    def embed_query(self, text: str) -> Vectors:
        """Return one unit vector of shape (dimensions,)."""
        ...


@runtime_checkable
class LocalEmbedder(Embedder, Protocol):
    """An embedder in process, whose weights are read from disk."""

    def load(self) -> None:
        """Read the weights now, so that no call's deadline pays for it; raise `Unavailable` when they can't be."""
        ...


BUILT_IN = "minilm"
LOCAL: Mapping[str, LocalEmbedder] = {BUILT_IN: LocalMiniLM(), "multilingual-e5-small": MultilingualE5()}
"""The embedders in process by the names they may have in NOUS_EMBEDDING_MODEL; nothing is loaded before it is used."""


class OpenAICompatible:
    """Embeddings from any server that speaks `POST {base_url}/embeddings`, with bounded retries.

    With `is_centred` the mean of ordinary statements is taken away from every vector (`multilingual.middle` says why):
    another space, of another id. Raises `Unavailable` when the server stays unreachable or answers with an error,
    and `InvalidInput` when its vectors are not of the promised width.
    """

    def __init__(
        self,
        *,
        base_url: str,
        model: str,
        dimensions: int,
        api_key: str = "",
        timeout_s: float = 10.0,
        is_centred: bool = False,
    ) -> None:
        name = f"{OF_SERVER}{model}:{dimensions}{CENTRED if is_centred else ''}"
        self.space = EmbeddingSpace(id=name, model=model, weights_sha256="", dimensions=dimensions)
        self._is_centred = is_centred
        self._url = f"{base_url.rstrip('/')}/embeddings"
        self._headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._timeout_s = timeout_s

    @cached_property
    def _client(self) -> httpx.Client:
        import httpx

        return httpx.Client(timeout=self._timeout_s, headers=self._headers, follow_redirects=False)

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return unit rows for `texts`, asked for in batches of 64."""
        parts = [self._request(list(batch)) for batch in batches(list(texts), TEXTS_A_REQUEST)]
        rows = np.concatenate(parts) if parts else np.zeros((0, self.space.dimensions), dtype=np.float32)
        return unit_rows(rows - self._middle) if self._is_centred and len(rows) else rows

    def embed_query(self, text: str) -> Vectors:
        """Return the unit vector of one question."""
        return self.embed_documents([text])[0]

    @cached_property
    def _middle(self) -> Vectors:
        """The mean vector of ordinary statements, asked for once a process."""
        return self._request(list(ORDINARY)).mean(axis=0)

    def _request(self, texts: list[str]) -> Vectors:
        import httpx
        from tenacity import retry, retry_if_exception, stop_after_attempt, wait_random_exponential

        @retry(
            stop=stop_after_attempt(3),
            wait=wait_random_exponential(multiplier=0.2, max=2),
            retry=retry_if_exception(is_transient),
            reraise=True,
        )
        def ask() -> Any:
            response = self._client.post(self._url, json={"model": self.space.model, "input": texts})
            response.raise_for_status()
            return response.json()

        try:
            answer = ask()
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            said = (str(error) or repr(error)).splitlines()[0]
            message = f"the embedding server at {self._url} failed: {said}; check NOUS_EMBEDDING_URL and its model"
            raise Unavailable(message) from error
        try:
            by_index = {entry["index"]: entry["embedding"] for entry in answer["data"]}
            rows = [by_index[index] for index in range(len(texts))]
        except (KeyError, TypeError) as error:
            message = f"the embedding server at {self._url} sent no usable vectors ({error!r})"
            raise Unavailable(message) from error
        return checked_vectors(rows, shape=(len(texts), self.space.dimensions))


def is_transient(error: BaseException) -> bool:
    """Tell whether the same HTTP request may succeed a moment later."""
    import httpx

    if isinstance(error, httpx.HTTPStatusError):
        return error.response.status_code in {408, 409, 429} or error.response.is_server_error
    return isinstance(error, httpx.TransportError)


def checked_vectors(vectors: ArrayLike, *, shape: tuple[int, int]) -> Vectors:
    """Return `vectors` scaled to unit length; raise `InvalidInput` on another shape, NaN, infinity or a zero row."""
    try:
        rows = np.asarray(vectors, dtype=np.float64)  # a float32 would overflow when it is squared
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"the embedder returned no matrix of numbers ({error}); nothing was stored") from error
    if rows.shape != shape:
        message = (
            f"expected vectors of shape {shape}, got {rows.shape}; set NOUS_EMBEDDING_DIMENSIONS to the model's width"
        )
        raise InvalidInput(message)
    if not np.isfinite(rows).all():
        message = "the vectors hold NaN or infinity; nothing was stored"
        raise InvalidInput(message)
    if rows.size and not np.linalg.norm(rows, axis=1).all():
        message = "a vector is all zeros, so it has no direction to compare; nothing was stored"
        raise InvalidInput(message)
    return unit_rows(rows)


def default_embedder() -> Embedder:
    """Return the embedder the environment asks for: a model of an OpenAI-compatible server, or one in process.

    Raises `InvalidInput` when NOUS_EMBEDDING_MODEL names none in process and there is no server.
    """
    chosen = settings()
    if chosen.embedding_url is not None:
        model = chosen.embedding_model or SERVER_MODEL
        return remote_embedder(chosen.embedding_url, model=model, dimensions=chosen.embedding_dimensions)
    if not chosen.embedding_model:  # unset, or set to nothing, as a container does
        return LocalMiniLM()
    if (local := local_embedder(chosen.embedding_model)) is None:
        message = (
            f"NOUS_EMBEDDING_MODEL is {chosen.embedding_model!r}, which is no embedder of here; set it to "
            f"{' or '.join(LOCAL)}, or NOUS_EMBEDDING_URL to the server that has the model"
        )
        raise InvalidInput(message)
    return local


def local_embedder(name: str) -> LocalEmbedder | None:
    """Return the embedder in process that has this name, or whose model or space has; None when there is none."""
    for short, embedder in LOCAL.items():
        if name in (short, embedder.space.id, embedder.space.model):
            return embedder
    return None


def embedder_lookup(embedders: Sequence[Embedder]) -> Callable[[EmbeddingSpace], Embedder | None]:
    """Return who finds the embedder of a space among those the caller brought, or in the environment without any."""
    return (lambda space: next((each for each in embedders if each.space == space), None)) if embedders else embedder_of


def embedder_of(space: EmbeddingSpace) -> Embedder | None:
    """Return the embedder of a space if the environment can offer it: one in process, or a model of its server."""
    local, chosen = local_embedder(space.id), settings()
    if local is not None and local.space == space:
        return local
    if chosen.embedding_url is None:
        return None
    remote = remote_embedder(
        chosen.embedding_url,
        model=space.model,
        dimensions=space.dimensions,
        is_centred=space.id.endswith(CENTRED),  # agents from before there were such spaces keep theirs
    )
    return remote if remote.space == space else None


def remote_embedder(base_url: str, *, model: str, dimensions: int, is_centred: bool = True) -> OpenAICompatible:
    """Return the embedder of one model of the server the environment names; all hearts of a process share it."""
    key = settings().embedding_api_key.get_secret_value()
    return shared_embedder(base_url, model, dimensions, key, is_centred=is_centred)


@cache
def shared_embedder(base_url: str, model: str, dimensions: int, api_key: str, *, is_centred: bool) -> OpenAICompatible:
    """Return the embedder of one model of a server, with the connections that are kept open to it."""
    return OpenAICompatible(
        base_url=base_url, model=model, dimensions=dimensions, api_key=api_key, is_centred=is_centred
    )


def passage_sentences(content: str, subject: str | None) -> list[str]:
    """Return the sentences of `content`, each with the subject in front: "She moved" names nobody."""
    pieces: list[str] = []
    for piece in filter(None, map(str.strip, BOUNDARY.split(content))):
        if pieces and len(pieces[-1]) < SHORTEST_PASSAGE:
            pieces[-1] += f" {piece}"
        else:
            pieces.append(piece)
    return [after_subject(subject, piece) for piece in pieces[:MOST_PASSAGES] or [content]]


def context_passages(context: str | None) -> list[str]:
    """Return the lines of a context, one passage each."""
    return [line.strip() for line in (context or "").splitlines() if line.strip()][:MOST_PASSAGES]


def after_subject(subject: str | None, text: str) -> str:
    """Return `text` with its subject in front, unless it starts with it."""
    if not subject or text.casefold().startswith(subject.casefold()):
        return text
    return f"{subject}: {text}"


def passages(content: str, subject: str | None, context: str | None) -> list[str]:
    """Return every text whose vector `recall_vector` needs: the memory, its sentences, and the lines of its context."""
    return [content, *passage_sentences(content, subject), *context_passages(context)]


def recall_vector(
    content: str, subject: str | None, context: str | None, vectors: Mapping[str, Vectors]
) -> Vectors | None:
    """Return the unit vector a memory is recalled by, None where it is the vector of its content.

    The sum of three unit vectors: the content, the mean of its sentences, and a quarter of the mean of its context. A
    mean of short texts keeps details that the one vector of a long text loses. `vectors` has a unit vector for each of
    `passages`.
    """
    own, around = passage_sentences(content, subject), context_passages(context)
    if own == [content] and not around:
        return None
    blend = unit_sum([vectors[content], unit_sum([vectors[text] for text in own])])
    if around:
        blend = with_context(blend, unit_sum([vectors[text] for text in around]))
    return blend


def with_context(own: Vectors, context: Vectors) -> Vectors:
    """Return the unit vector of a memory with what was said around it."""
    return unit_sum([own, CONTEXT_SHARE * context])


def unit_sum(vectors: Sequence[Vectors]) -> Vectors:
    """Return the unit vector along the sum of `vectors`, or the first where they cancel out."""
    total = np.stack(vectors).sum(axis=0, dtype=np.float32)
    length = float(np.linalg.norm(total))
    return (total / length).astype(np.float32) if length > 0 else vectors[0]
