"""The writes of the port: most in one statement, the others in several."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any

from msgspec.structs import asdict, replace
from psycopg import errors

from holdfast._port import Receipt, Write
from holdfast._values.records import UNSET, Checkpoint, Entry, Unset
from holdfast.backends._sql.conflicts import refusal, removed, stale_plan, taken_entry
from holdfast.backends._sql.rows import CheckpointRow, new_thread_row
from holdfast.backends.postgres import _rows
from holdfast.backends.postgres._errors import taken
from holdfast.backends.postgres._migrations import FORMAT
from holdfast.backends.postgres._rows import CODEC
from holdfast.backends.postgres._statements import Statements
from holdfast.errors import Conflict

# The durability of a transaction and the format that this version writes, in one
# number: `enter` in ``functions.sql`` refuses a format other than the schema's.
Durable = int
AT_ONCE, BY_CALLER = FORMAT << 2 | 1, FORMAT << 2 | 2
NOT_AT_ONCE = FORMAT << 2


def can_stand_alone(write: Write) -> bool:
    """True if one statement can do a write, in one round trip."""
    if write.new_entries or write.proof:
        return False  # a key that is taken must undo the statement
    if write.checkpoint is not None:
        return not write.family_wide
    return is_journaled(write) and not is_logged(write)


async def apply_together(
    db: Statements, writes: Sequence[Write], durable: Durable
) -> list[Receipt]:
    """Writes inside one transaction."""
    if len(writes) > 1 or any(write.family_wide for write in writes):
        await hold_threads(db, writes)
    made = {
        place: await PostgresWrite(db, writes[place], durable).receipt()
        for place in in_order_of_names(writes)
    }
    return [made[place] for place in range(len(writes))]


async def apply_alone(db: Statements, write: Write, durable: Durable) -> Receipt | None:
    """A write in one statement; ``None`` if the thread for its entries is missing."""
    try:
        if write.checkpoint is not None:
            return await save(db, write, durable)
        return await record(db, write, durable)
    except errors.UniqueViolation as error:
        raise taken(write, error) from None


def save(db: Statements, write: Write, durable: Durable) -> Awaitable[Receipt]:
    """A save on the head that is expected, or the first of a thread."""
    if len(write.segments) == 1 and is_plain_save(write):
        return _append(db, write, durable)
    return _save(db, write, durable)


async def _save(db: Statements, write: Write, durable: Durable) -> Receipt:
    parent = write.expect if isinstance(write.expect, Checkpoint) else None
    assert write.checkpoint is not None
    if parent is None and write.start is None:
        raise await conflict(db, write)
    values: dict[str, Any] = {
        **_rows.checkpoint_values(write.checkpoint, parent.seq if parent else None),
        "durable": durable,
        "family": parent.family if parent else None,
        "thread": write.thread,
        "expected": parent.seq if parent else None,
        "at": write.at,
        # In one order: another fork may insert the same numbers.
        **_rows.segment_values(sorted(write.segments, key=attrgetter("number"))),
        **_rows.start_values(None if parent else write.start),
    }
    statement = "save"
    if is_journaled(write):
        statement = "save_and_record"
        values |= _entry_values(write)
    found = await db.row(statement, **values)
    if found is None or found[0] is None:
        raise await conflict(db, write)
    seq, family, number = found[0]
    entries = await _in_force(db, write, found[1]) if write.entries else ()
    if entries is None:
        raise await conflict(db, write)
    return Receipt(seq, family, number, entries)


async def _append(db: Statements, write: Write, durable: Durable) -> Receipt:
    """A plain save of one segment."""
    found = await db.row("append", durable=durable, **_rows.append_values(write))
    if found is None or found[0] is None:
        raise await conflict(db, write)
    return Receipt(*found[0])


async def save_each(
    db: Statements, writes: Sequence[Write], durable: Durable
) -> list[Receipt | None]:
    """Saves on the heads that are expected, ``None`` for each that could not be made.

    It never waits: a thread that another transaction holds is skipped.
    """
    values = _rows.save_values(writes)
    made = await db.rows("save_each", durable=durable, **values)
    receipts = {place: Receipt(*numbers) for place, *numbers in made}
    return [receipts.get(place) for place in range(1, len(writes) + 1)]


async def record(db: Statements, write: Write, durable: Durable) -> Receipt | None:
    """Entries in the journal of a thread; ``None`` if there is no such thread.

    Also ``None`` if its head is not the expected one, unless this write has moved it.
    """
    expected = UNSET if is_logged(write) else write.expect
    found = await db.row(
        "record",
        durable=durable,
        thread=write.thread,
        at=write.at,
        expects=not isinstance(expected, Unset),
        expected_head=expected.seq if isinstance(expected, Checkpoint) else None,
        logs=bool(write.forget) and not is_logged(write),
        **_entry_values(write),
    )
    if found is None or found[0] is None:
        return None
    family, number, *seqs = found[0]
    entries = await _in_force(db, write, found[0])
    if entries is None:  # forgotten by another transaction meanwhile
        return await record(db, write, durable)
    return Receipt(max((seq or 0 for seq in seqs), default=0), family, number, entries)


def _entry_values(write: Write) -> dict[str, Any]:
    return {
        "family_wide": write.family_wide,
        "replaces": write.replace_entries,
        "forgotten": [*write.forget],
        **_rows.entry_values(write.entries),
    }


async def _in_force(
    db: Statements, write: Write, recorded: Sequence[Any]
) -> tuple[Entry, ...] | None:
    """The entries in force: those that existed before are read.

    ``None`` if one of these has been removed meanwhile.
    """
    family, number, *seqs = recorded
    found: list[Entry] = []
    for entry, seq in zip(write.entries, seqs, strict=True):
        if seq is not None:
            found.append(replace(entry, seq=seq))
            continue
        if write.new_entries and not entry.checkpoint:
            raise taken_entry(write.thread)
        place = {"checkpoint": entry.checkpoint, "key": entry.key, "family": family}
        if write.family_wide:
            row = await db.row("entry_in_family", **place)
        else:
            row = await db.row("entry", thread=number, **place)
            row = row and (entry.thread, *row)
        if row is None:
            return None
        found.append(CODEC.entry(row[1:], row[0]))
    return tuple(found)


def is_plain_save(write: Write) -> bool:
    """True if a write is a save on a known head: no marks, no journal."""
    return (
        isinstance(write.expect, Checkpoint)
        and write.checkpoint is not None
        and write.checkpoint.label is None
        and not write.checkpoint.tags
        and not (write.entries or write.forget)
    )


def is_journaled(write: Write) -> bool:
    """True if a write changes the journal."""
    return bool(write.entries or write.forget)


def is_logged(write: Write) -> bool:
    """True if a write leaves a row in the log of moves."""
    forks = write.start is not None and write.start.head is not None
    return bool(write.turn or write.marks or write.details or forks)


class PostgresWrite:
    """One write being applied inside a transaction of several statements."""

    def __init__(self, db: Statements, write: Write, durable: Durable) -> None:
        self.db = db
        self.write = write
        self.durable: Durable = durable
        self.number = self.family = self.seq = 0

    async def receipt(self) -> Receipt:
        """Apply the write."""
        write = self.write
        try:
            if write.checkpoint is not None:
                return await save(self.db, write, self.durable)
            if is_logged(write) or not is_journaled(write):
                await self._change()
            if is_journaled(write):
                receipt = await self._record()
            else:
                receipt = Receipt(self.seq, self.family, self.number)
        except errors.UniqueViolation as error:
            raise taken(write, error) from None
        if write.proof:
            await self._prove(receipt)
        return receipt

    async def _prove(self, receipt: Receipt) -> None:
        """Append the proof to the kind of the move that was logged."""
        proven = await self.db.row(
            "prove_move",
            family=receipt.family,
            number=receipt.thread_number,
            proof=self.write.proof,
            last_move=self.write.last_move,
        )
        if proven is None:
            raise stale_plan()

    async def _record(self) -> Receipt:
        receipt = await record(self.db, self.write, self.durable)
        if receipt is None:
            if isinstance(self.write.expect, Checkpoint):
                raise await conflict(self.db, self.write)
            await self._enter()
            await self._start()
            receipt = await record(self.db, self.write, self.durable)
            assert receipt is not None
        return replace(receipt, seq=self.seq) if self.seq else receipt

    async def _change(self) -> None:
        write = self.write
        only_checks = not is_logged(write) and write.start is None
        if isinstance(write.expect, Checkpoint) and write.turn is None:
            await self._hold(write.expect.family, write.expect.seq)
        elif only_checks and write.expect is None:
            if not await self._place():
                raise await conflict(self.db, write)
            await self._hold(self.family, None)
        if only_checks:
            return
        await self._enter()
        for family in sorted(set(families_read(write))):
            await self.db.rows("hold_family", family=family)
        if write.turn is not None:
            await self._turn()
        elif not isinstance(write.expect, Unset) or not await self._touch():
            await self._start()
        await self._contents()

    async def _contents(self) -> None:
        start = self.write.start
        if self.write.marks:
            await self._mark()
        elif self.write.details is not None:
            await self._describe()
        elif start is not None and start.head is not None:
            await self._log("fork", start.head)

    async def _enter(self) -> None:
        found = await self.db.row("enter", durable=self.durable)
        assert found is not None
        self.seq = found[0]

    # --- the thread -------------------------------------------------------------------

    async def _place(self) -> bool:
        found = await self.db.row("place", name=self.write.thread)
        if found is not None:
            self.family, self.number = found
        return found is not None

    async def _hold(self, family: int, head: int | None) -> None:
        """Make sure that the head is the expected one until the transaction ends."""
        place = {"family": family, "name": self.write.thread}
        found = await self.db.row("hold_head", head=head, **place)
        if found is None:
            raise await conflict(self.db, self.write)
        self.family, self.number = family, found[0]

    async def _touch(self) -> bool:
        touched = await self._place() and await self.db.row(
            "touch_thread",
            family=self.family,
            number=self.number,
            changed=self.seq,
            at=self.write.at,
        )
        return bool(touched)

    async def _turn(self) -> None:
        turn, expected = self.write.turn, self.write.expect
        assert turn is not None
        if not await self._place():
            raise await conflict(self.db, self.write)
        await self._must_exist(turn.target)
        moved = await self.db.row(
            "move_head",
            family=self.family,
            name=self.write.thread,
            head=turn.target.seq,
            changed=self.seq,
            at=self.write.at,
            was=expected.seq if isinstance(expected, Checkpoint) else None,
        )
        if moved is None:
            raise await conflict(self.db, self.write)
        self.number = moved[0]
        await self._log(turn.kind, turn.target)

    async def _start(self) -> None:
        start = self.write.start
        if start is None:
            raise await conflict(self.db, self.write)
        if start.head is not None:
            await self._must_exist(start.head)
        values = asdict(new_thread_row(self.write, start, self.seq))
        begun = await self.db.row(
            "begin_thread", at=self.write.at, anew=start.anew, **values
        )
        if begun is None or begun[0] is None:
            code = "thread_exists" if start.head else "head_moved"
            raise await conflict(self.db, self.write, code)
        self.family, self.number = begun[0]

    async def _must_exist(self, checkpoint: Checkpoint) -> Checkpoint:
        found = await self.db.row(
            "checkpoint_by_seq", family=checkpoint.family, seq=checkpoint.seq
        )
        if found is None:
            raise removed(checkpoint)
        return CODEC.checkpoint(found)

    # --- what goes into it ------------------------------------------------------------

    async def _mark(self) -> None:
        for mark in sorted(self.write.marks, key=lambda mark: mark.checkpoint.seq):
            family, seq = mark.checkpoint.family, mark.checkpoint.seq
            await self.db.rows("hold_checkpoint", family=family, seq=seq)
            marked = mark.applied(await self._must_exist(mark.checkpoint))
            await rewrite(self.db, marked, label=marked.label, tags=marked.tags)
        await self._log("mark", self.write.marks[-1].checkpoint)

    async def _describe(self) -> None:
        details = self.write.details
        assert details is not None
        place = {"family": self.family, "number": self.number}
        if not isinstance(details.owner, Unset):
            await self.db.rows("set_owner", owner=details.owner, **place)
        if not isinstance(details.metadata, Unset):
            await self.db.rows("set_metadata", metadata=details.metadata, **place)
        if not isinstance(details.agent, Unset):
            await self.db.rows("set_agent", agent=details.agent, **place)
        await self._log("describe", None)

    async def _log(self, kind: str, target: Checkpoint | None) -> None:
        expect = self.write.expect
        await self.db.rows(
            "insert_move",
            family=self.family,
            seq=self.seq,
            thread=self.number,
            kind=kind,
            source=expect.seq if isinstance(expect, Checkpoint) else None,
            target=target.seq if target else None,
            at=self.write.at,
        )


async def rewrite(
    db: Statements,
    checkpoint: Checkpoint,
    *,
    parent: Checkpoint | Unset | None = UNSET,
    **fields: Any,
) -> None:
    """Update the mutable columns of a checkpoint's row, and its checksum."""
    place = {"family": checkpoint.family, "seq": checkpoint.seq}
    stored = await db.row("checkpoint_by_seq", **place)
    if stored is None:
        raise stale_plan()
    c = replace(CODEC.checkpoint(stored), **fields)
    above = CheckpointRow(*stored).parent
    if not isinstance(parent, Unset):
        c = replace(c, parent=parent.id if parent else None)
        above = parent.seq if parent else None
    await db.rows("update_checkpoint", **_rows.checkpoint_values(c, above) | place)


async def conflict(db: Statements, write: Write, code: str = "head_moved") -> Conflict:
    """The error for a write that cannot be made; reads the thread to name it."""
    draft = write.checkpoint
    found = await db.row("obstacle", name=write.thread, id=draft.id if draft else None)
    id_taken, *columns = found or (False,)
    thread = CODEC.thread(tuple(columns)) if columns else None
    return refusal(write, thread, id_taken=id_taken, code=code)


# --- the order of locks ---------------------------------------------------------------

# A transaction of several changes first locks the rows of all its threads, by family
# and number, in one statement; then names, in alphabetical order. Two transactions that
# keep to this order cannot deadlock.


async def hold_threads(
    db: Statements, writes: Sequence[Write], thinned: Iterable[int] = ()
) -> None:
    """Lock all threads of a transaction that writes, and thins some families."""
    whole = {family for write in writes for family in families_read(write)}
    for write in writes:
        if write.family_wide and (place := await db.row("place", name=write.thread)):
            whole.add(place[0])
    await db.rows(
        "hold",
        names=list({write.thread for write in writes}),
        whole=list(whole),
        thinned=list(set(thinned)),
    )


def families_read(write: Write) -> Iterator[int]:
    """The families with a checkpoint that must not be removed before a write ends."""
    if write.turn is not None:
        yield write.turn.target.family
    if write.start is not None and write.start.head is not None:
        yield write.start.head.family
    for mark in write.marks:
        yield mark.checkpoint.family


def in_order_of_names(writes: Sequence[Write]) -> list[int]:
    """The order in which writes are made: neighbours that begin threads go by name.

    Other writes keep their place, since one may change a thread begun before it.
    """

    def begins(place: int) -> bool:
        return writes[place].start is not None

    found: list[int] = []
    for is_beginning, places in groupby(range(len(writes)), begins):
        found += sorted(places, key=lambda p: writes[p].thread if is_beginning else "")
    return found
