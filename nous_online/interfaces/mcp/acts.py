"""What each tool does: call a verb of the heart for one session, and tell what it answered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, cast
from uuid import UUID

from nous_online.core.details import SignalDetails
from nous_online.core.errors import NotFound
from nous_online.core.kinds import FACT
from nous_online.core.validation import checked_id
from nous_online.database.changes import get_memory
from nous_online.heart import Heart
from nous_online.interfaces.mcp import tool_answers
from nous_online.interfaces.mcp.tool_answers import ToolAnswer
from nous_online.memories.contradictions import Ruling, check_reach, find_in_reach
from nous_online.memories.episodes import current_episode
from nous_online.memories.memory_changes import check_forgettable

MOST_CONTRADICTIONS = 20


@dataclass(frozen=True)
class Visit:
    """Who calls: the session of a connection, and whose memories it is about besides the agent's own."""

    session_id: str
    user_id: str | None = None
    project_id: str | None = None

    @property
    def reach(self) -> dict[str, Any]:
        """Whose memories are looked among."""
        return {"user_id": self.user_id, "project_id": self.project_id}


Given = Mapping[str, Any]


def remember(heart: Heart, visit: Visit, given: Given) -> ToolAnswer:
    """Learn one fact."""
    told = {"source_kind" if name == "said_by" else name: value for name, value in given.items()}
    return tool_answers.learned(heart.learn(session_id=visit.session_id, **visit.reach, **told))


def recall(heart: Heart, visit: Visit, given: Given) -> ToolAnswer:
    """Recall what answers a question."""
    told: dict[str, Any] = {"limit": 5, "detail": "summary", **given}
    found = heart.recall(session_id=visit.session_id, **visit.reach, **told)
    return tool_answers.recalled(found, told["detail"])


def forget(heart: Heart, visit: Visit, given: Given) -> ToolAnswer:
    """Forget a memory that the visitor could recall; what a person pinned, and censors, only a person forgets."""
    memory_id = checked_id("id", given["id"])
    check_forgettable(heart.agent, memory_id, visit.reach, heart.agent.deadline(None))
    gone = heart.forget(memory_id, reason=given["reason"])
    also = [str(each) for each in (*gone.merged, *gone.replaced)]
    lines = [f"forgotten {memory_id}", *(f"stays forgotten with it: {each}" for each in also)]
    return ToolAnswer("\n".join(lines), {"id": str(memory_id), "also": also})


def feedback(heart: Heart, visit: Visit, given: Given) -> ToolAnswer:
    """Say what of a recall or a context was used, and what was of no use."""
    counted = sum(
        verb(given["recall_id"], given[name])
        for name, verb in (("used", heart.cite), ("useless", heart.ignore))
        if given.get(name)
    )
    return ToolAnswer(f"news about {counted}", {"counted": counted})


def context(heart: Heart, visit: Visit, given: Given) -> ToolAnswer:
    """Assemble what is worth knowing before a task."""
    return tool_answers.context(
        heart.assemble_context(
            budget=given.get("budget"),
            frame=given.get("frame"),
            query=given.get("task"),
            signals=signals_of(given),
            session_id=visit.session_id,
            **visit.reach,
        )
    )


def signals_of(given: Given) -> SignalDetails | None:
    """Return what the arguments tell of what the agent is doing."""
    told = {"current_file": given.get("file"), "task": given.get("task"), "branch": given.get("branch")}
    told["recent_errors"] = [given["error"]] if given.get("error") else None
    known = {name: value for name, value in told.items() if value}
    return cast("SignalDetails", known) if known else None


def start_episode(heart: Heart, visit: Visit, given: Given) -> ToolAnswer:
    """Begin an episode of this session."""
    episode = heart.start_episode(
        given.get("title"), session_id=visit.session_id, frame=given.get("frame"), **visit.reach
    )
    return ToolAnswer(f"episode {episode.id} began", {"episode_id": str(episode.id)})


def note(heart: Heart, visit: Visit, given: Given) -> ToolAnswer:
    """Add a line to an episode."""
    episode_id = episode_of(heart, visit, given)
    heart.update_episode(episode_id, append=given["text"])
    return ToolAnswer(f"noted in episode {episode_id}", {"episode_id": str(episode_id)})


def close_episode(heart: Heart, visit: Visit, given: Given) -> ToolAnswer:
    """End an episode; the heart condenses it afterwards."""
    episode = heart.close_episode(
        episode_of(heart, visit, given),
        outcome=given.get("outcome"),
        summary=given.get("summary"),
        lessons_learned=given.get("lessons"),
    )
    return ToolAnswer(f"episode {episode.id} is {episode.state}", {"episode_id": str(episode.id)})


def episode_of(heart: Heart, visit: Visit, given: Given) -> UUID:
    """Return the episode that is named, or the open one of the session; raise `NotFound` where there is none."""
    if given.get("episode_id") is not None:
        return checked_id("episode_id", given["episode_id"])
    with heart.agent.transaction(heart.agent.deadline(None)) as connection:
        found = current_episode(connection, heart.agent.id, visit.session_id)
    if found is None:
        raise NotFound("no episode is open in this session; call start_episode, or name an episode_id")
    return found.id


def check_action(heart: Heart, visit: Visit, given: Given) -> ToolAnswer:
    """Check an action against the censors."""
    found = heart.check_censors(given["action"], frame=given.get("frame"), session_id=visit.session_id, **visit.reach)
    return tool_answers.checked(found)


def report_false_alarm(heart: Heart, visit: Visit, given: Given) -> ToolAnswer:
    """Report an activation as a false alarm; raise `NotFound` for a censor that is out of reach."""
    censor = heart.get_censor(checked_id("id", given["id"]))
    if censor.scope != "system" and not {censor.user_id, censor.project_id} <= {None, visit.user_id, visit.project_id}:
        raise NotFound(f"no censor {censor.id} in reach")
    heart.report_false_positive(censor.id, activation_id=given["activation_id"])
    return ToolAnswer(f"censor {censor.id} lets that pass from now on", {"id": str(censor.id)})


def focus(heart: Heart, visit: Visit, given: Given) -> ToolAnswer:
    """Say what the session is about now, or show what it holds."""
    if not given:
        return tool_answers.working_memory(heart.get_working_memory(visit.session_id))
    held = heart.focus(session_id=visit.session_id, **given)
    return tool_answers.working_memory(held)


def contradictions(heart: Heart, visit: Visit, given: Given) -> ToolAnswer:
    """List the oldest contradictions in reach that nobody has decided, with what both sides say."""
    with heart.agent.transaction(heart.agent.deadline(None)) as connection:
        found = find_in_reach(connection, heart.agent.id, visit.reach, limit=MOST_CONTRADICTIONS)
        fact = partial(get_memory, connection, heart.agent.id, FACT)
        return tool_answers.contradictions([(each, fact(each.memory_a), fact(each.memory_b)) for each in found])


def resolve_contradiction(heart: Heart, visit: Visit, given: Given) -> ToolAnswer:
    """Decide a contradiction, or propose how; raise `NotFound` for one that is out of reach."""
    found = checked_id("contradiction_id", given["contradiction_id"])
    merged, keep = (
        None if given.get(name) is None else checked_id(name, given[name]) for name in ("merged_into", "keep")
    )
    ruling = Ruling(given.get("resolution"), given.get("note"), merged, keep)
    with heart.agent.transaction(heart.agent.deadline(None)) as connection:
        check_reach(connection, heart.agent.id, visit.reach, found, merged_into=ruling.merged_into)
    return tool_answers.ruled(
        heart.resolve_contradiction(found, ruling.resolution, keep=keep, note=ruling.note, merged_into=merged)
    )


def record_decision(heart: Heart, visit: Visit, given: Given) -> ToolAnswer:
    """Record what was decided and why."""
    decision = heart.record_decision(
        given["title"],
        rationale=given.get("why"),
        files=given.get("files") or (),
        session_id=visit.session_id,
    )
    return ToolAnswer(f"decision {decision.id} recorded", {"decision_id": str(decision.id)})


def resolve_decision(heart: Heart, visit: Visit, given: Given) -> ToolAnswer:
    """Say what became of a decision."""
    decision = heart.resolve_decision(given["decision_id"], status=given["status"], outcome=given.get("outcome"))
    return ToolAnswer(f"decision {decision.id} {decision.status}", {"status": decision.status})
