"""Erasing one memory or one user: nothing of it can be found in any row afterwards, and the others are as they were."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from datetime import UTC, datetime
from uuid import UUID, uuid4

import psycopg
import pytest
from conftest import ScriptedJudge, WordEmbedder
from erased_rows import dump, insert, mentions
from test_forgetting_by_hand import merged_away

from nous_online.core.domain import Fact
from nous_online.core.errors import Conflict, InvalidInput, NotFound
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.language.pairs.judging import Verdict
from nous_online.language.writing.writer import OfflineWriter
from nous_online.memories import erasure
from nous_online.memories.erasure import ROWS, Erased, Part, erase_some

WORD = "zinfandel"
"""A word that occurs in nothing but what is to be erased."""
Erase = Callable[..., Erased]
WITHOUT_ROWS = {
    "heart.agents": "the agent stays",
    "heart.api_keys": "keys are the agent's",
    "heart.corpus_stats": "counts and lengths of all memories together",
    "heart.llm_requests": "what was paid; it names pairs by their hashes",
    "heart.outbox_cursors": "places in a queue",
    "heart.term_stats": "words that nothing holds any more leave it",
    "heart.webhooks": "addresses are the agent's",
    "heart.word_changes": "all of the agent's go, and its words are counted again",
    "lifecycle.agent_policies": "the agent's",
    "lifecycle.health": "counts",
    "lifecycle.plans": "checked for quotations",
}
"""The agent's tables in which erasing a memory deletes no row, and why."""


@pytest.fixture
def erase(database_url: str, embedder: WordEmbedder) -> Erase:
    def done(*memory_ids: UUID, user: str | None = None, is_dry_run: bool = False) -> Erased:
        part = Part(memory_ids, user)
        return erase_some(
            database_url, "aria", part, reason="asked for", erasers=[], embedder_of=lambda _: embedder,
            is_dry_run=is_dry_run,
        )  # fmt: skip

    return done


def used(heart: Heart, fact: Fact) -> None:
    """Let a memory be asked for, cited, held in mind and shown in a context."""
    found = heart.recall(f"where is the {WORD}?", session_id="s")
    heart.cite(found.id, [fact.id])
    heart.load_context(session_id="s", fact_ids=[fact.id])
    heart.assemble_context(query=f"the {WORD}", session_id="s")


def known_to_planner(owner: psycopg.Connection) -> None:
    owner.execute("insert into heart.term_stats (agent_id, lexeme, document_count) select agent_id, lexeme, 1 "
                  "from heart.postings group by 1, 2")  # fmt: skip
    owner.execute("analyze")


def test_every_table_of_an_agent_says_how_a_memory_leaves_it(owner: psycopg.Connection) -> None:
    with owner.transaction():
        names = {table.name for table in erasure.tables_in_order(owner)}

    assert {table for table, _ in ROWS} | set(WITHOUT_ROWS) | {"lifecycle.tombstones"} >= names | {"lifecycle.plans"}


def test_nothing_of_an_erased_fact_is_left_in_any_row(heart: Heart, owner: psycopg.Connection, erase: Erase) -> None:
    fact = heart.learn(f"The {WORD} is in the cellar", context=f"said over {WORD}", source=f"{WORD} chat").memory
    heart.learn(f"The {WORD} is in the cellar", idempotency_key=WORD)
    kept = heart.learn("The office opens at nine").memory
    used(heart, fact)
    known_to_planner(owner)
    before = dump(owner)

    erased = erase(fact.id)

    assert {name for name, _ in mentions(before, WORD)} > {
        "heart.facts",
        "heart.statements",
        "heart.recalls",
        "pg_stats",
    }
    assert mentions(dump(owner), WORD) == set()
    assert mentions(dump(owner), str(fact.id)) == set()
    assert (erased.rows["heart.facts"], erased.rows["heart.statements"]) == (1, 2)
    assert heart.get(kept.id) == kept
    assert [each.id for each in heart.recall("where is it?")] == [kept.id]


def test_what_replaced_an_erased_fact_or_was_said_around_it_keeps_nothing_of_it(
    heart: Heart, owner: psycopg.Connection, judge: ScriptedJudge, erase: Erase
) -> None:
    fact = heart.learn(f"The {WORD} is in the cellar,\nbehind the door").memory
    moved = heart.learn("It all went up to the attic. The key hangs there.", replaces=fact.id).memory
    heart.undo(fact.id, reason="not yet")
    beside = heart.learn("Nobody drinks any", context=f"The stairs are steep\n{fact.content}").memory
    judge.verdicts[fact.content, "There is none in the house"] = Verdict.CONTRADICTS
    heart.learn("There is none in the house")
    judge.change = 0.9
    heart.learn("Ben took it home")
    known_to_planner(owner)

    erase(fact.id)

    assert mentions(dump(owner), WORD) == set()
    assert mentions(dump(owner), str(fact.id)) == set()
    contexts = dict(owner.execute("select id, context from heart.facts where id = any(%s)", [[moved.id, beside.id]]))
    assert contexts == {moved.id: None, beside.id: "The stairs are steep"}
    assert {each.action for each in heart.history(moved.id)} == {"learned", "redacted"}
    assert heart.history(beside.id)[0].reason == "what was told beside it was erased"
    assert heart.recall("the key hangs there")[0].id == moved.id


@pytest.mark.parametrize("kind", ["episode", "procedure", "censor"])
def test_nothing_of_an_erased_memory_of_another_kind_is_left(
    heart: Heart, owner: psycopg.Connection, erase: Erase, kind: str
) -> None:
    ids = {
        "episode": heart.record_episode(f"Ada poured the {WORD}", title=f"A {WORD}", lessons_learned=[f"no {WORD}"]).id,
        "procedure": heart.store_procedure("Pour it", goals=[f"the {WORD} breathes"], tags=[WORD]).id,
        "censor": heart.add_censor(f"shaking the {WORD}", "it clouds").id,
    }
    heart.work()
    for other in {*ids} - {kind}:
        erase(ids[other])
    heart.recall(f"the {WORD}")
    before = mentions(dump(owner), WORD)

    erase(ids[kind])

    assert before
    assert mentions(dump(owner), WORD) == set()


@pytest.mark.parametrize("report", ["user", "agent"])
def test_an_episode_goes_also_after_a_false_alarm_was_reported(heart: Heart, erase: Erase, report: str) -> None:
    """A report names its reporter, "user", and so does the episode: that alone is no quotation."""
    episode = heart.record_episode(
        f"user: My {WORD} squeals.\nassistant: Thanks.", user_id="ada", participants=["user"]
    )
    censor = heart.add_censor("lend out the red cargo bike", "insurance")
    (fired,) = heart.check_censors("lend out the red cargo bike")
    reported = heart.report_false_positive(censor.id, activation_id=fired.id, source_kind=report)

    erase(episode.id)

    assert heart.get_censor(censor.id) == reported


def test_a_censor_that_stays_keeps_no_words_of_what_is_erased(
    heart: Heart, owner: psycopg.Connection, erase: Erase
) -> None:
    said = f"lend out the {WORD} of Ada"
    fact = heart.learn(said).memory
    censor = heart.add_censor("lend out", "insurance", is_literal=True, severity="block")
    (fired,) = heart.check_censors(said)
    heart.report_false_positive(censor.id, activation_id=fired.id, note="she asked")

    erase(fact.id)

    left = heart.get_censor(censor.id)
    assert [each["action"] for each in left.exceptions] == ["[erased]"]
    assert [each.action for each in heart.history(censor.id)] == ["redacted", "reported", "activated", "learned"]
    assert mentions(dump(owner), WORD) == set()
    assert heart.undo(censor.id).action == "reported"
    assert (heart.get_censor(censor.id).exceptions, heart.get_censor(censor.id).false_positive_count) == ([], 0)


@pytest.mark.parametrize("has_more", [True, False])
def test_what_a_user_did_leaves_the_censors_that_others_share(
    heart: Heart, owner: psycopg.Connection, erase: Erase, *, has_more: bool
) -> None:
    censor = heart.add_censor("lend out", "insurance", is_literal=True, severity="block")
    (fired,) = heart.check_censors(f"lend out {WORD} to {WORD}", user_id=WORD)
    heart.report_false_positive(censor.id, activation_id=fired.id)
    for action in ("lend out a helmet", "lend out the cargo bike"):  # the second is what another user does, too
        heart.check_censors(action, user_id=WORD)
    (other,) = heart.check_censors("lend out the cargo bike", user_id="ben")
    heart.report_false_positive(censor.id, activation_id=other.id)
    if has_more:
        heart.learn("I ride to work", user_id=WORD)

    erase(user=WORD)

    left = heart.get_censor(censor.id)
    assert [(each["action"], each["user_id"]) for each in left.exceptions] == [
        ("[erased]", None), ("lend out the cargo bike", "ben"),
    ]  # fmt: skip
    assert left.activation_count == 4
    assert mentions(dump(owner), WORD) == set()


def test_a_user_who_did_only_what_another_one_did_can_be_erased(
    heart: Heart, owner: psycopg.Connection, erase: Erase
) -> None:
    heart.add_censor("lend out", "insurance", is_literal=True)
    for user in (WORD, "ben"):
        heart.check_censors("lend out the cargo bike", user_id=user)

    erase(user=WORD)

    assert mentions(dump(owner), WORD) == set()
    with pytest.raises(NotFound, match=f"nothing of user '{WORD}'"):
        erase(user=WORD)


def test_the_other_rows_of_the_agent_stay_as_they_were(heart: Heart, owner: psycopg.Connection, erase: Erase) -> None:
    others = [heart.learn(text).memory for text in ("The office opens at nine", "Backups are kept for 30 days")]
    for each in others:
        heart.confirm_fact(each.id)
    tables = ("heart.facts", "heart.statements", "heart.postings", "lifecycle.events", "heart.usage")
    before = {name: text for name, text in dump(owner).items() if name in tables}
    fact = heart.learn(f"The {WORD} is in the cellar").memory

    erase(fact.id)

    assert {name: text for name, text in dump(owner).items() if name in tables} == before


def test_a_reason_that_is_given_for_others_too_is_no_trace(
    heart: Heart, owner: psycopg.Connection, erase: Erase
) -> None:
    fact = heart.learn(f"The {WORD} is in the cellar").memory
    reason = "the later one replaces what the earlier says"
    verdict = {"model": "m", "prompt_version": "1", "verdict": "updates", "confidence": 1}
    of_night = {"night": "2026-06-01", "plan_hash": "own", "kind": "merge", "outcome": "applied"}
    proposal = {**of_night, "read_set": "[]", "changes": "[]"}
    insert(
        owner,
        "aria",
        {
            "heart.judgements": {**verdict, "pair_hash": "h", "reason": f"{reason}: number 180 ≠ 200"},
            "lifecycle.proposals": {**proposal, "id": UUID(int=3), "targets": [fact.id], "reason": reason},
        },
    )

    erase(fact.id)

    assert owner.execute("select reason from heart.judgements").fetchall() == [(f"{reason}: number 180 ≠ 200",)]


def test_the_history_of_the_others_keeps_the_reasons_they_have_in_common_with_what_is_erased(
    heart: Heart, owner: psycopg.Connection, erase: Erase
) -> None:
    facts = [heart.learn(text).memory for text in (f"The {WORD} is in the cellar", "The key hangs in the attic")]
    episodes = [heart.record_episode(f"Ada poured {what}", title=what) for what in ("wine", "juice")]
    for each in facts:
        heart.forget(each.id, reason="we moved out")
        insert(owner, "aria", {"lifecycle.events": {
            "memory_kind": "fact", "memory_id": each.id, "action": "re-embedded", "from_state": "archived",
            "to_state": "archived", "version_before": 7, "version_after": 8, "actor": "operator",
            "reason": "from embedding space a to b", "effective_at": each.learned_at}})  # fmt: skip
    find = "select reason from lifecycle.events where memory_id = any(%s) order by id"
    kept = [[facts[1].id, episodes[1].id]]
    before = owner.execute(find, kept).fetchall()

    erase(facts[0].id, episodes[0].id)

    assert {("we moved out",), ("from embedding space a to b",)} < set(before)
    assert owner.execute(find, kept).fetchall() == before
    assert mentions(dump(owner), WORD) == set()


def test_a_reason_shared_with_what_contradicted_it_goes(
    heart: Heart, owner: psycopg.Connection, judge: ScriptedJudge, erase: Erase
) -> None:
    fact = heart.learn("It is in the cellar").memory
    judge.verdicts[fact.content, "There is none in the house"] = Verdict.CONTRADICTS
    other = heart.learn("There is none in the house").memory
    owner.execute("set session_replication_role = replica")
    owner.execute("update lifecycle.events set reason = %s where action <> 'learned'", [f"no {WORD} here"])
    owner.execute("set session_replication_role = default")

    erase(fact.id)

    assert "contradicted" in {each.action for each in heart.history(other.id)}
    assert mentions(dump(owner), WORD) == set()


def test_a_fact_whose_context_has_a_short_erased_word_within_another_is_left_as_it_is(
    heart: Heart, erase: Erase
) -> None:
    fact = heart.learn("It is served at four", subject="tea").memory
    beside = heart.learn("The kettle is new", context="It makes steam").memory

    erase(fact.id)

    assert heart.get(beside.id) == beside


def test_with_an_episode_goes_what_was_drawn_from_it_and_the_answer_says_so(
    heart: Heart, owner: psycopg.Connection, erase: Erase
) -> None:
    episode = heart.record_episode(f"fact: the {WORD} is in the cellar\nnever: shake the {WORD}", outcome="failure")
    heart.work()
    drawn = {fact.id for fact in heart.recall(WORD, types=["fact", "censor"])}

    planned = erase(episode.id, is_dry_run=True)
    erased = erase(episode.id)

    assert drawn
    assert set(planned.with_it) == set(erased.with_it) >= drawn
    assert mentions(dump(owner), WORD) == set()


def test_an_episode_that_still_tells_an_erased_fact_is_named(heart: Heart, erase: Erase) -> None:
    episode = heart.record_episode(f"fact: the {WORD} is in the cellar")
    heart.work()
    (fact,) = heart.recall(WORD, types=["fact"])

    assert erase(fact.id).told_in == (episode.id,)
    assert WORD in heart.full_text(episode.id).text


def test_what_was_told_in_one_turn_with_an_erased_fact_keeps_nothing_of_it(
    database: Database, embedder: WordEmbedder, judge: ScriptedJudge, owner: psycopg.Connection, erase: Erase
) -> None:
    writer = OfflineWriter(embedder)
    heart = Heart.open(
        "aria", database=database, embedder=embedder, judge=judge, writer=writer, works_in_background=False
    )
    told = "My wrist is in plaster until 3 October 2026. The coal comes from Tull and Sons on Fridays."
    heart.record_episode(detail=f"user: {told}\nassistant: Noted.", ended_at=datetime(2026, 9, 8, tzinfo=UTC))
    heart.work()
    facts = {fact.content[:8]: fact for each in heart.list_memories(kinds=["fact"]) if (fact := heart.get(each.id))}
    find = "select content, context from heart.facts where id = %s"
    ((content, context),) = owner.execute(find, [facts["The coal"].id])
    assert facts["My wrist"].content in context

    erase(facts["My wrist"].id)

    assert owner.execute(find, [facts["The coal"].id]).fetchall() == [(content, None)]


def test_facts_merged_into_an_erased_one_go_with_it_and_what_it_had_replaced_stays_away(
    heart: Heart, owner: psycopg.Connection, erase: Erase
) -> None:
    old, fact = heart.learn("The wine is upstairs").memory, heart.learn(f"The {WORD} is in the cellar").memory
    merged = heart.learn(f"In the cellar lies {WORD}").memory
    heart.supersede_fact(old.id, fact.id)
    merged_away(heart, merged, into=fact)

    erased = erase(fact.id)

    assert erased.with_it == (merged.id,)
    assert mentions(dump(owner), WORD) == set()
    assert (heart.get(old.id).state, heart.get(old.id).superseded_by) == ("archived", None)
    assert heart.history(old.id)[0].action == "redacted"
    assert heart.restore(old.id).state == "active"


def test_a_fact_into_which_an_erased_one_was_merged_keeps_its_own_statements_only(
    heart: Heart, owner: psycopg.Connection, erase: Erase
) -> None:
    kept, merged = heart.learn("The wine is in the cellar").memory, heart.learn(f"The {WORD} lies below").memory
    merged_away(heart, merged, into=kept)
    owner.execute("set session_replication_role = replica")
    owner.execute("update heart.facts set confirmation_count = 1 where id = %s", [kept.id])

    erase(merged.id)

    assert [each.content for each in heart.statements(kept.id)] == ["The wine is in the cellar"]
    assert (heart.get(kept.id).confirmation_count, heart.get(kept.id).state) == (0, "active")
    assert mentions(dump(owner), WORD) == set()


def test_a_fact_in_the_middle_of_a_chain_leaves_no_hole(heart: Heart, erase: Erase) -> None:
    first, middle, last = (heart.learn(text).memory for text in ("One bird sings", f"{WORD} is red", "Three cars park"))
    heart.supersede_fact(first.id, middle.id)
    heart.supersede_fact(middle.id, last.id)

    erase(middle.id)

    assert (heart.get(first.id).superseded_by, heart.get(first.id).succession) == (last.id, "replaced")


def test_a_fact_that_loses_the_statement_it_stood_on_takes_the_words_of_the_next_oldest(
    heart: Heart, owner: psycopg.Connection, judge: ScriptedJudge, erase: Erase
) -> None:
    """Two users said it; the fact is the project's by now."""
    fact = heart.learn(f"Deploys go out on {WORD} days", user_id="ada", project_id="p", scope="project").memory
    for text in ("Deploys go out on Tuesdays", "Tuesday is deploy day"):
        said_for(owner, fact, text, user_id="ben")
    owner.execute("set session_replication_role = replica")
    owner.execute("update heart.facts set user_id = null, confirmation_count = 2 where id = %s", [fact.id])

    erased = erase(user="ada")

    found = heart.get(fact.id)
    assert erased.reworded == (fact.id,)
    assert (found.content, found.confirmation_count) == ("Deploys go out on Tuesdays", 1)
    assert mentions(dump(owner), WORD) == set()
    best = heart.recall("Deploys go out on Tuesdays", project_id="p")[0]
    assert best.id == fact.id
    assert best.parts.dense > 0.99


def said_for(owner: psycopg.Connection, fact: Fact, text: str, *, user_id: str) -> None:
    said = {"fact_id": fact.id, "content": text, "said_at": datetime.now(UTC), "user_id": user_id}
    insert(owner, "aria", {"heart.statements": {**said, "reason": "reworded", "source": "a chat"}})


def test_everything_of_a_user_goes_and_nothing_of_another(
    heart: Heart, owner: psycopg.Connection, erase: Erase
) -> None:
    heart.learn(f"Ada likes {WORD}", user_id="ada-7")
    heart.record_episode(f"Ada poured the {WORD}", user_id="ada-7", session_id="ada's")
    heart.store_procedure(f"Pour {WORD}", goals=["drink"], user_id="ada-7")
    heart.add_censor(f"shaking the {WORD}", "it clouds", user_id="ada-7")
    heart.focus(f"find the {WORD}", session_id="ada's")
    heart.record_decision(f"Buy more {WORD}", session_id="ada's")
    heart.recall(f"where is the {WORD}?", user_id="ada-7", session_id="ada's")
    bens = heart.learn("Ben likes coffee", user_id="ben").memory
    heart.recall("what does Ben like?", user_id="ben", session_id="ben's")
    before = mentions(dump(owner), WORD)

    erase(user="ada-7")

    assert len(before) > 8
    assert mentions(dump(owner), WORD, "ada-7") == set()
    assert heart.get(bens.id) == bens
    assert owner.execute("select query from heart.recalls").fetchall() == [("what does Ben like?",)]


def test_what_a_shared_fact_took_up_of_another_user_is_believed_again(heart: Heart, erase: Erase) -> None:
    adas = heart.learn("The lift is broken", user_id="ada").memory
    bens = heart.learn("The elevator does not work", user_id="ben").memory
    merged_away(heart, bens, into=adas)

    erase(user="ada")

    assert (heart.get(bens.id).state, heart.get(bens.id).superseded_by) == ("active", None)


def test_what_a_night_said_of_an_erased_fact_is_gone_and_its_changes_of_others_stay(
    heart: Heart, owner: psycopg.Connection, erase: Erase
) -> None:
    fact, kept = heart.learn(f"The {WORD} is in the cellar").memory, heart.learn("The office opens at nine").memory
    plan = {"hash": "h", "night": "2026-06-01", "agent_ids": ["aria"], "policy": "{}",
            "checks": f'[{{"message": "about The {WORD} is in the cellar it was said"}}]'}  # fmt: skip
    owner.execute("insert into lifecycle.plans (hash, night, agent_ids, policy, checks) values "
                  "(%(hash)s, %(night)s, %(agent_ids)s, %(policy)s, %(checks)s)", plan)  # fmt: skip
    both = json.dumps([{"kind": "fact", "id": str(each.id), "row_version": 1} for each in (fact, kept)])
    proposal = {
        "id": uuid4(),
        "night": "2026-06-01",
        "plan_hash": "h",
        "kind": "merge",
        "targets": [fact.id, kept.id],
        "read_set": both,
        "changes": both,
        "reason": f"both speak of {WORD}",
        "evidence": f'{{"of": "{WORD}"}}',
    }
    alone = {**proposal, "id": uuid4(), "targets": [fact.id], "reason": f"{WORD} was never used"}
    for row in (proposal, alone):
        insert(owner, "aria", {"lifecycle.proposals": row})
    insert(owner, "aria", {"lifecycle.events": {
        "memory_kind": "fact", "memory_id": kept.id, "action": "absorbed", "from_state": "active", "to_state": "active",
        "version_before": 1, "version_after": 2, "actor": "night", "reason": f"took up what said {WORD}",
        "effective_at": "2026-06-01", "night": "2026-06-01", "proposal_id": proposal["id"]}})  # fmt: skip

    planned = erase(fact.id, is_dry_run=True)
    erased = erase(fact.id)

    assert planned.rows == erased.rows
    assert erased.rows["lifecycle.proposals"] == 1
    assert mentions(dump(owner), WORD, str(fact.id)) == set()
    assert owner.execute("select id, targets, reason from lifecycle.proposals").fetchall() == [
        (proposal["id"], [kept.id], "[erased]")
    ]


def test_verdicts_about_an_erased_fact_are_forgotten_and_those_about_others_are_not(
    heart: Heart, owner: psycopg.Connection, erase: Erase
) -> None:
    import polars as pl

    from nous_pipelines.phases.asking import with_hashes

    ids = [heart.learn(text).memory.id for text in (f"The {WORD} is in the cellar", "Beer is upstairs", "Tea is below")]
    rows = owner.execute("select agent_id, id::text, content, subject, embedding_space_id from heart.facts").fetchall()
    columns = ["agent_id", "id", "content", "subject", "embedding_space_id"]
    facts = pl.DataFrame(rows, schema=columns, orient="row", schema_overrides={"subject": pl.String})
    sides = [(a, b) for a, b in ((0, 1), (1, 0), (1, 2)) for _ in range(2)]
    pairs = pl.DataFrame({
        "agent_id": "aria", "left_id": [str(ids[a]) for a, _ in sides], "right_id": [str(ids[b]) for _, b in sides],
        "is_ordered": [True, False] * 3,
    })  # fmt: skip
    usual = {"model": "m", "prompt_version": "1", "verdict": "same", "confidence": 1, "reason": "so"}
    owner.execute(
        "insert into heart.embedding_spaces (id, model, weights_sha256, dimensions) values ('left', '', '', 3)"
    )
    for space in ("words-64", "left"):  # verdicts of before a re-embedding are kept under the space that was left
        of_space = facts.with_columns(embedding_space_id=pl.lit(space))
        for each in with_hashes(pairs, of_space)["pair_hash"].unique():
            insert(owner, "aria", {"heart.judgements": {**usual, "pair_hash": each}})

    erased = erase(ids[0])

    assert erased.rows["heart.judgements"] == 6
    assert owner.execute("select count(*) from heart.judgements").fetchone() == (4,)


def test_a_hash_of_what_was_erased_stays_and_the_agent_is_not_taken_for_erased(
    heart: Heart, owner: psycopg.Connection, erase: Erase
) -> None:
    fact = heart.learn(f"The {WORD} is in the cellar").memory

    erase(fact.id)

    agent, *hashes = [
        hashlib.sha256(text.encode()).hexdigest()
        for text in ("aria", f"aria\nfact\nThe {WORD} is in the cellar", f"aria\nid\n{fact.id}")
    ]
    assert sorted(owner.execute("select agent_hash, content_hash from lifecycle.tombstones")) == [
        (agent, each) for each in sorted(hashes)
    ]
    assert heart.learn("The office opens at nine").action == "stored"


def test_a_dry_run_counts_and_changes_nothing(heart: Heart, owner: psycopg.Connection, erase: Erase) -> None:
    fact = heart.learn(f"The {WORD} is in the cellar").memory
    before = dump(owner)

    planned = erase(fact.id, is_dry_run=True)

    assert dump(owner) == before
    assert planned.is_dry_run
    assert planned.rows == erase(fact.id).rows


def test_a_part_nobody_knows_is_not_found_and_half_a_wish_is_refused(heart: Heart, erase: Erase) -> None:
    fact = heart.learn("The office opens at nine").memory

    with pytest.raises(NotFound, match="has no memory"):
        erase(fact.id, uuid4())
    with pytest.raises(NotFound, match="has nothing of user 'nobody'"):
        erase(user="nobody")
    with pytest.raises(InvalidInput, match="one of the two"):
        erase(fact.id, user="ada")

    assert heart.get(fact.id) == fact


def test_an_erased_memory_of_one_agent_is_none_of_anothers(
    heart: Heart, database: Database, embedder: WordEmbedder, judge: ScriptedJudge, erase: Erase
) -> None:
    other = Heart.open("ben", database=database, embedder=embedder, judge=judge)
    fact = other.learn("The office opens at nine").memory

    with pytest.raises(NotFound):
        erase(fact.id)

    assert other.get(fact.id) == fact


def test_an_agent_at_work_for_too_long_keeps_everything(
    heart: Heart, owner: psycopg.Connection, erase: Erase, monkeypatch: pytest.MonkeyPatch
) -> None:
    fact = heart.learn("The office opens at nine").memory
    monkeypatch.setattr(erasure, "WAIT_S", 1)

    with owner.transaction():
        owner.execute("select pg_advisory_xact_lock(hashtextextended('night:aria', 0))")
        with pytest.raises(Conflict, match="has been at work"):
            erase(fact.id)

    assert heart.get(fact.id) == fact


def test_a_contradiction_with_an_erased_fact_is_gone(
    heart: Heart, owner: psycopg.Connection, judge: ScriptedJudge, erase: Erase
) -> None:
    one, other = f"The gate code of the cellar is {WORD}", "The gate code of the cellar is open"
    judge.verdicts[one, other] = Verdict.CONTRADICTS
    fact = heart.learn(one, subject="gate").memory
    heart.learn(other, subject="gate")
    assert heart.contradictions()

    erase(fact.id)

    assert heart.contradictions(status=None) == []
    assert mentions(dump(owner), WORD) == set()
