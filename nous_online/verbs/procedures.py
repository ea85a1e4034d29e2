"""Storing and activating procedures, and saying how they went."""

from __future__ import annotations

from nous_online.verbs import Verbs


class ProcedureVerbs(Verbs):
    """What an agent does with procedures."""
