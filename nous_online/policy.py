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
    subject_similarity: float = 0.80
    """Above, two subjects are the same thing spelled differently (reactive lifecycle, section 2)."""
    neighbour_count: int = 10
    """How many of the nearest facts are looked at; the seeds ask for 5 duplicates and 10 of the same subject."""


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
