"""A language model as writer of episodes: each part of its answer is checked against the episode before it is kept.

Instructions are in `system` alone. The transcript is data: one JSON object inside an element with a random name, with
angle brackets and invisible characters escaped, so that no text can close the element and pass for instructions.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from importlib.resources import files
from itertools import groupby
from typing import Any, TypeVar

from nous_online.core.policy import WritingPolicy
from nous_online.core.settings import settings
from nous_online.core.validation import visible
from nous_online.language.claude.client import model_client
from nous_online.language.claude.grounding import (
    GroundingText,
    follows,
    invented_details,
    is_about,
    is_mostly_stated,
    is_quoted,
    reversed_sentences,
    source_of,
)
from nous_online.language.claude.replies import (
    Failure,
    LanguageModel,
    LLMError,
    Request,
    Usage,
    json_request,
    object_of,
    unrepeated,
)
from nous_online.language.claude.spending import Meter, Spent
from nous_online.language.embedding import Embedder
from nous_online.language.lexicon import INSTRUCTING
from nous_online.language.writing.child import CHILDREN
from nous_online.language.writing.credentials import holds_credential, without_credentials
from nous_online.language.writing.lexrank import (
    EDGE,
    INDEX_WORDS,
    LONGEST_INDEX,
    LONGEST_TITLE,
    index_word,
    spread_sample,
    word_count,
)
from nous_online.language.writing.sentences import Sentence, join_sentences, sentences_of
from nous_online.language.writing.writer import CensorDraft, Draft, EndedEpisode, FactDraft, OfflineWriter, Writer

PROMPT_VERSION = "episode-2"
ELEMENT = "episode"
MAX_TOKENS = 3_000  # an answer of full length takes about 900 in English, and three times as many in other scripts
NO_CATEGORY = "other"
TEXTS = ("title", "summary", "line", "index_word")
CATEGORIES = ("preference", "decision", "rule", NO_CATEGORY)

SYSTEM = files("nous_online.language.claude").joinpath("write_prompt.txt").read_text("utf-8").removesuffix("\n")


TEXT: Mapping[str, Any] = {"type": "string"}
SCHEMA = object_of(
    title=TEXT,
    summary=TEXT,
    line=TEXT,
    index_word=TEXT,
    facts={
        "type": "array",
        "items": object_of(
            content=TEXT, subject=TEXT, category={"type": "string", "enum": [*CATEGORIES]}, evidence=TEXT
        ),
    },
    censors={"type": "array", "items": object_of(trigger=TEXT, reason=TEXT, evidence=TEXT)},
)


@dataclass(frozen=True)
class EpisodeRecord:
    """The parts of an episode that a model is shown."""

    transcript: str
    title: str | None
    outcome: str | None
    participants: Sequence[str]
    lessons: Sequence[str]


@dataclass(frozen=True)
class Claim:
    """A statement to be learned as the model gave it, not checked against the record yet."""

    content: str
    subject: str
    category: str
    evidence: str


@dataclass(frozen=True)
class AnsweredCaution:
    """An action to warn of as the model gave it."""

    trigger: str
    reason: str
    evidence: str


@dataclass(frozen=True)
class WrittenAnswer:
    """An answer about an episode that has the requested form, not checked against the record yet."""

    title: str
    summary: str
    line: str
    index_word: str
    facts: tuple[Claim, ...]
    censors: tuple[AnsweredCaution, ...]


Part = TypeVar("Part", Claim, AnsweredCaution)


def write_request(record: EpisodeRecord, *, model: str) -> Request:
    """Return the request that asks `model` to condense one episode, shown as a person would see it."""
    known = {
        name: visible(value) if isinstance(value, str) else [visible(each) for each in value]
        for name, value in vars(record).items()
        if value
    }
    shown = "".join(  # escaped is what would close the element, and what can't be seen
        f"\\u{ord(letter):04x}" if letter in "<>" else letter if letter.isprintable() else json.dumps(letter)[1:-1]
        for letter in json.dumps(known, ensure_ascii=False)
    )
    return json_request(model, system=SYSTEM, data=(ELEMENT, shown), schema=SCHEMA, max_tokens=MAX_TOKENS)


def read_answer(text: str) -> WrittenAnswer:
    """Return an answer parsed; raise `LLMError` MALFORMED, naming the part, where it has not the requested form."""
    try:
        answer = json.loads(text, object_pairs_hook=unrepeated)
        require_keys(answer, *TEXTS, "facts", "censors")
        texts = {name: text_in(answer, name) for name in TEXTS}
        facts = tuple(parsed_part(Claim, each) for each in list_in(answer, "facts"))
        censors = tuple(parsed_part(AnsweredCaution, each) for each in list_in(answer, "censors"))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        message = (
            f"the answer about an episode has not the form that was asked for: {error!r}; another model may do better"
        )
        raise LLMError(message, Failure.MALFORMED) from error
    return WrittenAnswer(**texts, facts=facts, censors=censors)


def parsed_part(kind: type[Part], members: Mapping[str, Any]) -> Part:
    """Return a `Claim` or an `AnsweredCaution` from a JSON object with its fields, all texts, and no other keys."""
    names = [field.name for field in fields(kind)]
    require_keys(members, *names)
    return kind(**{name: text_in(members, name) for name in names})


def require_keys(members: Mapping[str, Any], *names: str) -> None:
    """Raise `ValueError` unless an object has the keys `names` and no others."""
    if {*members} != {*names}:
        raise ValueError(f"its keys are not {', '.join(names)}")


def text_in(members: Mapping[str, Any], name: str) -> str:
    """Return the text `name` of an object; raise `TypeError` where it is another value."""
    if not isinstance(members[name], str):
        raise TypeError(f"{name} is a {type(members[name]).__name__}, not a text")
    return members[name]


def list_in(members: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    """Return the list `name` of an object; raise `TypeError` where it is another value."""
    if not isinstance(members[name], list):
        raise TypeError(f"{name} is a {type(members[name]).__name__}, not a list")
    return members[name]


logger = logging.getLogger(__name__)
POLICY = WritingPolicy()
PURPOSE = "write"
DEADLINE_S = 15.0
"""A summary takes 5 to 10 s; a worker's pass of 30 s leaves a writer 18, and an episode is reserved for 20."""
LEAST_S = 1.0  # left of the deadline, below which the fallback model is not asked
LONGEST_TRANSCRIPT = 60_000
"""Characters shown to a model, about 15,000 tokens; of a longer transcript a sample from all over it."""
MOST_LATE = 32  # drafts kept that came after their deadline, so that the next attempt does not pay again
WORD = re.compile(r"\w+")
MOST_TITLE_WORDS = 14
MOST_SUMMARY_WORDS = 180  # 150 are asked for
LEAST_SUMMARY_WORDS = 20  # … or a quarter of what is shown, where that is less
FACT_WORDS = (3, 45)
MOST_TRIGGER_WORDS, MOST_REASON_WORDS = 20, 45
LONGEST_SUBJECT = 80
LONGEST_WORD = 40  # characters allowed for each word, since a text without spaces counts as few words


def draft_from_answer(
    answer: WrittenAnswer, record: EpisodeRecord, *, model: str, offline: Callable[[], Draft]
) -> Draft:
    """Return the draft made from an answer; parts that fail their checks come from the draft that `offline` returns.

    Rejected is text with a credential, instructions to a model, or details that the record does not have. The draft's
    `writer` names who wrote which part.
    """
    source = source_of(record.transcript, record.title or "", *record.participants, *record.lessons)
    kept = kept_parts(answer, record, source)
    lacking = [name for name, part in kept.items() if part is None]
    writer = model
    if lacking:
        draft = offline()
        kept |= {name: getattr(draft, name) for name in lacking}
        writer = f"{model}; {', '.join(lacking)} by {draft.writer}"
        logger.warning("of what %s wrote of an episode, %s could not be kept", model, ", ".join(lacking))
    return Draft(
        **kept, index_word=slug(answer.index_word, kept["title"], source), writer=writer, prompt_version=PROMPT_VERSION
    )


def kept_parts(answer: WrittenAnswer, record: EpisodeRecord, source: GroundingText) -> dict[str, Any]:
    """Return the parts of a draft by name, None for a part that fails its checks."""
    transcript, shown = source_of(record.transcript), word_count(record.transcript)
    least = min(LEAST_SUMMARY_WORDS, shown // 4)
    most = min(MOST_SUMMARY_WORDS, max(POLICY.least_summary_words, shown))
    title = record.title or kept_text(answer.title.strip(EDGE)[:LONGEST_TITLE], source, words=(2, MOST_TITLE_WORDS))
    accepted = [fact for claim in answer.facts if (fact := kept_fact(claim, transcript, source))]
    facts = tuple({fact.content.casefold(): fact for fact in accepted}.values())
    cautions = answer.censors if record.outcome == "failure" else ()
    censors = [censor for caution in cautions if (censor := kept_censor(caution, source))]
    return {
        "title": title,
        "summary": kept_narrative(answer.summary, source, words=(least, most)),
        "compressed": kept_narrative(answer.line, source, words=(2, POLICY.compressed_words)),
        "facts": None if answer.facts and not facts else facts[: POLICY.most_facts],
        "censors": None if cautions and not censors else tuple(censors[: POLICY.most_censors]),
    }


def kept_text(text: str, source: GroundingText, *, words: tuple[int, int]) -> str | None:
    """Return a text as one line, None where it invents details or its number of words is not within `words`."""
    line = " ".join(text.split())
    least, most = words
    is_short = len(line) <= most * LONGEST_WORD
    if not line or not is_short or not least <= word_count(line) <= most or not is_sound(line):
        return None
    return None if invented_details(line, source) else line


def kept_narrative(text: str, source: GroundingText, *, words: tuple[int, int]) -> str | None:
    """Return a summary or a line checked as by `kept_text`, None too where it denies what the episode says."""
    line = kept_text(text, source, words=words)
    return None if line is None or reversed_sentences(line, source) else line


def is_sound(text: str) -> bool:
    """Tell whether a text may be stored: no credential, no invisible character, no instruction to a model."""
    return text.isprintable() and not INSTRUCTING.search(text) and not holds_credential(text)


def kept_fact(claim: Claim, transcript: GroundingText, source: GroundingText) -> FactDraft | None:
    """Return a claim as a fact if its evidence is quoted from the transcript and it follows from the evidence."""
    content = kept_text(claim.content, source, words=FACT_WORDS)
    evidence = " ".join(claim.evidence.split())
    if content is None or claim.category not in CATEGORIES or not is_quoted(evidence, transcript):
        return None
    if not is_sound(evidence) or not follows(content, evidence) or not is_mostly_stated(content, source):
        return None
    subject = kept_text(claim.subject[:LONGEST_SUBJECT], source, words=(1, LONGEST_SUBJECT))
    return FactDraft(content, subject, None if claim.category == NO_CATEGORY else claim.category, evidence)


def kept_censor(caution: AnsweredCaution, source: GroundingText) -> CensorDraft | None:
    """Return a caution as a censor if its evidence is quoted from the record and is about the trigger."""
    trigger = kept_text(caution.trigger.strip(EDGE), source, words=(1, MOST_TRIGGER_WORDS))
    reason = kept_text(caution.reason, source, words=(1, MOST_REASON_WORDS))
    if trigger is None or reason is None or not is_quoted(caution.evidence, source) or not is_sound(caution.evidence):
        return None
    return CensorDraft(trigger, reason) if is_about(trigger, caution.evidence) else None


def slug(text: str, title: str, source: GroundingText) -> str:
    """Return a text of one to four words of the source joined by hyphens, else the index word of the title."""
    words = WORD.findall(text.casefold())
    is_told = all(word in source.words for word in words) and is_sound(text)
    if 0 < len(words) <= INDEX_WORDS and is_told and len("-".join(words)) <= LONGEST_INDEX:
        return "-".join(words)
    return index_word(title)


class ModelWriter:
    """Condenses an episode with one request, and checks each part of the answer against the episode.

    A part that invents details, lacks evidence or has the wrong length is replaced by the offline writer's. `models`
    are the model that is asked and its fallback, asked once after a refusal. Every request is metered, in the thread
    that made it. Safe to share between threads.
    """

    def __init__(
        self,
        client: LanguageModel,
        offline: OfflineWriter,
        *,
        models: tuple[str, str],
        meter: Meter,
        deadline_s: float = DEADLINE_S,
        late: OrderedDict[str, Draft] | None = None,
    ) -> None:
        self._client = client
        self._offline = offline
        self._model, self._fallback = models
        self._meter = meter
        self._deadline_s = deadline_s
        self._late = OrderedDict[str, Draft]() if late is None else late

    @property
    def name(self) -> str:
        """The model that is asked first."""
        return self._model

    def write(self, episode: EndedEpisode) -> Draft:
        """Return the draft of an episode, by the offline writer where the model can't answer at all.

        Raises `Unavailable` when the same request may succeed later, `InvalidInput` when there is no detail. A draft is
        kept in this process until the next attempt, since the caller may have given up before it came.
        """
        key = hashlib.sha256(repr(episode).encode(errors="surrogatepass")).hexdigest()
        draft = self._late.pop(key, None)
        if draft is None:
            draft = self._late[key] = self._written(episode)
            while len(self._late) > MOST_LATE:
                self._late.popitem(last=False)
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
        return draft_from_answer(answer, record, model=model, offline=lambda: self._offline.write(episode))

    def _answered(self, record: EpisodeRecord) -> tuple[WrittenAnswer, str]:
        """Return an answer and the model that gave it, the fallback after a refusal."""
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
    """Return the record of an episode, without sentences that look like they hold a credential, and without code."""
    sentences = without_credentials(sentences_of(episode.detail, participants=episode.participants))
    title = (episode.title or "").strip()
    size = sum(len(sentence.text) for sentence in sentences) or 1
    most = min(len(sentences), len(sentences) * LONGEST_TRANSCRIPT // size)
    return EpisodeRecord(
        transcript=transcript_of([sentences[i] for i in spread_sample(sentences, most)]),
        title=None if holds_credential(title) else title or None,
        outcome=episode.outcome,
        participants=list(episode.participants),
        lessons=[lesson for lesson in episode.lessons if not holds_credential(lesson)],
    )


def transcript_of(sentences: Sequence[Sentence]) -> str:
    """Return sentences as lines: one for each turn, with its speaker, or for each sentence where nobody is named."""
    lines: list[str] = []
    for (speaker, _), together in groupby(sentences, key=lambda each: (each.speaker, each.turn)):
        turn = list(together)
        lines += [join_sentences(turn)] if speaker else [sentence.text for sentence in turn]
    return "\n".join(lines)


def writer_factory(writer: Writer | None, embedder: Embedder) -> Callable[[Meter], Writer]:
    """Return a function that makes a writer for a meter: the given one, the model of the settings, or the offline one.

    All its writers share one client. Raises `InvalidInput` for an unusable key or address, and `Unsupported` without
    the package of the client.
    """
    if writer is not None:
        return lambda _meter: writer
    chosen, offline, late = settings(), OfflineWriter(embedder, call=CHILDREN.call), OrderedDict[str, Draft]()
    if not chosen.asks_model:
        return lambda _meter: offline
    client = model_client(chosen)
    models = (chosen.writer_model, chosen.judge_model)
    return lambda meter: ModelWriter(client, offline, models=models, meter=meter, late=late)
