"""A layer that stores all content in another form, for example encrypted."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from typing import Any, TypeAlias, TypeVar, cast

from msgspec.structs import replace

from holdfast._port.backend import Inspection, Place, Portion, Rescued
from holdfast._port.family_queries import Totals
from holdfast._port.index_queries import Candidate, Candidates, Stale
from holdfast._port.layer import InspectionLayer, Layer
from holdfast._port.plans import (
    Admission,
    Adoption,
    FamilyPlan,
    IndexBatch,
    Prune,
    Pruned,
    Relink,
    Wait,
)
from holdfast._port.queries import Query, Threads
from holdfast._port.reads import Key, Pieces, Stored
from holdfast._port.writes import Details, Outcome, Receipt, Start, Write
from holdfast._values.records import (
    Checkpoint,
    Entry,
    Page,
    Run,
    Segment,
    ThreadRecord,
    Unset,
)
from holdfast.errors import Conflict, Corrupt, HoldfastError

R = TypeVar("R")

Location: TypeAlias = tuple[str | int, ...]
Convert: TypeAlias = Callable[[bytes, Location], bytes]


class ContentLayer(Layer):
    """Encodes all content on its way down and decodes it on its way up.

    Content is what a caller saved: segments, manifests, metadata, journal values,
    settings, the digests of states, and the texts of the search index. Names, kinds,
    owners, labels, tags, journal keys, times, sizes and numbers stay as they are,
    because backends compare and sort by them.

    Records that only say which checkpoint or thread is meant (what a write expects, the
    target of a move, what a plan removes) go down as they are: backends look at their
    numbers and never store their content.
    """

    # Whether `encode_text` is offered. Without it the backend is not asked to index
    # anything, and a search reads the messages themselves.
    searches = False

    def encode(self, content: bytes, location: Location) -> bytes:
        """What the backend stores instead of ``content``, at least one byte.

        ``location`` says where it stands, such as ``("segment", 7)`` or ``("manifest",
        id)``, and is the same when the content is read; authenticated encryption
        can bind the content to it. Empty content is not encoded.
        """
        raise NotImplementedError

    def decode(self, content: bytes, location: Location) -> bytes:
        """The inverse of `encode`; `Corrupt` for what `encode` did not make."""
        raise NotImplementedError

    def encode_text(self, text: str) -> str:
        """What is indexed instead of a text, and looked for instead of a query.

        Where one text holds another, the encoded one has to hold the other's encoding.
        """
        raise NotImplementedError

    def _encode(self, content: bytes, location: Location) -> bytes:
        return self.encode(content, location) if content else content

    def _decode(self, content: bytes, location: Location) -> bytes:
        # A backend empties the metadata of a thread that is deleted.
        return self.decode(content, location) if content else content

    @property
    def abilities(self) -> frozenset[str]:
        below = self.backend.abilities
        return below if self.searches else below - {"search"}

    # --- writing ----------------------------------------------------------------------

    async def commit(self, writes: Sequence[Write]) -> list[Receipt]:
        encoded = [_write(write, self._encode) for write in writes]
        with self._errors_decoded():
            receipts = await self.backend.commit(encoded)
        return [_receipt(receipt, self._decode) for receipt in receipts]

    def commit_each(self, batches: Sequence[Sequence[Write]]) -> Sequence[Outcome]:
        encoded = [[_write(write, self._encode) for write in b] for b in batches]
        return [self._outcome(found) for found in super().commit_each(encoded)]

    async def prune(self, plan: Prune) -> Pruned:
        encoded = replace(
            plan,
            first=tuple(_write(write, self._encode) for write in plan.first),
            families=tuple(_plan(family, self._encode) for family in plan.families),
            then=tuple(_write(write, self._encode) for write in plan.then),
        )
        with self._errors_decoded():
            return await self.backend.prune(encoded)

    async def adopt(self, adoption: Adoption) -> None:
        with self._errors_decoded():
            await self.backend.adopt(_adoption(adoption, self._encode))

    async def admit(self, admission: Admission) -> None:
        def families() -> Iterator[tuple[Adoption, Iterable[Segment]]]:
            for family, segments in admission.families():
                encoded = (_segment(segment, self._encode) for segment in segments)
                yield _adoption(family, self._encode), encoded

        with self._errors_decoded():
            await self.backend.admit(replace(admission, families=families))

    async def index(self, batch: IndexBatch) -> Wait | None:
        encoded = tuple(
            replace(update, texts=tuple(map(self.encode_text, update.texts)))
            for update in batch.threads
        )
        return await self.backend.index(replace(batch, threads=encoded))

    async def setting(
        self, name: str, value: bytes | None = None, *, replace: bool = False
    ) -> bytes | None:
        place = ("setting", name)
        encoded = value if value is None else self._encode(value, place)
        found = await self.backend.setting(name, encoded, replace=replace)
        return found if found is None else self._decode(found, place)

    # --- reading ----------------------------------------------------------------------

    async def read(self, keys: Sequence[Key[R]]) -> list[R | None]:
        found = await self.backend.read(keys)
        return [_record(record, self._decode) for record in found]

    async def segments(self, family: int, runs: Sequence[Run]) -> list[Segment]:
        found = await self.backend.segments(family, runs)
        return [_segment(segment, self._decode) for segment in found]

    async def scan(self, query: Query[R]) -> Page[R]:
        if isinstance(query, Totals):
            return Page(())  # the backend cannot look into manifests
        page = await self.backend.scan(self._query(query))
        return Page(tuple(_record(r, self._decode) for r in page), page.cursor)

    def _query(self, query: Query[R]) -> Query[R]:
        # Both ask for the same records, which a type checker cannot follow.
        if isinstance(query, Candidates):
            texts = tuple(map(self.encode_text, query.texts))
            return cast("Query[R]", replace(query, texts=texts))
        if isinstance(query, Threads):
            # The backend cannot look into what it stores; the caller does.
            return cast("Query[R]", replace(query, metadata=()))
        return query

    async def inspect(self) -> Inspection:
        return _ContentInspection(await self.backend.inspect(), self._decode)

    # --- errors -----------------------------------------------------------------------

    def _outcome(self, outcome: Outcome) -> Outcome:
        if isinstance(outcome, HoldfastError):
            return self._error(outcome)
        return [_receipt(receipt, self._decode) for receipt in outcome]

    def _error(self, error: HoldfastError) -> HoldfastError:
        """The same error; a `Conflict` carries a head that has to be decoded."""
        if not isinstance(error, Conflict) or error.found is None:
            return error
        decoded = copy(error)  # the backend may give one error to several callers
        decoded.found = _checkpoint(error.found, self._decode)
        return decoded

    @contextmanager
    def _errors_decoded(self) -> Generator[None]:
        try:
            yield
        except Conflict as error:
            raise self._error(error) from error.__cause__


class _ContentInspection(InspectionLayer):
    """The view of `Backend.inspect` with decoded content.

    Content that cannot be decoded is reported as damage, like content that the backend
    below cannot read.
    """

    def __init__(self, inspection: Inspection, decode: Convert) -> None:
        super().__init__(inspection)
        self._decode = decode

    async def families(
        self, numbers: Sequence[int], *, heads_only: bool = False
    ) -> Rescued:
        found = await super().families(numbers, heads_only=heads_only)
        return self._rescued(found)

    def _rescued(self, found: Rescued) -> Rescued:
        damage = [*found.damage]
        checkpoints = tuple(self._decoded(found.checkpoints, damage))
        heads = {checkpoint.seq: checkpoint for checkpoint in checkpoints}
        return Rescued(
            tuple(self._thread(thread, heads, damage) for thread in found.threads),
            checkpoints,
            tuple(self._decoded(found.entries, damage)),
            found.moves,
            tuple(damage),
        )

    async def threads(self, after: Place) -> Portion[ThreadRecord]:
        return self._portion(await super().threads(after))

    async def checkpoints(self, after: Place) -> Portion[Checkpoint]:
        return self._portion(await super().checkpoints(after))

    async def saves(self, after: Place) -> Portion[Checkpoint]:
        return self._portion(await super().saves(after))

    async def entries(self, after: Place) -> Portion[Entry]:
        return self._portion(await super().entries(after))

    async def checkpoint(self, family: int, id_: str) -> Checkpoint | None:
        found = await super().checkpoint(family, id_)
        return next(self._decoded([found], []), None) if found else None

    def _portion(self, portion: Portion[R]) -> Portion[R]:
        damage = [*portion.damage]
        records = tuple(self._decoded(portion.records, damage))
        lost = _numbers(portion.records) - _numbers(records)
        return Portion(
            records, tuple(damage), (*portion.lost, *sorted(lost)), portion.end
        )

    def _decoded(self, records: Iterable[R], damage: list[str]) -> Iterator[R]:
        for record in records:
            try:
                yield _record(record, self._decode)
            except Corrupt as error:
                damage.append(str(error))

    def _thread(
        self, thread: ThreadRecord, heads: dict[int, Checkpoint], damage: list[str]
    ) -> ThreadRecord:
        head = thread.head and heads.get(thread.head.seq)
        if thread.head and not head:
            damage.append(f"the head of thread {thread.id!r} is damaged or missing")
        try:
            return replace(_thread(replace(thread, head=None), self._decode), head=head)
        except Corrupt as error:
            damage.append(str(error))
            return replace(thread, head=head, encoded_metadata=b"")

    async def segments(
        self, wanted: Sequence[tuple[int, Run]]
    ) -> list[list[Segment | None]]:
        return [self._run(run) for run in await super().segments(wanted)]

    def _run(self, run: list[Segment | None]) -> list[Segment | None]:
        """The segments of a run; a block, which is there repeatedly, only once."""
        stored = {segment.number: segment for segment in run if segment is not None}
        shown = {number: self._segment(segment) for number, segment in stored.items()}
        return [segment and shown[segment.number] for segment in run]

    def _segment(self, segment: Segment) -> Segment | None:
        try:
            return _segment(segment, self._decode)
        except Corrupt:
            return None


def _numbers(records: Iterable[object]) -> set[int]:
    return {record.seq for record in records if isinstance(record, Checkpoint)}


# --- records with their content converted, in either direction ------------------------


def _segment(segment: Segment, convert: Convert) -> Segment:
    data = convert(segment.data, ("segment", segment.number))
    return Segment(segment.number, data, segment.packing, segment.count)


def _checkpoint(c: Checkpoint, convert: Convert) -> Checkpoint:
    return replace(
        c,
        manifest=convert(c.manifest, ("manifest", c.id)),
        encoded_metadata=convert(c.encoded_metadata, ("metadata", c.id)),
        sha256=convert(c.sha256, ("digest", c.id)),
        link=c.link and convert(c.link, ("link", c.id)),
    )


def _thread(thread: ThreadRecord, convert: Convert) -> ThreadRecord:
    metadata = convert(thread.encoded_metadata, ("thread", thread.id))
    head = thread.head and _checkpoint(thread.head, convert)
    return replace(thread, head=head, encoded_metadata=metadata)


def _entry(entry: Entry, convert: Convert) -> Entry:
    # Without the thread: it is unknown where its row is lost and the entry is salvaged.
    data = convert(entry.data, ("journal", entry.checkpoint, entry.key))
    return replace(entry, data=data)


def _stored(stored: Stored, convert: Convert) -> Stored:
    segments = stored.segments
    if segments is not None:
        segments = tuple(_segment(segment, convert) for segment in segments)
    return Stored(_thread(stored.thread, convert), segments)


def _pieces(pieces: Pieces, convert: Convert) -> Pieces:
    return Pieces(tuple(_segment(segment, convert) for segment in pieces.segments))


def _candidate(candidate: Candidate, convert: Convert) -> Candidate:
    return replace(candidate, thread=_thread(candidate.thread, convert))


def _stale(stale: Stale, convert: Convert) -> Stale:
    return replace(stale, head=stale.head and _checkpoint(stale.head, convert))


# Of what `read` and `scan` give, the records with content.
_CONVERSIONS: dict[type, Callable[[Any, Convert], Any]] = {
    Candidate: _candidate,
    Checkpoint: _checkpoint,
    Entry: _entry,
    Pieces: _pieces,
    Stale: _stale,
    Stored: _stored,
    ThreadRecord: _thread,
}


def _record(record: R, convert: Convert) -> R:
    conversion = _CONVERSIONS.get(type(record))
    converted: R = conversion(record, convert) if conversion else record
    return converted


def _receipt(receipt: Receipt, convert: Convert) -> Receipt:
    if not receipt.entries:
        return receipt
    return replace(receipt, entries=tuple(_entry(e, convert) for e in receipt.entries))


def _write(write: Write, convert: Convert) -> Write:
    return replace(
        write,
        start=write.start and _start(write.start, write.thread, convert),
        checkpoint=write.checkpoint and _checkpoint(write.checkpoint, convert),
        segments=tuple(_segment(segment, convert) for segment in write.segments),
        details=write.details and _details(write.details, write.thread, convert),
        entries=tuple(_entry(entry, convert) for entry in write.entries),
    )


def _start(start: Start, thread: str, convert: Convert) -> Start:
    return replace(start, metadata=convert(start.metadata, ("thread", thread)))


def _details(details: Details, thread: str, convert: Convert) -> Details:
    if isinstance(details.metadata, Unset):
        return details
    return replace(details, metadata=convert(details.metadata, ("thread", thread)))


def _plan(plan: FamilyPlan, convert: Convert) -> FamilyPlan:
    return replace(
        plan,
        relinks=tuple(_relink(relink, convert) for relink in plan.relinks),
        packed=tuple(_segment(segment, convert) for segment in plan.packed),
    )


def _relink(relink: Relink, convert: Convert) -> Relink:
    return replace(relink, link=convert(relink.link, ("link", relink.child.id)))


def _adoption(adoption: Adoption, convert: Convert) -> Adoption:
    return replace(
        adoption,
        threads=tuple(_thread(thread, convert) for thread in adoption.threads),
        checkpoints=tuple(_checkpoint(c, convert) for c in adoption.checkpoints),
        entries=tuple(_entry(entry, convert) for entry in adoption.entries),
        segments=tuple(_segment(segment, convert) for segment in adoption.segments),
    )
