"""Which sentences hold what looks like a credential: such a sentence is never lifted into another memory.

It errs on the safe side: a sentence left out costs a line of a summary, one let through hands a key to every recall.
Hostile text costs linear time.
"""

# ruff: noqa: RUF001 — full-width marks are what other scripts write
from __future__ import annotations

import re
from collections.abc import Sequence

from nous_online.language.pairs.lexicon import FUNCTION_WORDS
from nous_online.language.writing.sentences import Sentence, said, straight

NOT_VALUES = frozenset(
    """the a an in on at by for from with without of to as not no too very only still now also so and or be been being
    than then there here what where which who why how when whether if that this these those it its it's you we they he
    she i me my our your his her their one some any all none every each both another same different something nothing
    unknown secret private public local used unused reused shared kept stored saved sent set unset changed unchanged
    updated rotated revoked expired expiring leaked exposed compromised hidden masked hashed salted encrypted signed
    wrong right correct incorrect invalid valid missing empty blank short long weak strong strict old new fresh stale
    recent current default safe unsafe secure insecure required optional mandatory needed due out up down off gone lost
    found forgotten read written ready done fine good bad better best broken working rejected accepted refused denied
    allowed disabled enabled generated issued created deleted removed replaced requested checked verified validated
    tested refreshed loaded fetched passed typed entered printed logged cached copied moved given taken important
    sensitive critical essential case-sensitive temporary permanent available unavailable easy hard difficult simple
    complex complicated complete incomplete cheap expensive free limited unlimited unique random annoying confusing
    scary boring likely probably already always never just really quite pretty currently usually often sometimes again
    soon later today tomorrow yesterday about above after before between under over via per like because until unless
    must should can could may might will would has have had is are was were do does did tied bound scoped
    part visible supported managed handled configured documented owned provided mentioned""".split()  # noqa: SIM905
)
"""Words that say something about a credential; whatever else stands after "the password is" may be one."""
HEADS = frozenset(
    """policy policies reset resets manager managers field fields form page prompt prompts rotation hash hashes hashing
    length lengths strength requirement requirements rule rules change changes check checks validation screen box
    review reviews flow limit limits count counts usage store vault server service endpoint expiry expiration
    management storage handling refresh generation generator provider format scan scanner scanning leak leaks breach
    issue issues problem problems error errors bug test tests table column owner holder team recovery protection
    authentication window cost costs pricing stream pair pad database dialog link email emails request requests
    exchange lifetime lifetimes budget bucket buckets schedule audit guideline guidelines""".split()  # noqa: SIM905
)
"""What a credential's name may stand before: "the password policy is strict" is about a policy."""

SPOKEN = (
    r"pass(?:word|wort|phrase|code|wd)s?|pwd|kennwort|contrase[nñ]a|senha|mot de passe|пароль|密码|パスワード"
    r"|(?-i:PINs?)|(?<=\bmy )pin|(?<=\bthe )pin|(?<=\byour )pin|(?<=\bhis )pin|(?<=\bher )pin|pin[\s_-]?(?:code|number)"
    r"|(?:door|gate|alarm|access|entry|garage|lock|keypad|unlock|security|verification|backup|recovery)[\s_-]codes?"
    r"|(?:seed|recovery|mnemonic|backup|secret)[\s_-](?:phrase|words)"
)
KEYWORD = (
    rf"(?:{SPOKEN}"
    r"|(?:api|access|private|secret|encryption|decryption|signing|ssh|deploy|master|licen[cs]e|session)[\s_-]{0,2}keys?"
    r"|secrets?(?!\s+(?:to|of|behind)\b)|tokens?(?!\s+(?:limit|budget|count|bucket|usage|window|cost|price|per)s?\b)"
    r"|credentials?|creds|bearer|otp|cvv2?|cvc|ssn)"
)
_OPENS, _ENDS = r"(?<![^\W_])", r"(?![^\W_])"
_VALUE = r"[\s\"'`*“‘(]{0,4}(?P<value>[^\s\"'`”)]{2,200})"
_MENTION = re.compile(rf"{_OPENS}{KEYWORD}{_ENDS}", re.IGNORECASE)
ASSIGNED = re.compile(
    rf"{_OPENS}(?P<name>{KEYWORD}){_ENDS}(?P<gap>[\w\s\"'`*()/-]{{0,60}}?(?:,[^,.;!?]{{1,60}},\s?)?)"
    rf"(?:[=:：]+>?|->|→|\b(?:is|was|are|were|it's)\b|(?<=\w)'s\b|[—–]|\s--?\s){_VALUE}",
    re.IGNORECASE,
)
OTHER_WAYS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"{_OPENS}(?:pass|pw|login|[a-z\d]{{1,30}}_(?:key|pass|pw)){_ENDS}\s?[=:]{_VALUE}",
        rf"{_OPENS}{KEYWORD}{_ENDS}[\s,(]{{1,3}}[\"'`“‘](?P<value>[^\s\"'`”’]{{2,200}})[\"'`”’]",
        rf"\b(?:chang|set|reset|updat|switch|rotat)\w{{0,5}}\b[\w\s'’-]{{0,40}}?{_OPENS}{KEYWORD}{_ENDS}"
        rf"[\w\s'’-]{{0,40}}?\bto\b{_VALUE}",
        rf"\b(?:use|using|enter|type|try|set)\s{_VALUE}[\"'`”)]?\sas\s(?:\w{{1,20}}\s){{0,4}}{KEYWORD}{_ENDS}",
        rf"(?<!\S){_VALUE}[\"'`”]?\s(?:is|was)\s(?:the|my|our|your|his|her|their)\s(?:\w{{1,20}}\s){{0,2}}(?:{SPOKEN}){_ENDS}"
        rf"(?!\s(?:{'|'.join(sorted(HEADS))})\b)",
        rf"\b(?:log|sign)(?:ged|ging|ned|ning)?[\s-]?(?:in|on)\s(?:\w{{1,20}}\s){{0,4}}?as\s\S{{1,60}}\s(?:with|using|and){_VALUE}",
        rf"{_OPENS}(?:{SPOKEN}){_ENDS}[\s#]{{1,2}}(?P<value>\d{{3,12}})(?!\w)(?!\s\w{{1,20}}s\b)",
    )
)
_LOGIN = re.compile(r"\b(?:log|sign)(?:ged|ging|ned|ning)?[\s-]?(?:in|on)\b.{0,80}?\b(?:with|using)\b", re.IGNORECASE)
_SHAPES = re.compile(
    r"\b(?:sk|pk|rk)[-_][\w-]{12,}|\bgh[opsur]_\w{16,}|\bgithub_pat_\w{16,}|\bglpat-[\w-]{12,}|\b(?:hf|npm|pypi)[_-]\w{16,}"
    r"|\b(?:AKIA|ASIA)[A-Z\d]{12,}|\bxox[abeoprs]-[\w-]{8,}|\bAIza[\w-]{20,}|\bya29\.[\w-]{8,}|\beyJ[\w-]{6,400}\.[\w-]{4,}"
    r"|-----BEGIN|\bBearer\s+[\w.~+/-]{8,}|\bBasic\s+[A-Za-z\d+/]{12,}={0,2}|://[^\s/:@]{1,80}:[^\s/@]{1,80}@"
    r"|\b\d{3}-\d{2}-\d{4}\b|(?<!\d)\d{4}[\s-]?\d{4}[\s-]?\d{4}[\s-]?\d{1,7}(?!\d)"
)
TOKEN = re.compile(r"[A-Za-z\d+/_=-]{20,200}")
_PARTS = re.compile(r"[^\s=:：,;\"'`()\[\]{}<>“”]{4,}")
_HEX = re.compile(r"[\da-f]{16,}", re.IGNORECASE)
_ORDINARY = re.compile(
    r"[\d.,:]{1,12}-?(?:st|nd|rd|th|s|ms|secs?|mins?|m|h|hrs?|d|k|kb|mb|gb|tb|x|am|pm|bits?|fa|characters?|chars?|digits?"
    r"|words?|letters?|seconds?|minutes?|hours?|days?|weeks?|months?|years?|steps?|factor)|v\d[\d.]{0,10}"
    r"|(?:oauth|sha|aes|hs|rs|es|rsa|utf|base|http|tls|ipv|md|ed|ec|gpt|claude|python|postgres|iso|rfc|web)-?\d[\d.]{0,6}"
    r"|(?-i:[A-Z]{2,6})-\d{1,5}",
    re.IGNORECASE,
)
_COMMIT = re.compile(r"\b(?:commit|revision|rev)\s#?[\da-f]{6,40}\b", re.IGNORECASE)
_NEW_CLAUSE = re.compile(r"\b(?:and|but|so|because|while|when|until|if|then|since)\b(?!\s(?:it|now)\b)", re.IGNORECASE)
_APART = re.compile(r"[\s-]+")
_WORDS_ONLY = re.compile(r"(?:\b[a-z]{3,8}\s{1,4}){11}[a-z]{3,8}\b")
NAMED_PHRASE = re.compile(
    rf"{_OPENS}(?:passphrase|(?:seed|recovery|mnemonic|backup|secret)[\s_-](?:phrase|words)|password){_ENDS}"
    r"[\w\s]{0,40}?(?:[:=]|\b(?:is|was|are)\b)[\s\"'`]{1,3}(?P<words>(?:[a-z]{2,12}[\s-]{1,2}){3}[a-z]{2,12})\b",
    re.IGNORECASE,
)
_ASKED = re.compile(
    rf"\b(?:what(?:'s|\sis|\swas|\sare)|which|tell|give|gives?|send|share|remind|repeat|enter|type|say|need|know|remember"
    rf"|have|got|here(?:'s|\sis|\sare))\s(?:(?!(?:to|of|for|with|about|between|in|on|by|that|when|how)\b)[\w']{{1,20}}\s){{0,5}}"
    rf"{KEYWORD}{_ENDS}(?!\s(?:{'|'.join(sorted(HEADS))})\b)",
    re.IGNORECASE,
)
JOINING = frozenset("the and for was are with from our his her not but has had were".split())  # noqa: SIM905
"""Words that a sentence of twelve has one of, and a seed phrase none (BIP 39, English list)."""
HINTS = (
    "pass", "pw", "kennwort", "contrase", "senha", "пароль", "密码", "パスワード", "pin",
    "code", "phrase", "words", "key", "secret", "token",
    "cred", "bearer", "basic", "otp", "cvv", "cvc", "ssn", "login", "log in", "log-in", "logon", "log on", "log-on",
    "logged", "logging", "logned", "logning", "signin", "sign in", "sign-in", "signon", "sign on", "sign-on", "signed",
    "signing", "signged", "signging", "-----", "@",
)  # fmt: skip
_LONG = re.compile(r"[\w+/=.-]{13}|\d{12}|\d{3}-\d\d-\d{4}|\d{4}[\s-]\d{4}")
_SEED_PHRASE = re.compile(r"[a-z]{3,8}(?:\s[a-z]{3,8}){11}")
"""Whatever is a credential has one of the hints, a long run of characters, or is a row of plain words: most lines of a
talk have none of these and need no closer look."""
EDGE = ".,;:!?…)]}*_\"'`"
SHORT_ANSWER = 4
"""Words; beside any talk of a password, a sentence this short may be nothing but the password."""


def may_hold(text: str) -> bool:
    """Tell whether a text is worth a closer look: cheap, and never wrong where it says no."""
    lowered = text.casefold().replace("ı", "i")  # as the patterns fold: they hold a dotless i for one with a dot
    is_hinted = any(hint in lowered for hint in HINTS)
    return bool(is_hinted or _LONG.search(text) or _SEED_PHRASE.match(lowered.lstrip()))


def holds_credential(text: str) -> bool:
    """Tell whether a text holds what looks like a password, key, token, card or identity number."""
    plain = straight(text)
    if not may_hold(plain):
        return is_phrase(plain)
    if _SHAPES.search(plain) or any(is_random(match.group()) for match in TOKEN.finditer(plain)):
        return True
    return is_assigned(plain) or is_beside_mention(plain) or is_phrase(plain)


def is_random(token: str) -> bool:
    """Tell whether a long token mixes digits with small and capital letters, as keys do and hashes don't."""
    kinds = (str.isdigit, str.islower, str.isupper)
    mixed = all(sum(kind(char) for char in token) >= 2 for kind in kinds)  # noqa: PLR2004 — "Section3" has one of each
    return mixed and token.count("/") + token.count("-") + token.count("_") <= len(token) // 8


def is_assigned(text: str) -> bool:
    """Tell whether a text says what a credential is, in whatever words."""
    if any(may_be_value(match["value"]) and names_one(match) for match in ASSIGNED.finditer(text)):
        return True
    return any(may_be_value(match["value"]) for pattern in OTHER_WAYS for match in pattern.finditer(text))


def may_be_value(value: str) -> bool:
    """Tell whether a word may be a credential: all but those that only say something about one."""
    word = value.strip(EDGE).casefold()
    return len(word) > 1 and word not in NOT_VALUES and word not in HEADS


def names_one(match: re.Match[str]) -> bool:
    """Tell whether an assignment is one to the credential itself: "the password policy is …" is none."""
    words = match["gap"].split()
    is_of_all = match["name"].endswith("s") and not match.string[: match.start()].strip() and not words
    return (
        not (words and words[0].strip(EDGE).casefold() in HEADS)
        and not _NEW_CLAUSE.search(match["gap"])
        and not (is_of_all and " are " in match.group().casefold())
    )


def is_beside_mention(text: str) -> bool:
    """Tell whether a text names a credential and has a word of letters and digits, or a long hexadecimal number."""
    plain = _COMMIT.sub(" ", text)
    login = _LOGIN.search(plain)
    if _MENTION.search(plain):
        return any(mixes(match.group()) for match in _PARTS.finditer(plain))
    return bool(login) and any(mixes(match.group()) for match in _PARTS.finditer(plain, login.end()))


def mixes(token: str) -> bool:
    """Tell whether a word mixes letters and digits as no quantity, version or name of a standard does."""
    word = token.strip(EDGE)
    has_both = any(map(str.isdigit, word)) and any(map(str.isalpha, word))
    return bool(_HEX.fullmatch(word)) or (has_both and not _ORDINARY.fullmatch(word))


def is_phrase(text: str) -> bool:
    """Tell whether a text holds a phrase that opens something: words in a row that make no sentence."""
    phrases = [match.group() for match in _WORDS_ONLY.finditer(text)]
    named = [match["words"] for match in NAMED_PHRASE.finditer(text)]
    return any(JOINING.isdisjoint(phrase.split()) for phrase in phrases) or any(
        not FUNCTION_WORDS & set(_APART.split(words.casefold())) for words in named
    )


def without_credentials(sentences: Sequence[Sentence]) -> list[Sentence]:
    """Return the sentences that may be lifted: none that holds a credential, no answer to a question for one."""
    kept: list[Sentence] = []
    asked: Sentence | None = None
    before: Sentence | None = None
    for sentence in sentences:
        is_short = len(sentence.text.split()) <= SHORT_ANSWER
        is_answer = asked is not None and (sentence.turn == asked.turn + 1 if sentence.speaker else before is asked)
        may_be_one = is_short and before is not None and _MENTION.search(before.text)
        if not is_answer and not may_be_one and not holds_credential(said(sentence)):
            kept.append(sentence)
        if _ASKED.search(straight(sentence.text)) or (is_answer and is_short and not sentence.speaker):
            asked = sentence  # "Sure." is no answer yet
        before = sentence
    return kept
