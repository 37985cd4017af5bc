"""Rows of threads that are not indexed for searching as they are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from holdfast._port import Indexed, Stale, Stretch
from holdfast.backends._sql.rows import CheckpointRow, Row, RowCodec
from holdfast.errors import Corrupt

# Stretches of the index, by the number of their thread.
Stretches: TypeAlias = Mapping[int, tuple[Stretch, ...]]
# The columns before those of the head: the change at which the thread was indexed, the
# form, its number and last change, and whether it is gone.
NUMBER, HEAD = 2, 5
_HEAD_SEQ = HEAD + CheckpointRow.__struct_fields__.index("seq")


def by_thread(rows: Iterable[Row]) -> Stretches:
    """The stretches of rows that begin with the number of a thread."""
    found: defaultdict[int, tuple[Stretch, ...]] = defaultdict(tuple)
    for thread, *stretch in rows:
        found[thread] += (Stretch(*stretch),)
    return found


def to_stale(codec: RowCodec, row: Row, stretches: Stretches) -> Stale:
    """A row of what the index has of a thread, and of its head."""
    was, form, number, changed, is_gone = row[:HEAD]
    found = Indexed(was, form, stretches.get(number, ()))
    if is_gone:
        return Stale(number, changed, found, is_gone=True)
    if row[_HEAD_SEQ] is None:
        return Stale(number, changed, found)
    try:
        return Stale(number, changed, found, codec.checkpoint(row[HEAD:]))
    except Corrupt:
        return Stale(number, changed, found)


def to_gone(rows: Sequence[Row], stretches: Stretches) -> tuple[Stale, ...]:
    """Rows of threads that only the index has: number, change and form."""
    return tuple(
        Stale(number, 0, Indexed(was, form, stretches.get(number, ())), is_gone=True)
        for number, was, form in rows
    )
