"""Starts the programs of tests/programs, and says how hard to try."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zlib
from typing import Any

from support.folders import PROGRAMS, TESTS

# So that a program finds `support`.
PATHS = [str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])]
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(PATHS)}
TIMEOUT = 200
# `make thorough`: every combination, where the tests else take some.
THOROUGH = bool(os.environ.get("HOLDFAST_THOROUGH"))
# How often the tests of crashes kill a writer at random.
ROUNDS = int(os.environ.get("HOLDFAST_CRASH_ROUNDS", "100"))


def run_program(name: str, *arguments: object) -> list[Any]:
    """The lines of JSON a program prints; it must end well."""
    program = str(PROGRAMS / f"{name}.py")
    ended = subprocess.run(
        [sys.executable, "-W", "error", program, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
        env=ENVIRONMENT,
    )
    assert ended.returncode == 0, ended.stderr
    # Shown when a test fails: what went wrong in children.
    sys.stderr.write(ended.stderr)
    return [json.loads(line) for line in ended.stdout.splitlines()]


def seed_of(name: str, number: int = 0) -> int:
    """The seed of a test: fixed, or with HOLDFAST_SEED another one."""
    shift = int(os.environ.get("HOLDFAST_SEED", "0"))
    return zlib.crc32(name.encode()) + number + 1000 * shift
