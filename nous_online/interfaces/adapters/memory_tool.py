"""Anthropic's client-side memory tool over an agent's memory; needs the package `anthropic` when it is made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nous_online.core.errors import NousError
from nous_online.interfaces.adapters.memory_files import MemoryFiles

if TYPE_CHECKING:
    from collections.abc import Callable

    from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool
    from pydantic import BaseModel

    from nous_online.heart import Heart


def memory_tool(heart: Heart) -> BetaAbstractMemoryTool:
    """Return a tool for `client.beta.messages.tool_runner` whose files are documents of this agent."""
    from anthropic.lib.tools import BetaAbstractMemoryTool

    files = MemoryFiles(heart.agent)

    class MemoryTool(BetaAbstractMemoryTool):
        def carry_out(self, command: Any) -> str:
            return carried_out(files, command)

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
            return await to_thread(carried_out, files, command)

        view = create = str_replace = insert = delete = rename = carry_out

        async def clear_all_memory(self) -> str:
            return await to_thread(files.clear)

    return AsyncMemoryTool()


def carried_out(files: MemoryFiles, command: BaseModel) -> str:
    """Carry out one command; what can't be done is raised as a `ToolError`, which the model reads."""
    from anthropic.lib.tools import ToolError
    from pydantic import ValidationError

    try:
        given: dict[str, Any] = type(command).model_validate(command.model_dump(warnings=False)).model_dump()
        act: Callable[..., str] = getattr(files, given.pop("command"))
        return act(**given)
    except NousError as error:
        raise ToolError(str(error)) from error
    except ValidationError as error:
        problems = "; ".join(f"{each['loc'][0]}: {each['msg']}" for each in error.errors())
        raise ToolError(f"The command can't be carried out: {problems}") from error
