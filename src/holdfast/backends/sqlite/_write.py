"""One write and one prune inside a transaction, statement by statement."""

from __future__ import annotations

from typing import Any

import apsw
import orjson
from msgspec.structs import asdict, replace

from holdfast._port import FamilyPlan, Prune, Pruned, Receipt, Start, Write
from holdfast._port.removal import merged
from holdfast._values.records import (
    UNSET,
    Checkpoint,
    Entry,
    Run,
    Segment,
    ThreadRecord,
    Unset,
)
from holdfast.backends._sql.conflicts import (
    refusal,
    removed,
    stale_plan,
    taken_entry,
    taken_id,
    taken_segment,
)
from holdfast.backends._sql.rows import JOINED, CheckpointRow, Row, new_thread_row
from holdfast.backends.sqlite._graves import erase_name, find_thread, find_tombstone
from holdfast.backends.sqlite._rows import CODEC, segment_row
from holdfast.backends.sqlite._search import reset_search
from holdfast.backends.sqlite._statements import QUERIES, row, rows
from holdfast.errors import Conflict

# What every save runs.
NEXT_SEQ, MOVE_HEAD, INSERT_CHECKPOINT, INSERT_SEGMENT = map(
    QUERIES.__getitem__,
    ("next_seq", "move_known_head", "insert_checkpoint", "insert_segment"),
)
INSERT_ENTRY, REPLACE_ENTRY, LIVE_THREAD, HAS_ENTRY, TOUCH_KNOWN = map(
    QUERIES.__getitem__,
    ("insert_entry", "replace_entry", "live_thread", "has_entry", "touch_known_thread"),
)


def next_seq(cursor: apsw.Cursor) -> int:
    """The number of the next change."""
    found: list[Row] = cursor.execute(NEXT_SEQ).fetchall()
    number: int = found[0][0]
    return number


class SqliteWrite:
    """One write being applied: the numbers it takes and the thread it changes.

    The statements of a save have the cursor of the transaction.
    """

    __slots__ = (
        "changed", "cursor", "db", "family", "is_stored", "last", "number", "seq",
        "write",
    )  # fmt: skip

    def __init__(self, cursor: apsw.Cursor, write: Write, seq: int) -> None:
        self.cursor = cursor
        self.db = cursor.connection
        self.write = write
        self.seq = seq
        own = write.checkpoint or write.turn or write.marks or write.details
        # Whether a row gets the last number: some writes only check, or begin a thread.
        forks = write.start is not None and write.start.head is not None
        self.is_stored = bool(own or write.forget or write.entries or forks)
        # A forgotten entry may have had the last number, which must not be given again.
        alone = 1 if own or write.forget or not write.entries else 0
        # The last number that is used. An entry that is there already uses none.
        self.last = seq + alone - 1
        # The value of ``changed`` in the row of the thread.
        self.changed = self.last + len(write.entries)
        self.number, self.family = self._thread()

    def receipt(self) -> Receipt:
        """Carry everything out."""
        write = self.write
        if write.checkpoint is not None:
            self._insert_checkpoint(write.checkpoint)
            self._insert_segments(write.segments)
        elif write.turn is not None:
            self._log(write.turn.kind, write.turn.target)
        elif write.marks:
            self._mark()
        elif write.details is not None:
            self._describe()
        elif write.start is not None and write.start.head is not None:
            self._log("fork", write.start.head)
        elif write.forget:
            self._log("forget", None)
        entries = self._journal() if write.entries or write.forget else ()
        return Receipt(self.seq, self.family, self.number, entries)

    # --- the thread -------------------------------------------------------------------

    def _thread(self) -> tuple[int, int]:
        write = self.write
        if isinstance(write.expect, Unset):
            found = self._find_or_touch()
        elif write.checkpoint is not None:
            found = self._move_head(self.seq, write.expect)
        elif write.turn is not None:
            self._must_exist(write.turn.target)
            found = self._move_head(write.turn.target.seq, write.expect)
        else:
            found = self._as_expected(write.expect)
        return found or self._start()

    def _as_expected(self, expected: Checkpoint | None) -> tuple[int, int] | None:
        if expected is None and self._must_be_new():
            return None
        values = {
            "name": self.write.thread,
            "head": expected.seq if expected else None,
        }
        found = self._numbers(row(self.cursor, "thread_at_head", **values))
        if found is None and expected is not None:
            raise self._conflict()
        return self._find_or_touch() if found and self._is_journaled() else found

    def _must_be_new(self) -> bool:
        """True if no thread may exist; one with only a journal may, but for a fork."""
        start = self.write.start
        return start is not None and not (self._is_journaled() and not start.head)

    def _is_journaled(self) -> bool:
        return bool(self.write.entries or self.write.forget)

    def _find_or_touch(self) -> tuple[int, int] | None:
        return self._find() if self.last < self.seq else self._touch(self.changed)

    def _find(self) -> tuple[int, int] | None:
        """The thread of a write of entries only; touched if one of them is new."""
        name = self.write.thread
        found: list[Row] = self.cursor.execute(LIVE_THREAD, (name,)).fetchall()
        if not found:
            return None
        number, family = found[0]
        if not self.write.replace_entries:
            for entry in self.write.entries:
                self.changed -= self._is_taken(entry, number, family)
        # Before the entries: in a folder the thread begins the line of a write.
        if self.changed >= self.seq:
            self._touch_known(number, self.changed)
        return number, family

    def _is_taken(self, entry: Entry, number: int, family: int) -> bool:
        if self.write.family_wide:
            return self._taken(entry, family) is not None
        place = (number, entry.checkpoint, entry.key)
        return bool(self.cursor.execute(HAS_ENTRY, place).fetchall())

    def _taken(self, entry: Entry, family: int) -> Entry | None:
        """The entry that is in force in the family before this write."""
        place = {"checkpoint": entry.checkpoint, "key": entry.key}
        found = row(self.cursor, "entry_in_family", family=family, **place)
        return CODEC.entry(found[1:], found[0]) if found else None

    def _touch(self, changed: int) -> tuple[int, int] | None:
        values = {"name": self.write.thread, "changed": changed, "at": self.write.at}
        return self._numbers(row(self.cursor, "touch_thread", **values))

    def _touch_known(self, number: int, changed: int) -> None:
        values = (changed, self.write.at, number)
        self.cursor.execute(TOUCH_KNOWN, values)

    def _move_head(
        self, head: int, expected: Checkpoint | None
    ) -> tuple[int, int] | None:
        changed, at, name = self.changed, self.write.at, self.write.thread
        was = None
        if expected is not None:
            number, family, was = expected.thread_number, expected.family, expected.seq
            values = (head, changed, at, number, family, was, name)
            self.cursor.execute(MOVE_HEAD, values)
            if self.db.changes():
                return number, family
        found = self.cursor.execute(
            QUERIES["move_head"], (head, changed, at, name, was)
        ).fetchall()
        if not found and expected is not None:
            raise self._conflict()
        return self._numbers(found[0]) if found else None

    def _numbers(self, found: Row | None) -> tuple[int, int] | None:
        return (found[0], found[1]) if found else None

    def _start(self) -> tuple[int, int]:
        start = self.write.start
        if start is None:
            raise self._conflict()
        if row(self.cursor, "live_thread", name=self.write.thread):
            raise self._conflict("thread_exists" if start.head else "head_moved")
        if not start.anew and find_tombstone(self.cursor, self.write.thread):
            raise self._conflict()
        if start.head is not None:
            self._must_exist(start.head)
        return self._insert_thread(start)

    def _insert_thread(self, start: Start) -> tuple[int, int]:
        values = asdict(new_thread_row(self.write, start, self.changed))
        values["number"] = None  # SQLite gives the next one
        if self.write.checkpoint:
            values["head"] = self.seq
        created = row(self.cursor, "start_thread", **values)
        assert created is not None
        number: int = created[0]
        family = start.head.family if start.head is not None else number
        if start.head is None:
            rows(self.cursor, "found_family", number=number)
        rows(self.cursor, "seal_thread", number=number)
        return number, family

    def _must_exist(self, checkpoint: Checkpoint) -> Checkpoint:
        found = row(self.cursor, "checkpoint_by_seq", seq=checkpoint.seq)
        if found is None:
            raise removed(checkpoint)
        return CODEC.checkpoint(found)

    def _conflict(self, code: str = "head_moved") -> Conflict:
        found = find_thread(self.cursor, self.write.thread)
        thread = CODEC.thread(found) if found else None
        draft = self.write.checkpoint
        id_taken = False
        if thread is not None and draft is not None:
            place = {"id": draft.id, "family": thread.family}
            id_taken = row(self.cursor, "checkpoint_by_id", **place) is not None
        return refusal(self.write, thread, id_taken=id_taken, code=code)

    # --- what goes into it ------------------------------------------------------------

    def _insert_checkpoint(self, c: Checkpoint) -> None:
        parent = (
            self.write.expect.seq if isinstance(self.write.expect, Checkpoint) else None
        )
        values = CODEC.checkpoint_row(
            c, seq=self.seq, family=self.family, thread=self.number, parent=parent
        )
        try:
            self.cursor.execute(INSERT_CHECKPOINT, values[JOINED:])
        except apsw.ConstraintError:
            raise taken_id(self.write.thread, c.id) from None

    def _insert_segments(self, segments: tuple[Segment, ...]) -> None:
        try:
            for segment in segments:
                self.cursor.execute(INSERT_SEGMENT, segment_row(self.family, segment))
        except apsw.ConstraintError:
            raise taken_segment(self.write.thread) from None

    def _journal(self) -> tuple[Entry, ...]:
        """Record and forget; gives the entries in force."""
        entries = tuple([self._record(entry) for entry in self.write.entries])
        if self.write.entries and self.seq <= self.last < self.changed:
            self._touch_known(self.number, self.last)
        for key in self.write.forget:
            rows(self.cursor, "forget_entry", thread=self.number, key=key)
        return entries

    def _record(self, entry: Entry) -> Entry:
        insert = REPLACE_ENTRY if self.write.replace_entries else INSERT_ENTRY
        seq = self.last + 1
        if self.write.family_wide:
            taken = self._taken(entry, self.family)
            if taken is not None:
                return taken
        values = CODEC.entry_row(entry, seq=seq, thread=self.number)
        self.cursor.execute(insert, values)
        if self.db.changes():
            self.last = seq
            return replace(entry, seq=seq)
        if self.write.new_entries and not entry.checkpoint:
            raise taken_entry(self.write.thread)
        place = {"checkpoint": entry.checkpoint, "key": entry.key}
        found = row(self.cursor, "entry", thread=self.number, **place)
        assert found is not None
        return CODEC.entry(found, entry.thread)

    def _mark(self) -> None:
        for mark in self.write.marks:
            marked = mark.applied(self._must_exist(mark.checkpoint))
            rewrite(self.db, marked.seq, label=marked.label, tags=marked.tags)
        self._log("mark", self.write.marks[-1].checkpoint)

    def _describe(self) -> None:
        details = self.write.details
        assert details is not None
        place = {"family": self.family, "number": self.number}
        if not isinstance(details.owner, Unset):
            rows(self.cursor, "set_owner", owner=details.owner, **place)
        if not isinstance(details.metadata, Unset):
            rows(self.cursor, "set_metadata", metadata=details.metadata, **place)
        if not isinstance(details.agent, Unset):
            rows(self.cursor, "set_agent", agent=details.agent, **place)
        rows(self.cursor, "seal_thread", number=self.number)
        self._log("describe", None)

    def _log(self, kind: str, target: Checkpoint | None) -> None:
        expect, last = self.write.expect, self.write.last_move
        if last is not None:
            found = row(self.cursor, "last_thread_move", number=self.number)
            if found != (last,):
                raise stale_plan()
        rows(
            self.cursor,
            "insert_move",
            seq=self.seq,
            thread=self.number,
            kind=kind + self.write.proof,
            source=expect.seq if isinstance(expect, Checkpoint) else None,
            target=target.seq if target else None,
            at=self.write.at,
        )


def rewrite(
    db: apsw.Connection, seq: int, *, parent: int | Unset | None = UNSET, **fields: Any
) -> None:
    """Change what may change of a checkpoint's row, and its checksum with it."""
    stored = row(db, "checkpoint_by_seq", seq=seq)
    assert stored is not None
    c = replace(CODEC.checkpoint(stored), **fields)
    if isinstance(parent, Unset):
        parent = CheckpointRow(*stored).parent
    changed = CODEC.checkpoint_row(
        c, seq=seq, family=c.family, thread=c.thread_number, parent=parent
    )
    rows(db, "update_checkpoint", **asdict(CheckpointRow(*changed)))


class SqlitePrune:
    """One prune being carried out, counting what goes."""

    __slots__ = ("at", "bytes", "checkpoints", "db", "segments", "seq", "threads")

    def __init__(self, db: apsw.Connection, at: int) -> None:
        self.db = db
        self.at = at
        self.seq = 0
        self.threads = self.checkpoints = self.segments = self.bytes = 0

    def carry_out(self, plan: Prune) -> Pruned:
        """Remove everything the plan names."""
        self._check_logs(plan)
        self._write(plan.first)
        self.seq = next_seq(self.db.cursor())
        for thread in plan.threads:
            if thread.deleted_at is None:
                thread = self._drop_thread(thread)  # noqa: PLW2901 - its tombstone
            if plan.erase:
                erase_name(self.db, thread)
        for family in plan.families:
            self._thin_family(family)
        if plan.forget_before is not None:
            self._forget(plan.forget_before)
        self._write(plan.then)
        return Pruned(self.threads, self.checkpoints, self.segments, self.bytes)

    def _check_logs(self, plan: Prune) -> None:
        for family in plan.families:
            if family.logged is not None:
                logged = row(self.db, "family_log", family=family.family)
                if logged != family.logged:
                    raise stale_plan()

    def _forget(self, before: int) -> None:
        forgotten = rows(self.db, "forget_tombstones", before=before)
        if forgotten:
            # The search index may still have what only the tombstones told it to drop.
            reset_search(self.db, max(changed for (changed,) in forgotten))
        rows(self.db, "forget_moves")

    def _write(self, writes: tuple[Write, ...]) -> None:
        cursor = self.db.cursor()
        for write in writes:
            SqliteWrite(cursor, write, next_seq(cursor)).receipt()

    def _drop_thread(self, thread: ThreadRecord) -> ThreadRecord:
        """Leave a tombstone of a thread, and give it."""
        buried = row(
            self.db,
            "bury_thread",
            name=thread.id,
            changed=thread.changed,
            at=self.at,
            seq=self.seq,
        )
        if buried is None:
            raise stale_plan()
        number: int = buried[0]
        rows(self.db, "seal_thread", number=number)
        rows(self.db, "delete_thread_entries", number=number)
        rows(self.db, "delete_thread_moves", number=number)
        tombstone = replace(thread, deleted_at=self.at, changed=self.seq)
        self._log("delete", number)
        self.threads += 1
        living = row(self.db, "living_threads", family=thread.family)
        if living == (0,):
            self._drop_family(thread.family)
        return tombstone

    def _drop_family(self, family: int) -> None:
        freed = rows(self.db, "delete_family_checkpoints", family=family)
        self.checkpoints += len(freed)
        self.bytes += sum(size for (size,) in freed)
        self._free(family, Run(0, 0xFFFF_FFFF))

    def _thin_family(self, plan: FamilyPlan) -> None:
        doomed = _json([c.seq for c in plan.checkpoints])
        checked = row(
            self.db,
            "plan_is_stale",
            family=plan.family,
            doomed=doomed,
            unmarked=sum(not (c.label or c.tags) for c in plan.checkpoints),
            children=_json([r.child.seq for r in plan.relinks]),
            adopters=_json(list({r.parent.seq for r in plan.relinks if r.parent})),
            known=plan.known,
        )
        if checked != (0,):
            raise stale_plan()
        for relink in plan.relinks:
            above = relink.parent.seq if relink.parent else None
            rewrite(self.db, relink.child.seq, link=relink.link, parent=above)
        self._remove(plan, doomed)
        for move in plan.moves:
            rows(self.db, "rewrite_move", seq=move.seq, kind=move.kind)
        for run in merged((*plan.free, *(Run(s.number, s.last) for s in plan.packed))):
            self._clear(plan, run)
        for segment in plan.packed:
            values = segment_row(plan.family, segment)
            self.db.execute(QUERIES["insert_segment"], values)
            self.segments -= segment.count
            self.bytes -= len(segment.data)

    def _remove(self, plan: FamilyPlan, doomed: str) -> None:
        ids = _json([c.id for c in plan.checkpoints])
        rows(self.db, "delete_checkpoint_entries", family=plan.family, ids=ids)
        rows(self.db, "delete_checkpoint_moves", family=plan.family, doomed=doomed)
        for number in rows(self.db, "threads_of", doomed=doomed):
            self._log("prune", *number)
        freed = rows(self.db, "delete_checkpoints", doomed=doomed)
        self.checkpoints += len(freed)
        self.bytes += sum(size for (size,) in freed)

    def _clear(self, plan: FamilyPlan, run: Run) -> None:
        """Remove what is freed or replaced, if it is all there and nothing more."""
        bounds = key_bounds(plan.family, run)
        if row(self.db, "segments_are_divided", **bounds) != (0,):
            raise stale_plan()
        before = self.segments
        self._free(plan.family, run)
        is_whole = self.segments - before == run.last - run.first + 1
        if not is_whole and any(run.first <= s.number <= run.last for s in plan.packed):
            raise stale_plan()

    def _free(self, family: int, run: Run) -> None:
        bounds = key_bounds(family, run)
        [(count, size)] = rows(self.db, "measure_segments", **bounds)
        rows(self.db, "delete_segments", **bounds)
        self.segments += count
        self.bytes += size

    def _log(self, kind: str, number: int) -> None:
        values = {"seq": self.seq, "thread": number, "kind": kind, "at": self.at}
        rows(self.db, "insert_move", source=None, target=None, **values)
        self.seq += 1


def key_bounds(family: int, run: Run) -> dict[str, int]:
    """The first and the last key of a run."""
    return {"first": family << 32 | run.first, "last": family << 32 | run.last}


def _json(values: list[Any]) -> str:
    return orjson.dumps(values).decode()
