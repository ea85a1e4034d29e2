"""Whether two statements fill one slot with different values, so that the later may take the place of the earlier."""

from __future__ import annotations

from nous_online.pairs.denials import opposed
from nous_online.pairs.guards import differences, is_near_spelling
from nous_online.pairs.slots import PLACING, Slot, filled_slot, is_number, is_state
from nous_online.pairs.subjects import other_subjects

Subjects = tuple[str | None, str | None]


def shared_slot(a: str, b: str, *, subjects: Subjects = (None, None)) -> str | None:
    """Return the slot both statements fill with different values, or None; a subject not given is the other's.

    Either their slots agree, or they claim opposite states in the same words. A value that only says less or more of
    the same ("Ghent", "Ghent, Belgium") is no other value.
    """
    if other_subjects(*subjects):
        return None
    about_a, about_b = subjects[0] or subjects[1], subjects[1] or subjects[0]
    one, other = filled_slot(a, about_a), filled_slot(b, about_b)
    if one and other:
        is_update = one.key == other.key and _is_other_value(one, other) and _is_unlike(a, b, one)
        return one.key if is_update else None
    frame = opposed(a, b)
    return frame if frame and is_state(a, about_a) else None


def _is_unlike(a: str, b: str, slot: Slot) -> bool:
    """Tell whether numbers differ in more than spelling; what guards check is theirs to say."""
    return not any(map(is_number, slot.value)) or bool(differences(a, b))


def _is_other_value(one: Slot, other: Slot) -> bool:
    a, b = (set(slot.value) - PLACING for slot in (one, other))
    only_a, only_b = a - b, b - a
    if not only_a or not only_b:  # "Ghent, Belgium" is Ghent, but a "rugby union" is no "rugby"
        return bool(only_a | only_b) and not (one.is_name or other.is_name) and one.value[-1] != other.value[-1]
    return not all(any(is_near_spelling(x, y) for y in only_b) for x in only_a)
