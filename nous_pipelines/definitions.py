"""A documented name of `nous_pipelines.orchestration.definitions`."""

from nous_pipelines.orchestration.definitions import *  # noqa: F403
