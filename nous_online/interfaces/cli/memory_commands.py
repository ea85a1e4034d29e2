"""Commands about memories: learn, recall, status, history, changes of one by its id, and what a person decides."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast
from uuid import UUID

from typer import Argument, Option

from nous_online.core.details import FactDetails, MemoryChanges, MemoryFilter, RecallDetails, Replaces
from nous_online.core.errors import InvalidInput, NotFound
from nous_online.core.validation import checked_id, checked_moment
from nous_online.interfaces.cli.output import (
    AgentOption,
    ReadProject,
    agent_named,
    by_person,
    escaped,
    open_database,
    open_heart,
    project_to_read,
    show,
    show_note,
    text_or_stdin,
    with_options,
    wrapped,
)
from nous_online.interfaces.cli.short_ids import brief, identifier

if TYPE_CHECKING:
    from nous_online.core.domain import Episode, Fact, Memory, Procedure, Statement
    from nous_online.heart import Heart
    from nous_online.memories.contradictions import Contradiction, Ruling
    from nous_online.memories.doubts import Doubt
    from nous_online.memories.undoing import PastChange
    from nous_online.recall.recall import Recall, Recalled


INDENT = " " * 11
TITLES = ("content", "title", "name", "trigger")
"""The fields that a memory is called by, each of another kind."""
MOST_LINES, LEAST_COLUMNS, MOST_PROJECTS = 3, 60, 10


@with_options(FactDetails, replaces=Replaces)
def learn(
    text: Annotated[
        str, Argument(metavar="TEXT", help="What is to be remembered: one statement; `-` reads it from standard input.")
    ],
    *,
    agent: AgentOption = None,
    **details: Any,
) -> object:
    """Learn one fact: confirm what says the same, supersede what it updates, or store it.

    $ nous learn "The staging database is Postgres 18" --subject staging --source "chat with Ada"
    $ nous learn "Deploys need two approvals" --frame decision --tag process --json
    $ nous learn "Ana lives in Paris" --key ana/home
    $ nous learn "We open at nine" --source-kind operator
    $ git log -1 --format=%B | nous learn - --source "git log"
    """
    from nous_online.memories.learning import is_partial

    with open_heart(agent, may_begin=True) as heart:
        learned = heart.learn(text_or_stdin(text), **details)
        gone = heart.predecessors(learned.memory.id) if learned.action == "superseded" else []
        doubted = [heart.get_fact(each) for each in learned.memory.perhaps_replaces]
    show(f"[green]{learned.action}[/green]  {escaped(learned.memory.content)}")
    show(f"[dim]{learned.memory.id}  {escaped(brief(learned.reason))}[/dim]")
    if learned.hidden:
        show(f"[yellow]hidden[/yellow]  {learned.hidden} of what looks like credentials")
    for old in gone:
        show(f"[yellow]was[/yellow]  {escaped(old.content)}  [dim]take it back: nous undo {brief(old.id)}[/dim]")
    in_part = {each.fact.id for each in learned.near if is_partial(each.reason)}
    for each in learned.contradicts:
        does, when = ("replaces a part of", "all of it") if each.fact.id in in_part else ("contradicts", "it")
        how = f"both stay; if {when} is replaced: --replaces {brief(each.fact.id)}"
        show(f"[yellow]{does}[/yellow]  {escaped(each.fact.content)}  [dim]{how}[/dim]")
    for each in doubted:
        how = ruling_of_doubt(learned.memory, each.id)
        show(f"[yellow]perhaps replaces[/yellow]  {escaped(each.content)}  [dim]{how}[/dim]")
    opposed = {*(each.fact.id for each in learned.contradicts), *(each.id for each in doubted)}
    for each in (near for near in learned.near if near.suggestion and near.fact.id not in opposed):
        show(f"[dim]near  {escaped(each.fact.content)}  if it is replaced: --replaces {brief(each.fact.id)}[/dim]")
    return learned


@with_options(RecallDetails, defaults={"detail": "summary"}, project_id=ReadProject)
def recall(
    query: Annotated[
        str, Argument(metavar="QUERY", help="What to look for, as a question or in words; `-` reads standard input.")
    ],
    *,
    full: Annotated[bool, Option(help="Show the whole text of each, however long.")] = False,
    agent: AgentOption = None,
    **details: Any,
) -> object:
    """Recall what matters for a question, best first: of each memory its summary, in at most three lines.

    $ nous recall "which database does staging use?" --limit 3
    $ nous recall "who approves deploys" --as-of 2026-05-01T00:00:00Z --json
    """
    details["detail"] = "full" if full else details["detail"]
    with open_heart(agent) as heart:
        details["project_id"] = project_to_read(heart, details["project_id"])
        found = heart.recall(text_or_stdin(query), **details)
        missed = "" if found.is_confident else memories_missed(heart, details)
    if found.is_by_words:
        show_note("the embedder failed, so only words were compared")
    if not found:
        show("nothing was found")
    elif not found.is_confident:
        show("nothing clearly answers this; the nearest are:")
    if missed:
        show_note(f"not looked at: {missed}; name them with --project and --user")
    columns = max(LEAST_COLUMNS, shutil.get_terminal_size().columns) - len(INDENT)
    for place, each in enumerate(found, start=1):
        lines = wrapped(each.text, columns, most=MOST_LINES, cut=" … (--full)")
        shown = escaped(each.text if full else f"\n{INDENT}".join(lines))
        show(f"[bold]{place:>2}[/bold]  [cyan]{each.score:.3f}[/cyan]  {shown}")
        said_at = f"{each.memory.said_at:%Y-%m-%d %H:%M}".removesuffix(" 00:00")  # imported ones often have a date only
        said = ", ".join([said_at, *origin_words(vars(each.memory))])
        show(f"            [dim]{each.id}  said {escaped(said)}{standing_words(each, found)}[/dim]")
    if found:
        show_note(f"say what was used: nous feedback {brief(found.id)} --cite ID")
    fields = ("score", "memory", "parts", "put_before", "contradicted_by", "begins_on", "changed_by")
    memories = [{name: getattr(each, name) for name in fields} for each in found]
    confidence = {"is_confident": found.is_confident, "is_by_words": found.is_by_words}
    return {"recall_id": found.id, "project_id": details["project_id"], **confidence, "memories": memories}


def standing_words(answer: Recalled, found: Recall) -> str:
    """Return why an answer stands before another, when it begins, and what changed or contradicts it."""
    places = {each.id: place for place, each in enumerate(found, start=1)}
    before = places.get(answer.put_before) if answer.put_before else None
    why = "said later than {0}" if before and not found[before - 1].begins_on else "holds until {0} begins"
    words = [f"{why.format(before)}, so before it"] if before else []
    words += [f"begins on {answer.begins_on}"] if answer.begins_on else []
    words += [f"contradicted by {', '.join(map(brief, answer.contradicted_by))}"] if answer.contradicted_by else []
    changed_by = ", ".join(str(places[each]) for each in answer.changed_by)
    words += [f"changed since by {changed_by}"] if changed_by else []
    return "".join(f"  {each}" for each in words)


def memories_missed(heart: Heart, details: Mapping[str, Any]) -> str:
    """Return in words what a recall did not look among, since it is another user's or project's."""
    from nous_online.memories.status import out_of_reach

    reach = {name: details[name] for name in ("user_id", "project_id")}
    with heart.agent.transaction(heart.agent.deadline(None)) as connection:
        return out_of_reach(connection, heart.agent.id, **reach)


@with_options(MemoryFilter)
def list_memories(*, agent: AgentOption = None, **wanted: Any) -> object:
    """List what an agent remembers, the latest first: each memory in one line, with its id.

    $ nous list
    $ nous list --kind fact --about rent --state any
    $ nous list --limit 100 --before 01a202e5-e0bd --json
    """
    from nous_online.memories.memory_verbs import RECALLED

    with open_heart(agent) as heart:
        found = heart.list_memories(**wanted)
    columns = max(LEAST_COLUMNS, shutil.get_terminal_size().columns)
    for each in found:
        words = [each.kind, *([] if each.state in RECALLED else [each.state]), *(["pinned"] if each.is_pinned else [])]
        about = f"{each.about}: " if each.about and each.kind == "episode" else ""
        text = "".join(wrapped(about + each.text, columns - len(INDENT) - 2, most=1))
        show(f"[cyan]{each.at:%Y-%m-%d}[/cyan]  {escaped(text) or '[dim]no text[/dim]'}")
        show(f"{' ' * 12}[dim]{brief(each.id)}  {escaped(', '.join([*words, *origin_words(vars(each))]))}[/dim]")
    if not found:
        show_note("no memory fits; `--state any` lists those too that recall does not find")
    elif len(found) == wanted["limit"]:
        show_note(f"there may be more: --before {brief(found[-1].id)}")
    return {"memories": found}


def agents() -> object:
    """List the agents that are known, by name.

    $ nous agents
    $ nous agents --json | jq -r '.agents[]'
    """
    from nous_online.memories.status import known_agents

    with open_database() as database:
        names = known_agents(database.url)
    for name in names:
        show(escaped(name))
    if not names:
        show_note("no agents yet; one begins with the first thing it learns: nous learn")
    return {"agents": names}


def status(*, agent: AgentOption = None) -> object:
    """Count what an agent remembers, and say what waits for a person.

    $ nous status --agent aria
    $ nous status --json | jq .memories.fact.active
    """
    from nous_online.memories.status import check_known, status_of

    name = agent_named(agent)
    with open_database() as database:
        check_known(database.url, name)
        with database.transaction(name) as connection:
            found = status_of(connection, name)
    show(f"[bold]{escaped(name)}[/bold]")
    for kind, states in found.memories.items():
        counts = ", ".join(f"{count:,} {state}" for state, count in states.items())
        show(f"{kind:<10} {counts}")
    if found.projects:
        named = ", ".join(f"{escaped(name)} {count:,}" for name, count in list(found.projects.items())[:MOST_PROJECTS])
        more = f" and {len(found.projects) - MOST_PROJECTS:,} more" if len(found.projects) > MOST_PROJECTS else ""
        show(f"{'projects':<10} {named}{more}")
    show(f"{'recalls':<10} {found.recalls:,}")
    if found.waiting.episodes:
        show(f"{'waiting':<10} {found.waiting.episodes:,} closed episodes to complete")
    if failed := found.waiting.failed_episodes:
        show(f"{'':<10} {failed:,} failed and are tried again: {escaped(found.waiting.last_error or '')}")
    for consumer, count in found.waiting.events.items():
        show(f"{'waiting':<10} {count:,} events {events_for(consumer)}")
    show(f"{'nights':<10} {f'the last was {found.nights.last}' if found.nights.last else 'none yet'}")
    for number, need in enumerate(found.needs or ("nothing",)):
        show(f"{'' if number else 'needs you':<10} {escaped(brief(need))}")
    if not found.memories:
        show_note("no memories yet; teach it some with `nous learn` or `nous import`")
    return found


def events_for(consumer: str) -> str:
    """Return for whom events wait; those for Nous itself are reacted to by whatever works in the background."""
    from nous_online.queue.outbox import HEART

    return "for Nous itself; `nous worker` handles them" if consumer == HEART else f"for {escaped(consumer)}"


MemoryId = Annotated[UUID, Argument(metavar="ID", help="A memory of any kind, as `nous recall` names it.")]
Why = Annotated[str | None, Option(help="Why; kept with the event.")]


@by_person
def forget(
    memory_id: MemoryId, *, reason: Annotated[str, Option(help="Why; kept with the event.")], agent: AgentOption = None
) -> object:
    """Forget a memory: out of recall, contexts and questions about the past, however often it was confirmed.

    It stays in the store: `nous restore` brings it back. What must leave the disk is erased: `nous erase --memory`.

    $ nous forget $ID --reason "the lock was changed"
    """
    with open_heart(agent) as heart:
        was = heart.get(memory_id)
        gone = heart.forget(memory_id, reason=reason)
    show_memory("forgotten already" if was.is_forgotten else "forgotten", gone.memory)
    for ids, what in ((gone.merged, "was merged into it"), (gone.replaced, "had been replaced by it")):
        for each in ids:
            show_note(f"{brief(each)} {what}, and stays out of recall too")
    if drawn_from := getattr(was, "source_episode_id", None):
        show_note(f"{brief(drawn_from)} is the episode it was drawn from, which may still tell it")
    return gone


@by_person
def restore(
    memory_id: MemoryId,
    *,
    active: Annotated[bool, Option(help="Make a fact active that another superseded before, or says too.")] = False,
    reason: Why = None,
    agent: AgentOption = None,
) -> object:
    """Restore a memory that was forgotten, or archived by a night, to the state it was in.

    Of a fact that another one had superseded before, it says what holds now, and how to make it active again. One that
    was learned again meanwhile is merged into that fact, so that its statements count for it.

    $ nous restore $ID --reason "forgotten by mistake"
    $ nous restore $ID --active
    """
    from nous_online.memories.store import standing_of

    with open_heart(agent) as heart:
        was = heart.get(memory_id)
        memory = heart.restore(memory_id, reason=reason, is_active=active)
        show_memory("nothing to restore" if memory == was else "restored", memory)
        with heart.agent.transaction(heart.agent.deadline(None)) as connection:
            for line in standing_of(connection, heart.agent.id, memory):
                show(escaped(line))
        return memory


@by_person
def pin(memory_id: MemoryId, *, reason: Why = None, agent: AgentOption = None) -> object:
    """Pin a memory: no night archives or condenses it.

    $ nous pin $ID
    """
    with open_heart(agent) as heart:
        return show_memory("pinned", heart.pin(memory_id, reason=reason))


@by_person
def unpin(memory_id: MemoryId, *, reason: Why = None, agent: AgentOption = None) -> object:
    """Unpin a memory: nights treat it like any other again.

    $ nous unpin $ID
    """
    with open_heart(agent) as heart:
        return show_memory("unpinned", heart.unpin(memory_id, reason=reason))


@by_person
@with_options(MemoryChanges)
def update(memory_id: MemoryId, *, reason: Why = None, agent: AgentOption = None, **details: Any) -> object:
    """Correct what is known about a memory besides its text; to say something else, learn it.

    $ nous update $ID --subject "gate code" --tag home
    $ nous update $ID --valid-to 2026-12-31T00:00:00Z --reason "the lease ends"
    """
    changes = cast("MemoryChanges", {name: value for name, value in details.items() if value is not None})
    with open_heart(agent) as heart:
        return show_memory("updated", heart.update(memory_id, reason=reason, **changes))


def show_memory(done: str, memory: Memory) -> Memory:
    """Print what was done to a memory, its text and its state, and return it."""
    text = next((value for name in (*TITLES, "detail") if (value := getattr(memory, name, None))), "")
    show(f"[green]{done}[/green]  {escaped(text)}")
    show(f"[dim]{memory.id}  {memory.state}[/dim]")
    return memory


NamedMemory = Annotated[UUID, Argument(metavar="ID", help="A memory, as `nous recall` names it.")]


def history(memory_id: NamedMemory, *, agent: AgentOption = None) -> object:
    """Show the history of a memory: every change, the latest first, with who made it, when and why.

    $ nous history 01a202e5-e0bd-7d8c-b5bd-9313b051deb4
    $ nous history $ID --json | jq '.events[0].before'
    """
    with open_heart(agent) as heart:
        events = heart.history(memory_id)
        lines = succession_lines(heart, heart.get_fact(memory_id)) if events[0].memory_kind == "fact" else []
    for line in (*lines, *map(event_lines, events)):
        show(line)
    return {"memory_id": memory_id, "events": events}


def succession_lines(heart: Heart, fact: Fact) -> list[str]:
    """Return the successor and the predecessors of a fact, each with its text and id."""
    successor = [heart.get_fact(fact.superseded_by)] if fact.superseded_by else []
    how = "merged into" if fact.succession == "merged" else "replaced by"
    related = [(how, each) for each in successor]
    related += [(str(each.succession), each) for each in heart.predecessors(fact.id)]
    return [f"{how:<16}  {escaped(each.content)}\n{'':<18}[dim]{each.id}[/dim]" for how, each in related]


def event_lines(event: PastChange) -> str:
    """Return one change of a memory on two lines: when, what, by whom and why."""
    moved = event.to_state if event.from_state == event.to_state else f"{event.from_state} → {event.to_state}"
    by = f"the night of {event.night}" if event.night else event.actor
    return (
        f"{event.happened_at:%Y-%m-%d %H:%M}  [bold]{escaped(event.action)}[/bold]  {escaped(moved)}\n"
        f"{'':<18}[dim]{escaped(by)}: {escaped(brief(event.reason))}[/dim]"
    )


def show_one(memory_id: NamedMemory, *, agent: AgentOption = None) -> object:
    """Show a memory in full: its text and its history; of a fact what was said, of an episode what was drawn from it.

    $ nous show 01a202e5-e0bd-7d8c-b5bd-9313b051deb4
    $ nous show $FACT --json | jq '.statements[].content'
    $ nous show $EPISODE --json | jq '.episode.summary, .facts[].content'
    """
    with open_heart(agent) as heart:
        memory, events = heart.get(memory_id), heart.history(memory_id)
        kind = events[0].memory_kind
        if kind == "fact":
            fields, lines = fact_shown(heart, memory)
        elif kind == "episode":
            fields, lines = episode_shown(heart, memory)
        else:
            fields, lines = {}, [escaped(memory.reason)] if kind == "censor" else procedure_lines(memory)
    title = next((getattr(memory, name) for name in TITLES if getattr(memory, name, None)), kind)
    about = ", ".join([memory.state, f"trust {memory.trust}", *origin_words(cast("dict[str, Any]", vars(memory)))])
    lines = [
        f"[bold]{escaped(title)}[/bold]",
        f"[dim]{memory.id}  {escaped(about)}[/dim]",
        *lines,
        "\nwhat became of it, the latest first",
    ]
    for line in (*lines, *map(event_lines, events)):
        show(line)
    return {kind: memory, **fields, "events": events}


def fact_shown(heart: Heart, fact: Fact) -> tuple[dict[str, Any], list[str]]:
    """Return what `nous show` adds to a fact: its statements and predecessors, as fields and as lines."""
    from nous_online.memories.store import unrecorded_count

    stated, before = heart.statements(fact.id), heart.predecessors(fact.id)
    unrecorded = unrecorded_count(fact, stated)
    fields = {"statements": stated, "unrecorded_count": unrecorded, "predecessors": before}
    return fields, [*succession_lines(heart, fact), "", *statement_lines(stated, unrecorded)]


def episode_shown(heart: Heart, episode: Episode) -> tuple[dict[str, Any], list[str]]:
    """Return what `nous show` adds to an episode: when it was, its summary, and the facts drawn from it."""
    from nous_online.memories.store import facts_drawn_from

    with heart.agent.transaction(heart.agent.deadline(None)) as connection:
        facts = facts_drawn_from(connection, heart.agent.id, episode.id)
    until = f" to {episode.ended_at:%Y-%m-%d %H:%M}" if episode.ended_at else ", not closed yet"
    text = episode.summary or episode.compressed or episode.detail or ""
    lines = [f"{episode.started_at:%Y-%m-%d %H:%M}{until}", "", escaped(text)]
    lines += [f"lesson: {escaped(lesson)}" for lesson in episode.lessons_learned]
    lines += ["\nfacts drawn from it"] if facts else []
    for each in facts:
        lines += [f"  {escaped(each.content)}", f"  [dim]{each.id}  {escaped(each.state)}[/dim]"]
    return {"facts": facts}, lines


def procedure_lines(procedure: Procedure) -> list[str]:
    names = ("domain", "trigger", "goals", "core_patterns", "core_tools", "core_concepts", "steps", "template")
    lines: list[str] = []
    for name in (*names, "implementation_notes"):
        if value := getattr(procedure, name):
            listed = cast("list[object]", value) if isinstance(value, list) else [value]
            said = "; ".join(each if isinstance(each, str) else json.dumps(each, ensure_ascii=False) for each in listed)
            lines.append(f"{name.replace('_', ' ')}: {escaped(said)}")
    return lines


def statement_lines(statements: list[Statement], unrecorded: int) -> list[str]:
    times = {1: "once", 2: "twice"}.get(len(statements), f"{len(statements)} times")
    lines = [f"said {times}, in these words"]
    for each in statements:
        source = f", {escaped(each.source)}" if each.source else ""
        undone = ", undone" if each.taken_back_at else ""
        lines.append(f"{each.said_at:%Y-%m-%d %H:%M}  {escaped(each.content)}")
        lines.append(f"                  [dim]{each.reason}{undone}{source}: {each.id}[/dim]")
    if unrecorded:
        lines.append(f"confirmed {unrecorded} more times before statements were kept: those words are gone")
    return lines


@by_person
def split(
    statement_id: Annotated[UUID, Argument(metavar="STATEMENT_ID", help="A statement, as `nous show` names it.")],
    *,
    reason: Annotated[str | None, Option(help="Why; kept in the history of both facts.")] = None,
    agent: AgentOption = None,
) -> object:
    """Make a statement a fact of its own, apart from the fact it was taken for.

    `nous undo` with the id of the new fact, which is printed, joins them again.

    $ nous split 01a202e5-e0bd-7d8c-b5bd-9313b051deb4 --reason "against is not for"
    $ nous split $STATEMENT --json | jq .id
    """
    with open_heart(agent) as heart:
        fact = heart.split(statement_id, reason=reason)
    show(f"[green]split off[/green]  {escaped(fact.content)}")
    show(f"[dim]{fact.id}  nights and the same words, learned again, keep the two apart[/dim]")
    show_note(f"join them again: nous undo {brief(fact.id)}")
    return fact


# --- what only a person can decide: contradictions, and facts that perhaps replace others ---

Ruled = Literal["a_wins", "b_wins", "both_valid", "merged", "same"]
ALL = "all"
BY_HAND = "decided on the command line"
HOW = (
    "decide one: nous resolve ID a_wins|b_wins|both_valid|same --note WHY, or nous resolve ID --keep FACT; "
    "many where both hold: nous resolve all both_valid --source NAME, or --subject NAME"
)
ONLY_ALIKE = (
    "many are decided at once where both facts hold, and only about one source or subject: "
    "nous resolve all both_valid --source NAME, or --subject NAME"
)


def contradictions(
    *,
    status: Annotated[Literal["open", "resolved", "any"], Option(help="Open, resolved, or any.")] = "open",
    agent: AgentOption = None,
) -> object:
    """List facts that contradict each other or perhaps replace others; both are kept until somebody decides.

    Of each pair the earlier stands first, with the day it was said; `a` and `b` are its names for `nous resolve`.

    $ nous contradictions
    $ nous contradictions --status resolved --json
    """
    with open_heart(agent) as heart:
        wanted = None if status == "any" else status
        found, doubts = heart.contradictions(status=wanted), heart.doubts(status=wanted)
    for one in found:
        show_contradiction(one)
    for each in doubts:
        show_doubt(each)
    if not found and not doubts:
        show_note("nothing was ruled on" if status == "resolved" else "nothing contradicts itself or is in doubt")
    elif status == "open":
        show_note(HOW)
    rows = [{**asdict(each), "a": each.a.content, "b": each.b.content} for each in found]
    return {"contradictions": rows, "doubts": [doubt_row(each) for each in doubts]}


REST_LOST = "; both_valid keeps both, and replacing the earlier would lose the rest of it"


def show_contradiction(found: Contradiction) -> None:
    """Print a contradiction: both sides, the earlier first, why it is one, and how somebody would decide it."""
    from nous_online.memories.contradictions import sides_of
    from nous_online.memories.learning import is_partial

    show(f"[bold]{found.id}[/bold]  {escaped(found.resolution or found.status)}")
    for name, side in sorted(sides_of(found), key=lambda named: named[1].learned_at):
        show(side_line(name, side))
    if reason := (found.judgement or {}).get("reason"):
        show(f"  [dim]{escaped(brief(reason))}{REST_LOST if is_partial(reason) else ''}[/dim]")
    if found.status == "resolved":
        show_decision(found.note, found.id)
    elif proposed := found.proposed:
        into = f" into {brief(proposed['merged_into'])}" if proposed["merged_into"] else ""
        why = f": {proposed['note']}" if proposed["note"] else ""
        ruling = f"{proposed['resolution']}{into} by {proposed['by']}{why}"
        show(f"  [yellow]proposed[/yellow]  {escaped(ruling)}")


def show_doubt(doubt: Doubt) -> None:
    """Print a doubt: both sides, the earlier first, and how to decide it, or how it was decided."""
    from nous_online.language.pairs.clauses import has_sentences

    show(f"[bold]{doubt.later.id}[/bold]  {escaped(doubt.resolution or 'in doubt')}: b perhaps replaces a")
    for name, fact in (("a", doubt.earlier), ("b", doubt.later)):
        show(side_line(name, fact))
    if doubt.resolution:
        show_decision(doubt.note, *(each.id for each in doubt.decided_on))
    else:
        rest = REST_LOST if has_sentences(doubt.earlier.content) else ""
        show(f"  [dim]{ruling_of_doubt(doubt.later, doubt.earlier.id)}{rest}[/dim]")


def show_decision(note: str | None, *ids: UUID) -> None:
    """Print why something was decided so, and what takes that back."""
    if note:
        show(f"  [dim]decided: {escaped(brief(note))}[/dim]")
    show(f"  [dim]take it back: {', then '.join(f'nous undo {brief(each)}' for each in ids)}[/dim]")


def doubt_row(doubt: Doubt) -> dict[str, Any]:
    later, earlier = doubt.later, doubt.earlier
    ids = {"kind": "doubt", "id": later.id, "earlier": earlier.id, "later": later.id}
    decided = {"resolution": doubt.resolution, "note": doubt.note, "resolved_at": doubt.resolved_at}
    return {**ids, "a": earlier.content, "b": later.content, **decided}


def ruling_of_doubt(later: Fact, earlier_id: UUID) -> str:
    """Return what to type to decide whether a fact replaces an earlier one."""
    against = f" --against {brief(earlier_id)}" if len(later.perhaps_replaces) > 1 else ""
    return f"if so: nous resolve {brief(later.id)} b_wins{against}; if not: both_valid, or same"


def side_line(name: str, fact: Fact) -> str:
    """Return one side of a question: its name in rulings, its text, when and by whom it was said, and its id."""
    said = ", ".join([f"{fact.learned_at:%Y-%m-%d}", *origin_words(vars(fact))])
    return f"  {name}  {escaped(fact.content)}  [dim]{escaped(said)}  {fact.id}[/dim]"


def origin_words(memory: Mapping[str, Any]) -> list[str]:
    """Return the source and the user of a memory, as far as it has them, and from when it holds where that is ahead."""
    begins = checked_moment("valid_from", memory.get("valid_from"))
    words = [f"{word} {memory[name]}" for word, name in (("source", "source"), ("user", "user_id")) if memory.get(name)]
    if begins is not None and begins > datetime.now(UTC):
        words.append(f"holds from {begins.day} {begins:%B %Y}")
    return words


def question_named(text: str) -> object:
    return text if text == ALL else identifier(text)


@by_person
def resolve(  # noqa: PLR0913 (one parameter for each option)
    question: Annotated[
        str,
        Argument(
            metavar="ID|all",
            help="A contradiction or a fact in doubt, as `nous contradictions` names it.",
            parser=question_named,
        ),
    ],
    resolution: Annotated[Ruled | None, Argument(help="Who is right; `merged` needs --into.")] = None,
    *,
    keep: Annotated[UUID | None, Option(metavar="ID", help="Instead: the fact that wins.")] = None,
    against: Annotated[
        UUID | None, Option(metavar="ID", help="Of a fact in doubt: the earlier fact that is meant.")
    ] = None,
    note: Annotated[str | None, Option(help="Why; kept with it.")] = None,
    into: Annotated[
        UUID | None, Option(metavar="ID", help="With `merged`: the fact that takes the place of both.")
    ] = None,
    source: Annotated[
        str | None, Option(metavar="NAME", help="With `all both_valid`: a source of one of the two.")
    ] = None,
    subject: Annotated[str | None, Option(metavar="NAME", help="With `all both_valid`: the subject of both.")] = None,
    reject: Annotated[bool, Option(help="Forget what was proposed; it stays open.")] = False,
    agent: AgentOption = None,
) -> object:
    """Decide a contradiction, or whether a fact replaces another. What loses is superseded and stays in the store.

    Of a doubt `a` is the earlier fact and `b` the later one. Two that say the `same` are merged, as by a night.
    `all both_valid` decides every question about one subject, or with one source, that both facts hold.
    An agent's key may not decide against what is pinned or trusted more: it proposes, `nous contradictions` shows that,
    and this decides, so or otherwise, or rejects it.

    $ nous resolve $ID b_wins --note "the contract was renewed"
    $ nous resolve $ID --keep $FACT
    $ nous resolve $ID same
    $ nous resolve $ID merged --into $FACT
    $ nous resolve all both_valid --source inventory.md
    $ nous resolve $ID --reject
    """
    from nous_online.memories.contradictions import Ruling

    if reject == bool(resolution or keep or note or into):
        message = "say a_wins, b_wins, both_valid, same, merged or --keep, or --reject alone, which decides nothing"
        raise InvalidInput(message)
    if (question == ALL) != bool(source or subject) or (question == ALL and resolution != "both_valid"):
        raise InvalidInput(ONLY_ALIKE)
    with open_heart(agent) as heart:
        if question == ALL:
            return resolve_all(heart, source, subject, note)
        asked = checked_id("ID", question)
        if reject:
            return show_ruling(heart.reject_ruling(asked))
        return resolve_one(heart, asked, Ruling(resolution, note, into, keep), against)


def resolve_all(heart: Heart, source: str | None, subject: str | None, note: str | None) -> object:
    """Decide all questions about a subject or with a source: both facts hold."""
    from nous_online.interfaces.questions import about, hold_both, questions_of

    found = about(questions_of(heart), source=source, subject=subject)
    settled = hold_both(heart, found, why=note or BY_HAND)
    show(f"[green]resolved[/green]  {settled:,} {'question' if settled == 1 else 'questions'}: both hold")
    return {"resolved": settled}


def resolve_one(heart: Heart, asked: UUID, ruling: Ruling, against: UUID | None) -> object:
    """Decide a contradiction, or else the doubt about a fact of that id."""
    try:
        ruled = heart.resolve_contradiction(
            asked, ruling.resolution, keep=ruling.keep, note=ruling.note, merged_into=ruling.merged_into
        )
    except NotFound as error:
        try:
            later = heart.get_fact(asked)
        except NotFound:
            raise NotFound(f"{error}, and no fact in doubt of that id; `nous contradictions` lists both") from None
        return resolve_doubt(heart, later, ruling, against)
    return show_ruling(ruled)


def show_ruling(ruled: Contradiction) -> Contradiction:
    """Print how a contradiction was decided, or that it is still open, and return it."""
    done = "[green]rejected[/green]  still open" if ruled.status == "open" and ruled.proposed is None else None
    show(f"{done or f'[green]resolved[/green]  {ruled.resolution}'}  [dim]{ruled.id}[/dim]")
    for name, side in (("a", ruled.a), ("b", ruled.b)):
        show(f"  {name}  {escaped(side.content)}")
    return ruled


def resolve_doubt(heart: Heart, later: Fact, ruling: Ruling, against: UUID | None) -> object:
    """Decide whether a fact replaces those it perhaps replaces, and print what was decided."""
    from nous_online.interfaces.questions import settle_doubt
    from nous_online.memories.contradictions import Ruling

    if ruling.keep is not None:
        against = against if ruling.keep == later.id else ruling.keep
        ruling = Ruling("b_wins" if ruling.keep == later.id else "a_wins", ruling.note)
    earlier = settle_doubt(heart, later, ruling, against=against, why=ruling.note or BY_HAND)
    sides = [heart.get_fact(each) for each in (*earlier, later.id)]
    show(f"[green]resolved[/green]  {ruling.resolution}")
    for each in sides:
        show(f"  {each.state:<10}  {escaped(each.content)}  [dim]{each.id}[/dim]")
    return {"resolution": ruling.resolution, "facts": sides}
