"""Reads a rule as people write it: what it forbids, and what it says to do instead.

"Never delete backups, only archive them" forbids deleting backups. Read as one act it would ask of an action to archive
them as well, so that hardly any action matched.
"""
# ruff: noqa: E501 — a pattern reads best whole

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice

from nous_online.core.patterns import regex
from nous_online.language.lexicon import FUNCTION_WORDS, tables, word_list

RULE = regex(
    r"\A(?:please )?(?:(?:you|we|i|nobody|no one|the agent|agents) )?(?:(?:must|should|may|shall|can|do|does|are|is) ?)?"
    r"(?:(never)|n[o']t|don['\u2019]?t|avoid|refrain from|nicht|niemals|nie|keine?n?|ne (?:pas|jamais)|nunca|(no)\b(?! one))"
    r"(?: (?:ever|to|allowed|permitted))*\s+",
    re.IGNORECASE,
)
"""The start of a rule: "never …", "you must not …", "no …"."""
FORBIDDEN = regex(
    r"(?<=\S)\s++(?:is|are) (?:strictly )?(?:forbidden|prohibited|not (?:allowed|permitted)|banned|taboo|off limits)\W*\Z",
    re.IGNORECASE,
)
PASSIVE = regex(
    r"\A(.{1,80}?) (?:must|may|should|can|shall|(?:is|are)(?= never| not))(?: never| not|not)(?: ever)? (?:to )?be (\w+(?:(?:, \w+){0,3},? or \w+)?)(.*)\Z",
    re.IGNORECASE | re.DOTALL,
)
WORD = regex(r"\w+")
SUBJECT_END = regex(r" (?:must|may|should|can|shall|is|are|has|have) ")
_STAFF = (
    r"(?:(?:all|the|our|any|every|your) )?(?:you|we|they|staff(?: members?)?|employees?|personnel|team(?: members?)?|everyone|everybody|anyone|anybody"
    r"|agents?|assistants?|bots?|workers?|colleagues?|members of staff)"
)
"""Those whom a rule for everybody is for."""
_EVER = r"(?:ever|never|please|under any circumstances?|in any circumstances?|at any time|for any reason|in any case|no matter what|on any account)"
_LABEL = r"(?:(?:rule|policy|important|note|warning|reminder|nb|attention)(?: \d{1,3})?: )?(?:please,? )?"
LEAD_INS = tuple(
    regex(rf"\A{_LABEL}{each}", re.IGNORECASE)
    for each in (
        r"(?:it(?: is|['\u2019]?s) )?(?:strictly |absolutely |expressly )?(?:forbidden|prohibited|not (?:allowed|permitted)|against (?:the |our |company )?(?:rules?|policy))(?: for [\w ]{1,40}?)? to ",
        rf"(?:absolutely |really )?(?:never|do not|don['\u2019]t)(?:,? {_EVER},?){{1,3}} ",
        rf"{_STAFF} (?:must|may|should|shall|can|do|does)(?: never| not|not|n['\u2019]t)(?:,? {_EVER},?){{0,3}} (?!be )",
        rf"{_STAFF} (?:is|are)(?: never| not|n['\u2019]t) (?:(?:allowed|permitted|supposed) )?to ",
        r"(?:nobody|no one|none of (?:us|you)|no (?:employee|staff member|member of staff|agent)s?) (?:must|may|should|shall|can|is (?:(?:allowed|permitted) )?to|are (?:(?:allowed|permitted) )?to) ",
        rf"(?:under no circumstances|on no account|at no time|in no case|absolutely never|never)(?: (?:may|should|must|can|shall|do|is|are) {_STAFF}(?: to)?)? (?!be )",
    )
)
"""Openings of a rule that all say "never"."""
_NOT = r"(?: never| not|not|n['\u2019]t)"
MUST_NOT = regex(
    rf"\A([^,.;:]{{1,60}}?) (?:(?:must|may|should|can|shall){_NOT}|(?:is|are){_NOT} (?:(?:allowed|permitted|supposed) )?to)(?: ever)? (?!be )(?=\w)",
    re.IGNORECASE,
)
NONE_MAY = regex(
    r"\Ano (?!one\b)([^,.;:]{1,60}?) (?:(?:must|may|should|can|shall)|(?:is|are) (?:(?:allowed|permitted|supposed) )?to)(?: ever)? (?!be |not )(?=\w)",
    re.IGNORECASE,
)
"""Openings of a rule that names who, or what, must not do the act: "interns must not …", "no intern may …"."""
EMPHASIS = regex(rf"(?<=\w),? (?:{_EVER}|whatsoever|whatever happens|at all|either)\W{{0,3}}\Z", re.IGNORECASE)
ASIDE = regex(
    r", (?:not even|even|including|especially|particularly|in particular|such as|for example|e\.g\.)\s[^,;.!]{1,80}(?:,|(?=[.;!]|\Z))",
    re.IGNORECASE,
)
"""What stresses a case of the act: "never call customers, not even regulars"."""
PARTINGS = regex(
    r"[.!]\s|[;:]\s|,\s|\n|\s[-\u2013\u2014]+\s|\u2014|\s\((?=[^()]{1,200}\)\W{0,3}\Z)|\s(?:and|but|or)\s(?=(?:never|do not|don['\u2019]t)\s)"
)
NEVER = ("never ", "do not ", "don't ", "don\u2019t ")
SENTENCE_END = regex(r"[.;!]\s")
LISTED = regex(r"\b(?:following|these|this): ", re.IGNORECASE)
ABBREVIATIONS = frozenset(["mr", "mrs", "ms", "dr", "st", "no", "vs", "approx", "e.g", "i.e"])
ASK_FIRST = regex(
    r"\A(?:always )?(ask|check|confirm|consult|tell|inform|notify)\b(.{0,60}?) before (.*)\Z", re.IGNORECASE | re.DOTALL
)
PRONOUN = regex(r"\A((?:never|do not|don['\u2019]t) [\w-]{1,40}(?: \w{1,20})?) (it|them)\b", re.IGNORECASE)
"""A deed with its object said before."""
ONLY_SOMEBODY = regex(
    r"\Aonly (.{1,40}?) (?:may|can|should|must|is allowed to|are allowed to)(?: (?:do (?:so|that|this|it)|so))?\W{0,3}\Z",
    re.IGNORECASE,
)
ONLY_THEN = regex(r"\A(?:but )?only (?:(?:if|when|once|after)\b|(with)\b)", re.IGNORECASE)
OBJECTS_SAID = frozenset(["it", "them", "that", "this", "these", "those", "him", "her", "so", "either"])
FINITE = OBJECTS_SAID | frozenset(
    [
        "must",
        "may",
        "can",
        "should",
        "will",
        "does",
        "do",
        "is",
        "are",
        "was",
        "has",
        "have",
        "he",
        "she",
        "they",
        "we",
        "you",
        "i",
    ]
)
EXCEPTIONS, QUALIFIERS, IMPERATIVES, JOINING_WORDS, PREPOSITIONS = map(
    word_list, ("exceptions", "qualifiers", "imperatives", "joining_items", "prepositions")
)
PARTICIPLES: dict[str, str] = dict(pair.split("=") for pair in tables()["actions"]["participles"].split())
DETERMINERS, REFLEXIVES = word_list("determiners"), frozenset({"themselves", "themself", "himself", "herself"})
VOWELS = frozenset("aeiou")
MOST_PARTINGS = 30  # commas and sentence ends of a trigger that are looked at
LONGEST_ITEM = 5  # words of a list up to "or": "names, phone numbers or addresses"


@dataclass(frozen=True)
class ForbiddingRule:
    """A trigger that forbids something, in parts."""

    forbids: str
    """The rule without what follows it; a trigger that forbids nothing, or is no rule, as it is."""
    instead: str = ""
    """What is to be done instead, or why."""
    further: tuple[str, ...] = ()
    """What else it forbids, in sentences of their own."""


@lru_cache(maxsize=4096)
def read_rule(trigger: str) -> ForbiddingRule:
    """Return a trigger in its parts: the act forbidden, what to do instead, and what else is forbidden.

    Of a rule for somebody the act has its doer, "interns touch the server" for "interns must not touch the server": the
    rule says nothing of the others.
    """
    text = plain_opening(trigger.strip())
    if limited := limited_rule(text):
        return limited
    if not is_prohibition(text):
        return after_advice(text) or ForbiddingRule(trigger)
    text = ASIDE.sub("", text)
    forbids, rest = text, ""
    for parting in islice(PARTINGS.finditer(text), MOST_PARTINGS):
        before, after = text[: parting.start()], text[parting.end() :].strip()
        if after and ends_act(before, parting[0], after):
            forbids, rest = before, after
            break
    if condition := condition_of(rest):
        return ForbiddingRule(without_emphasis(f"{forbids.rstrip(' ,')} {condition}"))
    said = antecedent(RULE.sub("", forbids))
    others = [with_object(plain_opening(each.strip()), said) for each in SENTENCE_END.split(rest)]
    further = tuple(each for each in others if prohibits_something(each))
    instead = " ".join(each for each in others if not is_prohibition(each))
    return ForbiddingRule(without_emphasis(forbids), instead, further)


def without_emphasis(forbids: str) -> str:
    """Return an act without what only stresses it: "ever", and who is told to do it "themselves".

    What they do to themselves stays ("let users lock themselves out", "ask guests to talk about themselves").
    """
    text = EMPHASIS.sub("", forbids)
    words = text.lower().rstrip(" .!").split()
    if not words or words.pop() not in REFLEXIVES:
        return text
    thing = words[words.index("to") + 2 :] if "to" in words else words[4:]  # "never let guests light the stove"
    is_object = (
        bool(thing) and PREPOSITIONS.isdisjoint(thing[-1:]) and ("to" in words or not DETERMINERS.isdisjoint(thing))
    )
    return text.rstrip(" .!").rsplit(maxsplit=1)[0] if is_object else text


def limited_rule(text: str) -> ForbiddingRule | None:
    """Return a rule that names who must not do the act; None for another text, also one about what others may not do."""
    found = NONE_MAY.match(text) or (None if RULE.match(text) else MUST_NOT.match(text))
    if found is None or not FINITE.isdisjoint(found[1].lower().split()):  # "telling guests that they may not smoke"
        return None
    rule = read_rule(f"never {found[1]} {text[found.end() :]}")
    return replace(rule, forbids=rule.forbids.removeprefix("never "))


def after_advice(text: str) -> ForbiddingRule | None:
    """Return a rule that says first what to do, and then what never to do: "always use a branch, never push to main".

    What it calls "it" or "them" is what the advice is about: "archive backups, never delete them".
    """
    first = text.split(" ", 1)[0].lower()
    if first == "only" or first in QUALIFIERS:  # "only Ana may …" is a rule itself
        return None
    for parting in islice(PARTINGS.finditer(text), MOST_PARTINGS):
        advice, after = text[: parting.start()], plain_opening(text[parting.end() :].strip())
        if ASK_FIRST.match(advice):
            return None
        is_statement = SUBJECT_END.search(advice) is not None
        whole = after if is_statement and parting[0].startswith(",") else with_object(after, antecedent(advice))
        if prohibits_something(whole) and (first in IMPERATIVES or whole != after):
            return replace(read_rule(whole), instead="" if is_statement else advice)
    return None


def with_object(rule: str, said: str) -> str:
    """Return a rule with what it calls "it" or "them" by the name it had before."""
    found = PRONOUN.match(rule)
    if not said or found is None:
        return rule
    words = said.split()
    last = max((n for n, word in enumerate(words, 1) if word.endswith("s") and not word.endswith("ss")), default=0)
    named = " ".join(words[: last or None]) if found[2].lower() == "them" else said  # "them": up to the plural
    return f"{found[1]} {named}{rule[found.end() :]}"


def antecedent(clause: str) -> str:
    """Return what a clause is about: its subject, or in a request what follows the verb up to a preposition."""
    subject, *predicate = SUBJECT_END.split(clause, maxsplit=1)
    if predicate:
        return subject
    words = clause.split()
    start = next((n for n, word in enumerate(words, 1) if word.lower() not in {"always", "please", "just"}), len(words))
    thing = words[start:]
    return " ".join(thing[: next((n for n, word in enumerate(thing) if word.lower() in QUALIFIERS), len(thing))])


def plain_opening(text: str) -> str:
    """Return a rule that opens with "never", if that is what its opening says."""
    for opening in LEAD_INS:
        if found := opening.match(text):
            return f"never {text[found.end() :]}"
    return text


def is_prohibition(text: str) -> bool:
    """Tell whether a text forbids something in its first sentence."""
    first = SENTENCE_END.split(text, maxsplit=1)[0]
    return bool(RULE.match(first) or PASSIVE.match(first) or FORBIDDEN.search(first.split(", ", 1)[0]))


def ends_act(before: str, parting: str, after: str) -> bool:
    """Tell whether the act that a rule forbids ends here, and what follows is something else."""
    last = before.rsplit(maxsplit=1)[-1].lower() if before.strip() else ""
    if not last or LISTED.search(before):
        return False
    if parting[0] == ",":
        return ends_at_comma(before, after)
    if parting[0] == ":":
        return last not in {"following", "these", "this"}
    return parting[0] != "." or not (last in ABBREVIATIONS or len(last) == 1)


def ends_at_comma(before: str, after: str) -> bool:
    """Tell whether the words behind a comma are no condition, and no further item of what comes before."""
    words = after.split()
    first = words[0].strip(",").lower()
    if first in QUALIFIERS or first in JOINING_WORDS:
        return condition_of(after) != "" or after.lower().startswith(("or else ", "and always ", "and then "))
    is_instead = first in IMPERATIVES
    if not is_instead and (len(before.split()) <= 2 or len(words) == 1):  # noqa: PLR2004 ("never drop, …")
        return False
    return not continues_list(before, after)


def continues_list(before: str, after: str) -> bool:
    """Tell whether what follows a comma is another item: "truncate or rename tables" after "never drop"."""
    words = [word.strip(",.").lower() for word in after.split()[: LONGEST_ITEM + 1]]
    place = next((number for number, word in enumerate(words) if word in JOINING_WORDS), None)
    if not place:
        return False
    if place == 1:
        return True
    has_object = len(before.split()) > 2  # noqa: PLR2004 ("never share names")
    return not (has_object and words[0] in IMPERATIVES) and FINITE.isdisjoint(words[:place])


def condition_of(rest: str) -> str:
    """Return what follows a prohibition as its condition: "without Ana" for "only Ana may"; empty where it is none."""
    if somebody := ONLY_SOMEBODY.match(rest):
        return f"without {somebody[1]}"
    if then := ONLY_THEN.match(rest):
        return f"without{rest[then.end() :]}" if then[1] else f"unless{rest[then.end() :]}"
    first, _, others = rest.partition(" ")
    return f"{first.lower()} {others}" if first.lower() in EXCEPTIONS else ""


def prohibits_something(rule: str) -> bool:
    """Tell whether a sentence forbids something and says what: "never move them" alone would forbid all moving."""
    if not rule.lower().startswith(NEVER):
        return False
    words = [word.strip(",.!").lower() for word in rule.split()]
    content = [word for word in words if word not in FUNCTION_WORDS and word not in {"never", "don't"}]
    return OBJECTS_SAID.isdisjoint(words) and len(content) > 1


def active(passive: str) -> str | None:
    """Return the act of a passive rule: "delete records" for "records must not be deleted"; None for another text."""
    found = PASSIVE.match(passive)
    if found is None:
        return None
    deeds = WORD.sub(lambda word: infinitive(word[0].lower()), found[2])
    return f"{deeds} {SUBJECT_END.split(found[1], maxsplit=1)[0]}{found[3]}"


def infinitive(participle: str) -> str:
    """Return the verb of a past participle, near enough to be read: "ship" for "shipped"."""
    if participle in PARTICIPLES or not participle.endswith("ed"):
        return PARTICIPLES.get(participle, participle)
    cut = participle[:-2]
    if cut.endswith("i"):
        return f"{cut[:-1]}y"
    if cut[-1:] == cut[-2:-1] and cut[-1:] not in {"l", "s", "f"}:
        return cut[:-1]
    is_open = cut[-1:] not in VOWELS | {"w", "x", "y"} and cut[-2:-1] in VOWELS and cut[-3:-2] not in VOWELS
    ends_in_e = (is_open and not cut.endswith(("er", "en", "it", "on"))) or cut.endswith(
        ("u", "rg", "ng", "s", "c", "v")
    )
    return f"{cut}e" if ends_in_e and not cut.endswith("ss") else cut
