"""Reads what a user tells an assistant in a chat: what only takes up an answer, whom "he" means, what was pasted."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import groupby

from nous_online.core.patterns import regex
from nous_online.core.policy import WritingPolicy
from nous_online.language.lexicon import (
    CAUSE,
    CORRECTING,
    COURTESY,
    DATED,
    DECISION,
    HEALTH,
    LEAD_IN,
    LEANING,
    LIKING,
    MEN,
    NO_SUBJECT,
    OTHER_MATTER,
    OWN,
    PREFERENCE,
    REACTION,
    REQUEST,
    RULE,
    SMALL_WORDS,
    SPOKEN_ELSEWHERE,
    STANDING,
    TOLD_RULE,
    UNANCHORED,
    VERBS,
    WE,
    WOMEN,
    english_lead,
    word_list,
)
from nous_online.language.pairs.reading import read, stem
from nous_online.language.writing.lexrank import ASKING, EDGE, OPENERS, content_words, is_note, word_count
from nous_online.language.writing.sentences import CLOSING, TALKING, Sentence, opens_with_self, straighten_apostrophes
from nous_online.language.writing.told_rules import asks_for_rule

POLICY = WritingPolicy()
LEAST_SAID = 2  # content words of a sentence that says something by itself
LONGEST_ANSWER = 10  # words of an answer that is left out before what stands by itself
LONGEST_CHOICE = 6  # words of a choice that says nothing without what there was to choose from
LONGEST_BARE, SHORT_ANSWER = 8, 14  # words of an answer that is told with its question, and that is read with it
LONGEST_QUESTION = 25
FAR = 40  # sentences before one that opens with "he" among which whom it means may stand
LEAST_TOLD = 3  # content words of a sentence that tells how something is, whatever it names
LASTS = (STANDING, RULE, PREFERENCE)
TIMES = (DATED | {f"{day}s" for day in word_list("weekdays")}) - {"may", "march", "mar"}
GONE = regex(
    r"\b(?:was|were|had|did|went|came|got|(?<!\bbe )(?<!\bis )(?<!\bare )(?!(?:call|nam|marri|bas|allow)ed)\w{2,}ed)\b",
    re.IGNORECASE,
)
"""Tells what is over."""
ANSWERS, PERSONS = word_list("answers"), frozenset("he she they il elle ils elles él ella".split())  # noqa: SIM905 (words)
RESTRICTING = frozenset("only just both neither solo sólo seulement nur".split())  # noqa: SIM905 (words)
POINTING_BACK = regex(
    r"\b(?:it(?:'s)?|them|(?:this|that|these|those|there)(?=\W{0,3}\Z|[.,;]|\s(?:is|was)\b)|ça|cela|les deux|los dos"
    r"|eso|both|das (?:ist|war|mach|dach|find)\w{0,3})\b",
    re.IGNORECASE,
)
"""What stands for something said before."""
OURS = regex(rf"\b{WE.pattern}")
INTERJECTIONS = regex(r"\A(?:(?:oh|ah|well|so|haha?|hm+),?\s)++", re.IGNORECASE)
ASKING_FOR = (
    r"(?:(?:and|but|so|or|right|ok) )?(?:how(?: do| can| should| much| many| long| is|'?s)"
    r"|what(?:'?s| is(?! more)| do| does| should| are| would)"
    r"|(?:do|should|can|could|am) I|(?:do|can) (?:you|we|they)|would you"
    r"|any (?:ideas?|tips?|chance)|is (?:it|that|there|this)|are there|why (?:is|are|do|does)|where (?:do|can|is)"
    r"|(?:who|what|how|where|why) on earth|isn't it|right\?)\b"
)
"""How a question begins, also without its mark."""
ASKED = regex(ASKING_FOR, re.IGNORECASE)
TOLD_OF = regex(
    rf"(?:the|this|our|der|die|das|le|la|les|el|los|las)\s(?:[^\W\d_][\w-]{{0,20}}\s){{1,3}}(?:{VERBS.pattern})",
    re.IGNORECASE,
)
"""Opens with what it is about, and a verb."""
NEAR_BEGINNING = 24  # characters of a sentence in which "it" and "them" stand for what the one before told
SAYING_MORE = regex(r"(?:so|which|because|then|cos|plus|except|otherwise)\s", re.IGNORECASE)
"""Opens what follows from the sentence before, or limits it."""
CLAUSE = regex(r"[,;:.!?]\s|\s(?:so|but|and|because|et|mais|y|pero|und|aber)\s")
CHOOSING = regex(
    r"(?:(?:ok|okay|right|so|well|alright|hm{1,3}|gut|also|na gut),? )?"
    r"(?:then|dann|alors|entonces|let's (?:go with|do|take)|(?:i|we)(?:'ll| will) (?:take|go with)|i'm going with"
    r"|(?:[\w'-]{1,20} ){1,3}it is\b|nehmen wir|ich nehme|wir nehmen)",
    re.IGNORECASE,
)
UNDECIDED = regex(
    r"\b(?:undecided|torn|can't decide|not sure (?:whether|if|which)|between|either|schwank\w+|unschlüssig|zwischen"
    r"|hésite|entre|dudo|dudando)\b",
    re.IGNORECASE,
)
"""Says what somebody chooses, and that they have not chosen yet."""
OFFERING = regex(
    r"\b(?:would you|(?:do|did) you want|shall|should (?:I|we|it|the)|(?:can|may|could|will) I|want me|like me"
    r"|(?:help|assist) you|tone|format|wording|version|drafts?|words|sentences|paragraphs|anything else|ready"
    r"|(?:that|this|it) (?:sound|look|work|help)s?"
    r"|soll ich|möchte(?:st|n) (?:du|sie)|willst du|voulez-vous|veux-tu|quieres|prefieres)\b",
    re.IGNORECASE,
)
"""In a question of an assistant about what it is to do."""
LIVING = word_list("of_persons") | word_list("living")
ASKING_ELSEWHERE = regex(
    r"(?:ください|下さい|お願いします|てほしい|(?:です|ます)か|吗|嗎|呢)[\u3002.\uff01!]*\Z|\A(?:请|請|帮我|幫我)"
)
"""How Japanese and Chinese users ask for something, also without a mark of a question."""
HE = regex(
    r"(?:he|his|il|él|er(?! (?:is|zijn|was|waren|staan?|staat|zit|zitten|ligt|komt|gaat)\b)|ihm|sein(?:e[mnrs]?)?)\b",
    re.IGNORECASE,
)
SHE = regex(
    r"(?:she|her|elle|ella|ihr(?:e[mnrs]?)?|sie (?=(?:\w+t|war|wird|will|muss|kann|darf|soll|mag)\b))\b", re.IGNORECASE
)
IT = regex(r"(?:no,? )?it (?!was\b|is\b|has been\b|took\b|seems\b|looks\b|will be\b)", re.IGNORECASE)
"""Opens a sentence about a man, a woman or a thing named before."""
ITS = regex(r"(?:it's|it is|they're|they are|c'est|es (?:ist|sind)|es)\s", re.IGNORECASE)
"""Opens what a user tells themselves after an assistant could not."""
PUT_OFF = regex(
    r"\b(?:(?:do|does|did|ca|have|has|is|are|was|were|could)n't|not|no|nothing|cannot|unable|unsure|nicht|keine?n?|leider"
    r"|pas|aucune?|lo siento)\b",
    re.IGNORECASE,
)
"""In an answer that says nothing of what was asked."""
WHAT = regex(
    r"(?:\A|[,;:.…¿]\s?)(?:and|et|y|und)?\s?(?:who|what|when|where|which|why|how|qui|que|quoi|quel\w*|où|comment|pourquoi|qué"
    r"|quién|cuándo|dónde|cómo|cuál|wer|was|wann|wo|wie|warum)\b",
    re.IGNORECASE,
)
"""Asks who, what or how, so that the answer tells something."""
NEVER_SUBJECT = frozenset[str]().union(
    SMALL_WORDS, NO_SUBJECT, UNANCHORED, ANSWERS, OPENERS, word_list("adverbs"), word_list("never_names")
) - {"dr", "mr", "mrs", "ms"}
NAMED_FIRST = regex(
    r"(?P<name>[^\W\d_a-z](?:[\w-]|\.(?=\w)|(?<=Dr|Mr|Ms|St)\.|(?<=Mrs)\.|'(?!s\b)){1,30}"
    r"(?:\s[^\W\d_a-z](?:[\w-]|\.(?=\w)|'(?!s\b)){0,30}){0,2})"
    rf"(?:'s\s|\s(?:(?:{'|'.join(sorted(word_list('third_person')))})\b|(?i:{VERBS.pattern})))"
)
"""Opens with a name and its verb, as a sentence about whoever is named does."""


def is_question(sentence: Sentence) -> bool:
    """Tell whether a sentence is a question."""
    return sentence.text.rstrip(CLOSING).endswith(("?", "\uff1f"))


def is_asking(sentence: Sentence) -> bool:
    """Tell whether a user of an assistant says a sentence."""
    return (sentence.speaker or "").casefold() in ASKING


def is_passing(text: str) -> bool:
    """Tell whether a user asks an assistant for something, or takes up its answer, and tells nothing that lasts."""
    if any(cue.search(text) for cue in LASTS):
        return False
    if ASKED.match(LEAD_IN.sub("", text)):
        return True
    is_reaction = REACTION.match(text) and not (DECISION.search(text) or CAUSE.search(text) or is_named(text))
    return bool(REQUEST.match(text) or is_reaction)


def is_named(text: str) -> bool:
    """Tell whether a text holds a figure, or a name that does not only open a sentence."""
    return any(map(str.isdigit, text)) or bool(names_inside(text))


def question_before(sentences: Sequence[Sentence], place: int) -> Sentence | None:
    """Return the question a short answer belongs to: the last sentence of the previous speaker, None without one.

    Or what a user asked themselves, where the assistant had no answer (`own_question`).
    """
    answer, before = sentences[place], answered_by_self(sentences, place) or (sentences[place - 1] if place else None)
    after = sentences[place + 1] if place + 1 < len(sentences) else None
    is_countered = after is not None and after.turn == answer.turn and is_question(after)  # "I can't. Half past ten?"
    is_own = before is not None and before.turn != answer.turn and is_asking(before) and is_asking(answer)
    is_of_other = before is not None and (is_own or before.speaker != answer.speaker)
    if before is None or not is_of_other or not is_question(before) or is_countered:
        return None
    if COURTESY.fullmatch(straighten_apostrophes(before.text)):
        return None
    if (answer.speaker or "").casefold() in ASKING and REQUEST.match(straighten_apostrophes(answer.text)):
        return None
    is_short = word_count(answer.text) <= SHORT_ANSWER and word_count(before.text) <= LONGEST_QUESTION
    return before if is_short and not CORRECTING.match(straighten_apostrophes(answer.text)) else None


def is_bare_answer(asked: Sentence | None, answer: Sentence) -> bool:
    """Tell whether a user answers a question about their life in a few words without a verb: "Mattie Walsh.", "Five."

    More may follow behind a comma ("In May, once it is paid."). What an assistant asks about its own work ("Which tone
    would you like?") is none.
    """
    if asked is None or asked.turn == answer.turn or not (is_asking(answer) and is_question(asked)):
        return False
    text = straighten_apostrophes(answer.text)
    if is_asking(asked):  # asked by themselves: "Who is first aider?", and then "Ewa is."
        return word_count(text) <= LONGEST_BARE and not (":" in text or is_question(answer) or is_passing(text))
    is_whole = word_count(text) <= LONGEST_BARE and is_note(text)
    # Of other languages' verbs too few are known to tell a note from a clause.
    head = text if is_whole or SPOKEN_ELSEWHERE & set(text.casefold().split()) else text.split(",", 1)[0]
    is_other = opening(head) in ANSWERS | UNANCHORED or opens_with_self(text) or is_passing(text)
    tells = is_note(head) and not POINTING_BACK.search(head) and (WHAT.search(asked.text) or is_named(head))
    is_short = word_count(text) <= SHORT_ANSWER and word_count(head) <= LONGEST_BARE
    is_told = is_short and tells and word_count(asked.text) <= LONGEST_QUESTION
    question = straighten_apostrophes(asked.text)
    is_offered = OFFERING.search(question.replace(" should ", " ") if asks_for_rule(question) else question)
    return bool(is_told) and not (is_other or is_offered or is_question(answer))


def is_reply(sentences: Sequence[Sentence], place: int) -> bool:
    """Tell whether a user's sentence only takes up what was said before: "Only the oak one", "That's what she said".

    So does a short answer to a question that is not one for who, what or how, which tells something.
    """
    text = straighten_apostrophes(sentences[place].text)
    before = sentences[place - 1] if place else None
    if any(map(str.isdigit, text)) or HEALTH.search(text) or TOLD_RULE.search(text):
        return False
    is_answer = before is not None and before.turn != sentences[place].turn and is_question(before)
    asked = answered_by_self(sentences, place) or (before if is_answer else None)
    if is_bare_answer(asked, sentences[place]) or chosen_from(sentences, place):
        return False
    told = LEAD_IN.sub("", text)
    is_told = TOLD_OF.match(told) or name_at_first(told) or (names_inside(text) and VERBS.search(text))
    if is_answer and not (OWN.match(told) or is_told) and before and not WHAT.search(before.text):
        return word_count(text) <= LONGEST_ANSWER
    said, points = len(content_words(text)), POINTING_BACK.search(text) or opening(text) in UNANCHORED
    if is_named(text) or (OWN.match(text) and not points):
        return False
    return said < LEAST_SAID or bool(said == LEAST_SAID and (points or is_answer))


def says_little(text: str) -> bool:
    """Tell whether all that a user says hangs on something said before: "Fine, I'll take it", "We pay both in May"."""
    plain = straighten_apostrophes(text)
    is_answer = INTERJECTIONS.sub("", plain).partition(" ")[0].strip(EDGE).casefold() in ANSWERS
    points = POINTING_BACK.search(CLAUSE.split(plain, maxsplit=1)[0])
    said, rest = len(content_words(plain)), plain.partition(" ")[2]  # a word that only opens a sentence names nothing
    is_telling = HEALTH.search(plain) or PREFERENCE.search(plain) or is_named(rest)
    is_bare = is_note(plain) and not SPOKEN_ELSEWHERE & set(plain.casefold().split())
    if not is_telling and ((is_bare and not tells_of_life(plain)) or (said < LEAST_SAID and not OWN.match(plain))):
        return True
    most = LEAST_SAID if is_telling else LEAST_SAID + 1
    return bool(points or (is_answer and not is_telling)) and said <= most


def tells_of_life(text: str) -> bool:
    """Tell whether a user tells of themselves, of their family or of health, or tells an assistant a rule."""
    return any(cue.search(text) for cue in (OWN, OURS, HEALTH, MEN, WOMEN, TOLD_RULE))


def holds_today(text: str) -> bool:
    """Tell whether a user says how something is, on a day, or at length: "The oven goes to the scrap man"."""
    words = set(text.casefold().replace("'s", "").split())
    is_told = VERBS.search(text) and not GONE.search(text) and len(content_words(text)) >= LEAST_TOLD
    return bool(is_told or words & TIMES or name_at_first(text))


def tells_briefly(text: str) -> bool:
    """Tell whether a user says in a few words who they are, or what they like or do: "I love sushi", "I'm Bea"."""
    words = {word.strip(EDGE) for word in text.casefold().split()}
    does = words & {"i", "i'm"} and words & LIVING  # not "my own"
    is_of_life = does or PREFERENCE.search(text) or names_inside(text)
    return bool(OWN.match(text) and is_of_life and {*content_words(text)} - LIKING)


def tells_elsewhere(text: str) -> bool:
    """Tell whether a text is in another language than English, of whose verbs few are known, and asks for nothing."""
    return english_lead(text) < 0 and not ASKING_ELSEWHERE.search(text)


def told_stems(text: str) -> frozenset[str]:
    """Return the stems of a text's content words: "restarted" and "restart" are equal."""
    return frozenset(map(stem, content_words(text)))


def opening(text: str) -> str:
    """Return the first word of a text behind what leads in to it, in lower case."""
    return next(iter(LEAD_IN.sub("", text).split()), "").strip(EDGE).casefold()


def leans_back(text: str) -> bool:
    """Tell whether a user's sentence only says more of the one before it: "It opens at six", "Starts on Monday"."""
    plain = straighten_apostrophes(text)
    if OTHER_MATTER.match(plain):
        return False
    if CORRECTING.match(plain) or SAYING_MORE.match(plain):
        return True
    told = LEAD_IN.sub("", plain)
    first = opening(text)
    pointer = POINTING_BACK.search(CLAUSE.split(told, maxsplit=1)[0])
    points = pointer and (pointer.start() <= NEAR_BEGINNING or opens_with_self(told))
    is_short = word_count(told) <= LEAST_TOLD or not is_named(told)
    is_own = opens_with_self(told) or name_at_first(told) or TOLD_OF.match(told)
    says_less = len(content_words(told)) <= LEAST_SAID and is_short and not is_own
    is_left_out = first not in NEVER_SUBJECT and VERBS.match(told) and not (first.endswith("ed") or "'" in first)
    return bool(points or says_less or is_left_out or LEANING.match(told)) or first in UNANCHORED


def without_replies(sentences: Sequence[Sentence], run: Sequence[int]) -> Sequence[int]:
    """Return a run of sentences of one speaker without the first ones in which a user only takes up an answer."""
    if not is_asking(sentences[run[0]]):
        return run
    start = next((at for at, place in enumerate(run) if not is_reply(sentences, place)), len(run) - 1)
    return run[start:]


def named_before(sentences: Sequence[Sentence], place: int) -> Sentence | None:
    """Return the sentence that says of whom a user's sentence speaks that opens with "he" or "her", None without one.

    It is the question it answers, where that names one, or has a word for one of the family ("my dad") or a name, and
    stands before in the same turn or in the user's turn before; a name there is the only one, and opens its sentence.
    For "it" at the beginning of a turn, before a figure or a name, it is the last one with a name of the turn before.
    """
    text = LEAD_IN.sub("", straighten_apostrophes(sentences[place].text))
    if ITS.match(text) and is_named(text):
        return answered_by_self(sentences, place)
    kin = next((kin for pronoun, kin in ((HE, MEN), (SHE, WOMEN)) if pronoun.match(text)), None)
    is_thing = IT.match(text) is not None and is_named(text)
    if not (kin or is_thing) or not is_asking(sentences[place]):
        return None
    own, last = told_before(sentences, place)
    if kin is None:
        return None if own else next((each for each in reversed(last) if names_inside(each.text)), None)
    before = sentences[max(0, place - FAR) : place]
    asked = next((each for each in reversed(before) if each.turn != sentences[place].turn), None)
    if asked and is_question(asked) and not is_asking(asked) and not own and len(names_inside(asked.text)) == 1:
        return asked
    is_sure = len({name for each in last for name in names_in(each.text)}) == 1
    known = [
        *(each for each in reversed(own) if kin.search(each.text) or names_in(each.text)),
        *(each for each in reversed(last) if kin.search(each.text) or (is_sure and name_at_first(each.text))),
        *(each for each in [own_question(sentences, place)] if each and len(names_inside(each.text)) == 1),
    ]
    return known[0] if known else None


def own_question(sentences: Sequence[Sentence], place: int) -> Sentence | None:
    """Return the one question of a user's turn before, where the assistant had no answer and they now tell it."""
    if not is_asking(sentences[place]):
        return None
    before = [each for each in sentences[max(0, place - FAR) : place] if each.turn != sentences[place].turn]
    last = max((each.turn for each in before if is_asking(each)), default=0)
    asked = [each for each in before if each.turn == last and is_asking(each) and is_question(each)]
    answers = [straighten_apostrophes(each.text) for each in before if each.turn > last]
    return asked[0] if len(asked) == 1 and any(PUT_OFF.search(text) for text in answers) else None


def answered_by_self(sentences: Sequence[Sentence], place: int) -> Sentence | None:
    """Return the question of their own that a user answers with the first sentence of their next turn, or None."""
    is_first = place > 0 and sentences[place - 1].turn != sentences[place].turn
    return own_question(sentences, place) if is_first else None


def told_before(sentences: Sequence[Sentence], place: int) -> tuple[list[Sentence], list[Sentence]]:
    """Return what the user tells before a sentence: in the same turn, and in the user's turn before."""
    told = [each for each in sentences[max(0, place - FAR) : place] if is_asking(each) and not is_question(each)]
    own = [each for each in told if each.turn == sentences[place].turn]
    last = [each for each in told if each.turn == max((each.turn for each in told if each not in own), default=None)]
    return own, last


def chosen_from(sentences: Sequence[Sentence], place: int) -> Sentence | None:
    """Return what a user could not decide on before they say so in a few words: "Paperback it is.", None without it."""
    text = sentences[place].text
    if not is_asking(sentences[place]) or not CHOOSING.match(text) or word_count(text) > LONGEST_CHOICE:
        return None
    own, last = told_before(sentences, place)
    return next((each for each in reversed([*last, *own]) if UNDECIDED.search(each.text)), None)


def names_in(text: str) -> set[str]:
    """Return the names in a text: inside it, or at its beginning before a verb."""
    return names_inside(text) | ({first} if (first := name_at_first(text)) else set())


def names_inside(text: str) -> set[str]:
    """Return the names in a text, without what may have its capital only because it opens a sentence."""
    places = {name: text.rfind(name) for name in read(text).names}
    return {name for name, place in places.items() if place > 1 and text[place - 2] not in ".!?:"}


def name_at_first(text: str) -> str | None:
    """Return the name that a text opens with, before its verb, None without one."""
    match = NAMED_FIRST.match(LEAD_IN.sub("", text))
    first = match["name"].split()[0].casefold().strip(".") if match else ""
    return match["name"] if match and first not in NEVER_SUBJECT else None


def explained_turns(sentences: Sequence[Sentence]) -> frozenset[int]:
    """Return the turns of the exchanges in which an assistant explains at length or a user pastes a text."""
    exchanges: list[list[int]] = [[]]
    for (turn, speaker), _ in groupby(sentences, key=lambda each: (each.turn, (each.speaker or "").casefold())):
        exchanges += [[]] if speaker in ASKING else []
        exchanges[-1] += [turn] if speaker in TALKING else []
    long = long_turns(sentences)
    return frozenset(turn for exchange in exchanges for turn in exchange if long.intersection(exchange))


def long_turns(sentences: Sequence[Sentence]) -> frozenset[int]:
    """Return the turns with more words than people tell at once; what a user tells in one paragraph may be longer."""
    blocks = Counter(turn for turn, _ in {(each.turn, each.block) for each in sentences})
    told = {each.turn for each in sentences if is_asking(each) and blocks[each.turn] == 1}
    most = (POLICY.most_answer_words, POLICY.most_request_words)
    return frozenset(turn for turn, words in words_by_turn(sentences).items() if words > most[turn in told])


def words_by_turn(sentences: Sequence[Sentence]) -> Counter[int]:
    """Return the number of words in each turn."""
    words: Counter[int] = Counter()
    for each in sentences:
        words[each.turn] += word_count(each.text)
    return words
