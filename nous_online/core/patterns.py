"""Regular expressions that are compiled at their first use: of hundreds, most programs need a few."""

from __future__ import annotations

import re
from typing import Any, cast


class LatePattern:
    """Stands in for a pattern; from its first use on it has all attributes of it."""

    def __init__(self, pattern: str, flags: int) -> None:
        self.pattern = pattern
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what copies or compares objects asks for more than they have
            raise AttributeError(name)
        compiled = self.compiled()
        self.__dict__ |= {each: getattr(compiled, each) for each in dir(compiled) if not each.startswith("_")}
        return getattr(compiled, name)

    def compiled(self) -> re.Pattern[str]:
        """Return the pattern itself."""
        return re.compile(self.pattern, self._flags)


def regex(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Return a pattern for a constant of a module; compiling all of them took a fifth of what a program needs to start.

    A mistake in it shows at its first use: `test_linear_time.py` uses all of them.
    """
    return cast("re.Pattern[str]", LatePattern(pattern, flags))
