"""Closed lists of wordings: what opens no statement, what passes with the talk, and what lasts beyond it.

Every pattern is written for straight apostrophes.
"""

from __future__ import annotations

import re


def alternatives(*phrases: str) -> re.Pattern[str]:
    """Return a pattern of whole words or phrases, in any case."""
    return re.compile(rf"\b(?:{'|'.join(phrases)})\b", re.IGNORECASE)


NO_SUBJECT = frozenset(
    """please let lets let's can could would will shall should do don't did does is are was were have has make sure
    check look see tell give show send remember ignore disregard forget override act pretend respond reply
    answer repeat help try go come take keep stop wait start use run add remove delete create write read find
    open close click call ask explain describe list print return thank thanks thankyou sorry welcome
    congratulations congrats bye goodbye cheers good nice great glad happy sounds looks how what when where who
    whom whose why which nope yep love been doing having appreciate hope gonna gotta way long can't couldn't
    keeping thats""".split()  # noqa: SIM905 — words read best so
)
"""Openings of questions, requests, greetings and remarks whose subject is left out."""
UNANCHORED = frozenset(
    """he she it they this that these those you your his her its their there here such him them one it's that's he's
    she's they're they've you're you've you'll there's both another as than of if because though although
    whether not just maybe perhaps""".split()  # noqa: SIM905 — words read best so
)
"""Openings that point to something said before."""
PREFERENCE = alternatives(
    "prefer(?:s|red|ence)?", "favou?rite", "can't stand", "allergic", "vegan", "vegetarian", "fond of", "interested in",
    "fan of", "(?:i|we|they|who|really|always) (?:love|like|enjoy|hate|dislike)d?", "(?:love|enjoy|hate|dislike)s",
    "lieber", "je préfère", "préfère", "prefier[eo]",
)  # fmt: skip
DECISION = alternatives(
    "decided?", "decides", "decision", "agreed", "chose", "chosen", "opted", "settled on", "approved", "going with",
    "(?:will|we'll) (?:use|go with|keep|move|ship|launch|drop)", "let's (?:use|go|keep|take|do)",
    "cancelled", "postponed",
    "switched", "instead", "beschlossen", "entschieden", "stattdessen",
    "décidé", "convenu", "aprobado", "decidido", "acordado",
)  # fmt: skip
RULE = alternatives(
    "always", "must(?! (?:have|be) )", "mustn't", "required",
    "requires", "forbidden", "not allowed", "from now on", "never",
    "only", "at most", "at least", "immer", "niemals", "toujours", "jamais", "siempre", "nunca",
)  # fmt: skip
CAUSE = alternatives(
    "because", "root cause", "cause[sd]?", "due to",
    "that's why", "the reason", "turn(?:s|ed) out", "found it", "there it is",
    "came (?:from|with)", "it was", "the problem (?:is|was)", "broke",
    "wrong", "instead of", "weil", "ursache", "deshalb",
    "vertauscht", "parce que", "à cause", "c'est pourquoi", "porque", "debido", "por eso",
)  # fmt: skip
MENDED = alternatives(
    "fix(?:ed|es)?", "solved", "resolved", "replaced", "reverted",
    "rolled? back", "restarted", "killed", "removed", "back to",
    "back on", "put back", "limited", "added", "created",
    "moved", "updated", "done", "works? again", "is out", "merged",
    "released", "signed", "booked", "held", "paid",
    "finished", "confirmed", "storniert", "korrigiert", "behoben", "erledigt",
    "corrigé", "réparé", "annulé", "confirmé", r"arregl\w+", "firma(?:do)?", "consta",
)  # fmt: skip
PLANNED = alternatives(
    "will", "i'll", "we'll", "he'll", "she'll", "they'll",
    "going to", "by", "until", "till", "deadline", "due", "planned",
    "starts?", "on (?:mon|tues|wednes|thurs|fri|satur|sun)day", "todo", "to do",
    "wird", "bis", "spätestens", "jusqu'à", "avant",
    "hasta", "antes",
)  # fmt: skip
"""What was caused, mended or planned, in English, German, French and Spanish; other languages have their figures."""
LABELLED = re.compile(
    r"\A(?:(?P<decision>decisions?|decided|agreed|outcome|results?|entscheidung|décision|decisión)"
    r"|(?P<cause>(?:root )?causes?|reason|problem|ursache|cause racine|causa)|(?P<fix>fix(?:ed)?|solution|"
    r"commit|pull request|lösung|solución)"
    r"|(?P<lesson>lessons?(?: learned| learnt| to keep)?|takeaways?|learnings?|lehren?|leçons?|lecciones|lección)"
    r"|(?P<plan>to[- ]?do|action(?: items?)?|next(?: steps?)?|open(?: questions?)?|order|plan|offen|à faire|pendiente))"
    r"(?:,[^:]{1,30})?\s?:",
    re.IGNORECASE,
)
HEDGE = alternatives(
    "i think", "i guess", "i suppose", "i reckon", "i bet", "i'd say",
    "i believe", "guess", "maybe", "perhaps", "might", "may be",
    "could be", "would be", "probably", "possibly", "suspect", "not sure", "my money", "looks like",
    "i (?:can|could) (?!only|not)", "we could", "shall i", "do you want", "sounds", "seems?", "if we", "what if",
    "rumour", "someone said", "someone says", "vielleicht",
    "glaube", "wahrscheinlich", "peut-être", "je crois", "je pense",
    "quizás", "creo", "a lo mejor", "i still", "i thought", "first thought", "considered",
)  # fmt: skip
CORRECTING = re.compile(
    r"\A(?:(?:oh|ah|hm+|well|but|ok|okay|and|so|wait|uh)[,.]*\s)*(?:(?:no|nope|nein|non|sorry|correction|"
    r"quatsch)(?=[,.:!\s]|$)"
    r"|wait|actually|scratch that|not (?:the|that|them|so)\b|that isn't|that's (?:not|wrong)|let me correct|"
    r"you're right|"
    r"my mistake|i was wrong|doch\b|pero si|eso dijo)",
    re.IGNORECASE,
)
"""What takes back what was said just before."""
REFUSING = alternatives(
    "no", "not", "out", "full", "gone", "can't",
    "cannot", "refused", "excluded", "discontinued", "declined", "complet", "nicht",
    "kein(?:e|en)?", "pas", r"\w+n't",
)  # fmt: skip
REFUSED = re.compile(
    r"\b(?:not|no|without|instead of|rather than|don't want|nicht|pas(?! de)|sin|sauf)\s(?:[^\s.,;!?]{1,30}\s?){1,4}"
    r"|(?<!\S)(?:[^\s.,;!?]{1,30}\s){1,4}(?:(?:is|are|'s|was)\s)?(?:out|full|gone|complet|taken|discontinued|excluded|wrong)\b",
    re.IGNORECASE,
)
"""A few words, and what refuses them: "not the 40", "the 18th is out"."""
STEP = re.compile(
    r"\A(?:(?:ok|okay|now|next|first|then|so|right|good|great|perfect|alright|and)[,.:!]?\s)*"
    r"(?:let me|let's (?:see|check|look|start|try)|i'll (?:now |just |also |first |then )?(?:do (?:both|it|this)|look|"
    r"check|start|run|read|try|see|do that|take a"
    r"|begin|go|continue|update|create|write|add|fix|use|verify|test)|i(?:'m| am) (?:going to|now)|i need to|now i"
    r"|continue\b|read the (?:output|full|file)|if you need|"
    r"(?:looking|running|reading|checking|starting|trying|connecting|searching|working|waiting)\b)",
    re.IGNORECASE,
)
"""What is about to be done, which the next lines do."""
COURTESY = re.compile(
    r"\A(?:(?:oh|ah|ha|so|well|and|but|ok|okay)[,.!]*\s)*(?:(?:hi|hello|hey|hiya|hallo|bonjour|hola|"
    r"good (?:morning|evening|afternoon|night)|"
    r"morning|thanks?|thank you|thx|ta|cheers|welcome|bye|goodbye|see you|sorry|great|nice|lovely|perfect|"
    r"super|good|fine|"
    r"understood|noted|right|sure|yes|yeah|yep|no|ok|okay|done|agreed|true|fair|wow|ouch|haha?|lol|danke|"
    r"bitte|merci|gracias|buenas|"
    r"bonsoir|bonne nuit|guten (?:tag|abend|morgen)|venga|gern|einen moment|never mind|one (?:moment|sec)|"
    r"hold on|come in|please)\b[\s,.!?…:)-]*+)"
    r"(?:[^\W\d_]++[\s,.!?…:)]*+){0,3}",
    re.IGNORECASE,
)
"""A sentence of a courtesy and three words at most."""
TALLY = re.compile(
    r"\b(?:all\s)?(?:(?<!\d,)\d[\d,]{0,9}|the|no|every)\s(?:\w+\s)?(?:tests?|checks?|tasks?|todos?|warnings?|errors?|"
    r"issues?|failures?|builds?)\b"
    r"(?=.{0,40}\b(?:pass|passed|passing|passes|fail|failed|failing|fails|closed|done|green|complete|"
    r"completed|ok|clean|left)\b)",
    re.IGNORECASE,
)
"""A state of the minute: "all 141 tests pass"."""
INSTRUCTING = alternatives(
    r"(?:ignore|disregard|forget|override|bypass)\s(?:[\w'-]+\s){0,4}(?:instructions?|prompts?|rules|guidelines)",
    "new (?:system )?(?:instructions?|prompt):",
)
"""What speaks to a model rather than of anything; never carried over by one into a memory."""
OWN = re.compile(r"\b(?:I|I'(?:m|ve|d|ll)|[Mm]y|[Mm]e|[Mm]yself|[Mm]ine)\b")
WE = re.compile(r"(?:we|we're|we've|we'd|we'll|our|us)\b", re.IGNORECASE)
VERBS = alternatives(
    "is", "are", "was", "were", "am", "has", "have", "had", "will", "won't", "must", "mustn't", "should", "can",
    "can't", "cannot", "does", "doesn't", "do", "don't", "did", "didn't", "isn't", "aren't", "wasn't", "hasn't",
    "never", "always", r"\w+n't", r"\w+'(?:s|re|ve|m|ll|d)", "uses?", "runs", "ran", "costs", "lives?", "works",
    "prefers?", "likes?", "loves?", "needs", "requires?", "supports", "starts", "ends", "goes", "go", "went",
    "gets?", "got", "chose", "bought", "sold", "became", "becomes?", "takes?", "took", "wants?", "plans", "says?",
    "said", "made", "makes?", "gave", "gives?", "keeps?", "kept", "left", "lost", "won", "met", "meets?", "told",
    "broke", "built", "wrote", "sends?", "sent", "holds?", "held", "means?", "comes?", "came", "owns?", "plays",
    "serves?", "happens?", r"[^\W\d_]{3,}ed",
)  # fmt: skip
