"""Starting, recording, updating and closing episodes."""

from __future__ import annotations

from nous_online.verbs import Verbs


class EpisodeVerbs(Verbs):
    """What an agent does with episodes."""
