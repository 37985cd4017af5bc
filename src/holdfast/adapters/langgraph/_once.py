"""Tools that graphs call once, also if resumed, retried, replayed or forked."""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

import msgspec
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langgraph.config import get_config
from langgraph.errors import GraphBubbleUp

from holdfast.adapters.langgraph._call_journal import Call, CallJournal
from holdfast.adapters.langgraph._call_site import site_of
from holdfast.adapters.langgraph._declarations import WRAPPED, declaration_of
from holdfast.adapters.langgraph._namespace import given
from holdfast.adapters.langgraph._saver import HoldfastSaver
from holdfast.effects import Declaration, Effect, Key, Policy
from holdfast.effects import declaration_of as declared_on
from holdfast.effects import once as declare_once
from holdfast.errors import Conflict, HoldfastError, Unsupported
from holdfast.operations.effects import HAPPENED, INTERRUPTED

if TYPE_CHECKING:
    from langgraph.prebuilt.tool_node import ToolCallRequest

T = TypeVar("T")

_ADVICE = {
    INTERRUPTED: ". Look, then record its result with saver.resolve(effect, result), or"
    " allow it once more with saver.retry(effect); saver.unknown(config) lists such"
    " effects",
    HAPPENED: ". Answer the call with update_state(), or use another policy for it",
}


@overload
def once(
    tool: T,
    /,
    *,
    key: Key | None = None,
    undo: Callable[[Effect], Any] | None = None,
    policy: Policy | None = None,
) -> T: ...
@overload
def once(
    *,
    key: Key | None = None,
    undo: Callable[[Effect], Any] | None = None,
    policy: Policy | None = None,
) -> Callable[[T], T]: ...
def once(
    tool: Any = None,
    /,
    *,
    key: Key | None = None,
    undo: Callable[[Effect], Any] | None = None,
    policy: Policy | None = None,
) -> Any:
    """A tool or a function that the nodes of a graph call once.

    The graph needs a `HoldfastSaver`. A call that is repeated because its task is
    resumed or retried, or because the graph was taken back to an earlier checkpoint, is
    not made again: the recorded result is returned. The options are those of
    `holdfast.once`, which can also stand on the function itself; a function that is
    declared `holdfast.repeatable` stays as it is.

    Raises `Conflict` if a call began and its end was not recorded;
    ``handle_tool_errors`` of a ``ToolNode`` does not hide it.
    """
    if tool is None:
        return functools.partial(once, key=key, undo=undo, policy=policy)
    declared = declaration_of(tool)
    if key is not None or undo is not None or policy is not None:
        declare = declare_once(key=key, undo=undo, policy=policy)
        declared = declared_on(declare(lambda: None))
    if declared.is_repeatable or hasattr(tool, WRAPPED):
        return tool
    if isinstance(tool, BaseTool):
        return _once_tool(tool, declared)
    return _once_function(tool, declared)


def once_tool_call(request: ToolCallRequest, execute: Callable[..., Any]) -> Any:
    """Make all tools of a node `once`: ``ToolNode(tools, wrap_tool_call=...)``.

    Tools that are declared `holdfast.repeatable` are called as always.
    """
    return execute(_once_request(request))


async def aonce_tool_call(
    request: ToolCallRequest, execute: Callable[..., Awaitable[Any]]
) -> Any:
    """Like `once_tool_call`, for ``awrap_tool_call``."""
    return await execute(_once_request(request))


def _once_request(request: ToolCallRequest) -> ToolCallRequest:
    tool = request.tool
    return request if tool is None else request.override(tool=once(tool))


# --- a call ---------------------------------------------------------------------------


class _Asked(msgspec.Struct, frozen=True):
    """A call that reached a tool: its arguments, its id, and the running task."""

    tool: Declaration
    name: str
    arguments: dict[str, Any]
    id: str | None
    config: RunnableConfig

    def prepared(self) -> tuple[CallJournal, Call]:
        """The call, and the journal for it."""
        saver: object = given(self.config).get("__pregel_checkpointer")
        if not isinstance(saver, HoldfastSaver):
            raise Unsupported(
                f"{self.name!r} is called once by a graph that has a HoldfastSaver;"
                " pass compile(checkpointer=HoldfastSaver(...))"
            )
        journal = saver.call_journal
        site = site_of(self.config, journal.runs.of(self.config))
        plain = journal.types.tabled(self.arguments, "arguments")
        arguments = cast("dict[str, Any]", plain)
        return journal, Call.at(site, self.tool, self.name, arguments, self.id)

    def run(self, function: Callable[[], Any]) -> Any:
        """The result of the call, which is made at most once."""
        with _reaching_the_developer():
            journal, call = self.prepared()
            begun = journal.begin(call)
        if begun.permitted.is_completed:
            return journal.result(begun)
        try:
            result = function()
        except Exception as error:
            with _noted(error):
                journal.fail(begun, error)
            raise
        with _reaching_the_developer():
            journal.complete(begun, result)
        return result

    async def arun(self, function: Callable[[], Awaitable[Any]]) -> Any:
        with _reaching_the_developer():
            journal, call = self.prepared()
            begun = await journal.abegin(call)
        if begun.permitted.is_completed:
            return journal.result(begun)
        try:
            result = await function()
        except Exception as error:
            with _noted(error):
                await journal.afail(begun, error)
            raise
        with _reaching_the_developer():
            await journal.acomplete(begun, result)
        return result


@contextmanager
def _noted(error: Exception) -> Generator[None, None, None]:
    """Add a note to the error of a tool if its end cannot be recorded."""
    try:
        yield
    except HoldfastError as problem:
        error.add_note(f"The journal could not record it: {problem}")


@contextmanager
def _reaching_the_developer() -> Generator[None, None, None]:
    """Raise an error through a ``ToolNode`` that could show it to the model."""
    try:
        yield
    except HoldfastError as error:
        raise _bubbling(error) from error


def _bubbling(error: HoldfastError) -> HoldfastError:
    kind = type(error)
    through = type(
        kind.__name__, (kind, GraphBubbleUp), {"__module__": kind.__module__}
    )
    same = cast("HoldfastError", through.__new__(through, *error.args))
    vars(same).update(vars(error))
    if isinstance(error, Conflict) and error.code in _ADVICE:
        same.message = error.message.partition(". ")[0] + _ADVICE[error.code]
    return same


# --- tools and functions --------------------------------------------------------------

# A call that reached a tool and was not made yet, for the function under the tool.
_asked: ContextVar[_Asked | None] = ContextVar("holdfast_call", default=None)


def _once_tool(tool: BaseTool, declared: Declaration) -> BaseTool:
    """A copy of a tool that calls its own function once.

    The outer methods know the id of the call, and the inner ones see what the function
    really returns or raises.
    """
    same = copy.copy(tool)
    inner: dict[str, Callable[..., Any]] = {
        name: getattr(tool, name) for name in ("_run", "_arun")
    }

    def asked(given_input: Any, options: dict[str, Any]) -> _Asked:
        config = options.get("config") or _config()
        id_ = options.get("tool_call_id")
        return _Asked(declared, tool.name, _given(tool, given_input), id_, config)

    @functools.wraps(tool.run)
    def run(tool_input: Any, *args: Any, **options: Any) -> Any:
        with _set(asked(tool_input, options)):
            return tool.__class__.run(same, tool_input, *args, **options)

    @functools.wraps(tool.arun)
    async def arun(tool_input: Any, *args: Any, **options: Any) -> Any:
        with _set(asked(tool_input, options)):
            return await tool.__class__.arun(same, tool_input, *args, **options)

    @functools.wraps(inner["_run"])
    def inner_run(*args: Any, **options: Any) -> Any:
        call = _asked.get()
        function = functools.partial(inner["_run"], *args, **options)
        if call is None:
            return function()
        with _set(None):
            return call.run(function)

    @functools.wraps(inner["_arun"])
    async def inner_arun(*args: Any, **options: Any) -> Any:
        call = _asked.get()
        function = functools.partial(inner["_arun"], *args, **options)
        if call is None:
            return await function()
        with _set(None):
            return await call.arun(function)

    # Only the methods of this instance change: its class stays, and with it
    # isinstance().
    vars(same).update(run=run, arun=arun, _run=inner_run, _arun=inner_arun)
    vars(same)[WRAPPED] = declared
    return same


def _given(tool: BaseTool, tool_input: Any) -> dict[str, Any]:
    """The arguments that come from the model, without those LangGraph injects."""
    if not isinstance(tool_input, dict):
        return {"input": tool_input}
    given_input = cast("dict[str, Any]", tool_input)
    return {name: given_input[name] for name in tool.args if name in given_input}


@contextmanager
def _set(call: _Asked | None) -> Generator[None, None, None]:
    token = _asked.set(call)
    try:
        yield
    finally:
        _asked.reset(token)


def _once_function(function: Callable[..., Any], declared: Declaration) -> Any:
    """A function that is called once, with the same signature."""
    signature = inspect.signature(function)

    def asked(args: Any, options: Any) -> _Asked:
        bound = signature.bind(*args, **options)
        bound.apply_defaults()
        name = getattr(function, "__name__", type(function).__name__)
        return _Asked(declared, name, dict(bound.arguments), None, _config())

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        made = functools.partial(function, *args, **options)
        return asked(args, options).run(made)

    @functools.wraps(function)
    async def acall(*args: Any, **options: Any) -> Any:
        made = functools.partial(function, *args, **options)
        return await asked(args, options).arun(made)

    same = acall if inspect.iscoroutinefunction(function) else call
    setattr(same, WRAPPED, declared)
    return same


def _config() -> RunnableConfig:
    try:
        return get_config()
    except RuntimeError:
        return {}
