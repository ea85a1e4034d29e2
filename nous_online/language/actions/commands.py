"""Reads shell commands in the words that a person would use for what they do.

"git push -f origin main" is "push force git origin main", and `psql $PROD_URL -c 'DROP TABLE jobs'` "DROP TABLE jobs on
$PROD_URL": the deed first, then what its options say of it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from nous_online.core.patterns import regex
from nous_online.language.lexicon import tables, word_list

TABLE = tables()["commands"]
TOOLS, CARRIERS, PREFIXES, PLACES, ADDED_DEEDS, LOOKS = (
    frozenset(TABLE[name].split())
    for name in ("tools", "carriers", "prefixes", "places", "options_that_are_deeds", "options_that_only_look")
)
USED_LIKE: dict[str, str] = dict(pair.split("=") for pair in TABLE["used_like"].split())
DEEDS: dict[str, str] = dict(line.split(" ", 1) for line in TABLE["deeds"])
OPTIONS: dict[str, dict[str, str]] = {
    name: dict(option.split("=") for option in options) for name, *options in map(str.split, TABLE["options"])
}
NAMES = frozenset([*DEEDS, *OPTIONS, *CARRIERS, *PLACES])
PROGRAMS = (
    TOOLS | {name for name in NAMES if "-" not in name} | USED_LIKE.keys() | set(TABLE["named_for_deeds"].split())
)
DEED_WORDS = word_list("looking").union(*(group.split() for group in tables()["actions"]["deeds"]))
PLAIN_OPTIONS = frozenset(word for row in OPTIONS.values() for word in row.values())
"""What options say in one word, which means the same in a rule."""
MANNERS = PLAIN_OPTIONS - ADDED_DEEDS
"""What they say of how a deed is done: "force"."""
WITH_MANNERS = DEED_WORDS | {name.rpartition("-")[2] for name in OPTIONS}
TOKEN = regex(r"'[^']*'|\"[^\"]*\"|&&|\|\||[;|&\n]|[^\s'\"|;&`]+")
SEPARATORS = frozenset(["&&", "||", ";", "|", "&", "\n"])
ASSIGNMENT = regex(r"\A[A-Z_]\w{0,60}=")
CLUSTER = regex(r"\A-[A-Za-z]{2,5}\Z")
NEW_BRANCH = regex(r"\A-[bBcC]\Z")
READING = regex(r"(?:select|show|explain|\\d)\b", re.IGNORECASE)
LETTERS = regex(r"[a-z]+")
MOST_SUBCOMMANDS = 4  # words behind a tool among which its deed is sought
MOST_CARRIED = 2  # commands within a command: "ssh db-1 docker exec web rm -rf /data"
LONGEST_PLACE = 200


@dataclass(frozen=True)
class Command:
    """A command in words."""

    words: str
    unsaid: frozenset[str] = frozenset()
    """What its options could have said of the deed, and don't."""


@dataclass(frozen=True)
class Call:
    """A program with its subcommand and all other words; nothing but these where the program is not known."""

    program: str
    subcommand: str
    others: list[str]

    @property
    def name(self) -> str:
        """The name in the tables: "git-push", "rm"."""
        return f"{self.program}-{self.subcommand}" if self.subcommand else self.program


@lru_cache(maxsize=4096)
def read_command(text: str) -> Command | None:
    """Return a command, or several in a row, in words; None for a text that opens with none.

    What only says where the others work comes last: "commit on main" for "git checkout main && git commit".
    """
    if program_at(text.strip("` ").split(maxsplit=MOST_SUBCOMMANDS)) is None:
        return None
    said, places, unsaid = list[str](), list[str](), frozenset[str]()
    for separator, tokens in commands_in(text):
        call = call_of(tokens)
        if call.name in PLACES:
            places += ["on", *place_of(call.others)]
        else:
            read = in_words(call)
            said += [separator, read.words]
            unsaid |= read.unsaid
    known = LETTERS.findall(" ".join(said).lower())
    return Command(" ".join([*said, *places]), unsaid.difference(known)) if said else None


def commands_in(text: str) -> list[tuple[str, list[str]]]:
    """Return the tokens of each command of a text, with what separates it from the one before."""
    found: list[tuple[str, list[str]]] = [("", [])]
    for token in TOKEN.findall(text):
        if token in SEPARATORS:
            found.append((token, []))
        else:
            found[-1][1].append(token)
    return [each for each in found if each[1]]


def program_at(tokens: Sequence[str]) -> int | None:
    """Return the place of the program in a command; None where it is none that is known."""
    for place, token in enumerate(tokens):
        if token in PROGRAMS:
            return place
        if token not in PREFIXES and not ASSIGNMENT.match(token):
            return None
    return None


def call_of(tokens: list[str]) -> Call:
    """Return a command with its deed found; what stands before it, and its own name, are among the other words."""
    place = program_at(tokens)
    if place is None:
        return Call("", "", tokens)
    named = tokens[place]
    program = USED_LIKE.get(named, named)
    before = [each for each in tokens[:place] if each != "run"]  # "never run rm -rf" says no more than the command
    rest = [*tokens[place + 1 :], *before, *([named] if named != program else [])]
    if program not in TOOLS:
        return Call(program, "", rest)
    words = [number for number, token in enumerate(rest) if token[0] != "-"][:MOST_SUBCOMMANDS]
    listed = [number for number in words if f"{program}-{rest[number]}" in NAMES]
    deeds = listed or [number for number in words if rest[number].split("-", 1)[0] in DEED_WORDS]
    if not deeds:
        return Call(program, "", rest)
    return Call(program, rest[deeds[0]], [*rest[: deeds[0]], *rest[deeds[0] + 1 :]])


def place_of(words: list[str]) -> list[str]:
    """Return where the next commands work: of a branch made from another, the new one."""
    new = next((number for number, token in enumerate(words) if NEW_BRANCH.match(token)), None)
    return [token for token in words if token[0] != "-"] if new is None else words[new + 1 : new + 2]


def in_words(call: Call, *, depth: int = 0) -> Command:
    """Return one command in words: deeds that options add, the deed, how it is done, the tool, and all else."""
    if call.name in CARRIERS and depth < MOST_CARRIED and (carried := carried_by(call, depth)):
        return carried
    row = OPTIONS.get(call.name, {})
    could_say = frozenset(word for meaning in row.values() for word in meaning.split("-"))
    meanings = [word for token in call.others for word in meanings_of(token, row, could_say)]
    looks = ["check"] if any(token.split("=", 1)[0] in LOOKS for token in call.others) else []
    added, manners = ([each for each in meanings if (each in ADDED_DEEDS) == is_added] for is_added in (True, False))
    deed = DEEDS.get(call.name) or call.subcommand or call.program
    others = [*manners, *([call.program] if call.subcommand else []), *call.others]
    words = [*others, deed] if "erase" in added else [deed, *others]  # "git push --delete" is no push
    is_open = any(token[0] == "$" or ASSIGNMENT.match(token) for token in call.others)  # what $FLAGS or HUSKY=0 may say
    unsaid = frozenset[str]() if is_open else could_say.difference(meanings)
    return Command(" ".join([*looks, *added, *words]), unsaid)


def meanings_of(token: str, row: dict[str, str], could_say: frozenset[str]) -> list[str]:
    """Return what one token says as an option: "recursive" and "force" for "-rf", "force" for "+main" in a push."""
    if token not in row and token.startswith("--") and (word := token[2:].partition("=")[0]) in could_say:
        return [word]
    options = [token] if token in row else [token[0]]
    if CLUSTER.match(token) and token not in row:
        options = [f"-{letter}" for letter in token[1:]]
    return [word for option in options if option in row for word in row[option].split("-")]


def carried_by(call: Call, depth: int) -> Command | None:
    """Return the command that another program is given, and then where: "make clean on web-1"; None without one."""
    words = call.others
    quoted = next((number for number, token in enumerate(words) if token[0] in "'\"" and token[1:-1]), None)
    if quoted is not None:
        inner, where = words[quoted][1:-1], [*words[:quoted], *words[quoted + 1 :]]
        read = read_command(inner) or Command(f"read {inner}" if READING.match(inner) else inner)
    else:
        starts = (number for number, token in enumerate(words) if number and (token in PROGRAMS or token in PREFIXES))
        start = next(starts, len(words))
        if start == len(words):
            return None
        where = words[:start]
        read = in_words(call_of(words[start:]), depth=depth + 1)
    where = [token for token in where if token[0] != "-"]
    return Command(" ".join([read.words, "on", *where, call.program, call.subcommand]), read.unsaid)


def is_place(text: str) -> bool:
    """Tell whether a command only chooses what the next one works on: "git checkout main", but not "cd src"."""
    if len(text) > LONGEST_PLACE:
        return False
    return all((call := call_of(tokens)).subcommand and call.name in PLACES for _, tokens in commands_in(text))
