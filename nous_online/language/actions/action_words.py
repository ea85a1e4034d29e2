"""Parses triggers and actions into roots, groups of synonyms and clauses, and finds actions that do something else.

The cosine is not enough: "git pull origin main" lies as near to "pushing directly to main branch" as "git push origin
main" does, and "ask before deleting" nearer to "deleting without asking" than any deletion.
"""
# ruff: noqa: E501 — a pattern reads best whole

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from nous_online.core.patterns import regex
from nous_online.language.actions.commands import MANNERS, WITH_MANNERS, read_command
from nous_online.language.actions.rules import ASK_FIRST, FORBIDDEN, RULE, active, read_rule
from nous_online.language.lexicon import FUNCTION_WORDS, MONTHS, OPPOSITES, RIVALS, tables, word_list
from nous_online.language.pairs.reading import stem

MOST_CHARACTERS = 2000  # read of one part of an action; later text is mostly data
DENYING_REACH = 2  # content words after a "not" that it negates
WORD = regex(r"[^\W\d_]+(?:'[^\W\d_]+)?|\d+")
CAMEL = regex(r"(?<=[a-z])(?=[A-Z])")
PHRASES = (
    (regex(r"\b(?:turn|switch)(?:ed|ing|s)? ((?:\w+ ){0,3})off\b"), r" disable \1 "),
    (regex(r"\b(?:turn|switch)(?:ed|ing|s)? ((?:\w+ ){0,3})on\b"), r" enable \1 "),
    (regex(r"\b(?:roll|push)(?:ed|ing|s)? ((?:\w+ ){0,4})(?:out|live)\b"), r" deploy \1 "),
    (regex(r"\broll(?:ed|ing|s)? ((?:\w+ ){0,3})back\b|\brollback\b"), r" revert \1 "),
    (regex(r"\blog(?:ged|ging|s)? (?:in|out|on|off)\b"), " session "),
    (regex(r"(?<![\w-])-{1,2}(?:f|force)\b(?!-)"), " force "),
    (regex(r"\|\s*(?:sudo\s+)?(?:ba|z|da)?sh\b"), " execute code "),
    (regex(r"\b(?:to|on|onto|into) (main|master)\b(?! [a-z])"), r" to \1 branch "),
    (regex(r"\bhttps?://"), " internet "),
    (regex(r"\b0\.0\.0\.0/0"), " internet public "),
    (regex(r"n['\u2019]t\b"), " not "),
)
"""Phrases, each with a word of the same meaning."""


@lru_cache(maxsize=65_536)
def root(word: str) -> str:
    """Return the root of a word: the same for "calling" and "call", "giving" and "give", "copies" and "copy"."""
    is_of_y = len(word) > 4 and word.endswith(("ies", "ied"))  # noqa: PLR2004 ("ties" is of "tie")
    cut = f"{word[:-3]}y" if is_of_y else stem(word).rstrip("e")
    return cut[:-1] if len(cut) > 3 and cut[-1] == cut[-2] else cut  # noqa: PLR2004 (as short as roots get)


def roots(words: str) -> frozenset[str]:
    """Return the roots of words separated by spaces."""
    return frozenset(map(root, words.split()))


ACTIONS = tables()["actions"]
ALIASES: dict[str, str] = dict(pair.split("=") for pair in ACTIONS["aliases"].split())
PLURAL_ALIASES = {f"{word}s": alias for word, alias in ALIASES.items() if len(word) > len("devs")}
DEEDS = tuple(map(roots, ACTIONS["deeds"]))
MEANINGS = {
    word: frozenset({word, *(f"deed {number}" for number, group in enumerate(DEEDS) if word in group)})
    for word in frozenset[str]().union(*DEEDS)
}
OPPOSED = frozenset(
    pair
    for line in ACTIONS["opposed"]
    for one, _, others in [line.partition(" ")]
    for other in others.split("|")
    for pair in ((root(one), root(other)), (root(other), root(one)))
) | {(root(a), root(b)) for a, b in OPPOSITES if a not in FUNCTION_WORDS and b not in FUNCTION_WORDS}
LOOKING, UNDOING, LIGHT, DENYING = (
    frozenset(map(root, word_list(name))) for name in ("looking", "undoing", "saying_little", "denying")
)
OPENINGS, LACKS, DENIALS, PREPOSITIONS = map(word_list, ("openings", "lacks", "denials", "prepositions"))
TELLING = DENIALS | LACKS | PREPOSITIONS | word_list("telling")
"""Small words with another of which an action is another one: "push from main" is no "push to main"."""
PARTICLES = {"in": "out", "out": "in", "on": "off", "off": "on", "up": "down", "down": "up"}
VALUES = (*(frozenset(map(root, group)) for group in RIVALS), roots("production staging development local sandbox"))
ONLY = regex(
    r"\A(?:only|(?:nobody|no one|no (?!one\b)\w{1,40}) (?:but|except|other than|besides|apart from|save)|nur|seule?|s[oó]lo) (.{1,60}?) (?:may|can|should|must|is allowed to|are allowed to|darf|dürfen|peut|peuvent|puede|pueden) (.*)\Z",
    re.IGNORECASE | re.DOTALL,
)
PROHIBITS = regex(
    r"\b(?:never|nobody|no one|forbidden|prohibited|cannot|(?:do|must|may|should) not|(?:do|must|should|ca)n['\u2019]t|not (?:allowed|permitted))\b",
    re.IGNORECASE,
)
EXCEPT = regex(
    r"\b(?:unless|except|except (?:when|if|with|after|for)|if not|only after|before(?= (?:\S+ ){1,6}(?:has|have|is|are|was)\b)|ohne|sans|sin|es sei denn|außer|sauf|à moins que|a menos que|salvo|excepto)\b",
    re.IGNORECASE,
)
"""Words before the condition under which a rule allows the act."""
FOREIGN_CLOCK = regex(
    r"\b(um|ab|nach|vor|à|après|avant|dès|a las|después de las|antes de las) (\d{1,2})(?:[:.h](\d\d))?(?: ?(?:uhr|h|horas)\b|(?<=las \d)\b|(?<=las \d\d)\b)",
    re.IGNORECASE,
)
CLOCK_WORDS = {
    word: english
    for english, words in (
        ("at", "um|à|a las"),
        ("from", "ab|dès"),
        ("after", "nach|après|después de las"),
        ("before", "vor|avant|antes de las"),
    )
    for word in words.split("|")
}
QUESTION = regex(
    r"\?[\"'\u201d)]*\s*\Z|\A(?:should|could|may|can|does|did|is|are|who|what|when|how|why|which|whether)\b",
    re.IGNORECASE,
)
REPORT = regex(
    r"\b(?:yesterday|last (?:night|week|month|year|summer|winter)|(?:minutes?|hours?|days?|weeks?|months?|years?) ago)\b",
    re.IGNORECASE,
)
REFUSAL = regex(
    r"\A\W*(?:never|don['\u2019]?t|do not|refuse|decline|note\b|(?:we|i)(?:['\u2019]m| am| are|['\u2019]re)? (?:not|never|don['\u2019]?t|do not"
    r"|cannot|can['\u2019]?t|won['\u2019]?t)|i(?:['\u2019]m| am) (?:sorry|afraid))|\b(?:said no|no comment|as (?:it|they) (?:is|are))\b"
    r"|\b(?:is|are) (?:not (?:for|allowed)|forbidden|confidential)\b|\bkeep\b.{1,60}\baway\b",
    re.IGNORECASE,
)
"""An action that is not done: a refusal, a question, a report (with `QUESTION` and `REPORT`)."""
_DAYS = "monday tuesday wednesday thursday friday saturday sunday"
WEEKDAYS = {name: frozenset({number}) for number, name in enumerate(_DAYS.split())} | {
    "weekend": frozenset({5, 6}),
    "weekday": frozenset(range(5)),
    "workday": frozenset(range(5)),
}
SEASONS = {
    "spring": frozenset({3, 4, 5}), "summer": frozenset({6, 7, 8}),
    "autumn": frozenset({9, 10, 11}), "winter": frozenset({12, 1, 2}),
}  # fmt: skip
TIMES = {"before": "before", "until": "before", "after": "after"} | dict.fromkeys(("during", "while", "when"), "during")
"""Prepositions of time, by their relation."""
DENIED_WORDS = 4  # words after a "no" in its scope
ENDS_DENIAL = frozenset({"but", "and", "so"})
UNSAID = word_list("unsaid") | {*MONTHS, *SEASONS, *WEEKDAYS, *(f"{day}s" for day in WEEKDAYS)}
"""Words left out of clauses: they don't change one, or are compared as conditions of time."""
LONG_ADVERB = regex(r"\A\w{4,200}ly")
SEGMENT = regex(
    r"(?<!\s)\s++(?=(?:to|in|on|at|for|from|by|with|without|while|during|before|after|into|onto|over|above|below|under|via|behind"
    r"|of|against|between|when|until|than|as|about|through|outside|inside|near|more|less|larger|older)\b)"
)


@dataclass(frozen=True)
class ParsedAction:
    """A parsed trigger or part of an action; `words` are roots in order, `meanings` their groups of synonyms."""

    words: tuple[str, ...]
    meanings: frozenset[str]
    head: str | None
    """The root of its first verb."""
    head_meanings: frozenset[str]
    objects: tuple[frozenset[str], ...]
    """The meanings of each other word."""
    lacking: frozenset[str]
    """The meanings of the words after one such as "without"."""
    is_denying: bool


@lru_cache(maxsize=4096)
def warned_act(trigger: str) -> str:
    """Return the act a rule forbids: "push to main" for "never push to main"; a required step becomes "without …"."""
    text = FORBIDDEN.sub("", read_rule(in_english(trigger)).forbids.strip())
    if asked := ASK_FIRST.match(text):
        return f"{asked[3]} without {asked[1]}{'' if asked[1].endswith('ing') else 'ing'}{asked[2]}"
    if only := ONLY.match(text):
        return f"{only[2]} without {only[1]}"
    if not RULE.match(text):
        text = active(text) or text
    rule = RULE.match(text)
    text = text[rule.end() :] if rule else text
    if rule and rule[2]:  # "no schema migrations": the act is the noun
        first, _, rest = text.partition(" ")
        second = rest.split(" ")[0]
        if root(first) not in MEANINGS and root(second) in MEANINGS and second != "without":
            text = f"{second} {first}{rest[len(second) :]}"
    return EXCEPT.sub("without", text)


def is_unread_rule(trigger: str) -> bool:
    """Tell whether a trigger forbids something and no act could be read off it, so that it is compared as it stands."""
    return read_rule(trigger).forbids == trigger and PROHIBITS.search(warned_act(trigger)) is not None


def in_english(text: str) -> str:
    """Return a text with the times of day of German, French or Spanish in English: "nach 22 Uhr" is "after 22:00"."""
    return FOREIGN_CLOCK.sub(lambda at: f"{CLOCK_WORDS[at[1].lower()]} {int(at[2]):02}:{at[3] or '00'}", text)


@lru_cache(maxsize=1024)
def only_speaks(action: str) -> bool:
    """Tell whether an action only asks about, refuses or reports something."""
    text = action.strip()
    if QUESTION.search(text) or REFUSAL.search(text):
        return True
    opening = next(iter(spoken_words(text[:MOST_CHARACTERS])), "")  # "tell Ben what she ordered last week" is no report
    return bool(REPORT.search(text)) and root(opening) not in MEANINGS


def spoken_words(text: str) -> list[str]:
    """Return the words of a trigger or an action in lower case, with phrases and short forms replaced by one word."""
    command = read_command(text)
    plain = CAMEL.sub(" ", (command.words if command else text).replace("_", " ")).lower()
    for phrase, word in PHRASES:
        plain = phrase.sub(word, plain)
    found: list[str] = WORD.findall(plain)
    if len(found) > 1 and found[0] in MANNERS and found[1] in WITH_MANNERS:  # "force-push" is a push
        found[:2] = found[1], found[0]
    return [ALIASES.get(word) or PLURAL_ALIASES.get(word, word) for word in found]


@lru_cache(maxsize=4096)
def worded(text: str) -> tuple[str, ...]:
    """Return the roots of all words of a trigger or an action that change what it says, in order."""
    return tuple(root(word) for word in spoken_words(text) if word in TELLING or word not in FUNCTION_WORDS)


@lru_cache(maxsize=4096)
def parse_action(text: str) -> ParsedAction:
    """Return a trigger or a part of an action, parsed."""
    spoken = spoken_words(text)
    place = next((number for number, word in enumerate(spoken) if word in LACKS), len(spoken))
    head = verb(spoken[:place])
    words = tuple(root(word) for word in spoken if word not in FUNCTION_WORDS or word in DENIALS)
    denials = {word for word in spoken if word in DENIALS}
    objects = [word for word in dict.fromkeys(words) if word not in {head, *map(root, denials)}]
    return ParsedAction(
        words=words,
        meanings=meanings(words),
        head=head,
        head_meanings=meanings([head] if head else []),
        objects=tuple(meanings([word]) for word in objects),
        lacking=meanings(root(word) for word in spoken[place + 1 :] if word not in FUNCTION_WORDS),
        is_denying=bool(denials),
    )


def verb(words: list[str]) -> str | None:
    """Return the root of the first verb, None without one."""
    found = [root(word) for word in words if word not in OPENINGS][:2]
    if found and found[0] in LIGHT and len(meanings(found[-1:])) > 1:
        return found[-1]
    return found[0] if found else None


def meanings(words: Iterable[str]) -> frozenset[str]:
    """Return roots together with the groups of synonyms that each is in."""
    return frozenset[str]().union(*(MEANINGS.get(word) or {word} for word in words))


def is_opposed(warned: ParsedAction, deed: ParsedAction) -> bool:
    """Tell whether the action has the opposite of a word of the trigger, or another value of one kind."""
    only_warned, only_deed = set(warned.words) - set(deed.words), set(deed.words) - set(warned.words)
    if warned.head and warned.head_meanings & deed.meanings:
        only_warned.discard(warned.head)
    if any((one, other) in OPPOSED for one in only_warned for other in only_deed):
        return True
    shared = set(warned.words) & set(deed.words)
    return any(group & only_warned and group & only_deed and not group & shared for group in VALUES)


def has_other_particle(trigger: str, action: str) -> bool:
    """Tell whether the action has the opposite particle behind a verb of the trigger: "opted in" for "opted out"."""
    warned, deed = (
        {(root(word), particle.removesuffix("s")) for word, particle in pairwise(spoken_words(text))}
        for text in (trigger, action)
    )
    return any((word, PARTICLES.get(particle)) in deed for word, particle in warned - deed)


def only_looks(warned: ParsedAction, deed: ParsedAction) -> bool:
    """Tell whether the action only reads, asks or drafts, while the trigger warns of more."""
    if deed.head not in LOOKING or warned.head in LOOKING:
        return False
    return not warned.head_meanings & deed.head_meanings


def undoes(warned: ParsedAction, deed: ParsedAction) -> bool:
    """Tell whether the action removes, stops or keeps the object, while the trigger warns of something else."""
    return bool(UNDOING & {deed.head}) and warned.head_meanings.isdisjoint(deed.head_meanings)


def denies(warned: ParsedAction, deed: ParsedAction) -> bool:
    """Tell whether the action negates the trigger's verb."""
    if not warned.head_meanings & deed.meanings:
        return False
    denied = [place for place, word in enumerate(deed.words) if word in DENYING]
    return any(warned.head_meanings & meanings(deed.words[place + 1 : place + 1 + DENYING_REACH]) for place in denied)


@dataclass(frozen=True)
class Clause:
    """The words after one preposition of a trigger, or after its verb, with an empty `preposition`."""

    preposition: str
    words: tuple[str, ...]

    @property
    def is_lacking(self) -> bool:
        """Whether its preposition says that something is missing: "without"."""
        return self.preposition in LACKS


@dataclass(frozen=True)
class WordPlace:
    """A content word of an action with its preposition and whether it is negated."""

    word: str
    root: str
    meanings: frozenset[str]
    preposition: str
    is_denied: bool


@lru_cache(maxsize=4096)
def read_clauses(trigger: str) -> tuple[str, tuple[Clause, ...]]:
    """Return the verb of a trigger and its clauses, the object first."""
    verb = ""
    found: list[tuple[str, list[str]]] = [("", [])]
    for word in spoken_words(trigger[:MOST_CHARACTERS]):
        if word.isdigit():
            continue
        if not verb and word not in FUNCTION_WORDS:
            verb = word
        elif word in PREPOSITIONS:
            if found[-1][1] or found[-1][0] not in LACKS:
                found.append((word, []))
        elif word not in FUNCTION_WORDS and word not in UNSAID and not LONG_ADVERB.fullmatch(word):
            found[-1][1].append(word)
    return verb, tuple(Clause(name, tuple(words)) for name, words in found if words)


@lru_cache(maxsize=8192)  # of triggers and their conditions as well
def read_places(action: str) -> tuple[WordPlace, ...]:
    """Return the content words of an action, in order."""
    found: list[WordPlace] = []
    preposition, denied = "", 0
    for word in spoken_words(action[:MOST_CHARACTERS]):
        if word in PREPOSITIONS:
            preposition = word
        if word in DENIALS or word in LACKS:
            denied = DENIED_WORDS
        if word.isdigit():
            continue
        if word in FUNCTION_WORDS:
            denied = 0 if word in ENDS_DENIAL else denied
            continue
        is_denied = denied > 0 and word not in DENIALS
        found.append(WordPlace(word, root(word), meanings([root(word)]), preposition, is_denied))
        denied -= 1
    return tuple(found)


@lru_cache(maxsize=4096)
def variants(trigger: str) -> tuple[str, ...]:
    """Return the trigger without each of its clauses in turn, without its verb, and without its object.

    An action that matches the whole trigger has a lower cosine with each of these than with the trigger.
    """
    act = warned_act(trigger)
    head, *rest = SEGMENT.split(act.strip())
    shorter = [" ".join([head, *rest[:place], *rest[place + 1 :]]) for place in range(len(rest))]
    verb, _, thing = head.partition(" ")
    if thing:
        shorter += [" ".join([thing, *rest]), " ".join([verb, *rest])]
    return tuple(dict.fromkeys(shorter))
