"""What a command is given: how to open the store, to print and to show progress."""

from __future__ import annotations

import os
from collections.abc import Sequence

from holdfast._api.store import Store
from holdfast.cli._place import find_store, open_store, without_password
from holdfast.cli._settings import Settings
from holdfast.cli.terminal.output import Output
from holdfast.cli.terminal.progress import Progress


class Session:
    """One run of the command line."""

    def __init__(self, arguments: Sequence[str] = ()) -> None:
        self.arguments = tuple(arguments)
        self.settings = Settings()
        self.out = Output(self.settings)

    @property
    def address(self) -> str:
        """The address of the store, which need not be there yet if it was given."""
        self._change_directory()
        return find_store(self.settings)

    def reading(self) -> Store:
        """The store, opened for reading only."""
        return self._open(write=False)

    def writing(self) -> Store:
        """The store, opened to be changed; refused with ``--read-only``."""
        return self._open(write=True)

    def progress(self, what: str) -> Progress:
        """A context manager that gives what the library calls with (done, total)."""
        return Progress(what, silent=self.settings.quiet or self.out.is_json)

    def _open(self, *, write: bool) -> Store:
        self._change_directory()
        store = open_store(self.settings, write=write)
        if self.settings.verbose:
            self.out.note(f"store: {without_password(self.address)}")
        return store

    def _change_directory(self) -> None:
        if self.settings.directory is not None:
            os.chdir(self.settings.directory)
            self.settings.directory = None
