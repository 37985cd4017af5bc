"""Handles on one thread of a store: the same methods, blocking and awaited."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, TypeVar, overload

from holdfast._api.runner import Passage
from holdfast._engine.context import Context
from holdfast._engine.threads import (
    blame as blaming,
)
from holdfast._engine.threads import (
    drafts,
    family,
    lineage,
    removal,
)
from holdfast._engine.threads import (
    journal as recording,
)
from holdfast._engine.threads import (
    load as loading,
)
from holdfast._engine.threads import (
    moves as moving,
)
from holdfast._engine.threads import (
    save as saving,
)
from holdfast._engine.threads.blame import Blame
from holdfast._engine.threads.lineage import HistoryQuery, Order, Reference
from holdfast._port import NEW_THREAD, Start, run
from holdfast._values.records import (
    UNSET,
    Checkpoint,
    Move,
    Page,
    ThreadRecord,
    Unset,
    checked_name,
)
from holdfast._values.reference import HEAD
from holdfast.diff import Diff

T = TypeVar("T")


class Thread:
    """A named line of work with a head.

    Wherever a checkpoint is expected, a `Checkpoint`, an id, a unique beginning of one,
    ``label:x``, ``tag:x``, ``@`` (the head), ``@~n`` (n before it), ``@12`` (step 12 on
    its line), ``@{1}`` (where it was before its last move), ``@{5 minutes ago}``,
    ``@{2026-11-15 10:00}`` (the newest by then) or ``@{upstream}`` (where a fork began)
    will do. A handle costs nothing; the thread itself comes into being with its first
    save.
    """

    def __init__(self, context: Context, name: str, start: Start = NEW_THREAD) -> None:
        self._context = context
        self._start = start
        self.id = checked_name(name)

    def __repr__(self) -> str:
        return f"Thread({self.id!r})"

    # --- saving -----------------------------------------------------------------------

    def save(
        self,
        state: object,
        *,
        label: str | None = None,
        tags: Sequence[str] = (),
        metadata: Mapping[str, object] | None = None,
        kind: str = "save",
        id: str | None = None,  # noqa: A002 - public name
        expect: Reference | Unset | None = UNSET,
        if_changed: bool = False,
        journal: Mapping[str, object] | None = None,
    ) -> Checkpoint:
        """Save a state as the new head, durable when this returns.

        ``expect`` makes it a compare-and-swap: `Conflict` unless the head is that
        checkpoint, or with ``None`` unless the thread is new. Without it, a save whose
        head was moved by somebody else goes on top of the new head. A save repeated
        with the same ``id`` and content is made once; other content is a `Conflict`.
        ``if_changed`` gives back the head, as it is, instead of saving its state again.
        ``journal`` entries are recorded on the checkpoint in the same transaction.
        """
        how = saving.options(
            label=label,
            tags=tags,
            metadata=metadata,
            kind=kind,
            id=id,
            expect=expect,
            journal=journal,
            start=self._start,
        )
        draft = drafts.StateDraft(state)
        operation = saving.save(
            self._context, self.id, draft, how, if_changed=if_changed
        )
        return run(operation)

    def append(self, **lists: Sequence[object]) -> Checkpoint:
        """Save the head's state with elements added to its lists.

        Costs what the new elements cost, however long the lists are. A list that is
        not there yet begins empty.
        """
        how = saving.Options(start=self._start)
        draft = drafts.ListsDraft(lists)
        return run(saving.save(self._context, self.id, draft, how))

    def extend(
        self,
        lists: Mapping[str, Sequence[object]],
        *,
        label: str | None = None,
        tags: Sequence[str] = (),
        metadata: Mapping[str, object] | None = None,
        kind: str = "save",
        id: str | None = None,  # noqa: A002 - public name
        expect: Reference | Unset | None = UNSET,
        journal: Mapping[str, object] | None = None,
    ) -> Checkpoint:
        """`append` with the options of `save`."""
        how = saving.options(
            label=label,
            tags=tags,
            metadata=metadata,
            kind=kind,
            id=id,
            expect=expect,
            journal=journal,
            start=self._start,
        )
        draft = drafts.ListsDraft(lists)
        return run(saving.save(self._context, self.id, draft, how))

    # --- reading ----------------------------------------------------------------------

    @overload
    def load(self, ref: Reference = HEAD, *, type: None = None) -> Any: ...
    @overload
    def load(self, ref: Reference = HEAD, *, type: type[T]) -> T: ...
    def load(self, ref: Reference = HEAD, *, type: Any = None) -> Any:  # noqa: A002
        """The state at a checkpoint, equal to what was saved; ``type`` converts it.

        Dataclasses, TypedDicts, msgspec structs and pydantic models can be asked for;
        a state that does not fit raises `FormatMismatch`.
        """
        state = run(loading.load(self._context, self.id, ref))
        return loading.converted(state, type)

    @property
    def head(self) -> Checkpoint | None:
        """The current checkpoint, ``None`` before the first save."""
        return run(lineage.find_head(self._context, self.id))

    @property
    def step(self) -> int:
        """The step of the head, 0 before the first save."""
        return run(lineage.find_step(self._context, self.id))

    @property
    def about(self) -> ThreadRecord | None:
        """Kind, owner, metadata and origin, ``None`` before the first save."""
        return run(lineage.find_record(self._context, self.id))

    def get(self, ref: Reference = HEAD) -> Checkpoint:
        """The checkpoint a reference means."""
        return run(lineage.resolve(self._context, self.id, ref))

    def history(
        self,
        limit: int | None = 100,
        *,
        before: Reference | int | None = None,
        order: Order = "newest",
        all: bool = False,  # noqa: A002 - public name
        tag: str | None = None,
        label: str | None = None,
    ) -> Page[Checkpoint]:
        """The ancestors of the head, newest first.

        ``before`` continues behind a checkpoint, or behind a page given its cursor;
        ``all`` lists what was rewound too;
        ``order="oldest"`` begins at the first save and walks the whole line for it.
        """
        query = HistoryQuery(
            limit=limit, before=before, order=order, all=all, tag=tag, label=label
        )
        return run(lineage.history(self._context, self.id, query))

    def find(
        self, *, label: str | None = None, tag: str | None = None
    ) -> Checkpoint | None:
        """The newest checkpoint with a label or tag, ``None`` if there is none."""
        return run(lineage.find(self._context, self.id, label=label, tag=tag))

    def diff(self, a: Reference, b: Reference = HEAD) -> Diff:
        """What changed from ``a`` to ``b``; checkpoints of other threads are fine."""
        return run(loading.difference(self._context, self.id, a, b))

    def blame(self, path: str, at: Reference = HEAD) -> Blame:
        """Which checkpoint last set what stands at a path, on the line to ``at``.

        The path is written as ``messages[3].content`` or ``/messages/3/content``.
        States in which it cannot have changed are not read.
        """
        return run(blaming.blame(self._context, self.id, path, at))

    def moves(
        self, limit: int | None = 100, *, before: int | None = None
    ) -> Page[Move]:
        """Every move of the head, newest first: saves, rewinds, undos, redos."""
        return run(moving.moves(self._context, self.id, before, limit))

    def family(self) -> Page[ThreadRecord]:
        """The threads that share history with this one, itself too, last used first."""
        return run(family.family(self._context, self.id))

    def tree(
        self, limit: int | None = 100, *, before: int | None = None
    ) -> Page[Checkpoint]:
        """Every checkpoint of the family, rewound or not, newest first."""
        return run(family.tree(self._context, self.id, before, limit))

    # --- moving -----------------------------------------------------------------------

    def fork(self, new_id: str, at: Reference = HEAD) -> Thread:
        """A new thread that shares its history up to ``at``; nothing is copied."""
        thread = Thread(self._context, new_id, self._start)
        run(moving.fork(self._context, self.id, new_id, at))
        return thread

    def rewind(self, ref: Reference, *, hard: bool = False) -> Checkpoint:
        """Move the head to a checkpoint; what was ahead stays until pruned.

        With ``hard`` what was saved in this thread after it is deleted, unless a fork
        needs it.
        """
        operation = removal.rewind_hard if hard else moving.rewind
        return run(operation(self._context, self.id, ref))

    def undo(self) -> Checkpoint:
        """Take the last save or rewind back; again for the one before it."""
        return run(moving.undo(self._context, self.id))

    def redo(self) -> Checkpoint:
        """Do again what the last `undo` took back."""
        return run(moving.redo(self._context, self.id))

    # --- marking ----------------------------------------------------------------------

    def label(self, label: str | None, ref: Reference = HEAD) -> Checkpoint:
        """Label an existing checkpoint; ``None`` takes the label away."""
        return run(moving.mark(self._context, self.id, ref, label=label))

    def tag(self, *tags: str, ref: Reference = HEAD) -> Checkpoint:
        """Add tags to an existing checkpoint."""
        return run(moving.mark(self._context, self.id, ref, add=tags))

    def untag(self, *tags: str, ref: Reference = HEAD) -> Checkpoint:
        """Take tags from an existing checkpoint."""
        return run(moving.mark(self._context, self.id, ref, remove=tags))

    def describe(
        self,
        *,
        owner: str | Unset | None = UNSET,
        metadata: dict[str, object] | Unset | None = UNSET,
    ) -> None:
        """Set the thread's owner or metadata."""
        operation = moving.describe(
            self._context, self.id, owner=owner, metadata=metadata
        )
        return run(operation)

    # --- the journal ------------------------------------------------------------------

    def record(
        self,
        key: str,
        value: object,
        *,
        checkpoint: Checkpoint | str | None = None,
        replace: bool = False,
    ) -> Any:
        """Record a value once under a key; gives back the value that is in force.

        The key belongs to the thread or to a checkpoint, which need not be saved yet.
        The first value stays unless ``replace`` is given.
        """
        where = recording.JournalPlace(self.id, self._start, checkpoint, replace)
        entries = where.entries(self._context, {key: value})
        return run(recording.record(self._context, where, entries))[key]

    def record_all(
        self,
        values: Mapping[str, object],
        *,
        checkpoint: Checkpoint | str | None = None,
        replace: bool = False,
    ) -> dict[str, Any]:
        """`record` for several keys in one transaction."""
        where = recording.JournalPlace(self.id, self._start, checkpoint, replace)
        entries = where.entries(self._context, values)
        return run(recording.record(self._context, where, entries))

    def recorded(
        self,
        key: str,
        default: object = None,
        *,
        checkpoint: Checkpoint | str | None = None,
    ) -> Any:
        """The value recorded under a key, or the default."""
        operation = recording.recorded_one(
            self._context, self.id, key, default, checkpoint
        )
        return run(operation)

    def journal(self, *, checkpoint: Checkpoint | str | None = None) -> dict[str, Any]:
        """Everything recorded on the thread, or on a checkpoint, oldest first."""
        return run(recording.recorded(self._context, self.id, checkpoint))

    # --- deleting ---------------------------------------------------------------------

    def delete(self, ref: Reference | None = None) -> int:
        """Delete the thread, or one checkpoint of it; returns how many went.

        Forks keep what they share. A deleted thread turns late writers away: to begin
        it anew, save with ``expect=None``.
        """
        return run(removal.delete(self._context, self.id, ref))


class AsyncThread:
    """As `Thread`, awaited; so are the properties."""

    def __init__(self, passage: Passage, name: str, start: Start = NEW_THREAD) -> None:
        self._passage = passage
        self._context = passage.context
        self._start = start
        self.id = checked_name(name)

    def __repr__(self) -> str:
        return f"AsyncThread({self.id!r})"

    async def _save(self, operation: Coroutine[Any, Any, T]) -> T:
        return await self._passage.save(operation, self.id)

    # --- saving -----------------------------------------------------------------------

    async def save(
        self,
        state: object,
        *,
        label: str | None = None,
        tags: Sequence[str] = (),
        metadata: Mapping[str, object] | None = None,
        kind: str = "save",
        id: str | None = None,  # noqa: A002 - public name
        expect: Reference | Unset | None = UNSET,
        if_changed: bool = False,
        journal: Mapping[str, object] | None = None,
    ) -> Checkpoint:
        how = saving.options(
            label=label,
            tags=tags,
            metadata=metadata,
            kind=kind,
            id=id,
            expect=expect,
            journal=journal,
            start=self._start,
        )
        draft = drafts.StateDraft(state)
        operation = saving.save(
            self._passage.saving, self.id, draft, how, if_changed=if_changed
        )
        return await self._save(operation)

    async def append(self, **lists: Sequence[object]) -> Checkpoint:
        how = saving.Options(start=self._start)
        draft = drafts.ListsDraft(lists)
        return await self._save(saving.save(self._passage.saving, self.id, draft, how))

    async def extend(
        self,
        lists: Mapping[str, Sequence[object]],
        *,
        label: str | None = None,
        tags: Sequence[str] = (),
        metadata: Mapping[str, object] | None = None,
        kind: str = "save",
        id: str | None = None,  # noqa: A002 - public name
        expect: Reference | Unset | None = UNSET,
        journal: Mapping[str, object] | None = None,
    ) -> Checkpoint:
        how = saving.options(
            label=label,
            tags=tags,
            metadata=metadata,
            kind=kind,
            id=id,
            expect=expect,
            journal=journal,
            start=self._start,
        )
        draft = drafts.ListsDraft(lists)
        return await self._save(saving.save(self._passage.saving, self.id, draft, how))

    # --- reading ----------------------------------------------------------------------

    @overload
    async def load(self, ref: Reference = HEAD, *, type: None = None) -> Any: ...
    @overload
    async def load(self, ref: Reference = HEAD, *, type: type[T]) -> T: ...
    async def load(self, ref: Reference = HEAD, *, type: Any = None) -> Any:  # noqa: A002
        state = await self._passage.run(loading.load(self._context, self.id, ref))
        return loading.converted(state, type)

    @property
    async def head(self) -> Checkpoint | None:
        return await self._passage.run(lineage.find_head(self._context, self.id))

    @property
    async def step(self) -> int:
        return await self._passage.run(lineage.find_step(self._context, self.id))

    @property
    async def about(self) -> ThreadRecord | None:
        return await self._passage.run(lineage.find_record(self._context, self.id))

    async def get(self, ref: Reference = HEAD) -> Checkpoint:
        return await self._passage.run(lineage.resolve(self._context, self.id, ref))

    async def history(
        self,
        limit: int | None = 100,
        *,
        before: Reference | int | None = None,
        order: Order = "newest",
        all: bool = False,  # noqa: A002 - public name
        tag: str | None = None,
        label: str | None = None,
    ) -> Page[Checkpoint]:
        query = HistoryQuery(
            limit=limit, before=before, order=order, all=all, tag=tag, label=label
        )
        return await self._passage.run(lineage.history(self._context, self.id, query))

    async def find(
        self, *, label: str | None = None, tag: str | None = None
    ) -> Checkpoint | None:
        return await self._passage.run(
            lineage.find(self._context, self.id, label=label, tag=tag)
        )

    async def diff(self, a: Reference, b: Reference = HEAD) -> Diff:
        return await self._passage.run(loading.difference(self._context, self.id, a, b))

    async def blame(self, path: str, at: Reference = HEAD) -> Blame:
        return await self._passage.run(blaming.blame(self._context, self.id, path, at))

    async def moves(
        self, limit: int | None = 100, *, before: int | None = None
    ) -> Page[Move]:
        return await self._passage.run(
            moving.moves(self._context, self.id, before, limit)
        )

    async def family(self) -> Page[ThreadRecord]:
        return await self._passage.run(family.family(self._context, self.id))

    async def tree(
        self, limit: int | None = 100, *, before: int | None = None
    ) -> Page[Checkpoint]:
        return await self._passage.run(
            family.tree(self._context, self.id, before, limit)
        )

    # --- moving -----------------------------------------------------------------------

    async def fork(self, new_id: str, at: Reference = HEAD) -> AsyncThread:
        thread = AsyncThread(self._passage, new_id, self._start)
        await self._save(moving.fork(self._passage.saving, self.id, new_id, at))
        return thread

    async def rewind(self, ref: Reference, *, hard: bool = False) -> Checkpoint:
        if hard:
            operation = removal.rewind_hard(self._context, self.id, ref)
            return await self._passage.run(operation)
        return await self._save(moving.rewind(self._passage.saving, self.id, ref))

    async def undo(self) -> Checkpoint:
        return await self._save(moving.undo(self._passage.saving, self.id))

    async def redo(self) -> Checkpoint:
        return await self._save(moving.redo(self._passage.saving, self.id))

    # --- marking ----------------------------------------------------------------------

    async def label(self, label: str | None, ref: Reference = HEAD) -> Checkpoint:
        return await self._save(
            moving.mark(self._passage.saving, self.id, ref, label=label)
        )

    async def tag(self, *tags: str, ref: Reference = HEAD) -> Checkpoint:
        return await self._save(
            moving.mark(self._passage.saving, self.id, ref, add=tags)
        )

    async def untag(self, *tags: str, ref: Reference = HEAD) -> Checkpoint:
        return await self._save(
            moving.mark(self._passage.saving, self.id, ref, remove=tags)
        )

    async def describe(
        self,
        *,
        owner: str | Unset | None = UNSET,
        metadata: dict[str, object] | Unset | None = UNSET,
    ) -> None:
        operation = moving.describe(
            self._passage.saving, self.id, owner=owner, metadata=metadata
        )
        return await self._save(operation)

    # --- the journal ------------------------------------------------------------------

    async def record(
        self,
        key: str,
        value: object,
        *,
        checkpoint: Checkpoint | str | None = None,
        replace: bool = False,
    ) -> Any:
        where = recording.JournalPlace(self.id, self._start, checkpoint, replace)
        entries = where.entries(self._passage.saving, {key: value})
        in_force = await self._save(
            recording.record(self._passage.saving, where, entries)
        )
        return in_force[key]

    async def record_all(
        self,
        values: Mapping[str, object],
        *,
        checkpoint: Checkpoint | str | None = None,
        replace: bool = False,
    ) -> dict[str, Any]:
        where = recording.JournalPlace(self.id, self._start, checkpoint, replace)
        entries = where.entries(self._passage.saving, values)
        return await self._save(recording.record(self._passage.saving, where, entries))

    async def recorded(
        self,
        key: str,
        default: object = None,
        *,
        checkpoint: Checkpoint | str | None = None,
    ) -> Any:
        operation = recording.recorded_one(
            self._context, self.id, key, default, checkpoint
        )
        return await self._passage.run(operation)

    async def journal(
        self, *, checkpoint: Checkpoint | str | None = None
    ) -> dict[str, Any]:
        return await self._passage.run(
            recording.recorded(self._context, self.id, checkpoint)
        )

    # --- deleting ---------------------------------------------------------------------

    async def delete(self, ref: Reference | None = None) -> int:
        return await self._passage.run(removal.delete(self._context, self.id, ref))
