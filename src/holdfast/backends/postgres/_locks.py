"""The order in which a transaction of several changes takes its locks.

First the rows of all threads it is about, by family and number, in one statement; then
names, in the order of the alphabet. Two transactions that keep to it never wait for
each other in a circle.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from holdfast._port import Write
from holdfast.backends.postgres._statements import Statements


async def hold_threads(
    db: Statements, writes: Sequence[Write], thinned: Iterable[int] = ()
) -> None:
    """Lock all threads of a transaction that writes, and thins some families."""
    whole = {family for write in writes for family in families_read(write)}
    for write in writes:
        if write.family_wide and (place := await db.row("place", name=write.thread)):
            whole.add(place[0])
    await db.rows(
        "hold",
        names=list({write.thread for write in writes}),
        whole=list(whole),
        thinned=list(set(thinned)),
    )


def families_read(write: Write) -> Iterator[int]:
    """The families with a checkpoint that must not be removed before a write ends."""
    if write.turn is not None:
        yield write.turn.target.family
    if write.start is not None and write.start.head is not None:
        yield write.start.head.family
    for mark in write.marks:
        yield mark.checkpoint.family


def in_order_of_names(writes: Sequence[Write]) -> list[int]:
    """The places of writes as they are made: neighbours that begin threads, by name.

    The others stay where they are, since one may be about a thread begun before it.
    """

    def begins(place: int) -> bool:
        return writes[place].start is not None

    found: list[int] = []
    for is_beginning, places in groupby(range(len(writes)), begins):
        found += sorted(places, key=lambda p: writes[p].thread if is_beginning else "")
    return found
