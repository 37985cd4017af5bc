"""Undoing the effects that a replay, a rewind or an update left behind."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from holdfast._engine.context import Context
from holdfast._engine.effects import undo
from holdfast.adapters.langgraph._declarations import declaration_of
from holdfast.adapters.langgraph._get import find_thread
from holdfast.adapters.langgraph._line import GraphLine, origin_of
from holdfast.adapters.langgraph._namespace import Namespace
from holdfast.effects import Compensation, Effect
from holdfast.errors import Unsupported

# Runs an operation of the engine; gives the result of a function that may be async.
Run = Callable[..., Awaitable[Any]]
Finish = Callable[[Any], Awaitable[Any]]


async def compensate(
    run: Run, finish: Finish, namespace: Namespace, tools: Iterable[object]
) -> Compensation:
    """Undo what was left behind, newest first, with the ``undo`` of each tool."""
    declared = {_name(tool): declaration_of(tool) for tool in tools}
    undone: list[Effect] = []
    kept: list[Effect] = []
    unknown: list[Effect] = []
    for effect in await run(_to_undo, namespace):
        reverse = declared[effect.tool].undo if effect.tool in declared else None
        if reverse is None:
            kept.append(effect)
        elif effect.status == "unknown" or not await run(undo.begin, effect):
            unknown.append(effect)
        else:
            await _undo(run, finish, effect, reverse)
            undone.append(effect)
    return Compensation(tuple(undone), tuple(kept), tuple(unknown))


async def _undo(
    run: Run, finish: Finish, effect: Effect, reverse: Callable[[Effect], Any]
) -> None:
    try:
        await finish(reverse(effect))
    except Exception:
        await run(undo.abandon, effect)
        raise
    await run(undo.complete, effect)


async def _to_undo(context: Context, namespace: Namespace) -> list[Effect]:
    record = await find_thread(context, namespace)
    if record is None or record.head is None or record.deleted_at is not None:
        return []
    origin = await origin_of(context, record.head)
    line = GraphLine(record.family, record.head, {origin.id})
    return await undo.to_undo(context, record.id, line)


def _name(tool: Any) -> str:
    return str(getattr(tool, "name", None) or tool.__name__)


async def at_once(result: Any) -> Any:
    """The result of a function for a sync caller, who cannot await it."""
    if inspect.isawaitable(result):
        if inspect.iscoroutine(result):
            result.close()
        raise Unsupported("this undo is async; call acompensate() and await it")
    return result


async def awaited(result: Any) -> Any:
    """The result of a function for an async caller."""
    return await result if inspect.isawaitable(result) else result
