"""The journal: values recorded once under a key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar, cast

import msgspec

from holdfast._engine.context import Context
from holdfast._engine.threads.journal_keys import callers_key
from holdfast._port import Entries, Start, ThreadKey, Write
from holdfast._values import codec
from holdfast._values.arguments import checked_flag, checked_mapping
from holdfast._values.limits import LARGEST_JOURNAL_VALUE, checked_size
from holdfast._values.records import (
    UNSET,
    Checkpoint,
    Entry,
    check_filter,
    checked_limit,
    checked_name,
)
from holdfast._values.reference import checked_id
from holdfast._values.scope_name import refuse_scoped
from holdfast.errors import Corrupt

T = TypeVar("T")

OF_THREAD = ""


class JournalPlace(msgspec.Struct, frozen=True):
    """The thread or checkpoint of entries, and whether they replace earlier ones."""

    thread: str
    start: Start
    checkpoint: Checkpoint | str | None
    replace: bool

    def entries(
        self, context: Context, values: Mapping[str, object]
    ) -> tuple[Entry, ...]:
        """The values of a caller as entries.

        They are encoded now, so that later changes do not matter.
        """
        checked_flag(self.replace, "replace")
        given = checked_mapping(values, "values")
        return self._entries(context, encoded_entries(given))

    def own_entries(
        self, context: Context, values: Mapping[str, object]
    ) -> tuple[Entry, ...]:
        """Like `entries`, for what the engine records under its reserved keys."""
        named = [(checked_name(key, "journal key"), values[key]) for key in values]
        encoded = [(key, encoded_entry(value, key)) for key, value in named]
        return self._entries(context, encoded)

    def _entries(
        self, context: Context, encoded: Iterable[tuple[str, bytes]]
    ) -> tuple[Entry, ...]:
        now, place = context.clock(), checkpoint_id(self.checkpoint)
        return tuple(Entry(self.thread, place, key, data, now) for key, data in encoded)


def encoded_entries(values: object) -> tuple[tuple[str, bytes], ...]:
    """The keys and encoded values of entries that a caller records."""
    if values is None:
        return ()
    given = checked_mapping(values, "journal")
    return tuple(
        (callers_key(key), encoded_entry(value, key)) for key, value in given.items()
    )


def encoded_entry(value: object, key: str) -> bytes:
    """The bytes of a value for the journal."""
    path = f"journal[{key!r}]"
    most = LARGEST_JOURNAL_VALUE
    return checked_size(codec.encode(value, path, most), path, most)


async def record(
    context: Context, where: JournalPlace, entries: tuple[Entry, ...]
) -> dict[str, object]:
    """Record the entries whose keys are new; returns the values in force by key."""
    in_force = await record_entries(context, where, entries)
    return {entry.key: entry.value for entry in in_force}


async def record_entries(
    context: Context, where: JournalPlace, entries: tuple[Entry, ...]
) -> Sequence[Entry]:
    """Like `record`; gives the entries in force."""
    refuse_scoped(where.thread)
    if not entries:
        return ()
    write = Write(
        thread=where.thread,
        at=entries[0].recorded_at,
        expect=UNSET,
        start=where.start,
        entries=entries,
        replace_entries=where.replace,
    )
    [receipt] = await context.backend.commit([write])
    return receipt.entries


async def recorded(
    context: Context, thread: str, checkpoint: Checkpoint | str | None
) -> dict[str, object]:
    """All values recorded on a thread or a checkpoint, oldest first."""
    query = Entries(thread=thread, checkpoint=checkpoint_id(checkpoint))
    return {entry.key: entry.value for entry in await context.backend.scan(query)}


async def recorded_one(
    context: Context,
    thread: str,
    key: str,
    default: object,
    checkpoint: Checkpoint | str | None,
) -> object:
    """The value recorded under a key, or the default."""
    checked_name(key, "journal key")
    query = Entries(thread=thread, checkpoint=checkpoint_id(checkpoint), key=key)
    found = (await context.backend.scan(query)).items
    return found[0].value if found else default


async def recorded_all(
    context: Context, thread: str, prefix: str, after: str | None, limit: int | None
) -> dict[str, object]:
    """The values recorded on a thread under keys with a prefix, sorted by key."""
    check_filter(prefix, "prefix")
    check_filter(after, "after")
    checked_limit(limit)
    query = Entries(thread=thread, checkpoint=OF_THREAD, prefix=prefix or None)
    page = await context.backend.scan(query)
    # Encrypted keys come in another order, so they are sorted here.
    wanted = sorted(
        (entry for entry in page if after is None or entry.key > after),
        key=lambda entry: entry.key,
    )
    return {entry.key: entry.value for entry in wanted[:limit]}


async def forget(context: Context, thread: str, keys: tuple[str, ...]) -> None:
    """Remove entries of the thread itself; keys that are not there are passed over."""
    names = tuple(callers_key(key) for key in keys)
    if names and await context.backend.read([ThreadKey(thread)]) != [None]:
        write = Write(thread=thread, at=context.clock(), expect=UNSET, forget=names)
        await context.backend.commit([write])


def entry_as(entry: Entry, form: type[T]) -> T:
    """The value of an entry that the engine has recorded; `Corrupt` if it has another.

    Earlier versions let callers record under any key, and an archive may have anything.
    """
    try:
        return msgspec.convert(entry.value, form)
    except msgspec.ValidationError as error:
        what = f"the journal entry {entry.key!r} of thread {entry.thread!r}"
        raise Corrupt(what, str(error)) from error


def entry_fields(entry: Entry, form: type[msgspec.Struct]) -> dict[str, Any]:
    """The fields of an entry that the engine has recorded, once `entry_as` accepts."""
    entry_as(entry, form)
    return cast("dict[str, Any]", entry.value)


async def find_entry(context: Context, thread: str, key: str) -> Entry | None:
    """An entry of a thread itself, ``None`` if there is none."""
    query = Entries(thread=thread, checkpoint=OF_THREAD, key=key)
    found = (await context.backend.scan(query)).items
    return found[0] if found else None


def checkpoint_id(checkpoint: Checkpoint | str | None) -> str:
    """The id that entries are stored under; the checkpoint need not exist yet."""
    if checkpoint is None:
        return OF_THREAD
    if isinstance(checkpoint, Checkpoint):
        return checkpoint.id
    return checked_id(checkpoint)
