"""Loading the state of a checkpoint."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar, cast

import msgspec

from holdfast._engine.cache import Known
from holdfast._engine.context import Context, missing_thread
from holdfast._engine.threads.lineage import Reference, resolve_in, unknown
from holdfast._port import CheckpointKey, StateKey
from holdfast._values import codec
from holdfast._values.manifest import WHOLE, Value, decode_manifest
from holdfast._values.records import Checkpoint, Segment, ThreadRecord
from holdfast._values.reference import HEAD
from holdfast._values.rope import Rope, joined, read_body
from holdfast.diff import Diff, diff
from holdfast.errors import Corrupt, FormatMismatch

T = TypeVar("T")


async def load(context: Context, thread: str, reference: Reference) -> object:
    """The state of a thread at a reference."""
    return (await loaded(context, thread, reference)).state


class Loaded(msgspec.Struct, frozen=True):
    """A checkpoint with its state, and the thread it was asked of."""

    thread: ThreadRecord
    checkpoint: Checkpoint
    state: object

    @property
    def values(self) -> dict[str, Any]:
        """The state as that of a typed record, which has named values."""
        state = self.state
        if type(state) is not dict:
            raise FormatMismatch(
                f"thread {self.thread.id!r} does not hold a record of this type;"
                " load the thread instead"
            )
        return cast("dict[str, Any]", cast("object", state))


async def loaded(context: Context, thread: str, reference: Reference) -> Loaded:
    """What a reference means."""
    if reference == HEAD:
        return await _loaded_head(context, thread)
    record = await context.get_thread(thread)
    checkpoint = await resolve_in(context, record, reference)
    while True:
        known = context.known(thread, checkpoint)
        try:
            return Loaded(record, checkpoint, await state_of(context, known))
        except Corrupt:
            # The checkpoint may have been removed after it was resolved.
            record = await context.get_thread(thread)
            found = await resolve_in(context, record, reference)
            if found.seq == checkpoint.seq:
                raise
            checkpoint = found


async def _loaded_head(context: Context, thread: str) -> Loaded:
    """The state of a thread in one request, or none of it if it is known."""
    known = context.cache.take(thread)
    key = StateKey(thread, known.head.seq if known else None)
    [stored] = await context.backend.read([key])
    if stored is None:
        raise missing_thread(thread)
    head = stored.thread.head
    assert head is not None
    if known is None or stored.segments is not None:
        known = Known(head, decode_manifest(head))
        await _fill(context, known, stored.segments or ())
    known.head = head  # its label and tags may be newer
    try:
        state = await state_of(context, known)
    except Corrupt:
        # Perhaps what the cache did not hold was only removed since: then all at once.
        if stored.segments is not None:
            raise
        return await _loaded_head(context, thread)
    context.cache.give(thread, known)
    return Loaded(stored.thread, head, state)


async def _fill(context: Context, known: Known, segments: Sequence[Segment]) -> None:
    """Put the segments of a checkpoint together to its values."""
    parts = await context.packer.unpack(segments)
    start = 0
    for name, value in known.manifest.values.items():
        if isinstance(value, Rope):
            end = start + sum(run.last - run.first + 1 for run in value.runs)
            known.bodies[name] = read_body(value, parts[start:end])
            start = end


async def read_listed(
    context: Context,
    record: ThreadRecord,
    read: Callable[[Context, ThreadRecord], Awaitable[T]],
) -> T | None:
    """What is read of a thread as a listing gave it, or as it is now.

    ``None`` if it is gone since.
    """
    while True:
        try:
            return await read(context, record)
        except Corrupt:
            # Perhaps it was only removed since it was listed.
            found = await context.find_thread(record.id)
            if found is None or found.head is None:
                return None
            if record.head is not None and found.head.seq == record.head.seq:
                raise
            record = found


async def load_any(context: Context, checkpoint: Checkpoint) -> object:
    """The state of a checkpoint of whichever thread, if it is still there."""
    key = CheckpointKey(checkpoint.family, checkpoint.id)
    [stored] = await context.backend.read([key])
    if stored is None or stored.seq != checkpoint.seq:
        raise unknown(None, checkpoint.id)
    return await state_of(context, Known(stored, decode_manifest(stored)))


async def difference(context: Context, thread: str, a: Reference, b: Reference) -> Diff:
    """What changed from one checkpoint to another."""
    return diff(await _either(context, thread, a), await _either(context, thread, b))


async def _either(context: Context, thread: str, reference: Reference) -> object:
    if isinstance(reference, Checkpoint):
        return await load_any(context, reference)
    return await load(context, thread, reference)


async def state_of(context: Context, known: Known) -> object:
    """The state of a known checkpoint; keeps the bytes it had to read."""
    values = {
        name: codec.decode(await _text(context, known, name, value))
        for name, value in known.manifest.values.items()
    }
    return values if known.manifest.is_mapping else values[WHOLE]


async def read_texts(context: Context, known: Known) -> dict[str, bytes]:
    """The JSON texts of a checkpoint's values, by name."""
    return {
        name: bytes(await _text(context, known, name, value))
        for name, value in known.manifest.values.items()
    }


async def _text(
    context: Context, known: Known, name: str, value: Value
) -> bytes | bytearray:
    if isinstance(value, Rope):
        return joined(await context.body(known, name, value), as_list=value.is_list)
    return value


def converted(state: object, type_: type[T] | None) -> object | T:
    """The state as it is, or as a ``type_``."""
    return state if type_ is None else codec.convert(state, type_)
