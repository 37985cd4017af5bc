"""The layer that encrypts everything on its way to a backend."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from copy import copy
from functools import partial
from typing import Any, TypeVar, cast

from msgspec.structs import replace

from holdfast._port import (
    KEYS,
    Admission,
    Adoption,
    Backend,
    Details,
    FamilyPlan,
    IndexBatch,
    Inspection,
    Key,
    Mark,
    Outcome,
    Pieces,
    Prune,
    Pruned,
    Query,
    Receipt,
    Saves,
    SegmentsKey,
    StateKey,
    ThreadKey,
    Threads,
    Totals,
    Write,
    run,
)
from holdfast._port.layer import Layer
from holdfast._port.plans import family_owner
from holdfast._values.caller_key import CallerKey, not_encrypted
from holdfast._values.records import (
    Change,
    Checkpoint,
    Page,
    Run,
    Segment,
    ThreadRecord,
    Unset,
)
from holdfast.errors import Conflict, Corrupt, HoldfastError, NotFound, Unsupported
from holdfast.keys._caller_key import (
    new_store_key,
    unwrapped,
    wrapped,
)
from holdfast.keys._ciphers import MARK, NAMES, MissingKeyError
from holdfast.keys._inspection import EncryptedInspection
from holdfast.keys._queries import hidden_query, wanted_entry
from holdfast.keys._records import Family, Records
from holdfast.keys._ring import KeyRing

R = TypeVar("R")

# How many threads are read at a time where the backend cannot filter by name.
CHUNK = 1000
COLUMNS = ("thread", "key", "label", "tag", "owner", "agent", "kind")


class EncryptionLayer(Layer):
    """A backend whose records are encrypted; made by ``open(…, key=…)``.

    The backend below sees numbers, times, sizes, ids of checkpoints and our own kinds.
    It cannot search and cannot filter by the beginning of a name: the layer reads and
    filters, and the engine reads the messages for a search.
    """

    def __init__(
        self, backend: Backend, key: CallerKey, *, read_only: bool = False
    ) -> None:
        super().__init__(backend)
        self.key = key
        self._read_only = read_only
        self._opened: Records | None = None

    @property
    def records(self) -> Records:
        """The conversions of an opened store."""
        assert self._opened is not None, "ready() comes first"
        return self._opened

    @property
    def abilities(self) -> frozenset[str]:
        return self.backend.abilities - {"search"}

    async def ready(self) -> None:
        await self.backend.ready()
        setting = await self.backend.setting(KEYS)
        if setting is None:
            setting = await self._begin()
        store = await self._unhurried(lambda: unwrapped(setting, self.key))
        self._opened = Records(KeyRing(self.backend, store))

    async def _begin(self) -> bytes:
        """Make the keys of a new store."""
        found = await self.backend.scan(Threads(every=True, limit=1))
        if found or self._read_only:
            raise not_encrypted()
        made = await self._unhurried(lambda: wrapped(new_store_key(), self.key))
        # Of several processes the first decides, and the others try its key.
        decided = await self.backend.setting(KEYS, made)
        assert decided is not None
        return decided

    async def _unhurried(self, work: Callable[[], R]) -> R:
        """Do what takes long, such as a passphrase or a KMS, beside an event loop."""
        if self.blocking:
            return work()
        import asyncio  # noqa: PLC0415 - the sync API does not need it

        return await asyncio.to_thread(work)

    @property
    def seal_key(self) -> bytes:
        """The key for authenticating what is said about the whole store."""
        return self.records.ring.seal_key

    async def rotate(self, key: CallerKey) -> None:
        """Wrap the store's key with another key of the caller, in one transaction."""
        store = self.records.ring.store
        setting = await self._unhurried(lambda: wrapped(store, key))
        await self.backend.setting(KEYS, setting, replace=True)
        self.key = key

    async def destroy(self, owner: str | None) -> None:
        """Make all that is stored of an owner unreadable, also in older copies."""
        await self.records.ring.destroy(owner)

    # --- writing ----------------------------------------------------------------------

    async def commit(self, writes: Sequence[Write]) -> list[Receipt]:
        async with self._errors_shown():
            hidden, families = await self._hidden_writes(writes)
            receipts = await self.backend.commit(hidden)
            return await self._shown_receipts(receipts, families)

    def commit_each(self, batches: Sequence[Sequence[Write]]) -> Sequence[Outcome]:
        return run(self._commit_each(batches))

    async def _commit_each(
        self, batches: Sequence[Sequence[Write]]
    ) -> Sequence[Outcome]:
        outcomes: list[Outcome | None] = [None] * len(batches)
        hidden: list[tuple[int, list[Write], list[Family | None]]] = []
        for place, batch in enumerate(batches):
            try:
                hidden.append((place, *await self._hidden_writes(batch)))
            except HoldfastError as error:
                outcomes[place] = await self._error(error)
        found = super().commit_each([writes for _, writes, _ in hidden])
        for (place, _, families), outcome in zip(hidden, found, strict=True):
            outcomes[place] = (
                await self._error(outcome)
                if isinstance(outcome, HoldfastError)
                else await self._shown_receipts(outcome, families)
            )
        return [outcome for outcome in outcomes if outcome is not None]

    async def prune(self, plan: Prune) -> Pruned:
        async with self._errors_shown():
            first, _ = await self._hidden_writes(plan.first)
            then, _ = await self._hidden_writes(plan.then)
            names = self.records
            hidden = replace(
                plan,
                first=tuple(first),
                threads=tuple(
                    [replace(t, id=names.hide(t.id, "thread")) for t in plan.threads]
                ),
                families=tuple([await self._hidden_plan(p) for p in plan.families]),
                then=tuple(then),
            )
            return await self.backend.prune(hidden)

    async def _hidden_plan(self, plan: FamilyPlan) -> FamilyPlan:
        if not plan.relinks:
            return plan
        key = (await self._family(plan.family)).key
        hide = self.records.hide_link
        relinks = [replace(r, link=hide(r.link, r.child.id, key)) for r in plan.relinks]
        return replace(plan, relinks=tuple(relinks))

    async def adopt(self, adoption: Adoption) -> None:
        owner = adoption.owner
        if adoption.threads:
            owner = family_owner(adoption.threads)
        ring = self.records.ring
        # The segments of an interrupted copy stay, so the salt must be the same again.
        family = Family(await ring.of_owner(owner), ring.salt(adoption.family))
        async with self._errors_shown():
            await self.backend.adopt(self._hidden_adoption(adoption, family))

    async def admit(self, admission: Admission) -> None:
        keys = {
            owner: await self.records.ring.of_owner(owner)
            for owner in {family_owner(a.threads) for a, _ in admission.families()}
        }

        def families() -> Iterator[tuple[Adoption, Iterable[Segment]]]:
            for adoption, segments in admission.families():
                root = min(adoption.threads, key=lambda thread: thread.number)
                salt = self.records.ring.salt(root.id)
                family = Family(keys[family_owner(adoption.threads)], salt)
                hidden = (self.records.hide_segment(s, family) for s in segments)
                yield self._hidden_adoption(adoption, family), hidden

        async with self._errors_shown():
            await self.backend.admit(replace(admission, families=families))

    def _hidden_adoption(self, adoption: Adoption, family: Family) -> Adoption:
        hide = self.records
        return replace(
            adoption,
            owner=None,
            threads=tuple([hide.hide_thread(t, family) for t in adoption.threads]),
            checkpoints=tuple(
                [hide.hide_checkpoint(c, family) for c in adoption.checkpoints]
            ),
            entries=tuple([hide.hide_entry(e, family.key) for e in adoption.entries]),
            moves=tuple(
                [
                    replace(m, thread=hide.hide(m.thread, "thread"))
                    for m in adoption.moves
                ]
            ),
            segments=tuple([hide.hide_segment(s, family) for s in adoption.segments]),
        )

    async def index(self, batch: IndexBatch) -> None:
        raise AssertionError(batch)  # without the ability to search nothing is indexed

    async def setting(
        self, name: str, value: bytes | None = None, *, replace: bool = False
    ) -> bytes | None:
        contents, place = self.records.ring.contents, f"setting {name}".encode()
        if value is not None:
            key = await self.records.ring.of_owner(None)
            value = contents.encode(value, place, key)
        found = await self.backend.setting(name, value, replace=replace)
        if found is None:
            return None
        what = f"the setting {name!r}"
        return await self._shown(lambda: contents.decode(found, place, what))

    # --- one write --------------------------------------------------------------------

    async def _hidden_writes(
        self, writes: Sequence[Write]
    ) -> tuple[list[Write], list[Family | None]]:
        begun: dict[str, Family] = {}
        hidden: list[Write] = []
        families: list[Family | None] = []
        for write in writes:
            family = None
            if _has_content(write):
                family = await self._family_of(write, begun)
            families.append(family)
            hidden.append(await self._hidden_write(write, family))
        return hidden, families

    async def _hidden_write(self, write: Write, family: Family | None) -> Write:
        hide = self.records
        name = hide.hide(write.thread, "thread")
        if family is None:
            return replace(
                write,
                thread=name,
                marks=self._hidden_marks(write) if write.marks else (),
                forget=tuple([hide.hide(key, "key") for key in write.forget]),
            )
        details = write.details
        if details is not None:
            details = await self._hidden_details(write, family)
        return replace(
            write,
            thread=name,
            start=write.start and hide.hide_start(write.start, write.thread, family),
            checkpoint=write.checkpoint
            and hide.hide_checkpoint(write.checkpoint, family),
            segments=tuple([hide.hide_segment(s, family) for s in write.segments]),
            marks=self._hidden_marks(write) if write.marks else (),
            details=details,
            entries=tuple([hide.hide_entry(e, family.key) for e in write.entries]),
            forget=tuple([hide.hide(key, "key") for key in write.forget]),
        )

    def _hidden_marks(self, write: Write) -> tuple[Mark, ...]:
        hide = self.records
        return tuple(
            replace(
                mark,
                label=mark.label
                if isinstance(mark.label, Unset)
                else hide.hide_any(mark.label, "label"),
                add=tuple([hide.hide(tag, "tag") for tag in mark.add]),
                remove=tuple([hide.hide(tag, "tag") for tag in mark.remove]),
            )
            for mark in write.marks
        )

    async def _hidden_details(self, write: Write, family: Family) -> Details:
        thread, known = await self._thread(write.thread)
        details = write.details
        assert details is not None
        if thread is None or known is None:
            return Details()  # the backend refuses the write
        if not isinstance(details.owner, Unset):
            self._check_owner(write.thread, details.owner, family)
        return self.records.hide_details(details, thread, family)

    def _check_owner(self, thread: str, owner: str | None, family: Family) -> None:
        """Refuse another owner: if the first one's key is destroyed, all is lost."""
        ring = self.records.ring
        if not (ring.is_of(family.key, None) or ring.is_of(family.key, owner)):
            raise Unsupported(
                f"thread {thread!r} is encrypted with the key of its owner; save its"
                " state to a new thread of the other owner",
                code="other_owner",
            )

    # --- families ---------------------------------------------------------------------

    async def _family_of(self, write: Write, begun: dict[str, Family]) -> Family:
        """The family of the thread of a write, which may be about to begin."""
        start = write.start
        if isinstance(write.expect, Checkpoint):
            return await self._family(write.expect.family)
        if start is not None and start.head is not None:
            family = await self._family(start.head.family)
            self._check_owner(write.thread, start.owner, family)
            return family
        if write.thread in begun:
            return begun[write.thread]
        _, known = await self._thread(write.thread)
        if known is not None:
            return known
        ring = self.records.ring
        key = await ring.of_owner(start.owner if start else None)
        begun[write.thread] = Family(key, ring.salt(write.thread))
        return begun[write.thread]

    async def _family(self, number: int) -> Family:
        known = self.records.families.get(number)
        if known is not None:
            return known
        page = await self.backend.scan(Saves(family=number, limit=1))
        if not page:
            raise Corrupt(f"family {number}", "none of its checkpoints is left")
        show = self.records.open_checkpoint
        _, family = await self._shown(lambda: show(page[0]))
        return family

    async def _thread(
        self, name: str
    ) -> tuple[ThreadRecord, Family | None] | tuple[None, None]:
        """A thread as it is stored now, and its family if it is not deleted."""
        key = ThreadKey(self.records.hide(name, "thread"))
        [found] = await self.backend.read([key])
        if found is None:
            return None, None
        return await self._shown(lambda: self.records.open_thread(found))

    # --- reading ----------------------------------------------------------------------

    async def read(self, keys: Sequence[Key[R]]) -> list[R | None]:
        async with self._errors_shown():
            found = await self.backend.read([self._hidden_key(key) for key in keys])
            return [
                await self._shown_record(key, record)
                for key, record in zip(keys, found, strict=True)
            ]

    def _hidden_key(self, key: Key[R]) -> Key[R]:
        if not isinstance(key, ThreadKey | StateKey):
            return key
        # Both ask for the same record, which a type checker cannot follow.
        name = self.records.hide(key.name, "thread")
        return cast("Key[R]", replace(key, name=name))

    async def _shown_record(self, key: object, record: R) -> R:
        if isinstance(key, SegmentsKey) and isinstance(record, Pieces):
            family = await self._family(key.family)
            pieces = partial(self.records.show_pieces, record, family)
            return cast("R", await self._shown(pieces))
        return await self._shown(lambda: self.records.show_record(record))

    async def segments(self, family: int, runs: Sequence[Run]) -> list[Segment]:
        async with self._errors_shown():
            found = await self.backend.segments(family, runs)
            known = await self._family(family)
            show = self.records.show_segments
            return await self._shown(lambda: show(found, known))

    async def scan(self, query: Query[R]) -> Page[R]:
        if isinstance(query, Totals):
            return Page(())  # the backend cannot look into manifests
        async with self._errors_shown():
            asked: Query[Any] = query
            if isinstance(asked, Threads) and asked.prefix:
                return cast("Page[R]", await self._threads_from(asked, asked.prefix))
            page = await self.backend.scan(hidden_query(query, self.records))
            shown = await self._shown(lambda: self.records.show_all(page))
        return Page(tuple(filter(wanted_entry(query), shown)), page.cursor)

    async def _threads_from(self, query: Threads, prefix: str) -> Page[ThreadRecord]:
        """The threads whose names begin with a prefix, found by reading all names."""
        found: list[ThreadRecord] = []
        show = self.records.show_thread
        hidden = replace(hidden_query(query, self.records), limit=CHUNK)
        while True:
            page = await self.backend.scan(hidden)
            for thread in page:
                if not self.records.show(thread.id, "thread").startswith(prefix):
                    continue
                found.append(await self._shown(partial(show, thread)))
                if len(found) == query.limit:
                    return Page(tuple(found), thread.changed)
            if page.cursor is None:
                return Page(tuple(found))
            hidden = replace(hidden, after=page.cursor)

    async def changes(self, after: int, limit: int, timeout: float) -> Page[Change]:
        page = await self.backend.changes(after, limit, timeout)
        return Page(tuple(map(self.records.show_change, page)), page.cursor)

    async def inspect(self) -> Inspection:
        return EncryptedInspection(await self.backend.inspect(), self.records)

    async def check(self) -> list[str]:
        return [self._text(problem) for problem in await self.backend.check()]

    async def _shown_receipts(
        self, receipts: Sequence[Receipt], families: Sequence[Family | None]
    ) -> list[Receipt]:
        for receipt, family in zip(receipts, families, strict=True):
            if family is not None:
                self.records.families[receipt.family] = family
        if not any(receipt.entries for receipt in receipts):
            return [*receipts]
        show = self.records.show_all
        return await self._shown(
            lambda: [replace(r, entries=show(r.entries)) for r in receipts]
        )

    async def _shown(self, decode: Callable[[], R]) -> R:
        """The result of decoding; keys that it needs are read first."""
        while True:
            try:
                return decode()
            except MissingKeyError as missing:
                await self.records.ring.load(missing.id)

    # --- errors -----------------------------------------------------------------------

    def _text(self, text: str) -> str:
        """A text of the backend with the names as callers know them."""
        return NAMES.sub(lambda match: self._name(match[0]), text)

    def _name(self, hidden: str) -> str:
        for column in COLUMNS:
            try:
                return self.records.show(hidden, column)
            except Corrupt:
                continue
        return hidden

    async def _error(self, error: HoldfastError) -> HoldfastError:
        """The same error with names and records as callers know them."""
        thread = error.thread if isinstance(error, Conflict | NotFound) else None
        if MARK not in error.message + (thread or ""):
            return error
        shown = copy(error)  # the backend may give one error to several callers
        shown.message = self._text(error.message)
        shown.args = (shown.message,)
        if isinstance(shown, Conflict | NotFound) and thread:
            shown.thread = self._text(thread)
        if isinstance(shown, Conflict) and shown.found is not None:
            show = partial(self.records.show_checkpoint, shown.found)
            shown.found = await self._shown(show)
        return shown

    @asynccontextmanager
    async def _errors_shown(self) -> AsyncGenerator[None]:
        try:
            yield
        except HoldfastError as error:
            raise await self._error(error) from error.__cause__


def _has_content(write: Write) -> bool:
    return bool(write.checkpoint or write.start or write.entries or write.details)
