"""What programs of the tests report, and the children they fork."""

from __future__ import annotations

import json
import sys

from holdfast.testing.trials.children import Child, Gate

__all__ = ["Child", "Gate", "report"]


def report(result: object) -> None:
    """One line of JSON on standard output."""
    sys.stdout.write(json.dumps(result) + "\n")
    sys.stdout.flush()
