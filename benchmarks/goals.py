"""What each benchmark should reach: the one table of goals."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Goal:
    """A bound that a metric keeps, from below or from above."""

    bound: float
    is_ceiling: bool

    def is_met_by(self, value: float) -> bool:
        """Tell whether `value` keeps the bound."""
        return value <= self.bound if self.is_ceiling else value >= self.bound

    def __str__(self) -> str:
        return f"{'≤' if self.is_ceiling else '≥'} {self.bound:g}"


def at_least(bound: float) -> Goal:
    """Return the goal of a metric that should be large."""
    return Goal(bound=bound, is_ceiling=False)


def at_most(bound: float) -> Goal:
    """Return the goal of a metric that should be small."""
    return Goal(bound=bound, is_ceiling=True)


GOALS: dict[str, dict[str, Goal]] = {
    "join": {
        "faiss_over_ours_100k_384_ratio": at_least(8),
        "faiss_over_ours_30k_1536_ratio": at_least(5),
        "semhash_over_ours_ratio": at_least(10),
        "pairs_missed": at_most(0),
        "pairs_extra": at_most(0),
    },
    "dedup": {
        "precision": at_least(0.95),
        "recall": at_least(0.40),
        "false_merge_supersedes": at_most(0.005),
        "false_merge_contradiction": at_most(0.005),
        "false_merge_same_slot_other_value": at_most(0.005),
        "false_merge_different": at_most(0.02),
        "webnlg_pair_precision": at_least(0.99),
        "webnlg_pair_recall": at_least(0.70),
    },
    "recall": {
        "locomo_r10": at_least(0.76),
        "lme_r10": at_least(0.83),
        "beam_r10": at_least(0.63),
    },
    "supersession": {
        "fc_pair_recall": at_least(0.95),
        "fc_pair_precision": at_least(0.98),
        "fc_stale_at10": at_most(0.01),
        "fc_right_at10": at_least(0.99),
    },
    "online": {
        "recall_p50_over_bare_ratio": at_most(2),
        "recall_p95_ms": at_most(20),
        "learn_over_bare_ratio": at_most(3),
        "threads8_scaling_ratio": at_least(1.6),
        "censor_check_1000_ms": at_most(10),
    },
    "tenants": {
        "recall_at10_10": at_least(0.99),
        "recall_at10_200": at_least(0.99),
        "recall_at10_5000": at_least(0.99),
        "recall_at10_100000": at_least(0.99),
        "leaked_rows": at_most(0),
    },
    "forgetting": {
        "hit_50_over_best_peer_ratio": at_least(1),
        "hit_200_over_best_peer_ratio": at_least(1),
        "wrongly_archived_ratio": at_most(0.01),
    },
    "snapshot": {"over_raw_copy_ratio": at_most(1.5)},
    "night": {
        "many_agents_s": at_most(60),
        "one_agent_s": at_most(45),
        "peak_mb": at_most(1536),
        "incremental_over_full_ratio": at_most(0.10),
        "imported_over_full_ratio": at_most(0.10),
        "again_over_full_ratio": at_most(0.05),
        "second_run_changes": at_most(0),
    },
    "many": {
        "night_s": at_most(30),
        "seconds_per_changed_fact_1m_over_10k_ratio": at_most(1.2),
        "peak_mb": at_most(2048),
        "two_workers_speedup_ratio": at_least(1.7),
    },
    "judge": {
        "conflict_recall": at_least(0.92),
        "conflict_precision": at_least(0.95),
        "sick_contradiction_recall": at_least(0.70),
        "sick_contradiction_precision": at_least(0.90),
        "same_precision": at_least(0.95),
        "calibration_error": at_most(0.03),
    },
    "nomination": {
        "nominated_ratio": at_least(0.97),
        "pairs_per_fact": at_most(25),
    },
    "languages": {
        "other_r1": at_least(0.95),
        "english_r1": at_least(0.87),
    },
    "censors": {
        "precision": at_least(0.90),
        "recall": at_least(0.80),
        "block_precision": at_least(0.98),
        "near_miss_blocked": at_most(0),
    },
    "wording": {
        "lost_ratio": at_most(0),
        "joined_ratio": at_most(0.01),
        "night_joined_ratio": at_most(0.01),
        "update_chatty_ratio": at_least(0.60),
        "update_same_wording_ratio": at_least(0.85),
        "same_joined_ratio": at_least(0.50),
        "distinct_hurt_ratio": at_most(0.02),
        "odd_joined_ratio": at_most(0.01),
        "odd_night_joined_ratio": at_most(0.01),
        "odd_update_chatty_ratio": at_least(0.60),
        "odd_update_same_wording_ratio": at_least(0.85),
        "odd_same_joined_ratio": at_least(0.50),
        "odd_distinct_hurt_ratio": at_most(0.02),
        "stale_first_ratio": at_most(0.10),
    },
    "context": {
        "pmb_must_include_ratio": at_least(0.95),
        "pmb_superseded_shown": at_most(0),
        "pmb_out_of_reach_shown": at_most(0),
        "locomo_evidence_at_8k": at_least(0.85),
        "over_budget": at_most(0),
        "p95_ms_100k": at_most(50),
    },
    "api": {"rest_over_inprocess_p50_ratio": at_most(1.5), "requests_per_s": at_least(100)},
    "hooks": {
        "session_start_p95_ms": at_most(300),
        "prompt_p95_ms": at_most(300),
        "cold_ms": at_most(1500),
    },
    "console": {"slowest_page_p95_ms": at_most(200)},
    "cost": {"batch_over_online_ratio": at_most(0.55), "unmetered_requests": at_most(0)},
    "episodes": {
        "keep_covered_ratio": at_least(0.60),
        "passing_stored_ratio": at_most(0.05),
        "decision_cause_fix_ratio": at_least(0.85),
        "machine_lines_stored": at_most(0),
    },
    "summary": {"rouge1_minus_lead3": at_least(4)},
    "prediction": {"prefetched_ratio": at_least(0.70), "assembled_ratio": at_least(0.70)},
    "lifecycle": {"answers_findable_after_over_before_ratio": at_least(1)},
    "faults": {
        "acknowledged": at_least(100_000),
        "kills": at_least(50),
        "lost": at_most(0),
        "doubled": at_most(0),
        "incomplete": at_most(0),
        "control_lost": at_least(1),
        "races": at_least(10_000),
        "clobbered": at_most(0),
        "queries": at_least(1_000_000),
        "leaked": at_most(0),
    },
    "faults_beside": {
        "writer_killed_lost": at_most(0),
        "writer_killed_doubled": at_most(0),
        "two_writers_kept_percent": at_least(100),
        "odd_stored": at_most(0),
        "odd_broken": at_most(0),
        "foreign_told": at_most(0),
    },
}
