"""One run of the command line: its options, its store and its output."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from holdfast._api.address import shown_address
from holdfast._api.store import Store
from holdfast._values.clock import now
from holdfast.cli._shared_options import SharedOptions
from holdfast.cli._store_address import find_store, open_store
from holdfast.cli.terminal.output import Output
from holdfast.cli.terminal.progress import ProgressReport

PROGRAM = "holdfast"
# The variable by which a shell asks for completions.
COMPLETION = "_HOLDFAST_COMPLETE"


class Invocation:
    """The call of a command; ``clock`` gives microseconds."""

    def __init__(
        self, arguments: Sequence[str] = (), clock: Callable[[], int] = now
    ) -> None:
        self.arguments = tuple(arguments)
        self.clock = clock
        self.options = SharedOptions()
        self.out = Output(self.options, clock)

    @property
    def address(self) -> str:
        """The address of the store; a store that was named need not exist."""
        self._change_directory()
        return find_store(self.options)

    def reading(self) -> Store:
        """The store, opened for reading only."""
        return self._open(write=False)

    def writing(self, *, accept_loss: bool = False) -> Store:
        """The store, opened for writing; refused with ``--read-only``."""
        return self._open(write=True, accept_loss=accept_loss)

    def progress(self, what: str) -> ProgressReport:
        """A context manager that gives the callback for (done, total)."""
        return ProgressReport(what, silent=self.options.quiet or self.out.is_json)

    def _open(self, *, write: bool, accept_loss: bool = False) -> Store:
        self._change_directory()
        store = open_store(self.options, write=write, accept_loss=accept_loss)
        if self.options.verbose:
            self.out.note(f"store: {shown_address(self.address)}")
        return store

    def _change_directory(self) -> None:
        if self.options.directory is not None:
            os.chdir(self.options.directory)
            self.options.directory = None
