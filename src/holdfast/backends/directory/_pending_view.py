"""A folder as it will be once a change that was interrupted has been done."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.backends.directory._file_changes import Intent, read_intent
from holdfast.backends.directory._files import Seen, seen
from holdfast.backends.directory._folder import Folder

_NOTHING = Intent(appends={}, renames={}, removes=[])


class View(Folder):
    """Shows what is left to do as done, and does nothing."""

    _intent = _NOTHING

    def refresh(self) -> None:
        """Look whether something is left to do."""
        self._intent = read_intent(self) or _NOTHING

    def look(self, name: str) -> Seen | None:
        if name in self._intent.removes:
            return None
        path = self._replacement(name)
        found = seen(path) if path else super().look(name)
        append = self._intent.appends.get(name)
        if append is None or found is None or found.size < append.offset:
            return found
        return found._replace(size=append.offset + len(append.text.encode()))

    def listing(self) -> dict[str, Seen]:
        names = {*super().listing(), *self._intent.renames.values()}
        looks = {name: self.look(name) for name in names}
        return {name: found for name, found in looks.items() if found is not None}

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
        """The file that shall get a name, if that has not happened yet."""
        for new, replaced in self._intent.renames.items():
            if replaced == name and seen(self.tool(new)) is not None:
                return self.tool(new)
        return None
