"""Listing the tasks of an owner: filtered, in the order of the protocol, in pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from a2a.types.a2a_pb2 import ListTasksRequest, ListTasksResponse, TaskState
from a2a.utils.constants import DEFAULT_LIST_TASKS_PAGE_SIZE
from a2a.utils.errors import InvalidParamsError
from a2a.utils.task import (
    ListTasksCursor,
    decode_list_tasks_cursor,
    encode_list_tasks_cursor,
)

from holdfast import Checkpoint
from holdfast.adapters.a2a._names import KIND, tasks_of
from holdfast.adapters.a2a._tasks import Tasks
from holdfast.operations import Context
from holdfast.operations.threads import read_values_of

SortKey = tuple[bool, int, str]


class Listed(msgspec.Struct, frozen=True):
    """The fields of a task that a listing needs."""

    key: SortKey
    task: dict[str, Any]

    def __lt__(self, other: Listed) -> bool:
        return self.key < other.key

    @property
    def id(self) -> str:
        return self.key[2]

    def is_wanted(self, params: ListTasksRequest) -> bool:
        """True if a request asks for this task."""
        context = self.task.get("contextId", "")
        state = self.task.get("status", {}).get("state")
        after = 0
        if params.HasField("status_timestamp_after"):
            after = params.status_timestamp_after.ToNanoseconds()
            if not self.key[0]:
                return False
        return (
            params.context_id in ("", context)
            and (not params.status or state == TaskState.Name(params.status))
            and self.key[1] >= after
        )


async def listed(context: Context, heads: Sequence[Checkpoint]) -> list[Listed]:
    """The tasks of some checkpoints; small values are read with the checkpoints."""
    found: list[Listed] = []
    for head in heads:
        values = await read_values_of(context, head, "sort", "task")
        has_time, time, id_ = values["sort"]
        found.append(Listed((has_time, time, id_), values["task"]))
    return found


async def page_of(
    tasks: Tasks, owner: str, params: ListTasksRequest
) -> ListTasksResponse:
    """One page of an owner's tasks, the latest change of status first."""
    threads = await tasks.store.threads(kind=KIND, prefix=tasks_of(owner), limit=None)
    heads = [thread.head for thread in threads if thread.head is not None]
    found = await tasks.store.runner.run(listed, heads)
    wanted = sorted((one for one in found if one.is_wanted(params)), reverse=True)
    rest = wanted
    if params.page_token:
        after = _after(params)
        rest = [one for one in wanted if one.key < after]
    size = params.page_size or DEFAULT_LIST_TASKS_PAGE_SIZE
    shown = [await tasks.find(owner, one.id) for one in rest[:size]]
    return ListTasksResponse(
        tasks=[one.task for one in shown if one is not None],
        next_page_token=_token(rest[size - 1].key) if len(rest) > size else None,
        total_size=len(wanted),
        page_size=size,
    )


def _after(params: ListTasksRequest) -> SortKey:
    cursor = decode_list_tasks_cursor(params.page_token)
    if cursor is None:
        raise InvalidParamsError(f"Invalid page token: {params.page_token}")
    return cursor.sort_key()


def _token(key: SortKey) -> str:
    has_time, time, id_ = key
    return encode_list_tasks_cursor(ListTasksCursor(time if has_time else None, id_))
