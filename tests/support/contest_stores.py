"""Stores for the benchmark that do not do what they should."""

from __future__ import annotations

import os

from benchmarks.contest.stores.whole_states import JsonFile, replace


class Forgetful(JsonFile):
    """Says that a turn is saved, and writes it only when it is closed."""

    def __init__(self, path):
        super().__init__(path)
        self._unsaved = None

    def save(self, turn):
        self._unsaved = turn

    def load(self):
        self._write()
        return super().load() if os.path.exists(self._path) else []

    def close(self):
        self._write()

    def _write(self):
        if self._unsaved is not None:
            super().save(self._unsaved)


class Failing(JsonFile):
    """Cannot save a second turn."""

    def save(self, turn):
        if len(turn.messages) > 2:
            raise ValueError("no room for a second turn")
        super().save(turn)


class Damaged(Forgetful):
    """Leaves bytes that cannot be read, unless it is closed."""

    def save(self, turn):
        super().save(turn)
        replace(self._path, b"not JSON")
