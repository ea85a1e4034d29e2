"""Word lists and wordings in `words.toml`, and the patterns of the offline writer; all for straight apostrophes."""

from __future__ import annotations

import re
import tomllib
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

from nous_online.core.patterns import regex


@cache
def tables() -> dict[str, Any]:
    """Return the content of `words.toml`, read once in a process."""
    return tomllib.loads(files("nous_online.language").joinpath("words.toml").read_text("utf-8"))


def word_list(name: str) -> frozenset[str]:
    """Return the list of words called `name`."""
    return frozenset(tables()["words"][name].split())


def groups(name: str) -> tuple[frozenset[str], ...]:
    """Return the groups of words called `name`, such as `rivals`."""
    return tuple(frozenset(group.split()) for group in tables()[name].values())


def phrases(*names: str) -> re.Pattern[str]:
    """Return a pattern of the wordings of these names, in any case, as whole words where a script has any."""
    listed = [each for name in names for each in tables()["phrases"][name]]
    unspaced = [each for each in listed if UNSPACED.match(each)]
    spaced = "|".join(each for each in listed if each not in unspaced)
    return regex("|".join([rf"\b(?:{spaced})\b", *unspaced]), re.IGNORECASE)


LETTERS = regex(r"[^\W\d_]+")
LAST_LATIN = 0x24F
UNSPACED = regex(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uac00-\ud7ff]")
"""A character of a script whose words have no spaces between them, or endings of their own behind them."""
ARTICLES = frozenset({"a", "an", "the"})
FUNCTION_WORDS = word_list("function_words")
COPULAS = word_list("copulas")
NEGATORS = word_list("negators")
LIKING = word_list("liking")
KIND_NOUNS = word_list("kind_nouns")
ATTRIBUTES = word_list("attributes")
MANY_VALUED = word_list("many_valued")
UNIDENTIFIED = word_list("unidentified")
PROGRESSIVE_STATES = word_list("progressive_states")
FOREIGN_WORDS = word_list("foreign_words")
SMALL_WORDS = FUNCTION_WORDS | FOREIGN_WORDS


@lru_cache(maxsize=8_192)
def is_english(text: str) -> bool:
    """Tell whether a text may be English: Latin letters, and no more foreign small words than English ones.

    In other languages a reader may take what has nothing in common for the same: an earlier one did so of 55 of 1,294
    pairs of strangers. Of 29,000 English statements written for training 36 are taken for foreign; of 264 in other
    languages 231 are.
    """
    words = LETTERS.findall(text.casefold())
    foreign = sum(word in FOREIGN_WORDS or not word.isascii() for word in words)
    own = sum(word in FUNCTION_WORDS and word not in FOREIGN_WORDS for word in words)
    return foreign <= own and (text.isascii() or not any(ord(each) > LAST_LATIN and each.isalpha() for each in text))


MONTHS = {
    "january": "jan", "february": "feb", "march": "mar", "april": "apr", "may": "may", "june": "jun", "july": "jul",
    "august": "aug", "september": "sep", "october": "oct", "november": "nov", "december": "dec",
}  # fmt: skip
MONTH_NAMES = """\
january januar janvier enero gennaio janeiro januari tammikuuta tammikuu stycznia styczeń ledna leden ocak января январь січня січень يناير जनवरी
february februar février febrero febbraio fevereiro februari helmikuuta helmikuu lutego luty února únor şubat февраля февраль лютого лютий فبراير फ़रवरी
march märz mars marzo março maart marts maaliskuuta maaliskuu marca marzec března březen mart марта март березня березень مارس मार्च
april avril abril aprile huhtikuuta huhtikuu kwietnia kwiecień dubna duben nisan апреля апрель квітня квітень أبريل अप्रैल
may mai mayo maggio maio mei maj toukokuuta toukokuu maja května květen mayıs мая май травня травень مايو मई
june juni juin junio giugno junho kesäkuuta kesäkuu czerwca czerwiec června červen haziran июня июнь червня червень يونيو जून
july juli juillet julio luglio julho heinäkuuta heinäkuu lipca lipiec července červenec temmuz июля июль липня липень يوليو जुलाई
august août agosto augustus augusti elokuuta elokuu sierpnia sierpień srpna srpen ağustos августа август серпня серпень أغسطس अगस्त
september septembre septiembre settembre setembro syyskuuta syyskuu września wrzesień září eylül сентября сентябрь вересня вересень سبتمبر सितंबर
october oktober octobre octubre ottobre outubro lokakuuta lokakuu października październik října říjen ekim октября октябрь жовтня жовтень أكتوبر अक्टूबर
november novembre noviembre novembro marraskuuta marraskuu listopada listopad listopadu kasım ноября ноябрь листопада листопад نوفمبر नवंबर
december dezember décembre diciembre dicembre dezembro desember joulukuuta joulukuu grudnia grudzień prosince prosinec aralık декабря декабрь грудня грудень ديسمبر दिसंबर"""  # noqa: E501, RUF001 - a line a month; Turkish has an i without a dot
"""The names of the months in eighteen languages, a line a month, as Unicode CLDR has them."""
ENGLISH_MONTHS = [line.split()[0] for line in MONTH_NAMES.split("\n")]
MONTH_NUMBERS = {
    **{name: number for number, line in enumerate(MONTH_NAMES.split("\n"), start=1) for name in line.split()},
    **{name[:3]: number for number, name in enumerate(ENGLISH_MONTHS, start=1)},
    "sept": 9,
}
DATED = frozenset({*MONTHS, *MONTHS.values(), "noon", "midnight", "tomorrow"}) | word_list("weekdays")
_BELOW_TWENTY = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
NUMBER_WORDS = {word: value for value, word in enumerate(_BELOW_TWENTY.split()) if word != "one"} | {
    word: 10 * value
    for value, word in enumerate("twenty thirty forty fifty sixty seventy eighty ninety".split(), start=2)  # noqa: SIM905 (words)
}
"""Numbers in words, without "one", which is often a pronoun."""
UNITS: dict[str, tuple[str, float]] = {
    word: (dimension, float(factor))
    for dimension, spellings in tables()["units"].items()
    for factor, listed in spellings.items()
    for word in listed.split()
}
"""The dimension of each spelling of a unit, and its size in the base unit."""
OPPOSITES = frozenset(
    pair
    for entry in tables()["opposites"]["pairs"].split()
    for one, _, other in [entry.partition("/")]
    for pair in ((one, other), (other, one))
)
RIVALS = groups("rivals")
NO_SUBJECT, UNANCHORED = word_list("no_subject"), word_list("unanchored")
PREFERENCE, DECISION, RULE, CAUSE, MENDED, PLANNED, HEDGE, REFUSING, INSTRUCTING, VERBS, TRAP, WRONG = map(
    phrases,
    "preference decision rule cause mended planned hedge refusing instructing verbs trap wrong".split(),  # noqa: SIM905 (names)
)
HARMFUL, MEN, WOMEN = map(phrases, ("harmful", "men", "women"))
HEALTH = phrases("health", "harmful")
SPOKEN_ELSEWHERE = SMALL_WORDS - FUNCTION_WORDS
"""Small words of languages whose verbs are in no list, so that nobody can tell a note by its lack of one."""
_DAYS = word_list("weekdays")
ENGLISH_WORDS = FUNCTION_WORDS | word_list("surely_english") | _DAYS | {f"{day}s" for day in _DAYS}
ELSEWHERE_TOO = word_list("elsewhere_too")


def english_lead(text: str) -> int:
    """Return how many more words of a text are English alone than foreign: below 0 it is in another language.

    English alone are days, small words and verbs that no other language in Latin letters has ("i" is Polish as well),
    foreign are small words of other languages, and whatever has other letters than English.
    """
    words = {word.strip('.,;:!?…()"') for word in text.casefold().split()}
    own = sum(word in ENGLISH_WORDS or bool(VERBS.fullmatch(word)) for word in words - ELSEWHERE_TOO)
    return own - sum(word in SPOKEN_ELSEWHERE or not word.isascii() for word in words)


LABELLED = regex(
    r"\A(?:\*{1,2}|_{1,2})?(?:the )?(?:(?P<decision>(?:(?:key|design|\w+al) )?(?:decisions?|choices)(?: made)?|decided"
    r"|agreed|entscheidung|décision|decisión|决定|決定|결정)"
    r"|(?P<result>outcome|results?)|(?P<cause>(?:root )?causes?(?: confirmed| found)?|reason|problem|issue"
    r"|key (?:finding|insight)s?|gotchas?|ursache|cause racine|causa(?: raíz)?|(?:根本)?原因|根因|结论|結論|결론)"
    r"|(?P<fix>fix(?:ed)?|solved|solution|(?:commit|pull request)(?=:\s*fix)|lösung|solución)"
    r"|(?P<commit>commit|pull request)|(?P<lesson>lessons?(?: learned| learnt| to keep)?|takeaways?|learnings?"
    r"|lehren?|leçons?|lecciones|lección|教训|教訓|교훈)"
    r"|(?P<plan>to[- ]?do|action(?: items?)?|next(?: steps?)?|open(?: questions?)?|order|plan|options?(?: \w)?"
    r"|alternatives?|suggest(?:ions?|ed\b[\w ]{0,20})|recommend(?:ations?|ed\b[\w ]{0,20})|workarounds?|approaches"
    r"|questions?|offen|à faire|pendiente|待办|待辦|今後の課題))"
    r"(?:,[^:]{1,30})?\s?(?:[:\uff1a](?:\*{1,2}|_{1,2})?|(?:\*{1,2}|_{1,2})[:\uff1a])",
    re.IGNORECASE,
)
FOUND = regex(
    r"\W{0,4}(?P<cause>(?:(?:now )?(?:i|we)(?:'ve| have)? )?(?:found|got) (?:it|(?:the|an?) (?:\w+ )?"
    r"(?:problems?|issues?|causes?|bugs?|culprit))|(?:the )?(?:root )?cause (?:is |was )?(?:found|confirmed|identified)"
    r"|here(?:'s| is) the (?:\w+ )?(?:root )?cause(?: \w+)?|there it is|找到(?:了|问题|原因)+)\W{0,4}",
    re.IGNORECASE,
)
"""A whole sentence that announces a finding; what was found comes next."""
CORRECTING = regex(
    r"\A(?!oh,? no[.!])(?!no\. ?\d)(?:(?:oh|ah|hm+|well|but|wait|uh)[,.]*\s)*(?:(?:no|nope|nah|nein|nee|non|sorry|"
    r"correction|quatsch)(?=[,.:!\s]|$)"
    r"|wait|actually|scratch that|not (?:the|that|them|so)\b|that isn't|that's (?:not|wrong)|let me correct|"
    r"let's (?:say|make it|call it)(?=\s\D{0,12}\d)|"
    r"my mistake|i was wrong|doch\b|pero si|eso dijo|不是|不对|不對|不行|不[,\uff0c]|いや|いいえ|違)",
    re.IGNORECASE,
)
"""A correction of what was said just before."""
TAKING_BACK = regex(
    r"\A(?:(?:oh|ah|hm+|well|but|ok|okay|uh|um|y|(?P<sure>corrections?|scratch that|strike that|my mistake|i was wrong"
    r"|let me correct(?: that| myself)?|make (?:that|it)|i (?:mean|meant|misspoke)|no,? wait|wait,? no|korrektur"
    r"|quatsch|falsch|ich mein(?:e|te)|nein,? (?:moment|halt|warte)|erreur|je (?:veux|voulais) dire"
    r"|non,? attend(?:s|ez)|corrección|qui(?:ero|se) decir|no,? espera)|(?P<mild>sorry|wait|oops|whoops|hang on|hold on"
    r"|moment(?: mal)?|halt|warte|entschuldigung|pardon|désolée?|attend(?:s|ez)|perd[óo]n|perdona|espera)"
    r"|no|nope|nah|actually|nein|nee|doch|non)(?:[,.:;!…\u2013\u2014-]+\s*|\s))++",
    re.IGNORECASE,
)
"""Opens a sentence in which people take back what they just said: surely, perhaps, or where it says that again."""
SUPPOSING = regex(
    r"(?:\A|[,;:]\s)(?:(?:and|but|so|und|et|y) )?(?:suppos(?:e|ing)(?: that)? \w|what if\b"
    r"|(?:imagine|pretend)(?: that)? (?:i|we|he|she|they|you|it|there)(?:'\w{1,2})?\s"
    r"|(?:let's )?say (?:i|we|he|she|they|it|there) (?:had|was|were|could|\w{2,20}ed)\b"
    r"|(?:angenommen|stell dir vor),? (?:.{0,80}\b(?:wäre|hätte|würde|könnte)n?\b)|angenommen,? (?:ich|wir|es|dass)\b"
    r"|(?:supposons|imaginons)\b|(?:supongamos|imaginemos)\b)"
    r"|\bif (?:i|he|she|it|there) were\b",
    re.IGNORECASE,
)
"""How people suppose what is not so."""
WOULD_IF = (
    regex(
        r"\bif (?:i|we|he|she|they|it|there|(?:my|our|the) \w{1,20}) (?:\w{1,20}ly |only )?(?:was|were|had|could"
        r"|did(?:n't)?|won|lost|got|went|knew|found|made|took|left|gave|lived|\w{2,20}ed)\b"
        r"|\bwenn (?:ich|wir)\b.{1,100}\b(?:wäre|hätte|könnte|würde|käme)n?\b"
        r"|\bsi (?:j'|(?:je|tu|il|elle|on|nous|vous|ils|elles)\s)\w{1,20}(?:ais|ait|ions|iez|aient)\b"
        r"|\bsi (?:yo |\w{1,12} )?\w{0,20}(?:iera|uera|iese|uese)[sn]?\b",
        re.IGNORECASE,
    ),
    regex(
        r"(?<=\w)'d\b|\b(?:would(?:n't)?|(?:wäre|hätte|könnte|würde)n?"
        r"|\w{2,20}r(?:ais|ait|ions|iez|aient|ías?|ían|íamos))\b",
        re.IGNORECASE,
    ),
    regex(r"\A(?!.{0,300}\b(?:said|says|told|promised|agreed|asked|sagte|dit|dijo)\b)", re.IGNORECASE),
)
"""What a clause about what is not so has, all of it: a past condition, what would be then, and nobody who said it."""
JOKING = regex(
    r"(?:\A|[,;:!.…(\u2013\u2014-]\s{0,2})"
    r"(?:(?:haha?|lol|oh|nah|ok|okay|and|but|well|sorry|wait|¡),?\s?){0,3}"
    r"(?:(?:(?:i'm|i am|i was|we're|was|it was|it's|that was|that's|this was)\s)?"
    r"(?:(?:just|only|totally|obviously)\s){0,2}"
    r"(?:kidding|joking|jk|j/k|(?:a|my) (?:little |bad )?(?:joke|prank)|messing with you|pulling your leg"
    r"|(?P<april>april fools?(?:'?s?)?|april,? april|poisson d'avril))"
    r"|(?:(?:das )?(?:war|ist) )?(?:nur|bloß|kleiner) (?:ein )?(?:kleiner )?(?:scherz|spaß|witz)"
    r"|(?:das )?war (?:ein )?(?:scherz|spaß|witz)|ich (?:scherze|mach(?:e)? (?:nur|bloß) spaß)"
    r"|je (?:plaisante|rigole|blague)|c'(?:est|était) (?:juste )?une (?:blague|plaisanterie)"
    r"|(?:es|era|fue) (?:solo |sólo )?(?:una )?broma|(?:solo |sólo )?(?:estoy bromeando|bromeaba))"
    r"(?=\s?(?:[,;:!.…)\u2013\u2014]|-\s|\Z|(?:lol|haha|of course)\b))"
    r"|\s(?:jk|j/k|(?:just|only) (?:kidding|joking))(?=\W{0,8}\Z)",
    re.IGNORECASE,
)
"""A clause that takes back as a joke what is said beside it: "no joke" and "he is always joking" do not."""
CONTRASTING = regex(
    r"(?:but|seriously|actually|really|in fact|aber|ernsthaft|mais|sérieusement|pero|en serio)\b", re.IGNORECASE
)
"""Opens what is meant after a joke."""
REFUSED = regex(
    r"\b(?:not|no|without|instead of|rather than|don't want|nicht|pas(?! de)|sin|sauf)\s(?:[^\s.,;!?]{1,30}\s?){1,4}+"
    r"|(?<!\S)(?:[^\s.,;!?]{1,30}\s){1,4}(?:(?:is|are|'s|was)\s)?(?:out|full|gone|complet|taken|discontinued|excluded|wrong)\b",
    re.IGNORECASE,
)
"""A few words and their refusal: "not the 40", "the 18th is out"."""
STEP = regex(
    r"\A(?:(?:ok|okay|now|next|first|then|so|right|good|great|perfect|alright|and)[,.:!]?\s)*"
    r"(?:let me|let's (?:see|check|look|start|try)|i'll (?:now |just |also |first |then )?(?:do (?:both|it|this)|look|"
    r"check|start|run|read|try|see|do that|take a"
    r"|begin|go|continue|update|create|write|add|fix|use|verify|test)|i(?:'m| am) (?:going to|now)|i need to|now i"
    r"|continue\b|read the (?:output|full|file)|if you need|"
    r"(?:looking|running|reading|checking|starting|trying|connecting|searching|working|waiting)\b)",
    re.IGNORECASE,
)
"""An announced step, which the next lines carry out."""
ANNOUNCED = regex(
    r"\bi(?:'ll| will)\b(?! (?:not|never|always)\b)|\bi(?:'m| am) (?:going|about|ready) to\b"
    r"|\bi(?:'m| am) (?:now |also |just |currently |then )?"
    r"(?!using|keeping|leaving|assuming|missing|seeing|getting|having)\w+ing\b"
    r"|\A(?:[^\W\d_]{1,12}[,.:!]\s)*(?:(?:now|next|first|then|so|and|here|yes|sure)\s)*(?:let me"
    r"|i (?:also |still |now )?need (?:to|the|your)\b"
    r"|i (?:now )?have (?:everything|(?:a |the |all )?(?:clear|complete|full|good|enough))\b|ich werde|je vais|voy a"
    r"|讓我|让我|我(?:來|来|將|将|會|会|先|需要))"
    r"|(?:確認|修正|実行|追加|適用|作成|チェック|整理|調査|コミット|検証|調整|対応)します"
    r"|(?:まとめ|続け|切り分け|合わせ|進め)ます"
    r"|\A(?:still|almost|nearly) (?:\w+ing|done|there)\b|,\s(?:so |and )?let me \w"
    r"|\A(?:to|before) (?:proceed|continue|begin|we begin|start)(?:ing)?\b"
    r"|\A(?:if you(?:'d)? (?:want|like|prefer)|want me to|would you like)\b"
    r"|\bplease (?:run|open|restart|try|let me know|provide|tell|share|confirm|wait|check|paste|type|enter|specify"
    r"|test)\b",
    re.IGNORECASE,
)
"""How an assistant announces a step, offers help, asks for something, or reports progress; results come later."""
ADVISING = regex(
    r"\b(?:if|once(?! (?:per|every|a|in|more)\b)|hopefully|please|wenn|falls|si|could(?! not)|puedes|peux|pouvez"
    r"|kannst|können)\b"
    r"|recommend(?:ed|ation)?s?\b|ください|如果|你可以|建议|建議|请|請"
    r"|\byou(?:'ll| (?:\w+ly )?(?:can|could|may|might|should|must|will|would|need|want))\b"
    r"|\bi(?:'m| am)? (?:\w+ly )?(?:unable|not able|restricted|cannot|can't|could|should|need|apologi[sz]e)\b",
    re.IGNORECASE,
)
"""How an assistant advises, or says what it can't do."""
ENTRY = regex(
    r"\A(?:(?:\*\*[^*]{1,80}\*\*:?\s?[-\u2013\u2014:]?\s|x\s?[-\u2013\u2014:]\s)(?:only )?\w{1,30}(?:s|ed)|\w{1,30}s)\s"
    r"(?:that )?(?:the|an?|no|each|all|any|when|if|\w{1,30}ly|x)\b",
    re.IGNORECASE,
)
"""A sentence without a subject, as in a list of what things do: "**Cache** - stores the pages", "Reads the log"."""
PROPERTY = regex(
    r"\A(?:(?!\b(?:so|we|you|they|i|it|my|your|that|which|to|and|or|but|if|when|tests?|diff|worktree|commit)\b)"
    r"(?:[^,;:.]|[.:]\S)){3,100}\b"
    r"(?:(?:(?:does|do)(?: not|n't)|won't) (?!have|need|want|know|exist|matter|be\b)\w"
    r"|(?<!-)only \w{1,30}s\b|defaults? to |falls? back to "
    r"|(?:uses?|lives?|runs?|expects?|takes?|requires?|returns?|reads?) [^,;:.]{1,80}"
    r"(?:, not |\b(?:instead of|rather than)\b))",
    re.IGNORECASE,
)
"""Opens by saying of a thing what it does not do, only does, or does instead of something else."""
PROPOSING = regex(
    r"\b(?:let's|i(?:'d| would| (?:\w+ )?(?:suggest|propose|recommend))|we (?:could|should|can)|(?:how|what) about"
    r"|recommend|ich würde|wir (?:könnten|sollten)|je propose|on pourrait|propongo|podríamos)\b|建议|建議|提案",
    re.IGNORECASE,
)
"""How somebody proposes what others may turn down."""
FAULT = regex(rf"{WRONG.pattern}|\b(?:problem|issue|bug)s?\b", re.IGNORECASE)
"""Tells of a fault."""
MENDING = regex(rf"{phrases('remedy').pattern}|(?<=\w )(?<!\bfor )(?<!\bfrom )(?<!\bright )now\b", re.IGNORECASE)
"""How somebody tells that what was wrong before is so no more: "is fixed", "now reads", "no longer"."""
FIXING = regex(r"\b(?:fix|correct|repair|resolve)\b", re.IGNORECASE)
"""Names the mending of a fault, done or announced."""
PAST = regex(r"\b(?:was|were|had|did|wasn't|weren't|hadn't|didn't|war|waren|était|estaba)\b", re.IGNORECASE)
"""Tells how something was, which stays true."""
REQUEST = regex(
    r"\A(?:(?:please|now|then|ok|okay|and|also|so)[,\s]+)*(?:run|start|show|open|list|check|read|look|try|generate|create"
    r"|write|give|tell|explain|describe|improve|continue|work on|implement|fix|format|install|build|refactor|debug|find"
    r"|search|help|add|remove|delete|rename|replace|analy[sz]e|summari[sz]e|translate|review|audit|commit|push|proceed|redo|retry|repeat|draw|print|go"
    r"|(?:what|how|why|who|where)(?:'s| (?:is|are|was|were|do|does|did|can|could|should|would|will|to|about|if))"
    r"|(?:can|could|would|will) you)\b",
    re.IGNORECASE,
)
"""How people ask an assistant a question or for one thing now; what is to hold longer matches `STANDING` as well."""
REACTION = regex(
    r"\A(?:(?:oh|ok|okay|cool|great|and|also|so|well),? )*+"
    r"(?:thanks|thank you|sounds|that(?:'s| is| sounds?| looks?| makes?)|you (?:didn't|did|asked|said|told|forgot)"
    r"|i(?:'m| am) (?:glad|curious|wondering|looking for (?:some )?(?:advice|ideas|recommendations|suggestions|tips))"
    r"|i (?:really )?need (?:some |your )?help|i(?:'d| would) (?:like|love) (?:some|your|to (?:hear|know|learn|see))"
    r"|i(?: think i)?(?:'ll| will) (?:\w{1,12}ly |also |be sure to |make sure to )?(?:check|give|look|start|try))\b",
    re.IGNORECASE,
)
"""How somebody takes up what an assistant said, or leads up to what they ask for."""
NO_THANKS = (
    r"(?:no|nein|nee|non|não|nie),? (?:thanks?(?: you)?|danke(?: schön| dir)?|merci|gracias|grazie|obrigad[oa]|dziękuję"
    r"|dank je)"
)
LEAD_IN = regex(
    rf"\A(?:{NO_THANKS}[,.:!]\s"
    r"|(?:oh|and(?! so on)|but(?! for)|und(?! so)|et(?! al)|y|um|uh|hm+|btw|hi|hey|hello|ok|okay|yeah|yes)[,:…]?\s"
    r"|(?:はい|ええ|いいえ|是的?|对|對)[\u3001\uff0c]\s?"
    rf"|(?:{'|'.join(sorted(word_list('openers')))}|of course|by the way|guess what|speaking of [^,]{{1,60}}"
    r"|(?:just )?(?:two|three|a few|a couple of|couple of) (?:quick )?(?:things?|updates?)"
    r"|quick (?:one|update|thing|question)|first(?: off| of all| up| thing)|thinking (?:out loud|aloud)(?: here)?"
    r"|gotta (?:run|go|dash|fly)|for the record|before i forget"
    r"|you know what|tell you what|long story short|heads up|fyi|anyhow|yep|hiya|listen"
    r"|honestly|tbh|to be (?:honest|fair)"
    r"|ja|nein|nee|oui|si|non|sí|sì|sim|não|tak|nie|да|нет|evet"
    r"|bueno|pues|vale|bon|ben|bref|ah|tiens|naja|übrigens|por cierto|au fait|(?:et |y )?(?:otra cosa|autre chose))"
    r"[,:]\s"
    r"|(?:well|so|also|then|alright|anyway|actually|basically|finally|however|of course|by the way)\s(?=(?:i|we|he|she"
    r"|it|they|you|there)(?:'\w{1,2})?\s|(?:the|an?|this|these|those|my|our|his|her|their|your|if|when|since|because"
    r"|yesterday|tomorrow|tonight|today|last|next|every)\s))++",
    re.IGNORECASE,
)
"""What leads from one subject to the next, and belongs to neither: before a comma, or before what opens a clause.

"Besides the choir I have a band", "So far it holds" and "Well water is hard" lose nothing.
"""
OTHER_MATTER = regex(
    r"(?:(?:right|ok|okay|well|bon|bueno|ah|oh)[,.]?\s){0,2}(?:(?:oh|ah),? (?:and|et|y|und)\b|by the way|btw\b|anyway\b"
    r"|also\b|so, |speaking of|(?:and )?another thing|second(?:ly| thing)\b|what i (?:\w+ )?wanted\b|lo que quería\b"
    r"|ce que je voulais\b|was ich wollte\b|(?:et |y )?(?:autre chose|otra cosa|una cosa)"
    r"|par contre|d'ailleurs|au fait|à propos|pour [^,.:;]{1,40} ?:|(?:y )?(?:lo del?|de l[oa]s)\b|por cierto|übrigens"
    r"|noch (?:was|etwas)\b|new one:|(?:first|last) (?:off|of all|one|thing|up)\b)",
    re.IGNORECASE,
)
"""Leads to another matter than the one before."""
STANDING = regex(
    r"\A(?:(?:please|ok|okay|and|also|so|but|no|yes)[,\s]+)*"
    r"(?:(?:do not|don'?t|avoid|only)\b|use\b.{1,80}\b(?:not|instead of|rather than|here|for (?:all|every))\b)"
    r"|(?<!^)(?<!\bi )(?<!\bit )\b(?:must(?![-\u2011])"
    r"|(?:should(?:n't)?(?! (?:\w+ly )?be (?:\w+ly )?\w+ed\b)|ha(?:s|ve) to(?! see))"
    r"(?:(?<=n't)|(?=.{0,200}\b(?:not|never|always|only|every|each|all|any|instead|rather|because|since|when|while|unless|whenever|wherever)\b)))\b"
    r"|\b(?:(?:always|never)(?! \w+(?:ed|ing|[^\Ws]s)\b)|by default|from now on|in (?:the )?future"
    r"|not allowed|whenever|(?:every|each) time"
    r"|immer|niemals|toujours|jamais|siempre|nunca|sempre|всегда|никогда"
    r"|muss|müssen|darf|dürfen|soll(?:en|te)?|künftig|ab (?:jetzt|sofort)|doi(?:t|vent)(?! (?:s'agir|être|avoir))"
    r"|désormais|dorénavant|deben?|hay que|a partir de ahora|deve|должн\w{1,3})\b"
    r"|(?:必须|必須|永远|永遠|以后|以後|今后|今後|总是|總是|始终|禁止|必ず|常に|항상)"
    r"(?!.{0,200}(?:吗|嗎|呢|吧|如何|怎么|怎麼))",
    re.IGNORECASE,
)
"""How people tell an assistant what holds beyond the task at hand: what it must not do, always does, or works with."""
TOLD_RULE = regex(
    r"(?:\A|[,;:.!]\s)(?:(?:and|but|so|please|then|ok|okay)[,\s]+)*(?:(?:do not|don'?t|never(?: ever)?|always|avoid"
    r"|only (?=use|call|write|answer|ask|buy|book))\b(?!\s(?:know|think|care|worry|get|mind|been|again|had|be|was|is"
    r"|ever|even|have|hold|let it go|talk to me about|tell me (?:the|that|it|yet)|ask|\w+(?:ed|ing|[^\Ws]s))\b)\s\w)"
    r"|\b(?:short|brief|plain|longer|courte?s?|brèves?|cortas?|breves?|kurze?)\s(?:answers?|replies|réponses?|respuestas?"
    r"|antworten?)\b"
    r"|\b(?:no|none of (?:those|these|the)|without|pas d[e']|sans|sin|keine)\s?(?:bullet|listes? à|listas?|emojis?"
    r"|markdown)|\bstop (?:it )?with the \w"
    r"|\b(?:from now on|in (?:the )?future|désormais|dorénavant|a partir de ahora|de ahora en adelante|ab jetzt)"
    r",?\s(?:please|always|never|only|don'?t|you|call|use|write|answer|speak|remind|tell|give|send|keep|tu"
    r"|vous|bitte)\b|\bi (?:don't )?(?:want|need|expect|would like) you to\b"
    r"|\byou (?:must|should|are to)(?:n't| not| never| always| only)\b"
    r"|\b(?:when(?:ever)?|if|each time|every time) i (?:say|write|ask|mention|tell you|talk about)\b"
    r"|\b(?:my rule|rule of mine|as a rule|(?:i want|here's) a rule)\b"
    r"|\b(?:under no circumstances|on no account|auf keinen fall|en aucun cas|bajo ningún concepto)\b"
    r"|\A(?:(?:oh|so|and|right|ok|also),?\s){0,2}(?:no|only)\s[\w' ]{3,60},?\s(?:please|pls|ever|at all)\b"
    r"|\b\w+ only,? (?:please|pls)\b|\b(?:please|pls),? no \w"
    r"|\b(?:give|tell|call|write|show|ask|explain) (?:me |it )?(?:\w+ )?always\b"
    r"|(?<!\bwe )(?<!\bi )(?<!\bhe )(?<!\bthey )\balways (?:ask|tell|give|show|write|explain|use|call|remind)\b"
    r"|\bsurtout (?:pas|rien)\b|\A(?:bitte )?(?:immer|niemals|toujours|jamais|siempre|nunca)\s\w",
    re.IGNORECASE,
)
"""How a user of an assistant words a rule in a chat: an order in its form, or a rule that they name as one."""
WISH = regex(
    r"(?:\b(?:i|we) (?:\w+ )?(?:want|need|prefer|like)"
    r"|\A(?:(?:no|nah|ok|okay|then|please)[,.]?\s){0,3}(?:keep|stay|stick))\b"
    r".{1,200}\b(?:because|since|not|instead|never|always|every|each)\b",
    re.IGNORECASE,
)
"""How a user wishes for something, or stays with it, with a reason, or for one thing and not the other."""
WISHING = regex(
    r"(?:and |also |so |then )?(?:let'?s\b|we (?:\w+ )?(?:need|want|should|could|can(?!'t|not)|have to)\b)",
    re.IGNORECASE,
)
"""How a user opens a wish for what is to be done now."""
AT_ONCE = regex(
    r"\b(?:for now|this time|right now|yet"
    r"|(?:are|is|do|does|should|can|could|will|would) (?:any|we|you|i)|for the moment"
    r"|make sure (?:that )?(?:it|this|everything)"
    r"|just (?:a|an|the|do|continue|commit)"
    r"|(?:do not|don'?t|never|always) \w+ (?:it|this|that|them)"
    r"|(?:do not|don'?t) (?:edit|modify|change|write|implement|run commands)|your user|the user's next"
    r"|i (?:\w+ )?(?:like|love) (?:the|this|that|it|your|how))\b",
    re.IGNORECASE,
)
"""How a user limits what they say to the task at hand."""
PASSING = regex(
    r"\b(?:now|yet|still|today|currently|initially|first tried|so far|for the moment"
    r"|needs? to|needs (?:an?|\w+ing)|remains?"
    r"|pending|unrelated|pre-existing|not related|blocked by|attempts?|you (?:asked|requested|wanted|said)"
    r"|(?:PR|pull request) #?\d+|this (?:session|environment|PR|pull request|run)"
    r"|(?:is|are|has|have) (?:the |a )?wrong"
    r"|jetzt|noch|derzeit|maintenant|encore|actuellement|ahora|todavía)\b|现在|現在|目前|正在|还没|還沒",
    re.IGNORECASE,
)
"""How an assistant at work tells a state that its next steps change."""
RAN = regex(r"\A(?:ran:? )?`[^`]{1,300}`:?(?: \(?(?:passe[sd]|succeed(?:s|ed)|works?|ok)\b\)?)?[.:]?\Z", re.IGNORECASE)
"""A command by itself, or with its result: "`make test` passed"."""
OFFERS_HELP = (
    r"(?:(?:how (?:can|may) I help|what can I do for)(?: you)?|wie kann ich (?:ihnen |dir )?helfen"
    r"|was kann ich für (?:sie|dich) tun|(?:comment |que )puis-je (?:vous aider|faire pour vous)"
    r"|en qué (?:le |te )?puedo ayudar(?:le|te)?)(?: today| heute| hoy)?[.?!]*"
)
REMEMBER_THIS = regex(
    r"\A(?:(?:hey|hi|hello|ok|okay|so|and|please)[,!.]*\s)*(?:can|could|would|will) you (?:please )?"
    r"(?:(?:remember|note(?: down)?|keep in mind|make a note)(?:,? please)?(?: that|:)?"
    r"|(?:remember|note(?: down)?|keep|save|store|log|hold on to)\s[^:?.]{1,80}:)\s+(?=\S+ \S+ \S)",
    re.IGNORECASE,
)
"""A request in the form of a question to remember what stands behind it."""
COURTESY = regex(
    rf"\A{OFFERS_HELP}\Z|\A{NO_THANKS}[.!]?\Z|"
    r"\A(?:(?:oh|ah|ha|so|well|and|but|ok|okay)[,.!]*\s)*(?:(?:hi|hello|hey|hiya|hallo|bonjour|hola|"
    r"good (?:morning|evening|afternoon|night)|happy (?:new year|birthday|easter|christmas|holidays)|"
    r"morning|thanks?|thank you|thx|ta|cheers|welcome|bye|goodbye|see you|sorry|great|nice|lovely|perfect|"
    r"super|good|fine|toll|prima|génial|genial|parfait|perfecto|"
    r"understood|noted|right|sure|yes|yeah|yep|no|ok|okay|done|agreed|true|fair|wow|ouch|haha?|lol|danke|"
    r"mea culpa|my bad|(?:my )?apologies|oops|whoops|"
    r"cześć|dzień dobry|dziękuję|dzięki|grazie|ciao|buongiorno|obrigad[oa]|olá|tack|hej|merhaba|"
    r"teşekkür(?:ler| ederim)|спасибо|привет|здравствуйте|شكرا|مرحبا|"
    r"bitte|merci|gracias|buenos días|buenas(?: tardes| noches)?|"
    r"bonsoir|bonne (?:nuit|journée|soirée)|(?:guten|schönen) (?:tag|abend|morgen|feierabend)|buen día|"
    r"venga|gern|einen moment|never mind|one (?:moment|sec)|"
    r"hold on|come in|please)\b[\s,.!?…:)-]*+)"
    rf"(?:(?:[^\W\d_]++[\s,.!?…:)]*+){{0,3}}(?:{OFFERS_HELP})?"
    r"|(?:[^\W\d_]++[\s,.!?…:)]*+){0,5}?(?:speaking|am apparat)[.!]*)"
    r"|\A(?:ありがとう|どうも|こんにちは|おはよう|こんばんは|はじめまして|よろしく|わかりました|了解|谢谢|謝謝|你好|您好|好的|明白)"
    r"\w{0,8}[\u3002.\uff01!\u3001]*\Z",
    re.IGNORECASE,
)
"""A courtesy and at most three more words, an offer of help behind it, or the name of who answers the telephone."""
TALLY = regex(
    r"\b(?:all\s)?(?:(?<!\d,)\d[\d,]{0,9}|the|no|one|every)\s(?:\w+\s)?(?:tests?|checks?|tasks?|todos?|warnings?|errors?|"
    r"issues?|failures?|builds?)\b"
    r"(?=.{0,40}\b(?:pass|passed|passing|passes|fail|failed|failing|fails|closed|done|green|complete|"
    r"completed|ok|clean|left)\b)",
    re.IGNORECASE,
)
"""A passing state: "all 141 tests pass"."""
OWN = regex(
    r"\b(?:I|I'(?:m|ve|d|ll)|[Mm](?:y|e|yself|ine|oi|ich|ein(?:e[mnrs]?)?|eus?|inhas?|ijn?)|[Ii](?:ch|k)|[Jj](?:e|')"
    r"|[Tt]engo|[Ss]oy|[Ee]stoy|mir|mon|[Yy]o|(?<!\d )[Mm]is?|[Cc]onmigo|[Ee]u|(?i:я|мне|меня|мой|моя|моё|мои))\b"
    r"|我(?![们們])|私|저는|제가"
)
"""Words by which somebody speaks of themselves, in capitals none: "EU", "Mon 8 Dec" and "5 mi" are other words."""
WE = regex(r"(?:[Ww]e(?:'(?:re|ve|d|ll))?|[Oo]urs?|us|(?i:wir|uns|unser(?:e[mnrs]?)?|nous|notre|nos|nosotr[oa]s))\b")
"""Words that open a statement of several people."""
ADDRESSING = regex(
    r"\b(?:(?i:you(?:'(?:re|ve|d|ll))?|yours?|let's|dich|dein(?:e[mnrs]?)?|euch|vous|votre|vos|toi|usted(?:es)?)"
    rf"|{WE.pattern})"
)
"""Words that nobody can place who does not know who speaks to whom; German "du" is French for "of the"."""
ALTERNATIVES = regex(r"\b(?:or|oder|ou)\b", re.IGNORECASE)
"""Of two things that were offered, the one that was not turned down stays."""
LEANING = regex(
    r"(?:(?:i|we)(?:'ve)? )?(?:fixed|solved|resolved|handled|avoided) (?:by|this|that|it)\b"
    r"|(?:it|this|that|they)'(?:s|re)\b"
    r"|(?:one|two|three|four|both|all|some|most|none)(?: of (?:them|these|those))? (?:is|are|was|were)\b"
    r"|(?:it|this|that|they|these|those) (?:\w{1,20}ly )?(?:\w{1,20}s|are|were|all)\b",
    re.IGNORECASE,
)
"""Opens a sentence that tells how something was mended or what follows, and what in the sentence before alone."""
REPLY = regex(
    r"[\d'\"]|(?:is|are|do|does|did|should|can|could|will) (?:it|there|this|that|we|i|you|the)\b", re.IGNORECASE
)
"""Opens an answer by the number of a question, a quotation, or a question without its mark."""
QUOTED = regex(r"`[^`]{1,300}`|\"[^\"]{1,300}\"")
"""A name in code, or what is quoted."""
QUOTING_ERROR = regex(
    r"\b[A-Z]\w{0,60}(?:Error|Exception)\b|\bERROR\b|^(?:[A-Z]\w{1,30} )?[Ee]rrors?:"
    r"|\bline \d{1,7},? col(?:umn)? \d|\(use \"git "
)
"""What a program says, pasted."""
TAG = regex(r"</?[a-z][\w-]{1,40}[ >]|[-`~]{3}|#{1,6}\s")
"""Opens a block of a document, or of a prompt that a program wrote."""
