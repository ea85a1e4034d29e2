"""What is kept of an answer about an episode: each part that stands on it, and the offline writer's for the others."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable
from typing import Any

from nous_online.core.policy import WritingPolicy
from nous_online.language.claude.grounding import (
    GroundingText,
    follows,
    invented,
    is_about,
    is_quoted,
    is_told,
    source_of,
    turned_round,
)
from nous_online.language.claude.write_prompt import (
    CATEGORIES,
    NO_CATEGORY,
    PROMPT_VERSION,
    AnsweredCaution,
    Claim,
    EpisodeRecord,
    WrittenAnswer,
)
from nous_online.language.writing.credentials import holds_credential
from nous_online.language.writing.lexrank import word_count
from nous_online.language.writing.phrases import INSTRUCTING
from nous_online.language.writing.titles import EDGE, INDEX_WORDS, LONGEST_INDEX, LONGEST_TITLE, index_word
from nous_online.language.writing.writer import CensorDraft, Draft, FactDraft

logger = logging.getLogger(__name__)
POLICY = WritingPolicy()
WORD = re.compile(r"\w+")
MOST_TITLE_WORDS = 14
MOST_SUMMARY_WORDS = 180
"""150 are asked for."""
LEAST_SUMMARY_WORDS = 20
"""… or a quarter of what is shown, where that is less."""
FACT_WORDS = (3, 45)
MOST_TRIGGER_WORDS, MOST_REASON_WORDS = 20, 45
LONGEST_SUBJECT = 80
LONGEST_WORD = 40
"""Characters: as many times the words of a text may be its length, whatever it counts as a word."""


def put_together(answer: WrittenAnswer, record: EpisodeRecord, *, model: str, offline: Callable[[], Draft]) -> Draft:
    """Return the draft an answer comes to; `offline` is asked for one when a part of the answer can't be kept.

    Nothing is kept that holds what looks like a credential, speaks to a model, or names what the record does not. The
    draft's `writer` says who wrote what.
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
    """Return the parts of a draft by name, None for one that can't be kept."""
    shown = word_count(record.transcript)
    least = min(LEAST_SUMMARY_WORDS, shown // 4)
    most = min(MOST_SUMMARY_WORDS, max(POLICY.least_summary_words, shown))
    return {
        "title": record.title
        or kept_text(answer.title.strip(EDGE)[:LONGEST_TITLE], source, words=(2, MOST_TITLE_WORDS)),
        "summary": kept_telling(answer.summary, source, words=(least, most)),
        "compressed": kept_telling(answer.line, source, words=(2, POLICY.compressed_words)),
        "facts": kept_facts(answer.facts, source_of(record.transcript), source),
        "censors": kept_censors(answer.censors, source) if record.outcome == "failure" else (),
    }


def kept_text(text: str, source: GroundingText, *, words: tuple[int, int]) -> str | None:
    """Return a text on one line if it stands on the source and has as many words, None otherwise."""
    line = " ".join(text.split())
    least, most = words
    is_short = len(line) <= most * LONGEST_WORD
    if not line or not is_short or not least <= word_count(line) <= most or not is_sound(line):
        return None
    return None if invented(line, source) else line


def kept_telling(text: str, source: GroundingText, *, words: tuple[int, int]) -> str | None:
    """Return a text that tells of an episode as `kept_text` does, None too where it denies what was said."""
    line = kept_text(text, source, words=words)
    return None if line is None or turned_round(line, source) else line


def is_sound(text: str) -> bool:
    """Tell whether a text may be shown to anybody: no credential, nothing invisible, nothing that speaks to a model."""
    return text.isprintable() and not INSTRUCTING.search(text) and not holds_credential(text)


def kept_facts(
    claims: Iterable[Claim], transcript: GroundingText, source: GroundingText
) -> tuple[FactDraft, ...] | None:
    """Return at most twelve statements that follow from a sentence of the transcript; None where none of them does."""
    claims = list(claims)
    kept = {fact.content.casefold(): fact for claim in claims if (fact := kept_fact(claim, transcript, source))}
    return None if claims and not kept else tuple(kept.values())[: POLICY.most_facts]


def kept_fact(claim: Claim, transcript: GroundingText, source: GroundingText) -> FactDraft | None:
    """Return a statement with its evidence if it follows from that, and that stands in the transcript."""
    content = kept_text(claim.content, source, words=FACT_WORDS)
    evidence = " ".join(claim.evidence.split())
    if content is None or claim.category not in CATEGORIES or not is_quoted(evidence, transcript):
        return None
    if not is_sound(evidence) or not follows(content, evidence) or not is_told(content, source):
        return None
    subject = kept_text(claim.subject[:LONGEST_SUBJECT], source, words=(1, LONGEST_SUBJECT))
    return FactDraft(content, subject, None if claim.category == NO_CATEGORY else claim.category, evidence)


def kept_censors(cautions: Iterable[AnsweredCaution], source: GroundingText) -> tuple[CensorDraft, ...] | None:
    """Return at most three actions to warn of that a sentence of the record tells of; None where none is told of."""
    cautions = list(cautions)
    kept = [censor for caution in cautions if (censor := kept_censor(caution, source))]
    return None if cautions and not kept else tuple(kept[: POLICY.most_censors])


def kept_censor(caution: AnsweredCaution, source: GroundingText) -> CensorDraft | None:
    """Return an action to warn of if its evidence stands in the record and speaks of it."""
    trigger = kept_text(caution.trigger.strip(EDGE), source, words=(1, MOST_TRIGGER_WORDS))
    reason = kept_text(caution.reason, source, words=(1, MOST_REASON_WORDS))
    if trigger is None or reason is None or not is_quoted(caution.evidence, source) or not is_sound(caution.evidence):
        return None
    return CensorDraft(trigger, reason) if is_about(trigger, caution.evidence) else None


def slug(text: str, title: str, source: GroundingText) -> str:
    """Return one to four words of the source joined by hyphens; those of the title where the text has others."""
    words = WORD.findall(text.casefold())
    is_told = all(word in source.words for word in words) and is_sound(text)
    if 0 < len(words) <= INDEX_WORDS and is_told and len("-".join(words)) <= LONGEST_INDEX:
        return "-".join(words)
    return index_word(title)
