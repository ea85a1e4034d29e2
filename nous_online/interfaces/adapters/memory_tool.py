"""Anthropic's client-side memory tool (memory_20250818) over an agent's memory: its files are documents."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from nous_online.core.errors import Conflict, InvalidInput, NotFound, NousError
from nous_online.core.validation import visible
from nous_online.memories.agent import Agent
from nous_online.memories.documents import Document, Documents, Edit

if TYPE_CHECKING:
    from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool
    from pydantic import BaseModel

    from nous_online.heart import Heart

ROOT = "/memories"
PLACE = "memory tool"
"""Project id of the documents, which limits recall to them."""
MOST_LINES = 999_999  # as many as NUMBER_WIDTH has digits for
NUMBER_WIDTH = 6
SHOWN_DEPTH = 2
AROUND = 2
"""Lines shown before and after a change."""
UNITS = ("B", "K", "M", "G")


class MemoryFiles:
    """The six commands of the tool over one agent's files. Safe to share between threads."""

    def __init__(self, agent: Agent) -> None:
        self._documents = Documents(agent, PLACE)

    def view(self, path: str, view_range: Sequence[int] | None = None) -> str:
        """Show a file with line numbers, or a directory two levels deep."""
        name = resolved(path)
        found = self._documents.list(name)
        for document in found:
            if document.name == name:
                return shown_file(path, document.text, view_range)
        tree = tree_of(name, (document for document in found if document.name.startswith(f"{name}/")))
        if name != ROOT and not tree.entries:
            raise NotFound(f"The path {path} does not exist. Please provide a valid path.")
        title = f"Here're the files and directories up to 2 levels deep in {path}, excluding hidden items:"
        lines = [f"{size_of(tree.size)}\t{path}", *list_entries(path, tree, SHOWN_DEPTH)]
        return "\n".join([title, *lines])

    def create(self, path: str, file_text: str) -> str:
        name = resolved(path)

        def decide() -> list[Edit]:
            if name == ROOT or self._documents.list(f"{name}/") or self._documents.find([name]):
                raise Conflict(f"File {path} already exists")
            self._check_parents(name)
            return [Edit(name, file_text, None)]

        self._documents.change(decide)
        return f"File created successfully at: {path}"

    def str_replace(self, path: str, old_str: str, new_str: str) -> str:
        edited: list[str] = []

        def replaced(text: str) -> str:
            count = text.count(old_str) if old_str else 0
            if count == 0:
                raise InvalidInput(
                    f"No replacement was performed, old_str `{old_str}` did not appear verbatim in {path}."
                )
            if count > 1:
                lines = ", ".join(map(str, lines_of(old_str, text)))
                raise InvalidInput(
                    f"No replacement was performed. Multiple occurrences of old_str `{old_str}` in lines: {lines}. "
                    "Please ensure it is unique"
                )
            before, _, after = text.partition(old_str)
            lines = f"{before}{new_str}{after}".split("\n")
            first = max(0, before.count("\n") - AROUND)
            last = before.count("\n") + AROUND
            # Replaced, not appended: `change` decides again if another writer was faster.
            edited[:] = [numbered(lines[first : last + 1], first + 1)]
            return "\n".join(lines)

        self._edit(path, replaced)
        title = "The memory file has been edited. Here is the snippet showing the change (with line numbers):"
        return f"{title}\n{edited[0]}"

    def insert(self, path: str, insert_line: int, insert_text: str) -> str:
        """Insert a text after a line, counted from 1; 0 is before the first."""

        def inserted(text: str) -> str:
            lines = text.removesuffix("\n").split("\n") if text else []
            if not 0 <= insert_line <= len(lines):
                message = f"It should be within the range [0, {len(lines)}]."
                raise InvalidInput(f"Invalid `insert_line` parameter: {insert_line}. {message}")
            lines.insert(insert_line, insert_text.rstrip("\n"))
            return "\n".join(lines).removesuffix("\n") + "\n"

        self._edit(path, inserted)
        return f"The file {path} has been edited."

    def delete(self, path: str) -> str:
        name = resolved(path)
        if name == ROOT:
            raise InvalidInput("Cannot delete the /memories directory itself")
        self._documents.change(lambda: [Edit(each.name, None, each) for each in self._below(name, path)])
        return f"Successfully deleted {path}"

    def rename(self, old_path: str, new_path: str) -> str:
        """Give a file, or a directory with all its files, another name."""
        old, new = resolved(old_path), resolved(new_path)
        if old == ROOT:
            raise InvalidInput("Cannot rename the /memories directory itself")
        if new.startswith(f"{old}/"):
            raise InvalidInput(f"Cannot move {old_path} into itself, to {new_path}")

        def decide() -> list[Edit]:
            if new == ROOT or self._documents.list(f"{new}/") or self._documents.find([new]):
                raise Conflict(f"The destination {new_path} already exists")
            self._check_parents(new)
            moved = self._below(old, old_path)
            return [Edit(f"{new}{each.name.removeprefix(old)}", each.text, each) for each in moved]

        self._documents.change(decide)
        return f"Successfully renamed {old_path} to {new_path}"

    def clear(self) -> str:
        self._documents.change(lambda: [Edit(each.name, None, each) for each in self._documents.list(f"{ROOT}/")])
        return "All memory cleared"

    def _edit(self, path: str, edited: Callable[[str], str]) -> None:
        name = resolved(path)

        def decide() -> list[Edit]:
            document = self._documents.find([name]).get(name)
            if document is not None:
                return [Edit(name, edited(document.text), document)]
            if name == ROOT or self._documents.list(f"{name}/"):
                raise InvalidInput(f"The path {path} is not a file.")
            raise NotFound(f"The path {path} does not exist. Please provide a valid path.")

        self._documents.change(decide)

    def _below(self, name: str, path: str) -> list[Document]:
        """Return the file of a name or the files of a directory; raise `NotFound` when there are none."""
        found = [each for each in self._documents.list(name) if each.name == name or each.name.startswith(f"{name}/")]
        if not found:
            raise NotFound(f"The path {path} does not exist")
        return found

    def _check_parents(self, name: str) -> None:
        """Raise `Conflict` when a file stands where a directory is needed."""
        parts = name.split("/")
        # parts: "", "memories", the folders, the name.
        for found in self._documents.find(["/".join(parts[:end]) for end in range(3, len(parts))]):
            raise Conflict(f"The path {found} is a file, not a directory")


@dataclass
class Tree:
    """A file or directory: its size in bytes with all entries, and its entries by name."""

    size: int = 0
    entries: dict[str, Tree] = field(default_factory=dict[str, "Tree"])
    is_file: bool = False


def lines_of(part: str, text: str) -> list[int]:
    """Return the number of the line in which each occurrence of a part begins, overlapping ones too."""
    found, at, line = list[int](), -1, 1
    while (place := text.find(part, at + 1)) >= 0:
        line += text.count("\n", max(at, 0), place)
        found.append(line)
        at = place
    return found


def resolved(path: str) -> str:
    """Return a normalized path; raise `InvalidInput` for one outside of `/memories`."""
    if path != ROOT and not path.startswith(f"{ROOT}/"):
        raise InvalidInput(f"Path must start with /memories, got: {path}")
    name = posixpath.normpath(path)
    if name != ROOT and not name.startswith(f"{ROOT}/"):
        raise InvalidInput(f"Path {path} would escape /memories directory")
    return name


def numbered(lines: Sequence[str], first: int) -> str:
    """Return lines with their numbers, without hidden characters."""
    return "\n".join(f"{number:>{NUMBER_WIDTH}}\t{visible(line)}" for number, line in enumerate(lines, start=first))


def shown_file(path: str, text: str, view_range: Sequence[int] | None) -> str:
    """Return the numbered lines of a file, or of a range (first, last) counted from 1; -1 is the last line."""
    lines, first = text.split("\n"), 0
    if len(lines) > MOST_LINES:
        raise InvalidInput(f"File {path} exceeds maximum line limit of {MOST_LINES:,} lines.")
    if view_range and len(view_range) == 2:  # noqa: PLR2004 (a range has two ends)
        first = max(1, view_range[0]) - 1
        lines = lines[first : len(lines) if view_range[1] == -1 else view_range[1]]
    return f"Here's the content of {visible(path)} with line numbers:\n{numbered(lines, first + 1)}"


def tree_of(directory: str, documents: Iterable[Document]) -> Tree:
    root = Tree()
    for document in documents:
        size, here = len(document.text.encode()), root
        here.size += size
        for part in document.name.removeprefix(f"{directory}/").split("/"):
            here = here.entries.setdefault(part, Tree())
            here.size += size
        here.is_file = True
    return root


def list_entries(path: str, tree: Tree, depth: int) -> list[str]:
    lines: list[str] = []
    for name in sorted(tree.entries):
        entry = tree.entries[name]
        if name.startswith("."):
            continue
        lines.append(f"{size_of(entry.size)}\t{visible(path)}/{visible(name)}{'' if entry.is_file else '/'}")
        lines += list_entries(f"{path}/{name}", entry, depth - 1) if depth > 1 else []
    return lines


def size_of(count: int) -> str:
    """Return a number of bytes for people: 0B, 12B, 1.5K, 2M."""
    power = min(max(count.bit_length() - 1, 0) // 10, len(UNITS) - 1)
    size = count / 1024**power
    return f"{int(size)}{UNITS[power]}" if size == int(size) else f"{size:.1f}{UNITS[power]}"


def memory_tool(heart: Heart) -> BetaAbstractMemoryTool:
    """Return a tool for `client.beta.messages.tool_runner` whose files are documents of this agent."""
    from anthropic.lib.tools import BetaAbstractMemoryTool

    files = MemoryFiles(heart.agent)

    class MemoryTool(BetaAbstractMemoryTool):
        def carry_out(self, command: Any) -> str:
            return run_command(files, command)

        view = create = str_replace = insert = delete = rename = carry_out

        def clear_all_memory(self) -> str:
            return files.clear()

    return MemoryTool()


def async_memory_tool(heart: Heart) -> BetaAsyncAbstractMemoryTool:
    """Return the same tool for an asynchronous client; commands run in threads."""
    from asyncio import to_thread

    from anthropic.lib.tools import BetaAsyncAbstractMemoryTool

    files = MemoryFiles(heart.agent)

    class AsyncMemoryTool(BetaAsyncAbstractMemoryTool):
        async def carry_out(self, command: Any) -> str:
            return await to_thread(run_command, files, command)

        view = create = str_replace = insert = delete = rename = carry_out

        async def clear_all_memory(self) -> str:
            return await to_thread(files.clear)

    return AsyncMemoryTool()


def run_command(files: MemoryFiles, command: BaseModel) -> str:
    """Run one command; raise `ToolError`, whose message the model reads, if it fails."""
    from anthropic.lib.tools import ToolError
    from pydantic import ValidationError

    try:
        # The SDK builds commands from a model's input without validating them.
        arguments: dict[str, Any] = type(command).model_validate(command.model_dump(warnings=False)).model_dump()
        act: Callable[..., str] = getattr(files, arguments.pop("command"))
        return act(**arguments)
    except NousError as error:
        raise ToolError(str(error)) from error
    except ValidationError as error:
        problems = "; ".join(f"{each['loc'][0]}: {each['msg']}" for each in error.errors())
        raise ToolError(f"The command can't be carried out: {problems}") from error
