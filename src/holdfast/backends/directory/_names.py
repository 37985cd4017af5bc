"""Names of family files: readable, and safe on every file system."""

from __future__ import annotations

import re
import unicodedata

SUFFIX = ".jsonl"
# The file for what belongs to no family. The names of family files end in a number.
STORE = f"store{SUFFIX}"
LONGEST_SLUG = 60
NAMELESS = "thread"

_OTHERS = re.compile(r"[^a-z0-9]+")
_NUMBERED = re.compile(rf".*-([0-9]{{1,9}}){re.escape(SUFFIX)}")


def file_name(thread: str, family: int) -> str:
    """The file of a family that was begun by a thread.

    The number makes it unique; the rest helps people to find it. There are only
    lower-case letters, digits and ``-``, so that it is the same on file systems that
    ignore case. Since it ends in a number, it is never a reserved name like ``con``.
    """
    plain = unicodedata.normalize("NFKD", thread).encode("ascii", "ignore").decode()
    slug = _OTHERS.sub("-", plain.lower())[:LONGEST_SLUG].strip("-")
    return f"{slug or NAMELESS}-{family}{SUFFIX}"


def family_of(name: str) -> int | None:
    """The family a file is named for, if it is one of ours."""
    match = _NUMBERED.fullmatch(name)
    return int(match[1]) if match else None


def is_ours(name: str) -> bool:
    """True if a file holds lines; hidden files belong to editors."""
    return name.endswith(SUFFIX) and not name.startswith(".")
