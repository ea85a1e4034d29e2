"""The kinds of fields a verb may be told: what each takes, its limits, what it is for. Pure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import datetime
from typing import Any, ClassVar, cast

from nous_online.core import validation
from nous_online.core.domain import DOCUMENT
from nous_online.core.errors import InvalidInput
from nous_online.core.policy import ContextPolicy
from nous_online.core.unseen import is_blank
from nous_online.core.validation import MAX_IDS, MAX_NAMES


@dataclass(frozen=True)
class InputField(ABC):
    """One thing a verb may be told: what it is for, in one sentence, and what holds unless it is told."""

    about: str
    _: KW_ONLY
    default: Any = None
    aliases: tuple[str, ...] = ()
    """Other names it may be told by."""
    option: str | None = None
    """Its option on the command line and what stands for its value in the help, such as `--tag TAG`; None without."""
    brief: str | None = None
    """What a model reads of it, as few words as will do and none where the name says it; None where it is not asked."""

    limits: ClassVar[str] = ""
    """What limits this kind of field has, with their unit."""

    @property
    def limit(self) -> str:
        """What limits it has."""
        return self.limits.format(**vars(self))

    @property
    def sentence(self) -> str:
        """What it is for, with its limits."""
        return f"{self.about.rstrip('.')} ({self.limit})." if self.limit else self.about

    @abstractmethod
    def check(self, name: str, value: object, *, now: datetime | None) -> Any:
        """Return the value as it is stored; raise `InvalidInput` saying what to mend."""


@dataclass(frozen=True)
class Text(InputField):
    """A text that is not blank."""

    most: int
    """Bytes in UTF-8."""
    empty_is_none: bool = False
    limits = "at most {most:,} bytes"

    def check(self, name: str, value: object, *, now: datetime | None) -> Any:
        if self.empty_is_none and value == "":
            return None
        return validation.checked_text(name, value, max_bytes=self.most)


@dataclass(frozen=True)
class MoreText(Text):
    """What is added to a text that an error names."""

    whole: str = ""

    def check(self, name: str, value: object, *, now: datetime | None) -> Any:
        return super().check(self.whole, value, now=now)


@dataclass(frozen=True)
class Line(InputField):
    """A short text; an empty one counts as none."""

    most: int
    """Characters."""
    limits = "at most {most:,} characters"

    def check(self, name: str, value: object, *, now: datetime | None) -> Any:
        return validation.checked_optional(name, value, max_characters=self.most)


@dataclass(frozen=True)
class Names(InputField):
    """A list of short names."""

    limits = f"at most {MAX_NAMES} of them"

    def check(self, name: str, value: object, *, now: datetime | None) -> Any:
        return validation.checked_names(name, value)


@dataclass(frozen=True)
class OneOf(InputField):
    """One of a few words."""

    words: tuple[str, ...]

    def check(self, name: str, value: object, *, now: datetime | None) -> Any:
        return validation.checked_choice(name, value, self.words)


@dataclass(frozen=True)
class Instant(InputField):
    """A date with a time and its zone."""

    is_said: bool = False
    """Whether something was said or happened then, so that it can't lie ahead."""

    @property
    def limit(self) -> str:
        return "not more than a day ahead" if self.is_said else ""

    def check(self, name: str, value: object, *, now: datetime | None) -> Any:
        if self.is_said and now is not None:
            return validation.checked_said(name, value, now=now)
        return validation.checked_moment(name, value)


@dataclass(frozen=True)
class Share(InputField):
    """A number from 0 to 1."""

    limits = "from 0 to 1"

    def check(self, name: str, value: object, *, now: datetime | None) -> Any:
        return validation.checked_share(name, value)


@dataclass(frozen=True)
class Whole(InputField):
    """A whole number within bounds."""

    least: int
    most: int
    limits = "from {least:,} to {most:,}"

    def check(self, name: str, value: object, *, now: datetime | None) -> Any:
        return validation.checked_whole(name, value, least=self.least, most=self.most)


@dataclass(frozen=True)
class Flag(InputField):
    """Whether something is so."""

    def check(self, name: str, value: object, *, now: datetime | None) -> Any:
        return validation.checked_flag(name, value)


@dataclass(frozen=True)
class MemoryId(InputField):
    """The id of a memory."""

    def check(self, name: str, value: object, *, now: datetime | None) -> Any:
        return validation.checked_id(name, value)


@dataclass(frozen=True)
class MemoryIds(InputField):
    """Ids of memories."""

    most: int = MAX_IDS
    limits = "at most {most:,}"

    def check(self, name: str, value: object, *, now: datetime | None) -> Any:
        entry = f"an entry of {name}"
        return validation.checked_list(name, value, lambda each: validation.checked_id(entry, each), most=self.most)


@dataclass(frozen=True)
class Lines(InputField):
    """A list of texts that are not blank."""

    most: int
    """Bytes of each in UTF-8."""
    entry: str
    """What an error calls one of them."""
    count: int = MAX_NAMES
    limits = "at most {count:,} of {most:,} bytes each"

    def check(self, name: str, value: object, *, now: datetime | None) -> Any:
        def checked(each: object) -> str:
            return validation.checked_text(self.entry, each, max_bytes=self.most)

        return validation.checked_list(name, value, checked, most=self.count)


@dataclass(frozen=True)
class DecisionNames(InputField):
    """What names decisions."""

    most: int = MAX_IDS
    limits = "at most {most:,}"

    def check(self, name: str, value: object, *, now: datetime | None) -> Any:
        entry = f"an entry of {name}"
        return validation.checked_list(
            name, value, lambda each: validation.checked_decision(entry, each), most=self.most
        )


@dataclass(frozen=True)
class Special(InputField):
    """A value of a form of its own."""

    checks: Callable[[str, object], Any]

    def check(self, name: str, value: object, *, now: datetime | None) -> Any:
        return self.checks(name, value)


@dataclass(frozen=True)
class DecisionName(InputField):
    """What names a decision: its id or reference here, or its name elsewhere."""

    def check(self, name: str, value: object, *, now: datetime | None) -> Any:
        return validation.checked_decision(name, value)


MOST_LISTED = 100
"""Imports, errors or people told at once."""


@dataclass(frozen=True)
class Category(Line):
    """The category of a statement; that of documents is not to be told."""

    def check(self, name: str, value: object, *, now: datetime | None) -> Any:
        if value == DOCUMENT:
            raise InvalidInput(f"category {value!r} is kept for the files and values of adapters; use another word")
        return super().check(name, value, now=now)


@dataclass(frozen=True)
class AnswerLimit(Whole):
    """How many answers at most."""

    def check(self, name: str, value: object, *, now: datetime | None) -> Any:
        return validation.checked_limit(value)


@dataclass(frozen=True)
class Kinds(InputField):
    """Kinds of memory, one or several."""

    def check(self, name: str, value: object, *, now: datetime | None) -> Any:
        return validation.checked_names(name, [value] if isinstance(value, str) else value)


@dataclass(frozen=True)
class Budget(Whole):
    """How many tokens at most."""

    def check(self, name: str, value: object, *, now: datetime | None) -> Any:
        if isinstance(value, bool) or not isinstance(value, int) or not self.least <= value <= self.most:
            message = f"{name} must be a whole number of tokens from 1 to {self.most:,}, got {value!r}"
            raise InvalidInput(f"{message}; leave it out for the usual {ContextPolicy.budget:,}")
        return value


@dataclass(frozen=True)
class Question(Text):
    """A text that counts as none where it is blank."""

    def check(self, name: str, value: object, *, now: datetime | None) -> Any:
        is_none = isinstance(value, str) and is_blank(value)
        return None if is_none else super().check(name, value, now=now)


@dataclass(frozen=True)
class Clue(Question):
    """A signal, without the blanks around it."""

    def check(self, name: str, value: object, *, now: datetime | None) -> Any:
        text = super().check(name, value, now=now)
        return text and text.strip()


@dataclass(frozen=True)
class Clues(InputField):
    """Several signals, each once and in the order they were told."""

    most: int
    """Bytes of each in UTF-8."""
    limits = f"at most {MOST_LISTED} of {{most:,}} bytes each"

    def check(self, name: str, value: object, *, now: datetime | None) -> Any:
        if isinstance(value, str | bytes) or not isinstance(value, Sequence):
            raise InvalidInput(f"{name} must be a list of texts, got {value!r}")
        listed = cast("Sequence[object]", value)
        if len(listed) > MOST_LISTED:
            raise InvalidInput(f"{name} has {len(listed):,} entries, the limit is {MOST_LISTED}; tell the latest")
        clue = Clue(self.about, most=self.most)
        told = [clue.check(f"an entry of {name}", each, now=now) for each in listed if each is not None]
        return tuple(dict.fromkeys(text for text in told if text is not None))


@dataclass(frozen=True)
class Nested(InputField):
    """Details of a table of their own, which are checked where they are read."""

    table: type

    def check(self, name: str, value: object, *, now: datetime | None) -> Any:
        return value


@dataclass(frozen=True)
class Alias(InputField):
    """Another name of a field; that one lists it in its `aliases` and checks what was told by either."""

    def check(self, name: str, value: object, *, now: datetime | None) -> Any:
        return value
