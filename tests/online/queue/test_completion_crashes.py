"""A completion that dies at any step, or races with others: exactly one, and nothing counted twice."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from uuid import UUID

import psycopg
import pytest
from closed_episodes import make_due
from conftest import ScriptedJudge, ScriptedWriter, WordEmbedder
from twins import Say, Twin

from nous_online.core.domain import PROCEDURE, Episode
from nous_online.core.errors import Unavailable
from nous_online.core.policy import WorkerPolicy
from nous_online.database.changes import Cause, add_memory
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.queue.worker import Task, Worked, attempt, complete_due, lease_next

TALK = (
    "Ada: the parcel is late.\nfact: Parcels to Oslo take nine days\nfact: Ada orders from Bergen\n"
    "never: ship glass without foam"
)
NEVER = 10**6


def other_worker(url: str, *, calls: int = NEVER, dies_writing: bool = False) -> Twin:
    """Start a process that does what is due and says how much that was, and dies while it writes or embeds."""

    class Killed(WordEmbedder):
        calls_left = calls

        def embed_documents(self, texts):
            if self.calls_left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            self.calls_left -= 1
            return super().embed_documents(texts)

    class KilledWriter(ScriptedWriter):
        def write(self, episode):
            draft = super().write(episode)
            if dies_writing:
                os.kill(os.getpid(), signal.SIGKILL)
            return draft

    def work(say: Say) -> None:
        with closing(Database(url)) as database:
            seams = {"embedder": Killed(), "judge": ScriptedJudge(), "writer": KilledWriter()}
            say(Heart.open("aria", database=database, **seams, works_in_background=False).work().completed)

    return Twin(work)


def failed_episode(heart: Heart) -> Episode:
    """An episode that used a procedure, failed, and left two facts and a censor to be drawn."""
    cause = Cause("agent", "learned", "a test", effective_at=heart.record_episode("x").started_at)
    heart.work()
    with heart.agent.transaction(heart.agent.deadline(None)) as connection:
        used = add_memory(connection, "aria", PROCEDURE, {"name": "ship"}, cause=cause)
    return heart.record_episode(TALK, outcome="failure", procedures_activated=[used.id])


def traces(owner: psycopg.Connection, episode_id: UUID) -> dict[str, int]:
    """How often everything happened that is to happen once."""
    queries = {
        "facts": "select count(*) from heart.facts where source_episode_id = %s",
        "censors": "select count(*) from heart.censors where learned_from_episode_id = %s",
        "completed": "select count(*) from lifecycle.events where action = 'completed' and memory_id = %s",
        "announced": "select count(*) from heart.outbox where name = 'episode_completed' and memory_id = %s",
        "finished": "select count(*) from heart.completions where finished_at is not null and episode_id = %s",
    }
    counted = {name: owner.execute(query, [episode_id]).fetchone() for name, query in queries.items()}
    counted["failures"] = owner.execute("select sum(failure_count) from heart.procedures").fetchone()
    counted["confirmations"] = owner.execute("select coalesce(sum(confirmation_count), 0) from heart.facts").fetchone()
    return {name: row[0] for name, row in counted.items() if row}


ONCE = {
    "facts": 2,
    "censors": 1,
    "completed": 1,
    "announced": 1,
    "finished": 1,
    "failures": 1,
    "confirmations": 0,
}


@pytest.mark.parametrize(
    "death",
    [{"dies_writing": True}, {"calls": 0}, {"calls": 1}, {"calls": 2}],
    ids=["after writing", "before the first fact", "between the facts", "before all is written down"],
)
def test_a_worker_killed_at_any_step_leaves_one_completion(
    heart: Heart, owner: psycopg.Connection, database_url: str, death: dict[str, int]
):
    episode = failed_episode(heart)

    ended = other_worker(database_url, **death).end()

    assert ended == (-signal.SIGKILL, [])
    assert heart.get_episode(episode.id).completed_at is None
    assert heart.work() == Worked()  # what a worker has taken is left alone for a while
    make_due(owner)
    assert heart.work().completed == 1
    assert traces(owner, episode.id) == ONCE


def test_what_a_dead_worker_took_falls_due_in_time_for_the_thirty_seconds(
    heart: Heart, owner: psycopg.Connection, database_url: str
):
    failed_episode(heart)

    other_worker(database_url, dies_writing=True).end()

    row = owner.execute(
        "select extract(epoch from due_at - now())::float from heart.completions where finished_at is null"
    ).fetchone()
    assert row
    assert row[0] <= 30 - 2 * WorkerPolicy().poll_s  # a look before it was taken, and one before it is taken again


def test_an_episode_that_kills_its_workers_rests_longer_each_time(heart: Heart, owner: psycopg.Connection):
    heart.record_episode(TALK)
    rests = []

    for _ in range(4):
        make_due(owner)
        lease_next(heart.agent, heart.agent.deadline(None))
        rests += owner.execute(
            "select round(extract(epoch from due_at - now()))::int from heart.completions"
        ).fetchone()

    assert rests == [pytest.approx(rest, abs=2) for rest in (20, 40, 80, 160)]


def test_a_connection_cut_while_all_is_written_down_leaves_nothing_half_done(heart: Heart, owner: psycopg.Connection):
    episode = failed_episode(heart)
    before = traces(owner, episode.id)
    owner.execute(
        "create function cut() returns trigger language plpgsql security definer as "
        "$$ begin perform pg_terminate_backend(pg_backend_pid()); return new; end $$"
    )
    owner.execute(
        "create trigger cut before insert on heart.outbox for each row "
        "when (new.name = 'episode_completed') execute function cut()"
    )

    assert heart.work() == Worked()

    assert traces(owner, episode.id) == {**before, "facts": 2}
    owner.execute("drop trigger cut on heart.outbox")
    make_due(owner)
    assert heart.work().completed == 1
    assert traces(owner, episode.id) == ONCE


def test_hearts_that_race_complete_each_episode_once(heart: Heart, owner: psycopg.Connection):
    episodes = [failed_episode(heart), *(heart.record_episode(f"Ada: number {n}.") for n in range(10))]
    others = {"database": heart.agent.database, "embedder": WordEmbedder(), "writer": ScriptedWriter()}
    hearts = [heart, *(Heart.open("aria", **others, works_in_background=False) for _ in range(3))]

    with ThreadPoolExecutor(4) as pool:
        completed = sum(pool.map(lambda each: each.work(deadline_s=60).completed, hearts))

    assert completed == len(episodes)
    assert traces(owner, episodes[0].id) == ONCE
    assert owner.execute("select max(attempt_count) from heart.completions").fetchone() == (1,)


def test_processes_that_race_complete_each_episode_once(heart: Heart, owner: psycopg.Connection, database_url: str):
    episodes = [failed_episode(heart), *(heart.record_episode(f"Ada: number {n}.") for n in range(10))]

    others = [other_worker(database_url), other_worker(database_url)]
    completed = [count for other in others for count in other.end()[1]]

    assert len(completed) == len(others)
    assert sum(completed) == len(episodes)
    assert traces(owner, episodes[0].id) == ONCE


def test_two_workers_on_one_episode_complete_it_once(heart: Heart, owner: psycopg.Connection, writer: ScriptedWriter):
    """As when the first is so slow that its episode falls due to a second one."""
    episode = failed_episode(heart)
    task = Task(episode.id, 1, None)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: attempt(heart.agent, task, heart.agent.deadline(60)), range(4)))

    assert traces(owner, episode.id) == ONCE
    assert heart.work() == Worked()


def test_the_first_draft_is_the_one_carried_out(heart: Heart, owner: psycopg.Connection):
    """Both workers write, one of them something else: what is learned comes from one draft only."""

    class Unlike(ScriptedWriter):
        def write(self, episode):
            if not self.told:
                self.told.append(episode)
                complete_due(heart.agent, heart.agent.deadline(None))
            return super().write(
                type(episode)(detail=episode.detail.replace("nine", "ninety"), outcome=episode.outcome)
            )

    episode = failed_episode(heart)
    other = Heart.open(
        "aria", database=heart.agent.database, embedder=WordEmbedder(), writer=Unlike(), works_in_background=False
    )

    attempt(other.agent, Task(episode.id, 1, None), other.agent.deadline(60))

    assert traces(owner, episode.id) == ONCE
    contents = owner.execute("select content from heart.facts").fetchall()
    assert ("Parcels to Oslo take ninety days",) not in contents


def test_a_decision_that_is_being_linked_is_not_waited_for(heart: Heart, owner: psycopg.Connection):
    owner.execute("insert into brain.decisions (agent_id, title, decided_at) values ('aria', 'ship', '2026-05-01')")
    heart.record_episode(TALK, started_at="2026-05-01T00:00:00Z")

    with owner.transaction():
        owner.execute("select from brain.decisions for update")
        assert heart.work(deadline_s=5).completed == 1


def test_a_worker_without_database_says_so(heart: Heart, owner: psycopg.Connection):
    heart.record_episode(TALK)
    heart.agent.database.close()

    with pytest.raises(Unavailable):
        heart.work()
