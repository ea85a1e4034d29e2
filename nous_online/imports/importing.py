"""A documented name of `nous_online.interfaces.imports.importing`."""

from nous_online.interfaces.imports.importing import *  # noqa: F403
