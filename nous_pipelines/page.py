"""The report as one HTML file that needs nothing else."""

from __future__ import annotations

from pathlib import Path

from nous_pipelines.report import NightReport


def write_page(path: Path, report: NightReport) -> Path:
    """Write the page."""
    path.write_text(report.summary, "utf-8")
    return path
