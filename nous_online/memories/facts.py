"""Facts and their verbs. Learning: embed, compare with the nearest, ask the judge, and write in one transaction."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Unpack, cast
from uuid import UUID

from psycopg import Connection

from nous_online.core.deadline import Deadline
from nous_online.core.details import Content, FactDetails, Replaces
from nous_online.core.domain import FACT, Fact, LearnAction, Learned, Neighbour, NewFact, Statement
from nous_online.core.errors import Conflict, Forbidden, InvalidInput, NotFound, Refused, Stale
from nous_online.core.fields import check_known, checked_as, checked_details
from nous_online.core.rights import UNLIMITED, Rights
from nous_online.core.validation import LARGEST_LEAD, checked_id, checked_optional, checked_said
from nous_online.database.changes import Cause, change_memory, get_memory, lock_memories, lock_memory, version_of
from nous_online.language.embedding import passages, recall_vector
from nous_online.language.pairs.judging import Judgement, OfflineJudge, Verdict, weighed_together
from nous_online.memories import episodes, store
from nous_online.memories.agent import Agent, Verbs, hide_credentials, with_session_frame
from nous_online.memories.contradictions import mark_sides, merge_counts, open_between, reinstate, rivals_of
from nous_online.memories.learning import (
    UNKNOWN_SIMILARITY,
    LearningDecision,
    NamedFact,
    audience,
    changed_together,
    check_active,
    check_begun,
    check_in_place,
    decide_and_doubt,
    holds_since,
    is_later,
    named_facts,
    near_facts,
    pair_of,
    partition_neighbours,
    questions,
    slot_of,
    with_inherited_key,
    with_pairs,
    with_rivals,
    worth_reading,
)
from nous_online.memories.levels import stored_levels
from nous_online.memories.replaced_words import INHERITED, found_by_replaced, inherit_by_hand
from nous_online.memories.status import check_quota, size_of
from nous_online.memories.store import (
    Embedded,
    KeyedRequest,
    confirming_statement,
    find_superseded,
    keep_readings,
)
from nous_online.memories.tombstones import erased_at

ROUNDS = 12  # so many processes can learn values of one slot at once; the rest is left to the night
UNDECIDED = Judgement(
    verdict=Verdict.UNSURE,
    confidence=0.0,
    reason="the judge failed",
    slot=None,
    later=None,
    model="none",
    prompt_version="none",
)
HELD = replace(UNDECIDED, confidence=1.0, reason="another value of its key, which is trusted more, or pinned")
ACTIONS: dict[str, LearnAction] = {
    "store": "stored",
    "store_superseded": "stored",
    "confirm": "confirmed",
    "supersede": "superseded",
}


class FactVerbs(Verbs):
    """What an agent does with facts."""

    def learn(
        self,
        content: Content,
        *,
        replaces: Replaces = None,
        deadline_s: float | None = None,
        **details: Unpack[FactDetails],
    ) -> Learned:
        """Learn one fact: confirm the one that says the same, supersede the one it updates, or store it.

        Returns what was done and why, with the facts `near` it. Raises `InvalidInput` for an argument that can't be
        stored; `NotFound` for an unknown episode, or a fact of `replaces` that is not in the same scope, user and
        project; `Conflict` when such a fact is no longer active or has changed since it was read, or the idempotency
        key was used for another content; `Refused` when it is pinned or trusted more; `DeadlineExceeded` and
        `Unavailable` when the database or the embedder fails; then nothing was stored. When the judge fails, the fact
        is stored, and a night compares it again.
        """
        agent, deadline = self.agent, self.agent.deadline(deadline_s)
        framed = with_session_frame(agent, details, FactDetails, deadline)
        (complete,) = episodes.with_episode_trust(agent, [framed], "source_episode_id", deadline)
        new = new_fact(content, cast("FactDetails", complete), now=datetime.now(UTC), rights=agent.rights)
        learned = learn(agent, new, deadline, replaces=named_facts(replaces))
        if agent.subscriptions:
            agent.awake.set()
        return learned

    def learn_deferred(self, entries: Sequence[tuple[str, FactDetails]], *, deadline_s: float | None = None) -> int:
        """Store many facts without matching, which a night does later, and return how many were new.

        For importing histories: nothing is confirmed or superseded here, so every line can be found, and every later
        merge can be undone. All are stored, or none; raises as `learn` does, and `Refused` for facts that were erased
        here before: leave these out, or `learn` each that is to come back.
        """
        check_pairs(entries)
        agent, deadline, now = self.agent, self.agent.deadline(deadline_s), datetime.now(UTC)
        complete = episodes.with_episode_trust(agent, [each for _, each in entries], "source_episode_id", deadline)
        news = [
            new_fact(content, cast("FactDetails", details), now=now, rights=agent.rights)
            for (content, _), details in zip(entries, complete, strict=True)
        ]
        with agent.transaction(deadline) as connection:
            known = store.find_requests(connection, agent.id, [new.idempotency_key or "" for new in news])
            moments = erased_at(connection, agent.id, news)
        erased = [
            str(place)
            for place, (new, moment) in enumerate(zip(news, moments, strict=True))
            if moment is not None and new.idempotency_key not in known
        ]
        if erased:
            message = f"of these facts some were erased here before: {', '.join(erased)}, counted from 0"
            raise Refused(f"{message}; leave them out, or learn each that is to come back")
        return store_deferred(agent, news, deadline)

    def confirm_fact(
        self,
        fact_id: UUID | str,
        *,
        at: datetime | str | None = None,
        source: str | None = None,
        deadline_s: float | None = None,
    ) -> Fact:
        """Confirm that a fact still holds: add to its confirmations, with date and source, and return it.

        Raises `NotFound` when this agent has no fact of that id, and `Conflict` when it is no longer active.
        """
        agent, known_id, now = self.agent, checked_id("fact_id", fact_id), datetime.now(UTC)
        moment = checked_said("at", at, now=now) or now
        told = checked_optional("source", source, max_characters=500)
        with self._transaction(deadline_s) as connection:
            known = lock_memory(connection, agent.id, FACT, known_id)
            check_active(known, "confirmed")
            whose: FactDetails = {"scope": known.scope, "user_id": known.user_id, "project_id": known.project_id}
            details: FactDetails = {**whose, "subject": known.subject, "source": told}
            details["trust"] = min(known.trust, agent.rights.max_trust)
            repeated = new_fact(known.content, details, now=moment)
            return confirm(connection, agent, known, repeated, "confirmed by its id")

    def supersede_fact(
        self,
        old_id: UUID | str,
        new_id: UUID | str,
        *,
        reason: str | None = None,
        at: datetime | str | None = None,
        is_same: bool = False,
        deadline_s: float | None = None,
    ) -> Fact:
        """Supersede one fact by another, and return the old one: only recalls with `as_of` find it from then on.

        It is superseded from `at` on, by default from when the later of both was learned. With `is_same` both say the
        same: it is merged into the other as by a night, and what was said for it counts for that one. Raises
        `NotFound`, also where a recall that finds the old one would not find the new one; `InvalidInput` when both are
        the same fact; `Conflict` when the old one is no longer active or the new one was superseded by it; and
        `Forbidden` for an old one that is trusted more than the caller may claim, or than the new one.
        """
        agent, one, other = self.agent, checked_id("old_id", old_id), checked_id("new_id", new_id)
        why = checked_optional("reason", reason, max_characters=1000) or "the agent said what replaces it"
        moment = checked_said("at", at, now=datetime.now(UTC))
        if one == other:
            raise InvalidInput(f"fact {one} can't supersede itself; name the fact that replaces it")
        with self._transaction(deadline_s) as connection:
            store.lock_agent(connection, agent.id)
            known = {fact.id: fact for fact in lock_memories(connection, agent.id, FACT, [one, other])}
            for fact_id in (one, other):
                if fact_id not in known:
                    raise NotFound(f"agent {agent.id!r} has no fact {fact_id}")
            old, new = known[one], known[other]
            check_in_place(agent.id, new, old)
            check_active(old, "superseded")
            agent.rights.check_may_change(old)
            if not agent.rights.may_retire(old, new):
                message = f"fact {old.id} is pinned, or trusted more than fact {new.id} ({old.trust} > {new.trust})"
                raise Forbidden(f"{message}, so only an operator puts that one in its place")
            check_successor(connection, agent, new, one)
            check_begun(new, old)
            moment = moment or max(old.learned_at, new.learned_at)
            if is_same:
                check_active(new, "a successor")
                return merge(connection, agent, old, new, at=moment, reason=why)
            gone = supersede(connection, agent, old=old, by=new, at=moment, reason=why)
            if agent.rights.may_change(new) and audience(old) == audience(new):
                inherit_by_hand(connection, agent.id, old=old, by=new, cause=Cause("agent", INHERITED, why, moment))
            return marked_after(connection, agent, gone, [old], at=moment, reason=why)

    def keep_both(
        self,
        later_id: UUID | str,
        earlier_id: UUID | str,
        *,
        reason: str | None = None,
        deadline_s: float | None = None,
    ) -> Fact:
        """Decide that a fact does not replace an earlier one that it perhaps replaces; `undo` takes the decision back.

        Both are active, also where one had given way to the other since, and recall no longer puts one before the
        other. Raises `NotFound` when there is no such fact, or it does not name the earlier one in
        `perhaps_replaces`, and `Conflict` where something else took one of them out of recall.
        """
        agent, later, earlier = self.agent, checked_id("later_id", later_id), checked_id("earlier_id", earlier_id)
        why = checked_optional("reason", reason, max_characters=1000) or "the agent said that both hold"
        with self._transaction(deadline_s) as connection:
            store.lock_agent(connection, agent.id)
            fact = lock_memory(connection, agent.id, FACT, later)
            if earlier not in fact.perhaps_replaces:
                raise NotFound(f"fact {later} is not in doubt to replace {earlier}; `perhaps_replaces` names those")
            left = [str(each) for each in fact.perhaps_replaces if each != earlier]
            cause = Cause("agent", "kept_beside", why, datetime.now(UTC))
            both = (fact, lock_memory(connection, agent.id, FACT, earlier))
            retired = [each for each in both if each.state != "active"]
            for each in both if retired else both[:1]:  # one that gave way to the other comes back against that one
                agent.rights.check_may_change(each)
            for each in retired:
                rival = earlier if each.id == later else later
                back = reinstate(connection, agent, each, rival, cause=cause)
                fact = back if back.id == later else fact
            kept = change_memory(connection, agent.id, version_of(FACT, fact), {"perhaps_replaces": left}, cause=cause)
            mark_sides(connection, agent.id, [each.id for each in retired], cause=replace(cause, action="marked"))
            return get_memory(connection, agent.id, FACT, later) if retired else kept

    def get_fact(self, fact_id: UUID | str, *, deadline_s: float | None = None) -> Fact:
        """Return one fact in whatever state it is; raise `NotFound` when this agent has none of that id."""
        return self._get(FACT, fact_id, deadline_s)

    def statements(self, fact_id: UUID | str, *, deadline_s: float | None = None) -> list[Statement]:
        """Return the statements of a fact in any state, word for word, the oldest first.

        Statements of facts that were merged into it are included. Confirmations from before statements were stored are
        counted in `confirmation_count` only. Raises `NotFound` when this agent has no fact of that id.
        """
        with self._transaction(deadline_s) as connection:
            return store.statements_of(connection, self.agent.id, checked_id("fact_id", fact_id))

    def predecessors(self, fact_id: UUID | str, *, deadline_s: float | None = None) -> list[Fact]:
        """Return the facts that one has superseded, replaced or merged into it, the latest first.

        The fact that superseded it is in `superseded_by`. Raises `NotFound` when this agent has no fact of that id.
        """
        known_id = checked_id("fact_id", fact_id)
        with self._transaction(deadline_s) as connection:
            get_memory(connection, self.agent.id, FACT, known_id)
            superseded = find_superseded(connection, self.agent.id, known_id)
            earlier = [get_memory(connection, self.agent.id, FACT, each) for each, _ in superseded]
        return sorted(earlier, key=lambda each: (each.learned_at, each.id), reverse=True)

    def count(self, *, deadline_s: float | None = None) -> dict[str, int]:
        """Return how many facts the agent has in each state."""
        with self._transaction(deadline_s) as connection:
            return store.count_facts(connection, self.agent.id)


def new_fact(content: object, details: FactDetails, *, now: datetime, rights: Rights = UNLIMITED) -> NewFact:
    """Return a checked new fact; raise `InvalidInput`, and `Forbidden` for more than the caller may claim."""
    check_known(details, FactDetails)
    told = checked_details(FactDetails, details, now=now)
    text = checked_as(Content, "content", content, now=now)
    told, hidden = hide_credentials({**told, "content": text}, ("content", "subject", "context"), rights)
    text = told.pop("content")
    valid_from, valid_to = told["valid_from"], told["valid_to"]
    if valid_from and valid_to and valid_to < valid_from:
        raise InvalidInput(f"valid_to {valid_to.isoformat()} lies before valid_from {valid_from.isoformat()}")
    # A key has one active value: a future one would hide today's until then.
    if valid_from and told["key"] and valid_from > now + LARGEST_LEAD:
        message = f"valid_from {valid_from.isoformat()} lies ahead, and key {told['key']!r} has a value that holds now"
        raise InvalidInput(f"{message}; learn it without the key, or once it holds")
    values: dict[str, Any] = {**told, **rights.checked_claims(told), "learned_at": told["learned_at"] or now}
    values["tags"] = told["tags"] or []
    frame, censors = values.pop("frame"), values.pop("active_censors")
    slot = slot_of(text, told["subject"])
    return NewFact(content=text, slot=slot, encoded_frame=frame, encoded_censors=censors, hidden=hidden, **values)


def embed_facts(
    agent: Agent, news: Sequence[NewFact], ids: Sequence[UUID | None], deadline: Deadline
) -> list[Embedded]:
    """Return the facts with their vectors and the shorter levels of their texts."""
    return [replace(each, fact=with_levels(each.fact)) for each in with_vectors(agent, news, ids, deadline)]


def with_levels(new: NewFact) -> NewFact:
    """Return a fact with the shorter levels of its text."""
    return replace(new, **stored_levels(vars(new)))


def with_vectors(
    agent: Agent, news: Sequence[NewFact], ids: Sequence[UUID | None], deadline: Deadline
) -> list[Embedded]:
    """Return the facts with their vectors."""
    texts = list(dict.fromkeys(text for new in news for text in passages(new.content, new.subject, new.context)))
    vectors = dict(zip(texts, agent.embed(texts, deadline), strict=True))
    return [
        Embedded(new, vectors[new.content], recall_vector(new.content, new.subject, new.context, vectors), fact_id)
        for new, fact_id in zip(news, ids, strict=True)
    ]


def learn(agent: Agent, new: NewFact, deadline: Deadline, *, replaces: Sequence[NamedFact] = ()) -> Learned:
    """Confirm, supersede or store one fact, and supersede what it replaces, in one transaction."""
    check_quota(agent, deadline, count=1, size=size_of(new.content, new.context))
    (ready,) = with_vectors(agent, [new], [None], deadline)
    judgements: dict[UUID, Judgement] = {}
    rounds_left = ROUNDS
    while True:
        rounds_left -= 1
        try:
            outcome = match_and_write(agent, ready, judgements, deadline, replaces=replaces, is_last=not rounds_left)
        except Stale:  # another process confirmed, undid or ruled on a neighbour since it was read: read again
            if not rounds_left:
                raise
            continue
        if isinstance(outcome, Learned):
            return replace(outcome, hidden=new.hidden)
        # Asking may take seconds: never inside a transaction that others wait for.
        judgements.update(judge_neighbours(agent, new, outcome, deadline))


def match_and_write(
    agent: Agent,
    ready: Embedded,
    judgements: dict[UUID, Judgement],
    deadline: Deadline,
    *,
    replaces: Sequence[NamedFact],
    is_last: bool,
) -> Learned | list[Neighbour]:
    """Read the neighbours, decide and write, in one transaction; return the neighbours still to be judged instead.

    With `is_last` it decides with the judgements there are.
    """
    with agent.transaction(deadline, is_pipelined=True, keeps_space=True) as connection:
        space, limit, ids = agent.embedder.space, agent.policy.neighbour_count, [each.id for each in replaces]
        found = store.lock_and_search(connection, agent.id, ready, space=space, limit=limit, replaces=ids)
        new = with_levels(ready.fact)  # while the server searches
        request, near, forgotten = found()
        if request is not None:
            return replay_answer(connection, agent, request, new)
        near, rivals = with_rivals(near, rivals_of(connection, agent.id, near, ready, space.id))
        said = partition_neighbours(new, near, replaces, agent.id)
        open_questions = [n for n in questions(new, said.rest, agent.policy) if n.fact.id not in judgements]
        read: dict[UUID, Judgement] = {}
        # The built-in judge answers in less time than a second round would take, so it is asked inside the transaction.
        if isinstance(agent.judge, OfflineJudge):
            likely = worth_reading(new, open_questions, agent.policy, rivals, [*judgements, *said.named])
            judgements |= (read := judge_neighbours(agent, new, likely, deadline))
            open_questions = []
            rivals = with_pairs(rivals, said_twice(agent, changed_together(near, judgements), deadline))
        if open_questions and not is_last:
            return open_questions
        weighed = weighed_together(judgements, rivals)
        decision, doubts = decide_and_doubt(new, said, weighed, agent.policy)
        if forgotten is not None:
            again = f"learned again: fact {forgotten} said so and was forgotten, and stays forgotten"
            decision = replace(decision, reason=f"{again}; {decision.reason}")
        stored = replace(with_inherited_key(new, decision), perhaps_replaces=doubts)
        old = decision.match.fact if decision.match is not None and decision.action == "supersede" else None
        ready = found_by_replaced(connection, agent, replace(ready, fact=stored), old)
        readings = [(n.fact, read[n.fact.id]) for n in said.rest if n.fact.id in read]
        learned = apply_decision(connection, agent, ready, decision, read=readings)
        learned = record_contradictions(connection, agent, learned, decision, weighed)
        return replace(learned, near=near_facts(near, learned.memory, decision, weighed, rivals), forgotten=forgotten)


def judge_neighbours(
    agent: Agent, new: NewFact, near: Sequence[Neighbour], deadline: Deadline
) -> dict[UUID, Judgement]:
    """Return the judgement of each pair by fact id; `UNDECIDED` for all where the judge failed."""
    if not near:
        return {}
    # A fact must be stored even where its judge fails: the night judges the pairs again.
    judgements = agent.ask([pair_of(new, n) for n in near], deadline) or [UNDECIDED] * len(near)
    return {n.fact.id: judgement for n, judgement in zip(near, judgements, strict=True)}


def said_twice(agent: Agent, pairs: Sequence[tuple[Neighbour, Neighbour]], deadline: Deadline) -> list[list[UUID]]:
    """Return the ids of each pair of known facts that the built-in judge, told no cosine, takes for the same."""
    asked = [pair_of(one.fact, replace(other, similarity=UNKNOWN_SIMILARITY)) for one, other in pairs]
    judgements = (agent.ask(asked, deadline) if asked else None) or []
    said = zip(pairs, judgements, strict=False)
    return [[one.fact.id, other.fact.id] for (one, other), each in said if each.verdict is Verdict.SAME]


def apply_decision(
    connection: Connection,
    agent: Agent,
    ready: Embedded,
    decision: LearningDecision,
    *,
    read: Sequence[tuple[Fact, Judgement]],
) -> Learned:
    """Write what was decided, with the verdicts of the built-in judge, and the idempotency key it answers."""
    new, match = ready.fact, decision.match
    if decision.action == "confirm" and match is not None:
        memory = confirm(connection, agent, match.fact, new, decision.reason)
    else:
        space = agent.embedder.space
        sent = store.send_fact(connection, agent.id, ready, space=space, actor="agent", reason=decision.reason)
        keep_readings(connection, agent.id, new, read, space_id=space.id)  # sent while the server stores the fact
        (memory,) = sent.fetchall()
    for near in sorted(decision.superseded, key=lambda each: each.fact.id):  # rows are locked in id order everywhere
        moment = max(new.learned_at, near.fact.learned_at)
        told = "the agent said that it is replaced" if decision.action == "confirm" else decision.reason
        supersede(connection, agent, old=near.fact, by=memory, at=moment, reason=told)
    retired = [each.fact for each in decision.superseded]
    memory = marked_after(connection, agent, memory, retired, at=new.learned_at, reason=decision.reason)
    if decision.action == "store_superseded" and match is not None:
        memory = insert_late_value(connection, agent, memory, last=match.fact, reason=decision.reason)
    action = ACTIONS[decision.action]
    if new.idempotency_key:
        request = KeyedRequest(new.idempotency_key, content_hash(new), memory.id, action)
        store.store_request(connection, agent.id, "learn", request)
    return Learned(action, memory, decision.reason, match)


def record_contradictions(
    connection: Connection,
    agent: Agent,
    learned: Learned,
    decision: LearningDecision,
    judgements: Mapping[UUID, Judgement],
) -> Learned:
    """Open a contradiction with each fact that a new one contradicts; both stay active and are marked."""
    for near in decision.contradicted:
        judgement = judgements.get(near.fact.id, HELD)
        cause = Cause("agent", "contradicted", judgement.reason, effective_at=learned.memory.learned_at)
        verdict = {name: getattr(judgement, name) for name in ("model", "prompt_version", "confidence", "reason")}
        open_between(connection, agent.id, learned.memory, near.fact, judgement=verdict, cause=cause)
    if not decision.contradicted:
        return learned
    memory = get_memory(connection, agent.id, FACT, learned.memory.id)
    return replace(learned, memory=memory, contradicts=decision.contradicted)


def confirm(connection: Connection, agent: Agent, known: Fact, new: NewFact, reason: str) -> Fact:
    """Count one more statement of a fact, store it, and merge its tags, sources, trust, pin and key into the fact."""
    # A statement with less trust makes the fact no newer: else an old value, repeated by anybody, would win over a
    # later one. Frame and censors stay those of the first statement: they say where the fact was encoded.
    said_at = new.learned_at if new.trust >= known.trust else None
    confirmed_at = max(filter(None, (known.last_confirmed_at, known.learned_at, said_at)))
    values = {
        "confirmation_count": known.confirmation_count + 1,
        "last_confirmed_at": confirmed_at.isoformat(),
        "trust": max(known.trust, new.trust),
        "is_pinned": known.is_pinned or new.is_pinned,
        "tags": list(dict.fromkeys([*known.tags, *new.tags])),
        "sources": list(dict.fromkeys([*known.sources, *filter(None, [new.source])])),
    }
    if new.key is not None and known.key is None and agent.rights.may_change(known):
        values["key"] = new.key
    cause = Cause("agent", "confirmed", reason, effective_at=new.learned_at)
    wording = confirming_statement(known, new)
    return change_memory(connection, agent.id, version_of(FACT, known), values, cause=cause, noted=wording)


def check_successor(connection: Connection, agent: Agent, new: Fact, old_id: UUID) -> None:
    """Raise `Conflict` when the successors of `new` lead back to `old_id`, or end at a fact that is not active."""
    last = new
    while last.superseded_by is not None and last.id != old_id:
        last = get_memory(connection, agent.id, FACT, last.superseded_by)
    if last.id == old_id:
        raise Conflict(f"fact {new.id} was itself superseded by {old_id}; learn what is true now as a new fact")
    check_active(last, "a successor")


def supersede(  # noqa: PLR0913 (what gives way to what, when, how and why)
    connection: Connection,
    agent: Agent,
    *,
    old: Fact,
    by: Fact,
    at: datetime,
    reason: str,
    succession: str = "replaced",
) -> Fact:
    """Mark `old` as superseded by `by`: it stays stored, and only recalls with `as_of` find it."""
    gone = {"state": "superseded", "superseded_by": str(by.id), "superseded_at": at.isoformat()}
    values = {**gone, "succession": succession}
    cause = Cause("agent", "superseded", reason, effective_at=at)
    return change_memory(connection, agent.id, version_of(FACT, old), values, cause=cause)


def merge(connection: Connection, agent: Agent, old: Fact, new: Fact, *, at: datetime, reason: str) -> Fact:
    """Merge a fact into an active one that says the same, as a night does, and return it."""
    merge_counts(connection, agent.id, new, old, cause=Cause("agent", "absorbed", reason, at))
    gone = supersede(connection, agent, old=old, by=new, at=at, reason=reason, succession="merged")
    return marked_after(connection, agent, gone, [old], at=at, reason=reason)


def marked_after(
    connection: Connection, agent: Agent, memory: Fact, retired: Sequence[Fact], *, at: datetime, reason: str
) -> Fact:
    """Mark the sides of contradictions that are settled as some facts were retired; return `memory` as it is then."""
    disputed = [each.id for each in retired if each.contradiction_status == "open"]
    if not disputed:
        return memory
    mark_sides(connection, agent.id, disputed, cause=Cause("agent", "marked", reason, effective_at=at))
    return get_memory(connection, agent.id, FACT, memory.id)


def insert_late_value(connection: Connection, agent: Agent, late: Fact, *, last: Fact, reason: str) -> Fact:
    """Insert a value that was learned out of order into the chain of values that ends at `last`, the active one.

    The late value ends where the next one began, and the one before it ends where the late value began.
    """
    heir = store.next_value(connection, agent.id, last, learned_at=late.learned_at)
    moment = max(heir.learned_at, late.learned_at)
    before = store.values_before(connection, agent.id, late, heir=heir) if heir.learned_at > late.learned_at else []
    stored = supersede(connection, agent, old=late, by=heir, at=moment, reason=reason)
    for each in before:
        why = "the value that followed it was told later"
        supersede(connection, agent, old=each, by=stored, at=late.learned_at, reason=why)
    return stored


def replay_answer(connection: Connection, agent: Agent, request: KeyedRequest, new: NewFact) -> Learned:
    """Return the answer to an idempotency key that was used before; raise `Conflict` if that was for other content."""
    check_same_content(request, new)
    memory = get_memory(connection, agent.id, FACT, request.memory_id)
    return Learned(cast("LearnAction", request.action), memory, "this request was answered before")


def check_same_content(request: KeyedRequest, new: NewFact) -> None:
    """Raise `Conflict` when a key comes back with another content."""
    if request.content_hash != content_hash(new):
        message = f"idempotency key {request.idempotency_key!r} was used for another content; use a new key for it"
        raise Conflict(message)


def content_hash(new: NewFact) -> str:
    """Return the SHA-256 of a fact's content, in hexadecimal."""
    return hashlib.sha256(new.content.encode()).hexdigest()


def store_deferred(agent: Agent, news: Sequence[NewFact], deadline: Deadline, *, source: str | None = None) -> int:
    """Store facts without matching, except values of one key, and return how many were new; `source` names an import.

    Facts whose idempotency key is known are skipped, so an interrupted import can be run again.
    """
    check_quota(agent, deadline, count=len(news), size=sum(size_of(new.content, new.context) for new in news))
    keys = [new.idempotency_key for new in news]
    ready = embed_facts(agent, news, [store.imported_id(agent.id, key) if key else None for key in keys], deadline)
    with agent.space_transaction(deadline) as connection:
        store.lock_agent(connection, agent.id)
        known = store.find_requests(connection, agent.id, [key for key in keys if key])
        fresh = skip_known_keys(ready, known)
        reason = "imported; matching is left to the night"
        free = [entry for entry in fresh if entry.fact.key is None]
        store.store_facts(connection, agent.id, free, space=agent.embedder.space, actor="import", reason=reason)
        # Oldest first: each newer value then supersedes the one before, and few have to be inserted into a chain.
        for entry in sorted((each for each in fresh if each.fact.key), key=lambda each: holds_since(each.fact)):
            store_value(connection, agent, entry)
        requests = [r for entry in fresh if (r := request_for(entry))]
        store.store_requests(connection, agent.id, store.import_verb(source), requests)
    return len(fresh)


def store_value(connection: Connection, agent: Agent, entry: Embedded) -> None:
    """Store an imported value of a key; the latest value is active, unless an earlier one is pinned or trusted more."""
    new, space = entry.fact, agent.embedder.space
    known = store.value_of_key(connection, agent.id, new)
    replaces = known is not None and is_later(new, known) and not known.is_pinned and new.trust >= known.trust
    entry = found_by_replaced(connection, agent, entry, known if replaces else None)
    stored = store.store_fact(connection, agent.id, entry, space=space, actor="import", reason="imported with its key")
    if known is None:
        return
    if replaces:
        moment = max(new.learned_at, known.learned_at)
        reason = f"a newer value of the key {new.key!r}"
        supersede(connection, agent, old=known, by=stored, at=moment, reason=reason)
        marked_after(connection, agent, stored, [known], at=moment, reason=reason)
        return
    reason = f"an older value of the key {new.key!r}, or one that is trusted less, than the one known"
    insert_late_value(connection, agent, stored, last=known, reason=reason)


def check_pairs(entries: Sequence[object]) -> None:
    """Raise `InvalidInput` for an entry that is no pair of a statement and its details."""
    for place, entry in enumerate(entries):
        pair = cast("Sequence[object]", entry) if isinstance(entry, tuple | list) else ()
        if len(pair) != 2 or not isinstance(pair[1], Mapping):  # noqa: PLR2004 (a pair)
            wanted = "a pair of a statement and its details, such as ('Tea helps', {})"
            raise InvalidInput(f"entry {place}, counted from 0, must be {wanted}; got {entry!r}")


def skip_known_keys(entries: Sequence[Embedded], known: Mapping[str, KeyedRequest]) -> list[Embedded]:
    """Return the entries whose idempotency key is new; raise `Conflict` for a known key with other content."""
    seen, fresh = dict(known), list[Embedded]()
    for entry in entries:
        request = request_for(entry)
        if request and request.idempotency_key in seen:
            check_same_content(seen[request.idempotency_key], entry.fact)
            continue
        fresh.append(entry)
        if request:
            seen[request.idempotency_key] = request
    return fresh


def request_for(entry: Embedded) -> KeyedRequest | None:
    """Return the row to store for an imported fact's idempotency key; None when it has none."""
    key = entry.fact.idempotency_key
    return KeyedRequest(key, content_hash(entry.fact), entry.id, "stored") if key and entry.id else None
