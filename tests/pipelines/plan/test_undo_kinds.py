"""Whatever kinds of change nights make, taking them back restores every row."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from uuid import NAMESPACE_OID, UUID, uuid4, uuid5

import psycopg
import pytest
from examples import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from night_runs import events_in, usage_in

from nous_online.core.domain import EPISODE
from nous_online.core.errors import Conflict, Refused, Unavailable
from nous_online.database.changes import Cause, Version, change_memory
from nous_online.heart import Heart
from nous_pipelines.phases.proposals import Change, Proposal, Read
from nous_pipelines.plan import apply as applying
from nous_pipelines.plan.apply import Applied, apply_plan
from nous_pipelines.plan.planning import planned
from nous_pipelines.plan.undo import Selection, undo

NIGHT = date(2026, 6, 1)
NEXT = NIGHT + timedelta(days=1)
MAY = datetime(2026, 5, 2, tzinfo=UTC)
ENDS = "2026-06-02T00:00:00+00:00"
DETAIL = "We deployed on Friday.\nIt took 9 minutes; nothing broke."
TABLES = {"fact": "facts", "episode": "episodes", "procedure": "procedures", "censor": "censors"}


class Store:
    """One agent's memories of every kind, and the proposals a night could make about them."""

    def __init__(self, heart: Heart, owner: psycopg.Connection) -> None:
        self.owner, self.agent_id = owner, heart.agent.id
        contents = [f"thing {number} is of colour {number}" for number in range(6)]
        heart.learn_deferred([(content, {"learned_at": MAY, "tags": ["a"]}) for content in contents])
        self.facts = self.ids("fact")
        told = {"started_at": MAY, "ended_at": MAY, "summary": "A deploy.", "title": "Deploy", "outcome": "success"}
        for _ in range(2):
            heart.record_episode(DETAIL, **told)
        self.episodes = self.ids("episode")
        self.procedure = str(heart.store_procedure("deploy", goals=["ship"]).id)
        self.censor = str(heart.add_censor("deploy on Friday", "it failed").id)

    def ids(self, kind: str) -> list[str]:
        query = f"select id::text from heart.{TABLES[kind]} where agent_id = %s order by 1"  # noqa: S608 (our own names)
        return [row[0] for row in self.owner.execute(query, [self.agent_id])]

    def proposal(self, night: date, kind: str, reads: Sequence[tuple[str, str]], *changes: Change) -> Proposal:
        """Return a proposal that read memories, by kind and id, as they are now."""
        return Proposal(
            night=night, agent_id=self.agent_id, kind=kind, targets=tuple(memory for _, memory in reads),
            read_set=tuple(Read(of, memory, self.version(of, memory)) for of, memory in reads), changes=changes,
            reason="drawn", evidence={"drawn": True},
        )  # fmt: skip

    def version(self, kind: str, memory: str) -> int:
        query = f"select row_version from heart.{TABLES[kind]} where id = %s"  # noqa: S608 (our own names)
        return self.owner.execute(query, [memory]).fetchone()[0]

    def merge(self, night: date) -> Proposal:
        kept, gone = self.facts[:2]
        away = {"state": "superseded", "superseded_by": kept, "superseded_at": ENDS, "succession": "merged"}
        return self.proposal(
            night, "merge", [("fact", kept), ("fact", gone)],
            Change("fact", kept, set={"confirmation_count": 1, "tags": ["a", "b"]}, action="absorbed"),
            Change("usage", kept, add={"retrieved_count": 3, "ignored_count": 1}),
            Change("fact", gone, set=away, action="merged"),
        )  # fmt: skip

    def contradiction(self, night: date) -> Proposal:
        a, b = sorted(self.facts[2:4])
        marks = [Change("fact", each, set={"contradiction_status": "open"}, action="contradicted") for each in (a, b)]
        opened = {"memory_a": a, "memory_b": b, "detected_at": ENDS, "judgement": {"verdict": "contradicts"}}
        return self.proposal(
            night, "contradiction", [("fact", a), ("fact", b)],
            Change("contradiction", str(uuid5(NAMESPACE_OID, a + b)), set=opened), *marks,
        )  # fmt: skip

    def archive(self, night: date) -> Proposal:
        change = Change("fact", self.facts[4], set={"state": "archived", "archived_at": ENDS}, action="archived")
        return self.proposal(night, "archive", [("fact", self.facts[4])], change)

    def promote(self, night: date) -> Proposal:
        usage = Change("usage", self.censor, add={"cited_count": 2})
        change = Change("fact", self.facts[5], set={"rank_weight": 1.25}, action="promoted")
        return self.proposal(night, "promote", [("fact", self.facts[5]), ("censor", self.censor)], change, usage)

    def link(self, night: date) -> Proposal:
        start, end = self.facts[5], self.episodes[1]
        change = Change(
            "link", start, set={"to_id": end, "kind": "about", "weight": 0.5, "evidence": {"similarity": 1}}
        )
        return self.proposal(night, "link", [("fact", start), ("episode", end)], change)

    def tier(self, night: date) -> Proposal:
        episode = self.episodes[0]
        return self.proposal(
            night, "tier", [("episode", episode)],
            Change("cold_text", episode, set={"tier": "raw", "columns": ["detail"], "purge_after": None}),
            Change("episode", episode, set={"detail": None, "compression_tier": "summary"}, action="condensed"),
        )  # fmt: skip

    def lower_tier(self, night: date) -> Proposal:
        episode = self.episodes[0]
        values = {"summary": None, "compressed": "A deploy", "compression_tier": "compressed"}
        return self.proposal(
            night, "tier", [("episode", episode)],
            Change("cold_text", episode, set={"tier": "summary", "columns": ["summary", "compressed"]}),
            Change("episode", episode, set=values, action="condensed"),
        )  # fmt: skip

    def review(self, night: date) -> Proposal:
        change = Change(
            "procedure", self.procedure, set={"state": "review", "review_reason": "it fails"}, action="flagged"
        )
        return self.proposal(night, "procedure", [("procedure", self.procedure)], change)

    def retire(self, night: date) -> Proposal:
        change = Change("censor", self.censor, set={"state": "archived", "archived_at": ENDS}, action="retired")
        return self.proposal(night, "censor", [("censor", self.censor)], change)

    def rows(self) -> dict[str, list[dict]]:
        """Return every column of every memory but those that count versions, every counter and every link."""
        found = {
            table: self.owner.execute(
                f"""select to_jsonb(t) - 'row_version' - 'written_xid' from heart.{table} t
                    where agent_id = %s order by t.id""",  # noqa: S608 (our own names)
                [self.agent_id],
            ).fetchall()
            for table in TABLES.values()
        }
        links = self.owner.execute("select to_jsonb(l) from heart.links l where agent_id = %s", [self.agent_id])
        opened = "select id from heart.contradictions where agent_id = %s and status = 'open'"
        contradictions = self.owner.execute(opened, [self.agent_id]).fetchall()
        postings = self.owner.execute(
            "select to_jsonb(p) from heart.postings p where agent_id = %s order by lexeme, memory_id", [self.agent_id]
        ).fetchall()
        return {
            **found, "links": links.fetchall(), "contradictions": contradictions, "postings": postings,
            "usage": sorted(usage_in(self.owner, self.agent_id).items()),
        }  # fmt: skip


KINDS = ("merge", "contradiction", "archive", "promote", "link", "tier", "review", "retire")
FOLLOWING = {"tier": "lower_tier"}
PLANS = st.lists(st.sampled_from(KINDS), min_size=1, max_size=len(KINDS), unique=True)
HISTORY = st.fixed_dictionaries(
    {"first": PLANS, "second": PLANS, "is_latest_first": st.booleans(), "by_kind": st.booleans()}
)


def lived_through(store, night_database, night, names):
    """Apply a plan of the proposals named that don't get in each other's way, and return their ids."""
    plan = planned(night, [getattr(store, name)(night) for name in names], agent_ids=[], policy={})
    assert apply_plan(night_database, plan, run_id=f"run of {night}") == Applied(applied=len(plan.proposals))
    return {proposal.id for proposal in plan.proposals}


def following(first, second):
    """Return what the second night can still do after the first."""
    kept = [FOLLOWING.get(name, name) for name in second if name not in first or name in FOLLOWING]
    return [name for name in kept if name != "lower_tier" or "tier" in first]


@pytest.fixture
def new_store(database, embedder, judge, owner):
    """Make the store of another agent."""

    def make():
        return Store(
            Heart.open(
                f"agent-{uuid4()}", database=database, embedder=embedder, judge=judge, works_in_background=False
            ),
            owner,
        )

    return make


@settings(max_examples=examples(12), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(history=HISTORY)
def test_taking_back_nights_of_all_kinds_in_any_order_restores_every_row(new_store, night_database, history):
    store = new_store()
    before = store.rows()
    done = lived_through(store, night_database, NIGHT, history["first"])
    between = store.rows()
    later = lived_through(store, night_database, NEXT, following(history["first"], history["second"]))

    nights = [(NEXT, later), (NIGHT, done)]
    left = done | later
    for night, ids in [*(nights if history["is_latest_first"] else nights[::-1]), *nights]:
        if ids & left:
            left -= taken_back(night_database, store.agent_id, night, by_kind=history["by_kind"])
        if left == done:
            assert store.rows() == between

    assert left == set()
    assert store.rows() == before
    assert unanswered(store.owner, store.agent_id) == []


def taken_back(night_database, agent_id, night, *, by_kind):
    """Undo a night as a whole or kind by kind; return what was undone. What is refused says why."""
    kinds = (
        ("merge", "contradiction", "archive", "promote", "link", "tier", "procedure", "censor") if by_kind else (None,)
    )
    undone = set()
    for kind in kinds:
        try:
            result = undo(night_database, Selection(agent_id=agent_id, night=night, kind=kind), reason="a mistake")
        except LookupError:
            continue
        undone |= set(result.undone)
        assert all("undo that first" in why for why in result.refused.values())
    return undone


def unanswered(owner, agent_id):
    """Return the events of nights that no undoing answers."""
    events = [event for event in events_in(owner) if event["agent_id"] == agent_id]
    return [e for e in events if e["actor"] == "night" and e["id"] not in {each["undoes"] for each in events}]


@pytest.fixture
def store(heart, owner):
    return Store(heart, owner)


def apply(night_database, *proposals):
    return apply_plan(night_database, planned(NIGHT, proposals, agent_ids=[], policy={}), run_id="r1")


def take_back(night_database):
    return undo(night_database, Selection(agent_id="aria", night=NIGHT), reason="a mistake")


def test_a_text_that_leaves_is_kept_cold_and_its_event_keeps_where_it_went(store, night_database, owner):
    apply(night_database, store.tier(NIGHT))

    (cold,) = owner.execute("select tier, detail, summary, purge_after from heart.cold_texts").fetchall()
    (event,) = [event for event in events_in(owner) if event["actor"] == "night"]
    assert cold == ("raw", DETAIL, None, None)
    assert event["before"] == {"detail": {"cold_text": "raw"}, "compression_tier": "raw"}
    assert event["after"] == {"detail": None, "compression_tier": "summary"}


def test_a_text_that_was_purged_since_can_not_be_taken_back_and_says_so(store, night_database, owner):
    apply(night_database, store.tier(NIGHT))
    owner.execute("delete from heart.cold_texts")
    before = store.rows()

    result = take_back(night_database)

    (why,) = result.refused.values()
    assert f"the detail of episode {store.episodes[0]} left cold storage for good" in why
    assert store.rows() == before


def test_a_text_that_moves_a_second_time_is_kept_as_it_reads_by_then(heart, store, night_database, owner):
    apply(night_database, store.tier(NIGHT))
    take_back(night_database)
    read = Version(EPISODE, UUID(store.episodes[0]), store.version("episode", store.episodes[0]))
    with night_database.transaction("aria") as connection:
        change_memory(connection, "aria", read, {"detail": "Told anew."}, cause=Cause("agent", "told", "so", MAY))
    later = store.tier(NEXT)

    apply_plan(night_database, planned(NEXT, [later], agent_ids=[], policy={}), run_id="r2")
    result = undo(night_database, Selection(id=later.id), reason="again")

    assert result.undone == (later.id,)
    assert owner.execute("select detail from heart.episodes where id = %s", [store.episodes[0]]).fetchone() == (
        "Told anew.",
    )


def test_a_contradiction_is_closed_with_a_note_and_a_settled_one_is_left(heart, store, night_database, owner):
    apply(night_database, store.contradiction(NIGHT))
    (found,) = heart.contradictions()
    take_back(night_database)

    row = owner.execute("select status, resolution, note from heart.contradictions").fetchone()
    assert row == ("resolved", "both_valid", "taken back: a mistake")
    assert found.memory_a < found.memory_b


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2), (0, 2, 1), (1, 2, 0)])
def test_a_fact_that_another_open_contradiction_names_stays_marked_until_that_is_taken_back(
    heart, store, night_database, order
):
    before = store.rows()
    nights = [NIGHT + timedelta(days=place) for place in range(3)]
    for night, other in zip(nights, store.facts[1:4], strict=True):
        opened = contradicting(heart, store, night, store.facts[0], other)
        apply_plan(night_database, planned(night, [opened], agent_ids=[], policy={}), run_id="r")

    for place in order:
        assert undo(night_database, Selection(night=nights[place]), reason="a mistake").refused == {}
        assert marked(heart) == {each for found in heart.contradictions() for each in (found.memory_a, found.memory_b)}

    assert store.rows() == before


def contradicting(heart, store, night, *facts):
    """Return the proposal of a night that finds a contradiction and marks what is not marked yet."""
    a, b = sorted(facts)
    opened = {"memory_a": a, "memory_b": b, "detected_at": ENDS, "judgement": {}}
    marks = [
        Change("fact", each, set={"contradiction_status": "open"}, action="contradicted")
        for each in (a, b)
        if UUID(each) not in marked(heart)
    ]
    change = Change("contradiction", str(uuid5(NAMESPACE_OID, a + b)), set=opened)
    return store.proposal(night, "contradiction", [("fact", a), ("fact", b)], change, *marks)


def marked(heart):
    """Return the facts that say an open contradiction names them."""
    query = "select id from heart.facts where contradiction_status = 'open'"
    with heart.agent.database.transaction(heart.agent.id) as connection:
        return {row[0] for row in connection.execute(query)}


def test_an_open_contradiction_that_a_night_found_after_an_agent_did_keeps_its_mark(heart, store, night_database):
    apply(night_database, contradicting(heart, store, NIGHT, *store.facts[:2]))
    (first,) = heart.contradictions()
    later = contradicting(heart, store, NEXT, *store.facts[1:3])
    apply_plan(night_database, planned(NEXT, [later], agent_ids=[], policy={}), run_id="r2")

    heart.resolve_contradiction(first.id, "both_valid")
    assert marked(heart) == {UUID(each) for each in store.facts[1:3]}
    undo(night_database, Selection(id=later.id), reason="a mistake")

    assert marked(heart) == set()


def test_a_night_that_retires_a_side_settles_the_contradiction_until_it_is_taken_back(heart, store, night_database):
    apply(night_database, contradicting(heart, store, NIGHT, *store.facts[:2]))
    (found,), gone = heart.contradictions(), store.facts[0]
    values = {"state": "superseded", "superseded_by": store.facts[2], "superseded_at": ENDS, "succession": "replaced"}
    supersede = Change("fact", gone, set=values, action="superseded")
    later = store.proposal(NEXT, "supersede", [("fact", gone), ("fact", store.facts[2])], supersede)

    apply_plan(night_database, planned(NEXT, [later], agent_ids=[], policy={}), run_id="r2")
    settled = heart.contradictions(), marked(heart)
    assert undo(night_database, Selection(id=later.id), reason="a mistake").refused == {}

    assert settled == ([], set())
    assert heart.contradictions() == [found]
    assert marked(heart) == {found.memory_a, found.memory_b}


@pytest.mark.parametrize("resolution", ["both_valid", "a_wins", "same"])
@pytest.mark.parametrize("side", ["memory_a", "memory_b"])
def test_a_contradiction_that_a_night_found_is_taken_back_once_a_ruling_on_it_is_undone(
    heart, store, night_database, resolution, side
):
    before = store.rows()
    apply(night_database, store.contradiction(NIGHT))
    (found,) = heart.contradictions()
    heart.resolve_contradiction(found.id, resolution)

    heart.undo(getattr(found, side))
    with pytest.raises(Refused, match="nous undo --proposal"):
        heart.undo(getattr(found, side))

    assert heart.contradictions() == [found]
    assert take_back(night_database).refused == {}
    assert store.rows() == before


def test_an_agent_whose_rows_are_locked_keeps_no_other_from_being_marked_and_is_by_the_next_run(
    heart, store, night_database, database_url, monkeypatch
):
    monkeypatch.setattr(applying, "CHUNK_TIMEOUT_S", 0.5)
    agent = heart.agent
    other = Heart.open("ben", database=agent.database, embedder=agent.embedder, judge=agent.judge)
    stores = [store, Store(other, store.owner)]
    opened = [contradicting(each, its, NIGHT, *its.facts[:2]) for each, its in zip((heart, other), stores, strict=True)]
    apply_plan(night_database, planned(NIGHT, opened, agent_ids=[], policy={}), run_id="r")
    retired = [replacing(its, NEXT, its.facts[0], its.facts[2]) for its in stores]
    plan = planned(NEXT, retired, agent_ids=[], policy={})

    with psycopg.connect(database_url) as holder:
        holder.execute("select from heart.facts where id = %s for update", [store.facts[1]])
        with pytest.raises(Unavailable):
            apply_plan(night_database, plan, run_id="r2")
    while_locked = marked(heart), marked(other)
    apply_plan(night_database, plan, run_id="r3")

    assert while_locked == ({UUID(each) for each in store.facts[:2]}, set())
    assert marked(heart) == set()


def test_a_side_that_nights_retired_comes_back_by_the_ruling_or_by_the_commands_its_refusal_names(
    heart, store, night_database
):
    apply(night_database, contradicting(heart, store, NIGHT, *store.facts[:2]))
    (found,), gone = heart.contradictions(), store.facts[1]
    by_other = replacing(store, NEXT, gone, store.facts[0])
    apply_plan(night_database, planned(NEXT, [by_other], agent_ids=[], policy={}), run_id="r2")

    heart.resolve_contradiction(found.id, "both_valid")

    assert heart.get_fact(UUID(gone)).state == "active"
    assert undo(night_database, Selection(id=by_other.id), reason="too late").undone == ()
    assert heart.get_fact(UUID(gone)).state == "active"


@pytest.mark.parametrize("is_restored", [False, True])
def test_a_ruling_for_a_side_that_nights_replaced_and_archived_names_how_to_take_that_back(
    heart, store, night_database, *, is_restored
):
    apply(night_database, contradicting(heart, store, NIGHT, *store.facts[:2]))
    (found,), gone = heart.contradictions(), store.facts[1]
    proposals = [replacing(store, NEXT, gone, store.facts[2])]
    apply_plan(night_database, planned(NEXT, proposals, agent_ids=[], policy={}), run_id="r2")
    values = {"state": "archived", "archived_at": ENDS}
    later = NEXT + timedelta(days=1)
    proposals.append(store.proposal(later, "archive", [("fact", gone)], Change("fact", gone, set=values)))
    apply_plan(night_database, planned(later, proposals[1:], agent_ids=[], policy={}), run_id="r3")
    if is_restored:
        heart.restore(UUID(gone))

    with pytest.raises(Conflict, match=f"by the night of {NEXT}") as refused:
        heart.resolve_contradiction(found.id, "both_valid")
    named = [each for each in reversed(proposals) if f"`nous undo --proposal {each.id}`" in str(refused.value)]
    for each in named:
        assert undo(night_database, Selection(id=each.id), reason="both hold").refused == {}

    assert named == (proposals[:1] if is_restored else proposals[::-1])
    assert heart.get_fact(UUID(gone)).state == "active"
    assert heart.resolve_contradiction(found.id, "both_valid").resolution == "both_valid"


def replacing(store, night, old, new):
    """Return the proposal of a night by which one fact replaces another."""
    values = {"state": "superseded", "superseded_by": new, "superseded_at": ENDS, "succession": "replaced"}
    change = Change("fact", old, set=values, action="superseded")
    return store.proposal(night, "supersede", [("fact", old), ("fact", new)], change)


def test_what_an_agent_settled_since_is_not_taken_back(heart, store, night_database):
    apply(night_database, store.contradiction(NIGHT))
    (found,) = heart.contradictions()
    heart.resolve_contradiction(found.id, "a_wins")
    before = store.rows()

    result = take_back(night_database)

    assert result.undone == ()
    assert store.rows() == before


@pytest.mark.parametrize("name", ["contradiction", "link"])
def test_what_is_on_record_already_is_refused_and_stops_nothing_else(store, night_database, name):
    apply(night_database, getattr(store, name)(NIGHT))
    proposals = [getattr(store, name)(NEXT), store.archive(NEXT)]

    outcome = apply_plan(night_database, planned(NEXT, proposals, agent_ids=[], policy={}), run_id="r2")

    assert (outcome.applied, outcome.refused) == (1, 1)
    assert "already" in outcome.reasons[str(proposals[0].id)]


def test_a_proposal_that_contradicts_itself_is_refused_in_words(store, night_database):
    fact = store.facts[0]
    set_twice = [Change("fact", fact, set={"category": name}) for name in ("a", "b")]
    twice = store.proposal(NIGHT, "promote", [("fact", fact)], *set_twice)
    blind = store.proposal(
        NIGHT, "archive", [("fact", store.facts[1])], Change("fact", store.facts[2], set={"trust": 1})
    )
    before = store.rows()

    outcome = apply(night_database, twice, blind)

    assert sorted(outcome.reasons.values()) == [
        f"it changes fact {store.facts[2]}, which it did not read",
        f"it changes memory {fact} twice; one change can set all columns",
    ]
    assert store.rows() == before
