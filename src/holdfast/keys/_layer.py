"""The layer that encrypts everything on its way to a backend."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar, cast

from msgspec.structs import replace

from holdfast._port import (
    KEYS,
    Admission,
    Adoption,
    Backend,
    FamilyMoves,
    FamilyPlan,
    IndexBatch,
    Inspection,
    Key,
    Moves,
    Outcome,
    Pieces,
    Prune,
    Pruned,
    Query,
    Receipt,
    SegmentsKey,
    StateKey,
    ThreadKey,
    ThreadMoves,
    Threads,
    Totals,
    Write,
    run,
)
from holdfast._port.layer import Layer
from holdfast._port.plans import family_owner
from holdfast._values.caller_key import CallerKey, not_encrypted
from holdfast._values.records import (
    SEPARATOR,
    Change,
    Move,
    Page,
    Run,
    Segment,
    ThreadRecord,
)
from holdfast.errors import Conflict, Corrupt, HoldfastError, Unsupported
from holdfast.keys._caller_key import (
    new_store_key,
    secrets_of,
    unwrapped,
    wrapped,
)
from holdfast.keys._errors import ErrorDecoder, names_shown
from holdfast.keys._inspection import EncryptedInspection
from holdfast.keys._move_ends import MoveEnds, prove_moves
from holdfast.keys._moves import OF_REMOVALS
from holdfast.keys._queries import hidden_query, wanted_entry
from holdfast.keys._records import FOREIGN_HEAD, SAVE, Family, Records
from holdfast.keys._ring import KeyRing
from holdfast.keys._writes import EncodedWrites, WriteEncoder

R = TypeVar("R")

# How many threads are read at a time where the backend cannot filter by name.
CHUNK = 1000
# How often a log is read that changes meanwhile, before it counts as damaged.
READS = 5


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
    def _errors(self) -> ErrorDecoder:
        return ErrorDecoder(self.records)

    @property
    def _writes(self) -> WriteEncoder:
        # Over this backend: in a caller's transaction it sees what that has written.
        return WriteEncoder(self.backend, self.records)

    @property
    def abilities(self) -> frozenset[str]:
        return self.backend.abilities - {"search"}

    async def ready(self) -> None:
        await self.backend.ready()
        setting = await self.backend.setting(KEYS)
        if setting is None:
            setting = await self._begin()
        await self._unwrap(setting)
        if self.records.ring.has_proofs or self._read_only:
            return
        try:
            await prove_moves(self.backend, self.records, setting)
        except Corrupt:
            if await self.backend.setting(KEYS) == setting:
                raise
        changed = await self.backend.setting(KEYS)
        if changed is not None and changed != setting:
            await self._unwrap(changed)  # another program was first

    async def _unwrap(self, setting: bytes) -> None:
        store = await self._unhurried(lambda: unwrapped(setting, self.key))
        self._opened = Records(KeyRing(self.backend, store, secrets_of(self.key)))

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
        ring = self.records.ring
        if ring.secrets is not None:
            text = (
                "the key in use keeps the secrets of the owners, which stay with it;"
                " copy_to() a store with the other key"
            )
            raise Unsupported(text)
        setting = await self._unhurried(lambda: wrapped(ring.store, key))
        await self.backend.setting(KEYS, setting, replace=True)
        self.key, ring.secrets = key, secrets_of(key)

    async def destroy(self, owner: str | None) -> bool:
        """Make all that this store holds of an owner unreadable."""
        return await self.records.ring.destroy(owner)

    def belongs(self, family: int, owner: str) -> bool:
        """True if no key but the owner's decrypts the family."""
        known = self.records.families.get(family)
        return known is None or self.records.ring.is_of(known.key, owner)

    # --- writing ----------------------------------------------------------------------

    async def commit(self, writes: Sequence[Write]) -> list[Receipt]:
        saves = self._writes.encode_saves(writes)
        if saves is None:
            return await self._commit(writes)
        try:
            return await self.backend.commit(saves)
        except HoldfastError as error:
            raise await self._errors.error(error) from error.__cause__

    @names_shown
    async def _commit(self, writes: Sequence[Write]) -> list[Receipt]:
        while True:
            encoded = await self._writes.encode(writes)
            try:
                receipts = await self.backend.commit(encoded.writes)
            except Conflict as conflict:
                if not await self._is_outdated(conflict, encoded):
                    raise
                continue
            return await self._shown_receipts(receipts, encoded)

    async def _is_outdated(self, conflict: Conflict, encoded: EncodedWrites) -> bool:
        """True if the encoded writes are outdated, not the caller's knowledge.

        Another writer has added a move, or begun a thread that these writes were to
        begin.
        """
        if conflict.code == "plan_stale":
            return True
        names = [encoded.writes[place].thread for place in encoded.begun]
        found = await self.backend.read([ThreadKey(name) for name in names])
        return any(t is not None and t.deleted_at is None for t in found)

    def commit_each(self, batches: Sequence[Sequence[Write]]) -> Sequence[Outcome]:
        return run(self._commit_each(batches))

    async def _commit_each(
        self, batches: Sequence[Sequence[Write]]
    ) -> Sequence[Outcome]:
        outcomes: list[Outcome | None] = [None] * len(batches)
        hidden: list[tuple[int, EncodedWrites]] = []
        for place, batch in enumerate(batches):
            try:
                hidden.append((place, await self._encoded(batch)))
            except HoldfastError as error:
                outcomes[place] = await self._errors.error(error)
        found = super().commit_each([encoded.writes for _, encoded in hidden])
        for (place, encoded), outcome in zip(hidden, found, strict=True):
            outcomes[place] = await self._outcome(batches[place], encoded, outcome)
        return [outcome for outcome in outcomes if outcome is not None]

    async def _encoded(self, batch: Sequence[Write]) -> EncodedWrites:
        saves = self._writes.encode_saves(batch)
        if saves is None:
            return await self._writes.encode(batch)
        return EncodedWrites(saves, [None] * len(saves), frozenset())

    async def _outcome(
        self, batch: Sequence[Write], encoded: EncodedWrites, outcome: Outcome
    ) -> Outcome:
        if not isinstance(outcome, HoldfastError):
            return await self._shown_receipts(outcome, encoded)
        if isinstance(outcome, Conflict) and await self._is_outdated(outcome, encoded):
            return (await self._commit_each([batch]))[0]
        return await self._errors.error(outcome)

    @names_shown
    async def prune(self, plan: Prune) -> Pruned:
        ends, names = MoveEnds(self.backend, self.records), self.records
        plans = {} if plan.dry_run else await ends.thinned(plan)
        first = (await self._writes.encode(plan.first, ends)).writes
        then = (await self._writes.encode(plan.then, ends)).writes
        hidden = replace(
            plan,
            first=tuple(first),
            threads=tuple(
                [replace(t, id=names.hide(t.id, "thread")) for t in plan.threads]
            ),
            families=tuple(
                [
                    await self._hidden_plan(plans.get(family.family, family))
                    for family in plan.families
                ]
            ),
            then=tuple(then),
        )
        return await self.backend.prune(hidden)

    async def _hidden_plan(self, plan: FamilyPlan) -> FamilyPlan:
        if not plan.relinks and not plan.packed:
            return plan
        family = await self._writes.family(plan.family)
        hide = self.records
        return replace(
            plan,
            relinks=tuple(
                [
                    replace(r, link=hide.hide_link(r.link, r.child.id, family.key))
                    for r in plan.relinks
                ]
            ),
            packed=tuple([hide.hide_segment(s, family) for s in plan.packed]),
        )

    @names_shown
    async def adopt(self, adoption: Adoption) -> None:
        owner = adoption.owner
        if adoption.threads:
            owner = family_owner(adoption.threads)
        ring = self.records.ring
        if adoption.anew:  # its key may have been another owner's
            self.records.families.pop(adoption.family, None)
        # The segments of an interrupted copy stay, so the salt must be the same again.
        family = Family(await ring.of_owner(owner), ring.salt(adoption.family))
        await self.backend.adopt(self._hidden_adoption(adoption, family))

    @names_shown
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
            moves=hide.hide_moves(adoption.moves),
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
        return await self.records.loaded(lambda: contents.decode(found, place, what))

    # --- reading ----------------------------------------------------------------------

    @names_shown
    async def read(self, keys: Sequence[Key[R]]) -> list[R | None]:
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
            family = await self._writes.family(key.family)
            pieces = partial(self.records.show_pieces, record, family)
            return cast("R", await self.records.loaded(pieces))
        return await self.records.loaded(lambda: self.records.show_record(record))

    @names_shown
    async def segments(self, family: int, runs: Sequence[Run]) -> list[Segment]:
        found = await self.backend.segments(family, runs)
        known = await self._writes.family(family)
        show = self.records.show_segments
        return await self.records.loaded(lambda: show(found, known))

    @names_shown
    async def scan(self, query: Query[R]) -> Page[R]:
        if isinstance(query, Totals):
            return Page(())  # the backend cannot look into manifests
        asked: Query[Any] = query
        if isinstance(asked, Threads) and not _is_of_scopes(asked.prefix):
            return cast("Page[R]", await self._threads_from(asked, asked.prefix or ""))
        if isinstance(asked, Moves):
            return cast("Page[R]", await self._moves(asked))
        page = await self.backend.scan(hidden_query(query, self.records))
        shown = await self.records.loaded(lambda: self.records.show_all(page))
        if isinstance(asked, Threads) and not asked.every:
            # Threads whose owner's key was destroyed have no head.
            shown = tuple(t for t in shown if cast("ThreadRecord", t).head)
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
                shown = await self.records.loaded(partial(show, thread))
                if shown.head or query.every:
                    found.append(shown)
                if len(found) == query.limit:
                    return Page(tuple(found), thread.changed)
            if page.cursor is None:
                return Page(tuple(found))
            hidden = replace(hidden, after=page.cursor)

    async def _moves(self, query: Moves) -> Page[Move]:
        """A page of a log; `Corrupt` unless it is what this store has logged.

        If others log or prune between the reads, these are made again.
        """
        thread = self.records.hide(query.thread, "thread")
        hidden = replace(query, thread=thread)
        for _ in range(READS - 1):
            with contextlib.suppress(Corrupt):
                return await self._checked_page(hidden)
        return await self._checked_page(hidden)

    async def _checked_page(self, query: Moves) -> Page[Move]:
        page = await self.backend.scan(query)
        shown = Page(self.records.show_all(page), page.cursor)
        if self.records.ring.has_proofs:
            await self._check_log(query.thread, page)
        return shown

    async def _check_log(self, thread: str, page: Page[Move]) -> None:
        """Compare a page of a log with the moves that have proofs."""
        [found] = await self.backend.read([ThreadKey(thread)])
        if found is None or not page:
            return
        own = [m for m in page if m.kind != SAVE and m.kind not in OF_REMOVALS]
        query = ThreadMoves(
            family=found.family,
            number=found.number,
            before=page[0].seq + 1,
            limit=len(own) + 1,
        )
        moves = list(map(self.records.named_move, await self.backend.scan(query)))
        self.records.proofs.check_end(moves, is_whole=len(moves) <= len(own))

    async def changes(self, after: int, limit: int, timeout: float) -> Page[Change]:
        page = await self.backend.changes(after, limit, timeout)
        return Page(tuple(map(self.records.show_change, page)), page.cursor)

    async def inspect(self) -> Inspection:
        return EncryptedInspection(await self.backend.inspect(), self.records)

    async def check(self) -> list[str]:
        stored = [self._errors.text(problem) for problem in await self.backend.check()]
        if stored:
            return stored
        return [problem async for problem in self._foreign_records()]

    async def _foreign_records(self) -> AsyncIterator[str]:
        """Heads that belong to other threads, and logs with moves that are not ours.

        Only several records together tell that.
        """
        checked: set[int] = set()
        query: Threads | None = Threads(every=True, limit=CHUNK)
        while query is not None:
            try:
                page = await self.backend.scan(query)
            except Corrupt:
                return  # the inspection reports it
            for thread in page:
                problem = await self._foreign_head(thread)
                if problem is not None:
                    yield problem
            families = {thread.family for thread in page} - checked
            checked |= families
            moves = await self.backend.scan(FamilyMoves(families=tuple(families)))
            for problem in self.records.show_moves(moves)[1]:
                yield problem
            query = replace(query, after=page.cursor) if page.cursor else None

    async def _foreign_head(self, thread: ThreadRecord) -> str | None:
        try:
            await self.records.loaded(partial(self.records.show_thread, thread))
        except Corrupt as error:
            return str(error) if error.detail == FOREIGN_HEAD else None
        return None

    async def _shown_receipts(
        self, receipts: Sequence[Receipt], encoded: EncodedWrites
    ) -> list[Receipt]:
        for receipt, family in zip(receipts, encoded.families, strict=True):
            if family is not None:
                self.records.meet(receipt.family, family)
        if encoded.begun:
            numbered = enumerate(receipts)
            receipts = [r for place, r in numbered if place not in encoded.begun]
        if not any(receipt.entries for receipt in receipts):
            return [*receipts]
        show = self.records.show_all
        return await self.records.loaded(
            lambda: [replace(r, entries=show(r.entries)) for r in receipts]
        )


def _is_of_scopes(prefix: str | None) -> bool:
    """True if the backend can filter by the prefix: it knows only whole scopes."""
    return not prefix or prefix.endswith(SEPARATOR)
