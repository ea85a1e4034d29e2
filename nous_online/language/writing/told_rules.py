"""Tells a rule, a decision, a date or an owner that a user names in a session from a request of the minute.

The forms are general: who or what a clause is about, its verb, and how far it reaches. "Models are registered in
MLflow" tells of all models and says nothing of today; "the test fails" and "move it to the left" do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from nous_online.core.patterns import regex
from nous_online.language.lexicon import AT_ONCE, HEDGE, MONTH_NAMES, PAST, QUOTED, REQUEST, tables, word_list
from nous_online.language.writing.dates import MONTH_NAME
from nous_online.language.writing.sentences import CLOSING

REQUESTED = frozenset(" ".join(tables()["actions"]["deeds"]).split()) | word_list("looking") | word_list("imperatives")
"""What a request opens with."""

_LEAD = regex(
    r"\A(?:(?:oh|and|also|yes|yeah|yep|wait|right|ok|okay|hm+|btw|plus|but|so|ah|well|then|remember|for the record"
    r"|by the way|fyi|in general|generally|before i forget|please|ja|und|aber|übrigens|generell|grundsätzlich|bitte"
    r"|oui|et|mais|en général|sí|y|pero|por cierto|en general)(?:[,:.!…]+\s*|\s)"
    r"|(?:no|nah|nope|nein|non|careful|attention|caution|note|rule|agreed|understood|heads up|to be clear|achtung|ojo"
    r"|(?:(?:one|another) (?:more )?thing|rule)(?: in general| from now on)?)[,:.!…]+\s*)++",
    re.IGNORECASE,
)
"""What leads to a clause and is none of it."""
_CLAUSE = regex(
    r"(?:[,;:.!](?=\s|$)|\()\s?(?:(?:and|but|so|because|since|und|aber|denn|weil|et|mais|y|pero)\s)?|\s[-\u2013\u2014]{1,2}\s"
    r"|\s(?:and|but|so|und|aber|et|mais|y|pero)\s"
)
"""Between two clauses."""
_PRESENT = (
    r"(?:is|are|has|have|must(?:n't)?|should(?:n't)?|shall|may|can(?:not|'t)?|do(?:es)?(?:n't)?|isn't|aren't|never|always"
    r"|gets?|goes|go|lives?|stays?|comes?|runs?|uses?|takes?|belongs?|needs?|starts?|ends?|returns?|keeps?|holds?"
    r"|means?|owns?|costs?|works?|ships?|counts?|remains?|follows?|begins?|becomes?|makes?|gives?|requires?|leaves?"
    r"|ist|sind|hat|haben|muss|müssen|darf|dürfen|soll(?:en)?|kann|können|wird|werden|bleib(?:t|en)|geh(?:t|en)"
    r"|lieg(?:t|en)|bekomm(?:t|en)|komm(?:t|en)|fliegt|läuft|laufen|gehör(?:t|en)|endet|gilt|gelten"
    r"|est|sont|doi(?:t|vent)|va|vont|reste(?:nt)?|es|son|debe[n]?|va[n]?|está[n]?|queda[n]?)"
)
_SOON_OVER = regex(
    r"\b(?:now|today|tonight|tomorrow|again|just|currently|at the moment|for this|this (?:run|one|time|file|page|test)"
    r"|jetzt|heute|morgen|gerade|nochmal|maintenant|aujourd'hui|ahora|hoy)\b",
    re.IGNORECASE,
)
"""Says that a clause is about this minute."""
_POINTING = regex(
    r"(?:it|its|this|that|these|those|there|they|he|she|you|i|what|which|who|where|why|how|if|when|while|as|after|once"
    r"|would|could|can|does|do|did|is|are|has|have|das|dies\w*|es|er|sie|du|ich|ihr|wenn|ça|ce|cela|c'est|je|tu|il"
    r"|elle|si|eso|esto|yo)\b",
    re.IGNORECASE,
)
"""Opens a clause about something said before or about who speaks, a question, or a condition."""
_SOME = (
    r"(?:the|this|that|these|those|my|your|his|her|its|their|there|some|both|an?|one|two|three|other|more|\d\S*|der|die|das"
    r"|dem|den|ein(?:e\w?)?|le|la|les|un|une|el|los|las|una)\b"
)
"""Opens a subject that is one of many."""
_WHERE = r"(?:for|in|on|at|with|from|by|during|before|after|until|under|among|between|inside|outside)"
_NAMED = r"(?:@?\w+(?:[-/.]\w+)+|[#@]\w[\w-]{1,40}|(?-i:[A-Z]\w{2,30}))"
"""A name: of a package, a file, or with a capital."""
_NOT_DONE = (
    r"(?!(?:\w+ )?(?:just|should|could|might|can|may|want|need|don't (?:\w+ )?(?:need|want|have|know|see)"
    r"|will|would|were|had|did|didn't"
    r"|ready|got|saw|forgot|tried|already|think|thought|see|know|get|missed|still|also (?:need|want|have))\b"
    r"|(?:are|have)(?: \w+ly)? (?:a|an|some|no|the|now|here|\w+(?:ing|ed|n))\b|\w{3,}ed\b)"
)
"""After "we" no wish, no plan, nothing that was done."""
_FORMS = tuple(
    regex(rf"\A(?:{pattern})", re.IGNORECASE)
    for pattern in (
        # What we do: "we only use CSS modules", "for new errors in Go I want %w", "bei uns liegen Secrets in Vault".
        rf"(?:{_WHERE}\s[^,.;:!?]{{2,50}}?,?\s|(?:here|usually|internally|everywhere)\s)?we\s{_NOT_DONE}[a-z]\w",
        r"(?:for|in|on|with)\s(?:new|all|any|every|each|our|[\w-]{2,20}s)\b[^,.;:!?]{0,40},?\s(?:i|we)\s"
        r"(?:want|expect|need|prefer|accept|use|take)\s",
        r"(?:[^,.;:!?]{2,50}\s)?(?:wir|bei uns)\s(?!war|hatt|haben|woll|soll|könn|müss)\w",
        # What all of a kind are, do or have done to them: "flaky tests get tagged", "strings live in …".
        rf"(?!{_SOME}|\w+ing\s)(?:[\w'/&+-]{{1,30}}\s){{0,3}}?[\w'/+-]{{2,30}}[^\Wsui]s"
        rf"(?:\s{_WHERE}\s[^,.;:!?]{{2,40}}?|\s(?:with|without|of|over|older|newer|than)\s[^,.;:!?]{{2,40}}?)?"
        r"(?<! to)\s(?:(?:only|also|all)\s)?(?:are(?: \w+)? (?!\w+ing\b)\w|get\s|go\s|live\s|stay\s|come\s|have to"
        r"|must|never|always|only|belong|don't\s|do not|may\s|can't|cannot|aren't|need)",
        # What everything, every one or none of a kind is: "every visible string has to …", "no personal data goes …".
        r"(?:every(?:thing|one|body)?|each|all|any(?:thing)?|no(?:thing|body| one)?|whoever|jede[rsn]?|alles?|niemand"
        r"|nichts|keine?r?|chaque|tous|toutes|aucune?|personne|cada|todos|todas|ning[uú]na?)\s"
        rf"(?!(?:good|set|right|done|fine|green|clear|the other|other|of (?:it|that|this))\b)"
        rf"[^,;:.!?]{{0,70}}?(?<!\bto )\b{_PRESENT}\b",
        # What is so and nowhere else: "input goes through the new system only".
        rf"(?!{_SOME})[^,;:.!?]{{2,50}}?\s{_PRESENT}\s(?:[^,;:.!?]{{2,50}}\s)?(?:only|exclusively|ausschließlich|nur)\b",
        # What is chosen, and what is not: "dnd-kit, please not react-beautiful-dnd".
        rf"(?:{_NAMED}(?:,\s(?:please\s|bitte\s)?|\s)(?:not|nicht|pas|no)\s(?:\w+\s)?{_NAMED}(?!\w))",
        # What somebody owns, decides or asks for: "Dario has the Apple account", "accounting insists".
        r"(?-i:[A-Z][\w'-]{1,20}(?:\s[A-Z][\w'-]{1,20}){0,2})\s(?:also |always |only |never )?"
        r"(?:owns|has (?!(?:been|had|no|an? (?:bug|problem|error|point))\b)|signs|reviews|maintains|handles|keeps"
        r"|prefers|likes|hates|pays|manages|looks after|takes care|is (?:responsible|in charge|on call)"
        r"|is (?:not )?allowed|doesn't (?:like|want|allow)|must|has to|may|can't|cannot)\b",
        rf"(?!{_SOME})(?:[\w'-]{{2,20}}\s){{1,3}}?(?:insists|demands|wants|decides|rejects|requires|forbids|expects|approves)\b",
        r"(?:only |nur )?(?-i:[A-Z])[\w'-]{1,20}(?: and [A-Z]\w+)? (?:only )?may\s",
        r"[^,;:.!?]{2,50}\s(?:belongs? to|(?:is|are) (?:up to|owned by|maintained by|in the hands of)|gehört)\s\S",
        r"[^,;:.!?]{2,50}\s(?:is|are) (?-i:[A-Z]\w+)'s\b",
        r"[^,;:.!?]{0,60}\b(?:zuständig|verantwortlich)\b",
        # What holds as the measure of something: "the minimum is iOS 16", "the cutover is on 18 November".
        r"(?:the|our|die|der|das|unser\w?)\s(?:\w+\s)?(?:minimum|maximum|limit|deadline|default|standard|policy|convention"
        r"|rule|budget|cutover|freeze|baseline|target|frist|grenze|regel)\s(?:[^,;:.!?]{1,40}\s)?"
        r"(?:is|are|ends?|stays?|ist|liegt)\b",
    )
)
_NAMES = "|".join(sorted({name.capitalize() for name in MONTH_NAMES.split()} - {"May", "March", "Mart"}))
_MONTH = rf"(?:\d{{1,2}}(?:st|nd|rd|th)?\.?\s{MONTH_NAME}|{MONTH_NAME}\.?\s\d{{1,2}}(?!:)|20\d\d|(?-i:{_NAMES}))\b"
_DAY = r"(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|week(?:day|end)?|day|night|morning|month|quarter|year|sprint)"
_DATED = regex(
    r"\b(?:by|until|till|from|since|as of|on|in|before|after|due|starting|is|are|ends|bis|ab|am|zum|seit|vor|im"
    rf"|jusqu'au|dès|le|hasta|desde|el|en)\s(?:(?:on|the|end of|dem|zum|den)\s){{0,2}}{_MONTH}"
    rf"|\b(?:every|each)\s(?:(?:other|second|third|first|last)\s)?{_DAY}\b|\bon\s(?:mon|tues|wednes|thurs|fri|satur|sun)days\b"
    r"|\b(?:montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag)s\b|\bfrom\s[^,;:.!?]{2,30}?\son(?:wards?)?\b",
    re.IGNORECASE,
)
"""A day or a month from or until which something holds, or a day that returns."""
_VERB = regex(rf"\b(?:{_PRESENT}|will|won't)\b|\b\w+s\b", re.IGNORECASE)
_CONTRAST = regex(
    rf"\A(?!{_SOME})[^,;:.!?]{{2,80}}?\b{_PRESENT}\b[^,;:.!?]{{0,80}},\s(?:not|never|nicht|nie|pas|jamais|no|nunca)\s\w",
    re.IGNORECASE,
)
"""Says of things that are so and not otherwise: "models are registered in MLflow, never committed"."""
_INSISTED = regex(
    r"[,(]\s?(?:[\w'.]{1,20}\s){1,3}(?:insists?|complains?|demands?|(?:wants|expects) it|signed (?:that|this|it) off)\b"
    r"|\b(?:every|everything|each|all|any)\b[^.!?]{0,120}\b(?:otherwise|or else|sonst|sinon|si no)\b",
    re.IGNORECASE,
)
"""A reason that others give, or that holds for all."""
_DISLIKED = regex(
    r"\bi (?:don't|do not|never|only) (?:ever )?(?:want|like|accept|merge|use|buy)\s"
    r"(?:you to \w+ (?!the|this|that|it|any of|me)|to see (?:any|another|\w+s\b)|(?:any |another )?(?!this|its)\w+s\b)",
    re.IGNORECASE,
)
"""What somebody does not want of any kind: "I don't want you to write comments that …"."""
_BREAKS = regex(
    r"\b(?:fail\w*|broke\w*|breaks|crash\w*|wrong|stuck|missing|slow|empty|gone|looks?|seems?|appears?|shows?|happens?"
    r"|throws?|kaputt|fehlt|(?:not|n't) (?:work|show|load|found|ready|appear|render|match|seem|exist)\w*)\b",
    re.IGNORECASE,
)
"""Tells of a fault, or how something looks."""
_OURS = regex(r"(?:we|our|wir|unser\w?|bei uns|nous|nosotros)\b", re.IGNORECASE)
_FOR_ALL = regex(r"[\w'/+-]{1,30}\severything\s(?:with|in|as|under|by|through)\s\S", re.IGNORECASE)
_ENDING = frozenset(".!;:")  # behind these neither a condition nor a request goes on: "while you're at it: …"
_OPENING = frozenset("@`'\"¿¡#$")
_CONDITION = regex(r"(?:if|when|while|after|once|wenn|falls|si|quand|cuando)\b", re.IGNORECASE)

_ASKING = regex(
    r"\b(?:what|which|who|when|where|how|wie|was|wer|wann|wo|welche\w?|quel\w*|combien|qui|quand|où|comment|qué|cuál\w*"
    r"|cuánto\w?|quién|cómo)\b[^.!?]{0,80}\b(?:should|shall|may|must|do (?:we|you)|soll(?:en|te)?|darf|dürfen"
    r"|muss|müssen|doi(?:t|vent)|faut|debe[n]?)\b(?! I\b)",
    re.IGNORECASE,
)
_NEXT_STEP = regex(
    r"\bdo (?:we|you) (?:see|get|mean|want|think|suggest|prefer|remember)\b"
    r"|\b(?:first|next|now|zuerst|jetzt|d'abord|primero)\b|\b(?:soll|darf|muss) ich\b|\bdois-je\b|\bdebo\b",
    re.IGNORECASE,
)
"""Asks what to do, or what is to be seen."""


def states_rule(text: str) -> bool:
    """Tell whether a user's text says what holds beyond this minute: for all of a kind, for us, from a day on."""
    plain = QUOTED.sub("x", text)
    if HEDGE.search(plain) or AT_ONCE.search(plain) or plain.rstrip(CLOSING).endswith("?"):
        return False
    is_demanded = _INSISTED.search(plain) and not _SOON_OVER.search(plain)
    is_listed = not (plain[:1].isalnum() or plain[:1] in _OPENING)  # a line of a report that was pasted
    return not is_listed and (
        bool(is_demanded or _DISLIKED.search(plain)) or any(_is_general(*each) for each in _clauses(plain))
    )


def _clauses(text: str) -> Iterator[tuple[str, str]]:
    """Yield each clause alone and with all behind it, but none that goes on with a condition or a request."""
    joints = [*_CLAUSE.finditer(text)]
    starts, ends = [0, *(joint.end() for joint in joints)], [*(joint.start() for joint in joints), len(text)]
    goes_on, last = False, 0
    for start, end in zip(starts, ends, strict=True):
        lead = _LEAD.match(text[start:])
        begin = start + (lead.end() if lead else 0)
        clause = text[begin:end]
        is_ours = _OURS.match(clause) and "," in text[last:start]
        if clause and (not goes_on or is_ours):
            yield clause, text[begin:]
        goes_on |= bool(_CONDITION.match(clause)) or _is_requested(clause)
        goes_on &= text[end : end + 1] not in _ENDING
        last = end


def _is_general(clause: str, rest: str) -> bool:
    if _POINTING.match(clause) or _SOON_OVER.search(clause) or PAST.search(clause) or _BREAKS.search(clause):
        return False
    if _is_requested(clause) and not _FOR_ALL.match(clause):
        return False
    is_dated = _DATED.search(clause) and _VERB.search(clause)
    return bool(is_dated or _FOR_ALL.match(clause) or _CONTRAST.match(rest) or any(form.match(rest) for form in _FORMS))


def _is_requested(clause: str) -> bool:
    return clause.partition(" ")[0].casefold() in REQUESTED or REQUEST.match(clause) is not None


def asks_for_rule(question: str) -> bool:
    """Tell whether an agent asks how something is to be from here on: "How long should the hold be?"."""
    return bool(_ASKING.search(question)) and not _NEXT_STEP.search(question)
