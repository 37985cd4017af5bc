"""Times and sizes with three digits, as a person reads them."""

from __future__ import annotations

STEP = 1000


def duration(seconds: float) -> str:
    """Seconds as a person reads them."""
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} us"
    return f"{seconds * 1e3:.2f} ms" if seconds < 1 else f"{seconds:.2f} s"


def volume(size: float) -> str:
    """Bytes as a person reads them."""
    for unit in ("B", "kB", "MB"):
        if size < STEP:
            return f"{size:.3g} {unit}"
        size /= STEP
    return f"{size:.3g} GB"
