"""Values that many tests save."""

from holdfast.testing.conformance.cases import LONG

__all__ = ["LONG", "LONGER"]

LONGER = LONG * 2
