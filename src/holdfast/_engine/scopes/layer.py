"""The layer that makes a part of a store a store of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from functools import wraps
from typing import Any, TypeVar, cast

from msgspec.structs import replace

from holdfast._engine.scopes.families import ScopeFamilies, facts_of
from holdfast._engine.scopes.inspection import ScopedInspection, own_damage
from holdfast._engine.scopes.names import (
    ScopeNames,
    renamed,
    renamed_adoption,
    renamed_prune,
    renamed_write,
)
from holdfast._engine.scopes.queries import ScopedQueries
from holdfast._port import (
    Admission,
    Adoption,
    Backend,
    CheckpointKey,
    Facts,
    IndexBatch,
    Inspection,
    Key,
    Outcome,
    Pieces,
    Prune,
    Pruned,
    Query,
    Receipt,
    SegmentsKey,
    StateKey,
    ThreadKey,
    Write,
    run,
)
from holdfast._port.layer import Layer
from holdfast._values.records import (
    Change,
    Checkpoint,
    Page,
    Run,
    Segment,
    ThreadRecord,
)
from holdfast.errors import (
    Closed,
    Conflict,
    Corrupt,
    HoldfastError,
    NotFound,
    Unsupported,
)

R = TypeVar("R")
V = TypeVar("V", bound=Callable[..., Any])


def own_names(verb: V) -> V:
    """A verb of an open scope, whose errors have the names that its callers know."""

    @wraps(verb)
    async def shown(layer: ScopeLayer, *args: Any) -> Any:
        layer.check_open()
        try:
            return await verb(layer, *args)
        except HoldfastError as error:
            raise layer.own_error(error) from error.__cause__

    # It has the signature of the verb, which a type checker cannot follow.
    return cast("V", shown)


class ScopeState:
    """The state that a scope over a store shares with those over its transactions."""

    def __init__(self, names: ScopeNames) -> None:
        self.families = ScopeFamilies(names)
        self.is_closed = False


class ScopeLayer(Layer):
    """A backend that shows and changes the records of one scope.

    It puts the scope before every name on the way down and takes it away on the way up.
    What a caller may hold of others are ids and numbers: a family is looked up once
    before anything is read or changed by its number.

    A scope that ``is_borrowed`` leaves the backend open when it is closed. ``timer``
    gives seconds, for waiting.
    """

    def __init__(
        self,
        backend: Backend,
        names: ScopeNames,
        *,
        is_borrowed: bool,
        timer: Callable[[], float],
    ) -> None:
        super().__init__(backend)
        self.names = names
        self._timer = timer
        self._is_borrowed = is_borrowed
        self._state = ScopeState(names)

    @property
    def abilities(self) -> frozenset[str]:
        # One index serves all scopes: a search in it would find messages of others, and
        # its duration would tell about them. So a scope's search reads the messages.
        return self.backend.abilities - {"search", "backup", "compact"}

    # --- writing ----------------------------------------------------------------------

    async def commit(self, writes: Sequence[Write]) -> list[Receipt]:
        # Written out, without `own_names`: each save would pay for it.
        self.check_open()
        try:
            for write in writes:
                if write.start or write.turn or write.marks:
                    await self._check_named(write)
            put = self.names.put
            own = [renamed_write(write, put) for write in writes]
            return self._receipts(await self.backend.commit(own))
        except HoldfastError as error:
            raise self.own_error(error) from error.__cause__

    def commit_each(self, batches: Sequence[Sequence[Write]]) -> Sequence[Outcome]:
        self.check_open()
        outcomes: list[Outcome | None] = [None] * len(batches)
        below: list[Sequence[Write]] = []
        places: list[int] = []
        for place, batch in enumerate(batches):
            try:
                below.append(run(self._put(batch)))
                places.append(place)
            except HoldfastError as error:
                outcomes[place] = error
        for place, outcome in zip(places, super().commit_each(below), strict=True):
            outcomes[place] = (
                self.own_error(outcome)
                if isinstance(outcome, HoldfastError)
                else self._receipts(outcome)
            )
        return [outcome for outcome in outcomes if outcome is not None]

    async def _put(self, writes: Sequence[Write]) -> list[Write]:
        for write in writes:
            await self._check_named(write)
        return [renamed_write(write, self.names.put) for write in writes]

    async def _check_named(self, write: Write) -> None:
        for checkpoint in _named_by(write):
            if not await self._has(checkpoint.family):
                raise _removed(checkpoint)

    def _receipts(self, receipts: list[Receipt]) -> list[Receipt]:
        return [self._receipt(r) if r.entries else r for r in receipts]

    def _receipt(self, receipt: Receipt) -> Receipt:
        strip = self.names.strip
        entries = tuple([renamed(entry, strip) for entry in receipt.entries])
        return replace(receipt, entries=entries)

    @own_names
    async def prune(self, plan: Prune) -> Pruned:
        numbers = {thread.family for thread in plan.threads}
        numbers |= {family.family for family in plan.families}
        for write in (*plan.first, *plan.then):
            numbers.update(c.family for c in _named_by(write))
        if numbers - await self._state.families.among(self.backend, numbers):
            text = "the plan is about what is not there; plan again"
            raise Conflict(text, code="plan_stale")
        return await self.backend.prune(renamed_prune(plan, self.names.put))

    async def adopt(self, adoption: Adoption) -> None:
        del adoption
        raise Unsupported(
            "a copy keeps its numbers, which others may have in this store; write an"
            " archive with export_to, and read it with import_archive",
            code="whole_store",
        )

    @own_names
    async def admit(self, admission: Admission) -> None:
        def families() -> Iterator[tuple[Adoption, Iterable[Segment]]]:
            for adoption, segments in admission.families():
                yield renamed_adoption(adoption, self.names.put), segments

        await self.backend.admit(replace(admission, families=families))

    async def index(self, batch: IndexBatch) -> None:
        raise AssertionError(batch)  # without the ability to search nothing is indexed

    async def mend(self) -> bool:
        return False  # the index is not the scope's

    async def setting(
        self, name: str, value: bytes | None = None, *, replace: bool = False
    ) -> bytes | None:
        self.check_open()
        stored = self.names.put(name)
        return await self.backend.setting(stored, value, replace=replace)

    # --- reading ----------------------------------------------------------------------

    @own_names
    async def read(self, keys: Sequence[Key[R]]) -> list[R | None]:
        asked = [await self._asked(key) for key in keys]
        own = [key for key in asked if key is not None]
        records = await self.backend.read(own)
        found = iter(records)
        return [None if key is None else self._shown(next(found)) for key in asked]

    async def _asked(self, key: Key[R]) -> Key[R] | None:
        """The key of a stored record, ``None`` if others have it."""
        asked: Any = key
        if isinstance(asked, ThreadKey | StateKey):
            # Both ask for the same record, which a type checker cannot follow.
            return cast("Key[R]", replace(asked, name=self.names.put(asked.name)))
        assert isinstance(asked, CheckpointKey | SegmentsKey)
        return key if await self._has(asked.family) else None

    def _shown(self, record: R | None) -> R | None:
        if record is None or isinstance(record, Pieces):
            return record
        if isinstance(record, ThreadRecord):
            self._state.families.meet(record.family)
        return renamed(record, self.names.strip)

    @own_names
    async def segments(self, family: int, runs: Sequence[Run]) -> list[Segment]:
        if not await self._has(family):
            raise Corrupt(f"family {family}", "its segments are missing")
        return await self.backend.segments(family, runs)

    @own_names
    async def scan(self, query: Query[R]) -> Page[R]:
        queries = ScopedQueries(self.backend, self.names, self._state.families)
        return await queries.page(query)

    @own_names
    async def changes(self, after: int, limit: int, timeout: float) -> Page[Change]:
        """The changes of the scope; those of others do not end the waiting."""
        deadline = self._timer() + timeout
        while True:
            left = max(0.0, deadline - self._timer())
            page = await self.backend.changes(after, limit, left)
            after = after if page.cursor is None else page.cursor
            shown = self.names.shown(page)
            if shown or not page:
                return Page(shown, after)

    @own_names
    async def facts(self) -> Facts:
        return await facts_of(self.backend, self._state.families, self.abilities)

    @own_names
    async def inspect(self) -> Inspection:
        inspection = await self.backend.inspect()
        families = self._state.families
        return ScopedInspection(inspection, self.backend, self.names, families)

    @own_names
    async def check(self) -> list[str]:
        return [*own_damage(await self.backend.check(), self.names)]

    @own_names
    async def scrub(self) -> None:
        # The whole store is scrubbed: removed records have no scope any more.
        await self.backend.scrub()

    # --- the whole store --------------------------------------------------------------

    async def compact(self) -> None:
        raise _whole_store("compact")

    async def backup(self, path: str) -> None:
        del path
        raise _whole_store("backup")

    async def close(self) -> None:
        self._state.is_closed = True
        if not self._is_borrowed:
            await self.backend.close()

    def check_open(self) -> None:
        """Refuse after closing."""
        if self._state.is_closed:
            raise Closed

    async def _has(self, family: int) -> bool:
        return await self._state.families.has(self.backend, family)

    def own_error(self, error: HoldfastError) -> HoldfastError:
        """The same error with the names that callers know."""
        names = self.names
        if isinstance(error, Corrupt) and " " not in error.what:
            # It is a file, whose name may be that of a thread of another scope.
            advice = "verify the store without a scope"
            return Corrupt("a part of the store", advice=advice, lost=error.lost)
        shown = copy(error)  # the backend may give one error to several callers
        shown.message = names.text(error.message)
        shown.args = (shown.message,)
        if isinstance(shown, Conflict | NotFound) and shown.thread is not None:
            shown.thread = names.strip(shown.thread)
        if isinstance(shown, Conflict) and shown.found is not None:
            shown.found = renamed(shown.found, names.strip)
        return shown


def _named_by(write: Write) -> Iterator[Checkpoint]:
    """The checkpoints that a write changes or goes to, by their numbers.

    Not the expected head: the backend compares it with the thread's own.
    """
    if write.start is not None and write.start.head is not None:
        yield write.start.head
    if write.turn is not None:
        yield write.turn.target
    for mark in write.marks:
        yield mark.checkpoint


def _removed(checkpoint: Checkpoint) -> NotFound:
    return NotFound(
        f"checkpoint {checkpoint.id!r} was removed meanwhile; look it up again",
        thread=checkpoint.thread,
        reference=checkpoint.id,
    )


def _whole_store(operation: str) -> Unsupported:
    text = f"{operation} is about the whole store; open it without a scope"
    return Unsupported(text, code="whole_store")
