"""What was said in an episode that several tests complete."""

from __future__ import annotations

TRANSCRIPT = """\
Ada: The backups are kept for 90 days from now on, because the auditors asked for it.
Basil: I restarted the broker during the backup, and it failed; two hours were lost.
Ada: The broker must never be restarted during a backup."""
