"""A documented name of `nous_online.interfaces.exports.exporting`."""

from nous_online.interfaces.exports.exporting import *  # noqa: F403
