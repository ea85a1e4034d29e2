"""Addresses and secrets from the environment, read once; opinions live in policies, not here."""

from __future__ import annotations

import os
import re
from functools import cache
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_core import PydanticCustomError

from nous_online.core.errors import InvalidInput

ENGINES = re.compile(r"in-process|processes(:[1-9]\d{0,3})?|dask(\+tls)?://(\[[0-9a-fA-F:]+\]|[^/\s:\[\]@]+):\d{1,5}")
"""What NOUS_ENGINE may be."""


class Settings(BaseModel):
    """What the environment may say, each under its name with the prefix NOUS_, in letters of either case."""

    model_config = ConfigDict(extra="ignore", validate_by_name=True)

    database_url: SecretStr | None = None
    """A PostgreSQL server with pgvector; without it the embedded one is used."""
    home: Path | None = None
    """Where the embedded server, snapshots and Dagster keep their files."""
    token: SecretStr | None = Field(default=None, min_length=16)
    """What opens the doors that ask for no key, such as Dagster's interface; unless told, drawn at each start."""
    agent: str = "default"
    """The agent the command line speaks for when no --agent is given."""
    deadline_s: float = 10.0
    """How long an online call may take, in seconds."""
    nights: bool = True
    """Whether Dagster's schedules are on where nobody has switched them by hand; `off` leaves nights to you."""
    night_cron: str = "0 3 * * *"
    """When the schedule runs the last night that is over; five fields of cron."""
    night_deadline_cron: str = "0 6 * * *"
    """From when on a missing last night is reported."""
    night_zone: str = "UTC"
    """The time zone of both, such as Europe/Berlin. A night itself always ends at midnight UTC."""
    engine: str = "in-process"
    """Where a night works on its chunks of agents: `in-process`, `processes`, `processes:4` or `dask://host:8786`."""
    engine_deadline_s: float = Field(default=900.0, gt=0)
    """How long a chunk of agents may take in another process, in seconds; then it is tried once more elsewhere."""
    embedding_url: str | None = None
    """Base URL of an OpenAI-compatible embedding server; without it MiniLM runs in process."""
    embedding_model: str = "text-embedding-3-small"
    embedding_dimensions: int = 1536
    embedding_api_key: SecretStr = SecretStr("")
    tokenizer: Literal["claude", "openai"] = "claude"
    """Whose tokens budgets are counted in: Claude's since Opus 4.7, or OpenAI's o200k."""
    judge: Literal["auto", "offline", "claude"] = "auto"
    """Who decides about pairs and condenses episodes; by itself a model does where NOUS_LLM or a key names one."""
    llm: str | None = Field(default=None, pattern=r"^(anthropic|openai):\S+$")
    """Which model judges and writes: `anthropic:` or `openai:` (any server that speaks its API), then its name."""
    llm_url: str | None = None
    """Where it is asked; without it at its maker's address."""
    llm_key: SecretStr = SecretStr("")
    """The key for it; servers on one's own machine need none."""
    judge_model: str = "claude-haiku-5-5"
    """What is asked about pairs, by default the model of NOUS_LLM; when it refuses, `writer_model` is asked once."""
    writer_model: str = "claude-sonnet-5-5"
    """What condenses episodes, by default the model of NOUS_LLM; when it refuses, `judge_model` is asked once."""
    claude_deadline_s: float = 4.0
    """How long a model may take for one online question, in seconds; after that the night asks."""
    prices: Path | None = None
    """A file of prices that go before the shipped ones, in the form of `nous_online/language/claude/prices.toml`."""
    anthropic_api_key: SecretStr = Field(default=SecretStr(""), validation_alias="ANTHROPIC_API_KEY")
    anthropic_base_url: str | None = Field(default=None, validation_alias="ANTHROPIC_BASE_URL")

    def __init__(self, **values: Any) -> None:
        """Use the values given, and take the others from the environment."""
        found = {name.upper(): value for name, value in os.environ.items()}
        for name, field in type(self).model_fields.items():
            alias = field.validation_alias
            variable = alias if isinstance(alias, str) else f"NOUS_{name.upper()}"
            if variable in found and variable not in values:
                values.setdefault(name, found[variable])
        super().__init__(**values)

    @field_validator("engine")
    @classmethod
    def _is_engine(cls, engine: str) -> str:
        if not ENGINES.fullmatch(engine):
            message = "not an engine: {engine} (want in-process, processes, processes:4 or dask://scheduler:8786)"
            raise PydanticCustomError("engine", message, {"engine": repr(engine)})
        return engine

    @model_validator(mode="after")
    def _follow_llm(self) -> Self:
        """Let NOUS_LLM name both models, and what belongs to Claude, as far as nothing else does."""
        if self.llm is not None:
            provider, _, model = self.llm.partition(":")
            given = self.model_fields_set
            self.judge_model = self.judge_model if "judge_model" in given else model
            self.writer_model = self.writer_model if "writer_model" in given else model
            if provider == "anthropic":
                self.anthropic_api_key = self.llm_key if self.llm_key.get_secret_value() else self.anthropic_api_key
                self.anthropic_base_url = self.llm_url or self.anthropic_base_url
        return self

    @property
    def provider(self) -> str:
        """Whose API the model speaks: `anthropic` or `openai`."""
        return (self.llm or "anthropic").partition(":")[0]

    @property
    def asks_model(self) -> bool:
        """Whether a language model judges and writes, rather than the offline judge and writer.

        A key of Anthropic's that merely lies in the environment says so only where the package for it is installed.
        """
        if self.judge == "auto" and self.llm is None:
            return bool(self.anthropic_api_key.get_secret_value()) and find_spec("anthropic") is not None
        return self.judge != "offline"

    @property
    def is_local(self) -> bool:
        """Whether the model is asked on this machine or in a private network, where nobody charges for tokens."""
        url = self.llm_url if self.provider == "openai" else self.anthropic_base_url
        host = urlsplit(url or "").hostname or ""
        try:
            return ip_address(host).is_private
        except ValueError:
            return host == "localhost" or host.endswith((".localhost", ".local", ".internal"))


@cache
def settings() -> Settings:
    """Return the settings of this process; raise `InvalidInput`, naming the variable, where one can't be used."""
    try:
        return Settings()
    except ValidationError as error:
        wrong = [f"{'.'.join(map(str, each['loc'])).upper()}: {each['msg']}" for each in error.errors()]
    raise InvalidInput(f"the environment can't be used; {'; '.join(f'NOUS_{each}' for each in wrong)}")
