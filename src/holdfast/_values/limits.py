"""Limits of sizes, checked before anything is written.

Every backend can take values up to these limits: a row of SQLite and a message to
PostgreSQL hold about a gigabyte. docs/scaling.md lists them.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from holdfast.errors import HoldfastError, Unstorable

try:
    import resource
except ImportError:  # Windows has no such limits
    resource = None  # type: ignore[assignment]

# All values of a state together, as JSON.
LARGEST_STATE: Final = 1 << 30
# Of a value that is stored as one piece: an element of a list, such as a message.
LARGEST_ELEMENT: Final = 256 << 20
LARGEST_JOURNAL_VALUE: Final = 256 << 20
LARGEST_METADATA: Final = 16 << 20
MOST_TAGS: Final = 1000
LONGEST_QUERY: Final = 4096


def checked_size(data: bytes, path: str, most: int) -> bytes:
    """Encoded data, unless they are too large."""
    check_size(len(data), path, most)
    return data


def check_least_size(size: int, path: str, most: int) -> None:
    if size > most:
        raise Unstorable(
            path,
            f"takes at least {size:,} bytes as JSON, and {most:,} are allowed; divide"
            " it, or keep it in a file and save its name",
        )


def check_memory(size: int) -> None:
    """Refuse work that needs so much memory if the system does not give it.

    orjson aborts the process when an allocation fails.
    """
    try:
        bytearray(size)  # never written to, so the system does not reserve pages
    except MemoryError:
        raise no_memory(f" for {size:,} bytes") from None


def is_memory_limited() -> bool:
    """True if allocations can fail; otherwise the system kills large programs."""
    if resource is None:
        return False
    limits = (resource.RLIMIT_AS, resource.RLIMIT_DATA)
    is_free = all(resource.getrlimit(n)[0] == resource.RLIM_INFINITY for n in limits)
    return not is_free or _is_memory_counted()


@cache
def _is_memory_counted() -> bool:
    """True if Linux refuses to allocate more memory than there is."""
    try:
        with open("/proc/sys/vm/overcommit_memory", encoding="ascii") as file:
            return file.read(1) == "2"
    except OSError:
        return False


def no_memory(what: str = "") -> HoldfastError:
    """The error of a program that gets no more memory."""
    text = f"there is no memory{what}; free some, raise the limit (ulimit -v)"
    return HoldfastError(f"{text}, or divide the value", code="no_memory")


def check_size(size: int, path: str, most: int) -> None:
    """Refuse what is too large, with the way out."""
    if size > most:
        raise Unstorable(
            path,
            f"takes {size:,} bytes as JSON, and {most:,} are allowed; divide it, or"
            " keep it in a file and save its name",
        )
