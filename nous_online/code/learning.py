"""A documented name of `nous_online.interfaces.code.patterns`."""

from nous_online.interfaces.code.patterns import *  # noqa: F403
