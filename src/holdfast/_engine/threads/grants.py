"""Grants: permissions that are used up once in a whole family.

A grant stays used, whatever is rewound, forked or restored afterwards. It lives as long
as its family: when a thread is deleted, another one takes its grants over, and with
them the entries of its merges.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from holdfast._engine.context import Context
from holdfast._engine.threads.journal import OF_THREAD
from holdfast._engine.threads.journal_keys import GRANT, MERGED
from holdfast._messages.loose import fields_of
from holdfast._port import FamilyEntries, Start, Threads, Write
from holdfast._values import codec
from holdfast._values.records import UNSET, Entry, ThreadRecord, checked_name
from holdfast._values.scope_name import refuse_scoped

LONGEST = 400


async def consume(context: Context, thread: str, start: Start, grant: str) -> bool:
    """Use a grant up; true for the one caller that does."""
    refuse_scoped(thread)
    key = GRANT + checked_name(grant, "grant", LONGEST)
    now, token = context.clock(), context.new_id()
    data = codec.encode({"token": token}, "grant")
    write = Write(
        thread=thread,
        at=now,
        expect=UNSET,
        start=start,
        entries=(Entry(thread, OF_THREAD, key, data, now),),
        family_wide=True,
    )
    [receipt] = await context.backend.commit([write])
    [in_force] = receipt.entries
    return fields_of(in_force.value).get("token") == token


async def handed_over(
    context: Context,
    family: int,
    dropped: Iterable[ThreadRecord],
    begun: Iterable[Write] = (),
) -> list[Write]:
    """The writes that keep grants when threads of a family are dropped.

    ``begun`` are writes of the same transaction that may begin a thread.
    """
    names = {thread.id for thread in dropped}
    lost = [
        entry
        for prefix in (GRANT, MERGED)
        for entry in await context.backend.scan(
            FamilyEntries(family=family, prefix=prefix)
        )
        if entry.thread in names
    ]
    if not lost:
        return []
    page = await context.backend.scan(Threads(family=family, every=True))
    heirs = [w.thread for w in begun if _joins(w, family)]
    heirs += [t.id for t in page if t.deleted_at is None and t.id not in names]
    if not heirs:
        return []
    entries = tuple(replace(entry, thread=heirs[0]) for entry in lost)
    at = lost[0].recorded_at
    return [Write(thread=heirs[0], at=at, expect=UNSET, entries=entries)]


def _joins(write: Write, family: int) -> bool:
    head = write.start.head if write.start else None
    return head is not None and head.family == family
