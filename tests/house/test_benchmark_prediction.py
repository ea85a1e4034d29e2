"""The benchmark `prediction`: sessions counted by hand, and its diary against what a real heart wrote down."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # benchmarks are run from the root, and not installed

from benchmarks.prediction import PEERS, TIER_TOKENS, assembled, fitting, moments_of, run
from benchmarks.prediction_sessions import Diary, Session, sessions_of
from nous_online.context.context_lines import cost_of
from nous_online.context.predicting import PredictionRequest, past_sessions, record_sighting
from nous_online.context.scorer import Ranking, Signals, atoms_of

HOUR, DAY = 3600, 86_400
NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)


def rows(*touches: tuple[float, list[str]], repo: str = "a/b"):
    """Touches of one repository, each `(day, items)` a commit of its own."""
    return [
        {"repo": repo, "t": int(day * DAY), "commit": f"{place:05d}", "item": item}
        for place, (day, items) in enumerate(touches)
        for item in items
    ]


def trace(*touches: tuple[float, list[str]]) -> list[Session]:
    (only,) = sessions_of(rows(*touches))
    return only


def test_a_pause_of_more_than_four_hours_ends_a_session():
    four_hours = 4 * HOUR / DAY

    sessions = trace((1, ["x"]), (1 + four_hours, ["y"]), (1 + 2 * four_hours + 0.001, ["x"]))

    assert [session.items for session in sessions] == [["x", "y"], ["x"]]


def test_only_the_second_half_is_predicted_and_only_from_what_came_before():
    sessions = trace((1, ["a", "b"]), (2, ["a", "b"]), (3, ["a", "b", "new"]), (4, ["alone"]))

    (moment,) = moments_of(sessions)

    assert (moment.known, moment.strangers) == ({"b"}, 1)
    assert "new" not in moment.ranked["nous"]
    assert all(ranked == ["b"] for ranked in moment.ranked.values())


def test_peers_choose_as_their_names_say():
    often = [(day, ["often"]) for day in range(1, 6)]
    sessions = trace(
        *often, (6, ["about", "pair"]), *((day, ["lately"]) for day in (7, 8, 9)), (10, ["about", "often"])
    )

    moment = list(moments_of(sessions))[-1]

    assert {name: moment.ranked[name][0] for name in PEERS} == {
        "lru": "lately",
        "decayed_30": "often",
        "co_occurrence": "pair",
        "together_popular": "pair",
    }


def test_a_tier_holds_as_many_lines_as_its_tokens_pay_for():
    items = ["src/auth/login.py"] * 400

    size = fitting(items)

    assert size * cost_of(items[0]) <= TIER_TOKENS < (size + 1) * cost_of(items[0])


def test_what_is_assembled_is_what_the_tier_has_room_for_the_likeliest_first():
    sessions = trace(*((day, ["docs/a.md", "src/b.py"]) for day in range(1, 9)), (9, ["docs/a.md", "src/c.py"]))
    diary = Diary()
    for session in sessions:
        diary.live(session)
    at = datetime.fromtimestamp(10 * DAY, UTC)
    atoms = atoms_of(Signals(current_file="docs/a.md"), at=at)
    past = diary.past_for(Session("next", [(at, ["docs/a.md"])]), atoms, at=at)

    shown = [assembled(past, atoms, {}, "docs/a.md", room=room) for room in (50, 3_000)]

    assert shown == [{"docs/a.md", "src/b.py"}, {"docs/a.md", "src/b.py", "src/c.py"}]


def test_a_run_reports_its_metrics_and_peers(tmp_path):
    touches = [(day, ["src/a.py", "src/b.py"] if day % 2 else ["docs/c.md", "docs/d.md"]) for day in range(1, 13)]
    (tmp_path / "usage_trace_git.jsonl").write_text("\n".join(map(json.dumps, rows(*touches))), "utf-8")

    result = run(data=tmp_path, quick=False)

    assert result["metrics"]["prefetched_ratio"] == 1
    assert result["metrics"]["assembled_ratio"] == 1
    assert 0 < result["metrics"]["precision"] < 1
    assert 0 <= result["metrics"]["calibration_error"] < 0.5
    assert result["peers"]["co_occurrence_prefetched_ratio"] == 1
    assert "12 sessions" in result["notes"][0]
    assert result["notes"][-1] == "with pauses of 8 h: prefetched_ratio 1.000, assembled_ratio 1.000, 6 sessions"


@pytest.fixture
def sessions() -> list[Session]:
    """Forty sessions of one to three commits over a dozen files."""
    files = [f"src/{'abc'[n % 3]}/f{n}.py" for n in range(12)]
    return [
        Session(
            f"s{n}",
            [
                (NOON + timedelta(hours=9 * n, minutes=k), sorted({files[(n * 5 + k) % 12], files[(n * n + k) % 12]}))
                for k in range(1 + n % 3)
            ],
        )
        for n in range(40)
    ]


def test_the_database_gives_the_same_past_as_the_diary(heart, sessions):
    diary = Diary()
    ids = {item: heart.learn(item, learned_at=NOON).memory.id for item in {i for s in sessions for i in s.items}}
    names = {memory_id.bytes: item for item, memory_id in ids.items()}
    for session in sessions:
        diary.live(session)
    with heart.agent.database.transaction(heart.agent.id) as connection:
        for session in sessions:
            write_down(connection, heart.agent.id, session, ids)
    now = NOON + timedelta(days=20)
    atoms = atoms_of(Signals(current_file="src/a/f3.py"), at=now)
    ahead = Session("next", [(now, ["src/a/f3.py"])])

    with heart.agent.database.transaction(heart.agent.id) as connection:
        lived = past_sessions(connection, heart.agent.id, atoms, PredictionRequest("next", now, 50))
    drawn = diary.past_for(ahead, atoms, at=now)

    stored, kept = Ranking(lived, atoms, {}), Ranking(drawn, atoms, {})
    found = {names[memory]: told for memory, *told in map(stored.at, stored.places())}
    assert found == {memory: told for memory, *told in map(kept.at, kept.places())}
    assert len(found) == 12


def write_down(connection, agent_id, session, ids):
    """What a session leaves behind: what it saw, and recalls of which every answer was cited."""
    for at, items in session.commits:
        for item in items:
            record_sighting(connection, agent_id, Signals(current_file=item), session.id, at)
        used = [ids[item] for item in items]
        connection.execute(
            "insert into heart.recalls (agent_id, recalled_at, query, result_limit, session_id, result_ids, cited_ids)"
            " values (%s, %s, 'q', 10, %s, %s, %s)",
            [agent_id, at, session.id, used, used],
        )
