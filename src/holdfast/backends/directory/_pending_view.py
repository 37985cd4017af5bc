"""A folder as it will be once an interrupted change has been completed."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.backends.directory._file_changes import Intent, read_intent
from holdfast.backends.directory._files import FileStamp, stamp
from holdfast.backends.directory._folder import Folder

_NOTHING = Intent(appends={}, renames={}, removes=[])


class PendingView(Folder):
    """Shows what is left of an intent as done, and changes nothing."""

    _intent = _NOTHING

    def refresh(self) -> None:
        """Read the intent again, if there is one."""
        self._intent = read_intent(self) or _NOTHING

    def stamp(self, name: str) -> FileStamp | None:
        if name in self._intent.removes:
            return None
        path = self._replacement(name)
        found = stamp(path) if path else super().stamp(name)
        append = self._intent.appends.get(name)
        if append is None or found is None or found.size < append.offset:
            return found
        return found._replace(size=append.offset + len(append.text.encode()))

    def listing(self) -> dict[str, FileStamp]:
        names = {*super().listing(), *self._intent.renames.values()}
        stamps = {name: self.stamp(name) for name in names}
        return {name: found for name, found in stamps.items() if found is not None}

    def pieces(self, name: str, start: int = 0) -> Iterator[bytes]:
        path = self._replacement(name)
        if path is not None:
            return self.files.pieces(path, start)
        append = self._intent.appends.get(name)
        if append is None:
            return super().pieces(name, start)
        known = self.files.read(self.file(name), 0, append.offset)
        whole = (known + append.text.encode())[start:]
        return iter(line + b"\n" for line in whole.removesuffix(b"\n").split(b"\n"))

    def _replacement(self, name: str) -> str | None:
        """The new file that is to get a name, if it has not got it yet."""
        for new, replaced in self._intent.renames.items():
            if replaced == name and stamp(self.work_file(new)) is not None:
                return self.work_file(new)
        return None
