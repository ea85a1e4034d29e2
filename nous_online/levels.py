"""A documented name of `nous_online.memories.levels`."""

from nous_online.memories.levels import *  # noqa: F403
