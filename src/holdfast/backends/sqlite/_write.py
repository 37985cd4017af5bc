"""What one write and one prune do inside a transaction."""

from __future__ import annotations

from typing import Any

import apsw
import orjson
from msgspec.structs import replace

from holdfast._port import FamilyPlan, Prune, Pruned, Receipt, Start, Write
from holdfast._values.records import (
    UNSET,
    Checkpoint,
    Entry,
    Run,
    Segment,
    ThreadRecord,
    Unset,
)
from holdfast.backends.sqlite import _rows
from holdfast.backends.sqlite._statements import QUERIES
from holdfast.errors import Conflict, NotFound

PARENT_COLUMN = 3  # of ``checkpoint_full``


def rows(db: apsw.Connection, query: str, /, **values: Any) -> list[_rows.Row]:
    """All rows of a named query; never leaves a cursor open."""
    return db.execute(QUERIES[query], values).fetchall()


def row(db: apsw.Connection, query: str, /, **values: Any) -> _rows.Row | None:
    """The first row of a named query."""
    found = rows(db, query, **values)
    return found[0] if found else None


def next_seq(db: apsw.Connection) -> int:
    """The number of the next change."""
    [(seq,)] = rows(db, "next_seq")
    return int(seq)


class Applied:
    """One write being applied: the numbers it takes and the thread it changes."""

    __slots__ = ("changed", "db", "family", "number", "seq", "write")

    def __init__(self, db: apsw.Connection, write: Write, seq: int) -> None:
        self.db = db
        self.write = write
        self.seq = seq
        own = write.checkpoint or write.turn or write.marks or write.details
        alone = 1 if own or not write.entries else 0
        self.changed = seq + alone + len(write.entries) - 1
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
        entries = self._record() if write.entries else ()
        return Receipt(self.seq, self.family, self.number, entries)

    # --- the thread -------------------------------------------------------------------

    def _thread(self) -> tuple[int, int]:
        write = self.write
        if isinstance(write.expect, Unset):
            found = self._touch()
        elif write.checkpoint is not None:
            found = self._move_head(self.seq, write.expect)
        elif write.turn is not None:
            self._must_exist(write.turn.target)
            found = self._move_head(write.turn.target.seq, write.expect)
        elif write.expect is not None:
            found = self._as_expected(write.expect)
        else:
            found = None
        return found or self._start()

    def _as_expected(self, expected: Checkpoint) -> tuple[int, int]:
        values = {"name": self.write.thread, "head": expected.seq}
        found = self._numbers(row(self.db, "thread_at_head", **values))
        if found is None:
            raise self._conflict(expected)
        return found

    def _touch(self) -> tuple[int, int] | None:
        values = {"name": self.write.thread, "changed": self.changed}
        return self._numbers(row(self.db, "touch_thread", at=self.write.at, **values))

    def _move_head(
        self, head: int, expected: Checkpoint | None
    ) -> tuple[int, int] | None:
        was = expected.seq if expected else None
        values = (head, self.changed, self.write.at, self.write.thread, was)
        found = self.db.execute(QUERIES["move_head"], values).fetchall()
        moved = found[0] if found else None
        if moved is None and expected is not None:
            raise self._conflict(expected)
        return self._numbers(moved)

    def _numbers(self, found: _rows.Row | None) -> tuple[int, int] | None:
        return (found[0], found[1]) if found else None

    def _start(self) -> tuple[int, int]:
        start = self.write.start
        if start is None:
            raise self._conflict(None)
        if row(self.db, "live_thread", name=self.write.thread):
            raise self._conflict(None, "thread_exists" if start.head else "head_moved")
        if not start.anew and row(self.db, "tombstone", name=self.write.thread):
            raise self._conflict(None)
        if start.head is not None:
            self._must_exist(start.head)
        return self._insert_thread(start)

    def _insert_thread(self, start: Start) -> tuple[int, int]:
        head = start.head.seq if start.head else None
        created = row(
            self.db,
            "start_thread",
            name=self.write.thread,
            family=start.head.family if start.head else 0,
            kind=start.kind,
            owner=start.owner,
            agent=start.agent,
            metadata=start.metadata,
            head=self.seq if self.write.checkpoint else head,
            changed=self.changed,
            at=self.write.at,
            forked_thread=start.origin.thread if start.origin else None,
            forked_checkpoint=start.origin.checkpoint if start.origin else None,
        )
        assert created is not None
        number: int = created[0]
        if start.head is not None:
            return number, start.head.family
        rows(self.db, "found_family", number=number)
        return number, number

    def _must_exist(self, checkpoint: Checkpoint) -> Checkpoint:
        found = row(self.db, "checkpoint_by_seq", seq=checkpoint.seq)
        if found is None:
            raise NotFound(
                f"checkpoint {checkpoint.id!r} was removed meanwhile; look it up again",
                thread=checkpoint.thread,
                reference=checkpoint.id,
            )
        return _rows.to_checkpoint(found)

    def _conflict(
        self, expected: Checkpoint | None, code: str = "head_moved"
    ) -> Conflict:
        name = self.write.thread
        found = row(self.db, "thread_by_name", name=name)
        thread = _rows.to_thread(found) if found else None
        if thread is None or thread.deleted_at is not None:
            return gone(name, existed=thread is not None)
        draft = self.write.checkpoint
        if draft is not None:
            place = {"id": draft.id, "family": thread.family}
            if row(self.db, "checkpoint_by_id", **place):
                return taken_id(name, draft.id)
        if code == "thread_exists":
            text = f"thread {name!r} exists already; choose another name"
        else:
            text = f"thread {name!r} has moved on; load it and repeat the change"
        return Conflict(
            text,
            code=code,
            thread=name,
            expected=expected.id if expected else None,
            found=thread.head,
        )

    # --- what goes into it ------------------------------------------------------------

    def _insert_checkpoint(self, c: Checkpoint) -> None:
        parent = (
            self.write.expect.seq if isinstance(self.write.expect, Checkpoint) else None
        )
        values = _rows.checkpoint_row(c, self.seq, self.family, self.number, parent)
        try:
            self.db.execute(QUERIES["insert_checkpoint"], values)
        except apsw.ConstraintError:
            raise taken_id(self.write.thread, c.id) from None

    def _insert_segments(self, segments: tuple[Segment, ...]) -> None:
        statement = QUERIES["insert_segment"]
        try:
            for segment in segments:
                self.db.execute(statement, _rows.segment_row(self.family, segment))
        except apsw.ConstraintError:
            raise Conflict(
                f"thread {self.write.thread!r}: a fork took the segment numbers first",
                code="segment_taken",
                thread=self.write.thread,
            ) from None

    def _record(self) -> tuple[Entry, ...]:
        insert = "replace_entry" if self.write.replace_entries else "insert_entry"
        first = self.changed - len(self.write.entries) + 1
        return tuple(
            self._record_one(insert, seq, entry)
            for seq, entry in enumerate(self.write.entries, first)
        )

    def _record_one(self, insert: str, seq: int, entry: Entry) -> Entry:
        place = {
            "thread": self.number,
            "checkpoint": entry.checkpoint,
            "key": entry.key,
        }
        sum_ = _rows.entry_checksum(self.number, entry)
        values = {"value": entry.data, "at": entry.recorded_at, "checksum": sum_}
        if row(self.db, insert, seq=seq, **place, **values):
            return replace(entry, seq=seq)
        found = row(self.db, "entry", **place)
        assert found is not None
        return _rows.to_entry(found, entry.thread)

    def _mark(self) -> None:
        for mark in self.write.marks:
            marked = mark.applied(self._must_exist(mark.checkpoint))
            rewrite(self.db, marked.seq, label=marked.label, tags=marked.tags)
        self._log("mark", self.write.marks[-1].checkpoint)

    def _describe(self) -> None:
        details = self.write.details
        assert details is not None
        if not isinstance(details.owner, Unset):
            rows(self.db, "set_owner", number=self.number, owner=details.owner)
        if not isinstance(details.metadata, Unset):
            values = {"number": self.number, "metadata": details.metadata}
            rows(self.db, "set_metadata", **values)
        self._log("describe", None)

    def _log(self, kind: str, target: Checkpoint | None) -> None:
        expect = self.write.expect
        rows(
            self.db,
            "insert_move",
            seq=self.seq,
            thread=self.number,
            kind=kind,
            source=expect.seq if isinstance(expect, Checkpoint) else None,
            target=target.seq if target else None,
            at=self.write.at,
        )


def taken_id(thread: str, checkpoint: str) -> Conflict:
    """The id of a save is in use."""
    return Conflict(
        f"checkpoint id {checkpoint!r} is taken by other content; use a new id",
        code="id_taken",
        thread=thread,
    )


def gone(thread: str, *, existed: bool) -> Conflict:
    """The thread of a write is not there, or not any more."""
    code = "thread_deleted" if existed else "thread_missing"
    if existed:
        text = "was deleted; to begin it anew, save with expect=None"
    else:
        text = "does not exist; save to it without expect first"
    return Conflict(f"thread {thread!r} {text}", code=code, thread=thread)


def rewrite(
    db: apsw.Connection, seq: int, *, parent: int | Unset | None = UNSET, **fields: Any
) -> None:
    """Change what may change of a checkpoint's row, and its checksum with it."""
    stored = row(db, "checkpoint_by_seq", seq=seq)
    assert stored is not None
    c = replace(_rows.to_checkpoint(stored), **fields)
    above = stored[PARENT_COLUMN] if isinstance(parent, Unset) else parent
    *_, checksum = _rows.checkpoint_row(c, seq, c.family, c.thread_number, above)
    rows(
        db,
        "update_checkpoint",
        seq=seq,
        parent=above,
        label=c.label,
        tags=_rows.encode_tags(c.tags),
        link=c.link,
        checksum=checksum,
    )


class Pruning:
    """One prune being carried out, counting what goes."""

    __slots__ = ("at", "bytes", "checkpoints", "db", "segments", "seq", "threads")

    def __init__(self, db: apsw.Connection, at: int) -> None:
        self.db = db
        self.at = at
        self.seq = 0
        self.threads = self.checkpoints = self.segments = self.bytes = 0

    def carry_out(self, plan: Prune) -> Pruned:
        """Remove everything the plan names."""
        self._write(plan.first)
        self.seq = next_seq(self.db)
        for thread in plan.threads:
            self._drop_thread(thread)
        for family in plan.families:
            self._thin_family(family)
        if plan.forget_before is not None:
            rows(self.db, "forget_tombstones", before=plan.forget_before)
            rows(self.db, "forget_moves")
        self._write(plan.then)
        return Pruned(self.threads, self.checkpoints, self.segments, self.bytes)

    def _write(self, writes: tuple[Write, ...]) -> None:
        for write in writes:
            Applied(self.db, write, next_seq(self.db)).receipt()

    def _drop_thread(self, thread: ThreadRecord) -> None:
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
        rows(self.db, "delete_thread_entries", number=number)
        rows(self.db, "delete_thread_moves", number=number)
        self._log("delete", number)
        self.threads += 1
        living = row(self.db, "living_threads", family=thread.family)
        if living == (0,):
            self._drop_family(thread.family)

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
        )
        if checked != (0,):
            raise stale_plan()
        for relink in plan.relinks:
            above = relink.parent.seq if relink.parent else None
            rewrite(self.db, relink.child.seq, link=relink.link, parent=above)
        self._remove(plan, doomed)
        for run in plan.free:
            self._free(plan.family, run)

    def _remove(self, plan: FamilyPlan, doomed: str) -> None:
        ids = _json([c.id for c in plan.checkpoints])
        rows(self.db, "delete_checkpoint_entries", family=plan.family, ids=ids)
        rows(self.db, "delete_checkpoint_moves", family=plan.family, doomed=doomed)
        for number in rows(self.db, "threads_of", doomed=doomed):
            self._log("prune", *number)
        freed = rows(self.db, "delete_checkpoints", doomed=doomed)
        self.checkpoints += len(freed)
        self.bytes += sum(size for (size,) in freed)

    def _free(self, family: int, run: Run) -> None:
        bounds = {"first": family << 32 | run.first, "last": family << 32 | run.last}
        [(count, size)] = rows(self.db, "measure_segments", **bounds)
        rows(self.db, "delete_segments", **bounds)
        self.segments += count
        self.bytes += size

    def _log(self, kind: str, number: int) -> None:
        values = {"seq": self.seq, "thread": number, "kind": kind, "at": self.at}
        rows(self.db, "insert_move", source=None, target=None, **values)
        self.seq += 1


def stale_plan() -> Conflict:
    """Something that shall go has changed since it was chosen."""
    return Conflict("the store changed while pruning; prune again", code="plan_stale")


def _json(values: list[Any]) -> str:
    return orjson.dumps(values).decode()
