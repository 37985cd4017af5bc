"""Reads foreign files: never changes them, follows no links, checks what it reads."""

from __future__ import annotations

import json
import math
import os
import re
import stat
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import msgspec

from holdfast.importers._reader import Damaged, Reading

LARGEST = 1 << 30
HEAD = 4096
BYTE_ORDER_MARK = "\ufeff"

# Opening a named pipe would block, and a link could lead anywhere.
_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_BINARY", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
)

# Bytes that are not UTF-8 are decoded to these characters, and nothing else is.
_BROKEN = re.compile("[\udc80-\udcff]")


class SourceFile(msgspec.Struct, frozen=True):
    """A regular file; ``parts`` are the folders below the root, then its name."""

    path: str
    parts: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name without the folders."""
        return self.parts[-1]


def shown(path: str) -> str:
    """A path as text that can be printed, also if its bytes are not UTF-8."""
    return path.encode("utf-8", "backslashreplace").decode()


def walk(
    root: str, depth: int, reading: Reading, without: frozenset[str] = frozenset()
) -> Iterator[SourceFile]:
    """The regular files below a folder in order of their names, or the file itself.

    Links, special files and folders that cannot be listed are reported. The files
    ``without``, by their paths as they are shown, are passed over.
    """
    if not os.path.isdir(root):
        yield SourceFile(root, (os.path.basename(root),))
        return
    waiting: list[tuple[str, ...]] = [()]
    while waiting:
        parts = waiting.pop()
        folders: list[tuple[str, ...]] = []
        for entry in _entries(os.path.join(root, *parts), reading):
            below = (*parts, entry.name)
            if entry.is_dir(follow_symlinks=False):
                folders.append(below)
            elif entry.is_file(follow_symlinks=False):
                if shown(entry.path) not in without:
                    yield SourceFile(entry.path, below)
            else:
                text = "is a link or a special file, which is not followed"
                reading.ignore(shown(entry.path), text)
        waiting += reversed(folders if len(parts) + 1 < depth else [])


def _entries(folder: str, reading: Reading) -> list[os.DirEntry[str]]:
    with reading.attempt(shown(folder)), os.scandir(folder) as entries:
        return sorted(entries, key=lambda entry: os.fsencode(entry.name))
    return []


def read_bytes(path: str) -> bytes:
    """The bytes of a regular file of at most `LARGEST` bytes."""
    with os.fdopen(os.open(path, _FLAGS), "rb") as file:
        about = os.fstat(file.fileno())
        if not stat.S_ISREG(about.st_mode):
            raise Damaged("is not a regular file")
        if about.st_size > LARGEST:
            raise Damaged(f"is {about.st_size} bytes long; {LARGEST} are read at most")
        return file.read(LARGEST + 1)


def read_head(path: str) -> bytes:
    """The first bytes of a file, none if it cannot be read."""
    try:
        with os.fdopen(os.open(path, _FLAGS), "rb") as file:
            regular = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
            return file.read(HEAD) if regular else b""
    except OSError:
        return b""


def read_text(path: str) -> str:
    """The text of a file, unchanged."""
    return checked_text(read_bytes(path).decode(errors="surrogateescape"))


def checked_text(text: str) -> str:
    """The same text; `Damaged` if some of its bytes were not UTF-8."""
    broken = _BROKEN.search(text)
    if broken is not None:
        raise Damaged(f"is not UTF-8 text (character {broken.start()})")
    return text


def read_json_text(path: str, *, whole: bool = True) -> str:
    """The text of a JSON file without a byte order mark.

    Unless ``whole``, the caller has to pass each part to `checked_text`.
    """
    text = read_bytes(path).decode(errors="surrogateescape")
    if not text:
        raise Damaged("is empty")
    return (checked_text(text) if whole else text).removeprefix(BYTE_ORDER_MARK)


def read_json(path: str) -> Any:
    """The value of a JSON file."""
    return parse(read_json_text(path))


def parse(text: str) -> Any:
    """The value of a JSON text."""
    try:
        return DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise Damaged(f"is not JSON: {error.msg} (character {error.pos})") from None
    except ValueError as error:
        raise Damaged(f"is not JSON that can be kept: {error}") from None


def digest(value: object) -> str:
    """A digest of a JSON value that does not depend on the order of keys."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return sha256(text.encode()).hexdigest()[:32]


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        double = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {double!r} occurs twice in an object")
    return fields


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number of JSON")


def _float(token: str) -> float:
    number = float(token)
    if not math.isfinite(number):
        raise ValueError(f"{token} is too large for a number")
    return number


# Not orjson: it turns large integers into floats and accepts a key twice.
DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_constant=_constant, parse_float=_float
)
