"""`Workspace`: a folder that belongs to the state of a thread."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Collection, Coroutine, Generator, Iterable
from typing import Any, TypedDict, Unpack, overload

from holdfast._api.thread import AsyncThread, Thread
from holdfast._api.wrong_api import OfThisProcess
from holdfast._engine.threads.lineage import Reference
from holdfast._port import run
from holdfast._values.arguments import (
    checked_count,
    checked_flag,
    checked_items,
    checked_path,
    checked_seconds,
    kind_of,
)
from holdfast._values.files import Tree
from holdfast._values.keywords import refuse_unknown
from holdfast._values.os_errors import is_nothing, reading, writing
from holdfast._values.records import checked_name
from holdfast.errors import Conflict, NotFound, Unstorable, Unsupported
from holdfast.workspace import _descriptors, _intent
from holdfast.workspace._disk import Disk
from holdfast.workspace._intent import StateMove
from holdfast.workspace._own_folder import OwnFolder, own_folder
from holdfast.workspace._patterns import load_matcher
from holdfast.workspace._report import RestoreReport
from holdfast.workspace._restore import RestoreOptions, restore, restore_apart
from holdfast.workspace._rules import RuleBook
from holdfast.workspace._scan import Scanner
from holdfast.workspace._session import UNDO, Session, UndoRecord, read_sealed
from holdfast.workspace._snapshot import FolderSnapshot
from holdfast.workspace._store_side import AwaitedSide, BlockingSide, StoreSide
from holdfast.workspace._stores import A_STORE, is_store_folder
from holdfast.workspace._walk import Limits

LARGEST_FILE = 64 << 20
MOST_FILES = 200_000
MOST_BYTES = 1 << 30

StrPath = str | os.PathLike[str]


class HowToRestore(TypedDict, total=False):
    """The options of `Workspace.restore`, which explains each."""

    paths: Iterable[StrPath] | None
    dry_run: bool
    force: bool
    state: bool
    into: StrPath | None


class Workspace(OfThisProcess):
    """A folder whose files are saved with a state: ``thread.save(state, files=…)``.

    ``ignore`` are patterns as in ``.gitignore``, beside those in the ``.gitignore`` and
    ``.holdfastignore`` files of its folders. Files larger than ``largest_file`` bytes,
    and all beyond ``most_files`` files or ``most_bytes`` bytes in all, are left out;
    each snapshot lists what it left out and why. A restore that a crash interrupted is
    finished when the workspace is opened. Its own files are in `.holdfast`.
    """

    def __init__(
        self,
        path: StrPath,
        *,
        ignore: Iterable[str] = (),
        largest_file: int = LARGEST_FILE,
        most_files: int = MOST_FILES,
        most_bytes: int = MOST_BYTES,
        busy_timeout: float = 5.0,
    ) -> None:
        load_matcher()
        self.path = _checked_folder(checked_path(path, "path"))
        limits = Limits(
            largest_file=checked_count(largest_file, "largest_file"),
            most_files=checked_count(most_files, "most_files"),
            most_bytes=checked_count(most_bytes, "most_bytes"),
        )
        self._ignore = tuple(_patterns(ignore))
        self._scanner = Scanner(self.path, RuleBook(self._ignore), limits)
        self._busy_timeout = checked_seconds(busy_timeout, "busy_timeout")
        # Between threads; the lock of the folder is between processes.
        self._lock = threading.Lock()
        self._disk = Disk()
        with self._opened() as (top, own):
            if own.at is not None and _intent.find_intent(own.at) is not None:
                with self._session(top, own):
                    pass

    def __repr__(self) -> str:
        return f"Workspace({self.path!r})"

    def scan(self, known: Tree | None = None) -> FolderSnapshot:  # noqa: ARG002 - a hint
        """The files as they are now; only those that may have changed are read."""
        with self._lock, self._opened() as (top, own):
            while True:
                with own.locked(alone=False) as young:
                    if own.at is None or _intent.find_intent(own.at) is None:
                        self._refuse_unfinished(own)
                        return self._scanner.scan(top, own, young)
                with self._session(top, own):
                    pass

    # --- restoring --------------------------------------------------------------------

    @overload
    def restore(
        self, thread: Thread, ref: Reference, **how: Unpack[HowToRestore]
    ) -> RestoreReport: ...
    @overload
    def restore(
        self, thread: AsyncThread, ref: Reference, **how: Unpack[HowToRestore]
    ) -> Coroutine[Any, Any, RestoreReport]: ...
    def restore(
        self,
        thread: Thread | AsyncThread,
        ref: Reference,
        **how: Unpack[HowToRestore],
    ) -> RestoreReport | Coroutine[Any, Any, RestoreReport]:
        """Put the files back to what they were at a checkpoint of a thread.

        The present is saved as a checkpoint first, and `undo` goes back to it. Only
        files that the head or the checkpoint recorded are touched. Nothing is changed
        if a file was changed since the head was saved: `Conflict` with the code
        ``files_changed`` and all ``paths``; ``force=True`` restores these too. A file
        that no snapshot has is never overwritten: ``files_in_the_way``.

        - ``paths`` restores only these files and folders. A repository (`.git` and the
          like), which runs what stands in it, is restored only if ``paths`` names it or
          the workspace takes it in: ``Workspace(folder, ignore=["!.git"])``.
        - ``state=True`` moves the head of the thread to the checkpoint as well.
        - ``dry_run=True`` only reports what would change, conflicts included.
        - ``into`` writes the files into another folder, and changes no other.

        With an `AsyncThread` the result is awaited.
        """
        refuse_unknown("a restore", how, HowToRestore)
        _check_thread(thread)
        options, into = _options(how, self.path), how.get("into")
        if into is not None:
            into = checked_path(into, "into")
        if isinstance(thread, AsyncThread):
            return self._restore(AwaitedSide(thread), ref, options, into)
        return run(self._restore(BlockingSide(thread), ref, options, into))

    async def _restore(
        self,
        side: StoreSide,
        ref: Reference,
        options: RestoreOptions,
        into: StrPath | None = None,
    ) -> RestoreReport:
        with contextlib.ExitStack() as stack:
            stack.callback(side.close)
            if into is None:
                session = await side.blocking(self._entered, stack)
                return await restore(session, side, ref, options)
            _refuse_state(options)
            other = await side.blocking(self._beside, into)
            enter = other._entered  # noqa: SLF001 - a workspace, too
            session = await side.blocking(enter, stack)
            return await restore_apart(session, side, ref, options)

    def _beside(self, into: StrPath) -> Workspace:
        with writing(str(into)):
            os.makedirs(into, exist_ok=True)
        other = Workspace(into, ignore=self._ignore, busy_timeout=self._busy_timeout)
        other._disk = self._disk
        return other

    def _entered(self, stack: contextlib.ExitStack) -> Session:
        return stack.enter_context(self._alone())

    @contextlib.contextmanager
    def _alone(self) -> Generator[Session]:
        with (
            self._lock,
            self._opened() as (top, own),
            self._session(top, own) as session,
        ):
            yield session

    @overload
    def undo(self, thread: Thread) -> RestoreReport: ...
    @overload
    def undo(self, thread: AsyncThread) -> Coroutine[Any, Any, RestoreReport]: ...
    def undo(
        self, thread: Thread | AsyncThread
    ) -> RestoreReport | Coroutine[Any, Any, RestoreReport]:
        """Take the last restore back; a second call makes it again."""
        _check_thread(thread)
        record = self._undo_record(thread.id)
        return self.restore(thread, record.recovery, state=record.state)

    def _undo_record(self, thread: str) -> UndoRecord:
        with self._opened() as (_, own):
            record = None
            with contextlib.suppress(Conflict):  # of the restore of another user
                record = read_sealed(own, UNDO, UndoRecord)
        if record is None or record.thread != thread:
            raise NotFound(
                f"no restore of thread {thread!r} is known in {self.path};"
                " restore its recovery checkpoint by its id",
                thread=thread,
            )
        return record

    # --- the folder -------------------------------------------------------------------

    @contextlib.contextmanager
    def _opened(self) -> Generator[tuple[int, OwnFolder]]:
        try:
            top = os.open(self.path, _descriptors.FOLDER)
        except OSError as error:
            if is_nothing(error):
                raise _no_folder(self.path) from error
            with reading(self.path):
                raise
        try:
            with reading(self.path):
                _refuse_store(top, self.path)
                with own_folder(top, self.path, self._busy_timeout) as own:
                    yield top, own
        finally:
            os.close(top)

    @contextlib.contextmanager
    def _session(self, top: int, own: OwnFolder) -> Generator[Session]:
        """The folder for a restore alone; what a crash left is finished first."""
        with own.locked(alone=True) as young:
            session = Session(self.path, top, own, self._scanner, self._disk)
            session.young = young
            session.recover()
            yield session

    def _refuse_unfinished(self, own: OwnFolder) -> None:
        """Files and state belong together: save none if only the files were moved."""
        move = read_sealed(own, _intent.UNFINISHED, StateMove)
        if move is not None and move.moves:
            raise Conflict(
                f"the files of {self.path} were restored to {move.checkpoint}, but a"
                f" crash came before the state of thread {move.thread!r}; call"
                " restore() with state=True again, or undo()",
                code="restore_unfinished",
                thread=move.thread,
            )


def _check_thread(thread: object) -> None:
    if not isinstance(thread, Thread | AsyncThread):
        text = f"must be a thread, not {kind_of(thread)}; pass store.thread(id)"
        raise Unstorable("thread", text)


def _patterns(ignore: object) -> list[str]:
    """The patterns of a caller."""
    return [
        checked_name(pattern, "ignore") for pattern in checked_items(ignore, "ignore")
    ]


def _checked_folder(path: StrPath) -> str:
    if os.open not in os.supports_dir_fd:
        raise Unsupported(
            "a workspace needs a system whose files can be opened relative to a folder,"
            " so that no link leads out of it; use Linux or macOS, or WSL on Windows",
        )
    found = os.path.realpath(path)
    if not os.path.isdir(found):
        raise _no_folder(found)
    home = os.path.realpath(os.path.expanduser("~"))
    if os.path.commonpath([found, home]) == found:
        raise Unsupported(
            f"{found} is the home folder or contains it; a workspace is a folder of its"
            " own, such as that of a project",
            code="workspace_too_wide",
        )
    return found


def _refuse_store(top: int, path: str) -> None:
    """Refuse a store as a workspace: both keep a lock and an index in `.holdfast`."""
    if is_store_folder(top):
        raise Unsupported(
            f"{path} is {A_STORE}, whose files no snapshot has; choose the folder that"
            " it is in, or one beside it",
            code="workspace_is_store",
        )


def _no_folder(path: str) -> NotFound:
    return NotFound(f"there is no folder {path}; make it first", code="no_folder")


def _options(how: HowToRestore, top: str) -> RestoreOptions:
    paths = how.get("paths")
    return RestoreOptions(
        paths=None if paths is None else _relative(paths, top),
        dry_run=checked_flag(how.get("dry_run", False), "dry_run"),
        force=checked_flag(how.get("force", False), "force"),
        state=checked_flag(how.get("state", False), "state"),
    )


def _refuse_state(options: RestoreOptions) -> None:
    if options.state:
        raise Unsupported(
            "files in another folder do not belong to the state of the thread; restore"
            " into a folder without state=True"
        )


def _relative(paths: Iterable[StrPath], top: str) -> Collection[bytes]:
    found: set[bytes] = set()
    for given in checked_items(paths, "paths"):
        path = checked_path(given, "paths")
        inside = os.path.relpath(os.path.join(top, path), top)
        if inside.startswith(os.pardir) or inside == os.curdir:
            raise NotFound(f"{path} is not below {top}", code="no_file")
        found.add(os.fsencode(inside))
    return found
