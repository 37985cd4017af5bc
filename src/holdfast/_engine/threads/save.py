"""Saving a state, or more elements of its lists, as a new checkpoint."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from hashlib import sha256
from typing import TypedDict, Unpack

import msgspec
from msgspec.structs import force_setattr, replace

from holdfast._engine.cache import OpenedCheckpoint
from holdfast._engine.context import Context
from holdfast._engine.files.draft import FilesDraft, FileSource
from holdfast._engine.files.read import find_listing
from holdfast._engine.threads.drafts import Draft, NextState, StateTexts
from holdfast._engine.threads.journal import OF_THREAD, encoded_entries
from holdfast._engine.threads.lineage import Reference, resolve
from holdfast._engine.threads.load import read_texts
from holdfast._port import NEW_THREAD, CheckpointKey, Receipt, Start, Write
from holdfast._values.arguments import checked_items
from holdfast._values.keywords import refuse_unknown
from holdfast._values.limits import LARGEST_STATE, MOST_TAGS, check_size
from holdfast._values.manifest import Manifest, Value, decode_manifest, digest
from holdfast._values.records import (
    SEPARATOR,
    UNSET,
    Checkpoint,
    Entry,
    Unset,
    checked_name,
    encode_metadata,
    with_traceparent,
    without_traceparent,
)
from holdfast._values.reference import checked_id
from holdfast._values.rope import LAST_BLOCK, Blocks, Rope
from holdfast._values.scope_name import refuse_scoped
from holdfast.errors import Conflict, Corrupt, Unstorable


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """The checked options of a save.

    ``once`` are entries of the thread's journal whose keys must be new, ``merged`` the
    entry of a merge, and ``forget`` keys to remove from it. ``commit`` commits the
    write together with others; by default it is committed alone. Without ``files``
    those of the parent stay. The step is that of the parent plus one, and at least
    ``least_step``.
    """

    label: str | None = None
    tags: tuple[str, ...] = ()
    metadata: bytes = b""
    kind: str = "save"
    id: str | None = None
    expect: Reference | Unset | None = UNSET
    journal: tuple[tuple[str, bytes], ...] = ()
    once: tuple[tuple[str, bytes], ...] = ()
    merged: tuple[tuple[str, bytes], ...] = ()
    forget: tuple[str, ...] = ()
    start: Start = NEW_THREAD
    commit: Callable[[Write], Awaitable[Receipt]] | None = None
    files: FilesDraft | None = None
    least_step: int = 1


class SaveOptions(TypedDict, total=False):
    """The options of a save; `Thread.save` explains each."""

    label: str | None
    tags: Sequence[str]
    metadata: Mapping[str, object] | None
    kind: str
    id: str | None
    expect: Reference | Unset | None
    journal: Mapping[str, object] | None
    once: Mapping[str, object] | None
    files: FileSource | None


def options(*, start: Start, **given: Unpack[SaveOptions]) -> Options:
    """The options of a save, checked; refuses what could not be stored."""
    if not given:
        return Options(start=start)
    refuse_unknown("a save", given, SaveOptions)
    label, tags, id_ = given.get("label"), given.get("tags"), given.get("id")
    files = given.get("files")
    return Options(
        label=None if label is None else checked_name(label, "label"),
        tags=() if tags is None else checked_tags(tags),
        metadata=encode_metadata(given.get("metadata")),
        kind=checked_name(given.get("kind", "save"), "kind"),
        id=None if id_ is None else checked_id(id_),
        expect=given.get("expect", UNSET),
        journal=encoded_entries(given.get("journal")),
        once=encoded_entries(given.get("once")),
        start=start,
        files=None if files is None else FilesDraft.of(files),
    )


def checked_tags(tags: object) -> tuple[str, ...]:
    """Tags in order, each once."""
    given = checked_items(tags, "tags")
    checked = tuple(dict.fromkeys(checked_name(tag, "tag") for tag in given))
    check_count(checked)
    return checked


def check_count(tags: Collection[str]) -> None:
    """Refuse more tags than a checkpoint may have."""
    if len(tags) > MOST_TAGS:
        text = f"are {len(tags):,}, and {MOST_TAGS:,} are allowed; use metadata instead"
        raise Unstorable("tags", text)


async def save(
    context: Context,
    thread: str,
    draft: Draft,
    how: Options,
    *,
    if_changed: bool = False,
) -> Checkpoint:
    """Save a draft as the thread's new head; where the head moved, on the new one.

    With ``if_changed`` nothing is saved, and the head returned, if it has this state.
    """
    if SEPARATOR in thread:
        refuse_scoped(thread)
    if if_changed and how.once:
        text = "goes with a save that is made in any case; leave if_changed out"
        raise Unstorable("once", text)
    return await save_as_stored(context, thread, draft, how, if_changed=if_changed)


async def save_as_stored(
    context: Context,
    thread: str,
    draft: Draft,
    how: Options,
    *,
    if_changed: bool = False,
) -> Checkpoint:
    """Like `save`, to a thread by its stored name, which may begin with a scope."""
    attempt = Attempt(context, thread, draft, how, certainly=if_changed)
    if attempt.parent is None:
        await attempt.find_parent()
    saved: Checkpoint | None = None
    while saved is None:
        plan, manifest = await attempt.plan()
        if if_changed and attempt.is_unchanged(manifest):
            saved = await attempt.keep_parent()
            break
        try:
            saved = await attempt.commit(plan, manifest)
        except Conflict as conflict:
            saved = await attempt.settle(conflict)
    if context.after_save is not None:
        await context.after_save(context)
    return saved


async def seen(context: Context, thread: str, id_: str | None) -> Checkpoint | Unset:
    """The checkpoint that a record was loaded from, `UNSET` if it was not loaded.

    Raises `Conflict` if the checkpoint no longer exists.
    """
    if id_ is None:
        return UNSET
    checked_id(id_)
    record = await context.find_thread(thread)
    if record is None:
        raise Conflict(
            f"thread {thread!r} was deleted since it was loaded; to start it again,"
            " save a new record",
            code="thread_deleted",
            thread=thread,
            expected=id_,
        )
    [found] = await context.backend.read([CheckpointKey(record.family, id_)])
    if found is None:
        raise Conflict(
            f"thread {thread!r} has moved on; load it and repeat the change",
            code="head_moved",
            thread=thread,
            expected=id_,
            found=record.head,
        )
    return found


class Attempt:
    """A save that is repeated until it is committed or refused.

    The last checkpoint that this store saved is most likely still the head, and the
    commit checks it. Only a save that may be skipped asks for the head ``certainly``.
    """

    __slots__ = ("context", "draft", "how", "id", "parent", "thread")

    def __init__(
        self,
        context: Context,
        thread: str,
        draft: Draft,
        how: Options,
        *,
        certainly: bool = False,
    ) -> None:
        self.context, self.thread, self.draft, self.how = context, thread, draft, how
        self.id = how.id or context.new_id()
        is_any = how.expect is UNSET and not certainly
        self.parent = context.cache.take(thread) if is_any else None

    async def find_parent(self) -> None:
        """Find the checkpoint to build on, if the cache does not have it."""
        expect = self.how.expect
        if expect is None:
            return
        if isinstance(expect, Unset):
            found = await self.context.find_thread(self.thread)
            self._build_on(found.head if found else None)
        else:
            await self._find_expected(expect)

    async def _find_expected(self, expect: Reference) -> None:
        known = self.context.cache.take(self.thread)
        if known and _is_meant(expect, known.head):
            # The commit checks whether it is still the head.
            self.parent = known
            return
        if known is not None:
            self.context.cache.give(self.thread, known)
        self._build_on(await resolve(self.context, self.thread, expect))

    def _build_on(self, head: Checkpoint | None) -> None:
        self.parent = self.context.known(self.thread, head) if head else None

    async def plan(self) -> tuple[NextState, Manifest]:
        """The next state that the draft makes of the parent, and its manifest."""
        while True:
            blocks = Blocks(self.parent.manifest.next_block if self.parent else 0)
            try:
                plan = await self.draft.plan(self.context, self.parent, blocks)
                if self.how.files is not None:
                    await self._plan_files(plan, self.how.files, blocks)
                elif self.parent is not None:
                    plan.files = self.parent.manifest.files
                    plan.listing = self.parent.listing
            except Corrupt:
                # The segments may be missing because another writer removed them
                # together with the checkpoint; then there is a new head.
                if not await self._found_new_head():
                    raise
            else:
                return plan, Manifest(
                    plan.is_mapping, plan.values, blocks.next, plan.files
                )

    async def _plan_files(
        self, plan: NextState, draft: FilesDraft, blocks: Blocks
    ) -> None:
        planned = await draft.plan(self.context, self.parent, blocks)
        plan.files, plan.listing = planned.log, planned.listing
        plan.segments += planned.segments

    async def _found_new_head(self) -> bool:
        """Take a new head as the parent, if there is one and any head is accepted."""
        found = await self.context.find_thread(self.thread)
        head = found.head if found else None
        before = self.parent.head.seq if self.parent else None
        if self.how.expect is not UNSET or (head.seq if head else None) == before:
            return False
        self._build_on(head)
        return True

    def begin_again(self) -> None:
        """Prepare to plan on the same parent, whose bytes a plan may have changed."""
        if self.parent is not None:
            self.parent = OpenedCheckpoint(
                self.parent.head, self.parent.manifest, listing=self.parent.listing
            )

    def is_unchanged(self, manifest: Manifest) -> bool:
        """True if the parent has the same state."""
        if self.parent is None:
            return False
        old = self.parent.manifest
        if old.is_mapping != manifest.is_mapping or old.files != manifest.files:
            return False
        return list(old.values.items()) == list(manifest.values.items())

    async def keep_parent(self) -> Checkpoint:
        """Save nothing; returns the parent."""
        assert self.parent is not None
        head, now = self.parent.head, self.context.clock()
        self.context.cache.give(self.thread, self.parent)
        if self.how.journal:
            entries = self._entries(head.id, (), now)
            write = Write(thread=self.thread, at=now, expect=UNSET, entries=entries)
            await self.context.backend.commit([write])
        return head

    def _entries(
        self, checkpoint: str, own: tuple[tuple[str, bytes], ...], now: int
    ) -> tuple[Entry, ...]:
        of_thread = ((OF_THREAD, *entry) for entry in own)
        of_checkpoint = ((checkpoint, *entry) for entry in self.how.journal)
        return tuple(
            Entry(self.thread, place, key, data, now)
            for place, key, data in (*of_thread, *of_checkpoint)
        )

    async def commit(self, plan: NextState, manifest: Manifest) -> Checkpoint:
        """Save a plan."""
        write = self.write(plan, manifest)
        if self.how.commit is None:
            [receipt] = await self.context.backend.commit([write])
        else:
            receipt = await self.how.commit(write)
        return self.saved(write, receipt, plan, manifest)

    def write(self, plan: NextState, manifest: Manifest) -> Write:
        """The write that saves a plan."""
        how, now = self.how, self.context.clock()
        draft = self._checkpoint(manifest, now)
        once = (*how.once, *plan.once)
        entries = (*once, *how.merged)
        return Write(
            thread=self.thread,
            at=now,
            expect=self.parent.head if self.parent else None,
            start=None if self.parent else self._start(),
            checkpoint=draft,
            segments=tuple(plan.segments),
            entries=self._entries(draft.id, entries, now)
            if how.journal or entries
            else (),
            new_entries=bool(once),
            forget=(*how.forget, *plan.forget),
        )

    def saved(
        self, write: Write, receipt: Receipt, plan: NextState, manifest: Manifest
    ) -> Checkpoint:
        """The checkpoint that a write has made; it goes into the cache."""
        assert write.checkpoint is not None
        saved = replace(
            write.checkpoint,
            seq=receipt.seq,
            family=receipt.family,
            thread_number=receipt.thread_number,
        )
        self.context.cache.give(
            self.thread, OpenedCheckpoint(saved, manifest, plan.bodies, plan.listing)
        )
        return saved

    def _start(self) -> Start:
        anew = self.how.start.anew or self.how.expect is None
        return replace(self.how.start, anew=anew)

    def _checkpoint(self, manifest: Manifest, now: int) -> Checkpoint:
        parent = self.parent.head if self.parent else None
        runs, size = manifest.measured()
        if size > LARGEST_STATE:
            check_size(size, "state", LARGEST_STATE)
        how, traceparent = self.how, self.context.traceparent
        metadata = how.metadata
        if traceparent:
            metadata = with_traceparent(metadata, traceparent)
        draft = Checkpoint(
            id=self.id,
            thread=self.thread,
            parent=parent.id if parent else None,
            seq=0,
            step=max(how.least_step, parent.step + 1 if parent else 1),
            saved_at=now,
            kind=how.kind,
            label=how.label,
            tags=how.tags,
            size=size,
            sha256=b"",
            family=parent.family if parent else 0,
            thread_number=0,
            runs=runs,
            manifest=manifest.encoded(),
            encoded_metadata=metadata,
        )
        above = parent.sha256 if parent else b""
        # Changed in place: no other caller has seen it yet.
        force_setattr(draft, "sha256", digest(draft, above))
        return draft

    async def settle(self, conflict: Conflict) -> Checkpoint | None:
        """Prepare the next attempt, or return the save that this repeats, or raise."""
        if conflict.code == "id_taken":
            return await self._repeated(conflict)
        if conflict.code == "segment_taken":
            assert self.parent is not None
            self.parent = OpenedCheckpoint(
                self.parent.head,
                self._elsewhere(self.parent.manifest),
                listing=self.parent.listing,
            )
            return None
        if self.how.expect is not UNSET or not self._may_go_on(conflict):
            raise conflict
        self._build_on(conflict.found)
        return None

    def _may_go_on(self, conflict: Conflict) -> bool:
        """True if the save may build on the head that was found instead."""
        if conflict.code == "thread_deleted":
            return self.how.start.anew
        return conflict.code in {"head_moved", "thread_missing"}

    def _elsewhere(self, manifest: Manifest) -> Manifest:
        """The same values, with new segments going to a block that no fork uses."""
        values: dict[str, Value] = {
            name: replace(value, next_appended=0, next_replaced=0)
            if isinstance(value, Rope)
            else value
            for name, value in manifest.values.items()
        }
        random = int.from_bytes(sha256(self.context.new_id().encode()).digest()[:8])
        files = manifest.files and replace(manifest.files, next_number=0)
        return Manifest(manifest.is_mapping, values, random % LAST_BLOCK, files)

    async def _repeated(self, conflict: Conflict) -> Checkpoint:
        """The checkpoint of an earlier save with the same id and content."""
        thread = await self.context.get_thread(self.thread)
        [found] = await self.context.backend.read(
            [CheckpointKey(thread.family, self.id)]
        )
        if found is None or found.thread != self.thread:
            raise conflict
        # A save that is repeated may be part of another trace.
        stored, given = (
            without_traceparent(found.encoded_metadata),
            without_traceparent(self.how.metadata),
        )
        same_frame = (found.kind, stored) == (self.how.kind, given)
        before = await self._texts_before(found)
        texts = await self._texts(found)
        if not same_frame or not self.draft.matches(texts, before):
            raise conflict
        if self.how.files is not None and not await self._has_files(found):
            raise conflict
        return found

    async def _has_files(self, found: Checkpoint) -> bool:
        """True if the checkpoint has the files that are to be saved."""
        listing = await find_listing(self.context, OpenedCheckpoint.of(found))
        draft = self.how.files
        return draft is not None and listing is not None and draft.matches(listing.tree)

    async def _texts_before(self, found: Checkpoint) -> StateTexts | None:
        if found.link is not None:  # its parent was removed
            return None
        if found.parent is None:
            return StateTexts({}, is_mapping=True)
        key = CheckpointKey(found.family, found.parent)
        [parent] = await self.context.backend.read([key])
        return await self._texts(parent) if parent else None

    async def _texts(self, checkpoint: Checkpoint) -> StateTexts:
        manifest = decode_manifest(checkpoint)
        texts = await read_texts(self.context, OpenedCheckpoint(checkpoint, manifest))
        return StateTexts(texts, is_mapping=manifest.is_mapping)


def _is_meant(reference: Reference, head: Checkpoint) -> bool:
    """True if the reference means the head; reads nothing."""
    if isinstance(reference, Checkpoint):
        # An id can be used again after its thread was deleted, and a number after the
        # files of a folder were replaced.
        found, wanted = (head.seq, head.sha256), (reference.seq, reference.sha256)
        return found == wanted
    return reference == head.id
