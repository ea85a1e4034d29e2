"""Addresses and secrets from the environment, read once; opinions live in policies, not here."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from pydantic import SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict


class Settings(BaseSettings):
    """What the environment may say, each under its name with the prefix NOUS_."""

    model_config = SettingsConfigDict(env_prefix="NOUS_", extra="ignore")

    database_url: SecretStr | None = None
    """A PostgreSQL server with pgvector; without it the embedded one is used."""
    home: Path | None = None
    """Where the embedded server, snapshots and Dagster keep their files."""
    agent: str = "default"
    """The agent the command line speaks for when no --agent is given."""
    deadline_s: float = 10.0
    """How long an online call may take, in seconds."""
    night_cron: str = "0 3 * * *"
    """When the schedule runs the last night that is over, once it is switched on; five fields of cron."""
    night_deadline_cron: str = "0 6 * * *"
    """From when on a missing last night is reported."""
    night_zone: str = "UTC"
    """The time zone of both, such as Europe/Berlin. A night itself always ends at midnight UTC."""
    embedding_url: str | None = None
    """Base URL of an OpenAI-compatible embedding server; without it MiniLM runs in process."""
    embedding_model: str = "text-embedding-3-small"
    embedding_dimensions: int = 1536
    embedding_api_key: SecretStr = SecretStr("")


@cache
def settings() -> Settings:
    """Return the settings of this process."""
    return Settings()
