"""Keeps account of what language models cost: one row for each online request, failed ones too."""

from __future__ import annotations

import logging
from dataclasses import asdict
from datetime import date
from typing import TYPE_CHECKING, Any

from nous_online.core.errors import InvalidInput, NousError
from nous_online.database.statements import statements
from nous_online.language.claude.prices import cost_of
from nous_online.language.claude.spending import Meter, Spent

if TYPE_CHECKING:
    from nous_online.database.connection import Database

LOG = logging.getLogger(__name__)
SQL = statements("nous_online.language.claude", "metering.sql")
TIMEOUT_S = 2.0
"""How long storing the row of a request may take; an online call waits for it."""
ERROR_CHARACTERS = 500


def meter_of(database: Database, agent_id: str, night: date | None = None) -> Meter:
    """Return a meter that stores each request as this agent's, and a night's when there is one.

    It never raises: what can't be stored or priced is logged as a warning, with the tokens.
    """

    def meter(spent: Spent) -> None:
        row = {"agent_id": agent_id, "night": night, **row_of(spent)}
        try:
            with database.transaction(agent_id, timeout_s=TIMEOUT_S) as connection:
                connection.execute(SQL["store_request"], row)
        except NousError as error:
            LOG.warning("a request to %s was not metered (%s): %s", spent.model, error, told(spent))

    return meter


def row_of(spent: Spent) -> dict[str, Any]:
    """Return the columns of a request; how it failed is cut short, and freed of what PostgreSQL can't hold."""
    error = None if spent.error is None else storable(spent.error)
    return {
        "purpose": spent.purpose,
        "model": spent.model,
        "prompt_version": spent.prompt_version,
        "state": "imported" if error is None else "failed",
        "failed_count": int(error is not None),
        "cost_usd": priced(spent),
        "error": error,
        **asdict(spent.usage),
    }


def priced(spent: Spent) -> float:
    """Return what a request cost in US dollars; 0, with a warning, where no price is known."""
    try:
        return cost_of(spent.model, spent.usage, is_batch=False)
    except InvalidInput as error:
        LOG.warning("a request was metered without its price (%s): %s", error, told(spent))
        return 0.0


def told(spent: Spent) -> str:
    """Return the tokens of a request in words."""
    usage = spent.usage
    return (
        f"{usage.input_tokens} tokens in, {usage.output_tokens} out, {usage.cache_read_tokens} read from the cache,"
        f" {usage.cache_write_tokens} written to it, for {spent.purpose!r}"
    )


def storable(text: str) -> str:
    """Return a text as PostgreSQL can hold it, cut to `ERROR_CHARACTERS`."""
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")[:ERROR_CHARACTERS]
