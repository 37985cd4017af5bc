"""Finding out whether a transaction was committed whose answer was lost.

Before a transaction is repeated, the backend looks for a row that only this transaction
can have written, so that no transaction is made twice. The server may also commit it
during the repetition, which then meets a conflict: the backend looks for the row again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

import msgspec

from holdfast._port import Receipt, Write
from holdfast.backends.postgres._errors import Lost, Unreached
from holdfast.backends.postgres._rows import CODEC
from holdfast.backends.postgres._statements import Statements
from holdfast.backends.postgres._write import AT_ONCE, Durable, is_logged
from holdfast.errors import Conflict, NotFound

T = TypeVar("T")


class Once(msgspec.Struct, Generic[T]):
    """Work that is done once, however often the connection breaks.

    ``find`` gives the result of an attempt that was carried out, ``None`` if none was.
    It is asked first if an earlier attempt ``is_doubtful``.
    """

    do: Callable[[Statements], Awaitable[T]]
    find: Callable[[Statements], Awaitable[T | None]]
    is_doubtful: bool = False

    async def __call__(self, db: Statements) -> T:
        if self.is_doubtful and (found := await self.find(db)) is not None:
            return found
        try:
            return await self.do(db)
        except Lost as lost:
            self.is_doubtful |= not isinstance(lost, Unreached)
            raise
        except (Conflict, NotFound):
            if self.is_doubtful and (found := await self.find(db)) is not None:
                return found
            raise


class Trace(NamedTuple):
    """A row that a transaction leaves: it is there if the transaction is committed."""

    family: int
    seq: int
    at: int


async def was_committed(db: Statements, trace: Trace | None, durable: Durable) -> bool:
    """True if the transaction with a trace was committed; waits until it is durable."""
    if trace is None or await db.row("happened", **trace._asdict()) != (True,):
        return False
    await confirm(db, trace.family, durable)
    return True


async def confirm(db: Statements, family: int, durable: Durable) -> None:
    """Wait until the visible rows of a family are durable.

    A commit whose session was killed while it waited for a standby is visible, but no
    standby may have it yet.
    """
    if durable == AT_ONCE:
        await db.rows("settle", family=family, durable=durable)


def trace_of(writes: Sequence[Write], receipts: Sequence[Receipt]) -> Trace | None:
    """A row that writes leave; ``None`` if they can be repeated without harm."""
    for write, receipt in zip(writes, receipts, strict=True):
        if write.checkpoint is not None:
            return Trace(receipt.family, receipt.seq, write.checkpoint.saved_at)
        if is_logged(write):
            return Trace(receipt.family, receipt.seq, write.at)
    return None


async def find_save(db: Statements, write: Write, durable: Durable) -> Receipt | None:
    """The receipt of a save, by the id of its checkpoint."""
    draft = write.checkpoint
    thread = await db.row("thread_by_name", name=write.thread)
    if draft is None or thread is None:
        return None
    family = CODEC.thread(thread).family
    row = await db.row("checkpoint_by_id", id=draft.id, family=family)
    saved = CODEC.checkpoint(row) if row else None
    if saved is None or saved.sha256 != draft.sha256 or saved.thread != write.thread:
        return None
    await confirm(db, family, durable)
    return Receipt(saved.seq, saved.family, saved.thread_number, write.entries)
