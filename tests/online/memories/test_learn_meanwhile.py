"""Others change what learning has just read."""

from __future__ import annotations

from collections.abc import Sequence

from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.language.pairs.judging import Judgement, OfflineJudge, Pair

OPEN, OPENS = "The office in Lima opens at nine in the morning", "The office in Lima opens at nine in the morning ."


class MeddlingJudge(OfflineJudge):
    """The built-in judge, during whose first answer somebody else confirms the fact in question."""

    heart: Heart | None = None

    def judge(self, pairs: Sequence[Pair]) -> list[Judgement]:
        if self.heart is not None:
            other, self.heart = self.heart, None
            (known,) = other.recall("office in Lima", limit=1)
            other.confirm_fact(known.id)
        return super().judge(pairs)


def test_a_fact_confirmed_while_it_is_learned_again_is_counted_twice(database: Database, embedder) -> None:
    judge = MeddlingJudge()
    heart = Heart.open("aria", database=database, embedder=embedder, judge=judge, works_in_background=False)
    first = heart.learn(OPEN, subject="office").memory
    heart.learn("The office in Lima has a canteen with a view", subject="the office", learned_at="2020-01-01T00:00:00Z")
    judge.heart = Heart.open("aria", database=database, embedder=embedder, works_in_background=False)

    again = heart.learn(OPENS, subject="office")

    assert judge.heart is None
    assert (again.action, again.memory.id) == ("confirmed", first.id)
    assert again.memory.confirmation_count == 2
