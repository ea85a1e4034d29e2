"""A documented name of `nous_pipelines.orchestration.code_location`."""

from nous_pipelines.orchestration.code_location import *  # noqa: F403
