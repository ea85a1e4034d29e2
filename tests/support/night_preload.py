"""What the first night of a process loads, loaded once for all processes that are forked to run one.

Only what starts no thread: a fork takes none of them along. What is loaded is no garbage, and no fork looks through it:
that would copy all of it.
"""

from __future__ import annotations

import gc

import batch_life  # noqa: F401
import night_runs  # noqa: F401
import numpy.ma  # noqa: F401
import onnxruntime  # noqa: F401
import upath  # noqa: F401
from dagster_migrations import read_once

from nous_online.language.minilm import tokenizer
from nous_online.language.pairs.judging import OfflineJudge
from nous_pipelines.orchestration.code_location import defs
from nous_pipelines.orchestration.dagster_classes import unrecorded
from nous_pipelines.reports.html_report import templates

read_once()
tokenizer()
OfflineJudge().load()
with unrecorded():
    defs.resolve_job_def("nightly")
    templates().get_template("page.html")

gc.freeze()
gc.enable()
