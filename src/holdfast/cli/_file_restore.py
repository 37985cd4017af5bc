"""`holdfast restore THREAD REF`: put the files and the state of a thread back."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

import holdfast
from holdfast._api.store import Store
from holdfast._api.thread import Thread
from holdfast._values.records import Checkpoint
from holdfast.cli import _status
from holdfast.cli._confirmation import status_of_preview
from holdfast.cli._head_moves import print_move
from holdfast.cli._invocation import Invocation
from holdfast.cli._resolve import locate_in, thread_named
from holdfast.cli._text import counted
from holdfast.cli.terminal.output import Output
from holdfast.cli.terminal.tables import Line
from holdfast.views.effects import left_behind_by_rewind

if TYPE_CHECKING:  # Windows has none
    from holdfast.workspace import RestoreReport, Workspace

# The folder by which a workspace is found, from the current folder upwards.
OWN_FOLDER = ".holdfast"
SCHEMA = "restore_files/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRestore:
    """The parts of a thread to restore, and the place."""

    files: bool
    state: bool
    paths: tuple[str, ...]
    into: str | None
    workspace: str | None
    force: bool

    def __bool__(self) -> bool:
        """True if an option says that it is about a thread, and not an agent."""
        places = self.into is not None or self.workspace is not None
        return places or self.files or self.state or self.force or bool(self.paths)

    @property
    def is_state_alone(self) -> bool:
        """True if no file is restored."""
        return self.state and not self.files

    @property
    def moves_head(self) -> bool:
        """True if the state is restored."""
        return self.state or not (self.files or self.paths or self.into)


def restore_thread(
    cli: Invocation, name: str, text: str | None, choice: FileRestore, **how: bool
) -> int:
    """Restore files, state or both of a thread; ``how`` is ``dry_run`` and ``yes``."""
    if text is None:
        raise click.UsageError(f"name a checkpoint; holdfast log {name} lists them")
    opened = cli.reading if how["dry_run"] else cli.writing
    with opened() as store:
        thread = thread_named(store, name)
        target = locate_in(store, thread, text)
        if choice.is_state_alone:
            return _restore_state(cli, store, thread, target, **how)
        return _restore_files(cli, thread, target, choice, **how)


def _restore_state(
    cli: Invocation,
    store: Store,
    thread: Thread,
    target: Checkpoint,
    *,
    dry_run: bool,
    yes: bool,
) -> int:
    old = thread.get()
    line = f"would move the state of {thread.id} from @{old.step} to @{target.step}"
    lines: list[Line] = [((line, ""),), (("no file is changed", "faint"),)]
    if dry_run or not yes:
        document = {"thread": thread.id, "checkpoint": target.id, "dry_run": True}
        status = status_of_preview(cli, SCHEMA, document, lines, dry_run=dry_run)
        if status is not None:
            return status
    behind = left_behind_by_rewind(thread, target)
    thread.rewind(target)
    print_move(cli, store, thread, "rewind", old, behind)
    return _status.OK


def _restore_files(
    cli: Invocation,
    thread: Thread,
    target: Checkpoint,
    choice: FileRestore,
    *,
    dry_run: bool,
    yes: bool,
) -> int:
    workspace = _workspace(choice)
    paths = [os.path.abspath(path) for path in choice.paths] or None
    state, force, into = choice.moves_head, choice.force, choice.into
    if dry_run or not yes:
        seen = workspace.restore(
            thread, target, paths=paths, dry_run=True, state=state, into=into
        )
        lines = _lines(cli.out, thread.id, seen)
        document = _document(thread.id, seen)
        status = status_of_preview(cli, SCHEMA, document, lines, dry_run=dry_run)
        if status is not None:
            return status
    done = workspace.restore(
        thread, target, paths=paths, force=force, state=state, into=into
    )
    cli.out.done(
        SCHEMA,
        _document(thread.id, done),
        (thread.id, "name"),
        (f"  restored to @{target.step}: {_counts(done)}", ""),
        more=_more(thread.id, done),
    )
    return _status.OK


def _workspace(choice: FileRestore) -> Workspace:
    if choice.into is not None:
        os.makedirs(choice.into, exist_ok=True)
        return holdfast.Workspace(choice.into)
    return holdfast.Workspace(choice.workspace or _nearest())


def _nearest() -> str:
    """The workspace that the current folder is in."""
    place = os.getcwd()
    while not os.path.isdir(os.path.join(place, OWN_FOLDER)):
        above = os.path.dirname(place)
        if above == place:
            raise click.UsageError(
                "this folder is in no workspace; pass --workspace FOLDER"
            )
        place = above
    return place


# --- what is shown --------------------------------------------------------------------


def _lines(out: Output, thread: str, seen: RestoreReport) -> Iterator[Line]:
    what = "files and state" if seen.state else "files"
    yield (
        (f"would restore {what} of ", ""),
        (thread, "name"),
        (f" to @{seen.checkpoint.step}", ""),
    )
    for sign, style, paths in (
        ("~", "changed", seen.written),
        ("-", "removed", seen.removed),
    ):
        yield from (out.fitted(((f"  {sign} {path}", style),)) for path in paths)
    yield from _warnings(seen.conflicts, "was changed since the last snapshot")
    yield from _warnings(seen.obstacles, "is in no snapshot, and in the way")
    yield from _left(seen)
    if not seen.written and not seen.removed:
        yield (("  no file changes", "faint"),)


def _warnings(paths: Sequence[str], text: str) -> Iterator[Line]:
    for path in paths:
        yield ((f"  ! {path} {text}", "bad"),)


def _left(report: RestoreReport) -> Iterator[Line]:
    for path, reason in report.left:
        yield ((f"  {path} stays: {reason}", "faint"),)


def _counts(done: RestoreReport) -> str:
    written, removed = len(done.written), len(done.removed)
    return f"{counted(written, 'file')} written, {removed} removed"


def _more(thread: str, done: RestoreReport) -> Iterator[Line]:
    yield from _left(done)
    yield from _warnings(done.kept, "was in the way, and is kept in .holdfast")
    if done.recovery is not None:
        which = "" if done.state else " --files"
        back = f"holdfast restore{which} {thread} {done.recovery.id}"
        yield ((f"to take this back: {back}", "faint"),)


def _document(thread: str, report: RestoreReport) -> dict[str, Any]:
    return {
        "dry_run": not report.done,
        "thread": thread,
        "checkpoint": report.checkpoint.id,
        "recovery": report.recovery and report.recovery.id,
        "state": report.state,
        "written": list(report.written),
        "removed": list(report.removed),
        "conflicts": list(report.conflicts),
        "in_the_way": list(report.obstacles),
        "left": dict(report.left),
        "kept": list(report.kept),
    }
