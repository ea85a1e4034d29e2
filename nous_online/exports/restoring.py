"""A documented name of `nous_online.interfaces.exports.restoring`."""

from nous_online.interfaces.exports.restoring import *  # noqa: F403
