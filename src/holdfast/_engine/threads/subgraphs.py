"""The subgraphs of a LangGraph thread, which are forked with it.

A subgraph is a thread of its own. Its checkpoints name, in their metadata, the
checkpoint at which the outermost graph was when they were saved.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from holdfast._engine.context import Context
from holdfast._engine.threads.lineage import inherited, is_ancestor
from holdfast._messages.langgraph_form import (
    KIND,
    SUBGRAPH,
    is_escaped,
    subgraph_name,
    unescaped,
)
from holdfast._messages.loose import fields_of
from holdfast._port import Ancestors, CheckpointKey, Saves, Start, Threads, Write
from holdfast._values.records import (
    Checkpoint,
    Origin,
    ThreadRecord,
    encode_metadata,
)

_PAGE = 20
# In a namespace it marks one call of a subgraph. Other subgraphs have a memory.
_CALL = ":"


async def forked(
    context: Context, source: ThreadRecord, head: Checkpoint, new_thread: str
) -> list[Write]:
    """The writes that fork the subgraphs of a thread as they were at a checkpoint.

    Subgraphs with a memory are forked, and those that are at work at the thread's last
    checkpoint. The other calls of subgraphs are over: no step of the fork needs them.
    """
    if source.kind != KIND or not is_escaped(new_thread):
        return []
    below = Threads(kind=KIND, prefix=f"{source.id}{SUBGRAPH}")
    is_last = await _is_last(context, source, head)
    found: list[Write] = []
    for inner in await context.backend.scan(below):
        start = await _start(context, inner, head, is_last=is_last)
        if start is not None:
            found.append(_fork(context, inner, start, new_thread))
    return found


async def _is_last(context: Context, thread: ThreadRecord, head: Checkpoint) -> bool:
    """True if the thread has saved nothing after the checkpoint."""
    saves = Saves(family=thread.family, thread=thread.id, limit=1)
    return all(c.seq <= head.seq for c in await context.backend.scan(saves))


async def _start(
    context: Context, inner: ThreadRecord, head: Checkpoint, *, is_last: bool
) -> Checkpoint | None:
    """The checkpoint of a subgraph at which it was at one of the outermost graph."""
    assert inner.head is not None
    if is_last and _around(inner.head) == head.id:
        return inner.head
    if _CALL in _namespace(inner):
        return None
    async for checkpoint in _line(context, inner, head.seq):
        if await _was_before(context, _around(checkpoint), head):
            return checkpoint
    return None


def _around(checkpoint: Checkpoint) -> str:
    """The checkpoint of the outermost graph during which a subgraph saved this one."""
    return str(fields_of(checkpoint.metadata.get("parents")).get("", ""))


def _namespace(inner: ThreadRecord) -> str:
    return str(inner.metadata.get("checkpoint_ns", ""))


async def _line(
    context: Context, inner: ThreadRecord, before: int
) -> AsyncIterator[Checkpoint]:
    """The saves of a subgraph before a number, newest first, then the inherited ones.

    Not the line of its head: the outermost graph may have been taken back since.
    """
    last: int | None = before
    while last is not None:
        query = Saves(family=inner.family, thread=inner.id, before=last, limit=_PAGE)
        page = await context.backend.scan(query)
        for checkpoint in page:
            yield checkpoint
        last = page[-1].seq if len(page) == _PAGE else None
    above = await inherited(context, inner) if inner.forked_from else None
    while above is not None:
        page = await context.backend.scan(Ancestors(start=above, limit=_PAGE))
        for checkpoint in page:
            if checkpoint.seq < before:
                yield checkpoint
        above = page[-1] if len(page) == _PAGE else None


async def _was_before(context: Context, around: str, head: Checkpoint) -> bool:
    """True if the checkpoint is before the head on its line, or is not stored.

    One that is not stored is of a run that saves only at its end.
    """
    if around == head.id:
        return False
    [found] = await context.backend.read([CheckpointKey(head.family, around)])
    return found is None or await is_ancestor(context, found, of=head)


def _fork(
    context: Context, inner: ThreadRecord, start: Checkpoint, new_thread: str
) -> Write:
    namespace = _namespace(inner)
    about = {**inner.metadata, "thread_id": unescaped(new_thread)}
    return Write(
        thread=subgraph_name(new_thread, namespace),
        at=context.clock(),
        expect=None,
        start=Start(
            kind=KIND,
            owner=inner.owner,
            agent=inner.agent,
            metadata=encode_metadata(about),
            head=start,
            origin=Origin(inner.id, start.id),
            anew=True,
        ),
    )
