"""What the first night of a process loads, loaded once for all processes that are forked to run one.

Only what starts no thread: a fork takes none of them along.
"""

from __future__ import annotations

import jinja2  # noqa: F401
import upath  # noqa: F401
from dagster import DagsterInstance

from nous_pipelines import definitions  # noqa: F401

with DagsterInstance.ephemeral():
    pass
