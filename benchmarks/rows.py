"""Which figures are published, in which words, beside which peers; natural wording first.

`seen` says how far what is measured on was known before: *unseen*; *tuned* (settings were chosen while looking at it);
*half trained* and *trained* (part of it, or the set itself, trained a model); *templated* (sentences of few patterns,
which rules can be shaped after); *drawn* (made up by a program, nothing to learn from).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

SEEN = ("unseen", "tuned", "half trained", "trained", "templated", "drawn")


@dataclass(frozen=True)
class Row:
    """One line of the table: one or several metrics of a benchmark, named in the same order in `what`."""

    benchmark: str
    what: str
    metrics: Sequence[str]
    seen: str
    peers: Sequence[tuple[str, str]] = ()
    """Each peer's name and its keys: as many as there are metrics, or one pattern in which {} stands for the metric."""
    is_short: bool = False
    """Whether the README has it too."""

    def keys(self, pattern: str) -> list[str]:
        """Return the keys of a peer, one for each metric."""
        return [pattern.format(metric) for metric in self.metrics] if "{}" in pattern else pattern.split()


def row(
    benchmark: str, what: str, metrics: str, seen: str, peers: Sequence[tuple[str, str]] = (), *, short: bool = False
) -> Row:
    """Return a line of which the metrics are given in one string."""
    return Row(benchmark, what, metrics.split(), seen, peers, short)


BM25 = ("BM25", "bm25_{}")
BM25_CONTEXT = ("BM25 with context", "bm25_context_{}")
COSINE = ("cosine 0.92", "cosine_{}")

ROWS: Sequence[Row] = (
    row("wording", "changes noticed: in other words / in the same words, pairs not trained on",
        "odd_update_chatty_ratio odd_update_same_wording_ratio", "tuned", short=True),
    row("wording", "the same, all pairs", "update_chatty_ratio update_same_wording_ratio", "half trained"),
    row("wording", "pairs that differ, joined all the same: by learning / by the night, pairs not trained on",
        "odd_joined_ratio odd_night_joined_ratio", "tuned", short=True),
    row("wording", "the same, all pairs", "joined_ratio night_joined_ratio", "half trained"),
    row("wording", "repeats joined / facts that both hold, but were hurt, pairs not trained on",
        "odd_same_joined_ratio odd_distinct_hurt_ratio", "tuned", short=True),
    row("wording", "the same, all pairs", "same_joined_ratio distinct_hurt_ratio", "half trained"),
    row("wording", "the older value of a changed thing found above the newer", "stale_first_ratio", "half trained"),
    row("wording", "statements of different pairs, told by one person: joined / retired or contradicted",
        "strangers_joined_ratio strangers_hurt_ratio", "half trained"),
    row("wording", "all statements of all pairs, told by one person: retired by / against another pair's / changes"
        " noticed", "crowd_retired_ratio crowd_contradicted_ratio crowd_update_ratio", "half trained"),
    row("wording", "the same, imported, so that the night alone compares them",
        "imported_retired_ratio imported_contradicted_ratio imported_update_ratio", "half trained"),
    row("wording", "statements found nowhere", "lost_ratio", "half trained"),
    row("supersession", "LongMemEval, changes told in chats: recognised by learning / wrong ones",
        "lme_update_recall lme_false_pairs", "unseen", short=True),
    row("supersession", "BEAM, changes told in chats: the new information among the first ten",
        "beam_update_right_at10", "unseen", [BM25]),
    row("supersession", "FactConsolidation: changes recognised, recall / precision",
        "fc_pair_recall fc_pair_precision", "trained, templated",
        [("the text up to its last function word is the slot", "slot_{}")]),
    row("supersession", "FactConsolidation: the stale value among the first ten / the right one",
        "fc_stale_at10 fc_right_at10", "trained, templated", [BM25, ("BM25 of the latest in each slot", "slot_{}")]),
    row("supersession", "DyKnow: the first answer is what was so at a moment", "dyknow_asof_accuracy",
        "trained, templated",
        [("BM25 of what was known then, the latest of equals", "bm25_{}"),
         ("the latest by then that begins with the question", "begins_{}")]),
    row("judge", "fact pairs: verdicts of a change or contradiction, recall / precision",
        "conflict_recall conflict_precision", "tuned",
        [("guards", "guards_{}"), ("words", "words_{}"), ("cosine", "cosine_{}")], short=True),
    row("judge", "the same, counting the slot named by a verdict that retires nothing",
        "flagged_conflict_recall flagged_conflict_precision", "tuned"),
    row("judge", "the same meaning, precision / recall", "same_precision same_recall", "tuned"),
    row("judge", "LongMemEval changes / BEAM contradictions, one of the crossed sentences seen",
        "lme_update_recall beam_contradiction_recall", "unseen"),
    row("judge", "SICK contradictions, recall / precision",
        "sick_contradiction_recall sick_contradiction_precision", "tuned, templated"),
    row("judge", "calibration error / with compatible counted wrong for repeats",
        "calibration_error strict_calibration_error", "tuned"),
    row("nomination", "true pairs put before a judge / pairs a fact", "nominated_ratio pairs_per_fact", "tuned"),
    row("nomination", "of them, read before learn returns", "read_while_waiting_ratio", "tuned"),
    row("languages", "questions in twelve other languages: the answer first / among the first three, with the extra"
        " `multilingual`", "other_r1 other_r3", "half trained", [("the built-in embedder", "minilm_{}")]),
    row("languages", "questions in English among the same", "english_r1 english_r3", "half trained",
        [("the built-in embedder", "minilm_{}")]),
    row("recall", "evidence among the first ten: LoCoMo / LongMemEval / BEAM", "locomo_r10 lme_r10 beam_r10", "tuned",
        [BM25, BM25_CONTEXT, ("vectors", "dense_{}"), ("both z-scored, summed", "hybrid_{}"),
         ("with context, z-scored, summed", "hybrid_context_{}")], short=True),
    row("recall", "LoCoMo, among the first 5 / 25 / 50", "locomo_r5 locomo_r25 locomo_r50", "tuned",
        [BM25, ("vectors", "dense_{}"), ("with context, z-scored, summed", "hybrid_context_{}")]),
    row("recall", "LoCoMo, several turns needed / LongMemEval, among the first 5", "locomo_multihop_r10 lme_r5",
        "tuned",
        [BM25, ("vectors", "dense_{}"), ("with context, z-scored, summed", "hybrid_context_{}")]),
    row("context", "LoCoMo evidence shown in 8,000 / 4,000 / 2,000 tokens",
        "locomo_evidence_at_8k locomo_evidence_at_4k locomo_evidence_at_2k", "tuned",
        [("recall filled up", "topk_{}"), BM25, BM25_CONTEXT], short=True),
    row("context", "BEAM evidence, the same", "beam_evidence_at_8k beam_evidence_at_4k beam_evidence_at_2k", "tuned",
        [("recall filled up", "topk_{}"), BM25, BM25_CONTEXT]),
    row("context", "cases about beliefs: what must be shown is / shown: superseded / out of reach / named as not to be",
        "pmb_must_include_ratio pmb_superseded_shown pmb_out_of_reach_shown pmb_excluded_shown", "tuned"),
    row("context", "the same: of what is shown, alone allowed / of what is allowed, shown",
        "pmb_only_precision pmb_only_recall", "tuned"),
    row("context", "contexts over their budget / p95 among 100k facts, ms", "over_budget p95_ms_100k", "drawn"),
    row("dedup", "mixed fact pairs the night would merge, precision / recall", "precision recall", "tuned",
        [COSINE, ("the classifier", "trees_{}")]),
    row("dedup", "wrongly merged: updates / contradictions / other values",
        "false_merge_supersedes false_merge_contradiction false_merge_same_slot_other_value", "tuned", [COSINE]),
    row("dedup", "wrongly merged: pairs that differ / are related", "false_merge_different false_merge_related",
        "tuned", [COSINE]),
    row("dedup", "WebNLG wordings, precision / recall / B-cubed F1",
        "webnlg_pair_precision webnlg_pair_recall webnlg_bcubed_f1", "tuned, templated", [COSINE]),
    row("censors", "warnings right / given where they should be / blocks right / near misses blocked",
        "precision recall block_precision near_miss_blocked", "tuned"),
    row("episodes", "points worth keeping covered / passing ones stored / decision, cause and fix in the summary",
        "keep_covered_ratio passing_stored_ratio decision_cause_fix_ratio", "tuned", short=True),
    row("episodes", "lines of tools and terminals stored", "machine_lines_stored", "tuned"),
    row("summary", "ROUGE-1 over leading sentences, both as long as ours / as long as three turns",
        "at_our_length_rouge1_minus_lead at_lead_length_rouge1_minus_lead3", "unseen"),
    row("summary", "ROUGE-1 / 2 / L over three turns, whatever the length",
        "rouge1_minus_lead3 rouge2_minus_lead3 rougeL_minus_lead3", "unseen"),
    row("summary", "names kept / numbers kept / length of the whole",
        "entities_kept_ratio numbers_kept_ratio compression_ratio", "unseen"),
    row("forgetting", "git trace: used again among the best 50 / 200 kept", "hit_50 hit_200", "tuned",
        [("count decayed at its best half-life", "decayed_best_{}"), ("two half-lives summed", "two_decays_{}"),
         ("last used", "lru_{}"), ("most used", "lfu_{}")], short=True),
    row("forgetting", "the same, times the best peer",
        "hit_50_over_best_peer_ratio hit_200_over_best_peer_ratio", "tuned"),
    row("forgetting", "archived, and touched again within 90 days", "wrongly_archived_ratio", "tuned",
        [("unused for 90 days", "by_the_book_wrongly_archived_ratio")]),
    row("prediction", "git sessions: needed and known, among what fits in 3,000 tokens / precision",
        "prefetched_ratio precision", "half trained",
        [("seen together and half the popularity", "together_popular_{}"), ("seen together", "co_occurrence_{}"),
         ("count decayed over 30 days", "decayed_30_{}"), ("last used", "lru_{}")]),
    row("prediction", "shown by a context told of the file alone", "assembled_ratio", "half trained"),
    row("prediction", "over all items / among the best 50 / calibration error",
        "prefetched_of_items_ratio prefetched_50_ratio calibration_error", "half trained"),
    row("lifecycle", "ninety nights: evidence found in the first ten, before / after",
        "answers_findable_before_r10 answers_findable_after_r10", "tuned"),
    row("lifecycle", "the same, after over before", "answers_findable_after_over_before_ratio", "tuned"),
    row("lifecycle", "pairs of cosine 0.92 / 0.97 left",
        "duplicates_left_092 duplicates_left_097", "tuned",
        [("before", "duplicates_before_092 duplicates_before_097")]),
    row("lifecycle", "earlier evidence found first", "stale_left_ratio", "tuned", [("before", "stale_before_ratio")]),
    row("lifecycle", "active tokens, times those before", "active_tokens_after_over_before_ratio", "tuned"),
    row("join", "exact self-join, times as fast as FAISS: 20k of 384 / 100k of 384 / 30k of 1,536 dimensions",
        "faiss_over_ours_20k_384_ratio faiss_over_ours_100k_384_ratio faiss_over_ours_30k_1536_ratio", "drawn"),
    row("join", "times as fast as the upper triangle in blocked products / as semhash, approximate",
        "gemm_over_ours_ratio semhash_over_ours_ratio", "drawn"),
    row("join", "pairs missed / extra / memory, MB", "pairs_missed pairs_extra peak_mb", "drawn"),
    row("tenants", "recall@10 of tenants of 10 / 200 / 5,000 / 100,000 rows",
        "recall_at10_10 recall_at10_200 recall_at10_5000 recall_at10_100000", "drawn"),
    row("tenants", "rows of others", "leaked_rows", "drawn"),
    row("online", "recall among 100k facts: p95, ms / p50, times a bare query",
        "recall_p95_ms recall_p50_over_bare_ratio", "drawn", short=True),
    row("online", "learn among 100k facts, times a bare query and insert", "learn_over_bare_ratio", "drawn"),
    row("online", "eight threads, times one / 1,000 censors checked, ms / a question embedded, ms",
        "threads8_scaling_ratio censor_check_1000_ms embed_ms", "drawn"),
    row("night", "a first night, s: 100 agents of 1,000 facts / one agent, 100k facts and 5,000 episodes",
        "many_agents_s one_agent_s", "drawn"),
    row("night", "times the first: with 1 % learned / with 1 % imported / the same again",
        "incremental_over_full_ratio imported_over_full_ratio again_over_full_ratio", "drawn"),
    row("night", "changes of the same again / memory, MB / start, s", "second_run_changes peak_mb start_s", "drawn"),
    row("snapshot", "100k facts to Parquet, times a raw binary COPY / rows a second / memory, MB",
        "over_raw_copy_ratio rows_per_s peak_mb", "drawn"),
    row("api", "over HTTP, the worse of recall and learn, times in process / recalls a second, 8 callers",
        "rest_over_inprocess_p50_ratio requests_per_s", "drawn", [("in process", "- inprocess_recalls_per_s")]),
    row("cost", "dollars for 1,000 facts by token counts of a local server, no model asked: first night / next",
        "usd_per_1k_facts_first_night usd_per_1k_facts_second_night", "drawn"),
    row("cost", "requests for 1,000 facts / a batch, times the same online / requests without a row",
        "requests_per_1k_facts batch_over_online_ratio unmetered_requests", "drawn"),
    row("many", "10,000 agents of 100 facts, 1 % of them with news: s / a new fact, times as in a store of 10k / MB",
        "night_s seconds_per_changed_fact_1m_over_10k_ratio peak_mb", "drawn"),
    row("many", "the mapped steps of a first night in one process on one core, times those of two on two",
        "two_workers_speedup_ratio", "drawn"),
    row("faults", "kills while three processes write / writes acknowledged", "kills acknowledged", "drawn"),
    row("faults", "of them lost / doubled / facts without statement, event or words", "lost doubled incomplete",
        "drawn"),
    row("faults", "the control, which does not wait for the disk: lost", "control_lost", "drawn"),
    row("faults", "a night and an agent write the same row: races / writes undone by the other", "races clobbered",
        "drawn"),
    row("faults", "queries of tenants for what belongs to others / rows told", "queries leaked", "drawn"),
    row("faults_beside", "the writer killed amid its writes: acknowledged texts lost / there twice",
        "writer_killed_lost writer_killed_doubled", "drawn", [("mem0", "mem0_{}")]),
    row("faults_beside", "two processes write into one store at once: texts kept, percent",
        "two_writers_kept_percent", "drawn", [("mem0", "mem0_{}")]),
    row("faults_beside", "unseen, empty, half a character, two million: stored / an error that is not the store's own",
        "odd_stored odd_broken", "drawn", [("mem0", "mem0_{}")]),
    row("faults_beside", "a memory is told to another who names its id", "foreign_told", "drawn",
        [("mem0", "mem0_{}")]),
    row("hooks", "start of a session, p95, ms / prompt / start while nothing runs",
        "session_start_p95_ms prompt_p95_ms cold_ms", "drawn"),
    row("console", "pages among 100,000 memories, p95, ms: the slowest / the latest / about one thing / of a source",
        "slowest_page_p95_ms memories_p95_ms memories_about_p95_ms memories_from_p95_ms", "drawn"),
    row("console", "a search / one memory / what waits / a night / a question with its context, p95, ms",
        "search_p95_ms memory_p95_ms inbox_p95_ms night_p95_ms ask_p95_ms", "drawn"),
    row("console", "the same: of a state / of a user / of a day / the nights",
        "memories_of_a_state_p95_ms memories_of_a_user_p95_ms memories_of_a_day_p95_ms nights_p95_ms", "drawn"),
)  # fmt: skip

CONTRACT: dict[str, str] = {
    "join": "faiss_over_ours_100k_384_ratio faiss_over_ours_20k_384_ratio faiss_over_ours_30k_1536_ratio"
    " gemm_over_ours_ratio semhash_over_ours_ratio pairs_missed pairs_extra peak_mb",
    "dedup": "precision recall false_merge_supersedes false_merge_contradiction false_merge_same_slot_other_value"
    " false_merge_different false_merge_related webnlg_pair_precision webnlg_pair_recall webnlg_bcubed_f1"
    " cosine_precision cosine_recall cosine_webnlg_pair_precision cosine_webnlg_pair_recall",
    "recall": "locomo_r5 locomo_r10 locomo_r25 locomo_r50 locomo_multihop_r10 lme_r5 lme_r10 beam_r10 bm25_locomo_r10"
    " bm25_lme_r10 bm25_beam_r10 dense_locomo_r10 dense_lme_r10 dense_beam_r10",
    "snapshot": "over_raw_copy_ratio rows_per_s peak_mb",
    "online": "recall_p50_over_bare_ratio recall_p95_ms learn_over_bare_ratio threads8_scaling_ratio embed_ms"
    " censor_check_1000_ms",
    "supersession": "fc_pair_recall fc_pair_precision fc_stale_at10 fc_right_at10 lme_update_recall"
    " beam_update_right_at10 dyknow_asof_accuracy",
    "tenants": "recall_at10_10 recall_at10_200 recall_at10_5000 recall_at10_100000 leaked_rows",
    "forgetting": "hit_50 hit_200 wrongly_archived_ratio",
    "night": "many_agents_s one_agent_s peak_mb incremental_over_full_ratio imported_over_full_ratio"
    " again_over_full_ratio second_run_changes",
    "lifecycle": "duplicates_left_092 duplicates_left_097 stale_left_ratio answers_findable_before_r10"
    " answers_findable_after_r10 active_tokens_after_over_before_ratio",
    "judge": "conflict_recall conflict_precision sick_contradiction_recall sick_contradiction_precision"
    " lme_update_recall beam_contradiction_recall same_precision same_recall calibration_error",
    "summary": "rouge1_minus_lead3 rouge2_minus_lead3 rougeL_minus_lead3 entities_kept_ratio numbers_kept_ratio"
    " compression_ratio",
    "cost": "usd_per_1k_facts_first_night usd_per_1k_facts_second_night requests_per_1k_facts batch_over_online_ratio",
    "context": "pmb_must_include_ratio pmb_superseded_shown pmb_only_precision locomo_evidence_at_8k"
    " beam_evidence_at_8k over_budget p95_ms_100k",
    "prediction": "prefetched_ratio precision",
    "api": "rest_over_inprocess_p50_ratio requests_per_s",
    "wording": "lost_ratio joined_ratio night_joined_ratio update_chatty_ratio update_same_wording_ratio"
    " same_joined_ratio distinct_hurt_ratio stale_first_ratio",
    "nomination": "nominated_ratio pairs_per_fact",
    "languages": "other_r1 english_r1",
    "episodes": "keep_covered_ratio passing_stored_ratio decision_cause_fix_ratio machine_lines_stored",
    "many": "night_s seconds_per_changed_fact_1m_over_10k_ratio peak_mb two_workers_speedup_ratio",
    "hooks": "session_start_p95_ms prompt_p95_ms cold_ms",
    "console": "slowest_page_p95_ms memories_p95_ms search_p95_ms memory_p95_ms inbox_p95_ms nights_p95_ms night_p95_ms"
    " ask_p95_ms",
    "faults": "acknowledged kills lost doubled incomplete control_lost races clobbered queries leaked",
}
"""What every result has to publish where it was measured, good or bad."""
