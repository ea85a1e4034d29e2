// Types of the REST interface of Nous 0.1.0. Written by `python -m clients.generate`: change that, not this.

/** What holds for one call, or for all of a client. */
export interface CallOptions {
  /** For an administrator's key: the agent to act for. */
  agent?: string;
  /** Seconds after which the call ends with an answer or a problem. */
  deadline?: number;
  /** The session the call belongs to. */
  session?: string;
  /** Makes a retry safe. */
  idempotencyKey?: string;
  signal?: AbortSignal;
}

export interface ClientOptions extends CallOptions {
  /** Where the interface is served; http://127.0.0.1:8420 by default. */
  url?: string;
  /** Made by `nous key create`. */
  key?: string;
  /** Instead of the global `fetch`. */
  fetch?: typeof fetch;
}

/** What a failed call was refused for. */
export declare class NousProblem extends Error {
  readonly status: number;
  readonly problem: Problem;
  readonly requestId: string | null;
}

/** Where a procedure is put to use. */
export interface ActivateBody {
  /** That of the header `X-Nous-Session` unless told. */
  session_id?: string;
}

/** A censor that an action triggered, and how; the severity is the one for this action. */
export interface Activation {
  id: string | null;
  censor: Censor;
  severity: string;
  match: "literal" | "near" | "meaning";
  reason: string;
  message: string;
  similarity: number | null;
  part: string;
}

/** Something an episode produced or was about: a commit, a pull request, a decision record or a file. */
export interface Artifact {
  kind: string;
  reference: string;
}

/** Something an episode produced or was about. */
export interface ArtifactBody {
  kind: "commit" | "pr" | "adr" | "file";
  /** What names it, such as `4f3d51d`. */
  reference: string;
}

/** What an episode produced or was about. */
export interface ArtifactList {
  artifacts: Array<Artifact>;
}

/** For what a context is wanted, and how large it may be. */
export interface AssembleBody {
  /** What the agent is doing right now. */
  signals?: SignalsBody | null;
  /** Most tokens, as `NOUS_TOKENIZER` counts them; by default 3,000 to 12,000, by frame. */
  budget?: number | null;
  /** The cognitive frame; by default the activity of the signals, or else the frame of the session. */
  frame?: string | null;
  /** The question the agent was asked; a blank text counts as none. */
  query?: string | null;
  /** The active censors; by default those of the session. */
  active_censors?: Array<string> | null;
  /** Show what was known at that moment; by default now. */
  at?: string | null;
  /** The session of the caller. */
  session_id?: string | null;
  /** The user who asks: finds their own besides what is everybody's. */
  user_id?: string | null;
  /** The project: what is in it is found besides what is in none. */
  project_id?: string | null;
}

/** Something not to do: its trigger, the reason, and the severity. */
export interface Censor {
  /** Its id. */
  id: string;
  /** Its state in the lifecycle. */
  state: string;
  /** What triggers it. */
  trigger: string;
  /** Why not, or what to do instead. */
  reason: string;
  /** How strict it is; `absolute` is set by hand, for a user. */
  severity: "warn" | "block" | "absolute";
  /** The trigger must occur as written (`*` stands for anything within a line), not only in meaning. */
  is_literal: boolean;
  /** How often it was activated. */
  activation_count: number;
  /** How many activations were reported as false. */
  false_positive_count: number;
  /** After how many activations a warning becomes a block; by default 5. */
  escalation_threshold: number;
  /** When it was last activated. */
  last_activated_at: string | null;
  /** The id or reference of a decision recorded here, or the name of one taken elsewhere. */
  learned_from_decision_id: string | null;
  /** The episode it was learned from. */
  learned_from_episode_id: string | null;
  /** Where it comes from. */
  source: string | null;
  /** Who or what stated it; `episode` needs the episode it was drawn from, and is trusted as that is. */
  source_kind: "user" | "agent" | "tool" | "web" | "episode" | "import" | "operator";
  /** How far it is trusted: 0 is anybody's web page, 100 the operator; by default that of its `source_kind`. At most what the caller may claim. */
  trust: number;
  /** Keeps nights from archiving it; for callers that may pin. */
  is_pinned: boolean;
  /** When it was stated; by default now. */
  learned_at: string;
  /** When it expires; by default never. */
  expires_at: string | null;
  /** The cognitive frame the agent is in, such as debug; by default that of its session. */
  encoded_frame: string | null;
  /** The active censors; by default those of the session. */
  encoded_censors: Array<string> | null;
  /** Who finds it: `private` those who ask for its user and its project, as far as it names them; `project` everybody in its `project_id`; `system` everybody. A night makes a `private` fact that two users of a project hold the project's (`share_among_users` of `nous policy`). */
  scope: "private" | "project" | "system";
  /** The user whose own it is; by default nobody's, and so everybody's. */
  user_id: string | null;
  /** The project it belongs to. */
  project_id: string | null;
  /** The weight nights derived from its use: recall multiplies its score by it. */
  rank_weight: number;
  forgiven_count: number;
  is_escalated: boolean;
  exceptions: Array<Record<string, unknown>>;
  /** Its version, incremented by every change. */
  row_version: number;
  /** Forgotten on request: archived, and not found by questions about the past either. */
  is_forgotten?: boolean;
}

/** Something to beware of. */
export interface CensorBody {
  /** What triggers it. */
  trigger: string;
  /** Why not, or what to do instead. */
  reason: string;
  /** How strict it is; `absolute` is set by hand, for a user. */
  severity?: "warn" | "block" | "absolute";
  /** The trigger must occur as written (`*` stands for anything within a line), not only in meaning. */
  is_literal?: boolean;
  /** After how many activations a warning becomes a block; by default 5. */
  escalation_threshold?: number | null;
  /** The id or reference of a decision recorded here, or the name of one taken elsewhere. Taken as learned_from_decision too. */
  learned_from_decision_id?: string | null;
  /** The episode it was learned from. */
  learned_from_episode_id?: string | null;
  /** When it expires; by default never. */
  expires_at?: string | null;
  /** Who finds it: `private` those who ask for its user and its project, as far as it names them; `project` everybody in its `project_id`; `system` everybody. A night makes a `private` fact that two users of a project hold the project's (`share_among_users` of `nous policy`). */
  scope?: "private" | "project" | "system";
  /** The user whose own it is; by default nobody's, and so everybody's. */
  user_id?: string | null;
  /** The project it belongs to. */
  project_id?: string | null;
  /** Where it comes from. */
  source?: string | null;
  /** Who or what stated it; `episode` needs the episode it was drawn from, and is trusted as that is. */
  source_kind?: "user" | "agent" | "tool" | "web" | "episode" | "import" | "operator";
  /** How far it is trusted: 0 is anybody's web page, 100 the operator; by default that of its `source_kind`. At most what the caller may claim. */
  trust?: number | null;
  /** Keeps nights from archiving it; for callers that may pin. */
  is_pinned?: boolean;
  /** When it was stated; by default now. */
  learned_at?: string | null;
  /** The cognitive frame the agent is in, such as debug; by default that of its session. Taken as encoded_frame and frame_used too. */
  frame?: string | null;
  /** The active censors; by default those of the session. Taken as encoded_censors too. */
  active_censors?: Array<string> | null;
}

/** What changes about a censor; what is not named stays. */
export interface CensorChangesBody {
  note?: string | null;
  /** How strict it is. */
  severity?: "warn" | "block" | "absolute";
  /** After how many activations a warning becomes a block; by default 5. */
  escalation_threshold?: number | null;
  /** When it expires; None for never. */
  expires_at?: string | null;
  /** Keeps nights from archiving it. */
  is_pinned?: boolean;
}

/** The active censors of an agent. */
export interface CensorList {
  censors: Array<Censor>;
}

/** Every change of a memory, the latest first. */
export interface ChangeList {
  changes: Array<PastChange>;
}

/** What speaks against an action. */
export interface CheckAnswer {
  is_allowed: boolean;
  is_blocked: boolean;
  severity: string | null;
  activations: Array<Activation>;
}

/** An action about to be done. */
export interface CheckBody {
  /** The action to check: a command, or in words. */
  action: string;
  /** The cognitive frame the agent is in, such as debug. */
  frame?: string | null;
  /** When it would happen; by default now. */
  at?: string | null;
  /** False only checks: nothing is counted, escalated or announced. */
  is_recorded?: boolean;
  /** The session of the caller. */
  session_id?: string | null;
  /** The user who asks: finds their own besides what is everybody's. */
  user_id?: string | null;
  /** The project: what is in it is found besides what is in none. */
  project_id?: string | null;
}

/** The end of an episode. */
export interface CloseBody {
  /** What it produced or was about: pairs of a kind (`commit`, `pr`, `adr`, `file`) and what names it in at most 200 characters. */
  artifacts?: Array<ArtifactBody> | null;
  /** Its title; by default the first words of its text. */
  title?: string | null;
  /** What happened, in short; written for it by default. */
  summary?: string | null;
  /** What was learned of it, a sentence or a few each. */
  lessons_learned?: Array<string> | null;
  /** How it went. */
  outcome?: "success" | "failure" | "partial" | "ongoing" | null;
  /** How much of it was not expected. */
  surprise_level?: number | null;
  /** Who took part. */
  participants?: Array<string> | null;
  /** Words to find it by. */
  tags?: Array<string> | null;
  /** Decisions taken in it: recorded here, by id or reference, or elsewhere, by their names there. */
  decision_ids?: Array<string> | null;
  /** The cognitive frame the agent is in, such as debug; by default that of its session. Taken as encoded_frame and frame_used too. */
  frame?: string | null;
  /** The active censors; by default those of the session. Taken as encoded_censors too. */
  active_censors?: Array<string> | null;
  /** A new line of its detail. */
  append?: string | null;
  /** When it ended; by default now. */
  ended_at?: string | null;
}

/** Which thread is done. */
export interface CloseThreadBody {
  /** Its text, or its place from 0. */
  thread: string | number;
}

/** Who says that a fact still holds. */
export interface ConfirmBody {
  source?: string | null;
}

/** Which night is to be run, and whether in earnest. */
export interface ConsolidateBody {
  /** Stop after the checks; change nothing, and tell the counts. */
  dry_run?: boolean;
  /** Which night, as its date; the last one that is over, unless told. */
  night?: string | null;
}

/** A context ready to be put before a model. */
export interface ContextAnswer {
  context: string;
  token_count: number;
  budget: number;
  tiers: Tiers;
  tokens: Record<string, number>;
  left_out: Record<string, number>;
  counting: string;
  recall_id: string;
  lines: Array<ContextLine>;
  is_by_words: boolean;
}

/** One line of a context, and why it is there. */
export interface ContextLine {
  tier: "critical" | "relevant" | "background" | "index";
  kind: string;
  memory_ids: Array<string>;
  level: "full" | "summary" | "compressed" | "index";
  text: string;
  tokens: number;
  reason: string;
}

/** Two facts that can't both be true; `memory_a` is the one with the smaller id, which has no meaning. */
export interface Contradiction {
  id: string;
  memory_a: string;
  memory_b: string;
  detected_at: string;
  status: string;
  resolution: string | null;
  resolved_at: string | null;
  note: string | null;
  judgement: Record<string, unknown> | null;
  a: Fact;
  b: Fact;
  proposed?: Record<string, unknown> | null;
}

/** Contradictions, the oldest first. */
export interface ContradictionList {
  contradictions: Array<Contradiction>;
}

/** What is known about a memory besides its text; what is not named stays, null clears what may be absent. */
export interface CorrectionBody {
  reason?: string | null;
  /** All its tags; of anything but a censor. */
  tags?: Array<string> | null;
  /** What it is about. */
  subject?: string | null;
  /** Its category, such as `preference`. */
  category?: string | null;
  /** How sure a fact is. */
  confidence?: number | null;
  /** Since when it holds; by default always. */
  valid_from?: string | null;
  /** Until when it holds; not before `valid_from`. */
  valid_to?: string | null;
  /** Keeps nights from archiving it. */
  is_pinned?: boolean | null;
}

/** A decision of the agent, with its rationale, status and outcome. */
export interface Decision {
  /** Its id. */
  id: string;
  /** Its name. */
  title: string;
  /** Why it was decided so. */
  rationale: string | null;
  /** How sure the agent was. */
  confidence: number | null;
  /** Whether it is pending, succeeded, failed or was abandoned. */
  status: string;
  /** The episode it belongs to; by default the current one of the session. */
  episode_id: string | null;
  /** The session it was made in. */
  session_id: string | null;
  /** Files it is about. */
  files: Array<string>;
  /** Words to find it by. */
  tags: Array<string>;
  /** What came of it. */
  outcome: string | null;
  /** When it was made; by default now. */
  decided_at: string;
  /** When it was resolved. */
  resolved_at: string | null;
  /** Its version, incremented by every change. */
  row_version: number;
  /** The agent's own name for it, such as `abc123` (at most 200 characters): accepted wherever the id of a decision is. */
  reference?: string | null;
}

/** What was decided, and why. */
export interface DecisionBody {
  /** The agent's own name for it, such as `abc123` (at most 200 characters): accepted wherever the id of a decision is. */
  reference?: string | null;
  /** What was decided. */
  title: string;
  /** Why it was decided so. */
  rationale?: string | null;
  /** How sure the agent was. */
  confidence?: number | null;
  /** Files it is about. */
  files?: Array<string> | null;
  /** Words to find it by. */
  tags?: Array<string> | null;
  /** The session it was made in. */
  session_id?: string | null;
  /** The episode it belongs to; by default the current one of the session. */
  episode_id?: string | null;
  /** When it was made; by default now. */
  decided_at?: string | null;
}

/** Decisions, the latest first. */
export interface DecisionList {
  decisions: Array<Decision>;
}

/** Many facts to be stored as they are. */
export interface DeferredBody {
  /** Each with a key of its own, where it may be sent again. */
  facts: Array<DeferredFactBody>;
}

/** One of many facts. */
export interface DeferredFactBody {
  content: string;
  /** Makes a retry safe: the same key and content return the first answer and change nothing. */
  idempotency_key?: string | null;
  /** What it is about. */
  subject?: string | null;
  /** The attribute of a thing that it is a value of, such as `ana/home`: a later value supersedes it. */
  key?: string | null;
  /** Its category, such as `preference`. */
  category?: string | null;
  /** Words to find it by. */
  tags?: Array<string> | null;
  /** The text around it: helps to find it, and is never shown as its content. */
  context?: string | null;
  /** How sure it is. */
  confidence?: number;
  /** Since when it holds; by default always. */
  valid_from?: string | null;
  /** Until when it holds; not before `valid_from`. */
  valid_to?: string | null;
  /** The episode it was drawn from. */
  source_episode_id?: string | null;
  /** The id or reference of a decision recorded here, or the name of one taken elsewhere. */
  source_decision_id?: string | null;
  /** The session it belongs to: its frame and censors are the defaults. */
  session_id?: string | null;
  /** Who finds it: `private` those who ask for its user and its project, as far as it names them; `project` everybody in its `project_id`; `system` everybody. A night makes a `private` fact that two users of a project hold the project's (`share_among_users` of `nous policy`). */
  scope?: "private" | "project" | "system";
  /** The user whose own it is; by default nobody's, and so everybody's. */
  user_id?: string | null;
  /** The project it belongs to. */
  project_id?: string | null;
  /** Where it comes from. */
  source?: string | null;
  /** Who or what stated it; `episode` needs the episode it was drawn from, and is trusted as that is. */
  source_kind?: "user" | "agent" | "tool" | "web" | "episode" | "import" | "operator";
  /** How far it is trusted: 0 is anybody's web page, 100 the operator; by default that of its `source_kind`. At most what the caller may claim. */
  trust?: number | null;
  /** Keeps nights from archiving it; for callers that may pin. */
  is_pinned?: boolean;
  /** When it was stated; by default now. */
  learned_at?: string | null;
  /** The cognitive frame the agent is in, such as debug; by default that of its session. Taken as encoded_frame and frame_used too. */
  frame?: string | null;
  /** The active censors; by default those of the session. Taken as encoded_censors too. */
  active_censors?: Array<string> | null;
}

/** A fact and an earlier one that it perhaps replaces; `keep_both` or `supersede_fact` decides it. */
export interface Doubt {
  earlier: Fact;
  later: Fact;
  resolution?: string | null;
  note?: string | null;
  resolved_at?: string | null;
}

/** Facts that perhaps replace earlier ones, the oldest first. */
export interface DoubtList {
  doubts: Array<Doubt>;
}

/** What is to be kept of a session that ends. */
export interface EndBody {
  /** How it went. */
  outcome?: "success" | "failure" | "partial" | "ongoing" | null;
  /** What was learned of it, a sentence or a few each. */
  lessons_learned?: Array<string> | null;
  /** Who finds it: `private` those who ask for its user and its project, as far as it names them; `project` everybody in its `project_id`; `system` everybody. A night makes a `private` fact that two users of a project hold the project's (`share_among_users` of `nous policy`). */
  scope?: "private" | "project" | "system";
  /** The user whose own it is; by default nobody's, and so everybody's. */
  user_id?: string | null;
  /** The project it belongs to. */
  project_id?: string | null;
}

/** Something that happened: its text, participants and outcome. */
export interface Episode {
  /** Its id. */
  id: string;
  /** Its state in the lifecycle. */
  state: string;
  /** The session it happens in: its frame and censors are the defaults. */
  session_id: string | null;
  /** Its title; by default the first words of its text. */
  title: string | null;
  /** What was said and done. */
  detail: string | null;
  /** What happened, in short; written for it by default. */
  summary: string | null;
  /** Its text in one line. */
  compressed: string | null;
  /** How far it was condensed: raw, summary, compressed or fossil. */
  compression_tier: string;
  /** When it began; by default now. */
  started_at: string;
  /** When it ended; by default now. */
  ended_at: string | null;
  /** How long it took. */
  duration_seconds: number | null;
  /** When its title, summary and facts were written. */
  completed_at: string | null;
  /** A note on its completion, such as why it was set aside. */
  completion_note: string | null;
  /** Decisions taken in it: recorded here, by id or reference, or elsewhere, by their names there. */
  decision_ids: Array<string>;
  /** Who took part. */
  participants: Array<string>;
  /** Words to find it by. */
  tags: Array<string>;
  /** The cognitive frame the agent is in, such as debug; by default that of its session. */
  frame_used: string | null;
  /** The active censors; by default those of the session. */
  encoded_censors: Array<string> | null;
  /** Procedures that were put to use in it. */
  procedures_activated: Array<string>;
  /** How it went. */
  outcome: "success" | "failure" | "partial" | "ongoing" | null;
  /** How much of it was not expected. */
  surprise_level: number | null;
  /** What was learned of it, a sentence or a few each. */
  lessons_learned: Array<string>;
  /** Where it comes from. */
  source: string | null;
  /** Who or what stated it; `episode` needs the episode it was drawn from, and is trusted as that is. */
  source_kind: "user" | "agent" | "tool" | "web" | "episode" | "import" | "operator";
  /** How far it is trusted: 0 is anybody's web page, 100 the operator; by default that of its `source_kind`. At most what the caller may claim. */
  trust: number;
  /** Keeps nights from archiving it; for callers that may pin. */
  is_pinned: boolean;
  /** Who finds it: `private` those who ask for its user and its project, as far as it names them; `project` everybody in its `project_id`; `system` everybody. A night makes a `private` fact that two users of a project hold the project's (`share_among_users` of `nous policy`). */
  scope: "private" | "project" | "system";
  /** The user whose own it is; by default nobody's, and so everybody's. */
  user_id: string | null;
  /** The project it belongs to. */
  project_id: string | null;
  /** The weight nights derived from its use: recall multiplies its score by it. */
  rank_weight: number;
  /** Its version, incremented by every change. */
  row_version: number;
  /** Forgotten on request: archived, and not found by questions about the past either. */
  is_forgotten?: boolean;
}

/** Something that happened elsewhere. */
export interface EventBody {
  name: string;
  payload?: Record<string, unknown>;
  memory_id?: string | null;
}

/** A statement the agent learned, with its present state. */
export interface Fact {
  /** Its id. */
  id: string;
  /** Its state in the lifecycle. */
  state: string;
  /** One statement. */
  content: string;
  /** What it is about. */
  subject: string | null;
  /** The attribute it gives a value of, from its words. */
  slot: string | null;
  /** The attribute of a thing that it is a value of, such as `ana/home`: a later value supersedes it. */
  key: string | null;
  /** Its category, such as `preference`. */
  category: string | null;
  /** Words to find it by. */
  tags: Array<string>;
  /** How sure it is. */
  confidence: number;
  /** Where it comes from. */
  source: string | null;
  /** Who or what stated it; `episode` needs the episode it was drawn from, and is trusted as that is. */
  source_kind: "user" | "agent" | "tool" | "web" | "episode" | "import" | "operator";
  /** The episode it was drawn from. */
  source_episode_id: string | null;
  /** The id or reference of a decision recorded here, or the name of one taken elsewhere. */
  source_decision_id: string | null;
  sources: Array<string>;
  /** How far it is trusted: 0 is anybody's web page, 100 the operator; by default that of its `source_kind`. At most what the caller may claim. */
  trust: number;
  /** Keeps nights from archiving it; for callers that may pin. */
  is_pinned: boolean;
  /** When it was stated; by default now. */
  learned_at: string;
  /** When it was last confirmed. */
  last_confirmed_at: string | null;
  /** How often it was confirmed. */
  confirmation_count: number;
  /** The fact that superseded it. */
  superseded_by: string | null;
  succession: string | null;
  /** Since when it holds; by default always. */
  valid_from: string | null;
  /** Until when it holds; not before `valid_from`. */
  valid_to: string | null;
  /** Whether it is part of a contradiction, and whether that is resolved. */
  contradiction_status: string;
  /** The cognitive frame the agent is in, such as debug; by default that of its session. */
  encoded_frame: string | null;
  /** The active censors; by default those of the session. */
  encoded_censors: Array<string> | null;
  /** Who finds it: `private` those who ask for its user and its project, as far as it names them; `project` everybody in its `project_id`; `system` everybody. A night makes a `private` fact that two users of a project hold the project's (`share_among_users` of `nous policy`). */
  scope: "private" | "project" | "system";
  /** The user whose own it is; by default nobody's, and so everybody's. */
  user_id: string | null;
  /** The project it belongs to. */
  project_id: string | null;
  /** The weight nights derived from its use: recall multiplies its score by it. */
  rank_weight: number;
  /** Its version, incremented by every change. */
  row_version: number;
  /** Forgotten on request: archived, and not found by questions about the past either. */
  is_forgotten?: boolean;
  /** Earlier facts it perhaps replaces, though no judge is sure; recall puts it before them. */
  perhaps_replaces?: Array<string>;
}

/** A fact to be learned. */
export interface FactBody {
  /** One statement. */
  content: string;
  /** Facts of the same scope, user and project that this one supersedes, by id or as returned by a verb. */
  replaces?: Array<string> | null;
  /** What it is about. */
  subject?: string | null;
  /** The attribute of a thing that it is a value of, such as `ana/home`: a later value supersedes it. */
  key?: string | null;
  /** Its category, such as `preference`. */
  category?: string | null;
  /** Words to find it by. */
  tags?: Array<string> | null;
  /** The text around it: helps to find it, and is never shown as its content. */
  context?: string | null;
  /** How sure it is. */
  confidence?: number;
  /** Since when it holds; by default always. */
  valid_from?: string | null;
  /** Until when it holds; not before `valid_from`. */
  valid_to?: string | null;
  /** The episode it was drawn from. */
  source_episode_id?: string | null;
  /** The id or reference of a decision recorded here, or the name of one taken elsewhere. */
  source_decision_id?: string | null;
  /** The session it belongs to: its frame and censors are the defaults. */
  session_id?: string | null;
  /** Who finds it: `private` those who ask for its user and its project, as far as it names them; `project` everybody in its `project_id`; `system` everybody. A night makes a `private` fact that two users of a project hold the project's (`share_among_users` of `nous policy`). */
  scope?: "private" | "project" | "system";
  /** The user whose own it is; by default nobody's, and so everybody's. */
  user_id?: string | null;
  /** The project it belongs to. */
  project_id?: string | null;
  /** Where it comes from. */
  source?: string | null;
  /** Who or what stated it; `episode` needs the episode it was drawn from, and is trusted as that is. */
  source_kind?: "user" | "agent" | "tool" | "web" | "episode" | "import" | "operator";
  /** How far it is trusted: 0 is anybody's web page, 100 the operator; by default that of its `source_kind`. At most what the caller may claim. */
  trust?: number | null;
  /** Keeps nights from archiving it; for callers that may pin. */
  is_pinned?: boolean;
  /** When it was stated; by default now. */
  learned_at?: string | null;
  /** The cognitive frame the agent is in, such as debug; by default that of its session. Taken as encoded_frame and frame_used too. */
  frame?: string | null;
  /** The active censors; by default those of the session. Taken as encoded_censors too. */
  active_censors?: Array<string> | null;
}

/** How many facts there are in each state. */
export interface FactCounts {
  counts: Record<string, number>;
}

/** Facts, the latest first. */
export interface FactList {
  facts: Array<Fact>;
}

/** Which activation of a censor was wrong, and why. */
export interface FalsePositiveBody {
  /** The latest that nobody reported unless told. */
  activation_id?: string | null;
  /** Or the action it should let pass. */
  action?: string | null;
  note?: string | null;
  /** Who says so. */
  source_kind?: "agent" | "user";
}

/** How much of the feedback was news. */
export interface FeedbackAnswer {
  cited: number;
  ignored: number;
}

/** What of a recall, or of a context, was used and what was of no use. */
export interface FeedbackBody {
  /** Memories that were used: they rise, and no night may lose them. */
  cited?: Array<string>;
  /** Memories that were of no use. */
  ignored?: Array<string>;
}

/** One place of a request that has to be mended. */
export interface FieldError {
  /** The place, such as `body.tags.0` or `header.X-Nous-Deadline`. */
  where: string;
  message: string;
}

/** What a session is about now. */
export interface FocusBody {
  /** What it is about; by default unchanged, as the other parameters are. */
  task?: string | null;
  /** The cognitive frame of the session. */
  frame?: string | null;
  /** The active censors; with the frame, the defaults of calls in this session. */
  active_censors?: Array<string> | null;
  /** How many items it can hold; 20 at first. */
  capacity?: number | null;
}

/** Why a memory is to be forgotten. */
export interface ForgetBody {
  reason: string;
}

/** A forgotten memory, and the superseded facts that stay out of recall with it. */
export interface Forgotten {
  memory: Fact | Episode | Procedure | Censor;
  merged: Array<string>;
  replaced: Array<string>;
}

/** A candidate of any kind, with the two scores the database gave it. */
export interface FoundMemory {
  id: string;
  kind: string;
  content: string;
  subject: string | null;
  category: string | null;
  tags: Array<string>;
  confidence: number | null;
  learned_at: string;
  said_at: string;
  valid_from: string | null;
  valid_to: string | null;
  superseded_by: string | null;
  contradiction_status: string;
  encoded_frame: string | null;
  summary: string | null;
  compressed: string | null;
  index_word: string | null;
  state: string;
  source: string | null;
  source_kind: string;
  scope: string;
  user_id: string | null;
  project_id: string | null;
  trust: number;
  is_pinned: boolean;
  encoded_censors: Array<string> | null;
  rank_weight: number;
  dense: number;
  lexical: number;
}

/** The most detailed text of an episode that still exists, and where it is stored. */
export interface FullText {
  episode_id: string;
  title: string | null;
  text: string;
  level: "detail" | "summary" | "compressed" | "title";
  is_cold: boolean;
  purge_after: string | null;
}

/** The process lives. */
export interface Health {
  status?: "ok";
}

/** The result of one check: its name, whether it passed, and what was found or is to be done. */
export interface HealthCheck {
  name: string;
  is_ok: boolean;
  message: string;
}

/** One entry of a working memory as it is shown. */
export interface Held {
  kind: string;
  id: string;
  text: string;
  relevance: number;
  loaded_at: string;
  state: string;
  superseded_by?: string | null;
}

/** Which earlier fact stays beside the later one, and why. */
export interface KeepBothBody {
  /** One of the fact's `perhaps_replaces`. */
  earlier_id: string;
  reason?: string | null;
}

/** The result of learning: `action`, the memory stored or confirmed, the fact it was compared with, and why. */
export interface Learned {
  action: "stored" | "confirmed" | "superseded";
  memory: Fact;
  reason: string;
  match?: Neighbour | null;
  contradicts?: Array<Neighbour>;
  near?: Array<Near>;
  forgotten?: string | null;
  hidden?: number;
}

/** Where everything is. */
export interface Links {
  name: string;
  version: string;
  openapi: string;
  health: string;
  ready: string;
  metrics: string;
  endpoints: Array<string>;
}

/** A memory of any kind as a list shows it. */
export interface ListedMemory {
  kind: string;
  id: string;
  state: string;
  text: string;
  about: string | null;
  at: string;
  trust: number;
  is_pinned: boolean;
  is_forgotten: boolean;
  source: string | null;
  user_id: string | null;
  project_id: string | null;
  confirmation_count: number;
  begins_at: string | null;
}

/** What is taken into working memory. */
export interface LoadBody {
  /** A procedure to use. */
  procedure_id?: string | null;
  /** Memories of any kind, by their ids. */
  memory_ids?: Array<string> | null;
  /** A text that is not a memory. */
  note?: string | null;
  /** How relevant each is; by default its similarity to the task. */
  relevance?: number | null;
}

/** A memory of any kind. */
export interface MemoryAnswer {
  memory: Fact | Episode | Procedure | Censor;
}

/** Memories, the latest first. */
export interface MemoryList {
  memories: Array<ListedMemory>;
}

/** An active fact near a new statement; `similarity` is their cosine, `verdict` a judge's. */
export interface Near {
  fact: Fact;
  similarity: number;
  verdict: string | null;
  reason: string | null;
  suggestion: string | null;
}

/** A stored fact near a new statement; `similarity` is their cosine. */
export interface Neighbour {
  fact: Fact;
  similarity: number;
}

/** A webhook just added, and the secret its receiver needs, shown this once. */
export interface NewWebhook {
  webhook: Webhook;
  secret: string;
}

/** A memory that still holds what the source said. */
export interface NotUndone {
  memory_id: string;
  reason: string;
}

/** How it went. */
export interface OutcomeBody {
  is_success: boolean;
  note?: string | null;
}

/** One event of a memory's history: who changed it, why, when, and the changed columns before and after. */
export interface PastChange {
  id: number;
  memory_kind: string;
  memory_id: string;
  action: string;
  from_state: string;
  to_state: string;
  version_before: number;
  version_after: number;
  before: Record<string, unknown>;
  after: Record<string, unknown>;
  actor: string;
  reason: string;
  effective_at: string;
  recorded_at: string;
  night: string | null;
  run_id: string | null;
  proposal_id: string | null;
  undoes: number | null;
}

/** What a night would do, counted in its plan. */
export interface Planned {
  night: string;
  deduped: number;
  superseded: number;
  compressed: number;
  forgotten: number;
  contradictions_found: number;
  promoted: number;
  demoted: number;
  linked: number;
  shared: number;
  censors_retired: number;
  procedures_flagged: number;
  is_success: boolean;
  failures: Array<string>;
  notices: Array<string>;
  plan_hash: string;
  was_applied?: boolean;
}

/** What was seen: the file that was opened, or more. */
export interface PredictBody {
  /** Short for `signals.current_file`. */
  file_opened?: string | null;
  /** What the agent is doing right now. */
  signals?: SignalsBody | null;
  /** The session of the caller. */
  session_id?: string | null;
  /** How many memories at most. */
  limit?: number;
  /** The user who asks: finds their own besides what is everybody's. */
  user_id?: string | null;
  /** The project: what is in it is found besides what is in none. */
  project_id?: string | null;
  /** Show what was known at that moment; by default now. */
  at?: string | null;
}

/** A memory that is likely to be used, with its probability and the reasons. */
export interface Predicted {
  memory_id: string;
  kind: string;
  confidence: number;
  reasons: Array<string>;
  is_bearing?: boolean;
}

/** What is likely to be wanted in a session, the likeliest first. */
export interface PredictionAnswer {
  session_id: string;
  predicted_memories: Array<Predicted>;
  confidence: number;
}

/** A failure, in the members of RFC 9457. */
export interface Problem {
  /** Which kind of problem, as a URN that stays the same. */
  type: string;
  title: string;
  status: number;
  /** What is wrong and what to do about it. */
  detail: string;
  /** This very failure: the id of the request, as the log names it. */
  instance: string;
  /** The places to mend, of an invalid request. */
  errors?: Array<FieldError> | null;
}

/** How something is done: a K-line of three bands, a workflow of steps, or a pattern with a template. */
export interface Procedure {
  /** Its id. */
  id: string;
  /** Its state in the lifecycle. */
  state: string;
  /** Its name. */
  name: string;
  /** The field it belongs to, such as `deployment`. */
  domain: string | null;
  /** A `k_line` has three bands, a `workflow` steps, a `pattern` a template; by default `workflow` where only steps are given. */
  kind: "k_line" | "workflow" | "pattern";
  /** Upper fringe: what it is for. */
  goals: Array<string>;
  /** Core: how it is done. */
  core_patterns: Array<string>;
  /** Core: what it is done with. */
  core_tools: Array<string>;
  /** Core: what one has to know. */
  core_concepts: Array<string>;
  /** Lower fringe: details that change easily. */
  implementation_notes: Array<string>;
  /** Of a workflow, in their order, each a name or {"name": …, "detail": …} (at most 100). */
  steps: Array<unknown>;
  /** Of a pattern: a JSON object to be filled in, at most 32 KiB. */
  template: unknown;
  /** When to use it. */
  trigger: string | null;
  /** Its text in one line. */
  compressed: string | null;
  /** How often it was activated. */
  activation_count: number;
  /** How many uses succeeded. */
  success_count: number;
  /** How many uses failed. */
  failure_count: number;
  /** When it was last activated. */
  last_activated_at: string | null;
  /** Related procedures. */
  related_procedures: Array<string>;
  /** Decisions it comes from. */
  related_decision_ids: Array<string>;
  /** What to avoid while doing it. */
  censors: Array<string>;
  /** Words to find it by. */
  tags: Array<string>;
  /** Why a night flagged it for review. */
  review_reason: string | null;
  /** Where it comes from. */
  source: string | null;
  /** Who or what stated it; `episode` needs the episode it was drawn from, and is trusted as that is. */
  source_kind: "user" | "agent" | "tool" | "web" | "episode" | "import" | "operator";
  /** How far it is trusted: 0 is anybody's web page, 100 the operator; by default that of its `source_kind`. At most what the caller may claim. */
  trust: number;
  /** Keeps nights from archiving it; for callers that may pin. */
  is_pinned: boolean;
  /** When it was stated; by default now. */
  learned_at: string;
  /** The cognitive frame the agent is in, such as debug; by default that of its session. */
  encoded_frame: string | null;
  /** The active censors; by default those of the session. */
  encoded_censors: Array<string> | null;
  /** Who finds it: `private` those who ask for its user and its project, as far as it names them; `project` everybody in its `project_id`; `system` everybody. A night makes a `private` fact that two users of a project hold the project's (`share_among_users` of `nous policy`). */
  scope: "private" | "project" | "system";
  /** The user whose own it is; by default nobody's, and so everybody's. */
  user_id: string | null;
  /** The project it belongs to. */
  project_id: string | null;
  /** The weight nights derived from its use: recall multiplies its score by it. */
  rank_weight: number;
  /** Its version, incremented by every change. */
  row_version: number;
  /** Forgotten on request: archived, and not found by questions about the past either. */
  is_forgotten?: boolean;
}

/** How something is done. */
export interface ProcedureBody {
  /** Of a workflow, in their order, each a name or {"name": …, "detail": …} (at most 100). */
  steps?: Array<string | StepBody> | null;
  /** Of a pattern: a JSON object to be filled in, at most 32 KiB. */
  template?: Record<string, unknown> | null;
  /** A summary in one line; by default made of its name and steps, such as "deploy: test→build→stage". */
  hint?: string | null;
  /** What it is called; the same name again is a new version. */
  name: string;
  /** A `k_line` has three bands, a `workflow` steps, a `pattern` a template; by default `workflow` where only steps are given. */
  kind?: "k_line" | "workflow" | "pattern";
  /** The field it belongs to, such as `deployment`. */
  domain?: string | null;
  /** Upper fringe: what it is for. */
  goals?: Array<string> | null;
  /** Core: how it is done. */
  core_patterns?: Array<string> | null;
  /** Core: what it is done with. */
  core_tools?: Array<string> | null;
  /** Core: what one has to know. */
  core_concepts?: Array<string> | null;
  /** Lower fringe: details that change easily. */
  implementation_notes?: Array<string> | null;
  /** When to use it. */
  trigger?: string | null;
  /** Related procedures. */
  related_procedures?: Array<string> | null;
  /** Decisions it comes from. */
  related_decision_ids?: Array<string> | null;
  /** What to avoid while doing it. */
  censors?: Array<string> | null;
  /** Words to find it by. */
  tags?: Array<string> | null;
  /** Who finds it: `private` those who ask for its user and its project, as far as it names them; `project` everybody in its `project_id`; `system` everybody. A night makes a `private` fact that two users of a project hold the project's (`share_among_users` of `nous policy`). */
  scope?: "private" | "project" | "system";
  /** The user whose own it is; by default nobody's, and so everybody's. */
  user_id?: string | null;
  /** The project it belongs to. */
  project_id?: string | null;
  /** Where it comes from. */
  source?: string | null;
  /** Who or what stated it; `episode` needs the episode it was drawn from, and is trusted as that is. */
  source_kind?: "user" | "agent" | "tool" | "web" | "episode" | "import" | "operator";
  /** How far it is trusted: 0 is anybody's web page, 100 the operator; by default that of its `source_kind`. At most what the caller may claim. */
  trust?: number | null;
  /** Keeps nights from archiving it; for callers that may pin. */
  is_pinned?: boolean;
  /** When it was stated; by default now. */
  learned_at?: string | null;
  /** The cognitive frame the agent is in, such as debug; by default that of its session. Taken as encoded_frame and frame_used too. */
  frame?: string | null;
  /** The active censors; by default those of the session. Taken as encoded_censors too. */
  active_censors?: Array<string> | null;
}

/** Procedures, the best first. */
export interface ProcedureList {
  procedures: Array<Procedure>;
}

/** Whether calls can be served now, and the checks that decide it. */
export interface Readiness {
  is_ready: boolean;
  checks: Array<HealthCheck>;
}

/** Why something is done to a memory. */
export interface ReasonBody {
  reason?: string | null;
}

/** The answers of a recall, best first. */
export interface RecallAnswer {
  recall_id: string;
  memories: Array<Remembered>;
  confidence: number;
  is_confident: boolean;
  is_by_words: boolean;
}

/** A question to the memory. */
export interface RecallBody {
  /** What to look for, as a question or in words. */
  query: string;
  /** How many memories at most. */
  limit?: number;
  /** Leave out answers with a lower score; by default none. */
  min_score?: number | null;
  /** Kinds of memory to search; by default all. Taken as types too. */
  kinds?: Array<"fact" | "episode" | "procedure" | "censor"> | null;
  /** How much of each memory its `text` holds. */
  detail?: "full" | "summary" | "compressed" | "index";
  /** The cognitive frame the agent is in, such as debug. */
  frame?: string | null;
  /** The active censors; by default those of the session. */
  active_censors?: Array<string> | null;
  /** Ask for what was believed then. */
  as_of?: string | null;
  /** The session of the caller. */
  session_id?: string | null;
  /** The user who asks: finds their own besides what is everybody's. */
  user_id?: string | null;
  /** The project: what is in it is found besides what is in none. */
  project_id?: string | null;
}

/** An episode that is over, in one call. */
export interface RecordBody {
  /** What it produced or was about: pairs of a kind (`commit`, `pr`, `adr`, `file`) and what names it in at most 200 characters. */
  artifacts?: Array<ArtifactBody> | null;
  /** How long it took; with `started_at`, instead of `ended_at`. */
  duration_seconds?: number | null;
  /** What was said and done. */
  detail?: string | null;
  /** Its title; by default the first words of its text. */
  title?: string | null;
  /** What happened, in short; written for it by default. */
  summary?: string | null;
  /** What was learned of it, a sentence or a few each. */
  lessons_learned?: Array<string> | null;
  /** How it went. */
  outcome?: "success" | "failure" | "partial" | "ongoing" | null;
  /** How much of it was not expected. */
  surprise_level?: number | null;
  /** Who took part. */
  participants?: Array<string> | null;
  /** Words to find it by. */
  tags?: Array<string> | null;
  /** Decisions taken in it: recorded here, by id or reference, or elsewhere, by their names there. */
  decision_ids?: Array<string> | null;
  /** The cognitive frame the agent is in, such as debug; by default that of its session. Taken as encoded_frame and frame_used too. */
  frame?: string | null;
  /** The active censors; by default those of the session. Taken as encoded_censors too. */
  active_censors?: Array<string> | null;
  /** Who finds it: `private` those who ask for its user and its project, as far as it names them; `project` everybody in its `project_id`; `system` everybody. A night makes a `private` fact that two users of a project hold the project's (`share_among_users` of `nous policy`). */
  scope?: "private" | "project" | "system";
  /** The user whose own it is; by default nobody's, and so everybody's. */
  user_id?: string | null;
  /** The project it belongs to. */
  project_id?: string | null;
  /** Where it comes from. */
  source?: string | null;
  /** Who or what stated it; `episode` needs the episode it was drawn from, and is trusted as that is. */
  source_kind?: "user" | "agent" | "tool" | "web" | "episode" | "import" | "operator";
  /** How far it is trusted: 0 is anybody's web page, 100 the operator; by default that of its `source_kind`. At most what the caller may claim. */
  trust?: number | null;
  /** Keeps nights from archiving it; for callers that may pin. */
  is_pinned?: boolean;
  /** The session it happens in: its frame and censors are the defaults. */
  session_id?: string | null;
  /** When it began; by default now. */
  started_at?: string | null;
  /** When it ended; by default now. */
  ended_at?: string | null;
}

/** A step that was done. */
export interface RecordStepBody {
  name: string;
  detail?: string | null;
  session_id?: string | null;
}

/** One answer of a recall: the text to show, why it stands where it stands, and the whole memory. */
export interface Remembered {
  id: string;
  kind: string;
  text: string;
  score: number;
  parts: ScoreParts;
  memory: FoundMemory;
  put_before: string | null;
  contradicted_by: Array<string>;
  begins_on: string | null;
  changed_by: Array<string>;
}

/** What became of a decision. */
export interface ResolutionBody {
  status: "succeeded" | "failed" | "abandoned";
  outcome?: string | null;
}

/** Why a memory is brought back, and how far. */
export interface RestoreBody {
  reason?: string | null;
  /** Undo what superseded the fact, too, or leave it beside its like. */
  is_active?: boolean;
}

/** How a contradiction ends: a `resolution`, or `keep`, the fact that wins. */
export interface RulingBody {
  resolution?: "a_wins" | "b_wins" | "both_valid" | "merged" | "same" | null;
  /** Instead of a resolution: the id of the fact that wins. */
  keep?: string | null;
  note?: string | null;
  /** With `merged`, and only then: the fact, learned for it, that takes both places. */
  merged_into?: string | null;
}

/** The parts of a score, which is the product of relevance, boosts and rank weight. */
export interface ScoreParts {
  dense: number;
  lexical: number;
  relevance: number;
  frame_boost: number;
  censor_boost: number;
  time_boost: number;
  rank_weight: number;
  score: number;
}

/** The result of ending a session: the episode that has its texts, None where there were none. */
export interface SessionEnd {
  session_id: string;
  task: string | null;
  episode: Episode | null;
  released: Array<string>;
}

/** What the agent is doing right now. */
export interface SignalsBody {
  /** The open file, from the root of its project. */
  current_file?: string | null;
  /** What that file imports; its directory is its module. */
  imports?: Array<string> | null;
  /** The branch that was checked out. */
  branch?: string | null;
  /** Texts of errors seen lately, the latest first. */
  recent_errors?: Array<string> | null;
  /** What is being done, such as debugging; where no frame is given it is used as the frame. */
  activity?: string | null;
  /** What is to be achieved, in words. */
  task?: string | null;
  /** Who takes part. */
  collaborators?: Array<string> | null;
}

/** Which memories no longer hold what a source said, the latest first, and which still do. */
export interface SourceAnswer {
  undone: Array<string>;
  refused: Array<NotUndone>;
}

/** Which source is to be taken back, and why. */
export interface SourceBody {
  /** As memories name it, or the name an import was given. */
  source: string;
  reason: string;
}

/** Why a statement is made a fact of its own. */
export interface SplitBody {
  reason?: string | null;
}

/** An episode that begins. */
export interface StartBody {
  /** What it produced or was about: pairs of a kind (`commit`, `pr`, `adr`, `file`) and what names it in at most 200 characters. */
  artifacts?: Array<ArtifactBody> | null;
  /** Its title; by default the first words of its text. */
  title?: string | null;
  /** Who took part. */
  participants?: Array<string> | null;
  /** Words to find it by. */
  tags?: Array<string> | null;
  /** Decisions taken in it: recorded here, by id or reference, or elsewhere, by their names there. */
  decision_ids?: Array<string> | null;
  /** The cognitive frame the agent is in, such as debug; by default that of its session. Taken as encoded_frame and frame_used too. */
  frame?: string | null;
  /** The active censors; by default those of the session. Taken as encoded_censors too. */
  active_censors?: Array<string> | null;
  /** Who finds it: `private` those who ask for its user and its project, as far as it names them; `project` everybody in its `project_id`; `system` everybody. A night makes a `private` fact that two users of a project hold the project's (`share_among_users` of `nous policy`). */
  scope?: "private" | "project" | "system";
  /** The user whose own it is; by default nobody's, and so everybody's. */
  user_id?: string | null;
  /** The project it belongs to. */
  project_id?: string | null;
  /** Where it comes from. */
  source?: string | null;
  /** Who or what stated it; `episode` needs the episode it was drawn from, and is trusted as that is. */
  source_kind?: "user" | "agent" | "tool" | "web" | "episode" | "import" | "operator";
  /** How far it is trusted: 0 is anybody's web page, 100 the operator; by default that of its `source_kind`. At most what the caller may claim. */
  trust?: number | null;
  /** Keeps nights from archiving it; for callers that may pin. */
  is_pinned?: boolean;
  /** The session it happens in: its frame and censors are the defaults. */
  session_id?: string | null;
  /** When it began; by default now. */
  started_at?: string | null;
}

/** A night that runs in the background, or is over. */
export interface Started {
  run: string;
  night: string;
  state: "running" | "succeeded" | "failed";
  interface: string;
  counts?: Record<string, number> | null;
  failures?: Array<string>;
  notices?: Array<string>;
  watch?: string;
}

/** A statement, word for word, and its fact. */
export interface Statement {
  id: string;
  fact_id: string;
  content: string;
  subject: string | null;
  said_at: string;
  recorded_at: string;
  source: string | null;
  source_kind: "user" | "agent" | "tool" | "web" | "episode" | "import" | "operator";
  trust: number;
  reason: string;
  taken_back_at: string | null;
  scope: "private" | "project" | "system";
  user_id: string | null;
  project_id: string | null;
  session_id: string | null;
  episode_id: string | null;
  decision_id: string | null;
  frame: string | null;
}

/** What was said for a fact, the oldest first. */
export interface StatementList {
  statements: Array<Statement>;
  unrecorded_count: number;
}

/** One step with its detail. */
export interface StepBody {
  name: string;
  detail?: string | null;
}

/** How many of the facts were new. */
export interface StoredCount {
  stored: number;
}

/** Which fact takes the place of an older one, and why. */
export interface SupersedeBody {
  /** The fact that takes its place. */
  new_id: string;
  reason?: string | null;
  /** Both say the same: it is merged into the other. */
  is_same?: boolean;
}

/** What is still to be done. */
export interface ThreadBody {
  text: string;
}

/** Tokens of each tier: critical, relevant, background, index. */
export interface Tiers {
  tier1: number;
  tier2: number;
  tier3: number;
  tier4: number;
}

/** Why a change is taken back. */
export interface UndoBody {
  reason: string;
}

/** Which nights are to be taken back, and why. */
export interface UndoNightsBody {
  /** The first night of the range. */
  first: string;
  /** The last one, with which it begins: nights are taken back newest first. */
  last: string;
  /** One kind of proposal alone, such as merge. */
  kind?: string | null;
  /** Why; kept with the event of each change. */
  reason?: string;
}

/** What became of nights that were to be taken back. */
export interface UndoneNights {
  undone: Record<string, number>;
  refused: Record<string, string>;
}

/** What a session lets go of. */
export interface UnloadBody {
  ids: Array<string>;
}

/** More of an episode: lists grow, single values are replaced. */
export interface UpdateBody {
  /** What it produced or was about: pairs of a kind (`commit`, `pr`, `adr`, `file`) and what names it in at most 200 characters. */
  artifacts?: Array<ArtifactBody> | null;
  /** Its title; by default the first words of its text. */
  title?: string | null;
  /** What happened, in short; written for it by default. */
  summary?: string | null;
  /** What was learned of it, a sentence or a few each. */
  lessons_learned?: Array<string> | null;
  /** How it went. */
  outcome?: "success" | "failure" | "partial" | "ongoing" | null;
  /** How much of it was not expected. */
  surprise_level?: number | null;
  /** Who took part. */
  participants?: Array<string> | null;
  /** Words to find it by. */
  tags?: Array<string> | null;
  /** Decisions taken in it: recorded here, by id or reference, or elsewhere, by their names there. */
  decision_ids?: Array<string> | null;
  /** The cognitive frame the agent is in, such as debug; by default that of its session. Taken as encoded_frame and frame_used too. */
  frame?: string | null;
  /** The active censors; by default those of the session. Taken as encoded_censors too. */
  active_censors?: Array<string> | null;
  /** A new line of its detail. */
  append?: string | null;
}

/** A webhook and the state of its delivery, without its secret. */
export interface Webhook {
  id: string;
  url: string;
  names: Array<string>;
  allows_private: boolean;
  created_at: string;
  failed_count: number;
  last_error: string | null;
  retry_at: string | null;
}

/** Where events are to be sent, and which. */
export interface WebhookBody {
  /** A public address of https; `nous webhook add --allow-private` allows others. */
  url: string;
  /** Of events; `*` is all. */
  names?: Array<string>;
}

/** The webhooks of an agent, oldest first. */
export interface WebhookList {
  webhooks: Array<Webhook>;
}

/** A workflow that was found, what was done about it, and the procedure it is kept as. */
export interface WorkflowAnswer {
  action: string;
  name: string;
  steps: Array<string>;
  support: number;
  success_share: number | null;
  procedure: Procedure | null;
}

/** The workflows that episodes share. */
export interface WorkflowList {
  workflows: Array<WorkflowAnswer>;
}

/** Whose episodes are looked at, and whether what is found is kept. */
export interface WorkflowsBody {
  user_id?: string | null;
  project_id?: string | null;
  /** False only looks: nothing is stored or counted. */
  is_recorded?: boolean;
}

/** What a session is about and what it holds, the most relevant first. */
export interface WorkingMemory {
  session_id: string;
  task: string | null;
  frame: string | null;
  items: Array<Held>;
  open_threads: Array<string>;
  capacity: number;
  episode_id: string | null;
  evicted?: Array<Held>;
  active_censors?: Array<string> | null;
}

/** One agent's memory over HTTP. A call that fails throws a `NousProblem`. */
export declare class Nous {
  constructor(options?: ClientOptions);
  /** Return the paths of everything. */
  getLinks(options?: CallOptions): Promise<Links>;
  /** Return at once; the database is not asked. */
  getHealth(options?: CallOptions): Promise<Health>;
  /** Check the database, its schema and the embedder; only administrators see what is wrong with them. */
  getReadiness(options?: CallOptions): Promise<Readiness>;
  /** Return the metrics for Prometheus: no memories, no names of agents. Needs a key unless on loopback. */
  getMetrics(options?: CallOptions): Promise<string>;
  /** Learn one fact: confirm the one that says the same, supersede the one it updates, or store it. Returns what was done and why, with the facts `near` it. When the judge fails, the fact is stored, and a night compares it again. */
  learn(body: FactBody, options?: CallOptions): Promise<Learned>;
  /** Return the statements of a fact in any state, word for word, the oldest first. Statements of facts that were merged into it are included. Confirmations from before statements were stored are counted in `unrecorded_count` only. */
  listStatements(fact_id: string, options?: CallOptions): Promise<StatementList>;
  /** Store many facts at once, and leave all matching to the night: all of them, or none. Meant for histories. */
  learnDeferred(body: DeferredBody, options?: CallOptions): Promise<StoredCount>;
  /** Return how many facts the agent has in each state. */
  countFacts(options?: CallOptions): Promise<FactCounts>;
  /** Return one fact in whatever state it is. */
  getFact(fact_id: string, options?: CallOptions): Promise<Fact>;
  /** Confirm that a fact still holds: add to its confirmations, with date and source, and return it. */
  confirmFact(fact_id: string, body: ConfirmBody, options?: CallOptions): Promise<Fact>;
  /** Put one fact in the place of another, and return the old one, which only `as_of` brings back. Both are of one scope, user and project, or the new one is for more to recall. */
  supersedeFact(fact_id: string, body: SupersedeBody, options?: CallOptions): Promise<Fact>;
  /** Return the facts that one has superseded, replaced or merged into it, the latest first. The fact that superseded it is in `superseded_by`. */
  listPredecessors(fact_id: string, options?: CallOptions): Promise<FactList>;
  /** Split a statement off its fact as a fact of its own, and return that; `undo` joins the two again. The first fact loses a confirmation, and the two stay apart: neither nights nor learning the same words again join them. Splitting the first statement of a merged fact makes that fact active again. */
  split(statement_id: string, body: SplitBody, options?: CallOptions): Promise<Fact>;
  /** Decide that a fact does not replace an earlier one that it perhaps replaces; `undo` takes the decision back. Both are active, also where one had given way to the other since, and recall no longer puts one before the other. */
  keepBoth(fact_id: string, body: KeepBothBody, options?: CallOptions): Promise<Fact>;
  /** Return the memories that answer `query`, best first, with the parts of each score, and log the recall. A memory encoded in the same frame scores 1.3 times as much, one encoded under the same censors up to 1.2 times; neither hides anything. A server that takes no writes, such as a standby, answers too, and logs nothing. */
  recall(body: RecallBody, options?: CallOptions): Promise<RecallAnswer>;
  /** Say which answers of a recall, or lines of a context, were used, and which were of no use. Saying it twice counts once. What the recall did not return is not found. */
  giveFeedback(recall_id: string, body: FeedbackBody, options?: CallOptions): Promise<FeedbackAnswer>;
  /** Return what is worth knowing now as a text within a budget of tokens, each line with the reason it is there. `budget` (by default that of the `frame`, else 8,000) is never exceeded, no memory appears twice, and open contradictions are marked. `query`, `signals` and the session say what it is about; without them it holds what matters in any case: what is pinned or in doubt, the latest episodes, what is most used. `cite` and `ignore` take its `recall_id`. */
  assembleContext(body: AssembleBody, options?: CallOptions): Promise<ContextAnswer>;
  /** Return the memories this session is likely to want, each with its chance and reasons, and store its signals. Based on what sessions with the same file, module, branch, error, hour, collaborator or activity used; without any such session, on memories near to the words of the signals. The session's next context starts from it. With `at` it is a prediction for another moment, and nothing is stored. */
  predict(body: PredictBody, options?: CallOptions): Promise<PredictionAnswer>;
  /** Begin an episode, in state `open` and tier `raw`. An open episode of the same session stays open: the one begun last is the current one. */
  startEpisode(body: StartBody, options?: CallOptions): Promise<Episode>;
  /** Store an episode that is over, in one call; it is completed as a closed one is. Without dates it happened now; with one of the two it began and ended at that moment. */
  recordEpisode(body: RecordBody, options?: CallOptions): Promise<Episode>;
  /** Return one episode in whatever state it is. */
  getEpisode(episode_id: string, options?: CallOptions): Promise<Episode>;
  /** Update an episode: `append` adds a line to its detail, lists grow, single values are replaced. Equal values change nothing. An outcome set after the episode was completed is stored, but has no further effect: no procedure is counted and no censor suggested. */
  updateEpisode(episode_id: string, body: UpdateBody, options?: CallOptions): Promise<Episode>;
  /** Return the most detailed text of an episode that still exists, also for one that a night condensed. Recall shows the short text of a condensed episode's tier; this reads cold storage, and changes nothing. */
  getFullText(episode_id: string, options?: CallOptions): Promise<FullText>;
  /** Return the commits, pull requests, decision records and files of an episode. */
  listArtifacts(episode_id: string, options?: CallOptions): Promise<ArtifactList>;
  /** Add a step, such as "build", to the open episode of a session, and return the episode. It becomes a line of the episode's detail; a `detail` that looks like a credential is left out. */
  recordStep(body: RecordStepBody, options?: CallOptions): Promise<Episode>;
  /** End an episode; within 30 s a worker adds a title, a summary and up to twelve facts, of a chat 24. An episode that is over is returned unchanged; use `update_episode` to add to it. */
  closeEpisode(episode_id: string, body: CloseBody, options?: CallOptions): Promise<Episode>;
  /** Queue the completion of a closed episode again that was set aside after too many failures. */
  retryEpisode(episode_id: string, options?: CallOptions): Promise<Episode>;
  /** Return the procedures of a domain and a state, by default all that are not archived; the best first. */
  listProcedures(query?: { domain?: string; state?: "active" | "review" | "archived" }, options?: CallOptions): Promise<ProcedureList>;
  /** Store how something is done under a name, and return the procedure. The same name with other content makes a new version: counts stay, a review ends, and events keep the earlier content; the same content changes nothing. */
  storeProcedure(body: ProcedureBody, options?: CallOptions): Promise<Procedure>;
  /** Return one procedure in whatever state it is. */
  getProcedure(procedure_id: string, options?: CallOptions): Promise<Procedure>;
  /** Return procedures related to one: linked ones, then those of its domain, then those near in meaning. */
  relatedProcedures(procedure_id: string, query?: { limit?: number }, options?: CallOptions): Promise<ProcedureList>;
  /** Store the runs of steps that at least three closed episodes share as workflows, and return them. Reads the latest 500 closed episodes of that user and project with steps, of each the first 200 steps, 20,000 in all. A workflow with the same steps is not stored twice, and each episode counts once for it as a success or a failure. With `is_recorded=False` nothing is stored. */
  learnWorkflows(body: WorkflowsBody, options?: CallOptions): Promise<WorkflowList>;
  /** Load a procedure into a session's working memory, and count it. */
  activateProcedure(procedure_id: string, body: ActivateBody, options?: CallOptions): Promise<Procedure>;
  /** Say that a procedure worked or failed; nights flag for review those that mostly fail. */
  recordProcedureOutcome(procedure_id: string, body: OutcomeBody, options?: CallOptions): Promise<Procedure>;
  /** Return the censors that are `active` or `archived`, the firmest first. */
  listCensors(query?: { state?: "active" | "archived" }, options?: CallOptions): Promise<CensorList>;
  /** Store a warning against an action, and return the censor. An active censor of the same reach that says the same is returned instead, made stricter where the new one is. */
  addCensor(body: CensorBody, options?: CallOptions): Promise<Censor>;
  /** Return one censor in whatever state it is. */
  getCensor(censor_id: string, options?: CallOptions): Promise<Censor>;
  /** Change the severity, threshold, expiry or pin of a censor; the only way down, and to `absolute` and back. A lowered severity stays until new activations reach the threshold. Trigger and reason never change: to say something else, let it expire and add another. */
  updateCensor(censor_id: string, body: CensorChangesBody, options?: CallOptions): Promise<Censor>;
  /** Return the censors that an action sets off, the strictest first: `is_allowed` means go ahead. A match by meaning alone only warns and asks "did you mean"; literal and near matches have the severity of their censor. Each censor that fires is counted, and a warning that reaches its threshold by literal or near matches blocks from this action on. All but embedding takes one round trip, and a second one when something fires. To measure it without the embedding, open the Heart with an embedder that looks its vectors up. */
  checkCensors(body: CheckBody, options?: CallOptions): Promise<CheckAnswer>;
  /** Report an activation as a false alarm: that action, and similar ones, no longer set the censor off. It is the activation with this id; else the latest one of this action, or the latest of all, not reported yet. It no longer counts towards a block, and nights retire a censor of which most activations were reported. An action that set nothing off becomes an exception and counts nothing. An agent's report does not lift the block of a censor that is absolute or trusted more than 50: that takes a person, `source_kind="user"`. */
  reportFalsePositive(censor_id: string, body: FalsePositiveBody, options?: CallOptions): Promise<Censor>;
  /** Set task, frame, censors or capacity of a session: its items are ranked again, the least relevant evicted. Begins the session if there is none. Parameters left out stay as they are. Frame and censors are the defaults of every verb that is called with this `session_id`. */
  focus(session_id: string, body: FocusBody, options?: CallOptions): Promise<WorkingMemory>;
  /** Load memories, or a note, into working memory; the answer names the items evicted for them. The least relevant items are evicted, and among equals those loaded first; a new item may be one of them. The relevance of a memory is its cosine to the task, unless `relevance` is given. */
  loadContext(session_id: string, body: LoadBody, options?: CallOptions): Promise<WorkingMemory>;
  /** Return the items of a session, the most relevant first, with short texts. The `state` of a memory may have become superseded or archived; forgotten and erased ones are left out. */
  getWorkingMemory(session_id: string, options?: CallOptions): Promise<WorkingMemory>;
  /** Unload memories and notes by their ids; notes are kept for the session's episode. */
  unload(session_id: string, body: UnloadBody, options?: CallOptions): Promise<WorkingMemory>;
  /** Add an open thread, something to be done; open threads are stored in the session's episode at its end. */
  openThread(session_id: string, body: ThreadBody, options?: CallOptions): Promise<WorkingMemory>;
  /** Close a thread by its text or its place from 0. */
  closeThread(session_id: string, body: CloseThreadBody, options?: CallOptions): Promise<WorkingMemory>;
  /** End a session: store its task, notes, open threads and lessons in its episode, and delete it. The open episode is closed, or a new one stored if there is any text. Its completion draws facts from it, with the scope, user and project of the episode: `scope`, `user_id` and `project_id` set those of a new one. */
  endSession(session_id: string, body: EndBody, options?: CallOptions): Promise<SessionEnd>;
  /** Return decisions, the latest first: those of a status, about a file, with a tag, of a session or episode. A file is the same however it is spelled: `./src//a.py` and `src\a.py` are `src/a.py`. */
  listDecisions(query?: { status?: "pending" | "succeeded" | "failed" | "abandoned"; file?: string; tag?: string; session_id?: string; episode_id?: string; limit?: number }, options?: CallOptions): Promise<DecisionList>;
  /** Record what was decided and why; it and the episode that is open now name each other. `reference` is what the agent itself calls it, and names it from then on wherever a decision is asked for. */
  recordDecision(body: DecisionBody, options?: CallOptions): Promise<Decision>;
  /** Return one decision by its id or reference. */
  getDecision(decision_id: string, options?: CallOptions): Promise<Decision>;
  /** Record the outcome of a decision; a failed one leaves a censor that warns of doing so again. Recording the same twice changes nothing. */
  resolveDecision(decision_id: string, body: ResolutionBody, options?: CallOptions): Promise<Decision>;
  /** Return the agent's contradictions in one status, the oldest first. */
  listContradictions(query?: { status?: "open" | "resolved" | "any" }, options?: CallOptions): Promise<ContradictionList>;
  /** Return the facts that perhaps replace earlier ones, in one status, the oldest first. */
  listDoubts(query?: { status?: "open" | "resolved" | "any" }, options?: CallOptions): Promise<DoubtList>;
  /** Resolve a contradiction: `a_wins`, `b_wins`, `both_valid`, `same`, or `merged` into a fact learned for it. Or give the id of the winning fact as `keep`; `contradiction.a` and `.b` are both facts. Two that say the `same` are merged as by a night: into the earlier, unless the other is pinned, trusted more or has a key. The loser is superseded; `undo` of either makes it active again and opens the contradiction again, also where both hold. A fact that had given way to the other one since is active again where it holds; one that something else took out of recall raises `Conflict`, which says how to bring it back. The same ruling twice changes nothing; another ruling raises `Conflict`. A ruling against a fact that is pinned, trusted more than the other or trusted more than the caller may claim is only stored as `proposed` for a caller who is not an operator: the contradiction is returned open, for a person to decide. */
  resolveContradiction(contradiction_id: string, body: RulingBody, options?: CallOptions): Promise<Contradiction>;
  /** Delete the proposed ruling of a contradiction, which stays open; for operators. */
  rejectRuling(contradiction_id: string, options?: CallOptions): Promise<Contradiction>;
  /** Announce something that happened outside: `guardrail_triggered`, `calibration_drift`, or a name of your own. `guardrail_triggered` names `censor_id` or `censor_ids`, or tells the `action` to be checked, with its `session_id`, `user_id` and `project_id`; `calibration_drift` names `procedure_ids` or a `domain`, and may tell `drift` and a `note`. */
  publish(body: EventBody, options?: CallOptions): Promise<void>;
  /** Return where events are sent and how that goes, oldest first. */
  listWebhooks(options?: CallOptions): Promise<WebhookList>;
  /** Send events of these names to an address from now on, signed, at least once and in order. */
  addWebhook(body: WebhookBody, options?: CallOptions): Promise<NewWebhook>;
  /** Send nothing more to a webhook. */
  removeWebhook(webhook_id: string, options?: CallOptions): Promise<void>;
  /** Return memories of all kinds, or of those that are asked for, the latest first. For the next page tell the last one of this page as `before`. */
  listMemories(query?: { kinds?: Array<"fact" | "episode" | "procedure" | "censor">; state?: "current" | "any" | "active" | "open" | "closed" | "review" | "superseded" | "archived" | "quarantined"; about?: string; source?: string; user_id?: string; project_id?: string; since?: string; until?: string; before?: string; limit?: number }, options?: CallOptions): Promise<MemoryList>;
  /** Return one memory of any kind in whatever state it is: a `Fact`, `Episode`, `Procedure` or `Censor`. */
  getMemory(memory_id: string, options?: CallOptions): Promise<MemoryAnswer>;
  /** Update fields of a memory other than its text, and return it; equal values change nothing. A fact takes tags, subject, category, confidence, valid_from, valid_to and is_pinned; an episode and a procedure tags and is_pinned; a censor is_pinned. A text never changes: use `learn` for another one. */
  update(memory_id: string, body: CorrectionBody, options?: CallOptions): Promise<MemoryAnswer>;
  /** Return every change of one memory, the latest first: who changed it, why, when, and the values before. */
  getHistory(memory_id: string, options?: CallOptions): Promise<ChangeList>;
  /** Undo the latest change of a memory that is in effect, and return it; call it again for the one before. Undoing that a fact was learned archives it and makes the facts it had superseded active again. Undoing a ruling on a contradiction, on either side or by the id of the contradiction, makes what lost by it active again and opens the contradiction again. Undoing a confirmation in other words makes these a fact of their own, so that no statement is lost. `reason` is kept with the event; without one, that the agent took it back. */
  undo(memory_id: string, body: UndoBody, options?: CallOptions): Promise<PastChange>;
  /** Remove a memory of any kind from recall, contexts and questions about the past, at once. Its row, statements and history stay, so `restore` and `undo` bring it back; nights don't. Learning the same words again stores a new fact that names the forgotten one. Forgetting twice changes nothing. Facts that it has superseded stay out of recall, too: the answer names them. To delete a memory from the disk, erase it with `nous erase --memory`. `reason` is kept with the event; without one, that the agent forgot it. */
  forget(memory_id: string, body: ForgetBody, options?: CallOptions): Promise<Forgotten>;
  /** Restore a memory that was forgotten, or archived by a night, to its earlier state, and return it. A superseded fact is superseded again, and no recall finds it, unless `is_active` is told: then what superseded it is undone too. A fact that was learned again meanwhile is merged into the one that says the same, which `undo` takes back, unless `is_active` is told: then both are active. A memory that is not archived is otherwise returned as it is. */
  restore(memory_id: string, body: RestoreBody, options?: CallOptions): Promise<MemoryAnswer>;
  /** Keep nights from archiving or condensing a memory of any kind, and return it. */
  pin(memory_id: string, body: ReasonBody, options?: CallOptions): Promise<MemoryAnswer>;
  /** Let nights archive and condense a memory again, and return it. */
  unpin(memory_id: string, body: ReasonBody, options?: CallOptions): Promise<MemoryAnswer>;
  /** Undo all changes by one source, the latest first; a memory that can't be undone stays, with the reason. `source` is the source of statements and memories, or the name given to an import. Memories it began are archived, also those drawn from its episodes, and what they had superseded is active again; memories it only confirmed lose the confirmation. Of each memory everything is undone, or nothing: a fact with statements of other sources is refused. `restore` brings archived memories back. */
  undoSource(body: SourceBody, options?: CallOptions): Promise<SourceAnswer>;
  /** With `dry_run`, count what the night would change; without it, start the night and say where to watch it. For an administrator: for all agents, or for the one named in `X-Nous-Agent`. */
  consolidate(body: ConsolidateBody, options?: CallOptions): Promise<string>;
  /** Return the state of a night started here, and its counts when it has ended. */
  getConsolidation(run: string, options?: CallOptions): Promise<Started>;
  /** Take back what a range of nights changed, newest first: every row as it was, another event for each. For an administrator: of all agents, or of the one named in `X-Nous-Agent`. The range ends at the first night of which something is refused, because others built on it. Where the deadline comes first, what was taken back stays so; call it again. */
  undoNights(body: UndoNightsBody, options?: CallOptions): Promise<UndoneNights>;
  /** Return what a night changed and why, what it left alone and why, and how to take it back. An agent's key reads what concerns that agent; an administrator's reads all, or the agent in `X-Nous-Agent`. */
  getReport(query?: { night?: string }, options?: CallOptions): Promise<string>;
}
