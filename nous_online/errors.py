"""A documented name of `nous_online.core.errors`."""

from nous_online.core.errors import *  # noqa: F403
