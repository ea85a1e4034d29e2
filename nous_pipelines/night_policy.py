"""The policy of nights: thresholds and limits with unit and source, stored in the metadata of each night."""

from __future__ import annotations

import ast
import inspect
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache, cached_property
from itertools import pairwise
from math import inf
from typing import Any, cast

from nous_online.core.errors import InvalidInput

MOST_DAYS = 36_500
WEIGHTS = (0.25, 4.0)
"""What `rank_weight` may be at all; the schema holds it too."""


def between(least: float, most: float, default: float) -> Any:
    """Return a field that must be from `least` to `most`; below a cosine of 0.5 everything is related to everything."""
    return field(default=default, metadata={"between": (least, most)})


@dataclass(frozen=True)
class NightPolicy:
    """Thresholds and limits of a night; every field can be overridden for an agent and for a run. Ages are in days."""

    candidate_similarity: float = between(0.5, 1, 0.92)
    """Cosine from which two facts are looked at as duplicates."""  # as in living memory's consolidation engine
    same_similarity: float = between(0.5, 1, 0.50)
    """Cosine from which two facts a judge is sure of are merged all the same, as in learning."""
    neighbour_similarity: float = between(0.5, 1, 0.80)
    """Cosine from which two facts may be about one subject, and are compared for updates and contradictions."""
    neighbour_count: int = between(0, 1000, 20)
    """How many of its nearest facts below `candidate_similarity` each fact is compared with."""
    ranked_count: int = between(0, 100, 6)
    """How many of its `neighbour_count` nearest a new fact meets, however far they are: the likeliest."""
    ranked_similarity: float = between(0, 1, 0.25)
    """Cosine from which it meets them."""
    ranked_within: float = between(0, 2, 0.06)
    """Cosine by which one of them may stand behind the nearest, apart from what shared words are worth.

    The three are those of learning (`LearnPolicy` says where they come from): what stands further behind is a stranger.
    """
    ranked_facts: int = between(0, 100_000, 5000)
    """Of the facts learned or stored since the day before, the latest so many: twenty seconds a thousand, where the
    built-in judge reads them on two cores."""

    summary_after_days: int = between(0, MOST_DAYS, 7)
    """Age at which a closed episode keeps its summary and its full text moves to cold storage."""
    compressed_after_days: int = between(0, MOST_DAYS, 30)
    """Age at which it keeps its compressed line."""
    fossil_after_days: int = between(0, MOST_DAYS, 90)
    """Age at which it keeps its title and index word."""

    max_promotion: float = between(1, WEIGHTS[1], 1.5)
    """Largest `rank_weight` that use alone can earn a memory."""
    min_demotion: float = between(WEIGHTS[0], 1, 0.7)
    """Smallest `rank_weight` that being ignored can bring a memory."""
    rank_step: float = between(0, 1, 0.05)
    """Weights move in steps of this size; a smaller change is not worth a new version."""

    superseded_grace_days: int = between(0, MOST_DAYS, 30)
    """For how long a superseded fact stays within reach before it is archived."""
    unused_after_days: int = between(0, MOST_DAYS, 90)
    """Age from which a memory nobody ever used is archived; never earlier."""
    unused_return_share: float = between(0, 1, 0.01)
    """Share of its unused memories that may still come to use at that age in as many days; the night waits for it.

    Measured on each agent's own last year: on traces of real use one in nine came back at 90 days. 1 waits for nothing.
    """
    unused_asked_days: int = between(0, MOST_DAYS, 10)
    """On how many of these days an agent must have recalled anything; where nobody asks, unused says nothing."""

    links_per_memory: int = between(0, 100, 5)
    """How many links a memory keeps to others of one kind of link."""
    share_among_users: int = between(2, 1_000_000, 2)
    """How many users of a project must hold a fact before it becomes the project's."""
    false_positive_majority: float = between(0, 1, 0.5)
    """Share of a censor's activations reported as false above which it retires."""
    censor_activations: int = between(1, 1_000_000, 3)
    """Activations below which the share says nothing."""
    review_below_success: float = between(0, 1, 0.4)
    """Success rate under which a procedure is flagged for review."""
    review_after_uses: int = between(1, 1_000_000, 5)
    """Uses below which the rate says nothing."""

    max_leaving_share: float = between(0, 1, 0.40)
    """Largest share of an agent's active memories one night may retire; a first night over an import needs most."""
    max_leaving_count: int = between(0, 1e9, 20_000)
    """Largest number of memories one night may retire for one agent."""
    max_leaving_jump: float = between(0, 1e9, 10.0)
    """Retired tonight over the median of the last 14 nights; above it something changed that a person should see."""
    free_leaving_count: int = between(0, 1e9, 20)
    """Up to here the share and the jump say nothing: a young agent has few memories."""
    max_cost_usd: float = between(0, 1e9, 5.0)
    """What one night's verdicts and texts for one agent may cost."""
    probe_days: int = between(0, MOST_DAYS, 30)
    """For how many days what was recalled and used stays a probe that must not get worse."""

    cold_texts_kept_days: int = between(0, MOST_DAYS, 0)
    """For how many days the texts of condensed episodes can be restored before a purge deletes them; 0 is for ever."""
    outbox_kept_days: int = between(0, MOST_DAYS, 30)
    """For how many days announcements are kept that every consumer has heard; 0 is for ever, here and below."""
    completions_kept_days: int = between(0, MOST_DAYS, 30)
    """For how many days it is kept how a closed episode was completed."""
    requests_kept_days: int = between(0, MOST_DAYS, 90)
    """For how many days an idempotency key is known; those of imports for ever."""

    def __post_init__(self) -> None:
        for each in fields(self):
            value, (least, most) = getattr(self, each.name), each.metadata["between"]
            if not least <= value <= most or value == inf:
                raise InvalidInput(f"{each.name} must be between {least} and {most}, got {value!r}")
        for name in ("max_leaving_share", "rank_step"):
            if not getattr(self, name) > 0:
                raise InvalidInput(f"{name} must be above 0 and at most 1, got {getattr(self, name)!r}")
        ages = (self.summary_after_days, self.compressed_after_days, self.fossil_after_days)
        if sorted(ages) != list(ages):
            raise InvalidInput(
                "an episode becomes a summary, then a compressed line, then a fossil; "
                f"summary_after_days, compressed_after_days, fossil_after_days are {ages}"
            )

    def overridden(self, values: Mapping[str, Any]) -> NightPolicy:
        """Return this policy with fields replaced; raise `InvalidInput` for an unknown name or an invalid value."""
        known = {field.name: field for field in fields(self)}
        given: dict[str, int | float] = {}
        for name, value in values.items():
            if name not in known:
                raise InvalidInput(f"the policy has no field {name!r}; it has: {', '.join(known)}")
            # A bool is an int in Python, and NaN passes every comparison with a range.
            if isinstance(value, bool) or not isinstance(value, int | float) or value != value:  # noqa: PLR0124 (NaN)
                raise InvalidInput(f"policy field {name} must be a number, got {value!r}")
            given[name] = whole(name, value) if isinstance(known[name].default, int) else float(value)
        return replace(self, **given)

    def as_dict(self) -> dict[str, Any]:
        """Return the policy as it goes into metadata and into the plan's hash."""
        return asdict(self)


def whole(name: str, value: float) -> int:
    """Return a count as an integer; raise `InvalidInput` for a fraction."""
    if value in (inf, -inf) or value != int(value):
        raise InvalidInput(f"policy field {name} must be a whole number, got {value!r}")
    return int(value)


@cache
def meanings() -> dict[str, str]:
    """Return the sentence below each field of `NightPolicy`."""
    # From the source: a string below a field is no docstring that Python keeps.
    (policy,) = ast.parse(inspect.getsource(NightPolicy)).body
    return {
        field.target.id: inspect.cleandoc(sentence.value.value).replace("\n", " ")
        for field, sentence in pairwise(cast("ast.ClassDef", policy).body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(sentence, ast.Expr)
        and isinstance(sentence.value, ast.Constant)
        and isinstance(sentence.value.value, str)
    }


LIMITS: Mapping[str, int] = {
    **dict.fromkeys(("max_leaving_share", "max_leaving_count", "max_leaving_jump", "free_leaving_count"), 1),
    "max_cost_usd": 1,
    "probe_days": -1,
}
"""The fields that checks enforce; 1 where a larger value is laxer, -1 where a smaller one is.

A run launched in Dagster's interface may only tighten them.
"""


@dataclass(frozen=True)
class Policies:
    """The policy of each agent: the default, overridden by the agent's stored fields, then by those of the run."""

    run: Mapping[str, Any] = field(default_factory=dict[str, Any])
    agents: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    may_loosen: bool = True
    """Whether the run may loosen `LIMITS` of an agent, or of the default for agents without a policy."""

    @cached_property
    def default(self) -> NightPolicy:
        """The policy of agents without stored fields."""
        return self._of_run(NightPolicy())

    def of(self, agent_id: str) -> NightPolicy:
        """Return the policy of one agent; raise `InvalidInput`, naming it, if its stored fields are invalid."""
        own = self.agents.get(agent_id)
        if not own:
            return self.default
        try:
            return self._of_run(NightPolicy().overridden(own))
        except InvalidInput as error:
            raise InvalidInput(f"the policy of agent {agent_id!r} makes no sense: {error}") from error

    def _of_run(self, policy: NightPolicy) -> NightPolicy:
        found = policy.overridden(self.run)
        lifted = [name for name, sign in LIMITS.items() if sign * (getattr(found, name) - getattr(policy, name)) > 0]
        if lifted and not self.may_loosen:
            was, is_now = getattr(policy, lifted[0]), getattr(found, lifted[0])
            raise InvalidInput(
                f"{lifted[0]} can only be tightened here, from {was!r}, got {is_now!r}; "
                f"lift it with `nous night --policy`, or for good with `nous policy`"
            )
        return found

    def faults(self, agent_ids: Iterable[str]) -> dict[str, InvalidInput]:
        """Return the error of each agent whose policy is invalid."""
        found: dict[str, InvalidInput] = {}
        for agent_id in agent_ids:
            try:
                self.of(agent_id)
            except InvalidInput as fault:
                found[agent_id] = fault
        return found

    def groups(self, agent_ids: Sequence[str]) -> list[tuple[NightPolicy, list[str]]]:
        """Return the agents grouped by equal policy, sorted by name; those of a group are processed together."""
        groups: defaultdict[NightPolicy, list[str]] = defaultdict(list)
        for agent_id in sorted(agent_ids):
            groups[self.of(agent_id)].append(agent_id)
        return list(groups.items())

    def as_dict(self) -> dict[str, Any]:
        """Return the default policy and the fields stored for agents, for the metadata and the plan's hash."""
        own = {agent_id: dict(values) for agent_id, values in sorted(self.agents.items()) if values}
        return {**self.default.as_dict(), **({"agents": own} if own else {})}
