from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import psycopg
import pytest
from pgvector import Vector
from pgvector.psycopg import register_vector

from nous_online.core.domain import EmbeddingSpace
from nous_online.core.errors import InvalidInput, Unsupported
from nous_online.database.connection import Database, register_space
from nous_online.heart import Heart
from nous_online.language.minilm import unit_rows
from nous_online.recall.ranking import RecallPolicy, periods_in
from nous_online.recall.recall import SCAN, Cue, Recalled, candidate_count, check_scan, recall, refresh_statistics

MAY, JUNE, JULY = (datetime(2026, month, 1, tzinfo=UTC) for month in (5, 6, 7))
DRAWN = EmbeddingSpace(id="drawn-64", model="drawn", weights_sha256="", dimensions=64)


def asked(heart: Heart, query: str, **changes) -> list[Recalled]:
    cue = replace(Cue(query, heart.agent.embedder.embed_query(query)), **changes)
    with heart.agent.database.transaction(heart.agent.id) as connection:
        return recall(connection, heart.agent.id, cue, space=heart.agent.embedder.space, policy=RecallPolicy()).answers


def refresh(heart: Heart) -> None:
    with heart.agent.database.transaction(heart.agent.id) as connection:
        refresh_statistics(connection, heart.agent.id)


def contents(answers: list[Recalled]) -> list[str]:
    return [answer.content for answer in answers]


def test_a_rare_word_weighs_more_than_a_common_one(heart):
    for city in ("Lima", "Oslo", "Rome", "Bonn"):
        heart.learn(f"The {city} office opens early")
    heart.learn("Heliotrope blooms here")

    answers = asked(heart, "heliotrope office?")

    assert answers[0].content == "Heliotrope blooms here"
    assert answers[0].parts.lexical > answers[1].parts.lexical > 0


def test_other_forms_of_a_word_are_found(heart):
    heart.learn("Ana adopted two greyhounds")
    heart.learn("Ben paints his boat")

    assert asked(heart, "Which greyhound did she adopt?")[0].parts.lexical > 0.4


def test_a_word_of_the_question_that_no_memory_has_makes_a_recall_less_sure_and_changes_no_score(heart):
    heart.learn("Ana adopted two greyhounds")
    heart.learn("Ben paints his boat")
    with heart.agent.database.transaction(heart.agent.id) as connection:

        def by_words(query):
            cue = Cue(query, None)
            return recall(connection, heart.agent.id, cue, space=heart.agent.embedder.space, policy=RecallPolicy())

        known, odd = by_words("Ana greyhounds"), by_words("Ana greyhounds harpsichord")

    assert [each.score for each in odd.answers] == [each.score for each in known.answers]
    assert odd.confidence < known.confidence


def test_one_word_in_a_memory_of_average_length_scores_as_bm25_says(heart):
    heart.learn("heliotrope blooms")

    (answer,) = asked(heart, "heliotrope")

    assert answer.parts.lexical == pytest.approx(1 / (1 + 0.9))


def test_a_word_said_around_a_memory_counts_a_quarter(heart):
    heart.learn("Yes it did", context="heliotrope")

    (answer,) = asked(heart, "heliotrope")

    assert answer.parts.lexical == pytest.approx(0.25 / (0.25 + 0.9))


def test_a_long_memory_is_held_to_its_length(heart):
    heart.learn("Heliotrope blooms")
    heart.learn("Heliotrope came up while we spoke of roads, trains, harbours, bridges and the price of timber")

    short, long = asked(heart, "heliotrope")

    assert short.content == "Heliotrope blooms"
    assert short.parts.lexical > long.parts.lexical


def test_context_helps_to_find_a_memory_and_is_not_its_content(heart):
    heart.learn("She said yes at once", context="Ben: I asked Ana about the heliotrope greenhouse")
    heart.learn("The train was late")

    best = asked(heart, "heliotrope greenhouse")[0]

    assert best.content == "She said yes at once"
    assert best.parts.lexical > 0
    assert best.parts.dense > 0


def test_common_words_alone_still_find_something(heart):
    heart.learn("To be or not to be")

    assert contents(asked(heart, "to be or not?")) == ["To be or not to be"]


def test_a_question_without_words_is_answered_by_its_vector(heart):
    heart.learn("The train was late")

    (answer,) = asked(heart, "?!")

    assert answer.parts.lexical == 0


@pytest.mark.parametrize("statistics", ["absent", "fresh", "stale"])
def test_statistics_that_are_absent_or_stale_change_no_order_here(heart, statistics):
    heart.learn("Heliotrope blooms here")
    if statistics == "stale":
        refresh(heart)
    heart.learn("The office opens early")
    heart.learn("The office closes late")
    if statistics == "fresh":
        refresh(heart)

    answers = asked(heart, "heliotrope office early")

    assert contents(answers) == ["The office opens early", "Heliotrope blooms here", "The office closes late"]


def test_refreshed_statistics_count_own_words_of_one_agent(heart, database, embedder, owner):
    heart.learn("Heliotrope blooms", context="the greenhouse")
    heart.learn("Heliotrope wilts in the cold winter")
    Heart.open("ben", database=database, embedder=embedder).learn("Heliotrope dries")

    refresh(heart)
    refresh(heart)

    counts = dict(
        owner.execute("select lexeme, document_count from heart.term_stats where agent_id = 'aria'").fetchall()
    )
    corpus = owner.execute(
        "select memory_count, average_length, average_context_length from heart.corpus_stats where agent_id = 'aria'"
    ).fetchone()
    assert counts == {"heliotrop": 2, "bloom": 1, "wilt": 1, "cold": 1, "winter": 1}
    assert corpus == (2, 3.0, 1.0)


def test_a_superseded_fact_stays_out_until_asked_for(heart, owner):
    old = heart.learn("The deploy day is Monday", learned_at=MAY).memory
    new = heart.learn("Releases happen on Fridays nowadays", learned_at=JUNE).memory
    supersede(owner, old.id, new.id)

    assert [answer.id for answer in asked(heart, "deploy day")] == [new.id]
    assert [answer.id for answer in asked(heart, "deploy day", as_of=MAY + timedelta(days=3))] == [old.id]
    assert [answer.id for answer in asked(heart, "deploy day", as_of=JULY)] == [new.id]


def test_the_past_holds_only_what_was_valid_then(heart):
    heart.learn("Ana lives in Lima", learned_at=MAY, valid_from=MAY, valid_to=JUNE)
    heart.learn("Ben likes trains", learned_at=MAY)

    assert "Ana lives in Lima" in contents(asked(heart, "Lima", as_of=MAY + timedelta(days=3)))
    assert "Ana lives in Lima" not in contents(asked(heart, "Lima", as_of=JULY))


def test_nothing_is_recalled_from_before_it_was_learned(heart):
    heart.learn("Ana lives in Lima", learned_at=JUNE)

    assert asked(heart, "Lima", as_of=MAY) == []


@pytest.mark.parametrize("state", ["archived", "quarantined"])
def test_only_active_memories_are_recalled(heart, owner, state):
    kept, gone = (heart.learn(f"Ana lives in {city}").memory for city in ("Lima", "Oslo"))
    write_unseen(
        owner,
        "update heart.facts set state = %s, archived_at = case when %s = 'archived' then now() end where id = %s",
        [state, state, gone.id],
    )

    assert [answer.id for answer in asked(heart, "Where does Ana live?")] == [kept.id]


def test_no_agent_sees_the_memories_of_another(heart, database, embedder, judge):
    stranger = Heart.open("ben", database=database, embedder=embedder, judge=judge)
    stranger.learn("Ana lives in Lima")
    mine = heart.learn("Ana lives in Lima").memory

    assert [answer.id for answer in asked(heart, "Where does Ana live?")] == [mine.id]


def test_a_memory_of_a_user_or_project_is_found_by_that_one_alone(heart):
    heart.learn("Everybody rests on Sunday", scope="system")
    heart.learn("Ana rests on Monday", user_id="ana")
    heart.learn("The harbour rests on Tuesday", scope="project", project_id="harbour")
    heart.learn("Nobody rests on Wednesday")

    anybody = {"Everybody rests on Sunday", "Nobody rests on Wednesday"}
    assert set(contents(asked(heart, "who rests when?"))) == anybody
    assert set(contents(asked(heart, "who rests when?", user_id="ana"))) == anybody | {"Ana rests on Monday"}
    assert set(contents(asked(heart, "who rests when?", project_id="harbour"))) == anybody | {
        "The harbour rests on Tuesday"
    }


def test_a_memory_of_the_same_frame_moves_up(heart):
    heart.learn("The harbour opens at six", encoded_frame="debug")
    heart.learn("The harbour opens at seven", encoded_frame="decision")

    (first, _) = asked(heart, "When does the harbour open?", frame="decision")

    assert first.content == "The harbour opens at seven"
    assert first.parts.frame_boost == pytest.approx(1.3)


def test_a_question_that_names_a_day_lifts_what_was_said_then_however_far_down_it_is(heart):
    rows = [(f"The harbour crane {name} failed", JUNE) for name in ("Alba", "Brio", "Cora", "Dora")]
    rows += [("The harbour crane failed near the pier", MAY)]
    heart.learn_deferred([(text, {"learned_at": at}) for text, at in rows])
    narrow = RecallPolicy(candidate_count=1, dated_count=1)

    def first(question: str) -> Recalled:
        cue = Cue(question, heart.agent.embedder.embed_query(question), limit=1, periods=periods_in(question, at=JULY))
        with heart.agent.database.transaction(heart.agent.id) as connection:
            space = heart.agent.embedder.space
            (answer,) = recall(connection, heart.agent.id, cue, space=space, policy=narrow).answers
        return answer

    assert first("which harbour crane failed?").memory.learned_at == JUNE
    dated = first("which harbour crane failed on 1 May?")
    assert (dated.memory.learned_at, dated.parts.time_boost) == (MAY, pytest.approx(1.4))


def test_words_like_yesterday_are_relative_to_the_moment_that_is_asked_about(heart):
    heart.learn("The harbour opens at six", learned_at=MAY)

    (answer,) = heart.recall("what opened yesterday?", as_of=MAY + timedelta(days=1))
    (later,) = heart.recall("what opened yesterday?", at=JULY)

    assert (answer.parts.time_boost, later.parts.time_boost) == (pytest.approx(1.4), 1)


def test_every_answer_keeps_the_parts_of_its_score(heart):
    heart.learn("The harbour opens at six", encoded_frame="task", encoded_censors=["a"])

    (answer,) = asked(heart, "harbour", frame="task", active_censors=["a", "b"])

    parts = answer.parts
    assert parts.score == pytest.approx(parts.relevance * 1.3 * 1.1)
    assert (answer.memory.dense, answer.memory.lexical) == (parts.dense, parts.lexical)


@pytest.mark.parametrize("changes", [{"types": ["dream"]}, {"limit": 0}, {"limit": 201}])
def test_an_impossible_question_is_refused(heart, changes):
    with pytest.raises(InvalidInput):
        heart.recall("anything", **changes)


def test_the_scan_settings_exist_and_last_no_longer_than_the_transaction(database):
    with database.transaction("aria") as connection:
        connection.execute("select '[1]'::vector")
        known = connection.execute(
            "select count(*) from pg_settings where name in ('hnsw.iterative_scan', 'hnsw.ef_search')"
        )
        assert known.fetchone() == (2,)

    with database.transaction("aria") as connection:
        assert connection.execute("show hnsw.iterative_scan").fetchone() != (SCAN,)


def test_settings_that_did_not_take_effect_are_an_error():
    check_scan((SCAN, "40"), "40")
    with pytest.raises(Unsupported, match="pgvector took"):
        check_scan(("off", "40"), "40")


@pytest.fixture(scope="module")
def tenants(copy_of, template):
    """A database of agents of different sizes, to be copied, and questions to them."""
    with copy_of(template) as url:
        with psycopg.connect(url, autocommit=True) as owner:
            queries = fill_tenants(url, owner, {"tiny": 10, "small": 200, "large": 1200})
            (name,) = owner.execute("select current_database()").fetchone()
        yield name, queries


def test_a_tenant_of_any_size_finds_what_an_exact_scan_finds(copy_of, tenants):
    name, queries = tenants
    with copy_of(name) as url, psycopg.connect(url, autocommit=True) as owner, closing(Database(url)) as database:
        register_vector(owner)
        for agent in ("tiny", "small", "large"):
            with_index = [nearest(database, agent, query) for query in queries]

            exact = [exact_nearest(owner, agent, query) for query in queries]
            hits = sum(len(set(a) & set(b)) for a, b in zip(with_index, exact, strict=True))
            assert hits / sum(map(len, exact)) >= 0.99, agent


def test_a_tenant_beyond_the_limit_is_searched_through_the_index(copy_of, tenants):
    name, queries = tenants
    with copy_of(name) as url, psycopg.connect(url, autocommit=True) as owner:
        register_vector(owner)
        with closing(Database(url)) as database:
            policy = replace(RecallPolicy(), exact_limit=100)
            found = [nearest(database, "large", query, policy) for query in queries]

        exact = [exact_nearest(owner, "large", query) for query in queries]
        hits = sum(len(set(a) & set(b)) for a, b in zip(found, exact, strict=True))
        assert hits / sum(map(len, exact)) >= 0.9
        assert eventually(lambda: index_scans(owner) == len(queries))


def test_the_search_is_planned_once_and_serves_every_question(heart, database_url):
    heart.learn("The harbour opens at six")

    with (
        closing(Database(database_url)) as new,
        new.transaction(heart.agent.id, is_pipelined=True) as connection,
    ):
        for query in ("harbour", "six", "when does it open?"):
            cue = Cue(query, heart.agent.embedder.embed_query(query))
            recall(connection, heart.agent.id, cue, space=heart.agent.embedder.space, policy=RecallPolicy())
        planned = connection.execute(
            "select generic_plans, custom_plans from pg_prepared_statements where statement like '%candidate as%'"
        ).fetchall()

    assert planned == [(3, 0)]


def test_limits_of_all_sizes_are_served_by_few_statements():
    policy = RecallPolicy()
    vector = np.zeros(64, dtype=np.float32)

    counts = {candidate_count(Cue("q", vector, limit=limit), policy) for limit in range(1, 201)}

    assert counts == {20, 40, 80, 160, 320}
    for limit in range(1, 201):
        spare = min(2 * limit, policy.spare_up_to)
        assert candidate_count(Cue("q", vector, limit=limit), policy) >= max(limit, spare)


def fill_tenants(url: str, owner: psycopg.Connection, sizes: dict[str, int]) -> np.ndarray:
    rng = np.random.default_rng(7)
    with closing(Database(url)) as database:
        register_space(database, DRAWN, is_indexed=False)
    register_vector(owner)
    owner.execute("set session_replication_role = replica")  # rows without events: the index is what is tested
    for agent, size in sizes.items():
        owner.execute("insert into heart.agents (id, embedding_space_id) values (%s, %s)", [agent, DRAWN.id])
        with owner.cursor().copy(
            "copy heart.facts (agent_id, content, embedding, embedding_space_id) from stdin"
        ) as copy:
            for vector in unit_rows(rng.standard_normal((size, 64), dtype=np.float32)):
                copy.write_row((agent, "a fact", Vector(vector), DRAWN.id))
    owner.execute("set session_replication_role = origin")
    owner.execute("select heart.index_embedding_space(%s)", [DRAWN.id])
    owner.execute("analyze heart.facts")
    return unit_rows(rng.standard_normal((20, 64), dtype=np.float32))


def nearest(database: Database, agent: str, query: np.ndarray, policy: RecallPolicy | None = None) -> list[object]:
    with database.transaction(agent) as connection:
        answers = recall(connection, agent, Cue("", query), space=DRAWN, policy=policy or RecallPolicy()).answers
    return [answer.id for answer in answers]


def index_scans(owner: psycopg.Connection) -> int:
    statement = "select sum(idx_scan)::integer from pg_stat_user_indexes where indexrelname like 'facts_hnsw_%'"
    return owner.execute(statement).fetchone()[0]


def eventually(holds: Callable[[], bool]) -> bool:
    """Tell whether something comes true: a backend reports what it did when it ends."""
    until = time.monotonic() + 10
    while not holds() and time.monotonic() < until:
        time.sleep(0.05)
    return holds()


def exact_nearest(owner: psycopg.Connection, agent: str, query: np.ndarray) -> list[object]:
    rows = owner.execute(
        "select id from heart.facts where agent_id = %s order by (embedding <=> %s) + 0 limit 10",
        [agent, Vector(query)],
    )
    return [row[0] for row in rows]


def supersede(owner: psycopg.Connection, old: object, new: object) -> None:
    write_unseen(
        owner,
        "update heart.facts set state = 'superseded', superseded_by = %s, superseded_at = %s, succession = 'replaced' "
        "where id = %s",
        [new, JUNE, old],
    )


def write_unseen(owner: psycopg.Connection, statement: str, values: list[object]) -> None:
    """Write a row as some earlier night left it, without its event."""
    owner.execute("set session_replication_role = replica")
    owner.execute(statement, values)
    owner.execute("set session_replication_role = origin")
