"""A row of the scorecard, and the target and number of its trials."""

from __future__ import annotations

import os
import random
import re
import shutil
import uuid
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, Unpack

import holdfast
from holdfast import Store
from holdfast._api.open import Opening
from holdfast._api.options import OpenOptions
from holdfast._api.plugins import find_backend, import_extra
from holdfast.errors import HoldfastError, Unstorable, Unsupported
from holdfast.testing.faults import FaultyDisk
from holdfast.testing.trials.scenario import FILE_PLACE, FOLDER_PLACE

Effort: TypeAlias = Literal["quick", "full"]

FILE, FOLDER, SERVER = "file", "dir", "postgresql"
ALL = (FILE, FOLDER, SERVER)
# In a folder or on a server a trial takes about so many times as long as in a file, so
# a full run makes fewer.
SLOWNESS = 4
CONNECT_SECONDS = 10
_SERVER = re.compile(r"postgres(ql)?://")


class Target:
    """A kind of store, and a folder of its own in which such stores are made.

    ``kind`` is ``"file"``, ``"dir"``, the address of a PostgreSQL server, or the scheme
    of another installed backend. On a server the trials make schemas whose names
    begin with ``prefix``.
    """

    def __init__(self, kind: str, folder: str, *, prefix: str | None = None) -> None:
        self.address = kind
        self.folder = folder
        self.prefix = prefix or f"holdfast_selftest_{uuid.uuid4().hex[:12]}"
        self.kind = _kind_of(kind)

    @property
    def place(self) -> str:
        """The place of a store within a folder, for rows that copy whole folders."""
        places = {FILE: FILE_PLACE, FOLDER: FOLDER_PLACE}
        return places.get(self.kind, f"{self.kind}:store")

    def at(self, name: str) -> Target:
        """The same kind of store in a part of the folder."""
        folder = os.path.join(self.folder, name)
        os.makedirs(folder, exist_ok=True)
        return type(self)(self.address, folder, prefix=self.prefix)

    def path(self, name: str) -> str:
        """The file or the folder of a store."""
        return os.path.join(self.folder, name)

    def open(self, name: str, **options: Unpack[OpenOptions]) -> Store:
        """A store of this kind by its name; it is made if it is not there."""
        return holdfast.open(self.url(name), **self._options(name, options))

    def open_at(self, url: str, **options: Unpack[OpenOptions]) -> Store:
        """The store at an address, such as a copy that was damaged."""
        return holdfast.open(url, **options)

    def open_async(self, name: str, **options: Unpack[OpenOptions]) -> Opening:
        """A store of this kind by its name, for the async API."""
        return holdfast.open_async(self.url(name), **self._options(name, options))

    def open_on(
        self, disk: FaultyDisk, path: str, **options: Unpack[OpenOptions]
    ) -> Store:
        """A store on a disk that fails; ``path`` is as `FaultyDisk.open` takes it."""
        return disk.open(path, **options)

    def url(self, name: str) -> str:
        """The URL of a store."""
        if self.kind == FILE:
            return self.path(name)
        if self.kind == SERVER:
            return self.address
        return f"{self.kind}:{self.path(name)}"

    def _options(self, name: str, options: OpenOptions) -> OpenOptions:
        if self.kind == SERVER:
            options["schema"] = self._schema(name)
        return options

    def _schema(self, name: str) -> str:
        # The name of a schema is short; the path of a file would not fit.
        return f"{self.prefix}_{zlib.crc32(self.path(name).encode()):08x}"

    def check(self) -> None:
        """Connect to the server, if it is one; raises if it cannot be reached."""
        if self.kind != SERVER:
            return
        psycopg = import_extra("psycopg", "PostgreSQL", "postgres")
        try:
            psycopg.connect(self.address, connect_timeout=CONNECT_SECONDS).close()
        except psycopg.ProgrammingError:  # its text may have the password
            problem = "its address is not understood"
        except psycopg.Error as error:
            problem = str(error).strip()
        else:
            return
        text = f"the server cannot be reached: {problem}; check --store"
        raise HoldfastError(text, code="cannot_open")

    def discard(self, name: str) -> None:
        """Remove a store that is no longer needed, to free its space."""
        if self.kind == SERVER:
            self._drop(self._schema(name))
            return
        for found in os.listdir(self.folder):
            if found.startswith(name):
                path = self.path(found)
                shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)

    def remove(self) -> None:
        """Drop the schemas made on a server; the folder belongs to the caller."""
        if self.kind == SERVER:
            self._drop(self.prefix)

    def _drop(self, prefix: str) -> None:
        psycopg = import_extra("psycopg", "PostgreSQL", "postgres")
        with psycopg.connect(self.address, autocommit=True) as connection:
            found = "select nspname from pg_namespace where starts_with(nspname, %s)"
            for (name,) in connection.execute(found, (prefix,)).fetchall():
                connection.execute(f'drop schema "{name}" cascade')


def _kind_of(address: str) -> str:
    if _SERVER.match(address):
        return SERVER
    kind = address.removesuffix(":")
    if kind in {"file", "sqlite"}:
        return FILE
    try:
        find_backend(kind)
    except Unsupported as error:
        text = "must be file, dir or postgresql://..., as no store of yours is tested"
        raise Unstorable("store", f"{text}; not {address!r}") from error
    return kind


class NotRun(Exception):
    """A row cannot be run here; the text says why."""


@dataclass(frozen=True, slots=True)
class Trials:
    """The number of trials of a promise, and a text for each that failed."""

    count: int
    wrong: list[str]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Task:
    """The arguments of a row: a target, the number of trials, a source of randomness.

    ``progress`` is to be called now and then with the share that is done.
    """

    target: Target
    count: int
    chance: random.Random = field(default_factory=lambda: random.Random(0))  # noqa: S311 - repeatable trials
    progress: Callable[[float], None] = lambda _: None

    def done(self, count: int) -> None:
        """Report how many of the trials are done."""
        self.progress(min(1.0, count / self.count))


@dataclass(frozen=True, slots=True)
class Row:
    """A promise of the scorecard.

    ``quick`` and ``full`` are the numbers of trials, counted in ``unit``.
    ``kinds`` are the kinds of stores to which it applies; a row for all of them is
    also for backends of other packages.
    """

    number: int
    name: str
    promise: str
    unit: str
    quick: int
    full: int
    run: Callable[[Task], Trials]
    kinds: tuple[str, ...] = (FILE, FOLDER)

    def applies_to(self, kind: str) -> bool:
        """True if the row can be run on a kind of store."""
        return kind in self.kinds or (kind not in ALL and self.kinds == ALL)

    def wanted(self, effort: Effort, kind: str) -> int:
        """The number of trials that are wanted on a kind of store."""
        if effort == "quick":
            return self.quick
        is_slower = FILE in self.kinds and kind != FILE
        return -(-self.full // SLOWNESS) if is_slower else self.full
