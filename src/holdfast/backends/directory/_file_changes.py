"""Changing files of lines: all that a transaction changes, or nothing.

One file is changed by one append or one rename. If several files change, an intent that
says what is to be done is written and synced first. A process that finds an intent does
what it says, again if need be. A change that fails is undone, unless an existing file
has been replaced already; an intent is carried out by the next process then.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

from holdfast.backends.directory._folder import Folder
from holdfast.backends.directory._lines import checked, encode_line
from holdfast.errors import Corrupt

INTENT = "intent"
NEW = "new-"


# A folder from elsewhere can bring an intent: it names nothing outside of the folder.
_LINES = Annotated[str, Meta(pattern=r"\A[^./\\\0][^/\\\0]*\.jsonl\Z")]
_NEW_FILE = Annotated[str, Meta(pattern=rf"\A{NEW}[0-9]+\Z")]


class LineAppend(msgspec.Struct, frozen=True):
    """Lines to put at the end of a file."""

    offset: Annotated[int, Meta(ge=0)]
    text: str


class Intent(msgspec.Struct, frozen=True, kw_only=True):
    """File changes to make, by name; ``renames`` gives new files their names."""

    appends: dict[_LINES, LineAppend]
    renames: dict[_NEW_FILE, _LINES]
    removes: list[_LINES]


_decoder = msgspec.json.Decoder(Intent)


class FileChanges:
    """The changes of one transaction to the files."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._files = folder.files
        self._appends: dict[str, LineAppend] = {}
        self._renames: dict[str, str] = {}
        self._removes: list[str] = []
        self._has_begun = self._has_intent = False
        # The files that were there before they were to be replaced or removed.
        self._replaceable: list[str] | None = None

    # --- what is to be done -----------------------------------------------------------

    def append(self, name: str, offset: int, data: bytes) -> None:
        """Put lines at the end of a file."""
        self._appends[name] = LineAppend(offset, data.decode())

    def create(self, name: str, chunks: Iterable[bytes]) -> None:
        """Make a file, or replace it as a whole."""
        new = f"{NEW}{len(self._renames)}"
        self._renames[new] = name
        path, offset = self._folder.work_file(new), 0
        self._begin()
        self._files.remove(path)
        for chunk in chunks:
            self._files.write(path, offset, chunk)
            offset += len(chunk)
        self._files.sync(path)

    def remove(self, name: str) -> None:
        """Remove a file."""
        self._removes.append(name)

    # --- doing it ---------------------------------------------------------------------

    def carry_out(self) -> None:
        """Make all changes, so that they survive a power cut."""
        self._begin()
        if len(self._appends) + len(self._renames) + len(self._removes) > 1:
            self._write_intent()
        for name, append in self._appends.items():
            path = self._folder.file(name)
            self._files.write(path, append.offset, append.text.encode())
        for name in self._appends:
            self._files.sync(self._folder.file(name))
        if self._renames or self._removes:
            names = {*self._renames.values(), *self._removes}
            self._replaceable = [name for name in names if self._folder.stamp(name)]
            _replace(self._folder, self._renames, self._removes)

    def finish(self) -> None:
        """Remove the intent: the files are complete."""
        self._remove_intent()
        if self._has_begun:
            self._folder.lock.note(changing=False)

    def undo(self) -> bool:
        """Undo the changes; False if some of them may be made all the same.

        Then the lock keeps saying that files are being changed: the next process with
        the lock looks at all of them, and does what is left of an intent.
        """
        if not self._has_begun:
            return True
        try:
            if self.has_replaced:
                return False
            self._revert()
            self._remove_intent()
        except OSError:
            return False
        # What is left of the new files does no harm.
        with contextlib.suppress(OSError):
            self.finish()
            _remove_new(self._folder)
        return True

    @property
    def has_replaced(self) -> bool:
        """True if a file that was there before is replaced or removed by now."""
        if not self._replaceable:
            return False
        new = {name: self._folder.work_file(n) for n, name in self._renames.items()}
        before = (new.get(n) or self._folder.file(n) for n in self._replaceable)
        return not all(map(os.path.lexists, before))

    @property
    def will_be_completed(self) -> bool:
        """True if a synced intent has the changes that are left."""
        return self._has_intent and self.has_replaced

    def _revert(self) -> None:
        """Take the changes back; the intent, which is still there, can redo them."""
        for name, append in self._appends.items():
            path = self._folder.file(name)
            if os.path.getsize(path) > append.offset:
                self._files.truncate(path, append.offset)
                self._files.sync(path)
        for new, name in self._renames.items() if self._replaceable is not None else ():
            if not os.path.exists(self._folder.work_file(new)):
                self._files.rename(self._folder.file(name), self._folder.work_file(new))
                self._folder.sync()

    def _remove_intent(self) -> None:
        if self._has_intent:
            self._files.remove(self._folder.work_file(INTENT))
            self._folder.sync_work()
            self._has_intent = False

    def _begin(self) -> None:
        if not self._has_begun:
            self._folder.lock.note(changing=True)
            self._has_begun = True

    def _write_intent(self) -> None:
        intent = Intent(
            appends=self._appends, renames=self._renames, removes=self._removes
        )
        path = self._folder.work_file(INTENT)
        if self._renames:
            # If the intent survives a power cut, the files it names must too.
            self._folder.sync_work()
        self._has_intent = True
        self._files.remove(path)
        self._files.write(path, 0, encode_line(intent)[0])
        self._files.sync(path)
        self._folder.sync_work()


def recover(folder: Folder) -> None:
    """Do what is left of an intent, and remove unfinished new files."""
    path = folder.work_file(INTENT)
    if os.path.exists(path):
        intent = read_intent(folder)
        if intent is not None:
            _redo(folder, intent)
        folder.files.remove(path)
        folder.sync_work()
    _remove_new(folder)


def read_intent(folder: Folder) -> Intent | None:
    """The stored intent; an intent that is not whole was never synced."""
    path = folder.work_file(INTENT)
    try:
        _, body = checked(folder.files.read(path))
    except (FileNotFoundError, ValueError):
        return None
    try:
        return _decoder.decode(b"{" + body)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        text = f"no version of Holdfast has written it: {error}; remove it"
        raise Corrupt(path, text) from error


def _redo(folder: Folder, intent: Intent) -> None:
    for name, append in intent.appends.items():
        found, data = folder.stamp(name), append.text.encode()
        if found is None or found.size < append.offset:
            continue  # another file was put there since
        path = folder.file(name)
        if folder.files.read(path, append.offset, len(data)) != data:
            folder.files.truncate(path, append.offset)
            folder.files.write(path, append.offset, data)
        folder.files.sync(path)
    _replace(folder, intent.renames, intent.removes)


def _replace(folder: Folder, renames: Mapping[str, str], removes: list[str]) -> None:
    for new, name in renames.items():
        if os.path.exists(folder.work_file(new)):
            folder.files.rename(folder.work_file(new), folder.file(name))
    for name in removes:
        folder.files.remove(folder.file(name))
    folder.sync()


def _remove_new(folder: Folder) -> None:
    for name in os.listdir(folder.work):
        if name.startswith(NEW):
            folder.files.remove(folder.work_file(name))
