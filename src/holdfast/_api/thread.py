"""Handles on one thread of a store, for the sync and the async API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

from holdfast._api import plugins
from holdfast._api.branches import AsyncThreadBranches, ThreadBranches
from holdfast._api.files import AsyncThreadFiles, ThreadFiles, scanned
from holdfast._api.keywords import HistoryOptions, appended, history_query
from holdfast._api.parts import AsyncThreadParts, ThreadParts
from holdfast._api.runner import AsyncRunner, Runner
from holdfast._api.wrong_api import awaited_property
from holdfast._engine.effects import ledger
from holdfast._engine.threads import (
    blame,
    drafts,
    family,
    grants,
    journal,
    lineage,
    load,
    moves,
    removal,
    save,
)
from holdfast._engine.threads.journal_keys import callers_key
from holdfast._engine.threads.lineage import Reference
from holdfast._engine.upkeep import prune, prune_plans
from holdfast._port import NEW_THREAD, Pruned, Start
from holdfast._values.arguments import checked_flag
from holdfast._values.records import (
    UNSET,
    Checkpoint,
    Move,
    Page,
    ThreadRecord,
    Unset,
    checked_stored_name,
)
from holdfast._values.reference import HEAD
from holdfast.diff import Diff
from holdfast.effects import Effect, Policy, checked
from holdfast.retention import Retention

if TYPE_CHECKING:  # modules that `holdfast log` need not load
    from holdfast._engine.files.draft import FileSource
    from holdfast._engine.threads.blame import Blame
    from holdfast._engine.threads.save import SaveOptions

T = TypeVar("T")


class Thread(ThreadParts, ThreadFiles, ThreadBranches):
    """A named line of work with a head.

    A checkpoint is referred to by a `Checkpoint`, an id, a unique beginning of an id,
    ``label:x``, ``tag:x``, ``@`` (the head), ``@~n`` (n before it), ``@12`` (step 12 on
    its line), ``@{1}`` (where it was before its last move), ``@{5 minutes ago}``,
    ``@{2026-11-15 10:00}`` (the newest by then) or ``@{upstream}`` (where a fork
    began). Making a handle reads and writes nothing; the first save creates the thread.
    """

    def __init__(self, runner: Runner, name: str, start: Start = NEW_THREAD) -> None:
        self._runner = runner
        self._start = start
        self.id = checked_stored_name(name, "thread id")

    def __repr__(self) -> str:
        return f"Thread({self.id!r})"

    def _repr_html_(self) -> str | None:
        """The thread in a cell of a notebook, if the viewer is installed."""
        return self._runner.run(plugins.notebook_html, self.id)

    # --- saving -----------------------------------------------------------------------

    def save(
        self,
        state: object,
        *,
        if_changed: bool = False,
        **options: Unpack[SaveOptions],
    ) -> Checkpoint:
        """Save a state as the new head, durable when this returns.

        A dataclass, struct or pydantic model is stored as the mapping of its fields;
        `load` with its ``type`` gives it back. Options:

        - ``label``, ``tags``, ``metadata`` (a dict) and ``kind`` (``"save"``) describe
          the checkpoint.
        - ``expect`` makes it a compare-and-swap: `Conflict` unless the head is that
          checkpoint, or with ``None`` unless the thread is new. Without it, a save
          whose head was moved by another writer is made on top of the new head.
        - ``id`` makes it repeatable: a save with the same ``id`` and content is made
          once; other content is a `Conflict`.
        - ``if_changed=True`` returns the head instead of saving an equal state again.
        - ``journal``: values recorded on the checkpoint in the same transaction.
        - ``once``: values recorded on the thread in the same transaction, under keys
          that must be new. If one is taken nothing is saved: `Conflict` with the code
          ``entry_taken``. So what has an id of its own is saved once.
        - ``files``: a `Workspace`, whose files become part of the checkpoint. Without
          it the checkpoint has the files of its parent.
        """
        how = save.options(start=self._start, **options)
        draft = drafts.StateDraft(state)
        return self._runner.save(save.save, self.id, draft, how, if_changed=if_changed)

    def append(self, **lists: Sequence[object] | FileSource) -> Checkpoint:
        """Save the head's state with elements added to its lists.

        Costs what the new elements cost, however long the lists are. A list that is
        not in the state yet begins empty. A `Workspace` as ``files`` is saved with it,
        as `save` does; elements as ``files`` are those of a list of that name.
        """
        draft, files = appended(lists)
        how = save.options(start=self._start, **files)
        return self._runner.save(save.save, self.id, draft, how)

    def extend(
        self,
        lists: Mapping[str, Sequence[object]],
        **options: Unpack[SaveOptions],
    ) -> Checkpoint:
        """`append` with the options of `save`, except ``if_changed``."""
        how = save.options(start=self._start, **options)
        return self._runner.save(save.save, self.id, drafts.ListsDraft(lists), how)

    # --- reading ----------------------------------------------------------------------

    @overload
    def load(self, ref: Reference = HEAD, *, type: None = None) -> Any: ...
    @overload
    def load(self, ref: Reference = HEAD, *, type: type[T]) -> T: ...
    def load(self, ref: Reference = HEAD, *, type: Any = None) -> Any:
        """The state at a checkpoint, equal to what was saved; ``type`` converts it.

        Dataclasses, TypedDicts, msgspec structs and pydantic models can be asked for;
        a state that does not fit raises `FormatMismatch`.
        """
        state = self._runner.run(load.load, self.id, ref)
        return load.converted(state, type)

    @property
    def head(self) -> Checkpoint | None:
        """The current checkpoint, ``None`` before the first save."""
        return self._runner.run(lineage.find_head, self.id)

    @property
    def step(self) -> int:
        """The step of the head, 0 before the first save."""
        return self._runner.run(lineage.find_step, self.id)

    @property
    def about(self) -> ThreadRecord | None:
        """Kind, owner, metadata and origin, ``None`` before the first save."""
        return self._runner.run(lineage.find_record, self.id)

    def get(self, ref: Reference = HEAD) -> Checkpoint:
        """The checkpoint a reference means."""
        return self._runner.run(lineage.resolve, self.id, ref)

    def history(
        self, limit: int | None = 100, **options: Unpack[HistoryOptions]
    ) -> Page[Checkpoint]:
        """The ancestors of the head, newest first. Options:

        - ``before`` continues after a checkpoint, or after a page given its cursor.
        - ``all=True`` lists also what was rewound.
        - ``tag`` and ``label`` list only the checkpoints that have them.
        - ``order="oldest"`` begins at the first save; it has to walk the whole line.
        """
        query = history_query(limit, options)
        return self._runner.run(lineage.history, self.id, query)

    def count(self) -> int:
        """The number of checkpoints in `history`, 0 before the first save.

        They are counted without being loaded. Rewound checkpoints are not counted;
        checkpoints that a fork inherited are.
        """
        return self._runner.run(lineage.count, self.id)

    def find(
        self, *, label: str | None = None, tag: str | None = None
    ) -> Checkpoint | None:
        """The newest checkpoint with a label or tag, ``None`` if there is none."""
        return self._runner.run(lineage.find, self.id, label=label, tag=tag)

    def diff(self, a: Reference, b: Reference = HEAD) -> Diff:
        """The changes from ``a`` to ``b``; checkpoints of other threads are fine."""
        return self._runner.run(load.difference, self.id, a, b)

    def blame(self, path: str, at: Reference = HEAD) -> Blame:
        """The checkpoint that last set the value at a path, on the line to ``at``.

        The path is written as ``messages[3].content`` or ``/messages/3/content``.
        States in which the value cannot have changed are not read.
        """
        return self._runner.run(blame.blame, self.id, path, at)

    def moves(
        self, limit: int | None = 100, *, before: int | None = None
    ) -> Page[Move]:
        """Every move of the head, newest first: saves, rewinds, undos, redos."""
        return self._runner.run(moves.moves, self.id, before, limit)

    def family(self) -> Page[ThreadRecord]:
        """This thread and those that share history with it, last used first."""
        return self._runner.run(family.family, self.id)

    def tree(
        self, limit: int | None = 100, *, before: int | None = None
    ) -> Page[Checkpoint]:
        """Every checkpoint of the family, rewound or not, newest first."""
        return self._runner.run(family.tree, self.id, before, limit)

    # --- moving -----------------------------------------------------------------------

    def fork(
        self, new_id: str, at: Reference = HEAD, *, effects: Policy | None = None
    ) -> Thread:
        """A new thread that shares its history up to ``at``; nothing is copied.

        ``effects`` says what tools may do in the fork, and in forks of it: ``"replay"``
        uses the result of an effect that this thread already had, ``"refuse"`` refuses
        the call, ``"run"`` lets it happen again, and ``"deny"`` refuses every call of a
        tool that is not repeatable. Without it the policy of this thread goes on.
        """
        thread = Thread(self._runner, new_id, self._start)
        self._runner.save(moves.fork, self.id, new_id, at, checked(effects))
        return thread

    def rewind(
        self, ref: Reference, *, hard: bool = False, expect: str | None = None
    ) -> Checkpoint:
        """Move the head to a checkpoint; what was ahead stays until pruned.

        With ``hard`` what was saved in this thread after it is deleted, unless a fork
        needs it. With ``expect``, `Conflict` unless the head has this id.
        """
        if checked_flag(hard, "hard"):
            return self._runner.run(removal.rewind_hard, self.id, ref)
        return self._runner.save(moves.rewind, self.id, ref, expect=expect)

    def undo(self) -> Checkpoint:
        """Take back the last save or rewind; call it again for the one before."""
        return self._runner.save(moves.undo, self.id)

    def redo(self) -> Checkpoint:
        """Do again what the last `undo` took back."""
        return self._runner.save(moves.redo, self.id)

    # --- marking ----------------------------------------------------------------------

    def label(
        self,
        label: str | None,
        ref: Reference = HEAD,
        *,
        expect: str | Unset | None = UNSET,
    ) -> Checkpoint:
        """Label an existing checkpoint; ``None`` takes the label away.

        ``expect`` is the label that it must have, ``None`` for none; `Conflict` if
        it was changed meanwhile.
        """
        return self._runner.save(moves.mark, self.id, ref, label=label, expect=expect)

    def tag(self, *tags: str, ref: Reference = HEAD) -> Checkpoint:
        """Add tags to an existing checkpoint."""
        return self._runner.save(moves.mark, self.id, ref, add=tags)

    def untag(self, *tags: str, ref: Reference = HEAD) -> Checkpoint:
        """Take tags from an existing checkpoint."""
        return self._runner.save(moves.mark, self.id, ref, remove=tags)

    def describe(
        self,
        *,
        owner: str | Unset | None = UNSET,
        metadata: dict[str, object] | Unset | None = UNSET,
    ) -> None:
        """Set the thread's owner or metadata."""
        self._runner.save(moves.describe, self.id, owner=owner, metadata=metadata)

    # --- the journal ------------------------------------------------------------------

    def record(
        self,
        key: str,
        value: object,
        *,
        checkpoint: Checkpoint | str | None = None,
        replace: bool = False,
    ) -> Any:
        """Record a value once under a key; gives the value in force.

        The key belongs to the thread or to a checkpoint, which need not be saved yet.
        The first value stays, unless ``replace`` is given. Keys under which Holdfast
        keeps calls and grants (``call:``, ``grant:`` and such) are refused.
        """
        callers_key(key)
        values = self.record_all({key: value}, checkpoint=checkpoint, replace=replace)
        return values[key]

    def record_all(
        self,
        values: Mapping[str, object],
        *,
        checkpoint: Checkpoint | str | None = None,
        replace: bool = False,
    ) -> dict[str, Any]:
        """`record` for several keys in one transaction."""
        where = journal.JournalPlace(self.id, self._start, checkpoint, replace)
        entries = where.entries(self._runner.context, values)
        return self._runner.save(journal.record, where, entries)

    def recorded(
        self,
        key: str,
        default: object = None,
        *,
        checkpoint: Checkpoint | str | None = None,
    ) -> Any:
        """The value recorded under a key, or the default."""
        return self._runner.run(journal.recorded_one, self.id, key, default, checkpoint)

    def journal(self, *, checkpoint: Checkpoint | str | None = None) -> dict[str, Any]:
        """All entries of the thread, or of a checkpoint, oldest first."""
        return self._runner.run(journal.recorded, self.id, checkpoint)

    def recorded_all(
        self, prefix: str = "", *, after: str | None = None, limit: int | None = None
    ) -> dict[str, Any]:
        """The values recorded on the thread, sorted by key.

        At most ``limit`` values whose keys begin with ``prefix`` and come after the key
        ``after``. All values with the prefix are read, however few are returned.
        """
        return self._runner.run(journal.recorded_all, self.id, prefix, after, limit)

    def forget(self, *keys: str) -> None:
        """Remove what is recorded on the thread under some keys, if it is there."""
        self._runner.save(journal.forget, self.id, keys)

    # --- effects ----------------------------------------------------------------------

    def effects(
        self,
        at: Reference = HEAD,
        *,
        since: Reference | None = None,
        left_behind: bool = False,
    ) -> list[Effect]:
        """The tool calls on the line of this thread up to ``at``, oldest first.

        ``effects(since=ref)`` are those that a rewind to ``ref`` would leave behind.
        With ``left_behind`` they are instead those of this thread and its forks that
        are not on the line: they happened, and the state does not show it.
        """
        return self._runner.run(
            ledger.effects, self.id, at, since=since, left_behind=left_behind
        )

    def consume(self, grant: str) -> bool:
        """Use up a permission, such as ``"approval:42"``; true for one caller only.

        It stays used in this thread and all its forks, whatever is rewound, forked or
        restored afterwards.
        """
        return self._runner.save(grants.consume, self.id, self._start, grant)

    # --- deleting ---------------------------------------------------------------------

    def delete(
        self,
        ref: Reference | None = None,
        *,
        expect: Reference | Unset | None = UNSET,
    ) -> int:
        """Delete the thread, or one checkpoint of it; returns how many went.

        Forks keep what they share. Writers that still save to a deleted thread get a
        `Conflict`; to use its name again, save with ``expect=None``. With ``expect``
        the thread is deleted only if that is its head, otherwise `Conflict` is raised.
        """
        return self._runner.run(removal.delete, self.id, ref, expect)

    def prune(self, policy: Retention, *, dry_run: bool = False) -> Pruned:
        """`Store.prune` limited to this thread."""
        only = prune_plans.PruneRange(thread=self.id)
        return self._runner.run(prune.prune, policy, only, dry_run=dry_run)


class AsyncThread(AsyncThreadParts, AsyncThreadFiles, AsyncThreadBranches):
    """Like `Thread`, awaited; so are the properties."""

    def __init__(
        self, runner: AsyncRunner, name: str, start: Start = NEW_THREAD
    ) -> None:
        self._runner = runner
        self._start = start
        self.id = checked_stored_name(name, "thread id")

    def __repr__(self) -> str:
        return f"AsyncThread({self.id!r})"

    # --- saving -----------------------------------------------------------------------

    async def save(
        self,
        state: object,
        *,
        if_changed: bool = False,
        **options: Unpack[SaveOptions],
    ) -> Checkpoint:
        how = save.options(start=self._start, **await scanned(self._runner, options))
        draft = drafts.StateDraft(state)
        return await self._runner.save(
            save.save, self.id, draft, how, if_changed=if_changed
        )

    async def append(self, **lists: Sequence[object] | FileSource) -> Checkpoint:
        draft, files = appended(lists)
        how = save.options(start=self._start, **await scanned(self._runner, files))
        return await self._runner.save(save.save, self.id, draft, how)

    async def extend(
        self,
        lists: Mapping[str, Sequence[object]],
        **options: Unpack[SaveOptions],
    ) -> Checkpoint:
        how = save.options(start=self._start, **await scanned(self._runner, options))
        draft = drafts.ListsDraft(lists)
        return await self._runner.save(save.save, self.id, draft, how)

    # --- reading ----------------------------------------------------------------------

    @overload
    async def load(self, ref: Reference = HEAD, *, type: None = None) -> Any: ...
    @overload
    async def load(self, ref: Reference = HEAD, *, type: type[T]) -> T: ...
    async def load(self, ref: Reference = HEAD, *, type: Any = None) -> Any:
        state = await self._runner.run(load.load, self.id, ref)
        return load.converted(state, type)

    @awaited_property
    async def head(self) -> Checkpoint | None:
        return await self._runner.run(lineage.find_head, self.id)

    @awaited_property
    async def step(self) -> int:
        return await self._runner.run(lineage.find_step, self.id)

    @awaited_property
    async def about(self) -> ThreadRecord | None:
        return await self._runner.run(lineage.find_record, self.id)

    async def get(self, ref: Reference = HEAD) -> Checkpoint:
        return await self._runner.run(lineage.resolve, self.id, ref)

    async def history(
        self, limit: int | None = 100, **options: Unpack[HistoryOptions]
    ) -> Page[Checkpoint]:
        query = history_query(limit, options)
        return await self._runner.run(lineage.history, self.id, query)

    async def count(self) -> int:
        return await self._runner.run(lineage.count, self.id)

    async def find(
        self, *, label: str | None = None, tag: str | None = None
    ) -> Checkpoint | None:
        return await self._runner.run(lineage.find, self.id, label=label, tag=tag)

    async def diff(self, a: Reference, b: Reference = HEAD) -> Diff:
        return await self._runner.run(load.difference, self.id, a, b)

    async def blame(self, path: str, at: Reference = HEAD) -> Blame:
        return await self._runner.run(blame.blame, self.id, path, at)

    async def moves(
        self, limit: int | None = 100, *, before: int | None = None
    ) -> Page[Move]:
        return await self._runner.run(moves.moves, self.id, before, limit)

    async def family(self) -> Page[ThreadRecord]:
        return await self._runner.run(family.family, self.id)

    async def tree(
        self, limit: int | None = 100, *, before: int | None = None
    ) -> Page[Checkpoint]:
        return await self._runner.run(family.tree, self.id, before, limit)

    # --- moving -----------------------------------------------------------------------

    async def fork(
        self, new_id: str, at: Reference = HEAD, *, effects: Policy | None = None
    ) -> AsyncThread:
        thread = AsyncThread(self._runner, new_id, self._start)
        policy = checked(effects)
        await self._runner.save(moves.fork, self.id, new_id, at, policy)
        return thread

    async def rewind(
        self, ref: Reference, *, hard: bool = False, expect: str | None = None
    ) -> Checkpoint:
        if checked_flag(hard, "hard"):
            return await self._runner.run(removal.rewind_hard, self.id, ref)
        return await self._runner.save(moves.rewind, self.id, ref, expect=expect)

    async def undo(self) -> Checkpoint:
        return await self._runner.save(moves.undo, self.id)

    async def redo(self) -> Checkpoint:
        return await self._runner.save(moves.redo, self.id)

    # --- marking ----------------------------------------------------------------------

    async def label(
        self,
        label: str | None,
        ref: Reference = HEAD,
        *,
        expect: str | Unset | None = UNSET,
    ) -> Checkpoint:
        return await self._runner.save(
            moves.mark, self.id, ref, label=label, expect=expect
        )

    async def tag(self, *tags: str, ref: Reference = HEAD) -> Checkpoint:
        return await self._runner.save(moves.mark, self.id, ref, add=tags)

    async def untag(self, *tags: str, ref: Reference = HEAD) -> Checkpoint:
        return await self._runner.save(moves.mark, self.id, ref, remove=tags)

    async def describe(
        self,
        *,
        owner: str | Unset | None = UNSET,
        metadata: dict[str, object] | Unset | None = UNSET,
    ) -> None:
        await self._runner.save(moves.describe, self.id, owner=owner, metadata=metadata)

    # --- the journal ------------------------------------------------------------------

    async def record(
        self,
        key: str,
        value: object,
        *,
        checkpoint: Checkpoint | str | None = None,
        replace: bool = False,
    ) -> Any:
        callers_key(key)
        values = await self.record_all(
            {key: value}, checkpoint=checkpoint, replace=replace
        )
        return values[key]

    async def record_all(
        self,
        values: Mapping[str, object],
        *,
        checkpoint: Checkpoint | str | None = None,
        replace: bool = False,
    ) -> dict[str, Any]:
        where = journal.JournalPlace(self.id, self._start, checkpoint, replace)
        entries = where.entries(self._runner.context, values)
        return await self._runner.save(journal.record, where, entries)

    async def recorded(
        self,
        key: str,
        default: object = None,
        *,
        checkpoint: Checkpoint | str | None = None,
    ) -> Any:
        return await self._runner.run(
            journal.recorded_one, self.id, key, default, checkpoint
        )

    async def journal(
        self, *, checkpoint: Checkpoint | str | None = None
    ) -> dict[str, Any]:
        return await self._runner.run(journal.recorded, self.id, checkpoint)

    async def recorded_all(
        self, prefix: str = "", *, after: str | None = None, limit: int | None = None
    ) -> dict[str, Any]:
        return await self._runner.run(
            journal.recorded_all, self.id, prefix, after, limit
        )

    async def forget(self, *keys: str) -> None:
        await self._runner.save(journal.forget, self.id, keys)

    # --- effects ----------------------------------------------------------------------

    async def effects(
        self,
        at: Reference = HEAD,
        *,
        since: Reference | None = None,
        left_behind: bool = False,
    ) -> list[Effect]:
        return await self._runner.run(
            ledger.effects, self.id, at, since=since, left_behind=left_behind
        )

    async def consume(self, grant: str) -> bool:
        return await self._runner.save(grants.consume, self.id, self._start, grant)

    # --- deleting ---------------------------------------------------------------------

    async def delete(
        self,
        ref: Reference | None = None,
        *,
        expect: Reference | Unset | None = UNSET,
    ) -> int:
        return await self._runner.run(removal.delete, self.id, ref, expect)

    async def prune(self, policy: Retention, *, dry_run: bool = False) -> Pruned:
        only = prune_plans.PruneRange(thread=self.id)
        return await self._runner.run(prune.prune, policy, only, dry_run=dry_run)
