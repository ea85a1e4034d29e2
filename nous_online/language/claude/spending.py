"""Costs of language models: a dated price list, overridden by the operator's own, and a stored row for each request."""

from __future__ import annotations

import logging
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import date
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as validated

from nous_online.core.errors import InvalidInput, NousError
from nous_online.core.settings import settings
from nous_online.database.statements import statements
from nous_online.language.claude.replies import Usage

if TYPE_CHECKING:
    from nous_online.database.connection import Database

SHIPPED = "prices.toml"
SNAPSHOT = re.compile(r"-\d{8}$")  # claude-haiku-4-5-20251001 has the price of claude-haiku-4-5

Dollars: TypeAlias = Annotated[float, Field(ge=0, allow_inf_nan=False)]


@validated(frozen=True, config=ConfigDict(extra="forbid"))
class Price:
    """The price of a model in US dollars per million tokens."""

    input: Dollars
    output: Dollars
    cache_read: Dollars
    cache_write: Dollars


@validated(frozen=True, config=ConfigDict(extra="forbid"))
class PriceList:
    """Prices by model and their date; a batch pays `batch_share` of each."""

    as_of: date
    batch_share: Annotated[float, Field(gt=0, le=1)]
    models: Mapping[str, Price]


def cost_of(model: str, usage: Usage, *, is_batch: bool) -> float:
    """Return the cost of a model's tokens in US dollars; raise `InvalidInput` for a Claude model without a price.

    Any other model without a price counts as free, since most of them run locally.
    """
    price = price_of(model)
    is_claude = model.startswith("claude-") or (settings().provider == "anthropic" and not settings().is_local)
    if price is None and is_claude:  # it is never free, so that no limit could hold without its price
        message = (
            f"no price is known for the model {model!r}; write [models.{model}] with input, output, cache_read and"
            " cache_write, in US dollars per million tokens, into a file like"
            f" nous_online/language/claude/{SHIPPED} and name it in NOUS_PRICES"
        )
        raise InvalidInput(message)
    if price is None:
        return 0.0
    dollars = (
        usage.input_tokens * price.input
        + usage.output_tokens * price.output
        + usage.cache_read_tokens * price.cache_read
        + usage.cache_write_tokens * price.cache_write
    ) / 1e6
    return dollars * (price_list(settings().prices).batch_share if is_batch else 1)


def price_of(model: str) -> Price | None:
    """Return the price of a model or of a dated snapshot, None for a model that is not in the list.

    Raises `InvalidInput` when the operator's file can't be used.
    """
    models = price_list(settings().prices).models
    return models.get(model) or models.get(SNAPSHOT.sub("", model))


def has_price(model: str) -> bool:
    """Tell whether the price of a model is known; raise `InvalidInput` when the operator's file can't be used."""
    return price_of(model) is not None


@cache
def price_list(own: Path | None = None) -> PriceList:
    """Return the prices in the operator's file, and the shipped ones of all other models.

    Raises `InvalidInput` when the file can't be read or a price in it is missing, negative or no number.
    """
    shipped = tomllib.loads(files("nous_online.language.claude").joinpath(SHIPPED).read_text("utf-8"))
    form = TypeAdapter(PriceList)
    if own is None:
        return form.validate_python(shipped)
    try:
        told = tomllib.loads(own.read_text("utf-8"))
        models = {**shipped["models"], **told.get("models", {})}
        return form.validate_python({**shipped, **told, "models": models})
    except (OSError, ValueError, TypeError) as error:
        wrong = str(error)
        if isinstance(error, ValidationError):
            wrong = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors())
        raise InvalidInput(f"the prices in {own}, named by NOUS_PRICES, can't be used: {wrong}") from error


PRICES_AS_OF = price_list().as_of  # when the shipped prices were last compared with Anthropic's own list


@dataclass(frozen=True)
class Spent:
    """One request that was sent; `error` says why it got no usable answer, None where it got one."""

    purpose: str
    """`judge` or `write`."""
    model: str
    prompt_version: str
    usage: Usage
    error: str | None = None


Meter: TypeAlias = Callable[[Spent], None]  # records a request; it never raises


LOG = logging.getLogger(__name__)
SQL = statements("nous_online.language.claude", "metering.sql")
TIMEOUT_S = 2.0  # for storing the row of a request, since an online call waits for it
ERROR_CHARACTERS = 500


def meter_of(database: Database, agent_id: str, night: date | None = None) -> Meter:
    """Return a meter that stores each request under an agent, and under a night where one is given.

    It never raises: a request that can't be stored or priced is logged as a warning with its tokens.
    """

    def meter(spent: Spent) -> None:
        row = {"agent_id": agent_id, "night": night, **row_of(spent)}
        try:
            with database.transaction(agent_id, timeout_s=TIMEOUT_S) as connection:
                connection.execute(SQL["store_request"], row)
        except NousError as error:
            LOG.warning("a request to %s was not metered (%s): %s", spent.model, error, usage_words(spent))

    return meter


def row_of(spent: Spent) -> dict[str, Any]:
    """Return the columns of a request: its price, or 0 with a warning, and how it failed, cut short."""
    try:
        cost_usd = cost_of(spent.model, spent.usage, is_batch=False)
    except InvalidInput as error:
        LOG.warning("a request was metered without its price (%s): %s", error, usage_words(spent))
        cost_usd = 0.0
    failure = spent.error
    if failure is not None:  # freed of what PostgreSQL can't hold
        failure = failure.replace("\0", "").encode("utf-8", "replace").decode("utf-8")[:ERROR_CHARACTERS]
    return {
        "purpose": spent.purpose,
        "model": spent.model,
        "prompt_version": spent.prompt_version,
        "state": "imported" if failure is None else "failed",
        "failed_count": int(failure is not None),
        "cost_usd": cost_usd,
        "error": failure,
        **asdict(spent.usage),
    }


def usage_words(spent: Spent) -> str:
    """Return the tokens of a request in words."""
    usage = spent.usage
    return (
        f"{usage.input_tokens} tokens in, {usage.output_tokens} out, {usage.cache_read_tokens} read from the cache,"
        f" {usage.cache_write_tokens} written to it, for {spent.purpose!r}"
    )
