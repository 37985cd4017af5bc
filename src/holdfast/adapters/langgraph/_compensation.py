"""Undoes the effects that a replay, a rewind or an update left behind."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any

from holdfast.adapters.langgraph._declarations import declaration_of
from holdfast.adapters.langgraph._get import find_thread
from holdfast.adapters.langgraph._namespace import Namespace
from holdfast.effects import UNDECLARED, Compensation, Effect
from holdfast.errors import Unsupported
from holdfast.operations import Context
from holdfast.operations.effects import Finish, Run, line_of, undo


async def compensate(
    run: Run, finish: Finish, namespace: Namespace, tools: Iterable[object]
) -> Compensation:
    """Undo the effects left behind, newest first, with the ``undo`` of each tool."""
    declared = {_name(tool): declaration_of(tool) for tool in tools}
    return await undo.undo_all(
        lambda: run(_to_undo, namespace),
        lambda tool: declared.get(tool, UNDECLARED),
        run,
        finish,
    )


async def _to_undo(context: Context, namespace: Namespace) -> list[Effect]:
    record = await find_thread(context, namespace)
    if record is None or record.head is None or record.deleted_at is not None:
        return []
    line = await line_of(context, record, record.head)
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
