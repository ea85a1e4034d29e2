"""Words that one of two statements misspells or cuts short, and the other writes out; by rule."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import product

from nous_online.core.patterns import regex
from nous_online.language.lexicon import DATED, FUNCTION_WORDS, is_english
from nous_online.language.minilm import tokenizer
from nous_online.language.pairs.reading import folded_letters, read

WORD = regex(r"[^\W\d_]+")
WORD_OR_CUT = regex(r"(?<!\w)[^\W\d_]++(?:\.(?=\s[^\sA-Z]))?")
"""A word, with the stop after it unless a sentence may end there."""
LONG_NUMBER = regex(r"(?<![\w.,])\d++(?: \d++)*+(?![\w.,]\d)")
LEAST_DIGITS = 7  # of a telephone number or an account, whose groups people space as they like
GROUPED = regex(r"(?<![\w.,+])(?:\+|\(\+?)?\d++(?:[ /().-]{1,2}\d++)*+(?![\w.,]\d)")
LEAST_OF_LOCAL = 8  # digits of a telephone number behind the code of its country or the 0 in its place
MOST_OF_COUNTRY = 3  # digits of that code
SUMS = (
    regex(r"(?<![\w€$£])(?P<sign>[€$£])\s?(?P<sum>\d++(?:[.,]\d++)*+)(?:,-|\.-)?(?! ?(?:k|m|bn|million|billion)\b)"),
    regex(r"(?<![\w.,€$£])(?P<sum>\d++(?:[.,]\d++)*+)(?:,-|\.-)?\s?(?P<sign>[€$£]|(?i:euros?|eur)\b)"),
)
"""Amounts of money: "€2.50", "2,50€", "2.50 euros"."""
NAMED_SUMS = {"€": "euros", "$": "dollars", "£": "gbp"}
EUROPEAN = regex(r"\A(?:(?P<whole>\d{1,3}(?:\.\d{3})++|\d++),(?P<part>\d{1,2})|(?P<thousands>\d{1,3}(?:\.\d{3})++))")
"""A sum with a comma before its cents, or stops between its thousands: "1.250,00", "1.250"."""
MEASURES = "hour hr h day night week wk month mo year yr person head kg l litre"
RATE = regex(rf"(\d|\b(?:euros|dollars|gbp)) ?/ ?(?=(?:{'|'.join(MEASURES.split())})\b(?!/))")
UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "å": "aa", "ø": "oe", "æ": "ae"})
LEAST_ACCENTED = 2  # words from which a text without any accent is one whose writer leaves them out
LEAST_LETTERS, LEAST_OF_SMALL = 5, 3  # of a word that may be misspelt; of a small one, as "teh" is of "the"
SHORT = {
    "st": "street", "rd": "road", "ln": "lane", "sq": "square", "hr": "hour", "hrs": "hours", "yr": "year",
    "yrs": "years", "wk": "week", "wks": "weeks", "pls": "please", "tmrw": "tomorrow", "msg": "message",
    "qty": "quantity",
}  # fmt: skip
"""What is cut short inside, or is a word of its own too."""
LEAST_OF_SHORT = 3  # letters of a word that is cut short
DOUBLED_BEFORE = ("ed", "er", "ing", "ings", "ers", "y")
"""Endings before which a letter and a doubled one make two words: "scraped", "scrapped"; "tiny", "tinny"."""


def in_one_spelling(a: str, b: str) -> tuple[str, str]:
    """Return two statements with each slip and each word cut short of one ("persn", "Tues") as the other writes it.

    So are accents that one leaves out everywhere, and spaces in long numbers. In English alone a slip is no word that
    the embedding model's vocabulary has, and the other is; two of its letters are exchanged, or one inside is missing
    or too many. Names and endings are left as they are: "Jansen" and "Janssen" may be two.
    """
    a, b = (LONG_NUMBER.sub(_joined, text) for text in (a, b))
    if all(any(pattern.search(text) for pattern in SUMS) for text in (a, b)):  # else "84 quid" is read beside "78 gbp"
        a, b = with_plain_sums(a), with_plain_sums(b)
    a, b = RATE.sub(r"\1 per ", a), RATE.sub(r"\1 per ", b)
    a, b = _with_accents(a, b), _with_accents(b, a)
    a, b = _ungrouped(a, b), _ungrouped(b, a)
    one, other = _words(a), _words(b)
    # Sorted, since the order of a set differs between processes, and a word may be a slip of either of two.
    for first, second in product(sorted(one - other), sorted(other - one)):
        if first[0] == second[0]:
            a = _respelt(a, first, second) if _means(first, a, second, b) else a
            b = _respelt(b, second, first) if _means(second, b, first, a) else b
    return a, b


@lru_cache(maxsize=65_536)
def _words(text: str) -> frozenset[str]:
    return frozenset(word.casefold() for word in WORD.findall(text))


def _means(written: str, text: str, meant: str, other: str) -> bool:
    """Tell whether a word of one text, in lower case, is one of the other, misspelt or cut short."""
    if len(written) < len(meant) - 1:
        is_cut = meant.startswith(written) and len(written) >= LEAST_OF_SHORT and _is_cut(written, text, meant)
        return is_cut or SHORT.get(written) == meant
    if abs(len(written) - len(meant)) > 1 or not is_english(f"{text} {other}") or not is_slip(written, meant):
        return False
    return meant in DATED or written not in {name.casefold() for name in read(text).names}


def _is_cut(written: str, text: str, meant: str) -> bool:
    """Tell whether a word is written as an abbreviation: of a day or month, or with a stop inside a sentence."""
    # "Sat", but not "she sat"
    is_name = len(written) > LEAST_OF_SHORT or written.capitalize() in WORD.findall(text)
    return (meant in DATED and is_name) or f"{written}." in WORD_OR_CUT.findall(text.casefold())


def _joined(match: re.Match[str]) -> str:
    """Return a long number without the spaces between its groups; a shorter one may be several numbers."""
    digits = match[0].replace(" ", "")
    return digits if len(digits) >= LEAST_DIGITS else match[0]


def with_plain_sums(text: str) -> str:
    """Return a text with its sums of euros, dollars and pounds written alike: "€2.50" and "2,50€" as "2.50 euros"."""
    for pattern in SUMS:
        text = pattern.sub(_plain_sum, text)
    return text


def _plain_sum(match: re.Match[str]) -> str:
    written = EUROPEAN.fullmatch(match["sum"])
    plain = match["sum"]
    if written is not None:
        whole = (written["whole"] or written["thousands"]).replace(".", "")
        plain = f"{whole}.{written['part']}" if written["part"] else whole
    return f"{plain.removesuffix('.00')} {NAMED_SUMS.get(match['sign'], 'euros')}"


def _ungrouped(text: str, other: str) -> str:
    """Return a text with each long number that the other gives too, in whatever groups, in figures alone."""
    known = [_digits(match[0]) for match in GROUPED.finditer(other)]

    def plain(match: re.Match[str]) -> str:
        digits = _digits(match[0])
        same = [number for number in known if _is_one_number(digits, number)]
        return min([digits, *same], key=len) if same else match[0]

    return GROUPED.sub(plain, text)


def _digits(number: str) -> str:
    return "".join(each for each in number if each.isdigit() or each == "+")


def _is_one_number(one: str, other: str) -> bool:
    """Tell whether two long numbers are one, of which one may begin with the code of a country: "+49 30 …", "030 …"."""
    local, abroad = sorted((one, other), key=len)
    own = local.removeprefix("0")
    is_abroad = abroad.startswith("+") and local.startswith("0") and len(own) >= LEAST_OF_LOCAL
    is_same = one == other and len(one) >= LEAST_DIGITS
    return is_same or (is_abroad and abroad.endswith(own) and len(abroad) - len(own) <= MOST_OF_COUNTRY + 1)


def _with_accents(text: str, other: str) -> str:
    """Return a text without accents with those of the other, in the words that are equal but for them."""
    if not text.isascii() or other.isascii():
        return text
    accented = [word for word in sorted(_words(other)) if not word.isascii()]
    plain = {folded_letters(word): word for word in accented}
    spelled_out = {word.translate(UMLAUTS): word for word in accented}
    words = _words(text)
    shared = plain.keys() & words if len(plain.keys() & words) >= LEAST_ACCENTED else set[str]()
    for word in sorted(shared | (spelled_out.keys() & words)):
        text = _respelt(text, word, plain.get(word) or spelled_out[word])
    return text


def is_slip(written: str, meant: str) -> bool:
    """Tell whether a word in lower case, which is none, is another, which is one, with a slip inside."""
    least = LEAST_OF_SMALL if meant in FUNCTION_WORDS else LEAST_LETTERS
    if not (written.isascii() and meant.isascii()) or len(meant) < least or is_word(written) or not is_word(meant):
        return False
    start = next((i for i, (x, y) in enumerate(zip(written, meant, strict=False)) if x != y), None)
    if start is None:  # one begins with the other: an ending, as of a plural
        return False
    if len(written) == len(meant):
        exchanged = written[start + 1 :: -1][:2] if start == 0 else written[start + 1 : start - 1 : -1]
        return written[:start] + exchanged + written[start + 2 :] == meant
    short, long = sorted((written, meant), key=len)
    is_doubled = long[start] == long[start - 1] and long.endswith(DOUBLED_BEFORE)
    return short[start:] == long[start + 1 :] and not is_doubled


@lru_cache(maxsize=65_536)
def is_word(word: str) -> bool:
    """Tell whether a word in lower case is one piece of the embedding model's English vocabulary."""
    return tokenizer().token_to_id(word) is not None


def _respelt(text: str, slip: str, meant: str) -> str:
    def spelled(match: re.Match[str]) -> str:
        word = match[0].removesuffix(".")
        if word.casefold() != slip:
            return match[0]
        return meant.capitalize() if word[0].isupper() else meant

    return WORD_OR_CUT.sub(spelled, text)
