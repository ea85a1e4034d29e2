"""Which days, months and years are read in a question, and what is none."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from nous_online.recall.ranking import periods_in

SUNDAY = datetime(2026, 11, 22, 15, tzinfo=UTC)


def read(question: str, at: datetime = SUNDAY) -> list[str]:
    return [f"{each.start:%Y-%m-%d} {each.end:%Y-%m-%d}" for each in periods_in(question, at=at)]


@pytest.mark.parametrize(
    ("question", "period"),
    [
        ("As of November 27, 2029, where does Ben live?", "2029-11-27 2029-11-28"),
        ("what did Ana say on the 5th of May 2023?", "2023-05-05 2023-05-06"),
        ("what was decided on 2026-03-04?", "2026-03-04 2026-03-05"),
        ("the mail of 2026-03-04T10:15:00Z", "2026-03-04 2026-03-05"),
        ("what happened in March 2024?", "2024-03-01 2024-04-01"),
        ("who joined in December?", "2025-12-01 2026-01-01"),
        ("who joined on 24 December?", "2025-12-24 2025-12-25"),
        ("who joined in 2023?", "2023-01-01 2024-01-01"),
        ("Was haben wir am 3. März 2024 beschlossen?", "2024-03-03 2024-03-04"),
        ("¿Qué pasó el 5 de mayo de 2023?", "2023-05-05 2023-05-06"),
        ("Что было 9 мая 2024?", "2024-05-09 2024-05-10"),
        ("2024年3月5日の会議", "2024-03-05 2024-03-06"),
        ("yesterday's deploy", "2026-11-21 2026-11-22"),
        ("what broke last week?", "2026-11-09 2026-11-22"),
        ("what broke last month?", "2026-10-01 2026-11-22"),
        ("what broke last year?", "2025-01-01 2026-01-01"),
        ("what broke last Friday?", "2026-11-20 2026-11-21"),
        ("which book did I finish ten days ago?", "2026-11-12 2026-11-13"),
        ("which book did I finish two weeks ago?", "2026-11-05 2026-11-12"),
        ("which book did I finish a month ago?", "2026-10-12 2026-11-02"),
    ],
)
def test_a_day_month_or_year_is_read(question, period):
    assert read(question) == [period]


@pytest.mark.parametrize(
    "question",
    [
        "who may approve invoices of 500 euros?",
        "can she march to the second floor?",
        "which of the 12 tests in module 3 fail since version 2024.11.3?",
        "who sits in room 2023, on port 8080?",
        "what did we say we would do on 30 February 2024?",
        "ticket x-2024-05-06",
        "",
    ],
)
def test_a_number_or_a_word_that_is_also_a_month_is_no_date(question):
    assert read(question) == []


def test_digits_that_can_be_read_in_two_orders_are_both_days():
    assert read("the invoice of 5/12/2025") == ["2025-12-05 2025-12-06", "2025-05-12 2025-05-13"]


@pytest.mark.parametrize("at", [datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)])
def test_no_moment_is_too_early_or_too_late_to_ask_at(at):
    assert read("999 weeks ago, last month, last year", at) == []
