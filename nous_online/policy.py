"""Numbers that are opinions, with their unit and where they come from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LearnPolicy:
    """When learning confirms, asks or stores; cosines of the default embedding space."""

    confirm_similarity: float = 0.95
    """At or above, with no guard against it, the same statement was learned again (reactive lifecycle, section 1)."""
    check_similarity: float = 0.85
    """From here up to `confirm_similarity` a judge decides (reactive lifecycle, section 1)."""
    sure_from: float = 0.9
    """Confidence from which `same` confirms: the wording said last is then kept nowhere. Below, both are stored and the
    night decides, for a merge can be taken back (the built-in judge says `same` from 0.76 on)."""
    subject_similarity: float = 0.80
    """Above, two subjects are the same thing spelled differently (reactive lifecycle, section 2)."""
    neighbour_count: int = 10
    """How many of the nearest facts are looked at; the seeds ask for 5 duplicates and 10 of the same subject."""


@dataclass(frozen=True)
class WritingPolicy:
    """What the offline writer lifts out of a transcript, and how much of it."""

    summary_words: int = 130
    """Most words of a summary: 100 to 150 are asked for, and whole sentences seldom fill the last few."""
    opening_words: int = 60
    """A short talk is mostly greetings and small talk: of what a shorter detail has beyond so many words …"""
    summary_share: float = 0.4
    """… so much is told …"""
    least_summary_words: int = 25
    """… but never less than one good sentence. Chosen on half of the public dialogues (benchmark `summary`)."""
    compressed_words: int = 24
    """Most words of the one line (living memory: micro, about 20 tokens)."""
    title_words: tuple[int, int] = (5, 10)
    """Fewest and most words of a title (reactive lifecycle, section 3)."""
    most_facts: int = 5
    """Durable facts of one episode (reactive lifecycle, section 3)."""
    most_censors: int = 3
    """Censor candidates of one failure: lessons, then what went wrong."""
    most_sentences: int = 400
    """How many sentences of one transcript are embedded, 3 to 5 ms each …"""
    most_embedded_characters: int = 12_000
    """… and how many characters of them: what a megabyte may cost stays at seconds."""
    embedded_characters: int = 160
    """Characters of one sentence that are embedded; what it is about is said by then."""
    damping: float = 0.85
    """Share of LexRank that follows similarity (Erkan and Radev 2004 take PageRank's 0.85)."""
    length_power: float = 0.5
    """What a sentence says is divided by this power of its words, so that neither long nor short ones win by length."""
    earliness: float = 1.0
    """The first sentence weighs e times the last: openings say what it is about."""
    redundancy: float = 0.5
    """What a sentence loses at cosine 1 to one already chosen (maximal marginal relevance, weight a half)."""
    checkable_bonus: float = 1.2
    """Factor for a sentence that names somebody, a number or a date: memories are asked for those."""
    same_fact_similarity: float = 0.90
    """At or above, with no guard against it, two sentences state one fact."""


@dataclass(frozen=True)
class OutboxPolicy:
    """How events are delivered, and how often a failed delivery is tried again; times in seconds."""

    batch_size: int = 100
    """Events between two moves of a cursor: as many may come again after a crash."""
    lease_s: float = 60.0
    """How long other processes leave a consumer alone whose handlers are running."""
    settle_s: float = 1.0
    """What moving a cursor may take after a handler used up the call's own time: else it would all come again."""
    first_delay_s: float = 1.0
    """Rest after the first failure; each further one doubles it …"""
    longest_delay_s: float = 300.0
    """… up to this."""
    attempt_count: int = 8
    """How often a built-in reaction is tried that fails for a reason nobody foresaw: for about two minutes."""
    immediate_s: float = 2.0
    """Most of a call's time spent on reacting to its own event; the worker does the rest."""


@dataclass(frozen=True)
class SessionPolicy:
    """What one session holds in mind."""

    capacity: int = 20
    """Items, unless the session asks for another number."""
    max_capacity: int = 200
    """Every change rewrites the whole row."""
    max_thread_count: int = 100
    """Open threads of one session."""
    shown_characters: int = 400
    """Most of an item's text that is shown; the memory itself has all of it."""
    max_notes_bytes: int = 256 * 1024
    """All notes of one session, held or set aside, in bytes of UTF-8: they end up in one episode."""


@dataclass(frozen=True)
class CompletionPolicy:
    """How closed episodes are completed: by whom it is left alone, and when it is tried again; times in seconds."""

    lease_s: float = 20.0
    """How long other workers leave an episode alone that one has taken: when that one dies, 30 s are still kept."""
    first_wait_s: float = 15.0
    """Rest after the first failure, so that a second try still ends within 30 s; each further one doubles it …"""
    longest_wait_s: float = 3600.0
    """… up to this."""
    writer_share: float = 0.6
    """Most of the time left that the writer may take; the rest is for what comes after."""
    finishing_share: float = 0.5
    """Share of a call's time in which no further episode is begun, so that the last one can be finished."""
    most_facts: int = 5
    """Facts learned from one episode, whatever the writer offers (reactive lifecycle, section 3)."""
    episode_limit: int = 20
    """Episodes completed in one go, so that events are delivered in between."""


@dataclass(frozen=True)
class WorkerPolicy:
    """When a worker looks for work; times in seconds."""

    poll_s: float = 5.0
    """Between two looks of a worker nobody wakes: work that was left by another process or has become due."""
    pass_s: float = 30.0
    """Most of one look's time."""
    finishing_share: float = 0.25
    """Share of one look in which no further agent is begun."""
    rest_s: float = 5.0
    """After a look that failed."""
    stop_s: float = 5.0
    """How long closing a heart, or the end of the interpreter, waits for a step that has begun."""


@dataclass(frozen=True)
class CensorPolicy:
    """When a censor fires and escalates; cosines of the default embedding space, calibrated in decision 0009."""

    escalation_threshold: int = 5
    """Activations after which a warning becomes a block (reactive lifecycle, section 4); a censor may have its own."""
    highest_threshold: int = 1_000_000
    same_similarity: float = 0.95
    """At or above, with no guard against it, two triggers say the same: the similarity at which facts are confirmed."""
    similarity_floor: float = 0.15
    """Cosine below which an action is not looked at closer; 2 % of the drawn actions that should fire lie there."""
    verb_weight: float = 0.70
    """What doing the same as the trigger's verb counts, in cosine."""
    coverage_weight: float = 0.75
    """What saying all of the trigger's other words counts, in cosine."""
    firing_closeness: float = 1.10
    """From here on an action is taken for what the trigger warns of."""
    most_parts: int = 12
    """How many of the things a long action does are embedded one by one; each costs about 5 ms."""
    trigger_bytes: int = 4 * 1024
    reason_bytes: int = 4 * 1024


MAX_CONTENT_BYTES = 32 * 1024
"""A fact is a statement, not a document: 32 KiB hold about 5,000 words."""
MAX_CONTEXT_BYTES = 64 * 1024
"""What was said around a fact, in bytes of UTF-8."""
MAX_DETAIL_BYTES = 1024 * 1024
"""The transcript of one episode, in bytes of UTF-8."""
MAX_RECALL_LIMIT = 200
"""A caller who wants more wants an export."""
DEFAULT_SESSION = "default"
"""The working memory of an agent that names no session."""
