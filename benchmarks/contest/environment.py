"""What the figures were measured on."""

from __future__ import annotations

import os
import platform
import sqlite3
from collections.abc import Iterable

import holdfast
from benchmarks.contest.peers import version_of
from benchmarks.inner.cli import sqlite_build


def environment(packages: Iterable[str]) -> dict[str, str]:
    """The machine and versions, those of packages in the order of their names."""
    return {
        "machine": f"{os.cpu_count()} x {_processor()}, {platform.system()}"
        f" {platform.release()}",
        "holdfast": holdfast.__version__,
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "sqlite": f"{sqlite_build().sqlite} (apsw), {sqlite3.sqlite_version} (sqlite3)",
        **{name: version_of(name) or "not installed" for name in sorted(packages)},
    }


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line for line in file if line.startswith("model name")]
    except OSError:
        names = []
    if names:
        return names[0].partition(":")[2].strip()
    return platform.processor() or platform.machine()
