"""A documented name of `nous_online.interfaces.adapters.memory_tool`."""

from nous_online.interfaces.adapters.memory_tool import *  # noqa: F403
