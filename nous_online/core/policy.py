"""Thresholds and limits, each with its unit and its source; what they are fitted to is measured by a benchmark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

OnCredential = Literal["refuse", "hide", "keep"]


@dataclass(frozen=True)
class LearnPolicy:
    """When learning confirms, asks or stores; cosines of the default embedding space."""

    confirm_similarity: float = 0.95
    """At or above, and with no guard against it, two statements are the same without a judge (reactive lifecycle)."""
    same_similarity: float = 0.4
    """Below, a judge's `same` does not confirm: texts with vectors so far apart hardly mean the same."""
    sure_from: float = 0.9
    """Least confidence of a `same` that confirms. Below, both facts stay for the night, whose merge can be undone."""
    subject_similarity: float = 0.80
    """Above, two subjects are two spellings of one thing (reactive lifecycle, section 2)."""
    on_credential: OnCredential = "hide"
    """What to do with a password, key or token in a text: `refuse` raises, `hide` stores a mark in its place, `keep`
    stores it, so that every recall, export, snapshot and model sees it. Hidden text can't be restored, so only what has
    the form of a key, or is named a credential and looks like one, is hidden: tests/attacks/test_told_secrets.py."""
    most_memories: int = 1_000_000
    """Memories of one agent in any state: ten times as many as recall is measured with for one agent."""
    most_bytes: int = 4 * 1024**3
    """Bytes of their texts: 4 KiB for each of those memories, twelve times what facts of chats need."""
    source_trust: tuple[tuple[str, int], ...] = (
        ("web", 20),
        ("tool", 30),
        ("agent", 50),
        ("episode", 50),
        ("import", 50),
        ("user", 60),
        ("operator", 80),
    )
    """The default trust of each kind of source, from 0 to 100: pages and tools may repeat what somebody planted, so
    they are trusted less than the agent, and the agent less than its user. 20 is the value of docs/threats.md for what
    was read, 50 the value of every memory before trust depended on the source. A memory drawn from an episode has the
    trust of the episode."""
    neighbour_count: int = 20
    """How many of the nearest facts are compared, whatever their cosine (document 003)."""
    nominate_similarity: float = 0.1
    """Below, a judge is not asked about two statements, unless they share a subject, a slot or a key. Of 507 pairs
    whose second statement repeats, changes or ends the first, 99 % lie above, 98 % are among the 20 nearest of 738."""
    read_count: int = 6
    """Most of them that the built-in judge reads while the caller waits, at 2.5 ms each."""
    read_within: float = 0.06
    """Most that the cosine of one of them may be below that of the nearest for it to be read; shared words and a shared
    slot add to it. Then 2.6 facts are read for a statement of one person. In three sets not used for training the fact
    that a statement changes or repeats is among them in 94 %, as often as among the six nearest."""
    doubt_from: float = 0.1
    """Least probability, weighed against all neighbours, at which a fact is marked as perhaps replacing another. Of 184
    changes not used for training, among others of their hand, 83 % are marked or noticed; 19 of 100 statements mark
    something else; docs/decisions/0035."""


@dataclass(frozen=True)
class WritingPolicy:
    """What the offline writer extracts from a transcript, and how much of it."""

    summary_words: int = 148
    """Most words of a summary: 100 to 150 are required, and whole sentences seldom fill the last few."""
    unknown_language: float = 1.4
    """Factor for the length of a summary in a language without a word list: better too long than incomplete."""
    small_talk_share: float = 0.5
    """Share of words in points that name something, below which a talk is small talk, summarised in as many …"""
    least_summary_words: int = 25
    """… but in at least one good sentence …"""
    small_talk_summary: float = 0.4
    """… and in this share of its words: of 120 dialogues 0.61 of the numbers are then in the summary (0.49)."""
    compressed_words: int = 24
    """Most words of the one line (living memory: micro, about 20 tokens)."""
    title_words: tuple[int, int] = (5, 10)
    """Fewest and most words of a title (reactive lifecycle, section 3)."""
    most_answer_words: int = 50
    """Words of a turn above which it explains, drafts or pastes, in a talk with an assistant that uses no tool."""
    most_request_words: int = 150
    """Words of a user's turn above which it is pasted, in the session of an agent that uses tools, …"""
    dictated_words: int = 50
    """… unless its paragraphs have more words each …"""
    most_dictated: int = 600
    """… and all of it fewer."""
    most_facts: int = 12
    """Most facts of one episode: people who marked what to keep of 24 transcripts found 6 to 12 points in each, …"""
    first_facts: int = 2
    """… at first as many as this, …"""
    words_a_fact: int = 40
    """… and one for about this many words, …"""
    first_told_facts: int = 4
    """… or as many at first …"""
    words_a_told_fact: int = 12
    """… and one for this many of a chat with an assistant, in which people tell one thing after the other …"""
    most_told_facts: int = 24
    """… so that it has up to as many: in 38 chats of seven people they told 3 to 17 things they would ask for later."""
    told_share: float = 0.67
    """Share of a chat's words that are the user's, from which what an assistant says in few words is in no summary."""
    telling_pull: float = 0.8
    """How much more sentences weigh that say what was decided, caused or fixed: e to the power of it …"""
    telling_length_power: float = 0.3
    """… over this power of the sentence's words …"""
    seat: float = 10.0
    """Factor for a sentence that a summary takes before others: the best cause, and what an agent found or decided."""
    telling_from_share: float = 0.2
    """… where the summary has at least this share of the text (benchmark `summary`)."""
    least_told: int = 5
    """Content words of a sentence in the summary of a longer talk; shorter ones are mostly asides."""
    least_worth: float = 4.3
    """Least worth of a point that is kept: one point in ten of the 24 transcripts has less, most of small talk."""
    least_told_worth: float = 3.9
    """… of what a user tells an assistant, which is brief: of five such in 29 chats with less than that of other
    transcripts three were ones to keep ("Software ist Vectorworks")."""
    mended_share: float = 0.4
    """Share of the content words that a point and what mends it later have in common, of the shorter of the two."""
    least_keeping: float = 0.7
    """… and of what is said in a session with tools, in log odds of its own. Of repositories left out, readers keep of
    what an English agent finds above it 0.40 without a doubt and 0.81 with one, of what a user tells 0.19 and 0.49
    (decision 0037)."""
    most_censors: int = 3
    """Censor candidates of one failure: lessons, then what went wrong."""
    most_sentences: int = 400
    """Most sentences of one transcript that are embedded, at 3 to 5 ms each …"""
    most_embedded_characters: int = 12_000
    """… and most characters of them, so that a megabyte takes seconds."""
    most_told: int = 60
    """Most sentences, beyond `most_sentences`, in which a user says what holds longer or an agent what it found."""
    embedded_characters: int = 160
    """Characters of one sentence that are embedded: its topic is clear by then."""
    damping: float = 0.85
    """Damping factor of LexRank (Erkan and Radev 2004 use PageRank's 0.85)."""
    length_power: float = 0.5
    """The score of a sentence is divided by this power of its words, so that length alone does not win."""
    earliness: float = 1.0
    """The first sentence weighs e times the last: openings name the topic."""
    redundancy: float = 0.5
    """Share of its score that a sentence loses at cosine 1 to a chosen one (maximal marginal relevance, weight 0.5)."""
    checkable_bonus: float = 1.1
    """Factor for a sentence with a name, a number or a date: questions ask for those."""
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
    """Events between two moves of a cursor: at most this many are delivered again after a crash."""
    lease_s: float = 60.0
    """How long a consumer is leased by the process that runs its handlers."""
    settle_s: float = 1.0
    """Time for moving the cursor after a handler used up that of the call: otherwise all events would come again."""
    first_delay_s: float = 1.0
    """Pause after the first failure; each further one doubles it …"""
    longest_delay_s: float = 300.0
    """… up to this."""
    attempt_count: int = 8
    """Attempts at a built-in reaction that fails with an unexpected error: for about two minutes."""
    immediate_s: float = 2.0
    """Most seconds of a call spent on reacting to its own event; the worker does the rest."""


@dataclass(frozen=True)
class SessionPolicy:
    """Limits of the working memory of one session."""

    capacity: int = 20
    """Default number of items."""
    max_capacity: int = 200
    """Every change rewrites the whole row."""
    max_thread_count: int = 100
    """Open threads of one session."""
    shown_characters: int = 400
    """Most of an item's text that is shown; the memory itself has all of it."""
    max_notes_bytes: int = 256 * 1024
    """All notes of one session, held or set aside, in bytes of UTF-8: they are stored in one episode."""


@dataclass(frozen=True)
class CompletionPolicy:
    """When closed episodes are completed, and how often it is retried; times in seconds."""

    lease_s: float = 20.0
    """Lease of an episode by one worker: when that one dies, another still completes it within 30 s."""
    first_wait_s: float = 15.0
    """Pause after the first failure, so that a second attempt ends within 30 s; each further one doubles it …"""
    longest_wait_s: float = 3600.0
    """… up to this."""
    writer_share: float = 0.6
    """Share of the remaining time that the writer may take; the rest is for storing what it wrote."""
    finishing_share: float = 0.5
    """Share of a call's time at its end in which no further episode is begun, so that the last one is finished."""
    most_facts: int = 24
    """Facts learned from one episode, whatever the writer offers (reactive lifecycle, section 3)."""
    episode_limit: int = 20
    """Episodes completed in a row before events are delivered."""
    most_failures: int = 5
    """Attempts that may fail at one episode, outages not counted, before it is set aside: about four minutes."""


@dataclass(frozen=True)
class WorkerPolicy:
    """When a worker polls for work; times in seconds."""

    poll_s: float = 5.0
    """Between two polls of a worker that is not woken: for work of other processes, and work that falls due."""
    pass_s: float = 30.0
    """Longest time of one poll."""
    finishing_share: float = 0.25
    """Share of a poll at its end in which no further agent is begun."""
    rest_s: float = 5.0
    """Pause after a poll that failed."""
    uncounted: int = 1_000
    """Changes of words that wait to be counted, at which a worker does what a night would."""
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
    """Cosine below which an action is not compared further; 2 % of the drawn actions that should match lie there."""
    firing_likelihood: float = 0.5
    """Least likelihood at which an action in nearly the trigger's words matches (decision 0009)."""
    most_read: int = 3
    """Most triggers, the closest by cosine, that the pair reader reads with an action, and one more for each further
    part of it; each at 3 ms, or 6 with a condition."""
    firing_odds: float = 0.0
    """Least log odds at which any other action matches: those of the pair reader plus `words_share` of the words'."""
    firing_odds_of_act: float = 1.0
    """The same for an action that does what a trigger is about and says nothing of its condition: half the evidence is
    missing, so the rest has to be firmer."""
    words_share: float = 0.3
    blocking_odds: float = -1.5
    """Least log odds of the pair reader at which an action in nearly the trigger's words blocks; below, it warns."""
    like_similarity: float = 0.85
    """Least cosine at which an action is like one reported as a false alarm."""
    agent_trust: int = 50
    """The default trust of an agent's own memories: its reports count for no more."""
    most_exceptions: int = 100
    """Latest false alarms that a censor keeps; one with more is too broad, and a night archives it."""
    most_action_characters: int = 2000
    """Characters of an action that an activation stores."""
    most_parts: int = 12
    """Parts of a long action that are embedded one by one, at about 5 ms each."""
    trigger_bytes: int = 4 * 1024
    reason_bytes: int = 4 * 1024


@dataclass(frozen=True)
class ApiPolicy:
    """Limits of the HTTP interface; times in seconds."""

    most_body_bytes: int = 4 * 1024 * 1024
    """A transcript of a megabyte, with room for its JSON escapes."""
    longest_body_s: float = 10.0
    """How long a body may take to arrive; it does not count as a call in flight meanwhile."""
    most_bodies: int = 8
    """Bodies of one caller that are read at once; the others wait."""
    calls_per_minute: int = 1200
    """Of one key, in any sixty seconds; an agent in a conversation makes a few a second."""
    strangers_per_minute: int = 60
    """Calls without a valid key from one address, in any sixty seconds; those with one are counted apart."""
    most_in_flight: int = 64
    """Calls at once; more would only wait for a connection, and their deadlines would pass."""
    most_connections: int = 16
    most_of_an_agent: int = 4
    """Calls of one agent that are served at once, a quarter of the connections; the others wait."""
    most_waiting: int = 32
    """Calls of one agent that are served or wait, half of all in flight; more are rejected."""
    longest_deadline_s: float = 60.0
    """The longest deadline a caller may set."""
    night_deadline_s: float = 300.0
    """For a dry run or the report of a night: a separate process, which has to start first."""
    most_hearts: int = 256
    """Agents kept open; the least recently used one is closed."""
    key_memory_s: float = 5.0
    """How long a valid key is cached: a revoked one works for so long."""
    ready_memory_s: float = 2.0
    """How long an answer about readiness is cached, so that probes can't overload the embedder."""
    retry_after_s: int = 1
    drain_s: int = 10
    """How long calls in flight may take when the server stops."""


@dataclass(frozen=True)
class ContextPolicy:
    """How much of which memories a context shows; budgets in the tokens that `NOUS_TOKENIZER` counts."""

    budget: int = 8_000
    """Without a budget or a known frame (living memory, token efficiency strategy)."""
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
    """By frame, 3,000 to 12,000: a conversation needs little, planning much."""
    shares: tuple[float, float, float, float] = (0.25, 0.375, 0.25, 0.125)
    """Critical, relevant, background, index (living memory, token budget examples)."""
    debugging_shares: tuple[float, float, float, float] = (0.375, 0.3125, 0.1875, 0.125)
    """The same while debugging: known errors and their fixes need more room (living memory, scenario 2)."""
    recent_s: float = 24 * 3600.0
    """How long a failure is recent, in seconds (living memory, context assembly algorithm)."""
    tokens_an_answer: int = 60
    """One answer is recalled, for the question or the task, per this many tokens of the budget …"""
    least_answers: int = 100
    """… but at least so many, because short facts fit into a small budget, at about the cost of the usual one …"""
    most_answers: int = 400
    """… and at most so many, which limits the cost of a large budget."""
    answers_beside: int = 10
    """Answers for the open file, and for each other cue beside the first."""
    fixes_an_error: int = 3
    errors: int = 2
    """Latest errors that are looked up; each is a separate search."""
    least_score: float = 0.15
    """Score below which an answer is not relevant, however much room there is: 2 % of the evidence in LongMemEval, and
    of 475 questions about worded pairs, scores less, and 82 % and 55 % of the other answers."""
    nearest: int = 5
    """Answers in the index where none is relevant: a few show what kind of thing is known."""
    least_confidence: float = 0.35
    """Least probability of use at which a predicted memory is shown beside answers to a question or a task: memories
    that were found before and never cited have as much. Where only a file or a branch is given, a memory with less is
    shown if that signal supports it; frequent use alone is not enough."""
    least_fix_score: float = 0.3
    """Least score at which an answer counts as the fix of an error."""
    least_trust: int = 40
    """Least trust of a critical memory that is not pinned: web pages have 20."""
    predicted: int = 200
    """A few more than fit into the relevant tier of the usual budget."""
    pinned: int = 100
    contradictions: int = 20
    contradictions_shown: int = 200
    """Contradictions of shown memories: a fact in one is marked as doubtful."""
    censors: int = 20
    decisions: int = 20
    open_questions: int = 20
    failures: int = 5
    conventions: int = 60
    episodes: int = 12
    workflows: int = 12
    links: int = 20
    topics: int = 20
    """How many of each kind are read, which limits the cost of a context."""
    latest: int = 100
    """Latest facts, whose subjects are in the index where there is no cue."""


@dataclass(frozen=True)
class WorkflowPolicy:
    """When a sequence of steps is a workflow."""

    least_sessions: int = 3
    """Two may be chance; three sessions show a habit."""
    least_steps: int = 3
    """Two steps in a row say little."""
    most_steps: int = 12
    """A longer run is several workflows."""
    most_steps_read: int = 200
    """Of one session, the first."""
    most_steps_at_once: int = 20_000
    """Of all sessions together, the latest first; a second of work."""
    most_episodes: int = 500
    """Latest closed episodes that are read."""
    more_often: int = 2
    """A run inside a longer one is a workflow if it has this many times as many sessions."""
    naming_share: float = 0.6
    """Least share of the sessions whose titles have the word that names the workflow."""


MAX_CONTENT_BYTES = 32 * 1024
"""A fact is a statement, not a document: 32 KiB hold about 5,000 words."""
MAX_CONTEXT_BYTES = 64 * 1024
"""The text around a fact, in bytes of UTF-8."""
MAX_DETAIL_BYTES = 1024 * 1024
"""The transcript of one episode, in bytes of UTF-8."""
MAX_REASON_BYTES = 4 * 1024
"""Why somebody forgets, corrects, undoes or rules, in bytes of UTF-8."""
MAX_RECALL_LIMIT = 200
"""A caller who wants more wants an export."""
DEFAULT_SESSION = "default"
"""The working memory of an agent that names no session."""
