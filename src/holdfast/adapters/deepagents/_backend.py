"""The backend over the files of a thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self, TypeAlias, Unpack

from deepagents.backends.protocol import (
    BackendProtocol,
    DeleteResult,
    EditResult,
    FileDownloadResponse,
    FileUploadResponse,
    GlobResult,
    GrepResult,
    LsResult,
    ReadResult,
    WriteResult,
)
from deepagents.backends.utils import perform_string_replacement
from langgraph.config import get_config

import holdfast
from holdfast.adapters.deepagents import _search
from holdfast.adapters.deepagents._changes import ChangedTree, Head, change
from holdfast.adapters.deepagents._paths import (
    Refused,
    below,
    plain_file,
    stored_path,
    writable_path,
)
from holdfast.errors import Busy, Conflict, Unstorable, Unsupported
from holdfast.operations import OpenOptions
from holdfast.operations.stores import BlockingStore, StoreOrAddress

KIND = "deepagents"
# The name of a thread, or a function that returns it when a file is used.
ThreadName: TypeAlias = str | Callable[[], str]
# Errors that the model is told, so that it can try again.
_TOLD = (Refused, Conflict, Busy, Unstorable)


def thread_of_run() -> str:
    """The thread for the conversation that LangGraph runs: ``deepagents:<id>``."""
    try:
        thread = get_config().get("configurable", {})["thread_id"]
    except (RuntimeError, KeyError) as error:
        raise Unsupported(
            "the files belong to the conversation that runs, and none with a thread_id"
            " does; use backend.of(thread_id), or name a thread:"
            " HoldfastBackend(store, 'notes')"
        ) from error
    return f"{KIND}:{thread}"


class HoldfastBackend(BackendProtocol):
    """A backend for ``create_deep_agent(backend=...)``.

    ``store`` is a `Store`, an `AsyncStore` or an address, which is opened with the
    options of `holdfast.open`. ``thread`` names the thread that has the files, or is a
    function that gives the name; without it each conversation has its own, after its
    ``thread_id``. A thread of any kind can have files beside its state.

    Every change is a checkpoint, durable when the method returns. Several agents and
    processes can change files of one thread: an edit is applied to what is there then.
    """

    def __init__(
        self,
        store: StoreOrAddress,
        thread: ThreadName | None = None,
        **options: Unpack[OpenOptions],
    ) -> None:
        self._used = BlockingStore(store, "deepagents", **options)
        self._name = thread or thread_of_run

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the store if it was opened here."""
        self._used.close()

    @property
    def thread(self) -> holdfast.Thread:
        """The thread that has the files, for history, fork, rewind, diff."""
        name = self._name if isinstance(self._name, str) else self._name()
        return self._used.store.thread(name, kind=KIND)

    def of(self, thread_id: str) -> HoldfastBackend:
        """The backend of one conversation, for use outside of its run."""
        return HoldfastBackend(self._used.store, f"{KIND}:{thread_id}")

    # --- reading ----------------------------------------------------------------------

    def ls(self, path: str) -> LsResult:
        """The files and folders directly in a folder."""
        try:
            return LsResult(entries=_search.listed(Head(self.thread), path))
        except _TOLD as error:
            return LsResult(error=str(error))

    def read(self, file_path: str, offset: int = 0, limit: int = 2000) -> ReadResult:
        """Some lines of a text file; other content comes whole, as base64."""
        try:
            head = Head(self.thread)
            [content] = head.read([plain_file(head.tree, file_path)])
        except _TOLD as error:
            return ReadResult(error=str(error))
        return _search.window(content, file_path, offset, limit)

    def grep(
        self,
        pattern: str,
        path: str | None = None,
        glob: str | None = None,
        *,
        max_count: int | None = None,
    ) -> GrepResult:
        """The lines that have a literal text."""
        try:
            return _search.grep(Head(self.thread), pattern, path, glob, max_count)
        except _TOLD as error:
            return GrepResult(error=str(error))

    def glob(self, pattern: str, path: str | None = None) -> GlobResult:
        """The files whose paths match a pattern."""
        try:
            found = _search.matching(Head(self.thread), pattern, path)
        except _TOLD as error:
            return GlobResult(error=str(error))
        return GlobResult(matches=found)

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        """The contents of some files, all of the same checkpoint."""
        head = Head(self.thread)
        return [_downloaded(head, path) for path in paths]

    # --- changing ---------------------------------------------------------------------

    def write(self, file_path: str, content: str) -> WriteResult:
        """Write a file, over the one that is there."""

        def make(head: Head, changed: ChangedTree) -> None:
            changed.put(writable_path(head.tree, file_path), _encoded(content))

        try:
            change(self.thread, make, _about("write", file_path))
        except _TOLD as error:
            return WriteResult(error=str(error))
        return WriteResult(path=file_path)

    def edit(
        self,
        file_path: str,
        old_string: str,
        new_string: str,
        replace_all: bool = False,
    ) -> EditResult:
        """Replace a text in a file."""

        def make(head: Head, changed: ChangedTree) -> int:
            if not old_string:  # older versions would find it everywhere
                raise Refused("Error: old_string cannot be empty; say what to replace")
            entry = plain_file(head.tree, file_path)
            text = _text(head.read([entry])[0])
            new = perform_string_replacement(text, old_string, new_string, replace_all)
            if isinstance(new, str):
                raise Refused(new)
            changed.put(entry.path, _encoded(new[0]))
            return new[1]

        try:
            count = change(self.thread, make, _about("edit", file_path))
        except _TOLD as error:
            return EditResult(error=str(error))
        return EditResult(path=file_path, occurrences=count)

    def delete(self, file_path: str) -> DeleteResult:
        """Remove a file, or a folder with all that is in it."""

        def make(head: Head, changed: ChangedTree) -> None:
            found = below(head.tree, stored_path(file_path))
            if not found:
                raise Refused(f"Error: File '{file_path}' not found")
            for entry in found:
                changed.remove(entry.path)

        try:
            change(self.thread, make, _about("delete", file_path))
        except _TOLD as error:
            return DeleteResult(error=str(error))
        return DeleteResult(path=file_path)

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        """Write some files in one checkpoint, without those that cannot be written."""

        def make(_: Head, changed: ChangedTree) -> list[FileUploadResponse]:
            return [_uploaded(changed, path, content) for path, content in files]

        try:
            about = _about("upload", *(path for path, _ in files))
            return change(self.thread, make, about)
        except _TOLD as error:
            return [FileUploadResponse(path, str(error)) for path, _ in files]


def _about(call: str, *paths: str) -> dict[str, object]:
    """The metadata of a checkpoint, for people who read the history."""
    shown = ", ".join(paths[:3]) + (", ..." if len(paths) > 3 else "")  # noqa: PLR2004
    return {KIND: f"{call} {shown}"}


def _downloaded(head: Head, path: str) -> FileDownloadResponse:
    try:
        [content] = head.read([plain_file(head.tree, path)])
    except Refused as error:
        return FileDownloadResponse(path, error=error.code)
    return FileDownloadResponse(path, content=content)


def _uploaded(changed: ChangedTree, path: str, content: bytes) -> FileUploadResponse:
    try:
        # The tree so far: an earlier file of the same call may be in the way.
        changed.put(writable_path(changed.tree, path), content)
    except Refused as error:
        return FileUploadResponse(path, error=error.code)
    return FileUploadResponse(path)


def _text(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise Refused(
            "Error: Cannot edit binary files with text replacements."
        ) from error


def _encoded(content: str) -> bytes:
    try:
        return content.encode()
    except UnicodeEncodeError as error:
        raise Refused(f"Error: the text is not Unicode: {error.reason}") from error
