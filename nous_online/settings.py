"""Addresses and secrets from the environment, read once; opinions live in policies, not here."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import Field, SecretStr
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
    tokenizer: Literal["claude", "openai"] = "claude"
    """Whose tokens budgets are counted in: Claude's since Opus 4.7, or OpenAI's o200k."""
    judge: Literal["auto", "offline", "claude"] = "auto"
    """Who decides about pairs and condenses episodes; by itself Claude does where there is a key for it."""
    judge_model: str = "claude-haiku-5-5"
    """What is asked about pairs; when it refuses, `writer_model` is asked once."""
    writer_model: str = "claude-sonnet-5-5"
    """What condenses episodes; when it refuses, `judge_model` is asked once."""
    claude_deadline_s: float = 4.0
    """How long Claude may take for one online question, in seconds; after that the night asks."""
    prices: Path | None = None
    """A file of prices that go before the shipped ones, in the form of `nous_online/claude/prices.toml`."""
    anthropic_api_key: SecretStr = Field(default=SecretStr(""), validation_alias="ANTHROPIC_API_KEY")
    anthropic_base_url: str | None = Field(default=None, validation_alias="ANTHROPIC_BASE_URL")

    @property
    def asks_claude(self) -> bool:
        """Whether Claude judges and writes, rather than the offline judge and writer."""
        return self.judge == "claude" or (self.judge == "auto" and bool(self.anthropic_api_key.get_secret_value()))


@cache
def settings() -> Settings:
    """Return the settings of this process."""
    return Settings()
