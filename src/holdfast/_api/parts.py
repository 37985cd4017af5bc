"""The parts of a state in a handle on a thread: change them and read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from holdfast._api.files import scanned
from holdfast._api.runner import AsyncRunner, Runner
from holdfast._engine.threads import amend, parts, save
from holdfast._engine.threads.lineage import Reference
from holdfast._port import Start
from holdfast._values.keywords import refuse_unknown
from holdfast._values.records import Checkpoint, Page
from holdfast._values.reference import HEAD

if TYPE_CHECKING:  # modules that `holdfast log` need not load
    from holdfast._engine.threads.save import SaveOptions


def _amending(start: Start, options: SaveOptions) -> save.Options:
    others = ("lists", "values", "remove")
    refuse_unknown("an amendment", options, save.SaveOptions, *others)
    return save.options(start=start, **options)


class ThreadParts:
    """Parts of a thread's state; the rest of it is neither read nor compared."""

    _runner: Runner
    _start: Start
    id: str

    def amend(
        self,
        *,
        lists: Mapping[str, Sequence[object]] | None = None,
        values: Mapping[str, object] | None = None,
        remove: Sequence[str] = (),
        **options: Unpack[SaveOptions],
    ) -> Checkpoint:
        """Save the head's state with elements appended and values set or removed.

        All in one save, with the options of `save` except ``if_changed``. Nothing is
        read but large values that are replaced.
        """
        how = _amending(self._start, options)
        draft = amend.amended(lists, values, remove)
        return self._runner.save(save.save, self.id, draft, how)

    def values(self, *names: str, ref: Reference = HEAD) -> dict[str, Any]:
        """Some values of a state by name, without those that it does not have."""
        return self._runner.run(parts.values, self.id, names, ref)

    def tail(self, name: str, count: int, *, ref: Reference = HEAD) -> list[Any]:
        """The last ``count`` elements of a list in their order, or all there are.

        Costs what they cost, however long the list is. A list that is not in the state
        has no elements.
        """
        return self._runner.run(parts.tail, self.id, name, count, ref)

    def elements(
        self,
        name: str,
        *,
        after: int | None = None,
        limit: int | None = 100,
        ref: Reference = HEAD,
    ) -> Page[Any]:
        """The elements of a list after a position, oldest first.

        Costs what they cost. The cursor of the page is the position behind it, also at
        the end of the list, and stays valid while elements are appended. If the list no
        longer has what was read last, as after a rewind, `Conflict` is raised with the
        code ``list_changed``.
        """
        return self._runner.run(parts.elements, self.id, name, ref, after, limit)


class AsyncThreadParts:
    """Like `ThreadParts`, awaited."""

    _runner: AsyncRunner
    _start: Start
    id: str

    async def amend(
        self,
        *,
        lists: Mapping[str, Sequence[object]] | None = None,
        values: Mapping[str, object] | None = None,
        remove: Sequence[str] = (),
        **options: Unpack[SaveOptions],
    ) -> Checkpoint:
        how = _amending(self._start, await scanned(self._runner, options))
        draft = amend.amended(lists, values, remove)
        return await self._runner.save(save.save, self.id, draft, how)

    async def values(self, *names: str, ref: Reference = HEAD) -> dict[str, Any]:
        return await self._runner.run(parts.values, self.id, names, ref)

    async def tail(self, name: str, count: int, *, ref: Reference = HEAD) -> list[Any]:
        return await self._runner.run(parts.tail, self.id, name, count, ref)

    async def elements(
        self,
        name: str,
        *,
        after: int | None = None,
        limit: int | None = 100,
        ref: Reference = HEAD,
    ) -> Page[Any]:
        return await self._runner.run(parts.elements, self.id, name, ref, after, limit)
