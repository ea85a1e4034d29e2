"""A documented name of `nous_online.core.policy`."""

from nous_online.core.policy import *  # noqa: F403
