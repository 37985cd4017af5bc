"""Values that many tests save."""

from holdfast.testing._cases import LONG

__all__ = ["LONG", "LONGER"]

LONGER = LONG * 2
