"""The checks of `holdfast doctor`: the installation, and the disk around the store."""

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
from holdfast._api.plugins import sqlite_build
from holdfast._values.clock import now
from holdfast.cli._text import size, time

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
VOLATILE = frozenset({"ramfs", "tmpfs"})
EXTRAS = {
    "zstd": "zstandard",
    "keys": "cryptography",
    "cli": "rich",
    "postgres": "psycopg",
    "mcp": "mcp",
    "langgraph": "langgraph-checkpoint",
    "openai-agents": "openai-agents",
    "otel": "opentelemetry-api",
}


class Diagnostic(msgspec.Struct, frozen=True):
    """The result of one check; ``hint`` is what to do about it."""

    what: str
    state: State
    found: str
    hint: str = ""


def installation() -> Iterator[Diagnostic]:
    """Versions, and the abilities of the SQLite build."""
    yield Diagnostic("holdfast", "good", holdfast.__version__)
    yield Diagnostic("python", "good", platform.python_version())
    yield from _sqlite()
    present = [name for name in EXTRAS if _is_installed(EXTRAS[name])]
    yield Diagnostic("extras", "good", ", ".join(present) or "none")


def _sqlite() -> Iterator[Diagnostic]:
    build = sqlite_build()
    sound = tuple(int(part) for part in build.sqlite.split(".")) >= SOUND_SQLITE
    yield Diagnostic(
        "sqlite",
        "good" if sound else "bad",
        f"{build.sqlite} in apsw {build.apsw}",
        "" if sound else "it can damage WAL files; run: pip install --upgrade apsw",
    )
    checked = build.page_checksums
    yield Diagnostic(
        "page checksums",
        "good" if checked else "note",
        "available" if checked else "not in this build",
        "" if checked else "damaged pages may go unnoticed; install apsw from a wheel",
    )


def _is_installed(distribution: str) -> bool:
    return next(iter(metadata.distributions(name=distribution)), None) is not None


# --- the disk -------------------------------------------------------------------------


def disk(path: str) -> Iterator[Diagnostic]:
    """The file system around a file or folder, and its permissions."""
    folder = path if os.path.isdir(path) else os.path.dirname(os.path.abspath(path))
    yield _file_system(folder)
    yield _space(folder, path)
    yield _permissions(path)


def _file_system(folder: str) -> Diagnostic:
    kind = file_system(folder)
    if kind is None:
        return Diagnostic("file system", "note", "unknown", "keep it on a local disk")
    if kind in NETWORK:
        hint = "locks do not work between machines: use a local disk or PostgreSQL"
        return Diagnostic("file system", "bad", f"{kind}, over a network", hint)
    if kind in VOLATILE:
        hint = "the store is lost when the machine restarts"
        return Diagnostic("file system", "note", f"{kind}, in memory", hint)
    return Diagnostic("file system", "good", kind)


def file_system(folder: str, mounts: str = "/proc/self/mounts") -> str | None:
    """The type of the file system a folder is on, ``None`` if unknown."""
    folder = os.path.realpath(folder)
    best, kind = "", None
    try:
        with open(mounts, encoding="utf-8", errors="surrogateescape") as file:
            for line in file:
                _, mount, found, *_ = line.split(" ")
                mount = mount.replace("\\040", " ")
                inside = folder == mount or folder.startswith(mount.rstrip("/") + "/")
                if inside and len(mount) >= len(best):
                    best, kind = mount, found
    except (OSError, ValueError):
        return None
    return kind


def _space(folder: str, path: str) -> Diagnostic:
    free = shutil.disk_usage(folder).free
    taken = 0 if os.path.isdir(path) else os.path.getsize(path)
    enough = free > max(LITTLE_SPACE, taken)
    if enough:
        return Diagnostic("free space", "good", size(free))
    hint = "compact and backup need as much free space as the store takes"
    return Diagnostic("free space", "note", size(free), hint)


def _permissions(path: str) -> Diagnostic:
    mode = stat.S_IMODE(os.stat(path).st_mode)
    state: State = "note"
    if not os.access(path, os.R_OK):
        state, hint = "bad", "you have no permission to read it"
    elif mode & 0o077:
        hint = f"others can read it; run: chmod go= {path}"
    elif not os.access(path, os.W_OK):
        hint = "you have no permission to write it"
    else:
        state, hint = "good", ""
    return Diagnostic("permissions", state, f"{mode:04o}", hint)


def log_left(path: str) -> Diagnostic:
    """The write-ahead log beside a SQLite file."""
    try:
        left = os.path.getsize(f"{path}-wal")
    except OSError:
        return Diagnostic("log", "good", "none")
    if left > LARGE_LOG:
        hint = "a reader is open for long, or a process died; the next open shortens it"
        return Diagnostic("log", "note", size(left), hint)
    return Diagnostic("log", "good", size(left))


def clock(newest: int | None) -> Diagnostic:
    """This machine's clock compared with the newest time in the store."""
    ahead = 0 if newest is None else newest - now()
    if ahead > MINUTE:
        hint = "set the clock: ages and --keep-within depend on it"
        text = f"{ahead // MINUTE:,} minutes behind the newest checkpoint"
        return Diagnostic("clock", "note", text, hint)
    return Diagnostic("clock", "good", time(now()))
