"""Numbers that are opinions, with their unit and where they come from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

OnCredential = Literal["refuse", "hide", "keep"]


@dataclass(frozen=True)
class LearnPolicy:
    """When learning confirms, asks or stores; cosines of the default embedding space."""

    confirm_similarity: float = 0.95
    """At or above, where nothing differs that could matter, nobody is asked (reactive lifecycle, section 1)."""
    same_similarity: float = 0.4
    """Below, no judge's `same` confirms: two vectors so far apart hardly say one thing, whatever a reader believes."""
    sure_from: float = 0.9
    """Confidence from which `same` confirms. Below, both stay and the night decides, whose merge can be undone."""
    subject_similarity: float = 0.80
    """Above, two subjects are the same thing spelled differently (reactive lifecycle, section 2)."""
    on_credential: OnCredential = "hide"
    """What becomes of a password, key or token in what is told: `refuse` raises, `hide` stores a mark in its place,
    `keep` stores it, and with it hands it to every recall, export, snapshot and model. What is hidden is gone, so it
    has the form of a key, or is named as a credential and looks like one: tests/attacks/test_told_secrets.py."""
    most_memories: int = 1_000_000
    """Memories of one agent in any state: ten times what recall is measured on for one agent."""
    most_bytes: int = 4 * 1024**3
    """Bytes of their texts: 4 KiB for each of so many memories, a dozen times what facts of chats take."""
    source_trust: tuple[tuple[str, int], ...] = (
        ("web", 20),
        ("tool", 30),
        ("agent", 50),
        ("episode", 50),
        ("import", 50),
        ("user", 60),
        ("operator", 80),
    )
    """How far each kind of source is trusted where nobody says, from 0 to 100: pages and tools may repeat what anybody
    planted, so they stand below the agent, and it below the user it works for. 20 is what docs/threats.md always gave
    to what was read rather than told, 50 what every memory had before trust followed its source. What is drawn from an
    episode is trusted as the episode is."""
    neighbour_count: int = 20
    """How many of the nearest facts are looked at, whatever their cosine (document 003)."""
    nominate_similarity: float = 0.1
    """Below, two statements are not put before a judge, unless they share a subject, a slot or a key. Of 507 pairs of
    which the second repeats, changes or ends the first 99 % lie above, and 98 % among the 20 nearest of 738."""
    read_count: int = 6
    """How many of them the built-in judge reads at most while the caller waits: 2.5 ms each."""
    read_within: float = 0.06
    """Cosine by which one of them may stand behind the nearest to be read, apart from what shared words and a shared
    slot are worth. Of what one person says 2.6 are read for a statement, and with 94 % of the changes and repeats in
    three hands that trained nothing the fact they are about; the six nearest hold as many."""
    doubt_from: float = 0.05
    """Chance of a change, among all that stand as near, from which a fact is noted to perhaps replace an earlier one.
    Of the changes in three hands that trained nothing 94 % are given it, of pairs that both hold 10 %, and of the
    statements of one person 11 % beside something else; docs/decisions/0029."""


@dataclass(frozen=True)
class WritingPolicy:
    """What the offline writer lifts out of a transcript, and how much of it."""

    summary_words: int = 148
    """Most words of a summary: 100 to 150 are asked for, and whole sentences seldom fill the last few."""
    unknown_language: float = 1.4
    """Factor for the words of a summary in a language whose words are not known: it is better to leave in too much."""
    small_talk_share: float = 0.5
    """Share of a talk's words in points that name something, below which it is small talk, told in as many words …"""
    least_summary_words: int = 25
    """… but never less than one good sentence."""
    compressed_words: int = 24
    """Most words of the one line (living memory: micro, about 20 tokens)."""
    title_words: tuple[int, int] = (5, 10)
    """Fewest and most words of a title (reactive lifecycle, section 3)."""
    most_answer_words: int = 50
    """Who says more in one go to an assistant that uses no tool, or as such a one, explains, drafts or pastes."""
    most_facts: int = 12
    """Facts of one episode: people who marked what to keep of 24 transcripts found 6 to 12 points in each, …"""
    words_a_fact: int = 40
    """… one for about so many words."""
    telling_pull: float = 0.8
    """How much more the words of a summary weigh that tell what was decided, caused and mended: e to its power …"""
    telling_length_power: float = 0.3
    """… over this power of the sentence's words …"""
    telling_from_share: float = 0.2
    """… where a summary has so much of the text: of more talk what it is about tells most (benchmark `summary`)."""
    least_worth: float = 5.3
    """What passes with the talk has less: one point in fifteen of the 24 transcripts, most of small talk."""
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
    reading_s: float = 12.0
    """How long a child process may read one text, in seconds: a megabyte of talk takes one, the worst text four."""
    most_readers: int = 4
    """Child processes that read texts at once; one of them stays when they are done."""


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
    most_facts: int = 12
    """Facts learned from one episode, whatever the writer offers (reactive lifecycle, section 3)."""
    episode_limit: int = 20
    """Episodes completed in one go, so that events are delivered in between."""
    most_failures: int = 5
    """Attempts that may fail at one episode, outages not counted, before it is set aside: about four minutes."""


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
    unlike_similarity: float = 0.30
    """Cosine below which an action that does not say the trigger's verb cannot fire, whatever else it says."""
    firing_likelihood: float = 0.5
    """From here on what is nearly the trigger's own words fires; the weights are fitted to it (decision 0009)."""
    most_read: int = 4
    """So many of the likeliest triggers are read together with the action, at about 2 ms each."""
    firing_odds: float = -0.5
    """Log odds of the pair reader, and those of the words times `words_share`, from which anything else fires."""
    words_share: float = 0.8
    like_similarity: float = 0.85
    """Cosine from which an action is like one that was reported as a false alarm."""
    agent_trust: int = 50
    """What an agent's own memories are trusted unless told otherwise: its reports count for no more."""
    most_exceptions: int = 100
    """False alarms a censor remembers, the latest; one with more is too wide, and a night retires it."""
    most_action_characters: int = 2000
    """How much of an action an activation keeps."""
    most_parts: int = 12
    """How many of the things a long action does are embedded one by one; each costs about 5 ms."""
    trigger_bytes: int = 4 * 1024
    reason_bytes: int = 4 * 1024


@dataclass(frozen=True)
class ApiPolicy:
    """What the HTTP interface lets through; times in seconds."""

    most_body_bytes: int = 4 * 1024 * 1024
    """A transcript of a megabyte, with room for how JSON writes it."""
    longest_body_s: float = 10.0
    """How long a body may take to arrive; nobody holds a place of the others meanwhile."""
    most_bodies: int = 8
    """Bodies of one caller that are read at once; its others wait their turn."""
    calls_per_minute: int = 1200
    """Of one key, in any sixty seconds; an agent that talks makes a few a second."""
    strangers_per_minute: int = 60
    """Calls without a good key from one address, in any sixty seconds; they never hold a good key up."""
    most_in_flight: int = 64
    """Calls at once; more would only wait for a connection, and those that wait have a deadline too."""
    most_connections: int = 16
    most_of_an_agent: int = 4
    """Calls of one agent that are served at once, a quarter of the connections; its others wait their turn."""
    most_waiting: int = 32
    """Calls of one agent that are served or wait, half of all under way; more are told to come again."""
    longest_deadline_s: float = 60.0
    """What a caller may ask for."""
    night_deadline_s: float = 300.0
    """For a dry run, or the report, of a night: a program of its own, which has to start first."""
    most_hearts: int = 256
    """Agents kept open; the one not spoken for longest makes room."""
    key_memory_s: float = 5.0
    """How long a good key is not looked up again: what a revoked one may still do."""
    ready_memory_s: float = 2.0
    """How long an answer about readiness stands, so that nobody can wear the embedder out by asking."""
    retry_after_s: int = 1
    drain_s: int = 10
    """How long calls that have begun may take when the server is told to stop."""


@dataclass(frozen=True)
class ContextPolicy:
    """How much an agent is shown of its memories, and of what; budgets in the tokens `NOUS_TOKENIZER` names."""

    budget: int = 8_000
    """Where neither a budget nor a known frame is told (living memory, token efficiency strategy)."""
    most_budget: int = 200_000
    budgets: tuple[tuple[str, int], ...] = (
        ("conversation", 3_000),
        ("question", 4_000),
        ("writing", 6_000),
        ("task", 8_000),
        ("debug", 8_000),
        ("debugging", 8_000),
        ("review", 8_000),
        ("feature", 8_000),
        ("decision", 10_000),
        ("research", 12_000),
        ("planning", 12_000),
    )
    """By frame, 3,000 to 12,000: a talk needs little, a plan has to know much at once."""
    shares: tuple[float, float, float, float] = (0.25, 0.375, 0.25, 0.125)
    """Critical, relevant, background, index (living memory, token budget examples)."""
    debugging_shares: tuple[float, float, float, float] = (0.375, 0.3125, 0.1875, 0.125)
    """The same while debugging: known errors and their fixes need more room (living memory, scenario 2)."""
    recent_s: float = 24 * 3600.0
    """How long a failure is recent, in seconds (living memory, context assembly algorithm)."""
    tokens_an_answer: int = 60
    """So many answers are recalled for the question or the task that each could have as many tokens of the budget …"""
    least_answers: int = 100
    """… but never fewer, since short facts leave room in a small budget: about what the usual budget costs …"""
    most_answers: int = 400
    """… and never more: the bound on what a large budget costs."""
    answers_beside: int = 10
    """Answers for the file that is open, and for what else is told beside a question."""
    fixes_an_error: int = 3
    errors: int = 2
    """Errors that are looked up, the latest; each is a search of its own."""
    least_score: float = 0.15
    """Score below which an answer is not relevant, however much room there is: 2 percent of the evidence of
    LongMemEval and of 475 questions about worded pairs score less, and 82 and 55 percent of what else is found."""
    nearest: int = 5
    """Answers the index points at where nothing is relevant: a handful shows what kind of thing is known at all."""
    least_confidence: float = 0.35
    """Chance of being used below which nothing that was merely predicted is shown beside what answers a question or a
    task: as likely is what was found before and never cited. Where a file or a branch is all that was told, less will
    do if something of that speaks for it; how often it was used is not enough."""
    least_fix_score: float = 0.3
    """Score of a recall from which an answer is a fix of an error, and below which it is not shown for one."""
    least_trust: int = 40
    """Trust below which nothing becomes critical unless it is pinned: 20 is for what was read rather than told."""
    predicted: int = 200
    """A few more than the relevant tier of the usual budget has lines for."""
    pinned: int = 100
    contradictions: int = 20
    contradictions_shown: int = 200
    """Of what may be shown: whatever is in one is never told as if it were certain."""
    censors: int = 20
    decisions: int = 20
    open_questions: int = 20
    failures: int = 5
    conventions: int = 60
    episodes: int = 12
    workflows: int = 12
    links: int = 20
    topics: int = 20
    """How many of each kind are looked at: the bounds on what a context costs."""
    latest: int = 100
    """The latest facts, whose subjects the index points at where nothing was told."""


@dataclass(frozen=True)
class WorkflowPolicy:
    """When steps that followed one another are a workflow."""

    least_sessions: int = 3
    """Twice may be chance; three sessions are what habits are told by."""
    least_steps: int = 3
    """Two steps in a row say little."""
    most_steps: int = 12
    """A longer run is several workflows."""
    most_steps_read: int = 200
    """Of one session, the first."""
    most_steps_at_once: int = 20_000
    """Of all sessions together, those of the latest; a second of work."""
    most_episodes: int = 500
    """Closed episodes that are looked at, the latest."""
    more_often: int = 2
    """A run inside a longer one is a workflow of its own when so many times as many sessions hold it."""
    naming_share: float = 0.6
    """Share of the sessions in whose titles a word stands that names the workflow."""


MAX_CONTENT_BYTES = 32 * 1024
"""A fact is a statement, not a document: 32 KiB hold about 5,000 words."""
MAX_CONTEXT_BYTES = 64 * 1024
"""What was said around a fact, in bytes of UTF-8."""
MAX_DETAIL_BYTES = 1024 * 1024
"""The transcript of one episode, in bytes of UTF-8."""
MAX_REASON_BYTES = 4 * 1024
"""Why somebody forgets, corrects, undoes or rules, in bytes of UTF-8."""
MAX_RECALL_LIMIT = 200
"""A caller who wants more wants an export."""
DEFAULT_SESSION = "default"
"""The working memory of an agent that names no session."""
