"""Loading the state of a checkpoint."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar, cast

import msgspec

from holdfast._engine.cache import OpenedCheckpoint
from holdfast._engine.context import Context, missing_thread
from holdfast._engine.threads.lineage import Reference, resolve_in, unknown
from holdfast._port import CheckpointKey, StateKey
from holdfast._values import codec
from holdfast._values.manifest import WHOLE, Value
from holdfast._values.records import Checkpoint, Segment, ThreadRecord
from holdfast._values.reference import HEAD
from holdfast._values.rope import Rope, read_body
from holdfast._values.runs import count_segments
from holdfast._values.typed import convert
from holdfast.diff import Diff, diff
from holdfast.errors import Corrupt, FormatMismatch

T = TypeVar("T")


async def load(context: Context, thread: str, reference: Reference) -> object:
    """The state of a thread at a reference."""
    return (await loaded(context, thread, reference)).state


class LoadedState(msgspec.Struct, frozen=True):
    """A checkpoint with its state, and the thread it was looked up in."""

    thread: ThreadRecord
    checkpoint: Checkpoint
    state: object

    @property
    def values(self) -> dict[str, Any]:
        """The state of a typed record, which is always a mapping."""
        state = self.state
        if type(state) is not dict:
            raise FormatMismatch(
                f"thread {self.thread.id!r} does not hold a record of this type;"
                " load the thread instead"
            )
        return cast("dict[str, Any]", cast("object", state))


async def loaded(context: Context, thread: str, reference: Reference) -> LoadedState:
    """The checkpoint and state that a reference means."""
    if reference == HEAD:
        return await _loaded_head(context, thread)
    record = await context.get_thread(thread)
    checkpoint = await resolve_in(context, record, reference)
    while True:
        known = context.known(thread, checkpoint)
        try:
            return LoadedState(record, checkpoint, await state_of(context, known))
        except Corrupt:
            # The checkpoint may have been removed after it was resolved.
            record = await context.get_thread(thread)
            found = await resolve_in(context, record, reference)
            if found.seq == checkpoint.seq:
                raise
            checkpoint = found


async def _loaded_head(context: Context, thread: str) -> LoadedState:
    """The head and its state in one request; segments only if the cache lacks them."""
    known = context.cache.take(thread)
    key = StateKey(thread, known.head.seq if known else None)
    [stored] = await context.backend.read([key])
    if stored is None:
        raise missing_thread(thread)
    head = stored.thread.head
    assert head is not None
    if known is None or stored.segments is not None:
        known = OpenedCheckpoint.of(head)
        _fill(known, stored.segments or ())
    known.head = head  # the label and tags may have changed
    try:
        state = await state_of(context, known)
    except Corrupt:
        # Segments that the cache lacks may have been removed after the read: repeat
        # it without the cache, so that all of them come in one request.
        if stored.segments is not None:
            raise
        return await _loaded_head(context, thread)
    context.cache.give(thread, known)
    return LoadedState(stored.thread, head, state)


def _fill(known: OpenedCheckpoint, segments: Sequence[Segment]) -> None:
    """Distribute the segments of a checkpoint to its values."""
    parts = [segment.data for segment in segments]
    start = 0
    for name, value in known.manifest.values.items():
        if isinstance(value, Rope):
            end = start + count_segments(value.runs)
            known.bodies[name] = read_body(value, parts[start:end])
            start = end


async def read_listed(
    context: Context,
    record: ThreadRecord,
    read: Callable[[Context, ThreadRecord], Awaitable[T]],
) -> T | None:
    """Read something of a thread as a listing gave it, or as it is now.

    ``None`` if the thread was deleted since.
    """
    while True:
        try:
            return await read(context, record)
        except Corrupt:
            # What was listed may have been removed since.
            found = await context.find_thread(record.id)
            if found is None or found.head is None:
                return None
            if record.head is not None and found.head.seq == record.head.seq:
                raise
            record = found


async def load_any(context: Context, checkpoint: Checkpoint) -> object:
    """The state of a checkpoint of any thread; `NotFound` if it was removed."""
    stored = await current(context, checkpoint)
    return await state_of(context, OpenedCheckpoint.of(stored))


async def current(context: Context, checkpoint: Checkpoint) -> Checkpoint:
    """A checkpoint as it is stored now; `NotFound` if it was removed."""
    key = CheckpointKey(checkpoint.family, checkpoint.id)
    [stored] = await context.backend.read([key])
    if stored is None or stored.seq != checkpoint.seq:
        raise unknown(None, checkpoint.id)
    return stored


async def difference(context: Context, thread: str, a: Reference, b: Reference) -> Diff:
    """The difference between the states of two checkpoints."""
    return diff(await _either(context, thread, a), await _either(context, thread, b))


async def _either(context: Context, thread: str, reference: Reference) -> object:
    if isinstance(reference, Checkpoint):
        return await load_any(context, reference)
    return await load(context, thread, reference)


async def state_of(context: Context, known: OpenedCheckpoint) -> object:
    """The state of a checkpoint; the bytes that were read stay in ``known``."""
    values = {
        name: codec.decode(await _text(context, known, name, value))
        for name, value in known.manifest.values.items()
    }
    return values if known.manifest.is_mapping else values[WHOLE]


async def read_texts(context: Context, known: OpenedCheckpoint) -> dict[str, bytes]:
    """The JSON texts of a checkpoint's values, by name."""
    return {
        name: bytes(await _text(context, known, name, value))
        for name, value in known.manifest.values.items()
    }


async def _text(
    context: Context, known: OpenedCheckpoint, name: str, value: Value
) -> bytes | bytearray:
    if isinstance(value, Rope):
        return (await context.body(known, name, value)).text
    return value


def converted(state: object, type_: type[T] | None) -> object | T:
    """The state as it is, or as a ``type_``."""
    return state if type_ is None else convert(state, type_)
