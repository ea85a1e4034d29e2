"""A language model as the writer of episodes: what an episode bears out is kept of its answer, and none is lost."""

from __future__ import annotations

import hashlib
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby

from nous_online.core.settings import settings
from nous_online.language.claude.client import model_client
from nous_online.language.claude.drafting import put_together
from nous_online.language.claude.replies import Failure, LanguageModel, LLMError, Usage
from nous_online.language.claude.spending import Meter, Spent
from nous_online.language.claude.write_prompt import (
    PROMPT_VERSION,
    EpisodeRecord,
    WrittenAnswer,
    read_answer,
    write_request,
)
from nous_online.language.embedding import Embedder
from nous_online.language.writing.child import CHILDREN
from nous_online.language.writing.credentials import holds_credential, without_credentials
from nous_online.language.writing.lexrank import most_telling
from nous_online.language.writing.sentences import Sentence, sentences_of, told
from nous_online.language.writing.writer import Draft, EndedEpisode, OfflineWriter, Writer

logger = logging.getLogger(__name__)
PURPOSE = "write"
DEADLINE_S = 15.0
"""A worker's pass of 30 s leaves a writer 18, and an episode is left alone for 20; a summary takes 5 to 10."""
LEAST_S = 1.0  # no other model answers in less
LONGEST_TRANSCRIPT = 60_000
"""Characters that are shown, about 15,000 tokens; of a longer transcript what says most, from all over it."""
MOST_LATE = 32


class Late:
    """The last drafts of this process, for whoever could not wait for the one asked for: none is paid for twice."""

    def __init__(self) -> None:
        self._drafts: OrderedDict[str, Draft] = OrderedDict()

    def take(self, episode: EndedEpisode) -> Draft | None:
        """Return the draft of an episode, if there is one, and forget it."""
        return self._drafts.pop(self._key(episode), None)

    def keep(self, episode: EndedEpisode, draft: Draft) -> None:
        """Keep a draft until it is taken, or 32 others were kept."""
        self._drafts[self._key(episode)] = draft
        while len(self._drafts) > MOST_LATE:
            self._drafts.popitem(last=False)

    @staticmethod
    def _key(episode: EndedEpisode) -> str:
        return hashlib.sha256(repr(episode).encode(errors="surrogatepass")).hexdigest()


class ModelWriter:
    """Has an episode condensed by one request, and checks each part of the answer against the episode.

    A part that names what the episode does not, that has no evidence in it or the wrong length, is replaced by what the
    offline writer makes of it. `models` are who is asked, and who is asked once where that one refuses. Every request
    is metered, in the thread that made it. Safe to share between threads.
    """

    def __init__(
        self,
        client: LanguageModel,
        offline: OfflineWriter,
        *,
        models: tuple[str, str],
        meter: Meter,
        deadline_s: float = DEADLINE_S,
        late: Late | None = None,
    ) -> None:
        self._client = client
        self._offline = offline
        self._model, self._fallback = models
        self._meter = meter
        self._deadline_s = deadline_s
        self._late = late or Late()

    @property
    def name(self) -> str:
        """The model that is asked first."""
        return self._model

    def write(self, episode: EndedEpisode) -> Draft:
        """Return what is worth keeping of an episode, by the offline writer where no answer can be had at all.

        Raises `Unavailable` when the same request may succeed later, `InvalidInput` when there is no detail. An answer
        that came too late for whoever asked is kept in this process for the next attempt, and not paid for twice.
        """
        draft = self._late.take(episode)
        if draft is None:
            draft = self._written(episode)
            self._late.keep(episode, draft)
        return draft

    def _written(self, episode: EndedEpisode) -> Draft:
        record = self._offline.call(record_of, episode)
        if not record.transcript:
            return self._offline.write(episode)
        try:
            answer, model = self._answered(record)
        except LLMError as error:
            if error.kind is Failure.TRANSIENT:
                raise
            logger.warning("an episode is written offline: %s", error)
            draft = self._offline.write(episode)
            return replace(draft, writer=f"{draft.writer} ({self._model}: {error.kind})")
        return put_together(answer, record, model=model, offline=lambda: self._offline.write(episode))

    def _answered(self, record: EpisodeRecord) -> tuple[WrittenAnswer, str]:
        """Return an answer and who gave it: the model, or the fallback where it refuses."""
        ends_at = time.monotonic() + self._deadline_s
        try:
            return self._ask(record, self._model, self._deadline_s), self._model
        except LLMError as error:
            left_s = ends_at - time.monotonic()
            if error.kind is not Failure.REFUSED or self._fallback == self._model or left_s < LEAST_S:
                raise
        return self._ask(record, self._fallback, left_s), self._fallback

    def _ask(self, record: EpisodeRecord, model: str, deadline_s: float) -> WrittenAnswer:
        usage = Usage()
        try:
            reply = self._client.ask(write_request(record, model=model), deadline_s=deadline_s)
            usage = reply.usage
            answer = read_answer(reply.text)
        except LLMError as error:
            self._meter(Spent(PURPOSE, model, PROMPT_VERSION, usage + error.usage, error=f"{error.kind}: {error}"))
            raise
        self._meter(Spent(PURPOSE, model, PROMPT_VERSION, usage))
        return answer


def record_of(episode: EndedEpisode) -> EpisodeRecord:
    """Return what is shown of an episode: no sentence that holds what looks like a credential, and no code."""
    spoken = without_credentials(sentences_of(episode.detail, participants=episode.participants))
    title = (episode.title or "").strip()
    return EpisodeRecord(
        transcript=transcript_of(telling(spoken)),
        title=None if holds_credential(title) else title or None,
        outcome=episode.outcome,
        participants=list(episode.participants),
        lessons=[lesson for lesson in episode.lessons if not holds_credential(lesson)],
    )


def telling(sentences: Sequence[Sentence]) -> list[Sentence]:
    """Return as many sentences as are shown at most, from all over the transcript."""
    size = sum(len(sentence.text) for sentence in sentences) or 1
    most = min(len(sentences), len(sentences) * LONGEST_TRANSCRIPT // size)
    return [sentences[i] for i in most_telling(sentences, most)]


def transcript_of(sentences: Sequence[Sentence]) -> str:
    """Return sentences as lines: a turn each, with who speaks; a line for each sentence where nobody does."""
    lines: list[str] = []
    for (speaker, _), together in groupby(sentences, key=lambda each: (each.speaker, each.turn)):
        turn = list(together)
        lines += [told(turn)] if speaker else [sentence.text for sentence in turn]
    return "\n".join(lines)


def commissioned(writer: Writer | None, embedder: Embedder) -> Callable[[Meter], Writer]:
    """Return who writes, by who pays: the writer given, or the model the settings name, or the offline writer.

    All writers it returns share one client. Raises `InvalidInput` for a key or an address nothing can be sent with, and
    `Unsupported` without the package of the client.
    """
    if writer is not None:
        return lambda _meter: writer
    chosen, offline, late = settings(), OfflineWriter(embedder, call=CHILDREN.call), Late()
    if not chosen.asks_model:
        return lambda _meter: offline
    client = model_client(chosen)
    models = (chosen.writer_model, chosen.judge_model)
    return lambda meter: ModelWriter(client, offline, models=models, meter=meter, late=late)
