"""Detects credentials: sentences with one are left out of drafts, and credentials in stored text are masked.

The two are strict to different degrees. Leaving out errs on the safe side: a lost sentence costs a line of a summary,
while a key let through reaches every recall. Masking destroys text, so a value is masked only where it has the form of
a key, or is named as one and looks like one. Every pattern is linear in hostile text.
"""
# ruff: noqa: RUF001 — full-width marks are what other scripts write

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain, pairwise

from nous_online.core.patterns import regex
from nous_online.language.lexicon import FUNCTION_WORDS, word_list
from nous_online.language.writing.sentences import Sentence, straighten_apostrophes, with_speaker

NOT_VALUES, HEADS, JOINING = map(word_list, ("not_values", "heads", "joining"))
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
_MENTION = regex(rf"{_OPENS}{KEYWORD}{_ENDS}", re.IGNORECASE)
ASSIGNED = regex(
    rf"{_OPENS}(?P<name>{KEYWORD}){_ENDS}(?P<gap>[\w\s\"'`*()/-]{{0,60}}?(?:,[^,.;!?]{{1,60}},\s?)?)"
    rf"(?:[=:：]+>?|->|→|\b(?:is|was|are|were|it's)\b|(?<=\w)'s\b|[—–]|\s--?\s){_VALUE}",
    re.IGNORECASE,
)
OTHER_WAYS = tuple(
    regex(pattern, re.IGNORECASE)
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
_LOGIN = regex(r"\b(?:log|sign)(?:ged|ging|ned|ning)?[\s-]?(?:in|on)\b.{0,80}?\b(?:with|using)\b", re.IGNORECASE)
_SHAPES = regex(
    r"\b(?:sk|pk|rk)[-_][\w-]{12,}|\bgh[opsur]_\w{16,}|\bgithub_pat_\w{16,}|\bglpat-[\w-]{12,}|\b(?:hf|npm|pypi)[_-]\w{16,}"
    r"|\b(?:AKIA|ASIA)[A-Z\d]{12,}|\bxox[abeoprs]-[\w-]{8,}|\bAIza[\w-]{20,}|\bya29\.[\w-]{8,}|\beyJ[\w-]{6,400}\.[\w-]{4,}"
    r"|-----BEGIN|\bBearer\s+[\w.~+/-]{8,}|\bBasic\s+[A-Za-z\d+/]{12,}={0,2}|://[^\s/:@]{1,80}:[^\s/@]{1,80}@"
    r"|\b\d{3}-\d{2}-\d{4}\b"
)
_JOINED = regex(r"[-_/]+")
_CARD = regex(r"(?<!\d)\d{4}[\s-]?\d{4}[\s-]?\d{4}[\s-]?\d{1,7}(?!\d)")
_ISSUED = regex(r"4\d{12,18}|5\d{15}|2[2-7]\d{14}|3\d{13,15}|6\d{15,18}")
"""Numbers of cards begin with the digits of their issuer; a time in milliseconds (`1763900000000`) begins with none."""
TOKEN = regex(r"[A-Za-z\d+/_=-]{20,200}")
_PARTS = regex(r"[^\s=:：,;\"'`()\[\]{}<>“”]{4,}")
_HEX = regex(r"[\da-f]{16,}", re.IGNORECASE)
_ORDINARY = regex(
    r"[\d.,:]{1,12}-?(?:st|nd|rd|th|s|ms|secs?|mins?|m|h|hrs?|d|k|kb|mb|gb|tb|x|am|pm|bits?|fa|characters?|chars?|digits?"
    r"|words?|letters?|seconds?|minutes?|hours?|days?|weeks?|months?|years?|steps?|factor)|v\d[\d.]{0,10}"
    r"|(?:oauth|sha|aes|hs|rs|es|rsa|utf|base|http|tls|ipv|md|ed|ec|gpt|claude|python|postgres|iso|rfc|web)-?\d[\d.]{0,6}"
    r"|(?-i:[A-Z]{2,6})-\d{1,5}",
    re.IGNORECASE,
)
_COLOUR = regex(r"(?<!\w)#(?:[\da-f]{3,4}){1,2}(?!\w)", re.IGNORECASE)
"""A colour in hexadecimal, as in the tokens of a design: "#0F766E"."""
_DESIGN = regex(r"tokens?", re.IGNORECASE)
_COMMIT = regex(r"\b(?:commit|revision|rev)\s#?[\da-f]{6,40}\b", re.IGNORECASE)
_DONE_IN = regex(r"\b(?!logged|signed)\w{3,20}ed (?:in|as|at) [\da-f]{4,12}\b(?=[^.]{0,200}\. )", re.IGNORECASE)
"""A short id of a commit, in a sentence of its own: "bumped in a91b. …"."""
_NEW_CLAUSE = regex(r"\b(?:and|but|so|because|while|when|until|if|then|since)\b(?!\s(?:it|now)\b)", re.IGNORECASE)
_DEMANDED = regex(
    r"\s(?:must|should|shall|can|cannot|can't|may|will|would|could|ha(?:s|ve) to|needs? to|ought to)\s.{0,60}"
    r"\b(?:before|after|once|unless|whenever|wherever)\s",
    re.IGNORECASE,
)
"""What is to be done with a credential, and when: "must be set before it is called" gives no value."""
_APART = regex(r"[\s-]+")
_WORDS_ONLY = regex(r"(?:\b[a-z]{3,8}\s{1,4}){11}[a-z]{3,8}\b")
NAMED_PHRASE = regex(
    rf"{_OPENS}(?:passphrase|(?:seed|recovery|mnemonic|backup|secret)[\s_-](?:phrase|words)|password){_ENDS}"
    r"[\w\s]{0,40}?(?:[:=]|\b(?:is|was|are)\b)[\s\"'`]{1,3}(?P<words>(?:[a-z]{2,12}[\s-]{1,2}){3}[a-z]{2,12})\b",
    re.IGNORECASE,
)
_ASKED = regex(
    rf"\b(?:what(?:'s|\sis|\swas|\sare)|which|tell|give|gives?|send|share|remind|repeat|enter|type|say|need|know|remember"
    rf"|have|got|here(?:'s|\sis|\sare))\s(?:(?!(?:to|of|for|with|about|between|in|on|by|that|when|how)\b)[\w']{{1,20}}\s){{0,5}}"
    rf"{KEYWORD}{_ENDS}(?!\s(?:{'|'.join(sorted(HEADS))})\b)",
    re.IGNORECASE,
)
HINTS = (
    "pass", "pw", "kennwort", "contrase", "senha", "пароль", "密码", "パスワード", "pin",
    "code", "phrase", "words", "key", "secret", "token",
    "cred", "bearer", "basic", "otp", "cvv", "cvc", "ssn", "login", "log in", "log-in", "logon", "log on", "log-on",
    "logged", "logging", "logned", "logning", "signin", "sign in", "sign-in", "signon", "sign on", "sign-on", "signed",
    "signing", "signged", "signging", "-----", "@",
)  # fmt: skip
_LONG = regex(r"[\w+/=.-]{13}|\d{12}|\d{3}-\d\d-\d{4}|\d{4}[\s-]\d{4}")
_SEED_PHRASE = regex(r"[a-z]{3,8}(?:\s[a-z]{3,8}){11}")
"""Every credential has one of the hints, a long run of characters, or is a row of plain words; most lines have none of
these, and need none of the slower patterns."""
EDGE = ".,;:!?…)]}*_\"'`"
SHORT_ANSWER = 4  # words; after a mention of a password, a sentence this short may be the password itself
MARK = "[credential hidden]"
Span = tuple[int, int]
_PRIVATE_KEY = regex(
    r"-----BEGIN [A-Z\d ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:[^-]|-(?!----))*(?:-----END [A-Z\d ]{0,60}-----)?"
)
_KEY = regex(
    r"\b(?P<mixed>(?:sk|rk)[-_][\w-]{16,200})|\b(?:gh[opsur]_\w{16,200}|github_pat_\w{16,200}|glpat-[\w-]{12,200}"
    r"|(?:hf|npm|pypi)[_-]\w{16,200}|(?:AKIA|ASIA)[A-Z\d]{12,40}|xox[abeoprs]-[\w-]{8,200}|AIza[\w-]{20,200}"
    r"|ya29\.[\w-]{8,200}|eyJ[\w-]{6,2000}\.[\w-]{4,2000}(?:\.[\w-]{0,2000})?)"
    r"|\b(?:Bearer|Basic)\s+(?P<header>[\w.~+/=-]{12,2000})|://[^\s/:@]{1,80}:(?P<password>[^\s/@]{1,80})@"
    r"|(?<!\d)(?P<card>\d{4}[\s-]\d{4}[\s-]\d{4}[\s-]\d{1,7})(?!\d)"
)
_URL = regex(r"\b[a-z][a-z\d+.-]{1,20}://[^\s?#]{1,2000}", re.IGNORECASE)
_PUBLIC = regex(r"(?:ssh-(?:rsa|dss|ed25519)|ecdsa-[\w-]{1,40})\s+[\w+/=]{20,4000}|\bsha\d{1,3}[-:][\w+/=]{20,200}")
_BESIDE = regex(rf"(?<![^\W_]){KEYWORD}(?![^\W_])[\s:\"'`]{{1,3}}(?P<value>[\w+/=-]{{16,200}})", re.IGNORECASE)
_IS_SPOKEN = regex(rf"{SPOKEN}|(?:_pass|pw)\s?[=:]", re.IGNORECASE)
_IS_CODE = regex(r"[\s_-]codes?\b", re.IGNORECASE)
_WIFI = r"(?<![^\W_])(?:wi-?fi|wlan|hotspot|ssid)(?![^\W_])"
_IS_WIFI = regex(_WIFI, re.IGNORECASE)
_WIFI_BEFORE = regex(rf"{_WIFI}(?:[\s-](?!(?:is|was|and|but|so)\b)\w{{1,15}}){{0,2}}[\s-]{{0,2}}\Z", re.IGNORECASE)
"""Codes of doors and passwords of a Wi-Fi are not masked: people tell them to an agent to be reminded of them."""
BEFORE_NAME = 40  # characters before "password" that may say what it opens: "wifi guest password"
_RUN = regex(r"[A-Za-z\d]{16,200}")
_NEXT_WORD = regex(r"[\s-]{1,2}(?P<word>[a-z]{2,12})\b")
_SIGNS = frozenset("@#$%^&*!+=?")
_ENDS_SENTENCE = regex(r"[\"'`)\]]{0,3}\s{0,8}(?:[.!?,;](?:\s|$)|$|\n)")
LEAST_CHANGES = 0.3
"""Share of the characters of a key at which their kind changes: about 0.45 in random keys, 0.2 in joined words."""
LEAST_DIGITS = 3
LEAST_LETTERS = 4
NAMES = tuple(hint for hint in HINTS if hint[0].isalpha())  # a value named as a credential stands beside one of these
PIECE = 8_000
"""Characters read at once, up to the last white space: a running pattern holds the GIL, so that other threads wait."""


def may_hold_credential(text: str) -> bool:
    """Tell, at little cost, whether a text may hold a credential; there are no false negatives."""
    lowered = text.casefold().replace("ı", "i")  # `re.IGNORECASE` matches a dotless i with "i" as well
    is_hinted = any(hint in lowered for hint in HINTS)
    return bool(is_hinted or _LONG.search(text) or _SEED_PHRASE.match(lowered.lstrip()))


def holds_credential(text: str) -> bool:
    """Tell whether a text holds what looks like a password, key, token, card or identity number.

    A value counts where it has the form of one, is assigned to the name of one in any wording, or stands after such a
    name and mixes letters and digits or is a long hexadecimal number.
    """
    plain = straighten_apostrophes(text)
    if not may_hold_credential(plain):
        return holds_passphrase(plain)
    if _SHAPES.search(plain) or any(is_random(match.group()) for match in TOKEN.finditer(plain)):
        return True
    if any(is_card(match.group()) for match in _CARD.finditer(plain)):
        return True
    if any(may_be_value(match["value"]) and assigns_credential(match) for match in ASSIGNED.finditer(plain)):
        return True
    if any(may_be_value(match["value"]) for pattern in OTHER_WAYS for match in pattern.finditer(plain)):
        return True
    committed = _COMMIT.sub(" ", plain)
    mention = _MENTION.search(committed)
    before = committed[: mention.start()] if mention else ""
    committed = _DONE_IN.sub(" ", before) + committed[len(before) :]
    names = [match[0] for match in _MENTION.finditer(committed)]
    if names and all(map(_DESIGN.fullmatch, names)):
        committed = _COLOUR.sub(" ", committed)
    login = _LOGIN.search(committed)
    start = 0 if names else login.end() if login else len(committed)
    return any(is_mixed(match.group()) for match in _PARTS.finditer(committed, start)) or holds_passphrase(plain)


def is_random(token: str) -> bool:
    """Tell whether a long token mixes digits, small and capital letters, as keys do and hashes don't."""
    kinds = (str.isdigit, str.islower, str.isupper)
    mixed = all(sum(kind(char) for char in token) >= 2 for kind in kinds)  # noqa: PLR2004 — "Section3" has one of each
    # The name of a migration has each in a part of its own: "1740000000000-AddApprovals".
    is_joined = all(part.isdigit() or part.isalpha() for part in _JOINED.split(token))
    return mixed and not is_joined and token.count("/") + token.count("-") + token.count("_") <= len(token) // 8


def may_be_value(value: str) -> bool:
    """Tell whether a word may be a credential; words that only speak about one ("expired", "policy") are not."""
    word = value.strip(EDGE).casefold()
    return len(word) > 1 and word not in NOT_VALUES and word not in HEADS


def assigns_credential(match: re.Match[str]) -> bool:
    """Tell whether an assignment is to the credential itself: "the password policy is …" is not."""
    words = match["gap"].split()
    is_of_all = match["name"].endswith("s") and not match.string[: match.start()].strip() and not words
    is_demanded = _DEMANDED.match(match["gap"]) and match.string[match.end("gap")].isalpha()  # "is called", no "="
    is_colour = _DESIGN.fullmatch(match["name"]) and _COLOUR.fullmatch(match["value"].strip(EDGE))
    return (
        not (words and words[0].strip(EDGE).casefold() in HEADS)
        and not (_NEW_CLAUSE.search(match["gap"]) or is_demanded or is_colour)
        and not (is_of_all and " are " in match.group().casefold())
    )


def is_mixed(token: str) -> bool:
    """Tell whether a word mixes letters and digits and is no quantity, version or name of a standard."""
    word = token.strip(EDGE)
    has_both = any(map(str.isdigit, word)) and any(map(str.isalpha, word))
    return bool(_HEX.fullmatch(word)) or (has_both and not _ORDINARY.fullmatch(word))


def holds_passphrase(text: str) -> bool:
    """Tell whether a text holds a passphrase: a row of words that make no sentence."""
    phrases = [match.group() for match in _WORDS_ONLY.finditer(text)]
    named = [match["words"] for match in NAMED_PHRASE.finditer(text)]
    return any(JOINING.isdisjoint(phrase.split()) for phrase in phrases) or any(
        not FUNCTION_WORDS & set(_APART.split(words.casefold())) for words in named
    )


def without_credentials(sentences: Sequence[Sentence]) -> list[Sentence]:
    """Return the sentences without those that hold a credential or answer a question for one."""
    kept: list[Sentence] = []
    asked: Sentence | None = None
    before: Sentence | None = None
    for sentence in sentences:
        is_short = len(sentence.text.split()) <= SHORT_ANSWER
        is_answer = asked is not None and (sentence.turn == asked.turn + 1 if sentence.speaker else before is asked)
        may_be_one = is_short and before is not None and _MENTION.search(before.text)
        if not is_answer and not may_be_one and not holds_credential(with_speaker(sentence)):
            kept.append(sentence)
        if _ASKED.search(straighten_apostrophes(sentence.text)) or (is_answer and is_short and not sentence.speaker):
            asked = sentence  # "Sure." is no answer yet
        before = sentence
    return kept


def mask_credentials(text: str) -> tuple[str, int]:
    """Return a text with `MARK` in place of each credential, and the number of credentials."""
    spans = merge_spans(sorted(credential_spans(text)))
    kept, start = list[str](), 0
    for begin, end in spans:
        kept += [text[start:begin], MARK]
        start = end
    return "".join([*kept, text[start:]]), len(spans)


def merge_spans(spans: list[Span]) -> list[Span]:
    """Return sorted spans with overlapping ones joined."""
    found: list[Span] = []
    for begin, end in spans:
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((begin, end))
    return found


def credential_spans(text: str) -> Iterator[Span]:
    """Yield the spans of credentials: whole blocks of private keys, then line by line, long lines in pieces."""
    if "PRIVATE KEY" in text:
        yield from (match.span() for match in _PRIVATE_KEY.finditer(text))
    start = 0
    while start < len(text):
        end = text.find("\n", start, start + PIECE) + 1
        if not end and len(text) - start > PIECE:
            end = max(text.rfind(" ", start, start + PIECE) + 1, start + PIECE // 2)
        piece = text[start : end or len(text)]
        if may_hold_credential(piece):
            yield from ((start + begin, start + end) for begin, end in spans_in_line(straighten_apostrophes(piece)))
        start += len(piece)


def spans_in_line(line: str) -> Iterator[Span]:
    """Yield the spans in a line that have the form of a key, or are named as a credential and look like one."""
    for match in _KEY.finditer(line):
        name = match.lastgroup or ""
        tests = {"mixed": is_mixed, "header": is_token, "card": is_card}
        is_one = tests.get(name, bool)
        if is_one(match[name or 0]):
            yield match.span(name) if name in {"header", "password", "card"} else match.span()
    public = [match.span() for pattern in (_URL, _PUBLIC) for match in pattern.finditer(line)]
    for match in TOKEN.finditer(line):
        is_public = any(begin <= match.start() < end for begin, end in public)
        if not is_public and any(is_random(run) and is_scrambled(run) for run in _RUN.findall(match[0])):
            yield match.span()
    lowered = line.lower()
    if any(name in lowered for name in NAMES):
        yield from named_spans(line)


def is_token(value: str) -> bool:
    """Tell whether the text after `Bearer` or `Basic` is a token and no word."""
    return is_mixed(value) or value.startswith("eyJ")


def named_spans(line: str) -> Iterator[Span]:
    """Yield the spans of values that a line calls a password, key, token or code."""
    assigned = (match for match in ASSIGNED.finditer(line) if assigns_credential(match))
    otherwise = (match for pattern in (*OTHER_WAYS, _BESIDE) for match in pattern.finditer(line))
    yield from (value_span(match) for match in chain(assigned, otherwise) if looks_like_credential(match))
    for match in NAMED_PHRASE.finditer(line):
        if FUNCTION_WORDS.isdisjoint(match["words"].casefold().replace("-", " ").split()):
            end = match.end("words")
            while (more := _NEXT_WORD.match(line, end)) and more["word"] not in FUNCTION_WORDS:
                end = more.end()
            yield match.start("words"), end


def looks_like_credential(match: re.Match[str]) -> bool:
    """Tell whether the value of a match looks like a credential rather than a word about one."""
    begin, end = value_span(match)
    word, before = match.string[begin:end], match.string[match.start() : begin]
    is_wifi = _IS_WIFI.search(before) or _WIFI_BEFORE.search(
        match.string, max(0, match.start() - BEFORE_NAME), match.start()
    )
    if _IS_CODE.search(before) or is_wifi or not may_be_value(word) or MARK[1:4] == word[:3]:
        return False
    is_spoken = bool(_IS_SPOKEN.search(match[0].replace(word, " ")))
    if word.isdigit():
        return is_spoken and len(word) >= LEAST_DIGITS
    letters = sum(map(str.isalpha, word))
    if is_mixed(word):
        return True
    has_sign = bool(_SIGNS.intersection(word)) and letters >= LEAST_LETTERS
    is_plain = letters == len(word) >= LEAST_LETTERS and is_spoken
    is_given = before.rstrip().endswith(("=", ":")) or bool(_ENDS_SENTENCE.match(match.string, end))
    return has_sign or (is_plain and is_given and word.casefold() == word)


def value_span(match: re.Match[str]) -> Span:
    """Return the span of a match's value without the punctuation around it."""
    begin, end = match.span("value")
    word = match["value"]
    return begin + len(word) - len(word.lstrip(EDGE)), begin + len(word.rstrip(EDGE)) if word.rstrip(EDGE) else end


def is_scrambled(token: str) -> bool:
    """Tell whether capitals, small letters and digits alternate as in random text.

    A time (`20261120T093015Z`) has long runs of one kind, and so do joined words, apart from their capitals.
    """
    kinds = ["d" if char.isdigit() else "u" if char.isupper() else "l" for char in token]
    changes = sum(one != other and (one, other) != ("u", "l") for one, other in pairwise(kinds))
    return changes >= LEAST_CHANGES * len(kinds)


def is_card(number: str) -> bool:
    """Tell whether a number begins and is as long as those of payment cards, and has their check digit (Luhn)."""
    written = "".join(filter(str.isdigit, number))
    digits = [*map(int, reversed(written))]
    doubled = [digit if place % 2 == 0 else sum(divmod(2 * digit, 10)) for place, digit in enumerate(digits)]
    return bool(_ISSUED.fullmatch(written)) and sum(doubled) % 10 == 0
