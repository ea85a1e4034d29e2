"""What an operator can do when a check stops a night."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

ADVICE: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "conservation": (
        "A phase would lose memories, which no setting makes right: look at the memories named, and report it.",
        (),
    ),
    "no_cycles": ("A phase would supersede memories in a circle: look at the memories named, and report it.", ()),
    "reads_what_it_changes": ("A phase proposed what apply could not check: report it with the proposals named.", ()),
    "blast_radius": (
        "Look at what would leave (nous diff). If it is right, as after a large import, raise the limit that is named "
        "for this run; if not, look for what was learned since the last good night.",
        ("max_leaving_share", "max_leaving_count", "max_leaving_jump", "free_leaving_count"),
    ),
    "canaries": (
        "The judge gets pairs with known answers wrong, so none of tonight's verdicts counts: look at the judge's "
        "settings and model, then run the night again.",
        (),
    ),
    "protected": (
        "Unpin the memories named if they may go, or raise the trust of those that would take their place.",
        (),
    ),
    "budget": (
        "Raise the limit for this run, or let the offline judge decide: pairs without a verdict wait a night.",
        ("max_cost_usd",),
    ),
    "recall_does_not_regress": (
        "What was used lately would be harder to find: look at the proposals about the memories named. Merges that go "
        "too far are held back by a higher similarity, demotions by a higher least weight, forgetting by a longer age.",
        ("candidate_similarity", "min_demotion", "unused_after_days", "superseded_grace_days"),
    ),
    "policy": ("Put it right with `nous policy --agent NAME FIELD=NUMBER`, and run the night again.", ()),
    "effect": ("A phase neither changed nor explained what it looked at, which is its own fault: report it.", ()),
}
OTHERWISE = ("Look at what the check names (nous diff), and run the night again when it is put right.", ())


def advice_for(check: str, policy: Mapping[str, Any]) -> str:
    """Return what to do about a failed check, with the policy fields it depends on as they were."""
    sentence, names = ADVICE.get(check, OTHERWISE)
    fields = ", ".join(f"{name} ({policy[name]} now)" for name in names if name in policy)
    return f"{sentence} Policy fields: {fields}." if fields else sentence
