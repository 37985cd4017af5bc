"""Changing files of lines: all that a transaction changes, or nothing.

One file is changed by one append or one rename. Where there are more, what shall be
done is first written down as an intent and synced: whoever finds it does it, again if
need be. What fails is taken back, unless a file that was there has been replaced.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping

import msgspec

from holdfast.backends.directory._folder import Folder
from holdfast.backends.directory._lines import checked, encode_line

INTENT = "intent"
NEW = "new-"


class Append(msgspec.Struct, frozen=True):
    """Lines to put behind the end of a file."""

    offset: int
    text: str


class Intent(msgspec.Struct, frozen=True, kw_only=True):
    """What shall be done to files, by name; ``renames`` from files in the making."""

    appends: dict[str, Append]
    renames: dict[str, str]
    removes: list[str]


_decoder = msgspec.json.Decoder(Intent)


class Changes:
    """The changes of one transaction, from the first byte to their end."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._files = folder.files
        self._appends: dict[str, Append] = {}
        self._renames: dict[str, str] = {}
        self._removes: list[str] = []
        self._has_begun = self._has_intent = False
        self._has_renamed = self._has_replaced = False

    # --- what shall be done -----------------------------------------------------------

    def append(self, name: str, offset: int, data: bytes) -> None:
        """Put lines behind the end of a file."""
        self._appends[name] = Append(offset, data.decode())

    def create(self, name: str, chunks: Iterable[bytes]) -> None:
        """Make a file, or replace it as a whole."""
        new = f"{NEW}{len(self._renames)}"
        self._renames[new] = name
        path, offset = self._folder.tool(new), 0
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
        """Do it all, so that it survives a power cut."""
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
            self._has_replaced = any(map(self._folder.look, names))
            self._has_renamed = True
            _replace(self._folder, self._renames, self._removes)

    def finish(self) -> None:
        """The transaction is made; nothing has to be done again."""
        if self._has_intent:
            self._files.remove(self._folder.tool(INTENT))
            self._folder.sync_work()
        if self._has_begun:
            self._folder.lock.note(changing=False)

    def take_back(self) -> None:
        """Undo what was done, if that is possible.

        If not, the lock keeps saying that files are being changed: the next one to
        have it looks at all of them, and does what is left of an intent.
        """
        if self._has_begun and not self._has_replaced:
            with contextlib.suppress(OSError):
                self._undo()
                self.finish()
                _remove_new(self._folder)

    def _undo(self) -> None:
        """Until the intent is removed, doing it again is possible at every step."""
        for name, append in self._appends.items():
            path = self._folder.file(name)
            if os.path.getsize(path) > append.offset:
                self._files.truncate(path, append.offset)
                self._files.sync(path)
        for new, name in self._renames.items() if self._has_renamed else ():
            if not os.path.exists(self._folder.tool(new)):
                self._files.rename(self._folder.file(name), self._folder.tool(new))
                self._folder.sync()

    def _begin(self) -> None:
        if not self._has_begun:
            self._folder.lock.note(changing=True)
            self._has_begun = True

    def _write_intent(self) -> None:
        intent = Intent(
            appends=self._appends, renames=self._renames, removes=self._removes
        )
        path = self._folder.tool(INTENT)
        if self._renames:
            # An intent that is there without the files it speaks of could not be done.
            self._folder.sync_work()
        self._has_intent = True
        self._files.remove(path)
        self._files.write(path, 0, encode_line(intent)[0])
        self._files.sync(path)
        self._folder.sync_work()


def recover(folder: Folder) -> None:
    """Do what is left of an intent, and remove what was in the making."""
    path = folder.tool(INTENT)
    if os.path.exists(path):
        intent = read_intent(folder)
        if intent is not None:
            _redo(folder, intent)
        folder.files.remove(path)
        folder.sync_work()
    _remove_new(folder)


def read_intent(folder: Folder) -> Intent | None:
    """What shall be done; an intent that is not whole was never synced."""
    try:
        _, body = checked(folder.files.read(folder.tool(INTENT)))
        return _decoder.decode(b"{" + body)
    except (FileNotFoundError, ValueError):
        return None


def _redo(folder: Folder, intent: Intent) -> None:
    for name, append in intent.appends.items():
        found, data = folder.look(name), append.text.encode()
        if found is None or found.size < append.offset:
            continue  # somebody has put another file there since
        path = folder.file(name)
        if folder.files.read(path, append.offset, len(data)) != data:
            folder.files.truncate(path, append.offset)
            folder.files.write(path, append.offset, data)
        folder.files.sync(path)
    _replace(folder, intent.renames, intent.removes)


def _replace(folder: Folder, renames: Mapping[str, str], removes: list[str]) -> None:
    for new, name in renames.items():
        if os.path.exists(folder.tool(new)):
            folder.files.rename(folder.tool(new), folder.file(name))
    for name in removes:
        folder.files.remove(folder.file(name))
    folder.sync()


def _remove_new(folder: Folder) -> None:
    for name in os.listdir(folder.work):
        if name.startswith(NEW):
            folder.files.remove(folder.tool(name))
