"""A store's tools through both doors."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from holdfast._api.store import AsyncStore, Store
from holdfast._engine.records.agents import checked_agent
from holdfast._values.records import checked_name
from holdfast.errors import Unstorable
from holdfast.tools import _formats
from holdfast.tools._agents import AGENT_TOOLS
from holdfast.tools._call import Given, Selection, check_call, perform
from holdfast.tools._checkpoints import CHECKPOINT_TOOLS
from holdfast.tools._conversations import CONVERSATION_TOOLS
from holdfast.tools._errors import suggestion
from holdfast.tools._functions import dress, signature_of
from holdfast.tools._statistics import STATISTICS_TOOLS
from holdfast.tools._tool import Result, Scope, Tool

TOOLS: tuple[Tool, ...] = (
    *AGENT_TOOLS,
    *CONVERSATION_TOOLS,
    *CHECKPOINT_TOOLS,
    *STATISTICS_TOOLS,
)


def select(
    *,
    only: Iterable[str] | None,
    read_only: bool,
    agent: str | None,
    owner: str | None,
) -> Selection:
    """The tools that all of the conditions leave."""
    scope = Scope(
        agent=None if agent is None else checked_agent(agent),
        owner=None if owner is None else checked_name(owner, "owner"),
    )
    names = None if only is None else _checked_names(only)
    reasons = {tool.name: _reason(tool, names, read_only, scope) for tool in TOOLS}
    return Selection(
        tools={tool.name: tool for tool in TOOLS if not reasons[tool.name]},
        withheld={name: reason for name, reason in reasons.items() if reason},
        scope=scope,
    )


def _checked_names(only: Iterable[str]) -> set[str]:
    if isinstance(only, str):
        raise Unstorable("only", f"must be a list of names; pass [{only!r}]")
    names, known = set(only), [tool.name for tool in TOOLS]
    for name in sorted(names.difference(known)):
        hint = suggestion(name, known, most=3) or f"There is {', '.join(known)}."
        raise Unstorable("only", f"there is no tool {name!r}. {hint.strip()}")
    return names


def _reason(
    tool: Tool, only: set[str] | None, read_only: bool, scope: Scope
) -> str | None:
    """Why a tool cannot be called, if so."""
    if read_only and not tool.read_only:
        return "only reading is allowed"
    if scope.owner is not None and not tool.per_owner:
        return "it would reach beyond one user"
    if only is not None and tool.name not in only:
        return "it was not offered"
    return None


class _Tools:
    """What both doors have in common."""

    def __init__(self, selection: Selection) -> None:
        self._selection = selection

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools that can be called."""
        return tuple(self._selection.tools.values())

    def openai(
        self, *, responses: bool = False, strict: bool = True
    ) -> list[dict[str, Any]]:
        """The tools for OpenAI: for Chat, or for Responses.

        Strict where it can be: a tool that takes an object with any keys cannot.
        """
        form = _formats.for_responses if responses else _formats.for_chat
        schema = self._selection.schema
        return [form(tool, schema(tool), strict=strict) for tool in self.tools]

    def anthropic(self, *, strict: bool = False) -> list[dict[str, Any]]:
        """The tools for Anthropic's messages.

        Strict is not the default: all tools of a request are compiled together there,
        and some models refuse as many as these. It works for a few of them.
        """
        schema = self._selection.schema
        return [
            _formats.for_anthropic(tool, schema(tool), strict=strict)
            for tool in self.tools
        ]

    def mcp(self) -> list[dict[str, Any]]:
        """The tools as an MCP server lists them, with their annotations."""
        schema = self._selection.schema
        return [_formats.for_mcp(tool, schema(tool)) for tool in self.tools]


class Toolset(_Tools):
    """The tools of a `Store` for a model to call.

    ``read_only`` leaves the seven that change nothing, ``only`` those it names.
    ``agent`` confines the model to one agent and its conversations, ``owner`` to the
    conversations of one user; what is settled so disappears from the arguments. With
    ``owner`` only tools that can be kept to one user are left: those for conversations
    and the statistics. All of this is checked when a tool is called.
    """

    def __init__(
        self,
        store: Store,
        *,
        only: Iterable[str] | None = None,
        read_only: bool = False,
        agent: str | None = None,
        owner: str | None = None,
    ) -> None:
        super().__init__(
            select(only=only, read_only=read_only, agent=agent, owner=owner)
        )
        if not isinstance(store, Store):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise Unstorable(
                "store", "is not a Store; AsyncToolset takes an AsyncStore"
            )
        self._runner = store.runner

    def call(self, name: str, arguments: Given = None) -> Result:
        """Call a tool; ``arguments`` is a mapping or JSON text as models send it.

        Gives values of JSON, at most 32 kB of it. What went wrong is a result too,
        ``{"error": {"code", "message", "hint"}}``, which tells the model what to do.
        """
        check_call(name, arguments)
        return self._runner.run(perform, self._selection, name, arguments)

    def answer(self, call: object) -> dict[str, Any]:
        """Call what a model asks for and give back the message that answers it.

        Takes a tool call of OpenAI Chat, a function call item of OpenAI Responses or a
        tool use block of Anthropic, as a mapping or as the object of their libraries.
        """
        asked = _formats.read_call(call)
        return _formats.answer_to(asked, self.call(asked.name, asked.arguments))

    def callables(self) -> dict[str, Callable[..., Result]]:
        """The tools as functions by name, for frameworks that look at signatures."""
        return {tool.name: self._function(tool) for tool in self.tools}

    def _function(self, tool: Tool) -> Callable[..., Result]:
        signature = signature_of(tool, self._selection)

        def function(*args: Any, **kwargs: Any) -> Result:
            bound = signature.bind(*args, **kwargs)
            return self.call(tool.name, bound.arguments)

        dress(function, tool, signature, self._selection.schema(tool))
        return function


class AsyncToolset(_Tools):
    """As `Toolset`, for an `AsyncStore` and awaited."""

    def __init__(
        self,
        store: AsyncStore,
        *,
        only: Iterable[str] | None = None,
        read_only: bool = False,
        agent: str | None = None,
        owner: str | None = None,
    ) -> None:
        super().__init__(
            select(only=only, read_only=read_only, agent=agent, owner=owner)
        )
        if not isinstance(store, AsyncStore):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise Unstorable("store", "is not an AsyncStore; Toolset takes a Store")
        self._runner = store.runner

    async def call(self, name: str, arguments: Given = None) -> Result:
        check_call(name, arguments)
        return await self._runner.run(perform, self._selection, name, arguments)

    async def answer(self, call: object) -> dict[str, Any]:
        asked = _formats.read_call(call)
        return _formats.answer_to(asked, await self.call(asked.name, asked.arguments))

    def callables(self) -> dict[str, Callable[..., Coroutine[Any, Any, Result]]]:
        return {tool.name: self._function(tool) for tool in self.tools}

    def _function(self, tool: Tool) -> Callable[..., Coroutine[Any, Any, Result]]:
        signature = signature_of(tool, self._selection)

        async def function(*args: Any, **kwargs: Any) -> Result:
            bound = signature.bind(*args, **kwargs)
            return await self.call(tool.name, bound.arguments)

        dress(function, tool, signature, self._selection.schema(tool))
        return function
