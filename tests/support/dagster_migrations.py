"""The migrations of Dagster's storages, read once: each instance in memory is stamped with the newest of them.

To read them all takes 25 ms an instance, a twentieth of a night.
"""

from __future__ import annotations

from alembic.config import Config
from alembic.script import ScriptDirectory


def read_once() -> None:
    """Let every storage of this process share what the first of its kind has read."""
    read, known = ScriptDirectory.from_config, dict[str | None, ScriptDirectory]()

    def migrations(config: Config) -> ScriptDirectory:
        place = config.get_main_option("script_location")
        if place not in known:
            known[place] = read(config)
        return known[place]

    ScriptDirectory.from_config = migrations
