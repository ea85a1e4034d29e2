"""Whether two statements fill one slot with different values, so that the later may take the place of the earlier."""

from __future__ import annotations

import re

from nous_online.language.pairs.denials import opposed
from nous_online.language.pairs.guards import differences, is_near_spelling
from nous_online.language.pairs.lexicon import DWELLING, NEWLY, WIDE_PLACES
from nous_online.language.pairs.reading import read
from nous_online.language.pairs.slots import PLACING, Slot, filled_slot, is_number, is_state
from nous_online.language.pairs.subjects import other_subjects

PLACE = re.compile(r"\b(\w++) (?:in|at|to|from) <name>")
Subjects = tuple[str | None, str | None]


def shared_slot(known: str, new: str, *, subjects: Subjects = (None, None)) -> str | None:
    """Return the slot both statements fill with different values, or None; a subject not given is the other's.

    Either their slots agree, or they claim opposite states in the same words. A value that only says less or more of
    the same ("Ghent", "Ghent, Belgium") is no other value.
    """
    if other_subjects(*subjects):
        return None
    about_known, about_new = subjects[0] or subjects[1], subjects[1] or subjects[0]
    one, other = filled_slot(known, about_known), filled_slot(new, about_new)
    if one and other:
        is_update = one.key == other.key and _is_other_value(one, other) and _is_unlike(known, new, one)
        return one.key if is_update and not _may_be_nested(one, other, new) else None
    frame = opposed(known, new)
    return frame if frame and is_state(known, about_known) else None


def _may_be_nested(one: Slot, other: Slot, new: str) -> bool:
    """Tell whether one of two places may lie in the other, so that both are true: "in Rome", "in Italy".

    Who lives somewhere lives in all that it lies in; only a statement that says so tells of a move.
    """
    place = PLACE.search(one.key)
    if place is None:
        return False
    wide = [bool(WIDE_PLACES & set(slot.value)) for slot in (one, other)]
    return wide[0] != wide[1] or (place[1] in DWELLING and not NEWLY & set(read(new).words))


def _is_unlike(a: str, b: str, slot: Slot) -> bool:
    """Tell whether numbers differ in more than spelling; what guards check is theirs to say."""
    return not any(map(is_number, slot.value)) or bool(differences(a, b))


def _is_other_value(one: Slot, other: Slot) -> bool:
    a, b = (set(slot.value) - PLACING for slot in (one, other))
    only_a, only_b = a - b, b - a
    if not only_a or not only_b:  # "Ghent, Belgium" is Ghent, but a "rugby union" is no "rugby"
        return bool(only_a | only_b) and not (one.is_name or other.is_name) and one.value[-1] != other.value[-1]
    return not all(any(is_near_spelling(x, y) for y in only_b) for x in only_a)
