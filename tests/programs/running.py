"""Starting the programs beside this file from a test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zlib
from typing import Any

FOLDER = os.path.dirname(os.path.abspath(__file__))
TIMEOUT = 200
# `make thorough`: every combination, where the tests else take some.
THOROUGH = bool(os.environ.get("HOLDFAST_THOROUGH"))


def run_program(name: str, *arguments: object) -> list[Any]:
    """The lines of JSON a program prints; it must end well."""
    program = os.path.join(FOLDER, f"{name}.py")
    ended = subprocess.run(
        [sys.executable, "-W", "error", program, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    # Shown when a test fails: what went wrong in children.
    sys.stderr.write(ended.stderr)
    return [json.loads(line) for line in ended.stdout.splitlines()]


def seed_of(name: str, number: int = 0) -> int:
    """The seed of a test: fixed, or with HOLDFAST_SEED another one."""
    shift = int(os.environ.get("HOLDFAST_SEED", "0"))
    return zlib.crc32(name.encode()) + number + 1000 * shift
