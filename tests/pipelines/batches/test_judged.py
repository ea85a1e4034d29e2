"""Every pair is judged once ever: verdicts of earlier nights are found again, in their files or in the database."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime

import numpy as np
import polars as pl
import pytest
from conftest import ScriptedJudge, WordEmbedder
from drawn import embedded_facts
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from judged_pairs import NO_CONTRADICTIONS, NONE_UNDONE

from nous_online.core.errors import Unavailable
from nous_online.database.connection import Database
from nous_online.language.pairs.judging import (
    JudgedStatement,
    OfflineJudge,
    Pair,
    Seen,
    Verdict,
    chance_of_change,
    chances_of_same,
    decide,
    is_denied,
    is_harmless,
    later,
    read_those,
    reasons_apart,
)
from nous_online.language.pairs.slots import shared_slot
from nous_online.language.pairs.wordings import is_of_any, never_same
from nous_pipelines.batches.verdict_cache import JudgementCounts, ask_in_parts, verdicts_for
from nous_pipelines.night_policy import NightPolicy
from nous_pipelines.orchestration.earlier_nights import (
    compared_in,
    earlier_compared,
    earlier_verdicts,
    write_compared,
    write_judged_by,
)
from nous_pipelines.phases.asking import (
    STATEMENT_COLUMNS,
    VERDICTS,
    ask,
    judged,
    pairs_to_judge,
    person_rulings,
    with_hashes,
)
from nous_pipelines.phases.neighbours import READ, neighbours_of
from nous_pipelines.plan.night_files import NightFiles

POLICY = NightPolicy(candidate_similarity=0.7, neighbour_similarity=0.6)
NOTHING_EARLIER = pl.DataFrame(schema=VERDICTS)
NINE, NOW, TEN = "the office opens at nine", "the office opens at nine now", "the office opens at ten"
TABLE = """
    id | agent_id | content
    ---|----------|-----------------------------
    a  | aria     | the office opens at nine
    b  | aria     | the office opens at nine now
    c  | aria     | the office opens at ten
    d  | ben      | the office opens at nine
    e  | ben      | the office opens at nine now
"""


class Failing(ScriptedJudge):
    """Gives verdicts on so many pairs, then none."""

    def __init__(self, most):
        super().__init__({(NINE, NOW): Verdict.SAME})
        self.most = most

    def judge(self, pairs):
        if len(self.asked) + len(pairs) > self.most:
            raise Unavailable("the judge rests until noon")
        return super().judge(pairs)


class Counting(OfflineJudge):
    """The built-in judge, which notes how many pairs it is given at once."""

    def __init__(self):
        self.sizes = []

    def judge(self, pairs):
        self.sizes.append(len(pairs))
        return super().judge(pairs)


@pytest.fixture
def database(database_url):
    opened = Database(database_url, role="nous_night")
    yield opened
    opened.close()


def facts():
    return embedded_facts(TABLE, WordEmbedder())


def asked_of(table):
    pairs = with_hashes(
        neighbours_of(table.select(READ), policy=POLICY, undone=NONE_UNDONE).pairs, table.select(STATEMENT_COLUMNS)
    )
    rules = person_rulings(pairs, undone=NONE_UNDONE, contradictions=NO_CONTRADICTIONS)
    return pairs, rules, pairs_to_judge(pairs, rules)


def night(database, judge, table, *, earlier=NOTHING_EARLIER):
    pairs, rules, asked = asked_of(table)
    verdicts, account = verdicts_for(database, judge, asked, table.select(STATEMENT_COLUMNS), earlier=earlier)
    return judged(pairs, rules, verdicts), account


def stored(owner):
    query = "select agent_id, model, prompt_version, verdict, confidence, later, reason from heart.judgements"
    return owner.execute(query).fetchall()


def test_a_pair_is_judged_once_ever(database, owner):
    judge = ScriptedJudge({(NINE, NOW): Verdict.SAME})

    first, account = night(database, judge, facts())
    again, later = night(database, judge, facts())

    assert again.equals(first)
    assert account == JudgementCounts(judged=4)
    assert later == JudgementCounts(known=4)
    assert len(judge.asked) == len(stored(owner)) == 4
    assert ("ben", "scripted", "1", "same", 1.0, "b", "so says the script") in stored(owner)


def test_only_what_is_new_is_asked_and_the_database_only_for_that(database, monkeypatch):
    judge = ScriptedJudge()
    table = facts()
    first, _ = night(database, judge, table.filter(pl.col("id") != "c"))
    earlier = first.select(list(VERDICTS))
    asked_for = []
    monkeypatch.setattr(
        "nous_pipelines.batches.verdict_cache.known_verdicts",
        lambda _database, _judge, asked: asked_for.append(len(asked)) or NOTHING_EARLIER,
    )

    _, account = night(database, judge, table, earlier=earlier)

    assert account == JudgementCounts(known=2, judged=2)
    assert asked_for == [2]


@pytest.mark.parametrize(("name", "value"), [("name", "another"), ("prompt_version", "2")])
def test_another_judge_or_prompt_judges_anew(database, name, value):
    night(database, ScriptedJudge(), facts())
    judge = ScriptedJudge()
    setattr(judge, name, value)

    found, account = night(database, judge, facts())

    assert account == JudgementCounts(judged=4)
    assert found["model"].unique().to_list() == [judge.name]


def test_without_a_judge_the_night_goes_on_and_asks_again(database, owner, monkeypatch):
    monkeypatch.setattr("nous_pipelines.batches.verdict_cache.ASKED_AT_ONCE", 1)

    found, account = night(database, Failing(2), facts())
    left = found.filter(pl.col("model") == "none")

    assert account == JudgementCounts(judged=2, left_open=2)
    assert left.select("verdict", "reason").unique().rows() == [
        ("unsure", "no verdict could be had: the judge rests until noon")
    ]
    assert len(stored(owner)) == 2

    again, later = night(database, ScriptedJudge({(NINE, NOW): Verdict.SAME}), facts())

    assert later == JudgementCounts(known=2, judged=2)
    assert "none" not in again["model"].to_list()


def test_a_full_night_has_the_judge_decide_again_about_what_it_decided_before(database):
    before, _ = night(database, ScriptedJudge({(NINE, NOW): Verdict.SAME}), facts())

    again, account = night(database, ScriptedJudge({(NINE, NOW): Verdict.COMPATIBLE}), facts(), earlier=None)

    assert account == JudgementCounts(judged=4)
    assert again["verdict"].to_list() != before["verdict"].to_list()


def test_progress_is_told_batch_by_batch(database, monkeypatch):
    monkeypatch.setattr("nous_pipelines.batches.verdict_cache.ASKED_AT_ONCE", 3)
    table, told = facts(), []
    _, _, asked = asked_of(table)

    verdicts_for(
        database,
        ScriptedJudge(),
        asked,
        table.select(STATEMENT_COLUMNS),
        earlier=NOTHING_EARLIER,
        on_progress=lambda done, total: told.append((done, total)),
    )

    assert told == [(3, 4), (4, 4)]


def test_parts_judged_at_a_time_have_the_verdicts_of_all_judged_at_once(monkeypatch):
    table = facts()
    _, _, asked = asked_of(table)
    at_once = ask(OfflineJudge(), asked, table.select(STATEMENT_COLUMNS))
    monkeypatch.setattr("nous_pipelines.batches.verdict_cache.READ_TOGETHER", 1)
    judge = Counting()

    assert ask_in_parts(judge, asked, table.select(STATEMENT_COLUMNS)) == at_once
    assert judge.sizes == [1, 1, 1, 1]


def test_a_part_that_is_not_judged_leaves_all_of_its_batch_open(database, owner, monkeypatch):
    monkeypatch.setattr("nous_pipelines.batches.verdict_cache.READ_TOGETHER", 1)

    _, account = night(database, Failing(2), facts())

    assert account == JudgementCounts(left_open=4)
    assert stored(owner) == []


# --- files of earlier nights ---


def files_of(folder, night, *, is_dry_run=False):
    place = folder / f"night={night.isoformat()}"
    place.mkdir(exist_ok=True)
    return NightFiles(place, is_dry_run=is_dry_run)


def keep(files, table):
    write_compared(
        files, [neighbours_of(part.select(READ), policy=POLICY, undone=NONE_UNDONE).compared for part in table]
    )


def same(one, other):
    return one.rows.equals(other.rows) and one.pairs.equals(other.pairs)


def test_a_night_builds_on_the_latest_one_before_it(tmp_path):
    table = facts()
    aria, ben = (table.filter(agent_id=name) for name in ("aria", "ben"))
    keep(files_of(tmp_path, date(2026, 6, 1)), [aria])
    keep(files_of(tmp_path, date(2026, 6, 3)), [aria, ben])
    keep(files_of(tmp_path, date(2026, 6, 9)), [aria])
    keep(files_of(tmp_path, date(2026, 6, 4), is_dry_run=True), [aria])

    found = earlier_compared(files_of(tmp_path, date(2026, 6, 5)))
    known = compared_in(found, ["ben"])
    whole = neighbours_of(ben.select(READ), policy=POLICY, undone=NONE_UNDONE)
    step = neighbours_of(ben.select(READ), policy=POLICY, undone=NONE_UNDONE, earlier=known)

    assert found[0].folder == tmp_path / "night=2026-06-03" / "run"
    assert known.rows["agent_id"].unique().to_list() == ["ben"]
    assert len(known.pairs) == 1
    assert step.pairs.equals(whole.pairs)
    assert earlier_compared(files_of(tmp_path, date(2026, 5, 5))) == []


@pytest.mark.parametrize("spoil", ["missing", "cut", "changed", "other format", "no json", "older night only"])
def test_what_can_not_be_trusted_is_compared_anew(tmp_path, spoil):
    files = files_of(tmp_path, date(2026, 6, 1))
    keep(files, [facts()])
    table = files.folder / "compared_pairs.parquet"
    whole = table.read_bytes()
    document = json.loads((files.folder / "compared.json").read_text("utf-8"))
    if spoil == "missing":
        table.unlink()
    elif spoil == "cut":
        table.write_bytes(whole[:-9])
    elif spoil == "changed":
        table.write_bytes(bytes(np.bitwise_xor(np.frombuffer(whole, np.uint8), 1)))
    elif spoil == "other format":
        files.write_json("compared", {**document, "format": 0})
    elif spoil == "no json":
        (files.folder / "compared.json").write_text("[]", "utf-8")
    else:
        (files.folder / "compared.json").unlink()

    assert compared_in(earlier_compared(files_of(tmp_path, date(2026, 6, 2))), ["aria", "ben"]).rows.is_empty()


def test_agents_a_night_passed_over_build_on_the_latest_night_that_took_them(tmp_path):
    table = facts()
    aria, ben = (table.filter(agent_id=name) for name in ("aria", "ben"))
    keep(files_of(tmp_path, date(2026, 6, 1)), [aria.head(1), ben])
    keep(files_of(tmp_path, date(2026, 6, 2)), [aria])

    known = compared_in(earlier_compared(files_of(tmp_path, date(2026, 6, 3))), ["aria", "ben"])

    whole = neighbours_of(table.select(READ), policy=POLICY, undone=NONE_UNDONE).compared
    assert sorted(known.rows["id"]) == sorted(whole.rows["id"])
    assert known.rows["row"].is_unique().all()
    assert len(known.pairs) == len(whole.pairs)
    step = neighbours_of(table.select(READ), policy=POLICY, undone=NONE_UNDONE, earlier=known)
    assert step.compared.pairs.equals(whole.pairs)


def test_the_verdicts_of_the_night_before_are_taken_from_its_file(tmp_path, database):
    judge, later = ScriptedJudge({(NINE, NOW): Verdict.SAME}), date(2026, 6, 2)
    table, _ = night(database, judge, facts())
    open_still = table.with_columns(model=pl.when(pl.col("agent_id") == "ben").then(pl.lit("none")).otherwise("model"))
    files = files_of(tmp_path, date(2026, 6, 1))
    write_judged_by(files, judge, files.write_table("judgements", open_still), ["aria"])

    known = earlier_verdicts(files_of(tmp_path, later), judge, ["aria", "ben"])
    judge.prompt_version = "2"

    assert known.schema == pl.Schema(VERDICTS)
    assert known["agent_id"].to_list() == ["aria"] * 3
    assert earlier_verdicts(files_of(tmp_path, later), judge, ["aria"]).is_empty()


# --- the built-in judge ---

CLAIMS = [
    "The port of {} is {}.", "{} lives in {}", "{} does not live in {}", "{}'s favourite colour is {}",
    "{} likes {}", "the {} is open at {}", "the {} is closed at {}", "{} never met {}", "{} met {}",
]  # fmt: skip
STATEMENTS = st.builds(
    str.format,
    st.sampled_from(CLAIMS),
    st.sampled_from(["Ana", "Ben", "office"]),
    st.sampled_from(["Rome", "5", "red"]),
)


@settings(max_examples=examples(40), deadline=None)
@given(texts=st.tuples(STATEMENTS, STATEMENTS), said=st.sampled_from([None, 1, 2]), similarity=st.floats(0.5, 1.0))
def test_the_built_in_judge_gives_far_pairs_the_verdict_all_guards_would(texts, said, similarity):
    moments = (None, None) if said is None else (datetime(2026, 5, 1, tzinfo=UTC), datetime(2026, 5, said, tzinfo=UTC))
    a, b = (JudgedStatement(text, stated_at=moment) for text, moment in zip(texts, moments, strict=True))
    pair = Pair(a, b, similarity)
    reasons = reasons_apart(pair)
    slot = shared_slot(a.text, b.text)
    (same,) = chances_of_same([pair], [bool(reasons)])
    (reading,) = read_those([pair], [bool(reasons) or not is_harmless(pair)])
    exact = never_same(a.text, b.text) if reading else ()
    expected, _, _ = decide(
        Seen(
            similarity,
            reasons,
            slot,
            slot is None and is_denied(pair),
            same,
            later(pair),
            not reasons and is_harmless(pair),
            reading,
            exact,
            max(len(a.text.split()), len(b.text.split())),
            changed_chance=chance_of_change(pair, reading),
            is_of_any=is_of_any(a.text) or is_of_any(b.text),
        ),
    )

    (judgement,) = OfflineJudge().judge([pair])

    assert judgement.verdict is expected or {judgement.verdict, expected} <= {Verdict.COMPATIBLE, Verdict.UNSURE}
    assert slot is None or judgement.slot == slot
