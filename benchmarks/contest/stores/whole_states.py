"""The whole state in one piece every turn, as simple programs do it."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence

import orjson

from benchmarks.contest.workload import Turn


def encoded(turn: Turn) -> bytes:
    """A state as JSON."""
    return orjson.dumps({"messages": turn.messages})


def decoded(content: bytes) -> Sequence[object]:
    """The messages of a state."""
    found: list[object] = orjson.loads(content)["messages"]
    return found


def replace(path: str, content: bytes) -> None:
    """Replace a file so that after a power cut the old or the new one is there."""
    with open(f"{path}.new", "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.rename(f"{path}.new", path)
    folder = os.open(os.path.dirname(path), os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)


class Blobs:
    """A row of SQLite for every turn, with all of its state."""

    def __init__(self, path: str) -> None:
        self._db = sqlite3.connect(path)
        self._db.execute("pragma journal_mode = wal")
        self._db.execute("pragma synchronous = full")
        self._db.execute(
            "create table if not exists state (n integer primary key, content blob)"
        )

    def save(self, turn: Turn) -> None:
        """Insert the state."""
        with self._db:
            self._db.execute("insert into state (content) values (?)", (encoded(turn),))

    def load(self) -> Sequence[object]:
        """The newest row."""
        newest = "select content from state order by n desc limit 1"
        [[content]] = self._db.execute(newest).fetchall()
        return decoded(content)

    def last(self, count: int) -> Sequence[object]:
        """The end of the whole state."""
        return self.load()[-count:]

    def close(self) -> None:
        """Close the file."""
        self._db.close()


class JsonFile:
    """One file, replaced every turn: nothing but the last state is kept."""

    def __init__(self, path: str) -> None:
        self._path = path

    def save(self, turn: Turn) -> None:
        """Replace the file."""
        replace(self._path, encoded(turn))

    def load(self) -> Sequence[object]:
        """The file."""
        with open(self._path, "rb") as file:
            return decoded(file.read())

    def last(self, count: int) -> Sequence[object]:
        """The end of the whole file."""
        return self.load()[-count:]

    def close(self) -> None:
        """Nothing is open."""
