"""What the numbers were measured on."""

from __future__ import annotations

import os
import platform
import sqlite3
from importlib import import_module, metadata
from pathlib import Path

import apsw

import holdfast
from benchmarks.workloads import Writer

PEERS = (
    "langgraph",
    "langgraph-checkpoint-postgres",
    "langgraph-checkpoint-sqlite",
    "openai-agents",
)
CHUNK = 1500
LICENSE = Path(__file__).resolve().parent.parent / "LICENSE"


def environment(folder: str) -> dict[str, str]:
    """Machine, versions, and how fast the disk says that it is done."""
    return {
        "holdfast": holdfast.__version__,
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "sqlite": f"{apsw.sqlite_lib_version()} (apsw), {sqlite3.sqlite_version}"
        " (sqlite3, used by the peers)",
        "peers": ", ".join(f"{name} {_version(name)}" for name in PEERS),
        "machine": f"{os.cpu_count()} x {_processor()}, {platform.system()}"
        f" {platform.release()}",
        "file system": _file_system(folder),
        "text": _compressibility(),
    }


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if "model name" in line]
    return names[0] if names else platform.machine()


def _file_system(folder: str) -> str:
    """The type of the longest mount point above a folder."""
    try:
        lines = Path("/proc/mounts").read_text().splitlines()
    except OSError:
        return "unknown file system"
    mounts = [line.split() for line in lines]
    real = os.path.realpath(folder)
    above = [m for m in mounts if os.path.commonpath([real, m[1]]) == m[1]]
    return max(above, key=lambda mount: len(mount[1]))[2]


def _compressibility() -> str:
    """How far the generated text can be packed, beside text that people wrote."""
    try:
        pack = import_module("zstandard").ZstdCompressor(level=3).compress
    except ImportError:
        return "generated; zstd is not installed to say how dense"

    def left(text: str) -> float:
        data = text.encode()
        chunks = [data[n : n + CHUNK] for n in range(0, len(data) - CHUNK, CHUNK)]
        packed: int = sum(len(pack(chunk)) for chunk in chunks)
        return packed / len(chunks) / CHUNK

    generated, written = left(Writer().text(200_000)), left(LICENSE.read_text())
    return (
        f"generated; zstd leaves {generated:.2f} of {CHUNK} bytes of it"
        f" ({written:.2f} of our LICENSE)"
    )
