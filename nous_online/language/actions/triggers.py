"""Decides whether an action matches a trigger: literally, or by doing what the trigger's words warn of.

A literal match takes time linear in both texts and never runs a caller's regular expression. A match by meaning needs
the same act on the same object and nothing against it. The cosine alone is not enough: "git push origin feature/login"
lies near "pushing directly to main branch". So words are compared clause by clause, conditions of time and amount are
computed, and the cosine is used twice: of action and whole trigger, and of action and trigger without each clause.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import lru_cache
from math import exp
from operator import attrgetter

from nous_online.core.errors import InvalidInput
from nous_online.core.patterns import regex
from nous_online.language.actions.action_words import (
    DENIALS,
    LACKS,
    LOOKING,
    MOST_CHARACTERS,
    SEASONS,
    TIMES,
    WEEKDAYS,
    Clause,
    WordPlace,
    denies,
    has_other_particle,
    in_english,
    is_opposed,
    meanings,
    only_looks,
    only_speaks,
    parse_action,
    read_clauses,
    read_places,
    root,
    spoken_words,
    undoes,
    warned_act,
)
from nous_online.language.actions.commands import ADDED_DEEDS, PLAIN_OPTIONS, read_command
from nous_online.language.lexicon import KIND_NOUNS, MONTHS, NUMBER_WORDS, word_list
from nous_online.language.pairs.guards import same_number
from nous_online.language.pairs.reading import CURRENCIES, EITHER_HALF, Number, read

Span = tuple[int, int]  # first and last minute of the day, both included

PARTS_OF_DAY: dict[str, Span] = {
    "morning": (300, 719), "lunch": (690, 840), "midday": (690, 780), "afternoon": (720, 1079),
    "evening": (1050, 1439), "tonight": (1050, 1439), "night": (1260, 1439),
}  # fmt: skip
OFFICE_HOURS: Span = (540, 1020)
WORD = regex(r"[A-Za-z]+")
LATER_HALF = regex(r"\b(?:afternoon|evening|tonight|night)\b")
AMBIGUOUS_MONTHS = {"may", "march"}
SPOKEN_HOUR = regex(
    rf"\b(at|since|until|from|half past) (\d{{1,2}}|{'|'.join(NUMBER_WORDS)})\b"
    r"(?=\s*(?:$|[,.;)]|(?:in|on|o'?clock|today|tomorrow|this|and|with)\b))"
)
OF_OFFICE_HOURS = regex(
    r"\b(outside|after|out of|beyond|during|in|within) (?:\w+ )?(?:working|business|office|opening) hours\b"
)
WITHIN = frozenset({"during", "in", "within"})
RELATION = regex(r"\b(before|until|after|past|later than|earlier than)\b")
COMPARISON = regex(
    r"\b(above|over|more than|(?:larg|bigg|great|long|old|high)er than|exceeding|at least"
    r"|below|under|less than|fewer than|(?:small|short|young|low)er than)\s+(?=[$€£]?\d|\w+\b)"
)
LACKING_NUMBER = regex(rf"\b(?:without|lacking|missing) (?:at least )?(?:\d+|{'|'.join(NUMBER_WORDS)})\b")
UPWARD = ("above", "over", "more", "larg", "bigg", "great", "long", "old", "high", "exceed", "at least")


def check_conditions(trigger: str, action: str) -> tuple[bool | None, ...]:
    """Return whether the action meets each condition of the trigger, None for a condition it says nothing about."""
    low, action_low = trigger.lower(), action.lower()
    found: list[bool | None] = [
        bool(wanted & named) if named else None
        for wanted, named in ((weekdays(low), weekdays(action_low)), (months(trigger), months(action)))
        if wanted
    ]
    office, spans = OF_OFFICE_HOURS.search(low), times_of_day(trigger)
    named_office = OF_OFFICE_HOURS.search(action_low)
    if office and named_office:
        found.append((office[1] in WITHIN) == (named_office[1] in WITHIN))
    elif office:
        days, named_spans = weekdays(action_low), times_of_day(action_low)
        is_weekend = bool(days) and days <= WEEKDAYS["weekend"]
        inside = not is_weekend and all(OFFICE_HOURS[0] <= low and high <= OFFICE_HOURS[1] for low, high in named_spans)
        is_said = is_weekend or bool(named_spans)
        found.append(inside == (office[1] in WITHIN) if is_said else None)
    elif spans:
        named_spans = times_of_day(action)
        found.append(any(fits_time(span, spans[0], low) for span in named_spans) if named_spans else None)
    return (*found, *amounts_met(trigger, action))


@lru_cache(maxsize=4096)
def weekdays(text: str) -> frozenset[int]:
    """Return the weekdays in a lower-case text, Monday as 0."""
    words = WORD.findall(text)
    return frozenset[int]().union(*(WEEKDAYS.get(word.removesuffix("s"), frozenset()) for word in words))


@lru_cache(maxsize=4096)
def months(text: str) -> frozenset[int]:
    """Return the months in a text, January as 1; "may" and "march" count only with a capital letter."""
    found: set[int] = set()
    for word in WORD.findall(text):
        name = word.lower()
        if name in SEASONS:
            found |= SEASONS[name]
        elif name in MONTHS and (name not in AMBIGUOUS_MONTHS or word[0].isupper()):
            found.add(list(MONTHS).index(name) + 1)
    return frozenset(found)


@lru_cache(maxsize=4096)
def times_of_day(text: str) -> tuple[Span, ...]:
    """Return the times of day in a text; parts of the day ("morning") only where it has no clock time."""
    low = text.lower()
    later = 720 if LATER_HALF.search(low) else 0
    found = [(minute, minute) for minute in sorted(read(text).times) if minute < EITHER_HALF]
    for match in SPOKEN_HOUR.finditer(low):
        hour = int(match[2]) if match[2].isdigit() else int(NUMBER_WORDS[match[2]])
        if hour <= 24:  # noqa: PLR2004 (hours of a day)
            minute = hour * 60 + 30 * (match[1] == "half past") + (later if hour < 12 else 0)  # noqa: PLR2004
            found.append((minute, minute))
    words = {word.removesuffix("s") for word in WORD.findall(low)}
    return tuple(found or [span for name, span in PARTS_OF_DAY.items() if name in words])


def fits_time(span: Span, wanted: Span, trigger: str) -> bool:
    """Tell whether a time of day fits the trigger's: before it, after it, or overlapping it."""
    relation = RELATION.search(trigger)
    if relation is None:
        slack = 59 if wanted[0] == wanted[1] else 0  # "at 9" includes 9:59
        return span[0] <= wanted[1] + slack and span[1] >= wanted[0]
    return span[0] < wanted[0] if relation[1] in {"before", "until", "earlier than"} else span[1] > wanted[1]


def amounts_met(trigger: str, action: str) -> tuple[bool | None, ...]:
    """Return whether an amount of the action is what the trigger names or compares with; empty where it names none."""
    compared = COMPARISON.search(trigger.lower())
    limits = read(trigger[compared.end() if compared else 0 :]).numbers
    if not limits:
        return ()
    limit, named = limits[0], read(action).numbers
    if compared is None and LACKING_NUMBER.search(trigger.lower()):  # "without two approvals": fewer than two
        return (all(number.value < limit.value for number in named) if named else None,)
    if compared is None:
        return (any(same_number(limit, number) for number in named) if named else None,)
    like = [number for number in named if number.dimension == limit.dimension]
    if not like and (limit.dimension not in CURRENCIES.values() or str(limit.dimension) in read(action).words):
        like = [number for number in named if number.dimension is None]

    is_compared_alike = compares_upward(action) == compared[1].startswith(UPWARD)

    def is_beyond(number: Number) -> bool:  # a number without a unit is read in the limit's unit
        value, bound = (number.value, limit.value) if number.dimension else (number.bare, limit.bare)
        if is_compared_alike and same_number(limit, number):  # "over 200" is what "over 200" warns of
            return True
        return value > bound if compared[1].startswith(UPWARD) else value < bound

    return (any(map(is_beyond, like)) if like else None,)


def compares_upward(action: str) -> bool | None:
    """Tell whether an action speaks of more than an amount, or of less; None where of neither, or of "not more"."""
    found = COMPARISON.search(action.lower())
    if found is None or action[: found.start()].rstrip().lower().endswith((" not", " no", " never")):
        return None
    return found[1].startswith(UPWARD)


OTHER_FORM = 0.9  # strength of a match by a common beginning: "medical", "medicine"
NEAR_WORD = 0.5  # least strength of a match between a word of the action and one of the trigger
SAME_BEGINNING = 5  # letters
NAMED_THING = regex(r"[./\\][A-Za-z_][\w./\\-]|\w-\d|\w==\d")
KINDS = frozenset(map(root, KIND_NOUNS | word_list("kinds")))
"""Nouns that may be missing where a specific word stands: "main" says enough of "the main branch"."""
KINDS_OF_NAMED = frozenset(map(root, word_list("kinds_of_named")))  # kinds of things with a file, path or host name
ADDED = frozenset(map(root, ADDED_DEEDS))
FIGURES = regex(r"\d+")
FINISHED = regex(r"\b(?:done|finished|over|ended|completed?)\b")
EXCLUSIVE = (
    (regex(r"\b(?:all|every|everyone|everybody|whole|entire)\b"), regex(r"\bonly\b")),
    (
        regex(r"\b(?:another|other|others|else's|someone's|somebody's)\b"),
        regex(r"\b(?:my|his|her|its|our|their|your) own\b"),
    ),
    (regex(r"\b(?:your|my|our|their|his|her) own\b"), regex(r"\b(?:another|other)\b")),
    (regex(r"\b(?:alone|by (?:my|your|him|her)self)\b"), regex(r"\btogether\b")),
)
"""Wordings of a trigger, each with the wordings of an action that exclude it."""
THEMSELVES, FOR_THEM = (
    regex(r"\b(?:themselves|themself|himself|herself)\b"),
    regex(r"\bfor (?:them|him|her)\b"),
)
"""What the trigger warns of leaving to somebody, and the action does for them."""


@dataclass(frozen=True)
class Comparison:
    """The evidence that an action is what a trigger warns of; each value is in 0 to 1, except the cosines."""

    similarity: float
    """Cosine of trigger and action."""
    narrowness: float
    """Least gain in cosine that a clause of the trigger brings; negative where a clause leads away from the action."""
    act: float
    """How well the action matches the trigger's verb; 1 for the verb or a synonym."""
    coverage: float
    """Mean over the trigger's clauses of the share of their words in the action."""
    least_covered: float
    """The lowest of these shares; 0 where the action leaves out a condition or begins with another verb."""
    is_met: float
    """The action meets a condition of time or amount."""
    is_unmet: float
    """It fails such a condition."""
    contradicts: float
    """It negates a word of the trigger, or has "after" for "before"."""
    lacks: float
    """It lacks the thing the trigger warns of lacking."""
    has: float
    """It has that thing."""
    is_opposed: float
    """It has the opposite of a word of the trigger, or another value of one kind."""
    only_looks: float
    """It only reads, asks or drafts."""
    only_speaks: float
    """It is a question, a refusal or a report."""
    undoes: float
    """It removes, stops or guards the object of the trigger."""

    @property
    def is_near(self) -> bool:
        """Whether the action nearly repeats the trigger: the same act, every clause covered, nothing against it."""
        return self.act >= 1 and self.least_covered >= OTHER_FORM and not self.is_against

    @property
    def is_against(self) -> bool:
        """Whether anything in the action speaks against a match."""
        is_other = self.is_unmet or self.contradicts or self.has or self.is_opposed
        return bool(is_other or self.only_looks or self.only_speaks or self.undoes)


WEIGHTS = Comparison(
    similarity=1.64,
    narrowness=4.16,
    act=0.37,
    coverage=0.09,
    least_covered=0.0,
    is_met=1.11,
    is_unmet=-3.15,
    contradicts=-2.43,
    lacks=1.78,
    has=-2.41,
    is_opposed=-2.5,  # set by hand, as a guard
    only_looks=-2.58,
    only_speaks=-3.51,
    undoes=-2.66,
)
VALUES_OF = attrgetter(*(field.name for field in fields(Comparison)))
WEIGHT_OF_EACH: tuple[float, ...] = VALUES_OF(WEIGHTS)
BIAS = -0.94
"""Weights and bias: a logistic regression on tables of triggers and actions (decision 0009).

The length of the action was a feature of the fit and is left out here, since it says too much in those tables. The bias
moves their 0.65 to 0.5.
"""


def likelihood(compared: Comparison) -> float:
    """Return the probability that an action is what the trigger warns of."""
    return 1 / (1 + exp(-log_odds(compared)))


def log_odds(compared: Comparison) -> float:
    """Return the log odds of `likelihood`: below 0 where it is less likely than not."""
    return BIAS + sum(weight * value for weight, value in zip(WEIGHT_OF_EACH, VALUES_OF(compared), strict=True))


@lru_cache(maxsize=8192)
def compare_words(trigger: str, action: str) -> Comparison:
    """Compare an action with a trigger by their words; the cosines of the result are 0."""
    whole = trigger
    trigger, action = warned_act(trigger[:MOST_CHARACTERS]), in_english(action[:MOST_CHARACTERS])
    warned, deed = parse_action(trigger), parse_action(action)
    verb, clauses = read_clauses(trigger)
    act = 1.0 if not warned.head_meanings.isdisjoint(deed.meanings) else best_match(verb, action)[0]
    said = [each for each in clauses if not each.is_lacking]
    covered = [coverage(each, action) for each in said]
    mean = sum(covered) / len(covered) if covered else 1.0
    lacking = [lack(each, action, is_denying=deed.is_denying) for each in clauses if each.is_lacking]
    met = (*check_conditions(trigger, action), *options_met(trigger, action))
    if lacking and True in met and LACKING_NUMBER.search(trigger.lower()):  # one approval where two are asked for
        lacking = [True]
    is_named = read(trigger).identifiers <= read(action).identifiers
    is_complete = is_named and does_deed(trigger, action) and None not in (*met, *lacking)
    return Comparison(
        similarity=0.0,
        narrowness=0.0,
        act=act,
        coverage=mean,
        least_covered=min(covered, default=1.0) if is_complete else 0.0,
        is_met=float(True in met),
        is_unmet=float(False in met),
        contradicts=float(
            denies(warned, deed)
            or any(contradicts(each, verb, trigger, action) or names_other_of_kind(each, action) for each in said)
            or (
                not deed.is_denying
                and any(TIMES.get(each.preposition) == "during" for each in said)
                and bool(FINISHED.search(action.lower()))
            )
            or excludes(whole, trigger, action)
        ),
        lacks=float(any(each is True for each in lacking)),
        has=float(any(each is False for each in lacking)),
        is_opposed=float(is_opposed(warned, deed) or names_another(trigger, action)),
        only_looks=float(only_looks(warned, deed)),
        only_speaks=float(only_speaks(action) and warned.head not in LOOKING),
        undoes=float(undoes(warned, deed)),
    )


def excludes(rule: str, trigger: str, action: str) -> bool:
    """Tell whether an action says what a trigger, or the rule that it was read from, excludes."""
    low, deed = trigger.lower(), action.lower()
    does_it_for_them = THEMSELVES.search(rule.lower()) and FOR_THEM.search(deed)
    return bool(does_it_for_them) or any(one.search(low) and other.search(deed) for one, other in EXCLUSIVE)


def options_met(trigger: str, action: str) -> tuple[bool, ...]:
    """Return `False` for a command that lacks an option named by a trigger: "git push" is no force-push."""
    command, said = read_command(action), parse_action(action).words  # "git push, forcing it"
    if command is None:
        return ()
    unsaid = command.unsaid if read_command(trigger) else command.unsaid & PLAIN_OPTIONS
    return tuple(False for word in spoken_words(trigger) if word in unsaid and root(word) not in said)


def does_deed(trigger: str, action: str) -> bool:
    """Tell whether an action does the deed of a trigger; a command also says the numbers and denials of the trigger."""
    warned, deed = parse_action(trigger), parse_action(action)
    if not read_command(action):
        return not warned.head_meanings.isdisjoint(deed.head_meanings)
    deeds = meanings(deed.words[: 2 if deed.head in ADDED else 1])  # an amended commit is a commit
    unsaid = set(spoken_words(trigger)).difference(spoken_words(action))
    denials = DENIALS - LACKS if any(each.is_lacking for each in read_clauses(trigger)[1]) else DENIALS
    exact = {word for word in unsaid if word.isdigit() or (word in denials and root(word) != warned.head)}
    return not exact and not warned.head_meanings.isdisjoint(deeds)


@lru_cache(maxsize=8192)
def best_match(word: str, action: str) -> tuple[float, int]:
    """Return the strength and the index of the best match for a word among the content words of an action.

    1 for the word itself, 0.95 for a synonym, `OTHER_FORM` for a word with the same beginning, (0, -1) without a match.
    """
    own, found = root(word), (0.0, -1)
    wanted = meanings([own])
    beginning = word[:SAME_BEGINNING] if len(word) >= SAME_BEGINNING else None
    for number, place in enumerate(read_places(action)):
        if own == place.root:
            return 1.0, number
        if not wanted.isdisjoint(place.meanings):
            found = max(found, (0.95, number))
        elif place.word[:SAME_BEGINNING] == beginning:
            found = max(found, (OTHER_FORM, number))
    return found


def names_another(trigger: str, action: str) -> bool:
    """Tell whether an action names another of what a trigger names by an identifier or a particle: prod-db-2, "in"."""
    if has_other_particle(trigger, action):
        return True
    named, found = read(trigger).identifiers, read(action).identifiers
    return bool(named - found) and {FIGURES.sub("", each) for each in named - found} <= {
        FIGURES.sub("", each) for each in found - named
    }


def coverage(clause: Clause, action: str) -> float:
    """Return the share of a clause's words in an action; at least half where it names a thing of the clause's kind."""
    words = [word for word in clause.words if root(word) not in KINDS] or clause.words
    share = sum(best_match(word, action)[0] for word in words) / len(words)
    is_named = any(root(word) in KINDS_OF_NAMED for word in clause.words) and NAMED_THING.search(action)
    return max(share, 0.5) if is_named else share


def contradicts(clause: Clause, verb: str, trigger: str, action: str) -> bool:
    """Tell whether an action negates a word of a clause or puts it at another time."""
    for word in clause.words:
        strength, number = best_match(word, action)
        if strength < NEAR_WORD:
            continue
        place = read_places(action)[number]
        wanted, found = TIMES.get(clause.preposition), TIMES.get(place.preposition)
        if wanted and found and wanted != found:
            return True
        if wanted in {"before", "after"} and place.preposition in {"on", "at"}:
            return True
        if (
            place.is_denied
            and not is_denied_alike(place, trigger, action)
            and not wanted
            and verb not in DENIALS
            and root(word) != root(verb)
        ):
            return True
        if clause.preposition == "with" and place.preposition == "without":
            return True
    return False


def is_denied_alike(place: WordPlace, trigger: str, action: str) -> bool:
    """Tell whether a trigger denies a word of an action as the action does: both are of skipping the dose."""
    if not DENIALS & set(spoken_words(action)) <= set(spoken_words(trigger)):
        return False
    return any(each.root == place.root and each.is_denied for each in read_places(trigger))


def names_other_of_kind(clause: Clause, action: str) -> bool:
    """Tell whether a clause names one thing of a kind ("the main branch") and the action names another instead."""
    specific = [word for word in clause.words if root(word) not in KINDS]
    if not specific or len(specific) == len(clause.words) or not NAMED_THING.search(action):
        return False
    return all(best_match(word, action)[0] < NEAR_WORD for word in specific)


def lack(clause: Clause, action: str, *, is_denying: bool) -> bool | None:
    """Tell whether an action lacks the thing a "without" clause names; None where it does not mention it."""
    found = [best_match(word, action) for word in clause.words]
    mentioned = [read_places(action)[number] for strength, number in found if strength >= NEAR_WORD]
    if is_denying or any(place.is_denied or place.preposition == "before" for place in mentioned):
        return True
    return False if mentioned else None


WILDCARD, LINE, EDGE = "*", "\n", "\x00"  # Postgres stores no NUL in a text, so it can mark the edges of words
SPACES = regex(r"[^\S\n]+")
WHITE_SPACE = regex(r"\s+")
LINE_ENDS = regex(r" ?\n\s*+")  # in a text whose other white space is single
WORD_EDGES = regex(r"\b")
PIECES = regex(r"\\\*|\*|[^*\\]+|\\")


def folded(text: str) -> str:
    """Return a text case-folded with its white space single, as triggers are compared."""
    return WHITE_SPACE.sub(" ", text).strip().casefold()


def checked_literal(trigger: str) -> str:
    """Return a literal trigger unchanged; raise `InvalidInput` when it holds nothing but wildcards."""
    if not any(piece.strip(f" {EDGE}") for piece in literal_pieces(trigger)):
        raise InvalidInput(f"the literal trigger {trigger!r} would fit every action; write at least one word of it")
    return trigger


class ActionWording:
    """The text of an action, prepared once to be matched with all literal triggers."""

    def __init__(self, action: str) -> None:
        low = action.strip().casefold()
        self.flat = mark_edges(WHITE_SPACE.sub(" ", low))
        self.lines = mark_edges(LINE_ENDS.sub(LINE, SPACES.sub(" ", low)))
        self.longest_line = max(map(len, self.lines.split(LINE)))

    def holds(self, trigger: str) -> bool:
        """Tell whether a literal trigger occurs, in any case and white space, with whole words at its ends.

        `*` matches anything within a line, also part of a word; `\\*` matches an asterisk. Each piece between wildcards
        is searched once, from the end of the piece before: the leftmost match is enough, so there is no backtracking.
        """
        pieces = literal_pieces(trigger)
        if len(pieces) == 1:
            return pieces[0] in self.flat
        if sum(map(len, pieces)) > self.longest_line or not all(piece in self.lines for piece in pieces):
            return False
        start = 0
        while (start := self.lines.find(pieces[0], start)) >= 0:
            end = self.lines.find(LINE, start)
            end = len(self.lines) if end < 0 else end
            if occur_in_order(self.lines, pieces, start=start, end=end):
                return True
            start = end + 1  # past the end of the line, since an empty piece is found everywhere in it
        return False

    def holds_all_of(self, trigger: str) -> bool:
        """Tell whether the whole trigger occurs word for word, with `*` as a plain asterisk."""
        return mark_edges(folded(trigger)) in self.flat


@lru_cache(maxsize=4096)
def literal_pieces(trigger: str) -> tuple[str, ...]:
    """Return the pieces of a literal trigger between its wildcards, with a mark at each edge of a word.

    At its own ends a trigger matches whole words only; beside a wildcard it may match part of a word.
    """
    parts = [""]
    for token in PIECES.findall(folded(trigger)):
        if token == WILDCARD:
            parts.append("")
        else:
            parts[-1] += WILDCARD if token == f"\\{WILDCARD}" else token
    marked = [mark_edges(part) for part in parts]
    opened = [marked[0], *(piece.removeprefix(EDGE) for piece in marked[1:])]
    return (*(piece.removesuffix(EDGE) for piece in opened[:-1]), opened[-1])


def mark_edges(text: str) -> str:
    """Return a text with a mark at every edge of a word."""
    return WORD_EDGES.sub(EDGE, text)


def occur_in_order(text: str, pieces: tuple[str, ...], *, start: int, end: int) -> bool:
    """Tell whether all pieces occur between `start` and `end`, in this order."""
    for piece in pieces:
        place = text.find(piece, start, end)
        if place < 0:
            return False
        start = place + len(piece)
    return True
