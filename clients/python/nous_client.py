"""A client of the REST interface of Nous 0.1.0, in one file that needs nothing but Python 3.11.

Written by `python -m clients.generate`: change that, not this.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal, NotRequired, TypedDict, Unpack, cast
from urllib.error import HTTPError
from urllib.parse import quote, urlencode
from urllib.request import Request, urlopen

HEADERS = {
    "agent": "X-Nous-Agent",
    "deadline": "X-Nous-Deadline",
    "session": "X-Nous-Session",
    "idempotency_key": "Idempotency-Key",
}


class CallOptions(TypedDict, total=False):
    """What holds for one call, or for all of a client."""

    agent: str
    """For an administrator's key: the agent to act for."""
    deadline: float
    """Seconds after which the call ends with an answer or a problem."""
    session: str
    idempotency_key: str
    """Makes a retry safe."""


class NousProblem(Exception):
    """What a failed call was refused for."""

    def __init__(self, status: int, problem: Mapping[str, Any], request_id: str | None) -> None:
        super().__init__(problem.get("detail") or problem.get("title") or f"HTTP {status}")
        self.status, self.problem, self.request_id = status, problem, request_id


class ActivateBody(TypedDict):
    """Where a procedure is put to use."""

    session_id: NotRequired[str]


class Activation(TypedDict):
    """A censor that an action triggered, and how; the severity is the one for this action."""

    id: str | None
    censor: Censor
    severity: str
    match: Literal["literal", "near", "meaning"]
    reason: str
    message: str
    similarity: float | None
    part: str


class Artifact(TypedDict):
    """Something an episode produced or was about: a commit, a pull request, a decision record or a file."""

    kind: str
    reference: str


class ArtifactBody(TypedDict):
    """Something an episode produced or was about."""

    kind: Literal["commit", "pr", "adr", "file"]
    reference: str


class ArtifactList(TypedDict):
    """What an episode produced or was about."""

    artifacts: list[Artifact]


class AssembleBody(TypedDict):
    """For what a context is wanted, and how large it may be."""

    signals: NotRequired[SignalsBody | None]
    budget: NotRequired[int | None]
    frame: NotRequired[str | None]
    query: NotRequired[str | None]
    active_censors: NotRequired[list[str] | None]
    at: NotRequired[str | None]
    session_id: NotRequired[str | None]
    user_id: NotRequired[str | None]
    project_id: NotRequired[str | None]


class Censor(TypedDict):
    """Something not to do: its trigger, the reason, and the severity."""

    id: str
    state: str
    trigger: str
    reason: str
    severity: Literal["warn", "block", "absolute"]
    is_literal: bool
    activation_count: int
    false_positive_count: int
    escalation_threshold: int
    last_activated_at: str | None
    learned_from_decision_id: str | None
    learned_from_episode_id: str | None
    source: str | None
    source_kind: Literal["user", "agent", "tool", "web", "episode", "import", "operator"]
    trust: int
    is_pinned: bool
    learned_at: str
    expires_at: str | None
    encoded_frame: str | None
    encoded_censors: list[str] | None
    scope: Literal["private", "project", "system"]
    user_id: str | None
    project_id: str | None
    rank_weight: float
    forgiven_count: int
    is_escalated: bool
    exceptions: list[dict[str, Any]]
    row_version: int
    is_forgotten: NotRequired[bool]


class CensorBody(TypedDict):
    """Something to beware of."""

    trigger: str
    reason: str
    severity: NotRequired[Literal["warn", "block", "absolute"]]
    is_literal: NotRequired[bool]
    escalation_threshold: NotRequired[int | None]
    learned_from_decision_id: NotRequired[str | None]
    learned_from_episode_id: NotRequired[str | None]
    expires_at: NotRequired[str | None]
    scope: NotRequired[Literal["private", "project", "system"]]
    user_id: NotRequired[str | None]
    project_id: NotRequired[str | None]
    source: NotRequired[str | None]
    source_kind: NotRequired[Literal["user", "agent", "tool", "web", "episode", "import", "operator"]]
    trust: NotRequired[int | None]
    is_pinned: NotRequired[bool]
    learned_at: NotRequired[str | None]
    frame: NotRequired[str | None]
    active_censors: NotRequired[list[str] | None]


class CensorChangesBody(TypedDict):
    """What changes about a censor; what is not named stays."""

    note: NotRequired[str | None]
    severity: NotRequired[Literal["warn", "block", "absolute"]]
    escalation_threshold: NotRequired[int | None]
    expires_at: NotRequired[str | None]
    is_pinned: NotRequired[bool]


class CensorList(TypedDict):
    """The active censors of an agent."""

    censors: list[Censor]


class ChangeList(TypedDict):
    """Every change of a memory, the latest first."""

    changes: list[PastChange]


class CheckAnswer(TypedDict):
    """What speaks against an action."""

    is_allowed: bool
    is_blocked: bool
    severity: str | None
    activations: list[Activation]


class CheckBody(TypedDict):
    """An action about to be done."""

    action: str
    frame: NotRequired[str | None]
    at: NotRequired[str | None]
    is_recorded: NotRequired[bool]
    session_id: NotRequired[str | None]
    user_id: NotRequired[str | None]
    project_id: NotRequired[str | None]


class CloseBody(TypedDict):
    """The end of an episode."""

    artifacts: NotRequired[list[ArtifactBody] | None]
    title: NotRequired[str | None]
    summary: NotRequired[str | None]
    lessons_learned: NotRequired[list[str] | None]
    outcome: NotRequired[Literal["success", "failure", "partial", "ongoing"] | None]
    surprise_level: NotRequired[float | None]
    participants: NotRequired[list[str] | None]
    tags: NotRequired[list[str] | None]
    decision_ids: NotRequired[list[str] | None]
    frame: NotRequired[str | None]
    active_censors: NotRequired[list[str] | None]
    append: NotRequired[str | None]
    ended_at: NotRequired[str | None]


class CloseThreadBody(TypedDict):
    """Which thread is done."""

    thread: str | int


class ConfirmBody(TypedDict):
    """Who says that a fact still holds."""

    source: NotRequired[str | None]


class ConsolidateBody(TypedDict):
    """Which night is to be run, and whether in earnest."""

    dry_run: NotRequired[bool]
    night: NotRequired[str | None]


class ContextAnswer(TypedDict):
    """A context ready to be put before a model."""

    context: str
    token_count: int
    budget: int
    tiers: Tiers
    tokens: dict[str, int]
    left_out: dict[str, int]
    counting: str
    recall_id: str
    lines: list[ContextLine]
    is_by_words: bool


class ContextLine(TypedDict):
    """One line of a context, and why it is there."""

    tier: Literal["critical", "relevant", "background", "index"]
    kind: str
    memory_ids: list[str]
    level: Literal["full", "summary", "compressed", "index"]
    text: str
    tokens: int
    reason: str


class Contradiction(TypedDict):
    """Two facts that can't both be true; `memory_a` is the one with the smaller id, which has no meaning."""

    id: str
    memory_a: str
    memory_b: str
    detected_at: str
    status: str
    resolution: str | None
    resolved_at: str | None
    note: str | None
    judgement: dict[str, Any] | None
    a: Fact
    b: Fact
    proposed: NotRequired[dict[str, Any] | None]


class ContradictionList(TypedDict):
    """Contradictions, the oldest first."""

    contradictions: list[Contradiction]


class CorrectionBody(TypedDict):
    """What is known about a memory besides its text; what is not named stays, null clears what may be absent."""

    reason: NotRequired[str | None]
    tags: NotRequired[list[str] | None]
    subject: NotRequired[str | None]
    category: NotRequired[str | None]
    confidence: NotRequired[float | None]
    valid_from: NotRequired[str | None]
    valid_to: NotRequired[str | None]
    is_pinned: NotRequired[bool | None]


class Decision(TypedDict):
    """A decision of the agent, with its rationale, status and outcome."""

    id: str
    title: str
    rationale: str | None
    confidence: float | None
    status: str
    episode_id: str | None
    session_id: str | None
    files: list[str]
    tags: list[str]
    outcome: str | None
    decided_at: str
    resolved_at: str | None
    row_version: int
    reference: NotRequired[str | None]


class DecisionBody(TypedDict):
    """What was decided, and why."""

    reference: NotRequired[str | None]
    title: str
    rationale: NotRequired[str | None]
    confidence: NotRequired[float | None]
    files: NotRequired[list[str] | None]
    tags: NotRequired[list[str] | None]
    session_id: NotRequired[str | None]
    episode_id: NotRequired[str | None]
    decided_at: NotRequired[str | None]


class DecisionList(TypedDict):
    """Decisions, the latest first."""

    decisions: list[Decision]


class DeferredBody(TypedDict):
    """Many facts to be stored as they are."""

    facts: list[DeferredFactBody]


class DeferredFactBody(TypedDict):
    """One of many facts."""

    content: str
    idempotency_key: NotRequired[str | None]
    subject: NotRequired[str | None]
    key: NotRequired[str | None]
    category: NotRequired[str | None]
    tags: NotRequired[list[str] | None]
    context: NotRequired[str | None]
    confidence: NotRequired[float]
    valid_from: NotRequired[str | None]
    valid_to: NotRequired[str | None]
    source_episode_id: NotRequired[str | None]
    source_decision_id: NotRequired[str | None]
    session_id: NotRequired[str | None]
    scope: NotRequired[Literal["private", "project", "system"]]
    user_id: NotRequired[str | None]
    project_id: NotRequired[str | None]
    source: NotRequired[str | None]
    source_kind: NotRequired[Literal["user", "agent", "tool", "web", "episode", "import", "operator"]]
    trust: NotRequired[int | None]
    is_pinned: NotRequired[bool]
    learned_at: NotRequired[str | None]
    frame: NotRequired[str | None]
    active_censors: NotRequired[list[str] | None]


class Doubt(TypedDict):
    """A fact and an earlier one that it perhaps replaces; `keep_both` or `supersede_fact` decides it."""

    earlier: Fact
    later: Fact
    resolution: NotRequired[str | None]
    note: NotRequired[str | None]
    resolved_at: NotRequired[str | None]


class DoubtList(TypedDict):
    """Facts that perhaps replace earlier ones, the oldest first."""

    doubts: list[Doubt]


class EndBody(TypedDict):
    """What is to be kept of a session that ends."""

    outcome: NotRequired[Literal["success", "failure", "partial", "ongoing"] | None]
    lessons_learned: NotRequired[list[str] | None]
    scope: NotRequired[Literal["private", "project", "system"]]
    user_id: NotRequired[str | None]
    project_id: NotRequired[str | None]


class Episode(TypedDict):
    """Something that happened: its text, participants and outcome."""

    id: str
    state: str
    session_id: str | None
    title: str | None
    detail: str | None
    summary: str | None
    compressed: str | None
    compression_tier: str
    started_at: str
    ended_at: str | None
    duration_seconds: int | None
    completed_at: str | None
    completion_note: str | None
    decision_ids: list[str]
    participants: list[str]
    tags: list[str]
    frame_used: str | None
    encoded_censors: list[str] | None
    procedures_activated: list[str]
    outcome: Literal["success", "failure", "partial", "ongoing"] | None
    surprise_level: float | None
    lessons_learned: list[str]
    source: str | None
    source_kind: Literal["user", "agent", "tool", "web", "episode", "import", "operator"]
    trust: int
    is_pinned: bool
    scope: Literal["private", "project", "system"]
    user_id: str | None
    project_id: str | None
    rank_weight: float
    row_version: int
    is_forgotten: NotRequired[bool]


class EventBody(TypedDict):
    """Something that happened elsewhere."""

    name: str
    payload: NotRequired[dict[str, Any]]
    memory_id: NotRequired[str | None]


class Fact(TypedDict):
    """A statement the agent learned, with its present state."""

    id: str
    state: str
    content: str
    subject: str | None
    slot: str | None
    key: str | None
    category: str | None
    tags: list[str]
    confidence: float
    source: str | None
    source_kind: Literal["user", "agent", "tool", "web", "episode", "import", "operator"]
    source_episode_id: str | None
    source_decision_id: str | None
    sources: list[str]
    trust: int
    is_pinned: bool
    learned_at: str
    last_confirmed_at: str | None
    confirmation_count: int
    superseded_by: str | None
    succession: str | None
    valid_from: str | None
    valid_to: str | None
    contradiction_status: str
    encoded_frame: str | None
    encoded_censors: list[str] | None
    scope: Literal["private", "project", "system"]
    user_id: str | None
    project_id: str | None
    rank_weight: float
    row_version: int
    is_forgotten: NotRequired[bool]
    perhaps_replaces: NotRequired[list[str]]


class FactBody(TypedDict):
    """A fact to be learned."""

    content: str
    replaces: NotRequired[list[str] | None]
    subject: NotRequired[str | None]
    key: NotRequired[str | None]
    category: NotRequired[str | None]
    tags: NotRequired[list[str] | None]
    context: NotRequired[str | None]
    confidence: NotRequired[float]
    valid_from: NotRequired[str | None]
    valid_to: NotRequired[str | None]
    source_episode_id: NotRequired[str | None]
    source_decision_id: NotRequired[str | None]
    session_id: NotRequired[str | None]
    scope: NotRequired[Literal["private", "project", "system"]]
    user_id: NotRequired[str | None]
    project_id: NotRequired[str | None]
    source: NotRequired[str | None]
    source_kind: NotRequired[Literal["user", "agent", "tool", "web", "episode", "import", "operator"]]
    trust: NotRequired[int | None]
    is_pinned: NotRequired[bool]
    learned_at: NotRequired[str | None]
    frame: NotRequired[str | None]
    active_censors: NotRequired[list[str] | None]


class FactCounts(TypedDict):
    """How many facts there are in each state."""

    counts: dict[str, int]


class FactList(TypedDict):
    """Facts, the latest first."""

    facts: list[Fact]


class FalsePositiveBody(TypedDict):
    """Which activation of a censor was wrong, and why."""

    activation_id: NotRequired[str | None]
    action: NotRequired[str | None]
    note: NotRequired[str | None]
    source_kind: NotRequired[Literal["agent", "user"]]


class FeedbackAnswer(TypedDict):
    """How much of the feedback was news."""

    cited: int
    ignored: int


class FeedbackBody(TypedDict):
    """What of a recall, or of a context, was used and what was of no use."""

    cited: NotRequired[list[str]]
    ignored: NotRequired[list[str]]


class FieldError(TypedDict):
    """One place of a request that has to be mended."""

    where: str
    message: str


class FocusBody(TypedDict):
    """What a session is about now."""

    task: NotRequired[str | None]
    frame: NotRequired[str | None]
    active_censors: NotRequired[list[str] | None]
    capacity: NotRequired[int | None]


class ForgetBody(TypedDict):
    """Why a memory is to be forgotten."""

    reason: str


class Forgotten(TypedDict):
    """A forgotten memory, and the superseded facts that stay out of recall with it."""

    memory: Fact | Episode | Procedure | Censor
    merged: list[str]
    replaced: list[str]


class FoundMemory(TypedDict):
    """A candidate of any kind, with the two scores the database gave it."""

    id: str
    kind: str
    content: str
    subject: str | None
    category: str | None
    tags: list[str]
    confidence: float | None
    learned_at: str
    said_at: str
    valid_from: str | None
    valid_to: str | None
    superseded_by: str | None
    contradiction_status: str
    encoded_frame: str | None
    summary: str | None
    compressed: str | None
    index_word: str | None
    state: str
    source: str | None
    source_kind: str
    scope: str
    user_id: str | None
    project_id: str | None
    trust: int
    is_pinned: bool
    encoded_censors: list[str] | None
    rank_weight: float
    dense: float
    lexical: float


class FullText(TypedDict):
    """The most detailed text of an episode that still exists, and where it is stored."""

    episode_id: str
    title: str | None
    text: str
    level: Literal["detail", "summary", "compressed", "title"]
    is_cold: bool
    purge_after: str | None


class Health(TypedDict):
    """The process lives."""

    status: NotRequired[Literal["ok"]]


class HealthCheck(TypedDict):
    """The result of one check: its name, whether it passed, and what was found or is to be done."""

    name: str
    is_ok: bool
    message: str


class Held(TypedDict):
    """One entry of a working memory as it is shown."""

    kind: str
    id: str
    text: str
    relevance: float
    loaded_at: str
    state: str
    superseded_by: NotRequired[str | None]


class KeepBothBody(TypedDict):
    """Which earlier fact stays beside the later one, and why."""

    earlier_id: str
    reason: NotRequired[str | None]


class Learned(TypedDict):
    """The result of learning: `action`, the memory stored or confirmed, the fact it was compared with, and why."""

    action: Literal["stored", "confirmed", "superseded"]
    memory: Fact
    reason: str
    match: NotRequired[Neighbour | None]
    contradicts: NotRequired[list[Neighbour]]
    near: NotRequired[list[Near]]
    forgotten: NotRequired[str | None]
    hidden: NotRequired[int]


class Links(TypedDict):
    """Where everything is."""

    name: str
    version: str
    openapi: str
    health: str
    ready: str
    metrics: str
    endpoints: list[str]


class ListedMemory(TypedDict):
    """A memory of any kind as a list shows it."""

    kind: str
    id: str
    state: str
    text: str
    about: str | None
    at: str
    trust: int
    is_pinned: bool
    is_forgotten: bool
    source: str | None
    user_id: str | None
    project_id: str | None
    confirmation_count: int
    begins_at: str | None


class LoadBody(TypedDict):
    """What is taken into working memory."""

    procedure_id: NotRequired[str | None]
    memory_ids: NotRequired[list[str] | None]
    note: NotRequired[str | None]
    relevance: NotRequired[float | None]


class MemoryAnswer(TypedDict):
    """A memory of any kind."""

    memory: Fact | Episode | Procedure | Censor


class MemoryList(TypedDict):
    """Memories, the latest first."""

    memories: list[ListedMemory]


class Near(TypedDict):
    """An active fact near a new statement; `similarity` is their cosine, `verdict` a judge's."""

    fact: Fact
    similarity: float
    verdict: str | None
    reason: str | None
    suggestion: str | None


class Neighbour(TypedDict):
    """A stored fact near a new statement; `similarity` is their cosine."""

    fact: Fact
    similarity: float


class NewWebhook(TypedDict):
    """A webhook just added, and the secret its receiver needs, shown this once."""

    webhook: Webhook
    secret: str


class NotUndone(TypedDict):
    """A memory that still holds what the source said."""

    memory_id: str
    reason: str


class OutcomeBody(TypedDict):
    """How it went."""

    is_success: bool
    note: NotRequired[str | None]


class PastChange(TypedDict):
    """One event of a memory's history: who changed it, why, when, and the changed columns before and after."""

    id: int
    memory_kind: str
    memory_id: str
    action: str
    from_state: str
    to_state: str
    version_before: int
    version_after: int
    before: dict[str, Any]
    after: dict[str, Any]
    actor: str
    reason: str
    effective_at: str
    recorded_at: str
    night: str | None
    run_id: str | None
    proposal_id: str | None
    undoes: int | None


class Planned(TypedDict):
    """What a night would do, counted in its plan."""

    night: str
    deduped: int
    superseded: int
    compressed: int
    forgotten: int
    contradictions_found: int
    promoted: int
    demoted: int
    linked: int
    shared: int
    censors_retired: int
    procedures_flagged: int
    is_success: bool
    failures: list[str]
    notices: list[str]
    plan_hash: str
    was_applied: NotRequired[bool]


class PredictBody(TypedDict):
    """What was seen: the file that was opened, or more."""

    file_opened: NotRequired[str | None]
    signals: NotRequired[SignalsBody | None]
    session_id: NotRequired[str | None]
    limit: NotRequired[int]
    user_id: NotRequired[str | None]
    project_id: NotRequired[str | None]
    at: NotRequired[str | None]


class Predicted(TypedDict):
    """A memory that is likely to be used, with its probability and the reasons."""

    memory_id: str
    kind: str
    confidence: float
    reasons: list[str]
    is_bearing: NotRequired[bool]


class PredictionAnswer(TypedDict):
    """What is likely to be wanted in a session, the likeliest first."""

    session_id: str
    predicted_memories: list[Predicted]
    confidence: float


class Problem(TypedDict):
    """A failure, in the members of RFC 9457."""

    type: str
    title: str
    status: int
    detail: str
    instance: str
    errors: NotRequired[list[FieldError] | None]


class Procedure(TypedDict):
    """How something is done: a K-line of three bands, a workflow of steps, or a pattern with a template."""

    id: str
    state: str
    name: str
    domain: str | None
    kind: Literal["k_line", "workflow", "pattern"]
    goals: list[str]
    core_patterns: list[str]
    core_tools: list[str]
    core_concepts: list[str]
    implementation_notes: list[str]
    steps: list[Any]
    template: Any
    trigger: str | None
    compressed: str | None
    activation_count: int
    success_count: int
    failure_count: int
    last_activated_at: str | None
    related_procedures: list[str]
    related_decision_ids: list[str]
    censors: list[str]
    tags: list[str]
    review_reason: str | None
    source: str | None
    source_kind: Literal["user", "agent", "tool", "web", "episode", "import", "operator"]
    trust: int
    is_pinned: bool
    learned_at: str
    encoded_frame: str | None
    encoded_censors: list[str] | None
    scope: Literal["private", "project", "system"]
    user_id: str | None
    project_id: str | None
    rank_weight: float
    row_version: int
    is_forgotten: NotRequired[bool]


class ProcedureBody(TypedDict):
    """How something is done."""

    steps: NotRequired[list[str | StepBody] | None]
    template: NotRequired[dict[str, Any] | None]
    hint: NotRequired[str | None]
    name: str
    kind: NotRequired[Literal["k_line", "workflow", "pattern"]]
    domain: NotRequired[str | None]
    goals: NotRequired[list[str] | None]
    core_patterns: NotRequired[list[str] | None]
    core_tools: NotRequired[list[str] | None]
    core_concepts: NotRequired[list[str] | None]
    implementation_notes: NotRequired[list[str] | None]
    trigger: NotRequired[str | None]
    related_procedures: NotRequired[list[str] | None]
    related_decision_ids: NotRequired[list[str] | None]
    censors: NotRequired[list[str] | None]
    tags: NotRequired[list[str] | None]
    scope: NotRequired[Literal["private", "project", "system"]]
    user_id: NotRequired[str | None]
    project_id: NotRequired[str | None]
    source: NotRequired[str | None]
    source_kind: NotRequired[Literal["user", "agent", "tool", "web", "episode", "import", "operator"]]
    trust: NotRequired[int | None]
    is_pinned: NotRequired[bool]
    learned_at: NotRequired[str | None]
    frame: NotRequired[str | None]
    active_censors: NotRequired[list[str] | None]


class ProcedureList(TypedDict):
    """Procedures, the best first."""

    procedures: list[Procedure]


class Readiness(TypedDict):
    """Whether calls can be served now, and the checks that decide it."""

    is_ready: bool
    checks: list[HealthCheck]


class ReasonBody(TypedDict):
    """Why something is done to a memory."""

    reason: NotRequired[str | None]


class RecallAnswer(TypedDict):
    """The answers of a recall, best first."""

    recall_id: str
    memories: list[Remembered]
    confidence: float
    is_confident: bool
    is_by_words: bool


class RecallBody(TypedDict):
    """A question to the memory."""

    query: str
    limit: NotRequired[int]
    min_score: NotRequired[float | None]
    kinds: NotRequired[list[Literal["fact", "episode", "procedure", "censor"]] | None]
    detail: NotRequired[Literal["full", "summary", "compressed", "index"]]
    frame: NotRequired[str | None]
    active_censors: NotRequired[list[str] | None]
    as_of: NotRequired[str | None]
    session_id: NotRequired[str | None]
    user_id: NotRequired[str | None]
    project_id: NotRequired[str | None]


class RecordBody(TypedDict):
    """An episode that is over, in one call."""

    artifacts: NotRequired[list[ArtifactBody] | None]
    duration_seconds: NotRequired[int | None]
    detail: NotRequired[str | None]
    title: NotRequired[str | None]
    summary: NotRequired[str | None]
    lessons_learned: NotRequired[list[str] | None]
    outcome: NotRequired[Literal["success", "failure", "partial", "ongoing"] | None]
    surprise_level: NotRequired[float | None]
    participants: NotRequired[list[str] | None]
    tags: NotRequired[list[str] | None]
    decision_ids: NotRequired[list[str] | None]
    frame: NotRequired[str | None]
    active_censors: NotRequired[list[str] | None]
    scope: NotRequired[Literal["private", "project", "system"]]
    user_id: NotRequired[str | None]
    project_id: NotRequired[str | None]
    source: NotRequired[str | None]
    source_kind: NotRequired[Literal["user", "agent", "tool", "web", "episode", "import", "operator"]]
    trust: NotRequired[int | None]
    is_pinned: NotRequired[bool]
    session_id: NotRequired[str | None]
    started_at: NotRequired[str | None]
    ended_at: NotRequired[str | None]


class RecordStepBody(TypedDict):
    """A step that was done."""

    name: str
    detail: NotRequired[str | None]
    session_id: NotRequired[str | None]


class Remembered(TypedDict):
    """One answer of a recall: the text to show, why it stands where it stands, and the whole memory."""

    id: str
    kind: str
    text: str
    score: float
    parts: ScoreParts
    memory: FoundMemory
    put_before: str | None
    contradicted_by: list[str]
    begins_on: str | None
    changed_by: list[str]


class ResolutionBody(TypedDict):
    """What became of a decision."""

    status: Literal["succeeded", "failed", "abandoned"]
    outcome: NotRequired[str | None]


class RestoreBody(TypedDict):
    """Why a memory is brought back, and how far."""

    reason: NotRequired[str | None]
    is_active: NotRequired[bool]


class RulingBody(TypedDict):
    """How a contradiction ends: a `resolution`, or `keep`, the fact that wins."""

    resolution: NotRequired[Literal["a_wins", "b_wins", "both_valid", "merged", "same"] | None]
    keep: NotRequired[str | None]
    note: NotRequired[str | None]
    merged_into: NotRequired[str | None]


class ScoreParts(TypedDict):
    """The parts of a score, which is the product of relevance, boosts and rank weight."""

    dense: float
    lexical: float
    relevance: float
    frame_boost: float
    censor_boost: float
    time_boost: float
    rank_weight: float
    score: float


class SessionEnd(TypedDict):
    """The result of ending a session: the episode that has its texts, None where there were none."""

    session_id: str
    task: str | None
    episode: Episode | None
    released: list[str]


class SignalsBody(TypedDict):
    """What the agent is doing right now."""

    current_file: NotRequired[str | None]
    imports: NotRequired[list[str] | None]
    branch: NotRequired[str | None]
    recent_errors: NotRequired[list[str] | None]
    activity: NotRequired[str | None]
    task: NotRequired[str | None]
    collaborators: NotRequired[list[str] | None]


class SourceAnswer(TypedDict):
    """Which memories no longer hold what a source said, the latest first, and which still do."""

    undone: list[str]
    refused: list[NotUndone]


class SourceBody(TypedDict):
    """Which source is to be taken back, and why."""

    source: str
    reason: str


class SplitBody(TypedDict):
    """Why a statement is made a fact of its own."""

    reason: NotRequired[str | None]


class StartBody(TypedDict):
    """An episode that begins."""

    artifacts: NotRequired[list[ArtifactBody] | None]
    title: NotRequired[str | None]
    participants: NotRequired[list[str] | None]
    tags: NotRequired[list[str] | None]
    decision_ids: NotRequired[list[str] | None]
    frame: NotRequired[str | None]
    active_censors: NotRequired[list[str] | None]
    scope: NotRequired[Literal["private", "project", "system"]]
    user_id: NotRequired[str | None]
    project_id: NotRequired[str | None]
    source: NotRequired[str | None]
    source_kind: NotRequired[Literal["user", "agent", "tool", "web", "episode", "import", "operator"]]
    trust: NotRequired[int | None]
    is_pinned: NotRequired[bool]
    session_id: NotRequired[str | None]
    started_at: NotRequired[str | None]


class Started(TypedDict):
    """A night that runs in the background, or is over."""

    run: str
    night: str
    state: Literal["running", "succeeded", "failed"]
    interface: str
    counts: NotRequired[dict[str, int] | None]
    failures: NotRequired[list[str]]
    notices: NotRequired[list[str]]
    watch: NotRequired[str]


class Statement(TypedDict):
    """A statement, word for word, and its fact."""

    id: str
    fact_id: str
    content: str
    subject: str | None
    said_at: str
    recorded_at: str
    source: str | None
    source_kind: Literal["user", "agent", "tool", "web", "episode", "import", "operator"]
    trust: int
    reason: str
    taken_back_at: str | None
    scope: Literal["private", "project", "system"]
    user_id: str | None
    project_id: str | None
    session_id: str | None
    episode_id: str | None
    decision_id: str | None
    frame: str | None


class StatementList(TypedDict):
    """What was said for a fact, the oldest first."""

    statements: list[Statement]
    unrecorded_count: int


class StepBody(TypedDict):
    """One step with its detail."""

    name: str
    detail: NotRequired[str | None]


class StoredCount(TypedDict):
    """How many of the facts were new."""

    stored: int


class SupersedeBody(TypedDict):
    """Which fact takes the place of an older one, and why."""

    new_id: str
    reason: NotRequired[str | None]
    is_same: NotRequired[bool]


class ThreadBody(TypedDict):
    """What is still to be done."""

    text: str


class Tiers(TypedDict):
    """Tokens of each tier: critical, relevant, background, index."""

    tier1: int
    tier2: int
    tier3: int
    tier4: int


class UndoBody(TypedDict):
    """Why a change is taken back."""

    reason: str


class UndoNightsBody(TypedDict):
    """Which nights are to be taken back, and why."""

    first: str
    last: str
    kind: NotRequired[str | None]
    reason: NotRequired[str]


class UndoneNights(TypedDict):
    """What became of nights that were to be taken back."""

    undone: dict[str, int]
    refused: dict[str, str]


class UnloadBody(TypedDict):
    """What a session lets go of."""

    ids: list[str]


class UpdateBody(TypedDict):
    """More of an episode: lists grow, single values are replaced."""

    artifacts: NotRequired[list[ArtifactBody] | None]
    title: NotRequired[str | None]
    summary: NotRequired[str | None]
    lessons_learned: NotRequired[list[str] | None]
    outcome: NotRequired[Literal["success", "failure", "partial", "ongoing"] | None]
    surprise_level: NotRequired[float | None]
    participants: NotRequired[list[str] | None]
    tags: NotRequired[list[str] | None]
    decision_ids: NotRequired[list[str] | None]
    frame: NotRequired[str | None]
    active_censors: NotRequired[list[str] | None]
    append: NotRequired[str | None]


class Webhook(TypedDict):
    """A webhook and the state of its delivery, without its secret."""

    id: str
    url: str
    names: list[str]
    allows_private: bool
    created_at: str
    failed_count: int
    last_error: str | None
    retry_at: str | None


class WebhookBody(TypedDict):
    """Where events are to be sent, and which."""

    url: str
    names: NotRequired[list[str]]


class WebhookList(TypedDict):
    """The webhooks of an agent, oldest first."""

    webhooks: list[Webhook]


class WorkflowAnswer(TypedDict):
    """A workflow that was found, what was done about it, and the procedure it is kept as."""

    action: str
    name: str
    steps: list[str]
    support: int
    success_share: float | None
    procedure: Procedure | None


class WorkflowList(TypedDict):
    """The workflows that episodes share."""

    workflows: list[WorkflowAnswer]


class WorkflowsBody(TypedDict):
    """Whose episodes are looked at, and whether what is found is kept."""

    user_id: NotRequired[str | None]
    project_id: NotRequired[str | None]
    is_recorded: NotRequired[bool]


class WorkingMemory(TypedDict):
    """What a session is about and what it holds, the most relevant first."""

    session_id: str
    task: str | None
    frame: str | None
    items: list[Held]
    open_threads: list[str]
    capacity: int
    episode_id: str | None
    evicted: NotRequired[list[Held]]
    active_censors: NotRequired[list[str] | None]


class Nous:
    """One agent's memory over HTTP. A call that fails raises `NousProblem`, one that reaches nobody `OSError`."""

    def __init__(
        self, url: str = "http://127.0.0.1:8420", key: str | None = None, *, timeout_s: float = 60.0, **options: Unpack[CallOptions]
    ) -> None:
        if not url.startswith(("http://", "https://")):
            raise ValueError(f"{url!r} is not an address of http or https")
        self.url, self.key, self.timeout_s, self.options = url.rstrip("/"), key, timeout_s, options

    def call(
        self, method: str, path: str, body: object, query: Mapping[str, object] | None, options: CallOptions | None
    ) -> Any:
        """Make a call and return its answer; raise `NousProblem` where it is refused."""
        if path != "/" and "" in path.split("/")[1:]:
            raise ValueError(f"an id or a name in {path!r} is empty")
        told = {**self.options, **(options or {})}
        headers = {"Accept": "application/json"} | {HEADERS[name]: str(value) for name, value in told.items()}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        if body is not None:
            headers["Content-Type"] = "application/json"
        asked = {name: value for name, value in (query or {}).items() if value is not None}
        address = self.url + path + (f"?{urlencode(asked, doseq=True)}" if asked else "")
        data = None if body is None else json.dumps(body).encode()
        try:
            with urlopen(Request(address, data, headers, method=method), timeout=self.timeout_s) as answer:  # noqa: S310
                return value_of(answer.headers.get("Content-Type", ""), answer.read())
        except HTTPError as error:
            with error:
                problem = value_of(error.headers.get("Content-Type", ""), error.read())
            told = problem if isinstance(problem, dict) else {"title": problem}
            raise NousProblem(error.code, told, error.headers.get("X-Request-Id")) from error

    def get_links(self, *, options: CallOptions | None = None) -> Links:
        """Return the paths of everything."""
        return cast("Links", self.call("GET", "/", None, None, options))

    def get_health(self, *, options: CallOptions | None = None) -> Health:
        """Return at once; the database is not asked."""
        return cast("Health", self.call("GET", "/health", None, None, options))

    def get_readiness(self, *, options: CallOptions | None = None) -> Readiness:
        """Check the database, its schema and the embedder; only administrators see what is wrong with them."""
        return cast("Readiness", self.call("GET", "/ready", None, None, options))

    def get_metrics(self, *, options: CallOptions | None = None) -> str:
        """Return the metrics for Prometheus: no memories, no names of agents. Needs a key unless on loopback."""
        return cast("str", self.call("GET", "/metrics", None, None, options))

    def learn(self, *, options: CallOptions | None = None, **body: Unpack[FactBody]) -> Learned:
        """Learn one fact: confirm the one that says the same, supersede the one it updates, or store it. Returns what was done and why, with the facts `near` it. When the judge fails, the fact is stored, and a night compares it again."""
        return cast("Learned", self.call("POST", "/facts", dict(body), None, options))

    def list_statements(self, fact_id: str, *, options: CallOptions | None = None) -> StatementList:
        """Return the statements of a fact in any state, word for word, the oldest first. Statements of facts that were merged into it are included. Confirmations from before statements were stored are counted in `unrecorded_count` only."""
        return cast("StatementList", self.call("GET", f"/facts/{quote(fact_id, safe='')}/statements", None, None, options))

    def learn_deferred(self, *, options: CallOptions | None = None, **body: Unpack[DeferredBody]) -> StoredCount:
        """Store many facts at once, and leave all matching to the night: all of them, or none. Meant for histories."""
        return cast("StoredCount", self.call("POST", "/facts/deferred", dict(body), None, options))

    def count_facts(self, *, options: CallOptions | None = None) -> FactCounts:
        """Return how many facts the agent has in each state."""
        return cast("FactCounts", self.call("GET", "/facts/count", None, None, options))

    def get_fact(self, fact_id: str, *, options: CallOptions | None = None) -> Fact:
        """Return one fact in whatever state it is."""
        return cast("Fact", self.call("GET", f"/facts/{quote(fact_id, safe='')}", None, None, options))

    def confirm_fact(self, fact_id: str, *, options: CallOptions | None = None, **body: Unpack[ConfirmBody]) -> Fact:
        """Confirm that a fact still holds: add to its confirmations, with date and source, and return it."""
        return cast("Fact", self.call("POST", f"/facts/{quote(fact_id, safe='')}/confirm", dict(body), None, options))

    def supersede_fact(self, fact_id: str, *, options: CallOptions | None = None, **body: Unpack[SupersedeBody]) -> Fact:
        """Put one fact in the place of another, and return the old one, which only `as_of` brings back. Both are of one scope, user and project, or the new one is for more to recall."""
        return cast("Fact", self.call("POST", f"/facts/{quote(fact_id, safe='')}/supersede", dict(body), None, options))

    def list_predecessors(self, fact_id: str, *, options: CallOptions | None = None) -> FactList:
        """Return the facts that one has superseded, replaced or merged into it, the latest first. The fact that superseded it is in `superseded_by`."""
        return cast("FactList", self.call("GET", f"/facts/{quote(fact_id, safe='')}/predecessors", None, None, options))

    def split(self, statement_id: str, *, options: CallOptions | None = None, **body: Unpack[SplitBody]) -> Fact:
        """Split a statement off its fact as a fact of its own, and return that; `undo` joins the two again. The first fact loses a confirmation, and the two stay apart: neither nights nor learning the same words again join them. Splitting the first statement of a merged fact makes that fact active again."""
        return cast("Fact", self.call("POST", f"/statements/{quote(statement_id, safe='')}/split", dict(body), None, options))

    def keep_both(self, fact_id: str, *, options: CallOptions | None = None, **body: Unpack[KeepBothBody]) -> Fact:
        """Decide that a fact does not replace an earlier one that it perhaps replaces; `undo` takes the decision back. Both are active, also where one had given way to the other since, and recall no longer puts one before the other."""
        return cast("Fact", self.call("POST", f"/facts/{quote(fact_id, safe='')}/keep-both", dict(body), None, options))

    def recall(self, *, options: CallOptions | None = None, **body: Unpack[RecallBody]) -> RecallAnswer:
        """Return the memories that answer `query`, best first, with the parts of each score, and log the recall. A memory encoded in the same frame scores 1.3 times as much, one encoded under the same censors up to 1.2 times; neither hides anything. A server that takes no writes, such as a standby, answers too, and logs nothing."""
        return cast("RecallAnswer", self.call("POST", "/recall", dict(body), None, options))

    def give_feedback(self, recall_id: str, *, options: CallOptions | None = None, **body: Unpack[FeedbackBody]) -> FeedbackAnswer:
        """Say which answers of a recall, or lines of a context, were used, and which were of no use. Saying it twice counts once. What the recall did not return is not found."""
        return cast("FeedbackAnswer", self.call("POST", f"/recalls/{quote(recall_id, safe='')}/feedback", dict(body), None, options))

    def assemble_context(self, *, options: CallOptions | None = None, **body: Unpack[AssembleBody]) -> ContextAnswer:
        """Return what is worth knowing now as a text within a budget of tokens, each line with the reason it is there. `budget` (by default that of the `frame`, else 8,000) is never exceeded, no memory appears twice, and open contradictions are marked. `query`, `signals` and the session say what it is about; without them it holds what matters in any case: what is pinned or in doubt, the latest episodes, what is most used. `cite` and `ignore` take its `recall_id`."""
        return cast("ContextAnswer", self.call("POST", "/context/assemble", dict(body), None, options))

    def predict(self, *, options: CallOptions | None = None, **body: Unpack[PredictBody]) -> PredictionAnswer:
        """Return the memories this session is likely to want, each with its chance and reasons, and store its signals. Based on what sessions with the same file, module, branch, error, hour, collaborator or activity used; without any such session, on memories near to the words of the signals. The session's next context starts from it. With `at` it is a prediction for another moment, and nothing is stored."""
        return cast("PredictionAnswer", self.call("POST", "/context/predict", dict(body), None, options))

    def start_episode(self, *, options: CallOptions | None = None, **body: Unpack[StartBody]) -> Episode:
        """Begin an episode, in state `open` and tier `raw`. An open episode of the same session stays open: the one begun last is the current one."""
        return cast("Episode", self.call("POST", "/episodes", dict(body), None, options))

    def record_episode(self, *, options: CallOptions | None = None, **body: Unpack[RecordBody]) -> Episode:
        """Store an episode that is over, in one call; it is completed as a closed one is. Without dates it happened now; with one of the two it began and ended at that moment."""
        return cast("Episode", self.call("POST", "/episodes/record", dict(body), None, options))

    def get_episode(self, episode_id: str, *, options: CallOptions | None = None) -> Episode:
        """Return one episode in whatever state it is."""
        return cast("Episode", self.call("GET", f"/episodes/{quote(episode_id, safe='')}", None, None, options))

    def update_episode(self, episode_id: str, *, options: CallOptions | None = None, **body: Unpack[UpdateBody]) -> Episode:
        """Update an episode: `append` adds a line to its detail, lists grow, single values are replaced. Equal values change nothing. An outcome set after the episode was completed is stored, but has no further effect: no procedure is counted and no censor suggested."""
        return cast("Episode", self.call("PATCH", f"/episodes/{quote(episode_id, safe='')}", dict(body), None, options))

    def get_full_text(self, episode_id: str, *, options: CallOptions | None = None) -> FullText:
        """Return the most detailed text of an episode that still exists, also for one that a night condensed. Recall shows the short text of a condensed episode's tier; this reads cold storage, and changes nothing."""
        return cast("FullText", self.call("GET", f"/episodes/{quote(episode_id, safe='')}/full-text", None, None, options))

    def list_artifacts(self, episode_id: str, *, options: CallOptions | None = None) -> ArtifactList:
        """Return the commits, pull requests, decision records and files of an episode."""
        return cast("ArtifactList", self.call("GET", f"/episodes/{quote(episode_id, safe='')}/artifacts", None, None, options))

    def record_step(self, *, options: CallOptions | None = None, **body: Unpack[RecordStepBody]) -> Episode:
        """Add a step, such as "build", to the open episode of a session, and return the episode. It becomes a line of the episode's detail; a `detail` that looks like a credential is left out."""
        return cast("Episode", self.call("POST", "/episodes/steps", dict(body), None, options))

    def close_episode(self, episode_id: str, *, options: CallOptions | None = None, **body: Unpack[CloseBody]) -> Episode:
        """End an episode; within 30 s a worker adds a title, a summary and up to twelve facts, of a chat 24. An episode that is over is returned unchanged; use `update_episode` to add to it."""
        return cast("Episode", self.call("POST", f"/episodes/{quote(episode_id, safe='')}/close", dict(body), None, options))

    def retry_episode(self, episode_id: str, *, options: CallOptions | None = None) -> Episode:
        """Queue the completion of a closed episode again that was set aside after too many failures."""
        return cast("Episode", self.call("POST", f"/episodes/{quote(episode_id, safe='')}/retry", None, None, options))

    def list_procedures(self, *, options: CallOptions | None = None, domain: str | None = None, state: Literal["active", "review", "archived"] | None = None) -> ProcedureList:
        """Return the procedures of a domain and a state, by default all that are not archived; the best first."""
        return cast("ProcedureList", self.call("GET", "/procedures", None, {"domain": domain, "state": state}, options))

    def store_procedure(self, *, options: CallOptions | None = None, **body: Unpack[ProcedureBody]) -> Procedure:
        """Store how something is done under a name, and return the procedure. The same name with other content makes a new version: counts stay, a review ends, and events keep the earlier content; the same content changes nothing."""
        return cast("Procedure", self.call("POST", "/procedures", dict(body), None, options))

    def get_procedure(self, procedure_id: str, *, options: CallOptions | None = None) -> Procedure:
        """Return one procedure in whatever state it is."""
        return cast("Procedure", self.call("GET", f"/procedures/{quote(procedure_id, safe='')}", None, None, options))

    def related_procedures(self, procedure_id: str, *, options: CallOptions | None = None, limit: int | None = None) -> ProcedureList:
        """Return procedures related to one: linked ones, then those of its domain, then those near in meaning."""
        return cast("ProcedureList", self.call("GET", f"/procedures/{quote(procedure_id, safe='')}/related", None, {"limit": limit}, options))

    def learn_workflows(self, *, options: CallOptions | None = None, **body: Unpack[WorkflowsBody]) -> WorkflowList:
        """Store the runs of steps that at least three closed episodes share as workflows, and return them. Reads the latest 500 closed episodes of that user and project with steps, of each the first 200 steps, 20,000 in all. A workflow with the same steps is not stored twice, and each episode counts once for it as a success or a failure. With `is_recorded=False` nothing is stored."""
        return cast("WorkflowList", self.call("POST", "/procedures/learn", dict(body), None, options))

    def activate_procedure(self, procedure_id: str, *, options: CallOptions | None = None, **body: Unpack[ActivateBody]) -> Procedure:
        """Load a procedure into a session's working memory, and count it."""
        return cast("Procedure", self.call("POST", f"/procedures/{quote(procedure_id, safe='')}/activate", dict(body), None, options))

    def record_procedure_outcome(self, procedure_id: str, *, options: CallOptions | None = None, **body: Unpack[OutcomeBody]) -> Procedure:
        """Say that a procedure worked or failed; nights flag for review those that mostly fail."""
        return cast("Procedure", self.call("POST", f"/procedures/{quote(procedure_id, safe='')}/outcome", dict(body), None, options))

    def list_censors(self, *, options: CallOptions | None = None, state: Literal["active", "archived"] | None = None) -> CensorList:
        """Return the censors that are `active` or `archived`, the firmest first."""
        return cast("CensorList", self.call("GET", "/censors", None, {"state": state}, options))

    def add_censor(self, *, options: CallOptions | None = None, **body: Unpack[CensorBody]) -> Censor:
        """Store a warning against an action, and return the censor. An active censor of the same reach that says the same is returned instead, made stricter where the new one is."""
        return cast("Censor", self.call("POST", "/censors", dict(body), None, options))

    def get_censor(self, censor_id: str, *, options: CallOptions | None = None) -> Censor:
        """Return one censor in whatever state it is."""
        return cast("Censor", self.call("GET", f"/censors/{quote(censor_id, safe='')}", None, None, options))

    def update_censor(self, censor_id: str, *, options: CallOptions | None = None, **body: Unpack[CensorChangesBody]) -> Censor:
        """Change the severity, threshold, expiry or pin of a censor; the only way down, and to `absolute` and back. A lowered severity stays until new activations reach the threshold. Trigger and reason never change: to say something else, let it expire and add another."""
        return cast("Censor", self.call("PATCH", f"/censors/{quote(censor_id, safe='')}", dict(body), None, options))

    def check_censors(self, *, options: CallOptions | None = None, **body: Unpack[CheckBody]) -> CheckAnswer:
        """Return the censors that an action sets off, the strictest first: `is_allowed` means go ahead. A match by meaning alone only warns and asks "did you mean"; literal and near matches have the severity of their censor. Each censor that fires is counted, and a warning that reaches its threshold by literal or near matches blocks from this action on. All but embedding takes one round trip, and a second one when something fires. To measure it without the embedding, open the Heart with an embedder that looks its vectors up."""
        return cast("CheckAnswer", self.call("POST", "/censors/check", dict(body), None, options))

    def report_false_positive(self, censor_id: str, *, options: CallOptions | None = None, **body: Unpack[FalsePositiveBody]) -> Censor:
        """Report an activation as a false alarm: that action, and similar ones, no longer set the censor off. It is the activation with this id; else the latest one of this action, or the latest of all, not reported yet. It no longer counts towards a block, and nights retire a censor of which most activations were reported. An action that set nothing off becomes an exception and counts nothing. An agent's report does not lift the block of a censor that is absolute or trusted more than 50: that takes a person, `source_kind="user"`."""
        return cast("Censor", self.call("POST", f"/censors/{quote(censor_id, safe='')}/false-positive", dict(body), None, options))

    def focus(self, session_id: str, *, options: CallOptions | None = None, **body: Unpack[FocusBody]) -> WorkingMemory:
        """Set task, frame, censors or capacity of a session: its items are ranked again, the least relevant evicted. Begins the session if there is none. Parameters left out stay as they are. Frame and censors are the defaults of every verb that is called with this `session_id`."""
        return cast("WorkingMemory", self.call("PUT", f"/sessions/{quote(session_id, safe='')}/focus", dict(body), None, options))

    def load_context(self, session_id: str, *, options: CallOptions | None = None, **body: Unpack[LoadBody]) -> WorkingMemory:
        """Load memories, or a note, into working memory; the answer names the items evicted for them. The least relevant items are evicted, and among equals those loaded first; a new item may be one of them. The relevance of a memory is its cosine to the task, unless `relevance` is given."""
        return cast("WorkingMemory", self.call("POST", f"/sessions/{quote(session_id, safe='')}/load", dict(body), None, options))

    def get_working_memory(self, session_id: str, *, options: CallOptions | None = None) -> WorkingMemory:
        """Return the items of a session, the most relevant first, with short texts. The `state` of a memory may have become superseded or archived; forgotten and erased ones are left out."""
        return cast("WorkingMemory", self.call("GET", f"/sessions/{quote(session_id, safe='')}", None, None, options))

    def unload(self, session_id: str, *, options: CallOptions | None = None, **body: Unpack[UnloadBody]) -> WorkingMemory:
        """Unload memories and notes by their ids; notes are kept for the session's episode."""
        return cast("WorkingMemory", self.call("POST", f"/sessions/{quote(session_id, safe='')}/unload", dict(body), None, options))

    def open_thread(self, session_id: str, *, options: CallOptions | None = None, **body: Unpack[ThreadBody]) -> WorkingMemory:
        """Add an open thread, something to be done; open threads are stored in the session's episode at its end."""
        return cast("WorkingMemory", self.call("POST", f"/sessions/{quote(session_id, safe='')}/threads", dict(body), None, options))

    def close_thread(self, session_id: str, *, options: CallOptions | None = None, **body: Unpack[CloseThreadBody]) -> WorkingMemory:
        """Close a thread by its text or its place from 0."""
        return cast("WorkingMemory", self.call("POST", f"/sessions/{quote(session_id, safe='')}/threads/close", dict(body), None, options))

    def end_session(self, session_id: str, *, options: CallOptions | None = None, **body: Unpack[EndBody]) -> SessionEnd:
        """End a session: store its task, notes, open threads and lessons in its episode, and delete it. The open episode is closed, or a new one stored if there is any text. Its completion draws facts from it, with the scope, user and project of the episode: `scope`, `user_id` and `project_id` set those of a new one."""
        return cast("SessionEnd", self.call("POST", f"/sessions/{quote(session_id, safe='')}/end", dict(body), None, options))

    def list_decisions(self, *, options: CallOptions | None = None, status: Literal["pending", "succeeded", "failed", "abandoned"] | None = None, file: str | None = None, tag: str | None = None, session_id: str | None = None, episode_id: str | None = None, limit: int | None = None) -> DecisionList:
        """Return decisions, the latest first: those of a status, about a file, with a tag, of a session or episode. A file is the same however it is spelled: `./src//a.py` and `src\a.py` are `src/a.py`."""
        return cast("DecisionList", self.call("GET", "/decisions", None, {"status": status, "file": file, "tag": tag, "session_id": session_id, "episode_id": episode_id, "limit": limit}, options))

    def record_decision(self, *, options: CallOptions | None = None, **body: Unpack[DecisionBody]) -> Decision:
        """Record what was decided and why; it and the episode that is open now name each other. `reference` is what the agent itself calls it, and names it from then on wherever a decision is asked for."""
        return cast("Decision", self.call("POST", "/decisions", dict(body), None, options))

    def get_decision(self, decision_id: str, *, options: CallOptions | None = None) -> Decision:
        """Return one decision by its id or reference."""
        return cast("Decision", self.call("GET", f"/decisions/{quote(decision_id, safe='')}", None, None, options))

    def resolve_decision(self, decision_id: str, *, options: CallOptions | None = None, **body: Unpack[ResolutionBody]) -> Decision:
        """Record the outcome of a decision; a failed one leaves a censor that warns of doing so again. Recording the same twice changes nothing."""
        return cast("Decision", self.call("POST", f"/decisions/{quote(decision_id, safe='')}/resolve", dict(body), None, options))

    def list_contradictions(self, *, options: CallOptions | None = None, status: Literal["open", "resolved", "any"] | None = None) -> ContradictionList:
        """Return the agent's contradictions in one status, the oldest first."""
        return cast("ContradictionList", self.call("GET", "/contradictions", None, {"status": status}, options))

    def list_doubts(self, *, options: CallOptions | None = None, status: Literal["open", "resolved", "any"] | None = None) -> DoubtList:
        """Return the facts that perhaps replace earlier ones, in one status, the oldest first."""
        return cast("DoubtList", self.call("GET", "/doubts", None, {"status": status}, options))

    def resolve_contradiction(self, contradiction_id: str, *, options: CallOptions | None = None, **body: Unpack[RulingBody]) -> Contradiction:
        """Resolve a contradiction: `a_wins`, `b_wins`, `both_valid`, `same`, or `merged` into a fact learned for it. Or give the id of the winning fact as `keep`; `contradiction.a` and `.b` are both facts. Two that say the `same` are merged as by a night: into the earlier, unless the other is pinned, trusted more or has a key. The loser is superseded; `undo` of either makes it active again and opens the contradiction again, also where both hold. A fact that had given way to the other one since is active again where it holds; one that something else took out of recall raises `Conflict`, which says how to bring it back. The same ruling twice changes nothing; another ruling raises `Conflict`. A ruling against a fact that is pinned, trusted more than the other or trusted more than the caller may claim is only stored as `proposed` for a caller who is not an operator: the contradiction is returned open, for a person to decide."""
        return cast("Contradiction", self.call("POST", f"/contradictions/{quote(contradiction_id, safe='')}/resolve", dict(body), None, options))

    def reject_ruling(self, contradiction_id: str, *, options: CallOptions | None = None) -> Contradiction:
        """Delete the proposed ruling of a contradiction, which stays open; for operators."""
        return cast("Contradiction", self.call("POST", f"/contradictions/{quote(contradiction_id, safe='')}/reject", None, None, options))

    def publish(self, *, options: CallOptions | None = None, **body: Unpack[EventBody]) -> None:
        """Announce something that happened outside: `guardrail_triggered`, `calibration_drift`, or a name of your own. `guardrail_triggered` names `censor_id` or `censor_ids`, or tells the `action` to be checked, with its `session_id`, `user_id` and `project_id`; `calibration_drift` names `procedure_ids` or a `domain`, and may tell `drift` and a `note`."""
        return cast("None", self.call("POST", "/events", dict(body), None, options))

    def list_webhooks(self, *, options: CallOptions | None = None) -> WebhookList:
        """Return where events are sent and how that goes, oldest first."""
        return cast("WebhookList", self.call("GET", "/webhooks", None, None, options))

    def add_webhook(self, *, options: CallOptions | None = None, **body: Unpack[WebhookBody]) -> NewWebhook:
        """Send events of these names to an address from now on, signed, at least once and in order."""
        return cast("NewWebhook", self.call("POST", "/webhooks", dict(body), None, options))

    def remove_webhook(self, webhook_id: str, *, options: CallOptions | None = None) -> None:
        """Send nothing more to a webhook."""
        return cast("None", self.call("DELETE", f"/webhooks/{quote(webhook_id, safe='')}", None, None, options))

    def list_memories(self, *, options: CallOptions | None = None, kinds: list[Literal["fact", "episode", "procedure", "censor"]] | None = None, state: Literal["current", "any", "active", "open", "closed", "review", "superseded", "archived", "quarantined"] | None = None, about: str | None = None, source: str | None = None, user_id: str | None = None, project_id: str | None = None, since: str | None = None, until: str | None = None, before: str | None = None, limit: int | None = None) -> MemoryList:
        """Return memories of all kinds, or of those that are asked for, the latest first. For the next page tell the last one of this page as `before`."""
        return cast("MemoryList", self.call("GET", "/memories", None, {"kinds": kinds, "state": state, "about": about, "source": source, "user_id": user_id, "project_id": project_id, "since": since, "until": until, "before": before, "limit": limit}, options))

    def get_memory(self, memory_id: str, *, options: CallOptions | None = None) -> MemoryAnswer:
        """Return one memory of any kind in whatever state it is: a `Fact`, `Episode`, `Procedure` or `Censor`."""
        return cast("MemoryAnswer", self.call("GET", f"/memories/{quote(memory_id, safe='')}", None, None, options))

    def update(self, memory_id: str, *, options: CallOptions | None = None, **body: Unpack[CorrectionBody]) -> MemoryAnswer:
        """Update fields of a memory other than its text, and return it; equal values change nothing. A fact takes tags, subject, category, confidence, valid_from, valid_to and is_pinned; an episode and a procedure tags and is_pinned; a censor is_pinned. A text never changes: use `learn` for another one."""
        return cast("MemoryAnswer", self.call("PATCH", f"/memories/{quote(memory_id, safe='')}", dict(body), None, options))

    def get_history(self, memory_id: str, *, options: CallOptions | None = None) -> ChangeList:
        """Return every change of one memory, the latest first: who changed it, why, when, and the values before."""
        return cast("ChangeList", self.call("GET", f"/memories/{quote(memory_id, safe='')}/history", None, None, options))

    def undo(self, memory_id: str, *, options: CallOptions | None = None, **body: Unpack[UndoBody]) -> PastChange:
        """Undo the latest change of a memory that is in effect, and return it; call it again for the one before. Undoing that a fact was learned archives it and makes the facts it had superseded active again. Undoing a ruling on a contradiction, on either side or by the id of the contradiction, makes what lost by it active again and opens the contradiction again. Undoing a confirmation in other words makes these a fact of their own, so that no statement is lost. `reason` is kept with the event; without one, that the agent took it back."""
        return cast("PastChange", self.call("POST", f"/memories/{quote(memory_id, safe='')}/undo", dict(body), None, options))

    def forget(self, memory_id: str, *, options: CallOptions | None = None, **body: Unpack[ForgetBody]) -> Forgotten:
        """Remove a memory of any kind from recall, contexts and questions about the past, at once. Its row, statements and history stay, so `restore` and `undo` bring it back; nights don't. Learning the same words again stores a new fact that names the forgotten one. Forgetting twice changes nothing. Facts that it has superseded stay out of recall, too: the answer names them. To delete a memory from the disk, erase it with `nous erase --memory`. `reason` is kept with the event; without one, that the agent forgot it."""
        return cast("Forgotten", self.call("POST", f"/memories/{quote(memory_id, safe='')}/forget", dict(body), None, options))

    def restore(self, memory_id: str, *, options: CallOptions | None = None, **body: Unpack[RestoreBody]) -> MemoryAnswer:
        """Restore a memory that was forgotten, or archived by a night, to its earlier state, and return it. A superseded fact is superseded again, and no recall finds it, unless `is_active` is told: then what superseded it is undone too. A fact that was learned again meanwhile is merged into the one that says the same, which `undo` takes back, unless `is_active` is told: then both are active. A memory that is not archived is otherwise returned as it is."""
        return cast("MemoryAnswer", self.call("POST", f"/memories/{quote(memory_id, safe='')}/restore", dict(body), None, options))

    def pin(self, memory_id: str, *, options: CallOptions | None = None, **body: Unpack[ReasonBody]) -> MemoryAnswer:
        """Keep nights from archiving or condensing a memory of any kind, and return it."""
        return cast("MemoryAnswer", self.call("POST", f"/memories/{quote(memory_id, safe='')}/pin", dict(body), None, options))

    def unpin(self, memory_id: str, *, options: CallOptions | None = None, **body: Unpack[ReasonBody]) -> MemoryAnswer:
        """Let nights archive and condense a memory again, and return it."""
        return cast("MemoryAnswer", self.call("POST", f"/memories/{quote(memory_id, safe='')}/unpin", dict(body), None, options))

    def undo_source(self, *, options: CallOptions | None = None, **body: Unpack[SourceBody]) -> SourceAnswer:
        """Undo all changes by one source, the latest first; a memory that can't be undone stays, with the reason. `source` is the source of statements and memories, or the name given to an import. Memories it began are archived, also those drawn from its episodes, and what they had superseded is active again; memories it only confirmed lose the confirmation. Of each memory everything is undone, or nothing: a fact with statements of other sources is refused. `restore` brings archived memories back."""
        return cast("SourceAnswer", self.call("POST", "/sources/undo", dict(body), None, options))

    def consolidate(self, *, options: CallOptions | None = None, **body: Unpack[ConsolidateBody]) -> str:
        """With `dry_run`, count what the night would change; without it, start the night and say where to watch it. For an administrator: for all agents, or for the one named in `X-Nous-Agent`."""
        return cast("str", self.call("POST", "/consolidate", dict(body), None, options))

    def get_consolidation(self, run: str, *, options: CallOptions | None = None) -> Started:
        """Return the state of a night started here, and its counts when it has ended."""
        return cast("Started", self.call("GET", f"/consolidate/{quote(run, safe='')}", None, None, options))

    def undo_nights(self, *, options: CallOptions | None = None, **body: Unpack[UndoNightsBody]) -> UndoneNights:
        """Take back what a range of nights changed, newest first: every row as it was, another event for each. For an administrator: of all agents, or of the one named in `X-Nous-Agent`. The range ends at the first night of which something is refused, because others built on it. Where the deadline comes first, what was taken back stays so; call it again."""
        return cast("UndoneNights", self.call("POST", "/consolidate/undo", dict(body), None, options))

    def get_report(self, *, options: CallOptions | None = None, night: str | None = None) -> str:
        """Return what a night changed and why, what it left alone and why, and how to take it back. An agent's key reads what concerns that agent; an administrator's reads all, or the agent in `X-Nous-Agent`."""
        return cast("str", self.call("GET", "/report", None, {"night": night}, options))


def value_of(kind: str, content: bytes) -> Any:
    """Return an answer: JSON as values, nothing as None, all else as text."""
    if not content:
        return None
    return json.loads(content) if "json" in kind else content.decode("utf-8", "replace")
