"""The verbs of the heart, a file for each kind of memory: they start the clock and hand over to who acts."""

from __future__ import annotations

from nous_online.agent import Agent


class Verbs:
    """What every group of verbs works on."""

    agent: Agent
