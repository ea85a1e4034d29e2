"""Extracts the points of a transcript: statements by one speaker that stay true, each reworded to stand alone.

A point is scored by its form, its figures and names, and by word lists for decisions, causes, fixes and lessons. The
lists cover English, German, French and Spanish; in other languages only form, figures and names count.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from nous_online.core.patterns import regex
from nous_online.core.policy import WritingPolicy
from nous_online.language.lexicon import (
    ADVISING,
    ALTERNATIVES,
    ANNOUNCED,
    AT_ONCE,
    CAUSE,
    CORRECTING,
    COURTESY,
    DECISION,
    ENTRY,
    FOUND,
    HEALTH,
    HEDGE,
    INSTRUCTING,
    LABELLED,
    LEANING,
    MENDED,
    NO_SUBJECT,
    OTHER_MATTER,
    OWN,
    PASSING,
    PLANNED,
    PREFERENCE,
    PROPERTY,
    PROPOSING,
    QUOTED,
    QUOTING_ERROR,
    RAN,
    REFUSED,
    REFUSING,
    REPLY,
    REQUEST,
    RULE,
    STANDING,
    STEP,
    TAG,
    TALLY,
    TRAP,
    UNANCHORED,
    UNSPACED,
    VERBS,
    WE,
    WISH,
    WISHING,
    is_english,
    tables,
    word_list,
)
from nous_online.language.minilm import Vectors
from nous_online.language.pairs.guards import differences
from nous_online.language.pairs.reading import normalise, read
from nous_online.language.writing.chats import (
    CHOOSING,
    ITS,
    PERSONS,
    RESTRICTING,
    chosen_from,
    holds_today,
    is_asking,
    is_bare_answer,
    is_passing,
    leans_back,
    named_before,
    opening,
    question_before,
    says_little,
    tells_briefly,
    tells_elsewhere,
    tells_of_life,
    told_stems,
    without_replies,
    words_by_turn,
)
from nous_online.language.writing.dates import with_full_dates
from nous_online.language.writing.findings import keeping_score
from nous_online.language.writing.lexrank import (
    ASKING,
    ASSISTANTS,
    EDGE,
    content_words,
    first_words,
    is_note,
    lexrank,
    needs_name,
    plain_opening,
    summary_text,
    without_openers,
    word_count,
)
from nous_online.language.writing.sentences import (
    CLOSING,
    ENDINGS,
    Sentence,
    is_prose,
    opens_with_self,
    straighten_apostrophes,
)
from nous_online.language.writing.told_rules import REQUESTED, asks_for_rule, states_rule
from nous_online.language.writing.unreal import unreal_sentences

POLICY = WritingPolicy()
MOST_WORDS = 40  # of one point; a longer run of sentences becomes several
MOST_LEANING = 60  # … but what only says more of the sentence before it stays with it
CHATTING = ASKING | ASSISTANTS
LEAST_WORDS, LEAST_OF_ONESELF = 4, 2  # of a point, and of one of a user's health or life; fewer say nothing alone
NEAR = 8  # sentences before a correction that it can refer to
ASKS_OR_LEADS = ("?", "？", ":", "：", ",")  # noqa: RUF001 — ends of questions, lead-ins and salutations
LEAST_COMMON = 2  # content words a refusal shares with the sentence it refuses, and what mends a fault with the fault
MANY_COMMON = 3  # … however long the two are
MOST_COUNTED, MOST_TOLD = 16, 40  # words of what an agent or a user says: more make it no better
FOREIGN = 1.8  # of statements in other languages this much higher scores are worth as much (decision 0037)
_DIGITS = regex(r"\d+(?:[.,:/h]\d+)*")
CUES = {
    "decision": DECISION, "cause": CAUSE, "mended": MENDED, "planned": PLANNED, "rule": RULE, "preference": PREFERENCE,
    "hedge": HEDGE, "tally": TALLY, "refuses": REFUSING, "trap": TRAP, "wish": WISH, "property": PROPERTY,
}  # fmt: skip
LASTING: Mapping[str, float] = {
    "words": 2.0, "answer": 0.8, "density": 1.4, "figures": 0.4, "planned": 0.3, "label": 1.0, "preference": 1.0,
    "standing": 1.5, "own": 0.5, "health": 2.0, "hedge": -1.5, "tally": -3.0,
}  # fmt: skip
"""Weights for a point worth keeping as a fact: a logistic regression on the 24 transcripts of `benchmarks episodes`,
rounded (area under the curve 0.83 on transcripts left out). Labels, preferences, tallies, what a user tells an
assistant to always or never do, what they tell of themselves and of health are set by hand: those transcripts hardly
have any."""
OUTCOME: Mapping[str, float] = {
    "density": 1.5, "mended": 1.0, "rank": 1.5, "refuses": 0.4, "decision": 0.9, "cause": 0.6,
    "place": 0.5, "unanchored": -1.0, "hedge": -1.0,
}  # fmt: skip
"""Weights for a point that states a decision, a cause or a fix, fitted in the same way (0.74)."""
LASTING_LABELS = frozenset({"decision", "cause", "lesson"})
DECIDED_LABELS = frozenset({"decision", "lesson"})
"""Labels that nobody writes by chance: what stands behind them counts however it is worded."""
DEEDS = frozenset(" ".join(tables()["actions"]["deeds"]).split()) | word_list("looking") - {"use"}
POINTING = word_list("pointing")
"""What a sentence opens with that tells of something said before, or of oneself."""
SOME_NOUN = regex(r"(?:[^:]{1,20}: )?the (?P<noun>[^\W\d_]{4,20}) ", re.IGNORECASE)
"""Opens with a thing that the sentence before has named."""
NEAREST = 3  # sentences before one without a subject in which that may stand
SEATED = (CAUSE, DECISION, MENDED)
HOLDING = ("decision", "cause", "mended", "planned", "rule", "preference", "trap", "wish", "property")
POINTS_BACK = regex(r"\b(?:it|them|this|that|these|those|there|so)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Point:
    """Consecutive sentences of one speaker and the question they answer; `places` are their indexes.

    `about` is the sentence before that says of whom they speak that open with "he" or "her".
    """

    places: tuple[int, ...]
    sentences: tuple[Sentence, ...]
    question: Sentence | None = None
    about: Sentence | None = None

    @property
    def text(self) -> str:
        """The sentences as written."""
        return " ".join(sentence.text for sentence in self.sentences)

    @property
    def label(self) -> str | None:
        """The label of the first sentence, None without one."""
        return self.sentences[0].label

    @property
    def speaker(self) -> str | None:
        """The speaker as written in the transcript, None where nobody is named."""
        return self.sentences[0].speaker


def points_of(sentences: Sequence[Sentence]) -> list[Point]:
    """Return the points of a transcript, without courtesies, questions, announced steps and corrected statements."""
    passing = corrected_sentences(sentences) | unreal_sentences(sentences)
    found: list[Point] = []
    for _, block in groupby(range(len(sentences)), key=lambda place: (sentences[place].turn, sentences[place].block)):
        for whole in statement_runs(sentences, list(block), passing):
            found += standing_part(sentences, without_replies(sentences, whole))
    return found


def standing_part(sentences: Sequence[Sentence], run: Sequence[int]) -> list[Point]:
    """Return a run as a point, a user's without the first sentences that hang on something said before; or nothing."""
    starts = range(len(run) if is_asking(sentences[run[0]]) else 1)
    points = (point_of(sentences, run[start:]) for start in starts)
    return [each for each in points if stands_alone(each)][:1]


def point_of(sentences: Sequence[Sentence], run: Sequence[int]) -> Point:
    """Return a run of sentences as a point, with the question it answers and whom it speaks of."""
    told = tuple(sentences[place] for place in run)
    about = named_before(sentences, run[0]) or chosen_from(sentences, run[0])
    return Point(tuple(run), told, question_before(sentences, run[0]), about)


def stands_alone(point: Point) -> bool:
    """Tell whether a point can be read by itself: it has words enough, and is no mere note that answers a question.

    Nor does all that a user says in it hang on something said before. What they tell of health, or of themselves, may
    be short.
    """
    if is_asking(point.sentences[0]) and is_hanging(point):
        return False
    text = standalone_text(point)
    plain = straighten_apostrophes(text)
    if is_asking(point.sentences[0]) and (HEALTH.search(plain) or tells_briefly(plain)):
        return word_count(text) >= LEAST_OF_ONESELF
    is_answer = point.question is not None and not (point.label or is_joined(point))
    is_mere_note = is_note(text) and not (OWN.search(plain) or WE.match(text))
    return word_count(text) >= LEAST_WORDS and not (is_answer and is_mere_note)


def is_hanging(point: Point) -> bool:
    """Tell whether what a user says hangs on something said before: it opens with "he" and nothing says who that is."""
    text = straighten_apostrophes(point.text)
    is_whole = point.label or is_joined(point) or is_told_after_asking(point) or states_rule(text)
    if is_whole or UNSPACED.search(text):
        return False
    if says_little(text):
        return True
    says_more = point.about is not None and (len(content_words(text)) > LEAST_COMMON or _DIGITS.search(text))
    is_of_somebody = opening(text) in PERSONS and not says_more
    is_answer = point.question is not None and bool(text[:1].isdigit() or opening(text) in RESTRICTING)
    return (is_of_somebody or is_answer) and not HEALTH.search(text)


def is_told_after_asking(point: Point) -> bool:
    """Tell whether a user chooses from what they could not decide on before, or tells what they had asked for."""
    text = straighten_apostrophes(point.text)
    return point.about is not None and bool(CHOOSING.match(text) or ITS.match(text))


def is_joined(point: Point) -> bool:
    """Tell whether a point is told with its question: among people, and in a chat where it says nothing without it."""
    if is_bare_answer(point.question, point.sentences[0]):
        return True
    speakers = {(each.speaker or "").casefold() for each in (point.question, *point.sentences) if each}
    return point.question is not None and not speakers & CHATTING


def statement_runs(
    sentences: Sequence[Sentence], places: Sequence[int], passing: frozenset[int]
) -> Iterator[list[int]]:
    """Yield runs of neighbouring statements in one block, of at most `MOST_WORDS` words each.

    A label opens one, and so does each sentence of a user that leans on nothing said before: one matter, one fact. What
    leans on the one before makes it longer, up to `MOST_LEANING` words.
    """
    held: list[int] = []
    for place in places:
        is_held = place not in passing and is_statement(sentences[place])
        words = word_count(" ".join(sentences[each].text for each in [*held, place]))
        before = sentences[held[-1]].text if held else ""
        leans = is_asking(sentences[place]) and leans_on(sentences[place].text, before)
        is_full = words > (MOST_LEANING if leans else MOST_WORDS) and not LEANING.match(sentences[place].text)
        may_open = bool(held) and is_asking(sentences[place]) and not leans
        is_own = may_open and opens_point(sentences, held, place)
        if held and (not is_held or is_full or is_own or LABELLED.match(sentences[place].text)):
            yield held
            held = []
        held += [place] if is_held else []
    if held:
        yield held


def opens_point(sentences: Sequence[Sentence], held: Sequence[int], place: int) -> bool:
    """Tell whether a sentence that leans on nothing opens a point: where what is held says something without it."""
    return bool(OTHER_MATTER.match(sentences[place].text)) or stands_alone(point_of(sentences, held))


def leans_on(text: str, before: str) -> bool:
    """Tell whether a user's sentence belongs to the one before: it leans back, or is a bare note: "48 a head"."""
    is_bare = is_note(text) and not (is_note(before) or opens_with_self(text) or OTHER_MATTER.match(text))
    return leans_back(text) or is_bare


def is_statement(sentence: Sentence) -> bool:
    """Tell whether a sentence is a statement: no heading, question, courtesy, request or announced step."""
    text, speaker = straighten_apostrophes(sentence.text), (sentence.speaker or "").casefold()
    if is_decided(text):
        return True
    plain = _DIGITS.sub("0", text) if speaker in ASKING else text  # people tell numbers: "It's 07700 900118."
    if sentence.is_heading or not is_prose(plain) or text.rstrip(CLOSING).endswith(ASKS_OR_LEADS):
        return False
    if speaker in ASSISTANTS and ANNOUNCED.search(text):
        return False
    is_cut = text.count("`") % 2 or text.count("**") % 2  # in the middle of code or bold: "`ls ..."
    if is_cut or (speaker in ASKING and is_passing(text)):
        return False
    is_empty = COURTESY.fullmatch(text) or FOUND.fullmatch(text)
    is_step = speaker not in ASKING and (STEP.match(text) or RAN.match(text))
    return not (is_empty or is_step or INSTRUCTING.search(text))


def is_decided(text: str) -> bool:
    """Tell whether a text opens with "Decision:" or "Lesson:" and says what."""
    label = LABELLED.match(text)
    said = text[label.end() :].strip() if label else ""
    is_blank_form = said.startswith(("[", "<", "{")) and said.endswith(("]", ">", "}"))
    return label is not None and label.lastgroup in DECIDED_LABELS and bool(said.strip(EDGE)) and not is_blank_form


def without_pasted_turns(sentences: Sequence[Sentence]) -> list[Sentence]:
    """Return the sentences without what a user pastes or a program sends in their name: long turns, and documents.

    Headings stay, what is labelled as decided, and what was dictated: long paragraphs of somebody who says "I".
    """
    asked = [each for each in sentences if (each.speaker or "").casefold() in ASKING]
    documents = {each.turn for each in asked if each.is_heading or TAG.match(each.text)}
    blocks = Counter(turn for turn, _ in {(each.turn, each.block) for each in asked})
    own = Counter(each.turn for each in asked if OWN.search(straighten_apostrophes(each.text)))
    long = {turn: count for turn, count in words_by_turn(asked).items() if count > POLICY.most_request_words}
    dictated = {turn for turn in own if POLICY.dictated_words * blocks[turn] < long.get(turn, 0) < POLICY.most_dictated}
    documents |= long.keys() - dictated
    return [each for each in sentences if each.turn not in documents or each.is_heading or is_decided(each.text)]


def is_standing(sentence: Sentence) -> bool:
    """Tell whether a user tells an assistant in a sentence what holds beyond the task at hand."""
    text = straighten_apostrophes(sentence.text)
    first = next(iter(without_openers(text.split())), "").casefold()
    is_clear = (sentence.speaker or "").casefold() in ASKING and first not in UNANCHORED and not REPLY.match(text)
    is_asked = REQUEST.match(text) and not RULE.search(text)
    return is_clear and not is_asked and is_statement(sentence) and bool(STANDING.search(QUOTED.sub("x", text)))


def is_report(sentence: Sentence) -> bool:
    """Tell whether a sentence tells in a session with tools what came of it: no step, state of a minute, or file name.

    Of the user only what holds longer is told, and the answers to questions.
    """
    text = straighten_apostrophes(sentence.text)
    if (sentence.speaker or "").casefold() in ASKING:
        return bool(LABELLED.match(text)) or is_standing(sentence)
    is_plain = not (PASSING.search(text) or TALLY.search(text) or ADVISING.search(text))
    is_told = VERBS.search(text) or UNSPACED.search(text) or len(_DIGITS.findall(text)) > 1
    label = LABELLED.match(text)
    return label.lastgroup != "plan" if label else is_plain and bool(is_told)


def is_finding(point: Point) -> bool:
    """Tell whether a point in an agent's session is a finding: a cause, a decision, a rule, a lesson.

    What the agent merely did stands in the code and in the commit; what it plans, what only looks at something said
    before, and what it is asked to do or is told of a fault, passes.
    """
    text = straighten_apostrophes(point.text)
    if is_decided(text):
        return True
    plain = QUOTED.sub("x", text)
    if (point.speaker or "").casefold() in ASKING:
        return is_kept_wish(point, text, plain)
    own = LABELLED.match(plain)
    rest = " ".join(without_openers(plain[own.end() if own else 0 :].split()))
    is_whole = own or point.label == "decision" or (VERBS.search(plain) and text.rstrip(CLOSING).endswith(ENDINGS))
    is_named = point.label in LASTING_LABELS and is_whole
    is_own = OWN.search(straighten_apostrophes(point.sentences[0].text))
    is_passing = point.label == "plan" or is_own or any(cue.search(plain) for cue in (HEDGE, PASSING))
    is_lasting = is_named or CAUSE.search(plain) or TRAP.search(plain) or PROPERTY.match(plain)
    return bool(is_lasting) and not (is_passing or is_partial(point, rest) or not (own or is_anchored(text)))


def is_partial(point: Point, rest: str) -> bool:
    """Tell whether a point leans on something said before, or says what to do; `rest` is its text without a label."""
    pointing = POINTING
    if not LABELLED.match(point.text):
        pointing = pointing | NO_SUBJECT if point.label else pointing | NO_SUBJECT | DEEDS
    is_reference = rest.startswith(("[", "(", "\uff08", "#", "http"))
    text = straighten_apostrophes(point.text)
    return (
        is_reference or first_word(rest) in pointing or bool(LEANING.match(text) or ENTRY.match(QUOTED.sub("x", text)))
    )


def finding_within(point: Point, sentences: Sequence[Sentence]) -> Point:
    """Return a point without the sentences before its first finding that name nothing: "You're right. Use …".

    Where its other sentences make it none, only that finding is returned, with the sentence that says what it is about.
    """
    point = without_requests(point)
    found = [is_finding(Point(point.places[i : i + 1], (each,))) for i, each in enumerate(point.sentences)]
    if True in found:
        named = [is_anchored(straighten_apostrophes(each.text)) for each in point.sentences]
        start, first = next(i for i in range(len(found)) if found[i] or named[i]), found.index(True)
        whole = replace(point, places=point.places[start:], sentences=point.sentences[start:])
        alone = replace(point, places=point.places[first : first + 1], sentences=point.sentences[first : first + 1])
        point = whole if is_finding(whole) else alone
    return point if point.about else replace(point, about=spoken_of(sentences, point))


def spoken_of(sentences: Sequence[Sentence], point: Point) -> Sentence | None:
    """Return the sentence that says what a point without a subject is about, None where it has one or none says it.

    An order of a user ("Read from the replica") is about what a sentence just before tells with one of its words, a
    decision about the fault told before it, and "the worker" about `notify-worker`.
    """
    place, text = point.places[0], straighten_apostrophes(point.sentences[0].text)
    if is_decided(text):
        return None
    before = [each for each in reversed(sentences[max(0, place - NEAREST) : place]) if is_statement(each)]
    own = [each for each in before if each.turn == sentences[place].turn]
    if not is_asking(point.sentences[0]):
        match = SOME_NOUN.match(text)
        endings = tuple(f"{joint}{match['noun'].casefold()}" for joint in "-_/") if match else ()
        return next((each for each in own if any(word.endswith(endings) for word in code_words(each.text))), None)
    if DECISION.search(text) and own and own[0] is sentences[place - 1]:
        return None if is_requested(own[0]) or own[0].block != sentences[place].block else own[0]
    is_rule = is_standing(point.sentences[0]) or states_rule(text)
    if not is_rule or first_word(plain_opening(text)) not in REQUESTED | RESTRICTING:
        return None
    words = told_stems(text)
    return next((each for each in own or before if words & told_stems(each.text) and not is_requested(each)), None)


def code_words(text: str) -> list[str]:
    """Return the words of a text without the punctuation around them, in lower case."""
    return [word.strip(EDGE).casefold() for word in text.split()]


def without_requests(point: Point) -> Point:
    """Return what a user tells without the requests behind it: "We go for Karpenter. Prepare the module"."""
    last = len(point.sentences)
    while last > 1 and is_asking(point.sentences[0]) and is_requested(point.sentences[last - 1]):
        last -= 1
    return replace(point, places=point.places[:last], sentences=point.sentences[:last])


def is_requested(sentence: Sentence) -> bool:
    """Tell whether a sentence opens with what is to be done, or with what the agent did, and holds no longer."""
    text = straighten_apostrophes(sentence.text)
    is_of_now = first_word(plain_opening(text)) in REQUESTED | {"you", "you've"}
    return is_of_now and not (is_standing(sentence) or states_rule(text))


def is_kept_wish(point: Point, text: str, plain: str) -> bool:
    """Tell whether a user tells an agent what lasts: a rule, a preference, a choice, or what "we" do."""
    if HEDGE.search(plain) or AT_ONCE.search(text):
        return False
    if any(is_standing(each) or states_rule(straighten_apostrophes(each.text)) for each in point.sentences):
        return not QUOTING_ERROR.search(text)
    if is_joined(point) and point.question:
        return asks_for_rule(straighten_apostrophes(point.question.text))
    is_told = point.label in LASTING_LABELS or any(cue.search(plain) for cue in (WISH, DECISION, PREFERENCE))
    is_asked = WISHING.match(text) or ADVISING.search(plain) or first_word(plain) in DEEDS
    is_pointing = POINTS_BACK.search(text) and not is_anchored(text)
    return bool(is_told or WE.match(plain_opening(text))) and not (is_asked or is_pointing)


def first_word(text: str) -> str:
    """Return the first word of a text in lower case."""
    return first_words(text, 1).strip(EDGE).casefold()


def is_anchored(text: str) -> bool:
    """Tell whether a text names something: a name, something in code or in bold, a figure."""
    reading = read(text)
    places = map(text.rfind, reading.names)  # the first word of a sentence may be no name
    is_named = any(place > 1 and text[place - 2] not in ".!?:" for place in places)
    return bool(is_named or reading.identifiers or QUOTED.search(text) or _DIGITS.search(text) or "**" in text)


def is_about_self(point: Point) -> bool:
    """Tell whether a user says something about themselves."""
    return (point.speaker or "").casefold() in ASKING and bool(
        OWN.search(straighten_apostrophes(point.text)) or WE.match(point.text)
    )


def is_too_short(text: str) -> bool:
    """Tell whether a sentence says next to nothing without its neighbours: "Hm.", "Partly.", "gotta run"."""
    return len(content_words(text)) < LEAST_COMMON and not _DIGITS.search(text)


def corrected_sentences(sentences: Sequence[Sentence]) -> frozenset[int]:
    """Return the indexes of what the next sentence corrects, a turn refuses, or is refused later in the same words."""
    found: set[int] = set()
    said = [frozenset(_DIGITS.findall(sentence.text)) | content_words(sentence.text) for sentence in sentences]
    for place, sentence in enumerate(sentences):
        text = straighten_apostrophes(sentence.text)
        # "No tests are left." after another sentence of the same speaker only counts.
        is_new_turn = bool(place) and sentences[place - 1].turn != sentence.turn
        is_taking_back = is_new_turn and (sentence.speaker or "").casefold() not in ASSISTANTS
        is_own = bool(place) and is_asking(sentences[place - 1])  # an assistant's "Sorry to hear that" corrects nobody
        is_joined_on = is_own and (not is_new_turn or (sentence.speaker or "").casefold() in ASSISTANTS)
        is_taken_back = CORRECTING.match(text) and (is_taking_back or text[:3].casefold() != "no ")
        if place and is_taken_back and not is_joined_on:
            found |= {place - 1, *proposed_before(sentences, place)}
        for match in REFUSED.finditer(text):
            refused = frozenset(_DIGITS.findall(match[0])) | content_words(match[0])
            for before in range(max(0, place - NEAR), place):
                if ALTERNATIVES.search(sentences[before].text):
                    continue
                common = refused & said[before]
                is_same = len(common) >= LEAST_COMMON or any(word[0].isdigit() for word in common)
                is_told_by_user = is_asking(sentences[before]) and sentence.speaker != sentences[before].speaker
                if is_same and sentences[before].turn != sentence.turn and not is_told_by_user:
                    found.add(before)
    return frozenset(found)


def proposed_before(sentences: Sequence[Sentence], place: int) -> range:
    """Return the indexes of what the turn before proposes, from its first proposal on, where a turn refuses it."""
    before = sentences[place - 1]
    if before.speaker == sentences[place].speaker:
        return range(0)
    start = next((i + 1 for i in range(place - 1, -1, -1) if sentences[i].turn != before.turn), 0)
    texts = [straighten_apostrophes(each.text) for each in sentences[start:place]]
    proposals = (i for i, text in enumerate(texts, start) if PROPOSING.search(text))
    return range(next(proposals, place), place)


def summary_candidates(sentences: Sequence[Sentence]) -> NDArray[np.bool_]:
    """Return which sentences may stand in a summary: statements that were not corrected and can be read alone."""
    passing = corrected_sentences(sentences) | unreal_sentences(sentences)
    return np.array(
        [
            place not in passing
            and is_statement(sentence)
            and (not is_too_short(sentence.text) or question_before(sentences, place) is not None)
            for place, sentence in enumerate(sentences)
        ]
    )


def best_outcomes(sentences: Sequence[Sentence], worths: NDArray[np.float64]) -> list[int]:
    """Return the indexes of the sentences of most worth that state a cause, a decision and a fix, and no guess."""
    plain = [straighten_apostrophes(sentence.text) for sentence in sentences]
    likely = [place for place, text in enumerate(plain) if worths[place] > 0 and not HEDGE.search(text)]
    found = ([place for place in likely if cue.search(plain[place])] for cue in SEATED)
    return [max(places, key=lambda place: worths[place]) for places in found if places]


def answered_questions(sentences: Sequence[Sentence]) -> dict[int, int]:
    """Return the index of the question of each short answer, by the index of the answer."""
    return {place: place - 1 for place in range(len(sentences)) if question_before(sentences, place)}


def standalone_text(point: Point) -> str:
    """Return a point as text that stands alone: without "so", with full dates, and the name of a person behind "I".

    Among people a short answer brings its question. A role such as `user` is no name: who said it is the subject.
    """
    text, speaker = plain_opening(point.text), point.speaker or ""
    if label := LABELLED.match(text):  # "**Decision:** …" in Markdown
        text = label[0].replace("*", "").replace("_", "") + text[label.end() :]
    asked = point.question if is_joined(point) else None
    is_named = speaker and speaker.casefold() not in ASKING and (asked or needs_name(text, speaker))
    said = f"{speaker}: {text}" if is_named else text
    before = (
        asked.text if asked else summary_text([replace(point.about, speaker=None, day=None)]) if point.about else ""
    )
    return with_full_dates(f"{before} {said}".lstrip(), point.sentences[0].day)


def point_features(point: Point, rank: float, place: float) -> dict[str, float]:
    """Return the features a point is scored by, each in 0 to 1 or the logarithm of a count."""
    text, reading = straighten_apostrophes(point.text), read(point.text)
    figures = len(reading.numbers) + len(reading.dates) + len(reading.times) + len(reading.identifiers)
    words = word_count(text)
    return {
        "words": math.log1p(words),
        "figures": math.log1p(figures or len(_DIGITS.findall(text))),
        "density": min(1.0, len(content_words(text)) / max(1, words)),
        "rank": rank,
        "place": place,
        "label": point.label is not None or is_told_after_asking(point),
        "answer": point.question is not None,
        "standing": any(map(is_standing, point.sentences)) or (is_asking(point.sentences[0]) and states_rule(text)),
        "own": is_about_self(point),
        "health": is_asking(point.sentences[0]) and bool(HEALTH.search(text)),
        "unanchored": text.split()[0].casefold().strip(EDGE) in UNANCHORED,
        **{name: bool(cue.search(text)) for name, cue in CUES.items()},
    }


def keeping_worth(point: Point) -> float:
    """Return the log odds that a statement in a session with tools is worth keeping, up to a constant."""
    text = standalone_text(point)
    if is_asking(point.sentences[0]):
        return keeping_score(text, form_of_told(point, text), "told")
    form = form_of(text, is_found=is_finding(point), is_labelled=point.label in LASTING_LABELS)
    return keeping_score(text, form, "found") - (0 if is_english(text) else FOREIGN)


def form_of(text: str, *, is_found: bool, is_labelled: bool) -> tuple[float, ...]:
    """Return the form of what an agent says: whether it is a finding by its cues or by a label, and how long it is."""
    return is_found, is_labelled, math.log1p(min(MOST_COUNTED, word_count(text))) / 2


def form_of_told(point: Point, text: str) -> tuple[float, ...]:
    """Return the form of what a user says: the rule it is, if any, the question it answers, and how long it is."""
    is_found = is_finding(point)
    is_rule = any(states_rule(straighten_apostrophes(each.text)) for each in point.sentences)
    return (
        is_found and any(map(is_standing, point.sentences)), is_rule, is_found, point.question is not None,
        math.log1p(min(MOST_TOLD, word_count(text))) / 2,
    )  # fmt: skip


def weighed(features: Mapping[str, float], weights: Mapping[str, float]) -> float:
    """Return the sum of features by their weights."""
    return sum(weights.get(name, 0.0) * value for name, value in features.items())


def score_points(
    points: Sequence[Point], vectors: Vectors, count: int, weights: Mapping[str, float] = LASTING
) -> NDArray[np.float64]:
    """Return the score of each point in a transcript of `count` sentences; `vectors` has a unit row for each point."""
    if not points:
        return np.zeros(0)
    ranks = lexrank(vectors).tolist()
    found = [point_features(each, rank, each.places[0] / count) for each, rank in zip(points, ranks, strict=True)]
    return np.array([weighed(each, weights) for each in found])


def outcome_weights(points: Sequence[Point], vectors: Vectors, count: int) -> NDArray[np.float64]:
    """Return a weight for each of `count` sentences: the more it says of decisions, causes and fixes, the higher."""
    worths = np.zeros(count)
    for point, worth in zip(points, score_points(points, vectors, count, OUTCOME), strict=True):
        worths[list(point.places)] = worth
    return np.exp(POLICY.telling_pull * worths)


def select_facts(
    points: Sequence[Point],
    vectors: Vectors,
    worths: NDArray[np.float64],
    *,
    most: int,
    least: float = POLICY.least_worth,
) -> list[int]:
    """Return the indexes of at most `most` points worth keeping as facts, in order, without repeats.

    The best-scored point that states a cause is always among them: without it the others tell half of what was learned.
    So is what is labelled as a decision or a lesson, or a user told an assistant to always or never do, up to half.
    """
    chosen: list[int] = []
    order: list[int] = np.argsort(-worths, kind="stable").tolist()
    ranked = [place for place in order if worths[place] >= least]
    why = next((place for place in ranked if CAUSE.search(straighten_apostrophes(points[place].text))), None)
    told = [is_decided(point.text) or any(map(is_standing, point.sentences)) for point in points]
    rules = [place for place in ranked if told[place]][: most // 2]
    for place in sorted(ranked, key=lambda each: each != why and each not in rules):
        if len(chosen) == most:
            break
        told = {points[each].about for each in chosen}  # with what it says of somebody
        is_told = told.issuperset(points[place].sentences) or any(
            is_repeat(points, vectors, place, other) for other in chosen
        )
        if has_content(points[place]) and not is_told:
            tells = {points[place].about}
            chosen = [each for each in chosen if not tells.issuperset(points[each].sentences)] + [place]
    return sorted(chosen)


def has_content(point: Point) -> bool:
    """Tell whether a point has a name, a figure, a label or a cue (`HOLDING`), or is told by a user of their life.

    In a language whose verbs are in no list, whatever a user tells has.
    """
    text = straighten_apostrophes(point.text)
    is_told = any(CUES[name].search(text) for name in HOLDING) or any(map(is_standing, point.sentences))
    is_told |= is_asking(point.sentences[0]) and states_rule(text)
    is_of_life = is_asking(point.sentences[0]) and (tells_of_life(text) or holds_today(text) or tells_elsewhere(text))
    is_whole = point.label or is_joined(point) or is_told_after_asking(point)
    return is_told or is_of_life or bool(is_whole or _DIGITS.search(text) or read(point.text).names)


def is_repeat(points: Sequence[Point], vectors: Vectors, one: int, other: int) -> bool:
    """Tell whether two points state one fact: equal texts, or near vectors and no guard that tells them apart."""
    if points[one].about in points[other].sentences:
        return False  # it says more of that one, and takes its place
    a, b = (LABELLED.sub("", standalone_text(replace(points[each], about=None))).strip() for each in (one, other))
    close = float(vectors[one] @ vectors[other]) >= POLICY.same_fact_similarity
    one_text, other_text = sorted((normalise(a).casefold(), normalise(b).casefold()), key=len)
    return one_text in other_text or (close and not differences(a, b))
