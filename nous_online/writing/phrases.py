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
    "prefer", "prefers", "preferred", "preference", "favou?rite", "can't stand", "allergic", "vegan", "vegetarian",
    "fond of", "obsessed", "passionate about", "interested in", "(?:big |huge )?fan of", "loves", "likes", "enjoys",
    "hates", "dislikes",
    "(?:i|we|they|who)(?: really| also| always| still| both| don't| do)? (?:love|like|enjoy|hate|dislike)d?",
)  # fmt: skip
DECISION = alternatives(
    "decided?", "decides", "decision", "agreed", "chose", "chosen", "opted", "settled on", "switched",
    "migrat(?:ed|es|ing)", "approved", "signed up", "root cause",
    "(?:will|we'll) (?:use|be|go with|keep|move|ship|launch|drop)", "going with", "is due", "deadline", "scheduled",
    "postponed", "cancelled",
)  # fmt: skip
RULE = alternatives(
    "always", "must(?! (?:have|be) )", "mustn't", "required", "requires", "forbidden", "not allowed", "from now on"
)
HOLDING = re.compile(
    r"^(?:the|our|my|all|each|every)\s+(?:[\w'/&-]+\s+){1,4}?(?:is|are|has|have|needs?|[a-z]{3,}(?<![su])s)\s(?!\w+ing\b)",
    re.IGNORECASE,
)
"""A statement of how some definite thing is, in the present and not just at the moment: "The gateway rejects …"."""
LASTING = alternatives(
    "never", "only", "at most", "at least", "lives?", "lived", "moved", "works?", "worked", "born", "married",
    "engaged", "divorced", "owns?", "owned", "bought", "sold", "joined", "founded", "started", "quit", "became",
    "graduat(?:ed|es|ing)", "study", "studies", "studied", "speaks?", "named", "called", "birthday", "anniversary",
    "years?", "months?", "adopted", "volunteer(?:s|ed|ing)?", "teach", "teaches", "taught", "plays?", "played",
    "won(?!')", "lost", "created", "wrote", "painted", "visited", "attended", "went", "travell?ed", "planning",
    "plans?", "dream(?:s|ed|ing)?", "goal", "career", "job", "costs?", "runs? on", "stored", "hosted", "deployed",
    "configured", "depends on", "supports",
    r"(?:my|his|her|our|their) (?:\w+ )?(?:wife|husband|partner|son|daughter|kids?|children|mother|father|mom|mum|dad"
    "|brother|sister|dog|cat|boss|team|company|email|address|phone|name)",
)  # fmt: skip
PASSING = alternatives(
    "let me", "one moment", "right now", "just a (?:sec|second|moment|minute)", "hold on", "how about", "what about",
    "as i said", "as you", "for you", "thanks", "thank you", "system prompt",
    "this (?:chat|conversation|session|call)",
    "i(?:'ll| will|'m going to|'m about to| am going to| can| could| would|'d)",
    "i(?:'m| am)? (?:so |really |just )?(?:think|guess|suppose|hope|wonder|bet|mean|see|know|understand|agree"
    "|appreciate|apologi[sz]e|wish|glad|happy|sorry|sure|proud|excited)",
    "(?:previous|prior|above|earlier|all|these|your) (?:instructions?|prompts?|rules)",
)  # fmt: skip
WEAK = alternatives(
    "maybe", "perhaps", "might", "could", "would", "probably", "possibly", "not sure", "if", "you", "your", "you're",
    "feel", "feeling", "feels",
)  # fmt: skip
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
ASKING = alternatives("i (?:also |just |really |still )?(?:want|need|noticed|tried|forgot|meant)", "i was wondering")
"""What somebody known by a role alone says to get something done."""
