"""References by step, by time, by the thread's log of moves, and to the fork point."""

from __future__ import annotations

from collections.abc import AsyncIterator

from holdfast._engine.context import Context
from holdfast._port import Ancestors, CheckpointKey, Moves
from holdfast._values.records import Checkpoint, Move, ThreadRecord
from holdfast.errors import NotFound

CHUNK = 200
HEAD_MOVES = frozenset({"save", "rewind", "undo", "redo", "fork"})


async def at_step(
    context: Context, thread: ThreadRecord, head: Checkpoint, step: int
) -> Checkpoint:
    """The checkpoint with a step on the head's line."""
    if step > head.step:
        why = f"is at step {head.step}, before @{step}; see history()"
        raise _missing(thread, f"@{step}", why)
    line = Ancestors(start=head, down_to_step=step, from_step=step)
    page = await context.backend.scan(line)
    if page and page[0].step == step:
        return page[0]
    nearest = f"; the nearest before it is @{page[0].step}" if page else ""
    why = f"has no @{step}: it was pruned, or there never was one{nearest}"
    raise _missing(thread, f"@{step}", f"{why}; see history()")


async def before_moves(
    context: Context, thread: ThreadRecord, head: Checkpoint, count: int
) -> Checkpoint:
    """The head before its last ``count`` moves."""
    reference = f"@{{{count}}}"
    passed = 0
    async for move in head_moves(context, thread.id):
        if passed == count and move.target is not None:
            return await _still_there(context, thread, move.target, reference)
        passed += 1
    if count == 0:
        return head
    why = f"has moved its head {passed} times, so that there is no {reference}"
    raise _missing(thread, reference, f"{why}; see moves()")


async def until(
    context: Context, thread: ThreadRecord, head: Checkpoint, time: int
) -> Checkpoint:
    """The newest checkpoint on the head's line that was saved by a time."""
    # Clocks can be set back, so times along a line may be out of order: no bisection.
    page, chunk = [head], 1
    while True:
        for checkpoint in page:
            if checkpoint.saved_at <= time:
                return checkpoint
        if len(page) < chunk:
            break
        chunk = CHUNK
        line = Ancestors(start=page[-1], skip=1, limit=CHUNK)
        page = list(await context.backend.scan(line))
    why = "has nothing on its line that was saved by then; see history()"
    raise _missing(thread, f"@{{{time}}}", why)


async def upstream(context: Context, thread: ThreadRecord) -> Checkpoint:
    """The checkpoint that a fork began at."""
    origin, reference = thread.forked_from, "@{upstream}"
    if origin is None:
        raise _missing(thread, reference, "is not a fork: it has no @{upstream}")
    return await _still_there(context, thread, origin.checkpoint, reference)


async def head_moves(context: Context, thread: str) -> AsyncIterator[Move]:
    """The moves of a thread's head, newest first."""
    before: int | None = None
    while True:
        page = await context.backend.scan(
            Moves(thread=thread, before=before, limit=CHUNK)
        )
        for move in page:
            if move.kind in HEAD_MOVES:
                yield move
        before = page.cursor
        if before is None:
            return


async def _still_there(
    context: Context, thread: ThreadRecord, id_: str, reference: str
) -> Checkpoint:
    [found] = await context.backend.read([CheckpointKey(thread.family, id_)])
    if found is None:
        why = f"lost the checkpoint {id_!r} that is {reference}; see history()"
        raise _missing(thread, reference, why)
    return found


def _missing(thread: ThreadRecord, reference: str, why: str) -> NotFound:
    text = f"thread {thread.id!r} {why}"
    return NotFound(text, thread=thread.id, reference=reference)
