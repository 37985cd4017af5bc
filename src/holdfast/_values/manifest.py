"""A checkpoint's manifest: its values by name, inline or as ropes, to and from bytes.

The manifest is JSON that a person can read. The runs of its ropes are in the
checkpoint's ``runs``, because backends have to know which segments are in use.
"""

from __future__ import annotations

import hashlib
from binascii import a2b_base64, b2a_base64
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import Any, cast

import msgspec
import orjson

from holdfast._values.records import SEPARATOR, Checkpoint, Run
from holdfast._values.rope import LAST_BLOCK, Rope
from holdfast._values.runs import BEFORE_FILES
from holdfast.errors import Corrupt

INLINE_SIZE = 256
# A segment has a number of 32 bits in the keys of SQLite.
LARGEST_NUMBER, LARGEST_SIZE = 1 << 32, 1 << 62

# The name of the only value of a state that is not a mapping.
WHOLE = ""

Value = Rope | bytes


class FileLog(msgspec.Struct, frozen=True):
    """The files of a checkpoint: the segments of their contents and of their list.

    ``top`` is the segment that the list begins with and ``digest`` its SHA-256;
    ``size`` are the bytes of all that is in use.
    """

    runs: tuple[Run, ...]
    size: int
    digest: bytes
    top: int
    next_number: int


class Manifest(msgspec.Struct, frozen=True):
    """The values of a state; ``next_block`` is the next unused block of numbers.

    ``files`` belong to the state and are not a value of it: readers of values do not
    see them.
    """

    is_mapping: bool
    values: dict[str, Value] = {}
    next_block: int = 0
    files: FileLog | None = None

    def measured(self) -> tuple[tuple[Run, ...], int]:
        """The runs of all ropes in the order of the values, and the size as JSON.

        The files follow, behind an empty run. They do not count for the size.
        """
        runs: list[Run] = []
        size = 0
        for value in self.values.values():
            if isinstance(value, Rope):
                runs += value.runs
                size += value.size
            else:
                size += len(value)
        if self.files is not None:
            runs += (BEFORE_FILES, *self.files.runs)
        return tuple(runs), size

    def encoded(self) -> bytes:
        """The manifest as bytes."""
        values: dict[str, list[object]] = {}
        for name, value in self.values.items():
            values[name] = _entry(value)
        shape = "mapping" if self.is_mapping else "single"
        if self.files is None:
            return orjson.dumps({shape: values, "block": self.next_block})
        files = _files_entry(self.files)
        return orjson.dumps({shape: values, "block": self.next_block, "files": files})


def _files_entry(log: FileLog) -> list[object]:
    digest = b2a_base64(log.digest, newline=False).decode()
    return [len(log.runs), log.size, digest, log.top, log.next_number]


def _entry(value: Value) -> list[object]:
    if isinstance(value, bytes):
        return ["json", orjson.Fragment(value)]
    return [
        "list" if value.is_list else "text",
        len(value.runs),
        value.size,
        b2a_base64(value.chain, newline=False).decode(),
        value.next_appended,
        value.next_replaced,
    ]


def decode_manifest(checkpoint: Checkpoint) -> Manifest:
    """The manifest of a checkpoint."""
    try:
        return _decoded(checkpoint)
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise _damage(checkpoint, error) from None


def _damage(checkpoint: Checkpoint, error: Exception) -> Corrupt:
    return Corrupt(f"the manifest of checkpoint {checkpoint.id!r}", str(error))


def has_value(checkpoint: Checkpoint, name: str) -> bool:
    """True if a checkpoint has a value; decodes the manifest only if it may have."""
    # The same bytes can stand in another value.
    if _beginning(name) not in checkpoint.manifest:
        return False
    return name in decode_manifest(checkpoint).values


def value_of(checkpoint: Checkpoint, name: str) -> Value | None:
    """One value of a checkpoint, ``None`` if it has none of this name.

    The others are not decoded, which halves the time.
    """
    try:
        entries = _entries(orjson.loads(checkpoint.manifest))
        first = 0
        for found, entry in entries.items():
            if found == name:
                return _value(entry, iter(checkpoint.runs[first:]))
            first += 0 if entry[0] == "json" else entry[1]
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise _damage(checkpoint, error) from None
    return None


@lru_cache
def _beginning(name: str) -> bytes:
    """The bytes with which the manifest of a state begins a value."""
    return orjson.dumps({name: [""]})[1:-3]


def _decoded(checkpoint: Checkpoint) -> Manifest:
    decoded = orjson.loads(checkpoint.manifest)
    runs = iter(checkpoint.runs)
    entries = _entries(decoded).items()
    values = {name: _value(entry, runs) for name, entry in entries}
    files = _files(decoded["files"], runs) if "files" in decoded else None
    return Manifest(
        "mapping" in decoded, values, _number(decoded["block"], LAST_BLOCK), files
    )


def _files(entry: list[Any], runs: Iterator[Run]) -> FileLog:
    count, size, digest, top, next_number = entry
    if next(runs, None) != BEFORE_FILES:
        raise ValueError("the runs of its files are missing")
    mine = _next_runs(runs, count)
    size = _number(size, LARGEST_SIZE)
    return FileLog(mine, size, a2b_base64(digest), _number(top), _number(next_number))


def _next_runs(runs: Iterator[Run], count: int) -> tuple[Run, ...]:
    mine = tuple(islice(runs, count))
    if len(mine) != count:
        raise ValueError("runs are missing")
    return mine


def _entries(decoded: dict[str, Any]) -> dict[str, Any]:
    entries: object = decoded["mapping" if "mapping" in decoded else "single"]
    if not isinstance(entries, dict):  # another program may have written it
        raise TypeError("its values have no names")
    return cast("dict[str, Any]", entries)


def _number(found: object, most: int = LARGEST_NUMBER) -> int:
    """The number of a segment, which others can follow, or another count."""
    if type(found) is not int or not 0 <= found <= most:
        raise ValueError(f"{found!r} is no number of it")
    return found


def _value(entry: list[Any], runs: Iterator[Run]) -> Value:
    if entry[0] == "json":
        # orjson writes back the same bytes that it wrote and read.
        return orjson.dumps(entry[1])
    kind, count, size, chain, next_appended, next_replaced = entry
    mine = _next_runs(runs, count)
    return Rope(
        kind == "list",
        mine,
        _number(size, LARGEST_SIZE),
        a2b_base64(chain),
        _number(next_appended),
        _number(next_replaced),
    )


def digest(checkpoint: Checkpoint, parent: bytes) -> bytes:
    """SHA-256 over the parent's digest and what never changes in a checkpoint.

    Without the scope: inside of it and outside, the digest is the same.
    """
    text = orjson.dumps([
        checkpoint.id,
        checkpoint.thread.rpartition(SEPARATOR)[2],
        checkpoint.step,
        checkpoint.saved_at,
        checkpoint.kind,
        checkpoint.size,
        [*map(list, checkpoint.runs)],
        len(checkpoint.manifest),
    ])  # fmt: skip
    parts = (parent, text, checkpoint.manifest, checkpoint.encoded_metadata)
    return hashlib.sha256(b"\0".join(parts)).digest()
