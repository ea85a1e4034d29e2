"""Signals, checked and read into atoms."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest

from nous_online.context.scorer import (
    LONGEST_ATOM,
    Signals,
    atoms_of,
    checked_signals,
    describe_atom,
    error_shape,
    file_words,
    normal_path,
)
from nous_online.core.details import MAX_NAME_BYTES
from nous_online.core.errors import InvalidInput

MONDAY = datetime(2026, 6, 1, 9, 30, tzinfo=UTC)


def told(**signals) -> list[str]:
    """The atoms of signals, without the clock."""
    return list(atoms_of(Signals(**signals), at=MONDAY))[:-2]


def test_a_file_is_its_path_its_module_and_the_folders_above():
    assert told(current_file="./src/auth\\login.py") == ["file:src/auth/login.py", "module:src/auth", "module:src"]


def test_two_ways_to_write_a_path_are_one_file():
    assert normal_path("src/../src//auth/./login.py") == normal_path("src/auth/login.py")


def test_files_that_differ_in_case_are_two():
    assert told(current_file="Makefile") != told(current_file="makefile")


def test_a_file_without_a_folder_has_no_module():
    assert told(current_file="README.md") == ["file:README.md"]
    assert told(current_file="/") == ["file:/"]


def test_a_branch_is_its_name_and_the_stems_of_its_words():
    assert told(branch="feature/PAY-42-fixRefunds") == [
        "branch:feature/PAY-42-fixRefunds",
        "word:featur",
        "word:pay",
        "word:fix",
    ]
    assert "word:refund" in told(branch="refunds")


def test_errors_of_one_class_and_cause_agree_whatever_they_quote_and_count():
    first = told(recent_errors=("Traceback (most recent call last):\n  File 'x'\nKeyError: 'anna' at row 17",))
    second = told(recent_errors=("KeyError: 'bob' at row 4",))

    assert first == second == ["error:KeyError", "error-shape:keyerror: … at row #"]


def test_the_code_of_an_error_stands_for_its_class():
    assert told(recent_errors=("src/app.ts(4,1): error TS2304: Cannot find name 'x'.",))[0] == "error:TS2304"
    assert told(recent_errors=("connect ECONNREFUSED 127.0.0.1:5432",))[0] == "error:ECONNREFUSED"


def test_an_error_without_class_still_has_a_shape():
    assert told(recent_errors=("the disk is 93 % full",)) == ["error-shape:the disk is # % full"]
    assert error_shape('No such file "a b"  here') == "no such file … here"


def test_a_class_is_named_without_its_package():
    assert told(recent_errors=("sqlalchemy.exc.NoSuchTableError: pumps",))[0] == "error:NoSuchTableError"


@pytest.mark.parametrize("error", ["a." * 8_000, "A" * 16_000, "E" * 16_000, "'\"`" * 5_000, "1." * 8_000])
def test_an_error_of_any_text_is_read_at_once(error):
    began = time.process_time()

    told(recent_errors=(error,))

    assert time.process_time() - began < 0.1


def test_people_and_activities_are_known_in_any_case():
    assert told(collaborators=("Ben  Ode",), activity="Debugging") == ["with:ben ode", "activity:debugging"]


def test_the_clock_gives_a_band_of_hours_and_a_weekday():
    assert atoms_of(Signals(), at=MONDAY) == ("hours:08-12", "weekday:monday")


def test_however_much_is_told_there_are_at_most_twenty_atoms():
    most = Signals(
        current_file="a/b/c/d/e/f.py",
        imports=tuple(f"m{n}" for n in range(50)),
        branch="one-two-three-four-five",
        recent_errors=tuple(f"Error{n}Error: x" for n in range(9)),
        activity="debugging",
        task="a task",
        collaborators=tuple(f"p{n}" for n in range(9)),
    )

    assert len(atoms_of(most, at=MONDAY)) <= 20


def test_texts_too_long_for_an_atom_stay_apart():
    long = "x" * 400

    first, second = (told(branch=f"{long}{end}")[0] for end in "ab")

    assert first != second
    assert len(first) == len(second) == LONGEST_ATOM


def test_every_kind_of_atom_can_be_said_in_words():
    everything = Signals("a/b.py", ("os",), "main", ("KeyError: x",), "review", None, ("ben",))

    assert all(describe_atom(atom) for atom in atoms_of(everything, at=MONDAY))


def test_blank_signals_count_as_not_told():
    assert checked_signals(None) == checked_signals({"current_file": " ", "imports": [], "recent_errors": [""]})


def test_signals_are_trimmed_and_listed_once():
    signals = checked_signals({"current_file": " a.py ", "imports": ["os", "os", "re"]})

    assert (signals.current_file, signals.imports) == ("a.py", ("os", "re"))


@pytest.mark.parametrize(
    ("details", "message"),
    [
        ({"file": "a.py"}, "unknown signal 'file'; known: current_file, imports, branch"),
        ("a.py", "signals must be named"),
        ({"imports": "os"}, "imports must be a list of texts"),
        ({"current_file": 7}, "current_file must be text"),
        ({"branch": "x" * (MAX_NAME_BYTES + 1)}, "branch has 4,097 bytes, the limit is 4,096"),
        ({"recent_errors": ["x"] * 101}, "recent_errors has 101 entries, the limit is 100"),
        ({"task": "a\x00b"}, "task holds a NUL character"),
        ({"collaborators": ["\ud800"]}, "an entry of collaborators holds a lone surrogate"),
    ],
)
def test_signals_that_cannot_be_kept_are_refused_by_name(details, message):
    with pytest.raises(InvalidInput, match=message):
        checked_signals(details)


def test_a_path_is_searched_by_its_words():
    assert file_words("src/auth/login_form.py") == "src auth login form"
    assert file_words(".gitignore") == "gitignore"
    assert file_words("/") == "/"
