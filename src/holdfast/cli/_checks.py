"""What `holdfast doctor` looks at: the installation, and the place of the store."""

from __future__ import annotations

import os
import platform
import shutil
import stat
from collections.abc import Iterator
from importlib import metadata
from typing import Literal

import msgspec

import holdfast
from holdfast._values.clock import now
from holdfast.cli import _documents
from holdfast._api.sqlite_build import sqlite_build

State = Literal["good", "note", "bad"]

# SQLite before 3.51.3 can damage a file in WAL mode when two connections write and
# checkpoint at the same moment.
SOUND_SQLITE = (3, 51, 3)
LARGE_LOG = 64 << 20
LITTLE_SPACE = 256 << 20
MINUTE = 60_000_000
# Locks and shared memory work on one machine only.
NETWORK = frozenset({
    "9p", "afs", "afpfs", "beegfs", "ceph", "cifs", "davfs", "fuse.sshfs", "fuse.s3fs",
    "fuse.rclone", "fuse.glusterfs", "gfs", "gfs2", "glusterfs", "lustre", "ncpfs",
    "nfs", "nfs4", "ocfs2", "smb", "smb2", "smb3", "smbfs",
})  # fmt: skip
FLEETING = frozenset({"ramfs", "tmpfs"})
EXTRAS = {
    "zstd": ("backports.zstd",),
    "cli": ("rich",),
    "postgres": ("psycopg",),
    "mcp": ("mcp",),
    "langgraph": ("langgraph-checkpoint",),
    "openai-agents": ("openai-agents",),
}


class Finding(msgspec.Struct, frozen=True):
    """One thing that was looked at; ``hint`` is what to do about it."""

    what: str
    state: State
    found: str
    hint: str = ""


def installation() -> Iterator[Finding]:
    """Versions, and what the build of SQLite can do."""
    yield Finding("holdfast", "good", holdfast.__version__)
    yield Finding("python", "good", platform.python_version())
    yield from _sqlite()
    present = [name for name in EXTRAS if any(map(_version, EXTRAS[name]))]
    yield Finding("extras", "good", ", ".join(present) or "none")


def _sqlite() -> Iterator[Finding]:
    build = sqlite_build()
    sound = tuple(int(part) for part in build.sqlite.split(".")) >= SOUND_SQLITE
    yield Finding(
        "sqlite",
        "good" if sound else "bad",
        f"{build.sqlite} in apsw {build.apsw}",
        "" if sound else "it can damage WAL files; run: pip install --upgrade apsw",
    )
    checked = build.page_checksums
    yield Finding(
        "page checksums",
        "good" if checked else "note",
        "available" if checked else "not in this build",
        "" if checked else "damaged pages may go unnoticed; install apsw from a wheel",
    )


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


# --- the place ------------------------------------------------------------------------


def place(path: str) -> Iterator[Finding]:
    """The file system around a file or folder, and its permissions."""
    folder = path if os.path.isdir(path) else os.path.dirname(os.path.abspath(path))
    yield _file_system(folder)
    yield _space(folder, path)
    yield _permissions(path)


def _file_system(folder: str) -> Finding:
    kind = file_system(folder)
    if kind is None:
        return Finding("file system", "note", "unknown", "keep it on a local disk")
    if kind in NETWORK:
        hint = "locks do not work between machines: use a local disk or PostgreSQL"
        return Finding("file system", "bad", f"{kind}, over a network", hint)
    if kind in FLEETING:
        hint = "what is saved is lost when the machine restarts"
        return Finding("file system", "note", f"{kind}, in memory", hint)
    return Finding("file system", "good", kind)


def file_system(folder: str, mounts: str = "/proc/self/mounts") -> str | None:
    """The type of the file system a folder is on, ``None`` where it cannot be told."""
    folder = os.path.realpath(folder)
    best, kind = "", None
    try:
        with open(mounts, encoding="utf-8", errors="surrogateescape") as file:
            for line in file:
                _, place, found, *_ = line.split(" ")
                place = place.replace("\\040", " ")
                inside = folder == place or folder.startswith(place.rstrip("/") + "/")
                if inside and len(place) >= len(best):
                    best, kind = place, found
    except (OSError, ValueError):
        return None
    return kind


def _space(folder: str, path: str) -> Finding:
    free = shutil.disk_usage(folder).free
    taken = 0 if os.path.isdir(path) else os.path.getsize(path)
    enough = free > max(LITTLE_SPACE, taken)
    hint = "" if enough else "compact and backup need as much as the store takes"
    state: State = "good" if enough else "note"
    return Finding("free space", state, _documents.size(free), hint)


def _permissions(path: str) -> Finding:
    mode = stat.S_IMODE(os.stat(path).st_mode)
    if not os.access(path, os.R_OK):
        return Finding("permissions", "bad", f"{mode:04o}", "you may not read it")
    if mode & 0o077:
        hint = f"others can read it; run: chmod go= {path}"
        return Finding("permissions", "note", f"{mode:04o}", hint)
    if not os.access(path, os.W_OK):
        return Finding("permissions", "note", f"{mode:04o}", "you may only read it")
    return Finding("permissions", "good", f"{mode:04o}")


def log_left(path: str) -> Finding:
    """The write-ahead log beside a SQLite file."""
    try:
        size = os.path.getsize(f"{path}-wal")
    except OSError:
        return Finding("log", "good", "none")
    if size > LARGE_LOG:
        hint = "somebody reads for very long, or died; the next to open it tidies up"
        return Finding("log", "note", _documents.size(size), hint)
    return Finding("log", "good", _documents.size(size))


def clock(newest: int | None) -> Finding:
    """This machine's clock beside the newest time in the store."""
    ahead = 0 if newest is None else newest - now()
    if ahead > MINUTE:
        hint = "set the clock: ages and --keep-within go by it"
        text = f"{ahead // MINUTE:,} minutes behind the newest checkpoint"
        return Finding("clock", "note", text, hint)
    return Finding("clock", "good", _documents.time(now()))
