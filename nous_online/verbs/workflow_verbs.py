"""Recording what is done step by step, and keeping the workflows those steps show."""

from __future__ import annotations

from nous_online.core.domain import Episode
from nous_online.core.errors import InvalidInput, NotFound
from nous_online.core.validation import checked_optional, checked_text
from nous_online.language.writing.credentials import holds_credential
from nous_online.memories import episode_writes, workflow_learning
from nous_online.memories.agent import Verbs, across_moves
from nous_online.memories.episode_changes import checked_change
from nous_online.memories.episodes import current_episode
from nous_online.memories.workflow_learning import LearnedWorkflow, Whose
from nous_online.memories.workflows import Step, step_line

STEP_CHARACTERS = 80
DETAIL_CHARACTERS = 400


class WorkflowVerbs(Verbs):
    """What an agent does with steps."""

    def record_step(
        self, name: str, *, detail: str | None = None, session_id: str | None = None, deadline_s: float | None = None
    ) -> Episode:
        """Add a step, such as "build", to the episode that is open in a session, and return the episode.

        It is a line of the episode's detail; what looks like a credential in `detail` is left out. Raises `NotFound`
        where no episode is open, and `InvalidInput` for a name that is no short line or looks like a credential.
        """
        deadline = self.agent.deadline(deadline_s)
        step = Step(checked_step_name(name), checked_optional("detail", detail, max_characters=DETAIL_CHARACTERS))
        session = checked_optional("session_id", session_id, max_characters=100)
        with self.agent.transaction(deadline) as connection:
            episode = current_episode(connection, self.agent.id, session)
        if episode is None:
            of_session = "" if session is None else f" in session {session!r}"
            raise NotFound(f"no episode is open{of_session}; call `start_episode` before its first step")
        return episode_writes.update(
            self.agent, episode.id, checked_change({"append": step_line(step)}, self.agent.rights), None, deadline
        )

    @across_moves
    def learn_workflows(
        self,
        *,
        user_id: str | None = None,
        project_id: str | None = None,
        is_recorded: bool = True,
        deadline_s: float | None = None,
    ) -> list[LearnedWorkflow]:
        """Keep the runs of steps that at least three closed episodes share as workflows, and return them.

        Looks at the latest 500 closed episodes of that user and project that recorded steps, and of those at the first
        200 steps, 20,000 in all. A workflow of the same steps is found again, not stored twice, and each episode counts
        once for it as a success or a failure. With `is_recorded=False` nothing is written. Raises `Refused` where
        fifty procedures have the name of a new one.
        """
        whose = Whose(
            checked_optional("user_id", user_id, max_characters=100),
            checked_optional("project_id", project_id, max_characters=100),
        )
        deadline = self.agent.deadline(deadline_s)
        return workflow_learning.learn_workflows(self.agent, whose, deadline, is_recorded=is_recorded)


def checked_step_name(name: object) -> str:
    """Return the name of a step: one short line without a credential or the bar that parts it from its detail."""
    line = " ".join(checked_text("name", name, max_bytes=4 * STEP_CHARACTERS).split())
    if not line or len(line) > STEP_CHARACTERS or "|" in line:
        raise InvalidInput(f"the name of a step is 1 to {STEP_CHARACTERS} characters without '|', got {name!r}")
    if holds_credential(line):
        raise InvalidInput("the name of a step looks like a credential; name what is done, and keep the credential out")
    return line
