"""What programs of the tests print, for `run_program`."""

from __future__ import annotations

import json
import sys


def report(result: object) -> None:
    """One line of JSON on standard output."""
    sys.stdout.write(json.dumps(result) + "\n")
    sys.stdout.flush()
