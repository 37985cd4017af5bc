"""Listing and searching the files of a head, as deepagents shows them."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath

from deepagents.backends.protocol import (
    FileData,
    FileInfo,
    GrepMatch,
    GrepResult,
    ReadResult,
)
from deepagents.backends.utils import (
    compile_grep_include_glob,
    grep_matches_from_files,
    slice_read_response,
)

from holdfast.adapters.deepagents._changes import Head
from holdfast.adapters.deepagents._paths import (
    Refused,
    below,
    is_plain,
    shown_path,
    stored_path,
)
from holdfast.workspace import FileEntry

# How many bytes of files a search reads at a time.
READ_AT_ONCE = 8 << 20
# The file tool sends files with these endings to the model as base64, also texts.
MEDIA = frozenset(
    {
        *(".png", ".jpeg", ".jpg", ".webp", ".gif", ".heic", ".heif"),
        *(".mp4", ".mpeg", ".mov", ".avi", ".flv", ".mpg", ".webm", ".wmv", ".3gpp"),
        *(".mkv", ".wav", ".mp3", ".aiff", ".aac", ".ogg", ".flac"),
        *(".pdf", ".ppt", ".pptx"),
    }
)


def listed(head: Head, path: str) -> list[FileInfo]:
    """The files and folders directly in a folder; folders end with a slash."""
    place = stored_path(path)
    start = len(place) + 1 if place else 0
    found: dict[str, FileInfo] = {}
    for entry in below(head.tree, place):
        name, slash, _ = entry.path[start:].partition(b"/")
        if not name:  # the folder itself
            continue
        info = _info(entry)
        if slash or entry.is_directory:
            folder = shown_path(entry.path[:start] + name) + "/"
            info = FileInfo(path=folder, is_dir=True, size=0)
        found[info["path"]] = info
    return [found[name] for name in sorted(found)]


def _info(entry: FileEntry) -> FileInfo:
    return FileInfo(path=shown_path(entry.path), is_dir=False, size=entry.size)


def matching(head: Head, pattern: str, path: str | None) -> list[FileInfo]:
    """The regular files that match a pattern with their paths."""
    return [_info(entry) for entry in _selected(head, path, pattern)]


def _selected(head: Head, path: str | None, pattern: str | None) -> list[FileEntry]:
    place = stored_path(path or "/")
    matches = _matcher(pattern) if pattern else None
    found = [entry for entry in below(head.tree, place) if is_plain(entry)]
    if matches is None:
        return found
    return [entry for entry in found if matches(_relative(entry, place))]


def _matcher(pattern: str) -> Callable[[str], bool]:
    try:
        return compile_grep_include_glob(pattern)
    except ValueError as error:
        raise Refused(str(error)) from error


def _relative(entry: FileEntry, place: bytes) -> str:
    path = shown_path(entry.path)
    if entry.path == place:
        return PurePosixPath(path).name
    return path[len(shown_path(place)) + 1 if place else 1 :]


def grep(
    head: Head, pattern: str, path: str | None, glob: str | None, most: int | None
) -> GrepResult:
    """The lines of text files that have a literal pattern."""
    found: list[GrepMatch] = []
    for batch in _batches(_selected(head, path, glob)):
        files = _texts(head, batch)
        left = None if most is None else most - len(found)
        result = grep_matches_from_files(files, pattern, "/", None, max_count=left)
        found += result.matches or []
        if result.truncated:
            return GrepResult(matches=found, truncated=True)
    return GrepResult(matches=found)


def _batches(entries: list[FileEntry]) -> Iterator[list[FileEntry]]:
    batch, size = list[FileEntry](), 0
    for entry in entries:
        if batch and size + entry.size > READ_AT_ONCE:
            yield batch
            batch, size = [], 0
        batch.append(entry)
        size += entry.size
    yield batch


def _texts(head: Head, entries: list[FileEntry]) -> dict[str, FileData]:
    pairs = zip(entries, head.read(entries), strict=True)
    found = {shown_path(entry.path): file_data(content) for entry, content in pairs}
    # Older versions search base64, too.
    return {path: data for path, data in found.items() if data["encoding"] == "utf-8"}


def file_data(content: bytes) -> FileData:
    """A content in the form of deepagents: text, or base64 if it is not text."""
    try:
        return FileData(content=content.decode(), encoding="utf-8")
    except UnicodeDecodeError:
        return _encoded(content)


def _encoded(content: bytes) -> FileData:
    text = base64.standard_b64encode(content).decode("ascii")
    return FileData(content=text, encoding="base64")


def window(content: bytes, path: str, offset: int, limit: int) -> ReadResult:
    """Some lines of a text; any other content whole."""
    if PurePosixPath(path).suffix.lower() in MEDIA:
        return ReadResult(file_data=_encoded(content))
    data = file_data(content)
    if data["encoding"] == "base64":
        return ReadResult(file_data=data)
    return slice_read_response(data, offset, limit)
