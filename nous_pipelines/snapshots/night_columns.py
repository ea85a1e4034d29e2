"""The tables a query over the nights may read: where each lies, what a row is, and what each column means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

COMMON: Mapping[str, str] = {
    "night": "the night the row is of (date)",
    "id": "which one it is",
    "agent_id": "whose it is",
    "content": "its text",
    "subject": "what it is about",
    "slot": "which attribute of which thing it gives a value for, where that could be read off",
    "key": "which attribute it is a value of, as the caller said, such as ana/home",
    "category": "such as preference",
    "tags": "tags (list)",
    "confidence": "how sure it is, 0 to 1",
    "source": "where it comes from",
    "source_kind": "user, agent, tool, web, episode, import or operator",
    "source_episode_id": "the episode it was learned from",
    "sources": "every source of everything merged into it (list)",
    "trust": "how far its source is trusted, 0 to 100",
    "is_pinned": "whether nights leave it as it is",
    "learned_at": "when it was said",
    "last_confirmed_at": "when it was last said again",
    "confirmation_count": "how often it was said again",
    "superseded_by": "the fact that took its place",
    "superseded_at": "when that was",
    "succession": "merged (the successor says the same) or replaced (it says otherwise)",
    "valid_from": "from when it holds",
    "valid_to": "until when it holds",
    "archived_at": "when it was archived",
    "contradiction_status": "none, open or resolved",
    "encoded_frame": "the cognitive frame it was learned in",
    "encoded_censors": "the censors that were active then (list)",
    "scope": "private, project or system",
    "user_id": "the user it is about",
    "project_id": "the project it belongs to",
    "rank_weight": "its weight in recall, 0.25 to 4",
    "embedding_space_id": "the model its vector is of",
    "row_version": "how often it was written",
    "is_rewound": "whether it changed after the night and is shown as it was then",
    "retrieved_count": "how often it was recalled",
    "cited_count": "how often it was cited",
    "ignored_count": "how often it was recalled and ignored",
    "last_used_at": "when it was last recalled",
    "embedding": "its vector (list of numbers)",
    "title": "its title",
    "summary": "its summary",
    "compressed": "itself in one line",
    "index_word": "itself in a word",
    "detail": "its full text, until that goes to cold storage",
    "memory_id": "the memory it is about",
    "memory_kind": "fact, episode, procedure or censor",
    "kind": "its kind",
    "reason": "why",
    "targets": "the memories it is about (list of ids)",
    "left_id": "the fact that was stated first",
    "right_id": "the fact that was stated later",
    "left_said_at": "when the first was stated",
    "right_said_at": "when the later was stated",
    "similarity": "the cosine of the two",
    "is_across_users": "whether two users of one project said them",
    "is_ordered": "whether the right one was stated later, not at the same moment",
    "member_id": "the fact",
    "query": "what was asked",
    "name": "its name",
    "activation_count": "how often it was activated",
    "last_activated_at": "when it was last activated",
}


@dataclass(frozen=True)
class NightTable:
    """A table of the nights: its file in a night's folder, what a row is, and the meaning of its own columns."""

    file: str | None
    """None for what is read from the database."""
    meaning: str
    columns: Mapping[str, str]

    def meaning_of(self, column: str) -> str:
        """Return what a column means; nothing for one of a later version."""
        return self.columns.get(column) or COMMON.get(column, "")


TABLES: Mapping[str, NightTable] = {
    "facts": NightTable(
        "facts.parquet",
        "every fact as it was when the night ended",
        {"state": "active, superseded, archived or quarantined"},
    ),
    "statements": NightTable(
        "statements.parquet",
        "what had been said, word for word, and of which fact it speaks",
        {
            "fact_id": "the fact it speaks of",
            "said_at": "when it was said",
            "recorded_at": "when it was stored",
            "session_id": "the session it was said in",
            "episode_id": "the episode it was said in",
            "decision_id": "the decision it was said for",
            "frame": "the cognitive frame it was said in",
            "reason": "why it belongs to its fact: first, imported, repeat or reworded",
            "taken_back_at": "when the confirmation it led to was undone",
        },
    ),
    "episodes": NightTable(
        "episodes.parquet",
        "every episode as it was when the night ended",
        {
            "state": "open, closed or archived",
            "compression_tier": "raw, summary, compressed or fossil: how far it has been condensed",
            "started_at": "when it began",
            "ended_at": "when it ended",
            "completed_at": "when its title, summary and facts had been drawn from it",
            "completion_note": "why that was skipped",
            "participants": "who took part (list)",
            "outcome": "success, failure, partial or ongoing",
            "surprise_level": "how much it surprised, 0 to 1",
            "lessons_learned": "what was learned (list)",
            "procedures_activated": "which procedures were used (list of ids)",
            "decision_ids": "which decisions were taken (list)",
        },
    ),
    "procedures": NightTable(
        "procedures.parquet",
        "every procedure as it was when the night ended",
        {
            "state": "active, review or archived",
            "domain": "the field it belongs to",
            "success_count": "how often it succeeded",
            "failure_count": "how often it failed",
            "review_reason": "why it is to be looked at",
            "related_procedures": "others that belong with it (list)",
        },
    ),
    "censors": NightTable(
        "censors.parquet",
        "every censor as it was when the night ended",
        {
            "state": "active or archived",
            "trigger": "what sets it off",
            "severity": "warn, block or absolute",
            "false_positive_count": "how often that was a false alarm",
            "escalation_threshold": "after how many activations it grows more severe",
            "expires_at": "when it ends",
        },
    ),
    "uses": NightTable(
        "uses.parquet",
        "how often each memory was used on each day of the year before",
        {
            "day": "the day (UTC)",
            "retrieved": "how often it was recalled that day",
            "cited": "how often it was cited that day",
            "ignored": "how often it was recalled and ignored that day",
        },
    ),
    "recalls": NightTable(
        "recalls.parquet",
        "the questions asked lately, and what they found",
        {
            "recalled_at": "when it was asked",
            "types": "the kinds it was asked of (list)",
            "result_limit": "how many answers it wanted",
            "frame": "the cognitive frame it was asked in",
            "result_ids": "the memories it found (list)",
            "cited_ids": "those that were cited (list)",
            "ignored_ids": "those that were ignored (list)",
            "embedding": "the vector of the question (list of numbers)",
        },
    ),
    "contradictions": NightTable(
        "contradictions.parquet",
        "pairs of facts that can't both be so",
        {
            "memory_a": "the one fact",
            "memory_b": "the other fact",
            "status": "open or resolved",
            "resolution": "a_wins, b_wins, both_valid or merged",
            "detected_at": "when it was found",
        },
    ),
    "links": NightTable(
        "links.parquet",
        "what leads from one memory to another",
        {"from_id": "the memory it starts at", "to_id": "the memory it leads to", "weight": "how strong it is"},
    ),
    "cold_texts": NightTable(
        "cold_texts.parquet",
        "which texts of episodes lay in cold storage",
        {
            "tier": "the tier whose text it is",
            "stored_at": "when it was moved there",
            "purge_after": "when a purge may delete it",
        },
    ),
    "undone": NightTable("undone.parquet", "what a person took back, and no night proposes again", {}),
    "agents": NightTable(
        "agents.parquet",
        "whom the night was for",
        {"policy": "what the agent decides otherwise than the default policy (JSON)"},
    ),
    "pairs": NightTable("run/neighbours.parquet", "pairs of facts the night found worth a look", {}),
    "judgements": NightTable(
        "run/judgements.parquet",
        "those pairs with a verdict each",
        {
            "verdict": "same, updates, contradicts, compatible or unsure",
            "confidence": "how sure the judge is, 0 to 1",
            "model": "who judged",
            "pair_hash": "the hash of the two texts, by which a verdict is known again",
        },
    ),
    "copies": NightTable(
        "run/copies.parquet",
        "for each fact the one that stands for it and its copies",
        {
            "representative_id": "the fact that stands for it",
            "is_silent": "whether a person took it apart from another copy, so that it is merged no more",
            "speaker_id": "the fact that stands for all that say the same word for word",
        },
    ),
    "clusters": NightTable(
        "run/duplicate_clusters.parquet",
        "facts that say the same, in clusters",
        {"cluster_id": "the cluster"},
    ),
    "usage_ranks": NightTable(
        "run/usage_ranks.parquet",
        "how much each memory is used, and the weight that asks for",
        {
            "lift": "its citations, faded by age",
            "drop": "the recalls that ignored it, faded by age",
            "pace": "how much its agent uses memories at all",
            "relative": "its lift without its drop, against that pace",
            "weight": "the weight its use asks for",
            "lately_retrieved": "how often it was recalled lately",
            "lately_cited": "how often it was cited lately",
            "lately_ignored": "how often it was recalled and ignored lately",
            "is_probe": "whether it was cited lately, so that no night makes it harder to find",
            "read": "the memories whose uses it inherited, with their versions (list)",
        },
    ),
    "episode_summaries": NightTable(
        "run/episode_summaries.parquet", "the texts the night would keep of episodes that have aged", {}
    ),
    "proposals": NightTable(
        None,
        "what nights proposed, and what became of it by now",
        {
            "kind": "merge, supersede, contradiction, archive, share, tier, promote, demote, link, censor or procedure",
            "state": "proposed, applied, stale, refused or undone",
            "outcome": "why it went stale, was refused or was undone",
            "evidence": "what it rests on (JSON)",
            "changes": "what it changes (JSON)",
            "cost_usd": "what deciding it cost, in US dollars",
            "decided_at": "when it was applied, found stale, refused or undone",
            "plan_hash": "the plan it is of",
        },
    ),
}
