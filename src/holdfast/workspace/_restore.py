"""Restoring the files of a checkpoint: the order of all that is done.

1. All that stands in the way is found; nothing has been written.
2. The present is saved as a checkpoint, so that the restore can be taken back.
3. The new files are written beside, in `.holdfast/restore`, and synced.
4. The intent is written: from here on, a crash is finished by the next opening.
5. The files are exchanged and the head of the thread is moved; what fails is undone.
6. The intent is removed.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass

import msgspec

from holdfast._engine.threads.lineage import Reference
from holdfast._values.files import FileEntry, Tree, changed, compare
from holdfast._values.records import Checkpoint
from holdfast.errors import Conflict, HoldfastError, NotFound
from holdfast.workspace._intent import StateMove
from holdfast.workspace._plan import Plan, is_below, make_plan
from holdfast.workspace._report import RestoreReport
from holdfast.workspace._session import Session, UndoRecord
from holdfast.workspace._snapshot import FolderSnapshot
from holdfast.workspace._store_side import StoreSide
from holdfast.workspace._walk import UNREADABLE

RECOVERY, RESTORED = "recovery", "restore"
# How many bytes of files are in memory at once, unless one is larger.
READ_AT_ONCE = 8 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreOptions:
    """The options of a restore."""

    paths: Collection[bytes] | None = None
    dry_run: bool = False
    force: bool = False
    state: bool = False


@dataclass(frozen=True, slots=True)
class _Restore:
    """A restore that has been planned."""

    plan: Plan
    obstacles: tuple[bytes, ...]
    head: Checkpoint | None
    checkpoint: Checkpoint
    target: Tree
    last: Tree

    def recorded(self, found: FolderSnapshot) -> FolderSnapshot:
        """The found snapshot without paths that no snapshot has.

        Those stay unknown: a later restore must not take them for its own, and remove
        them.
        """
        known = (self.last.entries, self.target.entries)
        paths = [entry.path for entry in changed(known[0], found.tree.entries)]
        return found.without([p for p in paths if not any(p in each for each in known)])


async def restore(
    session: Session, side: StoreSide, reference: Reference, options: RestoreOptions
) -> RestoreReport:
    """Restore files in a folder that is locked."""
    made = await _planned(session, side, reference, options)
    if options.dry_run:
        return _report(made, options, done=False)
    _refuse_conflicts(made, force=options.force)
    if options.state and made.head is None:
        raise NotFound(f"thread {side.thread!r} has no checkpoint", thread=side.thread)
    session.snapshot = session.snapshot.without(made.plan.strangers)
    recovery = await _recovery(session, side, made)
    await _carry_out(session, side, made, recovery, options)
    return _report(made, options, recovery=recovery, kept=session.kept)


async def restore_apart(
    session: Session, side: StoreSide, reference: Reference, options: RestoreOptions
) -> RestoreReport:
    """Write files into another folder; nothing that is there is changed or removed."""
    checkpoint = await side.find(reference)
    target = await side.tree(checkpoint)
    _check_paths(options.paths, target, Tree())
    rules = session.scanner.book
    plan = make_plan(Tree(), Tree(), target, options.paths, rules)
    plan, obstacles = await side.blocking(session.check, plan)
    made = _Restore(plan, obstacles, None, checkpoint, target, Tree())
    if options.dry_run:
        return _report(made, options, done=False)
    _refuse_conflicts(made, force=True)
    await _prepare(session, side, made, None)
    try:
        await side.blocking(session.forward)
    except BaseException:
        await side.blocking(session.backward)
        raise
    await side.blocking(session.finish)
    return _report(made, options, kept=session.kept)


async def _planned(
    session: Session, side: StoreSide, reference: Reference, options: RestoreOptions
) -> _Restore:
    checkpoint = await side.find(reference)
    head = await side.head()
    target = await side.tree(checkpoint)
    last = await _last_files(side, head)
    present = await side.blocking(session.scan)
    _check_paths(options.paths, target, last)
    _refuse_unread(session.path, present.tree, (last, target), options.paths)
    rules = session.scanner.book
    known = _with_brought(last, present.tree, await _brought(session, side))
    plan = make_plan(present.tree, known, target, options.paths, rules)
    if known != last:
        plan = msgspec.structs.replace(plan, is_saved=False)
    plan, obstacles = await side.blocking(session.check, plan)
    return _Restore(plan, obstacles, head, checkpoint, target, known)


async def _brought(session: Session, side: StoreSide) -> Tree:
    """The files of the restore that a crash interrupted, none if none did."""
    move = await side.blocking(session.interrupted)
    if move is None or move.thread != side.thread:
        return Tree()
    try:
        return await side.tree(await side.find(move.checkpoint))
    except NotFound:  # it was removed, so what it brought is in no snapshot
        return Tree()


def _with_brought(last: Tree, present: Tree, brought: Tree) -> Tree:
    """The last tree with the files that an interrupted restore put into the folder.

    The head does not have them, and yet no program has changed them.
    """
    if not brought.entries:
        return last
    put = {p: e for p, e in brought.entries.items() if present.entries.get(p) == e}
    stayed = {
        path: entry
        for path, entry in last.entries.items()
        if path in present.entries or path in brought.entries
    }
    return Tree(stayed | put, last.rules, last.omitted)


async def _last_files(side: StoreSide, head: Checkpoint | None) -> Tree:
    """The files of the head; none, if none were saved on its line."""
    try:
        return await side.tree(head) if head else Tree()
    except NotFound as error:
        if error.code != "no_files":
            raise
        return Tree()


def _check_paths(paths: Collection[bytes] | None, target: Tree, last: Tree) -> None:
    for path in paths or ():
        trees = (target.entries, last.entries)
        if not any(is_below(each, [path]) for tree in trees for each in tree):
            raise NotFound(
                f"{os.fsdecode(path)} is in neither snapshot; thread.files() lists the"
                " files",
                code="no_file",
            )


def _refuse_unread(
    folder: str, present: Tree, known: Collection[Tree], paths: Collection[bytes] | None
) -> None:
    """Stop at a recorded path that cannot be read: what is there is not known."""
    for unread in present.omitted:
        place = [unread.path]
        if unread.reason.startswith(UNREADABLE) and any(
            is_below(path, place) and (paths is None or is_below(path, paths))
            for tree in known
            for path in tree.entries
        ):
            raise HoldfastError(
                f"{os.fsdecode(unread.path)} in {folder} is {unread.reason}; nothing"
                " was changed; look at its permissions and the disk, or leave it out"
                " with paths=",
                code="io_error",
            )


def _refuse_conflicts(made: _Restore, *, force: bool) -> None:
    if made.obstacles:
        names = _texts(made.obstacles)
        raise Conflict(
            f"{_listed(names)} in no snapshot and in the way; move them elsewhere and"
            " restore again",
            code="files_in_the_way",
            paths=names,
        )
    if made.plan.conflicts and not force:
        names = _texts(made.plan.conflicts)
        raise Conflict(
            f"{_listed(names)} changed since the last snapshot; save them first, leave"
            " them out with paths=, or pass force=True (a checkpoint keeps them)",
            code="files_changed",
            paths=names,
        )


def _listed(names: tuple[str, ...]) -> str:
    if len(names) == 1:
        return f"{names[0]} is" if names else ""
    most = ", ".join(names[:3])
    return f"{most} and {len(names) - 3} more are" if len(names) > 3 else f"{most} are"  # noqa: PLR2004


def _texts(paths: Collection[bytes]) -> tuple[str, ...]:
    return tuple(map(os.fsdecode, paths))


async def _recovery(session: Session, side: StoreSide, made: _Restore) -> Checkpoint:
    """The present as a checkpoint: the head, if it has all of it."""
    if made.head is not None and made.plan.is_saved:
        return made.head
    return await side.keep(session.snapshot, RECOVERY, made.head)


async def _carry_out(
    session: Session,
    side: StoreSide,
    made: _Restore,
    recovery: Checkpoint,
    options: RestoreOptions,
) -> None:
    move = StateMove(side.thread, made.checkpoint.id, recovery.id, moves=options.state)
    await _prepare(session, side, made, move)
    try:
        await side.blocking(session.forward)
        record = UndoRecord(side.thread, recovery.id, options.state)
        await side.blocking(session.remember, record)
        # Last: a commit of the store cannot be undone with the files.
        await _follow(session, side, made, recovery, options)
    except BaseException:
        await side.blocking(session.backward)
        raise
    await side.blocking(session.followed)
    await side.blocking(session.finish)


async def _prepare(
    session: Session, side: StoreSide, made: _Restore, move: StateMove | None
) -> None:
    """Write the new files and the intent beside; what fails leaves nothing behind."""
    try:
        await _stage(session, side, made)
        await side.blocking(session.commit, made.plan, made.target, move)
    except BaseException:
        await side.blocking(session.abandon)
        raise


async def _stage(session: Session, side: StoreSide, made: _Restore) -> None:
    await side.blocking(session.begin)
    for batch in _batches(made.plan):
        paths = [entry.path for _, entry in batch]
        contents = await side.contents(paths, made.checkpoint)
        for (number, entry), content in zip(batch, contents, strict=True):
            await side.blocking(session.write, number, entry, content)


def _batches(plan: Plan) -> Iterator[list[tuple[int, FileEntry]]]:
    """The files to be written by their numbers, as many as are read at once."""
    batch, size = list[tuple[int, FileEntry]](), 0
    for number, change in enumerate(plan.changes):
        entry = change.after
        if entry is None or entry.is_directory:
            continue
        if batch and size + entry.size > READ_AT_ONCE:
            yield batch
            batch, size = [], 0
        batch.append((number, entry))
        size += entry.size
    if batch:
        yield batch


async def _follow(
    session: Session,
    side: StoreSide,
    made: _Restore,
    recovery: Checkpoint,
    options: RestoreOptions,
) -> None:
    """Make the thread's head have the files that the folder has now."""
    # First, because it can fail: what the head has moved to is not known then.
    after = session.restored(made.plan)
    if after is None:
        found = await side.blocking(session.scan_again)
        _refuse_unread(
            session.path, found.tree, (made.target, made.last), options.paths
        )
        after = made.recorded(found)
    head = recovery
    if options.state:
        await side.move(made.checkpoint.id, recovery.id)
        head = made.checkpoint
    known = made.target if options.state else session.snapshot.tree
    if not compare(known, after.tree):
        return
    try:
        await side.keep(after, RESTORED, head)
    except BaseException:
        if options.state:
            await side.move(recovery.id, head.id)
        raise


def _report(
    made: _Restore,
    options: RestoreOptions,
    *,
    done: bool = True,
    recovery: Checkpoint | None = None,
    kept: Collection[str] = (),
) -> RestoreReport:
    changes = made.plan.changes
    return RestoreReport(
        checkpoint=made.checkpoint,
        done=done,
        state=options.state,
        written=_texts([c.path for c in changes if c.after is not None]),
        removed=_texts([c.path for c in changes if c.after is None]),
        conflicts=_texts(made.plan.conflicts),
        obstacles=_texts(made.obstacles),
        left=tuple((os.fsdecode(each.path), each.reason) for each in made.plan.left),
        recovery=recovery,
        kept=tuple(kept),
    )
