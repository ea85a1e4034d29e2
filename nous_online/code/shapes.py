"""A documented name of `nous_online.interfaces.code.shapes`."""

from nous_online.interfaces.code.shapes import *  # noqa: F403
