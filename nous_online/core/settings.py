"""Addresses and secrets from the environment, read once; thresholds are in policies, not here."""

from __future__ import annotations

import os
from functools import cache
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_core import PydanticCustomError

from nous_online.core.errors import InvalidInput
from nous_online.core.patterns import regex

MODELS = regex(r"(anthropic|openai):\S+")
ENGINES = regex(r"in-process|processes(:[1-9]\d{0,3})?|dask(\+tls)?://(\[[0-9a-fA-F:]+\]|[^/\s:\[\]@]+):\d{1,5}")
"""The values of NOUS_ENGINE."""
CRON_PART = regex(r"(?:\*|(\d{1,2})(?:-(\d{1,2}))?)(?:/([1-9]\d?))?")
CRON_FIELDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
"""The first and last value of minute, hour, day, month and day of the week."""
CRON_NAMES = {
    3: ("", "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"),
    4: ("sun", "mon", "tue", "wed", "thu", "fri", "sat"),
}
"""The names that stand for numbers in the fields of month and day of the week."""


class Settings(BaseModel):
    """The settings in the environment, each under its name with the prefix NOUS_, in upper or lower case."""

    model_config = ConfigDict(extra="ignore", validate_by_name=True)

    database_url: SecretStr | None = None
    """A PostgreSQL server with pgvector; by default the embedded one is used."""
    home: Path | None = None
    """The folder of the embedded server, of snapshots and of Dagster."""
    token: SecretStr | None = Field(default=None, min_length=16)
    """The token of interfaces that have no keys, such as Dagster's; by default a new one at each start."""
    agent: str = "default"
    """The agent of the command line when no --agent is given."""
    deadline_s: float = 10.0
    """How long an online call may take, in seconds."""
    nights: bool = True
    """Whether Dagster's schedules run, unless they were switched by hand; `off` turns them off."""
    night_cron: str = "0 3 * * *"
    """When the schedule runs the last night that is over, in five fields of cron."""
    night_deadline_cron: str = "0 6 * * *"
    """When a missing last night is reported, in five fields of cron."""
    night_zone: str = "UTC"
    """The time zone of both, such as Europe/Berlin. A night itself always ends at midnight UTC."""
    engine: str = "in-process"
    """Where a night processes its chunks of agents: `in-process`, `processes`, `processes:4` or `dask://host:8786`."""
    engine_deadline_s: float = Field(default=900.0, gt=0)
    """How long a chunk of agents may take in another process, in seconds, before it is retried once elsewhere."""
    embedding_url: str | None = None
    """Base URL of an OpenAI-compatible embedding server; by default a model runs in process."""
    embedding_model: str | None = None
    """The model of that server, by default text-embedding-3-small; without one `minilm` or `multilingual-e5-small`."""
    embedding_dimensions: int = 1536
    embedding_api_key: SecretStr = SecretStr("")
    tokenizer: Literal["claude", "openai"] = "claude"
    """The tokenizer of budgets: Claude's since Opus 4.7, or OpenAI's o200k."""
    judge: Literal["auto", "offline", "claude"] = "auto"
    """What judges pairs and summarises episodes; `auto` uses a language model if NOUS_LLM or a key is set."""
    llm: str | None = None
    """The language model: `anthropic:` or `openai:` (any server with its API), then the name of the model."""
    llm_url: str | None = None
    """Its address; by default that of its provider."""
    llm_key: SecretStr = SecretStr("")
    """The key for it; local servers need none."""
    judge_model: str = "claude-haiku-5-5"
    """The model that judges pairs, by default that of NOUS_LLM; when it refuses, `writer_model` is asked once."""
    writer_model: str = "claude-sonnet-5-5"
    """The model that summarises episodes, by default that of NOUS_LLM; when it refuses, `judge_model` is asked once."""
    claude_deadline_s: float = 4.0
    """How long a model may take for one online question, in seconds; after that it is left to the night."""
    prices: Path | None = None
    """A file of prices that override the shipped ones, in the format of `nous_online/language/claude/prices.toml`."""
    anthropic_api_key: SecretStr = Field(default=SecretStr(""), validation_alias="ANTHROPIC_API_KEY")
    anthropic_base_url: str | None = Field(default=None, validation_alias="ANTHROPIC_BASE_URL")

    def __init__(self, **values: Any) -> None:
        """Use the values given, and take the others from the environment."""
        environment = {name.upper(): value for name, value in os.environ.items()}
        for name, field in type(self).model_fields.items():
            alias = field.validation_alias
            variable = alias if isinstance(alias, str) else f"NOUS_{name.upper()}"
            if variable in environment and variable not in values:
                values.setdefault(name, environment[variable])
        super().__init__(**values)

    @field_validator("engine")
    @classmethod
    def _is_engine(cls, engine: str) -> str:
        if not ENGINES.fullmatch(engine):
            message = "not an engine: {engine} (want in-process, processes, processes:4 or dask://scheduler:8786)"
            raise PydanticCustomError("engine", message, {"engine": repr(engine)})
        return engine

    @field_validator("night_cron", "night_deadline_cron")
    @classmethod
    def _is_cron(cls, cron: str) -> str:
        if not is_cron(cron):
            message = "not a time of cron: {cron} (want minute, hour, day, month and weekday, such as 0 3 * * *)"
            raise PydanticCustomError("cron", message, {"cron": repr(cron)})
        return cron

    @field_validator("night_zone")
    @classmethod
    def _is_zone(cls, zone: str) -> str:
        if zone == "UTC":  # known to every machine, also to one without a database of zones
            return zone
        from zoneinfo import ZoneInfo

        try:
            ZoneInfo(zone)
        except (OSError, ValueError, KeyError):  # a folder of zones, a path, and a name that is not there
            message = "not a time zone: {zone} (want a name such as UTC or Europe/Berlin)"
            raise PydanticCustomError("zone", message, {"zone": repr(zone)}) from None
        return zone

    @field_validator("llm")
    @classmethod
    def _is_model(cls, llm: str | None) -> str | None:
        if llm is not None and not MODELS.fullmatch(llm):  # the value is not shown: it may be a key by mistake
            raise PydanticCustomError("llm", "not a provider and its model (want anthropic:MODEL or openai:MODEL)")
        return llm

    @model_validator(mode="after")
    def _follow_llm(self) -> Self:
        """Use the model, key and address of NOUS_LLM where no other setting gives them."""
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
        """The provider of the API of the model: `anthropic` or `openai`."""
        return (self.llm or "anthropic").partition(":")[0]

    @property
    def asks_model(self) -> bool:
        """Whether a language model judges and writes, rather than the offline judge and writer.

        With `auto` an Anthropic key in the environment counts only where the package for it is installed.
        """
        if self.judge == "auto" and self.llm is None:
            return bool(self.anthropic_api_key.get_secret_value()) and find_spec("anthropic") is not None
        return self.judge != "offline"

    @property
    def is_local(self) -> bool:
        """Whether the model runs on this machine or in a private network, where tokens cost nothing."""
        url = self.llm_url if self.provider == "openai" else self.anthropic_base_url
        host = urlsplit(url or "").hostname or ""
        try:
            return ip_address(host).is_private
        except ValueError:
            return host == "localhost" or host.endswith((".localhost", ".local", ".internal"))


def is_cron(text: str) -> bool:
    """Tell whether a text is five fields of cron; each may have numbers or names, ranges, steps and a list of these."""
    fields = text.lower().split()
    return len(fields) == len(CRON_FIELDS) and all(
        is_cron_part(part, place) for place, each in enumerate(fields) for part in each.split(",")
    )


def is_cron_part(part: str, place: int) -> bool:
    """Tell whether a part of a list, such as `1-5` or `*/15`, fits the field at a place of cron."""
    for number, name in enumerate(CRON_NAMES.get(place, ())):
        part = part.replace(name, str(number)) if name else part
    found = CRON_PART.fullmatch(part)
    if found is None:
        return False
    first, last = CRON_FIELDS[place]
    begin = first if found[1] is None else int(found[1])
    end = (last if found[1] is None else begin) if found[2] is None else int(found[2])
    return first <= begin <= last and first <= end <= last


@cache
def settings() -> Settings:
    """Return the settings of this process; raise `InvalidInput`, naming the variable, where one can't be used."""
    try:
        return Settings()
    except ValidationError as error:
        wrong = [f"{'.'.join(map(str, each['loc'])).upper()}: {each['msg']}" for each in error.errors()]
    raise InvalidInput(f"the environment can't be used; {'; '.join(f'NOUS_{each}' for each in wrong)}")
