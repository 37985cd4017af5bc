"""Parts of a state: some of its values, and some elements of a list.

Only the segments that hold what is asked for are read.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar, cast

from holdfast._engine.cache import OpenedCheckpoint
from holdfast._engine.context import Context
from holdfast._engine.threads.drafts import checked_key, path, read_bodies, read_values
from holdfast._engine.threads.lineage import Reference, resolve
from holdfast._values import codec
from holdfast._values.list_tail import Tail, elements_of, parts_backwards
from holdfast._values.manifest import Value
from holdfast._values.records import Page, Run, check_cursor, checked_limit, checksum
from holdfast._values.reference import HEAD
from holdfast._values.rope import Rope, numbers
from holdfast._values.runs import count_segments, last_runs
from holdfast.errors import Conflict, Corrupt, FormatMismatch, Unstorable

T = TypeVar("T")

# How many segments are read first, at most, when a part of a list is needed.
SOME_SEGMENTS = 16
EMPTY = b"[]"
# The parts of a cursor, beside the 32 bits of a segment's number. A segment is cut at
# about 8 kB, so it never has so many elements.
MOST_TAKEN = 1 << 20
MARKS = 1 << 10


async def values(
    context: Context, thread: str, names: Sequence[str], reference: Reference
) -> dict[str, Any]:
    """Some values of a state by name, without those that it does not have."""
    for name in names:
        checked_key(name)

    async def read(known: OpenedCheckpoint) -> dict[str, Any]:
        missing = [name for name in names if name not in known.bodies]
        if len(missing) > 1:
            await read_bodies(context, [known], missing)
        return await read_values(context, known, names)

    return await read_at(context, thread, reference, read)


async def tail(
    context: Context, thread: str, name: str, count: int, reference: Reference
) -> list[Any]:
    """The last elements of a list in their order."""
    checked_key(name)
    if type(count) is not int or count < 0:
        raise Unstorable("count", f"must be a number of elements, not {count!r}")

    async def read(known: OpenedCheckpoint) -> list[Any]:
        _check_list(thread, name, known)
        return await newest_of(context, known, name, count) if count else []

    return await read_at(context, thread, reference, read)


async def elements(
    context: Context,
    thread: str,
    name: str,
    reference: Reference,
    after: int | None,
    limit: int | None,
) -> Page[Any]:
    """The elements of a list after a position, in their order."""
    checked_key(name)
    checked_limit(limit)
    position = _Position.of(after)

    async def read(known: OpenedCheckpoint) -> Page[Any]:
        _check_list(thread, name, known)
        forward = _ForwardRead(context, thread, name, known)
        return await forward.page(position, limit)

    return await read_at(context, thread, reference, read)


async def read_at(
    context: Context,
    thread: str,
    reference: Reference,
    read: Callable[[OpenedCheckpoint], Awaitable[T]],
) -> T:
    """Read something of a checkpoint; again, if it was removed after it was found."""
    checkpoint = await resolve(context, thread, reference)
    while True:
        cached = context.cached(thread, checkpoint)
        known = cached or OpenedCheckpoint.of(checkpoint)
        try:
            found = await read(known)
        except Corrupt:
            again = await resolve(context, thread, reference)
            if again.seq == checkpoint.seq:
                raise
            checkpoint = again
        else:
            if cached is not None or reference == HEAD:
                context.cache.give(thread, known)
            return found


def _check_list(thread: str, name: str, known: OpenedCheckpoint) -> None:
    manifest = known.manifest
    value = manifest.values.get(name, EMPTY) if manifest.is_mapping else b""
    if not (value.is_list if isinstance(value, Rope) else value[:1] == b"["):
        raise FormatMismatch(
            f"{path(name)} of thread {thread!r} is not a list; read it with values()"
        )


# --- from the end ---------------------------------------------------------------------


async def newest_of(
    context: Context, known: OpenedCheckpoint, name: str, count: int
) -> list[object]:
    """The last few elements of a list of a checkpoint."""
    value = known.manifest.values.get(name, EMPTY)
    if not isinstance(value, Rope) or name in known.bodies:
        return (await tail_of(context, known, name)).newest(count)
    # Most segments of messages are turns, which have two messages or more.
    size = min(max(count, 0) // 2 + 1, SOME_SEGMENTS)
    while True:
        # Not put into the cache, which has whole values only.
        runs = last_runs(value.runs, 0, size)
        segments = await context.backend.segments(known.head.family, runs)
        parts = [segment.data for segment in segments]
        found = _decoded(parts, count, is_all=len(parts) < size)
        if found is not None:
            return found
        size *= 4


def _decoded(parts: list[bytes], count: int, *, is_all: bool) -> list[object] | None:
    """The last elements in some segments; ``None`` if more segments are needed."""
    count = max(count, 0)
    found = elements_of(b",".join(parts))
    if found is None and is_all:
        raise Corrupt("a stored list", "its end cannot be read as elements")
    # Otherwise the first segment may begin in the middle of an element.
    if found is None or (len(found) < count and not is_all):
        return None
    return found[max(len(found) - count, 0) :]


async def tail_of(context: Context, known: OpenedCheckpoint, name: str) -> Tail:
    """The elements of a list of a checkpoint, the last one first."""
    value = known.manifest.values.get(name, EMPTY)
    if isinstance(value, Rope):
        return Tail(parts_backwards(await context.body(known, name, value)))
    return Tail.of(_list(value))


def _list(text: bytes) -> list[object]:
    return cast("list[object]", codec.decode(text))


# --- from a position on ---------------------------------------------------------------


class _Position(NamedTuple):
    """Behind the first ``taken`` elements from the beginning of a segment on.

    Segments are immutable, so the number of one tells whether the list still has what
    was read last. After a removal a number can be given again; ``mark`` is a part of
    the checksum of the segment. The number 0 stands for the beginning of the list.
    """

    number: int
    mark: int
    taken: int

    @classmethod
    def of(cls, cursor: int | None) -> _Position:
        """The position that a cursor stands for."""
        check_cursor(cursor)
        if cursor is not None and cursor < 0:
            raise Unstorable("after", "must be the cursor of a page")
        rest, taken = divmod(cursor or 0, MOST_TAKEN)
        return cls(*divmod(rest, MARKS), taken)

    @property
    def cursor(self) -> int:
        """A number that stands for it."""
        assert self.taken < MOST_TAKEN
        return (self.number * MARKS + self.mark) * MOST_TAKEN + self.taken


class _Group(NamedTuple):
    """Elements, and the segment that they begin with."""

    number: int
    mark: int
    elements: list[object]

    def position(self, taken: int) -> _Position:
        return _Position(self.number, self.mark, taken)


class _ForwardRead:
    """Reads a list of a checkpoint from a position on."""

    def __init__(
        self, context: Context, thread: str, name: str, known: OpenedCheckpoint
    ) -> None:
        self.context, self.known = context, known
        self.thread, self.name = thread, name
        self.value: Value = known.manifest.values.get(name, EMPTY)

    async def page(self, position: _Position, limit: int | None) -> Page[object]:
        """The next elements, and where they end."""
        if not isinstance(self.value, Rope):
            if position.number:
                raise self._changed()
            return self._cut([_Group(0, 0, _list(self.value))], position, limit)
        start = self._place_of(self.value, position.number)
        left = count_segments(self.value.runs) - start
        size = left if limit is None else min(limit + 1, SOME_SEGMENTS)
        while True:
            size = min(size, left)
            groups = await self._groups(self.value, start, size)
            if position.number and groups and groups[0].mark != position.mark:
                raise self._changed()
            found = sum(len(group.elements) for group in groups) - position.taken
            if size == left or (limit is not None and found >= limit):
                return self._cut(groups, position, limit)
            size *= 4

    def _place_of(self, rope: Rope, number: int) -> int:
        """The number of segments of a list before this one."""
        if not number:
            return 0
        before = 0
        for run in rope.runs:
            if run.first <= number <= run.last:
                return before + number - run.first
            before += run.last - run.first + 1
        raise self._changed()

    async def _groups(self, rope: Rope, start: int, size: int) -> list[_Group]:
        """The elements of some segments."""
        behind = count_segments(rope.runs) - start - size
        runs = last_runs(rope.runs, behind, size) if size else []
        parts = await self._parts(runs, start)
        groups, is_whole = _grouped(zip(numbers(runs), parts, strict=True))
        if behind == 0 and not is_whole:
            raise self._changed() if start else Corrupt("a stored list")
        return groups

    async def _parts(self, runs: list[Run], start: int) -> list[bytes]:
        body = self.known.bodies.get(self.name)
        if body is None:
            family = self.known.head.family
            segments = await self.context.backend.segments(family, runs) if runs else []
            return [segment.data for segment in segments]
        at = 1 + sum(body.sizes[:start]) + start
        found: list[bytes] = []
        for length in body.sizes[start : start + count_segments(runs)]:
            found.append(bytes(body.text[at : at + length]))
            at += length + 1
        return found

    def _cut(
        self, groups: Sequence[_Group], position: _Position, limit: int | None
    ) -> Page[object]:
        """The elements behind a position, and the position behind them."""
        found: list[object] = []
        skip = position.taken
        for group in groups:
            end = len(group.elements)
            if limit is not None:
                end = min(end, skip + limit - len(found))
            found += group.elements[skip:end]
            if skip <= end:
                position = group.position(end)
            skip = max(0, skip - end)
            if len(found) == limit:
                break
        if skip:
            raise self._changed()
        return Page(tuple(found), position.cursor)

    def _changed(self) -> Conflict:
        return Conflict(
            f"{path(self.name)} of thread {self.thread!r} no longer has what was read"
            " before this position; read it from the beginning",
            code="list_changed",
            thread=self.thread,
        )


def _grouped(parts: Iterable[tuple[int, bytes]]) -> tuple[list[_Group], bool]:
    """The elements of segments; of several together if one continues another.

    Also whether the last segment ends with an element.
    """
    groups: list[_Group] = []
    first, mark, text = 0, 0, b""
    for number, part in parts:
        if first:
            text = b"%b,%b" % (text, part)
        else:
            first, mark, text = number, checksum(part) % MARKS, part
        found = elements_of(text)
        if found is not None:
            groups.append(_Group(first, mark, found))
            first = 0
    return groups, not first
