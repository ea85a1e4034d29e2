"""A documented name of `nous_online.language.embedding`."""

from nous_online.language.embedding import *  # noqa: F403
