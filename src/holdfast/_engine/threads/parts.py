"""Parts of a state: some of its values, and some elements of a list.

Only the segments that hold what is asked for are read.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar, cast

from holdfast._engine.cache import OpenedCheckpoint
from holdfast._engine.context import Context
from holdfast._engine.threads.drafts import path, read_bodies, read_values
from holdfast._engine.threads.lineage import Reference, resolve
from holdfast._values import codec
from holdfast._values.list_tail import Tail, elements_of, parts_backwards
from holdfast._values.manifest import Value
from holdfast._values.records import Page, Run, check_cursor, checked_limit
from holdfast._values.reference import HEAD
from holdfast._values.rope import Rope, numbers
from holdfast._values.runs import count_segments, last_runs
from holdfast.errors import Conflict, Corrupt, FormatMismatch, Unstorable

T = TypeVar("T")

# How many segments are read first, at most, when a part of a list is needed.
SOME_SEGMENTS = 16
EMPTY = b"[]"


async def values(
    context: Context, thread: str, names: Sequence[str], reference: Reference
) -> dict[str, Any]:
    """Some values of a state by name, without those that it does not have."""

    async def read(known: OpenedCheckpoint) -> dict[str, Any]:
        missing = [name for name in names if name not in known.bodies]
        if len(missing) > 1:
            await read_bodies(context, [known], missing)
        return await read_values(context, known, names)

    return await _read(context, thread, reference, read)


async def tail(
    context: Context, thread: str, name: str, count: int, reference: Reference
) -> list[Any]:
    """The last elements of a list in their order."""
    if type(count) is not int or count < 0:
        raise Unstorable("count", f"must be a number of elements, not {count!r}")

    async def read(known: OpenedCheckpoint) -> list[Any]:
        _check_list(thread, name, known)
        return await newest_of(context, known, name, count) if count else []

    return await _read(context, thread, reference, read)


async def elements(
    context: Context,
    thread: str,
    name: str,
    reference: Reference,
    after: int | None,
    limit: int | None,
) -> Page[Any]:
    """The elements of a list after a position, in their order."""
    checked_limit(limit)
    position = _Position.of(after)

    async def read(known: OpenedCheckpoint) -> Page[Any]:
        _check_list(thread, name, known)
        forward = _ForwardRead(context, thread, name, known)
        return await forward.page(position, limit)

    return await _read(context, thread, reference, read)


async def _read(
    context: Context,
    thread: str,
    reference: Reference,
    read: Callable[[OpenedCheckpoint], Awaitable[T]],
) -> T:
    """Read something of a checkpoint; again, if it was removed after it was found."""
    checkpoint = await resolve(context, thread, reference)
    while True:
        known = context.known(thread, checkpoint)
        try:
            found = await read(known)
        except Corrupt:
            again = await resolve(context, thread, reference)
            if again.seq == checkpoint.seq:
                raise
            checkpoint = again
        else:
            if reference == HEAD:
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

    Segments are immutable, so their numbers tell whether the list before a position is
    still the one that was read. The number 0 stands for the beginning of the list.
    """

    number: int
    taken: int

    @classmethod
    def of(cls, cursor: int | None) -> _Position:
        """The position that a cursor stands for."""
        check_cursor(cursor)
        if cursor is not None and cursor < 0:
            raise Unstorable("after", "must be the cursor of a page")
        return cls(*divmod(cursor or 0, 1 << 30))

    @property
    def cursor(self) -> int:
        """A number that stands for it."""
        return self.number << 30 | self.taken


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
                raise self._rewritten()
            return self._cut([(0, _list(self.value))], position, limit)
        start = self._place_of(self.value, position.number)
        left = count_segments(self.value.runs) - start
        size = left if limit is None else min(limit + 1, SOME_SEGMENTS)
        while True:
            size = min(size, left)
            groups = await self._groups(self.value, start, size)
            found = sum(len(elements) for _, elements in groups) - position.taken
            if size == left or (limit is not None and found >= limit):
                return self._cut(groups, position, limit)
            size *= 4

    def _place_of(self, rope: Rope, number: int) -> int:
        """How many segments of a list come before one."""
        if not number:
            return 0
        before = 0
        for run in rope.runs:
            if run.first <= number <= run.last:
                return before + number - run.first
            before += run.last - run.first + 1
        raise self._rewritten()

    async def _groups(
        self, rope: Rope, start: int, size: int
    ) -> list[tuple[int, list[object]]]:
        """The elements of some segments, each with the segment where it begins."""
        behind = count_segments(rope.runs) - start - size
        runs = last_runs(rope.runs, behind, size) if size else []
        parts = await self._parts(runs, start)
        groups = list(_grouped(zip(numbers(runs), parts, strict=True)))
        if behind == 0 and groups and groups[-1][1] is None:
            raise self._rewritten() if start else Corrupt("a stored list")
        return [(first, found) for first, found in groups if found is not None]

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
        self,
        groups: Sequence[tuple[int, list[object]]],
        position: _Position,
        limit: int | None,
    ) -> Page[object]:
        """The elements behind a position, and the position behind them."""
        found: list[object] = []
        skip = position.taken
        for number, elements in groups:
            if skip >= len(elements):
                skip -= len(elements)
                # Kept for what is appended to this group or behind it.
                if not skip:
                    position = _Position(number, len(elements))
                continue
            wanted = len(elements) if limit is None else skip + limit - len(found)
            found += elements[skip:wanted]
            position = _Position(number, min(wanted, len(elements)))
            skip = 0
            if len(found) == limit:
                break
        if skip:
            raise self._rewritten()
        return Page(tuple(found), position.cursor)

    def _rewritten(self) -> Conflict:
        return Conflict(
            f"{path(self.name)} of thread {self.thread!r} was changed before this"
            " position; read it from the beginning",
            code="list_changed",
            thread=self.thread,
        )


def _grouped(
    parts: Iterable[tuple[int, bytes]],
) -> Iterator[tuple[int, list[object] | None]]:
    """The elements of segments; of several together if one continues another.

    ``None`` at the end if the last ones do not end with an element.
    """
    first, text = 0, b""
    for number, part in parts:
        first = first or number
        text = b"%b,%b" % (text, part) if text else part
        found = elements_of(text)
        if found is not None:
            yield first, found
            first, text = 0, b""
    if first:
        yield first, None
