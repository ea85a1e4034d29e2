"""What an action does, in roots and groups of words for one deed, and the guards that know it does something else.

Cosine alone cannot tell: "git pull origin main" lies as near to "pushing directly to main branch" as "git push origin
main" does, and "ask before deleting" nearer to "deleting without asking" than any deletion.
"""
# ruff: noqa: SIM905, E501 — a list of words reads best as words

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from nous_online.language.pairs.lexicon import FUNCTION_WORDS, OPPOSITES, RIVALS
from nous_online.language.pairs.reading import stem

MOST_CHARACTERS = 2000  # of one part; what follows is data more often than deed
DENYING_REACH = 2  # how many content words after a "not" it bears on
WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?|\d+")
CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
PHRASES = (
    (re.compile(r"\b(?:turn|switch)(?:ed|ing|s)? ((?:\w+ ){0,3})off\b"), r" disable \1 "),
    (re.compile(r"\b(?:turn|switch)(?:ed|ing|s)? ((?:\w+ ){0,3})on\b"), r" enable \1 "),
    (re.compile(r"\b(?:roll|push)(?:ed|ing|s)? ((?:\w+ ){0,4})(?:out|live)\b"), r" deploy \1 "),
    (re.compile(r"\broll(?:ed|ing|s)? ((?:\w+ ){0,3})back\b|\brollback\b"), r" revert \1 "),
    (re.compile(r"\blog(?:ged|ging|s)? (?:in|out|on|off)\b"), " session "),
    (re.compile(r"(?<![\w-])-{1,2}(?:f|force)\b(?!-)"), " force "),
    (re.compile(r"\|\s*(?:sudo\s+)?(?:ba|z|da)?sh\b"), " execute code "),
    (re.compile(r"\bhttps?://"), " internet "),
    (re.compile(r"\b0\.0\.0\.0/0"), " internet public "),
    (re.compile(r"n['\u2019]t\b"), " not "),
)
"""Wordings of more than one word, and the words that mean the same."""


@lru_cache(maxsize=65_536)
def root(word: str) -> str:
    """Return what "calling" and "call", "giving" and "give" have in common."""
    cut = stem(word).rstrip("e")
    return cut[:-1] if len(cut) > 3 and cut[-1] == cut[-2] else cut  # noqa: PLR2004 (as short as roots get)


def roots(words: str) -> frozenset[str]:
    """Return the roots of words written in a row."""
    return frozenset(map(root, words.split()))


ALIASES: dict[str, str] = {
    word: meant
    for pair in """
    prod=production dev=development db=database repo=repository pr=request mail=email config=configuration app=application
    admin=administrator docs=documentation pwd=password creds=credentials client=customer clients=customer buyer=customer
    info=information approval=approve verification=verify confirmation=confirm authorization=authorize
    authorisation=authorize deletion=delete deployment=deploy installation=install permission=permit reservation=reserve
    booking=book cancellation=cancel disclosure=disclose encryption=encrypt
    """.split()
    for word, _, meant in [pair.partition("=")]
}
DEEDS = tuple(
    roots(group)
    for group in """
delete remove drop rm wipe erase purge truncate destroy clear unlink rmdir discard del
create make mkdir touch generate add new
push force-push
pull fetch clone
merge squash rebase
commit check-in
deploy release ship publish launch promote apply
send email reply forward message text notify sms dispatch respond answer
share forward upload send export publish post tweet announce give expose leak
disclose reveal leak expose share publish post show tell repeat read print
log logger print write record
transfer wire pay remit send payment
refund reimburse repay
charge bill invoice
buy purchase order acquire book
sell
cancel abort revoke terminate void
book reserve reservation ticket schedule
disable stop deactivate suspend kill halt
enable start activate
skip bypass ignore omit avoid without
edit change modify alter patch rewrite tweak sed
overwrite replace cp mv copy
install pip npm apt yarn brew
run execute bash sh launch start
restart reboot
save store write keep insert put persist
train fit fine-tune tune
grant give allow permit assign make add
close resolve done finish complete
reopen
answer advise tell recommend suggest explain mention say inform describe disclose reveal quote talk speak
call request invoke query ask
open expose allow
promise guarantee assure commit tell
offer grant give apply
query select fetch
hide conceal mask
rename mv move
catch except swallow
test pytest
approve review confirm verify authorize permit agree
social twitter facebook linkedin instagram tweet
internet web online url public
directory folder path
picture photo photograph image snap
car vehicle truck van
shout yell scream
rent lease hire
hire employ recruit
dismiss sack fire
give hand administer inject prescribe serve feed supply pass let
take swallow drink eat consume
use apply
put place store keep lay
leave forget
pay settle
call phone telephone dial ring
contact call phone email write message text
write compose
sign initial
accept agree approve
deduct claim subtract
record recording tape film
lift carry
drive steer ride operate
travel go fly ride take
close lock shut
open unlock
cut trim prune
fry cook heat roast bake
mix combine blend pour
connect plug attach wire
load fill
quote cite
climb ascend
negotiate bargain
promise offer
discuss talk speak
reject decline refuse
replace swap exchange
upgrade update
schedule arrange plan set
let allow permit
move transfer
migrate migration
meeting call appointment
phone call telephone
flight plane
invoice bill
stock share
flat apartment
shop store
fridge refrigerator
lawn grass
child kid pupil student
boy girl child minor
alcohol beer wine
medicine medication drug pill tablet
doctor physician
contract agreement lease
holiday vacation leave
salary wage pay
candidate applicant
colleague coworker
lawyer attorney counsel
money cash euro dollar
noon midday
partner companion
weekend saturday sunday
people person user human
""".strip().splitlines()
)
MEANINGS = {
    word: frozenset({word, *(f"deed {number}" for number, group in enumerate(DEEDS) if word in group)})
    for word in frozenset[str]().union(*DEEDS)
}
OPPOSED = frozenset(
    pair
    for line in """
delete create|save|keep|restore|backup
push pull
deploy revert
grant revoke
give revoke|take
enable disable
install uninstall
open close
close reopen
book cancel
cancel book|make
buy sell
refund charge
share hide
send receive
skip run
overwrite create
store delete
log delete
ignore raise|log
disclose hide
merge split
hardcod read
encrypt decrypt
""".strip().splitlines()
    for one, _, others in [line.partition(" ")]
    for other in others.split("|")
    for pair in ((root(one), root(other)), (root(other), root(one)))
) | {
    (root(a), root(b)) for a, b in OPPOSITES if a not in FUNCTION_WORDS and b not in FUNCTION_WORDS
}  # fmt: skip
LOOKING = roots(
    """list ls cat read show view describe explain check search find count ask discuss draft diff status grep head tail
    summarise summarize translate review remind suggest propose plan prepare receive compare look inspect test evaluate
    verify monitor measure print get help document"""
)
"""Verbs that change nothing: an action that opens with one only looks, asks or drafts."""
UNDOING = roots(
    """delete remove cancel stop revoke undo revert restore decline reject refuse replace hide lock unlock wait avoid withdraw
    return clean mask blur"""
)
"""Verbs that end or guard what another deed began."""
OPENINGS = frozenset(
    """sudo git gh kubectl docker systemctl service aws gcloud az please go ahead and i i'll we will would let us now then to
    just the""".split()
)
"""What stands before the verb of an action."""
LIGHT = roots("running using doing making performing executing")
"""Verbs that say little beside the next word, when that names a deed: "running rm", "using select"."""
LACKS = frozenset("without lacking missing outside".split())
DENIALS = frozenset(
    """not no never nobody none nothing without cannot skip skipping skipped false missing yet wait later unapproved
    unverified untested unreviewed instead although alone pending afterwards despite regardless""".split()
)
"""Words with which an action says that something is missing."""
DENYING = roots("not never no cannot nobody refuse")
RULE = re.compile(
    r"\A(?:please )?(?:(?:you|we|i|nobody|no one|the agent|agents) )?(?:(?:must|should|may|shall|can|do|does|are|is) ?)?"
    r"(?:(never)|n[o']t|don['\u2019]?t|avoid|refrain from|(no)\b(?! one))(?: (?:ever|to|allowed|permitted))*\s+",
    re.IGNORECASE,
)
"""How people begin a rule: "never …", "you must not …", "no …"."""
FORBIDDEN = re.compile(
    r"(?<=\S)\s++(?:is|are) (?:strictly )?(?:forbidden|prohibited|not allowed|taboo|off limits)\W*\Z", re.IGNORECASE
)
MAY_NOT = re.compile(
    r"\A(.{1,60}?) (?:must|may|should|can|shall)(?: never| not|not) (?:be )?(\w+)(.*)\Z", re.IGNORECASE | re.DOTALL
)
ASK_FIRST = re.compile(
    r"\A(?:always )?(ask|check|confirm|consult|tell|inform|notify)\b(.{0,60}?) before (.*)\Z", re.IGNORECASE | re.DOTALL
)
ONLY = re.compile(
    r"\Aonly (.{1,60}?) (?:may|can|should|must|is allowed to|are allowed to) (.*)\Z", re.IGNORECASE | re.DOTALL
)
EXCEPT = re.compile(
    r"\b(?:unless|except|except (?:when|if|with|after|for)|if not|only after|before (?=(?:\S+ ){1,6}(?:has|have|is|are|was)\b))\b",
    re.IGNORECASE,
)
"""How a rule names what would make the act right."""
QUESTION = re.compile(
    r"\?[\"'\u201d)]*\s*\Z|\A(?:should|could|may|can|does|did|is|are|who|what|when|how|why|which|whether)\b",
    re.IGNORECASE,
)
REPORT = re.compile(
    r"\b(?:yesterday|last (?:night|week|month|year|summer|winter)|(?:minutes?|hours?|days?|weeks?|months?|years?) ago)\b",
    re.IGNORECASE,
)
REFUSAL = re.compile(
    r"\A\W*(?:never|don['\u2019]?t|do not|refuse|decline|note\b|(?:we|i)(?:['\u2019]m| am| are|['\u2019]re)? (?:not|never|don['\u2019]?t|do not"
    r"|cannot|can['\u2019]?t|won['\u2019]?t)|i(?:['\u2019]m| am) (?:sorry|afraid))|\b(?:said no|no comment|as (?:it|they) (?:is|are))\b"
    r"|\b(?:is|are) (?:not (?:for|allowed)|forbidden|confidential)\b|\bkeep\b.{1,60}\baway\b",
    re.IGNORECASE,
)
"""How an action says that something is not done, is only asked, or was done by somebody before."""
VALUES = (*(frozenset(map(root, group)) for group in RIVALS), roots("production staging development local sandbox"))


@dataclass(frozen=True)
class Deed:
    """One doing taken apart, as roots in their order, with everything they may mean."""

    words: tuple[str, ...]
    meanings: frozenset[str]
    head: str | None
    """The verb it opens with."""
    head_meanings: frozenset[str]
    objects: tuple[frozenset[str], ...]
    """What each of its other words may mean."""
    lacking: frozenset[str]
    """What it is done without."""
    is_denying: bool


@lru_cache(maxsize=4096)
def warned_act(trigger: str) -> str:
    """Return the act a rule warns of: "pushing to main" of "never pushing to main", what it asks for as "without"."""
    text = FORBIDDEN.sub("", trigger.strip())
    if asked := ASK_FIRST.match(text):
        return f"{asked[3]} without {asked[1]}{'' if asked[1].endswith('ing') else 'ing'}{asked[2]}"
    if only := ONLY.match(text):
        return f"{only[2]} without {only[1]}"
    if (never := MAY_NOT.match(text)) and not RULE.match(text):
        text = f"{never[2]} {never[1]}{never[3]}"
    rule = RULE.match(text)
    text = text[rule.end() :] if rule else text
    if rule and rule[2]:  # "no schema migrations": the act is the noun
        first, _, rest = text.partition(" ")
        second = rest.split(" ")[0]
        if root(first) not in MEANINGS and root(second) in MEANINGS:
            text = f"{second} {first}{rest[len(second) :]}"
    return EXCEPT.sub("without", text)


def only_speaks(action: str) -> bool:
    """Tell whether an action asks, refuses or reports a deed and does none."""
    said = action.strip()
    if QUESTION.search(said) or REFUSAL.search(said):
        return True
    opening = next(iter(spoken_words(said[:MOST_CHARACTERS])), "")  # "tell Ben what she ordered last week" is no report
    return bool(REPORT.search(said)) and root(opening) not in MEANINGS


def spoken_words(text: str) -> list[str]:
    """Return the words of a trigger or an action in lower case, other words for the same replaced by one."""
    plain = CAMEL.sub(" ", text.replace("_", " ")).lower()
    for phrase, said in PHRASES:
        plain = phrase.sub(said, plain)
    found: list[str] = WORD.findall(plain)
    return [ALIASES.get(word, word) for word in found]


@lru_cache(maxsize=4096)
def read_deed(text: str) -> Deed:
    """Take a trigger or a part of an action apart."""
    spoken = spoken_words(text)
    place = next((number for number, word in enumerate(spoken) if word in LACKS), len(spoken))
    head = verb(spoken[:place])
    words = tuple(root(word) for word in spoken if word not in FUNCTION_WORDS or word in DENIALS)
    denials = {word for word in spoken if word in DENIALS}
    objects = [word for word in dict.fromkeys(words) if word not in {head, *map(root, denials)}]
    return Deed(
        words=words,
        meanings=meanings(words),
        head=head,
        head_meanings=meanings([head] if head else []),
        objects=tuple(meanings([word]) for word in objects),
        lacking=meanings(root(word) for word in spoken[place + 1 :] if word not in FUNCTION_WORDS),
        is_denying=bool(denials),
    )


def verb(words: list[str]) -> str | None:
    """Return the root of the verb some words open with, None when there is none."""
    found = [root(word) for word in words if word not in OPENINGS][:2]
    if found and found[0] in LIGHT and len(meanings(found[-1:])) > 1:
        return found[-1]
    return found[0] if found else None


def meanings(words: Iterable[str]) -> frozenset[str]:
    """Return the roots and, for those that name a deed, the numbers of all groups they belong to."""
    return frozenset[str]().union(*(MEANINGS.get(word) or {word} for word in words))


def is_opposed(warned: Deed, deed: Deed) -> bool:
    """Tell whether the action says the opposite, or another value, of something the trigger says."""
    mine, its = set(warned.words) - set(deed.words), set(deed.words) - set(warned.words)
    if warned.head and warned.head_meanings & deed.meanings:
        mine.discard(warned.head)
    if any((one, other) in OPPOSED for one in mine for other in its):
        return True
    shared = set(warned.words) & set(deed.words)
    return any(group & mine and group & its and not group & shared for group in VALUES)


def only_looks(warned: Deed, deed: Deed) -> bool:
    """Tell whether the action only reads, asks or drafts, and the trigger warns of more than that."""
    if deed.head not in LOOKING or warned.head in LOOKING:
        return False
    return not warned.head_meanings & deed.head_meanings


def undoes(warned: Deed, deed: Deed) -> bool:
    """Tell whether the action takes away, stops or keeps what the trigger names, and the trigger does not."""
    return bool(UNDOING & {deed.head}) and warned.head_meanings.isdisjoint(deed.head_meanings)


def denies(warned: Deed, deed: Deed) -> bool:
    """Tell whether the action says that what the trigger warns of is not done."""
    if not warned.head_meanings & deed.meanings:
        return False
    denied = [place for place, word in enumerate(deed.words) if word in DENYING]
    return any(warned.head_meanings & meanings(deed.words[place + 1 : place + 1 + DENYING_REACH]) for place in denied)
