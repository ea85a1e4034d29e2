"""A documented name of `nous_online.interfaces.code.pattern_learning`."""

from nous_online.interfaces.code.pattern_learning import *  # noqa: F403
