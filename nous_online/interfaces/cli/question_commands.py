"""Commands about what only a person can decide: contradictions, and facts that perhaps replace others."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Literal
from uuid import UUID

import typer

from nous_online.core.errors import InvalidInput, NotFound
from nous_online.core.validation import checked_id
from nous_online.interfaces.cli.output import AgentOption, JsonOption, escaped, open_heart, show, show_json, show_note

if TYPE_CHECKING:
    from nous_online.core.domain import Fact
    from nous_online.heart import Heart
    from nous_online.memories.contradictions import Contradiction, Ruling

Status = Literal["open", "resolved", "any"]
Ruled = Literal["a_wins", "b_wins", "both_valid", "merged"]
ALL = "all"
BY_HAND = "decided on the command line"
HOW = (
    "decide one: nous resolve ID a_wins|b_wins|both_valid --note WHY, or nous resolve ID --keep FACT; "
    "many where both hold: nous resolve all both_valid --source NAME, or --subject NAME"
)
ONLY_ALIKE = (
    "many are decided at once where both facts hold, and only about one source or subject: "
    "nous resolve all both_valid --source NAME, or --subject NAME"
)


def contradictions(
    *,
    status: Annotated[Status, typer.Option(help="Those that are open, resolved, or any.")] = "open",
    agent: AgentOption = None,
    as_json: JsonOption = False,
) -> None:
    """List facts that contradict each other or perhaps replace others; both are kept until somebody decides.

    [bold]Examples[/bold]

    [dim]$[/dim] nous contradictions

    [dim]$[/dim] nous contradictions --status resolved --json
    """
    from nous_online.interfaces.questions import as_plain, questions_of

    with open_heart(agent) as heart:
        found = heart.contradictions(status=None if status == "any" else status)
        rows = [with_texts(each) for each in found]
        doubts = [each for each in questions_of(heart) if each.kind == "doubt"] if status != "resolved" else []
        texts = {one: heart.get_fact(one).content for each in doubts for one in (each.earlier_id, each.later_id)}
    if as_json:
        show_json({"contradictions": rows, "doubts": [as_plain(each) for each in doubts]})
        return
    for each in rows:
        show(f"[bold]{each['id']}[/bold]  {escaped(each['resolution'] or each['status'])}")
        show(f"  a  {escaped(each['a'])}  [dim]{each['memory_a']}[/dim]")
        show(f"  b  {escaped(each['b'])}  [dim]{each['memory_b']}[/dim]")
        if each["proposed"] and each["status"] == "open":
            show(f"  [yellow]proposed[/yellow]  {escaped(in_words(each['proposed']))}")
    for each in doubts:
        show(f"[bold]{each.id}[/bold]  in doubt: b perhaps replaces a")
        show(f"  a  {escaped(texts[each.earlier_id])}  [dim]{each.earlier_id}[/dim]")
        show(f"  b  {escaped(texts[each.later_id])}  [dim]{each.later_id}[/dim]")
    if not rows and not doubts:
        show_note("nothing contradicts itself, and nothing is in doubt")
    elif status == "open":
        show_note(HOW)


def resolve(  # noqa: PLR0913 (one parameter for each option)
    question: Annotated[
        str,
        typer.Argument(metavar="ID|all", help="A contradiction or a fact in doubt, as `nous contradictions` names it."),
    ],
    resolution: Annotated[Ruled | None, typer.Argument(help="Who is right; `merged` needs --into.")] = None,
    *,
    keep: Annotated[UUID | None, typer.Option(metavar="ID", help="Instead: the fact that wins.")] = None,
    against: Annotated[
        UUID | None, typer.Option(metavar="ID", help="Of a fact in doubt: the earlier fact that is meant.")
    ] = None,
    note: Annotated[str | None, typer.Option(help="Why; kept with it.")] = None,
    into: Annotated[
        UUID | None, typer.Option(metavar="ID", help="With `merged`: the fact that takes the place of both.")
    ] = None,
    source: Annotated[
        str | None, typer.Option(metavar="NAME", help="With `all both_valid`: a source of one of the two.")
    ] = None,
    subject: Annotated[
        str | None, typer.Option(metavar="NAME", help="With `all both_valid`: the subject of both.")
    ] = None,
    reject: Annotated[
        bool, typer.Option("--reject", help="Forget what was proposed; it stays open.", metavar="")
    ] = False,
    agent: AgentOption = None,
    as_json: JsonOption = False,
) -> None:
    """Decide a contradiction, or whether a fact replaces another. What loses is superseded and stays in the store.

    Of a doubt `a` is the earlier fact and `b` the later one. `all both_valid` decides every question about one subject,
    or with one source, that both facts hold.
    An agent's key may not decide against what is pinned or trusted more: it proposes, `nous contradictions` shows that,
    and this decides, so or otherwise, or rejects it.

    [bold]Examples[/bold]

    [dim]$[/dim] nous resolve $ID b_wins --note "the contract was renewed"

    [dim]$[/dim] nous resolve $ID --keep $FACT

    [dim]$[/dim] nous resolve $ID merged --into $FACT

    [dim]$[/dim] nous resolve all both_valid --source inventory.md

    [dim]$[/dim] nous resolve $ID --reject
    """
    if reject == bool(resolution or keep or note or into):
        message = "say a_wins, b_wins, both_valid, merged or --keep, or --reject alone, which decides nothing"
        raise InvalidInput(message)
    if (question == ALL) != bool(source or subject) or (question == ALL and resolution != "both_valid"):
        raise InvalidInput(ONLY_ALIKE)
    with open_heart(agent) as heart:
        if question == ALL:
            resolve_all(heart, source, subject, note, as_json=as_json)
        elif reject:
            show_ruling(heart.reject_ruling(checked_id("ID", question)), as_json=as_json)
        else:
            resolve_one(heart, checked_id("ID", question), (resolution, note, into, keep), against, as_json=as_json)


def resolve_one(
    heart: Heart,
    asked: UUID,
    told: tuple[Ruled | None, str | None, UUID | None, UUID | None],
    against: UUID | None,
    *,
    as_json: bool,
) -> None:
    """Decide a contradiction, or else the doubt about a fact of that id; `told` are the fields of a `Ruling`."""
    from nous_online.memories.contradictions import Ruling

    ruling = Ruling(*told)
    try:
        ruled = heart.resolve_contradiction(
            asked, ruling.resolution, keep=ruling.keep, note=ruling.note, merged_into=ruling.merged_into
        )
    except NotFound as error:
        later = doubted(heart, asked, error)
        resolve_doubt(heart, later, ruling, against, as_json=as_json)
        return
    show_ruling(ruled, as_json=as_json)


def show_ruling(ruled: Contradiction, *, as_json: bool) -> None:
    """Print how a contradiction was decided, or that it is still open."""
    if as_json:
        show_json(ruled)
        return
    done = "[green]rejected[/green]  still open" if ruled.status == "open" and ruled.proposed is None else None
    show(f"{done or f'[green]resolved[/green]  {ruled.resolution}'}  [dim]{ruled.id}[/dim]")
    for name, side in (("a", ruled.a), ("b", ruled.b)):
        show(f"  {name}  {escaped(side['content'])}")


def resolve_all(heart: Heart, source: str | None, subject: str | None, note: str | None, *, as_json: bool) -> None:
    """Decide all questions about a subject or with a source: both facts hold."""
    from nous_online.interfaces.questions import about, hold_both, questions_of

    found = about(questions_of(heart), source=source, subject=subject)
    settled = hold_both(heart, found, why=note or BY_HAND)
    if as_json:
        show_json({"resolved": settled})
    else:
        show(f"[green]resolved[/green]  {settled:,} {'question' if settled == 1 else 'questions'}: both hold")


def doubted(heart: Heart, fact_id: UUID, error: NotFound) -> Fact:
    """Return the fact in doubt of that id; raise `NotFound` if it is neither that nor a contradiction."""
    try:
        return heart.get_fact(fact_id)
    except NotFound:
        raise NotFound(f"{error}, and no fact in doubt of that id; `nous contradictions` lists both") from None


def resolve_doubt(heart: Heart, later: Fact, ruling: Ruling, against: UUID | None, *, as_json: bool) -> None:
    """Decide whether a fact replaces those it perhaps replaces, and print what was decided."""
    from nous_online.interfaces.questions import settle_doubt

    resolution: str = str(ruling.resolution)
    if ruling.keep is not None:
        resolution, against = ("b_wins", against) if ruling.keep == later.id else ("a_wins", ruling.keep)
    why = ruling.note or BY_HAND
    earlier = settle_doubt(heart, later, resolution, against=against, into=ruling.merged_into, why=why)
    sides = [heart.get_fact(each) for each in (*earlier, later.id)]
    if as_json:
        show_json({"resolution": resolution, "facts": sides})
        return
    show(f"[green]resolved[/green]  {resolution}")
    for each in sides:
        show(f"  {each.state:<10}  {escaped(each.content)}  [dim]{each.id}[/dim]")


def in_words(proposed: dict[str, Any]) -> str:
    """Return a proposed ruling in words: the resolution, by whom, and why."""
    into = f" into {proposed['merged_into']}" if proposed["merged_into"] else ""
    why = f": {proposed['note']}" if proposed["note"] else ""
    return f"{proposed['resolution']}{into} by {proposed['by']}{why}"


def with_texts(each: Contradiction) -> dict[str, Any]:
    """Return a contradiction's columns, with the texts of its sides under `a` and `b`."""
    return {**asdict(each), "a": each.a["content"], "b": each.b["content"]}
