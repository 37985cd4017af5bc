"""Rows of threads that are not indexed for searching as they are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from holdfast._port import Indexed, Stale, Stretch
from holdfast.backends._sql.rows import Row, RowCodec, ThreadRow
from holdfast.errors import Corrupt

# Stretches of the index, by the number of their thread.
Stretches: TypeAlias = Mapping[int, tuple[Stretch, ...]]
# Before the columns of ``thread_full``: at which change the thread was indexed, and in
# which form.
INDEXED = 2
NUMBER, _CHANGED, _HEAD, _DELETED_AT = (
    INDEXED + ThreadRow.__struct_fields__.index(name)
    for name in ("number", "changed", "head", "deleted_at")
)


def by_thread(rows: Iterable[Row]) -> Stretches:
    """The stretches of rows that begin with the number of a thread."""
    found: defaultdict[int, tuple[Stretch, ...]] = defaultdict(tuple)
    for thread, *stretch in rows:
        found[thread] += (Stretch(*stretch),)
    return found


def to_stale(codec: RowCodec, row: Row, stretches: Stretches) -> Stale:
    """A row of what the index has of a thread, and of ``thread_full``."""
    number, changed = row[NUMBER], row[_CHANGED]
    was, form = row[:INDEXED]
    found = Indexed(was, form, stretches.get(number, ()))
    if row[_HEAD] is None or row[_DELETED_AT] is not None:
        return Stale(number, changed, found, is_gone=True)
    try:
        return Stale(number, changed, found, codec.thread(row[INDEXED:]))
    except Corrupt:
        return Stale(number, changed, found)


def to_gone(rows: Sequence[Row], stretches: Stretches) -> tuple[Stale, ...]:
    """Rows of threads that only the index has: number, change and form."""
    return tuple(
        Stale(number, 0, Indexed(was, form, stretches.get(number, ())), is_gone=True)
        for number, was, form in rows
    )
