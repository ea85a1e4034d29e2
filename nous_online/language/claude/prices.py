"""What tokens cost: a dated list of prices that ships with the code, and the operator's own before it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from datetime import date
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as validated

from nous_online.core.errors import InvalidInput
from nous_online.core.settings import settings
from nous_online.language.claude.replies import Usage

SHIPPED = "prices.toml"
SNAPSHOT = re.compile(r"-\d{8}$")  # claude-haiku-4-5-20251001 costs what claude-haiku-4-5 does

Dollars: TypeAlias = Annotated[float, Field(ge=0, allow_inf_nan=False)]


@validated(frozen=True, config=ConfigDict(extra="forbid"))
class Price:
    """What a model costs, in US dollars per million tokens."""

    input: Dollars
    output: Dollars
    cache_read: Dollars
    cache_write: Dollars


@validated(frozen=True, config=ConfigDict(extra="forbid"))
class PriceList:
    """Prices by model, and from when they are; `batch_share` of each is what a batch pays."""

    as_of: date
    batch_share: Annotated[float, Field(gt=0, le=1)]
    models: Mapping[str, Price]

    def price_of(self, model: str) -> Price:
        """Return the price of a model or of a dated snapshot of one; raise `InvalidInput` for an unknown one."""
        known = self.models.get(model) or self.models.get(SNAPSHOT.sub("", model))
        if known is None:
            message = (
                f"no price is known for the model {model!r}; write [models.{model}] with input, output, cache_read and"
                " cache_write, in US dollars per million tokens, into a file like"
                f" nous_online/language/claude/{SHIPPED} and name it in NOUS_PRICES"
            )
            raise InvalidInput(message)
        return known


def cost_of(model: str, usage: Usage, *, is_batch: bool) -> float:
    """Return what tokens of a model cost in US dollars; raise `InvalidInput` for a model of Claude of unknown price.

    Any other model without a price costs nothing here: most run on machines of one's own.
    """
    prices = price_list(settings().prices)
    price = prices.price_of(model) if has_price(model) or must_have_price(model) else FREE
    dollars = (
        usage.input_tokens * price.input
        + usage.output_tokens * price.output
        + usage.cache_read_tokens * price.cache_read
        + usage.cache_write_tokens * price.cache_write
    ) / 1e6
    return dollars * (prices.batch_share if is_batch else 1)


def has_price(model: str) -> bool:
    """Tell whether the price of a model is known; raise `InvalidInput` when the operator's file can't be used."""
    models = price_list(settings().prices).models
    return model in models or SNAPSHOT.sub("", model) in models


def must_have_price(model: str) -> bool:
    """Tell whether a model is Claude's: each of those costs something, so that no limit holds without a price."""
    return model.startswith("claude-") or (settings().provider == "anthropic" and not settings().is_local)


@cache
def price_list(own: Path | None = None) -> PriceList:
    """Return the prices that hold: those of the operator's file first, for the rest the shipped ones.

    Raises `InvalidInput` when the file can't be read or a price in it is missing, negative or no number.
    """
    shipped = tomllib.loads(files("nous_online.language.claude").joinpath(SHIPPED).read_text("utf-8"))
    if own is None:
        return validated_list(shipped)
    try:
        told = tomllib.loads(own.read_text("utf-8"))
        models = {**shipped["models"], **told.get("models", {})}
        return validated_list({**shipped, **told, "models": models})
    except (OSError, ValueError, TypeError) as error:
        raise InvalidInput(f"the prices in {own}, named by NOUS_PRICES, can't be used: {said(error)}") from error


def validated_list(told: Mapping[str, Any]) -> PriceList:
    """Return a price list from what a file said."""
    return TypeAdapter(PriceList).validate_python(told)


def said(error: Exception) -> str:
    """Return in a line what is wrong with a price file, and where."""
    if isinstance(error, ValidationError):
        return "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors())
    return str(error)


FREE = Price(0.0, 0.0, 0.0, 0.0)
PRICES_AS_OF = price_list().as_of
"""When the shipped prices were last compared with Anthropic's own list."""
