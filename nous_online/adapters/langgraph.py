"""A documented name of `nous_online.interfaces.adapters.langgraph`."""

from nous_online.interfaces.adapters.langgraph import *  # noqa: F403
