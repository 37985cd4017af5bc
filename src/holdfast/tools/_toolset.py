"""The tools of a store, for the sync and the async API."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from typing import Any, ClassVar, Generic, TypeVar

from holdfast._api.store import AsyncStore, Store
from holdfast._engine.records.agents import checked_agent
from holdfast._values.arguments import checked_flags, checked_items
from holdfast._values.records import checked_name
from holdfast.errors import Unstorable
from holdfast.tools import _formats
from holdfast.tools._agents import AGENT_TOOLS
from holdfast.tools._call import Given, ToolSelection, check_call, perform
from holdfast.tools._checkpoints import CHECKPOINT_TOOLS
from holdfast.tools._conversations import CONVERSATION_TOOLS
from holdfast.tools._documents import DOCUMENT_TOOLS
from holdfast.tools._errors import suggestion
from holdfast.tools._formats import describe, signature_of
from holdfast.tools._statistics import STATISTICS_TOOLS
from holdfast.tools._threads import THREAD_TOOLS
from holdfast.tools._tool import Result, Scope, Tool

S = TypeVar("S", Store, AsyncStore)

TOOLS: tuple[Tool, ...] = (
    *AGENT_TOOLS,
    *CONVERSATION_TOOLS,
    *CHECKPOINT_TOOLS,
    *STATISTICS_TOOLS,
)


# Beside these fourteen: what reads threads of every kind, and documents.
STORE_TOOLS: tuple[Tool, ...] = (*THREAD_TOOLS, *DOCUMENT_TOOLS)


def select(
    *,
    only: Iterable[str] | None,
    read_only: bool,
    agent: str | None,
    owner: str | None,
    threads: bool = False,
) -> ToolSelection:
    """The tools that meet all conditions."""
    checked_flags(read_only=read_only, threads=threads)
    known = (*TOOLS, *STORE_TOOLS) if threads else TOOLS
    scope = Scope(
        agent=None if agent is None else checked_agent(agent),
        owner=None if owner is None else checked_name(owner, "owner"),
    )
    names = None if only is None else _checked_names(only, known)
    reasons = {tool.name: _reason(tool, names, read_only, scope) for tool in known}
    return ToolSelection(
        tools={tool.name: tool for tool in known if not reasons[tool.name]},
        withheld={name: reason for name, reason in reasons.items() if reason},
        scope=scope,
    )


def _checked_names(only: Iterable[str], tools: Iterable[Tool]) -> set[str]:
    named = [checked_name(name, "only") for name in checked_items(only, "only")]
    names, known = set(named), [tool.name for tool in tools]
    for name in sorted(names.difference(known)):
        hint = suggestion(name, known, most=3) or f"There is {', '.join(known)}."
        raise Unstorable("only", f"there is no tool {name!r}. {hint.strip()}")
    return names


def _reason(
    tool: Tool, only: set[str] | None, read_only: bool, scope: Scope
) -> str | None:
    """Why a tool cannot be called, ``None`` if it can."""
    if read_only and not tool.read_only:
        return "only reading is allowed"
    if scope.owner is not None and not tool.per_owner:
        return "it would reach beyond one user"
    if scope.bound and tool in STORE_TOOLS:
        return "it would reach beyond one agent"
    if only is not None and tool.name not in only:
        return "it was not offered"
    return None


class _Tools(Generic[S]):
    """The base of `Toolset` and `AsyncToolset`."""

    _takes: ClassVar[type[Store | AsyncStore]]
    _refusal: ClassVar[str]

    def __init__(
        self,
        store: S,
        *,
        only: Iterable[str] | None = None,
        read_only: bool = False,
        agent: str | None = None,
        owner: str | None = None,
        threads: bool = False,
    ) -> None:
        self._selection = select(
            only=only, read_only=read_only, agent=agent, owner=owner, threads=threads
        )
        if not isinstance(store, self._takes):
            raise Unstorable("store", self._refusal)
        self._store: S = store

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools that can be called."""
        return tuple(self._selection.tools.values())

    def openai(
        self, *, responses: bool = False, strict: bool = True
    ) -> list[dict[str, Any]]:
        """The tools for OpenAI: for Chat, or for Responses.

        A tool that takes an object with any keys cannot be strict.
        """
        form = _formats.for_responses if responses else _formats.for_chat
        return self._forms(form, strict=strict)

    def anthropic(self, *, strict: bool = False) -> list[dict[str, Any]]:
        """The tools for Anthropic's messages.

        ``strict`` is off by default: Anthropic compiles all tools of a request
        together, and some models refuse this many. It works for a few tools.
        """
        return self._forms(_formats.for_anthropic, strict=strict)

    def mcp(self) -> list[dict[str, Any]]:
        """The tools as an MCP server lists them, with their annotations."""
        return self._forms(_formats.for_mcp)

    def _forms(
        self, form: Callable[..., dict[str, Any]], **options: bool
    ) -> list[dict[str, Any]]:
        schema = self._selection.schema
        return [form(tool, schema(tool), **options) for tool in self.tools]


class Toolset(_Tools[Store]):
    """The tools of a `Store` for a model to call.

    ``read_only`` offers only the seven that change nothing, ``only`` those it names.
    ``agent`` limits the model to one agent and its conversations, ``owner`` to the
    conversations of one user; an argument that is fixed so disappears from the
    schemas. With ``owner``, only tools that can be limited to one user are offered:
    those for conversations, and the statistics. Every call is checked against this.

    ``threads`` adds five tools that list, read and search threads of every kind and
    documents, unless the model is limited to an agent or a user.
    """

    _takes = Store
    _refusal = "is not a Store; AsyncToolset takes an AsyncStore"

    def call(self, name: str, arguments: Given = None) -> Result:
        """Call a tool; ``arguments`` is a mapping or JSON text as models send it.

        Gives JSON values, at most 32 kB. An error is a result too,
        ``{"error": {"code", "message", "hint"}}``: the hint says what to do.
        """
        check_call(name, arguments)
        return self._store.runner.run(perform, self._selection, name, arguments)

    def answer(self, call: object) -> dict[str, Any]:
        """Run the call of a model, and give the message that answers it.

        Takes a tool call of OpenAI Chat, a function call item of OpenAI Responses or a
        tool use block of Anthropic, as a mapping or as the object of their libraries.
        """
        asked = _formats.read_call(call)
        return asked.answer(asked.id, self.call(asked.name, asked.arguments))

    def callables(self) -> dict[str, Callable[..., Result]]:
        """The tools as functions by name, for frameworks that read signatures."""
        return {tool.name: self._function(tool) for tool in self.tools}

    def _function(self, tool: Tool) -> Callable[..., Result]:
        signature = signature_of(tool, self._selection)

        def function(*args: Any, **kwargs: Any) -> Result:
            bound = signature.bind(*args, **kwargs)
            return self.call(tool.name, bound.arguments)

        describe(function, tool, signature, self._selection.schema(tool))
        return function


class AsyncToolset(_Tools[AsyncStore]):
    """Like `Toolset`, for an `AsyncStore` and awaited."""

    _takes = AsyncStore
    _refusal = "is not an AsyncStore; Toolset takes a Store"

    async def call(self, name: str, arguments: Given = None) -> Result:
        check_call(name, arguments)
        return await self._store.runner.run(perform, self._selection, name, arguments)

    async def answer(self, call: object) -> dict[str, Any]:
        asked = _formats.read_call(call)
        return asked.answer(asked.id, await self.call(asked.name, asked.arguments))

    def callables(self) -> dict[str, Callable[..., Coroutine[Any, Any, Result]]]:
        return {tool.name: self._function(tool) for tool in self.tools}

    def _function(self, tool: Tool) -> Callable[..., Coroutine[Any, Any, Result]]:
        signature = signature_of(tool, self._selection)

        async def function(*args: Any, **kwargs: Any) -> Result:
            bound = signature.bind(*args, **kwargs)
            return await self.call(tool.name, bound.arguments)

        describe(function, tool, signature, self._selection.schema(tool))
        return function
