"""Starts the programs of tests/programs, which kill processes or run many of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from support.effort import QUICK
from support.folders import PROGRAMS, TESTS

# So that a program finds `support`.
PATHS = [str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])]
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(PATHS)}
TIMEOUT = 200


def run_program(name: str, *arguments: object) -> list[Any]:
    """The lines of JSON a program prints; it must end well."""
    if QUICK:
        pytest.skip("starts processes: make test")
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
