"""A model of the files that survive a power cut."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

# The probability that a name has its latest state while its folder is not synced.
EVEN = 0.5


class _Change(NamedTuple):
    """A write, or with ``data`` ``None`` a truncation to ``offset`` bytes."""

    offset: int
    data: bytes | None


@dataclass(slots=True)
class _Content:
    """The content of a file: what is synced, and the changes since."""

    durable: bytearray = field(default_factory=bytearray)
    pending: list[_Change] = field(default_factory=list[_Change])
    syncs_folder: bool = False


@dataclass(frozen=True, slots=True)
class _Naming:
    """A name that is removed, or given to a file; a rename is both at once."""

    gone: str | None = None
    made: str | None = None
    content: _Content | None = None

    def carry_out(self, names: dict[str, _Content]) -> None:
        if self.gone is not None:
            names.pop(self.gone, None)
        if self.made is not None and self.content is not None:
            names[self.made] = self.content

    def is_in(self, folder: str) -> bool:
        return folder == os.path.dirname(self.made or self.gone or "")


class Platter:
    """A model of the files that would survive a power cut at this moment.

    It is at least as harsh as the file systems that SQLite runs on:

    - The bytes that were written to a file before its last sync survive.
    - Of the bytes written since, each sector survives, or does not, or only its
      beginning does, at random and in no order; so does each truncation. Bytes outside
      of the written range are never harmed (SQLite's "powersafe overwrite").
    - Names are separate from content. Until the folder is synced, a file that was
      created, deleted or renamed may or may not have its new name after the cut. SQLite
      syncs the folder with the first sync after it opened a journal or log, and when a
      delete asks for it; this counts for all names in the folder.

    ``-shm`` files are memory and do not survive; files that are only locked need not.
    """

    def __init__(self, folder: str, *, sector: int = 4096) -> None:
        self._folder = folder
        self._sector = sector
        self._names: dict[str, _Content] = {}
        found = os.walk(folder)
        for path in (
            os.path.join(at, name) for at, _, names in found for name in names
        ):
            if not path.endswith(("-shm", "lock")):
                with open(path, "rb") as file:
                    self._names[self._name(path)] = _Content(bytearray(file.read()))
        self._durable_names = dict(self._names)
        self._namings: list[_Naming] = []

    # --- what is done to the files ----------------------------------------------------

    def opened(self, path: str, *, is_journal: bool) -> None:
        """A file was opened for writing, and made if it was not there."""
        name = self._name(path)
        if name not in self._names:
            self._rename(_Naming(made=name, content=_Content()))
        content = self._names[name]
        content.syncs_folder = content.syncs_folder or is_journal

    def written(self, path: str, offset: int, data: bytes) -> None:
        """Bytes were written, and are in the cache of the operating system."""
        self._names[self._name(path)].pending.append(_Change(offset, data))

    def truncated(self, path: str, size: int) -> None:
        """A file got a new size, which is not synced yet."""
        self._names[self._name(path)].pending.append(_Change(size, None))

    def synced(self, path: str) -> None:
        """All changes of a file were synced."""
        content = self._names[self._name(path)]
        for change in content.pending:
            _carry_out(content.durable, change)
        content.pending.clear()
        if content.syncs_folder:
            self._settle_names(os.path.dirname(self._name(path)))
            content.syncs_folder = False

    def synced_folder(self, path: str) -> None:
        """All names in a folder were synced."""
        self._settle_names(self._name(path))

    def deleted(self, path: str, *, durably: bool) -> None:
        """A name was removed."""
        name = self._name(path)
        if name in self._names:
            self._rename(_Naming(gone=name))
        if durably:
            self._settle_names(os.path.dirname(name))

    def renamed(self, path: str, target: str) -> None:
        """A file has a new name; a file that had that name is replaced."""
        old, new = self._name(path), self._name(target)
        self._rename(_Naming(old, new, self._names[old]))

    def _rename(self, naming: _Naming) -> None:
        naming.carry_out(self._names)
        self._namings.append(naming)

    def _settle_names(self, folder: str) -> None:
        waiting: list[_Naming] = []
        for naming in self._namings:
            if naming.is_in(folder):
                naming.carry_out(self._durable_names)
                # After a name was removed, an earlier creation of it no longer matters.
                waiting = [n for n in waiting if not n.made or n.made != naming.gone]
            else:
                waiting.append(naming)
        self._namings = waiting

    def _name(self, path: str) -> str:
        if not os.path.isabs(path):
            return path
        name = os.path.relpath(path, self._folder)
        return "" if name == os.curdir else name

    # --- the cut ----------------------------------------------------------------------

    def survivors(self, chance: random.Random) -> dict[str, bytes]:
        """The files of one possible power cut at this moment, by name."""
        share = chance.choice((0.0, 0.2, 0.5, 0.8, 1.0))
        names = dict(self._durable_names)
        for naming in self._namings:
            is_there = naming.gone is None or naming.gone in names
            if is_there and chance.random() < EVEN:
                naming.carry_out(names)
        return {
            name: self._survived(content, chance, share)
            for name, content in sorted(names.items(), key=lambda item: item[0])
        }

    def cut(self, folder: str, chance: random.Random) -> None:
        """Write the files of one possible power cut into a new folder."""
        os.makedirs(folder)
        for name, data in self.survivors(chance).items():
            path = os.path.join(folder, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(data)

    def _survived(
        self, content: _Content, chance: random.Random, share: float
    ) -> bytes:
        data = bytearray(content.durable)
        for change in content.pending:
            for piece in _sectors(change, self._sector):
                if chance.random() < share:
                    _carry_out(data, piece)
                elif piece.data and chance.random() < share / 2:
                    torn = piece.data[: chance.randrange(len(piece.data))]
                    _carry_out(data, _Change(piece.offset, torn))
        return bytes(data)


def _sectors(change: _Change, size: int) -> Iterator[_Change]:
    offset, data = change
    if data is None:
        yield change
        return
    start = 0
    while start < len(data):
        end = start + size - (offset + start) % size
        yield _Change(offset + start, data[start:end])
        start = end


def _carry_out(content: bytearray, change: _Change) -> None:
    offset, data = change
    missing = offset - len(content)
    if missing > 0:
        content.extend(bytes(missing))
    if data is None:
        del content[offset:]
    else:
        content[offset : offset + len(data)] = data
