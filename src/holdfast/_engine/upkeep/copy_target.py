"""The store that a copy is made in: empty, half copied, or an earlier copy."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from holdfast._engine.context import Context
from holdfast._engine.upkeep.family_records import thread_portions
from holdfast._port import Adoption, FamilyThreads
from holdfast._values.records import ThreadRecord
from holdfast.errors import Conflict

# The setting of a store that was copied into: the number of its last change when the
# copy was finished, or that it is not.
COPY = "copy"
UNFINISHED = b"unfinished"


class CopyTarget:
    """What the target of a copy holds, and what may be done to it.

    Without ``update`` nothing in it is replaced. With it, families are replaced that
    have changed in the source; whoever has saved in the target itself must not lose
    that, so an update is refused then.
    """

    def __init__(self, context: Context, *, update: bool) -> None:
        self.context = context
        self._update = update
        self.families: set[int] = set()
        self._gone: set[int] = set()
        self._is_touched = False

    async def begin(self, ours: Collection[int]) -> None:
        """Find the families of the source that are there; refuse what is not ours."""
        last, example = await self._look(ours)
        if example is None:
            return
        said = await self.context.backend.setting(COPY)
        if said is None and self._update:
            raise _changed(example)
        if said not in (None, UNFINISHED) and int(said) < last:
            raise _changed(example)
        if self._gone and not self._update:
            raise _not_empty(example)

    async def touch(self) -> None:
        """Note before the first change that the copy is not complete from now on."""
        if not self._is_touched:
            await self.context.backend.setting(COPY, UNFINISHED, replace=True)
        self._is_touched = True

    async def _look(self, ours: Collection[int]) -> tuple[int, ThreadRecord | None]:
        """The number of the last change, and a thread: one that is not ours if any."""
        last, example = 0, None
        inspection = await self.context.backend.inspect()
        try:
            async for threads in thread_portions(inspection):
                for thread in threads:
                    last = max(last, thread.changed)
                    is_ours = thread.family in ours
                    (self.families if is_ours else self._gone).add(thread.family)
                    example = thread if example is None or not is_ours else example
        finally:
            await inspection.close()
        return last, example

    async def compare(self, families: Iterable[Adoption]) -> None:
        """Leave families out that differ from the source's, to be copied again."""
        mine = {
            _moment(thread): thread
            for family in families
            for thread in family.threads
            if family.family in self.families
        }
        numbers = tuple({thread.family for thread in mine.values()})
        found = await self.context.backend.scan(FamilyThreads(numbers))
        theirs = {_moment(thread): thread for thread in found}
        born = {thread.number: _birth(thread) for thread in mine.values()}
        for moment, thread in (mine | theirs).items():
            if moment in mine and moment in theirs:
                continue
            is_ours = born.get(thread.number, _birth(thread)) == _birth(thread)
            if not self._update or not is_ours:
                raise _not_empty(thread)
            self.families.discard(thread.family)

    async def finish(self) -> None:
        """Remove what is gone from the source; note that the copy is complete."""
        await self.touch()
        for family in self._gone:
            await self.context.backend.adopt(Adoption(family=family, anew=True))
        last, _ = await self._look(())
        await self.context.backend.setting(COPY, b"%d" % last, replace=True)


def _moment(thread: ThreadRecord) -> tuple[int, str, int, str | None]:
    """What differs whenever a thread has changed."""
    head = thread.head.id if thread.head else None
    return thread.number, thread.id, thread.changed, head


def _birth(thread: ThreadRecord) -> tuple[str, int]:
    """What never changes in a thread."""
    return thread.id, thread.created_at


def _not_empty(thread: ThreadRecord) -> Conflict:
    return Conflict(
        f"the other store holds {thread.id!r}, which is not of this one, or has changed"
        " since it was copied; copy into an empty store, or bring an earlier copy up to"
        " date with update=True",
        code="not_empty",
        thread=thread.id,
    )


def _changed(thread: ThreadRecord) -> Conflict:
    return Conflict(
        f"the other store holds {thread.id!r} and is no copy, or something was saved in"
        " it since it was copied; copy into an empty store",
        code="not_empty",
        thread=thread.id,
    )
