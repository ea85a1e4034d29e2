"""The command that moves agents into another embedding space."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from nous_online.interfaces.cli.output import AgentOption, JsonOption, escaped, show, show_json, show_note, waiting

if TYPE_CHECKING:
    from nous_pipelines.orchestration.reembedding import Due, Move


def reembed(
    *,
    model: Annotated[str, typer.Option("--to", metavar="MODEL", help="A model of the server in NOUS_EMBEDDING_URL.")],
    dimensions: Annotated[
        int | None, typer.Option(help="Its width; NOUS_EMBEDDING_DIMENSIONS unless named here.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say how much there is to do; change nothing.")] = False,
    agent: AgentOption = None,
    as_json: JsonOption = False,
) -> None:
    """Move memories to another embedding model while agents go on recalling and learning.

    The old vectors serve until all new ones are there, and are kept: moving back to them embeds nothing anew.
    Without --agent it is for all agents. Interrupted, it goes on where it was. The built-in model is minilm-l6-v2-int8.

    [bold]Examples[/bold]

    [dim]$[/dim] nous reembed --to text-embedding-3-small --dry-run

    [dim]$[/dim] nous reembed --to minilm-l6-v2-int8 --agent aria
    """
    from nous_online.database.connection import Database, open_url, register_space
    from nous_pipelines.orchestration.reembedding import all_due, embedder_named
    from nous_pipelines.orchestration.reembedding import reembed as move
    from nous_pipelines.plan.apply import find_agents

    embedder = embedder_named(model, dimensions)
    space = embedder.space
    database = Database(open_url(), role="nous_night", max_connections=2)
    try:
        agents = find_agents(database, [agent] if agent else [])
        left = all_due(database, agents, space.id)
        if dry_run:
            show_due(left, space.id, as_json=as_json)
            return
        register_space(database, space, is_indexed=False)
        told = Counted(sum(each.missing for each in left.values()))
        with waiting(f"embedding {told.total:,} memories for {space.id} …"):
            moves = move(database, embedder, agents, on_progress=told)
    finally:
        database.close()
    show_moves(moves, told, space.id, as_json=as_json)


class Counted:
    """Counts what was embedded, and says so now and then."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.done = 0

    def __call__(self, count: int) -> None:
        """Count some more; every few thousand are told of."""
        before, self.done = self.done, self.done + count
        if self.done // 2000 > before // 2000:
            show_note(f"  {self.done:,} of {self.total:,} embedded")


def show_due(left: dict[str, Due], space_id: str, *, as_json: bool) -> None:
    """Print how much there is to move."""
    if as_json:
        show_json({"space": space_id, "due": {agent_id: asdict(each) for agent_id, each in left.items()}})
        return
    for agent_id, each in left.items():
        show(f"{escaped(agent_id)}: {each.memories:,} memories to move, {each.missing:,} of them still to be embedded")
    if not left:
        show(f"everything is in {space_id} already")


def show_moves(moves: list[Move], told: Counted, space_id: str, *, as_json: bool) -> None:
    """Print what was moved."""
    if as_json:
        show_json({"space": space_id, "embedded": told.done, "moves": [asdict(each) for each in moves]})
        return
    for each in moves:
        count = sum(each.moved.values())
        show(
            f"[green]moved[/green]  {escaped(each.agent_id)}: {count:,} memories; learning waited {each.seconds:.1f} s"
        )
    if not moves:
        show(f"everything is in {space_id} already")
